//! A gate from its first pair to its verdict: looks, finding, confirmation; then the hop that grew.

use taut_stats::compare::{
    Finding, InvalidReason, Judgement, Margin, Metric, Next, Pair, Plan, Rule, Scale, Shift, Verdict, confirm, holm,
    judge,
};

use crate::{
    Ballot, Described, Distributions, Error, Failures, MachineChange, Outcome, Plot, Settings, Side, Statistic,
    Subject, Trial, Void, VoidTrial, Vote, blame, early, figures::SLOW_BY_NS,
};

/// Times below count as this: a ratio needs a number above zero.
const SHORTEST_NS: f64 = 100.0;
/// At this level the machine counts as worse …
const WORSE_MACHINE_ALPHA: f64 = 0.01;
/// … and at this one it excuses what cannot be separated from it: a hog is far beyond it, and chance must not excuse a program.
const EXCUSED_ALPHA: f64 = 0.001;
/// Beside longer ones shorter times do not vote: cold caches change them more than a program does, and each that votes makes the
/// others harder to hear.
const VOTE_MIN_NS: f64 = 5_000.0;
/// What a neighbour's hold on the caches may add to a program's work: behind a machine that got worse, only what is proven to be
/// more is the program's.
const COLD_CACHES: f64 = 0.1;
/// Nothing confirms what is found of the start-up, which is judged beside the gate: at this level for each of its two figures.
const STARTUP_ALPHA: f64 = 0.004;
/// Pairs asked for beyond those that a look needs, to replace void ones.
const SPARE: usize = 5;

/// What a pair is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Is there a finding against B?
    Accuse,
    /// Does the accusation stand?
    Confirm,
}

/// The next pair that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What it is for.
    pub phase: Phase,
    /// Pairs of this phase that are there.
    pub pairs: usize,
    /// Pairs at the next look.
    pub until: usize,
    /// Pairs of this phase at most.
    pub most: usize,
}

/// An outcome with the pairs that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Gated {
    /// What it came to.
    pub outcome: Outcome,
    /// Pairs (A, B) of the first finding.
    pub pairs: Vec<(Trial, Trial)>,
    /// Fresh pairs that confirmed, or did not.
    pub fresh: Vec<(Trial, Trial)>,
}

impl Gated {
    /// Counts the failures of all stored trials. The gate looks at no more pairs than it needs for the times, and a run behind them may have failed.
    ///
    /// # Errors
    /// The trials are not of one chain.
    pub fn count_failures(&mut self, a: &[Trial], b: &[Trial]) -> Result<(), Error> {
        let mut pairs: Vec<(Trial, Trial)> = a.iter().cloned().zip(b.iter().cloned()).collect();
        early::mark(&mut pairs)?;
        let behind = pairs.len();
        let of_a = pairs.iter().map(|(a, _)| a).chain(&a[behind..]);
        let of_b = pairs.iter().map(|(_, b)| b).chain(&b[behind..]);
        self.outcome.failures = Failures::of_sides(of_a, of_b);
        if self.outcome.failures.is_worse {
            self.outcome.verdict = Verdict::Worse;
        }
        Ok(())
    }
}

