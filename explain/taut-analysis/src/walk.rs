//! The critical path of a hop: from its end back to its start, through the thread that ended it and, where
//! that one waited for another thread of the recording, through that one. The pieces partition the hop.
//!
//! A wait for a lock or the GIL is a cause by itself and names its holder. A wait for data or for a signal
//! is what the awaited thread did meanwhile. The walk stops at interrupts, timers, the network and threads
//! that were not recorded, and reports it. Edges as in Eclipse Trace Compass' critical path; see docs/reference/causes.md.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
};

use foldhash::{HashMap, HashSet};
use taut_points::{BusyWith, HeldBy, Holds, NO_THREAD, Spans};
use taut_recording::host_numbers::{host_and_cpu, host_of};
use taut_timelines::{
    Call, FAULT_BEFORE_SLEEP_NS, Futexes, HARD_IRQ, Objects, SAME_CLOCK_NS, SOFT_IRQ, STALL, Segment, SystemCall,
    ThreadState, Timeline, Timelines, call_at,
};

use crate::{Cause, environment::Environment, names::Names};

/// Pieces of a block. A queue may be thousands of messages long, and each of them waits for nearly the same pieces as the one before
/// it; that their number is the square of the queue's length must not be.
pub(crate) const BLOCK: usize = 256;
/// Wakes followed from one wait; deeper ones stay with the wait that they explain.
const DEPTH_MAX: usize = 16;
/// What a futex wait returns that did not wait: EAGAIN.
const NOT_AS_EXPECTED: i32 = -11;
/// A thread that could run while its CPU idled for longer than this was kept from it by a quota.
const THROTTLED_IDLE_NS: u64 = 200_000;
/// What a responsible thread did in less of the time is not said, in percent.
const SAID_PERCENT: f64 = 5.0;
/// The kernel's count of throttled time begins a moment after the switch.
const THROTTLED_SHARE: f64 = 0.9;
/// A thread that runs this soon after the renewal of a quota waited for it.
const RUNS_AFTER_RENEWAL_NS: u64 = 100_000;
/// An idle CPU comes back faster than this, unless a quota holds the thread or the host holds the CPU.
const SLOW_IDLE_EXIT_NS: u64 = 2_000_000;
/// The detail of time of which stamps are missing.
pub(crate) const STAMPS_LOST: &str = "stamps were lost";
/// The same of kernel events.
pub(crate) const KERNEL_EVENTS_LOST: &str = "kernel events were lost";
/// Begins the detail of oversleeping that is not the thread's timer slack.
pub(crate) const TIMER_LATE: &str = "timer interrupt came late";
/// Ends the detail of the time between two hosts that the system call took which sends.
const IN_SENDERS_KERNEL: &str = ", in the sender's kernel";
/// The same of the time that the receiver's kernel took.
const IN_RECEIVERS_KERNEL: &str = ", in the receiver's kernel";
/// A thread's stamp and the kernel's events of it agree to that.
const CLOCKS_AGREE_NS: u64 = 5_000;
/// A timer that comes later than this on a CPU of which time was stolen was held up by the host.
const STOLEN_NS: u64 = 100_000;

/// A stretch of a critical path, of one thread and one cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    pub from_ns: u64,
    pub to_ns: u64,
    pub cause: Cause,
    /// The thread on the path.
    pub tid: i32,
    /// Number of the detail in [`Names`]; 0 is none.
    pub detail: u32,
    /// The responsible thread: lock holder, preempting thread, or awaited peer; 0 where it is unknown.
    pub other: i32,
    /// A wait to run, or oversleeping, belongs in a prediction to the wait that it came after; an interruption
    /// to what it interrupted.
    pub after: Option<(Cause, u32)>,
    /// What the thread was at, where the message waited behind it.
    pub behind: Option<Behind>,
    /// Whether the CPU that threads of the chain share was another's: no thread that waits for it runs meanwhile. Or the GIL was a
    /// thread's that the message comes to later.
    pub is_away: bool,
    /// For people, only when asked for: number of the text in [`Names`].
    pub note: u32,
}

/// What a message waited behind: its thread was busy with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Behind {
    Message(u64),
    /// The same, of another thread of the chain, whose turn it was on the CPU that the two share.
    Turn(u64),
    /// Number of the marked work's name in [`Names`].
    Work(u32),
    /// Many messages: the piece stands for all of [`Walker::block`] that begins at that time, or, once divided, is a sum over them.
    Block(u64),
}

/// A moment at which a thread stamped the message, or at which it was due there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub time_ns: u64,
    pub tid: i32,
    pub is_due: bool,
}

impl Moment {
    pub fn of(tid: i32, time_ns: u64) -> Moment {
        Moment { time_ns, tid, is_due: false }
    }

    /// Whether another thread took the message until then, or the thread that it was due at, which may have been at others.
    pub fn is_handed_to(&self, to: Moment) -> bool {
        self.is_due || self.tid != to.tid
    }
}

/// Everything the walk looks at.
pub(crate) struct Walker<'a> {
    pub timelines: &'a Timelines,
    pub objects: &'a Objects,
    pub futexes: &'a Futexes,
    pub environment: &'a Environment,
    pub spans: &'a Spans,
    pub holds: &'a Holds,
    /// As in [`taut_points::Linked::sent`].
    pub sent: &'a HashMap<(i32, u64), (i32, u64)>,
    pub names: &'a mut Names,
    /// Threads that stamp a message when they receive it, and handle it afterwards.
    pub receivers: HashSet<i32>,
    /// Threads of the chain that share one CPU, each with that CPU.
    pub shared: HashMap<i32, u16>,
    /// The hop that is walked: a thread may be waited for at several.
    pub at_hop: u16,
    /// The messages of before are all gone through.
    pub since_ns: u64,
    /// By hop and thread: what it was at of late, so that each of the messages that wait for it at once need not walk all of it.
    pub busy: HashMap<(u16, i32), Busy>,
    /// Whether pieces carry notes.
    pub verbose: bool,
    /// Whether one piece may stand for a block of those that a message waits behind.
    pub sums_blocks: bool,
}

/// Pieces of a busy thread, each with the message that the thread was at.
pub(crate) struct Busy {
    own: [i32; 2],
    from_ns: u64,
    to_ns: u64,
    pieces: VecDeque<Piece>,
    /// Ends of stretches in which it waited for data, with no message in hand.
    idle_until_ns: VecDeque<u64>,
    /// How many pieces were before the first; those of messages that were overtaken come later.
    past: isize,
}

/// The walk's bounds that do not change on its way.
#[derive(Clone, Copy)]
struct Hop {
    from: Moment,
    /// When the thread that ends the hop runs for sure: it stamps then. 0: of no thread.
    to_ns: u64,
    /// Threads whose time needs no name: the two that stamped.
    own: [i32; 2],
}

/// What a blocked stretch was.
enum Wait {
    /// For what that thread did meanwhile.
    For(i32),
    /// For itself.
    Is(Vec<Piece>),
}

/// What ended a wait.
enum Waker {
    /// That thread, by its own doing.
    Thread(i32),
    /// An interrupt, or no thread until the end of the recording.
    Nobody,
    /// The event that would say it is missing.
    Lost,
    /// No wake is seen in this recording.
    Unseen,
}

/// A stretch of one thread's timeline, or a wait for the GIL that spans several of its segments.
enum Stretch {
    Segment(usize),
    Gil { holder: i32 },
}

impl Piece {
    /// A piece that says nothing.
    pub fn unknown(from_ns: u64, to_ns: u64, tid: i32) -> Piece {
        Piece {
            from_ns,
            to_ns,
            cause: Cause::Unknown,
            tid,
            detail: 0,
            other: 0,
            after: None,
            behind: None,
            is_away: false,
            note: 0,
        }
    }
}

