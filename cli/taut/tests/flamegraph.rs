//! `taut record --profile` and `taut flamegraph` on programs that spend their time in known functions.

use std::{path::Path, process::Command};

use assert_cmd::cargo::cargo_bin;
use taut_skip::{Need, skip};

/// Half a second in `known_work`, which nobody inlines, called by `caller`. A function that calls nobody gets a frame pointer from
/// GCC only when it asks for it.
const PROGRAM: &str = r"
#include <time.h>
static volatile unsigned long sink;
__attribute__((noinline)) void known_work(void) {
    volatile void *frame = __builtin_frame_address(0);
    for (int i = 0; i < 100000; i++) sink += frame != 0;
}
__attribute__((noinline)) void caller(void) { known_work(); sink++; }
int main(void) {
    struct timespec t;
    do { caller(); clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); } while (t.tv_sec == 0 && t.tv_nsec < 500000000);
    return 0;
}
";

/// As a just-in-time compiler does: code in memory of no file, and its name in /tmp/perf-PID.map. The code is
/// push %rbp; mov %rsp, %rbp; mov $10000000, %ecx; dec %ecx; jnz -4; pop %rbp; ret.
#[cfg(target_arch = "x86_64")]
const COMPILER: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0x80, 0x96, 0x98, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
int main(void) {
    void *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(memory, code, sizeof code);
    mprotect(memory, 4096, PROT_READ | PROT_EXEC);
    char path[64];
    sprintf(path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx %lx py::<script>plan</script>:/robot.py 3\n", (unsigned long)memory, sizeof code);
    fclose(map);
    puts(path);
    struct timespec t;
    do { ((void (*)(void))memory)(); clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); } while (t.tv_nsec < 300000000);
    return 0;
}
"#;

fn taut(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let output = Command::new(cargo_bin!("taut")).args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// What the program said while it was recorded, or `None` with a message where sampling is not permitted.
fn recorded(program: &str, folder: &Path) -> Option<String> {
    std::fs::write(folder.join("busy.c"), program).unwrap();
    let frames = ["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];
    let flags = [&frames[..], &["-O1", "-o", "busy", "busy.c"]].concat();
    let built = Command::new("gcc").args(flags).current_dir(folder).status().expect("gcc; scripts/machine installs it");
    assert!(built.success());
    let record = ["record", "-q", "--tier", "stamps", "--profile", "400", "-o", "run.mcap", "--", "./busy"];
    let (code, out, said) = taut(&record, folder);
    if code == 125 && said.contains("perf_event_paranoid") {
        skip(Need::Perf, said);
        return None;
    }
    assert_eq!(code, 0, "{said}");
    Some(out)
}

/// Samples by path, of which there are enough.
fn folded(folder: &Path) -> Vec<(String, u64)> {
    let (code, folded, said) = taut(&["export", "folded", "run.mcap", "-o", "-"], folder);
    assert_eq!(code, 0, "{said}");
    let count =
        |line: &str| line.rsplit_once(' ').map(|(path, count)| (path.to_owned(), count.parse().unwrap())).unwrap();
    let counts: Vec<(String, u64)> = folded.lines().map(count).collect();
    // Hundreds are expected; a machine that is short of time gives fewer ticks, never other functions.
    assert!(counts.iter().map(|(_, count)| count).sum::<u64>() >= 20, "{folded}");
    counts
}

/// Of all samples, those with this in their path.
fn percent(counts: &[(String, u64)], part: &str) -> u64 {
    let of =
        |wanted: &dyn Fn(&str) -> bool| counts.iter().filter(|(path, _)| wanted(path)).map(|(_, n)| n).sum::<u64>();
    of(&|path| path.contains(part)) * 100 / of(&|_| true)
}

#[test]
fn the_function_that_spends_the_time_has_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    if recorded(PROGRAM, folder.path()).is_none() {
        return;
    }
    let counts = folded(folder.path());
    assert!(percent(&counts, "busy;") >= 90, "{counts:?}");
    assert!(percent(&counts, ";main;caller;known_work") >= 80, "{counts:?}");

    let (code, svg, said) = taut(&["flamegraph", "run.mcap", "run.mcap", "--process", "busy"], folder.path());
    assert_eq!(code, 0, "{said}");
    assert!(svg.starts_with("<?xml") && svg.contains("known_work ("), "{svg}");

    let (code, _, said) = taut(&["flamegraph", "run.mcap", "--process", "idle"], folder.path());
    assert_eq!(code, 2);
    assert!(said.contains("run.mcap: no process \"idle\" has samples; there are "), "{said}");

    // Beside the fixed channels, and none of the channels for people.
    let (_, channels, _) = taut(&["telemetry", "run.mcap"], folder.path());
    assert_eq!(channels, "no telemetry in this recording\n");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn code_that_was_compiled_while_the_program_ran_has_the_name_that_its_compiler_left() {
    let folder = tempfile::tempdir().unwrap();
    let Some(map) = recorded(COMPILER, folder.path()) else { return };
    std::fs::remove_file(map.trim()).unwrap();
    let counts = folded(folder.path());
    assert!(percent(&counts, ";main;py::<script>plan</script>:/robot.py 3") >= 80, "{counts:?}");
    let (_, svg, _) = taut(&["flamegraph", "run.mcap"], folder.path());
    assert!(svg.contains("py::&lt;script&gt;plan") && !svg.contains("<script>plan"), "{svg}");
}

#[test]
fn a_recording_without_a_profile_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, _) = taut(&["record", "-q", "--tier", "stamps", "-o", "run.mcap", "--", "true"], folder.path());
    assert_eq!(code, 0);
    let (code, out, said) = taut(&["flamegraph", "run.mcap"], folder.path());
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(said.contains("run.mcap: has no profile; record with --profile 99"), "{said}");
    let (code, _, said) = taut(&["record", "--profile", "0", "--", "true"], folder.path());
    assert_eq!(code, 125, "{said}");
}

