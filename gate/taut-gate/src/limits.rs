//! Trials against absolute limits: is the typical trial within them? Few long recordings are judged by the bursts of
//! messages beyond the limit.

use serde::Serialize;
use taut_stats::{
    Bursts,
    compare::{Interval, InvalidReason, Typical, fewest_trials, typical},
};

use crate::{Error, Limit, LimitFigure, Side, SideFailures, Subject, Trial, VoidTrial, early, gate::void_for};

/// Chance that any limit is called broken, or kept, wrongly, over all looks.
const ALPHA: f64 = 0.05;

/// Within its limit or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitResult {
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

/// What became of one limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitFinding {
    /// The limit.
    #[serde(flatten)]
    pub limit: Limit,
    /// Within it or not.
    pub verdict: LimitResult,
    /// The typical trial.
    pub typical: Option<Typical>,
    /// The typical trial without the machine's part, where the limit is on all of the time.
    pub own: Option<Typical>,
    /// Messages beyond the limit, where the trials are too few to speak for themselves.
    pub beyond: Option<Beyond>,
    /// Of a limit that is open: what most void trials are void for, where void ones are over a fifth.
    pub void: Option<InvalidReason>,
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
pub struct LimitsOutcome {
    /// The gravest: broken, open, broken by the machine, kept.
    pub verdict: LimitResult,
    /// One by one.
    pub findings: Vec<LimitFinding>,
    /// Sound trials.
    pub trials: usize,
    /// The fewest trials that can settle anything by their typical one.
    pub fewest: usize,
    /// Runs that failed: then the limits are broken.
    pub failures: SideFailures,
    /// Trials that said nothing.
    pub void: Vec<VoidTrial>,
}

/// Holds trials against limits, at one of `looks` looks; each trial against those of its chain.
///
/// The median over trials, with the order statistics around it (Thompson 1936). Where the trials are too few for that, the share of messages
/// beyond the limit, with bursts as units ([`Bursts::bounds`]). Errors are shared evenly by limits and looks (Bonferroni).
pub fn judge_limits(limits: &[Limit], trials: &[Trial], looks: usize) -> Result<LimitsOutcome, Error> {
    let trials = &early::marked(trials);
    let alpha = ALPHA / (limits.len().max(1) * looks.max(1)) as f64;
    let confidence = 1.0 - 2.0 * alpha;
    let fewest = fewest_trials(confidence);
    let of = |limit: &Limit| {
        let sound: Vec<&Trial> =
            trials.iter().filter(|trial| trial.void.is_none() && trial.chain == limit.chain).collect();
        let found = finding(limit, &sound, confidence)?;
        let is_open = |found: &LimitFinding| matches!(found.verdict, LimitResult::Open | LimitResult::Silent);
        let is_few = sound.len() < fewest && is_open(&found);
        let found = if is_few { by_messages(found, &sound, alpha) } else { found };
        let void = why_void(limit, trials).filter(|_| is_open(&found));
        Ok(LimitFinding { void, ..found })
    };
    let findings: Vec<LimitFinding> = limits.iter().map(of).collect::<Result<_, Error>>()?;
    let gravest = findings.iter().map(|finding| finding.verdict).max_by_key(|verdict| match verdict {
        LimitResult::Kept => 0,
        LimitResult::BrokenByMachine => 1,
        LimitResult::Open | LimitResult::Silent => 2,
        LimitResult::Broken => 3,
    });
    let failures = SideFailures::of(trials.iter());
    let mut void: Vec<VoidTrial> = Vec::new();
    for (trial, why) in trials.iter().filter_map(|trial| Some((trial.name.clone(), trial.void.clone()?))) {
        let of_run = VoidTrial { trial, why };
        if !void.contains(&of_run) {
            void.push(of_run);
        }
    }
    let verdict = if failures.failed > 0 { LimitResult::Broken } else { gravest.unwrap_or(LimitResult::Open) };
    // Each recording is a trial of every chain that has limits.
    let of_chain =
        |limit: &Limit| trials.iter().filter(|trial| trial.void.is_none() && trial.chain == limit.chain).count();
    let trials = limits.iter().map(of_chain).max().unwrap_or(0);
    Ok(LimitsOutcome { verdict, findings, trials, fewest, failures, void })
}

/// As of a gate's pairs. Of a run that failed, or that ended too soon, the chain is not known.
fn why_void(limit: &Limit, trials: &[Trial]) -> Option<InvalidReason> {
    let of_chain = || trials.iter().filter(move |trial| trial.chain == limit.chain || trial.chain.is_empty());
    let void = of_chain().filter(|trial| trial.void.is_some()).count();
    (void * 5 > of_chain().count()).then(|| void_for(of_chain().map(|trial| [trial])))
}

