//! Loops and other threads of programs as they are: the first sentences, a table, and how each loop was found.

use schemars::JsonSchema;
use serde::Serialize;
use taut_analysis::{
    Analysis, Cause, CauseShare, Chain, Loop, LoopFound, Selected, SourceKind, WakingThread, probe_chain,
};
use taut_document::{Block, Cell, Section, Show, Table};
use taut_recording::Tier;

use crate::{
    causes::{phrase, with_party},
    words::{count, duration, hertz, percent, quantity},
};

/// So many loops are described one by one; on a page all are.
const DESCRIBED: usize = 8;
/// So many other threads are named.
const NAMED: usize = 8;
/// Starts beyond a lower quantile are not called late.
const LATE_QUANTILE: f64 = 0.9;
/// So many causes of late starts are named.
const CAUSES: usize = 3;

/// Whether all that the recording has follows from kernel events: nothing is stamped but a probe beside the program.
pub(crate) fn is_unmodified(analysis: &Analysis) -> bool {
    let probe = probe_chain(analysis).map(|chain| &chain.name);
    analysis.chains.iter().all(|chain| chain.source == SourceKind::Wakes || Some(&chain.name) == probe)
}

/// What the activations of the loop that the headline is about were spent on.
pub(crate) fn main_chain(analysis: &Analysis) -> Option<&Chain> {
    let main = analysis.loops.first().filter(|_| is_unmodified(analysis))?;
    analysis.chains.iter().find(|chain| chain.is_loop && Some(&chain.name) == main.chain.as_ref())
}

/// The first sentences of a recording without messages of the program's own; `None` where it has such, or no thread waited.
pub(crate) fn headline(analysis: &Analysis) -> Option<String> {
    if !is_unmodified(analysis) || analysis.loops.is_empty() && analysis.waking.is_empty() {
        return None;
    }
    let wakes = || analysis.chains.iter().filter(|chain| chain.source == SourceKind::Wakes && !chain.is_loop);
    let chains = wakes().count() as u64;
    let Some(main) = analysis.loops.first() else {
        if let Some(chain) = wakes().next() {
            let lateness = crate::lateness::lateness(chain);
            return Some(format!("No loop, {}. {lateness}", quantity(chains, "chain")));
        }
        let wakes = analysis.waking.iter().map(|thread| thread.wakes).sum();
        return Some(format!(
            "No loop was found in {} that waited {}: none of them {} at steady intervals.",
            quantity(analysis.waking.len() as u64, "thread"),
            quantity(wakes, "time"),
            if analysis.info.tier == Tier::Full { "waits for the same thing" } else { "waits" },
        ));
    };
    let mut sentences = vec![
        format!("{}, {}.", quantity(analysis.loops.len() as u64, "loop"), quantity(chains, "chain")),
        runs(main, &named(main, analysis)),
    ];
    let why = why_overran(analysis);
    sentences.extend(overruns(main, why.as_deref().unwrap_or_default()));
    sentences.extend(late(main, why.is_some()));
    Some(sentences.join(" "))
}

/// Its thread's name and its process: "`ctrl` (robot/1234)"; where several loops' threads have that name, its own name and its thread.
fn named(of: &Loop, analysis: &Analysis) -> String {
    let comm_of = |of: &Loop| of.thread.rsplit_once('/').map_or(of.thread.clone(), |(comm, _)| comm.to_owned());
    let comm = comm_of(of);
    if analysis.loops.iter().any(|other| other.name != of.name && comm_of(other) == comm) {
        return format!("`{}` ({})", of.name, of.thread);
    }
    let of_process = if of.thread == of.process { &of.thread } else { &of.process };
    format!("`{comm}` ({of_process})")
}

