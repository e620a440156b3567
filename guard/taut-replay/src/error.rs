//! What can be wrong with a guard.toml or a stream.

/// Why nothing was replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not what docs/reference/guard.md says of guard.toml.
    #[error("{0}")]
    Toml(String),
    /// Parameters that the guard itself refuses.
    #[error("[guard]: {0}")]
    Parameters(#[from] taut_guard::Error),
    /// An estimator's settings.
    #[error("[[against]] {name}: {what}")]
    Against {
        /// Its name.
        name: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// No such stream in the recording.
    #[error("has no frames of the stream {wanted:?}; {instead}")]
    NoStream {
        /// What was asked for.
        wanted: String,
        /// What there is, or how to record one.
        instead: String,
    },
    /// Fewer frames than anything can be said of.
    #[error("the stream {name:?} has {frames} frames; at least {least} are needed")]
    TooShort {
        /// The stream.
        name: String,
        /// What it has.
        frames: usize,
        /// What is asked for.
        least: usize,
    },
    /// Frames lack what the guard's parameters build on.
    #[error("the stream {name:?} has no {field}; {remedy}")]
    Lacks {
        /// The stream.
        name: String,
        /// The field.
        field: &'static str,
        /// What to change.
        remedy: &'static str,
    },
    /// Truth that is not there.
    #[error("--truth {0}")]
    Truth(String),
}
