//! The JSON form of a replay. The schema is documented in `docs/guard-replay.schema.json`, generated from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_replay as found;

use super::{GuardShown, sentences};

/// What `taut guard replay --format json` prints.
pub fn guard_json(shown: &GuardShown<'_>) -> serde_json::Value {
    serde_json::to_value(replay(shown)).unwrap_or_default()
}

#[derive(Serialize, JsonSchema)]
struct Replay {
    /// Version of this schema.
    schema_version: u32,
    /// "guard".
    kind: &'static str,
    /// What a busy reader needs.
    headline: String,
    /// The recording, as typed.
    run: String,
    /// The command that makes the same again.
    command: String,
    /// The stream's name.
    stream: String,
    frames: usize,
    /// Frames left out because the recording lost a value of them.
    incomplete: u64,
    /// First arrival, CLOCK_MONOTONIC; all times in seconds count from here.
    start_ns: u64,
    duration_s: f64,
    longest_gap_ns: u64,
    /// Hash of the guard's parameters, as in its trips.
    parameters_hash: String,
    /// Where the true speed is known from; null if it is not.
    truth: Option<&'static str>,
    /// Stretches truly above the limit.
    overspeeds: Vec<Overspeed>,
    /// The taut guard first, then the others in the order of guard.toml.
    runs: Vec<Run>,
    /// Proposed parameters; null without --tune.
    tuned: Option<Tuned>,
    /// What could not be read of the recording.
    damage: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Overspeed {
    from_s: f64,
    to_s: f64,
    peak_mm_s: f64,
}

#[derive(Serialize, JsonSchema)]
struct Run {
    name: String,
    /// A taut guard; the others are estimators.
    is_guard: bool,
    overspeed_trips: usize,
    /// Stops for silence or age; a guard's only.
    stale_trips: usize,
    fault_trips: usize,
    /// Frames after which the speed stood above the limit.
    frames_over: u64,
    /// The largest speed as a share of its limit.
    largest: f64,
    /// Whether a guard had nothing but arrival times.
    is_degraded: bool,
    /// e at its widest; 0 for an estimator.
    source_error_ns: u64,
    /// A guard's counters, those above 0.
    counters: BTreeMap<&'static str, u64>,
    /// Null where truth is not known.
    judgement: Option<Judgement>,
    /// The first hundred.
    trips: Vec<Trip>,
}

#[derive(Serialize, JsonSchema)]
struct Judgement {
    /// Trips for speed where the true speed was below the limit.
    false_trips: usize,
    /// True overspeeds that were found.
    found: usize,
    missed: usize,
    /// From the beginning of each found overspeed to the trip.
    delays_ms: Vec<f64>,
    /// Of those, how many by STALE.
    by_silence: usize,
}

#[derive(Serialize, JsonSchema)]
struct Trip {
    at_s: f64,
    /// "overspeed", "stale" or "fault".
    state: &'static str,
    cause: &'static str,
    /// Speed by limit; 0 where speed is not the cause.
    share: f64,
    /// "tcp", "joint 0" …, "reported", or "".
    channel: String,
    /// Null where truth is not known or speed not the cause.
    is_false: Option<bool>,
    /// All of it in words.
    sentence: String,
    /// The two samples that prove it, the earlier first.
    proof: Option<[Proof; 2]>,
    /// The last frames up to the trip, oldest first; a guard's only.
    black_box: Vec<Entry>,
}

#[derive(Serialize, JsonSchema)]
struct Proof {
    /// The sample's time as the guard or estimator takes it.
    t_ns: i64,
    arrival_s: Option<f64>,
    tcp_mm: [f64; 3],
    joints_rad: [f64; 8],
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    sequence: u32,
    source_ns: Option<i64>,
    arrival_s: f64,
    tcp_mm: [f64; 3],
    joints_rad: [f64; 8],
    reported_mm_s: Option<f64>,
    frames_in_read: u16,
    state: &'static str,
    ratio: f64,
    events: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Tuned {
    /// A whole guard.toml.
    toml: String,
    /// What the stream showed, by parameter.
    evidence: BTreeMap<&'static str, String>,
}

fn replay(shown: &GuardShown<'_>) -> Replay {
    let r = shown.replay;
    let seconds = |at_ns: u64| at_ns.saturating_sub(r.start_ns) as f64 * 1e-9;
    Replay {
        schema_version: crate::SCHEMA_VERSION,
        kind: "guard",
        headline: sentences::headline(r),
        run: shown.run.to_owned(),
        command: shown.command.to_owned(),
        stream: r.stream.clone(),
        frames: r.frames,
        incomplete: r.incomplete,
        start_ns: r.start_ns,
        duration_s: r.span_ns as f64 * 1e-9,
        longest_gap_ns: r.longest_gap_ns,
        parameters_hash: format!("{:016x}", r.parameters.hash()),
        truth: r.truth,
        overspeeds: r
            .overspeeds
            .iter()
            .map(|o| Overspeed { from_s: seconds(o.from_ns), to_s: seconds(o.to_ns), peak_mm_s: o.peak_mm_s })
            .collect(),
        runs: r.runs.iter().map(|one| run(one, r.start_ns)).collect(),
        tuned: shown.tuned.map(|(tuned, toml)| Tuned {
            toml: toml.to_owned(),
            evidence: tuned.evidence.iter().map(|e| (e.parameter, e.why.clone())).collect(),
        }),
        damage: shown.damage.to_vec(),
    }
}

fn run(run: &found::Run, start_ns: u64) -> Run {
    Run {
        name: run.name.clone(),
        is_guard: run.is_guard,
        overspeed_trips: run.overspeed_trips,
        stale_trips: run.stale_trips,
        fault_trips: run.fault_trips,
        frames_over: run.frames_over,
        largest: run.largest,
        is_degraded: run.is_degraded,
        source_error_ns: run.source_error_ns,
        counters: run.counters.iter().copied().collect(),
        judgement: run.judgement.as_ref().map(|j| Judgement {
            false_trips: j.false_trips,
            found: j.detected.len(),
            missed: j.missed,
            delays_ms: j.detected.iter().map(|detected| detected.after_ns as f64 * 1e-6).collect(),
            by_silence: j.detected.iter().filter(|detected| detected.by_silence).count(),
        }),
        trips: run.trips.iter().map(|trip| self::trip(trip, start_ns)).collect(),
    }
}

fn trip(trip: &found::Found, start_ns: u64) -> Trip {
    let seconds = |at_ns: u64| at_ns.saturating_sub(start_ns) as f64 * 1e-9;
    Trip {
        at_s: seconds(trip.at_ns),
        state: trip.state,
        cause: trip.cause,
        share: trip.share,
        channel: trip.channel.clone(),
        is_false: trip.is_false,
        sentence: format!("{} {}", sentences::seconds(trip.at_ns, start_ns), sentences::trip(trip, start_ns)),
        proof: trip.proof.map(|samples| {
            samples.map(|sample| Proof {
                t_ns: sample.t_ns,
                arrival_s: sample.arrival_ns.map(seconds),
                tcp_mm: sample.tcp_mm,
                joints_rad: sample.joints_rad,
            })
        }),
        black_box: trip
            .black_box
            .iter()
            .map(|entry| Entry {
                sequence: entry.frame.sequence,
                source_ns: entry.frame.source_ns,
                arrival_s: seconds(entry.frame.arrival_ns),
                tcp_mm: entry.frame.tcp_mm,
                joints_rad: entry.frame.joints_rad,
                reported_mm_s: entry.frame.reported_mm_s,
                frames_in_read: entry.frame.frames_in_read,
                state: entry.state.name(),
                ratio: entry.ratio,
                events: entry.events.names().map(str::to_lowercase).collect(),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{guard::sample, json::assert_documented};

    #[test]
    fn the_schema_is_documented() {
        assert_documented(&schemars::schema_for!(Replay).to_value(), "guard-replay.schema.json");
    }

    #[test]
    fn trips_carry_what_proves_them() {
        sample::with(|shown| {
            let json = guard_json(shown);
            let naive = &json["runs"][1];
            assert!(naive["judgement"]["false_trips"].as_u64().unwrap() > 0);
            assert_eq!(naive["trips"][0]["is_false"], true);
            let [a, b] = [0, 1].map(|n| naive["trips"][0]["proof"][n]["t_ns"].as_i64().unwrap());
            assert!(b > a);
            let ours = &json["runs"][0];
            assert_eq!((&ours["name"], &ours["judgement"]["false_trips"]), (&"taut guard".into(), &0.into()));
            let trip = &ours["trips"][0];
            assert_eq!(trip["black_box"].as_array().unwrap().len(), 50);
            assert_eq!(trip["black_box"][49]["state"], "overspeed");
        });
    }
}
