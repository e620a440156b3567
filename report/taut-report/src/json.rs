//! The JSON form of a report. The schema is documented in
//! `docs/report.schema.json`, generated from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_analysis::{
    Analysis, BetweenHosts, Branch, CauseShare, Chain, Delay, Explained, Histogram, Hop, Hypothesis, MessagePath,
    MessageTime, Mode, Outcomes, Party, Point, Prediction, Recommendation, RosFigures, Selected, Signal, Starts,
    Startup, Telemetry, Tracking, WakingThread,
};
use taut_recording::Info;

use crate::{
    Named,
    envelope::SCHEMA_VERSION,
    loops::{self, LoopShown},
};

/// One recording gives one object; several give `{ "schema_version", "comparison", "reports": [ … ] }`.
pub fn json(recordings: &[Named<'_>]) -> serde_json::Value {
    let value = |report: &Report<'_>| serde_json::to_value(report).unwrap_or_default();
    let reports: Vec<Report<'_>> = recordings.iter().map(report).collect();
    match reports.as_slice() {
        [one] => value(one),
        many => serde_json::json!({
            "schema_version": SCHEMA_VERSION,
            "kind": "compare",
            "comparison": crate::comparison_json(recordings),
            "reports": many.iter().map(value).collect::<Vec<_>>(),
        }),
    }
}

/// The JSON schema of one report.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Report<'_>).to_value()
}

#[derive(Serialize, JsonSchema)]
struct Report<'a> {
    /// Version of this schema.
    schema_version: u32,
    /// "report".
    kind: &'static str,
    /// The recording's file, as named on the command line.
    name: &'a str,
    /// One sentence: what a busy reader needs.
    headline: String,
    recording: Recording,
    /// Most messages first.
    chains: Vec<ChainShown<'a>>,
    /// Threads that wait for the same thing again and again, as kernel events show; in order of their first activation.
    loops: Vec<LoopShown<'a>>,
    /// The other threads that are woken, most wakes first.
    waking_threads: &'a [WakingThread],
    /// Values over time, by name.
    signals: Vec<SignalShown<'a>>,
    /// How far NAME.actual was from NAME.commanded.
    tracking: &'a [Tracking],
    /// Channels of whole structs, by topic.
    telemetry: &'a [Telemetry],
    /// Points that no message passes together with another, by name; the others are in their chains.
    points: &'a [Point],
    /// Distributions that came without messages, by name.
    histograms: &'a [Histogram],
    /// Topics, callbacks and executors; null without ROS 2 events.
    ros: Option<&'a RosFigures>,
    /// Sampled stacks, which `taut flamegraph` draws; null where there are none.
    profile: Option<Profile>,
    /// Damage found in the file, a sentence each.
    damage: &'a [String],
    /// What one must know to trust the figures.
    notes: &'a [String],
    /// What would say more than a recording of a program without stamps does; null where it has some.
    next_step: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Signal")]
struct SignalShown<'a> {
    name: &'a str,
    n: u64,
    min: Option<f64>,
    max: Option<f64>,
    last: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Recording {
    duration_s: f64,
    stamps: u64,
    lost_stamps: u64,
    /// Whether damage to the file makes it an estimate.
    lost_stamps_is_estimate: bool,
    ros_events: u64,
    lost_ros_events: u64,
    lost_ros_events_is_estimate: bool,
    kernel_events: u64,
    lost_kernel_events: u64,
    lost_kernel_events_is_estimate: bool,
    /// For how long kernel events are missing on some CPU, at most.
    lost_kernel_ns: u64,
    /// Telemetry messages, of all channels.
    lost_telemetry: u64,
    file_bytes: u64,
    /// "full", "self" or "stamps".
    tier: String,
    /// Why not a better tier; empty in full tier.
    tier_reason: String,
    /// "ftrace", "perf", "switches", or "none".
    kernel_source: String,
    /// Bound on the error between the stamps' counter and CLOCK_MONOTONIC.
    clock_error_ns: Option<f64>,
    /// Share of the time in which some thread of the machine waited for a CPU (0..1), if it is half of the time or more.
    cpu_pressure: Option<f64>,
    start_realtime_ns: u64,
    /// False when the recorder was killed before it could finish.
    finished: bool,
    exit_code: Option<i32>,
    /// CPU time that the recorder used.
    recorder_cpu_ns: Option<u64>,
    /// Trips of a speed guard in the robot; null where none was armed.
    trips: Option<Trips>,
    command: Vec<String>,
    directory: String,
    git_revision: String,
    taut_version: String,
    /// The machines that were recorded.
    hosts: Vec<Host>,
}

