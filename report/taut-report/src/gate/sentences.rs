//! What is said of an outcome, in one place, so that every form says the same.

use taut_gate::{Ballot, CauseChange, Outcome, Side, SideFailures, Statistic, Subject, TimeChange, VoidTrial};
use taut_stats::compare::{ChangeFigures, Verdict};

use super::{GateShown, cells};
use crate::words;

/// So few pairs can only describe.
const FEW: usize = 3;

/// The word for a verdict, as scripts and people read it.
pub(super) fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::NoRelevantDifference => "no relevant difference",
        Verdict::NotEnoughEvidence { .. } => "not enough evidence",
        Verdict::Invalid { .. } => "invalid",
    }
}

/// The verdict in one line.
pub fn headline(shown: &GateShown<'_>) -> String {
    let outcome = shown.outcome;
    match &outcome.verdict {
        Verdict::Worse => format!("WORSE: {}", accusation(outcome)),
        Verdict::Better => format!("BETTER: {}", praise(outcome)),
        Verdict::NoRelevantDifference => format!(
            "NOT WORSE: no relevant difference in {} over {}",
            words::quantity(outcome.ballots.len() as u64, "figure"),
            words::quantity(outcome.pairs as u64, "pair"),
        ),
        _ if only_describes(outcome) => description(outcome),
        Verdict::NotEnoughEvidence { more_pairs } => {
            format!(
                "INCONCLUSIVE, which {}: {} do not settle it{}",
                shown.terms.counts(),
                words::quantity(outcome.pairs as u64, "pair"),
                more(shown, *more_pairs)
            )
        }
        Verdict::Invalid { reason } => format!("INVALID: {reason}"),
    }
}

/// Whether there are too few pairs for a verdict on any figure.
pub(super) fn only_describes(outcome: &Outcome) -> bool {
    matches!(outcome.verdict, Verdict::NotEnoughEvidence { .. }) && outcome.pairs <= FEW
}

/// What so few pairs can say: what changed most between these.
fn description(outcome: &Outcome) -> String {
    let pairs = words::quantity(outcome.pairs as u64, "pair");
    let by_size = outcome.hops.iter().max_by(|a, b| a.own.change_ns.abs().total_cmp(&b.own.change_ns.abs()));
    let Some(hop) = by_size else { return format!("NO VERDICT: {pairs}, and nothing to describe") };
    let most = hop.causes.iter().find(|cause| !cause.is_machine);
    let cause = most.map_or(String::new(), |cause| format!(", the largest part {}", cause.cause));
    let machine: f64 = outcome.hops.iter().map(|hop| hop.machine.change_ns).sum();
    format!(
        "NO VERDICT, {pairs} can only describe: of a message on average {} → {} changed most, own {}{cause}; the machine, in all hops, {}",
        hop.from,
        hop.to,
        time_change(&hop.own),
        signed(machine)
    )
}

/// What the machine did, where it matters.
pub(super) fn machine(outcome: &Outcome) -> Option<String> {
    let machine = outcome.machine.filter(|machine| machine.is_worse)?;
    let excused = outcome.ballots.iter().chain(&outcome.startup).filter(|ballot| ballot.excused).count();
    let excuse = match excused {
        0 => "that is not counted against the program".to_owned(),
        n => format!("{} that got worse with it cannot be separated from it", words::quantity(n as u64, "figure")),
    };
    Some(format!(
        "the machine took more of B's messages than of A's ({} a message on average, {} before); {excuse}",
        words::scaled(machine.b_ns),
        words::scaled(machine.a_ns),
    ))
}

/// "B failed in 2 of 16 runs, A in none of 16: signal 6 (SIGABRT): assertion failed"; `None` where no run failed.
pub(super) fn failures(outcome: &Outcome) -> Option<String> {
    let (a, b) = (&outcome.failures.a, &outcome.failures.b);
    let side = |side: &SideFailures| match side.failed {
        0 => format!("none of {}", side.runs),
        n => format!("{n} of {}", side.runs),
    };
    let first = b.first().or(a.first())?;
    Some(format!("B failed in {} runs, A in {}: {first}", side(b), side(a)))
}

/// What the first run that failed said last, line by line.
pub(super) fn last_words(outcome: &Outcome) -> Option<String> {
    let failures = &outcome.failures;
    let first = failures.b.first().or(failures.a.first())?;
    (first.said.len() > 1).then(|| format!("last lines of a run that failed: {}", first.said.join(" / ")))
}

