//! Replays kernel events into timelines of threads and CPUs.

use foldhash::HashMap;
use taut_recording::{
    Architecture, KernelBatch, KernelEvent,
    host_numbers::{host_and_cpu, host_of},
};

use crate::{
    calls::{CallId, CallNumbers},
    cpu::{Cpu, HARD_IRQ, Idle, Interrupt, SOFT_IRQ, SOFTIRQ, STALL},
    order::{Event, Events},
    timeline::{Expiry, Segment, SystemCall, ThreadState, Timeline, Timer, Work},
    timelines::Timelines,
};

/// The current thread is about to be switched out.
const NEED_RESCHED: u8 = 0x04;

/// Bits of `prev_state` that this analysis reads; the kernel has kept their places since 4.14.
const INTERRUPTIBLE: i64 = 0x01;
const UNINTERRUPTIBLE: i64 = 0x02;
const STOPPED_OR_TRACED: i64 = 0x04 | 0x08;
const DEAD_OR_ZOMBIE: i64 = 0x10 | 0x20;
/// Everything below the kernel's "preempted" marker.
const STATES: i64 = 0xff;

/// A wake may be seen this long before the switch-out it undoes: the waker's CPU was quicker.
const EARLY_WAKE_NS: u64 = 50_000;

/// Events of a CPU that are missing, as a recording says it.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The CPU's number.
    pub cpu: u16,
    /// 0 where that is not known.
    pub since_ns: u64,
    /// When it was noticed.
    pub until_ns: u64,
}

/// A softirq that begins this shortly after another interrupt belongs to it.
const EXIT_TO_SOFTIRQ_NS: u64 = 3_000;
/// A tick that is later than this was not held up by the kernel: that keeps interrupts off for less.
const LATE_TICK_NS: u64 = 100_000;
/// A wake that comes this long after a timer fired on its CPU is not that timer's, where nothing says when the interrupt ended.
const FIRING_NS: u64 = 1_000_000;
/// A timer whose clock is further than this from the recording's has another one.
const SAME_MOMENT_NS: u64 = 1_000_000;
/// Bit of a timer's mode: a time from now on.
const RELATIVE: u8 = 0x01;
/// Addresses of timers come without their highest byte, which is the same of all.
const ADDRESS: u64 = (1 << 56) - 1;
const YIELD: &str = "sched_yield";
/// A thread of SCHED_DEADLINE that ends its activation is switched out this soon after its timer for the next one is armed.
const YIELD_NS: u64 = 20_000;
/// The vector of the local timer on x86.
const LOCAL_TIMER: (i64, i64) = (0xec, 2);
/// Periods of ticks: of 1000 Hz to 100 Hz.
const TICK_PERIODS_NS: std::ops::RangeInclusive<u64> = 990_000..=10_100_000;
/// A timer of a CPU that was armed so often in steps of its period is its tick.
const TICK_STEPS: u32 = 8;
/// The tick's interrupt comes this soon after a CPU runs again.
const RUNS_AGAIN_NS: u64 = 200_000;

/// A timer that a CPU arms in interrupts.
#[derive(Default)]
struct Tick {
    due_ns: u64,
    period_ns: u64,
    /// In how many steps of that, one after the other.
    steps: u32,
}

impl Tick {
    /// Takes when it is due next; its period, once it is known.
    fn armed(&mut self, due_ns: u64) -> Option<u64> {
        let step = due_ns.saturating_sub(std::mem::replace(&mut self.due_ns, due_ns));
        if step > 0 && step != due_ns {
            match self.period_ns {
                period_ns if period_ns > 0 && step.is_multiple_of(period_ns) => self.steps += 1,
                period_ns if period_ns == 0 || step < period_ns => (self.period_ns, self.steps) = (step, 0),
                _ => self.steps = 0,
            }
        }
        (self.steps >= TICK_STEPS && TICK_PERIODS_NS.contains(&self.period_ns)).then_some(self.period_ns)
    }
}

