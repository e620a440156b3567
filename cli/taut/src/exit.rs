//! Every exit code of `taut`: the one table of them, and how an end becomes one.

use std::{io::ErrorKind, process::ExitCode};

use taut_capture::End;

/// Nothing to add.
pub const FINE: u8 = 0;
/// A finding against what was examined, where one was asked for: the result says which.
pub const AGAINST: u8 = 1;
/// Bad usage or bad input: read the line that names the file or value, and correct it.
pub const BAD_INPUT: u8 = 2;
/// Not permitted: the message names the permission and the command that grants it.
pub const NOT_PERMITTED: u8 = 3;
/// Not enough evidence, where that counts (an invalid gate, an open limit, `--inconclusive fail`): run longer, or make the machine quieter.
pub const NOT_ENOUGH: u8 = 4;
/// Finished, but data was lost or damaged: the output says what; trust it only as far.
pub const DATA_LOST: u8 = 5;
/// A disk, a pipe or a network failed: free room or replace it, and repeat.
pub const IO_FAILED: u8 = 6;
/// `taut record -- COMMAND` failed before the command ran.
pub const RECORD_FAILED: u8 = 125;
/// The command of `taut record` is there and does not start.
pub const COMMAND_FAILED: u8 = 126;
/// The command of `taut record` is not there.
pub const COMMAND_NOT_FOUND: u8 = 127;
/// A signal ended it before it was done: this much above the signal's number, as shells have it.
pub const SIGNAL: u8 = 128;

/// The table, for `--help` and `docs/reference/README.md`: code, short meaning, what it is in full.
pub const TABLE: [(&str, &str, &str); 11] = [
    ("0", "fine", "done as asked"),
    ("1", "a finding against (gate, --strict)", "a finding against: `gate`, `guard replay`, `doctor --strict`"),
    ("2", "bad usage or input", "bad usage or input; the line names the file or value"),
    ("3", "not permitted", "not permitted; the line names what grants it"),
    (
        "4",
        "not enough evidence where that counts",
        "not enough evidence, where that counts: an invalid `gate`, a limit that stays open, and any other with `--inconclusive fail`",
    ),
    (
        "5",
        "data was lost or damaged",
        "finished, but data was lost while it was taken, or damaged in the file that was read; the output says what",
    ),
    (
        "6",
        "I/O failure",
        "a file, pipe or connection failed: a full disk, a device that reports errors, too many open files",
    ),
    ("125", "record itself failed", "`record -- COMMAND`: failed before the command ran; also bad usage of it"),
    ("126", "its command does not start", "`record -- COMMAND`: the command is there and does not start"),
    ("127", "its command is missing", "`record -- COMMAND`: the command is not there"),
    (
        "130, 143",
        "interrupted",
        "SIGINT or SIGTERM (129: SIGHUP) ended it before it was done; what it had found is written",
    ),
];

/// How a command ended when nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing to add.
    Fine,
    /// The result is a finding against (`--strict`).
    Against,
    /// The result is that there is no result, and that was to count.
    NotEnough,
    /// The result stands, but data was lost, or something in the file was damaged.
    DataLost,
    /// A signal ended it before it was done; the result is that of the part before.
    Interrupted(i32),
    /// Another program's exit code.
    Forwarded(u8),
}

