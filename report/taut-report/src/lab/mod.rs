//! A lab for people: what would be done, what came of the trials, what broke it. Nothing is worked out here.

mod check;
mod csv;
mod document;
mod json;
#[cfg(test)]
pub(crate) mod sample;
mod words;

use std::path::Path;

pub use check::lab_check;
pub use csv::lab_csv;
pub use document::{lab_break_document, lab_document};
pub use json::{lab_break_json, lab_json, lab_sweep_json};

/// What stands above the figures of a lab.
#[derive(Clone, Copy, Debug)]
pub struct LabShown<'a> {
    /// "run", "sweep" or "break".
    pub verb: &'static str,
    /// As the user typed it.
    pub file: &'a Path,
    /// Where the manifest and the logs are.
    pub folder: &'a Path,
    /// From the file.
    pub title: &'a str,
    /// From the file.
    pub seed: u64,
}
