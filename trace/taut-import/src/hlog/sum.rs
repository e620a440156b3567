//! The intervals of one tag, added up as HdrHistogram adds them: into a histogram of at least three digits.
//!
//! Its own tests and those of its ports add a log up so, and the numbers that they publish come out of it. Its
//! HistogramLogProcessor keeps the digits of the first interval; of a log with fewer than three it gives the upper ends
//! of wider buckets, up to 0.8 % higher at two digits.

use std::collections::BTreeMap;

use taut_hlog::{Decoded, Geometry, LEAST_DIGITS};
use taut_recording::Histogram as Recorded;

use crate::histogram::push;

/// All intervals of a tag.
#[derive(Debug)]
pub(super) struct Sum {
    geometry: Geometry,
    is_double: bool,
    /// By the lowest value of the bucket: the integer, or the bits of the double, which ascend as it does.
    counts: BTreeMap<u64, u64>,
}

impl Sum {
    /// Of intervals like this one.
    pub fn like(first: &Decoded) -> Result<Sum, String> {
        let geometry = Geometry::new(first.digits.max(LEAST_DIGITS), 1)?;
        Ok(Sum { geometry, is_double: first.ratio.is_some(), counts: BTreeMap::new() })
    }

    /// Adds an interval.
    pub fn add(&mut self, of: &Decoded) -> Result<(), String> {
        if of.ratio.is_some() != self.is_double {
            let [held, added] = ["integers", "doubles"].map(str::to_owned);
            let (held, added) = if self.is_double { (added, held) } else { (held, added) };
            return Err(format!("holds {added}, and those of its tag before hold {held}"));
        }
        for (value, count) in &of.counts {
            let key = match of.ratio {
                None => self.geometry.bucket(*value).0,
                Some(ratio) => self.bucket_of(*value as f64 * ratio),
            };
            let sum = self.counts.entry(key).or_default();
            *sum = sum.saturating_add(*count);
        }
        Ok(())
    }

    /// How many buckets hold something.
    pub fn buckets(&self) -> usize {
        self.counts.len()
    }

    /// The distribution, of values in units of `unit_ns`. A bucket ends at its highest value, as HdrHistogram gives it.
    pub fn recorded(&self, name: &str, unit_ns: u64) -> Recorded {
        let mut recorded = Recorded { name: name.to_owned(), unit: "ns".to_owned(), ..Recorded::default() };
        let ends = self.ends(unit_ns);
        for ((from, to), count) in ends.clone().zip(self.counts.values()) {
            push(&mut recorded, from, to, *count);
        }
        (recorded.min, recorded.max) = (ends.clone().next().map(|(from, _)| from), self.max(unit_ns));
        recorded
    }

    fn ends(&self, unit_ns: u64) -> impl Iterator<Item = (u64, u64)> + Clone {
        self.counts.keys().map(move |key| {
            if self.is_double {
                let lowest = f64::from_bits(*key);
                (nanoseconds(lowest, unit_ns), nanoseconds(self.highest(lowest), unit_ns))
            } else {
                let (lowest, highest) = self.geometry.bucket(*key);
                (lowest.saturating_mul(unit_ns), highest.saturating_mul(unit_ns))
            }
        })
    }

    /// The largest value: of doubles where the bucket of the highest one ends (DoubleHistogram.getMaxValue).
    fn max(&self, unit_ns: u64) -> Option<u64> {
        let key = *self.counts.keys().next_back()?;
        if !self.is_double {
            return Some(self.geometry.bucket(key).1.saturating_mul(unit_ns));
        }
        let lowest = f64::from_bits(self.bucket_of(self.highest(f64::from_bits(key))));
        Some(nanoseconds(lowest + self.width(lowest), unit_ns))
    }

    /// The bits of the lowest double in the bucket of `value`: a doubling has `half` buckets, so many bits of the fraction stay.
    fn bucket_of(&self, value: f64) -> u64 {
        let fraction = f64::MANTISSA_DIGITS - 1 - self.geometry.half();
        value.to_bits() >> fraction << fraction
    }

    /// The highest double of the bucket that begins at `lowest`. DoubleHistogram keeps integers, of which the smallest value above 0 has as
    /// many as a doubling has buckets; the highest one is an integer below where the next bucket begins.
    fn highest(&self, lowest: f64) -> f64 {
        let smallest = self.counts.keys().find(|key| **key > 0).map_or(0.0, |key| f64::from_bits(*key));
        if lowest > 0.0 { lowest + self.width(lowest) - self.width(smallest) } else { 0.0 }
    }

    fn width(&self, lowest: f64) -> f64 {
        binade(lowest) / (1_u64 << self.geometry.half()) as f64
    }
}

/// The largest power of two that is not above `value`.
fn binade(value: f64) -> f64 {
    let fraction = f64::MANTISSA_DIGITS - 1;
    f64::from_bits(value.to_bits() >> fraction << fraction)
}

/// To the next one. What is beyond 2^64 stays there.
fn nanoseconds(value: f64, unit_ns: u64) -> u64 {
    (value * unit_ns as f64).round() as u64
}
