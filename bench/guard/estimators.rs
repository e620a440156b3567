//! The estimators of speed that people use today, beside ours: each hears a frame and says whether it would trip.

use taut_guard::{Frame, Parameters, SpeedGuard, State};

use crate::stream::{LIMIT_MM_S, PERIOD_NS};

pub type Estimator = Box<dyn FnMut(&Frame) -> bool>;

const T_S: f64 = PERIOD_NS as f64 * 1e-9;

/// Name, and how a fresh one is made.
pub fn all(ours: &[(&'static str, Parameters)]) -> Vec<(String, Box<dyn Fn() -> Estimator>)> {
    let mut all: Vec<(String, Box<dyn Fn() -> Estimator>)> = vec![
        ("Δp/Δt of arrival, 1/1".into(), Box::new(|| over(two_point(arrival)))),
        ("the same, 3/3 debounce".into(), Box::new(|| debounce(two_point(arrival), 3))),
        ("the same, median of 5".into(), Box::new(|| over(median(two_point(arrival))))),
        ("the same, EMA 0.2".into(), Box::new(|| over(smoothed(two_point(arrival), 0.2)))),
        ("the same, dt at least T".into(), Box::new(|| over(floored(arrival)))),
        ("Savitzky–Golay 7/2, nominal T".into(), Box::new(|| over(savitzky_golay()))),
        ("Kalman, arrival".into(), Box::new(|| over(kalman(arrival)))),
        ("LS-5, arrival".into(), Box::new(|| over(least_squares(arrival)))),
        ("Δp/Δt of source".into(), Box::new(|| over(two_point(source)))),
        ("Kalman, source".into(), Box::new(|| over(kalman(source)))),
        ("LS-5, source".into(), Box::new(|| over(least_squares(source)))),
        ("α-β 0.5/0.1, source".into(), Box::new(|| over(alpha_beta()))),
    ];
    for (name, parameters) in ours {
        let parameters = *parameters;
        all.push(((*name).into(), Box::new(move || guard(parameters))));
    }
    all
}

type Speed = Box<dyn FnMut(&Frame) -> Option<f64>>;
type Time = fn(&Frame) -> f64;

fn arrival(frame: &Frame) -> f64 {
    frame.arrival_ns as f64 * 1e-9
}

fn source(frame: &Frame) -> f64 {
    frame.source_ns.unwrap_or(0) as f64 * 1e-9
}

fn over(mut speed: Speed) -> Estimator {
    Box::new(move |frame| speed(frame).is_some_and(|mm_s| mm_s > LIMIT_MM_S))
}

fn debounce(speed: Speed, count: u32) -> Estimator {
    let (mut over, mut in_row) = (over(speed), 0);
    Box::new(move |frame| {
        in_row = if over(frame) { in_row + 1 } else { 0 };
        in_row >= count
    })
}

fn way(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// Two frames with the same stamp are taken as a microsecond apart.
fn two_point(time: Time) -> Speed {
    let mut last: Option<Frame> = None;
    Box::new(move |frame| {
        let last = last.replace(*frame)?;
        Some(way(&last.tcp_mm, &frame.tcp_mm) / (time(frame) - time(&last)).abs().max(1e-6))
    })
}

fn floored(time: Time) -> Speed {
    let mut last: Option<Frame> = None;
    Box::new(move |frame| {
        let last = last.replace(*frame)?;
        Some(way(&last.tcp_mm, &frame.tcp_mm) / (time(frame) - time(&last)).max(T_S))
    })
}

fn median(mut speed: Speed) -> Speed {
    let mut last = Vec::new();
    Box::new(move |frame| {
        last.push(speed(frame)?);
        if last.len() > 5 {
            last.remove(0);
        }
        let mut sorted = last.clone();
        sorted.sort_by(f64::total_cmp);
        Some(sorted[sorted.len() / 2])
    })
}

fn smoothed(mut speed: Speed, alpha: f64) -> Speed {
    let mut mean: Option<f64> = None;
    Box::new(move |frame| {
        let now = speed(frame)?;
        let next = mean.map_or(now, |mean| mean + alpha * (now - mean));
        mean = Some(next);
        mean
    })
}

/// Slope at the newest of seven samples taken as T apart, by a parabola (Savitzky and Golay 1964).
fn savitzky_golay() -> Speed {
    let weights = end_slope_weights();
    let mut last: Vec<[f64; 3]> = Vec::new();
    Box::new(move |frame| {
        last.push(frame.tcp_mm);
        if last.len() > 7 {
            last.remove(0);
        }
        (last.len() == 7).then(|| {
            let slope = |axis: usize| last.iter().zip(weights).map(|(p, w)| w * p[axis]).sum::<f64>() / T_S;
            way(&[0.0; 3], &[slope(0), slope(1), slope(2)])
        })
    })
}

/// Weights of the slope at x = 3 of the parabola through x = −3 … 3: Σxy/28 + 2·3·Σ(x² − 4)y/84.
fn end_slope_weights() -> [f64; 7] {
    std::array::from_fn(|n| {
        let x = n as f64 - 3.0;
        x / 28.0 + 6.0 * (x * x - 4.0) / 84.0
    })
}

/// Slope of the least-squares line through five samples.
fn least_squares(time: Time) -> Speed {
    let mut last: Vec<Frame> = Vec::new();
    Box::new(move |frame| {
        last.push(*frame);
        if last.len() > 5 {
            last.remove(0);
        }
        if last.len() < 5 {
            return None;
        }
        let mean = last.iter().map(time).sum::<f64>() / 5.0;
        let spread = last.iter().map(|f| (time(f) - mean) * (time(f) - mean)).sum::<f64>().max(1e-12);
        let slope = |axis: usize| last.iter().map(|f| f.tcp_mm[axis] * (time(f) - mean)).sum::<f64>() / spread;
        Some(way(&[0.0; 3], &[slope(0), slope(1), slope(2)]))
    })
}

type KalmanState = (f64, [f64; 3], [f64; 3], [f64; 3]);

/// Constant velocity, driven by an acceleration of 5 m/s²; position errors of 0.05 mm.
fn kalman(time: Time) -> Speed {
    const ACCELERATION: f64 = 5000.0;
    const NOISE: f64 = 0.05 * 0.05;
    // Time, position, velocity, and the covariance of a position and its velocity.
    let mut state: Option<KalmanState> = None;
    Box::new(move |frame| {
        let now = time(frame);
        let Some((before, mut position, mut velocity, [pp, pv, vv])) = state else {
            state = Some((now, frame.tcp_mm, [0.0; 3], [NOISE, 0.0, 1e6]));
            return None;
        };
        let dt = (now - before).abs().max(1e-6);
        let q = ACCELERATION * ACCELERATION;
        let pp = pp + 2.0 * dt * pv + dt * dt * vv + q * dt.powi(4) / 4.0;
        let pv = pv + dt * vv + q * dt.powi(3) / 2.0;
        let vv = vv + q * dt * dt;
        let (gain_p, gain_v) = (pp / (pp + NOISE), pv / (pp + NOISE));
        for axis in 0..3 {
            position[axis] += velocity[axis] * dt;
            let innovation = frame.tcp_mm[axis] - position[axis];
            position[axis] += gain_p * innovation;
            velocity[axis] += gain_v * innovation;
        }
        state = Some((now, position, velocity, [(1.0 - gain_p) * pp, (1.0 - gain_p) * pv, vv - gain_v * pv]));
        Some(way(&[0.0; 3], &velocity))
    })
}

fn alpha_beta() -> Speed {
    let mut state: Option<(f64, [f64; 3], [f64; 3])> = None;
    Box::new(move |frame| {
        let now = source(frame);
        let Some((before, mut position, mut velocity)) = state else {
            state = Some((now, frame.tcp_mm, [0.0; 3]));
            return None;
        };
        let dt = (now - before).abs().max(1e-3);
        for axis in 0..3 {
            position[axis] += velocity[axis] * dt;
            let innovation = frame.tcp_mm[axis] - position[axis];
            position[axis] += 0.5 * innovation;
            velocity[axis] += 0.1 * innovation / dt;
        }
        state = Some((now, position, velocity));
        Some(way(&[0.0; 3], &velocity))
    })
}

/// Ours. After an overspeed, or STALE, a new one takes over, so that every trip is counted.
fn guard(parameters: Parameters) -> Estimator {
    let fresh: SpeedGuard = SpeedGuard::new(parameters).expect("parameters that pass");
    let mut guard = fresh.clone();
    Box::new(move |frame| {
        let mut frame = *frame;
        if parameters.time_base != taut_guard::TimeBase::Source {
            frame.source_ns = None;
        }
        let state = guard.update(&frame).state;
        if state.is_latched() {
            guard = fresh.clone();
        }
        state == State::Overspeed
    })
}
