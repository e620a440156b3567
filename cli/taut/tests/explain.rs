//! `taut explain` as a process, on a recording whose every delay has a known reason: a hog that takes the
//! CPU from every 25th message, and a lock that all messages take and none waits long for.

use std::path::PathBuf;

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use serde_json::Value;
use taut_clock::Counter;
use taut_recording::{
    Architecture, Ending, Info, KernelBatch, KernelEvent, Kind, Name, Record, StampBatch, Thread, Tier, Writer,
};

const MESSAGES: u64 = 2000;
const PERIOD_NS: u64 = 20_000_000;
const LOCK_ADDRESS: u64 = 0x1000;
/// Wait and wake of a private futex (include/uapi/linux/futex.h).
const WAIT: i64 = 0x80;
const WAKE: i64 = 0x81;
/// Asleep, and still able to run, as `prev_state` has them.
const SLEEPS: i64 = 1;
const RUNNABLE: i64 = 0x100;
const IN_INTERRUPT: u8 = 0x08;
const LOOP: i32 = 10;
const OWNER: i32 = 11;
const HOG: i32 = 30;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.record("run.mcap", Tier::Full);
        folder.record("stamps.mcap", Tier::Stamps);
        folder
    }

    /// Each message is read, waits 50 µs for the lock, computes, and is written 3 ms later, unless the hog ran 5 ms.
    fn record(&self, name: &str, tier: Tier) {
        let info = Info { tier, system_calls: Architecture::HERE.word().into(), ..Info::default() };
        let mut writer = Writer::create(&self.path(name), &info).unwrap();
        for (id, name) in [(1, "a.read"), (2, "a.written"), (3, "sdk_lock")] {
            writer.write(&Record::Name(Name { id, name: name.into() })).unwrap();
        }
        for (pid, tid, comm, recorded) in
            [(LOOP, LOOP, "robot", true), (LOOP, OWNER, "robot", true), (HOG, HOG, "hog", false)]
        {
            let thread = Thread { pid, tid, comm: comm.into(), recorded, ..Thread::default() };
            writer.write(&Record::Thread(thread)).unwrap();
        }
        let mut stamps = StampBatch { pid: LOOP, tid: LOOP, counter: Counter::Monotonic as u8, ..Default::default() };
        stamp(&mut stamps, 1_000, 40, 3, Kind::LockNamed, LOCK_ADDRESS);
        let mut cpus = [KernelBatch::default(), KernelBatch { cpu: 1, ..KernelBatch::default() }];
        event(&mut cpus[1], 2_000, KernelEvent::SchedSwitch, 0, [OWNER.into(), RUNNABLE, 0]);
        for id in 0..MESSAGES {
            let start = 1_000_000 + id * PERIOD_NS;
            let hogged = if id % 25 == 24 { 5_000_000 + id * 100 } else { 0 };
            let end = start + 3_000_000 + hogged;
            stamp(&mut stamps, start, id, 1, Kind::Stamp, 0);
            stamp(&mut stamps, end, id, 2, Kind::Stamp, 0);
            let one = &mut cpus[0];
            wake(one, start - 20_000, 0, IN_INTERRUPT, LOOP);
            event(one, start - 10_000, KernelEvent::SchedSwitch, 0, [LOOP.into(), RUNNABLE, 0]);
            let (wait, woken) = (start + 500_000, start + 550_000);
            let address = LOCK_ADDRESS as i64 + 8;
            event(one, wait, KernelEvent::SyscallEnter, LOOP, [libc::SYS_futex, address, WAIT]);
            event(one, wait + 1_000, KernelEvent::SchedSwitch, LOOP, [0, SLEEPS, 0]);
            event(&mut cpus[1], woken - 1_000, KernelEvent::SyscallEnter, OWNER, [libc::SYS_futex, address, WAKE]);
            wake(&mut cpus[1], woken, OWNER, 0, LOOP);
            event(&mut cpus[1], woken + 1_000, KernelEvent::SyscallExit, OWNER, [libc::SYS_futex, 0, 0]);
            let one = &mut cpus[0];
            event(one, woken + 2_000, KernelEvent::SchedSwitch, 0, [LOOP.into(), RUNNABLE, 0]);
            event(one, woken + 3_000, KernelEvent::SyscallExit, LOOP, [libc::SYS_futex, 0, 0]);
            if hogged > 0 {
                let from = start + 1_000_000;
                event(one, from, KernelEvent::SchedSwitch, LOOP, [HOG.into(), RUNNABLE, 0]);
                event(one, from + hogged, KernelEvent::SchedSwitch, HOG, [LOOP.into(), RUNNABLE, 0]);
            }
            event(one, end + 10_000, KernelEvent::SchedSwitch, LOOP, [0, SLEEPS, 0]);
        }
        writer.write(&Record::Stamps(stamps)).unwrap();
        if tier == Tier::Full {
            for batch in cpus {
                writer.write(&Record::Kernel(batch)).unwrap();
            }
        }
        let end_monotonic_ns = 2_000_000 + MESSAGES * PERIOD_NS;
        writer.finish(&Ending { end_monotonic_ns, ..Ending::default() }).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn explain(&self, arguments: &[&str]) -> assert_cmd::assert::Assert {
        let mut command = assert_cmd::Command::new(cargo_bin!("taut"));
        command.arg("explain").args(arguments).current_dir(self.0.path()).assert()
    }

    fn text(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.explain(arguments).success().get_output().stdout.clone()).unwrap()
    }

    /// The only chain of the JSON form.
    fn chain(&self, arguments: &[&str]) -> Value {
        let text = self.text(&[arguments, &["--format", "json"]].concat());
        serde_json::from_str::<Value>(&text).unwrap()["chains"][0].take()
    }

    /// One line on stderr that holds `text`, nothing on stdout, exit code 2.
    fn refuses(&self, arguments: &[&str], text: &str) {
        self.explain(arguments).code(2).stdout("").stderr(
            predicate::str::contains(text.to_owned()).and(predicate::function(|e: &str| e.lines().count() == 1)),
        );
    }
}

