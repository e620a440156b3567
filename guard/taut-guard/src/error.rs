//! What can be wrong with what a caller asks for.

/// Why a configuration or a request was refused. Numbers are in the unit that the parameter's name says.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter lies outside its range.
    #[error("{name} is {value}; it must lie within {low} and {high}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// What it is.
        value: f64,
        /// The smallest allowed.
        low: f64,
        /// The largest allowed.
        high: f64,
    },
    /// Two parameters contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// The guard missed a fault that was injected at start-up.
    #[error("the start-up test failed: {0}; do not enable motion")]
    SelfTest(&'static str),
    /// A reset was refused.
    #[error("no reset: {0}")]
    ResetRefused(&'static str),
    /// A limit violation is modified, never rejected.
    #[error("reason {0} must not reject a setpoint; clamp, scale, interpolate or hold it")]
    NotARejection(u8),
    /// No setpoint with this id is in flight.
    #[error("setpoint {0} is not in flight: it already has its fate, or was never produced")]
    NotInFlight(u64),
    /// The ledger has no room for another setpoint in flight.
    #[error("{0} setpoints are in flight, as many as the ledger has room for; give them their fates")]
    TooManyInFlight(usize),
    /// The setpoints do not add up.
    #[error("{produced} setpoints were produced, but {accounted} are accounted for")]
    Unbalanced {
        /// How many were produced.
        produced: u64,
        /// Acknowledged, superseded, rejected, lost and in flight together.
        accounted: u64,
    },
    /// A number that must be finite is not.
    #[error("{0} is not a finite number")]
    NotFinite(&'static str),
    /// The trajectory generator refused its input.
    #[error("ruckig finds no trajectory: {0}")]
    NoTrajectory(&'static str),
}

/// Refuses a value outside `low..=high`, NaN included.
pub(crate) fn within(name: &'static str, value: f64, low: f64, high: f64) -> Result<(), Error> {
    if (low..=high).contains(&value) { Ok(()) } else { Err(Error::OutOfRange { name, value, low, high }) }
}
