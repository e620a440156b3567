//! Files that users write, share and keep: labs, budgets, guards, trials, histories; and what a system under test says.

use std::path::Path;

use taut_bus::budget::CycleBudget;
use taut_doctor::{Asked, Root, examine};
use taut_lab::Lab;
use taut_recording::printable;
use taut_report::{Style, fleet::Answer};

/// Whatever is refused is refused in one line.
fn one_line<T, E: std::fmt::Display>(result: Result<T, E>) -> Option<T> {
    match result {
        Ok(read) => Some(read),
        Err(error) => {
            let said = error.to_string();
            assert!(!said.is_empty() && !said.contains('\n'), "{said:?}");
            None
        }
    }
}

/// `taut.toml`.
pub fn settings(bytes: &[u8]) {
    one_line(taut_gate::config::parse(&String::from_utf8_lossy(bytes)));
}

/// What Python answers of a fleet, whose names are those of everybody's robots, in each form.
pub fn fleet_answer(bytes: &[u8]) {
    let Some(answer) = one_line(Answer::read(bytes)) else { return };
    let document = taut_report::fleet_document(&answer);
    let terminal = taut_document::terminal(&document, Style::default());
    // Also what a terminal would obey.
    assert!(terminal.lines().all(|line| line == printable(line.to_owned())), "{terminal:?}");
    taut_document::html(&document, None);
    taut_document::markdown(&document);
    taut_report::fleet_json(&answer);
}

/// A machine that `taut doctor --write-down` wrote elsewhere: what is found in each form, and the script of remedies, which root may run.
pub fn machine(bytes: &[u8]) {
    let Some(root) = one_line(Root::recorded(&String::from_utf8_lossy(bytes))) else { return };
    let all = Asked { cpus: vec![1], interface: Some("eth0".into()), tty: Some("ttyUSB0".into()), pid: Some(7) };
    for asked in [Asked::default(), all] {
        let diagnosis = examine(&root, &asked);
        let document = taut_report::doctor_document(&diagnosis);
        let terminal = taut_document::terminal(&document, Style::default());
        for text in [terminal, taut_report::doctor_script(&diagnosis)] {
            assert!(text.lines().all(|line| line == printable(line.to_owned())), "{text:?}");
        }
        taut_document::html(&document, None);
        taut_document::markdown(&document);
        taut_report::doctor_json(&diagnosis, None);
    }
}

/// A lab's TOML.
pub fn lab(bytes: &[u8]) {
    one_line(Lab::parse(&String::from_utf8_lossy(bytes), Path::new("lab.toml")));
}

/// The last line that a system under test wrote.
pub fn lab_output(bytes: &[u8]) {
    one_line(taut_lab::fuzzing::reported(&String::from_utf8_lossy(bytes)));
}

/// A manifest that an earlier run left.
pub fn lab_manifest(bytes: &[u8]) {
    one_line(taut_lab::fuzzing::manifest(bytes));
}

/// A cycle budget's TOML, and the forecast of what is accepted.
pub fn budget(bytes: &[u8]) {
    one_line(CycleBudget::parse(&String::from_utf8_lossy(bytes), &[]));
}

/// A guard's TOML.
pub fn guard(bytes: &[u8]) {
    one_line(taut_replay::Config::parse(&String::from_utf8_lossy(bytes)));
}

/// What another device measured of the true speed.
pub fn truth(bytes: &[u8]) {
    one_line(taut_replay::Truth::series(&String::from_utf8_lossy(bytes)));
}

/// What `taut tune` changed and has to undo; nothing is undone here.
pub fn journal(bytes: &[u8]) {
    // As of trials, its parser's words.
    let read = taut_tune::fuzzing::journal(&String::from_utf8_lossy(bytes));
    one_line(read.map_err(|error| printable(error.to_string())));
}

/// Stored trials, a line each.
pub fn trials(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        // That parser's own words may cite the line as it is; who prints them makes them printable, as here.
        let read = serde_json::from_slice::<taut_gate::Trial>(line).map_err(|error| printable(error.to_string()));
        let Some(trial) = one_line(read) else { continue };
        taut_history::rows("r1", &[trial]);
    }
}

/// A history, which is a Parquet file.
pub fn history(bytes: &[u8]) {
    if let Some(rows) = one_line(taut_history::read(bytes.to_vec())) {
        taut_history::lines(&rows, &["own.p50".to_owned()]);
    }
}

/// An HdrHistogram interval log.
pub fn interval_log(bytes: &[u8]) {
    for interval in one_line(taut_hlog::read(bytes)).into_iter().flatten() {
        interval.histogram.whole();
    }
}
