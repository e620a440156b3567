//! Analysis results for people: terminal, Markdown, JSON, HTML. Last but one on the
//! way of the data: it receives finished results and computes nothing.

mod budget;
mod bus;
mod cause_classes;
mod causes;
mod charts;
mod compare;
mod doctor;
mod envelope;
pub mod export;
pub mod flame;
pub mod fleet;
mod gate;
mod guard;
mod headline;
mod hosts;
mod json;
mod lab;
mod lateness;
pub mod layouts;
mod log;
mod loops;
mod report;
mod ros;
mod tune;
mod wakeup;
pub mod words;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod sample;

pub use budget::{Budgeted, budget_document, budget_json};
pub use bus::{bus_cycles_json, bus_json};
pub use compare::{TwoShown, comparison_document, comparison_html, comparison_json, two_document, two_html, two_json};
pub use doctor::{
    doctor_checks_document, doctor_checks_json, doctor_checks_markdown, doctor_document, doctor_json,
    doctor_measured_document, doctor_script,
};
pub use envelope::SCHEMA_VERSION;
pub use fleet::{fleet_document, fleet_json};
pub use gate::{
    GateShown, HistoryShown, LimitsShown, Terms, gate_document, gate_headline, gate_json, gate_junit, history_document,
    history_json, limits_document, limits_json, limits_junit,
};
pub use guard::{GuardShown, guard_document, guard_json};
pub use headline::headline;
pub use hosts::{hosts_json, hosts_sentences};
pub use json::{json, schema};
pub use lab::{
    LabShown, lab_break_document, lab_break_json, lab_check, lab_csv, lab_document, lab_json, lab_sweep_json,
};
pub use log::{log_channels_json, log_line_json};
pub use report::{Asked, explain_document, interactive, report_document};
pub use taut_document::Style;
pub(crate) use taut_document::escape;
pub use tune::{tune_document, tune_headline, tune_json};
pub use wakeup::{wakeup_document, wakeup_json};

/// An analysis with the name of the file it came from.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// As the user typed it.
    pub name: &'a str,
    /// What was found.
    pub analysis: &'a taut_analysis::Analysis,
}
