//! Messages that two hosts stamped, or that one published and the other took, and bytes that one sent and the other received → the
//! offset of their clocks.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
};

use super::{
    align::{Alignment, Crossing, Drift, Way, align},
    clocks_from::ClocksFrom,
    host_clock::HostClock,
    ros_messages::{RosSightings, crossed},
    survey::{Sighting, Survey},
    ways::{Known, Message, OrderFrom, Ways},
};
use crate::flows::Crossed;

/// Two hosts with what their messages say of their clocks.
#[derive(Debug)]
pub struct Pair {
    /// Their numbers, the lower one first.
    pub hosts: (usize, usize),
    /// Between raw times of both.
    pub alignment: Alignment,
    /// Points between which messages changed host, with how many.
    pub routes: Vec<Route>,
    /// Messages that both hosts stamped.
    pub common: u64,
    /// Messages that the first, and not the second, stamped; and the other way round.
    pub alone: [u64; 2],
    /// Ids that both stamped and that passed a point more than once: not used for the clocks.
    pub repeated: u64,
    /// What the order of the points follows from.
    pub order_from: OrderFrom,
    /// What became of what both hosts' daemons state of CLOCK_REALTIME; `None`: they do not.
    pub stated: Option<(Stated, Use)>,
    /// When messages and bytes changed host, on the first one's raw clock; also those that the clocks are not aligned by.
    pub(super) moments_ns: Vec<i64>,
}

/// A host as a pair needs it.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub number: usize,
    pub sightings: &'a [Sighting],
    pub ros: &'a RosSightings,
    pub survey: &'a Survey,
    pub clock: &'a HostClock,
}

/// The offset of the clocks as both hosts' daemons state it of CLOCK_REALTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stated {
    /// The daemons.
    pub by: Keeper,
    /// At this moment of the first one's raw clock.
    pub at_ns: i64,
    /// The offset.
    pub offset_ns: i64,
    /// By how much it is wrong at most.
    pub bound_ns: i64,
}

/// What keeps CLOCK_REALTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// chronyd.
    Chronyd,
    /// ptp4l.
    Ptp4l,
}

/// What a statement on the clocks was good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It narrows what the messages say.
    Narrows,
    /// The messages say more.
    NotNeeded,
    /// No offset agrees with both; so far are they apart at least. The messages are believed.
    Contradicted(i64),
}

/// Messages change host between two points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The point that they leave.
    pub from: String,
    /// The point that they reach.
    pub to: String,
    /// Which way.
    pub way: Way,
    /// How many.
    pub messages: u64,
}

/// Why the recordings of two hosts cannot be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotJoined {
    /// No message was stamped on both.
    NoCommonMessage,
    /// All such messages have ids that are used again.
    OnlyRepeated,
    /// The declared chains contradict each other.
    NoOrder,
    /// The messages do.
    Contradictory,
}

impl Display for NotJoined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotJoined::NoCommonMessage => {
                "no message was stamped on both hosts, no ROS 2 message of one was taken on the other, and no bytes of a TCP connection were \
                 seen on both; stamp messages with the same id on each and record both at the same time, or join by --clocks realtime"
            }
            NotJoined::OnlyRepeated => {
                "every id that both hosts stamped passes some point more than once; give each message an id of its own"
            }
            NotJoined::Contradictory => {
                "the messages of both hosts contradict each other at many moments; stamp each with an id of its own, before it is sent and \
                 after it is received"
            }
            NotJoined::NoOrder => {
                "no offset of the clocks agrees with the declared chains; check the order of their points in taut.toml"
            }
        })
    }
}

impl std::error::Error for NotJoined {}

