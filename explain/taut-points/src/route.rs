//! Orders of points that a source knows, and what it knows of loops: threads that wait for the same thing again and again.

use crate::point::PointId;

/// A chain as its source has it: nothing needs to be inferred.
#[derive(Clone, Debug)]
pub struct Route {
    /// Of the chain.
    pub name: String,
    /// In order.
    pub points: Vec<PointId>,
    /// What it is.
    pub kind: RouteKind,
}

/// What a route is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// Threads that wake each other.
    Wakes,
    /// One thread: release, start and done of the loop of that index in [`crate::Linked::loops`].
    Loop(usize),
}

/// A thread that waits for the same thing again and again, and what it does in between is an activation.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Its thread; of several the one that runs most.
    pub thread: i32,
    /// Its name without a number, and what it waits for: "ctrl timer 1 ms".
    pub name: String,
    /// By the timer; else the median time between two starts where that is steady, and the mean where not.
    pub period_ns: u64,
    /// How it was found.
    pub evidence: LoopEvidence,
    /// In order of time, those apart of which events are missing.
    pub activations: Vec<Activation>,
    /// Activations of which events are missing, or all are.
    pub left_out: u64,
    /// Releases of the timer's schedule that it did not wait for.
    pub skipped: u64,
}

/// How a loop was found, and so what may be said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopEvidence {
    /// A timer that keeps to a schedule: each release is known to the nanosecond.
    AbsoluteTimer,
    /// It sleeps for a time, again and again: what it does in between adds to its period.
    RelativeTimer {
        /// The time asked for, median.
        asked_ns: u64,
    },
    /// It sleeps for what is left of a time since its start: a late start adds to its period, what it does does not.
    RestOfPeriod {
        /// From a start to the moment of the next timer, median.
        asked_ns: u64,
    },
    /// Another thread wakes it.
    WokenBy {
        /// The one that does so most.
        thread: i32,
        /// How many of the activations are its.
        activations: u64,
    },
    /// It runs at steady intervals, and the recording does not say what wakes it.
    Guessed {
        /// Four fifths of the intervals are within this of the period.
        error_ns: u64,
    },
}

/// One run of a loop, until its thread waits again. Moments are CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// When it should have started: the timer's moment, or the wake. `None` where the recording does not say.
    pub release_ns: Option<u64>,
    /// When its wait returned.
    pub start_ns: u64,
    /// When it waited again.
    pub done_ns: u64,
    /// Time on a CPU from start to done; `None` where it is not known what the thread did all the time.
    pub cpu_ns: Option<u64>,
    /// Of a loop whose timer any of several threads serves: the one that did. Else the loop's.
    pub thread: i32,
}

/// A thread that is woken again and again, and is no loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakingThread {
    /// The thread.
    pub thread: i32,
    /// How often a wait of it ended.
    pub wakes: u64,
    /// Where it waited longest: "futex", "recv udp:5005".
    pub waits_for: String,
}
