//! Loops that kernel events show: how steady they are, how late they start, and what that time is spent on.

use std::{cmp::Reverse, collections::BTreeSet};

use taut_points::{Activation, LoopEvidence, PointId, RouteKind, Spans};
use taut_stats::Distribution;

use crate::{
    Cause, Chain, Loop, LoopFound, Party, SourceKind, Starts, WakingThread,
    context::{Context, overlaps},
    explain, figures,
    line::ChainLine,
    messages::Messages,
    options::ExplainOptions,
    walk::Walker,
};

/// Two periods are the same within one of so many parts.
const SAME_PERIOD: u64 = 100;

/// The figures of all loops.
#[expect(clippy::too_many_arguments, reason = "what is looked at, and what is looked with")]
pub(crate) fn of<'a>(
    loops: &[taut_points::Loop],
    chains: &[Chain],
    lines: &[ChainLine],
    spans: &[&'a Spans],
    messages: &Messages,
    context: &Context<'_>,
    walker: &mut Walker<'a>,
    wanted: &ExplainOptions,
) -> Vec<Loop> {
    let missing = walker.timelines.missing();
    let mut all = Vec::new();
    for (at, found) in loops.iter().enumerate() {
        let mut one = figures_of(found, context, &missing);
        one.priority = walker.timelines.threads.get(&found.thread).and_then(|timeline| timeline.priority);
        let line = lines.iter().position(|line| line.kind == Some(RouteKind::Loop(at)));
        match line {
            Some(line) if !wanted.only_rows => {
                one.chain = Some(lines[line].name.clone());
                late_starts(&mut one, &lines[line], spans[line], messages, context, walker);
            }
            _ => one.chain = chain_of(&one.thread, chains),
        }
        if is_ros_timer(&one, chains) {
            one.skipped = None;
        }
        all.push(one);
    }
    all
}

/// The other threads.
pub(crate) fn waking(threads: &[taut_points::WakingThread], context: &Context<'_>) -> Vec<WakingThread> {
    let named = |of: &taut_points::WakingThread| WakingThread {
        thread: context.thread(of.thread).into_owned(),
        process: context.objects.process(of.thread),
        wakes: of.wakes,
        waits_for: of.waits_for.clone(),
    };
    threads.iter().map(named).collect()
}

/// The chain of the program's own that the thread is part of, of several the one with most messages, and of those the first by name:
/// two reports of one recording are equal.
fn chain_of(thread: &str, chains: &[Chain]) -> Option<String> {
    let has = |chain: &&Chain| chain.points.iter().any(|point| point.threads.iter().any(|of| of == thread));
    let most = chains.iter().filter(has).max_by_key(|chain| (chain.messages, Reverse(chain.name.as_str())));
    most.map(|chain| chain.name.clone())
}

/// Whether an executor of ROS 2 serves that timer: it calls a late one without a wait, so that a release without a start is no loss. The
/// timer's chain has what was lost.
fn is_ros_timer(of: &Loop, chains: &[Chain]) -> bool {
    let is_period = |starts: &Starts| starts.period_ns.abs_diff(of.period_ns) <= of.period_ns / SAME_PERIOD;
    let begins = |chain: &Chain| chain.points.iter().take(2).any(|point| point.threads.contains(&of.thread));
    chains
        .iter()
        .any(|chain| chain.source == SourceKind::Ros && chain.starts.as_ref().is_some_and(is_period) && begins(chain))
}

