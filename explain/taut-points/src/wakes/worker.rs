//! A thread and its main wait: what it does from the end of one to the beginning of the next is a run.

use foldhash::HashMap;
use taut_recording::host_numbers::host_of;
use taut_timelines::{Call, Expiry, SAME_CLOCK_NS, Sequence, SystemCall, ThreadState, Timeline, Transfer};

use super::{
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
/// Senders that woke a thread in fewer of its waits than one of so many are no peers of it.
const PEER_SHARE: usize = 10;

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

/// From the end of a main wait until the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Its thread.
    pub tid: i32,
    /// When its wait returned.
    pub start_ns: u64,
    /// When it waited again.
    pub done_ns: u64,
    /// On a CPU from start to done; `None` where it is not known what the thread did all the time.
    pub cpu_ns: Option<u64>,
    /// When it was woken; `None` if it did not sleep, or the recording does not say.
    pub woken_ns: Option<u64>,
    pub waker: Waker,
    /// When what it waited for was there: the timer's moment, the wake, or the sending while it was busy.
    pub release_ns: Option<u64>,
    /// Events of it are missing.
    pub is_lost: bool,
    /// When its wait began.
    from_ns: u64,
    /// Whether it found what it waited for without sleeping, and something must say that this was so.
    is_ready: bool,
}

impl Run {
    /// Whether a timer that was set before the wait ended it, as one of a descriptor: what the wait rounds does not concern it.
    pub fn is_of_earlier_timer(&self) -> bool {
        timer(self.waker).is_some_and(|(_, armed_ns)| armed_ns < self.from_ns)
    }
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
    let alike = Alike::of(&waits);
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
    for wait in waits.iter().filter(|wait| is_at_descriptor(wait) && timer(wait.waker).is_some()) {
        *timed.entry(wait.site).or_default() += 1;
    }
    let at_futexes = waits.iter().filter(|wait| is_timed_at_futex(wait));
    let timed_at_futexes = at_futexes.map(|wait| (wait.blocked_ns, wait.woken_ns.unwrap_or(wait.end_ns))).collect();
    Life { waits: waits.len() as u64, longest, worker, timed, timed_at_futexes }
}

fn is_at_descriptor(wait: &Wait) -> bool {
    wait.site.kind() == Some(Call::Poll) && wait.site.object != 0
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
    let timers: Vec<(u64, u64)> = if site.kind() == Some(Call::Sleep) {
        let alike = Alike::default();
        let sleeps = calls((site, &alike), timeline, bounds).filter_map(|(_, call)| sleep(call, timeline));
        sleeps.map(|(asked_ns, armed_ns, _)| (asked_ns, armed_ns)).collect()
    } else {
        waits.iter().filter(|wait| wait.site == site).filter_map(|wait| timer(wait.waker)).collect()
    };
    let (asked, armed): (Vec<u64>, Vec<u64>) = timers.into_iter().unzip();
    schedule::of(&asked, &armed).is_some()
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
    confirm(&mut runs, timeline, kernel);
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

/// Sends of one peer, in order of time.
struct Peer {
    tid: i32,
    /// When each was sent.
    sent: Vec<u64>,
    /// The first that is not yet received.
    next: usize,
}

/// Says of those that did not sleep what they found: a timer that fired while the thread was busy, or what a peer sent meanwhile.
fn confirm(runs: &mut [Run], timeline: &Timeline, kernel: Kernel<'_>) {
    if !runs.iter().any(|run| run.is_ready) {
        return;
    }
    let mut peers = peers(runs, kernel);
    let mut last_start_ns = 0;
    for run in runs.iter_mut() {
        if !run.is_ready {
            // What woke it is received, and all before it.
            if let Waker::Thread { tid, at_ns } = run.waker {
                for peer in peers.iter_mut().filter(|peer| peer.tid == tid) {
                    peer.next = peer.next.max(peer.sent.partition_point(|sent_ns| *sent_ns <= at_ns));
                }
            }
            last_start_ns = run.start_ns;
            continue;
        }
        if let Some(expiry) = timeline.expiry(last_start_ns, run.from_ns) {
            let Expiry { asked_ns, armed_ns, address, is_relative, .. } = *expiry;
            run.waker = Waker::Timer { asked_ns, armed_ns, address, is_relative };
            run.release_ns = Some(asked_ns.min(run.start_ns));
        } else {
            let waiting =
                peers.iter_mut().filter(|peer| peer.sent.get(peer.next).is_some_and(|sent| *sent <= run.start_ns));
            let Some(peer) = waiting.min_by_key(|peer| peer.sent[peer.next]) else { continue };
            let at_ns = peer.sent[peer.next];
            run.waker = Waker::Thread { tid: peer.tid, at_ns };
            run.release_ns = Some(at_ns);
            peer.next += 1;
        }
        run.is_ready = false;
        last_start_ns = run.start_ns;
    }
}

/// Who woke the thread by sending, by descriptor, and all that it sent there.
fn peers(runs: &[Run], kernel: Kernel<'_>) -> Vec<Peer> {
    let mut counts: Vec<((i32, u64), usize)> = Vec::new();
    let mut woken = 0;
    for run in runs {
        let Waker::Thread { tid, at_ns } = run.waker else { continue };
        woken += 1;
        let sender = kernel.timelines.threads.get(&tid);
        let Some(call) = sender.and_then(|sender| sender.call(at_ns)).filter(|call| is_send(call)) else { continue };
        match counts.iter_mut().find(|(key, _)| *key == (tid, call.arg0)) {
            Some((_, count)) => *count += 1,
            None => counts.push(((tid, call.arg0), 1)),
        }
    }
    let is_peer = |(_, count): &((i32, u64), usize)| count * PEER_SHARE >= woken;
    let peer = |((tid, descriptor), _): ((i32, u64), usize)| {
        let calls = &kernel.timelines.threads.get(&tid)?.calls;
        let sends = calls.iter().filter(|call| is_send(call) && call.arg0 == descriptor && call.result > 0);
        Some(Peer { tid, sent: sends.map(|call| call.start_ns).collect(), next: 0 })
    };
    counts.into_iter().filter(is_peer).filter_map(peer).collect()
}

fn is_send(call: &SystemCall) -> bool {
    call.id.kind() == Call::Send
}

/// Time on a CPU, and whether events are missing, by one sweep.
fn measure(runs: &mut [Run], timeline: &Timeline) {
    let Some(first) = runs.first() else { return };
    let mut at = timeline.segments.partition_point(|segment| segment.start_ns <= first.from_ns).saturating_sub(1);
    for run in runs {
        let from_ns = run.release_ns.unwrap_or(run.start_ns).min(run.from_ns.max(run.woken_ns.unwrap_or(0)));
        while at + 1 < timeline.segments.len() && timeline.end_ns(at) <= from_ns {
            at += 1;
        }
        let (mut cpu_ns, mut is_known) = (0, true);
        for (place, segment) in timeline.segments.iter().enumerate().skip(at) {
            if segment.start_ns >= run.done_ns {
                break;
            }
            let (start, end) = (segment.start_ns.max(run.start_ns), timeline.end_ns(place).min(run.done_ns));
            match segment.state {
                ThreadState::Running if start < end => cpu_ns += end - start,
                ThreadState::Lost if timeline.end_ns(place) > from_ns => run.is_lost = true,
                // A switch is missing; its calls are there.
                ThreadState::Unknown if start < end => is_known = false,
                _ => {}
            }
        }
        run.cpu_ns = is_known.then_some(cpu_ns);
    }
}
