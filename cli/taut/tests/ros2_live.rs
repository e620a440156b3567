//! Real rclpy nodes that log their own truth (trace/taut-ros2/tests/live/nodes.py), recorded and linked: every message of the truth
//! is one of a chain, none is invented, and lost ones are counted. Nothing here is timed.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use assert_cmd::cargo::cargo_bin;
use serde::Deserialize;
use serde_json::Value;
use taut_points::{Intake, Linked};
use taut_skip::{Need, skip};

/// What a process logged; times are CLOCK_MONOTONIC, ns.
#[derive(Debug, Deserialize)]
struct Truth {
    /// Topic, number, before the call, after it, tid.
    published: Vec<(String, u64, u64, u64, i32)>,
    /// Topic, number, in the callback, source timestamp, sequence number, tid.
    received: Vec<(String, u64, u64, u64, u64, i32)>,
    /// In the service's callback.
    served: Vec<u64>,
    /// Of goals: number and begin and end of its execution.
    executed: Vec<(u64, u64, u64)>,
    /// Number, in the callback.
    feedback: Vec<(u64, u64)>,
    results: Vec<(u64, u64)>,
}

/// One message of a chain: its passes by the point's name, and its end.
#[derive(Debug, Default)]
struct Message {
    passes: BTreeMap<String, u64>,
    end: Option<String>,
    /// The callback that its last callback's executor was busy with, if it was.
    held_by: String,
}

struct Run {
    truth: Vec<Truth>,
    messages: Vec<Message>,
    notes: Vec<String>,
    report: Value,
    folder: tempfile::TempDir,
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

/// Records the nodes with these arguments; `None` without ROS 2.
fn run(arguments: &[&str]) -> Option<Run> {
    let Some(ros) = ros(arguments) else {
        skip(Need::Ros2, "no wheels of ROS 2: make ros2, or name a virtual environment with TAUT_TEST_ROS2");
        return None;
    };
    let _alone = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let nodes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../trace/taut-ros2/tests/live/nodes.py");
    let recorded = Command::new(cargo_bin!("taut"))
        .args(["record", "--tier", "stamps", "-o"])
        .arg(path("run.mcap"))
        .arg("--")
        .arg(ros.join("bin/python"))
        .arg(nodes)
        .arg(path("truth"))
        .args(arguments)
        .env("AMENT_PREFIX_PATH", &ros)
        .env("LD_LIBRARY_PATH", ros.join("lib"))
        // Not the domain of another test: 51 to 76 are those of trace/taut-ros2/tests/live.rs.
        .env("ROS_DOMAIN_ID", (1 + std::process::id() % 50).to_string())
        .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let files = fs::read_dir(path("truth")).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|e| e == "json"));
    let linked = linked(&path("run.mcap"));
    let report = reported(&path("run.mcap"), &[]);
    Some(Run {
        truth: files.map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect(),
        messages: messages(&linked),
        notes: linked.notes,
        report,
        folder,
    })
}

