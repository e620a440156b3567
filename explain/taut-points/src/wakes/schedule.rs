//! Whether moments keep to a schedule: steps of one period, or of several, without drift.

/// Fewer moments show no schedule.
pub(super) const LEAST: usize = 10;
/// So many of the steps are whole periods …
const STEADY_SHARE: f64 = 0.75;
/// … to within this share of the period.
const STEADY: f64 = 0.02;
/// Steps of a schedule that the program computes in whole nanoseconds differ by no more.
const EXACT_NS: f64 = 100.0;
/// Fewer steps do not tell a schedule with jitter from sleeps that drift.
const LEAST_FOR_JITTER: usize = 30;
/// Correlation of neighbouring steps: −1/2 of moments that each miss the schedule by themselves, 0 of a drift.
const LOCKED: f64 = -0.25;

/// The period of a schedule, and its moments that were left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Schedule {
    pub period_ns: u64,
    pub skipped: u64,
}

/// The schedule that ascending moments keep, if they do; `armed` is when each of them was chosen.
pub(super) fn of(moments: &[u64], armed: &[u64]) -> Option<Schedule> {
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
    let single: Vec<Option<f64>> = steps
        .iter()
        .map(|step| (off(*step).abs() <= STEADY * median && periods(*step) == 1.0).then_some(*step))
        .collect();
    let kept: Vec<f64> = single.iter().flatten().copied().collect();
    let mean = kept.iter().sum::<f64>() / kept.len().max(1) as f64;
    // Who keeps a schedule sleeps shorter after longer work; who does not sleeps for the same time.
    let lengths: Vec<f64> = moments.iter().zip(armed).map(|(at, armed)| at.saturating_sub(*armed) as f64).collect();
    let keeps_it = is_exact || is_locked(&single, mean) && spread(&kept) <= spread(&lengths);
    if !keeps_it {
        return None;
    }
    let period = if is_exact { median } else { mean };
    let skipped = steps.iter().map(|step| ((step / period).round() as u64).saturating_sub(1)).sum();
    Some(Schedule { period_ns: period.round() as u64, skipped })
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
fn spread(values: &[f64]) -> f64 {
    let median = middle(values);
    let mut distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    distances.sort_by(f64::total_cmp);
    distances.get(distances.len() * 3 / 4).copied().unwrap_or(0.0)
}

pub(super) fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
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
        assert_eq!(of(&moments, &[]), Some(Schedule { period_ns: 3_700_001, skipped: 10 }));
    }

    #[test]
    fn moments_that_miss_a_schedule_each_by_themselves_keep_it() {
        let moments: Vec<u64> = (1..).zip(noise(300, 9_000)).map(|(k, noise)| k * 4_000_000 + noise).collect();
        // Each moment is chosen when the work of before is done.
        let armed: Vec<u64> = moments.iter().zip(noise(300, 70_000)).map(|(at, work)| at - 4_000_000 + work).collect();
        let found = of(&moments[1..], &armed[1..]).unwrap();
        assert!(found.period_ns.abs_diff(4_000_000) < 100 && found.skipped == 0, "{found:?}");
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
        assert_eq!(of(&moments, &armed), None);
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
        assert_eq!(of(&moments, &armed), None);
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
        assert_eq!(of(&moments, &[]), None);
        assert_eq!(of(&[5; 50], &[]), None);
    }
}
