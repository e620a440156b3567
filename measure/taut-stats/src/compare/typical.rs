//! The typical trial: the median over trials of each trial's number, with bounds that hold for any distribution.

use serde::Serialize;
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};

use super::{interval::Interval, shift::median_of_sorted};

/// The median over trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Typical {
    /// Trials.
    pub trials: usize,
    /// The median of their numbers, in the numbers' unit.
    pub value: f64,
    /// Bounds for the median of all trials that could have been run; `None` where the trials are too few.
    pub interval: Option<Interval>,
    /// Chance of trials in a row as alike as these, or more, had they been independent: see [`serial_p`]. Where it
    /// is small, the interval speaks for this stretch of time only.
    pub serial_p: Option<f64>,
}

/// The typical trial, from trials in the order in which they ran. `None` without trials or where one is not finite.
///
/// Bounds: the order statistics that the binomial distribution gives with at least this confidence (Thompson 1936;
/// Hollander & Wolfe, section 3.6). No shape is assumed, only that trials are independent.
pub fn typical(trials: &[f64], confidence: f64) -> Option<Typical> {
    if trials.is_empty() || !trials.iter().all(|t| t.is_finite()) {
        return None;
    }
    let mut sorted = trials.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let value = median_of_sorted(&sorted);
    Some(Typical { trials: trials.len(), value, interval: bounds(&sorted, confidence), serial_p: serial_p(trials) })
}

/// The fewest trials that bound a median with this confidence: all on one side of it have chance 2⁻ⁿ, on either 2¹⁻ⁿ.
pub fn fewest_trials(confidence: f64) -> usize {
    (1.0 - (1.0 - confidence).log2()).ceil().max(1.0) as usize
}

/// One-sided p-value of the rank von Neumann ratio (Bartels 1982, normal approximation): small where each trial
/// resembles the one before, so that trials are fewer than they look. `None` below 10 trials, or where all tie.
pub fn serial_p(trials: &[f64]) -> Option<f64> {
    let n = trials.len() as f64;
    if trials.len() < 10 {
        return None;
    }
    let ranks = mid_ranks(trials);
    let spread: f64 = ranks.iter().map(|r| (r - (n + 1.0) / 2.0).powi(2)).sum();
    let steps: f64 = ranks.windows(2).map(|two| (two[0] - two[1]).powi(2)).sum();
    let variance = 4.0 * (n - 2.0) * (5.0 * n * n - 2.0 * n - 9.0) / (5.0 * n * (n + 1.0) * (n - 1.0).powi(2));
    (spread > 0.0).then(|| Normal::standard().cdf((steps / spread - 2.0) / variance.sqrt()))
}

fn bounds(sorted: &[f64], confidence: f64) -> Option<Interval> {
    let n = sorted.len();
    let below = Binomial::new(0.5, n as u64).ok()?;
    // The k-th from either end misses where fewer than k trials lie on that side of the median.
    let miss = |k: usize| below.cdf(k as u64 - 1);
    let k = (1..=n / 2).take_while(|k| 2.0 * miss(*k) <= 1.0 - confidence).last()?;
    Some(Interval { low: sorted[k - 1], high: sorted[n - k], confidence: 1.0 - 2.0 * miss(k) })
}

/// Ranks from 1; those that tie share the mean of theirs.
fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = |v: &f64| {
        let (below, up_to) = (sorted.partition_point(|s| s < v), sorted.partition_point(|s| s <= v));
        (below + 1 + up_to) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ranks and levels as printed in tables of bounds for the median.
    #[test]
    fn known_order_statistics() {
        for (n, ranks, level) in
            [(6, (1, 6), 0.96875), (10, (2, 9), 0.978515625), (20, (6, 15), 0.95861), (25, (8, 18), 0.95671)]
        {
            let trials: Vec<f64> = (1..=n).map(f64::from).collect();
            let interval = typical(&trials, 0.95).unwrap().interval.unwrap();
            assert_eq!((interval.low, interval.high), (f64::from(ranks.0), f64::from(ranks.1)), "{n} trials");
            assert!((interval.confidence - level).abs() < 1e-5, "{n} trials: {}", interval.confidence);
        }
    }

    #[test]
    fn too_few_trials_have_a_median_but_no_bounds() {
        let five = typical(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        assert_eq!((five.value, five.interval), (3.0, None));
        assert_eq!(fewest_trials(0.95), 6);
        assert!(typical(&[], 0.95).is_none());
    }

    #[test]
    fn a_slow_wander_is_noticed_and_a_shuffle_is_not() {
        let wander: Vec<f64> = (0..20).map(|i| (f64::from(i) / 4.0).sin()).collect();
        let shuffled: Vec<f64> = (0..20).map(|i| wander[i * 7 % 20]).collect();
        assert!(serial_p(&wander).unwrap() < 0.001);
        assert!(serial_p(&shuffled).unwrap() > 0.05);
        assert_eq!(serial_p(&[3.0; 20]), None);
    }

    proptest! {
        #[test]
        fn units_are_nothing_to_it(t in prop::collection::vec(1.0..1e6f64, 6..30), power in -10i32..10) {
            // A power of two, so that no digit is lost.
            let unit = f64::from(power).exp2();
            let scaled: Vec<f64> = t.iter().map(|t| t * unit).collect();
            let (one, other) = (typical(&t, 0.95).unwrap(), typical(&scaled, 0.95).unwrap());
            prop_assert_eq!(one.value * unit, other.value);
            prop_assert_eq!(one.interval.unwrap().high * unit, other.interval.unwrap().high);
            prop_assert_eq!(one.serial_p, other.serial_p);
        }
    }
}
