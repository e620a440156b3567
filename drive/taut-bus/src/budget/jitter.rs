//! How a term's time varies from cycle to cycle.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp, LogNormal, Normal};
use serde::Deserialize;

/// The standard normal's 99th percentile.
const Z_99: f64 = 2.326_347_874_040_841;

/// Time that is added to a term's fixed time, drawn again each time the term is paid.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Jitter {
    /// Around the fixed time, either way; cut where the term would take less than no time.
    Normal {
        /// Standard deviation, µs.
        sd_us: f64,
    },
    /// Anything between two bounds.
    Uniform {
        /// Least, µs; may be negative.
        from_us: f64,
        /// Most, µs.
        to_us: f64,
    },
    /// Arrivals without memory: a poll that just missed, a queue.
    Exponential {
        /// Mean, µs.
        mean_us: f64,
    },
    /// A long tail, by two figures one reads off a measurement.
    LogNormal {
        /// Median, µs.
        median_us: f64,
        /// 99th percentile, µs.
        p99_us: f64,
    },
    /// Rare and long: a scheduler that is late once in a while.
    Spike {
        /// Probability each time.
        chance: f64,
        /// How long, µs.
        us: f64,
    },
}

impl Jitter {
    /// What it adds on average, µs; the cut of a normal jitter is left out.
    pub fn mean_us(&self) -> f64 {
        match *self {
            Jitter::Normal { .. } => 0.0,
            Jitter::Uniform { from_us, to_us } => f64::midpoint(from_us, to_us),
            Jitter::Exponential { mean_us } => mean_us,
            Jitter::LogNormal { median_us, p99_us } => {
                let sigma = (p99_us / median_us).ln() / Z_99;
                median_us * (sigma * sigma / 2.0).exp()
            }
            Jitter::Spike { chance, us } => chance * us,
        }
    }

    /// Ready to draw from.
    pub(crate) fn sampler(&self) -> Option<Sampler> {
        Some(match *self {
            Jitter::Normal { sd_us } => Sampler::Normal(Normal::new(0.0, sd_us).ok()?),
            Jitter::Uniform { from_us, to_us } => Sampler::Uniform(from_us, to_us),
            Jitter::Exponential { mean_us: 0.0 } => Sampler::Uniform(0.0, 0.0),
            Jitter::Exponential { mean_us } => Sampler::Exponential(Exp::new(1.0 / mean_us).ok()?),
            Jitter::LogNormal { median_us, p99_us } => {
                Sampler::LogNormal(LogNormal::new(median_us.ln(), (p99_us / median_us).ln() / Z_99).ok()?)
            }
            Jitter::Spike { chance, us } => Sampler::Spike(chance, us),
        })
    }

    /// What is wrong with its figures: the key and what it must be.
    pub(crate) fn mistake(&self) -> Option<(&'static str, f64, &'static str)> {
        let time = |us: f64| (0.0..=1e9).contains(&us);
        match *self {
            Jitter::Normal { sd_us } if !time(sd_us) => Some(("normal.sd_us", sd_us, "a time of 0 to 1e9 µs")),
            Jitter::Uniform { from_us, to_us } if !(from_us.abs() <= 1e9 && to_us.abs() <= 1e9 && from_us <= to_us) => {
                Some(("uniform.to_us", to_us, "a time of at least from_us"))
            }
            Jitter::Exponential { mean_us } if !time(mean_us) => {
                Some(("exponential.mean_us", mean_us, "a time of 0 to 1e9 µs"))
            }
            Jitter::LogNormal { median_us, p99_us } if !(median_us > 0.0 && p99_us >= median_us && p99_us <= 1e9) => {
                Some(("lognormal.p99_us", p99_us, "at least median_us, and median_us above 0"))
            }
            Jitter::Spike { chance, .. } if !(0.0..=1.0).contains(&chance) => {
                Some(("spike.chance", chance, "a probability of 0 to 1"))
            }
            Jitter::Spike { us, .. } if !time(us) => Some(("spike.us", us, "a time of 0 to 1e9 µs")),
            _ => None,
        }
    }
}

/// A jitter's distribution with its constants worked out.
pub(crate) enum Sampler {
    Normal(Normal<f64>),
    Uniform(f64, f64),
    Exponential(Exp<f64>),
    LogNormal(LogNormal<f64>),
    Spike(f64, f64),
}

impl Sampler {
    pub(crate) fn draw_us(&self, random: &mut impl Rng) -> f64 {
        match self {
            Sampler::Normal(normal) => normal.sample(random),
            Sampler::Uniform(from, to) => from + (to - from) * random.random::<f64>(),
            Sampler::Exponential(exponential) => exponential.sample(random),
            Sampler::LogNormal(lognormal) => lognormal.sample(random),
            Sampler::Spike(chance, us) => {
                if random.random::<f64>() < *chance {
                    *us
                } else {
                    0.0
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

    use super::*;

    #[test]
    fn draws_have_the_mean_that_is_promised() {
        let kinds = [
            Jitter::Normal { sd_us: 5.0 },
            Jitter::Uniform { from_us: -2.0, to_us: 10.0 },
            Jitter::Exponential { mean_us: 7.0 },
            Jitter::LogNormal { median_us: 10.0, p99_us: 40.0 },
            Jitter::Spike { chance: 0.01, us: 300.0 },
        ];
        for jitter in kinds {
            let sampler = jitter.sampler().unwrap();
            let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
            let mean = (0..200_000).map(|_| sampler.draw_us(&mut random)).sum::<f64>() / 200_000.0;
            assert!((mean - jitter.mean_us()).abs() < 0.3, "{jitter:?}: {mean} for {}", jitter.mean_us());
        }
    }

    #[test]
    fn a_lognormal_has_its_p99() {
        let sampler = Jitter::LogNormal { median_us: 10.0, p99_us: 40.0 }.sampler().unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        let beyond = (0..100_000).filter(|_| sampler.draw_us(&mut random) > 40.0).count();
        assert!((800..1200).contains(&beyond), "{beyond} of 100000 beyond the p99");
    }

    #[test]
    fn impossible_figures_are_named() {
        assert_eq!(Jitter::Spike { chance: 1.5, us: 1.0 }.mistake().unwrap().0, "spike.chance");
        assert_eq!(Jitter::LogNormal { median_us: 5.0, p99_us: 1.0 }.mistake().unwrap().0, "lognormal.p99_us");
        assert!(Jitter::Normal { sd_us: f64::NAN }.mistake().is_some());
    }
}
