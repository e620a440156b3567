//! The parameters of a speed guard: range-checked, versioned and hashed before the first frame.

use crate::{
    error::{Error, within},
    frame::MAX_JOINTS,
};

/// The version of this set of parameters and of what they mean; part of the hash.
pub const PARAMETERS_VERSION: u32 = 1;

/// What tells how much time lies between two frames, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TimeBase {
    /// The robot's own stamp of each sample.
    Source = 0,
    /// The rolling count times the period.
    Sequence = 1,
    /// The host's arrival time: degraded. Needs the transport's worst jitter, and detects late.
    Arrival = 2,
}

impl TimeBase {
    /// All of them, best first.
    pub const ALL: [TimeBase; 3] = [TimeBase::Source, TimeBase::Sequence, TimeBase::Arrival];

    /// The word for files and reports: "source", "sequence" or "arrival".
    pub fn name(self) -> &'static str {
        match self {
            TimeBase::Source => "source",
            TimeBase::Sequence => "sequence",
            TimeBase::Arrival => "arrival",
        }
    }
}

/// All parameters of a speed guard. [`Parameters::for_tcp`] has the defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// T: the stream's nominal period.
    pub period_ns: u64,
    /// Values of the rolling count (256 for a u8), or 0 if frames have none.
    pub sequence_modulus: u64,
    /// The best time base that the stream offers.
    pub time_base: TimeBase,
    /// Whether the robot's clock is never set. A step of such a clock is a fault; of a calendar clock
    /// it is a reason to go on with the rolling count.
    pub source_is_monotonic: bool,
    /// e: half-width of the error of a source stamp, half its quantum included.
    pub source_error_ns: u64,
    /// How far e may be escalated when the stamps prove worse; beyond, the guard changes its time base.
    pub source_error_max_ns: u64,
    /// How far the robot's clock may run from the host's and from its own period.
    pub drift_ppm: u32,
    /// L for the tool centre point, or `None` if only joints are supervised.
    pub tcp_limit_mm_s: Option<f64>,
    /// p for the tool centre point: bound of the error of a position.
    pub tcp_error_mm: f64,
    /// How many joints are supervised, at most [`MAX_JOINTS`].
    pub joint_count: usize,
    /// L for each joint.
    pub joint_limits_rad_s: [f64; MAX_JOINTS],
    /// p for joints.
    pub joint_error_rad: f64,
    /// Whether the tool's way is the sum of chords, not the one chord: for small radii.
    pub path_length: bool,
    /// W_max: the longest time between two frames that are compared. 2 to 15 periods.
    pub window_ns: u64,
    /// N: frames over the limit that trip …
    pub trip_count: u32,
    /// M: … out of so many neighbouring ones.
    pub trip_of: u32,
    /// T_stale: silence that stops the robot.
    pub stale_ns: u64,
    /// A_max: age of the newest frame, beyond the least ever seen, that stops the robot.
    pub age_max_ns: u64,
    /// How often the host calls `tick`; part of the stated bound.
    pub tick_ns: u64,
    /// G: frames lost in a row that the stated bound covers.
    pub lost_max: u32,
    /// D: the transport's longest delay that the stated bound covers.
    pub transport_max_ns: u64,
    /// J: longest less shortest transport delay, for the arrival time base only.
    pub arrival_jitter_ns: u64,
    /// What the arm can do; faster changes of speed are counted as suspect timing. 0 switches that off.
    pub acceleration_max_mm_s2: f64,
    /// How far the reported speed may lie outside the measured bounds before the two disagree.
    pub reported_tolerance_mm_s: f64,
}

/// Between what values each parameter may lie.
pub(crate) mod range {
    pub const PERIOD_NS: (f64, f64) = (1e5, 1e9);
    pub const LIMIT: (f64, f64) = (1e-3, 1e5);
    pub const POSITION_ERROR: (f64, f64) = (0.0, 100.0);
    pub const TRIP_OF: (f64, f64) = (1.0, 8.0);
    pub const DRIFT_PPM: (f64, f64) = (0.0, 10_000.0);
}

