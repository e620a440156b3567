//! Figures of the messages of one trial: quantiles, and two figures of the tail.

use serde::{Deserialize, Serialize};
use taut_stats::{Distribution, rank};

/// A message is slow from so many times the trial's median on: a busy neighbour makes a message take twice as long now and then …
const SLOW_TIMES: u64 = 3;
/// … and by at least this much, so that the jitter of a hop of 5 µs is no news.
pub(crate) const SLOW_BY_NS: u64 = 10_000;
/// A mean of the slowest needs as many messages as a quantile needs bursts.
const SLOWEST_MIN: usize = 10;
/// A median needs so many messages. It needs no bursts: the trial is the unit, and a level that wanders within a trial is the trial's.
const MEDIAN_MIN: usize = 20;

/// One figure of a trial's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Mean.
    Mean,
    /// Mean of the slowest twentieth: expected shortfall at 95 % (Acerbi & Tasche 2002).
    Tail5,
    /// Mean of the slowest hundredth.
    Tail1,
    /// Share of messages over three times the trial's own median, and over it by 10 µs: what medians cannot see.
    Slow,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Statistic; 9] = {
        use Statistic::*;
        [P50, P90, P95, P99, P999, Mean, Tail5, Tail1, Slow]
    };

    /// The word in reports and in `--metric`.
    pub fn word(self) -> &'static str {
        match self {
            Statistic::P50 => "p50",
            Statistic::P90 => "p90",
            Statistic::P95 => "p95",
            Statistic::P99 => "p99",
            Statistic::P999 => "p99.9",
            Statistic::Mean => "mean",
            Statistic::Tail5 => "tail5",
            Statistic::Tail1 => "tail1",
            Statistic::Slow => "slow",
        }
    }

    /// Whether it is a share of messages, not a time.
    pub fn is_share(self) -> bool {
        self == Statistic::Slow
    }

    /// Of messages, the share that lies beyond a quantile; `None` of what is none.
    pub fn beyond(self) -> Option<f64> {
        match self {
            Statistic::P50 => Some(0.5),
            Statistic::P90 => Some(0.1),
            Statistic::P95 => Some(0.05),
            Statistic::P99 => Some(0.01),
            Statistic::P999 => Some(0.001),
            Statistic::Mean | Statistic::Tail5 | Statistic::Tail1 | Statistic::Slow => None,
        }
    }
}

/// The figures of one trial's messages; times in nanoseconds. `None` where the trial is too short to carry the figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialFigures {
    /// As the statistic's.
    pub p50: Option<f64>,
    /// As the statistic's.
    pub p90: Option<f64>,
    /// As the statistic's.
    pub p95: Option<f64>,
    /// As the statistic's.
    pub p99: Option<f64>,
    /// As the statistic's.
    pub p999: Option<f64>,
    /// As the statistic's.
    pub mean: Option<f64>,
    /// As the statistic's.
    pub tail5: Option<f64>,
    /// As the statistic's.
    pub tail1: Option<f64>,
    /// As the statistic's.
    pub slow: Option<f64>,
}

impl TrialFigures {
    /// Of messages in order of time.
    pub fn of(in_time_order: &[u64]) -> TrialFigures {
        let mut sorted = in_time_order.to_vec();
        sorted.sort_unstable();
        let quantiles = Distribution::of(in_time_order, &sorted);
        let number = |ns: Option<u64>| ns.map(|ns| ns as f64);
        let median = rank(&sorted, 0.5).filter(|_| sorted.len() >= MEDIAN_MIN);
        TrialFigures {
            p50: number(median),
            p90: number(quantiles.p90_ns),
            p95: number(quantiles.p95_ns),
            p99: number(quantiles.p99_ns),
            p999: number(quantiles.p999_ns),
            mean: quantiles.mean_ns.filter(|_| sorted.len() >= SLOWEST_MIN),
            tail5: mean_of_slowest(&sorted, 20),
            tail1: mean_of_slowest(&sorted, 100),
            slow: median.map(|median| {
                let limit = (median * SLOW_TIMES).max(median + SLOW_BY_NS);
                (sorted.len() - sorted.partition_point(|ns| *ns <= limit)) as f64 / sorted.len() as f64
            }),
        }
    }

    /// One of them.
    pub fn get(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::P50 => self.p50,
            Statistic::P90 => self.p90,
            Statistic::P95 => self.p95,
            Statistic::P99 => self.p99,
            Statistic::P999 => self.p999,
            Statistic::Mean => self.mean,
            Statistic::Tail5 => self.tail5,
            Statistic::Tail1 => self.tail1,
            Statistic::Slow => self.slow,
        }
    }
}

fn mean_of_slowest(sorted: &[u64], one_in: usize) -> Option<f64> {
    let slowest = &sorted[sorted.len() - sorted.len() / one_in..];
    (slowest.len() >= SLOWEST_MIN).then(|| slowest.iter().map(|ns| *ns as f64).sum::<f64>() / slowest.len() as f64)
}

/// The same figures of a time and of its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// All of it.
    pub total: TrialFigures,
    /// Less what the machine did.
    pub own: TrialFigures,
    /// Of its own: on a CPU.
    pub work: TrialFigures,
    /// What the machine did.
    pub machine: TrialFigures,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_in_200_is_seen_by_the_tail_and_not_by_the_median() {
        let usual: Vec<u64> = (0..2000).map(|i| 100_000 + i * 7919 % 1009).collect();
        let mut tailed = usual.clone();
        tailed.iter_mut().step_by(200).for_each(|ns| *ns *= 5);
        let (usual, tailed) = (TrialFigures::of(&usual), TrialFigures::of(&tailed));
        assert!((tailed.p50.unwrap() / usual.p50.unwrap() - 1.0).abs() < 1e-3);
        assert!(tailed.tail1.unwrap() / usual.tail1.unwrap() > 2.5);
        assert_eq!((usual.slow, tailed.slow), (Some(0.0), Some(0.005)));
    }

    #[test]
    fn a_short_trial_carries_no_tail() {
        let short = TrialFigures::of(&(0..150).map(|i| 1000 + i * 37 % 150).collect::<Vec<u64>>());
        assert!(short.p50.is_some() && short.p99.is_none() && short.tail1.is_none() && short.tail5.is_none());
        assert_eq!(TrialFigures::of(&[]), TrialFigures::default());
    }

    #[test]
    fn a_level_that_wanders_once_has_a_median() {
        let wandered: Vec<u64> = (0..100).map(|i| if i < 40 { 50_000 + i } else { 60_000 + i }).collect();
        assert_eq!(TrialFigures::of(&wandered).p50, Some(60_049.0));
    }

    #[test]
    fn jitter_of_a_short_hop_is_not_slow() {
        let hop: Vec<u64> = (0..1000).map(|i| if i % 3 == 0 { 9_000 } else { 2_000 }).collect();
        assert_eq!(TrialFigures::of(&hop).slow, Some(0.0));
    }
}
