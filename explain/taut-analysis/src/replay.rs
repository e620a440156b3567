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
    explained::Cause,
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
    /// Of each server, its number outside.
    keys: Vec<i32>,
    /// Of each server: stretches in which another thread has it, not overlapping.
    closed: Vec<Vec<(u64, u64, Kind)>>,
    /// By hop: what a message to an idle thread pays more than one that waited.
    lead_ns: HashMap<u16, u64>,
    /// The run without a removal, where threads take turns.
    by_itself: Option<ByItself>,
}

/// Turns are simpler here than a scheduler's, so that this run differs from what was recorded.
struct ByItself {
    /// Its totals, ascending.
    run: Vec<u64>,
    /// Those that were recorded, ascending.
    recorded: Vec<u64>,
    /// By row: its totals, read as those of other runs are.
    base: Vec<u64>,
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
    /// Of the message's own time, what the thread waited: others may have a CPU that it shares.
    off_ns: u64,
}

/// What is taken away of a message's time in a hop.
#[derive(Clone, Copy, Default)]
pub(crate) struct Removed {
    pub hop: u16,
    /// Of its own time.
    pub own_ns: u64,
    /// Of that, what the thread that ends the hop waited.
    pub off_ns: u64,
    /// Of the time behind others on one and the same thread.
    pub behind_ns: u64,
}

/// The same of all rows.
#[derive(Default)]
pub(crate) struct Removals {
    /// Row after row.
    all: Vec<Removed>,
    /// Of each row, where its own end.
    ends: Vec<usize>,
}

impl Removals {
    /// Takes what `append` appends as the next row's.
    pub fn push(&mut self, append: impl FnOnce(&mut Vec<Removed>)) {
        append(&mut self.all);
        self.ends.push(self.all.len());
    }

    fn of_row(&self, row: usize) -> &[Removed] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[row]]
    }
}

/// What is taken away, and how many times as long the rest takes.
#[derive(Clone, Copy)]
pub(crate) struct Removal<'a> {
    pub of_rows: &'a Removals,
    /// Of what a thread did before it took a message: kind, time, and how much of it was beyond the typical.
    pub of_wait: &'a dyn Fn(&Kind, u64, u64) -> u64,
    pub slower: f64,
}