fn runs(of: &Loop, name: &str) -> String {
    // Without a schedule the median period is not what its rate comes from.
    let rate = match (&of.found, of.rate_hz) {
        (LoopFound::RelativeTimer { .. } | LoopFound::RestOfPeriod { .. }, Some(hz)) if hz > 0.0 => {
            hertz((1e9 / hz) as u64)
        }
        _ => hertz(of.period_ns),
    };
    match &of.found {
        LoopFound::AbsoluteTimer => format!("{name} runs at {rate}."),
        LoopFound::RelativeTimer { asked_ns } => {
            let longer = longer(of, *asked_ns, "work and late starts");
            format!("{name} sleeps for {} and runs at {rate}{longer}.", duration(*asked_ns))
        }
        LoopFound::RestOfPeriod { asked_ns } => format!(
            "{name} sleeps for what is left of {} since its start and runs at {rate}{}.",
            duration(*asked_ns),
            longer(of, *asked_ns, "late starts")
        ),
        LoopFound::WokenBy { thread, .. } => format!("{name} runs at {rate}, woken by {thread}."),
        LoopFound::Guessed { error_ns } => format!(
            "{name} runs every {} ± {}; what releases it is not recorded.",
            duration(of.period_ns),
            duration(*error_ns)
        ),
    }
}

/// What its periods are longer by than the time that its sleeps are for, and why. How late it starts is another figure.
fn longer(of: &Loop, asked_ns: u64, why: &str) -> String {
    match of.period_ns.saturating_sub(asked_ns) {
        0 => String::new(),
        more => format!(": {why} make half of its periods at least {} longer than that", duration(more)),
    }
}

/// Whether it is released by the end of its sleep, and not by a schedule or a wake.
fn sleeps(of: &Loop) -> bool {
    matches!(of.found, LoopFound::RelativeTimer { .. } | LoopFound::RestOfPeriod { .. })
}

/// How late it starts, and the main cause, but for what `says_why` activations overran: that is said.
fn late(of: &Loop, says_why: bool) -> Option<String> {
    let d = &of.release_latency;
    let (quantile, limit_ns) = of
        .late_above
        .filter(|(quantile, _)| *quantile >= LATE_QUANTILE)
        .or_else(|| [(0.99, d.p99_ns), (0.9, d.p90_ns)].into_iter().find_map(|(q, ns)| Some((q, ns?))))?;
    let share = percent(1.0 - quantile).replace(".0 %", " %");
    let cause = by_cause(&of.late_by).into_iter().next().filter(|(_, share, _)| *share >= 0.05);
    let cause = cause.map_or(String::new(), |(cause, share, first)| match is_of_activation(of, cause) {
        true if says_why => ", since the activation before had not ended".to_owned(),
        is_before => format!(
            "; {} of their excess over typical starts is {}{}",
            whole_percent(share),
            phrase(cause, first.map_or("", |share| share.detail.as_str())),
            if is_before { " in the activation before, which had not ended" } else { "" }
        ),
    });
    let more = if of.late_above.is_some() { "more than " } else { "" };
    let limit = duration(limit_ns);
    Some(match sleeps(of) {
        true => format!("{share} of its starts come {more}{limit} after the end of its sleep{cause}."),
        false => format!("{share} of its releases start {more}{limit} late{cause}."),
    })
}

/// Whether it is what an activation waits for, or does: it makes the next start late where that activation overran.
fn is_of_activation(of: &Loop, cause: Cause) -> bool {
    let is_of_activation = match cause {
        Cause::Cpu | Cause::Syscall | Cause::PageFault | Cause::Lock | Cause::Gil | Cause::Io | Cause::Disk => true,
        Cause::Queued | Cause::Executor | Cause::Partner => true,
        Cause::Wakeup | Cause::Preempted | Cause::Irq | Cause::TimerSlack | Cause::Throttled => false,
        Cause::Sleep | Cause::Network | Cause::Stopped | Cause::Hypervisor | Cause::Unknown => false,
    };
    is_of_activation && of.overruns.is_some_and(|n| n > 0)
}

/// What most of the time went into by which activations that overran exceed others, where it is said how many did.
pub(crate) fn why_overran(analysis: &Analysis) -> Option<String> {
    overruns(analysis.loops.first()?, "")?;
    let explained = &main_chain(analysis)?.explained;
    let top = explained.by_cause.first().filter(|top| top.cause != Cause::Unknown && top.tail_share > 0.0)?;
    (explained.selected == Selected::Overran).then(|| {
        let party = with_party(explained, top);
        let of_them = match explained.tail_messages {
            all if all == top.messages => format!("all {}", count(all)),
            all => format!("{} of {}", count(top.messages), count(all)),
        };
        format!(": {} of their excess over typical activations is {party}, in {of_them}", whole_percent(top.tail_share))
    })
}

