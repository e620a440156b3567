//! `taut import` and `taut telemetry` as processes: what is no log is one line and no file.

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use taut_clock::{ClockPair, Counter, Ticks};
use taut_recording::{Ending, Info, Name, Output, Record, StampBatch, Thread, Writer};

fn taut(folder: &tempfile::TempDir, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(cargo_bin!("taut"));
    command.args(arguments).current_dir(folder.path());
    command
}

/// A schema with one number, and three values of it a second apart.
fn log() -> Vec<u8> {
    let mut log = b"TLOG0003\0".to_vec();
    let schema = [&[1, 0, 3][..], b"imu", &[16, 0, 0, 1, b'x', 0, 8, 0, 0, 0, 0, 0, 0]].concat();
    log.extend([1, schema.len() as u8]);
    log.extend(schema);
    for at in 0..3_u8 {
        let time = (1_600_000_000_i64 + i64::from(at)) * 1_000_000;
        let data = [&[1, 2][..], &time.to_le_bytes(), &f64::from(at).to_le_bytes()].concat();
        log.extend([2, data.len() as u8]);
        log.extend(data);
    }
    log
}

#[test]
fn a_log_is_imported_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("robot.log"), log()).unwrap();
    let said = predicate::str::contains("wrote robot.mcap: 3 messages of 1 channels, 2.0 s");
    taut(&folder, &["import", "mjlib", "robot.log"]).assert().success().stderr(said);
    let second = r#"{"topic":"/imu","time_s":1.0,"sequence":2,"value":{"x":1.0}}"#;
    taut(&folder, &["telemetry", "robot.mcap", "--channel", "/imu", "--from", "0.5", "--to", "1.5"])
        .assert()
        .success()
        .stdout(format!("{second}\n"));
    taut(&folder, &["telemetry", "robot.mcap", "--at", "1.9"]).assert().success().stdout(format!("{second}\n"));
    taut(&folder, &["telemetry", "robot.mcap", "--layouts"]).assert().success();
    assert!(folder.path().join("robot.foxglove.json").exists() && folder.path().join("robot.plotjuggler.xml").exists());
}

#[test]
fn a_stretch_of_time_without_messages_says_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("robot.log"), log()).unwrap();
    taut(&folder, &["import", "mjlib", "robot.log"]).assert().success();
    let imu =
        |times: &[&str]| taut(&folder, &[&["telemetry", "robot.mcap", "--channel", "/imu"], times].concat()).assert();
    let one =
        |text: &'static str| predicate::str::contains(text).and(predicate::function(|e: &str| e.lines().count() == 1));
    for (from, to) in [("5", "1"), ("1", "1")] {
        imu(&["--from", from, "--to", to]).code(2).stdout("").stderr(one("is not before --to 1"));
    }
    let says = |text| one(text).and(predicate::str::contains("the recording lasts 2.000 s"));
    imu(&["--from", "5s", "--to", "10m"]).success().stdout("").stderr(says("/imu has no message from 5s to 600s"));
    imu(&["--to", "0"]).success().stdout("").stderr(says("/imu has no message to 0;"));
    imu(&["--from", "5", "--last", "3"]).success().stdout("").stderr(says("/imu has no message from 5s"));
    // None is wanted.
    imu(&["--last", "0"]).success().stdout("").stderr("");
    imu(&["--from", "1"]).success().stderr("");
}

#[test]
fn what_goes_to_stdout_is_whole_and_makes_no_file_of_that_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("robot.log"), log()).unwrap();
    let to_stdout = |arguments: &[&str]| {
        let output = taut(&folder, &[arguments, &["-o", "-"]].concat()).assert().success().get_output().stdout.clone();
        assert!(!folder.path().join("-").exists(), "{arguments:?}");
        output
    };
    let imported = to_stdout(&["import", "mjlib", "robot.log"]);
    std::fs::write(folder.path().join("robot.mcap"), imported).unwrap();
    for of in [&["export", "foxglove", "robot.mcap"][..], &["recover", "robot.mcap"]] {
        std::fs::write(folder.path().join("again.mcap"), to_stdout(of)).unwrap();
        let same = predicate::str::contains(r#""sequence":2,"value":{"x":1.0}"#);
        taut(&folder, &["telemetry", "again.mcap", "--at", "1.9"]).assert().success().stdout(same);
    }
    for form in ["csv", "perfetto", "hlog"] {
        to_stdout(&["export", form, "robot.mcap"]);
    }
    // A folder of four tables is no stream.
    taut(&folder, &["export", "parquet", "robot.mcap", "-o", "-"])
        .assert()
        .code(2)
        .stdout("")
        .stderr(predicate::str::contains("name a folder with -o"));
    assert!(!folder.path().join("-").exists());
}

