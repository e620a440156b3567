//! Every overspeed is caught: 10⁴ injected ones, of 1.1 to 3 times the limit, as steps and as ramps, on a clean link, under
//! heavy jitter, during loss and during stalls. Each ends in OVERSPEED within the stated bound, or in STALE.

mod stream;

use std::collections::BTreeMap;

use stream::{ALL_COMBINED, CLEAN, MS, Motion, PERIOD_NS, Scenario, Stream, parameters};
use taut_guard::{Parameters, SpeedGuard, State, TimeBase, Trip};

const RATIOS: [f64; 5] = [1.1, 1.25, 1.5, 2.0, 3.0];

const LINKS: [Scenario; 4] = [
    CLEAN,
    Scenario { name: "heavy jitter", has_clock_steps: false, ..ALL_COMBINED },
    Scenario { name: "loss of 30 %", loss: 0.3, ..CLEAN },
    Scenario { name: "stalls", delay: stream::Delay::Exponential, has_stalls: true, ..CLEAN },
];

struct Caught {
    trip: Trip,
    after_ns: u64,
    longest_loss: u32,
    last_heard_ns: u64,
}

/// One overspeed at a random moment. `None` if the link was STALE before it even began.
fn inject(link: Scenario, ratio: f64, ramp: f64, parameters: Parameters, seed: u64) -> Option<Caught> {
    let mut random = fastrand::Rng::with_seed(seed);
    // No STALE before the overspeed: it begins soon after the first enable.
    let settled_s = if parameters.time_base == TimeBase::Sequence { 4.2 } else { 0.25 };
    let motion =
        Motion { ratio: 0.5 + 0.45 * random.f64(), overspeed: Some((settled_s + 0.1 * random.f64(), ratio)), ramp };
    let mut stream = Stream::new(link, motion, random.u64(..));
    if parameters.time_base == TimeBase::Sequence {
        stream = stream.without_source();
    }
    let mut guard: SpeedGuard = SpeedGuard::new(parameters).unwrap();
    let reached_ns = (motion.reached_s() * 1e9) as u64;
    let (mut tick_ns, mut last_heard_ns) = (0, 0);
    loop {
        let delivered = stream.hear();
        while tick_ns < delivered.frame.arrival_ns && !guard.state().is_latched() {
            guard.tick(tick_ns);
            tick_ns += MS;
        }
        let heard = guard.counters().new_frames.get();
        if !guard.state().is_latched() {
            guard.update(&delivered.frame);
        }
        if guard.counters().new_frames.get() > heard {
            last_heard_ns = delivered.frame.arrival_ns;
        }
        if let Some(trip) = guard.trip() {
            let began_ns = (motion.overspeed.unwrap().0 * 1e9) as u64;
            // A trip on the ramp counts as at once.
            let after_ns = trip.at_ns.saturating_sub(reached_ns);
            return (trip.at_ns >= began_ns).then_some(Caught {
                trip: *trip,
                after_ns,
                longest_loss: stream.longest_loss,
                last_heard_ns,
            });
        }
        assert!(delivered.sampled_ns < reached_ns + 1_000_000_000, "missed: {} {ratio} L, seed {seed}", link.name);
    }
}

