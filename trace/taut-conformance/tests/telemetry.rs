//! Telemetry of C11, C++17 and Rust against the one consumer: the same struct must give the same schema and the same
//! messages, byte by byte, and nothing that was written may be missing.

#[path = "conformance/build.rs"]
#[allow(dead_code, reason = "it builds the stamping producers too")]
mod build;

use std::{
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::Command,
};

use taut_capture::{
    rings::Session,
    telemetry::{Channels, Drained},
};
use taut_recording::{Ending, Info, Record, Writer, log::Log, ros2msg::Schema};

fn producers() -> Vec<(&'static str, PathBuf)> {
    let mut all = vec![("rust", PathBuf::from(env!("CARGO_BIN_EXE_taut-conformance-telemetry")))];
    let sanitize = ["clang", "-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let compilers: [(&str, &[&str]); 4] = [
        ("c", &["gcc", "-std=c11", "-O2"]),
        ("cpp", &["g++", "-std=c++17", "-O2", "-fno-exceptions", "-x", "c++"]),
        ("clang++", &["clang++", "-std=c++20", "-O2", "-x", "c++"]),
        ("sanitized", &sanitize),
    ];
    for (name, compiler) in compilers {
        // Tests run at the same time: each builds its own.
        let program = tempfile::NamedTempFile::new_in(build::scratch("telemetry")).unwrap().into_temp_path();
        build::compile(compiler, &[&build::source("telemetry.c"), "-o", program.to_str().unwrap()]);
        all.push((name, program.keep().unwrap()));
    }
    all
}

struct Got {
    schema: String,
    schema_name: String,
    /// Sequence number and bytes.
    messages: Vec<(u32, Vec<u8>)>,
    values: Vec<serde_json::Value>,
    drained: Drained,
    said: String,
    files_left: usize,
}

/// Runs a producer in a session, and then the consumer.
fn run(program: &Path, arguments: &[&str]) -> Got {
    let session = tempfile::tempdir_in("/dev/shm").unwrap();
    let output = Command::new(program)
        .args(arguments)
        .env("TAUT_SESSION", session.path())
        .env("TAUT_CLOCK", "monotonic")
        .output()
        .unwrap();
    let file = session.path().join("run.mcap");
    let mut writer = Writer::create(&file, &Info::default()).unwrap();
    let mut channels = Channels::open(session.path(), false);
    let mut refused = Vec::new();
    channels.discover(&mut refused);
    assert_eq!(refused, Vec::<String>::new());
    channels.note_dead();
    let drained = channels.drain(&mut writer);
    writer.finish(&Ending::default()).unwrap();
    let mut log = Log::open(fs::File::open(&file).unwrap()).unwrap();
    let channel = log.channels().into_iter().find(|c| c.topic == "/telemetry/leg").unwrap().clone();
    let schema = Schema::parse(&channel.schema).unwrap();
    let (mut messages, mut values) = (Vec::new(), Vec::new());
    log.read(channel.number, 0..u64::MAX, &mut |message| {
        messages.push((message.sequence, message.data.to_vec()));
        values.push(schema.decode(message.data).unwrap());
        ControlFlow::Continue(())
    })
    .unwrap();
    let left = fs::read_dir(session.path()).unwrap().flatten();
    let files_left = left.filter(|f| f.path().extension().is_some_and(|e| e == "telemetry")).count();
    let said = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let (schema, schema_name) = (channel.schema, channel.schema_name);
    Got { schema, schema_name, messages, values, drained, said, files_left }
}

#[test]
fn all_languages_write_the_same_messages() {
    let all: Vec<(&str, Got)> = producers().iter().map(|(name, program)| (*name, run(program, &["5"]))).collect();
    let (_, first) = &all[0];
    assert_eq!(first.schema_name, "telemetry/msg/LegT");
    assert_eq!(
        first.schema,
        "uint64 cycle\ntelemetry/JointT[3] joints # from the hip down\nbool[4] contact\nint16[2] current # mA\nstring state\n\
         telemetry/JointT spare\nfloat64[6] gains\nint8 last\n"
            .to_owned()
            + &"=".repeat(80)
            + "\nMSG: telemetry/JointT\nuint8 MODE_STOPPED=0\nuint8 MODE_POSITION=10\nfloat64 position # rad\n\
               float32 torque # N·m\nuint8 mode\n"
    );
    let value = &first.values[3];
    assert_eq!(value["joints"][2]["position"], 3.5);
    assert_eq!(value["joints"][1]["mode"], 10);
    assert_eq!(value["contact"], serde_json::json!([true, true, false, false]));
    assert_eq!((&value["state"], &value["gains"][5], &value["last"]), (&"s3".into(), &5.0.into(), &(-7).into()));
    for (name, got) in &all {
        assert_eq!(got.schema, first.schema, "{name}");
        assert_eq!(got.messages.len(), 5, "{name}");
        assert_eq!(got.messages, first.messages, "{name}");
        assert_eq!((got.said.as_str(), got.drained.lost.len(), got.files_left), ("0", 0, 0), "{name}");
    }
}

