//! A program without stamps, recorded twice for real: every command works on its loops and wake chains, by the same names.

mod screen;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{LazyLock, Mutex},
};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use taut_skip::{Need, skip};

/// Of examples/unprepared/robot.c: a loop of 500 Hz that sends commands to another thread.
const LOOP: &str = "ctrl timer 2 ms";
const WOKEN: &str = "actuator recv udp:5005";
const CHAIN: &str = "ctrl timer 2 ms → actuator recv udp:5005";
const SECONDS: &str = "2";

struct Folder(tempfile::TempDir);

impl Folder {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn output(&self, arguments: &[&str]) -> Output {
        Command::new(cargo_bin!("taut"))
            .args(arguments)
            .current_dir(self.0.path())
            .env_remove("TAUT_SESSION")
            .output()
            .unwrap()
    }

    /// What it prints. 5: events were lost on a busy machine.
    fn taut(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 5)), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Records a command until no event was lost and these loops kept their time: beside other work a ring may overflow, and a thread
    /// that gets no CPU for a while finds its next moments in the past, and sleeps for none of them.
    fn record_whole(&self, file: &str, command: &[&str], loops: &[&str]) -> Value {
        for _ in 0..10 {
            self.taut(&[&["record", "-q", "--ignore-loss", "-o", file, "--"], command].concat());
            let report = self.json(&["report", file]);
            let ran = texts(&report["loops"], "name");
            let is_whole =
                report["recording"]["lost_kernel_events"] == 0 && loops.iter().all(|name| ran.contains(name));
            // Without kernel events there is nothing to wait for.
            if is_whole || report["recording"]["tier"] != "full" {
                return report;
            }
        }
        panic!("in each of 10 recordings of {command:?} events were lost, or {loops:?} were no loops");
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.taut(&[arguments, &["--format", "json"]].concat())).unwrap()
    }

    /// Gates two commands until it has a verdict: beside other work trials lose kernel events, or have other loops than the one that was first.
    fn gated(&self, arguments: &[&str]) -> Value {
        for _ in 0..20 {
            let output = self.output(&[arguments, &["--format", "json"]].concat());
            let said = String::from_utf8_lossy(&output.stderr);
            let is_other = ["has the chain", "has no chain"].iter().any(|text| said.contains(text));
            match output.status.code() {
                Some(4) => {}
                Some(2) if is_other => {}
                code => {
                    assert!(matches!(code, Some(0 | 5)), "{arguments:?}: {said}");
                    return serde_json::from_slice(&output.stdout).unwrap();
                }
            }
        }
        panic!("20 times {arguments:?} had no verdict");
    }

    fn build(&self, program: &str, source: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let built = Command::new("cc").args(["-O2", "-pthread", "-o"]).arg(self.path(program)).arg(source).status();
        assert!(built.unwrap().success());
    }
}

/// `a.mcap` and `b.mcap`, two runs; `None` where the kernel's events are not granted. One after the other: the robot has a port.
static RUNS: LazyLock<Option<Folder>> = LazyLock::new(|| {
    let folder = Folder(tempfile::tempdir().unwrap());
    folder.build("robot", "../../examples/unprepared/robot.c");
    let both = ["a.mcap", "b.mcap"].map(|name| folder.record_whole(name, &["./robot", SECONDS], &[LOOP, WOKEN]));
    both.iter().all(|report| report["recording"]["tier"] == "full").then_some(folder)
});

/// Held while a test runs the robot again.
static PORT: Mutex<()> = Mutex::new(());

fn runs() -> Option<&'static Folder> {
    if RUNS.is_none() {
        skip(Need::Perf, "not the full tier");
    }
    RUNS.as_ref()
}

fn texts<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().filter_map(|one| one[key].as_str()).collect()
}

fn with_name<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {list}"))
}

#[test]
fn two_runs_have_the_same_loops_and_chains() {
    let Some(folder) = runs() else { return };
    for name in ["a.mcap", "b.mcap"] {
        let report = folder.json(&["report", name]);
        let loops = texts(&report["loops"], "name");
        assert!(loops.contains(&LOOP) && loops.contains(&WOKEN), "{loops:?}");
        let found = with_name(&report["loops"], LOOP);
        assert_eq!((&found["evidence"], &found["period_ns"]), (&"absolute_timer".into(), &2_000_000.into()));
        let chain = with_name(&report["chains"], CHAIN);
        assert!(chain["source"] == "wakes" && chain["messages"].as_u64() > Some(500), "{chain}");
    }
}

