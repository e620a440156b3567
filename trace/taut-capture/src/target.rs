//! What is recorded: a command that is started and held until the kernel source is armed, or a
//! process that runs already.

use std::{
    ffi::OsString,
    fs::File,
    io::{ErrorKind, Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Child, Command},
    thread::JoinHandle,
};

use crate::{Error, proc};

/// What to record.
#[derive(Clone, Debug)]
pub enum Target {
    /// Start this command; at least one word.
    Command(Vec<OsString>),
    /// Attach to this process.
    Pid(i32),
}

/// A command between fork and exec: its pid is known, none of its code has run.
pub struct Held {
    pub pid: i32,
    command: String,
    gate: File,
    spawning: JoinHandle<std::io::Result<Child>>,
}

impl Held {
    /// Forks for the command and holds it before exec.
    pub fn fork(words: &[OsString], session: &Path, ring_records: Option<u32>) -> Result<Held, Error> {
        let name = words[0].to_string_lossy().into_owned();
        if !is_command(&words[0]) {
            return Err(Error::CommandNotFound { command: name });
        }
        let (mut report, reporter) = pipe()?;
        let (gate_out, gate) = pipe()?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env("TAUT_SESSION", session);
        if let Some(records) = ring_records {
            command.env("TAUT_RING_RECORDS", records.to_string());
        }
        let (reporter_fd, gate_fd, our_gate) = (reporter.as_raw_fd(), gate_out.as_raw_fd(), gate.as_raw_fd());
        // SAFETY: only async-signal-safe calls between fork and exec: close, getpid, write, read.
        unsafe {
            command.pre_exec(move || {
                // Our own copy of the writing end would keep the gate from ever seeing its end of file.
                libc::close(our_gate);
                let pid = libc::getpid();
                libc::write(reporter_fd, (&raw const pid).cast(), size_of_val(&pid));
                let mut go = 0u8;
                // End of file: the recorder is gone or gave up; the command must not run unrecorded.
                match libc::read(gate_fd, (&raw mut go).cast(), 1) {
                    1 => Ok(()),
                    _ => Err(std::io::Error::from_raw_os_error(libc::ECANCELED)),
                }
            });
        }
        // spawn returns only after exec, so it waits in a thread of its own.
        let spawning = std::thread::spawn(move || {
            let child = command.spawn();
            drop((reporter, gate_out));
            child
        });
        let mut pid = [0; 4];
        let told = report.read_exact(&mut pid);
        told.map_err(|source| Error::System { what: "fork", source })?;
        Ok(Held { pid: i32::from_ne_bytes(pid), command: name, gate, spawning })
    }

    /// Lets it run.
    pub fn release(mut self) -> Result<Child, Error> {
        let opened = self.gate.write_all(&[1]);
        drop(self.gate);
        let failed = |source: std::io::Error| match source.kind() {
            ErrorKind::NotFound => Error::CommandNotFound { command: self.command.clone() },
            _ => Error::CommandFailed { command: self.command.clone(), source },
        };
        opened.map_err(failed)?;
        match self.spawning.join() {
            Ok(child) => child.map_err(failed),
            Err(_) => Err(Error::System { what: "spawn", source: std::io::Error::other("its thread panicked") }),
        }
    }

    /// Gives up: the child ends without having run.
    pub fn cancel(self) {
        drop(self.gate);
        let _ = self.spawning.join();
    }
}

/// 0 to 255, or 128 + signal as shells have it.
pub fn exit_code(status: std::process::ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// The session directory of a running process, if it was started with one.
pub fn session_of(pid: i32) -> Result<Option<std::path::PathBuf>, Error> {
    if !Path::new(&format!("/proc/{pid}")).exists() {
        return Err(Error::NoProcess { pid });
    }
    let session = proc::environment(pid, "TAUT_SESSION").map_err(|source| match source.kind() {
        ErrorKind::NotFound => Error::NoProcess { pid },
        _ => Error::NotPermitted { pid, source },
    })?;
    // A relative directory is relative to where the process runs.
    Ok(session.filter(|s| !s.is_empty()).map(|s| Path::new(&format!("/proc/{pid}/cwd")).join(s)))
}

/// Whether exec would find it: a path, or a name in PATH.
fn is_command(word: &OsString) -> bool {
    let path = Path::new(word);
    if path.components().count() > 1 || path.is_absolute() {
        return path.exists();
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search).any(|folder| folder.join(path).is_file())
}

fn pipe() -> Result<(File, File), Error> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors, which become ours alone.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(Error::System { what: "pipe", source: std::io::Error::last_os_error() });
        }
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}
