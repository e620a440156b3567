//! What a gate can find in the noise of a machine: the noise floor of a program against itself, the smallest change
//! that a plan detects, and how many more pairs an open comparison needs.

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use serde::Serialize;

use super::{
    InvalidReason, Metric, Pair, Plan, Scale, Shift, SignedRank,
    complete::{check, complete},
    fewest_pairs,
    shift::standard_normal,
    signed_rank::walsh_averages,
};

/// The chance with which `more_pairs` would settle a comparison.
const SETTLED: f64 = 0.8;
/// The chance with which the smallest detectable change is detected.
const DETECTED: f64 = 0.9;
/// More pairs than anybody runs.
const TOO_MANY_PAIRS: f64 = 10_000.0;
/// Below this chance on either side, a program differs from itself.
const CONTROL_ALPHA: f64 = 0.005;
/// So many messages more in each trial are seen, if anything is.
const MANY_MESSAGES: f64 = 20.0;
/// Gates played through to find the smallest detectable change: its chance is good to ± 1.5 %.
const GATES: usize = 400;

/// A program against itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// Complete pairs.
    pub pairs: usize,
    /// Noise of one pair, as in [`ChangeFigures::noise`](super::ChangeFigures::noise); `None` for fewer than 4 pairs.
    pub noise: Option<f64>,
    /// The smallest change for the worse that the plan detects, confirmation included, with chance 0.9; `None` where
    /// the plan detects none.
    pub smallest_detectable: Option<f64>,
}

/// Judges pairs of a program with itself, before it is compared with another. Fails where it differs from itself.
///
/// `metrics`: how many the comparison will judge.
pub fn noise_floor(plan: &Plan, control: &Metric, metrics: usize, seed: u64) -> Result<NoiseFloor, InvalidReason> {
    check(control)?;
    let pairs: Vec<Pair> = complete(&[control]).remove(0);
    let scale = control.rule.scale;
    let differences: Vec<f64> = pairs.iter().map(|pair| scale.difference(*pair)).collect();
    let shift = scale.shift(&differences).ok_or(InvalidReason::NoPairs)?;
    let margin = control.rule.minimum_effect.on(scale, &pairs);
    if shift.p_above(margin).min(shift.p_below(-margin)) <= CONTROL_ALPHA {
        return Err(InvalidReason::ControlDiffers { change: scale.change(shift.estimate()) });
    }
    let most = plan.most_pairs();
    // Of a share it takes the messages of a trial to say: see `smallest_detectable`.
    let smallest = (scale != Scale::Share)
        .then(|| smallest_detectable(plan, (most, most), margin, (&differences, None), metrics, seed))
        .flatten();
    Ok(NoiseFloor {
        pairs: pairs.len(),
        noise: shift.noise(),
        smallest_detectable: smallest.map(|shift| scale.change(shift)),
    })
}

/// The smallest shift for the worse that a plan detects with chance 0.9, confirmation included, given differences
/// that stand for the noise (made symmetric, smoothed, and drawn from with replacement) and a margin on the same scale. Judged as
/// the hardest case of `metrics` metrics, in which no other is worse. `most`: the pairs that there is time for, to find and
/// to confirm; beyond the plan's they change nothing. Beside the differences of a share stands that of one message in a trial's: a share that
/// is larger means that messages come at random, a whole number in each trial (Poisson).
pub fn smallest_detectable(
    plan: &Plan,
    most: (usize, usize),
    margin: f64,
    (noise, message): (&[f64], Option<f64>),
    metrics: usize,
    seed: u64,
) -> Option<f64> {
    if noise.is_empty() {
        return None;
    }
    let rehearsal = Rehearsal::new(plan, most, margin, (noise, message), metrics, seed);
    let largest = noise.iter().fold(0.0f64, |largest, d| largest.max(d.abs()));
    // Beyond twice the largest difference every pair is above the margin: what is not detected then never is. And some messages more, of
    // which there is one at least.
    let least = MANY_MESSAGES * message.unwrap_or(0.0) + f64::EPSILON.sqrt();
    let (mut low, mut high) = (margin, margin + 2.0 * largest + least);
    if rehearsal.detected(high) < DETECTED {
        return None;
    }
    while high - low > 0.002 * high {
        let middle = (low + high) / 2.0;
        if rehearsal.detected(middle) < DETECTED { low = middle } else { high = middle }
    }
    Some(high)
}

