//! Scheduling policies that a plan gives to threads.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// SCHED_FIFO with this priority.
    Fifo(u8),
    /// SCHED_DEADLINE; the relative deadline is the period.
    Deadline {
        /// CPU time in each period.
        runtime_ns: u64,
        /// Period.
        period_ns: u64,
    },
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Policy::Deadline { runtime_ns, period_ns } => {
                let ms = |ns: &u64| *ns as f64 / 1e6;
                write!(f, "SCHED_DEADLINE {:.2} of {:.2} ms", ms(runtime_ns), ms(period_ns))
            }
        }
    }
}
