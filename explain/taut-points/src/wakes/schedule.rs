//! Whether moments keep to a schedule: steps of one period, or of several, without drift.

/// Fewer moments show no schedule.
pub(super) const LEAST: usize = 10;
/// So many of the steps are whole periods …
const STEADY_SHARE: f64 = 0.75;
/// … to within this share of the period.
const STEADY: f64 = 0.02;
/// Steps of a schedule that the program computes in whole nanoseconds differ by no more.
const EXACT_NS: f64 = 100.0;
/// A step that is off by more than so many times what is usual counts as one of so many: else one hides how all others follow each
/// other.
const OUTLIER: f64 = 4.0;
/// Fewer steps do not tell a schedule with jitter from sleeps that drift.
const LEAST_FOR_JITTER: usize = 30;
/// A schedule that a program adjusts to another clock has steps so much steadier than its starts.
const STEADIER: f64 = 2.0;
/// Correlation of neighbouring steps: −1/2 of moments that each miss the schedule by themselves, 0 of a drift.
const LOCKED: f64 = -0.25;

/// Steps that are about the same: the middle four fifths are within this share of their median, and so is their mean.
const ABOUT: f64 = 0.3;

/// Several schedules of one thread keep their moments to within this share of their periods …
const STEADY_OF_SEVERAL: f64 = 0.002;
/// … and this: in a wider one, schedules would be found in sleeps for a time, whose moments drift by what the thread does in between.
const STEADY_OF_SEVERAL_NS: f64 = 20_000.0;
/// A schedule among other moments: at a moment of it there may be another one in at most so many cases.
const MOST_BY_CHANCE: f64 = 0.1;
/// The next moment of a schedule is among so many that follow one of its.
const LOOKED_AHEAD: usize = 24;
/// Several schedules are found if they are all that there is, but for one of so many moments.
const LEFT_OVER: usize = 10;
/// No more moments are tried that no schedule begins with: each is held against many others.
const MOST_OF_NONE: usize = 100;

/// The period of a schedule, and its moments that were left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Schedule {
    pub period_ns: u64,
    pub skipped: u64,
}

/// The schedule that ascending moments keep, if they do; `armed` is when each of them was chosen, and `started` when the thread went on
/// after it.
pub(super) fn of(moments: &[u64], armed: &[u64], started: &[u64]) -> Option<Schedule> {
    if moments.len() < LEAST {
        return None;
    }
    let steps: Vec<f64> = moments.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    let median = middle(&steps);
    if median < 1.0 {
        return None;
    }
    let periods = |step: f64| (step / median).round().max(1.0);
    let off = |step: f64| step - periods(step) * median;
    let share =
        |within: f64| steps.iter().filter(|step| off(**step).abs() <= within).count() as f64 / steps.len() as f64;
    if share(STEADY * median) < STEADY_SHARE {
        return None;
    }
    let is_exact = share(EXACT_NS) >= STEADY_SHARE;
    let is_single = |step: &f64| off(*step).abs() <= STEADY * median && periods(*step) == 1.0;
    let usual = OUTLIER * spread(&steps.iter().copied().filter(is_single).collect::<Vec<f64>>()).max(EXACT_NS);
    let of_usual = |step: f64| step.clamp(median - usual, median + usual);
    let single: Vec<Option<f64>> = steps.iter().map(|step| Some(*step).filter(is_single).map(of_usual)).collect();
    let kept: Vec<f64> = single.iter().flatten().copied().collect();
    let mean = kept.iter().sum::<f64>() / kept.len().max(1) as f64;
    // Who sleeps for a time starts as late as its next moment will be.
    let late = |at: usize| started.get(at).map_or(0.0, |start| start.saturating_sub(moments[at]) as f64);
    let lateness: Vec<f64> = (0..steps.len()).filter(|at| is_single(&steps[*at])).map(late).collect();
    let is_adjusted = || STEADIER * spread(&kept) <= spread(&lateness);
    let keeps_it = (is_exact || is_locked(&single, mean) || is_adjusted()) && are_chosen(&kept, moments, armed);
    if !keeps_it {
        return None;
    }
    let period = if is_exact { median } else { mean };
    let skipped = steps.iter().map(|step| ((step / period).round() as u64).saturating_sub(1)).sum();
    Some(Schedule { period_ns: period.round() as u64, skipped })
}

