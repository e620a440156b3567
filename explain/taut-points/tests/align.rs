//! The bound of the clocks' offset contains the truth, and is hardly wider than the best possible.

use taut_points::hosts::align::{Alignment, Crossing, Drift, Way, align};

mod clocks;

use clocks::{PPM, Random, START, Truth, cases};

/// Messages both ways, of their own least delays and queueing.
fn messages(random: &mut Random, truth: &Truth, count: usize) -> Vec<Crossing> {
    let asymmetric = random.next() < 0.3;
    let least =
        [random.between(10e3, 300e3), if asymmetric { random.between(1e6, 5e6) } else { random.between(10e3, 300e3) }];
    let queueing = random.between(5e3, 200e3);
    let mut all = Vec::new();
    for message in 0..count as u64 {
        let sent = random.next() * truth.length_ns * 0.98;
        let (way, least) = if message.is_multiple_of(2) { (Way::ToB, least[0]) } else { (Way::ToA, least[1]) };
        let received = sent + least + random.exponential(queueing);
        let (a, b) = if way == Way::ToB { (sent, received) } else { (received, sent) };
        // Each clock is read at its own moment; B's reading is what A's was then plus the offset.
        all.push(Crossing { way, a_ns: (START + a) as i64, b_ns: (START + b + truth.at(b)).floor() as i64, message });
    }
    all
}

fn holds(alignment: &Alignment, truth: &Truth, seed: u64, random: &mut Random) -> usize {
    let mut bounded = 0;
    for _ in 0..40 {
        let x = random.next() * truth.length_ns * 0.97;
        let known = alignment.at((START + x) as i64).unwrap();
        let Some(bound) = known.bound_ns else { continue };
        bounded += 1;
        let error = (known.offset_ns as f64 - truth.at(x)).abs();
        assert!(error <= bound as f64, "seed {seed}: at {x} the error is {error} ns, the bound {bound} ns");
    }
    bounded
}

#[test]
fn the_bound_contains_the_truth_in_all_random_cases() {
    let mut bounded = 0;
    for seed in 1..=cases() {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let truth = Truth::of(&mut random, seed.is_multiple_of(3));
        let count = random.between(60.0, 600.0) as usize;
        let mut crossings = messages(&mut random, &truth, count);
        // A wrong match now and then: another message's arrival.
        if seed.is_multiple_of(5) {
            let at = (random.next() * count as f64) as usize;
            let early = random.between(100e6, 1e9) as i64;
            match crossings[at].way {
                Way::ToB => crossings[at].b_ns -= early,
                Way::ToA => crossings[at].b_ns += early,
            }
        }
        bounded += holds(&align(&crossings, Drift::default()), &truth, seed, &mut random);
    }
    println!("moments: {bounded}");
    assert!(bounded as u64 > cases() * 40 * 9 / 10, "{bounded} moments have a bound");
}

/// The largest offset at `x` that the messages allow at this rate, as shortest path (Bellman-Ford) in the graph of difference
/// constraints: an independent way to the same figure. The other side by mirroring.
fn highest(crossings: &[(f64, f64, bool)], x: f64, rate: f64, change: f64) -> Option<f64> {
    // Nodes: the offset at each message and at `x`, and 0. An edge (u, v, c) says v − u ≤ c.
    let mut at: Vec<f64> = crossings.iter().map(|of| of.0).chain([x]).collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    let node = |of: f64| at.partition_point(|known| *known < of);
    let zero = at.len();
    let mut edges = Vec::new();
    for (of, value, is_high) in crossings {
        edges.push(if *is_high { (zero, node(*of), *value) } else { (node(*of), zero, -value) });
    }
    for next in 1..at.len() {
        let passed = at[next] - at[next - 1];
        edges.push((next - 1, next, (rate + change) * passed));
        edges.push((next, next - 1, (change - rate) * passed));
    }
    let mut distance = vec![f64::INFINITY; zero + 1];
    distance[zero] = 0.0;
    for _ in 0..=zero + 1 {
        let mut is_done = true;
        for (from, to, cost) in &edges {
            if distance[*from] + cost < distance[*to] - 1e-6 {
                distance[*to] = distance[*from] + cost;
                is_done = false;
            }
        }
        if is_done {
            return Some(distance[node(x)]);
        }
    }
    None
}

/// The largest over all rates. It is concave in the rate, and outside the rates that are possible there is none.
fn best_high(crossings: &[(f64, f64, bool)], x: f64, near: f64, change: f64) -> f64 {
    let of = |rate: f64| highest(crossings, x, rate, change);
    assert!(of(near).is_some());
    let edge = |sign: f64| {
        let (mut good, mut bad) = (0.0, 700.0 * PPM);
        for _ in 0..24 {
            let middle = (good + bad) / 2.0;
            if of(near + sign * middle).is_some() { good = middle } else { bad = middle }
        }
        near + sign * good
    };
    let (mut from, mut to) = (edge(-1.0).max(-500.0 * PPM), edge(1.0).min(500.0 * PPM));
    for _ in 0..24 {
        let (one, other) = (from + (to - from) / 3.0, to - (to - from) / 3.0);
        if of(one).unwrap_or(f64::NEG_INFINITY) < of(other).unwrap_or(f64::NEG_INFINITY) {
            from = one
        } else {
            to = other
        }
    }
    of((from + to) / 2.0).unwrap()
}

