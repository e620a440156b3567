//! The table of a tuning as rows of text: the same in the terminal, in Markdown and on the page.

use taut_tune::{Problem, Standing, Tried, Tuned};

use super::sentences;
use crate::words;

/// Whether the share of late messages is known: those over the deadline, or activations that were not done at the next release.
fn has_overruns(tuned: &Tuned) -> bool {
    tuned.found.iter().flat_map(|found| &found.tried).any(|tried| tried.missed.is_some())
}

/// Names of the columns.
pub(super) fn header(tuned: &Tuned) -> Vec<String> {
    let tail = if tuned.figure.is_empty() { "tail" } else { &tuned.figure };
    let all = ["remedy", "in force", "p50", tail, "overruns", "change", "result"];
    all.into_iter().filter(|name| has_overruns(tuned) || *name != "overruns").map(str::to_owned).collect()
}

/// The recommended one's figures are of fresh pairs, those of the others of the selection.
pub(super) const NOTE: &str = "Before → after, medians over trials. Only the confirmed row is of fresh pairs; the others are of the selection, \
                               which is no measure of a gain.";

/// All sets, the recommended first.
pub(super) fn rows(tuned: &Tuned) -> Vec<Vec<String>> {
    let Some(found) = &tuned.found else { return Vec::new() };
    found.tried.iter().map(|tried| row(tuned, tried)).collect()
}

fn row(tuned: &Tuned, tried: &Tried) -> Vec<String> {
    let attempt = tuned.found.as_ref().and_then(|found| found.attempts.iter().find(|one| one.set == tried.set));
    let time = |both: Option<(f64, f64)>| {
        both.map_or("–".into(), |(a, b)| format!("{} → {}", words::scaled(a), words::scaled(b)))
    };
    let share = |both: Option<(f64, f64)>| {
        both.map_or("–".into(), |(a, b)| format!("{} → {}", words::percent(a), words::percent(b)))
    };
    let of = |figures: Option<&taut_stats::compare::ChangeFigures>| figures.map(|one| (one.a.value, one.b.value));
    let fresh = attempt.filter(|_| tried.standing == Standing::Confirmed);
    let (p50, tail, missed) = match fresh {
        Some(attempt) => (of(attempt.p50.as_ref()), of(attempt.tail.as_ref()), of(attempt.missed.as_ref())),
        None => (tried.p50_ns, tried.tail_ns, tried.missed),
    };
    let change = match fresh.and_then(|attempt| attempt.tail.as_ref()) {
        Some(figures) => {
            let interval = figures.interval.map_or(String::new(), |interval| {
                format!(" ({} to {})", sentences::percent(interval.low), sentences::percent(interval.high))
            });
            format!("{}{interval}", sentences::percent(figures.change))
        }
        None => tried.ratio.map_or("–".into(), |ratio| sentences::percent(ratio - 1.0)),
    };
    let in_force = match (&tried.standing, tried.rounds) {
        (Standing::Problem(Problem::NotInForce(_)), _) => "no".into(),
        (_, 0) => "–".into(),
        (_, rounds) if tried.agreed > 0 => {
            format!("{} of {rounds}, {} events", tried.verified, words::count(tried.agreed as u64))
        }
        (_, rounds) => format!("{} of {rounds}", tried.verified),
    };
    let missed = has_overruns(tuned).then(|| share(missed));
    let before = [tuned.name(&tried.set), in_force, time(p50), time(tail)];
    before.into_iter().chain(missed).chain([change, standing(&tried.standing)]).collect()
}

/// The word for what became of a set.
pub(super) fn standing(standing: &Standing) -> String {
    match standing {
        Standing::Confirmed => "confirmed".into(),
        Standing::NotConfirmed => "not confirmed".into(),
        Standing::Harms(what) => format!("harms {}", what.join(", ")),
        Standing::Helped => "helped".into(),
        Standing::DidNotHelp => "did not help".into(),
        Standing::Problem(Problem::Failed(why)) => format!("the program fails: {why}"),
        Standing::Problem(Problem::NotInForce(why)) => format!("not in force: {why}"),
        Standing::NotTried => "no time".into(),
    }
}
