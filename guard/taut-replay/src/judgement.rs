//! The trips of one run, judged by the true speed.

/// What an estimator's trips are worth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Trips for speed where the true speed was below the limit.
    pub false_trips: usize,
    /// Overspeeds that were found.
    pub detected: Vec<Detected>,
    /// Overspeeds that were not.
    pub missed: usize,
}

/// How an overspeed was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detected {
    /// Which one, by its place among the overspeeds.
    pub overspeed: usize,
    /// From its beginning to the trip.
    pub after_ns: u64,
    /// By staleness: no frame arrived, and the robot was stopped for that.
    pub by_silence: bool,
}
