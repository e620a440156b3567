//! A distribution in exponential buckets: what OpenTelemetry and Prometheus call exponential and native histograms.

use std::collections::BTreeMap;

use taut_stats::Exponential;

/// 64 buckets an octave: a factor of 2^(1/64) each.
pub const BUCKETS: Exponential = Exponential::new(6);

/// Durations in nanoseconds. A bucket is 1.09 % wide, so a quantile reads at most that much high; count, sum and extremes are exact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// Values above 0 by index of [`BUCKETS`].
    buckets: BTreeMap<i32, u64>,
    zeros: u64,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Spread {
    /// Takes a value.
    pub fn record(&mut self, ns: u64) {
        match BUCKETS.index(ns) {
            None => self.zeros += 1,
            Some(index) => *self.buckets.entry(index).or_default() += 1,
        }
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Takes all values of another.
    pub fn add(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.zeros += other.zeros;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        for (index, count) in &other.buckets {
            *self.buckets.entry(*index).or_default() += count;
        }
    }

    /// Values taken.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Values of 0.
    pub fn zeros(&self) -> u64 {
        self.zeros
    }

    /// The smallest; `None` without values.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// The largest; `None` without values.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// (index, count) of the buckets that hold something, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        self.buckets.iter().map(|(index, count)| (*index, *count))
    }

    /// The upper bound of the bucket of the value with this rank, 0 to 1, but no more than the largest value.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let rank = (quantile.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let max_ns = self.max_ns()?;
        let mut below = self.zeros;
        if below >= rank {
            return Some(0);
        }
        let at = self.buckets.iter().find(|(_, count)| {
            below += **count;
            below >= rank
        });
        Some(at.map_or(max_ns, |(index, _)| BUCKETS.whole_bounds(*index).1.clamp(self.min_ns, max_ns)))
    }

    /// Values up to so many nanoseconds, to a bucket: those of a bucket that the limit cuts are not yet counted.
    pub fn up_to(&self, ns: u64) -> u64 {
        let within = |index: i32| BUCKETS.whole_bounds(index).1 <= ns;
        self.zeros + self.buckets().take_while(|(index, _)| within(*index)).map(|(_, count)| count).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Spread {
        let mut spread = Spread::default();
        values.into_iter().for_each(|ns| spread.record(ns));
        spread
    }

    #[test]
    fn a_quantile_is_at_most_a_bucket_high_and_never_beyond_the_largest() {
        let spread = of(1..=100_000);
        for (quantile, ns) in [(0.5, 50_000.0), (0.99, 99_000.0)] {
            let read = spread.quantile_ns(quantile).unwrap() as f64;
            assert!(read >= ns && read <= ns * 1.011, "{read} for {ns}");
        }
        assert_eq!((spread.quantile_ns(1.0), spread.quantile_ns(0.0)), (Some(100_000), Some(1)));
        assert_eq!(Spread::default().quantile_ns(0.5), None);
    }

    #[test]
    fn two_added_are_what_all_values_are() {
        let (low, high) = (of([0, 5, 700]), of([3, 1_000_000]));
        let mut both = low.clone();
        both.add(&high);
        assert_eq!(both, of([0, 5, 700, 3, 1_000_000]));
        both.add(&Spread::default());
        assert_eq!(
            (both.count(), both.min_ns(), both.max_ns(), both.sum_ns()),
            (5, Some(0), Some(1_000_000), 1_000_708)
        );
    }

    #[test]
    fn what_a_limit_holds_ascends_to_everything() {
        let spread = of([0, 10, 1_000, 1_000_000]);
        let held: Vec<u64> = [0, 11, 1_020, 10_000_000].map(|limit| spread.up_to(limit)).into();
        assert_eq!(held, [1, 2, 3, 4]);
    }
}
