//! What ended a recording.

/// What ended a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command or process ended by itself.
    Exit,
    /// `duration` was over; all processes of a command got SIGTERM.
    Duration,
    /// This signal reached the recorder, and the command through it.
    Signal(i32),
    /// The command could not be waited for.
    Lost,
}

impl End {
    /// As the recording says it.
    pub(crate) fn reason(self, is_command: bool) -> &'static str {
        match self {
            End::Exit if is_command => "command exited",
            End::Exit => "process exited",
            End::Duration => "duration",
            End::Signal(_) => "signal",
            End::Lost => "the command could not be waited for",
        }
    }
}
