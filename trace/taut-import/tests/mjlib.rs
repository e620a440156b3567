//! The importer against logs that a writer of the tests makes: as the format's own writer does, byte by byte.

use std::{
    collections::BTreeMap,
    io::{Cursor, Read, Seek, SeekFrom},
    path::PathBuf,
};

use proptest::prelude::*;
use taut_import::{Error, Imported, mjlib};
use taut_recording::{Record, ros2msg::Schema};

const SECOND: i64 = 1_000_000;
const START: i64 = 1_583_798_400 * SECOND;

/// A log as mjlib's writer makes it: previous offsets, times, checksums, snappy where it helps, markers, an index.
struct Writer {
    bytes: Vec<u8>,
    /// By id: where the schema stands, where the last data block.
    records: BTreeMap<u64, (usize, Option<usize>)>,
    compress: bool,
    checksum: bool,
}

fn varuint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let more = value > 0x7f;
        out.push((value & 0x7f) as u8 | if more { 0x80 } else { 0 });
        value >>= 7;
        if !more {
            return out;
        }
    }
}

fn string(text: &str) -> Vec<u8> {
    [varuint(text.len() as u64), text.as_bytes().to_vec()].concat()
}

impl Writer {
    fn new() -> Writer {
        let bytes = [&b"TLOG0003"[..], &[0]].concat();
        Writer { bytes, records: BTreeMap::new(), compress: true, checksum: true }
    }

    fn block(&mut self, kind: u8, body: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend(varuint(body.len() as u64));
        self.bytes.extend(body);
    }

    fn schema(&mut self, id: u64, name: &str, schema: &[u8]) {
        self.records.insert(id, (self.bytes.len(), None));
        let body = [varuint(id), varuint(0), string(name), schema.to_vec()].concat();
        self.block(1, &body);
    }

    fn data(&mut self, id: u64, time_us: i64, value: &[u8]) {
        let here = self.bytes.len();
        let last = self.records.get_mut(&id).and_then(|record| record.1.replace(here));
        let packed = snap::raw::Encoder::new().compress_vec(value).unwrap();
        let is_packed = self.compress && packed.len() < value.len();
        let flags = 1 | 2 | if self.checksum { 4 } else { 0 } | if is_packed { 16 } else { 0 };
        let mut body = [varuint(id), varuint(flags), varuint(last.map_or(0, |last| (here - last) as u64))].concat();
        body.extend(time_us.to_le_bytes());
        let crc_at = body.len();
        if self.checksum {
            body.extend([0; 4]);
        }
        body.extend(if is_packed { &packed } else { value });
        let head = [vec![2], varuint(body.len() as u64)].concat();
        let mut block = [head.clone(), body].concat();
        if self.checksum {
            let crc = crc32fast::hash(&block).to_le_bytes();
            block[head.len() + crc_at..head.len() + crc_at + 4].copy_from_slice(&crc);
        }
        self.bytes.extend(block);
    }

    fn marker(&mut self, time_us: i64) {
        let here = self.bytes.len();
        let mut body = 0xfdca_b9a8_9786_7564_u64.to_le_bytes().to_vec();
        body.extend([0; 5]);
        body.extend(varuint(0));
        body.extend(time_us.to_le_bytes());
        let last: Vec<_> = self.records.iter().filter_map(|(id, (_, last))| Some((*id, (*last)?))).collect();
        body.extend(varuint(last.len() as u64));
        last.iter().for_each(|(id, last)| body.extend([varuint(*id), varuint((here - last) as u64)].concat()));
        let head = [vec![5], varuint(body.len() as u64)].concat();
        body[12] = head.len() as u8;
        let mut block = [head.clone(), body].concat();
        let crc = crc32fast::hash(&block).to_le_bytes();
        block[head.len() + 8..head.len() + 12].copy_from_slice(&crc);
        self.bytes.extend(block);
    }

