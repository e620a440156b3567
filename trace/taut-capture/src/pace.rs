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

/// The pace of one recording: calm only after it was so for a while, since what is found right after a look says little.
#[derive(Debug, Default)]
pub struct Pacer {
    calm_looks: u32,
}

impl Pacer {
    const CALM_LOOKS: u32 = 5;

    /// The pace after a look that found this.
    pub fn after(&mut self, found: Pace) -> Pace {
        self.calm_looks = if found == Pace::Calm { self.calm_looks.saturating_add(1) } else { 0 };
        if self.calm_looks > Pacer::CALM_LOOKS { Pace::Calm } else { found.max(Pace::Lively) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_steadily_does_not_run_over() {
        let capacity = 4096;
        for per_ms in 0..=capacity / 2 / 40 {
            let (mut pacer, mut pace) = (Pacer::default(), Pace::Lively);
            for _ in 0..100 {
                let waiting = per_ms * pace.rest().as_millis() as u64;
                assert!(8 * waiting <= 5 * capacity, "{waiting} at {per_ms} a ms");
                pace = pacer.after(Pace::of(waiting, waiting, capacity));
            }
        }
    }

    #[test]
    fn an_empty_ring_is_calm_and_a_full_one_is_not() {
        assert_eq!([0, 1, 8, 9, 16, 17, 64].map(|n| Pace::of(n, n, 64) as u8), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(Pace::of(3, 2, 64), Pace::Behind);
    }

    #[test]
    fn calm_comes_slowly_and_goes_at_once() {
        let mut pacer = Pacer::default();
        let paces = [Pace::Calm; 7].map(|found| pacer.after(found));
        assert_eq!(paces.map(|pace| pace == Pace::Calm), [false, false, false, false, false, true, true]);
        assert_eq!(pacer.after(Pace::Behind), Pace::Behind);
        assert_eq!(pacer.after(Pace::Calm), Pace::Lively);
    }
}
