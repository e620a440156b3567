//! JSON lines: a stamp each, a message each, and lines that are neither.

mod recorded;

use proptest::prelude::*;
use recorded::{Recorded, imported, refused, says};
use taut_import::{Error, Imported, Unit, jsonl};
use taut_recording::Kind;

fn import(text: &str) -> Result<(Imported, Recorded), Error> {
    import_in(text, Unit::Seconds)
}

fn import_in(text: &str, unit: Unit) -> Result<(Imported, Recorded), Error> {
    imported(|to| jsonl::import(text.as_bytes(), unit, to, &mut |_| {}))
}

const ALL: [Kind; 3] = [Kind::Stamp, Kind::Outcome, Kind::Value];

#[test]
fn a_stamp_a_line() {
    let text = r#"{"id": 17, "point": "leader.read", "t": 12.5, "thread": "leader"}
{"id": 17, "point": "follower.applied", "t": 12.504, "pid": 7, "tid": 71}
{"id": 17, "outcome": "applied", "t": 12.504001}

{"point": "battery_v", "value": 24.5, "t": 12.6}
"#;
    let (imported, recorded) = import(text).unwrap();
    assert_eq!((imported.stamps, imported.damage.len(), imported.duration_ns), (4, 0, 100_000_000));
    assert_eq!(
        recorded.told(&ALL),
        [
            "Stamp leader.read@12500000000",
            "Stamp follower.applied@12504000000",
            "Outcome  applied@12504001000",
            "Value battery_v@12600000000"
        ]
    );
    assert_eq!(f64::from_bits(recorded.rows[3].value), 24.5);
    assert_eq!((recorded.rows[1].tid, recorded.threads[&recorded.rows[0].tid].as_str()), (71, "leader"));
}

#[test]
fn a_message_a_line_in_each_of_its_shapes() {
    let lines = [
        r#"{"id": 3, "stamps": {"b": 2.0, "a": 1.5, "never": null}, "outcome": "speed_limit"}"#,
        r#"{"trace_id": 3, "hops": [["a", 1.5], [2.0, "b"]], "outcome": "speed_limit"}"#,
        r#"{"seq": 3, "trace": [{"hop": "a", "t_ms": 1500}, {"name": "b", "ts_ns": 2000000000}], "outcome": "speed_limit"}"#,
    ];
    for line in lines {
        let (_, recorded) = import(line).unwrap();
        let told = recorded.told(&ALL);
        assert_eq!(told, ["Stamp a@1500000000", "Stamp b@2000000000", "Outcome b speed_limit@2000000000"], "{line}");
        assert!(recorded.rows.iter().all(|row| row.id == 3));
    }
}

#[test]
fn times_are_in_the_unit_that_their_key_or_the_user_says() {
    let text = "{\"id\": 1, \"point\": \"a\", \"t\": 1500}\n{\"id\": 1, \"point\": \"b\", \"t_us\": 1600000.5}\n";
    let (_, recorded) = import_in(text, Unit::Milliseconds).unwrap();
    assert_eq!(recorded.told(&ALL), ["Stamp a@1500000000", "Stamp b@1600000500"]);
    let coarse = import("{\"id\": 1, \"point\": \"a\", \"t\": 1700000000.25}\n").unwrap().0;
    assert!(says(&coarse, "0.24 µs"));
    let fine = import("{\"id\": 1, \"point\": \"a\", \"t_ns\": 1700000000250000001}\n").unwrap();
    assert!(!says(&fine.0, "0.24 µs"));
    assert_eq!(fine.1.rows[0].time_ns, 1_700_000_000_250_000_001);
}

#[test]
fn ids_may_be_text_and_no_id_is_the_lines_number() {
    let text = "{\"id\": \"a-1\", \"stamps\": {\"x\": 1.0, \"y\": 2.0}}\n{\"id\": \"a-1\", \"point\": \"z\", \"t\": 3.0}\n\
                {\"stamps\": {\"x\": 4.0}}\n{\"id\": \"17\", \"point\": \"x\", \"t\": 5}\n";
    let ids: Vec<u64> = import(text).unwrap().1.rows.iter().map(|row| row.id).collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2] && ids[0] > 1000);
    assert_eq!(ids[3..], [3, 17]);
}

#[test]
fn a_bad_line_is_counted_with_its_number_and_is_not_the_end() {
    let text = "not json\n{\"id\": 1, \"point\": \"a\", \"t\": 1.0}\n[]\n{\"id\": 1, \"point\": \"a\"}\n{\"point\": \"a\", \"t\": 2}\n\
                {\"id\": 1, \"t\": 2}\n{\"id\": 1, \"point\": \"a\", \"t\": -1}\n{\"id\": 1, \"stamps\": {}}\n\
                {\"id\": 1, \"stamps\": {\"a\": \"x\"}}\n{\"id\": 2, \"point\": \"a\", \"t\": 3.0}\n{\"id\": 3, \"poi";
    let (imported, recorded) = import(text).unwrap();
    assert_eq!(recorded.stamps()["a"], [(1, 1_000_000_000), (2, 3_000_000_000)]);
    let starts = [
        "line 1 is no JSON object (expected ident)",
        "line 3 is no JSON object",
        "line 4 has no time \"t\"",
        "line 5 has no \"id\"",
        "line 6 has neither \"point\" nor \"outcome\"",
        "line 7 has the time -1, which is none",
        "line 8 has no stamps",
        "line 9 has the time \"x\", which is none",
        "line 11, the last, is truncated",
    ];
    assert_eq!(imported.damage.len(), starts.len(), "{:?}", imported.damage);
    for (damage, start) in imported.damage.iter().zip(starts) {
        assert!(damage.starts_with(start), "{damage} is not {start}");
    }
}

#[test]
fn what_is_no_trace_is_said_to_be_what_it_is() {
    for (text, why) in [
        ("hello\nworld\n", "holds no stamps as JSON lines (line 1 is no JSON object"),
        ("", "holds no data (no lines)"),
        ("[{\"ph\": \"X\"}]", "taut import chrome"),
        ("{\"traceEvents\": []}", "taut import chrome"),
        ("#[Histogram log format version 1.3]\n", "taut import hlog"),
    ] {
        let error = refused(import(text));
        assert!(error.contains(why), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn noise_never_panics_and_good_lines_come_over(
        noise in proptest::collection::vec("[^\n\r]{0,60}", 0..8),
        keys in proptest::collection::vec("id|point|t|t_ns|stamps|outcome|value|thread|tid", 0..6),
        values in proptest::collection::vec("[0-9]{1,20}|-?[0-9]{1,3}e[0-9]{1,3}|\"[a-z]{0,3}\"|\\[\\]|\\{\\}|null|\\{\"a\":1\\}|\\[\\[\"a\",2\\]\\]", 6),
    ) {
        let object: Vec<String> = keys.iter().zip(values).map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let mut text = "{\"id\":1,\"point\":\"good\",\"t_ns\":5}\n".to_owned();
        noise.iter().for_each(|line| text += &format!("{line}\n"));
        text += &format!("{{{}}}\n{{\"id\":2,\"point\":\"good\",\"t_ns\":6}}\n", object.join(","));
        let (_, recorded) = import(&text).unwrap();
        let good = &recorded.stamps()["good"];
        prop_assert!(good.contains(&(1, 5)) && good.contains(&(2, 6)));
    }
}
