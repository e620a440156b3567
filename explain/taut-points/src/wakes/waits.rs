//! Waits of a thread: in which call and for what, who ended them, and when the thread went on.

use foldhash::HashMap;
use taut_timelines::{
    Call, CallId, Futexes, HARD_IRQ, Objects, SOFT_IRQ, SystemCall, ThreadState, Timeline, Timelines,
};

/// Operations of futex(2) that wait, without the private and clock bits: WAIT and WAIT_BITSET.
const FUTEX_WAITS: [u32; 2] = [0, WAIT_BITSET];
const WAIT_BITSET: u32 = 9;
/// Flag of clock_nanosleep: until a moment, not for a time.
pub(super) const TIMER_ABSTIME: u64 = 1;
const OPERATION: u32 = 0x7f;
/// The words of both groups of a condition variable (`__g_signals` of glibc's `__pthread_cond_s`), which lie at a multiple of that.
const GROUPS_BYTES: u64 = 8;

/// Where a thread waits: the call, and the descriptor, number of descriptors, futex or kind of sleep that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Site {
    /// `None` where calls are not recorded.
    pub call: Option<CallId>,
    pub object: u64,
}

/// Who ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waker {
    /// A timer that was set to this moment.
    Timer { asked_ns: u64, armed_ns: u64, address: u64, is_relative: bool },
    /// That thread, by what it did at this moment.
    Thread { tid: i32, at_ns: u64 },
    /// None: the moment that it was to sleep until was past.
    Past,
    /// An interrupt: a device, or the network.
    Interrupt,
    /// The recording does not say.
    Unknown,
}

/// A wait in which the thread slept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub site: Site,
    /// Place of its call among the thread's.
    pub call: Option<usize>,
    /// When it began to sleep.
    pub blocked_ns: u64,
    /// When it was woken, the last time where it slept again within the same call.
    pub woken_ns: Option<u64>,
    pub waker: Waker,
    /// When its call returned, or it ran where calls are not recorded.
    pub end_ns: u64,
}

impl Site {
    /// `None` of calls in which nobody waits for work: disks, sending, locks.
    pub fn of(call: &SystemCall) -> Option<Site> {
        let object = match call.id.kind() {
            Call::Sleep if call.id.known_name() == Some("clock_nanosleep") => u64::from(call.arg1) & TIMER_ABSTIME,
            Call::Sleep => 0,
            Call::Futex if FUTEX_WAITS.contains(&(call.arg1 & OPERATION)) => call.arg0,
            Call::Data => call.arg0,
            Call::Poll if call.id.known_name().is_some_and(has_descriptor) => call.arg0,
            Call::Poll => call.id.known_name().map_or(0, |name| descriptors(name, call)),
            Call::Child => 0,
            _ => return None,
        };
        Some(Site { call: Some(call.id), object })
    }

    /// What the call is for.
    pub fn kind(&self) -> Option<Call> {
        self.call.map(CallId::kind)
    }

    /// Whether it is a poll of one descriptor, which stands for several: other threads may wait there, too.
    pub fn is_at_descriptor(&self) -> bool {
        self.kind() == Some(Call::Poll) && self.call.and_then(CallId::known_name).is_some_and(has_descriptor)
    }
}

/// Places at which a thread waits for the same, though their calls differ.
#[derive(Default)]
pub(super) struct Alike {
    /// Condition variables of glibc. A waiter is in one of two groups, and each group has a word: a thread that is notified again and
    /// again waits at both in turn.
    conditions: Vec<u64>,
    /// Futexes at which it waits for a time, whichever it is: CPython makes a lock for each wait of a `threading.Event`, and its address is
    /// chance.
    timed: Vec<u64>,
    /// Polls of other numbers of descriptors wait for something else. Mostly they do not: clients come and go.
    pub are_counts_apart: bool,
}

impl Alike {
    /// Those of which most waits end in time, if there are several, and condition variables.
    pub fn of(waits: &[Wait], timeline: &Timeline) -> Alike {
        let at_futexes = || waits.iter().filter(|wait| wait.site.kind() == Some(Call::Futex));
        let operation = |wait: &Wait| wait.call.map_or(0, |call| timeline.calls[call].arg1 & OPERATION);
        // Programs that have two words of their own side by side mostly wait by another operation than glibc.
        let of_glibc = at_futexes().filter(|wait| operation(wait) == WAIT_BITSET);
        let mut words: Vec<u64> = of_glibc.map(|wait| wait.site.object).collect();
        words.sort_unstable();
        words.dedup();
        let is_first = |pair: &&[u64]| pair[0].is_multiple_of(GROUPS_BYTES) && pair[1] == pair[0] + GROUPS_BYTES / 2;
        let conditions = words.windows(2).filter(is_first).map(|pair| pair[0]).collect();
        let mut alike = Alike { conditions, ..Alike::default() };
        let mut counts: HashMap<u64, (usize, usize)> = HashMap::default();
        for wait in at_futexes() {
            let (timed, all) = counts.entry(alike.site(wait.site).object).or_default();
            *timed += usize::from(matches!(wait.waker, Waker::Timer { .. }));
            *all += 1;
        }
        let mut timed: Vec<u64> =
            counts.into_iter().filter(|(_, (timed, all))| 2 * timed > *all).map(|(address, _)| address).collect();
        timed.sort_unstable();
        alike.timed = if timed.len() > 1 { timed } else { Vec::new() };
        alike
    }

