//! `taut record --flight-recorder` as a process: what asks for a save, and what a save holds.

mod folder;

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
};

use assert_cmd::cargo::cargo_bin;
use folder::{Folder, until};
use taut_recording::{Contents, Record};

/// Stamps at two points, `argv[1]` µs apart, until it is killed or `argv[2]` messages are done; `argv[3]` is then how it ends. Where
/// the file "slow" is, the next message takes 60 ms, and the file goes; with a fourth argument the last one takes 500 ms. For a file "thread"
/// a thread begins, and makes a file of its name; for a file "stop" it ends. The file "warm" is there after 1000 messages. SIGHUP is heeded,
/// and ends nothing.
const ROBOT: &str = r#"
#include "taut.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
static void reload(int signal) { (void)signal; }
static void *work(void *n) {
  char name[16];
  snprintf(name, sizeof name, "worker %d", (int)(intptr_t)n);
  prctl(PR_SET_NAME, name);
  close(creat(name, 0600));
  for (;;) pause();
}
int main(int argc, char **argv) {
  alarm(900); /* A test that fails leaves no robot for ever. */
  signal(SIGINT, SIG_DFL); /* In the background of a script it would be ignored. */
  signal(SIGHUP, reload);
  prctl(PR_SET_TIMERSLACK, 1); /* 0 µs are 0, so that a memory is full in seconds. */
  const uint64_t n = strtoull(argv[2], NULL, 10);
  pthread_t thread;
  int threads = 0;
  for (uint64_t id = 1; id <= n; id++) {
    TAUT_STAMP("robot.read", id);
    usleep(unlink("slow") == 0 ? 60000 : argc > 4 && id == n ? 500000 : (useconds_t)atoi(argv[1]));
    TAUT_STAMP("robot.written", id);
    taut_applied(id);
    if (unlink("thread") == 0) pthread_create(&thread, NULL, work, (void *)(intptr_t)++threads);
    if (id == 1000) close(creat("warm", 0600));
    if (unlink("stop") == 0) break;
  }
  if (argc > 3 && argv[3][0] == '-') raise(atoi(argv[3] + 1));
  return argc > 3 ? atoi(argv[3]) : 0;
}
"#;

fn robot() -> Folder {
    let folder = Folder::new();
    folder.write("robot.c", ROBOT);
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-pthread", "robot.c", "-o", "robot", "-I"]).arg(include).current_dir(folder.0.path());
    assert!(gcc.status().unwrap().success());
    folder
}

fn taut(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin!("taut"));
    command.args(arguments).current_dir(folder.0.path()).env_remove("TAUT_SESSION").stdin(Stdio::null());
    command
}

/// A flight recorder that has begun.
struct Flight {
    recorder: Child,
    said: BufReader<ChildStderr>,
    lines: Vec<String>,
}

impl Flight {
    fn of(folder: &Folder, options: &[&str], robot: &[&str]) -> Flight {
        let record = ["record", "-o", "run.mcap", "--tier", "stamps", "--ignore-loss"];
        let words = [&record[..], options, &["--", "./robot"], robot].concat();
        let mut recorder = taut(folder, &words).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(recorder.stderr.take().unwrap());
        let mut flight = Flight { recorder, said, lines: Vec::new() };
        flight.until("flight recorder: the last");
        flight
    }

    /// Waits for a line that holds `text`.
    #[track_caller]
    fn until(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended before it said {text:?}: {:?}", self.lines);
            self.lines.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: our own child, which was not waited for.
        unsafe { libc::kill(self.recorder.id() as i32, signal) };
    }

    /// The code, and what was not read yet of what it said.
    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.said, &mut rest).unwrap();
        (self.recorder.wait().unwrap().code(), rest)
    }
}

impl Drop for Flight {
    /// A test that fails leaves no recorder behind, and so no robot either.
    fn drop(&mut self) {
        if let Ok(None) = self.recorder.try_wait() {
            self.signal(libc::SIGTERM);
            let _ = self.recorder.wait();
        }
    }
}

/// What a save holds.
struct Held {
    contents: Contents,
    messages: BTreeSet<u64>,
    names: BTreeSet<String>,
    threads: BTreeSet<String>,
    clocks: usize,
    samples: usize,
}

