//! Which process or thread something is about: its number and its start, since numbers are used again.

use procfs::process::Process;
use serde::{Deserialize, Serialize};

/// A process or thread that cannot be mistaken for a later one of the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub number: i32,
    /// When it started, in clock ticks since the machine's boot.
    pub started: u64,
    /// Its name.
    pub name: String,
}

impl Identity {
    /// Of a process or thread that is alive.
    pub fn of(number: i32) -> Option<Identity> {
        let stat = Process::new(number).ok()?.stat().ok()?;
        (!matches!(stat.state, 'Z' | 'X')).then_some(Identity { number, started: stat.starttime, name: stat.comm })
    }

    /// Whether it is the same still.
    pub fn is_alive(&self) -> bool {
        Identity::of(self.number).is_some_and(|now| now.started == self.started)
    }
}
