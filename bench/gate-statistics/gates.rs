//! Whole gates: looks, Holm, confirmation. How often they are wrong, and what they find.

use rand::{Rng, RngExt};
use taut_stats::compare::{
    Judgement, Metric, Next, Order, Pair, Plan, Rule, Spending, Verdict, confirm, judge, pair_order,
};

use crate::{
    data::{Noise, noise},
    page::{Limit, mean, rate, row, table},
    repeat,
};

/// Something to gate.
#[derive(Clone, Copy)]
pub struct Case {
    pub noise: Noise,
    /// Spread of the logarithm of a pair's ratio.
    pub spread: f64,
    /// From A to B: 0.1 is + 10 %.
    pub change: f64,
    pub metrics: usize,
    /// Whether all metrics changed, or only the first.
    pub all_changed: bool,
}

/// What a gate came to.
pub struct Gate {
    pub accused: bool,
    pub end: Judgement,
    /// Whether the first metric's interval holds the change.
    pub covered: bool,
}

pub const NOISES: [(&str, Noise); 6] = [
    ("normal", Noise::Normal),
    ("heavy-tailed: t with 3 degrees of freedom", Noise::HeavyTailed),
    ("bursts: one trial in ten 1.6 to 4.5 × as long", Noise::Bursts),
    ("trials autocorrelated: AR(1), 0.7", Noise::Wandering),
    ("drifting: doubles over the session", Noise::Drifting),
    ("coarse: steps of 2 %", Noise::Coarse),
];

pub fn section(less: usize) -> Vec<Limit> {
    let plan = Plan::default();
    println!("\n## Gates\n");
    println!(
        "The default plan: looks at {:?} pairs, and at {:?} fresh ones; errors {} to find and {} to confirm on fresh pairs, {} for *better*, spent like {:?}, and {} to find no relevant difference, spent like Pocock. The order within pairs is drawn in balanced blocks. *Worse* is beyond 5 %, no relevant difference within 10 %. *Noise* is the spread of the logarithm of the ratio of a pair's trials.",
        plan.looks,
        plan.confirm_looks,
        plan.accuse_alpha,
        plan.confirm_alpha,
        plan.praise_alpha,
        plan.spending,
        plan.equivalence_alpha
    );
    let mut limits = false_alarms(&plan, 10_000 / less);
    limits.push(power(&plan, 2000 / less));
    spending(4000 / less);
    limits
}

fn false_alarms(plan: &Plan, gates: usize) -> Vec<Limit> {
    println!("\n### False alarms\n");
    println!(
        "{gates} gates a line, noise 0.1, all metrics alike and independent. The change is 0, or + 5 % of everything: the largest that is not yet worse, where errors are most likely. *Found* is before confirmation, limit 20 %. *Worse* is after it, limit 1 %. *Interval* is how often the printed interval (95 %, for a single look) held the change of the first metric."
    );
    table(&[
        "noise",
        "metrics",
        "change",
        "found",
        "worse",
        "better",
        "no relevant difference",
        "not enough evidence",
        "interval",
        "pairs, mean",
    ]);
    let mut worst = (0, 0);
    for (name, noise) in NOISES {
        for metrics in [1, 4] {
            for change in [0.0, 0.05] {
                let case = Case { noise, spread: 0.1, change, metrics, all_changed: true };
                let run = run(&format!("false alarms {name} {metrics} {change}"), plan, case, gates);
                let accused = run.iter().filter(|gate| gate.accused).count();
                let worse = count(&run, |v| v == Verdict::Worse);
                worst = (worst.0.max(accused), worst.1.max(worse));
                row(&[
                    name.to_owned(),
                    metrics.to_string(),
                    format!("{:+.0} %", 100.0 * change),
                    rate(accused, gates),
                    rate(worse, gates),
                    rate(count(&run, |v| v == Verdict::Better), gates),
                    rate(count(&run, |v| v == Verdict::NoRelevantDifference), gates),
                    rate(count(&run, |v| matches!(v, Verdict::NotEnoughEvidence { .. })), gates),
                    rate(run.iter().filter(|gate| gate.covered).count(), gates),
                    format!("{:.1}", mean(run.iter().map(|gate| gate.end.pairs as f64))),
                ]);
            }
        }
    }
    let limit = |what, hits: usize, limit, at_most| Limit {
        what,
        measured: format!("at worst {}", rate(hits, gates)),
        limit,
        holds: hits as f64 <= at_most * gates as f64,
    };
    vec![
        limit("found wrongly, before confirmation", worst.0, "≤ 20 %", 0.2),
        limit("worse, wrongly: the whole procedure", worst.1, "≤ 1 %", 0.01),
    ]
}

