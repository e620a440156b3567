//! A recording is followed while it is written: everything once, in the order of the file, whole chunks only.

use std::{fs::File, io::Write};

use taut_recording::{Ending, Error, GrowingRecording, Info, Name, Record, StampBatch, Writer, is_finished, read};

const START_NS: u64 = 1_000_000_000;
const REALTIME_NS: u64 = 1_700_000_000_000_000_000;

fn info() -> Info {
    Info { start_monotonic_ns: START_NS, start_realtime_ns: REALTIME_NS, host: "robot".into(), ..Info::default() }
}

/// Stamps on CLOCK_MONOTONIC.
fn batch(first: u64, times: &[u64]) -> Record {
    let n = times.len();
    Record::Stamps(StampBatch {
        pid: 1,
        tid: 2,
        counter: 2,
        ticks: times.to_vec(),
        message_id: (first..first + n as u64).collect(),
        point: vec![1; n],
        kind: vec![1; n],
        value: vec![0; n],
    })
}

fn ids(records: &[(u64, Record)]) -> Vec<u64> {
    let batches = records.iter().filter_map(|(_, record)| match record {
        Record::Stamps(batch) => Some(batch.message_id.clone()),
        _ => None,
    });
    batches.flatten().collect()
}

/// Writes `seconds` of stamps, one each 100 ms, calling `look` after every one.
fn write(path: &std::path::Path, seconds: u64, mut look: impl FnMut()) {
    let mut writer = Writer::create(path, &info()).unwrap();
    writer.write(&Record::Name(Name { id: 1, name: "arm.read".into() })).unwrap();
    for n in 0..seconds * 10 {
        let now_ns = START_NS + n * 100_000_000;
        writer.write(&batch(n, &[now_ns])).unwrap();
        writer.flush_due(now_ns).unwrap();
        look();
    }
    writer.finish(&Ending { end_monotonic_ns: START_NS + seconds * 1_000_000_000, ..Ending::default() }).unwrap();
    look();
}

#[test]
fn everything_comes_once_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let (mut tail, mut seen, mut looks) = (None, Vec::new(), 0);
    write(&path, 5, || {
        let tail = tail.get_or_insert_with(|| GrowingRecording::new(File::open(&path).unwrap(), 0));
        looks += usize::from(tail.read(&mut |time_ns, record| seen.push((time_ns, record))).unwrap());
    });
    let tail = tail.unwrap();
    assert!(looks > 10, "it came in {looks} pieces");
    assert_eq!(ids(&seen), (0..50).collect::<Vec<_>>());
    assert_eq!((tail.info().unwrap().host.as_str(), tail.ending().is_some(), tail.damaged()), ("robot", true, 0));
    let batches = seen.iter().filter(|(_, record)| matches!(record, Record::Stamps(_)));
    let times: Vec<u64> = batches.map(|(time_ns, _)| *time_ns).collect();
    assert_eq!(times[0], START_NS, "on CLOCK_MONOTONIC");
    assert!(times.is_sorted());
    let mut whole = Vec::new();
    read(&std::fs::read(&path).unwrap(), &mut |record| whole.push(record)).unwrap();
    assert_eq!(seen.into_iter().map(|(_, record)| record).collect::<Vec<_>>(), whole, "as who reads the whole file");
}

#[test]
fn a_late_follower_gets_what_was_named_at_the_start_and_the_last_stamps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    write(&path, 120, || {});
    let mut seen = Vec::new();
    let mut tail = GrowingRecording::new(File::open(&path).unwrap(), REALTIME_NS + 115_000_000_000);
    tail.read(&mut |time_ns, record| seen.push((time_ns, record))).unwrap();
    assert!(seen.iter().any(|(_, record)| matches!(record, Record::Name(name) if name.name == "arm.read")));
    let ids = ids(&seen);
    assert_eq!((ids[0], ids.last()), (0, Some(&1199)));
    let left_out: Vec<u64> = ids.windows(2).filter(|pair| pair[1] != pair[0] + 1).flatten().copied().collect();
    assert!(matches!(left_out[..], [590..620, 1130..1150]), "{left_out:?}");
}

