//! HdrHistogram interval logs: written while probing, read back side by side.

use std::{
    collections::BTreeMap,
    fs::File,
    io::LineWriter,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use taut_hlog::{self as hlog, HlogWriter, Interval};
use taut_recording::Shown;
use taut_wakeup::{CpuSeries, Event, Findings, Series, Variant};

/// The file of a log. Every interval is one line, written when it is whole: whatever ends the probe leaves a readable log.
pub fn create(path: &Path) -> Result<LineWriter<File>> {
    if path == Path::new("-") {
        bail!("--hlog -: name a file; stdout has the result");
    }
    Ok(LineWriter::new(File::create(path).with_context(|| path.shown())?))
}

/// Writes an event down, if it is an interval.
pub fn take(log: &mut HlogWriter<'_, LineWriter<File>>, event: &Event<'_>) -> Result<()> {
    let Event::Interval { tag, start, length, histogram } = event else { return Ok(()) };
    hlog::write(log, tag, *start, *length, histogram).context("interval log")
}

/// The logs as if they had been probed: a variant for each file, a series for each of its tags.
pub fn read(paths: &[PathBuf]) -> Result<Findings> {
    let mut findings = Findings::default();
    for path in paths {
        let bytes = std::fs::read(path).with_context(|| path.shown())?;
        let intervals = hlog::read(&bytes).with_context(|| path.shown())?;
        let variant = variant(path.shown(), &intervals);
        let measured = intervals.iter().map(|i| i.start.saturating_add(i.length).as_secs_f64()).fold(0.0, f64::max);
        findings.measured_s += measured - intervals[0].start.as_secs_f64();
        findings.variants.push(variant);
    }
    findings.notes.push(
        "read from interval logs: quantiles to 0.1 %, without the order in time that separates bursts; wakeups only"
            .into(),
    );
    Ok(findings)
}

fn variant(label: String, intervals: &[Interval]) -> Variant {
    let begin = intervals.iter().map(|i| i.start).min().unwrap_or_default();
    let mut tags: BTreeMap<&str, Series> = BTreeMap::new();
    for interval in intervals {
        let series = tags.entry(&interval.tag).or_default();
        let histogram = interval.histogram.whole();
        series.wakeups.add_histogram(&histogram);
        let end = interval.start.saturating_add(interval.length) - begin;
        series.worst.push((end.as_secs_f64(), histogram.max()));
    }
    let mut all = Series::default();
    tags.values().for_each(|series| all.add(series));
    let cpu = |tag: &str| tag.rsplit_once("cpu").and_then(|(_, number)| number.parse().ok());
    let cpus = tags.iter().map(|(tag, series)| CpuSeries { cpu: cpu(tag), series: series.clone() }).collect();
    Variant { label, cpus, all, ..Variant::default() }
}
