//! What is drawn: how many cycles, and what a cycle is of its lanes.

use super::load::Lane;

/// How the Monte-Carlo draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Cycles to draw.
    pub cycles: u32,
    /// The same seed draws the same cycles, on every machine.
    pub seed: u64,
}

/// Serial lanes add up, and the longest of the parallel ones.
pub(super) fn cycle(lanes: &[Lane], busy: &[f64]) -> f64 {
    let (mut serial, mut parallel) = (0.0, 0.0_f64);
    for (lane, us) in lanes.iter().zip(busy) {
        if lane.parallel {
            parallel = parallel.max(*us);
        } else {
            serial += us;
        }
    }
    serial + parallel
}
