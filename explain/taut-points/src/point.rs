//! Points, and the passes of messages: what every source gives.

use std::fmt;

use foldhash::HashMap;

use crate::source_kind::SourceKind;

/// A message passed a point, was due there, or ended for a reason. Compact: ten million of them must fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The message; those of different sources never have the same number.
    pub message: u64,
    /// CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The point, the moment at which it was due there, or the reason why it ended.
    pub point: PointId,
    /// Host tid of the thread, or [`NO_THREAD`].
    pub thread: i32,
}

/// It is not known which thread it was.
pub const NO_THREAD: i32 = taut_timelines::NO_THREAD;

/// Number of a point, or of a reason why messages end. A point is of one chain only; equal names are allowed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointId(u32);

/// Marks a reason; numbers of points stay far below.
const OUTCOME: u32 = 1 << 31;
/// Marks a moment at which a message was due at a point: no thread was there then.
const DUE: u32 = 1 << 30;

impl PointId {
    /// The point of this name in the recording's table of names.
    pub fn of_name(name: u32) -> PointId {
        PointId(name)
    }

    /// The end of a message for the reason of this name.
    pub fn of_outcome(reason: u32) -> PointId {
        PointId(OUTCOME | reason)
    }

    /// The end of a message for this reason.
    pub fn as_outcome(self) -> PointId {
        PointId(OUTCOME | self.0)
    }

    /// The reason, if it is the end of a message.
    pub fn reason(self) -> Option<PointId> {
        (self.0 & OUTCOME != 0).then_some(PointId(self.0 & !OUTCOME))
    }

    /// The moment at which messages are due at this point.
    pub fn as_due(self) -> PointId {
        PointId(DUE | self.0)
    }

    /// Whether it is the moment at which messages were due at a point, which comes before that point.
    pub fn is_due(self) -> bool {
        self.0 & (OUTCOME | DUE) == DUE
    }

    /// Whether a thread was there: neither an end nor a moment at which a message was due.
    pub fn is_pass(self) -> bool {
        self.0 & (OUTCOME | DUE) == 0
    }

    /// The point itself, also of the moment at which messages are due there.
    pub fn without_due(self) -> PointId {
        PointId(self.0 & !DUE)
    }

    /// The number without what it is marked with.
    fn number(self) -> u32 {
        self.0 & !(OUTCOME | DUE)
    }

    /// Settles the order of equal times: a moment at which a message is due comes before passes, and ends come last.
    pub fn order(self) -> u32 {
        self.0 ^ DUE
    }
}

impl fmt::Debug for PointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.reason().is_some() {
            "end "
        } else if self.is_due() {
            "due "
        } else {
            ""
        };
        write!(f, "{kind}{}", self.number())
    }
}

/// Names of points and reasons, by number.
#[derive(Debug, Default)]
pub struct Points {
    names: HashMap<PointId, String>,
    /// Points behind this number, up to the next one's, are of this source.
    sources: Vec<(u32, SourceKind)>,
}

impl Points {
    /// With the recording's table of names.
    pub fn new(names: impl IntoIterator<Item = (u32, String)>) -> Points {
        Points { names: names.into_iter().map(|(id, name)| (PointId(id), name)).collect(), sources: Vec::new() }
    }

    /// The point's name, or its number where it has none.
    pub fn name(&self, point: PointId) -> String {
        self.known(point).map_or_else(|| format!("point {}", point.0), str::to_owned)
    }

    /// The point's name, if it has one.
    pub fn known(&self, point: PointId) -> Option<&str> {
        self.names.get(&point).map(String::as_str)
    }

    /// All that have a name, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (PointId, &str)> {
        self.names.iter().map(|(point, name)| (*point, name.as_str()))
    }

    /// The highest number of a point here and in these passes; 0 without any.
    pub(crate) fn last(&self, passes: &[Pass]) -> u32 {
        let passed = passes.iter().map(|pass| pass.point.number()).max();
        self.names.keys().map(|point| point.number()).chain(passed).max().unwrap_or(0)
    }

    /// Which source the point is of. Those of the recording's table of names are of stamps.
    pub fn source(&self, point: PointId) -> SourceKind {
        let of = self.sources.iter().rev().find(|(last, _)| point.number() > *last);
        of.map_or(SourceKind::Stamps, |(_, kind)| *kind)
    }

    /// What is added behind this number is of this source.
    pub(crate) fn behind(&mut self, last: u32, kind: SourceKind) {
        if kind != SourceKind::Stamps {
            self.sources.push((last, kind));
        }
    }

    /// Names a point.
    pub fn insert(&mut self, point: PointId, name: String) {
        self.names.insert(point, name);
    }
}
