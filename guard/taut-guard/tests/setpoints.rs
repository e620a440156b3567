//! The teleoperation case on virtual time: a leader at 50 Hz that exceeds the follower's limit some of the time. What the
//! ledger says when setpoints are rejected, and when they are clamped, scaled or retargeted.

use taut_guard::{
    ledger::{Fate, Ledger, Reason},
    setpoint::{JerkLimits, Limiter, Limits, Policy, Retarget, Sampled},
};

const PERIOD_NS: u64 = 20_000_000;
const PERIOD_S: f64 = 0.02;
const STEPS: usize = 30_000;

/// Ten minutes of a hand's motion in millimetres: slow sweeps with quick gestures in between.
fn leader(seed: u64) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let waves: Vec<(f64, f64, f64)> =
        (0..12).map(|n| (0.1 + 0.15 * f64::from(n), random.f64() * 6.3, 120.0 / (1.0 + f64::from(n)))).collect();
    let at =
        |t: f64| waves.iter().map(|(hertz, phase, mm)| mm * (std::f64::consts::TAU * hertz * t + phase).sin()).sum();
    (0..STEPS).map(|n| at(n as f64 * PERIOD_S)).collect()
}

/// The speed that the leader stays below for this share of the time.
fn speed_quantile(path: &[f64], q: f64) -> f64 {
    let mut speeds: Vec<f64> = path.windows(2).map(|pair| (pair[1] - pair[0]).abs() / PERIOD_S).collect();
    speeds.sort_by(f64::total_cmp);
    speeds[(speeds.len() as f64 * q) as usize]
}

fn rms(a: &[f64], b: &[f64]) -> f64 {
    (a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / a.len() as f64).sqrt()
}

/// What is done today: refuse a setpoint too far from the last accepted one.
fn reject(path: &[f64], limit: f64) -> (Vec<f64>, usize) {
    let (mut last, mut dropped) = (path[0], 0);
    let follow = |&target: &f64| {
        if (target - last).abs() <= limit * PERIOD_S {
            last = target
        } else {
            dropped += 1
        }
        last
    };
    (path.iter().map(follow).collect(), dropped)
}

/// What is done today besides: the speed from the time between arrivals, which jitter. Gives what was dropped and the longest
/// step that was let through.
fn reject_by_arrival(path: &[f64], limit: f64, jitter_s: f64, seed: u64) -> (usize, f64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut last, mut last_s, mut dropped, mut longest) = (path[0], 0.0, 0, 0f64);
    for (n, target) in path.iter().enumerate().skip(1) {
        let arrival_s = n as f64 * PERIOD_S + jitter_s * random.f64();
        if (target - last).abs() > limit * (arrival_s - last_s) {
            dropped += 1;
            continue;
        }
        longest = longest.max((target - last).abs());
        (last, last_s) = (*target, arrival_s);
    }
    (dropped, longest)
}

/// By arrivals a limit that nothing ever exceeds drops setpoints, and one that is exceeded lets jumps through: the time
/// that passes while setpoints are dropped makes the next jump look slow.
#[test]
fn speed_by_arrivals_drops_what_is_slow_and_passes_what_jumps() {
    let seed = 4;
    let path = leader(seed);
    let (above, p80) = (1.01 * speed_quantile(&path, 0.999_999), speed_quantile(&path, 0.8));
    for jitter_s in [0.0, 0.015] {
        let (dropped, _) = reject_by_arrival(&path, above, jitter_s, seed);
        let (dropped_at_p80, longest) = reject_by_arrival(&path, p80, jitter_s, seed);
        println!(
            "seed {seed}, {:.0} ms of jitter: limit above all speeds, {:.1} % dropped; at p80, {:.0} % dropped, and steps of {:.1} \
             limits passed",
            1e3 * jitter_s,
            100.0 * dropped as f64 / STEPS as f64,
            100.0 * dropped_at_p80 as f64 / STEPS as f64,
            longest / (p80 * PERIOD_S),
        );
        assert_eq!(dropped > 0, jitter_s > 0.0);
        assert!(dropped_at_p80 > STEPS / 10 && longest > 2.0 * p80 * PERIOD_S);
    }
    // Clamping by the nominal period leaves all of them as they are.
    let limits = Limits {
        period_ns: PERIOD_NS,
        position_min: [-1e4],
        position_max: [1e4],
        margin: 0.0,
        velocity_max: [above],
        position_reason: Reason::PositionLimit,
    };
    let mut limiter = Limiter::new(limits, Policy::Clamp, [path[0]]).unwrap();
    assert!(path.iter().all(|target| limiter.shape(&[*target]).unwrap().fate == Fate::Passed));
}

#[test]
fn clamping_drops_nothing_and_tracks_better_than_rejecting() {
    let seed = 4;
    let path = leader(seed);
    for quantile in [0.8, 0.95] {
        let limit = speed_quantile(&path, quantile);
        let (rejected, dropped) = reject(&path, limit);
        let limits = Limits {
            period_ns: PERIOD_NS,
            position_min: [-1e4],
            position_max: [1e4],
            margin: 0.0,
            velocity_max: [limit],
            position_reason: Reason::PositionLimit,
        };
        let mut limiter = Limiter::new(limits, Policy::Clamp, [path[0]]).unwrap();
        let mut ledger = Ledger::<4>::new();
        let mut sent: Vec<f64> = Vec::new();
        for (n, target) in path.iter().enumerate() {
            let now_ns = n as u64 * PERIOD_NS;
            ledger.produce(n as u64, now_ns).unwrap();
            let shaped = limiter.shape(&[*target]).unwrap();
            if let Some(last) = sent.last() {
                assert!((shaped.setpoint[0] - last).abs() <= limit * PERIOD_S + 1e-9);
            }
            sent.push(shaped.setpoint[0]);
            ledger.end(n as u64, shaped.fate, now_ns).unwrap();
        }
        let balance = ledger.balance(STEPS as u64 * PERIOD_NS).unwrap();
        assert_eq!((balance.acknowledged, balance.rejected, balance.silent), (STEPS as u64, 0, 0));
        let (by_rejecting, by_clamping) = (rms(&rejected, &path), rms(&sent, &path));
        println!(
            "seed {seed}, limit at p{:.0}: rejecting drops {:.0} %, RMS {by_rejecting:.1} mm; clamping drops 0, changes {:.1} %, \
             RMS {by_clamping:.1} mm",
            quantile * 100.0,
            100.0 * dropped as f64 / STEPS as f64,
            100.0 * ledger.share(Reason::VelocityLimit),
        );
        assert!(dropped as f64 > 2.0 * (1.0 - quantile) * STEPS as f64);
        assert!(by_clamping < 0.4 * by_rejecting);
    }
}

