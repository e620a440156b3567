//! The JSON form of a lab; `docs/lab.md` says what the fields are.

use serde_json::{Value, json};
use taut_lab::{Broken, Grid, Results};

use super::{LabShown, words};

/// Raised when a field is renamed, removed, or changes its meaning.
const SCHEMA_VERSION: u32 = 1;

/// What `taut lab run --format json` prints.
pub fn lab_json(shown: &LabShown<'_>, results: &Results) -> Value {
    with_head(shown, "lab", words::headline(results), serde_json::to_value(results))
}

/// What `taut lab sweep --format json` prints.
pub fn lab_sweep_json(shown: &LabShown<'_>, results: &Results, grid: &Grid) -> Value {
    let mut object = with_head(shown, "lab-sweep", words::headline(results), serde_json::to_value(results));
    let point = |(scenario, values): &(String, _)| json!({ "scenario": scenario, "values": values });
    object["points"] = grid.points.iter().map(point).collect();
    object
}

/// What `taut lab break --format json` prints.
pub fn lab_break_json(shown: &LabShown<'_>, broken: &Broken) -> Value {
    with_head(shown, "lab-break", words::broken(broken), serde_json::to_value(broken))
}

fn with_head(shown: &LabShown<'_>, kind: &str, headline: String, body: serde_json::Result<Value>) -> Value {
    let mut object = json!({
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "file": shown.file.display().to_string(),
        "folder": shown.folder.display().to_string(),
        "title": shown.title,
        "seed": shown.seed,
        "headline": headline,
    });
    if let (Some(head), Ok(Value::Object(body))) = (object.as_object_mut(), body) {
        head.extend(body);
    }
    object
}
