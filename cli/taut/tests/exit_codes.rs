//! Each exit code of the table (`src/exit.rs`), of the real binary.

mod folder;

use std::{
    os::unix::{
        fs::{DirBuilderExt, PermissionsExt},
        process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use assert_cmd::cargo::cargo_bin;
use folder::{Folder, until};
use taut_recording::{Ending, Frame, Info, Lost, LostWhat, Name, ProfileBatch, Record, StampBatch, Thread, Writer};
use taut_skip::{Need, skip};

/// Of the user who may nothing.
const NOBODY: u32 = 65_534;

fn taut(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin!("taut"));
    command.args(arguments).current_dir(folder.0.path()).env_remove("TAUT_SESSION").stdin(Stdio::null());
    // A shell's background job ignores SIGINT, and so do its children; taut heeds only what is not ignored.
    // SAFETY: signal() may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    };
    command
}

fn output(folder: &Folder, arguments: &[&str]) -> Output {
    taut(folder, arguments).output().unwrap()
}

#[track_caller]
fn ends(folder: &Folder, arguments: &[&str], code: i32) -> String {
    let output = output(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    said
}

/// The nearest name, the usage and where to read more.
#[test]
fn a_wrong_command_line_is_one_line_that_says_how_it_is_right() {
    let folder = Folder::new();
    for (arguments, words) in [
        (
            &["report", "--formt", "json", "run.mcap"][..],
            &["'--format'", "Usage: taut report", "see taut report --help"][..],
        ),
        (&["compare", "before.mcap"], &["<B>", "Usage: taut compare", "see taut compare --help"]),
        (&["report", "--format", "jsn", "run.mcap"], &["json", "see taut --help"]),
        (&["reprot", "run.mcap"], &["'report'", "see taut --help"]),
    ] {
        let said = ends(&folder, arguments, 2);
        assert!(said.lines().count() == 1 && words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
    }
}

/// A recording, and one of which the largest chunk is damaged.
fn recordings() -> Folder {
    let folder = Folder::new();
    stamper(&folder);
    let record = ["record", "-q", "--ignore-loss", "--tier", "stamps", "-o", "run.mcap"];
    ends(&folder, &[&record[..], &["--", "./stamper", "0", "20000", "30"]].concat(), 0);
    let mut bytes = std::fs::read(folder.path("run.mcap")).unwrap();
    // Of MCAP's records, behind their kind and length, those of chunks: it holds stamps.
    let (mut at, mut chunks) = (8, Vec::new());
    while at + 9 <= bytes.len() - 8 {
        let end = at + 9 + u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap()) as usize;
        chunks.extend((bytes[at] == 6).then_some((end - at, at)));
        at = end;
    }
    let (length, at) = chunks.into_iter().max().unwrap();
    bytes[at + length / 2] ^= 0xff;
    std::fs::write(folder.path("damaged.mcap"), bytes).unwrap();
    folder
}

/// A recording that was made by hand: messages from a to b and a profile, and how much of what was lost.
fn made(folder: &Folder, lost: Option<LostWhat>) {
    let info = Info { git_revision: "v1".into(), start_realtime_ns: 1_795_391_999_000_000_000, ..Info::default() };
    let mut writer = Writer::create(&folder.path("made.mcap"), &info).unwrap();
    let mut write = |record| writer.write(&record).unwrap();
    for (id, name) in [(1, "a"), (2, "b")] {
        write(Record::Name(Name { id, name: name.into() }));
    }
    let (comm, cmdline) = ("robot".to_owned(), "./robot".to_owned());
    write(Record::Thread(Thread { pid: 1, tid: 1, comm, cmdline, recorded: true, ..Thread::default() }));
    // On CLOCK_MONOTONIC.
    let mut batch = StampBatch { pid: 1, tid: 1, counter: 2, ..StampBatch::default() };
    for (id, point) in (1..=500).flat_map(|id| [(id, 1), (id, 2)]) {
        batch.ticks.push(id * 20_000_000 + u64::from(point) * 1_000_000);
        batch.message_id.push(id);
        batch.point.push(point);
        batch.kind.push(1);
        batch.value.push(0);
    }
    write(Record::Stamps(batch));
    let (module, name) = ("./robot".to_owned(), "work".to_owned());
    write(Record::Frame(Frame { id: 1, address: 64, module, name }));
    let (time_ns, cpu, pid, tid, depth, frame) = (vec![30_000_000], vec![0], vec![1], vec![1], vec![1], vec![1]);
    write(Record::Profile(ProfileBatch { time_ns, cpu, pid, tid, depth, frame }));
    if let Some(what) = lost {
        write(Record::Lost(Lost { time_ns: 40_000_000, what, place: "1/1".into(), count: 9, ..Lost::default() }));
    }
    writer.finish(&Ending { end_monotonic_ns: 10_100_000_000, ..Ending::default() }).unwrap();
}

/// A C program that stamps `argv[2]` messages, computes for `argv[3]` µs in each, and ends with `argv[1]`.
fn stamper(folder: &Folder) {
    let text = "#include \"taut.h\"\n#include <time.h>\n\
                static void busy(long us) {\n  for (clock_t end = clock() + us; us && clock() < end;);\n}\n\
                int main(int argc, char **argv) {\n  for (uint64_t id = 1; id <= strtoull(argv[2], 0, 10); id++) {\n\
                TAUT_STAMP(\"a\", id); busy(atol(argv[3])); TAUT_STAMP(\"b\", id);\n  }\n  return argc > 1 ? atoi(argv[1]) : 0;\n}\n";
    folder.write("stamper.c", text);
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-pthread", "stamper.c", "-o", "stamper", "-I"]).arg(include).current_dir(folder.0.path());
    assert!(gcc.status().unwrap().success());
}

#[test]
fn a_duration_that_is_over_is_no_failure_of_the_command() {
    let folder = Folder::new();
    let record = |seconds: &str, command: &[&str]| {
        let words = ["record", "-q", "--ignore-loss", "--duration", seconds, "--"];
        output(&folder, &[&words[..], command].concat()).status.code()
    };
    assert_eq!(record("0.1", &["sleep", "1000"]), Some(0));
    // A shell that says by its code what SIGTERM did, and a program that ends in good order; what the program says of itself
    // is passed on.
    for (code, expected) in [(143, 0), (0, 0), (3, 3)] {
        let line = format!("trap 'kill $!; exit {code}' TERM; : > ready; sleep 1000 & wait");
        // On a busy machine the shell may come to its trap later.
        let ended = ["0.3", "3", "30", "300"].into_iter().find_map(|seconds| {
            let ended = record(seconds, &["sh", "-c", &line]);
            std::fs::remove_file(folder.path("ready")).is_ok().then_some(ended)
        });
        assert_eq!(ended, Some(Some(expected)), "{line}");
    }
    // So is that it was killed before.
    assert_eq!(record("1000", &["sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(record("1000", &["sh", "-c", "kill -15 $$"]), Some(143));
}

#[test]
fn the_command_s_code_is_known_where_ends_of_children_were_ignored() {
    let folder = Folder::new();
    for code in [0, 7] {
        let line = format!("exit {code}");
        let mut record = taut(&folder, &["record", "-q", "--tier", "stamps", "--", "sh", "-c", &line]);
        // SAFETY: ignoring a signal runs no code.
        unsafe {
            record.pre_exec(|| {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
                Ok(())
            });
        }
        let output = record.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_recording_that_lost_stamps_says_so_by_its_code() {
    let folder = Folder::new();
    stamper(&folder);
    let record = |options: &[&str], code: &str, expected| {
        let words = ["record", "-q", "--tier", "stamps", "--ring-records", "64", "-o", "run.mcap"];
        ends(&folder, &[&words[..], options, &["--", "./stamper", code, "200000", "0"]].concat(), expected);
        let (mut kept, mut lost) = (0, 0);
        taut_recording::read(&std::fs::read(folder.path("run.mcap")).unwrap(), &mut |record| match record {
            Record::Stamps(batch) => kept += batch.ticks.len() as u64,
            Record::Lost(count) => lost += count.count,
            _ => {}
        })
        .unwrap();
        assert_eq!(kept + lost, 400_000);
        assert!(lost > 0, "nothing was lost, so this shows nothing");
    };
    record(&[], "0", 5);
    record(&[], "7", 7);
    record(&["--ignore-loss"], "0", 0);
}

#[test]
fn failures_of_record_are_apart_from_those_of_its_command() {
    let folder = Folder::new();
    folder.write("interpreted", "#!/no/such/interpreter\n");
    std::fs::set_permissions(folder.path("interpreted"), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder.write("text", "no program");
    for probe in [&[][..], &["--wakeup"]] {
        let record = |command: &str, code| ends(&folder, &[&["record", "-q"], probe, &["--", command]].concat(), code);
        record("no-such-command", 127);
        record("./missing", 127);
        record("./text", 126);
        record("/", 126);
    }
    ends(&folder, &["record", "--", "./interpreted"], 126);
    ends(&folder, &["record", "-o", "no/such/folder.mcap", "--", "true"], 125);
    ends(&folder, &["record", "--duration", "soon", "--", "true"], 125);
    ends(&folder, &["record", "--no-such-option", "--", "true"], 125);
    ends(&folder, &["record", "--serve", "nowhere:x", "--", "true"], 125);
    // Without a command the codes are taut's own.
    ends(&folder, &["record", "--no-such-option"], 2);
    ends(&folder, &["record"], 2);
    ends(&folder, &["record", "--pid", "4194303"], 2);
    ends(&folder, &["record", "-o", "no/such/folder.mcap", "--pid", &std::process::id().to_string()], 2);
}

#[test]
fn a_disk_that_fails_is_an_io_failure() {
    let folder = Folder::new();
    // Its head reaches the file before the command runs.
    ends(&folder, &["record", "-o", "/dev/full", "--", "true"], 125);
    ends(&folder, &["record", "-o", "/dev/full", "--pid", &std::process::id().to_string()], 6);
    // A limit on the length of files is reached while the command runs.
    let taut = cargo_bin!("taut").display().to_string();
    let code = |code: u8| {
        let line = format!("ulimit -f 40; exec {taut} record -q -o run.mcap -- sh -c '{HEAVY} exit {code}'");
        let mut bash = Command::new("bash");
        bash.args(["-c", &line]).current_dir(folder.0.path()).stdout(Stdio::null()).stderr(Stdio::null());
        bash.status().unwrap().code()
    };
    assert_eq!(code(0), Some(6));
    // On a busy machine the limit is reached later.
    let is_failure = |seconds: &str| {
        let line = format!(
            "ulimit -f 40; exec {taut} record -q --duration {seconds} -o run.mcap -- sh -c '{HEAVY} exec sleep 1000'"
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &line]).current_dir(folder.0.path()).stdout(Stdio::null()).stderr(Stdio::null());
        bash.status().unwrap().code() == Some(6)
    };
    assert!(["3", "30", "300"].into_iter().any(is_failure), "SIGTERM is how --duration ends a command");
    assert_eq!(code(9), Some(9), "the program's own failure comes first");
}

/// Enough processes that what is said of their threads fills more than 40 kB.
const HEAVY: &str = "for i in $(seq 300); do /bin/true; done;";

#[test]
fn stdout_that_takes_nothing_is_an_io_failure_of_every_command() {
    let folder = recordings();
    made(&folder, None);
    let run = "run.mcap";
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["record", "--help"],
        &["report", run],
        &["report", run, "--format", "json"],
        &["report", run, run],
        &["explain", run],
        &["flamegraph", "made.mcap"],
        &["export", "csv", run, "-o", "-"],
        &["recover", run, "-o", "-"],
        &["doctor"],
        &["doctor", "--list"],
        &["wakeup", "--duration", "100ms", "-q"],
        &["completions", "bash"],
        &["bus", "budget", "--preset", "pi3hat"],
        &["bus", "sim:1", "--query", "1,1"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = taut(&folder, arguments).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(6), "{arguments:?}: {said}");
        assert!(said.lines().last().is_some_and(|line| line.contains("No space left")), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_damaged_recording_is_read_as_far_as_it_goes() {
    let folder = recordings();
    let damaged = "damaged.mcap";
    for arguments in [
        &["report", damaged][..],
        &["report", damaged, "--format", "json"],
        &["report", damaged, "run.mcap"],
        &["explain", damaged],
        &["export", "csv", damaged, "-o", "out.csv"],
        &["export", "perfetto", damaged, "-o", "out.json"],
        &["recover", damaged, "-o", "clean.mcap"],
    ] {
        ends(&folder, arguments, 5);
    }
    // The copy is undamaged, and says what it lacks.
    let report = output(&folder, &["report", "clean.mcap", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert!(found["recording"]["lost_stamps"].as_u64().unwrap() > 0, "{found}");
    assert_eq!(report.status.code(), Some(5));
    assert_eq!(found["damage"].as_array().unwrap().len(), 0);
    for command in ["report", "explain", "flamegraph", "recover"] {
        ends(&folder, &[command, "missing.mcap"], 2);
        let said = ends(&folder, &[command, "."], 2);
        assert!(said.contains(".: is a folder; name a recording"), "{command}: {said}");
    }
}

#[test]
fn what_was_lost_while_it_was_recorded_has_the_same_code_in_every_reader() {
    let folder = Folder::new();
    let run = "made.mcap";
    let of_both = [
        &["report", run][..],
        &["explain", run],
        &["compare", run, run],
        &["export", "csv", run],
        &["export", "parquet", run],
        &["fleet", "add", run, "--into", "fleet", "--robot", "arm"],
        &["recover", run, "-o", "clean.mcap"],
    ];
    let of_profile = [&["flamegraph", run, "-o", "run.svg"][..], &["flamegraph", run, run], &["export", "folded", run]];
    for (lost, code_of_both, code_of_profile) in
        [(None, 0, 0), (Some(LostWhat::Stamps), 5, 0), (Some(LostWhat::Samples), 5, 5)]
    {
        made(&folder, lost);
        of_both.iter().for_each(|arguments| drop(ends(&folder, arguments, code_of_both)));
        of_profile.iter().for_each(|arguments| drop(ends(&folder, arguments, code_of_profile)));
    }
    // Which line says it.
    made(&folder, Some(LostWhat::Stamps));
    assert!(ends(&folder, of_both[5], 5).contains(", 9 stamps LOST"));
    assert!(ends(&folder, of_both[6], 5).contains(", 9 stamps LOST"));
    // It shows nothing else.
    ends(&folder, &["telemetry", run], 0);
    made(&folder, Some(LostWhat::Telemetry));
    assert!(ends(&folder, &["telemetry", run], 5).contains(", 9 telemetry messages LOST"));
}

#[test]
fn what_this_user_may_not_do_has_a_code_of_its_own() {
    // SAFETY: getuid has no preconditions.
    if unsafe { libc::getuid() } != 0 {
        return skip(Need::Root, "becomes another user");
    }
    let folder = Folder::new();
    std::fs::set_permissions(folder.0.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::copy(cargo_bin!("taut"), folder.path("taut")).unwrap();
    folder.write("secret.mcap", "of root");
    std::fs::set_permissions(folder.path("secret.mcap"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let ends = |arguments: &[&str], code| {
        let mut command = Command::new(folder.path("taut"));
        command.args(arguments).current_dir(folder.0.path()).uid(NOBODY).gid(NOBODY).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let ours = std::process::id().to_string();
    ends(&["record", "--pid", &ours], 3);
    ends(&["record", "--pid", &ours, "--tier", "full", "--session", "/tmp"], 2);
    ends(&["record", "--tier", "full", "--", "true"], 125);
    for command in ["report", "explain", "flamegraph", "recover"] {
        ends(&[command, "secret.mcap"], 3);
    }
    ends(&["wakeup", "--policy", "fifo", "--duration", "100ms"], 3);
    ends(&["report", "missing.mcap"], 2);
}

/// Sends a signal once `is_under_way`, and gives the code.
#[track_caller]
fn interrupted(mut child: Child, signal: i32, mut is_under_way: impl FnMut() -> bool) -> Option<i32> {
    until("its start", || is_under_way() || child.try_wait().unwrap().is_some());
    // SAFETY: our own child, which was not waited for.
    unsafe { libc::kill(child.id() as i32, signal) };
    child.wait().unwrap().code()
}

/// Whether it has a handler of its own for the signal.
fn listens(pid: u32, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim().to_owned();
    u64::from_str_radix(&caught, 16).is_ok_and(|caught| caught >> (signal - 1) & 1 == 1)
}

#[test]
fn what_is_interrupted_before_it_is_done_says_by_which_signal() {
    let folder = Folder::new();
    std::fs::DirBuilder::new().mode(0o700).create(folder.path("session")).unwrap();
    let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = program.id().to_string();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        for arguments in [
            &["record", "-q", "--ignore-loss", "--pid", &pid, "--duration", "1000", "-o", "pid.mcap"][..],
            &["record", "-q", "--", "sleep", "1000"],
            &["wakeup", "--duration", "1000", "-q"],
            &["bus", "sim:1", "--query", "1,1", "--rate", "10", "--duration", "1000"],
        ] {
            let child = taut(&folder, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let (id, is_recorder) = (child.id(), arguments[0] == "record");
            let file = folder.path(if arguments.contains(&"pid.mcap") { "pid.mcap" } else { "taut-run.mcap" });
            let code = interrupted(child, signal, || listens(id, signal) && (!is_recorder || file.exists()));
            assert_eq!(code, Some(128 + signal), "{arguments:?}");
            let _ = std::fs::remove_file(file);
        }
        // Nothing but a signal ends it.
        let child = taut(&folder, &["record", "-q", "--ignore-loss", "--pid", &pid, "-o", "pid.mcap"]).spawn().unwrap();
        let file = folder.path("pid.mcap");
        assert_eq!(interrupted(child, signal, || file.exists()), Some(0));
        std::fs::remove_file(file).unwrap();
    }
    program.kill().unwrap();
    program.wait().unwrap();
}

/// What a reader of the result does with it changes no verdict, and no other file that was asked for.
#[test]
fn a_closed_stdout_changes_no_exit_code() {
    let folder = recordings();
    let limit = "[[chain.limit]]\nfigure = \"total.p50\"\nmax_ms = 0.000001\n";
    folder.write("taut.toml", &format!("[[chain]]\npoints = [\"a\", \"b\"]\n{limit}"));
    // Its reading end is closed when it is returned.
    let closed = || Stdio::from(std::io::pipe().unwrap().1);
    for (arguments, codes) in [
        (&["report", "damaged.mcap"][..], [5, 5]),
        (&["gate", "--limits", "--candidate", "run.mcap", "--junit", "gate.xml"], [1, 4]),
        (&["export", "csv", "run.mcap", "-o", "-"], [0, 0]),
        (&["recover", "damaged.mcap", "-o", "-"], [5, 5]),
        // As a device, and as what another shell's process reads: `--json >(head -1)`.
        (&["report", "damaged.mcap", "-o", "/dev/stdout"], [5, 5]),
        (&["report", "damaged.mcap", "run.mcap", "-o", "/dev/fd/1"], [5, 5]),
        (&["gate", "--limits", "--candidate", "run.mcap", "--markdown", "/dev/stdout", "--junit", "gate.xml"], [1, 4]),
        (&["gate", "--limits", "--candidate", "run.mcap", "--json", "/dev/fd/1", "--junit", "gate.xml"], [1, 4]),
        (&["export", "csv", "damaged.mcap", "-o", "/dev/stdout"], [5, 5]),
        (&["recover", "damaged.mcap", "-o", "/dev/stdout"], [5, 5]),
    ] {
        let _ = std::fs::remove_file(folder.path("gate.xml"));
        let closed = taut(&folder, arguments).stdout(closed()).status().unwrap().code();
        assert!(folder.path("gate.xml").exists() || arguments[0] != "gate", "{arguments:?}");
        let read = output(&folder, arguments);
        assert_eq!(closed, read.status.code(), "{arguments:?}: {}", String::from_utf8_lossy(&read.stderr));
        assert!(codes.map(Some).contains(&closed), "{arguments:?}: {closed:?}");
    }
}