/// `why`: what follows the share of those that overran.
fn overruns(of: &Loop, why: &str) -> Option<String> {
    let overruns =
        of.overruns.filter(|_| matches!(of.found, LoopFound::AbsoluteTimer | LoopFound::RestOfPeriod { .. }))?;
    let skipped = match of.skipped {
        Some(1) => "; 1 more was skipped".to_owned(),
        Some(n @ 2..) => format!("; {} more were skipped", count(n)),
        _ => String::new(),
    };
    let share = match overruns {
        0 => String::new(),
        n => format!(" ({})", percent(n as f64 / of.activations.max(1) as f64)),
    };
    Some(format!("{} of {} overran{share}{why}{skipped}.", count(overruns), quantity(of.activations, "period")))
}

/// Causes with all their details, largest first, each with its largest detail.
fn by_cause(shares: &[CauseShare]) -> Vec<(Cause, f64, Option<&CauseShare>)> {
    let mut sums: Vec<(Cause, f64, Option<&CauseShare>)> = Vec::new();
    for share in shares {
        match sums.iter_mut().find(|(cause, _, _)| *cause == share.cause) {
            Some((_, sum, _)) => *sum += share.tail_share,
            None => sums.push((share.cause, share.tail_share, Some(share))),
        }
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    sums
}

fn whole_percent(share: f64) -> String {
    if share < 0.005 { percent(share) } else { format!("{:.0} %", share * 100.0) }
}

/// What would say more than the recording does; `None` where the program says its messages.
pub(crate) fn next_step(analysis: &Analysis) -> Option<String> {
    let main = analysis.loops.first().filter(|_| is_unmodified(analysis))?;
    let comm = main.thread.rsplit_once('/').map_or(main.thread.as_str(), |(comm, _)| comm);
    if analysis.info.tier != Tier::Full {
        return Some(
            "record in the full tier, as root: it shows how late each start is and what it waited for".to_owned(),
        );
    }
    Some(format!(
        "stamp in the thread {comm}, stamp(\"{comm}.start\", n) after its wait returns and stamp(\"{comm}.sent\", n) where its \
         result leaves: stamps show which message an activation carries and where its time goes"
    ))
}

/// A thread's priority, as the scheduler has it.
fn priority_word(priority: i16) -> String {
    match priority {
        ..0 => "SCHED_DEADLINE".to_owned(),
        0..100 => format!("real-time priority {}", 99 - priority),
        120 => "normal priority".to_owned(),
        other => format!("nice {}", other - 120),
    }
}

/// How a loop was found, and what its late starts are made of.
fn description(of: &Loop) -> String {
    let thread = match of.thread == of.process {
        true => of.thread.clone(),
        false => format!("{} of {}", of.thread, of.process),
    };
    let thread = match of.threads {
        0 | 1 => thread,
        n => format!("{thread} and {} in turn", quantity(n - 1, "other thread")),
    };
    let found = match &of.found {
        LoopFound::AbsoluteTimer => format!("its timer keeps a schedule of {}", duration(of.period_ns)),
        LoopFound::RelativeTimer { asked_ns } => format!(
            "it sleeps for {} each time, so that what it does in between adds to its period of {}",
            duration(*asked_ns),
            duration(of.period_ns)
        ),
        LoopFound::RestOfPeriod { asked_ns } => format!(
            "it sleeps for what is left of {} since its start, so that a late start adds to its period of {}",
            duration(*asked_ns),
            duration(of.period_ns)
        ),
        LoopFound::WokenBy { thread, activations } => {
            format!("{thread} wakes it ({} of {} activations)", count(*activations), count(of.activations))
        }
        LoopFound::Guessed { error_ns } => format!(
            "guessed from its intervals, of which four fifths are within {} of {}: no release is known",
            duration(*error_ns),
            duration(of.period_ns)
        ),
    };
    let priority = of.priority.map_or(String::new(), |priority| format!(", {}", priority_word(priority)));
    let mut text = format!("{}: {thread}{priority}; {found}.", of.name);
    // Half of the starts are no late ones.
    if let Some((quantile, limit_ns)) = of.late_above.filter(|(quantile, _)| *quantile >= LATE_QUANTILE) {
        let causes: Vec<String> = by_cause(&of.late_by)
            .into_iter()
            .take(CAUSES)
            .filter(|(_, share, _)| *share >= 0.01)
            .map(|(cause, share, first)| {
                format!("{} {}", whole_percent(share), phrase(cause, first.map_or("", |share| share.detail.as_str())))
            })
            .collect();
        if !causes.is_empty() {
            let above = crate::words::quantile(quantile);
            let (limit, causes) = (duration(limit_ns), causes.join(", "));
            text += &format!(" Of its starts later than {above} ({limit}), the excess over typical ones is {causes}.");
        }
    }
    if let Some(chain) = of.chain.as_ref().filter(|chain| **chain != of.name) {
        text += &format!(" Its thread is part of {chain}.");
    }
    if of.left_out > 0 {
        text += &format!(" {} with missing events are left out.", quantity(of.left_out, "activation"));
    }
    text
}

/// The threads that are no loops, in one sentence.
fn others(waking: &[WakingThread]) -> Option<String> {
    if waking.is_empty() {
        return None;
    }
    let named: Vec<String> = waking
        .iter()
        .take(NAMED)
        .map(|of| format!("{} ({}, {})", of.thread, quantity(of.wakes, "wake"), of.waits_for))
        .collect();
    let more = match waking.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    Some(format!("No loops: {}{more}.", named.join(", ")))
}

/// All loops in the recording's order, and how many of them are described.
pub(crate) fn all(analysis: &Analysis) -> (Vec<&Loop>, usize) {
    (analysis.loops.iter().collect(), DESCRIBED)
}

/// What a report shows of loops, and of threads that are none: the first are described, the others on a page.
pub(crate) fn sections(analysis: &Analysis, loops: &[&Loop], detailed: usize, show: Show) -> Vec<Section> {
    let others = others(&analysis.waking).map(|text| Block::Text(text.into()));
    if loops.is_empty() {
        let others = others.filter(|_| is_unmodified(analysis));
        return others.into_iter().map(|text| Section::new(1, "", vec![text]).shown(show)).collect();
    }
    let described = |of: &[&Loop]| of.iter().map(|of| Block::Text(description(of).into())).collect::<Vec<_>>();
    let (first, more) = loops.split_at(loops.len().min(detailed));
    let blocks = [table(loops, detailed).into()].into_iter().chain(described(first)).chain(others);
    let mut sections = vec![Section::new(1, "Loops", blocks.collect()).shown(show)];
    if !more.is_empty() {
        let title = format!("How {} were found", quantity(more.len() as u64, "other loop"));
        sections.push(Section::new(2, title, described(more)).shown(Show::PageFolded));
    }
    sections
}

fn table(loops: &[&Loop], shown: usize) -> Table {
    let head = ["loop", "n", "rate", "late p50", "p99", "max", "busy p99", "cpu p99", "overran", "skipped"];
    let mut table = Table::new(head).priorities([0, 5, 4, 6, 0, 0, 2, 3, 0, 1]);
    // The end of a sleep is no moment of a schedule: a period that is longer than the sleep is not late.
    let end = if loops.iter().any(|of| sleeps(of)) { " (of a loop that sleeps, the end of its sleep)" } else { "" };
    table.caption = format!(
        "Late: from release{end} to start; busy: from release until it waits again; overran: not done at the next release; \
         cpu: on a CPU meanwhile; skipped: releases without a start, counted from its timer by kernel events"
    )
    .into();
    table.shown = shown;
    for of in loops {
        let late = &of.release_latency;
        let count = |n: Option<u64>| n.map_or(Cell::Missing, Cell::Count);
        table.row([
            Cell::text(of.name.as_str()),
            Cell::Count(of.activations),
            of.rate_hz.map_or(Cell::Missing, Cell::Rate),
            Cell::time(late.p50_ns),
            Cell::time(late.p99_ns),
            Cell::time(late.max_ns),
            Cell::time(of.response_time.p99_ns),
            Cell::time(of.cpu_time.p99_ns),
            count(of.overruns),
            count(of.skipped),
        ]);
    }
    table
}

/// A loop as JSON has it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Loop")]
pub(crate) struct LoopShown<'a> {
    #[serde(flatten)]
    of: &'a Loop,
    /// How it was found: "absolute_timer", "relative_timer", "rest_of_period", "woken_by" or "guessed".
    evidence: &'static str,
    /// Of a relative timer: the time asked for, median. Of the rest of a period: the period asked for.
    asked_ns: Option<u64>,
    /// Of one that is woken: the thread that does so most.
    woken_by: Option<&'a str>,
    /// Of a guess: four fifths of the intervals are within this of the period.
    error_ns: Option<u64>,
    /// Starts later than this are late ones.
    late_above_ns: Option<u64>,
    /// In words.
    sentence: String,
}

