//! The request of one cycle, and its result.

use super::inertial::Attitude;
use crate::transport::Frame;

/// The flag of a moteus id that asks for a reply.
const WANTS_REPLY: u32 = 0x8000;
/// The destination of all servos; the number of answers is unknown.
const BROADCAST: u8 = 0x7f;
/// One frame to send.
#[derive(Clone, Debug)]
pub struct Command {
    /// Index of the bus.
    pub bus: usize,
    /// What to send.
    pub frame: Frame,
    /// The servo whose reply is waited for.
    pub expects: Option<u8>,
}

impl Command {
    /// The frame, with a reply expected where its moteus id asks one servo for one.
    pub fn new(bus: usize, frame: Frame) -> Command {
        let servo = (frame.arbitration_id & 0x7f) as u8;
        let expects = (frame.arbitration_id & WANTS_REPLY != 0 && servo != BROADCAST).then_some(servo);
        Command { bus, frame, expects }
    }
}

/// What one cycle shall do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Frames to send; those of one bus in this order.
    pub commands: &'a [Command],
    /// Buses to take whatever is queued from, though nothing is expected there.
    pub look: &'a [usize],
    /// Whether to read the inertial unit.
    pub attitude: bool,
}

/// How long to wait for replies, counted from the last command sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// At least so long, even with all expected replies there: for frames that are not expected.
    pub min_wait_ns: u64,
    /// At most so long.
    pub deadline_ns: u64,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { min_wait_ns: 0, deadline_ns: 1_000_000 }
    }
}

/// A frame that came.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Index of the bus.
    pub bus: usize,
    /// The servo that sent it, by its id.
    pub servo: u8,
    /// When the engine took it.
    pub at_ns: u64,
    /// Whether it was waited for.
    pub expected: bool,
    /// The frame.
    pub frame: Frame,
}

/// When the phases of a cycle began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Sending commands.
    pub send_ns: u64,
    /// Reading the inertial unit.
    pub imu_ns: u64,
    /// Receiving replies.
    pub receive_ns: u64,
    /// After that.
    pub end_ns: u64,
}

/// How one cycle went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Frames that the buses took.
    pub sent: usize,
    /// Replies that were wanted.
    pub expected: usize,
    /// Of these, replies that did not come.
    pub missing: usize,
    /// What the inertial unit told, where it was asked and answered.
    pub attitude: Option<Attitude>,
    /// The phases.
    pub times: Times,
}
