//! A histogram as HdrHistogram encodes it: V0, V1 and V2, of integers and of doubles. What is read are the lowest value
//! and the count of each bucket, as AbstractHistogram and DoubleHistogram of the Java reference decode them.

use std::io::Read;

use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;

/// A packed histogram is no longer. One of five digits over the full range has at most 6 million counts.
const MOST_PACKED: usize = 1 << 20;
const MOST_UNPACKED: u64 = 64 << 20;
/// HdrHistogram's own bounds of its digits.
const MOST_DIGITS: u32 = 5;
/// Histograms that are added up have no fewer.
pub const LEAST_DIGITS: u32 = 3;

/// A compressed DoubleHistogram; it wraps a compressed histogram of integers.
const DOUBLES: u32 = 0x0c72_124f;
/// The low byte's upper half is the size of a count, in V0 and V1.
const WORD_SIZE: u32 = 0xf0;
const V0_PACKED: u32 = 0x1c84_9309;
const V0: u32 = 0x1c84_9308;
const V1_PACKED: u32 = 0x1c84_9302;
const V1: u32 = 0x1c84_9301;
const V2_PACKED: u32 = 0x1c84_9304;
const V2: u32 = 0x1c84_9303;

/// A histogram's contents, without the empty buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// Significant decimal digits, 0 to 5.
    pub digits: u32,
    /// By what an integer value is multiplied to make the double; `None` of integers.
    pub ratio: Option<f64>,
    /// Lowest value and count of each bucket that is not empty, ascending.
    pub counts: Vec<(u64, u64)>,
    /// Highest value of the last of them.
    pub highest: u64,
}

impl Decoded {
    /// The largest value, in the log's unit.
    pub fn max(&self) -> f64 {
        self.highest as f64 * self.ratio.unwrap_or(1.0)
    }

    /// With all its buckets, of at least three digits, which HdrHistogram's own tests add logs up with. It may be 50 MB. Doubles become the
    /// nearest integers.
    pub fn whole(&self) -> Histogram<u64> {
        let integer = |value: u64| match self.ratio {
            None => value,
            Some(ratio) => ((value as f64 * ratio).round() as u64).min(i64::MAX as u64),
        };
        let digits = self.digits.clamp(LEAST_DIGITS, MOST_DIGITS) as u8;
        let mut whole =
            Histogram::new_with_bounds(1, integer(self.highest).max(2), digits).expect("three to five digits from 1");
        for (value, count) in &self.counts {
            whole.record_n(integer(*value), *count).expect("no value is above the highest");
        }
        whole
    }
}

/// How values fall into buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Binary logarithm of half the number of sub-buckets.
    half: u32,
    /// Binary logarithm of the lowest bucket's width.
    unit: u32,
}

impl Geometry {
    /// Of that many digits, values told apart from `lowest` up.
    ///
    /// # Errors
    /// No histogram has such buckets.
    pub fn new(digits: u32, lowest: u64) -> Result<Geometry, String> {
        if digits > MOST_DIGITS {
            return Err(format!("{digits} digits"));
        }
        let unit = lowest.checked_ilog2().ok_or("a lowest value of 0")?;
        let half = (2 * 10_u64.pow(digits)).next_power_of_two().ilog2().max(1) - 1;
        if unit + half > 61 { Err(format!("a lowest value of {lowest}")) } else { Ok(Geometry { half, unit }) }
    }

    /// The lowest value of a bucket; `None` beyond what 63 bits hold.
    fn lowest_at(self, index: u64) -> Option<u64> {
        let half = 1_u64 << self.half;
        let (bucket, sub) = match index >> self.half {
            0 => (0, index),
            bucket => (bucket - 1, (index & (half - 1)) + half),
        };
        let shift = u32::try_from(bucket).ok()?.checked_add(self.unit).filter(|shift| *shift < 63)?;
        Some(sub << shift).filter(|value| value >> shift == sub && *value <= i64::MAX as u64)
    }

