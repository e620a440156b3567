//! Several sources in one recording: what each gives stays apart.

use std::collections::{BTreeMap, BTreeSet};

use taut_clock::Counter;
use taut_points::{Intake, Linked};
use taut_recording::{Info, Kind, Name, Record, RosBatch, RosEvent, RosObject, RosObjectKind, StampBatch};

const COUNTER: u8 = Counter::Monotonic as u8;
const MS: u64 = 1_000_000;

fn stamps(ids: &[u64]) -> Vec<Record> {
    let name = |id, name: &str| Record::Name(Name { id, name: name.to_owned() });
    let rows = (1..).zip(ids).flat_map(|(n, id)| [(n * MS, *id, 1), (n * MS + 500, *id, 2)]);
    let mut batch = StampBatch { pid: 7, tid: 7, counter: COUNTER, ..StampBatch::default() };
    for (time_ns, id, point) in rows {
        batch.ticks.push(time_ns);
        batch.message_id.push(id);
        batch.point.push(point);
        batch.kind.push(Kind::Stamp as u8);
        batch.value.push(0);
    }
    vec![name(1, "in"), name(2, "out"), Record::Stamps(batch)]
}

/// A timer of 1 ms whose callback runs so often.
fn ros(times: u64) -> Vec<Record> {
    let object = |kind, handle, owner, number, name: &str| {
        let name = name.to_owned();
        Record::RosObject(RosObject { pid: 7, kind, handle, owner, number, name, ..RosObject::default() })
    };
    let mut batch = RosBatch { pid: 7, tid: 8, counter: COUNTER, ..RosBatch::default() };
    for at in (1..=times).map(|n| n * MS) {
        for (time_ns, event) in [(at, RosEvent::CallbackStart), (at + 300, RosEvent::CallbackEnd)] {
            batch.push(time_ns, event as u8, 0x30, [0; 3]);
        }
    }
    vec![
        object(RosObjectKind::Node, 0x10, 0, 0, "beat"),
        object(RosObjectKind::Timer, 0x20, 0, MS, ""),
        object(RosObjectKind::TimerNode, 0x20, 0x10, 0, ""),
        object(RosObjectKind::TimerCallback, 0x30, 0x20, 0, ""),
        Record::Ros(batch),
    ]
}

fn linked(records: &[Record]) -> Linked {
    let mut intake = Intake::default();
    records.iter().for_each(|record| intake.record(record));
    intake.finish(&Info::default(), None, false).linked
}

/// By message: names of its points and of its end, in order of time.
fn messages(linked: &Linked) -> BTreeMap<u64, Vec<String>> {
    let mut passes = linked.passes.clone();
    passes.sort_by_key(|pass| (pass.message, pass.time_ns, pass.point.order()));
    let mut messages: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for pass in passes {
        let name = linked.points.name(pass.point.reason().unwrap_or(pass.point));
        messages.entry(pass.message).or_default().push(name);
    }
    messages
}

const BEAT: [&str; 3] = ["/beat timer 1 ms", "/beat timer 1 ms end", "applied"];

#[test]
fn each_source_alone_numbers_as_it_likes() {
    let stamped = messages(&linked(&stamps(&[1, 2])));
    assert_eq!(stamped, BTreeMap::from([1, 2].map(|id| (id, vec!["in".to_owned(), "out".to_owned()]))));
    let called = messages(&linked(&ros(2)));
    assert_eq!(called, BTreeMap::from([1, 2].map(|id| (id, BEAT.map(str::to_owned).to_vec()))));
}

#[test]
fn messages_and_points_of_two_sources_never_have_one_number() {
    for ids in [&[1, 2, 3][..], &[1 << 63, u64::MAX]] {
        let both = linked(&[stamps(ids), ros(3)].concat());
        let found = messages(&both);
        assert_eq!(found.len(), ids.len() + 3);
        assert!(ids.iter().all(|id| found[id] == ["in", "out"]));
        assert_eq!(found.values().filter(|names| **names == BEAT).count(), 3);
        let points: BTreeSet<_> = both.points.iter().collect();
        assert_eq!(points.iter().map(|(_, name)| *name).collect::<BTreeSet<_>>().len(), points.len(), "{points:?}");
    }
}

#[test]
fn events_without_a_clock_are_said_and_left_out() {
    let mut records = ros(4);
    let Some(Record::Ros(batch)) = records.last_mut() else { unreachable!() };
    batch.counter = Counter::Tsc as u8;
    let none = linked(&records);
    assert!(none.passes.is_empty());
    assert!(none.damage.iter().any(|what| what.starts_with("8 ROS 2 events have no time")), "{:?}", none.damage);
}
