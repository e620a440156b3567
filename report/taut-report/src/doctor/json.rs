//! The JSON form of a diagnosis: serialisable twins, made here at the edge. The schema is documented in
//! `docs/doctor.schema.json`, generated from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_doctor as model;

use taut_stats::Distribution;

/// What `taut doctor --format json` prints: all findings, and what was measured if something was.
pub fn doctor_json(diagnosis: &model::Diagnosis, measured: Option<&model::Measured>) -> serde_json::Value {
    let doctor = Doctor {
        schema_version: crate::SCHEMA_VERSION,
        kind: "doctor",
        machine: diagnosis.facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        asked: asked(&diagnosis.asked),
        summary: model::State::ALL.iter().map(|state| (state.word().to_owned(), diagnosis.count(*state))).collect(),
        findings: diagnosis.findings.iter().map(finding).collect(),
        measured: measured.map(one_measured),
    };
    serde_json::to_value(doctor).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
struct Doctor {
    /// Version of this schema.
    schema_version: u32,
    /// "doctor".
    kind: &'static str,
    /// Facts by name: "cpu", "cpus", "kernel", "board", "hypervisor", "container"; what is not visible is left out.
    machine: BTreeMap<String, String>,
    asked: Asked,
    /// How many findings are in each state; every state is there.
    summary: BTreeMap<String, usize>,
    /// One for each check, in the table's order.
    findings: Vec<Finding>,
    /// Null without --measure.
    measured: Option<Measured>,
}

/// What was named on the command line.
#[derive(Serialize, JsonSchema)]
struct Asked {
    /// CPUs of the loop; empty when none was named.
    cpus: Vec<u32>,
    interface: Option<String>,
    tty: Option<String>,
    pid: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct Finding {
    /// The check's name.
    id: &'static str,
    /// "kernel", "power", "scheduler", …
    subject: String,
    /// What the setting is.
    title: &'static str,
    /// "good", "warn", "bad", "not_visible" or "not_applicable".
    state: &'static str,
    /// What was read, in words; for what is not visible or not applicable, why.
    value: String,
    /// Files and calls that the answer is from; `*` stands for any one name.
    read: Vec<String>,
    /// The value a control loop wants.
    good: &'static str,
    /// What it does to a loop.
    why: &'static str,
    /// Null unless the state is bad or warn.
    remedy: Option<Remedy>,
    /// Takes the remedy back, in words or as a command.
    undo: Option<String>,
    /// "tail", "throughput" or "safety".
    effect: &'static str,
    /// Whether the remedy needs a reboot.
    reboot: bool,
}

#[derive(Serialize, JsonSchema)]
struct Remedy {
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
struct Measured {
    /// The check whose remedy it was.
    id: &'static str,
    /// What was applied.
    remedy: String,
    /// CPUs that were woken on.
    cpus: Vec<u32>,
    /// Scheduling policy of the threads that were woken: "other", "fifo", "rr".
    policy: String,
    /// Distance of the wakeups.
    interval_ns: u64,
    /// It was stopped before its time.
    interrupted: bool,
    rounds: Vec<Round>,
    /// All wakeups without it.
    before: Distribution,
    /// All wakeups with it.
    after: Distribution,
    /// With ÷ without, over the rounds; null when none was finished.
    p50_ratio: Option<Ratio>,
    /// As above, of the 99th percentiles.
    p99_ratio: Option<Ratio>,
}

#[derive(Serialize, JsonSchema)]
struct Round {
    before_p50_ns: u64,
    after_p50_ns: u64,
    before_p99_ns: u64,
    after_p99_ns: u64,
}

#[derive(Serialize, JsonSchema)]
struct Ratio {
    /// Median of the rounds.
    median: f64,
    /// Lower end of the 95 % interval; null with fewer than six rounds.
    low: Option<f64>,
    /// Upper end.
    high: Option<f64>,
}

fn asked(asked: &model::Asked) -> Asked {
    let model::Asked { cpus, interface, tty, pid } = asked.clone();
    Asked { cpus, interface, tty, pid }
}

fn finding(finding: &model::Finding) -> Finding {
    Finding {
        id: finding.id,
        subject: finding.subject.word().to_lowercase(),
        title: finding.title,
        state: finding.state.word(),
        value: finding.value.clone(),
        read: finding.read.clone(),
        good: finding.good,
        why: finding.why,
        remedy: finding.remedy.as_ref().map(remedy),
        undo: finding.undo.clone(),
        effect: finding.effect.word(),
        reboot: finding.reboot,
    }
}

fn remedy(remedy: &model::Remedy) -> Remedy {
    Remedy {
        how: remedy.how(),
        text: remedy.text(),
        commands: remedy.commands(),
        undo_commands: remedy.undo_commands(),
    }
}

fn one_measured(measured: &model::Measured) -> Measured {
    let round = |round: &model::Round| {
        let model::Round { before_p50_ns, after_p50_ns, before_p99_ns, after_p99_ns } = *round;
        Round { before_p50_ns, after_p50_ns, before_p99_ns, after_p99_ns }
    };
    Measured {
        id: measured.id,
        remedy: measured.remedy.clone(),
        cpus: measured.cpus.clone(),
        policy: measured.policy.clone(),
        interval_ns: measured.interval_ns,
        interrupted: measured.interrupted,
        rounds: measured.rounds.iter().map(round).collect(),
        before: measured.before.clone(),
        after: measured.after.clone(),
        p50_ratio: measured.p50().map(ratio),
        p99_ratio: measured.p99().map(ratio),
    }
}

fn ratio(ratio: model::Ratio) -> Ratio {
    Ratio { median: ratio.median, low: ratio.interval.map(|(low, _)| low), high: ratio.interval.map(|(_, high)| high) }
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
        crate::json::assert_documented(&schemars::schema_for!(Doctor).to_value(), "doctor.schema.json");
    }
}