fn held(folder: &Folder, name: &str) -> Held {
    let bytes = std::fs::read(folder.path(name)).unwrap();
    let (mut messages, mut names, mut threads) = <(BTreeSet<u64>, BTreeSet<String>, BTreeSet<String>)>::default();
    let (mut clocks, mut samples) = (0, 0);
    let contents = taut_recording::read(&bytes, &mut |record| match record {
        Record::Stamps(batch) => messages.extend(batch.message_id),
        Record::Name(name) => drop(names.insert(name.name)),
        Record::Thread(thread) => drop(threads.insert(thread.comm)),
        Record::Clock(..) => clocks += 1,
        Record::Sample(_) => samples += 1,
        _ => {}
    });
    Held { contents: contents.unwrap(), messages, names, threads, clocks, samples }
}

/// Whether a recording has more than its head: its recorder can be found by then.
fn has_some(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.len() > 8000)
}

/// It is a recording like another.
#[track_caller]
fn is_whole(folder: &Folder, name: &str, why: &str) -> Held {
    let held = held(folder, name);
    assert!(held.contents.damage.is_empty(), "{:?}", held.contents.damage);
    let ending = held.contents.ending.as_ref().expect("an ending");
    assert!(ending.reason.contains(why), "{}", ending.reason);
    assert_eq!(ending.stamps, held.contents.stamps);
    assert!(ending.end_monotonic_ns > held.contents.info.start_monotonic_ns);
    assert!(held.contents.info.facts.iter().any(|(key, value)| key == "flight_recorder" && value.contains(why)));
    assert!(held.names.contains("robot.read") && held.names.contains("robot.written"), "{:?}", held.names);
    assert!(held.threads.contains("robot"), "{:?}", held.threads);
    assert!(held.clocks > 1 && held.samples > 0, "{} calibrations, {} samples", held.clocks, held.samples);
    assert!(!held.messages.is_empty());
    let (first, last) = (held.messages.first().unwrap(), held.messages.last().unwrap());
    assert_eq!(held.messages.len() as u64, last - first + 1, "messages in the middle are missing");
    let report = taut(folder, &["report", name, "--format", "json"]).output().unwrap();
    assert_eq!(report.status.code(), Some(0), "{}", String::from_utf8_lossy(&report.stderr));
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["chains"][0]["name"], "robot.read → robot.written");
    held
}

#[test]
fn a_signal_saves_the_last_seconds_again_and_again() {
    let folder = robot();
    let mut flight = Flight::of(&folder, &["--flight-recorder=800ms"], &["200", "1000000000"]);
    // Before its first whole message, the robot has not named its second point.
    until("the robot is warm", || folder.path("warm").exists());
    let (mut saves, mut newest_at_first) = (0, None);
    // Until what came first is forgotten, and there is more: a robot without a CPU stamps nothing between two saves.
    loop {
        saves += 1;
        flight.signal(libc::SIGUSR2);
        flight.until(&format!("saved run-{saves}.mcap"));
        let messages = held(&folder, &format!("run-{saves}.mcap")).messages;
        let (oldest, newest) = (*messages.first().expect("messages"), *messages.last().expect("messages"));
        if oldest > 1 && newest > *newest_at_first.get_or_insert(newest) {
            break;
        }
    }
    flight.signal(libc::SIGINT);
    let (code, said) = flight.end();
    assert_eq!(code, Some(130), "the robot has no handler");
    assert!(said.contains(&format!("flight recorder: {saves} recording")), "{said}");
    assert!(!folder.path("run.mcap").exists() && !folder.path(&format!("run-{}.mcap", saves + 1)).exists());
    let mut last = 0;
    for n in 1..=saves {
        let held = is_whole(&folder, &format!("run-{n}.mcap"), "a signal");
        let newest = *held.messages.last().unwrap();
        assert!(newest >= last, "a later save holds later messages");
        last = newest;
    }
    assert!(newest_at_first.is_some_and(|first| last > first), "{newest_at_first:?} {last}");
}

