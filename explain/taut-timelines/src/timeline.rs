//! One thread's life: its states, system calls, page faults and armed timers, each in order of time.

use crate::{
    calls::CallId,
    sequence::{Sequence, partition_from},
};

/// What a thread did when.
#[derive(Default)]
pub struct Timeline {
    /// Contiguous: each ends where the next begins.
    pub segments: Sequence<Segment>,
    /// System calls, not overlapping.
    pub calls: Sequence<SystemCall>,
    /// Moments of page faults from user code.
    pub faults: Sequence<u64>,
    /// The time on a CPU that their handling took, not overlapping; after [`Timeline::lay_out_faults`].
    pub fault_times: Sequence<(u64, u64)>,
    /// Timers armed by the thread itself: sleeps and time-outs.
    pub timers: Sequence<Timer>,
    /// Timers that fired and that the thread had armed, or that woke it.
    pub expiries: Vec<Expiry>,
    /// Of a kernel thread: what it worked on for others.
    pub works: Sequence<Work>,
    /// The scheduler's priority of it, mostly: below 0 SCHED_DEADLINE, 0 to 98 real-time (99 less its priority), 100 to 139 normal (120
    /// and its nice value); `None` where switches do not say.
    pub priority: Option<i16>,
    /// How often it had that one more often than others.
    majority: u32,
    /// Stretches in which the thread did something that was not recorded; until [`Timeline::settle`].
    pub(crate) doubts: Vec<(u64, u64)>,
}

/// Of faults that follow each other within this time, little else can have happened between.
pub(crate) const CLOSE_FAULTS_NS: u64 = 20_000;
/// A sleep without a system call this shortly after a fault is the fault's: it waits for a disk.
pub const FAULT_BEFORE_SLEEP_NS: u64 = 1_000_000;

/// A state from `start_ns` to the start of the next segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// When it begins.
    pub start_ns: u64,
    /// Woken: the thread that woke it. Preempted: the thread that was switched to.
    pub other: i32,
    /// Running: on which CPU. Else: on which it ran last, or which it was woken for.
    pub cpu: u16,
    /// The state.
    pub state: ThreadState,
    /// Woken: the waker's `common_flags`, so that an interrupted innocent is not taken for the waker.
    pub flags: u8,
}

/// What a thread is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// On a CPU.
    Running,
    /// It could run on, and another thread has the CPU.
    Preempted,
    /// It was woken and does not run yet.
    Woken,
    /// Interruptible: may end by a signal or a time-out.
    Blocked,
    /// Uninterruptible: disk, major fault, kernel-internal lock.
    Uninterruptible,
    /// By a signal or a debugger.
    Stopped,
    /// A switch is missing, or the thread is not visible.
    Unknown,
    /// Events are missing that would tell.
    Lost,
    /// Not yet born, or dead.
    Gone,
}

/// A system call; `end_ns` is [`u64::MAX`] while it is under way at the end of the recording.
#[derive(Clone, Copy, Debug)]
pub struct SystemCall {
    /// When it begins.
    pub start_ns: u64,
    /// When it ends.
    pub end_ns: u64,
    /// Which call.
    pub id: CallId,
    /// What it returned.
    pub result: i32,
    /// A futex's address, or a descriptor.
    pub arg0: u64,
    /// A futex's operation, or the low half of the second argument.
    pub arg1: u32,
    /// Of a futex wait: the value expected; of a wake: how many are woken.
    pub value: u32,
}

/// Moments that are further apart are of two clocks: timers and intended starts may be of another one than the recording.
pub const SAME_CLOCK_NS: u64 = 86_400_000_000_000;

/// An armed timer, in its own clock's nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// When it was armed.
    pub armed_ns: u64,
    /// When it was asked for.
    pub asked_ns: u64,
    /// That plus the timer slack.
    pub latest_ns: u64,
    /// Whether a time from now on was asked for, and not a moment.
    pub is_relative: bool,
}

/// A timer that fired; moments are of the recording's clock, whatever the timer's is.
#[derive(Clone, Copy, Debug)]
pub struct Expiry {
    /// When its interrupt came.
    pub at_ns: u64,
    /// The moment that it was set to.
    pub asked_ns: u64,
    /// When it was armed.
    pub armed_ns: u64,
    /// Which timer: one of a descriptor keeps its address, one of a sleep has it for that sleep.
    pub address: u64,
    /// Whether a time from then on was asked for, and not a moment.
    pub is_relative: bool,
}

