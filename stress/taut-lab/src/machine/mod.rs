//! What the lab does to the machine and sees of it: processes in groups, on their CPUs, watched and cleaned away.

mod cgroup;
mod child;
mod leftovers;
mod pressure;
mod tree;

use std::path::Path;

pub(crate) use cgroup::Cgroups;
pub(crate) use child::{Child, ended};
pub(crate) use leftovers::{Mine, PREFIX, remove_stale};
pub use pressure::Pressure;
pub(crate) use tree::{Tree, Usage, kill_descendants, reap};

/// Where children of the lab are put.
pub(crate) struct Place<'a> {
    /// Who they belong to.
    pub mine: &'a Mine,
    /// Where their output goes.
    pub logs: &'a Path,
    /// What confines them besides affinity.
    pub cgroups: Option<&'a Cgroups>,
}