    /// The one place that they are.
    pub fn site(&self, site: Site) -> Site {
        let object = match site.kind() {
            Some(Call::Futex) => {
                let group = site.object & !(GROUPS_BYTES - 1);
                let is_condition = self.conditions.binary_search(&group).is_ok();
                let object = if is_condition { group } else { site.object };
                if self.timed.binary_search(&object).is_ok() { 0 } else { object }
            }
            Some(Call::Poll) if !self.are_counts_apart && !site.is_at_descriptor() => 0,
            _ => site.object,
        };
        Site { object, ..site }
    }
}

/// Whether the first argument says what is waited for; of the others it is an address on the stack.
fn has_descriptor(call: &str) -> bool {
    call.starts_with("epoll")
        || matches!(call, "io_uring_enter" | "semop" | "semtimedop" | "msgrcv" | "mq_timedreceive")
}

/// How many a call is for that waits for several; 0: none.
fn descriptors(name: &str, call: &SystemCall) -> u64 {
    match name {
        "poll" | "ppoll" => call.arg1.into(),
        "select" | "pselect6" => call.arg0,
        _ => 0,
    }
}

/// What a source of points reads of the kernel's events.
#[derive(Clone, Copy)]
pub(super) struct Kernel<'a> {
    pub timelines: &'a Timelines,
    pub objects: &'a Objects,
    pub futexes: &'a Futexes,
    /// Receiving calls of what another host sent, by thread and begin, with the sending ones.
    pub senders: &'a HashMap<(i32, u64), (i32, u64)>,
}

/// Waits of a thread within these bounds, locks apart, in order of time.
pub(super) fn of(tid: i32, timeline: &Timeline, life: (u64, u64), kernel: Kernel<'_>) -> Vec<Wait> {
    let pid = kernel.objects.pid(tid).unwrap_or(tid);
    let mut waits: Vec<Wait> = Vec::new();
    let mut next = timeline.calls.partition_point(|call| call.end_ns <= life.0);
    let first = timeline.segments.partition_point(|segment| segment.start_ns < life.0);
    for at in first..timeline.segments.len() {
        let segment = timeline.segments[at];
        if segment.start_ns >= life.1 {
            break;
        }
        if segment.state != ThreadState::Blocked {
            continue;
        }
        while timeline.calls.get(next).is_some_and(|call| call.end_ns <= segment.start_ns) {
            next += 1;
        }
        let call = timeline.calls.get(next).filter(|call| call.start_ns <= segment.start_ns);
        let site = match call {
            Some(call) if is_lock(pid, call, kernel) => continue,
            Some(call) => match Site::of(call) {
                Some(site) => site,
                None => continue,
            },
            // A page fault, or a call that is not recorded.
            None if kernel.timelines.saw_calls && !timeline.calls.is_empty() => continue,
            None => Site { call: None, object: 0 },
        };
        let mut later = timeline.segments[at + 1..].iter().take_while(|later| later.state != ThreadState::Blocked);
        let Some(runs) = later.find(|later| later.state == ThreadState::Running) else { continue };
        let end_ns = match call {
            // The recording ends within, or a signal interrupted it: it begins again, or its thread ends.
            Some(call) if call.end_ns == u64::MAX || is_interrupted(call) => continue,
            Some(call) => call.end_ns.max(runs.start_ns),
            None => runs.start_ns,
        };
        let woken = timeline.segments.get(at + 1).filter(|woken| woken.state == ThreadState::Woken);
        let woken_ns = woken.map(|woken| woken.start_ns);
        let waker = waker(tid, timeline, at, call, kernel);
        let call = call.map(|_| next);
        match waits.last_mut() {
            Some(last) if call.is_some() && last.call == call => (last.woken_ns, last.waker) = (woken_ns, waker),
            _ => waits.push(Wait { site, call, blocked_ns: segment.start_ns, woken_ns, waker, end_ns }),
        }
    }
    waits
}

