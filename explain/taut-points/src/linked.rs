//! What all sources give, together.

use std::collections::BTreeSet;

use taut_recording::Histogram;

use crate::{
    point::{Pass, PointId, Points},
    span::Spans,
};

/// The one result of all sources.
#[derive(Default)]
pub struct Linked {
    /// Names of points and reasons.
    pub points: Points,
    /// In any order.
    pub passes: Vec<Pass>,
    /// What threads were busy with.
    pub spans: Spans,
    /// In any order.
    pub values: Vec<Value>,
    /// Distributions that a source derives.
    pub histograms: Vec<Histogram>,
    /// What a reader must know to trust the messages, a sentence each.
    pub notes: Vec<String>,
    /// Events that could not be used, a sentence each.
    pub damage: Vec<String>,
    /// Counters that the events' times are of.
    pub counters: BTreeSet<u8>,
}

impl Linked {
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
