//! Predictions: what was recorded is run through again without a cause.
//!
//! The first points keep their times. A message starts on a thread when it has arrived and the thread is free, in the order
//! that was recorded. What a message spent by itself stays, less the cause; what it spent behind others comes out of the run.
//! A message that no longer waits finds the thread asleep and pays the way to the CPU that messages to an idle thread pay.

use foldhash::HashMap;

use crate::{
    explain::Passage,
    ledger::{Kind, Ledger},
    queues::Wait,
};

/// A chain's hops in the order of their ends.
pub(crate) struct Replay {
    steps: Vec<Step>,
    /// By hop: what a message to an idle thread pays more than one that waited.
    lead_ns: HashMap<u16, u64>,
}

struct Step {
    row: u32,
    /// Index of the row's wait.
    wait: Option<u32>,
    hop: u16,
    tid: i32,
    from_ns: u64,
    to_ns: u64,
}

/// What is taken away.
pub(crate) struct Removal<'a> {
    /// By row: (hop, of the message's own time, of the time behind others on one and the same thread).
    pub of_rows: &'a [Vec<(u16, u64, u64)>],
    /// Of what a thread did before it took a message: kind, time, and how much of it was beyond the typical.
    pub of_wait: &'a dyn Fn(&Kind, u64, u64) -> u64,
}

impl Replay {
    /// `None` where no message waited for a busy thread.
    pub fn of(ledger: &Ledger, passages: impl Fn(usize) -> Option<Passage>) -> Option<Replay> {
        if ledger.rows.iter().all(|row| row.waits.is_empty()) {
            return None;
        }
        let mut steps = Vec::new();
        let mut own: HashMap<u16, [Vec<u64>; 2]> = HashMap::default();
        for (at, row) in ledger.rows.iter().enumerate() {
            for pair in passages(at).iter().flat_map(|passage| passage.passes.windows(2)) {
                let (from, (column, to)) = (pair[0].1, pair[1]);
                let hop = column as u16 - 1;
                let wait = row.waits.iter().position(|(of, _)| *of == hop);
                if from.is_handed_to(to) {
                    let since_ns = wait.map_or(from.time_ns, |wait| row.waits[wait].1.until_ns);
                    own.entry(hop).or_default()[usize::from(wait.is_some())].push(to.time_ns.saturating_sub(since_ns));
                }
                let wait = wait.map(|wait| wait as u32);
                steps.push(Step { row: at as u32, wait, hop, tid: to.tid, from_ns: from.time_ns, to_ns: to.time_ns });
            }
        }
        steps.sort_unstable_by_key(|step| (step.to_ns, step.row, step.hop));
        let median = |values: &mut Vec<u64>| {
            values.sort_unstable();
            values.get(values.len() / 2).copied()
        };
        let lead = |(hop, [idle, waited]): (u16, &mut [Vec<u64>; 2])| {
            (hop, median(idle).zip(median(waited)).map_or(0, |(idle, waited)| idle.saturating_sub(waited)))
        };
        let lead_ns = own.iter_mut().map(|(hop, own)| lead((*hop, own))).collect();
        Some(Replay { steps, lead_ns })
    }

    /// The rows' totals without what is removed.
    pub fn totals(&self, ledger: &Ledger, removal: &Removal<'_>) -> Vec<u64> {
        let mut now: Vec<u64> = ledger.rows.iter().map(|row| row.start_ns).collect();
        // By thread: its latest stamp as recorded, and in this run.
        let mut threads: HashMap<i32, (u64, u64)> = HashMap::default();
        for step in &self.steps {
            let row = step.row as usize;
            let (own, behind) = removal.of_rows[row]
                .iter()
                .filter(|(hop, ..)| *hop == step.hop)
                .fold((0, 0), |sum, (_, own, behind)| (sum.0 + own, sum.1 + behind));
            let arrives = now[row];
            let ends = match step.wait {
                None => {
                    let left = (step.to_ns - step.from_ns).saturating_sub(own + behind);
                    let free = threads.get(&step.tid).map_or(0, |(_, free)| *free);
                    (arrives + left).max(free)
                }
                Some(wait) => {
                    let wait = &ledger.rows[row].waits[wait as usize].1;
                    let free = free(wait, threads.get(&step.tid).copied(), removal);
                    let lead = self.lead_ns.get(&step.hop).copied().unwrap_or(0);
                    let starts = if arrives <= free { free } else { arrives + lead };
                    starts + step.to_ns.saturating_sub(wait.until_ns.max(step.from_ns)).saturating_sub(own)
                }
            };
            now[row] = ends;
            let thread = threads.entry(step.tid).or_default();
            *thread = (thread.0.max(step.to_ns), thread.1.max(ends));
        }
        ledger.rows.iter().zip(now).map(|(row, end)| end - row.start_ns).collect()
    }
}

/// When the thread is free for the message in this run: as recorded, less by how much it is earlier since its latest stamp, less
/// what is removed of what it did since then.
fn free(wait: &Wait, last: Option<(u64, u64)>, removal: &Removal<'_>) -> u64 {
    let removed: u64 =
        wait.pieces.iter().map(|(kind, ns, beyond)| (removal.of_wait)(kind, *ns, *beyond).min(*ns)).sum();
    let Some((recorded, replayed)) = last.filter(|_| wait.is_linked) else {
        return wait.until_ns.saturating_sub(removed).max(wait.since_ns);
    };
    // Another message's stamp may come later than that from which the pieces count.
    let whole = wait.until_ns.saturating_sub(wait.since_ns).max(1);
    let rest = wait.until_ns.saturating_sub(recorded.max(wait.since_ns));
    let removed = (u128::from(removed) * u128::from(rest) / u128::from(whole)) as u64;
    (wait.until_ns + replayed).saturating_sub(recorded + removed)
}
