//! Tables of what is no chain of its own: periods, distributions without messages, telemetry.

use taut_analysis::{Analysis, Histogram, Point, Quantile, Telemetry};
use taut_document::{Block, Cell, Section, Show, Table, Text, units};

use super::{View, overview::SHOWN};
use crate::{Named, words};

/// Threads that are named of a point.
const THREADS: usize = 2;

/// How steadily messages came, and distributions that came without messages.
pub(super) fn sections(analysis: &Analysis, view: View<'_>, are_many: bool) -> Vec<Section> {
    let mut sections = Vec::new();
    let ends = ends(analysis);
    // A page has all points of each chain below it.
    if !ends.is_empty() && matches!(view, View::Report) {
        sections.push(Section::new(1, "Periods", vec![periods(ends, are_many).into()]).shown(Show::Text));
    }
    if !analysis.points.is_empty() {
        let table = points(&analysis.points).into();
        sections.push(Section::new(1, "Points of no chain", vec![table]).shown(Show::Page));
    }
    if !analysis.histograms.is_empty() {
        let table = histograms(&analysis.histograms).into();
        sections.push(Section::new(1, "Distributions without messages", vec![table]).shown(view.in_report()));
    }
    sections
}

/// Where messages enter and leave each chain, and the points that are of none; those in between follow from their hops. The moments of
/// a schedule are as steady as the schedule, so the first point behind them counts.
fn ends(analysis: &Analysis) -> Vec<&Point> {
    let chains = analysis.chains.iter().filter(|chain| !chain.is_loop);
    let of_chains = chains.flat_map(|chain| {
        let happen: Vec<&Point> = chain.points.iter().filter(|point| !point.is_due).collect();
        match happen.as_slice() {
            [first, .., last] => vec![*first, *last],
            other => other.to_vec(),
        }
    });
    of_chains.chain(&analysis.points).filter(|point| point.period.n > 0).collect()
}

const GAPS: &str = "Gaps: periods above 1.5 times the median, of messages that came late as well as of missing ones";

/// Of many points those with gaps come first, and a terminal shows some.
fn periods(mut ends: Vec<&Point>, are_many: bool) -> Table {
    let head = ["period at", "n", "rate", "p50", "p99", "max", "jitter p99", "gaps"];
    let mut table = Table::new(head).priorities([0, 4, 3, 0, 0, 1, 2, 0]);
    table.caption = GAPS.into();
    if are_many {
        ends.sort_by_key(|point| std::cmp::Reverse(point.gaps));
        table.shown = SHOWN;
    }
    for point in ends {
        let (period, jitter) = (&point.period, &point.period_jitter);
        let [p50, p99, max, jitter] = [period.p50_ns, period.p99_ns, period.max_ns, jitter.p99_ns].map(Cell::time);
        let [n, gaps] = [point.messages, point.gaps].map(Cell::Count);
        table.row([name(&point.name), n, rate(point.rate_hz), p50, p99, max, jitter, gaps]);
    }
    table.without_missing();
    table
}

/// All that is known of points.
pub(super) fn points(of: &[Point]) -> Table {
    let head = ["period at", "messages", "rate", "p50", "p99", "max", "jitter p50", "p99", "max", "gaps", "threads"];
    let mut table = Table::new(head);
    table.caption = format!("Jitter: |period − median|. {GAPS}").into();
    for point in of {
        let (period, jitter) = (&point.period, &point.period_jitter);
        let times = [period.p50_ns, period.p99_ns, period.max_ns, jitter.p50_ns, jitter.p99_ns, jitter.max_ns];
        let cells = [name(&point.name), Cell::Count(point.messages), rate(point.rate_hz)].into_iter();
        let threads: Vec<&str> = point.threads.iter().take(THREADS).map(String::as_str).collect();
        let last = [Cell::Count(point.gaps), Cell::text(threads.join(", "))];
        table.add(cells.chain(times.map(Cell::time)).chain(last));
    }
    table
}

fn name(of: &str) -> Cell {
    Cell::text(Text::default().code(of))
}

fn rate(hz: Option<f64>) -> Cell {
    hz.map_or(Cell::Missing, Cell::Rate)
}

