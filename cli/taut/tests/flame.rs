//! `taut record --profile` and `taut flame` on a program that spends its time in a known function.

use std::{path::Path, process::Command};

use assert_cmd::cargo::cargo_bin;

/// Half a second in `known_work`, which nobody inlines, called by `caller`.
const PROGRAM: &str = r"
#include <time.h>
static volatile unsigned long sink;
__attribute__((noinline)) void known_work(void) { for (int i = 0; i < 100000; i++) sink += i; }
__attribute__((noinline)) void caller(void) { known_work(); sink++; }
int main(void) {
    struct timespec t;
    do { caller(); clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); } while (t.tv_sec == 0 && t.tv_nsec < 500000000);
    return 0;
}
";

fn taut(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let output = Command::new(cargo_bin!("taut")).args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// A recording of the program, or `None` with a message where sampling is not permitted.
fn recorded(folder: &Path) -> Option<()> {
    std::fs::write(folder.join("busy.c"), PROGRAM).unwrap();
    let flags = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", "busy", "busy.c"];
    let built = Command::new("gcc").args(flags).current_dir(folder).status().expect("gcc; scripts/machine installs it");
    assert!(built.success());
    let record = ["record", "-q", "--tier", "stamps", "--profile", "400", "-o", "run.mcap", "--", "./busy"];
    let (code, _, said) = taut(&record, folder);
    if code == 3 {
        eprintln!("skipped: {said}");
        return None;
    }
    assert_eq!(code, 0, "{said}");
    Some(())
}

#[test]
fn the_function_that_spends_the_time_has_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    if recorded(folder.path()).is_none() {
        return;
    }
    let (code, folded, said) = taut(&["flame", "run.mcap", "--folded"], folder.path());
    assert_eq!(code, 0, "{said}");
    let counts: Vec<(&str, u64)> = folded
        .lines()
        .map(|line| line.rsplit_once(' ').map(|(path, count)| (path, count.parse().unwrap())).unwrap())
        .collect();
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let of = |part: &str| counts.iter().filter(|(path, _)| path.contains(part)).map(|(_, count)| count).sum::<u64>();
    // 200 are expected; a machine that is short of time gives fewer ticks, never other functions.
    assert!(all >= 20, "{folded}");
    assert!(of("busy;") * 10 >= all * 9, "{folded}");
    assert!(of(";main;caller;known_work") * 10 >= all * 8, "{folded}");

    let (code, svg, said) = taut(&["flame", "run.mcap", "--against", "run.mcap", "--process", "busy"], folder.path());
    assert_eq!(code, 0, "{said}");
    assert!(svg.starts_with("<?xml") && svg.contains("known_work ("), "{svg}");
}

#[test]
fn a_recording_without_a_profile_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, _) = taut(&["record", "-q", "--tier", "stamps", "-o", "run.mcap", "--", "true"], folder.path());
    assert_eq!(code, 0);
    let (code, out, said) = taut(&["flame", "run.mcap"], folder.path());
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(said.contains("run.mcap: has no profile; record with --profile 99"), "{said}");
}
