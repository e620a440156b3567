//! Counter ticks → CLOCK_MONOTONIC, by calibration pairs taken once a second.

use crate::{Counter, MonotonicNs, Ticks, monotonic_ns, realtime_ns};

/// One calibration: a counter read sandwiched between two reads of itself
/// around a CLOCK_MONOTONIC read; the narrowest of several tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    /// Middle of the sandwich.
    pub ticks: Ticks,
    /// CLOCK_MONOTONIC at that moment.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME at (almost) that moment, for wall-clock display only.
    pub realtime_ns: u64,
    /// Width of the sandwich; half of it bounds the pair's error.
    pub window_ticks: u32,
}

impl ClockPair {
    /// Takes a pair now: the narrowest of 16 sandwiches.
    pub fn take(counter: Counter) -> ClockPair {
        let mut best = ClockPair { ticks: Ticks(0), monotonic_ns: 0, realtime_ns: 0, window_ticks: u32::MAX };
        for _ in 0..16 {
            let before = counter.now().0;
            let monotonic = monotonic_ns();
            let after = counter.now().0;
            let window = after.saturating_sub(before).min(u32::MAX as u64) as u32;
            if window < best.window_ticks {
                let ticks = Ticks(before + window as u64 / 2);
                best = ClockPair { ticks, monotonic_ns: monotonic, window_ticks: window, ..best };
            }
        }
        // REALTIME is related to MONOTONIC by an offset, not measured by a sandwich of its own.
        best.realtime_ns = best.monotonic_ns + realtime_ns().saturating_sub(monotonic_ns());
        best
    }
}

/// The nearest whole number, halves away from zero. `f64::round` is a call of the C library on an x86-64 that need not have SSE4.1, and each
/// event of a recording is mapped.
pub fn nearest(value: f64) -> i64 {
    (value + 0.5_f64.copysign(value)) as i64
}

/// A piecewise linear map from ticks to CLOCK_MONOTONIC through calibration
/// pairs, of which it takes two. Between pairs it interpolates; before the first and after the last
/// it uses the neighbouring slope, which a recorder avoids by taking a pair at
/// start and at stop.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// At least two, growing on both clocks.
    pairs: Vec<ClockPair>,
}

impl Mapping {
    /// Builds the map; pairs that do not advance on both clocks are rejected
    /// (a stepped or frozen counter must not bend time backwards). `None` with fewer than two that
    /// are not: then nothing is known of how fast the counter runs, and ticks are no time.
    pub fn new(pairs: impl IntoIterator<Item = ClockPair>) -> Option<Mapping> {
        let mut kept: Vec<ClockPair> = Vec::new();
        for pair in pairs {
            match kept.last() {
                Some(last) if pair.ticks <= last.ticks || pair.monotonic_ns <= last.monotonic_ns => {}
                _ => kept.push(pair),
            }
        }
        (kept.len() > 1).then_some(Mapping { pairs: kept })
    }

    /// The moment of `ticks`.
    pub fn to_monotonic(&self, ticks: Ticks) -> MonotonicNs {
        let after = self.pairs.partition_point(|p| p.ticks <= ticks).clamp(1, self.pairs.len() - 1);
        let (a, b) = (self.pairs[after - 1], self.pairs[after]);
        let slope = (b.monotonic_ns - a.monotonic_ns) as f64 / (b.ticks.0 - a.ticks.0) as f64;
        let offset = ticks.0.wrapping_sub(a.ticks.0) as i64 as f64 * slope;
        MonotonicNs(a.monotonic_ns.saturating_add_signed(nearest(offset)))
    }

