//! Plain channels: what is read of a file to get one of them, and what damage costs.

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{Cursor, Read, Seek, SeekFrom},
    ops::{ControlFlow, Range},
    rc::Rc,
};

use proptest::prelude::*;
use taut_recording::{log::Log, *};

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;
const SCHEMA: &str = "uint64 cycle\nfloat64[500] value\n";
const SMALL: &str = "uint64 cycle\n";

/// A source that counts the bytes that are read of it.
struct Counting {
    inner: Cursor<Vec<u8>>,
    read: Rc<Cell<u64>>,
}

impl Read for Counting {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(into)?;
        self.read.set(self.read.get() + n as u64);
        Ok(n)
    }
}

impl Seek for Counting {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.inner.seek(to)
    }
}

fn counting(bytes: &[u8]) -> (Log<Counting>, Rc<Cell<u64>>) {
    let read = Rc::new(Cell::new(0));
    let log = Log::open(Counting { inner: Cursor::new(bytes.to_vec()), read: read.clone() }).unwrap();
    (log, read)
}

/// Noise, so that the bytes in the file are as many as the values.
fn noise(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64
}

/// Three channels for `seconds`: two of 4 kB a hundred times a second, one of 8 bytes ten times a second.
fn written(seconds: u64, finish: bool) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let info = Info { start_monotonic_ns: SECOND, start_realtime_ns: START, ..Info::default() };
    let mut writer = Writer::create(&path, &info).unwrap();
    let large = ["/telemetry/left", "/telemetry/right"]
        .map(|topic| writer.channel(topic, "telemetry/msg/Arm", SCHEMA).unwrap());
    let small = writer.channel("/telemetry/tool", "telemetry/msg/Tool", SMALL).unwrap();
    let mut state = 1;
    for cycle in 0..seconds * 100 {
        let time_ns = SECOND + cycle * SECOND / 100;
        for channel in large {
            let message = |out: &mut Vec<u8>| {
                out.extend([0, 1, 0, 0]);
                out.extend(cycle.to_le_bytes());
                (0..500).for_each(|_| out.extend(noise(&mut state).to_le_bytes()));
            };
            writer.message(channel, time_ns, cycle as u32, message).unwrap();
        }
        if cycle % 10 == 0 {
            let message = |out: &mut Vec<u8>| out.extend([&[0, 1, 0, 0][..], &cycle.to_le_bytes()].concat());
            writer.message(small, time_ns, (cycle / 10) as u32, message).unwrap();
        }
        writer.flush_due(time_ns).unwrap();
    }
    if finish {
        writer.finish(&Ending::default()).unwrap();
    } else {
        std::mem::forget(writer);
    }
    std::fs::read(path).unwrap()
}

fn number(log: &Log<impl Read + Seek>, topic: &str) -> u16 {
    log.channels().into_iter().find(|channel| channel.topic == topic).unwrap().number
}

fn cycles(log: &mut Log<impl Read + Seek>, topic: &str, times: Range<u64>) -> Vec<u64> {
    let mut cycles = Vec::new();
    let channel = number(log, topic);
    log.read(channel, times, &mut |message| {
        cycles.push(u64::from_le_bytes(message.data[4..12].try_into().unwrap()));
        ControlFlow::Continue(())
    })
    .unwrap();
    cycles
}

#[test]
fn one_channel_is_read_without_the_bytes_of_the_others() {
    let bytes = written(10, true);
    let (mut log, read) = counting(&bytes);
    assert!(log.is_indexed());
    let opened = read.get();
    assert!(opened < bytes.len() as u64 / 50, "to open: {opened} of {}", bytes.len());
    assert_eq!(cycles(&mut log, "/telemetry/tool", 0..u64::MAX), (0..1000).step_by(10).collect::<Vec<_>>());
    let tool = number(&log, "/telemetry/tool");
    assert_eq!(read.get() - opened, log.bytes_of(tool));
    assert!(log.bytes_of(tool) < bytes.len() as u64 / 100, "{} of {}", log.bytes_of(tool), bytes.len());
    let before = read.get();
    assert_eq!(cycles(&mut log, "/telemetry/left", 0..u64::MAX).len(), 1000);
    assert!(read.get() - before < bytes.len() as u64 * 55 / 100);
}

