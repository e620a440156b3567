//! The JSON form of a tuning. The schema is `docs/schemas/tune.schema.json`, generated from these types.

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::compare::ChangeFigures;
use taut_tune::{Answer, Attempt, Left, Problem, Standing, Tried, Tuned, Within};

use super::sentences;

/// What `taut tune --format json` prints.
pub fn tune_json(tuned: &Tuned) -> serde_json::Value {
    serde_json::to_value(shown(tuned)).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
struct Tune<'a> {
    /// Version of this schema.
    schema_version: u32,
    /// "tune".
    kind: &'static str,
    /// "recommended", "nothing helps", "not permitted", "not enough evidence", "interrupted".
    answer: &'static str,
    /// The answer in one line.
    headline: String,
    /// The command, as words.
    command: &'a [String],
    /// The chain's name.
    chain: String,
    /// Its points in order.
    points: &'a [String],
    /// Its deadline; null without one.
    deadline_ns: Option<u64>,
    /// Messages of the first recording.
    messages: u64,
    /// The figure that was to become smaller: "p99", "p95", "p90"; empty where nothing was tried.
    figure: String,
    /// Causes of the tail in the first recording, largest first.
    causes: Vec<Cause>,
    /// What is recommended; null where nothing is.
    recommended: Option<Recommended>,
    /// All sets of remedies of the selection. Their figures are no gains.
    tried: Vec<Set>,
    /// Remedies that were not tried.
    not_tried: &'a [Left],
    /// What only the program can change.
    program: &'a [Within],
    /// Trials in all.
    trials: usize,
    /// Length of a trial; null where the command ends by itself.
    trial_s: Option<f64>,
    /// Since the start.
    elapsed_s: f64,
    /// What the order of trials was drawn from.
    seed: u64,
    /// Everything that was changed is as it was.
    restored: bool,
    /// What a reader must know.
    notes: &'a [String],
}

#[derive(Serialize, JsonSchema)]
struct Cause {
    cause: String,
    detail: String,
    /// Share of the excess of the tail (0..1).
    tail_share: f64,
}

#[derive(Serialize, JsonSchema)]
struct Recommended {
    /// Names of the remedies.
    remedies: Vec<String>,
    /// In words.
    text: String,
    /// The changes, as `taut tune --apply` reads them.
    changes: serde_json::Value,
    /// What it costs, one sentence each.
    costs: Vec<String>,
    /// Fresh pairs.
    pairs: usize,
    /// The tail.
    tail: Option<Change>,
    /// The median.
    p50: Option<Change>,
    /// The share of messages over the deadline; of a loop without one, of activations that were not done at the next release; null where neither is
    /// known.
    missed: Option<Change>,
    /// What was guarded, and did not get worse.
    guards: Vec<Guard>,
    /// Files that apply it: name and text.
    files: Vec<File>,
}

