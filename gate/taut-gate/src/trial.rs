//! One recording as a trial: what is kept of it for comparison. Small enough to be stored for years.

use serde::{Deserialize, Serialize};
use signal_hook::{consts::SIGKILL, low_level::signal_name};
use taut_analysis::{Analysis, Cause, Chain, LOST_MAX, Sides, main_chain, probe_chain};
use taut_stats::Bursts;

use crate::{Error, Limit, LimitFigure, Plot, Side, Times, TrialFigures};

/// So many first messages are the start-up.
const FIRST: usize = 10;
/// Wakes of the probe later than this are stalls of the machine.
const STALL_NS: u64 = 2_000_000;

/// What is wanted of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialOptions {
    /// The chain to judge; the one with the most messages if none is named.
    pub chain: Option<String>,
    /// Messages beyond these are counted, as far as they limit the chain.
    pub limits: Vec<Limit>,
    /// A machine that stalled for a larger share of the trial makes it void; see [`Beside::stalled`].
    pub stalled_max: f64,
}

impl Default for TrialOptions {
    fn default() -> TrialOptions {
        // A machine that stands still for a twentieth of the time makes a fiftieth of the messages slow: more than the tail that is
        // looked for.
        TrialOptions { chain: None, limits: Vec::new(), stalled_max: 0.05 }
    }
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The recording's name.
    pub name: String,
    /// `git describe` where it ran; empty outside a repository.
    pub revision: String,
    /// The machine.
    pub host: Host,
    /// When it began, seconds since 1970.
    pub started_unix_s: f64,
    /// From the first to the last record.
    pub duration_s: f64,
    /// When its first message began, from the first record on.
    #[serde(default)]
    pub first_s: f64,
    /// The same of whichever chain began first, the probe's apart: a run's duration counts from about there.
    #[serde(default)]
    pub begun_s: f64,
    /// When its last message began.
    #[serde(default)]
    pub last_s: f64,
    /// The longest time from the begin of a message to that of the next.
    #[serde(default)]
    pub silence_s: f64,
    /// From the first to the last message at the chain's first point, dropped ones included.
    #[serde(default)]
    pub active_s: f64,
    /// It was ended from outside, by the end of `--duration` or a signal to the recorder; else it ended by itself. `None`: not known.
    #[serde(default)]
    pub is_stopped: Option<bool>,
    /// It did not end when it was asked to (SIGTERM), and was killed.
    #[serde(default)]
    pub is_killed: bool,
    /// How the kernel was seen: "full", "self", "stamps".
    pub tier: String,
    /// The chain.
    pub chain: String,
    /// Its points in order.
    pub points: Vec<String>,
    /// Its deadline, end to end.
    pub deadline_ns: Option<u64>,
    /// Messages that went all the way, start-up apart.
    pub messages: u64,
    /// Of them, the share over the deadline; `None` without one.
    pub missed: Option<f64>,
    /// Of them, the share that would be over it without the machine's part.
    pub missed_own: Option<f64>,
    /// The first messages, by what the program did; the other figures leave them out where they are slower than all that follow.
    #[serde(default)]
    pub startup: Option<Startup>,
    /// Of all messages that ended, the share that was dropped or lost on the way.
    pub dropped: f64,
    /// From the first to the last point.
    pub way: Times,
    /// Hop by hop.
    pub hops: Vec<HopTimes>,
    /// Share of the time with an unknown cause; it counts as the program's own.
    pub unknown: f64,
    /// True where nothing tells the program's time from the machine's.
    pub is_blind: bool,
    /// The probe that ran beside the program.
    pub beside: Option<Beside>,
    /// Distribution of the whole way.
    pub plot_total: Plot,
    /// The same less the machine's part.
    pub plot_own: Plot,
    /// For each wanted limit that can be held against single messages: those beyond it by all of their time, and by the program's own.
    #[serde(skip)]
    pub beyond: Vec<(Limit, [Bursts; 2])>,
    /// Why this trial says nothing.
    pub void: Option<Void>,
}

