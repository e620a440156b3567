//! HdrHistogram's logs and cyclictest's files: distributions without messages.

mod recorded;

use std::{io::Cursor, time::Duration};

use hdrhistogram::{
    Histogram as Hdr,
    serialization::{
        V2DeflateSerializer,
        interval_log::{IntervalLogWriterBuilder, Tag},
    },
};
use proptest::prelude::*;
use recorded::{Recorded, imported, refused, says};
use taut_import::{Error, Imported, Unit, cyclictest, hlog};
use taut_recording::{Histogram, Kind};

fn import_hlog(text: &str, unit: Unit) -> Result<(Imported, Recorded), Error> {
    imported(|to| hlog::import(text.as_bytes(), unit, to, &mut |_| {}))
}

fn import_cyclictest(text: &str) -> Result<(Imported, Recorded), Error> {
    imported(|to| cyclictest::import(Cursor::new(text), Unit::Microseconds, to, &mut |_| {}))
}

/// (smallest value, count) of each bucket.
fn counts(of: &Histogram) -> Vec<(u64, u64)> {
    of.from.iter().copied().zip(of.count.iter().copied()).collect()
}

/// Two tags by turns, an interval a second; the n-th has the value n thousands and one of a million.
fn log(intervals: u64) -> String {
    let (mut bytes, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]");
    builder.with_base_time(std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    let mut log = builder.begin_log_with(&mut bytes, &mut serializer).unwrap();
    log.write_comment("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"")
        .unwrap();
    for n in 0..intervals {
        let mut of = Hdr::<u64>::new(3).unwrap();
        of.record(1000 * n).unwrap();
        of.record(1_000_000).unwrap();
        let tag = Tag::new(["cpu0", "cpu1"][n as usize % 2]);
        log.write_histogram(&of, Duration::from_secs(n), Duration::from_secs(1), tag).unwrap();
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn intervals_of_a_tag_are_one_distribution_and_a_signal() {
    let text = format!("{}\"StartTimestamp\",\"of Java\"\n", log(6));
    let (imported, recorded) = import_hlog(&text, Unit::Nanoseconds).unwrap();
    assert_eq!(imported.damage, Vec::<String>::new());
    assert!(says(&imported, "no stamps"));
    assert_eq!(recorded.histograms.iter().map(|of| of.name.as_str()).collect::<Vec<_>>(), ["cpu0", "cpu1"]);
    let first = &recorded.histograms[0];
    assert_eq!((first.count.iter().sum::<u64>(), first.unit.as_str()), (6, "ns"));
    assert_eq!((first.from[0], first.to.last()), (0, Some(&1_000_447)), "three digits of a million");
    assert_eq!(first.max, Some(1_000_447));
    let signal = &recorded.rows[0];
    assert_eq!((signal.kind, signal.point.as_str()), (Kind::Value, "cpu0 interval max, ms"));
    assert_eq!(signal.time_ns, 1_700_000_001_000_000_000, "the end of the interval");
    assert!((f64::from_bits(signal.value) - 1.0).abs() < 0.001);
}

#[test]
fn values_of_another_unit_become_nanoseconds() {
    let (_, recorded) = import_hlog(&log(2), Unit::Microseconds).unwrap();
    assert_eq!(recorded.histograms[1].from[0], 1_000_000);
    assert_eq!(recorded.histograms[1].to[0], 1_000_000, "HdrHistogram's highest value of the bucket");
}

#[test]
fn a_bad_interval_is_counted_with_its_line_and_is_not_the_end() {
    let whole = log(4);
    let mut lines: Vec<&str> = whole.lines().collect();
    lines.insert(4, "0.5,1.0,2.0,AAAA");
    lines.insert(5, "Tag=x,0.5,1.0,2.0,not base64!");
    lines.insert(6, "what is this");
    let text = lines.join("\n") + "\n2.0,1.0,2.0,HISTF";
    let (imported, recorded) = import_hlog(&text, Unit::Nanoseconds).unwrap();
    assert_eq!(recorded.histograms.len(), 2);
    let starts = [
        "line 5 has no readable histogram",
        "line 6 has no readable histogram",
        "line 7 is neither",
        "line 11, the last, is truncated",
    ];
    assert_eq!(imported.damage.len(), starts.len(), "{:?}", imported.damage);
    for (damage, start) in imported.damage.iter().zip(starts) {
        assert!(damage.starts_with(start), "{damage} is not {start}");
    }
}

#[test]
fn logs_of_other_versions_and_other_files_are_refused() {
    for (text, why) in [
        (
            "#[Histogram log format version 2.0]\n",
            "is an HdrHistogram log of version 2.0, which this taut does not know",
        ),
        ("hello\n", "is no HdrHistogram interval log"),
        ("#only a comment\n", "no intervals"),
        ("", "no intervals"),
    ] {
        let error = refused(import_hlog(text, Unit::Nanoseconds));
        assert!(error.contains(why), "{error}");
    }
    // The same cookie with V1's number in it.
    let v1 = "#[Histogram log format version 1.2]\n0.1,1.0,2.0,HISTFAAAAB54nJNpmSzMwMDAAAEQuQYA\n";
    assert!(refused(import_hlog(v1, Unit::Nanoseconds)).contains("no readable histogram"));
}

/// As `cyclictest -q -t2 -i1000 -l2000 -h 6` writes it.
const TEXT: &str = "# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000\t000000
000001 000000\t000000
000002 001500\t000000
000003 000460\t000010
000004 000000\t001900
000005 000009\t000065
# Total: 000001969 000001975
# Min Latencies: 00002 00003
# Avg Latencies: 00002 00004
# Max Latencies: 172860 15299
# Histogram Overflows: 00031 00025
# Histogram Overflow at cycle number:
# Thread 0: 00052 00373
# Thread 1: 00032 00050

";

#[test]
fn a_histogram_of_cyclictest_is_a_distribution_a_thread() {
    let (imported, recorded) = import_cyclictest(TEXT).unwrap();
    assert_eq!((imported.damage.len(), imported.stamps, imported.histograms), (0, 0, 2));
    assert!(says(&imported, "no stamps"));
    let [first, second] = recorded.histograms.as_slice() else { panic!("two threads") };
    assert_eq!((first.name.as_str(), second.name.as_str()), ("thread 0", "thread 1"));
    assert_eq!(counts(first), [(2_000, 1500), (3_000, 460), (5_000, 9)]);
    assert_eq!(first.to, [2_999, 3_999, 5_999], "latencies are cut to whole microseconds");
    assert_eq!((first.min, first.max), (Some(2_000), Some(172_860_999)));
    assert_eq!((first.overflow, first.overflow_from), (31, 6_000), "above the histogram, never dropped");
    assert_eq!((second.overflow, second.overflow_from), (25, 6_000));
    assert_eq!(recorded.ending.notes, imported.notes, "the recording says it, too");
}

#[test]
fn the_sum_of_all_threads_is_no_thread() {
    let text = TEXT
        .lines()
        .map(|line| if line.starts_with('0') { format!("{line}\t000042\n") } else { format!("{line}\n") })
        .collect::<String>();
    let (_, recorded) = import_cyclictest(&text).unwrap();
    assert_eq!(recorded.histograms.len(), 2);
}

#[test]
fn a_histogram_that_was_cut_says_what_is_missing() {
    let cut = &TEXT[..TEXT.find("# Total").unwrap()];
    let (imported, recorded) = import_cyclictest(cut).unwrap();
    assert!(imported.damage[0].contains("ends before its summary"), "{:?}", imported.damage);
    assert_eq!((recorded.histograms[0].min, recorded.histograms[0].overflow), (None, 0));
    let (imported, recorded) = import_cyclictest(&cut[..cut.len() - 4]).unwrap();
    assert_eq!(imported.damage[0], "line 8, the last, is truncated");
    assert_eq!(counts(&recorded.histograms[1]), [(3_000, 10), (4_000, 1900)]);
}

/// As `cyclictest -q -t1 -l 100 -h 6 --json=FILE` writes it, shortened.
const JSON: &str = r#"{
  "file_version": 1,
  "cmdline:": "cyclictest -q -t1 -l 100 -h 6 --json=ct.json",
  "rt_test_version:": "2.40",
  "sysinfo": { "sysname": "Linux" },
  "num_threads": 1,
  "resolution_in_ns": 0,
  "thread": {
    "0": {
      "histogram": { "2": 60, "4": 30 },
      "cycles": 100, "min": 2, "max": 3977, "avg": 98.65, "cpu": 1, "node": 0
    }
  }
}"#;

#[test]
fn what_the_json_form_leaves_out_is_above_its_histogram() {
    let (_, recorded) = import_cyclictest(JSON).unwrap();
    let of = &recorded.histograms[0];
    assert_eq!((of.name.as_str(), counts(of)), ("thread 0 (cpu 1)", vec![(2_000, 60), (4_000, 30)]));
    assert_eq!((of.overflow, of.overflow_from, of.max), (10, 5_000, Some(3_977_999)));
    let (_, recorded) = import_cyclictest(&JSON.replace("\"resolution_in_ns\": 0", "\"resolution_in_ns\": 1")).unwrap();
    assert_eq!((recorded.histograms[0].from[0], recorded.histograms[0].to[0]), (2, 2));
    let empty = JSON.replace("\"2\": 60, \"4\": 30", "");
    let of = import_cyclictest(&empty).unwrap().1.histograms.remove(0);
    assert_eq!((of.overflow, of.overflow_from), (100, 2_000), "all of them reach the minimum");
}

#[test]
fn a_list_of_samples_is_counted() {
    let text = "# /dev/cpu_dma_latency set to 0us\nMax CPUs = 2\nThread 0 Interval: 1500\n       0:       0:      70\n\
                \x20      1:       0:      71\n       0:       1:      70\n       0:       2:      99\n";
    let (_, recorded) = import_cyclictest(text).unwrap();
    let of = &recorded.histograms[0];
    assert_eq!(counts(of), [(70_000, 2), (99_000, 1)]);
    assert_eq!((of.min, of.max), (Some(70_000), Some(99_999)));
    assert_eq!(recorded.histograms[1].name, "thread 1");
}

#[test]
fn a_distribution_of_many_buckets_comes_in_pieces_that_add_up() {
    let text: String = (0..150_000).map(|n| format!("0: {n}: {}\n", n * 3)).collect();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("run.mcap");
    let imported = cyclictest::import(Cursor::new(text), Unit::Nanoseconds, &to, &mut |_| {}).unwrap();
    let pieces = recorded::recorded(&to).histograms;
    assert_eq!((imported.histograms, pieces.len()), (1, 2));
    assert_eq!(pieces.iter().map(|piece| piece.count.len()).sum::<usize>(), 150_000);
    assert_eq!((pieces[0].max, pieces[1].max), (Some(449_997), None));
}

#[test]
fn what_has_no_histogram_says_how_to_get_one() {
    for (text, why) in [
        ("T: 0 ( 3431) P:80 I:1000 C: 100000 Min: 5 Act: 10 Avg: 14 Max: 39242\n", "run it with -q -h 1000"),
        ("", "run it with -q -h 1000"),
        ("{\"traceEvents\": []}", "taut import chrome"),
        ("{\"a\": 1}", "it has no \"file_version\""),
        ("{\"file_version\": 2}", "is of file_version 2, where this taut knows 1"),
        ("{\"file_version\": 1}", "missing field `thread`"),
        ("{\"file_version\": 1", "EOF"),
    ] {
        let error = refused(import_cyclictest(text));
        assert!(error.contains(why), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn damage_never_panics(at in any::<prop::sample::Index>(), with in "[ -~\n]{0,8}", cut in any::<prop::sample::Index>()) {
        for text in [TEXT, JSON, log(3).as_str()] {
            let at = at.index(text.len());
            let changed = format!("{}{with}{}", &text[..at], text.get(at + with.len()..).unwrap_or_default());
            let cut = &changed[..cut.index(changed.len() + 1)];
            for text in [&changed, cut] {
                let _ = import_cyclictest(text);
                let _ = import_hlog(text, Unit::Seconds);
            }
        }
    }
}
