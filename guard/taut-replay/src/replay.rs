//! The stream replayed through each guard and each estimator by itself.
//!
//! Ours is ticked between the frames as a robot's supervisor would, so that silence is found at its time. After a trip a
//! fresh guard takes over with the next frame; one trip of a kind a second is counted at most.

use schemars::JsonSchema;
use serde::Serialize;
use taut_guard::{AdmissionCounters, Channel, Frame, Parameters, SpeedGuard, TimeBase, Trip};

use crate::{
    against::{Against, Source},
    config::Config,
    error::Error,
    estimators::estimator,
    replay_run::{Entry, Found, Point, Proof, Run},
    serialized,
    stream::Stream,
    truth::{self, Overspeed, Truth},
};

/// After a trip an operator presses reset: one trip of a kind in this time is counted at most.
const APART_NS: u64 = 1_000_000_000;
/// Trips kept with everything that proves them; all are counted.
const TRIPS_KEPT: usize = 100;
const FRAMES_LEAST: usize = 10;

/// A whole replay. Times in it are since the first arrival.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Replay {
    /// The stream's name.
    pub stream: String,
    /// Frames replayed.
    pub frames: usize,
    /// Frames left out because the recording lost a value of them.
    pub incomplete: u64,
    /// First arrival, CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// From the first arrival to the last.
    #[serde(rename = "duration_s", serialize_with = "serialized::seconds")]
    #[schemars(with = "f64")]
    pub span_ns: u64,
    /// The longest time between two arrivals.
    pub longest_gap_ns: u64,
    /// The parameters of ours; written is their hash, as in its trips.
    #[serde(rename = "parameters_hash", serialize_with = "serialized::hash")]
    #[schemars(with = "String")]
    pub parameters: Parameters,
    /// In words, where truth is known from; `None` if it is not.
    pub truth: Option<&'static str>,
    /// The stretches truly above the limit.
    pub overspeeds: Vec<Overspeed>,
    /// Ours first, the others in the order of guard.toml; they are written with the sentences of their trips.
    #[serde(skip)]
    pub runs: Vec<Run>,
}

