//! A distribution in constant memory, for series without end: an HDR histogram beside exact extremes and sums.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{Deserializer, Serializer as _, V2Serializer},
};
use serde::{Deserialize, Serialize};

use crate::{
    Distribution,
    curves::{CURVE_STEPS, bins},
    distribution::BURSTS,
};

/// Levels of an octave at which bursts are counted: one per 1.1 %.
const LEVELS_PER_OCTAVE: usize = 64;
const LEVEL_BITS: u32 = LEVELS_PER_OCTAVE.ilog2();

/// Durations in nanoseconds, taken one at a time in the order of time; some 250 kB however many there are.
///
/// Quantiles come from an HDR histogram of three significant digits, so they read up to 0.1 % high; count, extremes and
/// sums are exact. How many separate bursts of exceedances lie beyond a quantile is counted at levels 1.1 % apart.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Packed", try_from = "Packed")]
pub struct Sketch {
    histogram: Histogram<u64>,
    min: u64,
    max: u64,
    sum: f64,
    sum_of_squares: f64,
    /// Runs of consecutive samples at or above each level, begun so far; empty after [`Sketch::add`] of another.
    bursts: Vec<u32>,
    last_level: usize,
}

impl Default for Sketch {
    fn default() -> Sketch {
        Sketch {
            histogram: Histogram::new(3).expect("three digits are allowed"),
            min: u64::MAX,
            max: 0,
            sum: 0.0,
            sum_of_squares: 0.0,
            bursts: Vec::new(),
            last_level: 0,
        }
    }
}

impl Sketch {
    /// Takes the next sample.
    pub fn record(&mut self, ns: u64) {
        self.histogram.record(ns).expect("a histogram that resizes takes every value");
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sum += ns as f64;
        self.sum_of_squares += (ns as f64).powi(2);
        let level = level(ns);
        if level >= self.bursts.len() {
            self.bursts.resize(level + 1, 0);
        }
        let from = if self.histogram.len() == 1 { 0 } else { self.last_level + 1 };
        for begun in self.bursts.iter_mut().take(level + 1).skip(from) {
            *begun += 1;
        }
        self.last_level = level;
    }

    /// Takes all samples of another series, e.g. of another CPU. A run that both series were in counts twice.
    pub fn add(&mut self, other: &Sketch) {
        self.histogram.add(&other.histogram).expect("a histogram that resizes takes any other");
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.bursts.resize(self.bursts.len().max(other.bursts.len()), 0);
        for (begun, more) in self.bursts.iter_mut().zip(&other.bursts) {
            *begun += more;
        }
    }

    /// Takes the samples of a histogram from elsewhere. Its order of time is lost, so no bursts are known:
    /// [`Sketch::distribution`] then asks for ten samples beyond a quantile only.
    pub fn add_histogram(&mut self, other: &Histogram<u64>) {
        self.histogram.add(other).expect("a histogram that resizes takes any other");
        if other.is_empty() {
            return;
        }
        self.min = self.min.min(other.min());
        self.max = self.max.max(other.max());
        self.sum += other.mean() * other.len() as f64;
        self.sum_of_squares += (other.stdev().powi(2) + other.mean().powi(2)) * other.len() as f64;
    }

