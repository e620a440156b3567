//! Bags, made here record by record: what comes over as which stamp, and what damage costs.

mod recorded;

use std::{
    io::{Cursor, Write},
    path::Path,
};

use proptest::prelude::*;
use recorded::{Stamps, imported, says};
use taut_import::{Error, Imported, bag};

const START: u64 = 1_700_000_000_000_000_000;
const MS: u64 = 1_000_000;
const IMU: &str = "std_msgs/Header header\nfloat64 x\n";
const MAGIC: &[u8] = b"\x89MCAP0\r\n";

/// Records of an MCAP file.
#[derive(Clone, Default)]
struct Mcap(Vec<u8>);

impl Mcap {
    fn record(&mut self, opcode: u8, parts: &[&[u8]]) {
        let body = parts.concat();
        self.0.push(opcode);
        self.0.extend((body.len() as u64).to_le_bytes());
        self.0.extend(body);
    }

    fn header(profile: &str) -> Mcap {
        let mut file = Mcap(MAGIC.to_vec());
        file.record(1, &[&string(profile), &string("a test")]);
        file
    }

    fn channel(&mut self, id: u16, topic: &str, type_name: &str, encoding: &str, schema: &str, messages: &str) {
        let schema_id = if schema.is_empty() { 0 } else { id };
        if schema_id > 0 {
            self.record(3, &[&id.to_le_bytes(), &string(type_name), &string(encoding), &string(schema)]);
        }
        self.record(4, &[&id.to_le_bytes(), &schema_id.to_le_bytes(), &string(topic), &string(messages), &[0; 4]]);
    }

    fn message(&mut self, channel: u16, sequence: u32, log_ns: u64, publish_ns: u64, data: &[u8]) {
        let times = [log_ns.to_le_bytes(), publish_ns.to_le_bytes()].concat();
        self.record(5, &[&channel.to_le_bytes(), &sequence.to_le_bytes(), &times, data]);
    }

