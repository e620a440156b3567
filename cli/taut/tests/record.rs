//! `taut record` and `taut recover` as processes, around real commands.

use std::{
    fs::File,
    io::Read,
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::{
            fs::{DirBuilderExt, PermissionsExt},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use assert_cmd::cargo::cargo_bin;
use predicates::prelude::*;
use taut_recording::{LostWhat, Record};
use taut_skip::{Need, skip};

/// A folder with a C program that stamps: the producer people copy, against the one consumer.
struct Bench {
    folder: tempfile::TempDir,
}

/// Stamps `argv[1]` messages at three points, `argv[2]` µs apart; every third is dropped. Exits with argv[3].
const ROBOT: &str = r#"
#include "taut.h"
int main(int argc, char **argv) {
  alarm(900); /* A test that fails leaves no robot for ever. */
  const uint64_t n = strtoull(argc > 1 ? argv[1] : "300", NULL, 10);
  for (uint64_t id = 1; id <= n; id++) {
    TAUT_STAMP("robot.read", id);
    usleep((useconds_t)atoi(argc > 2 ? argv[2] : "100"));
    TAUT_STAMP("robot.planned", id);
    if (id % 3 == 0) { TAUT_DROP(id, "speed_limit"); continue; }
    TAUT_STAMP("robot.written", id);
    taut_applied(id);
  }
  return argc > 3 ? atoi(argv[3]) : 0;
}
"#;

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("robot.c"), ROBOT).unwrap();
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
        let built = Command::new("gcc")
            .args(["-std=c11", "-O2", "-pthread", "-I"])
            .arg(include)
            .args(["robot.c", "-o", "robot"])
            .current_dir(folder.path())
            .status();
        assert!(built.unwrap().success());
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn taut(&self, arguments: &[&str]) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::new(cargo_bin!("taut"));
        command.args(arguments).current_dir(self.folder.path()).env_remove("TAUT_SESSION");
        command
    }

    /// What a file tells of losses: its notes, and of each loss what was lost, how much, and whether that is an estimate.
    fn lost(&self, name: &str) -> (Vec<String>, Vec<(LostWhat, u64, bool)>) {
        let mut lost = Vec::new();
        let contents = taut_recording::read(&std::fs::read(self.path(name)).unwrap(), &mut |record| {
            if let Record::Lost(told) = record {
                lost.push((told.what, told.count, told.is_estimate));
            }
        });
        (contents.unwrap().ending.expect("an ending").notes, lost)
    }

    fn report(&self, name: &str) -> serde_json::Value {
        let output = self.taut(&["report", name, "--format", "json"]).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Waits, bounded, for something another process does.
fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(600);
    while !happened() {
        assert!(Instant::now() < until, "{what} did not happen in 600 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Does what takes so many seconds, and more and more of them on a machine that is too busy for it to show anything.
fn long_enough(shows: impl FnMut(&str) -> bool) {
    assert!(["0.5", "5", "50", "500"].into_iter().any(shows), "not in 500 s");
}

#[test]
fn a_c_program_is_recorded_and_its_account_balances() {
    let bench = Bench::new();
    // A busy machine loses kernel events; of stamps none may be lost.
    bench.taut(&["record", "--ignore-loss", "-o", "run.mcap", "--", "./robot", "300"]).assert().success();
    let report = bench.report("run.mcap");
    let chain = &report["chains"][0];
    assert_eq!(chain["name"], "robot.read → robot.written");
    assert_eq!(chain["messages"], 300);
    assert_eq!(chain["outcomes"]["applied"], 200);
    assert_eq!(chain["outcomes"]["dropped"]["speed_limit"], 100);
    assert_eq!(chain["outcomes"]["unexplained"], 0);
    assert_eq!(report["recording"]["lost_stamps"], 0);
    assert_eq!(report["recording"]["stamps"], 300 * 3 + 200);
}

/// Korean, Chinese, Russian. The kernel cuts a name at 15 bytes: here in the middle of a character, so that /proc has what is no text.
const CUT_NAMES: [&str; 3] = ["r로봇팔제어기", "r机器人控制器", "работехника"];

#[test]
fn a_process_whose_name_is_no_text_is_recorded_to_its_end() {
    let bench = Bench::new();
    for (at, name) in CUT_NAMES.iter().enumerate() {
        assert!(std::str::from_utf8(&name.as_bytes()[..15]).is_err(), "{name}");
        std::fs::copy(bench.path("robot"), bench.path(name)).unwrap();
        let output = format!("{at}.mcap");
        // Longer than the recorder waits before it looks for dead processes.
        let words = ["record", "--ignore-loss", "-o", &output, "--", &format!("./{name}"), "600", "1000"];
        bench.taut(&words).assert().success();
        let report = bench.report(&output);
        assert_eq!(report["recording"]["stamps"], 600 * 3 + 400, "{name}");
        assert_eq!(report["chains"][0]["messages"], 600, "{name}");
    }
}

#[test]
fn a_process_whose_name_is_no_text_can_be_attached_to() {
    let bench = Bench::new();
    let session = bench.path("session");
    std::fs::DirBuilder::new().mode(0o700).create(&session).unwrap();
    std::fs::copy(bench.path("robot"), bench.path(CUT_NAMES[0])).unwrap();
    let mut robot = Command::new(bench.path(CUT_NAMES[0]))
        .args(["100000000", "1000"])
        .env("TAUT_SESSION", &session)
        .spawn()
        .unwrap();
    let pid = robot.id().to_string();
    wait_until("a ring file", || std::fs::read_dir(&session).unwrap().count() > 0);
    let taut = bench.taut(&["record", "-o", "run.mcap", "--duration", "1", "--pid", &pid]).output().unwrap();
    let is_alive = robot.try_wait().unwrap().is_none();
    robot.kill().unwrap();
    robot.wait().unwrap();
    assert!(matches!(taut.status.code(), Some(0 | 5)) && is_alive, "{}", String::from_utf8_lossy(&taut.stderr));
    assert!(bench.report("run.mcap")["recording"]["duration_s"].as_f64().unwrap() > 0.9);
}

/// The first thread may end before the others; /proc then has neither memory nor environment of it.
#[test]
fn a_process_whose_first_thread_ended_can_be_attached_to() {
    let bench = Bench::new();
    let session = bench.path("session");
    std::fs::DirBuilder::new().mode(0o700).create(&session).unwrap();
    let text = "#include \"taut.h\"\n#include <stdio.h>\n\
                static void *run(void *unused) {\n  for (uint64_t id = 1;; id++) { TAUT_STAMP(\"a\", id); usleep(1000); }\n  return unused;\n}\n\
                int main(void) {\n  alarm(900);\n  pthread_t thread;\n  pthread_create(&thread, NULL, run, NULL);\n  pthread_exit(NULL);\n}\n";
    std::fs::write(bench.path("outlived.c"), text).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-pthread", "outlived.c", "-o", "outlived", "-I"]).arg(include).current_dir(bench.folder.path());
    assert!(gcc.status().unwrap().success());
    let mut program = Command::new(bench.path("outlived")).env("TAUT_SESSION", &session).spawn().unwrap();
    let pid = program.id().to_string();
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    wait_until("the end of the first thread", || stat().contains(") Z "));
    wait_until("a ring file", || std::fs::read_dir(&session).unwrap().count() > 0);
    for options in [&[][..], &["--tier", "self"], &["--profile", "99"]] {
        long_enough(|seconds| {
            let words = [&["record", "-o", "run.mcap", "--duration", seconds, "--pid", &pid], options].concat();
            let taut = bench.taut(&words).output().unwrap();
            let said = String::from_utf8_lossy(&taut.stderr);
            if taut.status.code() == Some(3) {
                skip(Need::Perf, said);
                return true;
            }
            assert!(matches!(taut.status.code(), Some(0 | 5)), "{options:?}: {said}");
            bench.report("run.mcap")["recording"]["stamps"].as_u64() > Some(0)
        });
    }
    program.kill().unwrap();
    program.wait().unwrap();
}

/// A robot that root starts and that gives its rights up cannot enter root's session.
#[test]
fn a_process_that_may_not_enter_the_session_is_named() {
    if !rustix::process::geteuid().is_root() {
        return skip(Need::Root, "only root can start a process of another user");
    }
    let bench = Bench::new();
    std::fs::set_permissions(bench.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // Long enough for many of the recorder's looks at its processes.
    let drop = "import os; os.setgid(65534); os.setuid(65534); os.execv('./robot', ['./robot', '5000', '1000'])";
    let taut = bench.taut(&["record", "-q", "-o", "run.mcap", "--", "python3", "-c", drop]).output().unwrap();
    let said = String::from_utf8_lossy(&taut.stderr);
    assert_eq!(taut.status.code(), Some(5), "{said}");
    assert!(said.contains("runs as user 65534, who may not enter"), "{said}");
    // The file says so, too: what it lost, and that nobody knows how much.
    let (notes, lost) = bench.lost("run.mcap");
    assert!(notes.iter().any(|note| note.contains("runs as user 65534")), "{notes:?}");
    assert!(lost.contains(&(LostWhat::Stamps, 1, true)), "{lost:?}");
    // One that is not told of the session has nothing to lose.
    let drop = "import os, time; os.setgid(65534); os.setuid(65534); time.sleep(2)";
    let words = ["record", "-q", "--tier", "stamps", "--", "env", "-u", "TAUT_SESSION", "python3", "-c", drop];
    let taut = bench.taut(&words).output().unwrap();
    assert_eq!(taut.status.code(), Some(0), "{}", String::from_utf8_lossy(&taut.stderr));
}

/// Files of the session of whose content nothing is recorded: of another taut's protocol, cut, or no such files at all.
#[test]
fn a_ring_that_is_refused_is_a_loss() {
    let bench = Bench::new();
    // Where no file that is half written has the name.
    let put = |bytes: &str, name: &str| {
        format!(
            r#"(printf '{bytes}'; head -c 8000 /dev/zero) > "$TAUT_SESSION/.new"; mv "$TAUT_SESSION/.new" "$TAUT_SESSION/{name}""#
        )
    };
    for (bytes, name, what, why, lost) in [
        (
            r"TAUTRING\003",
            "7-0.taut",
            LostWhat::Stamps,
            "7-0.taut: protocol version 3, this taut knows 1 and 2; its stamps are",
            "some stamps LOST",
        ),
        (
            r"TAUTTELE\002",
            "7-0.telemetry",
            LostWhat::Telemetry,
            "7-0.telemetry: telemetry protocol version 2",
            "some telemetry messages LOST",
        ),
        (
            r"TAUTROSO\002",
            "7-0.ros",
            LostWhat::RosEvents,
            "7-0.ros: version 2 of ROS 2 objects",
            "some ROS 2 events LOST",
        ),
    ] {
        let script = format!("{}; exec ./robot 300", put(bytes, name));
        let words =
            ["record", "-q", "--tier", "stamps", "--session", name, "-o", "run.mcap", "--", "sh", "-c", &script];
        let taut = bench.taut(&words).output().unwrap();
        let said = String::from_utf8_lossy(&taut.stderr);
        assert_eq!(taut.status.code(), Some(5), "{said}");
        assert!(said.contains(why) && said.contains(lost), "{said}");
        let (notes, lost) = bench.lost("run.mcap");
        assert!(notes.len() == 1 && notes[0].contains(why), "{notes:?}");
        assert_eq!(lost, [(what, 1, true)]);
        // The others of the session are recorded.
        assert_eq!(bench.report("run.mcap")["recording"]["stamps"], 300 * 3 + 200);
    }
    assert_eq!(bench.report("run.mcap")["recording"]["lost_ros_events_is_estimate"], true);
    let script = format!("{}; exec ./robot 10", put(r"TAUTRING\003", "7-0.taut"));
    bench.taut(&["record", "--ignore-loss", "--", "sh", "-c", &script]).assert().code(0);
}

/// As `RemoveIPC=yes` of systemd does it when the user's last session ends.
#[test]
fn a_session_that_is_removed_is_a_loss() {
    let bench = Bench::new();
    let script = r#"rm -r "$TAUT_SESSION"; exec ./robot 100"#;
    let words = ["record", "-q", "--tier", "stamps", "--session", "s", "-o", "run.mcap", "--", "sh", "-c", script];
    let taut = bench.taut(&words).output().unwrap();
    let said = String::from_utf8_lossy(&taut.stderr);
    assert_eq!(taut.status.code(), Some(5), "{said}");
    let (notes, lost) = bench.lost("run.mcap");
    assert!(notes.len() == 1 && notes[0].contains("is gone: what starts now is not recorded"), "{notes:?}");
    assert_eq!(lost, [(LostWhat::Stamps, 1, true)]);
}

#[test]
fn a_session_without_room_for_a_ring_is_a_loss() {
    let bench = Bench::new();
    let session = bench.path("session");
    std::fs::create_dir(&session).unwrap();
    let options = ["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs"];
    let mounted = Command::new("mount").args(options).arg(&session).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return skip(Need::Mount, "needs the right to mount a tmpfs");
    }
    let words = ["record", "-q", "--tier", "stamps", "--session", "session", "-o", "run.mcap", "--", "./robot", "100"];
    let taut = bench.taut(&words).output().unwrap();
    Command::new("umount").arg(&session).status().unwrap();
    let said = String::from_utf8_lossy(&taut.stderr);
    assert_eq!(taut.status.code(), Some(5), "{said}");
    let (notes, lost) = bench.lost("run.mcap");
    assert!(notes.len() == 1 && notes[0].contains("its file system is full"), "{notes:?}");
    assert_eq!(lost, [(LostWhat::Stamps, 1, true)]);
}

#[test]
fn what_is_said_beyond_the_most_warnings_is_counted() {
    let bench = Bench::new();
    let script = r#"for n in $(seq 150); do echo x > "$TAUT_SESSION/$n-0.taut"; done"#;
    let words = ["record", "-q", "--tier", "stamps", "--session", "s", "-o", "run.mcap", "--", "sh", "-c", script];
    let taut = bench.taut(&words).output().unwrap();
    let said = String::from_utf8_lossy(&taut.stderr);
    assert_eq!(taut.status.code(), Some(5), "{said}");
    assert!(said.contains("50 further warnings are not kept"), "{said}");
    let (notes, lost) = bench.lost("run.mcap");
    assert_eq!((notes.len(), lost.len()), (101, 150));
    assert!(notes[100].contains("50 further warnings are not kept"), "{notes:?}");
}

/// As many channels as `argv[1]` says, with five values each. Where the file "wait" is it stays, once the file "ready" is there.
const CHANNELS: &str = r#"
#include "taut.h"
#include <fcntl.h>
typedef struct { double position; } joint_t;
TAUT_DESCRIBE(joint_t, TAUT_FIELD(position, "rad"));
int main(int argc, char **argv) {
  const joint_t joint = {1.5};
  char name[16];
  alarm(900);
  for (int n = 0; n < atoi(argv[1]); n++) {
    snprintf(name, sizeof name, "joint %d", n);
    taut_telemetry_t *log = TAUT_TELEMETRY(name, joint_t, 10);
    for (int i = 0; i < 5; i++) TAUT_WRITE(log, &joint);
  }
  close(creat("ready", 0600));
  while (argc > 1 && !access("wait", F_OK)) usleep(10000);
  return 0;
}
"#;

/// There are more channels than descriptors: those of a process that ended are taken up one after the other, and what could not be
/// taken up is lost and said so.
#[test]
fn few_descriptors_lose_no_telemetry_in_silence() {
    let bench = Bench::new();
    std::fs::write(bench.path("channels.c"), CHANNELS).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-pthread", "channels.c", "-o", "channels", "-I"]).arg(include).current_dir(bench.folder.path());
    assert!(gcc.status().unwrap().success());
    let record = |script: &str| {
        let taut = cargo_bin!("taut").display().to_string();
        let line = format!("ulimit -n 32; exec {taut} record -q --tier stamps -o run.mcap -- sh -c '{script}'");
        let output = Command::new("sh").args(["-c", &line]).current_dir(bench.folder.path()).output().unwrap();
        let mut ending = None;
        if let Ok(bytes) = std::fs::read(bench.path("run.mcap")) {
            ending = taut_recording::read(&bytes, &mut |_| {}).unwrap().ending;
        }
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), ending.expect("an ending"))
    };
    let (code, said, ending) = record("./channels 60");
    assert_eq!((code, ending.telemetry, ending.lost_telemetry), (Some(0), 60 * 5, 0), "{said}");
    std::fs::write(bench.path("wait"), "").unwrap();
    std::fs::remove_file(bench.path("ready")).unwrap();
    let (code, said, ending) = record("./channels 60 > /dev/null 2>&1 & until test -e ready; do sleep 0.01; done");
    std::fs::remove_file(bench.path("wait")).unwrap();
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("telemetry messages LOST") && ending.lost_telemetry > 0, "{said}");
    let missing = |note: &&String| note.contains(".telemetry: ") && note.ends_with("its telemetry is not recorded");
    let missing = ending.notes.iter().filter(missing).count() as u64;
    assert_eq!((missing, ending.telemetry), (ending.lost_telemetry, (60 - missing) * 5), "one for each file");
}

