//! A fleet's answer as a document.

use std::collections::BTreeSet;

use taut_document::{
    Axis, AxisScale, Block, Cell, Chart, Curve, Document, Mark, Quantity, Section, Show, Table, Text, Tone, units,
};

use super::{Answer, Bounds, Compare, ComparedPlace, Factor, FleetFigures, Place, Ranked, Worst, sentences};

/// Causes below this share of a place's time are left to JSON.
const SHARE_MIN: f64 = 0.005;
/// The same of a comparison: below this time a message on both sides.
const MEAN_MIN_NS: f64 = 100.0;
/// Weeks that a terminal shows, the last ones; JSON and the page have all.
const WEEKS_SHOWN: usize = 8;
/// The same of robots.
const ROBOTS_SHOWN: usize = 5;
/// Hops that have a curve.
const HOPS_DRAWN: usize = 4;

/// What is shown of a fleet's answer.
pub fn fleet_document(answer: &Answer) -> Document {
    let (title, sections, note) = match answer {
        Answer::Report(of) => ("fleet report".to_owned(), of.chains.iter().flat_map(chain).collect(), None),
        Answer::Worst(of) => ("fleet, worst robots".to_owned(), vec![worst(of)], None),
        Answer::Compare(of) => (format!("fleet, {} against {}", of.b, of.a), compare(of), Some(sentences::unit(of))),
    };
    let notes = note.into_iter().chain([sentences::BOUNDS.to_owned()]);
    Document {
        title,
        measured: sentences::about(answer.about()).into(),
        headline: sentences::headline(answer).into(),
        sections,
        notes: notes.map(Text::from).collect(),
        reproduce: Vec::new(),
    }
}

fn chain(of: &super::Chain) -> Vec<Section> {
    let way = of.places.first();
    let mut blocks = vec![Block::Text(sentences::extent(&of.extent).into())];
    let over_weeks = way.map(|way| weekly("Whole way, week by week", &of_figures(way)));
    let hops = weekly("p99 of the hops that take most time, week by week", &of_hops(&of.places));
    blocks.extend(over_weeks.into_iter().chain([hops]).flatten().map(Block::from));
    blocks.push(Block::Table(places(&of.places)));
    let robots = vec![Block::Text(sentences::spread(&of.robots_p99).into()), Block::Table(robots(&of.robots_p99))];
    // One row says what stands above it, too: only the page has room for it.
    let unless_single = |n: usize| if n > 1 { Show::Always } else { Show::Page };
    let mut sections = vec![
        Section::new(1, &of.chain, blocks),
        Section::new(2, "Robots", robots),
        Section::new(2, "Revisions", vec![Block::Table(revisions(&of.revisions))])
            .shown(unless_single(of.revisions.len())),
    ];
    if let Some(way) = way {
        sections.push(Section::new(2, "Weeks", vec![Block::Table(weeks(way))]).shown(unless_single(way.weeks.len())));
    }
    sections
}

/// A chain's places, their causes indented.
fn places(places: &[Place]) -> Table {
    let mut table =
        Table::new(["hop, cause", "n", "time", "p50", "p99", "p99.9", "max"]).priorities([0, 4, 0, 0, 0, 2, 3]);
    table.columns[2].bar = true;
    for place in places {
        let name = sentences::hop(&place.hop);
        table.row(figures(name, place.time_share, &place.figures));
        for cause in place.causes.iter().filter(|cause| cause.time_share.is_some_and(|share| share >= SHARE_MIN)) {
            table.row(figures(&cause.cause, cause.time_share, &cause.figures)).indent = 1;
        }
    }
    table
}

fn figures(name: &str, share: Option<f64>, of: &FleetFigures) -> [Cell; 7] {
    let [p50, p99, p999, max] = [of.p50, of.p99, of.p999, of.max].map(bucket);
    [Cell::text(name), Cell::Count(of.n), Cell::share(share), p50, p99, p999, max]
}