    /// These records as one chunk, with their checksum.
    fn chunk(&mut self, records: &Mcap, compression: &str) {
        let packed = match compression {
            "zstd" => zstd::bulk::compress(&records.0, 1).unwrap(),
            "lz4" => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder.write_all(&records.0).unwrap();
                encoder.finish().unwrap()
            }
            _ => records.0.clone(),
        };
        let (size, crc) = (records.0.len() as u64, crc32fast::hash(&records.0));
        let head = [&[0; 16][..], &size.to_le_bytes(), &crc.to_le_bytes(), &string(compression)].concat();
        self.record(6, &[&head, &(packed.len() as u64).to_le_bytes(), &packed]);
    }

    fn finish(mut self) -> Vec<u8> {
        self.record(15, &[&[0; 4]]);
        self.record(2, &[&[0; 20]]);
        self.0.extend(MAGIC);
        self.0
    }
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A message whose header was stamped at that moment.
fn stamped(ns: u64) -> Vec<u8> {
    let (seconds, nanos) = ((ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32);
    [&[0, 1, 0, 0][..], &seconds.to_le_bytes(), &nanos.to_le_bytes(), &[0; 40]].concat()
}

/// An IMU at 100 Hz, stamped 3 ms before it is logged and published 1 ms before, and a topic without a header.
fn records(messages: u64) -> Mcap {
    let mut records = Mcap::default();
    records.channel(7, "/imu", "sensor_msgs/msg/Imu", "ros2msg", IMU, "cdr");
    records.channel(8, "/x", "std_msgs/msg/Float64", "ros2msg", "float64 data\n", "cdr");
    for n in 0..messages {
        let log = START + n * 10 * MS;
        records.message(7, n as u32, log, log - MS, &stamped(log - 3 * MS));
        if n % 10 == 0 {
            records.message(8, 0, log + MS, log + MS, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
    }
    records
}

fn whole(records: &Mcap, compression: &str) -> Vec<u8> {
    let mut file = Mcap::header("ros2");
    file.chunk(records, compression);
    file.finish()
}

fn import(bytes: &[u8]) -> Result<(Imported, Stamps), Error> {
    let (imported, recorded) = imported(|to| bag::import_mcap(Cursor::new(bytes), to, &mut |_| {}))?;
    Ok((imported, recorded.stamps()))
}

fn times(stamps: &Stamps, point: &str) -> Vec<u64> {
    stamps[point].iter().map(|(_, time_ns)| *time_ns).collect()
}

#[test]
fn a_message_is_stamped_where_its_header_publisher_and_recorder_were() {
    let (imported, stamps) = import(&whole(&records(200), "zstd")).unwrap();
    assert_eq!(imported.damage, Vec::<String>::new());
    let log: Vec<u64> = (0..200).map(|n| START + n * 10 * MS).collect();
    assert_eq!(times(&stamps, "/imu log"), log);
    assert_eq!(times(&stamps, "/imu publish"), log.iter().map(|ns| ns - MS).collect::<Vec<_>>());
    assert_eq!(times(&stamps, "/imu header"), log.iter().map(|ns| ns - 3 * MS).collect::<Vec<_>>());
    let ids = |point: &str| stamps[point].iter().map(|(id, _)| *id).collect::<Vec<_>>();
    assert_eq!(ids("/imu header"), ids("/imu log"), "the three are of one message");
    assert!(ids("/x log").iter().all(|id| !ids("/imu log").contains(id)), "topics share no ids");
    assert!(!stamps.contains_key("/x publish"), "a publish time that is the log time says nothing");
    assert!(says(&imported, "no header stamp to be found in /x (std_msgs/msg/Float64)"));
}

#[test]
fn every_compression_gives_the_same() {
    let records = records(50);
    let expected = import(&whole(&records, "zstd")).unwrap().1;
    assert_eq!(import(&whole(&records, "")).unwrap().1, expected);
    assert_eq!(import(&whole(&records, "lz4")).unwrap().1, expected);
    let mut bare = Mcap::header("ros2");
    bare.0.extend(&records.0);
    assert_eq!(import(&bare.finish()).unwrap().1, expected, "without chunks");
}

#[test]
fn a_stamp_of_another_time_base_is_told_and_is_no_latency_of_50_years() {
    let mut records = Mcap::default();
    records.channel(1, "/sim", "sensor_msgs/msg/Imu", "ros2msg", IMU, "cdr");
    records.channel(2, "/unset", "sensor_msgs/msg/Imu", "ros2msg", IMU, "cdr");
    for n in 0..5 {
        let log = START + n * 10 * MS;
        records.message(1, 0, log, log, &stamped(12_500 * MS + n * 10 * MS));
        records.message(2, 0, log, log, &stamped(0));
    }
    let (imported, stamps) = import(&whole(&records, "zstd")).unwrap();
    assert_eq!(stamps.keys().collect::<Vec<_>>(), ["/sim log", "/unset log"]);
    assert!(says(
        &imported,
        "/sim: 5 of 5 header stamps are more than a day from the log time (the first says 12.500 s)"
    ));
    assert!(says(&imported, "/unset: 5 of 5 header stamps are zero"));
}

#[test]
fn holes_in_rosbag2s_sequence_numbers_are_lost_messages_and_others_say_nothing() {
    let mut records = Mcap::default();
    records.channel(1, "/imu", "sensor_msgs/msg/Imu", "ros2msg", IMU, "cdr");
    for sequence in [5, 6, 7, 10, 11] {
        let log = START + u64::from(sequence) * 10 * MS;
        records.message(1, sequence, log, log, &stamped(log));
    }
    assert!(!says(&import(&whole(&records, "zstd")).unwrap().0, "missing"));
    let mut file = Mcap::header("ros2");
    file.chunk(&records, "zstd");
    file.record(12, &[&string("rosbag2"), &[0; 4]]);
    assert!(says(
        &import(&file.finish()).unwrap().0,
        "/imu: 2 messages are missing by the publisher's sequence numbers, in 1 gap"
    ));
}

#[test]
fn ros_1_in_mcap_has_its_headers_too() {
    let mut records = Mcap::default();
    records.channel(1, "/scan", "sensor_msgs/LaserScan", "ros1msg", "Header header\nfloat32 angle_min\n", "ros1");
    for n in 0..4_u32 {
        let log = START + u64::from(n) * 100 * MS;
        let numbers = [n * 2, ((log - MS) / 1_000_000_000) as u32, ((log - MS) % 1_000_000_000) as u32, 0];
        records.message(1, 0, log, log, &numbers.map(u32::to_le_bytes).concat());
    }
    let (imported, stamps) = import(&whole(&records, "lz4")).unwrap();
    assert_eq!(times(&stamps, "/scan header")[1], START + 99 * MS);
    assert!(says(&imported, "/scan: 3 messages are missing by the publisher's sequence numbers, in 3 gaps"));
}

#[test]
fn other_encodings_have_their_log_times() {
    let mut records = Mcap::default();
    records.channel(1, "/json", "Thing", "jsonschema", "{}", "json");
    records.channel(2, "/bare", "", "", "", "cdr");
    records.message(1, 0, START, START, b"{}");
    records.message(2, 0, START, START, &[]);
    let (imported, stamps) = import(&whole(&records, "zstd")).unwrap();
    assert_eq!(stamps.keys().collect::<Vec<_>>(), ["/bare log", "/json log"]);
    assert!(says(&imported, "/json (Thing), /bare (cdr)"));
}

#[test]
fn a_damaged_chunk_is_left_out_and_named() {
    let mut file = Mcap::header("ros2");
    file.chunk(&records(50), "zstd");
    let (first, second) = (file.0.len(), 1 + 8 + 60);
    file.chunk(&records(80), "zstd");
    let mut bytes = file.finish();
    bytes[first + second] ^= 1;
    let (imported, stamps) = import(&bytes).unwrap();
    assert_eq!(stamps["/imu log"].len(), 50);
    assert!(imported.damage[0].starts_with(&format!("the chunk at byte {first} ")), "{:?}", imported.damage);
    assert!(imported.damage[0].ends_with("its messages were left out"));
}

#[test]
fn a_bag_that_was_cut_gives_what_is_whole() {
    let mut file = Mcap::header("ros2");
    file.chunk(&records(50), "zstd");
    let end = file.0.len();
    file.chunk(&records(50), "zstd");
    let (imported, stamps) = import(&file.0[..end + 30]).unwrap();
    assert_eq!(stamps["/imu log"].len(), 50);
    assert_eq!(imported.damage, [format!("the file ends within the record at byte {end}, which was left out")]);
    let (imported, _) = import(&file.0[..end]).unwrap();
    assert_eq!(
        imported.damage,
        [format!("the file ends at byte {end} without its end mark; what came before was read")]
    );
}

#[test]
fn what_is_no_bag_is_said_to_be_what_it_is() {
    let mut own = Mcap::header("taut");
    own.chunk(&records(1), "zstd");
    let mut packed = Mcap::header("ros2");
    packed.chunk(&records(1), "brotli");
    for (bytes, why) in [
        (own.finish(), "is a recording of taut's"),
        (packed.finish(), "the chunk compression \"brotli\", which this taut does not know"),
        (Mcap::header("ros2").finish(), "holds no data (no messages)"),
        (b"\x89MCAP1\r\n".to_vec(), "the MCAP version '1'"),
        (b"#ROSBAG V2.0\n".to_vec(), "is a bag of ROS 1"),
        (b"not a bag".to_vec(), "is no bag (it begins like neither MCAP nor SQLite3)"),
        (Vec::new(), "is no bag"),
    ] {
        let error = import(&bytes).unwrap_err().to_string();
        assert!(error.contains(why) && error.lines().count() == 1, "{error}");
    }
}

/// A database as rosbag2 makes it, of that version of its tables.
fn database(path: &Path, version: i64) -> rusqlite::Connection {
    let db = rusqlite::Connection::open(path).unwrap();
    let hash = if version >= 4 { ", type_description_hash TEXT" } else { "" };
    let definitions = "CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT, encoding TEXT, \
                       encoded_message_definition TEXT, type_description_hash TEXT);";
    db.execute_batch(&format!(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT, \
         offered_qos_profiles TEXT{hash}); \
         CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB); {}",
        if version >= 4 { definitions } else { "" }
    ))
    .unwrap();
    if version >= 3 {
        db.execute_batch("CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT);").unwrap();
        db.execute("INSERT INTO schema VALUES(?, 'rolling')", [version]).unwrap();
    }
    if version >= 4 {
        let row = ("my_msgs/msg/Thing", "ros2msg", "std_msgs/Header header\n");
        let query = "INSERT INTO message_definitions(topic_type, encoding, encoded_message_definition) VALUES(?, ?, ?)";
        db.execute(query, row).unwrap();
    }
    for (id, name, of) in [(1, "/imu", "sensor_msgs/msg/Imu"), (2, "/thing", "my_msgs/msg/Thing")] {
        let query = "INSERT INTO topics(id, name, type, serialization_format) VALUES(?, ?, ?, 'cdr')";
        db.execute(query, (id, name, of)).unwrap();
    }
    for n in 0..100_u64 {
        let log = START + n * 10 * MS;
        for topic in [1, 2] {
            let query = "INSERT INTO messages(topic_id, timestamp, data) VALUES(?, ?, ?)";
            db.execute(query, (topic, log as i64, stamped(log - 2 * MS))).unwrap();
        }
    }
    db
}

fn import_path(path: &Path) -> Result<(Imported, Stamps), Error> {
    let (imported, recorded) = imported(|to| bag::import(path, to, &mut |_| {}))?;
    Ok((imported, recorded.stamps()))
}

#[test]
fn databases_of_every_version_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for version in [1, 3, 4, 5] {
        let path = folder.path().join(format!("v{version}.db3"));
        drop(database(&path, version));
        let (imported, stamps) = import_path(&path).unwrap();
        assert_eq!(times(&stamps, "/imu log").len(), 100);
        assert_eq!(times(&stamps, "/imu header")[1], START + 8 * MS);
        // The definition of a type of one's own is in the file from version 4 on.
        assert_eq!(stamps.contains_key("/thing header"), version >= 4);
        assert_eq!(says(&imported, "the database is of version 5, newer than the 4"), version == 5);
    }
}