#[test]
fn what_is_damaged_is_named_with_an_exit_code_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let log = log();
    std::fs::write(folder.path().join("cut.log"), &log[..log.len() - 3]).unwrap();
    taut(&folder, &["import", "mjlib", "cut.log"])
        .assert()
        .code(5)
        .stderr(predicate::str::contains("the end of the log is missing").and(predicate::str::contains("2 messages")));
}

/// Of a trace in a folder it is the library below that opens it.
#[test]
fn what_the_system_says_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "no trace").unwrap();
    for arguments in [&["import", "ctf", "none"][..], &["import", "ctf", "file"], &["import", "rosbag2", "none"]] {
        let said = taut(&folder, arguments).assert().code(2).stdout("").get_output().stderr.clone();
        let said = String::from_utf8(said).unwrap();
        assert!(said.lines().count() == 1 && said.contains(arguments[2]), "{said}");
        assert_eq!(said.matches("os error").count(), 1, "{arguments:?}: {said}");
        assert_eq!(said.matches(" directory").count(), 1, "{arguments:?}: {said}");
    }
}

#[test]
fn what_is_no_log_is_one_line_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("robot.log"), "not a log at all").unwrap();
    let line = |text: &str| {
        predicate::str::contains(text.to_owned()).and(predicate::function(|e: &str| e.lines().count() == 1))
    };
    taut(&folder, &["import", "mjlib", "robot.log"]).assert().code(2).stderr(line("robot.log: is no mjlib log"));
    taut(&folder, &["import", "mjlib", "missing.log"]).assert().code(2).stderr(line("missing.log"));
    taut(&folder, &["telemetry", "robot.log"]).assert().code(2).stderr(line("is not a recording"));
    assert!(!folder.path().join("robot.mcap").exists());
}

/// What a recording's report says, as JSON.
fn report(folder: &tempfile::TempDir, run: &str) -> serde_json::Value {
    let output = taut(folder, &["report", run, "--format", "json"]).assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

#[test]
fn json_lines_are_a_chain_with_its_ends() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..200)
        .map(|id| {
            let t = 1000 + id * 20_000;
            let done = if id % 4 == 0 { "speed_limit" } else { "applied" };
            format!(
                "{{\"id\": {id}, \"stamps\": {{\"a.read\": {t}, \"a.written\": {}}}, \"outcome\": \"{done}\"}}\n",
                t + 3000
            )
        })
        .collect();
    std::fs::write(folder.path().join("trace.jsonl"), lines + "{\"oops\"\n").unwrap();
    let said = predicate::str::contains("wrote trace.mcap: 600 stamps").and(predicate::str::contains("lost: line 201"));
    taut(&folder, &["import", "jsonl", "trace.jsonl", "--unit", "us"]).assert().code(5).stderr(said);
    let report = report(&folder, "trace.mcap");
    let chain = &report["chains"][0];
    assert_eq!(chain["name"], "a.read → a.written");
    assert_eq!(chain["end_to_end"]["p50_ns"], 3_000_000);
    assert_eq!(
        (&chain["outcomes"]["applied"], &chain["outcomes"]["dropped"]["speed_limit"]),
        (&150.into(), &50.into())
    );
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains("line 201 is no JSON object")), "{notes:?}");
}

