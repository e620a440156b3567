//! Load beside a probe: built-in workers in a process of their own, or a command.

use std::{
    ffi::OsString,
    fmt,
    io::{self, Seek, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    str::FromStr,
};

use rustix::{
    io::Errno,
    process::{Signal, getppid, set_parent_process_death_signal},
};

use crate::Error;

/// What runs beside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// Built-in workers.
    Workers(Work, u32),
    /// A command of the shell.
    Command(String),
    /// stress-ng with these options.
    StressNg(String),
}

/// What a built-in worker does, without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Computes.
    Cpu,
    /// Copies 32 MiB to and fro.
    Memory,
    /// Writes a file and syncs it.
    Io,
    /// Sleeps for 50 µs at a time: timer interrupts.
    Timer,
}

const WORDS: [(&str, Work); 4] =
    [("cpu", Work::Cpu), ("memory", Work::Memory), ("io", Work::Io), ("timer", Work::Timer)];

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::Workers(work, n) => write!(f, "{}={n}", work.word()),
            Load::Command(command) => write!(f, "command={command}"),
            Load::StressNg(options) => write!(f, "stress-ng={options}"),
        }
    }
}

impl FromStr for Load {
    type Err = Error;

    fn from_str(text: &str) -> Result<Load, Error> {
        let bad = || Error::Value {
            key: "load".into(),
            value: text.into(),
            hint: "give cpu=N, memory=N, io=N, timer=N, command='…' or stress-ng='…'".into(),
        };
        let (kind, value) = text.split_once('=').ok_or_else(bad)?;
        match kind {
            "command" => Ok(Load::Command(value.to_owned())),
            "stress-ng" => Ok(Load::StressNg(value.to_owned())),
            _ => {
                let work = Work::from_word(kind).ok_or_else(bad)?;
                let n = value.parse().ok().filter(|n| (1..=10_000).contains(n)).ok_or_else(bad)?;
                Ok(Load::Workers(work, n))
            }
        }
    }
}

impl Work {
    /// Its word.
    pub fn word(self) -> &'static str {
        WORDS.iter().find(|(_, work)| *work == self).map_or("", |(word, _)| word)
    }

    /// The work of that word.
    pub fn from_word(word: &str) -> Option<Work> {
        WORDS.iter().find(|(known, _)| *known == word).map(|(_, work)| *work)
    }

    /// Works in so many threads until the process is killed, and with its parent at the latest, which is `parent`.
    ///
    /// # Errors
    /// A thread that could not be started; a file that could not be written; a parent that has ended.
    pub fn go(self, workers: u32, parent: i32) -> std::io::Result<()> {
        // An executable with capabilities loses what was asked for before it was executed.
        end_with(parent)?;
        let start = |_| std::thread::Builder::new().stack_size(256 << 10).spawn(move || self.work());
        let threads = (0..workers).map(start).collect::<std::io::Result<Vec<_>>>()?;
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    }

    /// One round of it, to be called again and again; answers the bytes it moved, or how many rounds it was.
    ///
    /// # Errors
    /// A file that could not be made; each round's, one that could not be written.
    pub fn rounds(self) -> std::io::Result<Box<dyn FnMut() -> std::io::Result<u64>>> {
        Ok(match self {
            Work::Cpu => {
                let mut x = 1u64;
                Box::new(move || {
                    for _ in 0..10_000 {
                        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    }
                    std::hint::black_box(x);
                    Ok(1)
                })
            }
            Work::Memory => {
                let (mut from, mut to) = (vec![1u8; 32 << 20], vec![0u8; 32 << 20]);
                Box::new(move || {
                    to.copy_from_slice(&from);
                    std::mem::swap(&mut from, &mut to);
                    std::hint::black_box(&mut from);
                    Ok(from.len() as u64)
                })
            }
            Work::Io => {
                let mut file = tempfile::tempfile()?;
                let block = vec![7u8; 1 << 20];
                Box::new(move || {
                    file.write_all(&block)?;
                    file.sync_data()?;
                    file.rewind()?;
                    Ok(block.len() as u64)
                })
            }
            Work::Timer => Box::new(|| {
                std::thread::sleep(std::time::Duration::from_micros(50));
                Ok(1)
            }),
        })
    }

    fn work(self) -> std::io::Result<()> {
        let mut round = self.rounds()?;
        loop {
            round()?;
        }
    }
}

