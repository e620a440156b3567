//! What a damaged stretch of a file cost, as the same records that a full ring leaves: what is missing, on which CPU or
//! of which thread, between which moments, and about how much.
//!
//! A recorder writes the rows of a CPU or a thread in order of time. What a damaged chunk held therefore lies between
//! the last row before it and the first one behind it; nothing of the damaged bytes is believed.

use std::collections::BTreeMap;

use taut_clock::{ClockPair, Counter, Mapping, Ticks};

use crate::records::{Lost, LostWhat, Record};

/// A recorder looks at its rings at least this often: rows of one chunk are no further apart in time, CPU against CPU.
const LOOK_NS: u64 = 300_000_000;
/// Ends the place of each of these records.
const PLACE: &str = "damaged file";

/// What a damaged stretch held, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// No rows of stamps, kernel events or ROS 2 events.
    NoRows,
    /// These may be what it held.
    Rows { stamps: bool, kernel: bool, ros: bool },
}

/// Follows the records of a file in its order, and turns damage into losses at the end.
#[derive(Default)]
pub(crate) struct Holes {
    /// By CPU; CLOCK_MONOTONIC.
    kernel: Rows<u16>,
    /// By pid, tid and counter; ticks of that counter.
    stamps: Rows<(i32, i32, u8)>,
    /// Likewise.
    ros: Rows<(i32, i32, u8)>,
    /// Whether the index of a damaged chunk said that it held such events.
    has_ros: bool,
    clocks: BTreeMap<u8, Vec<ClockPair>>,
}

/// The rows of one kind, source by source.
struct Rows<K> {
    /// Time of each source's last row so far.
    last: BTreeMap<K, u64>,
    holes: Vec<Hole<K>>,
    /// Rows of whole chunks, and the bytes of these in the file.
    rows: u64,
    bytes: u64,
}

struct Hole<K> {
    /// Last row of each source before it …
    before: BTreeMap<K, u64>,
    /// … and the first one behind it.
    after: BTreeMap<K, u64>,
    bytes: u64,
}

impl<K> Default for Rows<K> {
    fn default() -> Rows<K> {
        Rows { last: BTreeMap::new(), holes: Vec::new(), rows: 0, bytes: 0 }
    }
}

impl<K: Ord + Copy> Rows<K> {
    fn take(&mut self, source: K, times: &[u64]) {
        let (Some(first), Some(last)) = (times.first(), times.last()) else { return };
        // Only the newest hole can be open: an earlier one has rows behind it.
        if let Some(hole) = self.holes.last_mut() {
            hole.after.entry(source).or_insert(*first);
        }
        self.last.insert(source, *last);
    }

    /// A chunk of so many bytes was whole and held so many rows. Each kind has chunks of its own.
    fn whole(&mut self, bytes: u64, rows: u64) {
        if rows > 0 {
            (self.rows, self.bytes) = (self.rows + rows, self.bytes + bytes);
        }
    }

    fn open(&mut self, bytes: u64) {
        match self.holes.last_mut().filter(|hole| hole.after.is_empty()) {
            Some(hole) => hole.bytes += bytes,
            None => self.holes.push(Hole { before: self.last.clone(), after: BTreeMap::new(), bytes }),
        }
    }

