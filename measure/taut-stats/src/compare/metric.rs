//! A metric over all pairs.

use super::{Pair, Quantile, Rule};
use crate::Distribution;

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
