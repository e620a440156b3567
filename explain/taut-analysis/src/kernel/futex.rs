//! Futex waits: which of them are CPython's GIL, and which addresses are locks.
//!
//! One wait for the GIL is many futex waits: the waiter's condition variable times out every switch
//! interval (5 ms by default), asks the holder to let go, and waits again. Waits on the runtime's
//! addresses that follow each other closely are therefore one.

use foldhash::{HashMap, HashSet};

use super::{Call, Machine, Objects, State, timeline::SystemCall};

/// Two futex waits of one thread on the runtime within this time are one wait for the GIL.
const MERGE_NS: u64 = 200_000;
/// So often a thread must wait on an address and later wake it itself for the address to be a lock:
/// who waits for a lock releases it afterwards; who waits for a signal does not give it.
const LOCK_EVIDENCE: u32 = 3;

/// Operations of futex(2), without the private and clock bits.
const OPERATION: u64 = 0x7f;
const WAIT: u64 = 0;
const WAKE: u64 = 1;
const LOCK_PI: u64 = 6;
const WAIT_BITSET: u64 = 9;
const WAKE_BITSET: u64 = 10;
const LOCK_PI2: u64 = 13;

/// What the futex calls of the recorded threads say.
#[derive(Default)]
pub(crate) struct Futexes {
    gil: HashMap<i32, Vec<GilWait>>,
    /// (process, address) that behave like locks.
    locks: HashSet<(i32, u64)>,
}

/// One wait for the GIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GilWait {
    pub start_ns: u64,
    /// The last wake: the GIL was free for it. What follows is the run queue.
    pub woken_ns: u64,
    /// Who let it go; 0 when an interrupt (the time-out) woke the waiter and nobody else is known.
    pub holder: i32,
}

impl Futexes {
    pub fn of(machine: &Machine, objects: &Objects) -> Futexes {
        let mut futexes = Futexes::default();
        for (tid, timeline) in &machine.threads {
            let Some(pid) = objects.pid(*tid) else { continue };
            let waits = || timeline.calls.iter().filter(|c| is_wait(c));
            let waits_gil: Vec<&SystemCall> = waits().filter(|c| objects.is_gil(pid, c.arg0)).collect();
            let merged = merged(&waits_gil).filter_map(|(from, to)| gil_wait(*tid, from, to, machine, objects));
            let merged: Vec<GilWait> = merged.collect();
            if !merged.is_empty() {
                futexes.gil.insert(*tid, merged);
            }
            futexes.locks.extend(locks(&timeline.calls).map(|address| (pid, address)));
        }
        futexes
    }

    /// The wait for the GIL that covers this moment, or the next one before `until_ns`.
    pub fn gil_wait(&self, tid: i32, time_ns: u64, until_ns: u64) -> Option<&GilWait> {
        let waits = self.gil.get(&tid)?;
        let at = waits.partition_point(|w| w.woken_ns <= time_ns);
        waits.get(at).filter(|w| w.start_ns < until_ns)
    }

    /// The wait for the GIL that ended with this wake.
    pub fn gil_wait_ended(&self, tid: i32, woken_ns: u64) -> Option<&GilWait> {
        let waits = self.gil.get(&tid)?;
        let at = waits.partition_point(|w| w.woken_ns < woken_ns);
        waits.get(at).filter(|w| w.woken_ns == woken_ns)
    }

    /// Whether the address behaves like a lock though nobody registered it.
    pub fn is_lock(&self, pid: i32, call: &SystemCall) -> bool {
        matches!(call.arg1 & OPERATION, WAIT | LOCK_PI | LOCK_PI2) || self.locks.contains(&(pid, call.arg0))
    }
}

pub(crate) fn is_wait(call: &SystemCall) -> bool {
    call.id.kind() == Call::Futex && matches!(call.arg1 & OPERATION, WAIT | WAIT_BITSET | LOCK_PI | LOCK_PI2)
}

fn is_wake(call: &SystemCall) -> bool {
    call.id.kind() == Call::Futex && matches!(call.arg1 & OPERATION, WAKE | WAKE_BITSET)
}

/// Stretches from the first call's start to the last one's end, of calls that follow each other closely.
fn merged(calls: &[&SystemCall]) -> impl Iterator<Item = (u64, u64)> {
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    for call in calls {
        match stretches.last_mut() {
            Some((_, end)) if call.start_ns.saturating_sub(*end) < MERGE_NS => *end = call.end_ns,
            _ => stretches.push((call.start_ns, call.end_ns)),
        }
    }
    stretches.into_iter()
}

/// `None` when the thread never slept in it.
fn gil_wait(tid: i32, from_ns: u64, to_ns: u64, machine: &Machine, objects: &Objects) -> Option<GilWait> {
    let timeline = machine.threads.get(&tid)?;
    let end_ns = to_ns.min(machine.end_ns);
    let mut wakes = timeline.between(from_ns, end_ns).filter(|(at, _, _)| timeline.segments[*at].state == State::Woken);
    let (last, woken_ns, _) = wakes.next_back()?;
    let wake = timeline.segments[last];
    let is_waker = wake.flags & (super::machine::HARD_IRQ | super::machine::SOFT_IRQ) == 0 && wake.other != tid;
    let holder = if is_waker { wake.other } else { busiest_sibling(tid, from_ns, woken_ns, machine, objects) };
    Some(GilWait { start_ns: from_ns, woken_ns, holder })
}

/// The thread of the same process that ran most meanwhile.
fn busiest_sibling(tid: i32, from_ns: u64, to_ns: u64, machine: &Machine, objects: &Objects) -> i32 {
    let pid = objects.pid(tid);
    let ran = (0..machine.cpus.len()).flat_map(|cpu| machine.ran(cpu as u16, from_ns, to_ns));
    let siblings = ran.filter(|(other, _)| *other != tid && *other != 0 && objects.pid(*other) == pid);
    siblings.max_by_key(|(_, ns)| *ns).map_or(0, |(other, _)| other)
}

/// Addresses on which this thread waits and which it wakes itself after its wait.
fn locks(calls: &[SystemCall]) -> impl Iterator<Item = u64> {
    let mut waited: HashSet<u64> = HashSet::default();
    let mut evidence: HashMap<u64, u32> = HashMap::default();
    for call in calls {
        if is_wait(call) {
            waited.insert(call.arg0);
        } else if is_wake(call) && waited.remove(&call.arg0) {
            *evidence.entry(call.arg0).or_default() += 1;
        }
    }
    evidence.into_iter().filter(|(_, n)| *n >= LOCK_EVIDENCE).map(|(address, _)| address)
}