pub(crate) fn shown(of: &Loop) -> LoopShown<'_> {
    let (asked_ns, woken_by, error_ns) = match &of.found {
        LoopFound::AbsoluteTimer => (None, None, None),
        LoopFound::RelativeTimer { asked_ns } | LoopFound::RestOfPeriod { asked_ns } => (Some(*asked_ns), None, None),
        LoopFound::WokenBy { thread, .. } => (None, Some(thread.as_str()), None),
        LoopFound::Guessed { error_ns } => (None, None, Some(*error_ns)),
    };
    LoopShown {
        of,
        evidence: of.found.word(),
        asked_ns,
        woken_by,
        error_ns,
        late_above_ns: of.late_above.map(|(_, ns)| ns),
        sentence: description(of),
    }
}

#[cfg(test)]
mod tests {
    use taut_document::{Document, Style, markdown, terminal};
    use taut_stats::Distribution;

    use super::*;
    use crate::{Named, sample};

    fn distribution(n: u64, p50: u64, p99: u64, max: u64) -> Distribution {
        Distribution {
            n,
            p50_ns: Some(p50),
            p99_ns: (p99 > 0).then_some(p99),
            max_ns: Some(max),
            ..Distribution::default()
        }
    }

    /// A loop of 1 kHz, one that it wakes, one that sleeps, and a chain of the first two.
    fn unmodified() -> Analysis {
        let share = |cause, detail: &str, tail_share| CauseShare {
            cause,
            detail: detail.into(),
            tail_share,
            ..CauseShare::default()
        };
        let ctrl = Loop {
            name: "ctrl timer 1 ms".into(),
            thread: "ctrl/1235".into(),
            process: "robot/1234".into(),
            priority: Some(49),
            period_ns: 1_000_000,
            rate_hz: Some(1000.0),
            activations: 10_000,
            release_latency: distribution(10_000, 11_000, 180_000, 2_100_000),
            response_time: distribution(10_000, 310_000, 520_000, 2_400_000),
            cpu_time: distribution(10_000, 290_000, 301_000, 340_000),
            overruns: Some(4),
            skipped: Some(0),
            chain: Some("ctrl timer 1 ms".into()),
            late_above: Some((0.99, 180_000)),
            late_by: vec![
                share(Cause::Preempted, "by kworker/0:1", 0.71),
                share(Cause::Wakeup, "", 0.2),
                share(Cause::Lock, "held by logger/1236", 0.09),
            ],
            ..Loop::default()
        };
        let bridge = Loop {
            name: "bridge recv udp:5005".into(),
            thread: "bridge/1300".into(),
            process: "bridge/1300".into(),
            found: LoopFound::WokenBy { thread: "ctrl/1235".into(), activations: 9_998 },
            period_ns: 1_000_000,
            rate_hz: Some(1000.0),
            activations: 10_000,
            left_out: 3,
            release_latency: distribution(10_000, 9_000, 90_000, 900_000),
            response_time: distribution(10_000, 60_000, 200_000, 1_000_000),
            cpu_time: distribution(10_000, 50_000, 52_000, 60_000),
            overruns: Some(12),
            ..Loop::default()
        };
        let logger = Loop {
            name: "logger sleep 100 ms".into(),
            thread: "logger/1236".into(),
            process: "robot/1234".into(),
            found: LoopFound::RelativeTimer { asked_ns: 100_000_000 },
            period_ns: 108_300_000,
            rate_hz: Some(9.23),
            activations: 92,
            release_latency: distribution(92, 70_000, 0, 4_000_000),
            response_time: distribution(92, 8_200_000, 0, 12_000_000),
            cpu_time: distribution(92, 100_000, 0, 200_000),
            ..Loop::default()
        };
        let chain = |name: &str, is_loop| Chain {
            name: name.into(),
            source: SourceKind::Wakes,
            is_loop,
            messages: 10_000,
            ..Chain::default()
        };
        let waking = WakingThread {
            thread: "robot/1234".into(),
            process: "robot/1234".into(),
            wakes: 1,
            waits_for: "futex".into(),
        };
        Analysis {
            chains: vec![
                chain("ctrl timer 1 ms", true),
                chain("bridge recv udp:5005", true),
                chain("ctrl timer 1 ms → bridge recv udp:5005", false),
            ],
            info: taut_recording::Info { tier: Tier::Full, ..Default::default() },
            loops: vec![ctrl, bridge, logger],
            waking: vec![waking],
            ..Analysis::default()
        }
    }

