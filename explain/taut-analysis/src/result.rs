//! The result of an analysis, as plain data in the user's words. All times in
//! nanoseconds unless the name says otherwise.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use taut_points::SourceKind;
use taut_recording::{Ending, Info};
use taut_stats::Distribution;

use crate::{
    histograms::Histogram,
    signals::{Signal, Tracking},
    telemetry::Telemetry,
};

/// Of its stamps, and of its kernel events, the share that a recording may lack where a verdict rests on them.
pub const LOST_MAX: f64 = 0.001;

/// Everything found in one recording.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// What was recorded where.
    pub info: Info,
    /// How it ended; `None` when the recorder was killed.
    pub ending: Option<Ending>,
    /// How much there was to look at.
    pub totals: Totals,
    /// One entry for each chain, most messages first.
    pub chains: Vec<Chain>,
    /// Threads that wait for the same thing again and again, in order of their first activation.
    pub loops: Vec<crate::Loop>,
    /// The other threads that are woken, most wakes first.
    pub waking: Vec<crate::WakingThread>,
    /// Values over time, by name.
    pub signals: Vec<Signal>,
    /// Pairs of a commanded and an actual signal.
    pub tracking: Vec<Tracking>,
    /// Channels of plain messages, by topic.
    pub telemetry: Vec<Telemetry>,
    /// Points that no message passes together with another, and that are therefore of no chain; by name.
    pub points: Vec<Point>,
    /// Distributions without messages, by name.
    pub histograms: Vec<Histogram>,
    /// Topics, callbacks and executors; `None` without ROS 2 events.
    pub ros: Option<taut_points::RosFigures>,
    /// Where CPU time went; `None` without sampled stacks.
    pub profile: Option<crate::Profile>,
    /// Damage found in the file, one sentence each; empty when it is whole.
    pub damage: Vec<String>,
    /// Sentences a reader must know to trust the figures (losses, tier, clock …).
    pub notes: Vec<String>,
}

impl Analysis {
    /// Whether anything was lost, when recording or by damage to the file: then it is not all that happened.
    pub fn has_loss(&self) -> bool {
        let totals = &self.totals;
        let samples = self.profile.as_ref().map_or(0, |profile| profile.lost);
        let lost =
            [totals.lost_stamps, totals.lost_ros_events, totals.lost_kernel_events, totals.lost_telemetry, samples];
        !self.damage.is_empty() || lost.iter().any(|count| *count > 0)
    }
}

/// Counts over the whole recording.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// From the first to the last record, in seconds.
    pub duration_s: f64,
    /// The recording's start, from which moments are counted; CLOCK_MONOTONIC.
    pub start_monotonic_ns: u64,
    /// Stamps read.
    pub stamps: u64,
    /// Stamps lost, as counted by rings and recorder, and about as many as damaged chunks held.
    pub lost_stamps: u64,
    /// ROS 2 events read.
    pub ros_events: u64,
    /// ROS 2 events lost.
    pub lost_ros_events: u64,
    /// Whether `lost_ros_events` is an estimate.
    pub lost_ros_events_is_estimate: bool,
    /// Kernel events read.
    pub kernel_events: u64,
    /// Kernel events lost.
    pub lost_kernel_events: u64,
    /// In how many stretches they are missing on some CPU, as far as the recording says when.
    pub lost_kernel_stretches: u64,
    /// For how long altogether: at most, since a stretch begins with the last switch before it.
    pub lost_kernel_ns: u64,
    /// Whether `lost_stamps` is an estimate: of a damaged chunk only the length is known.
    pub lost_stamps_is_estimate: bool,
    /// Whether `lost_kernel_events` is one.
    pub lost_kernel_events_is_estimate: bool,
    /// Telemetry messages lost.
    pub lost_telemetry: u64,
    /// Bound on the error of ticks → CLOCK_MONOTONIC; `None` when the recording has no second calibration pair.
    pub clock_error_ns: Option<f64>,
    /// Share of the time in which some thread of the machine waited for a CPU (0..1), if it is half of the time or more.
    pub cpu_pressure: Option<f64>,
    /// Bytes of the recording file.
    pub file_bytes: u64,
    /// What a speed guard in the robot said; `None` where none was armed.
    pub trips: Option<Trips>,
}

