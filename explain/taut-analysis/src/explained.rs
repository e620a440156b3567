//! What the time of a chain's messages was spent on, as plain data in the user's words.
//! All times in nanoseconds; moments are nanoseconds since the recording's start.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_stats::Distribution;

/// What a stretch of time was spent on. The words are those of reports and of `--hypothesis`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Cause {
    /// The thread computed.
    Cpu,
    /// The thread was on the CPU inside a system call.
    Syscall,
    /// The kernel brought in a page; a major fault waits for a disk.
    PageFault,
    /// An interrupt or softirq ran on the thread's CPU.
    Irq,
    /// Another thread was given the CPU although this one could run on.
    Preempted,
    /// Woken, but not yet running: run queue, or a CPU that leaves its idle state.
    Wakeup,
    /// Kept from running by a CPU quota or by real-time throttling.
    Throttled,
    /// Waited for a lock.
    Lock,
    /// Waited for CPython's global interpreter lock.
    Gil,
    /// Waited for data: a pipe, a socket, a terminal, another process.
    Io,
    /// Slept, as it had asked for.
    Sleep,
    /// Slept longer than asked for.
    TimerSlack,
    /// The thread that had to handle the message was busy with another one.
    Queued,
    /// ROS 2: a callback was ready, and its executor was busy with another one.
    Executor,
    /// ROS 2: the message was in a filter, and those of other topics that go with it were not there.
    Partner,
    /// Between two hosts: from the sender's last system call for the message until the receiver had it.
    Network,
    /// Waited for a disk.
    Disk,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// The whole virtual machine was held up.
    Hypervisor,
    /// The recording does not show it.
    #[default]
    Unknown,
}

impl Cause {
    /// All causes.
    pub const ALL: [Cause; 20] = {
        use Cause::*;
        [
            Cpu, Syscall, PageFault, Irq, Preempted, Wakeup, Throttled, Lock, Gil, Io, Sleep, TimerSlack, Queued,
            Executor, Partner, Network, Disk, Stopped, Hypervisor, Unknown,
        ]
    };

    /// Which thread, lock or descriptor it is about, as a reader has it after the cause's name. The thread that had the CPU is not the
    /// waker: "while hog/30 ran", and not "by hog/30".
    pub fn party(self, detail: &str) -> String {
        match (self, detail.strip_prefix("by ")) {
            (Cause::Wakeup, Some(thread)) => format!("while {thread} ran"),
            _ => detail.to_owned(),
        }
    }

    /// The word in reports, files and `--hypothesis`.
    pub fn word(self) -> &'static str {
        match self {
            Cause::Cpu => "cpu",
            Cause::Syscall => "syscall",
            Cause::PageFault => "page_fault",
            Cause::Irq => "irq",
            Cause::Preempted => "preempted",
            Cause::Wakeup => "wakeup",
            Cause::Throttled => "throttled",
            Cause::Lock => "lock",
            Cause::Gil => "gil",
            Cause::Io => "io",
            Cause::Sleep => "sleep",
            Cause::TimerSlack => "timer_slack",
            Cause::Queued => "queued",
            Cause::Executor => "executor",
            Cause::Partner => "partner",
            Cause::Network => "network",
            Cause::Disk => "disk",
            Cause::Stopped => "stopped",
            Cause::Hypervisor => "hypervisor",
            Cause::Unknown => "unknown",
        }
    }

    /// The cause of that word.
    pub fn from_word(word: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.word() == word)
    }
}

