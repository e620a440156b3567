//! A thread and its main wait: what it does from the end of one to the beginning of the next is a run.

use foldhash::HashMap;
use taut_recording::host_numbers::host_of;
use taut_timelines::{Call, Expiry, SAME_CLOCK_NS, Sequence, SystemCall, ThreadState, Timeline, Transfer};

use super::{
    backlogs,
    run::Run,
    schedule,
    waits::{self, Alike, Kernel, Site, TIMER_ABSTIME, Wait, Waker},
};

/// A main wait comes at least so often.
pub(super) const LEAST_RUNS: usize = schedule::LEAST;
/// Where a schedule shows, the wait for it may be so small a share of all waiting.
const LEAST_SCHEDULED_SHARE: f64 = 0.05;
/// A sleep is twice as long as the one before to within this share; so many times in a row it is no chance. The first of them is short
/// beside the period of any loop: a driver that tries again after ever more milliseconds may be one afterwards.
const DOUBLED: f64 = 0.05;
const LEAST_DOUBLED: usize = 4;
const FIRST_DOUBLED_NS: f64 = 100e3;
/// Sleeps between which a thread awaits answers are so large a share of all its waiting.
const LEAST_SLEPT_BETWEEN: f64 = 0.2;
/// Stretches off a CPU with less on it in between are one: a thread that waits for the GIL asks for it again and again.
const APART_NS: u64 = 100_000;
/// A timer ends the waits at one place if at most one of so many that timers end is elsewhere.
const FEW_TIMED: usize = 10;

/// A thread's life with a main wait.
pub(super) struct Worker {
    pub tid: i32,
    pub site: Site,
    pub runs: Sequence<Run>,
    /// Of timers that are no sleeps: when they fired.
    pub expiries: Vec<Expiry>,
    /// Whether it looks for work ever less often while there is none, as the monitor of Go's runtime: that is no loop.
    pub backs_off: bool,
}

impl Worker {
    /// When its runs began that follow from a sending on another host, each with the thread that sent and when its call began.
    pub fn of_other_hosts(&self) -> impl Iterator<Item = ((i32, u64), (i32, u64))> {
        let of = |run: &Run| match run.waker {
            Waker::Thread { tid, at_ns } if host_of(tid) != host_of(self.tid) => {
                Some(((self.tid, run.start_ns), (tid, at_ns)))
            }
            _ => None,
        };
        self.runs.iter().filter_map(of)
    }

    /// Makes those waits parts of the runs before them that are not among these, ascending.
    pub fn keep_only(&mut self, kept: &[usize]) {
        let ends = kept.iter().skip(1).copied().chain([self.runs.len()]);
        let whole = |(from, to): (usize, usize)| {
            let parts = &self.runs[from..to];
            Run {
                done_ns: parts[parts.len() - 1].done_ns,
                cpu_ns: parts.iter().map(|part| part.cpu_ns).sum(),
                off_ns: parts[parts.len() - 1].off_ns,
                is_lost: parts.iter().any(|part| part.is_lost),
                ..parts[0]
            }
        };
        self.runs = kept.iter().copied().zip(ends).map(whole).collect::<Vec<Run>>().into();
    }

    /// Gives those of these runs whose release was past when they waited the next moment of the schedule each; drops from `runs`
    /// what is beyond it. How many moments are left out.
    pub fn keep_schedule(&mut self, runs: &mut Vec<usize>, period_ns: u64) -> u64 {
        let known: Vec<(usize, u64)> =
            runs.iter().filter_map(|at| Some((*at, timer(self.runs[*at].waker)?.0))).collect();
        let (mut next, mut last_ns) = (0, None);
        runs.retain(|at| {
            let run = &mut self.runs[*at];
            if let Some((_, release_ns)) = known.get(next).filter(|(known, _)| known == at) {
                (next, last_ns) = (next + 1, Some(*release_ns));
                return true;
            }
            let Some(release_ns) = last_ns.map(|last_ns: u64| last_ns + period_ns) else { return false };
            let is_free = known.get(next).is_none_or(|(_, known_ns)| release_ns + period_ns / 2 < *known_ns);
            if !is_free || release_ns > run.start_ns {
                return false;
            }
            run.release_ns = Some(release_ns);
            run.waker = Waker::Timer { asked_ns: release_ns, armed_ns: run.from_ns, address: 0, is_relative: false };
            last_ns = Some(release_ns);
            true
        });
        let releases: Vec<u64> = runs.iter().filter_map(|at| timer(self.runs[*at].waker)).map(|(ns, _)| ns).collect();
        let steps = releases.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        steps.map(|step| ((step as f64 / period_ns as f64).round() as u64).saturating_sub(1)).sum()
    }
}

