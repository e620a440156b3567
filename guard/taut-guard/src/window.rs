//! The last samples in the order of the robot's time, and the proof of a speed: a lower bound over every pair.
//!
//! For two samples, v_lb = max(0, |Δp| − 2p)·(1 − drift) / (Δt + 2e). If the true speed never exceeds L, then
//! |Δp measured| ≤ L·Δt_true + 2p ≤ L·(Δt + 2e)/(1 − drift) + 2p, so v_lb ≤ L: delay, bursts, duplicates, reordering and
//! loss only choose which pairs exist, and can create no trip. It holds as long as e and p are not understated.

use crate::{
    frame::MAX_JOINTS,
    parameters::{Parameters, TimeBase},
};

/// Samples kept: 15 periods of W_max before the oldest frame that may still be inserted, 15 periods late.
pub(crate) const CAPACITY: usize = 32;

/// Rounding of a ratio in binary64, with room; no robot's limit is known to nine digits.
const ROUNDING: f64 = 1e-9;

/// What was measured as too fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Channel {
    /// The tool centre point.
    #[default]
    Tcp,
    /// The joint with this index.
    Joint(u8),
    /// The controller's own report of the tool's speed.
    Reported,
}

/// A lower bound of the speed as a share of its limit, and the pair that proves it.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Bound {
    /// v_lb / L; above 1 is an overspeed.
    pub ratio: f64,
    /// Whose limit.
    pub channel: Channel,
    /// Time between the pair's samples, by the guard's time base.
    pub span_ns: i64,
}

impl Bound {
    pub(crate) fn is_over(&self) -> bool {
        self.ratio > 1.0 + ROUNDING
    }
}

/// One admitted sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub sequence: i64,
    pub t_ns: i64,
    pub tcp_mm: [f64; 3],
    pub joints_rad: [f64; MAX_JOINTS],
    /// Lower bound of the way from the sample before this one.
    way_mm: f64,
    is_over: bool,
}

impl Sample {
    pub fn new(sequence: i64, t_ns: i64, frame: &crate::Frame) -> Sample {
        Sample { sequence, t_ns, tcp_mm: frame.tcp_mm, joints_rad: frame.joints_rad, way_mm: 0.0, is_over: false }
    }

    pub fn distance_mm(a: &Sample, b: &Sample) -> f64 {
        distance(&a.tcp_mm, &b.tcp_mm)
    }
}

/// The parameters as the inner loop wants them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    tcp_limit: f64,
    joint_limits: [f64; MAX_JOINTS],
    joint_count: usize,
    tcp_twice_p: f64,
    joint_twice_p: f64,
    twice_e_ns: f64,
    /// Seconds of true time, at most, in a nanosecond of the robot's.
    stretch_s: f64,
    span_max_ns: i64,
    path_length: bool,
}

impl Limits {
    /// `error_ns` is e as it stands now, escalated or not.
    pub fn new(parameters: &Parameters, base: TimeBase, error_ns: u64) -> Limits {
        let span = if base == TimeBase::Arrival { parameters.span_max_ns() } else { parameters.window_ns };
        Limits {
            tcp_limit: parameters.tcp_limit_mm_s.unwrap_or(f64::INFINITY),
            joint_limits: parameters.joint_limits_rad_s,
            joint_count: parameters.joint_count,
            tcp_twice_p: 2.0 * parameters.tcp_error_mm,
            joint_twice_p: 2.0 * parameters.joint_error_rad,
            twice_e_ns: 2.0 * error_ns as f64,
            stretch_s: 1e-9 / (1.0 - f64::from(parameters.drift_ppm) * 1e-6),
            span_max_ns: span as i64,
            path_length: parameters.path_length,
        }
    }

