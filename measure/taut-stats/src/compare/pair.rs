//! What is compared: one number for each trial, in pairs that ran back to back.

use serde::{Deserialize, Serialize};

use super::Rule;
use crate::Distribution;

/// One metric of the two trials of a pair, in the metric's unit: `a` of the baseline, `b` of the candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The baseline's trial.
    pub a: f64,
    /// The candidate's trial.
    pub b: f64,
}

/// A metric over all pairs so far, in the order in which they ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// How it is judged.
    pub rule: Rule,
    /// `None` for a pair in which a trial does not carry the number, or is void.
    pub pairs: Vec<Option<Pair>>,
}

impl Metric {
    /// A quantile of each trial as the metric.
    pub fn of_quantile(rule: Rule, quantile: Quantile, trials: &[(Distribution, Distribution)]) -> Metric {
        let number = |trial: &Distribution| quantile.of(trial).map(|ns| ns as f64);
        let pair = |(a, b): &(Distribution, Distribution)| Some(Pair { a: number(a)?, b: number(b)? });
        Metric { rule, pairs: trials.iter().map(pair).collect() }
    }
}

/// Which quantile of a trial stands for the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantile {
    /// The median.
    P50,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
}

impl Quantile {
    /// This quantile of a trial in nanoseconds, `None` where the trial does not carry it.
    pub fn of(self, trial: &Distribution) -> Option<u64> {
        match self {
            Quantile::P50 => trial.p50_ns,
            Quantile::P90 => trial.p90_ns,
            Quantile::P95 => trial.p95_ns,
            Quantile::P99 => trial.p99_ns,
            Quantile::P999 => trial.p999_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_does_not_carry_the_quantile_leaves_its_pair_void() {
        let trial = |n: u64| {
            let samples: Vec<u64> = (0..n).map(|i| i * 619 % n + 1).collect();
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            Distribution::of(&samples, &sorted)
        };
        let trials = [(trial(2000), trial(2000)), (trial(2000), trial(100))];
        let metric = |quantile| Metric::of_quantile(Rule::default(), quantile, &trials).pairs;
        assert_eq!(metric(Quantile::P99), [Some(Pair { a: 1980.0, b: 1980.0 }), None]);
        assert_eq!(metric(Quantile::P50)[1], Some(Pair { a: 1000.0, b: 50.0 }));
    }
}
