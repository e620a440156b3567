//! Checks the settings of a Linux machine that affect a periodic loop, and suggests changes. Every check reads through one
//! [`Root`], so that a machine written down in a text is examined like the one underneath. Changes nothing,
//! except where [`Applied`] is asked to, and prints nothing.

mod applied;
mod calls;
mod checks;
pub mod cpus;
mod diagnosis;
mod error;
mod finding;
mod machine;
mod measured;
mod missing;
mod remedy;
mod root;
mod script_text;
mod seen;
mod surroundings;

pub use applied::Applied;
pub use checks::{all as checks, find};
pub use diagnosis::{Diagnosis, examine, examine_one};
pub use error::DoctorError;
pub use finding::{Check, Effect, Finding, Subject};
pub use machine::Asked;
pub use measured::{Measured, Ratio, Round};
pub use missing::{Answer, Missing};
pub use remedy::{Remedy, Setting, quoted};
pub use root::Root;
pub use seen::State;
