//! HdrHistogram's interval logs, as its own tools and `taut probe --hlog` write them: a histogram an interval, by tag.
//! They become a distribution a tag, and a signal of each interval's largest value.

use std::{collections::BTreeMap, io::Read, path::Path, time::Duration};

use base64::Engine as _;
use hdrhistogram::{
    Histogram as Hdr,
    serialization::{
        DeserializeError, Deserializer,
        interval_log::{IntervalLogIterator, LogEntry},
    },
};
use taut_recording::Kind;

use crate::{
    Error, Imported, Unit,
    error::Trouble,
    histogram,
    lines::{self, Filling, Format},
    writing::Row,
};

/// The head line of every version of the format.
const FORMAT: &[u8] = b"#[Histogram log format version ";
/// Tags that a log may have; each costs memory.
const MOST_TAGS: usize = 1000;
/// Digits that values are told apart by, at most: more cost memory without telling more.
const MOST_DIGITS: u8 = 3;
/// A histogram that is larger when unpacked is made by nobody.
const MOST_PACKED: usize = 1 << 20;
/// Intervals more than this before the log's start are counted from there (as HistogramLogReader, the reference, has it).
const YEAR: Duration = Duration::from_secs(365 * 86_400);
/// All intervals are of one made-up thread.
const THREAD: (i32, i32) = (1, 1);