#[test]
fn send_times_and_sequence_numbers_are_read_where_a_database_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag.db3");
    let db = database(&path, 4);
    db.execute_batch(
        "ALTER TABLE messages ADD COLUMN send_timestamp INTEGER; ALTER TABLE messages ADD COLUMN sequence_number INTEGER; \
         UPDATE messages SET send_timestamp = timestamp - 1000000, sequence_number = id; \
         DELETE FROM messages WHERE topic_id = 1 AND id BETWEEN 41 AND 60;",
    )
    .unwrap();
    drop(db);
    let (imported, stamps) = import_path(&path).unwrap();
    assert_eq!(times(&stamps, "/imu publish")[0], START - MS);
    // Both topics were numbered by the row, so each lacks every other number.
    assert!(says(&imported, "/imu: 109 messages are missing"), "{:?}", imported.notes);
}

#[test]
fn a_hostile_database_neither_runs_for_ever_nor_writes_lines_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag.db3");
    let refusal = || import_path(&path).err().unwrap().to_string();
    database(&path, 4)
        .execute_batch(
            "ALTER TABLE messages RENAME TO real; CREATE VIEW messages AS WITH RECURSIVE n(topic_id, timestamp, data) AS \
             (SELECT 1, 1, x'00' UNION ALL SELECT 1, timestamp + 1, x'00' FROM n) SELECT * FROM n",
        )
        .unwrap();
    assert!(refusal().contains("it has no table \"messages\""), "{}", refusal());
    std::fs::remove_file(&path).unwrap();
    drop(database(&path, 4));
    // SQLite cites the statement that it cannot read.
    let bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(12).position(|window| window == b"CREATE TABLE").unwrap();
    let mut torn = bytes;
    torn[at..at + 12].copy_from_slice(b"CREATE `\nBLE");
    std::fs::write(&path, torn).unwrap();
    assert!(!refusal().contains('\n') && refusal().contains("malformed"), "{}", refusal());
}

