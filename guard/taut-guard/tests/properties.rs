//! What must hold for any stream: only the robot's own motion decides, more speed never looks like less, and numbers that
//! are none are faults.

mod stream;

use proptest::prelude::*;
use stream::{ALL_COMBINED, CLEAN, MS, Motion, PERIOD_NS, Stream, parameters};
use taut_guard::{AdmissionCounters, Cause, Error, Events, Frame, Parameters, SpeedGuard, State, TimeBase, Width};

fn guard(parameters: Parameters) -> SpeedGuard {
    SpeedGuard::new(parameters).unwrap()
}

/// Never stale, so that only speed decides.
fn patient() -> Parameters {
    Parameters { stale_ns: 10_000_000_000, age_max_ns: 10_000_000_000, ..parameters(TimeBase::Source) }
}

fn frame(n: u64, tcp_mm: [f64; 3]) -> Frame {
    let t = n * PERIOD_NS;
    Frame { sequence: (n % 256) as u32, source_ns: Some(t as i64), arrival_ns: t, tcp_mm, ..Frame::default() }
}

/// Positions of a walk whose steps are given as shares of the limit.
fn walk(steps: &[f64]) -> Vec<Frame> {
    let mut x = 0.0;
    let mut at = |n: usize, step: f64| {
        x += step * 10.0;
        frame(n as u64, [x, 0.0, 0.0])
    };
    steps.iter().enumerate().map(|(n, step)| at(n, *step)).collect()
}

