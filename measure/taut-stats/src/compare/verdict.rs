//! The result of a comparison: verdicts with the figures that a sentence about them needs. Rendering is not here.

use serde::Serialize;

use super::{Interval, LookAlpha, Typical};

/// One of five, for a metric or for all together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Proven to be worse by more than the minimum effect; final once confirmed on fresh pairs.
    Worse,
    /// Proven to be better by more than the minimum effect.
    Better,
    /// Proven to differ by less than the equivalence margin, and estimated below the minimum effect.
    NoRelevantDifference,
    /// Neither of these can be said.
    NotEnoughEvidence {
        /// How many more pairs would settle it with a chance of 4 in 5, if the change is the one estimated. `None`
        /// where that is not to be had: over 10 000, or unknown.
        more_pairs: Option<usize>,
    },
    /// The pairs say nothing about the program.
    Invalid {
        /// Why.
        reason: InvalidReason,
    },
}

/// Why pairs say nothing.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum InvalidReason {
    /// Nothing to compare.
    #[error("no pair of trials has this metric: run longer trials, or choose a coarser quantile")]
    NoPairs,
    /// More than a fifth of the pairs lack the number.
    #[error(
        "{void} of {pairs} pairs lack this metric, more than a fifth: run longer trials, or choose a coarser quantile"
    )]
    TooManyVoid {
        /// Pairs without the number.
        void: usize,
        /// All pairs.
        pairs: usize,
    },
    /// Not the figures are at fault: the machine stood still.
    #[error(
        "the machine stalled in {void} of {pairs} pairs, by the probe beside the program: free it of other work, or run again when it is quiet"
    )]
    Stalled {
        /// Pairs that say nothing.
        void: usize,
        /// All pairs.
        pairs: usize,
    },
    /// Nor are they where records are missing.
    #[error(
        "stamps or kernel events are missing in {void} of {pairs} pairs: record less (--depth sched), or leave the recorder a CPU"
    )]
    Lost {
        /// Pairs that say nothing.
        void: usize,
        /// All pairs.
        pairs: usize,
    },
    /// Nor where runs were over too soon.
    #[error("none of a run's messages went all the way in {void} of {pairs} pairs: run longer trials (--duration)")]
    Unfinished {
        /// Pairs that say nothing.
        void: usize,
        /// All pairs.
        pairs: usize,
    },
    /// Or where runs failed.
    #[error("a run failed in {void} of {pairs} pairs: see the last lines of its output, and correct the command")]
    Failed {
        /// Pairs that say nothing.
        void: usize,
        /// All pairs.
        pairs: usize,
    },
    /// A ratio of numbers that are not above zero, or a number that is not finite.
    #[error("{pairs} pairs have no finite ratio: compare this metric as a difference")]
    NotComparable {
        /// Pairs of which the scale makes no number.
        pairs: usize,
    },
    /// The program differs from itself.
    #[error(
        "the program run against itself differs by {change:+.3}: the machine, or the order of trials, is not fit to compare on"
    )]
    ControlDiffers {
        /// As in [`ChangeFigures::change`].
        change: f64,
    },
    /// A and B did not run on the same kind of machine.
    #[error("A and B ran on different machines: run both on one")]
    OtherMachine,
}

impl InvalidReason {
    /// The same sentence where single trials are counted, and not pairs.
    pub fn of_trials(self) -> String {
        self.to_string().replacen(" pairs", " trials", 1)
    }
}

/// The figures behind a verdict. Changes are 0.1 for +10 % on the ratio scale, else in the metric's unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeFigures {
    /// Complete pairs.
    pub pairs: usize,
    /// Estimated change from A to B (Hodges–Lehmann).
    pub change: f64,
    /// Its bounds, as if there had been one look: where a gate stops at a look of its own choosing they hold as often as
    /// `docs/proof/statistics.md` says. `None` where so few pairs give none.
    pub interval: Option<Interval>,
    /// The minimum effect as a change.
    pub minimum_effect: f64,
    /// The equivalence margin as a change.
    pub equivalence: f64,
    /// Against "not worse by more than the minimum effect", adjusted for all metrics.
    pub p_worse: f64,
    /// Against "not better by more than the minimum effect", adjusted for all metrics.
    pub p_better: f64,
    /// Against "differs by the equivalence margin or more".
    pub p_equivalent: f64,
    /// The levels that these p-values were held against.
    pub alpha: LookAlpha,
    /// Noise of one pair, as a standard deviation on the scale (of logarithms for a ratio).
    pub noise: Option<f64>,
    /// The baseline's typical trial.
    pub a: Typical,
    /// The candidate's typical trial.
    pub b: Typical,
}

/// The verdict on one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Its figures; of the fresh pairs where those were asked for, free of the luck that made the accusation.
    pub figures: Option<ChangeFigures>,
    /// The figures of the finding, where fresh pairs decided.
    pub accusation: Option<ChangeFigures>,
}

/// The verdict on all metrics.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The gravest of the metrics' verdicts: worse, invalid, not enough evidence, better, no relevant difference.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Each metric's, in the order given.
    pub findings: Vec<Finding>,
    /// Complete pairs.
    pub pairs: usize,
    /// What to do now.
    pub next: Next,
}

/// What to do after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "next", rename_all = "snake_case")]
pub enum Next {
    /// Run more and look again.
    Continue {
        /// Complete pairs at the next look; of fresh ones while confirming.
        until_pairs: usize,
    },
    /// A metric is found worse: run fresh pairs, and hand them to `confirm`.
    Confirm {
        /// Complete fresh pairs at the first look.
        until_pairs: usize,
    },
    /// Settled, or out of pairs.
    Stop,
}

impl Verdict {
    /// The gravest of several; `None` of none.
    pub fn gravest(of: impl Iterator<Item = Verdict>) -> Option<Verdict> {
        of.reduce(|one, other| match (one, other) {
            (Verdict::NotEnoughEvidence { more_pairs: m }, Verdict::NotEnoughEvidence { more_pairs: n }) => {
                Verdict::NotEnoughEvidence { more_pairs: m.zip(n).map(|(m, n)| m.max(n)) }
            }
            _ if other.gravity() > one.gravity() => other,
            _ => one,
        })
    }

    fn gravity(self) -> u8 {
        match self {
            Verdict::NoRelevantDifference => 0,
            Verdict::Better => 1,
            Verdict::NotEnoughEvidence { .. } => 2,
            Verdict::Invalid { .. } => 3,
            Verdict::Worse => 4,
        }
    }
}
