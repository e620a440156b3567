//! `taut tune` as a process: small programs that really run. No test says how fast anything is.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use taut_skip::{Need, skip};

mod folder;
mod loop_program;
use folder::{Folder, until};
use loop_program::said;

impl Folder {
    /// From a shell whose timer slack is 3 ms, which programs inherit: the tail has that cause.
    fn slack(&self, arguments: &[&str]) -> Command {
        let mut command = self.taut(arguments);
        // SAFETY: prctl(2) with integers, between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_TIMERSLACK, 3_000_000, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        command
    }
}

fn nice(pid: u32) -> i64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse().unwrap()
}

fn started(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().parse().unwrap()
}

/// A journal of a process that is gone, which has lowered this one to nice 7.
fn journal(folder: &Folder, pid: u32) -> PathBuf {
    let who = |number: u32, started: u64| json!({ "number": number, "started": started, "name": "sleep" });
    let cpus = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let cpus = cpus.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned();
    let scheduling = json!({ "policy": 0, "flags": 0, "nice": nice(pid), "priority": 0, "runtime_ns": 0, "deadline_ns": 0, "period_ns": 0 });
    let thread = json!({ "who": who(pid, started(pid)), "scheduling": scheduling, "cpus": cpus, "at": u64::MAX });
    let lines = [json!({ "owner": who(4_194_303, 1) }), json!({ "entry": { "thread": thread } })];
    let path = folder.path("runtime/taut-tune");
    std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700).create(&path).unwrap();
    let path = path.join("1-1.jsonl");
    std::fs::write(&path, lines.map(|line| format!("{line}\n")).concat()).unwrap();
    assert!(Command::new("renice").args(["-n", "7", "-p", &pid.to_string()]).output().unwrap().status.success());
    assert_eq!(nice(pid), 7);
    path
}

#[test]
fn bad_input_is_one_line_with_the_remedy() {
    let folder = Folder::new();
    for (arguments, code, words) in [
        (&["tune"][..], 2, "no command to tune"),
        (&["tune", "--", "./nosuch"], 2, "./nosuch: not found"),
        (&["tune", "--", "sh", "-c", "echo broken bus; exit 3"], 2, "exit code 3: broken bus"),
        (&["tune", "--protect", "chain:none", "--", "true"], 2, ""),
        (&["tune", "--apply", "nosuch.json"], 2, "nosuch.json"),
        (&["tune", "--files", "/proc/nosuch", "--", "./nosuch"], 2, "/proc/nosuch"),
        (&["tune", "-o", "nosuch/tune.html", "--", "./nosuch"], 2, "nosuch/tune.html"),
        (&["tune", "--remedy", "prayer", "--", "true"], 2, "there are timer-slack, malloc"),
    ] {
        let output = folder.taut(arguments).arg("--quiet").output();
        let output = if arguments.contains(&"--") { folder.taut(arguments).output() } else { output }.unwrap();
        let text = said(&output);
        let last = text.lines().last().unwrap_or_default();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(last.starts_with("taut: ") && last.contains(words), "{arguments:?}: {text}");
    }
}