fn figures_of(of: &taut_points::Loop, context: &Context<'_>, missing: &[(u64, u64)]) -> Loop {
    let all = &of.activations;
    let is_relative = matches!(of.evidence, LoopEvidence::RelativeTimer { .. });
    let known = |one: &Activation| one.release_ns.unwrap_or(one.start_ns);
    // Where events are missing an activation may be.
    let is_whole = |pair: &&[Activation]| !overlaps(missing, pair[0].start_ns, pair[1].start_ns);
    let pairs = all.windows(2).filter(is_whole);
    let periods: Vec<u64> = pairs.map(|pair| pair[1].start_ns.saturating_sub(pair[0].start_ns)).collect();
    let jitter: Vec<u64> = periods.iter().map(|period| period.abs_diff(of.period_ns)).collect();
    let latency: Vec<u64> = all.iter().filter_map(|one| Some(one.start_ns.saturating_sub(one.release_ns?))).collect();
    let response: Vec<u64> = all.iter().map(|one| one.done_ns.saturating_sub(known(one))).collect();
    let cpu: Vec<u64> = all.iter().filter_map(|one| one.cpu_ns).collect();
    // The next release of a schedule is known, also where the program did not wait for it.
    let is_late = |one: &&Activation| {
        one.release_ns.is_some_and(|release_ns| one.done_ns.saturating_sub(release_ns) > of.period_ns)
    };
    let is_busy = |pair: &&[Activation]| pair[1].release_ns.is_some_and(|release_ns| pair[0].done_ns > release_ns);
    let overruns = match of.evidence {
        LoopEvidence::AbsoluteTimer => all.iter().filter(is_late).count() as u64,
        // Nothing was left to sleep for.
        LoopEvidence::RestOfPeriod { asked_ns } => {
            all.iter().filter(|one| one.done_ns.saturating_sub(one.start_ns) > asked_ns).count() as u64
        }
        _ => all.windows(2).filter(is_busy).count() as u64,
    };
    let active_ns: u64 = periods.iter().sum();
    let threads: BTreeSet<i32> = all.iter().map(|one| one.thread).collect();
    Loop {
        threads: threads.len() as u64,
        rate_hz: (active_ns > 0).then(|| periods.len() as f64 * 1e9 / active_ns as f64),
        name: of.name.clone(),
        thread: context.thread(of.thread).into_owned(),
        process: context.objects.process(of.thread),
        found: match of.evidence {
            LoopEvidence::AbsoluteTimer => LoopFound::AbsoluteTimer,
            LoopEvidence::RelativeTimer { asked_ns } => LoopFound::RelativeTimer { asked_ns },
            LoopEvidence::RestOfPeriod { asked_ns } => LoopFound::RestOfPeriod { asked_ns },
            LoopEvidence::WokenBy { thread, activations } => {
                LoopFound::WokenBy { thread: context.thread(thread).into_owned(), activations }
            }
            LoopEvidence::Guessed { error_ns } => LoopFound::Guessed { error_ns },
        },
        period_ns: of.period_ns,
        activations: all.len() as u64,
        left_out: of.left_out,
        period: distribution(&periods),
        period_jitter: distribution(&jitter),
        overruns: (!latency.is_empty() && !is_relative).then_some(overruns),
        skipped: matches!(of.evidence, LoopEvidence::AbsoluteTimer).then_some(of.skipped),
        release_latency: distribution(&latency),
        response_time: distribution(&response),
        cpu_time: distribution(&cpu),
        ..Loop::default()
    }
}

fn distribution(in_time_order: &[u64]) -> Distribution {
    let mut sorted = in_time_order.to_vec();
    sorted.sort_unstable();
    Distribution::of(in_time_order, &sorted)
}

/// What the latest starts waited for: the tail of release to start alone, whatever the activations took afterwards.
fn late_starts<'a>(
    of: &mut Loop,
    line: &ChainLine,
    spans: &'a Spans,
    messages: &Messages,
    context: &Context<'_>,
    walker: &mut Walker<'a>,
) {
    let points: Vec<PointId> = line.points.iter().copied().take(2).collect();
    if of.release_latency.n == 0 || !points.first().is_some_and(|first| first.is_due()) {
        return;
    }
    let starts = ChainLine {
        name: line.name.clone(),
        declared: false,
        kind: line.kind,
        deadline_ns: None,
        period_ns: None,
        points,
        family: line.family.clone(),
    };
    let mut chain = figures::chain(messages, &starts, context);
    let all_spans = std::mem::replace(&mut walker.spans, spans);
    let wanted = ExplainOptions { worst: 0, only_causes: true, ..ExplainOptions::default() };
    explain::explain(&mut chain, messages, &starts, context, walker, &wanted, &[], None);
    walker.spans = all_spans;
    let explained = chain.explained;
    of.late_above = explained.tail_quantile.map(|quantile| (quantile, explained.tail_limit_ns));
    // A lock without a name has an address, which says nothing in another run: its holder does.
    let is_holder = |party: &&Party| party.kind == "thread" && party.causes.contains(&Cause::Lock);
    let holder = explained.responsible.iter().find(is_holder).map(|party| format!("held by {}", party.name));
    of.late_by = explained.causes.clone();
    for share in of.late_by.iter_mut().filter(|share| share.cause == Cause::Lock) {
        share.detail = match share.detail.starts_with("0x") {
            true => holder.clone().unwrap_or_default(),
            false => explained.named(&share.detail),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Point;

    #[test]
    fn a_timer_that_an_executor_serves_has_its_losses_in_its_chain() {
        let of = |thread: &str, period_ns| Loop { thread: thread.into(), period_ns, ..Loop::default() };
        let point = Point { name: "/camera timer 33 ms".into(), threads: vec!["python/7".into()], ..Point::default() };
        let mut chain = Chain {
            source: SourceKind::Ros,
            starts: Some(Starts { period_ns: 33_000_000, ..Starts::default() }),
            points: vec![point],
            ..Chain::default()
        };
        assert!(is_ros_timer(&of("python/7", 33_100_000), std::slice::from_ref(&chain)));
        assert!(
            !is_ros_timer(&of("python/7", 20_000_000), std::slice::from_ref(&chain)),
            "another timer of its thread"
        );
        assert!(!is_ros_timer(&of("python/8", 33_000_000), std::slice::from_ref(&chain)), "another thread's");
        chain.source = SourceKind::Stamps;
        assert!(!is_ros_timer(&of("python/7", 33_000_000), &[chain]), "a loop that stamps counts its releases");
    }
}
