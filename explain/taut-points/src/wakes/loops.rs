//! Which threads are loops, by what ends their main waits: a timer that keeps to a schedule, a sleep for a time, another
//! thread, or steady intervals of which nothing else is known.

use taut_timelines::Call;

use super::{
    found::Found,
    run::Run,
    schedule::{self, Part, middle, spread},
    timers,
    waits::Waker,
    worker::{self, Worker},
};
use crate::route::LoopEvidence;

/// Fewer activations are no loop, unless a timer keeps a schedule.
const LEAST: usize = 20;
/// So many of a loop's activations have what it is found by.
const MOST_SHARE: f64 = 0.8;
/// Where fewer than one of so many are a timer's, the others have that.
pub(super) const FEW: usize = 5;
/// So much of the time that a loop sleeps it sleeps for one length.
const SAME_SLEEPS: f64 = 0.6;
/// … and that many of the waits of a thread that waits for whole milliseconds.
const ALIKE_ROUNDED: f64 = 0.9;
/// A schedule is all that there is if it leaves out no more than one of so many moments.
const LEFT_OVER: usize = 10;
/// What a loop does between its sleeps may be that uneven: nine of ten periods to their median.
const MOST_UNEVEN: f64 = 20.0;
/// Sleeps of a loop are for one time, to within this share of it …
const SLEEP_STEADY: f64 = 0.02;
/// … or this: some programs compute the length, and that takes time.
const SLEEP_STEADY_NS: f64 = 20_000.0;
/// Sleeps for the rest of a period: from start to the next timer's moment it is that much steadier than how long they are.
const STEADIER: f64 = 0.7;
/// The middle four fifths of a loop's intervals lie within this share of their median.
const STEADY: f64 = 0.3;

/// Loops by a timer. A thread that several timers wake, each on its schedule, is as many loops, and so is one whose schedule changes.
pub(super) fn by_timer(worker: &mut Worker) -> Vec<Found> {
    let timed = timed(worker);
    let several = by_several_timers(worker);
    if several.len() > 1 {
        return several;
    }
    // One after the other.
    let modes = by_schedules(worker, &timed, schedule::modes);
    if modes.len() > 1 {
        return modes;
    }
    let scheduled = scheduled(worker, &timed);
    // All at once, as executors of callbacks do: they sleep until the next moment of any.
    let merged = || by_schedules(worker, &timed, |asked, _| schedule::merged(asked));
    // Moments that are not the schedule's may be another one's.
    if let Some((found, of_none)) = scheduled.clone().filter(|(_, of_none)| LEFT_OVER * of_none <= timed.len()) {
        let slow = if of_none >= schedule::LEAST { merged() } else { Vec::new() };
        let are_all = 2 * left_out(&slow, &timed) <= of_none;
        return if slow.len() > 1 && are_all { slow } else { vec![keeping(worker, found, &timed)] };
    }
    let merged = merged();
    if merged.len() > 1 {
        return merged;
    }
    let of_event_loop = if several.is_empty() || scheduled.is_some() { timers::of(worker) } else { several };
    let keeps_schedule = |found: &Found| found.evidence == LoopEvidence::AbsoluteTimer;
    if of_event_loop.len() > 1 || scheduled.is_none() && of_event_loop.iter().any(keeps_schedule) {
        return of_event_loop;
    }
    if let Some((found, _)) = scheduled {
        return vec![keeping(worker, found, &timed)];
    }
    let found = amid_sleeps(worker, &timed).or_else(|| asleep(worker, &timed));
    found.map_or(of_event_loop, |found| vec![found])
}

/// How many of these runs are of none of these loops.
fn left_out(found: &[Found], timed: &[usize]) -> usize {
    timed.iter().filter(|run| !found.iter().any(|found| found.runs.binary_search(run).is_ok())).count()
}

