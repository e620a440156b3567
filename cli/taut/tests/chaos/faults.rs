//! One system call of a recorder or of a producer fails: the n-th of its name, with each error that it may have. As SQLite
//! does with its own files. strace puts the error in the place of the call; what it counts, it counts for each thread.

use std::{
    collections::BTreeMap,
    fmt,
    os::unix::process::ExitStatusExt,
    process::{Command, Output, Stdio},
};

use assert_cmd::cargo::cargo_bin;
use taut_recording::{Contents, LostWhat, Record};
use taut_skip::{Need, skip};

use crate::stage::built;

/// Calls of a recorder. What the C library and Rust's runtime take for infallible (a thread's own memory, the end of a
/// directory's listing) is left out: who answers that with an error ends every program.
const RECORDER: &[(&str, &[&str])] = &[
    ("openat", &["EACCES", "EMFILE", "EIO", "ESTALE", "EINTR"]),
    ("read", &["EIO", "EINTR", "EAGAIN", "ESTALE"]),
    ("write", &["ENOSPC", "EIO", "EINTR", "EAGAIN"]),
    ("ftruncate", &["ENOSPC", "EIO"]),
    ("fdatasync", &["EIO"]),
    ("rename", &["EACCES", "ENOSPC"]),
    ("unlink", &["EACCES", "EIO"]),
    ("mkdir", &["ENOSPC", "EACCES"]),
    ("statx", &["EACCES", "EIO", "ESTALE"]),
    ("getdents64", &["EIO"]),
    ("readlink", &["EACCES"]),
    ("readlinkat", &["EACCES"]),
    ("lseek", &["EIO"]),
    ("poll", &["EINTR"]),
    ("ppoll", &["EINTR"]),
    ("clone3", &["EAGAIN"]),
    ("pipe2", &["EMFILE"]),
    ("socketpair", &["EMFILE"]),
    ("pidfd_open", &["EMFILE"]),
    ("waitid", &["EINTR"]),
    ("flock", &["ENOLCK"]),
    ("fcntl", &["EMFILE"]),
    ("ioctl", &["EIO"]),
    ("sched_setattr", &["EPERM"]),
];

/// Calls of a producer, from the first that is taut's.
const PRODUCER: &[(&str, &[&str])] = &[
    ("openat", &["EACCES", "EMFILE", "ENOSPC", "EINTR"]),
    ("mkdir", &["EACCES", "ENOSPC"]),
    ("mmap", &["ENOMEM"]),
    ("ftruncate", &["ENOSPC", "EIO", "EINTR"]),
    ("fallocate", &["ENOSPC", "EINTR"]),
    ("rename", &["EACCES", "ENOSPC"]),
    ("renameat2", &["EACCES", "EINVAL", "ENOSYS"]),
    ("link", &["EPERM"]),
    ("linkat", &["EPERM"]),
    ("unlink", &["EACCES"]),
    ("newfstatat", &["EACCES"]),
    ("read", &["EIO", "EINTR"]),
    ("readlink", &["EACCES"]),
    ("fcntl", &["EMFILE"]),
];

/// Stamps of the robot.
const STAMPS: u64 = 200;

/// Who has the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Recorder,
    Producer,
}

/// Which call fails, and how.
pub struct Fault {
    pub call: &'static str,
    pub errno: &'static str,
    pub nth: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.call, self.nth, self.errno)
    }
}

/// Whether this machine can do it; the test returns where it cannot.
pub fn can_trace() -> bool {
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let can = traced.is_ok_and(|status| status.success());
    if !can {
        skip(Need::Strace, "strace is missing or may not trace");
    }
    can
}

/// Every fault of a kind of process; of calls that it makes more than `most` times, `most` evenly.
pub fn faults(who: Who, most: usize) -> Vec<Fault> {
    let first = match who {
        Who::Recorder => BTreeMap::new(),
        Who::Producer => calls(&run(who, None, false).trace),
    };
    let (last, mut faults) = (calls(&run(who, None, true).trace), Vec::new());
    let table = match who {
        Who::Recorder => RECORDER,
        Who::Producer => PRODUCER,
    };
    for (call, errors) in table {
        let of = |calls: &BTreeMap<String, usize>| calls.get(*call).copied().unwrap_or(0);
        let (first, last) = (of(&first), of(&last));
        let step = (last - first.min(last)).div_ceil(most).max(1);
        for nth in (first + 1..=last).step_by(step) {
            faults.extend(errors.iter().map(|errno| Fault { call, errno, nth }));
        }
    }
    faults
}

/// How often a thread called, by name: that of the threads that did most often.
fn calls(trace: &str) -> BTreeMap<String, usize> {
    let (mut by_thread, mut most) = (BTreeMap::<(&str, &str), usize>::new(), BTreeMap::new());
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((call, _)) = rest.trim_start().split_once('(') else { continue };
        *by_thread.entry((thread, call)).or_default() += 1;
    }
    for ((_, call), count) in by_thread {
        let known = most.entry(call.to_owned()).or_default();
        *known = count.max(*known);
    }
    most
}