/// Whether these steps of a schedule are steadier than the sleeps until its moments: who keeps a schedule sleeps shorter after longer
/// work; who does not sleeps for the same time.
fn are_chosen(steps: &[f64], moments: &[u64], armed: &[u64]) -> bool {
    let lengths: Vec<f64> = moments.iter().zip(armed).map(|(at, armed)| at.saturating_sub(*armed) as f64).collect();
    spread(steps) <= spread(&lengths)
}

/// Whether these ascending moments come again and again after about the same time, all the time.
pub(super) fn are_steady(moments: &[u64]) -> bool {
    let mut steps: Vec<u64> = moments.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    if steps.len() < LEAST_FOR_JITTER {
        return false;
    }
    steps.sort_unstable();
    let [low, median, high] = [1, 5, 9].map(|tenths| steps[steps.len() * tenths / 10] as f64);
    let mean = steps.iter().sum::<u64>() as f64 / steps.len() as f64;
    high - low <= ABOUT * median && (mean - median).abs() <= ABOUT * median
}

/// How many of these ascending moments are whole periods away from none of those next to them.
pub(super) fn of_none(moments: &[u64], period_ns: u64) -> usize {
    let period = period_ns as f64;
    let is_whole = |a: u64, b: u64| {
        let periods = a.abs_diff(b) as f64 / period;
        periods >= 0.5 && (periods - periods.round()).abs() <= STEADY
    };
    // Between two of its moments there may be one of another.
    let near = |at: usize| &moments[at.saturating_sub(2)..moments.len().min(at + 3)];
    (0..moments.len()).filter(|at| !near(*at).iter().any(|other| is_whole(*other, moments[*at]))).count()
}

/// One of several schedules that a thread keeps.
#[derive(Debug, PartialEq)]
pub(super) struct Part {
    pub schedule: Schedule,
    /// Places of its moments.
    pub moments: Vec<usize>,
}

/// Schedules that ascending moments keep one after the other: stretches of one step each, to the nanosecond, as programs compute them, or
/// each off by itself, as of programs that sleep for what is left. None or several. `armed` is when each of them was chosen.
pub(super) fn modes(moments: &[u64], armed: &[u64]) -> Vec<Part> {
    let steps: Vec<f64> = moments.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    let is_same = |a: f64, b: f64| (a - b).abs() <= STEADY * a.min(b) && a > 0.0;
    // By period the places of the first and the last moment of each stretch.
    let mut stretches: Vec<(f64, Vec<(usize, usize)>)> = Vec::new();
    let mut at = 0;
    for stretch in steps.chunk_by(|a, b| is_same(*a, *b)).filter(|stretch| !stretch.is_empty()) {
        let (period, first) = (middle(stretch), at);
        at += stretch.len();
        if stretch.len() >= LEAST {
            match stretches.iter_mut().find(|(known, _)| is_same(*known, period)) {
                Some((_, of_period)) => of_period.push((first, at)),
                None => stretches.push((period, vec![(first, at)])),
            }
        }
    }
    let all: Vec<(usize, usize)> = stretches.iter().flat_map(|(_, of_period)| of_period.iter().copied()).collect();
    let modes: Vec<Part> =
        stretches.iter().filter_map(|(_, of_period)| mode(moments, armed, &steps, of_period, &all)).collect();
    let in_modes: usize = modes.iter().map(|mode| mode.moments.len()).sum();
    let are_all = LEFT_OVER * in_modes >= (LEFT_OVER - 1) * moments.len();
    if modes.len() > 1 && are_all { modes } else { Vec::new() }
}

