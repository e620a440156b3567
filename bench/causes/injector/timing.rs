//! Sleeping, as asked for and longer.

use crate::{
    clock::{monotonic_ns, sleep_ns},
    kinds::Kind,
};

#[derive(Default)]
pub struct Sleep {
    asked_ns: u64,
}

impl Kind for Sleep {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("sleep", "sleep", "")
    }
    fn strike(&mut self, ns: u64) {
        self.asked_ns = ns;
        sleep_ns(ns);
    }
    fn settle(&mut self) -> u64 {
        self.asked_ns
    }
}

/// A short sleep under a timer slack of the drawn size: the kernel may be that late, and on a quiet CPU it is.
#[derive(Default)]
pub struct Slack {
    overslept_ns: u64,
    /// What a sleep without slack oversleeps: the way from the timer to the CPU.
    usually_ns: u64,
}

const SHORT_NS: u64 = 50_000;
const NO_SLACK_NS: u64 = 1;

/// Sleeps for [`SHORT_NS`] and returns how much longer that was.
fn overslept(slack_ns: u64) -> u64 {
    // SAFETY: neither call touches memory; 0 brings the usual slack back.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) };
    let before = monotonic_ns();
    sleep_ns(SHORT_NS);
    let overslept_ns = (monotonic_ns() - before).saturating_sub(SHORT_NS);
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 0) };
    overslept_ns
}

impl Kind for Slack {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("timer_slack", "timer_slack", "")
    }
    fn prepare(&mut self, _ns: u64) {
        if self.usually_ns == 0 {
            let mut sleeps: Vec<u64> = (0..51).map(|_| overslept(NO_SLACK_NS)).collect();
            sleeps.sort_unstable();
            self.usually_ns = sleeps[25];
        }
    }
    fn strike(&mut self, ns: u64) {
        self.overslept_ns = overslept(ns);
    }
    /// Sleeps as well, without slack.
    fn usual(&mut self) {
        overslept(NO_SLACK_NS);
    }
    fn settle(&mut self) -> u64 {
        self.overslept_ns.saturating_sub(self.usually_ns)
    }
}
