//! The simulated clock as the arm and its controller wait on it.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use anyhow::{Context, Result};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::BorrowedFd,
    thread::clock_nanosleep_absolute,
    time::{ClockId, Timespec},
};
use taut_simulated_clock::{Mapped, Time};
use taut_stamp::monotonic_ns;

/// Where the clock stands it is looked at again at the latest after so long, ns.
const LOOK_NS: i64 = 1_000_000;

pub struct Clock {
    page: Arc<Mapped<Time<1>>>,
    stop: Arc<AtomicBool>,
}

impl Clock {
    pub fn open(path: &Path, stop: Arc<AtomicBool>) -> Result<Clock> {
        let page = Mapped::open(path).with_context(|| format!("the simulated clock, {}", path.display()))?;
        Ok(Clock { page, stop })
    }

    pub fn time(&self) -> &Time<1> {
        &self.page
    }

    pub fn now_ns(&self) -> u64 {
        self.page.read().0
    }

    /// Whether this process shall end.
    pub fn is_over(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Waits until the clock is at `until_ns`, or this process shall end. True: not yet, since the clock stands and something has come
    /// from the arm, or is to be looked for; what is there is to be taken before the next call.
    pub fn stands_before(&self, until_ns: u64, arm: BorrowedFd<'_>) -> bool {
        while !self.is_over() {
            let (now_ns, stands) = self.page.read();
            if now_ns >= until_ns {
                return false;
            }
            if stands {
                // The arm sends its state once the clock goes on.
                let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK_NS };
                let _ = poll(&mut [PollFd::from_borrowed_fd(arm, PollFlags::IN)], Some(&timeout));
                return true;
            }
            sleep(until_ns - now_ns);
        }
        false
    }

    /// As the one that moves the clock on, for which it never stands.
    pub fn sleep_until(&self, until_ns: u64) {
        while !self.is_over() {
            let now_ns = self.now_ns();
            if now_ns >= until_ns {
                return;
            }
            sleep(until_ns - now_ns);
        }
    }
}

/// Until a moment and not for a while: being interrupted on the way to it costs nothing.
fn sleep(left_ns: u64) {
    let at_ns = monotonic_ns() + left_ns;
    let at = Timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
    // A signal ends it: the caller looks again.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &at);
}