    #[test]
    fn the_first_sentences_say_how_many_which_how_late_and_why() {
        let text = crate::headline(&unmodified()).replace('\u{202f}', " ");
        assert_eq!(
            text,
            "3 loops, 1 chain. `ctrl` (robot/1234) runs at 1 kHz. 4 of 10 000 periods overran (<0.1 %). 1 % of its releases \
             start more than 180 µs late; 71 % of their excess over typical starts is preemption by kworker/0:1."
        );
    }

    #[test]
    fn why_activations_overran_is_said_beside_how_many_did() {
        let mut analysis = unmodified();
        let lock = CauseShare {
            cause: Cause::Lock,
            detail: "m (held by logger/1236)".into(),
            tail_share: 0.97,
            messages: 4,
            ..CauseShare::default()
        };
        let of = &mut analysis.loops[0];
        (of.chain, of.late_by) = (Some("ctrl timer 1 ms".into()), vec![lock.clone()]);
        let explained = &mut analysis.chains[0].explained;
        (explained.selected, explained.tail_messages) = (Selected::Overran, 4);
        (explained.by_cause, explained.causes) = (vec![lock.clone()], vec![lock]);
        let text = crate::headline(&analysis).replace('\u{202f}', " ");
        let overran = "4 of 10 000 periods overran (<0.1 %): 97 % of their excess over typical activations is the lock `m` (held by \
                       logger/1236), in all 4. 1 % of its releases start more than 180 µs late, since the activation before had not ended.";
        assert!(text.contains(overran) && !text.contains("of its response time above"), "{text}");
        analysis.chains[0].explained.tail_messages = 5;
        assert!(crate::headline(&analysis).contains(", in 4 of 5."), "{}", crate::headline(&analysis));
        // Starts that are late for another reason have theirs.
        analysis.loops[0].late_by[0].cause = Cause::Preempted;
        assert!(crate::headline(&analysis).contains("of their excess over typical starts is preemption"));
        // Of a loop without a schedule it is not said how many overran: what its activations are spent on is said apart.
        analysis.loops[0].found = LoopFound::WokenBy { thread: "bridge/1300".into(), activations: 10_000 };
        let text = crate::headline(&analysis);
        assert!(
            text.contains("97.0 % of the excess of the activations that overran") && !text.contains(", in "),
            "{text}"
        );
    }

