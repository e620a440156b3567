//! The figures of an outcome as rows of text: the same in the terminal, in Markdown and on the page.

use taut_gate::{Ballot, Described, HopChange, Subject};
use taut_stats::compare::{Finding, Verdict};

use super::{GateShown, sentences};
use crate::words;

/// Causes that changed by less are not shown.
const CAUSE_MIN_NS: f64 = 100.0;

/// One figure.
pub(super) struct Row {
    pub figure: String,
    pub a: String,
    pub b: String,
    pub change: String,
    pub bounds: String,
    pub verdict: String,
    /// The smallest change that this gate finds.
    pub smallest: String,
    /// "worse", "better" or "": how to colour it.
    pub tone: &'static str,
}

pub(super) const HEADER: [&str; 7] = ["figure", "A", "B", "change", "95 %", "verdict", "finds"];

/// The figures that voted, the gravest first.
pub(super) fn ballots(shown: &GateShown<'_>) -> Vec<Row> {
    let mut ballots: Vec<&Ballot> = shown.outcome.ballots.iter().collect();
    ballots.sort_by_key(|ballot| match (ballot.finding.verdict, ballot.excused) {
        (Verdict::Worse, false) => 0,
        (Verdict::Worse, true) => 1,
        (Verdict::Invalid { .. }, _) => 2,
        (Verdict::NotEnoughEvidence { .. }, _) => 3,
        (Verdict::Better, _) => 4,
        (Verdict::NoRelevantDifference, _) => 5,
    });
    let worse_startup = sentences::worse_startup(shown.outcome).map(|one| ballot_row(shown, one));
    let voted = ballots.into_iter().map(|ballot| {
        let mut row = ballot_row(shown, ballot);
        let noise = shown.noise.iter().find(|noise| noise.subject == ballot.subject);
        let smallest = noise.and_then(|noise| noise.smallest);
        row.smallest = smallest.map_or("–".into(), |change| sentences::change(ballot.subject, change));
        row
    });
    worse_startup.chain(voted).collect()
}

/// The figures that did not vote.
pub(super) fn described(shown: &GateShown<'_>) -> Vec<Row> {
    let row = |described: &Described| row(shown, described.subject, &described.finding);
    let startup = shown.outcome.startup.iter().filter(|one| !one.is_worse()).map(|one| ballot_row(shown, one));
    startup.chain(shown.outcome.described.iter().map(row)).collect()
}

fn ballot_row(shown: &GateShown<'_>, ballot: &Ballot) -> Row {
    let row = row(shown, ballot.subject, &ballot.finding);
    if ballot.excused { Row { verdict: "excused".into(), tone: "", ..row } } else { row }
}

fn row(shown: &GateShown<'_>, subject: Subject, finding: &Finding) -> Row {
    let figures = finding.figures.as_ref();
    let of = |value: Option<f64>| value.map_or("–".into(), |value| sentences::number(subject, value));
    let change = |value: f64| sentences::change(subject, value);
    Row {
        figure: sentences::name(subject, shown.outcome),
        a: of(figures.map(|figures| figures.a.value)),
        b: of(figures.map(|figures| figures.b.value)),
        change: figures.map_or("–".into(), |figures| change(figures.change)),
        bounds: figures
            .and_then(|figures| figures.interval)
            .map_or("–".into(), |i| format!("{} … {}", change(i.low), change(i.high))),
        verdict: sentences::short(&finding.verdict).to_owned(),
        smallest: String::new(),
        tone: match finding.verdict {
            Verdict::Worse => "worse",
            Verdict::Better => "better",
            _ => "",
        },
    }
}

/// A hop, and below it its causes: (name, own, the machine's).
pub(super) fn hops(shown: &GateShown<'_>) -> Vec<[String; 3]> {
    let mut rows = Vec::new();
    for hop in &shown.outcome.hops {
        let time = sentences::time_change;
        rows.push([format!("{} → {}", hop.from, hop.to), time(&hop.own), time(&hop.machine)]);
        rows.extend(causes(hop));
    }
    rows
}

fn causes(hop: &HopChange) -> impl Iterator<Item = [String; 3]> + '_ {
    hop.causes.iter().filter(|cause| cause.time.change_ns.abs() >= CAUSE_MIN_NS).take(4).map(|cause| {
        let name = format!("  {}", cause.cause);
        let time = sentences::time_change(&cause.time);
        match cause.is_machine {
            true => [name, String::new(), time],
            false => [name, time, String::new()],
        }
    })
}

pub(super) const HOPS_TITLE: &str = "Where the time went: mean of a message in the median trial of each side";
/// The estimators, which need not add up.
pub(super) const HOPS_NOTE: &str = "In brackets: the change within a pair (Hodges–Lehmann over pairs), which need not be the difference of the medians.";
pub(super) const HOP_HEADER: [&str; 3] = ["hop, and causes that changed", "own", "machine"];

/// "14 pairs, 8 of them fresh · chain … · 43 s".
pub(super) fn about(shown: &GateShown<'_>) -> String {
    let outcome = shown.outcome;
    let mut parts = vec![words::quantity(outcome.pairs as u64, "pair")];
    if outcome.fresh > 0 {
        parts[0] += &format!(", {} of them fresh", outcome.fresh);
    }
    if !outcome.points.is_empty() {
        parts.push(outcome.points.join(" → "));
    }
    parts.extend(shown.elapsed_s.map(sentences::time));
    parts.extend(shown.seed.map(|seed| format!("seed {seed}")));
    parts.join(" · ")
}