#[test]
fn each_means_to_wake_a_thread_leads_back_to_the_one_that_used_it() {
    if runs().is_none() {
        return;
    }
    let folder = Folder(tempfile::tempdir().unwrap());
    folder.build("means", "tests/wakes/means.c");
    // A kernel thread hands over what both write to ptys.
    for means in ["pipe", "pty", "eventfd", "signal", "futex", "condition", "io_uring"] {
        let leads_back = || {
            let report = folder.record_whole(
                "run.mcap",
                &["./means", means, "200"],
                &["ctrl-1 timer 4 ms", "ctrl-2 timer 4 ms"],
            );
            let mut chains: Vec<&str> =
                texts(&report["chains"], "name").into_iter().filter(|name| name.contains('→')).collect();
            chains.sort_unstable();
            let own = [1, 2].map(|pair| format!("ctrl-{pair} timer 4 ms → bridge-{pair} "));
            let is_own = chains.len() == own.len() && chains.iter().zip(&own).all(|(name, own)| name.starts_with(own));
            assert!(is_own, "{means}: {chains:?} of {}", report["loops"]);
            let woken = chains.iter().map(|chain| with_name(&report["loops"], chain.split(" → ").last().unwrap()));
            // Each release wakes it, not each second one.
            let rare = woken.filter(|woken| woken["period_ns"].as_u64() >= Some(6_000_000));
            rare.map(ToString::to_string).collect::<Vec<String>>()
        };
        // A machine that has no CPU for the kernel thread for long lets it hand over what was written many times in one go.
        let mut tried = (0..10).map(|_| leads_back());
        assert!(tried.any(|rare| rare.is_empty()), "{means}: each time one was woken less often than by each release");
    }
}

#[test]
fn explain_divides_every_activation_and_passage_by_cause() {
    let Some(folder) = runs() else { return };
    let explained = folder.json(&["explain", "a.mcap", "--all"]);
    for name in [LOOP, WOKEN, CHAIN] {
        let all = with_name(&explained["chains"], name)["all"].as_array().unwrap();
        assert!(all.len() > 500, "{name}: {}", all.len());
        for message in all {
            let causes = message["causes"].as_array().unwrap();
            let sum: u64 = causes.iter().map(|piece| piece["time_ns"].as_u64().unwrap()).sum();
            assert_eq!(message["total_ns"], sum, "{message}");
        }
    }
}

#[test]
fn a_global_mutex_is_called_by_its_variable() {
    let Some(folder) = runs() else { return };
    let explained = folder.json(&["explain", "a.mcap", "--all"]);
    let all = with_name(&explained["chains"], LOOP)["all"].as_array().unwrap();
    let locks = all.iter().flat_map(|message| message["causes"].as_array().unwrap()).filter(|of| of["cause"] == "lock");
    let names: BTreeSet<&str> = locks.map(|of| of["detail"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["state_lock"]));
}

#[test]
fn compare_holds_each_chain_against_its_own() {
    let Some(folder) = runs() else { return };
    let compared = folder.json(&["compare", "a.mcap", "b.mcap"]);
    for name in [LOOP, WOKEN, CHAIN] {
        let chain = with_name(&compared["comparison"]["chains"], name);
        let applied: Vec<Option<u64>> =
            chain["runs"].as_array().unwrap().iter().map(|run| run["applied"].as_u64()).collect();
        assert!(applied.len() == 2 && applied.iter().all(|applied| *applied > Some(500)), "{chain}");
    }
}

#[test]
fn the_gate_judges_the_loop_and_not_its_own_probe() {
    let Some(folder) = runs() else { return };
    let stored = folder.json(&["gate", "--baseline", "a.mcap", "--candidate", "b.mcap"]);
    assert_eq!(stored["chain"], LOOP);
    // A probe runs beside programs that are run in turns.
    let _port = PORT.lock().unwrap();
    let command = format!("./robot {SECONDS}");
    let live = folder.gated(&["gate", "--a", &command, "--b", &command, "--pairs", "2", "--seed", "1"]);
    assert_eq!(live["chain"], LOOP, "{live}");
}