#[test]
fn a_point_of_no_chain_has_its_periods() {
    let folder = tempfile::tempdir().unwrap();
    // Every 50th frame is missing.
    let lines: String = (0..1000)
        .filter(|n| n % 50 != 49)
        .map(|n| format!("{{\"id\": {n}, \"point\": \"camera.frame\", \"t_ms\": {}}}\n", n * 33))
        .collect();
    std::fs::write(folder.path().join("frames.jsonl"), lines).unwrap();
    taut(&folder, &["import", "jsonl", "frames.jsonl", "-o", "run.mcap"]).assert().success();
    let report = report(&folder, "run.mcap");
    assert_eq!(report["chains"], serde_json::json!([]));
    let point = &report["points"][0];
    assert_eq!((&point["name"], &point["gaps"]), (&"camera.frame".into(), &19.into()));
    assert_eq!((&point["period"]["p50_ns"], &point["period"]["max_ns"]), (&33_000_000.into(), &66_000_000.into()));
    let table = predicate::str::contains("period at (ms)").and(predicate::str::contains("camera.frame"));
    taut(&folder, &["report", "run.mcap"]).assert().success().stdout(table);
    taut(&folder, &["report", "run.mcap", "--format", "html"])
        .assert()
        .success()
        .stdout(predicate::str::contains("<td>19</td>"));
}

#[test]
fn a_histogram_is_a_report_that_says_there_are_no_stamps() {
    let folder = tempfile::tempdir().unwrap();
    let text = "# Histogram\n000002 001500\n000003 000460\n# Total: 000001960\n# Min Latencies: 00002\n# Avg Latencies: 00002\n\
                # Max Latencies: 172860\n# Histogram Overflows: 00031\n# Histogram Overflow at cycle number:\n# Thread 0: 00052\n";
    std::fs::write(folder.path().join("cyclictest.txt"), text).unwrap();
    taut(&folder, &["import", "cyclictest", "cyclictest.txt", "-o", "run.mcap"])
        .assert()
        .success()
        .stderr(predicate::str::contains("wrote run.mcap: 1 histogram"));
    let output = taut(&folder, &["report", "run.mcap"]).assert().success().get_output().stdout.clone();
    let told = String::from_utf8(output).unwrap().replace('\u{202f}', " ");
    for part in ["thread 0", "1 991", "beyond  from", "  31  4.00", "no stamps", "≥ 4.00"] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
    let of = &report(&folder, "run.mcap")["histograms"][0];
    assert_eq!((&of["p50"]["at_most"], &of["p99"]["at_least"]), (&2_999.into(), &4_000.into()));
    taut(&folder, &["report", "run.mcap", "--format", "markdown"])
        .assert()
        .success()
        .stdout(predicate::str::contains("| of (µs) | n |"));
}

#[test]
fn a_trace_of_chrome_is_messages_and_durations() {
    let folder = tempfile::tempdir().unwrap();
    let events: String = (0..200)
        .map(|id| {
            let ts = id * 10_000;
            format!(
                "{{\"ph\":\"X\",\"name\":\"publish\",\"pid\":1,\"tid\":1,\"ts\":{ts},\"dur\":100}},\n\
                 {{\"ph\":\"s\",\"name\":\"m\",\"cat\":\"ros\",\"id\":{id},\"pid\":1,\"tid\":1,\"ts\":{}}},\n\
                 {{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"m\",\"cat\":\"ros\",\"id\":{id},\"pid\":1,\"tid\":2,\"ts\":{}}},\n\
                 {{\"ph\":\"X\",\"name\":\"callback\",\"pid\":1,\"tid\":2,\"ts\":{},\"dur\":500}},\n",
                ts + 50,
                ts + 2050,
                ts + 2000,
            )
        })
        .collect();
    std::fs::write(folder.path().join("trace.json"), format!("[{events}")).unwrap();
    taut(&folder, &["import", "chrome", "trace.json", "-o", "run.mcap"]).assert().success();
    let report = report(&folder, "run.mcap");
    let chain = &report["chains"][0];
    assert_eq!((&chain["name"], &chain["end_to_end"]["p50_ns"]), (&"publish → callback".into(), &2_000_000.into()));
    assert_eq!(report["histograms"].as_array().unwrap().len(), 2);
    taut(&folder, &["export", "csv", "run.mcap", "-o", "run.csv"]).assert().success();
}

