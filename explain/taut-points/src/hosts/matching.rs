//! Messages that two hosts stamped → the offset of their clocks.
//!
//! Which of two points, one on each host, comes first is not known before the offset is. For each pair of points the differences of
//! the two readings, over all messages, cover a stretch that the offset is not in: it is below all of them where the point on the
//! first host comes first, and above them otherwise. So the offset is in a gap between those stretches. Of several gaps it is the
//! one that the hosts' CLOCK_REALTIME points to.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
};

use taut_recording::Info;

use super::{
    align::{Alignment, Crossing, Drift, Way, align},
    host_clock::HostClock,
    survey::{Sighting, Survey},
};

/// A delay above this is not believed where the other way to read the messages has none such: CLOCK_REALTIME is wrong then.
const PLAUSIBLE_NS: i64 = 1_000_000_000;
/// From so many messages on the most extreme hundredth does not tell which point is first: ids may be used twice.
const TRIMMED_FROM: usize = 100;

/// Two hosts with what is known of their clocks.
#[derive(Debug)]
pub struct Joined {
    /// Between raw times of both.
    pub alignment: Alignment,
    /// The clocks of both.
    pub(super) clocks: [HostClock; 2],
    /// Points between which messages changed host, with how many.
    pub routes: Vec<Route>,
    /// Messages that both hosts stamped.
    pub common: u64,
    /// Messages that only the first, and only the second, stamped.
    pub alone: [u64; 2],
    /// By how much the offset lies away from where the hosts' CLOCK_REALTIME has it.
    pub realtime_off_ns: i64,
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

/// Why two recordings cannot be joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotJoined {
    /// No message was stamped on both.
    NoCommonMessage,
    /// The points of both are passed at the same times on all: no offset puts them in an order.
    NoOrder,
}

impl Display for NotJoined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotJoined::NoCommonMessage => {
                "no message was stamped on both hosts; stamp it with the same id on each, and record both at the same time"
            }
            NotJoined::NoOrder => "no offset of the clocks puts the points of both hosts in one order; are the ids of messages unique?",
        })
    }
}

impl std::error::Error for NotJoined {}

/// What the stamps of two hosts say of their clocks.
///
/// # Errors
/// They have no message in common, or none that tells an order.
pub fn join(surveys: [&Survey; 2], infos: [&Info; 2]) -> Result<Joined, NotJoined> {
    let clocks = surveys.map(Survey::clock);
    let seen = [surveys[0].sightings(&clocks[0]), surveys[1].sightings(&clocks[1])];
    let (messages, alone) = matched(&seen[0], &seen[1]);
    if messages.is_empty() {
        return Err(NotJoined::NoCommonMessage);
    }
    let ahead = [Survey::realtime_ahead_ns(infos[0], &clocks[0]), Survey::realtime_ahead_ns(infos[1], &clocks[1])];
    let by_realtime_ns = ahead[0].wrapping_sub(ahead[1]);
    let order = Order::of(&messages, by_realtime_ns).ok_or(NotJoined::NoOrder)?;
    let mut counts: BTreeMap<(u32, u32, bool), u64> = BTreeMap::new();
    let mut crossings = Vec::new();
    for (on_a, on_b) in &messages {
        for (a, b, way) in order.changes(on_a, on_b) {
            *counts.entry((a.point, b.point, way == Way::ToB)).or_default() += 1;
            crossings.push(Crossing { way, a_ns: a.at_ns, b_ns: b.at_ns, message: a.id });
        }
    }
    let route = |((a, b, to_b), messages): ((u32, u32, bool), u64)| {
        let (a, b) = (surveys[0].name(a), surveys[1].name(b));
        let (from, to, way) = if to_b { (a, b, Way::ToB) } else { (b, a, Way::ToA) };
        Route { from, to, way, messages }
    };
    let mut routes: Vec<Route> = counts.into_iter().map(route).collect();
    routes.sort_by(|a, b| b.messages.cmp(&a.messages));
    let alignment = align(&crossings, Drift::default());
    let start_ns = messages.iter().map(|(a, _)| a[0].at_ns).min().unwrap_or(0);
    let offset_ns = alignment.at(start_ns).map_or(by_realtime_ns, |known| known.offset_ns);
    let realtime_off_ns = offset_ns.wrapping_sub(by_realtime_ns);
    Ok(Joined { alignment, clocks, routes, common: messages.len() as u64, alone, realtime_off_ns })
}

impl Joined {
    /// CLOCK_MONOTONIC of the first host when the second's shows this.
    pub fn time_of_monotonic(&self, time_ns: u64) -> u64 {
        self.to_first(self.clocks[1].of_monotonic(time_ns))
    }

    /// CLOCK_MONOTONIC of the first host at this reading of one of the second's counters; `None`: it has no calibrations.
    pub fn time_of_ticks(&self, counter: u8, ticks: u64) -> Option<u64> {
        Some(self.to_first(self.clocks[1].of_ticks(counter, ticks)?))
    }

    fn to_first(&self, raw_ns: i64) -> u64 {
        self.clocks[0].to_monotonic(self.alignment.a_of(raw_ns).unwrap_or(raw_ns))
    }
}

type Message<'a> = (&'a [Sighting], &'a [Sighting]);

/// Messages that both saw, and how many each saw alone.
fn matched<'a>(a: &'a [Sighting], b: &'a [Sighting]) -> (Vec<Message<'a>>, [u64; 2]) {
    let mut of_b = b.chunk_by(|one, next| one.id == next.id).peekable();
    let (mut both, mut alone) = (Vec::new(), [0, 0]);
    for of_a in a.chunk_by(|one, next| one.id == next.id) {
        let id = of_a[0].id;
        while of_b.next_if(|of_b| of_b[0].id < id).is_some() {
            alone[1] += 1;
        }
        match of_b.next_if(|of_b| of_b[0].id == id) {
            Some(of_b) => both.push((of_a, of_b)),
            None => alone[0] += 1,
        }
    }
    alone[1] += of_b.count() as u64;
    (both, alone)
}

