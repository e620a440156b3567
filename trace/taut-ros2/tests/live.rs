//! Real rclpy nodes that log their own truth (`live/nodes.py`), recorded unmodified: every message of the truth is in the
//! recording, and nothing else is.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
};

use serde::Deserialize;
use taut_capture::{Depth, Options, Preload, Target};
use taut_clock::{Counter, Mapping, Ticks};
use taut_recording::{Compression, Ending, Record, RosEvent, RosObject, RosObjectKind, Tier};
use taut_skip::{Need, skip};

/// What a process logged; times are CLOCK_MONOTONIC, ns.
#[derive(Debug, Deserialize)]
struct Truth {
    pid: i32,
    /// Topic, number, before the call, after it, tid.
    published: Vec<(String, u64, u64, u64, i32)>,
    /// Topic, number, in the callback, source timestamp and sequence number (0 under the events executor), tid.
    received: Vec<(String, u64, u64, u64, u64, i32)>,
    /// In the service's callback.
    served: Vec<u64>,
    /// Number, before the call, in the future's callback.
    answered: Vec<(u64, u64, u64)>,
    /// In callbacks of timers.
    timers: Vec<u64>,
    /// Of goals: number and begin and end of its execution.
    executed: Vec<(u64, u64, u64)>,
    /// Number, in the callback.
    feedback: Vec<(u64, u64)>,
    results: Vec<(u64, u64)>,
    /// In the callback of the guard condition.
    guarded: Vec<u64>,
    /// Numbers of the messages that sets of a filter have.
    #[serde(default)]
    sets: Vec<usize>,
}

/// An event, and when and where it was.
#[derive(Clone, Copy, Debug)]
struct Event {
    at_ns: u64,
    tid: i32,
    event: RosEvent,
    handle: u64,
    args: [u64; 3],
}

#[derive(Default)]
struct Recorded {
    /// By pid, in time order.
    events: BTreeMap<i32, Vec<Event>>,
    objects: Vec<RosObject>,
    ending: Ending,
}

/// Error of a calibration and of the interpolation between two.
const CLOCK_NS: u64 = 20_000;

/// One at a time: two launches on this machine would hear of each other.
static ONE: Mutex<()> = Mutex::new(());

/// A virtual environment with the wheels of ROS 2: the one that TAUT_TEST_ROS2 names, or the checkout's.
fn ros(arguments: &[&str]) -> Option<PathBuf> {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv-ros2");
    let path = std::env::var_os("TAUT_TEST_ROS2").map_or_else(own, PathBuf::from);
    let is_there = path.join("lib/librcl.so").exists() && path.join("bin/python").exists();
    // The wheels are for this Python alone.
    let has_actions = path.join("lib/python3.11/site-packages/test_msgs").exists();
    (is_there && (has_actions || !arguments.contains(&"--goals"))).then(|| fs::canonicalize(path).unwrap())
}

/// Runs the nodes of a script and records them; the truth and the recording.
fn run(ros: &Path, script: &str, arguments: &[&str]) -> (Vec<Truth>, Recorded) {
    // An ordinary end may deadlock in Fast DDS (eProsima/Fast-DDS #6193), which is no fault of a recording.
    let found = (0..5).find_map(|_| run_to_its_end(ros, script, arguments));
    found.unwrap_or_else(|| panic!("in each of 5 runs of {arguments:?} a process wrote its truth and did not end"))
}

