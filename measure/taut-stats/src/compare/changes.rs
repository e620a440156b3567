//! When did it change? Change points in a row of values, one for each revision.

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};
use serde::Serialize;

/// Shuffles that a split is held against.
const SHUFFLES: usize = 499;
/// Fewest values between two changes: fewer are an episode, not a level.
pub const FEWEST: usize = 4;

/// A change between two neighbouring values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// Index of the first value after it.
    pub at: usize,
    /// Median of the level before.
    pub before: f64,
    /// Median of the level after.
    pub after: f64,
    /// Chance of a split as clear as this in the same values in random order.
    pub p: f64,
}

/// Where a row of values changes its distribution, in order: E-divisive (Matteson & James 2014), as used for histories of builds
/// by Daly et al. 2020 and Fleming et al. 2023.
///
/// The series is split where the energy distance between the two sides, weighted by their sizes, is largest; the split
/// stands if at most `alpha` of the shuffled series have one as clear; then both sides are split in turn. Shuffles are drawn
/// from the seed. Values of which one is not finite have no changes. Time grows with the square of the values.
pub fn change_points(values: &[f64], alpha: f64, seed: u64) -> Vec<ChangePoint> {
    if !values.iter().all(|value| value.is_finite()) {
        return Vec::new();
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut cuts = vec![(0, 0.0), (values.len(), 0.0)];
    split(values, 0, alpha, &mut random, &mut cuts);
    cuts.sort_by_key(|cut| cut.0);
    let point = |three: &[(usize, f64)]| {
        let (from, at, to) = (three[0].0, three[1].0, three[2].0);
        ChangePoint { at, before: median(&values[from..at]), after: median(&values[at..to]), p: three[1].1 }
    };
    cuts.windows(3).map(point).collect()
}

fn split(values: &[f64], offset: usize, alpha: f64, random: &mut Xoshiro256PlusPlus, cuts: &mut Vec<(usize, f64)>) {
    let Some((at, clearness)) = clearest(values) else { return };
    let mut shuffled = values.to_vec();
    let mut as_clear = 0;
    for _ in 0..SHUFFLES {
        shuffled.shuffle(random);
        as_clear += usize::from(clearest(&shuffled).is_some_and(|(_, other)| other >= clearness));
    }
    let p = (as_clear + 1) as f64 / (SHUFFLES + 1) as f64;
    if p > alpha {
        return;
    }
    cuts.push((offset + at, p));
    split(&values[..at], offset, alpha, random, cuts);
    split(&values[at..], offset + at, alpha, random, cuts);
}

/// The clearest split, and how clear it is; `None` where the values are too few for two sides.
fn clearest(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    let distances_to = |at: usize, among: &[f64]| -> f64 { among.iter().map(|v| (v - values[at]).abs()).sum() };
    // Sums of distances within the left side, and within the right.
    let mut left = 0.0;
    let mut right: f64 = (0..n).map(|at| distances_to(at, &values[at + 1..])).sum();
    let all = right;
    let mut best: Option<(usize, f64)> = None;
    for at in 0..n {
        let (l, r) = (at as f64, (n - at) as f64);
        if at >= FEWEST && n - at >= FEWEST {
            let across = 2.0 * (all - left - right) / (l * r);
            let within = |sum: f64, size: f64| sum / (size * (size - 1.0) / 2.0);
            let clearness = l * r / (l + r) * (across - within(left, l) - within(right, r));
            if best.is_none_or(|(_, other)| clearness > other) {
                best = Some((at, clearness));
            }
        }
        left += distances_to(at, &values[..at]);
        right -= distances_to(at, &values[at + 1..]);
    }
    best
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    super::shift::median_of_sorted(&sorted)
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    /// Levels, each of so many values, with noise between ± 0.05.
    fn series(levels: &[(usize, f64)], seed: u64) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let one = |level: f64, random: &mut Xoshiro256PlusPlus| level + 0.1 * (random.random::<f64>() - 0.5);
        levels.iter().flat_map(|(n, level)| vec![*level; *n]).map(|level| one(level, &mut random)).collect()
    }

    fn at(values: &[f64]) -> Vec<usize> {
        change_points(values, 0.01, 1).into_iter().map(|change| change.at).collect()
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        assert_eq!(at(&series(&[(20, 1.0), (15, 1.2)], 1)), [20]);
        assert_eq!(at(&series(&[(15, 1.0), (12, 1.3), (18, 0.9)], 2)), [15, 27]);
        let change = change_points(&series(&[(20, 1.0), (20, 2.0)], 3), 0.01, 1)[0];
        assert!((change.before - 1.0).abs() < 0.03 && (change.after - 2.0).abs() < 0.03 && change.p <= 0.01);
    }

    #[test]
    fn no_step_and_no_outlier_is_a_change() {
        let mut wrong = 0;
        for seed in 0..50 {
            wrong += usize::from(!at(&series(&[(40, 1.0)], seed)).is_empty());
        }
        assert!(wrong <= 3, "{wrong} of 50 at a level of 1 %");
        let mut outlier = series(&[(40, 1.0)], 7);
        outlier[20] = 5.0;
        assert_eq!(at(&outlier), [0usize; 0]);
    }

    #[test]
    fn few_equal_or_odd_values_have_none() {
        assert!(at(&[]).is_empty() && at(&[1.0, 9.0, 1.0]).is_empty());
        assert!(at(&[1.0; 30]).is_empty());
        assert!(at(&[f64::NAN; 30]).is_empty());
    }
}
