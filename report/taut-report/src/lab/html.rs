//! The HTML form of a lab: the same page as every report's, with the JSON form, each trial's numbers and each round's
//! differences as its data.

use std::collections::BTreeMap;

use serde_json::Value;
use taut_lab::{Bound, Results, Status, Trial};

use super::LabShown;
use crate::html::page;

/// A self-contained page; `json` is the JSON form of `taut lab run` or `sweep`.
pub fn lab_html(shown: &LabShown<'_>, mut json: Value, results: &Results, trials: &[Trial]) -> String {
    let mut shots: BTreeMap<&str, BTreeMap<&str, Vec<Option<f64>>>> = BTreeMap::new();
    let mut differences: BTreeMap<&str, BTreeMap<&str, &[Bound]>> = BTreeMap::new();
    for scenario in &results.scenarios {
        let valid = || trials.iter().filter(|t| t.id.scenario == scenario.name && t.status != Status::Invalid);
        for metric in &scenario.metrics {
            let number = |t: &Trial| t.metrics.get(&metric.name).copied().filter(|_| t.status == Status::Success);
            shots.entry(&metric.name).or_default().insert(&scenario.name, valid().map(number).collect());
            if let Some(difference) = &metric.difference {
                differences.entry(&metric.name).or_default().insert(&scenario.name, &difference.each);
            }
        }
    }
    json["shots"] = serde_json::json!(shots);
    json["differences"] = serde_json::json!(differences);
    page(&format!("lab {}", shown.file.display()), "lab", &Value::Array(vec![json]))
}

/// A self-contained page of a search; `json` is its JSON form.
pub fn lab_break_html(shown: &LabShown<'_>, json: Value) -> String {
    page(&format!("lab break {}", shown.file.display()), "lab", &Value::Array(vec![json]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{lab_break_json, lab_json, sample};

    fn run(title: &str) -> String {
        let shown = LabShown { title, ..sample::shown() };
        let results = sample::results();
        lab_html(&shown, lab_json(&shown, &results), &results, &sample::trials())
    }

    #[test]
    fn the_page_is_self_contained_and_its_data_cannot_break_out() {
        let page = run("</script><b>");
        assert!(!page.contains("</script><b>"));
        for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_sample_pages_for_the_browser_tests_are_written() {
        let search = lab_break_html(&sample::shown(), lab_break_json(&sample::shown(), &sample::broken()));
        for (name, page) in [("lab", run("an echo")), ("lab-break", search)] {
            std::fs::write(format!("{}/../../target/{name}.html", env!("CARGO_MANIFEST_DIR")), page).unwrap();
        }
    }
}
