//! Distributions without their messages: quantiles from buckets, with their resolution.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_recording::Histogram as Recorded;

/// A quantile is given only if so many values lie beyond it. Of bursts a histogram knows nothing.
const BEYOND: u64 = 10;

/// One distribution, all its records together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Histogram {
    /// Of what.
    pub name: String,
    /// Of all figures: "ns" for durations, else what the source counts in.
    pub unit: String,
    /// Values, overflow included.
    pub n: u64,
    /// Smallest, where the source says it.
    pub min: Option<u64>,
    /// Median.
    pub p50: Option<Quantile>,
    /// 90th percentile.
    pub p90: Option<Quantile>,
    /// 99th percentile.
    pub p99: Option<Quantile>,
    /// 99.9th percentile.
    pub p999: Option<Quantile>,
    /// Largest, where the source says it.
    pub max: Option<u64>,
    /// Values beyond the source's last bucket.
    pub overflow: u64,
    /// What they are known to reach, at least.
    pub overflow_from: u64,
    /// Smallest value, largest value and count of each bucket that is not empty, ascending.
    pub buckets: Vec<(u64, u64, u64)>,
}

/// How exactly buckets tell a quantile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantile {
    /// It lies in a bucket; this is the bucket's largest value.
    AtMost(u64),
    /// It lies beyond the last bucket, which ends here.
    AtLeast(u64),
}

/// Histograms being collected, by name and unit.
#[derive(Default)]
pub(crate) struct Histograms(BTreeMap<(String, String), Collected>);

#[derive(Default)]
struct Collected {
    /// By the largest and the smallest value of the bucket.
    buckets: BTreeMap<(u64, u64), u64>,
    min: Option<u64>,
    max: Option<u64>,
    overflow: u64,
    overflow_from: Option<u64>,
}

impl Histograms {
    pub fn take(&mut self, recorded: &Recorded) {
        let of = self.0.entry((recorded.name.clone(), recorded.unit.clone())).or_default();
        for ((from, to), count) in recorded.from.iter().zip(&recorded.to).zip(&recorded.count).filter(|(_, n)| **n > 0)
        {
            let bucket = of.buckets.entry((*to, *from)).or_default();
            *bucket = bucket.saturating_add(*count);
        }
        of.min = [of.min, recorded.min].into_iter().flatten().min();
        of.max = of.max.max(recorded.max);
        if recorded.overflow > 0 {
            of.overflow = of.overflow.saturating_add(recorded.overflow);
            let from = of.overflow_from.map_or(recorded.overflow_from, |from| from.min(recorded.overflow_from));
            of.overflow_from = Some(from);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn finish(self) -> Vec<Histogram> {
        self.0.into_iter().map(|((name, unit), of)| of.finish(name, unit)).collect()
    }
}

impl Collected {
    fn finish(self, name: String, unit: String) -> Histogram {
        let buckets: Vec<(u64, u64, u64)> = self.buckets.iter().map(|((to, from), n)| (*from, *to, *n)).collect();
        let within: u64 = buckets.iter().fold(0, |sum, (.., n)| sum.saturating_add(*n));
        let n = within.saturating_add(self.overflow);
        let overflow_from = self.overflow_from.unwrap_or(0);
        // Nearest rank, as for messages (Hyndman & Fan 1996, definition 1), then the bucket that it falls in.
        let quantile = |q: f64| {
            let rank = ((n as f64 * q).ceil() as u64).max(1);
            if n.checked_sub(rank)? < BEYOND {
                return None;
            }
            let mut so_far = 0_u64;
            let bucket = buckets.iter().find(|(.., count)| {
                so_far = so_far.saturating_add(*count);
                so_far >= rank
            });
            // No value is above the largest.
            let cap = |to: u64| self.max.map_or(to, |max| max.min(to));
            Some(bucket.map_or(Quantile::AtLeast(overflow_from), |(_, to, _)| Quantile::AtMost(cap(*to))))
        };
        Histogram {
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            n,
            min: self.min,
            max: self.max,
            overflow: self.overflow,
            overflow_from,
            buckets,
            name,
            unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(buckets: &[(u64, u64)], overflow: u64) -> Recorded {
        Recorded {
            name: "thread 0".into(),
            unit: "ns".into(),
            from: buckets.iter().map(|(us, _)| us * 1000).collect(),
            to: buckets.iter().map(|(us, _)| us * 1000 + 999).collect(),
            count: buckets.iter().map(|(_, n)| *n).collect(),
            min: Some(1500),
            max: Some(77_000),
            overflow,
            overflow_from: 30_000,
        }
    }

    fn of(recorded: &[Recorded]) -> Histogram {
        let mut all = Histograms::default();
        recorded.iter().for_each(|one| all.take(one));
        all.finish().remove(0)
    }

    #[test]
    fn a_quantile_is_no_finer_than_its_bucket() {
        let found = of(&[one(&[(1, 600), (2, 380), (9, 20)], 0)]);
        assert_eq!((found.n, found.min, found.max), (1000, Some(1500), Some(77_000)));
        assert_eq!((found.p50, found.p90), (Some(Quantile::AtMost(1999)), Some(Quantile::AtMost(2999))));
        assert_eq!((found.p99, found.p999), (Some(Quantile::AtMost(9999)), None), "one value beyond p99.9 is too few");
    }

    #[test]
    fn what_is_beyond_the_last_bucket_counts() {
        let found = of(&[one(&[(1, 500)], 500)]);
        assert_eq!((found.n, found.overflow), (1000, 500));
        assert_eq!((found.p50, found.p90), (Some(Quantile::AtMost(1999)), Some(Quantile::AtLeast(30_000))));
    }

    #[test]
    fn records_of_one_name_add_up() {
        let found = of(&[one(&[(1, 50)], 0), one(&[(1, 30), (4, 20)], 1)]);
        assert_eq!(found.buckets, [(1000, 1999, 80), (4000, 4999, 20)]);
        assert_eq!((found.n, found.overflow, found.overflow_from), (101, 1, 30_000));
    }

    #[test]
    fn counts_from_a_damaged_file_do_not_overflow() {
        let found = of(&[one(&[(1, u64::MAX), (2, u64::MAX)], u64::MAX)]);
        assert_eq!((found.n, found.p50), (u64::MAX, Some(Quantile::AtMost(1999))));
        assert_eq!(of(&[one(&[], 0)]).p50, None);
    }
}
