//! A cycle budget as a document.

use taut_bus::budget::{Gradient, Origin, Term};
use taut_document::{
    Block, Cell, Chart, Class, Document, Finding, LaneItem, LanePiece, LaneRow, Lanes, Section, Show, Table, Text,
    Tone, units,
};

use super::{
    Budgeted,
    figures::{slope, value},
    json::segments,
    sentences,
};
use crate::charts;

/// Figures worth a row in a terminal.
const GRADIENTS_MAX: usize = 12;
/// Below this a figure is worth nothing, µs.
const WORTH_US: f64 = 0.005;

/// What `taut bus budget` shows.
pub fn budget_document(shown: &Budgeted<'_>) -> Document {
    let budget = shown.budget;
    let said = sentences::published(shown).into_iter().chain(sentences::honesty(shown));
    let mut cycle = vec![Block::Lanes(timeline(shown)), Block::Table(drawn(shown))];
    cycle.push(Block::Text(sentences::drawn(shown.forecast).into()));
    cycle.extend(shown.polled.map(|polled| Block::Text(sentences::polled(polled).into())));
    let mut sections = vec![
        Section::new(1, "", said.map(|text| Block::Text(text.into())).collect()),
        Section::new(1, "The cycle", cycle),
    ];
    if shown.forecast.varies {
        let chart = charts::histogram("Drawn cycles".into(), "cycles", &shown.forecast.histogram);
        sections.push(Section::new(2, "", vec![Chart { wide: true, ..chart }.into()]).shown(Show::Page));
    }
    let mut terms = vec![Block::Table(self::terms(shown))];
    if shown.forecast.costs.iter().any(|cost| cost.hidden) {
        terms.push(Block::Text(sentences::HIDDEN.into()));
    }
    sections.push(Section::new(1, "Where it goes", terms));
    let slack = Block::Text(sentences::SLACK.into());
    sections.push(Section::new(1, "Who is busy", vec![Block::Table(resources(shown)), slack]));
    sections.push(Section::new(1, "What each figure is worth", gradients(shown.gradients)));
    if let Some(solved) = shown.solved {
        let answer = |text: String| Finding { text: text.into(), ..Finding::default() };
        let answers = solved.answers.iter().map(|of| answer(sentences::answer(of, solved.target_hz))).collect();
        let title = "What the rate allows, one figure at a time";
        sections.push(Section::new(1, title, vec![Block::Findings(answers)]));
    }
    if let Some((run, comparison)) = shown.against {
        let sentence = Block::Text(sentences::against(run, comparison).into());
        let residual = Block::Text(sentences::RESIDUAL.into());
        sections.push(Section::new(1, "Against the recording", vec![sentence, Block::Table(phases(shown))]));
        sections.push(Section::new(1, "Residual of each term", vec![Block::Table(residuals(shown)), residual]));
    }
    Document {
        title: budget.title.clone(),
        measured: budget.about.as_str().into(),
        headline: Text::default().strong(sentences::headline(shown)),
        sections,
        notes: Vec::new(),
        reproduce: vec![shown.command.to_owned()],
    }
}

fn ns(us: f64) -> u64 {
    (us.max(0.0) * 1e3).round() as u64
}

/// A time that may be too long already, which is below 0.
fn time(us: f64) -> Cell {
    if us < 0.0 { difference(us) } else { Cell::Time(ns(us)) }
}

fn difference(us: f64) -> Cell {
    Cell::SignedTime((us * 1e3).round() as i64)
}

fn maybe(us: Option<f64>, cell: impl Fn(f64) -> Cell) -> Cell {
    us.map_or(Cell::Missing, cell)
}

/// Kinds of a term by its stage; a fitted one is none of them.
fn classes() -> Vec<Class> {
    vec![
        Class::new('w', "on the wire", Tone::Series(0)),
        Class::new('s', "in the servo", Tone::Series(1)),
        Class::new('b', "between them", Tone::Series(4)),
        Class::new('h', "in the host", Tone::Series(3)),
        Class::new('l', "late or lost", Tone::Series(5)),
        Class::new('F', "fitted", Tone::Undecided),
    ]
}

fn class(term: &Term) -> usize {
    match term.stage.word() {
        _ if term.origin == Origin::Fitted => 5,
        "host-wire" | "servo-wire" | "reply-wire" | "can" | "spi" | "imu" => 0,
        "servo-turnaround" => 1,
        "bridge" | "uart-fifo" | "direction" | "inter-frame" => 2,
        "scheduler" | "retry" | "cycle-end" => 4,
        _ => 3,
    }
}

