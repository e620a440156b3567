//! One host's clocks: its counter, which bends by temperature only, and CLOCK_MONOTONIC, which a daemon may slew.

use std::{cell::Cell, collections::BTreeMap};

use taut_clock::{ClockPair, Counter, Mapping, Ticks, nearest};

/// A daemon that slews CLOCK_MONOTONIC does not change it by much in so long before the first calibration.
const NEAR_NS: i64 = 5_000_000_000;

/// A host's raw time is its counter, scaled to nanoseconds by one factor; CLOCK_MONOTONIC where it has no counter.
#[derive(Debug, Default)]
pub struct HostClock {
    /// Counters and their mappings to CLOCK_MONOTONIC.
    mappings: BTreeMap<u8, Mapping>,
    raw: Option<Raw>,
    /// CLOCK_MONOTONIC and raw time, growing; empty where they are the same.
    pairs: Vec<(i64, i64)>,
    /// Where the last moment of either was among them: the next one is mostly there as well.
    near: [Near; 2],
}

/// Where something was found in a sorted list, to look there first.
#[derive(Debug, Default)]
pub(super) struct Near(Cell<usize>);

impl Near {
    /// How many of the first `count` are before what is looked for, of a list in which all that are before come first.
    pub fn partition_point(&self, count: usize, is_before: impl Fn(usize) -> bool) -> usize {
        let last = self.0.get().min(count);
        let is_there = (last == 0 || is_before(last - 1)) && (last == count || !is_before(last));
        if !is_there {
            let (mut from, mut to) = (0, count);
            while from < to {
                let middle = from + (to - from) / 2;
                if is_before(middle) { from = middle + 1 } else { to = middle }
            }
            self.0.set(from);
        }
        self.0.get().min(count)
    }
}

#[derive(Debug)]
struct Raw {
    counter: u8,
    first: (u64, i64),
    ns_per_tick: f64,
}

impl HostClock {
    /// One whose raw time is CLOCK_MONOTONIC itself.
    pub fn monotonic(calibrations: &BTreeMap<u8, Vec<ClockPair>>) -> HostClock {
        let of_counters = calibrations.iter().filter(|(counter, _)| **counter != Counter::Monotonic as u8);
        let mappings =
            of_counters.filter_map(|(counter, pairs)| Some((*counter, Mapping::new(pairs.iter().copied())?))).collect();
        HostClock { mappings, ..HostClock::default() }
    }

    /// From the calibrations of each counter.
    pub fn new(calibrations: &BTreeMap<u8, Vec<ClockPair>>) -> HostClock {
        let mut clock = HostClock::monotonic(calibrations);
        if let Some(counter) = clock.mappings.keys().next().copied() {
            let mut pairs = calibrations[&counter].clone();
            pairs.sort_by_key(|pair| pair.ticks);
            pairs.dedup_by(|next, last| next.ticks <= last.ticks || next.monotonic_ns <= last.monotonic_ns);
            if let (Some(first), Some(ns_per_tick)) = (pairs.first(), ns_per_tick(&pairs)) {
                let raw = Raw { counter, first: (first.ticks.0, first.monotonic_ns as i64), ns_per_tick };
                clock.pairs = pairs.iter().map(|pair| (pair.monotonic_ns as i64, raw.of(pair.ticks.0))).collect();
                clock.raw = Some(raw);
            }
        }
        clock
    }

    /// Raw time of a counter's ticks; `None` where the counter has fewer than two calibrations.
    pub fn of_ticks(&self, counter: u8, ticks: u64) -> Option<i64> {
        match &self.raw {
            Some(raw) if raw.counter == counter => Some(raw.of(ticks)),
            _ if counter == Counter::Monotonic as u8 => Some(self.of_monotonic(ticks)),
            _ => Some(self.of_monotonic(self.mappings.get(&counter)?.to_monotonic(Ticks(ticks)).0)),
        }
    }

