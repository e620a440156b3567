//! Futex waits: which of them are CPython's GIL, and which addresses are locks.
//!
//! One wait for the GIL is many futex waits: the waiter's condition variable times out every switch
//! interval (5 ms by default), asks the holder to let go, and waits again. Waits on the runtime's
//! addresses that follow each other closely are therefore one.

use foldhash::{HashMap, HashSet};
use taut_recording::{
    futex::{self, Owner},
    host_numbers::{host_of, thread_of},
};

use crate::{
    calls::Call,
    cpu::{HARD_IRQ, SOFT_IRQ},
    objects::Objects,
    timeline::{Segment, SystemCall, ThreadState},
    timelines::Timelines,
};

/// Two futex waits of one thread on the runtime within this time are one wait for the GIL.
const MERGE_NS: u64 = 200_000;
/// What the futex calls of the recorded threads say.
#[derive(Default)]
pub struct Futexes {
    gil: HashMap<i32, Vec<GilWait>>,
    /// By process, in order of time: when a thread gave its GIL away, and which.
    given: HashMap<i32, Vec<(u64, i32)>>,
    /// (process, address) that are locks by what threads do with them.
    locks: HashSet<(i32, u64)>,
    /// The same of priority-inheriting ones that were freed while others waited: in order of time, when and by whom.
    freed: HashMap<(i32, u64), Vec<(u64, i32)>>,
}

/// What speaks for an address being a lock, and what against.
#[derive(Default)]
struct Evidence {
    /// Waits that the waiting thread followed by a wake of its own: a thread that waits for a lock releases it afterwards.
    released: u32,
    /// Waits that it followed by another wait: a thread that waits for a signal does not give it.
    waited_again: u32,
    /// A wait that expected a value which no contended mutex has, or a wake of all: a mutex wakes one.
    is_other: bool,
    /// The kernel hands it over from its owner: a priority-inheriting mutex.
    is_handed_over: bool,
    /// A wait that expected a value which names the lock's owner. Who then has it may free it without a call.
    has_owner: bool,
}

impl Evidence {
    /// `has_values`: whether the recording has the values that waits expect. In recordings of before that only what the
    /// waiting threads do afterwards speaks for a lock.
    fn is_lock(&self, has_values: bool) -> bool {
        let is_held = match has_values {
            true => !self.is_other && (self.has_owner || self.released > 0),
            false => self.released > self.waited_again,
        };
        self.is_handed_over || is_held
    }
}

/// One wait for the GIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilWait {
    /// When it began.
    pub start_ns: u64,
    /// The last wake: the GIL was free for it. What follows is the run queue.
    pub woken_ns: u64,
    /// The thread that released it; 0 when an interrupt (the time-out) woke the waiter and no other is known.
    pub holder: i32,
}

impl Futexes {
    /// What all calls say.
    pub fn of(timelines: &Timelines, objects: &Objects) -> Futexes {
        let mut futexes = Futexes::default();
        let mut evidence: HashMap<(i32, u64), Evidence> = HashMap::default();
        for (tid, timeline) in &timelines.threads {
            let Some(pid) = objects.pid(*tid) else { continue };
            let calls = timeline.calls.iter().filter(|c| c.is_futex_wait() && objects.is_gil(pid, c.arg0));
            let stretches = merged(calls);
            for &(from, to) in &stretches {
                let wakes = timeline.between(from, to.min(timelines.end_ns)).map(|(at, ..)| timeline.segments[at]);
                let given = wakes.filter(|wake| wake.state == ThreadState::Woken && is_by_thread(wake, *tid));
                let of_process = given.filter(|wake| objects.pid(wake.other) == Some(pid));
                futexes.given.entry(pid).or_default().extend(of_process.map(|wake| (wake.start_ns, wake.other)));
            }
            let waits = stretches.into_iter().filter_map(|(from, to)| gil_wait(*tid, from, to, timelines, objects));
            let waits: Vec<GilWait> = waits.collect();
            if !waits.is_empty() {
                futexes.gil.insert(*tid, waits);
            }
            gather(pid, &timeline.calls, objects, &mut evidence);
            for call in timeline.calls.iter().filter(|call| is_unlock(call)) {
                futexes.freed.entry((pid, call.arg0)).or_default().push((call.start_ns, *tid));
            }
        }
        futexes.given.values_mut().for_each(|given| given.sort_unstable());
        futexes.freed.values_mut().for_each(|freed| freed.sort_unstable());
        // Every wake says how many it wakes.
        let has_values = timelines.threads.values().flat_map(|t| &t.calls).any(|call| is_wake(call) && call.value > 0);
        let locks = evidence.into_iter().filter(|(_, found)| found.is_lock(has_values));
        futexes.locks = locks.map(|(place, _)| place).collect();
        futexes
    }

