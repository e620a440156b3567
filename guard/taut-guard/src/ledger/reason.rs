//! The twenty reasons why a setpoint does not pass unchanged. The numbers are those of the specification and of reports.

/// What kind of outcome a reason stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The robot misses a setpoint.
    Loss,
    /// The policy took it back; normal.
    Coalesced,
    /// It goes on, changed to fit a limit.
    Modified,
    /// The last one is kept.
    Held,
    /// It is refused, and the producer gets the reason.
    Rejected,
    /// It must never happen.
    Forbidden,
}

macro_rules! reasons {
    ($($(#[$about:meta])* $name:ident = $number:literal, $text:literal, $class:ident;)*) => {
        /// Why a setpoint did not pass unchanged.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Reason { $($(#[$about])* $name = $number,)* }

        impl Reason {
            /// All of them, by number.
            pub const ALL: [Reason; REASON_COUNT] = [$(Reason::$name),*];

            /// The name that stamps and reports carry.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$name => $text,)* }
            }

            /// What it usually is counted as.
            pub fn class(self) -> Class {
                match self { $(Reason::$name => Class::$class,)* }
            }
        }
    };
}

/// How many reasons there are.
pub const REASON_COUNT: usize = 20;

reasons! {
    /// Same id or same value: deduplicate and refresh the keep-alive.
    Duplicate = 1, "duplicate", Coalesced;
    /// Out of order: of no use if a newer one exists.
    OutOfOrder = 2, "out_of_order", Loss;
    /// Older than allowed: hold, or decelerate to zero.
    Stale = 3, "stale", Loss;
    /// A newer one came before it was sent.
    Superseded = 4, "superseded", Coalesced;
    /// A queue was full; position setpoints belong in a mailbox of depth 1.
    QueueOverflow = 5, "queue_overflow", Loss;
    /// Position or joint limit: clamp to the limit less a margin.
    PositionLimit = 6, "position_limit", Modified;
    /// Velocity limit: clamp the step against the last sent, or scale all joints.
    VelocityLimit = 7, "velocity_limit", Modified;
    /// Acceleration or jerk limit: retarget.
    AccelerationLimit = 8, "acceleration_limit", Modified;
    /// Work area, self-collision, singularity: project or slow down; allow motion out.
    WorkArea = 9, "work_area", Modified;
    /// No inverse kinematics, or a jump between branches: keep the last.
    Kinematics = 10, "kinematics", Held;
    /// A validator that takes speed from arrival times. Must be 0.
    ValidatorTimingBug = 11, "validator_timing_bug", Forbidden;
    /// The last call to the servo is not back yet.
    ServoBusy = 12, "servo_busy", Coalesced;
    /// The robot's own queue is full or empty.
    ServoQueue = 13, "servo_queue", Loss;
    /// Wrong mode, not enabled, dragged, safety stop.
    NotEnabled = 14, "not_enabled", Rejected;
    /// Emergency stop or guard latched.
    GuardLatched = 15, "guard_latched", Rejected;
    /// Transport error or time-out, after a bounded retry.
    Transport = 16, "transport", Loss;
    /// NaN, wrong shape, unit or frame.
    Malformed = 17, "malformed", Rejected;
    /// No change worth sending.
    Deadband = 18, "deadband", Coalesced;
    /// Decimated to a lower rate on purpose.
    Decimated = 19, "decimated", Coalesced;
    /// Sent, but the robot did not execute it.
    NotExecuted = 20, "not_executed", Loss;
}

impl Reason {
    /// Whether it may end in a rejection: staleness and 14 to 17. A limit violation by itself never does.
    pub fn may_reject(self) -> bool {
        matches!(self as u8, 3 | 14..=17)
    }

    /// Whether only the ledger reports it.
    pub fn is_silent(self) -> bool {
        matches!(self, Reason::QueueOverflow | Reason::ValidatorTimingBug | Reason::NotExecuted)
    }
}
