//! `taut guard replay` as a process: the jittery stream of a teleoperation loop, a channel of somebody else's file, and
//! input that is not what it should be.

#[path = "../../../guard/taut-guard/tests/stream/mod.rs"]
mod stream;

use std::path::{Path, PathBuf};

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use stream::{CLEAN, Delay, Motion, Scenario, Stream};
use taut_clock::{ClockPair, Counter, Ticks};
use taut_recording::{Ending, Info, Lost, Name, Record, StampBatch, Writer};

const GUARD: &str = "[guard]\nperiod_ns = 10_000_000\ntcp_limit_mm_s = 1000.0\nstale_ns = 300_000_000\n\
    age_max_ns = 300_000_000\n";
const JITTER: Scenario = Scenario { name: "jitter", delay: Delay::Exponential, loss: 0.02, ..CLEAN };

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        std::fs::write(folder.path("guard.toml"), GUARD).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn replay(&self, arguments: &[&str]) -> assert_cmd::assert::Assert {
        let mut command = assert_cmd::Command::new(cargo_bin("taut"));
        command.current_dir(self.0.path()).args(["guard", "replay"]).args(arguments).assert()
    }

    fn json(&self, arguments: &[&str], code: i32) -> serde_json::Value {
        let all: Vec<&str> = arguments.iter().copied().chain(["--format", "json"]).collect();
        let output = self.replay(&all).code(code).get_output().stdout.clone();
        serde_json::from_slice(&output).unwrap()
    }
}

/// A recording as `taut.guard.record_frame` makes it, of seconds of a simulated stream.
fn record(path: &Path, scenario: Scenario, motion: Motion, seconds: u64) {
    record_with(path, scenario, motion, seconds, None);
}

/// The same with a loss of stamps at this place.
fn record_with(path: &Path, scenario: Scenario, motion: Motion, seconds: u64, lost_at: Option<&str>) {
    let mut simulated = Stream::new(scenario, motion, 11);
    let mut writer = Writer::create(path, &Info::default()).unwrap();
    for at in [0, 100_000_000_000] {
        let pair = ClockPair { ticks: Ticks(at), monotonic_ns: at, realtime_ns: at, window_ticks: 30 };
        writer.write(&Record::Clock(Counter::Monotonic, pair)).unwrap();
    }
    let mut names: Vec<String> = Vec::new();
    loop {
        let delivered = simulated.hear();
        let now_ns = delivered.frame.arrival_ns;
        if now_ns > seconds * 1_000_000_000 {
            break;
        }
        let is_over = motion.overspeed.is_some_and(|(at_s, _)| delivered.sampled_ns as f64 * 1e-9 >= at_s);
        let ratio = if is_over { motion.overspeed.map_or(0.0, |(_, to)| to) } else { motion.ratio };
        let fields: Vec<(&str, f64)> =
            [("truth_mm_s", ratio * 1000.0)].into_iter().chain(delivered.frame.fields()).collect();
        let mut batch = StampBatch { pid: 1, tid: 1, counter: Counter::Monotonic as u8, ..StampBatch::default() };
        for (field, value) in [("fields", fields.len() as f64)].into_iter().chain(fields) {
            let name = format!("follower.{field}");
            let known = names.iter().position(|known| *known == name);
            let id = known.unwrap_or(names.len()) as u32 + 1;
            if known.is_none() {
                names.push(name.clone());
                writer.write(&Record::Name(Name { id, name })).unwrap();
            }
            batch.ticks.push(now_ns);
            batch.message_id.push(0);
            batch.point.push(id);
            batch.kind.push(5);
            batch.value.push(value.to_bits());
        }
        writer.write(&Record::Stamps(batch)).unwrap();
        writer.flush_due(now_ns).unwrap();
    }
    if let Some(place) = lost_at {
        let time_ns = seconds * 1_000_000_000;
        writer.write(&Record::Lost(Lost { time_ns, place: place.into(), count: 9, ..Lost::default() })).unwrap();
    }
    writer.finish(&Ending { end_monotonic_ns: seconds * 1_000_000_000, ..Ending::default() }).unwrap();
}