impl Walker<'_> {
    /// Whether the recording holds neither kernel events nor what sources know: then every piece is unknown.
    pub fn is_blind(&self) -> bool {
        self.timelines.threads.is_empty() && self.spans.is_empty() && self.holds.is_empty()
    }

    /// What the time between two passes of the message `id` was spent on, in order of time.
    pub fn hop(&mut self, id: u64, from: Moment, to: Moment) -> Vec<Piece> {
        if from.time_ns >= to.time_ns {
            return Vec::new();
        }
        let hop = Hop { from, to_ns: to.time_ns, own: [from.tid, to.tid] };
        let pieces = if !from.is_handed_to(to) {
            let mut pieces = self.walk(to.tid, from.time_ns, to.time_ns, None, hop, 0).0;
            let is_known = self.holds.are_known(id, to.tid);
            let foreign = self.spans.foreign_stretches(to.tid, id, from.time_ns, to.time_ns);
            for (start, end, other) in foreign.into_iter().filter(|_| !is_known) {
                set_behind(&mut pieces, start, end, Behind::Message(other));
            }
            self.behind_taken_before(id, from, to, &mut pieces);
            pieces
        } else {
            let is_known = self.holds.are_known(id, to.tid);
            let busy = self.spans.busy_until(to.tid, id, from.time_ns, to.time_ns).filter(|_| !is_known);
            let start = busy.as_ref().map_or(from.time_ns, |(until, _)| *until);
            let (pieces, reached) = self.walk(to.tid, start, to.time_ns, (!from.is_due).then_some(from.tid), hop, 0);
            match busy.filter(|_| !reached) {
                None => pieces,
                // It has the message ahead until it receives this one.
                Some((until, other @ BusyWith::Message(_)))
                    if self.receivers.contains(&to.tid) && self.idles_in(to.tid, until, to.time_ns).is_none() =>
                {
                    self.queued(id, from, to.tid, to.time_ns, other, hop)
                }
                Some((until, other)) => {
                    let mut queued = self.queued(id, from, to.tid, until, other, hop);
                    queued.extend(pieces);
                    queued
                }
            }
        };
        let pieces = self.lock_marks(pieces);
        let pieces = self.held(id, pieces, from.time_ns, to.time_ns);
        let pieces = self.across_hosts(pieces, from, to);
        let pieces = self.in_work(pieces, from, to);
        joined(with_interrupted(self.without_lost_stamps(pieces)))
    }

    /// Of messages that a thread takes in one go, each waits for those that it took before. That the thread does nothing else meanwhile is
    /// known where it never pauses.
    fn behind_taken_before(&mut self, id: u64, from: Moment, to: Moment, pieces: &mut Vec<Piece>) {
        if self.holds.are_known(id, to.tid) || !self.timelines.threads.contains_key(&to.tid) {
            return;
        }
        let Some((since_ns, stretches)) = self.spans.taken_before(to.tid, id, from.time_ns, to.time_ns) else { return };
        if self.idles_in(to.tid, since_ns, to.time_ns).is_none() {
            for (start, end, other) in stretches {
                set_behind(pieces, start, end, Behind::Message(other));
            }
        }
    }

    /// Between two hosts: the sender's own time, of which its system call is its kernel's, until that has handed the message over; from
    /// then on it is on its way until the receiver's last wait for a descriptor ended: while that waited, the message was not there,
    /// whatever was done before.
    fn across_hosts(&mut self, mut pieces: Vec<Piece>, from: Moment, to: Moment) -> Vec<Piece> {
        if from.tid <= 0 || to.tid <= 0 || host_of(from.tid) == host_of(to.tid) {
            return pieces;
        }
        let Some((call_ns, end_ns)) = self.sending(from, to) else { return pieces };
        let timelines = self.timelines;
        // What waits in a call that sends has other data to give away.
        let sends = |piece: &Piece| {
            let call = timelines.threads.get(&piece.tid).and_then(|timeline| timeline.call(piece.from_ns));
            call.is_some_and(|call| call.id.kind() == Call::Send)
        };
        let waits = |piece: &Piece| piece.cause == Cause::Io && host_of(piece.tid) == host_of(to.tid) && !sends(piece);
        let woken_ns = pieces.iter().rposition(waits).map(|at| pieces[at].to_ns);
        let arrived_ns = woken_ns.map(|woken_ns| self.arrived(host_of(to.tid), woken_ns).unwrap_or(woken_ns));
        let sent_ns = match woken_ns.zip(arrived_ns) {
            // The call goes on when the message is there: its thread was kept from running, or it did more than that.
            Some((woken_ns, arrived_ns)) if call_ns < woken_ns && woken_ns < end_ns => {
                self.last_ran_ns(from.tid, call_ns, arrived_ns.clamp(call_ns, woken_ns))
            }
            _ => end_ns,
        };
        pieces.retain(|piece| piece.to_ns > sent_ns);
        pieces.iter_mut().for_each(|piece| piece.from_ns = piece.from_ns.max(sent_ns));
        let mut all = if sent_ns > from.time_ns { self.alone(from, sent_ns) } else { Vec::new() };
        self.in_senders_kernel(&mut all, from.tid, call_ns, sent_ns);
        if let Some(last) = pieces.iter().rposition(waits) {
            let after = pieces.split_off(last + 1);
            let wait = pieces.pop().unwrap_or_else(|| Piece::unknown(sent_ns, sent_ns, to.tid));
            // Whoever woke the receiver is its own host's network stack.
            let place = self.names.text(wait.detail).split(" from ").next().unwrap_or_default().to_owned();
            let (begins_ns, woken_ns) = (pieces.first().map_or(wait.from_ns, |first| first.from_ns), wait.to_ns);
            let arrived_ns = arrived_ns.unwrap_or(woken_ns).clamp(begins_ns, woken_ns);
            let in_kernel = format!("{place}{IN_RECEIVERS_KERNEL}");
            for (from_ns, to_ns, detail) in [(begins_ns, arrived_ns, place), (arrived_ns, woken_ns, in_kernel)] {
                let detail = self.names.of(&detail);
                let piece = Piece { detail, ..self.piece(from_ns, to_ns, Cause::Network, wait.tid) };
                all.extend((from_ns < to_ns).then_some(piece));
            }
            pieces = after;
        }
        all.append(&mut pieces);
        all
    }

    /// Until when a thread ran last between two moments, as far as is known: it gave nothing away later.
    fn last_ran_ns(&self, tid: i32, from_ns: u64, to_ns: u64) -> u64 {
        use ThreadState::{Lost, Running, Unknown};
        let Some(timeline) = self.timelines.threads.get(&tid) else { return to_ns };
        let may_run = |(at, _, _): &(usize, u64, u64)| matches!(timeline.segments[*at].state, Running | Lost | Unknown);
        timeline.between(from_ns, to_ns).rfind(may_run).map_or(to_ns, |(_, _, end_ns)| end_ns)
    }

    /// What the sender's system call takes on a CPU, of its own time, is the way through its kernel. What keeps it from the CPU stays a
    /// cause of its own.
    fn in_senders_kernel(&mut self, pieces: &mut Vec<Piece>, tid: i32, call_ns: u64, sent_ns: u64) {
        let timelines = self.timelines;
        let call = timelines.threads.get(&tid).and_then(|timeline| timeline.call(call_ns));
        let Some(call) = call.filter(|_| call_ns < sent_ns) else { return };
        let place = self.place(Some(call), self.objects.pid(tid).unwrap_or(tid), call_ns);
        let detail = self.names.of_parts(&[&place, IN_SENDERS_KERNEL]);
        overlay(pieces, call_ns, sent_ns, |from_ns, to_ns, old| {
            let is_its = old.tid == tid && old.cause == Cause::Syscall;
            is_its.then_some(Piece { from_ns, to_ns, cause: Cause::Network, detail, ..*old })
        });
    }

    /// Whether it is the system call that sends to another host: its thread's own doing.
    pub fn is_in_senders_kernel(&self, piece: &Piece) -> bool {
        piece.cause == Cause::Network && self.names.text(piece.detail).ends_with(IN_SENDERS_KERNEL)
    }

    /// Since when a host's kernel dealt with the packet that woke a thread at that moment: since the interrupt began that ran then.
    /// `None`: none was recorded, or several CPUs had one.
    fn arrived(&self, host: u16, woken_ns: u64) -> Option<u64> {
        let cpus = (0..self.timelines.cpus.len() as u16).filter(|cpu| host_and_cpu(*cpu).0 == host);
        let mut running = cpus.flat_map(|cpu| self.timelines.interrupts(cpu, woken_ns, woken_ns + 1));
        let first = running.find(|interrupt| interrupt.kind != STALL)?;
        running.all(|interrupt| interrupt.kind == STALL).then_some(first.start_ns)
    }

    /// The call in which the thread that the message leaves hands it to its kernel, from its begin or the pass until its end: the call that
    /// sent it, where that is known; else its next call that sends, unless it waits first: then it had sent before it stamped, and the
    /// stretch is empty. `None`: its calls do not show it.
    fn sending(&self, from: Moment, to: Moment) -> Option<(u64, u64)> {
        let (timeline, until_ns) = (self.timelines.threads.get(&from.tid)?, to.time_ns);
        let within = |call: &SystemCall| (call.start_ns.max(from.time_ns), call.end_ns.min(until_ns));
        let known = self.sent.get(&(to.tid, to.time_ns)).filter(|(tid, _)| *tid == from.tid);
        if let Some(call) = known.and_then(|(_, began_ns)| timeline.call(*began_ns)) {
            return Some(within(call));
        }
        let calls = &timeline.calls;
        let next = calls.partition_point(|call| call.end_ns <= from.time_ns);
        // Waking others, as who gives the GIL away does, is no wait; nor is a wait for a lock that is free by then.
        let counts = |call: &&SystemCall| match call.id.kind() {
            Call::Other => false,
            Call::Futex => call.is_futex_wait() && call.result != NOT_AS_EXPECTED,
            _ => true,
        };
        let after = calls[next..].iter().take_while(|call| call.start_ns < until_ns).find(counts);
        match after {
            Some(call) if call.id.kind() == Call::Send => Some(within(call)),
            _ => {
                let before = calls[..next].iter().rev().find(counts)?;
                (before.id.kind() == Call::Send).then_some((from.time_ns, from.time_ns))
            }
        }
    }

    /// What a thread takes its turns on: itself, or the CPU that it shares with others of the chain, below all threads' numbers.
    pub fn server(&self, tid: i32) -> i32 {
        self.shared.get(&tid).map_or(tid, |cpu| NO_THREAD - 1 - i32::from(*cpu))
    }

    /// What one thread did until `to_ns`, and the threads that it waited for.
    pub fn alone(&mut self, from: Moment, to_ns: u64) -> Vec<Piece> {
        let hop = Hop { from, to_ns: 0, own: [from.tid; 2] };
        self.walk(from.tid, from.time_ns, to_ns, None, hop, 0).0
    }

    /// The path that ends with `tid` at `to_ns`, back to `from_ns`, or, if it meets the thread `home`, back to
    /// where the hop starts; then the second value is true. In order of time.
    fn walk(
        &mut self,
        tid: i32,
        from_ns: u64,
        to_ns: u64,
        home: Option<i32>,
        hop: Hop,
        depth: usize,
    ) -> (Vec<Piece>, bool) {
        let mut pieces = Vec::with_capacity(16);
        let reached = self.walk_back(tid, from_ns, to_ns, home, hop, depth, &mut pieces);
        pieces.reverse();
        (pieces, reached)
    }

    /// The same, appended from the end to the start.
    #[expect(clippy::too_many_arguments, reason = "as above, and where the pieces go")]
    fn walk_back(
        &mut self,
        tid: i32,
        from_ns: u64,
        to_ns: u64,
        home: Option<i32>,
        hop: Hop,
        depth: usize,
        pieces: &mut Vec<Piece>,
    ) -> bool {
        let timelines = self.timelines;
        let Some(timeline) = timelines.threads.get(&tid) else {
            pieces.push(self.piece(from_ns, to_ns, Cause::Unknown, tid));
            return false;
        };
        for (from, to, stretch) in self.stretches(tid, timeline, from_ns, to_ns).into_iter().rev() {
            match stretch {
                Stretch::Gil { holder } => {
                    let mut waited = vec![self.gil(tid, from, to, holder)];
                    for (start, end) in timeline.lost_between(from, to) {
                        let lost = self.lost(start, end, tid);
                        overlay(&mut waited, start, end, |_, _, _| Some(lost));
                    }
                    pieces.extend(waited.into_iter().rev());
                }
                Stretch::Segment(at) => match timeline.segments.get(at).map(|s| s.state) {
                    // It stamps at that moment, so its wake was lost, and a later one says nothing of this wait.
                    Some(ThreadState::Blocked | ThreadState::Uninterruptible | ThreadState::Stopped)
                        if to == hop.to_ns
                            && tid == hop.own[1]
                            && to - from > CLOCKS_AGREE_NS
                            && timeline.end_ns(at) > to + CLOCKS_AGREE_NS =>
                    {
                        pieces.push(self.piece(from, to, Cause::Unknown, tid));
                    }
                    Some(ThreadState::Blocked | ThreadState::Uninterruptible | ThreadState::Stopped) => {
                        match self.wait(tid, timeline, at, from, to, hop) {
                            Wait::Is(waited) => pieces.extend(waited.into_iter().rev()),
                            Wait::For(other) if Some(other) == home => {
                                self.walk_back(other, hop.from.time_ns, to, None, hop, depth + 1, pieces);
                                return true;
                            }
                            Wait::For(other) if depth < DEPTH_MAX => {
                                if self.walk_back(other, from, to, home, hop, depth + 1, pieces) {
                                    return true;
                                }
                            }
                            Wait::For(other) => {
                                pieces.push(Piece { other, ..self.piece(from, to, Cause::Unknown, tid) });
                            }
                        }
                    }
                    _ => {
                        let first = pieces.len();
                        self.awake(tid, timeline, at, from, to, hop, pieces);
                        pieces[first..].reverse();
                    }
                },
            }
        }
        false
    }

    /// The thread's segments between two moments, waits for the GIL merged, without gaps.
    fn stretches(&self, tid: i32, timeline: &Timeline, from_ns: u64, to_ns: u64) -> Vec<(u64, u64, Stretch)> {
        let mut stretches = Vec::with_capacity(8);
        let mut at = from_ns;
        while at < to_ns {
            let gil = self.futexes.gil_wait(tid, at, to_ns);
            let until = gil.map_or(to_ns, |wait| wait.start_ns.max(at));
            stretches.extend(timeline.between(at, until).map(|(s, from, to)| (from, to, Stretch::Segment(s))));
            at = until;
            if let Some(wait) = gil {
                let end = wait.woken_ns.min(to_ns);
                let pid = self.objects.pid(tid).unwrap_or(tid);
                for (until, holder) in self.futexes.gil_holders(pid, tid, wait, (at, end)) {
                    stretches.push((at, until, Stretch::Gil { holder }));
                    at = until;
                }
                at = end;
            }
        }
        // Before the thread's first event nothing is known of it.
        let known = stretches.first().map_or(to_ns, |(from, _, _)| *from);
        if known > from_ns && timeline.segments.first().is_none_or(|s| s.start_ns >= known) {
            stretches.insert(0, (from_ns, known, Stretch::Segment(usize::MAX)));
        }
        stretches
    }

    /// On a CPU, or waiting for one; appended.
    #[expect(clippy::too_many_arguments, reason = "the stretch, and where its pieces go")]
    fn awake(
        &mut self,
        tid: i32,
        timeline: &Timeline,
        at: usize,
        from: u64,
        to: u64,
        hop: Hop,
        pieces: &mut Vec<Piece>,
    ) {
        let Some(segment) = timeline.segments.get(at) else {
            return pieces.push(self.piece(from, to, Cause::Unknown, tid));
        };
        match segment.state {
            ThreadState::Running => self.running(tid, timeline, segment.cpu, from, to, hop, pieces),
            ThreadState::Preempted => {
                let held_ns = self.held_until(tid, segment.start_ns, timeline.end_ns(at)).clamp(from, to);
                if from < held_ns {
                    let note = self.note(|_| "its control group was out of its CPU quota until then".into());
                    pieces.push(Piece { note, ..self.piece(from, held_ns, Cause::Throttled, tid) });
                }
                if held_ns < to {
                    let piece = self.preempted(tid, timeline, at, held_ns, to);
                    self.by_turns(piece, segment.cpu, hop, pieces);
                }
            }
            ThreadState::Woken => {
                let piece = self.woken(tid, timeline, at, from, to, hop);
                let cpu = timeline.segments.get(at + 1).map_or(segment.cpu, |next| next.cpu);
                self.by_turns(piece, cpu, hop, pieces);
            }
            ThreadState::Lost => pieces.push(self.lost(from, to, tid)),
            _ => pieces.push(self.piece(from, to, Cause::Unknown, tid)),
        }
    }

    /// Work, system calls, page faults and interrupts of a thread on a CPU, by one sweep; appended.
    #[expect(clippy::too_many_arguments, reason = "the stretch, and where its pieces go")]
    fn running(
        &mut self,
        tid: i32,
        timeline: &Timeline,
        cpu: u16,
        from: u64,
        to: u64,
        hop: Hop,
        pieces: &mut Vec<Piece>,
    ) {
        let timelines = self.timelines;
        let pid = self.objects.pid(tid).unwrap_or(tid);
        let interrupts = timelines.interrupts(cpu, from, to);
        let calls = &timeline.calls[timeline.calls.partition_point(|c| c.end_ns <= from)..];
        let faults = &timeline.fault_times[timeline.fault_times.partition_point(|f| f.1 <= from)..];
        let (mut i, mut c, mut f) = (0, 0, 0);
        let first = pieces.len();
        let mut now = from;
        while now < to {
            while interrupts.get(i).is_some_and(|x| x.end_ns <= now) {
                i += 1;
            }
            while calls.get(c).is_some_and(|x| x.end_ns <= now) {
                c += 1;
            }
            while faults.get(f).is_some_and(|x| x.1 <= now) {
                f += 1;
            }
            let interrupt = interrupts.get(i).map(|x| (x.start_ns, x.end_ns));
            let call = calls.get(c).map(|x| (x.start_ns, x.end_ns));
            let fault = faults.get(f).copied();
            let in_call = call.filter(|x| x.0 <= now).and(calls.get(c));
            let ahead = |x: u64| if x > now { x } else { u64::MAX };
            let next = |x: Option<(u64, u64)>| x.map_or(u64::MAX, |(start, end)| ahead(start).min(ahead(end)));
            let until = next(interrupt).min(next(call)).min(next(fault)).min(to);
            let delivers = in_call.is_some_and(|x| x.id.kind() == Call::Send);
            let (cause, detail) = if let Some(x) =
                interrupt.filter(|x| x.0 <= now && !(delivers && interrupts[i].kind == 1)).map(|_| &interrupts[i])
            {
                match x.kind {
                    STALL => (Cause::Hypervisor, "the tick came late".into()),
                    kind => (Cause::Irq, interrupt_name(kind, x.number)),
                }
            } else if fault.is_some_and(|x| x.0 <= now) && in_call.is_none() {
                (Cause::PageFault, "".into())
            } else if let Some(call) = in_call.filter(|call| call.is_futex_lock()) {
                // The kernel lets it spin while the owner runs.
                (Cause::Lock, self.lock(pid, call).unwrap_or_default().into())
            } else if let Some(call) = in_call {
                (Cause::Syscall, call.id.known_name().map_or_else(|| call.id.name().into(), Cow::from))
            } else {
                (Cause::Cpu, "".into())
            };
            let (detail, other) = match in_call.filter(|_| cause == Cause::Lock) {
                Some(call) => (self.names.of(&detail), self.futexes.owner(pid, call, now)),
                None => (self.of_thread(&detail, tid, now, hop), 0),
            };
            match pieces[first..].last_mut() {
                Some(last) if (last.cause, last.detail, last.other) == (cause, detail, other) => last.to_ns = until,
                _ => pieces.push(Piece { detail, other, ..self.piece(now, until, cause, tid) }),
            }
            now = until;
        }
    }

    /// Until when a thread that lost its CPU at `start_ns` and could run waited for its control group's quota, on a CPU that was others'
    /// meanwhile: until a quota was renewed, if the kernel counts at least as much throttled time for the group around then. A group that
    /// used more than its quota waits for several renewals: until the last one, if the thread ran right after that.
    fn held_until(&self, tid: i32, start_ns: u64, end_ns: u64) -> u64 {
        let renewals = self.timelines.quota_renewals(tid, start_ns, end_ns.min(self.timelines.end_ns));
        let pid = self.objects.pid(tid).unwrap_or(tid);
        let is_counted = |renewed_ns: &u64| {
            self.environment.throttled_ns(pid, start_ns, *renewed_ns)
                >= THROTTLED_SHARE * (renewed_ns - start_ns) as f64
        };
        let last = renewals.last().filter(|renewed_ns| end_ns - **renewed_ns < RUNS_AFTER_RENEWAL_NS);
        last.filter(|ns| is_counted(ns)).or_else(|| renewals.first().filter(|ns| is_counted(ns))).copied().unwrap_or(0)
    }

    fn preempted(&mut self, tid: i32, timeline: &Timeline, at: usize, from: u64, to: u64) -> Piece {
        let segment = timeline.segments[at];
        let (start, end) = (segment.start_ns, timeline.end_ns(at).min(self.timelines.end_ns));
        // Who could run on is not left for the idle task, unless it is taken elsewhere.
        let stays = timeline.segments.get(at + 1).is_some_and(|next| next.cpu == segment.cpu);
        let idles = self.timelines.idles_from(segment.cpu, start) && stays;
        if idles || self.timelines.idles_longer(segment.cpu, start, end, THROTTLED_IDLE_NS) {
            return self.throttled(tid, from, to);
        }
        let ran = self.timelines.ran(segment.cpu, from, to);
        self.ran_instead(Cause::Preempted, tid, &ran, from, to)
    }

    fn woken(&mut self, tid: i32, timeline: &Timeline, at: usize, from: u64, to: u64, hop: Hop) -> Piece {
        let segment = timeline.segments[at];
        let cpu = timeline.segments.get(at + 1).map_or(segment.cpu, |next| next.cpu);
        let end = timeline.end_ns(at).min(self.timelines.end_ns);
        if self.timelines.idles_longer(cpu, segment.start_ns, end, SLOW_IDLE_EXIT_NS) {
            if self.timelines.is_held_back(tid, segment.start_ns, end) {
                return self.throttled(tid, from, to);
            }
            let detail = self.names.of("an idle CPU did not come back");
            return Piece { detail, ..self.piece(from, to, Cause::Hypervisor, tid) };
        }
        let ran = self.timelines.ran(cpu, from, to);
        let mut piece = self.ran_instead(Cause::Wakeup, tid, &ran, from, to);
        let came_from = timeline.segments[..at].iter().rev().find(|before| before.state == ThreadState::Running);
        if let Some(before) = came_from.filter(|before| self.verbose && before.cpu != cpu) {
            let own = |cpu: u16| host_and_cpu(cpu).1;
            let moved = format!("; moved from CPU {} to CPU {}", own(before.cpu), own(cpu));
            piece.note = self.names.of(&(self.names.text(piece.note).to_owned() + &moved));
        }
        if self.verbose
            && let Some(idle) = self.timelines.idle_state(cpu, segment.start_ns).filter(|idle| idle.end_ns <= end)
        {
            let left_us = (idle.end_ns - segment.start_ns) as f64 / 1e3;
            let left = format!("; the CPU left idle state {} after {left_us:.0} µs", idle.state);
            piece.note = self.names.of(&(self.names.text(piece.note).to_owned() + &left));
        }
        piece.after = if self.futexes.gil_wait_ended(tid, segment.start_ns).is_some() {
            Some((Cause::Gil, 0))
        } else {
            self.wait_before(tid, timeline, at, hop)
        };
        piece
    }

    /// The cause that a thread's wait to run came after.
    fn wait_before(&mut self, tid: i32, timeline: &Timeline, at: usize, hop: Hop) -> Option<(Cause, u32)> {
        let before = *timeline.segments.get(at.checked_sub(1)?)?;
        if !matches!(before.state, ThreadState::Blocked | ThreadState::Uninterruptible | ThreadState::Stopped) {
            return None;
        }
        match self.wait(tid, timeline, at - 1, before.start_ns, timeline.segments[at].start_ns, hop) {
            // Oversleeping comes after sleeping.
            Wait::Is(pieces) => pieces.first().map(|p| (p.cause, p.detail)),
            Wait::For(_) => None,
        }
    }

    /// A wait to run, less the turns of threads of the chain on the CPU that they share with the waiting one: in them the message
    /// waits behind those that they are at; appended.
    fn by_turns(&mut self, mut wait: Piece, cpu: u16, hop: Hop, pieces: &mut Vec<Piece>) {
        let (timelines, tid) = (self.timelines, wait.tid);
        if !self.shared.contains_key(&tid) {
            return pieces.push(wait);
        }
        wait.is_away = wait.cause != Cause::Wakeup || wait.other != 0;
        let has_turn = |(other, ..): &(i32, u64, u64)| *other != tid && self.shared.contains_key(other);
        let stays: Vec<(i32, u64, u64)> = match wait.cause {
            Cause::Preempted | Cause::Wakeup => {
                timelines.stays(cpu, wait.from_ns, wait.to_ns).filter(has_turn).collect()
            }
            _ => Vec::new(),
        };
        if stays.is_empty() {
            return pieces.push(wait);
        }
        let mut now = wait.from_ns;
        for (other, from, to) in stays.into_iter().chain([(0, wait.to_ns, wait.to_ns)]) {
            if now < from {
                let ran = timelines.ran(cpu, now, from);
                let rest = self.ran_instead(wait.cause, tid, &ran, now, from);
                pieces.push(Piece { after: wait.after, is_away: rest.other != 0, ..rest });
            }
            if let Some(timeline) = timelines.threads.get(&other) {
                let mut turn = Vec::new();
                self.running(other, timeline, cpu, from, to, hop, &mut turn);
                let on_receipt = self.receivers.contains(&other);
                set_handled(&mut turn, &self.spans.handled(other, from, to, on_receipt));
                for piece in &mut turn {
                    piece.is_away = true;
                    if let Some(Behind::Message(id)) = piece.behind {
                        piece.behind = Some(Behind::Turn(id));
                    }
                }
                pieces.extend(turn);
            }
            now = to;
        }
    }

    fn throttled(&mut self, tid: i32, from: u64, to: u64) -> Piece {
        let note = self.note(|_| "could run while its CPU idled: a CPU quota or real-time throttling".into());
        Piece { note, ..self.piece(from, to, Cause::Throttled, tid) }
    }

    /// The thread that held the CPU; mostly none if the CPU was leaving its idle state.
    fn ran_instead(&mut self, cause: Cause, tid: i32, ran: &[(i32, u64)], from: u64, to: u64) -> Piece {
        let mut others = ran.iter().filter(|(other, _)| *other != tid);
        let other = others.next().map_or(0, |(other, _)| *other);
        let detail = match other {
            0 => 0,
            other => {
                let recorder = if self.objects.is_recorder(other) { " (this recorder)" } else { "" };
                self.names.of_parts(&["by ", &self.objects.name(other, from), recorder])
            }
        };
        let note = self.note(|walker| {
            let parts = ran.iter().filter(|(other, _)| *other != tid).take(4);
            let parts = parts.map(|(t, ns)| format!("{} {:.0} µs", walker.objects.name(*t, from), *ns as f64 / 1e3));
            format!("on its CPU ran {}", parts.collect::<Vec<_>>().join(", "))
        });
        Piece { detail, other, note, ..self.piece(from, to, cause, tid) }
    }

    fn gil(&mut self, tid: i32, from: u64, to: u64, holder: i32) -> Piece {
        let held = if holder == 0 { String::new() } else { format!("held by {}", self.objects.name(holder, to)) };
        let detail = self.names.of(&held);
        let note = self.note(|walker| walker.doing(holder, from, to));
        Piece { detail, other: holder, note, ..self.piece(from, to, Cause::Gil, tid) }
    }

    /// What a blocked stretch was, by the system call it is in, and by the thread that ended it.
    fn wait(&mut self, tid: i32, timeline: &Timeline, at: usize, from: u64, to: u64, hop: Hop) -> Wait {
        let segment = timeline.segments[at];
        let waker = self.waker(timeline, at);
        let call = timeline.call(segment.start_ns);
        let pid = self.objects.pid(tid).unwrap_or(tid);
        if self.objects.is_lost(tid) || matches!(waker, Waker::Thread(other) if self.objects.is_lost(other)) {
            return Wait::Is(vec![self.lost(from, to, tid)]);
        }
        if segment.state == ThreadState::Stopped {
            return self.is(Cause::Stopped, String::new(), tid, from, to, 0, hop);
        }
        let kind = call.map(|call| call.id.kind());
        if segment.state == ThreadState::Uninterruptible {
            return self.uninterruptible(tid, timeline, &segment, &waker, from, to, hop);
        }
        if let (Some(Call::Futex), Some(call)) = (kind, call) {
            let other = if let Waker::Thread(other) = waker { other } else { 0 };
            if self.objects.is_gil(pid, call.arg0) {
                return Wait::Is(vec![self.gil(tid, from, to, other)]);
            }
            if let Some(name) = self.lock(pid, call) {
                return self.is(Cause::Lock, name, tid, from, to, other, hop);
            }
        }
        if let (Some(Call::FileLock), Waker::Thread(other)) = (kind, &waker) {
            let lock = self.place(call, pid, to);
            return self.is(Cause::Lock, lock, tid, from, to, *other, hop);
        }
        if let Some(pieces) = self.timed(tid, timeline, kind, at, from, to, hop) {
            return Wait::Is(pieces);
        }
        match waker {
            Waker::Lost => return Wait::Is(vec![self.lost(from, to, tid)]),
            Waker::Unseen => return self.is(Cause::Unknown, String::new(), tid, from, to, 0, hop),
            Waker::Thread(_) | Waker::Nobody => {}
        }
        // Sleeps and time-outs arm a timer: it is missing.
        let is_timed =
            kind == Some(Call::Sleep) || kind == Some(Call::Poll) && call.is_some_and(|call| call.result == 0);
        if is_timed && self.timelines.saw_timers && call.is_some_and(|call| call.end_ns != u64::MAX) {
            return Wait::Is(vec![self.lost(from, to, tid)]);
        }
        if let Waker::Thread(other) = waker {
            if self.objects.is_recorded(other) && other != tid {
                return Wait::For(other);
            }
            let place = self.place(call, pid, to);
            let who = format!("{place} from {} (not recorded)", self.objects.name(other, to));
            return self.is(Cause::Io, who.trim_start().to_owned(), tid, from, to, other, hop);
        }
        match kind {
            Some(Call::Data | Call::Send | Call::Poll | Call::Child) => {
                let place = self.place(call, pid, to);
                self.is(Cause::Io, place, tid, from, to, 0, hop)
            }
            Some(Call::Sleep) => self.is(Cause::Sleep, String::new(), tid, from, to, 0, hop),
            Some(Call::Sync) => {
                self.is(Cause::Disk, call.map_or(String::new(), |c| c.id.name()), tid, from, to, 0, hop)
            }
            _ => self.is(Cause::Unknown, String::new(), tid, from, to, 0, hop),
        }
    }

    /// The name of the lock that a futex call is for, or its variable's, or its address; `None`: nothing says that it is one.
    fn lock(&self, pid: i32, call: &SystemCall) -> Option<String> {
        let unnamed = || {
            let variable = self.objects.variable(pid, call.arg0).map(|name| name.into_owned());
            variable.unwrap_or_else(|| format!("{:#x}", call.arg0))
        };
        let name = self.objects.lock_name(pid, call.arg0).map(str::to_owned);
        name.or_else(|| self.futexes.is_lock(pid, call).then(unnamed))
    }

    /// Disk, major fault, or a lock inside the kernel.
    #[allow(clippy::too_many_arguments)]
    fn uninterruptible(
        &mut self,
        tid: i32,
        timeline: &Timeline,
        segment: &Segment,
        waker: &Waker,
        from: u64,
        to: u64,
        hop: Hop,
    ) -> Wait {
        let faults = timeline.faults.partition_point(|f| *f <= segment.start_ns);
        let fault = faults.checked_sub(1).map(|at| timeline.faults[at]);
        let call = timeline.call(segment.start_ns);
        if call.is_none() && fault.is_some_and(|f| segment.start_ns - f < FAULT_BEFORE_SLEEP_NS) {
            return self.is(Cause::PageFault, "major".into(), tid, from, to, 0, hop);
        }
        match *waker {
            Waker::Thread(other) if self.objects.is_recorded(other) && other != tid => return Wait::For(other),
            Waker::Lost => return Wait::Is(vec![self.lost(from, to, tid)]),
            Waker::Unseen => return self.is(Cause::Unknown, String::new(), tid, from, to, 0, hop),
            Waker::Thread(_) | Waker::Nobody => {}
        }
        let detail = call.map_or(String::new(), |call| call.id.name());
        self.is(Cause::Disk, detail, tid, from, to, 0, hop)
    }

    /// A wait that its own timer ended: asked for until the timer's moment, overslept from then on.
    #[allow(clippy::too_many_arguments)]
    fn timed(
        &mut self,
        tid: i32,
        timeline: &Timeline,
        kind: Option<Call>,
        at: usize,
        from: u64,
        to: u64,
        hop: Hop,
    ) -> Option<Vec<Piece>> {
        let segment = timeline.segments[at];
        let waker = timeline.segments.get(at + 1).filter(|next| next.state == ThreadState::Woken);
        let by_interrupt = waker.is_some_and(|w| w.flags & HARD_IRQ != 0);
        if kind != Some(Call::Sleep) && !by_interrupt {
            return None;
        }
        let since = timeline.call(segment.start_ns).map_or(segment.start_ns.saturating_sub(1_000_000), |c| c.start_ns);
        let end = timeline.end_ns(at).min(self.timelines.end_ns);
        let armed = timeline.timer(since, segment.start_ns).filter(|timer| {
            timer.asked_ns.abs_diff(end) <= SAME_CLOCK_NS && (kind == Some(Call::Sleep) || end >= timer.asked_ns)
        });
        let (asked_ns, latest_ns, what) = match armed {
            Some(timer) => (timer.asked_ns, timer.latest_ns, if kind == Some(Call::Sleep) { "" } else { "time-out" }),
            // One of a descriptor, which was set before the call; it has no slack.
            None => {
                let expiry =
                    waker.filter(|_| by_interrupt).and_then(|w| timeline.expiry(segment.start_ns, w.start_ns))?;
                (expiry.asked_ns, expiry.asked_ns, "timer")
            }
        };
        let asked = asked_ns.clamp(from, to);
        // The interrupt that woke the thread, where the recording has it.
        let handlers = self.timelines.interrupts(segment.cpu, asked, to.max(asked + 1));
        let handler = handlers.iter().rfind(|i| i.is_hard() && i.end_ns >= to && by_interrupt);
        let fired = handler.map_or(to, |i| i.start_ns).clamp(asked, to);
        let latest = latest_ns.clamp(asked, fired);
        let detail = self.of_thread(what, tid, from, hop);
        let is_stolen = fired - latest > STOLEN_NS && self.environment.stolen_s(segment.cpu, latest, fired) > 0.0;
        let (late_cause, late) = match is_stolen {
            true => (Cause::Hypervisor, "the timer came late while time was stolen (steal)"),
            false => (Cause::TimerSlack, TIMER_LATE),
        };
        let late = self.of_thread(late, tid, from, hop);
        let cuts = [
            (from, asked, Cause::Sleep, detail),
            (asked, latest, Cause::TimerSlack, self.of_thread("", tid, from, hop)),
            (latest, fired, late_cause, late),
            (fired, to, Cause::Irq, handler.map_or(0, |i| self.names.of(&interrupt_name(i.kind, i.number)))),
        ];
        let pieces = cuts.into_iter().filter(|(start, end, _, _)| start < end);
        let after = |cause| (cause != Cause::Sleep).then_some((Cause::Sleep, 0));
        let piece =
            |(start, end, cause, detail)| Piece { detail, after: after(cause), ..self.piece(start, end, cause, tid) };
        Some(pieces.map(piece).collect())
    }

    /// The thread that ended the wait. In a hard interrupt the current thread is a bystander; in a softirq it is the sender, if it
    /// is in a sending call: the loopback delivers in its context.
    fn waker(&self, timeline: &Timeline, at: usize) -> Waker {
        let Some(wake) = timeline.segments.get(at + 1) else { return Waker::Nobody };
        if wake.state != ThreadState::Woken {
            return if self.timelines.saw_wakes { Waker::Lost } else { Waker::Unseen };
        }
        if wake.other == 0 || wake.flags & HARD_IRQ != 0 {
            return Waker::Nobody;
        }
        if wake.flags & SOFT_IRQ == 0 {
            return Waker::Thread(wake.other);
        }
        let Some(other) = self.timelines.threads.get(&wake.other) else { return Waker::Nobody };
        if call_at(&other.calls, wake.start_ns).is_some_and(|call| call.id.kind() == Call::Send) {
            return Waker::Thread(wake.other);
        }
        let is_lost = other.lost_between(wake.start_ns, wake.start_ns.saturating_add(1)).next().is_some();
        if is_lost { Waker::Lost } else { Waker::Nobody }
    }

    fn place(&self, call: Option<&SystemCall>, pid: i32, time_ns: u64) -> String {
        let Some(call) = call else { return String::new() };
        match call.id.kind() {
            Call::Data | Call::Send | Call::Sync | Call::FileLock => {
                format!("{} {}", call.id.name(), self.objects.descriptor(pid, call.arg0, time_ns))
            }
            _ => call.id.name(),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn is(&mut self, cause: Cause, detail: String, tid: i32, from: u64, to: u64, other: i32, hop: Hop) -> Wait {
        // A lock is the same lock whoever waits for it.
        let detail = match cause {
            Cause::Lock => self.names.of(&detail),
            _ => self.of_thread(&detail, tid, from, hop),
        };
        let note = self.note(|walker| if other == 0 { String::new() } else { walker.doing(other, from, to) });
        Wait::Is(vec![Piece { detail, other, note, ..self.piece(from, to, cause, tid) }])
    }

    /// How much of the time a thread ran, in what it slept, how long it waited for a CPU, and what it was at by its stamps and spans.
    fn doing(&self, tid: i32, from: u64, to: u64) -> String {
        let Some(timeline) = self.timelines.threads.get(&tid).filter(|_| tid != 0) else { return String::new() };
        let pid = self.objects.pid(tid).unwrap_or(tid);
        let (mut ran_ns, mut others) = (0, BTreeMap::<String, u64>::new());
        for (at, start, end) in timeline.between(from, to) {
            let segment = timeline.segments[at];
            let what = match segment.state {
                ThreadState::Running => {
                    ran_ns += end - start;
                    continue;
                }
                ThreadState::Preempted | ThreadState::Woken => "waited for a CPU".to_owned(),
                ThreadState::Blocked | ThreadState::Uninterruptible => {
                    let place = self.place(timeline.call(segment.start_ns), pid, end);
                    if place.is_empty() { "slept".to_owned() } else { format!("slept in {place}") }
                }
                _ => continue,
            };
            *others.entry(what).or_default() += end - start;
        }
        let share = |ns: u64| 100.0 * ns as f64 / (to - from).max(1) as f64;
        let mut others: Vec<(String, u64)> = others.into_iter().filter(|(_, ns)| share(*ns) >= SAID_PERCENT).collect();
        others.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let others: String = others.iter().map(|(what, ns)| format!(", {what} {:.0} %", share(*ns))).collect();
        let doing = self.spans.doing(tid, to).map_or(String::new(), |what| format!(", {what}"));
        format!("{} ran {:.0} % of it{others}{doing}", self.objects.name(tid, to), share(ran_ns))
    }

    /// The detail, with the thread's name where it is neither of the two that stamped.
    fn of_thread(&mut self, detail: &str, tid: i32, time_ns: u64, hop: Hop) -> u32 {
        if hop.own.contains(&tid) {
            return self.names.of(detail);
        }
        let space = if detail.is_empty() { "" } else { " " };
        self.names.of_parts(&[detail, space, "in ", &self.objects.name(tid, time_ns)])
    }

    /// What the time was spent on from the pass until the thread that has to take the message is done with what it had
    /// before. A thread that idles is busy from its wake on: until then the message was in the sender's hands.
    fn queued(&mut self, id: u64, from: Moment, tid: i32, until: u64, other: BusyWith, hop: Hop) -> Vec<Piece> {
        let idle = self.idles_at(tid, from.time_ns).filter(|_| self.spans.within(tid, from.time_ns).is_none());
        let (mut began, mut pieces) = match idle {
            None => (from.time_ns, Vec::new()),
            Some((end, waits_for_data)) => {
                let end = end.min(until);
                let of = if waits_for_data { from.tid } else { tid };
                (end, self.walk(of, from.time_ns, end, None, hop, 1).0)
            }
        };
        let spans = self.spans;
        let work = match &other {
            BusyWith::Work(name) => Some((until, name.as_str())),
            BusyWith::Message(_) => spans.work_first(tid, id, from.time_ns, until),
        };
        if let Some((end, name)) = work.filter(|(end, _)| began < *end) {
            let name = self.names.of(name);
            let mut busy = self.walk(tid, began, end, None, hop, 0).0;
            set_behind(&mut busy, began, end, Behind::Work(name));
            pieces.extend(busy);
            began = end;
        }
        if let BusyWith::Message(_) = other {
            let own = Some(Behind::Message(id));
            let mut busy = self.busy(tid, began, until, own, hop);
            busy.iter_mut().filter(|piece| piece.behind == own).for_each(|piece| piece.behind = None);
            let hop_number = self.at_hop;
            let known = self.busy.get(&(hop_number, tid)).map(|busy| &busy.idle_until_ns);
            let is_its = |idle_until_ns: &&u64| began < **idle_until_ns && **idle_until_ns <= until;
            if let Some(woken_ns) = known.and_then(|all| all.iter().rev().find(is_its).copied()) {
                pieces = self.walk(from.tid, from.time_ns, woken_ns, None, hop, 1).0;
                let of_block = |piece: Piece| match piece.behind {
                    Some(Behind::Block(_)) if piece.from_ns < woken_ns => self.block(hop_number, &piece),
                    _ => vec![piece],
                };
                busy = busy.into_iter().flat_map(of_block).filter(|piece| piece.to_ns > woken_ns).collect();
                busy.iter_mut().for_each(|piece| piece.from_ns = piece.from_ns.max(woken_ns));
            }
            pieces.extend(busy);
        }
        pieces
    }

    /// What the thread was at, with the message that it was at then. A block that has nothing of the message's own is one piece.
    fn busy(&mut self, tid: i32, from_ns: u64, to_ns: u64, own: Option<Behind>, hop: Hop) -> Vec<Piece> {
        if from_ns >= to_ns {
            return Vec::new();
        }
        let known = self
            .busy
            .remove(&(self.at_hop, tid))
            .filter(|known| !self.verbose && known.own == hop.own && known.from_ns <= to_ns && from_ns <= known.to_ns);
        let begun = || Busy {
            own: hop.own,
            from_ns,
            to_ns: from_ns,
            pieces: VecDeque::new(),
            idle_until_ns: VecDeque::new(),
            past: 0,
        };
        let mut busy = known.unwrap_or_else(begun);
        if from_ns < busy.from_ns {
            // A message that was overtaken.
            for piece in self.handling(tid, from_ns, busy.from_ns, hop).into_iter().rev() {
                busy.pieces.push_front(piece);
                busy.past -= 1;
            }
            for idle_until_ns in self.idles(tid, from_ns, busy.from_ns).into_iter().rev() {
                busy.idle_until_ns.push_front(idle_until_ns);
            }
            busy.from_ns = from_ns;
        }
        if busy.to_ns < to_ns {
            busy.pieces.extend(self.handling(tid, busy.to_ns, to_ns, hop));
            busy.idle_until_ns.extend(self.idles(tid, busy.to_ns, to_ns));
            busy.to_ns = to_ns;
        }
        // What lies before all that are under way is of no use any more.
        let past = busy.pieces.partition_point(|piece| piece.to_ns <= self.since_ns.min(from_ns));
        busy.pieces.drain(..past);
        let past_ns = self.since_ns.min(from_ns);
        busy.idle_until_ns.drain(..busy.idle_until_ns.partition_point(|until_ns| *until_ns <= past_ns));
        busy.past += past as isize;
        busy.from_ns = busy.pieces.front().map_or(from_ns, |piece| piece.from_ns);
        let first = busy.pieces.partition_point(|piece| piece.to_ns <= from_ns);
        let end = busy.pieces.partition_point(|piece| piece.from_ns < to_ns);
        let clip =
            |piece: &Piece| Piece { from_ns: piece.from_ns.max(from_ns), to_ns: piece.to_ns.min(to_ns), ..*piece };
        // Between hosts the receiver's last wait for data is sought among the pieces.
        let is_one_host = host_of(hop.own[0]) == host_of(hop.own[1]);
        let sums = self.sums_blocks && is_one_host && !self.shared.contains_key(&tid);
        let mut pieces = Vec::new();
        let mut at = first;
        while at < end {
            let is_first = (busy.past + at as isize) % BLOCK as isize == 0 && busy.pieces[at].from_ns >= from_ns;
            // The latest of them differ from message to message.
            let is_block = sums && is_first && at + 2 * BLOCK <= end;
            if is_block && busy.pieces.range(at..at + BLOCK).all(|piece| piece.behind != own) {
                let (first, last) = (&busy.pieces[at], &busy.pieces[at + BLOCK - 1]);
                let behind = Some(Behind::Block(first.from_ns));
                pieces.push(Piece { behind, ..self.piece(first.from_ns, last.to_ns, Cause::Queued, tid) });
                at += BLOCK;
            } else {
                pieces.push(clip(&busy.pieces[at]));
                at += 1;
            }
        }
        self.busy.insert((self.at_hop, tid), busy);
        pieces
    }

    /// What the thread did, with the message that it was at then.
    fn handling(&mut self, tid: i32, from_ns: u64, to_ns: u64, hop: Hop) -> Vec<Piece> {
        let mut pieces = self.walk(tid, from_ns, to_ns, None, hop, 0).0;
        let handled = self.spans.handled(tid, from_ns, to_ns, self.receivers.contains(&tid));
        set_handled(&mut pieces, &handled);
        pieces
    }

    /// When it ceased to wait for data without a message in hand.
    fn idles(&mut self, tid: i32, from_ns: u64, to_ns: u64) -> Vec<u64> {
        let timelines = self.timelines;
        let Some(timeline) = timelines.threads.get(&tid) else { return Vec::new() };
        let mut all = Vec::new();
        for (at, start_ns, end_ns) in timeline.between(from_ns, to_ns) {
            let is_blocked = timeline.segments.get(at).is_some_and(|segment| segment.state == ThreadState::Blocked);
            if is_blocked && self.spans.within(tid, start_ns).is_none() && self.is_idle(tid, timeline, at) == Some(true)
            {
                all.push(end_ns);
            }
        }
        all
    }

    /// The pieces that one of the hop stands for, until the hop of another message is walked.
    pub fn block(&self, hop: u16, of: &Piece) -> Vec<Piece> {
        let Some(busy) = self.busy.get(&(hop, of.tid)) else { return vec![*of] };
        let at = busy.pieces.partition_point(|piece| piece.from_ns < of.from_ns);
        let within = busy.pieces.range(at..).take_while(|piece| piece.to_ns <= of.to_ns);
        with_interrupted(within.copied().collect())
    }

    /// Whether the thread has nothing to do at that moment: until when, and whether it waits for data (or for its timer).
    pub fn idles_at(&mut self, tid: i32, time_ns: u64) -> Option<(u64, bool)> {
        let timelines = self.timelines;
        let timeline = timelines.threads.get(&tid)?;
        let at = timeline.segments.partition_point(|s| s.start_ns <= time_ns).checked_sub(1)?;
        Some((timeline.end_ns(at), self.is_idle(tid, timeline, at)?))
    }

    /// The first time within which the thread begins to have nothing to do: from, to.
    pub fn idles_in(&mut self, tid: i32, from_ns: u64, to_ns: u64) -> Option<(u64, u64)> {
        let timelines = self.timelines;
        let timeline = timelines.threads.get(&tid)?;
        let begins = |(at, start, end): (usize, u64, u64)| {
            (timeline.segments[at].start_ns >= from_ns).then_some((at, start, end))
        };
        let stretches: Vec<_> = timeline.between(from_ns, to_ns).filter_map(begins).collect();
        stretches.into_iter().find_map(|(at, start, end)| {
            let is_idle = self.is_idle(tid, timeline, at).is_some() && self.spans.within(tid, start).is_none();
            is_idle.then_some((start, end))
        })
    }

    /// The last such time that ends within.
    pub fn idled_until(&mut self, tid: i32, from_ns: u64, to_ns: u64) -> Option<u64> {
        let timelines = self.timelines;
        let timeline = timelines.threads.get(&tid)?;
        let stretches: Vec<_> = timeline.between(from_ns, to_ns).collect();
        stretches.into_iter().rev().find_map(|(at, start, end)| {
            let is_idle = self.is_idle(tid, timeline, at).is_some() && self.spans.within(tid, start).is_none();
            is_idle.then_some(end)
        })
    }

    /// `Some(true)`: a wait for data or a signal; `Some(false)`: for a timer. Who sleeps in marked work goes on with that.
    fn is_idle(&mut self, tid: i32, timeline: &Timeline, at: usize) -> Option<bool> {
        let segment = timeline.segments.get(at).filter(|s| s.state == ThreadState::Blocked)?;
        let end = timeline.end_ns(at).min(self.timelines.end_ns);
        if self.futexes.gil_wait(tid, segment.start_ns, end).is_some_and(|wait| wait.start_ns < end) {
            return None;
        }
        let hop = Hop { from: Moment::of(tid, segment.start_ns), to_ns: 0, own: [tid; 2] };
        match self.wait(tid, timeline, at, segment.start_ns, end, hop) {
            Wait::For(_) => Some(true),
            Wait::Is(pieces) => match pieces.first().map(|piece| piece.cause) {
                Some(Cause::Io) => Some(true),
                Some(Cause::Sleep) => (!self.spans.is_at_work(tid, segment.start_ns)).then_some(false),
                _ => None,
            },
        }
    }

    /// What a message's source knows of why it could not go on stands above what threads did.
    pub fn held(&mut self, id: u64, mut pieces: Vec<Piece>, from_ns: u64, to_ns: u64) -> Vec<Piece> {
        let holds = self.holds;
        for (hold, callback) in holds.within(id, from_ns, to_ns) {
            let (cause, what, behind) = match hold.why {
                HeldBy::Executor => (Cause::Executor, "busy with", Some(Behind::Work(self.names.of(callback)))),
                HeldBy::Partner => (Cause::Partner, "until", None),
            };
            let detail = self.names.of(&format!("{what} {callback}"));
            let (names, verbose) = (&mut *self.names, self.verbose);
            overlay(&mut pieces, hold.from_ns, hold.to_ns, |from_ns, to_ns, old| {
                let what = format!("{} {}", old.cause.word(), names.text(old.detail));
                let is_known = verbose && old.cause != Cause::Unknown;
                let note = if is_known { names.of(&format!("its thread then: {}", what.trim_end())) } else { 0 };
                Some(Piece { cause, detail, other: hold.by, behind, note, ..Piece::unknown(from_ns, to_ns, old.tid) })
            });
        }
        pieces
    }

    /// Between the marks "lock wait" and "lock acquired" of its thread, time is the lock's: a spinning wait
    /// looks like work to the kernel.
    fn lock_marks(&mut self, mut pieces: Vec<Piece>) -> Vec<Piece> {
        if !self.spans.has_locks() {
            return pieces;
        }
        let mut tids: Vec<(i32, u64, u64)> = pieces.iter().map(|p| (p.tid, p.from_ns, p.to_ns)).collect();
        tids.dedup_by(|next, first| {
            let same = next.0 == first.0 && next.1 == first.2;
            if same {
                first.2 = next.2;
            }
            same
        });
        for (tid, from, to) in tids {
            for (start, end, name) in self.spans.lock_waits(tid, from, to) {
                let detail = self.names.of(name);
                overlay(&mut pieces, start, end, |from_ns, to_ns, old| {
                    let keeps = old.tid != tid || matches!(old.cause, Cause::Gil | Cause::Lock);
                    (!keeps).then_some(Piece { from_ns, to_ns, cause: Cause::Lock, detail, ..*old })
                });
            }
        }
        pieces
    }

    /// What the two threads did in marked work meanwhile, of the message or not, has the work's name.
    fn in_work(&mut self, mut pieces: Vec<Piece>, from: Moment, to: Moment) -> Vec<Piece> {
        use Cause::{Cpu, Disk, Io, PageFault, Sleep, Syscall};
        let spans = self.spans;
        let mut tids = vec![from.tid, to.tid];
        tids.dedup();
        for tid in tids.into_iter().filter(|tid| spans.has_work(*tid)) {
            for mut piece in std::mem::take(&mut pieces) {
                let is_own = matches!(piece.cause, Cpu | Syscall | PageFault | Io | Sleep | Disk);
                let is_named = !matches!(piece.behind, None | Some(Behind::Message(_)));
                if piece.tid != tid || is_named || !is_own {
                    pieces.push(piece);
                    continue;
                }
                while piece.from_ns < piece.to_ns {
                    let (work, until_ns) = spans.work_at(tid, piece.from_ns, (from.time_ns, to.time_ns));
                    let detail = work.map_or(piece.detail, |work| self.detail_in(piece.detail, work));
                    let to_ns = piece.to_ns.min(until_ns);
                    pieces.push(Piece { to_ns, detail, ..piece });
                    piece.from_ns = to_ns;
                }
            }
        }
        pieces
    }

    fn detail_in(&mut self, detail: u32, place: &str) -> u32 {
        let detail = self.names.text(detail).to_owned();
        let space = if detail.is_empty() { "" } else { " " };
        self.names.of_parts(&[&detail, space, "in ", place])
    }

    /// What a thread was busy with is not known where its stamps were lost.
    fn without_lost_stamps(&mut self, mut pieces: Vec<Piece>) -> Vec<Piece> {
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return pieces };
        let holes: Vec<_> = self.spans.holes_between(first.from_ns, last.to_ns).collect();
        for hole in holes {
            let detail = self.names.of(STAMPS_LOST);
            overlay(&mut pieces, hole.since_ns, hole.until_ns, |from_ns, to_ns, old| {
                let is_its = hole.tid.is_none_or(|tid| tid == old.tid);
                is_its.then(|| Piece { detail, ..Piece::unknown(from_ns, to_ns, old.tid) })
            });
        }
        pieces
    }

    /// A stretch of which kernel events are missing.
    fn lost(&mut self, from_ns: u64, to_ns: u64, tid: i32) -> Piece {
        let detail = self.names.of(KERNEL_EVENTS_LOST);
        Piece { detail, ..Piece::unknown(from_ns, to_ns, tid) }
    }

    fn piece(&self, from_ns: u64, to_ns: u64, cause: Cause, tid: i32) -> Piece {
        Piece { cause, ..Piece::unknown(from_ns, to_ns, tid) }
    }

    fn note(&mut self, text: impl FnOnce(&Self) -> String) -> u32 {
        if !self.verbose {
            return 0;
        }
        let text = text(self);
        self.names.of(&text)
    }
}

