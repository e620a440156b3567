//! Predictions: what was recorded is run through again without a cause.
//!
//! The first points keep their times. A message starts on a thread when it has arrived and the thread is free, in the order
//! that was recorded. What a message spent by itself stays, less the cause; what it spent behind others comes out of the run.
//! A message that no longer waits finds the thread asleep and pays the way to the CPU that messages to an idle thread pay.
//! Threads that share a CPU take turns on it: each continues while it has messages, and the one that could run first comes next.

use std::{cmp::Reverse, collections::BinaryHeap};

use foldhash::HashMap;
use taut_points::NO_THREAD;

use crate::{
    kind::Kind,
    ledger::{Ledger, Row},
    passage::Passage,
    queues::Wait,
};

/// A chain's hops in the order of their ends.
pub(crate) struct Replay {
    steps: Vec<Step>,
    /// Of each row, its first step.
    first: Vec<Option<u32>>,
    /// Of each thread, its steps.
    threads: Vec<Vec<u32>>,
    /// Of each server, the threads that take turns on it.
    servers: Vec<Vec<u32>>,
    /// Of each server: stretches in which another thread has it, not overlapping.
    closed: Vec<Vec<(u64, u64, Kind)>>,
    /// By hop: what a message to an idle thread pays more than one that waited.
    lead_ns: HashMap<u16, u64>,
    /// By row: by how much a run without a removal differs from what was recorded. Turns are simpler here than a scheduler's, so
    /// that runs are compared with runs.
    off_by_ns: Vec<i64>,
}

struct Step {
    row: u32,
    /// The row's next one.
    next: Option<u32>,
    /// Index of the row's wait.
    wait: Option<u32>,
    hop: u16,
    thread: u32,
    server: u32,
    from_ns: u64,
    to_ns: u64,
    /// A shared CPU was another's for so long, once the thread had the message.
    away_ns: u64,
}

/// What is taken away.
pub(crate) struct Removal<'a> {
    /// By row: (hop, of the message's own time, of the time behind others on one and the same thread).
    pub of_rows: &'a [Vec<(u16, u64, u64)>],
    /// Of what a thread did before it took a message: kind, time, and how much of it was beyond the typical.
    pub of_wait: &'a dyn Fn(&Kind, u64, u64) -> u64,
}

/// A thread in the run.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// How many of its steps are done.
    done: usize,
    /// Its latest stamp as recorded, and in this run.
    last: Option<(u64, u64)>,
}