/// Nothing if a process wrote its truth and did not end then, of those that end as an interpreter does.
fn run_to_its_end(ros: &Path, script: &str, arguments: &[&str]) -> Option<(Vec<Truth>, Recorded)> {
    // As nodes.py has it.
    const HANGS: i32 = 75;
    let folder = tempfile::tempdir().unwrap();
    let (truth, output) = (folder.path().join("truth"), folder.path().join("run.mcap"));
    let text = |path: &Path| path.display().to_string();
    let nodes = format!("{}/tests/live/{script}", env!("CARGO_MANIFEST_DIR"));
    let variables = [
        format!("AMENT_PREFIX_PATH={}", ros.display()),
        format!("LD_LIBRARY_PATH={}/lib", ros.display()),
        // Not the domain of another test: 1 to 50 are those of cli/taut/tests/ros2_live.rs, 77 is that of its hosts.
        format!("ROS_DOMAIN_ID={}", 51 + std::process::id() % 26),
        "ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST".into(),
    ];
    let python = text(&ros.join("bin/python"));
    let mut words = vec!["env".to_owned()];
    words.extend(variables);
    words.extend([python, nodes, text(&truth)]);
    words.extend(arguments.iter().map(|word| (*word).to_owned()));
    let options = Options {
        output: output.clone(),
        target: Target::Command(words.iter().map(OsString::from).collect()),
        duration: None,
        tier: Some(Tier::Stamps),
        kernel_source: None,
        depth: Depth::Sched,
        profile: None,
        ring_records: None,
        durable: false,
        compression: Compression::default(),
        session: None,
        preload: Some(Preload { file_name: taut_ros2::FILE_NAME, bytes: taut_ros2::PRELOAD }),
        taut_version: "test".into(),
        host_name: None,
        flight: None,
        from_first_stamp: None,
    };
    let recorded = taut_capture::record(&options, &mut |_| {}, &mut |_| {}).unwrap();
    if recorded.exit_code == Some(HANGS) && arguments.contains(&"--ordinary-end") {
        return None;
    }
    assert_eq!((recorded.exit_code, recorded.warnings), (Some(0), vec![]));
    let files = fs::read_dir(&truth).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|e| e == "json"));
    let truth = files.map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect();
    Some((truth, read(&output)))
}

fn read(path: &Path) -> Recorded {
    let (mut batches, mut pairs, mut recorded) = (Vec::new(), Vec::new(), Recorded::default());
    let contents = taut_recording::read(&fs::read(path).unwrap(), &mut |record| match record {
        Record::Ros(batch) => batches.push(batch),
        Record::Clock(_, pair) => pairs.push(pair),
        Record::RosObject(object) => recorded.objects.push(object),
        _ => {}
    });
    recorded.ending = contents.unwrap().ending.unwrap();
    let mapping = Mapping::new(pairs);
    for batch in batches {
        for at in 0..batch.ticks.len() {
            let at_ns = match (batch.counter, &mapping) {
                (counter, Some(mapping)) if counter != Counter::Monotonic as u8 => {
                    mapping.to_monotonic(Ticks(batch.ticks[at])).0
                }
                _ => batch.ticks[at],
            };
            recorded.events.entry(batch.pid).or_default().push(Event {
                at_ns,
                tid: batch.tid,
                event: RosEvent::from_number(batch.event[at]).unwrap(),
                handle: batch.handle[at],
                args: [batch.arg0[at], batch.arg1[at], batch.arg2[at]],
            });
        }
    }
    recorded.events.values_mut().for_each(|events| events.sort_by_key(|event| event.at_ns));
    recorded
}

impl Recorded {
    /// The middleware's handles of what has this name, by their kind.
    fn middleware(&self, pid: i32, kind: RosObjectKind, name: &str) -> Vec<u64> {
        let objects = self.objects.iter().filter(|o| o.pid == pid && o.kind == kind && o.name == name);
        objects.map(|object| object.other).collect()
    }

    fn events(&self, pid: i32, event: RosEvent, handles: &[u64]) -> Vec<Event> {
        let events = self.events.get(&pid).into_iter().flatten();
        events.filter(|e| e.event == event && handles.contains(&e.handle)).copied().collect()
    }

    /// Begin and end of each run of callbacks whose name ends so; of a coroutine those of its last step.
    fn callbacks(&self, pid: i32, name: &str) -> Vec<(Event, Event)> {
        self.runs(pid, name, |object| object.kind == RosObjectKind::CallbackSymbol)
    }

    /// The same of callbacks that no handle of rcl leads to, such as those of actions.
    fn of_nodes(&self, pid: i32, name: &str) -> Vec<(Event, Event)> {
        self.runs(pid, name, |object| object.kind == RosObjectKind::NodeCallback)
    }

    fn runs(&self, pid: i32, name: &str, is_of: impl Fn(&RosObject) -> bool) -> Vec<(Event, Event)> {
        const IS_SUSPENDED: u64 = 1;
        let is_it = |o: &&RosObject| o.pid == pid && is_of(o) && o.name.ends_with(name);
        let mut handles: Vec<u64> = self.objects.iter().filter(is_it).map(|object| object.handle).collect();
        handles.dedup();
        let ends = self.events(pid, RosEvent::CallbackEnd, &handles);
        let begins = self.events(pid, RosEvent::CallbackStart, &handles);
        assert_eq!(begins.len(), ends.len(), "{name} of {pid}: each begin has its end");
        let end_of =
            |begin: &Event| ends.iter().find(|end| end.tid == begin.tid && end.at_ns >= begin.at_ns).copied().unwrap();
        let runs = begins.iter().map(|begin| (*begin, end_of(begin)));
        runs.filter(|(_, end)| end.args[0] != IS_SUSPENDED).collect()
    }
}

