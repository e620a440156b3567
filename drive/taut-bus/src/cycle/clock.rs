//! The engine's time: the real one, slept or spun, or a virtual one that jumps.

use std::time::Duration;

use rustix::{
    thread::clock_nanosleep_absolute,
    time::{ClockId, Timespec},
};
use taut_clock::monotonic_ns;

use crate::transport::Arrival;

/// A clock that can wait.
pub trait Clock {
    /// Nanoseconds; real clocks give CLOCK_MONOTONIC.
    fn now_ns(&mut self) -> u64;

    /// Returns once one of `arrivals` may be there, and at `until_ns` at the latest. May return early.
    fn wait(&mut self, arrivals: &[Arrival], until_ns: u64);

    /// Returns at `ns`, not before.
    fn wait_until(&mut self, ns: u64) {
        while self.now_ns() < ns {
            self.wait(&[], ns);
        }
    }
}

/// CLOCK_MONOTONIC.
#[derive(Debug)]
pub struct Monotonic {
    spin_ns: u64,
    polled: Vec<libc::pollfd>,
}

/// Buses that one wait can look at.
const MOST_BUSES: usize = 32;

impl Monotonic {
    /// Sleeps until `spin` before a known moment and reads the clock from there on; asks descriptors again and again for
    /// `spin` before it sleeps on them. A wake from sleep takes tens of µs, a spinning thread has its CPU for itself.
    pub fn new(spin: Duration) -> Monotonic {
        Monotonic {
            spin_ns: u64::try_from(spin.as_nanos()).unwrap_or(u64::MAX),
            polled: Vec::with_capacity(MOST_BUSES),
        }
    }
}

impl Clock for Monotonic {
    fn now_ns(&mut self) -> u64 {
        monotonic_ns()
    }

    fn wait(&mut self, arrivals: &[Arrival], until_ns: u64) {
        let mut until_ns = until_ns;
        self.polled.clear();
        for arrival in arrivals {
            match *arrival {
                Arrival::At(ns) => until_ns = until_ns.min(ns),
                Arrival::Readable(fd) if self.polled.len() < MOST_BUSES => {
                    self.polled.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
                }
                // Beyond so many buses: look again soon.
                Arrival::Readable(_) => until_ns = until_ns.min(monotonic_ns() + 50_000),
                Arrival::Never => {}
            }
        }
        match self.polled.is_empty() {
            true => sleep_then_spin(until_ns, self.spin_ns),
            false => spin_then_poll(&mut self.polled, until_ns, self.spin_ns),
        }
    }
}

fn sleep_then_spin(until_ns: u64, spin_ns: u64) {
    let asleep_until_ns = until_ns.saturating_sub(spin_ns);
    if asleep_until_ns > monotonic_ns() {
        // A signal ends it early, which the caller allows for.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(asleep_until_ns));
    }
    while monotonic_ns() < until_ns {
        std::hint::spin_loop();
    }
}

fn spin_then_poll(polled: &mut [libc::pollfd], until_ns: u64, spin_ns: u64) {
    let begun_ns = monotonic_ns();
    loop {
        let now_ns = monotonic_ns();
        let left_ns = until_ns.saturating_sub(now_ns);
        // Sleeping for less than the spin would come late.
        let wait_ns = if now_ns - begun_ns < spin_ns || left_ns < spin_ns { 0 } else { left_ns - spin_ns };
        let timeout =
            libc::timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as i64 };
        // SAFETY: the descriptors and the time-out live through the call; no signal mask.
        let ready = unsafe {
            libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, &raw const timeout, std::ptr::null())
        };
        if ready != 0 || left_ns == 0 || wait_ns > 0 {
            return;
        }
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// Time that jumps to whatever is waited for: the same run every time, and as fast as it computes.
#[derive(Clone, Debug, Default)]
pub struct Virtual {
    ns: u64,
}

impl Clock for Virtual {
    fn now_ns(&mut self) -> u64 {
        self.ns
    }

    fn wait(&mut self, arrivals: &[Arrival], until_ns: u64) {
        let first = arrivals.iter().filter_map(|arrival| match arrival {
            Arrival::At(ns) => Some(*ns),
            _ => None,
        });
        self.ns = self.ns.max(first.min().map_or(until_ns, |ns| ns.min(until_ns)));
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn nobody_returns_before_the_moment() {
        for spin in [Duration::ZERO, Duration::from_micros(200), Duration::MAX] {
            let mut clock = Monotonic::new(spin);
            let until = clock.now_ns() + 500_000;
            clock.wait_until(until);
            assert!(clock.now_ns() >= until);
        }
    }

    #[test]
    fn a_readable_descriptor_ends_the_wait() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, b"x").unwrap();
        for spin in [Duration::ZERO, Duration::from_micros(100)] {
            let mut clock = Monotonic::new(spin);
            let far = clock.now_ns() + 3_600_000_000_000;
            clock.wait(&[Arrival::Readable(reader.as_raw_fd())], far);
            assert!(clock.now_ns() < far);
        }
    }

    #[test]
    fn virtual_time_jumps_to_the_first_arrival_or_the_end() {
        let mut clock = Virtual::default();
        clock.wait(&[Arrival::At(50), Arrival::Never, Arrival::At(30)], 100);
        assert_eq!(clock.now_ns(), 30);
        clock.wait(&[Arrival::Never], 100);
        assert_eq!(clock.now_ns(), 100);
        clock.wait(&[Arrival::At(50)], 200);
        assert_eq!(clock.now_ns(), 100);
    }
}
