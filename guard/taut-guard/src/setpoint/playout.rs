//! Plays a jittery stream of setpoints out at the servo's own rate, a constant delay behind: 20 ms in, 8 ms out.
//!
//! The delay is one period plus the jitter to be borne (its p99). It grows at once when a setpoint comes later than that,
//! and shrinks slowly. Behind the newest setpoint the motion is extrapolated for two periods, then slowed to rest over two
//! more: never frozen at speed, never run on.

use crate::error::{Error, within};

/// Setpoints kept: the longest delay, and as much again for a player whose own clock fell behind.
const DEPTH: usize = 32;
/// The delay shrinks by 1 ms a second.
const SHRINK_PPM: u64 = 1000;
const DRIFT_PPM: u64 = 200;

/// What a played position was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Two setpoints around it.
    Interpolated,
    /// The last speed, up to two periods on.
    Extrapolated,
    /// The last speed, on its way to zero.
    Slowing,
    /// At rest where it came to.
    Resting,
}

/// A position to send now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampled<const N: usize> {
    /// Not yet limited: a stream that comes back after a gap may be elsewhere. Put a
    /// [`Limiter`](super::Limiter) behind.
    pub setpoint: [f64; N],
    /// What it was made of.
    pub source: Source,
    /// How far behind the stream's best transport the playout is: what jitter costs in feel.
    pub added_delay_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Point<const N: usize> {
    t_ns: i64,
    position: [f64; N],
}

/// One stream's playout buffer.
#[derive(Clone, Debug)]
pub struct Playout<const N: usize> {
    period_ns: u64,
    delay_least_ns: u64,
    delay_most_ns: u64,
    delay_ns: u64,
    points: [Point<N>; DEPTH],
    len: usize,
    /// Least arrival − time of production seen.
    floor_ns: i64,
    last_push_ns: u64,
    played_ns: i64,
}

impl<const N: usize> Playout<N> {
    /// A buffer for setpoints every `period_ns` that come up to `jitter_ns` (p99) later than the soonest. The delay may
    /// grow to `delay_most_ns`.
    ///
    /// # Errors
    /// Out of range, or more delay than the buffer holds.
    pub fn new(period_ns: u64, jitter_ns: u64, delay_most_ns: u64) -> Result<Playout<N>, Error> {
        within("period_ns", period_ns as f64, 1e5, 1e9)?;
        let delay_least_ns = period_ns.saturating_add(jitter_ns);
        let holds = period_ns * (DEPTH as u64 / 2 - 2);
        within("delay_most_ns", delay_most_ns as f64, delay_least_ns as f64, holds as f64)?;
        Ok(Playout {
            period_ns,
            delay_least_ns,
            delay_most_ns,
            delay_ns: delay_least_ns,
            points: [Point { t_ns: 0, position: [0.0; N] }; DEPTH],
            len: 0,
            floor_ns: i64::MAX,
            last_push_ns: 0,
            played_ns: i64::MIN,
        })
    }

    /// Takes a setpoint with its time of production (any clock) and of arrival. `false`: out of order or not finite,
    /// and of no use ([`Reason::OutOfOrder`](crate::ledger::Reason::OutOfOrder), [`Reason::Malformed`](crate::ledger::Reason::Malformed)).
    pub fn push(&mut self, produced_ns: i64, position: [f64; N], arrival_ns: u64) -> bool {
        if position.iter().any(|x| !x.is_finite()) || self.newest().is_some_and(|newest| newest.t_ns >= produced_ns) {
            return false;
        }
        if self.len == DEPTH {
            self.points.copy_within(1.., 0);
            self.len -= 1;
        }
        self.points[self.len] = Point { t_ns: produced_ns, position };
        self.len += 1;
        let offset = (arrival_ns as i64).saturating_sub(produced_ns);
        let passed = arrival_ns.saturating_sub(self.last_push_ns);
        // As fast as two clocks may drift apart, the best transport may seem to get worse.
        let risen = self.floor_ns.saturating_add((passed / 1_000_000 * DRIFT_PPM) as i64);
        self.floor_ns = risen.min(offset);
        let shrunk = self.delay_ns.saturating_sub(passed / 1_000_000 * SHRINK_PPM);
        let needed = offset.abs_diff(self.floor_ns).saturating_add(self.period_ns);
        self.delay_ns = shrunk.max(needed).clamp(self.delay_least_ns, self.delay_most_ns);
        self.last_push_ns = arrival_ns;
        true
    }

    /// The position at `now`, or `None` before the first two setpoints are due. Time of playout never runs back.
    pub fn play(&mut self, now_ns: u64) -> Option<Sampled<N>> {
        if self.len < 2 {
            return None;
        }
        let wanted = (now_ns as i64).saturating_sub(self.floor_ns).saturating_sub(self.delay_ns as i64);
        let t_ns = wanted.max(self.played_ns);
        if t_ns < self.points[0].t_ns {
            return None;
        }
        self.played_ns = t_ns;
        let (setpoint, source) = self.at(t_ns);
        Some(Sampled { setpoint, source, added_delay_ns: self.delay_ns })
    }