/// What the messages of two hosts say of their clocks, and where those do not go both ways the calls by which bytes went between
/// their sockets. `from`: what the clocks are known by.
pub(super) fn pair(
    sides: [Side<'_>; 2],
    flows: &[Crossed],
    known: &Known<'_>,
    stated: Option<Stated>,
    from: ClocksFrom,
) -> Result<Pair, NotJoined> {
    let Matched { messages, alone, repeated } = matched(sides[0].sightings, sides[1].sightings);
    let ros = [(Way::ToB, sides[0], sides[1]), (Way::ToA, sides[1], sides[0])]
        .map(|(way, from, to)| (way, crossed(from.ros, to.ros), to));
    let numbers = sides.map(|side| side.number as u16);
    let way_of = |crossed: &Crossed| match crossed.hosts() {
        (from, to) if [from, to] == numbers => Some(Way::ToB),
        (from, to) if [to, from] == numbers => Some(Way::ToA),
        _ => None,
    };
    let flows: Vec<(Way, &Crossed)> = flows.iter().filter_map(|of| Some((way_of(of)?, of))).collect();
    let has_messages =
        !messages.is_empty() || ros.iter().any(|(_, crossed, _)| !crossed.is_empty()) || !flows.is_empty();
    let is_realtime = from == ClocksFrom::Realtime;
    if !has_messages && !is_realtime {
        return Err(if repeated > 0 { NotJoined::OnlyRepeated } else { NotJoined::NoCommonMessage });
    }
    let ways = match messages.is_empty() {
        true => None,
        false => {
            // What a daemon states may be wrong, and shows as wrong only against ways that are known without it.
            let as_stated = || {
                let realtime_error_ns = Some(stated?.bound_at(messages[0].0[0].at_ns));
                Ways::of(&messages, &Known { realtime_error_ns, ..*known })
            };
            let ways = Ways::of(&messages, known);
            let is_assumed = ways.as_ref().is_none_or(|ways| ways.from == OrderFrom::Realtime);
            let ways = if is_assumed { as_stated().or(ways) } else { ways };
            // The clocks do not follow from the order there.
            let without = || Ways::of(&messages, &Known { chains: &[], ..*known });
            let ways = if is_realtime { ways.or_else(without) } else { ways };
            Some(ways.ok_or(NotJoined::NoOrder)?)
        }
    };
    let mut counts: BTreeMap<(u32, u32, bool), u64> = BTreeMap::new();
    let mut crossings = Vec::new();
    for message in &messages {
        for (a, b, way) in ways.iter().flat_map(|ways| ways.changes(*message)) {
            *counts.entry((a.point, b.point, way == Way::ToB)).or_default() += 1;
            crossings.push(Crossing { way, a_ns: a.at_ns, b_ns: b.at_ns, message: a.id });
        }
    }
    let route = |((a, b, to_b), messages): ((u32, u32, bool), u64)| {
        let (a, b) = (sides[0].survey.name(a), sides[1].survey.name(b));
        let (from, to, way) = if to_b { (a, b, Way::ToB) } else { (b, a, Way::ToA) };
        Route { from, to, way, messages }
    };
    let mut routes: Vec<Route> = counts.into_iter().map(route).collect();
    for (way, crossed, to) in ros {
        let mut topics: BTreeMap<&str, u64> = BTreeMap::new();
        for (sent, taken) in crossed {
            *topics.entry(to.survey.ros.topic(taken.by)).or_default() += 1;
            let (a_ns, b_ns) = if way == Way::ToB { (sent.at_ns, taken.at_ns) } else { (taken.at_ns, sent.at_ns) };
            crossings.push(Crossing { way, a_ns, b_ns, message: sent.stamp });
        }
        routes.extend(topics.into_iter().map(|(topic, messages)| {
            let (from, to) = (format!("publish {topic}"), format!("take {topic}"));
            Route { from, to, way, messages }
        }));
    }
    // The byte was sent after that call had begun, and was there before this one ended.
    let of_flow = |(message, (way, of)): (u64, &(Way, &Crossed))| {
        let (from, to) = if *way == Way::ToB { (0, 1) } else { (1, 0) };
        let sent_ns = sides[from].clock.of_monotonic(of.last.start_ns);
        let received_ns = sides[to].clock.of_monotonic(of.received.end_ns);
        let (a_ns, b_ns) = if *way == Way::ToB { (sent_ns, received_ns) } else { (received_ns, sent_ns) };
        Crossing { way: *way, a_ns, b_ns, message }
    };
    let of_flows: Vec<Crossing> = (0..).zip(&flows).map(of_flow).collect();
    // Hops of bytes have a bound too, where the clocks are aligned by stamps of another time.
    let moments_ns = crossings.iter().chain(&of_flows).map(|crossing| crossing.a_ns).collect();
    let goes = |way: Way| crossings.iter().any(|crossing| crossing.way == way);
    if !(goes(Way::ToB) && goes(Way::ToA)) {
        let mut sockets: BTreeMap<(bool, String), u64> = BTreeMap::new();
        for (way, of) in &flows {
            *sockets.entry((*way == Way::ToB, of.name())).or_default() += 1;
        }
        crossings.extend(of_flows);
        routes.extend(sockets.into_iter().map(|((to_b, name), messages)| {
            let (from, to, way) =
                (format!("send {name}"), format!("receive {name}"), if to_b { Way::ToB } else { Way::ToA });
            Route { from, to, way, messages }
        }));
    }
    routes.sort_by_key(|route| std::cmp::Reverse(route.messages));
    let start_ns = crossings.iter().map(|crossing| crossing.a_ns).min().unwrap_or(0);
    let alignment = match from {
        ClocksFrom::OneMachine => Alignment::constant(start_ns, 0, Some(0)),
        ClocksFrom::Realtime => Alignment::constant(start_ns, known.realtime_ns, None),
        ClocksFrom::Messages => align(&crossings, Drift::default()),
    };
    if alignment.is_contradictory {
        return Err(NotJoined::Contradictory);
    }
    let stated = stated.filter(|_| has_messages && from == ClocksFrom::Messages);
    let (alignment, stated) = match stated {
        Some(stated) => {
            let (alignment, used) = narrowed(&crossings, alignment, stated);
            (alignment, Some((stated, used)))
        }
        None => (alignment, None),
    };
    Ok(Pair {
        hosts: (sides[0].number, sides[1].number),
        alignment,
        routes,
        common: messages.len() as u64,
        alone,
        repeated,
        // Who publishes a message is said.
        order_from: ways.map_or(OrderFrom::Declared, |ways| ways.from),
        stated,
        moments_ns,
    })
}

impl Stated {
    /// By how much the offset is wrong at most at another moment of the first one's raw clock: the clocks drift.
    fn bound_at(self, at_ns: i64) -> i64 {
        let drifts_ns = Drift::default().most * at_ns.abs_diff(self.at_ns) as f64;
        self.bound_ns.saturating_add(drifts_ns.ceil() as i64)
    }
}

impl Pair {
    /// The bound at the median of the messages.
    pub(super) fn bound_ns(&self) -> Option<u64> {
        let mut bounds: Vec<u64> =
            self.moments_ns.iter().filter_map(|at_ns| self.alignment.at(*at_ns)?.bound_ns).collect();
        bounds.sort_unstable();
        bounds.get(bounds.len() / 2).copied()
    }
}

/// What the messages say, within what is stated. Where no offset agrees with both, the messages alone: they are no statement.
fn narrowed(crossings: &[Crossing], alignment: Alignment, stated: Stated) -> (Alignment, Use) {
    let Stated { at_ns, offset_ns, bound_ns, .. } = stated;
    let (low_ns, high_ns) = (offset_ns.saturating_sub(bound_ns), offset_ns.saturating_add(bound_ns));
    let Some(knot) = alignment.knot(at_ns) else { return (alignment, Use::NotNeeded) };
    let apart_ns =
        [knot.low_ns.map(|low| low.saturating_sub(high_ns)), knot.high_ns.map(|high| low_ns.saturating_sub(high))];
    let apart_ns = apart_ns.into_iter().flatten().max().unwrap_or(0);
    if apart_ns > 0 {
        return (alignment, Use::Contradicted(apart_ns));
    }
    if knot.low_ns.is_some_and(|low| low >= low_ns) && knot.high_ns.is_some_and(|high| high <= high_ns) {
        return (alignment, Use::NotNeeded);
    }
    // It bounds the offset from both sides, as two messages do that took no time.
    let limit = |way, offset_ns| Crossing { way, a_ns: at_ns, b_ns: at_ns.wrapping_add(offset_ns), message: u64::MAX };
    let limits = [limit(Way::ToB, high_ns), limit(Way::ToA, low_ns)];
    let within = align(&[crossings, &limits].concat(), Drift::default());
    let is_agreed = within.refused == alignment.refused && within.pieces.len() == alignment.pieces.len();
    match is_agreed {
        true => (Alignment { used: alignment.used, ..within }, Use::Narrows),
        false => (alignment, Use::Contradicted(0)),
    }
}

/// Messages that both saw.
#[derive(Default)]
struct Matched<'a> {
    messages: Vec<Message<'a>>,
    /// How many each saw alone.
    alone: [u64; 2],
    /// Ids that passed a point of a host more than once: which passes belong together is not known before the clocks are.
    repeated: u64,
}

