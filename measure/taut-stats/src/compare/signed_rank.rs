//! The exact null distribution of Wilcoxon's signed-rank statistic: the basis of every bound and verdict here.

/// The null distribution of T⁺, the sum of the ranks of the positive differences, for a number of pairs.
///
/// Wilcoxon (1945). Under the null each rank is positive with chance ½, so T⁺ is a sum of independent terms that are
/// 0 or their rank; its distribution is their convolution, exact for any number of pairs.
#[derive(Clone, Debug)]
pub struct SignedRank {
    pairs: usize,
    /// P(T⁺ ≤ w) for w up to the middle; the other half is its mirror image.
    at_most: Vec<f64>,
}

impl SignedRank {
    /// For this many pairs, in time and space that grow with its cube and square: milliseconds for hundreds.
    pub fn new(pairs: usize) -> SignedRank {
        let middle = walsh_averages(pairs) / 2;
        let mut chance = vec![0.0; middle + 1];
        chance[0] = 1.0;
        for rank in 1..=pairs {
            for w in (0..=middle).rev() {
                let with = if w >= rank { chance[w - rank] } else { 0.0 };
                chance[w] = (chance[w] + with) / 2.0;
            }
        }
        let at_most = chance
            .iter()
            .scan(0.0, |sum, p| {
                *sum += p;
                Some(*sum)
            })
            .collect();
        SignedRank { pairs, at_most }
    }

    /// P(T⁺ ≤ w).
    pub fn at_most(&self, w: usize) -> f64 {
        let top = walsh_averages(self.pairs);
        match self.at_most.get(w) {
            Some(p) => p.min(1.0),
            None if w >= top => 1.0,
            None => 1.0 - self.at_most[top - w - 1],
        }
    }

    /// P(T⁺ ≥ w).
    pub fn at_least(&self, w: usize) -> f64 {
        walsh_averages(self.pairs).checked_sub(w).map_or(0.0, |mirrored| self.at_most(mirrored))
    }

    /// The largest w with P(T⁺ ≤ w) ≤ alpha; `None` where so few pairs cannot reach alpha at all.
    pub fn critical(&self, alpha: f64) -> Option<usize> {
        self.at_most.partition_point(|p| *p <= alpha).checked_sub(1)
    }

    /// The level that a test at alpha really has, since T⁺ is discrete: the largest reachable one up to alpha.
    pub fn attained(&self, alpha: f64) -> f64 {
        self.critical(alpha).map_or(0.0, |w| self.at_most[w])
    }
}

/// The fewest pairs with which a one-sided test can reach alpha: all differences on one side have chance 2⁻ⁿ.
pub fn fewest_pairs(alpha: f64) -> usize {
    (-alpha.log2()).ceil().max(1.0) as usize
}

/// The largest level up to alpha that any test by the signs of so many pairs can have: all its levels are counts of sign patterns.
pub(crate) fn attainable(pairs: usize, alpha: f64) -> f64 {
    let patterns = 2f64.powi(pairs as i32);
    (alpha.max(0.0) * patterns).floor() / patterns
}

/// n(n+1)/2: the number of averages of two differences, and the largest T⁺.
pub(crate) fn walsh_averages(pairs: usize) -> usize {
    pairs * (pairs + 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All 2ⁿ sign patterns.
    fn enumerated(pairs: usize, w: usize) -> f64 {
        let sum = |signs: usize| (0..pairs).filter(|i| signs >> i & 1 == 1).map(|i| i + 1).sum::<usize>();
        (0..1 << pairs).filter(|signs| sum(*signs) <= w).count() as f64 / (1 << pairs) as f64
    }

    #[test]
    fn equals_the_enumeration_of_all_signs() {
        for pairs in 0..=12 {
            let null = SignedRank::new(pairs);
            for w in 0..=walsh_averages(pairs) + 1 {
                assert!((null.at_most(w) - enumerated(pairs, w)).abs() < 1e-12, "{pairs} pairs, w = {w}");
                let at_least = if w == 0 { 1.0 } else { 1.0 - enumerated(pairs, w - 1) };
                assert!((null.at_least(w) - at_least).abs() < 1e-12, "{pairs} pairs, w = {w}");
            }
        }
    }

    /// Wilcoxon's printed critical values, one-sided 0.025 and 0.005 (e.g. Hollander & Wolfe, table A.4).
    #[test]
    fn known_critical_values() {
        for (pairs, alpha, critical) in [
            (5, 0.025, None),
            (6, 0.025, Some(0)),
            (10, 0.025, Some(8)),
            (20, 0.025, Some(52)),
            (20, 0.005, Some(37)),
            (30, 0.025, Some(137)),
        ] {
            assert_eq!(SignedRank::new(pairs).critical(alpha), critical, "{pairs} pairs at {alpha}");
        }
    }

    #[test]
    fn reachable_from_the_fewest_pairs_on() {
        for alpha in [0.05, 0.025, 0.01, 0.0025, 0.0005, 1e-6] {
            let fewest = fewest_pairs(alpha);
            assert!(SignedRank::new(fewest).critical(alpha).is_some());
            assert!(SignedRank::new(fewest - 1).critical(alpha).is_none());
        }
    }

    #[test]
    fn hundreds_of_pairs_neither_overflow_nor_vanish() {
        let null = SignedRank::new(400);
        assert!((null.at_most(walsh_averages(400) / 2) - 0.5).abs() < 1e-3);
        assert!(null.critical(1e-4).is_some());
    }
}
