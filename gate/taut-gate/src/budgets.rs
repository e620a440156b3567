//! Trials against absolute limits: is the typical trial within them? Few long recordings are held against them by the bursts of messages
//! beyond the limit.

use serde::Serialize;
use taut_stats::{
    Bursts,
    compare::{Interval, Typical, fewest_trials, typical},
};

use crate::{Error, Side, SideFailures, Statistic, Subject, Trial, early};

/// Chance that any budget is called broken, or kept, wrongly, over all looks.
const ALPHA: f64 = 0.05;

/// One limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// The chain that it limits.
    pub chain: String,
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
    /// Messages beyond the limit, where the trials are too few to speak for themselves.
    pub beyond: Option<Beyond>,
}

/// Messages beyond a limit, in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Beyond {
    /// All and those beyond, over all trials.
    pub bursts: Bursts,
    /// Of messages, the share that may be beyond.
    pub allowed: f64,
    /// Bounds of the share that is.
    pub share: Interval,
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
    /// The fewest trials that can settle anything by their typical one.
    pub fewest: usize,
    /// Runs that failed: then the limits are broken.
    pub failures: SideFailures,
}

/// Holds trials against limits, at one of `looks` looks; each trial against those of its chain.
///
/// The median over trials, with the order statistics around it (Thompson 1936). Where the trials are too few for that, the share of messages
/// beyond the limit, with bursts as units ([`Bursts::bounds`]). Errors are shared evenly by budgets and looks (Bonferroni).
pub fn budgets(limits: &[Budget], trials: &[Trial], looks: usize) -> Result<Budgeted, Error> {
    let trials = &early::marked(trials);
    let alpha = ALPHA / (limits.len().max(1) * looks.max(1)) as f64;
    let confidence = 1.0 - 2.0 * alpha;
    let fewest = fewest_trials(confidence);
    let of = |limit: &Budget| {
        let sound: Vec<&Trial> =
            trials.iter().filter(|trial| trial.void.is_none() && trial.chain == limit.chain).collect();
        let found = finding(limit, &sound, confidence)?;
        let is_few = sound.len() < fewest && matches!(found.verdict, BudgetVerdict::Open | BudgetVerdict::Silent);
        Ok(if is_few { by_messages(found, &sound, alpha) } else { found })
    };
    let findings: Vec<BudgetFinding> = limits.iter().map(of).collect::<Result<_, Error>>()?;
    let gravest = findings.iter().map(|finding| finding.verdict).max_by_key(|verdict| match verdict {
        BudgetVerdict::Kept => 0,
        BudgetVerdict::BrokenByMachine => 1,
        BudgetVerdict::Open | BudgetVerdict::Silent => 2,
        BudgetVerdict::Broken => 3,
    });
    let failures = SideFailures::of(trials.iter());
    let verdict = if failures.failed > 0 { BudgetVerdict::Broken } else { gravest.unwrap_or(BudgetVerdict::Open) };
    // Each recording is a trial of every chain that has limits.
    let of_chain =
        |limit: &Budget| trials.iter().filter(|trial| trial.void.is_none() && trial.chain == limit.chain).count();
    let trials = limits.iter().map(of_chain).max().unwrap_or(0);
    Ok(Budgeted { verdict, findings, trials, fewest, failures })
}

/// A limit on a quantile is one on the share of messages beyond it.
fn allowed(limit: &Budget) -> Option<f64> {
    match limit.figure {
        BudgetFigure::Missed | BudgetFigure::Dropped => Some(limit.limit),
        BudgetFigure::Time(_, statistic) => statistic.beyond(),
    }
}

