//! `taut lab break`: at which load does success fall below a given chance? Every trial on a fresh start, none repeated
//! because it failed; the answer is an interval between a load proven fine and one proven broken.

mod bisect;
mod evidence;

use serde::Serialize;
use taut_stats::compare::typical;

use crate::{
    Breaking, Error, Event, Load, Order, Proportion, Scenario, Status, Trial, figures::misfortunes, manifest::Kind,
    run::Work, session::Block,
};
use bisect::{Range, Search};
use evidence::{Claim, Judge};

/// So many invalid trials in a row, and the load is out of this machine's reach.
const INVALID_IN_A_ROW: usize = 5;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Broken {
    /// What confined threads.
    pub confinement: String,
    /// What was asked.
    pub asked: Breaking,
    /// In the unit of what is varied, and what loads reached.
    pub unit: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The heaviest load proven fine.
    pub fine: Option<Edge>,
    /// The lightest load proven broken.
    pub broken: Option<Edge>,
    /// Valid trials.
    pub trials: u32,
    /// Trials that say nothing.
    pub invalid: u32,
    /// What was tried, lightest first.
    pub probes: Vec<Probe>,
    /// Why trials failed at the lightest load proven broken, the most frequent reason first.
    pub misfortunes: Vec<crate::Misfortune>,
    /// Why the search ended before its time.
    pub why: Option<String>,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The threshold is between two proven loads.
    Between,
    /// The heaviest load is proven fine.
    NeverBroke,
    /// The lightest load is proven broken.
    BrokeAtOnce,
    /// An end could not be proven: too few trials, too gentle a slope, or a load out of reach.
    Open,
}

/// One end of the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    /// The number that was varied.
    pub value: f64,
    /// Median of what the load reached there.
    pub achieved: Option<f64>,
    /// Of the trials there.
    pub success: Proportion,
}

/// The trials at one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Probe {
    /// The number that was varied.
    pub value: f64,
    /// Median of what the load reached.
    pub achieved: Option<f64>,
    /// Of its trials.
    pub success: Proportion,
    /// `fine`, `broken`, or nothing of the two.
    pub proven: Option<&'static str>,
}

/// Looks for the load that breaks the system.
///
/// # Errors
/// A lab without `[break]`; what [`Error`] says besides.
pub fn break_it(order: &Order<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Broken, Error> {
    let lab = order.lab;
    let nothing =
        |problem: &str| Error::File { file: order.file.0.to_owned(), place: "break".into(), problem: problem.into() };
    let asked = lab.breaking.as_ref().ok_or_else(|| nothing("is missing; say what to vary (docs/lab.md)"))?;
    let scenario = lab.scenarios.iter().find(|scenario| scenario.name == asked.scenario);
    let scenario = scenario.ok_or_else(|| nothing("names no scenario"))?;
    let mut search = search(asked, lab.seed);
    let mut work = Work::begin(order, Kind::Break, &[], tell)?;
    let mut why = None;
    // A resumed search is the same search: the trials that were written answer its first questions.
    let mut replayed = 0;
    let mut invalid_in_a_row = 0;
    while let Some(value) = search.next() {
        if replayed == work.trials.len() {
            let scenario = heavier(scenario, asked, value).map_err(|problem| nothing(&problem))?;
            let index = work.trials.len() as u32;
            work.block(&Block { round: index, scenario, varied: Some(value), trials: vec![index] }, None, tell)?;
        }
        let trial = &work.trials[replayed];
        replayed += 1;
        if trial.id.varied != Some(value) {
            return Err(Error::Manifest {
                folder: order.folder.to_owned(),
                problem: "its trials are not of this search; use another folder with -o".into(),
            });
        }
        if trial.status == Status::Invalid {
            invalid_in_a_row += 1;
            if invalid_in_a_row == INVALID_IN_A_ROW {
                why = Some(format!(
                    "{INVALID_IN_A_ROW} invalid trials in a row at {} {}: {}",
                    asked.vary,
                    crate::load::plain(value),
                    trial.reason.clone().unwrap_or_default()
                ));
                break;
            }
            continue;
        }
        invalid_in_a_row = 0;
        search.observe(trial.status == Status::Success);
    }
    let ran = work.end();
    Ok(told(asked, scenario, &search, &ran, why))
}

fn search(asked: &Breaking, seed: u64) -> Search {
    let range = Range {
        from: asked.from,
        to: asked.to,
        resolution: asked.resolution,
        whole: Load::is_whole(&asked.vary),
        most_per_load: asked.most_trials_per_load,
        most: asked.most_trials,
    };
    Search::new(range, Judge { success: asked.success, alpha: asked.alpha }, seed)
}

fn heavier(scenario: &Scenario, asked: &Breaking, value: f64) -> Result<Scenario, String> {
    let mut scenario = scenario.clone();
    let load = scenario.loads.get_mut(asked.load).ok_or("load is not there")?;
    *load = load.with(&asked.vary, value)?;
    Ok(scenario)
}

fn told(asked: &Breaking, scenario: &Scenario, search: &Search, ran: &crate::Ran, why: Option<String>) -> Broken {
    let at = |value: f64| ran.trials.iter().filter(move |trial| trial.id.varied == Some(value));
    let achieved = |value: f64| {
        let valid = at(value).filter(|trial| trial.status != Status::Invalid);
        let all: Vec<f64> = valid.filter_map(|trial| Some(trial.achieved.get(asked.load)?.achieved)).collect();
        typical(&all, 0.95).map(|typical| typical.value)
    };
    let probe = |(value, evidence, claim): (f64, evidence::Evidence, Option<Claim>)| Probe {
        value,
        achieved: achieved(value),
        success: Proportion::of(evidence.successes, evidence.trials),
        proven: claim.map(|claim| if claim == Claim::Fine { "fine" } else { "broken" }),
    };
    let probes: Vec<Probe> = search.tried().map(probe).collect();
    let edge = |value: f64| {
        let probe = probes.iter().find(|probe| probe.value == value)?;
        Some(Edge { value, achieved: probe.achieved, success: probe.success })
    };
    let (low, high) = search.ends();
    let is = |end: Option<f64>, limit: f64| end.is_some_and(|end| (end - limit).abs() < 1e-9 * limit);
    let (from, to) = match probes.as_slice() {
        [first, .., last] => (first.value, last.value),
        _ => (asked.from, asked.to),
    };
    let outcome = match (low, high) {
        (Some(_), Some(_)) => Outcome::Between,
        (Some(_), None) if is(low, to) && to >= asked.to.round().min(asked.to) => Outcome::NeverBroke,
        (None, Some(_)) if is(high, from) => Outcome::BrokeAtOnce,
        _ => Outcome::Open,
    };
    let why = why.or_else(|| {
        let spent = search.trials() >= asked.most_trials;
        spent.then(|| format!("all {} trials of most_trials are spent", asked.most_trials))
    });
    let at_broken: Vec<&Trial> = high.into_iter().flat_map(at).collect();
    Broken {
        confinement: ran.confinement.clone(),
        asked: asked.clone(),
        unit: scenario.loads.get(asked.load).map_or(String::new(), |load| load.unit().0.to_owned()),
        outcome,
        fine: low.and_then(edge),
        broken: high.and_then(edge),
        trials: search.trials(),
        invalid: ran.trials.iter().filter(|trial| trial.status == Status::Invalid).count() as u32,
        probes,
        misfortunes: misfortunes(&at_broken),
        why,
    }
}
