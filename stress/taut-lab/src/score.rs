//! Objectives: paths with deadlines, and the weighted score, which is never more than a sum that can be taken apart. The
//! sum of medians is what harnesses publish, and is ruled by its longest term; the weighted geometric mean of ratios to
//! the baseline beside it is ruled by none, and hard deadlines and lost successes stand before both.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Bound, Criticality, Lab, MetricFigures, Proportion, Status, SuccessDifference, Trial, objectives};

/// A path over the valid trials of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PathFigures {
    /// Its name.
    pub name: String,
    /// Of the sum.
    pub deadline: f64,
    /// What a miss means.
    pub criticality: Criticality,
    /// Trials that were late, failed, or had not all of the numbers.
    pub misses: Proportion,
}

/// The weighted score of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Score {
    /// One for each metric that has a weight.
    pub terms: Vec<Term>,
    /// Sum of weight × median over the sum of weights, times in the first one's unit; `None` where a median is missing,
    /// failed, or of another kind.
    pub sum: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// exp(Σ w ln r / Σ w) of the ratios to the baseline; `None` of the baseline, and where a ratio is missing.
    pub ratio: Option<f64>,
    /// What no score makes up for, in words.
    pub vetoes: Vec<String>,
}

/// One term of a score.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Term {
    /// The metric.
    pub metric: String,
    /// From the file.
    pub weight: f64,
    /// Over trials.
    pub median: Option<Bound>,
    /// Its part of the sum, 0 … 1.
    pub share: Option<f64>,
    /// To the baseline, above 1 is worse.
    pub ratio: Option<f64>,
}

pub(crate) fn paths(lab: &Lab, valid: &[&Trial]) -> Vec<PathFigures> {
    let one = |path: &crate::Path| {
        let late = |trial: &&&Trial| {
            let numbers = path.metrics.iter().map(|name| trial.metrics.get(name));
            let sum = numbers.map(|number| number.copied()).sum::<Option<f64>>();
            trial.status != Status::Success || sum.is_none_or(|sum| sum > path.deadline)
        };
        PathFigures {
            name: path.name.clone(),
            deadline: path.deadline,
            criticality: path.criticality,
            misses: Proportion::of(valid.iter().filter(late).count() as u32, valid.len() as u32),
        }
    };
    lab.paths.iter().map(one).collect()
}

/// `None` where no metric has a weight.
pub(crate) fn score(
    lab: &Lab,
    metrics: &[MetricFigures],
    paths: &[PathFigures],
    difference: Option<&SuccessDifference>,
) -> Option<Score> {
    let weight = |metric: &MetricFigures| objectives::weight(lab, lab.metrics.get(&metric.name)?);
    let weighted: Vec<(f64, &MetricFigures)> = metrics.iter().filter_map(|m| Some((weight(m)?, m))).collect();
    let unit = weighted.first()?.1.unit.clone();
    let weights: f64 = weighted.iter().map(|(weight, _)| weight).sum();
    let number = |bound: Option<Bound>| match bound {
        Some(Bound::Number(value)) => Some(value),
        _ => None,
    };
    let part = |(weight, metric): &(f64, &MetricFigures)| {
        Some(weight / weights * number(metric.median)? * factor(&metric.unit, &unit)?)
    };
    let sum = weighted.iter().map(part).sum::<Option<f64>>();
    // The estimate is of this over the baseline: where more is better, its inverse is what grows with harm.
    let ratio = |metric: &MetricFigures| {
        let difference = metric.difference.as_ref().filter(|difference| difference.ratio)?;
        let ratio = number(Some(difference.estimate)).filter(|ratio| *ratio > 0.0)?;
        Some(if metric.better == crate::Better::Higher { 1.0 / ratio } else { ratio })
    };
    let mean = weighted.iter().map(|(weight, metric)| Some(weight * ratio(metric)?.ln())).sum::<Option<f64>>();
    let term = |one: &(f64, &MetricFigures)| Term {
        metric: one.1.name.clone(),
        weight: one.0,
        median: one.1.median,
        share: part(one).zip(sum).filter(|(_, sum)| *sum > 0.0).map(|(part, sum)| part / sum),
        ratio: ratio(one.1),
    };
    let missed = paths.iter().filter(|path| path.criticality == Criticality::Hard && path.misses.k > 0);
    let mut vetoes: Vec<String> =
        missed.map(|path| format!("{} misses its hard deadline in {} trials", path.name, path.misses.k)).collect();
    let lost = difference.filter(|d| d.only_baseline > d.only_here && d.p < 0.05);
    vetoes.extend(lost.map(|d| format!("fails in {} trials in which the baseline succeeds", d.only_baseline)));
    Some(Score {
        terms: weighted.iter().map(term).collect(),
        sum,
        unit,
        ratio: mean.map(|mean| (mean / weights).exp()),
        vetoes,
    })
}

