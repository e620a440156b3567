//! Why a file could not be imported at all. What of it is damaged is no error: see [`crate::Imported`].

/// One sentence, to stand behind the file's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another kind of file.
    #[error("is no {kind} ({why}); name a file that {writer} wrote")]
    Foreign {
        /// What it should have been.
        kind: &'static str,
        /// How that is seen.
        why: String,
        /// Who writes such files.
        writer: &'static str,
    },
    /// A part of the format that this reader does not know. Guessing would make data up.
    #[error("at byte {at}: {what}, which this taut does not know; nothing was imported")]
    Unknown {
        /// Where.
        at: u64,
        /// What.
        what: String,
    },
    /// There is nothing in it.
    #[error("holds no data ({0})")]
    Empty(String),
    /// The file system said no.
    #[error("cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// The recording could not be written.
    #[error("{0}")]
    Write(#[from] taut_recording::Error),
}
