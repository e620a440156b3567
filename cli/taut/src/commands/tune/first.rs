//! The first recording: the command as it is, what its slowest messages wait for, how fast it is.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use taut_analysis::{Analysis, Cause, Chain, Loop, LoopFound, SourceKind, probe_chain};
use taut_gate::Void;
use taut_tune::{Checked, FirstRun, Plan, Seen, TailCause, Tuned};

use super::{
    Args,
    pace::{Other, Pace, START_S},
    trials::Trials,
};

/// The first look, from which the second one's length follows.
const LOOK: Duration = Duration::from_secs(3);
/// Messages that carry a p99 with some to spare.
const WANTED: f64 = 2_000.0;
/// Of the time, the share that the first recording may take.
const SHARE: f64 = 0.12;
/// Of the time that other threads took, those with less than this share are left alone.
const WEIGHTY: f64 = 0.1;
/// From this share of the excess on, a quota is a cause of the tail.
const THROTTLED: f64 = 0.05;
/// A loop that ran less often may have been none.
const ACTIVATIONS_MIN: u64 = 50;
/// A command that fails so often is no command to tune.
const FAILURES_MAX: usize = 3;

/// Nothing to tune was recorded.
#[derive(Debug, thiserror::Error)]
#[error(
    "no messages and no loop were recorded: let the command run for some seconds, stamp its messages, or run this as root (kernel events)"
)]
struct NoChain;

/// What is known of the command as it is.
pub struct First {
    pub analysis: Analysis,
    checked: Checked,
    /// Of the run's kernel events.
    seen: Seen,
    /// Threads of the recorder.
    recorder: BTreeSet<i32>,
    /// Index of the chain to tune.
    chain: usize,
    /// From the command's start to the end of its recording.
    pub took: Duration,
    /// To read and analyse it; this grows with its length.
    pub analysed: Duration,
    /// It ended by itself.
    pub is_over: bool,
}

impl First {
    /// Records the command once, and once more where the first was too short for a tail.
    pub fn record(trials: &mut Trials, args: &Args) -> Result<First> {
        let length = args.duration.unwrap_or(LOOK).max(LOOK);
        trials.count_from_start(true);
        let first = match First::once(trials, args, length) {
            // Perhaps it takes longer to start.
            Err(error) if error.downcast_ref::<NoChain>().is_some() => {
                trials.count_from_start(false);
                First::once(trials, args, length)?
            }
            first => first?,
        };
        trials.count_from_start(first.pace().is_from_start);
        let chain = first.chain();
        let span_s = first.span_s();
        let per_s = chain.messages as f64 / span_s.max(1e-3);
        // A second of it takes one to record and some to analyse.
        let each_s = 1.0 + first.analysed.as_secs_f64() / first.took.as_secs_f64().max(0.1);
        let longest_s = args.max_time.as_secs_f64() * SHARE / each_s;
        let wanted_s = (WANTED / per_s.max(1e-3)).min(longest_s);
        if first.is_over || (chain.messages as f64) >= WANTED || wanted_s <= span_s * 1.2 {
            return Ok(first);
        }
        let start_s = (first.took.as_secs_f64() - span_s).max(0.0);
        First::once(trials, args, Duration::from_secs_f64(wanted_s + start_s.min(START_S)))
    }

