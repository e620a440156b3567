//! Sending again, but never for longer than one period, since the next setpoint is due then.

use crate::error::{Error, within};

/// The budget of one setpoint's transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    period_ns: u64,
    attempts_max: u32,
    started_ns: u64,
    attempts: u32,
}

impl Retry {
    /// At most `attempts_max` attempts within one period.
    ///
    /// # Errors
    /// A period outside 0.1 ms to 1 s, or not 1 to 100 attempts.
    pub fn new(period_ns: u64, attempts_max: u32) -> Result<Retry, Error> {
        within("period_ns", period_ns as f64, 1e5, 1e9)?;
        within("attempts_max", f64::from(attempts_max), 1.0, 100.0)?;
        Ok(Retry { period_ns, attempts_max, started_ns: 0, attempts: 0 })
    }

    /// Begins with a new setpoint; its first attempt is allowed.
    pub fn begin(&mut self, now_ns: u64) {
        (self.started_ns, self.attempts) = (now_ns, 1);
    }

    /// After a failed attempt: whether another is allowed. If not, the setpoint is
    /// [`Fate::Lost`](crate::ledger::Fate::Lost) for [`Reason::Transport`](crate::ledger::Reason::Transport).
    pub fn again(&mut self, now_ns: u64) -> bool {
        let is_allowed = self.attempts < self.attempts_max && self.left_ns(now_ns) > 0;
        self.attempts += u32::from(is_allowed);
        is_allowed
    }

    /// The most that an attempt made now may take: the time-out to give to the socket.
    pub fn left_ns(&self, now_ns: u64) -> u64 {
        // A clock that went back gives no new time.
        let passed = now_ns.checked_sub(self.started_ns).unwrap_or(self.period_ns);
        self.period_ns.saturating_sub(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_with_the_period_or_the_attempts() {
        let mut retry = Retry::new(20_000_000, 3).unwrap();
        retry.begin(1_000);
        assert!(retry.again(5_000_000) && retry.again(6_000_000) && !retry.again(7_000_000));
        retry.begin(100_000_000);
        assert_eq!(retry.left_ns(105_000_000), 15_000_000);
        assert!(!retry.again(120_000_000) && !retry.again(99_000_000));
        assert!(Retry::new(0, 1).is_err() && Retry::new(1_000_000, 0).is_err());
    }
}
