//! The terminal form of a budget: sentences first, then tables that fit 100 columns.

use comfy_table::{CellAlignment, Table};
use taut_bus::budget::{Gradient, Origin};

use super::{
    Budgeted,
    figures::{column, signed, slope, value},
    sentences,
};
use crate::{
    Style,
    console::{bar, indent, table, wrap},
    words::{count, microseconds, percent},
};

/// Columns of a sentence.
const WIDTH: usize = 98;
/// Figures worth a row; the rest is in the JSON.
const GRADIENTS_MAX: usize = 12;
/// Below this a figure is worth nothing, µs.
const WORTH_US: f64 = 0.005;

/// What `taut bus budget` prints.
pub fn budget_terminal(shown: &Budgeted<'_>, style: Style) -> String {
    let budget = shown.budget;
    let mut out = format!("{}\n", style.bold(&wrap(&budget.title, WIDTH)));
    if !budget.about.is_empty() {
        out += &format!("{}\n", style.dim(&wrap(&budget.about, WIDTH)));
    }
    out += &format!("\n{}\n", style.bold(&wrap(&sentences::headline(shown), WIDTH)));
    for sentence in sentences::published(shown).into_iter().chain(sentences::honesty(shown)) {
        out += &format!("{}\n", wrap(&sentence, WIDTH));
    }
    out += &section("The cycle", style, &[&drawn(shown)], &sentences::drawn(shown.forecast));
    if let Some(polled) = shown.polled {
        out += &format!(" {}\n", wrap(&sentences::polled(polled), WIDTH - 1).replace('\n', "\n "));
    }
    let hidden = if shown.forecast.costs.iter().any(|cost| cost.hidden) { sentences::HIDDEN } else { "" };
    out += &section("Where it goes", style, &[&terms(shown)], hidden);
    out += &section("Who is busy", style, &[&resources(shown)], sentences::SLACK);
    let (worth, worthless): (Vec<&Gradient>, Vec<&Gradient>) = shown.gradients.iter().partition(|g| is_worth(g));
    out += &section("What each figure is worth", style, &[&gradients(&worth)], &rest(&worth, &worthless));
    if let Some(solved) = shown.solved {
        let answers: Vec<String> =
            solved.answers.iter().map(|answer| sentences::answer(answer, solved.target_hz)).collect();
        out += &section("What the rate allows, one figure at a time", style, &[], "");
        out += &answers
            .iter()
            .map(|text| format!(" {}\n", wrap(text, WIDTH - 1).replace('\n', "\n   ")))
            .collect::<String>();
    }
    if let Some((run, comparison)) = shown.against {
        out += &format!(
            "\n{}\n {}\n",
            style.bold("Against the recording"),
            wrap(&sentences::against(run, comparison), WIDTH - 1).replace('\n', "\n ")
        );
        out += &indent(&phases(shown));
        out += &section("Residual of each term", style, &[&residuals(shown)], sentences::RESIDUAL);
    }
    out
}

fn section(title: &str, style: Style, tables: &[&Table], below: &str) -> String {
    let mut out = format!("\n{}\n", style.bold(title));
    out.extend(tables.iter().map(|table| indent(table)));
    if !below.is_empty() {
        out += &format!(" {}\n", style.dim(&wrap(below, WIDTH - 1).replace('\n', "\n ")));
    }
    out
}

fn drawn(shown: &Budgeted<'_>) -> Table {
    let d = &shown.forecast.distribution;
    let mut table = table(&["µs", "n", "min", "p50", "p90", "p99", "p99.9", "max"]);
    let mut row = vec!["drawn cycles".to_owned(), count(d.n)];
    row.extend([d.min_ns, d.p50_ns, d.p90_ns, d.p99_ns, d.p999_ns, d.max_ns].map(microseconds));
    table.add_row(row);
    table
}

fn terms(shown: &Budgeted<'_>) -> Table {
    // With one resource there is nothing to tell apart.
    let several = shown.budget.resources.len() > 1;
    let mut table = table(&["µs", "times", "each", "cycle", "share", "known", if several { "resource" } else { "" }]);
    left(&mut table, 5..7);
    for cost in &shown.forecast.costs {
        let term = &shown.budget.terms[cost.term];
        let share = cost.total_us / shown.forecast.cycle_us.max(f64::MIN_POSITIVE);
        let share = if cost.hidden { "hidden".into() } else { format!("{} {:>6}", bar(share), percent(share)) };
        let origin = if term.origin == Origin::Fitted { "FITTED" } else { term.origin.word() };
        let resource = if several { &shown.budget.resources[term.resource].name } else { "" };
        table.add_row([
            wrap(&term.name, if several { 26 } else { 40 }),
            count(cost.count.into()),
            column(cost.each_us),
            column(cost.total_us),
            share,
            origin.to_owned(),
            wrap(resource, 16),
        ]);
    }
    table
}

