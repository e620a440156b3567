//! What a chain may cost.

use serde::Serialize;

use crate::{Side, Statistic};

/// One limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The chain that it limits.
    pub chain: String,
    /// "from → to"; the whole way if none is named. Not for shares.
    pub hop: Option<String>,
    /// Which figure; its `hop` is filled in from the trials.
    pub figure: LimitFigure,
    /// In ns, or as a share.
    pub value: f64,
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitFigure {
    /// A figure of times.
    Time(Side, Statistic),
    /// Share of messages over the deadline.
    Missed,
    /// Share of messages dropped.
    Dropped,
}
