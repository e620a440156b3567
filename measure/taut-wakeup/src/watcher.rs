//! A probing thread: waits for its cycles and reports how late it woke.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use rtrb::{Consumer, Producer, RingBuffer};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use taut_clock::{ClockPair, Counter, monotonic_ns};
use taut_stamp::Point;

use crate::{Error, Policy, Settings, Wake, waker::Waker};

/// The points of a probe's chain in a recording; their hop is the lateness.
pub const POINTS: [&str; 2] = ["probe.due", "probe.woke"];
static DUE: Point = Point::new(POINTS[0]);
static WOKE: Point = Point::new(POINTS[1]);

/// A message of a recorded probe: the CPU above this bit, the cycle below it.
pub const CPU_SHIFT: u32 = 48;

/// One wake of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// Intended start of the cycle, CLOCK_MONOTONIC.
    pub due_ns: u64,
    /// How much later the thread ran.
    pub late_ns: u64,
}

/// A thread at work, and its wakes.
pub(crate) struct Watcher {
    pub cpu: Option<u32>,
    pub wakes: Consumer<Woken>,
    lost: Arc<AtomicU64>,
    thread: JoinHandle<u64>,
}

impl Watcher {
    /// Starts the thread; its first cycle is due at `first_ns`, its last before `end_ns`. Waits until it stands ready.
    pub fn start(
        settings: &Settings,
        cpu: Option<u32>,
        first_ns: u64,
        end_ns: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<Watcher, Error> {
        let interval_ns = settings.interval.as_nanos() as u64;
        // Two seconds of wakes: so long may the collector be away.
        let room = (2_000_000_000 / interval_ns).clamp(64, 1 << 18) as usize;
        let (mut producer, mut wakes) = RingBuffer::new(room);
        // No page of it shall be touched for the first time between two cycles.
        while producer.push(Woken { due_ns: 0, late_ns: 0 }).is_ok() {}
        while wakes.pop().is_ok() {}
        let lost = Arc::new(AtomicU64::new(0));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let loop_ = Loop {
            settings: settings.clone(),
            cpu,
            producer,
            lost: lost.clone(),
            stop: stop.clone(),
            interval_ns,
            first_ns,
            end_ns,
        };
        let name = cpu.map_or("taut-wakeup".to_owned(), |cpu| format!("taut-wakeup/{cpu}"));
        let run = move || {
            let waker = loop_.prepare();
            let failed = waker.is_err();
            let (waker, report) = match waker {
                Ok(waker) => (Some(waker), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // The receiver waits for exactly this.
            let _ = ready.send(report);
            if failed { 0 } else { loop_.watch(&waker.expect("prepared")) }
        };
        let thread = std::thread::Builder::new()
            .name(name)
            .stack_size(256 << 10)
            .spawn(run)
            .map_err(|source| Error::System { what: "a thread".into(), source })?;
        is_ready.recv().unwrap_or(Ok(()))?;
        Ok(Watcher { cpu, wakes, lost, thread })
    }

    /// Wakes that found no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the thread's end; returns the page faults that it met while it watched.
    pub fn join(self) -> u64 {
        self.thread.join().unwrap_or(0)
    }
}

struct Loop {
    settings: Settings,
    cpu: Option<u32>,
    producer: Producer<Woken>,
    lost: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    interval_ns: u64,
    first_ns: u64,
    end_ns: u64,
}

impl Loop {
    fn prepare(&self) -> Result<Waker, Error> {
        let waker = Waker::new(self.settings.wake, self.settings.interval)?;
        if let Some(cpu) = self.cpu {
            let mut only = CpuSet::new();
            only.set(cpu as usize);
            sched_setaffinity(None, &only).map_err(|_| Error::Cpu { cpu, allowed: list(&allowed_cpus()) })?;
        }
        if let Some(slack) = self.settings.slack.and_then(|s| std::num::NonZeroU64::new(s.as_nanos() as u64)) {
            set_current_timer_slack(Some(slack))
                .map_err(|errno| Error::System { what: "timer slack".into(), source: errno.into() })?;
        }
        set_policy(&self.settings)?;
        prefault_stack();
        // Touches the code of the way to wake.
        waker.wait(monotonic_ns());
        taut_stamp::prepare_thread();
        Ok(waker)
    }

    fn watch(mut self, waker: &Waker) -> u64 {
        let faults = page_faults();
        let relative = self.settings.wake == Wake::Relative;
        let stamps = Stamps::new(self.cpu);
        let mut due = self.first_ns;
        if relative {
            Waker::Nanosleep.wait(due - self.interval_ns.min(due));
        }
        while due < self.end_ns && !self.stop.load(Ordering::Relaxed) {
            if relative {
                due = monotonic_ns() + self.interval_ns;
            }
            waker.wait(due);
            let now = monotonic_ns();
            let woken = Woken { due_ns: due, late_ns: now.saturating_sub(due) };
            if let Some(stamps) = &stamps {
                stamps.stamp(woken, self.interval_ns);
            }
            if self.producer.push(woken).is_err() {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
            due += self.interval_ns * (1 + woken.late_ns / self.interval_ns);
        }
        page_faults() - faults
    }
}

/// The thread's wakes in a recording, when there is one.
struct Stamps {
    counter: Counter,
    from: ClockPair,
    cpu: u64,
}

impl Stamps {
    fn new(cpu: Option<u32>) -> Option<Stamps> {
        let counter = taut_stamp::counter()?;
        Some(Stamps { counter, from: ClockPair::take(counter), cpu: u64::from(cpu.unwrap_or(0)) << CPU_SHIFT })
    }

    fn stamp(&self, woken: Woken, interval_ns: u64) {
        let id = self.cpu | (woken.due_ns / interval_ns) & ((1 << CPU_SHIFT) - 1);
        let (ticks, now_ns) = (self.counter.now().0, monotonic_ns());
        // The counter runs evenly: over the few ms of a lateness its rate since the start is exact to nanoseconds.
        let ticks_per_ns = (ticks - self.from.ticks.0) as f64 / (now_ns - self.from.monotonic_ns).max(1) as f64;
        let ago = (now_ns - woken.due_ns) as f64 * ticks_per_ns;
        DUE.stamp_with_ticks(id, ticks - ago as u64);
        WOKE.stamp_with_ticks(id, ticks - ((now_ns - woken.due_ns - woken.late_ns) as f64 * ticks_per_ns) as u64);
    }
}

/// CPUs that this process may run on.
pub fn allowed_cpus() -> Vec<u32> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect()
}

pub(crate) fn list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Gives the calling thread the settings' policy and priority.
///
/// # Errors
/// The kernel refuses; the error names what would allow it.
pub fn set_policy(settings: &Settings) -> Result<(), Error> {
    let hint =
        "run as root, or allow it: `ulimit -r 99` (rtprio in /etc/security/limits.conf), or setcap cap_sys_nice+ep";
    let failed = |policy: Policy, hint| {
        move || Error::Policy { policy: policy.word(), source: std::io::Error::last_os_error(), hint }
    };
    let (number, priority) = match settings.policy {
        Policy::Other => return Ok(()),
        Policy::Batch => (libc::SCHED_BATCH, 0),
        Policy::Fifo => (libc::SCHED_FIFO, settings.priority as i32),
        Policy::Rr => (libc::SCHED_RR, settings.priority as i32),
        Policy::Deadline => {
            let period = settings.interval.as_nanos() as u64;
            let attributes = libc::sched_attr {
                size: size_of::<libc::sched_attr>() as u32,
                sched_policy: libc::SCHED_DEADLINE as u32,
                sched_flags: 0,
                sched_nice: 0,
                sched_priority: 0,
                // A wake takes microseconds; the kernel wants at least 1 µs, and refuses what it cannot admit.
                sched_runtime: (period / 10).clamp(50_000.min(period), 1_000_000),
                sched_deadline: period,
                sched_period: period,
            };
            // SAFETY: reads the attributes, which live on this stack; 0 is the calling thread.
            if unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } != 0 {
                return Err(failed(Policy::Deadline, "needs root, CPUs without a cpuset, and room for its runtime")());
            }
            return Ok(());
        }
    };
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: reads the parameters, which live on this stack; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, number, &raw const parameters) } != 0 {
        return Err(failed(settings.policy, hint)());
    }
    Ok(())
}

/// Touches the part of the calling thread's stack that a loop may use, 64 KiB, so that no fault falls into it.
pub fn prefault_stack() {
    let mut pages = [0u8; 64 << 10];
    pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::hint::black_box(&pages);
}

/// Minor and major page faults of the calling thread.
fn page_faults() -> u64 {
    // SAFETY: all zeroes is a value of this plain struct; the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    (usage.ru_minflt + usage.ru_majflt) as u64
}
