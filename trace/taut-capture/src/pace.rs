//! How soon the rings are looked at again. Each look wakes a core whose caches are cold and whose clock is slow: what is found
//! is better found in one go. A full ring costs stamps.

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
            // One that is filled steadily is below 5/8 at the calm pace.
            4..8 => Pace::Lively,
            _ => Pace::Calm,
        }
    }

    /// Until the next look. A thread fills a ring of the usual size in 200 ms if it stamps each 1.5 µs.
    pub fn rest(self) -> Duration {
        Duration::from_millis(match self {
            Pace::Calm => 200,
            Pace::Lively => 40,
            Pace::Behind => 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_steadily_does_not_run_over() {
        let capacity = 131_072;
        // Up to a quarter of it at the lively pace.
        for per_ms in 0..=capacity / 4 / 40 {
            let mut pace = Pace::Lively;
            for _ in 0..10 {
                let waiting = per_ms * pace.rest().as_millis() as u64;
                assert!(8 * waiting <= 5 * capacity, "{waiting} at {per_ms} a ms");
                pace = Pace::of(waiting, waiting, capacity);
            }
        }
    }

    #[test]
    fn an_empty_ring_is_calm_and_a_full_one_is_not() {
        assert_eq!([0, 1, 8, 9, 16, 17, 64].map(|n| Pace::of(n, n, 64) as u8), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(Pace::of(3, 2, 64), Pace::Behind);
    }
}
