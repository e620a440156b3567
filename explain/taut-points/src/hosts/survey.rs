//! What one recording says of messages that another host may have seen as well.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;
use taut_clock::ClockPair;
use taut_recording::{Architecture, Info, Kind, LostWhat, Record};
use taut_timelines::Objects;

use super::{
    calls::{Around, Calls},
    host_clock::HostClock,
    ros_messages::RosMessages,
};
use crate::flows::Sockets;

/// Stamps, messages, calls on sockets and calibrations of a recording.
#[derive(Default)]
pub struct Survey {
    stamps: Vec<Stamp>,
    calibrations: BTreeMap<u8, Vec<ClockPair>>,
    names: HashMap<u32, String>,
    last_name: u32,
    points: BTreeSet<u32>,
    pub(super) ros: RosMessages,
    calls: Calls,
    objects: Objects,
    /// Whether kernel events were lost.
    has_lost: bool,
}

struct Stamp {
    id: u64,
    ticks: u64,
    point: u32,
    counter: u8,
    tid: i32,
}

/// A message at a point of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sighting {
    pub id: u64,
    /// The host's raw time.
    pub at_ns: i64,
    /// Number of the point's name in the recording.
    pub point: u32,
}

impl Survey {
    /// Takes a record; every record of a recording.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Clock(counter, pair) => self.calibrations.entry(*counter as u8).or_default().push(*pair),
            Record::Name(name) => {
                self.last_name = self.last_name.max(name.id);
                self.names.insert(name.id, name.name.clone());
            }
            Record::Stamps(batch) => {
                let is_stamp = |at: &usize| batch.kind[*at] == Kind::Stamp as u8;
                let stamps = (0..batch.ticks.len()).filter(is_stamp);
                self.stamps.extend(stamps.map(|at| Stamp {
                    id: batch.message_id[at],
                    ticks: batch.ticks[at],
                    point: batch.point[at],
                    counter: batch.counter,
                    tid: batch.tid,
                }));
                self.points.extend(batch.point.iter().copied());
                self.calls.stamps(batch.tid);
            }
            Record::Kernel(batch) => self.calls.kernel(batch),
            Record::Thread(thread) => self.objects.thread(thread),
            Record::Object(object) => self.objects.object(object),
            Record::Lost(lost) => self.has_lost |= lost.what == LostWhat::KernelEvents && lost.count > 0,
            Record::RosObject(object) => self.ros.object(object),
            Record::Ros(batch) => self.ros.events(batch),
            _ => {}
        }
    }

    pub(super) fn clock(&self) -> HostClock {
        HostClock::new(&self.calibrations)
    }

    /// One whose raw time is CLOCK_MONOTONIC.
    pub(super) fn monotonic_clock(&self) -> HostClock {
        HostClock::monotonic(&self.calibrations)
    }

    /// By message, then by time.
    pub(super) fn sightings(&self, clock: &HostClock) -> Vec<Sighting> {
        let seen = self.stamps.iter().filter_map(|stamp| {
            Some(Sighting { id: stamp.id, at_ns: clock.of_ticks(stamp.counter, stamp.ticks)?, point: stamp.point })
        });
        let mut seen: Vec<Sighting> = seen.collect();
        seen.sort_unstable();
        seen
    }

    /// What the threads do around their stamps, by point.
    pub(super) fn around(&self, info: &Info, clock: &HostClock) -> BTreeMap<u32, Around> {
        let stamps = self.stamps.iter();
        let stamps = stamps.filter_map(|of| Some((of.tid, of.point, clock.of_ticks(of.counter, of.ticks)?)));
        self.calls.around(stamps, Architecture::from_word(&info.system_calls), clock)
    }

    /// What its sockets sent and received, as of the host of that number.
    pub(super) fn sockets(&self, info: &Info, host: u16) -> Sockets {
        let calls = self.calls.on_sockets(Architecture::from_word(&info.system_calls));
        Sockets::of(calls.into_iter(), &self.objects).on_host(host).without_places(|_| self.has_lost)
    }

    pub(super) fn name(&self, point: u32) -> String {
        self.names.get(&point).cloned().unwrap_or_else(|| format!("point {point}"))
    }

    /// The point of this name that messages passed.
    pub(super) fn point(&self, name: &str) -> Option<u32> {
        self.points.iter().copied().find(|point| self.names.get(point).is_some_and(|known| known == name))
    }

    pub(super) fn last_name(&self) -> u32 {
        self.last_name
    }

    /// Names of points, locks, work and signals, and not of reasons: they begin with the host's name in the joined stream.
    pub(super) fn is_point(&self, name: u32) -> bool {
        self.points.contains(&name)
    }

    /// CLOCK_REALTIME less raw time at the recording's start.
    pub(super) fn realtime_ahead_ns(info: &Info, clock: &HostClock) -> i64 {
        (info.start_realtime_ns as i64).wrapping_sub(clock.of_monotonic(info.start_monotonic_ns))
    }
}
