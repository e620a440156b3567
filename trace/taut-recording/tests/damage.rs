//! What a recording survives: every cut, flip and hole of a small file.

use std::{collections::HashMap, ops::Range};

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
    compressed(steps, finish, Compression::default())
}

fn compressed(steps: &[Vec<Record>], finish: bool, compression: Compression) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let info = Info { host: "robot".into(), tier: Tier::Full, start_monotonic_ns: 1, ..Info::default() };
    let mut writer = Writer::create_compressed(&path, &info, compression).unwrap();
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
        vec![stamps(8, 1, 11), stamps(9, 2, 7)],
        vec![kernel(0, 10, 8)],
        vec![stamps(8, 500, 12), Record::Lost(Lost { count: 3, place: "7/8".into(), ..Lost::default() })],
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
            // What damage cost is said by the reader, and was not written.
            Record::Lost(lost) if lost.is_estimate => {}
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
    assert_eq!((contents.stamps, contents.kernel_events), (30, 8));
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

/// A write may fail at any byte while a file is finished, and what was written until then stays.
#[test]
fn a_file_that_says_that_it_is_whole_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let records = [Record::Name(Name { id: 1, name: "a.b".into() }), stamps(8, 1, 11), kernel(0, 10, 8)];
    let mut writer = Writer::create(&path, &Info::default()).unwrap();
    // Nothing is due before the end.
    records.iter().for_each(|record| writer.write(record).unwrap());
    writer.finish(&Ending::default()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let mut ended = 0;
    for length in 9..=bytes.len() {
        let Ok((read, contents)) = read_all(&bytes[..length]) else { continue };
        if contents.ending.is_some() {
            assert_eq!(rows(&read), rows(&records), "{length} bytes say that they are all");
            ended += 1;
        }
    }
    assert!(ended > 1, "of cuts behind the ending nothing was examined");
}

/// Where each chunk lies, and the rows that only it holds.
fn chunks(bytes: &[u8]) -> Vec<(Range<usize>, HashMap<String, u64>)> {
    let whole = rows(&read_all(bytes).unwrap().0);
    let mut at = 8;
    let mut chunks = Vec::new();
    while at + 9 <= bytes.len() - 8 {
        let end = at + 9 + u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap()) as usize;
        if bytes[at] == 6 {
            let without = [&bytes[..at], &bytes[end..]].concat();
            chunks.push((at..end, difference(&whole, &rows(&read_all(&without).unwrap().0))));
        }
        at = end;
    }
    chunks
}

fn difference(whole: &HashMap<String, u64>, part: &HashMap<String, u64>) -> HashMap<String, u64> {
    let left = whole.iter().map(|(row, n)| (row.clone(), n - part.get(row).unwrap_or(&0)));
    left.filter(|(_, n)| *n > 0).collect()
}

/// Nothing is read that was not written, and what is missing lay in the chunks that were touched.
fn check_loss(small: &Small, damaged: &[u8], touched: Range<usize>, what: &str) {
    let (records, contents) = read_all(damaged).unwrap_or_else(|e| panic!("{what}, bytes {touched:?}: {e}"));
    let part = rows(&records);
    assert!(is_within(&part, &small.rows), "{what}, bytes {touched:?}: something was read that was not written");
    let mut lost = difference(&small.rows, &part);
    if !lost.is_empty() {
        assert!(!contents.damage.is_empty(), "{what}, bytes {touched:?}: lost without a word");
    }
    for (_, held) in small.chunks.iter().filter(|(at, _)| at.start < touched.end && touched.start < at.end) {
        lost = difference(
            &lost,
            &held.iter().map(|(row, n)| (row.clone(), *n.min(lost.get(row).unwrap_or(&0)))).collect(),
        );
    }
    assert!(lost.is_empty(), "{what}, bytes {touched:?}: lost from elsewhere: {lost:?}");
}

struct Small {
    bytes: Vec<u8>,
    rows: HashMap<String, u64>,
    chunks: Vec<(Range<usize>, HashMap<String, u64>)>,
}