impl Parameters {
    /// The defaults for a stream with this period, whose frames carry source stamps with an error of up to 1 ms
    /// and a u8 count.
    pub fn for_tcp(period_ns: u64, limit_mm_s: f64) -> Parameters {
        Parameters {
            period_ns,
            sequence_modulus: 256,
            time_base: TimeBase::Source,
            source_is_monotonic: false,
            source_error_ns: 1_000_000,
            source_error_max_ns: period_ns / 2,
            drift_ppm: 200,
            tcp_limit_mm_s: Some(limit_mm_s),
            tcp_error_mm: 0.05,
            joint_count: 0,
            joint_limits_rad_s: [0.0; MAX_JOINTS],
            joint_error_rad: 0.0,
            path_length: false,
            window_ns: 15 * period_ns,
            trip_count: 1,
            trip_of: 1,
            stale_ns: 5 * period_ns,
            age_max_ns: 5 * period_ns,
            tick_ns: 1_000_000,
            lost_max: 5,
            transport_max_ns: 500_000_000,
            arrival_jitter_ns: 60_000_000,
            acceleration_max_mm_s2: 0.0,
            reported_tolerance_mm_s: 100.0,
        }
    }

    /// Refuses what lies outside its range or contradicts itself.
    ///
    /// # Errors
    /// Names the parameter, its value and the range.
    pub fn check(&self) -> Result<(), Error> {
        let period = self.period_ns as f64;
        within("period_ns", period, range::PERIOD_NS.0, range::PERIOD_NS.1)?;
        if self.sequence_modulus != 0 {
            // Below 16 a few lost frames are ambiguous.
            within("sequence_modulus", self.sequence_modulus as f64, 16.0, 4_294_967_296.0)?;
        } else if self.time_base == TimeBase::Sequence {
            return Err(Error::Contradiction("time_base is Sequence, but sequence_modulus is 0: frames have no count"));
        }
        // Two stamps a period apart must keep their order.
        within("source_error_ns", self.source_error_ns as f64, 0.0, period / 2.0)?;
        within("source_error_max_ns", self.source_error_max_ns as f64, self.source_error_ns as f64, period / 2.0)?;
        within("drift_ppm", f64::from(self.drift_ppm), range::DRIFT_PPM.0, range::DRIFT_PPM.1)?;
        if let Some(limit) = self.tcp_limit_mm_s {
            within("tcp_limit_mm_s", limit, range::LIMIT.0, range::LIMIT.1)?;
        } else if self.joint_count == 0 {
            return Err(Error::Contradiction("neither tcp_limit_mm_s nor joint_count is set: nothing is supervised"));
        }
        within("tcp_error_mm", self.tcp_error_mm, range::POSITION_ERROR.0, range::POSITION_ERROR.1)?;
        within("joint_count", self.joint_count as f64, 0.0, MAX_JOINTS as f64)?;
        for &limit in &self.joint_limits_rad_s[..self.joint_count] {
            within("joint_limits_rad_s", limit, range::LIMIT.0, range::LIMIT.1)?;
        }
        within("joint_error_rad", self.joint_error_rad, range::POSITION_ERROR.0, range::POSITION_ERROR.1)?;
        within("window_ns", self.window_ns as f64, 2.0 * period, 15.0 * period)?;
        within("trip_of", f64::from(self.trip_of), range::TRIP_OF.0, range::TRIP_OF.1)?;
        within("trip_count", f64::from(self.trip_count), 1.0, f64::from(self.trip_of))?;
        within("stale_ns", self.stale_ns as f64, 2.0 * period, 1e10)?;
        within("age_max_ns", self.age_max_ns as f64, 2.0 * period, 1e10)?;
        within("tick_ns", self.tick_ns as f64, 1e4, self.stale_ns as f64)?;
        within("lost_max", f64::from(self.lost_max), 0.0, 1000.0)?;
        within("transport_max_ns", self.transport_max_ns as f64, 0.0, 1e10)?;
        within("arrival_jitter_ns", self.arrival_jitter_ns as f64, 0.0, 1e10)?;
        within("acceleration_max_mm_s2", self.acceleration_max_mm_s2, 0.0, 1e7)?;
        within("reported_tolerance_mm_s", self.reported_tolerance_mm_s, 0.0, range::LIMIT.1)
    }

