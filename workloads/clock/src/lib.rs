//! The simulated clock that a robot's simulators and the program under test share. It is CLOCK_MONOTONIC, less what the
//! simulators were held up: each says up to which moment nothing can happen that it has not computed, and at the earliest of
//! these the clock stands until that simulator has gone on. So a simulator that was not run for a while costs the robot no
//! time; what is late on this clock is late by the fault of whoever reads it.

mod mapped;

pub use mapped::{Mapped, Plain};

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

use taut_clock::monotonic_ns;
use taut_stamp::Point;

/// A run is no evidence where its simulators were held up for more than this share of it: what a machine does that cannot
/// even run the robot says nothing of the program under test.
pub const MOST_SLIP: f64 = 0.10;

/// Where there are several simulators, one that has not gone on for so long has ended: the others do not wait for it, ns.
const GONE_NS: u64 = 2_000_000_000;
const LEFT: u64 = u64::MAX;

static SLIPPED: Point = Point::new("simulator.slip_us");

/// The clock, in shared memory. All zeros is a clock that stands at 0 until each of its `SEATS` simulators has begun.
#[repr(C)]
pub struct Time<const SEATS: usize> {
    behind_ns: AtomicU64,
    until_ns: [AtomicU64; SEATS],
}

impl<const SEATS: usize> Time<SEATS> {
    /// Now, and whether the clock stands.
    pub fn read(&self) -> (u64, bool) {
        // In this order: whoever sees the new ends sees how far behind the clock is by then.
        let ends = self.ends();
        let behind_ns = self.behind_ns.load(Acquire);
        read_at(&ends, monotonic_ns().saturating_sub(behind_ns))
    }

    /// The simulator of this seat ends: the clock goes on without it.
    pub fn leave(&self, seat: usize) {
        self.until_ns[seat].store(LEFT, Release);
    }

    fn ends(&self) -> [u64; SEATS] {
        std::array::from_fn(|seat| self.until_ns[seat].load(Acquire))
    }
}

fn read_at<const SEATS: usize>(ends: &[u64; SEATS], free_ns: u64) -> (u64, bool) {
    let until_ns = ends.iter().copied().filter(|end| !is_gone::<SEATS>(*end, free_ns)).min().unwrap_or(LEFT);
    (free_ns.min(until_ns), free_ns > until_ns)
}

/// A lone simulator is waited for without end, and so is one that has yet to begin.
fn is_gone<const SEATS: usize>(end_ns: u64, free_ns: u64) -> bool {
    SEATS > 1 && end_ns > 0 && free_ns.saturating_sub(end_ns) > GONE_NS
}

/// How often, and for how long, the clock stood because a simulator was late, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slips {
    /// How often.
    pub count: u64,
    /// All together.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// One simulator's hold on the clock: moves it on.
pub struct Pace {
    seat: usize,
    ahead_ns: u64,
    slips: Slips,
}

impl Pace {
    /// For the simulator of this seat. The clock may go `ahead_ns` beyond the next event: a simulator that wakes late by less
    /// costs nothing, and what it does is seen late by as much at most.
    pub fn new(seat: usize, ahead_ns: u64) -> Pace {
        Pace { seat, ahead_ns, slips: Slips::default() }
    }

    /// All is computed that happens before `next_ns`: the clock may go on until then. True: it stood, and goes on.
    pub fn allow<const SEATS: usize>(&mut self, time: &Time<SEATS>, next_ns: u64) -> bool {
        self.allow_at(time, monotonic_ns(), next_ns)
    }

    /// As [`Pace::allow`] at a moment of CLOCK_MONOTONIC.
    pub fn allow_at<const SEATS: usize>(&mut self, time: &Time<SEATS>, real_ns: u64, next_ns: u64) -> bool {
        let ends = time.ends();
        let end_ns = ends[self.seat];
        let slip_ns = loop {
            let behind_ns = time.behind_ns.load(Acquire);
            let free_ns = real_ns.saturating_sub(behind_ns);
            let slip_ns = free_ns.saturating_sub(end_ns);
            if slip_ns == 0 || is_gone::<SEATS>(end_ns, free_ns) {
                break slip_ns;
            }
            // The clock stands for another one, which will say for how long.
            if ends.iter().any(|other| *other < end_ns && !is_gone::<SEATS>(*other, free_ns)) {
                break 0;
            }
            if time.behind_ns.compare_exchange(behind_ns, behind_ns + slip_ns, Release, Acquire).is_ok() {
                break slip_ns;
            }
        };
        // The first is no slip: the clock begins.
        if slip_ns > 0 && end_ns > 0 {
            let Slips { count, total_ns, max_ns } = &mut self.slips;
            (*count, *total_ns, *max_ns) = (*count + 1, *total_ns + slip_ns, slip_ns.max(*max_ns));
            SLIPPED.value(slip_ns as f64 / 1e3);
        }
        time.until_ns[self.seat].store(end_ns.max(next_ns + self.ahead_ns), Release);
        slip_ns > 0
    }