fn trips(frames: &[Frame], parameters: Parameters) -> bool {
    let mut guard = guard(parameters);
    frames.iter().any(|frame| guard.update(frame).state == State::Overspeed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Delaying, duplicating and reordering arrivals, up to a window deep, never changes whether it trips. With N of M it
    /// never hides a trip; it may show one that a sample still on its way would have parted.
    #[test]
    fn arrival_never_changes_the_verdict(
        steps in proptest::collection::vec(-1.3f64..1.3, 40..80),
        delays in proptest::collection::vec(0u64..140, 80),
        doubled in proptest::collection::vec(proptest::bool::weighted(0.1), 80),
        count in 1u32..=2,
    ) {
        let parameters = Parameters { trip_count: count, trip_of: count, joint_count: 0, ..patient() };
        let sent = walk(&steps);
        let mut heard: Vec<Frame> = Vec::new();
        for (n, frame) in sent.iter().enumerate() {
            let arrival_ns = frame.arrival_ns + delays[n] * MS;
            heard.push(Frame { arrival_ns, ..*frame });
            if doubled[n] {
                heard.push(Frame { arrival_ns: arrival_ns + 30 * MS, ..*frame });
            }
        }
        // The first frame comes first: the guard cannot know of one before it.
        heard.sort_by_key(|frame| if frame.sequence == 0 { 0 } else { frame.arrival_ns });
        heard.iter_mut().filter(|frame| frame.sequence == 0).for_each(|frame| frame.arrival_ns = 0);
        let (by_arrival, by_source) = (trips(&heard, parameters), trips(&sent, parameters));
        prop_assert!(by_arrival == by_source || count > 1 && by_arrival);
    }

    /// The theorem, at its edge: full speed, every stamp wrong by e and every position by p in the worst sense, clocks
    /// apart by the drift. Nothing trips, and yet the bound comes close.
    #[test]
    fn no_error_within_e_and_p_ever_trips(
        errors in proptest::collection::vec((prop_oneof![Just(-1.0f64), Just(1.0), -1.0f64..1.0], prop_oneof![Just(-1.0f64), Just(1.0)]), 40..80),
        drift in prop_oneof![Just(-200e-6f64), Just(200e-6), Just(0.0)], backwards: bool, path_length: bool, e_ns in 0u64..2_000_000,
    ) {
        let parameters = Parameters { joint_count: 0, path_length, source_error_ns: e_ns, ..patient() };
        let mut guard = guard(parameters);
        let mut largest = 0f64;
        for (n, (stamp, position)) in errors.iter().enumerate() {
            let true_s = n as f64 * 0.01;
            let way = if backwards { -1000.0 } else { 1000.0 } * true_s;
            // The robot's second is short by the drift, and whole nanoseconds are rounded towards the truth.
            let source_ns = 1e9 + true_s * 1e9 * (1.0 - drift) + (stamp * e_ns as f64).trunc();
            let sent = Frame { source_ns: Some(source_ns.round() as i64), ..frame(n as u64, [way + position * 0.049999, 0.0, 0.0]) };
            largest = largest.max(guard.update(&sent).ratio);
        }
        prop_assert!(guard.trip().is_none(), "{:?}", guard.trip());
        prop_assert!(largest <= 1.0 + 1e-9 && largest > 0.9, "{largest}");
    }

    /// Scaled up, a motion that trips still trips, and its bound grows.
    #[test]
    fn faster_never_looks_slower(steps in proptest::collection::vec(-1.1f64..1.1, 20..60), factor in 1.0f64..3.0) {
        let faster: Vec<f64> = steps.iter().map(|step| step * factor).collect();
        let parameters = Parameters { joint_count: 0, ..patient() };
        let (mut slow_guard, mut fast_guard) = (guard(parameters), guard(parameters));
        for (slow, fast) in walk(&steps).iter().zip(&walk(&faster)) {
            prop_assert!(slow_guard.update(slow).ratio <= fast_guard.update(fast).ratio + 1e-12);
        }
        // A lower limit trips on whatever a higher one trips on.
        let lower = Parameters { tcp_limit_mm_s: Some(1000.0 / factor), ..parameters };
        prop_assert!(!trips(&walk(&steps), parameters) || trips(&walk(&steps), lower));
    }

    /// Any frame at all: no panic, and what is no number is a fault.
    #[test]
    fn any_frame_is_survived(
        frames in proptest::collection::vec((any::<u32>(), any::<Option<i64>>(), any::<u64>(), any::<f64>(), any::<Option<f64>>()), 1..60),
        base in 0usize..3, modulus in prop_oneof![Just(0u64), Just(256), Just(65536), Just(1 << 32)],
    ) {
        let base = [TimeBase::Source, TimeBase::Sequence, TimeBase::Arrival][base];
        let modulus = if base == TimeBase::Sequence { modulus.max(16) } else { modulus };
        let mut guard = guard(Parameters { sequence_modulus: modulus, ..parameters(base) });
        for (sequence, source_ns, arrival_ns, x, reported_mm_s) in frames {
            let frame = Frame { sequence, source_ns, arrival_ns, tcp_mm: [x, 0.0, 0.0], reported_mm_s, ..Frame::default() };
            let verdict = guard.update(&frame);
            guard.tick(arrival_ns);
            prop_assert!(x.is_finite() || verdict.state.is_latched());
        }
    }
}

/// A guard whose counters are full after 255 gives the verdicts of one whose counters are not.
#[test]
fn full_counters_change_no_verdict_and_never_wrap() {
    let parameters = Parameters { stale_ns: 5_000_000_000, age_max_ns: 5_000_000_000, ..parameters(TimeBase::Source) };
    let mut narrow = SpeedGuard::<u8>::new(parameters).unwrap();
    let mut wide = SpeedGuard::<u64>::new(parameters).unwrap();
    let mut stream = Stream::new(ALL_COMBINED, Motion::steady(0.95), 77);
    let mut last: Vec<u64> = narrow.counters().values().collect();
    for n in 0..400_000u64 {
        let mut frame = stream.hear().frame;
        if n % 997 == 0 {
            frame.source_ns = None;
        }
        assert_eq!(narrow.update(&frame), wide.update(&frame), "frame {n}");
        narrow.count_parser_resync(n % 3);
        wide.count_parser_resync(n % 3);
        let values: Vec<u64> = narrow.counters().values().collect();
        assert!(values.iter().zip(&last).all(|(now, before)| now >= before));
        assert!(values.iter().zip(wide.counters().values()).all(|(narrow, wide)| *narrow == wide.min(255)));
        last = values;
    }
    let full = wide.counters().values().filter(|count| *count > 255).count();
    println!("{full} of {} counters were full", AdmissionCounters::<u8>::NAMES.len());
    assert!(full >= 9);
}

/// What makes each counter of the guard count once more, step by step. What it takes beside, the parameters have.
fn provoke<W: Width>(counter: &str, n: u64, guard: &mut SpeedGuard<W>) {
    let still = |n: u64| frame(n, [0.0; 3]);
    let stamped = |n: u64, source_ns: u64| Frame { source_ns: Some(source_ns as i64), ..still(n) };
    let next = match counter {
        "bad_frames" => return guard.count_bad_frame(),
        "parser_resync_octets" => return guard.count_parser_resync(1),
        "host_clock_back" => {
            guard.tick(100 * MS);
            guard.tick(99 * MS);
            return;
        }
        "frames" | "new_frames" => still(n),
        "duplicates" => still(n / 2),
        // Every other frame comes a period late …
        "late_inserted" => Frame { arrival_ns: n * PERIOD_NS, ..still(n ^ 1) },
        // … or later than the window is long.
        "late_discarded" if n > 40 && n % 2 == 1 => Frame { arrival_ns: n * PERIOD_NS, ..still(n - 40) },
        "late_discarded" => still(n),
        "lost" => still(2 * n),
        "resyncs" | "sequence_jumps" => Frame { sequence: (100 * n % 256) as u32, ..still(n) },
        "ambiguous_wraps" => still(130 * n),
        "clock_steps" => stamped(n, n * 3_600_000_000_000),
        // Each odd stamp is off by a little more than the one before.
        "residuals_over_e" => stamped(n, n * PERIOD_NS + n % 2 * 2 * n),
        "receiver_stalls" => Frame { frames_in_read: 2, ..still(n) },
        "late_data" => Frame { arrival_ns: n * PERIOD_NS + if n > 0 { 300 * MS } else { 0 }, ..still(n) },
        // Ten frames at rest, ten at 0.9 of the limit.
        "timing_suspects" => frame(n, [9.0 * (n / 20 * 10 + (n % 20).saturating_sub(10)) as f64, 0.0, 0.0]),
        "disagreements" => Frame { reported_mm_s: Some(900.0), ..still(n) },
        other => panic!("nothing here makes {other} count"),
    };
    guard.update(&next);
}

/// Each counter is driven past 255: at every step the narrow one is the wide one, or full.
#[test]
fn every_counter_of_the_guard_stops_at_its_maximum() {
    for (at, counter) in AdmissionCounters::<u8>::NAMES.iter().enumerate() {
        let parameters = Parameters {
            source_error_ns: if *counter == "residuals_over_e" { 0 } else { MS },
            drift_ppm: if *counter == "residuals_over_e" { 0 } else { 200 },
            age_max_ns: if *counter == "late_data" { 100 * MS } else { patient().age_max_ns },
            acceleration_max_mm_s2: if *counter == "timing_suspects" { 2000.0 } else { 0.0 },
            joint_count: 0,
            ..patient()
        };
        let mut narrow = SpeedGuard::<u8>::new(parameters).unwrap();
        let mut wide = SpeedGuard::<u64>::new(parameters).unwrap();
        let count = |guard: &SpeedGuard<u64>| guard.counters().values().nth(at).unwrap();
        for n in 0..20_000 {
            provoke(counter, n, &mut narrow);
            provoke(counter, n, &mut wide);
            let mut both = narrow.counters().values().zip(wide.counters().values());
            assert!(both.all(|(narrow, wide)| narrow == wide.min(255)), "{counter}, step {n}");
            assert_eq!((narrow.state(), narrow.trip()), (wide.state(), wide.trip()), "{counter}, step {n}");
            if count(&wide) > 300 {
                break;
            }
        }
        assert!(count(&wide) > 300, "{counter}: {}", count(&wide));
    }
}

/// In every field, alone, from the first frame on and in the midst.
#[test]
fn a_number_that_no_robot_sends_is_a_fault_in_every_field() {
    let tiny = f64::MIN_POSITIVE / 2.0;
    let sane = || frame(20, [0.0; 3]);
    let mut broken: Vec<Frame> = Vec::new();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, tiny, -tiny] {
        for axis in 0..3 {
            let mut odd = sane();
            odd.tcp_mm[axis] = bad;
            broken.push(odd);
        }
        for joint in 0..taut_guard::MAX_JOINTS {
            let mut odd = sane();
            odd.joints_rad[joint] = bad;
            broken.push(odd);
        }
        broken.push(Frame { reported_mm_s: Some(bad), ..sane() });
    }
    broken.push(Frame { reported_mm_s: Some(-1.0), ..sane() });
    broken.push(Frame { source_ns: Some(-1), ..sane() });
    broken.push(Frame { arrival_ns: u64::MAX, ..sane() });
    for odd in broken {
        for before in [0, 20] {
            let mut guard = after(parameters(TimeBase::Source), (0..before).map(|n| frame(n, [0.0; 3])));
            assert_eq!(guard.update(&odd).state, State::Fault, "{odd:?}");
            assert_eq!(guard.trip().map(|trip| trip.cause), Some(Cause::NotFinite));
        }
    }
}

