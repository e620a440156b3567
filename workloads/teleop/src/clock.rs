//! The simulated clock as the loop's processes wait on it.

use std::{os::fd::BorrowedFd, path::Path, sync::Arc};

use anyhow::{Context, Result};
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::Timespec,
};
use taut_simulated_clock::{Mapped, Time};

/// Seats at the clock: the leader arm's and the follower arm's.
pub const SEATS: usize = 2;
/// Waits end at the latest after so long where the clock stands, ns.
const LOOK_NS: u64 = 1_000_000;

#[derive(Clone)]
pub struct Clock(Arc<Mapped<Time<SEATS>>>);

impl Clock {
    pub fn open(path: &str) -> Result<Clock> {
        Mapped::open(Path::new(path)).map(Clock).with_context(|| format!("the simulated clock, {path}"))
    }

    pub fn time(&self) -> &Time<SEATS> {
        &self.0
    }

    pub fn now_ns(&self) -> u64 {
        self.0.read().0
    }

    /// Waits until one can be read, or `until_ns` has come; which can.
    pub fn wait<const N: usize>(&self, until_ns: u64, sources: [Option<BorrowedFd<'_>>; N]) -> [bool; N] {
        // A source that is gone stands for itself: nothing comes of it.
        let mut polled: Vec<PollFd<'_>> =
            sources.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        self.poll(until_ns, &mut polled);
        let mut events = polled.iter().map(|one| !one.revents().is_empty());
        sources.map(|source| source.is_some() && events.next().unwrap_or(false))
    }

    /// Waits until something of `polled` has come about, or `until_ns` has come.
    fn poll(&self, until_ns: u64, polled: &mut [PollFd<'_>]) {
        while !self.look(until_ns, polled) {}
    }

    /// As `poll`, but gives up, with false, at a signal, and soon where the clock stands: whoever moves the clock on may have to end while
    /// it stands for another one.
    pub fn look(&self, until_ns: u64, polled: &mut [PollFd<'_>]) -> bool {
        let (now_ns, stands) = self.0.read();
        let left_ns = until_ns.saturating_sub(now_ns);
        let most_ns = if stands { left_ns.min(LOOK_NS) } else { left_ns };
        let timeout = Timespec {
            tv_sec: i64::try_from(most_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (most_ns % 1_000_000_000) as i64,
        };
        let has_come = poll(polled, Some(&timeout)).is_ok_and(|ready| ready > 0);
        left_ns == 0 || has_come
    }
}
