//! Metrics from stamps: each trial is recorded by taut, and a metric is a figure of the time between two points that
//! its messages pass.

use std::{collections::BTreeMap, fs, path::Path};

use taut_analysis::{Analyzer, Chain, Config, DeclaredChain, LOST_MAX};
use taut_recording::{Contents, Ending};

use crate::{Figure, Lab, Metric, Stamps};

/// What the recording of a trial says.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Those whose points no message passed are not there.
    pub metrics: BTreeMap<String, f64>,
    /// Why no metric can be had of it.
    pub flaw: Option<String>,
    /// Of the command, where it was recorded as one.
    pub exit_code: Option<i32>,
}

/// Reads the recording of a trial. `is_cut`: the lab itself ended its recorder, with the command.
pub(crate) fn told(lab: &Lab, recording: &Path, is_cut: bool) -> Told {
    read(lab, recording, is_cut).unwrap_or_else(|flaw| Told { flaw: Some(flaw), ..Told::default() })
}

/// Why nothing can be concluded from a recording, if so. Kernel events are in no metric.
fn flaw(contents: &Contents, seen: &Ending, is_cut: bool) -> Option<String> {
    let lost = seen.lost_stamps + seen.lost_ros_events;
    let all = lost + seen.stamps + seen.ros_events;
    if lost as f64 > LOST_MAX * all as f64 {
        return Some(format!("{lost} of {all} stamps were lost"));
    }
    if is_cut {
        return None;
    }
    if contents.ending.is_none() {
        return Some("its recording has no end: the recorder was killed".to_owned());
    }
    contents.damage.first().map(|damage| format!("its recording is damaged: {damage}"))
}

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

fn read(lab: &Lab, recording: &Path, is_cut: bool) -> Result<Told, String> {
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
    let mut told = Told::default();
    let analysis = loop {
        let mut config = Config { chains: chains.clone(), ..Config::default() };
        config.explain.worst = 0;
        let mut analyzer = Analyzer::new(config);
        let mut seen = Ending::default();
        let read = taut_recording::read(&bytes, &mut |record| {
            seen.count(&record);
            analyzer.record(&record);
        });
        let read = read.map_err(|error| format!("{}: {error}", recording.display()))?;
        told.exit_code = read.ending.as_ref().and_then(|ending| ending.exit_code);
        told.flaw = flaw(&read, &seen, is_cut);
        if told.flaw.is_some() {
            return Ok(told);
        }
        let damage = read.damage.iter().map(ToString::to_string).collect();
        match analyzer.finish(read.info, read.ending, damage, bytes.len() as u64) {
            Ok(analysis) => break analysis,
            Err(taut_analysis::Error::UnknownPoint { chain, .. }) => chains.retain(|one| one.name != chain),
            Err(taut_analysis::Error::Empty { .. }) => return Ok(told),
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
    told.metrics = wanted.iter().filter_map(one).collect();
    Ok(told)
}

#[cfg(test)]
mod tests {
    use taut_recording::{Info, Lost, Name, Record, StampBatch, Writer};

    use super::*;

    const LAB: &str = r#"
trials = 1
[trial]
command = "true"
timeout_s = 20
report = "stamps"
[metrics.messages]
stamps = { points = ["a", "b"], figure = "messages" }
[[scenario]]
name = "none"
"#;
    const MESSAGES: u64 = 2_000;

    /// Messages from a to b, on CLOCK_MONOTONIC, of which so many other stamps were lost.
    fn recording(path: &Path, lost: u64) {
        let mut writer = Writer::create(path, &Info::default()).unwrap();
        for (id, name) in [(1, "a"), (2, "b")] {
            writer.write(&Record::Name(Name { id, name: name.into() })).unwrap();
        }
        let mut batch = StampBatch { pid: 1, tid: 1, counter: 2, ..StampBatch::default() };
        for (id, point) in (1..=MESSAGES).flat_map(|id| [(id, 1), (id, 2)]) {
            batch.ticks.push(id * 10_000_000 + u64::from(point) * 1_000_000);
            batch.message_id.push(id);
            batch.point.push(point);
            batch.kind.push(1);
            batch.value.push(0);
        }
        writer.write(&Record::Stamps(batch)).unwrap();
        writer.write(&Record::Lost(Lost { count: lost, place: "1/1".into(), ..Lost::default() })).unwrap();
        writer.finish(&Ending { exit_code: Some(7), ..Ending::default() }).unwrap();
    }

    /// Of a file with these bytes.
    fn of(bytes: &[u8], is_cut: bool) -> Told {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trial.mcap");
        fs::write(&path, bytes).unwrap();
        told(&Lab::parse(LAB, Path::new("lab.toml")).unwrap(), &path, is_cut)
    }

    fn bytes(lost: u64) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trial.mcap");
        recording(&path, lost);
        fs::read(path).unwrap()
    }

    #[test]
    fn metrics_are_of_a_recording_that_is_whole() {
        let whole = of(&bytes(0), false);
        assert_eq!((whole.flaw, whole.exit_code), (None, Some(7)));
        assert!(whole.metrics["messages"] > 0.9 * MESSAGES as f64);
        // A thousandth may be lost: 4 of 4,004.
        let few = of(&bytes(4), false);
        assert!(few.flaw.is_none() && few.metrics["messages"] > 0.9 * MESSAGES as f64, "{few:?}");
        let many = of(&bytes(5), false);
        assert_eq!(many.flaw.as_deref(), Some("5 of 4005 stamps were lost"));
        assert!(many.metrics.is_empty());
    }

    #[test]
    fn what_was_cut_or_damaged_has_no_metrics() {
        let whole = bytes(0);
        let cut = of(&whole[..whole.len() / 2], false);
        assert!(cut.flaw.is_some() && cut.metrics.is_empty(), "{cut:?}");
        let chunk = whole.windows(4).position(|window| window == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
        let mut damaged = whole.clone();
        damaged[chunk + 8] ^= 0xff;
        let damaged = of(&damaged, false);
        assert!(damaged.flaw.is_some() && damaged.metrics.is_empty(), "{damaged:?}");
        let missing = told(&Lab::parse(LAB, Path::new("lab.toml")).unwrap(), Path::new("no/trial.mcap"), true);
        assert!(missing.flaw.is_some_and(|flaw| flaw.starts_with("no/trial.mcap: ")));
    }

    #[test]
    fn that_the_lab_itself_ended_a_recording_is_no_flaw() {
        let contents = Contents::default();
        assert!(flaw(&contents, &Ending::default(), false).is_some_and(|flaw| flaw.contains("was killed")));
        assert_eq!(flaw(&contents, &Ending::default(), true), None);
        let lost = Ending { stamps: 10, lost_stamps: 90, ..Ending::default() };
        assert_eq!(flaw(&contents, &lost, true).as_deref(), Some("90 of 100 stamps were lost"));
    }
}
