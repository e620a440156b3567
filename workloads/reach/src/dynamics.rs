//! The arm in MuJoCo: as it moves, and as its controller computes with it, each in a simulation of its own.

use std::path::Path;

use anyhow::{Result, ensure};
use taut_mujoco::{Simulation, Sizes};

use crate::trajectory::{JOINTS, Joints, Reference};

const PANDA: &str = include_str!("../panda.xml");
const SIZES: Sizes = Sizes { qpos: JOINTS, qvel: JOINTS, ctrl: JOINTS };
/// The time step of `panda.xml`.
pub const STEP_NS: u64 = 1_000_000;
/// Its keyframe and its sensor by their order.
const HOME: usize = 0;
const CONTACTS: usize = 0;
/// Its joints' damping, N·m·s/rad, and its motors' limits, N·m.
const JOINT_DAMPING: f64 = 1.0;
const MOST_NM: Joints = [87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0];
/// Of the computed torque, in 1/s² and 1/s: critically damped at 30 rad/s.
const STIFFNESS: f64 = 900.0;
const DAMPING: f64 = 60.0;

/// With MuJoCo's library at `path`, at home.
fn at_home(path: &Path) -> Result<Simulation> {
    let mut simulation = Simulation::new(path, PANDA)?;
    ensure!(simulation.sizes() == SIZES, "panda.xml has {:?} where {SIZES:?} are expected", simulation.sizes());
    simulation.reset(HOME);
    Ok(simulation)
}

/// The arm that moves.
pub struct Body(Simulation);

impl Body {
    pub fn new(path: &Path) -> Result<Body> {
        at_home(path).map(Body)
    }

    /// Home, at rest.
    pub fn reset(&mut self) {
        self.0.reset(HOME);
    }

    /// Moves on by a step.
    pub fn step(&mut self, torques: &Joints) {
        self.0.step(torques);
    }

    /// At rest, where it is.
    pub fn stop(&mut self) {
        self.0.place_moving(&self.positions(), &[0.0; JOINTS]);
    }

    pub fn positions(&self) -> Joints {
        let mut positions = [0.0; JOINTS];
        self.0.qpos(&mut positions);
        positions
    }

    pub fn speeds(&self) -> Joints {
        let mut speeds = [0.0; JOINTS];
        self.0.qvel(&mut speeds);
        speeds
    }

    pub fn touches(&self) -> bool {
        // SAFETY: a contact sensor of one slot, of which it has whether there is one.
        let [contacts] = unsafe { self.0.sensor(CONTACTS) };
        contacts > 0.0
    }
}

/// What the controller knows of the arm.
pub struct Model {
    simulation: Simulation,
    pub home: Joints,
}

impl Model {
    pub fn new(path: &Path) -> Result<Model> {
        let body = Body::new(path)?;
        Ok(Model { home: body.positions(), simulation: body.0 })
    }

    /// Computed torque: inertia times the wanted acceleration, and what gravity and motion ask for.
    pub fn torques(&mut self, positions: &Joints, speeds: &Joints, reference: &Reference) -> Joints {
        self.simulation.place_moving(positions, speeds);
        let wanted: Joints = std::array::from_fn(|joint| {
            reference.acceleration[joint]
                + STIFFNESS * (reference.position[joint] - positions[joint])
                + DAMPING * (reference.speed[joint] - speeds[joint])
        });
        let (mut torques, mut bias) = ([0.0; JOINTS], [0.0; JOINTS]);
        self.simulation.inertia_times(&wanted, &mut torques);
        self.simulation.bias(&mut bias);
        std::array::from_fn(|joint| {
            let torque = torques[joint] + bias[joint] + JOINT_DAMPING * speeds[joint];
            torque.clamp(-MOST_NM[joint], MOST_NM[joint])
        })
    }
}

#[cfg(test)]
pub mod tests {
    use std::path::PathBuf;

    use taut_skip::{Need, skip};

    use super::*;

    /// MuJoCo's library, where it is installed; else the calling test is reported as skipped.
    #[track_caller]
    pub fn library() -> Option<PathBuf> {
        let found = taut_mujoco::of_checkout();
        if found.is_none() {
            skip(Need::Mujoco, "no package mujoco in .venv");
        }
        found.map(|(_, library)| library)
    }

    #[test]
    fn the_computed_torques_accelerate_the_arm_as_wanted() {
        let Some(library) = library() else { return };
        let (mut body, mut model) = (Body::new(&library).unwrap(), Model::new(&library).unwrap());
        let speeds: Joints = std::array::from_fn(|joint| 0.2 + 0.05 * joint as f64);
        let acceleration: Joints = std::array::from_fn(|joint| 0.5 - 0.2 * joint as f64);
        let home = model.home;
        body.0.place_moving(&home, &speeds);
        let reference = Reference { position: home, speed: speeds, acceleration };
        body.step(&model.torques(&home, &speeds, &reference));
        for (joint, (after, before)) in body.speeds().iter().zip(&speeds).enumerate() {
            let found = (after - before) / (STEP_NS as f64 / 1e9);
            assert!((found - acceleration[joint]).abs() < 0.02, "joint {joint}: {found} {}", acceleration[joint]);
        }
        assert_eq!(model.torques(&home, &[0.0; JOINTS], &Reference::rest([9.0; JOINTS])), MOST_NM);
    }

    #[test]
    fn it_says_when_it_touches_something() {
        let Some(library) = library() else { return };
        let mut body = Body::new(&library).unwrap();
        assert!(!body.touches());
        body.0.place(&[0.0, 1.7, 0.0, -0.1, 0.0, 1.5, 0.0]);
        assert!(body.touches());
        body.reset();
        assert!(!body.touches());
    }
}
