//! A cycle budget for people: terminal, JSON, HTML. Nothing is worked out here; what is said of the figures is said
//! once (`sentences`), and shown by all forms.

mod figures;
mod html;
mod json;
mod sentences;
mod terminal;

#[cfg(test)]
pub(crate) mod sample;

pub use html::budget_html;
pub use json::budget_json;
pub use terminal::budget_terminal;

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