/// The first messages of a trial that went all the way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Startup {
    /// How many.
    pub messages: usize,
    /// The own time of the slowest of them, end to end. `None`: not known of trials that were stored before it was.
    #[serde(default)]
    pub slowest_own_ns: Option<u64>,
    /// Of them, the share that would be over the deadline without the machine's part; `None` without a deadline.
    #[serde(default)]
    pub missed_own: Option<f64>,
}

/// A hop's figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HopTimes {
    /// Point it starts at.
    pub from: String,
    /// Point it ends at.
    pub to: String,
    /// Its times.
    pub times: Times,
    /// Mean time a message by cause, most first.
    pub spent: Vec<Spent>,
}

/// Mean time a message spent on one cause in one hop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// The cause's word.
    pub cause: String,
    /// Whether it is the machine's doing.
    pub is_machine: bool,
    /// Over all messages.
    pub mean_ns: f64,
}

/// Where a trial ran, as far as it must be the same for all trials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// `uname -r -v -m`.
    pub kernel: String,
    /// CPU model.
    pub cpu: String,
    /// Online CPUs.
    pub cpus: u32,
}

/// What the probe beside the program says of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// How late its wakes were.
    pub late: TrialFigures,
    /// Share of the time in which it waited for a wake that was over 2 ms late, less what a CPU quota kept from it.
    pub stalled: f64,
}

/// Why a trial says nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Void {
    /// Stamps were lost.
    #[error("{lost} of {all} stamps were lost")]
    LostStamps {
        /// Lost.
        lost: u64,
        /// Stamped.
        all: u64,
    },
    /// Kernel events were lost.
    #[error("{lost} of {all} kernel events were lost")]
    LostKernelEvents {
        /// Lost.
        lost: u64,
        /// Seen and lost.
        all: u64,
    },
    /// The recording is damaged.
    #[error("the recording is damaged: {what}")]
    Damaged {
        /// The first damage.
        what: String,
    },
    /// The machine stalled.
    #[error("the machine stalled for {:.0} % of the trial, by the probe beside it", stalled * 100.0)]
    Stalled {
        /// Share of the time.
        stalled: f64,
    },
    /// The recorder failed, and not the program.
    #[error("it could not be recorded: {what}")]
    NotRecorded {
        /// What the recorder said.
        what: String,
    },
    /// The end came before any of its messages had gone all the way. Of a short run a stall of the machine explains it; in a longer one the
    /// program hung, and it has failed.
    #[error("none of its messages went all the way that those of the other runs go")]
    Unfinished,
    /// The program failed: evidence against its side, see [`Failures`](crate::Failures).
    #[error("the command failed: {failure}")]
    Failed {
        /// How.
        failure: Failure,
    },
}

/// How a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// "exit code 3", "signal 6 (SIGABRT)", "still running after 32 s".
    pub how: String,
    /// The last lines of its output.
    pub said: Vec<String>,
}

impl Failure {
    /// By the exit code of a command, 128 and more for a signal.
    pub fn by_code(code: i32, said: Vec<String>) -> Failure {
        let how = match code {
            129.. => {
                let name = signal_name(code - 128).map_or(String::new(), |name| format!(" ({name})"));
                format!("signal {}{name}", code - 128)
            }
            _ => format!("exit code {code}"),
        };
        Failure { how, said }
    }

    /// The shell's words for a command that it could not start: a slip of whoever wrote it, not of the program.
    pub fn is_not_found(&self) -> bool {
        matches!(self.how.as_str(), "exit code 126" | "exit code 127")
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.how)?;
        self.said.last().map_or(Ok(()), |line| write!(f, ": {line}"))
    }
}

impl Trial {
    /// A run that failed. What it recorded before is left out: it did not do the same work.
    pub fn failed(name: &str, failure: Failure) -> Trial {
        Trial { name: name.to_owned(), void: Some(Void::Failed { failure }), ..Trial::default() }
    }

    /// Whether its chain is known: not of a run that failed, that could not be recorded, or that ended too soon.
    pub fn was_read(&self) -> bool {
        !matches!(self.void, Some(Void::Failed { .. } | Void::NotRecorded { .. } | Void::Unfinished))
            && !self.points.is_empty()
    }

