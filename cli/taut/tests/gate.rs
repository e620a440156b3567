//! `taut gate` and `taut compare` as processes: on stored trials of known truth, and on small programs that really run.

use std::path::{Path, PathBuf};

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use rand::SeedableRng;
use serde_json::Value;
use taut_skip::{Need, skip};

mod folder;
#[path = "../../../gate/taut-gate/tests/made/mod.rs"]
mod made;

use folder::{Folder, until};
use made::Made;

/// A loop of two hops: argv[1] and argv[2] thousand rounds of work, argv[3] messages.
const LOOP: &str = r#"
#include "taut.h"
static volatile double sink;
static void work(int rounds) { double x = 1; for (int i = 0; i < rounds * 1000; i++) x = x * 1.0000001 + 1e-9; sink = x; }
int main(int argc, char **argv) {
  const int first = argc > 1 ? atoi(argv[1]) : ROUNDS, second = argc > 2 ? atoi(argv[2]) : 40;
  const uint64_t n = argc > 3 ? strtoull(argv[3], NULL, 10) : 120;
  for (uint64_t id = 1; id <= n; id++) {
    TAUT_STAMP("loop.read", id);
    work(first);
    TAUT_STAMP("loop.planned", id);
    work(second);
    TAUT_STAMP("loop.written", id);
    usleep(100);
  }
  return 0;
}
"#;

impl Folder {
    fn taut(&self, arguments: &[&str]) -> assert_cmd::assert::Assert {
        let mut command = assert_cmd::Command::new(cargo_bin!("taut"));
        command.args(arguments).current_dir(self.0.path()).env_remove("TAUT_SESSION").assert()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.taut(&[arguments, &["--format", "json"]].concat()).get_output().clone();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Exit code and result of a gate that runs programs, asked again while the machine may have kept it from its verdict, or for the tenth time:
    /// a busy one loses events and holds programs up. `before` each of them.
    fn asked(&self, arguments: &[&str], before: impl Fn(), is_held_up: impl Fn(&Value) -> bool) -> (i32, Value) {
        let ask = || {
            before();
            let output = self.taut(&[arguments, &["--format", "json"]].concat()).get_output().clone();
            let said = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
            (output.status.code().unwrap(), said)
        };
        for _ in 0..9 {
            let (code, said) = ask();
            if !is_held_up(&said) {
                return (code, said);
            }
        }
        ask()
    }

    /// That a program is not worse than itself. One gate of a hundred may say so wrongly, by what it promises: not three in a row.
    fn is_not_worse(&self, arguments: &[&str], before: impl Fn()) -> Value {
        let ask = || {
            before();
            self.json(arguments)
        };
        let said = (0..2).map(|_| ask()).find(|said| said["verdict"] != "worse").unwrap_or_else(ask);
        assert_ne!(said["verdict"], "worse", "{said}");
        said
    }

    /// So many trials in turns with those of the same name's other side.
    fn set(&self, name: &str, made: &Made, trials: usize, seed: u64, at_unix_s: f64) {
        let mut random = SeedableRng::seed_from_u64(seed);
        let mut lines = String::new();
        for at in 0..trials {
            let mut trial = made.trial(&mut random);
            trial.started_unix_s = at_unix_s + at as f64;
            trial.revision = name.to_owned();
            lines += &format!("{}\n", serde_json::to_string(&trial).unwrap());
        }
        self.write(name, &lines);
    }

    /// A and the B that is asked for, thirty trials each.
    fn sets(&self, b: &Made) {
        self.set("a.jsonl", &Made::default(), 30, 1, 1000.0);
        self.set("b.jsonl", b, 30, 2, 1000.5);
    }

    /// The loop of these rounds, built.
    fn build(&self, rounds: u32) {
        self.write("loop.c", &LOOP.replace("ROUNDS", &rounds.to_string()));
        self.write("build.sh", &format!("gcc -std=c11 -O1 -pthread -I {} loop.c -o loop\n", include().display()));
        assert!(self.sh("sh build.sh").status.success());
    }

    /// [`LAPSES`], built.
    fn lapses(&self) {
        self.write("lapses.c", LAPSES);
        let build = format!("gcc -std=c11 -O1 -pthread -I {} lapses.c -o lapses", include().display());
        assert!(self.sh(&build).status.success());
    }

    fn sh(&self, line: &str) -> std::process::Output {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", line]).current_dir(self.0.path()).output().unwrap()
    }

    /// A repository of two revisions of the loop, of these rounds.
    fn commit(&self, old: u32, new: u32) {
        let git = "git -c user.name=t -c user.email=t@example.com -c commit.gpgsign=false";
        self.build(old);
        std::fs::remove_file(self.path("loop")).unwrap();
        assert!(self.sh(&format!("git init -q . && git add . && {git} commit -qm one")).status.success());
        self.write("loop.c", &LOOP.replace("ROUNDS", &new.to_string()));
        assert!(self.sh(&format!("{git} commit -q --allow-empty -am two")).status.success());
    }

    /// Interrupts a gate once this file is there, which what it runs has written its process number to; says what it said.
    fn interrupted(&self, arguments: &[&str], by: i32) -> String {
        std::fs::create_dir_all(self.path("tmp")).unwrap();
        let mut gate = std::process::Command::new(cargo_bin!("taut"));
        gate.args(arguments).current_dir(self.0.path()).env_remove("TAUT_SESSION").env("TMPDIR", self.path("tmp"));
        let gate = gate.stderr(std::process::Stdio::piped()).spawn().unwrap();
        until("what is to be interrupted", || self.read("pid").ends_with('\n'));
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(gate.id() as i32, by) };
        let output = gate.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + by));
        let pid = self.read("pid");
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} goes on");
        std::fs::remove_file(self.path("pid")).unwrap();
        assert_eq!(std::fs::read_dir(self.path("tmp")).unwrap().count(), 0, "left in TMPDIR");
        assert_eq!(self.trees(), 1);
        String::from_utf8(output.stderr).unwrap()
    }

    /// Work trees that git knows.
    fn trees(&self) -> usize {
        String::from_utf8(self.sh("git worktree list").stdout).unwrap().lines().count()
    }
}

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include").canonicalize().unwrap()
}