fn reported(path: &Path, options: &[&str]) -> Value {
    let mut command = Command::new(cargo_bin!("taut"));
    let output = command.args(["report", "--format", "json"]).args(options).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn linked(path: &Path) -> Linked {
    let mut intake = Intake::default();
    let contents = taut_recording::read(&fs::read(path).unwrap(), &mut |record| intake.record(&record)).unwrap();
    intake.finish(&contents.info, contents.ending.map(|ending| ending.end_monotonic_ns), false).linked
}

fn messages(linked: &Linked) -> Vec<Message> {
    let mut messages: BTreeMap<u64, Message> = BTreeMap::new();
    for pass in &linked.passes {
        let message = messages.entry(pass.message).or_default();
        match pass.point.reason() {
            Some(reason) => assert_eq!(message.end.replace(linked.points.name(reason)), None, "one end"),
            None => {
                let earlier = message.passes.insert(linked.points.name(pass.point), pass.time_ns);
                assert_eq!(earlier, None, "{} is passed once", linked.points.name(pass.point));
            }
        }
    }
    for (id, message) in &mut messages {
        message.held_by =
            linked.holds.within(*id, 0, u64::MAX).last().map_or(String::new(), |(_, name)| name.to_owned());
    }
    messages.into_values().collect()
}

impl Run {
    fn reported(&self, options: &[&str]) -> Value {
        reported(&self.folder.path().join("run.mcap"), options)
    }

    fn published(&self, topic: &str) -> Vec<(u64, u64, u64)> {
        let all = self.truth.iter().flat_map(|truth| &truth.published).filter(|p| p.0 == topic);
        all.map(|p| (p.1, p.2, p.3)).collect()
    }

    fn received(&self, topic: &str) -> BTreeMap<u64, u64> {
        let all = self.truth.iter().flat_map(|truth| &truth.received).filter(|r| r.0 == topic);
        all.map(|r| (r.1, r.2)).collect()
    }

    /// Messages of the main chain, which goes through both topics.
    fn main(&self) -> Vec<&Message> {
        let begins = |message: &&Message| {
            message.passes.contains_key("/camera timer 10 ms")
                && !message.passes.keys().any(|point| point.starts_with("/detector request "))
        };
        self.messages.iter().filter(begins).collect()
    }

    /// Holds one topic's messages in the main chain against the truth.
    fn holds(&self, topic: &str, publisher: &str, subscriber: &str) {
        let (publish, callback) = (format!("{publisher} publish {topic}"), format!("{subscriber} callback {topic}"));
        let (receive, take) = (format!("{subscriber} receive {topic}"), format!("{subscriber} take {topic}"));
        let (published, received) = (self.published(topic), self.received(topic));
        // Before the first that came they had not found each other.
        let first = received.keys().min().copied().unwrap_or(0);
        let main = self.main();
        let mut found = Vec::new();
        for message in main.iter().filter(|message| message.passes.contains_key(&publish)) {
            let at = message.passes[&publish];
            let (number, ..) = published
                .iter()
                .find(|(_, before, after)| before.saturating_sub(CLOCK_NS) <= at && at <= after + CLOCK_NS)
                .unwrap_or_else(|| panic!("{topic}: a publication at {at} that nobody made"));
            if *number < first {
                continue;
            }
            let begun = message.passes.get(&callback);
            assert_eq!(
                begun.is_some(),
                received.contains_key(number),
                "{topic}: whether {number} came to its callback"
            );
            if let Some(begun) = begun {
                let is_near = *begun <= received[number] + CLOCK_NS;
                assert!(at <= *begun && is_near, "{topic}: {number} is not in its callback");
                let [receive, take] = [&receive, &take].map(|point| message.passes[point]);
                assert!(at <= receive && receive <= take && take <= *begun, "{topic}: {number} passes in order");
            }
            found.push(*number);
        }
        found.sort_unstable();
        found.dedup();
        let heard = published.iter().filter(|(number, ..)| *number >= first).count();
        assert_eq!(found.len(), heard, "{topic}: each publication is one message of the chain");
    }

    /// What did not come to the last callback was lost, and nothing else.
    fn balances(&self) {
        let ends = self.ends();
        let is_lost = |end: &str| !matches!(end, "applied" | "ended_early");
        let lost: usize = ends.iter().filter(|(end, _)| is_lost(end)).map(|(_, n)| n).sum();
        let (first, second) = (self.received("/image_raw"), self.received("/detections"));
        let missing = |received: &BTreeMap<u64, u64>, sent: &[u64]| {
            let begun = received.keys().min().copied().unwrap_or(0);
            sent.iter().filter(|number| **number >= begun && !received.contains_key(number)).count()
        };
        let published = |topic: &str| self.published(topic).iter().map(|(number, ..)| *number).collect::<Vec<_>>();
        let all = missing(&first, &published("/image_raw")) + missing(&second, &published("/detections"));
        assert_eq!(lost, all, "{ends:?}");
    }

    /// Messages that passed all these points, in this order.
    fn passed(&self, way: &[impl AsRef<str>]) -> usize {
        let passes = |message: &&Message| {
            let times: Option<Vec<u64>> = way.iter().map(|point| message.passes.get(point.as_ref()).copied()).collect();
            times.is_some_and(|times| times.is_sorted())
        };
        self.messages.iter().filter(passes).count()
    }

    fn ends(&self) -> BTreeMap<&str, usize> {
        let mut ends = BTreeMap::new();
        for message in self.main() {
            *ends.entry(message.end.as_deref().unwrap_or("none")).or_default() += 1;
        }
        ends
    }

    fn chain(&self, name: &str) -> &Value {
        let chains = self.report["chains"].as_array().unwrap();
        let names = || chains.iter().map(|chain| chain["name"].to_string()).collect::<Vec<_>>();
        chains.iter().find(|chain| chain["name"] == name).unwrap_or_else(|| panic!("{name} is not among {:?}", names()))
    }
}

const MAIN: &str = "/camera timer 10 ms → /planner callback /detections end";

/// The whole way is reported, from the moment at which the timer was due.
fn is_whole(run: &Run) {
    let hops = run.chain(MAIN)["hops"].as_array().unwrap();
    let points: Vec<&str> = hops.iter().map(|hop| hop["to"].as_str().unwrap()).collect();
    assert_eq!(hops[0]["from"], "/camera timer 10 ms due");
    let way = [
        "/camera timer 10 ms",
        "/camera publish /image_raw",
        "/detector receive /image_raw",
        "/detector take /image_raw",
        "/detector callback /image_raw",
        "/detector publish /detections",
        "/planner receive /detections",
        "/planner take /detections",
        "/planner callback /detections",
        "/planner callback /detections end",
    ];
    assert_eq!(points, way);
    assert!(!run.notes.iter().any(|note| note.contains("cannot be named")), "{:?}", run.notes);
    // What every node has, and what the middleware sends for itself, is in no chain.
    let chains = run.report["chains"].as_array().unwrap();
    let names: Vec<&str> = chains.iter().map(|chain| chain["name"].as_str().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("/rosout") || name.contains("parameter")), "{names:?}");
}

