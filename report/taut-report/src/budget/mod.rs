//! A cycle budget as a document, and as JSON. Nothing is worked out here; what is said of the figures is said once (`sentences`).

mod document;
mod figures;
mod json;
mod sentences;

#[cfg(test)]
pub(crate) mod sample;

pub use document::budget_document;
pub use json::budget_json;

use taut_bus::budget::{Comparison, CycleBudget, Forecast, Gradient, Polled, Solved};

/// A budget with what was worked out of it.
#[derive(Clone, Copy, Debug)]
pub struct Budgeted<'a> {
    /// The file or preset, as the user typed it.
    pub name: &'a str,
    /// The command that works it out again.
    pub command: &'a str,
    /// The budget itself.
    pub budget: &'a CycleBudget,
    /// Forward.
    pub forecast: &'a Forecast,
    /// Forward event by event, where the host polls.
    pub polled: Option<&'a Polled>,
    /// Sideways, most first.
    pub gradients: &'a [Gradient],
    /// Backward, if a target was given.
    pub solved: Option<&'a Solved>,
    /// Against a recording, by its name, if one was given.
    pub against: Option<(&'a str, &'a Comparison)>,
}
