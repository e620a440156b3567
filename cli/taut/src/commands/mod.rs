//! One file for each command.

pub mod budget;
pub mod doctor;
pub mod explain;
pub mod probe;
pub mod record;
pub mod recover;
pub mod report;