#[test]
fn messages_over_three_processes_are_one_chain_and_services_another() {
    // A subscriber that does not run for a while has all messages, and so makes all calls.
    let Some(run) = run(&["--count", "200", "--calls", "--depth", "1000"]) else { return };
    is_whole(&run);
    run.holds("/image_raw", "/camera", "/detector");
    run.holds("/detections", "/detector", "/planner");
    run.balances();
    let called: Vec<&Message> =
        run.messages.iter().filter(|message| message.passes.contains_key("/detector request /plan")).collect();
    let served = run.truth.iter().map(|truth| truth.served.len()).sum::<usize>();
    assert_eq!((called.len(), served), (20, 20));
    for message in called {
        let way = ["request /plan", "take /plan", "service /plan", "answer /plan", "client /plan"];
        let time = |end: &str| {
            let node = if end.starts_with("request") || end.starts_with("client") { "/detector" } else { "/planner" };
            *message.passes.get(&format!("{node} {end}")).unwrap_or_else(|| panic!("{end}: {message:?}"))
        };
        assert!(way.windows(2).all(|pair| time(pair[0]) <= time(pair[1])), "{message:?}");
    }
}

#[test]
fn nodes_of_one_process_under_the_multi_threaded_executor_are_one_chain() {
    let arguments =
        ["--processes", "camera,detector,planner", "--executor", "multi", "--count", "200", "--bytes", "10000"];
    let Some(run) = run(&arguments) else { return };
    is_whole(&run);
    run.holds("/image_raw", "/camera", "/detector");
    run.holds("/detections", "/detector", "/planner");
    run.balances();
}

