//! Checks on what is written to the follower.
//!
//! `Reject` is the source system's, of setpoints: speed is the way from the last *received* setpoint over the time between two
//! *arrivals*, and what is too fast is dropped. Jitter alone can make it drop: two setpoints that were sent 20 ms apart and arrive
//! 8 ms apart look 2.5 times as fast as they are. `Clamp` is of commands: it measures against the last *sent* one over the nominal
//! period and shortens the step until it obeys; a limit never drops a setpoint.
//!
//! Reasons are the setpoint ledger's. What `Reject` drops for its speed, although the robot's own stamps say that it was within the
//! limits, is a `validator_timing_bug`.

use taut_guard::ledger::Reason;

use crate::arms::{Arm, FR20, Joints, LOWER_DEG, UPPER_DEG, Vector, distance, largest_turn_deg};

const ARM: &Arm = &FR20;
const JOINT_MARGIN_DEG: f64 = 1.0;
/// The work area, in the follower's base frame.
const AREA_M: [Vector; 2] = [[-1.6, -1.2, 0.05], [0.2, 1.2, 1.9]];

/// The source's guard limits, and for `Clamp` how fast a joint may change its speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    pub joint_deg_s: f64,
    pub tool_m_s: f64,
    /// Slowing down is not limited, so that nothing overshoots.
    pub speeding_up_deg_s2: f64,
    /// What a joint can be counted on for: one that was commanded to stop has not stopped at once.
    pub slowing_down_deg_s2: f64,
}

pub const LIMITS: Limits =
    Limits { joint_deg_s: 70.0, tool_m_s: 1.0, speeding_up_deg_s2: f64::INFINITY, slowing_down_deg_s2: f64::INFINITY };
/// Of the limits, for commands: a servo makes up for its lag faster than it was commanded to move, and the guard trips at the limits
/// themselves.
const HEADROOM: f64 = 0.94;
/// What commands are held to, so that the arm that follows them stays within the limits. The hand's own change of speed is 740 deg/s²;
/// its way in straight lines of 20 ms asks for twice that at their ends. The arm's is 1500: what it cannot follow it makes up for by
/// going too fast.
pub const COMMAND_LIMITS: Limits = Limits {
    joint_deg_s: HEADROOM * LIMITS.joint_deg_s,
    tool_m_s: HEADROOM * LIMITS.tool_m_s,
    speeding_up_deg_s2: 1700.0,
    slowing_down_deg_s2: 1000.0,
};

fn lower_deg(joint: usize) -> f64 {
    LOWER_DEG[joint] + JOINT_MARGIN_DEG
}

fn upper_deg(joint: usize) -> f64 {
    UPPER_DEG[joint] - JOINT_MARGIN_DEG
}

fn is_in_area(tool_m: &Vector) -> bool {
    (0..3).all(|axis| (AREA_M[0][axis]..=AREA_M[1][axis]).contains(&tool_m[axis]))
}

pub struct Reject {
    limits: Limits,
    last_deg: Joints,
    last_tool_m: Vector,
    last_ns: Option<(u64, u64)>,
}

impl Reject {
    pub fn new(limits: Limits, start_deg: Joints) -> Reject {
        Reject { limits, last_deg: start_deg, last_tool_m: ARM.tool_m(&start_deg), last_ns: None }
    }

    /// Why the setpoint is dropped, if it is. `source_ns` is the robot's own time of the state that it was made from.
    pub fn judge(&mut self, joints_deg: &Joints, arrived_ns: u64, source_ns: u64) -> Option<Reason> {
        if *joints_deg == self.last_deg {
            return Some(Reason::Duplicate);
        }
        let tool_m = ARM.tool_m(joints_deg);
        let reason = self.broken_limit(joints_deg, &tool_m, arrived_ns, source_ns);
        (self.last_deg, self.last_tool_m, self.last_ns) = (*joints_deg, tool_m, Some((arrived_ns, source_ns)));
        reason
    }

    fn broken_limit(&self, joints_deg: &Joints, tool_m: &Vector, arrived_ns: u64, source_ns: u64) -> Option<Reason> {
        if (0..6).any(|n| !(lower_deg(n)..=upper_deg(n)).contains(&joints_deg[n])) {
            return Some(Reason::PositionLimit);
        }
        if !is_in_area(tool_m) {
            return Some(Reason::WorkArea);
        }
        let (last_arrived_ns, last_source_ns) = self.last_ns?;
        let is_too_fast = |elapsed_ns: u64| {
            let elapsed_s = (elapsed_ns as f64 / 1e9).max(1e-6);
            largest_turn_deg(joints_deg, &self.last_deg) / elapsed_s > self.limits.joint_deg_s
                || distance(tool_m, &self.last_tool_m) / elapsed_s > self.limits.tool_m_s
        };
        if !is_too_fast(arrived_ns.saturating_sub(last_arrived_ns)) {
            return None;
        }
        let is_truly = is_too_fast(source_ns.saturating_sub(last_source_ns));
        Some(if is_truly { Reason::VelocityLimit } else { Reason::ValidatorTimingBug })
    }
}

