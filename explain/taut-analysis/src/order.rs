//! Which loop and which chain come first: the worst in a report, the same one in each run where runs are compared.

use taut_points::SourceKind;

use crate::{Analysis, Chain, Loop, LoopFound, wakeups};

/// Periods of loops that are woken vary by so much from run to run.
const SAME_PERIOD: f64 = 1.25;

/// Loops with a schedule before others, of equals the one that starts latest by its period; chains behind the loop that they begin
/// with. Messages of the program's own: the chain with most of them. A probe beside a program comes last, however often it woke.
pub(crate) fn sort(chains: &mut [Chain], loops: &mut [Loop]) {
    loops.sort_by(|a, b| {
        let by_rank = rank(b).cmp(&rank(a)).then_with(|| lateness(b).total_cmp(&lateness(a)));
        by_rank.then_with(|| b.activations.cmp(&a.activations)).then_with(|| a.name.cmp(&b.name))
    });
    let place = |chain: &Chain| {
        let begins = if chain.is_loop { Some(&chain.name) } else { chain.points.first().map(|point| &point.name) };
        match chain.source {
            SourceKind::Wakes => {
                (loops.iter().position(|of| Some(&of.name) == begins).unwrap_or(loops.len()), !chain.is_loop)
            }
            _ => (0, false),
        }
    };
    chains.sort_by(|a, b| {
        let is_probe = wakeups::is_probe(a).cmp(&wakeups::is_probe(b));
        let by_place = is_probe.then_with(|| place(a).cmp(&place(b)));
        by_place.then_with(|| b.messages.cmp(&a.messages)).then_with(|| a.name.cmp(&b.name))
    });
}

/// How much is known of when a loop should start.
fn rank(of: &Loop) -> u8 {
    match of.found {
        LoopFound::AbsoluteTimer => 3,
        LoopFound::WokenBy { .. } => 2,
        LoopFound::RelativeTimer { .. } | LoopFound::RestOfPeriod { .. } => 1,
        LoopFound::Guessed { .. } => 0,
    }
}

/// How late it starts, in periods.
fn lateness(of: &Loop) -> f64 {
    let late = &of.release_latency;
    late.p99_ns.or(late.max_ns).unwrap_or(0) as f64 / of.period_ns.max(1) as f64
}

/// The chain that stands for the program where its runs are compared: of its own messages that with most, else its fastest loop,
/// whatever was late in a run. `None` where only a probe was recorded.
pub fn main_chain(analysis: &Analysis) -> Option<&Chain> {
    let chains = || analysis.chains.iter().filter(|chain| !wakeups::is_probe(chain));
    let first = chains().next()?;
    if first.source != SourceKind::Wakes {
        return Some(first);
    }
    let best = analysis.loops.iter().map(rank).max();
    let loops = || analysis.loops.iter().filter(|of| Some(rank(of)) == best);
    let fastest_ns = loops().map(|of| of.period_ns).min().unwrap_or(0) as f64;
    let main = loops().filter(|of| of.period_ns as f64 <= SAME_PERIOD * fastest_ns).map(|of| &of.name).min();
    chains().find(|chain| chain.is_loop && Some(&chain.name) == main).or(Some(first))
}
