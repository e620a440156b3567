//! What `cyclictest` of rt-tests writes: its histogram (`-h`, `-H`), its JSON (`--json`), its list of samples (`-v`). A
//! distribution of wakeup latency a thread. Values above its histogram are counted as such, never dropped.

use std::{
    collections::BTreeMap,
    io::{Read, Seek},
    path::Path,
};

use serde::Deserialize;
use taut_recording::Histogram;

use crate::{
    Error, Imported, Unit,
    histogram::push,
    lines::{Line, Lines},
    writing::Import,
};

/// The version of the JSON form, which rt-tests has had since it has that form.
const JSON_VERSION: u64 = 1;
/// A larger JSON file is no cyclictest's: it is read as a whole.
const MOST_JSON: u64 = 64 << 20;
const MOST_THREADS: usize = 10_000;
/// Buckets of all threads that hold something.
const MOST_BUCKETS: usize = 4_000_000;

/// Imports what cyclictest wrote, in `unit` where the file does not say it, into a recording at `to`.
///
/// # Errors
/// It is none of cyclictest's forms, of another version, or the recording cannot be written. Then there is no
/// recording.
pub fn import<R: Read + Seek>(
    mut source: R,
    unit: Unit,
    to: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Imported, Error> {
    let mut head = Vec::new();
    (&mut source).take(64).read_to_end(&mut head)?;
    source.rewind()?;
    let found = match head.trim_ascii_start().first() {
        Some(b'{') => json(source)?,
        _ => text(source, unit, progress)?,
    };
    let mut import = Import::begin(to, "cyclictest", 0)?;
    found.damage.into_iter().for_each(|damage| import.damage(damage));
    for thread in found.threads.into_values() {
        import.histogram(thread.histogram(found.unit_ns))?;
    }
    import.note(
        "cyclictest keeps distributions, no stamps: there is no telling which wakeup was late, or why".to_owned(),
    );
    import.finish()
}

/// What a file says.
struct Found {
    unit_ns: u64,
    threads: BTreeMap<usize, Thread>,
    damage: Vec<String>,
}

/// One thread's figures, in the file's unit.
#[derive(Default)]
struct Thread {
    name: String,
    /// Count by whole number of units.
    buckets: BTreeMap<u64, u64>,
    min: Option<u64>,
    max: Option<u64>,
    overflow: u64,
    /// How many buckets the histogram has, empty ones too.
    reach: u64,
}

impl Thread {
    fn histogram(self, unit_ns: u64) -> Histogram {
        let ns = |value: u64| value.saturating_mul(unit_ns);
        // A latency is cut to whole units.
        let to_end = |value: u64| ns(value).saturating_add(unit_ns - 1);
        let first_beyond = self.buckets.keys().next_back().map_or(0, |last| last.saturating_add(1));
        // What all samples reach, those beyond the histogram reach as well.
        let overflow_from =
            self.reach.max(first_beyond).max(if self.buckets.is_empty() { self.min.unwrap_or(0) } else { 0 });
        let mut histogram = Histogram {
            name: self.name,
            unit: "ns".to_owned(),
            min: self.min.map(ns),
            max: self.max.map(to_end),
            overflow: self.overflow,
            overflow_from: ns(overflow_from),
            ..Histogram::default()
        };
        self.buckets.into_iter().for_each(|(value, n)| push(&mut histogram, ns(value), to_end(value), n));
        histogram
    }
}

/// Of `--json`, what matters here.
#[derive(Deserialize)]
struct Json {
    /// 1 for nanoseconds.
    #[serde(default)]
    resolution_in_ns: u64,
    thread: BTreeMap<usize, JsonThread>,
}

#[derive(Deserialize)]
struct JsonThread {
    histogram: BTreeMap<u64, u64>,
    cycles: u64,
    min: u64,
    max: u64,
    cpu: Option<u64>,
}

fn json(source: impl Read) -> Result<Found, Error> {
    let foreign = |why: String| Error::Foreign { kind: "file of cyclictest --json", why, writer: "cyclictest" };
    let value: serde_json::Value = serde_json::from_reader(std::io::BufReader::new(source.take(MOST_JSON)))
        .map_err(|error| foreign(error.to_string()))?;
    if value.get("traceEvents").is_some() {
        return Err(Error::Instead("is a Chrome trace; import it with `taut import chrome`".to_owned()));
    }
    match value.get("file_version").and_then(serde_json::Value::as_u64) {
        Some(JSON_VERSION) => {}
        Some(other) => {
            return Err(Error::Instead(format!("is of file_version {other}, where this taut knows {JSON_VERSION}")));
        }
        None => return Err(foreign("it has no \"file_version\"".to_owned())),
    }
    let Json { resolution_in_ns, thread } =
        serde_json::from_value(value).map_err(|error| foreign(error.to_string()))?;
    let unit_ns = if resolution_in_ns == 1 { 1 } else { Unit::Microseconds.ns() };
    let mut damage = Vec::new();
    let threads = thread.into_iter().map(|(number, of)| {
        let within = of.histogram.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        // The JSON form counts what was measured, and leaves out what its histogram does not hold.
        let overflow = of.cycles.checked_sub(within).unwrap_or_else(|| {
            damage.push(format!("thread {number} has {within} values in its histogram and {} cycles", of.cycles));
            0
        });
        let name = of.cpu.map_or(format!("thread {number}"), |cpu| format!("thread {number} (cpu {cpu})"));
        let (min, max) = if of.cycles > 0 { (Some(of.min), Some(of.max)) } else { (None, None) };
        let buckets = of.histogram.into_iter().filter(|(_, count)| *count > 0).collect();
        (number, Thread { name, buckets, min, max, overflow, reach: 0 })
    });
    let threads = threads.collect();
    Ok(Found { unit_ns, threads, damage })
}

fn text(source: impl Read, unit: Unit, progress: &mut dyn FnMut(u64)) -> Result<Found, Error> {
    let mut columns: Vec<Thread> = Vec::new();
    let mut buckets = 0;
    // -v has no columns: each line names its thread.
    let mut listed: BTreeMap<usize, Thread> = BTreeMap::new();
    let (mut has_head, mut threads) = (false, None);
    let mut damage = Vec::new();
    let mut lines = Lines::new(source, progress);
    while let Some(Line { number, text, is_ended }) = lines.next()? {
        let text = String::from_utf8_lossy(text.unwrap_or_default());
        let footer = |name: &str| text.strip_prefix(name).map(numbers);
        if text == "# Histogram" {
            if has_head {
                damage.push(format!("line {number} begins a second histogram; only the first was read"));
                break;
            }
            has_head = true;
        } else if let Some(values) = footer("# Min Latencies:") {
            threads = Some(values.len());
            columns.iter_mut().zip(values).for_each(|(thread, min)| thread.min = Some(min));
        } else if let Some(values) = footer("# Max Latencies:") {
            columns.iter_mut().zip(values).for_each(|(thread, max)| thread.max = Some(max));
        } else if let Some(values) = footer("# Histogram Overflows:") {
            columns.iter_mut().zip(values).for_each(|(thread, overflow)| thread.overflow = overflow);
        } else if text.starts_with('#') {
            continue;
        } else if let Some((thread, value)) = sample(&text) {
            if thread >= MOST_THREADS {
                return Err(Error::TooMany { what: format!("more than {MOST_THREADS} threads") });
            }
            let of = listed.entry(thread).or_default();
            let count = of.buckets.entry(value).or_default();
            buckets += usize::from(*count == 0);
            *count += 1;
            (of.min, of.max) = (Some(of.min.map_or(value, |min| min.min(value))), of.max.max(Some(value)));
        } else if let Some((value, counts)) = row(&text).filter(|_| has_head) {
            if !is_ended {
                damage.push(format!("line {number}, the last, is truncated"));
                break;
            }
            if counts.len() > MOST_THREADS {
                return Err(Error::TooMany { what: format!("more than {MOST_THREADS} threads") });
            }
            columns.resize_with(columns.len().max(counts.len()), Thread::default);
            for (thread, count) in columns.iter_mut().zip(counts) {
                thread.reach = thread.reach.max(value.saturating_add(1));
                if count > 0 {
                    buckets += usize::from(thread.buckets.insert(value, count).is_none());
                }
            }
        }
        if buckets > MOST_BUCKETS {
            return Err(Error::TooMany { what: format!("more than {MOST_BUCKETS} different latencies") });
        }
    }
    if !columns.is_empty() {
        match threads {
            // -H adds a column, the sum of the others.
            Some(threads) => columns.truncate(threads),
            None => damage.push(
                "the file ends before its summary: minimum, maximum, and what was above the histogram are not known"
                    .to_owned(),
            ),
        }
        listed = columns.into_iter().enumerate().collect();
    }
    if listed.is_empty() {
        return Err(Error::Instead(
            "has no histogram of cyclictest's; run it with -q -h 1000, with --json=FILE, or with -v".to_owned(),
        ));
    }
    listed.iter_mut().for_each(|(number, thread)| thread.name = format!("thread {number}"));
    Ok(Found { unit_ns: unit.ns(), threads: listed, damage })
}

/// `000012 000001` tab `000000`: a latency, and how often each thread saw it.
fn row(text: &str) -> Option<(u64, Vec<u64>)> {
    let mut words = text.split_ascii_whitespace().map(str::parse);
    let value = words.next()?.ok()?;
    let counts = words.collect::<Result<Vec<u64>, _>>().ok()?;
    (!counts.is_empty()).then_some((value, counts))
}

/// `      1:      42:      57`: thread, cycle, latency.
fn sample(text: &str) -> Option<(usize, u64)> {
    let mut words = text.split(':').map(str::trim);
    let (thread, cycle, latency) = (words.next()?, words.next()?, words.next()?);
    let is_one = words.next().is_none() && cycle.parse::<u64>().is_ok();
    Some((thread.parse().ok()?, latency.parse().ok()?)).filter(|_| is_one)
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect()
}
