//! Trials against absolute limits: is the typical trial within them?

use serde::Serialize;
use taut_stats::compare::{Typical, fewest_trials, typical};

use crate::{Error, Side, Statistic, Subject, Trial};

/// Chance that any budget is called broken, or kept, wrongly, over all looks.
const ALPHA: f64 = 0.05;

/// One limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// "from → to"; the whole way if none is named. Not for shares.
    pub hop: Option<String>,
    /// Which figure; its `hop` is filled in from the trials.
    pub figure: BudgetFigure,
    /// In ns, or as a share.
    pub limit: f64,
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetFigure {
    /// A figure of times.
    Time(Side, Statistic),
    /// Share of messages over the deadline.
    Missed,
    /// Share of messages dropped.
    Dropped,
}

/// Within its limit or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetVerdict {
    /// The typical trial is within.
    Kept,
    /// The typical trial is over, by the program's own time.
    Broken,
    /// The typical trial is over, but is within without the machine's part.
    BrokenByMachine,
    /// Too few trials, or too close to the limit.
    Open,
    /// The trials do not carry the figure.
    Silent,
}

/// What became of one budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BudgetFinding {
    /// The limit.
    #[serde(flatten)]
    pub budget: Budget,
    /// Within it or not.
    pub verdict: BudgetVerdict,
    /// The typical trial.
    pub typical: Option<Typical>,
    /// The typical trial without the machine's part, where the limit is on all of the time.
    pub own: Option<Typical>,
}

/// What became of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Budgeted {
    /// The gravest: broken, open, broken by the machine, kept.
    pub verdict: BudgetVerdict,
    /// One by one.
    pub findings: Vec<BudgetFinding>,
    /// Sound trials.
    pub trials: usize,
    /// The fewest trials that can settle anything.
    pub fewest: usize,
}

/// Holds trials against limits, at one of `looks` looks.
///
/// The median over trials, with the order statistics around it (Thompson 1936); errors are shared evenly by budgets and
/// looks (Bonferroni).
pub fn budgets(limits: &[Budget], trials: &[Trial], looks: usize) -> Result<Budgeted, Error> {
    let sound: Vec<&Trial> = trials.iter().filter(|trial| trial.void.is_none()).collect();
    let confidence = 1.0 - 2.0 * ALPHA / (limits.len().max(1) * looks.max(1)) as f64;
    let findings: Vec<BudgetFinding> =
        limits.iter().map(|limit| finding(limit, &sound, confidence)).collect::<Result<_, _>>()?;
    let gravest = findings.iter().map(|finding| finding.verdict).max_by_key(|verdict| match verdict {
        BudgetVerdict::Kept => 0,
        BudgetVerdict::BrokenByMachine => 1,
        BudgetVerdict::Open | BudgetVerdict::Silent => 2,
        BudgetVerdict::Broken => 3,
    });
    Ok(Budgeted {
        verdict: gravest.unwrap_or(BudgetVerdict::Open),
        findings,
        trials: sound.len(),
        fewest: fewest_trials(confidence),
    })
}

fn finding(limit: &Budget, trials: &[&Trial], confidence: f64) -> Result<BudgetFinding, Error> {
    let figures = |of: &dyn Fn(&Trial) -> Option<f64>| -> Option<Typical> {
        let carried: Vec<f64> = trials.iter().filter_map(|trial| of(trial)).collect();
        // As for pairs: a fifth may lack the figure.
        ((trials.len() - carried.len()) * 5 <= trials.len()).then(|| typical(&carried, confidence)).flatten()
    };
    let (typical, own) = match limit.figure {
        BudgetFigure::Missed => (figures(&|t| t.missed), figures(&|t| t.missed_own)),
        BudgetFigure::Dropped => (figures(&|t| t.dropped.into()), None),
        BudgetFigure::Time(side, statistic) => {
            let subject = |side| -> Result<Subject, Error> {
                let Some(hop) = &limit.hop else { return Ok(Subject::Chain { side, statistic }) };
                Ok(Subject::Hop { hop: hop_of(hop, trials)?, side, statistic })
            };
            let (all, own) = (subject(side)?, subject(Side::Own)?);
            let of_own = (side == Side::Total).then(|| figures(&|t| own.number(t))).flatten();
            (figures(&|t| all.number(t)), of_own)
        }
    };
    let side = |typical: &Typical| {
        let interval = typical.interval?;
        match () {
            () if interval.low > limit.limit => Some(true),
            () if interval.high <= limit.limit => Some(false),
            () => None,
        }
    };
    let verdict = match typical.as_ref().map(side) {
        None => BudgetVerdict::Silent,
        Some(Some(false)) => BudgetVerdict::Kept,
        Some(None) => BudgetVerdict::Open,
        Some(Some(true)) => match own.as_ref().map(side) {
            None | Some(Some(true)) => BudgetVerdict::Broken,
            Some(Some(false)) => BudgetVerdict::BrokenByMachine,
            Some(None) => BudgetVerdict::Open,
        },
    };
    Ok(BudgetFinding { budget: limit.clone(), verdict, typical, own })
}

fn hop_of(name: &str, trials: &[&Trial]) -> Result<usize, Error> {
    let Some(trial) = trials.first() else { return Ok(0) };
    let hops: Vec<String> = trial.hops.iter().map(|hop| format!("{} → {}", hop.from, hop.to)).collect();
    hops.iter().position(|hop| hop == name).ok_or_else(|| Error::NoHop {
        hop: name.to_owned(),
        chain: trial.chain.clone(),
        known: hops.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figures, Times};

    fn trials(total_ns: f64, own_ns: f64, n: u32) -> Vec<Trial> {
        let figures = |ns: f64, at: u32| Figures { p99: Some(ns * (1.0 + f64::from(at) / 1e3)), ..Figures::default() };
        let way = |at| Times { total: figures(total_ns, at), own: figures(own_ns, at), ..Times::default() };
        (0..n).map(|at| Trial { way: way(at), ..Trial::default() }).collect()
    }

    fn verdict(trials: &[Trial]) -> BudgetVerdict {
        let figure = BudgetFigure::Time(Side::Total, Statistic::P99);
        budgets(&[Budget { hop: None, figure, limit: 2e6 }], trials, 1).unwrap().verdict
    }

    #[test]
    fn each_verdict_from_trials_that_deserve_it() {
        assert_eq!(verdict(&trials(1e6, 1e6, 10)), BudgetVerdict::Kept);
        assert_eq!(verdict(&trials(3e6, 2.5e6, 10)), BudgetVerdict::Broken);
        assert_eq!(verdict(&trials(3e6, 1e6, 10)), BudgetVerdict::BrokenByMachine);
        assert_eq!(verdict(&trials(1e6, 1e6, 3)), BudgetVerdict::Open);
        assert_eq!(verdict(&trials(1.995e6, 1e6, 10)), BudgetVerdict::Open);
        assert_eq!(verdict(&vec![Trial::default(); 10]), BudgetVerdict::Silent);
    }

    #[test]
    fn a_hop_that_is_not_there_is_refused() {
        let budget =
            Budget { hop: Some("a → b".into()), figure: BudgetFigure::Time(Side::Own, Statistic::P50), limit: 1.0 };
        assert!(matches!(budgets(&[budget], &[Trial::default()], 1), Err(Error::NoHop { .. })));
    }
}