/// Ctrl-S, or a connection that hangs: the terminal takes nothing from the recorder, whatever that has to say.
#[test]
fn a_terminal_that_is_stopped_does_not_stop_the_recorder() {
    let bench = Bench::new();
    let (mut master, mut slave) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: both are written to; a name and settings of the terminal are not asked for.
    let opened = unsafe { libc::openpty(&mut master, &mut slave, none, std::ptr::null(), std::ptr::null()) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both were opened just now, and are owned by nothing else.
    let (mut master, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
    // SAFETY: acts on our own terminal.
    assert_eq!(unsafe { libc::tcflow(slave.as_raw_fd(), libc::TCOOFF) }, 0);
    let mut command = Command::new(cargo_bin!("taut"));
    command.args(["record", "--tier", "stamps", "-o", "run.mcap", "--", "./robot", "2000", "1000"]);
    command.current_dir(bench.folder.path()).env_remove("TAUT_SESSION").env("TERM", "xterm").stdin(Stdio::null());
    let mut recorder = command.stdout(Stdio::null()).stderr(slave.try_clone().unwrap()).spawn().unwrap();
    drop(command);
    let ending = || {
        let bytes = std::fs::read(bench.path("run.mcap")).unwrap_or_default();
        taut_recording::read(&bytes, &mut |_| {}).ok().and_then(|contents| contents.ending)
    };
    wait_until("the end of the recording", || ending().is_some());
    // SAFETY: as above.
    assert_eq!(unsafe { libc::tcflow(slave.as_raw_fd(), libc::TCOON) }, 0);
    drop(slave);
    let (mut said, mut bytes) = (Vec::new(), [0; 4096]);
    // The end of the terminal is an error of its other end.
    while let Ok(read) = master.read(&mut bytes) {
        said.extend_from_slice(&bytes[..read]);
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    assert_eq!(recorder.wait().unwrap().code(), Some(0), "{said}");
    assert!(said.contains("taut: recording process") && said.contains("next: taut report run.mcap"), "{said}");
    let robot_stamps: u64 = (1..=2000).map(|id| if id % 3 == 0 { 3 } else { 4 }).sum();
    assert_eq!(ending().map(|ending| (ending.stamps, ending.lost_stamps)), Some((robot_stamps, 0)));
}

#[test]
fn exit_codes_and_deaths_are_passed_on() {
    let bench = Bench::new();
    bench.taut(&["record", "-o", "failed.mcap", "--", "./robot", "3", "0", "42"]).assert().code(42);
    let headline = |run: &str| bench.report(run)["headline"].as_str().unwrap().to_owned();
    let failed = "The recorded program failed: it ended with exit code 42. ";
    assert!(headline("failed.mcap").starts_with(failed), "{}", headline("failed.mcap"));
    bench.taut(&["record", "--ignore-loss", "-o", "fine.mcap", "--", "./robot", "3"]).assert().success();
    assert!(!headline("fine.mcap").contains("failed"));
    bench.taut(&["record", "--", "sh", "-c", "kill -9 $$"]).assert().code(137);
}

#[test]
fn every_tier_records_stamps() {
    let bench = Bench::new();
    for tier in ["stamps", "self"] {
        let output = bench.taut(&["record", "--tier", tier, "--", "./robot", "50"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // A container may refuse even one's own context switches.
        if tier == "self" && said.contains("the self tier is not possible here") {
            assert_eq!(output.status.code(), Some(125));
            return skip(Need::Perf, said);
        }
        assert!(output.status.success(), "{said}");
        let report = bench.report("taut-run.mcap");
        assert_eq!(report["recording"]["tier"], tier);
        assert_eq!(report["chains"][0]["messages"], 50);
    }
}

/// The self tier takes a descriptor for each thread and CPU.
#[test]
fn few_descriptors_by_default_are_no_reason_for_a_lower_tier() {
    let bench = Bench::new();
    let threads = "import threading, time\n[threading.Thread(target=time.sleep, args=(100,), daemon=True).start() for _ in range(80)]\n\
                   print('ready', flush=True); time.sleep(100)";
    let mut program =
        Command::new("python3").args(["-c", threads]).stdout(Stdio::piped()).spawn().expect("python3, as `make setup`");
    std::io::Read::read_exact(program.stdout.as_mut().unwrap(), &mut [0; 5]).unwrap();
    let line = format!(
        "ulimit -Sn 64; exec {} record -q -o run.mcap --ignore-loss --tier self --duration 0.2 --pid {}",
        cargo_bin!("taut").display(),
        program.id()
    );
    let taut = Command::new("sh").args(["-c", &line]).current_dir(bench.folder.path()).output().unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    let said = String::from_utf8_lossy(&taut.stderr);
    if taut.status.code() == Some(3) {
        return skip(Need::Perf, said);
    }
    assert!(taut.status.success(), "{said}");
}

/// There are more processes than descriptors: the files of those that ended are taken up one after the other, what could not be taken up is lost
/// and said so, and a duration still ends all.
#[test]
fn few_descriptors_lose_no_process_and_no_stamps_in_silence() {
    let bench = Bench::new();
    let record = |options: &str, script: &str| {
        let taut = cargo_bin!("taut").display().to_string();
        let line =
            format!("ulimit -n 32; exec {taut} record -q --tier stamps -o run.mcap {options} -- sh -c '{script}'");
        let output = Command::new("sh").args(["-c", &line]).current_dir(bench.folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = record("", "for n in $(seq 40); do ./robot 1 300000 & done; wait");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(bench.report("run.mcap")["recording"]["stamps"], 40 * 4, "{said}");
    // Those that are not ended end by themselves after 100 s. Which of them a recorder has seen before they end is a matter of time.
    let (code, said) = record("--duration 3", "for n in $(seq 40); do ./robot 100 1000000 & done; wait; exit 9");
    assert_eq!(code, Some(0), "{said}");
    // Processes of a shell that does not wait for them live on at the end, and hold their descriptors.
    let (code, said) = record("", "for n in $(seq 40); do ./robot 1 3000000 & done; sleep 1; exit 0");
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("stamps LOST"), "{said}");
}

#[test]
fn a_signal_reaches_the_command_and_the_recording_is_whole() {
    let bench = Bench::new();
    let mut recorder = Command::new(cargo_bin!("taut"))
        .args(["record", "-q", "--", "./robot", "1000000000", "100"])
        .current_dir(bench.folder.path())
        .spawn()
        .unwrap();
    wait_until("recording", || bench.path("taut-run.mcap").metadata().is_ok_and(|m| m.len() > 8000));
    // SAFETY: our own child.
    unsafe { libc::kill(recorder.id() as i32, libc::SIGTERM) };
    assert_eq!(recorder.wait().unwrap().code(), Some(128 + libc::SIGTERM));
    let report = bench.report("taut-run.mcap");
    assert_eq!(report["recording"]["finished"], true);
}

#[test]
fn a_killed_recorder_leaves_what_it_had_flushed() {
    let bench = Bench::new();
    let mut recorder = Command::new(cargo_bin!("taut"))
        .args(["record", "-q", "--", "./robot", "200000", "100"])
        .current_dir(bench.folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("a flush of stamps", || {
        let report = bench.taut(&["report", "taut-run.mcap", "--format", "json"]).output().unwrap();
        let report: Option<serde_json::Value> = serde_json::from_slice(&report.stdout).ok();
        report.is_some_and(|r| r["chains"][0]["messages"].as_u64() > Some(100))
    });
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let report = bench.report("taut-run.mcap");
    assert_eq!(report["recording"]["finished"], false);
    assert!(report["chains"][0]["messages"].as_u64().unwrap() > 100);
    bench
        .taut(&["recover", "taut-run.mcap", "-o", "clean.mcap"])
        .assert()
        .stderr(predicate::str::contains("wrote clean.mcap"));
    let clean = bench.report("clean.mcap");
    assert_eq!(clean["recording"]["stamps"], report["recording"]["stamps"]);
}

#[test]
fn a_duration_ends_the_command() {
    let bench = Bench::new();
    long_enough(|seconds| {
        let words = ["record", "--ignore-loss", "--duration", seconds, "--", "./robot", "1000000000", "100"];
        bench.taut(&words).assert().code(0);
        bench.report("taut-run.mcap")["chains"][0]["messages"].as_u64() > Some(10)
    });
}

/// The shell is the command, and the robot its child.
#[test]
fn a_duration_ends_the_whole_tree() {
    let bench = Bench::new();
    let line = "sh -c 'echo $$ > pid; exec ./robot 1000000000 100 > robot.log 2>&1'; true";
    long_enough(|seconds| {
        let words = ["record", "--ignore-loss", "--duration", seconds, "--", "sh", "-c", line];
        let recorded = bench.taut(&words).output().unwrap();
        let said = String::from_utf8(recorded.stderr).unwrap();
        assert!(recorded.status.success() && !said.contains("outlives"), "{said}");
        let pid = std::fs::read_to_string(bench.path("pid")).unwrap_or_default();
        assert!(pid.is_empty() || !Path::new("/proc").join(pid.trim()).exists(), "{pid} runs on");
        pid.ends_with('\n')
    });
}

#[test]
fn a_running_process_can_be_attached_to() {
    let bench = Bench::new();
    std::fs::DirBuilder::new().mode(0o700).create(bench.path("session")).unwrap();
    let mut robot = Command::new("./robot")
        .args(["1000000000", "100"])
        .env("TAUT_SESSION", bench.path("session"))
        .current_dir(bench.folder.path())
        .spawn()
        .unwrap();
    wait_until("stamping", || std::fs::read_dir(bench.path("session")).unwrap().count() > 0);
    let pid = robot.id().to_string();
    long_enough(|seconds| {
        let recorded = bench.taut(&["record", "--ignore-loss", "--pid", &pid, "--duration", seconds]).output().unwrap();
        assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
        assert!(robot.try_wait().unwrap().is_none(), "it goes on");
        bench.report("taut-run.mcap")["chains"][0]["messages"].as_u64() > Some(100)
    });
    robot.kill().unwrap();
    robot.wait().unwrap();
}

#[test]
fn a_session_has_one_recorder_and_the_second_names_the_first() {
    let bench = Bench::new();
    let session = bench.path("session");
    std::fs::DirBuilder::new().mode(0o700).create(&session).unwrap();
    let first = Command::new(cargo_bin!("taut"))
        .args(["record", "-o", "first.mcap", "--session", "session", "--", "./robot", "1000000000", "100"])
        .current_dir(bench.folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the first", || session.join("recorder").exists());
    let robot = || {
        // Of whichever thread started it.
        let threads = std::fs::read_dir(format!("/proc/{}/task", first.id())).unwrap().flatten();
        let children = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        children.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).next()
    };
    wait_until("the robot", || robot().is_some());
    let who = format!("process {}, which writes", first.id());
    let named = || {
        let who = who.clone();
        predicate::function(move |e: &str| e.lines().count() == 1 && e.contains(&who) && e.contains("first.mcap"))
    };
    let attached = bench.taut(&["record", "-o", "second.mcap", "--pid", &robot().unwrap()]).assert();
    attached.code(2).stderr(named());
    let words = ["record", "-o", "second.mcap", "--session", "session", "--", "./robot", "10"];
    bench.taut(&words).assert().code(125).stderr(named());
    assert!(!bench.path("second.mcap").exists());
    // SAFETY: our own child.
    unsafe { libc::kill(first.id() as i32, libc::SIGINT) };
    first.wait_with_output().unwrap();
    let report = bench.report("first.mcap");
    assert_eq!(report["recording"]["lost_stamps"], 0, "{report}");
    // The lock went with its holder.
    bench.taut(&words).assert().code(0);
}

#[test]
fn a_command_that_does_not_start_leaves_an_earlier_recording_alone() {
    let bench = Bench::new();
    std::fs::write(bench.path("run.mcap"), "precious").unwrap();
    std::fs::write(bench.path("interpreted"), "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(bench.path("interpreted"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let before = std::fs::read_dir(bench.folder.path()).unwrap().count();
    for (command, code, says) in [("./interpreted", 126, "its interpreter is missing"), ("./missing", 127, "not found")]
    {
        let refused = bench.taut(&["record", "-o", "run.mcap", "--", command]).assert().code(code);
        refused.stderr(predicate::str::contains(says));
        assert_eq!(std::fs::read_to_string(bench.path("run.mcap")).unwrap(), "precious");
    }
    assert_eq!(std::fs::read_dir(bench.folder.path()).unwrap().count(), before, "nothing half-written is left");
    bench.taut(&["record", "-o", "run.mcap", "--", "./robot", "10"]).assert().code(0);
    assert_eq!(bench.report("run.mcap")["recording"]["stamps"], 10 * 3 + 7);
}

#[test]
fn two_recorders_cannot_write_one_file() {
    let bench = Bench::new();
    let first = Command::new(cargo_bin!("taut"))
        .args(["record", "--", "./robot", "1000000000", "100"])
        .current_dir(bench.folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the first", || bench.path("taut-run.mcap").exists());
    bench
        .taut(&["record", "--", "./robot", "10"])
        .assert()
        .code(125)
        .stderr(predicate::str::contains("taut-run.mcap: another command writes it; name another file with -o"));
    // SAFETY: our own child.
    unsafe { libc::kill(first.id() as i32, libc::SIGINT) };
    first.wait_with_output().unwrap();
    assert_eq!(bench.report("taut-run.mcap")["recording"]["finished"], true);
}

#[test]
fn nothing_fails_because_nobody_listens() {
    let bench = Bench::new();
    let taut = cargo_bin!("taut");
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let taut_to = |arguments: &[&str], errors: Stdio| {
        let mut command = Command::new(taut);
        command.args(arguments).current_dir(bench.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(errors).status().unwrap().code()
    };
    // What takes nothing, and what is closed.
    let closed = || Stdio::from(std::io::pipe().unwrap().1);
    for (arguments, code) in [
        (&["report", "missing.mcap"][..], 2),
        (&["report", "--no-such-option"], 2),
        // Of few stamps none is lost; kernel events are, on a busy machine.
        (&["record", "--tier", "stamps", "-o", "run.mcap", "--", "./robot", "10", "100", "7"], 7),
        (&["recover", "run.mcap", "-o", "clean.mcap"], 0),
        (&["report", "run.mcap", "-o", "report.txt"], 0),
        (&["export", "csv", "run.mcap", "-o", "run.csv"], 0),
    ] {
        assert_eq!(taut_to(arguments, full().into()), Some(code), "{arguments:?} >/dev/full");
        assert_eq!(taut_to(arguments, closed()), Some(code), "{arguments:?} to a closed pipe");
        assert_eq!(bench.path("run.mcap").exists(), code != 2, "{arguments:?}");
    }
    assert_eq!(bench.report("run.mcap")["recording"]["finished"], true);
}

#[test]
fn forks_and_grandchildren_are_followed() {
    let bench = Bench::new();
    let words = ["record", "--ignore-loss", "--", "sh", "-c", "./robot 20 & (./robot 30; true); wait"];
    bench.taut(&words).assert().success();
    let report = bench.report("taut-run.mcap");
    // Equal ids of two processes: an id that begins anew is a message of its own.
    assert_eq!(report["recording"]["stamps"].as_u64().unwrap(), 20 * 3 + 14 + 30 * 3 + 20);
}

#[test]
fn a_full_ring_loses_stamps_and_says_how_many() {
    let bench = Bench::new();
    bench.taut(&["record", "--ring-records", "64", "--", "./robot", "60000", "0"]).assert().code(5);
    let report = bench.report("taut-run.mcap");
    let [kept, lost] = ["stamps", "lost_stamps"].map(|k| report["recording"][k].as_u64().unwrap());
    assert_eq!(kept + lost, 60_000 * 3 + 40_000);
}

#[test]
fn a_full_disk_stops_the_recording_and_not_the_command() {
    let bench = Bench::new();
    let small = bench.path("small");
    std::fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&small).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return skip(Need::Mount, "needs the right to mount a tmpfs");
    }
    let output = bench
        .taut(&[
            "record",
            "--tier",
            "stamps",
            "-o",
            "small/run.mcap",
            "--",
            "sh",
            "-c",
            "./robot 20000 20; echo done > ran",
        ])
        .output()
        .unwrap();
    let report = bench.report("small/run.mcap");
    Command::new("umount").arg(&small).status().unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"));
    assert!(bench.path("ran").exists(), "the command must have run to its end");
    assert!(report["chains"][0]["messages"].as_u64().unwrap() > 0);
}

#[test]
fn what_cannot_be_recorded_is_one_line_and_no_file() {
    let bench = Bench::new();
    let line = |text: &str| {
        predicate::str::contains(text.to_owned()).and(predicate::function(|e: &str| e.lines().count() == 1))
    };
    bench.taut(&["record", "--", "no-such-command"]).assert().code(127).stderr(line("\"no-such-command\" not found"));
    bench.taut(&["record", "--", "./robot.c"]).assert().code(126).stderr(line("does not start"));
    bench.taut(&["record", "--pid", "4194303"]).assert().code(2).stderr(line("no process 4194303"));
    bench.taut(&["record"]).assert().code(2).stderr(line("nothing to record"));
    assert!(!bench.path("taut-run.mcap").exists());
    bench
        .taut(&["record", "-o", "no/such/folder.mcap", "--", "./robot"])
        .assert()
        .code(125)
        .stderr(line("no/such/folder.mcap"));
}

/// Of everything below a folder.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| (e.file_name().to_string_lossy().into_owned(), e.metadata().unwrap().mode() & 0o777)).collect()
}

#[test]
fn session_and_rings_are_private_whatever_the_umask_is() {
    let bench = Bench::new();
    // From within, since the session goes with its recorder.
    let look = "stat -c %a $TAUT_SESSION > modes; ./robot 1000000000 100 & until ls $TAUT_SESSION/*.taut > ls 2>&1; do sleep 0.01; done; stat -c %a $TAUT_SESSION/* >> modes; kill $!";
    let mut command = Command::new(cargo_bin!("taut"));
    command.args(["record", "-q", "--tier", "stamps", "--", "bash", "-c", look]).current_dir(bench.folder.path());
    // SAFETY: one system call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::umask(0);
            Ok(())
        });
    }
    assert!(command.status().is_ok());
    let said = std::fs::read_to_string(bench.path("modes")).unwrap();
    assert_eq!(said.lines().next(), Some("700"));
    assert!(said.lines().count() > 2 && said.lines().skip(1).all(|mode| mode == "600"), "{said}");
}

#[test]
fn a_session_that_others_may_enter_is_refused_in_one_line() {
    let bench = Bench::new();
    let session = bench.path("session");
    std::fs::create_dir(&session).unwrap();
    std::fs::set_permissions(&session, std::fs::Permissions::from_mode(0o777)).unwrap();
    let one_line =
        |text: &'static str| predicate::str::contains(text).and(predicate::function(|e: &str| e.lines().count() == 1));
    bench
        .taut(&["record", "--session", "session", "--", "./robot", "10"])
        .assert()
        .code(125)
        .stderr(one_line("lets others in (mode 0777); chmod 700 session"));
    assert!(!bench.path("taut-run.mcap").exists() && modes(&session).is_empty());
    let mut robot = Command::new("./robot")
        .args(["1000000000", "100"])
        .env("TAUT_SESSION", &session)
        .current_dir(bench.folder.path())
        .spawn()
        .unwrap();
    wait_until("stamping", || !modes(&session).is_empty());
    let pid = robot.id().to_string();
    let refused = bench.taut(&["record", "--pid", &pid, "--duration", "0.1"]).assert().code(2);
    robot.kill().unwrap();
    robot.wait().unwrap();
    refused.stderr(one_line("lets others in"));
}

#[test]
fn names_of_files_and_points_cannot_forge_lines_or_write_on_the_screen() {
    let bench = Bench::new();
    let robot = r#"
#include "taut.h"
int main(void) {
  for (uint64_t id = 1; id <= 50; id++) {
    TAUT_STAMP("a\n0 messages were late\x1b[2J", id);
    TAUT_STAMP("b<script>\xff\x9b", id);
    taut_outcome(id, "why\r\ttaut: fine");
  }
  return 0;
}
"#;
    std::fs::write(bench.path("hostile.c"), robot).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut gcc = Command::new("gcc");
    gcc.arg("-I").arg(include).args(["hostile.c", "-o", "hostile", "-pthread"]).current_dir(bench.folder.path());
    assert!(gcc.status().unwrap().success());
    // A file of a session that is none, and whose name is a message of ours.
    let script = "printf x > \"$TAUT_SESSION/1-0\ntaut: all is well.taut\"; ./hostile";
    let recorded = bench.taut(&["record", "--tier", "stamps", "--", "sh", "-c", script]).output().unwrap();
    let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
    assert!(said.contains(r"1-0\ntaut: all is well.taut: shorter than a header"), "{said}");
    // In Markdown a backslash has one before it.
    for (form, name) in [("terminal", r"a\n0 messages were late"), ("markdown", r"a\\n0 messages were late")] {
        let shown = bench.taut(&["report", "taut-run.mcap", "--format", form]).output().unwrap();
        let text = String::from_utf8(shown.stdout).unwrap();
        assert!(text.contains(name), "{text}");
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("0 messages")), "{text}");
    }
}

#[test]
fn a_session_directory_that_cannot_be_had_does_not_hurt_the_robot() {
    let bench = Bench::new();
    for session in ["/proc/nowhere", "/no/such/directory", "/dev/null"] {
        let status = Command::new("./robot")
            .args(["100", "0"])
            .env("TAUT_SESSION", session)
            .current_dir(bench.folder.path())
            .status()
            .unwrap();
        assert!(status.success(), "{session}");
    }
}

#[test]
fn a_process_without_a_session_is_said_to_give_kernel_events_only() {
    let bench = Bench::new();
    let mut program = Command::new("sleep").arg("1000").env_remove("TAUT_SESSION").spawn().unwrap();
    let pid = program.id().to_string();
    let attach = |tier: &[&str]| {
        bench
            .taut(&[&["record", "-o", "run.mcap", "--duration", "0.2", "--pid", &pid], tier].concat())
            .output()
            .unwrap()
    };
    let nothing = attach(&["--tier", "stamps"]);
    let kernel = attach(&[]);
    program.kill().unwrap();
    program.wait().unwrap();
    let said = String::from_utf8(nothing.stderr).unwrap();
    assert_eq!(nothing.status.code(), Some(2), "{said}");
    assert!(
        said.lines().count() == 1 && said.contains("there is nothing to record") && said.contains("TAUT_SESSION=DIR")
    );
    let said = String::from_utf8(kernel.stderr).unwrap();
    if said.contains("there is nothing to record") {
        return skip(Need::Perf, "no kernel events here");
    }
    assert_eq!(kernel.status.code(), Some(0), "{said}");
    assert!(said.contains("loops and wake chains are found from kernel events alone"), "{said}");
    assert!(said.contains("started without TAUT_SESSION") && said.contains("next: taut report"), "{said}");
    let (notes, lost) = bench.lost("run.mcap");
    let note = format!("process {pid} was started without TAUT_SESSION, so its stamps are not recorded");
    assert!(notes.contains(&note) && lost.iter().all(|(what, ..)| *what != LostWhat::Stamps), "{notes:?} {lost:?}");
}

/// It may stamp, and all of that is lost: also where nothing is said at the start.
#[test]
fn a_session_that_cannot_be_opened_is_a_loss() {
    let bench = Bench::new();
    let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = program.id().to_string();
    let words = ["record", "-q", "-o", "run.mcap", "--duration", "0.2", "--session", "no/such", "--pid", &pid];
    let taut = bench.taut(&words).output().unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    let said = String::from_utf8_lossy(&taut.stderr);
    if said.contains("there is nothing to record") {
        return skip(Need::Perf, "no kernel events here");
    }
    assert_eq!(taut.status.code(), Some(5), "{said}");
    assert!(said.contains("has a session that cannot be read"), "{said}");
    let (notes, lost) = bench.lost("run.mcap");
    assert!(notes.iter().any(|note| note.contains("has a session that cannot be read")), "{notes:?}");
    assert!(lost.contains(&(LostWhat::Stamps, 1, true)), "{lost:?}");
}