#[test]
fn a_folder_is_read_file_by_file_compressed_ones_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let list = "rosbag2_bagfile_information:\n  version: 9\n  relative_file_paths:\n    - bag_0.mcap.zstd\n    - bag_1.db3.zstd\n    - bag_2.mcap\n";
    std::fs::write(file("metadata.yaml"), list).unwrap();
    std::fs::write(file("bag_0.mcap.zstd"), zstd::bulk::compress(&whole(&records(50), "lz4"), 1).unwrap()).unwrap();
    drop(database(&file("plain.db3"), 4));
    std::fs::write(
        file("bag_1.db3.zstd"),
        zstd::bulk::compress(&std::fs::read(file("plain.db3")).unwrap(), 1).unwrap(),
    )
    .unwrap();
    let (imported, stamps) = import_path(folder.path()).unwrap();
    assert_eq!(imported.damage, ["bag_2.mcap is listed in metadata.yaml and missing"]);
    assert_eq!(stamps["/imu log"].len(), 150, "a topic goes on in the next file");
    let ids: std::collections::BTreeSet<u64> = stamps["/imu log"].iter().map(|(id, _)| *id).collect();
    assert_eq!(ids.len(), 150, "and so does its counting");
}

#[test]
fn a_folder_without_its_list_is_read_and_one_without_a_bag_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let error = import_path(folder.path()).unwrap_err().to_string();
    assert!(error.contains("neither metadata.yaml nor a file ending in .mcap or .db3"), "{error}");
    std::fs::write(folder.path().join("bag_0.mcap"), whole(&records(20), "zstd")).unwrap();
    assert!(says(&import_path(folder.path()).unwrap().0, "its recorder did not end"));
    std::fs::write(folder.path().join("bag_1.mcap"), "something else").unwrap();
    let error = import_path(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("bag_1.mcap: is no bag"), "{error}");
}