/// Replaces what lies in `start..end` by what `change` makes of it, cut where that begins and ends.
fn overlay(pieces: &mut Vec<Piece>, start: u64, end: u64, mut change: impl FnMut(u64, u64, &Piece) -> Option<Piece>) {
    let mut result = Vec::with_capacity(pieces.len() + 2);
    for old in pieces.drain(..) {
        let (from, to) = (old.from_ns.max(start), old.to_ns.min(end));
        match (from < to).then(|| change(from, to, &old)).flatten() {
            None => result.push(old),
            Some(new) => {
                let before = Piece { to_ns: from, ..old };
                let after = Piece { from_ns: to, ..old };
                result.extend([before, new, after].into_iter().filter(|p| p.from_ns < p.to_ns));
            }
        }
    }
    *pieces = result;
}

/// Notes of what lies in `start..end` that the message waited behind something. Another thread's turn stays that.
fn set_behind(pieces: &mut Vec<Piece>, start: u64, end: u64, behind: Behind) {
    overlay(pieces, start, end, |from_ns, to_ns, old| {
        Some(Piece { from_ns, to_ns, behind: old.behind.or(Some(behind)), ..*old })
    });
}

/// Notes of each piece what its thread was at then, by stretches in order of time: (from, to, message).
fn set_handled(pieces: &mut Vec<Piece>, handled: &[(u64, u64, u64)]) {
    let mut result = Vec::with_capacity(pieces.len() + handled.len());
    let mut next = 0;
    for mut piece in pieces.drain(..) {
        while piece.from_ns < piece.to_ns {
            while handled.get(next).is_some_and(|(_, to_ns, _)| *to_ns <= piece.from_ns) {
                next += 1;
            }
            let (until_ns, behind) = match handled.get(next) {
                Some((from_ns, to_ns, id)) if *from_ns <= piece.from_ns => (*to_ns, Some(Behind::Message(*id))),
                Some((from_ns, ..)) => (*from_ns, None),
                None => (u64::MAX, None),
            };
            let to_ns = piece.to_ns.min(until_ns);
            result.push(Piece { to_ns, behind: piece.behind.or(behind), ..piece });
            piece.from_ns = to_ns;
        }
    }
    *pieces = result;
}