#[test]
fn frames_may_be_among_the_stamps_that_their_thread_lost() {
    let folder = Folder::new();
    for (place, code) in [("1/1", 5), ("7-0.taut", 5), ("1/2", 0)] {
        record_with(&folder.path("run.mcap"), JITTER, Motion::steady(0.92), 20, Some(place));
        let said = predicate::str::contains("run.mcap, 9 stamps LOST: frames may be among them");
        for arguments in [&["run.mcap", "--guard", "guard.toml"][..], &["run.mcap", "--tcp-limit", "1000", "--tune"]] {
            let replayed = folder.replay(arguments).code(code);
            if code == 5 {
                replayed.stderr(said.clone());
            }
        }
    }
}

#[test]
fn a_jittery_stream_trips_the_naive_and_not_ours() {
    let folder = Folder::new();
    record(&folder.path("run.mcap"), JITTER, Motion::steady(0.92), 20);
    let json = folder.json(&["run.mcap", "--guard", "guard.toml", "--truth", "recorded"], 0);
    let runs = json["runs"].as_array().unwrap();
    assert_eq!((&runs[0]["name"], &runs[0]["overspeed_trips"]), (&"taut guard".into(), &0.into()));
    assert_eq!((&runs[0]["stale_trips"], &runs[0]["fault_trips"]), (&0.into(), &0.into()));
    assert!(runs[0]["largest"].as_f64().unwrap() <= 0.92 + 1e-9);
    let naive = &runs[1];
    assert_eq!(naive["name"], "Δp/Δt, arrival, 1/1");
    // Frames over within a second are one trip: under this jitter, one that does not end.
    assert!(naive["frames_over"].as_u64().unwrap() >= 100, "{naive}");
    assert!(naive["judgement"]["false_trips"].as_u64().unwrap() >= 1, "{naive}");
    assert_eq!(naive["trips"][0]["is_false"], true);
    folder
        .replay(&["run.mcap", "--guard", "guard.toml", "--truth", "recorded"])
        .success()
        .stdout(predicate::str::contains("The taut guard would not have tripped in"))
        .stdout(predicate::str::contains("The true speed (truth_mm_s of the frames) was never above the limit."));
    folder.replay(&["run.mcap", "--guard", "guard.toml", "--format", "html", "-o", "replay.html"]).success();
    assert!(
        std::fs::read_to_string(folder.path("replay.html"))
            .unwrap()
            .contains("The taut guard would not have tripped in")
    );
}

#[test]
fn a_true_overspeed_is_a_verdict_against() {
    let folder = Folder::new();
    let motion = Motion { ratio: 0.6, overspeed: Some((3.0, 1.5)), ramp: f64::INFINITY };
    record(&folder.path("run.mcap"), CLEAN, motion, 5);
    let json = folder.json(&["run.mcap", "--guard", "guard.toml", "--truth", "recorded"], 1);
    let trip = &json["runs"][0]["trips"][0];
    assert_eq!(
        (&trip["state"], &trip["cause"], &trip["is_false"]),
        (&"overspeed".into(), &"speed".into(), &false.into())
    );
    assert_eq!(trip["black_box"].as_array().unwrap().len(), 50);
    assert_eq!(
        (&json["overspeeds"].as_array().unwrap().len(), &json["runs"][0]["judgement"]["missed"]),
        (&1, &0.into())
    );
    // The same truth from a file, and by somebody's word that there was none.
    std::fs::write(folder.path("truth.csv"), "monotonic_ns,mm_s\n0,600\n3000000000,1500\n5000000000,1500\n").unwrap();
    let json = folder.json(&["run.mcap", "--guard", "guard.toml", "--truth", "truth.csv"], 1);
    assert_eq!(json["runs"][0]["judgement"]["false_trips"], 0);
    let json = folder.json(&["run.mcap", "--guard", "guard.toml", "--truth", "legal"], 1);
    assert!(json["runs"][0]["judgement"]["false_trips"].as_u64().unwrap() > 0);
}

