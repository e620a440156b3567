//! HdrHistogram's own logs give the numbers that HdrHistogram gives: those of its published tests, and of its doubles.

mod recorded;

use std::path::Path;

use recorded::{Recorded, imported};
use taut_analysis::{Analyzer, Config, Quantile};
use taut_import::{Unit, hlog};
use taut_recording::{Histogram, Info, Record};

fn log(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hdrhistogram");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn read(text: &str, unit: Unit) -> Recorded {
    let (imported, recorded) = imported(|to| hlog::import(text.as_bytes(), unit, to, &mut |_| {})).unwrap();
    assert_eq!(imported.damage, Vec::<String>::new());
    recorded
}

/// The log's intervals that begin from `from` to `to` seconds after its start, and its comments.
fn part(text: &str, from: f64, to: f64) -> String {
    let is_in = |line: &&str| match line.split(',').next().and_then(|start| start.parse::<f64>().ok()) {
        Some(start) => (from..=to).contains(&start),
        None => true,
    };
    text.lines().filter(is_in).map(|line| format!("{line}\n")).collect()
}

/// As a report shows it.
fn shown(of: &Histogram) -> taut_analysis::Histogram {
    let mut analyzer = Analyzer::new(Config::default());
    analyzer.record(&Record::Histogram(of.clone()));
    analyzer.finish(Info::default(), None, Vec::new(), 0).unwrap().histograms.remove(0)
}

fn at_most(of: Option<Quantile>) -> u64 {
    match of {
        Some(Quantile::AtMost(value)) => value,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_numbers_are_those_of_hdrhistograms_published_tests() {
    // HistogramLogReaderWriterTest.java: file, range of seconds, intervals, total, 99.9th percentile, maximum.
    const WHOLE: f64 = f64::MAX;
    for (name, from, to, intervals, total, p999, max) in [
        ("jHiccup-2.0.1.logV0.hlog", 0.0, WHOLE, 81, 61_256, 1_510_998_015, 1_569_718_271),
        ("jHiccup-2.0.1.logV0.hlog", 20.0, 45.0, 25, 18_492, 459_007, 623_103),
        ("jHiccup-2.0.1.logV0.hlog", 46.0, 80.0, 34, 25_439, 1_209_008_127, 1_234_173_951),
        ("jHiccup-2.0.6.logV1.hlog", 0.0, WHOLE, 88, 65_964, 1_829_765_119, 1_888_485_375),
        ("jHiccup-2.0.6.logV1.hlog", 5.0, 20.0, 15, 11_213, 1_019_740_159, 1_032_323_071),
        ("jHiccup-2.0.6.logV1.hlog", 50.0, 80.0, 29, 22_630, 1_871_708_159, 1_888_485_375),
        ("jHiccup-2.0.7S.logV2.hlog", 0.0, WHOLE, 62, 48_761, 1_745_879_039, 1_796_210_687),
        ("jHiccup-2.0.7S.logV2.hlog", 5.0, 20.0, 15, 11_664, 1_536_163_839, 1_544_552_447),
        ("jHiccup-2.0.7S.logV2.hlog", 40.0, 60.0, 20, 15_830, 1_779_433_471, 1_796_210_687),
    ] {
        let recorded = read(&part(&log(name), from, to), Unit::Nanoseconds);
        let [of] = recorded.histograms.as_slice() else { panic!("{name}: one tag") };
        let of = shown(of);
        assert_eq!((recorded.rows.len(), of.n), (intervals, total), "{name}, {from} to {to} s");
        assert_eq!((at_most(of.p999), of.max), (p999, Some(max)), "{name}, {from} to {to} s");
    }
}

#[test]
fn a_tag_holds_what_its_lines_hold() {
    // tagged-Log has each interval twice: without a tag, and with tag A.
    let recorded = read(&log("tagged-Log.logV2.hlog"), Unit::Nanoseconds);
    let [none, a] = recorded.histograms.as_slice() else { panic!("two tags") };
    assert_eq!((a.name.as_str(), none.name.as_str()), ("A", "no tag"));
    assert_eq!(shown(a).n + shown(none).n, 32_290);
    assert_eq!((&a.from, &a.to, &a.count, a.max), (&none.from, &none.to, &none.count, none.max));
}

#[test]
fn doubles_are_what_hdrhistogram_reads_from_them() {
    // What Doubles.java printed: minimum, percentiles 50, 90, 99 and 99.9, maximum, in milliseconds.
    let printed = [
        (
            "three",
            [
                0.030548095703125,
                0.1979827880859375,
                0.3774261474609375,
                0.6347503662109375,
                0.9174652099609375,
                1.9033203124999998,
            ],
        ),
        (
            "two",
            [0.03125, 0.201263427734375, 0.379119873046875, 0.644989013671875, 0.918426513671875, 1.4228515624999998],
        ),
        ("wide", [0.0, 0.180023193357556, 6.755371093748181, 282.1406249999982, 5324.999999999998, 48919.99999999999]),
    ];
    let recorded = read(&log("doubles.hlog"), Unit::Milliseconds);
    assert_eq!((recorded.histograms.len(), recorded.rows.len()), (3, 18));
    for (of, (tag, milliseconds)) in recorded.histograms.iter().zip(printed) {
        let expected = milliseconds.map(|ms| (ms * 1e6_f64).round() as u64);
        let of = shown(of);
        let found =
            [of.min.unwrap(), at_most(of.p50), at_most(of.p90), at_most(of.p99), at_most(of.p999), of.max.unwrap()];
        assert_eq!((of.name.as_str(), of.n, found), (tag, 12_000, expected));
    }
}

#[test]
fn integers_and_doubles_of_one_tag_do_not_add_up() {
    let doubles = log("doubles.hlog");
    let double = doubles.lines().find(|line| line.starts_with("Tag=two,")).unwrap();
    let text = format!("{}{}\n", log("jHiccup-2.0.1.logV0.hlog"), double.replace("Tag=two,", ""));
    let (imported, _) = imported(|to| hlog::import(text.as_bytes(), Unit::Nanoseconds, to, &mut |_| {})).unwrap();
    assert!(imported.damage[0].contains("holds doubles, and those of its tag before hold integers"), "{imported:?}");
}