/// What Ruckig is given, it keeps, whatever the targets do; and it gets there.
#[test]
fn retargeting_keeps_velocity_acceleration_and_jerk() {
    let seed = 5;
    let mut random = fastrand::Rng::with_seed(seed);
    let limits = JerkLimits {
        period_ns: 8_000_000,
        position_min: [-1.0, -0.6],
        position_max: [1.0, 0.6],
        margin: 0.01,
        velocity_max: [1.0, 2.0],
        acceleration_max: [5.0, 8.0],
        jerk_max: [50.0, 90.0],
    };
    let mut retarget = Retarget::new(limits, [0.0; 2]).unwrap();
    let mut before: Option<[f64; 2]> = None;
    for _ in 0..2000 {
        let target = [random.f64() * 3.0 - 1.5, random.f64() * 2.0 - 1.0];
        let velocity = [random.f64() * 4.0 - 2.0, random.f64() - 0.5];
        for _ in 0..random.u8(1..10) {
            let state = retarget.step(&target, &velocity).unwrap();
            for axis in 0..2 {
                assert!(state.velocity[axis].abs() <= limits.velocity_max[axis] + 1e-6);
                // Targets and their velocities point beyond; the motion stays within.
                let (low, high) = (limits.position_min[axis], limits.position_max[axis]);
                assert!((low..=high).contains(&state.position[axis]), "seed {seed}: {state:?}");
                assert!(state.acceleration[axis].abs() <= limits.acceleration_max[axis] + 1e-6);
                if let Some(before) = before {
                    let jerk = (state.acceleration[axis] - before[axis]).abs() / 0.008;
                    assert!(jerk <= limits.jerk_max[axis] * (1.0 + 1e-6), "seed {seed}: {jerk}");
                }
            }
            before = Some(state.acceleration);
        }
    }
    let reached = (0..1000).find_map(|_| {
        let state = retarget.step(&[0.3, -0.3], &[0.0; 2]).unwrap();
        (state.fate == Fate::Passed).then_some(state.position)
    });
    let reached = reached.unwrap();
    assert!((reached[0] - 0.3).abs() < 1e-6 && (reached[1] + 0.3).abs() < 1e-6);
    assert!(retarget.step(&[f64::NAN, 0.0], &[0.0; 2]).is_err());
    // Beyond a limit it comes to rest at the margin, whatever velocity is asked for.
    let last = (0..1000).map(|_| retarget.step(&[9.0, -9.0], &[1.0, -2.0]).unwrap()).last().unwrap();
    assert!((last.position[0] - 0.99).abs() < 1e-6 && (last.position[1] + 0.59).abs() < 1e-6, "{last:?}");
    assert!(last.velocity.iter().all(|velocity| velocity.abs() < 1e-6), "{last:?}");
    assert_eq!(last.fate, Fate::Modified(Reason::PositionLimit));
    let crossed = JerkLimits { position_max: [-2.0, 0.6], ..limits };
    assert!(Retarget::new(crossed, [0.0; 2]).is_err());
}

/// The whole way of a setpoint from 20 ms to 8 ms: playout, then clamp, with the ledger's account in one line.
#[test]
fn playout_and_limiter_leave_no_step_above_the_limit_through_a_stall() {
    let mut random = fastrand::Rng::with_seed(6);
    let path = leader(7);
    let limit = speed_quantile(&path, 0.99);
    let mut playout = taut_guard::setpoint::Playout::<1>::new(PERIOD_NS, 15_000_000, 200_000_000).unwrap();
    let limits = Limits {
        period_ns: 8_000_000,
        position_min: [-1e4],
        position_max: [1e4],
        margin: 0.0,
        velocity_max: [limit],
        position_reason: Reason::PositionLimit,
    };
    let mut limiter = Limiter::new(limits, Policy::Clamp, [path[0]]).unwrap();
    let (mut next, mut last, mut played) = (0, path[0], 0);
    let mut due_ns = 0;
    for cycle in 0..20_000u64 {
        let now_ns = cycle * 8_000_000;
        while next < path.len() && due_ns <= now_ns {
            assert!(playout.push((next as u64 * PERIOD_NS) as i64, [path[next]], due_ns.max(next as u64 * PERIOD_NS)));
            next += 1;
            let stall = if next % 500 == 0 { 300_000_000 } else { 0 };
            due_ns = due_ns.max(next as u64 * PERIOD_NS + random.u64(..15_000_000) + stall);
        }
        let Some(Sampled { setpoint, .. }) = playout.play(now_ns) else { continue };
        let shaped = limiter.shape(&setpoint).unwrap();
        assert!((shaped.setpoint[0] - last).abs() <= limit * 0.008 + 1e-9);
        last = shaped.setpoint[0];
        played += 1;
    }
    assert!(played > 19_900);
}