#[test]
fn a_second_is_read_without_the_rest_of_the_file() {
    let bytes = written(20, true);
    let (mut log, read) = counting(&bytes);
    let opened = read.get();
    let second = START + 12 * SECOND..START + 13 * SECOND;
    assert_eq!(cycles(&mut log, "/telemetry/right", second), (1200..1300).collect::<Vec<_>>());
    // A second of one channel of two, and the chunks at both ends.
    let share = (read.get() - opened) as f64 / bytes.len() as f64;
    assert!(share < 1.6 / 40.0, "{share}");
}

#[test]
fn the_state_at_a_moment_is_one_chunk_of_each_channel() {
    let bytes = written(10, true);
    let (mut log, read) = counting(&bytes);
    let opened = read.get();
    let mut state = BTreeMap::new();
    log.state_at(START + 5 * SECOND + 5, &mut |message| {
        state.insert(message.channel, u64::from_le_bytes(message.data[4..12].try_into().unwrap()));
    })
    .unwrap();
    assert_eq!(state.into_values().collect::<Vec<_>>(), [500, 500, 500]);
    assert!(read.get() - opened < bytes.len() as u64 / 20);
}

#[test]
fn backwards_it_is_the_same_and_the_last_one_costs_one_chunk() {
    let bytes = written(10, true);
    let (mut log, read) = counting(&bytes);
    let forwards = cycles(&mut log, "/telemetry/left", 0..u64::MAX);
    let (before, mut backwards) = (read.get(), Vec::new());
    let channel = number(&log, "/telemetry/left");
    let mut take =
        |message: log::Message<'_>| backwards.push(u64::from_le_bytes(message.data[4..12].try_into().unwrap()));
    log.read_back(channel, 0..u64::MAX, &mut |message| {
        take(message);
        ControlFlow::Break(())
    })
    .unwrap();
    assert!(read.get() - before < bytes.len() as u64 / 50);
    log.read_back(channel, 0..u64::MAX, &mut |message| {
        take(message);
        ControlFlow::Continue(())
    })
    .unwrap();
    backwards.remove(0);
    backwards.reverse();
    assert_eq!(backwards, forwards);
}

#[test]
fn without_the_index_the_heads_of_the_chunks_serve() {
    let bytes = written(10, false);
    let (mut log, read) = counting(&bytes);
    assert!(!log.is_indexed());
    assert!(read.get() < bytes.len() as u64 / 50, "{} of {}", read.get(), bytes.len());
    assert!(log.messages_of(number(&log, "/telemetry/left")) >= 975);
    let seen = cycles(&mut log, "/telemetry/left", 0..u64::MAX);
    assert_eq!(seen, (0..seen.len() as u64).collect::<Vec<_>>());
    assert!(seen.len() >= 975, "all but the last 200 ms: {}", seen.len());
}

#[test]
fn a_recovered_file_has_its_index_again() {
    let bytes = written(3, false);
    let folder = tempfile::tempdir().unwrap();
    let clean = folder.path().join("clean.mcap");
    let recovered = recover(&bytes, &clean).unwrap();
    let (mut log, _) = counting(&std::fs::read(&clean).unwrap());
    assert!(log.is_indexed() && recovered.damage.is_empty());
    let (mut torn, _) = counting(&bytes);
    for topic in ["/telemetry/left", "/telemetry/tool"] {
        assert_eq!(cycles(&mut log, topic, 0..u64::MAX), cycles(&mut torn, topic, 0..u64::MAX));
    }
    assert_eq!(log.span(), torn.span());
}