/// Trips of a speed guard, from the values `guard.armed`, `guard.trip` and `guard.false_trip`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trips {
    /// How often it stopped the robot, or would have.
    pub all: u64,
    /// How many of them the robot's true speed does not justify, where a simulation knows it.
    pub false_ones: u64,
}

/// One chain with its figures.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// "first.point → last.point", or the name declared in taut.toml.
    pub name: String,
    /// Where its points are from.
    pub source: SourceKind,
    /// True when declared in taut.toml, false when inferred.
    pub declared: bool,
    /// Whether its messages are activations of the loop of its name.
    pub is_loop: bool,
    /// Deadline of taut.toml, end to end.
    pub deadline_ns: Option<u64>,
    /// Messages over the deadline among the completed; `None` without a deadline.
    pub missed: Option<u64>,
    /// Points in order.
    pub points: Vec<Point>,
    /// Messages seen at any of the chain's points.
    pub messages: u64,
    /// First to last point, for the messages that passed both, start-up apart.
    pub end_to_end: Delay,
    /// First to last stamp of every message, dropped ones included, without start-up.
    pub whole_life: Delay,
    /// Neighbouring points, in order.
    pub hops: Vec<Hop>,
    /// The start-up transient, reported apart.
    pub startup: Option<Startup>,
    /// How late its loop starts, where its thread sleeps until moments; `None` where nothing says when it should.
    pub starts: Option<Starts>,
    /// Where the messages ended.
    pub outcomes: Outcomes,
    /// Points seen at few messages or off the main line: kept, said, not forced into the chain.
    pub branches: Vec<Branch>,
    /// End-to-end latency over time, for plots: (start of message in ns since the recording's start, latency ns); all messages that completed, start-up included.
    pub series: Vec<(u64, u64)>,
    /// The causes of its latency.
    pub explained: crate::Explained,
}

/// A point of a chain.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Point {
    /// Its name as stamped.
    pub name: String,
    /// A moment that a schedule says, and not one at which something happened.
    #[serde(skip)]
    pub is_due: bool,
    /// Messages that passed.
    pub messages: u64,
    /// Messages a second over the point's own active time.
    pub rate_hz: Option<f64>,
    /// Distribution of the time between two messages at this point.
    pub period: Distribution,
    /// |period − median period|.
    pub period_jitter: Distribution,
    /// Periods above 1.5 times the median: a message of a steady stream is missing there, or half a period late.
    pub gaps: u64,
    /// Messages that are missing in them, by the median period.
    pub missing: u64,
    /// The longest of them, longest first.
    pub longest_gaps: Vec<Gap>,
    /// Threads that stamped here, "comm/tid", most stamps first.
    pub threads: Vec<String>,
}

/// How late a loop starts: its first stamp against the moment that its absolute timer was set to.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Starts {
    /// Median time between two intended starts.
    pub period_ns: u64,
    /// From the intended start to the first stamp.
    pub lateness: Distribution,
    /// Intended starts that never came: the loop went on to a later moment.
    pub missing: u64,
    /// The latest ones, latest first.
    pub worst: Vec<LateStart>,
}

/// A start that came late.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct LateStart {
    /// Message id.
    pub id: u64,
    /// When it should have been, in ns since the recording's start.
    pub intended_ns: u64,
    /// How much later the first stamp was.
    pub late_ns: u64,
    /// What that time was spent on, largest first.
    #[serde(rename = "causes")]
    pub pieces: Vec<crate::TimePiece>,
}

/// A stretch in which a steady stream was silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gap {
    /// The last message before it, in ns since the recording's start.
    pub from_ns: u64,
    /// Until the next one.
    #[serde(rename = "duration_ns")]
    pub ns: u64,
    /// Messages that are missing in it, by the median period.
    pub missing: u64,
}

/// Delay figures and their histogram.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Delay {
    /// Quantiles with their counts.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// Histogram for plots: [from_ns, to_ns, count].
    #[schemars(with = "Vec<(u64, u64, u64)>")]
    pub histogram: Vec<Bin>,
    /// Percentile curve for plots: (quantile 0..1, ns), dense towards 1, never beyond what the count carries.
    pub percentiles: Vec<(f64, u64)>,
}

/// One bar of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "(u64, u64, u64)")]
pub struct Bin {
    /// Lower edge, inclusive.
    pub from_ns: u64,
    /// Upper edge, exclusive.
    pub to_ns: u64,
    /// Messages within.
    pub count: u64,
}