#[test]
fn a_program_that_fails_is_saved_and_one_that_ends_well_is_not() {
    let folder = robot();
    let mut number = 0;
    for (end, code, why) in
        [("-11", 139, "ended by signal 11"), ("-6", 134, "ended by signal 6"), ("3", 3, "exit code 3")]
    {
        let (ended, said) = Flight::of(&folder, &["--flight-recorder"], &["100", "2000", end]).end();
        assert_eq!(ended, Some(code), "{said}");
        number += 1;
        let name = format!("run-{number}.mcap");
        assert!(said.contains(&format!("saved {name}")) && said.contains(why), "{said}");
        let held = is_whole(&folder, &name, why);
        assert_eq!(held.messages, (1..=2000).collect());
        assert_eq!(held.contents.ending.unwrap().exit_code, Some(code));
    }
    for (end, code) in [("0", 0), ("-15", 143)] {
        let (ended, said) = Flight::of(&folder, &["--flight-recorder"], &["100", "100", end]).end();
        assert_eq!(ended, Some(code), "{said}");
        assert!(said.contains("nothing was saved"), "{said}");
    }
    assert!(!folder.path("run-4.mcap").exists());
}

/// A ring that cannot be read is missing in every window, whenever that was told.
#[test]
fn a_save_says_what_it_lacks() {
    let folder = robot();
    let put = r#"(printf 'TAUTRING\003'; head -c 8000 /dev/zero) > "$TAUT_SESSION/.new"; mv "$TAUT_SESSION/.new" "$TAUT_SESSION/7-0.taut""#;
    let script = format!("{put}; exec ./robot 100 1000 3");
    let flight = ["record", "--tier", "stamps", "--flight-recorder", "--session", "s", "-o", "run.mcap"];
    let output = taut(&folder, &[&flight[..], &["--", "sh", "-c", &script]].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let mut lost = 0;
    let contents = taut_recording::read(&std::fs::read(folder.path("run-1.mcap")).unwrap(), &mut |record| {
        if let Record::Lost(told) = record {
            assert!(told.is_estimate, "{told:?}");
            lost += told.count;
        }
    });
    let ending = contents.unwrap().ending.unwrap();
    assert!(ending.lost_stamps == lost && lost > 0, "{said}");
    let notes = ending.notes;
    assert!(notes.len() == 1 && notes[0].contains("7-0.taut: protocol version 3"), "{notes:?}");
}

/// What lies in it, whatever writes to the machine's memory may damage.
#[test]
fn damaged_memory_is_a_loss() {
    let folder = robot();
    let words =
        ["record", "-o", "run.mcap", "--tier", "stamps", "--flight-recorder", "--", "./robot", "100", "1000000000"];
    let mut recorder = taut(&folder, &words).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(recorder.stderr.take().unwrap());
    let flight = Flight { recorder, said, lines: Vec::new() };
    let pid = flight.recorder.id().to_string();
    let memory = || {
        let mut open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().map(|fd| fd.path());
        open.find(|fd| std::fs::read_link(fd).is_ok_and(|to| to.to_string_lossy().contains("live.mcap")))
    };
    let length = || memory().and_then(|file| file.metadata().ok()).map_or(0, |file| file.len());
    until("what is longer than the head of a recording", || length() > 1 << 18);
    let file = std::fs::File::options().write(true).open(memory().unwrap()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xff; 4096], length() / 2).unwrap();
    let saved = taut(&folder, &["record", "--save", "--pid", &pid]).output().unwrap();
    let said = String::from_utf8_lossy(&saved.stderr).into_owned();
    assert!(saved.status.code() == Some(5) && said.contains(" of the memory LOST"), "{said}");
    let notes = held(&folder, "run-1.mcap").contents.ending.unwrap().notes;
    assert!(notes.iter().any(|note| note.ends_with(" of the memory could not be read back")), "{notes:?}");
    // The recorder's own end says so, too: it may have been asked by a signal.
    folder.write("stop", "");
    let (code, said) = flight.end();
    let last = said.lines().find(|line| line.starts_with("taut: flight recorder: 1 recording saved"));
    assert!(last.is_some_and(|line| line.contains(" of the memory LOST")), "{said}");
    assert_eq!(code, Some(5), "{said}");
}

