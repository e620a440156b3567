//! The trips of one run, judged by the true speed.

use schemars::JsonSchema;
use serde::Serialize;

use crate::serialized;

/// What an estimator's trips are worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Judgement {
    /// Trips for speed where the true speed was below the limit.
    pub false_trips: usize,
    /// True overspeeds that were found.
    pub found: usize,
    /// Overspeeds that were not.
    pub missed: usize,
    /// From the beginning of each found overspeed to the trip.
    #[serde(rename = "delays_ms", serialize_with = "serialized::milliseconds")]
    #[schemars(with = "Vec<f64>")]
    pub delays_ns: Vec<u64>,
    /// Of those, how many by STALE: no frame arrived, and the robot was stopped for that.
    pub by_silence: usize,
}