/// What one life of a thread comes to.
pub(super) struct Life {
    /// Waits that ended.
    pub waits: u64,
    /// Where it slept longest.
    pub longest: Option<Site>,
    pub worker: Option<Worker>,
    /// By descriptor that other threads may wait at, too: how many of its waits there timers ended.
    pub timed: HashMap<Site, usize>,
    /// From when until when it was in waits at futexes that timers ended.
    pub timed_at_futexes: Vec<(u64, u64)>,
}

/// Waits at one site.
#[derive(Default)]
struct Candidate {
    waits: usize,
    slept_ns: u64,
    has_schedule: bool,
}

/// The thread's life within these bounds.
pub(super) fn of(tid: i32, timeline: &Timeline, bounds: (u64, u64), kernel: Kernel<'_>) -> Life {
    let mut waits = waits::of(tid, timeline, bounds, kernel);
    let mut alike = Alike::of(&waits, timeline);
    waits.iter_mut().for_each(|wait| wait.site = alike.site(wait.site));
    let mut candidates: HashMap<Site, Candidate> = HashMap::default();
    for wait in &waits {
        let candidate = candidates.entry(wait.site).or_default();
        candidate.waits += 1;
        candidate.slept_ns += wait.end_ns - wait.blocked_ns;
    }
    let slept_ns: u64 = candidates.values().map(|candidate| candidate.slept_ns).sum();
    for (site, candidate) in &mut candidates {
        let is_worth = candidate.slept_ns as f64 >= LEAST_SCHEDULED_SHARE * slept_ns as f64;
        candidate.has_schedule = is_worth && has_schedule(*site, timeline, bounds, &waits);
    }
    let rank = |candidate: &Candidate| (candidate.has_schedule, candidate.slept_ns);
    // Equal ones by place, so that the order of a table does not decide.
    let place = |site: Site| waits.iter().position(|wait| wait.site == site);
    let by_rank = |a: &(&Site, &Candidate), b: &(&Site, &Candidate)| {
        rank(a.1).cmp(&rank(b.1)).then_with(|| place(*b.0).cmp(&place(*a.0)))
    };
    let longest = candidates.iter().max_by(by_rank).map(|(site, _)| *site);
    let longest = longest.map(|site| sleeps_between(site, &candidates, &waits).unwrap_or(site));
    let longest = longest.map(|site| {
        let Some(timed) = timed_polls(site, timeline, bounds, &waits) else { return site };
        alike.are_counts_apart = true;
        waits.iter_mut().filter(|wait| wait.site == site).for_each(|wait| wait.site = own_site(wait, timeline));
        timed
    });
    let worker = longest.and_then(|site| {
        let runs = runs(tid, (site, &alike), timeline, bounds, &waits, kernel);
        (runs.len() >= LEAST_RUNS).then(|| Worker {
            tid,
            site,
            expiries: expiries(site, timeline, bounds, &runs),
            runs: runs.into(),
            backs_off: backs_off(site, &waits),
        })
    });
    let mut timed: HashMap<Site, usize> = HashMap::default();
    for wait in waits.iter().filter(|wait| wait.site.is_at_descriptor() && timer(wait.waker).is_some()) {
        *timed.entry(wait.site).or_default() += 1;
    }
    let at_futexes = waits.iter().filter(|wait| is_timed_at_futex(wait));
    let timed_at_futexes = at_futexes.map(|wait| (wait.blocked_ns, wait.woken_ns.unwrap_or(wait.end_ns))).collect();
    Life { waits: waits.len() as u64, longest, worker, timed, timed_at_futexes }
}

