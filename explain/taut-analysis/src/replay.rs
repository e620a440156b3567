//! Predictions: what was recorded is run through again without a cause.
//!
//! The first points keep their times. A message starts on a thread when it has arrived and the thread is free, in the order
//! that was recorded, but no thread waits for a message that comes only after it could begin another one. What a message spent
//! by itself stays, less the cause; what it spent behind others comes out of the run.
//! A message that no longer waits finds the thread asleep and pays the way to the CPU that messages to an idle thread pay.
//! Threads that share a CPU take turns on it: each continues while it has messages, and the one that could run first comes next.

use std::{cmp::Reverse, collections::BinaryHeap, iter::Peekable, vec};

use foldhash::HashMap;
use taut_points::NO_THREAD;

use crate::{
    explained::Cause,
    kind::Kind,
    ledger::{Ledger, Row},
    passage::Passage,
    queues::Wait,
};

/// So many of a thread's steps behind the next one may go before it.
const AHEAD: usize = 256;
/// And of these so many that could are looked at.
const LOOKED_AT: usize = 64;

/// A chain's hops in the order of their ends.
pub(crate) struct Replay {
    steps: Vec<Step>,
    /// Of each row, its first step.
    first: Vec<Option<u32>>,
    /// Of each thread, its steps.
    threads: Vec<Vec<u32>>,
    /// Of each thread, where among its steps those are that another run may have before others: what came before one that was taken
    /// first, and what goes on with a message after others were taken, as where one read takes several.
    passing: Vec<Vec<u32>>,
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
    /// Whether the thread had it from another one, or when it was due.
    is_handed: bool,
    /// Of the message's own time, for how long at least the thread had it in hand, where it had it from another one.
    in_hand_ns: u64,
    /// Else for how long it was at others first that it had in hand, too.
    others_ns: u64,
    /// Whether that is time behind others to the message, and no part of its own.
    are_others_apart: bool,
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

/// How far a run is.
struct Run {
    /// By row: when its latest step ended; before the first one, when it starts.
    now: Vec<u64>,
    steps: Vec<Progress>,
    threads: Vec<Thread>,
}

/// Takes the earlier one of the next start and the next moment that is due.
fn earlier(
    starts: &mut Peekable<vec::IntoIter<(u64, u32)>>,
    due: &mut BinaryHeap<Reverse<(u64, u32)>>,
) -> Option<(u64, u32)> {
    match (starts.peek(), due.peek()) {
        (Some(start), other) if other.is_none_or(|Reverse(other)| start <= other) => starts.next(),
        _ => due.pop().map(|Reverse(moment)| moment),
    }
}

/// How far a step is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Its row has not come to it.
    Ahead,
    Arrived,
    Done,
}

/// A thread in the run.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// Index of its first step that is not done.
    next: usize,
    /// Its latest stamp.
    free_ns: u64,
}