/// ThreadState of the replay that the result does not need.
#[derive(Default)]
struct Replay {
    result: Timelines,
    /// They become the result's at the end.
    timelines: Vec<Timeline>,
    /// By thread: which is its timeline.
    places: HashMap<i32, usize>,
    /// The thread that was looked up last: one event needs its timeline several times, and so does the next, mostly.
    latest: Option<(i32, usize)>,
    /// Of each host.
    numbers: Vec<CallNumbers>,
    /// Of each CPU: interrupts begun and not ended.
    nested: Vec<Vec<Interrupt>>,
    /// Of each CPU: when its tick is due.
    ticks: Vec<u64>,
    /// By CPU and address: timers that it armed in its timer's interrupt. The kernel's events do not say which is the tick.
    in_interrupts: HashMap<(u16, u64), Tick>,
    /// Of each CPU: the last stretch without an event that a tick may have been due in.
    gaps: Vec<(u64, u64)>,
    /// Of each CPU: when its current thread was last seen about to leave.
    leaving: Vec<u64>,
    /// Of each CPU: the last event.
    seen: Vec<u64>,
    /// By address: timers that are armed, and by whom.
    armed: HashMap<u64, (i32, Timer)>,
    /// Of each CPU: the timer that fires there.
    firing: Vec<Option<(i32, Expiry)>>,
    /// By address: work that no kernel thread began with.
    queued: HashMap<u64, Work>,
    /// Wakes of threads that seemed to run still: (when, who, flags, cpu).
    early_wakes: HashMap<i32, Segment>,
}

/// Collects kernel events and replays them into [`Timelines`].
#[derive(Default)]
pub struct Builder {
    events: Events,
    losses: Vec<Loss>,
}

impl Builder {
    /// Takes events of one CPU.
    pub fn batch(&mut self, batch: &KernelBatch) {
        self.events.add(batch);
    }

    /// Takes word of events that are missing.
    pub fn lost(&mut self, loss: Loss) {
        self.losses.push(loss);
    }

    /// Replays everything in order of time. `architectures` are, of each host, the one with the recorded numbers of system calls.
    pub fn finish(self, architectures: &[Option<Architecture>]) -> Timelines {
        let numbers = architectures.iter().map(|of| CallNumbers::of(*of)).collect();
        let mut replay = Replay { numbers, ..Replay::default() };
        (replay.result.start_ns, replay.result.end_ns) = self.events.span().unwrap_or_default();
        self.events.in_order(&mut |event| replay.take(event));
        let Replay { mut result, mut timelines, places, .. } = replay;
        let of = |(tid, at): (i32, usize)| (tid, std::mem::take(&mut timelines[at]));
        result.threads = places.into_iter().map(of).collect();
        self.losses.iter().for_each(|loss| result.lose(loss.cpu, loss.since_ns, loss.until_ns));
        result.complete();
        result
    }
}