    fn finish(mut self) -> Vec<u8> {
        let mut body = [varuint(0), varuint(self.records.len() as u64)].concat();
        for (id, (schema, last)) in &self.records {
            body.extend(varuint(*id));
            body.extend((*schema as u64).to_le_bytes());
            body.extend(last.map_or(u64::MAX, |last| last as u64).to_le_bytes());
        }
        let size = body.len() + 1 + varuint(body.len() as u64 + 12).len() + 12;
        body.extend((size as u32).to_le_bytes());
        body.extend(b"TLOGIDEX");
        self.block(3, &body);
        self.bytes
    }
}

fn field(name: &str, of: &[u8]) -> Vec<u8> {
    [vec![0], string(name), vec![0], of.to_vec(), vec![0]].concat()
}

/// An object of these fields, ended as the format ends it.
fn object(fields: &[Vec<u8>]) -> Vec<u8> {
    [vec![16, 0], fields.concat(), vec![0, 0, 0, 0, 0]].concat()
}

/// Everything the format has, once.
fn everything() -> Vec<u8> {
    let point = object(&[field("x", &[7]), field("y", &[8])]);
    let mode = [vec![17, 6, 2, 0], string("kStopped"), vec![10], string("kPosition")].concat();
    object(&[
        field("timestamp", &[22]),
        field("bootTime", &[23]),
        field("on", &[2]),
        field("i8", &[3, 1]),
        field("u16", &[4, 2]),
        field("i32", &[3, 4]),
        field("u64", &[4, 8]),
        field("var", &[5]),
        field("uvar", &[6]),
        field("raw", &[9]),
        field("name", &[10]),
        field("mode", &mode),
        field("points", &[vec![18], point.clone()].concat()),
        field("fixed", &[19, 3, 7]),
        field("grid", &[19, 2, 19, 2, 4, 1]),
        field("by_name", &[20, 7]),
        field("maybe", &[vec![21, 1], point, vec![0]].concat()),
        field("nothing", &[1]),
        // With a default, as mjlib writes it.
        [vec![0], string("gain"), vec![0], vec![7], vec![1], 2.5_f32.to_le_bytes().to_vec()].concat(),
    ])
}

fn everything_value() -> Vec<u8> {
    [
        &(START + 7).to_le_bytes()[..],
        &1500_i64.to_le_bytes(),
        &[1],
        &(-3_i8).to_le_bytes(),
        &65_000_u16.to_le_bytes(),
        &(-70_000_i32).to_le_bytes(),
        &u64::MAX.to_le_bytes(),
        &varuint(3), // zig-zag: -2
        &varuint(300),
        &[3, 9, 8, 7],
        &string("left"),
        &[10],
        &[2],
        &[1.0_f32.to_le_bytes().to_vec(), 2.0_f64.to_le_bytes().to_vec()].concat(),
        &[3.0_f32.to_le_bytes().to_vec(), 4.0_f64.to_le_bytes().to_vec()].concat(),
        &[0.5_f32, 1.5, 2.5].map(f32::to_le_bytes).concat(),
        &[1, 2, 3, 4],
        &[vec![1], string("a"), 7.0_f32.to_le_bytes().to_vec()].concat(),
        &[1],
        &[5.0_f32.to_le_bytes().to_vec(), 6.0_f64.to_le_bytes().to_vec()].concat(),
        &2.0_f32.to_le_bytes(),
    ]
    .concat()
}

/// Imu and servo records, a marker a second.
fn robot(seconds: i64, checksum: bool) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.checksum = checksum;
    writer.schema(1, "imu", &object(&[field("count", &[4, 4]), field("gyro", &[19, 20, 7])]));
    writer.schema(2, "servo.left", &object(&[field("count", &[4, 4]), field("position", &[8])]));
    for count in 0..seconds * 100 {
        let time = START + count * SECOND / 100;
        let gyro = [(count as f32).to_le_bytes(); 20].concat();
        writer.data(1, time, &[&(count as u32).to_le_bytes()[..], &gyro].concat());
        writer.data(2, time + 100, &[(count as u32).to_le_bytes().to_vec(), 0.5_f64.to_le_bytes().to_vec()].concat());
        if count % 100 == 99 {
            writer.marker(time);
        }
    }
    writer.finish()
}

