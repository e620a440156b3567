//! A command of this machine that does something on another one: ssh, sftp, the helper for Ray.

use std::{
    ffi::OsString,
    io::{Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use crate::Error;

/// How often the end of a command is asked for.
const STEP: Duration = Duration::from_millis(50);

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// The last line that it said.
    pub said: String,
}

/// Ends with the command, or when the user wants the lab to end. `place` is for messages, as is what to install.
pub(super) fn run(
    program: &Path,
    arguments: &[OsString],
    input: &str,
    stop: &AtomicBool,
    place: (&str, &str),
) -> Result<Ended, Error> {
    let name = program.display();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A terminal's Ctrl-C is not for it: `stop` is.
        .process_group(0)
        .spawn()
        .map_err(|error| Error::Start {
            place: place.0.to_owned(),
            problem: format!("{name} does not start ({error}); install {}", place.1),
        })?;
    let mut stdin = child.stdin.take();
    let _ = stdin.as_mut().map(|stdin| stdin.write_all(input.as_bytes()));
    // sftp reads to the end; a terminal there must not see one.
    let held = stdin.filter(|_| input.is_empty());
    let read = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stream.map(|mut stream| stream.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let out = read(child.stdout.take().map(|stream| Box::new(stream) as _));
    let err = read(child.stderr.take().map(|stream| Box::new(stream) as _));
    let status = loop {
        if let Some(status) = child.try_wait().map_err(Error::system(&name))? {
            break status;
        }
        if stop.load(Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Stopped { trials: 0 });
        }
        std::thread::sleep(STEP);
    };
    drop(held);
    let said = [err.join().unwrap_or_default(), out.join().unwrap_or_default()].concat();
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing").to_owned();
    Ok(Ended { code: status.code(), said: last })
}
