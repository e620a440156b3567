//! One system call of a producer fails, or does less than it was asked to: the n-th of its name, with each error that it may
//! have, in C, C++, Rust and Python. The program goes on, each stamp and each value is in its ring or counted, and
//! nothing is left in the session. strace puts the error in the place of the call. A few of each name here; all by
//! `bench/faults/run`, which makes a table of bench/faults/results.md.

#[path = "conformance/build.rs"]
#[allow(dead_code, reason = "it builds the stamping producers too")]
mod build;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use taut_capture::{rings, telemetry};
use taut_clock::{ClockPair, Counter, Ticks};
use taut_recording::{Info, Record, Writer};
use taut_skip::{Need, skip};

/// A call; what may be wrong with it: an error, or `=N`, which it answers without having done anything: a short read; and a
/// call that fails each time, with its error, so that the one in front is made at all.
type Faults = (&'static str, &'static [&'static str], Option<(&'static str, &'static str)>);

const CALLS: &[Faults] = &[
    ("openat", &["EACCES", "EMFILE", "ENFILE", "ENOSPC", "EINTR", "EIO", "ESTALE", "EEXIST", "EROFS"], None),
    ("read", &["EIO", "EINTR", "EAGAIN", "=0", "=1"], None),
    ("fstat", &["EIO", "EACCES", "ESTALE"], None),
    ("newfstatat", &["EACCES", "EIO", "ESTALE", "ENOENT"], None),
    ("statx", &["EACCES", "EIO", "ESTALE", "ENOENT"], None),
    ("access", &["EACCES", "EIO"], None),
    ("faccessat", &["EACCES", "EIO"], None),
    ("prlimit64", &["EPERM", "EFAULT"], None),
    ("ftruncate", &["ENOSPC", "EIO", "EINTR", "EFBIG"], None),
    ("fallocate", &["ENOSPC", "EINTR", "EIO", "EOPNOTSUPP", "ENOSYS"], None),
    ("mmap", &["ENOMEM", "EAGAIN", "ENODEV"], None),
    ("madvise", &["EINVAL", "ENOMEM", "EIO"], None),
    ("renameat2", &["EACCES", "ENOSPC", "EINVAL", "ENOSYS", "EEXIST", "EIO"], None),
    ("link", &["EPERM", "EEXIST", "EMLINK", "ENOSPC"], Some(("renameat2", "ENOSYS"))),
    ("unlink", &["EACCES", "EIO"], Some(("renameat2", "ENOSYS"))),
    ("unlink", &["EACCES", "EIO"], Some(("ftruncate", "ENOSPC"))),
    ("munmap", &["ENOMEM"], Some(("renameat2", "EACCES"))),
    ("close", &["EIO", "EINTR"], None),
    ("flock", &["ENOLCK", "EINTR", "EAGAIN"], None),
    ("rt_sigprocmask", &["EFAULT"], None),
];

/// A call that goes wrong.
struct Fault {
    call: &'static str,
    how: &'static str,
    nth: usize,
    beside: Option<(&'static str, &'static str)>,
}

/// The program and what stands in front of its argument.
struct Producer {
    name: &'static str,
    command: Vec<PathBuf>,
}

fn native() -> Vec<Producer> {
    let compiled = |name: &'static str, compiler: &[&str]| {
        let program = build::scratch("fault").join(name);
        build::compile(compiler, &[&build::source("fault.c"), "-o", program.to_str().unwrap()]);
        Producer { name, command: vec![program] }
    };
    vec![
        compiled("C", &["gcc", "-std=c11", "-O2"]),
        compiled("C++", &["g++", "-std=c++17", "-O2", "-fno-exceptions", "-x", "c++"]),
        Producer { name: "Rust", command: vec![env!("CARGO_BIN_EXE_taut-conformance-fault").into()] },
    ]
}

/// That of the wheel in `.venv`.
fn python() -> Option<Producer> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../.venv/bin/python");
    let has_it = Command::new(&python).args(["-c", "import taut"]).stderr(Stdio::null()).status();
    has_it
        .is_ok_and(|status| status.success())
        .then(|| Producer { name: "Python", command: vec![python, here.join("python/fault.py")] })
}

