//! Recordings of several hosts → how their clocks stand to that of the first.

use std::collections::BTreeMap;

use taut_recording::Info;

use super::{
    align::{Alignment, Drift},
    clocks_from::ClocksFrom,
    constraints::{Closed, Link, Network, pairs},
    host_clock::{HostClock, Near},
    matching::{Keeper, NotJoined, Pair, Side, Stated, pair},
    ros_messages::RosSightings,
    survey::{Sighting, Survey},
    ways::Known,
};
use crate::flows::{Flows, Sockets};

/// Hosts with what is known of their clocks; the first is the reference.
#[derive(Debug)]
pub struct Joined {
    /// Each two hosts that stamped the same messages.
    pub pairs: Vec<Pair>,
    /// Those whose messages are of no use.
    pub unused: Vec<((usize, usize), NotJoined)>,
    /// Of each host whose ptp4l states nothing of CLOCK_REALTIME: what the time stamps are, and steps from the grandmaster.
    pub ptp_without_bound: Vec<Option<(String, String)>>,
    /// By how much CLOCK_REALTIME of each host is wrong at most, if its kernel states it.
    pub stated_error_us: Vec<Option<i64>>,
    /// Moments at which the messages of several pairs contradict each other, of how many.
    pub contradicted: (u64, u64),
    /// The clocks of all.
    clocks: Vec<HostClock>,
    between: BTreeMap<(usize, usize), Between>,
}

/// What is known of the clocks of two hosts.
#[derive(Debug)]
pub struct Between {
    /// The offset of the second one's raw clock from the first one's, over the reference's.
    pub alignment: Alignment,
    /// Where it comes from.
    pub clocks_from: ClocksFrom,
    /// By how much the offset lies away from where the hosts' CLOCK_REALTIME has it.
    pub realtime_off_ns: i64,
    /// Hosts over which the second is reached from the first, where that is the reference.
    pub through: Vec<usize>,
    /// Where the last moment was.
    near: Near,
    /// The bounds of the offset at the messages between the two, or at all times where there are none; ascending.
    bounds_ns: Vec<u64>,
}

/// A host's recording.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// Differs from the others'.
    pub name: &'a str,
    /// What the recording says of messages.
    pub survey: &'a Survey,
    /// What it says of itself.
    pub info: &'a Info,
}

