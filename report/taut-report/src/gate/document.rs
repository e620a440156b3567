//! A gate's outcome as a document: the verdict, the figures that decide, where the time went, and the rest.

use taut_document::{
    Axis, AxisScale, Block, Cell, Chart, Curve, Document, Finding, Mark, Quantity, Section, Show, Table, Text, Tone,
    units,
};
use taut_gate::{HopChange, Plot, TimeChange};

use crate::words;

use super::{
    GateShown, cells,
    figure::{GateFigure, deciding, others},
    sentences,
};

/// Causes that changed by less are not shown, and of a hop no more than these many.
const CAUSE_MIN_NS: f64 = 100.0;
const CAUSES_SHOWN: usize = 4;

/// What is shown of a gate, and of a comparison of trials.
pub fn gate_document(shown: &GateShown<'_>) -> Document {
    Document {
        title: shown.kind.to_owned(),
        measured: about(shown).into(),
        headline: sentences::headline(shown).into(),
        sections: sections(shown),
        notes: sentences::notes(shown).into_iter().map(Text::from).collect(),
        reproduce: Vec::new(),
    }
}

fn sections(shown: &GateShown<'_>) -> Vec<Section> {
    let side = |(at, (label, name)): (u8, (&str, &str))| Finding {
        tone: Tone::Series(at),
        label: label.to_owned(),
        text: Text::default().code(name),
        ..Finding::default()
    };
    let sides = (0..).zip([("A", shown.a), ("B", shown.b)]).map(side).collect();
    let distributions = &shown.outcome.distributions;
    let charts = [
        longer("The whole way", &distributions.a_total, &distributions.b_total),
        longer("Without the machine's part", &distributions.a_own, &distributions.b_own),
    ];
    let note =
        "The change is within a pair (Hodges–Lehmann over pairs), which need not be the difference of the medians.";
    let note = (shown.outcome.pairs > 1).then(|| Block::Text(note.into()));
    // Rows of figures of which none is decided are no news.
    let (of_deciding, of_others) = match sentences::only_describes(shown.outcome) {
        true => (Show::Page, Show::Page),
        false => (Show::Always, Show::Folded),
    };
    let mut sections = vec![
        Section::new(1, "", vec![Block::Findings(sides)]),
        Section::new(1, "What decides", vec![Block::Table(figures(&deciding(shown)))]).shown(of_deciding),
        Section::new(1, "Share of messages that took longer", charts.into_iter().flatten().map(Block::from).collect())
            .shown(Show::Page),
        Section::new(
            1,
            "Where the time went: mean of a message in the median trial of each side",
            std::iter::once(Block::Table(hops(&shown.outcome.hops))).chain(note).collect(),
        )
        .shown(Show::Folded),
        Section::new(1, "What does not decide", vec![Block::Table(figures(&others(shown)))]).shown(of_others),
    ];
    let is_empty = |block: &Block| matches!(block, Block::Table(table) if table.rows.is_empty());
    sections.retain(|section| section.blocks.first().is_some_and(|block| !is_empty(block)));
    sections
}

fn figures(all: &[GateFigure]) -> Table {
    let mut table =
        Table::new(["figure", "A", "B", "change", "95 %", "verdict", "finds"]).priorities([0, 2, 2, 0, 1, 0, 3]);
    let columns = if all.iter().any(|of| of.smallest_detectable.is_some()) { 7 } else { 6 };
    table.columns.truncate(columns);
    for of in all {
        let number = |value: Option<f64>| value.map_or(Cell::Missing, |value| cells::number(of.is_share(), value));
        let change = |value: Option<f64>| value.map(|value| cells::change(of.is_share(), value));
        let bounds = change(of.change_low).zip(change(of.change_high));
        let row = table.row([
            Cell::text(of.figure.as_str()),
            number(of.a),
            number(of.b),
            change(of.change).unwrap_or(Cell::Missing),
            bounds.map_or(Cell::Missing, |(low, high)| Cell::interval(low, high)),
            Cell::text(of.short()),
            change(of.smallest_detectable).unwrap_or(Cell::Missing),
        ]);
        row.cells.truncate(columns);
        row.tone = match of.short() {
            "worse" => Tone::Bad,
            "better" => Tone::Good,
            _ => Tone::Plain,
        };
    }
    table
}