#[derive(Serialize, JsonSchema)]
struct Profile {
    samples: u64,
    lost_samples: u64,
    /// In the stacks of all samples.
    frames: u64,
    /// Those of them whose function is not known.
    frames_without_name: u64,
}

#[derive(Serialize, JsonSchema)]
struct Trips {
    all: u64,
    /// Not justified by the robot's true speed; known in simulations.
    #[serde(rename = "false")]
    false_ones: u64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Host {
    pub name: String,
    pub kernel: String,
    pub cpu: String,
    pub cpus: u32,
    /// Further facts: governor, clocksource, …
    pub facts: BTreeMap<String, String>,
    /// Of the second host of a joined recording: what is known of its clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<HostClock>,
}

/// The clock of a host, seen from the first host's.
#[derive(Serialize, JsonSchema)]
struct HostClock {
    /// What the offset follows from: "messages", "messages one way", "one machine" or "CLOCK_REALTIME".
    from: String,
    /// This host's raw clock less the first host's, at the first message.
    offset_ns: Option<i64>,
    drift_ppm: Option<f64>,
    /// The offset is wrong by at most this at half of the messages; null where there is no bound.
    bound_ns: Option<u64>,
    /// And at all of them.
    bound_max_ns: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Chain")]
struct ChainShown<'a> {
    name: &'a str,
    /// Where its points are from: "stamps", "ros", or "wakes": kernel events alone.
    source: &'static str,
    declared: bool,
    /// Whether its messages are activations of the loop of its name.
    is_loop: bool,
    deadline_ns: Option<u64>,
    missed: Option<u64>,
    messages: u64,
    /// First to last point.
    end_to_end: &'a Delay,
    /// First to last stamp of every message, wherever it ended.
    whole_life: &'a Delay,
    hops: Vec<HopShown<'a>>,
    points: &'a [Point],
    startup: Option<&'a Startup>,
    /// How late its loop starts, where its thread sleeps until moments.
    starts: Option<&'a Starts>,
    /// applied + ended_early + in_flight + sum(dropped) + lost + unexplained = messages.
    outcomes: &'a Outcomes,
    branches: &'a [Branch],
    tail: Tail,
    /// Cause shares of the tail, largest first; the tail_shares sum to 1 when there is a tail.
    causes: &'a [CauseShare],
    /// The same by cause alone.
    by_cause: &'a [CauseShare],
    /// Modes of the distribution above the main one, in order of time.
    modes: &'a [Mode],
    /// Threads, processes, locks and interrupts that the tail's time went to, most first.
    responsible: &'a [Party],
    /// By address of a lock without a name: who held it while the tail waited.
    lock_holders: &'a BTreeMap<String, String>,
    /// Registered locks, causes with a share of the tail, and those named by the user.
    hypotheses: &'a [Hypothesis],
    /// Most gain first.
    predictions: Vec<PredictionShown<'a>>,
    /// Most gain first.
    recommendations: &'a [Recommendation],
    /// The worst messages, worst first, then those asked for; `taut explain` only.
    #[serde(default, skip_serializing_if = "is_empty")]
    worst: &'a [MessagePath],
    /// Every explained message; `taut explain --all` only.
    #[serde(default, skip_serializing_if = "is_empty")]
    all: &'a [MessageTime],
}

fn is_empty<T>(of: &&[T]) -> bool {
    of.is_empty()
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Hop")]
struct HopShown<'a> {
    #[serde(flatten)]
    of: &'a Hop,
    /// Where the hop is between two hosts of a joined recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    between_hosts: Option<BetweenHosts>,
    /// Cause shares of the tail in this hop; all shares of all hops sum to 1. Empty when nothing tells causes.
    causes: &'a [CauseShare],
}

/// Which messages are the tail.
#[derive(Serialize, JsonSchema)]
struct Tail {
    /// Messages explained.
    explained: u64,
    /// Messages in the tail.
    messages: u64,
    /// Of them, those with time in or next to a stretch of which stamps or kernel events are missing: that time is `unknown`.
    in_holes: u64,
    /// Quantile above which the tail begins; null when there are too few messages, or where no quantile says which messages
    /// are explained.
    quantile: Option<f64>,
    /// Messages that took no longer were not examined.
    limit_ns: u64,
    /// Why these messages: "tail", "deadline" (all that missed it), "overrun" (all activations longer than their loop's period),
    /// "above" (named by the user) or "none".
    selected: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Prediction")]
struct PredictionShown<'a> {
    #[serde(flatten)]
    of: &'a Prediction,
    /// 95 % interval of the p99 of another recording of this length, made without the cause; null where p99 is.
    interval: Option<(u64, u64)>,
}

fn report<'a>(named: &Named<'a>) -> Report<'a> {
    let analysis = named.analysis;
    Report {
        schema_version: SCHEMA_VERSION,
        kind: "report",
        name: named.name,
        headline: crate::headline(analysis),
        recording: recording(analysis),
        chains: analysis.chains.iter().map(|found| chain(found, &analysis.info)).collect(),
        loops: analysis.loops.iter().map(loops::shown).collect(),
        waking_threads: &analysis.waking,
        signals: analysis.signals.iter().map(signal).collect(),
        tracking: &analysis.tracking,
        telemetry: &analysis.telemetry,
        points: &analysis.points,
        histograms: &analysis.histograms,
        ros: analysis.ros.as_ref(),
        profile: analysis.profile.as_ref().map(|found| Profile {
            samples: found.samples,
            lost_samples: found.lost,
            frames: found.frames,
            frames_without_name: found.unnamed,
        }),
        damage: &analysis.damage,
        notes: &analysis.notes,
        next_step: loops::next_step(analysis),
    }
}