    /// About how many rows that many bytes held.
    fn estimate(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.rows as f64 / self.bytes.max(1) as f64).round() as u64
    }

    /// Each hole's sources with the bounds of what they may lack, and the estimated rows; `ns` gives the moment of a
    /// source's row.
    fn losses(self, what: LostWhat, ns: impl Fn(&K, u64) -> u64, place: impl Fn(&K) -> String) -> Vec<Lost> {
        let ends = self.last.iter().map(|(source, time)| ns(source, *time));
        let end_ns = ends.max().unwrap_or(0);
        let mut losses = Vec::new();
        for (at, hole) in self.holes.iter().enumerate() {
            let before = hole.before.iter().map(|(source, time)| ns(source, *time)).max().unwrap_or(0);
            // A source that is silent behind this hole may speak behind the next one.
            let later = |source: &K| self.holes[at..].iter().find_map(|hole| hole.after.get(source));
            let after = hole.after.iter().map(|(source, time)| ns(source, *time)).min().unwrap_or(end_ns);
            let bounds = |source: &K| {
                let since_ns = hole.before.get(source).map_or(0, |time| ns(source, *time));
                let time_ns = later(source).map_or(end_ns, |time| ns(source, *time));
                let since_ns = since_ns.max(before.saturating_sub(LOOK_NS));
                (since_ns, time_ns.min(after.saturating_add(LOOK_NS)).max(since_ns))
            };
            let count = self.estimate(hole.bytes);
            let sources = self.last.len().max(1) as u64;
            for (nth, source) in (0..).zip(self.last.keys()) {
                let (since_ns, time_ns) = bounds(source);
                let count = count / sources + u64::from(nth < count % sources);
                losses.push(Lost { since_ns, time_ns, what, place: place(source), count, is_estimate: true });
            }
            if self.last.is_empty() {
                let place = PLACE.to_owned();
                losses.push(Lost { since_ns: 0, time_ns: u64::MAX, what, place, count, is_estimate: true });
            }
        }
        losses
    }
}

impl Holes {
    pub fn take(&mut self, record: &Record) {
        match record {
            Record::Kernel(batch) => self.kernel.take(batch.cpu, &batch.time_ns),
            Record::Stamps(batch) => self.stamps.take((batch.pid, batch.tid, batch.counter), &batch.ticks),
            Record::Ros(batch) => self.ros.take((batch.pid, batch.tid, batch.counter), &batch.ticks),
            Record::Clock(counter, pair) => self.clocks.entry(*counter as u8).or_default().push(*pair),
            _ => {}
        }
    }

    /// A chunk of so many bytes was whole, and held these rows.
    pub fn whole(&mut self, bytes: u64, [stamps, kernel, ros]: [u64; 3]) {
        self.stamps.whole(bytes, stamps);
        self.kernel.whole(bytes, kernel);
        self.ros.whole(bytes, ros);
    }

    /// Here so many bytes of the file are not readable.
    pub fn damage(&mut self, bytes: u64, held: Held) {
        let Held::Rows { stamps, kernel, ros } = held else { return };
        // Where several are possible, the bytes are shared as those of the whole chunks so far.
        let possible = [(stamps, self.stamps.bytes), (kernel, self.kernel.bytes), (ros, self.ros.bytes)];
        let (count, all) = possible.iter().filter(|(is, _)| *is).fold((0, 0), |(n, all), (_, own)| (n + 1, all + own));
        let share = |own: u64| match count {
            1 => bytes,
            _ => (bytes as f64 * own as f64 / all.max(1) as f64) as u64,
        };
        if stamps {
            self.stamps.open(share(self.stamps.bytes));
        }
        if kernel {
            self.kernel.open(share(self.kernel.bytes));
        }
        if ros {
            self.ros.open(share(self.ros.bytes));
            self.has_ros |= count == 1;
        }
    }

    /// What was lost, once the whole file was seen.
    pub fn losses(self) -> Vec<Lost> {
        let mappings: BTreeMap<u8, Mapping> =
            self.clocks.into_iter().filter_map(|(counter, pairs)| Some((counter, Mapping::new(pairs)?))).collect();
        let ns = |(_, _, counter): &(i32, i32, u8), ticks: u64| match mappings.get(counter) {
            Some(mapping) if *counter != Counter::Monotonic as u8 => mapping.to_monotonic(Ticks(ticks)).0,
            _ => ticks,
        };
        let mut losses = self.kernel.losses(LostWhat::KernelEvents, |_, ns| ns, |cpu| format!("cpu {cpu} {PLACE}"));
        let thread = |(pid, tid, _): &(i32, i32, u8)| format!("{pid}/{tid} {PLACE}");
        losses.extend(self.stamps.losses(LostWhat::Stamps, ns, thread));
        // Most recordings have no ROS 2 events, and damage does not say that they had.
        if self.has_ros || !self.ros.last.is_empty() {
            losses.extend(self.ros.losses(LostWhat::RosEvents, ns, thread));
        }
        losses
    }
}