/// Runs `frames` and gives the guard.
fn after(parameters: Parameters, frames: impl IntoIterator<Item = Frame>) -> SpeedGuard {
    let mut guard = guard(parameters);
    frames.into_iter().for_each(|frame| _ = guard.update(&frame));
    guard
}

#[test]
fn an_overspeed_is_latched_keeps_its_frames_and_is_reset_by_hand_only() {
    let parameters = parameters(TimeBase::Source);
    let speed = |n: u64| if (40..50).contains(&n) { 15.0 } else { 3.0 };
    let frames = (0..200u64).scan(0.0, |x, n| {
        *x += speed(n);
        Some(frame(n, [*x, 0.0, 0.0]))
    });
    let mut guard = guard(parameters);
    let mut tripped_at = None;
    for (n, frame) in frames.enumerate() {
        let verdict = guard.update(&frame);
        if verdict.state == State::Overspeed {
            tripped_at.get_or_insert(n);
        }
        if tripped_at.is_some() {
            assert_eq!(verdict.state, State::Overspeed);
        }
        if n == 52 {
            assert!(matches!(guard.reset(frame.arrival_ns), Err(Error::ResetRefused(_))));
        }
    }
    assert_eq!(tripped_at, Some(40));
    let trip = *guard.trip().unwrap();
    assert_eq!((trip.cause, trip.at_ns, trip.parameters_hash), (Cause::Speed, 40 * PERIOD_NS, parameters.hash()));
    let kept: Vec<u64> = guard.black_box().map(|entry| entry.frame.arrival_ns / PERIOD_NS).collect();
    assert_eq!(kept, (0..=40).collect::<Vec<u64>>());
    assert!(guard.reset(199 * PERIOD_NS).is_ok() && guard.trip().is_none());
    assert_eq!(guard.state(), State::Ok);
    assert!(guard.reset(199 * PERIOD_NS).is_err());
}