/// The figures of the start-up that are worse.
pub(super) fn worse_startup(outcome: &Outcome) -> impl Iterator<Item = &Ballot> {
    outcome.startup.iter().filter(|one| one.is_worse())
}

/// "hop plan → send, own p50 +12 % (…)".
fn accusation(outcome: &Outcome) -> String {
    let figures = accused_figures(outcome);
    match failures(outcome).filter(|_| outcome.failures.is_worse) {
        Some(failed) => std::iter::once(failed).chain(figures).collect::<Vec<_>>().join("; and "),
        None => figures.unwrap_or_default(),
    }
}

fn accused_figures(outcome: &Outcome) -> Option<String> {
    if outcome.ballots.iter().any(Ballot::is_worse) {
        return Some(accused_ballots(outcome));
    }
    let first = worse_startup(outcome).next()?;
    let figures = first.finding.figures.as_ref()?;
    Some(format!(
        "{} {}; the messages after it are no worse",
        name(first.subject, outcome),
        change_with_bounds(first.subject, figures)
    ))
}

fn accused_ballots(outcome: &Outcome) -> String {
    let worse: Vec<&Ballot> = outcome.ballots.iter().filter(|ballot| ballot.is_worse()).collect();
    let of_hop = worse.iter().find(|b| outcome.blamed.is_some() && b.subject.hop() == outcome.blamed);
    let Some(first) = of_hop.or(worse.first()) else { return "the place is unknown".into() };
    let figures = first.finding.figures.as_ref();
    let what = figures.map_or(String::new(), |figures| format!(" {}", change_with_bounds(first.subject, figures)));
    let cause = outcome.blamed.and_then(|hop| cause(outcome, hop)).map_or(String::new(), |c| format!(", by {c}"));
    let others = match worse.len() {
        1 => String::new(),
        n => format!("; worse too: {}", words::quantity(n as u64 - 1, "other figure")),
    };
    let blamed = outcome.blamed.filter(|_| first.subject.hop().is_none()).and_then(|hop| outcome.hops.get(hop));
    let place = blamed.map_or(String::new(), |hop| format!(", in {} → {}", hop.from, hop.to));
    format!(
        "{}{what}{place}{cause}; confirmed on {}{others}",
        name(first.subject, outcome),
        words::quantity(outcome.fresh as u64, "fresh pair")
    )
}

/// The cause that grew most on the program's side.
fn cause(outcome: &Outcome, hop: usize) -> Option<String> {
    let grown = |cause: &&CauseChange| !cause.is_machine && cause.time.change_ns > 0.0;
    let most = outcome.hops.get(hop)?.causes.iter().filter(grown);
    let most = most.max_by(|a, b| a.time.change_ns.total_cmp(&b.time.change_ns))?;
    Some(format!("{} ({} a message)", most.cause, signed(most.time.change_ns)))
}

fn praise(outcome: &Outcome) -> String {
    let better: Vec<&Ballot> = outcome.ballots.iter().filter(|b| b.finding.verdict == Verdict::Better).collect();
    let change = |b: &&&Ballot| b.finding.figures.as_ref().map_or(0.0, |figures| figures.change);
    let Some(most) = better.iter().min_by(|a, b| change(a).total_cmp(&change(b))) else { return String::new() };
    let figures = most.finding.figures.as_ref();
    let what = figures.map_or(String::new(), |figures| format!(" {}", change_with_bounds(most.subject, figures)));
    format!("{}{what}", name(most.subject, outcome))
}

fn more(shown: &GateShown<'_>, pairs: Option<usize>) -> String {
    match (pairs, shown.elapsed_s) {
        (Some(n), Some(elapsed)) if shown.outcome.pairs > 0 => {
            let seconds = elapsed / shown.outcome.pairs as f64 * n as f64;
            format!("; about {} more would, {}", words::quantity(n as u64, "pair"), time(seconds))
        }
        (Some(n), _) => format!("; about {} more would", words::quantity(n as u64, "pair")),
        (None, _) => "; how many more pairs would is not known".into(),
    }
}

