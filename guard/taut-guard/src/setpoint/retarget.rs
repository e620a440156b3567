//! Jerk-limited retargeting with Ruckig (Berscheid and Kröger, *Jerk-limited Real-time Trajectory Generation with
//! Arbitrary Target States*, RSS 2021): each setpoint is a new target for a motion that starts in the last sent state.

use rsruckig::prelude::{InputParameter, OutputParameter, Ruckig, RuckigError, RuckigResult, ThrowErrorHandler};

use crate::{
    error::{Error, within},
    ledger::{Fate, Reason},
};

/// What each axis may do, in its unit per second, per second², per second³.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JerkLimits<const N: usize> {
    /// The servo's period.
    pub period_ns: u64,
    /// Least position of each axis.
    pub position_min: [f64; N],
    /// Greatest position of each axis.
    pub position_max: [f64; N],
    /// Kept away from both.
    pub margin: f64,
    /// Greatest velocity.
    pub velocity_max: [f64; N],
    /// Greatest acceleration.
    pub acceleration_max: [f64; N],
    /// Greatest jerk.
    pub jerk_max: [f64; N],
}

/// The state to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retargeted<const N: usize> {
    /// Position.
    pub position: [f64; N],
    /// Velocity.
    pub velocity: [f64; N],
    /// Acceleration.
    pub acceleration: [f64; N],
    /// Passed if the target itself was reached, else modified: for [`Reason::PositionLimit`] if it lies beyond the limits, for
    /// [`Reason::AccelerationLimit`] if it is not reached yet.
    pub fate: Fate,
}

/// One stream's trajectory generator. It allocates when constructed.
#[derive(Debug)]
pub struct Retarget<const N: usize> {
    generator: Ruckig<N, ThrowErrorHandler>,
    input: InputParameter<N>,
    output: OutputParameter<N>,
    limits: JerkLimits<N>,
}

impl<const N: usize> Retarget<N> {
    /// At rest where the robot is.
    ///
    /// # Errors
    /// Limits out of range, or a position that is not finite.
    pub fn new(limits: JerkLimits<N>, measured: [f64; N]) -> Result<Retarget<N>, Error> {
        within("period_ns", limits.period_ns as f64, 1e5, 1e9)?;
        within("margin", limits.margin, 0.0, 1e6)?;
        let mut input = InputParameter::new(None);
        for (axis, position) in measured.into_iter().enumerate() {
            within("velocity_max", limits.velocity_max[axis], 1e-6, 1e6)?;
            within("acceleration_max", limits.acceleration_max[axis], 1e-6, 1e6)?;
            within("jerk_max", limits.jerk_max[axis], 1e-6, 1e9)?;
            within("measured", position, -1e9, 1e9)?;
            within("position_min", limits.position_min[axis], -1e9, 1e9)?;
            let least = limits.position_min[axis] + 2.0 * limits.margin;
            within("position_max", limits.position_max[axis], least, 1e9)?;
            input.max_velocity[axis] = limits.velocity_max[axis];
            input.max_acceleration[axis] = limits.acceleration_max[axis];
            input.max_jerk[axis] = limits.jerk_max[axis];
            input.current_position[axis] = position;
        }
        let generator = Ruckig::new(None, limits.period_ns as f64 * 1e-9);
        Ok(Retarget { generator, input, output: OutputParameter::new(None), limits })
    }

    /// One period towards a target. Give the target's velocity: a target at rest each time means stop and go.
    ///
    /// # Errors
    /// A target that is not finite, or one that the generator finds no way to; the state stays as it was.
    pub fn step(&mut self, target: &[f64; N], velocity: &[f64; N]) -> Result<Retargeted<N>, Error> {
        if target.iter().chain(velocity).any(|x| !x.is_finite()) {
            return Err(Error::NotFinite("target"));
        }
        let mut is_beyond = false;
        for axis in 0..N {
            let (position, velocity) = self.within_limits(axis, target[axis], velocity[axis]);
            is_beyond |= position != target[axis];
            self.input.target_position[axis] = position;
            self.input.target_velocity[axis] = velocity;
        }
        let result = self.generator.update(&self.input, &mut self.output).map_err(|error| match error {
            RuckigError::ValidationError(_) => Error::NoTrajectory("the state or target violates its own limits"),
            RuckigError::CalculatorError(_) => Error::NoTrajectory("the calculation failed"),
        })?;
        let is_reached = match result {
            RuckigResult::Working => false,
            RuckigResult::Finished => true,
            _ => return Err(Error::NoTrajectory("the calculation failed")),
        };
        self.output.pass_to_input(&mut self.input);
        let fate = match (is_beyond, is_reached) {
            (true, _) => Fate::Modified(Reason::PositionLimit),
            (false, true) => Fate::Passed,
            (false, false) => Fate::Modified(Reason::AccelerationLimit),
        };
        Ok(Retargeted {
            position: core::array::from_fn(|axis| self.output.new_position[axis]),
            velocity: core::array::from_fn(|axis| self.output.new_velocity[axis]),
            acceleration: core::array::from_fn(|axis| self.output.new_acceleration[axis]),
            fate,
        })
    }

    /// The nearest target that the axis may be at, no faster than that it can still stop before the limit: at the limit its
    /// outward velocity is zero.
    fn within_limits(&self, axis: usize, target: f64, velocity: f64) -> (f64, f64) {
        let JerkLimits { position_min, position_max, margin, velocity_max, acceleration_max, jerk_max, .. } =
            &self.limits;
        let (low, high) = (position_min[axis] + margin, position_max[axis] - margin);
        let position = target.clamp(low, high);
        // Braking from v takes v²/2a + v·a/2j, and less where the full acceleration is not reached.
        let (a, ramp) =
            (acceleration_max[axis], acceleration_max[axis] * acceleration_max[axis] / 2.0 / jerk_max[axis]);
        let stoppable = |way: f64| (libm::sqrt(ramp * ramp + 2.0 * a * way) - ramp).min(velocity_max[axis]);
        (position, velocity.clamp(-stoppable(position - low), stoppable(high - position)))
    }
}
