//! Which of two points, one on each host, a message passes first.
//!
//! Before the offset of the clocks is known, the difference of the two readings (B less A) says it only relative to other pairs of
//! points: it is the offset plus a delay where the point on A comes first, and the offset less a delay where the point on B does. So
//! pairs whose differences are apart at all times are of two classes, those that mix are of one, and all classes above some cut go to
//! B, the others to A. Where the cut is follows from declared chains, from system calls (who sends right after a stamp, and who received
//! right before one), from what the hosts state of CLOCK_REALTIME, and last from the spread of the delays: a delay has a least value and a long tail above it, so the differences have their tail on the side of the delay.

use std::collections::BTreeMap;

use super::{align::Way, calls::Around, survey::Sighting};

/// A message's readings on A and on B.
pub(super) type Message<'a> = (&'a [Sighting], &'a [Sighting]);
/// A point on A, and one on B.
pub(super) type Pair = (u32, u32);

/// What is known of the order before the messages are looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known<'a> {
    /// Chains that the user declares: host (0 is A) and point, in order.
    pub chains: &'a [Vec<(usize, u32)>],
    /// What the system calls around the points' stamps are, of A and of B.
    pub around: [Option<&'a BTreeMap<u32, Around>>; 2],
    /// The offset that the hosts' CLOCK_REALTIME gives, in ns.
    pub realtime_ns: i64,
    /// By how much that can be wrong at the first message, if daemons of both hosts state it, or both are one machine.
    pub realtime_error_ns: Option<i64>,
}

/// What the order follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderFrom {
    /// Only one order agrees with the declared chains, with the system calls around the stamps, and with what the hosts state of
    /// CLOCK_REALTIME.
    Declared,
    /// The tails of the delays.
    Spread,
    /// It is the one with the fewest changes of host that is nearest to CLOCK_REALTIME: an assumption.
    Realtime,
}

/// The order of all pairs of points.
#[derive(Debug)]
pub(super) struct Ways {
    ways: BTreeMap<Pair, Way>,
    pub from: OrderFrom,
}

/// So many messages of the most frequent pair of points are looked at together: within their time no clock drifts by much.
const TOGETHER: usize = 16;
/// Pairs are apart if they are in this share of all stretches; a step of a clock, or a wrong match, spoils a few.
const APART: f64 = 0.8;
/// Pairs of points that are looked at; those of the most messages.
const MOST_PAIRS: usize = 64;
/// Rates above this are not believed of a clock.
const MOST_RATE: f64 = 500e-6;
/// Spreads that agree better than others by this much tell the order, on a scale of -1 to 1.
const CLEARLY: f64 = 0.15;
/// The fastest message is not believed to take longer: CLOCK_REALTIME is wrong then.
const PLAUSIBLE_NS: f64 = 1e9;
/// Fewer messages have no spread.
const SPREAD_FROM: usize = 40;

/// Differences of a pair of points: A's time, and B's less it.
type Series = Vec<(i64, f64)>;

/// Pairs that are not apart, with what all of them show.
struct Class {
    pairs: Vec<usize>,
    /// The least and the largest difference of the first stretch.
    first: (f64, f64),
    /// Which side the tail is on: 1 is above, -1 is below.
    tail: f64,
    messages: usize,
}

