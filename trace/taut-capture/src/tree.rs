//! The processes below this one: kept together while a command runs, and ended with it.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{proc, signals::send};

/// Between two looks at what still runs.
pub const LOOK: Duration = Duration::from_millis(5);

/// The ends of children can be waited for from now on. A process whose parent ignores SIGCHLD ignores it, too, and then the kernel
/// keeps no exit code for it.
pub fn heed_children() {
    // SAFETY: the default runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// While this lives, orphaned grandchildren become ours, so that the tree stays a tree.
pub struct Subreaper;

impl Subreaper {
    /// From now on. One at a time in a process.
    #[allow(clippy::new_without_default, reason = "it changes the process")]
    pub fn new() -> Subreaper {
        // SAFETY: a plain prctl.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
        Subreaper
    }

    /// Ends all descendants of this process, waits for their end, and returns how many there were. The caller has no child that it waits
    /// for itself.
    ///
    /// # Errors
    /// Those that SIGKILL does not end, "name (pid)" each.
    pub fn end_all(&self, grace: Duration) -> Result<usize, Vec<String>> {
        let mut sweep = Sweep::new(grace);
        while !sweep.step() {
            thread::sleep(LOOK);
        }
        proc::bury_orphans(0);
        let left = running().unwrap_or_default();
        if left.is_empty() {
            return Ok(sweep.ended.len());
        }
        Err(left.iter().map(|pid| format!("{} ({pid})", proc::line(format!("/proc/{pid}/comm")))).collect())
    }
}

impl Drop for Subreaper {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 0) };
    }
}

/// Ends all descendants of this process: SIGTERM to each, parents first, and SIGKILL to what runs after the grace.
pub struct Sweep {
    grace: Duration,
    kill_at: Instant,
    /// Those that got SIGTERM.
    ended: Vec<i32>,
    was_empty: bool,
}

impl Sweep {
    pub fn new(grace: Duration) -> Sweep {
        Sweep { grace, kill_at: Instant::now() + grace, ended: Vec::new(), was_empty: false }
    }

    /// Sends what is due. True: nothing runs, or SIGKILL does not end it either.
    pub fn step(&mut self) -> bool {
        let now = Instant::now();
        let Some(running) = running() else {
            self.was_empty = false;
            return now >= self.kill_at + self.grace;
        };
        for pid in &running {
            if !self.ended.contains(pid) {
                self.ended.push(*pid);
                send(*pid, libc::SIGTERM);
            }
            if now >= self.kill_at {
                send(*pid, libc::SIGKILL);
            }
        }
        // A process that ends while its children are listed hides them: the next look finds them as ours.
        let is_empty = running.is_empty() && std::mem::replace(&mut self.was_empty, running.is_empty());
        is_empty || now >= self.kill_at + self.grace
    }
}

/// None where they cannot be listed for the moment.
fn running() -> Option<Vec<i32>> {
    let own = std::process::id() as i32;
    Some(proc::tree(own).ok()?.into_iter().filter(|pid| *pid != own && proc::runs(*pid, None)).collect())
}