/// Decides by the messages of few trials.
fn by_messages(mut found: BudgetFinding, trials: &[&Trial], alpha: f64) -> BudgetFinding {
    let Some(allowed) = allowed(&found.budget) else { return found };
    let beyond = |trial: &&Trial| Some(trial.beyond.iter().find(|(limit, _)| *limit == found.budget)?.1);
    let sides: Option<Vec<[Bursts; 2]>> = trials.iter().map(beyond).collect();
    let Some(sides) = sides.filter(|sides| !sides.is_empty()) else { return found };
    let both = sides.into_iter().reduce(|[one, own], [other, others_own]| [one.and(other), own.and(others_own)]);
    let Some([all, own]) = both else { return found };
    let is_over = |bursts: Bursts| {
        let (low, high) = bursts.bounds(alpha);
        (low > allowed).then_some(true).or((high <= allowed).then_some(false))
    };
    found.verdict = match (is_over(all), is_over(own)) {
        (Some(false), _) => BudgetVerdict::Kept,
        (Some(true), Some(true)) => BudgetVerdict::Broken,
        (Some(true), Some(false)) => BudgetVerdict::BrokenByMachine,
        _ => BudgetVerdict::Open,
    };
    let (low, high) = all.bounds(alpha);
    found.beyond = Some(Beyond { bursts: all, allowed, share: Interval { low, high, confidence: 1.0 - 2.0 * alpha } });
    found
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
    Ok(BudgetFinding { budget: limit.clone(), verdict, typical, own, beyond: None })
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
        (0..n).map(|at| Trial { chain: "arm".into(), name: at.to_string(), way: way(at), ..Trial::default() }).collect()
    }

    fn verdict(trials: &[Trial]) -> BudgetVerdict {
        let figure = BudgetFigure::Time(Side::Total, Statistic::P99);
        let limit = Budget { chain: "arm".into(), hop: None, figure, limit: 2e6 };
        budgets(&[limit], trials, 1).unwrap().verdict
    }

    #[test]
    fn each_verdict_from_trials_that_deserve_it() {
        assert_eq!(verdict(&trials(1e6, 1e6, 10)), BudgetVerdict::Kept);
        assert_eq!(verdict(&trials(3e6, 2.5e6, 10)), BudgetVerdict::Broken);
        assert_eq!(verdict(&trials(3e6, 1e6, 10)), BudgetVerdict::BrokenByMachine);
        assert_eq!(verdict(&trials(1e6, 1e6, 3)), BudgetVerdict::Open);
        assert_eq!(verdict(&trials(1.995e6, 1e6, 10)), BudgetVerdict::Open);
        assert_eq!(verdict(&vec![Trial { chain: "arm".into(), ..Trial::default() }; 10]), BudgetVerdict::Silent);
    }

    #[test]
    fn a_hop_that_is_not_there_is_refused() {
        let budget = Budget {
            chain: String::new(),
            hop: Some("a → b".into()),
            figure: BudgetFigure::Time(Side::Own, Statistic::P50),
            limit: 1.0,
        };
        assert!(matches!(budgets(&[budget], &[Trial::default()], 1), Err(Error::NoHop { .. })));
    }

    /// One recording of 4,950 messages of which 676 are late, in so many bursts, with a limit of 1 %.
    fn late(bursts: u64) -> BudgetFinding {
        let limit = Budget { chain: "arm".into(), hop: None, figure: BudgetFigure::Missed, limit: 0.01 };
        let (apart, length) = (4950 / bursts, 676 / bursts);
        let of = Bursts::of((0..4950).map(|at| at % apart < length));
        let beyond = vec![(limit.clone(), [of, of])];
        let trial = Trial { chain: "arm".into(), missed: Some(of.share()), beyond, ..Trial::default() };
        budgets(&[limit], &[trial], 1).unwrap().findings.remove(0)
    }

    #[test]
    fn one_long_recording_breaks_a_limit_where_its_bursts_are_enough() {
        assert_eq!(late(100).verdict, BudgetVerdict::Broken);
        let one_stall = late(1);
        assert_eq!(one_stall.verdict, BudgetVerdict::Open);
        assert_eq!(one_stall.beyond.unwrap().bursts.bursts, 1);
    }

    #[test]
    fn each_chain_is_held_against_its_own_limits() {
        let figure = BudgetFigure::Time(Side::Total, Statistic::P99);
        let limit = |chain: &str, limit| Budget { chain: chain.into(), hop: None, figure, limit };
        let fast = trials(1e6, 1e6, 12);
        let slow = trials(3e6, 3e6, 12).into_iter().map(|trial| Trial { chain: "base".into(), ..trial });
        let all: Vec<Trial> = fast.into_iter().chain(slow).collect();
        let found = budgets(&[limit("arm", 2e6), limit("base", 2e6)], &all, 1).unwrap();
        assert_eq!(
            found.findings.iter().map(|f| f.verdict).collect::<Vec<_>>(),
            [BudgetVerdict::Kept, BudgetVerdict::Broken]
        );
        assert_eq!((found.verdict, found.trials), (BudgetVerdict::Broken, 12));
    }

    #[test]
    fn a_run_that_failed_breaks_the_limits() {
        let failure = crate::Failure { how: "signal 6 (SIGABRT)".into(), said: Vec::new() };
        let mut all = trials(1e6, 1e6, 12);
        all.push(Trial::failed("13", failure));
        let limit = Budget {
            chain: "arm".into(),
            hop: None,
            figure: BudgetFigure::Time(Side::Total, Statistic::P99),
            limit: 2e6,
        };
        let found = budgets(&[limit], &all, 1).unwrap();
        assert_eq!(
            (found.verdict, found.findings[0].verdict, found.failures.failed),
            (BudgetVerdict::Broken, BudgetVerdict::Kept, 1)
        );
    }
}