#[test]
fn nodes_under_the_events_executor_are_one_chain_and_their_service_another() {
    let Some(run) = run(&["--executor", "events", "--count", "200", "--calls"]) else { return };
    is_whole(&run);
    run.holds("/image_raw", "/camera", "/detector");
    run.holds("/detections", "/detector", "/planner");
    run.balances();
    let way = [
        "request /plan",
        "client /plan",
        "client /plan answer scheduled",
        "client /plan answer",
        "client /plan answer end",
    ];
    let answered = run.truth.iter().map(|truth| truth.served.len()).sum::<usize>();
    assert_eq!(run.passed(&way.map(|point| format!("/detector {point}"))), answered);
}

/// The events executor takes what is there before it runs a coroutine with it.
#[test]
fn coroutines_are_on_the_chain_as_other_callbacks_are() {
    for executor in ["single", "events"] {
        let Some(run) = run(&["--executor", executor, "--count", "50", "--coroutines"]) else { return };
        is_whole(&run);
        run.holds("/image_raw", "/camera", "/detector");
        run.holds("/detections", "/detector", "/planner");
        let callbacks = run.report["ros"]["callbacks"].as_array().unwrap();
        let planner = callbacks.iter().find(|callback| callback["name"] == "/planner callback /detections").unwrap();
        assert_eq!(planner["duration"]["n"], run.received("/detections").len(), "{executor}: a coroutine is one run");
        assert!(planner["function"].as_str().unwrap().ends_with("Planner.on_detections"), "{planner}");
        let tasks = callbacks.iter().filter(|callback| callback["name"].as_str().unwrap().contains(" task "));
        assert_eq!(tasks.count(), 2, "{executor}: of the detector and of the planner");
    }
}

/// From the goal to the callbacks for its feedback and for its result, over the callback that executes it.
#[test]
fn goals_are_chains_to_their_feedback_and_their_result() {
    for executor in ["single", "events"] {
        let Some(run) = run(&["--executor", executor, "--count", "100", "--goals"]) else { return };
        is_whole(&run);
        let goal = ["/detector request /turn/_action/send_goal", "/planner action /turn goal"];
        let executes = ["/planner action /turn execute scheduled", "/planner action /turn execute"];
        let feeds = ["/planner publish /turn/_action/feedback", "/detector action /turn feedback"];
        let answers = ["/planner answer /turn/_action/send_goal", "/detector action /turn answer"];
        let results = [
            "/planner action /turn send result",
            "/planner answer /turn/_action/get_result",
            "/detector action /turn result",
        ];
        let count = |of: fn(&Truth) -> usize| run.truth.iter().map(of).sum::<usize>();
        let executed = count(|t| t.executed.len());
        assert!(executed > 0 && count(|t| t.results.len()) > 0, "{executor}");
        assert_eq!(run.passed(&[goal, executes].concat()), executed, "{executor}");
        assert_eq!(run.passed(&[goal, executes, feeds].concat()), count(|t| t.feedback.len()), "{executor}");
        assert_eq!(run.passed(&[&goal[..], &answers].concat()), executed, "{executor}");
        assert_eq!(run.passed(&results), count(|t| t.results.len()), "{executor}");
    }
}

