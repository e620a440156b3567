//! One leg of a 10 kg quadruped on virtual time: three joints, gravity, and servos that only damp.

use taut_guard::watchdog::damping_torque;

/// A quarter of the robot's weight rests on each leg.
const BODY_KG: f64 = 2.5;
const SHANK_KG: f64 = 0.4;
const LINK_M: f64 = 0.2;
/// Reflected rotor and link inertia at each joint.
const INERTIA_KG_M2: f64 = 0.01;
const G: f64 = 9.81;
pub const STEP_S: f64 = 1e-4;

/// Whether the foot carries the body, or the leg hangs in the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Phase {
    Stance,
    Swing,
}

#[derive(Clone, Copy, Debug)]
pub struct Leg {
    pub phase: Phase,
    /// Abduction, hip, knee.
    pub q: [f64; 3],
    pub omega: [f64; 3],
}

impl Leg {
    pub fn new(phase: Phase, q: [f64; 3]) -> Leg {
        Leg { phase, q, omega: [0.0; 3] }
    }

    /// Height of the body over the foot.
    pub fn height_m(&self) -> f64 {
        let [abduction, hip, knee] = self.q;
        LINK_M * abduction.cos() * (hip.cos() + (hip + knee).cos())
    }

    /// The mass that moves up and down with the height, and the force on it along the height.
    fn mass_and_force(&self) -> (f64, f64) {
        match self.phase {
            Phase::Stance => (BODY_KG, -BODY_KG * G),
            // The foot hangs: its weight makes the leg longer.
            Phase::Swing => (SHANK_KG, SHANK_KG * G),
        }
    }

    pub fn potential_j(&self) -> f64 {
        -self.mass_and_force().1 * self.height_m()
    }

    /// ∂h/∂q.
    fn slope_m(&self) -> [f64; 3] {
        let [abduction, hip, knee] = self.q;
        let shank = (hip + knee).sin();
        [
            -LINK_M * abduction.sin() * (hip.cos() + (hip + knee).cos()),
            -LINK_M * abduction.cos() * (hip.sin() + shank),
            -LINK_M * abduction.cos() * shank,
        ]
    }

    /// How fast the body comes down, or the foot.
    pub fn speed_m_s(&self) -> f64 {
        self.slope_m().iter().zip(self.omega).map(|(slope, omega)| slope * omega).sum()
    }

    pub fn energy_j(&self) -> f64 {
        let rotation = self.omega.iter().map(|omega| 0.5 * INERTIA_KG_M2 * omega * omega).sum::<f64>();
        self.potential_j() + rotation + 0.5 * self.mass_and_force().0 * self.speed_m_s().powi(2)
    }

    /// Torque of the weight at each joint: −∂V/∂q.
    pub fn load_nm(&self) -> [f64; 3] {
        self.slope_m().map(|slope| slope * self.mass_and_force().1)
    }

    /// One step with damping servos (midpoint rule); `kd` 0 is free fall.
    pub fn step(&mut self, kd_nm_s: f64, max_nm: f64) {
        let mut middle = *self;
        middle.advance(self.acceleration(kd_nm_s, max_nm), self.omega, STEP_S / 2.0);
        let (acceleration, omega) = (middle.acceleration(kd_nm_s, max_nm), middle.omega);
        self.advance(acceleration, omega, STEP_S);
    }

    fn advance(&mut self, acceleration: [f64; 3], omega: [f64; 3], seconds: f64) {
        for joint in 0..3 {
            self.q[joint] += omega[joint] * seconds;
            self.omega[joint] += acceleration[joint] * seconds;
        }
    }

    /// Lagrange's equations: (I + m·J·Jᵀ)·q̈ = J·(F − m·q̇ᵀHq̇) + τ, inverted by Sherman and Morrison's formula.
    fn acceleration(&self, kd_nm_s: f64, max_nm: f64) -> [f64; 3] {
        let ((mass, force), slope) = (self.mass_and_force(), self.slope_m());
        let at = |seconds: f64| {
            let mut moved = *self;
            moved.advance([0.0; 3], self.omega, seconds);
            moved.speed_m_s()
        };
        let bend = (at(1e-4) - at(-1e-4)) / 2e-4;
        let torque: [f64; 3] = std::array::from_fn(|joint| {
            slope[joint] * (force - mass * bend) + damping_torque(kd_nm_s, self.omega[joint], max_nm)
        });
        let dot = |a: &[f64; 3], b: &[f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let shared = mass * dot(&slope, &torque) / (INERTIA_KG_M2 + mass * dot(&slope, &slope));
        std::array::from_fn(|joint| (torque[joint] - shared * slope[joint]) / INERTIA_KG_M2)
    }
}
