//! Small streams made by hand, with the figures they must give, and what holds for every stream.

use std::collections::HashMap;

use proptest::prelude::*;
use taut_analysis::{Analysis, Analyzer, Chain, Config, DeclaredChain, Error, Row};
use taut_clock::{ClockPair, Counter, Ticks};
use taut_recording::{Ending, Histogram, Info, KernelBatch, KernelEvent, Kind, Name, Record, StampBatch};

const APPLIED: &str = "applied";
const REJECTED: &str = "speed_limit";

/// A stream under construction, on CLOCK_MONOTONIC; threads are told apart by tid.
#[derive(Debug, Default)]
struct Stream {
    names: Vec<String>,
    /// (tid, time, message, name id, kind, value)
    stamps: Vec<(i32, u64, u64, u32, Kind, u64)>,
}

impl Stream {
    fn name(&mut self, name: &str) -> u32 {
        let at = self.names.iter().position(|n| n == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        at as u32 + 1
    }

    fn stamp(&mut self, tid: i32, time: u64, message: u64, point: &str) {
        let point = self.name(point);
        self.stamps.push((tid, time, message, point, Kind::Stamp, 0));
    }

    fn outcome(&mut self, tid: i32, time: u64, message: u64, reason: &str) {
        let reason = self.name(reason);
        self.stamps.push((tid, time, message, 0, Kind::Outcome, u64::from(reason)));
    }

    /// One batch a thread, threads in the order given or reversed.
    fn records(&self, reversed: bool) -> Vec<Record> {
        let mut tids: Vec<i32> = self.stamps.iter().map(|s| s.0).collect();
        tids.sort_unstable();
        tids.dedup();
        if reversed {
            tids.reverse();
        }
        let names = self.names.iter().zip(1..).map(|(name, id)| Record::Name(Name { id, name: name.clone() }));
        let batch = |tid: i32| {
            let mut batch = StampBatch { pid: 1, tid, counter: Counter::Monotonic as u8, ..StampBatch::default() };
            let mut own: Vec<_> = self.stamps.iter().filter(|s| s.0 == tid).collect();
            own.sort_by_key(|s| s.1);
            for (_, time, message, point, kind, value) in own {
                batch.ticks.push(*time);
                batch.message_id.push(*message);
                batch.point.push(*point);
                batch.kind.push(*kind as u8);
                batch.value.push(*value);
            }
            Record::Stamps(batch)
        };
        names.chain(tids.into_iter().map(batch)).collect()
    }

    fn analyse_with(&self, config: Config, reversed: bool, end_ns: u64) -> Result<Analysis, Error> {
        self.analyse_by_row(config, reversed, end_ns, &mut |_| {})
    }

    fn analyse_by_row(
        &self,
        config: Config,
        reversed: bool,
        end_ns: u64,
        row: &mut dyn FnMut(Row<'_>),
    ) -> Result<Analysis, Error> {
        let mut analyzer = Analyzer::new(config);
        self.records(reversed).iter().for_each(|record| analyzer.record(record));
        let ending = Ending { end_monotonic_ns: end_ns, ..Ending::default() };
        analyzer.finish_by_row(Info::default(), Some(ending), Vec::new(), 0, &mut |r: Row<'_>| row(r))
    }

    /// The chains, an hour after the last stamp.
    fn chains(&self) -> Vec<Chain> {
        self.analyse_with(Config::default(), false, 3_600_000_000_000).unwrap().chains
    }
}

fn point_names(chain: &Chain) -> Vec<&str> {
    chain.points.iter().map(|p| p.name.as_str()).collect()
}

fn balance(chain: &Chain) -> u64 {
    let o = &chain.outcomes;
    o.applied + o.in_flight + o.all_dropped() + o.unexplained
}

/// The source report: 3021 commands at 50 Hz, the first of 46.8 ms, 869 written, the rest refused.
#[test]
fn the_shape_of_the_source_report() {
    let points = [
        "publish.pre_read",
        "publish.got_state",
        "ssm.deserialized",
        "sysstate.pre_callback",
        "orch.cb_enter",
        "orch.cb_converted",
        "orch.cb_pre_serialize",
        "follower.command_parsed",
        "follower.command_pre_hardware_write",
        "follower.command_pre_lock",
        "follower.command_lock_acquired",
        "follower.command_applied",
    ];
    let mut stream = Stream::default();
    let mut applied = 0;
    for message in 0..3021u64 {
        // 869 of 3021, evenly spread.
        let goes_through = (message + 1) * 869 / 3021 > applied;
        let start = 1_000_000 + message * 20_000_000;
        let passed = if goes_through { points.len() } else { 9 };
        let mut now = start;
        for (at, point) in points[..passed].iter().enumerate() {
            now += if at == 0 { 0 } else { 100_000 + message * 7919 % 1000 };
            now += if message == 0 && at == 1 { 45_300_000 } else { 0 };
            stream.stamp(1 + at as i32 / 4, now, message, point);
        }
        applied += u64::from(goes_through);
        stream.outcome(3, now + 8_000, message, if goes_through { APPLIED } else { REJECTED });
    }
    let chains = stream.chains();
    let [chain] = chains.as_slice() else { panic!("one chain, not {}", chains.len()) };
    assert_eq!(point_names(chain), points);
    assert_eq!(chain.messages, 3021);
    assert_eq!((chain.outcomes.applied, chain.outcomes.unexplained), (869, 0));
    assert_eq!(chain.outcomes.dropped, [(REJECTED.to_owned(), 2152)]);
    let startup = chain.startup.as_ref().expect("a slow first command");
    assert_eq!(startup.messages, 1);
    assert!(startup.max_ns > 45_000_000);
    assert!(chain.whole_life.distribution.max_ns < Some(2_000_000), "start-up is apart");
    assert_eq!(chain.whole_life.distribution.n, 3020);
    assert!(chain.end_to_end.distribution.n >= 868);
    assert_eq!(chain.hops.len(), 11);
}

#[test]
fn two_chains_in_one_recording_stay_two() {
    let mut stream = Stream::default();
    for message in 0..20 {
        stream.stamp(1, message * 1000, message, "a");
        stream.stamp(1, message * 1000 + 10, message, "b");
        stream.stamp(2, message * 1000, 1_000_000 + message, "x");
        stream.stamp(2, message * 1000 + 30, 1_000_000 + message, "y");
    }
    let mut names: Vec<String> = stream.chains().into_iter().map(|c| c.name).collect();
    names.sort();
    assert_eq!(names, ["a → b", "x → y"]);
}

#[test]
fn a_detour_of_a_minority_is_a_branch() {
    let mut stream = Stream::default();
    for message in 0..100 {
        stream.stamp(1, message * 1000, message, "in");
        if message % 5 == 0 {
            stream.stamp(1, message * 1000 + 5, message, "retry");
        }
        stream.stamp(1, message * 1000 + 10, message, "out");
    }
    let chain = &stream.chains()[0];
    assert_eq!(point_names(chain), ["in", "out"]);
    assert_eq!(
        (chain.branches[0].point.as_str(), chain.branches[0].after.as_str(), chain.branches[0].messages),
        ("retry", "in", 20)
    );
    assert_eq!(chain.hops[0].delay.distribution.max_ns, Some(10));
}

#[test]
fn an_inversion_within_the_clocks_error_takes_no_time() {
    let mut stream = Stream::default();
    for message in 0..100 {
        let start = 1000 + message * 1000;
        stream.stamp(1, start, message, "a");
        stream.stamp(2, if message % 4 == 0 { start - 60 } else { start + 40 }, message, "b");
        stream.stamp(2, start + 100, message, "c");
    }
    let chain = &stream.chains()[0];
    assert_eq!(point_names(chain), ["a", "b", "c"]);
    assert_eq!(chain.hops[0].delay.distribution.min_ns, Some(0));
    assert_eq!(chain.end_to_end.distribution.max_ns, Some(100));
}

/// Killed in its first second, or damaged: ticks were taken as nanoseconds.
#[test]
fn stamps_of_a_counter_that_was_compared_once_have_no_time_and_are_said() {
    let analyse = |readings: u64, counter: Counter| {
        let mut analyzer = Analyzer::new(Config::default());
        for n in 0..readings {
            let pair = ClockPair { ticks: Ticks(n * 1000), monotonic_ns: n * 2000, realtime_ns: 0, window_ticks: 1 };
            analyzer.record(&Record::Clock(Counter::Tsc, pair));
        }
        for (tid, counter) in [(1, Counter::Monotonic), (2, counter)] {
            let mut stream = Stream::default();
            for message in 0..10 {
                stream.stamp(tid, message * 1000, message + 100 * tid as u64, "a");
                stream.stamp(tid, message * 1000 + 500, message + 100 * tid as u64, "b");
            }
            for mut record in stream.records(false) {
                if let Record::Stamps(batch) = &mut record {
                    batch.counter = counter as u8;
                }
                analyzer.record(&record);
            }
        }
        let ending = Ending { end_monotonic_ns: 3_600_000_000_000, ..Ending::default() };
        let analysis = analyzer.finish(Info::default(), Some(ending), Vec::new(), 0).unwrap();
        let chain = &analysis.chains[0];
        let notes = analysis.notes.join("\n");
        assert_eq!(notes.contains("its stamps have no time and are missing"), !analysis.damage.is_empty(), "{notes}");
        ((chain.messages, chain.end_to_end.distribution.max_ns), analysis.damage)
    };
    assert_eq!(analyse(2, Counter::Tsc), ((20, Some(1000)), vec![]));
    for readings in [0, 1] {
        let (figures, damage) = analyse(readings, Counter::Tsc);
        assert_eq!(figures, (10, Some(500)));
        assert!(damage.len() == 1 && damage[0].starts_with("20 stamps have no time"), "{damage:?}");
        assert_eq!(analyse(readings, Counter::Monotonic), ((20, Some(500)), vec![]));
    }
}

#[test]
fn deadlines_are_counted_and_unknown_points_told() {
    let mut stream = Stream::default();
    for message in 0..10 {
        stream.stamp(1, message * 1000, message, "read");
        stream.stamp(1, message * 1000 + 10 * (message + 1), message, "write");
    }
    let declared = |points: [&str; 2]| Config {
        chains: vec![DeclaredChain {
            name: "loop".into(),
            points: points.map(str::to_owned).to_vec(),
            deadline_ns: Some(70),
        }],
        ..Config::default()
    };
    let analysis = stream.analyse_with(declared(["read", "write"]), false, 1_000_000).unwrap();
    assert_eq!(analysis.chains[0].missed, Some(3));
    let error = stream.analyse_with(declared(["read", "wrte"]), false, 1_000_000).unwrap_err();
    assert!(error.to_string().contains("did you mean \"write\"?"), "{error}");
    assert!(matches!(Stream::default().analyse_with(Config::default(), false, 1), Err(Error::Empty { .. })));
}

#[test]
fn kernel_events_alone_are_what_threads_did_and_no_message() {
    let mut analyzer = Analyzer::new(Config::default());
    let switch = |time_ns: u64, tid: i32, next: i64| (time_ns, KernelEvent::SchedSwitch as u8, tid, next);
    let rows = [switch(1_000, 0, 7), switch(5_000, 7, 0)];
    analyzer.record(&Record::Kernel(KernelBatch {
        cpu: 0,
        time_ns: rows.iter().map(|row| row.0).collect(),
        event: rows.iter().map(|row| row.1).collect(),
        flags: vec![0; 2],
        tid: rows.iter().map(|row| row.2).collect(),
        arg0: rows.iter().map(|row| row.3).collect(),
        arg1: vec![0, 1],
        arg2: vec![0; 2],
    }));
    let mut states = Vec::new();
    let mut row = |row: Row<'_>| {
        if let Row::State(state) = row {
            states.push((state.tid, state.state, state.duration_ns));
        }
    };
    let analysis = analyzer.finish_by_row(Info::default(), None, Vec::new(), 0, &mut row).unwrap();
    assert_eq!(states, [(7, "running", 4_000)]);
    assert!(analysis.chains.is_empty() && analysis.loops.is_empty());
}

#[test]
fn notes_say_what_does_not_fit() {
    let mut stream = Stream::default();
    for message in 0..20u64 {
        let at = message * 1_000_000;
        stream.stamp(1, at, message, "read");
        // The last one's points come in the other order.
        let (first, second) = if message == 19 { ("write", "convert") } else { ("convert", "write") };
        stream.stamp(1, at + 10_000, message, first);
        stream.stamp(1, at + 50_000, message, second);
    }
    stream.outcome(1, 5, 999, APPLIED);
    let analysis = stream.analyse_with(Config::default(), false, 100_000_000).unwrap();
    assert_eq!(analysis.chains[0].hops[1].inverted, 1);
    let expected = [
        "1 outcomes were given to messages that were never stamped",
        "1 messages reached write before convert, by up to 0.040 ms, and count as 0 ns there: they took another way, two \
         chains use the same ids at once, or a clock is wrong",
    ];
    assert_eq!(analysis.notes.iter().filter(|n| !n.contains("recorder")).collect::<Vec<_>>(), expected);
}

#[test]
fn a_point_of_no_chain_has_its_periods_and_gaps() {
    let mut stream = Stream::default();
    for message in 0..100u64 {
        stream.stamp(1, message * 1_000_000, message, "read");
        stream.stamp(1, message * 1_000_000 + 1000, message, "write");
        // Messages of another kind, of which every tenth is missing, and one comes late.
        if message % 10 != 5 {
            let late = if message == 50 { 600_000 } else { 0 };
            stream.stamp(2, message * 1_000_000 + late, 1 << 40 | message, "camera");
        }
    }
    let analysis = stream.analyse_with(Config::default(), false, 1_000_000_000).unwrap();
    assert_eq!((analysis.chains.len(), analysis.points.len()), (1, 1));
    let camera = &analysis.points[0];
    assert_eq!((camera.name.as_str(), camera.messages, camera.gaps), ("camera", 90, 11));
    assert_eq!(camera.period.max_ns, Some(2_000_000));
    assert!(analysis.chains[0].points.iter().all(|point| point.gaps == 0));
    assert!(analysis.notes.iter().all(|note| !note.contains("no chain")), "{:?}", analysis.notes);
}

#[test]
fn what_an_importer_found_is_a_note() {
    let mut stream = Stream::default();
    stream.stamp(1, 5, 1, "read");
    let mut analyzer = Analyzer::new(Config::default());
    stream.records(false).iter().for_each(|record| analyzer.record(record));
    let ending = Ending { notes: vec!["another time base".into()], ..Ending::default() };
    let analysis = analyzer.finish(Info::default(), Some(ending), Vec::new(), 0).unwrap();
    assert!(analysis.notes.contains(&"another time base".to_owned()));
}

#[test]
fn a_recording_may_hold_distributions_alone() {
    let mut analyzer = Analyzer::new(Config::default());
    let (from, to, count) = (vec![0, 1000], vec![999, 1999], vec![50, 50]);
    analyzer.record(&Record::Histogram(Histogram { name: "cpu0".into(), from, to, count, ..Histogram::default() }));
    let analysis = analyzer.finish(Info::default(), None, Vec::new(), 0).unwrap();
    assert_eq!((analysis.histograms[0].n, analysis.chains.len()), (100, 0));
}

#[test]
fn young_messages_are_in_flight_and_old_ones_unexplained() {
    let mut stream = Stream::default();
    for message in 0..10u64 {
        let start = message * 50_000_000;
        stream.stamp(1, start, message, "a");
        stream.stamp(1, start + 1000, message, "b");
        if message != 2 && message != 9 {
            stream.outcome(1, start + 1001, message, APPLIED);
        }
    }
    stream.outcome(1, 200_000_000, 3, REJECTED);
    let analysis = stream.analyse_with(Config::default(), false, 460_000_000).unwrap();
    let o = &analysis.chains[0].outcomes;
    assert_eq!((o.applied, o.in_flight, o.unexplained, o.double), (8, 1, 1, 1));
}

/// More is sent than is handled: what waits at the end did not vanish, however long it has waited. What a dead receiver left did.
#[test]
fn what_waits_in_a_queue_at_the_end_is_in_flight() {
    for receives_until in [1000, 600] {
        let mut stream = Stream::default();
        for message in 0..1000u64 {
            stream.stamp(1, message * 1_000_000, message, "sent");
            let taken_ns = message * 2_000_000;
            if taken_ns < receives_until * 1_000_000 && message != 7 {
                stream.stamp(2, taken_ns + 100, message, "taken");
            }
        }
        let o = &stream.analyse_with(Config::default(), false, 1_000_000_000).unwrap().chains[0].outcomes;
        let expected = if receives_until == 1000 { (499, 500, 1) } else { (299, 100, 601) };
        assert_eq!((o.applied, o.in_flight, o.unexplained), expected, "until {receives_until}");
    }
}

/// Messages over four points, ending anywhere, with any outcome or none, at any pace.
fn streams() -> impl Strategy<Value = Stream> {
    let message = (1usize..=4, proptest::collection::vec(1u64..5_000, 4), 0u8..3, 1u64..20_000);
    proptest::collection::vec(message, 1..300).prop_map(|messages| {
        let mut stream = Stream::default();
        let mut start = 1;
        for (id, (passed, steps, outcome, gap)) in messages.into_iter().enumerate() {
            start += gap;
            let mut now = start;
            for (at, point) in ["a", "b", "c", "d"][..passed].iter().enumerate() {
                now += steps[at];
                stream.stamp(at as i32 + 1, now, id as u64, point);
            }
            match outcome {
                0 => {}
                1 => stream.outcome(9, now + 1, id as u64, APPLIED),
                _ => stream.outcome(9, now + 1, id as u64, REJECTED),
            }
        }
        stream
    })
}

proptest! {
    #[test]
    fn outcomes_balance_and_shares_are_whole(stream in streams(), end_ns in 0u64..400_000_000) {
        let analysis = stream.analyse_with(Config::default(), false, end_ns).unwrap();
        for chain in &analysis.chains {
            prop_assert_eq!(balance(chain), chain.messages);
            let shares: Vec<f64> = chain.hops.iter().filter_map(|hop| hop.tail_share).collect();
            if !shares.is_empty() {
                prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn rows_say_what_the_figures_say(stream in streams(), end_ns in 0u64..400_000_000) {
        let (mut outcomes, mut ways, mut hops) = (HashMap::new(), HashMap::new(), HashMap::new());
        let analysis = stream.analyse_by_row(Config::default(), false, end_ns, &mut |row| match row {
            Row::Message(message) => {
                *outcomes.entry((message.chain.to_owned(), message.outcome.to_owned())).or_insert(0) += 1;
                let warm = message.way_ns.filter(|_| !message.is_startup);
                ways.entry(message.chain.to_owned()).or_insert(Vec::new()).extend(warm);
            }
            Row::Hop(hop) if !hop.is_startup => {
                let key = (hop.chain.to_owned(), hop.from.to_owned(), hop.to.to_owned());
                hops.entry(key).or_insert(Vec::new()).push(hop.duration_ns);
            }
            _ => {}
        }).unwrap();
        for chain in &analysis.chains {
            let count = |word: &str| outcomes.get(&(chain.name.clone(), word.to_owned())).copied().unwrap_or(0);
            let o = &chain.outcomes;
            prop_assert_eq!((count(APPLIED), count("in_flight"), count("unexplained")), (o.applied, o.in_flight, o.unexplained));
            prop_assert!(o.dropped.iter().all(|(reason, n)| count(reason) == *n));
            let rows = |all: Option<&Vec<u64>>| {
                (all.map_or(0, Vec::len) as u64, all.and_then(|all| all.iter().max().copied()))
            };
            let figures = |d: &taut_analysis::Delay| (d.distribution.n, d.distribution.max_ns.filter(|_| d.distribution.n > 0));
            prop_assert_eq!(rows(ways.get(&chain.name)), figures(&chain.end_to_end));
            for hop in &chain.hops {
                let key = (chain.name.clone(), hop.from.clone(), hop.to.clone());
                prop_assert_eq!(rows(hops.get(&key)), figures(&hop.delay));
            }
        }
    }

    #[test]
    fn hops_add_up_to_the_whole_way(steps in proptest::collection::vec((0u64..2_000, 0u64..2_000, 0u64..100), 2..200)) {
        let mut stream = Stream::default();
        for (id, (one, two, inverted)) in (0u64..).zip(&steps) {
            let start = 1_000_000 + id * 100_000;
            stream.stamp(1, start, id, "a");
            stream.stamp(2, start + 200 + one - inverted, id, "b");
            stream.stamp(1, start + 200 + one + two, id, "c");
        }
        let chain = &stream.chains()[0];
        let sum = |delay: &taut_analysis::Delay| delay.distribution.mean_ns.unwrap_or(0.0) * delay.distribution.n as f64;
        let hops: f64 = chain.hops.iter().map(|hop| sum(&hop.delay)).sum();
        prop_assert!((hops - sum(&chain.end_to_end)).abs() < 1e-3 * hops.max(1.0));
    }

    #[test]
    fn the_order_of_the_threads_does_not_matter(stream in streams()) {
        let one = stream.analyse_with(Config::default(), false, 1_000_000_000).unwrap();
        let other = stream.analyse_with(Config::default(), true, 1_000_000_000).unwrap();
        prop_assert_eq!(format!("{:?}", one.chains), format!("{:?}", other.chains));
    }
}
