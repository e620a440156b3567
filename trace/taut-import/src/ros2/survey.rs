//! The first reading of a trace: which threads and kinds of events there are. A recording has them at its beginning.

use taut_recording::RosObjectKind;

use super::{
    events::{self, What, what},
    threads::Threads,
};
use crate::ctf::{Event, Source};

/// What a trace has.
#[derive(Default)]
pub(super) struct Survey {
    pub threads: Threads,
    /// "4.1.1", of ros2_tracing.
    pub version: String,
    /// Whether the kernel said which thread wakes which, and not only that one woke.
    pub has_waking: bool,
    pub has_switches: bool,
    pub has_calls: bool,
    pub ros_events: u64,
    /// ROS events that do not say which thread they are from.
    pub nobodys: u64,
    pub first_ns: Option<u64>,
    pub last_ns: u64,
}

impl Survey {
    pub fn take(&mut self, source: Source, event: &Event<'_>) {
        self.first_ns.get_or_insert(source.time_ns);
        self.last_ns = source.time_ns;
        match what(event.kind) {
            What::Kernel(events::Kernel::Switch) => self.has_switches = true,
            What::Kernel(events::Kernel::Waking) => self.has_waking = true,
            What::Enter(_) => self.has_calls = true,
            What::Kernel(_) | What::Exit(_) => {}
            what @ (What::Init(_) | What::Ros(_)) => {
                self.ros_events += 1;
                self.nobodys += u64::from(self.threads.of(source, event).is_none());
                if what == What::Init(RosObjectKind::Context) {
                    self.version = super::raw::cut(event.text(2).unwrap_or_default());
                }
            }
        }
    }
}
