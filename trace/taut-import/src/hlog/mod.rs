//! HdrHistogram's interval logs, as its own tools and `taut wakeup --hlog` write them: a histogram an interval, by tag.
//! They become a distribution a tag, and a signal of each interval's largest value.

mod sum;

use std::{collections::BTreeMap, io::Read, path::Path, time::Duration};

use sum::Sum;
use taut_hlog::{Interval, Line, LineError};
use taut_recording::Kind;

use crate::{
    Error, Imported, Unit,
    error::Trouble,
    lines::{self, Filling, Format},
    writing::Row,
};

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
        match taut_hlog::line(text) {
            Ok(Line::Comment) => Ok(()),
            Ok(Line::StartTime(start)) => {
                self.start = Some(start);
                Ok(())
            }
            Ok(Line::BaseTime(base)) => {
                self.base = Some(base);
                Ok(())
            }
            Ok(Line::Interval(interval)) => self.interval(&interval),
            Err(error @ LineError::Version(_)) => Err(Error::Instead(error.to_string()).into()),
            Err(LineError::Foreign) if number == 1 => Err(Error::Foreign {
                kind: "HdrHistogram interval log",
                why: "its first line is neither a comment nor an interval".to_owned(),
                writer: "HistogramLogWriter or `taut wakeup --hlog`",
            }
            .into()),
            Err(error) => Err(Trouble::Damage(error.to_string())),
        }
    }
}

impl Log {
    fn interval(&mut self, interval: &Interval) -> Result<(), Trouble> {
        let Interval { tag, start, length, histogram: of } = interval;
        let (start_ns, end_ns) = (self.since_1970(*start)?, self.since_1970(start.saturating_add(*length))?);
        let import = self.filling.at(start_ns)?;
        if !self.tags.contains_key(tag) {
            if self.tags.len() >= MOST_TAGS {
                return Err(Error::TooMany { what: format!("more than {MOST_TAGS} tags") }.into());
            }
            let sum = Sum::like(of).map_err(|why| Trouble::Damage(LineError::Histogram(why).to_string()))?;
            self.tags.insert(tag.clone(), sum);
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

/// A name for what has no tag.
fn named(tag: &str) -> &str {
    if tag.is_empty() { "no tag" } else { tag }
}
