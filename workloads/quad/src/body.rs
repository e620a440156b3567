//! The robot's body in MuJoCo: torques come in, places and forces go out. One step is half a millisecond.

use std::{f64::consts::TAU, path::Path};

use anyhow::{Result, ensure};
use taut_bus::cycle::Attitude;
use taut_mujoco::{Simulation, Sizes};

use crate::joints::{LEGS, SERVOS};

/// The timestep of `robot.xml`.
pub const STEP_NS: u64 = 500_000;
const ROBOT: &str = include_str!("../robot.xml");
/// Folded under the body, feet where they will stand: shoulder, femur, tibia, rad.
const FOLDED: [f64; 3] = [-0.100, 0.969, -2.803];
/// Height at which the body lies on the ground then, m: `robot.xml`'s.
const LYING_M: f64 = 0.075;
/// A free joint, and before the joints' angles its position and quaternion, its speeds and rates.
const SIZES: Sizes = Sizes { qpos: 7 + SERVOS, qvel: 6 + SERVOS, ctrl: SERVOS };
/// Sensors by their order in `robot.xml`; those of the feet follow the whole ground's.
const QUATERNION: usize = 0;
const RATE: usize = 1;
const ACCELERATION: usize = 2;
const GROUND: usize = 3;
const POTENTIAL: usize = 8;
const KINETIC: usize = 9;
/// Below that a sum of forces counts as none, N: what remains of a difference of equal ones.
const NO_FORCE_N: f64 = 1e-6;

/// What is to be known of the robot after a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Felt {
    /// What its inertial unit feels.
    pub attitude: Attitude,
    /// Angles of the joints, revolutions.
    pub joints_rev: [f64; SERVOS],
    /// Speeds of the joints, revolutions a second.
    pub joints_rev_s: [f64; SERVOS],
    /// Height of the body's middle over the ground, m.
    pub height_m: f64,
    /// Its speed upward, m/s.
    pub up_m_s: f64,
    /// Force of the ground on all of the robot, and on everything but its feet, N.
    pub ground_n: f64,
    /// The latter.
    pub body_n: f64,
    /// Mechanical energy, J.
    pub energy_j: f64,
}

/// The body.
pub struct Body {
    simulation: Simulation,
    felt: Felt,
}

impl Body {
    /// Folded on the ground, with MuJoCo's library at `path`.
    ///
    /// # Errors
    /// The library cannot be opened, or is of another version.
    pub fn new(path: &Path) -> Result<Body> {
        let mut simulation = Simulation::new(path, ROBOT)?;
        ensure!(simulation.sizes() == SIZES, "robot.xml has {:?} where {SIZES:?} are expected", simulation.sizes());
        let mut qpos = [0.0; SIZES.qpos];
        (qpos[2], qpos[3]) = (LYING_M, 1.0);
        qpos[7..].chunks_exact_mut(FOLDED.len()).for_each(|leg| leg.copy_from_slice(&FOLDED));
        simulation.place(&qpos);
        let felt = felt(&simulation);
        Ok(Body { simulation, felt })
    }

    /// Moves on by a step under these torques, Nm.
    pub fn step(&mut self, torques_nm: &[f64; SERVOS]) {
        self.simulation.step(torques_nm);
        self.felt = felt(&self.simulation);
    }

    /// What is to be known of it now.
    pub fn felt(&self) -> &Felt {
        &self.felt
    }
}

fn felt(simulation: &Simulation) -> Felt {
    let (mut qpos, mut qvel) = ([0.0; SIZES.qpos], [0.0; SIZES.qvel]);
    simulation.qpos(&mut qpos);
    simulation.qvel(&mut qvel);
    // SAFETY: a quaternion has 4 values, a rate, an acceleration and a net force 3 each, an energy one.
    let (quaternion, rate, acceleration, ground, feet, energy) = unsafe {
        (
            simulation.sensor::<4>(QUATERNION),
            simulation.sensor::<3>(RATE),
            simulation.sensor::<3>(ACCELERATION),
            simulation.sensor::<3>(GROUND),
            (1..=LEGS).map(|foot| simulation.sensor::<3>(GROUND + foot)[2]).sum::<f64>(),
            simulation.sensor::<1>(POTENTIAL)[0] + simulation.sensor::<1>(KINETIC)[0],
        )
    };
    let body_n = ground[2] - feet;
    Felt {
        attitude: Attitude { quaternion, rate_dps: rate.map(f64::to_degrees), acceleration_m_s2: acceleration },
        joints_rev: std::array::from_fn(|joint| qpos[7 + joint] / TAU),
        joints_rev_s: std::array::from_fn(|joint| qvel[6 + joint] / TAU),
        height_m: qpos[2],
        up_m_s: qvel[2],
        ground_n: ground[2],
        body_n: if body_n > NO_FORCE_N { body_n } else { 0.0 },
        energy_j: energy,
    }
}

