//! A replay as a document: what would have tripped, and why; speed over time with the limit, trips marked.

use taut_document::{
    Axis, AxisScale, Block, Cell, Chart, Curve, Document, Mark, Quantity, Section, Show, Table, Text, Tone, units,
};
use taut_replay::{Judgement, Replay, Run};

use super::{GuardShown, sentences};

/// Beyond this many frames a curve keeps each bucket's largest speed.
const BUCKETS: usize = 3000;
/// Trips told of ours, and of each other; a page has those that were kept, up to a hundred.
const OURS_TOLD: usize = 20;
const TRIPS_TOLD: usize = 3;
/// Where what nobody's arm can do would flatten all else: the axis is logarithmic then, and nothing lies below its foot.
const FLAT: f64 = 5.0;
const FOOT: f64 = 0.05;

/// What `taut guard replay` shows.
pub fn guard_document(shown: &GuardShown<'_>) -> Document {
    let replay = shown.replay;
    let measured = [
        shown.run.to_owned(),
        format!("stream {:?}", replay.stream),
        units::quantity(replay.frames as u64, "frame"),
        format!("the longest time between two {}", units::duration(replay.longest_gap_ns)),
        format!("parameters {:016x}", replay.parameters.hash()),
    ];
    let mut sections = vec![
        Section::new(1, "Speed over time", vec![speed(replay).into()]).shown(Show::Page),
        Section::new(1, "What would have tripped", overview(replay)),
        Section::new(1, "Why", Vec::new()),
    ];
    let reasons = replay.runs.iter().enumerate().filter(|(_, run)| !run.trips.is_empty());
    sections.extend(reasons.map(|(n, run)| why(run, if n == 0 { OURS_TOLD } else { TRIPS_TOLD })));
    if replay.runs.iter().all(|run| run.trips.is_empty()) {
        sections.last_mut().expect("a section was added above").blocks.push(Block::Text("Nothing tripped.".into()));
    }
    if let Some(ours) = replay.runs.first() {
        sections.push(Section::new(1, "What the guard counted", vec![Block::Table(counted(ours))]));
    }
    if let Some((_, toml)) = shown.tuned {
        let blocks = vec![Block::Code(toml.to_owned())];
        sections.push(Section::new(1, "Parameters for this stream", blocks).shown(Show::Page));
    }
    let damage = shown.damage.iter().map(|damage| format!("Damaged: {damage}."));
    let incomplete = (replay.incomplete > 0)
        .then(|| format!("Frames left out because a value of them was lost: {}.", units::count(replay.incomplete)));
    Document {
        title: "guard replay".into(),
        measured: measured.join(" · ").into(),
        headline: sentences::headline(replay).into(),
        sections,
        notes: damage.chain(incomplete).map(Text::from).collect(),
        reproduce: vec![shown.command.to_owned()],
    }
}

fn overview(replay: &Replay) -> Vec<Block> {
    let head = ["run", "speed", "stale", "fault", "frames", "largest", "false", "found", "missed", "p50", "max"];
    let mut table = Table::new(head);
    let columns = if replay.truth.is_some() { head.len() } else { 6 };
    table.columns.truncate(columns);
    for run in &replay.runs {
        let n = |n: usize| Cell::Count(n as u64);
        let own = |trips: usize| if run.is_guard { n(trips) } else { Cell::Missing };
        let Judgement { false_trips, found, missed, delays_ns: mut delays, .. } =
            run.judgement.clone().unwrap_or_default();
        delays.sort_unstable();
        let row = table.row([
            Cell::text(run.name.as_str()),
            n(run.overspeed_trips),
            own(run.stale_trips),
            own(run.fault_trips),
            Cell::Count(run.frames_over),
            Cell::Number(run.largest),
            n(false_trips),
            n(found),
            n(missed),
            Cell::time(delays.get(delays.len().saturating_sub(1) / 2).copied()),
            Cell::time(delays.last().copied()),
        ]);
        row.cells.truncate(columns);
    }
    let truth = replay.truth.map_or(String::new(), |truth| {
        let overspeeds = units::quantity(replay.overspeeds.len() as u64, "true overspeed");
        format!(" Truth: {truth}; {overspeeds}. found, missed: of these; p50, max: from their beginning to the trip.")
    });
    let below = format!(
        "Trips, frames after which the speed stood above the limit, and the largest speed as a share of it. One trip of a \
         kind a second is counted at most.{truth}"
    );
    vec![Block::Table(table), Block::Text(below.into())]
}

