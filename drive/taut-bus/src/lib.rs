//! Servo buses: how long frames take on the wire ([`wire`]) and what a control cycle over many servos costs
//! ([`budget`]). Pure arithmetic: it opens no file, reads no clock and touches no bus.

pub mod budget;
pub mod wire;
