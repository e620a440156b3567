//! The JSON form of a report. The schema is documented in
//! `docs/report.schema.json`, generated from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_analysis as found;
use taut_recording::Info;
use taut_stats::Distribution;

use crate::{
    Named,
    envelope::SCHEMA_VERSION,
    json_explained as explained,
    loops::{self, JsonLoop, JsonThread},
};

/// One recording gives one object; several give `{ "schema_version", "comparison", "reports": [ … ] }`.
pub fn json(recordings: &[Named<'_>]) -> serde_json::Value {
    let value = |report: &Report| serde_json::to_value(report).unwrap_or_default();
    let reports: Vec<Report> = recordings.iter().map(report).collect();
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
    schemars::schema_for!(Report).to_value()
}

#[derive(Serialize, JsonSchema)]
struct Report {
    /// Version of this schema.
    schema_version: u32,
    /// "report".
    kind: &'static str,
    /// The recording's file, as named on the command line.
    name: String,
    /// One sentence: what a busy reader needs.
    headline: String,
    recording: Recording,
    /// Most messages first.
    chains: Vec<Chain>,
    /// Threads that wait for the same thing again and again, as kernel events show; in order of their first activation.
    loops: Vec<JsonLoop>,
    /// The other threads that are woken, most wakes first.
    waking_threads: Vec<JsonThread>,
    /// Values over time, by name.
    signals: Vec<Signal>,
    /// How far NAME.actual was from NAME.commanded.
    tracking: Vec<Tracking>,
    /// Channels of whole structs, by topic.
    telemetry: Vec<Telemetry>,
    /// Points that no message passes together with another, by name; the others are in their chains.
    points: Vec<Point>,
    /// Distributions that came without messages, by name.
    histograms: Vec<Histogram>,
    /// Topics, callbacks and executors; null without ROS 2 events.
    ros: Option<crate::ros::Ros>,
    /// Sampled stacks, which `taut flamegraph` draws; null where there are none.
    profile: Option<Profile>,
    /// Damage found in the file, a sentence each.
    damage: Vec<String>,
    /// What one must know to trust the figures.
    notes: Vec<String>,
    /// What would say more than a recording of a program without stamps does; null where it has some.
    next_step: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Signal {
    name: String,
    n: u64,
    min: Option<f64>,
    max: Option<f64>,
    last: Option<f64>,
}

/// Distances without sign, each actual value from the last command before it, in the signal's unit.
#[derive(Serialize, JsonSchema)]
struct Tracking {
    name: String,
    n: u64,
    p50: f64,
    p99: f64,
    max: f64,
}

/// What came of a channel; `taut telemetry` reads the values.
#[derive(Serialize, JsonSchema)]
struct Telemetry {
    topic: String,
    #[serde(rename = "type")]
    type_name: String,
    /// Numbers and bools in each message; an array of any length counts as one.
    values: u64,
    messages: u64,
    /// As encoded, before compression.
    bytes: u64,
    rate_hz: Option<f64>,
    /// From one message to the next.
    period: Distribution,
    /// Messages that the recorder saw lost.
    lost: u64,
    /// Holes in the sequence of what was written; null where several wrote by turns.
    gaps: Option<Gaps>,
}

#[derive(Serialize, JsonSchema)]
struct Gaps {
    count: u64,
    /// Missing in them.
    messages: u64,
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
struct Chain {
    name: String,
    /// Where its points are from: "stamps", "ros", or "wakes": kernel events alone.
    source: &'static str,
    declared: bool,
    /// Whether its messages are activations of the loop of its name.
    is_loop: bool,
    deadline_ns: Option<u64>,
    missed: Option<u64>,
    messages: u64,
    /// First to last point.
    end_to_end: Delay,
    /// First to last stamp of every message, wherever it ended.
    whole_life: Delay,
    hops: Vec<Hop>,
    points: Vec<Point>,
    startup: Option<Startup>,
    /// How late its loop starts, where its thread sleeps until moments.
    starts: Option<Starts>,
    outcomes: Outcomes,
    branches: Vec<Branch>,
    tail: explained::Tail,
    /// Cause shares of the tail, largest first; the tail_shares sum to 1 when there is a tail.
    causes: Vec<explained::CauseShare>,
    /// The same by cause alone.
    by_cause: Vec<explained::CauseShare>,
    /// Modes of the distribution above the main one, in order of time.
    modes: Vec<explained::Mode>,
    /// Threads, processes, locks and interrupts that the tail's time went to, most first.
    responsible: Vec<explained::Party>,
    /// Registered locks, causes with a share of the tail, and those named by the user.
    hypotheses: Vec<explained::Hypothesis>,
    /// Most gain first.
    predictions: Vec<explained::Prediction>,
    /// Most gain first.
    recommendations: Vec<explained::Recommendation>,
    /// The worst messages, worst first, then those asked for; `taut explain` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    worst: Vec<explained::Path>,
    /// Every explained message; `taut explain --all` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    all: Vec<explained::Message>,
}

#[derive(Serialize, JsonSchema)]
struct Delay {
    #[serde(flatten)]
    figures: Distribution,
    /// [from_ns, to_ns, count]
    histogram: Vec<(u64, u64, u64)>,
    /// [quantile 0..1, ns]
    percentiles: Vec<(f64, u64)>,
}

/// A hop's two hosts.
#[derive(Serialize, JsonSchema)]
struct BetweenHosts {
    from: String,
    to: String,
    /// Each delay of the hop is wrong by at most this; null where there is no bound.
    bound_ns: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Hop {
    from: String,
    to: String,
    #[serde(flatten)]
    delay: Delay,
    pdv_p99_ns: Option<u64>,
    /// Share of the tail's excess over the median message (0..1).
    tail_share: Option<f64>,
    crosses_threads: bool,
    /// Where the hop is between two hosts of a joined recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    between_hosts: Option<BetweenHosts>,
    /// Cause shares of the tail in this hop; all shares of all hops sum to 1. Empty when nothing tells causes.
    causes: Vec<explained::CauseShare>,
}

#[derive(Serialize, JsonSchema)]
struct Point {
    name: String,
    messages: u64,
    rate_hz: Option<f64>,
    period: Distribution,
    period_jitter: Distribution,
    /// Periods above 1.5 times the median.
    gaps: u64,
    /// Messages missing in them, by the median period.
    missing: u64,
    /// Longest first, at most 20.
    longest_gaps: Vec<Gap>,
    threads: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Gap {
    /// Since the recording's start.
    from_ns: u64,
    duration_ns: u64,
    missing: u64,
}

/// Quantiles are null where fewer than ten values lie beyond them.
#[derive(Serialize, JsonSchema)]
struct Histogram {
    name: String,
    /// Of all figures: "ns" for durations.
    unit: String,
    n: u64,
    min: Option<u64>,
    p50: Option<Quantile>,
    p90: Option<Quantile>,
    p99: Option<Quantile>,
    p999: Option<Quantile>,
    max: Option<u64>,
    /// Values beyond the last bucket of the source.
    overflow: u64,
    /// What they reach, at least.
    overflow_from: u64,
    /// [smallest value, largest value, count]
    buckets: Vec<(u64, u64, u64)>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Quantile {
    /// The largest value of the bucket that it lies in.
    AtMost(u64),
    /// It lies beyond the last bucket, which ends here.
    AtLeast(u64),
}

#[derive(Serialize, JsonSchema)]
struct Startup {
    messages: u64,
    until_ns: u64,
    max_ns: u64,
    sentence: String,
}

#[derive(Serialize, JsonSchema)]
struct Starts {
    /// Median time between two intended starts.
    period_ns: u64,
    /// From the moment that the loop's absolute timer was set to until the first stamp.
    lateness: Distribution,
    /// Intended starts that never came.
    missing: u64,
    /// Latest first.
    worst: Vec<LateStart>,
}

#[derive(Serialize, JsonSchema)]
struct LateStart {
    id: u64,
    /// Since the recording's start.
    intended_ns: u64,
    late_ns: u64,
    /// What that time was spent on, largest first.
    causes: Vec<explained::TimePiece>,
}

/// applied + in_flight + sum(dropped) + lost + unexplained = messages.
#[derive(Serialize, JsonSchema)]
struct Outcomes {
    applied: u64,
    in_flight: u64,
    dropped: serde_json::Map<String, serde_json::Value>,
    /// Their next stamp may be among those that were lost.
    lost: u64,
    unexplained: u64,
    double: u64,
    /// Where messages that did not complete were seen last.
    last_seen: Vec<LastSeen>,
}

#[derive(Serialize, JsonSchema)]
struct LastSeen {
    point: String,
    reason: String,
    messages: u64,
}

#[derive(Serialize, JsonSchema)]
struct Branch {
    point: String,
    after: String,
    messages: u64,
}

fn report(named: &Named<'_>) -> Report {
    let analysis = named.analysis;
    Report {
        schema_version: SCHEMA_VERSION,
        kind: "report",
        name: named.name.to_owned(),
        headline: crate::headline(analysis),
        recording: recording(analysis),
        chains: analysis.chains.iter().map(|found| chain(found, &analysis.info)).collect(),
        loops: analysis.loops.iter().map(loops::json).collect(),
        waking_threads: analysis.waking.iter().map(loops::json_thread).collect(),
        signals: analysis.signals.iter().map(signal).collect(),
        tracking: analysis.tracking.iter().map(tracking).collect(),
        telemetry: analysis.telemetry.iter().map(telemetry).collect(),
        points: analysis.points.iter().map(point).collect(),
        histograms: analysis.histograms.iter().map(histogram).collect(),
        ros: analysis.ros.as_ref().map(crate::ros::json),
        profile: analysis.profile.as_ref().map(|found| Profile {
            samples: found.samples,
            lost_samples: found.lost,
            frames: found.frames,
            frames_without_name: found.unnamed,
        }),
        damage: analysis.damage.clone(),
        notes: analysis.notes.clone(),
        next_step: loops::next_step(analysis),
    }
}

fn recording(analysis: &found::Analysis) -> Recording {
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
        lost_telemetry: totals.lost_telemetry,
        file_bytes: totals.file_bytes,
        tier: info.tier.word().to_owned(),
        tier_reason: info.tier_reason.clone(),
        kernel_source: info.kernel_source.clone(),
        clock_error_ns: totals.clock_error_ns,
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
    let fact = |key: &str| info.fact(&format!("{name}.{key}")).to_owned();
    Host {
        name: name.to_owned(),
        kernel: fact("kernel"),
        cpu: fact("cpu"),
        cpus: fact("cpus").parse().unwrap_or(0),
        facts: info.facts.iter().filter_map(own).collect(),
        clock: Some(HostClock {
            from: info.fact("clocks_from").to_owned(),
            offset_ns: info.fact("clocks_offset_ns").parse().ok(),
            drift_ppm: info.fact("clocks_drift_ppm").parse().ok(),
            bound_ns: info.fact("clocks_bound_ns").parse().ok(),
            bound_max_ns: info.fact("clocks_bound_max_ns").parse().ok(),
        }),
    }
}

fn chain(chain: &found::Chain, info: &Info) -> Chain {
    Chain {
        name: chain.name.clone(),
        source: chain.source.word(),
        declared: chain.declared,
        is_loop: chain.is_loop,
        deadline_ns: chain.deadline_ns,
        missed: chain.missed,
        messages: chain.messages,
        end_to_end: delay(&chain.end_to_end),
        whole_life: delay(&chain.whole_life),
        hops: chain.hops.iter().enumerate().map(|(at, found)| hop(found, chain.explained.hops.get(at), info)).collect(),
        points: chain.points.iter().map(point).collect(),
        startup: chain.startup.as_ref().map(|s| Startup {
            messages: s.messages,
            until_ns: s.until_ns,
            max_ns: s.max_ns,
            sentence: s.sentence.clone(),
        }),
        starts: chain.starts.as_ref().map(|starts| Starts {
            period_ns: starts.period_ns,
            lateness: starts.lateness.clone(),
            missing: starts.missing,
            worst: starts.worst.iter().map(late_start).collect(),
        }),
        outcomes: outcomes(&chain.outcomes),
        branches: chain.branches.iter().map(branch).collect(),
        tail: explained::tail(&chain.explained),
        causes: explained::causes(&chain.explained.causes),
        by_cause: explained::causes(&chain.explained.by_cause),
        modes: explained::modes(&chain.explained.modes),
        responsible: explained::responsible(&chain.explained.responsible),
        hypotheses: explained::hypotheses(&chain.explained.hypotheses),
        predictions: explained::predictions(&chain.explained.predictions),
        recommendations: explained::recommendations(&chain.explained.recommendations),
        worst: chain.explained.paths.iter().map(explained::path).collect(),
        all: chain.explained.times.iter().map(explained::message).collect(),
    }
}

fn delay(delay: &found::Delay) -> Delay {
    Delay {
        figures: delay.distribution.clone(),
        histogram: delay.histogram.iter().map(|b| (b.from_ns, b.to_ns, b.count)).collect(),
        percentiles: delay.percentiles.clone(),
    }
}

fn signal(signal: &found::Signal) -> Signal {
    let values = || signal.points.iter().map(|(_, value)| *value);
    Signal {
        name: signal.name.clone(),
        n: signal.points.len() as u64,
        min: values().min_by(f64::total_cmp),
        max: values().max_by(f64::total_cmp),
        last: signal.points.last().map(|(_, value)| *value),
    }
}

fn tracking(tracking: &found::Tracking) -> Tracking {
    let found::Tracking { name, n, p50, p99, max } = tracking.clone();
    Tracking { name, n, p50, p99, max }
}

fn telemetry(telemetry: &found::Telemetry) -> Telemetry {
    Telemetry {
        topic: telemetry.topic.clone(),
        type_name: telemetry.type_name.clone(),
        values: telemetry.values,
        messages: telemetry.messages,
        bytes: telemetry.bytes,
        rate_hz: telemetry.rate_hz,
        period: telemetry.period.clone(),
        lost: telemetry.lost,
        gaps: telemetry.gaps.map(|gaps| Gaps { count: gaps.count, messages: gaps.messages }),
    }
}

fn hop(hop: &found::Hop, causes: Option<&Vec<found::CauseShare>>, info: &Info) -> Hop {
    Hop {
        from: hop.from.clone(),
        to: hop.to.clone(),
        delay: delay(&hop.delay),
        pdv_p99_ns: hop.pdv_p99_ns,
        tail_share: hop.tail_share,
        crosses_threads: hop.crosses_threads,
        between_hosts: hop.between_hosts(info).map(|hosts| BetweenHosts {
            from: hosts.from,
            to: hosts.to,
            bound_ns: hosts.bound_ns,
        }),
        causes: causes.map_or(Vec::new(), |causes| explained::causes(causes)),
    }
}

fn point(point: &found::Point) -> Point {
    Point {
        name: point.name.clone(),
        messages: point.messages,
        rate_hz: point.rate_hz,
        period: point.period.clone(),
        period_jitter: point.period_jitter.clone(),
        gaps: point.gaps,
        missing: point.missing,
        longest_gaps: point.longest_gaps.iter().map(gap).collect(),
        threads: point.threads.clone(),
    }
}

fn late_start(late: &found::LateStart) -> LateStart {
    let found::LateStart { id, intended_ns, late_ns, ref pieces } = *late;
    LateStart { id, intended_ns, late_ns, causes: explained::pieces(pieces) }
}

fn gap(gap: &found::Gap) -> Gap {
    Gap { from_ns: gap.from_ns, duration_ns: gap.ns, missing: gap.missing }
}

fn histogram(of: &found::Histogram) -> Histogram {
    let found::Histogram { name, unit, n, min, p50, p90, p99, p999, max, overflow, overflow_from, buckets } =
        of.clone();
    let [p50, p90, p99, p999] = [p50, p90, p99, p999].map(|quantile| {
        quantile.map(|quantile| match quantile {
            found::Quantile::AtMost(value) => Quantile::AtMost(value),
            found::Quantile::AtLeast(value) => Quantile::AtLeast(value),
        })
    });
    Histogram { name, unit, n, min, p50, p90, p99, p999, max, overflow, overflow_from, buckets }
}

fn outcomes(outcomes: &found::Outcomes) -> Outcomes {
    Outcomes {
        applied: outcomes.applied,
        in_flight: outcomes.in_flight,
        dropped: outcomes.dropped.iter().map(|(reason, n)| (reason.clone(), (*n).into())).collect(),
        lost: outcomes.lost,
        unexplained: outcomes.unexplained,
        double: outcomes.double,
        last_seen: outcomes.last_seen.iter().map(last_seen).collect(),
    }
}

fn last_seen((point, reason, messages): &(String, String, u64)) -> LastSeen {
    LastSeen { point: point.clone(), reason: reason.clone(), messages: *messages }
}

fn branch(branch: &found::Branch) -> Branch {
    Branch { point: branch.point.clone(), after: branch.after.clone(), messages: branch.messages }
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
