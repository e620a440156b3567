//! `taut lab break`: at which load does success fall below a given chance? Every trial on a fresh start, none repeated
//! because it failed; the answer is an interval between a load proven fine and one proven broken.

mod bisect;
mod evidence;

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::compare::typical;

use crate::{
    Breaking, Error, Event, Lab, Load, Order, Proportion, Scenario, Status, Trial, feasible::place,
    figures::misfortunes, load::plain, manifest::Kind, run::Work, session::Block,
};
use bisect::{Range, Search};
use evidence::{Claim, Judge};

/// So many invalid trials in a row, and the load is out of this machine's reach.
const INVALID_IN_A_ROW: usize = 5;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Broken {
    /// What confined threads.
    pub confinement: String,
    /// Where the system ran, in words.
    pub placement: String,
    /// What was asked.
    pub asked: Breaking,
    /// In the unit of what is varied, and what loads reached.
    pub unit: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Where success falls below what was asked, in what the load reached: from the median at the heaviest load proven
    /// fine to that at the lightest proven broken. An end that stays open, or was not reached in that order, is null.
    pub threshold: (Option<f64>, Option<f64>),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Edge {
    /// The number that was varied.
    pub value: f64,
    /// Median of what the load reached there.
    pub achieved: Option<f64>,
    /// Median of the CPUs that its threads wanted there: running, or in the run queue.
    pub cpus_wanted: Option<f64>,
    /// Of the trials there.
    pub success: Proportion,
}

/// The trials at one load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Probe {
    /// The number that was varied.
    pub value: f64,
    /// Median of what the load reached.
    pub achieved: Option<f64>,
    /// Median of the CPUs that its threads wanted: running, or in the run queue.
    pub cpus_wanted: Option<f64>,
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
    let asked = lab.breaking.as_ref().ok_or_else(|| nothing("is missing; say what to vary (docs/reference/lab.md)"))?;
    let scenario = lab.scenarios.iter().find(|scenario| scenario.name == asked.scenario);
    let scenario = scenario.ok_or_else(|| nothing("names no scenario"))?;
    let mut search = search(asked, lab.seed);
    // What other scenarios of the file ask for is nothing to this one: neither where it runs nor how it is watched.
    let alone = Lab { scenarios: vec![scenario.clone()], baseline: None, ..lab.clone() };
    let order = &Order { lab: &alone, ..*order };
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
                let said = trial.reason.clone().unwrap_or_default();
                let at = format!("{} {}", asked.vary, plain(value));
                let remedy = remedy(asked, value, &work.trials[replayed - INVALID_IN_A_ROW..replayed]);
                why = Some(format!("{INVALID_IN_A_ROW} invalid trials in a row at {at}: {said}; {remedy}"));
                break;
            }
            continue;
        }
        invalid_in_a_row = 0;
        search.observe(trial.status == Status::Success);
    }
    let ran = work.end();
    Ok(Broken { placement: place(&alone, scenario), ..told(asked, scenario, &search, &ran, why) })
}