/// The pairs, beyond those there are, after which the whole procedure would settle it if the change were the one estimated; fresh ones
/// that confirm are counted with them. See [`Verdict::NotEnoughEvidence`](super::Verdict).
///
/// Normal approximation with the noise of the pairs so far (Noether 1987 for sample sizes of rank tests).
pub(super) fn more_pairs(plan: &Plan, shift: &Shift, margin: f64, equivalence: f64, metrics: usize) -> Option<usize> {
    let (noise, size) = (shift.noise()?, shift.estimate().abs());
    let pairs = |alpha: f64, power: f64, gap: f64| {
        let z = standard_normal(1.0 - alpha) + standard_normal(power);
        (z * noise / gap).powi(2).ceil().max(fewest_pairs(alpha) as f64)
    };
    let is_changed = size > margin;
    // Several looks share a level: about half of it is for any of them.
    let accuse = plan.accuse_alpha / (2 * metrics.max(1)) as f64;
    let gap = if is_changed { size - margin } else { equivalence - size };
    // Both sides of an equivalence must come out within: each may fail half as often.
    let needed = if is_changed {
        pairs(accuse, SETTLED, gap)
    } else {
        pairs(plan.equivalence_alpha / 2.0, (1.0 + SETTLED) / 2.0, gap)
    };
    let confirm = if shift.estimate() > margin { pairs(plan.confirm_alpha / 2.0, SETTLED, gap) } else { 0.0 };
    let more = (needed - shift.pairs() as f64).max(if confirm > 0.0 { 0.0 } else { 1.0 }) + confirm;
    (gap > 0.0 && more < TOO_MANY_PAIRS).then_some(more as usize)
}

/// Many gates over drawn noise, the same draws for every shift.
struct Rehearsal {
    margin: f64,
    /// What one message is of a share.
    message: Option<f64>,
    accusation: Vec<Look>,
    confirmation: Vec<Look>,
    /// For each gate: the pairs, then the fresh pairs.
    gates: Vec<(Vec<Drawn>, Vec<Drawn>)>,
}

/// A look, and what it needs to find one of several metrics worse while no other is.
struct Look {
    pairs: usize,
    alpha: f64,
    /// The most averages that may lie at or below the margin.
    critical: Option<usize>,
}

/// A pair's noise, and the chance that decides how many messages a larger share makes slow in it.
#[derive(Clone, Copy)]
struct Drawn {
    noise: f64,
    chance: f64,
}

