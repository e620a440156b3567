//! Fewer setpoints on purpose: 50 a second in, N a second out, each that is left out with its reason.

use crate::error::{Error, within};

/// Keeps the first setpoint of each output period, by the time of production, so that jitter changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimate {
    period_ns: i64,
    next_ns: Option<i64>,
}

impl Decimate {
    /// One setpoint every `period_ns` at most.
    ///
    /// # Errors
    /// A period outside 0.1 ms to 10 s.
    pub fn new(period_ns: u64) -> Result<Decimate, Error> {
        within("period_ns", period_ns as f64, 1e5, 1e10)?;
        Ok(Decimate { period_ns: period_ns as i64, next_ns: None })
    }

    /// Whether to send this one; if not, it is superseded for [`Reason::Decimated`](crate::ledger::Reason::Decimated). After
    /// a gap the periods begin again.
    pub fn keeps(&mut self, produced_ns: i64) -> bool {
        let next_ns = *self.next_ns.get_or_insert(produced_ns);
        if produced_ns < next_ns {
            return false;
        }
        let following = next_ns.saturating_add(self.period_ns);
        self.next_ns =
            Some(if following > produced_ns { following } else { produced_ns.saturating_add(self.period_ns) });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_rate_is_kept_exactly_even_where_it_does_not_divide() {
        for hertz in [10, 25, 30, 50] {
            let mut decimate = Decimate::new(1_000_000_000 / hertz).unwrap();
            let kept = (0..50 * 60).filter(|n| decimate.keeps(n * 20 * MS)).count();
            assert!(kept.abs_diff(hertz as usize * 60) <= 1, "{hertz}: {kept}");
        }
    }

    #[test]
    fn a_gap_is_not_made_up_for() {
        let mut decimate = Decimate::new(100_000_000).unwrap();
        let kept = [0, 50, 100, 1000, 1050, 1099, 1100, 1200].map(|ms| decimate.keeps(ms * MS));
        assert_eq!(kept, [true, false, true, true, false, false, true, true]);
        assert!(Decimate::new(0).is_err());
    }
}