    fn once(trials: &mut Trials, args: &Args, length: Duration) -> Result<First> {
        let command = trials.words();
        for failures in 1.. {
            let began = Instant::now();
            let ran = trials.record(&Plan::default(), Some(length))?;
            let took = began.elapsed();
            match ran.void {
                Some(Void::Failed { failure }) if failure.is_not_found() => {
                    bail!("{command}: not found or not executable; give a program behind --")
                }
                Some(void) if failures == FAILURES_MAX => bail!("{command}: {void}"),
                Some(_) => continue,
                None => {}
            }
            let (analysis, seen) = match trials.analyse() {
                Err(error) if matches!(error.downcast_ref(), Some(taut_analysis::Error::Empty { .. })) => {
                    bail!(NoChain)
                }
                read => read?,
            };
            let analysed = began.elapsed() - took;
            let recorder = seen.recorder(&analysis.info);
            let chain = chosen(&analysis, &recorder, args)?;
            let reason = analysis.ending.as_ref().map(|ending| ending.reason.clone());
            let is_over = !matches!(reason.as_deref(), Some("duration" | "signal") | None);
            return Ok(First { analysis, checked: ran.checked, seen, recorder, chain, took, analysed, is_over });
        }
        unreachable!("the last failure ends the loop")
    }

    /// The chain to tune.
    pub fn chain(&self) -> &Chain {
        &self.analysis.chains[self.chain]
    }

    /// From the first to the last message.
    fn span_s(&self) -> f64 {
        let series = &self.chain().series;
        let (first, last) = (series.first().map_or(0, |one| one.0), series.last().map_or(0, |one| one.0));
        last.saturating_sub(first) as f64 / 1e9
    }

    /// All chains but the one to tune and the machine's probe, and the timed loops that are part of no chain.
    fn others_to_protect(&self) -> Vec<Other> {
        let chains = self.analysis.chains.iter().enumerate();
        let chains = chains
            .filter(|(at, chain)| *at != self.chain && !is_ours(&self.analysis, &self.recorder, chain))
            .map(|(_, chain)| Other::Chain(chain.name.clone()));
        let is_other = |one: &&Loop| {
            let is_timed = match one.found {
                LoopFound::AbsoluteTimer | LoopFound::RelativeTimer { .. } | LoopFound::RestOfPeriod { .. } => true,
                LoopFound::WokenBy { .. } | LoopFound::Guessed { .. } => false,
            };
            let is_chain = one.chain.is_some() || self.analysis.chains.iter().any(|chain| chain.name == one.name);
            is_timed && !is_chain && one.activations >= ACTIVATIONS_MIN && !is_of(&self.recorder, &one.thread)
        };
        let loops = self.analysis.loops.iter().filter(is_other).map(|one| Other::Loop(one.name.clone()));
        chains.chain(loops).collect()
    }

    /// How fast it goes.
    pub fn pace(&self) -> Pace {
        let chain = self.chain();
        let threads = chain.points.iter().flat_map(|point| &point.threads);
        let is_throttled = |of: &taut_analysis::CauseShare| of.cause == Cause::Throttled && of.tail_share >= THROTTLED;
        Pace {
            chain: chain.name.clone(),
            names: threads.filter_map(|name| Some(name.rsplit_once('/')?.0.to_owned())).collect(),
            others: self.others_to_protect(),
            span_s: self.span_s(),
            messages: chain.messages,
            latencies_ns: chain.series.iter().map(|(_, latency_ns)| *latency_ns).collect(),
            took: self.took,
            analysed: self.analysed,
            is_throttled: chain.explained.by_cause.iter().any(is_throttled),
            is_from_start: chain.source == SourceKind::Wakes,
            is_over: self.is_over,
        }
    }

    /// Whether the recording does not show why the tail is late.
    pub fn is_unknown(&self) -> bool {
        taut_tune::is_unknown(&self.chain().explained)
    }

    /// What to say where there is no tail, and so no cause is known.
    pub fn too_few(&self, args: &Args) -> Option<String> {
        let chain = self.chain();
        let is_so = chain.explained.tail_messages == 0 && args.remedy.is_empty();
        let n = chain.end_to_end.distribution.n;
        is_so.then(|| format!("{n} messages in {:.0} s are too few for a tail, so no cause is known", self.span_s()))
    }

    /// What remedies follow from besides the causes.
    pub fn run(&self) -> FirstRun {
        FirstRun {
            own: self.own(),
            others: self.others(),
            has_own_policy: self.seen.has_own_policy(&self.checked),
            period_ns: self.period_ns(),
            interrupts_ns: self.seen.interrupts_ns().clone(),
        }
    }