impl Ways {
    /// `None`: the declared chains contradict the readings.
    pub fn of(messages: &[Message<'_>], known: &Known<'_>) -> Option<Ways> {
        let base = (messages.first()?.0[0].at_ns, known.realtime_ns);
        let mut pairs: Vec<(Pair, Series)> = series(messages, base).into_iter().collect();
        pairs.sort_by_key(|(pair, all)| (std::cmp::Reverse(all.len()), *pair));
        let rare = pairs.split_off(pairs.len().min(MOST_PAIRS));
        let stretches = stretches(&mut pairs);
        let classes = classes(&pairs, &stretches);
        let (from, to) = allowed(&classes, &pairs, known)?;
        let (cut, from) = cut(&classes, &pairs, messages, from, to);
        let mut ways = ways_at(cut, &classes, &pairs);
        // A rare pair goes where its typical difference is.
        let level = |class: Option<&Class>| class.map(|class| (class.first.0 + class.first.1) / 2.0);
        let middle = match (level(cut.checked_sub(1).and_then(|below| classes.get(below))), level(classes.get(cut))) {
            (Some(below), Some(above)) => (below + above) / 2.0,
            (Some(_), None) => f64::INFINITY,
            _ => f64::NEG_INFINITY,
        };
        for (pair, all) in rare {
            ways.insert(pair, if all[all.len() / 2].1 > middle { Way::ToB } else { Way::ToA });
        }
        Some(Ways { ways, from })
    }

    /// Where a message changes host: the reading before, and the one after, A's first.
    pub fn changes(&self, (on_a, on_b): Message<'_>) -> Vec<(Sighting, Sighting, Way)> {
        changes(&self.ways, on_a, on_b)
    }
}

fn series(messages: &[Message<'_>], (at0, offset0): (i64, i64)) -> BTreeMap<Pair, Series> {
    let mut pairs: BTreeMap<Pair, Series> = BTreeMap::new();
    for (on_a, on_b) in messages {
        for a in *on_a {
            for b in *on_b {
                let differs = b.at_ns.wrapping_sub(a.at_ns).wrapping_sub(offset0) as f64;
                pairs.entry((a.point, b.point)).or_default().push((a.at_ns.wrapping_sub(at0), differs));
            }
        }
    }
    pairs.values_mut().for_each(|all| all.sort_by_key(|pair| pair.0));
    pairs
}

/// The differences of each pair, cut into stretches of time; the clocks' rate is taken out of `pairs`.
fn stretches(pairs: &mut [(Pair, Series)]) -> Vec<Vec<Vec<f64>>> {
    let mut begins: Vec<i64> = pairs[0].1.chunks(TOGETHER).map(|together| together[0].0).collect();
    // A coarse clock shows one moment for many messages.
    begins.dedup();
    let cut = |all: &Series| -> Vec<Vec<f64>> {
        let mut by_stretch = vec![Vec::new(); begins.len()];
        for (at, differs) in all {
            by_stretch[begins.partition_point(|begin| begin <= at).saturating_sub(1)].push(*differs);
        }
        by_stretch.iter_mut().for_each(|all| all.sort_by(f64::total_cmp));
        by_stretch
    };
    let medians: Vec<f64> = cut(&pairs[0].1).iter().map(|all| all[all.len() / 2]).collect();
    // The median of the slopes: a step spoils one of them.
    let slope = |at: usize| (medians[at + 1] - medians[at]) / begins[at + 1].saturating_sub(begins[at]).max(1) as f64;
    let mut slopes: Vec<f64> = (0..begins.len() - 1).map(slope).collect();
    slopes.sort_by(f64::total_cmp);
    let rate = slopes.get(slopes.len() / 2).copied().filter(|rate| rate.abs() <= MOST_RATE).unwrap_or(0.0);
    for (_, all) in pairs.iter_mut() {
        all.iter_mut().for_each(|(at, differs)| *differs -= rate * *at as f64);
    }
    pairs.iter().map(|(_, all)| cut(all)).collect()
}

/// In which share of the stretches that both have the one is above the other, and below it.
fn shares(one: &[Vec<f64>], other: &[Vec<f64>]) -> (f64, f64) {
    let ends = |all: &Vec<f64>| Some((*all.first()?, *all.last()?));
    let both: Vec<_> = one.iter().zip(other).filter_map(|(one, other)| ends(one).zip(ends(other))).collect();
    let share = |is: &dyn Fn((f64, f64), (f64, f64)) -> bool| {
        both.iter().filter(|(one, other)| is(*one, *other)).count() as f64 / both.len().max(1) as f64
    };
    (share(&|one, other| one.0 > other.1), share(&|one, other| one.1 < other.0))
}

/// In ascending order of their differences.
fn classes(pairs: &[(Pair, Series)], stretches: &[Vec<Vec<f64>>]) -> Vec<Class> {
    let count = pairs.len();
    let is_above = |one: usize, other: usize| shares(&stretches[one], &stretches[other]).0 >= APART;
    let above: Vec<Vec<bool>> =
        (0..count).map(|one| (0..count).map(|other| one != other && is_above(one, other)).collect()).collect();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|one| above[*one].iter().filter(|is| **is).count());
    // Whoever mixes with a later one is of its class, and so is everything between.
    let mut classes: Vec<Class> = Vec::new();
    let mut at = 0;
    while at < count {
        let (start, mut end) = (at, at);
        while at <= end {
            let mixes = |later: &usize| !above[order[*later]][order[at]];
            end = end.max((at + 1..count).rev().find(mixes).unwrap_or(end));
            at += 1;
        }
        let members = order[start..=end].to_vec();
        let firsts = members.iter().filter_map(|of| stretches[*of].iter().find(|all| !all.is_empty()));
        let ends = firsts.map(|all| (all[0], all[all.len() - 1]));
        let first = ends.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))).unwrap_or_default();
        let largest = members.iter().min().copied().unwrap_or_default();
        let messages = members.iter().map(|of| pairs[*of].1.len()).max().unwrap_or(0);
        classes.push(Class { tail: tail(&stretches[largest]), pairs: members, first, messages });
    }
    classes
}

