//! A lab for people: what would be done, what came of the trials, what broke it. Nothing is worked out here.

mod check;
mod csv;
mod html;
mod json;
#[cfg(test)]
pub(crate) mod sample;
mod terminal;
mod words;

use std::path::Path;

pub use check::lab_check;
pub use csv::lab_csv;
pub use html::{lab_break_html, lab_html};
pub use json::{lab_break_json, lab_json, lab_sweep_json};
pub use terminal::{lab_break_terminal, lab_terminal};

/// What stands above the figures of a lab.
#[derive(Clone, Copy, Debug)]
pub struct LabShown<'a> {
    /// As the user typed it.
    pub file: &'a Path,
    /// Where the manifest and the logs are.
    pub folder: &'a Path,
    /// From the file.
    pub title: &'a str,
    /// From the file.
    pub seed: u64,
}