    #[test]
    fn a_longer_period_and_a_late_start_read_as_two_things() {
        let mut analysis = unmodified();
        analysis.loops.swap(0, 2);
        analysis.loops[0].release_latency.p90_ns = Some(300_000);
        let text = crate::headline(&analysis);
        let longer = "sleeps for 100 ms and runs at 9.23 Hz: work and late starts make half of its periods at least 8.30 ms longer";
        let late = "10 % of its starts come 300 µs after the end of its sleep.";
        assert!(text.contains(longer) && text.contains(late), "{text}");
        analysis.loops[0].found = LoopFound::RestOfPeriod { asked_ns: 100_000_000 };
        let text = crate::headline(&analysis);
        assert!(text.contains(": late starts make half of its periods at least 8.30 ms longer"), "{text}");
    }

    #[test]
    fn a_chain_that_is_late_for_another_reason_than_the_loop_has_a_sentence() {
        let mut analysis = unmodified();
        let chain = analysis.chains.iter_mut().find(|chain| !chain.is_loop).unwrap();
        let of = |cause| vec![CauseShare { cause, tail_share: 0.7, ..CauseShare::default() }];
        chain.explained.selected = taut_analysis::Selected::Tail(0.95);
        chain.explained.by_cause = of(Cause::Preempted);
        assert!(!crate::headline(&analysis).contains("excess above"), "the loop's cause is said");
        analysis.chains.iter_mut().find(|chain| !chain.is_loop).unwrap().explained.by_cause = of(Cause::Io);
        let text = crate::headline(&analysis);
        assert!(
            text.contains("70.0 % of the excess above p95 (time beyond typical messages) is waiting for data"),
            "{text}"
        );
    }

