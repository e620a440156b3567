//! Pressure (PSI) and steal of the machine while a trial ran.

use procfs::{CpuPressure, Current, CurrentSI, IoPressure, MemoryPressure};
use serde::{Deserialize, Serialize};

/// Time in which some task waited for a resource, and time stolen by the hypervisor. Since boot, or over a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Waiting for a CPU; `None` where the kernel has no PSI.
    pub cpu_s: Option<f64>,
    /// Waiting for memory.
    pub memory_s: Option<f64>,
    /// Waiting for disks.
    pub io_s: Option<f64>,
    /// Over all CPUs.
    pub steal_s: Option<f64>,
}

impl Pressure {
    pub(crate) fn now() -> Pressure {
        let seconds = |us: u64| us as f64 / 1e6;
        let steal = procfs::KernelStats::current().ok().and_then(|stat| stat.total.steal);
        Pressure {
            cpu_s: CpuPressure::current().ok().map(|psi| seconds(psi.some.total)),
            memory_s: MemoryPressure::current().ok().map(|psi| seconds(psi.some.total)),
            io_s: IoPressure::current().ok().map(|psi| seconds(psi.some.total)),
            steal_s: steal.map(|ticks| ticks as f64 / procfs::ticks_per_second() as f64),
        }
    }

    pub(crate) fn since(&self, before: &Pressure) -> Pressure {
        let less = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        Pressure {
            cpu_s: less(self.cpu_s, before.cpu_s),
            memory_s: less(self.memory_s, before.memory_s),
            io_s: less(self.io_s, before.io_s),
            steal_s: less(self.steal_s, before.steal_s),
        }
    }
}
