//! `taut lab` as a process, with small systems under test: what is refused, what is run, what is left behind.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use serde_json::Value;
use taut_skip::{Need, skip};

mod folder;
mod sshd;

use folder::{AT_MOST, Folder, until};
use sshd::Sshd;

impl Folder {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin!("taut"));
        command.arg("lab").args(arguments).current_dir(self.0.path());
        // Folders that were left are looked for among this test's own only.
        command.env_remove("TAUT_SESSION").env("TMPDIR", self.0.path());
        command
    }

    fn taut(&self, arguments: &[&str]) -> assert_cmd::assert::Assert {
        assert_cmd::Command::from_std(self.command(arguments)).timeout(AT_MOST).assert()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.taut(&[arguments, &["--format", "json"]].concat()).success().get_output().clone();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs the lab until one trial timed out, the one that is to: on a busy machine another one may have no CPU for so long.
    fn with_one_timeout(&self) -> Value {
        for _ in 0..10 {
            let _ = std::fs::remove_dir_all(self.path("out"));
            let _ = std::fs::remove_file(self.path("begun"));
            let result = self.json(&["run", "lab.toml", "-o", "out", "--quiet"]);
            if self.trials("out").iter().filter(|trial| trial["status"] == "timeout").count() == 1 {
                return result;
            }
        }
        panic!("in each of 10 runs other trials timed out");
    }

    fn trials(&self, folder: &str) -> Vec<Value> {
        let text = self.read(&format!("{folder}/manifest.jsonl"));
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["record"] == "trial").collect()
    }
}

/// What a shell does until there is such a file.
fn until_file(name: &str) -> String {
    format!("while [ ! -e {name} ]; do sleep 0.05; done")
}

/// Every lab ends the processes that any dead lab left: none may start while a test looks at those of the lab it killed.
static LABS: RwLock<()> = RwLock::new(());

fn among_others() -> RwLockReadGuard<'static, ()> {
    LABS.read().unwrap_or_else(PoisonError::into_inner)
}

fn alone() -> RwLockWriteGuard<'static, ()> {
    LABS.write().unwrap_or_else(PoisonError::into_inner)
}

/// The first CPU that this test may use.
fn cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split([',', '-']).next().unwrap().to_owned()
}

/// Processes whose command line or environment holds this.
fn with_mark(mark: &str) -> Vec<u32> {
    let holds = |path: String| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    let pids =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        *pid != std::process::id() && (holds(format!("/proc/{pid}/environ")) || holds(format!("/proc/{pid}/cmdline")))
    })
    .collect()
}

/// A server that answers over TCP, and a client that asks it once.
const SERVER: &str = r#"
import socket, sys, threading
server = socket.create_server(("127.0.0.1", 0))
open("port", "w").write(str(server.getsockname()[1]))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(connection.recv(64)); connection.close()
"#;
const CLIENT: &str = r#"
import json, os, socket, sys, time
began = time.monotonic()
with socket.create_connection(("127.0.0.1", int(open("port").read())), timeout=300) as c:
    c.sendall(b"hello"); assert c.recv(64) == b"hello"
print("asked")
print(json.dumps({"ask_ms": (time.monotonic() - began) * 1e3, "seed": int(os.environ["TAUT_LAB_SEED"])}))
"#;

fn echo_lab() -> String {
    format!(
        r#"
title = "an echo"
trials = 6
warm_up = 1
settle_s = 0.1
[[process]]
name = "server"
command = ["python3", "server.py"]
ready = {{ stdout = "listening" }}
cpus = "{cpu}"
[trial]
command = ["python3", "client.py"]
timeout_s = 300
report = "json"
[metrics.ask_ms]
unit = "ms"
deadline = 100000
[[scenario]]
name = "none"
[[scenario]]
name = "cpu"
load = [{{ kind = "cpu", workers = 1, percent = 50, cpus = "{cpu}" }}]
"#,
        cpu = cpu()
    )
}

#[test]
fn a_lab_is_checked_run_and_compared() {
    let folder = Folder::new();
    let _labs = among_others();
    folder.write("server.py", SERVER);
    folder.write("client.py", CLIENT);
    folder.write("lab.toml", &echo_lab());
    folder.taut(&["check", "lab.toml"]).success().stdout(predicate::str::contains("Nothing stands in its way"));
    let result = folder.json(&["run", "lab.toml", "-o", "out"]);
    assert_eq!(
        (&result["schema_version"], &result["kind"], &result["baseline"]),
        (&2.into(), &"lab".into(), &"none".into())
    );
    for scenario in result["scenarios"].as_array().unwrap() {
        assert_eq!(scenario["success"]["k"], 6, "{scenario:#}");
        let metric = &scenario["metrics"][0];
        assert_eq!((&metric["name"], &metric["n"], &metric["misses"]["k"]), (&"ask_ms".into(), &6.into(), &0.into()));
        assert_eq!(metric["interval"].as_array().unwrap().len(), 2, "{metric:#}");
    }
    let loaded = &result["scenarios"][1];
    assert_eq!(loaded["metrics"][0]["difference"]["pairs"], 6);
    assert_eq!(loaded["loads"][0]["target"], 0.5);
    assert!(loaded["loads"][0]["median"].as_f64().unwrap() > 0.0);

    let trials = folder.trials("out");
    assert_eq!(trials.len(), 12);
    let seed = |scenario: &str| -> Vec<f64> {
        let mut all: Vec<&Value> = trials.iter().filter(|t| t["scenario"] == scenario).collect();
        all.sort_by_key(|trial| trial["index"].as_u64());
        all.iter().map(|trial| trial["metrics"]["seed"].as_f64().unwrap()).collect()
    };
    assert_eq!(seed("none"), seed("cpu"), "trials of one round share their seed");
    for trial in &trials {
        assert!(trial["looks"].as_u64().unwrap() > 0 && trial["threads"].as_u64().unwrap() > 0, "{trial:#}");
        assert!(folder.path("out").join(trial["logs"].as_str().unwrap()).join("trial.stdout").exists());
    }
    // A whole run only shows its figures again.
    let again = folder.json(&["run", "lab.toml", "-o", "out", "--resume"]);
    assert_eq!(again["scenarios"], result["scenarios"]);
    folder.taut(&["run", "lab.toml", "-o", "out"]).code(2).stderr(predicate::str::contains("--resume"));
    let shown = folder.taut(&["run", "lab.toml", "-o", "out", "--resume"]).success().get_output().clone();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("What the loads reached") && shown.contains("against baseline"), "{shown}");
    assert!(with_mark(folder.0.path().to_str().unwrap()).is_empty(), "nothing is left");
}

