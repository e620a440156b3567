//! Predictions: what was recorded is run through again without a cause.
//!
//! The first points keep their times. A message starts on a thread when it has arrived and the thread is free. Of those that have arrived
//! the one comes first that came first in the recording, and none waits for one that comes later: so what is urgent stays urgent, and a
//! stack stays a stack. What a message spent by itself stays, less the cause; what it spent behind others comes out of the run.
//! A message that no longer waits finds the thread asleep and pays the way to the CPU that messages to an idle thread pay.
//! A message to a pool goes to the first of its threads that is free, whichever had it in the recording.
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
    /// The threads that were recorded.
    threads: Vec<Thread>,
    /// Of each line of messages, the threads that take from it: one, or a pool.
    lines: Vec<Vec<u32>>,
    /// Of each server, the threads that take turns on it.
    servers: Vec<Vec<u32>>,
    /// Of each server, its number outside.
    keys: Vec<i32>,
    /// Of each server: stretches in which another thread has it, not overlapping.
    closed: Vec<Vec<(u64, u64, Kind)>>,
    /// By hop: what a message to an idle thread pays more than one that waited.
    lead_ns: HashMap<u16, u64>,
    /// The run without a removal, where it does not give the recording back: where threads take turns, say, or a message waits for one that
    /// it comes to later.
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

/// A thread that was recorded.
#[derive(Clone, Copy)]
struct Thread {
    line: u32,
    server: u32,
    /// For so long after its latest stamp it is not done with that message: one that comes meanwhile may be the next.
    trailing_ns: u64,
}

