//! Quantiles of a sample, each printed only when the data carry it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Bursts;

/// Quantiles of a set of durations in nanoseconds. A quantile is `None` when fewer
/// than ten bursts of exceedances lie beyond it: not enough data to name it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(
    rename = "Figures",
    description = "Quantiles are null where fewer than ten bursts of exceedances lie beyond them."
)]
pub struct Distribution {
    /// Samples.
    pub n: u64,
    /// Smallest, exact.
    pub min_ns: Option<u64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 95th percentile.
    pub p95_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// Largest, exact.
    pub max_ns: Option<u64>,
    /// Mean; shown, never used to decide.
    pub mean_ns: Option<f64>,
    /// Standard deviation; shown, never used to decide.
    pub sd_ns: Option<f64>,
    /// Quantiles that are null above, where three to nine bursts lie beyond them: [low, value, high] by field name, with
    /// the bounds of a 95 % interval; high is null where the data have no upper bound.
    #[serde(serialize_with = "by_name")]
    #[schemars(with = "BTreeMap<String, (u64, u64, Option<u64>)>")]
    pub estimates: Estimates,
}

/// Of p50, p90, p95, p99 and p99.9, in this order.
pub type Estimates = [Option<Estimate>; 5];

/// The quantiles of a [`Distribution`].
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// The estimates that there are.
fn by_name<S: serde::Serializer>(estimates: &Estimates, out: S) -> Result<S::Ok, S::Error> {
    const NAMES: [&str; 5] = ["p50_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns"];
    let named = NAMES.into_iter().zip(estimates);
    out.collect_map(named.filter_map(|(name, of)| of.map(|of| (name, (of.low_ns, of.value_ns, of.high_ns)))))
}

/// A quantile with too few bursts beyond it to be a figure, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Lower bound; both bounds together hold the quantile with 95 %.
    pub low_ns: u64,
    /// The nearest rank.
    pub value_ns: u64,
    /// Upper bound; `None` where the sample has none.
    pub high_ns: Option<u64>,
}

/// Exceedances come in bursts (one stall makes many messages late), so a quantile needs this many
/// separate bursts beyond it before it is more than an anecdote.
pub(crate) const BURSTS: usize = 10;
/// With so many it is an estimate, with its interval.
const BURSTS_OF_ESTIMATE: usize = 3;
/// Chance of each bound of an estimate to be wrong.
const ALPHA: f64 = 0.025;

impl Distribution {
    /// The distribution of durations given in time order; `sorted` is the same set ascending.
    ///
    /// A quantile is the nearest rank: the smallest sample that at least that share of samples does not
    /// exceed (Hyndman & Fan 1996, definition 1).
    ///
    /// # Panics
    /// Debug builds check that both slices are equally long.
    pub fn of(in_time_order: &[u64], sorted: &[u64]) -> Distribution {
        debug_assert_eq!(in_time_order.len(), sorted.len());
        let n = sorted.len();
        let carried = |q: f64| rank(sorted, q).filter(|value| is_carried(in_time_order, sorted, q, *value));
        let mean = sorted.iter().map(|v| *v as f64).sum::<f64>() / n as f64;
        let squares = sorted.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>();
        Distribution {
            n: n as u64,
            min_ns: sorted.first().copied(),
            p50_ns: carried(0.5),
            p90_ns: carried(0.9),
            p95_ns: carried(0.95),
            p99_ns: carried(0.99),
            p999_ns: carried(0.999),
            max_ns: sorted.last().copied(),
            mean_ns: (n > 0).then_some(mean),
            sd_ns: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
            estimates: QUANTILES.map(|q| estimate(in_time_order, sorted, q)),
        }
    }

    /// The highest of p50 … p99 that the data carry, as (quantile, value).
    pub fn highest_to_p99(&self) -> Option<(f64, u64)> {
        [(0.99, self.p99_ns), (0.95, self.p95_ns), (0.9, self.p90_ns), (0.5, self.p50_ns)]
            .into_iter()
            .find_map(|(q, value)| Some((q, value?)))
    }
}

