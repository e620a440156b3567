//! Why there is no budget.

/// What is wrong with a budget, naming the key, the value and the remedy; the command adds the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not TOML, or not a budget's keys.
    #[error("line {line}: {message}")]
    Toml {
        /// Counted from 1.
        line: usize,
        /// The parser's words.
        message: String,
    },
    /// A value that cannot be.
    #[error("{key} = {value}: {remedy}")]
    Value {
        /// Path of the key, as `--set` takes it.
        key: String,
        /// As given.
        value: String,
        /// What it must be.
        remedy: String,
    },
    /// A key that must be there and is not.
    #[error("{key} is missing: {remedy}")]
    Missing {
        /// Path of the key.
        key: String,
        /// What to write.
        remedy: String,
    },
    /// A `--set` that names nothing.
    #[error("--set {key}: {remedy}")]
    Set {
        /// As given.
        key: String,
        /// What can be set.
        remedy: String,
    },
    /// No preset of that name.
    #[error("no preset is called {name:?}; {hint}")]
    Preset {
        /// As given.
        name: String,
        /// The nearest, or all.
        hint: String,
    },
    /// Nothing of the model was stamped.
    #[error("stamps none of the points a bus cycle has: {remedy}")]
    NotStamped {
        /// Which points to stamp.
        remedy: String,
    },
}

impl Error {
    pub(crate) fn value(key: impl Into<String>, value: impl ToString, remedy: impl Into<String>) -> Error {
        Error::Value { key: key.into(), value: value.to_string(), remedy: remedy.into() }
    }

    pub(crate) fn missing(key: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::Missing { key: key.into(), remedy: remedy.into() }
    }
}
