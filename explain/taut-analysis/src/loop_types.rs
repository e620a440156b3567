//! Results on loops and on other threads that are woken.

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::Distribution;

use crate::CauseShare;

/// A thread that waits for the same thing again and again.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Loop {
    /// Its thread's name without a number, and what it waits for: "ctrl timer 1 ms".
    pub name: String,
    /// "comm/tid"; of several the one that runs most.
    pub thread: String,
    /// How many threads serve its timer, whichever waits: 1 but of runtimes such as Tokio's and Go's.
    pub threads: u64,
    /// The main thread of its process, "comm/tid".
    pub process: String,
    /// The scheduler's priority of the thread: below 0 SCHED_DEADLINE, 0 to 98 real-time (99 less its priority), 100 to 139 normal (120
    /// and its nice value); `None` where no switch of it was seen.
    pub priority: Option<i16>,
    /// How it was found.
    #[serde(skip)]
    pub found: LoopFound,
    /// By the timer; else the median time between two starts where that is steady, and the mean where not.
    pub period_ns: u64,
    /// Activations a second.
    pub rate_hz: Option<f64>,
    /// How often it ran.
    pub activations: u64,
    /// Activations of which events are missing; they are in no figure.
    pub left_out: u64,
    /// From one start to the next.
    pub period: Distribution,
    /// |time between two starts − period|.
    pub period_jitter: Distribution,
    /// From the release (the timer's moment, or the wake) to the start; without activations where no release is known.
    pub release_latency: Distribution,
    /// From the release, or the start where that is not known, until it waits again.
    pub response_time: Distribution,
    /// On a CPU from start until it waits again.
    pub cpu_time: Distribution,
    /// Activations that were not done at the next release, or for which nothing was left to sleep for; `None` where no release is
    /// known.
    pub overruns: Option<u64>,
    /// Releases of its schedule that it did not wait for: it went on to a later one, or ran on without sleeping. `None` without a
    /// schedule, and where an executor of ROS 2 serves the timer, whose chain says what was lost.
    pub skipped: Option<u64>,
    /// The chain that its thread is part of.
    pub chain: Option<String>,
    /// Above which release latency its late starts begin, and by which quantile.
    #[serde(skip)]
    pub late_above: Option<(f64, u64)>,
    /// What late starts exceed typical ones by, largest first; shares sum to 1.
    pub late_by: Vec<CauseShare>,
}

/// How a loop was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LoopFound {
    /// A timer keeps to a schedule.
    #[default]
    AbsoluteTimer,
    /// It sleeps for this time, again and again.
    RelativeTimer {
        /// Median of what was asked for.
        asked_ns: u64,
    },
    /// It sleeps for what is left of this time since its start.
    RestOfPeriod {
        /// Median.
        asked_ns: u64,
    },
    /// A thread wakes it.
    WokenBy {
        /// "comm/tid" of the one that does so most.
        thread: String,
        /// How many activations are its.
        activations: u64,
    },
    /// It runs at steady intervals, and nothing says why.
    Guessed {
        /// Four fifths of the intervals are within this of the period.
        error_ns: u64,
    },
}

impl LoopFound {
    /// The word in files.
    pub fn word(&self) -> &'static str {
        match self {
            LoopFound::AbsoluteTimer => "absolute_timer",
            LoopFound::RelativeTimer { .. } => "relative_timer",
            LoopFound::RestOfPeriod { .. } => "rest_of_period",
            LoopFound::WokenBy { .. } => "woken_by",
            LoopFound::Guessed { .. } => "guessed",
        }
    }
}

/// A thread that is woken again and again, and is no loop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WakingThread {
    /// "comm/tid".
    pub thread: String,
    /// The main thread of its process, "comm/tid".
    pub process: String,
    /// How often a wait of it ended.
    pub wakes: u64,
    /// Where it waited longest: "futex", "recv udp:5005".
    pub waits_for: String,
}
