//! `taut report` as a process: its forms, its configuration, and input that is not what it should be.

use std::path::PathBuf;

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use taut_clock::{ClockPair, Counter, Ticks};
use taut_recording::{Ending, Info, Lost, LostWhat, Name, Record, StampBatch, Writer};

struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with `run.mcap`: 2000 messages over three points, 1 ms and 2 ms apart, of which every tenth is slow.
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.records("run.mcap", "a.planned");
        folder
    }

    /// The same with another name of the point between.
    fn records(&self, file: &str, between: &str) {
        let mut writer = Writer::create(&self.path(file), &Info::default()).unwrap();
        for (id, name) in [(1, "a.read"), (2, between), (3, "a.written"), (4, "applied")] {
            writer.write(&Record::Name(Name { id, name: name.into() })).unwrap();
        }
        for at in [0, 100_000_000_000] {
            let pair = ClockPair { ticks: Ticks(at), monotonic_ns: at, realtime_ns: at, window_ticks: 30 };
            writer.write(&Record::Clock(Counter::Tsc, pair)).unwrap();
        }
        writer.flush_due(1_000_000_000).unwrap();
        let mut batch = StampBatch { pid: 1, tid: 1, counter: 1, ..StampBatch::default() };
        for id in 0..2000u64 {
            let start = 1_000_000 + id * 20_000_000;
            let slow = if id % 10 == 9 { 5_000_000 } else { 0 };
            for (after, point, kind, value) in
                [(0, 1, 1, 0), (1_000_000, 2, 1, 0), (3_000_000 + slow, 3, 1, 0), (3_000_001 + slow, 0, 4, 4)]
            {
                batch.ticks.push(start + after);
                batch.message_id.push(id);
                batch.point.push(point);
                batch.kind.push(kind);
                batch.value.push(value);
            }
        }
        for half in [0..4000, 4000..8000] {
            let half = StampBatch {
                ticks: batch.ticks[half.clone()].to_vec(),
                message_id: batch.message_id[half.clone()].to_vec(),
                point: batch.point[half.clone()].to_vec(),
                kind: batch.kind[half.clone()].to_vec(),
                value: batch.value[half].to_vec(),
                ..batch
            };
            let at_ns = half.ticks[half.ticks.len() - 1];
            writer.write(&Record::Stamps(half)).unwrap();
            writer.flush_due(at_ns + 1_000_000_000).unwrap();
        }
        writer.finish(&Ending { end_monotonic_ns: 41_000_000_000, ..Ending::default() }).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn taut(&self, arguments: &[&str]) -> assert_cmd::assert::Assert {
        assert_cmd::Command::new(cargo_bin!("taut")).args(arguments).current_dir(self.0.path()).assert()
    }

    /// One line on stderr that holds `text`, nothing on stdout, exit code 2.
    fn refuses(&self, arguments: &[&str], text: &str) {
        self.taut(arguments).code(2).stdout("").stderr(
            predicate::str::contains(text.to_owned()).and(predicate::function(|e: &str| e.lines().count() == 1)),
        );
    }
}

#[test]
fn the_figures_are_the_recordings() {
    let folder = Folder::new();
    let output = folder.taut(&["report", "run.mcap", "--format", "json"]).success().get_output().stdout.clone();
    let report: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let chain = &report["chains"][0];
    assert_eq!(chain["end_to_end"]["p50_ns"], 3_000_000);
    assert_eq!(chain["end_to_end"]["p95_ns"], 8_000_000);
    assert_eq!(chain["end_to_end"]["p999_ns"], serde_json::Value::Null, "two messages lie beyond: too few to name it");
    assert_eq!(chain["end_to_end"]["max_ns"], 8_000_000);
    assert_eq!(chain["hops"][0]["p50_ns"], 1_000_000);
    assert_eq!(chain["outcomes"]["applied"], 2000);
    assert_eq!(report["recording"]["clock_error_ns"], 15.0);
}

/// As `make demo` does with two arrangements of one program.
#[test]
fn two_recordings_of_other_points_are_compared_at_those_of_both() {
    let folder = Folder::new();
    folder.records("other.mcap", "b.planned");
    let said = "pass different points: they are compared at the 2 that both pass";
    for command in ["report", "compare"] {
        let compared = folder.taut(&[command, "run.mcap", "other.mcap", "--format", "json"]).success();
        let output = &compared.get_output().stdout;
        let compared: serde_json::Value = serde_json::from_slice(output).unwrap();
        assert_eq!(compared["comparison"]["chains"][0]["name"], "a.read → a.written");
        folder.taut(&[command, "run.mcap", "other.mcap"]).success().stdout(predicate::function(move |text: &str| {
            text.split_whitespace().collect::<Vec<_>>().join(" ").contains(said)
        }));
    }
}

#[test]
fn every_form_names_the_chain() {
    let folder = Folder::new();
    for format in ["terminal", "markdown", "json", "html"] {
        folder
            .taut(&["report", "run.mcap", "--format", format])
            .success()
            .stdout(predicate::str::contains("a.written"));
    }
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let folder = Folder::new();
    folder.taut(&["report", "run.mcap", "--format", "html", "-o", "page.html"]).success().stdout("");
    assert!(std::fs::read_to_string(folder.path("page.html")).unwrap().ends_with("</html>\n"));
    folder.refuses(&["report", "run.mcap", "-o", "no/such/folder.txt"], "no/such/folder.txt");
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 2, "nothing half-written is left");
}

