//! Not sending what does not change, but often enough that no watchdog fires.

use crate::error::{Error, within};

/// Suppresses setpoints within a deadband of the last sent one, for at most a third of the watchdog's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeepAlive<const N: usize> {
    deadband: f64,
    interval_ns: u64,
    last: Option<(u64, [f64; N])>,
}

impl<const N: usize> KeepAlive<N> {
    /// `deadband` bounds each axis; 0 suppresses equal setpoints only.
    ///
    /// # Errors
    /// Out of range.
    pub fn new(deadband: f64, watchdog_ns: u64) -> Result<KeepAlive<N>, Error> {
        within("deadband", deadband, 0.0, 1e6)?;
        within("watchdog_ns", watchdog_ns as f64, 1e6, 1e10)?;
        Ok(KeepAlive { deadband, interval_ns: watchdog_ns / 3, last: None })
    }

    /// Whether to send; if not, the setpoint is superseded for [`Reason::Deadband`](crate::ledger::Reason::Deadband).
    /// Call it at the rate of the stream: what it suppresses now it sends at latest a period after the third.
    pub fn is_due(&mut self, setpoint: &[f64; N], period_ns: u64, now_ns: u64) -> bool {
        let is_due = self.last.is_none_or(|(at_ns, sent)| {
            let is_still = sent.iter().zip(setpoint).all(|(sent, new)| (new - sent).abs() <= self.deadband);
            !is_still || now_ns < at_ns || now_ns - at_ns + period_ns > self.interval_ns
        });
        if is_due {
            self.last = Some((now_ns, *setpoint));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sends_changes_at_once_and_the_rest_within_a_third_of_the_watchdog() {
        let mut keep = KeepAlive::new(0.001, 90_000_000).unwrap();
        let period = 8_000_000;
        let mut last = 0;
        let mut sent = 0;
        for n in 0..1000u64 {
            let now = n * period;
            if keep.is_due(&[1.0, 2.0 + 0.0005 * (n % 2) as f64], period, now) {
                assert!(now - last <= 30_000_000);
                (last, sent) = (now, sent + 1);
            }
        }
        assert!(sent < 400);
        assert!(keep.is_due(&[1.0, 2.1], period, last + period));
        assert!(keep.is_due(&[1.0, f64::NAN], period, last + period));
    }
}