impl Removal<'_> {
    fn slowed(&self, ns: u64) -> u64 {
        (ns as f64 * self.slower) as u64
    }
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
        if ledger.rows.iter().all(|row| row.waits().is_empty() && row.away().is_empty()) {
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
                let wait = row.waits().iter().position(|(of, _)| *of == hop);
                let away_ns = row.away().iter().find(|(of, _)| *of == hop).map_or(0, |(_, ns)| *ns);
                if from.is_handed_to(to) {
                    let since_ns = wait.map_or(from.time_ns, |wait| row.waits()[wait].1.until_ns);
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
                    // A thread that has its CPU alone does not leave it to another. Time before the thread took the message is not part of the step.
                    off_ns: match server(to.tid) {
                        alone if alone == to.tid => 0,
                        shared => {
                            let taken_ns =
                                wait.map_or(from.time_ns, |wait| row.waits()[wait].1.until_ns.max(from.time_ns));
                            let off_ns = ledger.own_ns(at, hop, |kind| is_off(kind, server(kind.tid) == shared));
                            off_ns.min(to.time_ns.saturating_sub(taken_ns))
                        }
                    },
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
        let mut keys = vec![0; servers.len()];
        servers.iter().for_each(|(key, number)| keys[*number as usize] = *key);
        let mut replay = Replay {
            steps,
            first,
            threads: of_threads,
            servers: of_servers,
            keys,
            closed: of_closed,
            lead_ns,
            by_itself: None,
        };
        if replay.servers.iter().any(|threads| threads.len() > 1) {
            let none = Removals { all: Vec::new(), ends: vec![0; ledger.rows.len()] };
            let nothing = Removal { of_rows: &none, of_wait: &|_, _, _| 0, slower: 1.0 };
            let totals = replay.totals(ledger, &nothing);
            let (mut run, mut recorded) =
                (totals.clone(), ledger.rows.iter().map(|row| row.total_ns).collect::<Vec<_>>());
            run.sort_unstable();
            recorded.sort_unstable();
            let base = totals.into_iter().map(|ns| mapped(ns, &run, &recorded)).collect();
            replay.by_itself = Some(ByItself { run, recorded, base });
        }
        Some(replay)
    }

    /// By row: the totals of the run without a removal; `None` where they are those that were recorded.
    pub fn base(&self) -> Option<&[u64]> {
        self.by_itself.as_ref().map(|of| of.base.as_slice())
    }

    /// What the thread that ends a row's hop takes turns on.
    pub fn server(&self, row: usize, hop: u16) -> Option<i32> {
        let next = |at: &u32| self.steps[*at as usize].next;
        let mut of_row = std::iter::successors(self.first[row], next).map(|at| &self.steps[at as usize]);
        of_row.find(|step| step.hop == hop).map(|step| self.keys[step.server as usize])
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
            // Each thread's next message, once it has arrived, and since when the thread could run for it: what it waits it leaves
            // its CPU to others.
            let ready = |thread: &u32| {
                let Thread { done, last } = threads[*thread as usize];
                let number = *self.threads[*thread as usize].get(done)?;
                let step = &self.steps[number as usize];
                let since_ns = now[step.row as usize].max(last.map_or(0, |(_, free)| free)) + step.off_ns(removal);
                arrived[number as usize].then_some((since_ns, number, *thread))
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
            let off_ns = step.off_ns(removal);
            let turn = (since_ns - off_ns, time_ns - off_ns);
            let ends_ns = self.ends(step, ledger, removal, now[row], turn, threads[thread as usize].last);
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
        let total = |(row, end): (&Row, u64)| {
            let ns = end.saturating_sub(row.start_ns);
            self.by_itself.as_ref().map_or(ns, |of| mapped(ns, &of.run, &of.recorded))
        };
        ledger.rows.iter().zip(now).map(total).collect()
    }

    /// When a step ends of which the turn could have been at the one moment, and comes at the other.
    fn ends(
        &self,
        step: &Step,
        ledger: &Ledger,
        removal: &Removal<'_>,
        arrives_ns: u64,
        (since_ns, time_ns): (u64, u64),
        last: Option<(u64, u64)>,
    ) -> u64 {
        let row = step.row as usize;
        let removed = step.removed(removal);
        let Some(wait) = step.wait else {
            let left = (step.to_ns - step.from_ns).saturating_sub(removed.own_ns + removed.behind_ns + step.away_ns);
            return (arrives_ns + removal.slowed(left)).max(last.map_or(0, |(_, free)| free)) + (time_ns - since_ns);
        };
        let wait = &ledger.rows[row].waits()[wait as usize].1;
        let taken_ns = wait.until_ns.max(step.from_ns);
        let left = step.to_ns.saturating_sub(taken_ns).saturating_sub(removed.own_ns + step.away_ns);
        // Others may have had their turn first.
        let turn_ns = (time_ns > since_ns).then_some(time_ns);
        let free_ns = free(wait, last, turn_ns, removal);
        let lead = self.lead_ns.get(&step.hop).copied().unwrap_or(0);
        let starts = if arrives_ns <= free_ns { free_ns } else { arrives_ns + removal.slowed(lead) };
        starts + removal.slowed(left)
    }
}

/// Where a value of one distribution lies in the other, between the values of the nearest ranks. Both ascend and are equally long.
fn mapped(ns: u64, from: &[u64], to: &[u64]) -> u64 {
    let at = from.partition_point(|other| *other < ns);
    let same = from[at..].partition_point(|other| *other == ns);
    match (at.checked_sub(1), from.get(at)) {
        // The middle one of its ranks.
        _ if same > 0 => to[at + (same - 1) / 2],
        (Some(below), Some(above)) => {
            let part = (ns - from[below]) as f64 / (above - from[below]) as f64;
            to[below] + ((to[at] - to[below]) as f64 * part) as u64
        }
        // Shorter than any, or longer: in the same ratio.
        (None, Some(least)) => (u128::from(ns) * u128::from(to[0]) / u128::from((*least).max(1))) as u64,
        (Some(most), None) => (u128::from(ns) * u128::from(to[most]) / u128::from(from[most].max(1))) as u64,
        (None, None) => ns,
    }
}

impl Step {
    fn removed(&self, removal: &Removal<'_>) -> Removed {
        let of_row = removal.of_rows.of_row(self.row as usize).iter();
        of_row.copied().find(|removed| removed.hop == self.hop).unwrap_or_default()
    }

    /// What its thread waits in this run.
    fn off_ns(&self, removal: &Removal<'_>) -> u64 {
        self.off_ns.saturating_sub(self.removed(removal).off_ns)
    }
}

/// Whether a thread of the server leaves it to others meanwhile.
pub(crate) fn is_off(kind: &Kind, is_servers: bool) -> bool {
    use Cause::*;
    !kind.queued
        && (!is_servers
            || matches!(kind.cause, Lock | Gil | Sleep | Io | Network | Disk | Executor | TimerSlack | Stopped))
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
    let (since_ns, from_ns) = (turn_ns.unwrap_or(replayed), recorded + removed);
    match wait.until_ns.checked_sub(from_ns) {
        Some(took_ns) => since_ns + removal.slowed(took_ns),
        None => (wait.until_ns + since_ns).saturating_sub(from_ns),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_its_rank() {
        let (run, recorded) = ([100, 200, 400], [110, 200, 500]);
        let all = [50, 100, 150, 200, 300, 400, 800].map(|ns| mapped(ns, &run, &recorded));
        assert_eq!(all, [55, 110, 155, 200, 350, 500, 1000]);
        assert_eq!(mapped(7, &[], &[]), 7);
        assert_eq!(mapped(100, &[100; 5], &[10, 20, 30, 40, 50]), 30);
    }
}