/// Of a thread that sleeps again and again for a time, and longer in between for several answers: its sleeps. Where the answers are the
/// work that it waits for they are steady, or its sleeps are not.
fn sleeps_between(site: Site, candidates: &HashMap<Site, Candidate>, waits: &[Wait]) -> Option<Site> {
    let ends = |site: Site| {
        let ends: Vec<u64> = waits.iter().filter(|wait| wait.site == site).map(|wait| wait.end_ns).collect();
        schedule::are_steady(&ends)
    };
    let awaits = |wait: &&Wait| wait.site == site && timer(wait.waker).is_none();
    let are_answers = waits.iter().filter(awaits).count() * FEW_TIMED >= candidates[&site].waits * (FEW_TIMED - 1);
    if candidates[&site].has_schedule || site.kind() != Some(Call::Data) || !are_answers || ends(site) {
        return None;
    }
    let slept_ns: u64 = candidates.values().map(|candidate| candidate.slept_ns).sum();
    let is_one = |(sleeps, candidate): &(&Site, &Candidate)| {
        let is_much = candidate.slept_ns as f64 >= LEAST_SLEPT_BETWEEN * slept_ns as f64;
        sleeps.kind() == Some(Call::Sleep) && is_much && ends(**sleeps)
    };
    candidates.iter().filter(is_one).max_by_key(|(_, candidate)| candidate.slept_ns).map(|(sleeps, _)| *sleeps)
}

/// Of a thread that polls for its timer, and in between for answers, by other numbers of descriptors: the polls for its timer.
fn timed_polls(site: Site, timeline: &Timeline, bounds: (u64, u64), waits: &[Wait]) -> Option<Site> {
    if site.kind() != Some(Call::Poll) || site.is_at_descriptor() {
        return None;
    }
    let of_site = waits.iter().filter(|wait| wait.site == site);
    let apart: Vec<Wait> = of_site.map(|wait| Wait { site: own_site(wait, timeline), ..*wait }).collect();
    let mut timed: HashMap<u64, usize> = HashMap::default();
    for wait in apart.iter().filter(|wait| timer(wait.waker).is_some()) {
        *timed.entry(wait.site.object).or_default() += 1;
    }
    let all: usize = timed.values().sum();
    let (object, most) = timed.into_iter().max_by_key(|(object, count)| (*count, *object))?;
    // Who polls for a timer by several numbers has clients that come and go. An answer may fail to come now and then.
    let is_one = FEW_TIMED * (all - most) <= all;
    let main = Site { object, ..site };
    let are_others = apart.iter().any(|wait| wait.site != main);
    (is_one && are_others && has_schedule(main, timeline, bounds, &apart)).then_some(main)
}

/// Its place by its own call alone.
fn own_site(wait: &Wait, timeline: &Timeline) -> Site {
    wait.call.and_then(|call| Site::of(&timeline.calls[call])).unwrap_or(wait.site)
}

pub(super) fn is_timed_at_futex(wait: &Wait) -> bool {
    wait.site.kind() == Some(Call::Futex) && timer(wait.waker).is_some()
}

/// Whether its sleeps at that site are each twice as long as the one before until they are as long as they get.
fn backs_off(site: Site, waits: &[Wait]) -> bool {
    let sleeps = waits.iter().filter(|wait| wait.site == site && site.kind() == Some(Call::Sleep));
    let length = |wait: &Wait| match wait.waker {
        Waker::Timer { asked_ns, armed_ns, is_relative: true, .. } => Some(asked_ns.saturating_sub(armed_ns) as f64),
        _ => None,
    };
    let lengths: Vec<f64> = sleeps.filter_map(length).collect();
    let (mut doubled, mut first) = (0, 0.0);
    lengths.windows(2).any(|pair| {
        let (before, next) = (pair[0], pair[1]);
        let doubles = (next - 2.0 * before).abs() <= DOUBLED * next;
        // The last step may be a part of one.
        let is_last = doubled >= LEAST_DOUBLED && ((1.0 - DOUBLED) * before..=2.0 * before).contains(&next);
        let is_first_short = first <= FIRST_DOUBLED_NS;
        (doubled, first) = match doubles {
            true => (doubled + 1, if doubled == 0 { before } else { first }),
            false => (0, 0.0),
        };
        !doubles && is_last && is_first_short
    })
}