    /// Raises `best` if this pair proves more; `way_mm` is the proven way between the two, if that is longer than their
    /// chord. Most pairs prove less, and are told from the rest without a root or a division.
    #[inline(always)]
    fn raise(&self, best: &mut Bound, a: &Sample, b: &Sample, way_mm: f64) {
        let span_ns = b.t_ns - a.t_ns;
        let time_s = (span_ns.max(0) as f64 + self.twice_e_ns) * self.stretch_s;
        if time_s <= 0.0 {
            return;
        }
        let [x, y, z] = [0, 1, 2].map(|axis| b.tcp_mm[axis] - a.tcp_mm[axis]);
        let squared = x * x + y * y + z * z;
        let to_beat = best.ratio * time_s;
        let reach = to_beat * self.tcp_limit + self.tcp_twice_p;
        // Without a limit the reach is infinite, or NaN: never beaten.
        if squared > reach * reach || way_mm > to_beat * self.tcp_limit {
            let way = (libm::sqrt(squared) - self.tcp_twice_p).max(way_mm);
            *best = Bound { ratio: way / self.tcp_limit / time_s, channel: Channel::Tcp, span_ns };
        }
        for joint in 0..self.joint_count {
            let turned = (b.joints_rad[joint] - a.joints_rad[joint]).abs() - self.joint_twice_p;
            if turned > best.ratio * time_s * self.joint_limits[joint] {
                let ratio = turned / self.joint_limits[joint] / time_s;
                *best = Bound { ratio, channel: Channel::Joint(joint as u8), span_ns };
            }
        }
    }
}

fn distance(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    let [x, y, z] = [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
    libm::sqrt(x * x + y * y + z * z)
}

/// A ring of samples, ordered by sequence.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    samples: [Sample; CAPACITY],
    head: usize,
    len: usize,
    has_over: bool,
}

impl Window {
    pub fn new() -> Window {
        Window { samples: [Sample::default(); CAPACITY], head: 0, len: 0, has_over: false }
    }

