//! From trials to figures: per scenario the distribution of each metric over trials, what each differs from the
//! baseline within rounds, how often it succeeded. A failed trial counts as worse than every number and is never
//! dropped: dropping it would make the worst scenario look fast.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{Binomial, DiscreteCDF};
use taut_stats::compare::{Pair, Scale, Shift, typical};

use crate::{
    Better, Bound, Difference, FailedReported, Lab, Metric, MetricFigures, PathFigures, Proportion, Score, Status,
    SuccessDifference, Trial, feasible::place, proportion::CONFIDENCE, score,
};

/// Stands for "worse than every number" while ranks are taken: only its place in the order matters, and a mean of it
/// and any number stays far beyond [`BEYOND`].
const WORST: f64 = 1e300;
/// What lies beyond is no number any more.
const BEYOND: f64 = 1e290;
/// A quantile is named when at least so many trials lie beyond it.
const CARRIED: usize = 10;

/// The figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Results {
    /// The baseline's name.
    pub baseline: String,
    /// What confined threads.
    pub confinement: String,
    /// In the order of the file.
    pub scenarios: Vec<ScenarioFigures>,
    /// What limits them, in words.
    pub notes: Vec<String>,
}

/// The figures of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScenarioFigures {
    /// Its name.
    pub name: String,
    /// Where its parts ran, in words.
    pub placement: String,
    /// Trials by how they ended; all of them.
    pub trials: BTreeMap<Status, u32>,
    /// Of those that are valid.
    pub success: Proportion,
    /// Against the baseline, within rounds.
    pub success_difference: Option<SuccessDifference>,
    /// What each load reached.
    pub loads: Vec<LoadReached>,
    /// What each process used, those of the loads included.
    pub processes: Vec<ProcessUse>,
    /// In the order of their names, `wall_s` last.
    pub metrics: Vec<MetricFigures>,
    /// Deadlines of several metrics together.
    pub paths: Vec<PathFigures>,
    /// The weighted score; `None` where no metric has a weight.
    pub score: Option<Score>,
    /// Everything but successes, each reason once, the most frequent first.
    pub misfortunes: Vec<Misfortune>,
}

/// What a load reached over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadReached {
    /// In words.
    pub load: String,
    /// Of the figures.
    pub unit: String,
    /// `None` where it goes as far as it can.
    pub target: Option<f64>,
    /// Over trials.
    pub median: f64,
    /// Over trials.
    pub least: f64,
    /// Median of the CPUs that it kept busy.
    pub cpus_busy: f64,
    /// Median of the CPUs that it wanted: running, or in the run queue.
    pub cpus_wanted: f64,
    /// Of a flood: median of the messages a second that were sent.
    pub sent: Option<f64>,
    /// Of a flood: the fewest pairs of a writer and a reader that had found each other.
    pub matched: Option<u64>,
    /// Of a flood over a middleware: by topic.
    pub topics: Vec<TopicReached>,
}

/// What became of a flood's messages on one topic, over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TopicReached {
    /// Its name.
    pub topic: String,
    /// Median of the messages a second that were sent.
    pub sent: f64,
    /// Median of the messages a second that all readers of the load received together.
    pub received: f64,
    /// The largest part of a trial's messages that the load's own readers did not receive; `None` where it has none.
    pub most_lost: Option<f64>,
}

/// The CPU time of a process with all that it started, over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProcessUse {
    /// Its name; `load-0` is the first load, `trial` the trial's command, `stray` what cannot be assigned.
    pub name: String,
    /// The only CPUs that it was given.
    pub cpus: Option<String>,
    /// Median of the CPUs that it kept busy.
    pub median: f64,
    /// The most of a trial.
    pub most: f64,
    /// By CPU the part of its time that it spent there, of all trials together; empty without scheduler events.
    pub shares: BTreeMap<String, f64>,
}

/// Why trials were no successes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Misfortune {
    /// How they ended.
    pub status: Status,
    /// Why.
    pub reason: String,
    /// How many.
    pub trials: u32,
    /// The logs of the first.
    pub logs: String,
}

