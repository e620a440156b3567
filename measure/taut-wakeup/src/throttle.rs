//! Does this kernel take time from a real-time thread that does not sleep? Found by behaviour: settings no longer show it
//! since Linux 6.12, where the fair server took over from real-time bandwidth control.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use rustix::thread::{CpuSet, sched_setaffinity};
use taut_clock::monotonic_ns;

use crate::{Error, Policy, Settings, Throttling, facts, settings::length, watcher::set_policy};

/// Shorter gaps are interrupts and the hypervisor's.
const GAP_NS: u64 = 1_000_000;
/// Our ordinary thread shares what is given to ordinary threads with all others that want the CPU; of what the hypervisor
/// takes it gets nothing.
const OTHERS_TOO: u64 = 10;
const WAITING: u8 = 0;
const SPINNING: u8 = 1;
const DONE: u8 = 2;

/// Spins under SCHED_FIFO on `cpu` for `length` beside an ordinary thread that wants the CPU, too.
///
/// # Errors
/// No permission for SCHED_FIFO, or for the CPU.
pub fn throttling(cpu: u32, length: Duration) -> Result<Throttling, Error> {
    let state = Arc::new(AtomicU8::new(WAITING));
    let pin = move || {
        let mut only = CpuSet::new();
        only.set(cpu as usize);
        sched_setaffinity(None, &only).map_err(|_| Error::Cpu { cpu, allowed: "see `taskset -p $$`".into() })
    };
    let hog_state = state.clone();
    let hog = std::thread::spawn(move || {
        pin()?;
        let mut since = None;
        loop {
            match hog_state.load(Ordering::Relaxed) {
                DONE => return Ok(thread_cpu_ns() - since.unwrap_or_else(thread_cpu_ns)),
                SPINNING if since.is_none() => since = Some(thread_cpu_ns()),
                _ => std::hint::spin_loop(),
            }
        }
    });
    let spinner_state = state.clone();
    let spinner = std::thread::spawn(move || {
        let spun = pin()
            .and_then(|()| set_policy(&Settings { policy: Policy::Fifo, priority: 50, ..Settings::default() }))
            .map(|()| {
                spinner_state.store(SPINNING, Ordering::Relaxed);
                spin(length)
            });
        spinner_state.store(DONE, Ordering::Relaxed);
        spun
    });
    let gone = |_| Error::System { what: "a thread".into(), source: std::io::Error::other("it panicked") };
    let gaps_ns = spinner.join().map_err(gone)??;
    let hog_ns = hog.join().map_err(gone)??;
    Ok(Throttling { watched_ns: length.as_nanos() as u64, gaps_ns, hog_ns, rt_runtime_us: facts::rt_runtime_us() })
}

/// Reads the clock without end, and notes where it jumps.
fn spin(length: Duration) -> Vec<u64> {
    let mut gaps = Vec::with_capacity(1024);
    let start = monotonic_ns();
    let mut last = start;
    while last - start < length.as_nanos() as u64 {
        let now = monotonic_ns();
        if now - last >= GAP_NS && gaps.len() < gaps.capacity() {
            gaps.push(now - last);
        }
        last = now;
    }
    gaps
}

impl Throttling {
    /// Whether the kernel takes time from real-time threads, in words.
    pub fn sentence(&self) -> String {
        let lost: u64 = self.gaps_ns.iter().sum();
        let ms = |ns: u64| ns as f64 / 1e6;
        let setting = match self.rt_runtime_us {
            Some(-1) => ", although sched_rt_runtime_us is -1".to_owned(),
            Some(us) => format!(" (sched_rt_runtime_us is {us})"),
            None => String::new(),
        };
        let watched = length(Duration::from_nanos(self.watched_ns));
        let longest = self.gaps_ns.iter().copied().max().unwrap_or(0);
        if self.gaps_ns.is_empty() {
            format!("this kernel took no time from a spinning SCHED_FIFO thread in {watched}{setting}")
        } else if self.hog_ns * OTHERS_TOO > lost {
            format!(
                "this kernel takes time from real-time threads{setting}: {:.0} ms in {watched}, {} gaps of up to {:.1} ms, \
                 given to an ordinary thread. A loop that does not sleep must expect them. Before 6.12: write -1 to \
                 sched_rt_runtime_us; since 6.12: 0 to /sys/kernel/debug/sched/fair_server/cpu*/runtime; or let the loop sleep",
                ms(lost),
                self.gaps_ns.len(),
                ms(longest),
            )
        } else {
            format!(
                "a spinning SCHED_FIFO thread lost {:.0} ms in {watched} in {} gaps of up to {:.1} ms{setting}, but an \
                 ordinary thread beside it got only {:.0} ms of it: not throttling, but the hypervisor or the firmware",
                ms(lost),
                self.gaps_ns.len(),
                ms(longest),
                ms(self.hog_ns),
            )
        }
    }
}

fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_got_the_time_decides_who_took_it() {
        let throttled = Throttling {
            watched_ns: 4_000_000_000,
            gaps_ns: vec![54_000_000; 4],
            hog_ns: 210_000_000,
            ..Default::default()
        };
        assert!(throttled.sentence().contains("takes time from real-time threads"));
        let stalled = Throttling { hog_ns: 1_000_000, rt_runtime_us: Some(-1), ..throttled };
        assert!(stalled.sentence().contains("hypervisor"), "{}", stalled.sentence());
    }
}