/// Replays the stream. `progress` hears how many of how many runs are done.
///
/// # Errors
/// A stream that is too short or lacks what the parameters build on; parameters that fail their own test; truth that is
/// not there.
pub fn replay(
    stream: &Stream,
    config: &Config,
    truth: Option<&Truth>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Replay, Error> {
    check(stream, config)?;
    let limit = config.parameters.tcp_limit_mm_s.unwrap_or(f64::INFINITY);
    let mut overspeeds = truth.map_or(Ok(Vec::new()), |truth| truth.overspeeds(stream, limit))?;
    let total = 1 + config.against.len();
    let mut runs = vec![run_guard("taut guard".into(), config.parameters, stream)?];
    progress(1, total);
    for against in &config.against {
        runs.push(match against.estimator {
            Source::Guard => run_guard(against.title(), against.parameters(&config.parameters)?, stream)?,
            _ => run_estimator(against, &config.parameters, stream),
        });
        progress(runs.len(), total);
    }
    for run in runs.iter_mut().filter(|_| truth.is_some()) {
        run.judgement = Some(truth::judge(run, &overspeeds, &config.parameters));
    }
    let arrivals = || stream.frames.iter().map(|recorded| recorded.frame.arrival_ns);
    let (start_ns, end_ns) = (arrivals().next().unwrap_or(0), arrivals().next_back().unwrap_or(0));
    for run in &mut runs {
        run.trips.truncate(TRIPS_KEPT);
        run.count_from(start_ns);
    }
    for overspeed in &mut overspeeds {
        overspeed.from_ns = overspeed.from_ns.saturating_sub(start_ns);
        overspeed.to_ns = overspeed.to_ns.saturating_sub(start_ns);
    }
    Ok(Replay {
        stream: stream.name.clone(),
        frames: stream.frames.len(),
        incomplete: stream.incomplete,
        start_ns,
        span_ns: end_ns - start_ns,
        longest_gap_ns: arrivals().zip(arrivals().skip(1)).map(|(a, b)| b - a).max().unwrap_or(0),
        parameters: config.parameters,
        truth: truth.map(Truth::words),
        overspeeds,
        runs,
    })
}

fn check(stream: &Stream, config: &Config) -> Result<(), Error> {
    let name = || stream.name.clone();
    if stream.frames.len() < FRAMES_LEAST {
        return Err(Error::TooShort { name: name(), frames: stream.frames.len(), least: FRAMES_LEAST });
    }
    let frames = || stream.frames.iter().map(|recorded| &recorded.frame);
    let p = &config.parameters;
    let lacks = |field, remedy| Err(Error::Lacks { name: name(), field, remedy });
    if p.time_base == TimeBase::Source && frames().all(|frame| frame.source_ns.is_none()) {
        return lacks(
            "source_ns",
            "set time_base = \"sequence\" in [guard], or \"arrival\" if there is no count either",
        );
    }
    if p.sequence_modulus != 0 && frames().all(|frame| frame.sequence == 0) {
        return lacks("sequence", "set sequence_modulus = 0 in [guard]");
    }
    if p.sequence_modulus != 0 && frames().any(|frame| u64::from(frame.sequence) >= p.sequence_modulus) {
        return lacks("sequence below sequence_modulus", "set sequence_modulus in [guard] to how many values it has");
    }
    Ok(())
}

fn run_guard(name: String, parameters: Parameters, stream: &Stream) -> Result<Run, Error> {
    let fresh: SpeedGuard<u64> = SpeedGuard::new(parameters)?;
    let mut run = Run { name, is_guard: true, ..Run::default() };
    let mut counters = vec![0; AdmissionCounters::<u64>::NAMES.len()];
    let mut guard = fresh.clone();
    let mut has_heard = false;
    let mut now_ns = stream.frames.first().map_or(0, |first| first.frame.arrival_ns);
    for recorded in &stream.frames {
        let mut frame = recorded.frame;
        if parameters.time_base != TimeBase::Source {
            frame.source_ns = None;
        }
        while has_heard && now_ns + parameters.tick_ns < frame.arrival_ns && guard.trip().is_none() {
            now_ns += parameters.tick_ns;
            guard.tick(now_ns);
        }
        if guard.trip().is_some() {
            run.take_over(&mut guard, &fresh, &mut counters);
        }
        now_ns = frame.arrival_ns;
        let verdict = guard.update(&frame);
        has_heard = true;
        run.note(frame.arrival_ns, verdict.ratio);
        run.is_degraded |= verdict.is_degraded;
        run.source_error_ns = run.source_error_ns.max(guard.source_error_ns());
        if guard.trip().is_some() {
            run.take_over(&mut guard, &fresh, &mut counters);
            has_heard = false;
        }
    }
    add(&mut counters, &guard);
    let named = AdmissionCounters::<u64>::NAMES.iter().copied().zip(counters);
    run.counters = named.filter(|(_, count)| *count > 0).collect();
    Ok(run)
}

fn add(counters: &mut [u64], guard: &SpeedGuard<u64>) {
    counters.iter_mut().zip(guard.counters().values()).for_each(|(sum, count)| *sum += count);
}

impl Run {
    fn note(&mut self, at_ns: u64, share: f64) {
        self.series.push(Point { at_ns, share });
        self.largest = self.largest.max(share);
        self.frames_over += u64::from(share > 1.0);
    }

    /// Keeps what the tripped guard has to say; a fresh one goes on.
    fn take_over(&mut self, guard: &mut SpeedGuard<u64>, fresh: &SpeedGuard<u64>, counters: &mut [u64]) {
        add(counters, guard);
        let tripped = std::mem::replace(guard, fresh.clone());
        if let Some(trip) = tripped.trip() {
            let found = found(trip, tripped.black_box().map(Entry::from).collect());
            if found.state == "overspeed" {
                self.decisions.push(found.at_ns);
            }
            let is_new =
                self.last_trip.is_none_or(|(state, at_ns)| state != found.state || found.at_ns - at_ns >= APART_NS);
            if is_new {
                self.last_trip = Some((found.state, found.at_ns));
                self.keep(found);
            }
        }
    }

    fn keep(&mut self, found: Found) {
        match found.state {
            "overspeed" => self.overspeed_trips += 1,
            "stale" => self.stale_trips += 1,
            _ => self.fault_trips += 1,
        }
        // All are judged; of the later ones nobody asks for the frames.
        let black_box = if self.trips.len() < TRIPS_KEPT { found.black_box } else { Vec::new() };
        self.trips.push(Found { black_box, ..found });
    }
}

fn found(trip: &Trip, black_box: Vec<Entry>) -> Found {
    let channel = match (trip.proof.is_some() || trip.channel == Channel::Reported, trip.channel) {
        (false, _) => String::new(),
        (_, Channel::Tcp) => "tcp".into(),
        (_, Channel::Joint(joint)) => format!("joint {joint}"),
        (_, Channel::Reported) => "reported".into(),
    };
    // A sample is known again by where the robot was.
    let arrival = |sample: &taut_guard::Sample| {
        let is_it = |frame: &Entry| frame.tcp_mm == sample.tcp_mm && frame.joints_rad == sample.joints_rad;
        let by_stamp = |frame: &Entry| frame.source_ns == Some(sample.t_ns);
        let mut frames = black_box.iter().filter(|frame| is_it(frame));
        let stamped = frames.clone().find(|frame| by_stamp(frame));
        stamped.or_else(|| frames.next()).map(|frame| frame.arrival_ns)
    };
    let proof = trip.proof.map(|samples| {
        samples.map(|sample| Proof {
            t_ns: sample.t_ns,
            arrival_ns: arrival(&sample),
            tcp_mm: sample.tcp_mm,
            joints_rad: sample.joints_rad,
        })
    });
    Found {
        at_ns: trip.at_ns,
        state: trip.state.name(),
        cause: trip.cause.name(),
        share: trip.ratio,
        channel,
        proof,
        black_box,
        is_false: None,
    }
}

fn run_estimator(against: &Against, parameters: &Parameters, stream: &Stream) -> Run {
    let mut run = Run { name: against.title(), ..Run::default() };
    let Some(mut estimate) = estimator(against, parameters) else { return run };
    let (mut in_row, mut last_trip_ns, mut before) = (0u32, None::<u64>, None::<Frame>);
    for recorded in &stream.frames {
        let frame = recorded.frame;
        let at_ns = frame.arrival_ns;
        let earlier = before.replace(frame);
        let Some(share) = estimate(&frame) else { continue };
        run.note(at_ns, share);
        in_row = if share > 1.0 { in_row + 1 } else { 0 };
        if in_row < against.debounce {
            continue;
        }
        run.decisions.push(at_ns);
        if last_trip_ns.is_none_or(|last| at_ns - last >= APART_NS) {
            last_trip_ns = Some(at_ns);
            let time = |frame: &Frame| match against.time {
                crate::estimators::Time::Arrival => frame.arrival_ns as i64,
                crate::estimators::Time::Source => frame.source_ns.unwrap_or(0),
            };
            let proof = |frame: Frame| Proof {
                t_ns: time(&frame),
                arrival_ns: Some(frame.arrival_ns),
                tcp_mm: frame.tcp_mm,
                joints_rad: frame.joints_rad,
            };
            let proof = earlier.map(|earlier| [proof(earlier), proof(frame)]);
            let (state, cause) = ("overspeed", "speed");
            let (channel, black_box) = (String::new(), Vec::new());
            run.keep(Found { at_ns, state, cause, share, channel, proof, black_box, is_false: None });
        }
    }
    run
}
