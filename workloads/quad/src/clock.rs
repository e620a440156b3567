//! The simulated clock. It is CLOCK_MONOTONIC, less what the simulator was held up: the simulator says up to which moment
//! nothing can happen that it has not computed, and there the clock stands until the simulator has gone on. So a simulator
//! that was not run for a while costs the robot no time, and the host, whose periods and time-outs are on this clock, sees
//! nothing of it; what is late on this clock is late by the host's own fault.

use std::{
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Release},
    },
    time::Duration,
};

use taut_bus::{cycle::Clock, transport::Arrival};
use taut_clock::monotonic_ns;
use taut_stamp::Point;

use crate::page::{Bell, Mapped};

/// The clock may go beyond the next event by so much, ns: a simulator that wakes late by less costs nothing. A reply is seen
/// late by as much at most, so it is less than what the host's time-outs leave beyond the wire's time.
const AHEAD_NS: u64 = 100_000;
/// Sleeps of a host whose clock stands end at the latest after so long, ns.
const LOOK_NS: u64 = 1_000_000;

static SLIPPED: Point = Point::new("simulator.slip_us");

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

    /// Now, and whether the clock stands.
    fn read(&self) -> (u64, bool) {
        // In this order: whoever sees the new end sees how far behind the clock is by then.
        let until_ns = self.page.until_ns.load(Acquire);
        let free_ns = monotonic_ns().saturating_sub(self.page.behind_ns.load(Acquire));
        (free_ns.min(until_ns), free_ns > until_ns)
    }
}

impl Clock for Simulated {
    fn now_ns(&mut self) -> u64 {
        self.rung = self.page.to_host.rung();
        self.read().0
    }

    fn wait(&mut self, arrivals: &[Arrival], until_ns: u64) {
        let first = arrivals.iter().filter_map(|arrival| match arrival {
            Arrival::At(ns) => Some(*ns),
            _ => None,
        });
        let until_ns = first.min().map_or(until_ns, |ns| ns.min(until_ns));
        let bell: &Bell = &self.page.to_host;
        self.page.to_robot.wake();
        let (begun_ns, mut stands) = self.read();
        // Not while the clock stands: the simulator may need this CPU.
        let mut now_ns = begun_ns;
        while !stands && (now_ns - begun_ns < self.spin_ns || now_ns.saturating_add(self.spin_ns) >= until_ns) {
            if now_ns >= until_ns || bell.rung() != self.rung {
                return;
            }
            std::hint::spin_loop();
            (now_ns, stands) = self.read();
        }
        if now_ns < until_ns {
            let most_ns = if stands { LOOK_NS } else { (until_ns - now_ns).saturating_sub(self.spin_ns) };
            bell.wait(self.rung, most_ns);
        }
    }
}

/// How often, and for how long, the clock stood because the simulator was late, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slips {
    /// How often.
    pub count: u64,
    /// All together.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// The simulator's view of it: moves it on.
pub struct Pace {
    page: Arc<Mapped>,
    slips: Slips,
}

impl Pace {
    /// A clock that stands at 0.
    pub fn new(page: Arc<Mapped>) -> Pace {
        page.behind_ns.store(monotonic_ns(), Release);
        Pace { page, slips: Slips::default() }
    }

    /// Where the clock is.
    pub fn now_ns(&self) -> u64 {
        self.at(monotonic_ns())
    }

    fn at(&self, real_ns: u64) -> u64 {
        let behind_ns = self.page.behind_ns.load(Acquire);
        real_ns.saturating_sub(behind_ns).min(self.page.until_ns.load(Acquire))
    }

    /// All is computed that happens before `next_ns`: the clock may go on until then. True: it stood, and goes on.
    pub fn allow(&mut self, next_ns: u64) -> bool {
        self.allow_at(monotonic_ns(), next_ns)
    }

    fn allow_at(&mut self, real_ns: u64, next_ns: u64) -> bool {
        let (behind_ns, until_ns) = (self.page.behind_ns.load(Acquire), self.page.until_ns.load(Acquire));
        let slip_ns = real_ns.saturating_sub(behind_ns).saturating_sub(until_ns);
        if slip_ns > 0 {
            self.page.behind_ns.store(behind_ns + slip_ns, Release);
            // The first is no slip: the clock begins.
            if until_ns > 0 {
                let Slips { count, total_ns, max_ns } = &mut self.slips;
                (*count, *total_ns, *max_ns) = (*count + 1, *total_ns + slip_ns, slip_ns.max(*max_ns));
                SLIPPED.value(slip_ns as f64 / 1e3);
            }
        }
        self.page.until_ns.store(until_ns.max(next_ns + AHEAD_NS), Release);
        slip_ns > 0
    }

    /// Sleeps until the clock is at `next_ns`, and until the host has sent something since `rung` at the latest.
    pub fn wait(&self, rung: u32, next_ns: u64) {
        if let Some(left_ns) = next_ns.checked_sub(self.now_ns()).filter(|ns| *ns > 0) {
            self.page.to_robot.wait(rung, left_ns);
        }
    }

    /// How it was held up.
    pub fn slips(&self) -> Slips {
        self.slips
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn host(pace: &Pace, real_ns: u64) -> u64 {
        pace.at(real_ns)
    }

    #[test]
    fn the_clock_stands_where_the_simulator_has_not_been_and_goes_on_from_there() {
        let mut pace = Pace::new(Mapped::create().unwrap());
        let start_ns = pace.page.behind_ns.load(Acquire);
        assert!(pace.allow_at(start_ns + 7, MS) && pace.slips() == Slips::default(), "it begins");
        let start_ns = start_ns + 7;
        assert_eq!(host(&pace, start_ns + MS / 2), MS / 2);
        // The simulator is away for 30 ms.
        assert_eq!(host(&pace, start_ns + 31 * MS), MS + AHEAD_NS);
        assert!(pace.allow_at(start_ns + 31 * MS, 2 * MS));
        let slip_ns = 30 * MS - AHEAD_NS;
        assert_eq!(pace.slips(), Slips { count: 1, total_ns: slip_ns, max_ns: slip_ns });
        assert_eq!(host(&pace, start_ns + 31 * MS), MS + AHEAD_NS, "no step is dropped");
        assert_eq!(host(&pace, start_ns + 31 * MS + MS / 2), MS + AHEAD_NS + MS / 2);
    }

    #[test]
    fn a_simulator_in_time_slips_never() {
        let mut pace = Pace::new(Mapped::create().unwrap());
        let start_ns = pace.page.behind_ns.load(Acquire);
        pace.allow_at(start_ns, MS);
        for ms in 1..1000 {
            assert!(!pace.allow_at(start_ns + ms * MS + AHEAD_NS, (ms + 1) * MS));
            assert_eq!(host(&pace, start_ns + ms * MS + AHEAD_NS), ms * MS + AHEAD_NS);
        }
        assert_eq!(pace.slips(), Slips::default());
    }

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
