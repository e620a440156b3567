//! From the cause of late messages to a remedy that is measured on this machine.
//!
//! [`candidates`] makes remedies from an analysis and from [`Facts`] about the machine; a remedy is a [`Plan`] of changes. [`launch`] applies what
//! a program inherits, [`Trial`] what single threads get, [`Outside`] what lies beyond the program. [`search()`] finds the remedy that helps most
//! and confirms it on fresh pairs; it runs nothing itself. A [`Journal`] knows what has to be undone. Prints nothing.

mod candidates;
mod error;
mod facts;
mod family;
mod files;
mod identity;
mod journal;
mod launch;
mod outside;
mod plan;
mod policy;
mod python;
mod remedy;
mod result;
mod ros2;
mod scheduler;
mod search;
mod seen;
mod setting_file;
mod threads;
mod within;

pub use candidates::{Candidates, OF_LOOP_CPU, candidates, is_unknown};
pub use error::Error;
pub use facts::{Facts, FirstRun, Thread};
pub use files::{PREFIX, Written};
pub use identity::Identity;
pub use journal::{Entry, Journal, Undone, folder, restore_when_gone, undo_all};
pub use launch::launch;
pub use outside::Outside;
pub use plan::{Plan, Setting, ThreadRule, Threads};
pub use policy::Policy;
pub use remedy::{Left, Permission, Remedy, Row, TABLE};
pub use result::{Answer, Change, Fresh, Guarded, Promising, Recommended, Set, TailCause, Tuned};
pub use search::{
    Attempt, CONFIRMING_TRIALS, Confirmed, FEWEST_TRIALS, Found, Guard, Measured, Problem, Settings, Stage, Standing,
    Tried, expected_trials, search,
};
pub use seen::Seen;
pub use threads::{Checked, Trial, Watched};
pub use within::{Within, within};

/// For the fuzzer: what another process left to undo.
#[doc(hidden)]
pub mod fuzzing {
    /// What a journal would undo, in words; undoes nothing.
    ///
    /// # Errors
    /// A line that is none of a journal.
    pub fn journal(text: &str) -> Result<Vec<String>, crate::Error> {
        crate::journal::words(text)
    }
}
