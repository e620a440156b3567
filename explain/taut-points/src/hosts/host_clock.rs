//! One host's clocks: its counter, which bends by temperature only, and CLOCK_MONOTONIC, which a daemon may slew.

use std::collections::BTreeMap;

use taut_clock::{ClockPair, Counter, Mapping, Ticks};

/// A host's raw time is its counter, scaled to nanoseconds by one factor; CLOCK_MONOTONIC where it has no counter.
#[derive(Debug, Default)]
pub struct HostClock {
    /// Counters and their mappings to CLOCK_MONOTONIC.
    mappings: BTreeMap<u8, Mapping>,
    raw: Option<Raw>,
    /// CLOCK_MONOTONIC and raw time, growing; empty where they are the same.
    pairs: Vec<(i64, i64)>,
}

#[derive(Debug)]
struct Raw {
    counter: u8,
    first: (u64, i64),
    ns_per_tick: f64,
}

impl HostClock {
    /// From the calibrations of each counter.
    pub fn new(calibrations: &BTreeMap<u8, Vec<ClockPair>>) -> HostClock {
        let of_counters = calibrations.iter().filter(|(counter, _)| **counter != Counter::Monotonic as u8);
        let mappings: BTreeMap<u8, Mapping> =
            of_counters.filter_map(|(counter, pairs)| Some((*counter, Mapping::new(pairs.iter().copied())?))).collect();
        let mut clock = HostClock { mappings, ..HostClock::default() };
        if let Some(counter) = clock.mappings.keys().next().copied() {
            let mut pairs = calibrations[&counter].clone();
            pairs.sort_by_key(|pair| pair.ticks);
            pairs.dedup_by(|next, last| next.ticks <= last.ticks || next.monotonic_ns <= last.monotonic_ns);
            if let [first, .., last] = pairs.as_slice() {
                let ns_per_tick =
                    (last.monotonic_ns - first.monotonic_ns) as f64 / (last.ticks.0 - first.ticks.0) as f64;
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
        between(&self.pairs, time_ns as i64, |pair| pair)
    }

    /// CLOCK_MONOTONIC of a moment of raw time.
    pub fn to_monotonic(&self, raw_ns: i64) -> u64 {
        between(&self.pairs, raw_ns, |(monotonic, raw)| (raw, monotonic)).max(0) as u64
    }
}

impl Raw {
    fn of(&self, ticks: u64) -> i64 {
        self.first.1 + (ticks.wrapping_sub(self.first.0) as i64 as f64 * self.ns_per_tick).round() as i64
    }
}

/// Interpolates; beyond the ends as between the last two.
fn between(pairs: &[(i64, i64)], x: i64, way: impl Fn((i64, i64)) -> (i64, i64)) -> i64 {
    if pairs.len() < 2 {
        return x;
    }
    let next = pairs.partition_point(|pair| way(*pair).0 <= x).clamp(1, pairs.len() - 1);
    let ((x0, y0), (x1, y1)) = (way(pairs[next - 1]), way(pairs[next]));
    y0 + ((x - x0) as f64 * ((y1 - y0) as f64 / (x1 - x0) as f64)).round() as i64
}
