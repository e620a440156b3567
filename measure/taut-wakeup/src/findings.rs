//! What a probe finds: pure data, filled in by the collector, shown by the report. Times in nanoseconds.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use taut_stats::Sketch;

/// All that one call of the probe found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Findings {
    /// One for each way of probing, in the order asked for; they ran in turn, so that a drift falls on all.
    pub variants: Vec<Variant>,
    /// Stalls of several CPUs at once; `None` with fewer than two CPUs.
    pub stalls: Option<Stalls>,
    /// Whether the kernel takes time from real-time threads; only when asked for.
    pub throttling: Option<Throttling>,
    /// What was measured against the kernel's rules for slack; only of a sweep over sleep lengths.
    pub slack: Vec<SlackFit>,
    /// What the lateness beyond a threshold was made of; only when asked for.
    pub explained: Option<ExplainedWakeups>,
    /// What the kernel's own tracers say, beside late wakes taken apart.
    #[serde(default)]
    pub tracers: Option<crate::Tracers>,
    /// Sentences that matter more than figures: what surprised, what could not be seen.
    pub notes: Vec<String>,
    /// Facts of the machine by name ("kernel", "cpu", "governor", "preemption", "hypervisor", …).
    pub machine: BTreeMap<String, String>,
    /// When it began, seconds since 1970.
    pub started_s: f64,
    /// How long it measured, all variants together.
    pub measured_s: f64,
}

/// One way of probing and its result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Variant {
    /// What differs from the others, e.g. "wake=timerfd"; "" when it is the only one. The file's name for one read back.
    pub label: String,
    /// All settings by name ("policy", "priority", "interval", "wake", "slack", "dma-latency", "load", "memory" …).
    pub settings: BTreeMap<String, String>,
    /// Intended distance of cycles; 0 when not known (read from a file).
    pub interval_ns: u64,
    /// Each CPU by itself.
    pub cpus: Vec<CpuSeries>,
    /// All CPUs together.
    pub all: Series,
    /// CPU time of the probe's own threads over the measured time, 1.0 being one core.
    pub own_cpu: f64,
    /// Page faults of the probe while it measured.
    pub page_faults: u64,
    /// Median of the clock frequencies read while it measured, in kHz; `None` where the machine shows none.
    pub frequency_khz: Option<u64>,
    /// Idle states used while it measured.
    pub idle_states: Vec<IdleState>,
    /// Each of its turns, in order; empty when read from a file.
    #[serde(default)]
    pub turns: Vec<Turn>,
}

/// An idle state while a variant was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// As the kernel numbers and names it.
    pub name: String,
    /// How often it was entered.
    pub entered: u64,
    /// Time in it.
    pub ns: u64,
}

/// Lateness of the wakes of one turn, all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The median.
    pub p50_ns: Option<u64>,
    /// One in a hundred is later.
    pub p99_ns: Option<u64>,
}

/// One CPU's series.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CpuSeries {
    /// Number of the CPU; `None` when the thread was not pinned.
    pub cpu: Option<u32>,
    /// What it saw.
    pub series: Series,
}

/// Lateness against the intended start, in the two ways that people count it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Each wake that happened (as cyclictest counts).
    pub wakeups: Sketch,
    /// Every intended cycle; one that a late wake ran over counts with the time until that wake (as jitterdebugger counts).
    pub cycles: Sketch,
    /// Cycles that a late wake ran over.
    pub missed: u64,
    /// Wakes that the collector did not get, because it was late itself.
    pub lost: u64,
    /// Worst wake of each stretch of time, in order: (end of the stretch since the start in s, lateness in ns).
    pub worst: Vec<(f64, u64)>,
}

/// Stalls seen by probes pinned on several CPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stalls {
    /// Lateness from which on a wake is a stall.
    pub threshold_ns: u64,
    /// CPUs that watched.
    pub cpus: usize,
    /// Stalls of single CPUs.
    pub single: u64,
    /// Their time.
    pub single_ns: u64,
    /// Stalls that all CPUs had at once: the hypervisor's or the firmware's.
    pub together: u64,
    /// Their time.
    pub together_ns: u64,
    /// The longest of them.
    pub together_max_ns: u64,
    /// So long they would have been stalled together if they stalled independently of each other: the product of
    /// their shares of stalled time.
    pub by_chance_ns: u64,
    /// Whether all probes were real-time: ordinary threads are late together on busy CPUs, too.
    pub real_time: bool,
    /// Steal time that the kernel counted meanwhile, all CPUs; weak evidence.
    pub steal_ns: u64,
}

/// What a real-time spinner beside an ordinary hog went through.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Throttling {
    /// How long it spun.
    pub watched_ns: u64,
    /// Gaps of at least a millisecond in which it did not run.
    pub gaps_ns: Vec<u64>,
    /// Time the hog got in those gaps.
    pub hog_ns: u64,
    /// /proc/sys/kernel/sched_rt_runtime_us, for comparison.
    pub rt_runtime_us: Option<i64>,
}

/// Lateness of one way to sleep at one length, and what the kernel's slack rule says of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SlackFit {
    /// "nanosleep", "select" …
    pub wake: String,
    /// Sleep asked for.
    pub sleep_ns: u64,
    /// Median lateness.
    pub p50_ns: Option<u64>,
    /// Slack by the kernel's rule for this call, policy and length.
    pub slack_ns: u64,
    /// What is left of the median: interrupt, idle exit, scheduler, clock read.
    pub rest_ns: Option<i64>,
}

/// Late wakeups taken apart by the kernel's events.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Explained")]
pub struct ExplainedWakeups {
    /// Lateness from which on a wake is taken apart.
    pub threshold_ns: u64,
    /// Wakes beyond it.
    pub late: u64,
    /// Wakes recorded.
    pub recorded: u64,
    /// Kernel events lost while recording: those stretches are unknown.
    pub lost_kernel_events: u64,
    /// Tier of the recording ("full", "self", "stamps").
    pub tier: String,
    /// What the lateness of all late wakes was, largest first.
    pub parts: Vec<Part>,
    /// Threads, processes and interrupts that the time went to, most first.
    pub responsible: Vec<ResponsibleParty>,
    /// The latest wakes, latest first.
    pub worst: Vec<LateWake>,
}

/// A kind of lateness.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// "timer late", "interrupt", "run queue", "return to user" …
    pub what: String,
    /// Time of all late wakes together.
    pub ns: u64,
    /// Wakes it touched.
    pub wakes: u64,
}

/// A thread, interrupt or host that made wakes late.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ResponsibleParty {
    /// "thread", "process", "irq".
    pub kind: String,
    /// E.g. "hog/1234", "softirq NET_RX".
    pub name: String,
    /// Time taken.
    pub ns: u64,
    /// Wakes it touched.
    pub wakes: u64,
}

/// One late wake.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LateWake {
    /// When it was due, since the start of the recording.
    pub due_ns: u64,
    /// CPU it was pinned to.
    pub cpu: Option<u32>,
    /// Lateness; the sum of `parts`.
    pub late_ns: u64,
    /// In order of time.
    pub parts: Vec<LatePiece>,
}

/// A stretch of a late wake.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Piece")]
pub struct LatePiece {
    /// As of a [`Part`].
    pub what: String,
    /// Its exact name; "" where there is nothing to name.
    pub who: String,
    /// How long.
    pub ns: u64,
}
