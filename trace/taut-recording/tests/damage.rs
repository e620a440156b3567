//! What a recording survives: every cut, flip and hole of a small file.

use std::collections::HashMap;

use proptest::prelude::*;
use taut_clock::{ClockPair, Counter, Ticks};
use taut_recording::*;

fn stamps(tid: i32, from: u64, n: u64) -> Record {
    Record::Stamps(StampBatch {
        pid: 7,
        tid,
        counter: 1,
        ticks: (0..n).map(|i| from * 1000 + i * 17).collect(),
        message_id: (0..n).map(|i| from + i / 3).collect(),
        point: (0..n).map(|i| 1 + (i % 3) as u32).collect(),
        kind: (0..n).map(|i| if i % 5 == 4 { 4 } else { 1 }).collect(),
        value: (0..n).map(|i| if i % 5 == 4 { 9 } else { 0 }).collect(),
    })
}

fn kernel(cpu: u16, from: u64, n: u64) -> Record {
    Record::Kernel(KernelBatch {
        cpu,
        time_ns: (0..n).map(|i| from * 1000 + i * 31).collect(),
        event: vec![1; n as usize],
        flags: vec![0; n as usize],
        tid: vec![7; n as usize],
        arg0: (0..n as i64).collect(),
        arg1: vec![-1; n as usize],
        arg2: vec![i64::MAX; n as usize],
    })
}

/// A recording of several chunks: each step is flushed by itself.
fn written(steps: &[Vec<Record>], finish: bool) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let info = Info { host: "robot".into(), tier: Tier::Full, start_monotonic_ns: 1, ..Info::default() };
    let mut writer = Writer::create(&path, &info).unwrap();
    for (i, step) in steps.iter().enumerate() {
        step.iter().for_each(|record| writer.write(record).unwrap());
        writer.flush_due((i as u64 + 1) * 1_000_000_000).unwrap();
    }
    if finish {
        writer.finish(&Ending { stamps: 5, reason: "test".into(), ..Ending::default() }).unwrap();
    } else {
        std::mem::forget(writer);
    }
    std::fs::read(path).unwrap()
}

fn small() -> (Vec<Vec<Record>>, Vec<u8>) {
    let pair = ClockPair { ticks: Ticks(1), monotonic_ns: 2, realtime_ns: 3, window_ticks: 4 };
    let steps = vec![
        vec![Record::Name(Name { id: 1, name: "a.b".into() }), Record::Clock(Counter::Tsc, pair)],
        vec![stamps(8, 1, 30), stamps(9, 2, 20)],
        vec![kernel(0, 10, 25)],
        vec![stamps(8, 500, 40), Record::Lost(Lost { count: 3, place: "7/8".into(), ..Lost::default() })],
    ];
    let bytes = written(&steps, true);
    (steps, bytes)
}

/// Every stamp as a value, to compare multisets whatever the batching.
fn rows(records: &[Record]) -> HashMap<String, u64> {
    let mut rows = HashMap::new();
    let mut count = |row: String| *rows.entry(row).or_insert(0) += 1;
    for record in records {
        match record {
            Record::Stamps(b) => (0..b.ticks.len()).for_each(|i| {
                count(format!("{:?}", (b.tid, b.ticks[i], b.message_id[i], b.point[i], b.kind[i], b.value[i])))
            }),
            Record::Kernel(b) => (0..b.time_ns.len()).for_each(|i| {
                count(format!("{:?}", (b.cpu, b.time_ns[i], b.event[i], b.tid[i], b.arg0[i], b.arg1[i], b.arg2[i])))
            }),
            other => count(format!("{other:?}")),
        }
    }
    rows
}

fn read_all(bytes: &[u8]) -> Result<(Vec<Record>, Contents), Error> {
    let mut records = Vec::new();
    let contents = read(bytes, &mut |record| records.push(record))?;
    Ok((records, contents))
}

fn is_within(part: &HashMap<String, u64>, whole: &HashMap<String, u64>) -> bool {
    part.iter().all(|(row, n)| whole.get(row).is_some_and(|m| n <= m))
}

#[test]
fn a_whole_file_gives_back_everything() {
    let (steps, bytes) = small();
    let (records, contents) = read_all(&bytes).unwrap();
    assert_eq!(rows(&records), rows(&steps.concat()));
    assert_eq!(contents.damage, []);
    assert_eq!((contents.stamps, contents.kernel_events), (90, 25));
    assert_eq!(contents.info.host, "robot");
    assert_eq!(contents.ending.unwrap().reason, "test");
}

#[test]
fn a_file_without_an_end_gives_back_everything_flushed() {
    let (steps, _) = small();
    let (records, contents) = read_all(&written(&steps, false)).unwrap();
    assert_eq!(rows(&records), rows(&steps.concat()));
    assert_eq!(contents.ending, None);
    assert_eq!(contents.damage, []);
}

#[test]
fn a_flipped_byte_anywhere_costs_at_most_the_chunk_it_hit() {
    let (steps, bytes) = small();
    let whole = rows(&steps.concat());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x5a;
        let (records, _) = read_all(&damaged).unwrap_or_else(|e| panic!("byte {at}: {e}"));
        let part = rows(&records);
        assert!(is_within(&part, &whole), "byte {at}: something was read that was not written");
        // The largest chunk holds the 50 stamps of one step.
        let lost: u64 = whole.values().sum::<u64>() - part.values().sum::<u64>();
        assert!(lost <= 50, "byte {at}: {lost} rows lost");
    }
}

