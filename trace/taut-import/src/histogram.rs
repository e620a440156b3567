//! HdrHistogram's histograms as a recording has them.

use hdrhistogram::Histogram as Hdr;
use taut_recording::Histogram;

/// Durations whose values are in units of `unit_ns`, under that name.
pub(crate) fn durations(name: &str, unit_ns: u64, of: &Hdr<u64>) -> Histogram {
    let mut histogram = Histogram { name: name.to_owned(), unit: "ns".to_owned(), ..Histogram::default() };
    let ns = |value: u64| value.saturating_mul(unit_ns);
    for step in of.iter_recorded() {
        let value = step.value_iterated_to();
        // Up to where the next bucket begins.
        let to = ns(of.highest_equivalent(value)).saturating_add(unit_ns - 1);
        push(&mut histogram, ns(of.lowest_equivalent(value)), to, step.count_since_last_iteration());
    }
    if !of.is_empty() {
        (histogram.min, histogram.max) = (Some(ns(of.min())), Some(ns(of.max()).saturating_add(unit_ns - 1)));
    }
    histogram
}

/// Adds the next bucket. Those that fall together, because they are larger than can be told, become one.
pub(crate) fn push(histogram: &mut Histogram, from: u64, to: u64, count: u64) {
    match (histogram.to.last(), histogram.count.last_mut()) {
        (Some(last), Some(counted)) if *last >= from => *counted = counted.saturating_add(count),
        _ => {
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
        [5, 5, 100_000].into_iter().for_each(|us| of.record(us).unwrap());
        let found = durations("cpu0", 1000, &of);
        assert_eq!((&found.name[..], &found.unit[..]), ("cpu0", "ns"));
        assert_eq!((found.from.as_slice(), found.count.as_slice()), (&[5_000, 99_968_000][..], &[2, 1][..]));
        assert_eq!(found.to, [5_999, 100_031_999]);
        assert_eq!((found.min, found.max), (Some(5_000), Some(100_031_999)));
    }

    #[test]
    fn what_is_too_large_shares_a_bucket() {
        let mut of = Hdr::<u64>::new(3).unwrap();
        [1, u64::MAX / 4, u64::MAX / 2].into_iter().for_each(|s| of.record(s).unwrap());
        let found = durations("", 1_000_000_000, &of);
        assert_eq!((found.from.len(), found.count.as_slice()), (2, &[1, 2][..]));
    }

    #[test]
    fn an_empty_one_has_no_ends() {
        let found = durations("", 1, &Hdr::<u64>::new(3).unwrap());
        assert_eq!((found.count.len(), found.min, found.max), (0, None, None));
    }
}
