//! Timers of an event loop: its thread waits for the earliest one, for a time that it computes each time, and sockets wake it in
//! between. What is known is when each wait was to end. A timer that is set again once it has fired makes a new activation begin a fixed
//! time after the one that served it: by the end of a wait, or with what the thread does anyway.

use taut_timelines::Call;

use super::{
    found::Found,
    run::Run,
    schedule::{Schedule, middle, quantile},
    worker::{self, Worker},
};
use crate::route::LoopEvidence;

/// Fewer activations show no timer.
const LEAST: usize = 20;
/// At least this share of the activations that are due begins: of a schedule fewer, since a thread that computes how long it sleeps may
/// lose its CPU before it does.
const KEPT: f64 = 0.9;
const KEPT_OF_SCHEDULE: f64 = 0.8;
/// … and, of a time after each activation, this share of those that would not begin so by chance: where waits end nearly as often as a wait
/// is rounded by, any time does. Of 57 recordings of programs that say their times the right ones had 0.84 and more, and the wrong ones 0.68,
/// 0.70 and (libuv, 40 ms for 33) 0.85.
const KEPT_BEYOND_CHANCE: f64 = 0.8;
/// The time after each activation is known to within this share of it: a thread that is busy for long may have set its timer at any moment.
const WIDEST: f64 = 0.8;
/// A schedule is kept for at least this share of the time from its first activation on.
const LASTS: f64 = 0.5;
/// How many standard deviations that is above what moments without a timer would do.
const SIGNIFICANT: f64 = 6.0;
/// At least this share of a timer's activations is no other timer's. Two may meet in each second moment: schedules whose periods make it so,
/// and pauses that were set by one activation, since their waits are rounded. What meets another one more often may be a part of it.
const OWN: f64 = 0.45;
/// At least this share of the thread's waits that ended in time is explained by the timers that are found.
const EXPLAINED: f64 = 0.7;
/// At least this share of a thread's waits is for whole milliseconds if it counts in them.
const WHOLE_MS_SHARE: f64 = 0.9;
/// Timers of one thread.
const MOST: usize = 8;
/// One that was to begin and did not weighs as much as so many that did.
const MISSED_WEIGH: i64 = 3;

/// A schedule explains nearly as many as a time after each activation would: those that are set again drift away from any.
const KEEPS_SCHEDULE: f64 = 0.8;
/// Where waits are rounded so much that the drift may not show, a program's period is about as round a number as its pauses: a pause and
/// what the thread does in between are none.
const MORE_DIGITS: usize = 1;
const MOST_DIGITS: usize = 4;
/// … and where all its starts are about as late fewer.
const MOST_DIGITS_OF_QUIET: usize = 2;
/// Half of what a pause would make later moments later by is more than so many times what chance does.
const SURELY: f64 = 3.0;
/// A schedule may be found by each second or third of its moments.
const PARTS: [f64; 2] = [2.0, 3.0];
/// A schedule is looked for in so many of its periods, and in twice as many as long as there are more: periods that may be meant are
/// those of so many of the best stretches.
const FIRST_PERIODS: f64 = 16.0;
const BEST: usize = 16;
/// A schedule that has other moments than before though its thread was not busy has them so many windows away.
const FAR: f64 = 1.5;
/// Two schedules are of one period if they differ by no more than this share of it, and alternate if their moments are half of one apart, to
/// within this.
const SAME_PERIOD: f64 = 0.01;
const ALTERNATE: f64 = 0.05;
/// To the end of the recording a period is off by no more than one of so many parts of what a wait may be late.
const DRIFT: f64 = 4.0;

/// The next activation of a timer is among so many that follow.
const LOOKED_AHEAD: usize = 16;
/// Times are looked for in the first so many waits that ended in time …
const SEARCHED: usize = 600;
const SEARCHED_RUNS: usize = 20_000;
/// Of a schedule in so many of them: the longer, the better its period is known.
const SEARCHED_MOMENTS: usize = 2_400;
/// … of so many that are between most activations and later ones, in so many steps each, and from so many activations on.
const PEAKS: usize = 16;
const STEPS: u32 = 40;
const FIRST: usize = 4;
/// Around the most frequent time others count that are nearly as frequent.
const PEAK: f64 = 0.9;
/// Periods that serve a schedule nearly as well: of all its moments, to the end of the recording.
const AS_GOOD_PERIOD: f64 = 0.9;

/// By how much a wait may end otherwise than when its timer is due, ns.
#[derive(Clone, Copy, Debug)]
struct Rounding {
    early: f64,
    late: f64,
    tolerance: f64,
}

impl Rounding {
    /// What the call's time is given in. `None` of calls that event loops do not wait in.
    fn of(worker: &Worker) -> Option<Rounding> {
        const MS: f64 = 1e6;
        let call = worker.site.call.filter(|call| matches!(call.kind(), Call::Poll | Call::Futex))?;
        let share_of = |is_one: fn(&Run) -> bool| {
            let timed = || worker.runs.iter().filter(|run| worker::timer(run.waker).is_some());
            timed().filter(|run| is_one(run)).count() as f64 / timed().count().max(1) as f64
        };
        let exact = Rounding { early: 0.0, late: 0.02 * MS, tolerance: 0.05 * MS };
        let whole_ms = |early, late| Rounding { early, late, tolerance: 0.1 * MS };
        Some(match call.known_name() {
            // A descriptor's.
            _ if call.kind() == Call::Poll && share_of(Run::is_of_earlier_timer) > 0.5 => exact,
            // CPython rounds up twice.
            Some("epoll_wait") => whole_ms(0.0, 2.0 * MS),
            // libuv's clock has whole milliseconds, too.
            Some("epoll_pwait") => whole_ms(MS, 2.0 * MS),
            Some("poll") => whole_ms(0.0, MS),
            // Runtimes that count milliseconds, such as Tokio.
            _ if call.kind() == Call::Futex && share_of(is_whole_ms) >= WHOLE_MS_SHARE => whole_ms(0.0, 2.0 * MS),
            // poll(2) on Arm, which has no such call, is one of ppoll.
            _ if call.kind() == Call::Poll && share_of(is_whole_ms) >= WHOLE_MS_SHARE => whole_ms(0.0, MS),
            _ => exact,
        })
    }
}

/// Whether that run's wait ended before its timer was due, if waits are rounded down: the next one is for the rest, as short as it can be.
/// `None` of waits that are no longer themselves.
fn is_early(pair: &[Run]) -> Option<bool> {
    const SHORT: f64 = 1.1e6;
    let wait =
        |run: &Run| worker::timer(run.waker).map(|(asked_ns, armed_ns)| asked_ns.saturating_sub(armed_ns) as f64);
    (wait(&pair[0])? > SHORT).then_some(wait(&pair[1])? <= SHORT)
}

/// Whether most of its waits end before their timers are due. Then their runs do less than those that follow: a thread that works, and waits
/// for a millisecond after each time, does as much. Of Go they do half of that.
fn rounds_down(worker: &Worker) -> bool {
    const LESS: f64 = 0.75;
    let pairs = || worker.runs.windows(2).filter_map(|pair| Some((is_early(pair)?, pair)));
    let early: Vec<&[Run]> = pairs().filter(|(is_early, _)| *is_early).map(|(_, pair)| pair).collect();
    let cpu = |of: usize| middle(&early.iter().filter_map(|pair| Some(pair[of].cpu_ns? as f64)).collect::<Vec<f64>>());
    2 * early.len() > pairs().count() && cpu(0) <= LESS * cpu(1)
}

/// Whether its timer was armed for whole milliseconds, but for what the thread did before it was.
fn is_whole_ms(run: &Run) -> bool {
    const MS: u64 = 1_000_000;
    const BEFORE: u64 = 20_000;
    let is_whole = |(asked_ns, armed_ns): (u64, u64)| (asked_ns.saturating_sub(armed_ns) + BEFORE) % MS <= BEFORE;
    worker::timer(run.waker).is_some_and(is_whole)
}