/// The causes of one chain's latency.
#[derive(Clone, Debug, Default)]
pub struct Explained {
    /// Messages whose way from the first to the last point was explained, start-up apart.
    pub messages: u64,
    /// Of them, those in the tail.
    pub tail_messages: u64,
    /// Of these, those with time in or next to a stretch of which stamps or kernel events are missing: that time is `unknown`.
    pub tail_in_holes: u64,
    /// Why these: they are the tail, missed the deadline, or were named. What lies below was not examined.
    pub selected: Selected,
    /// Quantile above which the tail begins, e.g. 0.99; `None` where no quantile says which messages are explained.
    pub tail_quantile: Option<f64>,
    /// The time above which messages are explained, end to end.
    pub tail_limit_ns: u64,
    /// Modes of the distribution above the one that holds the median, in order of time.
    pub modes: Vec<Mode>,
    /// Cause shares of the tail, largest first; their `tail_share`s sum to 1 when there is a tail.
    pub causes: Vec<CauseShare>,
    /// The same by cause alone: every detail of it together, with the messages that any of them affects.
    pub by_cause: Vec<CauseShare>,
    /// The same for each hop, in the order of the chain's hops; all shares of all hops sum to 1.
    /// Empty when the recording holds nothing that tells causes.
    pub hops: Vec<Vec<CauseShare>>,
    /// Threads, processes, locks and interrupts that the tail's time went to, most first.
    pub responsible: Vec<Party>,
    /// By address or variable of a lock without a registered name: "by THREAD" or "mostly by THREAD", which held it while the tail waited.
    pub lock_holders: BTreeMap<String, String>,
    /// Every registered lock and every cause with time in the tail; then those that the user named.
    pub hypotheses: Vec<Hypothesis>,
    /// Predictions, the most sure gain first.
    pub predictions: Vec<Prediction>,
    /// What to do, the most sure gain first.
    pub recommendations: Vec<Recommendation>,
    /// Every explained message in order of its start; only when asked for.
    pub times: Vec<MessageTime>,
    /// Every explained message's time by hop, the program's apart from the machine's; only when asked for.
    pub sides: Option<Sides>,
    /// The worst messages, worst first, with their path; then those asked for.
    pub paths: Vec<MessagePath>,
}

/// Which messages are explained.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Selected {
    /// None: there are too few messages for a tail.
    #[default]
    Nothing,
    /// Above the highest quantile up to p99 that the data carry.
    Tail(f64),
    /// All that missed the deadline.
    Missed,
    /// All activations that took longer than their loop's period, where these are more than the tail.
    Overran,
    /// Above a quantile that the user named.
    AboveQuantile(f64),
    /// Above a time that the user named.
    AboveTime,
}

/// A peak of the distribution that stands apart from the main one: messages that take longer for a reason of their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Mode {
    /// Shortest of its messages.
    pub from_ns: u64,
    /// Longest.
    pub to_ns: u64,
    /// Their median.
    pub p50_ns: u64,
    /// How many.
    pub messages: u64,
    /// Of all messages, the share (0..1).
    pub share: f64,
    /// What they have beyond typical messages, largest first.
    pub causes: Vec<ModeCause>,
}

/// A cause with its share of an excess.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ModeCause {
    /// The cause.
    pub cause: Cause,
    /// Where one makes most of it; else empty.
    pub detail: String,
    /// Of the excess (0..1).
    pub share: f64,
}

/// One cause, with the place or party it is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CauseShare {
    /// The cause.
    pub cause: Cause,
    /// Which lock, thread, descriptor …; empty when the cause says it all.
    pub detail: String,
    /// Of the time by which the tail's messages exceed typical ones, the share spent so (0..1).
    pub tail_share: f64,
    /// The same as a time: of all tail messages together, by how much each exceeds the typical one.
    pub excess_ns: u64,
    /// Time spent so in the tail's messages altogether.
    pub time_ns: u64,
    /// Time spent so in the typical message (mean over the middle fifth of the messages).
    pub typical_ns: u64,
    /// Explained messages that spent any time so.
    pub messages: u64,
}

/// A party that took time from the tail's messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Party {
    /// "thread", "process", "lock" or "irq".
    pub kind: String,
    /// E.g. "python3/1234", "sdk_lock", "softirq NET_RX".
    pub name: String,
    /// Time it took from the tail's messages.
    pub time_ns: u64,
    /// How many of the tail's messages it touched.
    pub messages: u64,
    /// How it took the time: the causes, largest first.
    pub causes: Vec<Cause>,
}

/// Whether a hypothesis holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Contribution {
    /// The lower bound of the share is at least 5 %.
    Contributes,
    /// The upper bound is below that.
    DoesNotContribute,
    /// The interval holds the limit, or the recording does not show it.
    #[default]
    Undecided,
}

impl Contribution {
    /// The word in reports and files.
    pub fn word(self) -> &'static str {
        match self {
            Contribution::Contributes => "contributes",
            Contribution::DoesNotContribute => "does_not_contribute",
            Contribution::Undecided => "undecided",
        }
    }
}

