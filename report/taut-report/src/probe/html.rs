//! The HTML form of a probe: the same page as every report's, with the JSON form as its data.

use taut_probe::Findings;

use super::{command, json::probe_json, shown_cpus};
use crate::html::page;

/// A self-contained page.
pub fn probe_html(findings: &Findings) -> String {
    let mut shown = findings.clone();
    for (variant, all) in shown.variants.iter_mut().zip(&findings.variants) {
        let (cpus, _) = shown_cpus(all, findings.variants.len());
        variant.cpus = cpus.into_iter().cloned().collect();
    }
    let mut data = probe_json(&shown);
    // What the page does not show does not make it large, nor change what it says.
    data["command"] = command::command(findings).into();
    data["headline"] = super::headline::headline(findings).into();
    page("probe", "probe", &serde_json::json!([data]))
}
