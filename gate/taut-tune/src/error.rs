//! What can go wrong when a remedy is applied or undone.

use std::path::PathBuf;

/// Each says what failed, on which file or value, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The folder of journals is not safe to use.
    #[error("{path}: {problem}; remove it, or give another place in XDG_RUNTIME_DIR", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A plan or a journal that cannot be read.
    #[error("{path}: not written by this version of taut tune: {source}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The system refuses a setting of the program.
    #[error("{what}: {source}")]
    Setting {
        /// E.g. "SCHED_FIFO 50".
        what: String,
        /// Why.
        source: std::io::Error,
    },
    /// The command to launch is missing.
    #[error("{command}: {source}")]
    Command {
        /// The program's name.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// Something that was changed is not as it was before.
    #[error("{what} could not be restored: {why}; do it by: {by_hand}")]
    NotRestored {
        /// What.
        what: String,
        /// Why.
        why: String,
        /// A command line.
        by_hand: String,
    },
}

impl Error {
    /// The kernel refuses a value for a file, as it does for interrupts that it manages itself.
    pub fn is_refused(&self) -> bool {
        let refusals = [libc::EPERM, libc::EIO];
        matches!(self, Error::File { source, .. } if source.raw_os_error().is_some_and(|code| refusals.contains(&code)))
    }

    /// For `map_err` on a file's error.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { path, source }
    }
}