fn power(plan: &Plan, gates: usize) -> Limit {
    let mut worst = 0;
    println!("\n### What is found\n");
    println!(
        "{gates} gates a cell: how often *worse*, and the mean number of pairs, both with confirmation. One of the metrics changed. *+ 10 % called none* is how often a change of + 10 % was called no relevant difference, limit 5 %. *Interval* is how often the printed interval held the change, over all three changes."
    );
    table(&["noise", "of size", "metrics", "+ 10 %", "+ 15 %", "+ 30 %", "+ 10 % called none", "interval"]);
    for (name, noise) in [NOISES[0], NOISES[1], NOISES[2]] {
        for metrics in [1, 4] {
            for spread in [0.03, 0.05, 0.1, 0.2, 0.4] {
                let mut cells = vec![name.to_owned(), spread.to_string(), metrics.to_string()];
                let (mut called_none, mut covered) = (0, 0);
                for change in [0.1, 0.15, 0.3] {
                    let case = Case { noise, spread, change, metrics, all_changed: false };
                    let run = run(&format!("power {name} {metrics} {spread} {change}"), plan, case, gates);
                    let pairs = mean(run.iter().map(|gate| gate.end.pairs as f64));
                    let worse = count(&run, |v| v == Verdict::Worse);
                    covered += run.iter().filter(|gate| gate.covered).count();
                    cells.push(format!("{}, {pairs:.0} pairs", rate(worse, gates)));
                    if change == 0.1 {
                        let none = |gate: &&Gate| gate.end.findings[0].verdict == Verdict::NoRelevantDifference;
                        called_none = run.iter().filter(none).count();
                    }
                }
                worst = worst.max(called_none);
                cells.push(rate(called_none, gates));
                cells.push(rate(covered, 3 * gates));
                row(&cells);
            }
        }
    }
    Limit {
        what: "+ 10 % called no relevant difference",
        measured: format!("at worst {}", rate(worst, gates)),
        limit: "≤ 5 %",
        holds: worst * 20 <= gates,
    }
}

fn spending(gates: usize) {
    println!("\n### Other plans\n");
    println!(
        "{gates} gates a cell, one metric, normal noise: how often *worse*, and the mean number of pairs, both with confirmation."
    );
    table(&["plan", "noise", "0 %", "+ 10 %", "+ 15 %", "+ 30 %"]);
    let plan = |spending, looks: &[usize]| Plan {
        spending,
        looks: looks.to_vec(),
        confirm_looks: looks.to_vec(),
        ..Plan::default()
    };
    for (name, plan) in [
        ("the default: Pocock-like", Plan::default()),
        ("O'Brien–Fleming-like", Plan { spending: Spending::OBrienFleming, ..Plan::default() }),
        ("looks at 8, 12, 16, 20, 26, 32, 40", plan(Spending::Pocock, &[8, 12, 16, 20, 26, 32, 40])),
        ("looks at 10, 20, 40", plan(Spending::Pocock, &[10, 20, 40])),
        ("one look", plan(Spending::Pocock, &[40])),
    ] {
        for spread in [0.05, 0.1, 0.2] {
            let mut cells = vec![name.to_owned(), spread.to_string()];
            for change in [0.0, 0.1, 0.15, 0.3] {
                let case = Case { noise: Noise::Normal, spread, change, metrics: 1, all_changed: false };
                let run = run(&format!("spending {name} {spread} {change}"), &plan, case, gates);
                let worse = count(&run, |v| v == Verdict::Worse);
                let pairs = mean(run.iter().map(|gate| gate.end.pairs as f64));
                cells.push(format!("{:.1} %, {pairs:.0} pairs", 100.0 * worse as f64 / gates as f64));
            }
            row(&cells);
        }
    }
}

pub fn run(name: &str, plan: &Plan, case: Case, gates: usize) -> Vec<Gate> {
    repeat(name, gates, |random| gate(plan, case, random))
}

fn count(run: &[Gate], is: impl Fn(Verdict) -> bool) -> usize {
    run.iter().filter(|gate| is(gate.end.verdict)).count()
}

/// A gate as the command runs it.
fn gate(plan: &Plan, case: Case, random: &mut impl Rng) -> Gate {
    let pairs = draw(case, plan.most_pairs(), random);
    let first = look(&plan.looks, &pairs, |metrics, before| judge(plan, metrics, before, false));
    let accused = matches!(first.next, Next::Confirm { .. });
    let end = if accused {
        let fresh = draw(case, plan.most_pairs(), random);
        look(&plan.confirm_looks, &fresh, |metrics, before| confirm(plan, &first, metrics, before, false))
    } else {
        first
    };
    let interval = end.findings[0].figures.as_ref().and_then(|figures| figures.interval);
    let covered =
        interval.is_none_or(|interval| interval.low <= case.change + 1e-9 && case.change - 1e-9 <= interval.high);
    Gate { accused, end, covered }
}

/// Looks at more and more of the pairs until there is no next look.
fn look(looks: &[usize], pairs: &[Metric], judge: impl Fn(&[Metric], &[usize]) -> Judgement) -> Judgement {
    let (mut before, mut until) = (Vec::new(), looks[0]);
    loop {
        let so_far: Vec<Metric> = pairs.iter().map(|m| Metric { pairs: m.pairs[..until].to_vec(), ..*m }).collect();
        let judged = judge(&so_far, &before);
        let Next::Continue { until_pairs } = judged.next else { return judged };
        before.push(until);
        until = until_pairs;
    }
}

/// A session of pairs in random order.
pub fn draw(case: Case, pairs: usize, random: &mut impl Rng) -> Vec<Metric> {
    let order = pair_order(random.random(), pairs);
    let metric = |at: usize| {
        let trials = noise(case.noise, case.spread, 2 * pairs, random);
        let change = if at == 0 || case.all_changed { 1.0 + case.change } else { 1.0 };
        let pair = |(two, order): (&[f64], &Order)| {
            let (a, b) = if *order == Order::AB { (two[0], two[1]) } else { (two[1], two[0]) };
            Some(Pair { a: 100.0 * a.exp(), b: 100.0 * change * b.exp() })
        };
        Metric { rule: Rule::default(), pairs: trials.chunks_exact(2).zip(&order).map(pair).collect() }
    };
    (0..case.metrics).map(metric).collect()
}
