//! Late wakes of a recorded probe, taken apart: the paths of its messages in the terms of a wakeup test.

use std::collections::BTreeMap;

use taut_wakeup::{CPU_SHIFT, ExplainedWakeups, LatePiece, LateWake, POINTS, Part, ResponsibleParty};

use crate::{Analysis, Cause, Chain, PathPiece};

const CLOCKS_AGREE_NS: u64 = 1_000;

/// So many of the latest wakes are shown one by one.
const SHOWN: usize = 10;

/// A wake later than this is a stall that delays an ordinary program.
const STALL_NS: u64 = taut_wakeup::STALL_NS;

/// The probe's chain, when the recording has one.
pub fn probe_chain(analysis: &Analysis) -> Option<&Chain> {
    analysis.chains.iter().find(|chain| is_probe(chain))
}

/// Whether it is a probe's chain, not a program's.
pub(crate) fn is_probe(chain: &Chain) -> bool {
    chain.points.iter().map(|point| point.name.as_str()).eq(POINTS)
}

/// What a probe beside a program says of the program's tails, a sentence for each chain: whether its late messages met
/// stalls of the machine, more often than its typical ones.
pub(crate) fn beside(chains: &[Chain]) -> Vec<String> {
    let Some(probe) = chains.iter().find(|chain| is_probe(chain)) else { return Vec::new() };
    if chains.len() == 1 {
        return Vec::new();
    }
    let d = &probe.end_to_end.distribution;
    let us = |ns: Option<u64>| ns.map_or("–".into(), |ns| format!("{:.0} µs", ns as f64 / 1e3));
    let mut sentences = vec![format!(
        "the machine by itself, by the probe beside the program: {} wakes, p50 {}, p99 {}, the latest {} late",
        d.n,
        us(d.p50_ns),
        us(d.p99_ns),
        us(d.max_ns)
    )];
    let mut stalls: Vec<(u64, u64)> = probe.series.iter().filter(|(_, late)| *late >= STALL_NS).copied().collect();
    stalls.sort_unstable();
    // From here on: (start, the latest end of this one and all before).
    let mut latest_end = 0;
    for stall in &mut stalls {
        latest_end = latest_end.max(stall.0 + stall.1);
        stall.1 = latest_end;
    }
    let meets = |(start, length): &(u64, u64)| {
        let began = stalls.partition_point(|stall| stall.0 < start + length);
        began > 0 && stalls[began - 1].1 > *start
    };
    for chain in chains.iter().filter(|chain| !is_probe(chain)) {
        let (limit, median) = (chain.explained.tail_limit_ns, chain.end_to_end.distribution.p50_ns);
        let (Some(median), true) = (median, chain.explained.tail_messages > 0) else { continue };
        let tail: Vec<_> = chain.series.iter().filter(|message| message.1 > limit).collect();
        let typical: Vec<_> = chain.series.iter().filter(|message| message.1 <= median).collect();
        let met = |messages: &[&(u64, u64)]| messages.iter().filter(|message| meets(message)).count();
        sentences.push(format!(
            "{}: {} of the {} late messages, and {} of the {} typical ones, met a stall of the machine (a wake of the \
             probe {} late or later)",
            chain.name,
            met(&tail),
            tail.len(),
            met(&typical),
            typical.len(),
            us(Some(STALL_NS)),
        ));
    }
    sentences
}

/// What the wakes of the probe's chain that were at least `threshold_ns` late were made of. Their paths must have been
/// asked for: [`crate::ExplainOptions::from_ns`].
pub fn late_wakeups(analysis: &Analysis, threshold_ns: u64) -> Option<ExplainedWakeups> {
    let chain = probe_chain(analysis)?;
    let mut late: Vec<_> = chain.explained.paths.iter().filter(|p| p.time.total_ns >= threshold_ns).collect();
    late.sort_by_key(|path| std::cmp::Reverse(path.time.total_ns));
    let (mut parts, mut responsible) = (BTreeMap::new(), BTreeMap::new());
    for path in &late {
        let mut seen: Vec<&'static str> = Vec::new();
        let mut counted: Vec<(&'static str, String)> = Vec::new();
        for piece in &path.path {
            let (what, ns) = (word(piece), piece.to_ns - piece.from_ns);
            let part: &mut Part = parts.entry(what).or_default();
            part.ns += ns;
            part.wakes += u64::from(!seen.contains(&what));
            seen.push(what);
            if let Some(name) = responsible_for(piece) {
                let party: &mut ResponsibleParty = responsible.entry(name.clone()).or_default();
                party.ns += ns;
                party.wakes += u64::from(!counted.contains(&name));
                counted.push(name);
            }
        }
    }
    let mut parts: Vec<Part> = parts.into_iter().map(|(what, part)| Part { what: what.into(), ..part }).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    let named = |((kind, name), party): ((&str, String), ResponsibleParty)| ResponsibleParty {
        kind: kind.into(),
        name,
        ..party
    };
    let mut responsible: Vec<ResponsibleParty> = responsible.into_iter().map(named).collect();
    responsible.sort_by_key(|party| std::cmp::Reverse(party.ns));
    Some(ExplainedWakeups {
        threshold_ns,
        late: late.len() as u64,
        recorded: chain.explained.messages,
        lost_kernel_events: analysis.totals.lost_kernel_events,
        tier: analysis.info.tier.word().to_owned(),
        parts,
        responsible,
        worst: late.iter().take(SHOWN).map(|path| shown(path)).collect(),
    })
}

/// What a piece of a wake's path is called to a reader who waits for a wake.
fn word(piece: &PathPiece) -> &'static str {
    match piece.cause {
        // The probe's clock and the kernel's agree to that.
        Cause::Sleep if piece.to_ns - piece.from_ns < CLOCKS_AGREE_NS => "timer late",
        Cause::Sleep => "armed late",
        Cause::TimerSlack if piece.detail.is_empty() => "timer slack",
        Cause::TimerSlack => "timer late",
        Cause::Irq => "interrupt",
        Cause::Wakeup if piece.by.is_empty() => "leaving idle",
        Cause::Wakeup | Cause::Preempted => "run queue",
        Cause::Syscall | Cause::Cpu => "return to user",
        Cause::PageFault => "page fault",
        other => other.word(),
    }
}

fn responsible_for(piece: &PathPiece) -> Option<(&'static str, String)> {
    match piece.cause {
        Cause::Irq => Some(("irq", piece.detail.clone())),
        _ if !piece.by.is_empty() => Some(("thread", piece.by.clone())),
        _ => None,
    }
}

fn shown(path: &crate::MessagePath) -> LateWake {
    let part = |piece: &PathPiece| {
        let name = [&piece.by, &piece.note, &piece.detail].into_iter().find(|text| !text.is_empty());
        LatePiece {
            what: word(piece).to_owned(),
            who: name.cloned().unwrap_or_default(),
            ns: piece.to_ns - piece.from_ns,
        }
    };
    LateWake {
        due_ns: path.time.start_ns,
        cpu: u32::try_from(path.time.id >> CPU_SHIFT).ok(),
        late_ns: path.time.total_ns,
        parts: path.path.iter().map(part).collect(),
    }
}
