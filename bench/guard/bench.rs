//! What `bench/guard/run` starts: latencies of single updates, loops for callgrind to count, and the estimators on the
//! same simulated streams. Prints JSON.

#[path = "../../guard/taut-guard/tests/stream/mod.rs"]
mod stream;

use std::{hint::black_box, time::Instant};

use stream::{ALL_COMBINED, CLEAN, Delay, HOUR_NS, MS, Motion, Scenario, Stream, parameters};
use taut_guard::{
    Frame, Parameters, SpeedGuard, State, TimeBase,
    ledger::{Fate, Ledger, Reason},
    setpoint::{JerkLimits, Limiter, Limits, Policy, Retarget},
    watchdog::{DegradeChain, Report, Timeouts},
};
use taut_replay::{
    Against, Source,
    estimators::{Time, estimator},
    usual,
};

/// The stream of the specification's table: exponential delays of 10 ms, stalls, 5 % loss, in order.
const REAL: Scenario = Scenario {
    name: "exponential delays of 10 ms, stalls of 30 to 200 ms, 5 % loss",
    delay: Delay::Exponential,
    has_stalls: true,
    loss: 0.05,
    ..CLEAN
};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("latency") => latency(arguments[2].parse().expect("a count"), arguments[3].parse().expect("rounds")),
        Some("count") => count(&arguments[2]),
        Some("estimators") => compare(arguments[2].parse().expect("hours"), arguments[3].parse().expect("injections")),
        _ => panic!("latency COUNT ROUNDS | count WHAT | estimators HOURS INJECTIONS"),
    }
}

fn heard(scenario: Scenario, frames: usize) -> Vec<Frame> {
    let mut stream = Stream::new(scenario, Motion::steady(0.95), 1);
    (0..frames).map(|_| stream.hear().frame).collect()
}

fn patient(base: TimeBase) -> Parameters {
    Parameters { stale_ns: 700 * MS, age_max_ns: 700 * MS, ..parameters(base) }
}

fn guard(parameters: Parameters) -> SpeedGuard {
    SpeedGuard::new(parameters).expect("parameters that pass")
}

/// Single updates between two clock readings, whose own cost is told beside and not taken off; and as a control a
/// calculation of the same length that touches no memory: what interrupts and the hypervisor do to anything that long.
///
/// Each round replays the same frames from the same state, and the guard's work is a function of both: the least that
/// an update took in all rounds, frame by frame, is the guard's own cost, rare paths and cold caches included.
fn latency(updates: usize, rounds: usize) {
    let frames = heard(ALL_COMBINED, updates);
    let fresh = guard(patient(TimeBase::Source));
    let turns = calibrate(&frames, &mut fresh.clone());
    let (mut of_update, mut of_control, mut of_clock) = (vec![1u32; updates], vec![1u32; updates], vec![1u32; updates]);
    let mut least = vec![u32::MAX; updates];
    let line = |name: &str, nanoseconds: &mut [u32]| {
        nanoseconds.sort_unstable();
        let last = nanoseconds.len() - 1;
        let rank = |q: f64| nanoseconds[((last as f64 + 1.0) * q).ceil() as usize - 1];
        let ranks = [0.5, 0.9, 0.99, 0.999, 0.9999].map(|q| rank(q).to_string()).join(", ");
        format!("\"{name}\": [{ranks}, {}]", nanoseconds[last])
    };
    for _ in 0..rounds {
        let mut guard = fresh.clone();
        for (n, frame) in frames.iter().enumerate() {
            of_clock[n] = timed(|| ());
            of_update[n] = timed(|| _ = black_box(guard.update(black_box(frame))));
            of_control[n] = timed(|| _ = black_box(control(turns)));
            least[n] = least[n].min(of_update[n]);
        }
        let lines = [line("update", &mut of_update), line("control", &mut of_control), line("clock", &mut of_clock)];
        println!("{{ \"updates\": {updates}, {} }}", lines.join(", "));
    }
    println!("{{ \"updates\": {updates}, {} }}", line("own", &mut least));
}

#[inline(always)]
fn timed(what: impl FnOnce()) -> u32 {
    let start = Instant::now();
    what();
    start.elapsed().as_nanos() as u32
}