    /// Lowest and highest value of the bucket that `value` falls into.
    pub fn bucket(self, value: u64) -> (u64, u64) {
        let length = u64::BITS - value.leading_zeros();
        let shift = length.saturating_sub(self.half + 1).max(self.unit);
        let lowest = value >> shift << shift;
        (lowest, lowest | ((1 << shift) - 1))
    }

    /// Binary logarithm of how many buckets a doubling of the value has.
    pub fn half(self) -> u32 {
        self.half
    }
}

/// Decodes what an interval log has after its base64.
///
/// # Errors
/// A sentence on what is wrong with the bytes.
pub(crate) fn decode(packed: &[u8]) -> Result<Decoded, String> {
    if packed.len() > MOST_PACKED {
        return Err(format!("{} bytes", packed.len()));
    }
    let mut bytes = Bytes(packed);
    if packed.first_chunk().map(|cookie| u32::from_be_bytes(*cookie)) != Some(DOUBLES) {
        return integers(bytes);
    }
    bytes.u32()?;
    let digits = bytes.u32()?;
    // How wide the range may become: of no use to a reader.
    bytes.u64()?;
    let (of, ratio) = unpacked(bytes)?;
    if of.digits != digits || !(ratio.is_finite() && ratio > 0.0) {
        return Err("the doubles do not match their integers".to_owned());
    }
    Ok(Decoded { ratio: Some(ratio), ..of })
}

fn integers(bytes: Bytes<'_>) -> Result<Decoded, String> {
    unpacked(bytes).map(|(of, _)| of)
}

/// A histogram of integers, and the ratio in its head.
fn unpacked(mut bytes: Bytes<'_>) -> Result<(Decoded, f64), String> {
    let cookie = bytes.u32()?;
    let inside = match cookie & !WORD_SIZE {
        V0_PACKED => V0,
        V1_PACKED => V1,
        V2_PACKED => V2,
        _ => return Err("no histogram of HdrHistogram's encodings V0, V1 and V2".to_owned()),
    };
    let length = bytes.u32()? as usize;
    let mut payload = Vec::new();
    ZlibDecoder::new(bytes.take(length)?)
        .take(MOST_UNPACKED + 1)
        .read_to_end(&mut payload)
        .map_err(|error| error.to_string())?;
    if payload.len() as u64 > MOST_UNPACKED {
        return Err(format!("more than {MOST_UNPACKED} bytes when unpacked"));
    }
    let mut bytes = Bytes(&payload);
    let cookie = bytes.u32()?;
    if cookie & !WORD_SIZE != inside {
        return Err("its two heads are of two encodings".to_owned());
    }
    let mut length = None;
    if inside != V0 {
        length = Some(bytes.u32()? as usize);
        // Where the array begins in the writer's memory; the encoded counts are in order.
        bytes.u32()?;
    }
    let (digits, lowest) = (bytes.u32()?, bytes.u64()?);
    // The highest value that it could hold, and (V0) the total; the counts say both.
    bytes.u64()?;
    let last = bytes.u64()?;
    let ratio = if inside == V0 { 1.0 } else { f64::from_bits(last) };
    let bytes = match length {
        Some(length) => Bytes(bytes.take(length)?),
        None => bytes,
    };
    let geometry = Geometry::new(digits, lowest)?;
    let counts = if inside == V2 { zigzag(bytes, geometry)? } else { words(bytes, geometry, cookie)? };
    // The reference adds counts up in 63 bits.
    let total = counts.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
    if total.is_none_or(|total| total > i64::MAX as u64) {
        return Err("more than 2^63 values".to_owned());
    }
    let highest = counts.last().map_or(0, |(value, _)| geometry.bucket(*value).1);
    Ok((Decoded { digits, ratio: None, counts, highest }, ratio))
}