/// "4 min", "35 s".
pub(super) fn time(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

/// "plan → send, own p50".
pub(super) fn name(subject: Subject, outcome: &Outcome) -> String {
    let of = |side: Side, statistic: Statistic| match statistic {
        Statistic::Slow => format!("{} share of slow", side.word()),
        Statistic::Tail1 => format!("{} slowest 1 %", side.word()),
        Statistic::Tail5 => format!("{} slowest 5 %", side.word()),
        _ => format!("{} {}", side.word(), statistic.word()),
    };
    match subject {
        Subject::Missed => "missed deadlines".into(),
        Subject::Dropped => "dropped messages".into(),
        Subject::MissedOwn => "deadlines missed without the machine's part".into(),
        Subject::Startup => "start-up, own time of the slowest of the first 10 messages".into(),
        Subject::StartupMissed => "start-up, deadlines that the first 10 messages missed by themselves".into(),
        Subject::Probe { statistic } => format!("the probe's wakes, {}", statistic.word()),
        Subject::Chain { side, statistic } => format!("whole way, {}", of(side, statistic)),
        Subject::Hop { hop, side, statistic } => {
            let hop = outcome.hops.get(hop).map_or(format!("hop {hop}"), |hop| format!("{} → {}", hop.from, hop.to));
            format!("{hop}, {}", of(side, statistic))
        }
    }
}

/// A number of a subject: a time or a share.
fn number(subject: Subject, value: f64) -> String {
    cells::number(subject.is_share(), value).alone()
}

/// "+12.3 %", "+0.48 pp".
fn change(subject: Subject, change: f64) -> String {
    cells::change(subject.is_share(), change).alone()
}

fn change_with_bounds(subject: Subject, figures: &ChangeFigures) -> String {
    let at = |value: f64| self::change(subject, value);
    let bounds = figures.interval.map_or(String::new(), |i| format!(", 95 % {} … {}", at(i.low), at(i.high)));
    format!(
        "{} ({} → {}{bounds})",
        at(figures.change),
        number(subject, figures.a.value),
        number(subject, figures.b.value)
    )
}

/// "+1.2 µs".
fn signed(ns: f64) -> String {
    format!("{}{}", if ns < 0.0 { "−" } else { "+" }, words::scaled(ns.abs()))
}

/// "100 µs → 112 µs (+11.8 µs within pairs)": which need not be the difference of the two, the medians of the sides.
fn time_change(time: &TimeChange) -> String {
    format!("{} → {} ({} within pairs)", words::scaled(time.a_ns), words::scaled(time.b_ns), signed(time.change_ns))
}

/// What a reader must know to trust the verdict.
pub(super) fn notes(shown: &GateShown<'_>) -> Vec<String> {
    let outcome = shown.outcome;
    let mut notes: Vec<String> = machine(outcome).into_iter().collect();
    notes.extend(failures(outcome).filter(|_| !outcome.failures.is_worse));
    notes.extend(last_words(outcome));
    if outcome.is_blind {
        notes.push(
            "the recordings hold no kernel events, so nothing tells the program's time from the machine's, and all of \
             it counts as the program's; record as root, or grant CAP_PERFMON"
                .into(),
        );
    }
    if outcome.unknown > 0.05 && !outcome.is_blind {
        notes.push(format!(
            "up to {} of a trial's time is unknown and counts as the program's own",
            words::percent(outcome.unknown)
        ));
    }
    if let Some((hidden_s, all_s)) = outcome.hang_hidden_s {
        notes.push(format!(
            "a run that hangs in the last {hidden_s:.1} s of a trial's {all_s:.1} s would not count as failed: so much is allowed for \
             the baseline's own silences and for stalls of the machine; longer trials show it (--duration)"
        ));
    }
    for (vote, reason) in &outcome.silent {
        notes.push(format!("{vote} does not vote: {reason}"));
    }
    if let Some(VoidTrial { trial: name, why }) = outcome.void.first() {
        let n = words::quantity(outcome.void.len() as u64, "trial");
        let were = if outcome.void.len() == 1 { "was" } else { "were" };
        notes.push(format!("{n} {were} void and left out with the other trial of the pair; the first, {name}: {why}"));
    }
    for noise in shown.noise {
        if let Some(reason) = &noise.unfit {
            notes.push(format!("{}, A against itself: {reason}", name(noise.subject, outcome)));
        }
    }
    notes.extend(shown.terms.notes.iter().cloned());
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::sample;

    #[test]
    fn a_change_beside_two_medians_says_that_it_is_within_pairs() {
        let outcome = sample::described();
        let headline = headline(&sample::shown(&outcome));
        assert!(
            headline.starts_with(
                "NO VERDICT, 2 pairs can only describe: of a message on average plan → send changed most, own "
            ),
            "{headline}"
        );
        let own = &outcome.hops[1].own;
        let (a, b) = (words::scaled(own.a_ns), words::scaled(own.b_ns));
        let said = format!("{a} → {b} ({} within pairs)", signed(own.change_ns));
        assert!(headline.contains(&said), "{said}: {headline}");
    }
}