#[cfg(test)]
pub mod tests {
    use std::process::Command;

    use taut_mujoco::of_checkout;
    use taut_skip::{Need, skip};

    use super::*;

    /// A body, where MuJoCo is installed; else the calling test is reported as skipped.
    #[track_caller]
    pub fn body() -> Option<Body> {
        let Some((_, library)) = of_checkout() else {
            skip(Need::Mujoco, "no package mujoco in .venv");
            return None;
        };
        Some(Body::new(&library).unwrap())
    }

    /// A torque for each servo in each step: what moves the legs, lands the body on its side, and repeats.
    fn torque_nm(step: usize, servo: usize) -> f64 {
        8.0 * ((step * (servo + 3)) as f64 / 97.0).sin()
    }

    /// MuJoCo's own Python binding, the same torques, contacts summed one by one.
    const REFERENCE: &str = "
import math, sys
import mujoco, numpy as np
model = mujoco.MjModel.from_xml_path(sys.argv[1])
data = mujoco.MjData(model)
data.qpos[:] = [0, 0, 0.075, 1, 0, 0, 0] + [-0.100, 0.969, -2.803] * 4
mujoco.mj_forward(model, data)
feet = [model.geom(f'foot{leg}').id for leg in (1, 2, 3, 4)]
force = np.zeros(6)
print(repr(float(sum(model.body_mass))), *(repr(float(data.geom(f'foot{leg}').xpos[2])) for leg in (1, 2, 3, 4)))
for step in range(2000):
    data.ctrl[:] = [8.0 * math.sin(step * (servo + 3) / 97.0) for servo in range(12)]
    mujoco.mj_step(model, data)
    body = ground = 0.0
    for at in range(data.ncon):
        mujoco.mj_contactForce(model, data, at, force)
        ground += force[0]
        body += force[0] if data.contact[at].geom[1] not in feet else 0.0
    told = [*data.qpos, *data.qvel, *data.sensordata[:10], ground, body, *data.sensordata[-2:]]
    print(*(repr(float(value)) for value in told))
";

    #[test]
    fn it_moves_as_mujocos_own_binding_moves_it_step_by_step() {
        let (Some((python, _)), Some(mut body)) = (of_checkout(), body()) else { return };
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("robot.xml");
        let reference = Command::new(python).args(["-c", REFERENCE]).arg(model).output().unwrap();
        let printed = String::from_utf8(reference.stdout).unwrap();
        assert!(reference.status.success(), "{}", String::from_utf8_lossy(&reference.stderr));
        let mut lines =
            printed.lines().map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<f64>>());
        let first = lines.next().unwrap();
        let [mass_kg, feet_m @ ..] = &first[..] else { panic!() };
        assert!((mass_kg - 10.0).abs() < 1e-9, "{mass_kg} kg");
        // Their centres are a radius above the ground.
        assert!(feet_m.iter().all(|height_m| (height_m - 0.02).abs() < 2e-3), "{feet_m:?}");
        let (mut qpos, mut qvel) = ([0.0; SIZES.qpos], [0.0; SIZES.qvel]);
        let mut most_n = 0.0f64;
        for (step, expected) in lines.enumerate() {
            body.step(&std::array::from_fn(|servo| torque_nm(step, servo)));
            body.simulation.qpos(&mut qpos);
            body.simulation.qvel(&mut qvel);
            let felt = body.felt();
            let inertial = felt.attitude.quaternion.iter().copied();
            let inertial = inertial.chain(felt.attitude.rate_dps.map(f64::to_radians));
            let exact: Vec<f64> = qpos.iter().chain(&qvel).copied().collect();
            assert_eq!(exact, expected[..exact.len()], "step {step}");
            let about: Vec<f64> = inertial
                .chain(felt.attitude.acceleration_m_s2)
                .chain([felt.ground_n, felt.body_n, felt.energy_j])
                .collect();
            let mut expected = expected[exact.len()..].to_vec();
            let kinetic_j = expected.pop().unwrap();
            *expected.last_mut().unwrap() += kinetic_j;
            for (found, expected) in about.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
                    "step {step}: {about:?} {expected}"
                );
            }
            most_n = most_n.max(felt.body_n);
        }
        assert!(most_n > 50.0, "the body never touched the ground: {most_n} N");
    }

    #[test]
    fn a_library_that_is_not_mujocos_is_refused_with_the_remedy() {
        for (path, said) in [("/nowhere/libmujoco.so", "/nowhere/libmujoco.so"), ("/proc/self/exe", "/proc/self/exe")] {
            let error = format!("{:#}", Body::new(Path::new(path)).err().unwrap());
            assert!(error.contains(said) && error.contains("pip install"), "{error}");
        }
    }
}
