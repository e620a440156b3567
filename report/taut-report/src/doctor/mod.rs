//! The doctor's findings as a document, JSON, a shell script of the remedies, and the table of all checks for the documentation.

mod document;
mod json;
mod measured;
mod script;
mod table;

#[cfg(test)]
mod sample;

pub use document::doctor_document;
pub use json::doctor_json;
pub use measured::doctor_measured_document;
pub use script::doctor_script;
pub use table::{doctor_checks_document, doctor_checks_json, doctor_checks_markdown};

use taut_doctor::{Diagnosis, State};

/// "12 good, 3 bad, 9 warn, 7 not visible, 20 not applicable"; what there is none of is left out, apart from bad.
fn summary(diagnosis: &Diagnosis) -> String {
    let words = [
        (State::Good, "good"),
        (State::Bad, "bad"),
        (State::Warn, "warn"),
        (State::NotVisible, "not visible"),
        (State::NotApplicable, "not applicable"),
    ];
    let counted = words.map(|(state, word)| (diagnosis.count(state), state, word));
    let shown = counted.iter().filter(|(n, state, _)| *n > 0 || *state == State::Bad);
    shown.map(|(n, _, word)| format!("{n} {word}")).collect::<Vec<_>>().join(", ")
}

/// "AMD EPYC · 2 CPUs · Linux 6.18 · a hypervisor".
fn machine(diagnosis: &Diagnosis) -> String {
    let named = diagnosis.facts.iter().map(|(name, value)| match *name {
        "cpus" => format!("{value} CPUs"),
        "kernel" => format!("Linux {value}"),
        "hypervisor" => format!("virtual machine ({value})"),
        "container" => format!("in a container ({value})"),
        _ => value.clone(),
    });
    let facts: Vec<String> = named.collect();
    if facts.is_empty() { "nothing of this machine is visible".into() } else { facts.join(" · ") }
}

/// Where remedies belong when this is a container.
fn elsewhere(diagnosis: &Diagnosis) -> Option<&'static str> {
    let inside = diagnosis.facts.iter().any(|(name, _)| *name == "container");
    inside.then_some("This is a container: most settings are the host's, and are to be changed there.")
}

/// What was named: "loop on CPU 1-2, interface eth0".
fn asked(diagnosis: &Diagnosis) -> Option<String> {
    let asked = &diagnosis.asked;
    let cpus = (!asked.cpus.is_empty()).then(|| format!("loop on CPU {}", taut_doctor::cpus::text(&asked.cpus)));
    let interface = asked.interface.as_ref().map(|name| format!("interface {name}"));
    let tty = asked.tty.as_ref().map(|name| format!("port {name}"));
    let pid = asked.pid.map(|pid| format!("process {pid}"));
    let parts: Vec<String> = [cpus, interface, tty, pid].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