/// The schedule that is kept in these of all stretches, if it is one, and not sleeps for a time.
fn mode(
    moments: &[u64],
    armed: &[u64],
    steps: &[f64],
    stretches: &[(usize, usize)],
    all: &[(usize, usize)],
) -> Option<Part> {
    let kept: Vec<f64> = stretches.iter().flat_map(|(from, to)| &steps[*from..*to]).copied().collect();
    let apart: Vec<Option<f64>> =
        stretches.iter().flat_map(|(from, to)| steps[*from..*to].iter().copied().map(Some).chain([None])).collect();
    let (median, mean) = (middle(&kept), kept.iter().sum::<f64>() / kept.len() as f64);
    let exact = kept.iter().filter(|step| (**step - median).abs() <= EXACT_NS).count();
    let is_exact = exact as f64 >= STEADY_SHARE * kept.len() as f64;
    let its = |of: &[u64]| -> Vec<u64> {
        stretches.iter().flat_map(|(from, to)| of.get(*from..=*to).unwrap_or_default()).copied().collect()
    };
    if !(is_exact || is_locked(&apart, mean)) || !are_chosen(&kept, &its(moments), &its(armed)) {
        return None;
    }
    let period = if is_exact { median } else { mean };
    let (mut part, mut last) =
        (Part { schedule: Schedule { period_ns: period.round() as u64, skipped: 0 }, moments: Vec::new() }, None);
    for (from, to) in stretches {
        // Where a moment was late, or left out, the same schedule goes on, unless another one was kept in between.
        let is_other = |last: usize| all.iter().any(|(other, _)| (last..*from).contains(other));
        let goes_on = last.filter(|last| !is_other(*last));
        if let Some(last) = goes_on {
            let gap = (moments[*from] - moments[last]) as f64 / period;
            part.schedule.skipped += (gap.round() as u64).saturating_sub((from - last) as u64);
        }
        let first = goes_on.map_or(*from, |last| last + 1);
        part.moments.extend(first.max(last.map_or(0, |last| last + 1))..=*to);
        last = Some(*to);
    }
    Some(part)
}

/// Schedules that ascending moments keep all at once. None or several. A moment may be of two.
pub(super) fn merged(moments: &[u64]) -> Vec<Part> {
    let mut is_left = vec![true; moments.len()];
    let mut parts: Vec<Part> = Vec::new();
    let mut of_none = 0;
    for first in 0..moments.len() {
        if !is_left[first] {
            continue;
        }
        // One that begins later is no schedule, but what drifts.
        let is_first = |part: &Part| moments[first] - moments[0] <= part.schedule.period_ns;
        if of_none > MOST_OF_NONE.min(moments.len() / LEFT_OVER) {
            return Vec::new();
        }
        // The shortest period: of its multiples each would do.
        let ahead = (first + 1..moments.len()).take(LOOKED_AHEAD);
        // The next one of a slow schedule may be behind many of a fast one.
        let left = (first + 1..moments.len()).filter(|next| is_left[*next]).take(LOOKED_AHEAD);
        let is_new = |part: &Part| 2 * part.moments.iter().filter(|at| is_left[**at]).count() >= part.moments.len();
        let mut next = ahead.chain(left.flat_map(|next| parts_of(moments, first, next)));
        match next.find_map(|next| from(moments, first, next).filter(is_first).filter(is_new)) {
            Some(part) => {
                part.moments.iter().for_each(|at| is_left[*at] = false);
                parts.push(part);
            }
            None => of_none += 1,
        }
    }
    if parts.len() > 1 { parts } else { Vec::new() }
}

/// Moments at a third of the way from one to another, at half of it, and that one: of a schedule each second one may be another's, too.
fn parts_of(moments: &[u64], first: usize, next: usize) -> impl Iterator<Item = usize> {
    let near = move |parts: u64| {
        let step = (moments[next] - moments[first]) / parts;
        let (due_ns, within) = (moments[first] + step, within_ns(step as f64) as u64);
        let at = moments.partition_point(|moment| moment + within < due_ns);
        moments.get(at).filter(|moment| moment.abs_diff(due_ns) <= within).map(|_| at)
    };
    [3, 2, 1].into_iter().filter_map(near).filter(move |at| *at > first)
}

/// The schedule that some of these ascending moments keep, if the others are few enough that they cannot keep it by chance: sleeps that
/// are part of what the thread does.
pub(super) fn among(moments: &[u64]) -> Option<Part> {
    let span_ns = moments.last()?.saturating_sub(moments[0]);
    (0..moments.len().min(LOOKED_AHEAD)).find_map(|first| {
        let mut ahead = (first + 1..moments.len()).take(LOOKED_AHEAD);
        let part = ahead.find_map(|next| from(moments, first, next))?;
        let period_ns = part.schedule.period_ns as f64;
        let by_chance = moments.len() as f64 * 2.0 * within_ns(period_ns) / span_ns as f64;
        let is_early = moments[first].saturating_sub(moments[0]) <= part.schedule.period_ns;
        (is_early && by_chance < MOST_BY_CHANCE && is_kept(moments, &part)).then_some(part)
    })
}

