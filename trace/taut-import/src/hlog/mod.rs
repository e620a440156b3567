//! HdrHistogram's interval logs, as its own tools and `taut wakeup --hlog` write them: a histogram an interval, by tag.
//! They become a distribution a tag, and a signal of each interval's largest value.

mod encoding;
mod sum;

use std::{collections::BTreeMap, io::Read, path::Path, time::Duration};

use base64::Engine as _;
use encoding::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use sum::Sum;
use taut_recording::Kind;

use crate::{
    Error, Imported, Unit,
    error::Trouble,
    lines::{self, Filling, Format},
    writing::Row,
};

/// The head line of every version of the format.
const FORMAT: &[u8] = b"#[Histogram log format version ";
/// Tags that a log may have; each costs memory.
const MOST_TAGS: usize = 1000;
/// Buckets that all tags may have together, which hold something; each costs memory.
const MOST_BUCKETS: usize = 1 << 21;
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
        buckets: 0,
    };
    lines::read(source, progress, &mut log)?;
    log.finish()
}

struct Log {
    filling: Filling,
    unit_ns: u64,
    base: Option<Duration>,
    start: Option<Duration>,
    tags: BTreeMap<String, Sum>,
    /// Of all tags together.
    buckets: usize,
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
                let of = unpacked(interval.encoded_histogram())?;
                let start = interval.start_timestamp();
                self.interval(&tag, start, start.saturating_add(interval.duration()), &of)
            }
            Some(Err(_)) if number == 1 => Err(Error::Foreign {
                kind: "HdrHistogram interval log",
                why: "its first line is neither a comment nor an interval".to_owned(),
                writer: "HistogramLogWriter or `taut wakeup --hlog`",
            }
            .into()),
            Some(Err(_)) => Err(Trouble::Damage("is neither a comment nor an interval".to_owned())),
        }
    }
}

impl Log {
    fn interval(&mut self, tag: &str, start: Duration, end: Duration, of: &Histogram) -> Result<(), Trouble> {
        let (start_ns, end_ns) = (self.since_1970(start)?, self.since_1970(end)?);
        let import = self.filling.at(start_ns)?;
        if !self.tags.contains_key(tag) {
            if self.tags.len() >= MOST_TAGS {
                return Err(Error::TooMany { what: format!("more than {MOST_TAGS} tags") }.into());
            }
            self.tags.insert(tag.to_owned(), Sum::like(of).map_err(unreadable)?);
            if self.tags.len() == 1 {
                import.thread(THREAD.0, THREAD.1, "intervals", "hlog")?;
            }
        }
        let Some(sum) = self.tags.get_mut(tag) else { return Ok(()) };
        let before = sum.buckets();
        sum.add(of).map_err(Trouble::Damage)?;
        self.buckets += sum.buckets() - before;
        if self.buckets > MOST_BUCKETS {
            return Err(Error::TooMany { what: format!("more than {MOST_BUCKETS} different values") }.into());
        }
        if !of.counts.is_empty() {
            let point = import.name(&format!("{} interval max, ms", named(tag)))?;
            let value = (of.max() * self.unit_ns as f64 / 1e6).to_bits();
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
            import.histogram(of.recorded(named(tag), self.unit_ns))?;
        }
        import.note(
            "an interval log keeps distributions, no stamps: there is no telling which message was late, or why"
                .to_owned(),
        );
        import.finish()
    }
}

fn unpacked(encoded: &str) -> Result<Histogram, Trouble> {
    let packed = base64::engine::general_purpose::STANDARD.decode(encoded);
    packed.map_err(|error| error.to_string()).and_then(|packed| encoding::decode(&packed)).map_err(unreadable)
}

fn unreadable(why: String) -> Trouble {
    Trouble::Damage(format!("has no readable histogram ({why})"))
}

/// A name for what has no tag.
fn named(tag: &str) -> &str {
    if tag.is_empty() { "no tag" } else { tag }
}