/// A run of the thread, in ns since its first one began.
#[derive(Clone, Copy, Debug)]
struct Served {
    start: f64,
    done: f64,
    /// When its wait was to end, if that is what ended it.
    expiry: Option<f64>,
}

/// What the next moment of a timer is counted from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Again {
    /// Some moment of the activation that served it.
    Served,
    /// The moment before.
    Schedule,
}

#[derive(Clone, Debug)]
struct Timer {
    again: Again,
    /// The roundest time that it may be set for.
    every: f64,
    /// Runs that it released.
    runs: Vec<usize>,
    /// How often an activation was to begin, and did not.
    missed: usize,
    /// Moments of a schedule without an activation: several where it was missed for long.
    skipped: u64,
    /// How often a schedule went on with other moments than before.
    moved: usize,
    /// In how much time all of them were looked for, ns.
    looked: f64,
}

impl Timer {
    fn new(again: Again, every: f64) -> Timer {
        Timer { again, every, runs: Vec::new(), missed: 0, skipped: 0, moved: 0, looked: 0.0 }
    }

    fn score(&self) -> i64 {
        self.runs.len() as i64 - MISSED_WEIGH * self.missed as i64
    }
}

/// Whether the thread waits in an event loop's call for whole milliseconds.
pub(super) fn are_rounded(worker: &Worker) -> bool {
    Rounding::of(worker).is_some_and(|rounding| rounding.late > rounding.tolerance)
}

/// Loops of an event loop's timers; none if these are not all that there is.
pub(super) fn of(worker: &Worker) -> Vec<Found> {
    let Some(rounding) = Rounding::of(worker) else { return Vec::new() };
    let first_ns = worker.runs.first().map_or(0, |run| run.start_ns);
    let since_first = |ns: u64| ns as f64 - first_ns as f64;
    let rounds_down = rounding.late > rounding.tolerance && rounds_down(worker);
    let served = (0..worker.runs.len()).map(|at| {
        let (run, next) = (&worker.runs[at], worker.runs.get(at + 1));
        let is_early = rounds_down && worker.runs.get(at..at + 2).and_then(is_early) == Some(true);
        Served {
            start: since_first(run.start_ns),
            // Of several threads the next one may begin before.
            done: since_first(next.map_or(run.done_ns, |next| run.done_ns.min(next.start_ns))),
            expiry: worker::timer(run.waker).filter(|_| !is_early).map(|(asked_ns, _)| since_first(asked_ns)),
        }
    });
    let off = (0..worker.runs.len()).map(|at| off_before(worker, at, rounding.tolerance));
    let found = EventLoop { off: off.collect(), ..EventLoop::of(served.collect(), rounding) }.timers();
    let release_ns = |run: &usize| worker::timer(worker.runs[*run].waker).map(|(asked_ns, _)| asked_ns);
    let as_found = |timer: Timer| {
        let releases: Vec<u64> = timer.runs.iter().filter_map(release_ns).collect();
        let start = |run: usize| worker.runs[run].start_ns;
        let steps: Vec<f64> = timer.runs.windows(2).map(|pair| (start(pair[1]) - start(pair[0])) as f64).collect();
        let (evidence, Schedule { period_ns, skipped }) = match timer.again {
            Again::Schedule => {
                (LoopEvidence::AbsoluteTimer, Schedule { period_ns: timer.every as u64, skipped: timer.skipped })
            }
            Again::Served => (
                LoopEvidence::RelativeTimer { asked_ns: timer.every as u64 },
                Schedule { period_ns: middle(&steps) as u64, skipped: 0 },
            ),
        };
        Found { evidence, period_ns, skipped, runs: timer.runs, releases }
    };
    let mut found: Vec<Found> = found.into_iter().map(as_found).collect();
    found.sort_by_key(|found| (found.period_ns, found.runs[0]));
    found
}

/// For how long the thread was off its CPU the last time before that run's wait, and that and the time before.
fn off_before(worker: &Worker, run: usize, least: f64) -> [f64; 2] {
    let before = run.checked_sub(1).map(|before| worker.runs[before]);
    let [last, other] =
        before.filter(|before| before.tid == worker.runs[run].tid).map_or([0; 2], |before| before.off_ns);
    [last, last + other].map(|off_ns| off_ns as f64).map(|off| if off > least { off } else { 0.0 })
}

struct EventLoop {
    runs: Vec<Served>,
    /// By how much each wait may end later than a timer was due: its thread was off its CPU once it had computed for how long to wait. 0: by
    /// nothing. May be shorter than the runs.
    off: Vec<[f64; 2]>,
    /// Runs that began because their wait's time was over.
    timed: Vec<usize>,
    /// The search for times ends with this run.
    searched: usize,
    rounding: Rounding,
}

impl EventLoop {
    fn of(runs: Vec<Served>, rounding: Rounding) -> EventLoop {
        let timed: Vec<usize> = (0..runs.len()).filter(|at| runs[*at].expiry.is_some()).collect();
        let searched = timed.get(SEARCHED).copied().unwrap_or(runs.len()).min(SEARCHED_RUNS);
        EventLoop { runs, off: Vec::new(), timed, searched, rounding }
    }

    /// When a timer may have been due that ended that run's wait.
    fn dues(&self, run: usize) -> impl Iterator<Item = f64> + use<> {
        let [last, before] = self.off.get(run).copied().unwrap_or_default();
        let may_be = [0.0, last, before];
        self.runs[run].expiry.into_iter().flat_map(move |expiry| may_be.map(|off| expiry - off))
    }

    /// Of how many moments each such wait may be, on average.
    fn offered(&self) -> f64 {
        let more = self.timed.iter().filter_map(|run| self.off.get(*run)).flatten().filter(|off| **off > 0.0).count();
        1.0 + more as f64 / self.timed.len().max(1) as f64
    }

    fn timers(&self) -> Vec<Timer> {
        let mut is_left: Vec<bool> = self.runs.iter().map(|run| run.expiry.is_some()).collect();
        let mut timers = Vec::new();
        while timers.len() < MOST {
            let best = match (self.again(&is_left), self.schedule(&is_left)) {
                (Some(again), Some(schedule)) if self.is_schedule(&again, &schedule) => schedule,
                (Some(again), _) => again,
                (None, Some(schedule)) if self.shows_drift(&schedule) => schedule,
                (None, Some(schedule)) if digits(schedule.every) <= self.most_digits(&schedule) => schedule,
                (None, _) => break,
            };
            best.runs.iter().for_each(|run| is_left[*run] = false);
            timers.push(best);
        }
        let left = is_left.iter().filter(|is_left| **is_left).count();
        let explained = self.timed.len() - left;
        if explained as f64 >= EXPLAINED * self.timed.len() as f64 { self.joined(timers) } else { Vec::new() }
    }

    /// Without those that are parts of others of the same period.
    fn joined(&self, timers: Vec<Timer>) -> Vec<Timer> {
        let mut all: Vec<Timer> = Vec::new();
        for timer in timers {
            match all.iter_mut().find_map(|known| Some((self.join(known, &timer)?, known))) {
                Some((whole, known)) => *known = whole,
                None => all.push(timer),
            }
        }
        all
    }

    /// Two schedules of one period as one: it moved if they are not kept at the same time, and if their moments alternate it has half of
    /// that period.
    fn join(&self, a: &Timer, b: &Timer) -> Option<Timer> {
        let are_alike = a.again == Again::Schedule && b.again == Again::Schedule;
        if !are_alike || (a.every - b.every).abs() > SAME_PERIOD * a.every {
            return None;
        }
        let expiry = |run: &usize| self.runs[*run].expiry.unwrap_or(self.runs[*run].start);
        let since_last = |run: &usize| {
            let before = a.runs[..a.runs.partition_point(|of| of < run)].last()?;
            Some(expiry(run) - expiry(before)).filter(|since| *since <= a.every)
        };
        let since: Vec<f64> = b.runs.iter().filter_map(since_last).collect();
        let are_together = 2 * since.len() >= b.runs.len();
        let alternate = (middle(&since) - a.every / 2.0).abs() <= self.window().min(ALTERNATE * a.every);
        if are_together && !alternate {
            return None;
        }
        let mut runs = [&a.runs[..], &b.runs].concat();
        runs.sort_unstable();
        runs.dedup();
        let every = if are_together { a.every / 2.0 } else { a.every };
        let steps = runs.windows(2).map(|pair| (expiry(&pair[1]) - expiry(&pair[0])) / every);
        let left_out: u64 = steps.map(|step| (step.round() as u64).saturating_sub(1)).sum();
        Some(Timer {
            runs,
            every,
            missed: a.missed + b.missed,
            skipped: left_out.min(a.skipped + b.skipped),
            moved: a.moved + b.moved + usize::from(!are_together),
            looked: a.looked + b.looked,
            again: a.again,
        })
    }

