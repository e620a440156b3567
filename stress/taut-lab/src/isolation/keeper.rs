//! What ends the processes of a lab that was killed: a process beside it, which waits for the end of a pipe that the lab
//! holds. The kernel's own signal at a parent's death reaches direct children only, and control groups need root; this
//! needs neither, and a process that left its group is found by the lab's mark.

use std::{
    ffi::OsString,
    io::{Read, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
};

use super::{
    child::SESSION,
    leftovers::remove_of,
    mine::{MARK, PART},
    tree,
};
use crate::Error;

/// What a lab that ends by itself writes: it has left nothing.
const IN_ORDER: &[u8] = b".";

/// The process beside a lab; it ends with the lab.
pub(crate) struct Keeper {
    child: Child,
    /// Closed by the kernel when the lab dies.
    pipe: Option<ChildStdin>,
}

impl Keeper {
    /// `words`: the command that runs [`keep`] with the mark of this lab.
    pub fn start(words: &[OsString], mark: &str) -> Result<Keeper, Error> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| Error::Start { place: "keeper".into(), problem: "has no command".into() })?;
        let mut command = Command::new(program);
        command.args(arguments).arg(mark).env_remove(MARK).env_remove(PART).env_remove(SESSION);
        // A group of its own: what ends the lab from a terminal must not end what cleans up after it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().map_err(Error::system(program.display()))?;
        tree::spare(Some(child.id()));
        let pipe = child.stdin.take();
        Ok(Keeper { child, pipe })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.write_all(IN_ORDER);
        }
        let _ = self.child.wait();
        tree::spare(None);
    }
}

/// Waits until the lab with this mark is gone, on stdin. Says what it had left and is gone now; nothing of a lab that
/// ended by itself.
///
/// # Errors
/// Processes that survive, files that cannot be removed.
pub fn keep(mark: &str) -> Result<Vec<String>, Error> {
    let mut said = Vec::new();
    std::io::stdin().read_to_end(&mut said).map_err(Error::system("stdin"))?;
    if said == IN_ORDER { Ok(Vec::new()) } else { remove_of(mark) }
}
