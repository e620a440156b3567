//! Buckets whose bounds grow by one factor: those that OTLP's exponential histograms and Prometheus's native histograms share.
//!
//! At scale s, bucket i holds durations above `base^i` and up to `base^(i + 1)`, base = 2^(2^-s), as OpenTelemetry's data model has
//! it (Metrics Data Model, "ExponentialHistogram"); Prometheus counts the same buckets from one more: its index is i + 1. A bucket
//! of scale s is two of scale s + 1, so that histograms of different scales add up at the smaller one.
//!
//! The bounds are computed with integers only. A robot's processor and the one that merges a thousand robots put every nanosecond
//! into the same bucket.

/// The finest scale: 256 buckets an octave. Prometheus ends there, too.
const SCALE_MAX: u32 = 8;
const PARTS: usize = 1 << SCALE_MAX;

/// Lower bounds of the buckets of an octave at the finest scale: 2^(k/256) with 63 bits behind the point.
static BOUNDS: [u64; PARTS] = bounds();

/// Buckets of one scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exponential {
    scale: u32,
}

impl Exponential {
    /// 2^scale buckets an octave.
    ///
    /// # Panics
    /// `scale` is above 8.
    pub const fn new(scale: u32) -> Exponential {
        assert!(scale <= SCALE_MAX, "there are scales 0 to 8");
        Exponential { scale }
    }

    /// The scale.
    pub const fn scale(self) -> u32 {
        self.scale
    }

    /// The bucket of a duration; `None` for 0, which is below every bucket and is counted by itself. 1 ns is in bucket −1: a bucket
    /// has its upper bound.
    pub fn index(self, ns: u64) -> Option<i32> {
        let octave = ns.checked_ilog2()?;
        let mantissa = ns << (63 - octave);
        let below = BOUNDS.partition_point(|bound| *bound < mantissa);
        let finest = (octave as i32) * PARTS as i32 + below as i32 - 1;
        Some(finest >> (SCALE_MAX - self.scale))
    }

    /// Lower bound, which the bucket has not, and upper bound, which it has; in ns.
    pub fn bounds(self, index: i32) -> (f64, f64) {
        let bound = |index: i32| (f64::from(index) / f64::from(1 << self.scale)).exp2();
        (bound(index), bound(index + 1))
    }

    /// The same for whole nanoseconds: the bucket holds those above the first and up to the second, without a rounding error.
    /// Buckets that no u64 falls into are empty.
    pub fn whole_bounds(self, index: i32) -> (u64, u64) {
        let bound = |index: i32| {
            let finest = i64::from(index) << (SCALE_MAX - self.scale);
            let (octave, part) = (finest.div_euclid(PARTS as i64), finest.rem_euclid(PARTS as i64));
            match octave {
                ..0 => 0,
                0..64 => BOUNDS[part as usize] >> (63 - octave),
                _ => u64::MAX,
            }
        };
        (bound(index), bound(index + 1))
    }
}

/// Square roots of 2, multiplied: 2^(1/2), 2^(1/4) … 2^(1/256). Rounding of a root is halved by the next one, so that all are right
/// to some units in the last of 63 places.
const fn bounds() -> [u64; PARTS] {
    const ONE: u128 = 1 << 63;
    let mut table = [ONE as u64; PARTS];
    let mut root = 2 * ONE;
    let mut step = PARTS;
    while step > 1 {
        // (root · 2^63)^(1/2) has 63 places again.
        root = (root * ONE).isqrt();
        step /= 2;
        let mut at = 0;
        while at < PARTS {
            if at & step != 0 {
                table[at] = ((table[at] as u128 * root) >> 63) as u64;
            }
            at += 1;
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FLEET: Exponential = Exponential::new(6);

    #[test]
    fn powers_of_two_are_upper_bounds() {
        for scale in 0..=SCALE_MAX {
            let buckets = Exponential::new(scale);
            assert_eq!(buckets.index(0), None);
            assert_eq!(buckets.index(1), Some(-1));
            for octave in 1..64 {
                let index = (octave << scale) - 1;
                assert_eq!(buckets.index(1 << octave), Some(index), "2^{octave} at scale {scale}");
                assert!(buckets.index((1 << octave) + 1) > Some(index));
                assert_eq!(buckets.whole_bounds(index).1, 1 << octave);
                assert_eq!(buckets.bounds(index).1, (octave as f64).exp2());
            }
        }
    }

    /// By the formula of OpenTelemetry's data model, where its rounding does no harm.
    #[test]
    fn known_indices() {
        assert_eq!([2, 3, 4, 5].map(|ns| Exponential::new(0).index(ns).unwrap()), [0, 1, 1, 2]);
        assert_eq!([1_000, 1_000_000, 1_000_000_000].map(|ns| FLEET.index(ns).unwrap()), [637, 1275, 1913]);
        assert_eq!(FLEET.index(u64::MAX), Some(64 * 64 - 1));
        assert_eq!(FLEET.whole_bounds(64 * 64 - 1).1, u64::MAX);
    }

    #[test]
    fn the_table_is_right_to_the_last_places() {
        for (part, bound) in BOUNDS.iter().enumerate() {
            let exact = (part as f64 / PARTS as f64).exp2();
            let found = *bound as f64 / (1u64 << 63) as f64;
            assert!((found - exact).abs() <= 2.0 * f64::EPSILON, "{part}: {found} {exact}");
        }
        assert!(BOUNDS.is_sorted());
        // What the roots make of one another: 2^(k/256) · 2^((256 − k)/256) = 2.
        for part in 1..PARTS {
            let product = (u128::from(BOUNDS[part]) * u128::from(BOUNDS[PARTS - part])) >> 63;
            assert!(product.abs_diff(1 << 64) < 64, "{part}");
        }
    }

    proptest! {
        #[test]
        fn a_duration_is_in_its_bucket_and_in_no_other(ns in 1u64.., scale in 0..=SCALE_MAX) {
            let buckets = Exponential::new(scale);
            for ns in [ns, ns >> 20, ns >> 40, ns >> 56].into_iter().filter(|ns| *ns > 0) {
                let index = buckets.index(ns).unwrap();
                let (low, high) = buckets.whole_bounds(index);
                prop_assert!(low < ns && ns <= high, "{} < {} <= {}", low, ns, high);
                prop_assert_eq!(buckets.whole_bounds(index - 1).1, low);
                prop_assert_eq!(buckets.index(high), Some(index));
                prop_assert!(low == 0 || buckets.index(low).unwrap() < index);
                let (from, to) = buckets.bounds(index);
                prop_assert!((to / from - (1.0 / f64::from(1 << scale)).exp2()).abs() < 1e-9);
                prop_assert!(from < ns as f64 * (1.0 + 1e-15) && ns as f64 <= to * (1.0 + 1e-15));
            }
        }

        #[test]
        fn a_bucket_is_two_of_the_next_scale(ns in 1u64.., scale in 1..=SCALE_MAX) {
            let [coarse, fine] = [scale - 1, scale].map(|scale| Exponential::new(scale).index(ns).unwrap());
            prop_assert_eq!(coarse, fine >> 1);
        }
    }
}