/// Whether the moments of that schedule miss it each by themselves, if at all: those of sleeps for a time drift.
fn is_kept(moments: &[u64], part: &Part) -> bool {
    let period_ns = part.schedule.period_ns as f64;
    let step = |pair: &[usize]| moments[pair[1]].saturating_sub(moments[pair[0]]) as f64;
    let is_single = |step: &f64| (step / period_ns).round() == 1.0;
    let steps: Vec<Option<f64>> = part.moments.windows(2).map(|pair| Some(step(pair)).filter(is_single)).collect();
    let single = || steps.iter().flatten();
    let exact = single().filter(|step| (**step - period_ns).abs() <= EXACT_NS).count();
    exact as f64 >= STEADY_SHARE * single().count() as f64 || is_locked(&steps, period_ns)
}

/// How near to its moments a schedule of that period is kept, beside others.
fn within_ns(period_ns: f64) -> f64 {
    (STEADY_OF_SEVERAL * period_ns).clamp(EXACT_NS, STEADY_OF_SEVERAL_NS)
}

/// The schedule with those two moments, if it is kept to the end.
fn from(moments: &[u64], first: usize, next: usize) -> Option<Part> {
    let since_first = |at: usize| moments[at].saturating_sub(moments[first]) as f64;
    // By all moments so far: what the first step was off by does not add up, and who drifts keeps no schedule.
    let mut period = since_first(next);
    let within = within_ns(period);
    let (mut its, mut missed) = (vec![first], 0);
    for n in 1u32.. {
        let due_ns = moments[first] as f64 + f64::from(n) * period;
        if period < 1.0 || due_ns - within > moments[moments.len() - 1] as f64 {
            break;
        }
        let at = moments.partition_point(|moment| (*moment as f64) < due_ns - within);
        if moments.get(at).is_some_and(|moment| *moment as f64 <= due_ns + within) {
            its.push(at);
            period = since_first(at) / f64::from(n);
        } else {
            missed += 1;
        }
        if missed > its.len() + LEAST {
            return None;
        }
    }
    let is_kept = its.len() >= LEAST && its.len() as f64 >= STEADY_SHARE * (its.len() + missed) as f64;
    let schedule = Schedule { period_ns: period.round() as u64, skipped: missed as u64 };
    is_kept.then_some(Part { schedule, moments: its })
}

/// Whether what one step exceeds the period by is taken back by the next.
fn is_locked(steps: &[Option<f64>], mean: f64) -> bool {
    let (mut pairs, mut product, mut square) = (0, 0.0, 0.0);
    for pair in steps.windows(2) {
        if let [Some(a), Some(b)] = pair {
            pairs += 1;
            product += (a - mean) * (b - mean);
            square += (a - mean) * (a - mean);
        }
    }
    pairs >= LEAST_FOR_JITTER && product < LOCKED * square
}

/// Three of four values are within this of the median.
pub(super) fn spread(values: &[f64]) -> f64 {
    let median = middle(values);
    quantile(&values.iter().map(|value| (value - median).abs()).collect::<Vec<f64>>(), 0.75)
}