impl From<Bin> for (u64, u64, u64) {
    fn from(bin: Bin) -> (u64, u64, u64) {
        (bin.from_ns, bin.to_ns, bin.count)
    }
}

/// The stretch between two neighbouring points.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Hop {
    /// Point it starts at.
    pub from: String,
    /// Point it ends at.
    pub to: String,
    /// Its delay over the messages that passed both, start-up apart.
    #[serde(flatten)]
    pub delay: Delay,
    /// 99th percentile of delay less the chain's minimum delay of this hop (RFC 5481 PDV).
    pub pdv_p99_ns: Option<u64>,
    /// Of the excess of the messages that are explained, the share spent in this hop (0..1): by its causes where they are known, else by
    /// its delays beyond their median. Shares of a chain sum to 1.
    pub tail_share: Option<f64>,
    /// Messages that seem to have reached the end before the start by more than the clocks' error; they count as 0 ns.
    #[serde(skip)]
    pub inverted: u64,
    /// The largest such step back.
    #[serde(skip)]
    pub inverted_max_ns: u64,
    /// True when both ends are stamped by different threads for most messages.
    pub crosses_threads: bool,
}

/// Of a hop from one host of a joined recording to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BetweenHosts {
    /// The host that messages leave.
    pub from: String,
    /// The one that they reach.
    pub to: String,
    /// By how much a delay of this hop is wrong at most, since the offset of the clocks is not known better; `None`: there is no bound.
    pub bound_ns: Option<u64>,
}

impl Hop {
    /// `None` within one host.
    pub fn between_hosts(&self, info: &Info) -> Option<BetweenHosts> {
        let hosts = info.hosts();
        let host = |point: &str| {
            hosts.iter().find(|host| point.strip_prefix(**host).is_some_and(|rest| rest.starts_with(':')))
        };
        let (from, to) = (host(&self.from)?, host(&self.to)?);
        let bound_ns = info.clocks("bound_max", from, to).parse().ok();
        (from != to).then(|| BetweenHosts { from: (*from).to_owned(), to: (*to).to_owned(), bound_ns })
    }
}

/// Start-up: the first messages, slower than everything after.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Startup {
    /// How many messages are set apart.
    pub messages: u64,
    /// Until when, in ns since the recording's start.
    pub until_ns: u64,
    /// Their slowest end-to-end time.
    pub max_ns: u64,
    /// One sentence on why they are apart.
    pub sentence: String,
}

/// Where messages ended: applied + ended_early + in_flight + Σ dropped + lost + unexplained = messages.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Outcomes {
    /// Reached their goal: by an outcome stamp "applied", or, in a chain without outcome stamps, by the last point.
    pub applied: u64,
    /// Ended before the chain's last point, and nothing was lost: a callback sent nothing on, or nobody subscribed yet.
    pub ended_early: u64,
    /// Under way when the recording began, or when it ended.
    pub in_flight: u64,
    /// Their next stamp may be among those that were lost: nothing is known of their end.
    pub lost: u64,
    /// By reason, most first.
    #[serde(serialize_with = "as_map")]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub dropped: Vec<(String, u64)>,
    /// Ended nowhere: no outcome, and too old to be in flight. Must be 0 in a chain with outcome stamps.
    pub unexplained: u64,
    /// More than one outcome for one message (counted once above, by the first).
    pub double: u64,
    /// Where messages that did not complete were seen last, most first.
    pub last_seen: Vec<LastSeen>,
}

impl Outcomes {
    /// Messages that were dropped, whatever the reason.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.iter().map(|(_, n)| n).sum()
    }

    /// Messages that were dropped, or of which no end is known.
    pub fn not_arrived(&self) -> u64 {
        self.all_dropped() + self.lost + self.unexplained
    }
}

/// Messages that ended early in one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LastSeen {
    /// The last point that they passed.
    pub point: String,
    /// Why they were dropped, "ended early", or "unexplained".
    pub reason: String,
    /// How many.
    pub messages: u64,
}

/// Counts by name as an object.
fn as_map<S: Serializer>(counts: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().map(|(name, n)| (name, n)))
}

/// A point off the main line.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Branch {
    /// Its name.
    pub point: String,
    /// After which point of the chain it comes, by majority.
    pub after: String,
    /// Messages that passed it.
    pub messages: u64,
}
