//! Slices that are open on each thread, and how long those of each name take.

use std::collections::HashMap;

use hdrhistogram::Histogram as Hdr;

/// Names whose durations are kept; each costs up to some 20 kB.
const MOST_NAMES: usize = 2_000;
/// Durations are distinguished to 1 %.
const DIGITS: u8 = 2;
/// Deeper slices are begins without ends.
const DEEPEST: usize = 10_000;

/// Open slices and finished durations.
#[derive(Default)]
pub struct Slices {
    /// By thread, the innermost last.
    open: HashMap<u32, Vec<Open>>,
    durations: HashMap<u32, Hdr<u64>>,
}

struct Open {
    name: u32,
    begin_ns: u64,
    /// Known of a complete event.
    end_ns: Option<u64>,
}

/// A slice that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub name: u32,
    pub end_ns: u64,
}

impl Slices {
    /// Takes the innermost slices off that are known to end by then.
    pub fn ended_by(&mut self, thread: u32, time_ns: u64) -> Vec<Ended> {
        let Some(open) = self.open.get_mut(&thread) else { return Vec::new() };
        let mut ended = Vec::new();
        while let Some(Open { name, end_ns: Some(end_ns), .. }) = open.last()
            && *end_ns <= time_ns
        {
            ended.push(Ended { name: *name, end_ns: *end_ns });
            open.pop();
        }
        ended
    }

    pub fn open(&mut self, thread: u32, name: u32, begin_ns: u64, end_ns: Option<u64>) {
        let open = self.open.entry(thread).or_default();
        if open.len() < DEEPEST {
            open.push(Open { name, begin_ns, end_ns });
        }
    }

    /// Ends the innermost slice whose end is not known; its name and begin.
    pub fn close(&mut self, thread: u32) -> Option<(u32, u64)> {
        let open = self.open.get_mut(&thread)?;
        let at = open.iter().rposition(|slice| slice.end_ns.is_none())?;
        let slice = open.remove(at);
        Some((slice.name, slice.begin_ns))
    }

    /// What is still open in the end, the innermost first: with the ends that are known.
    pub fn rest(&mut self) -> Vec<(u32, Option<Ended>)> {
        let mut threads: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        threads.sort_by_key(|(thread, _)| *thread);
        let ended = |slice: &Open| slice.end_ns.map(|end_ns| Ended { name: slice.name, end_ns });
        threads.iter().flat_map(|(thread, open)| open.iter().rev().map(|slice| (*thread, ended(slice)))).collect()
    }

    pub fn lasted(&mut self, name: u32, ns: u64) {
        if self.durations.len() >= MOST_NAMES && !self.durations.contains_key(&name) {
            return;
        }
        let empty = || Hdr::new(DIGITS).expect("two digits are within its bounds");
        // It grows to hold any value; when it cannot, that value is the largest it holds.
        let of = self.durations.entry(name).or_insert_with(empty);
        if of.record(ns).is_err() {
            of.saturating_record(ns);
        }
    }

    /// By name, in no order.
    pub fn durations(&self) -> impl Iterator<Item = (u32, &Hdr<u64>)> {
        self.durations.iter().map(|(name, of)| (*name, of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_slices_end_when_a_later_one_begins() {
        let mut slices = Slices::default();
        slices.open(0, 1, 0, Some(100));
        slices.open(0, 2, 10, Some(20));
        assert_eq!(slices.ended_by(0, 15), []);
        assert_eq!(slices.ended_by(0, 20), [Ended { name: 2, end_ns: 20 }]);
        assert_eq!(slices.ended_by(0, 500), [Ended { name: 1, end_ns: 100 }]);
        assert_eq!(slices.ended_by(1, 500), []);
    }

    #[test]
    fn an_end_is_of_the_innermost_begin() {
        let mut slices = Slices::default();
        slices.open(0, 1, 0, None);
        slices.open(0, 2, 5, None);
        slices.open(0, 3, 6, Some(50));
        assert_eq!(slices.close(0), Some((2, 5)));
        assert_eq!(slices.close(0), Some((1, 0)));
        assert_eq!(slices.close(0), None);
        assert_eq!(slices.rest(), [(0, Some(Ended { name: 3, end_ns: 50 }))]);
    }
}
