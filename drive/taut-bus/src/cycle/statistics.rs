//! Phase times of many cycles, kept without allocating while the loop runs.

use taut_stats::Distribution;

use super::repeat::Cycle;

/// A phase by name: how long it took in each cycle, ns.
type Phase = (&'static str, Vec<u64>);

/// Times of the first so many cycles.
#[derive(Clone, Debug)]
pub struct Statistics {
    phases: [Phase; 7],
    room: usize,
    cycles: u64,
    skipped: u64,
    expected: u64,
    missing: u64,
}

impl Statistics {
    /// Room for so many cycles; those beyond are counted, not timed.
    pub fn with_room(cycles: usize) -> Statistics {
        let phase = |name| (name, Vec::with_capacity(cycles));
        Statistics {
            phases: ["wait", "control", "send", "imu", "receive", "parse", "cycle"].map(phase),
            room: cycles,
            cycles: 0,
            skipped: 0,
            expected: 0,
            missing: 0,
        }
    }

    /// Takes the next cycle.
    pub fn record(&mut self, cycle: &Cycle) {
        self.cycles += 1;
        self.skipped += cycle.skipped;
        self.expected += cycle.outcome.expected as u64;
        self.missing += cycle.outcome.missing as u64;
        if self.phases[0].1.len() == self.room {
            return;
        }
        let t = cycle.outcome.times;
        let moments = [cycle.due_ns, cycle.woke_ns, t.send_ns, t.imu_ns, t.receive_ns, t.end_ns, cycle.done_ns];
        for (at, pair) in moments.windows(2).enumerate() {
            self.phases[at].1.push(pair[1].saturating_sub(pair[0]));
        }
        self.phases[6].1.push(cycle.done_ns.saturating_sub(cycle.woke_ns));
    }

    /// Cycles that ran.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Intended cycles whose time had passed before their turn.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Replies that were wanted, and of these those that did not come in their cycle.
    pub fn replies(&self) -> (u64, u64) {
        (self.expected, self.missing)
    }

    /// Each phase's times in the order of cycles: `wait` is how late the thread woke, `cycle` is from there to the end.
    pub fn phases(&self) -> &[(&'static str, Vec<u64>)] {
        &self.phases
    }

    /// The same as distributions.
    pub fn distributions(&self) -> Vec<(&'static str, Distribution)> {
        let of = |ns: &Vec<u64>| {
            let mut sorted = ns.clone();
            sorted.sort_unstable();
            Distribution::of(ns, &sorted)
        };
        self.phases.iter().map(|(name, ns)| (*name, of(ns))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::{Outcome, Times};

    #[test]
    fn phases_are_the_time_to_the_next_and_add_up() {
        let mut statistics = Statistics::with_room(1);
        let times = Times { send_ns: 130, imu_ns: 170, receive_ns: 250, end_ns: 410 };
        let outcome = Outcome { expected: 12, missing: 1, times, ..Outcome::default() };
        let cycle = Cycle { number: 0, due_ns: 100, woke_ns: 110, done_ns: 730, skipped: 2, outcome };
        statistics.record(&cycle);
        statistics.record(&cycle);
        let found: Vec<(&str, Vec<u64>)> = statistics.phases().to_vec();
        let expected = [
            ("wait", 10),
            ("control", 20),
            ("send", 40),
            ("imu", 80),
            ("receive", 160),
            ("parse", 320),
            ("cycle", 620),
        ];
        assert_eq!(found, expected.map(|(name, ns)| (name, vec![ns])));
        assert_eq!((statistics.cycles(), statistics.skipped(), statistics.replies()), (2, 4, (24, 2)));
    }
}