#[test]
fn every_export_has_the_loops_and_chains() {
    let Some(folder) = runs() else { return };
    let rows = folder.taut(&["export", "csv", "a.mcap", "-o", "-"]);
    for name in [LOOP, WOKEN, CHAIN] {
        assert!(rows.lines().filter(|row| row.starts_with(&format!("{name},"))).count() > 500, "{name}");
    }
    let holds = |name: &str, bytes: &[u8]| bytes.windows(name.len()).any(|part| part == name.as_bytes());
    for (form, names) in [
        ("perfetto", vec![LOOP, WOKEN]),
        ("hlog", vec!["Tag=ctrl_timer_2_ms", "Tag=actuator_recv_udp:5005"]),
        ("foxglove", vec!["/latency/ctrl timer 2 ms"]),
    ] {
        folder.taut(&["export", form, "a.mcap", "-o", form]);
        let bytes = std::fs::read(folder.path(form)).unwrap();
        assert!(names.iter().all(|name| holds(name, &bytes)), "{form} lacks one of {names:?}");
    }
    folder.taut(&["export", "parquet", "a.mcap", "-o", "tables"]);
    for table in ["messages", "hops", "causes"] {
        assert!(holds(LOOP, &std::fs::read(folder.path(&format!("tables/{table}.parquet"))).unwrap()), "{table}");
    }
    for (form, name) in [("markdown", LOOP), ("html", LOOP)] {
        folder.taut(&["report", "a.mcap", "--format", form, "-o", form]);
        assert!(std::fs::read_to_string(folder.path(form)).unwrap().contains(name), "{form}");
    }
}

#[test]
fn a_fleet_takes_the_loops_and_chains() {
    let Some(folder) = runs() else { return };
    for (name, robot) in [("a.mcap", "arm-1"), ("b.mcap", "arm-2")] {
        let add = ["fleet", "add", name, "--into", "fleet", "--robot", robot, "--revision", "v1"];
        let said = folder.output(&add);
        let text = String::from_utf8_lossy(&said.stderr).into_owned() + &String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success() && text.contains("messages of"), "{text}");
    }
}

#[test]
fn top_shows_the_loops_of_a_running_process() {
    let Some(folder) = runs() else { return };
    let _port = PORT.lock().unwrap();
    let mut robot = Command::new(folder.path("robot")).arg("600").spawn().unwrap();
    let has_loops =
        |shown: &[u8]| ["actuatorrecvudp:5005", "ctrltimer2ms"].iter().all(|name| letters(shown).contains(name));
    let pid = robot.id().to_string();
    let shown = screen::shown(&["top", "--pid", &pid], folder.0.path(), |shown| {
        has_loops(shown) || robot.try_wait().unwrap().is_some()
    });
    robot.kill().unwrap();
    robot.wait().unwrap();
    assert!(has_loops(&shown), "{}", letters(&shown));
}

/// What is written to a terminal, without its commands and blanks: it goes over cells that stay.
fn letters(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest =
        parts.map(|part| part.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).get(1..).unwrap_or_default());
    (first + &rest.collect::<String>()).split_whitespace().collect()
}

/// An event loop with two coroutines that sleep again and again, and messages in between.
const COROUTINES: &str = "
import asyncio, random, socket, threading, time
async def again(period, work):
    while True:
        end = time.perf_counter() + work
        while time.perf_counter() < end: pass
        await asyncio.sleep(period)
async def main():
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(asyncio.DatagramProtocol, sock=here)
    both = [asyncio.create_task(again(0.010, 3e-4)), asyncio.create_task(again(0.025, 8e-4))]
    await asyncio.sleep(4)
def send():
    random.seed(1)
    while True:
        time.sleep(random.expovariate(40))
        there.send(b'x')
here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
threading.Thread(target=send, daemon=True).start()
asyncio.run(main())
";
/// An event loop with three coroutines that keep schedules of which each second or fifth moment is also another one's.
const SCHEDULES: &str = "
import asyncio
async def every(period):
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        due += period
        await asyncio.sleep(due - loop.time())
async def main():
    every_one = [asyncio.create_task(every(period)) for period in (0.010, 0.020, 0.050)]
    await asyncio.sleep(4)
