//! The effect of a remedy, by wakeups measured without and with it in turn.

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::Distribution;

/// Wakeups without and with a remedy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Measured {
    /// The check whose remedy it was.
    pub id: &'static str,
    /// What was applied, in one line.
    pub remedy: String,
    /// CPUs that were woken on.
    pub cpus: Vec<u32>,
    /// Scheduling policy of the threads that were woken: "other", "fifo".
    pub policy: String,
    /// Distance of the wakeups asked for, in ns.
    pub interval_ns: u64,
    /// Each turn without and with it.
    pub rounds: Vec<Round>,
    /// Lateness of all wakeups without it.
    pub before: Distribution,
    /// Lateness of all wakeups with it.
    pub after: Distribution,
    /// It was stopped before its time.
    pub interrupted: bool,
}

/// One turn without and one with the remedy: lateness in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Round {
    /// Median without.
    pub before_p50_ns: u64,
    /// Median with.
    pub after_p50_ns: u64,
    /// 99th percentile without.
    pub before_p99_ns: u64,
    /// 99th percentile with.
    pub after_p99_ns: u64,
}

/// With ÷ without, over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Median of the rounds.
    pub median: f64,
    /// Where the true median lies with a confidence of at least 95 %; `None` with fewer than six rounds.
    pub interval: Option<(f64, f64)>,
}

impl Measured {
    /// Of the medians.
    pub fn p50(&self) -> Option<Ratio> {
        Ratio::of(self.rounds.iter().map(|round| (round.before_p50_ns, round.after_p50_ns)))
    }

    /// Of the 99th percentiles.
    pub fn p99(&self) -> Option<Ratio> {
        Ratio::of(self.rounds.iter().map(|round| (round.before_p99_ns, round.after_p99_ns)))
    }
}

impl Ratio {
    fn of(pairs: impl Iterator<Item = (u64, u64)>) -> Option<Ratio> {
        let mut ratios: Vec<f64> = pairs.map(|(before, after)| after as f64 / before.max(1) as f64).collect();
        ratios.sort_by(f64::total_cmp);
        let n = ratios.len();
        let median = match n {
            0 => return None,
            n if n % 2 == 1 => ratios[n / 2],
            n => (ratios[n / 2 - 1] + ratios[n / 2]) / 2.0,
        };
        Some(Ratio { median, interval: outside(n).map(|k| (ratios[k], ratios[n - 1 - k])) })
    }

    /// Whether the interval leaves no doubt that it helps.
    pub fn helps(&self) -> bool {
        self.interval.is_some_and(|(_, high)| high < 1.0)
    }

    /// Whether the interval leaves no doubt that it harms.
    pub fn harms(&self) -> bool {
        self.interval.is_some_and(|(low, _)| low > 1.0)
    }
}

/// How many of `n` sorted values may be left out on each side so that the rest still holds the median with 95 %: the
/// sign test turned around (Conover, Practical Nonparametric Statistics, section 3.2).
fn outside(n: usize) -> Option<usize> {
    let mut term = 0.5f64.powi(n as i32);
    let mut tail = 0.0;
    let mut allowed = None;
    for k in 0..n / 2 {
        tail += term;
        if 2.0 * tail > 0.05 {
            break;
        }
        allowed = Some(k);
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(pairs: &[(u64, u64)]) -> Ratio {
        Ratio::of(pairs.iter().copied()).unwrap()
    }

    #[test]
    fn the_interval_is_the_sign_tests() {
        assert_eq!(
            [5, 6, 8, 9, 10, 12, 17, 20].map(outside),
            [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(4), Some(5)]
        );
    }

    #[test]
    fn one_quiet_round_is_no_help() {
        let mut pairs = vec![(100, 50); 10];
        assert!(ratio(&pairs).helps());
        pairs[0] = (100, 120);
        assert!(ratio(&pairs).helps(), "one of ten may differ");
        pairs[1] = (100, 120);
        assert!(!ratio(&pairs).helps() && !ratio(&pairs).harms());
        assert_eq!(ratio(&[(100, 50), (100, 70)]).median, 0.6);
        assert_eq!(ratio(&[(100, 50); 5]).interval, None, "five rounds carry no interval");
        assert!(Ratio::of([].into_iter()).is_none());
    }
}