#[test]
fn a_trial_starts_with_the_settings_that_it_inherits() {
    let folder = Folder::new();
    let launch = json!({
        "plan": { "settings": [{ "timer_slack": 4321 }, { "variable": ["TAUT_TEST", "it's"] }, { "switch_interval": 0.25 }] },
        "pid_file": folder.path("pid"),
        "folder": folder.path("python"),
    });
    folder.write("launch.json", &launch.to_string());
    let print = "import os, sys; print(open('/proc/self/timerslack_ns').read().strip(), os.environ['TAUT_TEST'], sys.getswitchinterval(), os.getpid())";
    let output = folder.taut(&["tune", "--launch", "launch.json", "--", "python3", "-c", print]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.trim(), format!("4321 it's 0.25 {}", folder.read("pid")));
    let missing = folder.taut(&["tune", "--launch", "launch.json", "--", "./nosuch"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(127));
}

#[test]
fn the_restorer_puts_everything_back_when_its_tuner_is_killed() {
    let folder = Folder::new();
    let mut sleeper = Command::new("sleep").arg("10000").spawn().unwrap();
    let before = nice(sleeper.id());
    let path = journal(&folder, sleeper.id());
    let mut restorer = folder.taut(&["tune", "--restorer"]);
    let mut restorer = restorer.arg(&path).stdin(Stdio::piped()).spawn().unwrap();
    let pipe = restorer.stdin.take();
    // It goes on as nobody's child.
    assert!(restorer.wait().unwrap().success());
    assert_eq!(nice(sleeper.id()), 7);
    assert!(path.exists());
    // As the kernel does when its tuner is killed.
    drop(pipe);
    until("the restored process", || nice(sleeper.id()) == before && !path.exists());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn what_both_processes_left_is_undone_by_hand() {
    let folder = Folder::new();
    let mut sleeper = Command::new("sleep").arg("10000").spawn().unwrap();
    let before = nice(sleeper.id());
    journal(&folder, sleeper.id());
    let output = folder.taut(&["tune", "--undo"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("put back: sleep/"));
    assert_eq!((nice(sleeper.id()), folder.journals().len()), (before, 0));
    let again = folder.taut(&["tune", "--undo"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&again.stdout), "nothing to undo\n");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn what_a_result_recommends_beyond_the_program_is_applied_until_it_is_undone() {
    let folder = Folder::new();
    folder.write("setting", "old\n");
    let write = json!([{ "write": { "path": folder.path("setting"), "value": "new" } }]);
    let result = json!({ "recommended": { "changes": { "outside": write } } });
    folder.write("tune.json", &result.to_string());
    assert!(folder.taut(&["tune", "--apply", "tune.json"]).status().unwrap().success());
    assert_eq!((folder.read("setting").as_str(), folder.journals().len()), ("new\n", 1));
    assert!(folder.taut(&["tune", "--undo"]).status().unwrap().success());
    assert_eq!((folder.read("setting").as_str(), folder.journals().len()), ("old\n", 0));
}

/// What a search over the timer slack of the loop says, in JSON; nothing where kernel events cannot be had.
fn tuned(folder: &Folder, how: &str, max_time: &str) -> Option<Value> {
    folder.build();
    let options = ["--remedy", "timer-slack", "--max-time", max_time, "--duration", "700ms", "--seed", "1"];
    let forms = ["--format", "json", "--files", "out"];
    let arguments = [&["tune"][..], &options, &forms, &["--", "./loop", how]].concat();
    let output = folder.slack(&arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(3) {
        skip(Need::Perf, said(&output));
        return None;
    }
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{}", said(&output))))
}

fn tried<'a>(value: &'a Value, remedy: &str) -> Option<&'a Value> {
    value["tried"].as_array().unwrap().iter().find(|one| one["remedies"] == json!([remedy]))
}

#[test]
fn a_remedy_is_tried_found_in_force_and_written_down() {
    let folder = Folder::new();
    let Some(value) = tuned(&folder, "sound", "60s") else { return };
    let slack = tried(&value, "timer-slack").unwrap_or_else(|| panic!("{value:#}"));
    assert_ne!(slack["standing"], "not in force", "{slack:#}");
    assert_eq!(slack["verified"], slack["rounds"], "{slack:#}");
    assert_eq!(
        (&value["restored"], &value["kind"], &value["schema_version"]),
        (&json!(true), &json!("tune"), &json!(2))
    );
    // Of the same shape on disk; the files that apply it are there exactly where it is recommended.
    let kept: Value = serde_json::from_str(&folder.read("out/tune.json")).unwrap();
    assert_eq!(kept, value);
    assert_eq!(folder.path("out/tuned.sh").exists(), value["recommended"].is_object());
    assert!(folder.read("out/tune.html").contains("timer-slack") && folder.read("out/tune.md").contains("timer-slack"));
    let pid: u32 = folder.read("pid").trim().parse().unwrap();
    assert!(!Path::new("/proc").join(pid.to_string()).exists(), "{pid} goes on");
}

/// As a node of rclpy that spins until it is interrupted.
#[test]
fn a_program_that_fails_when_it_is_stopped_is_tuned_all_the_same() {
    let folder = Folder::new();
    let Some(value) = tuned(&folder, "rude", "30s") else { return };
    let slack = tried(&value, "timer-slack").unwrap_or_else(|| panic!("{value:#}"));
    assert_ne!(slack["standing"], "fails", "{slack:#}");
    let notes = value["notes"].to_string();
    assert!(notes.contains("the program fails when it is stopped: exit code"), "{notes}");
}

#[test]
fn a_remedy_under_which_the_program_fails_is_out() {
    let folder = Folder::new();
    let Some(value) = tuned(&folder, "brittle", "10m") else { return };
    let slack = tried(&value, "timer-slack").unwrap_or_else(|| panic!("{value:#}"));
    assert_eq!(slack["standing"], "fails", "{value:#}");
    assert!(slack["why"].as_str().unwrap().contains("exit code 9"), "{slack:#}");
    let recommended = value["recommended"]["remedies"].as_array().cloned().unwrap_or_default();
    assert!(!recommended.contains(&json!("timer-slack")));
}

#[test]
fn an_interrupt_ends_the_trial_and_says_what_is_known() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let folder = Folder::new();
        folder.build();
        let arguments = ["tune", "--quiet", "--max-time", "10m", "--", "./loop", "sound"];
        let tune = folder.slack(&arguments).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        until("the first run", || folder.read("pid").ends_with('\n'));
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(tune.id() as i32, signal) };
        let output = tune.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + signal), "{}", said(&output));
        let pid = folder.read("pid");
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} goes on");
        assert!(folder.journals().is_empty());
    }
}

#[test]
fn a_tuner_that_is_killed_leaves_no_trial_running() {
    let folder = Folder::new();
    folder.build();
    let mut tune = folder.slack(&["tune", "--quiet", "--", "./loop", "sound"]).stderr(Stdio::null()).spawn().unwrap();
    until("the first run", || folder.read("pid").ends_with('\n'));
    tune.kill().unwrap();
    tune.wait().unwrap();
    let pid = folder.read("pid");
    until("the end of the trial", || !Path::new("/proc").join(pid.trim()).exists());
}
