//! Waits on futexes, recorded for real: a mutex is a lock; a semaphore, an atomic's wait and a condition hand over from a thread.

use std::{path::Path, process::Command};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use taut_skip::{Need, skip};

/// Of each message that is handed over; see waits.cpp.
const WORK_NS: u64 = 2_000_000;

/// Over all messages of a recorded run of `waits MEANS`.
#[derive(Debug)]
struct Spent {
    messages: u64,
    lock_ns: u64,
    other_ns: u64,
}

/// Of all messages together: on a busy machine a single one waits for a CPU above all. `None` where the kernel is not recorded. `within`:
/// words in front of the recorder's.
fn spent(folder: &Path, means: &str, within: &[&str]) -> Option<Spent> {
    let file = folder.join(format!("{means}.mcap"));
    let recorded = Command::new("env")
        .args(within)
        .arg(cargo_bin("taut"))
        .args(["record", "-q", "-o"])
        .arg(&file)
        .arg("--")
        .arg(folder.join("waits"))
        .arg(means)
        .output()
        .unwrap();
    // 5: events were lost on a busy machine.
    assert!(matches!(recorded.status.code(), Some(0 | 5)), "{means}: {}", String::from_utf8_lossy(&recorded.stderr));
    let taut = |arguments: &[&str]| {
        let output = Command::new(cargo_bin("taut")).args(arguments).arg(&file).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{means}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let report: Value = serde_json::from_slice(&taut(&["report", "--format", "json"])).unwrap();
    if report["recording"]["tier"] == "stamps" {
        return None;
    }
    let table = String::from_utf8(taut(&["export", "csv", "-o", "-"])).unwrap();
    let mut rows = table.lines().map(|row| row.split(',').collect::<Vec<&str>>());
    let head = rows.next().unwrap();
    let [lock, all] = ["lock_ns", "duration_ns"].map(|name| head.iter().position(|column| *column == name).unwrap());
    let mut spent = Spent { messages: 0, lock_ns: 0, other_ns: 0 };
    for row in rows {
        let [lock_ns, all_ns] = [lock, all].map(|column| row[column].parse::<u64>().unwrap());
        spent.messages += 1;
        spent.lock_ns += lock_ns;
        spent.other_ns += all_ns - lock_ns;
    }
    assert!(spent.messages >= 100, "{means}: {spent:?}");
    Some(spent)
}

/// Recorded again until it is as it must be, or for the tenth time: on a busy machine events are lost, and threads wait for a CPU above all.
fn spent_well(folder: &Path, means: &str, within: &[&str], is_well: impl Fn(&Spent) -> bool) -> Option<Spent> {
    for _ in 0..9 {
        let spent = spent(folder, means, within)?;
        if is_well(&spent) {
            return Some(spent);
        }
    }
    spent(folder, means, within)
}

/// The rest is waiting for a CPU.
fn is_of_a_lock(spent: &Spent) -> bool {
    10 * spent.lock_ns > spent.lock_ns + spent.other_ns
}

/// A folder with the program.
fn built() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++20", "-O2", "-I"]).arg(root.join("../../include"));
    compiler.arg(root.join("tests/waits/waits.cpp")).arg("-o").arg(folder.path().join("waits")).arg("-lpthread");
    let compiled = compiler.output().expect("a C++ compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    folder
}

#[test]
fn in_a_time_namespace_kernel_events_are_on_the_clock_of_the_stamps() {
    let folder = built();
    for ahead_s in ["1000", "-1000"] {
        let within = ["unshare", "--time", "--monotonic", ahead_s, "--fork"];
        let can = Command::new(within[0]).args(&within[1..]).arg("true").output();
        if !can.is_ok_and(|done| done.status.success()) {
            return skip(Need::Namespaces, "time namespaces need the superuser, `unshare` and Linux 5.6");
        }
        let Some(spent) = spent_well(folder.path(), "mutex", &within, is_of_a_lock) else {
            return skip(Need::Perf, "only stamps were recorded");
        };
        assert!(is_of_a_lock(&spent), "{ahead_s}: {spent:?}");
    }
}

#[test]
fn a_mutex_is_a_lock_and_a_hand_over_is_none() {
    let folder = built();
    for (means, is_lock) in
        [("semaphore", false), ("atomic", false), ("condition", false), ("std_mutex", true), ("mutex", true)]
    {
        let is_well = |spent: &Spent| {
            if is_lock {
                return is_of_a_lock(spent);
            }
            // The work that is waited for is no lock's. A condition has a mutex of its own: whoever is woken with it held waits for that, too.
            spent.other_ns >= spent.messages * WORK_NS && (spent.lock_ns == 0 || means == "condition")
        };
        let Some(spent) = spent_well(folder.path(), means, &[], is_well) else {
            return skip(Need::Perf, "only stamps were recorded");
        };
        assert!(is_well(&spent), "{means}: {spent:?}");
    }
}
