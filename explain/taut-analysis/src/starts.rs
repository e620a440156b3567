//! When a loop should have started: when its messages were due by their stamps (`stamp_at`), else the moment that its absolute
//! timer was set to. Without the first a hop begins with the first stamp, so that a loop which is woken late shows in none; here
//! it does, with what the time was spent on.

use foldhash::HashMap;
use taut_points::Pass;
use taut_stats::Distribution;
use taut_timelines::{Call, SAME_CLOCK_NS, Timeline};

use crate::{
    Cause, LateStart, Starts, TimePiece,
    context::Context,
    line::ChainLine,
    messages::Messages,
    walk::{Moment, Walker},
};

/// Late starts that come with their causes.
const WORST: usize = 10;
/// Flag of clock_nanosleep: until a moment, not for a time.
const TIMER_ABSTIME: u32 = 1;
/// Most messages of a loop start after a sleep of their own.
const LEAST_SHARE: f64 = 0.5;

/// Of a chain of which most messages were due at a moment, or are first stamped after a sleep of the stamping thread until one.
pub(crate) fn of(
    line: &ChainLine,
    messages: &Messages,
    context: &Context<'_>,
    walker: &mut Walker<'_>,
) -> Option<Starts> {
    let first = *line.points.iter().find(|point| !point.is_due())?;
    let mut passes: Vec<(u64, Moment, Option<u64>)> = Vec::new();
    let mut all = 0;
    for (_, stamps) in line.messages(messages) {
        all += 1;
        let of_first = |stamp: &&Pass| stamp.point == first;
        if let Some(stamp) = stamps.iter().find(of_first) {
            let due = stamps.iter().find(|stamp| stamp.point == first.as_due()).map(|due| due.time_ns);
            passes.push((stamp.message, Moment::of(stamp.thread, stamp.time_ns), due));
        }
    }
    passes.sort_by_key(|(_, pass, _)| pass.time_ns);
    let mut last: HashMap<i32, u64> = HashMap::default();
    let mut starts: Vec<(u64, Moment, u64)> = Vec::new();
    // Of each: the place of its pass among all.
    let mut places: Vec<usize> = Vec::new();
    for (place, (id, pass, due)) in passes.iter().copied().enumerate() {
        let since_ns = last.insert(pass.tid, pass.time_ns).unwrap_or(0);
        let timeline = walker.timelines.threads.get(&pass.tid);
        let asked = || timeline.and_then(|timeline| intended(timeline, since_ns, pass.time_ns));
        if let Some(intended_ns) = due.or_else(asked) {
            starts.push((id, pass, intended_ns));
            places.push(place);
        }
    }
    // A single start has no period.
    if starts.len() < 2 || (starts.len() as f64) < LEAST_SHARE * f64::from(all) {
        return None;
    }
    let steps: Vec<u64> = starts.windows(2).map(|pair| pair[1].2.saturating_sub(pair[0].2)).collect();
    let mut periods = steps.clone();
    periods.sort_unstable();
    let period_ns = taut_stats::rank(&periods, 0.5).unwrap_or(0);
    let missing_before = |at: usize| {
        let (pass_ns, next_ns) = (starts[at].1.time_ns, starts[at + 1].1.time_ns);
        if context.may_lack(first, pass_ns, next_ns) {
            return 0;
        }
        // Passes of which the moment is not known have their periods, too; several messages of one start share its.
        let between = &passes[places[at] + 1..places[at + 1]];
        let others = between.iter().filter(|(_, pass, _)| pass.time_ns - pass_ns > period_ns / 2).count();
        let periods = (steps[at] as f64 / period_ns.max(1) as f64).round() as u64;
        periods.saturating_sub(1 + others as u64)
    };
    let missing = (0..steps.len()).map(missing_before).sum();
    let late: Vec<u64> = starts.iter().map(|(_, pass, intended)| pass.time_ns - intended).collect();
    let mut sorted = late.clone();
    sorted.sort_unstable();
    let mut by_lateness: Vec<usize> = (0..starts.len()).collect();
    by_lateness.sort_by_key(|at| (std::cmp::Reverse(late[*at]), *at));
    let worst = by_lateness.into_iter().take(WORST).map(|at| {
        let (id, pass, intended_ns) = starts[at];
        LateStart {
            id,
            intended_ns: intended_ns.saturating_sub(context.start_ns),
            late_ns: late[at],
            pieces: pieces(id, pass, intended_ns, walker),
        }
    });
    let worst = worst.collect();
    Some(Starts { period_ns, lateness: Distribution::of(&late, &sorted), missing, worst })
}

/// The moment that the thread's last sleep before `until_ns` was set to, if it slept since `since_ns`.
fn intended(timeline: &Timeline, since_ns: u64, until_ns: u64) -> Option<u64> {
    let calls = &timeline.calls[..timeline.calls.partition_point(|call| call.start_ns < until_ns)];
    let sleep = calls.iter().rev().take_while(|call| call.start_ns >= since_ns);
    let mut sleep = sleep.filter(|call| call.id.kind() == Call::Sleep && call.arg1 & TIMER_ABSTIME != 0);
    let call = sleep.find(|call| call.id.name() == "clock_nanosleep")?;
    let timer = timeline.timer(call.start_ns, call.end_ns)?;
    // Of another clock, or a moment that is not yet there.
    (timer.asked_ns <= until_ns && until_ns - timer.asked_ns < SAME_CLOCK_NS).then_some(timer.asked_ns)
}

/// What the time from the intended start on was spent on, largest first.
fn pieces(id: u64, pass: Moment, intended_ns: u64, walker: &mut Walker<'_>) -> Vec<TimePiece> {
    let from = Moment::of(pass.tid, intended_ns);
    let mut sums: Vec<((Cause, u32), u64)> = Vec::new();
    let alone = walker.alone(from, pass.time_ns);
    for piece in walker.held(id, alone, intended_ns, pass.time_ns) {
        let (key, ns) = ((piece.cause, piece.detail), piece.to_ns - piece.from_ns);
        match sums.iter_mut().find(|(known, _)| *known == key) {
            Some((_, sum)) => *sum += ns,
            None => sums.push((key, ns)),
        }
    }
    sums.sort_by_key(|(key, ns)| (std::cmp::Reverse(*ns), *key));
    let piece = |((cause, detail), ns)| TimePiece { cause, detail: walker.names.text(detail).to_owned(), ns };
    sums.into_iter().map(piece).collect()
}