    /// How its run failed, if it did.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.void {
            Some(Void::Failed { failure }) => Some(failure),
            _ => None,
        }
    }

    /// The trial that a recording is. The analysis must have been asked for sides (`taut_analysis::ExplainOptions::sides`).
    pub fn of(name: &str, analysis: &Analysis, wanted: &TrialOptions) -> Result<Trial, Error> {
        let run = Trial::without(name, analysis, wanted);
        let chain = chosen(name, analysis, wanted)?;
        let nothing = Sides::default();
        let sides = chain.explained.sides.as_ref().unwrap_or(&nothing);
        let rows: Vec<&[taut_analysis::Spent]> = sides.messages().collect();
        let n = rows.len();
        let way = |of: fn(&taut_analysis::Spent) -> u64| -> Vec<u64> {
            rows.iter().map(|row| row.iter().map(of).sum()).collect()
        };
        let (total, own) = (sides.totals_ns(), way(|s| s.total_ns - s.machine_ns));
        let outcomes = &chain.outcomes;
        let lost = outcomes.all_dropped() + outcomes.unexplained;
        let ended = outcomes.applied + outcomes.ended_early + lost;
        let over = |times: &[u64]| {
            let deadline = chain.deadline_ns?;
            Some(times.iter().filter(|ns| **ns > deadline).count() as f64 / n.max(1) as f64)
        };
        let all_ns: u64 = total.iter().sum();
        Ok(Trial {
            first_s: first_s(chain),
            begun_s: chains(analysis)
                .filter(|chain| !chain.series.is_empty())
                .map(first_s)
                .fold(first_s(chain), f64::min),
            last_s: chain.series.last().map_or(0.0, |(at, _)| *at as f64 / 1e9),
            silence_s: chain.series.windows(2).map(|two| two[1].0.saturating_sub(two[0].0)).max().unwrap_or(0) as f64
                / 1e9,
            active_s: active_s(chain),
            chain: chain.name.clone(),
            points: chain.points.iter().map(|point| point.name.clone()).collect(),
            deadline_ns: chain.deadline_ns,
            messages: n as u64,
            missed: over(&total),
            missed_own: over(&own),
            startup: startup(sides, &own, chain.deadline_ns),
            dropped: lost as f64 / ended.max(1) as f64,
            way: Times {
                total: TrialFigures::of(&total),
                own: TrialFigures::of(&own),
                work: TrialFigures::of(&way(|s| s.work_ns)),
                machine: TrialFigures::of(&way(|s| s.machine_ns)),
            },
            hops: (0..chain.hops.len().min(sides.hops)).map(|at| hop(chain, sides, &rows, at)).collect(),
            unknown: sides.unknown_ns as f64 / all_ns.max(1) as f64,
            is_blind: sides.is_blind,
            beyond: wanted
                .limits
                .iter()
                .filter_map(|limit| Some((limit.clone(), beyond(chain, sides, limit)?)))
                .collect(),
            void: void(analysis, run.beside.as_ref(), wanted),
            plot_total: Plot::of(&total),
            plot_own: Plot::of(&own),
            ..run
        })
    }

    /// What a run counts as of which no message went all the way; its chain is the wanted one.
    pub fn without(name: &str, analysis: &Analysis, wanted: &TrialOptions) -> Trial {
        let info = &analysis.info;
        let beside = probe_chain(analysis).map(|probe| beside(probe, analysis.totals.duration_s));
        let is_stopped = analysis.ending.as_ref().map(|ending| is_stopped(&ending.reason));
        let unfinished = match is_stopped {
            // No stall makes a program end by itself before its work is done.
            Some(false) => {
                let how = "it ended by itself, and none of its messages had gone all the way".to_owned();
                Void::Failed { failure: Failure { how, said: Vec::new() } }
            }
            _ => Void::Unfinished,
        };
        Trial {
            name: name.to_owned(),
            revision: info.git_revision.clone(),
            host: Host { name: info.host.clone(), kernel: info.kernel.clone(), cpu: info.cpu.clone(), cpus: info.cpus },
            started_unix_s: info.start_realtime_ns as f64 / 1e9,
            duration_s: analysis.totals.duration_s,
            is_stopped,
            is_killed: is_stopped == Some(true)
                && analysis.ending.as_ref().is_some_and(|ending| ending.exit_code == Some(128 + SIGKILL)),
            tier: info.tier.word().to_owned(),
            chain: wanted.chain.clone().unwrap_or_default(),
            void: void(analysis, beside.as_ref(), wanted).or(Some(unfinished)),
            beside,
            ..Trial::default()
        }
    }

    /// The points that the messages of both pass, in their order: the longest common subsequence.
    pub fn points_of_both(&self, other: &Trial) -> Vec<String> {
        let (a, b) = (&self.points, &other.points);
        // Of the rest of either from there on.
        let mut longest = vec![vec![0; b.len() + 1]; a.len() + 1];
        for (at, of) in (0..a.len()).rev().flat_map(|at| (0..b.len()).rev().map(move |of| (at, of))) {
            longest[at][of] =
                if a[at] == b[of] { longest[at + 1][of + 1] + 1 } else { longest[at + 1][of].max(longest[at][of + 1]) };
        }
        let (mut at, mut of, mut points) = (0, 0, Vec::new());
        while at < a.len() && of < b.len() {
            if a[at] == b[of] {
                points.push(a[at].clone());
                (at, of) = (at + 1, of + 1);
            } else if longest[at + 1][of] >= longest[at][of + 1] {
                at += 1;
            } else {
                of += 1;
            }
        }
        points
    }

    /// Whether its messages pass points of the other's chain only, and fewer: it may have ended before they passed the rest.
    pub(crate) fn is_part_of(&self, other: &Trial) -> bool {
        self.points.len() < other.points.len() && self.points_of_both(other).len() == self.points.len()
    }
}