/// Multiplications that wait for one another.
#[inline(never)]
fn control(turns: u32) -> u64 {
    (0..turns)
        .fold(0x9e37_79b9, |x: u64, n| black_box(x.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(u64::from(n))))
}

/// Turns of the control whose median is that of an update.
fn calibrate(frames: &[Frame], guard: &mut SpeedGuard) -> u32 {
    let median = |times: &mut [u32]| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let mut updates: Vec<u32> =
        frames.iter().take(20_000).map(|frame| timed(|| _ = black_box(guard.update(black_box(frame))))).collect();
    let wanted = median(&mut updates);
    let takes = |turns| median(&mut (0..999).map(|_| timed(|| _ = black_box(control(turns)))).collect::<Vec<_>>());
    (1..2000).find(|turns| takes(*turns) >= wanted).unwrap_or(2000)
}

/// The loop that callgrind counts: nothing outside of it is collected.
#[inline(never)]
fn counted(rounds: usize, mut round: impl FnMut(usize)) {
    for n in 0..rounds {
        round(n);
    }
}

const ROUNDS: usize = 10_000;

fn count(what: &str) {
    let start = 1000;
    match what {
        "update, clean" => updates(heard(CLEAN, ROUNDS + start), patient(TimeBase::Source)),
        "update, all combined" => updates(heard(ALL_COMBINED, ROUNDS + start), patient(TimeBase::Source)),
        "update, 8 joints" => {
            let mut parameters = patient(TimeBase::Source);
            (parameters.joint_count, parameters.joint_limits_rad_s) = (8, [2.0; 8]);
            updates(heard(CLEAN, ROUNDS + start), parameters);
        }
        "update, sums of chords" => {
            updates(heard(CLEAN, ROUNDS + start), Parameters { path_length: true, ..patient(TimeBase::Source) })
        }
        "update, degraded" => updates(heard(CLEAN, ROUNDS + start), patient(TimeBase::Arrival)),
        "update, worst: late by a window, 8 joints, sums of chords" => worst(),
        "tick" => {
            let mut guard = guard(patient(TimeBase::Source));
            heard(CLEAN, start).iter().for_each(|frame| _ = guard.update(frame));
            counted(ROUNDS, |n| _ = black_box(guard.tick(10_000 * MS + n as u64)));
        }
        "watchdog cycle, 12 servos, running" => chain(false),
        "watchdog cycle, 12 servos, degraded" => chain(true),
        "ledger, one setpoint" => {
            let mut ledger = Ledger::<64>::new();
            counted(ROUNDS, |n| {
                _ = black_box(ledger.produce(n as u64, n as u64));
                _ = black_box(ledger.end(n as u64, Fate::Modified(Reason::VelocityLimit), n as u64));
            });
        }
        "limiter, 6 axes, scaled" => {
            let limits = Limits {
                period_ns: 8 * MS,
                position_min: [-1.0; 6],
                position_max: [1.0; 6],
                margin: 0.01,
                velocity_max: [1.0; 6],
                position_reason: Reason::PositionLimit,
            };
            let mut limiter = Limiter::new(limits, Policy::Scale, [0.0; 6]).expect("limits that pass");
            counted(ROUNDS, |n| _ = black_box(limiter.shape(&[(n % 7) as f64 - 3.0; 6])));
        }
        "retarget with Ruckig, 6 axes" => {
            let limits = JerkLimits {
                period_ns: 8 * MS,
                position_min: [-1.0; 6],
                position_max: [1.0; 6],
                margin: 0.01,
                velocity_max: [1.0; 6],
                acceleration_max: [5.0; 6],
                jerk_max: [50.0; 6],
            };
            let mut retarget = Retarget::new(limits, [0.0; 6]).expect("limits that pass");
            counted(ROUNDS, |n| {
                let target = std::array::from_fn(|axis| 0.1 * ((n / 5 + axis) % 7) as f64);
                _ = black_box(retarget.step(&target, &[0.0; 6]));
            });
        }
        other => panic!("nothing to count is called {other}"),
    }
    println!("{{ \"rounds\": {ROUNDS} }}");
}