fn recording(analysis: &Analysis) -> Recording {
    let (info, totals, ending) = (&analysis.info, &analysis.totals, analysis.ending.as_ref());
    Recording {
        duration_s: totals.duration_s,
        stamps: totals.stamps,
        lost_stamps: totals.lost_stamps,
        lost_stamps_is_estimate: totals.lost_stamps_is_estimate,
        ros_events: totals.ros_events,
        lost_ros_events: totals.lost_ros_events,
        lost_ros_events_is_estimate: totals.lost_ros_events_is_estimate,
        kernel_events: totals.kernel_events,
        lost_kernel_events: totals.lost_kernel_events,
        lost_kernel_events_is_estimate: totals.lost_kernel_events_is_estimate,
        lost_kernel_ns: totals.lost_kernel_ns,
        lost_telemetry: totals.lost_telemetry,
        file_bytes: totals.file_bytes,
        tier: info.tier.word().to_owned(),
        tier_reason: info.tier_reason.clone(),
        kernel_source: info.kernel_source.clone(),
        clock_error_ns: totals.clock_error_ns,
        cpu_pressure: totals.cpu_pressure,
        start_realtime_ns: info.start_realtime_ns,
        finished: ending.is_some(),
        exit_code: ending.and_then(|e| e.exit_code),
        recorder_cpu_ns: ending.map(|e| e.recorder_cpu_ns),
        trips: totals.trips.map(|trips| Trips { all: trips.all, false_ones: trips.false_ones }),
        command: info.command.clone(),
        directory: info.directory.clone(),
        git_revision: info.git_revision.clone(),
        taut_version: info.taut_version.clone(),
        hosts: hosts(info),
    }
}

