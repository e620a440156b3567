//! How the recorder shares a CPU with what it records: all others go first, unless a ring is about to overflow.

use rustix::time::{ClockId, clock_gettime};

use crate::pace::Pace;

/// The longest that the kernel grants.
const LONG_NS: u64 = 100_000_000;
/// The kernel's own.
const USUAL_NS: u64 = 0;
/// Of a wait for a CPU. A look that comes so late finds more than the pace allows for.
const LATE_NS: u64 = 20_000_000;
/// The load that held the CPUs is still there.
const HOLD_NS: u64 = 10_000_000_000;

/// The slice of a recording's thread.
#[derive(Debug)]
pub struct Manners {
    /// Whoever gave the recorder a policy of its own keeps it.
    is_ours: bool,
    /// Until when the slice is the usual one.
    usual_until_ns: u64,
    slice_ns: u64,
    /// At the last look: the time, this thread's time on a CPU, and how long it meant to rest.
    looked_ns: u64,
    on_cpu_ns: u64,
    rest_ns: u64,
}

impl Manners {
    /// As [`give_way`].
    pub fn give_way() -> Manners {
        let is_ours = give_way();
        Manners { is_ours, usual_until_ns: 0, slice_ns: LONG_NS, looked_ns: 0, on_cpu_ns: 0, rest_ns: u64::MAX }
    }

    /// Takes the slice that fits what a look at `now_ns` found, and how late it came; the next is after `rest_ns`.
    pub fn after(&mut self, found: Pace, now_ns: u64, rest_ns: u64) {
        let on_cpu = clock_gettime(ClockId::ThreadCPUTime);
        let on_cpu_ns = on_cpu.tv_sec as u64 * 1_000_000_000 + on_cpu.tv_nsec as u64;
        let worked_ns = on_cpu_ns.saturating_sub(self.on_cpu_ns);
        let waited_ns = now_ns.saturating_sub(self.looked_ns).saturating_sub(self.rest_ns).saturating_sub(worked_ns);
        (self.looked_ns, self.on_cpu_ns, self.rest_ns) = (now_ns, on_cpu_ns, rest_ns);
        let before = self.slice_ns;
        self.slice_ns = self.wanted(found, waited_ns, now_ns);
        if self.is_ours && self.slice_ns != before {
            batch(self.slice_ns);
        }
    }

    /// A thread with a long slice has a late deadline: on a crowded CPU it waits until each of the others had as much, 100 ms
    /// and more, which is how a ring of 131 ms overflows. The usual slice waits as long as everybody's.
    fn wanted(&mut self, found: Pace, waited_ns: u64, now_ns: u64) -> u64 {
        if found == Pace::Behind && waited_ns > LATE_NS {
            self.usual_until_ns = now_ns + HOLD_NS;
        }
        if now_ns < self.usual_until_ns { USUAL_NS } else { LONG_NS }
    }
}

/// Lets what is recorded go first: a batch thread gets its share of a CPU, but takes it from nobody when it
/// wakes; and with a long slice (Linux 6.12; ignored before) threads that wake take it from the recorder at
/// once. It concerns the calling thread. The command is forked before this, so that it does not inherit it; whoever
/// gave the recorder a policy of its own keeps it: false then.
pub fn give_way() -> bool {
    // SAFETY: it concerns the calling thread, and reads nothing.
    let is_ours = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
    if is_ours {
        batch(LONG_NS);
    }
    is_ours
}

fn batch(slice_ns: u64) {
    // SAFETY: both calls concern the calling thread only; all zeros is a valid attribute, of which only
    // the fields set here matter, and the kernel reads as many bytes as `size` says.
    unsafe {
        let mut attributes: libc::sched_attr = std::mem::zeroed();
        attributes.size = size_of::<libc::sched_attr>() as u32;
        attributes.sched_policy = libc::SCHED_BATCH as u32;
        attributes.sched_nice = libc::getpriority(libc::PRIO_PROCESS, 0);
        attributes.sched_runtime = slice_ns;
        libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slice_is_long_but_for_a_while_after_a_wait_that_filled_a_ring() {
        const S: u64 = 1_000_000_000;
        let (mut manners, late) = (Manners::give_way(), LATE_NS + 1);
        let looks = [
            // A ring that is filled fast, and one that nobody fills while the recorder waits.
            (S, Pace::Behind, 0, LONG_NS),
            (2 * S, Pace::Lively, late, LONG_NS),
            (3 * S, Pace::Behind, late, USUAL_NS),
            (4 * S, Pace::Calm, 0, USUAL_NS),
            (12 * S, Pace::Behind, late, USUAL_NS),
            (21 * S, Pace::Lively, late, USUAL_NS),
            (22 * S, Pace::Behind, 0, LONG_NS),
        ];
        for (now_ns, pace, waited_ns, slice_ns) in looks {
            assert_eq!(manners.wanted(pace, waited_ns, now_ns), slice_ns, "{} s", now_ns / S);
        }
    }

    #[test]
    fn a_wait_is_neither_rest_nor_work() {
        let mut manners = Manners::give_way();
        let mut look = |now_ms: u64, rest_ms: u64| {
            manners.after(Pace::Behind, now_ms * 1_000_000, rest_ms * 1_000_000);
            manners.slice_ns
        };
        // The first look is of no rest.
        assert_eq!(look(1_000_000, 200), LONG_NS);
        assert_eq!(look(1_000_210, 40), LONG_NS);
        assert_eq!(look(1_000_380, 40), USUAL_NS);
    }

    #[test]
    fn a_policy_of_its_own_is_kept() {
        // SAFETY: it concerns the calling thread, and reads nothing.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        std::thread::spawn(move || {
            let mut manners = Manners::give_way();
            assert_eq!((manners.is_ours, policy()), (true, libc::SCHED_BATCH));
            manners.after(Pace::Behind, u64::MAX / 2, 0);
            assert_eq!(policy(), libc::SCHED_BATCH);
            // That of a batch thread may be its owner's.
            assert!(!Manners::give_way().is_ours);
        })
        .join()
        .unwrap();
    }
}