fn within(what: &str, from_ns: u64, at_ns: u64, to_ns: u64) {
    assert!(from_ns <= at_ns + CLOCK_NS && at_ns <= to_ns + CLOCK_NS, "{what}: {from_ns} ≤ {at_ns} ≤ {to_ns}");
}

fn quantile(sorted: &[i64], q: f64) -> i64 {
    sorted.get(((sorted.len() as f64 - 1.0) * q).round() as usize).copied().unwrap_or(0)
}

/// Holds a recording against the truth, and says how many messages, callbacks and calls that were.
fn compare(title: &str, truth: &[Truth], recorded: &Recorded) {
    const TOPICS: [(&str, &str); 2] = [("/image_raw", ".on_image"), ("/detections", ".on_detections")];
    assert_eq!(recorded.ending.lost_ros_events, 0);
    // By topic and source timestamp: which message that was.
    let mut sent: HashMap<(&str, u64), (u64, u64)> = HashMap::new();
    let (mut publications, mut takes, mut callbacks) = (0, 0, 0);
    let mut errors = Vec::new();
    for process in truth {
        for (topic, _) in TOPICS {
            let mut said: Vec<_> = process.published.iter().filter(|p| p.0 == topic).collect();
            said.sort_by_key(|p| p.2);
            let handles = recorded.middleware(process.pid, RosObjectKind::Publisher, topic);
            let seen = recorded.events(process.pid, RosEvent::RmwPublish, &handles);
            assert_eq!(seen.len(), said.len(), "{title}: publications of {topic} by {}", process.pid);
            for ((_, number, before, after, tid), event) in said.into_iter().zip(seen) {
                within("a publication", *before, event.at_ns, *after);
                assert_eq!(*tid, event.tid);
                let twin = sent.insert((topic, event.args[1]), (*number, *before));
                assert!(twin.is_none(), "two messages of {topic} have one source timestamp");
                publications += 1;
            }
        }
    }
    for process in truth {
        for (topic, callback) in TOPICS {
            let mut said: Vec<_> = process.received.iter().filter(|r| r.0 == topic).collect();
            said.sort_by_key(|r| r.2);
            let handles = recorded.middleware(process.pid, RosObjectKind::Subscription, topic);
            let taken: Vec<u64> = recorded
                .events(process.pid, RosEvent::Take, &handles)
                .iter()
                .filter(|e| e.args[2] == 1)
                .map(|e| e.args[1])
                .collect();
            let infos = recorded.events(process.pid, RosEvent::TakeInfo, &handles);
            assert_eq!(
                (taken.len(), infos.len()),
                (said.len(), said.len()),
                "{title}: takes of {topic} by {}",
                process.pid
            );
            let runs = recorded.callbacks(process.pid, callback);
            assert_eq!(runs.len(), said.len(), "{title}: runs of {callback} in {}", process.pid);
            let takes_and_infos = taken.iter().zip(&infos);
            for (((_, number, at, stamp, sequence, tid), (begin, end)), (taken, info)) in
                said.into_iter().zip(runs).zip(takes_and_infos)
            {
                if *stamp != 0 {
                    assert_eq!((*taken, info.args[1]), (*stamp, *sequence), "{title}: a take of {topic}");
                }
                let (sent_number, before) = sent[&(topic, *taken)];
                assert_eq!(sent_number, *number, "{title}: the message of {topic} that was sent at {taken}");
                within("a callback", begin.at_ns, *at, end.at_ns);
                assert_eq!(*tid, begin.tid);
                errors.push((begin.at_ns as i64 - before as i64) - (*at as i64 - before as i64));
                callbacks += 1;
            }
            takes += taken.len();
        }
        let timers =
            recorded.callbacks(process.pid, ".on_timer").len() + recorded.callbacks(process.pid, ".on_ready").len();
        assert_eq!(timers, process.timers.len(), "{title}: callbacks of timers in {}", process.pid);
        let services = recorded.middleware(process.pid, RosObjectKind::Service, "/plan");
        let requests = recorded.events(process.pid, RosEvent::TakeRequest, &services);
        let requests = requests.iter().filter(|e| e.args[2] == 1).count();
        assert_eq!(
            (requests, recorded.callbacks(process.pid, ".on_plan").len()),
            (process.served.len(), process.served.len())
        );
        assert_eq!(recorded.events(process.pid, RosEvent::SendResponse, &services).len(), process.served.len());
        let clients = recorded.middleware(process.pid, RosObjectKind::Client, "/plan");
        let answers = recorded.events(process.pid, RosEvent::TakeResponse, &clients);
        assert_eq!(answers.iter().filter(|e| e.args[2] == 1).count(), process.answered.len());
        compare_actions(title, process, recorded);
        for (_, sent_ns, answered_ns) in &process.answered {
            let all = recorded.events(process.pid, RosEvent::SendRequest, &clients);
            assert!(all.iter().any(|e| e.at_ns + CLOCK_NS >= *sent_ns && e.at_ns <= *answered_ns));
        }
    }
    errors.sort_unstable();
    eprintln!(
        "{title}: {publications} publications, {takes} takes, {callbacks} callbacks, {} services, {} timers; begin of a callback less the \
         truth's: p50 {} ns, p99 {} ns, {} ROS 2 events in the recording, 0 lost",
        truth.iter().map(|t| t.served.len()).sum::<usize>(),
        truth.iter().map(|t| t.timers.len()).sum::<usize>(),
        quantile(&errors, 0.5),
        quantile(&errors, 0.99),
        recorded.ending.ros_events,
    );
}

