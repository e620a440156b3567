//! How much later than asked for the kernel may let a timer fire, by its own rules.

use std::time::Duration;

use crate::{Policy, Wake};

/// Slack of a thread by default: 50 µs (`init_task`; prctl(2) PR_SET_TIMERSLACK).
pub const USUAL_NS: u64 = 50_000;
/// select, poll and their kin take no more than this (`MAX_SLACK` in fs/select.c).
const SELECT_MAX_NS: u64 = 100_000_000;

/// The slack of one sleep. `own` is the thread's, `None` for the default; `nice` its nice value.
///
/// Linux: hrtimers of real-time threads have none, timerfds never have any; `select`, `poll` and `epoll_wait` with a
/// time-out take 0.1 % of it, niced ones 0.5 % (`__estimate_accuracy`, fs/select.c), but at least the thread's own.
pub fn slack_ns(wake: Wake, policy: Policy, sleep: Duration, own: Option<Duration>, nice: i32) -> u64 {
    let own = own.map_or(USUAL_NS, |slack| slack.as_nanos() as u64);
    match wake {
        _ if policy.is_real_time() => 0,
        Wake::Timerfd | Wake::Epoll | Wake::Spin => 0,
        Wake::Nanosleep | Wake::Relative | Wake::Condvar => own,
        Wake::Select => {
            let share = if nice > 0 { 200 } else { 1000 };
            (sleep.as_nanos() as u64 / share).min(SELECT_MAX_NS).max(own)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_selects_have_more() {
        let select = |ms| slack_ns(Wake::Select, Policy::Other, Duration::from_millis(ms), None, 0);
        assert_eq!([select(1), select(10), select(100), select(1000)], [50_000, 50_000, 100_000, 1_000_000]);
        assert_eq!(select(1_000_000), SELECT_MAX_NS);
        assert_eq!(slack_ns(Wake::Select, Policy::Other, Duration::from_secs(1), None, 5), 5_000_000);
        assert_eq!(slack_ns(Wake::Select, Policy::Fifo, Duration::from_secs(1), None, 0), 0);
        assert_eq!(slack_ns(Wake::Timerfd, Policy::Other, Duration::from_secs(1), None, 0), 0);
        assert_eq!(
            slack_ns(Wake::Relative, Policy::Other, Duration::from_secs(1), Some(Duration::from_nanos(1)), 0),
            1
        );
    }
}