#[test]
fn trials_end_in_their_own_ways_and_keep_their_diagnostics() {
    let folder = Folder::new();
    let _labs = among_others();
    folder.write(
        "trial.sh",
        r#"case $TAUT_LAB_TRIAL in
0) echo '{"t": 1}' ;;
1) echo '{"t": 2, "success": false, "reason": "no plan"}' ;;
2) echo broken >&2; exit 3 ;;
3) sleep 1000 ;;
4) kill -SEGV $$ ;;
5) kill -KILL $(cat pid); sleep 1000 ;;
6) echo no json ;;
7) echo '{"status": "planning_failed", "reason": "no way around"}'; exit 1 ;;
8) echo '{"t": 3, "status": "execution_failed"}' ;;
9) echo '{"status": "fine"}' ;;
esac"#,
    );
    folder.write(
        "lab.toml",
        r#"
trials = 10
trials_per_start = 10
[[process]]
name = "system"
command = "echo $$ > pid; echo up; exec sleep 1000"
ready = { stdout = "up" }
[trial]
command = "sh trial.sh"
timeout_s = 3
report = "json"
[metrics.t]
[[scenario]]
name = "none"
"#,
    );
    let result = folder.with_one_timeout();
    let trials = folder.trials("out");
    let ends: Vec<(&str, &str)> =
        trials.iter().map(|t| (t["status"].as_str().unwrap(), t["reason"].as_str().unwrap_or(""))).collect();
    for (at, (status, reason)) in [
        ("success", ""),
        ("failed", "no plan"),
        ("failed", "exit code 3; it said: broken"),
        ("timeout", "no end within 3 s"),
        ("crashed", "the trial's command: signal 11"),
        ("crashed", "process \"system\" ended: signal 9; it said: up"),
        ("failed", "its last line on stdout is no JSON object: \"no json\""),
        ("planning_failed", "no way around"),
        ("execution_failed", "reported execution_failed"),
        (
            "failed",
            "its status is \"fine\", which is none of success, planning_failed, execution_failed, failed, timeout",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(ends[at], (status, reason), "trial {at}");
    }
    let scenario = &result["scenarios"][0];
    assert_eq!((&scenario["success"]["k"], &scenario["success"]["n"]), (&1.into(), &10.into()));
    assert_eq!((&scenario["metrics"][0]["failed"], &scenario["metrics"][0]["median"]), (&9.into(), &"failed".into()));
    let counted = &scenario["trials"];
    assert_eq!((&counted["planning_failed"], &counted["execution_failed"]), (&1.into(), &1.into()), "{counted}");
    let shown = folder.taut(&["run", "lab.toml", "-o", "out", "--resume"]).success().get_output().clone();
    let shown = String::from_utf8(shown.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("1 planning_failed") && shown.contains("1 execution_failed"), "{shown}");
    assert_eq!(trials[2]["exit_code"], 3);
    assert_eq!(trials[4]["signal"], 11);
}

#[test]
fn a_thread_that_leaves_its_cpus_makes_the_trial_invalid() {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let cpu = cpu();
    if online.trim() == cpu {
        return skip(Need::Cpus, "one CPU is nowhere to leave to");
    }
    let folder = Folder::new();
    let _labs = among_others();
    folder.write("trial.py", "import os, time\nos.sched_setaffinity(0, range(os.cpu_count()))\ntime.sleep(0.5)\n");
    folder.write(
        "lab.toml",
        &format!(
            "trials = 1\nisolation = \"affinity\"\nwatch = \"proc\"\n[trial]\ncommand = [\"python3\", \"trial.py\"]\ntimeout_s = 300\n\
             cpus = \"{cpu}\"\n[[scenario]]\nname = \"none\"\n"
        ),
    );
    folder.taut(&["run", "lab.toml", "-o", "out"]).success();
    let trials = folder.trials("out");
    assert_eq!(trials[0]["status"], "invalid");
    assert!(trials[0]["reason"].as_str().unwrap().contains("of trial may run on CPU"), "{}", trials[0]["reason"]);
}

#[test]
fn a_thread_that_comes_back_between_two_looks_is_seen_by_the_scheduler() {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let cpu = cpu();
    if online.trim() == cpu {
        return skip(Need::Cpus, "one CPU is nowhere to leave to");
    }
    let folder = Folder::new();
    let _labs = among_others();
    // Two milliseconds of work elsewhere, of a thread that is gone at the next look.
    folder.write(
        "trial.py",
        r#"
import os, sys, threading, time
home, away = {int(sys.argv[1])}, set(range(os.cpu_count())) - {int(sys.argv[1])}
def stray():
    os.sched_setaffinity(0, away)
    end = time.thread_time() + 0.002
    while time.thread_time() < end: pass
    os.sched_setaffinity(0, home)
time.sleep(0.15)
if sys.argv[2] == "away":
    thread = threading.Thread(target=stray); thread.start(); thread.join()
"#,
    );
    let lab = |how: &str| {
        format!(
            "trials = 1\nisolation = \"affinity\"\n[trial]\ncommand = [\"python3\", \"trial.py\", \"{cpu}\", \"{how}\"]\n\
             timeout_s = 300\ncpus = \"{cpu}\"\n[[scenario]]\nname = \"none\"\n"
        )
    };
    folder.write("lab.toml", &lab("away"));
    let result = folder.json(&["run", "lab.toml", "-o", "away"]);
    let confinement = result["confinement"].as_str().unwrap();
    if confinement.contains("no scheduler events") {
        folder.write("lab.toml", &format!("watch = \"events\"\n{}", lab("home")));
        let said = "watch: no scheduler events";
        folder.taut(&["run", "lab.toml", "-o", "none"]).code(2).stderr(predicate::str::contains(said));
        return skip(Need::Ftrace, confinement);
    }
    let trial = &folder.trials("away")[0];
    let reason = trial["reason"].as_str().unwrap_or_else(|| panic!("{trial:#}"));
    assert_eq!(trial["status"], "invalid", "{trial:#}");
    assert!(reason.contains("of trial ran on CPU ") && reason.contains(" ms, not only on "), "{reason}");
    let ran = folder.read(&format!("away/{}/ran.txt", trial["logs"].as_str().unwrap()));
    assert!(ran.lines().any(|line| line.starts_with("trial ") && line.contains("python3")), "{ran}");

    folder.write("lab.toml", &lab("home"));
    let result = folder.json(&["run", "lab.toml", "-o", "home"]);
    let trial = &folder.trials("home")[0];
    assert_eq!(trial["status"], "success", "{trial:#}");
    assert_eq!(trial["ran_s"]["trial"].as_object().unwrap().keys().collect::<Vec<_>>(), [&cpu], "{trial:#}");
    let process = &result["scenarios"][0]["processes"][0];
    assert_eq!((&process["name"], &process["cpus"]), (&"trial".into(), &cpu.clone().into()), "{process:#}");
    assert_eq!(process["shares"][&cpu], 1.0);
    // Looks alone are there on request.
    folder.write("lab.toml", &format!("watch = \"proc\"\n{}", lab("home")));
    let result = folder.json(&["run", "lab.toml", "-o", "looks"]);
    assert!(result["confinement"].as_str().unwrap().contains("in /proc ten times a second"), "{result:#}");
    assert!(folder.trials("looks")[0].get("ran_s").is_none());
}

#[test]
fn stress_ng_makes_a_load_where_it_is_installed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let _labs = among_others();
    folder.write(
        "lab.toml",
        "trials = 1\nsettle_s = 0.3\n[trial]\ncommand = \"sleep 0.5\"\ntimeout_s = 300\n[[scenario]]\nname = \"cpu\"\n\
         load = [{ kind = \"cpu\", workers = 1, percent = 10, method = \"stress-ng matrixprod\" }]\n",
    );
    let bin = folder.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for program in ["sh", "sleep"] {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.exists());
        std::os::unix::fs::symlink(found.unwrap(), bin.join(program)).unwrap();
    }
    let taut = |arguments: &[&str]| {
        let mut command = folder.command(arguments);
        command.env("PATH", &bin);
        assert_cmd::Command::from_std(command).timeout(AT_MOST).assert()
    };
    let missing = "load[0].method: stress-ng is no program in PATH; apt-get install stress-ng";
    let checked = taut(&["check", "lab.toml"]).code(2).get_output().clone();
    let said = String::from_utf8(checked.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(missing), "{said}");
    taut(&["run", "lab.toml", "-o", "none"]).code(2).stderr(predicate::str::contains("apt-get install stress-ng"));
    // One that only works, and says what it was asked for.
    std::fs::write(bin.join("stress-ng"), "#!/bin/sh\necho \"$@\" > asked\nwhile :; do :; done\n").unwrap();
    std::fs::set_permissions(bin.join("stress-ng"), std::fs::Permissions::from_mode(0o755)).unwrap();
    taut(&["run", "lab.toml", "-o", "out"]).success();
    assert_eq!(folder.read("asked").trim(), "--cpu 1 --cpu-load 10 --timeout 0 --quiet --cpu-method matrixprod");
    let load = &folder.trials("out")[0]["achieved"][0];
    assert_eq!(load["load"], "cpu 1 × 10 % by stress-ng matrixprod");
    assert!(load["achieved"].as_f64().unwrap() > 0.0, "{load:#}");
}

