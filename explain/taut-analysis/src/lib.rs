//! Reads a recording: chains, hops, outcomes. Opens no file and reads no clock.
//!
//! The way through: [`Analyzer`] collects stamps (`collect`), cuts them into messages (`messages`),
//! finds the line that most messages of a chain follow (`line`), and works out its figures
//! (`figures`, `startup`, `outcomes`). `docs/analysis.md` says how in words.

mod collect;
mod figures;
mod line;
mod messages;
mod outcomes;
mod result;
mod startup;

pub use collect::Analyzer;
pub use result::*;

/// What the user declares in `taut.toml`.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Declared chains; points that none of them names are still inferred into chains.
    pub chains: Vec<DeclaredChain>,
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
    /// Nothing was stamped.
    #[error("holds no stamps: did the command stamp, and was it started by `taut record` (or with TAUT_SESSION set)?")]
    Empty,
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