#[test]
fn a_save_can_be_asked_for_from_another_shell() {
    let folder = robot();
    let flight = Flight::of(&folder, &["--flight-recorder"], &["200", "1000000000"]);
    let recorder = flight.recorder.id().to_string();
    until("1000 messages", || folder.path("warm").exists());
    for n in 1..=2 {
        let saved = taut(&folder, &["record", "--save", "--pid", &recorder]).current_dir("/").output().unwrap();
        let path = String::from_utf8(saved.stdout).unwrap();
        assert!(saved.status.success(), "{}", String::from_utf8_lossy(&saved.stderr));
        let expected = folder.path(&format!("run-{n}.mcap"));
        assert_eq!(std::fs::canonicalize(path.trim_end()).unwrap(), std::fs::canonicalize(expected).unwrap());
        is_whole(&folder, &format!("run-{n}.mcap"), "`taut record --save`");
    }
    flight.signal(libc::SIGINT);
    flight.end();
    let gone = taut(&folder, &["record", "--save", "--pid", &recorder]).output().unwrap();
    assert_eq!(gone.status.code(), Some(2));
}

#[test]
fn a_recorder_without_a_flight_recorder_is_asked_for_nothing() {
    let folder = robot();
    let mut recorder =
        taut(&folder, &["record", "-q", "-o", "run.mcap", "--", "./robot", "200", "1000000000"]).spawn().unwrap();
    let pid = recorder.id().to_string();
    until("a recording", || has_some(&folder.path("run.mcap")));
    let asked = taut(&folder, &["record", "--save", "--pid", &pid]).output().unwrap();
    assert_eq!(asked.status.code(), Some(2));
    let said = String::from_utf8(asked.stderr).unwrap();
    assert!(said.contains("keeps no flight recorder") && said.lines().count() == 1, "{said}");
    // SIGUSR2 would have ended the robot.
    assert!(recorder.try_wait().unwrap().is_none());
    // SAFETY: our own child.
    unsafe { libc::kill(recorder.id() as i32, libc::SIGINT) };
    assert_eq!(recorder.wait().unwrap().code(), Some(130));
}

#[test]
fn a_program_that_fails_after_a_signal_that_it_heeded_is_saved() {
    let folder = robot();
    let flight = Flight::of(&folder, &["--flight-recorder"], &["100", "20000", "-11"]);
    until("1000 messages", || folder.path("warm").exists());
    flight.signal(libc::SIGHUP);
    let (code, said) = flight.end();
    assert_eq!(code, Some(139), "{said}");
    is_whole(&folder, "run-1.mcap", "ended by signal 11");
}

#[test]
fn what_a_killed_flight_recorder_left_makes_no_flight_recorder() {
    let folder = robot();
    let session = ["--session", "session"];
    // The robot outlives its recorder, but not by much.
    let mut flight = Flight::of(&folder, &["--flight-recorder", "--session", "session"], &["200", "20000"]);
    flight.recorder.kill().unwrap();
    flight.recorder.wait().unwrap();
    assert!(folder.path("session/saves").exists(), "it could not clear up");
    let ask = || taut(&folder, &[&["record", "--save"][..], &session].concat()).output().unwrap();
    assert_eq!(ask().status.code(), Some(2), "no recorder is there");
    let words = [&["record", "-q", "-o", "plain.mcap"][..], &session, &["--", "./robot", "200", "1000000000"]].concat();
    let mut plain = taut(&folder, &words).spawn().unwrap();
    until("a recording", || has_some(&folder.path("plain.mcap")));
    let asked = ask();
    let said = String::from_utf8(asked.stderr).unwrap();
    assert!(asked.status.code() == Some(2) && said.contains("keeps no flight recorder"), "{said}");
    assert!(plain.try_wait().unwrap().is_none(), "the program goes on");
    // SAFETY: our own child.
    unsafe { libc::kill(plain.id() as i32, libc::SIGINT) };
    assert_eq!(plain.wait().unwrap().code(), Some(130));
}

#[test]
fn a_chain_that_never_came_is_said_at_the_end() {
    let folder = robot();
    let options = ["--flight-recorder", "--save-above", "1us", "--chain", "nope"];
    let flight = Flight::of(&folder, &options, &["1000", "5000"]);
    let (code, said) = flight.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("--chain nope: no message of it was seen, the chains were: robot.read → robot.written"),
        "{said}"
    );
}

