//! What changed where: mean times of hops and causes, pair by pair. Names the hop that a verdict is about.

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::compare::Shift;

use crate::{Ballot, Subject, Trial, trial::is_wait_for_others};

/// Causes that change less than this do not come up.
const NO_NEWS_NS: f64 = 50.0;
/// One-sided error of the printed bounds.
const SIDE: f64 = 0.025;

/// Mean time a message, A against B, over pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Time")]
pub struct TimeChange {
    /// Median over A's trials of the trial's mean.
    pub a_ns: f64,
    /// The same of B's.
    pub b_ns: f64,
    /// Within a pair: Hodges–Lehmann over pairs, which need not be the difference of the medians.
    pub change_ns: f64,
    /// Its 95 % bounds; null below 6 pairs.
    pub change_low_ns: Option<f64>,
    /// As above.
    pub change_high_ns: Option<f64>,
}

/// What changed in a hop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Hop")]
pub struct HopChange {
    /// Point it starts at.
    pub from: String,
    /// Point it ends at.
    pub to: String,
    /// The program's own time.
    pub own: TimeChange,
    /// Of it, on a CPU.
    pub work: TimeChange,
    /// Of it, waits behind other messages, locks and the interpreter: often what a slower hop does to its neighbours.
    pub waits: TimeChange,
    /// The machine's part.
    pub machine: TimeChange,
    /// Largest change first.
    pub causes: Vec<CauseChange>,
}

/// What changed of one cause in a hop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Cause")]
pub struct CauseChange {
    /// The cause's word.
    pub cause: String,
    /// "program" or "machine".
    #[serde(rename = "side", serialize_with = "side")]
    #[schemars(with = "String")]
    pub is_machine: bool,
    /// Its time.
    #[serde(flatten)]
    pub time: TimeChange,
}

fn side<S: serde::Serializer>(is_machine: &bool, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(if *is_machine { "machine" } else { "program" })
}

/// All hops of pairs of one chain.
pub(crate) fn hops(pairs: &[&(Trial, Trial)]) -> Vec<HopChange> {
    let Some((first, _)) = pairs.first() else { return Vec::new() };
    (0..first.hops.len()).map(|at| hop(pairs, at)).collect()
}

fn hop(pairs: &[&(Trial, Trial)], at: usize) -> HopChange {
    let hop = &pairs[0].0.hops[at];
    let sum = |of: &dyn Fn(&crate::Spent) -> bool| {
        change(pairs, |trial| trial.hops[at].spent.iter().filter(|s| of(s)).map(|s| s.mean_ns).sum())
    };
    let mut keys: Vec<(String, bool)> = Vec::new();
    for spent in pairs.iter().flat_map(|(a, b)| a.hops[at].spent.iter().chain(&b.hops[at].spent)) {
        let key = (spent.cause.clone(), spent.is_machine);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut causes: Vec<CauseChange> = keys
        .into_iter()
        .map(|(cause, is_machine)| {
            let time = sum(&|s| s.cause == cause && s.is_machine == is_machine);
            CauseChange { cause, is_machine, time }
        })
        .collect();
    causes.sort_by(|a, b| b.time.change_ns.abs().total_cmp(&a.time.change_ns.abs()));
    HopChange {
        from: hop.from.clone(),
        to: hop.to.clone(),
        own: sum(&|s| !s.is_machine),
        work: sum(&|s| !s.is_machine && matches!(s.cause.as_str(), "cpu" | "syscall" | "page_fault")),
        waits: sum(&|s| !s.is_machine && is_wait_for_others(&s.cause)),
        machine: sum(&|s| s.is_machine),
        causes,
    }
}

fn change(pairs: &[&(Trial, Trial)], of: impl Fn(&Trial) -> f64) -> TimeChange {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().map(|(a, b)| (of(a), of(b))).unzip();
    let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
    let Some(shift) = Shift::of(&differences) else { return TimeChange::default() };
    TimeChange {
        a_ns: median(a),
        b_ns: median(b),
        change_ns: shift.estimate(),
        change_low_ns: shift.lower(SIDE),
        change_high_ns: shift.upper(SIDE),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// The hop that got worse: of those voted worse, the one that grew most. What it does itself comes before what it waits for:
/// a slower hop makes the hops around it queue, so that own time is asked only where no work got worse.
pub(crate) fn blamed(ballots: &[Ballot], hops: &[HopChange]) -> Option<usize> {
    let mut worse: Vec<&Ballot> = ballots.iter().filter(|ballot| ballot.is_worse()).collect();
    if worse.iter().any(|ballot| ballot.subject.is_work()) {
        worse.retain(|ballot| ballot.subject.is_work());
    }
    let grown = |ballot: &&Ballot| -> Option<(usize, f64)> {
        let (hop, figures) = (ballot.subject.hop()?, ballot.finding.figures.as_ref()?);
        // Each slow message takes at least as long again as a usual one.
        let of = if ballot.subject.is_share() { hops[hop].own.a_ns } else { figures.a.value };
        let grown = figures.change * of;
        let itself = 1.0 - (hops[hop].waits.change_ns / hops[hop].own.change_ns).clamp(0.0, 1.0);
        Some((hop, if itself.is_nan() { grown } else { grown * itself.max(0.05) }))
    };
    let most = worse.iter().filter_map(grown).max_by(|a, b| a.1.total_cmp(&b.1));
    // A figure of the whole way names no hop: then the one that grew most.
    let of_chain = || {
        let is_chain = worse.iter().any(|b| matches!(b.subject, Subject::Chain { .. }));
        let own = |hop: &HopChange| hop.own.change_ns - hop.waits.change_ns;
        let by_own = (0..hops.len()).max_by(|a, b| own(&hops[*a]).total_cmp(&own(&hops[*b])));
        by_own.filter(|hop| is_chain && own(&hops[*hop]) > NO_NEWS_NS)
    };
    most.map(|(hop, _)| hop).or_else(of_chain)
}
