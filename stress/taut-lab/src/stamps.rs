//! Metrics from stamps: each trial is recorded by taut, and a metric is a figure of the time between two points that
//! its messages pass.

use std::{collections::BTreeMap, fs, path::Path};

use taut_analysis::{Analyzer, Chain, Config, DeclaredChain};

use crate::{Figure, Lab, Metric, Stamps};

impl Figure {
    fn of(self, chain: &Chain) -> Option<f64> {
        let times = &chain.end_to_end.distribution;
        let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
        match self {
            Figure::P50 => ms(times.p50_ns),
            Figure::P90 => ms(times.p90_ns),
            Figure::P99 => ms(times.p99_ns),
            Figure::P999 => ms(times.p999_ns),
            Figure::Max => ms(times.max_ns),
            Figure::Messages => Some(times.n as f64),
            Figure::LatePerMillion => {
                let lost = chain.messages.saturating_sub(times.n) as f64;
                Some(1e6 * (chain.missed? as f64 + lost) / chain.messages.max(1) as f64)
            }
        }
    }

    /// Whether it is a time, in ms.
    fn is_time(self) -> bool {
        !matches!(self, Figure::Messages | Figure::LatePerMillion)
    }
}

/// Whether the metric's unit is one that stamps come in: what to write, if not.
pub(crate) fn wrong(metric: &Metric) -> Option<(&'static str, String)> {
    let stamps = metric.stamps.as_ref()?;
    if stamps.points.len() < 2 {
        return Some(("stamps.points", "write at least a first and a last point".into()));
    }
    if (stamps.figure == Figure::LatePerMillion) != stamps.late_ms.is_some_and(|ms| ms > 0.0) {
        return Some(("stamps.late_ms", "belongs to figure = \"late_per_million\", and is above 0".into()));
    }
    let is_known = metric.unit.is_empty() || ["ms", "s", "µs", "us"].contains(&metric.unit.as_str());
    (stamps.figure.is_time() && !is_known).then(|| ("unit", "of a time from stamps is s, ms or µs".into()))
}

/// The metrics that a trial's recording tells. One whose points no message passed is not there.
///
/// # Errors
/// A recording that cannot be read.
pub(crate) fn metrics(lab: &Lab, recording: &Path) -> Result<BTreeMap<String, f64>, String> {
    let wanted: Vec<(&String, &Metric, &Stamps)> =
        lab.metrics.iter().filter_map(|(name, metric)| Some((name, metric, metric.stamps.as_ref()?))).collect();
    let mut chains: Vec<DeclaredChain> = wanted
        .iter()
        .map(|(name, _, stamps)| DeclaredChain {
            name: (*name).clone(),
            points: stamps.points.clone(),
            deadline_ns: stamps.late_ms.map(|ms| (ms * 1e6) as u64),
        })
        .collect();
    let bytes = fs::read(recording).map_err(|error| format!("{}: {error}", recording.display()))?;
    let analysis = loop {
        let mut config = Config { chains: chains.clone(), ..Config::default() };
        config.explain.worst = 0;
        let mut analyzer = Analyzer::new(config);
        let read = taut_recording::read(&bytes, &mut |record| analyzer.record(&record));
        let read = read.map_err(|error| format!("{}: {error}", recording.display()))?;
        match analyzer.finish(read.info, read.ending, Vec::new(), bytes.len() as u64) {
            Ok(analysis) => break analysis,
            Err(taut_analysis::Error::UnknownPoint { chain, .. }) => chains.retain(|one| one.name != chain),
            Err(taut_analysis::Error::Empty { .. }) => return Ok(BTreeMap::new()),
            Err(error) => return Err(format!("{}: {error}", recording.display())),
        }
    };
    let one = |(name, metric, stamps): &(&String, &Metric, &Stamps)| {
        let chain = analysis.chains.iter().find(|chain| chain.declared && chain.name == **name)?;
        let value = stamps.figure.of(chain)?;
        let of_ms = match metric.unit.as_str() {
            "s" => 1e-3,
            "µs" | "us" => 1e3,
            _ => 1.0,
        };
        Some(((*name).clone(), if stamps.figure.is_time() { value * of_ms } else { value }))
    };
    Ok(wanted.iter().filter_map(one).collect())
}
