//! Messages that two hosts stamped → the offset of their clocks.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
};

use taut_recording::Info;

use super::{
    align::{Alignment, Crossing, Drift, Way, align},
    host_clock::HostClock,
    survey::{Sighting, Survey},
    ways::{Known, Message, OrderFrom, Ways},
};

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
    /// Ids that both stamped and that passed a point more than once: not used for the clocks.
    pub repeated: u64,
    /// By how much the offset lies away from where the hosts' CLOCK_REALTIME has it.
    pub realtime_off_ns: i64,
    /// By how much CLOCK_REALTIME of each host is wrong at most, if its kernel states it.
    pub stated_error_us: [Option<i64>; 2],
    /// The bounds of the offset at the messages between the hosts, ascending.
    bounds_ns: Vec<u64>,
    /// What the order of the points follows from.
    pub order_from: OrderFrom,
    /// Where the offset comes from.
    pub clocks_from: ClocksFrom,
}

/// Where the offset of two clocks comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClocksFrom {
    /// The messages between the hosts.
    Messages,
    /// Both recordings are of one boot of one machine: the clocks are the same.
    OneMachine,
    /// CLOCK_REALTIME of both, as the user wants it.
    Realtime,
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
                "no message was stamped on both hosts; stamp it with the same id on each, and record both at the same time"
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

/// What the stamps of two hosts say of their clocks. `names`: of the hosts. `chains`: points of declared chains, each "HOST:POINT".
/// `is_one_machine`: as [`is_one_machine`] has it, or the user; then the clocks are the same.
///
/// # Errors
/// They have no message in common, or no order of their points agrees with the declared chains.
pub fn join(
    surveys: [&Survey; 2],
    infos: [&Info; 2],
    names: [&str; 2],
    chains: &[Vec<String>],
    is_one_machine: bool,
) -> Result<Joined, NotJoined> {
    let clocks = surveys.map(|survey| if is_one_machine { survey.monotonic_clock() } else { survey.clock() });
    let seen = [surveys[0].sightings(&clocks[0]), surveys[1].sightings(&clocks[1])];
    let Matched { messages, alone, repeated } = matched(&seen[0], &seen[1]);
    if messages.is_empty() {
        return Err(if repeated > 0 { NotJoined::OnlyRepeated } else { NotJoined::NoCommonMessage });
    }
    let ahead = [Survey::realtime_ahead_ns(infos[0], &clocks[0]), Survey::realtime_ahead_ns(infos[1], &clocks[1])];
    let stated_error_us = infos.map(|info| info.fact("realtime_max_error_us").parse().ok());
    let (realtime_ns, realtime_error_ns) = match is_one_machine {
        true => (0, Some(0)),
        false => (ahead[0].wrapping_sub(ahead[1]), sum_ns(stated_error_us)),
    };
    let chains: Vec<Vec<(usize, u32)>> = chains.iter().map(|chain| points(chain, surveys, names)).collect();
    let known = Known { chains: &chains, realtime_ns, realtime_error_ns };
    let ways = Ways::of(&messages, &known).ok_or(NotJoined::NoOrder)?;
    let mut counts: BTreeMap<(u32, u32, bool), u64> = BTreeMap::new();
    let mut crossings = Vec::new();
    for message in &messages {
        for (a, b, way) in ways.changes(*message) {
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
    routes.sort_by_key(|route| std::cmp::Reverse(route.messages));
    let start_ns = messages.iter().map(|(a, _)| a[0].at_ns).min().unwrap_or(0);
    let alignment = match is_one_machine {
        true => Alignment::constant(start_ns, 0, Some(0)),
        false => align(&crossings, Drift::default()),
    };
    if alignment.is_contradictory {
        return Err(NotJoined::Contradictory);
    }
    let offset_ns = alignment.at(start_ns).map_or(realtime_ns, |known| known.offset_ns);
    let bounds = crossings.iter().filter_map(|crossing| alignment.at(crossing.a_ns)?.bound_ns);
    let mut bounds_ns: Vec<u64> = bounds.collect();
    bounds_ns.sort_unstable();
    Ok(Joined {
        alignment,
        bounds_ns,
        stated_error_us,
        clocks,
        routes,
        common: messages.len() as u64,
        alone,
        repeated,
        realtime_off_ns: offset_ns.wrapping_sub(realtime_ns),
        order_from: ways.from,
        clocks_from: if is_one_machine { ClocksFrom::OneMachine } else { ClocksFrom::Messages },
    })
}

impl Joined {
    /// The offset of the second host's clock at the first message.
    pub fn offset_ns(&self) -> i64 {
        self.alignment
            .pieces
            .first()
            .and_then(|piece| self.alignment.at(piece.from_ns))
            .map_or(0, |known| known.offset_ns)
    }

    /// By how much the offset is wrong at most: the median of the messages between the hosts, and the most; `None` without a bound.
    pub fn bounds_ns(&self) -> Option<(u64, u64)> {
        Some((*self.bounds_ns.get(self.bounds_ns.len() / 2)?, *self.bounds_ns.last()?))
    }

    /// CLOCK_MONOTONIC of the first host when the second's shows this.
    pub fn time_of_monotonic(&self, time_ns: u64) -> u64 {
        self.to_first(self.clocks[1].of_monotonic(time_ns))
    }

    /// CLOCK_MONOTONIC of the first host at this reading of one of the second's counters; `None`: it has no calibrations.
    pub fn time_of_ticks(&self, counter: u8, ticks: u64) -> Option<u64> {
        Some(self.to_first(self.clocks[1].of_ticks(counter, ticks)?))
    }

    /// CLOCK_MONOTONIC of the first host at this moment of its raw clock.
    pub fn time_of_raw(&self, raw_ns: i64) -> u64 {
        self.clocks[0].to_monotonic(raw_ns)
    }

    /// Does away with the alignment: both hosts' CLOCK_REALTIME is taken for one clock.
    pub fn by_realtime(&mut self) {
        let start_ns = self.alignment.pieces.first().map_or(0, |piece| piece.from_ns);
        let offset_ns = self.alignment.at(start_ns).map_or(0, |known| known.offset_ns) - self.realtime_off_ns;
        self.alignment = Alignment::constant(start_ns, offset_ns, None);
        self.bounds_ns.clear();
        (self.realtime_off_ns, self.clocks_from) = (0, ClocksFrom::Realtime);
    }

    fn to_first(&self, raw_ns: i64) -> u64 {
        self.time_of_raw(self.alignment.a_of(raw_ns).unwrap_or(raw_ns))
    }
}

/// Whether both were recorded in one boot of one machine, outside of time namespaces: in containers, or in network namespaces.
pub fn is_one_machine(infos: [&Info; 2]) -> bool {
    let [a, b] = infos.map(|info| info.fact("boot_id"));
    a == b && !a.is_empty() && infos.iter().all(|info| info.fact("time_namespace").is_empty())
}

/// By how much the difference of the two hosts' CLOCK_REALTIME is wrong at most, if the kernels of both state it.
fn sum_ns([a, b]: [Option<i64>; 2]) -> Option<i64> {
    Some(a?.checked_add(b?)?.saturating_mul(1_000))
}

/// The host and number of each point of a declared chain that messages passed.
fn points(chain: &[String], surveys: [&Survey; 2], names: [&str; 2]) -> Vec<(usize, u32)> {
    let point = |text: &String| {
        let of_host = |host: usize| {
            let point = text.strip_prefix(names[host])?.strip_prefix(':')?;
            Some((host, surveys[host].point(point)?))
        };
        of_host(0).or_else(|| of_host(1))
    };
    chain.iter().filter_map(point).collect()
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