/// The detector is killed and comes back under its name; each process had another context before.
#[test]
fn a_node_that_is_killed_and_restarted_is_one_node_in_one_chain() {
    let Some(run) = run(&["--count", "100", "--restart", "--twice"]) else { return };
    let point = "/planner callback /detections";
    let run_of = |message: &Message| Some((*message.passes.get(point)?, *message.passes.get(&format!("{point} end"))?));
    let through: Vec<(u64, u64)> = run.messages.iter().filter_map(run_of).collect();
    let received = run.received("/detections");
    assert_eq!(through.len(), received.len(), "what came through both detectors came in one chain");
    let is_one = |at: &u64| through.iter().any(|(begin, end)| begin - CLOCK_NS <= *at && *at <= end + CLOCK_NS);
    assert!(received.values().all(is_one), "each that was received was in a run of the callback");
    let chains = run.report["chains"].as_array().unwrap();
    let names: Vec<&str> = chains.iter().map(|chain| chain["name"].as_str().unwrap()).collect();
    assert!(names.contains(&MAIN) && !names.iter().any(|name| name.contains(" #")), "{names:?}");
}

/// The middleware takes hardly a longer name: 255 bytes with what ROS puts in front and behind.
#[test]
fn a_topic_of_the_longest_name_is_followed_and_found_by_its_name() {
    let topic = format!("/{}end", "long/".repeat(48));
    let Some(run) = run(&["--count", "50", "--image-topic", &topic]) else { return };
    let ended = run.messages.iter().filter(|message| message.passes.contains_key("/planner callback /detections"));
    assert_eq!(ended.count(), run.received("/detections").len());
    let report = run.reported(&["--topic", &topic]);
    assert_eq!(report["chains"].as_array().unwrap().len(), 1, "{:?}", report["chains"]);
    assert_eq!(report["ros"]["topics"][0]["name"], topic);
}

/// The limit is one that every machine keeps. The workflow's command is tried with a program that is no node, since a gate's trials
/// take minutes.
#[test]
fn a_chain_of_real_nodes_is_held_against_its_limit_and_the_workflows_command_is_one() {
    let Some(run) = run(&["--count", "400"]) else { return };
    let limit = "[[chain]]\nname = 'images'\npoints = ['/camera timer 10 ms', '/planner callback /detections end']\n\
                 [[chain.limit]]\nfigure = 'total.p99'\nmax_ms = 60000\n";
    fs::write(run.folder.path().join("taut.toml"), limit).unwrap();
    let judge = ["gate", "--limits", "--candidate", "run.mcap"];
    let output = Command::new(cargo_bin!("taut")).args(judge).current_dir(run.folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("WITHIN LIMITS"), "{said}");

    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ci/ros2.yml")).unwrap();
    let workflow = &yaml_rust2::YamlLoader::load_from_str(&text).unwrap()[0];
    let steps = workflow["jobs"]["gate"]["steps"].as_vec().unwrap();
    let gate = steps.iter().find(|step| step["name"].as_str() == Some("Gate")).unwrap()["run"].as_str().unwrap();
    fs::write(run.folder.path().join("setup.sh"), "").unwrap();
    let taut = cargo_bin!("taut").parent().unwrap().to_owned();
    let path =
        std::env::join_paths([taut].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())));
    let output = Command::new("sh")
        .args(["-ec", gate])
        .current_dir(run.folder.path())
        .envs([("RUN", "true"), ("SETUP", "./setup.sh"), ("DURATION", "1"), ("MAX_TIME", "5")])
        .env("PATH", path.unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.starts_with("taut: trial 3 of B (true): chain \"images\" of taut.toml: nothing was stamped at"),
        "{said}"
    );
}

/// Its queue of depth 1 keeps the newest; the executor is busy with the callback of the one before.
#[test]
fn what_a_slow_subscriber_loses_was_overwritten_and_what_waits_for_it_waits_for_its_executor() {
    let Some(run) = run(&["--best-effort", "--depth", "1", "--planner-takes", "0.025", "--count", "200"]) else {
        return;
    };
    is_whole(&run);
    run.holds("/detections", "/detector", "/planner");
    run.balances();
    let ends = run.ends();
    assert!(ends["overwritten (depth 1)"] > 20, "{ends:?}");
    let waited = run.main().iter().filter(|message| message.held_by == "/planner callback /detections").count();
    assert!(waited > 20, "{waited} waited for the callback of the one before");
}