impl Replay {
    fn take(&mut self, event: &Event) {
        use KernelEvent::*;
        let time = event.time_ns;
        self.stands_still(event);
        let kind = KernelEvent::from_number(event.event);
        if !matches!(kind, Some(SwitchIn | SwitchOut)) {
            self.check_current(event, kind == Some(SchedSwitch));
        }
        match kind {
            Some(SchedSwitch) => self.switch(event),
            Some(SchedWaking | SchedWakeupNew) => self.wake(event),
            Some(SyscallEnter) => {
                self.cut_call(event.tid, time);
                let id = self.call_id(event);
                self.thread(event.tid).calls.push(SystemCall {
                    start_ns: time,
                    end_ns: u64::MAX,
                    id,
                    result: 0,
                    arg0: event.arg1 as u64,
                    arg1: event.arg2 as u32,
                    value: event.arg2_high,
                });
            }
            Some(SyscallExit) => {
                let id = self.call_id(event);
                let open = self.thread(event.tid).calls.last_mut();
                match open.filter(|call| call.end_ns == u64::MAX && call.id == id) {
                    Some(call) => (call.end_ns, call.result) = (time, event.arg1 as i32),
                    None => self.call_without_begin(event.tid, time),
                }
            }
            Some(PageFault) => {
                self.cut_call(event.tid, time);
                self.thread(event.tid).faults.push(time);
            }
            // The tick is armed in interrupts; only what the thread itself arms is its sleep.
            Some(TimerStart) if event.flags & (HARD_IRQ | SOFT_IRQ) == 0 => {
                let packed = u64::from(event.arg2_high) << 32 | u64::from(event.arg2 as u32);
                let timer = Timer {
                    armed_ns: time,
                    asked_ns: event.arg0 as u64,
                    latest_ns: event.arg1 as u64,
                    is_relative: packed as u8 & RELATIVE != 0,
                };
                self.thread(event.tid).timers.push(timer);
                let address = packed >> 8;
                if address != 0 {
                    self.armed.insert(address, (event.tid, timer));
                }
            }
            Some(TimerExpire) => self.timer_fires(event),
            Some(WorkQueue) => {
                let work = Work { queued_ns: time, by: event.tid, flags: event.flags, start_ns: time };
                self.queued.insert(event.arg0 as u64, work);
            }
            Some(WorkStart) => {
                if let Some(work) = self.queued.remove(&(event.arg0 as u64)) {
                    self.thread(event.tid).works.push(Work { start_ns: time, ..work });
                }
            }
            Some(TimerStart) if event.flags & HARD_IRQ != 0 => {
                self.tick_armed(event);
                *slot(&mut self.ticks, event.cpu) = event.arg0 as u64;
            }
            Some(IrqEnter) => {
                if (event.arg0, event.arg1) == LOCAL_TIMER {
                    self.tick_comes(event.cpu, time);
                }
                let kind = event.arg1 as u8;
                let begun = Interrupt { start_ns: time, end_ns: time, number: event.arg0 as i32, kind };
                // None interrupts itself: the end of the one before was not seen.
                if let Some(at) = self.nested(event.cpu).iter().position(|i| (i.number, i.kind) == (begun.number, kind))
                {
                    self.interrupts_without_end(event.cpu, at, time);
                }
                self.nested(event.cpu).push(begun);
            }
            Some(IrqExit) => {
                *slot(&mut self.firing, event.cpu) = None;
                self.interrupt_ends(event);
            }
            Some(CpuIdle) => self.idles(event),
            Some(SwitchIn) => self.state(event.tid, time, ThreadState::Running, 0, event.cpu, 0),
            Some(SwitchOut) => {
                let state = if event.arg0 == 1 { ThreadState::Preempted } else { ThreadState::Blocked };
                self.state(event.tid, time, state, 0, event.cpu, 0);
            }
            _ => {}
        }
        *slot(&mut self.seen, event.cpu) = time;
    }

    /// A CPU enters an idle state, or, with −1, has left it.
    fn idles(&mut self, event: &Event) {
        let idle = &mut self.cpu(event.cpu).idle;
        let open = idle.last_mut().filter(|idle| idle.end_ns == u64::MAX);
        match u32::try_from(event.arg0) {
            Ok(state) => {
                // The end of the one before is missing: when it was is not known.
                if open.is_some() {
                    idle.pop();
                }
                idle.push(Idle { start_ns: event.time_ns, end_ns: u64::MAX, state });
            }
            Err(_) => {
                if let Some(open) = open {
                    open.end_ns = event.time_ns;
                }
            }
        }
    }

    fn call_id(&self, event: &Event) -> CallId {
        let numbers = self.numbers.get(usize::from(host_of(event.tid)));
        numbers.map_or_else(|| CallNumbers::default().id(event.arg0), |numbers| numbers.id(event.arg0))
    }

    /// A call that is still open when its thread does something outside of it: its end is missing. It went on at least
    /// until the thread came back from its first wait in it; of the time from then on nothing is known.
    fn cut_call(&mut self, tid: i32, time_ns: u64) {
        let timeline = self.thread(tid);
        let Some(call) = timeline.calls.last_mut().filter(|call| call.end_ns == u64::MAX) else { return };
        let within = &timeline.segments[timeline.segments.partition_point(|s| s.start_ns <= call.start_ns)..];
        let mut within = within.iter().skip_while(|s| matches!(s.state, ThreadState::Running | ThreadState::Preempted));
        let back = within.find(|s| s.state == ThreadState::Running);
        call.end_ns = back.map_or(call.start_ns, |s| s.start_ns);
        timeline.doubts.push((call.end_ns, time_ns));
    }

    /// A call ends that did not begin: it may have begun right after the last moment at which the thread was in none. If
    /// another one is open, its end is missing too, and the wait that seems to be in it may have been in this one.
    fn call_without_begin(&mut self, tid: i32, time_ns: u64) {
        let open = self.thread(tid).calls.last().filter(|call| call.end_ns == u64::MAX).map(|call| call.start_ns);
        self.cut_call(tid, time_ns);
        let start_ns = self.result.start_ns;
        let timeline = self.thread(tid);
        timeline.doubts.extend(open.map(|open_ns| (open_ns, time_ns)));
        let call = timeline.calls.last().map_or(start_ns, |call| call.end_ns);
        let fault = timeline.faults.last().copied().unwrap_or(start_ns);
        timeline.doubts.push((call.max(fault), time_ns));
    }

