//! Where messages ended, so that the account balances.

use std::collections::HashMap;

use crate::{
    Outcomes,
    collect::{Context, Stamp},
    messages::Message,
};

/// A message without an outcome is in flight if it was seen this short before the end of the
/// recording, or within ten times the slowest usual way through, whichever is longer.
const IN_FLIGHT_NS: u64 = 100_000_000;

/// Sums the fates of a chain's messages.
pub(crate) struct Account<'a> {
    context: &'a Context,
    /// Whether anybody in this chain stamps outcomes; else the last point means applied.
    has_outcomes: bool,
    in_flight_since_ns: u64,
    last_point: u32,
    outcomes: Outcomes,
    dropped: HashMap<u32, u64>,
    last_seen: HashMap<(u32, Option<u32>), u64>,
}

impl<'a> Account<'a> {
    /// `usual_ns` is the 99th percentile (or the highest carried) of the way through.
    pub fn new(context: &'a Context, has_outcomes: bool, last_point: u32, usual_ns: u64) -> Account<'a> {
        let in_flight_ns = IN_FLIGHT_NS.max(usual_ns.saturating_mul(10));
        Account {
            context,
            has_outcomes,
            in_flight_since_ns: context.end_ns.saturating_sub(in_flight_ns),
            last_point,
            outcomes: Outcomes::default(),
            dropped: HashMap::new(),
            last_seen: HashMap::new(),
        }
    }

    pub fn add(&mut self, message: &Message, passes: &[Stamp]) {
        self.outcomes.double += u64::from(message.more_outcomes > 0);
        let last = passes.last().map_or(0, |s| s.point);
        let through = passes.iter().any(|s| s.point == self.last_point);
        match message.outcome {
            Some(reason) if self.context.names.get(&reason).is_some_and(|name| name == "applied") => {
                self.outcomes.applied += 1;
            }
            Some(reason) => {
                *self.dropped.entry(reason).or_default() += 1;
                *self.last_seen.entry((last, Some(reason))).or_default() += 1;
            }
            None if !self.has_outcomes && through => self.outcomes.applied += 1,
            None if message.last_ns >= self.in_flight_since_ns => self.outcomes.in_flight += 1,
            None => {
                self.outcomes.unexplained += 1;
                *self.last_seen.entry((last, None)).or_default() += 1;
            }
        }
    }

    pub fn finish(mut self) -> Outcomes {
        let name = |id: u32| self.context.name(id);
        self.outcomes.dropped = self.dropped.iter().map(|(reason, n)| (name(*reason), *n)).collect();
        self.outcomes.dropped.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let place = |((point, reason), n): (&(u32, Option<u32>), &u64)| {
            (name(*point), reason.map_or("unexplained".to_owned(), name), *n)
        };
        self.outcomes.last_seen = self.last_seen.iter().map(place).collect();
        self.outcomes.last_seen.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| (&a.0, &a.1).cmp(&(&b.0, &b.1))));
        self.outcomes
    }
}