    /// Whether it keeps that schedule, and is not set again that long after it was served.
    fn is_schedule(&self, again: &Timer, schedule: &Timer) -> bool {
        let is_round = || digits(schedule.every) <= digits(again.every) + MORE_DIGITS;
        schedule.score() as f64 >= KEEPS_SCHEDULE * again.score() as f64 && (self.shows_drift(schedule) || is_round())
    }

    /// Whether a timer that is set again would be seen to drift away from this schedule: waits are rounded by little, and its moments stay
    /// what they are.
    fn shows_drift(&self, schedule: &Timer) -> bool {
        self.rounding.late < self.rounding.tolerance && schedule.moved == 0
    }

    /// Whether the moments of this schedule come later after later starts, as those of a pause, and not when they are due whatever was before.
    /// `None` where all starts are about as late.
    fn drifts(&self, timer: &Timer) -> Option<bool> {
        let step = |pair: &[usize]| {
            let (a, b) = (&self.runs[pair[0]], &self.runs[pair[1]]);
            let (late, step) = (a.start - a.expiry?, b.expiry? - a.expiry?);
            // What is later than half of a period is not due at the next moment.
            let is_single = (step / timer.every).round() == 1.0 && late < timer.every / 2.0;
            is_single.then_some((late, step))
        };
        let mut steps: Vec<(f64, f64)> = timer.runs.windows(2).filter_map(step).collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (early, late) = steps.split_at(steps.len() / 2);
        let mean =
            |of: &[(f64, f64)], which: fn(&(f64, f64)) -> f64| of.iter().map(which).sum::<f64>() / of.len() as f64;
        let by = |which: fn(&(f64, f64)) -> f64| mean(late, which) - mean(early, which);
        let mean_step = mean(&steps, |step| step.1);
        let square = steps.iter().map(|step| (step.1 - mean_step).powi(2)).sum::<f64>() / steps.len() as f64;
        let error = 2.0 * (square / steps.len() as f64).sqrt();
        let later = by(|step| step.0);
        (steps.len() >= LEAST && later > 2.0 * SURELY * error).then(|| by(|step| step.1) > later / 2.0)
    }

    /// How many digits a schedule's period may have whose drift would not show.
    fn most_digits(&self, schedule: &Timer) -> usize {
        if self.drifts(schedule).is_some() { MOST_DIGITS } else { MOST_DIGITS_OF_QUIET }
    }

    /// The most frequent timer of the shortest time that is set again when it was served, and explains some of these runs.
    fn again(&self, is_left: &[bool]) -> Option<Timer> {
        let left: Vec<usize> = self.left(is_left).collect();
        if left.len() < LEAST {
            return None;
        }
        let firsts = &left[..left.len().min(FIRST)];
        let best = |every: f64, until: usize| {
            let all = firsts.iter().map(|first| self.follow(*first, every, until));
            all.max_by_key(Timer::score)
        };
        self.peaks(Again::Served, is_left).into_iter().find_map(|(low, high)| {
            let (low, high) = (low - self.rounding.late / 2.0, high + self.rounding.late / 2.0);
            let step = (high - low) / f64::from(STEPS);
            let times = (0..=STEPS).map(|at| low + f64::from(at) * step).filter(|every| *every > 0.0);
            let tried: Vec<Timer> = times.filter_map(|every| best(every, self.searched)).collect();
            let most = tried.iter().max_by_key(|timer| timer.score())?;
            let timer = best(most.every, self.runs.len()).filter(|timer| self.holds(timer, is_left))?;
            let (low, high) = self.pause(&timer.runs);
            Some(Timer { every: roundest(low, high), ..timer })
        })
    }

    /// The time between which and which a timer is set that begins these activations: it may be set at any moment of one. Most waits are
    /// rounded by less than a millisecond.
    fn pause(&self, runs: &[usize]) -> (f64, f64) {
        let Rounding { early, late, tolerance } = self.rounding;
        let late = late.min(1e6);
        let pairs = || runs.windows(2).filter_map(|pair| Some((self.runs[pair[0]], self.runs[pair[1]].expiry?)));
        let since_start: Vec<f64> = pairs().map(|(run, expiry)| expiry - run.start).collect();
        let since_done: Vec<f64> = pairs().map(|(run, expiry)| expiry - run.done).collect();
        // What nearly all allow for. Of a clock of whole milliseconds waits may be mostly short or mostly long; they are not short on average.
        let mean = since_start.iter().sum::<f64>() / since_start.len().max(1) as f64;
        let (low, high) = (quantile(&since_done, 0.9) - late, (quantile(&since_start, 0.1) + early).min(mean));
        let (low, high) = if low <= high { (low, high) } else { (middle(&since_done) - late, middle(&since_start)) };
        (low - tolerance, high + tolerance)
    }

    /// The activations of a timer that is set again for this time, from this one on.
    fn follow(&self, first: usize, every: f64, until: usize) -> Timer {
        let Rounding { early, late, tolerance } = self.rounding;
        let runs = &self.runs[..until];
        let mut timer = Timer { runs: vec![first], ..Timer::new(Again::Served, every) };
        // The earliest and the latest moment at which it may have been set.
        let (mut at, mut set) = (first, (runs[first].start, runs[first].done));
        loop {
            let due = (set.0 + every, set.1 + every);
            at = (at + 1).max(runs.partition_point(|run| run.done < due.0 - early));
            let Some(run) = runs.get(at) else { return timer };
            let (earliest, latest) = (due.0 - early - tolerance, due.1 + late + tolerance);
            if run.expiry.is_some_and(|expiry| (earliest..=latest).contains(&expiry)) {
                timer.looked += latest - earliest;
                timer.runs.push(at);
                set = (run.start, run.done);
            } else if run.start <= latest {
                // It was served with what another wake began.
                set = (due.0.max(run.start), due.0.max(run.done));
            } else {
                timer.looked += latest - earliest;
                timer.missed += 1;
                set = (run.start, run.done);
                if timer.missed > LEAST.max(timer.runs.len()) {
                    return timer;
                }
            }
        }
    }

    /// The timer that keeps a schedule and explains most of these runs.
    fn schedule(&self, is_left: &[bool]) -> Option<Timer> {
        let left: Vec<f64> = self.left(is_left).filter_map(|run| self.runs[run].expiry).collect();
        if left.len() < LEAST {
            return None;
        }
        let searched = &left[..left.len().min(SEARCHED_MOMENTS)];
        let until = self.runs.partition_point(|run| run.start <= searched[searched.len() - 1] + self.window());
        let keep = |period: f64, until: usize| self.keep(period, &left, until);
        let half = self.rounding.late / 2.0;
        let peaks = self.peaks(Again::Schedule, is_left).into_iter();
        let tried = peaks.filter_map(|(low, high)| {
            let periods = self.periods(searched, (low - half, high + half));
            let tried: Vec<Timer> = periods.into_iter().map(|period| keep(period, until)).collect();
            let most = tried.iter().map(Timer::score).max()?;
            let as_good = tried.into_iter().filter(|timer| timer.score() as f64 >= AS_GOOD_PERIOD * most as f64);
            as_good.min_by_key(|timer| (digits(timer.every), -timer.score()))
        });
        // Of one that is kept too badly, multiples may be kept well enough.
        let best = keep(tried.max_by_key(Timer::score)?.every, self.runs.len());
        let part = PARTS.iter().find_map(|parts| {
            // Within a shorter one any moment is kept.
            let part = (best.every / parts > self.window()).then(|| keep(best.every / parts, self.runs.len()))?;
            // At least half of the moments in between are kept.
            let is_kept = part.runs.len() as f64 >= (1.0 + parts) / 2.0 * best.runs.len() as f64;
            (is_kept && self.holds(&part, is_left)).then_some(part)
        });
        part.or(Some(best).filter(|timer| self.holds(timer, is_left)))
    }

