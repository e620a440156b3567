//! The chain of time-outs. Each must fire before the next larger one, or a long one hides a short one.

use crate::error::{Error, within};

/// The time-outs from the cycle to the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The host's control period.
    pub cycle_ns: u64,
    /// The host's own gap after which it no longer trusts what it knows.
    pub host_stale_ns: u64,
    /// τ: the servo's watchdog.
    pub servo_ns: u64,
    /// No word from the operator.
    pub operator_ns: u64,
    /// An arm's own stop after loss of communication, and the p99.9 of the gaps between commands it must bear.
    pub arm_stop_and_gap_ns: Option<(u64, u64)>,
}

impl Default for Timeouts {
    /// 1 ms, 20 ms, 100 ms, 1 s.
    fn default() -> Timeouts {
        Timeouts {
            cycle_ns: 1_000_000,
            host_stale_ns: 20_000_000,
            servo_ns: 100_000_000,
            operator_ns: 1_000_000_000,
            arm_stop_and_gap_ns: None,
        }
    }
}

impl Timeouts {
    /// Refuses a chain that does not nest: cycle < τ/3, host stale < τ < operator, arm stop > p99.9 gap.
    ///
    /// # Errors
    /// Says which two contradict each other.
    pub fn check(&self) -> Result<(), Error> {
        within("cycle_ns", self.cycle_ns as f64, 1e4, 1e9)?;
        within("operator_ns", self.operator_ns as f64, 1e6, 60e9)?;
        let must = |holds: bool, otherwise| if holds { Ok(()) } else { Err(Error::Contradiction(otherwise)) };
        must(
            self.cycle_ns.saturating_mul(3) < self.servo_ns,
            "cycle_ns must be below a third of servo_ns: one lost command must not time out",
        )?;
        must(self.cycle_ns < self.host_stale_ns, "host_stale_ns must exceed cycle_ns")?;
        must(
            self.host_stale_ns < self.servo_ns,
            "host_stale_ns must be below servo_ns: the host degrades before its servos do",
        )?;
        must(self.servo_ns < self.operator_ns, "operator_ns must exceed servo_ns")?;
        let bears = self.arm_stop_and_gap_ns.is_none_or(|(stop, gap)| stop > gap);
        must(bears, "the arm's stop after loss of communication must exceed the p99.9 of the gaps between commands")
    }

    /// The cycles without a reply from a servo after which it no longer counts as known.
    pub fn reply_age_cycles(&self) -> u64 {
        self.host_stale_ns / self.cycle_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_does_not_nest_is_refused() {
        let usual = Timeouts::default();
        assert_eq!(usual.check(), Ok(()));
        assert_eq!(usual.reply_age_cycles(), 20);
        let arm = |stop, gap| Timeouts { arm_stop_and_gap_ns: Some((stop, gap)), ..usual };
        assert_eq!(arm(110_000_000, 40_000_000).check(), Ok(()));
        for wrong in [
            Timeouts { cycle_ns: 34_000_000, host_stale_ns: 50_000_000, ..usual },
            Timeouts { host_stale_ns: 1_000_000, ..usual },
            Timeouts { host_stale_ns: 100_000_000, ..usual },
            Timeouts { operator_ns: 100_000_000, ..usual },
            arm(110_000_000, 110_000_000),
        ] {
            assert!(matches!(wrong.check(), Err(Error::Contradiction(_))), "{wrong:?}");
        }
        for wrong in [Timeouts { cycle_ns: 0, ..usual }, Timeouts { operator_ns: u64::MAX, ..usual }] {
            assert!(matches!(wrong.check(), Err(Error::OutOfRange { .. })), "{wrong:?}");
        }
    }
}
