//! The JSON form of a budget: its results with what is said of them. The schema is documented in `docs/schemas/bus_budget.schema.json`, generated from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_bus::budget as model;

use super::{Budgeted, figures, sentences};
use taut_stats::Distribution;

/// What `taut bus budget --format json` prints.
pub fn budget_json(shown: &Budgeted<'_>) -> serde_json::Value {
    serde_json::to_value(budget(shown)).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
struct Budget<'a> {
    /// Version of this schema.
    schema_version: u32,
    /// "bus_budget".
    kind: &'static str,
    /// The file or preset.
    name: String,
    /// The command that works it out again.
    command: String,
    title: String,
    about: String,
    /// What a busy reader needs.
    headline: String,
    /// What is fitted, and what is assumed, in words.
    honesty: Vec<String>,
    published: Option<Published>,
    target_hz: Option<f64>,
    servos: u32,
    /// Payload bytes by name.
    frames: BTreeMap<String, u32>,
    cycle: Cycle,
    /// The cycle event by event; null unless the host polls microcontrollers.
    polled: Option<Polled>,
    /// Most of the cycle first, those that other resources hide last.
    terms: Vec<Term>,
    /// One for each resource, or each of its buses.
    lanes: Vec<Lane>,
    /// Figures that are fitted, with those of fitted terms.
    fitted: Vec<Figure>,
    /// Figures that are assumed, with those of assumed terms.
    assumed: Vec<Figure>,
    /// Most worth first.
    sensitivity: Vec<GradientShown<'a>>,
    /// Null without a target to solve for.
    solved: Option<Solved<'a>>,
    /// Null without a recording.
    against: Option<Against>,
}

#[derive(Serialize, JsonSchema)]
struct Published {
    cycle_us: f64,
    /// As the source words it.
    wording: String,
    source: String,
    /// The model's cycle over the published one, less 1.
    model_off: f64,
    sentence: String,
}

#[derive(Serialize, JsonSchema)]
struct Cycle {
    /// With every term at its mean.
    mean_us: f64,
    rate_hz: f64,
    /// Of the drawn cycles.
    drawn: Distribution,
    /// Of the drawn cycles: [from ns, to ns, cycles].
    histogram: Vec<(u64, u64, u64)>,
    seed: u64,
    /// Null without a target.
    misses: Option<model::Misses>,
    sentence: String,
}

#[derive(Serialize, JsonSchema)]
struct Polled {
    cycles: Distribution,
    /// Questions to the microcontrollers a cycle, on average.
    questions: f64,
    /// Of these, questions to which nothing had come.
    in_vain: f64,
    sentence: String,
}

#[derive(Serialize, JsonSchema)]
struct Term {
    name: String,
    /// Which kind of contributor.
    stage: &'static str,
    resource: String,
    /// Of the host's cycle: it begins at the point `bus.<phase>`.
    phase: String,
    /// A cycle, on the lane that decides.
    count: u32,
    each_us: f64,
    total_us: f64,
    /// Of the cycle; null where another resource hides it.
    share: Option<f64>,
    /// given, stated, derived, measured, fitted, assumed.
    origin: &'static str,
    note: String,
}

#[derive(Serialize, JsonSchema)]
struct Lane {
    name: String,
    resource: String,
    parallel: bool,
    /// Of the parallel ones the longest, which decides the cycle.
    decides: bool,
    servos: u32,
    /// Into the cycle.
    start_us: f64,
    busy_us: f64,
    busy_p99_us: Option<f64>,
    /// Of the period, without a target of the cycle.
    utilisation: f64,
    slack_us: f64,
    /// Its terms in the order of the file, each all at once.
    segments: Vec<Segment>,
}

#[derive(Serialize, JsonSchema)]
struct Segment {
    term: String,
    start_us: f64,
    us: f64,
}

#[derive(Serialize, JsonSchema)]
struct Figure {
    /// As `--set` takes it; the term's name where its price is no single figure.
    key: String,
    value: Option<f64>,
    unit: &'static str,
    note: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Gradient")]
struct GradientShown<'a> {
    #[serde(flatten)]
    of: &'a model::Gradient,
    unit: &'static str,
    /// `value`, `better` and the slope in words.
    words: [String; 3],
}

#[derive(Serialize, JsonSchema)]
struct Solved<'a> {
    target_hz: f64,
    answers: Vec<AnswerShown<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
struct AnswerShown<'a> {
    #[serde(flatten)]
    of: &'a model::Answer,
    unit: &'static str,
    sentence: String,
}

#[derive(Serialize, JsonSchema)]
struct Against {
    recording: String,
    sentence: String,
    phases: Vec<Phase>,
    /// Over the phases that were stamped.
    cycle: Phase,
    terms: Vec<Residual>,
}

