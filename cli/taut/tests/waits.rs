//! Waits on futexes, recorded for real: a mutex is a lock; a semaphore, an atomic's wait and a condition hand over from a thread.

use std::{path::Path, process::Command};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use taut_skip::{Need, skip};

/// Causes of the slow messages of a recorded run of `waits MEANS`: (cause, share). `None` where the kernel is not recorded.
fn causes(folder: &Path, means: &str) -> Option<Vec<(String, f64)>> {
    let file = folder.join(format!("{means}.mcap"));
    let recorded = Command::new(cargo_bin("taut"))
        .args(["record", "-q", "-o"])
        .arg(&file)
        .arg("--")
        .arg(folder.join("waits"))
        .arg(means)
        .output()
        .unwrap();
    // 5: events were lost on a busy machine.
    assert!(matches!(recorded.status.code(), Some(0 | 5)), "{means}: {}", String::from_utf8_lossy(&recorded.stderr));
    let output = Command::new(cargo_bin("taut")).arg("explain").arg(&file).args(["--format", "json"]).output().unwrap();
    let explained: Value = serde_json::from_slice(&output.stdout).unwrap();
    if explained["recording"]["tier"] == "stamps" {
        return None;
    }
    let cause = |cause: &Value| (cause["cause"].as_str().unwrap().to_owned(), cause["tail_share"].as_f64().unwrap());
    Some(explained["chains"][0]["causes"].as_array().unwrap().iter().map(cause).collect())
}

#[test]
fn a_mutex_is_a_lock_and_a_hand_over_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++20", "-O2", "-I"]).arg(root.join("../../include"));
    compiler.arg(root.join("tests/waits/waits.cpp")).arg("-o").arg(folder.path().join("waits")).arg("-lpthread");
    let compiled = compiler.output().expect("a C++ compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    for (means, is_lock) in
        [("semaphore", false), ("atomic", false), ("condition", false), ("std_mutex", true), ("mutex", true)]
    {
        let Some(causes) = causes(folder.path(), means) else {
            return skip(Need::Perf, "only stamps were recorded");
        };
        let share: f64 = causes.iter().filter(|(cause, _)| cause == "lock").map(|(_, share)| share).sum();
        // A condition has a mutex of its own, and a mutex may have waited for a CPU besides.
        assert!(if is_lock { share > 0.0 } else { share < 0.5 }, "{means}: lock {share}: {causes:?}");
        assert!(is_lock || means == "condition" || share == 0.0, "{means}: {causes:?}");
    }
}
