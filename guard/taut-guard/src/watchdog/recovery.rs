//! The restart after a stop: the first setpoint is where the joints are, and the target is approached in limited steps.

use crate::error::{Error, within};

/// A walk from measured positions to targets, in steps of limited length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp<const N: usize> {
    at: [f64; N],
    step_max: f64,
    is_fresh: bool,
}

impl<const N: usize> Ramp<N> {
    /// Starts where the joints were just measured. `step_max` bounds the Euclidean length of a step.
    ///
    /// # Errors
    /// Positions that are not finite, or a step outside 10⁻⁶ to 10³.
    pub fn from_measured(measured: [f64; N], step_max: f64) -> Result<Ramp<N>, Error> {
        within("step_max", step_max, 1e-6, 1e3)?;
        if measured.iter().any(|position| !position.is_finite()) {
            return Err(Error::NotFinite("measured"));
        }
        Ok(Ramp { at: measured, step_max, is_fresh: true })
    }

    /// The next setpoint, and whether it is the target. A target that is not finite is not approached.
    pub fn next(&mut self, target: &[f64; N]) -> ([f64; N], bool) {
        if core::mem::take(&mut self.is_fresh) || target.iter().any(|position| !position.is_finite()) {
            return (self.at, self.at == *target);
        }
        let squares = self.at.iter().zip(target).map(|(at, target)| (target - at) * (target - at));
        let distance = libm::sqrt(squares.sum());
        if distance <= self.step_max {
            self.at = *target;
            return (self.at, true);
        }
        let share = self.step_max / distance;
        for (at, target) in self.at.iter_mut().zip(target) {
            *at += (target - *at) * share;
        }
        (self.at, false)
    }
}