impl From<Done> for ExitCode {
    fn from(done: Done) -> ExitCode {
        ExitCode::from(match done {
            Done::Fine => FINE,
            Done::Against => AGAINST,
            Done::NotEnough => NOT_ENOUGH,
            Done::DataLost => DATA_LOST,
            Done::Interrupted(signal) => after_signal(signal),
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

/// A signal ended a command that has no result then.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: {without}")]
pub struct Interrupted {
    /// Which one.
    pub signal: i32,
    /// What there is not, or how to go on.
    pub without: String,
}

/// Something needs a permission that is missing; the text names what grants it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotPermitted(pub String);

/// Where an exit code that is not the command's own begins to mean something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codes {
    /// As in the table.
    Own,
    /// Those of a command that is run: failures of ours are 125 to 127, as those of `env` and `timeout` are.
    Command,
}

/// The code for an error.
pub fn code_of(error: &anyhow::Error, codes: Codes) -> u8 {
    if let Some(interrupted) = error.chain().find_map(|cause| cause.downcast_ref::<Interrupted>()) {
        return after_signal(interrupted.signal);
    }
    if error.downcast_ref::<NotPermitted>().is_some() {
        return NOT_PERMITTED;
    }
    let of_capture = error.chain().find_map(|cause| cause.downcast_ref::<taut_capture::Error>());
    match (of_capture, codes) {
        (Some(taut_capture::Error::CommandNotFound { .. }), Codes::Command) => COMMAND_NOT_FOUND,
        (Some(taut_capture::Error::CommandFailed { .. }), Codes::Command) => COMMAND_FAILED,
        // It ran, and this much was lost of it. SIGTERM and SIGKILL are how --duration ends a command.
        (Some(taut_capture::Error::Stopped { exit_code: Some(143 | 137), end: End::Duration, .. }), _) => IO_FAILED,
        // The command's own code is not known.
        (Some(taut_capture::Error::Stopped { end: End::Lost, .. }), _) => IO_FAILED,
        (Some(taut_capture::Error::Stopped { exit_code: Some(code @ 1..), .. }), Codes::Command) => {
            (*code).clamp(1, 255) as u8
        }
        (Some(taut_capture::Error::Stopped { .. }), _) => IO_FAILED,
        (_, Codes::Command) => RECORD_FAILED,
        (Some(error), Codes::Own) if error.is_not_permitted() => NOT_PERMITTED,
        _ => error.chain().find_map(of_system).unwrap_or(BAD_INPUT),
    }
}

fn after_signal(signal: i32) -> u8 {
    SIGNAL.saturating_add(u8::try_from(signal).unwrap_or(0))
}

/// Of an error of the system: which files there are, what they are and which may be read is input; the rest fails by itself.
fn of_system(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    let io = cause.downcast_ref::<std::io::Error>();
    let errno = cause.downcast_ref::<rustix::io::Errno>().map(|errno| std::io::Error::from(*errno));
    let io = io.or(errno.as_ref())?;
    Some(match io.kind() {
        ErrorKind::PermissionDenied => NOT_PERMITTED,
        ErrorKind::StorageFull
        | ErrorKind::QuotaExceeded
        | ErrorKind::FileTooLarge
        | ErrorKind::WriteZero
        | ErrorKind::OutOfMemory
        | ErrorKind::StaleNetworkFileHandle
        | ErrorKind::BrokenPipe
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::TimedOut => IO_FAILED,
        _ if FAILURES.contains(&io.raw_os_error().unwrap_or(0)) => IO_FAILED,
        _ => return None,
    })
}

/// Failures that have no kind of their own: EIO, ENFILE, EMFILE, EAGAIN.
const FAILURES: [i32; 4] = [5, 23, 24, 11];

/// The table in a line, for `--help`.
pub fn help() -> String {
    let rows = TABLE.map(|(code, short, _)| format!("{code} {short}"));
    format!("Exit codes: {}.", rows.join("; "))
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn an_error_of_the_system_is_input_permission_or_failure() {
        let code = |number| {
            let failed: anyhow::Result<()> = Err(std::io::Error::from_raw_os_error(number).into());
            let error = failed.context("run.mcap").unwrap_err();
            (code_of(&error, Codes::Own), code_of(&error, Codes::Command))
        };
        for (number, own) in
            [(2, 2), (20, 2), (21, 2), (98, 2), (13, 3), (1, 3), (28, 6), (5, 6), (27, 6), (24, 6), (116, 6)]
        {
            assert_eq!(code(number), (own, RECORD_FAILED), "errno {number}");
        }
    }

    #[test]
    fn a_code_that_is_not_known_is_not_the_commands() {
        let code = |end| {
            let source = taut_recording::Error::Read(std::io::Error::from_raw_os_error(5));
            let stopped = taut_capture::Error::Stopped { source, file_bytes: 0, exit_code: Some(1), end };
            code_of(&stopped.into(), Codes::Command)
        };
        assert_eq!((code(End::Exit), code(End::Lost)), (1, IO_FAILED));
    }

    #[test]
    fn a_cause_is_said_once() {
        let gone = || std::io::Error::from_raw_os_error(2);
        let wrapped = anyhow::Error::new(gone()).context(format!("cannot be read: {}", gone())).context("trace");
        assert_eq!(told(&wrapped), "trace: cannot be read: No such file or directory (os error 2)");
        let two = anyhow::Error::new(gone()).context("cannot be read").context("trace");
        assert_eq!(told(&two), "trace: cannot be read: No such file or directory (os error 2)");
    }
}
