//! Sampled stacks share the numbers above the fixed channels with values and telemetry, and are told by their schema.

use std::io::Cursor;

use taut_recording::{log::Log, *};

/// A recorder that knew no profiles wrote it; see data/README.md.
const BEFORE: &[u8] = include_bytes!("data/before-profiles.mcap");

fn read_all(bytes: &[u8]) -> (Vec<Record>, Contents) {
    let mut records = Vec::new();
    let contents = read(bytes, &mut |record| records.push(record)).unwrap();
    (records, contents)
}

fn numbers(bytes: &[u8]) -> Vec<(u16, String)> {
    let log = Log::open(Cursor::new(bytes)).unwrap();
    log.channels().into_iter().map(|channel| (channel.number, channel.topic.clone())).collect()
}

/// Values that were stamped, and numbers of the telemetry's messages.
fn values(records: &[Record]) -> (Vec<f64>, Vec<u32>) {
    let (mut values, mut sequences) = (Vec::new(), Vec::new());
    for record in records {
        match record {
            Record::Stamps(batch) => {
                let of_kind = |at: &usize| batch.kind[*at] == Kind::Value as u8;
                values.extend((0..batch.kind.len()).filter(of_kind).map(|at| f64::from_bits(batch.value[at])));
            }
            Record::Message(message) => sequences.push(message.sequence),
            _ => {}
        }
    }
    (values, sequences)
}

#[test]
fn a_recording_made_before_profiles_has_its_values_at_the_numbers_that_profiles_may_have() {
    assert_eq!(numbers(BEFORE), [(11, "/value/speed".to_owned()), (12, "/telemetry/arm".to_owned())]);
    let (records, contents) = read_all(BEFORE);
    assert_eq!(contents.damage, []);
    assert!(!records.iter().any(|record| matches!(record, Record::Profile(_) | Record::Frame(_))));
    let expected = ((0..5).map(|i| f64::from(i) / 4.0).collect::<Vec<_>>(), (0..5).collect::<Vec<u32>>());
    assert_eq!(values(&records), expected);

    let folder = tempfile::tempdir().unwrap();
    let clean = folder.path().join("clean.mcap");
    assert!(recover(BEFORE, &clean).unwrap().damage.is_empty());
    assert_eq!(values(&read_all(&std::fs::read(clean).unwrap()).0), expected);
}

fn profile() -> [Record; 2] {
    let batch = ProfileBatch {
        time_ns: vec![5, 7],
        cpu: vec![0, 1],
        pid: vec![3, 3],
        tid: vec![3, 4],
        depth: vec![2, 1],
        frame: vec![1, 2, 1],
    };
    let frame = Frame { id: 1, address: 0x1000, module: "/bin/robot".into(), name: "solve".into() };
    [Record::Frame(frame), Record::Profile(batch)]
}

fn value() -> Vec<Record> {
    let batch = StampBatch {
        pid: 3,
        tid: 3,
        counter: 2,
        ticks: vec![9],
        message_id: vec![0],
        point: vec![1],
        kind: vec![Kind::Value as u8],
        value: vec![2.5f64.to_bits()],
    };
    vec![Record::Name(Name { id: 1, name: "speed".into() }), Record::Stamps(batch)]
}

fn written(steps: &[&[Record]]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let mut writer = Writer::create(&path, &Info::default()).unwrap();
    for record in steps.concat() {
        writer.write(&record).unwrap();
        writer.flush_due(u64::MAX).unwrap();
    }
    writer.finish(&Ending::default()).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn profiles_and_values_are_read_whichever_came_first() {
    for (steps, number) in [([&profile()[..], &value()[..]], 13), ([&value()[..], &profile()[..]], 11)] {
        let bytes = written(&steps);
        assert_eq!(numbers(&bytes), [(number, "/value/speed".to_owned())]);
        let (records, contents) = read_all(&bytes);
        assert_eq!((contents.damage.as_slice(), contents.messages), (&[][..], 0));
        assert!(profile().iter().all(|record| records.contains(record)), "{records:?}");
        assert_eq!(values(&records).0, [2.5]);
    }
}

#[test]
fn a_recording_without_a_profile_has_no_channels_for_one() {
    let bytes = written(&[&value()]);
    assert_eq!(memchr::memmem::find(&bytes, b"taut/msg/Frame"), None);
}

#[test]
fn a_recovered_recording_has_its_profile() {
    let folder = tempfile::tempdir().unwrap();
    let clean = folder.path().join("clean.mcap");
    recover(&written(&[&value(), &profile()]), &clean).unwrap();
    let (records, _) = read_all(&std::fs::read(clean).unwrap());
    assert!(profile().iter().all(|record| records.contains(record)), "{records:?}");
}

#[test]
fn a_profile_is_told_though_the_chunks_that_describe_it_are_lost() {
    let mut bytes = written(&[&profile()]);
    // The head, a frame's description, the frame, a batch's description, the batch.
    let chunks: Vec<usize> = memchr::memmem::find_iter(&bytes, b"\x04\0\0\0zstd").collect();
    for described in [0, 1, 3] {
        bytes[chunks[described] + 24] ^= 0xff;
    }
    let (records, contents) = read_all(&bytes);
    assert_eq!(contents.damage.iter().filter(|damage| matches!(damage, Damage::Chunk { .. })).count(), 3);
    assert!(profile().iter().all(|record| records.contains(record)), "{records:?}");
}
