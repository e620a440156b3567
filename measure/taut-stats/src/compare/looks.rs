//! When to look at the pairs so far, and how much of the allowed error each look may spend.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use super::{shift::standard_normal, signed_rank::attainable};

/// Settings of a gate: errors, looks, confirmation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// Chance that any metric is found worse wrongly over all looks. It may be large, since a verdict of worse needs
    /// `confirm_alpha` as well: together they err with the product of both.
    pub accuse_alpha: f64,
    /// Chance that any metric is praised wrongly over all looks; nothing confirms praise.
    pub praise_alpha: f64,
    /// Chance that a relevant difference is called none over all looks, for each metric.
    pub equivalence_alpha: f64,
    /// Confidence of printed intervals.
    pub confidence: f64,
    /// Chance that fresh pairs confirm a wrong accusation, over all their looks.
    pub confirm_alpha: f64,
    /// Pairs at which to look, ascending; the last is the most that will be run.
    pub looks: Vec<usize>,
    /// The same of the fresh pairs of a confirmation: fewer are needed, since fewer metrics are left to correct for.
    pub confirm_looks: Vec<usize>,
    /// How the levels above are spread over the looks.
    pub spending: Spending,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            accuse_alpha: 0.2,
            praise_alpha: 0.05,
            equivalence_alpha: 0.05,
            confidence: 0.95,
            confirm_alpha: 0.05,
            looks: vec![8, 12, 20, 28, 40],
            confirm_looks: vec![6, 10, 16, 28],
            spending: Spending::Pocock,
        }
    }
}

/// Spending functions of Lan & DeMets (1983).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spending {
    /// α·ln(1 + (e−1)t): about evenly, so that large changes are found early.
    Pocock,
    /// 2 − 2Φ(z(1−α/2)/√t): hardly any at first, so that the last look is nearly as sharp as a single one.
    #[serde(rename = "obrien_fleming")]
    OBrienFleming,
}

impl Spending {
    /// What may be spent up to a share of the pairs.
    pub fn up_to(self, alpha: f64, share: f64) -> f64 {
        let share = share.clamp(0.0, 1.0);
        match self {
            Spending::Pocock => alpha * (share * (std::f64::consts::E - 1.0)).ln_1p(),
            Spending::OBrienFleming if share == 0.0 => 0.0,
            Spending::OBrienFleming => {
                let z = standard_normal(1.0 - alpha / 2.0);
                2.0 * Normal::standard().sf(z / share.sqrt())
            }
        }
    }
}

/// The one-sided levels of one look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LookAlpha {
    /// For worse, over all metrics by Holm.
    pub against: f64,
    /// For better, over all metrics by Holm.
    pub praise: f64,
    /// For no relevant difference, each metric.
    pub equivalent: f64,
    /// For each side of an interval, at every look the same.
    pub interval: f64,
}

impl Plan {
    /// How fresh pairs are judged.
    pub(super) fn of_confirmation(&self) -> Plan {
        Plan { accuse_alpha: self.confirm_alpha, looks: self.confirm_looks.clone(), ..self.clone() }
    }

    /// The most pairs before confirmation.
    pub fn most_pairs(&self) -> usize {
        self.looks.iter().copied().max().unwrap_or(0)
    }

    /// The planned look after this many pairs.
    pub fn next_look(&self, pairs: usize) -> Option<usize> {
        self.looks.iter().copied().filter(|look| *look > pairs).min()
    }

    /// The levels of a look at this many pairs, after looks at `before`. The last look, planned or because time is up,
    /// may spend all that is left: when it comes must not depend on the figures.
    pub fn alpha_at(&self, before: &[usize], pairs: usize, is_last: bool, metrics: usize) -> LookAlpha {
        let level = |alpha, spending, metrics| self.allotment((alpha, spending), metrics, before, pairs, is_last);
        LookAlpha {
            against: level(self.accuse_alpha, self.spending, metrics),
            praise: level(self.praise_alpha, self.spending, metrics),
            equivalent: level(self.equivalence_alpha, Spending::Pocock, 1),
            interval: (1.0 - self.confidence) / 2.0,
        }
    }

    /// What one look may spend: what is due by now less what the looks before really spent, tests by signs being discrete. Summing
    /// errors over looks ignores that looks share pairs; it holds under any dependence and costs little (Slud & Wei 1982
    /// spend error on exact discrete tests in the same way).
    fn allotment(
        &self,
        (alpha, spending): (f64, Spending),
        metrics: usize,
        before: &[usize],
        pairs: usize,
        is_last: bool,
    ) -> f64 {
        let due = |pairs: usize| spending.up_to(alpha, pairs as f64 / self.most_pairs().max(1) as f64);
        let spent = before
            .iter()
            .filter(|look| **look < pairs)
            .fold(0.0, |spent, look| spent + really_spent(*look, due(*look) - spent, metrics));
        if is_last { alpha - spent } else { due(pairs) - spent }
    }
}

/// Holm over k metrics errs with at most j times the level reached at alpha/j, for some number j of true nulls.
fn really_spent(pairs: usize, alpha: f64, metrics: usize) -> f64 {
    (1..=metrics.max(1)).map(|j| j as f64 * attainable(pairs, alpha / j as f64)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spendings_end_at_alpha_and_never_give_back() {
        for spending in [Spending::Pocock, Spending::OBrienFleming] {
            let up_to: Vec<f64> = (0..=10).map(|t| spending.up_to(0.01, f64::from(t) / 10.0)).collect();
            assert_eq!(up_to[0], 0.0);
            assert!((up_to[10] - 0.01).abs() < 1e-9, "{spending:?}: {}", up_to[10]);
            assert!(up_to.windows(2).all(|two| two[0] < two[1]));
        }
    }

    /// At half of the pairs: 2 − 2Φ(2.2414·√2), and 0.025·ln 1.8591.
    #[test]
    fn spending_half_way() {
        assert!((Spending::OBrienFleming.up_to(0.025, 0.5) - 0.00153).abs() < 1e-5);
        assert!((Spending::Pocock.up_to(0.025, 0.5) - 0.01551).abs() < 1e-5);
    }

    #[test]
    fn what_all_looks_really_spend_stays_within_alpha() {
        for metrics in [1, 3, 5] {
            for plan in [Plan::default(), Plan { spending: Spending::OBrienFleming, ..Plan::default() }] {
                let spent: f64 = (0..plan.looks.len())
                    .map(|at| {
                        let (pairs, is_last) = (plan.looks[at], at + 1 == plan.looks.len());
                        let against = plan.alpha_at(&plan.looks[..at], pairs, is_last, metrics).against;
                        assert!(against >= 0.0);
                        really_spent(pairs, against, metrics)
                    })
                    .sum();
                assert!(spent <= plan.accuse_alpha && spent > 0.8 * plan.accuse_alpha, "{metrics} metrics: {spent}");
            }
        }
    }

    #[test]
    fn a_look_that_could_not_accuse_spends_nothing() {
        let plan = Plan { looks: vec![4, 20], ..Plan::default() };
        assert_eq!(plan.alpha_at(&[4], 20, true, 1).against, plan.accuse_alpha);
    }

    #[test]
    fn time_that_runs_out_leaves_nothing_unspent() {
        let plan = Plan::default();
        let cut_short = plan.alpha_at(&[8], 12, true, 1);
        assert!(cut_short.against > plan.alpha_at(&[8], 12, false, 1).against);
    }
}
