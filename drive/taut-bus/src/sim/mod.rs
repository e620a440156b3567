//! Simulated buses: frames take their exact time on the wire, servos answer. Deterministic: only the times that it is
//! given move it, so the same bus runs in virtual time and, with a real clock, in real time.

mod bus;
mod serve;

pub use bus::{Bus, Wiring};
pub use serve::serve;
