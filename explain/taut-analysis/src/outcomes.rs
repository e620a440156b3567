//! Where messages ended, so that the account balances.

use foldhash::HashMap;
use taut_points::{Pass, PointId};
use taut_stats::Distribution;

use crate::{
    context::Context,
    line::ChainLine,
    messages::Message,
    result::{LastSeen, Outcomes},
};

/// A message without an outcome is in flight if it was seen this short before the end of the
/// recording, or within ten times the slowest typical way through, whichever is longer.
const IN_FLIGHT_NS: u64 = 100_000_000;

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Applied,
    /// Before the chain's last point, where its way branched and nothing was sent on.
    EndedEarly,
    /// For this reason.
    Dropped(PointId),
    /// Under way when the recording, or that of its next point, began, or when it or its process ended: seen shortly before, still in a
    /// queue, or its source says so.
    InFlight,
    /// Its next stamp may be among those that were lost.
    Lost,
    Unexplained,
}

/// Tells how a chain's messages ended.
pub(crate) struct Fates<'a> {
    context: &'a Context<'a>,
    /// Whether anybody in this chain stamps outcomes; else the last point means applied.
    has_outcomes: bool,
    in_flight_ns: u64,
    last_point: PointId,
    /// Of each point of the line but the first: when the first message was seen at it or behind it.
    begun_ns: Vec<(PointId, u64)>,
    /// Of each point, of the messages that were seen behind it: when the last of them was there, and when the last was behind it.
    left_ns: HashMap<PointId, (u64, u64)>,
}

impl<'a> Fates<'a> {
    pub fn new(
        context: &'a Context<'a>,
        line: &ChainLine,
        rows: &[(&Message, &[Pass])],
        end_to_end: &Distribution,
        whole_life: &Distribution,
    ) -> Fates<'a> {
        let mut first_ns: HashMap<PointId, u64> = HashMap::default();
        for stamp in rows.iter().flat_map(|(_, stamps)| *stamps) {
            let first = first_ns.entry(stamp.point).or_insert(stamp.time_ns);
            *first = stamp.time_ns.min(*first);
        }
        let mut begun_ns = Vec::new();
        for point in line.points.iter().skip(1).rev() {
            let behind = begun_ns.last().map_or(u64::MAX, |(_, ns)| *ns);
            begun_ns.push((*point, behind.min(first_ns.get(point).copied().unwrap_or(u64::MAX))));
        }
        begun_ns.reverse();
        let mut left_ns: HashMap<PointId, (u64, u64)> = HashMap::default();
        for pair in rows.iter().flat_map(|(_, stamps)| stamps.windows(2)) {
            let left = left_ns.entry(pair[0].point).or_default();
            *left = (left.0.max(pair[0].time_ns), left.1.max(pair[1].time_ns));
        }
        let typical_ns = [end_to_end, whole_life].into_iter().find_map(Distribution::highest_to_p99);
        let in_flight_ns = IN_FLIGHT_NS.max(typical_ns.map_or(0, |(_, ns)| ns).saturating_mul(10));
        Fates {
            context,
            has_outcomes: rows.iter().any(|(message, _)| message.outcome.is_some()),
            in_flight_ns,
            begun_ns,
            left_ns,
            last_point: line.points[line.points.len() - 1],
        }
    }

    pub fn of(&self, message: &Message, passes: &[Pass]) -> Fate {
        let through = passes.iter().any(|s| s.point == self.last_point);
        match message.outcome {
            Some(reason) => match self.context.points.known(reason) {
                Some("applied") => Fate::Applied,
                Some("in_flight") => Fate::InFlight,
                Some("ended_early") if through => Fate::Applied,
                Some("ended_early") => Fate::EndedEarly,
                _ => Fate::Dropped(reason),
            },
            None if !self.has_outcomes && through => Fate::Applied,
            None if message.last_ns.saturating_add(self.in_flight_ns) >= self.context.end_ns => Fate::InFlight,
            None if self.is_early(message, passes) || self.is_queued(passes) => Fate::InFlight,
            None if self.may_be_lost(message) => Fate::Lost,
            None => Fate::Unexplained,
        }
    }

    /// Whether no message had been seen behind this one's last point when it was there: it was under way when the
    /// recording of the next point's process began.
    fn is_early(&self, message: &Message, passes: &[Pass]) -> bool {
        let Some(last) = passes.last().map(|pass| pass.point) else { return false };
        let next = self.begun_ns.iter().position(|(point, _)| *point == last).map_or(0, |at| at + 1);
        self.begun_ns.get(next).is_some_and(|(_, begun_ns)| message.last_ns < *begun_ns && *begun_ns < u64::MAX)
    }

    /// Whether nothing overtook it where it was seen last, and messages went on from there until the end: it was still in the queue.
    fn is_queued(&self, passes: &[Pass]) -> bool {
        let left = passes.last().and_then(|last| Some((last, self.left_ns.get(&last.point)?)));
        left.is_some_and(|(last, (left_ns, behind_ns))| {
            last.time_ns > *left_ns && behind_ns.saturating_add(self.in_flight_ns) >= self.context.end_ns
        })
    }

    /// Whether stamps were lost while it was to be seen next.
    fn may_be_lost(&self, message: &Message) -> bool {
        self.context.has_hole(message.last_ns, message.last_ns.saturating_add(self.in_flight_ns))
    }
}

/// Sums the fates of a chain's messages.
pub(crate) struct Account<'a> {
    fates: Fates<'a>,
    outcomes: Outcomes,
    dropped: HashMap<PointId, u64>,
    last_seen: HashMap<(PointId, Fate), u64>,
}

impl<'a> Account<'a> {
    pub fn new(fates: Fates<'a>) -> Account<'a> {
        Account { fates, outcomes: Outcomes::default(), dropped: HashMap::default(), last_seen: HashMap::default() }
    }

    pub fn add(&mut self, message: &Message, passes: &[Pass]) {
        self.outcomes.double += u64::from(message.more_outcomes > 0);
        let fate = self.fates.of(message, passes);
        match fate {
            Fate::Applied => return self.outcomes.applied += 1,
            Fate::InFlight => return self.outcomes.in_flight += 1,
            Fate::EndedEarly => self.outcomes.ended_early += 1,
            Fate::Lost => self.outcomes.lost += 1,
            Fate::Dropped(reason) => *self.dropped.entry(reason).or_default() += 1,
            Fate::Unexplained => self.outcomes.unexplained += 1,
        }
        if let Some(last) = passes.last() {
            *self.last_seen.entry((last.point, fate)).or_default() += 1;
        }
    }

    pub fn finish(mut self) -> Outcomes {
        let name = |point: PointId| self.fates.context.name(point);
        self.outcomes.dropped = self.dropped.iter().map(|(reason, n)| (name(*reason), *n)).collect();
        self.outcomes.dropped.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let why = |fate: Fate| match fate {
            Fate::Dropped(reason) => name(reason),
            Fate::EndedEarly => "ended early".to_owned(),
            Fate::Lost => "stamps were lost".to_owned(),
            _ => "unexplained".to_owned(),
        };
        let place = |((point, fate), n): (&(PointId, Fate), &u64)| LastSeen {
            point: name(*point),
            reason: why(*fate),
            messages: *n,
        };
        self.outcomes.last_seen = self.last_seen.iter().map(place).collect();
        let order = |a: &LastSeen, b: &LastSeen| {
            b.messages.cmp(&a.messages).then_with(|| (&a.point, &a.reason).cmp(&(&b.point, &b.reason)))
        };
        self.outcomes.last_seen.sort_by(order);
        self.outcomes
    }
}
