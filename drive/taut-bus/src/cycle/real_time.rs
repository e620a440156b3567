//! Makes the calling thread a real-time one: memory locked, one CPU, SCHED_FIFO, timers without slack.

use std::num::NonZeroU64;

use rustix::{
    mm::{MlockAllFlags, mlockall},
    thread::{CpuSet, sched_setaffinity, set_current_timer_slack},
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
        // Under SCHED_FIFO there is none. Any other thread wakes up to 50 µs late so that its timers can be joined with others.
        set_current_timer_slack(NonZeroU64::new(1)).map_err(|errno| system("timer slack", errno))?;
        prefault_stack();
        taut_stamp::prepare_thread();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::current_timer_slack;

    use super::*;

    #[test]
    fn a_thread_that_asks_for_nothing_wakes_without_slack_all_the_same() {
        std::thread::spawn(|| {
            RealTime::default().enter().unwrap();
            assert_eq!(current_timer_slack().unwrap(), 1);
        })
        .join()
        .unwrap();
    }

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
