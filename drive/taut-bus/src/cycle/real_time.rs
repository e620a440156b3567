//! Makes the calling thread a real-time one: memory locked, one CPU, SCHED_FIFO.

use rustix::{
    mm::{MlockAllFlags, mlockall},
    thread::{CpuSet, sched_setaffinity},
};
use taut_wakeup::{Policy, Settings, allowed_cpus, prefault_stack, set_policy};

/// What a control thread wants of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RealTime {
    /// The only CPU it shall run on.
    pub cpu: Option<u32>,
    /// SCHED_FIFO with this priority, 1 to 99.
    pub priority: Option<u32>,
    /// Lock all memory, now and later.
    pub lock_memory: bool,
}

impl RealTime {
    /// Applies it to the calling thread, and readies the thread's stamps; nothing of it need be done in the loop.
    ///
    /// # Errors
    /// The first wish that the kernel refuses, with what would allow it.
    pub fn enter(&self) -> Result<(), taut_wakeup::Error> {
        let system = |what: &str, errno: rustix::io::Errno| taut_wakeup::Error::System {
            what: what.into(),
            source: errno.into(),
        };
        if let Some(cpu) = self.cpu {
            let allowed = allowed_cpus();
            let refused = || taut_wakeup::Error::Cpu {
                cpu,
                allowed: allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
            };
            if !allowed.contains(&cpu) {
                return Err(refused());
            }
            let mut only = CpuSet::new();
            only.set(cpu as usize);
            sched_setaffinity(None, &only).map_err(|_| refused())?;
        }
        if self.lock_memory {
            mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
                .map_err(|errno| system("locking memory (raise `ulimit -l`, or run as root)", errno))?;
        }
        if let Some(priority) = self.priority {
            set_policy(&Settings { policy: Policy::Fifo, priority, ..Settings::default() })?;
        }
        prefault_stack();
        taut_stamp::prepare_thread();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_and_a_cpu_that_is_not_there_is_refused() {
        std::thread::spawn(|| {
            let cpu = allowed_cpus()[0];
            RealTime { cpu: Some(cpu), ..RealTime::default() }.enter().unwrap();
            assert_eq!(allowed_cpus(), [cpu]);
            assert!(RealTime { cpu: Some(1023), ..RealTime::default() }.enter().is_err());
        })
        .join()
        .unwrap();
    }
}
