//! Traces in Chrome's JSON: slices as marks and durations, flows as messages.

mod recorded;

use std::io::{Cursor, Read, Write};

use proptest::prelude::*;
use recorded::{Recorded, imported, refused, says};
use taut_import::{Error, Imported, chrome};
use taut_recording::Kind;

fn import(bytes: &[u8]) -> Result<(Imported, Recorded), Error> {
    imported(|to| {
        let mut open = || Ok(Box::new(Cursor::new(bytes.to_vec())) as Box<dyn Read>);
        chrome::import_from(&mut open, to, &mut |_, _| {})
    })
}

const MARKS: [Kind; 2] = [Kind::Begin, Kind::End];

/// A message from `publish` in one thread through `callback` in another to `write` in a third.
const FLOW: &str = r#"[
{"ph": "M", "name": "process_name", "pid": 10, "tid": 0, "args": {"name": "robot"}},
{"ph": "M", "name": "thread_name", "pid": 10, "tid": 11, "args": {"name": "leader"}},
{"ph": "X", "name": "spin", "pid": 10, "tid": 11, "ts": 0, "dur": 1000},
{"ph": "X", "name": "publish", "pid": 10, "tid": 11, "ts": 100, "dur": 20.5},
{"ph": "s", "name": "message", "cat": "ros", "id": 7, "pid": 10, "tid": 11, "ts": 110},
{"ph": "B", "name": "callback", "pid": 10, "tid": 12, "ts": 200},
{"ph": "t", "name": "message", "cat": "ros", "id": 7, "pid": 10, "tid": 12, "ts": 210},
{"ph": "E", "pid": 10, "tid": 12, "ts": 300},
{"ph": "f", "name": "message", "cat": "ros", "id": "0x7", "pid": 10, "tid": 13, "ts": 400},
{"ph": "X", "name": "write", "pid": 10, "tid": 13, "ts": 405, "dur": 5}
]"#;

#[test]
fn a_flow_is_a_message_through_the_slices_that_it_binds_to() {
    let (imported, recorded) = import(FLOW.as_bytes()).unwrap();
    assert_eq!((imported.damage.len(), imported.notes.len()), (0, 0), "{:?}", imported.notes);
    assert_eq!(recorded.told(&[Kind::Stamp]), ["Stamp publish@110000", "Stamp callback@210000", "Stamp write@400000"]);
    assert!(recorded.rows.iter().filter(|row| row.kind == Kind::Stamp).all(|row| row.id == 7));
    assert_eq!(recorded.threads[&11], "leader");
}

#[test]
fn slices_are_marks_and_a_distribution_each() {
    let (_, recorded) = import(FLOW.as_bytes()).unwrap();
    let marks = recorded.told(&MARKS);
    for mark in [
        "Begin publish@100000",
        "End publish@120500",
        "Begin callback@200000",
        "End callback@300000",
        "End spin@1000000",
    ] {
        assert!(marks.iter().any(|told| told == mark), "{mark} is not in {marks:?}");
    }
    assert_eq!(marks.len(), 8);
    let callback = recorded.histograms.iter().find(|of| of.name == "callback").unwrap();
    assert_eq!(callback.count, [1]);
    assert!(callback.from[0] <= 100_000 && 100_000 <= callback.to[0]);
}

#[test]
fn the_order_of_events_does_not_matter() {
    let mut lines: Vec<String> =
        FLOW.lines().skip(1).map(|line| line.trim_end_matches([',', ']']).to_owned()).collect();
    lines.retain(|line| !line.is_empty());
    let stamps = import(FLOW.as_bytes()).unwrap().1.told(&[Kind::Stamp]);
    // B before E must stay.
    let (b, e) = (lines.remove(5), lines.remove(6));
    lines.reverse();
    lines.extend([b, e]);
    let object = format!("{{\"traceEvents\": [{}], \"displayTimeUnit\": \"ms\"}}", lines.join(","));
    assert_eq!(import(object.as_bytes()).unwrap().1.told(&[Kind::Stamp]), stamps);
}

