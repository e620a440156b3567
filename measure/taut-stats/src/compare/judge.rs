//! One look at all metrics: from pairs to verdicts.

use super::{
    ChangeFigures, Finding, Interval, InvalidReason, Judgement, LookAlpha, Metric, Next, Pair, Plan, Rule, Shift,
    Verdict,
    complete::{check, complete},
    detect::more_pairs,
    holm, typical,
};

/// Nothing may hint at a change beyond the minimum effect where it is called none: a one-sided p-value, by itself, below this is a hint.
const HINT: f64 = 0.2;

/// Judges all pairs so far.
///
/// `before` are the complete pairs at the looks that came before. Worse and better are tests against the minimum effect,
/// Holm over the metrics; no relevant difference is two one-sided tests (Schuirmann 1987) against the equivalence
/// margin, where nothing hints at more than the minimum effect. `is_last`: no more pairs will come, be it that time is up; the plan's last look is last anyway. Only pairs
/// that are complete in every valid metric count. Worse is not final: see [`Next::Confirm`].
pub fn judge(plan: &Plan, metrics: &[Metric], before: &[usize], is_last: bool) -> Judgement {
    judge_adjusted(plan, metrics, before, is_last, Adjust { p_values: holm, metrics: metrics.len() })
}

/// How the p-values of several metrics become those of all together.
#[derive(Clone, Copy)]
pub(super) struct Adjust {
    pub p_values: fn(&[f64]) -> Vec<f64>,
    /// Of how many metrics one level is shared.
    pub metrics: usize,
}

/// [`judge`] with another way to hold the error over all metrics.
pub(super) fn judge_adjusted(
    plan: &Plan,
    metrics: &[Metric],
    before: &[usize],
    is_last: bool,
    adjust: Adjust,
) -> Judgement {
    let checked: Vec<Result<(), InvalidReason>> = metrics.iter().map(check).collect();
    let valid: Vec<&Metric> = metrics.iter().zip(&checked).filter(|(_, c)| c.is_ok()).map(|(m, _)| m).collect();
    let columns = complete(&valid);
    let pairs = columns.first().map_or(0, Vec::len);
    let next_look = plan.next_look(pairs);
    let is_last = is_last || next_look.is_none();
    let alpha = plan.alpha_at(before, pairs, is_last, adjust.metrics.min(valid.len()));
    let mut judged = judge_columns(plan, &valid, &columns, alpha, adjust).into_iter();
    let findings: Vec<Finding> = checked
        .into_iter()
        .map(|check| match check {
            Ok(()) => judged.next().unwrap_or_else(|| invalid(InvalidReason::NoPairs)),
            Err(reason) => invalid(reason),
        })
        .collect();
    let is_accused = findings.iter().any(|f| f.verdict == Verdict::Worse);
    // Where too many pairs are void so far, later ones may make up for it.
    let open = findings.iter().any(|f| matches!(f.verdict, Verdict::NotEnoughEvidence { .. })) || valid.is_empty();
    let next = match next_look {
        _ if is_accused => Next::Confirm { until_pairs: plan.confirm_looks.iter().copied().min().unwrap_or(pairs) },
        Some(until_pairs) if open && !is_last => Next::Continue { until_pairs },
        _ => Next::Stop,
    };
    together(findings, pairs, next)
}

/// The findings with the gravest as the verdict on all.
pub(super) fn together(findings: Vec<Finding>, pairs: usize, next: Next) -> Judgement {
    let verdict = Verdict::gravest(findings.iter().map(|f| f.verdict))
        .unwrap_or(Verdict::Invalid { reason: InvalidReason::NoPairs });
    Judgement { verdict, findings, pairs, next }
}

fn invalid(reason: InvalidReason) -> Finding {
    Finding { verdict: Verdict::Invalid { reason }, figures: None, accusation: None }
}