/// Runs a gate on the pairs (A, B) that `next` makes, until it is sure or `next` has no more (`None`: the time is up).
///
/// When that is must not depend on the pairs' figures. Errors of `next` end the gate.
pub fn gate<E: From<Error>>(
    settings: &Settings,
    next: &mut dyn FnMut(Asked) -> Result<Option<(Trial, Trial)>, E>,
) -> Result<Gated, E> {
    let plan = &settings.plan;
    let (mut pairs, mut fresh) = (Vec::new(), Vec::new());
    let mut subjects = Vec::new();
    let mut silent = Vec::new();
    let mut choose = |pairs: &[(Trial, Trial)]| {
        (subjects, silent) = chosen(settings, pairs);
        subjects.clone()
    };
    let first = looks(settings, Phase::Accuse, &mut pairs, &mut choose, next, |metrics, before, is_last| {
        judge(plan, metrics, before, is_last)
    })?;
    let judged = if matches!(first.next, Next::Confirm { .. }) {
        let mut same = |_: &[(Trial, Trial)]| subjects.clone();
        looks(settings, Phase::Confirm, &mut fresh, &mut same, next, |metrics, before, is_last| {
            confirm(plan, &first, metrics, before, is_last)
        })?
    } else {
        first
    };
    // Few fresh pairs are no measure of their own.
    let accusing = pairs.len();
    pairs.append(&mut fresh);
    early::mark(&mut pairs)?;
    fresh = pairs.split_off(accusing);
    let outcome = outcome(settings, judged, &subjects, silent, &pairs, &fresh);
    Ok(Gated { outcome, pairs, fresh })
}

/// Decides, at the first look, which subjects vote.
type Choice<'a> = dyn FnMut(&[(Trial, Trial)]) -> Vec<Subject> + 'a;

/// Asks for pairs and looks at them until there is no next look.
fn looks<E: From<Error>>(
    settings: &Settings,
    phase: Phase,
    pairs: &mut Vec<(Trial, Trial)>,
    choose: &mut Choice<'_>,
    next: &mut dyn FnMut(Asked) -> Result<Option<(Trial, Trial)>, E>,
    judge: impl Fn(&[Metric], &[usize], bool) -> Judgement,
) -> Result<Judgement, E> {
    let looks = if phase == Phase::Accuse { &settings.plan.looks } else { &settings.plan.confirm_looks };
    let after = |pairs: usize| looks.iter().copied().filter(|look| *look > pairs).min();
    let most = looks.iter().copied().max().unwrap_or(0);
    let (mut before, mut until) = (Vec::new(), after(0).unwrap_or(0));
    let mut subjects: Option<Vec<Subject>> = None;
    loop {
        let mut is_out = false;
        // What else is void is replaced within reason; what the machine spoiled, as long as that is not nearly everything.
        let enough = |pairs: &[(Trial, Trial)]| {
            let not_stalled = pairs.iter().filter(|pair| !is_stalled(pair)).count();
            let with_spare = until + until / SPARE;
            let usable = usable(settings, subjects.as_deref(), pairs);
            usable >= until || not_stalled > with_spare || pairs.len() > 3 * with_spare
        };
        while !enough(pairs) {
            let asked = Asked { phase, pairs: pairs.len(), until, most };
            let Some((a, b)) = next(asked)? else {
                is_out = true;
                break;
            };
            pairs.push((a, b));
            early::mark(pairs)?;
            if Failures::of(pairs.iter()).is_clear() {
                is_out = true;
                break;
            }
        }
        let chosen = subjects.get_or_insert_with(|| choose(pairs)).clone();
        let metrics: Vec<Metric> = chosen.iter().map(|s| metric(settings.rule(*s), *s, pairs)).collect();
        let next_look = after(until).filter(|_| !is_out);
        let judged = judge(&metrics, &before, next_look.is_none());
        match (judged.next, next_look) {
            (Next::Continue { .. }, Some(look)) => {
                before.push(complete(&metrics));
                until = look;
            }
            _ => return Ok(judged),
        }
    }
}

/// Pairs that count: sound ones until it is known what votes, then those that every vote has.
fn usable(settings: &Settings, subjects: Option<&[Subject]>, pairs: &[(Trial, Trial)]) -> usize {
    match subjects {
        None => pairs.iter().filter(|pair| is_sound(pair)).count(),
        Some(subjects) => {
            let metrics: Vec<Metric> = subjects.iter().map(|s| metric(settings.rule(*s), *s, pairs)).collect();
            complete(&metrics)
        }
    }
}

fn is_sound((a, b): &(Trial, Trial)) -> bool {
    a.void.is_none() && b.void.is_none()
}