/// Counts of a fixed size, of which a trailing part may be missing (V0 and V1).
fn words(bytes: Bytes<'_>, geometry: Geometry, cookie: u32) -> Result<Vec<(u64, u64)>, String> {
    let size = match (cookie & WORD_SIZE) >> 4 & 0xe {
        size @ (2 | 4 | 8) => size as usize,
        size => return Err(format!("counts of {size} bytes")),
    };
    let mut counts = Vec::new();
    for (index, word) in bytes.0.chunks_exact(size).enumerate() {
        let word_is_negative = word[0] & 0x80 != 0;
        let count = word.iter().fold(0_u64, |count, byte| count << 8 | u64::from(*byte));
        match count {
            0 => {}
            _ if word_is_negative => return Err("a negative count".to_owned()),
            count => counts.push((geometry.lowest_at(index as u64).ok_or("a value beyond 2^63")?, count)),
        }
    }
    Ok(counts)
}

/// Zigzag-encoded LEB128 of at most nine bytes; a negative count is that many empty buckets (V2).
fn zigzag(mut bytes: Bytes<'_>, geometry: Geometry) -> Result<Vec<(u64, u64)>, String> {
    let (mut counts, mut index) = (Vec::new(), 0_u64);
    while !bytes.0.is_empty() {
        let mut value = 0_u64;
        for shift in (0..=56).step_by(7) {
            let byte = u64::from(bytes.u8()?);
            if shift == 56 {
                value |= byte << shift;
                break;
            }
            value |= (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        match (value >> 1) as i64 ^ -((value & 1) as i64) {
            0 => index += 1,
            zeros @ ..0 => index = index.checked_add(zeros.unsigned_abs()).ok_or("a value beyond 2^63")?,
            count => {
                counts.push((geometry.lowest_at(index).ok_or("a value beyond 2^63")?, count as u64));
                index += 1;
            }
        }
    }
    Ok(counts)
}

/// Big-endian numbers, one after the other.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or("it is cut")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk().ok_or("it is cut")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, String> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_histogram_has_the_values_of_what_was_read() {
        let integers = Decoded { digits: 2, ratio: None, counts: vec![(0, 3), (16_384, 2)], highest: 32_767 };
        let whole = integers.whole();
        // Of three digits, in which 16384 begins a bucket of 16.
        assert_eq!((whole.len(), whole.min(), whole.max()), (5, 0, 16_399));
        let doubles = Decoded { digits: 3, ratio: Some(0.5), counts: vec![(3000, 1), (4000, 1)], highest: 4001 };
        let whole = doubles.whole();
        assert_eq!((whole.len(), whole.min(), whole.max()), (2, 1500, 2000));
        let far = Decoded { ratio: Some(1e300), ..doubles };
        assert_eq!(far.whole().len(), 2);
        let empty = Decoded { counts: Vec::new(), highest: 0, ..integers };
        assert!(empty.whole().is_empty());
    }

    #[test]
    fn an_index_and_its_value_are_of_one_bucket() {
        // Figures of HdrHistogram's Java tests: two digits have 256 sub-buckets.
        let two = Geometry::new(2, 1).unwrap();
        assert_eq!((two.half, two.unit), (7, 0));
        for (index, lowest, highest) in [(0, 0, 0), (255, 255, 255), (256, 256, 257), (383, 510, 511), (384, 512, 515)]
        {
            assert_eq!(two.lowest_at(index), Some(lowest));
            assert_eq!(two.bucket(lowest), (lowest, highest));
        }
        let coarse = Geometry::new(2, 20_000).unwrap();
        assert_eq!(coarse.unit, 14);
        assert_eq!((coarse.lowest_at(1), coarse.bucket(20_000)), (Some(16_384), (16_384, 32_767)));
        assert_eq!(two.lowest_at(u64::MAX), None);
        assert!(Geometry::new(6, 1).is_err() && Geometry::new(3, 0).is_err() && Geometry::new(5, 1 << 62).is_err());
    }
}