#[test]
fn a_channel_s_schema_is_found_though_its_chunk_is_lost() {
    let mut bytes = written(1, true);
    // The chunk that has nothing but the description of the last channel.
    let described = memchr::memmem::find(&bytes, b"\x04\0\0\0zstd").unwrap();
    let damaged = memchr::memmem::find_iter(&bytes, b"\x04\0\0\0zstd").take(4).collect::<Vec<_>>();
    assert!(described == damaged[0] && damaged.len() == 4);
    for at in damaged {
        bytes[at + 24] ^= 0xff;
    }
    let mut topics = BTreeMap::new();
    let contents = read(&bytes, &mut |record| match record {
        Record::Channel(channel) => drop(topics.insert(channel.topic, 0)),
        Record::Message(_) => *topics.values_mut().last().unwrap() += 1,
        _ => {}
    });
    assert_eq!(topics.keys().collect::<Vec<_>>(), ["/telemetry/left", "/telemetry/right", "/telemetry/tool"]);
    assert!(contents.unwrap().messages > 100);
}

/// The file's start, with whatever says there what the channels are, is lost: the copies further back serve.
#[test]
fn a_channel_is_known_from_a_copy_further_back() {
    for finish in [true, false] {
        let bytes = written(2, finish);
        let first = records(&bytes).filter(|range| bytes[range.start] == 0x0c).nth(6).unwrap().end;
        let mut damaged = bytes.clone();
        damaged[8..first].fill(0x55);
        assert_eq!(all_cycles(&damaged), all_cycles(&bytes));
    }
}

/// A copy of which a byte was changed is none: it might call a channel by another's name.
#[test]
fn a_copy_with_a_changed_byte_is_not_believed() {
    let bytes = written(1, false);
    let mut damaged = bytes.clone();
    // The chunks with the channels' own records are lost, and one letter in the first copies.
    for at in memchr::memmem::find_iter(&bytes, b"\x04\0\0\0zstd").take(4) {
        damaged[at + 24] ^= 0xff;
    }
    for at in memchr::memmem::find_iter(&bytes, b"/telemetry/left") {
        damaged[at + 11] = b'w';
    }
    let topics: Vec<String> = all_cycles(&damaged).into_keys().collect();
    assert_eq!(topics, ["/telemetry/right", "/telemetry/tool"]);
}

/// Cycles by topic.
fn all_cycles(bytes: &[u8]) -> BTreeMap<String, Vec<u64>> {
    let (mut topics, mut cycles) = (BTreeMap::new(), BTreeMap::<String, Vec<u64>>::new());
    read(bytes, &mut |record| match record {
        Record::Channel(channel) => drop(topics.insert(channel.number, channel.topic)),
        Record::Message(message) => {
            let cycle = u64::from_le_bytes(message.data[4..12].try_into().unwrap());
            cycles.entry(topics[&message.channel].clone()).or_default().push(cycle);
        }
        _ => {}
    })
    .unwrap();
    cycles
}

#[test]
fn messages_without_any_schema_are_counted_and_not_guessed() {
    let mut bytes = written(1, false);
    for found in memchr::memmem::find_iter(&bytes.clone(), b"taut.channels") {
        bytes[found] = b'x';
    }
    for at in memchr::memmem::find_iter(&bytes.clone(), b"\x04\0\0\0zstd").take(4) {
        bytes[at + 24] ^= 0xff;
    }
    let contents = read(&bytes, &mut |record| assert!(!matches!(record, Record::Message(_)))).unwrap();
    let nameless = contents.damage.iter().filter(|damage| matches!(damage, Damage::Schema { .. })).count();
    assert_eq!((contents.messages, nameless), (0, 3));
}

/// Small messages of two channels, to try much damage.
fn small() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let mut writer = Writer::create(&path, &Info { start_realtime_ns: START, ..Info::default() }).unwrap();
    let channels = ["/a", "/b"].map(|topic| writer.channel(topic, "telemetry/msg/Tool", SMALL).unwrap());
    for cycle in 0..60_u64 {
        let message = |out: &mut Vec<u8>| out.extend([&[0, 1, 0, 0][..], &cycle.to_le_bytes()].concat());
        writer.message(channels[cycle as usize % 2], cycle * SECOND / 10, cycle as u32, message).unwrap();
        writer.flush_due(cycle * SECOND / 10).unwrap();
    }
    writer.finish(&Ending::default()).unwrap();
    std::fs::read(path).unwrap()
}

