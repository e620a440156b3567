//! Tables of what is no chain of its own: short chains, periods, distributions without messages, telemetry.

use taut_analysis::{Analysis, Cause, Chain, Histogram, Point, Quantile, Telemetry};
use taut_document::{Block, Cell, Section, Show, Table, Text, units};

use super::{View, hop_name::hop_name};
use crate::{Named, words};

/// So many short chains are a list, like the topics of a bag, and no story each.
const LIST_MIN: usize = 4;
const SHORT_MAX: usize = 2;
/// Threads that are named of a point.
const THREADS: usize = 2;

/// The chains that have a section each, and the short ones that are lines of one table, since nothing but delays is known of them.
/// Loops have a table of their own.
pub(super) fn told_and_listed(analysis: &Analysis) -> (Vec<&Chain>, Vec<&Chain>) {
    let is_short = |chain: &&Chain| {
        let is_blind = chain.explained.causes.iter().all(|share| share.cause == Cause::Unknown);
        let is_bare = chain.deadline_ns.is_none() && chain.startup.is_none() && chain.branches.is_empty();
        let ended = &chain.outcomes;
        chain.hops.len() <= SHORT_MAX
            && !chain.declared
            && is_blind
            && is_bare
            && ended.dropped.is_empty()
            && ended.double == 0
    };
    let chains = || analysis.chains.iter().filter(|chain| !chain.is_loop);
    let (listed, told): (Vec<&Chain>, Vec<&Chain>) = chains().partition(is_short);
    if listed.len() < LIST_MIN { (chains().collect(), Vec::new()) } else { (told, listed) }
}

/// Each chain's delays in one line, where there are many.
pub(super) fn overview(chains: &[&Chain]) -> Table {
    let mut table = Table::new(["chain", "n", "p50", "p99", "max", "dropped"]).priorities([0, 1, 0, 0, 0, 2]);
    for chain in chains {
        let d = &chain.end_to_end.distribution;
        let [p50, p99, max] = [d.p50_ns, d.p99_ns, d.max_ns].map(Cell::time);
        let dropped = chain.outcomes.dropped.iter().map(|(_, n)| n).sum();
        table.row([Cell::text(chain.name.as_str()), Cell::Count(d.n), p50, p99, max, Cell::Count(dropped)]);
    }
    table
}

/// Hops of short chains; at the end the chain's messages that did not pass it.
pub(super) fn short_chains(chains: &[&Chain]) -> Table {
    let head = ["hop", "n", "p50", "p95", "p99", "max", "not passed"];
    let mut table = Table::new(head).priorities([0, 4, 0, 3, 0, 2, 1]);
    for (chain, hop) in chains.iter().flat_map(|chain| chain.hops.iter().map(move |hop| (chain, hop))) {
        let d = &hop.delay.distribution;
        let [p50, p95, p99, max] = [d.p50_ns, d.p95_ns, d.p99_ns, d.max_ns].map(Cell::time);
        let missed = chain.messages.saturating_sub(d.n);
        let name = Cell::text(hop_name(&hop.from, &hop.to));
        table.row([name, Cell::Count(d.n), p50, p95, p99, max, Cell::Count(missed)]);
    }
    table.without_missing();
    table
}

/// How steadily messages came, and distributions that came without messages.
pub(super) fn sections(analysis: &Analysis, view: View<'_>) -> Vec<Section> {
    let mut sections = Vec::new();
    let ends = ends(analysis);
    // A page has all points of each chain below it.
    if !ends.is_empty() && matches!(view, View::Report) {
        sections.push(Section::new(1, "Periods", vec![periods(ends).into()]).shown(Show::Text));
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

const GAPS: &str = "Gaps: periods above 1.5 times the median";

fn periods(ends: Vec<&Point>) -> Table {
    let head = ["period at", "n", "rate", "p50", "p99", "max", "jitter p99", "gaps"];
    let mut table = Table::new(head).priorities([0, 4, 3, 0, 0, 1, 2, 0]);
    table.caption = GAPS.into();
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
    use taut_document::{Style, markdown, terminal};

    use super::*;
    use crate::{report_document, sample};

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
    fn a_point_that_was_passed_once_has_no_period() {
        let mut analysis = sample::teleop();
        analysis.points.push(Point { name: "once".into(), messages: 1, ..Point::default() });
        assert!(ends(&analysis).iter().all(|point| point.name != "once"));
    }

    #[test]
    fn many_short_chains_are_lines_of_one_table() {
        let mut analysis = sample::teleop();
        let mut short = analysis.chains[0].clone();
        short.hops.truncate(1);
        (short.declared, short.deadline_ns, short.startup) = (false, None, None);
        short.branches.clear();
        short.explained = taut_analysis::Explained::default();
        short.hops[0].delay.distribution.n = short.messages - 7;
        short.outcomes = taut_analysis::Outcomes { applied: short.messages - 7, in_flight: 7, ..Default::default() };
        analysis.chains.extend(std::iter::repeat_n(short, LIST_MIN));
        let (told, listed) = told_and_listed(&analysis);
        assert_eq!((told.len(), listed.len()), (1, LIST_MIN));
        let document = report_document(Named { name: "run.mcap", analysis: &analysis });
        let text = terminal(&document, Style::default());
        assert!(text.contains("Short chains") && text.matches("Where the messages ended").count() == 1, "{text}");
        assert!(markdown(&document).contains("| hop (ms) | n | p50 | p95 | p99 | max | not passed |"));
        let page = taut_document::html(&document, None);
        assert!(!page.contains("Short chains") && page.matches("Where the messages ended").count() == 1 + LIST_MIN);
        analysis.chains.pop();
        assert!(told_and_listed(&analysis).1.is_empty());
    }
}