/// What to do about a load at which trials say nothing.
fn remedy(asked: &Breaking, value: f64, invalid: &[Trial]) -> String {
    let short = |trial: &Trial| {
        let load = trial.achieved.get(asked.load).filter(|load| !load.applied)?;
        load.target.map(|target| load.achieved / target)
    };
    // Only where every one of them fell short is it the load that cannot be made.
    match invalid.iter().map(short).collect::<Option<Vec<f64>>>() {
        Some(parts) => {
            let most = parts.iter().copied().fold(0.0, f64::max);
            let within = Load::rounded(&asked.vary, value * most);
            if within > asked.from {
                let less = (most * 10.0).floor() / 10.0;
                let less = match less >= 0.1 {
                    true => format!("; applied = {less:.1} would count what there was as the load"),
                    false => String::new(),
                };
                return format!(
                    "this machine does not make that load beside the system: end the search at what it makes, [break] to = \
                     {}, or take the load's workers off the system's CPUs (cpus = \"…\"){less}",
                    plain(within)
                );
            }
            "this machine does not make even the lightest of these loads: begin lower, [break] from = …, or take its \
             workers off the system's CPUs (cpus = \"…\")"
                .into()
        }
        None => {
            let logs = invalid.last().map(|trial| trial.logs.as_str()).filter(|logs| !logs.is_empty());
            let logs = logs.map_or(String::new(), |logs| format!(", or read {logs}"));
            format!(
                "a trial that says nothing decides nothing: remove its cause{logs}, and search again with another -o"
            )
        }
    }
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
    let median = |value: f64, what: fn(&crate::Achieved) -> f64| {
        let valid = at(value).filter(|trial| trial.status != Status::Invalid);
        let all: Vec<f64> = valid.filter_map(|trial| trial.achieved.get(asked.load).map(what)).collect();
        typical(&all, 0.95).map(|typical| typical.value)
    };
    let probe = |(value, evidence, claim): (f64, evidence::Evidence, Option<Claim>)| Probe {
        value,
        achieved: median(value, |load| load.achieved),
        cpus_wanted: median(value, |load| load.cpus_wanted),
        success: Proportion::of(evidence.successes, evidence.trials),
        proven: claim.map(|claim| if claim == Claim::Fine { "fine" } else { "broken" }),
    };
    let probes: Vec<Probe> = search.tried().map(probe).collect();
    let edge = |value: f64| {
        let probe = probes.iter().find(|probe| probe.value == value)?;
        let Probe { achieved, cpus_wanted, success, .. } = *probe;
        Some(Edge { value, achieved, cpus_wanted, success })
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
    let edges = (low.and_then(edge), high.and_then(edge));
    let ends = (edges.0.as_ref().and_then(|edge| edge.achieved), edges.1.as_ref().and_then(|edge| edge.achieved));
    let in_order = ends.0.zip(ends.1).is_none_or(|(low, high)| low < high);
    let at_broken: Vec<&Trial> = high.into_iter().flat_map(at).collect();
    Broken {
        confinement: ran.confinement.clone(),
        placement: String::new(),
        asked: asked.clone(),
        unit: scenario.loads.get(asked.load).map_or(String::new(), |load| load.unit().0.to_owned()),
        outcome,
        threshold: if in_order { ends } else { (None, None) },
        fine: edges.0,
        broken: edges.1,
        trials: search.trials(),
        invalid: ran.trials.iter().filter(|trial| trial.status == Status::Invalid).count() as u32,
        probes,
        misfortunes: misfortunes(&at_broken),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Breaking {
        toml::from_str("scenario = \"flood\"\nvary = \"rate_hz\"\nfrom = 100\nto = 8000").unwrap()
    }

    /// A trial whose flood reached a part of its target.
    fn short(achieved: f64) -> Trial {
        let load = serde_json::json!({ "load": "udp", "unit": "messages/s received", "target": 1000.0,
            "achieved": achieved, "sent": null, "cpus_busy": 0.1, "cpus_wanted": 0.1, "applied": achieved >= 900.0 });
        Trial { achieved: vec![serde_json::from_value(load).unwrap()], logs: "logs/x".into(), ..Trial::default() }
    }

    #[test]
    fn a_load_that_cannot_be_made_is_told_with_what_can() {
        let said = remedy(&asked(), 8000.0, &[short(600.0), short(655.0), short(500.0)]);
        assert!(said.contains("to = 5240") && said.contains("applied = 0.6"), "{said}");
        let said = remedy(&asked(), 120.0, &[short(600.0)]);
        assert!(said.contains("from = …"), "{said}");
        // Where the load was there, it is something else.
        let said = remedy(&asked(), 8000.0, &[short(600.0), short(950.0)]);
        assert!(said.contains("logs/x") && said.contains("another -o"), "{said}");
    }
}