    /// What a wait of a timer that is due may end late, at most.
    fn window(&self) -> f64 {
        self.rounding.late + 2.0 * self.rounding.tolerance
    }

    /// Periods between these bounds with which most of these moments keep a schedule: the roundest one that may be meant by the first of
    /// them, by twice as many, and so on, and the best one by all.
    fn periods(&self, moments: &[f64], (low, high): (f64, f64)) -> Vec<f64> {
        let window = self.window();
        let low = low.max(window);
        let span = moments[moments.len() - 1] - moments[0];
        let (mut best, mut periods, mut found) = (vec![(low, high)], FIRST_PERIODS, Vec::new());
        if low >= high {
            return found;
        }
        loop {
            // In so many periods the middle of a stretch is off by a part of the window.
            let width = 2.0 * window / DRIFT / periods;
            let parts = best.iter().flat_map(|(low, high)| {
                let parts = ((high - low) / width).ceil().max(1.0);
                let width = (high - low) / parts;
                (0..parts as u32).map(move |part| (low + f64::from(part) * width, low + f64::from(part + 1) * width))
            });
            let until = moments.partition_point(|moment| *moment <= moments[0] + periods * high);
            let some = || moments[..until].iter().copied();
            let mut rated: Vec<(usize, (f64, f64))> =
                parts.map(|(low, high)| (self.phase(some(), (low + high) / 2.0).0, (low, high))).collect();
            rated.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.0.total_cmp(&b.1.0)));
            rated.truncate(BEST);
            let Some((most, first)) = rated.first().copied() else { break };
            let as_good = || rated.iter().filter(|(count, _)| *count as f64 >= AS_GOOD_PERIOD * most as f64);
            let longest = as_good().map(|(_, (_, high))| *high).fold(low, f64::max);
            found.push(roundest_period(as_good().map(|(_, (low, _))| *low).fold(longest, f64::min), longest));
            if periods * low >= span {
                found.push((first.0 + first.1) / 2.0);
                break;
            }
            best = rated.into_iter().map(|(_, stretch)| stretch).collect();
            periods *= 2.0;
        }
        found.dedup();
        found
    }

    /// How many of these moments are at most that late by a schedule of this period, and one of its moments.
    fn phase(&self, moments: impl Iterator<Item = f64>, period: f64) -> (usize, f64) {
        let mut phases: Vec<f64> = moments.map(|moment| moment.rem_euclid(period)).collect();
        phases.sort_unstable_by(f64::total_cmp);
        let (n, window) = (phases.len(), self.window());
        let (mut end, mut best) = (0, (0, 0.0));
        for first in 0..n {
            let at = |place: usize| phases[place % n] + if place < n { 0.0 } else { period };
            end = end.max(first);
            while end < first + n && at(end) <= phases[first] + window {
                end += 1;
            }
            if end - first > best.0 {
                // In the middle: later ones may be earlier or later than all of these.
                best = (end - first, (phases[first] + at(end - 1) - window) / 2.0);
            }
        }
        (best.0, best.1 + self.rounding.tolerance)
    }

    /// The activations, among the first runs, of a timer that keeps a schedule of this period. Its moments are among those that are left, or
    /// meet others.
    fn keep(&self, period: f64, left: &[f64], until: usize) -> Timer {
        let Rounding { late, tolerance, .. } = self.rounding;
        let mut timer = Timer::new(Again::Schedule, period);
        // Until it explains most: later the timer may be no more, and others' activations meet its moments by chance.
        let mut best = timer.clone();
        let (mut next, mut is_missed) = (0, false);
        let runs = &self.runs[..until];
        let last = runs.last().map_or(0.0, |run| run.start);
        let first = self.timed.first().and_then(|run| self.runs[*run].expiry).unwrap_or(last);
        let phase = self.phase(left.iter().copied().take(SEARCHED_MOMENTS), period).1;
        // From the moment that is before the first wait's end.
        let mut due = phase + ((first - phase - late) / period).ceil() * period;
        while due <= last && timer.missed <= LEAST.max(timer.runs.len()) {
            let (earliest, latest) = (due - tolerance, due + late + tolerance);
            next += runs[next..].partition_point(|run| run.done < earliest);
            let begins = |run: &Served| run.start.min(run.expiry.unwrap_or(run.start)) <= latest;
            let is_due = |run: &usize| self.dues(*run).any(|due| (earliest..=latest).contains(&due));
            let may_be = |run: &usize| begins(&runs[*run]) || self.dues(*run).any(|due| due <= latest);
            if let Some(run) = (next..until).take_while(may_be).find(is_due) {
                timer.runs.push(run);
                (next, is_missed) = (run + 1, false);
                if timer.score() >= best.score() {
                    let Timer { missed, skipped, moved, looked, .. } = timer;
                    let runs = &timer.runs[best.runs.len()..];
                    best.runs.extend(runs);
                    best = Timer { missed, skipped, moved, looked, ..best };
                }
                due += period;
                continue;
            }
            let was_busy = next > 0 && runs[next - 1].done >= latest;
            let has_run = !timer.runs.is_empty();
            let by = self.moves_by(left, due, period, was_busy);
            if by > 0.0 {
                // The phase may be any.
                timer.looked += period;
                timer.moved += usize::from(has_run);
                timer.missed += usize::from(has_run && !is_missed);
                (due, is_missed) = (due + by, was_busy);
                continue;
            }
            if runs[next..].first().is_some_and(begins) {
                // It was served with what another wake began.
                (next, is_missed) = (next + 1, false);
            } else if has_run {
                timer.skipped += 1;
                // One that the thread was busy at all the time is missed with those of before.
                timer.missed += usize::from(!was_busy || !is_missed);
                is_missed = true;
            }
            due += period;
        }
        best.looked += (best.runs.len() + best.missed) as f64 * self.window() * self.offered();
        best
    }

    /// By how much later a schedule has its moments from this one on, which it did not keep: 0 if most of the next ones that are left keep
    /// to it. A program that fell behind may go on with another phase, and some choose one for each moment.
    fn moves_by(&self, left: &[f64], due: f64, period: f64, was_busy: bool) -> f64 {
        let first = left.partition_point(|moment| *moment <= due);
        let next = || left[first..].iter().copied().take_while(|moment| *moment <= due + FIRST_PERIODS * period);
        let (most, phase) = self.phase(next(), period);
        let by = (phase - due).rem_euclid(period);
        let kept = |moment: &f64| (moment - due + self.rounding.tolerance).rem_euclid(period) <= self.window();
        let is_same = 2 * next().filter(kept).count() >= most;
        // What goes on next to where it was drifts.
        let is_far = || by.min(period - by) >= FAR * self.window();
        let is_other = || most as f64 >= OWN * FIRST_PERIODS && is_far();
        if !is_same && (was_busy || is_other()) { by } else { 0.0 }
    }

    /// Of the runs that began because their time was over, those.
    fn left(&self, is_left: &[bool]) -> impl Iterator<Item = usize> {
        self.timed.iter().copied().filter(|run| is_left[*run])
    }

    /// Whether it explains enough, and more than chance would.
    fn holds(&self, timer: &Timer, is_left: &[bool]) -> bool {
        let kept = timer.runs.len() as f64;
        let all = kept + timer.missed as f64;
        let new = timer.runs.iter().filter(|run| is_left[**run]).count();
        let least = match timer.again {
            Again::Served => KEPT,
            Again::Schedule => KEPT_OF_SCHEDULE,
        };
        let span = self.runs.last().map_or(1.0, |run| run.start.max(1.0));
        let chance = self.timed.len() as f64 / span * timer.looked / all;
        let start = |run: Option<&usize>| run.map_or(0.0, |run| self.runs[*run].start);
        let (first, last) = (start(timer.runs.first()), start(timer.runs.last()));
        // What fits for a while is chance.
        let lasts = timer.again == Again::Served || last - first >= LASTS * (span - first);
        // Of a time that may be nearly any there is none.
        let is_known = timer.again == Again::Schedule || timer.looked <= WIDEST * timer.every * all;
        timer.runs.len() >= LEAST
            && lasts
            && is_known
            && new as f64 >= OWN * kept
            && kept >= least * all
            && chance < 1.0
            && (timer.again == Again::Schedule || kept - chance * all >= KEPT_BEYOND_CHANCE * (1.0 - chance) * all)
            && kept - chance * all >= SIGNIFICANT * (chance * (1.0 - chance) * all).sqrt()
            && self.drifts(timer).is_none_or(|drifts| drifts == (timer.again == Again::Served))
    }

    /// Times that are between most of these runs and later ones, ascending.
    fn peaks(&self, again: Again, is_left: &[bool]) -> Vec<(f64, f64)> {
        let Rounding { early, late, tolerance } = self.rounding;
        let timed = &self.timed[..self.timed.partition_point(|run| *run < self.searched)];
        let between = |from: usize, to: usize| {
            let (from, to) = (&self.runs[from], self.runs[to].expiry?);
            Some(match again {
                Again::Served => (to - from.done - late, to - from.start + early),
                // Both are late, and most by about as much.
                Again::Schedule => (to - from.expiry? - late / 2.0, to - from.expiry? + late / 2.0),
            })
        };
        let mut times: Vec<(f64, f64)> = Vec::new();
        for (at, from) in timed.iter().enumerate().filter(|(_, from)| is_left[**from]) {
            let later = timed[at + 1..].iter().take(LOOKED_AHEAD);
            times.extend(later.filter_map(|to| between(*from, *to)).filter(|(_, high)| *high > 0.0));
        }
        let mut ends: Vec<End> = (0..)
            .zip(&times)
            .flat_map(|(of, (low, high))| [End { at: low.max(0.0), step: 1, of }, End { at: *high, step: -1, of }])
            .collect();
        ends.sort_unstable_by(|a, b| a.at.total_cmp(&b.at).then(b.step.cmp(&a.step)));
        let mut peaks: Vec<(f64, f64)> = Vec::new();
        while let Some((low, high)) = most_frequent(&ends).filter(|_| peaks.len() < PEAKS) {
            let (low, high) = (low - tolerance, high + tolerance);
            ends.retain(|end| times[end.of].1 < low || times[end.of].0 > high);
            peaks.push((low, high));
        }
        peaks.sort_by(|a, b| a.0.total_cmp(&b.0));
        peaks
    }
}

