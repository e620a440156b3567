//! HdrHistogram's histograms as a recording has them.

use hdrhistogram::Histogram as Hdr;
use taut_recording::Histogram;

/// Durations in nanoseconds, under that name.
pub(crate) fn durations(name: &str, of: &Hdr<u64>) -> Histogram {
    let mut histogram = Histogram { name: name.to_owned(), unit: "ns".to_owned(), ..Histogram::default() };
    for step in of.iter_recorded() {
        let value = step.value_iterated_to();
        let (from, to) = (of.lowest_equivalent(value), of.highest_equivalent(value));
        push(&mut histogram, from, to, step.count_since_last_iteration());
    }
    if !of.is_empty() {
        (histogram.min, histogram.max) = (Some(of.min()), Some(of.max()));
    }
    histogram
}

/// Adds the next bucket. What of it the one before has already is left to that.
pub(crate) fn push(histogram: &mut Histogram, from: u64, to: u64, count: u64) {
    match (histogram.to.last(), histogram.count.last_mut()) {
        (Some(last), Some(counted)) if *last >= to => *counted = counted.saturating_add(count),
        (last, _) => {
            let from = last.map_or(from, |last| from.max(last + 1));
            histogram.from.push(from);
            histogram.to.push(to);
            histogram.count.push(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_as_wide_as_the_histogram_tells_values_apart() {
        let mut of = Hdr::<u64>::new(3).unwrap();
        [5, 5, 100_000].into_iter().for_each(|ns| of.record(ns).unwrap());
        let found = durations("cpu0", &of);
        assert_eq!((&found.name[..], &found.unit[..]), ("cpu0", "ns"));
        assert_eq!((found.from.as_slice(), found.count.as_slice()), (&[5, 99_968][..], &[2, 1][..]));
        assert_eq!(found.to, [5, 100_031]);
        assert_eq!((found.min, found.max), (Some(5), Some(100_031)));
    }

    #[test]
    fn buckets_that_meet_share_nothing() {
        let mut found = Histogram::default();
        for (from, to, count) in [(3, 4, 1), (4, 4, 2), (4, 5, 4), (u64::MAX, u64::MAX, 8), (u64::MAX, u64::MAX, 16)] {
            push(&mut found, from, to, count);
        }
        assert_eq!((found.from, found.to), (vec![3, 5, u64::MAX], vec![4, 5, u64::MAX]));
        assert_eq!(found.count, [3, 4, 24]);
    }

    #[test]
    fn an_empty_one_has_no_ends() {
        let found = durations("", &Hdr::<u64>::new(3).unwrap());
        assert_eq!((found.count.len(), found.min, found.max), (0, None, None));
    }
}