fn updates(frames: Vec<Frame>, parameters: Parameters) {
    let mut guard = guard(parameters);
    let (first, rest) = frames.split_at(frames.len() - ROUNDS);
    first.iter().for_each(|frame| _ = guard.update(frame));
    counted(ROUNDS, |n| _ = black_box(guard.update(&rest[n])));
}

/// A full buffer with a hole in the middle, a window before its end; each round fills that hole.
fn worst() {
    let mut parameters = Parameters { path_length: true, ..patient(TimeBase::Source) };
    (parameters.joint_count, parameters.joint_limits_rad_s) = (8, [2.0; 8]);
    let frame = |n: u64| Frame {
        sequence: n as u32,
        source_ns: Some((n * 10 * MS) as i64),
        arrival_ns: 330 * MS + n,
        tcp_mm: [9.0 * n as f64, 0.0, 0.0],
        joints_rad: [0.019 * n as f64; 8],
        ..Frame::default()
    };
    let mut full = guard(parameters);
    (0..33).filter(|n| *n != 17).for_each(|n| _ = full.update(&frame(n)));
    for _ in 0..ROUNDS / 100 {
        let mut guards = vec![full.clone(); 100];
        counted(100, |n| _ = black_box(guards[n].update(&frame(17))));
        let counters = guards[0].counters();
        assert_eq!((counters.late_inserted.get(), counters.late_discarded.get()), (1, 0));
    }
}

fn chain(is_degraded: bool) {
    let mut chain = DegradeChain::<12>::new(Timeouts::default(), 5).expect("time-outs that nest");
    chain.start(0).expect("a stopped chain");
    if is_degraded {
        chain.reply(3, Report::Faulted);
    }
    counted(ROUNDS, |n| {
        let now_ns = (n as u64 + 1) * MS;
        for servo in 0..12 {
            chain.reply(servo, if is_degraded && servo == 3 { Report::Faulted } else { Report::Healthy });
            black_box(chain.action(servo));
        }
        chain.operator(now_ns);
        black_box(chain.cycle(now_ns));
    });
}

/// Hears a frame and says whether it would trip.
type Decision = Box<dyn FnMut(&Frame) -> bool>;

/// Name, and how a fresh one is made: what people use, then ours.
fn estimators() -> Vec<(String, Box<dyn Fn() -> Decision>)> {
    let of = |estimator, time| Against { estimator, time, ..usual()[0].clone() };
    let others = [
        ("Δp/Δt of arrival, 1/1", of(Source::Difference, Time::Arrival)),
        ("the same, 3/3 debounce", Against { debounce: 3, ..of(Source::Difference, Time::Arrival) }),
        ("the same, median of 5", of(Source::Median, Time::Arrival)),
        ("the same, EMA 0.2", of(Source::Ema, Time::Arrival)),
        ("the same, dt at least T", of(Source::Floored, Time::Arrival)),
        ("Savitzky–Golay 7/2, nominal T", of(Source::SavitzkyGolay, Time::Arrival)),
        ("Kalman, arrival", of(Source::Kalman, Time::Arrival)),
        ("LS-5, arrival", of(Source::LeastSquares, Time::Arrival)),
        ("Δp/Δt of source", of(Source::Difference, Time::Source)),
        ("Kalman, source", of(Source::Kalman, Time::Source)),
        ("LS-5, source", of(Source::LeastSquares, Time::Source)),
        ("α-β 0.5/0.1, source", of(Source::AlphaBeta, Time::Source)),
    ];
    let ours = [
        ("**interval bound, source**", patient(TimeBase::Source)),
        ("interval bound, source, 2/2", Parameters { trip_count: 2, trip_of: 2, ..patient(TimeBase::Source) }),
        ("interval bound, count × T", patient(TimeBase::Sequence)),
        (
            "interval bound, arrival, J = 60 ms (degraded)",
            Parameters { arrival_jitter_ns: 60 * MS, ..patient(TimeBase::Arrival) },
        ),
    ];
    // The tool's limit alone, as the table always was.
    let tool = Parameters { joint_count: 0, ..parameters(TimeBase::Source) };
    let mut all: Vec<(String, Box<dyn Fn() -> Decision>)> = Vec::new();
    for (name, against) in others {
        all.push((name.into(), Box::new(move || decision(&against, &tool))));
    }
    for (name, parameters) in ours {
        all.push((name.into(), Box::new(move || guarded(parameters))));
    }
    all
}

