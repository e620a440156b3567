//! Why there is no analysis.

/// Why there is no analysis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No event of any kind, no telemetry and no histograms.
    #[error("holds no stamps, no telemetry and no histograms, and no ROS 2 or kernel events: {hint}")]
    Empty {
        /// What may be the reason, and what to do.
        hint: String,
    },
    /// `--hypothesis` names nothing that the recording knows.
    #[error("{factor:?} is unknown; {hint}")]
    UnknownFactor {
        /// As given.
        factor: String,
        /// What can be named.
        hint: String,
    },
    /// `--message` names no message of a chain.
    #[error("message {id} passed no chain of this recording from end to end; `taut explain RUN --worst 10` names some")]
    UnknownMessage {
        /// As given.
        id: u64,
    },
    /// `taut.toml` names points that were never stamped.
    #[error("chain {chain:?} of taut.toml: nothing was stamped at {point:?}; {hint}")]
    UnknownPoint {
        /// The declared chain.
        chain: String,
        /// Its first unknown point.
        point: String,
        /// The nearest known name, or all of them.
        hint: String,
    },
}