#[test]
fn a_hole_anywhere_costs_at_most_the_chunks_it_touched() {
    let (steps, bytes) = small();
    let whole = rows(&steps.concat());
    for at in (0..bytes.len() - 16).step_by(3) {
        for cut in [false, true] {
            let mut damaged = bytes.clone();
            if cut {
                damaged.drain(at..at + 16);
            } else {
                damaged[at..at + 16].fill(0);
            }
            let (records, _) = read_all(&damaged).unwrap_or_else(|e| panic!("byte {at}, cut {cut}: {e}"));
            let part = rows(&records);
            assert!(is_within(&part, &whole), "byte {at}, cut {cut}");
            assert!(whole.values().sum::<u64>() - part.values().sum::<u64>() <= 92, "byte {at}, cut {cut}");
        }
    }
}

#[test]
fn a_truncated_file_gives_a_beginning_of_what_was_written() {
    let (steps, bytes) = small();
    let whole = rows(&steps.concat());
    let mut last = 0;
    for length in 1..bytes.len() {
        let n = match read_all(&bytes[..length]) {
            Ok((records, _)) => {
                let part = rows(&records);
                assert!(is_within(&part, &whole), "{length} bytes");
                part.values().sum()
            }
            Err(error) => {
                assert!(matches!(error, Error::Truncated { .. }), "{length} bytes: {error}");
                0
            }
        };
        // A torn chunk may give up what its whole form gives: never less later on than a chunk earlier.
        last = last.max(n);
    }
    assert_eq!(last, whole.values().sum::<u64>());
}

#[test]
fn a_wrong_checksum_is_said_and_not_passed_on() {
    let (_, bytes) = small();
    let signature = bytes.windows(4).position(|w| w == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    let mut damaged = bytes;
    damaged[signature - 20] ^= 1; // the first chunk's checksum
    let (_, contents) = read_all(&damaged).unwrap();
    assert!(matches!(contents.damage[..], [Damage::Chunk { .. }]), "{:?}", contents.damage);
    assert!(contents.damage[0].to_string().contains("fails its checksum"));
}

#[test]
fn recovery_writes_a_clean_file_and_names_the_loss() {
    let (steps, bytes) = small();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("clean.mcap");
    let recovered = recover(&bytes[..bytes.len() * 2 / 3], &to).unwrap();
    let (records, contents) = read_all(&std::fs::read(&to).unwrap()).unwrap();
    assert_eq!(contents.damage, []);
    assert!(is_within(&rows(&records), &rows(&steps.concat())));
    assert_eq!(contents.stamps, recovered.stamps);
    assert!(contents.info.facts.iter().any(|(key, _)| key == "recovered_by"));
}

#[test]
fn other_peoples_files_are_refused_with_the_reason() {
    let mut mcap = std::io::Cursor::new(Vec::new());
    let options = mcap::WriteOptions::new().profile("ros2");
    options.create(&mut mcap).unwrap().finish().unwrap();
    assert!(matches!(read_all(mcap.get_ref()), Err(Error::Foreign { profile }) if profile == "ros2"));
    assert!(matches!(read_all(b"ELF, or whatever it is"), Err(Error::NotMcap)));
    assert!(matches!(read_all(&mcap.get_ref()[..5]), Err(Error::Truncated { bytes: 5 })));
}

#[test]
fn a_required_feature_of_the_future_is_refused() {
    let mut mcap = std::io::Cursor::new(Vec::new());
    let mut writer = mcap::WriteOptions::new().profile("taut").create(&mut mcap).unwrap();
    let metadata = [("version".to_owned(), "1".to_owned()), ("required_features".to_owned(), "quantum".to_owned())];
    let metadata = mcap::records::Metadata { name: "taut.format".into(), metadata: metadata.into() };
    writer.write_metadata(&metadata).unwrap();
    writer.finish().unwrap();
    drop(writer);
    assert!(matches!(read_all(mcap.get_ref()), Err(Error::UnknownFeature { feature }) if feature == "quantum"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_stamps_come_back(rows_in in proptest::collection::vec((0u64..1 << 40, any::<u64>(), 0u32..70_000, 1u8..8, any::<u64>()), 0..200)) {
        let mut sorted = rows_in;
        sorted.sort_by_key(|row| row.0);
        let mut batch = StampBatch { pid: 1, tid: 2, counter: 1, ..StampBatch::default() };
        for (ticks, id, point, kind, value) in sorted {
            batch.ticks.push(ticks);
            batch.message_id.push(id);
            batch.point.push(point);
            batch.kind.push(if kind == 5 { 1 } else { kind });
            batch.value.push(value);
        }
        let record = Record::Stamps(batch);
        let (records, _) = read_all(&written(&[vec![record.clone()]], true)).unwrap();
        prop_assert_eq!(rows(&records), rows(&[record]));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600), at in 0usize..600) {
        let mut file = small().1;
        let at = at.min(file.len());
        file.splice(at..(at + bytes.len()).min(file.len()), bytes.clone());
        let _ = read_all(&file);
        let _ = read_all(&bytes);
    }
}