#[test]
fn what_is_no_database_of_rosbag2s_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db3");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE messages(id INTEGER);").unwrap();
    let error = import_path(&path).unwrap_err().to_string();
    assert!(error.contains("it has no table \"topics\"") && error.lines().count() == 1, "{error}");
    std::fs::write(&path, [b"SQLite format 3\0".as_slice(), &[7; 4000]].concat()).unwrap();
    let error = import_path(&path).unwrap_err().to_string();
    assert!(error.contains("is no rosbag2 database") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_database_with_a_damaged_page_gives_what_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bag.db3");
    drop(database(&path, 4));
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() - 2 * 4096;
    bytes[at..at + 2000].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let (imported, stamps) = import_path(&path).unwrap();
    assert!(!imported.damage.is_empty());
    assert!(stamps["/imu log"].len() < 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A chunk's checksum keeps made-up stamps out.
    #[test]
    fn damage_in_a_chunk_never_makes_stamps_up(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..20), which in 0usize..3,
    ) {
        let mut file = Mcap::header("ros2");
        let start = file.0.len() + 9 + 60;
        file.chunk(&records(40), ["", "zstd", "lz4"][which]);
        let end = file.0.len();
        let mut bytes = file.finish();
        for (at, with) in flips {
            bytes[start + at.index(end - start)] ^= with;
        }
        if let Ok((_, stamps)) = import(&bytes) {
            let whole = import(&whole(&records(40), "zstd")).unwrap().1;
            for (point, found) in stamps {
                prop_assert!(found.iter().all(|stamp| whole[&point].contains(stamp)));
            }
        }
    }

    #[test]
    fn noise_never_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..400), schema in "[ -~\n]{0,80}", message in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let _ = import(&[MAGIC, &bytes].concat());
        let mut records = Mcap(Vec::new());
        for (id, encoding) in [(1, "ros2msg"), (2, "ros2idl"), (3, "ros1msg")] {
            records.channel(id, "/a", "a/msg/B", encoding, &schema, if id == 3 { "ros1" } else { "cdr" });
            records.message(id, 1, START, START, &message);
        }
        let _ = import(&whole(&records, "zstd"));
        let mut file = Mcap::header("ros2");
        file.0.extend(bytes);
        let _ = import(&file.finish());
    }
}
