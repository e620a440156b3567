//! Late wakes of a recorded probe, taken apart: the paths of its messages in the words of those who ask why a thread
//! woke late.

use std::collections::BTreeMap;

use taut_probe::{CPU_SHIFT, ExplainedWakeups, Guilty, LateWake, POINTS, Part};

use crate::{Analysis, Cause, Chain, PathPiece};

/// So many of the latest wakes are shown one by one.
const SHOWN: usize = 10;

/// The probe's chain, when the recording has one.
pub fn probe_chain(analysis: &Analysis) -> Option<&Chain> {
    analysis.chains.iter().find(|chain| chain.points.iter().map(|point| point.name.as_str()).eq(POINTS))
}

/// What the wakes of the probe's chain that were at least `threshold_ns` late were made of. Their paths must have been
/// asked for: [`crate::Wanted::from_ns`].
pub fn late_wakeups(analysis: &Analysis, threshold_ns: u64) -> Option<ExplainedWakeups> {
    let chain = probe_chain(analysis)?;
    let mut late: Vec<_> = chain.explained.paths.iter().filter(|p| p.budget.total_ns >= threshold_ns).collect();
    late.sort_by_key(|path| std::cmp::Reverse(path.budget.total_ns));
    let (mut parts, mut culprits) = (BTreeMap::new(), BTreeMap::new());
    for path in &late {
        let mut seen: Vec<&'static str> = Vec::new();
        let mut blamed: Vec<(&'static str, String)> = Vec::new();
        for piece in &path.path {
            let (what, ns) = (word(piece), piece.to_ns - piece.from_ns);
            let part: &mut Part = parts.entry(what).or_default();
            part.ns += ns;
            part.wakes += u64::from(!seen.contains(&what));
            seen.push(what);
            if let Some(who) = blame(piece) {
                let guilty: &mut Guilty = culprits.entry(who.clone()).or_default();
                guilty.ns += ns;
                guilty.wakes += u64::from(!blamed.contains(&who));
                blamed.push(who);
            }
        }
    }
    let mut parts: Vec<Part> = parts.into_iter().map(|(what, part)| Part { what: what.into(), ..part }).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    let named = |((kind, name), guilty): ((&str, String), Guilty)| Guilty { kind: kind.into(), name, ..guilty };
    let mut culprits: Vec<Guilty> = culprits.into_iter().map(named).collect();
    culprits.sort_by_key(|guilty| std::cmp::Reverse(guilty.ns));
    Some(ExplainedWakeups {
        threshold_ns,
        late: late.len() as u64,
        recorded: chain.explained.messages,
        lost_kernel_events: analysis.totals.lost_kernel_events,
        tier: analysis.info.tier.word().to_owned(),
        parts,
        culprits,
        worst: late.iter().take(SHOWN).map(|path| shown(path)).collect(),
    })
}

/// What a piece of a wake's path is to somebody who waits for a wake.
fn word(piece: &PathPiece) -> &'static str {
    match piece.cause {
        Cause::Sleep => "armed late",
        Cause::TimerSlack if piece.detail.is_empty() => "timer slack",
        Cause::TimerSlack => "timer late",
        Cause::Irq => "interrupt",
        Cause::Wakeup if piece.by.is_empty() => "leaving idle",
        Cause::Wakeup | Cause::Preempted => "run queue",
        Cause::Syscall | Cause::Work => "return to user",
        Cause::PageFault => "page fault",
        other => other.word(),
    }
}

fn blame(piece: &PathPiece) -> Option<(&'static str, String)> {
    match piece.cause {
        Cause::Irq => Some(("irq", piece.detail.clone())),
        _ if !piece.by.is_empty() => Some(("thread", piece.by.clone())),
        _ => None,
    }
}

fn shown(path: &crate::MessagePath) -> LateWake {
    let part = |piece: &PathPiece| {
        let who = [&piece.by, &piece.note, &piece.detail].into_iter().find(|text| !text.is_empty());
        (word(piece).to_owned(), who.cloned().unwrap_or_default(), piece.to_ns - piece.from_ns)
    };
    LateWake {
        due_ns: path.budget.start_ns,
        cpu: u32::try_from(path.budget.id >> CPU_SHIFT).ok(),
        late_ns: path.budget.total_ns,
        parts: path.path.iter().map(part).collect(),
    }
}
