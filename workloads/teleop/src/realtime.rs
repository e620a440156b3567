//! Real-time priority for a process of the loop, where the machine grants it.

use std::num::NonZeroU64;

use taut_wakeup::{Policy, Settings, set_policy};

/// SCHED_FIFO priorities. The arms stand for machines of their own, so nothing here may delay them; the guard stands above the
/// loop that it guards.
pub const ARM: u32 = 40;
pub const GUARD: u32 = 30;
pub const FOLLOWER: u32 = 20;
pub const LEADER: u32 = 10;

/// Asks for SCHED_FIFO for this thread; says what was granted: "fifo 20", or why not.
pub fn ask(priority: u32) -> String {
    taut_stamp::prepare_thread();
    match set_policy(&Settings { policy: Policy::Fifo, priority, ..Settings::default() }) {
        Ok(()) => format!("fifo {priority}"),
        Err(refusal) => {
            // Without it the kernel joins timers of 50 µs; that much at least is to be had.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            let why = std::error::Error::source(&refusal).map_or_else(|| refusal.to_string(), ToString::to_string);
            format!("normal ({why})")
        }
    }
}