#[derive(Serialize, JsonSchema)]
struct Phase {
    phase: String,
    /// Cycles; null when it was not stamped.
    n: Option<u64>,
    mean_us: Option<f64>,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    model_us: f64,
    /// Measured mean less the model's: the sum of the two below.
    residual_us: Option<f64>,
    /// Measured median less the model's mean.
    typical_us: Option<f64>,
    /// What slow cycles add to the mean.
    tail_us: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Residual {
    term: String,
    phase: String,
    model_us: f64,
    /// Mean between the term's own points.
    measured_us: Option<f64>,
    /// Its own, or its phase's.
    residual_us: Option<f64>,
    /// Of it, in the typical cycle.
    typical_us: Option<f64>,
    /// Of it, from slow cycles.
    tail_us: Option<f64>,
    /// Whether it shares the residual with no other term.
    alone: bool,
    /// What it would have to cost each time to explain the typical residual alone.
    needed_each_us: Option<f64>,
}

fn budget<'a>(shown: &Budgeted<'a>) -> Budget<'a> {
    let (budget, forecast) = (shown.budget, shown.forecast);
    Budget {
        schema_version: crate::SCHEMA_VERSION,
        kind: "bus_budget",
        name: shown.name.to_owned(),
        command: shown.command.to_owned(),
        title: budget.title.clone(),
        about: budget.about.clone(),
        headline: sentences::headline(shown),
        honesty: sentences::honesty(shown),
        published: budget.published.as_ref().map(|published| Published {
            cycle_us: published.cycle_us,
            wording: published.wording.clone(),
            source: published.source.clone(),
            model_off: forecast.cycle_us / published.cycle_us - 1.0,
            sentence: sentences::published(shown).unwrap_or_default(),
        }),
        target_hz: budget.target_hz,
        servos: budget.servos.count,
        frames: budget.frames.clone(),
        cycle: Cycle {
            mean_us: forecast.cycle_us,
            rate_hz: 1e6 / forecast.cycle_us,
            drawn: forecast.distribution.clone(),
            histogram: forecast.histogram.clone(),
            seed: forecast.sampling.seed,
            misses: forecast.misses,
            sentence: sentences::drawn(forecast),
        },
        polled: shown.polled.map(|polled| Polled {
            cycles: polled.cycles.clone(),
            questions: polled.questions,
            in_vain: polled.in_vain,
            sentence: sentences::polled(polled),
        }),
        terms: forecast.costs.iter().map(|cost| term(shown, cost)).collect(),
        lanes: (0..forecast.lanes.len()).map(|at| lane(shown, at)).collect(),
        fitted: owned_up(budget, model::Origin::Fitted, &budget.fitted),
        assumed: owned_up(budget, model::Origin::Assumed, &budget.assumed),
        sensitivity: shown.gradients.iter().map(gradient).collect(),
        solved: shown.solved.map(|solved| Solved {
            target_hz: solved.target_hz,
            answers: solved.answers.iter().map(|one| answer(one, solved.target_hz)).collect(),
        }),
        against: shown.against.map(|(run, comparison)| against(shown, run, comparison)),
    }
}

fn term(shown: &Budgeted<'_>, cost: &model::Cost) -> Term {
    let term = &shown.budget.terms[cost.term];
    Term {
        name: term.name.clone(),
        stage: term.stage.word(),
        resource: shown.budget.resources[term.resource].name.clone(),
        phase: term.phase.clone(),
        count: cost.count,
        each_us: cost.each_us,
        total_us: cost.total_us,
        share: (!cost.hidden).then_some(cost.total_us / shown.forecast.cycle_us),
        origin: term.origin.word(),
        note: term.note.clone(),
    }
}

/// A lane's work: (number of the term, when it begins in µs, how long it takes).
pub(super) fn segments(shown: &Budgeted<'_>, lane: usize) -> Vec<(usize, f64, f64)> {
    let mut start_us = shown.forecast.usage[lane].start_us;
    let mut segments: Vec<(usize, f64, f64)> = Vec::new();
    for load in &shown.forecast.lanes[lane].loads {
        let us = load.total_us();
        match segments.last_mut() {
            // Replies with short and long identifiers are one piece.
            Some(last) if last.0 == load.term => last.2 += us,
            _ => segments.push((load.term, start_us, us)),
        }
        start_us += us;
    }
    segments
}

fn lane(shown: &Budgeted<'_>, at: usize) -> Lane {
    let (lane, usage) = (&shown.forecast.lanes[at], &shown.forecast.usage[at]);
    let segment =
        |(term, start_us, us): (usize, f64, f64)| Segment { term: shown.budget.terms[term].name.clone(), start_us, us };
    Lane {
        segments: segments(shown, at).into_iter().map(segment).collect(),
        name: lane.name.clone(),
        resource: shown.budget.resources[lane.resource].name.clone(),
        parallel: lane.parallel,
        decides: shown.forecast.critical == Some(at),
        servos: lane.servos,
        start_us: usage.start_us,
        busy_us: usage.busy_us,
        busy_p99_us: usage.busy_p99_us,
        utilisation: usage.utilisation,
        slack_us: usage.slack_us,
    }
}

