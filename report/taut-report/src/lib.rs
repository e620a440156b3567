//! Analysis results for people: terminal, Markdown, JSON, HTML. Last but one on the
//! way of the data: it receives finished results and computes nothing.

mod budget;
mod bus;
mod causes;
mod compare;
mod console;
mod doctor;
pub mod export;
pub mod flame;
pub mod fleet;
mod gate;
mod guard;
mod headline;
mod hosts;
mod html;
mod json;
mod json_explained;
mod json_figures;
mod lab;
mod lateness;
pub mod layouts;
mod log;
mod loops;
mod markdown;
mod points;
mod ros;
mod short_chains;
mod svg;
mod terminal;
mod tune;
mod wakeup;
pub mod words;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod sample;

pub use budget::{Budgeted, budget_html, budget_json, budget_terminal};
pub use bus::{bus_cycles_json, bus_json};
pub use causes::{Asked, explanation};
pub use compare::{
    TwoShown, comparison_json, comparison_markdown, comparison_schema, comparison_terminal, two_html, two_json,
    two_markdown, two_terminal,
};
pub use doctor::{
    doctor_checks_json, doctor_checks_markdown, doctor_checks_terminal, doctor_json, doctor_measured_terminal,
    doctor_script, doctor_terminal,
};
pub use fleet::{fleet_document, fleet_json};
pub use gate::{
    GateShown, HistoryShown, LimitsShown, Terms, gate_headline, gate_html, gate_json, gate_junit, gate_markdown,
    gate_terminal, history_html, history_json, history_terminal, limits_json, limits_junit, limits_markdown,
    limits_terminal,
};
pub use guard::{GuardShown, guard_html, guard_json, guard_terminal};
pub use headline::headline;
pub use hosts::{hosts_facts, hosts_json, hosts_sentences};
pub use html::html;
pub use json::{json, schema};
pub use json_figures::SCHEMA_VERSION;
pub use lab::{
    LabShown, lab_break_html, lab_break_json, lab_break_terminal, lab_check, lab_csv, lab_html, lab_json,
    lab_sweep_json, lab_terminal,
};
pub use log::{log_channels_json, log_line_json};
pub use markdown::{markdown, markdown_explanation};
pub use taut_document::Style;
pub(crate) use taut_document::escape;
pub use terminal::terminal;
pub use tune::{tune_headline, tune_html, tune_json, tune_markdown, tune_terminal};
pub use wakeup::{wakeup_html, wakeup_json, wakeup_terminal};

/// An analysis with the name of the file it came from.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// As the user typed it.
    pub name: &'a str,
    /// What was found.
    pub analysis: &'a taut_analysis::Analysis,
}
