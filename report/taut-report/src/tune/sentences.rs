//! What is said of a tuning, in one place, so that every form says the same.

use taut_tune::{Answer, Change, Guarded, Left, Recommended, Set, Standing, TailCause, Tuned, Within};

use crate::words;

/// The answer in one line.
pub fn headline(tuned: &Tuned) -> String {
    let figure = if tuned.figure.is_empty() { "the tail" } else { &tuned.figure };
    match (tuned.answer(), &tuned.recommended) {
        (Answer::Recommended, Some(of)) => {
            let gain = of.tail.as_ref().map_or(String::new(), gain);
            let pairs = words::quantity(of.pairs as u64, "fresh pair");
            format!("{}: {figure} {gain}, over {pairs}", tuned.name(&of.set))
        }
        (Answer::NotPermitted, _) => {
            let grant = tuned.left.iter().find_map(|left| left.grant.as_deref()).unwrap_or_default();
            format!("Remedies exist, and none may be tried; {grant}")
        }
        (Answer::NotEnough, _) if !tuned.is_restored => "The search ended: a change could not be put back".into(),
        (Answer::NotEnough, _) => not_enough(tuned),
        (Answer::Interrupted, _) => "Interrupted before a remedy was confirmed".into(),
        _ => nothing_helps(tuned),
    }
}

fn not_enough(tuned: &Tuned) -> String {
    let minutes = tuned.needed_s.map_or(String::new(), |s| format!(" {}m", (s / 60.0).ceil().max(1.0)));
    let Some(best) = &tuned.promising else {
        return format!("Not enough evidence in the time; give more with --max-time{minutes}");
    };
    let (standing, seen) = match best.pairs {
        Some(pairs) => {
            ("was under confirmation", format!("over {}, too few", words::quantity(pairs as u64, "fresh pair")))
        }
        None => ("looks best", format!("over {} of the selection", words::quantity(best.rounds as u64, "round"))),
    };
    let remedies: Vec<String> = best.set.iter().map(|at| format!("--remedy {}", tuned.name(&[*at]))).collect();
    format!(
        "Not enough evidence in the time; {} {standing} ({} {} → {} {seen}): try {} or --max-time{minutes}",
        tuned.name(&best.set),
        tuned.figure,
        words::scaled(best.before_ns),
        words::scaled(best.after_ns),
        remedies.join(" ")
    )
}

/// "1.24 ms → 210 µs (−83 %, interval −88 to −75 %)".
fn gain(of: &Change) -> String {
    let interval = of.interval.zip(of.confidence).map_or(String::new(), |([low, high], confidence)| {
        format!(", {:.0} % interval {} to {}", 100.0 * confidence, percent(low), percent(high))
    });
    format!("{} → {} ({}{interval})", words::scaled(of.before), words::scaled(of.after), percent(of.change))
}

/// A change in per cent: "−83 %".
fn percent(change: f64) -> String {
    let sign = if change < 0.0 { "−" } else { "+" };
    let size = (100.0 * change).abs();
    // 98 and 99.4 % are a factor of three apart.
    let digits = usize::from(change < -0.9);
    format!("{sign}{size:.digits$} %")
}

fn nothing_helps(tuned: &Tuned) -> String {
    let tried = match tuned.tried.len() {
        0 => "No setting outside the program answers the causes of the tail".to_owned(),
        _ => format!("Nothing that was tried here helps{}", unused(tuned)),
    };
    match tuned.within.first() {
        Some(within) if within.against.is_empty() => {
            format!("{tried}; the time is in {}, and no cause of it is known", within.hop)
        }
        Some(within) => {
            let hop = if within.hop.is_empty() { String::new() } else { format!("{}, ", within.hop) };
            format!("{tried}; the time is in the program: {hop}{}", within.against)
        }
        _ => tried,
    }
}

