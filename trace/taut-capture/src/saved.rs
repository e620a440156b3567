//! The result of a save.

use std::{io, path::PathBuf, time::Duration};

/// A save that is over.
#[derive(Clone, Debug)]
pub struct Saved {
    /// What asked for it.
    pub why: String,
    /// The recording, or why there is none.
    pub result: Result<Kept, NotSaved>,
}

/// Why nothing was saved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct NotSaved {
    /// In words.
    pub text: String,
    /// What the system said, where it was the system.
    pub errno: Option<i32>,
}

impl NotSaved {
    /// Of an error and its causes.
    pub fn from_source(error: &(dyn std::error::Error + 'static)) -> NotSaved {
        let mut cause = Some(error);
        let mut errno = None;
        while let Some(error) = cause {
            errno = errno.or(error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error));
            cause = error.source();
        }
        NotSaved { text: error.to_string(), errno }
    }
}

/// A recording that a save wrote.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The file.
    pub path: PathBuf,
    /// What it covers.
    pub span: Duration,
    /// Its length.
    pub bytes: u64,
    /// Places of the memory that are missing in it, since they could not be read back.
    pub damaged: u64,
}

/// The same, as a process is answered that has asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The file.
    pub path: PathBuf,
    /// As in [`Kept`].
    pub damaged: u64,
}
