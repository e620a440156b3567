//! What the later stages may ask about the recording as a whole.

use std::borrow::Cow;

use taut_points::{PointId, Points, SourceKind};
use taut_timelines::Objects;

/// Names, and where the recording begins, ends and is incomplete.
pub(crate) struct Context<'a> {
    pub points: &'a Points,
    pub objects: &'a Objects,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Stretches in which stamps or ROS 2 events may be missing, ascending without overlaps.
    pub holes: Vec<(u64, u64)>,
    /// The same of kernel events.
    pub kernel_holes: Vec<(u64, u64)>,
}

impl Context<'_> {
    /// Of a point or a reason.
    pub fn name(&self, point: PointId) -> String {
        self.points.name(point)
    }

    /// Whether stamps or ROS 2 events may be missing between these times.
    pub fn has_hole(&self, from_ns: u64, until_ns: u64) -> bool {
        overlaps(&self.holes, from_ns, until_ns)
    }

    /// Whether passes of this point may be missing between these times: those of a wake are found by kernel events.
    pub fn may_lack(&self, point: PointId, from_ns: u64, until_ns: u64) -> bool {
        match self.points.source(point) {
            SourceKind::Wakes => overlaps(&self.kernel_holes, from_ns, until_ns),
            _ => self.has_hole(from_ns, until_ns),
        }
    }

    /// "comm/tid" by its last name; "" of a thread that an import invented.
    pub fn thread(&self, tid: i32) -> Cow<'_, str> {
        self.objects.name(tid, u64::MAX)
    }
}

/// Whether one of these stretches, in order and apart, has a part between these times.
pub(crate) fn overlaps(stretches: &[(u64, u64)], from_ns: u64, until_ns: u64) -> bool {
    let first = stretches.partition_point(|(_, end)| *end < from_ns);
    stretches.get(first).is_some_and(|(start, _)| *start <= until_ns)
}
