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
        /// Programs that write such files.
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
    /// Another kind of file, or another version of the kind; says what to do instead.
    #[error("{0}; nothing was imported")]
    Instead(String),
    /// More of something than a recording holds.
    #[error("holds {what}; nothing was imported")]
    TooMany {
        /// What, and how many would do.
        what: String,
    },
    /// One of several files could not be imported.
    #[error("{file}: {source}")]
    OfFile {
        /// Its name.
        file: String,
        /// Why.
        source: Box<Error>,
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

/// What is wrong with a part of a file.
pub(crate) enum Trouble {
    /// It is left out, and reported.
    Damage(String),
    /// Nothing can be imported.
    Fatal(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Fatal(error)
    }
}

impl Error {
    /// Says which of several files it was.
    pub(crate) fn of_file(self, path: &std::path::Path) -> Error {
        let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Error::OfFile { file, source: Box::new(self) }
    }
}