/// The result for one hypothesis.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Hypothesis {
    /// "lock:sdk_lock", "gil", "hop:a → b", "process:NAME", "irq" …
    pub hypothesis: String,
    /// Whether it contributes to what the explained messages exceed the typical ones by.
    pub result: Contribution,
    /// What would decide an undecided one; else empty.
    pub decided_by: String,
    /// Whether it was named by the user.
    #[serde(skip)]
    pub is_asked: bool,
    /// Time that each message lost to it; messages that lost none count as 0.
    pub wait: Distribution,
    /// Messages that lost any time to it.
    #[serde(rename = "messages")]
    pub touched: u64,
    /// Share of the tail (0..1).
    pub tail_share: f64,
    /// 95 % interval of that share, by resampling the bursts of explained messages.
    #[serde(rename = "interval")]
    pub tail_share_interval: (f64, f64),
    /// In words.
    pub sentence: String,
}

/// The chain without a cause: a prediction.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Prediction {
    /// The factor: "gil", "lock:sdk_lock", "preempted" …
    pub without: String,
    /// Predicted quantiles; `None` where the messages cannot carry them.
    pub p50_ns: Option<u64>,
    /// As above.
    pub p99_ns: Option<u64>,
    /// The same before and after, each with its interval: p50, p95 and p99, as far as there are messages beyond them.
    pub quantiles: Vec<Predicted>,
    /// Percentile curve without it: (quantile 0..1, ns), dense towards 1, up to the highest quantile that the messages carry as measured.
    pub percentiles: Vec<(f64, u64)>,
    /// Quantile that `gain` is of.
    pub gain_quantile: Option<f64>,
    /// Change of that quantile, as a share of its value as measured (0..1).
    pub gain: f64,
    /// Messages that miss the deadline; `None` without one.
    pub missed: Option<u64>,
    /// Whether messages waited for busy threads, so that what was recorded was replayed.
    #[serde(rename = "replayed")]
    pub is_replayed: bool,
    /// Half of the time that goes from the tail is in so many of its messages.
    pub half_in: u64,
    /// By what the messages from the predicted quantile on still exceed typical ones, largest first: the share of each cause.
    /// `queued` holds waits behind others that are new, too.
    pub remaining: Vec<ModeCause>,
    /// Whether messages keep of it what the typical one has.
    #[serde(skip)]
    pub keeps_typical: bool,
    /// What the prediction assumes.
    pub assumption: String,
}

impl Explained {
    /// What is gained without this, if that is sure.
    pub fn sure_prediction(&self, without: &str) -> Option<&Prediction> {
        self.predictions.iter().find(|found| found.without == without && found.is_decided())
    }
}

impl Prediction {
    /// The gain that is sure: that of the worse end of the interval, as a share (0..1). Not above 0 where the interval holds the quantile
    /// as measured.
    pub fn sure_gain(&self) -> f64 {
        self.interval_of_gain().map_or(self.gain, |(worse, _)| worse)
    }

    /// The gain at the worse and at the better end of the interval, as shares (up to 1).
    pub fn interval_of_gain(&self) -> Option<(f64, f64)> {
        let of = self.quantiles.iter().find(|of| Some(of.quantile) == self.gain_quantile)?;
        let gain = |ns: u64| 1.0 - ns as f64 / of.before_ns.max(1) as f64;
        Some((gain(of.interval_ns.1), gain(of.interval_ns.0)))
    }

    /// Whether it gains for sure.
    pub fn is_decided(&self) -> bool {
        self.sure_gain() > 0.0
    }
}

/// A quantile as measured, and without a cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Predicted {
    /// E.g. 0.99.
    pub quantile: f64,
    /// As measured.
    pub before_ns: u64,
    /// As predicted.
    pub after_ns: u64,
    /// 95 % interval in which the quantile of another recording of this length, made without the cause, is expected.
    #[serde(rename = "interval")]
    pub interval_ns: (u64, u64),
}

/// What to do about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Recommendation {
    /// The cause it is against, as in [`Prediction::without`].
    pub against: String,
    /// What was seen.
    pub evidence: String,
    /// What to do.
    pub remedy: String,
    /// Expected change of p99 (or the highest carried quantile) as a share of it (0..1).
    pub gain: f64,
    /// How to see whether it helped.
    pub verify: String,
}