    /// The wait for the GIL that covers this moment, or the next one before `until_ns`.
    pub fn gil_wait(&self, tid: i32, time_ns: u64, until_ns: u64) -> Option<&GilWait> {
        let waits = self.gil.get(&tid)?;
        let at = waits.partition_point(|w| w.woken_ns <= time_ns);
        waits.get(at).filter(|w| w.start_ns < until_ns)
    }

    /// Who had the GIL while a thread of the process waited for it in that stretch: until when, and who. Others may have waited before it
    /// and have had their turns: who gives it away has had it since another one did.
    pub fn gil_holders(&self, pid: i32, tid: i32, wait: &GilWait, (from_ns, to_ns): (u64, u64)) -> Vec<(u64, i32)> {
        let given = self.given.get(&pid).map_or(&[][..], Vec::as_slice);
        let given = &given[given.partition_point(|(time_ns, _)| *time_ns <= from_ns)..];
        let within = given.iter().take_while(|(time_ns, _)| *time_ns < wait.woken_ns);
        let mut holders: Vec<(u64, i32)> = Vec::new();
        let last = (wait.woken_ns, wait.holder);
        for (until_ns, holder) in within.filter(|(_, holder)| *holder != tid).copied().chain([last]) {
            let until_ns = until_ns.min(to_ns);
            match holders.last_mut() {
                Some(known) if known.1 == holder => known.0 = until_ns,
                Some(known) if known.0 == to_ns => break,
                _ => holders.push((until_ns, holder)),
            }
        }
        holders
    }

    /// The wait for the GIL that ended with this wake.
    pub fn gil_wait_ended(&self, tid: i32, woken_ns: u64) -> Option<&GilWait> {
        let waits = self.gil.get(&tid)?;
        let at = waits.partition_point(|w| w.woken_ns < woken_ns);
        waits.get(at).filter(|w| w.woken_ns == woken_ns)
    }

    /// Whether the address is a lock though it was not registered.
    pub fn is_lock(&self, pid: i32, call: &SystemCall) -> bool {
        self.locks.contains(&(pid, call.arg0))
    }

    /// Who had the priority-inheriting lock at that moment of a call that waits for it: who frees it next; 0: that is not seen.
    pub fn owner(&self, pid: i32, call: &SystemCall, time_ns: u64) -> i32 {
        let freed = self.freed.get(&(pid, call.arg0)).map_or(&[][..], Vec::as_slice);
        let next = freed.get(freed.partition_point(|(freed_ns, _)| *freed_ns < time_ns));
        next.filter(|(freed_ns, _)| *freed_ns <= call.end_ns).map_or(0, |(_, tid)| *tid)
    }
}

impl SystemCall {
    /// Whether it waits for a futex, and does not wake who waits.
    pub fn is_futex_wait(&self) -> bool {
        self.is_futex_lock() || self.id.kind() == Call::Futex && futex::is_wait(self.arg1)
    }