/// Makes the figures; trials in the order in which they ran.
pub fn results(lab: &Lab, trials: &[Trial], confinement: &str) -> Results {
    let metrics = metrics(lab);
    let of = |name: &str| trials.iter().filter(|trial| trial.id.scenario == name).collect::<Vec<_>>();
    let baseline = of(lab.baseline());
    let scenario = |scenario: &crate::Scenario| {
        let own = of(&scenario.name);
        let against = (scenario.name != lab.baseline()).then_some(baseline.as_slice());
        let valid = valid(&own);
        let success_difference = against.map(|baseline| success_difference(&own, baseline));
        let metrics: Vec<MetricFigures> =
            metrics.iter().map(|(name, metric)| figures(name, metric, &own, against)).collect();
        let paths = score::paths(lab, &valid);
        let successes = valid.iter().filter(|trial| trial.status == Status::Success).count();
        ScenarioFigures {
            name: scenario.name.clone(),
            placement: place(lab, scenario),
            trials: Status::ALL.map(|status| (status, own.iter().filter(|t| t.status == status).count() as u32)).into(),
            success: Proportion::of(successes as u32, valid.len() as u32),
            success_difference,
            loads: reached(&valid),
            processes: processes(lab, scenario, &valid),
            score: score::score(lab, &metrics, &paths, success_difference.as_ref()),
            metrics,
            paths,
            misfortunes: misfortunes(&own),
        }
    };
    Results {
        baseline: lab.baseline().to_owned(),
        confinement: confinement.to_owned(),
        scenarios: lab.scenarios.iter().map(scenario).collect(),
        notes: notes(lab, trials),
    }
}

/// What is judged: those declared, and the trial's own length.
fn metrics(lab: &Lab) -> Vec<(String, Metric)> {
    let mut all: Vec<(String, Metric)> =
        lab.metrics.iter().map(|(name, metric)| (name.clone(), metric.clone())).collect();
    if !lab.metrics.contains_key("wall_s") {
        all.push(("wall_s".into(), Metric { unit: "s".into(), ..Metric::default() }));
    }
    all
}

fn valid<'a>(trials: &[&'a Trial]) -> Vec<&'a Trial> {
    trials.iter().copied().filter(|trial| trial.status != Status::Invalid).collect()
}

/// Larger is worse, failures worst.
fn badness(trial: &Trial, name: &str, better: Better) -> f64 {
    let value = trial.metrics.get(name).filter(|_| trial.status == Status::Success);
    value.map_or(WORST, |value| value * sign(better))
}

fn sign(better: Better) -> f64 {
    match better {
        Better::Lower => 1.0,
        Better::Higher => -1.0,
    }
}

fn bound(badness: f64, better: Better) -> Bound {
    match badness {
        b if b > BEYOND => Bound::Failed,
        b if b < -BEYOND => Bound::FailedLess,
        b => Bound::Number(b * sign(better)),
    }
}

fn figures(name: &str, metric: &Metric, own: &[&Trial], baseline: Option<&[&Trial]>) -> MetricFigures {
    let better = metric.better;
    let number = |b: f64| bound(b, better);
    let trials: Vec<f64> = valid(own).iter().map(|trial| badness(trial, name, better)).collect();
    let mut sorted = trials.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let tail = |q: f64| {
        let at = (q * sorted.len() as f64).ceil().max(1.0) as usize;
        (sorted.len() >= at + CARRIED).then(|| number(sorted[at - 1]))
    };
    let starts: Vec<f64> = starts(own, name, better).into_values().collect();
    let interval = typical(&starts, CONFIDENCE).and_then(|typical| typical.interval);
    let failed = valid(own).into_iter().filter(|trial| trial.status != Status::Success);
    let reported: Vec<f64> = failed.filter_map(|trial| trial.metrics.get(name).copied()).collect();
    let beyond = |deadline: f64| trials.iter().filter(|b| **b > deadline * sign(better)).count() as u32;
    MetricFigures {
        name: name.to_owned(),
        about: metric.about.clone(),
        unit: metric.unit.clone(),
        better,
        n: trials.len(),
        failed: trials.iter().filter(|b| **b > BEYOND).count(),
        failed_reported: typical(&reported, CONFIDENCE)
            .map(|typical| FailedReported { n: reported.len(), median: typical.value }),
        best: sorted.first().copied().map(number),
        median: typical(&trials, CONFIDENCE).map(|typical| number(typical.value)),
        interval: interval.map(|interval| (number(interval.low), number(interval.high))),
        tenth_worst: tail(0.9),
        hundredth_worst: tail(0.99),
        worst: sorted.last().copied().map(number),
        misses: metric.deadline.map(|deadline| Proportion::of(beyond(deadline), trials.len() as u32)),
        difference: baseline.and_then(|baseline| difference(name, better, own, baseline)),
    }
}