fn robots(of: &super::Spread) -> Table {
    let mut table = Table::new(["worst by p99", "n", "p50", "p99", "p99.9"]).priorities([0, 3, 2, 0, 1]);
    table.shown = ROBOTS_SHOWN;
    for robot in &of.worst {
        let of = &robot.figures;
        let [p50, p99, p999] = [of.p50, of.p99, of.p999].map(bucket);
        table.row([Cell::text(robot.robot.as_str()), Cell::Count(of.n), p50, p99, p999]);
    }
    table
}

fn revisions(all: &[super::Revision]) -> Table {
    let mut table =
        Table::new(["revision", "robots", "messages", "days", "p50", "p99", "p99.9"]).priorities([0, 2, 4, 3, 1, 0, 2]);
    for of in all {
        let [p50, p99, p999] = [of.figures.p50, of.figures.p99, of.figures.p999].map(bucket);
        let days = Cell::text(sentences::days(&of.extent.first, &of.extent.last));
        let [robots, messages] = [of.extent.robots, of.extent.messages].map(Cell::Count);
        table.row([Cell::text(sentences::short(&of.revision)), robots, messages, days, p50, p99, p999]);
    }
    table
}

/// The last week first: it is what a reader of few rows wants.
fn weeks(place: &Place) -> Table {
    let mut table = Table::new(["week of", "messages", "p50", "p99", "p99.9", "max"]).priorities([0, 3, 1, 0, 2, 3]);
    table.shown = WEEKS_SHOWN;
    for week in place.weeks.iter().rev() {
        let of = &week.figures;
        let [p50, p99, p999, max] = [of.p50, of.p99, of.p999, of.max].map(bucket);
        table.row([Cell::text(week.week.as_str()), Cell::Count(of.n), p50, p99, p999, max]);
    }
    table
}

fn worst(worst: &Worst) -> Section {
    let figure = sentences::figure(&worst.figure);
    let days = sentences::days(&worst.first, &worst.last);
    let mut blocks = vec![Block::Text(format!("{}, {days}", sentences::ranked_place(worst)).into())];
    blocks.extend(ranking(worst).map(Block::from));
    let mut table =
        Table::new(["robot", "n", &figure, "× median", "revisions", "hop that stands out", "cause that stands out"])
            .priorities([0, 4, 0, 0, 5, 1, 2]);
    table.columns[4..].iter_mut().for_each(|column| column.wraps = true);
    for robot in &worst.ranked {
        table.row(ranked(worst, robot));
    }
    blocks.push(Block::Table(table));
    if worst.too_few > 0 {
        let few = units::quantity(worst.too_few, "robot");
        blocks.push(Block::Text(format!("Not ranked, with too few messages: {few}.").into()));
    }
    Section::new(1, &worst.chain, blocks)
}

fn ranked(worst: &Worst, robot: &Ranked) -> [Cell; 7] {
    let own = robot.figures.of(&worst.figure);
    let against = own.zip(worst.median).map(|(own, median)| own.up_to_ns as f64 / median.up_to_ns.max(1) as f64);
    let hop = robot.stands_out_by_hop.as_ref().map(|out| {
        let [own, fleet] = [out.robot, out.fleet].map(sentences::upper);
        Cell::text(format!("{}: {own} for {fleet}", out.hop))
    });
    let cause = robot.stands_out_by_cause.as_ref().map(|out| {
        let [own, fleet] = [out.robot_mean_ns, out.fleet_mean_ns].map(units::scaled);
        Cell::text(format!("{}: mean {own} for {fleet}", out.cause))
    });
    let revisions: Vec<String> = robot.revisions.iter().map(|of| sentences::short(of)).collect();
    [
        Cell::text(robot.robot.as_str()),
        Cell::Count(robot.figures.n),
        bucket(own),
        against.map_or(Cell::Missing, Cell::Ratio),
        Cell::text(revisions.join(", ")),
        hop.unwrap_or(Cell::Missing),
        cause.unwrap_or(Cell::Missing),
    ]
}