impl Rehearsal {
    fn new(
        plan: &Plan,
        (accusing, confirming): (usize, usize),
        margin: f64,
        (noise, message): (&[f64], Option<f64>),
        metrics: usize,
        seed: u64,
    ) -> Rehearsal {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let most = plan.most_pairs().max(plan.of_confirmation().most_pairs());
        let mut sizes: Vec<f64> = noise.iter().map(|d| d.abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        let mut draw = || -> Vec<Drawn> {
            let mut one = || {
                let noise = between(&sizes, random.random()) * if random.random() { 1.0 } else { -1.0 };
                Drawn { noise, chance: if message.is_some() { random.random() } else { 0.0 } }
            };
            (0..most).map(|_| one()).collect()
        };
        let gates = (0..GATES).map(|_| (draw(), draw())).collect();
        Rehearsal {
            margin,
            message,
            accusation: planned(plan, accusing, metrics.max(1)),
            confirmation: planned(&plan.of_confirmation(), confirming, 1),
            gates,
        }
    }

    fn detected(&self, shift: f64) -> f64 {
        let detects = |pairs: &[Drawn], looks: &[Look]| looks.iter().any(|look| self.finds(look, pairs, shift));
        let both = |(first, fresh): &&(Vec<Drawn>, Vec<Drawn>)| {
            detects(first, &self.accusation) && detects(fresh, &self.confirmation)
        };
        self.gates.iter().filter(both).count() as f64 / self.gates.len() as f64
    }

    fn finds(&self, look: &Look, pairs: &[Drawn], shift: f64) -> bool {
        let pairs = &pairs[..look.pairs];
        let Some(message) = self.message else {
            let differences: Vec<f64> = pairs.iter().map(|pair| pair.noise).collect();
            return look.critical.is_some_and(|most| at_or_below(&differences, self.margin - shift) <= most);
        };
        let beyond =
            pairs.iter().map(|pair| pair.noise + message * poisson(shift / message, pair.chance) - self.margin);
        let (sum, squares, above) = beyond.fold((0.0, 0.0f64, 0), |(sum, squares, above), beyond| {
            (sum + beyond, squares + beyond * beyond, above + i32::from(beyond > 0.0))
        });
        // Signs exchanged, by the normal approximation; and no fewer pairs above than reach the level at all.
        0.5f64.powi(above) <= look.alpha && sum >= standard_normal(1.0 - look.alpha) * squares.sqrt()
    }
}

/// How many of events that come at random there are, so many on average: the quantile at a chance.
fn poisson(mean: f64, chance: f64) -> f64 {
    let mut p = (-mean).exp();
    let (mut sum, mut events) = (p, 0.0);
    while sum < chance && events < 10.0 * mean + 20.0 {
        events += 1.0;
        p *= mean / events;
        sum += p;
    }
    events
}

/// The looks that there are pairs for, the last when these are used up.
fn planned(plan: &Plan, most: usize, metrics: usize) -> Vec<Look> {
    let last = most.min(plan.most_pairs());
    let mut looks: Vec<usize> = plan.looks.iter().copied().filter(|look| *look < last).chain([last]).collect();
    looks.sort_unstable();
    let look = |at: usize| {
        let alpha = plan.alpha_at(&looks[..at], looks[at], at + 1 == looks.len(), metrics);
        let alpha = alpha.against / metrics as f64;
        Look { pairs: looks[at], alpha, critical: SignedRank::new(looks[at]).critical(alpha) }
    };
    (0..looks.len()).map(look).collect()
}

/// The quantile at p, on the straight line between the two values beside it: few values would else make a lattice
/// (Hyndman & Fan 1996, definition 5).
fn between(sorted: &[f64], p: f64) -> f64 {
    let at = (p * sorted.len() as f64 - 0.5).clamp(0.0, (sorted.len() - 1) as f64);
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// How many of the averages of two differences lie at or below a value.
fn at_or_below(differences: &[f64], value: f64) -> usize {
    let mut sorted = differences.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut above = 0;
    let mut from = sorted.len();
    for (i, one) in sorted.iter().enumerate() {
        while from > 0 && (one + sorted[from - 1]) / 2.0 > value {
            from -= 1;
        }
        above += sorted.len() - from.max(i);
    }
    walsh_averages(sorted.len()) - above
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Rule;

    fn control(differences: &[f64]) -> Metric {
        let pair = |d: &f64| Some(Pair { a: 100.0, b: 100.0 * d.exp() });
        Metric { rule: Rule::default(), pairs: differences.iter().map(pair).collect() }
    }

    const QUIET: [f64; 10] = [0.01, -0.02, 0.005, 0.0, 0.015, -0.01, -0.005, 0.02, -0.015, 0.001];

    #[test]
    fn a_quiet_machine_detects_little_more_than_the_minimum_effect() {
        let floor = noise_floor(&Plan::default(), &control(&QUIET), 1, 1).unwrap();
        assert!((0.05..0.08).contains(&floor.smallest_detectable.unwrap()), "{floor:?}");
        let ten_times: Vec<f64> = QUIET.iter().map(|d| d * 10.0).collect();
        let loud = noise_floor(&Plan::default(), &control(&ten_times), 1, 1).unwrap();
        assert!(loud.smallest_detectable.unwrap() > 0.1, "{loud:?}");
        assert!((loud.noise.unwrap() / floor.noise.unwrap() - 10.0).abs() < 1e-6);
    }

    #[test]
    fn more_metrics_see_less() {
        let of = |metrics| noise_floor(&Plan::default(), &control(&QUIET), metrics, 1).unwrap().smallest_detectable;
        assert!(of(1) < of(8), "{:?} {:?} {:?}", of(1), of(8), of(100));
    }

    #[test]
    fn less_time_sees_less() {
        let of = |most| smallest_detectable(&Plan::default(), most, 0.05, (&QUIET, None), 13, 1);
        assert!(of((40, 40)) < of((12, 12)) && of((40, 40)) < of((40, 5)));
        assert_eq!(of((40, 40)), of((70, 60)));
        // 6 pairs reach a level of 2⁻⁶ and no less, which is more than 20 % by 13 metrics; 4 cannot confirm at 5 %.
        assert_eq!((of((6, 40)), of((40, 4)), of((0, 0))), (None, None, None));
    }

    /// Of 125 messages a trial none is slow: then seven or eight in all are more than chance, and as many that confirm. In 40 pairs and 28 fresh
    /// ones of B that is five in a thousand, hardly less; where trials are longer it takes fewer.
    #[test]
    fn what_is_rare_must_come_often_enough_to_be_seen() {
        let of = |messages: f64, noise: &[f64]| {
            smallest_detectable(&Plan::default(), (40, 28), 0.001, (noise, Some(1.0 / messages)), 13, 1)
        };
        let none = of(125.0, &[0.0; 10]).unwrap();
        assert!((0.003..0.006).contains(&none), "{none}");
        assert!(of(1000.0, &[0.0; 10]).unwrap() < 0.75 * none);
        let noisy = of(125.0, &[0.0, 0.008, -0.008, 0.0, 0.016, -0.016, 0.0, 0.0]).unwrap();
        assert!(noisy > none, "{noisy}");
    }

    #[test]
    fn the_quantiles_of_what_comes_at_random() {
        // e⁻² is 0.135, three times that 0.406.
        assert_eq!([0.1, 0.3, 0.5].map(|chance| poisson(2.0, chance)), [0.0, 1.0, 2.0]);
        assert_eq!(poisson(0.0, 0.999), 0.0);
    }

    #[test]
    fn a_plan_that_can_never_accuse_detects_nothing() {
        let hasty = Plan { looks: vec![4], ..Plan::default() };
        assert_eq!(noise_floor(&hasty, &control(&QUIET), 1, 1).unwrap().smallest_detectable, None);
    }

    #[test]
    fn a_program_that_differs_from_itself_is_not_compared() {
        let biased: Vec<f64> = QUIET.iter().map(|d| d + 0.2).collect();
        let reason = noise_floor(&Plan::default(), &control(&biased), 1, 1).unwrap_err();
        assert!(matches!(reason, InvalidReason::ControlDiffers { change } if (0.2..0.25).contains(&change)));
    }

    #[test]
    fn counting_without_the_averages_counts_them_right() {
        let d = [3.0, -1.0, 0.5, 2.0, -4.0, 0.5, 0.0];
        for value in [-4.0, -1.75, 0.25, 0.5, 1.0, 3.0] {
            let mut count = 0;
            for (i, one) in d.iter().enumerate() {
                count += d[i..].iter().filter(|other| (one + **other) / 2.0 <= value).count();
            }
            assert_eq!(at_or_below(&d, value), count, "at {value}");
        }
    }
}