/// Before and after, on fresh pairs.
#[derive(Serialize, JsonSchema)]
struct Change {
    /// Median over trials of the command as it is, in ns or as a share.
    before: f64,
    /// The same with the remedy.
    after: f64,
    /// −0.5 is half the time; of shares, a difference.
    change: f64,
    /// Bounds of the change; null where so few pairs give none.
    interval: Option<[f64; 2]>,
    /// Confidence of the interval; null without one.
    confidence: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Guard {
    guard: String,
    change: Option<Change>,
}

#[derive(Serialize, JsonSchema)]
struct File {
    name: String,
    usage: String,
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Set {
    /// Names of the remedies.
    remedies: Vec<String>,
    /// In words.
    text: String,
    /// Causes that they answer.
    against: Vec<String>,
    /// Predicted change of the tail by the first recording, as a share of it (0..1), of the largest.
    predicted_gain: f64,
    /// "confirmed", "not confirmed", "harms", "helped", "did not help", "fails", "not in force", "not tried".
    standing: &'static str,
    /// The same in words.
    why: String,
    /// Rounds with it.
    rounds: usize,
    /// Of them, those in which it was found in force.
    verified: usize,
    /// Kernel events that agreed with it.
    kernel_events: usize,
    /// Median over rounds of the tail with it ÷ that without.
    ratio: Option<f64>,
    /// [without, with], medians over rounds.
    tail_ns: Option<(f64, f64)>,
    p50_ns: Option<(f64, f64)>,
    missed: Option<(f64, f64)>,
}

fn shown(tuned: &Tuned) -> Tune<'_> {
    let found = tuned.found.as_ref();
    let cause = |(cause, detail, share): &(String, String, f64)| Cause {
        cause: cause.clone(),
        detail: detail.clone(),
        tail_share: *share,
    };
    Tune {
        schema_version: crate::SCHEMA_VERSION,
        kind: "tune",
        answer: match tuned.answer() {
            Answer::Recommended => "recommended",
            Answer::NothingHelps => "nothing helps",
            Answer::NotPermitted => "not permitted",
            Answer::NotEnough => "not enough evidence",
            Answer::Interrupted => "interrupted",
        },
        headline: sentences::headline(tuned),
        command: &tuned.command,
        chain: tuned.chain.clone(),
        points: &tuned.points,
        deadline_ns: tuned.deadline_ns,
        messages: tuned.messages,
        figure: tuned.figure.clone(),
        causes: tuned.causes.iter().map(cause).collect(),
        recommended: tuned.recommended().map(|attempt| recommended(tuned, attempt)),
        tried: found.into_iter().flat_map(|found| &found.tried).map(|tried| set(tuned, tried)).collect(),
        not_tried: &tuned.left,
        program: &tuned.within,
        trials: found.map_or(0, |found| found.trials),
        trial_s: tuned.trial_s,
        elapsed_s: tuned.elapsed_s,
        seed: tuned.seed,
        restored: tuned.is_restored,
        notes: &tuned.notes,
    }
}

fn names(tuned: &Tuned, set: &[usize]) -> Vec<String> {
    set.iter().filter_map(|at| Some(tuned.remedies.get(*at)?.id.clone())).collect()
}

fn recommended(tuned: &Tuned, attempt: &Attempt) -> Recommended {
    let plan = tuned.plan(&attempt.set);
    let remedies = attempt.set.iter().filter_map(|at| tuned.remedies.get(*at));
    Recommended {
        remedies: names(tuned, &attempt.set),
        text: plan.to_string(),
        changes: serde_json::to_value(&plan).unwrap_or_default(),
        costs: remedies.map(|remedy| format!("{}: {}", remedy.id, remedy.row.cost)).collect(),
        pairs: attempt.pairs,
        tail: attempt.tail.as_ref().map(change),
        p50: attempt.p50.as_ref().map(change),
        missed: attempt.missed.as_ref().map(change),
        guards: attempt
            .guards
            .iter()
            .map(|(guard, figures)| Guard { guard: guard.clone(), change: figures.as_ref().map(change) })
            .collect(),
        files: tuned
            .files
            .iter()
            .map(|file| File { name: file.name.into(), usage: file.usage.into(), text: file.text.clone() })
            .collect(),
    }
}

fn change(figures: &ChangeFigures) -> Change {
    Change {
        before: figures.a.value,
        after: figures.b.value,
        change: figures.change,
        interval: figures.interval.map(|interval| [interval.low, interval.high]),
        confidence: figures.interval.map(|interval| interval.confidence),
    }
}

fn set(tuned: &Tuned, tried: &Tried) -> Set {
    let remedies: Vec<&taut_tune::Remedy> = tried.set.iter().filter_map(|at| tuned.remedies.get(*at)).collect();
    Set {
        remedies: names(tuned, &tried.set),
        text: tuned.plan(&tried.set).to_string(),
        against: remedies.iter().flat_map(|remedy| remedy.against.clone()).collect(),
        predicted_gain: remedies.iter().map(|remedy| remedy.gain).fold(0.0, f64::max),
        standing: match &tried.standing {
            Standing::Confirmed => "confirmed",
            Standing::NotConfirmed => "not confirmed",
            Standing::Harms(_) => "harms",
            Standing::Helped => "helped",
            Standing::DidNotHelp => "did not help",
            Standing::Problem(Problem::Failed(_)) => "fails",
            Standing::Problem(Problem::NotInForce(_)) => "not in force",
            Standing::NotTried => "not tried",
        },
        why: sentences::standing(tried),
        rounds: tried.rounds,
        verified: tried.verified,
        kernel_events: tried.agreed,
        ratio: tried.ratio,
        tail_ns: tried.tail_ns,
        p50_ns: tried.p50_ns,
        missed: tried.missed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json::assert_documented, tune::sample};

    #[test]
    fn a_script_finds_the_recommendation_and_its_gain() {
        let value = tune_json(&sample::all().remove(0).1);
        assert_eq!(value["answer"], "recommended");
        assert_eq!(value["recommended"]["remedies"], serde_json::json!(["place"]));
        assert!(value["recommended"]["tail"]["change"].as_f64().unwrap() < -0.5);
        assert_eq!(value["tried"][0]["standing"], "confirmed");
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        assert_documented(&schemars::schema_for!(Tune<'_>).to_value(), "schemas/tune.schema.json");
    }
}