#[test]
fn a_declared_chain_has_its_name_and_deadline() {
    let folder = Folder::new();
    std::fs::write(folder.path("taut.toml"), "[[chain]]\nname='plan'\npoints=['a.read','a.written']\ndeadline_ms=5\n")
        .unwrap();
    let output = folder.taut(&["report", "run.mcap", "--format", "json"]).success().get_output().stdout.clone();
    let report: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(report["chains"][0]["name"], "plan");
    assert_eq!(report["chains"][0]["missed"], 200);
    std::fs::write(folder.path("taut.toml"), "[[chain]]\npoints=['a.raed','a.written']\n").unwrap();
    folder.refuses(&["report", "run.mcap"], "did you mean \"a.read\"?");
}

#[test]
fn bad_input_is_one_line_that_names_the_file() {
    let folder = Folder::new();
    let whole = std::fs::read(folder.path("run.mcap")).unwrap();
    std::fs::write(folder.path("short.mcap"), &whole[..100]).unwrap();
    std::fs::write(folder.path("empty.mcap"), "").unwrap();
    std::fs::write(folder.path("text.mcap"), "not a recording at all, but long enough to be one").unwrap();
    folder.refuses(&["report", "missing.mcap"], "missing.mcap: No such file");
    folder.refuses(&["report", "short.mcap"], "short.mcap: ends after 100 bytes");
    folder.refuses(&["report", "empty.mcap"], "empty.mcap: is empty");
    folder.refuses(&["report", "text.mcap"], "text.mcap: is not a recording");
    folder.refuses(&["report", "."], ".: is a folder");
    folder.refuses(&["recover", "text.mcap", "-o", "clean.mcap"], "text.mcap: is not a recording");
    assert!(!folder.path("clean.mcap").exists());
    let nothing = Writer::create(&folder.path("nothing.mcap"), &Info::default()).unwrap();
    nothing.finish(&Ending::default()).unwrap();
    folder.refuses(&["report", "nothing.mcap"], "nothing.mcap: holds no stamps, no telemetry and no histograms");
}

#[test]
fn telemetry_without_a_stamp_is_shown() {
    let folder = Folder::new();
    let info = Info { start_monotonic_ns: 1_000_000_000, start_realtime_ns: 5_000_000_000, ..Info::default() };
    let mut writer = Writer::create(&folder.path("log.mcap"), &info).unwrap();
    let leg = writer.channel("/telemetry/leg", "telemetry/msg/Leg", "float64[2] position # rad\n").unwrap();
    // 400 Hz for 2.5 s; the recorder missed ten in the middle.
    for n in (0..1000).filter(|n| !(500..510).contains(n)) {
        let time_ns = 1_000_000_000 + n * 2_500_000;
        writer.message(leg, time_ns, n as u32, |out| out.extend([0; 20])).unwrap();
        writer.flush_due(time_ns).unwrap();
    }
    let lost = Lost { what: LostWhat::Telemetry, count: 10, place: "7/leg".into(), ..Lost::default() };
    writer.write(&Record::Lost(lost)).unwrap();
    writer.finish(&Ending { end_monotonic_ns: 3_500_000_000, ..Ending::default() }).unwrap();
    // Data was lost.
    let output = folder.taut(&["report", "log.mcap", "--format", "json"]).code(5).get_output().stdout.clone();
    let report: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let told = &report["telemetry"][0];
    assert_eq!((&told["topic"], &told["type"]), (&"/telemetry/leg".into(), &"telemetry/msg/Leg".into()));
    assert_eq!((&told["messages"], &told["values"], &told["lost"]), (&990.into(), &2.into(), &10.into()));
    assert_eq!(told["gaps"], serde_json::json!({ "count": 1, "messages": 10 }));
    assert_eq!((&told["period"]["p50_ns"], &told["period"]["max_ns"]), (&2_500_000.into(), &27_500_000.into()));
    assert_eq!((&report["recording"]["lost_telemetry"], &report["chains"]), (&10.into(), &serde_json::json!([])));
    for format in ["terminal", "markdown", "html"] {
        let shown = predicate::str::contains("/telemetry/leg").and(predicate::str::contains("Nothing was stamped"));
        folder.taut(&["report", "log.mcap", "--format", format]).code(5).stdout(shown);
    }
    folder.taut(&["explain", "log.mcap"]).code(5);
}

#[test]
fn damage_is_said_and_has_its_exit_code() {
    let folder = Folder::new();
    let mut bytes = std::fs::read(folder.path("run.mcap")).unwrap();
    // Chunks in the order of Folder::new: the head, names and clock, then two of stamps.
    let mut frames = (0..bytes.len() - 4).filter(|at| bytes[*at..*at + 4] == [0x28, 0xb5, 0x2f, 0xfd]);
    let first_stamps = frames.nth(2).unwrap();
    bytes[first_stamps + 20] ^= 0xff;
    std::fs::write(folder.path("damaged.mcap"), bytes).unwrap();
    folder.taut(&["report", "damaged.mcap"]).code(5).stdout(predicate::str::contains("fails its checksum"));
}

#[test]
fn help_has_an_example() {
    let folder = Folder::new();
    for command in ["record", "report", "recover"] {
        folder.taut(&[command, "--help"]).success().stdout(predicate::str::contains("Example"));
    }
}

/// Sums of floats depend on their order, and that of a hash map differs from run to run.
#[test]
fn two_reports_of_one_recording_are_equal_to_the_last_digit() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../explain/taut-analysis/tests/data/mixed.mcap");
    let report = || {
        let mut command = assert_cmd::Command::new(cargo_bin!("taut"));
        command.args(["report", "--format", "json", recording]).output().unwrap().stdout
    };
    let first = report();
    assert!(!first.is_empty());
    for _ in 0..8 {
        assert!(report() == first, "another report of the same recording");
    }
}