#[test]
fn every_load_proves_that_it_was_there() {
    let folder = Folder::new();
    let _labs = among_others();
    let loads = [
        "{ kind = \"memory\", workers = 1 }",
        "{ kind = \"io\", workers = 1 }",
        "{ kind = \"timers\", workers = 1 }",
        "{ kind = \"forks\", workers = 1, rate_hz = 20 }",
        "{ kind = \"udp\", publishers = 2, rate_hz = 50, payload_bytes = 64 }",
        "{ kind = \"command\", command = \"while :; do :; done\" }",
        "{ kind = \"cpu\", workers = 1, percent = 10 }",
    ];
    let scenarios: String = loads
        .iter()
        .enumerate()
        .map(|(at, load)| format!("[[scenario]]\nname = \"s{at}\"\nload = [{load}]\n"))
        .collect();
    // One load ends in the middle of a trial, which waits for that.
    let (load, trial) = (until_file("begun"), "test $TAUT_LAB_SCENARIO = ends && touch begun && sleep 1000; sleep 1.5");
    folder.write(
        "lab.toml",
        &format!(
            "trials = 1\nsettle_s = 0.2\n[trial]\ncommand = \"{trial}\"\ntimeout_s = 300\n{scenarios}\
             [[scenario]]\nname = \"ends\"\nload = [{{ kind = \"command\", command = \"{load}; rm begun; echo bye\" }}]\n\
             [[scenario]]\nname = \"unreachable\"\nload = [{{ kind = \"forks\", workers = 1, rate_hz = 1e7 }}]\n"
        ),
    );
    folder.taut(&["run", "lab.toml", "-o", "out"]).success();
    let trials = folder.trials("out");
    let of = |name: &str| trials.iter().find(|trial| trial["scenario"] == name).unwrap();
    for (at, load) in loads.iter().enumerate() {
        let achieved = &of(&format!("s{at}"))["achieved"][0];
        assert!(achieved["achieved"].as_f64().unwrap() > 0.0, "{load} {achieved:#}");
    }
    for name in ["ends", "unreachable"] {
        assert_eq!(of(name)["status"], "invalid", "{:#}", of(name));
    }
    assert!(of("ends")["reason"].as_str().unwrap().contains("load-0 ended: exit code 0; it said: bye"));
    assert!(of("unreachable")["reason"].as_str().unwrap().contains("forks/s of"), "{:#}", of("unreachable"));
}

#[test]
fn workers_of_loads_are_named_apart_from_taut() {
    let folder = Folder::new();
    let _labs = among_others();
    folder.write(
        "lab.toml",
        r#"
trials = 1
[trial]
command = "cat /proc/$(pgrep -P $PPID -f [l]oad-worker)/task/*/comm"
timeout_s = 300
[[scenario]]
name = "busy"
load = [{ kind = "memory", workers = 2 }]
"#,
    );
    folder.taut(&["run", "lab.toml", "-o", "out"]).success();
    let trial = &folder.trials("out")[0];
    let names = folder.read(&format!("out/{}/trial.stdout", trial["logs"].as_str().unwrap()));
    assert_eq!(names.lines().collect::<Vec<_>>(), ["load-memory"; 3], "the process and its two workers");
}

/// A lab that is in the middle of a trial, with a grandchild that has left its group.
fn in_the_middle(folder: &Folder) -> Child {
    folder.write(
        "lab.toml",
        r#"
trials = 3
seed = 5
[[process]]
name = "system"
command = "(setsid sh -c 'echo up; exec sleep 1000' &) ; exec sleep 1000"
ready = { stdout = "up" }
stop_timeout_s = 1
[trial]
command = "echo x >> begun; test $(wc -l < begun) -ne 2 || sleep 1000"
timeout_s = 2000
[[scenario]]
name = "none"
[[scenario]]
name = "cpu"
load = [{ kind = "cpu", workers = 1, percent = 5 }]
"#,
    );
    let mut lab = folder.command(&["run", "lab.toml", "-o", "out"]);
    let child = lab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the second trial", || folder.read("begun").lines().count() == 2);
    child
}

fn mark(folder: &Path) -> String {
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.filter_map(|name| Some(name.strip_prefix("taut-lab-")?.to_owned())).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    names[0].clone()
}

/// Kills a lab, and first the process that cleans up after it, as the end of a whole control group does.
fn kill_with_its_keeper(lab: &mut Child, mark: &str) {
    let keeper = with_mark(&format!("keeper\0{mark}"));
    assert_eq!(keeper.len(), 1, "{keeper:?}");
    let pid = rustix::process::Pid::from_raw(keeper[0] as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    lab.kill().unwrap();
    lab.wait().unwrap();
}

#[test]
fn nothing_outlives_a_lab_that_was_killed() {
    let folder = Folder::new();
    let _labs = alone();
    // The shell dies with its parent, its child does not; one left the group, one cleared its environment.
    folder.write(
        "lab.toml",
        r#"
trials = 1
[[process]]
name = "system"
command = "(setsid sleep 9997 &); env -i sleep 9998 & echo up; sleep 9999; true"
ready = { stdout = "up" }
[trial]
command = "echo > begun; sleep 9999; true"
timeout_s = 99999
[[scenario]]
name = "none"
load = [{ kind = "command", command = "sleep 9999; true" }]
"#,
    );
    let mut command = folder.command(&["run", "lab.toml", "-o", "out"]);
    let mut lab = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the trial", || folder.path("begun").exists());
    let mark = mark(folder.0.path());
    let marked = || with_mark(&format!("TAUT_LAB={mark}"));
    // Where they are, by what holds them: the group of one that has no mark is a marked one's.
    let sleepers = || {
        let all = with_mark("sleep\09997").into_iter().chain(with_mark("sleep\09998")).chain(with_mark("sleep\09999"));
        let here = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder.0.path());
        all.filter(here).collect::<Vec<u32>>()
    };
    until("five sleepers", || sleepers().len() == 5);
    lab.kill().unwrap();
    lab.wait().unwrap();
    until("the end of all that it had started", || marked().is_empty() && sleepers().is_empty());
    until("the end of its folder", || !folder.path(&format!("taut-lab-{mark}")).exists());
    until("the end of its keeper", || with_mark(&format!("keeper\0{mark}")).is_empty());
}