fn complete(metrics: &[Metric]) -> usize {
    let rows = metrics.first().map_or(0, |metric| metric.pairs.len());
    (0..rows).filter(|row| metrics.iter().all(|metric| metric.pairs[*row].is_some())).count()
}

/// A subject's number over all pairs.
pub(crate) fn metric(rule: Rule, subject: Subject, pairs: &[(Trial, Trial)]) -> Metric {
    let number = |trial: &Trial| {
        let number = subject.number(trial)?;
        Some(if rule.scale == Scale::Ratio { number.max(SHORTEST_NS) } else { number })
    };
    let pair = |pair: &(Trial, Trial)| {
        is_sound(pair).then_some(())?;
        Some(Pair { a: number(&pair.0)?, b: number(&pair.1)? })
    };
    // That the machine stalled says nothing of either program, unless it did in most of their trials; a run that failed is counted by itself.
    let stalled = pairs.iter().filter(|pair| is_stalled(pair)).count();
    let counts = |pair: &&(Trial, Trial)| !has_failed(pair) && (stalled * 2 > pairs.len() || !is_stalled(pair));
    Metric { rule, pairs: pairs.iter().filter(counts).map(pair).collect() }
}

fn is_stalled((a, b): &(Trial, Trial)) -> bool {
    [a, b].iter().any(|trial| matches!(trial.void, Some(Void::Stalled { .. })))
}

fn has_failed((a, b): &(Trial, Trial)) -> bool {
    a.failure().or(b.failure()).is_some()
}

/// The subjects that vote: of the declared metrics, those that the trials carry and that are long enough to matter. Decided once,
/// on both sides alike, so that it cannot favour either.
fn chosen(settings: &Settings, pairs: &[(Trial, Trial)]) -> (Vec<Subject>, Vec<(Vote, String)>) {
    let (mut subjects, mut silent) = (Vec::new(), Vec::new());
    // Where no pair says anything, that is what is wrong, and not the figures.
    let Some((first, _)) = pairs.iter().find(|pair| is_sound(pair)) else { return (subjects, silent) };
    let hops = first.hops.len();
    for vote in &settings.votes {
        let all = Subject::of(*vote, hops);
        let carried: Vec<Subject> = all.iter().copied().filter(|s| is_carried(settings, *s, pairs)).collect();
        let longer_than = |least_ns| -> Vec<Subject> {
            carried.iter().copied().filter(|s| is_long(settings, *s, pairs, least_ns)).collect()
        };
        let long = longer_than(VOTE_MIN_NS);
        let matters = if long.is_empty() { longer_than(0.0) } else { long };
        let reason = match vote {
            _ if carried.len() == all.len() => None,
            Vote::Missed => Some("the chain has no deadline; give it one in taut.toml".to_owned()),
            _ => Some(format!(
                "{} of {} figures are not carried by the trials: run longer trials, or choose a coarser figure",
                all.len() - carried.len(),
                all.len()
            )),
        };
        silent.extend(reason.map(|reason| (*vote, reason)));
        subjects.extend(matters);
    }
    (subjects, silent)
}

fn is_carried(settings: &Settings, subject: Subject, pairs: &[(Trial, Trial)]) -> bool {
    let metric = metric(settings.rule(subject), subject, pairs);
    let sound = pairs.iter().filter(|pair| is_sound(pair)).count();
    let carried = metric.pairs.iter().flatten().count();
    carried > 0 && (sound - carried) * 5 <= sound
}

