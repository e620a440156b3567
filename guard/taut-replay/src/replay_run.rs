//! What one guard or estimator made of a stream.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use taut_guard::BlackBoxEntry;

use crate::{judgement::Judgement, serialized};

/// What one guard or estimator made of the stream.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Run {
    /// As reports call it.
    pub name: String,
    /// A taut guard, be it the first or one with other parameters.
    pub is_guard: bool,
    /// Trips, kept up to a hundred; they are written with their sentences.
    #[serde(skip)]
    pub trips: Vec<Found>,
    /// Trips for speed, all of them.
    pub overspeed_trips: usize,
    /// Stops for silence or age, all of them.
    pub stale_trips: usize,
    /// Faults, all of them.
    pub fault_trips: usize,
    /// Frames after which the share stood above 1.
    pub frames_over: u64,
    /// The largest share of the limit.
    pub largest: f64,
    /// Share of the limit after each frame.
    #[serde(skip)]
    pub series: Vec<Point>,
    /// A guard's counters, those above 0.
    #[serde(serialize_with = "serialized::by_name")]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub counters: Vec<(&'static str, u64)>,
    /// Whether a guard had nothing but arrival times.
    pub is_degraded: bool,
    /// e at its widest; 0 for an estimator.
    pub source_error_ns: u64,
    /// When the speed's rule was met: every such frame, not only the first of a trip.
    #[serde(skip)]
    pub(crate) decisions: Vec<u64>,
    /// A guard's last trip.
    #[serde(skip)]
    pub(crate) last_trip: Option<(&'static str, u64)>,
    /// Against the truth; `None` where that is not known.
    pub judgement: Option<Judgement>,
}

/// A share of the limit after a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The frame's arrival, since the first one.
    pub at_ns: u64,
    /// Speed by limit; what trips lies above 1.
    pub share: f64,
}

/// A trip and what proves it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Trip")]
pub struct Found {
    /// Since the first arrival.
    #[serde(rename = "at_s", serialize_with = "serialized::seconds")]
    #[schemars(with = "f64")]
    pub at_ns: u64,
    /// "overspeed", "stale" or "fault".
    pub state: &'static str,
    /// Why, in a word.
    pub cause: &'static str,
    /// Speed by limit; 0 where speed is not the cause.
    pub share: f64,
    /// "tcp", "joint 0" …, "reported"; empty where speed is not the cause or the estimator does not tell.
    pub channel: String,
    /// The two samples, the earlier first.
    pub proof: Option<[Proof; 2]>,
    /// The last frames up to the trip; a guard's only.
    pub black_box: Vec<Entry>,
    /// Whether the true speed was below the limit; `None` where truth is not known or speed not the cause.
    pub is_false: Option<bool>,
}

/// One of the two samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Proof {
    /// Its time as the guard or estimator takes it.
    pub t_ns: i64,
    /// When it came, since the first arrival, if that is known.
    #[serde(rename = "arrival_s", serialize_with = "serialized::maybe_seconds")]
    #[schemars(with = "Option<f64>")]
    pub arrival_ns: Option<u64>,
    /// Where the tool was.
    pub tcp_mm: [f64; 3],
    /// Where the joints were.
    pub joints_rad: [f64; taut_guard::MAX_JOINTS],
}

/// A frame of the guard's black box.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// Its number, as the robot counts.
    pub sequence: u32,
    /// Its own stamp.
    pub source_ns: Option<i64>,
    /// When it came, since the first arrival.
    #[serde(rename = "arrival_s", serialize_with = "serialized::seconds")]
    #[schemars(with = "f64")]
    pub arrival_ns: u64,
    /// Where the tool was.
    pub tcp_mm: [f64; 3],
    /// Where the joints were.
    pub joints_rad: [f64; taut_guard::MAX_JOINTS],
    /// The controller's own speed.
    pub reported_mm_s: Option<f64>,
    /// Frames that came with one read.
    pub frames_in_read: u16,
    /// The guard's state after it.
    pub state: &'static str,
    /// Speed by limit after it.
    pub ratio: f64,
    /// What the guard noticed.
    pub events: Vec<String>,
}

impl From<&BlackBoxEntry> for Entry {
    fn from(of: &BlackBoxEntry) -> Entry {
        let taut_guard::Frame { sequence, source_ns, arrival_ns, tcp_mm, joints_rad, reported_mm_s, frames_in_read } =
            of.frame;
        Entry {
            sequence,
            source_ns,
            arrival_ns,
            tcp_mm,
            joints_rad,
            reported_mm_s,
            frames_in_read,
            state: of.state.name(),
            ratio: of.ratio,
            events: of.events.names().map(str::to_lowercase).collect(),
        }
    }
}

impl Run {
    /// Its times since that moment.
    pub(crate) fn count_from(&mut self, start_ns: u64) {
        let trips = &mut self.trips;
        let proofs = trips.iter_mut().flat_map(|trip| trip.proof.iter_mut().flatten());
        proofs.filter_map(|proof| proof.arrival_ns.as_mut()).for_each(|ns| *ns = ns.saturating_sub(start_ns));
        let frames = trips.iter_mut().flat_map(|trip| &mut trip.black_box);
        frames.for_each(|entry| entry.arrival_ns = entry.arrival_ns.saturating_sub(start_ns));
        trips.iter_mut().for_each(|trip| trip.at_ns = trip.at_ns.saturating_sub(start_ns));
        self.series.iter_mut().for_each(|point| point.at_ns = point.at_ns.saturating_sub(start_ns));
    }
}
