//! Time, and work that takes as much CPU as it says, whoever interferes.

/// Clock reads further apart than this had something between them; the loop's own step takes some 30 ns.
const GAP_NS: u64 = 1_500;

pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// How long this thread could have run but waited for the CPU, so far.
pub fn run_delay_ns() -> u64 {
    run_delay_of("thread-self")
}

/// The same of the thread that stands there in /proc.
pub fn run_delay_of(who: &str) -> u64 {
    // Three numbers: time on the CPU, time waiting for it, turns (Documentation/scheduler/sched-stats.rst).
    let text = std::fs::read_to_string(format!("/proc/{who}/schedstat")).unwrap_or_default();
    text.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// CPU time that a process of ours has used so far, exact also while it runs.
pub fn process_cpu_ns(pid: libc::pid_t) -> u64 {
    // The kernel's clock id of a process: `MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)`, include/linux/posix-timers.h.
    read((!pid << 3) | 2)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours to be written to.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub fn sleep_ns(ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    // SAFETY: reads `time` only.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}

pub fn pin(cpu: usize) {
    // SAFETY: a cpu_set_t of zeros is an empty set, which CPU_SET fills.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// A stretch of computation, and what was taken from it.
#[derive(Default)]
pub struct Progress {
    /// Time in which the loop did not come round, in all.
    pub stolen_ns: u64,
    done_ns: u64,
    /// When the loop last came round; kept so that what happens between two calls counts as well.
    last_ns: Option<u64>,
}

impl Progress {
    /// Computes for `ns`, not counting the time that others take.
    pub fn work(&mut self, ns: u64) {
        self.work_until(|progress, _| progress.done_ns >= ns);
    }

    /// Computes until `enough`, told the time of the last look, says so.
    pub fn work_until(&mut self, enough: impl Fn(&Progress, u64) -> bool) {
        loop {
            let now = monotonic_ns();
            let step = now - self.last_ns.unwrap_or(now);
            self.last_ns = Some(now);
            if step < GAP_NS {
                self.done_ns += step;
            } else {
                self.stolen_ns += step;
            }
            if enough(self, now) {
                return;
            }
        }
    }

    pub fn done_ns(&self) -> u64 {
        self.done_ns
    }
}
