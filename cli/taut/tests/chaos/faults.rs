//! One system call of a recorder or of a producer fails: the n-th of its name, with each error that it may have. As SQLite
//! does with its own files. strace puts the error in the place of the call; what it counts, it counts for each thread.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    os::unix::process::ExitStatusExt,
    path::Path,
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

/// What is done to a recorder's calls by a preloaded library, since strace cannot: half of what was wanted is moved; and files cannot be
/// mapped, which of a thread's own memory ends every program.
const PRELOADED: &[(&str, &[&str])] =
    &[("read", &[SHORT]), ("write", &[SHORT]), ("pread64", &[SHORT]), ("mmap", &["ENOMEM", "EACCES", "EAGAIN"])];
const SHORT: &str = "short";

/// Of kernel events besides: tracefs and perf, where this user may have them.
const FULL: &[(&str, &[&str])] = &[
    ("openat", &["EACCES", "EMFILE", "ENOENT", "EINTR"]),
    ("read", &["EIO", "EINTR", "EAGAIN"]),
    ("write", &["ENOSPC", "EIO", "EINTR", "EBUSY"]),
    ("mkdir", &["ENOMEM", "EACCES", "EEXIST"]),
    ("flock", &["ENOLCK", "EINTR"]),
    ("ioctl", &["EIO"]),
    ("mount", &["EPERM"]),
    ("fsopen", &["EPERM"]),
    ("perf_event_open", &["EACCES", "EMFILE"]),
];

/// Calls that take away what was made. Where they fail it is left; the next recorder then takes it.
const REMOVING: &[&str] = &["unlink", "unlinkat", "rmdir"];

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
    /// A recorder of kernel events.
    FullRecorder,
    Producer,
}

impl Who {
    fn is_recorder(self) -> bool {
        self != Who::Producer
    }

    fn tier(self) -> &'static str {
        if self == Who::FullRecorder { "full" } else { "stamps" }
    }
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
        Who::Recorder | Who::FullRecorder => BTreeMap::new(),
        Who::Producer => calls(&run(who, None, false).trace),
    };
    let table = match who {
        Who::Recorder => RECORDER,
        Who::FullRecorder => FULL,
        Who::Producer => PRODUCER,
    };
    let mut faults = of_table(table, &first, &calls(&run(who, None, true).trace), most);
    if who == Who::Recorder {
        // None is the zeroth: this one only counts.
        let counting = Fault { call: "read", errno: SHORT, nth: 0 };
        faults.extend(of_table(PRELOADED, &first, &calls(&run(who, Some(&counting), true).trace), most));
    }
    faults
}

