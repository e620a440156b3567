//! The confirmation of a finding on fresh pairs, which are independent of its selection.

use super::{
    Finding, InvalidReason, Judgement, Metric, Next, Plan, Verdict,
    judge::{Adjust, judge_adjusted, together},
};

/// Tests the found metrics on fresh pairs; `fresh` has the metrics in the same order, the fresh pairs only.
///
/// The same procedure once more with `confirm_alpha` and `confirm_looks`. The found metrics are tested in turn, the surest first,
/// each at the whole level as long as all before it are confirmed: a sequence that other data have fixed needs no correction (Maurer,
/// Hothorn & Lehmacher 1995).
/// `before` and `is_last` are as for [`judge`](super::judge). What is not confirmed was not enough evidence. The other metrics keep their verdicts. Where first and
/// fresh pairs err independently, a wrong finding survives with chance `accuse_alpha` times `confirm_alpha`.
pub fn confirm(plan: &Plan, first: &Judgement, fresh: &[Metric], before: &[usize], is_last: bool) -> Judgement {
    let is_accused = |at: &usize| first.findings[*at].verdict == Verdict::Worse;
    let mut accused: Vec<usize> = (0..first.findings.len().min(fresh.len())).filter(is_accused).collect();
    accused.sort_by(|one, other| sureness(&first.findings[*one]).total_cmp(&sureness(&first.findings[*other])));
    let metrics: Vec<Metric> = accused.iter().map(|at| fresh[*at].clone()).collect();
    let adjust = Adjust { p_values: in_turn, metrics: 1 };
    let again = judge_adjusted(&plan.of_confirmation(), &metrics, before, is_last, adjust);
    let mut findings = first.findings.clone();
    for (at, finding) in accused.into_iter().zip(again.findings) {
        let verdict = match finding.verdict {
            // Asked was whether it is worse; the other answers have their own levels at the looks before.
            Verdict::Better | Verdict::NoRelevantDifference => Verdict::NotEnoughEvidence { more_pairs: None },
            // The time was up before the first fresh pair.
            Verdict::Invalid { reason: InvalidReason::NoPairs } => Verdict::NotEnoughEvidence { more_pairs: None },
            verdict => verdict,
        };
        findings[at] = Finding { verdict, accusation: first.findings[at].figures.clone(), ..finding };
    }
    let next = match again.next {
        Next::Confirm { .. } => Next::Stop,
        next => next,
    };
    together(findings, first.pairs + again.pairs, next)
}

/// Smallest for the surest: by how many sizes of its noise the change is beyond the minimum effect, taken negative.
fn sureness(finding: &Finding) -> f64 {
    let Some(figures) = &finding.figures else { return f64::INFINITY };
    let beyond = figures.minimum_effect - figures.change;
    figures.noise.map_or(beyond, |noise| beyond / noise.max(1e-12))
}

/// Adjusted p-values of tests in a fixed sequence: each is as large as the largest up to it.
fn in_turn(p_values: &[f64]) -> Vec<f64> {
    let largest = |so_far: &mut f64, p: &f64| {
        *so_far = so_far.max(*p);
        Some(*so_far)
    };
    p_values.iter().scan(0.0f64, largest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_test_that_failed_is_not_confirmed() {
        assert_eq!(in_turn(&[0.01, 0.2, 0.001]), [0.01, 0.2, 0.2]);
    }
}