#[test]
fn a_fork_s_child_writes_its_own_ring() {
    for (name, program) in producers() {
        let got = run(&program, &["5", "fork"]);
        let mut cycles: Vec<u64> = got.values.iter().map(|value| value["cycle"].as_u64().unwrap()).collect();
        cycles.sort_unstable();
        assert_eq!(cycles, [0, 1, 2, 3, 4, 5, 1000, 1001, 1002, 1003, 1004], "{name}");
        assert_eq!(got.files_left, 0, "{name}");
    }
}

#[test]
fn a_killed_process_loses_nothing_that_it_wrote() {
    for (name, program) in producers() {
        let got = run(&program, &["700", "kill"]);
        assert_eq!(got.values.len(), 700, "{name}");
        assert_eq!(got.files_left, 0, "{name}");
    }
}

#[test]
fn a_full_ring_drops_the_newest_and_counts_them() {
    for (name, program) in producers() {
        let got = run(&program, &["100", "full"]);
        let sequences: Vec<u32> = got.messages.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!(sequences, (0..16).collect::<Vec<_>>(), "{name}");
        assert_eq!(got.said, "84", "{name}");
        assert_eq!(got.drained.lost.len(), 1, "{name}");
        assert_eq!((got.drained.lost[0].0.ends_with("/leg"), got.drained.lost[0].1), (true, 84), "{name}");
    }
}

#[test]
fn another_struct_than_the_channel_s_is_not_written() {
    // In Rust it does not compile.
    for (name, program) in producers().into_iter().filter(|(name, _)| *name != "rust") {
        let got = run(&program, &["2", "wrong"]);
        assert_eq!((got.values.len(), got.said.as_str()), (2, "1"), "{name}");
    }
}

/// When it was made, and at the first value, no file could be made; at the second one nobody looks.
#[test]
fn a_channel_that_got_no_ring_looks_for_one_again() {
    for (name, program) in producers() {
        let got = run(&program, &["6", "later"]);
        let sequences: Vec<u32> = got.messages.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!((sequences, got.said.as_str()), (vec![2, 3, 4, 5], "2"), "{name}");
        assert_eq!((got.drained.lost.len(), got.files_left), (0, 0), "{name}: what had no ring is told by the process");
    }
}

/// In Python it is an error (`python/tests/test_telemetry.py`).
#[test]
fn a_channel_of_no_rate_or_no_name_writes_nothing_and_counts_it() {
    for (name, program) in producers() {
        let session = tempfile::tempdir_in("/dev/shm").unwrap();
        let environment = [("TAUT_SESSION", session.path().to_str().unwrap()), ("TAUT_CLOCK", "monotonic")];
        let output = Command::new(&program).args(["5", "refused"]).envs(environment).output().unwrap();
        assert_eq!((output.stdout, output.stderr), (b"7\n".to_vec(), Vec::new()), "{name}");
        let files = fs::read_dir(session.path()).unwrap().flatten();
        let files = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "telemetry"));
        assert_eq!(files.count(), 1, "{name}: of the channel that is one");
        // The recorder says how many: of them there is no ring.
        let mut rings = Session::open(session.path()).unwrap();
        rings.discover(&mut taut_capture::rings::Drained::default());
        let lost = rings.drain().lost_telemetry;
        assert_eq!(lost.iter().map(|(_, count)| *count).collect::<Vec<u64>>(), [7], "{name}: {lost:?}");
    }
}

#[test]
fn without_a_session_nothing_happens() {
    for (name, program) in producers() {
        let output = Command::new(&program).args(["3", "fork"]).env_remove("TAUT_SESSION").output().unwrap();
        assert_eq!((output.status.success(), output.stdout), (true, b"0\n".to_vec()), "{name}");
    }
}

#[test]
fn a_recovered_recording_has_the_same_messages() {
    let session = tempfile::tempdir_in("/dev/shm").unwrap();
    let program = env!("CARGO_BIN_EXE_taut-conformance-telemetry");
    let environment = [("TAUT_SESSION", session.path().to_str().unwrap()), ("TAUT_CLOCK", "monotonic")];
    assert!(Command::new(program).arg("300").envs(environment).output().unwrap().status.success());
    let [whole, clean] = ["whole.mcap", "clean.mcap"].map(|name| session.path().join(name));
    let mut writer = Writer::create(&whole, &Info::default()).unwrap();
    let mut channels = Channels::open(session.path(), false);
    channels.discover(&mut Vec::new());
    channels.drain(&mut writer);
    writer.finish(&Ending::default()).unwrap();
    let bytes = fs::read(&whole).unwrap();
    let recovered = taut_recording::recover(&bytes, &clean).unwrap();
    assert_eq!((recovered.messages, recovered.damage.len()), (300, 0));
    let records = |bytes: &[u8]| {
        let mut messages = Vec::new();
        taut_recording::read(bytes, &mut |record| {
            if let Record::Message(message) = record {
                messages.push(message);
            }
        })
        .unwrap();
        messages
    };
    assert_eq!(records(&fs::read(&clean).unwrap()), records(&bytes));
}
