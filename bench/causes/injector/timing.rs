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
}

const SHORT_NS: u64 = 50_000;

impl Kind for Slack {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("timer_slack", "timer_slack", "")
    }
    fn strike(&mut self, ns: u64) {
        // SAFETY: neither call touches memory; 0 brings the usual slack back.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns) };
        let before = monotonic_ns();
        sleep_ns(SHORT_NS);
        self.overslept_ns = (monotonic_ns() - before).saturating_sub(SHORT_NS);
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 0) };
    }
    fn settle(&mut self) -> u64 {
        self.overslept_ns
    }
}