/// Quantiles no finer than the buckets of their source.
fn histograms(all: &[Histogram]) -> Table {
    let head = ["of", "n", "min", "p50", "p90", "p99", "p99.9", "max", "beyond", "from"];
    let mut table = Table::new(head).priorities([0, 6, 4, 0, 5, 0, 3, 2, 1, 1]);
    table.caption = "Beyond: values above the source's last bucket, of which no more is known".into();
    for of in all {
        let is_time = of.unit == "ns";
        let figure = |value: u64| if is_time { Cell::Time(value) } else { Cell::Count(value) };
        let value = |value: Option<u64>| value.map_or(Cell::Missing, figure);
        let quantile = |quantile: Option<Quantile>| match quantile {
            Some(Quantile::AtLeast(value)) if is_time => Cell::AtLeast(value),
            Some(Quantile::AtLeast(value)) => Cell::Printed(format!("≥ {}", units::count(value))),
            Some(Quantile::AtMost(value)) => figure(value),
            None => Cell::Missing,
        };
        let [p50, p90, p99, p999] = [of.p50, of.p90, of.p99, of.p999].map(quantile);
        let title = if is_time { of.name.clone() } else { format!("{} ({})", of.name, of.unit) };
        let from = if of.overflow == 0 { Cell::Empty } else { figure(of.overflow_from) };
        let [n, beyond] = [of.n, of.overflow].map(Cell::Count);
        table.row([name(&title), n, value(of.min), p50, p90, p99, p999, value(of.max), beyond, from]);
    }
    table
}

/// What came of each channel, and what did not; the values themselves are for `taut telemetry`.
pub(super) fn telemetry(named: Named<'_>) -> Option<Section> {
    let all = &named.analysis.telemetry;
    if all.is_empty() {
        return None;
    }
    let head = ["period of", "type", "values", "messages", "rate", "p50", "p99", "max", "missing", "bytes"];
    let mut table = Table::new(head).priorities([0, 9, 6, 5, 3, 0, 1, 2, 0, 8]);
    for of in all {
        let [p50, p99, max] = [of.period.p50_ns, of.period.p99_ns, of.period.max_ns].map(Cell::time);
        let [values, messages] = [of.values, of.messages].map(Cell::Count);
        let (of_type, missing) = (Cell::text(of.type_name.as_str()), Cell::Printed(missing(of)));
        let bytes = Cell::Bytes(of.bytes);
        table.row([name(&of.topic), of_type, values, messages, rate(of.rate_hz), p50, p99, max, missing, bytes]);
    }
    let file = words::shell(&[named.name.to_owned()]);
    let text = Text::from("The values: ")
        .code(format!("taut telemetry {file} --channel TOPIC"))
        .and("; layouts for Foxglove and PlotJuggler: ")
        .code("--layouts");
    Some(Section::new(1, "Telemetry", vec![table.into(), Block::Text(text)]))
}

/// What a channel lacks: by the holes in its sequence, or by what the recorder counted.
fn missing(telemetry: &Telemetry) -> String {
    match telemetry.gaps {
        Some(gaps) if gaps.count > 0 => {
            format!("{} in {}", units::count(gaps.messages), units::quantity(gaps.count, "gap"))
        }
        _ => units::count(telemetry.lost),
    }
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, terminal};

    use super::*;
    use crate::sample;

    fn words_of(table: Table) -> String {
        let section = Section::new(1, "", vec![table.into()]);
        let text =
            terminal(&taut_document::Document { sections: vec![section], ..Default::default() }, Style::default());
        text.replace('\u{202f}', " ").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_beyond_the_buckets_is_said() {
        let of = Histogram {
            name: "thread 0".into(),
            unit: "ns".into(),
            n: 2000,
            min: Some(37_000),
            p50: Some(Quantile::AtMost(57_999)),
            p999: Some(Quantile::AtLeast(400_000)),
            max: Some(172_860_999),
            overflow: 31,
            overflow_from: 400_000,
            ..Histogram::default()
        };
        let text = words_of(histograms(std::slice::from_ref(&of)));
        assert!(
            text.contains(
                "of (µs) n min p50 p90 p99 p99.9 max beyond from thread 0 2 000 37.0 58.0 – – ≥ 400 172 861 31 400"
            ),
            "{text}"
        );
        let text = words_of(histograms(&[Histogram { unit: "frames".into(), ..of }]));
        assert!(text.contains("thread 0 (frames) 2 000 37 000 57 999 – – ≥ 400 000"), "{text}");
    }

    #[test]
    fn of_many_points_those_with_gaps_come_first() {
        let points: Vec<Point> =
            (0..30).map(|n| Point { name: format!("p{n}"), gaps: n, ..Point::default() }).collect();
        let all: Vec<&Point> = points.iter().collect();
        let first = |table: &Table| table.rows[0].cells[0].alone();
        let (many, few) = (periods(all.clone(), true), periods(all, false));
        assert_eq!((first(&many).as_str(), many.rows.len(), many.shown), ("p29", 30, SHOWN));
        assert_eq!((first(&few).as_str(), few.shown), ("p0", usize::MAX));
    }

    #[test]
    fn a_point_that_was_passed_once_has_no_period() {
        let mut analysis = sample::teleop();
        analysis.points.push(Point { name: "once".into(), messages: 1, ..Point::default() });
        assert!(ends(&analysis).iter().all(|point| point.name != "once"));
    }
}