impl Replay {
    /// `None` where no message waited for a busy thread or for its turn.
    pub fn of(
        ledger: &Ledger,
        passages: impl Fn(usize) -> Option<Passage>,
        server: impl Fn(i32) -> i32,
        mut closed: Vec<(i32, u64, u64, Kind)>,
    ) -> Option<Replay> {
        if ledger.rows.iter().all(|row| row.waits.is_empty() && row.away.is_empty()) {
            return None;
        }
        let mut steps = Vec::new();
        let mut own: HashMap<u16, [Vec<u64>; 2]> = HashMap::default();
        let mut threads: HashMap<i32, u32> = HashMap::default();
        let mut servers: HashMap<i32, u32> = HashMap::default();
        for (at, row) in ledger.rows.iter().enumerate() {
            for pair in passages(at).iter().flat_map(|passage| passage.passes.windows(2)) {
                let (from, (column, to)) = (pair[0].1, pair[1]);
                let hop = column as u16 - 1;
                let wait = row.waits.iter().position(|(of, _)| *of == hop);
                let away_ns = row.away.iter().find(|(of, _)| *of == hop).map_or(0, |(_, ns)| *ns);
                if from.is_handed_to(to) {
                    let since_ns = wait.map_or(from.time_ns, |wait| row.waits[wait].1.until_ns);
                    let ns = to.time_ns.saturating_sub(since_ns).saturating_sub(away_ns);
                    own.entry(hop).or_default()[usize::from(wait.is_some())].push(ns);
                }
                // Which threads are not known wait for each other nowhere: each step has one of its own.
                let nobody = i32::MIN + steps.len() as i32;
                let number = |numbers: &mut HashMap<i32, u32>, key: i32| {
                    let next = numbers.len() as u32;
                    *numbers.entry(if key == NO_THREAD { nobody } else { key }).or_insert(next)
                };
                steps.push(Step {
                    row: at as u32,
                    next: None,
                    wait: wait.map(|wait| wait as u32),
                    hop,
                    thread: number(&mut threads, to.tid),
                    server: number(&mut servers, server(to.tid)),
                    from_ns: from.time_ns,
                    to_ns: to.time_ns,
                    away_ns,
                });
            }
        }
        steps.sort_unstable_by_key(|step| (step.to_ns, step.row, step.hop));
        let mut of_threads = vec![Vec::new(); threads.len()];
        let mut of_servers: Vec<Vec<u32>> = vec![Vec::new(); servers.len()];
        let mut first = vec![None; ledger.rows.len()];
        let mut last: Vec<Option<u32>> = vec![None; ledger.rows.len()];
        for at in 0..steps.len() {
            let (row, thread, server) = (steps[at].row as usize, steps[at].thread, steps[at].server as usize);
            let at = at as u32;
            match last[row].replace(at) {
                Some(before) => steps[before as usize].next = Some(at),
                None => first[row] = Some(at),
            }
            of_threads[thread as usize].push(at);
            if !of_servers[server].contains(&thread) {
                of_servers[server].push(thread);
            }
        }
        let median = |values: &mut Vec<u64>| {
            values.sort_unstable();
            values.get(values.len() / 2).copied()
        };
        let lead = |(hop, [idle, waited]): (u16, &mut [Vec<u64>; 2])| {
            (hop, median(idle).zip(median(waited)).map_or(0, |(idle, waited)| idle.saturating_sub(waited)))
        };
        let lead_ns = own.iter_mut().map(|(hop, own)| lead((*hop, own))).collect();
        closed.sort_unstable_by_key(|(_, from_ns, to_ns, _)| (*from_ns, *to_ns));
        let mut of_closed: Vec<Vec<(u64, u64, Kind)>> = vec![Vec::new(); servers.len()];
        for (key, from_ns, to_ns, kind) in closed {
            let Some(number) = servers.get(&key) else { continue };
            let all = &mut of_closed[*number as usize];
            // Several messages wait at once.
            let from_ns = from_ns.max(all.last().map_or(0, |(_, to_ns, _)| *to_ns));
            all.extend((from_ns < to_ns).then_some((from_ns, to_ns, kind)));
        }
        let off_by_ns = vec![0; ledger.rows.len()];
        let mut replay =
            Replay { steps, first, threads: of_threads, servers: of_servers, closed: of_closed, lead_ns, off_by_ns };
        if replay.servers.iter().any(|threads| threads.len() > 1) {
            let none: Vec<Vec<(u16, u64, u64)>> = vec![Vec::new(); ledger.rows.len()];
            let totals = replay.totals(ledger, &Removal { of_rows: &none, of_wait: &|_, _, _| 0 });
            let off_by = totals.iter().zip(&ledger.rows).map(|(total, row)| *total as i64 - row.total_ns as i64);
            replay.off_by_ns = off_by.collect();
        }
        Some(replay)
    }

    /// The rows' totals without what is removed.
    pub fn totals(&self, ledger: &Ledger, removal: &Removal<'_>) -> Vec<u64> {
        let mut now: Vec<u64> = ledger.rows.iter().map(|row| row.start_ns).collect();
        // Whether the row has come to this step.
        let mut arrived = vec![false; self.steps.len()];
        let mut threads = vec![Thread::default(); self.threads.len()];
        // Of each server: until when it is taken, and by which thread last.
        let mut servers: Vec<(u64, Option<u32>)> = vec![(0, None); self.servers.len()];
        let closed: Vec<Vec<(u64, u64)>> = self.closed.iter().map(|all| still_closed(all, removal)).collect();
        // Moments at which a server may have something to do.
        let mut due: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        for step in self.first.iter().flatten() {
            arrived[*step as usize] = true;
            due.push(Reverse((now[self.steps[*step as usize].row as usize], self.steps[*step as usize].server)));
        }
        while let Some(Reverse((time_ns, server))) = due.pop() {
            let (taken_ns, by) = servers[server as usize];
            if taken_ns > time_ns {
                continue;
            }
            // Each thread's next message, once it has arrived, and since when the thread could take it.
            let ready = |thread: &u32| {
                let Thread { done, last } = threads[*thread as usize];
                let step = *self.threads[*thread as usize].get(done)?;
                let since_ns = now[self.steps[step as usize].row as usize].max(last.map_or(0, |(_, free)| free));
                arrived[step as usize].then_some((since_ns, step, *thread))
            };
            let all = || self.servers[server as usize].iter().filter_map(ready);
            let goes_on = all().find(|(since_ns, _, thread)| Some(*thread) == by && *since_ns <= time_ns);
            let Some((since_ns, step, thread)) = goes_on.or_else(|| all().min()) else { continue };
            if since_ns > time_ns {
                due.push(Reverse((since_ns, server)));
                continue;
            }
            let at = step as usize;
            let step = &self.steps[at];
            let row = step.row as usize;
            let ends_ns = self.ends(step, ledger, removal, now[row], since_ns, time_ns, threads[thread as usize].last);
            let ends_ns = open_at(&closed[server as usize], time_ns, ends_ns);
            now[row] = ends_ns;
            let state = &mut threads[thread as usize];
            let last = state.last.unwrap_or_default();
            (state.done, state.last) = (state.done + 1, Some((last.0.max(step.to_ns), last.1.max(ends_ns))));
            servers[server as usize] = (ends_ns, Some(thread));
            due.push(Reverse((ends_ns, server)));
            if let Some(next) = step.next {
                arrived[next as usize] = true;
                due.push(Reverse((ends_ns, self.steps[next as usize].server)));
            }
        }
        let total =
            |((row, end), off_by): ((&Row, u64), &i64)| end.saturating_sub(row.start_ns).saturating_add_signed(-off_by);
        ledger.rows.iter().zip(now).zip(&self.off_by_ns).map(total).collect()
    }

