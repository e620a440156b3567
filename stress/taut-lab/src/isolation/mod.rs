//! What the lab changes and reads on the machine: processes in groups, on their CPUs, watched and ended.

mod cgroup;
mod child;
mod frequency;
mod keeper;
mod leftovers;
mod mine;
mod network;
mod pressure;
mod shared;
mod switches;
mod tree;

use std::path::Path;

pub(crate) use cgroup::Cgroups;
pub(crate) use child::{CPUS, Child, SESSION, ended};
pub(crate) use frequency::{Cap, missing as no_frequency};
pub(crate) use keeper::Keeper;
pub use keeper::keep;
pub(crate) use leftovers::remove_stale;
pub(crate) use mine::{Mine, PREFIX};
pub(crate) use network::Met;
pub(crate) use network::Namespace;
pub use network::Network;
pub use pressure::Pressure;
pub(crate) use shared::Made;
#[cfg(test)]
pub(crate) use switches::Stay;
pub(crate) use switches::{Stays, Switches};
pub(crate) use tree::{Tree, Usage, kill_descendants, reap};

/// Where children of the lab are put.
pub(crate) struct Place<'a> {
    /// Their owner.
    pub mine: &'a Mine,
    /// Where their output goes.
    pub logs: &'a Path,
    /// What confines them besides affinity.
    pub cgroups: Option<&'a Cgroups>,
    /// Whether it is a process of the system under test, which a quota holds.
    pub of_system: bool,
    /// The network that it is in; without it the machine's.
    pub network: Option<&'a Namespace>,
}
