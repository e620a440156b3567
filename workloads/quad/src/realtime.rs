//! Real-time priority and locked memory for a process of the robot, where the machine grants them.

use std::error::Error as _;

use rustix::{
    process::{Resource, getrlimit},
    thread::{CapabilitySet, capabilities},
};
use taut_bus::cycle::RealTime;
use taut_wakeup::Error;

/// SCHED_FIFO priorities: the host's, and below it the simulator's.
pub const HOST: u32 = 80;
pub const ROBOT: u32 = 70;

/// Asks for SCHED_FIFO for this thread, and for memory that stays; says what was granted: "fifo 80", or why not.
///
/// # Errors
/// The CPU is not there.
pub fn ask(cpu: Option<u32>, priority: u32) -> Result<String, Error> {
    RealTime { cpu, ..RealTime::default() }.enter()?;
    // Not by the user's id: root in a container may lack the capability, and others may have a limit that allows it.
    if let Err(refusal) = (RealTime { priority: Some(priority), ..RealTime::default() }).enter() {
        return Ok(format!("normal ({})", why(&refusal)));
    }
    if !memory_is_unlimited() {
        return Ok(format!("fifo {priority}, memory not locked (ulimit -l)"));
    }
    let locked = RealTime { lock_memory: true, ..RealTime::default() }.enter();
    Ok(match locked {
        Ok(()) => format!("fifo {priority}"),
        Err(refusal) => format!("fifo {priority}, memory not locked ({})", why(&refusal)),
    })
}

/// With a limit, memory that is locked now makes a later allocation fail.
fn memory_is_unlimited() -> bool {
    let is_privileged = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    is_privileged || getrlimit(Resource::Memlock).current.is_none()
}

fn why(refusal: &Error) -> String {
    refusal.source().map_or_else(|| refusal.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use rustix::{
        process::{Rlimit, setrlimit},
        thread::{current_timer_slack, set_capabilities},
    };

    use super::*;

    #[test]
    fn without_the_capability_it_is_a_normal_thread_and_says_why() {
        // Capabilities are the thread's; the limit is that of all threads here, none of which asks for more.
        std::thread::spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::SYS_NICE);
            set_capabilities(None, sets).unwrap();
            let limit = getrlimit(Resource::Rtprio);
            setrlimit(Resource::Rtprio, Rlimit { current: Some(0), ..limit }).unwrap();
            let said = ask(None, HOST).unwrap();
            assert!(said.starts_with("normal (") && said.contains("not permitted"), "{said}");
            assert_eq!(current_timer_slack().unwrap(), 1);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_all_the_same() {
        std::thread::spawn(|| assert!(ask(Some(1023), HOST).is_err())).join().unwrap();
    }
}