    #[test]
    fn a_recording_without_loops_says_so_and_claims_nothing() {
        let mut analysis = unmodified();
        analysis.loops.clear();
        analysis.chains.clear();
        assert_eq!(
            crate::headline(&analysis),
            "No loop was found in 1 thread that waited 1 time: none of them waits for the same thing at steady intervals."
        );
        assert_eq!(next_step(&analysis), None);
        analysis.chains = unmodified().chains.split_off(2);
        assert!(crate::headline(&analysis).starts_with("No loop, 1 chain. None of"), "{}", crate::headline(&analysis));
    }

    fn of_all(analysis: &Analysis) -> Vec<Section> {
        let (loops, detailed) = all(analysis);
        sections(analysis, &loops, detailed, Show::Always)
    }

    #[test]
    fn loops_whose_threads_share_a_name_are_told_apart() {
        let mut analysis = unmodified();
        assert!(crate::headline(&analysis).contains("`ctrl` (robot/1234) runs"));
        analysis.loops[1].thread = "ctrl/1300".into();
        assert!(crate::headline(&analysis).contains("`ctrl timer 1 ms` (ctrl/1235) runs"));
    }

    #[test]
    fn the_table_of_loops() {
        let document = Document { sections: of_all(&unmodified()), ..Document::default() };
        insta::assert_snapshot!(terminal(&document, Style::default()));
        insta::assert_snapshot!(markdown(&document));
    }

    #[test]
    fn a_program_that_stamps_keeps_its_first_sentences() {
        let mut analysis = sample::teleop();
        let before = crate::headline(&analysis);
        analysis.loops = unmodified().loops;
        assert_eq!((crate::headline(&analysis), next_step(&analysis)), (before, None));
        let document = crate::report_document(Named { name: "run.mcap", analysis: &analysis });
        let text = terminal(&document, Style::default());
        let [chain, loops] = ["Where the messages ended", "\nLoops\n"].map(|part| text.find(part).unwrap());
        assert!(chain < loops, "{text}");
    }

    #[test]
    fn json_says_how_each_loop_was_found() {
        let all: Vec<serde_json::Value> =
            unmodified().loops.iter().map(|of| serde_json::to_value(shown(of)).unwrap()).collect();
        let of = |at: usize, field: &str| all[at][field].clone();
        assert_eq!(
            (of(0, "evidence"), of(0, "overruns"), of(0, "skipped")),
            ("absolute_timer".into(), 4.into(), 0.into())
        );
        assert_eq!((of(1, "evidence"), of(1, "woken_by")), ("woken_by".into(), "ctrl/1235".into()));
        assert_eq!((of(2, "evidence"), of(2, "asked_ns")), ("relative_timer".into(), 100_000_000.into()));
        assert!(of(2, "overruns").is_null() && of(1, "skipped").is_null());
    }
}
