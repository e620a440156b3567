//! The proof of a speed: what two samples show.
//!
//! For two samples, v_lb = max(0, |Δp| − 2p)·(1 − drift) / (Δt + 2e). If the true speed never exceeds L, then
//! |Δp measured| ≤ L·Δt_true + 2p ≤ L·(Δt + 2e)/(1 − drift) + 2p, so v_lb ≤ L: delay, bursts, duplicates, reordering and
//! loss only choose which pairs exist, and can create no trip. It holds as long as e and p are not understated.

use crate::{
    capacity::CAPACITY,
    frame::{Frame, MAX_JOINTS},
    parameters::{Parameters, TimeBase},
};

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

/// One admitted sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Its place in the robot's order: the rolling count without its wraps, from any start.
    pub sequence: i64,
    /// When it was taken, by the guard's time base.
    pub t_ns: i64,
    /// Where the tool centre point was.
    pub tcp_mm: [f64; 3],
    /// Where the joints were.
    pub joints_rad: [f64; MAX_JOINTS],
    /// Lower bound of the way from the sample before this one.
    pub(crate) way_mm: f64,
    pub(crate) is_over: bool,
}

impl Sample {
    pub(crate) fn new(sequence: i64, t_ns: i64, frame: &Frame) -> Sample {
        Sample { sequence, t_ns, tcp_mm: frame.tcp_mm, joints_rad: frame.joints_rad, way_mm: 0.0, is_over: false }
    }

    pub(crate) fn distance_mm(a: &Sample, b: &Sample) -> f64 {
        libm::sqrt(squared_distance(a, b))
    }
}

#[inline(always)]
fn squared_distance(a: &Sample, b: &Sample) -> f64 {
    let [x, y, z] = [0, 1, 2].map(|axis| b.tcp_mm[axis] - a.tcp_mm[axis]);
    x * x + y * y + z * z
}

/// The largest v_lb / L so far, or the one to beat, and the pair that proves it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bound {
    /// v_lb / L; above 1 is an overspeed.
    pub ratio: f64,
    /// Places in the window of the earlier and the later sample; `None` as long as no pair beat the start.
    pub pair: Option<(u8, u8)>,
    is_joint: bool,
}

impl Bound {
    /// Only an overspeed beats this one.
    pub fn limit() -> Bound {
        Bound { ratio: 1.0 + ROUNDING, ..Bound::default() }
    }

    pub fn is_over(&self) -> bool {
        self.pair.is_some() && self.ratio > 1.0 + ROUNDING
    }

    /// The larger of the two.
    pub fn or(self, other: Bound) -> Bound {
        if other.ratio > self.ratio { other } else { self }
    }
}

/// A sample and its place in the window.
pub(crate) type Placed<'a> = (usize, &'a Sample);

/// The parameters as the inner loop wants them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    tcp_limit: f64,
    tcp_twice_p: f64,
    has_joints: bool,
    /// 1/L of each joint; 0 where none is supervised.
    per_joint_limit: [f64; MAX_JOINTS],
    joint_twice_p: f64,
    twice_e_ns: f64,
    /// Seconds of true time, at most, in a nanosecond of the robot's.
    stretch_s: f64,
    span_max_ns: i64,
    pub path_length: bool,
    /// How many samples before another can lie within the span. Where samples are a period apart but for their errors, which
    /// are half a period each at most, that is two more than the span's periods.
    pub reach: usize,
}

impl Limits {
    /// `error_ns` is e as it stands now, escalated or not.
    pub fn new(parameters: &Parameters, base: TimeBase, error_ns: u64) -> Limits {
        let is_spaced = base != TimeBase::Arrival && parameters.sequence_modulus != 0;
        let span = if base == TimeBase::Arrival { parameters.span_max_ns() } else { parameters.window_ns };
        let reach = if is_spaced { span / parameters.period_ns + 2 } else { CAPACITY as u64 };
        let per_limit = |joint: usize| {
            if joint < parameters.joint_count { 1.0 / parameters.joint_limits_rad_s[joint] } else { 0.0 }
        };
        Limits {
            tcp_limit: parameters.tcp_limit_mm_s.unwrap_or(f64::INFINITY),
            tcp_twice_p: 2.0 * parameters.tcp_error_mm,
            has_joints: parameters.joint_count > 0,
            per_joint_limit: core::array::from_fn(per_limit),
            joint_twice_p: 2.0 * parameters.joint_error_rad,
            twice_e_ns: 2.0 * error_ns as f64,
            stretch_s: 1e-9 / (1.0 - f64::from(parameters.drift_ppm) * 1e-6),
            span_max_ns: span as i64,
            path_length: parameters.path_length,
            reach: reach as usize,
        }
    }