pub(crate) fn hosts(info: &Info) -> Vec<Host> {
    let names = info.hosts();
    let others: Vec<Host> = names.iter().skip(1).map(|name| other_host(info, name)).collect();
    let is_own = |key: &str| {
        let is_other = |name: &&str| key.strip_prefix(*name).is_some_and(|rest| rest.starts_with('.'));
        others.is_empty() || !(key == "hosts" || key.starts_with("clocks_") || names[1..].iter().any(is_other))
    };
    let first = Host {
        name: names.first().map_or_else(|| info.host.clone(), |name| (*name).to_owned()),
        kernel: info.kernel.clone(),
        cpu: info.cpu.clone(),
        cpus: info.cpus,
        facts: info.facts.iter().filter(|(key, _)| is_own(key)).cloned().collect(),
        clock: None,
    };
    std::iter::once(first).chain(others).collect()
}

/// A host of a joined recording whose facts begin with its name.
fn other_host(info: &Info, name: &str) -> Host {
    let own = |(key, value): &(String, String)| {
        let key = key.strip_prefix(name)?.strip_prefix('.')?;
        let is_field = ["kernel", "cpu", "cpus", "system_calls"].contains(&key);
        (!is_field).then(|| (key.to_owned(), value.clone()))
    };
    let fact = |key: &str| info.fact_of_host(name, key).to_owned();
    let reference = info.hosts().first().copied().unwrap_or_default();
    let clocks = |of: &str| info.clocks(of, reference, name);
    Host {
        name: name.to_owned(),
        kernel: fact("kernel"),
        cpu: fact("cpu"),
        cpus: fact("cpus").parse().unwrap_or(0),
        facts: info.facts.iter().filter_map(own).collect(),
        clock: Some(HostClock {
            from: clocks("from").to_owned(),
            offset_ns: clocks("offset").parse().ok(),
            drift_ppm: clocks("drift_ppm").parse().ok(),
            bound_ns: clocks("bound").parse().ok(),
            bound_max_ns: clocks("bound_max").parse().ok(),
        }),
    }
}

fn chain<'a>(chain: &'a Chain, info: &Info) -> ChainShown<'a> {
    let explained = &chain.explained;
    let hop = |(at, of): (usize, &'a Hop)| HopShown {
        of,
        between_hosts: of.between_hosts(info),
        causes: explained.hops.get(at).map_or(&[], Vec::as_slice),
    };
    let prediction = |of: &'a Prediction| PredictionShown {
        of,
        interval: of.quantiles.iter().find(|of| of.quantile == 0.99).map(|of| of.interval_ns),
    };
    ChainShown {
        name: &chain.name,
        source: chain.source.word(),
        declared: chain.declared,
        is_loop: chain.is_loop,
        deadline_ns: chain.deadline_ns,
        missed: chain.missed,
        messages: chain.messages,
        end_to_end: &chain.end_to_end,
        whole_life: &chain.whole_life,
        hops: chain.hops.iter().enumerate().map(hop).collect(),
        points: &chain.points,
        startup: chain.startup.as_ref(),
        starts: chain.starts.as_ref(),
        outcomes: &chain.outcomes,
        branches: &chain.branches,
        tail: tail(explained),
        causes: &explained.causes,
        by_cause: &explained.by_cause,
        modes: &explained.modes,
        responsible: &explained.responsible,
        lock_holders: &explained.lock_holders,
        hypotheses: &explained.hypotheses,
        predictions: explained.predictions.iter().map(prediction).collect(),
        recommendations: &explained.recommendations,
        worst: &explained.paths,
        all: &explained.times,
    }
}