/// A bag of one topic whose messages are logged 1 ms after they were published, every 50th 5 ms.
fn bag() -> Vec<u8> {
    let mut bag = mcap::Writer::new(std::io::Cursor::new(Vec::new())).unwrap();
    let id = bag.add_channel(0, "/imu", "cdr", &Default::default()).unwrap();
    for n in 0..2000_u64 {
        let publish_time = 1_700_000_000_000_000_000 + n * 10_000_000;
        let log_time = publish_time + if n % 50 == 0 { 5_000_000 } else { 1_000_000 };
        let header = mcap::records::MessageHeader { channel_id: id, sequence: n as u32, log_time, publish_time };
        bag.write_to_known_channel(&header, &[0; 8]).unwrap();
    }
    bag.finish().unwrap();
    bag.into_inner().into_inner()
}

/// The same as a recording of an older taut, which gave each point a thread of its name.
fn older_import(path: &std::path::Path) {
    let facts = vec![("imported_from".to_owned(), "bag".to_owned())];
    let mut writer = Writer::create(path, &Info { facts, ..Info::default() }).unwrap();
    let pair = |at| ClockPair { ticks: Ticks(at), monotonic_ns: at, realtime_ns: at, window_ticks: 0 };
    for at in [0, 100_000_000_000] {
        writer.write(&Record::Clock(Counter::Monotonic, pair(at))).unwrap();
    }
    for (at, comm) in [(1, "publish"), (2, "log")] {
        writer.write(&Record::Name(Name { id: at, name: format!("/imu {comm}") })).unwrap();
        let (tid, comm, cmdline) = (at as i32 + 1, comm.to_owned(), "bag".to_owned());
        writer
            .write(&Record::Thread(Thread { pid: 1, tid, comm, cmdline, recorded: true, ..Thread::default() }))
            .unwrap();
        let mut batch = StampBatch { pid: 1, tid, counter: Counter::Monotonic as u8, ..StampBatch::default() };
        for n in 0..2000_u64 {
            let late = if n % 50 == 0 { 5_000_000 } else { 1_000_000 };
            batch.ticks.push(1_000_000 + n * 10_000_000 + u64::from(at - 1) * late);
            batch.message_id.push(n + 1);
            batch.point.push(at);
            batch.kind.push(1);
            batch.value.push(0);
        }
        writer.write(&Record::Stamps(batch)).unwrap();
    }
    writer.finish(&Ending { end_monotonic_ns: 50_000_000_000, ..Ending::default() }).unwrap();
}

#[test]
fn a_bag_shows_no_thread_since_it_has_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bag.mcap"), bag()).unwrap();
    taut(&folder, &["import", "rosbag2", "bag.mcap", "-o", "now.mcap"]).assert().success();
    older_import(&folder.path().join("older.mcap"));
    for run in ["now.mcap", "older.mcap"] {
        let report = report(&folder, run);
        let chain = &report["chains"][0];
        assert_eq!((&chain["name"], &chain["messages"]), (&"/imu publish → /imu log".into(), &2000.into()), "{run}");
        for point in chain["points"].as_array().unwrap() {
            assert_eq!(point["threads"], serde_json::json!([]), "{run}");
        }
        assert_eq!(chain["hops"][0]["crosses_threads"], false, "{run}");
        for (command, form) in [
            ("report", "terminal"),
            ("report", "markdown"),
            ("report", "html"),
            ("explain", "terminal"),
            ("explain", "markdown"),
            ("explain", "json"),
        ] {
            let shown = taut(&folder, &[command, run, "--format", form]).assert().success().get_output().stdout.clone();
            let shown = String::from_utf8(shown).unwrap();
            for invented in
                ["publish/2", "log/3", "publish/1", "log/2", "thread 1", "thread 2", "thread 3", "\"/2\"", " /3 "]
            {
                assert!(!shown.contains(invented), "{run}, {command} as {form}: {invented} in {shown}");
            }
        }
    }
}