/// On which side of the middle the tail is: the differences of each stretch are taken from its own middle.
fn tail(stretches: &[Vec<f64>]) -> f64 {
    let full = stretches.iter().filter(|all| all.len() >= TOGETHER / 2);
    let mut all: Vec<f64> = full.flat_map(|all| all.iter().map(|of| of - all[all.len() / 2])).collect();
    if all.len() < SPREAD_FROM {
        return 0.0;
    }
    all.sort_by(f64::total_cmp);
    let (low, high) = (all[all.len() / 20], all[all.len() - 1 - all.len() / 20]);
    if high > low { (high + low) / (high - low) } else { 0.0 }
}

/// Cuts that are possible: from, and to (included). A cut is the number of classes that go to A.
fn allowed(classes: &[Class], pairs: &[(Pair, Series)], known: &Known<'_>) -> Option<(usize, usize)> {
    let declared = |(a, b): Pair| {
        let way = |chain: &Vec<(usize, u32)>| {
            let place = |host, point| chain.iter().position(|of| *of == (host, point));
            let (a, b) = place(0, a).zip(place(1, b))?;
            Some(if a < b { Way::ToB } else { Way::ToA })
        };
        known.chains.iter().find_map(way)
    };
    let within = |way: &dyn Fn(&Class) -> Vec<Way>| {
        let (mut from, mut to) = (0, classes.len());
        for (at, class) in classes.iter().enumerate() {
            for way in way(class) {
                match way {
                    Way::ToB => to = to.min(at),
                    Way::ToA => from = from.max(at + 1),
                }
            }
        }
        (from <= to).then_some((from, to))
    };
    let by_chains = |class: &Class| class.pairs.iter().filter_map(|of| declared(pairs[*of].0)).collect::<Vec<Way>>();
    let (from, to) = within(&by_chains)?;
    let by_calls =
        |class: &Class| class.pairs.iter().filter_map(|of| called(pairs[*of].0, known)).collect::<Vec<Way>>();
    let shown = within(&by_calls).map(|(least, most)| (from.max(least), to.min(most)));
    // A thread may send something else in between: what is declared goes before.
    let (from, to) = shown.filter(|(from, to)| from <= to).unwrap_or((from, to));
    let by_realtime = |class: &Class| {
        let error = known.realtime_error_ns.map_or(f64::INFINITY, |error| error as f64);
        let way = if class.first.0 > error { Some(Way::ToB) } else { (class.first.1 < -error).then_some(Way::ToA) };
        way.into_iter().collect::<Vec<Way>>()
    };
    let stated = within(&by_realtime).map(|(least, most)| (from.max(least), to.min(most)));
    // What a clock's daemon states is a claim; a declared chain is an order.
    Some(stated.filter(|(from, to)| from <= to).unwrap_or((from, to)))
}

