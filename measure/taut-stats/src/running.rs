//! Durations counted as they come, in bounded memory: for live views and for merging trials.

use hdrhistogram::Histogram;

/// A mergeable histogram of durations to 3 significant digits, with exact extremes and sum beside it.
#[derive(Clone, Debug)]
pub struct Running {
    histogram: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Default for Running {
    fn default() -> Running {
        // 3 is within the library's 0 … 5: its constructor cannot refuse.
        let histogram = Histogram::new(3).expect("3 significant digits are allowed");
        Running { histogram, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }
}

impl Running {
    /// Counts one duration; in the histogram one beyond 2^63 ns (292 years) counts as that.
    pub fn record(&mut self, duration_ns: u64) {
        // Not saturating_record(): that one never resizes, and so would squeeze all into the first 2048 ns.
        self.histogram.record(duration_ns.min(u64::MAX / 2)).expect("a resizing histogram takes every value");
        self.min_ns = self.min_ns.min(duration_ns);
        self.max_ns = self.max_ns.max(duration_ns);
        self.sum_ns += u128::from(duration_ns);
    }

    /// Adds all that `other` counted; the same as if one had counted both.
    pub fn merge(&mut self, other: &Running) {
        // Auto-resizing histograms of equal precision always fit into each other.
        self.histogram.add(&other.histogram).expect("a resizing histogram takes every value");
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }

    /// Durations counted.
    pub fn n(&self) -> u64 {
        self.histogram.len()
    }

    /// Smallest, exact.
    pub fn min_ns(&self) -> Option<u64> {
        (self.n() > 0).then_some(self.min_ns)
    }

    /// Largest, exact.
    pub fn max_ns(&self) -> Option<u64> {
        (self.n() > 0).then_some(self.max_ns)
    }

    /// Mean, from the exact sum; shown, never used to decide.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.n() > 0).then(|| self.sum_ns as f64 / self.n() as f64)
    }

    /// The quantile `q` (0 … 1) to 3 significant digits. Order in time is not kept, so whether the
    /// count carries it is the caller's to judge.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        (self.n() > 0).then(|| self.histogram.value_at_quantile(q).clamp(self.min_ns, self.max_ns))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(samples: &[u64]) -> Running {
        let mut running = Running::default();
        samples.iter().for_each(|s| running.record(*s));
        running
    }

    proptest! {
        #[test]
        fn merged_is_as_if_counted_by_one(
            a in proptest::collection::vec(any::<u64>(), 0..50),
            b in proptest::collection::vec(0u64..1 << 40, 1..50),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let whole = of(&[a, b].concat());
            prop_assert_eq!(&merged.histogram, &whole.histogram);
            prop_assert_eq!((merged.min_ns, merged.max_ns, merged.sum_ns), (whole.min_ns, whole.max_ns, whole.sum_ns));
        }

        #[test]
        fn a_quantile_is_right_to_three_digits(mut samples in proptest::collection::vec(1u64..1 << 50, 1..300)) {
            let running = of(&samples);
            samples.sort_unstable();
            for q in [0.5, 0.9, 0.99] {
                let exact = crate::rank(&samples, q).unwrap();
                let near = running.quantile_ns(q).unwrap();
                prop_assert!(near.abs_diff(exact) as f64 <= 0.001 * exact as f64 + 1.0, "{near} for {exact}");
            }
        }
    }

    #[test]
    fn nothing_counted_has_no_extremes() {
        let nothing = Running::default();
        assert_eq!(
            (nothing.min_ns(), nothing.max_ns(), nothing.mean_ns(), nothing.quantile_ns(0.5)),
            (None, None, None, None)
        );
    }
}
