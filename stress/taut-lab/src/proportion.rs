//! k of n with an interval.

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{Beta, ContinuousCDF};

/// Confidence of every interval of a lab.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// How many of how many, and what that says of the chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Proportion {
    /// How many did.
    pub k: u32,
    /// How many could have.
    pub n: u32,
    /// Lower end of the 95 % interval of the chance.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Proportion {
    /// The exact interval of Clopper & Pearson (1934), which never covers the truth less often than it says.
    pub fn of(k: u32, n: u32) -> Proportion {
        let k = k.min(n);
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let quantile = |a: u32, b: u32, p: f64| Beta::new(f64::from(a), f64::from(b)).map(|beta| beta.inverse_cdf(p));
        let low = if k == 0 { 0.0 } else { quantile(k, n - k + 1, tail).unwrap_or(0.0) };
        let high = if k == n { 1.0 } else { quantile(k + 1, n - k, 1.0 - tail).unwrap_or(1.0) };
        Proportion { k, n, low, high }
    }

    /// The share, `None` of nothing.
    pub fn share(&self) -> Option<f64> {
        (self.n > 0).then(|| f64::from(self.k) / f64::from(self.n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As tables print them: 10 of 10 prove no more than 69 %.
    #[test]
    fn known_intervals() {
        for (k, n, low, high) in
            [(10, 10, 0.6915, 1.0), (5, 5, 0.4782, 1.0), (0, 10, 0.0, 0.3085), (18, 20, 0.6830, 0.9877)]
        {
            let of = Proportion::of(k, n);
            assert!((of.low - low).abs() < 1e-4 && (of.high - high).abs() < 1e-4, "{of:?}");
        }
        assert_eq!(
            (Proportion::of(0, 0).low, Proportion::of(0, 0).high, Proportion::of(0, 0).share()),
            (0.0, 1.0, None)
        );
    }
}
