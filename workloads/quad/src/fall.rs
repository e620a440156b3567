//! How fast and how hard a robot reaches the ground, and whether it stood before.

use moteus_protocol::Mode;
use serde_json::{Value, json};

use crate::{body::Felt, gait::PERIOD_S, joints::SERVOS};

/// Below this height of its middle a robot does not stand, m; it stands at 0.23 m.
pub const STANDS_M: f64 = 0.18;
/// Standing up is over by then, ns of the simulated clock.
const RISEN_NS: u64 = 2_000_000_000;
const PERIOD_NS: u64 = (PERIOD_S * 1e9) as u64;

/// From the failure on, and what it was before.
#[derive(Clone, Debug)]
pub struct Fall {
    /// When the failure is due, ns; `u64::MAX` for none.
    at_ns: u64,
    /// The lowest that the body ever was between standing up and the failure, m.
    pub least_height_m: Option<f64>,
    /// Whether all servos followed, the body was up, and nothing but feet touched the ground, in the last step before it.
    stands: bool,
    /// Until every servo damps, or is off with a fault of its own, ns.
    pub damped_after_ns: Option<u64>,
    /// Until a servo that damped, or was off with a fault, first followed a setpoint again, ns.
    pub followed_again_after_ns: Option<u64>,
    let_go: [bool; SERVOS],
    /// When the last frame was sent to each servo, ns of the simulated clock.
    sent_ns: [Option<u64>; SERVOS],
    /// The least time from the last frame to a servo until it was in time-out, ns.
    pub timed_out_after_ns: Option<u64>,
    /// Servos that were in time-out.
    timed_out: [bool; SERVOS],
    /// Until anything but a foot touches the ground, ns, and the body's downward speed then, m/s.
    down_after_ns: Option<u64>,
    impact_m_s: Option<f64>,
    fastest_down_m_s: f64,
    /// Upward, m/s: in the gait's last period before the failure; while servos still follow setpoints; once all damp.
    usual_up_m_s: f64,
    following_up_m_s: f64,
    damped_up_m_s: f64,
    /// How far the body ever was above where it was when all servos damped, m.
    damped_rise_m: f64,
    damped_m: f64,
    fastest_joint_rev_s: f64,
    /// Of the ground on everything but the feet, and on the whole robot, N.
    peak_body_n: f64,
    peak_ground_n: f64,
    /// How far the mechanical energy ever rose above its least so far, once all servos damped, J.
    energy_rise_j: f64,
    least_j: f64,
    down_m_s: f64,
}

impl Fall {
    /// Watches a robot to which something happens at `at_ns`; `u64::MAX`: nothing.
    pub fn new(at_ns: u64) -> Fall {
        Fall {
            at_ns,
            least_height_m: None,
            stands: false,
            damped_after_ns: None,
            followed_again_after_ns: None,
            let_go: [false; SERVOS],
            sent_ns: [None; SERVOS],
            timed_out_after_ns: None,
            timed_out: [false; SERVOS],
            down_after_ns: None,
            impact_m_s: None,
            fastest_down_m_s: 0.0,
            usual_up_m_s: 0.0,
            following_up_m_s: 0.0,
            damped_up_m_s: 0.0,
            damped_rise_m: 0.0,
            damped_m: f64::INFINITY,
            fastest_joint_rev_s: 0.0,
            peak_body_n: 0.0,
            peak_ground_n: 0.0,
            energy_rise_j: 0.0,
            least_j: f64::INFINITY,
            down_m_s: 0.0,
        }
    }

    /// A frame was sent to a servo.
    pub fn sent(&mut self, servo: usize, now_ns: u64) {
        if let Some(sent_ns) = self.sent_ns.get_mut(servo) {
            *sent_ns = Some(now_ns);
        }
    }

