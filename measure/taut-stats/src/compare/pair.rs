//! What is compared: one number for each trial, in pairs that ran back to back.

use serde::{Deserialize, Serialize};

use crate::Distribution;

/// One metric of the two trials of a pair, in the metric's unit: `a` of the baseline, `b` of the candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The baseline's trial.
    pub a: f64,
    /// The candidate's trial.
    pub b: f64,
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
