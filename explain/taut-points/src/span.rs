//! What each thread was doing when, as sources know it: which message it handled, which work and which lock it was at.

use foldhash::HashMap;
use taut_recording::Kind;
use taut_timelines::{Sequence, partition_from};

use crate::point::Pass;

/// Passes and marks of each thread in order of time.
#[derive(Default)]
pub struct Spans {
    stamps: HashMap<i32, Sequence<Stamped>>,
    work: HashMap<i32, Vec<Mark>>,
    /// The same from begin to end, in order of their begin.
    works: HashMap<i32, Vec<Work>>,
    locks: HashMap<i32, Vec<LockWait>>,
    /// Where stamps are missing.
    holes: Vec<Hole>,
}

/// Between these moments events of sources may be missing: of one thread, or of any.
#[derive(Clone, Copy, Debug)]
pub struct Hole {
    /// The thread, if it is known.
    pub tid: Option<i32>,
    /// From when on.
    pub since_ns: u64,
    /// Until when.
    pub until_ns: u64,
}

/// A message passed a point in this thread.
#[derive(Clone, Copy, Debug)]
struct Stamped {
    time_ns: u64,
    id: u64,
}

/// What a thread said of itself, apart from messages.
#[derive(Clone, Debug)]
pub struct Mark {
    /// CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Work begins or ends, or a lock is awaited or taken.
    pub kind: Kind,
    /// Of the work or the lock.
    pub name: String,
}

/// From, to, and which message.
type Stretch = (u64, u64, u64);

/// What a thread is busy with, other than the message at hand.
#[derive(Clone, Debug, PartialEq)]
pub enum BusyWith {
    /// With this message.
    Message(u64),
    /// Marked work.
    Work(String),
}

/// Marked work from its begin to its end.
#[derive(Clone, Debug)]
struct Work {
    start_ns: u64,
    end_ns: u64,
    /// Place of the mark that has its name.
    mark: usize,
    /// Place of the work in which it lies.
    parent: Option<usize>,
}

struct LockWait {
    start_ns: u64,
    end_ns: u64,
    name: String,
}

impl Spans {
    /// Takes a mark of a thread.
    pub fn mark(&mut self, tid: i32, mark: Mark) {
        self.work.entry(tid).or_default().push(mark);
    }

    /// Puts everything in order: what was marked, where threads had messages by `passes`, and where some events are missing.
    pub(crate) fn settle(&mut self, passes: &[Pass], holes: Vec<Hole>) {
        for pass in passes.iter().filter(|pass| pass.point.is_pass()) {
            let stamped = Stamped { time_ns: pass.time_ns, id: pass.message };
            self.stamps.entry(pass.thread).or_default().push(stamped);
        }
        self.stamps.values_mut().for_each(|all| all.sort_by_key(|s| s.time_ns));
        self.work.values_mut().for_each(|all| all.sort_by_key(|m| m.time_ns));
        self.works = self.work.iter().map(|(tid, all)| (*tid, works(all))).collect();
        let locks = self.work.iter().map(|(tid, all)| (*tid, lock_waits(all)));
        self.locks = locks.filter(|(_, waits)| !waits.is_empty()).collect();
        self.holes = holes;
    }

    /// Of these messages alone, for a chain whose threads are at others, too.
    pub fn of_messages(passes: impl Iterator<Item = Pass>) -> Spans {
        let mut spans = Spans::default();
        let passes: Vec<Pass> = passes.collect();
        spans.settle(&passes, Vec::new());
        spans
    }

    /// The same marks and holes, with these messages alone.
    pub(crate) fn with_messages(&self, passes: &[Pass]) -> Spans {
        let mut spans = Spans { work: self.work.clone(), ..Spans::default() };
        spans.settle(passes, self.holes.clone());
        spans
    }

    /// Whether no thread stamped anything that this holds.
    pub fn is_empty(&self) -> bool {
        self.stamps.is_empty() && self.work.is_empty()
    }

    /// Whether it is known when threads had messages.
    pub fn has_stamps(&self) -> bool {
        !self.stamps.is_empty()
    }

    /// Whether any work of the thread is marked.
    pub fn has_work(&self, tid: i32) -> bool {
        self.works.get(&tid).is_some_and(|works| !works.is_empty())
    }

    /// Whether waits for any lock are marked.
    pub fn has_locks(&self) -> bool {
        !self.locks.is_empty()
    }

    /// Whether waits for that lock are marked.
    pub fn has_lock(&self, name: &str) -> bool {
        self.locks.values().flatten().any(|wait| wait.name == name)
    }

    /// Where stamps may be missing within these bounds.
    pub fn holes_between(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = Hole> + '_ {
        self.holes.iter().filter(move |hole| hole.since_ns < to_ns && from_ns < hole.until_ns).copied()
    }

