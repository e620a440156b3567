//! What one guard or estimator made of a stream.

use taut_guard::BlackBoxEntry;

use crate::judgement::Judgement;

/// What one guard or estimator made of the stream.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// As reports call it.
    pub name: String,
    /// A taut guard, be it the first or one with other parameters.
    pub is_guard: bool,
    /// Trips, kept up to a hundred.
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
    pub series: Vec<Point>,
    /// A guard's counters, those above 0.
    pub counters: Vec<(&'static str, u64)>,
    /// Whether a guard had nothing but arrival times.
    pub is_degraded: bool,
    /// e at its widest; 0 for an estimator.
    pub source_error_ns: u64,
    /// When the speed's rule was met: every such frame, not only the first of a trip.
    pub(crate) decisions: Vec<u64>,
    /// A guard's last trip.
    pub(crate) last_trip: Option<(&'static str, u64)>,
    /// Against the truth.
    pub judgement: Option<Judgement>,
}

/// A share of the limit after a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The frame's arrival.
    pub at_ns: u64,
    /// Speed by limit; what trips lies above 1.
    pub share: f64,
}

/// A trip and what proves it.
#[derive(Clone, Debug)]
pub struct Found {
    /// By the host's clock.
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
    pub black_box: Vec<BlackBoxEntry>,
    /// Whether the true speed was below the limit; `None` where truth is not known or speed not the cause.
    pub is_false: Option<bool>,
}

/// One of the two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proof {
    /// Its time as the guard or estimator takes it.
    pub t_ns: i64,
    /// When it came, if that is known.
    pub arrival_ns: Option<u64>,
    /// Where the tool was.
    pub tcp_mm: [f64; 3],
    /// Where the joints were.
    pub joints_rad: [f64; taut_guard::MAX_JOINTS],
}
