//! Stalls that hit all CPUs at once: no scheduler does that, a hypervisor or the firmware does. This shows more than
//! steal time, which misses most of them. Reads no clock.

use crate::{Stalls, Woken};

/// A wake later than this is a stall.
pub const THRESHOLD_NS: u64 = 300_000;

/// Watches the wakes of several CPUs.
#[derive(Clone, Debug)]
pub struct StallWatch {
    /// Stalls not yet judged: start, end, number of the watcher; in order of start.
    open: Vec<(u64, u64, usize)>,
    /// Until when each watcher's wakes are known.
    known_until: Vec<u64>,
    /// How long each was stalled.
    stalled_ns: Vec<u64>,
    /// From when on they watch.
    since_ns: Option<u64>,
    found: Stalls,
}

impl StallWatch {
    /// For so many watchers, each pinned on a CPU of its own.
    pub fn new(watchers: usize) -> StallWatch {
        StallWatch {
            open: Vec::new(),
            known_until: vec![0; watchers],
            stalled_ns: vec![0; watchers],
            since_ns: None,
            found: Stalls { threshold_ns: THRESHOLD_NS, cpus: watchers, ..Stalls::default() },
        }
    }

    /// Takes a wake of one of them.
    pub fn take(&mut self, watcher: usize, woken: Woken) {
        let end = woken.due_ns + woken.late_ns;
        self.known_until[watcher] = end;
        self.since_ns.get_or_insert(woken.due_ns);
        if woken.late_ns >= THRESHOLD_NS {
            self.stalled_ns[watcher] += woken.late_ns;
            let at = self.open.partition_point(|stall| stall.0 <= woken.due_ns);
            self.open.insert(at, (woken.due_ns, end, watcher));
        }
    }

    /// Judges what can be judged by now: groups of stalls that overlap each other, and that no stall can still join.
    pub fn settle(&mut self) {
        self.settle_until(self.known_until.iter().copied().min().unwrap_or(0));
    }

    /// Judges the rest, and returns what was found.
    pub fn finish(mut self) -> Stalls {
        self.settle_until(u64::MAX);
        let until = self.known_until.iter().max().copied().unwrap_or(0);
        let watched_ns = until.saturating_sub(self.since_ns.unwrap_or(until)).max(1) as f64;
        let chance: f64 = self.stalled_ns.iter().map(|stalled| *stalled as f64 / watched_ns).product();
        self.found.by_chance_ns = (chance * watched_ns) as u64;
        self.found
    }

    fn settle_until(&mut self, known_ns: u64) {
        while let Some((_, mut end, _)) = self.open.first().copied() {
            let mut size = 1;
            while let Some(next) = self.open.get(size).filter(|next| next.0 < end) {
                end = end.max(next.1);
                size += 1;
            }
            if end > known_ns {
                return;
            }
            let group: Vec<_> = self.open.drain(..size).collect();
            self.judge(&group);
        }
    }

    fn judge(&mut self, group: &[(u64, u64, usize)]) {
        let together_ns = covered_by_all(group, self.known_until.len());
        if together_ns > 0 {
            self.found.together += 1;
            self.found.together_ns += together_ns;
            self.found.together_max_ns = self.found.together_max_ns.max(together_ns);
        } else {
            self.found.single += group.len() as u64;
            self.found.single_ns += group.iter().map(|(start, end, _)| end - start).sum::<u64>();
        }
    }
}

/// For how long all watchers were stalled at once. Stalls of one watcher do not overlap.
fn covered_by_all(group: &[(u64, u64, usize)], watchers: usize) -> u64 {
    let mut edges: Vec<(u64, i32)> = group.iter().flat_map(|(start, end, _)| [(*start, 1), (*end, -1)]).collect();
    edges.sort_unstable();
    let (mut stalled, mut since, mut total) = (0, 0, 0);
    for (at, change) in edges {
        if stalled == watchers as i32 {
            total += at - since;
        }
        stalled += change;
        since = at;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn one_stall_of_all_cpus_counts_once() {
        let mut watch = StallWatch::new(2);
        watch.take(0, Woken { due_ns: 10 * MS, late_ns: 4 * MS });
        watch.take(1, Woken { due_ns: 11 * MS, late_ns: 3 * MS });
        // Only CPU 1 stalls here.
        watch.take(1, Woken { due_ns: 30 * MS, late_ns: 2 * MS });
        watch.take(0, Woken { due_ns: 31_900_000, late_ns: 100_000 });
        let found = watch.finish();
        assert_eq!((found.together, found.together_ns, found.together_max_ns), (1, 3 * MS, 3 * MS));
        assert_eq!((found.single, found.single_ns), (1, 2 * MS));
        // CPU 0 was stalled for 4 of the 22 ms, CPU 1 for 5.
        assert_eq!(found.by_chance_ns, 20 * MS * MS / (22 * MS));
    }

    #[test]
    fn nothing_is_judged_before_all_have_spoken() {
        let mut watch = StallWatch::new(2);
        watch.take(0, Woken { due_ns: 10 * MS, late_ns: 4 * MS });
        watch.settle();
        assert_eq!(watch.open.len(), 1, "CPU 1 may have stalled, too: its wakes are not in yet");
        watch.take(1, Woken { due_ns: 11 * MS, late_ns: 3 * MS });
        watch.take(1, Woken { due_ns: 15 * MS, late_ns: 1000 });
        watch.settle();
        assert_eq!((watch.open.len(), watch.found.together), (0, 1));
    }
}