    /// Whether it takes a priority-inheriting lock that another thread has. While that one runs, the kernel does not let this one sleep.
    pub fn is_futex_lock(&self) -> bool {
        self.id.kind() == Call::Futex && futex::is_lock(self.arg1)
    }
}

fn is_unlock(call: &SystemCall) -> bool {
    call.id.kind() == Call::Futex && futex::is_unlock(call.arg1)
}

fn is_wake(call: &SystemCall) -> bool {
    call.id.kind() == Call::Futex && futex::is_wake(call.arg1)
}

/// Stretches from the first call's start to the last one's end, of calls that follow each other closely.
fn merged<'a>(calls: impl Iterator<Item = &'a SystemCall>) -> Vec<(u64, u64)> {
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    for call in calls {
        match stretches.last_mut() {
            Some((_, end)) if call.start_ns.saturating_sub(*end) < MERGE_NS => *end = call.end_ns,
            _ => stretches.push((call.start_ns, call.end_ns)),
        }
    }
    stretches
}

/// `None` when the thread never slept in it.
fn gil_wait(tid: i32, from_ns: u64, to_ns: u64, timelines: &Timelines, objects: &Objects) -> Option<GilWait> {
    let timeline = timelines.threads.get(&tid)?;
    let end_ns = to_ns.min(timelines.end_ns);
    let mut wakes =
        timeline.between(from_ns, end_ns).filter(|(at, _, _)| timeline.segments[*at].state == ThreadState::Woken);
    let (last, woken_ns, _) = wakes.next_back()?;
    let wake = timeline.segments[last];
    let holder =
        if is_by_thread(&wake, tid) { wake.other } else { busiest_sibling(tid, from_ns, woken_ns, timelines, objects) };
    Some(GilWait { start_ns: from_ns, woken_ns, holder })
}

/// Whether another thread woke this one, by its own doing.
fn is_by_thread(wake: &Segment, tid: i32) -> bool {
    wake.flags & (HARD_IRQ | SOFT_IRQ) == 0 && wake.other != tid
}

/// The thread of the same process that ran most meanwhile.
fn busiest_sibling(tid: i32, from_ns: u64, to_ns: u64, timelines: &Timelines, objects: &Objects) -> i32 {
    let pid = objects.pid(tid);
    let ran = (0..timelines.cpus.len()).flat_map(|cpu| timelines.ran(cpu as u16, from_ns, to_ns));
    let siblings = ran.filter(|(other, _)| *other != tid && *other != 0 && objects.pid(*other) == pid);
    siblings.max_by_key(|(_, ns)| *ns).map_or(0, |(other, _)| other)
}

/// What a thread's calls tell of the addresses on which it waits. The operation tells nothing: glibc's mutexes wait by
/// FUTEX_WAIT, and so do semaphores and `std::atomic::wait`.
fn gather(pid: i32, calls: &[SystemCall], objects: &Objects, evidence: &mut HashMap<(i32, u64), Evidence>) {
    let mut waiting: HashSet<u64> = HashSet::default();
    for call in calls {
        if call.is_futex_wait() {
            let found = evidence.entry((pid, call.arg0)).or_default();
            found.is_handed_over |= futex::is_lock(call.arg1);
            found.is_other |= !futex::is_contended(call.value);
            found.has_owner |= futex::owner(call.value).is_some_and(|owner| is_known(owner, pid, objects));
            found.waited_again += u32::from(!waiting.insert(call.arg0));
        } else if is_wake(call) {
            let found = evidence.entry((pid, call.arg0)).or_default();
            found.is_other |= call.value > 1;
            found.released += u32::from(waiting.remove(&call.arg0));
        }
    }
}

/// Whether it is no other number: of a process in a container, threads have other numbers outside.
fn is_known(owner: Owner, pid: i32, objects: &Objects) -> bool {
    match owner {
        Owner::Some => true,
        Owner::Thread(number) => objects.is_recorded(thread_of(host_of(pid), number)),
    }
}