/// Each callback of an action, of a guard condition and of an answer begins before the truth says and ends after it.
fn compare_actions(title: &str, process: &Truth, recorded: &Recorded) {
    let executed: Vec<u64> = process.executed.iter().map(|(_, begin, _)| *begin).collect();
    let [feedback, results] = [&process.feedback, &process.results].map(|all| all.iter().map(|(_, at)| *at).collect());
    let answered = process.answered.iter().map(|(.., at)| *at).collect();
    let said: [(&str, Vec<u64>); 5] = [
        ("action /turn execute", executed),
        ("action /turn feedback", feedback),
        ("action /turn result", results),
        ("client /plan answer", answered),
        ("GuardCondition", process.guarded.clone()),
    ];
    for (name, mut said) in said {
        said.sort_unstable();
        let runs = recorded.of_nodes(process.pid, name);
        assert_eq!(runs.len(), said.len(), "{title}: runs of {name} in {}", process.pid);
        for (at, (begin, end)) in said.into_iter().zip(runs) {
            within(name, begin.at_ns, at, end.at_ns);
        }
    }
}

fn holds(title: &str, arguments: &[&str]) -> Option<(Vec<Truth>, Recorded)> {
    let Some(ros) = ros(arguments) else {
        skip(Need::Ros2, "no wheels of ROS 2: make ros2, or name a virtual environment with TAUT_TEST_ROS2");
        return None;
    };
    let _alone = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (truth, recorded) = run(&ros, "nodes.py", arguments);
    assert!(!truth.is_empty());
    compare(title, &truth, &recorded);
    Some((truth, recorded))
}

#[test]
fn three_nodes_in_three_processes_with_a_service() {
    // A subscriber that does not run for a while has all messages.
    let arguments = ["--count", "200", "--calls", "--depth", "1000"];
    let Some((truth, _)) = holds("three processes", &arguments) else { return };
    assert_eq!(truth.iter().map(|t| t.guarded.len()).sum::<usize>(), 20);
    assert_eq!((truth.len(), truth.iter().map(|t| t.published.len()).sum::<usize>()), (3, 400));
    assert_eq!(truth.iter().map(|t| t.answered.len()).sum::<usize>(), 20);
}

#[test]
fn three_nodes_in_one_process_under_the_multi_threaded_executor() {
    let arguments = ["--processes", "camera,detector,planner", "--executor", "multi", "--count", "200"];
    let arguments = [&arguments[..], &["--bytes", "10000", "--depth", "1000"]].concat();
    let Some((truth, _)) = holds("one process, several threads", &arguments) else { return };
    assert_eq!(truth[0].received.len(), 400);
}

/// The other tests' nodes leave out what comes after their truth is written, and shared memory.
#[test]
fn nodes_that_end_as_usual_are_recorded_until_their_end() {
    let arguments = ["--count", "100", "--calls", "--depth", "1000", "--ordinary-end"];
    let Some((truth, _)) = holds("an ordinary end", &arguments) else { return };
    assert_eq!((truth.len(), truth.iter().map(|t| t.published.len()).sum::<usize>()), (3, 200));
}