/// Hops, and below each its causes that changed.
fn hops(hops: &[HopChange]) -> Table {
    let head = ["hop, and causes that changed", "own A", "own B", "change", "machine A", "machine B", "change"];
    let mut table = Table::new(head);
    table.caption = format!(
        "Own: the program's; machine: what others on the machine took from it. Of a hop at most {CAUSES_SHOWN} causes, those that changed \
         by {} or more",
        words::duration(CAUSE_MIN_NS as u64)
    )
    .into();
    let times = |time: &TimeChange| {
        let [a, b] = [time.a_ns, time.b_ns].map(|ns| Cell::Time(ns.round() as u64));
        [a, b, Cell::SignedTime(time.change_ns.round() as i64)]
    };
    let row = |name: String, own: [Cell; 3], machine: [Cell; 3]| {
        let ([a, b, c], [d, e, f]) = (own, machine);
        [Cell::text(name), a, b, c, d, e, f]
    };
    let nothing = || [Cell::Empty, Cell::Empty, Cell::Empty];
    for hop in hops {
        table.row(row(format!("{} → {}", hop.from, hop.to), times(&hop.own), times(&hop.machine)));
        let changed = hop.causes.iter().filter(|cause| cause.time.change_ns.abs() >= CAUSE_MIN_NS);
        let mut causes: Vec<(&str, [Option<&TimeChange>; 2])> = Vec::new();
        for cause in changed {
            let side = usize::from(cause.is_machine);
            let at = causes.iter().position(|(word, _)| *word == cause.cause).unwrap_or(causes.len());
            if at == causes.len() {
                causes.push((&cause.cause, [None; 2]));
            }
            causes[at].1[side] = Some(&cause.time);
        }
        causes.truncate(CAUSES_SHOWN);
        for (cause, [own, machine]) in causes {
            let of = |time: Option<&TimeChange>| time.map_or_else(nothing, times);
            table.row(row(cause.to_owned(), of(own), of(machine))).indent = 1;
        }
    }
    table
}

/// The share of messages that took longer than so much, A and B; both axes logarithmic, so that the tail is seen.
fn longer(title: &str, a: &Plot, b: &Plot) -> Option<Chart> {
    let curve = |at: u8, name: &str, plot: &Plot| Curve {
        name: name.to_owned(),
        mark: Mark::Steps,
        xy: survival(plot),
        tone: Tone::Series(at),
        ..Curve::default()
    };
    (a.count() + b.count() > 0).then(|| Chart {
        title: title.to_owned(),
        finding: "All trials of a side together; the lower, the rarer".into(),
        x: Axis::new(Quantity::Time, AxisScale::Log),
        y: Axis::new(Quantity::Share, AxisScale::Log),
        curves: vec![curve(0, "A", a), curve(1, "B", b)],
        wide: true,
        ..Chart::default()
    })
}

/// (time, share of messages that took at least that long), descending in share, down to the last message.
fn survival(plot: &Plot) -> Vec<(f64, f64)> {
    let all = plot.count().max(1) as f64;
    let mut left = plot.count();
    let mut curve = Vec::new();
    for (from, to, count) in plot.bins() {
        if curve.is_empty() {
            curve.push((from, 1.0));
        }
        left -= count;
        curve.push((to, if left == 0 { 0.5 / all } else { left as f64 / all }));
    }
    curve
}

/// "14 pairs, 8 of them fresh · chain … · 43 s".
fn about(shown: &GateShown<'_>) -> String {
    let outcome = shown.outcome;
    let mut parts = vec![units::quantity(outcome.pairs as u64, "pair")];
    if outcome.fresh > 0 {
        parts[0] += &format!(", {} of them fresh", outcome.fresh);
    }
    if !outcome.points.is_empty() {
        parts.push(outcome.points.join(" → "));
    }
    parts.extend(shown.elapsed_s.map(sentences::time));
    parts.extend(shown.seed.map(|seed| format!("seed {seed}")));
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use taut_document::{Style, html, markdown, terminal};

    use super::*;
    use crate::gate::sample;

    #[test]
    fn the_terminal_gate() {
        for (name, outcome) in sample::outcomes() {
            insta::assert_snapshot!(name, terminal(&gate_document(&sample::shown(&outcome)), Style::default()));
        }
    }

    #[test]
    fn the_markdown_gate() {
        let (_, outcome) = sample::outcomes().remove(0);
        insta::assert_snapshot!(markdown(&gate_document(&sample::shown(&outcome))));
    }

    /// The means of a side's median trial do not add up to a change within pairs.
    #[test]
    fn the_table_of_times_says_what_its_change_is_in_every_form() {
        let said =
            "The change is within a pair (Hodges–Lehmann over pairs), which need not be the difference of the medians.";
        for (name, outcome) in sample::outcomes() {
            let apart = |time: &TimeChange| (time.b_ns - time.a_ns - time.change_ns).abs();
            assert!(outcome.hops.iter().any(|hop| apart(&hop.own) + apart(&hop.machine) > 1.0), "{name}");
            let document = gate_document(&sample::shown(&outcome));
            for text in [terminal(&document, Style::default()), markdown(&document), html(&document, None)] {
                assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(said), "{name}: {text}");
            }
        }
    }

    #[test]
    fn a_machine_that_stalled_is_the_reason_in_every_form() {
        let outcome = sample::stalled();
        let shown = sample::shown(&outcome);
        let said = "the machine stalled in ";
        for text in [sentences::headline(&shown), markdown(&gate_document(&shown)), crate::gate::gate_junit(&shown)] {
            assert!(text.contains(said) && text.contains(" pairs, by the probe beside the program: free it"), "{text}");
            assert!(!text.contains("longer"), "{text}");
        }
    }

    #[test]
    fn the_page_has_both_distributions() {
        let (_, outcome) = sample::outcomes().remove(0);
        let page = html(&gate_document(&sample::shown(&outcome)), None);
        assert_eq!(page.matches("<svg").count(), 2);
        // For the test in a browser.
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/gate-worse.html");
        std::fs::write(path, page).unwrap();
    }
}
