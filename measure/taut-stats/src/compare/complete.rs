//! Which pairs may be judged.

use super::{Metric, Pair, verdict::InvalidReason};

/// Whether a metric's pairs are fit to be judged.
pub(super) fn check(metric: &Metric) -> Result<(), InvalidReason> {
    let pairs = metric.pairs.len();
    let void = metric.pairs.iter().filter(|pair| pair.is_none()).count();
    let odd = metric.pairs.iter().flatten().filter(|pair| !metric.rule.scale.difference(**pair).is_finite()).count();
    match () {
        () if void == pairs => Err(InvalidReason::NoPairs),
        () if odd > 0 => Err(InvalidReason::NotComparable { pairs: odd }),
        () if void * 5 > pairs => Err(InvalidReason::TooManyVoid { void, pairs }),
        () => Ok(()),
    }
}

/// The pairs that every metric has, metric by metric.
pub(super) fn complete(metrics: &[&Metric]) -> Vec<Vec<Pair>> {
    let rows = metrics.iter().map(|m| m.pairs.len()).min().unwrap_or(0);
    let is_complete = |row: &usize| metrics.iter().all(|m| m.pairs[*row].is_some());
    let rows: Vec<usize> = (0..rows).filter(is_complete).collect();
    metrics.iter().map(|m| rows.iter().filter_map(|row| m.pairs[*row]).collect()).collect()
}
