//! A sample as a histogram and as a percentile curve.

use crate::distribution::rank;

/// Points of a percentile curve for each halving of what remains.
pub(crate) const CURVE_STEPS: f64 = 10.0;
/// At most this many bins: more do not show on a page.
const BINS_MAX: u64 = 60;

/// Counts of ascending samples in bins of one readable width (1, 2 or 5 times a power of ten), as
/// (from, to, count), without gaps, from the bin of the smallest to that of the largest sample.
/// What lies beyond the 99.5th percentile by more than half the range below it goes into one last,
/// wider bin, so that an outlier does not flatten the rest.
pub fn histogram(sorted: &[u64]) -> Vec<(u64, u64, u64)> {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let mut at = 0;
    let count = |(from, to): (u64, u64)| {
        // The largest number has no bin that ends behind it.
        let end = if to == u64::MAX { sorted.len() } else { sorted[at..].partition_point(|v| *v < to) + at };
        let count = (end - at) as u64;
        at = end;
        (from, to, count)
    };
    bins(*first, rank(sorted, 0.995).unwrap_or(*last), *last).map(count).collect()
}

/// The edges of the bins for samples between `first` and `last`, `body_end` being their 99.5th percentile.
pub(crate) fn bins(first: u64, body_end: u64, last: u64) -> impl Iterator<Item = (u64, u64)> {
    let body_end = if last - body_end > (body_end - first) / 2 { body_end } else { last };
    let width = readable_width((body_end - first) / BINS_MAX + 1);
    // Edges may lie beyond the largest number.
    let [wide, body_end, last] = [width, body_end, last].map(u128::from);
    let start = u128::from(first / width * width);
    let end = start + ((body_end - start) / wide + 1) * wide;
    let rest = (end <= last).then_some((end, last + 1));
    let edge = |at: u128| u64::try_from(at).unwrap_or(u64::MAX);
    let body = (start..end).step_by(width as usize).map(move |from| (from, from + wide));
    body.chain(rest).map(move |(from, to)| (edge(from), edge(to)))
}

fn readable_width(at_least: u64) -> u64 {
    let decade = 10u64.pow(at_least.max(1).ilog10());
    [1, 2, 5, 10].into_iter().map(|step| step * decade).find(|width| *width >= at_least).unwrap_or(at_least)
}

/// The percentile curve of ascending samples as (quantile, value): ten steps for each halving of what
/// remains, up to the quantile with ten samples beyond it, and then the largest sample at 1 − 1/(n+1).
pub fn percentile_curve(sorted: &[u64]) -> Vec<(f64, u64)> {
    let n = sorted.len() as f64;
    let mut curve = Vec::new();
    let mut halvings = 0;
    loop {
        let remains = 0.5f64.powf(f64::from(halvings) / CURVE_STEPS);
        if remains * n < 10.0 {
            break;
        }
        let q = 1.0 - remains;
        curve.extend(rank(sorted, q).map(|value| (q, value)));
        halvings += 1;
    }
    curve.extend(sorted.last().map(|value| (1.0 - 1.0 / (n + 1.0), *value)));
    curve
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_histogram_counts_every_sample_once(
            mut samples in proptest::collection::vec(0u64..1 << 50, 1..500),
            up in prop_oneof![Just(0), Just(u64::MAX)],
        ) {
            samples.iter_mut().for_each(|sample| *sample = up.abs_diff(*sample));
            samples.sort_unstable();
            let bins = histogram(&samples);
            prop_assert_eq!(bins.iter().map(|b| b.2).sum::<u64>(), samples.len() as u64);
            prop_assert!(bins.windows(2).all(|w| w[0].1 == w[1].0));
            prop_assert!(bins.len() <= BINS_MAX as usize + 3);
            for (from, to, count) in bins {
                let is_in = |s: &&u64| (from..to).contains(s) || **s == u64::MAX && to == u64::MAX;
                prop_assert_eq!(samples.iter().filter(is_in).count() as u64, count);
            }
        }

        #[test]
        fn a_curve_only_rises(mut samples in proptest::collection::vec(0u64..1 << 50, 1..500)) {
            samples.sort_unstable();
            let curve = percentile_curve(&samples);
            prop_assert!(curve.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
            prop_assert_eq!(curve.last().unwrap().1, *samples.last().unwrap());
        }
    }

    #[test]
    fn bins_have_readable_edges() {
        let samples: Vec<u64> = (0..1000).map(|i| 100_000 + i * 1_000).collect();
        let bins = histogram(&samples);
        assert_eq!((bins[0].0, bins[0].1), (100_000, 120_000));
    }
}
