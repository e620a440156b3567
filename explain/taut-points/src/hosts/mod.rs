//! Recordings of several hosts → one stream of records on one clock.
//!
//! [`Survey`] reads what two recordings say of the same messages, [`join`] finds from it what is known of the offset of their
//! clocks, and [`Renumber`] gives the other host's records the reference host's time and numbers of their own. The stages behind
//! see one recording.

pub mod align;
mod host_clock;
mod matching;
mod renumber;
mod survey;
mod ways;

pub use matching::{ClocksFrom, Joined, NotJoined, Route, is_one_machine, join};
pub use renumber::Renumber;
pub use survey::Survey;
pub use ways::OrderFrom;
