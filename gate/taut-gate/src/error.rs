//! Why there is no verdict.

/// What is wrong with the recordings or with what was asked of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such chain.
    #[error("{recording} has no chain {chain:?}; it has {known}")]
    NoChain {
        /// Name of the recording.
        recording: String,
        /// As asked for.
        chain: String,
        /// Those it has.
        known: String,
    },
    /// Nothing but a probe, or nothing at all.
    #[error("{recording} has no chain of messages: stamp at least two points that a message passes")]
    Empty {
        /// Name of the recording.
        recording: String,
    },
    /// Two trials are not of the same chain.
    #[error(
        "{b} has the chain {b_points}, {a} has {a_points}: declare in taut.toml a [[chain]] whose points both pass"
    )]
    OtherChain {
        /// Name of one recording.
        a: String,
        /// Name of the other.
        b: String,
        /// Its points.
        a_points: String,
        /// Its points.
        b_points: String,
    },
    /// A metric that does not exist.
    #[error("{given:?} is no metric; write missed, dropped, or {hint}")]
    NoMetric {
        /// As given.
        given: String,
        /// How to write one.
        hint: &'static str,
    },
    /// A limit for a hop that is not there.
    #[error("the limit of {hop:?}: the chain {chain:?} has no such hop; it has {known}")]
    NoHop {
        /// As given.
        hop: String,
        /// The chain.
        chain: String,
        /// Those it has.
        known: String,
    },
}