/// A step that a server may do next: the one that could first is the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    since_ns: u64,
    step: u32,
    thread: u32,
    /// Index among the thread's steps.
    at: usize,
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
                    is_handed: from.is_handed_to(to),
                    in_hand_ns: match from.tid == to.tid {
                        true => 0,
                        false => ledger.own_ns(at, hop, |kind| {
                            kind.tid == to.tid && kind.cause != Cause::Wakeup && !is_pause(kind)
                        }),
                    },
                    others_ns: 0,
                    are_others_apart: false,
                });
            }
        }
        steps.sort_unstable_by_key(|step| (step.to_ns, step.row, step.hop));
        let mut tids = vec![NO_THREAD; threads.len()];
        threads.iter().for_each(|(tid, number)| tids[*number as usize] = *tid);
        let mut of_threads: Vec<Vec<u32>> = vec![Vec::new(); threads.len()];
        let mut of_servers: Vec<Vec<u32>> = vec![Vec::new(); servers.len()];
        let mut first = vec![None; ledger.rows.len()];
        let mut last: Vec<Option<u32>> = vec![None; ledger.rows.len()];
        let mut passing: Vec<Vec<u32>> = vec![Vec::new(); threads.len()];
        // Of each step, whether it is in there; of each thread, when the latest message came that it has taken.
        let mut passes = vec![false; steps.len()];
        let mut came_ns = vec![0; threads.len()];
        for at in 0..steps.len() {
            let (row, thread, server) = (steps[at].row as usize, steps[at].thread, steps[at].server as usize);
            let (is_handed, from_ns) = (steps[at].is_handed, steps[at].from_ns);
            let at = at as u32;
            let before = last[row].replace(at);
            match before {
                Some(before) => steps[before as usize].next = Some(at),
                None => first[row] = Some(at),
            }
            let of_thread = &of_threads[thread as usize];
            passes[at as usize] = match (is_handed, before) {
                (true, _) => from_ns < came_ns[thread as usize],
                (false, Some(before)) => passes[before as usize] || of_thread.last() != Some(&before),
                (false, None) => false,
            };
            if passes[at as usize]
                && let Some(other) = of_thread.last()
            {
                passing[thread as usize].push(of_thread.len() as u32);
                // It has what it took together one after the other, if it never pauses: since its stamp of another one it is at this one.
                let Step { hop, to_ns, .. } = steps[at as usize];
                let is_of_thread = |kind: &Kind| kind.tid == tids[thread as usize] && !is_pause(kind);
                let of_hop = ledger.amounts_of(&ledger.rows[row]).map(|(kind, ns)| (&ledger.kinds[kind as usize], ns));
                let of_thread = of_hop.filter(|(kind, _)| kind.hop == hop && is_of_thread(kind));
                if !is_handed && of_thread.clone().map(|(_, ns)| ns).sum::<u64>() == to_ns - from_ns {
                    let others_ns = steps[*other as usize].to_ns.saturating_sub(from_ns);
                    let queued_ns: u64 = of_thread.filter(|(kind, _)| kind.queued).map(|(_, ns)| ns).sum();
                    let step = &mut steps[at as usize];
                    (step.others_ns, step.are_others_apart) = (others_ns, queued_ns >= others_ns);
                }
            }
            if is_handed {
                came_ns[thread as usize] = from_ns.max(came_ns[thread as usize]);
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
            passing,
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
        let mut run = Run {
            now: ledger.rows.iter().map(|row| row.start_ns).collect(),
            steps: vec![Progress::Ahead; self.steps.len()],
            threads: vec![Thread::default(); self.threads.len()],
        };
        // Of each server: until when it is taken, and by which thread last.
        let mut servers: Vec<(u64, Option<u32>)> = vec![(0, None); self.servers.len()];
        let closed: Vec<Vec<(u64, u64)>> = self.closed.iter().map(|all| still_closed(all, removal)).collect();
        // Moments at which a server may have something to do. The rows' starts are known before: in the heap are those under way.
        let mut due: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let mut starts = Vec::with_capacity(self.first.len());
        for step in self.first.iter().flatten() {
            run.steps[*step as usize] = Progress::Arrived;
            let step = &self.steps[*step as usize];
            starts.push((run.now[step.row as usize], step.server));
        }
        starts.sort_unstable();
        let mut starts = starts.into_iter().peekable();
        while let Some((time_ns, server)) = earlier(&mut starts, &mut due) {
            let (taken_ns, by) = servers[server as usize];
            if taken_ns > time_ns {
                continue;
            }
            let of_thread = |thread: &u32| self.ready(*thread, time_ns, ledger, removal, &run);
            let all = || self.servers[server as usize].iter().filter_map(of_thread);
            let goes_on = all().find(|ready| Some(ready.thread) == by && ready.since_ns <= time_ns);
            let Some(ready) = goes_on.or_else(|| all().min()) else { continue };
            if ready.since_ns > time_ns {
                due.push(Reverse((ready.since_ns, server)));
                continue;
            }
            let step = &self.steps[ready.step as usize];
            let ends_ns = self.ends(step, ready, time_ns, ledger, removal, &run);
            let ends_ns = open_at(&closed[server as usize], time_ns, ends_ns);
            run.now[step.row as usize] = ends_ns;
            run.steps[ready.step as usize] = Progress::Done;
            let steps = &self.threads[ready.thread as usize];
            let thread = &mut run.threads[ready.thread as usize];
            thread.free_ns = thread.free_ns.max(ends_ns);
            while steps.get(thread.next).is_some_and(|step| run.steps[*step as usize] == Progress::Done) {
                thread.next += 1;
            }
            servers[server as usize] = (ends_ns, Some(ready.thread));
            due.push(Reverse((ends_ns, server)));
            if let Some(next) = step.next {
                run.steps[next as usize] = Progress::Arrived;
                let next = &self.steps[next as usize];
                due.push(Reverse((ends_ns, next.server)));
                // When it comes is known from now on, and so what may go before it.
                if !self.passing[next.thread as usize].is_empty() {
                    due.push(Reverse((time_ns, next.server)));
                }
            }
        }
        let total = |(row, end): (&Row, u64)| {
            let ns = end.saturating_sub(row.start_ns);
            self.by_itself.as_ref().map_or(ns, |of| mapped(ns, &of.run, &of.recorded))
        };
        ledger.rows.iter().zip(run.now).map(total).collect()
    }

    /// A thread's next step, and since when the thread could run for it: what it waits it leaves its CPU to others. It is the next one as
    /// recorded, or one behind it that begins before any of those ahead of it comes.
    fn ready(&self, thread: u32, time_ns: u64, ledger: &Ledger, removal: &Removal<'_>, run: &Run) -> Option<Ready> {
        let steps = &self.threads[thread as usize];
        let Thread { next, free_ns } = run.threads[thread as usize];
        let ready = |at: usize| {
            let step = *steps.get(at)?;
            let of = &self.steps[step as usize];
            let since_ns = run.now[of.row as usize].max(free_ns) + of.off_ns(removal);
            (run.steps[step as usize] == Progress::Arrived).then_some(Ready { since_ns, step, thread, at })
        };
        let comes_ns = |step: &u32| run.now[self.steps[*step as usize].row as usize];
        let is_open = |step: &u32| run.steps[*step as usize] != Progress::Done;
        let passing = &self.passing[thread as usize];
        let waits_for = steps.get(next).map(comes_ns).filter(|comes_ns| *comes_ns > free_ns && !passing.is_empty());
        let Some(first_comes_ns) = waits_for else { return ready(next) };
        // A message that the thread has begun it ends.
        let goes_on = |ready: &Ready| {
            let (before, step) = (steps[ready.at - 1], &self.steps[ready.step as usize]);
            !step.is_handed && !is_open(&before) && self.steps[before as usize].row == step.row
        };
        let goes_before = |ready: &Ready| {
            let step = &self.steps[ready.step as usize];
            if comes_ns(&ready.step) >= first_comes_ns {
                return false;
            }
            let ends_ns = self.ends(step, *ready, time_ns.max(ready.since_ns), ledger, removal, run);
            let begins_ns = ends_ns.saturating_sub(removal.slowed(step.in_hand_ns(removal)));
            steps[next..ready.at].iter().filter(|step| is_open(step)).all(|step| begins_ns < comes_ns(step))
        };
        let behind = passing[passing.partition_point(|at| *at as usize <= next)..].iter().map(|at| *at as usize);
        let near = behind.take_while(|at| *at < next + AHEAD).filter(|at| is_open(&steps[*at]));
        let near = near.take(LOOKED_AT).filter_map(ready);
        near.clone().find(goes_on).or_else(|| near.filter(goes_before).min()).or_else(|| ready(next))
    }

    /// When a step ends of which the turn comes at that moment.
    fn ends(&self, step: &Step, ready: Ready, time_ns: u64, ledger: &Ledger, removal: &Removal<'_>, run: &Run) -> u64 {
        let row = step.row as usize;
        let arrives_ns = run.now[row];
        let off_ns = step.off_ns(removal);
        let (since_ns, time_ns) = (ready.since_ns - off_ns, time_ns - off_ns);
        // The latest stamp before it of those that the thread has come to, and when that is in this run.
        let before = self.threads[ready.thread as usize][..ready.at].iter().rev();
        let before = before.map(|step| *step as usize).find(|step| run.steps[*step] == Progress::Done);
        let last = before.map(|step| (self.steps[step].to_ns, run.threads[ready.thread as usize].free_ns));
        let removed = step.removed(removal);
        let Some(wait) = step.wait else {
            let (recorded, free_ns) = last.unwrap_or_default();
            let (whole, gone) = (step.to_ns - step.from_ns, removed.own_ns + removed.behind_ns + step.away_ns);
            if step.others_ns > 0 {
                let gone = match step.are_others_apart {
                    true => removed.own_ns + step.away_ns,
                    false => gone.saturating_sub(step.others_ns),
                };
                let left = (whole - step.others_ns).saturating_sub(gone);
                return arrives_ns.max(free_ns) + removal.slowed(left) + (time_ns - since_ns);
            }
            // The thread may have had nothing to do when the message came, and have something in this run: then it has this in hand after that.
            let in_hand = step.in_hand_ns(removal) * u64::from(recorded <= step.from_ns);
            let alone = arrives_ns + removal.slowed(whole.saturating_sub(gone));
            return alone.max(free_ns + removal.slowed(in_hand)) + (time_ns - since_ns);
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

    /// For how long at least its thread has it in hand in this run, where it has it from another one.
    fn in_hand_ns(&self, removal: &Removal<'_>) -> u64 {
        self.in_hand_ns.saturating_sub(self.removed(removal).own_ns)
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

/// Whether a thread does nothing for any message meanwhile, or what it does is not known.
fn is_pause(kind: &Kind) -> bool {
    use Cause::*;
    kind.is_away || matches!(kind.cause, Io | Network | Sleep | TimerSlack | Executor | Partner | Unknown)
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
    use crate::{
        queues::Divided,
        walk::{Moment, Piece},
    };

    /// Of a message: who stamped it when, in order of the chain's points, and its waits.
    type Way = (Vec<(i32, u64)>, Vec<(u16, Wait)>);

    /// A wait behind the message of which the thread's stamp at `since_ns` is.
    fn behind(since_ns: u64, until_ns: u64) -> Wait {
        Wait { since_ns, is_linked: true, until_ns, pieces: Vec::new(), away_ns: 0 }
    }

    /// Totals of a run in which so much of each message's own time in that hop is removed. Of the second hop all time is on the CPU.
    fn without(ways: &[Way], hop: u16, own_ns: &[u64]) -> Vec<u64> {
        let mut ledger = Ledger::default();
        for (id, (stamps, waits)) in (0..).zip(ways) {
            let ((_, start_ns), (_, end_ns)) = (stamps[0], stamps[stamps.len() - 1]);
            let ((_, from_ns), (tid, to_ns)) = (stamps[1], stamps[2]);
            let second = Piece { cause: Cause::Cpu, ..Piece::unknown(from_ns, to_ns, tid) };
            let divided = Divided { pieces: vec![(1, second)], waits: waits.clone(), ..Divided::default() };
            ledger.add(id, start_ns, end_ns - start_ns, divided);
        }
        let passage = |row: usize| {
            let passes = ways[row].0.iter().map(|(tid, time_ns)| Moment::of(*tid, *time_ns)).enumerate().collect();
            Some(Passage { id: row as u64, passes })
        };
        let replay = Replay::of(&ledger, passage, |tid| tid, Vec::new()).unwrap();
        let totals = |own_ns: &[u64]| {
            let mut removals = Removals::default();
            for own_ns in own_ns.iter().copied() {
                removals.push(|all| all.push(Removed { hop, own_ns, ..Removed::default() }));
            }
            replay.totals(&ledger, &Removal { of_rows: &removals, of_wait: &|_, _, _| 0, slower: 1.0 })
        };
        let recorded: Vec<u64> = ledger.rows.iter().map(|row| row.total_ns).collect();
        assert_eq!(totals(&vec![0; ways.len()]), recorded, "a run without a removal is what was recorded");
        totals(own_ns)
    }

    #[test]
    fn who_takes_several_messages_in_one_go_waits_for_none_that_is_not_there() {
        // The first one waits 6 ms for a lock, and those that come meanwhile are taken together.
        let ways = [
            (vec![(10, 0), (11, 10), (11, 6_110)], vec![]),
            (vec![(10, 1_000), (11, 6_120), (11, 6_220)], vec![(0, behind(6_110, 6_110))]),
            (vec![(10, 2_000), (11, 6_121), (11, 6_320)], vec![(0, behind(6_120, 6_120))]),
            (vec![(10, 3_000), (11, 6_122), (11, 6_420)], vec![(0, behind(6_121, 6_121))]),
        ];
        // The way to the CPU takes 9 of the first one's 10. Of the second one's 100 the thread takes the third and the fourth in 2.
        assert_eq!(without(&ways, 1, &[6_000, 0, 0, 0]), [110, 117, 110, 110]);
    }

    #[test]
    fn who_was_overtaken_waits_for_none_that_is_not_there() {
        // The last one is urgent: it is taken before the second, which came first.
        let ways = [
            (vec![(10, 0), (11, 10), (11, 6_110)], vec![]),
            (vec![(10, 1_000), (11, 6_230), (11, 6_330)], vec![(0, behind(6_110, 6_220))]),
            (vec![(10, 5_000), (11, 6_120), (11, 6_220)], vec![(0, behind(6_110, 6_110))]),
        ];
        assert_eq!(without(&ways, 1, &[6_000, 0, 0]), [110, 110, 110]);
    }

    #[test]
    fn a_thread_that_was_idle_has_one_message_after_the_other_where_they_come_together() {
        // Both wait for a lock at the first stage: the second stage, which needs longer for a message, never has two of them.
        let ways = [
            (vec![(10, 0), (11, 1_900), (12, 2_400)], vec![]),
            (vec![(10, 100), (11, 2_500), (12, 3_000)], vec![(0, behind(1_900, 1_900))]),
        ];
        assert_eq!(without(&ways, 0, &[1_800, 500]), [600, 1_000]);
    }

    #[test]
    fn a_value_keeps_its_rank() {
        let (run, recorded) = ([100, 200, 400], [110, 200, 500]);
        let all = [50, 100, 150, 200, 300, 400, 800].map(|ns| mapped(ns, &run, &recorded));
        assert_eq!(all, [55, 110, 155, 200, 350, 500, 1000]);
        assert_eq!(mapped(7, &[], &[]), 7);
        assert_eq!(mapped(100, &[100; 5], &[10, 20, 30, 40, 50]), 30);
    }
}
