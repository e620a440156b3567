//! How old the newest sample is: the second part of the guard, beside speed.
//!
//! A frame's offset is its arrival less its time by the robot. The least offset is the transport at its best; what lies
//! above is excess age. The least may rise by no more than the clocks may drift, so a queue that builds up is not
//! forgotten (200 ppm is 2 ms in 10 s).

use crate::parameters::Parameters;

/// The newest sample's times, and the least offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freshness {
    arrival_ns: u64,
    t_ns: i64,
    floor_ns: i64,
    rise_ppm: i64,
}

impl Freshness {
    /// Begins with the first frame after start or resynchronisation.
    pub fn new(parameters: &Parameters, arrival_ns: u64, t_ns: i64) -> Freshness {
        Freshness { arrival_ns, t_ns, floor_ns: arrival_ns as i64 - t_ns, rise_ppm: i64::from(parameters.drift_ppm) }
    }

    /// Takes the next new frame; gives its excess age.
    pub fn hear(&mut self, arrival_ns: u64, t_ns: i64) -> u64 {
        let passed = arrival_ns.saturating_sub(self.arrival_ns) as i64;
        let offset = arrival_ns as i64 - t_ns;
        // Divided first: nanoseconds times ppm overflow after three months of silence.
        let risen =
            self.floor_ns + (passed / 1_000_000) * self.rise_ppm + (passed % 1_000_000) * self.rise_ppm / 1_000_000;
        self.floor_ns = risen.min(offset);
        self.arrival_ns = self.arrival_ns.max(arrival_ns);
        self.t_ns = t_ns;
        (offset - self.floor_ns) as u64
    }

    /// Time since a new frame came.
    pub fn silence_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.arrival_ns)
    }

    /// Age of the newest sample at `now`, beyond the transport at its best.
    pub fn age_ns(&self, now_ns: u64) -> u64 {
        (now_ns as i64 - self.t_ns - self.floor_ns).max(0) as u64
    }
}

/// Where a stream has no source stamps: whether its count really advances once a period, from the lower envelope
/// of arrivals, in blocks of 2 s. Queues only lift that envelope; a wrong period tilts it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeriodMonitor {
    block: Option<(u64, i64)>,
    anchor: Option<(u64, i64)>,
    misses: u32,
    is_verified: bool,
}

/// What the monitor says after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Period {
    Unproven,
    Verified,
    /// Twice in a row the envelope moved by more than drift and half a period.
    Wrong,
}

const BLOCK_NS: u64 = 2_000_000_000;
const ANCHOR_NS: u64 = 30_000_000_000;

impl PeriodMonitor {
    /// After a resynchronisation offsets begin again; what was verified stays so.
    pub fn restart(&mut self) {
        *self = PeriodMonitor { is_verified: self.is_verified, ..PeriodMonitor::default() };
    }

    pub fn is_verified(&self) -> bool {
        self.is_verified
    }

    pub fn hear(&mut self, parameters: &Parameters, arrival_ns: u64, t_ns: i64) -> Period {
        let offset = arrival_ns as i64 - t_ns;
        let (start, least) = *self.block.get_or_insert((arrival_ns, offset));
        self.block = Some((start, least.min(offset)));
        if arrival_ns.saturating_sub(start) >= BLOCK_NS {
            self.close(parameters, start, least.min(offset));
            self.block = None;
        }
        match (self.misses >= 2, self.is_verified) {
            (true, _) => Period::Wrong,
            (_, true) => Period::Verified,
            _ => Period::Unproven,
        }
    }

    fn close(&mut self, parameters: &Parameters, start: u64, least: i64) {
        let Some((anchor, floor)) = self.anchor else {
            self.anchor = Some((start, least));
            return;
        };
        let baseline = start - anchor;
        // A block's least lies anywhere in it.
        let drift = (baseline + BLOCK_NS) / 1_000_000 * u64::from(parameters.drift_ppm);
        if least.abs_diff(floor) > drift + parameters.source_error_ns + parameters.period_ns / 2 {
            self.misses += 1;
            return;
        }
        (self.misses, self.is_verified) = (0, true);
        if baseline > ANCHOR_NS {
            self.anchor = Some((start, least));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn parameters() -> Parameters {
        Parameters::for_tcp(10 * MS, 1000.0)
    }

    #[test]
    fn age_is_counted_from_the_best_transport_seen() {
        let mut fresh = Freshness::new(&parameters(), 130 * MS, 100 * MS as i64);
        assert_eq!(fresh.hear(130 * MS, 110 * MS as i64), 0);
        assert_eq!(fresh.hear(180 * MS, 120 * MS as i64), 40 * MS - 10_000);
        assert_eq!(fresh.silence_ns(185 * MS), 5 * MS);
        assert_eq!(fresh.age_ns(185 * MS), 45 * MS - 10_000);
        assert_eq!(fresh.silence_ns(0), 0);
    }

    #[test]
    fn a_queue_that_builds_up_is_not_forgotten() {
        let mut fresh = Freshness::new(&parameters(), 0, 0);
        let excess = (1..=1000).map(|n| fresh.hear(n * 10 * MS + 30 * MS, (n * 10 * MS) as i64)).last().unwrap();
        assert_eq!(excess, 30 * MS - 2_006_000);
    }

    fn verdict(period_ns: u64, seconds: u64, jitter: impl Fn(u64) -> u64) -> Period {
        let mut monitor = PeriodMonitor::default();
        let frames = seconds * 1_000_000_000 / period_ns;
        (0..frames)
            .map(|n| monitor.hear(&parameters(), n * period_ns + jitter(n), (n * 10 * MS) as i64))
            .last()
            .unwrap()
    }

    #[test]
    fn the_period_is_verified_from_the_lower_envelope() {
        let bursts = |n: u64| (n * 7919 % 41) * MS;
        assert_eq!(verdict(10 * MS, 3, bursts), Period::Unproven);
        assert_eq!(verdict(10 * MS, 5, bursts), Period::Verified);
        assert_eq!(verdict(10_002_000, 120, bursts), Period::Verified);
        assert_eq!(verdict(8 * MS, 10, bursts), Period::Wrong);
        assert_eq!(verdict(12 * MS, 10, bursts), Period::Wrong);
        assert_eq!(verdict(10_010_000, 60, bursts), Period::Wrong);
    }
}
