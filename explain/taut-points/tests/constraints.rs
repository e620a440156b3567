//! Clocks of several hosts: what all pairs say together contains the truth, and is as tight as paths between them allow.

use taut_points::hosts::{
    align::{Alignment, Crossing, Drift, Way, align},
    constraints::{Closed, Link, Network, pairs},
};

mod clocks;

use clocks::{Random, START, Truth, cases};

/// Hosts on clocks of their own; the first one's shows the true time.
struct Hosts(Vec<Truth>);

impl Hosts {
    fn of(random: &mut Random, hosts: usize, has_step: bool) -> Hosts {
        let length_ns = random.between(3e9, 60e9);
        let true_time = Truth { offset_ns: 0.0, rate: 0.0, ramp: 0.0, clip: 0.0, step: None, length_ns };
        let mut all = vec![true_time];
        for host in 1..hosts {
            // The rate between two of them moves by at most twice what each does.
            let truth = Truth { clip: 4.5, length_ns, ..Truth::of(random, false) };
            let step = (has_step && host + 1 == hosts).then_some((0.5 * length_ns, 2.5e9));
            all.push(Truth { step, rate: truth.rate / 2.0, ..truth });
        }
        Hosts(all)
    }

    /// What this host's clock shows.
    fn shows(&self, host: usize, x: f64) -> i64 {
        (START + x + self.0[host].at(x)).floor() as i64
    }

    fn length_ns(&self) -> f64 {
        self.0[0].length_ns
    }

    /// A message each `every_ns`, in turn one there and one back where `is_two_way`; the least delays are `least_ns`.
    fn pair(&self, random: &mut Random, (a, b): (usize, usize), ways: &[Way], least_ns: [f64; 2]) -> Alignment {
        let queueing = random.between(5e3, 100e3);
        let count = (self.length_ns() / 20e6) as u64;
        let crossing = |message: u64| {
            let sent = message as f64 * 20e6 + random.between(0.0, 10e6);
            let way = ways[message as usize % ways.len()];
            let received = sent + least_ns[usize::from(way == Way::ToA)] + random.exponential(queueing);
            let (of_a, of_b) = if way == Way::ToB { (sent, received) } else { (received, sent) };
            Crossing { way, a_ns: self.shows(a, of_a), b_ns: self.shows(b, of_b), message }
        };
        align(&(0..count).map(crossing).collect::<Vec<_>>(), Drift::default())
    }

    /// How many of 60 moments of each two hosts have a bound, after each was held against the truth.
    fn bounded(&self, closed: &Closed, seed: u64, random: &mut Random) -> usize {
        let mut bounded = 0;
        for _ in 0..60 {
            let x = random.between(0.02, 0.95) * self.length_ns();
            for (a, b) in pairs(self.0.len()) {
                let known = closed.between[&(a, b)].at(self.shows(0, x)).unwrap();
                let Some(bound) = known.bound_ns else { continue };
                bounded += 1;
                let error = known.offset_ns.abs_diff(self.shows(b, x) - self.shows(a, x));
                assert!(
                    error <= bound,
                    "seed {seed}: {a} to {b}, at {x}: the error is {error} ns, the bound {bound} ns"
                );
            }
        }
        bounded
    }
}

const BOTH: [Way; 2] = [Way::ToB, Way::ToA];

fn closed(hosts: usize, known: &[((usize, usize), Alignment)]) -> Closed {
    let link = |(hosts, alignment): &'_ ((usize, usize), Alignment)| {
        let middle = &alignment.pieces[0].knots[0];
        (*hosts, alignment.at(middle.at_ns).and_then(|known| known.bound_ns))
    };
    let bounds: Vec<_> = known.iter().map(link).collect();
    let links = known.iter().zip(bounds).map(|((_, alignment), (hosts, bound_ns))| Link { hosts, alignment, bound_ns });
    Network::new(hosts, links.collect()).unwrap().close()
}

#[test]
fn the_bound_between_any_two_hosts_contains_the_truth() {
    let (mut bounded, mut possible) = (0, 0);
    for seed in 1..=cases() / 2 {
        let mut random = Random(seed.wrapping_mul(0xA24B_AED4_963E_E407));
        let count = 3 + (seed % 3) as usize;
        let hosts = Hosts::of(&mut random, count, seed.is_multiple_of(4));
        // Each host but the first has messages with one before it, and some pairs have more.
        let mut of: Vec<(usize, usize)> =
            (1..count).map(|host| ((random.next() * host as f64) as usize, host)).collect();
        of.extend(pairs(count).filter(|_| random.next() < 0.3));
        of.sort_unstable();
        of.dedup();
        let mut known = Vec::new();
        for pair in of {
            let least = [random.between(10e3, 2e6), random.between(10e3, 300e3)];
            known.push((pair, hosts.pair(&mut random, pair, &BOTH, least)));
        }
        let closed = closed(count, &known);
        assert_eq!(closed.contradicted, 0, "seed {seed}");
        bounded += hosts.bounded(&closed, seed, &mut random);
        possible += 60 * pairs(count).count();
    }
    println!("moments_of_several: {bounded}");
    assert!(bounded > possible * 9 / 10, "{bounded} of {possible} moments have a bound");
}