/// By round the median of the valid trials on one start: trials that share a start are no independent witnesses.
fn starts(trials: &[&Trial], name: &str, better: Better) -> BTreeMap<u32, f64> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for trial in valid(trials) {
        rounds.entry(trial.id.round).or_default().push(badness(trial, name, better));
    }
    let middle = |values: Vec<f64>| typical(&values, CONFIDENCE).map_or(WORST, |typical| typical.value);
    rounds.into_iter().map(|(round, values)| (round, middle(values))).collect()
}

fn difference(name: &str, better: Better, own: &[&Trial], baseline: &[&Trial]) -> Option<Difference> {
    let (here, there) = (starts(own, name, better), starts(baseline, name, better));
    let rounds: std::collections::BTreeSet<u32> = own.iter().chain(baseline).map(|trial| trial.id.round).collect();
    let (rounds_of, pairs): (Vec<u32>, Vec<Pair>) = here
        .iter()
        .filter_map(|(round, b)| Some((*round, Pair { a: *there.get(round)?, b: *b })))
        // Where both failed nobody knows which is worse.
        .filter(|(_, pair)| pair.a < BEYOND || pair.b < BEYOND)
        .unzip();
    let plain = |b: f64| b.abs() > BEYOND || b * sign(better) > 0.0;
    let ratio = pairs.iter().all(|pair| plain(pair.a) && plain(pair.b));
    let of = |pair: &Pair| match (pair.a > BEYOND, pair.b > BEYOND) {
        (false, true) => WORST,
        (true, false) => -WORST,
        // Of sizes, since the logarithm knows no others; a ratio of sizes that should be high is bad when low.
        _ if ratio => Scale::Ratio.difference(Pair { a: pair.a.abs(), b: pair.b.abs() }) * sign(better),
        _ => pair.b - pair.a,
    };
    let differences: Vec<f64> = pairs.iter().map(of).collect();
    let shift = Shift::of(&differences)?;
    let mut by_host: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (round, difference) in rounds_of.iter().zip(&differences) {
        let host = own.iter().find(|trial| trial.id.round == *round).and_then(|trial| trial.host.as_deref());
        by_host.entry(host.unwrap_or_default()).or_default().push(*difference);
    }
    by_host.retain(|host, _| !host.is_empty());
    let shown = |d: f64| match bound(d, better) {
        Bound::Number(d) if ratio => Bound::Number(d.exp()),
        other => other,
    };
    let alpha = (1.0 - CONFIDENCE) / 2.0;
    Some(Difference {
        each: differences.iter().map(|difference| shown(*difference)).collect(),
        pairs: pairs.len(),
        left_out: rounds.len() - pairs.len(),
        ratio,
        estimate: shown(shift.estimate()),
        interval: shift.lower(alpha).zip(shift.upper(alpha)).map(|(low, high)| (shown(low), shown(high))),
        hosts: by_host
            .iter()
            .filter(|_| by_host.len() > 1)
            .filter_map(|(host, all)| Some(((*host).to_owned(), shown(Shift::of(all)?.estimate()))))
            .collect(),
    })
}

fn success_difference(own: &[&Trial], baseline: &[&Trial]) -> SuccessDifference {
    let by_index = |trials: &[&Trial]| -> BTreeMap<u32, bool> {
        valid(trials).iter().map(|trial| (trial.id.index, trial.status == Status::Success)).collect()
    };
    let there = by_index(baseline);
    let pairs: Vec<(bool, bool)> =
        by_index(own).into_iter().filter_map(|(index, here)| Some((*there.get(&index)?, here))).collect();
    let count = |pair: (bool, bool)| pairs.iter().filter(|one| **one == pair).count() as u32;
    let (only_baseline, only_here) = (count((true, false)), count((false, true)));
    let differ = only_baseline + only_here;
    let tail =
        Binomial::new(0.5, u64::from(differ)).map_or(1.0, |coin| coin.cdf(u64::from(only_baseline.min(only_here))));
    let p = if differ == 0 { 1.0 } else { (2.0 * tail).min(1.0) };
    SuccessDifference { pairs: pairs.len() as u32, only_baseline, only_here, p }
}

