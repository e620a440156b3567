//! Ticks of counters → CLOCK_MONOTONIC.

use std::collections::{BTreeMap, BTreeSet};

use taut_clock::{ClockPair, Counter, Mapping, Ticks};

/// The calibrations of a recording's counters.
#[derive(Debug, Default)]
pub struct Clocks {
    pairs: BTreeMap<u8, Vec<ClockPair>>,
    /// After [`Clocks::settle`]; none for CLOCK_MONOTONIC itself.
    mappings: BTreeMap<u8, Mapping>,
}

impl Clocks {
    /// Takes a calibration.
    pub fn take(&mut self, counter: Counter, pair: ClockPair) {
        self.pairs.entry(counter as u8).or_default().push(pair);
    }

    /// Makes use of all calibrations taken so far.
    pub fn settle(&mut self) {
        let counters = self.pairs.iter().filter(|(counter, _)| **counter != Counter::Monotonic as u8);
        self.mappings =
            counters.filter_map(|(counter, pairs)| Some((*counter, Mapping::new(pairs.iter().copied())?))).collect();
    }

    /// CLOCK_MONOTONIC of a counter's ticks; `None` where that is not known: the counter has fewer than two calibrations.
    #[inline]
    pub fn time_ns(&self, counter: u8, ticks: u64) -> Option<u64> {
        if counter == Counter::Monotonic as u8 {
            return Some(ticks);
        }
        Some(self.mappings.get(&counter)?.to_monotonic(Ticks(ticks)).0)
    }

    /// Bound of the error of these counters' times, or of all counters' where none is used; `None` where one of them has no
    /// times.
    pub fn error_ns(&self, used: &BTreeSet<u8>) -> Option<f64> {
        // Where no event names its counter it is telemetry that the counters time.
        let all = self.mappings.keys().copied().collect();
        let used = if used.is_empty() { &all } else { used };
        let error = |counter: &u8| match *counter {
            counter if counter == Counter::Monotonic as u8 => Some(0.0),
            counter => Some(self.mappings.get(&counter)?.error_ns()),
        };
        let errors = used.iter().map(error).collect::<Option<Vec<f64>>>();
        errors.map(|errors| errors.into_iter().fold(0.0, f64::max))
    }
}
