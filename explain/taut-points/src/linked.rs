//! What all sources give, together.

use std::{collections::BTreeSet, ops::Range};

use foldhash::HashMap;
use taut_recording::Histogram;

use crate::{
    hold::Holds,
    point::{Pass, PointId, Points},
    ros_figures::RosFigures,
    route::{Loop, Route, WakingThread},
    source_kind::SourceKind,
    span::{Hole, Spans},
};

/// The one result of all sources.
#[derive(Default)]
pub struct Linked {
    /// Names of points and reasons.
    pub points: Points,
    /// In any order.
    pub passes: Vec<Pass>,
    /// Chains that a source knows; what passes points of none of them is inferred.
    pub routes: Vec<Route>,
    /// Passes of messages that follow from kernel events alone: each of their chains has its own, so that they say nothing of
    /// what a thread was busy with for messages of another one.
    pub of_wakes: Vec<Pass>,
    /// What crossed between hosts, by the thread that received it and when it went on: the thread that sent it, and when the sending call
    /// began.
    pub sent: HashMap<(i32, u64), (i32, u64)>,
    /// Threads that are loops by what kernel events show.
    pub loops: Vec<Loop>,
    /// The other threads that are woken.
    pub waking: Vec<WakingThread>,
    /// What threads were busy with, by the messages of all sources.
    pub spans: Spans,
    /// The same by the messages of each source, where several have some.
    pub(crate) by_source: Vec<(SourceKind, Spans)>,
    /// Why messages could not go on.
    pub holds: Holds,
    /// In any order.
    pub values: Vec<Value>,
    /// Of topics, callbacks and executors, where there are ROS 2 events.
    pub ros: Option<RosFigures>,
    /// Distributions that a source derives.
    pub histograms: Vec<Histogram>,
    /// What a reader must know to trust the messages, a sentence each.
    pub notes: Vec<String>,
    /// Events that could not be used, a sentence each.
    pub damage: Vec<String>,
    /// Counters that the events' times are of.
    pub counters: BTreeSet<u8>,
}

/// Numbers of points that a source makes up begin here at the latest. A recorder numbers names from 1 on.
const LATEST_OWN: u32 = 1 << 29;

impl Linked {
    /// Points behind this one are free for a source that makes them up.
    pub(crate) fn last_point(&self) -> u32 {
        self.points.last(&self.passes).min(LATEST_OWN)
    }

    /// Messages from this one on are free for a source that makes up their numbers: behind all that there are. Where those
    /// are hashes, which lie anywhere, small numbers are free.
    pub(crate) fn free_message(&self) -> u64 {
        let last = self.passes.iter().map(|pass| pass.message).max().unwrap_or(0);
        if last < 1 << 62 { last + 1 } else { 1 }
    }

    /// What threads were busy with for messages of that point's source. One message may be known to two sources, by a number of each, and
    /// does not wait for itself.
    pub fn spans_for(&self, point: PointId, points: &Points) -> &Spans {
        let source = points.source(point);
        self.by_source.iter().find(|(kind, _)| *kind == source).map_or(&self.spans, |(_, spans)| spans)
    }

    /// Puts the spans in order, once all passes are there: those of a source lie in its range.
    pub(crate) fn settle_spans(&mut self, of_sources: Vec<(SourceKind, Range<usize>)>, holes: Vec<Hole>) {
        self.spans.settle(&self.passes, holes);
        let with_passes: Vec<_> = of_sources.into_iter().filter(|(_, range)| !range.is_empty()).collect();
        if with_passes.len() > 1 {
            let own = |(kind, range)| (kind, self.spans.with_messages(&self.passes[range]));
            self.by_source = with_passes.into_iter().map(own).collect();
        }
    }

    /// Appends passes; the first, and mostly only, source's are taken as they are.
    pub fn take_passes(&mut self, passes: Vec<Pass>) {
        if self.passes.is_empty() {
            self.passes = passes;
        } else {
            self.passes.extend(passes);
        }
    }
}

/// A signal's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// Has the signal's name.
    pub signal: PointId,
    /// CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The value.
    pub value: f64,
}