/// From now on this process is killed when its parent ends. May be called between fork and exec.
///
/// # Errors
/// The parent has ended by now (ESRCH), and would send no signal any more: this process has another than `parent`.
pub fn end_with(parent: i32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // One of another PID namespace has no number here.
    match getppid() {
        Some(now) if now.as_raw_nonzero().get() != parent => Err(Errno::SRCH.into()),
        _ => Ok(()),
    }
}

/// A load that runs until it is dropped.
pub(crate) struct Running {
    load: Load,
    child: Child,
}

impl Running {
    /// Starts it; `worker` is the command that runs [`Work::go`] with a word and a number.
    pub fn start(load: &Load, worker: &[OsString]) -> Result<Running, Error> {
        let failed = |reason: String| Error::Load { load: load.to_string(), reason };
        let mut command = match load {
            Load::Workers(work, n) => {
                let (program, arguments) =
                    worker.split_first().ok_or_else(|| failed("no command for workers was given".into()))?;
                let mut command = Command::new(program);
                command.args(arguments).arg(work.word()).arg(n.to_string());
                command
            }
            Load::Command(text) => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(text);
                command
            }
            Load::StressNg(options) => {
                let mut command = Command::new("stress-ng");
                command.args(options.split_whitespace());
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env_remove("TAUT_SESSION");
        let parent = std::process::id() as i32;
        // SAFETY: two system calls between fork and exec, which are async-signal-safe.
        unsafe { command.pre_exec(move || end_with(parent)) };
        let child = command.process_group(0).spawn().map_err(|error| match load {
            Load::StressNg(_) if error.kind() == std::io::ErrorKind::NotFound => {
                failed("stress-ng is not installed: apt install stress-ng".into())
            }
            _ => failed(error.to_string()),
        })?;
        Ok(Running { load: load.clone(), child })
    }

    /// Whether it still runs.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(Error::Load {
                load: self.load.to_string(),
                reason: format!("ended before the probe did ({status})"),
            }),
            _ => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_read_as_they_are_written() {
        for text in ["cpu=30", "memory=2", "io=1", "timer=4", "command=make -j2", "stress-ng=--cpu 2"] {
            assert_eq!(text.parse::<Load>().unwrap().to_string(), text);
        }
        for text in ["", "cpu", "cpu=0", "cpu=x", "gpu=1"] {
            assert!(text.parse::<Load>().unwrap_err().to_string().contains("give cpu=N"), "{text}");
        }
    }

    #[test]
    fn a_load_that_ends_is_noticed_and_one_that_runs_is_ended() {
        let mut brief = Running::start(&Load::Command("true".into()), &[]).unwrap();
        let ended = (0..60_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            brief.check().is_err()
        });
        assert!(ended);
        let mut long = Running::start(&Load::Command("sleep 1000".into()), &[]).unwrap();
        assert!(long.check().is_ok());
        let pid = rustix::process::Pid::from_child(&long.child);
        drop(long);
        assert!(rustix::process::test_kill_process(pid).is_err(), "killed and waited for");
    }

    /// By its parent the kernel means the thread that started it.
    #[test]
    fn a_load_that_is_no_worker_of_ours_ends_with_its_parent_too() {
        let start = || Running::start(&Load::Command("exec sleep 1000".into()), &[]).unwrap();
        let mut load = std::thread::spawn(start).join().unwrap();
        let ended = (0..60_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            load.check().is_err()
        });
        assert!(ended);
    }

    #[test]
    fn a_child_whose_parent_has_ended_before_it_could_ask_does_not_start() {
        let start = |parent: i32| {
            let mut command = Command::new("true");
            // SAFETY: as in `Running::start`.
            unsafe { command.pre_exec(move || end_with(parent)) };
            command.spawn().and_then(|mut child| child.wait())
        };
        let own = std::process::id() as i32;
        assert!(start(own).is_ok_and(|status| status.success()));
        assert_eq!(start(own + 1).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
