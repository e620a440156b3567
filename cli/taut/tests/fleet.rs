//! `taut fleet` as a process: what `add` writes and refuses. What is asked of a fleet is Python's: python/tests/test_fleet.py.

use std::path::PathBuf;

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use taut_clock::{ClockPair, Counter, Ticks};
use taut_recording::{Ending, Info, Name, Record, StampBatch, Writer};

/// 2026-11-22 23:59:59 UTC.
const START: u64 = 1_795_391_999_000_000_000;
const ADD: [&str; 7] = ["fleet", "add", "run.mcap", "--into", "fleet", "--robot", "arm-7"];

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Messages over two points, 1 ms apart.
    fn recording(&self, name: &str, messages: u64, info: &Info) {
        let mut writer = Writer::create(&self.path(name), info).unwrap();
        for (id, name) in [(1, "a.read"), (2, "a.written")] {
            writer.write(&Record::Name(Name { id, name: name.into() })).unwrap();
        }
        for at in [0, 100_000_000_000] {
            let pair = ClockPair { ticks: Ticks(at), monotonic_ns: at, realtime_ns: START + at, window_ticks: 30 };
            writer.write(&Record::Clock(Counter::Tsc, pair)).unwrap();
        }
        let mut batch = StampBatch { pid: 1, tid: 1, counter: 1, ..StampBatch::default() };
        for id in 0..messages {
            for (point, after) in [(1, 0), (2, 1_000_000)] {
                batch.ticks.push(1_000_000 + id * 20_000_000 + after);
                batch.message_id.push(id);
                batch.point.push(point);
                batch.kind.push(1);
                batch.value.push(0);
            }
        }
        writer.write(&Record::Stamps(batch)).unwrap();
        writer.finish(&Ending { end_monotonic_ns: 41_000_000_000, ..Ending::default() }).unwrap();
    }

    fn taut(&self, arguments: &[&str]) -> assert_cmd::assert::Assert {
        assert_cmd::Command::new(cargo_bin!("taut")).args(arguments).current_dir(self.0.path()).assert()
    }

    /// One line on stderr that holds `text`, exit code 2, and no fleet.
    fn refuses(&self, arguments: &[&str], text: &str) {
        self.taut(arguments).code(2).stdout("").stderr(
            predicate::str::contains(text.to_owned()).and(predicate::function(|e: &str| e.lines().count() == 1)),
        );
        assert!(!self.path("fleet").exists(), "{arguments:?}");
    }

    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.path("fleet")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => files.push(entry.path().strip_prefix(self.0.path()).unwrap().display().to_string()),
                }
            }
        }
        files.sort();
        files
    }
}

fn info() -> Info {
    Info { start_realtime_ns: START, git_revision: "v1.4-2-gabc".into(), ..Info::default() }
}

#[test]
fn a_run_is_one_file_of_its_day_and_robot_however_often_it_is_added() {
    let folder = Folder::new();
    folder.recording("run.mcap", 500, &info());
    folder.taut(&ADD).success().stdout("").stderr(predicate::str::contains("500 messages of 1 chain"));
    let first = folder.files();
    assert_eq!(first.len(), 1);
    let name = first[0].strip_prefix("fleet/date=2026-11-22/robot=arm-7/").unwrap();
    assert!(name.len() == 32 + ".parquet".len() && name.ends_with(".parquet"), "{name}");
    let bytes = std::fs::read(folder.path(&first[0])).unwrap();
    folder.taut(&ADD).success().stderr(predicate::str::contains("it was there already"));
    assert_eq!((folder.files(), std::fs::read(folder.path(&first[0])).unwrap()), (first, bytes));
    folder.recording("other.mcap", 600, &info());
    let dated = ["fleet", "add", "other.mcap", "--into", "fleet", "--robot", "arm-7", "--date", "2026-11-23"];
    folder.taut(&dated).success();
    assert_eq!(folder.files().len(), 2);
    assert!(folder.path("fleet/date=2026-11-23/robot=arm-7").is_dir());
}

