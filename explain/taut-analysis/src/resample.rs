//! Intervals by resampling (the percentile bootstrap, Efron 1979). One stall makes many messages late, so what is drawn is
//! bursts and stretches of time, never single messages.

/// Resamples of a share.
const SHARES: usize = 400;
/// Resamples of a quantile.
const QUANTILES: usize = 400;
/// Stretches of time that are drawn for a quantile. A backlog lies within one mostly, also at high load.
const BLOCKS: usize = 40;
/// The least that a stretch holds, unless there are fewer than some stretches then.
const IN_BLOCK: usize = 20;
/// Messages beyond a quantile that its interval looks at, evenly spread over them.
const LOOKED_AT: usize = 500;

/// xorshift64 (Marsaglia 2003) with a fixed seed: the same recording gives the same interval.
struct Random(u64);

impl Random {
    fn new() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// The ratio of the sums of (part, whole), and its 95 % interval by drawing bursts. Fewer than three bursts say nothing of another
/// recording: then the interval is everything, unless there is no part at all.
pub(crate) fn share(bursts: &[(f64, f64)]) -> (f64, (f64, f64)) {
    let ratio = |part: f64, whole: f64| if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 };
    let sum = bursts.iter().fold((0.0, 0.0), |sum, burst| (sum.0 + burst.0, sum.1 + burst.1));
    if sum.0 <= 0.0 {
        return (0.0, (0.0, 0.0));
    }
    let share = ratio(sum.0, sum.1);
    if bursts.len() < 3 {
        return (share, (0.0, 1.0));
    }
    let mut random = Random::new();
    let mut shares: Vec<f64> = (0..SHARES)
        .map(|_| {
            let drawn = (0..bursts.len()).map(|_| bursts[random.below(bursts.len())]);
            let sum = drawn.fold((0.0, 0.0), |sum, burst| (sum.0 + burst.0, sum.1 + burst.1));
            ratio(sum.0, sum.1)
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    let at = |q: f64| shares[((SHARES - 1) as f64 * q).round() as usize];
    (share, (at(0.025).min(share), at(0.975).max(share)))
}

/// The interval of a value that another error may change by a factor up to `ratio`, up or down, at the same confidence. Neither depends
/// on the other, so that their squares add; times differ by factors, so that they add as logarithms.
pub(crate) fn widened(value_ns: u64, (low_ns, high_ns): (u64, u64), ratio: f64) -> (u64, u64) {
    let value = value_ns.max(1) as f64;
    let both = |other: f64| other.max(1.0).ln().hypot(ratio.max(1.0).ln()).exp();
    let (low, high) = (value / both(value / low_ns.max(1) as f64), value * both(high_ns as f64 / value));
    ((low.round() as u64).min(low_ns), (high.round() as u64).max(high_ns))
}

/// Values in order of time, ready for intervals of their quantiles.
pub(crate) struct Blocks {
    /// (value, block), largest first.
    sorted: Vec<(u64, u32)>,
    sizes: Vec<u32>,
}

impl Blocks {
    pub fn of(in_time_order: &[u64]) -> Blocks {
        let n = in_time_order.len();
        let every = n.div_ceil(BLOCKS).max(IN_BLOCK.min(n.div_ceil(10))).max(1);
        let mut sorted: Vec<(u64, u32)> =
            in_time_order.iter().enumerate().map(|(at, value)| (*value, (at / every) as u32)).collect();
        sorted.sort_unstable_by_key(|(value, _)| std::cmp::Reverse(*value));
        let sizes = in_time_order.chunks(every).map(|chunk| chunk.len() as u32).collect();
        Blocks { sorted, sizes }
    }

    /// The values, the least first.
    pub fn ascending(&self) -> Vec<u64> {
        self.sorted.iter().rev().map(|(value, _)| *value).collect()
    }

    /// The 95 % interval in which the quantile of another such recording, as long as this one, would lie: both are one draw each,
    /// so it is that of the ratio of two resamples about the value. Tails are long above and not below: times differ by factors,
    /// and a few bursts beyond a quantile tell no largest one. `None` without values.
    pub fn interval(&self, q: f64) -> Option<(u64, u64)> {
        let n = self.sorted.len();
        let at = n.checked_sub((q * n as f64).ceil().max(1.0) as usize)?;
        let value = self.sorted.get(at)?.0;
        let thin = (((1.0 - q) * n as f64) as usize).div_ceil(LOOKED_AT).max(1);
        let mut random = Random::new();
        let mut draw = || {
            let mut times = vec![0u32; self.sizes.len()];
            (0..self.sizes.len()).for_each(|_| times[random.below(self.sizes.len())] += 1);
            let whole: u64 = times.iter().zip(&self.sizes).map(|(times, size)| u64::from(times * size)).sum();
            let beyond = whole as f64 * (1.0 - q);
            let mut so_far = 0.0;
            let looked_at = self.sorted.iter().step_by(thin);
            for (value, block) in looked_at {
                so_far += f64::from(times[*block as usize]) * thin as f64;
                if so_far > beyond {
                    return (*value).max(1) as f64;
                }
            }
            self.sorted.last().map_or(1.0, |(value, _)| (*value).max(1) as f64)
        };
        let mut ratios: Vec<f64> = (0..QUANTILES).map(|_| draw() / draw()).collect();
        ratios.sort_by(f64::total_cmp);
        let of = |q: f64| value as f64 * ratios[((QUANTILES - 1) as f64 * q).round() as usize];
        Some(((of(0.025).floor() as u64).min(value), (of(0.975).ceil() as u64).max(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_lies_in_its_interval() {
        let bursts: Vec<(f64, f64)> = (0..200).map(|i| (f64::from(i % 5), 4.0)).collect();
        let (value, (low, high)) = share(&bursts);
        assert!((value - 0.5).abs() < 1e-9 && low < value && value < high && high - low < 0.15, "{value} {low} {high}");
        assert_eq!(share(&[]), (0.0, (0.0, 0.0)));
        assert_eq!(share(&[(1.0, 2.0)]), (0.5, (0.0, 1.0)));
    }

    #[test]
    fn errors_that_do_not_depend_on_each_other_add_as_squares() {
        // 3 and 4 make 5, nearly so as factors of a few percent.
        assert_eq!(widened(100_000, (97_000, 103_000), 1.04), (95_155, 105_034));
        assert_eq!(widened(100_000, (97_000, 103_000), 1.0), (97_000, 103_000));
        // What is far wider already hardly changes.
        let (low, high) = widened(100_000, (50_000, 200_000), 1.04);
        assert!((49_800..50_000).contains(&low) && (200_001..200_500).contains(&high), "{low} {high}");
        assert_eq!(widened(0, (0, 0), 2.0).0, 0);
    }

    #[test]
    fn one_stall_makes_a_wide_interval_and_scattered_ones_a_narrow_one() {
        let scattered: Vec<u64> = (0..10_000).map(|i| if i % 40 == 0 { 5_000 + i } else { 100 + i % 7 }).collect();
        let (low, high) = Blocks::of(&scattered).interval(0.99).unwrap();
        assert!(low > 5_000 && high < 15_000, "{low} {high}");
        let mut stall: Vec<u64> = (0..10_000).map(|i| 100 + i % 7).collect();
        stall[3_000..3_250].fill(9_000);
        let (low, high) = Blocks::of(&stall).interval(0.99).unwrap();
        assert!(low < 1_000 && high >= 9_000, "{low} {high}");
        assert_eq!(Blocks::of(&[]).interval(0.5), None);
    }
}
