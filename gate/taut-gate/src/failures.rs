//! Runs that failed, by side: evidence like any other, and compared like a rate.

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{DiscreteCDF, Hypergeometric};

use crate::{Failure, Trial};

/// At this level B fails more often than A, where both do.
const ALPHA: f64 = 0.01;
/// So many failures of B, and none of A, need no further runs.
const CLEAR: usize = 4;

/// What became of the runs of both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "FailedRuns")]
pub struct Failures {
    /// Of the baseline.
    pub a: SideFailures,
    /// Of the candidate.
    pub b: SideFailures,
    /// Chance of as many failures of B, if runs of both failed equally often (Fisher 1935, exact, one-sided).
    pub p_worse: f64,
    /// B fails where A never did, or provably more often: then the verdict is "worse".
    pub is_worse: bool,
}

/// Runs of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Failed")]
pub struct SideFailures {
    /// All of them.
    pub runs: usize,
    /// Those that failed.
    pub failed: usize,
    /// How the first of them failed: exit code, signal or time; null where none did.
    pub how: Option<String>,
    /// The last lines of its output.
    pub output: Vec<String>,
}

impl Failures {
    /// Of these pairs.
    pub fn of<'a>(pairs: impl Iterator<Item = &'a (Trial, Trial)> + Clone) -> Failures {
        Failures::of_sides(pairs.clone().map(|(a, _)| a), pairs.map(|(_, b)| b))
    }

    /// Of all runs of each side, be they more than make pairs.
    pub(crate) fn of_sides<'a>(a: impl Iterator<Item = &'a Trial>, b: impl Iterator<Item = &'a Trial>) -> Failures {
        let (a, b) = (SideFailures::of(a), SideFailures::of(b));
        let p_worse = p_more((a.runs, a.failed), (b.runs, b.failed));
        // A program that fails now and then is a defect, however few runs show it: chance is asked only where A fails as well.
        let is_worse = b.failed > 0 && (a.failed == 0 || p_worse <= ALPHA);
        Failures { a, b, p_worse, is_worse }
    }

    /// Whether provably more runs of B than of A say nothing, for another reason than that they failed.
    pub(crate) fn void_more<'a>(pairs: impl Iterator<Item = &'a (Trial, Trial)> + Clone) -> bool {
        let of = |side: fn(&(Trial, Trial)) -> &Trial| {
            let is_void = |trial: &&Trial| trial.void.is_some() && trial.failure().is_none();
            (pairs.clone().count(), pairs.clone().map(side).filter(is_void).count())
        };
        p_more(of(|(a, _)| a), of(|(_, b)| b)) <= ALPHA
    }

    /// Whether further runs would not change it.
    pub(crate) fn is_clear(&self) -> bool {
        self.a.failed == 0 && self.b.failed >= CLEAR
    }
}

impl SideFailures {
    pub(crate) fn of<'a>(trials: impl Iterator<Item = &'a Trial>) -> SideFailures {
        let mut side = SideFailures::default();
        for trial in trials {
            side.runs += 1;
            if let Some(failure) = trial.failure() {
                side.failed += 1;
                if side.how.is_none() {
                    (side.how, side.output) = (Some(failure.how.clone()), failure.said.clone());
                }
            }
        }
        side
    }

    /// The first run that failed, in words; none where none did.
    pub fn first(&self) -> Option<Failure> {
        Some(Failure { how: self.how.clone()?, said: self.output.clone() })
    }
}

/// Chance of as many of B's runs, where so many of A's runs and of B's met something.
fn p_more(a: (usize, usize), b: (usize, usize)) -> f64 {
    let (runs, met) = ((a.0 + b.0) as u64, (a.1 + b.1) as u64);
    match Hypergeometric::new(runs, met, b.0 as u64) {
        Ok(of_b) if b.1 > 0 => of_b.sf(b.1 as u64 - 1),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(a: (usize, usize), b: (usize, usize)) -> Failures {
        let trial = |fails: bool| {
            let failure = Failure { how: "signal 6 (SIGABRT)".into(), said: vec!["assertion failed".into()] };
            if fails { Trial::failed("one", failure) } else { Trial::default() }
        };
        assert_eq!(a.1, b.1);
        let pairs: Vec<(Trial, Trial)> = (0..a.1).map(|at| (trial(at < a.0), trial(at < b.0))).collect();
        Failures::of(pairs.iter())
    }

    /// scipy.stats.fisher_exact([[b, n - b], [a, n - a]], alternative="greater"), scipy 1.17.
    #[test]
    fn the_chance_is_fishers() {
        for (a, b, n, p) in [
            (0, 2, 16, 0.241_935_483_870_967_75),
            (1, 8, 20, 0.009_828_009_828_009_828),
            (3, 3, 10, 0.685_758_513_931_888_5),
        ] {
            let found = failures((a, n), (b, n)).p_worse;
            assert!((found - p).abs() < 1e-6, "{a} and {b} of {n}: {found}");
        }
    }

    #[test]
    fn two_of_sixteen_are_enough_where_the_baseline_never_failed() {
        let found = failures((0, 16), (2, 16));
        assert!(found.is_worse && !found.is_clear());
        assert_eq!((found.b.failed, found.b.runs), (2, 16));
        assert_eq!(found.b.first().unwrap().to_string(), "signal 6 (SIGABRT): assertion failed");
    }

    #[test]
    fn where_both_fail_chance_is_asked() {
        assert!(!failures((1, 16), (2, 16)).is_worse);
        assert!(failures((1, 20), (9, 20)).is_worse);
        assert!(!failures((3, 16), (0, 16)).is_worse && !failures((0, 16), (0, 16)).is_worse);
    }
}