    /// Samples.
    pub fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// Smallest, exact.
    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min)
    }

    /// Largest, exact.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max)
    }

    /// Mean, exact but for rounding.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum / self.len() as f64)
    }

    /// Standard deviation.
    pub fn sd(&self) -> Option<f64> {
        let (n, mean) = (self.len() as f64, self.mean()?);
        (n > 1.0).then(|| ((self.sum_of_squares - n * mean * mean).max(0.0) / (n - 1.0)).sqrt())
    }

    /// A quantile (0..1), carried or not; `None` without samples.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        // Amid the rank, so that rounding cannot lead to its neighbour.
        let rank = (q * self.len() as f64).ceil().max(1.0) - 0.5;
        let value = || self.histogram.value_at_quantile(rank / self.len() as f64);
        (!self.is_empty()).then(|| value().clamp(self.min, self.max))
    }

    /// The histogram behind it.
    pub fn histogram_hdr(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// Its quantiles, by the same rules as [`Distribution::of`].
    pub fn distribution(&self) -> Distribution {
        let carried = |q: f64| self.quantile(q).filter(|value| self.is_carried(q, *value));
        Distribution {
            n: self.len(),
            min_ns: self.min(),
            p50_ns: carried(0.5),
            p90_ns: carried(0.9),
            p95_ns: carried(0.95),
            p99_ns: carried(0.99),
            p999_ns: carried(0.999),
            max_ns: self.max(),
            mean_ns: self.mean(),
            sd_ns: self.sd(),
            // Bursts are known by level only.
            estimates: Default::default(),
        }
    }

    /// Ten samples beyond, in ten bursts; ties with the quantile count as beyond.
    fn is_carried(&self, q: f64, value: u64) -> bool {
        let beyond = self.len() - (q * self.len() as f64).ceil().max(1.0) as u64;
        let at = level(value);
        let runs = self.bursts.get(at).copied().unwrap_or(0);
        let is_level_all = level(self.min) == at;
        beyond >= BURSTS as u64 && (self.bursts.is_empty() || is_level_all || runs >= BURSTS as u32)
    }

    /// As [`crate::percentile_curve`].
    pub fn percentile_curve(&self) -> Vec<(f64, u64)> {
        let n = self.len() as f64;
        let quantiles =
            (0..).map(|step| 0.5f64.powf(f64::from(step) / CURVE_STEPS)).take_while(|rest| rest * n >= 10.0);
        let mut curve: Vec<(f64, u64)> =
            quantiles.filter_map(|rest| Some((1.0 - rest, self.quantile(1.0 - rest)?))).collect();
        curve.extend(self.max().map(|max| (1.0 - 1.0 / (n + 1.0), max)));
        curve
    }

    /// As [`crate::histogram`].
    pub fn histogram(&self) -> Vec<(u64, u64, u64)> {
        let (Some(first), Some(last), Some(body)) = (self.min(), self.max(), self.quantile(0.995)) else {
            return Vec::new();
        };
        let mut bins: Vec<(u64, u64, u64)> = bins(first, body, last).map(|(from, to)| (from, to, 0)).collect();
        for step in self.histogram.iter_recorded() {
            let value = step.value_iterated_to().clamp(first, last);
            let at = bins.partition_point(|bin| bin.1 <= value).min(bins.len() - 1);
            bins[at].2 += step.count_since_last_iteration();
        }
        bins
    }
}

/// A sketch on its way to another process.
#[derive(Serialize, Deserialize)]
struct Packed {
    /// HDR V2, base64.
    histogram: String,
    min: u64,
    max: u64,
    sum: f64,
    sum_of_squares: f64,
    bursts: Vec<u32>,
    last_level: usize,
}

impl From<Sketch> for Packed {
    fn from(sketch: Sketch) -> Packed {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&sketch.histogram, &mut bytes)
            .expect("memory takes every histogram of 64-bit values");
        let Sketch { min, max, sum, sum_of_squares, bursts, last_level, .. } = sketch;
        Packed { histogram: STANDARD.encode(bytes), min, max, sum, sum_of_squares, bursts, last_level }
    }
}

impl TryFrom<Packed> for Sketch {
    type Error = String;

    fn try_from(packed: Packed) -> Result<Sketch, String> {
        let bytes = STANDARD.decode(&packed.histogram).map_err(|error| error.to_string())?;
        let histogram = Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| error.to_string())?;
        let Packed { min, max, sum, sum_of_squares, bursts, last_level, .. } = packed;
        Ok(Sketch { histogram, min, max, sum, sum_of_squares, bursts, last_level })
    }
}

