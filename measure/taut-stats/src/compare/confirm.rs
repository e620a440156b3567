//! The last word on an accusation: fresh pairs, which know nothing of the luck that made it.

use super::{Finding, InvalidReason, Judgement, Metric, Next, Plan, Verdict, judge, judge::together};

/// Holds the accused metrics against fresh pairs; `fresh` has the metrics in the same order, the fresh pairs only.
///
/// The same procedure once more with `confirm_alpha`, Holm over the accused; `before` and `is_last` are as for
/// [`judge`]. What is not confirmed was not enough evidence. The other metrics keep their verdicts. Where first and
/// fresh pairs err independently, a wrong accusation survives with chance `accuse_alpha` times `confirm_alpha`.
pub fn confirm(plan: &Plan, first: &Judgement, fresh: &[Metric], before: &[usize], is_last: bool) -> Judgement {
    let is_accused = |at: &usize| first.findings[*at].verdict == Verdict::Worse;
    let accused: Vec<usize> = (0..first.findings.len().min(fresh.len())).filter(is_accused).collect();
    let metrics: Vec<Metric> = accused.iter().map(|at| fresh[*at].clone()).collect();
    let again = judge(&plan.of_confirmation(), &metrics, before, is_last);
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