fn why(run: &Run, told: usize) -> Section {
    let mut table = Table { shown: told, ..Table::new(["at", "trip"]) };
    table.columns[1].wraps = true;
    for found in &run.trips {
        let at = sentences::seconds(found.at_ns);
        table.row([Cell::text(at), Cell::text(sentences::trip(found))]);
    }
    let mut blocks = vec![Block::Table(table)];
    let rest = sentences::trips(run).saturating_sub(run.trips.len());
    if rest > 0 {
        blocks.push(Block::Text(format!("{} more were counted and not kept.", units::count(rest as u64)).into()));
    }
    Section::new(2, &run.name, blocks)
}

fn counted(ours: &Run) -> Table {
    let mut table = Table::new(["what became of the frames", "frames"]);
    if ours.source_error_ns > 0 {
        table.caption = format!("e stood at {} at its widest", units::duration(ours.source_error_ns)).into();
    }
    for (name, n) in &ours.counters {
        table.row([Cell::text(name.replace('_', " ")), Cell::Count(*n)]);
    }
    table
}

/// Every run's speed as a share of the limit, and its trips.
fn speed(replay: &Replay) -> Chart {
    let most = replay.runs.iter().map(|run| run.largest).fold(1.1, f64::max);
    let is_log = most > FLAT;
    let place = |share: f64| if is_log { share.max(FOOT) } else { share };
    let speeds = replay.runs.iter().zip(0..).map(|(run, at)| Curve {
        name: run.name.clone(),
        xy: largest(run).into_iter().map(|(at_ns, share)| (at_ns as f64, place(share))).collect(),
        tone: Tone::Series(at),
        quiet: at > 0,
        ..Curve::default()
    });
    // A stop for silence has no speed: it stands on the limit.
    let height = |share: f64| if share > 0.0 { place(share) } else { 1.0 };
    let trips = replay.runs.iter().zip(0..).filter(|(run, _)| !run.trips.is_empty()).map(|(run, at)| Curve {
        name: run.name.clone(),
        mark: Mark::Points,
        xy: run.trips.iter().map(|trip| (trip.at_ns as f64, height(trip.share))).collect(),
        tone: Tone::Series(at),
        ..Curve::default()
    });
    let curves: Vec<Curve> = speeds.chain(trips).collect();
    let named = replay.runs.iter().take(3);
    let named: Vec<String> =
        named.map(|run| format!("{} at most {}", run.name, sentences::share(run.largest))).collect();
    let dots = if curves.len() > replay.runs.len() { "" } else { ", of which there are none" };
    let bucket = replay.runs.first().map_or(0, |run| run.series.len()).div_ceil(BUCKETS).max(1) as u64;
    let drawn = match bucket {
        1 => String::new(),
        frames => format!(" Of every {} the largest is drawn.", units::quantity(frames, "frame")),
    };
    Chart {
        title: "Speed as a share of its limit".into(),
        finding: format!("{}. Dots are trips{dots}.{drawn}", named.join(", ")).into(),
        x: Axis { label: "time".into(), ..Axis::new(Quantity::Instant, AxisScale::Linear) },
        y: Axis {
            label: "speed / limit".into(),
            range: (!is_log).then_some((0.0, 1.1 * most)),
            ..Axis::new(Quantity::Plain, if is_log { AxisScale::Log } else { AxisScale::Linear })
        },
        curves,
        limits: vec![(1.0, "limit".into())],
        wide: true,
        ..Chart::default()
    }
}

/// (when, largest share) of each bucket of frames.
fn largest(run: &Run) -> Vec<(u64, f64)> {
    let bucket = run.series.len().div_ceil(BUCKETS).max(1);
    let largest =
        run.series.chunks(bucket).filter_map(|points| points.iter().max_by(|a, b| a.share.total_cmp(&b.share)));
    largest.map(|point| (point.at_ns, point.share)).collect()
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, terminal};

    use super::*;
    use crate::guard::sample;

    #[test]
    fn the_terminal_replay() {
        sample::with(|shown| insta::assert_snapshot!(terminal(&guard_document(shown), Style::default())));
    }

    #[test]
    fn the_sample_page_for_the_browser_tests_is_written() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/guard-replay.html");
        sample::with(|shown| std::fs::write(path, crate::interactive(&guard_document(shown))).unwrap());
    }

    #[test]
    fn a_long_series_keeps_its_largest() {
        sample::with(|shown| {
            let mut run = shown.replay.runs[0].clone();
            let of = |n: u64| taut_replay::Point { at_ns: n * 1_000_000, share: (n % 7) as f64 * 0.1 };
            run.series = (0..100_000).map(of).collect();
            run.series[70_001].share = 9.0;
            let kept = largest(&run);
            assert!(kept.len() <= BUCKETS && kept.contains(&(70_001_000_000, 9.0)));
        });
    }
}
