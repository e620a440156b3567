//! Lets what is recorded go first: by the thread's policy, and by pauses in long work.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// The longest work without a pause …
const LONGEST: Duration = Duration::from_micros(150);
/// … and the pause. A thread that waits for the CPU gets it as soon as the pause begins.
const PAUSE: Duration = Duration::from_micros(20);

thread_local! {
    /// `None` where the thread does not give way.
    static STRETCH: Cell<Option<Stretch>> = const { Cell::new(None) };
}

/// Work without a pause.
#[derive(Clone, Copy)]
struct Stretch {
    since: Instant,
    /// The thread's CPU time at that moment.
    cpu: Duration,
    longest: Duration,
}

impl Stretch {
    fn new(longest: Duration) -> Stretch {
        Stretch { since: Instant::now(), cpu: cpu_time(), longest }
    }
}

/// Makes the calling thread give way, unless it was given a policy. A batch thread gets its share of a CPU, but takes it from no
/// thread when it wakes; and with a long slice (Linux 6.12; ignored before) threads of the same session and control group that wake
/// take it from this one at once. The command is forked before this, so that it does not inherit it.
pub fn give_way() {
    /// The longest that the kernel grants.
    const SLICE_NS: u64 = 100_000_000;
    // SAFETY: all calls concern the calling thread only; all zeros is a valid attribute, of which only
    // the fields set here matter, and the kernel reads as many bytes as `size` says.
    unsafe {
        if libc::sched_getscheduler(0) != libc::SCHED_OTHER {
            return;
        }
        let mut attributes: libc::sched_attr = std::mem::zeroed();
        attributes.size = size_of::<libc::sched_attr>() as u32;
        attributes.sched_policy = libc::SCHED_BATCH as u32;
        attributes.sched_nice = libc::getpriority(libc::PRIO_PROCESS, 0);
        attributes.sched_runtime = SLICE_NS;
        libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0);
        // With the default slack of 50 µs a pause would last up to 70 µs.
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0);
    }
    STRETCH.set(Some(Stretch::new(LONGEST)));
}

/// A new stretch of work begins, after the thread slept for a reason of its own. Of a recorder that is behind it has no pause: they would
/// cost a tenth of what it can take.
pub fn begin(is_behind: bool) {
    if STRETCH.get().is_some() {
        STRETCH.set(Some(Stretch::new(if is_behind { Duration::MAX } else { LONGEST })));
    }
}

/// Sleeps for a moment if the thread gives way and has worked for long; called between pieces of work of some 0.1 ms.
///
/// A policy is not enough. The kernel weighs sessions and control groups, not threads, and a thread of another one that woke waited for
/// up to 3 ms while the recorder worked through what 40 ms had brought (Linux 6.18; `bench/ros2/matrix --cost`).
pub fn pause_if_due() {
    let Some(stretch) = STRETCH.get() else { return };
    let from = Instant::now();
    if from.duration_since(stretch.since) < stretch.longest {
        return;
    }
    // Time in which others had the CPU is no work.
    let worked = cpu_time().saturating_sub(stretch.cpu);
    if let Some(since) = from.checked_sub(worked).filter(|_| worked < stretch.longest) {
        STRETCH.set(Some(Stretch { since, ..stretch }));
        return;
    }
    std::thread::sleep(PAUSE);
    STRETCH.set(Some(Stretch::new(longest_after(from.elapsed()))));
}

/// On a busy CPU the pause lasts until others had their turn. The recorder then works as long as it was away, and so keeps
/// half of the CPU.
fn longest_after(away: Duration) -> Duration {
    LONGEST.max(away)
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this thread paused during long work: only a pause begins a new stretch there.
    fn pauses(work: impl FnOnce()) -> bool {
        let begin = || STRETCH.get().map(|stretch| stretch.cpu);
        let before = begin();
        work();
        begin() != before
    }

    fn long_work() {
        let begin = cpu_time();
        while cpu_time() - begin < 10 * LONGEST {
            pause_if_due();
        }
    }

    fn in_a_thread(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().unwrap();
    }

    #[test]
    fn long_work_has_pauses_where_the_thread_gives_way() {
        in_a_thread(|| {
            assert!(!pauses(long_work));
            give_way();
            assert!(pauses(long_work));
        });
    }

    #[test]
    fn a_recorder_that_is_behind_does_not_pause_and_pauses_again_later() {
        in_a_thread(|| {
            give_way();
            begin(true);
            assert!(!pauses(long_work));
            begin(false);
            assert!(pauses(long_work));
        });
    }

    #[test]
    fn a_thread_with_a_policy_of_its_own_does_not_give_way() {
        in_a_thread(|| {
            // SAFETY: an all-zero parameter is right for this policy, and the call concerns this thread only.
            let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &std::mem::zeroed()) };
            assert_eq!(set, 0);
            give_way();
            assert!(STRETCH.get().is_none());
        });
    }

    #[test]
    fn the_work_after_a_pause_is_as_long_as_the_pause() {
        let three = Duration::from_millis(3);
        assert_eq!([Duration::ZERO, PAUSE, three].map(longest_after), [LONGEST, LONGEST, three]);
    }

    #[test]
    fn time_without_the_cpu_is_no_work() {
        in_a_thread(|| {
            give_way();
            let Some(long_ago) = Instant::now().checked_sub(Duration::from_secs(1)) else { return };
            let longest = Duration::from_millis(500);
            STRETCH.set(Some(Stretch { since: long_ago, longest, ..Stretch::new(LONGEST) }));
            assert!(!pauses(pause_if_due));
            // The next look at the clock of the CPU is due when it could have worked so long.
            assert!(STRETCH.get().unwrap().since > long_ago);
        });
    }
}