    /// Until when the thread was busy with something else that it had begun before it could take a message
    /// of `from_ns`, and with what: its last stamp of another message strictly between, or the end of
    /// marked work that was under way at `from_ns`. Work in which it stamps another message is for that one.
    pub fn busy_until(&self, tid: i32, id: u64, from_ns: u64, to_ns: u64) -> Option<(u64, BusyWith)> {
        let foreign = self.between(tid, from_ns, to_ns).iter().rev().find(|s| s.id != id);
        match (foreign, self.work_ends(tid, from_ns, to_ns)) {
            (Some(s), work) => Some((work.map_or(0, |(until_ns, _)| until_ns).max(s.time_ns), BusyWith::Message(s.id))),
            (None, work) => work.map(|(until_ns, name)| (until_ns, BusyWith::Work(name.to_owned()))),
        }
    }

    /// Of marked work that was under way at `from_ns` and is over before the thread stamps another message, the last to end: when, and
    /// which.
    pub fn work_first(&self, tid: i32, id: u64, from_ns: u64, to_ns: u64) -> Option<(u64, &str)> {
        let foreign_ns = self.between(tid, from_ns, to_ns).iter().find(|s| s.id != id).map_or(to_ns, |s| s.time_ns);
        self.work_ends(tid, from_ns, to_ns).filter(|(until_ns, _)| *until_ns <= foreign_ns)
    }

    /// Of marked work that was under way at `from_ns`, the last to end before `to_ns`: when, and its name.
    fn work_ends(&self, tid: i32, from_ns: u64, to_ns: u64) -> Option<(u64, &str)> {
        let ended = self.open_work(tid, from_ns).filter(|work| work.end_ns < to_ns);
        ended.max_by_key(|work| work.end_ns).map(|work| (work.end_ns, self.name_of(tid, work)))
    }

    /// Whether the thread is at marked work at that moment.
    pub fn is_at_work(&self, tid: i32, time_ns: u64) -> bool {
        self.open_work(tid, time_ns).next().is_some()
    }

    /// The marked work that the thread is at at that moment, of what begins and ends strictly between these bounds the outermost; and
    /// until when that is so at least.
    pub fn work_at(&self, tid: i32, time_ns: u64, (from_ns, to_ns): (u64, u64)) -> (Option<&str>, u64) {
        let works = self.works.get(&tid).map_or(&[][..], Vec::as_slice);
        let next = works.partition_point(|work| work.start_ns <= time_ns);
        let parent = |work: &&Work| work.parent.map(|at| &works[at]);
        let around = std::iter::successors(next.checked_sub(1).map(|at| &works[at]), parent);
        let within = around.take_while(|work| work.start_ns > from_ns);
        let outermost = within.filter(|work| time_ns < work.end_ns && work.end_ns < to_ns).last();
        match outermost {
            Some(work) => (Some(self.name_of(tid, work)), work.end_ns),
            None => (None, works.get(next).map_or(u64::MAX, |work| work.start_ns)),
        }
    }

    /// Stretches between two neighbouring stamps of one and the same other message: (from, to, which).
    pub fn foreign_stretches(&self, tid: i32, id: u64, from_ns: u64, to_ns: u64) -> Vec<Stretch> {
        let pairs = self.between(tid, from_ns, to_ns).windows(2);
        let pairs = pairs.filter(|pair| pair[0].id == pair[1].id && pair[0].id != id);
        pairs.map(|pair| (pair[0].time_ns, pair[1].time_ns, pair[0].id)).collect()
    }

    /// What a thread that has several messages at once spends on those that it took before this one: (from, to, which); and since when
    /// it has the first of them. `None`: on none.
    pub fn taken_before(&self, tid: i32, id: u64, from_ns: u64, to_ns: u64) -> Option<(u64, Vec<Stretch>)> {
        /// So many stamps hold all messages that are taken at once.
        const LOOK_BACK: usize = 256;
        let stamps = self.stamps.get(&tid)?;
        let first = stamps.partition_point(|s| s.time_ns <= from_ns);
        let before = &stamps[first.saturating_sub(LOOK_BACK)..first];
        let (mut since_ns, mut at_ns, mut stretches) = (from_ns, from_ns, Vec::new());
        for other in self.between(tid, from_ns, to_ns).iter().filter(|s| s.id != id) {
            if let Some(taken) = before.iter().rev().find(|s| s.id == other.id) {
                stretches.push((at_ns, other.time_ns, other.id));
                (since_ns, at_ns) = (since_ns.min(taken.time_ns), other.time_ns);
            }
        }
        (!stretches.is_empty()).then_some((since_ns, stretches))
    }

    /// Which messages the thread handles from `from_ns` to `until_ns`, in order of time. Between the stamps of two messages it
    /// has the second one already, or, where it stamps on receipt, the first one still.
    pub fn handled(&self, tid: i32, from_ns: u64, until_ns: u64, on_receipt: bool) -> Vec<Stretch> {
        let Some(stamps) = self.stamps.get(&tid) else { return Vec::new() };
        let first = stamps.partition_point(|s| s.time_ns <= from_ns);
        let mut handled: Vec<Stretch> = Vec::new();
        let mut at = from_ns;
        for next in first..=stamps.len() {
            let end = stamps.get(next).map_or(until_ns, |s| s.time_ns.min(until_ns));
            let (before, after) = (next.checked_sub(1).map(|n| stamps[n].id), stamps.get(next).map(|s| s.id));
            if let Some(id) = if on_receipt { before.or(after) } else { after.or(before) }
                && at < end
            {
                match handled.last_mut() {
                    Some(last) if last.2 == id => last.1 = end,
                    _ => handled.push((at, end, id)),
                }
            }
            at = at.max(end);
            if at >= until_ns {
                break;
            }
        }
        handled
    }