/// Where one of several times that may be meant begins or ends.
struct End {
    at: f64,
    step: i64,
    of: usize,
}

/// Where most overlap of those with these ends, and its surroundings.
fn most_frequent(ends: &[End]) -> Option<(f64, f64)> {
    let so_far = |overlap: &mut i64, end: &End| {
        *overlap += end.step;
        Some(*overlap)
    };
    let overlaps: Vec<i64> = ends.iter().scan(0, so_far).collect();
    let (top, most) = overlaps.iter().enumerate().max_by_key(|(at, overlap)| (**overlap, std::cmp::Reverse(*at)))?;
    if (*most as usize) < LEAST {
        return None;
    }
    let is_top = |overlap: &&i64| **overlap as f64 >= PEAK * *most as f64;
    let before = overlaps[..top].iter().rev().take_while(is_top).count();
    let after = overlaps[top..].iter().take_while(is_top).count();
    Some((ends[top - before].at, ends[(top + after).min(ends.len() - 1)].at))
}

/// The largest number of fewest digits between these, one that ends in 5 before others: waits are rounded up.
fn roundest(low: f64, high: f64) -> f64 {
    let low = low.max(1.0);
    let mut unit = 10f64.powf(high.max(1.0).log10().floor());
    while unit >= 1.0 {
        for step in [unit, unit / 2.0] {
            let number = (high / step).floor() * step;
            if number >= low {
                return number;
            }
        }
        unit /= 10.0;
    }
    low
}

/// The same of a period in ns; one of a round number of mHz comes before a longer number.
fn roundest_period(low: f64, high: f64) -> f64 {
    const NS_MHZ: f64 = 1e12;
    let (period, rate) = (roundest(low, high), roundest(NS_MHZ / high, NS_MHZ / low));
    if decimals(rate) < decimals(period) { NS_MHZ / rate } else { period }
}

/// How many digits a time in ns has, or its rate.
fn digits(period: f64) -> usize {
    decimals(period.round()).min(decimals((1e12 / period).round()))
}

