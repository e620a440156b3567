//! ROS 2 events and what their handles are: told by their schemas, as sampled stacks are.

use proptest::prelude::*;
use taut_clock::{ClockPair, Counter, Ticks};
use taut_recording::*;

fn read_all(bytes: &[u8]) -> (Vec<Record>, Contents) {
    let mut records = Vec::new();
    let contents = read(bytes, &mut |record| records.push(record)).unwrap();
    (records, contents)
}

fn written(steps: &[&[Record]]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let mut writer = Writer::create(&path, &Info::default()).unwrap();
    for (step, second) in steps.iter().zip(1..) {
        step.iter().for_each(|record| writer.write(record).unwrap());
        writer.flush_due(second * 1_000_000_000).unwrap();
    }
    writer.finish(&Ending::default()).unwrap();
    std::fs::read(path).unwrap()
}

fn events(tid: i32, from: u64, n: u64) -> Record {
    Record::Ros(RosBatch {
        pid: 7,
        tid,
        counter: 1,
        ticks: (0..n).map(|i| from * 1000 + i * 17).collect(),
        event: (0..n).map(|i| RosEvent::ALL[i as usize % RosEvent::ALL.len()] as u8).collect(),
        handle: (0..n).map(|i| 0x5555_0000_0000 + i).collect(),
        arg0: (0..n).collect(),
        arg1: vec![u64::MAX; n as usize],
        arg2: vec![1; n as usize],
    })
}

fn object(handle: u64) -> Record {
    let (kind, name) = (RosObjectKind::Publisher, "/scan".to_owned());
    Record::RosObject(RosObject {
        time_ns: 5,
        pid: 7,
        kind,
        handle,
        owner: 2,
        other: 3,
        number: 10,
        name,
        ..RosObject::default()
    })
}

/// One of event, with who wrote it: whatever the batching.
type Row = (i32, i32, u8, u64, u8, u64, [u64; 3]);

fn rows(records: &[Record]) -> Vec<Row> {
    let batches = records.iter().filter_map(|record| match record {
        Record::Ros(batch) => Some(batch),
        _ => None,
    });
    let of = |batch: &RosBatch, i: usize| {
        let args = [batch.arg0[i], batch.arg1[i], batch.arg2[i]];
        (batch.pid, batch.tid, batch.counter, batch.ticks[i], batch.event[i], batch.handle[i], args)
    };
    batches.flat_map(|batch| (0..batch.ticks.len()).map(move |i| of(batch, i))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_events_and_objects_come_back_in_their_order(
        rows_in in proptest::collection::vec((any::<u64>(), any::<u8>(), any::<u64>(), any::<[u64; 3]>()), 0..100),
        cut in any::<prop::sample::Index>(), counter in 1u8..4,
        kind in 0u8..30, numbers in any::<(u64, i32, [u64; 4])>(), text in ".{0,300}",
    ) {
        let mut batches = [RosBatch { pid: 3, tid: 4, counter, ..RosBatch::default() }, RosBatch::default()];
        batches[1] = batches[0].clone();
        let cut = cut.index(rows_in.len() + 1);
        for (at, (ticks, event, handle, args)) in rows_in.into_iter().enumerate() {
            batches[usize::from(at >= cut)].push(ticks, event, handle, args);
        }
        let (time_ns, pid, [handle, owner, other, number]) = numbers;
        let (kind, name) = (RosObjectKind::from_number(kind), printable(text.clone()));
        let object = Record::RosObject(RosObject { time_ns, pid, kind, handle, owner, other, number, name, text: printable(text) });
        let events = batches.map(Record::Ros);
        let steps = [&[object.clone(), events[0].clone()][..], &events[1..]];
        let (read, contents) = read_all(&written(&steps));
        prop_assert_eq!(rows(&read), rows(&events));
        prop_assert_eq!(contents.ros_events as usize, rows(&events).len());
        prop_assert_eq!(contents.damage, []);
        prop_assert!(read.contains(&object));
    }
}

#[test]
fn the_number_of_an_event_or_a_kind_is_its_place_in_the_list() {
    for (number, event) in (1..).zip(RosEvent::ALL) {
        assert_eq!((event as u8, RosEvent::from_number(number)), (number, Some(event)));
    }
    for (number, kind) in (1..).zip(RosObjectKind::ALL) {
        assert_eq!((kind as u8, RosObjectKind::from_number(number)), (number, kind));
    }
    assert_eq!(RosEvent::from_number(0), None);
    assert_eq!(RosEvent::from_number(RosEvent::ALL.len() as u8 + 1), None);
    assert_eq!(RosObjectKind::from_number(u8::MAX), RosObjectKind::Unknown);
}

#[test]
fn threads_are_written_as_dense_batches_and_objects_before_the_events_of_them() {
    let steps: Vec<Record> = (0..50).flat_map(|i| [events(8, i, 3), events(9, i, 3)]).chain([object(1)]).collect();
    let (read, _) = read_all(&written(&[&steps]));
    assert_eq!(read[0], object(1));
    let batches = read.iter().filter(|record| matches!(record, Record::Ros(_))).count();
    assert_eq!((batches, rows(&read).len()), (2, 300));
}

#[test]
fn a_recording_without_ros_says_nothing_of_it() {
    let bytes = written(&[&[Record::Name(Name { id: 1, name: "a".into() })]]);
    for word in [&b"taut/msg/Ros"[..], b"ros_events"] {
        assert_eq!(memchr::memmem::find(&bytes, word), None);
    }
}

#[test]
fn a_recovered_recording_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let clean = folder.path().join("clean.mcap");
    recover(&written(&[&[object(1), events(8, 1, 40)]]), &clean).unwrap();
    let (read, contents) = read_all(&std::fs::read(clean).unwrap());
    assert_eq!((rows(&read), contents.ros_events), (rows(&[events(8, 1, 40)]), 40));
    assert!(read.contains(&object(1)));
}

