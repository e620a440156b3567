//! The result of a gate, as plain data. Sentences and pages are made of it elsewhere.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use taut_stats::compare::{Finding, Verdict};

use crate::{Ballot, Failures, HopChange, Plot, Subject, Void, Vote};

/// What a gate came to. A is the baseline, B the candidate. What needs names to be read is left out of its JSON: reports write it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Outcome {
    /// On the program. What only the machine did is not in it.
    #[serde(skip)]
    pub verdict: Verdict,
    /// The figures that voted.
    #[serde(skip)]
    pub ballots: Vec<Ballot>,
    /// Runs that failed, by side.
    #[serde(rename = "failed_runs")]
    pub failures: Failures,
    /// The first messages, judged by themselves: their slowest, and the deadlines that they missed.
    #[serde(skip)]
    pub startup: Vec<Ballot>,
    /// What the machine did meanwhile; null where nothing separates it from the program.
    pub machine: Option<MachineChange>,
    /// Mean time of a message in the median trial, hop by hop.
    pub hops: Vec<HopChange>,
    /// Index of the hop that got worse, when the verdict is worse and a hop grew.
    #[serde(skip)]
    pub blamed: Option<usize>,
    /// Further figures, each by itself; they do not vote.
    #[serde(skip)]
    pub described: Vec<Described>,
    /// The chain's name.
    pub chain: String,
    /// Its points in order.
    pub points: Vec<String>,
    /// Pairs that were judged, those of the confirmation included.
    pub pairs: usize,
    /// Of them, fresh ones that an accusation was held against.
    #[serde(rename = "fresh_pairs")]
    pub fresh: usize,
    /// Trials that said nothing.
    pub void: Vec<VoidTrial>,
    /// Declared metrics that the trials do not carry, with the reason.
    #[serde(skip)]
    pub silent: Vec<(Vote, String)>,
    /// True where nothing tells the program's time from the machine's: then all of it counts as the program's.
    #[serde(skip)]
    pub is_blind: bool,
    /// Where most of a trial is so short beside the baseline's own silences that a run which hangs would not be seen as failed: the
    /// last so many seconds of trials of so many.
    #[serde(skip)]
    pub hang_hidden_s: Option<(f64, f64)>,
    /// Largest share of unknown time in a trial.
    #[serde(skip)]
    pub unknown: f64,
    /// Distributions over all trials: [from ns, to ns, messages].
    pub distributions: Distributions,
}

/// Of both sides: the whole way, and the same without the machine's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Distributions {
    #[serde(serialize_with = "bins")]
    #[schemars(with = "Vec<(f64, f64, u64)>")]
    pub a_total: Plot,
    #[serde(serialize_with = "bins")]
    #[schemars(with = "Vec<(f64, f64, u64)>")]
    pub b_total: Plot,
    #[serde(serialize_with = "bins")]
    #[schemars(with = "Vec<(f64, f64, u64)>")]
    pub a_own: Plot,
    #[serde(serialize_with = "bins")]
    #[schemars(with = "Vec<(f64, f64, u64)>")]
    pub b_own: Plot,
}

/// A trial that said nothing.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Void")]
pub struct VoidTrial {
    /// Its name.
    pub trial: String,
    /// Why, in words.
    #[serde(serialize_with = "words")]
    #[schemars(with = "String")]
    pub why: Void,
}

fn bins<S: Serializer>(plot: &Plot, out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(plot.bins())
}

fn words<S: Serializer>(why: &Void, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(why)
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

/// What the machine did to B that it did not do to A: its mean part of a message's way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Machine")]
pub struct MachineChange {
    /// Proven to have taken more of B than of A, by its part of the way or by the probe: at a level of 1 % over all three figures (Holm).
    pub is_worse: bool,
    /// Whether that is so sure, at 0.1 % over all three, that it excuses what cannot be separated from it.
    #[serde(skip)]
    pub excuses: bool,
    /// Median over A's trials.
    pub a_ns: f64,
    /// Median over B's trials.
    pub b_ns: f64,
    /// From A to B.
    pub change_ns: f64,
}