struct Step {
    row: u32,
    /// The row's next one.
    next: Option<u32>,
    /// Index of the row's wait.
    wait: Option<u32>,
    hop: u16,
    /// That had it in the recording.
    thread: u32,
    /// Whether that thread's step before it is the row's, too, and both are of one handling.
    follows: bool,
    /// That thread's stamp before it.
    before_ns: u64,
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

/// Numbers of lines or servers by what they are outside, and the threads of each.
#[derive(Default)]
struct Numbers {
    numbers: HashMap<i32, u32>,
    threads: Vec<Vec<u32>>,
}

impl Numbers {
    fn add(&mut self, key: i32, thread: u32) -> u32 {
        let number = *self.numbers.entry(key).or_insert(self.threads.len() as u32);
        self.threads.resize_with(self.threads.len().max(number as usize + 1), Vec::new);
        self.threads[number as usize].push(thread);
        number
    }
}

/// How far a run is.
struct Run {
    /// By row: when its latest step ended; before the first one, when it starts.
    now: Vec<u64>,
    /// By row: which thread had it last.
    had_by: Vec<u32>,
    threads: Vec<Progress>,
    /// Of each line, steps of messages that are handed over.
    lines: Vec<Arrived>,
    /// Of each server: until when it is taken, and by which thread last.
    servers: Vec<(u64, Option<u32>)>,
    /// Moments at which a server may have something to do.
    due: BinaryHeap<Reverse<(u64, u32)>>,
}

/// A thread in the run.
#[derive(Clone, Default)]
struct Progress {
    /// Its latest stamp.
    free_ns: Option<u64>,
    /// Which step it goes on with.
    goes_on: Option<u32>,
    /// Steps of messages that it has already.
    own: Arrived,
}

/// Steps that may be next.
#[derive(Clone, Default)]
struct Arrived {
    /// Of messages that have come: the first one in the recording is the first one.
    there: BinaryHeap<Reverse<u32>>,
    /// When others come.
    coming: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Arrived {
    fn first(&mut self, time_ns: u64) -> Option<u32> {
        while let Some(Reverse((_, step))) = self.coming.peek().filter(|Reverse((comes_ns, _))| *comes_ns <= time_ns) {
            self.there.push(Reverse(*step));
            self.coming.pop();
        }
        self.there.peek().map(|Reverse(step)| *step)
    }
}

/// A step that a server may do next: the one that could first is the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    since_ns: u64,
    step: u32,
    thread: u32,
}

impl Replay {
    /// `None` where no message waited for a busy thread or for its turn.
    pub fn of(
        ledger: &Ledger,
        passages: impl Fn(usize) -> Option<Passage>,
        server: impl Fn(i32) -> i32,
        line: impl Fn(i32) -> i32,
        trailing_ns: impl Fn(i32) -> u64,
        mut closed: Vec<(i32, u64, u64, Kind)>,
    ) -> Option<Replay> {
        if ledger.rows.iter().all(|row| row.waits().is_empty() && row.away().is_empty()) {
            return None;
        }
        let mut steps = Vec::new();
        let mut own: HashMap<u16, [Vec<u64>; 2]> = HashMap::default();
        let mut tids: HashMap<i32, u32> = HashMap::default();
        let mut threads: Vec<Thread> = Vec::new();
        let (mut lines, mut servers) = (Numbers::default(), Numbers::default());
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
                let (tid, of_server, of_line) = match to.tid {
                    NO_THREAD => (nobody, nobody, nobody),
                    tid => (tid, server(tid), line(tid)),
                };
                let thread = *tids.entry(tid).or_insert_with(|| {
                    let number = threads.len() as u32;
                    let (line, server) = (lines.add(of_line, number), servers.add(of_server, number));
                    threads.push(Thread { line, server, trailing_ns: trailing_ns(tid) });
                    number
                });
                steps.push(Step {
                    row: at as u32,
                    next: None,
                    wait: wait.map(|wait| wait as u32),
                    hop,
                    thread,
                    follows: false,
                    before_ns: 0,
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
        let mut tid_of = vec![NO_THREAD; threads.len()];
        tids.iter().for_each(|(tid, number)| tid_of[*number as usize] = *tid);
        let mut first = vec![None; ledger.rows.len()];
        // Of each row and of each thread its latest step; of each thread, when the latest message came that it has taken.
        let mut last: Vec<Option<u32>> = vec![None; ledger.rows.len()];
        let mut last_of: Vec<Option<u32>> = vec![None; threads.len()];
        let mut came_ns = vec![0; threads.len()];
        for at in 0..steps.len() {
            let Step { row, thread, hop, is_handed, from_ns, to_ns, .. } = steps[at];
            let before = last[row as usize].replace(at as u32);
            match before {
                Some(before) => steps[before as usize].next = Some(at as u32),
                None => first[row as usize] = Some(at as u32),
            }
            let other = last_of[thread as usize].replace(at as u32);
            steps[at].follows = !is_handed && before.is_some() && other == before;
            steps[at].before_ns = other.map_or(0, |other| steps[other as usize].to_ns);
            if is_handed {
                came_ns[thread as usize] = from_ns.max(came_ns[thread as usize]);
            } else if let (Some(other), true) = (other, before.is_some() && other != before) {
                // It has what it took together one after the other, if it never pauses: since its stamp of another one it is at this one.
                let is_of_thread = |kind: &Kind| kind.tid == tid_of[thread as usize] && !is_pause(kind);
                let of_hop = ledger.amounts_of(&ledger.rows[row as usize]);
                let of_hop = of_hop.map(|(kind, ns)| (&ledger.kinds[kind as usize], ns));
                let of_thread = of_hop.filter(|(kind, _)| kind.hop == hop && is_of_thread(kind));
                if of_thread.clone().map(|(_, ns)| ns).sum::<u64>() == to_ns - from_ns {
                    let others_ns = steps[other as usize].to_ns.saturating_sub(from_ns);
                    let queued_ns: u64 = of_thread.filter(|(kind, _)| kind.queued).map(|(_, ns)| ns).sum();
                    (steps[at].others_ns, steps[at].are_others_apart) = (others_ns, queued_ns >= others_ns);
                }
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
        let mut of_closed: Vec<Vec<(u64, u64, Kind)>> = vec![Vec::new(); servers.threads.len()];
        for (key, from_ns, to_ns, kind) in closed {
            let Some(number) = servers.numbers.get(&key) else { continue };
            let all = &mut of_closed[*number as usize];
            // Several messages wait at once.
            let from_ns = from_ns.max(all.last().map_or(0, |(_, to_ns, _)| *to_ns));
            all.extend((from_ns < to_ns).then_some((from_ns, to_ns, kind)));
        }
        let mut keys = vec![0; servers.threads.len()];
        servers.numbers.iter().for_each(|(key, number)| keys[*number as usize] = *key);
        let mut replay = Replay {
            steps,
            first,
            threads,
            lines: lines.threads,
            servers: servers.threads,
            keys,
            closed: of_closed,
            lead_ns,
            by_itself: None,
        };
        let none = Removals { all: Vec::new(), ends: vec![0; ledger.rows.len()] };
        let nothing = Removal { of_rows: &none, of_wait: &|_, _, _| 0, slower: 1.0 };
        let totals = replay.totals(ledger, &nothing);
        let (mut run, mut recorded) = (totals.clone(), ledger.rows.iter().map(|row| row.total_ns).collect::<Vec<_>>());
        run.sort_unstable();
        recorded.sort_unstable();
        if run != recorded {
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
        of_row.find(|step| step.hop == hop).map(|step| self.keys[self.server_of(step.thread) as usize])
    }

    /// The rows' totals without what is removed.
    pub fn totals(&self, ledger: &Ledger, removal: &Removal<'_>) -> Vec<u64> {
        let mut run = Run {
            now: ledger.rows.iter().map(|row| row.start_ns).collect(),
            had_by: vec![u32::MAX; ledger.rows.len()],
            threads: vec![Progress::default(); self.threads.len()],
            lines: vec![Arrived::default(); self.lines.len()],
            servers: vec![(0, None); self.servers.len()],
            due: BinaryHeap::new(),
        };
        let closed: Vec<Vec<(u64, u64)>> = self.closed.iter().map(|all| still_closed(all, removal)).collect();
        let mut starts = self.first.iter().flatten().copied().peekable();
        loop {
            let due_ns = run.due.peek().map_or(u64::MAX, |Reverse((time_ns, _))| *time_ns);
            let starts_ns = |step: &u32| run.now[self.steps[*step as usize].row as usize];
            if let Some(step) = starts.next_if(|step| starts_ns(step) <= due_ns) {
                self.arrive(step, &mut run);
                continue;
            }
            let Some(Reverse((time_ns, server))) = run.due.pop() else { break };
            let (taken_ns, by) = run.servers[server as usize];
            if taken_ns > time_ns {
                continue;
            }
            let threads = &self.servers[server as usize];
            let mut next: Option<Ready> = None;
            for thread in threads {
                let Some(ready) = self.ready(*thread, time_ns, removal, &mut run) else { continue };
                if Some(*thread) == by && ready.since_ns <= time_ns {
                    next = Some(ready);
                    break;
                }
                next = Some(next.map_or(ready, |next| next.min(ready)));
            }
            let Some(ready) = next else { continue };
            if ready.since_ns > time_ns {
                run.due.push(Reverse((ready.since_ns, server)));
                continue;
            }
            let step = &self.steps[ready.step as usize];
            // A thread alone begins when it has the message: another one may come first until then.
            let turn_ns = if threads.len() > 1 { time_ns } else { ready.since_ns };
            let ends_ns = self.ends(step, ready, turn_ns, ledger, removal, &run);
            let free_ns = run.threads[ready.thread as usize].free_ns.unwrap_or(0);
            let looks_ns = free_ns.saturating_add(removal.slowed(self.threads[ready.thread as usize].trailing_ns));
            let begins_ns = ends_ns.saturating_sub(removal.slowed(step.in_hand_ns(removal))).max(looks_ns.min(ends_ns));
            if threads.len() == 1 && step.is_handed && begins_ns > time_ns {
                run.due.push(Reverse((begins_ns, server)));
                continue;
            }
            let ends_ns = open_at(&closed[server as usize], turn_ns, ends_ns);
            self.done(ready, ends_ns, &mut run);
        }
        let total = |(row, end): (&Row, u64)| {
            let ns = end.saturating_sub(row.start_ns);
            self.by_itself.as_ref().map_or(ns, |of| mapped(ns, &of.run, &of.recorded))
        };
        ledger.rows.iter().zip(run.now).map(total).collect()
    }

    /// The row comes to the step.
    fn arrive(&self, at: u32, run: &mut Run) {
        let step = &self.steps[at as usize];
        let (row, line) = (step.row as usize, self.threads[step.thread as usize].line);
        let comes_ns = run.now[row];
        let wakes = |thread: u32, run: &mut Run| {
            let server = self.server_of(thread);
            // A server that is taken looks when it is free.
            if run.servers[server as usize].0 <= comes_ns {
                run.due.push(Reverse((comes_ns, server)));
            }
        };
        if step.is_handed {
            run.lines[line as usize].coming.push(Reverse((comes_ns, at)));
            self.lines[line as usize].iter().for_each(|thread| wakes(*thread, run));
            return;
        }
        // Who of a pool has it goes on with it.
        let had_by = run.had_by[row];
        let has_it = self.threads.get(had_by as usize).is_some_and(|thread| thread.line == line);
        let thread = if has_it { had_by } else { step.thread };
        let progress = &mut run.threads[thread as usize];
        match step.follows && thread == had_by {
            true => progress.goes_on = Some(at),
            false => progress.own.coming.push(Reverse((comes_ns, at))),
        }
        wakes(thread, run);
    }

    /// A step is done by then.
    fn done(&self, ready: Ready, ends_ns: u64, run: &mut Run) {
        let Ready { step: at, thread, .. } = ready;
        let step = &self.steps[at as usize];
        let server = self.server_of(thread);
        let progress = &mut run.threads[thread as usize];
        if progress.goes_on == Some(at) {
            progress.goes_on = None;
        } else if step.is_handed {
            run.lines[self.threads[thread as usize].line as usize].there.pop();
        } else {
            progress.own.there.pop();
        }
        progress.free_ns = progress.free_ns.max(Some(ends_ns));
        run.now[step.row as usize] = ends_ns;
        run.had_by[step.row as usize] = thread;
        run.servers[server as usize] = (ends_ns, Some(thread));
        run.due.push(Reverse((ends_ns, server)));
        if let Some(next) = step.next {
            self.arrive(next, run);
        }
    }

    fn server_of(&self, thread: u32) -> u32 {
        self.threads[thread as usize].server
    }

    /// A thread's next step, and since when the thread could run for it: what it waits it leaves its CPU to others. A message that it has
    /// begun it ends.
    fn ready(&self, thread: u32, time_ns: u64, removal: &Removal<'_>, run: &mut Run) -> Option<Ready> {
        let progress = &mut run.threads[thread as usize];
        let handed = run.lines[self.threads[thread as usize].line as usize].first(time_ns);
        let step = progress.goes_on.or_else(|| [handed, progress.own.first(time_ns)].into_iter().flatten().min())?;
        let of = &self.steps[step as usize];
        let since_ns = run.now[of.row as usize].max(progress.free_ns.unwrap_or(0)).saturating_add(of.off_ns(removal));
        Some(Ready { since_ns, step, thread })
    }

    /// When a step ends of which the turn comes at that moment.
    fn ends(&self, step: &Step, ready: Ready, time_ns: u64, ledger: &Ledger, removal: &Removal<'_>, run: &Run) -> u64 {
        let row = step.row as usize;
        let arrives_ns = run.now[row];
        let off_ns = step.off_ns(removal);
        let (since_ns, time_ns) = (ready.since_ns - off_ns, time_ns - off_ns);
        // The thread's latest stamp in this run.
        let last_ns = run.threads[ready.thread as usize].free_ns;
        let removed = step.removed(removal);
        let Some(wait) = step.wait else {
            let free_ns = last_ns.unwrap_or(0);
            let (whole, gone) = (step.to_ns - step.from_ns, removed.own_ns + removed.behind_ns + step.away_ns);
            if step.others_ns > 0 {
                let gone = match step.are_others_apart {
                    true => removed.own_ns + step.away_ns,
                    false => gone.saturating_sub(step.others_ns),
                };
                let left = (whole - step.others_ns).saturating_sub(gone);
                let ends_ns = arrives_ns.max(free_ns).saturating_add(removal.slowed(left));
                return ends_ns.saturating_add(time_ns - since_ns);
            }
            // The thread may have had nothing to do when the message came, and have something in this run: then it has this in hand after that.
            let in_hand = step.in_hand_ns(removal) * u64::from(step.before_ns <= step.from_ns);
            let alone = arrives_ns.saturating_add(removal.slowed(whole.saturating_sub(gone)));
            let ends_ns = alone.max(free_ns.saturating_add(removal.slowed(in_hand)));
            return ends_ns.saturating_add(time_ns - since_ns);
        };
        let wait = &ledger.rows[row].waits()[wait as usize].1;
        let taken_ns = wait.until_ns.max(step.from_ns);
        let left = step.to_ns.saturating_sub(taken_ns).saturating_sub(removed.own_ns + step.away_ns);
        // Others may have had their turn first.
        let turn_ns = (time_ns > since_ns).then_some(time_ns);
        let free_ns = free(wait, last_ns, turn_ns, removal);
        let lead = self.lead_ns.get(&step.hop).copied().unwrap_or(0);
        let lead = if arrives_ns <= free_ns { 0 } else { removal.slowed(lead) };
        arrives_ns.max(free_ns).saturating_add(lead).saturating_add(removal.slowed(left))
    }
}

/// Where a value of one distribution lies in the other, between the values of the nearest ranks. Both ascend and are equally long.
fn mapped(ns: u64, from: &[u64], to: &[u64]) -> u64 {
    let in_ratio = |to: u64, from: u64| {
        u64::try_from(u128::from(ns) * u128::from(to) / u128::from(from.max(1))).unwrap_or(u64::MAX)
    };
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
        (None, Some(least)) => in_ratio(to[0], *least),
        (Some(most), None) => in_ratio(to[most], from[most]),
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

/// When the thread is free for the message in this run: so long after its latest stamp, or after its turn came, as it did something else
/// before it took it, less what is removed of that and the time that the CPU was another's; or as recorded, where it was busy with
/// something else.
fn free(wait: &Wait, last_ns: Option<u64>, turn_ns: Option<u64>, removal: &Removal<'_>) -> u64 {
    let removed: u64 =
        wait.pieces.iter().map(|(kind, ns, beyond)| (removal.of_wait)(kind, *ns, *beyond).min(*ns)).sum();
    let removed = removed + wait.away_ns;
    match last_ns.filter(|_| wait.is_linked) {
        None => wait.until_ns.saturating_sub(removed).max(wait.since_ns).max(turn_ns.unwrap_or(0)),
        Some(last_ns) => {
            let took_ns = (wait.until_ns - wait.since_ns).saturating_sub(removed);
            turn_ns.unwrap_or(last_ns).saturating_add(removal.slowed(took_ns))
        }
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
        ends_ns = ends_ns.saturating_add(to_ns - (*start_ns).max(from_ns));
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
        let replay = Replay::of(&ledger, passage, |tid| tid, |tid| tid, |_| 0, Vec::new()).unwrap();
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
            (vec![(10, 1_000), (11, 6_230), (11, 6_330)], vec![(0, behind(6_220, 6_220))]),
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