#[test]
fn what_tune_prints_is_a_guard_toml_that_fits() {
    let folder = Folder::new();
    record(&folder.path("run.mcap"), JITTER, Motion::steady(0.92), 20);
    folder.replay(&["run.mcap", "--tcp-limit", "1000", "--tune", "-o", "tuned.toml"]).success();
    let toml = std::fs::read_to_string(folder.path("tuned.toml")).unwrap();
    assert!(toml.contains("[guard]\n# period_ns: 10.000 ms a count") && toml.contains("#   1.25 L: "), "{toml}");
    assert!(toml.contains("name = \"follower\""));
    let json = folder.json(&["run.mcap", "--guard", "tuned.toml", "--truth", "recorded", "--tune"], 0);
    assert!(json["tuned"]["evidence"]["source_error_ns"].as_str().unwrap().contains("stamps come in steps of 1.00 ms"));
    // Without a guard.toml at all: the stream's own.
    folder.replay(&["run.mcap", "--tcp-limit", "1000"]).success();
}

#[test]
fn a_channel_of_any_file_is_replayed_too() {
    let folder = Folder::new();
    let mut simulated = Stream::new(JITTER, Motion::steady(0.92), 12);
    let mut writer = mcap::Writer::new(std::fs::File::create(folder.path("bag.mcap")).unwrap()).unwrap();
    let schema = "uint8 count\nint64 stamp\nfloat64[3] position\n";
    let schema = writer.add_schema("arm_msgs/msg/State", "ros2msg", schema.as_bytes()).unwrap();
    let channel = writer.add_channel(schema, "/arm/state", "cdr", &Default::default()).unwrap();
    for sequence in 0..1000 {
        let frame = simulated.hear().frame;
        let mut data = vec![0, 1, 0, 0, frame.sequence as u8];
        data.resize(4 + 8, 0);
        data.extend(frame.source_ns.unwrap().to_le_bytes());
        frame.tcp_mm.iter().for_each(|mm| data.extend((mm / 1000.0).to_le_bytes()));
        let log_time = frame.arrival_ns;
        let header = mcap::records::MessageHeader { channel_id: channel, sequence, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, &data).unwrap();
    }
    writer.finish().unwrap();
    let fields = "sequence = \"count\"\nsource_ns = \"stamp\"\nx_mm = { field = \"position[0]\", times = 1000 }\n\
        y_mm = { field = \"position[1]\", times = 1000 }\nz_mm = { field = \"position[2]\", times = 1000 }\n";
    let mapped = format!("{GUARD}[stream]\ntopic = \"/arm/state\"\n[stream.fields]\n{fields}");
    std::fs::write(folder.path("mapped.toml"), &mapped).unwrap();
    let json = folder.json(&["bag.mcap", "--guard", "mapped.toml", "--truth", "legal"], 0);
    assert_eq!((&json["stream"], &json["frames"]), (&"/arm/state".into(), &1000.into()));
    assert!(json["runs"][1]["judgement"]["false_trips"].as_u64().unwrap() > 0);
    std::fs::write(folder.path("wrong.toml"), mapped.replace("position[2]", "position[3]")).unwrap();
    folder
        .replay(&["bag.mcap", "--guard", "wrong.toml"])
        .code(2)
        .stderr(predicate::str::contains("bag.mcap: /arm/state: no message has the number \"position[3]\""));
}