/// Computes for a while in a function whose name is given when it is compiled.
const BUSY: &str = "#include <time.h>\n__attribute__((noinline)) double WORK(double x) { for (int i = 0; i < 100000; i++) x = x * 1.0000001 + 1e-9; return x; }\n\
                    int main(void) { double x = 1; for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end;) x = WORK(x); return x < 0; }\n";

fn compiled(folder: &std::path::Path, function: &str, output: &str, options: &[&str]) {
    std::fs::write(folder.join("busy.c"), BUSY).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-fno-omit-frame-pointer", "busy.c", "-o", output]).args(options).current_dir(folder);
    assert!(gcc.arg(format!("-DWORK={function}")).status().unwrap().success());
}

/// In a mount namespace of its own, as in a container, another file has the program's path.
#[test]
fn a_process_with_mounts_of_its_own_has_the_names_of_its_own_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    compiled(path, "work_of_the_container", "inside", &[]);
    compiled(path, "work_of_the_host", "program", &[]);
    let can = Command::new("unshare").args(["-m", "mount", "--bind", "inside", "program"]).current_dir(path).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return skip(Need::Namespaces, "no mount namespace may be made");
    }
    let script = "mount --bind inside program && exec ./program";
    let words =
        ["record", "--profile", "499", "--tier", "stamps", "-o", "run.mcap", "--", "unshare", "-m", "sh", "-c", script];
    let recorded = Command::new(cargo_bin!("taut")).args(words).current_dir(path).output().unwrap();
    let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
    if said.contains("perf_event_paranoid") && !recorded.status.success() {
        return skip(Need::Perf, said);
    }
    assert!(matches!(recorded.status.code(), Some(0 | 5)), "{said}");
    let folded =
        Command::new(cargo_bin!("taut")).args(["export", "folded", "run.mcap", "-o", "-"]).current_dir(path).output();
    let folded = String::from_utf8(folded.unwrap().stdout).unwrap();
    assert!(folded.contains("work_of_the_container"), "{folded}{said}");
    assert!(!folded.contains("work_of_the_host"), "{folded}");
}

#[test]
fn a_file_without_symbols_is_counted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    compiled(folder.path(), "work", "program", &["-s"]);
    let words = ["record", "--profile", "499", "--tier", "stamps", "-o", "run.mcap", "--", "./program"];
    let recorded = Command::new(cargo_bin!("taut")).args(words).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
    if said.contains("perf_event_paranoid") && !recorded.status.success() {
        return skip(Need::Perf, said);
    }
    let line = said.lines().find(|line| line.contains("the profile has no symbols for")).expect(&said);
    assert!(line.contains("/program (its symbol tables do not cover them)"), "{line}");
}
