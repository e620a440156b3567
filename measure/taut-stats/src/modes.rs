//! The modes of a histogram: where a distribution has more than one peak, its mean describes none of them.

/// Standard errors by which a valley must lie below half of the lower peak beside it.
const ERRORS: f64 = 4.0;

/// The modes of a histogram of (from, to, count) without gaps or overlaps, as the middles of their bins, ascending.
///
/// A bin's height is its count by its width. A peak is a mode when the height on the way to every higher peak falls
/// below half of its own, by four standard errors of the two counts (each Poisson); the highest is always one.
pub fn modes(histogram: &[(u64, u64, u64)]) -> Vec<u64> {
    let bins: Vec<Bin> = histogram.iter().filter(|bin| bin.1 > bin.0).map(|bin| Bin::of(*bin)).collect();
    let is_mode = |at: &usize| is_peak(&bins, *at) && stands_apart(&bins, *at);
    (0..bins.len()).filter(is_mode).map(|at| bins[at].middle).collect()
}

struct Bin {
    middle: u64,
    width: f64,
    /// Counts by nanosecond.
    height: f64,
}

impl Bin {
    fn of((from, to, count): (u64, u64, u64)) -> Bin {
        let width = (to - from) as f64;
        Bin { middle: from + (to - from) / 2, width, height: count as f64 / width }
    }
}

/// Higher than the bin before and not lower than the one after, so that of equal neighbours the first is the peak.
fn is_peak(bins: &[Bin], at: usize) -> bool {
    let height = bins[at].height;
    let before = at.checked_sub(1).map_or(0.0, |before| bins[before].height);
    let after = bins.get(at + 1).map_or(0.0, |after| after.height);
    height > before && height >= after
}

fn stands_apart(bins: &[Bin], at: usize) -> bool {
    let left = valley(&bins[at], bins[..at].iter().rev(), true);
    let right = valley(&bins[at], bins[at + 1..].iter(), false);
    // The shallower way to something higher decides; without any, this is the highest.
    let Some(saddle) = [left, right].into_iter().flatten().reduce(f64::max) else { return true };
    let width = bins[at].width;
    let (peak, half_way) = (bins[at].height * width, saddle * width);
    // In counts of the peak's bin: variance of peak/2 − valley.
    peak / 2.0 - half_way > ERRORS * (peak / 4.0 + half_way).sqrt()
}

/// The lowest height on the way to a higher bin; `None` where there is no higher one.
/// Of two equally high bins the left one counts as the higher.
fn valley<'a>(peak: &Bin, way: impl Iterator<Item = &'a Bin>, to_the_left: bool) -> Option<f64> {
    let mut lowest = peak.height;
    for bin in way {
        if bin.height > peak.height || (to_the_left && bin.height == peak.height) {
            return Some(lowest);
        }
        lowest = lowest.min(bin.height);
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bins(counts: &[u64]) -> Vec<(u64, u64, u64)> {
        counts.iter().enumerate().map(|(at, count)| (at as u64 * 10, at as u64 * 10 + 10, *count)).collect()
    }

    #[test]
    fn one_hill_is_one_mode() {
        assert_eq!(modes(&bins(&[1, 20, 400, 900, 410, 22, 1])), [35]);
    }

    #[test]
    fn spikes_a_tick_apart_are_modes_each() {
        assert_eq!(modes(&bins(&[5000, 40, 10, 700, 30, 12, 640, 20])), [5, 35, 65]);
    }

    #[test]
    fn a_ripple_on_a_hill_is_chance() {
        assert_eq!(modes(&bins(&[100, 300, 280, 310, 290, 120])), [35]);
        assert_eq!(modes(&bins(&[900, 3, 9, 2, 8, 1])), [5], "a few samples far out are no mode");
    }

    #[test]
    fn a_wide_bin_is_as_high_as_its_samples_lie_close() {
        assert_eq!(modes(&[(0, 10, 900), (10, 20, 100), (20, 100_000, 2_000)]), [5]);
    }

    #[test]
    fn equal_bins_are_one_mode_and_nothing_is_none() {
        assert_eq!(modes(&bins(&[50, 50, 50])), [5]);
        assert_eq!(modes(&bins(&[800, 0, 800])), [5, 25]);
        assert!(modes(&[]).is_empty() && modes(&bins(&[0, 0])).is_empty() && modes(&[(7, 7, 3)]).is_empty());
    }

    proptest! {
        #[test]
        fn what_is_not_empty_has_a_mode_and_modes_ascend(counts in proptest::collection::vec(0u64..10_000, 1..80)) {
            let found = modes(&bins(&counts));
            prop_assert_eq!(found.is_empty(), counts.iter().all(|n| *n == 0));
            prop_assert!(found.windows(2).all(|w| w[0] < w[1]));
            let highest = counts.iter().max().unwrap();
            let at = counts.iter().position(|n| n == highest).unwrap() as u64 * 10 + 5;
            prop_assert!(*highest == 0 || found.contains(&at));
        }
    }
}
