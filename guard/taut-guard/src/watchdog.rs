//! The end of commands. Servos time out by themselves into zero velocity, so that a legged robot sinks instead of
//! falling; the host sends all of them there at the first fault; time-outs nest so that the nearest acts first.

mod chain;
mod recovery;
mod servo;
mod timeouts;

pub use chain::{Action, ChainCounters, ChainState, DegradeCause, DegradeChain, FIRST_FAULT_KD_SCALE, Report};
pub use recovery::Ramp;
pub use servo::{Command, Drive, ServoCounters, ServoMode, ServoWatchdog, StopMode, Timeout, damping_torque};
pub use timeouts::Timeouts;