/// Where one program is far slower than the other, only the machine can be the reason.
fn has_no_verdict(said: &Value) -> bool {
    said["verdict"] == "not enough evidence" || said["verdict"] == "invalid"
}

const STORED: [&str; 5] = ["gate", "--baseline", "a.jsonl", "--candidate", "b.jsonl"];

fn slower() -> Made {
    Made { work_ns: [4e4, 1.2e5, 6e4], ..Made::default() }
}

#[test]
fn a_slower_program_fails_and_every_form_names_the_hop() {
    let folder = Folder::new();
    folder.sets(&slower());
    let files = ["--markdown", "gate.md", "--json", "gate.json", "--junit", "gate.xml", "--html", "gate.html"];
    let line = predicate::str::is_match("(?m)^WORSE: plan → send, work p50 \\+(19|20|21)").unwrap();
    folder.taut(&[&STORED[..], &files].concat()).code(1).stdout(line);
    assert!(folder.read("gate.md").starts_with("<!-- taut gate -->\n### gate\n\nWORSE: plan → send, work p50"));
    let json: Value = serde_json::from_str(&folder.read("gate.json")).unwrap();
    assert_eq!(
        (&json["verdict"], &json["hop"], &json["kind"]),
        (&"worse".into(), &"plan → send".into(), &"gate".into())
    );
    let junit = folder.read("gate.xml");
    assert!(
        junit.starts_with("<?xml") && junit.contains("<failure") && junit.contains("WORSE: plan → send"),
        "{junit}"
    );
    assert!(folder.read("gate.html").contains("WORSE: plan → send"));
}

#[test]
fn the_same_program_and_a_busier_machine_pass() {
    let folder = Folder::new();
    folder.sets(&Made::default());
    folder.taut(&STORED).success().stdout(predicate::str::contains("\nNOT WORSE: no relevant difference"));
    folder.sets(&Made { machine: (0.3, 2e6), ..Made::default() });
    folder.taut(&STORED).success().stdout(
        predicate::str::contains("\nNOT WORSE").and(predicate::str::contains("the machine took more of B's messages")),
    );
}

#[test]
fn no_verdict_passes_loudly_unless_told_otherwise() {
    let folder = Folder::new();
    folder.set("a.jsonl", &Made::default(), 8, 1, 1000.0);
    folder.set("b.jsonl", &slower(), 8, 2, 1000.5);
    folder.taut(&STORED).success().stdout(predicate::str::contains("\nINCONCLUSIVE, which does not fail"));
    let strict = [&STORED[..], &["--inconclusive", "fail"]].concat();
    folder.taut(&strict).code(4).stdout(predicate::str::contains("\nINCONCLUSIVE, which fails here"));
}