fn owned_up(budget: &model::CycleBudget, origin: model::Origin, keys: &[String]) -> Vec<Figure> {
    let all = model::knobs(budget);
    let of = |key: &str| all.iter().find(|knob| knob.key(budget) == key);
    let figure = |key: String, note: &str| {
        let knob = of(&key);
        Figure {
            value: knob.and_then(|knob| knob.get(budget)),
            unit: knob.map_or("", model::Knob::unit),
            key,
            note: note.to_owned(),
        }
    };
    let terms = budget.terms.iter().enumerate().filter(|(_, term)| term.origin == origin).map(|(at, term)| {
        let knob = model::Knob::Term(at);
        let key = knob.get(budget).map_or_else(|| term.name.clone(), |_| knob.key(budget));
        figure(key, &term.note)
    });
    terms.chain(keys.iter().map(|key| figure(key.clone(), ""))).collect()
}

fn gradient(of: &model::Gradient) -> GradientShown<'_> {
    let in_words = |value: f64| figures::value(&of.knob, value);
    let words = [in_words(of.value), in_words(of.better), figures::slope(&of.knob, of.per_unit_us)];
    GradientShown { of, unit: of.knob.unit(), words }
}

fn answer(of: &model::Answer, target_hz: f64) -> AnswerShown<'_> {
    AnswerShown { of, unit: of.knob.unit(), sentence: sentences::answer(of, target_hz) }
}

fn against(shown: &Budgeted<'_>, run: &str, comparison: &model::Comparison) -> Against {
    Against {
        recording: run.to_owned(),
        sentence: sentences::against(run, comparison),
        phases: comparison.phases.iter().map(phase).collect(),
        cycle: phase(&comparison.cycle),
        terms: comparison.terms.iter().map(|row| residual(shown.budget, row)).collect(),
    }
}

fn phase(row: &model::PhaseResidual) -> Phase {
    let measured = row.measured.as_ref();
    Phase {
        phase: row.phase.clone(),
        n: measured.map(|m| m.n),
        mean_us: measured.map(|m| m.mean_us),
        p50_us: measured.and_then(|m| m.p50_us),
        p99_us: measured.and_then(|m| m.p99_us),
        model_us: row.model_us,
        residual_us: row.residual.map(|residual| residual.total_us()),
        typical_us: row.residual.map(|residual| residual.typical_us),
        tail_us: row.residual.map(|residual| residual.tail_us),
    }
}

fn residual(budget: &model::CycleBudget, row: &model::TermResidual) -> Residual {
    let term = &budget.terms[row.term];
    Residual {
        term: term.name.clone(),
        phase: term.phase.clone(),
        model_us: row.model_us,
        measured_us: row.measured.as_ref().map(|m| m.mean_us),
        residual_us: row.residual.map(|residual| residual.total_us()),
        typical_us: row.residual.map(|residual| residual.typical_us),
        tail_us: row.residual.map(|residual| residual.tail_us),
        alone: row.alone,
        needed_each_us: row.needed_each_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{budget::sample, json::assert_documented};

    #[test]
    fn scripts_may_rely_on_these_names() {
        sample::with_answers(|shown| {
            let value = budget_json(shown);
            assert_eq!((value["schema_version"].as_u64(), value["kind"].as_str()), (Some(2), Some("bus_budget")));
            for pointer in [
                "/cycle/mean_us",
                "/cycle/rate_hz",
                "/cycle/drawn/p99_ns",
                "/cycle/drawn/n",
                "/cycle/misses/missed",
                "/terms/0/total_us",
                "/terms/0/origin",
                "/lanes/0/slack_us",
                "/lanes/0/utilisation",
                "/lanes/0/segments/0/start_us",
                "/fitted/0/value",
                "/sensitivity/0/per_unit_us",
                "/solved/answers/0/limit",
                "/against/phases/0/residual_us",
                "/against/terms/0/needed_each_us",
            ] {
                assert!(value.pointer(pointer).is_some_and(|v| !v.is_null()), "{pointer}: {value:#}");
            }
        });
    }

    #[test]
    fn segments_fill_their_lane() {
        sample::with("pi3hat", |shown| {
            for lane in budget(shown).lanes {
                let last = lane.segments.last().unwrap();
                assert!((last.start_us + last.us - lane.start_us - lane.busy_us).abs() < 1e-6);
            }
        });
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        assert_documented(&schemars::schema_for!(Budget<'_>).to_value(), "schemas/bus_budget.schema.json");
    }
}