/// Judges complete columns at given levels.
fn judge_columns(
    plan: &Plan,
    metrics: &[&Metric],
    columns: &[Vec<Pair>],
    alpha: LookAlpha,
    adjust: Adjust,
) -> Vec<Finding> {
    let weighed: Option<Vec<Weighed>> =
        metrics.iter().zip(columns).map(|(metric, pairs)| Weighed::of(metric.rule, pairs)).collect();
    let Some(weighed) = weighed else { return Vec::new() };
    let above: Vec<f64> = weighed.iter().map(|w| w.shift.p_above(w.margin)).collect();
    let below: Vec<f64> = weighed.iter().map(|w| w.shift.p_below(-w.margin)).collect();
    let (worse, better) = ((adjust.p_values)(&above), holm(&below));
    let hints = above.iter().zip(&below).map(|(above, below)| above.min(*below) < HINT);
    weighed
        .iter()
        .zip(columns)
        .zip(worse.into_iter().zip(better).zip(hints))
        .map(|((weighed, pairs), ((p_worse, p_better), hints))| {
            let p_equivalent =
                weighed.middle.p_above(-weighed.equivalence).max(weighed.middle.p_below(weighed.equivalence));
            let verdict = if p_worse <= alpha.against {
                Verdict::Worse
            } else if p_better <= alpha.praise {
                Verdict::Better
            } else if p_equivalent <= alpha.equivalent && !hints {
                Verdict::NoRelevantDifference
            } else {
                let more = more_pairs(plan, &weighed.shift, weighed.margin, weighed.equivalence, adjust.metrics);
                Verdict::NotEnoughEvidence { more_pairs: more }
            };
            let figures = weighed.figures(plan, pairs, alpha, (p_worse, p_better, p_equivalent));
            Finding { verdict, figures, accusation: None }
        })
        .collect()
}

/// A metric's pairs on its scale.
struct Weighed {
    rule: Rule,
    shift: Shift,
    /// What most pairs differ by. One trial with many slow messages makes the mean of shares less sure than any margin; what is rare is asked
    /// of the mean by [`HINT`].
    middle: Shift,
    margin: f64,
    equivalence: f64,
}

impl Weighed {
    fn of(rule: Rule, pairs: &[Pair]) -> Option<Weighed> {
        let differences: Vec<f64> = pairs.iter().map(|pair| rule.scale.difference(*pair)).collect();
        let (shift, middle) = (rule.scale.shift(&differences)?, Shift::of(&differences)?);
        // A difference that equals a margin but for rounding is not beyond it: on coarse readings there are many.
        let rounding = |margin: f64| 1e-9 * margin + 1e-12;
        let margin = rule.minimum_effect.on(rule.scale, pairs);
        let equivalence = rule.equivalence.on(rule.scale, pairs);
        let (margin, equivalence) = (margin + rounding(margin), equivalence - rounding(equivalence));
        Some(Weighed { rule, shift, middle, margin, equivalence })
    }

