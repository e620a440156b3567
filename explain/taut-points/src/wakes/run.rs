//! What a thread does from the end of one main wait to the beginning of the next: `worker` finds them.

use super::waits::Waker;

/// From the end of a main wait until the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Its thread.
    pub tid: i32,
    /// When its wait returned.
    pub start_ns: u64,
    /// When it waited again.
    pub done_ns: u64,
    /// On a CPU from start to done; `None` where it is not known what the thread did all the time.
    pub cpu_ns: Option<u64>,
    /// When it was woken; `None` if it did not sleep, or the recording does not say.
    pub woken_ns: Option<u64>,
    pub waker: Waker,
    /// When what it waited for was there: the timer's moment, the wake, or the sending while it was busy.
    pub release_ns: Option<u64>,
    /// How long it was off its CPU the last time before it waited again, and the time before.
    pub off_ns: [u64; 2],
    /// Events of it are missing.
    pub is_lost: bool,
    /// When its wait began.
    pub from_ns: u64,
    /// Whether it found what it waited for without sleeping, and something must say that this was so.
    pub is_ready: bool,
}

impl Run {
    /// Whether a timer that was set before the wait ended it, as one of a descriptor: what the wait rounds does not concern it.
    pub fn is_of_earlier_timer(&self) -> bool {
        matches!(self.waker, Waker::Timer { armed_ns, .. } if armed_ns < self.from_ns)
    }
}