#[test]
fn sessions_of_different_days_and_machines_are_told_apart() {
    let folder = Folder::new();
    let a_little = Made { work_ns: [4e4, 1.07e5, 6e4], ..Made::default() };
    folder.sets(&a_little);
    folder.taut(&STORED).code(1);
    folder.set("b.jsonl", &a_little, 30, 2, 900_000.0);
    folder.taut(&STORED).success().stdout(predicate::str::contains("A and B ran one after the other"));
    let elsewhere = folder.read("b.jsonl").replace("\"cpus\":0", "\"cpus\":64");
    folder.write("b.jsonl", &elsewhere);
    folder.taut(&STORED).code(4).stdout(predicate::str::contains("\nINVALID: A and B ran on"));
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let folder = Folder::new();
    folder.write("odd.jsonl", "{\"name\": 1}\n");
    folder.write("empty.jsonl", "\n");
    folder.write("bad.toml", "[gate]\nmetrics = [\"p50\"]\n");
    std::fs::create_dir(folder.path("nothing")).unwrap();
    folder.sets(&Made::default());
    for (arguments, expected) in [
        (&["gate"][..], "nothing to compare"),
        (&["gate", "--baseline", "odd.jsonl", "--candidate", "a.jsonl"], "odd.jsonl: line 1 is no trial"),
        (&["gate", "--baseline", "empty.jsonl", "--candidate", "a.jsonl"], "empty.jsonl: holds no trial"),
        (&["gate", "--baseline", "nothing", "--candidate", "a.jsonl"], "nothing: holds no recording"),
        (&["gate", "--baseline", "absent.mcap", "--candidate", "a.jsonl"], "absent.mcap"),
        (&["gate", "--a", "true"], "--b"),
        (&["gate", "--a", "true", "--b", "true"], "(true)"),
        (&["gate", "--a", "exit 3", "--b", "exit 3"], "exit code 3"),
        (&["gate", "--metric", "p50", "--a", "true", "--b", "true"], "is no metric"),
        (&["gate", "--config", "bad.toml", "--a", "true", "--b", "true"], "bad.toml: line 2"),
        (&["gate", "--limits", "--b", "true"], "taut.toml has none"),
        (&["gate", "--history", "nothing"], "nothing: holds no history"),
        (&["compare", "a.jsonl", "absent.jsonl"], "absent.jsonl"),
    ] {
        let output = folder.taut(arguments).code(2).get_output().clone();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(expected) && said.trim_end().lines().count() == 1, "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn compare_shows_what_changed_and_fails_nothing() {
    let folder = Folder::new();
    folder.sets(&slower());
    folder.taut(&["compare", "a.jsonl", "b.jsonl"]).success().stdout(predicate::str::contains("\nWORSE: plan → send"));
    folder.set("one.jsonl", &Made::default(), 1, 1, 1000.0);
    folder.set("other.jsonl", &slower(), 1, 2, 1000.5);
    let said = folder.json(&["compare", "one.jsonl", "other.jsonl"]);
    assert_eq!((&said["kind"], &said["verdict"]), (&"compare".into(), &"not enough evidence".into()));
    assert!(said["notes"].to_string().contains("one recording only"), "{said}");
    let hop = &said["hops"][1];
    assert!(hop["own"]["change_ns"].as_f64().unwrap() > 15_000.0 && hop["own"]["change_low_ns"].is_null(), "{hop}");
}

#[test]
fn limits_are_kept_broken_or_open() {
    let folder = Folder::new();
    folder.sets(&Made::default());
    let limit = |max_ms: f64| {
        folder.write(
            "taut.toml",
            &format!(
                "[[chain]]\nname = \"arm\"\npoints = [\"read\", \"plan\", \"send\", \"applied\"]\ndropped_max_percent = 1\n\
                 [[chain.limit]]\nhop = \"plan → send\"\nfigure = \"own.p50\"\nmax_ms = {max_ms}\n"
            ),
        );
    };
    let arguments = ["gate", "--limits", "--candidate", "a.jsonl"];
    limit(0.2);
    folder.taut(&arguments).success().stdout(predicate::str::contains("\nWITHIN LIMITS: all 2 limits kept"));
    limit(0.05);
    let junit = [&arguments[..], &["--junit", "limits.xml"]].concat();
    folder.taut(&junit).code(1).stdout(predicate::str::contains("\nOVER THE LIMIT: arm: plan → send, own p50 105 µs"));
    assert!(folder.read("limits.xml").contains("<failure"));
    folder.set("a.jsonl", &Made::default(), 3, 1, 0.0);
    folder.taut(&arguments).code(4).stdout(predicate::str::contains("\nINCONCLUSIVE, exit code 4, after 3 trials"));
}

/// A loop that aborts now and then: `count` keeps how often it ran.
const ABORTS: &str = r#"
#include "taut.h"
#include <stdio.h>
static volatile double sink;
int main(int argc, char **argv) {
  const int one_in = argc > 1 ? atoi(argv[1]) : 0;
  int runs = 0;
  FILE *count = fopen(argc > 2 ? argv[2] : "count", "r");
  if (count) { if (fscanf(count, "%d", &runs) != 1) runs = 0; fclose(count); }
  count = fopen(argc > 2 ? argv[2] : "count", "w");
  fprintf(count, "%d\n", runs + 1);
  fclose(count);
  for (uint64_t id = 1; id <= 120; id++) {
    TAUT_STAMP("loop.read", id);
    double x = 1;
    for (int i = 0; i < 20000; i++) x = x * 1.0000001 + 1e-9;
    sink = x;
    TAUT_STAMP("loop.written", id);
    if (one_in && runs % one_in == one_in - 1 && id == 60) {
      fprintf(stderr, "loop: reading the joints\nloop: assertion failed: joint 3 is nan\n");
      abort();
    }
    usleep(100);
  }
  return 0;
}
"#;

#[test]
fn a_candidate_that_aborts_now_and_then_fails_the_gate() {
    let folder = Folder::new();
    folder.write("aborts.c", ABORTS);
    let build = format!("gcc -std=c11 -O1 -pthread -I {} aborts.c -o aborts", include().display());
    assert!(folder.sh(&build).status.success());
    let run = ["gate", "--quiet", "--no-wakeup", "--pairs", "16", "--junit", "gate.xml", "--markdown", "gate.md"];
    let b = [&run[..], &["--a", "./aborts 0 a", "--b", "./aborts 7 b", "--format", "json"]].concat();
    let output = folder.taut(&b).code(1).get_output().clone();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let headline = said["headline"].as_str().unwrap();
    assert!(headline.starts_with("WORSE: B failed in "), "{headline}");
    assert!(headline.contains("signal 6 (SIGABRT): ") && headline.contains("joint 3 is nan"), "{headline}");
    let failed = &said["failed_runs"];
    assert_eq!((&failed["a"]["failed"], &failed["is_worse"]), (&0.into(), &true.into()), "{failed}");
    assert!(failed["b"]["output"].to_string().contains("reading the joints"), "{failed}");
    assert!(folder.read("gate.xml").contains("name=\"failed runs\"") && folder.read("gate.md").contains("SIGABRT"));
    // Both sides alike: that is not the candidate's.
    let anew = || ["a", "b"].iter().for_each(|count| std::fs::remove_file(folder.path(count)).unwrap());
    let both = [&run[..], &["--a", "./aborts 6 a", "--b", "./aborts 6 b"]].concat();
    let said = folder.is_not_worse(&both, anew);
    assert!(said["failed_runs"]["a"]["failed"].as_u64().unwrap() > 0, "{said}");
}

/// Sound runs, and three failures behind what the times need.
#[test]
fn a_failure_behind_the_last_look_at_stored_trials_is_counted() {
    let folder = Folder::new();
    folder.set("a.jsonl", &Made::default(), 30, 1, 0.0);
    folder.set("b.jsonl", &Made::default(), 30, 2, 0.5);
    let run = ["gate", "--baseline", "a.jsonl", "--candidate", "b.jsonl"];
    folder.taut(&run).code(0);
    let mut lines: Vec<Value> =
        folder.read("b.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for at in [26, 28, 29] {
        lines[at]["void"] =
            serde_json::json!({ "why": "failed", "failure": { "how": "signal 6 (SIGABRT)", "said": [] } });
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    folder.write("b.jsonl", &text);
    folder.taut(&run).code(1).stdout(predicate::str::contains("\nWORSE: B failed in 3 of 30 runs"));
    // More runs than make pairs.
    folder.set("a.jsonl", &Made::default(), 14, 1, 0.0);
    folder.taut(&run).code(1).stdout(predicate::str::contains("\nWORSE: B failed in 3 of 30 runs"));
}

/// A shell that is ended with its program says nothing of how that ended.
#[test]
fn a_candidate_that_crashes_when_it_is_ended_fails_the_gate() {
    let folder = Folder::new();
    folder.build(20);
    let crashes = format!("#include <signal.h>\nstatic void stop(int signal) {{ abort(); }}\n{LOOP}")
        .replace("ROUNDS", "20")
        .replace("char **argv) {", "char **argv) {\n  signal(SIGTERM, stop);");
    folder.write("crashes.c", &crashes);
    let build = format!("gcc -std=c11 -D_DEFAULT_SOURCE -O1 -pthread -I {} crashes.c -o crashes", include().display());
    assert!(folder.sh(&build).status.success());
    let run = ["gate", "--quiet", "--no-wakeup", "--pairs", "4", "--duration", "300ms"];
    let sides = ["--a", "./loop 20 40 100000000", "--b", "./crashes 20 40 100000000; true"];
    let output = folder.taut(&[&run[..], &sides].concat()).code(1).get_output().clone();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("\nWORSE: B failed in ") && said.contains("SIGABRT"), "{said}");
}

#[test]
fn the_length_of_a_trial_counts_from_the_first_stamp() {
    let folder = Folder::new();
    folder.build(20);
    folder.write("late", "#!/bin/sh\nsleep 1\nexec ./loop 20 40 100000000\n");
    assert!(folder.sh("chmod +x late").status.success());
    let sides = ["gate", "--a", "./late", "--b", "./late", "--pairs", "2", "--duration", "300ms"];
    // A trial that lacks events is void; of few events none is lost.
    let said = folder.json(&[&sides[..], &["--quiet", "--no-wakeup", "--depth", "sched"]].concat());
    for side in ["a", "b"] {
        assert_eq!(said["failed_runs"][side]["failed"], 0, "{said}");
    }
    assert_eq!((&said["verdict"], &said["pairs"]), (&"not enough evidence".into(), &2.into()), "{said}");
}

#[test]
fn every_chain_is_held_against_its_own_limits() {
    let folder = Folder::new();
    folder.build(20);
    let chain = |name: &str, points: &str, max_ms: &str| {
        format!(
            "[[chain]]\nname = \"{name}\"\npoints = [{points}]\n[[chain.limit]]\nfigure = \"own.p50\"\nmax_ms = {max_ms}\n"
        )
    };
    let first = chain("first", "\"loop.read\", \"loop.planned\"", "1000");
    let second = chain("second", "\"loop.planned\", \"loop.written\"", "0.000001");
    folder.write("taut.toml", &format!("{first}{second}"));
    // A trial that lacks events is void; of few events none is lost.
    let run = ["gate", "--limits", "--b", "./loop", "--quiet", "--no-wakeup", "--depth", "sched"];
    folder.taut(&run).code(1).stdout(predicate::str::contains("\nOVER THE LIMIT: second: whole way, own p50"));
    let one = |chain| [&run[..], &["--chain", chain]].concat();
    folder.taut(&one("first")).success().stdout(predicate::str::contains("\nWITHIN LIMITS: all 1 limit kept"));
    folder.taut(&one("third")).code(2).stderr(predicate::str::contains("none for the chain \"third\""));
}

#[test]
fn one_long_recording_is_enough_for_a_limit_that_it_breaks_often() {
    let folder = Folder::new();
    folder.build(20);
    let points = "points = [\"loop.read\", \"loop.written\"]";
    folder.write(
        "taut.toml",
        &format!("[[chain]]\nname = \"loop\"\n{points}\ndeadline_ms = 0.0001\nmissed_max_percent = 1\n"),
    );
    let record = format!("{} record -q -o one.mcap -- ./loop 20 40 400", cargo_bin!("taut").display());
    assert!(folder.sh(&record).status.success());
    let held = ["gate", "--limits", "--candidate", "one.mcap"];
    let said = folder.json(&held);
    assert_eq!((&said["trials"], &said["limits"][0]["messages"]["bursts"]), (&1.into(), &1.into()), "{said}");
    folder.taut(&held).code(1).stdout(predicate::str::contains("\nOVER THE LIMIT: loop: missed deadlines 100.00 %"));
}

#[test]
fn the_history_names_the_revision() {
    let folder = Folder::new();
    for at in 0..16 {
        let made = if at < 9 { Made::default() } else { slower() };
        let name = format!("r{at:02}");
        folder.set("today.jsonl", &made, 3, at, 1000.0 * at as f64);
        let add = ["gate", "--history", "history", "--candidate", "today.jsonl", "--revision", &name];
        folder.taut(&add).success();
    }
    assert_eq!(std::fs::read_dir(folder.path("history")).unwrap().count(), 16);
    let said = folder.json(&["gate", "--history", "history", "--html", "history.html"]);
    let lines = said["lines"].as_array().unwrap();
    let changes = |hop: &str| {
        let line = lines.iter().find(|l| l["hop"] == hop && l["figure"] == "work.p50").unwrap();
        line["changes"].as_array().unwrap().iter().map(|change| change["to"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(changes("plan → send"), ["r09"]);
    assert!(changes("read → plan").is_empty());
    assert!(folder.read("history.html").contains("<svg"));
}

#[test]
fn two_programs_run_in_turns_and_what_they_left_can_be_read_again() {
    let folder = Folder::new();
    folder.build(20);
    let run = ["--a", "./loop 20 40", "--b", "./loop 20 120", "--pairs", "18", "--quiet", "--no-wakeup"];
    let kept = ["--keep", "runs", "--save", "trials", "--json", "gate.json"];
    let (code, json) = folder.asked(&[&["gate"], &run[..], &kept].concat(), || (), has_no_verdict);
    assert_eq!((code, &json["verdict"]), (1, &"worse".into()), "{json}");
    assert_eq!(json["hop"], "loop.planned → loop.written", "{json}");
    let written: Value = serde_json::from_str(&folder.read("gate.json")).unwrap();
    assert_eq!((&written["verdict"], &written["hop"]), (&json["verdict"], &json["hop"]), "{written}");
    assert_eq!(json["points"], serde_json::json!(["loop.read", "loop.planned", "loop.written"]));
    let runs = std::fs::read_dir(folder.path("runs")).unwrap().count();
    assert!((2 * json["pairs"].as_u64().unwrap() as usize..=36).contains(&runs), "{runs} of at most 18 pairs");
    let again = folder.json(&["compare", "runs/0000-a.mcap", "runs/0000-b.mcap"]);
    assert_eq!(again["pairs"], 1);
    let stored = ["gate", "--baseline", "trials/baseline.jsonl", "--candidate", "trials/candidate.jsonl", "--quiet"];
    /// Whether the program got worse; else the machine did, and what got worse is named and not held against the program.
    fn is_worse(said: &Value) -> bool {
        if said["verdict"] == "worse" {
            return true;
        }
        assert_eq!(
            (&said["machine"]["is_worse"], &said["verdict"]),
            (&true.into(), &"not enough evidence".into()),
            "{said}"
        );
        let decides = said["decides"].as_array().unwrap();
        let is_seen = |figure: &Value| figure["hop"] == 1 && figure["verdict"] == "worse" && figure["excused"] == true;
        assert!(
            decides.iter().any(is_seen) && said["notes"].to_string().contains("cannot be separated from it"),
            "{said}"
        );
        false
    }
    assert!(is_worse(&folder.json(&stored)));
    let now = ["gate", "--baseline", "trials/baseline.jsonl", "--b", "./loop 20 120", "--quiet", "--no-wakeup"];
    let is_held_up = |said: &Value| has_no_verdict(said) && said["machine"]["is_worse"] != true;
    let (_, said) = folder.asked(&now, || (), is_held_up);
    let notes = said["notes"].to_string();
    assert!(notes.contains("A and B ran one after the other"), "{said}");
    // The machine may be busier than when A ran.
    if is_worse(&said) {
        assert_eq!(said["hop"], json["hop"], "{said}");
    }
}

#[test]
fn a_control_runs_first_and_gives_the_noise_floor() {
    let folder = Folder::new();
    folder.build(20);
    let run = [
        "--a",
        "./loop",
        "--b",
        "./loop",
        "--pairs",
        "8",
        "--control",
        "4",
        "--quiet",
        "--no-wakeup",
        "--keep",
        "runs",
    ];
    let said = folder.is_not_worse(&[&["gate"], &run[..]].concat(), || ());
    assert!(said["decides"][0]["noise_floor"].as_f64().unwrap() > 0.0, "{said}");
    let runs = std::fs::read_dir(folder.path("runs")).unwrap().count();
    assert!(runs > 2 * 4 + 2, "{runs}");
    assert!(folder.path("runs/0000-a2.mcap").exists() && folder.path("runs/0004-b.mcap").exists());
    for useless in [&["--baseline", "a.jsonl", "--b", "./loop"][..], &["--limits", "--b", "./loop"]] {
        let said = [&["gate", "--control", "4"], useless].concat();
        folder.taut(&said).code(2).stderr(predicate::str::contains("--control"));
    }
}

#[test]
fn a_program_runs_against_limits_until_they_are_kept_or_broken() {
    let folder = Folder::new();
    folder.build(20);
    let limit = |max_ms: &str| {
        let points = "[\"loop.read\", \"loop.planned\", \"loop.written\"]";
        let hop = "hop = \"loop.planned → loop.written\"\nfigure = \"own.p50\"";
        let text =
            format!("[[chain]]\nname = \"loop\"\npoints = {points}\n[[chain.limit]]\n{hop}\nmax_ms = {max_ms}\n");
        folder.write("taut.toml", &text);
    };
    // A trial that lacks events is void; of few events none is lost.
    let run = ["gate", "--limits", "--b", "./loop", "--quiet", "--no-wakeup", "--depth", "sched"];
    limit("1000");
    let kept = folder.json(&run);
    assert_eq!((&kept["verdict"], &kept["trials"]), (&"kept".into(), &10.into()), "stops when it is sure: {kept}");
    limit("0.000001");
    folder
        .taut(&run)
        .code(1)
        .stdout(predicate::str::contains("\nOVER THE LIMIT: loop: loop.planned → loop.written, own p50"));
}

#[test]
fn an_interrupted_gate_leaves_nothing_behind() {
    let folder = Folder::new();
    folder.commit(20, 20);
    let pid = folder.path("pid");
    let stays = format!("echo $$ > {}; exec sleep 1000", pid.display());
    let revisions = ["gate", "--quiet", "--no-wakeup", "--revisions", "HEAD~1..HEAD"];
    let building = [&revisions[..], &["--run", "./loop", "--build", &stays]].concat();
    assert_eq!(folder.interrupted(&building, libc::SIGINT), "taut: interrupted: no verdict\n");
    let running = [&revisions[..], &["--run", &stays]].concat();
    assert_eq!(folder.interrupted(&running, libc::SIGTERM), "taut: interrupted: no verdict\n");
    // What is half built is not kept either; what is built is.
    let cached = [&building[..], &["--cache", "trees"]].concat();
    folder.interrupted(&cached, libc::SIGHUP);
    assert_eq!(std::fs::read_dir(folder.path("trees")).unwrap().count(), 0);
}

/// Stamps each millisecond until it is ended; its fourth run does what argv[1] names, soon.
const LAPSES: &str = r#"
#include "taut.h"
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  int runs = 0;
  FILE *count = fopen(what, "r");
  if (count) { if (fscanf(count, "%d", &runs) != 1) runs = 0; fclose(count); }
  count = fopen(what, "w");
  fprintf(count, "%d\n", runs + 1);
  fclose(count);
  const int lapses = runs == 3;
  if (lapses && !strcmp(what, "silent")) for (;;) pause();
  if (lapses && !strcmp(what, "halfway")) {
    TAUT_STAMP("loop.read", 1);
    for (;;) pause();
  }
  for (uint64_t id = 1;; id++) {
    TAUT_STAMP("loop.read", id);
    TAUT_STAMP("loop.written", id);
    if (lapses && id == 10 && !strcmp(what, "hangs")) for (;;) pause();
    if (lapses && id == 10 && !strcmp(what, "returns")) return 0;
    usleep(1000);
  }
}
"#;

#[test]
fn a_run_that_hangs_has_failed() {
    has_failed("hangs", "stopped stamping after");
}

#[test]
fn a_run_that_returns_early_has_failed() {
    has_failed("returns", "ended by itself after");
}

#[test]
fn a_run_that_stamps_nothing_has_failed() {
    has_failed("silent", "stopped stamping after 0.0 of");
}

#[test]
fn a_run_that_does_not_get_to_the_end_of_its_chain_has_failed() {
    has_failed("halfway", "stopped stamping after 0.0 of");
}

/// The chain is declared, and one of its points is unknown to the run.
#[test]
fn a_run_that_does_not_get_to_the_end_of_a_declared_chain_breaks_its_limits() {
    let folder = Folder::new();
    let points = "points = [\"loop.read\", \"loop.written\"]";
    folder.write("taut.toml", &format!("[[chain]]\nname = \"loop\"\n{points}\ndropped_max_percent = 50\n"));
    let limits = "gate --quiet --no-wakeup --depth sched --duration 1.5 --limits --b";
    let limits = limits.split(' ').collect::<Vec<_>>();
    folder.lapses();
    let is_open = |said: &Value| said["verdict"] != "kept";
    let (code, said) = folder.asked(&[&limits[..], &["./lapses fine"]].concat(), || (), is_open);
    assert_eq!((code, &said["verdict"]), (0, &"kept".into()), "{said}");
    // A silence of another run, held up by the machine, hides the end of this one or fails that one.
    let anew = || drop(std::fs::remove_file(folder.path("halfway")));
    let how = "stopped stamping after 0.0 of";
    let is_held_up = |said: &Value| !said["headline"].as_str().unwrap().contains(how);
    let (code, said) = folder.asked(&[&limits[..], &["./lapses halfway"]].concat(), anew, is_held_up);
    assert!(code == 1 && said["headline"].as_str().unwrap().contains(how), "{said}");
    // A point that no run stamps is a slip.
    folder.write("taut.toml", &folder.read("taut.toml").replace("loop.written", "loop.wirtten"));
    let slip = folder.taut(&[&limits[..], &["./lapses fine"]].concat());
    slip.code(2).stderr(predicate::str::contains("nothing was stamped at \"loop.wirtten\""));
}

fn has_failed(what: &str, how: &str) {
    let folder = Folder::new();
    folder.lapses();
    // Long beside what a busy machine holds a program up for: a silence is an end where it is several times as long.
    let gate = "gate --quiet --no-wakeup --depth sched --duration 1.5 --pairs 10 --a";
    let programs = ["./lapses fine", "--b", &format!("./lapses {what}")];
    let anew = || drop(std::fs::remove_file(folder.path(what)));
    // A silence of the baseline hides that the candidate hangs; other runs fail, too, or say nothing.
    let is_held_up = |said: &Value| {
        let failed = ["a", "b"].map(|side| said["failed_runs"][side]["failed"].as_u64().unwrap());
        let void = said["void"].as_array().unwrap().len() as u64;
        let is_hidden = said["notes"].to_string().contains("would not count as failed");
        is_hidden || failed[0] > 0 || failed[1] > 1 || void > failed[1]
    };
    let (_, said) = folder.asked(&[&gate.split(' ').collect::<Vec<_>>()[..], &programs].concat(), anew, is_held_up);
    assert_eq!(said["verdict"], "worse", "{what}: {said}");
    let headline = said["headline"].as_str().unwrap();
    assert!(headline.starts_with("WORSE: B failed in 1 of ") && headline.contains(how), "{headline}");
}

#[test]
fn stored_runs_that_crashed_have_failed() {
    let folder = Folder::new();
    folder.build(20);
    std::fs::create_dir(folder.path("good")).unwrap();
    std::fs::create_dir(folder.path("bad")).unwrap();
    let taut = cargo_bin!("taut").display();
    let record =
        |name: &str, line: &str| folder.sh(&format!("{taut} record -q -o {name} -- sh -c '{line}'")).status.code();
    for at in 0..3 {
        assert_eq!(record(&format!("good/{at}.mcap"), "./loop 20 40 60"), Some(0));
    }
    assert_eq!(record("bad/0.mcap", "./loop 20 40 60"), Some(0));
    assert_eq!(record("bad/1.mcap", "./loop 20 40 60; kill -SEGV $$"), Some(139));
    assert_eq!(record("bad/2.mcap", "true"), Some(0));
    let said = folder.json(&["gate", "--baseline", "good", "--candidate", "bad"]);
    assert_eq!((&said["verdict"], &said["failed_runs"]["b"]["failed"]), (&"worse".into(), &2.into()), "{said}");
    assert!(said["headline"].as_str().unwrap().contains("signal 11 (SIGSEGV)"), "{said}");
    let points = "points = [\"loop.read\", \"loop.written\"]";
    folder.write("taut.toml", &format!("[[chain]]\nname = \"loop\"\n{points}\ndropped_max_percent = 50\n"));
    folder.taut(&["gate", "--limits", "--candidate", "bad/1.mcap"]).code(1).stdout(predicate::str::contains("SIGSEGV"));
    // What never stamped is bad input.
    folder.taut(&["gate", "--baseline", "good", "--candidate", "bad/2.mcap"]).code(2);
}

/// A shell that waits for its program, as dash does with a simple command; the program notes its number.
#[test]
fn no_trial_leaves_a_program_running() {
    let folder = Folder::new();
    folder.build(20);
    folder.write("stays.c", STAYS);
    let build = format!("gcc -std=c11 -O1 -pthread -I {} stays.c -o stays", include().display());
    assert!(folder.sh(&build).status.success());
    let gone = |runs: usize| {
        let pids = folder.read("pids");
        assert_eq!(pids.lines().count(), runs, "{pids}");
        let left: Vec<&str> = pids.lines().filter(|pid| Path::new("/proc").join(pid).exists()).collect();
        assert!(left.is_empty(), "{left:?} of {runs} run on");
        std::fs::remove_file(folder.path("pids")).unwrap();
    };
    // A trial that lacks events has no verdict; of few events none is lost.
    let gate = ["gate", "--quiet", "--no-wakeup", "--duration", "0.5", "--pairs", "2", "--depth", "sched"];
    for command in ["true; ./stays", "true; ./stays deaf; true", "setsid ./stays & wait"] {
        folder.taut(&[&gate[..], &["--a", command, "--b", command]].concat()).success();
        gone(4);
    }
    // A run that ends by itself leaves no more.
    let leaves = "./loop; setsid sh -c 'echo $$ >> pids; exec sleep 1000' & while ! [ -s pids ]; do :; done";
    let said = folder.json(&[
        "gate",
        "--quiet",
        "--no-wakeup",
        "--pairs",
        "2",
        "--duration",
        "60",
        "--a",
        leaves,
        "--b",
        leaves,
    ]);
    assert!(said["notes"].to_string().contains("processes running, which the gate ended"), "{said}");
    let pids = folder.read("pids").lines().count();
    gone(pids);
}

/// Stamps until it is ended; "deaf": not by SIGTERM.
const STAYS: &str = r#"
#include "taut.h"
#include <signal.h>
#include <stdio.h>
int main(int argc, char **argv) {
  if (argc > 1) signal(SIGTERM, SIG_IGN);
  FILE *pids = fopen("pids", "a");
  fprintf(pids, "%d\n", getpid());
  fclose(pids);
  for (uint64_t id = 1;; id++) {
    TAUT_STAMP("loop.read", id);
    TAUT_STAMP("loop.written", id);
    usleep(1000);
  }
}
"#;

#[test]
fn two_revisions_are_built_run_and_removed() {
    let folder = Folder::new();
    folder.commit(20, 80);
    let arguments = ["gate", "--revisions", "HEAD~1..HEAD", "--build", "sh build.sh", "--run", "./loop"];
    let more = ["--pairs", "18", "--quiet", "--no-wakeup"];
    let (code, json) = folder.asked(&[&arguments[..], &more].concat(), || (), has_no_verdict);
    assert_eq!((code, &json["verdict"]), (1, &"worse".into()), "{json}");
    assert_eq!(json["hop"], "loop.read → loop.planned", "{json}");
    assert_eq!(folder.trees(), 1);
    let broken = ["gate", "--revisions", "HEAD~1..HEAD", "--build", "exit 7", "--run", "./loop", "--quiet"];
    folder.taut(&broken).code(2).stderr(predicate::str::contains("--build exit 7: failed in revision"));
    let unknown = ["gate", "--revisions", "HEAD~9..HEAD", "--run", "./loop"];
    folder.taut(&unknown).code(2).stderr(predicate::str::contains("is no revision of"));
    assert!(folder.path("loop.c").exists());
}

/// The wheel that was built last, of those that `make setup` leaves in a target folder: CARGO_TARGET_DIR, or the checkout's.
fn wheel(target: Option<std::ffi::OsString>) -> Option<PathBuf> {
    let target = target.map_or_else(|| "target".into(), PathBuf::from);
    let wheels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(target).join("wheels");
    let paths = std::fs::read_dir(wheels).into_iter().flatten().flatten().map(|entry| entry.path());
    let wheels = paths.filter(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheels.max_by_key(|path| path.metadata().and_then(|of| of.modified()).ok())
}

#[test]
fn the_wheel_is_looked_for_where_the_build_leaves_it() {
    let target = tempfile::tempdir().unwrap();
    std::fs::create_dir(target.path().join("wheels")).unwrap();
    assert_eq!(wheel(Some(target.path().into())), None);
    let built = target.path().join("wheels/taut-0.1.0-cp311-abi3-linux.whl");
    std::fs::write(&built, "").unwrap();
    assert_eq!(wheel(Some(target.path().into())), Some(built));
}

/// A repository of our own as a service checks it out, with the wheel in ci/ and an environment of Python to install it into; `None`
/// without a wheel.
fn checked_out() -> Option<Folder> {
    let Some(wheel) = wheel(std::env::var_os("CARGO_TARGET_DIR")) else {
        skip(Need::Wheel, "no taut-*.whl in wheels/ of the target folder: run make setup");
        return None;
    };
    let folder = Folder::new();
    folder.commit(20, 20);
    let prepared = "git branch -M work && git branch main HEAD~1 && git remote add origin \"$PWD\" && git fetch -q origin && sh build.sh \
                    && mkdir bin ci ros && python3 -m venv venv";
    assert!(folder.sh(prepared).status.success());
    std::fs::copy(&wheel, folder.path("ci").join(wheel.file_name().unwrap())).unwrap();
    folder.write("bin/sudo", "#!/bin/sh\nshift\nexec \"$@\"\n");
    // Its last word is the filter, as GitHub's command has it.
    folder.write(
        "bin/gh",
        "#!/bin/sh\necho \"$@\" >> gh.log\ncase \"$*\" in *--jq*) for last; do :; done; jq -r \"$last\" comments.json;; esac\n",
    );
    folder.write("bin/apt-get", "#!/bin/sh\necho \"$@\" >> apt.log\n");
    folder.write("ros/setup.sh", "ROS_DISTRO=jazzy\nexport ROS_DISTRO\n");
    folder.write(
        "bin/colcon",
        "#!/bin/sh\n[ \"$* of $ROS_DISTRO\" = 'build of jazzy' ] && sh build.sh && mkdir install && echo WORKSPACE=built > install/setup.sh\n",
    );
    assert!(folder.sh("chmod +x bin/*").status.success());
    Some(folder)
}

/// A workflow that the documentation hands out, and its command lines.
fn workflow(file: &str) -> (String, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ci").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let parsed = yaml_rust2::YamlLoader::load_from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut commands = Vec::new();
    collect(&parsed[0], &mut commands);
    (text, commands)
}

impl Folder {
    /// Runs a workflow's command lines as they stand.
    fn steps(&self, file: &str, environment: &str, commands: &[String]) {
        for line in commands {
            let mut said = self.sh(&format!("{environment}; set -e; {line}"));
            // A busy machine lets no pair come to its end in so little time; and a program is worse than itself once in a hundred gates.
            for max_time in [6, 12, 24, 48].iter().filter(|_| line.contains("taut gate --revisions")) {
                if said.status.success() {
                    break;
                }
                said = self.sh(&format!("{environment}; set -e; export MAX_TIME={max_time}; {line}"));
            }
            assert!(said.status.success(), "{file}: {line}: {}", String::from_utf8_lossy(&said.stderr));
            if line.contains("pip install") {
                // What was installed is taut; what is under test is the command that was built last.
                std::fs::remove_file(self.path("venv/bin/taut")).unwrap();
                std::os::unix::fs::symlink(cargo_bin!("taut"), self.path("venv/bin/taut")).unwrap();
            }
        }
    }
}

/// The commands of the workflows that the documentation hands out, as they stand, on a repository of our own. They get less time, by
/// the variable that is theirs to set.
#[test]
fn the_workflows_parse_and_their_commands_run() {
    let Some(folder) = checked_out() else { return };
    // What anybody may write, and what another workflow here wrote.
    let foreign = serde_json::json!([
        { "id": 1, "user": { "login": "mallory" }, "body": "<!-- taut gate: latency, gate -->\n### gate" },
        { "id": 2, "user": { "login": "github-actions[bot]" }, "body": "<!-- taut gate: nightly, gate -->\n### gate" },
    ]);
    folder.write("comments.json", &foreign.to_string());
    let environment = "export PATH=$PWD/venv/bin:$PWD/bin:$PATH BUILD='sh build.sh' RUN=./loop MAX_TIME=3 GITHUB_BASE_REF=main GITHUB_SHA=1 \
                       GITHUB_STEP_SUMMARY=summary.md GITHUB_REPOSITORY=me/robot NUMBER=3 CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main \
                       CI_COMMIT_SHA=1 GITHUB_WORKFLOW=latency GITHUB_JOB=gate; unset TAUT_SESSION";
    for file in ["github.yml", "gitlab.yml"] {
        let (_, commands) = workflow(file);
        let is_gate =
            |line: &&String| ["taut gate --revisions", "taut gate --b"].iter().any(|gate| line.contains(gate));
        assert_eq!(commands.iter().filter(is_gate).count(), 2, "{file}");
        folder.steps(file, environment, &commands);
        for made in ["gate.md", "gate.json", "gate.xml", "gate.html", "history.html"] {
            assert!(!folder.read(made).is_empty(), "{file}: {made}");
            std::fs::remove_file(folder.path(made)).unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path(".taut-history")).unwrap().count(), 1);
        std::fs::remove_dir_all(folder.path(".taut-history")).unwrap();
    }
    assert!(folder.read("summary.md").starts_with("<!-- taut gate -->\n### gate\n"));
    let comment = folder.read("comment.md");
    assert!(comment.starts_with("<!-- taut gate: latency, gate -->\n### gate\n"), "{comment}");
    let said = folder.read("gh.log");
    assert!(said.contains("pr comment 3 --body-file comment.md") && !said.contains("PATCH"), "{said}");
    // The second time there is one of ours; another workflow leaves it alone.
    folder.write("gate.md", &folder.read("summary.md"));
    let mut all = foreign.as_array().unwrap().clone();
    all.push(serde_json::json!({ "id": 7, "user": { "login": "github-actions[bot]" }, "body": comment }));
    folder.write("comments.json", &Value::Array(all).to_string());
    let (text, commands) = workflow("github.yml");
    let step = commands.iter().find(|line| line.contains("gh api")).unwrap();
    let said = |also: &str| {
        std::fs::remove_file(folder.path("gh.log")).unwrap();
        folder.steps("github.yml", &format!("{environment}; {also}"), std::slice::from_ref(step));
        folder.read("gh.log")
    };
    let (again, other) = (said(":"), said("export GITHUB_WORKFLOW='latency of \"both\" arms'"));
    assert!(again.contains("PATCH repos/me/robot/issues/comments/7") && !again.contains("pr comment"), "{again}");
    assert!(other.contains("pr comment 3") && !other.contains("PATCH"), "{other}");
    // A token of a fork may only read.
    assert!(text.contains("github.event.pull_request.head.repo.full_name == github.repository"));
    assert!(!text.contains("--edit-last"));
}

/// Installs, builds and gates; of ROS 2 there is what the workflow calls. That a chain of real nodes is judged is tested in `ros2_live.rs`.
#[test]
fn the_workflow_for_ros_2_installs_builds_and_gates() {
    let Some(folder) = checked_out() else { return };
    let chain = "[[chain]]\nname = \"loop\"\npoints = [\"loop.read\", \"loop.planned\", \"loop.written\"]\n";
    folder.write("taut.toml", &format!("{chain}[[chain.limit]]\nfigure = \"total.p50\"\nmax_ms = 60000\n"));
    let environment = "export PATH=$PWD/venv/bin:$PWD/bin:$PATH RUN='./loop 20 20 1000000000' SETUP=install/setup.sh DURATION=1 MAX_TIME=600 \
                       GITHUB_STEP_SUMMARY=summary.md; unset TAUT_SESSION";
    let (text, commands) = workflow("ros2.yml");
    assert_eq!(commands.len(), 4, "{text}");
    let ours: Vec<String> = commands.iter().map(|line| line.replace("/opt/ros/jazzy/", "./ros/")).collect();
    folder.steps("ros2.yml", environment, &ours);
    assert!(folder.read("apt.log").contains("python3-pip"));
    let json: Value = serde_json::from_str(&folder.read("gate.json")).unwrap();
    assert_eq!(json["verdict"], "kept", "{json}");
    assert!(folder.read("summary.md").contains("### limits") && !folder.read("gate.xml").is_empty());
    assert!(std::fs::read_dir(folder.path("runs")).unwrap().count() > 0);
}

/// All command lines, in order.
fn collect(yaml: &yaml_rust2::Yaml, commands: &mut Vec<String>) {
    match yaml {
        yaml_rust2::Yaml::Array(all) => all.iter().for_each(|one| collect(one, commands)),
        yaml_rust2::Yaml::Hash(all) => {
            for (key, value) in all {
                match (key.as_str(), value) {
                    (Some("run"), yaml_rust2::Yaml::String(line)) => commands.push(line.clone()),
                    (Some("script" | "before_script"), yaml_rust2::Yaml::Array(lines)) => {
                        commands.extend(lines.iter().filter_map(|line| Some(line.as_str()?.to_owned())));
                    }
                    _ => collect(value, commands),
                }
            }
        }
        _ => {}
    }
}