    fn figures(&self, plan: &Plan, pairs: &[Pair], alpha: LookAlpha, p: (f64, f64, f64)) -> Option<ChangeFigures> {
        let change = |shift| self.rule.scale.change(shift);
        let bounds = self.shift.lower(alpha.interval).zip(self.shift.upper(alpha.interval));
        let column = |of: fn(&Pair) -> f64| typical(&pairs.iter().map(of).collect::<Vec<_>>(), plan.confidence);
        Some(ChangeFigures {
            pairs: pairs.len(),
            change: change(self.shift.estimate()),
            interval: bounds.map(|(low, high)| Interval {
                low: change(low),
                high: change(high),
                confidence: 1.0 - 2.0 * self.shift.attained(alpha.interval),
            }),
            minimum_effect: change(self.margin),
            equivalence: change(self.equivalence),
            p_worse: p.0,
            p_better: p.1,
            p_equivalent: p.2,
            alpha,
            noise: self.shift.noise(),
            a: column(|pair| pair.a)?,
            b: column(|pair| pair.b)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compare::{Margin, Scale, confirm, noise_floor};

    fn metric(rule: Rule, pairs: impl IntoIterator<Item = (f64, f64)>) -> Metric {
        Metric { rule, pairs: pairs.into_iter().map(|(a, b)| Some(Pair { a, b })).collect() }
    }

    /// Pairs around 100 whose log-ratios scatter by a tenth around a change.
    fn scattered(pairs: usize, change: f64) -> Metric {
        let noise = |i: usize| 0.1 * (((i * 7919 + 13) % 101) as f64 / 50.0 - 1.0);
        metric(Rule::default(), (0..pairs).map(|i| (100.0, 100.0 * (1.0 + change) * noise(i).exp())))
    }

    #[test]
    fn each_verdict_from_pairs_that_deserve_it() {
        let verdict = |pairs, change| judge(&Plan::default(), &[scattered(pairs, change)], &[], true).verdict;
        assert_eq!(verdict(40, 0.3), Verdict::Worse);
        assert_eq!(verdict(40, -0.3), Verdict::Better);
        assert_eq!(verdict(40, 0.0), Verdict::NoRelevantDifference);
        // 87 pairs to accuse, of which there are 8, and 151 fresh ones to confirm.
        assert_eq!(verdict(8, 0.06), Verdict::NotEnoughEvidence { more_pairs: Some(230) });
        assert_eq!(verdict(0, 0.0), Verdict::Invalid { reason: InvalidReason::NoPairs });
    }

    #[test]
    fn a_change_below_the_minimum_effect_is_never_worse_however_sure() {
        let sure = metric(Rule::default(), (0..40).map(|i| (100.0, 104.0 + f64::from(i) / 1000.0)));
        assert_eq!(judge(&Plan::default(), &[sure], &[], true).verdict, Verdict::NoRelevantDifference);
    }

    #[test]
    fn a_step_of_a_microsecond_is_no_news_where_twenty_are_the_floor() {
        let floor = Margin { relative: 0.05, absolute: 20_000.0 };
        let rule = Rule { minimum_effect: floor, equivalence: floor, ..Rule::default() };
        let hop = metric(rule, (0..20).map(|i| (2000.0 + f64::from(i), 3000.0)));
        let judged = judge(&Plan::default(), &[hop], &[], true);
        assert_eq!(judged.verdict, Verdict::NoRelevantDifference);
        assert!((judged.findings[0].figures.as_ref().unwrap().change - 0.5).abs() < 0.01);
    }

    #[test]
    fn misses_may_be_zero_on_the_scale_of_differences() {
        let margin = Margin { relative: 0.0, absolute: 0.002 };
        let rule = Rule { scale: Scale::Difference, minimum_effect: margin, equivalence: margin };
        let shares = || (0..20).map(|i| (0.0, 0.01 + f64::from(i) / 1e5));
        assert_eq!(judge(&Plan::default(), &[metric(rule, shares())], &[], true).verdict, Verdict::Worse);
        let ratio = judge(&Plan::default(), &[metric(Rule::default(), shares())], &[], true);
        assert_eq!(ratio.verdict, Verdict::Invalid { reason: InvalidReason::NotComparable { pairs: 20 } });
    }

    /// Of 40 pairs two met a machine that stalled. Of another program every second trial, or every fourth, has more slow messages.
    #[test]
    fn a_share_is_worse_by_its_mean_and_none_by_its_middle() {
        let margin = |absolute| Margin { relative: 0.0, absolute };
        let rule = Rule { scale: Scale::Share, minimum_effect: margin(0.001), equivalence: margin(0.003) };
        let verdict = |b: fn(u32) -> f64| {
            let pairs = (0..40).map(|i| (if i == 7 { 0.05 } else { 0.0 }, b(i)));
            judge(&Plan::default(), &[metric(rule, pairs)], &[], true).verdict
        };
        let stalled = |i: u32| if i == 29 { 0.06 } else { 0.0 };
        assert_eq!(verdict(stalled), Verdict::NoRelevantDifference);
        assert_eq!(verdict(|i| if i % 2 == 0 { 0.016 } else { 0.0 }), Verdict::Worse);
        assert!(matches!(verdict(|i| if i % 4 == 0 { 0.012 } else { 0.0 }), Verdict::NotEnoughEvidence { .. }));
    }

    #[test]
    fn void_pairs_are_left_out_until_they_are_too_many() {
        let mut holed = scattered(40, 0.3);
        holed.pairs[3..11].fill(None);
        let judged = judge(&Plan::default(), &[holed.clone(), scattered(40, 0.0)], &[], true);
        assert_eq!((judged.verdict, judged.pairs), (Verdict::Worse, 32));
        holed.pairs[11] = None;
        let judged = judge(&Plan::default(), &[holed, scattered(40, 0.0)], &[], true);
        assert_eq!(judged.verdict, Verdict::Invalid { reason: InvalidReason::TooManyVoid { void: 9, pairs: 40 } });
        assert_eq!(judged.findings[1].verdict, Verdict::NoRelevantDifference);
    }

    #[test]
    fn goes_on_while_open_and_stops_when_all_is_said() {
        let plan = Plan::default();
        let next = |metrics: &[Metric], last| judge(&plan, metrics, &[], last).next;
        assert_eq!(next(&[scattered(8, 0.08)], false), Next::Continue { until_pairs: 12 });
        assert_eq!(next(&[scattered(8, 0.06)], true), Next::Stop);
        assert_eq!(next(&[scattered(40, 0.055)], false), Next::Stop);
        assert_eq!(next(&[scattered(40, 0.0)], false), Next::Stop);
        assert_eq!(next(&[scattered(16, 0.5)], false), Next::Confirm { until_pairs: 6 });
    }

    #[test]
    fn an_accusation_stands_only_on_fresh_pairs() {
        let plan = Plan::default();
        let first = judge(&plan, &[scattered(20, 0.3), scattered(20, 0.0)], &[8, 14], false);
        assert_eq!(first.verdict, Verdict::Worse);
        let confirmed = confirm(&plan, &first, &[scattered(20, 0.25), scattered(20, 0.0)], &[8, 14], false);
        assert_eq!((confirmed.verdict, confirmed.pairs, confirmed.next), (Verdict::Worse, 40, Next::Stop));
        let (fresh, old) = (&confirmed.findings[0].figures, &confirmed.findings[0].accusation);
        assert!(fresh.as_ref().unwrap().change < old.as_ref().unwrap().change);
        let withdrawn = confirm(&plan, &first, &[scattered(20, 0.0), scattered(20, 0.0)], &[], true);
        assert!(matches!(withdrawn.verdict, Verdict::NotEnoughEvidence { .. }));
        assert_eq!(withdrawn.findings[1], first.findings[1]);
        let nothing = confirm(&plan, &first, &[scattered(0, 0.0), scattered(0, 0.0)], &[], true);
        assert_eq!(nothing.verdict, Verdict::NotEnoughEvidence { more_pairs: None });
    }

    #[test]
    fn readings_that_tie_at_the_margin_are_not_beyond_it() {
        let steps = |i: u32| 100.0 * f64::from(i % 7).mul_add(0.02, 0.9);
        let tied = metric(Rule::default(), (0..40).map(|i| (steps(i), steps(i) * 1.05)));
        let judged = judge(&Plan::default(), &[tied], &[], true);
        assert_eq!(judged.verdict, Verdict::NoRelevantDifference);
        assert_eq!(judged.findings[0].figures.as_ref().unwrap().p_worse, 1.0);
    }

    proptest! {
        #[test]
        fn turned_round_worse_is_better(pairs in prop::collection::vec((50.0..200.0f64, 50.0..200.0f64), 8..40)) {
            // Accusations are confirmed and praise is not: by default they have levels of their own.
            let even = Plan { praise_alpha: Plan::default().accuse_alpha, ..Plan::default() };
            let one = judge(&even, &[metric(Rule::default(), pairs.clone())], &[], true);
            let turned = pairs.into_iter().map(|(a, b)| (b, a));
            let other = judge(&even, &[metric(Rule::default(), turned)], &[], true);
            // What is worse needs fresh pairs as well, so how many more would settle it differs.
            let known = |verdict| match verdict {
                Verdict::NotEnoughEvidence { .. } => Verdict::NotEnoughEvidence { more_pairs: None },
                other => other,
            };
            let expected = match known(one.verdict) {
                Verdict::Worse => Verdict::Better,
                Verdict::Better => Verdict::Worse,
                same => same,
            };
            prop_assert_eq!(known(other.verdict), expected);
            let figures = |judged: &Judgement| judged.findings[0].figures.clone().unwrap();
            let (one, other) = (figures(&one), figures(&other));
            prop_assert!(((1.0 + one.change) * (1.0 + other.change) - 1.0).abs() < 1e-12);
            prop_assert_eq!((one.p_worse, one.p_better), (other.p_better, other.p_worse));
        }

        #[test]
        fn units_change_no_verdict(pairs in prop::collection::vec((50.0..200.0f64, 50.0..200.0f64), 8..40), power in -20i32..20) {
            let unit = f64::from(power).exp2();
            let one = judge(&Plan::default(), &[metric(Rule::default(), pairs.clone())], &[], true);
            let scaled = pairs.into_iter().map(|(a, b)| (a * unit, b * unit));
            let other = judge(&Plan::default(), &[metric(Rule::default(), scaled)], &[], true);
            prop_assert_eq!(one.verdict, other.verdict);
        }

        #[test]
        fn what_is_worse_stays_worse_when_it_grows_worse(
            pairs in prop::collection::vec((50.0..200.0f64, 60.0..400.0f64), 8..40), more in 1.0..3.0f64,
        ) {
            let one = judge(&Plan::default(), &[metric(Rule::default(), pairs.clone())], &[], true);
            let grown = pairs.into_iter().map(|(a, b)| (a, b * more));
            let other = judge(&Plan::default(), &[metric(Rule::default(), grown)], &[], true);
            prop_assert!(one.verdict != Verdict::Worse || other.verdict == Verdict::Worse);
        }

        #[test]
        fn no_input_panics(pairs in prop::collection::vec(any::<Option<(f64, f64)>>(), 0..20), before in prop::collection::vec(0..50usize, 0..4)) {
            let pairs = pairs.into_iter().map(|p| p.map(|(a, b)| Pair { a, b })).collect();
            let one = Metric { rule: Rule::default(), pairs };
            let nonsense = Plan { accuse_alpha: 7.0, praise_alpha: -1.0, equivalence_alpha: f64::NAN, looks: vec![], ..Plan::default() };
            for plan in [Plan::default(), nonsense] {
                let judged = judge(&plan, std::slice::from_ref(&one), &before, false);
                confirm(&plan, &judged, std::slice::from_ref(&one), &before, true);
                let _ = noise_floor(&plan, &one, 2, 1);
            }
        }
    }
}
