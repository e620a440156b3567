//! The process that made a file of the session: whether it still runs, and its pid in the recorder's namespace.

use std::fs;

use crate::proc;

/// Looks for a process of another PID namespace before it is given up.
pub const LOOKS_FOR_PID: u32 = 8;

/// The process that made a file, as the file states it until it is found.
pub struct Owner {
    /// The host's pid; in a foreign namespace its own until it is found.
    pub pid: i32,
    /// Inode of the PID namespace, when it is not ours.
    pub foreign_namespace: Option<u64>,
    /// Whether `pid` is the host's.
    pub is_found: bool,
    looks_left: u32,
    start_time: u64,
}

impl Owner {
    /// As a file's header has it: pid, inode of its PID namespace (0: unknown), start time (0: unknown).
    pub fn new(pid: i32, namespace: u64, start_time: u64) -> Owner {
        let ours = namespace_of("self");
        let foreign_namespace = Some(namespace).filter(|theirs| *theirs != 0 && ours != 0 && *theirs != ours);
        let is_found = foreign_namespace.is_none();
        let mut owner = Owner { pid, foreign_namespace, is_found, looks_left: LOOKS_FOR_PID, start_time };
        owner.look_for_pid();
        owner
    }

    /// Whether it still runs; one that cannot be found may.
    pub fn is_alive(&mut self) -> bool {
        if !self.look_for_pid() {
            return true;
        }
        proc::runs(self.pid, Some(self.start_time).filter(|start| *start != 0))
    }

    /// Whether the host pid is known; in a foreign PID namespace it has to be looked for.
    pub fn look_for_pid(&mut self) -> bool {
        if !self.is_found && self.looks_left > 0 {
            self.looks_left -= 1;
            let found = self.foreign_namespace.and_then(|namespace| host_pid(self.pid, namespace));
            self.is_found = found.is_some();
            self.pid = found.unwrap_or(self.pid);
        }
        self.is_found
    }
}

/// Inode of a process's PID namespace; 0 when it may not be read.
pub fn namespace_of(process: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{process}/ns/pid")).map_or(0, |m| m.ino())
}

/// The pid as we see it of a process that calls itself `own` in the PID namespace with this inode.
fn host_pid(own: i32, namespace: u64) -> Option<i32> {
    proc::pids().into_iter().find(|pid| {
        namespace_of(&pid.to_string()) == namespace && proc::innermost_pid(&format!("/proc/{pid}/status")) == Some(own)
    })
}
