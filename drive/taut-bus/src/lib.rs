//! Servo buses. How long frames take ([`wire`]) and what a cycle costs ([`budget`]) is pure arithmetic; [`cycle`] goes
//! round real or simulated buses ([`transport`], [`sim`]) with servos on them ([`servo`]).

pub mod budget;
pub mod cycle;
#[doc(hidden)]
pub use transport::fuzzing;
pub mod servo;
pub mod sim;
pub mod transport;
pub mod wire;