/// What came of a run.
struct Run {
    output: Output,
    trace: String,
    stamped: u64,
    is_over: bool,
    unannounced: u64,
    /// Of the file that was written, if one was.
    recorded: Option<Result<(Contents, u64, u64), taut_recording::Error>>,
    left: Vec<String>,
}

fn run(who: Who, fault: Option<&Fault>, is_stamped: bool) -> Run {
    let folder = tempfile::Builder::new().prefix("taut-fault-").tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("account"), [0; 4096]).unwrap();
    let mut traced = Command::new("strace");
    traced.args(["-f", "-b", "execve", "-o"]).arg(path("trace"));
    if let Some(Fault { call, errno, nth }) = fault {
        traced.arg("-e").arg(format!("trace={call}"));
        traced.arg("-e").arg(format!("inject={call}:error={errno}:when={nth}"));
    }
    let taut = cargo_bin!("taut");
    let record = ["record", "-q", "--tier", "stamps", "-o", "run.mcap", "--"];
    let robot = built().join("robot");
    let words = ["account", "0", if who == Who::Recorder { "2" } else { "0" }];
    let stamps = (STAMPS / if who == Who::Recorder { 2 } else { 1 }).to_string();
    let mut command = match (who, is_stamped) {
        (Who::Recorder, _) => {
            traced.arg(taut).args(record).arg(robot);
            traced
        }
        (Who::Producer, true) => {
            let mut command = Command::new(taut);
            command.args(record).arg(traced.get_program()).args(traced.get_args()).arg(robot);
            command
        }
        (Who::Producer, false) => {
            traced.arg(robot);
            traced
        }
    };
    command.args(words).args([&stamps, "100"]).current_dir(folder.path()).env_remove("TAUT_SESSION");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let account = std::fs::read(path("account")).unwrap();
    let word = |at: usize| u64::from_ne_bytes(account[at * 8..at * 8 + 8].try_into().unwrap());
    let trace = std::fs::read_to_string(path("trace")).unwrap_or_default();
    let recorded = std::fs::read(path("run.mcap")).ok().map(|bytes| {
        let (mut stamps, mut lost) = (0, 0);
        let contents = taut_recording::read(&bytes, &mut |record| match record {
            Record::Stamps(batch) => stamps += batch.ticks.len() as u64,
            Record::Lost(told) if told.what == LostWhat::Stamps => lost += told.count,
            _ => {}
        })?;
        Ok((contents, stamps, lost))
    });
    let expected = ["account", "trace", "run.mcap"];
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left = names.map(|name| name.into_string().unwrap()).filter(|name| !expected.contains(&name.as_str()));
    Run {
        left: left.collect(),
        stamped: word(0) + word(3),
        is_over: word(1) == 1,
        unannounced: word(2),
        output,
        trace,
        recorded,
    }
}

/// Lets a fault happen; whether it did, or what is wrong with what came of it.
pub fn holds(who: Who, fault: &Fault) -> Result<bool, String> {
    let run = run(who, Some(fault), true);
    if !run.trace.contains("INJECTED") {
        return Ok(false);
    }
    let said = String::from_utf8_lossy(&run.output.stderr);
    let at = run.trace.lines().find(|line| line.contains("INJECTED")).unwrap_or_default();
    let wrong = |what: &str| Err(format!("{fault}: {what}; {}; it said: {said}; at {at}", run.output.status));
    let Some(code) = run.output.status.code() else {
        return wrong(&format!("signal {:?}", run.output.status.signal()));
    };
    if code == 101 || said.contains("panicked") {
        return wrong("a panic");
    }
    if run.stamped > 0 && !run.is_over {
        return wrong("the robot did not end");
    }
    if !run.left.is_empty() {
        return wrong(&format!("left behind: {:?}", run.left));
    }
    if who == Who::Producer && !run.is_over {
        return wrong("the robot was hurt");
    }
    // Its words are a call too.
    let is_mute = run.trace.lines().any(|line| line.contains("write(2,") && line.contains("INJECTED"));
    if code != 0 && said.is_empty() && !is_mute {
        return wrong("it failed without a word");
    }
    match &run.recorded {
        None if run.is_over => wrong("it ran, and there is no file"),
        None if code == 0 => wrong("all went well, and there is no file"),
        None => Ok(true),
        Some(Err(error)) => wrong(&format!("what it wrote {error}")),
        Some(Ok((contents, stamps, lost))) => {
            let is_finished = contents.ending.is_some();
            if code == 0 && !is_finished {
                return wrong("all went well, and the file is not finished");
            }
            let known = stamps + lost + if *stamps + *lost < run.stamped { run.unannounced } else { 0 };
            // A file that could not be opened or read to its end was told.
            let is_told = said.contains("warning");
            if is_finished && known != run.stamped && !is_told {
                return wrong(&format!("of {} stamps {stamps} are in the file and {lost} counted", run.stamped));
            }
            Ok(true)
        }
    }
}