fn matched<'a>(a: &'a [Sighting], b: &'a [Sighting]) -> Matched<'a> {
    let mut of_b = b.chunk_by(|one, next| one.id == next.id).peekable();
    let mut found = Matched::default();
    let repeats = |all: &[Sighting]| {
        let mut points: Vec<u32> = all.iter().map(|seen| seen.point).collect();
        points.sort_unstable();
        points.windows(2).any(|two| two[0] == two[1])
    };
    for of_a in a.chunk_by(|one, next| one.id == next.id) {
        let id = of_a[0].id;
        while of_b.next_if(|of_b| of_b[0].id < id).is_some() {
            found.alone[1] += 1;
        }
        match of_b.next_if(|of_b| of_b[0].id == id) {
            Some(of_b) if repeats(of_a) || repeats(of_b) => found.repeated += 1,
            Some(of_b) => found.messages.push((of_a, of_b)),
            None => found.alone[0] += 1,
        }
    }
    found.alone[1] += of_b.count() as u64;
    found
}

#[cfg(test)]
mod tests {
    use taut_recording::host_numbers::thread_of;

    use super::*;
    use crate::flows::Chunk;

    #[test]
    fn bytes_long_after_the_stamps_that_align_the_clocks_have_the_bound_of_their_own_time() {
        let delay_ns = 100_000;
        // 100 stamps each way in a second, and then a call that receives what was sent after a hundred.
        let mut seen = [Vec::new(), Vec::new()];
        for id in 0..200 {
            let sent_ns = 1_000_000_000 + 5_000_000 * id as i64;
            let from = (id % 2) as usize;
            seen[from].push(Sighting { id, at_ns: sent_ns, point: 1 });
            seen[1 - from].push(Sighting { id, at_ns: sent_ns + delay_ns, point: 2 });
        }
        let late_ns = 100_000_000_000;
        let call = |host, start_ns| Chunk { tid: thread_of(host, 1), start_ns, end_ns: start_ns + 1_000, bytes: 8 };
        let sent = call(0, late_ns);
        let received = call(1, late_ns + 100_000);
        let flow = Crossed { first: sent, last: sent, received, is_tcp: true, port: 6379 };
        let (ros, survey, clock) = (RosSightings::default(), Survey::default(), HostClock::default());
        let side = |number: usize| Side { number, sightings: &seen[number], ros: &ros, survey: &survey, clock: &clock };
        let pair = pair([side(0), side(1)], &[flow], &Known::default(), None, ClocksFrom::Messages).unwrap();
        assert_eq!(pair.alignment.used, [100, 100], "the stamps align the clocks");
        let bound_ns = |at_ns: i64| pair.alignment.at(at_ns).unwrap().bound_ns.unwrap();
        let most_ns = pair.moments_ns.iter().map(|at_ns| bound_ns(*at_ns)).max().unwrap();
        assert!(most_ns >= bound_ns(late_ns as i64) && most_ns > 1_000_000, "{most_ns}");
    }

