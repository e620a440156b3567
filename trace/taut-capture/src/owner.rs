//! The process that made a file of the session: whether it still runs, and its pid in the recorder's namespace.

use std::{fs, io, sync::OnceLock};

use crate::proc;

/// Looks for a process of another PID namespace at each opportunity; later only at the 16th, 32nd, 64th …: each asks every process
/// of the machine.
pub const LOOKS_FOR_PID: u32 = 8;

/// The process that made a file, as the file states it until it is found.
pub struct Owner {
    /// The host's pid; in a foreign namespace its own until it is found.
    pub pid: i32,
    /// Inode of the PID namespace, when it is not ours.
    pub foreign_namespace: Option<u64>,
    /// Whether `pid` is the host's.
    pub is_found: bool,
    looks: u32,
    start_time: u64,
}

impl Owner {
    /// As a file's header has it: pid, inode of its PID namespace (0: unknown), start time (0: unknown).
    pub fn new(pid: i32, namespace: u64, start_time: u64) -> Owner {
        // Where ours is not known, one of that namespace is looked for: by its own pid it could be anybody.
        let foreign_namespace = Some(namespace).filter(|theirs| *theirs != 0 && *theirs != own_namespace());
        let is_found = foreign_namespace.is_none();
        let mut owner = Owner { pid, foreign_namespace, is_found, looks: 0, start_time };
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
        self.look_by(host_pid)
    }

    /// A look that could not see all processes (no descriptor left, for example) counts as none.
    fn look_by(&mut self, look: impl FnOnce(i32, u64) -> io::Result<Option<i32>>) -> bool {
        let Some(namespace) = self.foreign_namespace.filter(|_| !self.is_found) else { return self.is_found };
        let looks = self.looks.saturating_add(1);
        if looks > LOOKS_FOR_PID && !looks.is_power_of_two() {
            self.looks = looks;
            return false;
        }
        if let Ok(found) = look(self.pid, namespace) {
            self.looks = looks;
            self.is_found = found.is_some();
            self.pid = found.unwrap_or(self.pid);
        }
        self.is_found
    }
}

/// Ours never changes, but a look at it may fail.
fn own_namespace() -> u64 {
    static OWN: OnceLock<u64> = OnceLock::new();
    match OWN.get() {
        Some(own) => *own,
        None => match namespace_of("self") {
            0 => 0,
            own => *OWN.get_or_init(|| own),
        },
    }
}

/// Inode of a process's PID namespace; 0 when it may not be read.
pub fn namespace_of(process: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{process}/ns/pid")).map_or(0, |m| m.ino())
}

/// The pid as we see it of a process that calls itself `own` in the PID namespace with this inode.
///
/// # Errors
/// Not every process of that namespace could be asked.
fn host_pid(own: i32, namespace: u64) -> io::Result<Option<i32>> {
    for pid in proc::all_pids()? {
        if namespace_of(&pid.to_string()) != namespace {
            continue;
        }
        match proc::innermost_pid(&format!("/proc/{pid}/status")) {
            Ok(innermost) if innermost == Some(own) => return Ok(Some(pid)),
            Ok(_) => {}
            Err(error) if proc::is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_another_namespace_is_looked_for_to_the_end() {
        // No namespace has this inode.
        let mut owner = Owner::new(7, 1, 0);
        assert_eq!((owner.is_found, owner.looks), (false, 1));
        // What fails says nothing of the process, and costs no look.
        for _ in 0..100 {
            assert!(!owner.look_by(|_, _| Err(io::Error::from_raw_os_error(libc::EMFILE))));
        }
        assert_eq!(owner.looks, 1);
        let mut looked = Vec::new();
        for look in 2..=70 {
            owner.look_by(|own, namespace| {
                assert_eq!((own, namespace), (7, 1));
                looked.push(look);
                Ok(None)
            });
        }
        assert_eq!(looked, [2, 3, 4, 5, 6, 7, 8, 16, 32, 64]);
        for _ in 71..128 {
            owner.look_by(|_, _| Ok(Some(1)));
        }
        assert!(!owner.is_found);
        assert!(owner.look_by(|_, _| Ok(Some(4242))));
        assert_eq!((owner.pid, owner.is_found), (4242, true));
    }
}