type Values = BTreeMap<String, Vec<(u64, serde_json::Value)>>;

fn import(bytes: &[u8]) -> Result<(Imported, Values), Error> {
    let folder = tempfile::tempdir().unwrap();
    let to: PathBuf = folder.path().join("run.mcap");
    let imported = mjlib::import(Cursor::new(bytes), bytes.len() as u64, &to, &mut |_| {});
    assert_eq!(imported.is_ok(), to.exists());
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, usize::from(imported.is_ok()), "nothing half-written is left");
    let imported = imported?;
    let mut schemas = BTreeMap::new();
    let mut values = Values::new();
    let contents = taut_recording::read(&std::fs::read(&to).unwrap(), &mut |record| match record {
        Record::Channel(channel) => {
            schemas.insert(channel.number, (channel.topic, Schema::parse(&channel.schema).unwrap()));
        }
        Record::Message(message) => {
            let (topic, schema) = &schemas[&message.channel];
            let value = schema.decode(&message.data).expect("of its schema");
            values.entry(topic.clone()).or_default().push((message.log_time_ns, value));
        }
        _ => {}
    })
    .unwrap();
    assert_eq!((contents.messages, contents.damage.len()), (imported.messages, 0));
    Ok((imported, values))
}

fn counts(values: &Values, topic: &str) -> Vec<u64> {
    values[topic].iter().map(|(_, value)| value["count"].as_u64().unwrap()).collect()
}

#[test]
fn every_record_comes_over_with_its_time() {
    let (imported, values) = import(&robot(3, true)).unwrap();
    assert_eq!((imported.channels, imported.messages, imported.damage.len()), (2, 600, 0));
    assert_eq!(counts(&values, "/imu"), (0..300).collect::<Vec<_>>());
    let (time, value) = &values["/servo.left"][200];
    assert_eq!(*time, (START + 2 * SECOND + 100) as u64 * 1000);
    assert_eq!(value["position"], 0.5);
    assert_eq!(imported.duration_ns, 2_990_100_000);
}

#[test]
fn every_type_of_the_format_comes_over() {
    let mut writer = Writer::new();
    writer.schema(7, "all", &everything());
    writer.data(7, START, &everything_value());
    let (_, values) = import(&writer.finish()).unwrap();
    let expected = serde_json::json!({
        "timestamp": START + 7, "boot_time": 1500, "on": true, "i8": -3, "u16": 65000, "i32": -70000, "u64": u64::MAX,
        "var": -2, "uvar": 300, "raw": [9, 8, 7], "name": "left", "mode": 10,
        "points": [{ "x": 1.0, "y": 2.0 }, { "x": 3.0, "y": 4.0 }], "fixed": [0.5, 1.5, 2.5],
        "grid": [{ "items": [1, 2] }, { "items": [3, 4] }], "by_name": [{ "key": "a", "value": 7.0 }],
        "maybe": { "which": 1, "value1": [{ "x": 5.0, "y": 6.0 }] }, "gain": 2.0,
    });
    assert_eq!(values["/all"][0].1, expected);
}

#[test]
fn a_block_larger_than_anything_is_damage() {
    let whole = robot(3, true);
    for kind in 1..=4 {
        let mut bytes = whole.clone();
        // Its size, a varuint: all of 64 bits.
        bytes.extend([&[kind][..], &[0xff; 9], &[1, 2, 3]].concat());
        let (imported, _) = import(&bytes).unwrap();
        assert_eq!((imported.messages, imported.damage.len()), (600, 1), "{:?}", imported.damage);
    }
}

