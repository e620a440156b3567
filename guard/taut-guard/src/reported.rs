//! The speed that the controller reports. It may trip the guard, and may be contradicted by the measured one, but
//! excuses nothing. Also here: a change of speed above the arm's acceleration.

use crate::{bound::Sample, counters::Counter, parameters::Parameters, window::Window};

/// Samples between the two ends of a measured stretch.
const STRETCH: usize = 5;
/// Frames of contradiction in a row that are a fault.
const DISAGREEMENT_MAX: u64 = 10;

/// What was found in one frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// The reported speed has been above the limit for N frames: by this share of it.
    pub over: Option<f64>,
    pub disagrees: bool,
    /// It has disagreed for so long that one of the two is broken.
    pub is_broken: bool,
    pub timing_is_suspect: bool,
}

/// The books over successive frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reported {
    over_in_row: Counter<u8>,
    disagreed_in_row: Counter<u8>,
    previous: Option<Stretch>,
}

/// Between which speeds the tool moved over the last few samples.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    sequence: i64,
    least_mm_s: f64,
    most_mm_s: f64,
    time_s: f64,
}

impl Reported {
    pub fn judge(&mut self, reported: Option<f64>, window: &Window, parameters: &Parameters, error_ns: u64) -> Found {
        let mut found = Found::default();
        let acceleration = parameters.acceleration_max_mm_s2;
        if acceleration <= 0.0 && reported.is_none() {
            return found;
        }
        let now = Stretch::last_of(window, parameters, error_ns);
        if let (Some(now), true) = (now, acceleration > 0.0) {
            found.timing_is_suspect = self.previous.is_some_and(|previous| {
                now.least_mm_s - previous.most_mm_s > acceleration * (now.time_s + previous.time_s)
            });
            // Stretches that do not overlap.
            if self.previous.is_none_or(|previous| now.sequence >= previous.sequence + STRETCH as i64) {
                self.previous = Some(now);
            }
        }
        let (Some(reported), Some(limit)) = (reported, parameters.tcp_limit_mm_s) else { return found };
        self.over_in_row.bump_or_reset(reported > limit);
        found.over = (self.over_in_row.get() >= u64::from(parameters.trip_count)).then_some(reported / limit);
        if let Some(now) = now {
            let room = parameters.reported_tolerance_mm_s + acceleration * now.time_s;
            found.disagrees = reported < now.least_mm_s - room || reported > now.most_mm_s + room;
            self.disagreed_in_row.bump_or_reset(found.disagrees);
        }
        found.is_broken = self.disagreed_in_row.get() >= DISAGREEMENT_MAX;
        found
    }

    /// Begins again, after a reset or a resynchronisation.
    pub fn forget(&mut self) {
        *self = Reported::default();
    }
}

impl Stretch {
    /// At least the chord, at most (but for bends between samples) the sum of chords.
    fn last_of(window: &Window, parameters: &Parameters, error_ns: u64) -> Option<Stretch> {
        let (a, b) = (window.back(STRETCH)?, window.newest()?);
        let (span_s, error_s) = ((b.t_ns - a.t_ns) as f64 * 1e-9, 2e-9 * error_ns as f64);
        let p = 2.0 * parameters.tcp_error_mm;
        let chord = (Sample::distance_mm(a, b) - p).max(0.0);
        let ways = (0..STRETCH).filter_map(|n| Some(Sample::distance_mm(window.back(n + 1)?, window.back(n)?) + p));
        (span_s > error_s).then(|| Stretch {
            sequence: b.sequence,
            least_mm_s: chord / (span_s + error_s),
            most_mm_s: ways.sum::<f64>() / (span_s - error_s),
            time_s: span_s,
        })
    }
}
