//! The guard's states, its causes of trips, and the events that it counts.

use crate::{
    bound::{Channel, Sample},
    parameters::TimeBase,
};

/// What the guard says of the robot. The last three are latched: only [`SpeedGuard::reset`](crate::SpeedGuard::reset)
/// leaves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum State {
    /// Not enough fresh frames yet; motion is not enabled.
    #[default]
    Init = 0,
    /// Below 0.9 of the limit.
    Ok = 1,
    /// At 0.9 of the limit or above it.
    Warn = 2,
    /// The stream was resynchronised a moment ago; becomes OK or STALE within W_max.
    Unknown = 3,
    /// A speed above the limit is proven. Latched.
    Overspeed = 4,
    /// No new frame for too long. Latched; it does not concern speed.
    Stale = 5,
    /// The configuration, a clock or a number cannot be trusted. Latched.
    Fault = 6,
}

impl State {
    /// The word for logs and reports: "init", "ok", …
    pub fn name(self) -> &'static str {
        match self {
            State::Init => "init",
            State::Ok => "ok",
            State::Warn => "warn",
            State::Unknown => "unknown",
            State::Overspeed => "overspeed",
            State::Stale => "stale",
            State::Fault => "fault",
        }
    }

    /// Whether motion may be enabled. Everything else means: controlled stop.
    pub fn enables_motion(self) -> bool {
        matches!(self, State::Ok | State::Warn | State::Unknown)
    }

    /// Whether only a reset leaves it.
    pub fn is_latched(self) -> bool {
        matches!(self, State::Overspeed | State::Stale | State::Fault)
    }
}

/// What tripped the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// The lower bound of the speed exceeds the limit.
    Speed = 1,
    /// The controller itself reports a speed above the limit.
    ReportedSpeed = 2,
    /// No new frame for T_stale.
    Silence = 3,
    /// The newest frame is older than A_max beyond the transport's best.
    LateData = 4,
    /// No two consistent frames within W_max after a resynchronisation.
    StillUnknown = 5,
    /// The parameters changed under way: memory is damaged.
    Configuration = 6,
    /// A clock that is never set went back or stepped.
    Clock = 7,
    /// A frame holds NaN, an infinity, a denormal or an absurd number.
    NotFinite = 8,
    /// The reported speed contradicts the measured one for 10 frames.
    Disagreement = 9,
}

impl Cause {
    /// The word for logs and reports: "speed", "silence", …
    pub fn name(self) -> &'static str {
        match self {
            Cause::Speed => "speed",
            Cause::ReportedSpeed => "reported_speed",
            Cause::Silence => "silence",
            Cause::LateData => "late_data",
            Cause::StillUnknown => "still_unknown",
            Cause::Configuration => "configuration",
            Cause::Clock => "clock",
            Cause::NotFinite => "not_finite",
            Cause::Disagreement => "disagreement",
        }
    }
}

/// A trip, as it was when it happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trip {
    /// The state it led to.
    pub state: State,
    /// Why.
    pub cause: Cause,
    /// When, by the host's clock.
    pub at_ns: u64,
    /// v_lb / L, or the reported speed by L; 0 where speed is not the cause.
    pub ratio: f64,
    /// Whose limit.
    pub channel: Channel,
    /// The two samples that prove it, the earlier first; `None` unless the measured speed is the cause.
    pub proof: Option<[Sample; 2]>,
    /// What time was made of; [`TimeBase::Arrival`] is the degraded mode.
    pub time_base: TimeBase,
    /// Hash of the parameters in force.
    pub parameters_hash: u64,
}

impl Trip {
    /// Time between the two samples that prove it, or 0.
    pub fn span_ns(&self) -> i64 {
        self.proof.map_or(0, |[earlier, later]| later.t_ns - earlier.t_ns)
    }
}

/// What the guard noticed in one update; a set of bits for logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(pub u32);

macro_rules! events {
    ($($(#[$about:meta])* $name:ident = $bit:literal,)*) => {
        impl Events {
            $($(#[$about])* pub const $name: Events = Events(1 << $bit);)*

            /// The names of the bits, from the lowest.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];
        }
    };
}
events! {
    /// Frames were lost before this one.
    GAP = 0,
    /// The frame was known already.
    DUPLICATE = 1,
    /// The frame came out of order and was inserted at its place.
    LATE_INSERTED = 2,
    /// The frame came out of order, too late to be of use.
    LATE_DISCARDED = 3,
    /// The frame was not one: wrong count, or a stamp is missing.
    BAD_FRAME = 4,
    /// The window was cleared; nothing is known of the speed right now.
    RESYNC = 5,
    /// Several frames in one read, or a jump of age: the receiver or the transport stalled, not the robot.
    RECEIVER_STALL = 6,
    /// A stamp disagrees with count × period by more than e; e was escalated.
    RESIDUAL = 7,
    /// The robot's clock stepped.
    CLOCK_STEP = 8,
    /// The newest frame is older than A_max.
    LATE_DATA = 9,
    /// A change of speed that the arm cannot make.
    TIMING_SUSPECT = 10,
    /// The reported speed lies outside what was measured.
    DISAGREEMENT = 11,
    /// The guard went over to a worse time base.
    DEGRADED = 12,
    /// The host's clock went back.
    HOST_CLOCK_BACK = 13,
}

impl Events {
    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Events) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the bits that are set, from the lowest.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Events::NAMES.iter().enumerate().filter(move |(bit, _)| self.0 >> bit & 1 == 1).map(|(_, name)| *name)
    }

    pub(crate) fn note(&mut self, other: Events) {
        self.0 |= other.0;
    }
}

/// The answer to one frame or tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The state after it.
    pub state: State,
    /// The largest v_lb / L of the pairs that end at the newest frame.
    pub ratio: f64,
    /// What was noticed.
    pub events: Events,
    /// Whether time comes from arrivals: detection is late then, and small overspeeds cannot be seen.
    pub is_degraded: bool,
}