/// The way between two points of which one alone is where its thread sends, or alone where it has received.
fn called((a, b): Pair, known: &Known<'_>) -> Option<Way> {
    let around = |host: usize, point| known.around[host]?.get(&point).copied();
    let (a, b) = (around(0, a)?, around(1, b)?);
    let (leaves, arrives) = (|of: Around| of.sends && !of.received, |of: Around| of.received && !of.sends);
    let to_b = (leaves(a) && b.received) || (arrives(b) && a.sends);
    let to_a = (leaves(b) && a.received) || (arrives(a) && b.sends);
    match (to_b, to_a) {
        (true, false) => Some(Way::ToB),
        (false, true) => Some(Way::ToA),
        _ => None,
    }
}

/// The cut of those that are possible, and what speaks for it.
fn cut(
    classes: &[Class],
    pairs: &[(Pair, Series)],
    messages: &[Message<'_>],
    from: usize,
    to: usize,
) -> (usize, OrderFrom) {
    if from == to {
        return (from, OrderFrom::Declared);
    }
    let all: usize = classes.iter().map(|class| class.messages).sum();
    let agrees = |cut: usize| -> f64 {
        let sign = |at: usize| if at >= cut { 1.0 } else { -1.0 };
        let of = classes.iter().enumerate().map(|(at, class)| sign(at) * class.tail * class.messages as f64);
        of.sum::<f64>() / all.max(1) as f64
    };
    let best = (from..=to).map(agrees).fold(f64::NEG_INFINITY, f64::max);
    let near: Vec<usize> = (from..=to).filter(|cut| agrees(*cut) > best - CLEARLY).collect();
    if let [only] = near[..] {
        return (only, OrderFrom::Spread);
    }
    let changes_of = |cut: usize| -> usize {
        let ways = ways_at(cut, classes, pairs);
        messages.iter().map(|(on_a, on_b)| changes(&ways, on_a, on_b).len()).sum()
    };
    // The differences are from where CLOCK_REALTIME has the offset: how far a cut's gap is from there.
    let below = |cut: usize| cut.checked_sub(1).map_or(f64::NEG_INFINITY, |below| classes[below].first.1);
    let above = |cut: usize| classes.get(cut).map_or(f64::INFINITY, |class| class.first.0);
    let away = |cut: usize| below(cut).max(-above(cut)).max(0.0);
    // All one way, with that for the fastest message, if CLOCK_REALTIME is right.
    let is_slow = |cut: usize| match cut {
        0 => above(cut) > PLAUSIBLE_NS,
        cut if cut == classes.len() => below(cut) < -PLAUSIBLE_NS,
        _ => false,
    };
    let key = |cut: usize| (changes_of(cut), is_slow(cut), away(cut));
    let order = |a: &(usize, bool, f64), b: &(usize, bool, f64)| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2));
    let nearest = near.into_iter().map(|cut| (key(cut), cut)).min_by(|(a, _), (b, _)| order(a, b));
    (nearest.map_or(from, |(_, cut)| cut), OrderFrom::Realtime)
}

fn ways_at(cut: usize, classes: &[Class], pairs: &[(Pair, Series)]) -> BTreeMap<Pair, Way> {
    let of_class = |(at, class): (usize, &Class)| -> Vec<(Pair, Way)> {
        let way = if at >= cut { Way::ToB } else { Way::ToA };
        class.pairs.iter().map(|of| (pairs[*of].0, way)).collect()
    };
    classes.iter().enumerate().flat_map(of_class).collect()
}