#[test]
fn silence_is_stale_after_t_stale_and_needs_a_reset() {
    let mut guard = after(parameters(TimeBase::Source), (0..30).map(|n| frame(n, [0.0; 3])));
    assert_eq!(guard.tick(290 * MS + 49 * MS).state, State::Ok);
    assert_eq!(guard.tick(290 * MS + 50 * MS).state, State::Stale);
    assert_eq!(guard.trip().unwrap().cause, Cause::Silence);
    // Duplicates are not news.
    guard.update(&Frame { arrival_ns: 345 * MS, ..frame(29, [0.0; 3]) });
    for n in 35..60 {
        assert_eq!(guard.update(&frame(n, [0.0; 3])).state, State::Stale);
    }
    guard.reset(590 * MS).unwrap();
    // No overspeed from the gap; and before the first frame nothing is armed.
    assert_eq!(guard.update(&frame(60, [0.0; 3])).state, State::Ok);
    let mut waiting = SpeedGuard::<u32>::new(parameters(TimeBase::Source)).unwrap();
    assert_eq!(waiting.tick(10_000 * MS).state, State::Init);
}

#[test]
fn old_data_is_stale_even_if_it_comes_regularly() {
    let late = |n: u64| if n < 30 { 0 } else { ((n - 30) * 2).min(80) * MS };
    let mut guard = guard(parameters(TimeBase::Source));
    let mut at = None;
    for n in 0..80 {
        let frame = frame(n, [0.0; 3]);
        if guard.update(&Frame { arrival_ns: frame.arrival_ns + late(n), ..frame }).state == State::Stale {
            at.get_or_insert(n);
        }
    }
    assert_eq!(guard.trip().unwrap().cause, Cause::LateData);
    // 50 ms older than the best, the time to the next frame included.
    assert!((50..=56).contains(&at.unwrap()), "{at:?}");
    assert!(guard.counters().late_data.get() > 10);
}