/// From the ends of some of its waits, in a life of the thread, until its next waits anywhere.
pub(super) fn after(
    tid: i32,
    is_one: impl Fn(&Wait) -> bool,
    timeline: &Timeline,
    bounds: (u64, u64),
    kernel: Kernel<'_>,
) -> Vec<Run> {
    let waits = waits::of(tid, timeline, bounds, kernel);
    let pairs = waits.windows(2).filter(|pair| is_one(&pair[0]));
    let from_ns = |wait: &Wait| wait.call.map_or(wait.blocked_ns, |call| timeline.calls[call].start_ns);
    let of = |pair: &[Wait]| Run {
        done_ns: from_ns(&pair[1]),
        ..run(tid, from_ns(&pair[0]), pair[0].end_ns, Some(&pair[0]))
    };
    let mut runs: Vec<Run> = pairs.map(of).collect();
    measure(&mut runs, timeline);
    runs
}

/// Those from the first run's wait on, of timers that wake the thread at this site at least once: others are time-outs of what it does.
fn expiries(site: Site, timeline: &Timeline, bounds: (u64, u64), runs: &[Run]) -> Vec<Expiry> {
    if site.kind() == Some(Call::Sleep) {
        return Vec::new();
    }
    let mut its: Vec<u64> = runs.iter().filter_map(|run| address(run.waker)).collect();
    its.sort_unstable();
    its.dedup();
    let from_ns = runs.first().map_or(u64::MAX, |run| run.from_ns);
    let within = |expiry: &&Expiry| (from_ns..bounds.1).contains(&expiry.at_ns);
    let all = timeline.expiries.iter().filter(within);
    all.filter(|expiry| its.binary_search(&expiry.address).is_ok()).copied().collect()
}

fn address(waker: Waker) -> Option<u64> {
    match waker {
        Waker::Timer { address, .. } => Some(address).filter(|address| *address != 0),
        _ => None,
    }
}

fn has_schedule(site: Site, timeline: &Timeline, bounds: (u64, u64), waits: &[Wait]) -> bool {
    let moments: Vec<(u64, (u64, u64))> = if site.kind() == Some(Call::Sleep) {
        let alike = Alike::default();
        let sleeps = calls((site, &alike), timeline, bounds).filter_map(|(_, call)| {
            sleep(call, timeline).map(|(asked_ns, armed_ns, _)| (asked_ns, (armed_ns, call.end_ns)))
        });
        sleeps.collect()
    } else {
        let timed = waits.iter().filter(|wait| wait.site == site);
        let moments = |wait: &Wait| timer(wait.waker).map(|(asked_ns, armed_ns)| (asked_ns, (armed_ns, wait.end_ns)));
        timed.filter_map(moments).collect()
    };
    let (asked, (armed, started)): (Vec<u64>, (Vec<u64>, Vec<u64>)) = moments.into_iter().unzip();
    schedule::of(&asked, &armed, &started).is_some()
}

/// The moment that a timer was set to, and when it was armed.
pub(super) fn timer(waker: Waker) -> Option<(u64, u64)> {
    match waker {
        Waker::Timer { asked_ns, armed_ns, .. } => Some((asked_ns, armed_ns)),
        _ => None,
    }
}

/// Calls at that site, each with its place among all of the thread.
fn calls<'a>(
    (site, alike): (Site, &'a Alike),
    timeline: &'a Timeline,
    bounds: (u64, u64),
) -> impl Iterator<Item = (usize, &'a SystemCall)> {
    let first = timeline.calls.partition_point(|call| call.end_ns <= bounds.0);
    let calls = timeline.calls.iter().enumerate().skip(first).take_while(move |(_, call)| call.start_ns < bounds.1);
    calls.filter(move |(_, call)| is_at(call, site, alike))
}