/// Interruptions with what their thread did before: a thread that computes longer is interrupted more often.
fn with_interrupted(mut pieces: Vec<Piece>) -> Vec<Piece> {
    let mut doing: Vec<(i32, (Cause, u32))> = Vec::new();
    for piece in &mut pieces {
        let known = doing.iter().position(|(tid, _)| *tid == piece.tid);
        if matches!(piece.cause, Cause::Irq | Cause::Preempted | Cause::Throttled | Cause::Hypervisor) {
            piece.after = piece.after.or(known.map(|at| doing[at].1));
        } else if matches!(piece.cause, Cause::Cpu | Cause::Syscall | Cause::PageFault) {
            let now = (piece.tid, (piece.cause, piece.detail));
            match known {
                Some(at) => doing[at] = now,
                None => doing.push(now),
            }
        }
    }
    pieces
}

/// Neighbours that say the same become one.
fn joined(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.dedup_by(|next, last| {
        let same = (last.cause, last.tid, last.detail, last.other, last.after, last.behind)
            == (next.cause, next.tid, next.detail, next.other, next.after, next.behind)
            && last.note == next.note;
        if same {
            last.to_ns = next.to_ns;
        }
        same
    });
    pieces
}

/// "softirq NET_RX", "irq 24", "vector 236".
fn interrupt_name(kind: u8, number: i32) -> Cow<'static, str> {
    const SOFTIRQS: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    match kind {
        1 => format!("softirq {}", usize::try_from(number).ok().and_then(|n| SOFTIRQS.get(n)).unwrap_or(&"?")).into(),
        2 => match number {
            0xec => "local timer".into(),
            0xfd => "reschedule".into(),
            0xfc | 0xfb => "call from another CPU".into(),
            _ => format!("vector {number}").into(),
        },
        _ => format!("irq {number}").into(),
    }
}