fn resources(shown: &Budgeted<'_>) -> Table {
    let forecast = shown.forecast;
    let of = if forecast.misses.is_some() { "of the period" } else { "of the cycle" };
    let mut table = table(&["µs", "servos", "busy", "p99", of, "slack", ""]);
    left(&mut table, 6..7);
    for (at, (lane, usage)) in forecast.lanes.iter().zip(&forecast.usage).enumerate() {
        let role = match lane.parallel {
            false => "serial",
            true if forecast.critical == Some(at) => "decides",
            true => "",
        };
        table.add_row([
            wrap(&lane.name, 30),
            count(lane.servos.into()),
            column(usage.busy_us),
            usage.busy_p99_us.map_or("–".into(), column),
            format!("{} {:>6}", bar(usage.utilisation), percent(usage.utilisation)),
            column(usage.slack_us),
            role.to_owned(),
        ]);
    }
    table
}

fn is_worth(gradient: &Gradient) -> bool {
    gradient.gain_us >= WORTH_US || gradient.per_unit_us.abs() >= WORTH_US && gradient.value == 0.0
}

fn gradients(worth: &[&Gradient]) -> Table {
    let mut table = table(&["figure", "now", "step to", "saves (µs)", "slope"]);
    left(&mut table, 4..5);
    for gradient in worth.iter().take(GRADIENTS_MAX) {
        let saves = if gradient.gain_us >= WORTH_US { column(gradient.gain_us) } else { "–".into() };
        let step =
            if gradient.better == gradient.value { "–".into() } else { value(&gradient.knob, gradient.better) };
        table.add_row([
            wrap(&gradient.key, 40),
            value(&gradient.knob, gradient.value),
            step,
            saves,
            slope(&gradient.knob, gradient.per_unit_us),
        ]);
    }
    table
}

fn rest(worth: &[&Gradient], worthless: &[&Gradient]) -> String {
    let mut parts = Vec::new();
    if worth.len() > GRADIENTS_MAX {
        parts.push(format!("{} more in --format json.", worth.len() - GRADIENTS_MAX));
    }
    if !worthless.is_empty() {
        let keys: Vec<&str> = worthless.iter().map(|gradient| gradient.key.as_str()).collect();
        parts.push(format!("Changes nothing now, while another resource decides: {}.", keys.join(", ")));
    }
    parts.join(" ")
}

fn phases(shown: &Budgeted<'_>) -> Table {
    let mut table = table(&["phase (µs)", "n", "p50", "p99", "mean", "model", "typical", "slow"]);
    let Some((_, comparison)) = shown.against else { return table };
    for row in comparison.phases.iter().chain([&comparison.cycle]) {
        let quantile = |us: Option<f64>| us.map_or("–".into(), column);
        let measured = row.measured.as_ref();
        table.add_row([
            row.phase.clone(),
            measured.map_or("not stamped".into(), |m| count(m.n)),
            quantile(measured.and_then(|m| m.p50_us)),
            quantile(measured.and_then(|m| m.p99_us)),
            quantile(measured.map(|m| m.mean_us)),
            column(row.model_us),
            row.residual.map_or("–".into(), |residual| signed(residual.typical_us)),
            row.residual.map_or("–".into(), |residual| signed(residual.tail_us)),
        ]);
    }
    table
}

fn residuals(shown: &Budgeted<'_>) -> Table {
    let mut table = table(&["µs", "phase", "model", "median", "typical", "slow", "", "if it alone, each"]);
    left(&mut table, 1..2);
    left(&mut table, 6..7);
    let Some((_, comparison)) = shown.against else { return table };
    for row in &comparison.terms {
        let term = &shown.budget.terms[row.term];
        let cost = shown.forecast.costs.iter().find(|cost| cost.term == row.term);
        let typical = match (row.residual, cost) {
            (None, Some(cost)) if cost.hidden => "hidden".into(),
            (residual, _) => residual.map_or("–".into(), |residual| signed(residual.typical_us)),
        };
        table.add_row([
            wrap(&term.name, 26),
            term.phase.clone(),
            column(row.model_us),
            row.measured.as_ref().and_then(|measured| measured.p50_us).map_or("–".into(), column),
            typical,
            row.residual.map_or("–".into(), |residual| signed(residual.tail_us)),
            if row.alone { "alone".into() } else { String::new() },
            sentences::needed(row, cost.map_or(0.0, |cost| cost.each_us)),
        ]);
    }
    table
}

fn left(table: &mut Table, columns: std::ops::Range<usize>) {
    for at in columns {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::sample;

    #[test]
    fn the_terminal_budget() {
        sample::with("pi3hat", |shown| insta::assert_snapshot!(budget_terminal(shown, Style::default())));
    }

    #[test]
    fn the_terminal_budget_with_answers_and_a_recording() {
        sample::with_answers(|shown| insta::assert_snapshot!(budget_terminal(shown, Style::default())));
    }

    #[test]
    fn every_preset_fits_100_columns_and_owns_up_to_its_fits() {
        for preset in &taut_bus::budget::PRESETS {
            sample::with(preset.name, |shown| {
                let text = budget_terminal(shown, Style::default());
                let longest = text.lines().map(|line| line.chars().count()).max();
                assert!(longest <= Some(100), "{}: {longest:?} columns\n{text}", preset.name);
                assert!(text.contains("Fitted, so that") || text.contains("Nothing is fitted"), "{}", preset.name);
            });
        }
    }
}
