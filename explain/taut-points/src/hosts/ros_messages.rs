//! ROS 2 messages of a recording, by source timestamp: when each was published, and when it was first taken.
//!
//! A source timestamp is the writer's CLOCK_REALTIME in ns, which the middleware sends along. So it is the same number on both hosts,
//! and it serves as the message's name only: no clock is read from it.

use foldhash::HashMap;
use taut_recording::{RosBatch, RosEvent, RosObject, RosObjectKind};

use super::host_clock::HostClock;

/// What is published and taken.
#[derive(Default)]
pub(super) struct RosMessages {
    published: Vec<Event>,
    taken: Vec<Event>,
    /// By process and thread: the ticks at which it began to publish.
    publishing: HashMap<(i32, i32), u64>,
    /// Of the middleware's subscriptions, by process.
    topics: HashMap<(i32, u64), String>,
}

struct Event {
    stamp: u64,
    ticks: u64,
    counter: u8,
    pid: i32,
    handle: u64,
}

/// One message of a host, on its raw clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RosSighting {
    /// Source timestamp.
    pub stamp: u64,
    pub at_ns: i64,
    /// The middleware's subscription that took it.
    pub by: (i32, u64),
}

/// All of a host, each in order of the source timestamps.
#[derive(Default)]
pub(super) struct RosSightings {
    pub published: Vec<RosSighting>,
    pub taken: Vec<RosSighting>,
}

impl RosMessages {
    pub fn object(&mut self, object: &RosObject) {
        if object.kind == RosObjectKind::Subscription {
            self.topics.insert((object.pid, object.other), object.name.clone());
        }
    }

    pub fn events(&mut self, batch: &RosBatch) {
        let RosBatch { pid, tid, counter, .. } = *batch;
        for (at, ticks) in batch.ticks.iter().copied().enumerate() {
            let (handle, stamp) = (batch.handle[at], batch.arg1[at]);
            let event = |ticks| Event { stamp, ticks, counter, pid, handle };
            match RosEvent::from_number(batch.event[at]) {
                Some(RosEvent::RclcppPublish | RosEvent::RclPublish) => _ = self.publishing.insert((pid, tid), ticks),
                // It is said before the middleware writes.
                Some(RosEvent::RmwPublish) if stamp != 0 => self.published.push(event(ticks)),
                // It may be said behind that: the publish began before.
                Some(RosEvent::SourceStamp) if stamp != 0 => {
                    self.published.extend(self.publishing.get(&(pid, tid)).map(|began| event(*began)));
                }
                Some(RosEvent::Take) if stamp != 0 && batch.arg2[at] != 0 => self.taken.push(event(ticks)),
                _ => {}
            }
        }
    }

    pub fn topic(&self, by: (i32, u64)) -> &str {
        self.topics.get(&by).map_or("a topic", String::as_str)
    }

    pub fn sightings(&self, clock: &HostClock) -> RosSightings {
        let first = |events: &[Event]| {
            let seen = events.iter().filter_map(|of| {
                let at_ns = clock.of_ticks(of.counter, of.ticks)?;
                Some(RosSighting { stamp: of.stamp, at_ns, by: (of.pid, of.handle) })
            });
            let mut seen: Vec<RosSighting> = seen.collect();
            seen.sort_unstable();
            seen.dedup_by_key(|of| of.stamp);
            seen
        };
        RosSightings { published: first(&self.published), taken: first(&self.taken) }
    }
}

/// Messages that one host published and the other took. What both published at the same nanosecond is not told apart.
pub(super) fn crossed(from: &RosSightings, to: &RosSightings) -> Vec<(RosSighting, RosSighting)> {
    let of = |all: &[RosSighting], stamp: u64| all.binary_search_by_key(&stamp, |of| of.stamp).ok().map(|at| all[at]);
    let sent = from.published.iter().filter(|sent| of(&to.published, sent.stamp).is_none());
    sent.filter_map(|sent| Some((*sent, of(&to.taken, sent.stamp)?))).collect()
}
