//! Which process or thread something is about: its number and its start, since numbers are used again.

use procfs::{
    FromRead,
    process::{Process, Status},
};
use serde::{Deserialize, Serialize};

/// A process or thread that cannot be mistaken for a later one of the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub number: i32,
    /// When it started, in clock ticks since the machine's boot.
    pub started: u64,
    /// Its name.
    pub name: String,
}

impl Identity {
    /// Of a process or thread that is alive.
    pub fn of(number: i32) -> Option<Identity> {
        let stat = Process::new(number).ok()?.stat().ok()?;
        (!matches!(stat.state, 'Z' | 'X')).then_some(Identity { number, started: stat.starttime, name: stat.comm })
    }

    /// Whether it is the same still.
    pub fn is_alive(&self) -> bool {
        Identity::of(self.number).is_some_and(|now| now.started == self.started)
    }
}

/// The status file of a process or thread that is alive. The crate procfs by itself fails where the name in it is no UTF-8: the kernel
/// cuts names at 15 bytes, in the middle of a character too.
pub(crate) fn status(number: i32) -> Option<Status> {
    let bytes = std::fs::read(format!("/proc/{number}/status")).ok()?;
    Status::from_read(String::from_utf8_lossy(&bytes).as_bytes()).ok()
}

/// A program under a name that the kernel cuts in the middle of a character.
#[cfg(test)]
pub(crate) fn named_without_text(folder: &std::path::Path, program: &str) -> std::path::PathBuf {
    // 1 + 5 × 3 bytes, of which the kernel keeps 15.
    let name = folder.join("x로봇팔제어");
    std::os::unix::fs::symlink(program, &name).unwrap();
    name
}

/// Once a child has the name of the program that it executes, and no longer that of the thread that started it.
#[cfg(test)]
pub(crate) fn until_it_has_its_name(pid: u32) {
    while !std::fs::read(format!("/proc/{pid}/comm")).unwrap().starts_with(b"x") {
        std::thread::yield_now();
    }
}
