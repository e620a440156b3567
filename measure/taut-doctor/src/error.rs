//! What can go wrong: input that is no machine, a remedy that cannot be applied or taken back.

/// An error of the doctor, in words for the person who asked.
#[derive(Debug, thiserror::Error)]
pub enum DoctorError {
    /// A written-down machine names a path twice.
    #[error("line {line}: {path} is written down twice")]
    TwiceInMachine {
        /// The path.
        path: String,
        /// Line of the second one.
        line: usize,
    },
    /// A text without one section.
    #[error("is not a machine written down by `taut doctor --write-down`")]
    NotAMachine,
    /// A remedy that is neither a value for a file nor a held device.
    #[error("{id}: its remedy cannot be measured: {why}")]
    NotMeasurable {
        /// The check.
        id: &'static str,
        /// Why not.
        why: String,
    },
    /// A file that does not take its value.
    #[error("{path}: cannot write {value:?}")]
    Write {
        /// The file.
        path: String,
        /// What was to be written.
        value: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The value that was there could not be written back.
    #[error("{path} could NOT be put back ({why}); do it by hand: {command}")]
    NotPutBack {
        /// The file.
        path: String,
        /// What the kernel said.
        why: String,
        /// What puts it back.
        command: String,
    },
}
