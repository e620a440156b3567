//! The JSON form of a history: serialisable twins, made here at the edge. The schema is documented in
//! `docs/schemas/history.schema.json`, generated from these types.

use schemars::JsonSchema;
use serde::Serialize;
use taut_history as found;

use super::history::{self, HistoryShown};

/// What `taut gate --history --format json` prints.
pub fn history_json(shown: &HistoryShown<'_>) -> serde_json::Value {
    let json = History {
        schema_version: crate::SCHEMA_VERSION,
        kind: "history",
        headline: history::headline(shown),
        revisions: shown.revisions,
        lines: shown.lines.iter().map(line).collect(),
    };
    serde_json::to_value(json).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
struct History {
    /// Version of this schema.
    schema_version: u32,
    /// "history".
    kind: &'static str,
    /// What a busy reader needs.
    headline: String,
    /// Revisions in the folder.
    revisions: usize,
    /// One figure over revisions, on one kind of machine.
    lines: Vec<Line>,
}

#[derive(Serialize, JsonSchema)]
struct Line {
    chain: String,
    /// "from → to"; null for the whole way.
    hop: Option<String>,
    /// "own.p50" …; times in ns, shares from 0 to 1.
    figure: String,
    /// Its kind: number of CPUs, CPU, kernel.
    machine: String,
    /// In order of time.
    revisions: Vec<Revision>,
    /// In order of time.
    changes: Vec<Change>,
}

#[derive(Serialize, JsonSchema)]
struct Revision {
    revision: String,
    /// Median over its trials.
    value: f64,
}

#[derive(Serialize, JsonSchema)]
struct Change {
    /// The last revision before.
    from: String,
    /// The first revision after.
    to: String,
    /// Its index in the revisions.
    at: usize,
    /// Median of the level before.
    before: f64,
    /// Median of the level after.
    after: f64,
    /// Share of shuffled histories that are as clearly changed.
    p: f64,
    /// For people.
    sentence: String,
}

fn line(line: &found::FigureHistory) -> Line {
    let revision = |(revision, value): &(String, f64)| Revision { revision: revision.clone(), value: *value };
    let change = |change: &found::Change| Change {
        from: change.from.clone(),
        to: change.to.clone(),
        at: change.point.at,
        before: change.point.before,
        after: change.point.after,
        p: change.point.p,
        sentence: format!("{} {}", history::name(line), history::change(line, change)),
    };
    Line {
        chain: line.chain.clone(),
        hop: (!line.hop.is_empty()).then(|| line.hop.clone()),
        figure: line.figure.clone(),
        machine: line.machine.clone(),
        revisions: line.revisions.iter().map(revision).collect(),
        changes: line.changes.iter().map(change).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_schema_is_this_one() {
        crate::json::assert_documented(&schemars::schema_for!(History).to_value(), "schemas/history.schema.json");
    }
}