/// Whether this machine can do it; the test returns where it cannot.
fn can_trace() -> bool {
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let can = traced.is_ok_and(|status| status.success());
    if !can {
        skip(Need::Strace, "strace is missing or may not trace");
    }
    can
}

#[test]
fn a_system_call_of_a_native_producer_may_fail() {
    if can_trace() {
        native().iter().for_each(|producer| fail_calls(producer, 1));
    }
}

#[test]
fn a_system_call_of_a_python_producer_may_fail() {
    if !can_trace() {
        return;
    }
    match python() {
        Some(producer) => fail_calls(&producer, 1),
        None => skip(Need::Wheel, "no wheel of taut in .venv (make setup)"),
    }
}

#[test]
#[ignore = "minutes; bench/faults/run runs it"]
fn every_system_call_of_a_producer_fails() {
    let most = std::env::var("TAUT_FAULTS_MOST").map_or(usize::MAX, |text| text.parse().unwrap());
    assert!(can_trace());
    let python = python().expect("the wheel in .venv: make setup");
    native().iter().chain([&python]).for_each(|producer| fail_calls(producer, most));
}

/// Lets calls fail, `most` of each name, evenly.
fn fail_calls(producer: &Producer, most: usize) {
    let (mut wrong, mut happened) = (Vec::new(), 0);
    for (call, errors, beside) in CALLS {
        let whole = run(producer, None, *beside);
        if beside.is_none() {
            let sound = check(&whole, None);
            assert!(sound.is_ok(), "{}, without a fault: {}", producer.name, sound.unwrap_err());
        }
        let window = window(&whole.trace, call);
        let (count, step) = (window.len(), window.len().div_ceil(most).max(1));
        let (mut failed, mut not_reached) = (0, 0);
        for nth in window.step_by(step) {
            for how in *errors {
                let fault = Fault { call, how, nth, beside: *beside };
                let run = run(producer, Some(&fault), *beside);
                match run.trace.contains(&format!("{call}(")) && run.trace.contains("(INJECTED)") {
                    true => failed += 1,
                    false => not_reached += 1,
                }
                if let Err(what) = check(&run, Some(&fault)) {
                    wrong.push(format!("{} {call} {nth} {how} {beside:?}: {what}", producer.name));
                }
            }
        }
        happened += failed;
        if count > 0 {
            let beside = beside.map_or(String::new(), |(call, error)| format!(" after {call} {error}"));
            println!("| {} | {call}{beside} | {count} | {failed} | {not_reached} |", producer.name);
        }
    }
    assert!(wrong.is_empty(), "{} faults\n{}", wrong.len(), wrong.join("\n"));
    assert!(happened > 0, "no call failed");
}

/// Which of a thread's calls of this name are the producer's: by their number, from 1. In the first thread those between the marks;
/// a call that it does not make before them may be any thread's.
fn window(trace: &str, call: &str) -> std::ops::Range<usize> {
    let (mut threads, mut marks, mut before, mut until) = (BTreeMap::<&str, usize>::new(), 0, 0, 0);
    let first = trace.split_whitespace().next().unwrap_or_default();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((name, _)) = rest.trim_start().split_once('(') else { continue };
        let is_mark = thread == first && name == "getppid";
        marks += usize::from(is_mark);
        let count = threads.entry(thread).or_default();
        *count += usize::from(name == call);
        if is_mark && marks == 1 {
            before = *count;
        } else if is_mark {
            until = *count;
        }
    }
    assert_eq!(marks, 2, "{trace}");
    if before == 0 {
        // Those behind the marks are the threads' that come and go; an interpreter makes none that is in the table.
        until = until.max(threads.iter().filter(|(thread, _)| **thread != first).map(|(_, n)| *n).max().unwrap_or(0));
    }
    before + 1..until + 1
}

