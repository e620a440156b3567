//! The robot's simulated clock (`taut-simulated-clock`), as the host and as the simulator wait on it.

use std::{sync::Arc, time::Duration};

use taut_bus::{cycle::Clock, transport::Arrival};
use taut_simulated_clock::Slips;

use crate::page::{Bell, Mapped};

/// The clock may go beyond the next event by so much, ns. A reply is seen late by as much at most, so it is less than what the
/// host's time-outs leave beyond the wire's time.
const AHEAD_NS: u64 = 100_000;
/// Sleeps of a host whose clock stands end at the latest after so long, ns.
const LOOK_NS: u64 = 1_000_000;

/// The host's view of it.
pub struct Simulated {
    page: Arc<Mapped>,
    spin_ns: u64,
    /// The bell as it was when the host last looked what there is.
    rung: u32,
}

impl Simulated {
    /// Reads the clock from `spin` before a known moment on, and looks again and again for `spin` before it sleeps until a
    /// reply: a wake from sleep takes tens of µs.
    pub fn new(page: Arc<Mapped>, spin: Duration) -> Simulated {
        Simulated { page, spin_ns: u64::try_from(spin.as_nanos()).unwrap_or(u64::MAX), rung: 0 }
    }
}

impl Clock for Simulated {
    fn now_ns(&mut self) -> u64 {
        self.rung = self.page.to_host.rung();
        self.page.time.read().0
    }

    fn wait(&mut self, arrivals: &[Arrival], until_ns: u64) {
        let first = arrivals.iter().filter_map(|arrival| match arrival {
            Arrival::At(ns) => Some(*ns),
            _ => None,
        });
        let until_ns = first.min().map_or(until_ns, |ns| ns.min(until_ns));
        let bell: &Bell = &self.page.to_host;
        self.page.to_robot.wake();
        let (begun_ns, mut stands) = self.page.time.read();
        // Not while the clock stands: the simulator may need this CPU.
        let mut now_ns = begun_ns;
        while !stands && (now_ns - begun_ns < self.spin_ns || now_ns.saturating_add(self.spin_ns) >= until_ns) {
            if now_ns >= until_ns || bell.rung() != self.rung {
                return;
            }
            std::hint::spin_loop();
            (now_ns, stands) = self.page.time.read();
        }
        if now_ns < until_ns {
            let most_ns = if stands { LOOK_NS } else { (until_ns - now_ns).saturating_sub(self.spin_ns) };
            bell.wait(self.rung, most_ns);
        }
    }
}

/// The simulator's view of it: moves it on.
pub struct Pace {
    page: Arc<Mapped>,
    pace: taut_simulated_clock::Pace,
}

impl Pace {
    /// A clock that begins at 0 with the first `allow`.
    pub fn new(page: Arc<Mapped>) -> Pace {
        Pace { page, pace: taut_simulated_clock::Pace::new(0, AHEAD_NS) }
    }

    /// Where the clock is.
    pub fn now_ns(&self) -> u64 {
        self.page.time.read().0
    }

    /// All is computed that happens before `next_ns`: the clock may go on until then. True: it stood, and goes on.
    pub fn allow(&mut self, next_ns: u64) -> bool {
        self.pace.allow(&self.page.time, next_ns)
    }

    /// Sleeps until the clock is at `next_ns`, and until the host has sent something since `rung` at the latest.
    pub fn wait(&self, rung: u32, next_ns: u64) {
        if let Some(left_ns) = next_ns.checked_sub(self.now_ns()).filter(|ns| *ns > 0) {
            self.page.to_robot.wait(rung, left_ns);
        }
    }

    /// How it was held up.
    pub fn slips(&self) -> Slips {
        self.pace.slips()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_hosts_clock_ends_its_waits_on_time_and_early_when_the_bell_rings() {
        let page = Mapped::create().unwrap();
        let mut pace = Pace::new(page.clone());
        pace.allow(3_600_000 * MS);
        for spin in [Duration::ZERO, Duration::from_micros(200)] {
            let mut clock = Simulated::new(page.clone(), spin);
            let until_ns = clock.now_ns() + MS;
            clock.wait_until(until_ns);
            assert!(clock.now_ns() >= until_ns);
            let far_ns = clock.now_ns() + 3_600_000 * MS;
            page.to_host.note();
            clock.wait(&[Arrival::Never], far_ns);
            assert!(clock.now_ns() < far_ns);
        }
    }
}