    /// Raw time of a moment of CLOCK_MONOTONIC.
    pub fn of_monotonic(&self, time_ns: u64) -> i64 {
        between(&self.pairs, &self.near[0], time_ns as i64, |pair| pair)
    }

    /// Whether its calibrations reach back to that moment of CLOCK_MONOTONIC; of the last seconds alone they do not.
    pub fn reaches(&self, time_ns: u64) -> bool {
        self.pairs.first().is_none_or(|(first_ns, _)| first_ns.saturating_sub(NEAR_NS) <= time_ns as i64)
    }

    /// CLOCK_MONOTONIC of a moment of raw time.
    pub fn to_monotonic(&self, raw_ns: i64) -> u64 {
        between(&self.pairs, &self.near[1], raw_ns, |(monotonic, raw)| (raw, monotonic)).max(0) as u64
    }
}

/// The median of the slopes from pair to pair: a daemon that slews CLOCK_MONOTONIC for a while does not change it. `None` without two
/// pairs.
fn ns_per_tick(pairs: &[ClockPair]) -> Option<f64> {
    let slope = |two: &[ClockPair]| {
        (two[1].monotonic_ns - two[0].monotonic_ns) as f64 / (two[1].ticks.0 - two[0].ticks.0) as f64
    };
    let mut slopes: Vec<f64> = pairs.windows(2).map(slope).collect();
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

impl Raw {
    fn of(&self, ticks: u64) -> i64 {
        self.first.1 + nearest(ticks.wrapping_sub(self.first.0) as i64 as f64 * self.ns_per_tick)
    }
}

/// Interpolates; beyond the ends as between the last two.
fn between(pairs: &[(i64, i64)], near: &Near, x: i64, way: impl Fn((i64, i64)) -> (i64, i64)) -> i64 {
    if pairs.len() < 2 {
        return x;
    }
    let next = near.partition_point(pairs.len(), |at| way(pairs[at]).0 <= x).clamp(1, pairs.len() - 1);
    let ((x0, y0), (x1, y1)) = (way(pairs[next - 1]), way(pairs[next]));
    y0 + nearest((x - x0) as f64 * ((y1 - y0) as f64 / (x1 - x0) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 2.5 GHz; CLOCK_MONOTONIC is slewed by 80,000 ppm from the 4th second to the 6th.
    fn slewed() -> HostClock {
        let monotonic = |s: u64| 1_000_000_000 * s + 80_000_000 * s.saturating_sub(4).min(2);
        let pair = |s: u64| ClockPair {
            ticks: Ticks(7 + 2_500_000_000 * s),
            monotonic_ns: 9_000_000_000 + monotonic(s),
            realtime_ns: 0,
            window_ticks: 1,
        };
        HostClock::new(&BTreeMap::from([(Counter::Tsc as u8, (0..10).map(pair).collect())]))
    }

    #[test]
    fn a_slew_of_monotonic_does_not_bend_raw_time() {
        let clock = slewed();
        let raw = |s: u64| clock.of_ticks(Counter::Tsc as u8, 7 + 2_500_000_000 * s).unwrap();
        for s in 0..10 {
            assert_eq!(raw(s) - raw(0), 1_000_000_000 * s as i64);
        }
        assert_eq!(clock.of_monotonic(9_000_000_000 + 5_080_000_000), raw(5));
        assert_eq!(clock.to_monotonic(raw(8)), 9_000_000_000 + 8_160_000_000);
    }

    #[test]
    fn a_start_long_before_the_calibrations_is_not_reached() {
        let clock = slewed();
        let reached = [3_999_999_999, 4_000_000_000, 9_000_000_000, 90_000_000_000].map(|at_ns| clock.reaches(at_ns));
        assert_eq!(reached, [false, true, true, true]);
        assert!(HostClock::default().reaches(0), "CLOCK_MONOTONIC itself");
    }
}
