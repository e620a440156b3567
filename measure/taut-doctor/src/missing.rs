//! Why a file or a call gives no answer.

use std::io::ErrorKind;

/// A file's text, or why there is none.
pub type Answer = Result<String, Missing>;

/// Why a file or a call gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// No such file: the kernel lacks the feature, or the container hides it.
    Absent,
    /// Not permitted.
    Denied,
    /// Another error, by its name or message.
    Failed(String),
}

pub(crate) fn missing(error: std::io::Error) -> Missing {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Missing::Absent,
        ErrorKind::PermissionDenied => Missing::Denied,
        _ => Missing::Failed(error.to_string()),
    }
}
