//! What the guard is compared with: an estimator of speed, and its settings.

use serde::{Deserialize, Serialize};
use taut_guard::Frame;

/// One thing that the guard is held against.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Against {
    /// How it takes a speed from frames.
    pub estimator: Source,
    /// What reports call it; made of the rest if not given.
    pub name: Option<String>,
    /// What it takes for time.
    #[serde(default)]
    pub time: Time,
    /// Frames in a row over the limit that trip.
    #[serde(default = "one")]
    pub debounce: u32,
    /// Samples of a median, a least-squares line or a Savitzky–Golay parabola.
    pub points: Option<usize>,
    /// Weight of the newest in an exponential mean; gain on the position in an α-β filter.
    pub alpha: Option<f64>,
    /// Gain on the velocity in an α-β filter.
    pub beta: Option<f64>,
    /// With `estimator = "guard"`: parameters that differ from `[guard]`.
    #[serde(default)]
    pub set: toml::Table,
}

fn one() -> u32 {
    1
}

/// How a speed is taken from frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// |Δp|/Δt of two neighbours.
    Difference,
    /// The same with Δt at least T.
    Floored,
    /// Median of the last differences.
    Median,
    /// Exponential mean of differences.
    Ema,
    /// Slope at the end of a parabola through the last samples, taken as T apart.
    SavitzkyGolay,
    /// Slope of the least-squares line through the last samples.
    LeastSquares,
    /// Constant velocity, driven by noise of acceleration.
    Kalman,
    /// Fixed gains.
    AlphaBeta,
    /// Ours, with other parameters.
    Guard,
}

/// What an estimator takes for the time of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Time {
    /// When the host got it.
    #[default]
    Arrival,
    /// When the robot says that it took it.
    Source,
}

impl Time {
    /// The word of guard.toml.
    pub fn word(self) -> &'static str {
        match self {
            Time::Arrival => "arrival",
            Time::Source => "source",
        }
    }

    pub(crate) fn of(self, frame: &Frame) -> f64 {
        match self {
            Time::Arrival => frame.arrival_ns as f64 * 1e-9,
            Time::Source => frame.source_ns.unwrap_or(0) as f64 * 1e-9,
        }
    }
}
