//! The JSON form of a lab; `docs/reference/lab.md` says what the fields are for, `docs/schemas/lab.schema.json`, generated from these
//! types, what they are.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use taut_lab::{Broken, Grid, Results};

use super::{LabShown, words};

/// What `taut lab run --format json` prints.
pub fn lab_json(shown: &LabShown<'_>, results: &Results) -> Value {
    document(shown, "lab", words::headline(results), results)
}

/// What `taut lab sweep --format json` prints.
pub fn lab_sweep_json(shown: &LabShown<'_>, results: &Results, grid: &Grid) -> Value {
    let points = grid.points.iter().map(|(scenario, values)| Point {
        scenario: scenario.clone(),
        values: values.iter().map(|(key, one)| (key.clone(), serde_json::to_value(one).unwrap_or_default())).collect(),
    });
    let swept = Swept { points: points.collect(), results };
    document(shown, "lab-sweep", words::headline(results), &swept)
}

/// What `taut lab break --format json` prints.
pub fn lab_break_json(shown: &LabShown<'_>, broken: &Broken) -> Value {
    document(shown, "lab-break", words::broken(broken), broken)
}

#[derive(Serialize, JsonSchema)]
struct Document<'a, Body> {
    /// Version of this schema.
    schema_version: u32,
    /// "lab", "lab-sweep" or "lab-break": of `taut lab run`, `sweep`, `break`.
    kind: &'static str,
    /// The lab as it was typed.
    file: String,
    /// The folder of the manifest and the logs.
    folder: String,
    /// From the file.
    title: &'a str,
    /// From the file.
    seed: u64,
    /// What a busy reader needs.
    headline: String,
    #[serde(flatten)]
    body: &'a Body,
}

#[derive(Serialize, JsonSchema)]
struct Swept<'a> {
    /// What each scenario but the baseline is made of.
    points: Vec<Point>,
    #[serde(flatten)]
    results: &'a Results,
}

#[derive(Serialize, JsonSchema)]
struct Point {
    /// Its name.
    scenario: String,
    /// By key below the scenario, "load.0.rate_hz".
    values: BTreeMap<String, Value>,
}

fn document<Body: Serialize>(shown: &LabShown<'_>, kind: &'static str, headline: String, body: &Body) -> Value {
    let document = Document {
        schema_version: crate::SCHEMA_VERSION,
        kind,
        file: shown.file.display().to_string(),
        folder: shown.folder.display().to_string(),
        title: shown.title,
        seed: shown.seed,
        headline,
        body,
    };
    serde_json::to_value(document).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of the three; `kind` says which.
    #[derive(JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Lab {
        Run(Document<'static, Results>),
        Sweep(Document<'static, Swept<'static>>),
        Break(Document<'static, Broken>),
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        crate::json::assert_documented(&schemars::schema_for!(Lab).to_value(), "schemas/lab.schema.json");
    }
}
