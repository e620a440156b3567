//! Values over time: what was commanded beside what came of it, other signals one by one.

use taut_analysis::{Analysis, Signal, Tracking};
use taut_document::{Axis, AxisScale, Block, Cell, Chart, Curve, Mark, Quantity, Section, Show, Table, Tone, units};

/// More charts of signals than this nobody looks at; a pair of commanded and actual is one.
const CHARTS_MAX: usize = 12;

pub(super) fn sections(analysis: &Analysis) -> Vec<Section> {
    if analysis.signals.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(["actual from commanded", "n", "p50", "p99", "max"]);
    table.caption = "How far the actual value was from the command in force, in the signal's unit".into();
    for of in &analysis.tracking {
        let [p50, p99, max] = [of.p50, of.p99, of.max].map(Cell::Number);
        table.row([Cell::text(of.name.as_str()), Cell::Count(of.n), p50, p99, max]);
    }
    let others = analysis.signals.len().saturating_sub(2 * analysis.tracking.len()) as u64;
    let others = format!("{}; --format html draws them", units::quantity(others, "other signal"));
    let mut sections = vec![Section::new(1, "Signals", vec![table.into()])];
    if analysis.signals.len() > 2 * analysis.tracking.len() {
        sections.push(Section::new(2, "", vec![Block::Text(others.into())]).shown(Show::Text));
    }
    sections.push(Section::new(2, "", charts(analysis)).shown(Show::Page));
    sections
}

/// Whether a signal is a half of a pair.
fn is_half(signal: &Signal, of: &Tracking) -> bool {
    signal.name.strip_prefix(&of.name).is_some_and(|end| matches!(end, ".commanded" | ".actual"))
}

/// Pairs first, then others that are more than a single value; a dozen at most.
fn charts(analysis: &Analysis) -> Vec<Block> {
    let pair = |of: &Tracking| -> Vec<&Signal> {
        // The command first.
        analysis.signals.iter().rev().filter(|signal| is_half(signal, of)).collect()
    };
    let is_other = |signal: &&Signal| !analysis.tracking.iter().any(|of| is_half(signal, of));
    let (curves, single): (Vec<&Signal>, Vec<&Signal>) =
        analysis.signals.iter().filter(is_other).partition(|signal| signal.points.len() > 1);
    let pairs = analysis.tracking.iter().take(CHARTS_MAX).map(|of| {
        let finding =
            format!("Half of the time within {}, at most {} apart.", units::figure(of.p50), units::figure(of.max));
        chart(format!("{}: commanded and actual", of.name), finding, &pair(of))
    });
    let others = curves.iter().map(|signal| {
        let values = || signal.points.iter().map(|(_, value)| *value);
        let [least, most] =
            [values().min_by(f64::total_cmp), values().max_by(f64::total_cmp)].map(Option::unwrap_or_default);
        let finding = format!("From {} to {}.", units::figure(least), units::figure(most));
        chart(signal.name.clone(), finding, &[signal])
    });
    let mut blocks: Vec<Block> = pairs.chain(others).take(CHARTS_MAX).map(Block::from).collect();
    let rest = (analysis.tracking.len() + curves.len()).saturating_sub(CHARTS_MAX);
    if !single.is_empty() {
        let value = |signal: &&Signal| {
            let last = signal.points.last().map_or("–".into(), |(_, value)| units::figure(*value));
            format!("{} {last}", signal.name)
        };
        let all: Vec<String> = single.iter().map(value).collect();
        blocks.push(Block::Text(format!("Told once: {}.", all.join(", ")).into()));
    }
    if rest > 0 {
        let text = format!("{} further in the recording, as channels under /value.", units::count(rest as u64));
        blocks.push(Block::Text(text.into()));
    }
    blocks
}

fn chart(title: String, finding: String, signals: &[&Signal]) -> Chart {
    let mut table = Table::new(["signal", "values", "least", "most", "last"]);
    let curve = |(at, signal): (u8, &&Signal)| Curve {
        name: signal.name.clone(),
        // A value holds until the next one.
        mark: Mark::Steps,
        xy: signal.points.iter().map(|(ns, value)| (*ns as f64, *value)).collect(),
        tone: Tone::Series(at),
        dashed: at > 0,
        ..Curve::default()
    };
    for signal in signals {
        let values = || signal.points.iter().map(|(_, value)| *value);
        let figures = [values().min_by(f64::total_cmp), values().max_by(f64::total_cmp), values().next_back()];
        let cells = [Cell::text(signal.name.as_str()), Cell::Count(signal.points.len() as u64)].into_iter();
        table.add(cells.chain(figures.map(|value| value.map_or(Cell::Missing, Cell::Number))));
    }
    Chart {
        title,
        finding: finding.into(),
        x: Axis { label: "time".into(), ..Axis::new(Quantity::Instant, AxisScale::Linear) },
        y: Axis { label: "value".into(), ..Axis::new(Quantity::Plain, AxisScale::Linear) },
        curves: (0..).zip(signals).map(curve).collect(),
        table: Some(table),
        wide: true,
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn pairs_are_drawn_first_and_a_dozen_charts_at_most() {
        let mut analysis = sample::teleop();
        let drawn = |analysis: &Analysis| -> Vec<Vec<String>> {
            let charts = charts(analysis).into_iter().filter_map(|block| match block {
                Block::Chart(chart) => Some(chart.curves.into_iter().map(|curve| curve.name).collect()),
                _ => None,
            });
            charts.collect()
        };
        assert_eq!(drawn(&analysis), [vec!["knee.commanded", "knee.actual"], vec!["battery_v"]]);
        analysis
            .signals
            .extend((0..50).map(|n| Signal { name: format!("signal {n}"), points: vec![(0, 0.0); 1 + n % 2] }));
        let all = drawn(&analysis);
        assert_eq!(all.len(), CHARTS_MAX);
        assert!(!all.concat().contains(&"signal 0".to_owned()), "told once: {all:?}");
    }
}
