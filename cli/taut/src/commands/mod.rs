//! One file for each command.

pub mod record;
pub mod recover;
pub mod report;