/// That schedule's loop with the runs whose moment was past when they came to wait for it.
fn keeping(worker: &mut Worker, mut found: Found, timed: &[usize]) -> Found {
    let is_its = |at: &usize| worker.runs[*at].waker == Waker::Past || timed.binary_search(at).is_ok();
    found.runs = (0..worker.runs.len()).filter(is_its).collect();
    found.skipped = worker.keep_schedule(&mut found.runs, found.period_ns);
    found
}

/// It keeps a schedule, and sleeps for other times in between: those sleeps are part of its activations.
fn amid_sleeps(worker: &mut Worker, timed: &[usize]) -> Option<Found> {
    // Elsewhere the other waits are for other work.
    if worker.site.kind() != Some(Call::Sleep) {
        return None;
    }
    let (asked, _) = moments(worker, timed);
    let Part { schedule, moments } = schedule::among(&asked)?;
    let its: Vec<usize> = moments.iter().map(|at| timed[*at]).collect();
    let first = *its.first()?;
    let is_its = |at: &usize| worker.runs[*at].waker == Waker::Past || its.binary_search(at).is_ok();
    let kept: Vec<usize> = (first..worker.runs.len()).filter(is_its).collect();
    worker.keep_only(&kept);
    let mut found = Found { runs: (0..worker.runs.len()).collect(), ..by_schedule(schedule) };
    found.skipped = worker.keep_schedule(&mut found.runs, found.period_ns);
    Some(found)
}

/// The worker's runs that a timer released.
fn timed(worker: &Worker) -> Vec<usize> {
    (0..worker.runs.len()).filter(|at| worker::timer(worker.runs[*at].waker).is_some()).collect()
}

