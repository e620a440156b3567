//! What can go wrong with a recording as a whole. Damage inside one is not an error: see [`crate::Damage`].

use std::path::PathBuf;

/// Why a file is no recording, or could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not even an MCAP file.
    #[error("is not a recording (no MCAP file); name a file of `taut record`, or convert it (taut import --help)")]
    NotMcap,
    /// An MCAP file of another tool.
    #[error("is an MCAP file of profile {profile:?}, not a taut recording; convert it first (taut import rosbag2)")]
    Foreign {
        /// The profile in its header.
        profile: String,
    },
    /// Truncated before anything was on disk.
    #[error("ends after {bytes} bytes, before the first record; nothing of it can be read, record again")]
    Truncated {
        /// The file's length.
        bytes: usize,
    },
    /// Written by a newer taut.
    #[error("needs the feature {feature:?}, which this taut does not know; update taut")]
    UnknownFeature {
        /// The first unknown one.
        feature: String,
    },
    /// A chunk of a foreign file. Guessing would invent data.
    #[error("at byte {at}: the chunk compression {name:?}, which this taut does not know")]
    UnknownCompression {
        /// Where.
        at: u64,
        /// What the chunk says.
        name: String,
    },
    /// A channel that cannot be read.
    #[error("{0}")]
    Channel(String),
    /// The file system said no.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// A file that another command writes.
    #[error("{path}: another command writes it; name another file with -o")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The source could not be read.
    #[error("cannot be read: {0}")]
    Read(#[source] std::io::Error),
    /// The MCAP writer said no.
    #[error("{path}: cannot write: {source}")]
    Mcap {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: mcap::McapError,
    },
}

impl Error {
    /// The same of a file by another name.
    #[must_use]
    pub fn at(self, name: &std::path::Path) -> Error {
        let path = name.to_owned();
        match self {
            Error::Io { source, .. } => Error::Io { path, source },
            Error::Mcap { source, .. } => Error::Mcap { path, source },
            Error::Busy { .. } => Error::Busy { path },
            other => other,
        }
    }
}
