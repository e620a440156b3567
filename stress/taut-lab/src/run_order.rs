//! The inputs of a run, its messages, and the order of its rounds.

use std::{ffi::OsString, path::Path, sync::atomic::AtomicBool};

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use crate::{Lab, Trial};

/// The inputs of a run.
pub struct Order<'a> {
    /// What is to be done.
    pub lab: &'a Lab,
    /// The lab's file, and what it says.
    pub file: (&'a Path, &'a str),
    /// Where everything is written.
    pub folder: &'a Path,
    /// The only round that is run, where a driver hands them out.
    pub round: Option<u32>,
    /// Whether the folder holds the beginning of this run.
    pub resume: bool,
    /// The command that makes loads: [`crate::worker::go`].
    pub worker: &'a [OsString],
    /// The command that cleans up after this lab if it is killed: [`crate::keep`].
    pub keeper: &'a [OsString],
    /// The command that records: `taut record`.
    pub recorder: &'a [OsString],
    /// Set when the user wants it to end.
    pub stop: &'a AtomicBool,
}

/// What happens meanwhile.
pub enum Event<'a> {
    /// A lab that died had left this; it is gone now.
    Removed(&'a str),
    /// A host that cannot be reached any more, the round that it had, and what was said.
    HostLost(&'a str, u32, &'a str),
    /// What stays on a host that should have gone, and why.
    HostLeft(&'a str, &'a str),
    /// One more of so many; a search does not know how many.
    Trial(&'a Trial, usize, Option<usize>),
}

/// All trials of a run, those of an interrupted beginning included.
pub struct Ran {
    /// What confined threads.
    pub confinement: String,
    /// In the order in which they ran.
    pub trials: Vec<Trial>,
}

/// For each round the scenarios in their order.
pub(crate) fn rounds(lab: &Lab) -> Vec<Vec<usize>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(lab.seed);
    let one = |_| {
        let mut order: Vec<usize> = (0..lab.scenarios.len()).collect();
        order.shuffle(&mut random);
        order
    };
    (0..lab.trials.div_ceil(lab.trials_per_start)).map(one).collect()
}