/// Each resource's work over the cycle, a term's payments put together in one piece.
fn timeline(shown: &Budgeted<'_>) -> Lanes {
    let forecast = shown.forecast;
    let order = match forecast.lanes.iter().any(|lane| lane.parallel) {
        true => "parallel resources begin together, and the longest decides",
        false => "everything is done one after the other",
    };
    let period_us = forecast.misses.map(|misses| misses.period_us);
    let mut item = LaneItem {
        title: format!("Each resource's work from the start of the cycle; {order}").into(),
        to_ns: ns(1.02 * forecast.cycle_us.max(period_us.unwrap_or(0.0))),
        moments: vec![(ns(forecast.cycle_us), "cycle".into())],
        ..LaneItem::default()
    };
    item.moments.extend(period_us.map(|us| (ns(us), "period".into())));
    for (row, lane) in forecast.lanes.iter().enumerate() {
        let name = match role(shown, row) {
            "" => lane.name.clone(),
            role => format!("{} ({role})", lane.name),
        };
        item.rows.push(LaneRow { name, ..LaneRow::default() });
        item.pieces.extend(segments(shown, row).into_iter().filter(|(_, _, us)| *us > 0.0).map(
            |(at, start_us, us)| {
                let term = &shown.budget.terms[at];
                LanePiece {
                    row,
                    from_ns: ns(start_us),
                    to_ns: ns(start_us + us),
                    class: class(term),
                    text: format!("{} {} ({})", term.name, units::duration(ns(us)), term.origin.word()),
                }
            },
        ));
    }
    Lanes { items: vec![item], classes: classes() }
}