/// Whether a time is so long, and can change by the smallest effect that counts without more than doubling; and whether what is slow
/// in it is more than the jitter of a few microseconds.
fn is_long(settings: &Settings, subject: Subject, pairs: &[(Trial, Trial)], least_ns: f64) -> bool {
    let (subject, shortest_ns) = match subject.median_of_slow() {
        Some(median) => (median, SLOW_BY_NS as f64),
        None if subject.is_share() => return true,
        None => (subject, settings.minimum_effect.absolute.max(least_ns)),
    };
    let metric = metric(settings.rule(subject), subject, pairs);
    let mut longer: Vec<f64> = metric.pairs.iter().flatten().map(|pair| pair.a.max(pair.b)).collect();
    longer.sort_unstable_by(f64::total_cmp);
    longer.get(longer.len() / 2).is_some_and(|median| *median >= shortest_ns)
}

fn outcome(
    settings: &Settings,
    judged: Judgement,
    subjects: &[Subject],
    silent: Vec<(Vote, String)>,
    pairs: &[(Trial, Trial)],
    fresh: &[(Trial, Trial)],
) -> Outcome {
    let all: Vec<(Trial, Trial)> = pairs.iter().chain(fresh).cloned().collect();
    let sound: Vec<&(Trial, Trial)> = all.iter().filter(|pair| is_sound(pair)).collect();
    let is_blind = sound.iter().any(|(a, b)| a.is_blind || b.is_blind);
    let machine = machine(&all, &sound);
    let excuses = machine.as_ref().is_some_and(|machine| machine.excuses);
    // Deadlines that are missed without the machine's part, too, are the program's.
    let missed_by_itself = || {
        let own = alone(settings, settings.rule(Subject::MissedOwn), Subject::MissedOwn, &all);
        own.verdict == Verdict::Worse
    };
    let is_sure = |subject: Subject, finding: &Finding| {
        // The fresh pairs that an accusation was held against may be too few for an interval: then its own says how much it is.
        let low = [&finding.figures, &finding.accusation].into_iter().flatten().find_map(|of| of.interval);
        let low = low.map_or(0.0, |interval| interval.low);
        match subject {
            _ if is_blind => false,
            Subject::Missed => missed_by_itself(),
            _ => subject.is_work() && !subject.is_share() && low > COLD_CACHES,
        }
    };
    let because = |verdict: Verdict| why_void(&all).filter(|_| lacks_pairs(verdict)).unwrap_or(verdict);
    let ballots: Vec<Ballot> = subjects
        .iter()
        .zip(judged.findings)
        .map(|(subject, finding)| {
            let finding = Finding { verdict: because(finding.verdict), ..finding };
            let excused = finding.verdict == Verdict::Worse && excuses && !is_sure(*subject, &finding);
            Ballot { subject: *subject, finding, excused }
        })
        .collect();
    let failures = Failures::of(all.iter());
    let startup = startup(settings, &all, excuses);
    let left = ballots.iter().filter(|ballot| !ballot.excused).map(|ballot| ballot.finding.verdict);
    let beside = startup.iter().any(Ballot::is_worse).then_some(Verdict::Worse);
    let failed = failures.is_worse.then_some(Verdict::Worse);
    let verdict = match Verdict::gravest(left) {
        // What got worse together with the machine is not held against the program, and is no sign that nothing changed.
        Some(Verdict::NoRelevantDifference | Verdict::Better)
            if ballots.iter().chain(&startup).any(|one| one.excused) =>
        {
            Verdict::NotEnoughEvidence { more_pairs: None }
        }
        Some(verdict) => verdict,
        None if ballots.is_empty() => because(judged.verdict),
        None => Verdict::NotEnoughEvidence { more_pairs: None },
    };
    let verdict = beside.or(failed).unwrap_or(verdict);
    // What stalls the machine may be the candidate: its trials that were thrown away are those in which it did.
    let is_one_sided = Failures::void_more(all.iter());
    let verdict = match verdict {
        Verdict::NoRelevantDifference | Verdict::Better if is_one_sided => {
            Verdict::Invalid { reason: void_for(both(&all)) }
        }
        verdict => verdict,
    };
    let hops = blame::hops(&sound);
    let blamed = (verdict == Verdict::Worse).then(|| blame::blamed(&ballots, &hops)).flatten();
    let trials = || all.iter().flat_map(|(a, b)| [a, b]);
    let named = trials().find(|trial| trial.was_read());
    let plot = |of: fn(&(Trial, Trial)) -> &Plot| Plot::sum(sound.iter().map(|pair| of(pair)));
    Outcome {
        verdict,
        blamed,
        hops,
        machine,
        failures,
        startup,
        described: described(settings, &all, subjects),
        chain: named.map_or(String::new(), |trial| trial.chain.clone()),
        points: named.map_or(Vec::new(), |trial| trial.points.clone()),
        pairs: sound.len(),
        fresh: fresh.iter().filter(|pair| is_sound(pair)).count(),
        void: trials()
            .filter_map(|trial| Some(VoidTrial { trial: trial.name.clone(), why: trial.void.clone()? }))
            .collect(),
        silent,
        is_blind,
        hang_hidden_s: early::hidden(&all),
        unknown: trials().map(|trial| trial.unknown).fold(0.0, f64::max),
        distributions: Distributions {
            a_total: plot(|(a, _)| &a.plot_total),
            b_total: plot(|(_, b)| &b.plot_total),
            a_own: plot(|(a, _)| &a.plot_own),
            b_own: plot(|(_, b)| &b.plot_own),
        },
        ballots,
    }
}

