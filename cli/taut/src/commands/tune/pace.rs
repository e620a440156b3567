//! How fast the command goes, by its first recording: what the length of trials follows from.

use std::time::Duration;

/// Of the chain to tune.
pub struct Pace {
    pub chain: String,
    /// Names of its threads.
    pub names: Vec<String>,
    /// All other chains.
    pub others: Vec<String>,
    /// From the first to the last message.
    pub span_s: f64,
    pub messages: u64,
    /// To record it.
    pub took: Duration,
    /// To analyse it.
    pub analysed: Duration,
    /// The command ended by itself.
    pub is_over: bool,
}
