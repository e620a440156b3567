//! What a loop was found by: `loops` and `timers` find it, `names` names it.

use crate::route::LoopEvidence;

/// A loop, and which of the worker's runs are its.
#[derive(Clone)]
pub(super) struct Found {
    pub evidence: LoopEvidence,
    pub period_ns: u64,
    pub skipped: u64,
    /// Places among the worker's runs, ascending.
    pub runs: Vec<usize>,
    /// Of several timers that one run may serve: when this one released each of them. Else the runs say it.
    pub releases: Vec<u64>,
}