/// All but the probe's.
fn chains(analysis: &Analysis) -> impl Iterator<Item = &Chain> + Clone {
    let probe = probe_chain(analysis).map(|chain| &chain.name);
    analysis.chains.iter().filter(move |chain| Some(&chain.name) != probe)
}

fn first_s(chain: &Chain) -> f64 {
    chain.series.first().map_or(0.0, |(at, _)| *at as f64 / 1e9)
}

fn chosen<'a>(name: &str, analysis: &'a Analysis, wanted: &TrialOptions) -> Result<&'a Chain, Error> {
    let chains = chains(analysis);
    match &wanted.chain {
        Some(word) => chains.clone().find(|chain| chain.name == *word).ok_or_else(|| Error::NoChain {
            recording: name.to_owned(),
            chain: word.clone(),
            known: chains.map(|chain| format!("{:?}", chain.name)).collect::<Vec<_>>().join(", "),
        }),
        None => main_chain(analysis).ok_or_else(|| Error::Empty { recording: name.to_owned() }),
    }
}

/// Messages beyond a limit; `None` where it is another chain's, or of what has no time.
fn beyond(chain: &Chain, sides: &Sides, limit: &Limit) -> Option<[Bursts; 2]> {
    let (side, most_ns) = match limit.figure {
        LimitFigure::Missed => (Side::Total, chain.deadline_ns? as f64),
        LimitFigure::Time(side, statistic) => {
            statistic.beyond()?;
            (side, limit.value)
        }
        LimitFigure::Dropped => return None,
    };
    let hops = match &limit.hop {
        None => 0..sides.hops,
        Some(name) => {
            let at = chain.hops.iter().position(|hop| format!("{} → {}", hop.from, hop.to) == *name)?;
            at..at + 1
        }
    };
    if chain.name != limit.chain || sides.hops == 0 {
        return None;
    }
    let rows = || sides.messages().map(|row| &row[hops.clone()]);
    let count = |of: fn(&taut_analysis::Spent) -> u64| {
        Bursts::of(rows().map(|row| row.iter().map(of).sum::<u64>() as f64 > most_ns))
    };
    let own = |spent: &taut_analysis::Spent| spent.total_ns - spent.machine_ns;
    Some(match side {
        Side::Total => [count(|spent| spent.total_ns), count(own)],
        Side::Own => [count(own); 2],
        Side::Work => [count(|spent| spent.work_ns); 2],
        Side::Machine => [count(|spent| spent.machine_ns); 2],
    })
}

