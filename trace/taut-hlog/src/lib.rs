//! HdrHistogram's interval logs: written as V2, which its own tools and other latency viewers read, and read as any writer writes them.
//!
//! Values of integers are nanoseconds by convention; a log does not say. The maximum column is in milliseconds, as the Java implementation
//! writes it.

mod encoding;

use std::{
    io::Write,
    time::{Duration, SystemTime},
};

use base64::Engine as _;
use hdrhistogram::{
    Histogram,
    serialization::{
        V2DeflateSerializer,
        interval_log::{
            IntervalLogIterator, IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, LogEntry, Tag,
        },
    },
};
use thiserror::Error;

pub use encoding::{Decoded, Geometry, LEAST_DIGITS};
pub use hdrhistogram::serialization::V2DeflateSerializer as Serializer;

/// The head line of every version of the format.
const FORMAT: &[u8] = b"#[Histogram log format version ";

/// A writer of interval logs.
pub type HlogWriter<'a, W> = IntervalLogWriter<'a, 'a, W, V2DeflateSerializer>;

/// What a line of a log says.
#[derive(Clone, Debug)]
pub enum Line {
    /// When the log was begun, since 1970.
    StartTime(Duration),
    /// What intervals' times are counted from, since 1970.
    BaseTime(Duration),
    /// An interval.
    Interval(Interval),
    /// Nothing that counts: a comment, or the columns' head.
    Comment,
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
    pub histogram: Decoded,
}

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// The format has another version than 1.
    #[error("is an HdrHistogram log of version {0}, which this taut does not know")]
    Version(String),
    /// Neither a comment nor an interval.
    #[error("is neither a comment nor an interval")]
    Foreign,
    /// An interval whose histogram is of no known encoding, or damaged.
    #[error("has no readable histogram ({0})")]
    Histogram(String),
}

/// Why an interval log cannot be read.
#[derive(Debug, Error)]
pub enum HlogError {
    /// Of another file, or damaged.
    #[error("line {line} {what}; write a log with HistogramLogWriter or `taut wakeup --hlog FILE`")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        what: LineError,
    },
    /// A log without intervals.
    #[error("no intervals in it; was the probe stopped in its first second?")]
    Empty,
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
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(&bytes[..0], |end| &bytes[..end]);
    let mut intervals = Vec::new();
    for (at, text) in whole.split(|b| *b == b'\n').enumerate() {
        match line(text).map_err(|what| HlogError::Line { line: at + 1, what })? {
            Line::Interval(interval) => intervals.push(interval),
            Line::StartTime(_) | Line::BaseTime(_) | Line::Comment => {}
        }
    }
    if intervals.is_empty() { Err(HlogError::Empty) } else { Ok(intervals) }
}

/// One line of a log, with or without its end.
///
/// # Errors
/// It is not of a log that this reader knows, or is damaged.
pub fn line(text: &[u8]) -> Result<Line, LineError> {
    let text = text.trim_ascii();
    if let Some(version) = text.strip_prefix(FORMAT) {
        let is_number = |c: &char| c.is_ascii_digit() || *c == '.';
        return match version {
            [b'1', b'.', ..] => Ok(Line::Comment),
            _ => Err(LineError::Version(version.iter().map(|b| char::from(*b)).take_while(is_number).collect())),
        };
    }
    // Java's head of the columns is no comment of the format.
    if text.starts_with(b"\"") || text.is_empty() {
        return Ok(Line::Comment);
    }
    let line = [text, b"\n"].concat();
    match IntervalLogIterator::new(&line).next() {
        None => Ok(Line::Comment),
        Some(Ok(LogEntry::StartTime(start))) => Ok(Line::StartTime(start)),
        Some(Ok(LogEntry::BaseTime(base))) => Ok(Line::BaseTime(base)),
        Some(Ok(LogEntry::Interval(of))) => {
            let packed = base64::engine::general_purpose::STANDARD.decode(of.encoded_histogram());
            let decoded = packed.map_err(|error| error.to_string()).and_then(|packed| encoding::decode(&packed));
            Ok(Line::Interval(Interval {
                tag: of.tag().map_or(String::new(), |tag| tag.as_str().to_owned()),
                start: of.start_timestamp(),
                length: of.duration(),
                histogram: decoded.map_err(LineError::Histogram)?,
            }))
        }
        Some(Err(_)) => Err(LineError::Foreign),
    }
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
        let first = read[0].histogram.whole();
        assert_eq!((read[0].tag.as_str(), first.len(), first.max()), ("cpu0", 2, 2000));
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
        assert!(matches!(read(b"hello\n"), Err(HlogError::Line { line: 1, what: LineError::Foreign })));
        let damaged = read(b"#[Histogram log format version 1.2]\n\n0.1,1.0,2.0,AAAA\n");
        assert!(matches!(damaged, Err(HlogError::Line { line: 3, what: LineError::Histogram(_) })), "{damaged:?}");
        let other = read(b"#[Histogram log format version 2.0]\n").unwrap_err().to_string();
        assert!(other.starts_with("line 1 is an HdrHistogram log of version 2.0,"), "{other}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..400, flip in any::<u8>()) {
            let _ = read(&bytes);
            let mut damaged = log(&[&[1000, 5000], &[70]]);
            let at = cut % damaged.len();
            damaged[at] ^= flip;
            read(&damaged).into_iter().flatten().for_each(|interval| drop(interval.histogram.whole()));
        }
    }
}
