//! How fast the command goes, by its first recording: what the length of trials follows from.

use std::time::Duration;

use taut_stats::Distribution;

/// A program starts within this; else what it does until its first message is its work.
pub const START_S: f64 = 2.0;

/// What must not become slower: a chain, or a loop that is part of none.
#[derive(Clone, Debug, PartialEq)]
pub enum Other {
    Chain(String),
    Loop(String),
}

impl Other {
    pub fn name(&self) -> &str {
        match self {
            Other::Chain(name) | Other::Loop(name) => name,
        }
    }

    /// As --protect takes it.
    pub fn word(&self) -> String {
        match self {
            Other::Chain(name) => format!("chain:{name}"),
            Other::Loop(name) => format!("loop:{name}"),
        }
    }
}

/// Of the chain to tune.
pub struct Pace {
    pub chain: String,
    /// Names of its threads.
    pub names: Vec<String>,
    /// All other chains and loops.
    pub others: Vec<Other>,
    /// From the first to the last message.
    pub span_s: f64,
    pub messages: u64,
    /// Of each message, in the order of their starts.
    pub latencies_ns: Vec<u64>,
    /// To record it.
    pub took: Duration,
    /// To analyse it.
    pub analysed: Duration,
    /// A quota takes the CPU from the program, and so from the probe beside it: a stall of the probe is none of the machine.
    pub is_throttled: bool,
    /// A trial's duration counts from its start, not from its first message.
    pub is_from_start: bool,
    /// The command ended by itself.
    pub is_over: bool,
}

impl Pace {
    /// The distribution in a trial of so many messages: what is late together is one burst of few, and says less than its messages do.
    pub fn of_messages(&self, messages: f64) -> Distribution {
        let part = &self.latencies_ns[self.latencies_ns.len().saturating_sub(messages as usize)..];
        let mut sorted = part.to_vec();
        sorted.sort_unstable();
        Distribution::of(part, &sorted)
    }
}
