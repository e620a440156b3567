//! A branch's history: which revision changed what.

use schemars::JsonSchema;
use serde::Serialize;
use taut_document::{
    Axis, AxisScale, Block, Cell, Chart, Curve, Document, Mark, Quantity, Section, Show, Table, Tone, units::quantity,
};
use taut_history::{Change, FigureHistory};
use taut_stats::compare::FEWEST_BETWEEN_CHANGES;

use super::cells::{change, number};
use crate::envelope;

/// A history with what is to be said about it.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "History")]
pub struct HistoryShown<'a> {
    /// The folder.
    #[serde(skip)]
    pub folder: &'a str,
    /// Revisions in the folder.
    pub revisions: usize,
    /// One figure over revisions, on one kind of machine.
    pub lines: &'a [FigureHistory],
}

/// What `taut gate --history --format json` prints; the schema is `docs/schemas/history.schema.json`.
pub fn history_json(shown: &HistoryShown<'_>) -> serde_json::Value {
    envelope::json("history", headline(shown), shown)
}

/// The changes, the newest first; a page has a chart of each figure besides, those that changed first.
pub fn history_document(shown: &HistoryShown<'_>) -> Document {
    let mut table = Table::new(["figure", "last before", "first after", "before", "after", "change"]);
    for (line, one) in all(shown) {
        table.row([
            Cell::text(line.name()),
            Cell::text(short(&one.from)),
            Cell::text(short(&one.to)),
            number(line.is_share(), one.before),
            number(line.is_share(), one.after),
            by(line, one),
        ]);
    }
    let mut lines: Vec<&FigureHistory> = shown.lines.iter().filter(|line| line.revisions.len() > 1).collect();
    lines.sort_by_key(|line| line.changes.is_empty());
    let of_line = |line: &FigureHistory| Section::new(1, line.name(), vec![chart(line).into()]).shown(Show::Page);
    let changes = Section::new(1, "", vec![Block::Table(table)]);
    Document {
        title: "history".into(),
        measured: shown.folder.into(),
        headline: headline(shown).into(),
        sections: std::iter::once(changes).chain(lines.into_iter().map(of_line)).collect(),
        ..Document::default()
    }
}

/// The newest first.
fn all<'a>(shown: &'a HistoryShown<'_>) -> Vec<(&'a FigureHistory, &'a Change)> {
    let mut all: Vec<_> = shown.lines.iter().flat_map(|line| line.changes.iter().map(move |c| (line, c))).collect();
    all.sort_by_key(|(line, change)| (line.revisions.len() - change.at, line.name()));
    all
}

fn headline(shown: &HistoryShown<'_>) -> String {
    let revisions = quantity(shown.revisions as u64, "revision");
    let all = all(shown);
    match all.first() {
        None if shown.revisions < 2 * FEWEST_BETWEEN_CHANGES => {
            format!("{revisions}: a change needs at least {}", 2 * FEWEST_BETWEEN_CHANGES)
        }
        None => format!("No change in {revisions}"),
        Some((_, newest)) => format!(
            "{} in {revisions}; the newest came with {}: {}",
            quantity(all.len() as u64, "change"),
            newest.to,
            newest.sentence
        ),
    }
}

fn by(line: &FigureHistory, one: &Change) -> Cell {
    let by = if line.is_share() { one.after - one.before } else { one.after / one.before - 1.0 };
    change(line.is_share(), by)
}

/// The median trial of each revision, the levels between changes, and the revisions that changed it.
fn chart(line: &FigureHistory) -> Chart {
    let said: Vec<String> = line
        .changes
        .iter()
        .map(|one| format!("{} with {} (the last before: {})", by(line, one).alone(), one.to, one.from))
        .collect();
    let said = if said.is_empty() { "no change".into() } else { said.join("; ") };
    let values: Vec<f64> = line.revisions.iter().map(|of| of.value).collect();
    let cuts: Vec<usize> = line.changes.iter().map(|change| change.at).chain([values.len()]).collect();
    let mut levels = Vec::new();
    let mut from = 0;
    for to in cuts.iter().copied() {
        let level = median(&values[from..to]);
        // What is no number is a gap between two levels.
        levels.extend([(from as f64, level), (to as f64 - 1.0, level), (to as f64 - 0.5, f64::NAN)]);
        from = to;
    }
    let named = std::iter::once(0).chain(cuts).map(|at| at.min(values.len() - 1));
    let quantity = if line.is_share() { Quantity::Share } else { Quantity::Time };
    let highest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    Chart {
        finding: format!("{said} · {}", line.machine).into(),
        x: Axis {
            ticks: named.map(|at| (at as f64, short(&line.revisions[at].revision))).collect(),
            ..Axis::default()
        },
        y: Axis { range: Some((0.0, highest * 1.05)), ..Axis::new(quantity, AxisScale::Linear) },
        curves: vec![
            Curve { name: "level".into(), xy: levels, tone: Tone::Series(1), ..Curve::default() },
            Curve {
                name: "median trial".into(),
                mark: Mark::Points,
                xy: values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect(),
                tone: Tone::Series(0),
                ..Curve::default()
            },
        ],
        wide: true,
        ..Chart::default()
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// A git hash as git shows it.
fn short(revision: &str) -> String {
    let is_hash = revision.len() == 40 && revision.chars().all(|c| c.is_ascii_hexdigit());
    if is_hash { revision[..12].to_owned() } else { revision.to_owned() }
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, html, terminal};
    use taut_history::{Row, lines};

    use super::*;
    use crate::envelope::Envelope;

    fn rows() -> Vec<Row> {
        let row = |at: u32| Row {
            time_unix_s: f64::from(at),
            revision: format!("r{at:02}"),
            machine: "one".into(),
            chain: "arm".into(),
            hop: "<a> → b".into(),
            figure: "own.p50".into(),
            value: if at < 10 { 1e5 } else { 1.4e5 } + f64::from(at * 37 % 11) * 100.0,
        };
        (0..20).map(row).collect()
    }

    #[test]
    fn the_terminal_history() {
        let lines = lines(&rows(), &["own.p50".into()]);
        let shown = HistoryShown { folder: "history", lines: &lines, revisions: 20 };
        insta::assert_snapshot!(terminal(&history_document(&shown), Style::default()));
        assert_eq!(history_json(&shown)["lines"][0]["changes"][0]["to"], "r10");
    }

    #[test]
    fn the_page_has_a_chart_with_the_revisions_that_changed_it() {
        let lines = lines(&rows(), &["own.p50".into()]);
        let page = html(&history_document(&HistoryShown { folder: "<history>", lines: &lines, revisions: 20 }), None);
        for named in ["r00", "r10", "r19"] {
            assert!(page.contains(&format!(">{named}</text>")), "{named}");
        }
        // For the test in a browser.
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/gate-history.html");
        std::fs::write(path, page).unwrap();
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        crate::json::assert_documented(
            &schemars::schema_for!(Envelope<HistoryShown<'_>>).to_value(),
            "schemas/history.schema.json",
        );
    }
}