#[test]
fn clocks_that_step_are_used_no_more_or_are_a_fault() {
    let stepped = |n: u64| {
        let back = if n >= 40 { 3_600_000_000_000 } else { 0 };
        Frame {
            source_ns: Some(4_000_000_000_000 + (n * PERIOD_NS) as i64 - back),
            ..frame(n, [0.9 * 10.0 * n as f64, 0.0, 0.0])
        }
    };
    let mut guard = after(parameters(TimeBase::Source), (0..=40).map(stepped));
    assert_eq!((guard.state(), guard.time_base()), (State::Unknown, TimeBase::Sequence));
    assert!(guard.update(&stepped(41)).state.enables_motion());
    assert_eq!((guard.counters().clock_steps.get(), guard.counters().resyncs.get()), (1, 1));
    let monotonic = Parameters { source_is_monotonic: true, ..parameters(TimeBase::Source) };
    let guard = after(monotonic, (0..=40).map(stepped));
    assert_eq!(guard.trip().map(|trip| (trip.state, trip.cause)), Some((State::Fault, Cause::Clock)));
    // After a resynchronisation, two frames within W_max or STALE.
    let mut guard = after(Parameters { stale_ns: 1_000 * MS, ..parameters(TimeBase::Source) }, (0..=40).map(stepped));
    assert_eq!(guard.tick(400 * MS + 49 * MS).state, State::Unknown);
    assert_eq!(guard.tick(400 * MS + 151 * MS).state, State::Stale);
}

#[test]
fn understated_errors_widen_e_and_are_counted() {
    // Stamps that wander by ±2.5 ms, where 1 ms was promised.
    let wandering = |n: u64| Frame {
        source_ns: Some((n * PERIOD_NS) as i64 + 5_000_000 + [0, 2_500_000, -2_500_000, 0][n as usize % 4]),
        ..frame(n, [9.0 * n as f64, 0.0, 0.0])
    };
    let guard = after(parameters(TimeBase::Source), (0..200).map(wandering));
    // Less the drift over a period, which the bound has room for.
    assert_eq!(guard.source_error_ns(), 2_499_000);
    assert!(guard.counters().residuals_over_e.get() >= 1);
    assert_eq!(guard.state(), State::Ok);
}

