//! One file for each command.

pub mod budget;
pub mod bus;
pub mod completions;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod flame;
pub mod fleet;
pub mod gate;
pub mod guard;
pub mod import;
pub mod lab;
pub mod log;
pub mod probe;
pub mod record;
pub mod recover;
pub mod report;
pub mod ros2;
pub mod top;