/// Whether figures are reported to lack pairs.
fn lacks_pairs(verdict: Verdict) -> bool {
    use InvalidReason::{NoPairs, TooManyVoid};
    matches!(verdict, Verdict::Invalid { reason: NoPairs | TooManyVoid { .. } })
}

/// What most void pairs are void for, where void pairs are over a fifth: then that is why there is no verdict.
fn why_void(pairs: &[(Trial, Trial)]) -> Option<Verdict> {
    let void = pairs.iter().filter(|pair| !is_sound(pair)).count();
    (void * 5 > pairs.len()).then(|| Verdict::Invalid { reason: void_for(both(pairs)) })
}

fn both(pairs: &[(Trial, Trial)]) -> impl Iterator<Item = [&Trial; 2]> + Clone {
    pairs.iter().map(|(a, b)| [a, b])
}

/// What most that are void are void for, of pairs or of single trials.
pub(crate) fn void_for<'a, const N: usize>(of: impl Iterator<Item = [&'a Trial; N]> + Clone) -> InvalidReason {
    use Void::{Damaged, Failed, LostKernelEvents, LostStamps, NotRecorded, Stalled, Unfinished};
    let count = |is: fn(&Void) -> bool| {
        of.clone().filter(|trials| trials.iter().filter_map(|trial| trial.void.as_ref()).any(is)).count()
    };
    let unfinished = count(|void| matches!(void, Unfinished));
    let lost =
        count(|void| matches!(void, LostStamps { .. } | LostKernelEvents { .. } | Damaged { .. } | NotRecorded { .. }));
    let (stalled, failed) = (count(|void| matches!(void, Stalled { .. })), count(|void| matches!(void, Failed { .. })));
    let all = of.clone().count();
    match () {
        () if failed >= stalled.max(lost).max(unfinished) => InvalidReason::Failed { void: failed, pairs: all },
        () if stalled >= lost.max(unfinished) => InvalidReason::Stalled { void: stalled, pairs: all },
        () if lost >= unfinished => InvalidReason::Lost { void: lost, pairs: all },
        () => InvalidReason::Unfinished { void: unfinished, pairs: all },
    }
}

/// The first messages by themselves. There are waits in them, so that a machine that got worse excuses them as it does other figures.
fn startup(settings: &Settings, pairs: &[(Trial, Trial)], excuses: bool) -> Vec<Ballot> {
    let plan = Plan { praise_alpha: STARTUP_ALPHA, ..settings.plan.clone() };
    let by_itself = Settings { plan, ..settings.clone() };
    [Subject::Startup, Subject::StartupMissed]
        .into_iter()
        .filter(|subject| is_carried(settings, *subject, pairs))
        .map(|subject| {
            let finding = alone(&by_itself, settings.rule(subject), subject, pairs);
            let excused = excuses && finding.verdict == Verdict::Worse;
            Ballot { subject, finding, excused }
        })
        .collect()
}

