//! A joint servo that moves at finite speed, in steps of 1 ms of its own time, and the hand that may lead it.

use crate::arms::{Arm, Joints};

pub const STEP_NS: u64 = 1_000_000;
const STEP_S: f64 = 1e-3;
/// Time constant of the position loop: the lag behind a moving target.
const FOLLOW_TIME_S: f64 = 0.008;

/// Where the servo is to be.
#[derive(Clone, Debug)]
pub enum Target {
    /// Here, and at rest.
    Place(Joints),
    /// Where the operator's hand is.
    Hand(Hand),
}

/// An operator's hand that goes round a closed path, gently up to speed within a second.
#[derive(Clone, Debug)]
pub struct Hand {
    pub path: Vec<Joints>,
    pub lap_s: f64,
    pub start_ns: u64,
}

impl Hand {
    pub fn laps(&self, now_ns: u64) -> f64 {
        let t = now_ns.saturating_sub(self.start_ns) as f64 / 1e9;
        (if t < 1.0 { t * t / 2.0 } else { t - 0.5 }) / self.lap_s
    }

    fn joints_deg(&self, now_ns: u64) -> Joints {
        let at = self.laps(now_ns).fract() * self.path.len() as f64;
        let (index, part) = (at as usize, at.fract());
        let (before, after) = (&self.path[index % self.path.len()], &self.path[(index + 1) % self.path.len()]);
        std::array::from_fn(|n| before[n] + part * (after[n] - before[n]))
    }
}

/// Six joints that follow a target under limits of speed and acceleration.
#[derive(Debug)]
pub struct Servo {
    arm: &'static Arm,
    pub joints_deg: Joints,
    pub speeds_deg_s: Joints,
    pub time_ns: u64,
    pub target: Target,
}

impl Servo {
    pub fn new(arm: &'static Arm, joints_deg: Joints, now_ns: u64) -> Servo {
        Servo { arm, joints_deg, speeds_deg_s: [0.0; 6], time_ns: now_ns, target: Target::Place(joints_deg) }
    }

    /// To rest where it is.
    pub fn hold(&mut self) {
        self.target = Target::Place(self.joints_deg);
    }

    /// One step, if its time has come by `now_ns`.
    pub fn step(&mut self, now_ns: u64) -> bool {
        if self.time_ns + STEP_NS > now_ns {
            return false;
        }
        self.time_ns += STEP_NS;
        let target = match &self.target {
            Target::Place(place) => *place,
            Target::Hand(hand) => hand.joints_deg(self.time_ns),
        };
        let most = self.arm.max_accel_deg_s2;
        let joints = self.joints_deg.iter_mut().zip(&mut self.speeds_deg_s).zip(&self.arm.max_speed_deg_s);
        for (((joint, speed), most_deg_s), target) in joints.zip(target) {
            let error = target - *joint;
            // The fastest speed from which the joint can still brake onto the target.
            let braking = (2.0 * most * error.abs()).sqrt();
            let wanted = (error.abs() / FOLLOW_TIME_S).min(braking).min(*most_deg_s);
            let change = wanted.copysign(error) - *speed;
            *speed += change.clamp(-most * STEP_S, most * STEP_S);
            *joint += *speed * STEP_S;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms::{ARMS, FR20, HOME_DEG};

    #[test]
    fn it_obeys_its_limits_and_arrives() {
        let target = [90.0, -90.0, 30.0, 1.0, 0.0, -150.0];
        for arm in ARMS {
            let mut servo = Servo::new(arm, [0.0; 6], 0);
            servo.target = Target::Place(target);
            let mut before = [0.0; 6];
            while servo.step(3_000 * STEP_NS) {
                let speeds = servo.speeds_deg_s.iter().zip(&arm.max_speed_deg_s).zip(before);
                for ((speed, most), before) in speeds {
                    assert!(speed.abs() <= most + 1e-9);
                    assert!((speed - before).abs() <= arm.max_accel_deg_s2 * 1e-3 + 1e-9);
                }
                before = servo.speeds_deg_s;
            }
            assert!((0..6).all(|n| (servo.joints_deg[n] - target[n]).abs() < 0.05));
        }
    }

    #[test]
    fn it_is_the_same_however_rarely_it_is_looked_at() {
        let [mut often, mut once] = [(); 2].map(|()| Servo::new(&FR20, [0.0; 6], 0));
        often.target = Target::Place([20.0; 6]);
        once.target = Target::Place([20.0; 6]);
        for now_ns in (0..200_000_001).step_by(700_000).chain([200_000_000]) {
            while often.step(now_ns) {}
        }
        while once.step(200_000_000) {}
        assert_eq!(often.joints_deg, once.joints_deg);
    }

    #[test]
    fn a_hand_comes_gently_up_to_speed() {
        let hand = Hand { path: vec![HOME_DEG; 4], lap_s: 0.5, start_ns: 1_000_000_000 };
        let laps = |s: f64| hand.laps((1e9 * (1.0 + s)) as u64);
        assert_eq!([laps(0.0), laps(1.0), laps(2.0)], [0.0, 1.0, 3.0]);
        assert_eq!(hand.joints_deg(7), HOME_DEG);
    }
}