    /// How the simulator was held up.
    pub fn slips(&self) -> Slips {
        self.slips
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const AHEAD_NS: u64 = MS / 10;
    const START_NS: u64 = 77_000 * MS;

    fn clock<const SEATS: usize>() -> Time<SEATS> {
        Time { behind_ns: AtomicU64::new(0), until_ns: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    fn at<const SEATS: usize>(time: &Time<SEATS>, real_ns: u64) -> u64 {
        read_at(&time.ends(), real_ns.saturating_sub(time.behind_ns.load(Acquire))).0
    }

    #[test]
    fn the_clock_stands_where_the_simulator_has_not_been_and_goes_on_from_there() {
        let (time, mut pace) = (clock::<1>(), Pace::new(0, AHEAD_NS));
        assert_eq!(at(&time, START_NS), 0);
        assert!(pace.allow_at(&time, START_NS, MS) && pace.slips() == Slips::default(), "it begins");
        assert_eq!(at(&time, START_NS + MS / 2), MS / 2);
        // The simulator is away for 30 ms.
        assert_eq!(at(&time, START_NS + 31 * MS), MS + AHEAD_NS);
        assert!(pace.allow_at(&time, START_NS + 31 * MS, 2 * MS));
        let slip_ns = 30 * MS - AHEAD_NS;
        assert_eq!(pace.slips(), Slips { count: 1, total_ns: slip_ns, max_ns: slip_ns });
        assert_eq!(at(&time, START_NS + 31 * MS), MS + AHEAD_NS, "no step is dropped");
        assert_eq!(at(&time, START_NS + 31 * MS + MS / 2), MS + AHEAD_NS + MS / 2);
    }

    #[test]
    fn a_simulator_in_time_slips_never() {
        let (time, mut pace) = (clock::<1>(), Pace::new(0, AHEAD_NS));
        pace.allow_at(&time, START_NS, MS);
        for ms in 1..1000 {
            assert!(!pace.allow_at(&time, START_NS + ms * MS + AHEAD_NS, (ms + 1) * MS));
            assert_eq!(at(&time, START_NS + ms * MS + AHEAD_NS), ms * MS + AHEAD_NS);
        }
        assert_eq!(pace.slips(), Slips::default());
    }

    #[test]
    fn of_two_the_clock_stands_for_the_late_one_and_only_its_slip_counts() {
        let (time, mut one, mut other) = (clock::<2>(), Pace::new(0, AHEAD_NS), Pace::new(1, AHEAD_NS));
        one.allow_at(&time, START_NS, MS);
        assert_eq!(at(&time, START_NS + 50 * MS), 0, "the other has yet to begin");
        other.allow_at(&time, START_NS + 50 * MS, MS);
        let start_ns = START_NS + 50 * MS;
        one.allow_at(&time, start_ns + MS, 2 * MS);
        assert_eq!(at(&time, start_ns + 2 * MS), MS + AHEAD_NS, "the other has not gone on");
        assert!(!one.allow_at(&time, start_ns + 20 * MS, 2 * MS), "that is not this one's doing");
        assert!(other.allow_at(&time, start_ns + 21 * MS, 2 * MS));
        let slip_ns = 20 * MS - AHEAD_NS;
        assert_eq!((one.slips(), other.slips().total_ns), (Slips::default(), slip_ns));
        assert_eq!(at(&time, start_ns + 21 * MS + MS / 2), MS + AHEAD_NS + MS / 2);
    }

    #[test]
    fn one_that_ended_or_is_away_for_long_is_not_waited_for() {
        let (time, mut one, mut other) = (clock::<2>(), Pace::new(0, AHEAD_NS), Pace::new(1, AHEAD_NS));
        one.allow_at(&time, START_NS, MS);
        other.allow_at(&time, START_NS, MS);
        let gone_ns = START_NS + MS + AHEAD_NS + GONE_NS;
        one.allow_at(&time, START_NS + MS, 5_000 * MS);
        assert_eq!(at(&time, gone_ns), MS + AHEAD_NS);
        assert_eq!(at(&time, gone_ns + 1), gone_ns + 1 - START_NS);
        time.leave(0);
        time.leave(1);
        assert_eq!(at(&time, START_NS + 9 * MS), 9 * MS);
    }
}