fn compare(compare: &Compare) -> Vec<Section> {
    let section = |chain: &super::ComparedChain| {
        let sides = [("A", &compare.a, &chain.a), ("B", &compare.b, &chain.b)];
        let sides = sides.map(|(letter, name, extent)| {
            let extent = sentences::extent(extent);
            Block::Text(Text::default().strong(letter).and(format!(" {name}: {extent}")))
        });
        let mut table = Table::new(["hop, figure", "A", "B", "by robots", "95 %"]);
        chain.places.iter().for_each(|place| compared(&mut table, place));
        let mut blocks = Vec::from(sides);
        blocks.extend(changes(&chain.places).map(Block::from));
        blocks.push(Block::Table(table));
        Section::new(1, &chain.chain, blocks)
    };
    compare.chains.iter().map(section).collect()
}

/// A place's p50, p99 and p99.9, then the mean time of its causes.
fn compared(table: &mut Table, place: &ComparedPlace) {
    let name = sentences::hop(&place.hop);
    let changes = sentences::changes(place);
    for quantile in ["p50", "p99", "p999"] {
        let of = |side: &Option<super::SideOf>| bucket(side.as_ref().and_then(|side| side.figures.of(quantile)));
        let factor = changes.iter().find(|(name, _)| *name == quantile).map(|(_, factor)| *factor);
        let [by, interval] = change(factor);
        let name = Cell::text(format!("{name}, {}", sentences::figure(quantile)));
        table.row([name, of(&place.a), of(&place.b), by, interval]).tone = tone(factor);
    }
    for cause in &place.causes {
        let means = [&cause.a, &cause.b].map(|side| side.as_ref().map_or(0.0, |side| side.mean_ns));
        if means.iter().any(|ns| *ns >= MEAN_MIN_NS) {
            let [a, b] = means.map(|ns| Cell::Time(ns.round() as u64));
            let [by, interval] = change(cause.by_robots.mean.as_ref());
            let row = table.row([Cell::text(format!("{}, mean", cause.cause)), a, b, by, interval]);
            (row.indent, row.tone) = (1, tone(cause.by_robots.mean.as_ref()));
        }
    }
}

fn change(factor: Option<&Factor>) -> [Cell; 2] {
    let ends = factor.and_then(|factor| factor.low.zip(factor.high));
    [
        factor.map_or(Cell::Missing, |factor| Cell::Ratio(factor.factor)),
        ends.map_or(Cell::Missing, |(low, high)| Cell::interval(Cell::Ratio(low), Cell::Ratio(high))),
    ]
}

fn tone(factor: Option<&Factor>) -> Tone {
    match factor {
        Some(factor) if factor.is_sure() && factor.factor > 1.0 => Tone::Bad,
        Some(factor) if factor.is_sure() => Tone::Good,
        _ => Tone::Plain,
    }
}

fn bucket(of: Option<Bounds>) -> Cell {
    of.map_or(Cell::Missing, |of| Cell::Bucket { above: of.above_ns, up_to: of.up_to_ns })
}

/// A name, and a figure week by week.
type Weekly<'a> = (&'a str, Vec<(&'a str, Option<Bounds>)>);

/// p50, p99, p99.9 of a place.
fn of_figures(place: &Place) -> Vec<Weekly<'_>> {
    [("p50", "p50"), ("p99", "p99"), ("p99.9", "p999")]
        .into_iter()
        .map(|(name, key)| (name, place.weeks.iter().map(|week| (week.week.as_str(), week.figures.of(key))).collect()))
        .collect()
}