    /// Interrupts from the `at`th nested one on are over, and their ends are missing. Where softirqs may be preempted
    /// they end elsewhere, so theirs say nothing.
    fn interrupts_without_end(&mut self, cpu: u16, at: usize, time_ns: u64) {
        let nested = self.nested(cpu);
        let first = nested.get(at).filter(|interrupt| interrupt.is_hard()).map(|interrupt| interrupt.start_ns);
        nested.truncate(at);
        if let Some(start_ns) = first {
            self.cpu(cpu).doubts.push((start_ns, time_ns));
        }
    }

    /// Every event names the thread that is current on its CPU. If that is not the one that was switched to
    /// last, a switch is missing: full buffers lose them, and some kernels record none out of certain tasks,
    /// of a CPU's idle task mostly. The newcomer runs since now for certain. If it could run before, it waited
    /// until now; else what it did since its last event is not known. Nor is when the other one left.
    fn check_current(&mut self, event: &Event, leaves: bool) {
        let (cpu, tid) = (usize::from(event.cpu), event.tid);
        let Some(expected) = self.result.cpus.get(cpu).and_then(|c| c.occupants.last()).map(|(_, tid)| *tid) else {
            return;
        };
        if expected == tid {
            if event.flags & NEED_RESCHED != 0 {
                *slot(&mut self.leaving, event.cpu) = event.time_ns;
            }
            return;
        }
        self.forget(expected);
        let leaving_ns = std::mem::take(slot(&mut self.leaving, event.cpu));
        let mut since_ns = event.time_ns;
        let is_interrupt = event.flags & (HARD_IRQ | SOFT_IRQ) != 0;
        let last = self.places.get(&tid).map(|at| &self.timelines[*at]);
        let last = last.and_then(|t| Some((*t.segments.last()?, t.calls.is_empty())));
        match last {
            _ if tid == 0 => self.result.unseen += 1,
            Some((
                Segment { state: state @ (ThreadState::Woken | ThreadState::Preempted), start_ns, .. },
                is_stranger,
            )) => {
                self.result.unseen += 1;
                if leaving_ns > start_ns {
                    // The one before was about to leave when it could run: the CPU was its from then on.
                    since_ns = leaving_ns;
                } else if state == ThreadState::Woken && expected == 0 && (is_stranger || leaves || is_interrupt) {
                    // Woken on an idle CPU, it ran from about then on; what it did itself since, its return from
                    // a system call first of all, would tell more exactly.
                    since_ns = start_ns;
                } else if leaves {
                    self.forget(tid);
                }
            }
            _ => {
                self.result.breaks += 1;
                self.forget(tid);
            }
        }
        if tid != 0 {
            self.state(tid, since_ns, ThreadState::Running, expected, event.cpu, 0);
        }
        let occupants = &mut self.cpu(event.cpu).occupants;
        let since_ns = since_ns.max(occupants.last().map_or(0, |(since, _)| *since));
        occupants.push((since_ns, tid));
    }