fn small_with_chunks() -> Small {
    let (steps, bytes) = small();
    let small = Small { rows: rows(&steps.concat()), chunks: chunks(&bytes), bytes };
    let in_chunks: u64 = small.chunks.iter().flat_map(|(_, held)| held.values()).sum();
    assert_eq!(in_chunks, small.rows.values().sum::<u64>());
    small
}

#[test]
fn a_changed_byte_anywhere_costs_at_most_the_chunk_it_hit() {
    let small = small_with_chunks();
    let mut damaged = small.bytes.clone();
    for at in 0..damaged.len() {
        let was = damaged[at];
        for now in [was ^ 0x02, was ^ 0x80, 0x00] {
            damaged[at] = now;
            check_loss(&small, &damaged, at..at + 1, "changed");
        }
        damaged[at] = was;
    }
}

#[test]
fn what_is_not_compressed_is_found_as_well() {
    let (steps, _) = small();
    let bytes = compressed(&steps, true, Compression::None);
    assert!(bytes.windows(3).any(|w| w == b"a.b"), "its bytes are as they were");
    let small = Small { rows: rows(&steps.concat()), chunks: chunks(&bytes), bytes };
    let mut damaged = small.bytes.clone();
    for at in 0..damaged.len() {
        let was = std::mem::replace(&mut damaged[at], small.bytes[at] ^ 0x02);
        check_loss(&small, &damaged, at..at + 1, "changed");
        damaged[at] = was;
    }
}

#[test]
fn a_hole_anywhere_costs_at_most_the_chunks_it_touched() {
    let small = small_with_chunks();
    for at in 0..small.bytes.len() - 16 {
        let mut zeroed = small.bytes.clone();
        zeroed[at..at + 16].fill(0);
        check_loss(&small, &zeroed, at..at + 16, "zeroed");
        let mut cut = small.bytes.clone();
        cut.drain(at..at + 16);
        check_loss(&small, &cut, at..at + 16, "cut");
    }
}

#[test]
fn a_recorder_killed_at_any_byte_loses_only_the_unfinished_chunk() {
    let small = small_with_chunks();
    for length in 0..small.bytes.len() {
        let complete: u64 =
            small.chunks.iter().filter(|(at, _)| at.end <= length).flat_map(|(_, held)| held.values()).sum();
        match read_all(&small.bytes[..length]) {
            Ok((records, _)) => {
                let part = rows(&records);
                assert!(is_within(&part, &small.rows), "{length} bytes");
                assert!(part.values().sum::<u64>() >= complete, "{length} bytes");
            }
            Err(error) => {
                assert!(matches!(error, Error::Truncated { .. }), "{length} bytes: {error}");
                assert_eq!(complete, 0, "{length} bytes");
            }
        }
    }
}

#[test]
fn a_torn_chunk_gives_what_decompresses_and_says_so() {
    // Noise does not compress, so that the chunk has several blocks to be torn between.
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 16
    };
    let batch = |tid: i32, noise: &mut dyn FnMut() -> u64| {
        let value: Vec<u64> = (0..4096).map(|_| noise()).collect();
        let column = || value.iter().map(|v| *v as i64).collect::<Vec<_>>();
        let mut time_ns: Vec<u64> = value.iter().map(|v| v % (1 << 31)).collect();
        time_ns.sort_unstable();
        let (arg0, arg1, arg2) = (column(), column(), column());
        let n = value.len();
        KernelBatch {
            cpu: tid as u16,
            time_ns,
            event: vec![1; n],
            flags: vec![0; n],
            tid: vec![1; n],
            arg0,
            arg1,
            arg2,
        }
    };
    let records: Vec<Record> = (0..6).map(|cpu| Record::Kernel(batch(cpu, &mut noise))).collect();
    let bytes = written(std::slice::from_ref(&records), true);
    let (chunk, held) = chunks(&bytes).into_iter().max_by_key(|(at, _)| at.len()).unwrap();
    assert_eq!(held.len(), 4 * 4096);
    let (salvaged, contents) = read_all(&bytes[..chunk.end - 1000]).unwrap();
    assert!((2 * 4096..4 * 4096).contains(&contents.kernel_events), "{}", contents.kernel_events);
    assert!(is_within(&rows(&salvaged), &rows(&records)));
    let [Damage::Torn { missing: 1000, kernel_events, .. }] = contents.damage[..] else {
        panic!("{:?}", contents.damage)
    };
    assert_eq!(kernel_events, contents.kernel_events);
}