/// One figure by itself, at one look. Nothing confirms what is found, so an accusation needs the level of praise.
fn alone(settings: &Settings, rule: Rule, subject: Subject, pairs: &[(Trial, Trial)]) -> Finding {
    let metric = metric(rule, subject, pairs);
    let plan = Plan { accuse_alpha: settings.plan.praise_alpha, ..settings.plan.clone() };
    judge(&plan, &[metric], &[], true).findings.remove(0)
}

/// What the machine did, by its part of the way and by the probe beside the program.
fn machine(all: &[(Trial, Trial)], sound: &[&(Trial, Trial)]) -> Option<MachineChange> {
    let part = Subject::Chain { side: Side::Machine, statistic: Statistic::Mean };
    let probe = [Statistic::P50, Statistic::P90].map(|statistic| Subject::Probe { statistic });
    let mut ways: Vec<f64> = sound.iter().filter_map(|(a, _)| a.way.total.p50).collect();
    ways.sort_unstable_by(f64::total_cmp);
    let usual = ways.get(ways.len() / 2).copied().unwrap_or(0.0);
    let margin = |share: f64| Margin { relative: 0.0, absolute: share * usual };
    let rule = Rule { scale: Scale::Difference, minimum_effect: margin(0.05), equivalence: margin(0.1) };
    let p_worse = |rule: Rule, subject: Subject, margin: f64| {
        let pairs = metric(rule, subject, all).pairs;
        let differences: Vec<f64> = pairs.iter().flatten().map(|pair| rule.scale.difference(*pair)).collect();
        Some(Shift::of(&differences)?.p_above(margin))
    };
    let by_probe = probe.map(|subject| p_worse(Rule::default(), subject, 0.1));
    let found: Vec<f64> = by_probe.into_iter().chain([p_worse(rule, part, 0.05 * usual)]).flatten().collect();
    let p = holm(&found).into_iter().fold(1.0, f64::min);
    let figures = alone(&Settings::default(), rule, part, all).figures?;
    Some(MachineChange {
        is_worse: p <= WORSE_MACHINE_ALPHA,
        excuses: p <= EXCUSED_ALPHA,
        a_ns: figures.a.value,
        b_ns: figures.b.value,
        change_ns: figures.change,
    })
}

/// Everything that a reader may ask for besides.
fn described(settings: &Settings, pairs: &[(Trial, Trial)], voted: &[Subject]) -> Vec<Described> {
    use Statistic::{Mean, P50, P90, P99, Tail1};
    let hops = pairs.iter().find(|pair| is_sound(pair)).map_or(0, |(a, _)| a.hops.len());
    let mut subjects = Vec::new();
    for side in [Side::Total, Side::Own] {
        subjects.extend([P50, P90, P99, Tail1].map(|statistic| Subject::Chain { side, statistic }));
    }
    for hop in 0..hops {
        subjects.extend([P50, P99].map(|statistic| Subject::Hop { hop, side: Side::Total, statistic }));
        subjects.extend([P50, P99, Mean].map(|statistic| Subject::Hop { hop, side: Side::Own, statistic }));
    }
    subjects.extend([Subject::Missed, Subject::Dropped]);
    subjects.extend([P50, P99].map(|statistic| Subject::Probe { statistic }));
    subjects
        .into_iter()
        .filter(|subject| !voted.contains(subject) && is_carried(settings, *subject, pairs))
        .filter(|subject| is_long(settings, *subject, pairs, 0.0))
        .map(|subject| Described { subject, finding: alone(settings, settings.rule(subject), subject, pairs) })
        .collect()
}