#[test]
fn a_killed_lab_is_cleaned_up_after_and_resumed_at_the_cut_trial() {
    let folder = Folder::new();
    let _labs = alone();
    let mut lab = in_the_middle(&folder);
    let mark = mark(folder.0.path());
    assert!(with_mark(&format!("TAUT_LAB={mark}")).len() >= 3, "system, stray and trial");
    kill_with_its_keeper(&mut lab, &mark);
    until("the end of the direct children", || with_mark(&format!("TAUT_LAB={mark}")).len() <= 2);
    assert!(!with_mark(&format!("TAUT_LAB={mark}")).is_empty(), "the stray survives its lab");
    assert_eq!(folder.trials("out").len(), 1);

    let resumed = folder.taut(&["run", "lab.toml", "-o", "out", "--resume"]).success().get_output().clone();
    let said = String::from_utf8(resumed.stderr).unwrap();
    assert!(said.contains("removed what a lab that died had left: process"), "{said}");
    assert!(with_mark(&format!("TAUT_LAB={mark}")).is_empty());
    assert!(!folder.path(&format!("taut-lab-{mark}")).exists());
    let trials = folder.trials("out");
    let mut which: Vec<String> = trials.iter().map(|t| format!("{} {}", t["scenario"], t["index"])).collect();
    which.sort();
    which.dedup();
    assert_eq!((which.len(), trials.len()), (6, 6), "each trial once");
    assert_eq!(folder.read("begun").lines().count(), 7, "the cut one twice");
    assert!(trials.iter().all(|trial| trial["status"] == "success"), "{trials:#?}");
}

