//! A lab's trials as CSV, a row each: for spreadsheets and data frames. RFC 4180.

use std::collections::BTreeSet;

use serde_json::Value;
use taut_lab::Trial;

use taut_document::escape::{Form, escaped};

/// Columns that every trial has, by the names of the trial's manifest.
const COLUMNS: [&str; 10] =
    ["round", "scenario", "index", "varied", "status", "reason", "started_unix_s", "wall_s", "exit_code", "signal"];

/// All trials, in the order in which they ran; behind [`COLUMNS`] a column `metric.NAME` for each metric. What a trial does not have is
/// empty.
pub fn lab_csv(trials: &[Trial]) -> String {
    let trials: Vec<Value> = trials.iter().map(|trial| serde_json::to_value(trial).unwrap_or_default()).collect();
    let metrics: BTreeSet<&String> =
        trials.iter().filter_map(|trial| trial["metrics"].as_object()).flat_map(|of| of.keys()).collect();
    let head =
        COLUMNS.iter().map(|name| (*name).to_owned()).chain(metrics.iter().map(|name| text(&format!("metric.{name}"))));
    let mut out = line(head);
    for trial in &trials {
        let fixed = COLUMNS.iter().map(|name| cell(&trial[*name]));
        out += &line(fixed.chain(metrics.iter().map(|name| cell(&trial["metrics"][name.as_str()]))));
    }
    out
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(",") + "\r\n"
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(word) => text(word),
        Value::Number(number) => number.to_string(),
        other => text(&other.to_string()),
    }
}

fn text(text: &str) -> String {
    escaped(text, Form::Csv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::sample;

    #[test]
    fn a_row_is_a_trial_with_its_metrics() {
        let mut trials = sample::trials();
        trials[1].reason = Some("=1+1, \"no\" plan".to_owned());
        let text = lab_csv(&trials);
        let rows: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(rows.len(), 17);
        assert_eq!(
            rows[0],
            "round,scenario,index,varied,status,reason,started_unix_s,wall_s,exit_code,signal,metric.ask_ms,metric.wall_s"
        );
        assert_eq!(rows[1], "0,none,0,,success,,0.0,1.0,0,,9.0,0.009");
        assert_eq!(rows[2], "0,flood,0,,planning_failed,\"'=1+1, \"\"no\"\" plan\",0.0,1.0,0,,18.0,0.018");
    }
}
