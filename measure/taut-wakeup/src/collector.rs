//! Wakes added up: the two series of each CPU, and the worst of each stretch of time. Reads no clock.

use taut_stats::Distribution;

use crate::{Series, Woken};

/// More stretches than that do not show on a page: then two become one.
const STRETCHES_MAX: usize = 1200;

/// A series being filled, in constant memory.
#[derive(Clone, Debug)]
pub struct Collector {
    series: Series,
    interval_ns: u64,
    worst: Worst,
}

impl Collector {
    /// For cycles `interval_ns` apart; stretches of time begin at a second each.
    pub fn new(interval_ns: u64) -> Collector {
        Collector { series: Series::default(), interval_ns, worst: Worst::default() }
    }

    /// Takes the next wake; `since_start_ns` is measured time before it, without pauses between rounds.
    pub fn take(&mut self, woken: Woken, since_start_ns: u64) {
        let late_ns = woken.late_ns;
        self.series.wakeups.record(late_ns);
        self.worst.take(since_start_ns, late_ns);
        // Every cycle that fell due before this wake was served by it, or rather was not.
        let missed = late_ns / self.interval_ns;
        self.series.missed += missed;
        for cycle in 0..=missed {
            self.series.cycles.record(late_ns - cycle * self.interval_ns);
        }
    }

    /// Wakes that were lost on the way here.
    pub fn lose(&mut self, wakes: u64) {
        self.series.lost += wakes;
    }

    /// The wakeups so far.
    pub fn distribution(&self) -> Distribution {
        self.series.wakeups.distribution()
    }

    /// Cycles that late wakes ran over, so far.
    pub fn missed(&self) -> u64 {
        self.series.missed
    }

    /// As far as it got.
    pub fn series(&self) -> Series {
        Series { worst: self.worst.points(), ..self.series.clone() }
    }
}

impl Series {
    /// Takes another CPU's series; of the worst of a stretch the worse.
    pub fn add(&mut self, other: &Series) {
        self.wakeups.add(&other.wakeups);
        self.cycles.add(&other.cycles);
        self.missed += other.missed;
        self.lost += other.lost;
        let mut all = std::mem::take(&mut self.worst);
        all.extend(&other.worst);
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.dedup_by(|next, first| {
            let same = (next.0 - first.0).abs() < 1e-6;
            if same {
                first.1 = first.1.max(next.1);
            }
            same
        });
        self.worst = all;
    }
}

/// The worst wake of each stretch.
#[derive(Clone, Debug)]
struct Worst {
    stretch_ns: u64,
    /// Worst of each stretch, from the start on; 0 where no thread woke.
    stretches: Vec<u64>,
}

impl Default for Worst {
    fn default() -> Worst {
        Worst { stretch_ns: 1_000_000_000, stretches: Vec::new() }
    }
}

impl Worst {
    fn take(&mut self, since_start_ns: u64, late_ns: u64) {
        while (since_start_ns / self.stretch_ns) as usize >= STRETCHES_MAX {
            self.stretches = self.stretches.chunks(2).map(|two| two.iter().copied().max().unwrap_or(0)).collect();
            self.stretch_ns *= 2;
        }
        let at = (since_start_ns / self.stretch_ns) as usize;
        if at >= self.stretches.len() {
            self.stretches.resize(at + 1, 0);
        }
        self.stretches[at] = self.stretches[at].max(late_ns);
    }

    fn points(&self) -> Vec<(f64, u64)> {
        let end_s = |at: usize| (at as u64 + 1) as f64 * self.stretch_ns as f64 * 1e-9;
        self.stretches.iter().enumerate().filter(|(_, ns)| **ns > 0).map(|(at, ns)| (end_s(at), *ns)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn one_stall_is_one_wakeup_and_several_cycles() {
        let mut collector = Collector::new(MS);
        collector.take(Woken { due_ns: 0, late_ns: 50_000 }, 0);
        // 5.2 ms late: the cycles at +1 … +5 ms fell due meanwhile.
        collector.take(Woken { due_ns: MS, late_ns: 5 * MS + 200_000 }, MS);
        let series = collector.series();
        assert_eq!((series.wakeups.len(), series.cycles.len(), series.missed), (2, 7, 5));
        assert_eq!((series.cycles.max(), series.cycles.min()), (Some(5 * MS + 200_000), Some(50_000)));
    }

    #[test]
    fn days_take_no_more_memory_than_minutes() {
        let mut collector = Collector::new(MS);
        for second in 0..200_000u64 {
            collector.take(Woken { due_ns: 0, late_ns: 20_000 + second % 977 }, second * 1_000 * MS);
        }
        let series = collector.series();
        assert!((300..=STRETCHES_MAX).contains(&series.worst.len()), "{}", series.worst.len());
        assert_eq!(series.worst.iter().map(|w| w.1).max(), Some(20_976));
        assert!((series.worst.last().unwrap().0 - 200_000.0).abs() < 257.0);
    }

    proptest! {
        /// Every intended cycle is in one series exactly once, whatever the wakes.
        #[test]
        fn cycles_balance(lates in proptest::collection::vec(0u64..20 * MS, 1..200)) {
            let mut collector = Collector::new(MS);
            let mut due = 0;
            for late_ns in lates {
                collector.take(Woken { due_ns: due, late_ns }, due);
                due += MS * (1 + late_ns / MS);
            }
            let series = collector.series();
            prop_assert_eq!(series.cycles.len(), due / MS);
            prop_assert_eq!(series.cycles.len() - series.wakeups.len(), series.missed);
        }
    }
}