    fn switch(&mut self, event: &Event) {
        let (time, cpu, previous, next) = (event.time_ns, event.cpu, event.tid, event.arg0 as i32);
        // No interrupt lasts across a switch: ends that were not seen are past.
        self.interrupts_without_end(cpu, 0, time);
        *slot(&mut self.leaving, cpu) = 0;
        *slot(&mut self.firing, cpu) = None;
        let occupants = &mut self.cpu(cpu).occupants;
        let is_first = occupants.is_empty();
        occupants.push((time, next));
        if previous != 0 {
            let state = match event.arg1 & STATES {
                s if s & DEAD_OR_ZOMBIE != 0 => ThreadState::Gone,
                s if s & STOPPED_OR_TRACED != 0 => ThreadState::Stopped,
                s if s & UNINTERRUPTIBLE != 0 => ThreadState::Uninterruptible,
                s if s & INTERRUPTIBLE != 0 => ThreadState::Blocked,
                0 => ThreadState::Preempted,
                _ => ThreadState::Blocked,
            };
            let state = if state == ThreadState::Preempted && self.ends_activation(event) {
                ThreadState::Blocked
            } else {
                state
            };
            if is_first {
                // The first event of this CPU: it ran until now, since when is not known.
                self.state_since_start(previous, cpu);
            }
            let is_off = state != ThreadState::Preempted;
            self.state(previous, time, state, next, cpu, 0);
            let early = self.early_wakes.remove(&previous);
            if let Some(wake) = early.filter(|wake| is_off && time - wake.start_ns < EARLY_WAKE_NS) {
                self.state(previous, time, ThreadState::Woken, wake.other, wake.cpu, wake.flags);
            }
        }
        if next != 0 {
            if event.arg2 != 0 {
                self.thread(next).had_priority((event.arg2 >> 16) as i16);
            }
            self.early_wakes.remove(&next);
            // Nobody comes who sleeps, or who runs elsewhere: what took it there is missing.
            let before = self.thread(next).segments.last().map(|segment| segment.state);
            if before
                .is_some_and(|state| !matches!(state, ThreadState::Woken | ThreadState::Preempted | ThreadState::Gone))
            {
                self.forget(next);
            }
            self.state(next, time, ThreadState::Running, previous, cpu, 0);
        }
    }

    /// Whether a thread of SCHED_DEADLINE that leaves its CPU and could run on has called `sched_yield`, which is not recorded: it
    /// arms the timer for its next period as it leaves. One whose budget is spent has its timer armed in an interrupt.
    fn ends_activation(&mut self, switch: &Event) -> bool {
        let is_deadline = (switch.arg2 as i16) < 0;
        let timeline = self.thread(switch.tid);
        let is_in_call = timeline.calls.last().is_some_and(|call| call.end_ns == u64::MAX);
        let timer = timeline.timers.last().filter(|timer| switch.time_ns.saturating_sub(timer.armed_ns) < YIELD_NS);
        let Some(timer) = timer.filter(|timer| is_deadline && !is_in_call && timer.asked_ns > switch.time_ns) else {
            return false;
        };
        let (start_ns, end_ns) = (timer.armed_ns, u64::MAX);
        let call = |id| SystemCall { start_ns, end_ns, id, result: 0, arg0: 0, arg1: 0, value: 0 };
        timeline.calls.extend(CallId::named(YIELD).map(call));
        true
    }

    /// The call of a thread that ended its activation and waits for the next period.
    fn open_yield(&mut self, tid: i32) -> Option<&mut SystemCall> {
        let call = self.thread(tid).calls.last_mut()?;
        Some(call).filter(|call| call.end_ns == u64::MAX && call.id.known_name() == Some(YIELD))
    }

    /// A timer that a recorded thread armed belongs to that thread, and to the one that it wakes.
    fn timer_fires(&mut self, event: &Event) {
        let (time, address) = (event.time_ns, event.arg0 as u64 & ADDRESS);
        // The firing of ticks is not recorded.
        self.in_interrupts.remove(&(event.cpu, address));
        if event.arg2 == 1 {
            let (host, _) = host_and_cpu(event.cpu);
            self.result.quota_renewals.entry(host).or_default().push(time);
        }
        let Some((tid, timer)) = self.armed.remove(&address) else {
            *slot(&mut self.firing, event.cpu) = None;
            return;
        };
        let now = event.arg1 as u64;
        // One that was cancelled, and whose address is another's by now, is not yet due.
        let is_it = timer.asked_ns <= now;
        let asked_ns = match now.abs_diff(time) < SAME_MOMENT_NS {
            true => timer.asked_ns,
            false => time.saturating_sub(now.saturating_sub(timer.asked_ns)),
        };
        let Timer { armed_ns, is_relative, .. } = timer;
        let expiry = Expiry { at_ns: time, asked_ns, armed_ns, address, is_relative };
        if is_it {
            self.thread(tid).expiries.push(expiry);
            // The scheduler lets it run again without a wake.
            if self.open_yield(tid).is_some() {
                self.state(tid, time, ThreadState::Woken, event.tid, event.cpu, event.flags);
            }
        }
        *slot(&mut self.firing, event.cpu) = is_it.then_some((tid, expiry));
    }

