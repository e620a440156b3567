//! What is recorded: a command that is started and held until the kernel source is armed, or a
//! process that runs already.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, ErrorKind, Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::{
            fs::MetadataExt,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::mpsc::{Receiver, sync_channel},
    time::{Duration, Instant},
};

use rustix::{
    io::retry_on_intr,
    process::{Pid, WaitId, WaitIdOptions, waitid},
};

use crate::{Error, proc, signals};

/// The thread that starts a command.
const STARTER: &str = "taut-start";
/// How long a process without a session is given to start its program: a shell's `./robot & taut record --pid $!`.
const EXECS_WITHIN: Duration = Duration::from_secs(1);

/// What to record.
#[derive(Clone, Debug)]
pub enum Target {
    /// Start this command; at least one word.
    Command(Vec<OsString>),
    /// Attach to this process.
    Pid(i32),
    /// All processes of the machine: kernel events only, since each program that stamps has a session of its own.
    System,
}

/// A command between fork and exec: its pid is known, none of its code has run.
pub struct Held {
    pub pid: i32,
    command: String,
    gate: File,
    spawned: Receiver<io::Result<Child>>,
}

impl Held {
    /// Forks for the command, with these variables in its environment, and holds it before exec.
    pub fn fork(words: &[OsString], variables: &[(&str, OsString)]) -> Result<Held, Error> {
        let [word, arguments @ ..] = words else {
            return Err(Error::CommandNotFound { command: String::new() });
        };
        let name = word.to_string_lossy().into_owned();
        check(word).map_err(|source| failed(&name, source))?;
        let (mut report, reporter) = pipe()?;
        let (gate_out, gate) = pipe()?;
        let mut command = Command::new(word);
        command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        let (reporter_fd, gate_fd, our_gate) = (reporter.as_raw_fd(), gate_out.as_raw_fd(), gate.as_raw_fd());
        // SAFETY: only async-signal-safe calls between fork and exec: sigprocmask, close, getpid, write, read, sigaction.
        unsafe {
            command.pre_exec(move || {
                signals::hold();
                // Our own copy of the writing end would keep the gate from ever seeing its end of file.
                libc::close(our_gate);
                let pid = libc::getpid();
                // Who waits for the pid would wait for ever for one that could not be written.
                whole(|| libc::write(reporter_fd, (&raw const pid).cast(), size_of_val(&pid)), size_of_val(&pid))?;
                let mut go = 0u8;
                // End of file: the recorder is gone or gave up; the command must not run unrecorded.
                whole(|| libc::read(gate_fd, (&raw mut go).cast(), 1), 1)?;
                signals::let_go();
                Ok(())
            });
        }
        let (tell, spawned) = sync_channel(1);
        // spawn returns only after exec, so it waits in a thread of its own.
        let spawn = move || {
            let child = command.spawn();
            drop((reporter, gate_out));
            let pid = child.as_ref().ok().and_then(|child| Pid::from_raw(child.id().cast_signed()));
            let _ = tell.send(child);
            // A command may ask for a signal at its parent's death (PR_SET_PDEATHSIG), and by its parent the kernel means this thread.
            if let Some(pid) = pid {
                let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
            }
        };
        let started = std::thread::Builder::new().name(STARTER.to_owned()).spawn(spawn);
        started.map_err(|source| Error::System { what: "a thread that starts the command", source })?;
        let mut pid = [0; 4];
        if let Err(source) = report.read_exact(&mut pid) {
            // Whoever was forked all the same waits for the gate, and spawn for it.
            drop(gate);
            // Nobody reported, so there was no fork; spawn knows why.
            return Err(match spawned.recv() {
                Ok(Err(source)) => failed(&name, source),
                _ => Error::System { what: "fork", source },
            });
        }
        Ok(Held { pid: i32::from_ne_bytes(pid), command: name, gate, spawned })
    }

    /// Lets it run.
    pub fn release(mut self) -> Result<Child, Error> {
        let opened = self.gate.write_all(&[1]);
        drop(self.gate);
        let failed = |source| failed(&self.command, source);
        opened.map_err(failed)?;
        match self.spawned.recv() {
            Ok(child) => child.map_err(failed),
            Err(_) => Err(Error::System { what: "spawn", source: io::Error::other("its thread panicked") }),
        }
    }

    /// Gives up: the child ends without having run.
    pub fn cancel(self) {
        drop(self.gate);
        let _ = self.spawned.recv();
    }
}

/// Repeats a read or write of a few bytes of a pipe, which moves all of them or none, until no signal interrupts it.
fn whole(mut call: impl FnMut() -> isize, bytes: usize) -> io::Result<()> {
    loop {
        match call() {
            moved if moved == bytes as isize => return Ok(()),
            -1 => match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => {}
                error => return Err(error),
            },
            _ => return Err(io::Error::from_raw_os_error(libc::ECANCELED)),
        }
    }
}

