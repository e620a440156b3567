//! The cycle over all buses: commands out, inertial unit, replies in; once, or at a rate on a real-time thread.

mod clock;
mod engine;
mod health;
mod inertial;
mod real_time;
mod repeat;
mod request;
mod statistics;

pub use clock::{Clock, Monotonic, Virtual};
pub use engine::Engine;
pub use health::{BusHealth, ServoHealth};
pub use inertial::{Attitude, InertialUnit, SimulatedInertialUnit};
pub use real_time::RealTime;
pub use repeat::{Controller, Cycle, Schedule, State, States, repeat};
pub use request::{Command, Outcome, Patience, Reply, Request, Times};
pub use statistics::Statistics;
