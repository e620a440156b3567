//! The present state: read by displays, changed once a turn.

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
};

use taut_analysis::{Cause, Explained};
use taut_points::hosts::ClocksFrom;
use taut_recording::{Ending, Info};

use crate::Spread;

/// Turns of which [`Chain::recent`] and [`Thread::recent`] tell reach back so far.
pub const RECENT_NS: u64 = 10_000_000_000;

/// Everything. Counts and [`LiveFigures`] called total only ever grow.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// What is recorded where; `None` until the file has it.
    pub info: Option<Info>,
    /// How the recording ended, once it has.
    pub ending: Option<Ending>,
    /// Why nothing more will come, when that is not the recording's end.
    pub failure: Option<String>,
    /// For how long the file has not grown: a recorder that lives adds to it each second. Of several files, the longest.
    pub silent_ns: u64,
    /// Whose file that is, of several hosts.
    pub silent_host: String,
    /// What is known of the clocks of each two hosts, those of the first host first; empty for one host.
    pub clocks: Vec<Clocks>,
    /// Why nothing is known of them yet.
    pub unaligned: Option<String>,
    /// CLOCK_MONOTONIC up to which messages are counted.
    pub until_ns: u64,
    /// Turns so far.
    pub turns: u64,
    /// How long the last turn took, wall time.
    pub turn_ns: u64,
    /// Stamps read.
    pub stamps: u64,
    /// Stamps a second, over the last turn.
    pub stamps_per_s: f64,
    /// ROS 2 events read.
    pub ros_events: u64,
    /// ROS 2 events a second, over the last turn.
    pub ros_events_per_s: f64,
    /// Kernel events read.
    pub kernel_events: u64,
    /// Telemetry messages read.
    pub telemetry: u64,
    /// What was lost.
    pub lost: Lost,
    /// Chunks of the file that failed their checksum.
    pub damaged_chunks: u64,
    /// Most messages first.
    pub chains: Vec<Chain>,
    /// Threads of the recorded tree.
    pub threads: Vec<Thread>,
    /// A speed guard in the robot.
    pub guard: Guard,
    /// Where the messages of the next minute are being kept, and until when (CLOCK_MONOTONIC).
    pub keeping: Option<(PathBuf, u64)>,
    /// Where they were kept, or why not.
    pub kept: Option<Result<PathBuf, String>>,
}

/// What the last seconds say of the clocks of two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Their names.
    pub hosts: [String; 2],
    /// Where it comes from.
    pub from: ClocksFrom,
    /// Of the second one's clock from the first one's.
    pub offset_ns: i64,
    /// It is wrong by this at most; `None` where messages went one way only, or CLOCK_REALTIME is taken.
    pub bound_ns: Option<u64>,
    /// From the first to the second, and back.
    pub messages: [u64; 2],
}

/// Counts of what was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// A ring was full, or not to be had.
    pub stamps: u64,
    /// A ring was full, or not to be had.
    pub ros_events: u64,
    /// By ftrace or perf.
    pub kernel_events: u64,
    /// A telemetry channel's ring was full.
    pub telemetry: u64,
    /// Samples of stacks.
    pub samples: u64,
}

impl Lost {
    /// Both together.
    pub(crate) fn and(self, other: Lost) -> Lost {
        Lost {
            stamps: self.stamps.saturating_add(other.stamps),
            ros_events: self.ros_events.saturating_add(other.ros_events),
            kernel_events: self.kernel_events.saturating_add(other.kernel_events),
            telemetry: self.telemetry.saturating_add(other.telemetry),
            samples: self.samples.saturating_add(other.samples),
        }
    }
}

/// A speed guard, from the values `guard.armed`, `guard.trip` and `guard.false_trip`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// Whether one is there.
    pub is_armed: bool,
    /// How often it stopped the robot, or would have.
    pub trips: u64,
    /// How many of them the robot's true speed does not justify, where a simulation knows it.
    pub false_trips: u64,
}

/// A chain.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// As reports call it.
    pub name: String,
    /// Its points in order.
    pub points: Vec<String>,
    /// As declared.
    pub deadline_ns: Option<u64>,
    /// Since the start.
    pub total: LiveFigures,
    /// Turn by turn, of the last seconds: when it ended, how long it was, what it brought.
    pub recent: VecDeque<(u64, u64, LiveFigures)>,
    /// Causes of the tail of the last turn's messages.
    pub explained: Explained,
}

impl Chain {
    /// The last seconds' turns as one, and how long they were together.
    pub fn recently(&self) -> (LiveFigures, u64) {
        let mut sum = LiveFigures::default();
        self.recent.iter().for_each(|(_, _, figures)| sum.add(figures));
        (sum, self.recent.iter().map(|(_, span_ns, _)| span_ns).sum())
    }
}

/// What messages of a chain came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveFigures {
    /// From the first to the last point.
    pub way: Spread,
    /// Messages over the deadline.
    pub missed: u64,
    /// In order, one less than points.
    pub hops: Vec<Hop>,
    /// "applied", "ended_early", "unexplained", or the reason of a drop → messages.
    pub outcomes: BTreeMap<String, u64>,
    /// Applied, but not seen at both ends: on their way for longer than the window, or stamps are missing.
    pub partial: u64,
}

/// What a hop came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hop {
    /// Of messages that passed both points.
    pub delay: Spread,
    /// Time that one message spent so; messages without any are not in it.
    pub causes: BTreeMap<Cause, Spread>,
}

impl LiveFigures {
    /// Takes another's.
    pub fn add(&mut self, other: &LiveFigures) {
        self.way.add(&other.way);
        self.missed += other.missed;
        self.partial += other.partial;
        self.hops.resize_with(self.hops.len().max(other.hops.len()), Hop::default);
        for (hop, theirs) in self.hops.iter_mut().zip(&other.hops) {
            hop.delay.add(&theirs.delay);
            for (cause, spread) in &theirs.causes {
                hop.causes.entry(*cause).or_default().add(spread);
            }
        }
        for (outcome, count) in &other.outcomes {
            *self.outcomes.entry(outcome.clone()).or_default() += count;
        }
    }

    /// All messages, however they ended.
    pub fn messages(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Messages that ended otherwise than well.
    pub fn dropped(&self) -> u64 {
        let of = |outcome: &str| self.outcomes.get(outcome).copied().unwrap_or(0);
        self.messages() - of("applied") - of("ended_early")
    }
}

/// A thread of the recorded tree.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// On the host.
    pub tid: i32,
    /// "comm/tid".
    pub name: String,
    /// Turn by turn, of the last seconds: when it ended, and how long the thread was in which state. Without a state
    /// the time is not known.
    pub recent: VecDeque<(u64, BTreeMap<&'static str, u64>)>,
}

impl Thread {
    /// The last seconds' turns as one.
    pub fn recently(&self) -> BTreeMap<&'static str, u64> {
        let mut sum = BTreeMap::new();
        for (state, ns) in self.recent.iter().flat_map(|(_, states)| states) {
            *sum.entry(*state).or_default() += ns;
        }
        sum
    }
}