#[test]
fn stamps_of_a_calendar_clock_are_replayed_to_the_nanosecond() {
    const START_NS: i64 = 1_700_000_000_000_000_123;
    const PERIOD_NS: i64 = 10_000_000;
    let folder = Folder::new();
    let mut writer = mcap::Writer::new(std::fs::File::create(folder.path("bag.mcap")).unwrap()).unwrap();
    let schema = "int32 count\nbuiltin_interfaces/Time stamp\nfloat64 x\n================\nMSG: builtin_interfaces/Time\n\
        int32 sec\nuint32 nanosec\n";
    let schema = writer.add_schema("arm_msgs/msg/State", "ros2msg", schema.as_bytes()).unwrap();
    let channel = writer.add_channel(schema, "/arm/state", "cdr", &Default::default()).unwrap();
    for n in 0..1000_u32 {
        let stamp_ns = START_NS + i64::from(n) * PERIOD_NS;
        let mut data = vec![0, 1, 0, 0];
        data.extend(((n % 256) as i32).to_le_bytes());
        data.extend(((stamp_ns / 1_000_000_000) as i32).to_le_bytes());
        data.extend(((stamp_ns % 1_000_000_000) as u32).to_le_bytes());
        data.extend([0_u8; 4]);
        // 1.5 m/s, over the limit.
        data.extend((f64::from(n) * 15.0).to_le_bytes());
        let log_time = 5_000_000_000 + u64::from(n) * PERIOD_NS as u64;
        let header =
            mcap::records::MessageHeader { channel_id: channel, sequence: n, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, &data).unwrap();
    }
    writer.finish().unwrap();
    let mapped = "[stream]\ntopic = \"/arm/state\"\n[stream.fields]\nsequence = \"count\"\nsource_ns = \"stamp\"\nx_mm = \"x\"\n";
    std::fs::write(folder.path("mapped.toml"), format!("{GUARD}{mapped}")).unwrap();
    let json = folder.json(&["bag.mcap", "--guard", "mapped.toml", "--tune"], 1);
    let why = json["tuned"]["evidence"]["source_error_ns"].as_str().unwrap();
    assert!(why.contains("stamps are exactly T apart"), "{why}");
    let why = json["tuned"]["evidence"]["period_ns"].as_str().unwrap();
    assert!(why.starts_with("10.000 ms a count over 1000 frames, by the robot's stamps"), "{why}");
    let frames = json["runs"][0]["trips"][0]["black_box"].as_array().unwrap();
    let stamps: Vec<i64> = frames.iter().map(|frame| frame["source_ns"].as_i64().unwrap()).collect();
    assert!(!stamps.is_empty() && stamps.iter().all(|ns| (ns - START_NS) % PERIOD_NS == 0), "{stamps:?}");
}

#[test]
fn what_is_wrong_is_one_line_with_file_and_remedy() {
    let folder = Folder::new();
    record(&folder.path("run.mcap"), CLEAN, Motion::steady(0.5), 2);
    std::fs::write(folder.path("odd.toml"), "[guard]\nperiod_ns = 10_000_000\ntcp_limit_mm_s = -1\n").unwrap();
    std::fs::write(folder.path("empty.mcap"), "").unwrap();
    for (arguments, words) in [
        (&["run.mcap"][..], "--guard"),
        (&["none.mcap", "--guard", "guard.toml"], "none.mcap: No such file"),
        (&["empty.mcap", "--guard", "guard.toml"], "empty.mcap: is empty"),
        (&["guard.toml", "--guard", "guard.toml"], "guard.toml: is not a recording"),
        (&["run.mcap", "--guard", "odd.toml"], "odd.toml: [guard]: tcp_limit_mm_s is -1"),
        (&["run.mcap", "--tcp-limit", "-1"], "tcp_limit_mm_s is -1"),
        (&["run.mcap", "--guard", "guard.toml", "--truth", "perhaps"], "neither recorded, reported nor legal"),
        (
            &["run.mcap", "--guard", "guard.toml", "--stream", "leader"],
            "has no frames of the stream \"leader\"; it has \"follower\"",
        ),
    ] {
        let shown = folder.replay(arguments).code(2).stdout("");
        let said = String::from_utf8(shown.get_output().stderr.clone()).unwrap();
        assert!(said.contains(words) && said.trim_end().lines().count() == 1, "{arguments:?}: {said}");
    }
}
