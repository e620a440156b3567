//! `taut doctor` as a process: on this machine, on machines that were written down, and on input that is not what it should
//! be. Measuring is tried on what this user may change, and left out where that is nothing.

use std::path::PathBuf;

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use taut_skip::{Need, skip};

/// A machine of the doctor's own tests.
fn machine(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../measure/taut-doctor/tests/machines");
    path.join(format!("{name}.txt")).canonicalize().unwrap().display().to_string()
}

fn taut(arguments: &[&str]) -> assert_cmd::assert::Assert {
    assert_cmd::Command::new(cargo_bin!("taut")).arg("doctor").args(arguments).assert()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = taut(arguments).success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

/// One line on stderr that holds `text`, nothing on stdout, exit code 2.
fn refuses(arguments: &[&str], text: &str) {
    taut(arguments)
        .code(2)
        .stdout("")
        .stderr(predicate::str::contains(text.to_owned()).and(predicate::function(|e: &str| e.lines().count() == 1)));
}

#[test]
fn this_machine_is_examined_whatever_it_is() {
    taut(&[]).success().stdout(predicate::str::is_match(r"(?m)^\d+ good, \d+ bad").unwrap());
    let value = json(&["--format", "json"]);
    assert_eq!(value["kind"], "doctor");
    let findings = value["findings"].as_array().unwrap();
    assert!(findings.len() >= 30, "{} checks", findings.len());
    for finding in findings {
        let with_remedy = matches!(finding["state"].as_str().unwrap(), "bad" | "warn");
        assert_eq!(finding["remedy"].is_object(), with_remedy, "{finding:#}");
        assert!(!finding["value"].as_str().unwrap().is_empty(), "{finding:#}");
        assert!(!finding["read"].as_array().unwrap().is_empty(), "{finding:#}");
    }
    assert_eq!(findings[1]["id"], "high-resolution-timers");
    assert_eq!(findings[1]["state"], "good", "every kernel that runs these tests has them");
}

#[test]
fn strict_fails_on_what_is_bad() {
    taut(&["--machine", &machine("laptop"), "--strict"]).code(1).stdout(predicate::str::contains("zone-reclaim"));
    taut(&["--machine", &machine("laptop")]).success();
    taut(&["--machine", &machine("metal-rt"), "--cpus", "2,3", "--strict"]).success();
    taut(&["--machine", &machine("empty"), "--strict"]).success().stdout(predicate::str::contains("\n0 bad"));
}

#[test]
fn a_named_interface_port_and_process_are_looked_at() {
    let pi = machine("raspberry-pi-5");
    let value = json(&["--machine", &pi, "--format", "json", "--interface", "eth0", "--tty", "ttyUSB0", "--cpus", "3"]);
    let of = |id: &str| value["findings"].as_array().unwrap().iter().find(|f| f["id"] == id).unwrap().clone();
    assert_eq!(of("coalescing")["undo"], "ethtool -C eth0 adaptive-rx off rx-usecs 49");
    assert_eq!(of("ftdi-latency")["remedy"]["commands"][0], "echo 1 > /sys/class/tty/ttyUSB0/device/latency_timer");
    assert_eq!(of("isolation")["value"], "CPU 3, except from interrupts of multi-queue devices");
    let own = std::process::id().to_string();
    let value = json(&["--pid", &own, "--format", "json"]);
    let policy = value["findings"].as_array().unwrap().iter().find(|f| f["id"] == "loop-policy").unwrap().clone();
    assert_eq!(policy["state"], "bad", "tests are ordinary threads");
    assert_eq!(value["asked"]["pid"].to_string(), own);
}

#[test]
fn the_script_is_one_and_changes_nothing_by_itself() {
    for name in ["laptop", "raspberry-pi-4", "container", "empty"] {
        let output = taut(&["--machine", &machine(name), "--fix"]).success().get_output().stdout.clone();
        let script = String::from_utf8(output).unwrap();
        assert!(script.starts_with("#!/bin/sh\n"));
        let checked = std::process::Command::new("sh").args(["-n", "-c", &script]).output().unwrap();
        assert!(checked.status.success(), "{name}: {}", String::from_utf8_lossy(&checked.stderr));
        let commands: Vec<&str> = script.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
        let undone = script.lines().filter(|line| line.starts_with("# undo: ")).count();
        assert!(undone >= commands.len(), "{name}: {commands:#?}");
    }
}

#[test]
fn a_machine_written_down_is_examined_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("here.txt").display().to_string();
    let here = json(&["--write-down", &path, "--format", "json"]);
    let there = json(&["--machine", &path, "--format", "json"]);
    assert_eq!(here["findings"], there["findings"]);
    assert_eq!(here["machine"], there["machine"]);
}

#[test]
fn a_profile_has_the_checks_that_it_names_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tuned.checks");
    let profile = path.display().to_string();
    std::fs::write(&path, "# place: p99 1.2 ms → 111 µs\npreemption # the kernel\n\n swappiness\n").unwrap();
    let value = json(&["--machine", &machine("laptop"), "--profile", &profile, "--format", "json"]);
    let ids: Vec<&str> = value["findings"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["preemption", "swappiness"]);
    std::fs::write(&path, "swappines\n").unwrap();
    refuses(&["--profile", &profile], "tuned.checks: swappines: no such check; ");
    std::fs::write(&path, "# nothing\n").unwrap();
    refuses(&["--profile", &profile], "it names no check");
    refuses(&["--profile", "missing.checks"], "missing.checks: No such file");
}