pub(super) fn middle(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// 0 of none.
pub(super) fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len() as f64 * q) as usize).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A multiplicative generator (Lewis, Goodman and Miller 1969).
    fn noise(n: usize, most: u64) -> Vec<u64> {
        let mut state: u64 = 12_345;
        let mut next = || {
            state = state * 16_807 % 2_147_483_647;
            state % most
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn a_schedule_has_its_period_to_the_nanosecond_whatever_is_left_out() {
        let moments: Vec<u64> = (0..100).filter(|k| k % 10 != 3).map(|k| 77 + k * 3_700_001).collect();
        assert_eq!(of(&moments, &[], &[]), Some(Schedule { period_ns: 3_700_001, skipped: 10 }));
    }

    #[test]
    fn moments_that_miss_a_schedule_each_by_themselves_keep_it() {
        let moments: Vec<u64> = (1..).zip(noise(300, 9_000)).map(|(k, noise)| k * 4_000_000 + noise).collect();
        // Each moment is chosen when the work of before is done.
        let armed: Vec<u64> = moments.iter().zip(noise(300, 70_000)).map(|(at, work)| at - 4_000_000 + work).collect();
        let found = of(&moments[1..], &armed[1..], &[]).unwrap();
        assert!(found.period_ns.abs_diff(4_000_000) < 100 && found.skipped == 0, "{found:?}");
    }

    #[test]
    fn one_moment_that_is_far_off_does_not_hide_a_schedule() {
        // As of a loop whose first sleep is before it computes any: 50 ms to within 1 µs, and one of 150 µs more.
        let noise = noise(100, 1_000);
        let mut moments: Vec<u64> = (1..).zip(&noise).map(|(k, noise)| k * 50_000_000 + 150_000 + noise).collect();
        moments[0] -= 150_000;
        let armed: Vec<u64> = moments.iter().zip(&noise).map(|(at, work)| at - 49_700_000 + 20 * work).collect();
        let found = of(&moments, &armed, &[]).unwrap();
        assert!(found.period_ns.abs_diff(50_000_000) < 100 && found.skipped == 0, "{found:?}");
    }

    #[test]
    fn sleeps_for_a_time_keep_no_schedule() {
        let mut at = 0;
        let moments: Vec<u64> = noise(300, 9_000)
            .into_iter()
            .map(|noise| {
                at += 4_000_000 + noise;
                at
            })
            .collect();
        let armed: Vec<u64> = moments.iter().map(|at| at - 3_900_000).collect();
        assert_eq!(of(&moments, &armed, &[]), None);
        assert_eq!((merged(&moments), among(&moments)), (vec![], None));
        // A hundred times 100 ms, and up to 2 ms of work or 1 µs.
        for most in [2_000_000, 1_000] {
            let mut at = 0;
            let step = |noise| {
                at += 100_000_000 + noise;
                at
            };
            let moments: Vec<u64> = noise(100, most).into_iter().map(step).collect();
            assert_eq!((modes(&moments, &[]), merged(&moments), among(&moments)), (vec![], vec![], None));
        }
    }

    #[test]
    fn a_schedule_shows_among_sleeps_that_are_part_of_the_work() {
        // Each 20 ms, to within 3 µs; after each start, which is late by up to 2 ms, a sleep of half a millisecond.
        let mut moments: Vec<u64> = Vec::new();
        for (k, (noise, late)) in (1..).zip(noise(200, 3_000).into_iter().zip(noise(400, 2_000_000).split_off(200))) {
            let due = k * 20_000_000 + noise;
            moments.extend([due, due + 500_000 + late]);
        }
        let part = among(&moments).unwrap();
        assert!(part.schedule.period_ns.abs_diff(20_000_000) < 100, "{part:?}");
        assert_eq!((part.moments.len(), part.schedule.skipped), (200, 0));
        assert_eq!((of(&moments, &moments, &[]), merged(&moments)), (None, vec![]));
        // Moments so close together that each schedule has one nearby are none's.
        let crowd: Vec<u64> =
            noise(4_000, 60_000).iter().scan(0, |at, noise| Some(std::mem::replace(at, *at + noise))).collect();
        assert_eq!(among(&crowd), None);
    }

    #[test]
    fn sleeps_for_a_time_between_long_and_short_work_by_turns_keep_no_schedule() {
        let mut at = 0;
        let moments: Vec<u64> = (0..300)
            .map(|k| {
                at += 10_000_000 + if k % 2 == 0 { 20_000 } else { 150_000 };
                at
            })
            .collect();
        let armed: Vec<u64> = moments.iter().map(|at| at - 10_000_000).collect();
        assert_eq!(of(&moments, &armed, &[]), None);
    }

    fn periods(parts: &[Part]) -> Vec<(u64, u64, usize)> {
        parts.iter().map(|of| (of.schedule.period_ns, of.schedule.skipped, of.moments.len())).collect()
    }

    #[test]
    fn moments_of_another_schedule_are_none_of_the_first() {
        let mut moments: Vec<u64> = (1..=400).map(|k| k * 5_000_000).collect();
        moments.extend((1..=45).map(|k| k * 33_000_000 + 700_000));
        moments.sort_unstable();
        let found = of(&moments, &[], &[]).unwrap();
        assert_eq!((found.period_ns, of_none(&moments, found.period_ns)), (5_000_000, 45));
        let gaps: Vec<u64> = (0..200).filter(|k| k % 25 != 3).map(|k| k * 1_000_000).collect();
        assert_eq!(of_none(&gaps, 1_000_000), 0);
    }

    #[test]
    fn a_schedule_that_changes_is_two() {
        let mut moments: Vec<u64> = (0..50).map(|k| k * 2_000_000).collect();
        moments.extend((1..=40).map(|k| 98_000_000 + k * 7_000_000));
        moments.extend((1..=30).map(|k| 378_000_000 + k * 2_000_000));
        assert_eq!(periods(&modes(&moments, &[])), [(2_000_000, 0, 81), (7_000_000, 0, 41)]);
        // Sleeps for 2 ms, then for 7 ms, drift.
        let mut at = 0;
        let drifting = noise(200, 9_000).into_iter().enumerate().map(|(n, noise)| {
            at += noise + if n < 100 { 2_000_000 } else { 7_000_000 };
            at
        });
        let drifting: Vec<u64> = drifting.collect();
        let armed: Vec<u64> =
            (0..).zip(&drifting).map(|(n, at)| at - if n < 100 { 2_000_000 } else { 7_000_000 }).collect();
        assert_eq!((modes(&drifting, &[]), modes(&drifting, &armed)), (vec![], vec![]));
        // Of one that leaves moments out now and then there is one.
        let gaps: Vec<u64> = (0..200).filter(|k| k % 25 != 3).map(|k| k * 1_000_000).collect();
        assert_eq!(modes(&gaps, &[]), []);
    }

    #[test]
    fn a_schedule_that_changes_is_two_though_its_sleeps_are_for_what_is_left() {
        // As std::this_thread::sleep_until: each sleep is off by up to 1 µs, and shorter after longer work.
        let due = (0..100).map(|k| k * 2_000_000).chain((1..=80).map(|k| 198_000_000 + k * 5_000_000));
        let moments: Vec<u64> = due.zip(noise(180, 1_000)).map(|(due, noise)| 1_000 + due + noise).collect();
        let armed: Vec<u64> =
            moments.iter().zip(noise(180, 70_000)).map(|(at, work)| at.saturating_sub(1_500_000) + work).collect();
        let found = modes(&moments, &armed);
        let [first, second] = &found[..] else { panic!("{found:?}") };
        assert!(first.schedule.period_ns.abs_diff(2_000_000) < 100 && first.moments.len() == 100, "{first:?}");
        assert!(second.schedule.period_ns.abs_diff(5_000_000) < 100 && second.moments.len() >= 80, "{second:?}");
        // Each fortieth sleep is computed 0.3 ms late, or left out.
        let late = |at: usize| if at % 80 == 30 { 300_000 } else { 0 };
        let is_there = |at: &usize| at % 80 != 50;
        let some = |of: &[u64]| (0..of.len()).filter(is_there).map(|at| of[at] + late(at)).collect::<Vec<u64>>();
        let due = (0..400).map(|k| k * 2_000_000).chain((1..=400).map(|k| 798_000_000 + k * 5_000_000));
        let moments: Vec<u64> = due.zip(noise(800, 1_000)).map(|(due, noise)| 1_000 + due + noise).collect();
        let armed: Vec<u64> =
            moments.iter().zip(noise(800, 70_000)).map(|(at, work)| at.saturating_sub(1_500_000) + work).collect();
        let found = modes(&some(&moments), &some(&armed));
        let [first, second] = &found[..] else { panic!("{found:?}") };
        assert!(first.schedule.period_ns.abs_diff(2_000_000) < 1_000 && first.schedule.skipped == 5, "{first:?}");
        assert!(second.schedule.period_ns.abs_diff(5_000_000) < 1_000 && second.schedule.skipped == 5, "{second:?}");
        assert!(first.moments.len() + second.moments.len() >= 788, "{found:?}");
    }

    #[test]
    fn moments_that_a_program_adjusts_to_another_clock_keep_a_schedule() {
        // As SOEM's: each moment is set to another clock's, by up to 300 ns a period, and the thread starts up to 20 µs late.
        let (mut at, mut by) = (0u64, 150i64);
        let step = |noise: u64| {
            by = (by + noise as i64 - 50).clamp(0, 300);
            at += 1_000_000 + by as u64;
            at
        };
        let moments: Vec<u64> = noise(400, 100).into_iter().map(step).collect();
        let started: Vec<u64> = moments.iter().zip(noise(400, 20_000)).map(|(at, late)| at + late).collect();
        let armed: Vec<u64> =
            started.iter().zip(noise(800, 50_000).split_off(400)).map(|(at, work)| at + work).collect();
        let armed: Vec<u64> = std::iter::once(0).chain(armed).take(400).collect();
        let found = of(&moments, &armed, &started).unwrap();
        assert!((1_000_000..1_000_300).contains(&found.period_ns) && found.skipped == 0, "{found:?}");
        // Sleeps until a time after each start, which is that late, and now and then much later.
        let mut start = 0;
        let lates: Vec<u64> = noise(400, 4_000)
            .into_iter()
            .zip(noise(800, 5).split_off(400))
            .map(|(late, which)| late + [0, 0, 0, 15_000, 900_000][which as usize])
            .collect();
        let step = |late: &u64| {
            let at = start + 1_000_000;
            start = at + late;
            at
        };
        let moments: Vec<u64> = lates.iter().map(step).collect();
        let started: Vec<u64> = moments.iter().zip(&lates).map(|(at, late)| at + late).collect();
        let works = noise(400, 300_000);
        let armed: Vec<u64> =
            std::iter::once(0).chain(started.iter().zip(&works).map(|(start, work)| start + work)).take(400).collect();
        assert_eq!(of(&moments, &armed, &started), None);
    }

    #[test]
    fn sleeps_for_a_time_on_a_cpu_without_other_work_keep_no_schedule() {
        // 1 ms, and 3.8 µs to within 80 ns until the next one.
        let mut at = 0;
        let step = |noise| {
            at += 1_003_720 + noise;
            at
        };
        let moments: Vec<u64> = noise(400, 160).into_iter().map(step).collect();
        let armed: Vec<u64> = moments.iter().map(|at| at - 1_000_000).collect();
        let started: Vec<u64> = moments.iter().map(|at| at + 3_600).collect();
        assert_eq!((of(&moments, &armed, &started), modes(&moments, &armed)), (None, vec![]));
    }

    #[test]
    fn moments_of_three_schedules_are_told_apart() {
        let of_period = |period: u64, phase: u64| (1..=2_000_000_000 / period).map(move |k| k * period + phase);
        let three = [(4_000_000, 0), (10_000_000, 300_001), (25_000_000, 600_007)];
        let mut moments: Vec<u64> = three.into_iter().flat_map(|(period, phase)| of_period(period, phase)).collect();
        moments.sort_unstable();
        assert_eq!(periods(&merged(&moments)), [(4_000_000, 0, 500), (10_000_000, 0, 200), (25_000_000, 0, 80)]);
        assert_eq!(of(&moments, &moments, &[]), None);
        // Where two of them meet, the moment is of both.
        let mut moments: Vec<u64> = of_period(4_000_000, 0).chain(of_period(10_000_000, 0)).collect();
        moments.sort_unstable();
        moments.dedup();
        assert_eq!(periods(&merged(&moments)), [(4_000_000, 0, 500), (10_000_000, 0, 200)]);
    }

    #[test]
    fn random_moments_keep_no_schedule() {
        let mut at = 0;
        let moments: Vec<u64> = noise(500, 2_000_000)
            .into_iter()
            .map(|noise| {
                at += noise;
                at
            })
            .collect();
        assert_eq!(of(&moments, &[], &[]), None);
        assert_eq!((modes(&moments, &[]), merged(&moments), among(&moments)), (vec![], vec![], None));
        assert_eq!(of(&[5; 50], &[], &[]), None);
        assert_eq!((modes(&[5; 50], &[]), merged(&[5; 50]), among(&[5; 50])), (vec![], vec![], None));
        assert_eq!(among(&[]), None);
    }
}