    /// FNV-1a (Fowler, Noll, Vo) over the version and every field; written beside each trip.
    pub fn hash(&self) -> u64 {
        let integers = [
            u64::from(PARAMETERS_VERSION),
            self.period_ns,
            self.sequence_modulus,
            self.time_base as u64,
            u64::from(self.source_is_monotonic),
            self.source_error_ns,
            self.source_error_max_ns,
            u64::from(self.drift_ppm),
            u64::from(self.tcp_limit_mm_s.is_some()),
            self.joint_count as u64,
            u64::from(self.path_length),
            self.window_ns,
            u64::from(self.trip_count),
            u64::from(self.trip_of),
            self.stale_ns,
            self.age_max_ns,
            self.tick_ns,
            u64::from(self.lost_max),
            self.transport_max_ns,
            self.arrival_jitter_ns,
        ];
        let floats = [
            self.tcp_limit_mm_s.unwrap_or(0.0),
            self.tcp_error_mm,
            self.joint_error_rad,
            self.acceleration_max_mm_s2,
            self.reported_tolerance_mm_s,
        ];
        let words = integers.into_iter().chain(floats.into_iter().chain(self.joint_limits_rad_s).map(f64::to_bits));
        // Whole words instead of octets: an eighth of the multiplications, since every tick checks the hash.
        words.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
            let mixed = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            mixed ^ mixed >> 32
        })
    }

    /// The time that a steady overspeed of `ratio` × L takes to be seen, from the moment it is reached to the trip:
    /// ⌈W_min/T⌉·T + T + lost·T + (N−1)·T + min(delay, T_stale) + tick, with W_min = (4eL+4p)/(v−L).
    /// `None` if no window of W_max can prove it.
    pub fn detection_bound_ns(&self, ratio: f64, lost: u32, delay_ns: u64) -> Option<u64> {
        let channels = self.tcp_limit_mm_s.map(|limit| (limit, self.tcp_error_mm));
        let joints = self.joint_limits_rad_s[..self.joint_count].iter().map(|&limit| (limit, self.joint_error_rad));
        let error_s = self.error_ns(self.time_base) as f64 * 1e-9;
        let drift = f64::from(self.drift_ppm) * 1e-6;
        // A clock that is fast by the drift, stretched as if it were slow by it.
        let stretch = 1.0 / (1.0 - drift);
        let slowest = channels.into_iter().chain(joints).map(|(limit, p)| {
            (4.0 * error_s * stretch * limit + 4.0 * p) / (limit * (ratio - (1.0 + drift) * stretch))
        });
        let needed_ns = slowest.fold(0.0, f64::max) * 1e9;
        let window_ns = if self.time_base == TimeBase::Arrival { self.span_max_ns() } else { self.window_ns };
        if ratio <= 1.0 || !(0.0..=window_ns as f64).contains(&needed_ns) {
            return None;
        }
        let period = self.period_ns;
        let window = libm::ceil(needed_ns / period as f64) as u64 * period;
        let frames = 1 + u64::from(lost) + u64::from(self.trip_count - 1);
        Some(window + frames * period + delay_ns.min(self.stale_ns) + self.tick_ns)
    }

    /// e of a time base; half the jitter, if there is nothing better than arrival.
    pub(crate) fn error_ns(&self, base: TimeBase) -> u64 {
        if base == TimeBase::Arrival { self.arrival_jitter_ns / 2 } else { self.source_error_ns }
    }

    /// The longest time between two frames that fit the sample buffer: what the degraded mode compares.
    pub(crate) fn span_max_ns(&self) -> u64 {
        (crate::capacity::CAPACITY as u64 - 1) * self.period_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> Parameters {
        Parameters::for_tcp(10_000_000, 1000.0)
    }

    #[test]
    fn the_bound_is_that_of_the_specification() {
        let bound =
            |ratio, lost| Parameters { drift_ppm: 0, tick_ns: 10_000, ..defaults() }.detection_bound_ns(ratio, lost, 0);
        assert_eq!(bound(1.25, 0), Some(30_010_000));
        assert_eq!(bound(1.25, 2), Some(50_010_000));
        assert_eq!(bound(1.1, 0), Some(60_010_000));
        assert_eq!(bound(1.0, 0), None);
        assert_eq!(bound(1.02, 0), None);
        let degraded = Parameters { time_base: TimeBase::Arrival, drift_ppm: 0, ..defaults() };
        // J = 60 ms, v = 1.5 L: W_min is 240 ms, as the specification says, and p adds 0.4 ms.
        assert_eq!(degraded.detection_bound_ns(1.5, 0, 0), Some(261_000_000));
        assert_eq!(degraded.detection_bound_ns(1.1, 0, 0), None);
    }

    #[test]
    fn each_value_out_of_range_is_named() {
        assert_eq!(defaults().check(), Ok(()));
        let refused: [(&str, Parameters); 21] = [
            ("period_ns", Parameters { period_ns: 0, ..defaults() }),
            ("sequence_modulus", Parameters { sequence_modulus: 1 << 33, ..defaults() }),
            ("source_error_ns", Parameters { source_error_ns: 6_000_000, ..defaults() }),
            ("source_error_max_ns", Parameters { source_error_max_ns: 1, ..defaults() }),
            ("tcp_limit_mm_s", Parameters { tcp_limit_mm_s: Some(f64::NAN), ..defaults() }),
            ("tcp_error_mm", Parameters { tcp_error_mm: -1.0, ..defaults() }),
            ("joint_count", Parameters { joint_count: 9, ..defaults() }),
            ("joint_limits_rad_s", Parameters { joint_count: 1, ..defaults() }),
            ("window_ns", Parameters { window_ns: 160_000_000, ..defaults() }),
            ("trip_count", Parameters { trip_count: 0, ..defaults() }),
            ("drift_ppm", Parameters { drift_ppm: 10_001, ..defaults() }),
            ("joint_error_rad", Parameters { joint_error_rad: f64::INFINITY, ..defaults() }),
            ("trip_of", Parameters { trip_of: 9, ..defaults() }),
            ("age_max_ns", Parameters { age_max_ns: 1, ..defaults() }),
            ("lost_max", Parameters { lost_max: 1001, ..defaults() }),
            ("transport_max_ns", Parameters { transport_max_ns: u64::MAX, ..defaults() }),
            ("arrival_jitter_ns", Parameters { arrival_jitter_ns: u64::MAX, ..defaults() }),
            ("acceleration_max_mm_s2", Parameters { acceleration_max_mm_s2: f64::NAN, ..defaults() }),
            ("reported_tolerance_mm_s", Parameters { reported_tolerance_mm_s: -1.0, ..defaults() }),
            ("stale_ns", Parameters { stale_ns: 1, ..defaults() }),
            ("tick_ns", Parameters { tick_ns: 0, ..defaults() }),
        ];
        for (expected, parameters) in refused {
            let Err(Error::OutOfRange { name, .. }) = parameters.check() else { panic!("{expected} passed") };
            assert_eq!(name, expected);
        }
        let nothing = Parameters { tcp_limit_mm_s: None, ..defaults() };
        assert!(matches!(nothing.check(), Err(Error::Contradiction(_))));
        let countless = Parameters { sequence_modulus: 0, time_base: TimeBase::Sequence, ..defaults() };
        assert!(matches!(countless.check(), Err(Error::Contradiction(_))));
    }

    #[test]
    fn every_field_is_in_the_hash() {
        let mut joint = defaults();
        joint.joint_limits_rad_s[7] = 1.0;
        let changed = [
            joint,
            Parameters { period_ns: 8_000_000, ..defaults() },
            Parameters { sequence_modulus: 0, ..defaults() },
            Parameters { time_base: TimeBase::Arrival, ..defaults() },
            Parameters { source_is_monotonic: true, ..defaults() },
            Parameters { source_error_ns: 2, ..defaults() },
            Parameters { source_error_max_ns: 3, ..defaults() },
            Parameters { drift_ppm: 100, ..defaults() },
            Parameters { tcp_limit_mm_s: None, ..defaults() },
            Parameters { tcp_limit_mm_s: Some(1000.5), ..defaults() },
            Parameters { tcp_error_mm: 0.1, ..defaults() },
            Parameters { joint_count: 1, ..defaults() },
            Parameters { joint_error_rad: 0.1, ..defaults() },
            Parameters { path_length: true, ..defaults() },
            Parameters { window_ns: 1, ..defaults() },
            Parameters { trip_count: 2, ..defaults() },
            Parameters { trip_of: 3, ..defaults() },
            Parameters { stale_ns: 1, ..defaults() },
            Parameters { age_max_ns: 1, ..defaults() },
            Parameters { tick_ns: 1, ..defaults() },
            Parameters { lost_max: 1, ..defaults() },
            Parameters { transport_max_ns: 1, ..defaults() },
            Parameters { arrival_jitter_ns: 1, ..defaults() },
            Parameters { acceleration_max_mm_s2: 1.0, ..defaults() },
            Parameters { reported_tolerance_mm_s: 1.0, ..defaults() },
        ];
        for (n, parameters) in changed.iter().enumerate() {
            assert_ne!(parameters.hash(), defaults().hash(), "{n}");
        }
    }
}
