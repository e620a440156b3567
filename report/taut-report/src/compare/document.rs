//! Recordings side by side as a document.

use std::collections::BTreeMap;

use taut_analysis::{Chain, Delay};
use taut_document::{
    Axis, AxisScale, Block, Cell, Chart, Column, Curve, Document, Finding, LaneItem, LanePiece, LaneRow, Lanes,
    Quantity, Section, Show, Table, Text, Tone, units,
};

use super::{CauseSide, Compared, Comparison, Run, Side};
use crate::{
    Named, cause_classes,
    charts::{self, Percentiles, side_by_side},
    report::{interactive_with, measured, report_document},
};

/// Bins of a distribution on a logarithmic axis.
const BINS_A_DECADE: f64 = 12.0;

/// Several recordings side by side.
pub fn comparison_document(recordings: &[Named<'_>]) -> Document {
    let comparison = Comparison::new(recordings);
    let label = |(at, (run, named)): (u8, (&Run, &Named<'_>))| Finding {
        tone: Tone::Series(at),
        label: run.short.clone(),
        text: Text::default().code(named.name).and(format!(", {}", measured(named.analysis))),
        ..Finding::default()
    };
    let labels = (0..).zip(comparison.runs.iter().zip(recordings)).map(label).collect();
    let mut sections = vec![Section::new(1, "", vec![Block::Findings(labels)])];
    sections.extend(comparison.chains.iter().flat_map(|chain| of_chain(&comparison, chain, recordings)));
    let alone = comparison.alone.iter().map(|alone| {
        let run = &comparison.runs[alone.run].short;
        Block::Text(format!("Only in {run}: {} ({} messages)", alone.chain, units::count(alone.messages)).into())
    });
    let alone: Vec<Block> = alone.collect();
    if !alone.is_empty() {
        sections.push(Section::new(1, "Not in all", alone));
    }
    let notes = comparison.notes.iter().map(String::as_str).chain(["Each by itself: taut report RUN"]);
    Document {
        title: units::quantity(recordings.len() as u64, "recording"),
        headline: comparison.headline.as_str().into(),
        sections,
        notes: notes.map(Text::from).collect(),
        ..Document::default()
    }
}

/// One page: side by side, then each by itself.
pub fn comparison_html(recordings: &[Named<'_>]) -> String {
    page_of(&comparison_document(recordings), recordings)
}

/// A document about recordings, and below it each by itself.
pub(super) fn page_of(document: &Document, recordings: &[Named<'_>]) -> String {
    let each: Vec<Document> = recordings.iter().map(|named| report_document(*named)).collect();
    interactive_with(document, &each)
}

fn of_chain(comparison: &Comparison, chain: &Compared, recordings: &[Named<'_>]) -> Vec<Section> {
    let drawn: Vec<(&str, &Chain)> = chain
        .runs
        .iter()
        .filter_map(|side| {
            let found = recordings[side.run].analysis.chains.iter().find(|of| of.name == chain.name)?;
            (found.end_to_end.distribution.n > 1).then_some((comparison.short(side), found))
        })
        .collect();
    let charts = match drawn.as_slice() {
        [] => vec![Block::Text("Too few messages went all the way for a chart.".into())],
        drawn => vec![distributions(drawn).into(), percentiles(drawn).into()],
    };
    let mut sections = vec![
        Section::new(1, &chain.name, vec![Block::Table(delays(comparison, chain))]),
        Section::new(2, "", charts).shown(Show::Page),
        Section::new(2, "Where the messages ended", vec![Block::Table(ends(comparison, chain))]),
    ];
    if comparison.runs.iter().any(|run| run.trips.is_some()) {
        sections[2].blocks.push(Block::Table(trips(comparison, chain)));
    }
    if !chain.causes.is_empty() {
        let blocks = vec![Block::Lanes(time_by_cause(comparison, chain)), Block::Table(causes(comparison, chain))];
        sections.push(Section::new(2, "Causes", blocks));
    }
    sections
}

/// How late: one row a run.
fn delays(comparison: &Comparison, chain: &Compared) -> Table {
    let head = ["recording", "n", "p50", "p90", "p95", "p99", "p99.9", "max", "PDV p99", "p50 ratio", "p99 ratio"];
    let mut table = Table::new(head).priorities([0, 5, 0, 3, 0, 0, 2, 1, 4, 0, 0]);
    table.columns[5].bar = true;
    let first = comparison.short(&chain.runs[0]);
    let has_pdv = chain.runs.iter().any(|side| side.pdv_p99_ns.is_some());
    let pdv = if has_pdv { " PDV (packet delay variation): latency less the smallest." } else { "" };
    table.caption = format!("End to end.{pdv} Ratios: to {first}").into();
    for (at, side) in chain.runs.iter().enumerate() {
        let d = &side.end_to_end;
        let factor = |of: Option<f64>| match of {
            _ if at == 0 => Cell::Empty,
            of => of.map_or(Cell::Missing, Cell::Ratio),
        };
        table.row([
            Cell::text(comparison.short(side)),
            Cell::Count(d.n),
            Cell::time(d.p50_ns),
            Cell::time(d.p90_ns),
            Cell::time(d.p95_ns),
            Cell::time(d.p99_ns),
            Cell::time(d.p999_ns),
            Cell::time(d.max_ns),
            Cell::time(side.pdv_p99_ns),
            factor(side.p50_ratio),
            factor(side.p99_ratio),
        ]);
    }
    table.without_missing();
    table
}

/// A table with a column, or several, for each run.
fn by_run(comparison: &Comparison, chain: &Compared, first: &str, of_run: &[&str]) -> Table {
    let mut columns = vec![Column { name: first.to_owned(), wraps: true, ..Column::default() }];
    for side in &chain.runs {
        let name = |ending: &&str| Column {
            name: format!("{}{ending}", comparison.short(side)),
            wraps: true,
            bar: ending.is_empty() && of_run.len() == 1,
            ..Column::default()
        };
        columns.extend(of_run.iter().map(name));
    }
    Table { columns, ..Table::default() }
}

/// How the messages ended: one row an outcome.
fn ends(comparison: &Comparison, chain: &Compared) -> Table {
    let mut table = by_run(comparison, chain, "outcome", &[""]);
    let mut row = |name: &str, of: &dyn Fn(usize, &Side) -> Cell| {
        let cells = chain.runs.iter().enumerate().map(|(at, side)| of(at, side));
        table.add([Cell::text(name)].into_iter().chain(cells));
    };
    row("applied", &|_, side| Cell::Of(side.applied, side.messages));
    if chain.runs.iter().any(|side| side.ended_early > 0) {
        row("ended before the last point, none lost", &|_, side| Cell::Of(side.ended_early, side.messages));
    }
    for (reason, of) in &chain.dropped {
        row(&format!("dropped: {reason}"), &|at, side| Cell::Of(of[at], side.messages));
    }
    row("of the dropped: without telling the sender", &|_, side| match side.dropped {
        0 => Cell::Missing,
        all => Cell::Of(side.silent, all),
    });
    row("in flight at start or end", &|_, side| Cell::Of(side.in_flight, side.messages));
    row("unexplained", &|_, side| Cell::Of(side.unexplained, side.messages));
    table
}

/// Trips of the speed guard: not of a chain alone.
fn trips(comparison: &Comparison, chain: &Compared) -> Table {
    let mut table = by_run(comparison, chain, "speed guard", &[""]);
    table.columns.iter_mut().for_each(|column| column.bar = false);
    let mut row = |name: &str, of: fn(&Run) -> Option<u64>| {
        let cells = chain.runs.iter().map(|side| of(&comparison.runs[side.run]).map_or(Cell::Missing, Cell::Count));
        table.add([Cell::text(name)].into_iter().chain(cells));
    };
    row("trips of the speed guard", |run| run.trips);
    row("… of them false", |run| run.false_trips);
    table
}

/// Causes of the tail: its share, and the time in each message.
fn causes(comparison: &Comparison, chain: &Compared) -> Table {
    let mut table = by_run(comparison, chain, "cause", &["", ", each"]);
    let of_run =
        |side: &Side| format!("{} in {}", units::quantity(side.tail_messages, "message"), comparison.short(side));
    let messages: Vec<String> = chain.runs.iter().map(of_run).collect();
    table.caption = format!(
        "Share of the tail's excess (time beyond typical messages), and that excess in each of its messages, on average: {}",
        messages.join(", ")
    )
    .into();
    for row in &chain.causes {
        let cells = row.of.iter().flat_map(|side| match side.tail_share {
            0.0 => [Cell::Missing, Cell::Missing],
            share => [Cell::Share(share), Cell::Time(side.excess_per_message_ns)],
        });
        table.add([Cell::text(row.cause.as_str())].into_iter().chain(cells));
    }
    table
}

/// What a message of the tail spends its time on: a row a run, as long as the time.
fn time_by_cause(comparison: &Comparison, chain: &Compared) -> Lanes {
    let mut item = LaneItem { title: "What a message of the tail spends its time on".into(), ..LaneItem::default() };
    for (row, side) in chain.runs.iter().enumerate() {
        let mut from_ns = 0;
        for cause in &chain.causes {
            let CauseSide { per_message_ns, .. } = cause.of[row];
            let (class, to_ns) = (cause_classes::number(&cause.cause), from_ns + per_message_ns);
            let text = format!("{} {}", cause.cause, units::duration(per_message_ns));
            if per_message_ns > 0 {
                item.pieces.push(LanePiece { row, from_ns, to_ns, class, text });
            }
            from_ns = to_ns;
        }
        item.to_ns = item.to_ns.max(from_ns);
        item.rows.push(LaneRow { name: comparison.short(side).to_owned(), ..LaneRow::default() });
    }
    Lanes { items: vec![item], classes: cause_classes::classes() }
}

/// How often each latency comes, of all recordings on one axis: bins of equal ratio, so that a long tail fits.
fn distributions(runs: &[(&str, &Chain)]) -> Chart {
    let shares: Vec<BTreeMap<i64, f64>> = runs.iter().map(|(_, chain)| binned(&chain.end_to_end)).collect();
    let bins = || shares.iter().flat_map(|found| found.keys().copied());
    let (low, high) = (bins().min().unwrap_or(0) - 1, bins().max().unwrap_or(0) + 1);
    let edge = |bin: f64| 10f64.powf(bin / BINS_A_DECADE);
    let share = |found: &BTreeMap<i64, f64>, bin: i64| found.get(&bin).copied().unwrap_or(0.0);
    let mut table = side_by_side("latency", runs.iter().map(|(name, _)| *name));
    for bin in low..=high {
        let [from, to] = [bin, bin + 1].map(|bin| units::scaled(edge(bin as f64)));
        let cells = shares.iter().map(|found| Cell::Share(share(found, bin)));
        table.add([Cell::text(format!("{from} to {to}"))].into_iter().chain(cells));
    }
    let finding = |(name, chain): &(&str, &Chain)| {
        let d = &chain.end_to_end.distribution;
        format!("{name}: half below {}, the slowest {}", units::maybe(d.p50_ns), units::maybe(d.max_ns))
    };
    let curve = |at: u8, name: &str, found: &BTreeMap<i64, f64>| Curve {
        name: name.to_owned(),
        xy: (low..=high).map(|bin| (edge(bin as f64 + 0.5), share(found, bin))).collect(),
        tone: Tone::Series(at),
        ..Curve::default()
    };
    Chart {
        title: "How often each end-to-end latency comes".into(),
        finding: format!("{}.", runs.iter().map(finding).collect::<Vec<_>>().join(". ")).into(),
        x: Axis { label: "latency".into(), ..Axis::new(Quantity::Time, AxisScale::Log) },
        y: Axis { label: "messages".into(), ..Axis::new(Quantity::Share, AxisScale::Linear) },
        curves: (0..).zip(runs.iter().zip(&shares)).map(|(at, ((name, _), found))| curve(at, name, found)).collect(),
        table: Some(table),
        ..Chart::default()
    }
}

/// The share of the messages in each bin; a bin of the histogram that covers several of these is spread over them.
fn binned(delay: &Delay) -> BTreeMap<i64, f64> {
    let bin = |ns: f64| (BINS_A_DECADE * ns.max(1.0).log10()).floor() as i64;
    let edge = |bin: i64| 10f64.powf(bin as f64 / BINS_A_DECADE);
    let d = &delay.distribution;
    let mut found = BTreeMap::new();
    for of in &delay.histogram {
        // The outer bins reach no further than the messages do.
        let from = of.from_ns.max(d.min_ns.unwrap_or(of.from_ns).min(of.to_ns.saturating_sub(1))) as f64;
        let to = (of.to_ns.min(d.max_ns.unwrap_or(of.to_ns).saturating_add(1)) as f64).max(from + 1.0);
        let (first, last) = (bin(from), bin(to - 1.0).max(bin(from)));
        for at in first..=last {
            let part = if first == last { 1.0 } else { (to.min(edge(at + 1)) - from.max(edge(at))) / (to - from) };
            *found.entry(at).or_insert(0.0) += of.count as f64 * part.max(0.0) / d.n.max(1) as f64;
        }
    }
    found
}

fn percentiles(runs: &[(&str, &Chain)]) -> Chart {
    let of = (0..).zip(runs).map(|(at, (name, chain))| Percentiles {
        name: (*name).to_owned(),
        curve: &chain.end_to_end.percentiles,
        tone: Tone::Series(at),
        dashed: at > 0,
        quiet: false,
    });
    let of: Vec<Percentiles<'_>> = of.collect();
    let title = "Percentiles of the end-to-end latency".to_owned();
    charts::percentiles(title, "A flat curve is a steady loop.".to_owned(), &of)
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, markdown, terminal};

    use super::*;
    use crate::sample;

    #[test]
    fn the_terminal_and_the_markdown_comparison() {
        let (before, after) = (sample::teleop(), sample::teleop_made_right());
        let named = [Named { name: "source.mcap", analysis: &before }, Named { name: "right.mcap", analysis: &after }];
        let document = comparison_document(&named);
        insta::assert_snapshot!("terminal", terminal(&document, Style::default()));
        insta::assert_snapshot!("markdown", markdown(&document));
    }

    #[test]
    fn the_sample_page_for_the_browser_tests_is_written() {
        let (before, after) = (sample::teleop(), sample::teleop_made_right());
        let named = [Named { name: "source.mcap", analysis: &before }, Named { name: "right.mcap", analysis: &after }];
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/comparison-report.html");
        std::fs::write(path, comparison_html(&named)).unwrap();
    }

    /// A run has a column of each table: six of them have lines of their own.
    #[test]
    fn six_runs_lose_no_figure_in_100_columns() {
        let analysis = sample::teleop();
        let names: Vec<String> = (0..6).map(|n| format!("{}{n}.mcap", "a long name ".repeat(5))).collect();
        let named: Vec<Named<'_>> = names.iter().map(|name| Named { name, analysis: &analysis }).collect();
        let text = terminal(&comparison_document(&named), Style::default());
        // Of all messages, and those of which no sender was told of the dropped.
        for share in ["69.5", "97.7"] {
            assert_eq!(text.matches(&format!("2\u{202f}101 ({share} %)")).count(), 6, "{text}");
        }
    }
}
