//! What a source may look at when it links.

use taut_timelines::{Futexes, Objects, Timelines};

use crate::clocks::Clocks;

/// Everything known of a recording beside the source's own events.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// Threads, locks, descriptors.
    pub objects: &'a Objects,
    /// What threads and CPUs did.
    pub timelines: &'a Timelines,
    /// Which waits are for locks.
    pub futexes: &'a Futexes,
    /// Times of counters.
    pub clocks: &'a Clocks,
    /// What CLOCK_REALTIME is ahead of CLOCK_MONOTONIC.
    pub realtime_offset_ns: i128,
    /// Whether this is a stretch of a longer stream: the numbers of messages must be the same in every stretch.
    pub is_stretch: bool,
    /// When the recording ends, as far as that is known without the source's own events.
    pub until_ns: u64,
}