/// The cycles that can be read, by the chunk that they lie in.
fn all(bytes: &[u8]) -> Vec<u32> {
    let mut cycles = Vec::new();
    let read = read(bytes, &mut |record| {
        if let Record::Message(message) = record {
            assert_eq!(message.data[4..12], u64::from(message.sequence).to_le_bytes(), "what was not written");
            cycles.push(message.sequence);
        }
    });
    // A file of which no chunk is left is none.
    assert!(read.is_ok() || cycles.is_empty());
    cycles.sort_unstable();
    cycles
}

/// Metadata records that say what both channels are, as byte ranges.
fn copies(bytes: &[u8]) -> Vec<Range<usize>> {
    let found: Vec<_> = records(bytes)
        .filter(|range| {
            let record = &bytes[range.clone()];
            let says = |topic: &[u8]| memchr::memmem::find(record, topic).is_some();
            record[0] == 0x0c && says(b"taut.channels") && says(b"/a telemetry") && says(b"/b telemetry")
        })
        .collect();
    assert_eq!(found.len(), 2, "a second after the channels came, and at the end");
    found
}

/// The file's records as byte ranges.
fn records(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    const MAGIC: usize = 8;
    let mut start = MAGIC;
    std::iter::from_fn(move || {
        (start < bytes.len() - MAGIC).then(|| {
            let length = u64::from_le_bytes(bytes[start + 1..start + 9].try_into().unwrap()) as usize;
            let end = start + 9 + length;
            std::mem::replace(&mut start, end)..end
        })
    })
}

/// Chunks as byte ranges, each from the record in front of it, which says where it begins; and the cycles in it.
fn chunks(bytes: &[u8]) -> Vec<(Range<usize>, Vec<u32>)> {
    const CHUNK: u8 = 0x06;
    let mut found = Vec::new();
    let whole = all(bytes);
    let mut before = 0;
    for Range { start, end } in records(bytes) {
        if bytes[start] == CHUNK {
            let mut without = bytes.to_vec();
            // Its times, size and checksum stay, its records go.
            without[start + 53..end].fill(0x55);
            let left = all(&without);
            found.push((before..end, whole.iter().filter(|cycle| !left.contains(cycle)).copied().collect()));
        }
        before = start;
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Everything outside of the damaged chunks is recovered, whatever the damage.
    #[test]
    fn damage_costs_only_the_chunks_that_it_touches(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 1u8..), 0..12),
        cut in any::<(prop::sample::Index, prop::sample::Index)>(), is_cut in any::<bool>(),
    ) {
        let bytes = small();
        let mut damaged = bytes.clone();
        let mut touched: Vec<Range<usize>> = Vec::new();
        for (at, with) in flips {
            let at = at.index(bytes.len());
            damaged[at] ^= with;
            touched.push(at..at + 1);
        }
        if is_cut {
            let (a, b) = (cut.0.index(bytes.len()), cut.1.index(bytes.len()));
            let range = a.min(b)..a.max(b).min(a.min(b) + 4000);
            damaged.drain(range.clone());
            touched.push(range);
        }
        let got = all(&damaged);
        let is_touched = |range: &Range<usize>| touched.iter().any(|t| t.start < range.end && range.start < t.end);
        // Unless each copy of what the channels are was hit: then nobody can know.
        if copies(&bytes).iter().all(is_touched) {
            return Ok(());
        }
        for (range, held) in chunks(&bytes) {
            if !is_touched(&range) {
                for cycle in held {
                    prop_assert!(got.contains(&cycle), "cycle {cycle} of the whole chunk at {range:?} is lost");
                }
            }
        }
        let mut log = match Log::open(Cursor::new(damaged)) {
            Ok(log) => log,
            Err(_) => return Ok(()),
        };
        for channel in log.channels().into_iter().map(|channel| channel.number).collect::<Vec<_>>() {
            let _ = log.read(channel, 0..u64::MAX, &mut |message| {
                assert_eq!(message.data[4..], u64::from(message.sequence).to_le_bytes(), "what was not written");
                ControlFlow::Continue(())
            });
        }
    }

    #[test]
    fn descriptions_that_are_noise_are_refused_and_never_panic(text in "(name|type|field|constant|\t|\n|[a-z0-9]{1,8}|float64|struct ){0,40}") {
        let _ = taut_recording::telemetry::StructLayout::parse(&text, 16);
    }
}