#[test]
fn a_count_at_another_period_is_degraded_and_says_so() {
    let parameters = parameters(TimeBase::Sequence);
    // Configured for 10 ms, sent every 12.
    let slow = |n: u64| Frame { source_ns: None, arrival_ns: n * 12 * MS, ..frame(n, [5.0 * n as f64, 0.0, 0.0]) };
    let mut guard = guard(parameters);
    let mut noted = 0;
    for n in 0..1000 {
        let verdict = guard.update(&slow(n));
        noted += u32::from(verdict.events.contains(Events::DEGRADED));
        assert!(!verdict.state.enables_motion() || verdict.is_degraded, "frame {n}");
    }
    assert_eq!((noted, guard.is_degraded(), guard.time_base()), (1, true, TimeBase::Arrival));
    // Sent every 8 ms: counted time runs ahead of arrivals, and must not meet them in one window.
    let mut guard = self::guard(parameters);
    for n in 0..2000u64 {
        let at = Frame { source_ns: None, arrival_ns: n * 8 * MS, ..frame(n, [7.2 * n as f64, 0.0, 0.0]) };
        let verdict = guard.update(&at);
        assert!(!verdict.state.is_latched(), "frame {n}: {:?}", guard.trip());
    }
    assert!(guard.is_degraded());
    // At the period promised it is verified, and only then enables.
    let mut guard = after(parameters, (0..300).map(|n| Frame { source_ns: None, ..frame(n, [0.0; 3]) }));
    assert_eq!(guard.state(), State::Init);
    for n in 300..500 {
        guard.update(&Frame { source_ns: None, ..frame(n, [0.0; 3]) });
    }
    assert_eq!((guard.state(), guard.time_base()), (State::Ok, TimeBase::Sequence));
}

#[test]
fn the_reported_speed_may_trip_and_may_be_contradicted_but_excuses_nothing() {
    let reporting = |step: f64, reported: f64| {
        (0..60u64).map(move |n| Frame { reported_mm_s: Some(reported), ..frame(n, [step * n as f64, 0.0, 0.0]) })
    };
    let parameters = Parameters { joint_count: 0, ..parameters(TimeBase::Source) };
    let trip =
        |step, reported| after(parameters, reporting(step, reported)).trip().map(|trip| (trip.state, trip.cause));
    assert_eq!(trip(5.0, 500.0), None);
    assert_eq!(trip(9.9, 1001.0), Some((State::Overspeed, Cause::ReportedSpeed)));
    assert_eq!(trip(5.0, 200.0), Some((State::Fault, Cause::Disagreement)));
    assert_eq!(trip(0.0, 900.0), Some((State::Fault, Cause::Disagreement)));
    // Round a circle of 20 mm in half a second the chord is short, and the report is right.
    let around = |n: u64| {
        let angle = std::f64::consts::TAU * n as f64 / 50.0;
        let tcp_mm = [20.0 * angle.cos(), 20.0 * angle.sin(), 0.0];
        Frame { reported_mm_s: Some(20.0 * std::f64::consts::TAU / 0.5), ..frame(n, tcp_mm) }
    };
    let strict = Parameters { reported_tolerance_mm_s: 1.0, ..parameters };
    assert_eq!(after(strict, (0..200).map(around)).trip(), None);
    // A report of standstill does not hide an overspeed.
    assert_eq!(trip(15.0, 0.0), Some((State::Overspeed, Cause::Speed)));
}

#[test]
fn impossible_changes_of_speed_are_counted_and_trip_nothing_by_themselves() {
    let parameters = Parameters { acceleration_max_mm_s2: 2000.0, joint_count: 0, ..parameters(TimeBase::Source) };
    let jump = |n: u64| if n < 50 { 0.0 } else { (n - 50) as f64 * 9.0 };
    let guard = after(parameters, (0..100).map(|n| frame(n, [jump(n), 0.0, 0.0])));
    assert!(guard.counters().timing_suspects.get() > 0);
    assert_eq!(guard.trip(), None);
    let gentle = after(parameters, (0..100u64).map(|n| frame(n, [0.05 * (n * n) as f64, 0.0, 0.0])));
    assert_eq!(gentle.counters().timing_suspects.get(), 0);
}