/// At least `count` overspeeds of each ratio; the delays by link and ratio, in nanoseconds.
fn recall(links: &[Scenario], count: usize, parameters: Parameters) -> usize {
    let mut delays: BTreeMap<(&str, u64, &str), (Vec<u64>, usize)> = BTreeMap::new();
    let mut injected = 0;
    for (l, link) in links.iter().enumerate() {
        for (r, ratio) in RATIOS.into_iter().enumerate() {
            let mut seed = (l * RATIOS.len() + r) as u64 * 1_000_000 + 11;
            let mut done = 0;
            while done < count {
                seed += 1;
                let ramp = if seed.is_multiple_of(2) { f64::INFINITY } else { 5.0 };
                let kind = if ramp.is_finite() { "ramps" } else { "steps" };
                let Some(caught) = inject(*link, ratio, ramp, parameters, seed) else { continue };
                done += 1;
                let (overspeed, stale) = delays.entry((link.name, (ratio * 100.0) as u64, kind)).or_default();
                let bound = parameters.detection_bound_ns(ratio, caught.longest_loss, parameters.stale_ns).unwrap();
                assert!(
                    caught.after_ns <= bound,
                    "{} {ratio} L seed {seed}: {:?} > {bound}",
                    link.name,
                    caught.after_ns
                );
                match caught.trip.state {
                    State::Overspeed => overspeed.push(caught.after_ns),
                    State::Stale => {
                        *stale += 1;
                        let silent = caught.trip.at_ns - caught.last_heard_ns;
                        assert!(silent <= parameters.stale_ns + PERIOD_NS, "{} seed {seed}", link.name);
                    }
                    other => panic!("{} seed {seed}: {other:?}", link.name),
                }
                if link.name == CLEAN.name {
                    assert_eq!(caught.trip.state, State::Overspeed);
                    // The specification's figures, T = 10 ms and e = 1 ms.
                    let limit = if ratio < 1.2 { 60 * MS } else { 40 * MS };
                    assert!(caught.after_ns <= limit, "{ratio} L seed {seed}: {}", caught.after_ns);
                }
            }
            injected += done;
        }
    }
    for ((link, ratio, kind), (mut overspeed, stale)) in delays {
        overspeed.sort_unstable();
        let rank = |q: f64| overspeed.get(((overspeed.len() as f64 * q) as usize).min(overspeed.len().max(1) - 1));
        let ms = |q| rank(q).map_or(f64::NAN, |ns| *ns as f64 * 1e-6);
        println!(
            "{link}, {kind} to {:.2} L: {} OVERSPEED after p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms; {stale} STALE",
            ratio as f64 / 100.0,
            overspeed.len(),
            ms(0.5),
            ms(0.99),
            ms(1.0),
        );
    }
    injected
}

#[test]
fn ten_thousand_overspeeds_are_caught_within_the_bound() {
    let injected = recall(&LINKS, 500, parameters(TimeBase::Source));
    println!("{injected} injected");
    assert!(injected >= 10_000);
}

/// A guard that waits out stalls: heavy jitter ends in OVERSPEED itself, late by no more than the frames are.
#[test]
fn a_patient_guard_sees_through_heavy_jitter() {
    let parameters =
        Parameters { stale_ns: 700 * MS, age_max_ns: 700 * MS, lost_max: 20, ..parameters(TimeBase::Source) };
    recall(&LINKS[1..], 60, parameters);
}

#[test]
fn the_count_alone_catches_them_too() {
    recall(&LINKS[..1], 50, parameters(TimeBase::Sequence));
}

#[test]
fn two_of_three_costs_one_period() {
    let parameters = Parameters { trip_count: 2, trip_of: 3, ..parameters(TimeBase::Source) };
    for seed in 0..500 {
        let caught = inject(CLEAN, 1.25, f64::INFINITY, parameters, seed).unwrap();
        assert!(caught.after_ns <= 50 * MS, "seed {seed}: {}", caught.after_ns);
    }
}

/// Arrival alone: J = 60 ms hides 1.1 L for ever, and the bound function says so; 1.5 L is found, late.
#[test]
fn arrival_alone_is_late_and_says_that_it_is_degraded() {
    let parameters = Parameters { arrival_jitter_ns: 60 * MS, ..parameters(TimeBase::Arrival) };
    assert_eq!(parameters.detection_bound_ns(1.1, 0, 0), None);
    let bound = parameters.detection_bound_ns(1.5, 0, 0).unwrap();
    for seed in 0..200 {
        let mut guard: SpeedGuard = SpeedGuard::new(parameters).unwrap();
        let motion = Motion { ratio: 0.5, overspeed: Some((0.5, 1.5)), ramp: f64::INFINITY };
        let mut stream = Stream::new(CLEAN, motion, seed);
        let trip = loop {
            let mut frame = stream.hear().frame;
            frame.source_ns = None;
            assert!(guard.update(&frame).is_degraded);
            if let Some(trip) = guard.trip() {
                break *trip;
            }
        };
        assert_eq!((trip.state, trip.time_base), (State::Overspeed, TimeBase::Arrival));
        assert!(trip.at_ns - 500 * MS <= bound && trip.at_ns - 500 * MS >= 100 * MS, "seed {seed}: {trip:?}");
    }
}