    /// A wake counts only if the thread sleeps: `sched_waking` fires for running ones too.
    fn wake(&mut self, event: &Event) {
        let woken = event.arg0 as i32;
        if event.flags & (HARD_IRQ | SOFT_IRQ) != 0
            && let Some((tid, expiry)) = *slot(&mut self.firing, event.cpu)
            && tid != woken
            && event.time_ns.saturating_sub(expiry.at_ns) < FIRING_NS
        {
            self.thread(woken).expiries.push(expiry);
        }
        let wake = Segment {
            start_ns: event.time_ns,
            other: event.tid,
            cpu: event.arg1 as u16,
            state: ThreadState::Woken,
            flags: event.flags,
        };
        match self.thread(woken).segments.last().map(|s| s.state) {
            Some(ThreadState::Running) => {
                self.early_wakes.insert(woken, wake);
            }
            Some(ThreadState::Preempted) => {}
            // Who can run is not woken: it ran and slept in between.
            Some(ThreadState::Woken) => {
                self.forget(woken);
                self.state(woken, event.time_ns, ThreadState::Woken, event.tid, wake.cpu, event.flags);
            }
            _ => self.state(woken, event.time_ns, ThreadState::Woken, event.tid, wake.cpu, event.flags),
        }
    }

    /// A tick that comes late though its CPU was running something shows that the CPU itself did not run.
    fn tick_comes(&mut self, cpu: u16, time_ns: u64) {
        const SECOND_NS: u64 = 1_000_000_000;
        let due_ns = std::mem::take(slot(&mut self.ticks, cpu));
        if due_ns == 0 {
            return;
        }
        let late_ns = time_ns.saturating_sub(due_ns);
        let cpu = self.cpu(cpu);
        let is_idle = cpu.occupants.last().is_none_or(|(since, tid)| *tid == 0 || *since > due_ns);
        let start_ns = due_ns.max(cpu.interrupts.last().map_or(0, |i| i.end_ns));
        if !is_idle && (LATE_TICK_NS..SECOND_NS).contains(&late_ns) && start_ns < time_ns {
            cpu.interrupts.push(Interrupt { start_ns, end_ns: time_ns, number: 0, kind: STALL });
        }
    }

    /// A CPU that leaves no event at all from the moment at which its tick was due did not run, whatever its first event
    /// afterwards is.
    fn stands_still(&mut self, event: &Event) {
        let (due_ns, seen_ns) = (*slot(&mut self.ticks, event.cpu), *slot(&mut self.seen, event.cpu));
        let is_late = event.time_ns > due_ns.saturating_add(LATE_TICK_NS);
        if seen_ns > 0 && event.time_ns.saturating_sub(seen_ns) > LATE_TICK_NS {
            *slot(&mut self.gaps, event.cpu) = (seen_ns, event.time_ns);
        }
        if due_ns == 0 || seen_ns > due_ns || !is_late || !self.nested(event.cpu).is_empty() {
            return;
        }
        let cpu = self.cpu(event.cpu);
        let is_idle = cpu.occupants.last().is_none_or(|(since, tid)| *tid == 0 || *since > due_ns);
        if !is_idle && cpu.interrupts.last().is_none_or(|last| last.end_ns <= due_ns) {
            let (start_ns, end_ns) = (due_ns, event.time_ns);
            cpu.interrupts.push(Interrupt { start_ns, end_ns, number: 0, kind: STALL });
            // When it comes, it is late by this stall.
            *slot(&mut self.ticks, event.cpu) = 0;
        }
    }