/// 64 levels an octave; small numbers have one each.
fn level(ns: u64) -> usize {
    if ns < LEVELS_PER_OCTAVE as u64 {
        return ns as usize;
    }
    let octave = ns.ilog2() - LEVEL_BITS;
    (octave as usize + 1) * LEVELS_PER_OCTAVE + (ns >> octave) as usize - LEVELS_PER_OCTAVE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{histogram, percentile_curve};

    fn sketch(samples: &[u64]) -> Sketch {
        let mut sketch = Sketch::default();
        samples.iter().for_each(|ns| sketch.record(*ns));
        sketch
    }

    fn exact(samples: &[u64]) -> Distribution {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        Distribution::of(samples, &sorted)
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_exact_distribution(samples in proptest::collection::vec(1u64..1 << 40, 1..3000)) {
            let (sketch, exact) = (sketch(&samples).distribution(), exact(&samples));
            prop_assert_eq!((sketch.n, sketch.min_ns, sketch.max_ns), (exact.n, exact.min_ns, exact.max_ns));
            for (rough, fine) in [(sketch.p50_ns, exact.p50_ns), (sketch.p90_ns, exact.p90_ns), (sketch.p99_ns, exact.p99_ns)] {
                if let (Some(rough), Some(fine)) = (rough, fine) {
                    prop_assert!(rough >= fine && rough as f64 <= fine as f64 * 1.001 + 1.0, "{} {}", rough, fine);
                }
            }
            let mean = exact.mean_ns.unwrap();
            prop_assert!((sketch.mean_ns.unwrap() - mean).abs() <= mean * 1e-9);
        }

        #[test]
        fn levels_rise_with_their_values(a in any::<u64>(), b in any::<u64>()) {
            prop_assert!(level(a.min(b)) <= level(a.max(b)));
        }

        #[test]
        fn bins_and_curve_agree_with_the_exact_ones(mut samples in proptest::collection::vec(1u64..1 << 30, 1..500)) {
            let sketch = sketch(&samples);
            samples.sort_unstable();
            prop_assert_eq!(sketch.histogram().iter().map(|bin| bin.2).sum::<u64>(), samples.len() as u64);
            prop_assert_eq!(histogram(&samples).iter().map(|bin| bin.2).sum::<u64>(), samples.len() as u64);
            for ((q, rough), (p, fine)) in sketch.percentile_curve().into_iter().zip(percentile_curve(&samples)) {
                prop_assert_eq!(q, p);
                prop_assert!(rough as f64 >= fine as f64 * 0.999 - 1.0 && rough as f64 <= fine as f64 * 1.001 + 1.0);
            }
        }
    }

    #[test]
    fn one_long_stall_is_one_burst() {
        let mut samples = vec![1000; 10_000];
        samples[5000..5500].fill(100_000);
        assert_eq!(sketch(&samples).distribution().p99_ns, None, "500 late samples, all of one stall");
        assert_eq!(sketch(&samples).distribution().p50_ns, Some(1000));
        let scattered: Vec<u64> = (0..10_000).map(|i| if i % 20 == 0 { 100_000 } else { 1000 }).collect();
        assert!(sketch(&scattered).distribution().p99_ns.is_some_and(|p99| p99.abs_diff(100_000) < 100));
    }

    #[test]
    fn nothing_gives_nothing() {
        let empty = Sketch::default();
        assert_eq!(empty.distribution(), Distribution::default());
        assert!(empty.histogram().is_empty() && empty.percentile_curve().is_empty());
    }

    #[test]
    fn memory_does_not_grow_with_samples() {
        let mut sketch = Sketch::default();
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            sketch.record(20_000 + (state >> 44));
        }
        let before = (sketch.histogram.buckets(), sketch.bursts.len());
        for _ in 0..200_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            sketch.record(20_000 + (state >> 44));
        }
        assert_eq!((sketch.histogram.buckets(), sketch.bursts.len()), before);
        assert_eq!(sketch.len(), 400_000);
    }

    #[test]
    fn series_add_up() {
        let (mut a, b) = (sketch(&[10, 30]), sketch(&[20, 40]));
        a.add(&b);
        assert_eq!((a.len(), a.min(), a.max(), a.mean()), (4, Some(10), Some(40), Some(25.0)));
    }
}