#[test]
fn the_bound_is_hardly_wider_than_the_best_possible() {
    let mut widest: f64 = 0.0;
    for seed in 1..=cases() {
        let mut random = Random(seed.wrapping_mul(0xD134_2543_DE82_EF95));
        let truth = Truth::of(&mut random, false);
        let crossings = messages(&mut random, &truth, 40);
        let alignment = align(&crossings, Drift::default());
        assert!(alignment.refused.is_empty() && alignment.pieces.len() == 1, "seed {seed}: {alignment:?}");
        let base = crossings[0].b_ns - crossings[0].a_ns;
        let of = |crossing: &Crossing| {
            (crossing.a_ns as f64 - START, (crossing.b_ns - crossing.a_ns - base) as f64, crossing.way == Way::ToB)
        };
        let plain: Vec<_> = crossings.iter().map(of).collect();
        let mirrored: Vec<_> = plain.iter().map(|(x, value, is_high)| (*x, -value, !is_high)).collect();
        let (from, to) = (alignment.pieces[0].from_ns as f64 - START, alignment.pieces[0].to_ns as f64 - START);
        let x = random.between(from, to).round();
        let rate = truth.rate;
        let change = Drift::default().change;
        let best = (best_high(&plain, x, rate, change) + best_high(&mirrored, x, -rate, change)) / 2.0;
        let bound = alignment.at((START + x) as i64).unwrap().bound_ns.unwrap() as f64;
        assert!(bound >= best - 5.0, "seed {seed}: {bound} is less than is possible, {best}");
        widest = widest.max(bound / best);
        assert!(bound <= best * 1.1, "seed {seed}: {bound} of {best}");
    }
    println!("widest: {widest:.3}");
}

#[test]
fn behind_an_asymmetric_relay_the_error_is_in_the_bound() {
    let way = |message: u64| if message.is_multiple_of(2) { Way::ToB } else { Way::ToA };
    let crossing = |message: u64| {
        let sent = message as i64 * 5_000_000;
        let (a_ns, b_ns) = if message.is_multiple_of(2) { (sent, sent + 5_050_000) } else { (sent + 50_000, sent) };
        Crossing { way: way(message), a_ns, b_ns, message }
    };
    let alignment = align(&(0..400).map(crossing).collect::<Vec<_>>(), Drift::default());
    let known = alignment.at(1_000_000_000).unwrap();
    // 5 ms one way and none back: the middle is wrong by half of that.
    assert!((2_400_000..2_600_000).contains(&known.offset_ns), "{known:?}");
    assert!(known.bound_ns.unwrap() >= known.offset_ns as u64, "{known:?}");
}

#[test]
fn one_direction_gives_no_bound() {
    let crossing = |message: u64| {
        let sent = message as i64 * 5_000_000;
        Crossing { way: Way::ToB, a_ns: sent, b_ns: sent + 100_000 + (message as i64 * 7919) % 50_000, message }
    };
    let alignment = align(&(0..400).map(crossing).collect::<Vec<_>>(), Drift::default());
    assert_eq!(alignment.at(1_000_000_000).unwrap().bound_ns, None);
}

#[test]
fn a_step_is_cut_and_a_wrong_match_is_named() {
    let mut random = Random(7);
    let truth =
        Truth { offset_ns: 5e9, rate: 20.0 * PPM, ramp: 0.0, clip: 9.5, step: Some((10e9, 3e9)), length_ns: 20e9 };
    let mut crossings = messages(&mut random, &truth, 400);
    let early = crossings.iter().position(|of| of.way == Way::ToB && of.a_ns > START as i64 + 2_000_000_000).unwrap();
    crossings[early].b_ns -= 500_000_000;
    let alignment = align(&crossings, Drift::default());
    assert_eq!(alignment.pieces.len(), 2, "{:?}", alignment.refused);
    let refused: Vec<u64> = alignment.refused.iter().map(|refused| refused.crossing.message).collect();
    assert_eq!(refused, [early as u64]);
    let by_ns = alignment.refused[0].by_ns;
    assert!((490_000_000..=500_000_000).contains(&by_ns), "{by_ns}");
}

#[test]
fn the_other_clock_is_turned_back() {
    let mut random = Random(11);
    let truth = Truth::of(&mut random, false);
    let alignment = align(&messages(&mut random, &truth, 300), Drift::default());
    for _ in 0..100 {
        let a_ns = (START + random.next() * truth.length_ns) as i64;
        let b_ns = a_ns + alignment.at(a_ns).unwrap().offset_ns;
        let back = alignment.a_of(b_ns).unwrap();
        assert!((back - a_ns).abs() <= 2, "{}", back - a_ns);
    }
}

#[test]
fn ids_that_mean_other_messages_on_each_host_are_contradictory() {
    let mut random = Random(13);
    let mut crossing = |message: u64| {
        let way = if message.is_multiple_of(2) { Way::ToB } else { Way::ToA };
        let at = |random: &mut Random| random.between(0.0, 60e9) as i64;
        Crossing { way, a_ns: at(&mut random), b_ns: at(&mut random), message }
    };
    let crossings: Vec<Crossing> = (0..400).map(&mut crossing).collect();
    assert!(align(&crossings, Drift::default()).is_contradictory);
}