#[test]
fn a_merged_fleet_takes_no_runs() {
    let folder = Folder::new();
    folder.recording("run.mcap", 500, &info());
    for period in ["day", "week", "month"] {
        let name = format!("fleet/date=2026-11-16/merged-by-{period}.parquet");
        std::fs::create_dir_all(folder.path("fleet/date=2026-11-16")).unwrap();
        folder.write(&name, "");
        folder.taut(&ADD).code(2).stdout("").stderr(
            predicate::str::contains(format!("{name}: is of a merged fleet, where runs would count twice"))
                .and(predicate::function(|e: &str| e.lines().count() == 1)),
        );
        assert_eq!(folder.files(), std::slice::from_ref(&name));
        std::fs::remove_file(folder.path(&name)).unwrap();
    }
    folder.taut(&ADD).success();
}

#[test]
fn names_from_outside_stay_within_the_folder() {
    let folder = Folder::new();
    folder.recording("run.mcap", 500, &info());
    let long = "x".repeat(101);
    for robot in ["../arm", "a/b", "a=b", ".hidden", "", "arm 7", "arm\n7", "árm", long.as_str()] {
        folder.refuses(
            &["fleet", "add", "run.mcap", "--into", "fleet", "--robot", robot],
            "a robot's name is of letters",
        );
    }
    for date in ["2026-11-31", "2026-1-2", "../2026-11-22", "yesterday", ""] {
        folder.refuses(&[&ADD[..], &["--date", date]].concat(), "write the day like 2026-11-22");
    }
    folder.refuses(&[&ADD[..], &["--revision", "a\u{1b}[2J"]].concat(), "a revision is one line");
    // What goes into a row may be anything else.
    folder.taut(&[&ADD[..], &["--revision", "../'; drop table <b>"]].concat()).success();
    assert_eq!(folder.files().len(), 1);
}

#[test]
fn of_several_runs_all_are_added_or_none() {
    let folder = Folder::new();
    folder.recording("run.mcap", 500, &info());
    folder.recording("undated.mcap", 500, &Info { start_realtime_ns: 0, ..info() });
    folder.recording("unnamed.mcap", 500, &Info { git_revision: String::new(), ..info() });
    folder.recording("empty.mcap", 0, &info());
    folder.write("text.mcap", "not a recording at all, but long enough to be one");
    let with = |other: &'static str| [&ADD[..3], &[other], &ADD[3..]].concat();
    folder.refuses(&with("missing.mcap"), "missing.mcap: No such file");
    folder.refuses(&with("text.mcap"), "text.mcap: is not a recording");
    folder.refuses(&with("empty.mcap"), "empty.mcap: ");
    folder.refuses(&with("undated.mcap"), "undated.mcap: does not say when it was made; give its day with --date");
    folder.refuses(&with("unnamed.mcap"), "unnamed.mcap: was not recorded in a git repository; say what ran");
    folder.taut(&[&with("unnamed.mcap")[..], &["--revision", "v2"]].concat()).success();
    assert_eq!(folder.files().len(), 2);
}

#[test]
fn a_torn_run_is_added_as_far_as_it_goes_and_that_is_said() {
    let folder = Folder::new();
    folder.recording("run.mcap", 500, &info());
    let whole = std::fs::read(folder.path("run.mcap")).unwrap();
    std::fs::write(folder.path("run.mcap"), &whole[..whole.len() - 9]).unwrap();
    folder.taut(&ADD).code(5).stderr(predicate::str::contains("taut: warning: run.mcap: "));
    assert_eq!(folder.files().len(), 1);
}

#[test]
fn without_python_or_its_packages_one_line_says_what_to_get() {
    let folder = Folder::new();
    let asked = |path: &str| {
        let mut command = assert_cmd::Command::new(cargo_bin!("taut"));
        command.args(["fleet", "report", "fleet"]).current_dir(folder.0.path()).env("PATH", path).env("PYTHONPATH", "");
        command.assert().code(2).stdout("")
    };
    asked("/nowhere").stderr(predicate::str::contains("python3: does not start"));
    // A Python that finds nothing but its own library.
    let python =
        std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    let python = String::from_utf8(python.stdout).unwrap();
    folder.write("python3", &format!("#!/bin/sh\nexec {} -I -S \"$@\"\n", python.trim()));
    std::fs::set_permissions(folder.path("python3"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    asked(&format!("{}:/bin:/usr/bin", folder.0.path().display())).stderr(
        predicate::str::contains("-m pip install 'taut-….whl[fleet]'")
            .and(predicate::function(|e: &str| e.lines().count() == 1)),
    );
}
