//! The share of samples that are beyond a limit, where those come in bursts: how sure is it?

use statrs::distribution::{ContinuousCDF, Gamma};

/// Samples beyond a limit, and the bursts that they came in: runs of consecutive ones, since one stall makes many messages late.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Bursts {
    /// Samples.
    pub samples: u64,
    /// Of them, beyond.
    pub beyond: u64,
    /// Bursts.
    pub bursts: u64,
    /// Sum of the squares of the bursts' lengths.
    pub squares: u64,
    /// The longest.
    pub longest: u64,
}

impl Bursts {
    /// Of samples in order of time.
    pub fn of(is_beyond: impl Iterator<Item = bool>) -> Bursts {
        let (mut all, mut length) = (Bursts::default(), 0u64);
        for is_beyond in is_beyond.chain([false]) {
            all.samples += 1;
            if is_beyond {
                length += 1;
                continue;
            }
            all.add_burst(length);
            length = 0;
        }
        all.samples -= 1;
        all
    }

    fn add_burst(&mut self, length: u64) {
        self.beyond += length;
        self.bursts += u64::from(length > 0);
        self.squares += length * length;
        self.longest = self.longest.max(length);
    }

    /// Of two recordings together.
    pub fn and(self, other: Bursts) -> Bursts {
        Bursts {
            samples: self.samples + other.samples,
            beyond: self.beyond + other.beyond,
            bursts: self.bursts + other.bursts,
            squares: self.squares + other.squares,
            longest: self.longest.max(other.longest),
        }
    }

    /// The share beyond; 0 without samples.
    pub fn share(&self) -> f64 {
        self.beyond as f64 / self.samples.max(1) as f64
    }

    /// Bounds of the share, each wrong with at most `alpha`: bursts are independent events, their lengths are weights (Fay & Feuer, Stat.
    /// Med. 16 (1997) 791: bounds of a weighted sum of Poisson counts by the gamma distribution; with bursts of one sample they are the exact
    /// ones of Garwood 1936).
    pub fn bounds(&self, alpha: f64) -> (f64, f64) {
        let (n, y, v) = (self.samples.max(1) as f64, self.beyond as f64, self.squares as f64);
        let gamma = |mean: f64, variance: f64, p: f64| {
            Gamma::new(mean * mean / variance, mean / variance).map_or(mean, |gamma| gamma.inverse_cdf(p))
        };
        let low = if self.beyond == 0 { 0.0 } else { gamma(y, v, alpha) };
        let longest = self.longest.max(1) as f64;
        let high = gamma(y + longest, v + longest * longest, 1.0 - alpha);
        (low / n, (high / n).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `bursts` runs of `length`, far apart, in so many samples.
    fn made(samples: u64, bursts: u64, length: u64) -> Bursts {
        let apart = samples / bursts.max(1);
        Bursts::of((0..samples).map(|at| bursts > 0 && at / apart < bursts && at % apart < length))
    }

    #[test]
    fn bursts_are_counted() {
        let found = Bursts::of([true, true, false, true, false, false, true].into_iter());
        assert_eq!(found, Bursts { samples: 7, beyond: 4, bursts: 3, squares: 6, longest: 2 });
        assert_eq!(made(1000, 10, 5).and(made(1000, 0, 0)).share(), 0.025);
    }

    /// Garwood's bounds as scipy 1.17 has them: chi2.ppf(0.025, 2 k) / 2 and chi2.ppf(0.975, 2 (k + 1)) / 2.
    #[test]
    fn single_samples_have_garwoods_bounds() {
        for (k, low, high) in [
            (0u64, 0.0, 3.688_879_454_1),
            (1, 0.025_317_808_0, 5.571_643_390_9),
            (10, 4.795_388_694_6, 18.390_356_041_7),
        ] {
            let found = made(100_000, k, 1).bounds(0.025);
            assert!((found.0 * 1e5 - low).abs() < 1e-5 && (found.1 * 1e5 - high).abs() < 1e-5, "{k}: {found:?}");
        }
    }

    #[test]
    fn one_long_burst_says_little_and_many_short_ones_much() {
        let (one, many) = (made(4950, 1, 676).bounds(0.025), made(4950, 169, 4).bounds(0.025));
        assert!(one.0 < 0.01 && one.1 > 0.5, "{one:?}");
        assert!(many.0 > 0.1 && many.1 < 0.17, "{many:?}");
    }

    /// Of 400 series of known share, whose bursts begin at random and are 1 to 9 long, the bounds miss it in at most 5 % a side.
    #[test]
    fn bounds_hold_the_share() {
        use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let (rate, samples) = (0.004, 5000);
        // A burst begins only outside of one, and takes 5 samples on average.
        let truth = 5.0 * rate / (1.0 + 5.0 * rate);
        let mut missed = (0, 0);
        for _ in 0..400 {
            let mut left = 0;
            let series: Vec<bool> = (0..samples)
                .map(|_| {
                    left = match left {
                        0 if random.random_bool(rate) => random.random_range(1..=9),
                        0 => return false,
                        left => left,
                    } - 1;
                    true
                })
                .collect();
            let (low, high) = Bursts::of(series.into_iter()).bounds(0.05);
            missed.0 += usize::from(low > truth);
            missed.1 += usize::from(high < truth);
        }
        assert!(missed.0 <= 26 && missed.1 <= 26, "{missed:?} of 400");
    }
}