    /// Raises `best` if this pair proves more. Most pairs prove less, and are separated from the rest without a root or a
    /// division.
    #[inline(always)]
    pub fn raise(&self, best: &mut Bound, (earlier, a): Placed<'_>, (later, b): Placed<'_>) {
        let Some(time_s) = self.time_s(a, b) else { return };
        let pair = Some((earlier as u8, later as u8));
        let squared = squared_distance(a, b);
        // Without a limit the reach is infinite, or NaN: never beaten.
        let reach = best.ratio * time_s * self.tcp_limit + self.tcp_twice_p;
        if squared > reach * reach {
            let ratio = (libm::sqrt(squared) - self.tcp_twice_p) / self.tcp_limit / time_s;
            *best = Bound { ratio, pair, is_joint: false };
        }
        if self.has_joints {
            let turned_s = self.turned_s(a, b);
            if turned_s > best.ratio * time_s {
                *best = Bound { ratio: turned_s / time_s, pair, is_joint: true };
            }
        }
    }

    /// The same by the proven way between the two, which may be longer than their chord.
    #[inline(always)]
    pub fn raise_by_way(&self, best: &mut Bound, (earlier, a): Placed<'_>, (later, b): Placed<'_>, way_mm: f64) {
        let Some(time_s) = self.time_s(a, b) else { return };
        if way_mm > best.ratio * time_s * self.tcp_limit {
            let ratio = way_mm / self.tcp_limit / time_s;
            *best = Bound { ratio, pair: Some((earlier as u8, later as u8)), is_joint: false };
        }
    }

    /// What is proven of the way between neighbours.
    pub fn way_mm(&self, a: &Sample, b: &Sample) -> f64 {
        (Sample::distance_mm(a, b) - self.tcp_twice_p).max(0.0)
    }

    /// Whose limit a pair comes nearest to, if `bound` is of that pair.
    pub fn channel(&self, bound: &Bound, a: &Sample, b: &Sample) -> Channel {
        if !bound.is_joint {
            return Channel::Tcp;
        }
        let mut most = (0, 0.0);
        for joint in 0..MAX_JOINTS {
            let turned_s = self.joint_turned_s(a, b, joint);
            most = if turned_s > most.1 { (joint, turned_s) } else { most };
        }
        Channel::Joint(most.0 as u8)
    }

    /// The longest that may have passed between two samples, if they are near enough to be compared.
    #[inline(always)]
    fn time_s(&self, a: &Sample, b: &Sample) -> Option<f64> {
        let span_ns = b.t_ns - a.t_ns;
        let time_s = (span_ns.max(0) as f64 + self.twice_e_ns) * self.stretch_s;
        (span_ns <= self.span_max_ns && time_s > 0.0).then_some(time_s)
    }

    /// The shortest in which the joints can have turned so far, each at its limit.
    #[inline(always)]
    fn turned_s(&self, a: &Sample, b: &Sample) -> f64 {
        // Two lanes, so that the compiler takes vector instructions; all joints, since a loop of a known length has no jumps.
        let mut most = [0.0f64; 2];
        for joint in 0..MAX_JOINTS {
            let turned_s = self.joint_turned_s(a, b, joint);
            let lane = &mut most[joint % 2];
            *lane = if turned_s > *lane { turned_s } else { *lane };
        }
        if most[0] > most[1] { most[0] } else { most[1] }
    }

    #[inline(always)]
    fn joint_turned_s(&self, a: &Sample, b: &Sample, joint: usize) -> f64 {
        ((b.joints_rad[joint] - a.joints_rad[joint]).abs() - self.joint_twice_p) * self.per_joint_limit[joint]
    }
}