    /// Names of the program's threads.
    fn own(&self) -> Vec<String> {
        let mut names: Vec<String> = self.checked.threads.values().cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    /// Threads that took a CPU from the chain's messages, "comm/tid".
    fn others(&self) -> Vec<String> {
        let took = |causes: &[Cause]| causes.iter().any(|cause| matches!(cause, Cause::Preempted | Cause::Wakeup));
        let parties = self.chain().explained.responsible.iter();
        let is_other = |party: &&taut_analysis::Party| {
            party.kind == "thread" && took(&party.causes) && !is_of(&self.recorder, &party.name)
        };
        let threads: Vec<_> = parties.filter(is_other).collect();
        let all_ns: u64 = threads.iter().map(|party| party.time_ns).sum();
        // What takes little is not worth a change.
        let weighty = threads.iter().filter(|party| party.time_ns as f64 >= WEIGHTY * all_ns as f64);
        weighty.map(|party| party.name.clone()).collect()
    }

    /// The period of the chain's loop, where it is one.
    fn period_ns(&self) -> Option<u64> {
        let chain = self.chain();
        let is_its = |one: &&Loop| one.name == chain.name || one.chain.as_ref() == Some(&chain.name);
        let of_loop = || self.analysis.loops.iter().find(is_its).map(|one| one.period_ns);
        chain.starts.as_ref().map(|starts| starts.period_ns).or_else(of_loop)
    }

    /// What the result says of it.
    pub fn described(&self, args: &Args) -> Tuned {
        let chain = self.chain();
        let causes = chain.explained.causes.iter().filter(|share| share.tail_share >= 0.01);
        let cause = |of: &taut_analysis::CauseShare| TailCause {
            cause: of.cause.word().to_owned(),
            detail: of.detail.clone(),
            tail_share: of.tail_share,
        };
        Tuned {
            command: args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            chain: chain.name.clone(),
            points: chain.points.iter().map(|point| point.name.clone()).collect(),
            deadline_ns: chain.deadline_ns,
            messages: chain.end_to_end.distribution.n,
            causes: causes.map(cause).collect(),
            is_restored: true,
            ..Tuned::default()
        }
    }
}

/// Whether a thread, "comm/tid", is one of these.
fn is_of(threads: &BTreeSet<i32>, name: &str) -> bool {
    let tid = name.rsplit_once('/').and_then(|(_, tid)| tid.parse().ok());
    tid.is_some_and(|tid: i32| threads.contains(&tid))
}

/// Whether it is the probe that runs beside the program: by its stamps, or by the wakes of the recorder's threads.
fn is_ours(analysis: &Analysis, recorder: &BTreeSet<i32>, chain: &Chain) -> bool {
    let mut threads = chain.points.iter().flat_map(|point| &point.threads).peekable();
    let is_probe = probe_chain(analysis).is_some_and(|probe| probe.name == chain.name);
    is_probe || threads.peek().is_some() && threads.all(|thread| is_of(recorder, thread))
}

/// Index of the chain to tune.
fn chosen(analysis: &Analysis, recorder: &BTreeSet<i32>, args: &Args) -> Result<usize> {
    let mut chains = analysis.chains.iter().enumerate().filter(|(_, chain)| !is_ours(analysis, recorder, chain));
    let known: Vec<&str> = chains.clone().map(|(_, chain)| chain.name.as_str()).collect();
    match &args.chain {
        Some(name) => match chains.find(|(_, chain)| chain.name == *name) {
            Some((at, _)) => Ok(at),
            None => bail!("--chain {name}: there is no such chain; the command has {}", known.join(", ")),
        },
        None => match chains.next() {
            Some((at, _)) => Ok(at),
            None => bail!(NoChain),
        },
    }
}
