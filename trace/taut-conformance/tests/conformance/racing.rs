//! The C producer under ThreadSanitizer (`c/ring_race.c`: both sides of the ring in one process), and locks taken in two orders.

use std::{path::Path, process::Command};

use crate::build::{compile, scratch, source};

#[test]
fn thread_sanitizer_finds_no_race_and_nothing_is_torn() {
    let session = tempfile::tempdir_in("/dev/shm").unwrap();
    let output = sanitized("ring_race").env("TAUT_SESSION", session.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}", output.status);
    let counts: Vec<u64> =
        String::from_utf8(output.stdout).unwrap().split_whitespace().map(|n| n.parse().unwrap()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 3 * 40 * 5000, "arrived and lost");
}

#[test]
fn a_session_may_be_attached_while_other_threads_write_into_the_void() {
    let session = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut command = sanitized("attach_race");
    let output = command.arg(session.path()).env("TAUT_SESSION", "/there is no such session").output().unwrap();
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

/// A program of `c/` that is built to find races.
fn sanitized(name: &str) -> Command {
    let program = scratch("race").join(name);
    compile(
        &["gcc", "-std=c11", "-O2", "-g", "-fsanitize=thread"],
        &[&source(&format!("{name}.c")), "-o", program.to_str().unwrap()],
    );
    // setarch -R: ThreadSanitizer wants its addresses where address randomisation may put a library.
    let mut command = Command::new("setarch");
    command.arg("-R").arg(program).env("TAUT_RING_RECORDS", "64");
    command
}

#[test]
fn a_constructor_that_stamps_does_not_wait_for_a_thread_that_waits_for_the_loader() {
    let folder = scratch("constructor");
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let gcc = &["gcc", "-std=gnu11", "-O2"];
    compile(gcc, &["-fPIC", "-shared", &source("linked.c"), "-o", &at("liblinked.so")]);
    compile(gcc, &["-fPIC", "-shared", &source("constructor.c"), "-o", &at("constructor.so")]);
    let (search, rpath) = (format!("-L{}", folder.display()), format!("-Wl,-rpath,{}", folder.display()));
    compile(gcc, &["-rdynamic", &source("loader.c"), &search, "-llinked", &rpath, "-ldl", "-o", &at("loader")]);
    let session = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut loader = Command::new(at("loader"));
    let status = loader.arg(at("constructor.so")).env("TAUT_SESSION", session.path()).status().unwrap();
    assert!(status.success(), "{status}");
    let files = std::fs::read_dir(session.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(files.filter(|path| Path::new(path).extension().is_some_and(|e| e == "taut")).count(), 1);
}
