//! The JSON form of a diagnosis, and what is said of it. The schema is documented in `docs/doctor.schema.json`, generated from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_doctor::{Asked, Diagnosis, Finding, Measured, Ratio, Remedy, State};

/// What `taut doctor --format json` prints: all findings, and what was measured if something was.
pub fn doctor_json(diagnosis: &Diagnosis, tried: Option<&Measured>) -> serde_json::Value {
    let doctor = Doctor {
        schema_version: crate::SCHEMA_VERSION,
        kind: "doctor",
        machine: diagnosis.facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        asked: &diagnosis.asked,
        summary: State::ALL.iter().map(|state| (state.word().to_owned(), diagnosis.count(*state))).collect(),
        findings: diagnosis.findings.iter().map(finding).collect(),
        measured: tried.map(measured),
    };
    serde_json::to_value(doctor).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
struct Doctor<'a> {
    /// Version of this schema.
    schema_version: u32,
    /// "doctor".
    kind: &'static str,
    /// Facts by name: "cpu", "cpus", "kernel", "board", "hypervisor", "container"; what is not visible is left out.
    machine: BTreeMap<String, String>,
    /// What was named on the command line.
    asked: &'a Asked,
    /// How many findings are in each state; every state is there.
    summary: BTreeMap<String, usize>,
    /// One for each check, in the table's order.
    findings: Vec<FindingShown<'a>>,
    /// Null without --measure.
    measured: Option<MeasuredShown<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct FindingShown<'a> {
    #[serde(flatten)]
    of: &'a Finding,
    /// Null unless the state is bad or warn.
    remedy: Option<RemedyShown>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Remedy")]
struct RemedyShown {
    /// "write" (values for files), "hold" (a device held open), "run" (a command), "boot" (words for the kernel's command
    /// line) or "advise" (something a person has to do).
    how: &'static str,
    /// One line for a person.
    text: String,
    /// Shell commands that apply it; empty where a shell cannot.
    commands: Vec<String>,
    /// Shell commands that take it back.
    undo_commands: Vec<String>,
}

/// Lateness of wakeups without and with a remedy, in nanoseconds.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Measured")]
struct MeasuredShown<'a> {
    #[serde(flatten)]
    of: &'a Measured,
    /// With ÷ without, over the rounds; null when none was finished.
    p50_ratio: Option<RatioShown>,
    /// As above, of the 99th percentiles.
    p99_ratio: Option<RatioShown>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ratio")]
struct RatioShown {
    /// Median of the rounds.
    median: f64,
    /// Lower end of the 95 % interval; null with fewer than six rounds.
    low: Option<f64>,
    /// Upper end.
    high: Option<f64>,
}

fn finding(of: &Finding) -> FindingShown<'_> {
    let remedy = |of: &Remedy| RemedyShown {
        how: of.how(),
        text: of.text(),
        commands: of.commands(),
        undo_commands: of.undo_commands(),
    };
    FindingShown { of, remedy: of.remedy.as_ref().map(remedy) }
}

fn measured(of: &Measured) -> MeasuredShown<'_> {
    MeasuredShown { of, p50_ratio: of.p50().map(ratio), p99_ratio: of.p99().map(ratio) }
}

fn ratio(ratio: Ratio) -> RatioShown {
    let (low, high) = ratio.interval.unzip();
    RatioShown { median: ratio.median, low, high }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn the_fields_scripts_rely_on() {
        let value = doctor_json(&sample::laptop(), Some(&sample::measured()));
        assert_eq!((&value["schema_version"], &value["kind"]), (&2.into(), &"doctor".into()));
        let counted: u64 = value["summary"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(counted as usize, value["findings"].as_array().unwrap().len());
        let governor = value["findings"].as_array().unwrap().iter().find(|f| f["id"] == "governor").unwrap();
        insta::assert_snapshot!(format!("{governor:#}"));
        assert_eq!(value["measured"]["p50_ratio"]["median"], 0.25);
        assert_eq!(doctor_json(&sample::laptop(), None)["measured"], serde_json::Value::Null);
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        crate::json::assert_documented(&schemars::schema_for!(Doctor<'_>).to_value(), "doctor.schema.json");
    }
}