    #[test]
    fn for_clocks_that_realtime_gives_messages_need_not_agree() {
        // Bytes both ways, each at moments that have nothing to do with each other.
        let moment_ns = |nth: u64| {
            let mixed = nth.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) * 3_000
        };
        let flow = |nth: u64| {
            let (from, to) = if nth.is_multiple_of(2) { (0, 1) } else { (1, 0) };
            let call = |host, start_ns| Chunk { tid: thread_of(host, 1), start_ns, end_ns: start_ns, bytes: 8 };
            let sent = call(from, moment_ns(2 * nth));
            Crossed { first: sent, last: sent, received: call(to, moment_ns(2 * nth + 1)), is_tcp: true, port: 6379 }
        };
        let flows: Vec<Crossed> = (1..400).map(flow).collect();
        let (ros, survey, clock) = (RosSightings::default(), Survey::default(), HostClock::default());
        let side = |number: usize| Side { number, sightings: &[], ros: &ros, survey: &survey, clock: &clock };
        let known = Known { realtime_ns: 7_000_000, ..Known::default() };
        let by = |from| pair([side(0), side(1)], &flows, &known, None, from);
        assert_eq!(by(ClocksFrom::Messages).err(), Some(NotJoined::Contradictory));
        let pair = by(ClocksFrom::Realtime).unwrap();
        assert_eq!(pair.alignment.at(0).map(|known| (known.offset_ns, known.bound_ns)), Some((7_000_000, None)));
    }
}