/// 0 to 255, or 128 + signal as shells have it.
pub fn exit_code(status: std::process::ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// The session directory of a running process: the one that the user says, or that of its environment if it was
/// started with one.
pub fn session_of(pid: i32, said: Option<&Path>) -> Result<Option<PathBuf>, Error> {
    if pid <= 0 || !proc::exists(format!("/proc/{pid}")) {
        return Err(Error::NoProcess { pid });
    }
    if let Some(said) = said {
        return Ok(Some(said.to_owned()));
    }
    let until = Instant::now() + EXECS_WITHIN;
    let session = loop {
        // Read before the environment: of a program that starts in between it is read again.
        let is_starting = proc::is_starting(pid);
        let session = proc::environment(pid, "TAUT_SESSION").map_err(|source| match proc::is_gone(&source) {
            true => Error::NoProcess { pid },
            false => Error::NotPermitted { pid, source },
        })?;
        if session.is_some() || !is_starting || Instant::now() > until {
            break session;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    Ok(session.filter(|s| !s.is_empty()).map(|session| as_seen_by(pid, Path::new(&session))))
}

/// The session that a process was told of when it began; `None` where that is none, or cannot be asked for.
pub fn told_session(pid: i32) -> Option<PathBuf> {
    let session = proc::environment(pid, "TAUT_SESSION").ok().flatten().filter(|session| !session.is_empty())?;
    Some(as_seen_by(pid, Path::new(&session)))
}

/// A path of that process: relative to where it runs, and perhaps in a file system of its own, where the host may have another
/// directory of that name.
fn as_seen_by(pid: i32, path: &Path) -> PathBuf {
    let Ok(inside) = path.strip_prefix("/") else { return Path::new(&format!("/proc/{pid}/cwd")).join(path) };
    let theirs = PathBuf::from(format!("/proc/{pid}/root")).join(inside);
    let identity = |path: &Path| std::fs::metadata(path).map(|there| (there.dev(), there.ino())).ok();
    match (identity(&theirs), identity(path)) {
        (Some(theirs), Some(ours)) if theirs == ours => path.to_owned(),
        (Some(_), _) => theirs,
        // Its root may not be looked into: then it is hoped to be ours.
        (None, _) => path.to_owned(),
    }
}

/// Whether exec would find a file it may run: a path, or a name in PATH. What exec says besides (no
/// such interpreter, wrong architecture) is reported when it is tried.
fn check(word: &OsStr) -> io::Result<()> {
    let path = Path::new(word);
    if path.components().count() > 1 || path.is_absolute() {
        return executable(path);
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let mut tries = std::env::split_paths(&search).map(|folder| executable(&folder.join(path)));
    // As exec does: the first that may be run; one that is there and may not is told before "not found".
    let mut refused = None;
    tries
        .find_map(|tried| match tried {
            Ok(()) => Some(Ok(())),
            Err(error) => {
                refused = refused.take().or(Some(error).filter(|e| e.kind() == ErrorKind::PermissionDenied));
                None
            }
        })
        .unwrap_or_else(|| Err(refused.unwrap_or_else(|| ErrorKind::NotFound.into())))
}

fn executable(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    Ok(rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?)
}

const NO_INTERPRETER: &str =
    "its interpreter is missing: see the file's first line (#!), or what `file` says of its loader";

fn failed(command: &str, source: io::Error) -> Error {
    let command = command.to_owned();
    match source.kind() {
        // It is there; what its first line or its header names is not.
        ErrorKind::NotFound if check(OsStr::new(&command)).is_ok() => {
            Error::CommandFailed { command, source: io::Error::new(ErrorKind::NotFound, NO_INTERPRETER) }
        }
        ErrorKind::NotFound => Error::CommandNotFound { command },
        _ => Error::CommandFailed { command, source },
    }
}

fn pipe() -> Result<(File, File), Error> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors, which become ours alone.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(Error::System { what: "pipe", source: io::Error::last_os_error() });
        }
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test in a process of its own, which has this variable.
    fn passes_by_itself(name: &str, variable: &str) {
        let mut inner = Command::new(std::env::current_exe().unwrap());
        let output = inner.args(["--exact", name, "--test-threads=1"]).env(variable, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }

    /// In a process of its own, with no other command.
    #[test]
    fn the_thread_that_started_a_command_stays_as_long_as_it() {
        const INNER: &str = "TAUT_TEST_STARTER";
        let has_starter = || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
            tasks.flat_map(|task| std::fs::read_to_string(task.path().join("comm"))).any(|name| name.trim() == STARTER)
        };
        if std::env::var_os(INNER).is_some() {
            let held = Held::fork(&["sleep", "1000"].map(OsString::from), &[]).unwrap();
            let mut child = held.release().unwrap();
            // Whatever time it had to end.
            std::thread::sleep(Duration::from_millis(50));
            let is_there = has_starter();
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(is_there);
            while has_starter() {
                std::thread::yield_now();
            }
            return;
        }
        passes_by_itself("target::tests::the_thread_that_started_a_command_stays_as_long_as_it", INNER);
    }

    /// As the terminal's Ctrl-C in the moment before exec. In a process of its own, whose signals are listened to.
    #[test]
    fn a_signal_to_a_command_that_is_held_reaches_it() {
        const INNER: &str = "TAUT_TEST_HELD_SIGNAL";
        if std::env::var_os(INNER).is_some() {
            let _listening = signals::Signals::listen(false).unwrap();
            let words = ["sh", "-c", "exit 3"].map(OsString::from);
            let held = Held::fork(&words, &[]).unwrap();
            signals::send(held.pid, libc::SIGINT);
            let status = held.release().unwrap().wait().unwrap();
            assert_eq!(status.signal(), Some(libc::SIGINT), "{status}");
            return;
        }
        passes_by_itself("target::tests::a_signal_to_a_command_that_is_held_reaches_it", INNER);
    }

    #[test]
    fn the_session_of_a_process_that_is_about_to_call_exec_is_that_of_its_program() {
        let session = tempfile::tempdir().unwrap();
        let variables = [("TAUT_SESSION", session.path().as_os_str().to_owned())];
        let held = Held::fork(&["sleep", "1000"].map(OsString::from), &variables).unwrap();
        let pid = held.pid;
        assert!(proc::is_starting(pid));
        let asked = std::thread::spawn(move || session_of(pid, None).unwrap());
        // So that it asks before, on a machine that is not busy.
        std::thread::sleep(Duration::from_millis(20));
        let mut child = held.release().unwrap();
        assert_eq!(asked.join().unwrap().as_deref(), Some(session.path()));
        assert!(!proc::is_starting(pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
