//! What is said of a tuning, in one place, so that every form says the same.

use taut_analysis::Cause;
use taut_doctor::quoted;
use taut_document::Text;
use taut_tune::{Answer, Change, Fresh, Guarded, Left, PREFIX, Recommended, Set, Standing, TailCause, Tuned, Within};

use crate::{causes::phrase, words};

/// From this share of the excess on, what only the program can change belongs into the first lines.
const MOST: f64 = 0.5;
/// Causes that are named.
const CAUSES: usize = 3;

/// The answer in one line.
pub fn headline(tuned: &Tuned) -> String {
    let figure = if tuned.figure.is_empty() { "the tail" } else { &tuned.figure };
    match (tuned.answer(), &tuned.recommended) {
        (Answer::Recommended, Some(of)) => {
            let gain = of.tail.as_ref().map_or(String::new(), gain);
            let pairs = words::quantity(of.pairs as u64, "fresh pair");
            format!("{}: {figure} {gain}, confirmed over {pairs} of runs", titled(tuned, &of.set))
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

/// The first lines: the answer, what made the tail, and what to do next.
pub(super) fn first_lines(tuned: &Tuned) -> Text {
    let mut text = Text::from(format!("{}.", headline(tuned)));
    let because = because(tuned);
    if !because.is_empty() {
        text = text.and(format!(" {because}"));
    }
    let Some(next) = next(tuned) else { return text };
    let place = match (tuned.answer(), &tuned.folder) {
        (Answer::Recommended, None) => format!(" ({PREFIX} is below; --files FOLDER writes it)"),
        _ => String::new(),
    };
    text.and(" Next: ").code(next).and(format!("{place}."))
}

/// "fifo (real-time priority for the whole program)".
fn titled(tuned: &Tuned, set: &[usize]) -> String {
    let titles: Vec<String> =
        tuned.remedies(set).map(|remedy| format!("{} ({})", remedy.id, remedy.row.title)).collect();
    titles.join(" + ")
}

fn not_enough(tuned: &Tuned) -> String {
    let Some(best) = &tuned.promising else { return "Not enough evidence in the time".into() };
    let seen = match best.pairs {
        Some((pairs, interval)) => {
            let pairs = words::quantity(pairs as u64, "fresh pair");
            match interval {
                Some([low, high]) => format!(
                    "was under confirmation: over {pairs} of runs its change was {} to {}, an interval that is too wide",
                    percent(low),
                    percent(high)
                ),
                None => format!("was under confirmation, with {pairs} of runs so far"),
            }
        }
        None => format!("looks best after {} of the selection", words::quantity(best.rounds as u64, "round")),
    };
    format!(
        "Not enough evidence in the time; {} {seen} ({} {} → {})",
        titled(tuned, &best.set),
        tuned.figure,
        words::scaled(best.before_ns),
        words::scaled(best.after_ns)
    )
}

/// The causes of the tail before, and what of them no setting changes.
fn because(tuned: &Tuned) -> String {
    let one = |of: &TailCause| {
        let what = Cause::from_word(&of.cause).map_or_else(|| of.cause.clone(), |cause| phrase(cause, &of.detail));
        format!("{} {what}", words::percent(of.tail_share))
    };
    let mut named: Vec<String> = tuned.causes.iter().take(CAUSES).map(one).collect();
    if named.is_empty() {
        return String::new();
    }
    let rest = 1.0 - tuned.causes.iter().take(CAUSES).map(|of| of.tail_share).sum::<f64>();
    named.extend((rest >= 0.01).then(|| format!("{} other causes", words::percent(rest))));
    let mut text = format!("Excess of the tail over typical messages, without a remedy: {}.", named.join(", "));
    let is_of_program = |of: &&Within| of.share >= MOST && tuned.answer() != Answer::NothingHelps;
    if let Some(of) = tuned.within.first().filter(is_of_program) {
        text += &format!(" Most of it only the program can change: {}.", within(of));
    }
    text
}

/// What to run next.
fn next(tuned: &Tuned) -> Option<String> {
    match (tuned.answer(), &tuned.folder) {
        (Answer::Recommended, Some(folder)) => Some(format!("{}/{PREFIX} {}", quoted(folder), tuned.shell_command())),
        (Answer::Recommended, None) => Some(format!("./{PREFIX} {}", tuned.shell_command())),
        (Answer::NotEnough, _) if tuned.is_restored => {
            let minutes = tuned.needed_s.map(|s| ["--max-time".to_owned(), format!("{}m", (s / 60.0).ceil().max(1.0))]);
            let best = tuned.promising.iter().flat_map(|best| &best.set);
            let only = best.flat_map(|at| ["--remedy".to_owned(), tuned.name(&[*at])]);
            Some(tuned.again(&minutes.into_iter().flatten().chain(only).collect::<Vec<_>>()))
        }
        _ => None,
    }
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
    match tuned.within.first().filter(|within| within.share >= MOST) {
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

/// "chain a → b of ./robot · 1,500 messages recorded first · 54 trials of 2.0 s · 120 s in all · seed 1".
pub(super) fn about(tuned: &Tuned) -> Text {
    let text = Text::from(format!("chain {} of ", tuned.chain)).code(tuned.shell_command());
    let mut parts = vec![format!("{} recorded first", words::quantity(tuned.messages, "message"))];
    if !tuned.tried.is_empty() || tuned.is_out {
        let each = tuned.trial_s.map_or(String::new(), |s| format!(" of {s:.1} s"));
        parts.push(format!("{}{each}", words::quantity(tuned.trials as u64, "trial")));
        parts.push(format!("{:.0} s in all", tuned.elapsed_s));
        parts.push(format!("seed {}", tuned.seed));
    }
    text.and(format!(" · {}", parts.join(" · ")))
}

/// What is recommended, one sentence each.
pub(super) fn recommendation(tuned: &Tuned) -> Vec<String> {
    let Some(of) = &tuned.recommended else { return Vec::new() };
    let mut lines = vec![format!("{}: {}.", tuned.name(&of.set), of.text)];
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
    (!all.is_empty()).then(|| format!("Nothing else is worse: {}.", all.join(", ")))
}

/// What a set of remedies costs.
pub(super) fn costs(tuned: &Tuned, set: &Set) -> String {
    tuned.remedies(&set.set).map(|remedy| remedy.row.cost).collect::<Vec<_>>().join("; ")
}

/// What was not tried: remedies with one reason together.
pub(super) fn left(left: &[Left]) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for one in left {
        let reason = one.why.clone() + &one.grant.as_ref().map_or(String::new(), |grant| format!("; {grant}"));
        let name = format!("{} ({})", one.id, one.title);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    reasons.into_iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))).collect()
}

/// What became of a set, with the fresh pairs that it was held against.
pub(super) fn result(set: &Set) -> String {
    let pairs = set.fresh.as_ref().map_or(0, |fresh: &Fresh| fresh.pairs);
    match set.standing {
        Standing::Confirmed | Standing::NotConfirmed => {
            format!("{} over {}", set.why, words::quantity(pairs as u64, "fresh pair"))
        }
        _ => set.why.clone(),
    }
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
