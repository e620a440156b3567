//! What a bus and each of its servos have missed so far.

use crate::transport::Error;

/// Servo ids of one byte, of which the top bit is not an address.
const SERVOS: usize = 128;

/// Counts of one bus since the engine began.
#[derive(Debug, Default)]
pub struct BusHealth {
    /// Frames that the bus took.
    pub sent: u64,
    /// Frames that came.
    pub received: u64,
    /// Of these, frames that lay there when a cycle began: too late for their own.
    pub late: u64,
    /// Of these, frames in a cycle from servos that were not asked, or twice.
    pub unexpected: u64,
    /// Frames that found no room in the engine's list.
    pub dropped: u64,
    /// Errors of the transport.
    pub errors: u64,
    /// The last of them.
    pub last_error: Option<Error>,
}

/// Counts of one servo since the engine began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServoHealth {
    /// Replies that were wanted.
    pub asked: u64,
    /// Replies that did not come in their cycle.
    pub missing: u64,
    /// Of these, in a row until now: how many cycles old the last known state is.
    pub silent_cycles: u64,
}

/// One bus' counts.
#[derive(Debug)]
pub(super) struct Record {
    pub bus: BusHealth,
    servos: Box<[ServoHealth; SERVOS]>,
}

impl Record {
    pub fn new() -> Record {
        Record { bus: BusHealth::default(), servos: Box::new([ServoHealth::default(); SERVOS]) }
    }

    pub fn failed(&mut self, error: Error) {
        self.bus.errors += 1;
        self.bus.last_error = Some(error);
    }

    pub fn servo(&self, id: u8) -> ServoHealth {
        self.servos[usize::from(id) % SERVOS]
    }

    pub fn asked(&mut self, id: u8, answered: bool) {
        let servo = &mut self.servos[usize::from(id) % SERVOS];
        servo.asked += 1;
        servo.missing += u64::from(!answered);
        servo.silent_cycles = if answered { 0 } else { servo.silent_cycles + 1 };
    }
}