#[test]
fn a_layout_of_a_bag_says_how_to_get_channels() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bag.mcap"), bag()).unwrap();
    taut(&folder, &["import", "rosbag2", "bag.mcap", "-o", "run.mcap"]).assert().success();
    let said = predicate::str::contains("run.mcap: has no telemetry to lay out; `taut export foxglove` adds channels");
    taut(&folder, &["telemetry", "run.mcap", "--layouts"]).assert().code(2).stdout("").stderr(said);
    // Which it does.
    taut(&folder, &["export", "foxglove", "run.mcap", "-o", "with.mcap"]).assert().success();
    taut(&folder, &["telemetry", "with.mcap", "--layouts"]).assert().success();
    let layout = std::fs::read_to_string(folder.path().join("with.foxglove.json")).unwrap();
    assert!(layout.contains("/period/") && layout.contains(".duration_us"), "{layout}");
}

/// All that write a recording do it in the same way: beside its place, which is locked, and through links.
#[test]
fn a_recording_that_another_command_writes_is_left_to_it_and_a_link_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("bag.mcap"), bag()).unwrap();
    taut(&folder, &["import", "rosbag2", "bag.mcap", "-o", "run.mcap"]).assert().success();
    std::os::unix::fs::symlink("out.mcap", path("link.mcap")).unwrap();
    let commands =
        [&["import", "rosbag2", "bag.mcap"][..], &["recover", "run.mcap"], &["export", "foxglove", "run.mcap"]];
    let to = |command: &[&'static str], name: &'static str| taut(&folder, &[command, &["-o", name]].concat()).assert();
    for command in commands {
        to(command, "link.mcap").success();
        assert!(path("link.mcap").is_symlink() && path("out.mcap").is_file(), "{command:?}");
    }
    let first = Output::open(&path("out.mcap")).unwrap();
    std::fs::write(first.path(), "half").unwrap();
    let whole = std::fs::read(path("out.mcap")).unwrap();
    for command in commands {
        for name in ["out.mcap", "link.mcap"] {
            let said = format!("{name}: another command writes it; name another file with -o");
            to(command, name).code(2).stderr(predicate::str::contains(said));
            assert_eq!(std::fs::read(first.path()).unwrap(), b"half", "{command:?}");
        }
    }
    drop(first);
    assert_eq!(std::fs::read(path("out.mcap")).unwrap(), whole);
    let mut left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["bag.mcap", "link.mcap", "out.mcap", "run.mcap"]);
}

#[test]
fn lines_without_a_thread_show_none_and_others_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |thread: &str| -> String {
        let line = |id: u64| {
            format!("{{\"id\": {id}, \"stamps\": {{\"a\": {}, \"b\": {}}}{thread}}}\n", id * 20_000, id * 20_000 + 9)
        };
        (1..200).map(line).collect()
    };
    for (thread, shown) in
        [("", None), (", \"thread\": \"control\"", Some("control/")), (", \"tid\": 42", Some("thread/42"))]
    {
        std::fs::write(folder.path().join("lines.jsonl"), lines(thread)).unwrap();
        taut(&folder, &["import", "jsonl", "lines.jsonl", "--unit", "us", "-o", "run.mcap"]).assert().success();
        let threads = report(&folder, "run.mcap")["chains"][0]["points"][0]["threads"].as_array().unwrap().clone();
        assert_eq!(threads.len(), usize::from(shown.is_some()), "{thread}: {threads:?}");
        assert!(shown.is_none_or(|name| threads[0].as_str().unwrap().starts_with(name)), "{thread}: {threads:?}");
    }
}

/// A real trace of ROS 2; its README says whose.
const ROS2_SAMPLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../trace/taut-import/tests/data/ros2-caret-sample/end_to_end_sample");

