//! A replay through the speed guard and its rivals.

mod document;
mod json;
#[cfg(test)]
pub(crate) mod sample;
mod sentences;

use taut_replay::{Replay, Tuned};

pub use document::guard_document;
pub use json::guard_json;

/// A replay with what it was asked for.
#[derive(Clone, Copy, Debug)]
pub struct GuardShown<'a> {
    /// The recording, as the user typed it.
    pub run: &'a str,
    /// The command that makes the same again.
    pub command: &'a str,
    /// What came of it.
    pub replay: &'a Replay,
    /// The parameters proposed for this stream, and their guard.toml.
    pub tuned: Option<(&'a Tuned, &'a str)>,
    /// What could not be read of the recording, a sentence each.
    pub damage: &'a [String],
}