fn is_at(call: &SystemCall, site: Site, alike: &Alike) -> bool {
    Site::of(call).is_some_and(|of| alike.site(of) == site)
}

/// The moment that a sleep's timer was set to, on the recording's clock, when it was armed, and whether it is relative.
fn sleep(call: &SystemCall, timeline: &Timeline) -> Option<(u64, u64, bool)> {
    let timer = timeline.timer(call.start_ns, call.end_ns)?;
    if timer.asked_ns.abs_diff(timer.armed_ns) < SAME_CLOCK_NS {
        return Some((timer.asked_ns, timer.armed_ns, timer.is_relative));
    }
    let at = timeline.expiries.partition_point(|expiry| expiry.at_ns < timer.armed_ns);
    let expiry = timeline.expiries.get(at).filter(|expiry| expiry.armed_ns == timer.armed_ns)?;
    Some((expiry.asked_ns, expiry.armed_ns, expiry.is_relative))
}

fn runs(
    tid: i32,
    at: (Site, &Alike),
    timeline: &Timeline,
    bounds: (u64, u64),
    waits: &[Wait],
    kernel: Kernel<'_>,
) -> Vec<Run> {
    let mut runs = match at.0.call {
        None => waits.iter().map(|wait| run(tid, wait.blocked_ns, wait.end_ns, Some(wait))).collect(),
        Some(_) => of_calls(tid, at, timeline, bounds, waits),
    };
    from_other_hosts(tid, &mut runs, timeline, kernel);
    backlogs::confirm(&mut runs, timeline, kernel);
    runs.retain(|run| !run.is_ready);
    // Of the last one it is known when it ends only if the thread waits again, or ends itself.
    let last_ns = runs.last().map_or(u64::MAX, |run| run.start_ns);
    let again_ns = waits_after(last_ns, at, timeline, bounds).or((bounds.1 < u64::MAX).then_some(bounds.1));
    for at in 0..runs.len() {
        runs[at].done_ns = runs.get(at + 1).map_or(again_ns.unwrap_or(0), |next| next.from_ns);
    }
    if runs.last().is_some_and(|run| run.done_ns < run.start_ns) {
        runs.pop();
    }
    measure(&mut runs, timeline);
    runs
}

/// When the thread came to the site again after that moment, to a wait that did not end or that a signal ended: the thread may have been
/// killed in it.
fn waits_after(after_ns: u64, (site, alike): (Site, &Alike), timeline: &Timeline, bounds: (u64, u64)) -> Option<u64> {
    let later = timeline.calls[timeline.calls.partition_point(|call| call.start_ns < after_ns)..].iter();
    let mut later = later.take_while(|call| call.start_ns < bounds.1).filter(|call| is_at(call, site, alike));
    later.find(|call| call.end_ns == u64::MAX || waits::is_interrupted(call)).map(|call| call.start_ns)
}

fn run(tid: i32, from_ns: u64, start_ns: u64, wait: Option<&Wait>) -> Run {
    let waker = wait.map_or(Waker::Unknown, |wait| wait.waker);
    let woken_ns = wait.and_then(|wait| wait.woken_ns);
    let release_ns = timer(waker).map(|(asked_ns, _)| asked_ns).or(woken_ns).map(|release_ns| release_ns.min(start_ns));
    Run {
        tid,
        start_ns,
        done_ns: 0,
        cpu_ns: None,
        woken_ns,
        waker,
        release_ns,
        off_ns: [0; 2],
        is_lost: false,
        from_ns,
        is_ready: false,
    }
}