    /// The message between two of the stamps of which the thread is at that moment.
    pub fn within(&self, tid: i32, time_ns: u64) -> Option<u64> {
        let stamps = self.stamps.get(&tid)?;
        let next = stamps.partition_point(|s| s.time_ns <= time_ns);
        let before = stamps[next.checked_sub(1)?];
        stamps.get(next).filter(|after| after.id == before.id).map(|after| after.id)
    }

    /// The thread's first stamp after that moment that is of another message.
    pub fn next_foreign(&self, tid: i32, id: u64, time_ns: u64) -> Option<u64> {
        let stamps = self.stamps.get(&tid)?;
        stamps[stamps.partition_point(|s| s.time_ns <= time_ns)..].iter().find(|s| s.id != id).map(|s| s.time_ns)
    }

    /// Stretches in which the thread waited for a lock by its own marks: (from, to, which).
    pub fn lock_waits(&self, tid: i32, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (u64, u64, &str)> {
        let all = self.locks.get(&tid).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|w| w.end_ns <= from_ns);
        let overlapping = all[first..].iter().take_while(move |w| w.start_ns < to_ns);
        overlapping.map(move |w| (w.start_ns.max(from_ns), w.end_ns.min(to_ns), w.name.as_str()))
    }

    /// "in work NAME" or "with message N" at that moment, as far as stamps say.
    pub fn doing(&self, tid: i32, time_ns: u64) -> Option<String> {
        if let Some(work) = self.open_work(tid, time_ns).next() {
            return Some(format!("in {}", self.name_of(tid, work)));
        }
        let stamps = self.stamps.get(&tid)?;
        let last = stamps[..stamps.partition_point(|s| s.time_ns <= time_ns)].last()?;
        Some(format!("its last stamp was of message {}", last.id))
    }

    /// Marked work under way at that moment, the innermost first.
    fn open_work(&self, tid: i32, time_ns: u64) -> impl Iterator<Item = &Work> {
        /// Work without an end that began before so many others is taken to have ended.
        const LOOK_BACK: usize = 64;
        /// Work is looked for in so many that enclose each other.
        const MOST: usize = 256;
        let works = self.works.get(&tid).map_or(&[][..], Vec::as_slice);
        let next = works.partition_point(|work| work.start_ns <= time_ns);
        let around = std::iter::successors(next.checked_sub(1), |at| works[*at].parent).take(MOST);
        let open = around
            .map(move |at| (at, &works[at]))
            .filter(move |(at, work)| time_ns < work.end_ns && (work.end_ns != u64::MAX || at + LOOK_BACK >= next));
        open.map(|(_, work)| work)
    }

    fn name_of(&self, tid: i32, work: &Work) -> &str {
        &self.work[&tid][work.mark].name
    }

    /// Strictly between.
    fn between(&self, tid: i32, from_ns: u64, to_ns: u64) -> &[Stamped] {
        let Some(stamps) = self.stamps.get(&tid) else { return &[] };
        let first = stamps.partition_point(|s| s.time_ns <= from_ns);
        &stamps[first..partition_from(stamps, first, |s| s.time_ns < to_ns)]
    }
}

/// What has no end lasts to the end of all.
fn works(marks: &[Mark]) -> Vec<Work> {
    let mut works: Vec<Work> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (mark, of) in marks.iter().enumerate() {
        match of.kind {
            Kind::Begin => {
                open.push(works.len());
                let parent = open.iter().rev().nth(1).copied();
                works.push(Work { start_ns: of.time_ns, end_ns: u64::MAX, mark, parent });
            }
            Kind::End => {
                if let Some(at) = open.iter().rposition(|work| marks[works[*work].mark].name == of.name) {
                    works[open.remove(at)].end_ns = of.time_ns;
                }
            }
            _ => {}
        }
    }
    works
}

fn lock_waits(marks: &[Mark]) -> Vec<LockWait> {
    let mut waits = Vec::new();
    let mut since: HashMap<&str, u64> = HashMap::default();
    for mark in marks {
        match mark.kind {
            Kind::LockWait => {
                since.insert(&mark.name, mark.time_ns);
            }
            Kind::LockAcquired => {
                if let Some(start_ns) = since.remove(mark.name.as_str()) {
                    waits.push(LockWait { start_ns, end_ns: mark.time_ns, name: mark.name.clone() });
                }
            }
            _ => {}
        }
    }
    waits.sort_by_key(|wait| wait.end_ns);
    waits
}