    fn at(&self, t_ns: i64) -> ([f64; N], Source) {
        let points = &self.points[..self.len];
        let after = points.partition_point(|point| point.t_ns <= t_ns).clamp(1, self.len - 1);
        let (a, b) = (points[after - 1], points[after]);
        let span = b.t_ns.saturating_sub(a.t_ns) as f64;
        let along =
            |share: f64| core::array::from_fn(|axis| a.position[axis] + share * (b.position[axis] - a.position[axis]));
        let beyond = t_ns.saturating_sub(b.t_ns) as f64;
        if beyond <= 0.0 {
            return (along(t_ns.saturating_sub(a.t_ns) as f64 / span), Source::Interpolated);
        }
        let coast = 2.0 * self.period_ns as f64;
        let slowing = (beyond - coast).clamp(0.0, coast);
        let way = beyond.min(coast) + slowing - slowing * slowing / (2.0 * coast);
        let source = match beyond {
            beyond if beyond <= coast => Source::Extrapolated,
            beyond if beyond < 2.0 * coast => Source::Slowing,
            _ => Source::Resting,
        };
        (along(1.0 + way / span), source)
    }

    fn newest(&self) -> Option<&Point<N>> {
        self.len.checked_sub(1).map(|last| &self.points[last])
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    const MS: u64 = 1_000_000;

    fn playout() -> Playout<1> {
        Playout::new(20 * MS, 15 * MS, 200 * MS).unwrap()
    }

    #[test]
    fn jitter_within_the_delay_leaves_no_trace() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut playout = playout();
        let mut arrivals: std::vec::Vec<(u64, u64)> =
            (0..500).map(|n| (n * 20 * MS + random.u64(..15 * MS), n)).collect();
        arrivals.sort_unstable();
        let mut next = 0;
        let mut last: Option<f64> = None;
        for step in 0..1200u64 {
            let now = step * 8 * MS;
            while next < arrivals.len() && arrivals[next].0 <= now {
                let (arrival, n) = arrivals[next];
                assert!(playout.push((n * 20 * MS) as i64, [n as f64 * 20.0], arrival));
                next += 1;
            }
            let Some(sampled) = playout.play(now) else { continue };
            assert_eq!(sampled.added_delay_ns, 35 * MS);
            assert_eq!(sampled.source, Source::Interpolated);
            // 1 unit a millisecond; the floor settles within the first frames.
            if let Some(last) = last
                && step > 100
            {
                assert!((sampled.setpoint[0] - last - 8.0).abs() < 1e-6 + 0.5, "{step}");
            }
            last = Some(sampled.setpoint[0]);
        }
    }

    #[test]
    fn a_gap_is_extrapolated_two_periods_then_slowed_to_rest() {
        let mut playout = playout();
        for n in 0..5u64 {
            playout.push((n * 20 * MS) as i64, [n as f64 * 20.0], n * 20 * MS);
        }
        let mut at = |ms: u64| {
            let s = playout.play((ms + 35) * MS).unwrap();
            (s.setpoint[0], s.source)
        };
        assert_eq!(at(70), (70.0, Source::Interpolated));
        assert_eq!(at(100), (100.0, Source::Extrapolated));
        assert_eq!(at(120), (120.0, Source::Extrapolated));
        assert_eq!(at(140), (135.0, Source::Slowing));
        assert_eq!(at(160), (140.0, Source::Resting));
        assert_eq!(at(900), (140.0, Source::Resting));
    }

    #[test]
    fn the_delay_grows_at_once_shrinks_slowly_and_time_never_runs_back() {
        let mut playout = playout();
        let mut furthest = f64::MIN;
        for n in 0..400u64 {
            let late = if n == 50 { 100 * MS } else { 0 };
            let now = n * 20 * MS + late;
            // Those behind the late one wait for it.
            let arrival = if (51..55).contains(&n) { 1100 * MS + n } else { now };
            playout.push((n * 20 * MS) as i64, [n as f64], arrival);
            if let Some(sampled) = playout.play(arrival) {
                assert!(sampled.setpoint[0] >= furthest - 1e-9);
                furthest = sampled.setpoint[0];
            }
            match n {
                49 => assert_eq!(playout.delay_ns, 35 * MS),
                50 => assert!((119 * MS..=120 * MS).contains(&playout.delay_ns)),
                100 => assert!((118 * MS..120 * MS).contains(&playout.delay_ns)),
                _ => {}
            }
        }
        assert!(!playout.push(0, [0.0], 0) && !playout.push(i64::MAX, [f64::NAN], 0));
        assert!(Playout::<1>::new(20 * MS, 15 * MS, 300 * MS).is_err());
    }
}
