//! Figures over revisions, and the revisions that changed them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::compare::{ChangePoint, change_points};

use crate::Row;

/// Of the shuffled histories, the share that may look as changed as the real one.
const ALPHA: f64 = 0.01;
/// A change of a time below this is no news …
const SMALLEST: f64 = 0.05;
/// … nor one of a share below this.
const SMALLEST_SHARE: f64 = 0.001;
/// Of the shuffles.
const SEED: u64 = 1;

/// One figure over all revisions on one kind of machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Line")]
pub struct FigureHistory {
    /// The chain.
    pub chain: String,
    /// "from → to"; null for the whole way.
    pub hop: Option<String>,
    /// "own.p50" …; times in ns, shares from 0 to 1.
    pub figure: String,
    /// Its kind: number of CPUs, CPU, kernel.
    pub machine: String,
    /// In order of time.
    pub revisions: Vec<RevisionFigure>,
    /// In order of time.
    pub changes: Vec<Change>,
}

/// A figure of one revision.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Revision")]
pub struct RevisionFigure {
    /// Its name.
    pub revision: String,
    /// Median over its trials.
    pub value: f64,
}

/// A change, with the revision that brought it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The last revision before.
    pub from: String,
    /// The first revision after.
    pub to: String,
    /// Its index in the revisions.
    pub at: usize,
    /// Median of the level before.
    pub before: f64,
    /// Median of the level after.
    pub after: f64,
    /// Share of shuffled histories that are as clearly changed.
    pub p: f64,
    /// In words: "arm: read → plan, own.p50 +39.9 %".
    pub sentence: String,
}

impl FigureHistory {
    /// "arm: read → plan, own.p50".
    pub fn name(&self) -> String {
        format!("{}: {}, {}", self.chain, self.hop.as_deref().unwrap_or("whole way"), self.figure)
    }

    /// Whether its values are shares, and not times.
    pub fn is_share(&self) -> bool {
        !self.figure.contains('.') || self.figure.ends_with(".slow")
    }
}

/// The lines of those figures that are wanted ("own.p50"), every hop by itself.
pub fn lines(rows: &[Row], figures: &[String]) -> Vec<FigureHistory> {
    type Key = (String, String, String, String);
    let mut values: BTreeMap<Key, BTreeMap<String, (f64, Vec<f64>)>> = BTreeMap::new();
    for row in rows.iter().filter(|row| figures.contains(&row.figure)) {
        let key = (row.chain.clone(), row.hop.clone(), row.figure.clone(), row.machine.clone());
        let of_revision = values.entry(key).or_default().entry(row.revision.clone());
        let (first, all) = of_revision.or_insert((row.time_unix_s, Vec::new()));
        *first = first.min(row.time_unix_s);
        all.push(row.value);
    }
    values.into_iter().map(|(key, revisions)| line(key, revisions)).collect()
}

fn line(
    (chain, hop, figure, machine): (String, String, String, String),
    revisions: BTreeMap<String, (f64, Vec<f64>)>,
) -> FigureHistory {
    let mut in_order: Vec<(f64, String, f64)> =
        revisions.into_iter().map(|(revision, (time, values))| (time, revision, median(values))).collect();
    in_order.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    let values: Vec<f64> = in_order.iter().map(|(_, _, value)| *value).collect();
    let hop = (!hop.is_empty()).then_some(hop);
    let mut line = FigureHistory { chain, hop, figure, machine, revisions: Vec::new(), changes: Vec::new() };
    let is_share = line.is_share();
    // On logarithms, a level that doubles is as clear at 50 µs as at 5 ms.
    let scaled: Vec<f64> = values.iter().map(|value| if is_share { *value } else { value.max(1.0).ln() }).collect();
    let unscaled = |value: f64| if is_share { value } else { value.exp() };
    for ChangePoint { at, before, after, p } in change_points(&scaled, ALPHA, SEED) {
        let (before, after) = (unscaled(before), unscaled(after));
        let (change, smallest) =
            if is_share { (after - before, SMALLEST_SHARE) } else { (after / before - 1.0, SMALLEST) };
        if change.abs() >= smallest {
            let (from, to) = (in_order[at - 1].1.clone(), in_order[at].1.clone());
            let sentence = match is_share {
                true => format!("{} {:+.2} pp", line.name(), change * 100.0),
                false => format!("{} {:+.1} %", line.name(), change * 100.0),
            };
            line.changes.push(Change { from, to, at, before, after, p, sentence });
        }
    }
    line.revisions = in_order.into_iter().map(|(_, revision, value)| RevisionFigure { revision, value }).collect();
    line
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: u32, value: f64, trial: u32) -> Row {
        Row {
            time_unix_s: f64::from(at) * 1e3 + f64::from(trial),
            revision: format!("r{at:02}"),
            machine: "one".into(),
            chain: "arm".into(),
            hop: "a → b".into(),
            figure: "own.p50".into(),
            value: value * (1.0 + f64::from((at * 7 + trial * 3) % 5) / 500.0),
        }
    }

    #[test]
    fn the_revision_that_brought_the_change_is_named() {
        let level = |at: u32| if at < 12 { 1e5 } else { 1.3e5 };
        // In any order: files of a folder come as they like.
        let rows: Vec<Row> = (0..25).rev().flat_map(|at| (0..5).map(move |trial| row(at, level(at), trial))).collect();
        let lines = lines(&rows, &["own.p50".into(), "own.p99".into()]);
        assert_eq!((lines.len(), lines[0].revisions.len(), lines[0].changes.len()), (1, 25, 1));
        let change = &lines[0].changes[0];
        assert_eq!((change.from.as_str(), change.to.as_str()), ("r11", "r12"));
        assert!((change.after / change.before - 1.3).abs() < 0.02, "{change:?}");
    }

    #[test]
    fn a_change_of_one_per_cent_is_no_news() {
        let rows: Vec<Row> = (0..30).map(|at| row(at, if at < 15 { 1e5 } else { 1.01e5 }, 0)).collect();
        assert!(lines(&rows, &["own.p50".into()])[0].changes.is_empty());
    }
}
