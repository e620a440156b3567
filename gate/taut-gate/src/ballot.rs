//! The finding on one figure that decides.

use serde::Serialize;
use taut_stats::compare::{Finding, Verdict};

use crate::Subject;

/// A figure that voted, or of the start-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ballot {
    /// What it is a figure of.
    #[serde(flatten)]
    pub subject: Subject,
    /// What became of it.
    #[serde(flatten)]
    pub finding: Finding,
    /// Worse, but the machine got worse with it: it is not shown that it was the program.
    pub excused: bool,
}

impl Ballot {
    /// Worse, and nothing excuses it.
    pub fn is_worse(&self) -> bool {
        self.finding.verdict == Verdict::Worse && !self.excused
    }
}
