//! A gate's outcome, a comparison of trials, limits and histories: a document each, its JSON, and JUnit. Nothing is worked out here;
//! what is said of the figures is said once (`sentences`).

mod cells;
mod document;
mod figure;
mod history;
mod json;
mod junit;
mod limits;
mod sentences;

#[cfg(test)]
pub(crate) mod sample;

pub use document::gate_document;
pub use history::{HistoryShown, history_document, history_json};
pub use json::gate_json;
pub use junit::{gate_junit, limits_junit};
pub use limits::{LimitsShown, limits_document, limits_json};
pub use sentences::headline as gate_headline;

use taut_gate::{Noise, Outcome};

/// An outcome with what is to be said about it.
#[derive(Clone, Copy, Debug)]
pub struct GateShown<'a> {
    /// "gate", or "compare" where nothing is at stake.
    pub kind: &'static str,
    /// What A is: a command, a revision, a file.
    pub a: &'a str,
    /// What B is.
    pub b: &'a str,
    /// What was found.
    pub outcome: &'a Outcome,
    /// The noise floor of each figure that voted; empty where nobody asked.
    pub noise: &'a [Noise],
    /// How long it took, for the estimate of what more pairs would take; `None` for stored trials.
    pub elapsed_s: Option<f64>,
    /// What the order within pairs was drawn from; `None` for stored trials.
    pub seed: Option<u64>,
    /// What else is said.
    pub terms: Terms<'a>,
}

/// What is said beside a verdict of any kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// Sentences that a reader must know.
    pub notes: &'a [String],
    /// Whether no verdict ("not enough evidence", "invalid") counts as a failure.
    pub inconclusive_fails: bool,
}

impl Terms<'_> {
    /// What becomes of no verdict.
    fn counts(&self) -> &'static str {
        if self.inconclusive_fails { "fails here" } else { "does not fail" }
    }
}
