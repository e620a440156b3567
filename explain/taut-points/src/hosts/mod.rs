//! Recordings of several hosts → one stream of records on one clock.
//!
//! [`Survey`] reads what a recording says of messages, [`join`] finds from those that several hosts saw what is known of the
//! offsets of their clocks, and [`Renumber`] gives the other hosts' records the reference host's time and numbers of their own. The
//! stages behind see one recording.

pub mod align;
mod calls;
mod clocks_from;
pub mod constraints;
mod described;
mod host_clock;
mod joined;
mod matching;
mod renumber;
mod ros_messages;
mod survey;
mod ways;

pub use clocks_from::ClocksFrom;
pub use described::{host_names, joined_info};
pub use joined::{Between, Host, Joined, join};
pub use matching::{Keeper, NotJoined, Pair, Route, Stated, Use};
pub use renumber::{MOST_HOSTS, Renumber};
pub use survey::Survey;
pub use ways::OrderFrom;