/// Whether the tool may be there.
type Allows<'a> = &'a dyn Fn(&Vector) -> bool;

pub struct Clamp {
    limits: Limits,
    last_deg: Joints,
    last_tool_m: Vector,
    moving_deg_s: Joints,
    before: (Joints, Vector),
}

impl Clamp {
    pub fn new(limits: Limits, start_deg: Joints) -> Clamp {
        let last_tool_m = ARM.tool_m(&start_deg);
        Clamp { limits, last_deg: start_deg, last_tool_m, moving_deg_s: [0.0; 6], before: (start_deg, last_tool_m) }
    }

    /// The joints to send for the next `period_s`: as far towards `joints_deg` as every limit allows, and the limit that bent them.
    /// They count as sent.
    pub fn clamp(&mut self, joints_deg: &Joints, period_s: f64) -> (Joints, Option<Reason>) {
        self.before = (self.last_deg, self.last_tool_m);
        let target: Joints = std::array::from_fn(|n| joints_deg[n].clamp(lower_deg(n), upper_deg(n)));
        let mut changed = (target != *joints_deg).then_some(Reason::PositionLimit);
        let step: Joints = std::array::from_fn(|n| target[n] - self.last_deg[n]);
        let turn_deg = largest_turn_deg(&target, &self.last_deg).max(1e-12);
        let mut share = (self.limits.joint_deg_s * period_s / turn_deg).min(1.0);
        if share < 1.0 {
            changed = Some(Reason::VelocityLimit);
        }
        let followed = self.share_followed(&step, period_s);
        if followed < share {
            (changed, share) = (Some(Reason::AccelerationLimit), followed);
        }
        let (way_m, last_tool_m) = (self.limits.tool_m_s * period_s, self.last_tool_m);
        let is_slow = |tool_m: &Vector| distance(tool_m, &last_tool_m) <= way_m;
        let mut tool_m = self.tool_m(&step, share);
        let checks: [(Reason, Allows<'_>); 2] = [(Reason::VelocityLimit, &is_slow), (Reason::WorkArea, &is_in_area)];
        for (reason, is_allowed) in checks {
            if !is_allowed(&tool_m) {
                (changed, share) = (Some(reason), self.largest_share(&step, share, is_allowed));
                tool_m = self.tool_m(&step, share);
            }
        }
        (self.last_deg, self.last_tool_m) = (self.at(&step, share), tool_m);
        if period_s > 0.0 {
            let most = self.limits.slowing_down_deg_s2 * period_s;
            for (moving, step) in self.moving_deg_s.iter_mut().zip(step) {
                *moving += (share * step / period_s - *moving).clamp(-most, most);
            }
        }
        (self.last_deg, changed)
    }

    /// The last step is not known to have been taken, and the arm may have come to rest meanwhile: the next one is measured from where
    /// it was sent before.
    pub fn lose(&mut self) {
        (self.last_deg, self.last_tool_m) = self.before;
        self.moving_deg_s = [0.0; 6];
    }

    /// The arm moved without us: the next step is measured from where it is.
    pub fn rehome(&mut self, joints_deg: &Joints) {
        *self = Clamp::new(self.limits, *joints_deg);
    }

    fn at(&self, step: &Joints, share: f64) -> Joints {
        std::array::from_fn(|n| self.last_deg[n] + share * step[n])
    }

    fn tool_m(&self, step: &Joints, share: f64) -> Vector {
        ARM.tool_m(&self.at(step, share))
    }

    /// The largest share of the step that asks no joint to speed up faster than it may. One that still moves the other way is not asked
    /// back before it has stopped: it would make up for the way by going too fast.
    fn share_followed(&self, step: &Joints, period_s: f64) -> f64 {
        let gained = self.limits.speeding_up_deg_s2 * period_s;
        let share = |n: usize| {
            let along = self.moving_deg_s[n].copysign(self.moving_deg_s[n] * step[n]);
            (along + gained).max(0.0) * period_s / step[n].abs()
        };
        (0..6).filter(|n| step[*n] != 0.0).map(share).fold(f64::INFINITY, f64::min)
    }

    /// The largest share of the step, up to `share`, that leads the tool where it may be; 0 if none does.
    fn largest_share(&self, step: &Joints, share: f64, is_allowed: Allows<'_>) -> f64 {
        const BISECTIONS: usize = 12;
        let (mut low, mut high) = (0.0, share);
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            *(if is_allowed(&self.tool_m(step, middle)) { &mut low } else { &mut high }) = middle;
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms::HOME_DEG;

    const MS: u64 = 1_000_000;
    const PERIOD_S: f64 = 0.02;

    /// 40 deg/s at 50 Hz, of 70.
    fn moved(steps: usize) -> Joints {
        let mut joints = HOME_DEG;
        joints[0] += 0.8 * steps as f64;
        joints
    }

    fn turned(deg: f64) -> Joints {
        let mut joints = HOME_DEG;
        joints[0] += deg;
        joints
    }

    #[test]
    fn steady_motion_passes_and_is_rejected_when_a_late_setpoint_is_followed_closely() {
        let mut reject = Reject::new(LIMITS, HOME_DEG);
        assert!((1..20).all(|n| reject.judge(&moved(n), n as u64 * 20 * MS, n as u64 * 20 * MS).is_none()));
        let mut reject = Reject::new(LIMITS, HOME_DEG);
        // The third comes 12 ms late, the fourth in time.
        let reasons = [20, 40, 72, 80, 100]
            .iter()
            .enumerate()
            .map(|(n, at)| reject.judge(&moved(n + 1), at * MS, (n as u64 + 1) * 20 * MS));
        assert_eq!(reasons.collect::<Vec<_>>(), [None, None, None, Some(Reason::ValidatorTimingBug), None]);
    }

    #[test]
    fn what_breaks_a_limit_is_rejected_by_its_name() {
        let mut reject = Reject::new(Limits { joint_deg_s: 1e9, ..LIMITS }, HOME_DEG);
        assert_eq!(reject.judge(&moved(1), 20 * MS, 20 * MS), None);
        assert_eq!(reject.judge(&moved(1), 40 * MS, 40 * MS), Some(Reason::Duplicate));
        assert_eq!(reject.judge(&moved(10), 60 * MS, 60 * MS), Some(Reason::VelocityLimit));
        assert_eq!(Reject::new(LIMITS, HOME_DEG).judge(&turned(176.0), 0, 0), Some(Reason::PositionLimit));
        let mut stretched = HOME_DEG;
        (stretched[1], stretched[2]) = (-180.0, 0.0);
        assert_eq!(Reject::new(LIMITS, HOME_DEG).judge(&stretched, 0, 0), Some(Reason::WorkArea));
    }

    #[test]
    fn clamping_never_steps_too_far_and_never_leaves_the_area() {
        let (mut dice, mut clamp, mut last) = (fastrand::Rng::with_seed(11), Clamp::new(LIMITS, HOME_DEG), HOME_DEG);
        for _ in 0..300 {
            let wanted =
                std::array::from_fn(|n| LOWER_DEG[n] - 20.0 + dice.f64() * (UPPER_DEG[n] - LOWER_DEG[n] + 40.0));
            let (sent, _) = clamp.clamp(&wanted, PERIOD_S);
            assert!(largest_turn_deg(&sent, &last) <= LIMITS.joint_deg_s * PERIOD_S + 1e-9);
            let tool_m = ARM.tool_m(&sent);
            assert!(distance(&tool_m, &ARM.tool_m(&last)) <= LIMITS.tool_m_s * PERIOD_S + 1e-9 && is_in_area(&tool_m));
            last = sent;
        }
    }

    #[test]
    fn after_a_stop_the_first_step_is_measured_from_where_the_arm_is() {
        let mut clamp = Clamp::new(LIMITS, HOME_DEG);
        clamp.rehome(&moved(20));
        let (sent, changed) = clamp.clamp(&HOME_DEG, 0.008);
        assert_eq!(changed, Some(Reason::VelocityLimit));
        assert!(largest_turn_deg(&sent, &moved(20)) <= LIMITS.joint_deg_s * 0.008 + 1e-9);
        clamp.lose();
        assert_eq!(clamp.last_deg, moved(20));
    }

    #[test]
    fn speeding_up_is_limited_and_slowing_down_is_not() {
        let mut clamp = Clamp::new(Limits { speeding_up_deg_s2: 1000.0, ..LIMITS }, HOME_DEG);
        let (mut last, mut speed) = (HOME_DEG, 0.0);
        for _ in 0..20 {
            let (sent, changed) = clamp.clamp(&turned(30.0), 0.008);
            assert!(matches!(changed, Some(Reason::AccelerationLimit | Reason::VelocityLimit)));
            let now = largest_turn_deg(&sent, &last) / 0.008;
            assert!(now - speed <= 8.0 + 1e-6);
            (last, speed) = (sent, now);
        }
        assert!(speed > 30.0);
        assert_eq!(clamp.clamp(&last, 0.008), (last, None));
    }

    #[test]
    fn a_joint_that_still_moves_one_way_is_not_asked_back_before_it_can_have_stopped() {
        let limits = Limits { speeding_up_deg_s2: 2000.0, slowing_down_deg_s2: 1000.0, ..LIMITS };
        let mut clamp = Clamp::new(limits, HOME_DEG);
        (0..10).for_each(|_| _ = clamp.clamp(&turned(30.0), 0.008));
        let mut last = clamp.last_deg[0];
        let steps: [f64; 12] = std::array::from_fn(|_| {
            let sent = clamp.clamp(&turned(-30.0), 0.008).0[0];
            sent - std::mem::replace(&mut last, sent)
        });
        // 70 deg/s take 70 ms to stop: not before the gain of one step (16 deg/s) makes up for what is left.
        assert_eq!(steps[..6], [0.0; 6]);
        assert!(steps[11] < -0.1 && steps.windows(2).all(|pair| pair[1] - pair[0] >= -2000.0 * 0.008 * 0.008 - 1e-9));
    }
}
