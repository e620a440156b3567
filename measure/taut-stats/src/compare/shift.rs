//! By how much paired differences are shifted from zero: estimate, exact bounds, exact p-values.

use statrs::distribution::{ContinuousCDF, Normal};

use super::{
    flips::p_sum_at_least,
    signed_rank::{SignedRank, attainable, walsh_averages},
};

/// The shift of a set of differences: the centre about which they are symmetric.
///
/// By ranks ([`Shift::of`]), for times, whatever their tails: estimate: the median of the averages of all two differences (Hodges & Lehmann 1963). Bounds: order statistics of
/// the same averages, with ranks from the exact null distribution (Tukey 1949; Hollander & Wolfe, section 3.3). The
/// interval is taken closed, which keeps its level where differences tie or are discrete (Noether 1967).
///
/// By the mean ([`Shift::of_mean`]), for shares of messages: what is rare is missing in most trials, so that the middle of the
/// differences is zero whatever becomes of it, and only their sum counts it. Tested by exchanging signs (Fisher 1935, Pitman 1937).
#[derive(Clone, Debug)]
pub struct Shift {
    pairs: usize,
    by: By,
}

#[derive(Clone, Debug)]
enum By {
    Ranks { walsh: Vec<f64>, null: SignedRank },
    Mean { differences: Vec<f64> },
}

/// Halvings of the range of differences to find a bound of their mean.
const HALVINGS: usize = 20;

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
        Some(Shift { pairs: differences.len(), by: By::Ranks { walsh, null: SignedRank::new(differences.len()) } })
    }

    /// The same by the mean.
    pub fn of_mean(differences: &[f64]) -> Option<Shift> {
        if differences.is_empty() || !differences.iter().all(|d| d.is_finite()) {
            return None;
        }
        Some(Shift { pairs: differences.len(), by: By::Mean { differences: differences.to_vec() } })
    }

    /// Differences.
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// The Hodges–Lehmann estimate, or the mean.
    pub fn estimate(&self) -> f64 {
        match &self.by {
            By::Ranks { walsh, .. } => median_of_sorted(walsh),
            By::Mean { differences } => mean(differences),
        }
    }

    /// The lower bound with one-sided error alpha; `None` where so few pairs cannot give one.
    pub fn lower(&self, alpha: f64) -> Option<f64> {
        match &self.by {
            By::Ranks { walsh, null } => null.critical(alpha).map(|w| walsh[w]),
            By::Mean { differences } => {
                let (middle, far) = outside(differences);
                self.farthest(middle - far, |shift| self.p_above(shift) <= alpha)
            }
        }
    }

    /// The upper bound with one-sided error alpha.
    pub fn upper(&self, alpha: f64) -> Option<f64> {
        match &self.by {
            By::Ranks { walsh, null } => null.critical(alpha).map(|w| walsh[walsh.len() - 1 - w]),
            By::Mean { differences } => {
                let (middle, far) = outside(differences);
                self.farthest(middle + far, |shift| self.p_below(shift) <= alpha)
            }
        }
    }

    /// From one far beyond all differences towards the estimate, the last shift that is refuted; `None` where not even that one is.
    fn farthest(&self, outermost: f64, is_refuted: impl Fn(f64) -> bool) -> Option<f64> {
        let (mut refuted, mut open) = (outermost, self.estimate());
        is_refuted(refuted).then_some(())?;
        for _ in 0..HALVINGS {
            let middle = (refuted + open) / 2.0;
            if is_refuted(middle) { refuted = middle } else { open = middle }
        }
        Some(refuted)
    }

    /// The error that bounds at alpha really have, at most.
    pub fn attained(&self, alpha: f64) -> f64 {
        match &self.by {
            By::Ranks { null, .. } => null.attained(alpha),
            By::Mean { .. } => attainable(self.pairs, alpha),
        }
    }

    /// One-sided p-value against "the shift is at most this": at most alpha exactly where `lower(alpha)` is above it.
    pub fn p_above(&self, shift: f64) -> f64 {
        match &self.by {
            By::Ranks { walsh, null } => null.at_least(walsh.len() - walsh.partition_point(|w| *w <= shift)),
            By::Mean { differences } => p_sum_at_least(differences.iter().map(|d| d - shift)),
        }
    }

    /// One-sided p-value against "the shift is at least this".
    pub fn p_below(&self, shift: f64) -> f64 {
        match &self.by {
            By::Ranks { walsh, null } => null.at_least(walsh.partition_point(|w| *w < shift)),
            By::Mean { differences } => p_sum_at_least(differences.iter().map(|d| shift - d)),
        }
    }

    /// The noise of one pair: the estimate's standard error is about this by √pairs, whatever the shape of the noise.
    ///
    /// The length of an interval, by the length it would have for noise of size one (Lehmann 1963). For normal noise
    /// it is √(π/3) of the standard deviation. Of a mean, the standard deviation itself. `None` below 4 pairs.
    pub fn noise(&self) -> Option<f64> {
        if let By::Mean { differences } = &self.by {
            let mean = mean(differences);
            let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
            return (self.pairs >= 4).then(|| (squares / (self.pairs - 1) as f64).sqrt());
        }
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

/// The middle between the least and the largest difference, and a distance from it at which all speak against a mean, about equally loud.
fn outside(differences: &[f64]) -> (f64, f64) {
    let least = differences.iter().copied().fold(f64::INFINITY, f64::min);
    let most = differences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    ((least + most) / 2.0, 1.5 * (most - least) + 1e-9 * most.abs().max(least.abs()) + 1e-12)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
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

    #[test]
    fn what_most_pairs_lack_has_a_mean_and_no_middle() {
        let rare: Vec<f64> = (0..40).map(|i| if i % 4 == 0 { 0.008 } else { 0.0 }).collect();
        let (middle, mean) = (Shift::of(&rare).unwrap(), Shift::of_mean(&rare).unwrap());
        assert_eq!(middle.estimate(), 0.0);
        assert!((mean.estimate() - 0.008 * 10.0 / 40.0).abs() < 1e-12);
        assert!(mean.p_above(0.0005) < 0.01 && mean.lower(0.01).unwrap() > 0.0005);
        assert!(mean.p_below(0.004) < 0.01 && mean.upper(0.01).unwrap() < 0.004);
        assert!((mean.noise().unwrap() - 0.0035).abs() < 1e-4);
        // All alike: each pair speaks against any lower mean, so few as there are.
        let alike = Shift::of_mean(&[0.01; 6]).unwrap();
        assert!((alike.lower(0.016).unwrap() - 0.01).abs() < 1e-6 && alike.lower(0.015).is_none());
        assert!(Shift::of_mean(&[]).is_none() && Shift::of_mean(&[f64::NAN]).is_none());
    }

    proptest! {
        #[test]
        fn a_mean_turned_round_is_its_mirror(d in prop::collection::vec(-9.0..9.0f64, 4..25), at in -9.0..9.0f64) {
            let turned: Vec<f64> = d.iter().map(|d| -d).collect();
            let (one, other) = (Shift::of_mean(&d).unwrap(), Shift::of_mean(&turned).unwrap());
            prop_assert_eq!(one.p_above(at), other.p_below(-at));
            prop_assert!((one.lower(0.1).unwrap() + other.upper(0.1).unwrap()).abs() < 1e-9);
            prop_assert!(one.lower(0.1).unwrap() <= one.estimate() && one.estimate() <= one.upper(0.1).unwrap());
        }

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
