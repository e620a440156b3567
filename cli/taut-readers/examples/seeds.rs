//! Writes something sound for each reader to begin with, into folders by their names: seeds FOLDER.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use taut_recording::{Ending, Info, Kind, Name, Record, StampBatch, Writer};

fn main() {
    let to = PathBuf::from(std::env::args().nth(1).expect("usage: seeds FOLDER"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let keep = |reader: &str, name: &str, bytes: &[u8]| {
        assert!(taut_readers::named(reader).is_some(), "{reader}");
        fs::create_dir_all(to.join(reader)).unwrap();
        fs::write(to.join(reader).join(name), bytes).unwrap();
    };
    let copy = |reader: &str, path: &str| {
        let bytes = fs::read(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        keep(reader, Path::new(path).file_name().unwrap().to_str().unwrap(), &bytes);
    };
    let recording = recording();
    let records = records_of(&recording);
    for reader in [
        "read_recording",
        "follow_recording",
        "recording_log",
        "report_recording",
        "export_recording",
        "channel_numbers",
        "import_bag",
    ] {
        keep(reader, "recording", &recording);
        keep(reader, "records", &records);
    }
    // Two hosts that saw the same.
    keep("join_recordings", "recordings", &recording.repeat(2));
    keep("join_recordings", "records", &records.repeat(2));
    keep("import_bag", "lz4", &lz4(b"many many many many words"));
    for name in fs::read_dir(root.join("drive/taut-bus/src/budget/presets")).unwrap().flatten() {
        copy("budget_file", &format!("drive/taut-bus/src/budget/presets/{}", name.file_name().to_string_lossy()));
    }
    for answer in ["report", "worst", "compare"] {
        copy("fleet_answer", &format!("report/taut-report/src/fleet/sample/{answer}.json"));
    }
    for machine in ["cloud-vm", "metal-rt", "raspberry-pi-4"] {
        copy("machine_file", &format!("measure/taut-doctor/tests/machines/{machine}.txt"));
    }
    keep("truth_series", "lines", TRUTH);
    keep("tune_journal", "lines", JOURNAL);
    keep("settings_file", "all", SETTINGS);
    keep("metrics_request", "scrape", b"GET /metrics HTTP/1.1\r\nHost: localhost:9464\r\nAccept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n");
    keep("metrics_request", "head", b"HEAD / HTTP/1.0\r\n\r\n");
    keep("viewer_messages", "subscribe", &frames());
    for lab in [
        "docs/samples/lab.toml",
        "workloads/reach/break.toml",
        "workloads/reach/modes.toml",
        "workloads/reach/scenarios.toml",
    ] {
        copy("lab_file", lab);
    }
    let trace = "trace/taut-import/tests/data/ros2-caret-sample/end_to_end_sample/ust/uid/1000/64-bit";
    for stream in ["ros2_1", "ros2_4", "ros2_6"] {
        copy("import_ctf", &format!("{trace}/{stream}"));
    }
    let metadata = fs::read(root.join(trace).join("metadata")).unwrap();
    keep("import_ctf", "metadata", &metadata[..metadata.len().min(8000)]);
    keep("telemetry_description", "arm", DESCRIPTION);
    keep(
        "message_schema",
        "arm",
        b"float64[2] position\nuint64 cycle\np/Inner[] inner\n===\nMSG: p/Inner\nstring s\n\0\0\x01\0\0",
    );
    keep("session_note", "note", b"taut recorder 1\n4242\n1\n4026531836\n77\n/tmp/run.mcap");
    keep(
        "import_text",
        "lines",
        b"{\"t\":1.5,\"point\":\"arm.read\",\"id\":7}\n{\"t\":1.6,\"point\":\"arm.written\",\"id\":7}\n",
    );
    keep("import_text", "chrome", b"{\"name\":\"a\",\"ph\":\"X\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1},{\"name\":\"b\",\"ph\":\"s\",\"id\":1,\"ts\":1,\"pid\":1,\"tid\":1}");
    keep("import_text", "cyclictest", b"# Histogram\n000001 000002\n000002 000003\n# Total: 5\n");
    keep("import_mjlib", "object", b"\x10\0\x01a\x07\x01b\x0a\0\0\0\0\x80?\x03abc");
    keep("bus_lines", "lines", b"can send 8001 11001F01 BF\nrcv 0100 21000A e B F\nOK\nOK *BD\nERR unknown\n");
    keep("bus_lines", "datagram", &[2, 0, 7, 0, 1, 0, 0, 1, 0, 2, 0xaa, 0xbb]);
    keep(
        "servo_frames",
        "position",
        &[0x80, 0x01, 0x00, 0x0a, 0x0c, 0x06, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0x04, 0, 0x13, 0x0d],
    );
    keep("kernel_events", "page", &page());
    keep(
        "lab_output",
        "line",
        b"ready\n{\"success\": false, \"status\": \"timeout\", \"reason\": \"late\", \"ask_ms\": 1.5}\n",
    );
    keep("guard_file", "guard", b"[guard]\nperiod_ms = 1.0\n\n[stream]\nname = \"arm\"\n");
    let trial = taut_gate::Trial { revision: "r1".into(), chain: "arm".into(), duration_s: 2.5, ..Default::default() };
    keep("gate_trials", "trial", &serde_json::to_vec(&trial).unwrap());
    let row = |n: u32| taut_history::Row {
        time_unix_s: f64::from(n),
        revision: format!("r{n}"),
        machine: "2 × a CPU".into(),
        chain: "arm".into(),
        hop: String::new(),
        figure: "own.p50".into(),
        value: f64::from(n % 3),
    };
    keep("gate_history", "history", &taut_history::write(&(0..9).map(row).collect::<Vec<_>>()).unwrap());
    keep("interval_log", "log", INTERVALS);
    for reader in ["session_rings", "session_telemetry", "session_objects"] {
        // A word, then looks in each way.
        keep(
            reader,
            "looks",
            &[0, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 38, 0, 0, 7, 0, 0, 46, 0, 0, 5, 0, 2, 6, 0, 0],
        );
    }
    keep("import_sqlite", "bag", &database()[16..]);
    keep("lab_manifest", "line", b"{\"lab\":{}}\n{\"trial\":{}}\n");
}

const DESCRIPTION: &[u8] = b"name\tarm\ntype\tinner_t\t8\nfield\tx\tfloat32\t2\t0\tm\ntype\tarm_t\t32\nconstant\tmode\tHOLD\t2\n\
    field\tmode\tuint8\t0\t0\t\nfield\tok\tbool\t0\t1\t\nfield\tname\ttext6\t0\t2\t\nfield\tparts\tstruct inner_t\t2\t8\t\n\
    field\tcycle\tuint64\t0\t24\t\n\0xyz";

const INTERVALS: &[u8] = b"#[Histogram log format version 1.3]\n#[StartTime: 1.0 (seconds since epoch)]\n\
    \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n\
    0.1,1.0,2.0,HISTFAAAACJ4nJNpmSzMwMDAzAABMJoRTM6Y1mB/ACyScYIJAFfwBJ0=\n";

const TRUTH: &[u8] = b"monotonic_ns,mm_s\n1000000000,12.5\n1001000000,250.25\n";

const JOURNAL: &[u8] = b"{\"owner\":{\"number\":77,\"started\":5,\"name\":\"taut\"}}\n\
    {\"entry\":{\"file\":{\"path\":\"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\",\"before\":\"powersave\"}}}\n\
    {\"entry\":{\"thread\":{\"who\":{\"number\":78,\"started\":6,\"name\":\"arm\"},\"scheduling\":{\"policy\":0,\"flags\":0,\"nice\":0,\
    \"priority\":0,\"runtime_ns\":0,\"deadline_ns\":0,\"period_ns\":0},\"cpus\":\"0-3\",\"at\":5}}}\n\
    \"undone\"\n{\"entry\":{\"file\":{\"path\":\"/dev/cpu_dma_latency\",\"before\":\"0\"}}}\n\"keep\"\n";

const SETTINGS: &[u8] =
    b"[[chain]]\nname = \"all\"\npoints = [\"a\", \"b\", \"c\"]\ndeadline_ms = 20\nmissed_max_percent = 0.1\n\
    dropped_max_percent = 1\n[[chain.limit]]\nhop = \"a \xe2\x86\x92 b\"\nfigure = \"own.p99\"\nmax_ms = 2\n[gate]\n\
    metrics = [\"hops.work.p50\", \"missed\"]\nminimum_effect_percent = 5\nequivalence_us = 5\n";

/// What a viewer sends, as a client must: masked, here with a mask that changes nothing.
fn frames() -> Vec<u8> {
    let texts: [&[u8]; 3] = [
        b"{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":7,\"channelId\":1}]}",
        b"{\"op\":\"unsubscribe\",\"subscriptionIds\":[7]}",
        b"{\"op\":\"getParameters\"}",
    ];
    let frame = |text: &&[u8]| [&[0x81, 0x80 | text.len() as u8, 0, 0, 0, 0][..], text].concat();
    texts.iter().flat_map(frame).chain([0x88, 0x80, 0, 0, 0, 0]).collect()
}

/// A page of ftrace with two events of the format that its reader knows.
fn page() -> Vec<u8> {
    let mut events = Vec::new();
    for n in 0..2_u32 {
        // Sixteen words, so many ns later; the record's type, flags and pid, then its fields.
        events.extend((16 | (5 + n) << 5).to_le_bytes());
        events.extend([1, 0, 0, 0, 77, 0, 0, 0]);
        events.extend([0; 56]);
    }
    let head = [1000_u64.to_le_bytes(), (events.len() as u64).to_le_bytes()].concat();
    [head, events].concat()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A bag of rosbag2 with two messages, in the smallest pages that there are.
fn database() -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("taut-seeds-{}.db3", std::process::id()));
    let database = rusqlite::Connection::open(&path).unwrap();
    let statements = "PRAGMA page_size = 512; PRAGMA journal_mode = OFF;
        CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT);
        CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT, offered_qos_profiles TEXT,
            type_description_hash TEXT);
        CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT, encoding TEXT, encoded_message_definition TEXT,
            type_description_hash TEXT);
        CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB);
        INSERT INTO schema VALUES(4, 'jazzy');
        INSERT INTO topics VALUES(1, '/a', 'a/msg/B', 'cdr', '', '');
        INSERT INTO message_definitions VALUES(1, 'a/msg/B', 'ros2msg', 'std_msgs/Header header', '');
        INSERT INTO messages VALUES(1, 1, 1000000000, x'000100000000000000000000'), (2, 1, 1100000000, x'000100000000000000000000');";
    database.execute_batch(statements).unwrap();
    drop(database);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    bytes
}