fn tail(explained: &Explained) -> Tail {
    Tail {
        explained: explained.messages,
        messages: explained.tail_messages,
        in_holes: explained.tail_in_holes,
        quantile: explained.tail_quantile,
        limit_ns: explained.tail_limit_ns,
        selected: match explained.selected {
            Selected::Nothing => "none",
            Selected::Tail(_) => "tail",
            Selected::Missed => "deadline",
            Selected::Overran => "overrun",
            Selected::AboveQuantile(_) | Selected::AboveTime => "above",
        },
    }
}

fn signal(signal: &Signal) -> SignalShown<'_> {
    let values = || signal.points.iter().map(|(_, value)| *value);
    SignalShown {
        name: &signal.name,
        n: signal.points.len() as u64,
        min: values().min_by(f64::total_cmp),
        max: values().max_by(f64::total_cmp),
        last: signal.points.last().map(|(_, value)| *value),
    }
}

/// Holds a generated schema against the documented one; with TAUT_UPDATE it documents it.
#[cfg(test)]
pub(crate) fn assert_documented(schema: &serde_json::Value, file: &str) {
    let path = format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os("TAUT_UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let documented = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(documented == text, "docs/{file} is stale: run TAUT_UPDATE=1 cargo test -p taut-report schema");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_contract_of_the_design_holds() {
        let analysis = sample::teleop();
        let value = json(&[Named { name: "run.mcap", analysis: &analysis }]);
        for field in [
            "/schema_version",
            "/recording/duration_s",
            "/recording/stamps",
            "/recording/lost_stamps",
            "/recording/kernel_events",
            "/recording/lost_kernel_events",
            "/recording/tier",
            "/recording/clock_error_ns",
            "/recording/hosts/0/name",
            "/chains/0/name",
            "/chains/0/messages",
            "/chains/0/end_to_end/p999_ns",
            "/chains/0/end_to_end/estimates",
            "/chains/0/hops/0/from",
            "/chains/0/hops/0/to",
            "/chains/0/hops/0/p50_ns",
            "/chains/0/hops/0/pdv_p99_ns",
            "/chains/0/hops/0/tail_share",
            "/chains/0/causes/0/tail_share",
            "/chains/0/source",
            "/chains/0/hypotheses/0/hypothesis",
            "/chains/0/hypotheses/0/result",
            "/chains/0/hypotheses/0/tail_share",
            "/chains/0/hypotheses/0/interval",
            "/chains/0/hypotheses/0/wait/p99_ns",
            "/chains/0/hypotheses/0/sentence",
            "/chains/0/predictions/0/without",
            "/chains/0/predictions/0/p99_ns",
            "/chains/0/predictions/0/interval",
            "/chains/0/outcomes/applied",
            "/chains/0/outcomes/in_flight",
            "/chains/0/outcomes/dropped/validator_timing_bug",
        ] {
            assert!(value.pointer(field).is_some(), "{field} is missing");
        }
    }

    #[test]
    fn causes_results_and_states_have_the_same_words_everywhere() {
        use taut_analysis::{Cause, Contribution, State};
        let json = |of: serde_json::Result<serde_json::Value>| of.unwrap();
        let causes = Cause::ALL.map(|of| (json(serde_json::to_value(of)), of.word()));
        let results = [Contribution::Contributes, Contribution::DoesNotContribute, Contribution::Undecided];
        let results = results.map(|of| (json(serde_json::to_value(of)), of.word()));
        let states = [State::Running, State::Preempted, State::Woken, State::Blocked, State::Unknown];
        let states = states.map(|of| (json(serde_json::to_value(of)), of.word()));
        for (json, word) in causes.into_iter().chain(results).chain(states) {
            assert_eq!(json, word);
        }
    }

    #[test]
    fn several_recordings_give_several_reports() {
        let analysis = sample::teleop();
        let named = Named { name: "run.mcap", analysis: &analysis };
        let value = json(&[named, named]);
        assert_eq!(value["reports"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        assert_documented(&schema(), "report.schema.json");
    }
}