fn decision(against: &Against, parameters: &Parameters) -> Decision {
    let mut estimate = estimator(against, parameters).expect("an estimator");
    let (debounce, mut in_row) = (against.debounce, 0);
    Box::new(move |frame| {
        in_row = if estimate(frame).is_some_and(|share| share > 1.0) { in_row + 1 } else { 0 };
        in_row >= debounce
    })
}

/// Ours. After an overspeed, or STALE, a new one takes over, so that every trip is counted.
fn guarded(parameters: Parameters) -> Decision {
    let fresh = guard(parameters);
    let mut guard = fresh.clone();
    Box::new(move |frame| {
        let mut frame = *frame;
        if parameters.time_base != TimeBase::Source {
            frame.source_ns = None;
        }
        let state = guard.update(&frame).state;
        if state.is_latched() {
            guard = fresh.clone();
        }
        state == State::Overspeed
    })
}

fn compare(hours: f64, injections: u64) {
    const OURS: usize = 4;
    let all = estimators();
    for (number, (name, make)) in all.iter().enumerate() {
        let slow = false_trips(&make, REAL, 0.6, hours);
        let fast = false_trips(&make, REAL, 0.95, hours);
        let heavy = false_trips(&make, ALL_COMBINED, 0.95, hours);
        let is_ours = number + OURS >= all.len();
        let (mut delays, mut early, mut missed) = (Vec::new(), 0, 0);
        for seed in 0..injections {
            match detect(&make, seed, 1.25) {
                Detected::After(ns) => delays.push(ns as f64 * 1e-6),
                Detected::Early => early += 1,
                Detected::Missed => missed += 1,
            }
        }
        delays.sort_by(f64::total_cmp);
        let rank = |q: f64| match delays.len() {
            0 => "null".to_owned(),
            n => format!("{:.1}", delays[((n as f64 * q).ceil() as usize).clamp(1, n) - 1]),
        };
        println!(
            "{{ \"name\": \"{name}\", \"ours\": {is_ours}, \"false\": [{slow}, {fast}, {heavy}], \
             \"delay_ms\": [{}, {}, {}], \"early\": {early}, \"missed\": {missed} }}",
            rank(0.5),
            rank(0.99),
            rank(1.0),
        );
    }
}

/// Decisions over the limit an hour, where the truth is below it.
fn false_trips(make: &dyn Fn() -> Decision, scenario: Scenario, ratio: f64, hours: f64) -> f64 {
    let mut stream = Stream::new(scenario, Motion::steady(ratio), 42);
    let mut estimator = make();
    let mut trips = 0u64;
    loop {
        let frame = stream.hear().frame;
        if frame.arrival_ns as f64 > hours * HOUR_NS as f64 {
            return trips as f64 / hours;
        }
        trips += u64::from(estimator(&frame));
    }
}

enum Detected {
    After(u64),
    Early,
    Missed,
}

fn detect(make: &dyn Fn() -> Decision, seed: u64, ratio: f64) -> Detected {
    let start_s = 6.0 + (seed % 97) as f64 * 0.0103;
    let start_ns = (start_s * 1e9) as u64;
    let motion = Motion { ratio: 0.6, overspeed: Some((start_s, ratio)), ramp: f64::INFINITY };
    let mut stream = Stream::new(REAL, motion, seed);
    let mut estimator = make();
    // Half a second without a trip before counts as quiet; a tripping one finds everything, and nothing.
    let mut was_early = false;
    loop {
        let frame = stream.hear().frame;
        let trips = estimator(&frame);
        let is_before = frame.arrival_ns < start_ns;
        was_early |= trips && is_before && frame.arrival_ns + 500 * MS > start_ns;
        if !is_before {
            if was_early {
                return Detected::Early;
            }
            if trips {
                return Detected::After(frame.arrival_ns - start_ns);
            }
            if frame.arrival_ns > start_ns + 2_000 * MS {
                return Detected::Missed;
            }
        }
    }
}
