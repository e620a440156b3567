//! By how much paired differences are shifted from zero: estimate, exact bounds, exact p-values.

use statrs::distribution::{ContinuousCDF, Normal};

use super::signed_rank::{SignedRank, walsh_averages};

/// The shift of a set of differences: the centre about which they are symmetric.
///
/// Estimate: the median of the averages of all two differences (Hodges & Lehmann 1963). Bounds: order statistics of
/// the same averages, with ranks from the exact null distribution (Tukey 1949; Hollander & Wolfe, section 3.3). The
/// interval is taken closed, which keeps its level where differences tie or are discrete (Noether 1967).
#[derive(Clone, Debug)]
pub struct Shift {
    pairs: usize,
    walsh: Vec<f64>,
    null: SignedRank,
}

impl Shift {
    /// `None` without differences, or where one is not finite.
    pub fn of(differences: &[f64]) -> Option<Shift> {
        if differences.is_empty() || !differences.iter().all(|d| d.is_finite()) {
            return None;
        }
        let mut walsh = Vec::with_capacity(walsh_averages(differences.len()));
        for (i, one) in differences.iter().enumerate() {
            walsh.extend(differences[i..].iter().map(|other| (one + other) / 2.0));
        }
        walsh.sort_unstable_by(f64::total_cmp);
        Some(Shift { pairs: differences.len(), walsh, null: SignedRank::new(differences.len()) })
    }

    /// Differences.
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// The Hodges–Lehmann estimate.
    pub fn estimate(&self) -> f64 {
        median_of_sorted(&self.walsh)
    }

    /// The lower bound with one-sided error alpha; `None` where so few pairs cannot give one.
    pub fn lower(&self, alpha: f64) -> Option<f64> {
        self.null.critical(alpha).map(|w| self.walsh[w])
    }

    /// The upper bound with one-sided error alpha.
    pub fn upper(&self, alpha: f64) -> Option<f64> {
        self.null.critical(alpha).map(|w| self.walsh[self.walsh.len() - 1 - w])
    }

    /// The error that bounds at alpha really have.
    pub fn attained(&self, alpha: f64) -> f64 {
        self.null.attained(alpha)
    }

    /// One-sided p-value against "the shift is at most this": at most alpha exactly where `lower(alpha)` is above it.
    pub fn p_above(&self, shift: f64) -> f64 {
        self.null.at_least(self.walsh.len() - self.walsh.partition_point(|w| *w <= shift))
    }

    /// One-sided p-value against "the shift is at least this".
    pub fn p_below(&self, shift: f64) -> f64 {
        self.null.at_least(self.walsh.partition_point(|w| *w < shift))
    }

    /// The noise of one pair: the estimate's standard error is about this by √pairs, whatever the shape of the noise.
    ///
    /// The length of an interval, by the length it would have for noise of size one (Lehmann 1963). For normal noise
    /// it is √(π/3) of the standard deviation. `None` below 4 pairs.
    pub fn noise(&self) -> Option<f64> {
        let alpha = 0.1;
        let (lower, upper) = (self.lower(alpha)?, self.upper(alpha)?);
        let z = -standard_normal(self.attained(alpha));
        Some((upper - lower) / (2.0 * z) * (self.pairs as f64).sqrt())
    }
}

/// The quantile of the standard normal distribution; of the nearest number inside where p is no probability.
pub(crate) fn standard_normal(p: f64) -> f64 {
    let inside = if p.is_nan() { 0.5 } else { p.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON) };
    Normal::standard().inverse_cdf(inside)
}

/// The middle, or the mean of the two middles. Not for empty slices.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hollander & Wolfe's depression scores (their table 3.1): estimate −0.46, 96 % interval (−0.786, −0.010).
    #[test]
    fn the_textbook_example() {
        let before = [1830, 500, 1620, 2480, 1680, 1880, 1550, 3060, 1300];
        let after = [878, 647, 598, 2050, 1060, 1290, 1060, 3140, 1290];
        let differences: Vec<f64> = before.iter().zip(after).map(|(b, a)| f64::from(a - b) / 1000.0).collect();
        let shift = Shift::of(&differences).unwrap();
        assert!((shift.estimate() + 0.46).abs() < 1e-9);
        assert!((shift.lower(0.02).unwrap() + 0.786).abs() < 1e-9);
        assert!((shift.upper(0.02).unwrap() + 0.010).abs() < 1e-9);
        assert!((shift.p_below(0.0) - 0.01953125).abs() < 1e-12, "T⁺ = 5 of 9");
    }

    #[test]
    fn nothing_to_say_of_nothing_or_of_what_is_not_finite() {
        assert!(Shift::of(&[]).is_none());
        assert!(Shift::of(&[1.0, f64::NAN]).is_none());
        assert!(Shift::of(&[1.0, 2.0]).unwrap().lower(0.01).is_none());
    }

    proptest! {
        #[test]
        fn bounds_and_p_values_say_the_same(
            d in prop::collection::vec((-40i32..40).prop_map(f64::from), 1..25), at in -40.0..40.0f64, alpha in 0.001..0.4f64,
        ) {
            let shift = Shift::of(&d).unwrap();
            prop_assert_eq!(shift.lower(alpha).is_some_and(|low| low > at), shift.p_above(at) <= alpha);
            prop_assert_eq!(shift.upper(alpha).is_some_and(|high| high < at), shift.p_below(at) <= alpha);
        }

        #[test]
        fn turned_round_it_is_its_mirror(d in prop::collection::vec(-9.0..9.0f64, 4..25), at in -9.0..9.0f64) {
            let turned: Vec<f64> = d.iter().map(|d| -d).collect();
            let (one, other) = (Shift::of(&d).unwrap(), Shift::of(&turned).unwrap());
            prop_assert_eq!(one.estimate(), -other.estimate());
            prop_assert_eq!(one.lower(0.1).unwrap(), -other.upper(0.1).unwrap());
            prop_assert_eq!(one.p_above(at), other.p_below(-at));
            prop_assert_eq!(one.noise(), other.noise());
        }

        #[test]
        fn a_larger_shift_is_never_less_sure(d in prop::collection::vec(-9.0..9.0f64, 1..25), more in 0.0..9.0f64) {
            let moved: Vec<f64> = d.iter().map(|d| d + more).collect();
            prop_assert!(Shift::of(&moved).unwrap().p_above(0.0) <= Shift::of(&d).unwrap().p_above(0.0));
        }

        #[test]
        fn the_order_of_pairs_is_nothing_to_it(d in prop::collection::vec(-9.0..9.0f64, 1..25)) {
            let mut sorted = d.clone();
            sorted.sort_by(f64::total_cmp);
            prop_assert_eq!(Shift::of(&d).unwrap().estimate(), Shift::of(&sorted).unwrap().estimate());
        }
    }
}