/// `own_ns`: of the messages after those that were set apart.
fn startup(sides: &Sides, own_ns: &[u64], deadline_ns: Option<u64>) -> Option<Startup> {
    let apart = sides.startup.iter().map(|way| way.total_ns - way.machine_ns);
    let first: Vec<u64> = apart.chain(own_ns.iter().copied()).take(FIRST).collect();
    let late = |deadline: u64| first.iter().filter(|own| **own > deadline).count() as f64 / first.len() as f64;
    let slowest_own_ns = Some(*first.iter().max()?);
    Some(Startup { messages: first.len(), slowest_own_ns, missed_own: deadline_ns.map(late) })
}

fn hop(chain: &Chain, sides: &Sides, rows: &[&[taut_analysis::Spent]], at: usize) -> HopTimes {
    // A message that did not pass the hop's points spent nothing in it, and is not of its distribution.
    let through: Vec<&taut_analysis::Spent> = rows.iter().map(|row| &row[at]).filter(|s| s.total_ns > 0).collect();
    let times = |of: fn(&taut_analysis::Spent) -> u64| {
        TrialFigures::of(&through.iter().map(|spent| of(spent)).collect::<Vec<u64>>())
    };
    let mean = |share: &taut_analysis::SideShare| Spent {
        cause: share.cause.word().to_owned(),
        is_machine: share.is_machine,
        mean_ns: share.time_ns as f64 / rows.len().max(1) as f64,
    };
    HopTimes {
        from: chain.hops[at].from.clone(),
        to: chain.hops[at].to.clone(),
        times: Times {
            total: times(|s| s.total_ns),
            own: times(|s| s.total_ns - s.machine_ns),
            work: times(|s| s.work_ns),
            machine: times(|s| s.machine_ns),
        },
        spent: sides.shares.iter().filter(|share| share.hop == at).map(mean).collect(),
    }
}