asyncio.run(main())
";
/// Two threads that keep a schedule, each with one that waits for what it hands over. None has a name.
const THREADS: &str = "
import queue, threading, time
def tick(period, to):
    due = time.monotonic()
    while True:
        due += period
        time.sleep(max(0, due - time.monotonic()))
        to.put(due)
def work(of):
    while True: of.get()
for period in (0.010, 0.025):
    to = queue.SimpleQueue()
    threading.Thread(target=work, args=(to,), daemon=True).start()
    threading.Thread(target=tick, args=(period, to), daemon=True).start()
time.sleep(4)
";

#[test]
fn coroutines_of_an_event_loop_are_loops_each() {
    if runs().is_none() {
        return;
    }
    let folder = Folder(tempfile::tempdir().unwrap());
    std::fs::write(folder.path("arm.py"), COROUTINES).unwrap();
    let names = ["arm.py sleep 10 ms", "arm.py sleep 25 ms"];
    let report = folder.record_whole("run.mcap", &["python3", "arm.py"], &names);
    for (name, least) in names.into_iter().zip([200, 80]) {
        let found = with_name(&report["loops"], name);
        assert_eq!(found["evidence"], "relative_timer", "{found}");
        assert!(found["activations"].as_u64() > Some(least), "{found}");
        assert_eq!(found["activations"], found["release_latency"]["n"], "{found}");
    }
}

#[test]
fn coroutines_that_keep_schedules_are_no_sleeps() {
    if runs().is_none() {
        return;
    }
    let folder = Folder(tempfile::tempdir().unwrap());
    std::fs::write(folder.path("legs.py"), SCHEDULES).unwrap();
    let report = folder.record_whole("run.mcap", &["python3", "legs.py"], &["legs.py timer 10 ms"]);
    let found = with_name(&report["loops"], "legs.py timer 10 ms");
    assert_eq!((&found["evidence"], &found["period_ns"]), (&"absolute_timer".into(), &10_000_000.into()), "{found}");
    assert!(texts(&report["loops"], "name").iter().all(|name| !name.contains("sleep")), "{}", report["loops"]);
}

#[test]
fn threads_without_names_are_named_for_their_script_and_what_wakes_them() {
    if runs().is_none() {
        return;
    }
    let folder = Folder(tempfile::tempdir().unwrap());
    std::fs::write(folder.path("legs.py"), THREADS).unwrap();
    let ticks = ["legs.py timer 10 ms", "legs.py timer 25 ms"];
    let works = ["legs.py futex after timer 10 ms", "legs.py futex after timer 25 ms"];
    folder.record_whole("run.mcap", &["python3", "legs.py"], &[ticks, works].concat());
}

#[test]
fn the_self_tier_claims_no_latency_and_names_the_command_that_grants_more() {
    let Some(folder) = runs() else { return };
    let _port = PORT.lock().unwrap();
    let output =
        folder.output(&["record", "-q", "--ignore-loss", "--tier", "self", "-o", "self.mcap", "--", "./robot", "1"]);
    if String::from_utf8_lossy(&output.stderr).contains("the self tier is not possible here") {
        return skip(Need::Perf, "no self tier");
    }
    let report = folder.json(&["report", "self.mcap"]);
    assert_eq!(report["recording"]["tier"], "self");
    for found in report["loops"].as_array().unwrap() {
        assert_eq!((&found["evidence"], &found["release_latency"]["n"]), (&"guessed".into(), &0.into()), "{found}");
    }
    assert!(texts(&report["chains"], "name").iter().all(|name| !name.contains(" → ")), "{report}");
    assert!(folder.taut(&["report", "self.mcap"]).contains("sudo setcap"));
}

#[test]
fn the_stamps_tier_says_in_one_line_what_grants_kernel_events() {
    let Some(folder) = runs() else { return };
    let _port = PORT.lock().unwrap();
    folder.output(&["record", "-q", "--tier", "stamps", "-o", "stamps.mcap", "--", "./robot", "0.2"]);
    for command in ["report", "explain"] {
        let output = folder.output(&[command, "stamps.mcap"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && output.stdout.is_empty() && said.lines().count() == 1, "{said}");
        assert!(said.contains("sudo sysctl kernel.perf_event_paranoid=2"), "{said}");
    }
}
