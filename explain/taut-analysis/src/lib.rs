//! Reads a recording: chains, hops, outcomes. Opens no file and reads no clock.
//!
//! The way through: [`Analyzer`] collects stamps (`collect`), cuts them into messages (`messages`),
//! finds the line that most messages of a chain follow (`line`), and works out its figures
//! (`figures`, `startup`, `outcomes`). Then whose time it was: kernel events become timelines
//! (the crate `taut-timelines`), each message's critical path is walked on them (`walk`) and summed up (`ledger`), and the
//! tail is compared with the usual messages (`explain`, `suspects`, `advice`).
//! `docs/analysis.md` and `docs/causes.md` say how in words.

mod advice;
mod collect;
mod environment;
mod explain;
mod explained;
mod figures;
mod histograms;
mod ledger;
mod line;
mod marks;
mod messages;
mod modes;
mod names;
mod outcomes;
mod predictions;
mod queues;
mod replay;
mod resample;
mod result;
mod rows;
mod sides;
mod signals;
mod stacks;
mod starts;
mod startup;
mod suspects;
mod telemetry;
mod wakeups;
mod walk;

pub use collect::Analyzer;
pub use explained::*;
pub use histograms::{Histogram, Quantile};
pub use result::*;
pub use rows::{CauseRow, HopRow, MessageRow, Row, RowSink, StateRow};
pub use signals::{Signal, Tracking};
pub use stacks::{Profile, Stacks};
pub use telemetry::{Gaps, Telemetry};
pub use wakeups::{late_wakeups, probe_chain};

/// What the user declares in `taut.toml`.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Declared chains; points that none of them names are still inferred into chains.
    pub chains: Vec<DeclaredChain>,
    /// Chains of an earlier stretch of the same stream: they keep their points in this one, whoever of them is
    /// missing, and are no mistake where nobody is there.
    pub followed: Vec<DeclaredChain>,
    /// What to explain beyond the usual.
    pub explain: Wanted,
}

/// What `taut explain` is asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How many of the worst messages come with their path.
    pub worst: usize,
    /// Messages that come with their path besides.
    pub messages: Vec<u64>,
    /// Every message that took at least so long comes with its path besides.
    pub from_ns: Option<u64>,
    /// Suspects to judge besides: "lock:NAME", "gil", "hop:NAME", "process:NAME", "irq" …
    pub suspects: Vec<String>,
    /// What to predict the chain without besides, each with one or several words as in `suspects`.
    pub without: Vec<Vec<String>>,
    /// Which messages are explained; without it, those that missed the deadline, or else the tail.
    pub above: Option<Above>,
    /// Instead of the declared chains' deadlines, end to end.
    pub deadline_ns: Option<u64>,
    /// Whether every message's budget is wanted.
    pub budgets: bool,
    /// Whether every message's time is wanted, the program's apart from the machine's.
    pub sides: bool,
    /// Whether only rows are wanted, and nothing is explained.
    pub only_rows: bool,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted {
            worst: 10,
            messages: Vec::new(),
            from_ns: None,
            suspects: Vec::new(),
            without: Vec::new(),
            above: None,
            deadline_ns: None,
            budgets: false,
            sides: false,
            only_rows: false,
        }
    }
}

/// The messages above this are explained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Above {
    /// E.g. 0.95.
    Quantile(f64),
    /// End to end.
    Ns(u64),
}

/// A chain by the user's word.
#[derive(Clone, Debug)]
pub struct DeclaredChain {
    /// Its name in reports.
    pub name: String,
    /// Its points in order, at least two.
    pub points: Vec<String>,
    /// End to end.
    pub deadline_ns: Option<u64>,
}

/// Why there is no analysis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing was stamped, and nothing told by telemetry or histograms.
    #[error(
        "holds no stamps, no telemetry and no histograms: did the command stamp, and was it started by `taut record` (or with \
         TAUT_SESSION set)?"
    )]
    Empty,
    /// `--suspect` names nothing that the recording knows.
    #[error("suspect {suspect:?} is unknown; {hint}")]
    UnknownSuspect {
        /// As given.
        suspect: String,
        /// What can be named.
        hint: String,
    },
    /// `--message` names no message of a chain.
    #[error("message {id} passed no chain of this recording from end to end; `taut explain RUN --worst 10` names some")]
    UnknownMessage {
        /// As given.
        id: u64,
    },
    /// `taut.toml` names points that nobody stamped.
    #[error("chain {chain:?} of taut.toml: nothing was stamped at {point:?}; {hint}")]
    UnknownPoint {
        /// The declared chain.
        chain: String,
        /// Its first unknown point.
        point: String,
        /// The nearest known name, or all of them.
        hint: String,
    },
}
