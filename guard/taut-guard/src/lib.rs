//! Keeps a robot safe while its loop jitters. Three parts that stand alone: a speed guard that delay, loss and
//! reordering cannot trip; a watchdog whose time-outs end in zero velocity, not in a fall; a ledger that gives each
//! setpoint exactly one fate. Runs inside the robot's process: no allocation, no lock, no system call, no clock; time
//! comes in as an argument. Nothing here is a safety-rated function.
#![no_std]
#![deny(unsafe_code)]
#![cfg_attr(not(feature = "c"), forbid(unsafe_code))]

mod admission;
/// By this name, so that a test can put loom's in its place.
mod atomic {
    pub(crate) use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
}
mod black_box;
mod bound;
#[cfg(feature = "c")]
mod c;
mod capacity;
mod counters;
mod error;
mod frame;
mod freshness;
mod guard;
pub mod heartbeat;
pub mod ledger;
mod parameters;
mod reported;
mod self_test;
pub mod setpoint;
mod state;
pub mod watchdog;
mod window;

pub use admission::AdmissionCounters;
pub use black_box::{BLACK_BOX_FRAMES, BlackBoxEntry};
pub use bound::{Channel, Sample};
pub use counters::{Counter, Width};
pub use error::Error;
pub use frame::{Frame, MAX_JOINTS};
pub use guard::SpeedGuard;
pub use parameters::{PARAMETERS_VERSION, Parameters, TimeBase};
pub use state::{Cause, Events, State, Trip, Verdict};

/// The guide's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/guard.md")]
struct Guide;
