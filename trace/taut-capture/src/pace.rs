//! How soon the rings are looked at again. A look costs 100 µs of a cold cache, so it had better find something; a full ring
//! costs stamps.

use std::time::Duration;

/// From what a look found; of several the last in this order counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// Little.
    #[default]
    Calm,
    /// A ring with something in it, or threads that come and go: each needs a place in its process's file.
    Lively,
    /// More than was taken, or so much that the ring may be full soon.
    Behind,
}

impl Pace {
    /// From how many of a ring's places were taken up, and how many of these were taken.
    pub fn of(waiting: u64, taken: u64, capacity: u64) -> Pace {
        match capacity / waiting.max(1) {
            _ if taken < waiting => Pace::Behind,
            0..4 => Pace::Behind,
            4..16 => Pace::Lively,
            // Even at the calm pace a ring that is filled steadily is then below a sixth.
            _ => Pace::Calm,
        }
    }

    /// Until the next look. A thread fills a ring of the usual size in 100 ms if it stamps each 0.8 µs.
    pub fn rest(self) -> Duration {
        Duration::from_millis(match self {
            Pace::Calm => 100,
            Pace::Lively => 40,
            Pace::Behind => 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_fills_a_ring_steadily_is_looked_at_before_it_is_half_full() {
        for per_ms in 0..10_000 {
            let capacity = 131_072;
            let (mut rest_ms, mut fullest) = (100, 0);
            for _ in 0..10 {
                let waiting = per_ms * rest_ms;
                rest_ms = Pace::of(waiting, waiting, capacity).rest().as_millis() as u64;
                // The first look is at whatever pace was before.
                fullest = waiting;
            }
            assert!(2 * fullest < capacity || per_ms * 40 >= capacity / 2, "{per_ms} a ms: {fullest}");
        }
    }

    #[test]
    fn an_empty_ring_is_calm_and_a_full_one_is_not() {
        assert_eq!([0, 1, 4, 5, 16, 17, 64].map(|n| Pace::of(n, n, 64) as u8), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(Pace::of(3, 2, 64), Pace::Behind);
    }
}
