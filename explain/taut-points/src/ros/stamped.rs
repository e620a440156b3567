//! Stamps of the threads that run callbacks, in the order in which they lie between ROS 2 events.

use foldhash::HashMap;

use super::events::Events;
use crate::point::Pass;

/// What programs stamped themselves, of each thread that has ROS 2 events.
pub(super) struct Stamped {
    /// By thread, in order of time.
    threads: Vec<Vec<Pass>>,
    /// By thread: the next one.
    next: Vec<usize>,
}

impl Stamped {
    /// Of these passes those that a thread with ROS 2 events made.
    pub fn of(passes: &[Pass], events: &Events) -> Stamped {
        let numbers: HashMap<i32, u32> =
            (0..events.threads() as u32).map(|thread| (events.tid(thread), thread)).collect();
        let mut threads = vec![Vec::new(); events.threads()];
        for pass in passes.iter().filter(|pass| pass.point.is_pass()) {
            if let Some(thread) = numbers.get(&pass.thread) {
                threads[*thread as usize].push(*pass);
            }
        }
        threads.iter_mut().for_each(|passes| passes.sort_by_key(|pass| pass.time_ns));
        Stamped { next: vec![0; threads.len()], threads }
    }

    /// The thread's next stamp, if it is not later than this.
    #[inline]
    pub fn until(&mut self, thread: u32, time_ns: u64) -> Option<Pass> {
        let next = &mut self.next[thread as usize];
        let pass = *self.threads[thread as usize].get(*next).filter(|pass| pass.time_ns <= time_ns)?;
        *next += 1;
        Some(pass)
    }
}
