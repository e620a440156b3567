//! One trial in the manifest: its result, and what helps to explain it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Achieved, Pressure};

/// How a trial ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The command reported it.
    Success,
    /// The command said that there was no plan.
    PlanningFailed,
    /// The command said that the plan was not carried out.
    ExecutionFailed,
    /// The command said no.
    Failed,
    /// The command did not end in its time.
    Timeout,
    /// A process of the system ended, or a signal ended the command.
    Crashed,
    /// The load was not there, a thread ran elsewhere, its recording is not whole, the system did not start, a metric
    /// was outside its gate: says nothing about the system.
    #[default]
    Invalid,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 7] = [
        Status::Success,
        Status::PlanningFailed,
        Status::ExecutionFailed,
        Status::Failed,
        Status::Timeout,
        Status::Crashed,
        Status::Invalid,
    ];
    /// Those that a trial may report of itself; the others are for the lab to see.
    const OWN: [Status; 5] =
        [Status::Success, Status::PlanningFailed, Status::ExecutionFailed, Status::Failed, Status::Timeout];

    /// As the manifest says it.
    pub fn word(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::PlanningFailed => "planning_failed",
            Status::ExecutionFailed => "execution_failed",
            Status::Failed => "failed",
            Status::Timeout => "timeout",
            Status::Crashed => "crashed",
            Status::Invalid => "invalid",
        }
    }
}

/// Which trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Id {
    /// Trials of one round are compared with each other.
    pub round: u32,
    /// By name.
    pub scenario: String,
    /// Of its scenario, from 0.
    pub index: u32,
    /// The number that a search varies.
    pub varied: Option<f64>,
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Which.
    #[serde(flatten)]
    pub id: Id,
    /// Its result.
    pub status: Status,
    /// Why, unless it is a success.
    pub reason: Option<String>,
    /// Seconds since 1970.
    pub started_unix_s: f64,
    /// From the command's start to its end, or to when it was given up.
    pub wall_s: f64,
    /// The command's.
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// Numbers that it reported, and `wall_s`.
    pub metrics: BTreeMap<String, f64>,
    /// One for each load.
    pub achieved: Vec<Achieved>,
    /// CPUs kept busy, for each process by name.
    pub cpus_busy: BTreeMap<String, f64>,
    /// Seconds on each CPU by its number, for each process by name, from the scheduler's events; empty without them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ran_s: BTreeMap<String, BTreeMap<String, f64>>,
    /// Scheduler events that were lost: what a thread did then was seen by looks only. `None` where there were no
    /// events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_lost: Option<u64>,
    /// How often all threads were looked at, to see that they stay on their CPUs.
    pub looks: u32,
    /// Threads at the last look.
    pub threads: u32,
    /// The machine's own trouble meanwhile.
    pub pressure: Pressure,
    /// Where it ran; none is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The folder of its logs, below the run's.
    pub logs: String,
}

/// What the last line of a trial's output says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reported {
    /// `success` is true or false, or `status` says more.
    pub status: Option<Status>,
    pub reason: Option<String>,
    pub metrics: BTreeMap<String, f64>,
}

/// Reads the last line that says anything.
pub(crate) fn reported(stdout: &str) -> Result<Reported, String> {
    let line = stdout.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let line = line.ok_or("reported nothing: its last line on stdout must be a JSON object")?;
    let short = || line.chars().take(80).collect::<String>();
    let object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(line).map_err(|_| format!("its last line on stdout is no JSON object: {:?}", short()))?;
    let mut found = Reported { status: status(&object)?, ..Reported::default() };
    for (key, value) in object {
        match (key.as_str(), value) {
            ("success" | "status", _) => {}
            ("reason", serde_json::Value::String(reason)) => found.reason = Some(taut_recording::printable(reason)),
            (_, serde_json::Value::Number(number)) => {
                found.metrics.extend(number.as_f64().filter(|value| value.is_finite()).map(|value| (key, value)));
            }
            (_, serde_json::Value::Bool(yes)) => {
                found.metrics.insert(key, f64::from(u8::from(yes)));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// What the line says of the end; `"success": false` beside a `status` of success is a failure all the same.
fn status(object: &serde_json::Map<String, serde_json::Value>) -> Result<Option<Status>, String> {
    let said = object.get("status").map(|value| {
        let known = Status::OWN.into_iter().find(|status| value.as_str() == Some(status.word()));
        let words = || Status::OWN.map(Status::word).join(", ");
        known.ok_or_else(|| format!("its status is {value}, which is none of {}", words()))
    });
    let said = said.transpose()?;
    Ok(match (said, object.get("success").and_then(serde_json::Value::as_bool)) {
        (None | Some(Status::Success), Some(false)) => Some(Status::Failed),
        (None, Some(true)) => Some(Status::Success),
        (said, _) => said,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_line_reports() {
        let found =
            reported("talk\n{\"success\": false, \"reason\": \"no plan\", \"t_ms\": 3, \"note\": \"x\"}\n\n").unwrap();
        assert_eq!((found.status, found.reason.as_deref()), (Some(Status::Failed), Some("no plan")));
        assert_eq!(found.metrics, BTreeMap::from([("t_ms".into(), 3.0)]));
        assert!(reported("{\"t\": 1}\nbye").unwrap_err().contains("no JSON object: \"bye\""));
        assert!(reported(" \n").unwrap_err().contains("reported nothing"));
    }

    #[test]
    fn a_status_says_more_than_success_and_never_less() {
        let of = |line: &str| reported(line).map(|found| found.status);
        assert_eq!(of("{\"status\": \"planning_failed\", \"success\": false}"), Ok(Some(Status::PlanningFailed)));
        assert_eq!(of("{\"status\": \"execution_failed\"}"), Ok(Some(Status::ExecutionFailed)));
        assert_eq!(of("{\"status\": \"success\", \"success\": false}"), Ok(Some(Status::Failed)));
        assert_eq!(of("{\"t\": 1}"), Ok(None));
        for other in ["\"invalid\"", "\"crashed\"", "7"] {
            let why = of(&format!("{{\"status\": {other}}}")).unwrap_err();
            assert!(why.contains(other) && why.contains("planning_failed, execution_failed"), "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_output_is_read_or_refused(text in "\\PC*") {
            let _ = reported(&text);
        }
    }
}
