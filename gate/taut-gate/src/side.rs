//! Sides of a message's time: all, the program's, or the machine's.

use serde::{Deserialize, Serialize};

use crate::{Times, TrialFigures};

/// Which part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// All of it.
    Total,
    /// The program's.
    Own,
    /// The program's on a CPU.
    Work,
    /// The machine's.
    Machine,
}

impl Side {
    pub(crate) const ALL: [Side; 4] = [Side::Total, Side::Own, Side::Work, Side::Machine];

    /// The word in reports and in `--metric`.
    pub fn word(self) -> &'static str {
        match self {
            Side::Total => "total",
            Side::Own => "own",
            Side::Work => "work",
            Side::Machine => "machine",
        }
    }

    pub(crate) fn of(self, times: &Times) -> &TrialFigures {
        match self {
            Side::Total => &times.total,
            Side::Own => &times.own,
            Side::Work => &times.work,
            Side::Machine => &times.machine,
        }
    }
}