/// Timers of descriptors, which keep their addresses. Several that fire while the thread is busy are served by one run.
fn by_several_timers(worker: &Worker) -> Vec<Found> {
    let mut addresses: Vec<u64> = worker.expiries.iter().map(|expiry| expiry.address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let of_timer = |address: u64| {
        let expiries = || worker.expiries.iter().filter(|expiry| expiry.address == address);
        let (asked, armed): (Vec<u64>, Vec<u64>) = expiries().map(|expiry| (expiry.asked_ns, expiry.armed_ns)).unzip();
        let fired: Vec<u64> = expiries().map(|expiry| expiry.at_ns).collect();
        let schedule = schedule::of(&asked, &armed, &fired)?;
        let (mut runs, mut releases) = (Vec::new(), Vec::new());
        for expiry in expiries() {
            let run = worker.runs.partition_point(|run| run.start_ns < expiry.at_ns);
            if run < worker.runs.len() && runs.last() != Some(&run) {
                runs.push(run);
                releases.push(expiry.asked_ns);
            }
        }
        Some(Found { runs, releases, ..by_schedule(schedule) }).filter(|found| !found.runs.is_empty())
    };
    let mut found: Vec<Found> = addresses.into_iter().filter_map(of_timer).collect();
    found.sort_by_key(|found| found.runs[0]);
    found
}

/// Loops of several schedules that the thread's moments keep, one after the other or all at once.
fn by_schedules(worker: &Worker, timed: &[usize], of: impl Fn(&[u64], &[u64]) -> Vec<Part>) -> Vec<Found> {
    let (asked, armed) = moments(worker, timed);
    let found = |part: Part| {
        let runs = part.moments.iter().map(|at| timed[*at]).collect();
        Found { runs, ..by_schedule(part.schedule) }
    };
    of(&asked, &armed).into_iter().map(found).collect()
}

/// The moments that the timers of these runs were set to, and when they were armed.
fn moments(worker: &Worker, timed: &[usize]) -> (Vec<u64>, Vec<u64>) {
    timed.iter().filter_map(|at| worker::timer(worker.runs[*at].waker)).unzip()
}

/// The schedule that the moments of these runs keep, and how many of them are none of it.
fn scheduled(worker: &Worker, runs: &[usize]) -> Option<(Found, usize)> {
    let (asked, armed) = moments(worker, runs);
    let started: Vec<u64> = runs.iter().map(|at| worker.runs[*at].start_ns).collect();
    let schedule = schedule::of(&asked, &armed, &started)?;
    let of_none = schedule::of_none(&asked, schedule.period_ns);
    Some((by_schedule(schedule), of_none))
}

fn by_schedule(schedule: schedule::Schedule) -> Found {
    let schedule::Schedule { period_ns, skipped } = schedule;
    Found { evidence: LoopEvidence::AbsoluteTimer, period_ns, skipped, runs: Vec::new(), releases: Vec::new() }
}

/// It sleeps for the same time again and again. Sleeps for other times are part of what it does in between.
fn asleep(worker: &mut Worker, timed: &[usize]) -> Option<Found> {
    if timed.len() < LEAST || (timed.len() as f64) < MOST_SHARE * worker.runs.len() as f64 {
        return None;
    }
    let length = |at: usize| {
        let (asked_ns, armed_ns) = worker::timer(worker.runs[at].waker)?;
        Some(asked_ns.saturating_sub(armed_ns) as f64)
    };
    let lengths: Vec<f64> = timed.iter().filter_map(|at| length(*at)).collect();
    if let Some(asked_ns) = rest_of_period(worker, timed, &lengths) {
        let period_ns = Intervals::of(&worker.runs, timed)?.median as u64;
        worker.keep_only(timed);
        let runs = (0..worker.runs.len()).collect();
        let evidence = LoopEvidence::RestOfPeriod { asked_ns };
        return Some(Found { evidence, period_ns, skipped: 0, runs, releases: Vec::new() });
    }
    let usual = main_length(lengths)?;
    let is_usual = |at: &usize| length(*at).is_some_and(|length| (length - usual).abs() <= tolerance(usual));
    // What a thread computes to wait for is alike, too, where it is rounded.
    let alike = timed.iter().filter(|at| is_usual(at)).count();
    if timers::are_rounded(worker) && (alike as f64) < ALIKE_ROUNDED * timed.len() as f64 {
        return None;
    }
    let steady: Vec<usize> = match Intervals::of(&worker.runs, timed)?.are_steady() {
        // Who sleeps shorter now and then, and starts as steadily, makes up for something.
        true => timed.to_vec(),
        false => timed.iter().copied().filter(is_usual).collect(),
    };
    let period = Intervals::of(&worker.runs, &steady).filter(|period| period.p90 <= MOST_UNEVEN * period.median)?;
    worker.keep_only(&steady);
    let evidence = LoopEvidence::RelativeTimer { asked_ns: usual as u64 };
    Some(Found {
        evidence,
        period_ns: period.median as u64,
        skipped: 0,
        runs: (0..worker.runs.len()).collect(),
        releases: Vec::new(),
    })
}

/// The time of which the thread sleeps for what is left since its start, as by `sleep(period - (now() - start))`: sleeps of these lengths.
fn rest_of_period(worker: &Worker, timed: &[usize], lengths: &[f64]) -> Option<u64> {
    let since_start = |at: &usize| {
        let before = worker.runs.get(at.checked_sub(1)?)?;
        Some(worker::timer(worker.runs[*at].waker)?.0.saturating_sub(before.start_ns) as f64)
    };
    let times: Vec<f64> = timed.iter().filter_map(since_start).collect();
    let usual = middle(&times);
    let steady = times.iter().filter(|time| (**time - usual).abs() <= tolerance(usual)).count();
    let is_one = steady as f64 >= MOST_SHARE * times.len() as f64 && spread(&times) < STEADIER * spread(lengths);
    is_one.then_some(usual as u64)
}

/// The length of the sleeps in which a thread sleeps most of its time, if most of them are of one length.
fn main_length(mut lengths: Vec<f64>) -> Option<f64> {
    lengths.sort_by(f64::total_cmp);
    let groups =
        lengths.chunk_by(|before, next| next - before <= tolerance(*before)).filter(|group| group.len() >= LEAST);
    let groups: Vec<(f64, &[f64])> = groups.map(|group| (group.iter().sum(), group)).collect();
    let all: f64 = groups.iter().map(|(sum, _)| sum).sum();
    let (sum, group) = groups.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let usual = middle(group);
    let steady = group.iter().filter(|length| (**length - usual).abs() <= tolerance(usual)).count();
    (sum >= SAME_SLEEPS * all && steady as f64 >= MOST_SHARE * group.len() as f64).then_some(usual)
}

/// Sleeps for one time differ by no more.
fn tolerance(length: f64) -> f64 {
    (SLEEP_STEADY * length).max(SLEEP_STEADY_NS.min(0.2 * length))
}

/// A loop by the intervals of its starts: one whose activations a thread causes, or nobody that is known. `is_driven` says whether
/// a run follows from a loop that has a timer: then it needs no steadiness of its own.
pub(super) fn by_intervals(worker: &Worker, is_driven: impl Fn(usize) -> bool) -> Option<Found> {
    let runs: Vec<usize> = (0..worker.runs.len()).collect();
    if runs.len() < LEAST || worker.site.kind() == Some(Call::Child) {
        return None;
    }
    let intervals = Intervals::of(&worker.runs, &runs)?;
    let half_spread = (intervals.p90 - intervals.p10) / 2.0;
    let is_steady = intervals.are_steady();
    let driven = runs.iter().filter(|at| is_driven(**at)).count() as f64;
    let is_driven = driven >= MOST_SHARE * runs.len() as f64;
    // Of bursts the median says nothing.
    let start_ns = |at: usize| worker.runs[at].start_ns;
    let mean = (start_ns(runs.len() - 1) - start_ns(0)) / (runs.len() as u64 - 1);
    let period_ns = if is_steady { intervals.median as u64 } else { mean };
    let evidence = match main_waker(worker) {
        Some((thread, activations)) => LoopEvidence::WokenBy { thread, activations },
        None => LoopEvidence::Guessed { error_ns: half_spread as u64 },
    };
    let is_loop = is_steady || is_driven && matches!(evidence, LoopEvidence::WokenBy { .. });
    is_loop.then_some(Found { evidence, period_ns, skipped: 0, runs, releases: Vec::new() })
}

/// Of a thread that others wake: which one does so most, and how often.
pub(super) fn main_waker(worker: &Worker) -> Option<(i32, u64)> {
    let mut wakers: Vec<(i32, u64)> = Vec::new();
    // Those that are left out for missing events count on neither side.
    let whole = worker.runs.iter().filter(|run| !run.is_lost);
    for run in whole.clone() {
        if let Waker::Thread { tid, .. } = run.waker {
            match wakers.iter_mut().find(|(known, _)| *known == tid) {
                Some((_, count)) => *count += 1,
                None => wakers.push((tid, 1)),
            }
        }
    }
    let woken: u64 = wakers.iter().map(|(_, count)| count).sum();
    let first = wakers.into_iter().max_by_key(|(tid, count)| (*count, std::cmp::Reverse(*tid)));
    first.filter(|_| woken as f64 >= MOST_SHARE * whole.count() as f64)
}

/// Times from one start to the next.
struct Intervals {
    median: f64,
    p10: f64,
    p90: f64,
}

impl Intervals {
    fn are_steady(&self) -> bool {
        self.p90 - self.p10 <= STEADY * self.median
    }

    fn of(runs: &[Run], some: &[usize]) -> Option<Intervals> {
        let start = |at: usize| runs[at].woken_ns.or(runs[at].release_ns).unwrap_or(runs[at].start_ns);
        let mut steps: Vec<f64> =
            some.windows(2).map(|pair| start(pair[1]).saturating_sub(start(pair[0])) as f64).collect();
        steps.sort_by(f64::total_cmp);
        let rank = |q: f64| steps.get(((q * steps.len() as f64) as usize).min(steps.len().saturating_sub(1))).copied();
        Some(Intervals { median: rank(0.5)?, p10: rank(0.1)?, p90: rank(0.9)? }).filter(|of| of.median > 0.0)
    }
}