#[test]
fn values_are_counted_by_signal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let mut writer = Writer::create(&path, &info()).unwrap();
    for (id, name) in [(1, "guard.armed"), (2, "guard.trip")] {
        writer.write(&Record::Name(Name { id, name: name.into() })).unwrap();
    }
    for point in [1, 2, 2] {
        let Record::Stamps(batch) = batch(1, &[START_NS]) else { unreachable!() };
        let value = vec![1.5f64.to_bits()];
        writer.write(&Record::Stamps(StampBatch { kind: vec![5], point: vec![point], value, ..batch })).unwrap();
    }
    writer.finish(&Ending { end_monotonic_ns: START_NS + 1, ..Ending::default() }).unwrap();
    let mut tail = GrowingRecording::new(File::open(&path).unwrap(), 0);
    tail.read(&mut |_, _| {}).unwrap();
    assert_eq!(["guard.armed", "guard.trip", "trip"].map(|signal| tail.values_of(signal)), [1, 2, 0]);
    assert!(is_finished(&File::open(&path).unwrap()).unwrap());
}

#[test]
fn a_byte_at_a_time_is_read_as_whole_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let (path, slow) = (folder.path().join("run.mcap"), folder.path().join("slow.mcap"));
    write(&path, 2, || {});
    let (bytes, mut file) = (std::fs::read(&path).unwrap(), File::create(&slow).unwrap());
    let mut tail = GrowingRecording::new(File::open(&slow).unwrap(), 0);
    let mut seen = Vec::new();
    for piece in bytes.chunks(7) {
        file.write_all(piece).unwrap();
        tail.read(&mut |time_ns, record| seen.push((time_ns, record))).unwrap();
    }
    assert_eq!(ids(&seen), (0..20).collect::<Vec<_>>());
}

#[test]
fn what_is_no_recording_or_was_cut_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    std::fs::write(&path, vec![7; 4096]).unwrap();
    let mut tail = GrowingRecording::new(File::open(&path).unwrap(), 0);
    assert!(matches!(tail.read(&mut |_, _| {}), Err(Error::NotMcap)));
    write(&path, 2, || {});
    let mut tail = GrowingRecording::new(File::open(&path).unwrap(), 0);
    tail.read(&mut |_, _| {}).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
    let error = tail.read(&mut |_, _| {}).unwrap_err().to_string();
    assert!(error.starts_with("was cut from "), "{error}");
}

#[test]
fn who_wants_plain_channels_gets_them_and_values_from_now_on_though_they_were_described_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let mut writer = Writer::create(&path, &info()).unwrap();
    writer.write(&Record::Name(Name { id: 1, name: "knee".into() })).unwrap();
    let number = writer.channel("/telemetry/leg", "telemetry/msg/Leg", "uint8 x\n").unwrap();
    let mut tail = GrowingRecording::of_plain_channels(File::open(&path).unwrap(), REALTIME_NS + 50_000_000_000);
    let mut seen = Vec::new();
    for n in 0..60u64 {
        let since_ns = n * 1_000_000_000;
        writer.message(number, START_NS + since_ns, n as u32, |out| out.extend([0, 1, 0, 0, n as u8])).unwrap();
        let Record::Stamps(batch) = batch(n, &[START_NS + since_ns]) else { unreachable!() };
        let value = vec![(n as f64).to_bits()];
        writer.write(&Record::Stamps(StampBatch { kind: vec![5], value, ..batch })).unwrap();
        writer.flush_due(START_NS + since_ns).unwrap();
    }
    tail.read(&mut |_, record| seen.push(record)).unwrap();
    writer.finish(&Ending { end_monotonic_ns: START_NS + 60_000_000_000, ..Ending::default() }).unwrap();
    tail.read(&mut |_, record| seen.push(record)).unwrap();
    assert!(tail.ending().is_some());
    let mut topics = std::collections::HashMap::new();
    let mut messages: Vec<(String, u64)> = Vec::new();
    for record in seen {
        match record {
            Record::Channel(channel) => drop(topics.insert(channel.number, channel.topic)),
            Record::Message(message) => {
                let topic = topics[&message.channel].clone();
                messages.push((topic, message.log_time_ns.saturating_sub(REALTIME_NS) / 1_000_000_000));
            }
            Record::Stamps(_) | Record::Kernel(_) => panic!("not asked for"),
            _ => {}
        }
    }
    for topic in ["/telemetry/leg", "/value/knee"] {
        let seconds: Vec<u64> = messages.iter().filter(|(of, _)| of == topic).map(|(_, second)| *second).collect();
        assert!((48..=50).contains(&seconds[0]), "{topic}: {seconds:?}");
        assert_eq!(seconds, (seconds[0]..60).collect::<Vec<_>>(), "{topic}");
    }
}