#[test]
fn every_check_is_listed() {
    let list = json(&["--list", "--format", "json"]);
    let checks = list["checks"].as_array().unwrap();
    assert!(checks.len() >= 30);
    for check in checks {
        for field in ["id", "title", "good", "why", "remedy", "effect"] {
            assert!(!check[field].as_str().unwrap().is_empty(), "{check:#}");
        }
        taut(&["--list"]).success().stdout(predicate::str::contains(check["id"].as_str().unwrap()));
    }
}

#[test]
fn output_goes_to_a_file_or_to_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("doctor.json");
    taut(&["--machine", &machine("laptop"), "--format", "json", "-o", &path.display().to_string()])
        .success()
        .stdout("");
    let value: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(value["schema_version"], 2);
    for (form, begins) in [("html", "<!doctype html>"), ("markdown", "### doctor")] {
        let text = predicate::str::starts_with(begins).and(predicate::str::contains("Preemption"));
        taut(&["--machine", &machine("laptop"), "--format", form]).success().stdout(text);
    }
    refuses(&["--machine", &machine("laptop"), "-o", "no/such/folder.txt"], "no/such/folder.txt");
}

#[test]
fn bad_input_is_one_line() {
    let laptop = machine("laptop");
    refuses(&["--machine", "missing.txt"], "missing.txt: No such file");
    refuses(&["--machine", "Cargo.toml"], "Cargo.toml: is not a machine");
    refuses(&["--machine", &laptop, "--cpus", "9"], "CPU 9 does not run here; there are 0-7");
    refuses(&["--machine", &laptop, "--cpus", "two"], "give a list such as 2,3");
    refuses(&["--machine", &laptop, "--cpus", ""], "give a list such as 2,3");
    refuses(&["--machine", &laptop, "--interface", "eth9"], "not here; there are lo, wlp0s20f3");
    refuses(&["--machine", &laptop, "--interface", "$(reboot)"], "no interface has such a name");
    refuses(&["--machine", &laptop, "--tty", "/etc/passwd"], "give a port such as /dev/ttyUSB0");
    refuses(&["--machine", &laptop, "--tty", "ttyUSB9"], "no such port here");
    refuses(&["--pid", "4194305"], "no such process");
    refuses(&["--measure", "swapines"], "no such check; ");
    refuses(&["--measure", "preemption", "--allow-changes"], "cannot be measured: ");
    refuses(&["--measure", "high-resolution-timers", "--allow-changes"], "it is good already (1 ns)");
}

/// The machine is one, and tests run beside each other.
static MACHINE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// A check of this machine whose remedy is one value for one file that this user may write.
fn changeable() -> Option<(String, String)> {
    let value = json(&["--format", "json"]);
    let findings = value["findings"].as_array().unwrap().clone();
    // Harmless for the few milliseconds.
    let wanted = ["stat-interval", "compaction", "timer-migration", "swappiness", "ip-fragments"];
    findings.iter().find_map(|finding| {
        let id = finding["id"].as_str()?;
        let command = finding["remedy"]["commands"][0].as_str()?;
        let file = command.rsplit_once("> ")?.1;
        let writable = std::fs::OpenOptions::new().write(true).open(file).is_ok();
        (wanted.contains(&id) && finding["remedy"]["how"] == "write" && writable)
            .then(|| (id.to_owned(), file.to_owned()))
    })
}

#[test]
fn a_remedy_is_measured_only_when_allowed_and_is_taken_back() {
    let _alone = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some((id, file)) = changeable() else {
        return skip(Need::Settings, "nothing here may be changed by this user");
    };
    let before = std::fs::read_to_string(&file).unwrap();
    refuses(&["--measure", &id], "add --allow-changes");
    let measure = ["--measure", &id, "--allow-changes", "--duration", "300ms", "--rounds", "2"];
    taut(&measure).success().stdout(predicate::str::contains("too few rounds")).stderr(predicate::str::contains(&file));
    let value = json(&[&measure[..], &["--format", "json"]].concat());
    assert_eq!(value["measured"]["rounds"].as_array().unwrap().len(), 2);
    assert!(value["measured"]["before"]["n"].as_u64().unwrap() > 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
}

#[test]
fn an_interrupted_measurement_takes_it_back() {
    let _alone = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some((id, file)) = changeable() else {
        return skip(Need::Settings, "nothing here may be changed by this user");
    };
    let before = std::fs::read_to_string(&file).unwrap();
    let child = std::process::Command::new(cargo_bin!("taut"))
        .args(["doctor", "--measure", &id, "--allow-changes", "--duration", "1200s", "--rounds", "600"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Until the remedy is in force, once: a round is two seconds.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(600);
    while std::fs::read_to_string(&file).unwrap() == before {
        assert!(std::time::Instant::now() < deadline, "the remedy was never applied");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // SAFETY: a signal to a child that has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    assert_eq!(output.status.code(), Some(128 + libc::SIGINT), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Stopped early"));
}