struct Run {
    session: tempfile::TempDir,
    output: Output,
    trace: String,
}

fn run(producer: &Producer, fault: Option<&Fault>, beside: Option<(&str, &str)>) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let session = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o"]).arg(&trace);
    if let Some((call, error)) = beside {
        strace.arg("-e").arg(format!("inject={call}:error={error}"));
    }
    if let Some(Fault { call, how, nth, beside }) = fault {
        let others = beside.map_or(String::new(), |(call, _)| format!(",{call}"));
        strace.arg("-e").arg(format!("trace={call}{others}"));
        let how = how.strip_prefix('=').map_or(format!("error={how}"), |number| format!("retval={number}"));
        strace.arg("-e").arg(format!("inject={call}:{how}:when={nth}"));
    }
    strace.args(&producer.command).arg(session.path());
    strace.env_remove("TAUT_SESSION").env("TAUT_RING_RECORDS", "4096").env("PYTHONMALLOC", "malloc");
    let output = strace.stdin(Stdio::null()).output().unwrap();
    let trace = std::fs::read_to_string(trace).unwrap_or_default();
    Run { session, output, trace }
}

/// What is wrong with what came of it.
fn check(run: &Run, fault: Option<&Fault>) -> Result<(), String> {
    let said = String::from_utf8_lossy(&run.output.stdout);
    let wrong = |what: String| {
        let injected = run.trace.lines().find(|line| line.contains("INJECTED")).unwrap_or_default();
        Err(format!(
            "{what}; {}; it said {said:?}, {}; {injected}",
            run.output.status,
            String::from_utf8_lossy(&run.output.stderr)
        ))
    };
    let numbers: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [stamped, lost, attached, values, values_lost] = numbers[..] else { return wrong("it did not end".into()) };
    if !run.output.status.success() {
        return wrong("it ended badly".into());
    }
    if attached == 0 && fault.is_none_or(|fault| fault.beside.is_none()) {
        return wrong("it did not try again".into());
    }
    // The recorder's side.
    let path = run.session.path();
    let mut session = rings::Session::open(path).unwrap();
    let mut channels = telemetry::Channels::open(path, false);
    let mut found = rings::Drained::default();
    session.discover(&mut found);
    channels.discover(&mut found.refused);
    channels.note_dead();
    let drained = session.reap();
    let recording = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::create(recording.path(), &Info::default()).unwrap();
    for at in 0..2 {
        let pair = ClockPair { ticks: Ticks(at), monotonic_ns: at, realtime_ns: 0, window_ticks: 1 };
        let counters = [Counter::Tsc, Counter::Cntvct];
        counters.into_iter().for_each(|counter| writer.write(&Record::Clock(counter, pair)).unwrap());
    }
    let telemetry = channels.drain(&mut writer);
    if !found.refused.is_empty() || !telemetry.refused.is_empty() {
        return wrong(format!("refused: {:?} {:?}", found.refused, telemetry.refused));
    }
    let recorded: u64 = drained.batches.iter().map(|batch| batch.ticks.len() as u64).sum();
    let counted: u64 = drained.lost.iter().map(|(_, n)| n).sum();
    let is_counted = counted == if attached == 1 { lost } else { 0 };
    if recorded + lost != stamped || !is_counted {
        return wrong(format!("{recorded} of {stamped} stamps are there, and {counted} counted"));
    }
    let counted: u64 = telemetry.lost.iter().chain(&drained.lost_telemetry).map(|(_, n)| n).sum();
    let is_counted = counted == if attached == 1 { values_lost } else { 0 };
    if telemetry.messages + values_lost != values || !is_counted {
        return wrong(format!("{} of {values} values are there, and {counted} counted", telemetry.messages));
    }
    let left: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    // What cannot be removed stays, under a name that no recorder reads.
    let may_stay = fault.is_some_and(|fault| fault.call == "unlink");
    if left.iter().any(|name| !may_stay || !name.to_string_lossy().ends_with(".tmp")) {
        return wrong(format!("left behind: {left:?}"));
    }
    Ok(())
}