fn decimals(number: f64) -> usize {
    format!("{number:.0}").trim_end_matches('0').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;
    /// epoll_wait as CPython calls it: in whole milliseconds.
    const WHOLE_MS: Rounding = Rounding { early: 0.0, late: 2.0 * MS, tolerance: 0.1 * MS };
    const WHOLE_MS_OF_POLL: Rounding = Rounding { early: 0.0, late: MS, tolerance: 0.1 * MS };
    const EXACT: Rounding = Rounding { early: 0.0, late: 0.02 * MS, tolerance: 0.05 * MS };
    const OF_GO: Rounding = Rounding { early: MS, late: 2.0 * MS, tolerance: 0.1 * MS };

    /// A multiplicative generator (Lewis, Goodman and Miller 1969), from 0 to 1.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0 * 16_807 % 2_147_483_647;
            self.0 as f64 / 2_147_483_647.0
        }

        /// Times between events of that mean.
        fn pause(&mut self, mean: f64) -> f64 {
            -mean * (1.0 - self.next()).ln()
        }
    }

    /// A callback of an event loop.
    #[derive(Clone, Copy)]
    struct Callback {
        again: Again,
        every: f64,
        work: f64,
    }

    /// An event loop that runs these for 5 s. Messages come in between, at that mean time, and take 50 µs of work; its thread gets the
    /// CPU 0.1 ms late, and now and then up to 3 ms.
    fn event_loop(callbacks: &[Callback], messages: Option<f64>, rounding: Rounding) -> Vec<(Again, f64, usize)> {
        let mut random = Random(12_345);
        let mut due: Vec<f64> = callbacks.iter().map(|callback| callback.every).collect();
        let mut message = messages.map_or(f64::INFINITY, |mean| random.pause(mean));
        let (mut now, mut runs) = (0f64, Vec::new());
        while now < 5_000.0 * MS {
            let next = due.iter().copied().fold(f64::INFINITY, f64::min);
            let wait = match rounding.late >= MS {
                true => ((next - now) / MS).ceil() * MS,
                false => next - now + 0.01 * MS * random.next(),
            };
            let (is_message, end) = (message < now + wait, message.min(now + wait));
            let late = if random.next() < 0.1 { 3.0 * random.next() } else { 0.1 };
            let start = end.max(now) + late * MS;
            now = start + 0.05 * MS;
            // What became due meanwhile is served without a wait.
            while let Some(at) = due.iter().position(|due| *due <= now) {
                now += callbacks[at].work;
                let from = if callbacks[at].again == Again::Served { now } else { due[at] };
                due[at] = from + callbacks[at].every;
            }
            if is_message {
                message = now + random.pause(messages.unwrap_or_default());
            }
            runs.push(Served { start, done: now, expiry: Some(end).filter(|_| !is_message) });
        }
        let mut found: Vec<(Again, f64, usize)> = EventLoop::of(runs, rounding)
            .timers()
            .into_iter()
            .map(|timer| (timer.again, timer.every / MS, timer.runs.len()))
            .collect();
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        found
    }

    fn times(found: &[(Again, f64, usize)]) -> Vec<(Again, f64)> {
        found.iter().map(|(again, every, _)| (*again, *every)).collect()
    }

    fn callback(again: Again, every_ms: f64, work_ms: f64) -> Callback {
        Callback { again, every: every_ms * MS, work: work_ms * MS }
    }

    #[test]
    fn two_coroutines_that_sleep_again_and_again_are_told_apart_also_between_messages() {
        let two = [callback(Again::Served, 10.0, 0.3), callback(Again::Served, 25.0, 0.8)];
        for messages in [None, Some(15.0 * MS)] {
            let found = event_loop(&two, messages, WHOLE_MS);
            assert_eq!(times(&found), [(Again::Served, 10.0), (Again::Served, 25.0)], "{found:?}");
            assert!(found[0].2 > 350 && found[1].2 > 120, "{found:?}");
        }
    }

    /// Pauses of one quiet thread, ms, in waits of whole milliseconds, whose clock may have whole ones, too. It gets the CPU that late, ms,
    /// and up to as much on top.
    fn quiet_pauses(pauses: &[f64], late: f64, has_whole_clock: bool, seed: u64) -> Vec<Served> {
        let clock = |now: f64| if has_whole_clock { (now / MS).floor() * MS } else { now };
        let (mut random, mut now, mut runs) = (Random(seed), 0f64, Vec::new());
        let mut due: Vec<f64> = pauses.iter().map(|pause| pause * MS).collect();
        while now < 4_000.0 * MS {
            let next = due.iter().copied().fold(f64::INFINITY, f64::min);
            let expiry = now + ((next - clock(now)) / MS).ceil().max(1.0) * MS;
            let start = expiry + late * (1.0 + random.next()) * MS;
            now = start + 0.02 * MS;
            for (due, pause) in due.iter_mut().zip(pauses).filter(|(due, _)| **due <= clock(start)) {
                *due = clock(now) + pause * MS;
                now += 0.01 * MS;
            }
            runs.push(Served { start, done: now, expiry: Some(expiry) });
        }
        runs
    }

    #[test]
    fn pauses_that_are_set_by_one_activation_again_and_again_are_two() {
        // As of asyncio: five of 10 ms and what they are rounded by are two of 25 ms.
        for (late, seed) in [(0.04, 7_001), (0.04, 7_002), (0.06, 7_003), (0.1, 7_004)] {
            let timers = EventLoop::of(quiet_pauses(&[10.0, 25.0], late, false, seed), WHOLE_MS).timers();
            let found: Vec<(Again, f64)> = timers.iter().map(|of| (of.again, of.every / MS)).collect();
            assert_eq!(found, [(Again::Served, 10.0), (Again::Served, 25.0)], "{late} {seed}");
            assert!(timers[1].runs.len() > 145, "{late} {seed}: {}", timers[1].runs.len());
        }
    }

    #[test]
    fn pauses_of_a_clock_of_whole_milliseconds_are_not_taken_for_shorter_ones() {
        // As of libuv: of 25 ms the waits are for 24.5 or for 25.5.
        for pauses in [[10.0, 25.0], [9.0, 33.0]] {
            for (late, seed) in [(0.04, 7_011), (0.06, 7_012), (0.1, 7_013), (0.15, 7_014), (0.15, 7_015)] {
                let timers = EventLoop::of(quiet_pauses(&pauses, late, true, seed), OF_GO).timers();
                let found: Vec<(Again, f64)> = timers.iter().map(|of| (of.again, of.every / MS)).collect();
                assert_eq!(found, pauses.map(|pause| (Again::Served, pause)), "{late} {seed}");
            }
        }
    }

    #[test]
    fn a_schedule_that_a_client_keeps_between_the_answers_of_its_servos_is_found() {
        let found = event_loop(&[callback(Again::Schedule, 10.0, 0.3)], Some(6.0 * MS), WHOLE_MS);
        assert_eq!(times(&found), [(Again::Schedule, 10.0)], "{found:?}");
    }

    #[test]
    fn two_schedules_that_meet_in_each_second_moment_of_one_are_two() {
        let two = [callback(Again::Schedule, 10.0, 0.3), callback(Again::Schedule, 25.0, 0.8)];
        let found = event_loop(&two, None, WHOLE_MS);
        assert_eq!(times(&found), [(Again::Schedule, 10.0), (Again::Schedule, 25.0)], "{found:?}");
        // One so fast that each wait is a few of the milliseconds that it is given in.
        let two = [callback(Again::Schedule, 5.0, 0.2), callback(Again::Schedule, 100.0, 0.8)];
        let found = event_loop(&two, None, WHOLE_MS);
        assert_eq!(times(&found)[0], (Again::Schedule, 5.0), "{found:?}");
    }

    #[test]
    fn schedules_that_meet_often_are_not_taken_for_pauses() {
        for (periods, rounding) in [
            ([10.0, 20.0, 50.0], WHOLE_MS),
            ([10.0, 20.0, 50.0], EXACT),
            ([5.0, 12.5, 33.0], WHOLE_MS),
            ([5.0, 12.5, 33.0], EXACT),
        ] {
            let found = event_loop(&periods.map(|period| callback(Again::Schedule, period, 0.1)), None, rounding);
            // Of one that is always another's moment, too, nothing shows.
            let is_right = |of: &(Again, f64)| of.0 == Again::Schedule && periods.contains(&of.1);
            assert!(times(&found).iter().all(is_right) && times(&found)[0].1 == periods[0], "{found:?}");
        }
    }

    #[test]
    fn a_schedule_that_begins_again_after_each_stall_is_one() {
        // Each thirtieth run takes 40 ms, and the program goes on from then.
        let mut due = 0.0;
        let run = |n: u32| {
            due += 10.0 * MS;
            let (expiry, busy) = (due, if n % 30 == 29 { 40.0 } else { 0.3 });
            let start = expiry + 0.1 * MS;
            due = due.max(start + busy * MS - 10.0 * MS);
            Served { start, done: start + busy * MS, expiry: Some(expiry) }
        };
        let runs: Vec<Served> = (0..3_000).map(run).collect();
        for rounding in [EXACT, WHOLE_MS] {
            let timers = EventLoop::of(runs.clone(), rounding).timers();
            let [timer] = &timers[..] else { panic!("{} timers", timers.len()) };
            assert_eq!((timer.again, timer.every), (Again::Schedule, 10.0 * MS));
            assert!(timer.runs.len() > 2_700, "{}", timer.runs.len());
        }
    }

    #[test]
    fn a_schedule_whose_thread_loses_its_cpu_once_it_has_computed_how_long_to_wait_is_one() {
        // Half of the times it has to wait for the GIL, for up to 5 ms, and now and then once more: then it waits that much longer.
        let mut random = Random(5_050);
        let (mut now, mut runs, mut off) = (0f64, Vec::new(), Vec::new());
        for n in 1..800u32 {
            let due = f64::from(n) * 10.0 * MS;
            let mut lost = || if random.next() < 0.5 { (0.1 + 4.9 * random.next()) * MS } else { 0.0 };
            let [last, other] = if n % 7 == 0 { [lost(), 0.3 * MS] } else { [lost(), 0.0] };
            let (wait, is_before) = (due - now, n % 3 == 0);
            // The one before may be from before it computed it.
            let expiry = now + wait + last + if is_before { 0.0 } else { other };
            off.push([last, if other > 0.0 { last + other } else { 0.0 }]);
            let start = expiry + 0.1 * MS;
            now = start + 0.3 * MS;
            runs.push(Served { start, done: now, expiry: Some(expiry) });
        }
        let timers = EventLoop { off, ..EventLoop::of(runs, EXACT) }.timers();
        let [timer] = &timers[..] else { panic!("{} timers", timers.len()) };
        assert_eq!((timer.again, timer.every), (Again::Schedule, 10.0 * MS));
        assert!(timer.runs.len() > 780 && timer.missed < 10, "{} {}", timer.runs.len(), timer.missed);
    }

    #[test]
    fn a_turn_that_is_taken_late_and_moves_all_later_ones_is_of_the_same_schedule() {
        // Each 20 ms, 2 to 6 ms of work. Now and then the thread gets the CPU up to 80 ms late: it takes its next turn, not all that it
        // missed.
        let mut random = Random(2_718);
        let (mut at, mut now, mut runs) = (0f64, 0f64, Vec::new());
        while runs.len() < 800 {
            let expiry = now + (at - now).max(0.0) + 0.01 * MS * random.next();
            let late = if random.next() < 0.03 { 80.0 * random.next() } else { 0.2 * random.next() };
            let start = expiry + late * MS;
            now = start;
            loop {
                now += (2.0 + 4.0 * random.next()) * MS;
                at = f64::max(at + 20.0 * MS, now - 20.0 * MS);
                if at > now {
                    break;
                }
            }
            runs.push(Served { start, done: now, expiry: Some(expiry) });
        }
        let timers = EventLoop::of(runs, EXACT).timers();
        let [timer] = &timers[..] else { panic!("{} timers", timers.len()) };
        assert_eq!((timer.again, timer.every), (Again::Schedule, 20.0 * MS));
        assert!(timer.runs.len() > 700, "{}", timer.runs.len());
    }

    /// Timers of Qt. The times of coarse ones, from so many ms on, are an even number of ms, and in the second half of 50 ms one that leaves 2
    /// by 4: a timer of 33 ms comes each 32 ms. So large a share of the wakes is up to 60 ms late.
    fn timers_of_qt(periods: &[f64], coarse: f64, load: f64, rounding: Rounding) -> Vec<(Again, f64, usize)> {
        let even = |at: f64| {
            let (ms, up) = ((at / MS) as u64, u64::from(at / MS % 50.0 >= 25.0));
            (2 * ((ms / 2) | up)) as f64 * MS
        };
        let mut random = Random(1_618);
        let (mut now, mut runs) = (0f64, Vec::new());
        let mut due: Vec<f64> = periods.iter().map(|period| period * MS).collect();
        while now < 6_000.0 * MS {
            let expiry = due.iter().copied().fold(f64::INFINITY, f64::min).max(now);
            let late = if random.next() < load { 60.0 * random.next() } else { 0.2 * random.next() };
            let start = expiry + late * MS;
            for (due, period) in due.iter_mut().zip(periods).filter(|(due, _)| **due <= start) {
                *due += period * MS;
                if *due < start {
                    *due = start + period * MS;
                }
                if *period >= coarse {
                    *due = even(*due);
                }
            }
            now = start + 0.1 * MS;
            runs.push(Served { start, done: now, expiry: Some(expiry) });
        }
        let timers = EventLoop::of(runs, rounding).timers();
        timers.iter().map(|timer| (timer.again, timer.every / MS, timer.runs.len())).collect()
    }

    #[test]
    fn coarse_timers_that_go_on_from_where_their_thread_was_late_are_schedules() {
        for (periods, rounding) in [
            (vec![33.0], EXACT),
            (vec![5.0, 20.0, 33.0], EXACT),
            (vec![33.0], WHOLE_MS_OF_POLL),
            (vec![5.0, 20.0, 33.0], WHOLE_MS_OF_POLL),
        ] {
            let found = timers_of_qt(&periods, 20.0, 0.01, rounding);
            let has = |period: f64, least: usize| {
                found.iter().any(|(again, every, runs)| (*again, *every) == (Again::Schedule, period) && *runs > least)
            };
            assert!(has(32.0, 120) && found.len() <= periods.len(), "{periods:?} {rounding:?}: {found:?}");
            assert!(periods.len() == 1 || has(5.0, 900), "{periods:?} {rounding:?}: {found:?}");
        }
    }

    #[test]
    fn schedules_whose_thread_is_often_late_are_not_taken_for_pauses() {
        for load in [0.02, 0.05, 0.1, 0.2] {
            for (rounding, coarse) in [(EXACT, f64::INFINITY), (EXACT, 20.0), (WHOLE_MS_OF_POLL, f64::INFINITY)] {
                for periods in [vec![20.0], vec![5.0, 20.0, 33.0], vec![10.0, 25.0]] {
                    let found = timers_of_qt(&periods, coarse, load, rounding);
                    // 24 and 32 of 25 and 33 where they are coarse.
                    let near = |every: f64, period: f64| {
                        (period - every) / period < if period < coarse { 0.001 } else { 0.05 }
                    };
                    let is_right = |of: &(Again, f64, usize)| {
                        of.0 == Again::Schedule && periods.iter().any(|period| near(of.1, *period) && of.1 <= *period)
                    };
                    assert!(found.iter().all(is_right), "{load} {rounding:?} {coarse} {periods:?}: {found:?}");
                    assert!(!found.is_empty() || load > 0.05, "{load} {rounding:?} {coarse} {periods:?}");
                }
            }
        }
    }

    #[test]
    fn a_thread_that_is_busy_for_as_long_as_it_pauses_shows_no_pause() {
        // Waits of 2 to 12 ms, and 5 to 11 ms of waiting for the GIL after each.
        let mut random = Random(2_468);
        let mut at = 0.0;
        let run = |_| {
            let expiry = at + (2.0 + 10.0 * random.next()).ceil() * MS;
            let start = expiry + 0.1 * MS;
            at = start + (5.0 + 6.0 * random.next()) * MS;
            Served { start, done: at, expiry: Some(expiry) }
        };
        let timers = EventLoop::of((0..400).map(run).collect(), WHOLE_MS).timers();
        assert!(timers.is_empty(), "{:?}", timers.iter().map(|of| (of.again, of.every)).collect::<Vec<_>>());
    }

    #[test]
    fn a_pause_whose_thread_is_now_and_then_long_at_work_is_no_schedule() {
        // 10 ms, and 60 µs until it runs, to within 5 µs: without the long ones 10.06 ms would keep time.
        let (mut random, mut at) = (Random(31_415), 0.0);
        let run = |n: u32| {
            let expiry = at + 10.0 * MS;
            let start = expiry + (0.05 + 0.005 * random.next()) * MS;
            at = start + if n % 40 == 39 { 2.0 * MS } else { 0.01 * MS };
            Served { start, done: at, expiry: Some(expiry) }
        };
        let timers = EventLoop::of((0..1_000).map(run).collect(), EXACT).timers();
        let [timer] = &timers[..] else { panic!("{} timers", timers.len()) };
        assert!(timer.again == Again::Served && timer.every == 10.0 * MS, "{:?} {}", timer.again, timer.every);
    }

    #[test]
    fn a_pause_and_what_a_quiet_thread_does_in_between_are_no_schedule() {
        // Each time 0.1 ms of work and 0.09 ms until it runs, to within 10 µs: 8.19 ms keep time nearly as well.
        let (mut random, mut at) = (Random(4_242), 0.0);
        let run = |_| {
            let expiry = at + 8.0 * MS;
            let start = expiry + (0.085 + 0.01 * random.next()) * MS;
            at = start + 0.1 * MS;
            Served { start, done: at, expiry: Some(expiry) }
        };
        let timers = EventLoop::of((0..600).map(run).collect(), WHOLE_MS).timers();
        let [timer] = &timers[..] else { panic!("{timers:?}") };
        assert!(timer.again == Again::Served && timer.every == 8.0 * MS, "{timer:?}");
    }

    #[test]
    fn schedules_and_a_delay_of_one_executor_are_told_apart() {
        let three = [
            callback(Again::Schedule, 10.0, 0.3),
            callback(Again::Schedule, 25.0, 0.8),
            callback(Again::Served, 40.0, 0.1),
        ];
        let found = event_loop(&three, None, EXACT);
        assert_eq!(times(&found)[..2], [(Again::Schedule, 10.0), (Again::Schedule, 25.0)], "{found:?}");
        assert!(found.len() == 3 && found[2].0 == Again::Served && (found[2].1 - 40.0).abs() < 0.2, "{found:?}");
    }

    #[test]
    fn a_schedule_that_ends_amid_others_is_one() {
        let moments = |period: f64, n: u32| (1..=n).map(move |k| f64::from(k) * period * MS);
        let mut moments: Vec<f64> = moments(10.0, 500).chain(moments(7.5, 400)).collect();
        moments.sort_by(f64::total_cmp);
        moments.dedup();
        let run = |expiry: f64| Served { start: expiry + 0.1 * MS, done: expiry + 0.2 * MS, expiry: Some(expiry) };
        let timers = EventLoop::of(moments.into_iter().map(run).collect(), EXACT).timers();
        let found: Vec<(Again, f64, usize, u64)> =
            timers.iter().map(|of| (of.again, of.every / MS, of.runs.len(), of.skipped)).collect();
        assert_eq!(found, [(Again::Schedule, 10.0, 500, 0), (Again::Schedule, 7.5, 400, 0)]);
    }

    #[test]
    fn a_schedule_that_moves_is_one() {
        // Rounded so much that the last 120 moments of 420 are another schedule, 3 ms later.
        let mut random = Random(8_888);
        let run = |k: u32| {
            let expiry = (f64::from(k) * 10.0 + if k > 300 { 3.0 } else { 0.0 } + 2.0 * random.next()) * MS;
            let start = expiry + 2.0 * MS * random.next();
            Served { start, done: start + 0.1 * MS, expiry: Some(expiry) }
        };
        let timers = EventLoop::of((1..=420).map(run).collect(), WHOLE_MS).timers();
        let [timer] = &timers[..] else { panic!("{} timers", timers.len()) };
        assert_eq!((timer.again, timer.every, timer.runs.len()), (Again::Schedule, 10.0 * MS, 420));
        assert_eq!((timer.moved, timer.skipped), (1, 0));
    }

    #[test]
    fn a_schedule_whose_moments_are_early_and_late_by_turns_is_one() {
        // To within 50 µs, each second one 100 µs later.
        let mut random = Random(2_020);
        let moments =
            (1..=600).map(|k| f64::from(k) * 10.0 * MS + (f64::from(k % 2) * 0.1 + 0.05 * random.next()) * MS);
        let run = |expiry: f64| Served { start: expiry + 0.1 * MS, done: expiry + 0.2 * MS, expiry: Some(expiry) };
        let timers = EventLoop::of(moments.map(run).collect(), EXACT).timers();
        let [timer] = &timers[..] else { panic!("{} timers", timers.len()) };
        assert!(
            timer.again == Again::Schedule && timer.every == 10.0 * MS && timer.runs.len() > 590,
            "{}",
            timer.every
        );
        // Two that are not half of a period apart are two.
        let mut moments: Vec<f64> = (1..=400).flat_map(|k| [f64::from(k) * 20.0, f64::from(k) * 20.0 + 6.0]).collect();
        moments.iter_mut().for_each(|moment| *moment *= MS);
        let timers = EventLoop::of(moments.into_iter().map(run).collect(), EXACT).timers();
        assert_eq!(timers.iter().map(|of| of.every).collect::<Vec<f64>>(), [20.0 * MS; 2]);
    }

    #[test]
    fn each_moment_that_went_by_during_a_stall_is_skipped() {
        let run = |n: u64| {
            let (expiry, busy) =
                if n <= 150 { (n * 10, if n == 150 { 1_003.0 } else { 0.3 }) } else { ((n + 100) * 10, 0.3) };
            let start = expiry as f64 * MS + 0.1 * MS;
            Served { start, done: start + busy * MS, expiry: Some(expiry as f64 * MS) }
        };
        let timers = EventLoop::of((0..300).map(run).collect(), EXACT).timers();
        let [timer] = &timers[..] else { panic!("{timers:?}") };
        // The period is known to within a step of the search.
        assert!(
            timer.again == Again::Schedule && timer.missed == 1 && (99..=101).contains(&timer.skipped),
            "{timer:?}"
        );
    }

    #[test]
    fn a_schedule_is_not_taken_for_each_second_of_its_moments() {
        // 5 ms and 32 ms, each moment up to 1 ms late.
        let moments = |period: f64, n: u32| (1..=n).map(move |k| f64::from(k) * period * MS);
        let mut random = Random(8_128);
        let mut moments: Vec<f64> = moments(5.0, 1_200).chain(moments(32.0, 187)).collect();
        moments.sort_by(f64::total_cmp);
        moments.dedup();
        let run = |moment: f64| {
            let expiry = moment + MS * random.next();
            Served { start: expiry + 0.1 * MS, done: expiry + 0.15 * MS, expiry: Some(expiry) }
        };
        let mut runs: Vec<Served> = moments.into_iter().map(run).collect();
        runs.sort_by(|a, b| a.start.total_cmp(&b.start));
        let timers = EventLoop::of(runs, WHOLE_MS_OF_POLL).timers();
        let found: Vec<f64> = timers.iter().map(|of| of.every / MS).collect();
        assert_eq!(found, [5.0, 32.0], "{timers:?}");
    }

    #[test]
    fn a_pause_that_is_rounded_is_no_schedule_of_a_longer_period() {
        // 33 ms after each start, as Go: it waits for 32 ms, and once more for 1 ms. It gets the CPU that late each time, ms, at least and on
        // top by chance.
        for (least, more) in [(0.05, 0.02), (0.06, 0.05), (0.1, 0.1), (0.2, 0.3), (0.1, 0.6), (0.4, 0.2)] {
            for seed in [11, 222, 3_333, 44_444] {
                let (mut random, mut at) = (Random(seed), 0.0);
                let run = |_| {
                    let mut late = || (least + more * random.next()) * MS;
                    let expiry = at + 32.0 * MS + late() + 1.01 * MS;
                    let start = expiry + late();
                    at = start + 0.02 * MS;
                    Served { start, done: at, expiry: Some(expiry) }
                };
                let timers = EventLoop::of((0..300).map(run).collect(), OF_GO).timers();
                assert!(timers.iter().all(|timer| timer.again == Again::Served), "{least} {more} {seed}: {timers:?}");
            }
        }
    }

    #[test]
    fn where_waits_end_as_often_as_one_is_rounded_by_no_pause_shows() {
        // 3 to 5.5 ms after each, and one of five times anything up to 12 ms: Go's tickers on a busy machine.
        let mut random = Random(6_174);
        let mut at = 0.0;
        let run = |_| {
            let pause = if random.next() < 0.2 { 12.0 * random.next() } else { 3.0 + 2.5 * random.next() };
            let expiry = at + pause * MS;
            at = expiry + 0.3 * MS * random.next();
            Served { start: expiry + 0.1 * MS, done: at.max(expiry + 0.1 * MS), expiry: Some(expiry) }
        };
        let timers = EventLoop::of((0..1_200).map(run).collect(), OF_GO).timers();
        assert!(timers.is_empty(), "{timers:?}");
    }

    #[test]
    fn waits_for_other_times_are_no_timer() {
        // Each for a time of its own, as a server's between random requests.
        for (mean, rounding) in [(4.0, WHOLE_MS), (20.0, WHOLE_MS), (4.0, EXACT), (20.0, EXACT)] {
            let (mut random, mut at) = (Random(777), 0.0);
            let run = |_| {
                let expiry = at + (random.pause(mean) + 1.0).ceil() * MS;
                let start = expiry + 0.1 * MS;
                at = start + 0.5 * MS * random.next();
                Served { start, done: at, expiry: Some(expiry) }
            };
            assert!(EventLoop::of((0..1_500).map(run).collect(), rounding).timers().is_empty(), "{mean} {rounding:?}");
        }
        // For 20 ms, unless a message comes: most do.
        let (mut random, mut at) = (Random(99), 0.0);
        let run = |_| {
            let pause = random.pause(15.0 * MS);
            let (start, expiry) = (at + pause.min(20.0 * MS) + 0.1 * MS, Some(at + 20.0 * MS));
            at = start + 0.2 * MS;
            Served { start, done: at, expiry: expiry.filter(|_| pause > 20.0 * MS) }
        };
        assert!(EventLoop::of((0..1_500).map(run).collect(), WHOLE_MS).timers().is_empty());
    }

    #[test]
    fn of_times_that_may_be_meant_the_roundest_is() {
        let between = [(9.27, 10.2), (24.2, 25.7), (24.2, 24.6), (33.21, 33.39), (99.0, 101.0), (0.9, 1.0)];
        assert_eq!(between.map(|(low, high)| roundest(low * MS, high * MS) / MS), [10.0, 25.0, 24.5, 33.3, 100.0, 1.0]);
    }
}