#[test]
fn shared_memory_of_a_killed_lab_goes_with_the_next_one() {
    let folder = Folder::new();
    let _labs = alone();
    let name = |what: &str| format!("/dev/shm/{what}-of-test-{}", std::process::id());
    let names = [name("mapped"), name("late")];
    // The second is made in the middle of a trial, which begins then.
    folder.write(
        "system.py",
        &format!(
            r#"
import mmap, os, time
def make(path):
    with open(path, "wb+") as file:
        file.truncate(4096)
        return mmap.mmap(file.fileno(), 4096)
mapped = make("{}")
print("up", flush=True)
while not os.path.exists("begun"):
    time.sleep(0.01)
late = make("{}")
open("made", "w").close()
time.sleep(1000)
"#,
            names[0], names[1]
        ),
    );
    let lab = |then: &str| {
        format!(
            "trials = 1\n[[process]]\nname = \"system\"\ncommand = [\"python3\", \"system.py\"]\nready = {{ stdout = \"up\" }}\n\
             [trial]\ncommand = \"touch begun; {then}\"\ntimeout_s = 2000\n[[scenario]]\nname = \"none\"\n"
        )
    };
    folder.write("lab.toml", &lab("sleep 1000"));
    let mut command = folder.command(&["run", "lab.toml", "-o", "out"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the shared memory", || folder.path("made").exists());
    let mark = mark(folder.0.path());
    until("the lab's note of it", || {
        let noted = folder.read(&format!("taut-lab-{mark}/mapped"));
        names.iter().all(|name| noted.contains(name.as_str()))
    });
    kill_with_its_keeper(&mut child, &mark);
    assert!(names.iter().all(|name| Path::new(name).exists()), "nobody was there to remove it");
    for name in ["begun", "made"] {
        std::fs::remove_file(folder.path(name)).unwrap();
    }

    folder.write("lab.toml", &lab(&until_file("made")));
    let again = folder.taut(&["run", "lab.toml", "-o", "again"]).success().get_output().clone();
    let said = String::from_utf8(again.stderr).unwrap();
    for name in &names {
        assert!(said.contains(&format!("removed what a lab that died had left: file {name}")), "{said}");
    }
    // That run made the same again, and has cleaned up after itself.
    assert!(folder.path("made").exists());
    assert!(!names.iter().any(|name| Path::new(name).exists()));
    let logs = folder.trials("again")[0]["logs"].as_str().unwrap().to_owned();
    let removed = folder.read(&format!("again/{}/removed.txt", logs.rsplit_once('/').unwrap().0));
    assert!(names.iter().all(|name| removed.contains(name.as_str())), "{removed}");
}

#[test]
fn an_interrupted_lab_leaves_nothing_and_says_how_to_go_on() {
    let folder = Folder::new();
    let _labs = alone();
    let lab = in_the_middle(&folder);
    let mark = mark(folder.0.path());
    let pid = rustix::process::Pid::from_child(&lab);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(lab.wait_with_output().unwrap().status.code(), Some(130));
    assert!(with_mark(&format!("TAUT_LAB={mark}")).is_empty());
    assert!(!folder.path(&format!("taut-lab-{mark}")).exists());
    assert_eq!(folder.trials("out").len(), 1);
}

#[test]
fn bad_input_is_one_line_with_its_place() {
    let folder = Folder::new();
    let _labs = among_others();
    let lab = |process: &str, more: &str| {
        format!(
            "trials = 1\n{more}[[process]]\nname = \"p\"\n{process}\n[trial]\ncommand = \"true\"\ntimeout_s = 1\n[[scenario]]\nname = \"none\"\n"
        )
    };
    for (text, verb, parts) in [
        (lab("command = \"true\"", "trails = 2\n"), "check", ["lab.toml: line 2", "unknown field `trails`"]),
        (lab("command = [\"/no/such\"]", ""), "run", ["process \"p\".command", "/no/such does not start"]),
        (
            lab("command = \"echo alas >&2; exit 4\"\nready = { stdout = \"x\" }", ""),
            "run",
            ["process \"p\".command: exit code 4 before it was ready", "it said: alas"],
        ),
        (
            lab("command = \"sleep 100\"\nready = { file = \"never\" }\nready_timeout_s = 0.2", ""),
            "run",
            ["process \"p\".ready", "did not come within 0.2 s"],
        ),
        (
            lab("command = \"sleep 100\"\ncpus = \"1000\"", ""),
            "run",
            ["process \"p\".cpus: CPU 1000 is not here", "online are"],
        ),
        (
            lab("command = \"sleep 100\"", "[metrics.t]\ndeadline = -3\n"),
            "check",
            ["metrics.t.deadline", "not above 0"],
        ),
    ] {
        folder.write("lab.toml", &text);
        // What did not start leaves nothing that stands in the way of the next one.
        let output = folder.taut(&[verb, "lab.toml"]).code(2).get_output().clone();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        for part in parts {
            assert!(said.contains(part), "{said:?} does not say {part:?}");
        }
    }
    folder.write("lab.toml", &lab("command = [\"/no/such\"]\ncpus = \"1000\"", ""));
    folder.taut(&["check", "lab.toml"]).code(2).stdout(
        predicate::str::contains("CPU 1000 is not here").and(predicate::str::contains("/no/such is no program")),
    );
}

#[test]
fn a_run_that_did_not_start_is_run_and_resumed() {
    let folder = Folder::new();
    let _labs = among_others();
    let lab = |command: &str| {
        format!(
            "trials = 1\n[[process]]\nname = \"p\"\ncommand = \"{command}\"\nready = {{ stdout = \"up\" }}\n[trial]\n\
             command = \"true\"\ntimeout_s = 300\n[[scenario]]\nname = \"none\"\n"
        )
    };
    for next in [&["run", "lab.toml"][..], &["run", "lab.toml", "--resume"]] {
        let _ = std::fs::remove_dir_all(folder.path("lab.run"));
        folder.write("lab.toml", &lab("echo alas >&2; exit 4"));
        folder.taut(&["run", "lab.toml"]).code(2);
        folder.write("lab.toml", &lab("echo up; exec sleep 1000"));
        folder.taut(next).success();
        assert_eq!(folder.trials("lab.run")[0]["status"], "success", "{next:?}");
    }
}

#[test]
fn a_unit_that_is_none_is_said() {
    let folder = Folder::new();
    let text = "trials = 6\n[trial]\ncommand = \"true\"\ntimeout_s = 1\nreport = \"json\"\n[metrics.far]\nunit = \"parsecs\"\n\
                [[scenario]]\nname = \"none\"\n";
    folder.write("lab.toml", text);
    let said = predicate::str::contains("metrics.far.unit: \"parsecs\" is none of");
    folder.taut(&["check", "lab.toml"]).success().stdout(said.clone());
    folder.write("lab.toml", &text.replace("parsecs", "m/s"));
    folder.taut(&["check", "lab.toml"]).success().stdout(said.not());
}

/// Whether a process found itself in a control group of CPU time, from what it saw of its own groups and of the lab's.
const GROUPED: &str = r#"
base=$(sed -n 's,^0::,,p' /proc/self/cgroup)
case $(cat /proc/self/cgroup) in
*cpu:/*taut-lab-*|*cpu,cpuacct:/*taut-lab-*) echo grouped ;;
*) test -e "/sys/fs/cgroup$(dirname "$base")/cpu.max" && case $base in *taut-lab-*/system/*) echo grouped ;; *) echo plain ;; esac || echo plain ;;
esac > "where-$TAUT_LAB_WHERE"
echo up
exec sleep 1000
"#;

#[test]
fn a_scenario_runs_in_the_same_place_whatever_others_the_file_holds() {
    let folder = Folder::new();
    let _labs = among_others();
    folder.write("system.sh", GROUPED);
    let text = r#"
trials = 1
settle_s = 0.1
[[process]]
name = "system"
command = ["sh", "system.sh"]
ready = { stdout = "up" }
[trial]
command = "sleep 0.3"
timeout_s = 300
[[scenario]]
name = "none"
environment = { TAUT_LAB_WHERE = "none" }
[[scenario]]
name = "busy"
environment = { TAUT_LAB_WHERE = "busy" }
load = [{ kind = "cpu", workers = 3, percent = 100 }]
[[scenario]]
name = "held"
environment = { TAUT_LAB_WHERE = "held" }
system_quota = 0.5
[break]
scenario = "busy"
vary = "workers"
from = 1
to = 3
success = 0.5
alpha = 0.2
"#;
    folder.write("lab.toml", text);
    let checked = folder.taut(&["check", "lab.toml"]).get_output().clone();
    let said = String::from_utf8(checked.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    if said.contains("no control group (") {
        return skip(Need::Cgroups, said);
    }
    let plain = "system on any CPU · trial on any CPU · the system in no control group of CPU time";
    assert!(said.contains(&format!("TAUT_LAB_WHERE=busy where {plain}")), "{said}");
    assert!(said.contains("the system in a control group of CPU time of its own"), "{said}");
    assert!(said.contains("held: not in the same group of CPU time as the baseline none"), "{said}");

    let found = folder.json(&["break", "lab.toml", "-o", "break", "--quiet"]);
    assert!(found["placement"].as_str().unwrap().starts_with(plain), "{found:#}");
    assert_eq!(folder.read("where-busy").trim(), "plain");
    // Three workers on fewer CPUs: what they want is in the answer, beside what they got.
    let heaviest = found["probes"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(heaviest["value"], 3.0);
    assert!(heaviest["cpus_wanted"].as_f64().unwrap() > 0.0, "{heaviest:#}");

    let ran = folder.json(&["run", "lab.toml", "-o", "run", "--quiet"]);
    let at = |name: &str| folder.read(&format!("where-{name}")).trim().to_owned();
    assert_eq!((at("none"), at("busy"), at("held")), ("plain".into(), "plain".into(), "grouped".into()));
    assert!(ran["notes"].to_string().contains("own_group = true"), "{}", ran["notes"]);
    // All of them on request, which then is no difference.
    folder.write("lab.toml", &format!("own_group = true\n{text}"));
    let ran = folder.json(&["run", "lab.toml", "-o", "all", "--quiet"]);
    assert_eq!((at("none"), at("busy"), at("held")), ("grouped".into(), "grouped".into(), "grouped".into()));
    assert!(!ran["notes"].to_string().contains("own_group"), "{}", ran["notes"]);
}

#[test]
fn a_limit_on_a_metric_decides_success_and_its_number_is_shown() {
    let folder = Folder::new();
    let _labs = among_others();
    let text = r#"
trials = 5
[trial]
command = """echo "{\\"t\\": $TAUT_LAB_TRIAL}" """
timeout_s = 300
report = "json"
[metrics.t]
unit = "ms"
success_to = 1
[[scenario]]
name = "none"
[[scenario]]
name = "same"
environment = { X = "1" }
"#;
    folder.write("lab.toml", text);
    let result = folder.json(&["run", "lab.toml", "-o", "out", "--quiet"]);
    let baseline = &result["scenarios"][0];
    assert_eq!((&baseline["success"]["k"], &baseline["success"]["n"]), (&2.into(), &5.into()), "{baseline:#}");
    assert_eq!(baseline["misfortunes"][0]["reason"], "t of 2 ms is above 1, its limit");
    let metric = &baseline["metrics"][0];
    assert_eq!((&metric["failed"], &metric["median"]), (&3.into(), &"failed".into()));
    assert_eq!(metric["failed_reported"], serde_json::json!({ "n": 3, "median": 3.0 }));
    let headline = result["headline"].as_str().unwrap();
    assert!(
        headline.starts_with("The baseline none itself failed in 3 of 5 trials: make it succeed first"),
        "{headline}"
    );
    let shown = folder.taut(&["run", "lab.toml", "-o", "out", "--resume"]).success().get_output().clone();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("none: 3 trials failed, 3 of them with t 3 ms (median)"), "{shown}");
    // A trial without the number has not kept its limit.
    folder.write("lab.toml", &text.replace("[metrics.t]", "[metrics.other]"));
    folder.taut(&["run", "lab.toml", "-o", "other", "--quiet"]).success();
    let trial = &folder.trials("other")[0];
    assert_eq!((&trial["status"], &trial["reason"]), (&"failed".into(), &"no other, which decides success".into()));
}

#[test]
fn a_trial_that_is_the_whole_system_is_held_by_its_limits() {
    let folder = Folder::new();
    let _labs = among_others();
    let cpu = cpu();
    folder.write(
        "lab.toml",
        &format!(
            "trials = 1\n[trial]\ncommand = \"timeout 1 sh -c 'while :; do :; done'; grep Cpus_allowed_list /proc/self/status\"\n\
             timeout_s = 300\n[[scenario]]\nname = \"quota\"\nsystem_quota = 0.2\nsystem_cpus = \"{cpu}\"\n"
        ),
    );
    let output = folder.taut(&["run", "lab.toml", "-o", "out"]).get_output().clone();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("no control group") {
        return skip(Need::Cgroups, said);
    }
    assert!(output.status.success(), "{said}");
    let trial = &folder.trials("out")[0];
    let stdout = folder.read(&format!("out/{}/trial.stdout", trial["logs"].as_str().unwrap()));
    assert_eq!(stdout.split_whitespace().last(), Some(cpu.as_str()), "{stdout}");
    let used = trial["achieved"][0]["achieved"].as_f64().unwrap();
    assert!(used > 0.0 && used < 0.3, "{trial:#}");
}

#[test]
fn the_labs_of_the_workloads_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut labs = 0;
    let folders =
        ["reach", "teleop", "quad"].map(|folder| std::fs::read_dir(root.join("workloads").join(folder)).unwrap());
    for entry in folders.into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("Cargo.toml") {
            let mut check = assert_cmd::Command::new(cargo_bin!("taut"));
            let output = check.args(["lab", "check"]).arg(&path).current_dir(&root).output().unwrap();
            // What cannot be done here is another matter.
            assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
            labs += 1;
        }
    }
    assert!(labs >= 5);
}

#[test]
fn a_server_that_was_there_before_is_not_taken_for_the_system() {
    let folder = Folder::new();
    let _labs = among_others();
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = stranger.local_addr().unwrap();
    folder.write(
        "lab.toml",
        &format!(
            "trials = 1\n[[process]]\nname = \"p\"\ncommand = \"sleep 100\"\nready = {{ tcp = \"{address}\" }}\n\
             [trial]\ncommand = \"true\"\ntimeout_s = 1\n[[scenario]]\nname = \"none\"\n"
        ),
    );
    let said = format!("process \"p\".ready: another program answers at {address}");
    folder.taut(&["run", "lab.toml"]).code(2).stderr(predicate::str::contains(said));
}

#[test]
fn the_load_that_breaks_a_system_is_found_and_the_search_resumes() {
    let folder = Folder::new();
    let _labs = among_others();
    // It reads its own load: more than 12 workers are too many for it.
    folder.write(
        "lab.toml",
        r#"
trials = 1
settle_s = 0
[trial]
command = "test $(($(ls /proc/$(pgrep -P $PPID -f [l]oad-worker)/task | wc -l) - 1)) -le 12"
timeout_s = 300
[[scenario]]
name = "sleepers"
load = [{ kind = "timers", workers = 1 }]
[break]
scenario = "sleepers"
vary = "workers"
from = 2
to = 40
success = 0.5
alpha = 0.1
most_trials = 60
"#,
    );
    let found = folder.json(&["break", "lab.toml", "-o", "out"]);
    assert_eq!((&found["kind"], &found["outcome"]), (&"lab-break".into(), &"between".into()), "{found:#}");
    let (fine, broken) = (found["fine"]["value"].as_f64().unwrap(), found["broken"]["value"].as_f64().unwrap());
    assert!(fine <= 12.0 && broken > 12.0, "{found:#}");
    let achieved = |end: &str| found[end]["achieved"].as_f64().unwrap();
    assert!(achieved("fine") > 0.0);
    if achieved("fine") < achieved("broken") {
        assert_eq!(found["threshold"], serde_json::json!([achieved("fine"), achieved("broken")]), "{found:#}");
    }
    // Cut in the middle of a trial: the same search goes on.
    let text = folder.read("out/manifest.jsonl");
    let cut = text.lines().take(6).map(|line| format!("{line}\n")).collect::<String>() + "{\"record\":\"tri";
    folder.write("out/manifest.jsonl", &cut);
    let again = folder.json(&["break", "lab.toml", "-o", "out", "--resume"]);
    assert_eq!(
        (&again["fine"]["value"], &again["broken"]["value"]),
        (&found["fine"]["value"], &found["broken"]["value"])
    );
}

#[test]
fn a_search_that_cannot_make_its_load_says_what_to_ask_for() {
    let folder = Folder::new();
    let _labs = among_others();
    folder.write(
        "lab.toml",
        "trials = 1\nsettle_s = 0\napplied = 0.3\n[trial]\ncommand = \"true\"\ntimeout_s = 300\n[[scenario]]\nname = \"storm\"\n\
         load = [{ kind = \"forks\", workers = 1, rate_hz = 1 }]\n[break]\nscenario = \"storm\"\nvary = \"rate_hz\"\n\
         from = 40\nto = 1e7\nsuccess = 0.5\n",
    );
    let found = folder.json(&["break", "lab.toml", "-o", "out", "--quiet"]);
    assert_eq!(
        (&found["outcome"], &found["threshold"]),
        (&"open".into(), &serde_json::json!([null, null])),
        "{found:#}"
    );
    let why = found["why"].as_str().unwrap();
    assert!(why.contains("5 invalid trials in a row at rate_hz 10000000: load forks"), "{why}");
    assert!(why.contains("end the search at what it makes, [break] to = "), "{why}");
}

#[test]
fn a_grid_is_run_and_its_folder_packed() {
    let folder = Folder::new();
    let _labs = among_others();
    folder.write(
        "lab.toml",
        r#"
trials = 2
settle_s = 0
[trial]
command = "echo \"{\\\"depth\\\": ${DEPTH:-0}}\""
timeout_s = 300
report = "json"
[metrics.depth]
[[scenario]]
name = "none"
[[scenario]]
name = "deep"
[sweep]
scenario = "deep"
trials = 3
[sweep.vary]
"environment.DEPTH" = ["4", "9"]
"#,
    );
    folder.taut(&["check", "lab.toml"]).success().stdout(predicate::str::contains("2 points of deep"));
    let found = folder.json(&["sweep", "lab.toml", "-o", "grid"]);
    assert_eq!(found["kind"], "lab-sweep");
    let medians: Vec<(&str, f64)> = found["scenarios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["name"].as_str().unwrap(), s["metrics"][0]["median"].as_f64().unwrap()))
        .collect();
    assert_eq!(medians, [("none", 0.0), ("deep-DEPTH=4", 4.0), ("deep-DEPTH=9", 9.0)]);
    assert_eq!(found["points"][1]["values"]["environment.DEPTH"], "9");
    assert_eq!(folder.trials("grid").len(), 9);
    folder
        .taut(&["run", "lab.toml", "-o", "grid", "--resume"])
        .code(2)
        .stderr(predicate::str::contains("another kind"));

    folder.taut(&["archive", "grid"]).success();
    let unpack = Command::new("sh")
        .args(["-c", "mkdir un && tar --zstd -xf grid.tar.zst -C un && cd un/grid && sha256sum --quiet -c SHA256SUMS"])
        .current_dir(folder.0.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&unpack.stderr).into_owned();
    if said.contains("zstd: Cannot exec") {
        return skip(Need::Zstd, "tar finds no zstd program here");
    }
    assert!(unpack.status.success(), "{said}");
    assert_eq!(folder.read("un/grid/manifest.jsonl"), folder.read("grid/manifest.jsonl"));
}

#[test]
fn a_quota_holds_the_system_and_says_what_it_used() {
    let folder = Folder::new();
    let _labs = among_others();
    folder.write(
        "lab.toml",
        r#"
trials = 1
[[process]]
name = "burner"
command = "echo up; while :; do :; done"
ready = { stdout = "up" }
[trial]
command = "sleep 1"
timeout_s = 300
[[scenario]]
name = "none"
[[scenario]]
name = "quota"
system_quota = 0.2
"#,
    );
    let ran = folder.taut(&["run", "lab.toml", "-o", "out"]);
    let output = ran.get_output().clone();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("no control group") {
        return skip(Need::Cgroups, said);
    }
    assert!(output.status.success(), "{said}");
    let trials = folder.trials("out");
    let quota = trials.iter().find(|trial| trial["scenario"] == "quota").unwrap();
    let used = &quota["achieved"][0];
    assert_eq!((&used["unit"], &used["target"], &used["applied"]), (&"CPUs used".into(), &0.2.into(), &true.into()));
    let used = used["achieved"].as_f64().unwrap();
    assert!(used > 0.0 && used < 0.3, "{quota:#}");
    let mounted = std::fs::read_to_string("/proc/mounts").unwrap();
    let groups: Vec<&str> = mounted.lines().filter(|line| line.contains("cgroup")).collect();
    for mount in groups.iter().filter_map(|line| line.split(' ').nth(1)) {
        let left = std::fs::read_dir(mount).into_iter().flatten().flatten().filter(|entry| {
            entry.file_name().to_string_lossy().starts_with("taut-lab-")
                && with_mark(folder.0.path().to_str().unwrap()).is_empty()
                && entry.file_name().to_string_lossy().contains(&format!("-{}-", std::process::id()))
        });
        assert_eq!(left.count(), 0, "{mount}");
    }
}

#[test]
fn starts_in_networks_of_their_own_share_an_address() {
    let folder = Folder::new();
    let _labs = among_others();
    // A fixed port would be taken if the test's own network were used; in there it is always free.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    folder.write("server.py", &SERVER.replace("(\"127.0.0.1\", 0)", &format!("(\"127.0.0.1\", {port})")));
    // The server listens, and with that is ready, before it has written its port down.
    folder.write("client.py", &CLIENT.replace("int(open(\"port\").read())", &port.to_string()));
    folder.write(
        "lab.toml",
        &format!(
            r#"
trials = 2
own_network = true
[[process]]
name = "server"
command = ["python3", "server.py"]
ready = {{ tcp = "127.0.0.1:{port}" }}
[trial]
command = ["python3", "client.py"]
timeout_s = 300
report = "json"
[metrics.ask_ms]
[[scenario]]
name = "none"
[[scenario]]
name = "shaped"
network = {{ delay_ms = 10 }}
"#
        ),
    );
    let output = folder.taut(&["run", "lab.toml", "-o", "out"]).get_output().clone();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("run as root") {
        return skip(Need::Namespaces, "only the superuser may have a network namespace");
    }
    let trials = folder.trials("out");
    let of = |name: &str| trials.iter().filter(|t| t["scenario"] == name).cloned().collect::<Vec<_>>();
    if said.contains("modprobe sch_netem") || said.contains("install iproute2") {
        // Without netem nothing can be delayed, and that is said; the rest must work.
        folder.taut(&["check", "lab.toml"]).code(2).stdout(predicate::str::contains("network"));
        let text = folder.read("lab.toml").replace("network = { delay_ms = 10 }", "");
        folder.write("lab.toml", &text);
        folder.taut(&["run", "lab.toml", "-o", "plain"]).success();
        let plain = folder.trials("plain");
        assert!(plain.iter().all(|trial| trial["status"] == "success"), "{plain:#?}");
        return skip(Need::Netem, "this kernel cannot add delay");
    }
    assert!(of("none").iter().chain(&of("shaped")).all(|trial| trial["status"] == "success"), "{trials:#?}");
    let met = of("shaped")[0]["achieved"][0]["achieved"].as_f64().unwrap();
    assert!(met >= 9.0, "{met}");
}

#[test]
fn a_trial_outside_its_gate_is_replaced_and_a_failed_one_keeps_what_was_seen() {
    let folder = Folder::new();
    let _labs = among_others();
    folder.write(
        "trial.sh",
        "echo x >> begun\ncase $(wc -l < begun) in\n2) echo '{\"rate\": 0.5, \"t\": 1}' ;;\n3) sleep 1000 ;;\n\
         *) echo '{\"rate\": 1, \"t\": 1}' ;;\nesac\n",
    );
    folder.write(
        "lab.toml",
        r#"
trials = 5
[trial]
command = "sh trial.sh"
timeout_s = 2
report = "json"
[metrics.rate]
valid_from = 0.99
[metrics.t]
about = "T1 how long it takes"
[[scenario]]
name = "none"
"#,
    );
    let found = folder.with_one_timeout();
    let trials = folder.trials("out");
    let ends: Vec<&str> = trials.iter().map(|trial| trial["status"].as_str().unwrap()).collect();
    assert_eq!(ends, ["success", "invalid", "timeout", "success", "success", "success"]);
    assert_eq!(trials[1]["index"], trials[2]["index"], "the next one is in its place");
    let reason = trials[1]["reason"].as_str().unwrap();
    assert_eq!(reason, "rate of 0.5 is below 0.99, which makes a trial valid");
    assert!(found["notes"].to_string().contains("1 were run again"), "{}", found["notes"]);
    let threads = folder.read(&format!("out/{}/threads.txt", trials[2]["logs"].as_str().unwrap()));
    assert!(threads.contains("trial") && threads.contains("sleep"), "{threads}");
}

#[test]
fn metrics_come_out_of_what_the_system_stamps() {
    let folder = Folder::new();
    let _labs = among_others();
    folder.write(
        "robot.c",
        r#"
#include "taut.h"
#include <fcntl.h>
int main(int argc, char **argv) {
  puts("up"); fflush(stdout);
  for (uint64_t id = 1; argc == 1 || id <= 50; id++) {
    TAUT_STAMP("robot.read", id);
    usleep(argc > 1 ? 3000 : 2000);
    TAUT_STAMP("robot.written", id);
    if (argc == 1 && id % 50 == 0) close(creat("fifty", 0600));
  }
}
"#,
    );
    // 50 messages at least.
    let wait = until_file("fifty");
    let fifty = format!("rm -f fifty; {wait}; rm fifty; {wait}");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-O2", "-pthread", "robot.c", "-o", "robot", "-I"]).arg(include);
    assert!(gcc.current_dir(folder.0.path()).status().unwrap().success());
    folder.write(
        "lab.toml",
        &r#"
trials = 1
[[process]]
name = "robot"
command = ["./robot"]
ready = { stdout = "up" }
[trial]
command = "FIFTY"
timeout_s = 300
report = "stamps"
tier = "stamps"
[metrics.work_us]
unit = "µs"
stamps = { points = ["robot.read", "robot.written"], figure = "p50" }
[metrics.messages]
stamps = { points = ["robot.read", "robot.written"], figure = "messages" }
[metrics.never]
stamps = { points = ["robot.read", "robot.nowhere"] }
[[scenario]]
name = "none"
"#
        .replace("FIFTY", &fifty),
    );
    folder.taut(&["run", "lab.toml", "-o", "out"]).success();
    let trial = &folder.trials("out")[0];
    let metrics = &trial["metrics"];
    assert!(metrics["work_us"].as_f64().unwrap() >= 2000.0, "{trial:#}");
    assert!(metrics["messages"].as_f64().unwrap() >= 10.0, "{trial:#}");
    assert!(metrics.get("never").is_none());
    assert_eq!(trial["status"], "success", "{trial:#}");
    // The recording is there for `taut explain`.
    let recording = format!("out/{}/trial.mcap", trial["logs"].as_str().unwrap());
    let mut report = assert_cmd::Command::new(cargo_bin!("taut"));
    // A busy machine may lose kernel events: 5.
    assert!(matches!(
        report.args(["report", &recording]).current_dir(folder.0.path()).assert().get_output().status.code(),
        Some(0 | 5)
    ));

    // Where the trial is the whole system it is recorded as a command.
    let text = folder.read("lab.toml");
    let (head, tail) = (text.find("[[process]]").unwrap(), text.find("[trial]").unwrap());
    let text = (text[..head].to_owned() + &text[tail..]).replace(&fifty, "./robot x").replace("p50", "max");
    folder.write("lab.toml", &text);
    folder.taut(&["run", "lab.toml", "-o", "whole"]).success();
    let trial = &folder.trials("whole")[0];
    assert!(trial["metrics"]["work_us"].as_f64().unwrap() >= 3000.0, "{trial:#}");

    // A limit on what was stamped decides success.
    folder.write("lab.toml", &text.replace("unit = \"µs\"\n", "unit = \"µs\"\nsuccess_to = 2000\n"));
    folder.taut(&["run", "lab.toml", "-o", "limited"]).success();
    let trial = &folder.trials("limited")[0];
    assert_eq!(trial["status"], "failed", "{trial:#}");
    let reason = trial["reason"].as_str().unwrap();
    assert!(reason.starts_with("work_us of ") && reason.ends_with(" is above 2000, its limit"), "{reason}");
}

/// Stamps a message each 2 ms, and many at once where a file asks for it, or an argument.
const HASTY: &str = r#"
#include "taut.h"
#include <stdio.h>
#include <unistd.h>
static uint64_t id;
static void work(long messages) {
  while (messages--) {
    id++;
    TAUT_STAMP("robot.read", id);
    TAUT_STAMP("robot.written", id);
  }
}
int main(int argc, char **argv) {
  (void)argv;
  puts("up"); fflush(stdout);
  if (argc > 1) { work(200000); return 0; }
  for (;; usleep(2000)) {
    work(1);
    if (access("hasty", F_OK) == 0) { work(200000); unlink("hasty"); }
  }
}
"#;

/// Kills the recorder of the first trial: like this shell it is a child of the lab.
const KILL: &str = r#"
[ -e killed ] && exit 0
touch killed
for it in /proc/[0-9]*; do
  grep -q "^PPid:.$PPID$" $it/status && tr '\0' ' ' < $it/cmdline | grep -q ' record ' && kill -9 ${it#/proc/}
done 2> /dev/null
exit 0
"#;

#[test]
fn a_trial_whose_stamps_are_not_whole_is_no_success() {
    const SMALL_RINGS: &str = "environment = { TAUT_RING_RECORDS = \"64\" }\n";
    const ROBOT: &str = "[[process]]\nname = \"robot\"\ncommand = [\"./robot\"]\nready = { stdout = \"up\" }\n";
    let folder = Folder::new();
    let _labs = among_others();
    folder.write("robot.c", HASTY);
    folder.write("kill.sh", KILL);
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O2", "-pthread", "robot.c", "-o", "robot", "-I"]).arg(include);
    assert!(gcc.current_dir(folder.0.path()).status().unwrap().success());
    let ran = |name: &str, trials: u32, system: &str, command: &str| {
        let rest = "report = \"stamps\"\ntier = \"stamps\"\n[metrics.messages]\n\
                    stamps = { points = [\"robot.read\", \"robot.written\"], figure = \"messages\" }\n\
                    [[scenario]]\nname = \"none\"\n";
        folder.write("lab.toml", &format!("trials = {trials}\n{system}[trial]\ncommand = {command}\n{rest}"));
        folder.taut(&["run", "lab.toml", "-o", name]).success();
        folder.trials(name)
    };
    let reason = |trial: &Value| trial["reason"].as_str().unwrap().to_owned();

    let trials = ran("killed_recorder", 5, ROBOT, "[\"sh\", \"kill.sh\"]\ntimeout_s = 20");
    let ends: Vec<&str> = trials.iter().map(|trial| trial["status"].as_str().unwrap()).collect();
    assert_eq!(ends, ["invalid", "success", "success", "success", "success", "success"], "{trials:#?}");
    assert!(reason(&trials[0]).starts_with("the recorder ended with signal 9"), "{}", reason(&trials[0]));
    assert_eq!(trials[0]["index"], trials[1]["index"], "the next one is in its place");
    assert!(trials[0]["metrics"].get("messages").is_none(), "{:#}", trials[0]);

    // Most stamps are lost: that is no success. A command that fails has failed all the same.
    let hasty = "touch hasty; while [ -e hasty ]; do sleep 0.01; done";
    let system = format!("{SMALL_RINGS}{ROBOT}");
    let trials = ran("lost", 1, &system, &format!("\"{hasty}\"\ntimeout_s = 20"));
    assert_eq!(trials[0]["status"], "invalid", "{:#}", trials[0]);
    assert!(reason(&trials[0]).contains(" stamps were lost"), "{}", reason(&trials[0]));
    assert!(trials[0]["metrics"].get("messages").is_none(), "{:#}", trials[0]);
    let trials = ran("failed", 1, &system, &format!("\"{hasty}; exit 3\"\ntimeout_s = 20"));
    assert_eq!(trials[0]["status"], "failed", "{:#}", trials[0]);

    // The same where the trial is the whole system, whose recorder runs it.
    let trials = ran("whole", 1, SMALL_RINGS, "[\"./robot\", \"1\"]\ntimeout_s = 20");
    assert_eq!(trials[0]["status"], "invalid", "{:#}", trials[0]);
    assert!(reason(&trials[0]).contains(" stamps were lost"), "{}", reason(&trials[0]));
    let trials = ran("killed_whole", 1, "", "\"kill -9 $PPID\"\ntimeout_s = 20");
    assert_eq!(trials[0]["status"], "invalid", "{:#}", trials[0]);
    // The lab ends what hangs, and its recorder with it.
    let trials = ran("hangs", 1, "", "\"sleep 1000\"\ntimeout_s = 1");
    assert_eq!(trials[0]["status"], "timeout", "{:#}", trials[0]);
}

#[test]
fn rounds_run_on_other_hosts_and_those_of_a_lost_one_elsewhere() {
    let folder = Folder::new();
    let _labs = among_others();
    let Some(sshd) = Sshd::start(&folder) else {
        return skip(Need::Sshd, "no sshd that this user may start");
    };
    folder.write("there.sh", "test -f data/file && echo \"{\\\"here\\\": $(ls | wc -l)}\"");
    std::fs::create_dir(folder.path("data")).unwrap();
    folder.write("data/file", "x");
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let host = |name: &str, port: u16| {
        let options = format!(
            r#"["-o", "Port={port}", "-i", "{}", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]"#,
            folder.path("key").display()
        );
        format!(
            "[[host]]\nname = \"{name}\"\nssh = \"{}@127.0.0.1\"\noptions = {options}\nfolder = \"{}\"\n",
            user.trim(),
            folder.0.path().display()
        )
    };
    // Port 1 is nobody's: that host is lost at its first round.
    folder.write(
        "lab.toml",
        &format!(
            "trials = 3\nfiles = [\"data\"]\n{}{}[trial]\ncommand = [\"sh\", \"there.sh\"]\ntimeout_s = 300\nreport = \"json\"\n\
             [metrics.here]\n[[scenario]]\nname = \"none\"\n[[scenario]]\nname = \"again\"\n",
            host("arm", sshd.1),
            host("gone", 1)
        ),
    );
    let ran = folder.taut(&["run", "lab.toml", "-o", "out", "--format", "json"]).success().get_output().clone();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("host gone is lost") && said.contains("is run elsewhere"), "{said}");
    let trials = folder.trials("out");
    assert_eq!(trials.len(), 6);
    for trial in &trials {
        assert_eq!((&trial["status"], &trial["host"]), (&"success".into(), &"arm".into()), "{trial:#}");
        assert!(folder.path("out").join(trial["logs"].as_str().unwrap()).join("trial.stdout").exists());
    }
    let found: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert!(found["notes"].to_string().contains("trials by host: arm 6"), "{}", found["notes"]);
    let left: Vec<_> = std::fs::read_dir(folder.0.path())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("taut-lab-"))
        .collect();
    assert!(left.is_empty(), "{left:?}: {said}");
}