    /// A tick is armed only while a recorded thread runs, so it may be unknown when the one was due that comes now. Ticks are a period
    /// apart: if one was due in the stretch without an event that ended just now, the CPU did not run from then on.
    fn tick_armed(&mut self, event: &Event) {
        let is_timers = |of: &Interrupt| (i64::from(of.number), i64::from(of.kind)) == LOCAL_TIMER;
        let address = (u64::from(event.arg2_high) << 32 | u64::from(event.arg2 as u32)) >> 8;
        if address == 0 || !self.nested(event.cpu).iter().any(is_timers) {
            return;
        }
        let next_ns = event.arg0 as u64;
        let tick = self.in_interrupts.entry((event.cpu, address)).or_default();
        let (Some(period_ns), (from_ns, to_ns)) = (tick.armed(next_ns), *slot(&mut self.gaps, event.cpu)) else {
            return;
        };
        let last_ns = next_ns.saturating_sub(period_ns);
        let due_ns = last_ns - last_ns.saturating_sub(from_ns + 1) / period_ns * period_ns;
        if due_ns <= from_ns || due_ns + LATE_TICK_NS >= to_ns || event.time_ns - to_ns > RUNS_AGAIN_NS {
            return;
        }
        // One that was open then is put into its place when it ends.
        if self.nested(event.cpu).iter().any(|open| open.start_ns < to_ns) {
            return;
        }
        let cpu = self.cpu(event.cpu);
        let is_idle = cpu.occupants.last().is_none_or(|(since, tid)| *tid == 0 || *since > due_ns);
        let at = cpu.interrupts.partition_point(|interrupt| interrupt.start_ns < due_ns);
        let is_free = cpu.interrupts.get(at).is_none_or(|next| next.start_ns >= to_ns)
            && at.checked_sub(1).is_none_or(|before| cpu.interrupts[before].end_ns <= due_ns);
        if !is_idle && is_free {
            cpu.interrupts.insert(at, Interrupt { start_ns: due_ns, end_ns: to_ns, number: 0, kind: STALL });
        }
    }

    fn interrupt_ends(&mut self, event: &Event) {
        let nested = self.nested(event.cpu);
        let same = |i: &Interrupt| i.number == event.arg0 as i32 && i.kind == event.arg1 as u8;
        let Some(at) = nested.iter().rposition(same) else {
            let begun_after_ns = *slot(&mut self.seen, event.cpu);
            if event.arg1 as u8 != SOFTIRQ && begun_after_ns > 0 {
                self.cpu(event.cpu).doubts.push((begun_after_ns, event.time_ns));
            }
            return;
        };
        let mut ended = nested[at];
        nested.truncate(at);
        if nested.is_empty() {
            ended.end_ns = event.time_ns;
            let interrupts = &mut self.cpu(event.cpu).interrupts;
            // Between a hard interrupt and the softirq that it raised there is only the kernel's way out.
            if ended.kind == SOFTIRQ
                && let Some(last) =
                    interrupts.last_mut().filter(|i| ended.start_ns.saturating_sub(i.end_ns) < EXIT_TO_SOFTIRQ_NS)
            {
                last.end_ns = ended.start_ns;
            }
            interrupts.push(ended);
        }
    }

    /// The thread enters a state. Clocks of CPUs may step by some ns: starts never decrease.
    fn state(&mut self, tid: i32, time_ns: u64, state: ThreadState, other: i32, cpu: u16, flags: u8) {
        if state == ThreadState::Running
            && let Some(call) = self.open_yield(tid)
        {
            call.end_ns = time_ns;
        }
        let segments = &mut self.thread(tid).segments;
        let start_ns = time_ns.max(segments.last().map_or(0, |s| s.start_ns));
        segments.push(Segment { start_ns, other, cpu, state, flags });
    }

    fn state_since_start(&mut self, tid: i32, cpu: u16) {
        let start_ns = self.result.start_ns;
        if self.thread(tid).segments.is_empty() {
            self.state(tid, start_ns, ThreadState::Running, 0, cpu, 0);
        }
    }

    /// What the thread did since its last event is not known after all.
    fn forget(&mut self, tid: i32) {
        if tid != 0
            && let Some(last) = self.thread(tid).segments.last_mut()
        {
            last.state = ThreadState::Unknown;
        }
    }

    fn thread(&mut self, tid: i32) -> &mut Timeline {
        let at = match self.latest {
            Some((latest, at)) if latest == tid => at,
            _ => *self.places.entry(tid).or_insert_with(|| {
                self.timelines.push(Timeline::default());
                self.timelines.len() - 1
            }),
        };
        self.latest = Some((tid, at));
        &mut self.timelines[at]
    }

    fn cpu(&mut self, cpu: u16) -> &mut Cpu {
        slot(&mut self.result.cpus, cpu)
    }

    fn nested(&mut self, cpu: u16) -> &mut Vec<Interrupt> {
        slot(&mut self.nested, cpu)
    }
}

/// A CPU's place in a table that grows with the CPUs seen.
fn slot<T: Default>(table: &mut Vec<T>, cpu: u16) -> &mut T {
    let at = usize::from(cpu);
    if table.len() <= at {
        table.resize_with(at + 1, T::default);
    }
    &mut table[at]
}
