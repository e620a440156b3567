//! What can go wrong before, while or after a lab runs.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why there is no result.
#[derive(Debug, Error)]
pub enum Error {
    /// The file is no lab: names the line or the key, and what to write.
    #[error("{}: {place}: {problem}", file.display())]
    File {
        /// The TOML file.
        file: PathBuf,
        /// The line, or the key.
        place: String,
        /// What is wrong, and the remedy.
        problem: String,
    },
    /// A process or a load that did not start.
    #[error("{place}: {problem}")]
    Start {
        /// Its key in the TOML file.
        place: String,
        /// What happened, with its last words.
        problem: String,
    },
    /// A file or a call that was needed.
    #[error("{what}: {source}")]
    System {
        /// The file or the call.
        what: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A folder that holds another run, or none.
    #[error("{}: {problem}", folder.display())]
    Manifest {
        /// The run's folder.
        folder: PathBuf,
        /// What to do.
        problem: String,
    },
    /// The user ended it; what is written stays.
    #[error("stopped after {trials} trials; the same command with --resume goes on")]
    Stopped {
        /// Trials in the manifest.
        trials: usize,
    },
}

impl Error {
    pub(crate) fn system(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.to_string();
        move |source| Error::System { what, source }
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        Error::system(path.display())
    }
}