fn of_table(
    table: &[(&'static str, &'static [&'static str])],
    first: &BTreeMap<String, usize>,
    last: &BTreeMap<String, usize>,
    most: usize,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (call, errors) in table {
        let of = |calls: &BTreeMap<String, usize>| calls.get(*call).copied().unwrap_or(0);
        let (first, last) = (of(first), of(last));
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

/// As the table of exit codes has it; the program itself ends with 0.
fn expected_code(run: &Run, said: &str) -> Option<i32> {
    match &run.recorded {
        // Then the loader failed: taut had not begun.
        None if said.contains("error while loading shared libraries") => Some(127),
        // The child could not be started, or not be let go.
        None if said.contains("does not start") => Some(126),
        None if said.is_empty() => None,
        None => Some(125),
        // The error passed, so that an ending could be written; or what was written has not its name.
        Some(Ok(_)) if said.contains("the recording ends there") || said.contains("the recording is in ") => Some(6),
        Some(Ok(Recorded { contents, .. })) => match &contents.ending {
            None => Some(6),
            Some(ending) => {
                let lost = [
                    ending.lost_stamps,
                    ending.lost_kernel_events,
                    ending.lost_telemetry,
                    ending.lost_samples,
                    ending.lost_ros_events,
                ];
                Some(if lost.iter().sum::<u64>() > 0 { 5 } else { 0 })
            }
        },
        Some(Err(_)) => None,
    }
}

/// What a file holds.
struct Recorded {
    contents: Contents,
    stamps: u64,
    /// Stamps that were counted as lost.
    lost: u64,
    /// Whether more were lost than could be counted: those of a ring that could not be read.
    has_uncounted: bool,
}

impl Recorded {
    fn of(bytes: &[u8]) -> Result<Recorded, taut_recording::Error> {
        let (mut stamps, mut lost, mut has_uncounted) = (0, 0, false);
        let contents = taut_recording::read(bytes, &mut |record| match record {
            Record::Stamps(batch) => stamps += batch.ticks.len() as u64,
            Record::Lost(told) if told.what != LostWhat::Stamps => {}
            Record::Lost(told) if told.is_estimate => has_uncounted = true,
            Record::Lost(told) => lost += told.count,
            _ => {}
        })?;
        Ok(Recorded { contents, stamps, lost, has_uncounted })
    }
}

/// What came of a run.
struct Run {
    output: Output,
    trace: String,
    stamped: u64,
    is_over: bool,
    unannounced: u64,
    /// Of the file that was written, if one was.
    recorded: Option<Result<Recorded, taut_recording::Error>>,
    left: Vec<String>,
}

fn run(who: Who, fault: Option<&Fault>, is_stamped: bool) -> Run {
    let folder = tempfile::Builder::new().prefix("taut-fault-").tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("account"), [0; 4096]).unwrap();
    let mut traced = Command::new("strace");
    // A file for each thread (-ff): in one file a call during which another thread calls is cut into two lines.
    traced.args(["-ff", "-b", "execve", "-o"]).arg(path("trace"));
    let preloaded = fault.filter(|fault| who == Who::Recorder && fault.is_preloaded());
    if let Some(Fault { call, errno, nth }) = fault.filter(|_| preloaded.is_none()) {
        traced.arg("-e").arg(format!("trace={call}"));
        traced.arg("-e").arg(format!("inject={call}:error={errno}:when={nth}"));
    }
    let taut = cargo_bin!("taut");
    let record = ["record", "-q", "--tier", who.tier(), "-o", "run.mcap", "--"];
    let robot = built().join("robot");
    let words = ["account", "0", if who.is_recorder() { "2" } else { "0" }];
    let stamps = (STAMPS / if who.is_recorder() { 2 } else { 1 }).to_string();
    let mut command = match (who, is_stamped) {
        (Who::Recorder | Who::FullRecorder, _) => match preloaded {
            Some(Fault { call, errno, nth }) => {
                let mut command = Command::new(taut);
                let number = PRELOADED_ERRORS.iter().find(|(name, _)| name == errno).map_or(0, |(_, number)| *number);
                let wanted = format!("{call} {nth} {number} {}", path("trace").display());
                command.env("LD_PRELOAD", built().join("short.so")).env("TAUT_SHORT", wanted);
                command.args(record).arg(robot);
                command
            }
            None => {
                traced.arg(taut).args(record).arg(robot);
                traced
            }
        },
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
    // By it what is left behind is found.
    command.env(MARK, folder.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let account = std::fs::read(path("account")).unwrap();
    let word = |at: usize| u64::from_ne_bytes(account[at * 8..at * 8 + 8].try_into().unwrap());
    let trace = trace_in(folder.path());
    let recorded = std::fs::read(path("run.mcap")).ok().map(|bytes| Recorded::of(&bytes));
    let is_expected = |name: &String| ["account", "run.mcap"].contains(&name.as_str()) || name.starts_with("trace");
    let trace_pids: BTreeSet<&str> =
        trace.lines().filter_map(|line| line.split_once(' ')).map(|(pid, _)| pid).collect();
    let is_removal = fault.is_some_and(|fault| REMOVING.contains(&fault.call));
    if is_removal {
        // What could not be removed the next one takes.
        let next =
            Command::new(taut).args(record).arg("true").current_dir(folder.path()).env_remove("TAUT_SESSION").status();
        assert!(next.unwrap().success(), "the next recorder fails");
    }
    let elsewhere = left_elsewhere(&trace_pids, folder.path());
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left = names.map(|name| name.into_string().unwrap()).filter(|name| !is_expected(name));
    Run {
        left: left.chain(elsewhere).collect(),
        stamped: word(0) + word(3),
        is_over: word(1) == 1,
        unannounced: word(2),
        output,
        trace,
        recorded,
    }
}

/// The calls of every thread, each line with the thread's id before it; of a preloaded library what it wrote itself.
fn trace_in(folder: &Path) -> String {
    let mut trace = std::fs::read_to_string(folder.join("trace")).unwrap_or_default();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let Some(thread) = name.strip_prefix("trace.") else { continue };
        let calls = std::fs::read_to_string(entry.path()).unwrap();
        trace.extend(calls.lines().map(|call| format!("{thread} {call}\n")));
    }
    trace
}

/// In the environment of all that a run starts.
const MARK: &str = "TAUT_FAULT_RUN";
const PRELOADED_ERRORS: &[(&str, i32)] =
    &[("ENOMEM", libc::ENOMEM), ("EACCES", libc::EACCES), ("EAGAIN", libc::EAGAIN)];

impl Fault {
    fn is_preloaded(&self) -> bool {
        self.errno == SHORT || self.call == "mmap"
    }
}

/// Processes of the run, its session directories, and its tracing instances.
fn left_elsewhere(pids: &BTreeSet<&str>, folder: &Path) -> Vec<String> {
    let mark = format!("{MARK}={}", folder.display()).into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark)
    });
    let mut left: Vec<String> = processes.map(|entry| format!("process {:?}", entry.file_name())).collect();
    for place in ["/dev/shm", "/tmp", "/sys/kernel/tracing/instances", "/sys/kernel/debug/tracing/instances"] {
        let names = std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let is_ours = |name: &String| name.starts_with("taut-") && name.split('-').any(|part| pids.contains(part));
        left.extend(names.filter_map(|name| name.into_string().ok()).filter(is_ours));
    }
    left
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
    if let Some(expected) = who.is_recorder().then(|| expected_code(&run, &said)).flatten()
        && expected != code
    {
        return wrong(&format!("exit code {expected} is the right one"));
    }
    match &run.recorded {
        None if run.is_over => wrong("it ran, and there is no file"),
        None if code == 0 => wrong("all went well, and there is no file"),
        None => Ok(true),
        Some(Err(error)) => wrong(&format!("what it wrote {error}")),
        Some(Ok(Recorded { contents, stamps, lost, has_uncounted })) => {
            let Some(ending) = &contents.ending else {
                return if code == 0 { wrong("all went well, and the file is not finished") } else { Ok(true) };
            };
            let known = stamps + lost;
            let balances = match (*has_uncounted, run.stamped.checked_sub(known)) {
                (_, Some(0)) => true,
                // They are missing in the file, whose reader is told why.
                (true, Some(_)) => !ending.notes.is_empty(),
                (false, Some(missing)) => missing == run.unannounced,
                (_, None) => false,
            };
            if !balances {
                let more = if *has_uncounted { ", and more are lost" } else { "" };
                let stamped = run.stamped;
                return wrong(&format!("of {stamped} stamps {stamps} are in the file and {lost} counted{more}"));
            }
            Ok(true)
        }
    }
}
