//! Every exit code of `taut`, with what to do about it. `taut record` besides forwards
//! the exit code of the command it recorded (128 + signal when a signal ended it).

use std::process::ExitCode;

/// All is well.
pub const FINE: u8 = 0;
/// A verdict against what was looked at, where one was asked for: the result says which.
pub const AGAINST: u8 = 1;
/// Bad usage or bad input: read the line that names the file or value, and mend it.
pub const BAD_INPUT: u8 = 2;
/// Not permitted: the message names the permission and the command that grants it.
pub const NOT_PERMITTED: u8 = 3;
/// Not enough evidence, where that was to count (`--inconclusive fail`): run longer, or make the machine quieter.
pub const NOT_ENOUGH: u8 = 4;
/// Finished, but data was lost or damaged: the output says what; trust it only as far.
pub const DATA_LOST: u8 = 5;

/// How a command ended when nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing to add.
    Fine,
    /// The result is a verdict against (`--strict`).
    Against,
    /// The result is that there is no result, and that was to count.
    NotEnough,
    /// The result stands, but something in the file was damaged.
    DataLost,
    /// The recorded command's own exit code.
    Forwarded(u8),
}

impl From<Done> for ExitCode {
    fn from(done: Done) -> ExitCode {
        ExitCode::from(match done {
            Done::Fine => FINE,
            Done::Against => AGAINST,
            Done::NotEnough => NOT_ENOUGH,
            Done::DataLost => DATA_LOST,
            Done::Forwarded(code) => code,
        })
    }
}

/// An error and its causes in one line. A cause that the sentence before it has in it already is not said again.
pub fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        match text.is_empty() {
            true => text = cause,
            false if text.contains(&cause) => {}
            false => text = format!("{text}: {cause}"),
        }
    }
    text
}

/// The code for an error: not permitted is told apart from everything else.
pub fn code_of(error: &anyhow::Error) -> u8 {
    let denied = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::PermissionDenied);
    if denied { NOT_PERMITTED } else { BAD_INPUT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let gone = || std::io::Error::from_raw_os_error(2);
        let wrapped = anyhow::Error::new(gone()).context(format!("cannot be read: {}", gone())).context("trace");
        assert_eq!(told(&wrapped), "trace: cannot be read: No such file or directory (os error 2)");
        let two = anyhow::Error::new(gone()).context("cannot be read").context("trace");
        assert_eq!(told(&two), "trace: cannot be read: No such file or directory (os error 2)");
    }
}