/// A small recording of everything.
fn recording() -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("taut-seeds-{}.mcap", std::process::id()));
    let mut writer = Writer::create(&path, &Info::default()).unwrap();
    for (id, name) in [(1, "arm.read"), (2, "arm.written"), (3, "applied")] {
        writer.write(&Record::Name(Name { id, name: name.into() })).unwrap();
    }
    let n = 20_u64;
    for (tid, point) in [(7, 1), (8, 2)] {
        writer
            .write(&Record::Stamps(StampBatch {
                pid: 7,
                tid,
                counter: 2,
                ticks: (0..n).map(|i| i * 1_000_000 + u64::from(point) * 300_000).collect(),
                message_id: (0..n).collect(),
                point: vec![point; n as usize],
                kind: vec![Kind::Stamp as u8; n as usize],
                value: vec![0; n as usize],
            }))
            .unwrap();
    }
    let channel = writer.channel("/a", "p/msg/A", "float64 x\n").unwrap();
    for i in 0..3 {
        writer
            .message(channel, i * 1000, i as u32, |out| out.extend([0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]))
            .unwrap();
    }
    writer.finish(&Ending::default()).unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    bytes
}

/// The records of its first chunks, unpacked.
fn records_of(recording: &[u8]) -> Vec<u8> {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let mut records = Vec::new();
    for at in 0..recording.len() - 4 {
        if recording[at..].starts_with(&MAGIC)
            && let Ok(more) = zstd::bulk::decompress(&recording[at..frame_end(recording, at)], 1 << 20)
        {
            records.extend(more);
        }
    }
    records
}

/// By the length that stands before a frame.
fn frame_end(recording: &[u8], at: usize) -> usize {
    let length = u64::from_le_bytes(recording[at - 8..at].try_into().unwrap());
    (at + length as usize).min(recording.len())
}