/// Imports the log `source`, whose values are in `unit`, into a recording at `to`.
///
/// # Errors
/// It is no such log, of another version, or the recording cannot be written. Then there is no recording.
pub fn import(source: impl Read, unit: Unit, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<Imported, Error> {
    let mut log = Log {
        filling: Filling::new(to, "hlog"),
        unit_ns: unit.ns(),
        base: None,
        start: None,
        tags: BTreeMap::new(),
        deserializer: Deserializer::new(),
        is_coarser: false,
    };
    lines::read(source, progress, &mut log)?;
    log.finish()
}

struct Log {
    filling: Filling,
    unit_ns: u64,
    base: Option<Duration>,
    start: Option<Duration>,
    tags: BTreeMap<String, Hdr<u64>>,
    deserializer: Deserializer,
    /// Whether a histogram had more digits than are kept.
    is_coarser: bool,
}

impl Format for Log {
    fn filling(&mut self) -> &mut Filling {
        &mut self.filling
    }

    fn line(&mut self, text: &[u8], number: u64) -> Result<(), Trouble> {
        if let Some(version) = text.strip_prefix(FORMAT) {
            return match version {
                [b'1', b'.', ..] => Ok(()),
                _ => {
                    let version = String::from_utf8_lossy(version).trim_end_matches(']').to_owned();
                    let what = format!("is an HdrHistogram log of version {version}, which this taut does not know");
                    Err(Error::Instead(what).into())
                }
            };
        }
        // Java's head of the columns is no comment of the format.
        if text.starts_with(b"\"") {
            return Ok(());
        }
        let line = [text, b"\n"].concat();
        match IntervalLogIterator::new(&line).next() {
            None => Ok(()),
            Some(Ok(LogEntry::StartTime(start))) => {
                self.start = Some(start);
                Ok(())
            }
            Some(Ok(LogEntry::BaseTime(base))) => {
                self.base = Some(base);
                Ok(())
            }
            Some(Ok(LogEntry::Interval(interval))) => {
                let tag = interval.tag().map_or(String::new(), |tag| tag.as_str().to_owned());
                let of = self.unpacked(interval.encoded_histogram())?;
                let start = interval.start_timestamp();
                self.interval(&tag, start, start.saturating_add(interval.duration()), &of)
            }
            Some(Err(_)) if number == 1 => Err(Error::Foreign {
                kind: "HdrHistogram interval log",
                why: "its first line is neither a comment nor an interval".to_owned(),
                writer: "HistogramLogWriter or `taut probe --hlog`",
            }
            .into()),
            Some(Err(_)) => Err(Trouble::Damage("is neither a comment nor an interval".to_owned())),
        }
    }
}

impl Log {
    fn unpacked(&mut self, encoded: &str) -> Result<Hdr<u64>, Trouble> {
        let damaged = |why: String| Trouble::Damage(format!("has no readable histogram ({why})"));
        let packed =
            base64::engine::general_purpose::STANDARD.decode(encoded).map_err(|error| damaged(error.to_string()))?;
        if packed.len() > MOST_PACKED {
            return Err(damaged(format!("{} bytes", packed.len())));
        }
        self.deserializer.deserialize(&mut packed.as_slice()).map_err(|error| match error {
            // V0 and V1 of the encoding, which nobody has written since 2015, look so, too.
            DeserializeError::InvalidCookie => damaged("its encoding is not V2, the only one that is read".to_owned()),
            error => damaged(error.to_string()),
        })
    }

    fn interval(&mut self, tag: &str, start: Duration, end: Duration, of: &Hdr<u64>) -> Result<(), Trouble> {
        let (start_ns, end_ns) = (self.since_1970(start)?, self.since_1970(end)?);
        let import = self.filling.at(start_ns)?;
        if !self.tags.contains_key(tag) {
            if self.tags.len() >= MOST_TAGS {
                return Err(Error::TooMany { what: format!("more than {MOST_TAGS} tags") }.into());
            }
            // Two digits at least, or there is no telling quantiles apart; the crate's own bounds are 0 to 5.
            let empty = Hdr::<u64>::new(of.sigfig().clamp(2, MOST_DIGITS));
            let empty = empty.map_err(|error| Trouble::Damage(format!("has no usable histogram ({error})")))?;
            self.tags.insert(tag.to_owned(), empty);
            if self.tags.len() == 1 {
                import.thread(THREAD.0, THREAD.1, "intervals", "hlog")?;
            }
        }
        self.is_coarser |= of.sigfig() > MOST_DIGITS;
        let Some(all) = self.tags.get_mut(tag) else { return Ok(()) };
        all.add(of).map_err(|error| Trouble::Damage(format!("cannot be added to those before ({error})")))?;
        if !of.is_empty() {
            let point = import.name(&format!("{} interval max, ms", named(tag)))?;
            let value = (of.max() as f64 * self.unit_ns as f64 / 1e6).to_bits();
            import.stamp(THREAD, Kind::Value, Row { time_ns: end_ns, id: 0, point, value })?;
        }
        Ok(())
    }

    /// Where an interval's time counts from, as the reference has it.
    fn since_1970(&self, time: Duration) -> Result<u64, Trouble> {
        let base = match (self.base, self.start) {
            (Some(base), _) => base,
            (None, Some(start)) if time.saturating_add(YEAR) < start => start,
            _ => Duration::ZERO,
        };
        let ns = base.checked_add(time).and_then(|time| i64::try_from(time.as_nanos()).ok());
        ns.map(|ns| ns as u64).ok_or_else(|| Trouble::Damage("has a time beyond 2262".to_owned()))
    }

    fn finish(self) -> Result<Imported, Error> {
        let mut import = self.filling.end().map_err(|first| {
            let why = first.map_or(String::new(), |why| format!("; {why}"));
            Error::Empty(format!("no intervals{why}"))
        })?;
        for (tag, of) in &self.tags {
            import.histogram(histogram::durations(named(tag), self.unit_ns, of))?;
        }
        import.note(
            "an interval log keeps distributions, no stamps: there is no telling which message was late, or why"
                .to_owned(),
        );
        if self.is_coarser {
            import.note(format!("of values with more than {MOST_DIGITS} digits, {MOST_DIGITS} were kept"));
        }
        import.finish()
    }
}

/// A name for what has no tag.
fn named(tag: &str) -> &str {
    if tag.is_empty() { "no tag" } else { tag }
}
