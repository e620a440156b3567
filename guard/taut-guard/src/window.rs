//! The last samples in the order of the robot's time, each pair of them judged once.

use crate::{
    bound::{Bound, Channel, Limits, Sample},
    capacity::CAPACITY,
};

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

    /// Puts a sample at its place and judges every pair that it is part of: at most one for each sample kept.
    ///
    /// For the newest sample gives the largest bound of its pairs; for a late one only an overspeed, since anything less is
    /// old news and not worth a root for each pair. With path lengths, a late sample also lengthens the ways to the newest
    /// from before it, which are judged again; ways to samples between are not: the next frame's contain them.
    pub fn insert(&mut self, sample: Sample, limits: &Limits) -> Bound {
        let place = self.put(sample);
        if limits.path_length {
            self.measure_way(place, limits);
            self.measure_way(place + 1, limits);
        }
        let is_newest = place + 1 == self.len;
        let start = if is_newest { Bound::default() } else { Bound::limit() };
        let mut best = self.judge_before(place, start, limits);
        self.mark(place, &best);
        if is_newest {
            return best;
        }
        let mut way_mm = 0.0;
        for later in place + 1..self.len {
            let mut bound = Bound::limit();
            limits.raise(&mut bound, self.placed(place), self.placed(later));
            if limits.path_length {
                way_mm += self.at(later).way_mm;
                limits.raise_by_way(&mut bound, self.placed(place), self.placed(later), way_mm);
            }
            self.mark(later, &bound);
            best = best.or(bound);
        }
        if limits.path_length {
            let newest = self.len - 1;
            let bound = self.judge_ways(place, newest, way_mm, Bound::limit(), limits);
            self.mark(newest, &bound);
            best = best.or(bound);
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

    /// The two samples that prove a bound just given by [`Window::insert`], and whose limit it is of.
    pub fn proof(&self, bound: &Bound, limits: &Limits) -> Option<(Channel, [Sample; 2])> {
        let (earlier, later) = bound.pair?;
        let (a, b) = (self.at(earlier.into()), self.at(later.into()));
        Some((limits.channel(bound, a, b), [*a, *b]))
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

    /// Makes room for a sample and gives its place.
    fn put(&mut self, sample: Sample) -> usize {
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
        place
    }

    /// The largest bound of the pairs that end at `later`.
    fn judge_before(&self, later: usize, mut best: Bound, limits: &Limits) -> Bound {
        // The widest pair first: it usually proves most.
        for earlier in later.saturating_sub(limits.reach)..later {
            limits.raise(&mut best, self.placed(earlier), self.placed(later));
        }
        if limits.path_length {
            best = self.judge_ways(later, later, 0.0, best, limits);
        }
        best
    }

    /// The same by the ways from before `place` to `later`; `way_mm` is the way between these two.
    fn judge_ways(&self, place: usize, later: usize, mut way_mm: f64, mut best: Bound, limits: &Limits) -> Bound {
        for earlier in (later.saturating_sub(limits.reach)..place).rev() {
            way_mm += self.at(earlier + 1).way_mm;
            limits.raise_by_way(&mut best, self.placed(earlier), self.placed(later), way_mm);
        }
        best
    }

    fn mark(&mut self, n: usize, bound: &Bound) {
        if bound.is_over() {
            self.at_mut(n).is_over = true;
            self.has_over = true;
        }
    }

    fn measure_way(&mut self, n: usize, limits: &Limits) {
        if (1..self.len).contains(&n) {
            self.at_mut(n).way_mm = limits.way_mm(self.at(n - 1), self.at(n));
        }
    }

    #[inline(always)]
    fn placed(&self, n: usize) -> (usize, &Sample) {
        (n, self.at(n))
    }

    #[inline(always)]
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
    use crate::parameters::{Parameters, TimeBase};
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
        let (channel, [a, b]) = window.proof(&bound, &limits).unwrap();
        assert_eq!((b.t_ns - a.t_ns, channel), (150_000_000, Channel::Tcp));
        assert_eq!((a.sequence, b.sequence), (24, 39));
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
        assert_eq!(window.proof(&bound, &limits).unwrap().0, Channel::Joint(1));
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
