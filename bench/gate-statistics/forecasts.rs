//! What is foretold: the smallest detectable change, and how many more pairs an open comparison needs.

use rand::RngExt;
use taut_stats::compare::{Plan, Verdict, judge, noise_floor};

use crate::{
    gates::{Case, NOISES, draw, run},
    page::{rate, row, table},
    repeat,
};

pub fn section(less: usize) {
    println!("\n## Forecasts");
    smallest_detectable(200 / less, 2000 / less);
    more_pairs(4000 / less);
}

fn smallest_detectable(controls: usize, gates: usize) {
    println!("\n### The smallest detectable change\n");
    println!(
        "Predicted from {controls} A/A controls a line, one metric; the truth is from {gates} gates at each of 12 changes. *Found* is how often a gate finds a change of the predicted size; nominal is 90 %. Medians over controls, with the 10th and 90th percentile."
    );
    table(&["noise", "of size", "pairs of the control", "predicted", "true", "found"]);
    let plan = Plan::default();
    for (name, noise) in [NOISES[0], NOISES[1], NOISES[2]] {
        let kind = name.split(':').next().unwrap_or_default();
        for spread in [0.05, 0.1, 0.2] {
            let case = |change| Case { noise, spread, change, metrics: 1, all_changed: false };
            // Found by change, from 5 % up to where it is certain.
            let curve: Vec<(f64, f64)> = (0..12)
                .map(|step| 0.05 + spread * f64::from(step) * 0.15)
                .map(|change| (change, found(&plan, case(change), gates, name)))
                .collect();
            for pairs in [8, 12, 20] {
                let name = format!("control {name} {spread} {pairs}");
                let mut foretold: Vec<f64> = repeat(&name, controls, |random| {
                    let control = draw(case(0.0), pairs, random).remove(0);
                    noise_floor(&plan, &control, 1, random.random()).ok()?.smallest_detectable
                })
                .into_iter()
                .flatten()
                .collect();
                foretold.sort_unstable_by(f64::total_cmp);
                let at = |p: f64| foretold[(p * (foretold.len() - 1) as f64) as usize];
                let spread_of = |of: &dyn Fn(f64) -> f64| {
                    format!("{:.1} % ({:.1}–{:.1})", 100.0 * of(0.5), 100.0 * of(0.1), 100.0 * of(0.9))
                };
                row(&[
                    kind.to_owned(),
                    spread.to_string(),
                    pairs.to_string(),
                    spread_of(&at),
                    format!("{:.1} %", 100.0 * inverse(&curve, 0.9)),
                    spread_of(&|p| interpolated(&curve, at(p))),
                ]);
            }
        }
    }
}

fn found(plan: &Plan, case: Case, gates: usize, name: &str) -> f64 {
    let run = run(&format!("curve {name} {} {}", case.spread, case.change), plan, case, gates);
    run.iter().filter(|gate| gate.end.verdict == Verdict::Worse).count() as f64 / gates as f64
}

fn more_pairs(comparisons: usize) {
    println!("\n### How many more pairs\n");
    println!(
        "{comparisons} comparisons a line of one metric with a random change of − 10 to + 30 %, judged at 20 pairs. *Given a number*: the part of the unsettled ones for which a number of further pairs is predicted. *Settled then*: the part of these settled by so many more pairs (at one look, before confirmation); nominal is 80 % where the change is the estimated one."
    );
    table(&[
        "noise",
        "of size",
        "not settled at 20",
        "given a number",
        "more pairs: median (90th percentile)",
        "settled then",
    ]);
    for (name, noise) in [NOISES[0], NOISES[1], NOISES[2]] {
        for spread in [0.05, 0.1, 0.2] {
            let told = repeat(&format!("more {name} {spread}"), comparisons, |random| {
                let change = random.random_range(-0.1..0.3);
                let case = Case { noise, spread, change, metrics: 1, all_changed: false };
                let mut metrics = draw(case, 20, random);
                let once = |pairs| Plan { looks: vec![pairs], ..Plan::default() };
                let Verdict::NotEnoughEvidence { more_pairs } = judge(&once(20), &metrics, &[], true).verdict else {
                    return None;
                };
                // What nobody would wait for is not tried.
                let settled = more_pairs.filter(|more| *more <= 400).map(|more| {
                    let fresh = draw(case, more, random);
                    metrics[0].pairs.extend(&fresh[0].pairs);
                    let judged = judge(&once(20 + more), &metrics, &[], true).verdict;
                    !matches!(judged, Verdict::NotEnoughEvidence { .. })
                });
                Some((more_pairs, settled))
            });
            let open: Vec<_> = told.iter().flatten().collect();
            let mut numbers: Vec<usize> = open.iter().filter_map(|(more, _)| *more).collect();
            numbers.sort_unstable();
            let tried: Vec<bool> = open.iter().filter_map(|(_, settled)| *settled).collect();
            let at = |p: f64| numbers.get((p * numbers.len() as f64) as usize).copied().unwrap_or_default();
            row(&[
                name.split(':').next().unwrap_or_default().to_owned(),
                spread.to_string(),
                rate(open.len(), told.len()),
                rate(numbers.len(), open.len().max(1)),
                format!("{} ({})", at(0.5), at(0.9)),
                rate(tried.iter().filter(|settled| **settled).count(), tried.len().max(1)),
            ]);
        }
    }
    println!("\nPredictions over 400 pairs were not tried.");
}

/// On the straight line between the points beside it; the ends beyond them.
fn interpolated(curve: &[(f64, f64)], at: f64) -> f64 {
    let next = curve.partition_point(|(x, _)| *x < at);
    match (next.checked_sub(1).map(|before| curve[before]), curve.get(next).copied()) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (at - x0) / (x1 - x0),
        (Some((_, y)), None) | (None, Some((_, y))) => y,
        (None, None) => f64::NAN,
    }
}

/// Where the curve first reaches a height.
fn inverse(curve: &[(f64, f64)], height: f64) -> f64 {
    let next = curve.iter().position(|(_, y)| *y >= height).unwrap_or(curve.len() - 1).max(1);
    let ((x0, y0), (x1, y1)) = (curve[next - 1], curve[next]);
    x0 + (x1 - x0) * (height - y0) / (y1 - y0)
}
