//! How often intervals hold the truth.

use rand::Rng;
use taut_stats::compare::{Order, Pair, Scale, Shift, SignedRank, pair_order, typical};

use crate::{
    data::{KINDS, Session, Shape, levels, trial},
    page::{Limit, bounds, percent, rate, row, table},
    repeat,
};

/// The change from A to B, in logarithms.
const CHANGE: f64 = 0.15;
const PAIRS: usize = 40;
const SIZES: [usize; 3] = [10, 20, 40];

pub fn section(less: usize) -> Vec<Limit> {
    let sessions = 10_000 / less;
    println!("\n## Intervals\n");
    println!(
        "How often 95 % intervals hold the truth: {sessions} sessions of each kind. A session is {PAIRS} pairs of trials, back to back in random order, of {} latencies each; B is A × {:.3}. Each trial is its p50, or its p99. Levels of trials differ by 5 %.",
        crate::data::SAMPLES,
        CHANGE.exp()
    );
    println!("\nThe confidence of a bound is discrete. The bounds take the next level above the nominal 95 %:");
    table(&["pairs or trials", "typical trial (binomial)", "change (signed ranks)"]);
    for n in [6, 7, 8, 9, 10, 12, 15, 20, 30, 40] {
        let trials: Vec<f64> = (0..n).map(f64::from).collect();
        let interval = typical(&trials, 0.95).and_then(|t| t.interval).unwrap();
        let shift = 1.0 - 2.0 * SignedRank::new(n as usize).attained(0.025);
        row(&[n.to_string(), percent(interval.confidence), percent(shift)]);
    }
    let measured: Vec<Measured> = KINDS.iter().map(|kind| measure(*kind, sessions)).collect();
    println!("\n### Of the change from A to B\n");
    println!(
        "The estimate is Hodges–Lehmann's with signed-rank bounds, on the logarithms of the ratios. Where B has another shape than A, the truth is the centre of that estimate: the median of the averages of all two differences."
    );
    let change = print(&measured, sessions, 0, |m| &m.change);
    println!("\n### Of the typical trial\n");
    println!(
        "The median over A's trials, with binomial bounds. The limits apply to 20 and 40 trials: at 10 the level itself is 97.9 %."
    );
    let typical = print(&measured, sessions, 1, |m| &m.typical);
    println!(
        "\nOutside 93 to 97 %: where a coarse clock makes trials tie, closed bounds hold more often than nominal (Noether 1967). Trials that follow a drift are spread more evenly than by chance, so that bounds are wider than necessary (Hoeffding 1956). Autocorrelated trials carry less information, and no bound from one stretch of time covers other times. The rank test for this (`serial_p` < 0.05, n = 40) found autocorrelation in {} of sessions, drift in {}, and gave a false alarm in {} of sessions of independent trials.",
        percent(measured[10].found_serial as f64 / sessions as f64),
        percent(measured[9].found_serial as f64 / sessions as f64),
        percent(measured[1].found_serial as f64 / sessions as f64),
    );
    let limit = |what, failed: Vec<&str>| Limit {
        what,
        measured: format!("{} of {} kinds; not: {}", KINDS.len() - failed.len(), KINDS.len(), failed.join("; ")),
        limit: "the first six kinds",
        holds: KINDS[..6].iter().all(|kind| !failed.contains(&kind.0)),
    };
    vec![
        limit("95 % intervals of the change hold in 93 to 97 %", change),
        limit("95 % intervals of the typical trial hold in 93 to 97 %, 20 and 40 trials", typical),
    ]
}

/// Counts for (p50, p99) and each of SIZES.
type Counts = [[usize; 3]; 2];

struct Measured {
    name: &'static str,
    change: Counts,
    typical: Counts,
    found_serial: usize,
}

