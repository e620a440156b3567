//! One file for each command.

pub mod explain;
pub mod probe;
pub mod record;
pub mod recover;
pub mod report;