/// What one message's time was spent on.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct MessageTime {
    /// Message id.
    pub id: u64,
    /// When it passed the first point.
    pub start_ns: u64,
    /// First to last point; the sum of `pieces`.
    pub total_ns: u64,
    /// Largest first.
    #[serde(rename = "causes")]
    pub pieces: Vec<TimePiece>,
}

/// One cause of a message's time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TimePiece {
    /// The cause.
    pub cause: Cause,
    /// As in [`CauseShare::detail`].
    pub detail: String,
    /// Time.
    #[serde(rename = "time_ns")]
    pub ns: u64,
}

/// What messages spent in each hop, the program's own time apart from the machine's: preemption by
/// other programs, interrupts and wakeup latency are the machine's; everything else is the program's, a CPU quota that is used up too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sides {
    /// Hops of the chain.
    pub hops: usize,
    /// When each message passed the first point; CLOCK_MONOTONIC, ascending.
    pub start_ns: Vec<u64>,
    /// Message after message, in each its hops in order.
    pub spent: Vec<Spent>,
    /// The whole way of each message of the start-up, which nothing else here counts.
    pub startup: Vec<Spent>,
    /// Sums over all messages, by hop, most first.
    pub shares: Vec<SideShare>,
    /// Time of which the recording does not say what it was; it counts as the program's.
    pub unknown_ns: u64,
    /// True where the recording holds nothing that tells causes: then all time is the program's.
    pub is_blind: bool,
}

impl Sides {
    /// Of each message, its hops in order.
    pub fn messages(&self) -> impl Iterator<Item = &[Spent]> {
        self.spent.chunks_exact(self.hops.max(1))
    }

    /// The whole way of each message.
    pub fn totals_ns(&self) -> Vec<u64> {
        self.messages().map(|hops| hops.iter().map(|hop| hop.total_ns).sum()).collect()
    }
}

/// What one message spent in one hop; all 0 in a hop whose points it did not pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Altogether.
    pub total_ns: u64,
    /// Of it, the machine's part; the rest is the program's own.
    pub machine_ns: u64,
    /// Of the program's own, on a CPU: work, system calls, page faults.
    pub work_ns: u64,
}

/// One cause's time on one side in one hop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideShare {
    /// Index of the hop.
    pub hop: usize,
    /// The cause.
    pub cause: Cause,
    /// Whether it is the machine's part.
    pub is_machine: bool,
    /// Sum over all messages.
    pub time_ns: u64,
}

/// A message's critical path, and what the threads on it did.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct MessagePath {
    /// Its time by cause.
    #[serde(flatten)]
    pub time: MessageTime,
    /// Moments at which it passed the chain's points: (index of the point, moment).
    pub passes: Vec<(usize, u64)>,
    /// The path in order of time, without gaps and overlaps.
    pub path: Vec<PathPiece>,
    /// The threads on the path, in order of their first appearance on it.
    pub lanes: Vec<Lane>,
}

/// One piece of a critical path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PathPiece {
    /// Where it begins.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// Index of the hop.
    pub hop: usize,
    /// Index in [`MessagePath::lanes`] of the thread that it is on.
    pub lane: usize,
    /// The cause.
    pub cause: Cause,
    /// As in [`CauseShare::detail`].
    pub detail: String,
    /// The message that the thread was busy with, or had been late by, where this one waited for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// The responsible thread as "comm/tid": lock holder, preempting thread, awaited peer; "" where it is unknown.
    #[serde(skip)]
    pub by: String,
    /// Everything else that is known: holder, system call, preempting thread, what the holder did.
    pub note: String,
}

/// What one thread did during a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Lane {
    /// "comm/tid", with the process where it differs.
    pub thread: String,
    /// Stretches in order of time: from, to, state.
    pub states: Vec<(u64, u64, State)>,
}

/// A thread's state as a lane shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum State {
    /// On a CPU.
    Running,
    /// Could run on, but another was given the CPU.
    Preempted,
    /// Woken, not yet on a CPU.
    Woken,
    /// Waits.
    Blocked,
    /// Not known.
    #[default]
    Unknown,
}

impl State {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Preempted => "preempted",
            State::Woken => "woken",
            State::Blocked => "blocked",
            State::Unknown => "unknown",
        }
    }
}