/// How many of a unit one of another is; `None` where they are no two units of the same.
fn factor(from: &str, to: &str) -> Option<f64> {
    let seconds = |unit: &str| match unit {
        "s" => Some(1.0),
        "ms" => Some(1e-3),
        "µs" | "us" => Some(1e-6),
        "ns" => Some(1e-9),
        _ => None,
    };
    if from == to { Some(1.0) } else { Some(seconds(from)? / seconds(to)?) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::{Id, Lab, Status, Trial, results};

    const LAB: &str = r#"
trials = 8
[trial]
command = "true"
timeout_s = 1
[metrics.plan_ms]
unit = "ms"
weight = 1.0
[metrics.move_ms]
unit = "ms"
weight = 1.5
[[path]]
name = "reach"
metrics = ["plan_ms", "move_ms"]
deadline = 620
criticality = "hard"
[[scenario]]
name = "none"
[[scenario]]
name = "load"
"#;

    fn trial(index: u32, scenario: &str, plan_ms: f64, move_ms: f64) -> Trial {
        Trial {
            id: Id { round: index, scenario: scenario.into(), index, varied: None },
            status: Status::Success,
            metrics: BTreeMap::from([("plan_ms".into(), plan_ms), ("move_ms".into(), move_ms)]),
            ..Trial::default()
        }
    }

    #[test]
    fn times_of_several_units_are_one_sum_and_other_units_are_none() {
        let close = |found: Option<f64>, expected: f64| (found.unwrap() / expected - 1.0).abs() < 1e-12;
        assert!(close(super::factor("µs", "ms"), 1e-3) && close(super::factor("s", "ms"), 1e3));
        assert_eq!((super::factor("mrad", "mrad"), super::factor("mrad", "ms")), (Some(1.0), None));
    }

    #[test]
    fn a_score_is_a_sum_that_can_be_taken_apart_and_a_hard_deadline_stands_before_it() {
        let lab = Lab::parse(LAB, std::path::Path::new("lab.toml")).unwrap();
        let trials: Vec<Trial> =
            (0..8).flat_map(|i| [trial(i, "none", 10.0, 600.0), trial(i, "load", 40.0, 600.0)]).collect();
        let results = results(&lab, &trials, "");
        let (none, load) = (&results.scenarios[0], &results.scenarios[1]);
        let score = none.score.as_ref().unwrap();
        // In the order of names: move_ms, plan_ms.
        assert_eq!(score.sum, Some(0.6 * 600.0 + 0.4 * 10.0));
        assert!((score.terms[0].share.unwrap() - 360.0 / 364.0).abs() < 1e-12);
        assert!(score.ratio.is_none() && score.vetoes.is_empty());
        assert_eq!((none.paths[0].misses.k, load.paths[0].misses.k), (0, 8));
        let score = load.score.as_ref().unwrap();
        // Planning became four times as long: the sum moves by 3 %, the mean of ratios shows it.
        assert!((score.sum.unwrap() / 364.0 - 1.033).abs() < 1e-3);
        assert!((score.ratio.unwrap() - 4f64.powf(0.4)).abs() < 1e-9);
        assert_eq!(score.vetoes, ["reach misses its hard deadline in 8 trials"]);
    }
}