    pub fn clear(&mut self) {
        (self.len, self.has_over) = (0, false);
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn oldest(&self) -> Option<&Sample> {
        (self.len > 0).then(|| self.at(0))
    }

    pub fn newest(&self) -> Option<&Sample> {
        self.back(0)
    }

    /// The sample so many before the newest.
    pub fn back(&self, before: usize) -> Option<&Sample> {
        (before < self.len).then(|| self.at(self.len - 1 - before))
    }

    pub fn contains(&self, sequence: i64) -> bool {
        (0..self.len).rev().any(|n| self.at(n).sequence == sequence)
    }

    /// Puts a sample at its place and judges every pair that it is part of: at most one for each sample kept. Gives the
    /// largest bound of those. With path lengths, a late sample also changes the ways to the newest, which are judged
    /// anew; ways to samples between are not: the next frame's contain them.
    pub fn insert(&mut self, sample: Sample, limits: &Limits) -> Bound {
        if self.len == CAPACITY {
            self.head = (self.head + 1) % CAPACITY;
            self.len -= 1;
        }
        let mut place = self.len;
        self.len += 1;
        while place > 0 && self.at(place - 1).sequence > sample.sequence {
            *self.at_mut(place) = *self.at(place - 1);
            place -= 1;
        }
        *self.at_mut(place) = sample;
        if limits.path_length {
            self.measure_way(place, limits);
            self.measure_way(place + 1, limits);
        }
        let mut best = self.judge_before(place, limits);
        self.mark(place, best);
        let mut way_mm = 0.0;
        for later in place + 1..self.len {
            way_mm += self.at(later).way_mm;
            let mut bound = Bound::default();
            self.raise(&mut bound, place, later, way_mm, limits);
            self.mark(later, bound);
            best = if bound.ratio > best.ratio { bound } else { best };
        }
        if limits.path_length && place + 1 < self.len {
            let bound = self.judge_before(self.len - 1, limits);
            self.mark(self.len - 1, bound);
            best = if bound.ratio > best.ratio { bound } else { best };
        }
        best
    }

    /// Whether N of any M neighbouring samples are over the limit.
    pub fn is_tripped(&self, count: u32, of: u32) -> bool {
        if !self.has_over {
            return false;
        }
        let over = (0..self.len).fold(0u32, |bits, n| bits | u32::from(self.at(n).is_over) << n);
        let among = (1u32 << of) - 1;
        (0..self.len).any(|n| (over >> n & among).count_ones() >= count)
    }

    /// Forgets what was over the limit, at a reset.
    pub fn forgive(&mut self) {
        self.has_over = false;
        for sample in &mut self.samples {
            sample.is_over = false;
        }
    }

    /// The least-squares slope over the last five samples (LS-5): a speed to show, which proves nothing.
    pub fn display_speed_mm_s(&self) -> Option<f64> {
        const POINTS: usize = 5;
        let first = self.back(POINTS - 1)?;
        let mut times = [0.0; POINTS];
        for (n, t) in times.iter_mut().enumerate() {
            *t = (self.at(self.len - POINTS + n).t_ns - first.t_ns) as f64 * 1e-9;
        }
        let mean = times.iter().sum::<f64>() / POINTS as f64;
        let spread: f64 = times.iter().map(|t| (t - mean) * (t - mean)).sum();
        let slope = |axis: usize| {
            let positions = (0..POINTS).map(|n| self.at(self.len - POINTS + n).tcp_mm[axis]);
            positions.zip(times).map(|(p, t)| p * (t - mean)).sum::<f64>() / spread
        };
        let [x, y, z] = [slope(0), slope(1), slope(2)];
        (spread > 0.0).then(|| libm::sqrt(x * x + y * y + z * z))
    }

    /// The largest bound of the pairs that end at `later`.
    fn judge_before(&self, later: usize, limits: &Limits) -> Bound {
        let mut best = Bound::default();
        if limits.path_length {
            let mut way_mm = 0.0;
            for earlier in (0..later).rev() {
                way_mm += self.at(earlier + 1).way_mm;
                self.raise(&mut best, earlier, later, way_mm, limits);
            }
        } else {
            // The widest pair first: it usually proves most.
            let b = self.at(later);
            let until_end = later.min(CAPACITY - self.head);
            let parts = [&self.samples[self.head..self.head + until_end], &self.samples[..later - until_end]];
            for part in parts {
                for a in part {
                    if b.t_ns - a.t_ns <= limits.span_max_ns {
                        limits.raise(&mut best, a, b, 0.0);
                    }
                }
            }
        }
        best
    }

    #[inline]
    fn raise(&self, best: &mut Bound, earlier: usize, later: usize, way_mm: f64, limits: &Limits) {
        let (a, b) = (self.at(earlier), self.at(later));
        if b.t_ns - a.t_ns <= limits.span_max_ns {
            limits.raise(best, a, b, way_mm);
        }
    }

    fn mark(&mut self, n: usize, bound: Bound) {
        if bound.is_over() {
            self.at_mut(n).is_over = true;
            self.has_over = true;
        }
    }

    fn measure_way(&mut self, n: usize, limits: &Limits) {
        if (1..self.len).contains(&n) {
            let chord = distance(&self.at(n - 1).tcp_mm, &self.at(n).tcp_mm);
            self.at_mut(n).way_mm = (chord - limits.tcp_twice_p).max(0.0);
        }
    }

    fn at(&self, n: usize) -> &Sample {
        &self.samples[(self.head + n) % CAPACITY]
    }

    fn at_mut(&mut self, n: usize) -> &mut Sample {
        &mut self.samples[(self.head + n) % CAPACITY]
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;

    fn parameters() -> Parameters {
        Parameters { drift_ppm: 0, tcp_error_mm: 0.0, ..Parameters::for_tcp(10_000_000, 1000.0) }
    }

    fn limits(parameters: &Parameters) -> Limits {
        Limits::new(parameters, TimeBase::Source, parameters.source_error_ns)
    }

    fn sample(sequence: i64, tcp_mm: [f64; 3]) -> Sample {
        Sample { sequence, t_ns: sequence * 10_000_000, tcp_mm, ..Sample::default() }
    }

    #[test]
    fn the_bound_is_the_best_pair_within_the_window() {
        let limits = limits(&parameters());
        let mut window = Window::new();
        let mut bound = Bound::default();
        for n in 0..40 {
            bound = window.insert(sample(n, [15.0 * n as f64, 0.0, 0.0]), &limits);
        }
        // 1.5 m/s over 150 ms, known to 2 ms.
        assert!((bound.ratio - 225.0 / 152.0).abs() < 1e-12);
        assert_eq!((bound.span_ns, bound.channel), (150_000_000, Channel::Tcp));
        assert!((window.display_speed_mm_s().unwrap() - 1500.0).abs() < 1e-9);
    }

    #[test]
    fn each_joint_has_its_own_limit() {
        let mut parameters = Parameters { tcp_limit_mm_s: None, joint_count: 3, ..parameters() };
        parameters.joint_limits_rad_s[..3].copy_from_slice(&[3.0, 1.0, 3.0]);
        let limits = limits(&parameters);
        let mut window = Window::new();
        window.insert(Sample::default(), &limits);
        let turned = Sample { joints_rad: [0.02, -0.02, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0], ..sample(1, [500.0; 3]) };
        let bound = window.insert(turned, &limits);
        assert_eq!(bound.channel, Channel::Joint(1));
        assert!((bound.ratio - 0.02 / 0.012).abs() < 1e-12);
    }

    #[test]
    fn a_small_circle_is_measured_along_its_way() {
        // 5 mm radius, 0.5 rad a sample: the chord over half a turn is 36 % short, the sum of chords 1 %.
        let around = |path_length| {
            let limits = limits(&Parameters { path_length, ..parameters() });
            let mut window = Window::new();
            (0..30)
                .map(|n| {
                    let angle = 0.5 * n as f64;
                    window.insert(sample(n, [5.0 * libm::cos(angle), 5.0 * libm::sin(angle), 0.0]), &limits).ratio
                })
                .fold(0.0, f64::max)
        };
        let truth = 0.25 * 150.0 / 152.0;
        assert!(around(true) > 0.989 * truth && around(true) <= truth);
        assert!(around(false) < 0.95 * truth);
    }

    #[test]
    fn n_of_m_asks_neighbours_in_the_robots_order() {
        let limits = limits(&parameters());
        let mut window = Window::new();
        window.insert(sample(0, [0.0; 3]), &limits);
        window.insert(sample(1, [0.0; 3]), &limits);
        window.insert(sample(3, [50.0, 0.0, 0.0]), &limits);
        assert!(window.is_tripped(1, 1) && !window.is_tripped(2, 3));
        // The sample between arrives last, and is over as well.
        window.insert(sample(2, [25.0, 0.0, 0.0]), &limits);
        assert!(window.is_tripped(2, 3));
        window.forgive();
        assert!(!window.is_tripped(1, 1));
    }

    proptest! {
        /// In whatever order the samples of 15 periods come, the same ones are over.
        #[test]
        fn order_of_insertion_does_not_matter(
            steps in proptest::collection::vec(-14.0f64..14.0, 12), order in Just((0..12usize).collect::<std::vec::Vec<_>>()).prop_shuffle(),
        ) {
            let limits = limits(&parameters());
            let mut x = 0.0;
            let samples: std::vec::Vec<_> =
                steps.iter().enumerate().map(|(n, step)| { x += step; sample(n as i64, [x, 0.0, 0.0]) }).collect();
            let over = |order: &[usize]| {
                let mut window = Window::new();
                for &n in order { window.insert(samples[n], &limits); }
                (0..12).map(|n| window.at(n).is_over).collect::<std::vec::Vec<_>>()
            };
            prop_assert_eq!(over(&(0..12).collect::<std::vec::Vec<_>>()), over(&order));
        }
    }
}