#[test]
fn a_struct_s_bytes_become_cdr() {
    let text = "name\tarm\ntype\tinner\t16\nfield\tflag\tbool\t0\t0\t\nfield\tx\tfloat64\t0\t8\tm\n\
                type\tArm\t64\nfield\tname\ttext5\t0\t0\t\nfield\tcount\tuint16\t2\t6\t\n\
                field\tinner\tstruct inner\t2\t16\t\nfield\tlast\tfloat32\t0\t48\t\n";
    let layout = telemetry::StructLayout::parse(text, 64).unwrap();
    let mut value = vec![0xaa; 64];
    value[..5].copy_from_slice(b"ab\0zz");
    value[6..10].copy_from_slice(&[1, 0, 2, 0]);
    for (at, flag, x) in [(16, 1, 1.5_f64), (32, 7, -2.0)] {
        value[at] = flag;
        value[at + 8..at + 16].copy_from_slice(&x.to_le_bytes());
    }
    value[48..52].copy_from_slice(&3.0_f32.to_le_bytes());
    let mut message = Vec::new();
    layout.encode(&value, &mut message);
    let schema = ros2msg::Schema::parse(&layout.schema).unwrap();
    let expected = serde_json::json!({
        "name": "ab", "count": [1, 2], "inner": [{ "flag": true, "x": 1.5 }, { "flag": true, "x": -2.0 }], "last": 3.0,
    });
    assert_eq!(schema.decode(&message).unwrap(), expected);
    assert_eq!(
        schema.numbers(100),
        ["count[0]", "count[1]", "inner[0].flag", "inner[0].x", "inner[1].flag", "inner[1].x", "last"]
    );
}

#[test]
fn an_unknown_type_or_a_field_outside_its_struct_is_an_error_that_names_the_line() {
    for (line, why) in [
        ("field\tx\tfloat16\t0\t0\t", "line 2 of its description: the type \"float16\" is not known"),
        ("field\tx\tfloat64\t0\t9\t", "\"x\" lies outside its struct of 16 bytes"),
        ("field\tx\tfloat64\t3\t0\t", "\"x\" lies outside its struct of 16 bytes"),
        ("field\tx\tstruct a\t0\t0\t", "the type \"struct a\" is not known"),
        ("field\tx\tfloat64\t0\t99999999999999\t", "is no size"),
        ("type\tb\t8", "line 2 of its description: the type before, A, has no fields"),
    ] {
        let error = telemetry::StructLayout::parse(&format!("type\ta\t16\n{line}\n"), 16).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    assert!(telemetry::StructLayout::parse("type\ta\t16\nfield\tx\tint8\t0\t0\t\n", 8).is_err());
}

#[test]
fn a_description_that_unfolds_without_end_is_refused_and_equal_names_cost_little() {
    // A million structs, four thousand times.
    let small = "type\tsmall\t1\nfield\tx\tbool\t0\t0\t\ntype\tall\t1048576\n".to_owned();
    let fields: String = (0..4000).map(|n| format!("field\tf{n}\tstruct small\t1048576\t0\t\n")).collect();
    let error = telemetry::StructLayout::parse(&(small + &fields), 1 << 20).unwrap_err();
    assert!(error.contains("more than a message may hold"), "{error}");
    let same = "field\tx\tbool\t0\t0\t\n".repeat(20_000);
    let constants: String = (0..20_000).map(|n| format!("constant\ty\tA\t{n}\n")).collect();
    let text = format!("type\ta\t16\n{same}{constants}field\ty\tuint32\t0\t4\t\n");
    let schema = telemetry::StructLayout::parse(&text, 16).unwrap().schema;
    assert!(schema.contains("bool x_20000\n") && schema.contains("uint32 A_20000=19999\n"));
}