/// The nearest-rank quantile of ascending samples, carried or not; `None` without samples.
pub fn rank(sorted: &[u64], q: f64) -> Option<u64> {
    let at = (q * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(at - 1).copied()
}

/// Whether enough lies beyond a quantile to name it: ten samples, in ten bursts. Where samples tie at
/// the quantile (a coarse clock, a constant), the ties count as beyond: they are what it stands for.
fn is_carried(in_time_order: &[u64], sorted: &[u64], q: f64, value: u64) -> bool {
    has_beyond(in_time_order, sorted, q, value, BURSTS)
}

/// Whether so many samples lie beyond a quantile, in as many bursts.
fn has_beyond(in_time_order: &[u64], sorted: &[u64], q: f64, value: u64, wanted: usize) -> bool {
    let at = (q * sorted.len() as f64).ceil().max(1.0) as usize;
    let ties = sorted.get(at) == Some(&value);
    let beyond = |sample: u64| sample > value || (ties && sample == value);
    let all_equal_so_far = ties && sorted[0] == value;
    sorted.len() - at >= wanted && (all_equal_so_far || bursts(in_time_order, beyond) >= wanted)
}

/// The quantile with its interval, where it is not carried and there are enough bursts for an estimate.
///
/// The interval holds every value that the share of samples beyond it does not refute ([`Bursts::bounds`]).
fn estimate(in_time_order: &[u64], sorted: &[u64], q: f64) -> Option<Estimate> {
    let value_ns = rank(sorted, q)?;
    let has = |bursts| has_beyond(in_time_order, sorted, q, value_ns, bursts);
    if has(BURSTS) || !has(BURSTS_OF_ESTIMATE) {
        return None;
    }
    let bounds = |limit: u64| Bursts::of(in_time_order.iter().map(|sample| *sample > limit)).bounds(ALPHA);
    let low = sorted.partition_point(|sample| bounds(*sample).0 > 1.0 - q);
    let high = sorted.partition_point(|sample| bounds(*sample).1 > 1.0 - q);
    let low_ns = sorted.get(low).map_or(value_ns, |low| value_ns.min(*low));
    Some(Estimate { low_ns, value_ns, high_ns: sorted.get(high).map(|high| value_ns.max(*high)) })
}

/// Runs of consecutive samples that are beyond; counting stops at [`BURSTS`].
fn bursts(in_time_order: &[u64], beyond: impl Fn(u64) -> bool) -> usize {
    let mut bursts = 0;
    let mut before = false;
    for sample in in_time_order {
        let now = beyond(*sample);
        bursts += usize::from(now && !before);
        before = now;
        if bursts == BURSTS {
            break;
        }
    }
    bursts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: &[u64]) -> Distribution {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        Distribution::of(samples, &sorted)
    }

    #[test]
    fn nearest_ranks_of_a_known_sample() {
        // 1 … 2000 in an order that scatters the large ones.
        let samples: Vec<u64> = (0..2000).map(|i| i * 997 % 2000 + 1).collect();
        let d = of(&samples);
        assert_eq!((d.n, d.min_ns, d.max_ns), (2000, Some(1), Some(2000)));
        assert_eq!((d.p50_ns, d.p90_ns, d.p95_ns, d.p99_ns), (Some(1000), Some(1800), Some(1900), Some(1980)));
        assert_eq!(d.p999_ns, None, "two samples beyond p99.9 carry nothing");
        assert_eq!(d.mean_ns, Some(1000.5));
    }

    #[test]
    fn one_long_stall_is_one_burst() {
        let mut samples = vec![1; 10_000];
        samples[5000..5500].fill(100);
        assert_eq!(of(&samples).p95_ns, None, "500 late samples, all of one stall");
        let scattered: Vec<u64> = (0..10_000).map(|i| if i % 20 == 0 { 100 } else { 1 }).collect();
        assert_eq!(of(&scattered).p90_ns, Some(1));
    }

    #[test]
    fn a_constant_is_its_own_quantile() {
        let d = of(&[7; 2000]);
        assert_eq!((d.p50_ns, d.p99_ns, d.p999_ns), (Some(7), Some(7), None), "two samples beyond p99.9 are too few");
    }

    #[test]
    fn too_few_bursts_for_a_figure_are_an_estimate() {
        let samples: Vec<u64> = (0..5000).map(|i| i * 997 % 5000 + 1).collect();
        let d = of(&samples);
        let [p50, .., p99, p999] = d.estimates;
        assert_eq!((p50, p99, d.p999_ns), (None, None, None), "what is carried needs no estimate");
        let p999 = p999.unwrap();
        // Five are expected beyond p99.9. By Garwood's bounds ten samples beyond do not refute that (4.80 at least are expected
        // then) and eleven do (5.49); one does not (5.57 at most), none does (3.69).
        assert_eq!((p999.low_ns, p999.value_ns, p999.high_ns), (4990, 4995, Some(5000)));
        // Two samples beyond are too few, as are ten of one stall.
        let few: Vec<u64> = (0..2000).map(|i| i * 997 % 2000 + 1).collect();
        assert_eq!(of(&few).estimates[4], None);
        let mut stall = vec![1; 10_000];
        stall[5000..5500].fill(100);
        assert_eq!(of(&stall).estimates[2], None);
    }

    /// Of 400 samples of an exponential distribution, the interval of p99.9 misses the true one in at most 5 %.
    #[test]
    fn the_interval_of_an_estimate_holds_the_quantile() {
        use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let truth = (1000f64.ln() * 1e6) as u64;
        let (mut all, mut missed) = (0, 0);
        for _ in 0..400 {
            let mut draw = || (-random.random_range(f64::MIN_POSITIVE..1.0).ln() * 1e6) as u64;
            let samples: Vec<u64> = (0..6000).map(|_| draw()).collect();
            let Some(p999) = of(&samples).estimates[4] else { continue };
            all += 1;
            missed += u32::from(truth < p999.low_ns || p999.high_ns.is_some_and(|high| truth > high));
        }
        assert!(all > 300 && missed * 20 <= all, "{missed} of {all}");
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(of(&[]), Distribution::default());
        let one = of(&[7]);
        assert_eq!((one.n, one.p50_ns, one.max_ns, one.sd_ns), (1, None, Some(7), None));
    }
}