/// A limit on a quantile is one on the share of messages beyond it.
fn allowed(limit: &Limit) -> Option<f64> {
    match limit.figure {
        LimitFigure::Missed | LimitFigure::Dropped => Some(limit.value),
        LimitFigure::Time(_, statistic) => statistic.beyond(),
    }
}

/// Decides by the messages of few trials.
fn by_messages(mut found: LimitFinding, trials: &[&Trial], alpha: f64) -> LimitFinding {
    let Some(allowed) = allowed(&found.limit) else { return found };
    let beyond = |trial: &&Trial| Some(trial.beyond.iter().find(|(limit, _)| *limit == found.limit)?.1);
    let sides: Option<Vec<[Bursts; 2]>> = trials.iter().map(beyond).collect();
    let Some(sides) = sides.filter(|sides| !sides.is_empty()) else { return found };
    let both = sides.into_iter().reduce(|[one, own], [other, others_own]| [one.and(other), own.and(others_own)]);
    let Some([all, own]) = both else { return found };
    let is_over = |bursts: Bursts| {
        let (low, high) = bursts.bounds(alpha);
        (low > allowed).then_some(true).or((high <= allowed).then_some(false))
    };
    found.verdict = match (is_over(all), is_over(own)) {
        (Some(false), _) => LimitResult::Kept,
        (Some(true), Some(true)) => LimitResult::Broken,
        (Some(true), Some(false)) => LimitResult::BrokenByMachine,
        _ => LimitResult::Open,
    };
    let (low, high) = all.bounds(alpha);
    found.beyond = Some(Beyond { bursts: all, allowed, share: Interval { low, high, confidence: 1.0 - 2.0 * alpha } });
    found
}