    /// Takes the next step.
    pub fn watch(&mut self, now_ns: u64, felt: &Felt, modes: &[Mode; SERVOS]) {
        let Some(after_ns) = now_ns.checked_sub(self.at_ns) else {
            self.before(now_ns, felt, modes);
            return;
        };
        let is_down = |mode: &Mode| matches!(mode, Mode::Fault | Mode::Timeout | Mode::ZeroVelocity);
        for (servo, mode) in modes.iter().enumerate() {
            if *mode == Mode::Timeout && !std::mem::replace(&mut self.timed_out[servo], true) {
                let silence_ns = self.sent_ns[servo].map(|sent_ns| now_ns.saturating_sub(sent_ns));
                self.timed_out_after_ns = self.timed_out_after_ns.into_iter().chain(silence_ns).min();
            }
            self.let_go[servo] |= is_down(mode);
            if *mode == Mode::Position && self.let_go[servo] {
                self.followed_again_after_ns.get_or_insert(after_ns);
            }
        }
        if self.damped_after_ns.is_none() && modes.iter().all(is_down) {
            (self.damped_after_ns, self.damped_m) = (Some(after_ns), felt.height_m);
        }
        if felt.body_n > 0.0 && self.down_after_ns.is_none() {
            // The contact has already slowed this step: the speed is that of the one before.
            (self.down_after_ns, self.impact_m_s) = (Some(after_ns), Some(self.down_m_s));
        }
        self.down_m_s = -felt.up_m_s;
        self.fastest_down_m_s = self.fastest_down_m_s.max(self.down_m_s);
        let joint = felt.joints_rev_s.iter().fold(0.0f64, |most, rev_s| most.max(rev_s.abs()));
        self.fastest_joint_rev_s = self.fastest_joint_rev_s.max(joint);
        self.peak_body_n = self.peak_body_n.max(felt.body_n);
        self.peak_ground_n = self.peak_ground_n.max(felt.ground_n);
        if self.damped_after_ns.is_none() {
            self.following_up_m_s = self.following_up_m_s.max(felt.up_m_s);
        } else {
            self.damped_up_m_s = self.damped_up_m_s.max(felt.up_m_s);
            self.damped_rise_m = self.damped_rise_m.max(felt.height_m - self.damped_m);
            self.least_j = self.least_j.min(felt.energy_j);
            self.energy_rise_j = self.energy_rise_j.max(felt.energy_j - self.least_j);
        }
    }

    fn before(&mut self, now_ns: u64, felt: &Felt, modes: &[Mode; SERVOS]) {
        let is_up = felt.height_m > STANDS_M && felt.body_n == 0.0;
        self.stands = is_up && modes.iter().all(|mode| *mode == Mode::Position);
        if now_ns >= RISEN_NS {
            self.least_height_m = Some(self.least_height_m.map_or(felt.height_m, |least| least.min(felt.height_m)));
        }
        if now_ns.saturating_add(PERIOD_NS) >= self.at_ns {
            self.usual_up_m_s = self.usual_up_m_s.max(felt.up_m_s);
        }
        self.down_m_s = -felt.up_m_s;
    }

    /// Whether the robot stood, on its feet and following, until the failure or, without one, until now.
    pub fn stood(&self) -> bool {
        self.stands && self.least_height_m.is_none_or(|height_m| height_m > STANDS_M)
    }

    /// How many servos were in time-out.
    pub fn timed_out(&self) -> usize {
        self.timed_out.iter().filter(|timed_out| **timed_out).count()
    }

    /// As plain numbers: s, m, m/s, rad/s, N, J.
    pub fn told(&self) -> Value {
        let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9);
        json!({
            "damped_after_s": seconds(self.damped_after_ns),
            "followed_again_after_s": seconds(self.followed_again_after_ns),
            "timed_out_after_s": seconds(self.timed_out_after_ns),
            "timed_out_servos": self.timed_out(),
            "down_after_s": seconds(self.down_after_ns),
            "impact_m_s": self.impact_m_s,
            "fastest_down_m_s": self.fastest_down_m_s,
            "usual_up_m_s": self.usual_up_m_s,
            "following_up_m_s": self.following_up_m_s,
            "damped_up_m_s": self.damped_up_m_s,
            "damped_rise_m": self.damped_rise_m,
            "fastest_joint_rad_s": self.fastest_joint_rev_s * std::f64::consts::TAU,
            "peak_body_n": self.peak_body_n,
            "peak_ground_n": self.peak_ground_n,
            "energy_rise_j": self.energy_rise_j,
        })
    }
}