#[test]
fn a_bound_over_another_host_is_the_sum_of_both_and_a_third_pair_tightens_it() {
    let mut random = Random(5);
    let hosts = Hosts::of(&mut random, 3, false);
    let (near, far) = ([50e3, 50e3], [2e6, 2e6]);
    let first = ((0, 1), hosts.pair(&mut random, (0, 1), &BOTH, near));
    let second = ((1, 2), hosts.pair(&mut random, (1, 2), &BOTH, near));
    let direct = ((0, 2), hosts.pair(&mut random, (0, 2), &BOTH, far));
    let at_ns = hosts.shows(0, hosts.length_ns() / 2.0);
    let bound = |known: &[((usize, usize), Alignment)], pair: (usize, usize)| {
        closed(3, known).between[&pair].at(at_ns).unwrap().bound_ns.unwrap() as f64
    };
    let two = [first.clone(), second.clone()];
    let sum = bound(&two, (0, 1)) + bound(&two, (1, 2));
    let over = bound(&two, (0, 2));
    assert!((over - sum).abs() < 0.02 * sum, "{over} of {sum}");
    // 2 ms each way bound it worse than two ways of 50 µs.
    let alone = direct.1.at(at_ns).unwrap().bound_ns.unwrap() as f64;
    assert!(alone > 1.9e6, "{alone}");
    let all = bound(&[first, direct, second], (0, 2));
    assert!(all <= over * 1.02, "{all} of {over}");
}

#[test]
fn a_circle_of_one_way_messages_bounds_what_no_pair_does() {
    let mut random = Random(9);
    let hosts = Hosts::of(&mut random, 3, false);
    let one_way = |random: &mut Random, pair, way| (pair, hosts.pair(random, pair, &[way], [100e3, 100e3]));
    let known = [
        one_way(&mut random, (0, 1), Way::ToB),
        one_way(&mut random, (0, 2), Way::ToA),
        one_way(&mut random, (1, 2), Way::ToB),
    ];
    let at_ns = hosts.shows(0, hosts.length_ns() / 2.0);
    assert!(closed(3, &known[..2]).between[&(0, 1)].at(at_ns).unwrap().bound_ns.is_none());
    let closed = closed(3, &known);
    assert!(hosts.bounded(&closed, 9, &mut random) > 0);
    // Once around takes 300 µs and what is queued at least.
    let bound = closed.between[&(0, 1)].at(at_ns).unwrap().bound_ns.unwrap();
    assert!((150_000..250_000).contains(&bound), "{bound}");
}

#[test]
fn a_step_of_one_clock_is_cut_and_the_others_stay_bounded() {
    let mut random = Random(21);
    let hosts = Hosts::of(&mut random, 3, true);
    let known: Vec<_> = pairs(3).map(|pair| (pair, hosts.pair(&mut random, pair, &BOTH, [80e3, 120e3]))).collect();
    let closed = closed(3, &known);
    assert_eq!([(0, 1), (0, 2), (1, 2)].map(|pair| closed.between[&pair].pieces.len()), [2, 2, 2]);
    for (pair, truth) in [((0, 1), 0.0), ((0, 2), 2.5e9), ((1, 2), 2.5e9)] {
        let offset = |share: f64| closed.between[&pair].at(hosts.shows(0, share * hosts.length_ns())).unwrap();
        let (before, after) = (offset(0.49), offset(0.51));
        assert!(before.bound_ns.is_some() && after.bound_ns.is_some());
        let jumped = (after.offset_ns - before.offset_ns) as f64 - truth;
        assert!(jumped.abs() < 1e-3 * hosts.length_ns() * 0.02 + 1e6, "{pair:?}: {jumped}");
    }
    assert!(hosts.bounded(&closed, 21, &mut random) > 150);
}

#[test]
fn pairs_that_contradict_each_other_are_seen_and_a_host_that_nothing_leads_to_is_named() {
    let constant = |offset_ns| Alignment::constant(0, offset_ns, Some(1_000));
    let known = [((0, 1), constant(10_000)), ((0, 2), constant(10_000)), ((1, 2), constant(50_000))];
    let found = closed(3, &known);
    assert!(found.moments > 0 && found.contradicted == found.moments);
    assert!(found.between.values().all(|alignment| alignment.pieces.is_empty()));
    let link = Link { hosts: (0, 1), alignment: &known[0].1, bound_ns: None };
    assert_eq!(Network::new(3, vec![link]).unwrap_err(), 2);
}