/// ", and 5 of 6 could not be used".
fn unused(tuned: &Tuned) -> String {
    let singles: Vec<&Standing> =
        tuned.tried.iter().filter(|one| one.set.len() == 1).map(|one| &one.standing).collect();
    let unused = singles.iter().filter(|standing| matches!(standing, Standing::Problem(_))).count();
    match unused {
        0 => String::new(),
        unused => format!(", and {unused} of {} could not be used", singles.len()),
    }
}

/// "chain a → b · 1,500 messages · trials of 2.0 s · 54 trials in 2 min · seed 1".
pub(super) fn about(tuned: &Tuned) -> String {
    let mut parts = vec![format!("chain {}", tuned.chain), words::quantity(tuned.messages, "message")];
    parts.extend(tuned.trial_s.map(|s| format!("trials of {s:.1} s")));
    if !tuned.tried.is_empty() || tuned.is_out {
        parts.push(format!("{} in {:.0} s", words::quantity(tuned.trials as u64, "trial"), tuned.elapsed_s));
        parts.push(format!("seed {}", tuned.seed));
    }
    parts.join(" · ")
}

/// The causes of the tail before.
pub(super) fn causes(tuned: &Tuned) -> String {
    let one = |of: &TailCause| {
        let detail = if of.detail.is_empty() { String::new() } else { format!(" {}", of.detail) };
        format!("{} {}{detail}", words::percent(of.tail_share), of.cause)
    };
    let all: Vec<String> = tuned.causes.iter().take(4).map(one).collect();
    if all.is_empty() { String::new() } else { format!("excess of the tail: {}", all.join(", ")) }
}

/// What is recommended, one sentence each.
pub(super) fn recommendation(tuned: &Tuned) -> Vec<String> {
    let Some(of) = &tuned.recommended else { return Vec::new() };
    let mut lines = vec![format!("{}.", of.text)];
    for remedy in tuned.remedies(&of.set) {
        lines.push(format!("Cost of {}: {}. Undo: {}.", remedy.id, remedy.row.cost, remedy.row.undone));
    }
    lines.extend(guards(of));
    lines
}

fn guards(of: &Recommended) -> Option<String> {
    let one = |of: &Guarded| {
        let change = of.change.as_ref()?.change;
        let is_share = of.guard.ends_with("dropped") || of.guard.ends_with("overruns");
        let points = |share: f64| format!("{:+.1} points", 100.0 * share + 0.0).replace('-', "−");
        let change = if is_share { points(change) } else { percent(change) };
        Some(format!("{} {change}", of.guard))
    };
    let all: Vec<String> = of.guards.iter().filter_map(one).collect();
    (!all.is_empty()).then(|| format!("Not worse: {}.", all.join(", ")))
}

/// What a set of remedies costs.
pub(super) fn costs(tuned: &Tuned, set: &Set) -> String {
    tuned.remedies(&set.set).map(|remedy| remedy.row.cost).collect::<Vec<_>>().join("; ")
}

/// What was not tried, one sentence each.
pub(super) fn left(left: &Left) -> String {
    let grant = left.grant.as_ref().map_or(String::new(), |grant| format!("; {grant}"));
    format!("{} ({}): {}{grant}", left.id, left.title, left.why)
}

/// What only the program can change.
pub(super) fn within(within: &Within) -> String {
    let hop = if within.hop.is_empty() { String::new() } else { format!(" in {}", within.hop) };
    if within.against.is_empty() {
        return format!("{} of the excess is{hop}; no cause of it is known", words::percent(within.share));
    }
    let gain = match within.gain > 0.005 {
        true => format!(" (predicted {})", percent(-within.gain)),
        false => String::new(),
    };
    format!("{}{hop}: {}{gain}", within.against, within.advice)
}

/// What a reader must know.
pub(super) fn notes(tuned: &Tuned) -> Vec<String> {
    let mut notes = tuned.notes.clone();
    notes.push(match tuned.is_restored {
        true => "nothing stays changed".into(),
        false => "NOT everything could be put back: taut tune --undo".into(),
    });
    notes
}