/// Which of two points, one on each host, comes first.
struct Order {
    /// Points on A and B → which way a message goes between the two.
    ways: BTreeMap<(u32, u32), Way>,
    /// An offset at `start_ns`, and its rate.
    near_ns: i64,
    start_ns: i64,
    rate: f64,
}

impl Order {
    fn of(messages: &[Message<'_>], by_realtime_ns: i64) -> Option<Order> {
        let start_ns = messages.iter().map(|(a, _)| a[0].at_ns).min()?;
        let mut pairs: BTreeMap<(u32, u32), Vec<(i64, i64)>> = BTreeMap::new();
        for (on_a, on_b) in messages {
            for a in *on_a {
                for b in *on_b {
                    let differs = b.at_ns.wrapping_sub(a.at_ns).wrapping_sub(by_realtime_ns);
                    pairs.entry((a.point, b.point)).or_default().push((a.at_ns - start_ns, differs));
                }
            }
        }
        let rate = rate_of(pairs.values().max_by_key(|all| all.len())?);
        let stretch = |all: &Vec<(i64, i64)>| {
            let mut all: Vec<i64> =
                all.iter().map(|(at, differs)| differs - (*at as f64 * rate).round() as i64).collect();
            all.sort_unstable();
            let trimmed = if all.len() >= TRIMMED_FROM { all.len() / 100 } else { 0 };
            (all[trimmed], all[all.len() - 1 - trimmed])
        };
        let stretches: BTreeMap<(u32, u32), (i64, i64)> =
            pairs.iter().map(|(pair, all)| (*pair, stretch(all))).collect();
        let offset_ns = between_stretches(stretches.values().copied().collect());
        let way = |(low, high): (i64, i64)| if low + (high - low) / 2 > offset_ns { Way::ToB } else { Way::ToA };
        let ways = stretches.into_iter().map(|(pair, stretch)| (pair, way(stretch))).collect();
        Some(Order { ways, near_ns: offset_ns.wrapping_add(by_realtime_ns), start_ns, rate })
    }

    /// Where a message changes host: its readings next to each other, in time order.
    fn changes(&self, on_a: &[Sighting], on_b: &[Sighting]) -> Vec<(Sighting, Sighting, Way)> {
        let offset = |at_ns: i64| self.near_ns + ((at_ns - self.start_ns) as f64 * self.rate).round() as i64;
        let of_a = on_a.iter().map(|seen| (seen.at_ns.wrapping_add(offset(seen.at_ns)), true, *seen));
        let mut all: Vec<(i64, bool, Sighting)> =
            of_a.chain(on_b.iter().map(|seen| (seen.at_ns, false, *seen))).collect();
        all.sort_unstable();
        let next = all.windows(2).filter(|two| two[0].1 != two[1].1);
        let both = next.map(|two| if two[0].1 { (two[0].2, two[1].2) } else { (two[1].2, two[0].2) });
        both.filter_map(|(a, b)| Some((a, b, *self.ways.get(&(a.point, b.point))?))).collect()
    }
}

/// How fast the differences of a pair of points move: by the least of their first fifth and of their last.
fn rate_of(all: &[(i64, i64)]) -> f64 {
    let last = all.iter().map(|(at, _)| *at).max().unwrap_or(0);
    let least =
        |from: i64, to: i64| all.iter().filter(|(at, _)| (from..=to).contains(at)).min_by_key(|(_, differs)| *differs);
    let (Some(first), Some(end)) = (least(0, last / 5), least(last - last / 5, last)) else { return 0.0 };
    let rate = (end.1 - first.1) as f64 / (end.0 - first.0).max(1) as f64;
    // A step is no rate, and neither is a second's noise.
    if rate.abs() > Drift::default().most || last < 5_000_000_000 { 0.0 } else { rate }
}

/// An offset outside all stretches: in the gap that holds 0, as long as no delay in it is implausible, else in the nearest one with
/// both ends.
fn between_stretches(mut stretches: Vec<(i64, i64)>) -> i64 {
    stretches.sort_unstable();
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (low, high) in stretches {
        match joined.last_mut() {
            Some(last) if low <= last.1 => last.1 = last.1.max(high),
            _ => joined.push((low, high)),
        }
    }
    let gaps = joined.windows(2).map(|two| (two[0].1, two[1].0));
    let nearest = gaps.min_by_key(|(from, to)| if *to < 0 { -to } else { (*from).max(0) });
    let middle = |(from, to): (i64, i64)| from + (to - from) / 2;
    let (first, last) = (joined[0].0, joined[joined.len() - 1].1);
    let is_outside = !(first..=last).contains(&0);
    let away = if first > 0 { first } else { -last };
    match nearest {
        Some(gap) if !is_outside || away > PLAUSIBLE_NS => middle(gap),
        // All one way, as CLOCK_REALTIME has it; where that is in the middle of the messages, the nearer side.
        _ if is_outside => 0,
        _ if -first < last => first - 1,
        _ => last + 1,
    }
}

impl Joined {
    /// Does away with the alignment: both hosts' CLOCK_REALTIME is taken for one clock.
    pub fn by_realtime(&mut self) {
        let start_ns = self.alignment.pieces.first().map_or(0, |piece| piece.from_ns);
        let offset_ns = self.alignment.at(start_ns).map_or(0, |known| known.offset_ns) - self.realtime_off_ns;
        self.alignment = Alignment::constant(start_ns, offset_ns);
        self.realtime_off_ns = 0;
    }
}
