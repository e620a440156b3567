//! What a gate came to, as plain data. Sentences and pages are made of it elsewhere.

use serde::Serialize;
use taut_stats::compare::{Finding, Verdict};

use crate::{Ballot, Failures, HopChange, Plot, Subject, Void, Vote};

/// What a gate came to. A is the baseline, B the candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// On the program. What only the machine did is not in it.
    pub verdict: Verdict,
    /// The figures that voted.
    pub ballots: Vec<Ballot>,
    /// Runs that failed, by side.
    pub failures: Failures,
    /// The first messages, judged by themselves: their slowest, and the deadlines that they missed.
    pub startup: Vec<Ballot>,
    /// What the machine did meanwhile.
    pub machine: Option<MachineChange>,
    /// Hop by hop, cause by cause: mean times a message.
    pub hops: Vec<HopChange>,
    /// Index of the hop that got worse, when the verdict is worse and a hop is to blame.
    pub blamed: Option<usize>,
    /// Further figures, each by itself; they do not vote.
    pub described: Vec<Described>,
    /// The chain.
    pub chain: String,
    /// Its points.
    pub points: Vec<String>,
    /// Pairs that were judged, those of the confirmation included.
    pub pairs: usize,
    /// Of them, fresh ones that held an accusation against.
    pub fresh: usize,
    /// Trials that said nothing: name, why.
    pub void: Vec<(String, Void)>,
    /// Declared metrics that the trials do not carry, with the reason.
    pub silent: Vec<(Vote, String)>,
    /// True where nothing tells the program's time from the machine's: then all of it counts as the program's.
    pub is_blind: bool,
    /// Largest share of unknown time in a trial.
    pub unknown: f64,
    /// Distributions over all trials: A's whole way, B's, the same without the machine's part.
    pub plots: [Plot; 4],
}

/// A figure that does not vote.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Described {
    /// What it is a figure of.
    #[serde(flatten)]
    pub subject: Subject,
    /// By itself, at one look.
    #[serde(flatten)]
    pub finding: Finding,
}

/// What the machine did to B that it did not do to A.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineChange {
    /// Its mean part of a message's way, as a difference in ns.
    pub finding: Finding,
    /// True where it has taken more, by its part of the way or by the probe: at a level of 1 % over all three figures (Holm).
    pub is_worse: bool,
    /// True where that is so sure, at 0.1 % over all three, that it excuses what cannot be told from it.
    pub excuses: bool,
}