#[test]
fn a_trace_of_ros_2_is_chains_from_timer_to_callback() {
    let folder = tempfile::tempdir().unwrap();
    let said = predicate::str::contains("wrote run.mcap: ").and(predicate::str::contains("lost:").not());
    taut(&folder, &["import", "ctf", ROS2_SAMPLE, "-o", "run.mcap"]).assert().success().stderr(said);
    let report = report(&folder, "run.mcap");
    let named = |name: &str| report["chains"].as_array().unwrap().iter().find(|chain| chain["name"] == name).unwrap();
    let target = named("/sensor_dummy_node timer 100 ms → /actuator_dummy_node callback /topic4 end");
    // Worked out from babeltrace2's text of the same trace by a script of its own.
    let figures = ["n", "min_ns", "max_ns"].map(|key| target["end_to_end"][key].as_u64().unwrap());
    assert_eq!(figures, [40, 142_554_584, 297_136_775]);
    assert_eq!(target["messages"], 49);
    let timer = &target["points"][0];
    assert_eq!((&timer["name"], &timer["messages"]), (&"/sensor_dummy_node timer 100 ms".into(), &49.into()));
    let way = target["hops"].as_array().unwrap().iter().find(|hop| hop["to"] == "/filter_node callback /topic1");
    assert_eq!(way.unwrap()["from"], "/sensor_dummy_node publish /topic1");
    let mut causes = report["chains"].as_array().unwrap().iter().flat_map(|chain| chain["causes"].as_array().unwrap());
    let executor = causes.find(|share| share["cause"] == "executor").unwrap();
    assert!(
        executor["detail"].as_str().unwrap().starts_with("busy with /message_driven_node callback /"),
        "{executor}"
    );
    let age = &report["histograms"][0];
    assert!(age["name"].as_str().unwrap().starts_with("data age, /"), "{age}");
    taut(&folder, &["report", "run.mcap"]).assert().success().stdout(predicate::str::contains("no kernel events"));
}

#[test]
fn each_kind_refuses_the_others_files_in_one_line_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("perfetto", &b"\x0a\x10\x08\x01\x12\x0c"[..]),
        ("ros1.bag", b"#ROSBAG V2.0\n"),
        ("trace.json", b"{\"traceEvents\": []}\n"),
        ("status.txt", b"T: 0 ( 3431) P:80 I:1000 C: 100000 Min: 5\n"),
        ("empty", b""),
    ] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    for (kind, name, remedy) in [
        ("chrome", "perfetto", "traceconv json"),
        ("rosbag2", "ros1.bag", "mcap convert"),
        ("mcap", "trace.json", "is no bag"),
        ("jsonl", "trace.json", "taut import chrome"),
        ("cyclictest", "trace.json", "taut import chrome"),
        ("cyclictest", "status.txt", "-h 1000"),
        ("hlog", "trace.json", "is no HdrHistogram interval log"),
        ("jsonl", "empty", "holds no data"),
        ("mcap", "empty", "is no bag"),
        ("chrome", ".", "is a folder; name a file"),
        ("rosbag2", ".", "neither metadata.yaml"),
    ] {
        let line = predicate::function(|e: &str| e.lines().count() == 1).and(predicate::str::contains(remedy));
        taut(&folder, &["import", kind, name, "-o", "run.mcap"]).assert().code(2).stderr(line);
        assert!(!folder.path().join("run.mcap").exists());
    }
    taut(&folder, &["import", "jsonl", "empty", "--unit", "years"])
        .assert()
        .code(2)
        .stderr(predicate::str::contains("name one of s, ms, us and ns"));
}

#[test]
fn a_recording_is_not_imported_and_nothing_is_imported_onto_itself() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("robot.log"), log()).unwrap();
    taut(&folder, &["import", "mjlib", "robot.log"]).assert().success();
    taut(&folder, &["import", "mcap", "robot.mcap"])
        .assert()
        .code(2)
        .stderr(predicate::str::contains("is a recording of taut's; `taut report` reads it as it is"));
    taut(&folder, &["import", "mcap", "robot.mcap", "-o", "robot.mcap"])
        .assert()
        .code(2)
        .stderr(predicate::str::contains("onto itself"));
    assert!(!folder.path().join("robot.taut.mcap").exists());
}
