//! Data of known truth: raw latencies of trials, and logarithms of whole trials.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp, LogNormal, Normal, Pareto, StandardNormal, StudentT};

/// Latencies in a trial.
pub const SAMPLES: usize = 1000;
/// Spread of the level from trial to trial, in logarithms: addresses, page layout, neighbours.
const LEVEL: f64 = 0.05;

/// How the latencies of a trial are made, in µs.
#[derive(Clone, Copy, PartialEq)]
pub enum Shape {
    Exponential,
    LogNormal,
    Bimodal,
    Pareto,
    Autocorrelated,
    DriftingWithin,
    Coarse,
}

/// How the levels of the trials of a session follow each other.
#[derive(Clone, Copy, PartialEq)]
pub enum Session {
    Independent,
    TwoLevels,
    Rising,
    Wandering,
}

/// Kinds of data of the coverage table, by name, with the shapes of A and B.
pub const KINDS: [(&str, [Shape; 2], Session); 11] = [
    ("exponential", [Shape::Exponential; 2], Session::Independent),
    ("log-normal, σ 0.5", [Shape::LogNormal; 2], Session::Independent),
    ("bimodal: 10 % in a second mode, 3 × as long", [Shape::Bimodal; 2], Session::Independent),
    ("heavy-tailed: Pareto, index 1.5", [Shape::Pareto; 2], Session::Independent),
    ("autocorrelated: AR(1), 0.95, in the trial", [Shape::Autocorrelated; 2], Session::Independent),
    ("drifting: + 30 % in each trial", [Shape::DriftingWithin; 2], Session::Independent),
    ("A exponential, B Pareto", [Shape::Exponential, Shape::Pareto], Session::Independent),
    ("clock of 5 µs at a level of 100 µs", [Shape::Coarse; 2], Session::Independent),
    ("trials on either of two levels, 20 % apart", [Shape::LogNormal; 2], Session::TwoLevels),
    ("drifting: + 30 % over the session", [Shape::LogNormal; 2], Session::Rising),
    ("trials autocorrelated: AR(1), 0.7", [Shape::LogNormal; 2], Session::Wandering),
];

/// The levels of `trials` trials in a row, in logarithms.
pub fn levels(session: Session, trials: usize, random: &mut impl Rng) -> Vec<f64> {
    let mut wander = normal(random);
    let mut level = |at: usize| match session {
        Session::Independent => LEVEL * normal(random),
        Session::TwoLevels => LEVEL * normal(random) + if random.random() { 0.2 } else { 0.0 },
        Session::Rising => LEVEL * normal(random) + 0.3 * at as f64 / trials as f64,
        Session::Wandering => {
            wander = 0.7 * wander + (1.0f64 - 0.7 * 0.7).sqrt() * normal(random);
            0.1 * wander
        }
    };
    (0..trials).map(&mut level).collect()
}

/// The latencies of a trial, ascending.
pub fn trial(shape: Shape, level: f64, random: &mut impl Rng) -> Vec<f64> {
    let scale = 100.0 * level.exp();
    let mut state = normal(random);
    let mut one = |at: usize| match shape {
        Shape::Exponential => Exp::new(1.0).unwrap().sample(random),
        Shape::LogNormal => LogNormal::new(0.0, 0.5).unwrap().sample(random),
        Shape::Bimodal => {
            let mode = if random.random_bool(0.1) { 3.0 } else { 1.0 };
            mode * Normal::new(1.0, 0.05).unwrap().sample(random)
        }
        Shape::Pareto => Pareto::new(1.0, 1.5).unwrap().sample(random),
        Shape::Autocorrelated => {
            state = 0.95 * state + (1.0f64 - 0.95 * 0.95).sqrt() * normal(random);
            (0.5 * state).exp()
        }
        Shape::DriftingWithin => (0.5 * normal(random) + 0.3 * at as f64 / SAMPLES as f64).exp(),
        Shape::Coarse => LogNormal::new(0.0, 0.5).unwrap().sample(random),
    };
    let mut samples: Vec<f64> = (0..SAMPLES).map(|at| scale * one(at)).collect();
    if shape == Shape::Coarse {
        samples.iter_mut().for_each(|sample| *sample = (*sample / 5.0).ceil() * 5.0);
    }
    samples.sort_unstable_by(f64::total_cmp);
    samples
}

/// The noise of whole trials, in logarithms, for gates. The difference of two has spread `noise`, normal or not.
#[derive(Clone, Copy, PartialEq)]
pub enum Noise {
    Normal,
    /// Student's t with 3 degrees of freedom, scaled to the interquartile range of the normal one.
    HeavyTailed,
    /// Bursts: one trial in ten is late by 0.5 to 1.5.
    Bursts,
    /// AR(1) with 0.7 from trial to trial.
    Wandering,
    /// Half of it a drift: the level doubles over 80 trials.
    Drifting,
    /// Rounded, so that many differences tie.
    Coarse,
}

/// The trials of one metric in the order in which they ran.
pub fn noise(kind: Noise, spread: f64, trials: usize, random: &mut impl Rng) -> Vec<f64> {
    let spread = spread / std::f64::consts::SQRT_2;
    let mut wander = normal(random);
    let mut one = |at: usize| match kind {
        Noise::Normal => spread * normal(random),
        Noise::HeavyTailed => spread * 0.6745 / 0.7649 * StudentT::new(3.0).unwrap().sample(random),
        Noise::Bursts if random.random_bool(0.1) => spread * normal(random) + random.random_range(0.5..1.5),
        Noise::Bursts => spread * normal(random),
        Noise::Wandering => {
            wander = 0.7 * wander + (1.0f64 - 0.7 * 0.7).sqrt() * normal(random);
            spread * wander
        }
        Noise::Drifting => spread * normal(random) + std::f64::consts::LN_2 * at as f64 / 80.0,
        Noise::Coarse => (spread * normal(random) / 0.02).round() * 0.02,
    };
    (0..trials).map(&mut one).collect()
}

pub fn normal(random: &mut impl Rng) -> f64 {
    StandardNormal.sample(random)
}
