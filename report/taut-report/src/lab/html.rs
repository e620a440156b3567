//! The HTML form of a lab: the same page as every report's, with the JSON form and each trial's numbers as its data.

use std::collections::BTreeMap;

use serde_json::Value;
use taut_lab::{Results, Status, Trial};

use super::LabShown;
use crate::html::page;

/// A self-contained page; `json` is the JSON form of `taut lab run` or `sweep`.
pub fn lab_html(shown: &LabShown<'_>, mut json: Value, results: &Results, trials: &[Trial]) -> String {
    let mut shots: BTreeMap<&str, BTreeMap<&str, Vec<Option<f64>>>> = BTreeMap::new();
    for scenario in &results.scenarios {
        let valid = || trials.iter().filter(|t| t.id.scenario == scenario.name && t.status != Status::Invalid);
        for metric in &scenario.metrics {
            let number = |t: &Trial| t.metrics.get(&metric.name).copied().filter(|_| t.status == Status::Success);
            shots.entry(&metric.name).or_default().insert(&scenario.name, valid().map(number).collect());
        }
    }
    json["shots"] = serde_json::json!(shots);
    page(&format!("lab {}", shown.file.display()), "lab", &Value::Array(vec![json]))
}

/// A self-contained page of a search; `json` is its JSON form.
pub fn lab_break_html(shown: &LabShown<'_>, json: Value) -> String {
    page(&format!("lab break {}", shown.file.display()), "lab", &Value::Array(vec![json]))
}
