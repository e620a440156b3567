//! Bounds of a figure.

use serde::Serialize;

/// Bounds, with the confidence that they really have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// At least what was asked for: discrete tests cannot meet it exactly.
    pub confidence: f64,
}
