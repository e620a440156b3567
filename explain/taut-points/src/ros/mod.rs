//! The source of ROS 2: events of publishers, subscriptions and callbacks become messages along chains.
//!
//! First it finds out what there is (`system`): nodes, topics, callbacks, by name, and which callback publishes what; from
//! that come the chains (`chains`). Then it follows messages (`flow`) through the queues of topics (`queues`) by their
//! source timestamps. A datum that comes to several callbacks is a message of several chains, with a number in each.
//! `docs/reference/import.md` says it in words.

mod bare;
mod book;
mod chains;
mod clients;
mod events;
mod executors;
mod figures;
mod flow;
mod naming;
mod queues;
mod seen;
mod stamped;
mod system;

use taut_recording::{Record, RosObject};

use self::{events::Events, flow::Flow, system::System};
use crate::{linked::Linked, scene::Scene, source::Source, source_kind::SourceKind};

/// A trace of noise must not fill the memory with objects.
const MOST_OBJECTS: usize = 1 << 20;

/// ROS 2 events until they are linked.
#[derive(Default)]
pub struct Ros {
    events: Events,
    objects: Vec<RosObject>,
    /// Objects beyond [`MOST_OBJECTS`].
    left_out: u64,
}

impl Source for Ros {
    fn kind(&self) -> SourceKind {
        SourceKind::Ros
    }

    fn record(&mut self, record: &Record) {
        match record {
            Record::Ros(batch) => self.events.take(batch),
            Record::RosObject(object) if self.objects.len() < MOST_OBJECTS => self.objects.push(object.clone()),
            Record::RosObject(_) => self.left_out += 1,
            _ => {}
        }
    }

    fn link(&mut self, scene: &Scene<'_>, out: &mut Linked) {
        if self.events.is_empty() {
            return;
        }
        let events = std::mem::take(&mut self.events);
        out.counters.extend(events.counters());
        let system = System::find(std::mem::take(&mut self.objects), &events, scene);
        let mut flow = Flow::new(&system, &events, scene, out);
        let untimed = events.in_order(scene.clocks, &mut |row| flow.take(row));
        flow.finish();
        if untimed > 0 {
            out.damage.push(format!(
                "{untimed} ROS 2 events have no time: the counter that they were read from was compared with the clock less \
                 than twice"
            ));
        }
        if self.left_out > 0 {
            out.notes.push(format!(
                "{} ROS 2 objects are more than can be kept: what is of them has no name",
                self.left_out
            ));
        }
    }
}