fn beside(probe: &Chain, duration_s: f64) -> Beside {
    let wakes = wakes(probe);
    let late: Vec<u64> = wakes.iter().map(|(_, late)| *late).collect();
    // Stalls that several CPUs met at once count once.
    let mut stalls: Vec<(u64, u64)> =
        wakes.iter().filter(|(_, late)| *late >= STALL_NS).map(|(at, late)| (*at, at + late)).collect();
    stalls.sort_unstable();
    let (mut stalled_ns, mut until) = (0, 0);
    for (from, to) in stalls {
        stalled_ns += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    Beside { late: TrialFigures::of(&late), stalled: stalled_ns as f64 / 1e9 / duration_s.max(1e-9) }
}

/// When the probe's wakes were due, and how late they were. It may share the program's CPU quota: what that kept from it is no more the
/// machine's doing than what it kept from the program.
fn wakes(probe: &Chain) -> Vec<(u64, u64)> {
    let is_held = |sides: &&Sides| sides.shares.iter().any(|share| share.cause == Cause::Throttled);
    let Some(sides) = probe.explained.sides.as_ref().filter(is_held) else { return probe.series.clone() };
    let late = |hops: &[taut_analysis::Spent]| -> u64 {
        let total_ns: u64 = hops.iter().map(|hop| hop.total_ns).sum();
        let held_ns: u64 = hops.iter().map(|hop| hop.total_ns - hop.machine_ns - hop.work_ns).sum();
        // Timer slack and the like are shorter, and stay.
        if held_ns >= STALL_NS { total_ns - held_ns } else { total_ns }
    };
    sides.start_ns.iter().copied().zip(sides.messages().map(late)).collect()
}

fn active_s(chain: &Chain) -> f64 {
    let first = chain.points.first();
    first.and_then(|point| Some(point.messages.saturating_sub(1) as f64 / point.rate_hz?)).unwrap_or(0.0)
}

fn is_stopped(reason: &str) -> bool {
    matches!(reason, "duration" | "signal")
}

/// How the recorded command failed, if it did: as `taut record` says it by its own exit code.
fn failure(analysis: &Analysis) -> Option<Failure> {
    let ending = analysis.ending.as_ref()?;
    let code = ending.exit_code.filter(|code| *code != 0)?;
    // Ended from outside: SIGTERM, and SIGKILL after that; or by what was sent to the recorder, as Ctrl-C.
    let is_sent = match ending.reason.as_str() {
        "duration" => matches!(code, 137 | 143),
        "signal" => matches!(code, 129 | 130 | 131 | 137 | 143),
        _ => false,
    };
    (!is_sent).then(|| Failure::by_code(code, Vec::new()))
}

fn void(analysis: &Analysis, beside: Option<&Beside>, wanted: &TrialOptions) -> Option<Void> {
    if let Some(failure) = failure(analysis) {
        return Some(Void::Failed { failure });
    }
    if analysis.ending.is_none() {
        return Some(Void::NotRecorded { what: "the recorder was killed".into() });
    }
    let totals = &analysis.totals;
    let lost = totals.lost_stamps + totals.lost_ros_events;
    let all = lost + totals.stamps + totals.ros_events;
    // How much a file held that could not be opened nobody knows.
    let is_estimate = totals.lost_stamps_is_estimate || totals.lost_ros_events_is_estimate;
    if lost as f64 > LOST_MAX * all as f64 || is_estimate {
        return Some(Void::LostStamps { lost, all });
    }
    let (lost, all) = (totals.lost_kernel_events, totals.lost_kernel_events + totals.kernel_events);
    if lost as f64 > LOST_MAX * all as f64 || totals.lost_kernel_events_is_estimate {
        return Some(Void::LostKernelEvents { lost, all });
    }
    if let Some(what) = analysis.damage.first() {
        return Some(Void::Damaged { what: what.clone() });
    }
    beside.filter(|b| b.stalled > wanted.stalled_max).map(|b| Void::Stalled { stalled: b.stalled })
}

/// The word of a cause that a program may do something about: it is not the machine's.
pub(crate) fn is_wait_for_others(cause: &str) -> bool {
    matches!(Cause::from_word(cause), Some(Cause::Queued | Cause::Executor | Cause::Partner | Cause::Lock | Cause::Gil))
}

#[cfg(test)]
mod tests {
    use taut_analysis::{Explained, SideShare};

    use super::*;

    /// A hundred wakes in 2 s, of which each tenth is 8 ms late: so much of that because a quota was used up.
    fn probe(held_ns: u64) -> Chain {
        let is_late = |wake: u64| wake % 10 == 9;
        let late = |wake: u64| if is_late(wake) { 8_000_000 } else { 20_000 };
        let spent = |wake: u64| {
            let (total_ns, work_ns) = (late(wake), 5_000);
            let held_ns = if is_late(wake) { held_ns } else { 0 };
            taut_analysis::Spent { total_ns, machine_ns: total_ns - held_ns - work_ns, work_ns }
        };
        let share = SideShare { hop: 0, cause: Cause::Throttled, is_machine: false, time_ns: 10 * held_ns };
        let sides = Sides {
            hops: 1,
            start_ns: (0..100).map(|wake| wake * 20_000_000).collect(),
            spent: (0..100).map(spent).collect(),
            shares: Some(share).filter(|share| share.time_ns > 0).into_iter().collect(),
            ..Sides::default()
        };
        Chain {
            series: (0..100).map(|wake| (wake * 20_000_000, late(wake))).collect(),
            explained: Explained { sides: Some(sides), ..Explained::default() },
            ..Chain::default()
        }
    }

    #[test]
    fn what_a_quota_kept_from_the_probe_is_no_stall_of_the_machine() {
        let beside = |held_ns| beside(&probe(held_ns), 2.0);
        assert!((beside(0).stalled - 0.04).abs() < 1e-9, "{:?}", beside(0));
        assert_eq!(beside(7_900_000).stalled, 0.0);
        assert_eq!(beside(0).late.p50, beside(7_900_000).late.p50);
        // 3 ms of each are left to the machine.
        assert!((beside(5_000_000).stalled - 0.015).abs() < 1e-9, "{:?}", beside(5_000_000));
    }
}