    /// When a step ends of which the turn comes at `time_ns`, and could have been at `since_ns`.
    #[expect(clippy::too_many_arguments, reason = "what is run, and where the run is")]
    fn ends(
        &self,
        step: &Step,
        ledger: &Ledger,
        removal: &Removal<'_>,
        arrives_ns: u64,
        since_ns: u64,
        time_ns: u64,
        last: Option<(u64, u64)>,
    ) -> u64 {
        let row = step.row as usize;
        let of_hop = removal.of_rows[row].iter().filter(|(hop, ..)| *hop == step.hop);
        let (own, behind) = of_hop.fold((0, 0), |sum, (_, own, behind)| (sum.0 + own, sum.1 + behind));
        let Some(wait) = step.wait else {
            let left = (step.to_ns - step.from_ns).saturating_sub(own + behind + step.away_ns);
            return (arrives_ns + left).max(last.map_or(0, |(_, free)| free)) + (time_ns - since_ns);
        };
        let wait = &ledger.rows[row].waits[wait as usize].1;
        let left = step.to_ns.saturating_sub(wait.until_ns.max(step.from_ns)).saturating_sub(own + step.away_ns);
        // Others may have had their turn first.
        let turn_ns = (time_ns > since_ns).then_some(time_ns);
        let free_ns = free(wait, last, turn_ns, removal);
        let lead = self.lead_ns.get(&step.hop).copied().unwrap_or(0);
        let starts = if arrives_ns <= free_ns { free_ns } else { arrives_ns + lead };
        starts + left
    }
}

/// When the thread is free for the message in this run: so long after its turn came as it did something else since its latest
/// stamp, less what is removed of that and the time that the CPU was another's; or as recorded, where it was busy with something else.
fn free(wait: &Wait, last: Option<(u64, u64)>, turn_ns: Option<u64>, removal: &Removal<'_>) -> u64 {
    let removed: u64 =
        wait.pieces.iter().map(|(kind, ns, beyond)| (removal.of_wait)(kind, *ns, *beyond).min(*ns)).sum();
    let removed = removed + wait.away_ns;
    let Some((recorded, replayed)) = last.filter(|_| wait.is_linked) else {
        return wait.until_ns.saturating_sub(removed).max(wait.since_ns).max(turn_ns.unwrap_or(0));
    };
    // Another message's stamp may come later than that from which the pieces count.
    let whole = wait.until_ns.saturating_sub(wait.since_ns).max(1);
    let rest = wait.until_ns.saturating_sub(recorded.max(wait.since_ns));
    let removed = (u128::from(removed) * u128::from(rest) / u128::from(whole)) as u64;
    (wait.until_ns + turn_ns.unwrap_or(replayed)).saturating_sub(recorded + removed)
}

/// What is left of the stretches in which another thread has a server.
fn still_closed(all: &[(u64, u64, Kind)], removal: &Removal<'_>) -> Vec<(u64, u64)> {
    let left = |(from_ns, to_ns, kind): &(u64, u64, Kind)| {
        let ns = to_ns - from_ns;
        (*from_ns, to_ns - (removal.of_wait)(kind, ns, ns).min(ns))
    };
    all.iter().map(left).filter(|(from_ns, to_ns)| from_ns < to_ns).collect()
}

/// When what is begun at `from_ns` and would end at `ends_ns` ends, with pauses while another thread has the server.
fn open_at(closed: &[(u64, u64)], from_ns: u64, mut ends_ns: u64) -> u64 {
    let first = closed.partition_point(|(_, to_ns)| *to_ns <= from_ns);
    for (start_ns, to_ns) in &closed[first..] {
        if *start_ns >= ends_ns {
            break;
        }
        ends_ns += to_ns - (*start_ns).max(from_ns);
    }
    ends_ns
}
