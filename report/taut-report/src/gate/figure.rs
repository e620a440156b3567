//! A figure that was judged, with its name: what scripts get, and what tables and tests are made of.

use schemars::JsonSchema;
use serde::Serialize;
use taut_gate::{Ballot, Described, Subject};
use taut_stats::compare::{ChangeFigures, Finding, Verdict};

use super::{GateShown, sentences};

/// A figure that was judged.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Figure")]
pub(super) struct GateFigure {
    /// E.g. "plan → send, own p50".
    pub figure: String,
    /// Index of the hop; null for the whole way and for shares.
    hop: Option<usize>,
    /// "ns" or "share".
    unit: &'static str,
    /// As the whole gate's.
    verdict: &'static str,
    /// Worse, but the machine got worse with it.
    excused: bool,
    /// Median over A's trials.
    pub a: Option<f64>,
    /// Median over B's trials.
    pub b: Option<f64>,
    /// From A to B: 0.1 is +10 % of a time, or 10 points of a share.
    pub change: Option<f64>,
    /// Lower bound.
    pub change_low: Option<f64>,
    /// Upper bound.
    pub change_high: Option<f64>,
    /// Pairs that have this figure.
    pairs: Option<usize>,
    /// Change from which on it counts.
    minimum_effect: Option<f64>,
    /// Against "not worse", adjusted for all figures that decide.
    p_worse: Option<f64>,
    /// Noise of one pair.
    noise: Option<f64>,
    /// Noise of one pair of A with itself; null where nobody asked, or below 4 pairs.
    noise_floor: Option<f64>,
    /// Smallest change that this gate finds with a chance of 0.9; null where nobody asked, or where it finds none.
    pub smallest_detectable: Option<f64>,
    /// What the verdict is made of.
    #[serde(skip)]
    pub found: Verdict,
}

impl GateFigure {
    /// One that voted, or of the start-up.
    pub fn voted(shown: &GateShown<'_>, ballot: &Ballot) -> GateFigure {
        let noise = shown.noise.iter().find(|noise| noise.subject == ballot.subject);
        GateFigure {
            excused: ballot.excused,
            noise_floor: noise.and_then(|noise| noise.of_pair),
            smallest_detectable: noise.and_then(|noise| noise.smallest),
            ..GateFigure::of(shown, ballot.subject, &ballot.finding)
        }
    }

    /// One that did not vote.
    pub fn described(shown: &GateShown<'_>, described: &Described) -> GateFigure {
        GateFigure::of(shown, described.subject, &described.finding)
    }

    fn of(shown: &GateShown<'_>, subject: Subject, finding: &Finding) -> GateFigure {
        let figures = finding.figures.as_ref();
        let of = |value: fn(&ChangeFigures) -> f64| figures.map(value);
        let interval = figures.and_then(|figures| figures.interval);
        GateFigure {
            figure: sentences::name(subject, shown.outcome),
            hop: subject.hop(),
            unit: if subject.is_share() { "share" } else { "ns" },
            verdict: sentences::word(&finding.verdict),
            excused: false,
            a: of(|figures| figures.a.value),
            b: of(|figures| figures.b.value),
            change: of(|figures| figures.change),
            change_low: interval.map(|interval| interval.low),
            change_high: interval.map(|interval| interval.high),
            pairs: figures.map(|figures| figures.pairs),
            minimum_effect: of(|figures| figures.minimum_effect),
            p_worse: of(|figures| figures.p_worse),
            noise: figures.and_then(|figures| figures.noise),
            noise_floor: None,
            smallest_detectable: None,
            found: finding.verdict,
        }
    }

    /// A share, and no time.
    pub fn is_share(&self) -> bool {
        self.unit == "share"
    }

    /// Worse, and nothing excuses it.
    pub fn is_worse(&self) -> bool {
        self.found == Verdict::Worse && !self.excused
    }

    /// The verdict where there is little room.
    pub fn short(&self) -> &'static str {
        match self.found {
            _ if self.excused => "excused",
            Verdict::NoRelevantDifference => "same",
            Verdict::NotEnoughEvidence { .. } => "open",
            _ => self.verdict,
        }
    }

    /// For sorting: the gravest first.
    fn gravity(&self) -> u8 {
        match self.found {
            Verdict::Worse => u8::from(self.excused),
            Verdict::Invalid { .. } => 2,
            Verdict::NotEnoughEvidence { .. } => 3,
            Verdict::Better => 4,
            Verdict::NoRelevantDifference => 5,
        }
    }
}

/// The figures that decided, the gravest first: of the start-up those that are worse.
pub(super) fn deciding(shown: &GateShown<'_>) -> Vec<GateFigure> {
    let voted = shown.outcome.ballots.iter().map(|ballot| GateFigure::voted(shown, ballot));
    let mut voted: Vec<GateFigure> = voted.collect();
    voted.sort_by_key(GateFigure::gravity);
    let startup = sentences::worse_startup(shown.outcome).map(|one| GateFigure::voted(shown, one));
    startup.chain(voted).collect()
}

/// All others.
pub(super) fn others(shown: &GateShown<'_>) -> Vec<GateFigure> {
    let startup = shown.outcome.startup.iter().filter(|one| !one.is_worse());
    let startup = startup.map(|one| GateFigure::voted(shown, one));
    startup.chain(shown.outcome.described.iter().map(|one| GateFigure::described(shown, one))).collect()
}
