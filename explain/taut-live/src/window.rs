//! The stream's last seconds, and of what came before only what gives them meaning: names, threads, clocks, locks.

use std::collections::{BTreeMap, HashMap, VecDeque};

use taut_analysis::Analyzer;
use taut_clock::{ClockPair, Counter};
use taut_recording::{Kind, LostWhat, Object, PlainChannel, Record, RosObject, StampBatch, Thread};

use crate::state::Lost;

/// A batch of stamps or ROS 2 events is kept for so long beyond the window: its rows reach from its time on, in a clock of their own.
const BATCH_NS: u64 = 1_000_000_000;
/// Calibrations kept of a counter, one a second.
const CLOCKS: usize = 32;
/// Threads and objects kept; those reported longest ago go first.
const MOST_KNOWN: usize = 8192;
/// The same of ROS 2 objects: a node has about 50.
const MOST_ROS_OBJECTS: usize = 65_536;

/// Takes in records; gives the last seconds of them to an [`Analyzer`].
#[derive(Default)]
pub struct Window {
    names: BTreeMap<u32, String>,
    threads: HashMap<i32, Thread>,
    objects: HashMap<(i32, u8, u64), Object>,
    /// By process, kind and handle: the latest.
    ros_objects: HashMap<(i32, u8, u64), RosObject>,
    clocks: BTreeMap<u8, VecDeque<ClockPair>>,
    channels: Vec<PlainChannel>,
    /// The stamps that name locks, of which most come once, at the start.
    locks: Vec<StampBatch>,
    recent: VecDeque<(u64, Record)>,
    /// The latest record's time; 0 before the first.
    pub latest_ns: u64,
    /// Stamps read.
    pub stamps: u64,
    /// ROS 2 events read.
    pub ros_events: u64,
    /// Kernel events read.
    pub kernel_events: u64,
    /// Telemetry messages read.
    pub telemetry: u64,
    /// Sums.
    pub lost: Lost,
}

impl Window {
    /// Takes the next record; `time_ns` is CLOCK_MONOTONIC of its first row.
    pub fn take(&mut self, time_ns: u64, record: Record) {
        self.latest_ns = self.latest_ns.max(time_ns);
        match record {
            Record::Stamps(batch) => {
                self.stamps += batch.ticks.len() as u64;
                self.locks.extend(only_locks(&batch));
                self.locks.drain(..self.locks.len().saturating_sub(MOST_KNOWN));
                self.recent.push_back((time_ns, Record::Stamps(batch)));
            }
            Record::Kernel(batch) => {
                self.kernel_events += batch.time_ns.len() as u64;
                self.recent.push_back((time_ns, Record::Kernel(batch)));
            }
            Record::Clock(counter, pair) => {
                let pairs = self.clocks.entry(counter as u8).or_default();
                pairs.push_back(pair);
                if pairs.len() > CLOCKS {
                    pairs.pop_front();
                }
            }
            Record::Name(name) => {
                self.names.insert(name.id, name.name);
            }
            Record::Thread(thread) => {
                self.threads.insert(thread.tid, thread);
                forget_oldest(&mut self.threads, MOST_KNOWN, |thread| thread.time_ns);
            }
            Record::Object(object) => {
                self.objects.insert((object.pid, object.kind as u8, object.start), object);
                forget_oldest(&mut self.objects, MOST_KNOWN, |object| object.time_ns);
            }
            Record::Lost(lost) => {
                let sum = match lost.what {
                    LostWhat::Stamps => &mut self.lost.stamps,
                    LostWhat::KernelEvents => &mut self.lost.kernel_events,
                    LostWhat::Telemetry => &mut self.lost.telemetry,
                    LostWhat::Samples => &mut self.lost.samples,
                    LostWhat::RosEvents => &mut self.lost.ros_events,
                };
                *sum = sum.saturating_add(lost.count);
                self.recent.push_back((time_ns, Record::Lost(lost)));
            }
            Record::Channel(channel) => self.channels.push(channel),
            Record::Message(_) => self.telemetry += 1,
            Record::Sample(_) | Record::Profile(_) | Record::Frame(_) | Record::Histogram(_) => {}
            Record::Ros(batch) => {
                self.ros_events += batch.ticks.len() as u64;
                self.recent.push_back((time_ns, Record::Ros(batch)));
            }
            Record::RosObject(object) => {
                self.ros_objects.insert((object.pid, object.kind as u8, object.handle), object);
                forget_oldest(&mut self.ros_objects, MOST_ROS_OBJECTS, |object| object.time_ns);
            }
        }
    }