#[test]
fn a_length_that_reaches_over_the_end_costs_only_its_chunk() {
    let small = small_with_chunks();
    let (at, _) = &small.chunks[1];
    let mut damaged = small.bytes.clone();
    for (field, fixed) in [(1, 44), (45, 0)] {
        let length = small.bytes.len() as u64 + fixed;
        damaged[at.start + field..at.start + field + 8].copy_from_slice(&length.to_le_bytes());
    }
    check_loss(&small, &damaged, at.clone(), "lengths");
}

#[test]
fn a_batch_of_any_length_lies_in_chunks_of_bounded_size() {
    let bytes = written(&[vec![stamps(1, 1, 200_000)]], true);
    let (_, contents) = read_all(&bytes).unwrap();
    assert_eq!((contents.stamps, contents.damage), (200_000, vec![]));
    let mut at = 8;
    while at + 9 <= bytes.len() - 8 {
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert!(bytes[at] != 6 || u64_at(at + 25) < 3 << 19, "a chunk of {} bytes", u64_at(at + 25));
        at += 9 + u64_at(at + 1) as usize;
    }
}

#[test]
fn times_at_the_end_of_the_range_neither_panic_nor_get_lost() {
    let pair = |ticks| ClockPair { ticks: Ticks(ticks), monotonic_ns: ticks, realtime_ns: 0, window_ticks: 0 };
    let batch = StampBatch {
        pid: 1,
        tid: 1,
        counter: 1,
        ticks: vec![0, u64::MAX],
        message_id: vec![u64::MAX, 0],
        point: vec![u32::MAX; 2],
        kind: vec![5, 255],
        value: vec![u64::MAX; 2],
    };
    let records =
        [Record::Clock(Counter::Tsc, pair(0)), Record::Clock(Counter::Tsc, pair(u64::MAX)), Record::Stamps(batch)];
    let bytes = written(&[records.to_vec()], true);
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("clean.mcap");
    recover(&bytes, &to).unwrap();
    let (again, _) = read_all(&std::fs::read(&to).unwrap()).unwrap();
    assert_eq!(rows(&again), rows(&records));
}

#[test]
fn without_a_verified_description_the_open_copy_serves_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let info = Info { host: "robot".into(), start_monotonic_ns: 5, ..Info::default() };
    let mut writer = Writer::create(&path, &info).unwrap();
    writer.write(&stamps(1, 1, 9)).unwrap();
    writer.flush_due(1_000_000_000).unwrap();
    std::mem::forget(writer);
    let mut bytes = std::fs::read(&path).unwrap();
    let first = chunks(&bytes)[0].0.clone();
    bytes[first.end - 3] ^= 1;
    let (_, contents) = read_all(&bytes).unwrap();
    assert_eq!((contents.info, contents.stamps), (info, 9));
    assert!(contents.damage.contains(&Damage::Info { has_copy: true }), "{:?}", contents.damage);
}