#[test]
fn a_damaged_block_is_left_out_and_named() {
    let mut bytes = robot(3, true);
    let whole = import(&bytes).unwrap().0.messages;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    let (imported, _) = import(&bytes).unwrap();
    assert!(imported.messages >= whole - 200 && imported.messages < whole, "at most a second: {}", imported.messages);
    assert!(!imported.damage.is_empty());
}

#[test]
fn behind_a_stretch_of_noise_it_goes_on_at_the_next_marker() {
    let mut bytes = robot(5, true);
    let (from, to) = (bytes.len() / 2, bytes.len() / 2 + 500);
    bytes[from..to].fill(0xff);
    let (_, values) = import(&bytes).unwrap();
    let seen = counts(&values, "/imu");
    assert!(seen.len() >= 380 && *seen.last().unwrap() == 499, "{}", seen.len());
}

#[test]
fn a_log_that_was_cut_gives_what_is_whole() {
    let bytes = robot(2, true);
    let (imported, _) = import(&bytes[..bytes.len() / 2]).unwrap();
    assert!(imported.messages >= 180);
    assert!(imported.damage[0].contains("the end of the log is missing"), "{:?}", imported.damage);
}

#[test]
fn what_is_not_known_is_refused() {
    let mut future = Writer::new();
    future.schema(1, "a", &object(&[field("x", &[99])]));
    let mut flagged = Writer::new();
    flagged.schema(1, "a", &[7]);
    flagged.block(2, &[1, 0x20, 0, 0, 0, 0]);
    for (bytes, why) in [
        (b"TLOG0002\0\0\0".to_vec(), "the log version \"TLOG0002\""),
        (b"TLOG0003\x01".to_vec(), "header flags 0x1"),
        (b"\x89MCAP0\r\n and more".to_vec(), "does not begin with TLOG0003"),
        (b"TLOG".to_vec(), "shorter than a header"),
        (b"TLOG0003\0".to_vec(), "no data block"),
        (future.finish(), "the type 99"),
        (flagged.finish(), "the data flags 0x20"),
    ] {
        let error = import(&bytes).unwrap_err().to_string();
        assert!(error.contains(why) && error.lines().count() == 1, "{error}");
    }
}

/// A source that says how much is asked for at once.
struct Largest<'a>(Cursor<Vec<u8>>, &'a mut usize);

impl Read for Largest<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        *self.1 = into.len().max(*self.1);
        self.0.read(into)
    }
}

impl Seek for Largest<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn the_file_is_streamed() {
    let bytes = robot(60, true);
    let folder = tempfile::tempdir().unwrap();
    let (length, mut largest) = (bytes.len() as u64, 0);
    let source = Largest(Cursor::new(bytes), &mut largest);
    mjlib::import(source, length, &folder.path().join("run.mcap"), &mut |_| {}).unwrap();
    assert!(largest <= 1 << 18, "{largest} of {length} at once");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Damage anywhere never makes values up, where checksums are on.
    #[test]
    fn damage_never_panics_and_never_makes_values_up(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..20), cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = robot(1, true);
        // Schemas have no checksum in the format.
        let protected = 200;
        for (at, with) in flips {
            let at = protected + at.index(bytes.len() - protected);
            bytes[at] ^= with;
        }
        bytes.truncate(protected + cut.index(bytes.len() - protected));
        if let Ok((_, values)) = import(&bytes) {
            for (time, value) in values.get("/imu").into_iter().flatten() {
                let count = value["count"].as_u64().unwrap();
                prop_assert_eq!(*time, (START as u64 + count * 10_000) * 1000);
            }
        }
    }

    #[test]
    fn schemas_that_are_noise_never_panic(schema in proptest::collection::vec(0u8..24, 0..60), value in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut writer = Writer::new();
        writer.schema(1, "noise", &schema);
        writer.data(1, START, &value);
        let _ = import(&writer.finish());
    }
}
