//! Why nothing was, or no more could be, recorded.

use std::path::PathBuf;

use crate::End;

/// Why a recording failed. Texts name the thing and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such command.
    #[error("command {command:?} not found; check its spelling and PATH")]
    CommandNotFound {
        /// As typed.
        command: String,
    },
    /// The command is there and does not start.
    #[error("command {command:?} does not start: {source}")]
    CommandFailed {
        /// As typed.
        command: String,
        /// What exec said.
        source: std::io::Error,
    },
    /// No such process.
    #[error("no process {pid} runs here")]
    NoProcess {
        /// The pid asked for.
        pid: i32,
    },
    /// A process of another user.
    #[error("process {pid} belongs to another user: {source}; run as that user or with sudo")]
    NotPermitted {
        /// The pid asked for.
        pid: i32,
        /// What /proc said.
        source: std::io::Error,
    },
    /// Neither stamps nor anything else.
    #[error(
        "there is nothing to record of process {pid}: it {why}, and there are no kernel events ({reason}); start it by `taut record -- COMMAND`, or with TAUT_SESSION=DIR in its environment"
    )]
    Nothing {
        /// The process.
        pid: i32,
        /// Why no stamps.
        why: String,
        /// Why no kernel events.
        reason: String,
    },
    /// The rings' directory.
    #[error("session directory {path}: {source}; name a writable one with --session")]
    Session {
        /// The directory.
        path: PathBuf,
        /// What the file system said.
        source: std::io::Error,
    },
    /// A session directory into which others may put rings.
    #[error("session directory {path}: {why}")]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// Its owner or its permissions, and the remedy.
        why: String,
    },
    /// A session that another recorder records: two would take stamps from each other.
    #[error(
        "session directory {path} is recorded already, by {by}; watch it with `taut top`, or name another with --session"
    )]
    Recorded {
        /// The directory.
        path: PathBuf,
        /// The first recorder, and the file that it writes.
        by: String,
    },
    /// A recorder that keeps a whole recording and nothing to save.
    #[error("process {pid} keeps no flight recorder: it writes {output}")]
    NoFlight {
        /// The recorder.
        pid: i32,
        /// Its file.
        output: PathBuf,
    },
    /// A flight recorder that was to save.
    #[error("the recorder, process {pid}, ended before it had saved")]
    EndedFirst {
        /// The recorder.
        pid: i32,
    },
    /// A forced tier or kernel source.
    #[error(transparent)]
    Kernel(#[from] crate::kernel::Error),
    /// The file.
    #[error(transparent)]
    Recording(#[from] taut_recording::Error),
    /// The file could not be written to the end; the command was not hurt by it.
    #[error(
        "{source}; the recording ends there, after {file_bytes} bytes that can be read; what it recorded ran on undisturbed"
    )]
    Stopped {
        /// What the writer said.
        source: taut_recording::Error,
        /// Length of the file.
        file_bytes: u64,
        /// Of the command; `None` when attached.
        exit_code: Option<i32>,
        /// What ended the recording.
        end: End,
    },
    /// Stacks cannot be sampled; the source says what grants it.
    #[error("sampling of stacks (--profile)")]
    Profile(#[source] std::io::Error),
    /// Anything else that the system refused.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Error {
    /// Whether a permission is what is missing.
    pub fn is_not_permitted(&self) -> bool {
        let denied = |source: &std::io::Error| source.kind() == std::io::ErrorKind::PermissionDenied;
        match self {
            Error::NotPermitted { .. } => true,
            Error::Kernel(error) => error.is_not_permitted(),
            Error::Recording(taut_recording::Error::Io { source, .. }) => denied(source),
            Error::Session { source, .. } | Error::Profile(source) | Error::System { source, .. } => denied(source),
            _ => false,
        }
    }
}