/// Whether a signal ended the call that does not wait for one: EINTR, and the kernel's own codes for calls that begin again.
pub(super) fn is_interrupted(call: &SystemCall) -> bool {
    const EINTR: i32 = -4;
    const RESTARTS: std::ops::RangeInclusive<i32> = -516..=-512;
    let awaits_signals = || matches!(call.id.known_name(), Some("pause" | "rt_sigsuspend" | "rt_sigtimedwait"));
    (call.result == EINTR || RESTARTS.contains(&call.result)) && !awaits_signals()
}

fn is_lock(pid: i32, call: &SystemCall, kernel: Kernel<'_>) -> bool {
    call.id.kind() == Call::Futex
        && (kernel.objects.is_gil(pid, call.arg0)
            || kernel.objects.lock_name(pid, call.arg0).is_some()
            || kernel.futexes.is_lock(pid, call))
}

/// Who ended the sleep of that segment.
fn waker(tid: i32, timeline: &Timeline, at: usize, call: Option<&SystemCall>, kernel: Kernel<'_>) -> Waker {
    let Some(wake) = timeline.segments.get(at + 1).filter(|next| next.state == ThreadState::Woken) else {
        return Waker::Unknown;
    };
    let blocked_ns = timeline.segments[at].start_ns;
    let by_thread = Some(wake.other).filter(|other| *other != 0 && *other != tid);
    if wake.flags & (HARD_IRQ | SOFT_IRQ) == 0 {
        return by_thread.map_or(Waker::Unknown, |tid| relayed(tid, wake.start_ns, kernel));
    }
    if wake.flags & HARD_IRQ == 0 {
        // The loopback delivers in the sender's context.
        let sender = by_thread.filter(|other| {
            let other = kernel.timelines.threads.get(other).and_then(|other| other.call(wake.start_ns));
            other.is_some_and(|call| call.id.kind() == Call::Send)
        });
        if let Some(sender) = sender {
            return Waker::Thread { tid: sender, at_ns: wake.start_ns };
        }
    }
    if let Some(expiry) = timeline.expiry(blocked_ns, wake.start_ns) {
        let taut_timelines::Expiry { asked_ns, armed_ns, address, is_relative, .. } = *expiry;
        return Waker::Timer { asked_ns, armed_ns, address, is_relative };
    }
    // Recordings of before timers had addresses: a sleep has one timer.
    let armed = call.filter(|_| wake.flags & HARD_IRQ != 0).and_then(|call| timeline.timer(call.start_ns, blocked_ns));
    match armed.filter(|timer| {
        timer.asked_ns <= wake.start_ns && wake.start_ns - timer.asked_ns < taut_timelines::SAME_CLOCK_NS
    }) {
        Some(timer) => Waker::Timer {
            asked_ns: timer.asked_ns,
            armed_ns: timer.armed_ns,
            address: 0,
            is_relative: timer.is_relative,
        },
        None => Waker::Interrupt,
    }
}

/// A thread of the kernel that hands over what another one sent, as for terminals, does the work that this one gave it. In recordings
/// without such events it was woken by that one while it sent.
fn relayed(tid: i32, at_ns: u64, kernel: Kernel<'_>) -> Waker {
    let direct = Waker::Thread { tid, at_ns };
    if kernel.objects.is_recorded(tid) {
        return direct;
    }
    let Some(relay) = kernel.timelines.threads.get(&tid) else { return direct };
    if let Some(work) = relay.work(at_ns) {
        let is_interrupt = work.flags & (HARD_IRQ | SOFT_IRQ) != 0;
        return if is_interrupt { Waker::Interrupt } else { Waker::Thread { tid: work.by, at_ns: work.queued_ns } };
    }
    let until = relay.segments.partition_point(|segment| segment.start_ns <= at_ns);
    let Some(wake) = relay.segments[..until].iter().rev().find(|segment| segment.state == ThreadState::Woken) else {
        return direct;
    };
    let sender = kernel.timelines.threads.get(&wake.other).filter(|_| wake.flags & (HARD_IRQ | SOFT_IRQ) == 0);
    let is_sending = |call: &SystemCall| call.id.kind() == Call::Send;
    match sender.and_then(|sender| sender.call(wake.start_ns)).filter(|call| is_sending(call)) {
        Some(_) => Waker::Thread { tid: wake.other, at_ns: wake.start_ns },
        None => direct,
    }
}

/// The lives of threads that had this number, one after the other.
pub(super) fn lives(timeline: &Timeline) -> Vec<(u64, u64)> {
    let mut lives = Vec::new();
    let mut from_ns = 0;
    for segment in timeline.segments.iter().filter(|segment| segment.state == ThreadState::Gone) {
        lives.push((from_ns, segment.start_ns));
        from_ns = segment.start_ns;
    }
    lives.push((from_ns, u64::MAX));
    lives
}