/// A run for each call at the site that slept, or that may have found what it waits for.
fn of_calls(
    tid: i32,
    (site, alike): (Site, &Alike),
    timeline: &Timeline,
    bounds: (u64, u64),
    waits: &[Wait],
) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut next = 0;
    for (place, call) in calls((site, alike), timeline, bounds) {
        if call.end_ns == u64::MAX || waits::is_interrupted(call) {
            continue;
        }
        while waits.get(next).is_some_and(|wait| wait.call.is_none_or(|call| call < place)) {
            next += 1;
        }
        let wait = waits.get(next).filter(|wait| wait.call == Some(place));
        let mut run = run(tid, call.start_ns, wait.map_or(call.end_ns, |wait| wait.end_ns), wait);
        match site.kind() {
            Some(Call::Sleep) => match sleep(call, timeline) {
                Some((asked_ns, armed_ns, is_relative)) => {
                    run.release_ns = Some(asked_ns.min(run.start_ns));
                    run.waker = Waker::Timer { asked_ns, armed_ns, address: 0, is_relative };
                }
                // The moment was past already: the call returns at once, and arms no timer. The schedule says which moment it was.
                None if site.object == TIMER_ABSTIME && call.result == 0 && wait.is_none() => run.waker = Waker::Past,
                None => continue,
            },
            _ if wait.is_some() => {}
            Some(Call::Data | Call::Poll) if call.result > 0 => run.is_ready = true,
            _ => continue,
        }
        runs.push(run);
    }
    runs
}

/// Says of those that the network ended, and of those that did not sleep, which thread of another host had sent what they received
/// first.
fn from_other_hosts(tid: i32, runs: &mut [Run], timeline: &Timeline, kernel: Kernel<'_>) {
    if kernel.senders.is_empty() {
        return;
    }
    for at in 0..runs.len() {
        let run = runs[at];
        let is_known = match run.waker {
            Waker::Timer { .. } | Waker::Past => true,
            Waker::Thread { tid, .. } => kernel.objects.is_recorded(tid),
            Waker::Interrupt | Waker::Unknown => false,
        };
        if is_known {
            continue;
        }
        let until_ns = runs.get(at + 1).map_or(u64::MAX, |next| next.from_ns);
        let first = timeline.calls.partition_point(|call| call.start_ns < run.from_ns);
        let mut within = timeline.calls[first..].iter().take_while(|call| call.start_ns < until_ns);
        let received = within.find(|call| call.result > 0 && call.id.transfer() == Some(Transfer::Receives));
        let sender = received.and_then(|call| kernel.senders.get(&(tid, call.start_ns)));
        if let Some((sender, at_ns)) = sender.copied() {
            let run = &mut runs[at];
            run.waker = Waker::Thread { tid: sender, at_ns };
            run.release_ns =
                run.woken_ns.or(run.release_ns).or(Some(at_ns)).map(|release_ns| release_ns.min(run.start_ns));
            run.is_ready = false;
        }
    }
}

/// Time on a CPU and off it, and whether events are missing, by one sweep.
fn measure(runs: &mut [Run], timeline: &Timeline) {
    let Some(first) = runs.first() else { return };
    let mut at = timeline.segments.partition_point(|segment| segment.start_ns <= first.from_ns).saturating_sub(1);
    for run in runs {
        let from_ns = run.release_ns.unwrap_or(run.start_ns).min(run.from_ns.max(run.woken_ns.unwrap_or(0)));
        while at + 1 < timeline.segments.len() && timeline.end_ns(at) <= from_ns {
            at += 1;
        }
        let (mut cpu_ns, mut is_known) = (0, true);
        // From when until when.
        let mut off: [(u64, u64); 2] = [(0, 0); 2];
        for (place, segment) in timeline.segments.iter().enumerate().skip(at) {
            if segment.start_ns >= run.done_ns {
                break;
            }
            let (start, end) = (segment.start_ns.max(run.start_ns), timeline.end_ns(place).min(run.done_ns));
            match segment.state {
                ThreadState::Running if start < end => cpu_ns += end - start,
                ThreadState::Preempted | ThreadState::Woken | ThreadState::Blocked | ThreadState::Uninterruptible
                    if start < end =>
                {
                    match &mut off[0] {
                        (_, until) if *until > 0 && start - *until < APART_NS => *until = end,
                        last => off = [(start, end), *last],
                    }
                }
                ThreadState::Lost if timeline.end_ns(place) > from_ns => run.is_lost = true,
                // A switch is missing; its calls are there.
                ThreadState::Unknown if start < end => is_known = false,
                _ => {}
            }
        }
        run.cpu_ns = is_known.then_some(cpu_ns);
        run.off_ns = off.map(|(from, until)| until - from);
    }
}