/// Of the load with this place in every trial, by topic.
fn topics_reached(valid: &[&Trial], at: usize) -> Vec<TopicReached> {
    let loads: Vec<_> = valid.iter().filter_map(|trial| trial.achieved.get(at)).collect();
    let Some(first) = loads.first() else { return Vec::new() };
    let one = |(at, topic): (usize, &crate::TopicRate)| {
        let all = || loads.iter().filter_map(|load| load.topics.get(at));
        let middle = |of: fn(&crate::TopicRate) -> f64| {
            let mut values: Vec<f64> = all().map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            typical(&values, CONFIDENCE).map_or(0.0, |typical| typical.value)
        };
        TopicReached {
            topic: topic.topic.clone(),
            sent: middle(|topic| topic.sent),
            received: middle(|topic| topic.received),
            most_lost: all().filter_map(|topic| topic.lost).max_by(f64::total_cmp),
        }
    };
    first.topics.iter().enumerate().map(one).collect()
}

fn reached(valid: &[&Trial]) -> Vec<LoadReached> {
    let Some(first) = valid.iter().find(|trial| !trial.achieved.is_empty()) else { return Vec::new() };
    let of = |at: usize, what: fn(&crate::Achieved) -> f64| {
        let mut all: Vec<f64> = valid.iter().filter_map(|trial| trial.achieved.get(at)).map(what).collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    };
    let middle = |all: &[f64]| typical(all, CONFIDENCE).map_or(0.0, |typical| typical.value);
    let one = |(at, load): (usize, &crate::Achieved)| {
        let achieved = of(at, |load| load.achieved);
        let matched = valid.iter().filter_map(|trial| trial.achieved.get(at)?.matched).min();
        LoadReached {
            load: load.load.clone(),
            unit: load.unit.clone(),
            target: load.target,
            median: middle(&achieved),
            least: achieved.first().copied().unwrap_or(0.0),
            cpus_busy: middle(&of(at, |load| load.cpus_busy)),
            cpus_wanted: middle(&of(at, |load| load.cpus_wanted)),
            sent: load.sent.map(|_| middle(&of(at, |load| load.sent.unwrap_or(0.0)))),
            matched,
            topics: topics_reached(valid, at),
        }
    };
    first.achieved.iter().enumerate().map(one).collect()
}

fn processes(lab: &Lab, scenario: &crate::Scenario, valid: &[&Trial]) -> Vec<ProcessUse> {
    let names: std::collections::BTreeSet<&String> =
        valid.iter().flat_map(|trial| trial.cpus_busy.keys().chain(trial.ran_s.keys())).collect();
    // In the order of the file; then the trial, the loads and whatever else there is.
    let place = |name: &str| lab.processes.iter().position(|process| process.name == name).unwrap_or(usize::MAX);
    let mut names: Vec<&String> = names.into_iter().filter(|name| *name != "recorder").collect();
    names.sort_by_key(|name| (place(name), *name != "trial", (*name).clone()));
    let one = |name: &String| {
        // What had ended before the last look at /proc, as the trial's command, the scheduler alone tells of.
        let ended = |t: &Trial| t.ran_s.get(name).map_or(0.0, |on| on.values().sum::<f64>() / t.wall_s.max(1e-9));
        let busy: Vec<f64> = valid.iter().map(|t| t.cpus_busy.get(name).copied().unwrap_or_else(|| ended(t))).collect();
        let mut shares: BTreeMap<String, f64> = BTreeMap::new();
        for (cpu, ran_s) in valid.iter().filter_map(|trial| trial.ran_s.get(name)).flatten() {
            *shares.entry(cpu.clone()).or_default() += ran_s;
        }
        let all: f64 = shares.values().sum();
        shares.values_mut().for_each(|share| *share /= all);
        ProcessUse {
            cpus: lab.cpus_of(scenario, name).map(ToString::to_string),
            median: typical(&busy, CONFIDENCE).map_or(0.0, |typical| typical.value),
            most: busy.iter().copied().fold(0.0, f64::max),
            shares,
            name: name.clone(),
        }
    };
    names.into_iter().map(one).collect()
}