fn measure((name, shapes, session): (&'static str, [Shape; 2], Session), sessions: usize) -> Measured {
    let drawn = repeat(name, sessions, |random| draw(shapes, session, random));
    let change = [0, 1].map(|q| true_change(&drawn, q, shapes));
    // The truth of the typical trial: the median of all trials drawn, some hundred thousand.
    let truth = [0, 1].map(|q| {
        let mut all: Vec<f64> = drawn.iter().flat_map(|pairs| pairs[q].iter().map(|pair| pair.a)).collect();
        all.sort_unstable_by(f64::total_cmp);
        all[all.len() / 2]
    });
    let mut measured = Measured { name, change: Counts::default(), typical: Counts::default(), found_serial: 0 };
    for (q, of_quantile) in drawn.iter().flat_map(|pairs| pairs.iter().enumerate()) {
        for (size, n) in SIZES.into_iter().enumerate() {
            let differences: Vec<f64> = of_quantile[..n].iter().map(|pair| Scale::Ratio.difference(*pair)).collect();
            let shift = Shift::of(&differences).unwrap();
            // Where readings tie, differences are the change itself, but for rounding.
            let holds =
                shift.lower(0.025).unwrap() <= change[q] + 1e-9 && change[q] - 1e-9 <= shift.upper(0.025).unwrap();
            measured.change[q][size] += usize::from(holds);
            let a: Vec<f64> = of_quantile[..n].iter().map(|pair| pair.a).collect();
            let typical = typical(&a, 0.95).unwrap();
            let interval = typical.interval.unwrap();
            measured.typical[q][size] += usize::from(interval.low <= truth[q] && truth[q] <= interval.high);
            measured.found_serial += usize::from(q == 0 && n == PAIRS && typical.serial_p.is_some_and(|p| p < 0.05));
        }
    }
    measured
}

/// The centre of the differences: known where B is A but for the change; else the median of the averages of differences
/// from two sessions, some hundred thousand.
fn true_change(drawn: &[[Vec<Pair>; 2]], q: usize, [a, b]: [Shape; 2]) -> f64 {
    if a == b {
        return CHANGE;
    }
    let differences = |sessions: &[[Vec<Pair>; 2]]| -> Vec<f64> {
        sessions.iter().flat_map(|pairs| pairs[q].iter().map(|pair| Scale::Ratio.difference(*pair))).collect()
    };
    let (some, others) = drawn.split_at(drawn.len() / 2);
    let mut averages: Vec<f64> =
        differences(some).iter().zip(differences(others)).map(|(one, other)| (one + other) / 2.0).collect();
    averages.sort_unstable_by(f64::total_cmp);
    averages[averages.len() / 2]
}

/// The pairs of a session, for p50 and for p99.
fn draw(shapes: [Shape; 2], session: Session, random: &mut impl Rng) -> [Vec<Pair>; 2] {
    let levels = levels(session, 2 * PAIRS, random);
    // A rising session is judged as a whole: its first pairs are of another truth. So its trials are taken in turn.
    let slot = |pair: usize| if session == Session::Rising { pair * 7 % PAIRS } else { pair };
    let mut quantiles = [Vec::new(), Vec::new()];
    for (pair, order) in pair_order(random.next_u64(), PAIRS).into_iter().enumerate() {
        let (a, b) = match order {
            Order::AB => (2 * slot(pair), 2 * slot(pair) + 1),
            Order::BA => (2 * slot(pair) + 1, 2 * slot(pair)),
        };
        let a = trial(shapes[0], levels[a], random);
        let b = trial(shapes[1], levels[b], random);
        for (of_quantile, rank) in quantiles.iter_mut().zip([a.len() / 2 - 1, a.len() * 99 / 100 - 1]) {
            of_quantile.push(Pair { a: a[rank], b: b[rank] * CHANGE.exp() });
        }
    }
    quantiles
}

/// A line for each kind of data, and the names of those that do not hold; limits are held from the claimed one of SIZES on, with the bounds of the rate.
fn print(
    measured: &[Measured],
    sessions: usize,
    claimed: usize,
    counts: impl Fn(&Measured) -> &Counts,
) -> Vec<&'static str> {
    let mut head = vec!["data".to_owned()];
    head.extend(SIZES.iter().flat_map(|n| ["p50", "p99"].map(|q| format!("{q}, n = {n}"))));
    head.push("93 to 97 %".to_owned());
    table(&head.iter().map(String::as_str).collect::<Vec<_>>());
    let mut failed = Vec::new();
    for one in measured {
        let counts = counts(one);
        let cells = (0..SIZES.len()).flat_map(|size| [0, 1].map(|q| rate(counts[q][size], sessions)));
        let within = |hits: &usize| {
            let (low, high) = bounds(*hits, sessions);
            low >= 0.93 && high <= 0.97
        };
        let holds = counts.iter().all(|sizes| sizes[claimed..].iter().all(within));
        if !holds {
            failed.push(one.name);
        }
        let mut line = vec![one.name.to_owned()];
        line.extend(cells);
        line.push(if holds { "holds" } else { "does not" }.to_owned());
        row(&line);
    }
    failed
}
