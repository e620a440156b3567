//! How one thread is scheduled: read and set by its number. The only file with calls that have no safe wrapper.

use std::io;

use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};
use serde::{Deserialize, Serialize};
use taut_lab::Cpus;

use crate::Policy;

/// Policy and its parameters, as `sched_getattr(2)` has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    pub policy: u32,
    pub flags: u64,
    pub nice: i32,
    pub priority: u32,
    pub runtime_ns: u64,
    pub deadline_ns: u64,
    pub period_ns: u64,
}

/// `struct sched_attr`, version 0.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = size_of::<Attributes>() as u32;
/// Children of a thread with this flag start with SCHED_OTHER.
const RESET_ON_FORK: u64 = 1;

/// How a thread is scheduled.
pub fn scheduling(tid: i32) -> io::Result<Scheduling> {
    let mut read = Attributes::default();
    // SAFETY: the kernel writes at most SIZE bytes into `read`, which is that long and holds integers only.
    let failed = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut read, SIZE, 0) } != 0;
    if failed {
        return Err(io::Error::last_os_error());
    }
    Ok(Scheduling {
        policy: read.policy,
        flags: read.flags & RESET_ON_FORK,
        nice: read.nice,
        priority: read.priority,
        runtime_ns: read.runtime,
        deadline_ns: read.deadline,
        period_ns: read.period,
    })
}

/// Schedules a thread so.
pub fn schedule(tid: i32, wanted: &Scheduling) -> io::Result<()> {
    let attributes = Attributes {
        size: SIZE,
        policy: wanted.policy,
        flags: wanted.flags,
        nice: wanted.nice,
        priority: wanted.priority,
        runtime: wanted.runtime_ns,
        deadline: wanted.deadline_ns,
        period: wanted.period_ns,
    };
    // SAFETY: the kernel reads SIZE bytes of `attributes`, which is that long.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Schedules threads that the calling thread starts, and programs that it becomes, without transparent huge pages.
pub fn no_huge_pages() -> io::Result<()> {
    // SAFETY: PR_SET_THP_DISABLE takes integers only.
    match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Scheduling {
    pub fn fifo(priority: u8) -> Scheduling {
        Scheduling { policy: libc::SCHED_FIFO as u32, priority: priority.into(), ..Scheduling::default() }
    }

    /// The same with another nice value, where the policy has one.
    pub fn with_nice(self, nice: i32) -> Scheduling {
        Scheduling { nice, ..self }
    }

    /// SCHED_FIFO or SCHED_RR.
    pub fn is_real_time(&self) -> bool {
        matches!(self.policy as i32, libc::SCHED_FIFO | libc::SCHED_RR)
    }

    /// Whether nice values count for it.
    pub fn is_shared(&self) -> bool {
        matches!(self.policy as i32, libc::SCHED_OTHER | libc::SCHED_BATCH)
    }

    /// E.g. "SCHED_FIFO 50", "nice 0".
    pub fn word(&self) -> String {
        match self.policy as i32 {
            libc::SCHED_FIFO => format!("SCHED_FIFO {}", self.priority),
            libc::SCHED_RR => format!("SCHED_RR {}", self.priority),
            libc::SCHED_BATCH => format!("SCHED_BATCH, nice {}", self.nice),
            libc::SCHED_IDLE => "SCHED_IDLE".into(),
            libc::SCHED_DEADLINE => "SCHED_DEADLINE".into(),
            _ => format!("SCHED_OTHER, nice {}", self.nice),
        }
    }
}

impl From<Policy> for Scheduling {
    fn from(policy: Policy) -> Scheduling {
        match policy {
            Policy::Fifo(priority) => Scheduling::fifo(priority),
            Policy::Deadline { runtime_ns, period_ns } => Scheduling {
                policy: libc::SCHED_DEADLINE as u32,
                // Without it the thread may not start others.
                flags: RESET_ON_FORK,
                runtime_ns,
                deadline_ns: period_ns,
                period_ns,
                ..Scheduling::default()
            },
        }
    }
}

/// Where a thread may run.
pub fn cpus(tid: i32) -> io::Result<Cpus> {
    let set = sched_getaffinity(Pid::from_raw(tid))?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect::<Vec<_>>().into())
}

/// Has a thread run there only.
pub fn place(tid: i32, cpus: &Cpus) -> io::Result<()> {
    Ok(sched_setaffinity(Pid::from_raw(tid), &cpus.mask())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_scheduled_and_placed_as_it_was_read() {
        std::thread::spawn(|| {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            let before = scheduling(tid).unwrap();
            let nicer = before.with_nice(before.nice.max(5) + 1);
            schedule(tid, &nicer).unwrap();
            assert_eq!(scheduling(tid).unwrap(), nicer);
            let one = Cpus::from(vec![cpus(tid).unwrap().iter().next().unwrap()]);
            place(tid, &one).unwrap();
            assert_eq!(cpus(tid).unwrap(), one);
        })
        .join()
        .unwrap();
    }
}