/// Work that a kernel thread did for another thread, or for an interrupt.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// When the kernel thread began with it.
    pub start_ns: u64,
    /// When it was given to it.
    pub queued_ns: u64,
    /// The thread that gave it, or that was interrupted then.
    pub by: i32,
    /// The `common_flags` of that moment, so that an interrupted thread is not taken for the giver.
    pub flags: u8,
}

impl Timeline {
    /// The segments that overlap `from..to`, with their bounds cut to it, in order of time.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> impl DoubleEndedIterator<Item = (usize, u64, u64)> + '_ {
        let first = self.segments.partition_point(|s| s.start_ns <= from_ns).saturating_sub(1);
        let last = partition_from(&self.segments, first, |s| s.start_ns < to_ns);
        (first..last).filter_map(move |at| {
            let start = self.segments[at].start_ns.max(from_ns);
            let end = self.end_ns(at).min(to_ns);
            (start < end).then_some((at, start, end))
        })
    }

    /// It came to a CPU with that priority. One that it has most of the time is kept (Boyer and Moore's majority vote).
    pub(crate) fn had_priority(&mut self, priority: i16) {
        match self.majority {
            _ if self.priority == Some(priority) => self.majority += 1,
            0 => (self.priority, self.majority) = (Some(priority), 1),
            _ => self.majority -= 1,
        }
    }

    /// Where the segment ends.
    pub fn end_ns(&self, at: usize) -> u64 {
        self.segments.get(at + 1).map_or(u64::MAX, |next| next.start_ns)
    }

    /// What the thread did in one of its doubts, or in a hole of its CPU, is not known. Off a CPU it may have been woken
    /// and have run in a hole of any CPU: then the whole stretch is not known. So it is where its next event does not fit its last one.
    /// Each list ascends without overlaps.
    pub(crate) fn settle(&mut self, of_cpu: &[Vec<(u64, u64)>], of_any: &[(u64, u64)]) {
        let doubts = ascending(std::mem::take(&mut self.doubts));
        if doubts.is_empty() && of_cpu.iter().all(Vec::is_empty) {
            return;
        }
        // Nearly all timelines stay as they are: they are copied from the first stretch on that does not.
        let mut settled: Option<Vec<Segment>> = None;
        for (at, segment) in self.segments.iter().enumerate() {
            let end_ns = self.segments.get(at + 1).map_or(u64::MAX, |next| next.start_ns);
            let lost = |start_ns| Segment { start_ns, state: ThreadState::Lost, ..*segment };
            let holes = match segment.state {
                ThreadState::Lost | ThreadState::Gone => &[][..],
                ThreadState::Running => of_cpu.get(usize::from(segment.cpu)).map_or(&[][..], Vec::as_slice),
                _ => of_any,
            };
            let mut lacks: Vec<(u64, u64)> = overlapping(holes, segment.start_ns, end_ns).collect();
            lacks.extend(overlapping(&doubts, segment.start_ns, end_ns));
            if lacks.is_empty() {
                settled.iter_mut().for_each(|settled| settled.push(*segment));
                continue;
            }
            let settled = settled.get_or_insert_with(|| self.segments[..at].to_vec());
            if segment.state != ThreadState::Running {
                settled.push(lost(segment.start_ns));
                continue;
            }
            let mut from_ns = segment.start_ns;
            for (start, end) in ascending(lacks) {
                if from_ns < start {
                    settled.push(Segment { start_ns: from_ns, ..*segment });
                }
                settled.push(lost(start));
                from_ns = end;
            }
            if from_ns < end_ns {
                settled.push(Segment { start_ns: from_ns, ..*segment });
            }
        }
        if let Some(settled) = settled {
            self.segments = settled.into();
        }
    }

    /// The CPU that it runs on, if it is one and the same but for some moments: one in a hundred.
    pub fn only_cpu(&self) -> Option<u16> {
        let mut stays: Vec<(u16, usize)> = Vec::new();
        let mut all = 0;
        for segment in self.segments.iter().filter(|segment| segment.state == ThreadState::Running) {
            all += 1;
            match stays.iter_mut().find(|(cpu, _)| *cpu == segment.cpu) {
                Some((_, count)) => *count += 1,
                None => stays.push((segment.cpu, 1)),
            }
        }
        let (cpu, count) = stays.into_iter().max_by_key(|(_, count)| *count)?;
        (count * 100 >= all * 99).then_some(cpu)
    }

    /// Stretches of which events are missing, within these bounds.
    pub fn lost_between(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let lost = self.between(from_ns, to_ns);
        lost.filter(|(at, _, _)| self.segments[*at].state == ThreadState::Lost).map(|(_, from, to)| (from, to))
    }

    /// Whether it was switched to or woken again and again, and never left a CPU: the kernel's tracing shows nothing
    /// that this thread does itself.
    pub(crate) fn is_invisible(&self) -> bool {
        let is_own = |segment: &Segment| {
            !matches!(segment.state, ThreadState::Woken | ThreadState::Running | ThreadState::Unknown)
        };
        if !self.calls.is_empty() || !self.timers.is_empty() || self.segments.iter().any(is_own) {
            return false;
        }
        let woken = self.segments.iter().filter(|segment| segment.state == ThreadState::Woken).count();
        woken >= 2 || self.segments.len() - woken >= 2
    }

    /// An event says when a fault begins and none when it ends: at the next one if that follows closely, at
    /// the sleep that it leads to, else after the usual time; and after such a sleep it goes on for that time.
    pub(crate) fn lay_out_faults(&mut self, usual_ns: u64) {
        let mut times: Vec<(u64, u64)> = Vec::new();
        for (at, fault) in self.faults.iter().enumerate() {
            let next = self.faults.get(at + 1).copied().unwrap_or(u64::MAX);
            let segment = self.segments.partition_point(|s| s.start_ns <= *fault);
            let sleep = self.segments.get(segment).filter(|s| s.state == ThreadState::Uninterruptible);
            let sleep = sleep.filter(|s| s.start_ns < next && s.start_ns - fault < FAULT_BEFORE_SLEEP_NS);
            let end = match sleep {
                Some(sleep) => sleep.start_ns,
                None if next - fault <= CLOSE_FAULTS_NS => next,
                None => fault + usual_ns,
            };
            times.push((*fault, end));
            let later = self.segments[segment..].iter().take(3).filter(|_| sleep.is_some());
            let back = later.map(|s| (s.state, s.start_ns)).find(|(state, _)| *state == ThreadState::Running);
            if let Some((_, back)) = back.filter(|(_, back)| *back < next) {
                times.push((back, if next - back <= CLOSE_FAULTS_NS { next } else { back + usual_ns }));
            }
        }
        for at in 1..times.len() {
            times[at - 1].1 = times[at - 1].1.min(times[at].0);
        }
        self.fault_times = times.into();
    }

    /// The system call under way at that moment.
    pub fn call(&self, time_ns: u64) -> Option<&SystemCall> {
        call_at(&self.calls, time_ns)
    }

    /// The last timer that fired after `since_ns`, and not after `until_ns`.
    pub fn expiry(&self, since_ns: u64, until_ns: u64) -> Option<&Expiry> {
        let at = self.expiries.partition_point(|expiry| expiry.at_ns <= until_ns).checked_sub(1)?;
        Some(&self.expiries[at]).filter(|expiry| expiry.at_ns > since_ns)
    }

    /// What it works on at that moment, or worked on last.
    pub fn work(&self, time_ns: u64) -> Option<&Work> {
        self.works[..self.works.partition_point(|work| work.start_ns <= time_ns)].last()
    }

    /// The timer armed first from `since_ns` on, and not after `time_ns`: later ones, on the way to sleep, are
    /// the scheduler's own.
    pub fn timer(&self, since_ns: u64, time_ns: u64) -> Option<&Timer> {
        let at = self.timers.partition_point(|t| t.armed_ns < since_ns);
        self.timers.get(at).filter(|t| t.armed_ns <= time_ns)
    }
}

/// Stretches in order of time, those that touch each other joined.
pub fn ascending(mut stretches: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    stretches.retain(|(start, end)| start < end);
    stretches.sort_unstable();
    stretches.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        if joins {
            last.1 = last.1.max(next.1);
        }
        joins
    });
    stretches
}

/// Those that overlap `from_ns..to_ns`, cut to it.
fn overlapping(stretches: &[(u64, u64)], from_ns: u64, to_ns: u64) -> impl Iterator<Item = (u64, u64)> {
    let first = stretches.partition_point(|(_, end)| *end <= from_ns);
    let within = stretches[first..].iter().take_while(move |(start, _)| *start < to_ns);
    within.map(move |(start, end)| ((*start).max(from_ns), (*end).min(to_ns)))
}

/// The call under way at that moment, of calls in order of time.
pub fn call_at(calls: &Sequence<SystemCall>, time_ns: u64) -> Option<&SystemCall> {
    let at = calls.partition_point(|c| c.start_ns <= time_ns).checked_sub(1)?;
    Some(&calls[at]).filter(|c| time_ns < c.end_ns)
}