pub(crate) fn misfortunes(trials: &[&Trial]) -> Vec<Misfortune> {
    let mut all: Vec<Misfortune> = Vec::new();
    for trial in trials.iter().filter(|trial| trial.status != Status::Success) {
        let reason = trial.reason.clone().unwrap_or_default();
        match all.iter_mut().find(|one| one.status == trial.status && one.reason == reason) {
            Some(one) => one.trials += 1,
            None => all.push(Misfortune { status: trial.status, reason, trials: 1, logs: trial.logs.clone() }),
        }
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.trials));
    all
}

fn notes(lab: &Lab, trials: &[Trial]) -> Vec<String> {
    let mut notes = Vec::new();
    let reported: std::collections::BTreeSet<&String> = trials.iter().flat_map(|trial| trial.metrics.keys()).collect();
    let unknown: Vec<String> = reported
        .iter()
        .filter(|name| ***name != "wall_s" && !lab.metrics.contains_key(**name))
        .map(|name| format!("[metrics.{name}]"))
        .collect();
    if !unknown.is_empty() {
        notes.push(format!("trials report more than is judged: add {} to see it", unknown.join(", ")));
    }
    notes.extend(crate::feasible::differing_places(lab));
    let never: Vec<&String> = lab.metrics.keys().filter(|name| !reported.contains(*name)).collect();
    if !never.is_empty() && !trials.is_empty() {
        notes.push(format!("no trial reported {never:?}: check the name, and [trial] report = \"json\""));
    }
    let hosts: BTreeMap<&str, usize> =
        trials.iter().filter_map(|trial| trial.host.as_deref()).fold(BTreeMap::new(), |mut hosts, host| {
            *hosts.entry(host).or_default() += 1;
            hosts
        });
    if !hosts.is_empty() {
        let each = hosts.iter().map(|(host, n)| format!("{host} {n}")).collect::<Vec<_>>().join(", ");
        notes.push(format!("trials by host: {each}; a round stays on one host, so that no comparison crosses hosts"));
    }
    if lab.trials_per_start > 1 {
        notes.push(format!(
            "{} trials share a start of the system: intervals and differences are over starts, success over trials",
            lab.trials_per_start
        ));
    }
    let valid = || trials.iter().filter(|trial| trial.status != Status::Invalid);
    let unheard: std::collections::BTreeSet<&String> = valid()
        .flat_map(|trial| &trial.achieved)
        .filter(|load| load.matched == Some(0))
        .map(|load| &load.load)
        .collect();
    notes.extend(unheard.into_iter().map(|load| {
        format!(
            "{load}: in some trial no reader matched its writers; what is written to no reader never leaves the process"
        )
    }));
    let lost = trials.iter().filter(|trial| trial.events_lost.is_some_and(|lost| lost > 0)).count();
    if lost > 0 {
        notes.push(format!(
            "scheduler events were lost in {lost} of {} trials: what threads did then is known from periodic checks only",
            trials.len()
        ));
    }
    let invalid = trials.len() - valid().count();
    if invalid > 0 {
        let distinct: std::collections::BTreeSet<(&str, u32)> =
            trials.iter().map(|trial| (trial.id.scenario.as_str(), trial.id.index)).collect();
        notes.push(format!(
            "{invalid} of {} trials are invalid and in no figure; {} were run again in their place; reasons are below",
            trials.len(),
            trials.len() - distinct.len()
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Id;

    const LAB: &str = r#"
trials = 3
[trial]
command = "true"
timeout_s = 1
[metrics.t_ms]
deadline = 20
[metrics.rate]
better = "higher"
[[scenario]]
name = "none"
[[scenario]]
name = "load"
"#;

    fn trial(scenario: &str, round: u32, status: Status, t_ms: f64) -> Trial {
        let mut trial: Trial = serde_json::from_value(serde_json::json!({
            "round": round, "scenario": scenario, "index": round, "varied": null, "status": status,
            "reason": (status != Status::Success).then_some("no plan"), "started_unix_s": 0.0, "wall_s": 1.0,
            "exit_code": 0, "signal": null, "metrics": { "wall_s": 1.0 }, "achieved": [], "cpus_busy": {},
            "looks": 1, "threads": 1, "pressure": {"cpu_s": null, "memory_s": null, "io_s": null, "steal_s": null}, "logs": "l"
        }))
        .unwrap();
        trial.metrics.extend([("t_ms".into(), t_ms), ("rate".into(), 1000.0 / t_ms)]);
        trial.id = Id { round, scenario: scenario.into(), index: round, varied: None };
        trial
    }

    fn of(trials: &[Trial]) -> Results {
        results(&Lab::parse(LAB, Path::new("lab.toml")).unwrap(), trials, "affinity")
    }

    fn number(bound: Bound) -> f64 {
        match bound {
            Bound::Number(value) => value,
            other => panic!("{other:?}"),
        }
    }

    /// Twelve rounds; under load everything takes twice as long.
    fn doubled() -> Vec<Trial> {
        let both = |i: u32| {
            let t = 10.0 + f64::from(i % 5) / 10.0;
            [trial("none", i, Status::Success, t), trial("load", i, Status::Success, 2.0 * t)]
        };
        (0..12).flat_map(both).collect()
    }

    #[test]
    fn twice_the_time_is_a_ratio_of_two_in_either_direction_of_good() {
        let results = of(&doubled());
        let load = &results.scenarios[1];
        let rate = &load.metrics[0];
        let time = &load.metrics[1];
        assert_eq!((rate.name.as_str(), time.name.as_str()), ("rate", "t_ms"));
        for (metric, ratio) in [(time, 2.0), (rate, 0.5)] {
            let difference = metric.difference.clone().unwrap();
            assert_eq!((difference.pairs, difference.left_out, difference.ratio), (12, 0, true));
            let (low, high) = difference.interval.unwrap();
            for bound in [difference.estimate, low, high] {
                assert!((number(bound) - ratio).abs() < 1e-9, "{difference:?}");
            }
        }
        assert!((number(time.median.unwrap()) - 20.3).abs() < 1e-9, "{:?}", time.median);
        assert_eq!(time.misses.map(|misses| (misses.k, misses.n)), Some((9, 12)), "above 20 ms");
        assert_eq!(results.scenarios[0].metrics[1].difference, None);
    }

    #[test]
    fn failures_are_worse_than_every_number_and_never_dropped() {
        let mut trials = doubled();
        let failed: Vec<&mut Trial> = trials.iter_mut().filter(|t| t.id.scenario == "load" && t.id.round < 8).collect();
        failed.into_iter().for_each(|trial| {
            trial.status = Status::Failed;
            trial.reason = Some("no plan".into());
        });
        let results = of(&trials);
        let load = &results.scenarios[1];
        let time = &load.metrics[1];
        assert_eq!((time.n, time.failed, time.median, time.worst), (12, 8, Some(Bound::Failed), Some(Bound::Failed)));
        assert!(number(time.best.unwrap()) >= 20.0);
        assert_eq!(time.difference.clone().unwrap().estimate, Bound::Failed);
        assert_eq!((load.success.k, load.success.n), (4, 12));
        let difference = load.success_difference.unwrap();
        assert_eq!((difference.pairs, difference.only_baseline, difference.only_here), (12, 8, 0));
        assert!((difference.p - 2.0 / 256.0).abs() < 1e-12);
        assert_eq!(load.misfortunes[0].trials, 8);
        let json = serde_json::to_value(&results).unwrap();
        assert_eq!(json["scenarios"][1]["metrics"][1]["median"], "failed");
        assert_eq!(json["scenarios"][1]["trials"]["failed"], 8);
    }

    #[test]
    fn invalid_trials_say_nothing_and_are_counted() {
        let mut trials = doubled();
        trials[1].status = Status::Invalid;
        let results = of(&trials);
        let load = &results.scenarios[1];
        assert_eq!((load.success.k, load.success.n, load.trials[&Status::Invalid]), (11, 11, 1));
        let difference = load.metrics[1].difference.clone().unwrap();
        assert_eq!((difference.pairs, difference.left_out), (11, 1));
        assert!(results.notes.iter().any(|note| note.starts_with("1 of 24")), "{:?}", results.notes);
    }

    #[test]
    fn five_starts_bound_nothing() {
        let trials: Vec<Trial> = (0..5).map(|i| trial("none", i, Status::Success, 10.0)).collect();
        let results = of(&trials);
        assert_eq!(results.scenarios[0].metrics[1].interval, None);
        assert_eq!((results.scenarios[1].success.n, results.scenarios[1].metrics[1].median), (0, None));
    }
}
