//! One file for each command.

pub mod bus;
pub mod compare;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod flamegraph;
pub mod fleet;
pub mod gate;
pub mod guard;
pub mod import;
pub mod lab;
pub mod man;
pub mod merge;
pub mod record;
pub mod recover;
pub mod report;
pub mod ros2;
pub mod telemetry;
pub mod top;
pub mod tune;
pub mod wakeup;