    /// A bound on the map's error at the pairs and between them, in nanoseconds:
    /// the widest half sandwich, plus the largest miss of a middle pair from the
    /// line through its neighbours.
    pub fn error_ns(&self) -> f64 {
        let (first, last) = (&self.pairs[0], &self.pairs[self.pairs.len() - 1]);
        let slope = (last.monotonic_ns - first.monotonic_ns) as f64 / (last.ticks.0 - first.ticks.0) as f64;
        let window = self.pairs.iter().map(|p| p.window_ticks).max().unwrap_or(0) as f64 / 2.0 * slope;
        let miss = self.pairs.windows(3).map(|w| {
            let line = (w[2].monotonic_ns - w[0].monotonic_ns) as f64 / (w[2].ticks.0 - w[0].ticks.0) as f64;
            let expected = w[0].monotonic_ns as f64 + (w[1].ticks.0 - w[0].ticks.0) as f64 * line;
            (w[1].monotonic_ns as f64 - expected).abs()
        });
        window + miss.fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(ticks: u64, monotonic_ns: u64) -> ClockPair {
        ClockPair { ticks: Ticks(ticks), monotonic_ns, realtime_ns: 0, window_ticks: 40 }
    }

    #[test]
    fn nearest_rounds_as_the_library_does() {
        for whole in [0, 1, 2, 999_999_999, 1_700_000_000_000_000_000_i64 >> 12] {
            for part in [0.0, 0.25, 0.5, 0.75] {
                for value in [whole as f64 + part, -(whole as f64 + part)] {
                    assert_eq!(nearest(value), value.round() as i64, "{value}");
                }
            }
        }
        assert_eq!([nearest(f64::NAN), nearest(f64::INFINITY), nearest(-1e300)], [0, i64::MAX, i64::MIN]);
    }

    #[test]
    fn interpolates_between_pairs_and_continues_outside() {
        let map = Mapping::new([pair(1000, 10_000), pair(3000, 11_000), pair(5000, 12_100)]).unwrap();
        let at = |ticks| map.to_monotonic(Ticks(ticks)).0;
        assert_eq!([at(1000), at(2000), at(3000), at(4000), at(5000)], [10_000, 10_500, 11_000, 11_550, 12_100]);
        assert_eq!([at(0), at(7000)], [9_500, 13_200]);
    }

    #[test]
    fn a_pair_that_goes_backwards_is_rejected() {
        let map = Mapping::new([pair(1000, 10_000), pair(900, 10_500), pair(2000, 9_000), pair(2000, 11_000)]).unwrap();
        assert_eq!(map.to_monotonic(Ticks(1500)).0, 10_500);
    }

    #[test]
    fn the_error_bound_covers_a_bent_clock() {
        let map = Mapping::new([pair(1000, 10_000), pair(2000, 11_007), pair(3000, 12_000)]).unwrap();
        assert!(map.error_ns() >= 27.0);
    }

    #[test]
    fn without_two_pairs_ticks_are_no_time() {
        let of = |pairs: &[ClockPair]| Mapping::new(pairs.iter().copied()).is_some();
        assert!(!of(&[]) && !of(&[pair(1000, 10_000)]) && !of(&[pair(1000, 10_000), pair(900, 11_000)]));
        assert!(of(&[pair(1000, 10_000), pair(900, 11_000), pair(1001, 10_001)]));
    }

    /// A counter of 1 GHz with a pair each second; what happens to it after the fifth.
    fn after_five(ticks: impl Fn(u64) -> u64) -> Mapping {
        let s = 1_000_000_000;
        Mapping::new((0..10).map(|at| pair(if at < 5 { at * s } else { ticks(at * s) }, at * s))).unwrap()
    }

    #[test]
    fn a_counter_that_jumps_stands_or_changes_its_rate_shows_in_the_error() {
        // As a live migration, a suspend or a TSC that the kernel drops does it, between two reads of its name.
        let steady = after_five(|ticks| ticks).error_ns();
        assert!(steady < 100.0, "{steady}");
        let ms = 1_000_000;
        for (what, map) in [
            ("jump forward", after_five(|ticks| ticks + 200 * ms)),
            ("jump back", after_five(|ticks| ticks - 200 * ms)),
            ("stand for a second", after_five(|ticks| ticks - 1_000 * ms)),
            ("another rate", after_five(|ticks| ticks + (ticks - 4_000 * ms) / 5)),
        ] {
            let error = map.error_ns();
            assert!(error > 50e6, "{what}: {error}");
        }
    }

    #[test]
    fn a_real_pair_lies_between_reads_before_and_after_it_on_both_clocks() {
        let native = [(cfg!(target_arch = "x86_64"), Counter::Tsc), (cfg!(target_arch = "aarch64"), Counter::Cntvct)];
        let counter =
            native.into_iter().find(|(is_here, _)| *is_here).map_or(Counter::Monotonic, |(_, counter)| counter);
        let (ticks_before, ns_before) = (counter.now(), monotonic_ns());
        let pair = ClockPair::take(counter);
        let (ticks_after, ns_after) = (counter.now(), monotonic_ns());
        assert!((ticks_before..=ticks_after).contains(&pair.ticks), "{pair:?}");
        assert!((ns_before..=ns_after).contains(&pair.monotonic_ns), "{pair:?}");
        // The narrowest of 16 is at most a sixteenth of all, however busy the machine is.
        assert!(u64::from(pair.window_ticks) <= (ticks_after.0 - ticks_before.0) / 16, "{pair:?}");
    }
}