#[test]
fn asynchronous_events_are_messages_and_counters_signals() {
    let text = r#"[{"ph": "b", "name": "load", "cat": "io", "id": 3, "pid": 1, "tid": 1, "ts": 1},
        {"ph": "n", "name": "half", "cat": "io", "id": 3, "pid": 1, "tid": 1, "ts": 2},
        {"ph": "e", "name": "load", "cat": "io", "id2": {"local": "0x3"}, "pid": 1, "tid": 2, "ts": 3},
        {"ph": "C", "name": "queue", "pid": 1, "tid": 1, "ts": 4, "args": {"depth": 12}},
        {"ph": "X", "name": "taken", "pid": 1, "tid": 2, "ts": 5, "dur": 1, "bind_id": "0x9", "flow_in": true},
        {"ph": "i", "name": "mark", "pid": 1, "tid": 1, "ts": 6}, {"ph": "E", "pid": 1, "tid": 1, "ts": 7}]"#;
    let (imported, recorded) = import(text.as_bytes()).unwrap();
    assert_eq!(
        recorded.told(&[Kind::Stamp]),
        ["Stamp load begin@1000", "Stamp half@2000", "Stamp load end@3000", "Stamp taken@5000"]
    );
    let ids: Vec<u64> = recorded.rows.iter().filter(|row| row.kind == Kind::Stamp).map(|row| row.id).collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2] && ids[3] != ids[0]);
    let value = recorded.rows.iter().find(|row| row.kind == Kind::Value).unwrap();
    assert_eq!((value.point.as_str(), f64::from_bits(value.value)), ("queue.depth", 12.0));
    assert!(says(&imported, "1 instant events and marks (phase 'i')"));
    assert!(says(&imported, "1 events have no time, no thread, no id or no begin"));
}

#[test]
fn ids_are_of_their_category() {
    let event = |phase, category, ts| {
        format!(r#"{{"ph": "{phase}", "name": "m", "cat": "{category}", "id": 5, "pid": 1, "tid": 1, "ts": {ts}}}"#)
    };
    let text = format!("[{},{},{}]", event("s", "a", 1), event("s", "b", 2), event("b", "a", 3));
    let (imported, recorded) = import(text.as_bytes()).unwrap();
    let ids: std::collections::BTreeSet<u64> = recorded.rows.iter().map(|row| row.id).collect();
    assert_eq!(ids.len(), 3);
    assert!(says(&imported, "2 flow events lie in no slice"));
}

#[test]
fn a_list_that_was_cut_is_legal_and_broken_json_is_damage() {
    let cut = &FLOW[..FLOW.find("{\"ph\": \"f\"").unwrap()];
    let (imported, recorded) = import(cut.as_bytes()).unwrap();
    assert_eq!((imported.damage.len(), recorded.told(&[Kind::Stamp]).len()), (0, 2));
    assert!(says(&imported, "ends within its list"));
    let (imported, recorded) = import(format!("{cut} oops").as_bytes()).unwrap();
    assert_eq!(recorded.told(&[Kind::Stamp]).len(), 2);
    assert!(imported.damage[0].starts_with("the JSON is broken"), "{:?}", imported.damage);
}

#[test]
fn a_compressed_trace_is_read_as_it_is() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(FLOW.as_bytes()).unwrap();
    let (_, recorded) = import(&packer.finish().unwrap()).unwrap();
    assert_eq!(recorded.told(&[Kind::Stamp]).len(), 3);
}

#[test]
fn what_is_no_trace_is_said_to_be_what_it_is() {
    for (bytes, why) in [
        (&b"\x0a\x10\x08\x01\x12\x0c"[..], "is a Perfetto protobuf trace; make JSON of it with `traceconv json"),
        (b"<!DOCTYPE html>", "is an HTML page"),
        (b"hello", "is no trace in Chrome's JSON"),
        (b"", "is no trace in Chrome's JSON"),
        (b"\n[]", "no event with a time"),
        (b"{\"traceEvents\": {}}", "no event with a time"),
    ] {
        let error = refused(import(bytes));
        assert!(error.contains(why), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn odd_events_never_panic(
        events in proptest::collection::vec((0usize..14, 0usize..8, 0usize..8, 0usize..8, 0usize..8), 0..40), cut in any::<prop::sample::Index>(),
    ) {
        const PHASES: [&str; 14] = ["B", "E", "X", "s", "t", "f", "b", "n", "e", "C", "M", "i", "?", ""];
        const ODD: [&str; 8] = ["0", "5", "-1", "1e300", "\"7\"", "null", "[1]", "{\"a\": \"b\"}"];
        let event = |(phase, ts, dur, id, tid): (usize, usize, usize, usize, usize)| format!(
            r#"{{"ph": "{}", "name": {}, "ts": {}, "dur": {}, "id": {}, "tid": {}, "pid": {}, "args": {}, "bind_id": {}, "flow_in": true}}"#,
            PHASES[phase], ODD[id], ODD[ts], ODD[dur], ODD[id], ODD[tid], ODD[tid], ODD[dur], ODD[dur],
        );
        let text = format!("[{}]", events.into_iter().map(event).collect::<Vec<_>>().join(","));
        let _ = import(text.as_bytes());
        let _ = import(&text.as_bytes()[..cut.index(text.len() + 1)]);
    }

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = import(&bytes);
        let _ = import(&[b"[", bytes.as_slice()].concat());
        let _ = import(&[b"\x1f\x8b\x08\x00", bytes.as_slice()].concat());
    }
}
