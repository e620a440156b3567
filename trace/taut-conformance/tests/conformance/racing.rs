//! The C ring under ThreadSanitizer: both sides of it in one process (`c/ring_race.c`).

use std::process::Command;

use crate::build::{compile, scratch, source};

#[test]
fn thread_sanitizer_finds_no_race_and_nothing_is_torn() {
    let program = scratch("race").join("ring_race");
    compile(
        &["gcc", "-std=c11", "-O2", "-g", "-fsanitize=thread"],
        &[&source("ring_race.c"), "-o", program.to_str().unwrap()],
    );
    let session = tempfile::tempdir_in("/dev/shm").unwrap();
    // setarch -R: ThreadSanitizer wants its addresses where address randomisation may put a library.
    let output = Command::new("setarch")
        .arg("-R")
        .arg(&program)
        .env("TAUT_SESSION", session.path())
        .env("TAUT_RING_RECORDS", "64")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}", output.status);
    let counts: Vec<u64> =
        String::from_utf8(output.stdout).unwrap().split_whitespace().map(|n| n.parse().unwrap()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 3 * 40 * 5000, "arrived and lost");
}