#[test]
fn three_nodes_under_the_events_executor() {
    let Some((truth, _)) = holds("the events executor", &["--executor", "events", "--count", "200", "--calls"]) else {
        return;
    };
    assert!(truth.iter().any(|t| !t.answered.is_empty()));
}

/// A coroutine is suspended while its executor does other things: each step has a begin and an end, and so has the task that it
/// awaits. (rclpy's multi-threaded executor finishes some five a second.)
#[test]
fn coroutines_are_recorded_by_their_steps() {
    for (executor, count) in [("single", "50"), ("events", "50"), ("multi", "20")] {
        let title = format!("coroutines, {executor}");
        let Some((truth, recorded)) = holds(&title, &["--executor", executor, "--count", count, "--coroutines"]) else {
            return;
        };
        let received: usize = truth.iter().map(|process| process.received.len()).sum();
        let all = recorded.events.values().flatten();
        let suspended = all.filter(|e| e.event == RosEvent::CallbackEnd && e.args[0] == 1).count();
        assert!(received > 0 && suspended >= received, "{title}: {suspended} steps of {received} coroutines");
        for process in &truth {
            let tasks = recorded.of_nodes(process.pid, "<lambda>");
            assert_eq!(tasks.len(), process.received.len(), "{title}: tasks in {}", process.pid);
        }
    }
}

#[test]
fn goals_with_feedback_and_results() {
    for executor in ["single", "events"] {
        let title = format!("goals, {executor}");
        let arguments = ["--executor", executor, "--count", "100", "--goals"];
        let Some((truth, _)) = holds(&title, &arguments) else { return };
        let count = |of: fn(&Truth) -> usize| truth.iter().map(of).sum::<usize>();
        // The wheels' client drops the callback for feedback that comes after the result.
        assert!(count(|t| t.executed.len()) > 0 && count(|t| t.results.len()) > 0, "{title}");
    }
}

/// What a queue of depth 1 overwrites is published, never taken, and shows as a gap in the sequence numbers.
#[test]
fn messages_that_a_slow_subscriber_loses_are_not_taken() {
    let arguments = ["--best-effort", "--depth", "1", "--planner-takes", "0.025", "--count", "200"];
    let Some((truth, recorded)) = holds("a slow subscriber of depth 1", &arguments) else { return };
    let published = truth.iter().flat_map(|t| &t.published).filter(|p| p.0 == "/detections").count();
    let planner = truth.iter().find(|t| t.received.iter().any(|r| r.0 == "/detections")).unwrap();
    let handles = recorded.middleware(planner.pid, RosObjectKind::Subscription, "/detections");
    let numbers: Vec<u64> =
        recorded.events(planner.pid, RosEvent::TakeInfo, &handles).iter().map(|e| e.args[1]).collect();
    let gaps: u64 = numbers.windows(2).map(|pair| pair[1] - pair[0] - 1).sum();
    let ends = published as u64 - (numbers[numbers.len() - 1] - numbers[0] + 1);
    assert!(
        gaps > 20 && numbers.len() as u64 + gaps + ends == published as u64,
        "{} taken, {gaps} in gaps of {published}",
        numbers.len()
    );
    eprintln!("a slow subscriber of depth 1: {published} published, {} taken, {gaps} overwritten", numbers.len());
}

/// A set is complete in a callback, and says of which runs of callbacks its messages are, each two ticks older than that run.
#[test]
fn which_messages_a_set_of_a_filter_has() {
    const FILTERED: u64 = 16;
    let Some(ros) = ros(&[]) else {
        skip(Need::Ros2, "no wheels of ROS 2: make ros2, or name a virtual environment with TAUT_TEST_ROS2");
        return;
    };
    let _alone = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (truth, recorded) = run(&ros, "filters.py", &[]);
    let Truth { pid, sets, .. } = &truth[0];
    let events = &recorded.events[pid];
    let of = |event: RosEvent| events.iter().filter(move |e| e.event == event);
    let mut runs: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for begin in of(RosEvent::CallbackStart).filter(|e| e.args[0] == FILTERED) {
        runs.entry(begin.handle).or_default().push(begin.args[1]);
    }
    let joined: Vec<(u64, u64)> = of(RosEvent::Joined).map(|e| (e.handle, e.args[0])).collect();
    assert_eq!((sets.len(), runs.len(), joined.len()), (50, 2, 100));
    for (number, set) in sets.iter().zip(joined.chunks(2)) {
        let said: Vec<(u64, u64)> = runs.iter().map(|(handle, runs)| (*handle, runs[*number])).collect();
        assert_eq!(set, said, "set {number}");
    }
}