/// What the messages of several hosts say of their clocks. `chains`: points of declared chains, each "HOST:POINT". `by`: what the user
/// wants to take for the clocks; with CLOCK_REALTIME no messages are needed.
///
/// # Errors
/// Two hosts, or one and all others, have no message in common that is of use; the hosts' numbers and why.
pub fn join(
    hosts: &[Host<'_>],
    chains: &[Vec<String>],
    by: Option<ClocksFrom>,
) -> Result<Joined, (Vec<usize>, NotJoined)> {
    let is_one = |a: usize, b: usize| by.is_none() && is_one_machine([hosts[a].info, hosts[b].info]);
    // Counters of one machine are scaled alike only as CLOCK_MONOTONIC; a slew of that counts as drift against others.
    let has_other = |a: usize| (0..hosts.len()).any(|b| a != b && is_one(a, b));
    let clock = |(number, host): (usize, &Host<'_>)| {
        if has_other(number) { host.survey.monotonic_clock() } else { host.survey.clock() }
    };
    let clocks: Vec<HostClock> = hosts.iter().enumerate().map(clock).collect();
    let seen: Vec<Vec<Sighting>> =
        hosts.iter().zip(&clocks).map(|(host, clock)| host.survey.sightings(clock)).collect();
    let ros: Vec<RosSightings> =
        hosts.iter().zip(&clocks).map(|(host, clock)| host.survey.ros.sightings(clock)).collect();
    let around: Vec<_> = hosts.iter().zip(&clocks).map(|(host, clock)| host.survey.around(host.info, clock)).collect();
    let mut sockets = Sockets::default();
    for (number, host) in (0..).zip(hosts) {
        sockets.join(host.survey.sockets(host.info, number));
    }
    let flows = Flows::of(&sockets, |a, b| is_one(a.into(), b.into()));
    let ahead = |host: usize| Survey::realtime_ahead_ns(hosts[host].info, &clocks[host]);
    let realtime_ns = |a: usize, b: usize| if is_one(a, b) { 0 } else { ahead(a).wrapping_sub(ahead(b)) };
    let stated_error_us: Vec<Option<i64>> =
        hosts.iter().map(|host| host.info.fact("realtime_max_error_us").parse().ok()).collect();
    let ptp_without_bound = hosts.iter().map(|host| ptp_without_bound(host.info)).collect();
    let (mut found, mut unused) = (Vec::new(), Vec::new());
    for (a, b) in pairs(hosts.len()) {
        let side = |number: usize| Side {
            number,
            sightings: &seen[number],
            ros: &ros[number],
            survey: hosts[number].survey,
            clock: &clocks[number],
        };
        let of_pair: Vec<Vec<(usize, u32)>> = chains.iter().map(|chain| points(chain, [hosts[a], hosts[b]])).collect();
        let around = [Some(&around[a]), Some(&around[b])];
        let realtime_error_ns = is_one(a, b).then_some(0);
        let known = Known { chains: &of_pair, around, realtime_ns: realtime_ns(a, b), realtime_error_ns };
        let reaches = |host: usize| clocks[host].reaches(hosts[host].info.start_monotonic_ns);
        // What both daemons state holds at the recordings' starts, between which the clocks drift.
        let bound = bound_of([hosts[a].info, hosts[b].info]).filter(|_| reaches(a) && reaches(b));
        let stated = bound.map(|(bound_ns, by)| {
            let at_ns = [a, b].map(|host| clocks[host].of_monotonic(hosts[host].info.start_monotonic_ns));
            let apart_ns = at_ns[1].wrapping_sub(at_ns[0]).wrapping_sub(known.realtime_ns);
            let drifts_ns = (Drift::default().most * apart_ns as f64).abs().ceil() as i64;
            Stated { by, at_ns: at_ns[0], offset_ns: known.realtime_ns, bound_ns: bound_ns.saturating_add(drifts_ns) }
        });
        let from = if is_one(a, b) { ClocksFrom::OneMachine } else { by.unwrap_or(ClocksFrom::Messages) };
        match pair([side(a), side(b)], &flows.crossed, &known, stated, from) {
            Ok(pair) => found.push(pair),
            Err(why) => unused.push(((a, b), why)),
        }
    }
    let link = |pair: &'_ Pair| (pair.hosts, pair.bound_ns());
    let bounds: Vec<_> = found.iter().map(link).collect();
    let links = found.iter().zip(&bounds).map(|(pair, (hosts, bound_ns))| Link {
        hosts: *hosts,
        alignment: &pair.alignment,
        bound_ns: *bound_ns,
    });
    let network = Network::new(hosts.len(), links.collect()).map_err(|alone| {
        // What is worse than nothing in common says more.
        let of_host = unused.iter().filter(|((a, b), _)| *a == alone || *b == alone);
        let (pair, why) = of_host.max_by_key(|(_, why)| *why != NotJoined::NoCommonMessage).unwrap_or(&unused[0]);
        let is_pair = hosts.len() == 2 || *why != NotJoined::NoCommonMessage;
        (if is_pair { vec![pair.0, pair.1] } else { vec![alone] }, *why)
    })?;
    let Closed { between, moments, contradicted } = network.close();
    if between.values().any(|alignment| alignment.pieces.is_empty()) {
        return Err(((0..hosts.len()).collect(), NotJoined::Contradictory));
    }
    let between = between.into_iter().map(|((a, b), alignment)| {
        let messages = found.iter().filter(|pair| pair.hosts == (a, b)).flat_map(|pair| &pair.moments_ns);
        let mut at: Vec<i64> = messages.map(|at_ns| network.first_of(a, *at_ns)).collect();
        if at.is_empty() {
            at.extend(alignment.pieces.iter().flat_map(|piece| &piece.knots).map(|knot| knot.at_ns));
        }
        let mut bounds_ns: Vec<u64> = at.iter().filter_map(|at_ns| alignment.at(*at_ns)?.bound_ns).collect();
        bounds_ns.sort_unstable();
        let offset_ns = at.iter().min().and_then(|first| alignment.at(*first)).map_or(0, |known| known.offset_ns);
        let of = Between {
            realtime_off_ns: offset_ns.wrapping_sub(realtime_ns(a, b)),
            clocks_from: if is_one(a, b) { ClocksFrom::OneMachine } else { ClocksFrom::Messages },
            through: if a == 0 { network.through(b) } else { Vec::new() },
            near: Near::default(),
            alignment,
            bounds_ns,
        };
        ((a, b), of)
    });
    let between = between.collect();
    Ok(Joined {
        between,
        unused,
        ptp_without_bound,
        stated_error_us,
        clocks,
        contradicted: (contradicted, moments),
        pairs: found,
    })
}

impl Joined {
    /// What is known of two hosts, the lower number first.
    pub fn between(&self, first: usize, second: usize) -> &Between {
        &self.between[&(first, second)]
    }

    /// CLOCK_MONOTONIC of the first host when this one's shows `time_ns`.
    pub fn time_of_monotonic(&self, host: usize, time_ns: u64) -> u64 {
        self.to_first(host, self.clocks[host].of_monotonic(time_ns))
    }

    /// CLOCK_MONOTONIC of the first host at this reading of one of this one's counters; `None`: it has no calibrations.
    pub fn time_of_ticks(&self, host: usize, counter: u8, ticks: u64) -> Option<u64> {
        Some(self.to_first(host, self.clocks[host].of_ticks(counter, ticks)?))
    }

    /// Does away with the alignment: all hosts' CLOCK_REALTIME is taken for one clock.
    pub fn by_realtime(&mut self) {
        for between in self.between.values_mut() {
            let start_ns = between.alignment.pieces.first().map_or(0, |piece| piece.from_ns);
            let offset_ns = between.offset_ns() - between.realtime_off_ns;
            between.alignment = Alignment::constant(start_ns, offset_ns, None);
            between.bounds_ns.clear();
            (between.realtime_off_ns, between.clocks_from) = (0, ClocksFrom::Realtime);
        }
    }

    fn to_first(&self, host: usize, raw_ns: i64) -> u64 {
        let first = (host > 0).then(|| self.between(0, host));
        let first_ns = first.and_then(|between| between.alignment.a_of_near(raw_ns, &between.near));
        self.clocks[0].to_monotonic(first_ns.unwrap_or(raw_ns))
    }
}

impl Between {
    /// The offset at the start.
    pub fn offset_ns(&self) -> i64 {
        let first = self.alignment.pieces.first();
        first.and_then(|piece| self.alignment.at(piece.from_ns)).map_or(0, |known| known.offset_ns)
    }

    /// By how much the offset is wrong at most: the median, and the most; `None` without a bound.
    pub fn bounds_ns(&self) -> Option<(u64, u64)> {
        Some((*self.bounds_ns.get(self.bounds_ns.len() / 2)?, *self.bounds_ns.last()?))
    }

    /// How much faster the second one's clock is.
    pub fn drift_ppm(&self) -> f64 {
        self.alignment.pieces.first().map_or(0.0, |piece| (piece.rates.0 + piece.rates.1) * 5e5)
    }
}

/// Whether both were recorded in one boot of one machine, outside of time namespaces: in containers, or in network namespaces.
fn is_one_machine(infos: [&Info; 2]) -> bool {
    let [a, b] = infos.map(|info| info.fact("boot_id"));
    a == b && !a.is_empty() && infos.iter().all(|info| info.fact("time_namespace").is_empty())
}

/// By how much the difference of the two hosts' CLOCK_REALTIME was wrong at most when the recordings began, if daemons on both state it,
/// and which. All state it of the same difference, so the least bound is what they state together. What ptp4l states is of the
/// grandmaster's clock: of two of those nothing follows.
fn bound_of(infos: [&Info; 2]) -> Option<(i64, Keeper)> {
    let both = |fact| {
        let [a, b] = infos.map(|info| info.fact(fact).parse::<i64>().ok().filter(|bound_ns| *bound_ns >= 0));
        a?.checked_add(b?)
    };
    let [a, b] = infos.map(|info| info.fact("ptp_grandmaster"));
    let by_ptp = both("ptp_bound_ns").filter(|_| a == b && !a.is_empty());
    let bounds = [(both("realtime_bound_ns"), Keeper::Chronyd), (by_ptp, Keeper::Ptp4l)];
    bounds.into_iter().filter_map(|(bound_ns, by)| Some((bound_ns?, by))).min_by_key(|(bound_ns, _)| *bound_ns)
}

fn ptp_without_bound(info: &Info) -> Option<(String, String)> {
    let is_without = !info.fact("ptp_grandmaster").is_empty() && info.fact("ptp_bound_ns").is_empty();
    is_without.then(|| (info.fact("ptp_time_stamps").to_owned(), info.fact("ptp_steps").to_owned()))
}

/// The host (0 or 1) and number of each point of a declared chain that messages passed.
fn points(chain: &[String], hosts: [Host<'_>; 2]) -> Vec<(usize, u32)> {
    let point = |text: &String| {
        let of_host = |host: usize| {
            let point = text.strip_prefix(hosts[host].name)?.strip_prefix(':')?;
            Some((host, hosts[host].survey.point(point)?))
        };
        of_host(0).or_else(|| of_host(1))
    };
    chain.iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use taut_clock::Counter;
    use taut_recording::{Kind, Name, Record, StampBatch};

    use super::*;
    use crate::hosts::OrderFrom;

    /// The clock of B is ahead by so much.
    const OFFSET_NS: u64 = 260_000_000_000_000;
    const MESSAGES: u64 = 2_000;

    /// A host with two points that stamped these: message, point, CLOCK_MONOTONIC.
    fn survey(points: [&str; 2], stamps: &[(u64, u32, u64)]) -> Survey {
        let mut survey = Survey::default();
        for (id, name) in (1..).zip(points) {
            survey.record(&Record::Name(Name { id, name: name.to_owned() }));
        }
        survey.record(&Record::Stamps(StampBatch {
            pid: 1,
            tid: 1,
            counter: Counter::Monotonic as u8,
            ticks: stamps.iter().map(|of| of.2).collect(),
            message_id: stamps.iter().map(|of| of.0).collect(),
            point: stamps.iter().map(|of| of.1).collect(),
            kind: stamps.iter().map(|_| Kind::Stamp as u8).collect(),
            value: stamps.iter().map(|_| 0).collect(),
        }));
        survey
    }

    /// At least 100 µs, with a tail of 1 ms; nth of a fixed sequence.
    fn delay_ns(nth: u64) -> u64 {
        let share = (nth.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
        100_000 + (-1e6 * (1.0 - share).ln()) as u64
    }

    #[test]
    fn for_clocks_that_realtime_gives_declared_chains_need_not_agree() {
        // A setpoint there, and a state back.
        let (mut on_a, mut on_b) = (Vec::new(), Vec::new());
        for id in 0..MESSAGES {
            let sent_ns = 1_000_000_000 + 10_000_000 * id;
            let (of_a_ns, of_b_ns) = if id % 2 == 0 { (0, delay_ns(3 * id)) } else { (delay_ns(5 * id), 0) };
            let point = 1 + (id % 2) as u32;
            on_a.push((id, point, sent_ns + of_a_ns));
            on_b.push((id, point, OFFSET_NS + sent_ns + of_b_ns));
        }
        let surveys = [survey(["sent", "state"], &on_a), survey(["received", "answered"], &on_b)];
        let info = |boot: &str, start_monotonic_ns, start_realtime_ns| Info {
            start_monotonic_ns,
            start_realtime_ns,
            facts: vec![("boot_id".to_owned(), boot.to_owned())],
            ..Info::default()
        };
        // B's CLOCK_REALTIME is ahead by 3 ms.
        let infos = [info("a", 0, 5_000_000_000), info("b", OFFSET_NS, 5_003_000_000)];
        let host = |(at, name): (usize, &'static str)| Host { name, survey: &surveys[at], info: &infos[at] };
        let hosts = [(0, "desk"), (1, "robot")].map(host);
        let backwards = [["robot:received", "desk:sent"], ["desk:state", "robot:answered"]];
        let chains = backwards.map(|points| points.map(str::to_owned).to_vec());
        assert_eq!(join(&hosts, &chains, None).err(), Some((vec![0, 1], NotJoined::NoOrder)));
        let mut joined = join(&hosts, &chains, Some(ClocksFrom::Realtime)).unwrap();
        joined.by_realtime();
        let between = joined.between(0, 1);
        assert_eq!((between.clocks_from, between.bounds_ns()), (ClocksFrom::Realtime, None));
        assert_eq!(between.offset_ns(), OFFSET_NS as i64 - 3_000_000);
    }

    #[test]
    fn what_a_daemon_leaves_in_the_kernel_does_not_decide_which_way_messages_went() {
        let (mut on_a, mut on_b) = (Vec::new(), Vec::new());
        for id in 0..MESSAGES {
            let sent_ns = 1_000_000_000 + 10_000_000 * id;
            if id.is_multiple_of(2) {
                on_a.push((id, 1, sent_ns));
                on_b.push((id, 1, sent_ns + OFFSET_NS + delay_ns(3 * id)));
            } else {
                on_b.push((id, 2, sent_ns + OFFSET_NS));
                on_a.push((id, 2, sent_ns + delay_ns(5 * id)));
            }
        }
        let surveys = [survey(["sent", "state"], &on_a), survey(["received", "answered"], &on_b)];
        // phc2sys leaves 0 in the kernel of both, and B's takes TAI for UTC.
        let info = |boot: &str, start_monotonic_ns, start_realtime_ns| Info {
            start_monotonic_ns,
            start_realtime_ns,
            facts: vec![("boot_id".to_owned(), boot.to_owned()), ("realtime_max_error_us".to_owned(), "0".to_owned())],
            ..Info::default()
        };
        let start_ns = 900_000_000;
        let infos = [info("a", start_ns, 5 * start_ns), info("b", start_ns + OFFSET_NS, 5 * start_ns + 37_000_000_000)];
        let host = |(at, name): (usize, &'static str)| Host { name, survey: &surveys[at], info: &infos[at] };
        let hosts = [(0, "desk"), (1, "robot")].map(host);
        let joined = join(&hosts, &[], None).unwrap();
        let pair = &joined.pairs[0];
        assert_eq!((pair.order_from, pair.alignment.used), (OrderFrom::Spread, [MESSAGES / 2; 2]));
        let between = joined.between(0, 1);
        let (_, bound_ns) = between.bounds_ns().unwrap();
        assert!(between.offset_ns().abs_diff(OFFSET_NS as i64) <= bound_ns, "{} ± {bound_ns}", between.offset_ns());
    }
}
