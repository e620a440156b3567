//! HdrHistogram's interval logs (V2): the format that its own tools and other latency viewers read.
//!
//! Values are nanoseconds; the maximum column is in milliseconds, as the Java implementation writes it.

use std::{
    io::Write,
    time::{Duration, SystemTime},
};

use base64::Engine as _;
use hdrhistogram::{
    Histogram,
    serialization::{
        Deserializer, V2DeflateSerializer,
        interval_log::{
            IntervalLogIterator, IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, LogEntry, Tag,
        },
    },
};
use thiserror::Error;

pub use hdrhistogram::serialization::V2DeflateSerializer as Serializer;

/// A writer of interval logs.
pub type HlogWriter<'a, W> = IntervalLogWriter<'a, 'a, W, V2DeflateSerializer>;

/// Why an interval log cannot be read.
#[derive(Debug, Error)]
pub enum HlogError {
    /// Neither a comment nor an interval.
    #[error("line {line} is not of an HdrHistogram interval log; write one with `taut wakeup --hlog FILE`")]
    Line {
        /// Counted from 1.
        line: usize,
    },
    /// The histogram of an interval is not V2, or is damaged.
    #[error("interval {interval}: {reason}")]
    Histogram {
        /// Counted from 1.
        interval: usize,
        /// What the decoder said.
        reason: String,
    },
    /// A log without intervals.
    #[error("no intervals in it; was the probe stopped in its first second?")]
    Empty,
}

/// One interval of a log.
#[derive(Clone, Debug)]
pub struct Interval {
    /// "" when it has none.
    pub tag: String,
    /// Since the log's base time, or since 1970.
    pub start: Duration,
    /// How long it took.
    pub length: Duration,
    /// What was recorded in it.
    pub histogram: Histogram<u64>,
}

/// Begins a log: writes its head, with interval times counted from `start`. `what` tells what is measured, and by whom.
///
/// # Errors
/// Those of the writer.
pub fn begin<'a, W: Write>(
    writer: &'a mut W,
    serializer: &'a mut V2DeflateSerializer,
    start: SystemTime,
    what: &str,
) -> std::io::Result<HlogWriter<'a, W>> {
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(&format!("[{what}, in ns; Interval_Max in ms]"))
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(1e6)
        .begin_log_with(writer, serializer)?;
    log.write_comment("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"")?;
    Ok(log)
}

/// Writes one interval; a tag has no commas and no white space.
///
/// # Errors
/// Those of the writer.
pub fn write<W: Write>(
    log: &mut HlogWriter<'_, W>,
    tag: &str,
    start: Duration,
    length: Duration,
    histogram: &Histogram<u64>,
) -> std::io::Result<()> {
    let tag = Tag::new(tag).filter(|tag| !tag.as_str().is_empty());
    log.write_histogram(histogram, start, length, tag).map_err(|error| match error {
        IntervalLogWriterError::IoError(error) => error,
        IntervalLogWriterError::SerializeError(error) => std::io::Error::other(format!("{error:?}")),
    })
}

/// The same of values that were kept one by one, to three digits.
///
/// # Errors
/// Those of the writer.
pub fn write_values<W: Write>(
    log: &mut HlogWriter<'_, W>,
    tag: &str,
    start: Duration,
    length: Duration,
    values: &[u64],
) -> std::io::Result<()> {
    let mut histogram = Histogram::new(3).map_err(std::io::Error::other)?;
    for value in values {
        histogram.record(*value).map_err(std::io::Error::other)?;
    }
    write(log, tag, start, length, &histogram)
}

/// All intervals of a log of any writer. A truncated last line (its writer was killed) is left out.
///
/// # Errors
/// The first line that cannot be read.
pub fn read(bytes: &[u8]) -> Result<Vec<Interval>, HlogError> {
    // Java's column header is no comment of the format; a torn last line has no end.
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(&bytes[..0], |end| &bytes[..=end]);
    let text: Vec<u8> =
        whole.split_inclusive(|b| *b == b'\n').filter(|line| line[0] != b'"').flatten().copied().collect();
    let mut intervals = Vec::new();
    let mut deserializer = Deserializer::new();
    for (at, entry) in IntervalLogIterator::new(&text).enumerate() {
        let LogEntry::Interval(entry) = entry.map_err(|_| HlogError::Line { line: at + 1 })? else { continue };
        let bad = |reason: String| HlogError::Histogram { interval: intervals.len() + 1, reason };
        let packed = base64::engine::general_purpose::STANDARD
            .decode(entry.encoded_histogram())
            .map_err(|error| bad(error.to_string()))?;
        let histogram: Histogram<u64> =
            deserializer.deserialize(&mut packed.as_slice()).map_err(|error| bad(error.to_string()))?;
        intervals.push(Interval {
            tag: entry.tag().map_or(String::new(), |tag| tag.as_str().to_owned()),
            start: entry.start_timestamp(),
            length: entry.duration(),
            histogram,
        });
    }
    if intervals.is_empty() { Err(HlogError::Empty) } else { Ok(intervals) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn log(values: &[&[u64]]) -> Vec<u8> {
        let (mut bytes, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
        let mut log = begin(&mut bytes, &mut serializer, SystemTime::UNIX_EPOCH, "Lengths").unwrap();
        for (at, values) in values.iter().enumerate() {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            values.iter().for_each(|v| histogram.record(*v).unwrap());
            let (start, length) = (Duration::from_secs(at as u64), Duration::from_secs(1));
            log.write_histogram(&histogram, start, length, Tag::new("cpu0")).unwrap();
        }
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let read = read(&log(&[&[1000, 2000], &[3000]])).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].tag.as_str(), read[0].histogram.len(), read[0].histogram.max()), ("cpu0", 2, 2000));
        assert_eq!(read[1].start, Duration::from_secs(1));
    }

    #[test]
    fn a_torn_last_line_is_left_out() {
        let whole = log(&[&[1], &[2]]);
        assert_eq!(read(&whole[..whole.len() - 3]).unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_log_is_refused() {
        assert!(matches!(read(b""), Err(HlogError::Empty)));
        assert!(matches!(read(b"hello\n"), Err(HlogError::Line { line: 1 })));
        assert!(matches!(read(b"0.1,1.0,2.0,AAAA\n"), Err(HlogError::Histogram { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..400, flip in any::<u8>()) {
            let _ = read(&bytes);
            let mut damaged = log(&[&[1000, 5000], &[70]]);
            let at = cut % damaged.len();
            damaged[at] ^= flip;
            let _ = read(&damaged);
        }
    }
}