#[test]
fn ambiguous_wraps_jumps_and_broken_frames_are_counted_apart() {
    let patient = Parameters { stale_ns: 5_000 * MS, age_max_ns: 5_000 * MS, ..parameters(TimeBase::Source) };
    // 1.28 s of silence: more than 127 periods of a u8.
    let guard = after(patient, [0, 1, 2, 131, 132].map(|n| frame(n, [0.0; 3])));
    assert_eq!((guard.counters().ambiguous_wraps.get(), guard.counters().resyncs.get()), (1, 1));
    // 1.27 s is a gap.
    let guard = after(patient, [0, 1, 2, 129, 130].map(|n| frame(n, [0.0; 3])));
    assert_eq!((guard.counters().ambiguous_wraps.get(), guard.counters().lost.get()), (0, 126));
    // The controller restarts its count.
    let restart =
        |n: u64| Frame { sequence: if n < 20 { n as u32 + 100 } else { n as u32 - 20 }, ..frame(n, [0.0; 3]) };
    let guard = after(patient, (0..40).map(restart));
    assert_eq!((guard.counters().sequence_jumps.get(), guard.state()), (1, State::Ok));
    // Counts beyond the modulus, stamps that are missing.
    let broken = |n: u64| Frame {
        sequence: if n == 5 { 256 } else { n as u32 },
        source_ns: (n != 7).then_some((n * PERIOD_NS) as i64),
        ..frame(n, [0.0; 3])
    };
    let guard = after(patient, (0..20).map(broken));
    assert_eq!((guard.counters().bad_frames.get(), guard.counters().lost.get()), (2, 2));
    assert_eq!(guard.state(), State::Ok);
}

#[test]
fn the_first_trip_stands_and_only_an_overspeed_takes_its_place() {
    let mut guard = after(parameters(TimeBase::Source), (0..30).map(|n| frame(n, [0.0; 3])));
    guard.tick(350 * MS);
    let first = *guard.trip().unwrap();
    guard.tick(400 * MS);
    guard.update(&Frame { arrival_ns: 410 * MS, ..frame(41, [f64::NAN; 3]) });
    assert_eq!((guard.state(), guard.trip()), (State::Stale, Some(&first)));
    (42..45).for_each(|n| _ = guard.update(&frame(n, [0.0; 3])));
    guard.update(&frame(45, [100.0, 0.0, 0.0]));
    assert_eq!((guard.state(), guard.trip().unwrap().at_ns), (State::Overspeed, 450 * MS));
    guard.tick(900 * MS);
    assert_eq!((guard.state(), guard.trip().unwrap().at_ns), (State::Overspeed, 450 * MS));
}

/// The same late frame twice is one frame: two of two need two.
#[test]
fn a_duplicate_of_a_late_frame_counts_once() {
    let parameters = Parameters { trip_count: 2, trip_of: 2, joint_count: 0, ..patient() };
    let still = |n: u64| frame(n, [0.0; 3]);
    let mut guard = after(parameters, (0..20).filter(|n| *n != 15).map(still));
    let late = Frame { arrival_ns: 200 * MS, ..frame(15, [0.0, 12.2, 0.0]) };
    for times in 1..=3 {
        guard.update(&late);
        assert_eq!((guard.counters().late_inserted.get(), guard.counters().duplicates.get()), (1, times - 1));
    }
}

#[test]
fn clean_streams_without_counts_work_too() {
    let parameters = Parameters { sequence_modulus: 0, ..parameters(TimeBase::Source) };
    let mut stream = Stream::new(CLEAN, Motion::steady(0.95), 5);
    let guard = after(parameters, (0..10_000).map(|_| Frame { sequence: 0, ..stream.hear().frame }));
    assert_eq!((guard.state(), guard.trip()), (State::Warn, None));
    let mut stream = Stream::new(CLEAN, Motion::steady(1.2), 5);
    let guard = after(parameters, (0..100).map(|_| Frame { sequence: 0, ..stream.hear().frame }));
    assert_eq!(guard.state(), State::Overspeed);
}