fn stamp(batch: &mut StampBatch, ticks: u64, id: u64, point: u32, kind: Kind, value: u64) {
    batch.ticks.push(ticks);
    batch.message_id.push(id);
    batch.point.push(point);
    batch.kind.push(kind as u8);
    batch.value.push(value);
}

fn event(batch: &mut KernelBatch, time_ns: u64, event: KernelEvent, tid: i32, args: [i64; 3]) {
    flagged(batch, time_ns, event, 0, tid, args);
}

fn wake(batch: &mut KernelBatch, time_ns: u64, waker: i32, flags: u8, woken: i32) {
    flagged(batch, time_ns, KernelEvent::SchedWaking, flags, waker, [woken.into(), 0, 0]);
}

fn flagged(batch: &mut KernelBatch, time_ns: u64, event: KernelEvent, flags: u8, tid: i32, args: [i64; 3]) {
    batch.push(time_ns, event as u8, flags, tid, args);
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_hog_contributes_and_the_lock_does_not() {
    let chain = Folder::new().chain(&["run.mcap"]);
    let cause = &chain["causes"][0];
    assert_eq!((&cause["cause"], &cause["detail"]), (&"preempted".into(), &"by hog/30".into()));
    assert!(number(&cause["tail_share"]) > 0.99, "{cause}");
    let sum: f64 = chain["causes"].as_array().unwrap().iter().map(|c| number(&c["tail_share"])).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    let hypothesis = |name: &str| {
        chain["hypotheses"]
            .as_array()
            .unwrap()
            .iter()
            .find(|v| v["hypothesis"] == name)
            .unwrap_or_else(|| panic!("{name} is not judged"))
    };
    assert_eq!(hypothesis("preempted")["result"], "contributes");
    assert_eq!(hypothesis("preempted")["messages"], 80);
    assert_eq!(hypothesis("lock:sdk_lock")["result"], "does_not_contribute");
    // From the switch to the wake: the wait itself, without the way back to the CPU.
    assert_eq!(hypothesis("lock:sdk_lock")["wait"]["p50_ns"], 49_000);
    let prediction = &chain["predictions"][0];
    assert_eq!(prediction["without"], "preempted");
    assert_eq!(prediction["p99_ns"], 3_000_000, "without the hog all messages take 3 ms");
    assert_eq!(chain["responsible"][0]["name"], "hog/30");
    assert_eq!(chain["recommendations"][0]["against"], "preempted");
}

#[test]
fn two_causes_are_removed_at_once() {
    let chain = Folder::new().chain(&["run.mcap", "--without", "preempted,lock:sdk_lock"]);
    let found = |without: &str| {
        let all = chain["predictions"].as_array().unwrap();
        all.iter().find(|found| found["without"] == without).unwrap_or_else(|| panic!("no {without}")).clone()
    };
    assert_eq!(found("preempted")["p99_ns"], 3_000_000, "the lock stays");
    let both = found("preempted and lock:sdk_lock");
    // 49 µs of waiting for it, and 2 µs of waiting to run after that.
    assert_eq!((&both["p50_ns"], &both["p99_ns"]), (&2_949_000.into(), &2_949_000.into()));
}

#[test]
fn every_budget_and_every_path_sums_to_its_message() {
    let chain = Folder::new().chain(&["run.mcap", "--all"]);
    let all = chain["all"].as_array().unwrap();
    assert_eq!(all.len() as u64, MESSAGES);
    for message in all {
        let sum: u64 =
            message["causes"].as_array().unwrap().iter().map(|piece| piece["time_ns"].as_u64().unwrap()).sum();
        assert_eq!(message["total_ns"], sum, "{message}");
    }
    let worst = chain["worst"].as_array().unwrap();
    assert_eq!(worst.len(), 10);
    for message in worst {
        let mut at = message["start_ns"].clone();
        for piece in message["path"].as_array().unwrap() {
            assert_eq!(piece["from_ns"], at);
            at = piece["to_ns"].clone();
        }
        assert_eq!(at, number(&message["start_ns"]) as u64 + message["total_ns"].as_u64().unwrap());
    }
}

#[test]
fn the_terminal_says_whose_time_it_was_and_draws_the_worst() {
    let text = Folder::new().text(&["run.mcap", "--worst", "3"]);
    let sentence = text.lines().find(|line| line.contains("over typical messages, by cause")).unwrap();
    assert!(sentence.contains("preempted 100 %"), "{sentence}");
    for part in [
        "contributes         preempted: 100 %",
        "does not contribute lock:sdk_lock: ",
        "without preempted",
        "Message 1999: ",
        "PPPPPPPP",
        "hog/30",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
    assert!(!text.contains('\x1b'), "no colours outside a terminal");
}

#[test]
fn messages_asked_for_are_drawn_and_no_others() {
    let text = Folder::new().text(&["run.mcap", "--message", "3", "--message", "24"]);
    assert_eq!(
        ["Message 3: 3.00 ms", "Message 24: 8.00 ms", "Message 1999"].map(|m| text.contains(m)),
        [true, true, false]
    );
}

#[test]
fn a_named_suspect_is_judged_first() {
    let folder = Folder::new();
    for name in ["gil", "irq", "hop:a.written", "process:hog", "thread:hog", "lock:sdk_lock"] {
        let text = folder.text(&["run.mcap", "--hypothesis", name]);
        let is_result = |line: &&str| line.contains(" contributes ") || line.contains(" does not contribute");
        let is_rule = |line: &&str| line.contains("A cause contributes if");
        let result = text.lines().filter(|line| !is_rule(line)).find(is_result).unwrap();
        assert!(result.contains(name.split(':').next_back().unwrap()), "{name}: {result}");
        assert!(text.find(result) < text.find("over typical messages, by cause"), "{name}");
    }
}

#[test]
fn every_form_names_the_hog() {
    let folder = Folder::new();
    for format in ["terminal", "json", "markdown", "html"] {
        folder.explain(&["run.mcap", "--format", format]).success().stdout(predicate::str::contains("hog/30"));
    }
    folder.explain(&["run.mcap", "--format", "html", "-o", "page.html"]).success().stdout("");
    assert!(std::fs::metadata(folder.path("page.html")).unwrap().len() < 1_500_000);
}

#[test]
fn one_chain_is_chosen_by_its_name_or_its_beginning() {
    let folder = Folder::new();
    for name in ["a.read → a.written", "a.re"] {
        folder.explain(&["run.mcap", "--chain", name]).success().stdout(predicate::str::contains("preempted"));
    }
    folder.refuses(&["run.mcap", "--chain", "b"], "no chain is called \"b\"; there are \"a.read → a.written\"");
}

#[test]
fn without_kernel_events_one_sentence_says_what_it_takes() {
    let text = Folder::new().text(&["stamps.mcap"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("is unknown: kernel events show what threads wait for"), "{text}");
    assert!(!text.contains("contributes") && text.lines().count() < 20, "{text}");
}

#[test]
fn what_cannot_be_answered_is_one_line() {
    let folder = Folder::new();
    folder.refuses(&["run.mcap", "--hypothesis", "lock:nobody"], "registered locks: sdk_lock");
    folder.refuses(&["run.mcap", "--hypothesis", "nobody"], "\"nobody\" is unknown");
    folder.refuses(&["run.mcap", "--message", "4711"], "message 4711");
    folder.refuses(&["run.mcap", "--all"], "add --format json");
    folder.refuses(&["missing.mcap"], "missing.mcap: No such file");
    folder.explain(&["--help"]).success().stdout(predicate::str::contains("Example"));
}