#[test]
fn a_wrong_checksum_is_said_and_not_passed_on() {
    let (_, bytes) = small();
    let signature = bytes.windows(4).position(|w| w == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    let mut damaged = bytes;
    damaged[signature - 20] ^= 1; // the first chunk's checksum
    let (_, contents) = read_all(&damaged).unwrap();
    assert!(matches!(contents.damage[..], [Damage::Chunk { .. }]), "{:?}", contents.damage);
    let sentence = contents.damage[0].to_string();
    assert!(sentence.contains("fails its checksum and was left out: 1 message of /taut/raw/info"), "{sentence}");
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
    assert!(!recovered.damage.is_empty());
    let bytes = std::fs::read(&to).unwrap();
    let says = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(recovered.damage.iter().all(|damage| says(&damage.to_string())));
}

#[test]
fn a_file_that_another_command_writes_is_left_to_it_and_a_link_stays_one() {
    let (_, bytes) = small();
    let folder = tempfile::tempdir().unwrap();
    let (link, to) = (folder.path().join("link.mcap"), folder.path().join("clean.mcap"));
    std::os::unix::fs::symlink("clean.mcap", &link).unwrap();
    let first = Output::open(&to).unwrap();
    std::fs::write(first.path(), "half").unwrap();
    for to in [&to, &link] {
        assert!(matches!(recover(&bytes, to), Err(Error::Busy { path }) if path == *to));
        assert_eq!(std::fs::read(first.path()).unwrap(), b"half");
    }
    drop(first);
    recover(&bytes, &link).unwrap();
    assert!(link.is_symlink());
    assert_eq!(read_all(&std::fs::read(&to).unwrap()).unwrap().1.damage, []);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing half-written is left");
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

#[test]
fn a_newer_version_is_refused_but_not_for_one_flipped_byte() {
    let (_, mut bytes) = small();
    let copies: Vec<usize> = memmem(&bytes, b"version\x01\0\0\x001").collect();
    assert_eq!(copies.len(), 2);
    bytes[copies[0] + 11] = b'9';
    assert!(read_all(&bytes).is_ok());
    bytes[copies[1] + 11] = b'9';
    assert!(matches!(read_all(&bytes), Err(Error::UnknownFeature { feature }) if feature == "format version 9"));
}

fn memmem<'a>(bytes: &'a [u8], what: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes.windows(what.len()).enumerate().filter(move |(_, window)| *window == what).map(|(at, _)| at)
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
    fn any_kernel_events_and_facts_come_back(
        rows_in in proptest::collection::vec((any::<u64>(), 0u8..20, any::<u8>(), any::<i32>(), any::<(i64, i64, i64)>()), 0..100),
        text in ".{0,40}", numbers in any::<(u64, u32, i32, f64)>(),
    ) {
        // What it comes back as at once, it comes back as.
        let text = printable(text);
        let mut batch = KernelBatch { cpu: 3, ..KernelBatch::default() };
        for (time_ns, event, flags, tid, (arg0, arg1, arg2)) in rows_in {
            batch.push(time_ns, event, flags, tid, [arg0, arg1, arg2]);
        }
        let (long, short, signed, float) = numbers;
        let records = vec![
            Record::Kernel(batch),
            Record::Name(Name { id: short, name: text.clone() }),
            Record::Thread(Thread { time_ns: long, tid: signed, comm: text.clone(), recorded: long % 2 == 0, ..Thread::default() }),
            Record::Object(Object { time_ns: long, pid: signed, kind: ObjectKind::Descriptor, start: long, size: 3, name: text.clone() }),
            Record::Lost(Lost { time_ns: long, what: LostWhat::KernelEvents, place: text.clone(), count: long, since_ns: long, is_estimate: true }),
            Record::Sample(Sample { time_ns: long, name: text.clone(), value: float }),
            Record::Frame(Frame { id: short, address: long, module: text.clone(), name: text.clone() }),
            Record::Histogram(Histogram {
                name: text,
                unit: "ns".to_owned(),
                from: vec![0, 1000],
                to: vec![999, 1000 + u64::from(short)],
                count: vec![long, 3],
                min: (short % 2 == 0).then_some(long),
                max: (short % 3 == 0).then_some(long),
                overflow: long,
                overflow_from: long,
            }),
            Record::Profile(ProfileBatch {
                time_ns: vec![long, 0],
                cpu: vec![1, 0],
                pid: vec![signed, 1],
                tid: vec![signed, 2],
                depth: vec![0, 2],
                frame: vec![short, 3],
            }),
        ];
        let (read, contents) = read_all(&written(std::slice::from_ref(&records), true)).unwrap();
        prop_assert_eq!(rows(&read), rows(&records));
        prop_assert_eq!(contents.damage, []);
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
