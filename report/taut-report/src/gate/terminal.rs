//! The terminal form of a gate: the verdict first, then tables that fit 100 columns.

use super::{GateShown, rows, sentences};
use crate::{
    Style,
    console::{indent, table, wrap},
};

const WIDTH: usize = 98;
/// Columns of a figure's name.
const NAME: usize = 40;

/// What `taut gate` and `taut compare` print.
pub fn gate_terminal(shown: &GateShown<'_>, style: Style) -> String {
    let mut out = format!("{}\n", style.bold(&wrap(&sentences::headline(shown), WIDTH)));
    out += &format!("{}\n", style.dim(&wrap(&format!("A: {}", shown.a), WIDTH)));
    out += &format!("{}\n", style.dim(&wrap(&format!("B: {}", shown.b), WIDTH)));
    out += &format!("{}\n", style.dim(&wrap(&rows::about(shown), WIDTH)));
    for note in sentences::notes(shown) {
        out += &format!("{} {}\n", style.dim("note:"), wrap(&note, 92).replace('\n', "\n      "));
    }
    let ballots = rows::ballots(shown);
    if !ballots.is_empty() {
        out += &section("What decides", style, &figures(&ballots, &rows::HEADER));
    }
    let hops = rows::hops(shown);
    if !hops.is_empty() {
        let mut all = table(&rows::HOP_HEADER);
        hops.into_iter().for_each(|row| {
            all.add_row(row);
        });
        out += &section(rows::HOPS_TITLE, style, &narrow(all));
        out += &format!("{}\n", style.dim(&wrap(rows::HOPS_NOTE, WIDTH)));
    }
    let described = rows::described(shown);
    if !described.is_empty() {
        out += &section("What does not decide", style, &figures(&described, &rows::HEADER[..6]));
    }
    out
}

fn figures(all: &[rows::Row], header: &[&str]) -> comfy_table::Table {
    let mut rows = table(header);
    for row in all {
        let cells = [&row.figure, &row.a, &row.b, &row.change, &row.bounds, &row.verdict, &row.smallest];
        rows.add_row(cells.into_iter().take(header.len()).map(|cell| unbroken(cell)).collect::<Vec<_>>());
    }
    narrow(rows)
}

/// A figure and its unit stay together.
fn unbroken(cell: &str) -> String {
    if cell.starts_with(|c: char| c.is_ascii_digit() || "+−".contains(c)) {
        cell.replace(' ', "\u{a0}")
    } else {
        cell.to_owned()
    }
}

/// Long names break; the rest stays on one line.
fn narrow(mut rows: comfy_table::Table) -> comfy_table::Table {
    use comfy_table::{ColumnConstraint, ContentArrangement, Width};
    rows.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH as u16);
    if let Some(column) = rows.column_mut(0) {
        column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(NAME as u16)));
    }
    rows
}

fn section(title: &str, style: Style, rows: &comfy_table::Table) -> String {
    format!("\n{}\n\n{}", style.bold(title), indent(rows).replace('\u{a0}', " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::sample;

    #[test]
    fn the_terminal_gate() {
        for (name, outcome) in sample::outcomes() {
            let text = gate_terminal(&sample::shown(&outcome), Style::default());
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(100), "{widest:?} columns:\n{text}");
            insta::assert_snapshot!(name, text);
        }
    }
}