fn role(shown: &Budgeted<'_>, lane: usize) -> &'static str {
    match shown.forecast.lanes[lane].parallel {
        false => "serial",
        true if shown.forecast.critical == Some(lane) => "decides",
        true => "",
    }
}

fn drawn(shown: &Budgeted<'_>) -> Table {
    let d = &shown.forecast.distribution;
    let mut table = Table::new(["", "n", "min", "p50", "p90", "p99", "p99.9", "max"]);
    let times = [d.min_ns, d.p50_ns, d.p90_ns, d.p99_ns, d.p999_ns, d.max_ns].map(Cell::time);
    table.add([Cell::text("drawn cycles"), Cell::Count(d.n)].into_iter().chain(times));
    table
}

fn terms(shown: &Budgeted<'_>) -> Table {
    let mut table = Table::new(["term", "times", "each", "cycle", "share", "known", "resource"]);
    table.columns[4].bar = true;
    table.columns[6].wraps = true;
    // With one resource there is nothing to tell apart.
    let columns = if shown.budget.resources.len() > 1 { 7 } else { 6 };
    table.columns.truncate(columns);
    for cost in &shown.forecast.costs {
        let term = &shown.budget.terms[cost.term];
        let share = Cell::Share(cost.total_us / shown.forecast.cycle_us.max(f64::MIN_POSITIVE));
        let origin = if term.origin == Origin::Fitted { "FITTED" } else { term.origin.word() };
        let hidden = if cost.hidden { ", hidden" } else { "" };
        let row = table.row([
            Cell::text(term.name.as_str()),
            Cell::Count(cost.count.into()),
            time(cost.each_us),
            time(cost.total_us),
            if cost.hidden { Cell::Missing } else { share },
            Cell::text(format!("{origin}{hidden}")),
            Cell::text(shown.budget.resources[term.resource].name.as_str()),
        ]);
        row.cells.truncate(columns);
    }
    table
}

fn resources(shown: &Budgeted<'_>) -> Table {
    let forecast = shown.forecast;
    let of = if forecast.misses.is_some() { "of the period" } else { "of the cycle" };
    let mut table = Table::new(["resource", "servos", "busy", "p99", of, "slack", ""]);
    table.columns[4].bar = true;
    for (at, (lane, usage)) in forecast.lanes.iter().zip(&forecast.usage).enumerate() {
        let row = table.row([
            Cell::text(lane.name.as_str()),
            Cell::Count(lane.servos.into()),
            time(usage.busy_us),
            maybe(usage.busy_p99_us, time),
            Cell::Share(usage.utilisation),
            time(usage.slack_us),
            Cell::text(role(shown, at)),
        ]);
        row.tone = if usage.utilisation > 1.0 { Tone::Bad } else { Tone::Plain };
    }
    table
}

fn gradients(all: &[Gradient]) -> Vec<Block> {
    let is_worth = |of: &&Gradient| of.gain_us >= WORTH_US || of.per_unit_us.abs() >= WORTH_US && of.value == 0.0;
    let (worth, worthless): (Vec<&Gradient>, Vec<&Gradient>) = all.iter().partition(is_worth);
    let head = ["figure", "now", "step to", "saves", "slope"];
    let mut table = Table { shown: GRADIENTS_MAX, ..Table::new(head) };
    table.columns[3].bar = true;
    for of in worth {
        let step = if of.better == of.value { Cell::Missing } else { Cell::text(value(&of.knob, of.better)) };
        table.row([
            Cell::text(of.key.as_str()),
            Cell::text(value(&of.knob, of.value)),
            step,
            if of.gain_us >= WORTH_US { time(of.gain_us) } else { Cell::Missing },
            Cell::text(slope(&of.knob, of.per_unit_us)),
        ]);
    }
    let keys: Vec<&str> = worthless.iter().map(|of| of.key.as_str()).collect();
    let rest = format!("Changes nothing now, while another resource decides: {}.", keys.join(", "));
    let rest = (!keys.is_empty()).then(|| Block::Text(rest.into()));
    [Block::Table(table)].into_iter().chain(rest).collect()
}

fn phases(shown: &Budgeted<'_>) -> Table {
    let mut table = Table::new(["phase", "n", "p50", "p99", "mean", "model", "typical", "slow"]);
    let Some((_, comparison)) = shown.against else { return table };
    for row in comparison.phases.iter().chain([&comparison.cycle]) {
        let measured = row.measured.as_ref();
        let name = if measured.is_some() { row.phase.clone() } else { format!("{}, not stamped", row.phase) };
        table.row([
            Cell::text(name),
            measured.map_or(Cell::Missing, |of| Cell::Count(of.n)),
            maybe(measured.and_then(|of| of.p50_us), time),
            maybe(measured.and_then(|of| of.p99_us), time),
            maybe(measured.map(|of| of.mean_us), time),
            time(row.model_us),
            maybe(row.residual.map(|of| of.typical_us), difference),
            maybe(row.residual.map(|of| of.tail_us), difference),
        ]);
    }
    table
}

fn residuals(shown: &Budgeted<'_>) -> Table {
    let head = ["term", "phase", "model", "median", "typical", "slow", "", "now each", "if it alone"];
    let mut table = Table::new(head);
    let Some((_, comparison)) = shown.against else { return table };
    for row in &comparison.terms {
        let term = &shown.budget.terms[row.term];
        let cost = shown.forecast.costs.iter().find(|cost| cost.term == row.term);
        let is_hidden = row.residual.is_none() && cost.is_some_and(|cost| cost.hidden);
        let each = row.needed_each_us.map(|_| cost.map_or(0.0, |cost| cost.each_us));
        table.row([
            Cell::text(term.name.as_str()),
            Cell::text(term.phase.as_str()),
            time(row.model_us),
            maybe(row.measured.as_ref().and_then(|of| of.p50_us), time),
            maybe(row.residual.map(|of| of.typical_us), difference),
            maybe(row.residual.map(|of| of.tail_us), difference),
            Cell::text(if row.alone {
                "alone"
            } else if is_hidden {
                "hidden"
            } else {
                ""
            }),
            maybe(each, time),
            maybe(row.needed_each_us, time),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, terminal};

    use super::*;
    use crate::budget::sample;

    fn plain(shown: &Budgeted<'_>) -> String {
        terminal(&budget_document(shown), Style::default())
    }

    #[test]
    fn the_terminal_budget() {
        sample::with("pi3hat", |shown| insta::assert_snapshot!(plain(shown)));
    }

    #[test]
    fn the_terminal_budget_with_answers_and_a_recording() {
        sample::with_answers(|shown| insta::assert_snapshot!(plain(shown)));
    }

    #[test]
    fn every_preset_owns_up_to_its_fits() {
        for preset in &taut_bus::budget::PRESETS {
            sample::with(preset.name, |shown| {
                let text = plain(shown);
                assert!(text.contains("Fitted, so that") || text.contains("Nothing is fitted"), "{}", preset.name);
            });
        }
    }

    #[test]
    fn the_sample_pages_for_the_browser_tests_are_written() {
        let write = |name: &str, shown: &Budgeted<'_>| {
            let path = format!("{}/../../target/budget-{name}.html", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(path, crate::interactive(&budget_document(shown))).unwrap();
        };
        sample::with("pi3hat", |shown| write("parallel", shown));
        sample::with_answers(|shown| write("answers", shown));
    }
}