    /// Drops what ended before this moment.
    pub fn forget(&mut self, before_ns: u64) {
        // Groups of chunks come one after the other, so times are nearly, not quite, in order.
        self.recent.retain(|(time_ns, record)| end_ns(*time_ns, record) >= before_ns);
    }

    /// Gives everything to an analyzer.
    pub fn feed(&self, analyzer: &mut Analyzer) {
        self.records(&mut |record| analyzer.record(record));
    }

    /// Everything, in an order in which it can be understood.
    pub fn records(&self, sink: &mut dyn FnMut(&Record)) {
        self.known().iter().for_each(&mut *sink);
        // Names may lie in the file behind the stamps that have them: such stamps wait for a later turn.
        let named = self.names.last_key_value().map_or(0, |(id, _)| *id);
        let is_named = |record: &Record| !matches!(record, Record::Stamps(batch) if highest_name(batch) > named);
        self.recent.iter().filter(|(_, record)| is_named(record)).for_each(|(_, record)| sink(record));
    }

    /// What a recording that begins now needs first.
    pub fn known(&self) -> Vec<Record> {
        let name = |(id, name): (&u32, &String)| Record::Name(taut_recording::Name { id: *id, name: name.clone() });
        let mut known: Vec<Record> = self.names.iter().map(name).collect();
        known.extend(self.threads.values().cloned().map(Record::Thread));
        known.extend(self.objects.values().cloned().map(Record::Object));
        known.extend(self.ros_objects.values().cloned().map(Record::RosObject));
        known.extend(self.channels.iter().cloned().map(Record::Channel));
        for (counter, pairs) in &self.clocks {
            let counter = Counter::from_number(*counter);
            known.extend(counter.into_iter().flat_map(|c| pairs.iter().map(move |pair| Record::Clock(c, *pair))));
        }
        known.extend(self.locks.iter().cloned().map(Record::Stamps));
        known
    }

    /// A thread of the recorded tree.
    pub fn recorded(&self, tid: i32) -> Option<&Thread> {
        self.threads.get(&tid).filter(|thread| thread.recorded)
    }

    /// All of them.
    pub fn all_recorded(&self) -> impl Iterator<Item = &Thread> {
        self.threads.values().filter(|thread| thread.recorded)
    }
}

/// When the record's last row was, at the latest.
fn end_ns(time_ns: u64, record: &Record) -> u64 {
    match record {
        Record::Kernel(batch) => batch.time_ns.last().map_or(time_ns, |last_ns| time_ns.max(*last_ns)),
        _ => time_ns.saturating_add(BATCH_NS),
    }
}

/// Recorders number names in the order in which they come.
fn highest_name(batch: &StampBatch) -> u32 {
    let reasons = batch.kind.iter().zip(&batch.value).filter(|(kind, _)| **kind == Kind::Outcome as u8);
    let reasons = reasons.map(|(_, value)| *value as u32);
    batch.point.iter().copied().chain(reasons).max().unwrap_or(0)
}

fn only_locks(batch: &StampBatch) -> Option<StampBatch> {
    let named: Vec<usize> = (0..batch.kind.len()).filter(|at| batch.kind[*at] == Kind::LockNamed as u8).collect();
    (!named.is_empty()).then(|| StampBatch {
        ticks: named.iter().map(|at| batch.ticks[*at]).collect(),
        message_id: named.iter().map(|at| batch.message_id[*at]).collect(),
        point: named.iter().map(|at| batch.point[*at]).collect(),
        kind: named.iter().map(|at| batch.kind[*at]).collect(),
        value: named.iter().map(|at| batch.value[*at]).collect(),
        ..*batch
    })
}

/// A machine makes new threads and descriptors for ever.
fn forget_oldest<K: Clone + Eq + std::hash::Hash, V>(
    known: &mut HashMap<K, V>,
    most: usize,
    told_ns: impl Fn(&V) -> u64,
) {
    if known.len() <= most {
        return;
    }
    let mut times: Vec<u64> = known.values().map(&told_ns).collect();
    times.sort_unstable();
    let since = times[times.len() / 4];
    known.retain(|_, value| told_ns(value) > since);
}