/// What a taut that does not know a schema makes of it: messages of a channel of somebody else's.
#[test]
fn whoever_does_not_know_the_schema_reads_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let mut writer = Writer::create(&path, &Info::default()).unwrap();
    let schema = "uint64 first_ticks\nuint64[] handle\n";
    let later = writer.channel("/taut/raw/later", "taut/msg/LaterBatch", schema).unwrap();
    let message = cdr::Encoder::new().number(9u64).sequence([1u64, 2].into_iter()).finish();
    writer.message(later, 5, 0, |out| out.extend_from_slice(&message)).unwrap();
    writer.write(&events(8, 1, 4)).unwrap();
    writer.finish(&Ending::default()).unwrap();
    let (read, contents) = read_all(&std::fs::read(path).unwrap());
    assert_eq!(contents.damage, []);
    assert_eq!((contents.messages, rows(&read)), (1, rows(&[events(8, 1, 4)])));
}

/// The chunks of a file, by where their signature is.
fn chunks(bytes: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(bytes, b"\x04\0\0\0zstd").collect()
}

#[test]
fn damage_to_events_is_loss_of_events() {
    let pair = |ns: u64| {
        Record::Clock(Counter::Tsc, ClockPair { ticks: Ticks(ns), monotonic_ns: ns, realtime_ns: 0, window_ticks: 1 })
    };
    let clocks = [pair(0), pair(10_000_000)];
    let steps = [&clocks[..], &[events(8, 100, 200)], &[events(8, 200, 200)], &[events(8, 300, 200)]];
    let whole = written(&steps);
    for chunk in chunks(&whole) {
        let mut bytes = whole.clone();
        bytes[chunk + 24] ^= 0xff;
        let (read, _) = read_all(&bytes);
        let missing = 600 - rows(&read).len();
        let lost: Vec<&Lost> = read
            .iter()
            .filter_map(|record| match record {
                Record::Lost(lost) => Some(lost),
                _ => None,
            })
            .collect();
        let of = |what| lost.iter().filter(|lost| lost.what == what).map(|lost| lost.count).sum::<u64>();
        assert_eq!((of(LostWhat::Stamps), of(LostWhat::KernelEvents)), (0, 0));
        // About as many as its bytes hold elsewhere.
        assert!(of(LostWhat::RosEvents).abs_diff(missing as u64) <= 60, "{missing}: {lost:?}");
        if missing > 0 {
            let hole = lost.iter().find(|lost| lost.what == LostWhat::RosEvents).unwrap();
            assert!(hole.is_estimate && hole.place.starts_with("7/8 "), "{hole:?}");
            assert!(hole.since_ns <= hole.time_ns, "{hole:?}");
        }
    }
}