/// The p99 of the hops that take most time.
fn of_hops(places: &[Place]) -> Vec<Weekly<'_>> {
    let mut hops: Vec<&Place> = places.iter().filter(|place| place.position > 0).collect();
    hops.sort_by(|a, b| b.time_share.unwrap_or(0.0).total_cmp(&a.time_share.unwrap_or(0.0)));
    hops.truncate(HOPS_DRAWN);
    hops.into_iter()
        .map(|place| {
            (place.hop.as_str(), place.weeks.iter().map(|week| (week.week.as_str(), week.figures.p99)).collect())
        })
        .collect()
}

/// Curves over weeks. A week without the figure is a gap; a single week is no curve.
fn weekly(title: &str, lines: &[Weekly<'_>]) -> Option<Chart> {
    let weeks: BTreeSet<&str> = lines.iter().flat_map(|(_, line)| line.iter().map(|(week, _)| *week)).collect();
    let curve = |(at, (name, line)): (usize, &Weekly<'_>)| {
        let value = |week: &str| line.iter().find(|(of, _)| *of == week).and_then(|(_, of)| *of);
        let point = |week: &&str| {
            let day = units::days_since_1970(week)? as f64;
            Some((day, value(week).map_or(f64::NAN, |of| of.up_to_ns as f64)))
        };
        let xy = weeks.iter().filter_map(point).collect();
        Curve { name: (*name).to_owned(), xy, tone: Tone::Series(at as u8), ..Curve::default() }
    };
    (weeks.len() > 1).then(|| Chart {
        title: title.to_owned(),
        x: Axis::new(Quantity::Day, AxisScale::Linear),
        y: Axis::new(Quantity::Time, AxisScale::Log),
        curves: lines.iter().enumerate().map(curve).collect(),
        wide: true,
        ..Chart::default()
    })
}

/// The ranked robots' figure as bars from 0, with a line at the median robot's.
fn ranking(worst: &Worst) -> Option<Chart> {
    let drawn = worst.ranked.iter().filter_map(|robot| Some((robot, robot.figures.of(&worst.figure)?)));
    let (names, values): (Vec<String>, Vec<f64>) =
        drawn.map(|(robot, of)| (robot.robot.clone(), of.up_to_ns as f64)).unzip();
    let median = worst.median.filter(|_| values.iter().any(|ns| *ns > 0.0))?;
    let figure = sentences::figure(&worst.figure);
    let xy = values.into_iter().enumerate().map(|(at, ns)| (at as f64, ns)).collect();
    Some(Chart {
        title: format!("{figure} of the worst robots"),
        x: Axis { names, ..Axis::default() },
        y: Axis::new(Quantity::Time, AxisScale::Linear),
        curves: vec![Curve { name: figure, mark: Mark::Bars, xy, tone: Tone::Series(0), ..Curve::default() }],
        limits: vec![(median.up_to_ns as f64, "median robot".to_owned())],
        wide: true,
        ..Chart::default()
    })
}

/// Each place's change of p50 and p99 by robots, as a dot with its interval; right of 1 is later.
fn changes(places: &[ComparedPlace]) -> Option<Chart> {
    let of = |place| sentences::changes(place).into_iter().map(move |(figure, factor)| (place, figure, factor));
    let rows: Vec<(&ComparedPlace, &str, &Factor)> =
        places.iter().flat_map(of).filter(|(_, figure, _)| ["p50", "p99"].contains(figure)).collect();
    let name = |(place, figure, _): &(&ComparedPlace, &str, _)| {
        format!("{}, {}", sentences::hop(&place.hop), sentences::figure(figure))
    };
    let classes = [
        ("no sure change", Tone::Quiet, Tone::Plain),
        ("worse", Tone::Bad, Tone::Bad),
        ("better", Tone::Good, Tone::Good),
    ];
    let curve = |(class, colour, wanted): (&str, Tone, Tone)| {
        let of_class = rows.iter().enumerate().filter(|(_, (.., factor))| tone(Some(factor)) == wanted);
        let (xy, ends): (Vec<_>, Vec<_>) = of_class
            .map(|(at, (.., of))| {
                let ends = (of.low.unwrap_or(of.factor), of.high.unwrap_or(of.factor));
                ((at as f64, of.factor), ends)
            })
            .unzip();
        (!xy.is_empty()).then(|| Curve {
            name: class.to_owned(),
            mark: Mark::Range(ends),
            xy,
            tone: colour,
            ..Curve::default()
        })
    };
    // The axis is symmetric about 1 and shows at least a tenth more and less.
    let ends = rows.iter().flat_map(|(.., of)| [of.factor, of.low.unwrap_or(of.factor), of.high.unwrap_or(of.factor)]);
    let widest = ends.map(|end| end.ln().abs()).filter(|end| end.is_finite()).fold(0.1, f64::max) * 1.1;
    (!rows.is_empty()).then(|| Chart {
        title: "B over A by robots, with 95 % intervals; right of ×1.00 is later".to_owned(),
        x: Axis { names: rows.iter().map(name).collect(), ..Axis::default() },
        y: Axis { range: Some(((-widest).exp(), widest.exp())), ..Axis::new(Quantity::Ratio, AxisScale::Log) },
        curves: classes.into_iter().filter_map(curve).collect(),
        wide: true,
        ..Chart::default()
    })
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, html, markdown, terminal};

    use super::*;
    use crate::fleet::sample;

    #[test]
    fn the_terminal_forms() {
        for (name, answer) in [("report", sample::report()), ("worst", sample::worst()), ("compare", sample::compare())]
        {
            insta::assert_snapshot!(name, terminal(&fleet_document(&answer), Style::default()));
        }
    }

    #[test]
    fn the_markdown_comparison() {
        insta::assert_snapshot!(markdown(&fleet_document(&sample::compare())));
    }

    #[test]
    fn the_pages_are_self_contained_and_foreign_text_cannot_break_out() {
        for (name, answer) in [("report", sample::report()), ("worst", sample::worst()), ("compare", sample::compare())]
        {
            let page = html(&fleet_document(&answer), None);
            for outside in ["src=\"http", "href=\"http", "@import", "url(http", "<script", "<b>x"] {
                assert!(!page.contains(outside), "{name}: {outside}");
            }
            assert!(page.contains("&lt;b&gt;x"), "{name}: the chain's name is there, as text");
            // For the test in a browser.
            let path = format!("{}/../../target/fleet-{name}.html", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, page).unwrap();
        }
    }

    #[test]
    fn a_report_draws_the_way_and_the_hops_and_a_comparison_its_changes() {
        let page = |answer| html(&fleet_document(&answer), None);
        assert_eq!(page(sample::report()).matches("<svg").count(), 2);
        assert_eq!(page(sample::worst()).matches("class=\"column").count(), 4);
        let compared = page(sample::compare());
        assert!(compared.contains("<line class=\"range bad\"") && compared.contains("<tr class=\"bad\">"));
    }

    #[test]
    fn a_week_that_a_curve_lacks_is_a_gap() {
        let bounds = Some(Bounds { above_ns: 1, up_to_ns: 2 });
        let lines = [("a", vec![("2026-10-05", bounds), ("2026-10-19", bounds)]), ("b", vec![("2026-10-12", bounds)])];
        let chart = weekly("", &lines).unwrap();
        assert!(chart.curves[0].xy.len() == 3 && chart.curves[0].xy[1].1.is_nan());
    }

    #[test]
    fn a_servers_password_is_not_shown() {
        let Answer::Report(mut report) = sample::report() else { panic!() };
        report.about.place = "clickhouse://me:p@ss@host:8123/robots/fleet".into();
        let text = terminal(&fleet_document(&Answer::Report(report)), Style::default());
        assert!(text.contains("clickhouse://host:8123/robots/fleet ·") && !text.contains("p@ss"), "{text}");
    }
}