fn finding(limit: &Limit, trials: &[&Trial], confidence: f64) -> Result<LimitFinding, Error> {
    let figures = |of: &dyn Fn(&Trial) -> Option<f64>| -> Option<Typical> {
        let carried: Vec<f64> = trials.iter().filter_map(|trial| of(trial)).collect();
        // As for pairs: a fifth may lack the figure.
        ((trials.len() - carried.len()) * 5 <= trials.len()).then(|| typical(&carried, confidence)).flatten()
    };
    let (typical, own) = match limit.figure {
        LimitFigure::Missed => (figures(&|t| t.missed), figures(&|t| t.missed_own)),
        LimitFigure::Dropped => (figures(&|t| t.dropped.into()), None),
        LimitFigure::Time(side, statistic) => {
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
            () if interval.low > limit.value => Some(true),
            () if interval.high <= limit.value => Some(false),
            () => None,
        }
    };
    let verdict = match typical.as_ref().map(side) {
        None => LimitResult::Silent,
        Some(Some(false)) => LimitResult::Kept,
        Some(None) => LimitResult::Open,
        Some(Some(true)) => match own.as_ref().map(side) {
            None | Some(Some(true)) => LimitResult::Broken,
            Some(Some(false)) => LimitResult::BrokenByMachine,
            Some(None) => LimitResult::Open,
        },
    };
    Ok(LimitFinding { limit: limit.clone(), verdict, typical, own, beyond: None, void: None })
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
    use crate::Statistic;
    use crate::{Times, TrialFigures, Void};

    fn trials(total_ns: f64, own_ns: f64, n: u32) -> Vec<Trial> {
        let figures =
            |ns: f64, at: u32| TrialFigures { p99: Some(ns * (1.0 + f64::from(at) / 1e3)), ..TrialFigures::default() };
        let way = |at| Times { total: figures(total_ns, at), own: figures(own_ns, at), ..Times::default() };
        (0..n).map(|at| Trial { chain: "arm".into(), name: at.to_string(), way: way(at), ..Trial::default() }).collect()
    }

    fn verdict(trials: &[Trial]) -> LimitResult {
        let figure = LimitFigure::Time(Side::Total, Statistic::P99);
        let limit = Limit { chain: "arm".into(), hop: None, figure, value: 2e6 };
        judge_limits(&[limit], trials, 1).unwrap().verdict
    }

    #[test]
    fn each_verdict_from_trials_that_deserve_it() {
        assert_eq!(verdict(&trials(1e6, 1e6, 10)), LimitResult::Kept);
        assert_eq!(verdict(&trials(3e6, 2.5e6, 10)), LimitResult::Broken);
        assert_eq!(verdict(&trials(3e6, 1e6, 10)), LimitResult::BrokenByMachine);
        assert_eq!(verdict(&trials(1e6, 1e6, 3)), LimitResult::Open);
        assert_eq!(verdict(&trials(1.995e6, 1e6, 10)), LimitResult::Open);
        assert_eq!(verdict(&vec![Trial { chain: "arm".into(), ..Trial::default() }; 10]), LimitResult::Silent);
    }

    #[test]
    fn a_hop_that_is_not_there_is_refused() {
        let limit = Limit {
            chain: String::new(),
            hop: Some("a → b".into()),
            figure: LimitFigure::Time(Side::Own, Statistic::P50),
            value: 1.0,
        };
        assert!(matches!(judge_limits(&[limit], &[Trial::default()], 1), Err(Error::NoHop { .. })));
    }

    /// One recording of 4,950 messages of which 676 are late, in so many bursts, with a limit of 1 %.
    fn late(bursts: u64) -> LimitFinding {
        let limit = Limit { chain: "arm".into(), hop: None, figure: LimitFigure::Missed, value: 0.01 };
        let (apart, length) = (4950 / bursts, 676 / bursts);
        let of = Bursts::of((0..4950).map(|at| at % apart < length));
        let beyond = vec![(limit.clone(), [of, of])];
        let trial = Trial { chain: "arm".into(), missed: Some(of.share()), beyond, ..Trial::default() };
        judge_limits(&[limit], &[trial], 1).unwrap().findings.remove(0)
    }

    #[test]
    fn one_long_recording_breaks_a_limit_where_its_bursts_are_enough() {
        assert_eq!(late(100).verdict, LimitResult::Broken);
        let one_stall = late(1);
        assert_eq!(one_stall.verdict, LimitResult::Open);
        assert_eq!(one_stall.beyond.unwrap().bursts.bursts, 1);
    }

    #[test]
    fn each_chain_is_held_against_its_own_limits() {
        let figure = LimitFigure::Time(Side::Total, Statistic::P99);
        let limit = |chain: &str, value| Limit { chain: chain.into(), hop: None, figure, value };
        let fast = trials(1e6, 1e6, 12);
        let slow = trials(3e6, 3e6, 12).into_iter().map(|trial| Trial { chain: "base".into(), ..trial });
        let all: Vec<Trial> = fast.into_iter().chain(slow).collect();
        let found = judge_limits(&[limit("arm", 2e6), limit("base", 2e6)], &all, 1).unwrap();
        assert_eq!(
            found.findings.iter().map(|f| f.verdict).collect::<Vec<_>>(),
            [LimitResult::Kept, LimitResult::Broken]
        );
        assert_eq!((found.verdict, found.trials), (LimitResult::Broken, 12));
    }

    #[test]
    fn what_most_trials_are_void_for_is_why_a_limit_is_open() {
        let figure = LimitFigure::Time(Side::Total, Statistic::P99);
        let limit = Limit { chain: "arm".into(), hop: None, figure, value: 2e6 };
        let of = |total_ns: f64, sound: u32, stalled: u32| {
            let mut all = trials(total_ns, total_ns, sound + stalled);
            all.iter_mut().skip(sound as usize).for_each(|trial| trial.void = Some(Void::Stalled { stalled: 0.3 }));
            let found = judge_limits(std::slice::from_ref(&limit), &all, 1).unwrap();
            assert_eq!((found.trials, found.void.len()), (sound as usize, stalled as usize));
            (found.verdict, found.findings[0].void)
        };
        let stalled = |void, pairs| Some(InvalidReason::Stalled { void, pairs });
        assert_eq!(of(1e6, 0, 8), (LimitResult::Silent, stalled(8, 8)));
        assert_eq!(of(1e6, 2, 1), (LimitResult::Open, stalled(1, 3)));
        assert_eq!(of(1.995e6, 10, 2), (LimitResult::Open, None), "so few are not the reason");
        assert_eq!(of(1e6, 10, 10), (LimitResult::Kept, None));
        let reason = stalled(8, 8).unwrap().of_trials();
        assert!(reason.starts_with("the machine stalled in 8 of 8 trials, by the probe") && !reason.contains("pairs"));
    }

    #[test]
    fn a_run_that_failed_breaks_the_limits() {
        let failure = crate::Failure { how: "signal 6 (SIGABRT)".into(), said: Vec::new() };
        let mut all = trials(1e6, 1e6, 12);
        all.push(Trial::failed("13", failure));
        let limit = Limit {
            chain: "arm".into(),
            hop: None,
            figure: LimitFigure::Time(Side::Total, Statistic::P99),
            value: 2e6,
        };
        let found = judge_limits(&[limit], &all, 1).unwrap();
        assert_eq!(
            (found.verdict, found.findings[0].verdict, found.failures.failed),
            (LimitResult::Broken, LimitResult::Kept, 1)
        );
    }
}