/// Both hosts' readings of a message, each in the order of its own clock, as one order; where that changes host.
fn changes(ways: &BTreeMap<Pair, Way>, on_a: &[Sighting], on_b: &[Sighting]) -> Vec<(Sighting, Sighting, Way)> {
    let (mut a, mut b) = (0, 0);
    let (mut last, mut all) = (None, Vec::new());
    while a < on_a.len() || b < on_b.len() {
        let way = match (on_a.get(a), on_b.get(b)) {
            (Some(of_a), Some(of_b)) => ways.get(&(of_a.point, of_b.point)).copied().unwrap_or(Way::ToB),
            (Some(_), None) => Way::ToB,
            _ => Way::ToA,
        };
        // A's is next where the message goes from it to B's.
        let is_a = way == Way::ToB;
        match last {
            Some(true) if !is_a => all.push((on_a[a - 1], on_b[b], Way::ToB)),
            Some(false) if is_a => all.push((on_a[a], on_b[b - 1], Way::ToA)),
            _ => {}
        }
        last = Some(is_a);
        if is_a { a += 1 } else { b += 1 }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message's readings on A and on B, as points with true times; B's clock is ahead by [`OFFSET`] and drifts.
    type Made = (Vec<(u32, f64)>, Vec<(u32, f64)>);

    const OFFSET: f64 = 2.6e14;

    /// A delay of at least 100 µs with a tail of 1 ms; nth of a fixed sequence.
    fn delay(nth: u64) -> f64 {
        let share = (nth.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
        1e5 - 1e6 * (1.0 - share).ln()
    }

    /// So many messages, 10 ms apart, of each kind; the clock of B steps by 3 s in the middle.
    fn sightings(kinds: &[&dyn Fn(f64, u64) -> Made], count: u64) -> Vec<(Vec<Sighting>, Vec<Sighting>)> {
        let on_b = |of: f64| of + OFFSET + of * 200e-6 + if of > 10e6 * count as f64 / 2.0 { 3e9 } else { 0.0 };
        let sighting = |id, (point, at): &(u32, f64), shows: &dyn Fn(f64) -> f64| Sighting {
            id,
            at_ns: shows(*at).round() as i64,
            point: *point,
        };
        let of = |id: u64| {
            let kind = kinds[(id % kinds.len() as u64) as usize];
            let (a, b) = kind(1e7 * id as f64, id);
            let on = |all: &[(u32, f64)], shows: &dyn Fn(f64) -> f64| {
                let mut all: Vec<Sighting> = all.iter().map(|seen| sighting(id, seen, shows)).collect();
                all.sort_unstable();
                all
            };
            (on(&a, &|at| at), on(&b, &on_b))
        };
        (0..count).map(of).collect()
    }

    fn ways(made: &[(Vec<Sighting>, Vec<Sighting>)], known: &Known<'_>) -> Option<Ways> {
        let messages: Vec<Message<'_>> = made.iter().map(|(a, b)| (a.as_slice(), b.as_slice())).collect();
        Ways::of(&messages, known)
    }

    /// From A's points 1 and 2, 3 ms apart, to B's 3 and 4.
    fn forth(at: f64, nth: u64) -> Made {
        let received = at + 3e6 + delay(3 * nth);
        (vec![(1, at), (2, at + 3e6)], vec![(3, received), (4, received + 2e5)])
    }

    /// From B's point 5 to A's 6.
    fn back(at: f64, nth: u64) -> Made {
        (vec![(6, at + delay(5 * nth))], vec![(5, at)])
    }

    /// From A's 1 to B's 2 and back to A's 3.
    fn echo(at: f64, nth: u64) -> Made {
        let there = at + delay(3 * nth);
        (vec![(1, at), (3, there + 5e4 + delay(7 * nth))], vec![(2, there), (4, there + 5e4)])
    }

    const WRONG: Known<'static> = Known { chains: &[], around: [None; 2], realtime_ns: 0, realtime_error_ns: None };

    #[test]
    fn messages_both_ways_are_told_apart_though_they_wait_for_longer_than_the_way_takes() {
        let found = ways(&sightings(&[&forth, &back], 2_000), &WRONG).unwrap();
        assert_eq!(found.from, OrderFrom::Spread);
        let to_b = [(1, 3), (1, 4), (2, 3), (2, 4)].map(|pair| (pair, Way::ToB));
        assert_eq!(found.ways, to_b.into_iter().chain([((6, 5), Way::ToA)]).collect());
    }

    #[test]
    fn messages_that_a_coarse_clock_shows_at_one_moment_are_one_stretch() {
        // 150 each second: more than are looked at together.
        let moment = |nth: u64| (nth / 150) as f64 * 1e9;
        let coarse = |_: f64, nth: u64| -> Made { (vec![(1, moment(nth))], vec![(3, moment(nth) + delay(nth))]) };
        let found = ways(&sightings(&[&coarse], 300), &Known { realtime_ns: OFFSET as i64, ..WRONG }).unwrap();
        assert_eq!(found.ways, [((1, 3), Way::ToB)].into());
    }

    #[test]
    fn two_points_before_a_message_leaves_are_no_way_back() {
        let made = sightings(&[&forth], 1_000);
        // Wherever CLOCK_REALTIME has the offset: also between the two.
        for realtime_ns in [0, OFFSET as i64, OFFSET as i64 + 2_000_000, 2 * OFFSET as i64] {
            let found = ways(&made, &Known { realtime_ns, ..WRONG }).unwrap();
            assert!(found.ways.values().all(|way| *way == Way::ToB), "{realtime_ns}: {found:?}");
        }
    }

    #[test]
    fn an_echo_under_one_id_changes_host_twice() {
        let made = sightings(&[&echo], 1_000);
        let found = ways(&made, &WRONG).unwrap();
        for (a, b) in &made {
            let all: Vec<(u32, u32, Way)> =
                found.changes((a, b)).iter().map(|(a, b, way)| (a.point, b.point, *way)).collect();
            assert_eq!(all, [(1, 2, Way::ToB), (3, 4, Way::ToA)]);
        }
    }

    #[test]
    fn system_calls_tell_the_order_where_the_delays_do_not() {
        // All take the same time, so there is no spread; and CLOCK_REALTIME would have all of them go to B.
        let there = |at: f64, _| -> Made { (vec![(1, at)], vec![(3, at + 5e6)]) };
        let back = |at: f64, _| -> Made { (vec![(6, at + 1e4)], vec![(5, at)]) };
        let made = sightings(&[&there, &back], 1_000);
        let ahead = Known { realtime_ns: OFFSET as i64 - 50_000_000, ..WRONG };
        let found = ways(&made, &ahead).unwrap();
        assert_eq!((found.from, found.ways[&(6, 5)]), (OrderFrom::Realtime, Way::ToB));
        let around = |sends, received| Around { sends, received };
        // The robot's loop receives, and then answers: its points are both.
        let of_desk = BTreeMap::from([(1, around(true, false)), (6, around(false, true))]);
        let of_robot = BTreeMap::from([(3, around(true, true)), (5, around(true, true))]);
        let found = ways(&made, &Known { around: [Some(&of_desk), Some(&of_robot)], ..ahead }).unwrap();
        assert_eq!((found.from, found.ways[&(1, 3)], found.ways[&(6, 5)]), (OrderFrom::Declared, Way::ToB, Way::ToA));
    }

    #[test]
    fn few_messages_go_by_realtime_and_a_declared_chain_goes_before_it() {
        let made = sightings(&[&forth], 5);
        let found = ways(&made, &Known { realtime_ns: OFFSET as i64, ..WRONG }).unwrap();
        assert_eq!((found.from, found.ways[&(2, 3)]), (OrderFrom::Realtime, Way::ToB));
        let stated = Known { realtime_ns: OFFSET as i64, realtime_error_ns: Some(10_000), ..WRONG };
        assert_eq!(ways(&made, &stated).unwrap().from, OrderFrom::Declared);
        let chains = [vec![(1, 3), (0, 1)]];
        let declared = ways(&made, &Known { chains: &chains, ..stated }).unwrap();
        assert_eq!((declared.from, declared.ways[&(1, 3)]), (OrderFrom::Declared, Way::ToA));
        // 1 comes before 2 on A: B's 3 cannot be before 1 and behind 2.
        let chains = [vec![(1, 3), (0, 1)], vec![(0, 2), (1, 3)]];
        assert!(ways(&made, &Known { chains: &chains, ..WRONG }).is_none());
    }
}
