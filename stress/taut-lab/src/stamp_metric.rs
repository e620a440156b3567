//! A metric from stamps, as the file names it.

use serde::{Deserialize, Serialize};

/// Where a metric comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamps {
    /// The points that a message passes, first to last; the time is from the first to the last.
    pub points: Vec<String>,
    /// What of the messages of a trial.
    #[serde(default)]
    pub figure: Figure,
    /// What counts as late, ms, for `late_per_million`.
    pub late_ms: Option<f64>,
}

/// What of the messages of a trial. A quantile is there when the trial carries it: ten bursts beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// The median.
    P50,
    /// One in ten is above.
    P90,
    /// One in a hundred is above.
    P99,
    /// One in a thousand is above.
    P999,
    /// The largest; of a trial with one message, that.
    #[default]
    Max,
    /// Messages that passed all the way.
    Messages,
    /// Of a million messages those later than `late_ms`; those that never arrived are late.
    LatePerMillion,
}