#[test]
fn a_message_above_the_limit_is_saved() {
    let folder = robot();
    let options = ["--flight-recorder=15s", "--save-above", "50ms"];
    let mut flight = Flight::of(&folder, &options, &["1000", "1000000000"]);
    // The first messages of a recording count as its start-up.
    until("1000 messages", || folder.path("warm").exists());
    folder.write("slow", "");
    let line = flight.until("saved run-1.mcap");
    assert!(
        line.contains("a message of robot.read → robot.written took") && line.contains("above the limit of 50ms"),
        "{line}"
    );
    flight.signal(libc::SIGINT);
    flight.end();
    is_whole(&folder, "run-1.mcap", "above the limit");
    let report = taut(&folder, &["report", "run-1.mcap", "--format", "json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    // On a busy machine another message may have been the first above it.
    assert!(report["chains"][0]["end_to_end"]["max_ns"].as_u64().unwrap() > 50_000_000, "{report}");
}

#[test]
fn the_last_message_before_the_end_is_looked_at() {
    let folder = robot();
    let options = ["--flight-recorder=15s", "--save-above", "400ms"];
    // It stops itself because of the late message, and well.
    let (code, said) = Flight::of(&folder, &options, &["100", "2000", "0", "slow"]).end();
    assert_eq!(code, Some(0), "{said}");
    let held = is_whole(&folder, "run-1.mcap", "above the limit");
    // On a busy machine another one may have been as slow, and a second save would come within the window of the first.
    let is_counted = said.contains("messages above the limit in 1 more turn");
    assert!(held.messages.contains(&2000) || is_counted, "{said}");
}

#[test]
fn threads_that_began_just_before_a_save_have_names_in_it() {
    let folder = robot();
    let mut flight = Flight::of(&folder, &["--flight-recorder"], &["200", "1000000000"]);
    for n in 1..=5 {
        folder.write("thread", "");
        until("a thread", || folder.path(&format!("worker {n}")).exists());
        flight.signal(libc::SIGUSR2);
        flight.until(&format!("saved run-{n}.mcap"));
        let threads = held(&folder, &format!("run-{n}.mcap")).threads;
        assert!(threads.contains(&format!("worker {n}")), "{threads:?}");
    }
}

#[test]
fn memory_is_bounded() {
    is_bounded(&robot(), &[]);
}

#[test]
fn memory_is_bounded_where_messages_are_looked_at() {
    is_bounded(&robot(), &["--save-above", "1000s"]);
}

fn is_bounded(folder: &Folder, more: &[&str]) {
    // What waits for a recorder without a CPU is 512 KiB at most; what does not fit there is lost.
    let options =
        ["--flight-recorder=1000s", "--flight-memory", "8", "--compression", "none", "--ring-records", "16384"];
    let options = [&options[..], more].concat();
    let mut flight = Flight::of(folder, &options, &["0", "1000000000"]);
    let pid = flight.recorder.id();
    // The file has no name, so that nothing can stay; but the recorder has it open.
    let file = || {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let is_memory = |to: &Path| to.to_string_lossy().contains("live.mcap");
        let files = open.filter(|fd| {
            let to = std::fs::read_link(fd.path()).unwrap_or_default();
            assert!(!is_memory(&to) || to.to_string_lossy().ends_with(" (deleted)"), "{to:?}");
            is_memory(&to)
        });
        let metadata = files.filter_map(|fd| std::fs::metadata(fd.path()).ok());
        metadata.map(|file| (file.len(), file.blocks() * 512)).next().expect("the file in memory")
    };
    let mut most = 0;
    until("nearly twice as much as is kept", || {
        let (length, held) = file();
        most = most.max(held);
        length > 14 << 20
    });
    // 8 MiB, an eighth of it, and what comes between two looks of the recorder.
    assert!(most < 12 << 20, "{most} bytes");
    flight.signal(libc::SIGUSR2);
    let saved = flight.until("saved run-");
    flight.signal(libc::SIGINT);
    let (_, said) = flight.end();
    assert!(said.contains("memory is too small for 1000 s"), "{said}");
    let name = saved.split("saved ").nth(1).unwrap().split(':').next().unwrap();
    assert!(*held(folder, name).messages.first().unwrap() > 1);
}

#[test]
fn a_place_that_cannot_be_written_is_said_before_the_program_runs() {
    let folder = robot();
    let words = ["record", "--flight-recorder", "-o", "no/such/run.mcap", "--", "touch", "ran"];
    let refused = taut(&folder, &words).output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no/such/run-1.mcap"));
    assert!(!folder.path("ran").exists());
    let words = ["record", "--flight-recorder=5s", "--save-above", "5ms", "--", "true"];
    assert_eq!(taut(&folder, &words).status().unwrap().code(), Some(125), "the window is too short for a limit");
}
