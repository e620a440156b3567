//! Keeps setpoints within limits, by the last one that was *sent*: not by the measured position, which lags and takes
//! speed, nor by the last one received, after whose rejection the next jump is larger still.

use crate::{
    error::{Error, within},
    ledger::{Fate, Reason},
};

/// How a step that is too long is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Each axis by itself: fastest, leaves the path.
    Clamp,
    /// All axes by one factor: keeps to the path.
    Scale,
}

/// The limits of one command stream; units are those of its positions, per second where it says velocity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits<const N: usize> {
    /// The stream's nominal period T. Time never comes from arrivals (reason 11).
    pub period_ns: u64,
    /// Least position of each axis.
    pub position_min: [f64; N],
    /// Greatest position of each axis.
    pub position_max: [f64; N],
    /// Kept away from both.
    pub margin: f64,
    /// Greatest velocity of each axis.
    pub velocity_max: [f64; N],
    /// What a position limit is called: [`Reason::PositionLimit`], or [`Reason::WorkArea`] for a box in space.
    pub position_reason: Reason,
}

/// A setpoint that may be sent, and what was done to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shaped<const N: usize> {
    /// Within all limits.
    pub setpoint: [f64; N],
    /// Passed, modified and why, or held at a boundary. Never rejected.
    pub fate: Fate,
    /// How far the setpoint was moved (Euclidean).
    pub amount: f64,
}

/// Shapes one stream of setpoints.
#[derive(Clone, Debug)]
pub struct Limiter<const N: usize> {
    limits: Limits<N>,
    policy: Policy,
    sent: [f64; N],
    malformed_in_row: u32,
}

impl<const N: usize> Limiter<N> {
    /// Starts from where the robot is, which is what the first step is measured by.
    ///
    /// # Errors
    /// Limits out of range, or a position that is not finite.
    pub fn new(limits: Limits<N>, policy: Policy, measured: [f64; N]) -> Result<Limiter<N>, Error> {
        within("period_ns", limits.period_ns as f64, 1e5, 1e9)?;
        within("margin", limits.margin, 0.0, 1e6)?;
        for axis in 0..N {
            within("velocity_max", limits.velocity_max[axis], 1e-9, 1e9)?;
            within("position_min", limits.position_min[axis], -1e9, 1e9)?;
            let least = limits.position_min[axis] + 2.0 * limits.margin;
            within("position_max", limits.position_max[axis], least, 1e9)?;
        }
        let mut limiter = Limiter { limits, policy, sent: [0.0; N], malformed_in_row: 0 };
        limiter.rehome(measured)?;
        Ok(limiter)
    }

    /// After the robot moved without us (enabled again, dragged, stopped): go on from where it is, so that it does not
    /// jump to where it was last commanded to be.
    ///
    /// # Errors
    /// A position that is not finite.
    pub fn rehome(&mut self, measured: [f64; N]) -> Result<(), Error> {
        if measured.iter().any(|position| !position.is_finite()) {
            return Err(Error::NotFinite("measured"));
        }
        self.sent = measured;
        Ok(())
    }

    /// The setpoint to send for this target. It counts as sent.
    ///
    /// # Errors
    /// A target that is not finite; count it as [`Reason::Malformed`], and stop after some in a row.
    pub fn shape(&mut self, target: &[f64; N]) -> Result<Shaped<N>, Error> {
        self.shape_near(target, 1.0)
    }

    /// The same near a boundary that the caller watches: only a share of the way to the target is gone
    /// ([`Approach::share`](super::Approach::share)); with a share of 0 the last setpoint is held ([`Reason::WorkArea`]).
    ///
    /// # Errors
    /// As [`Limiter::shape`].
    pub fn shape_near(&mut self, target: &[f64; N], share: f64) -> Result<Shaped<N>, Error> {
        if target.iter().any(|position| !position.is_finite()) {
            self.malformed_in_row = self.malformed_in_row.saturating_add(1);
            return Err(Error::NotFinite("target"));
        }
        self.malformed_in_row = 0;
        let mut wanted = *target;
        for (axis, wanted) in wanted.iter_mut().enumerate() {
            let Limits { position_min, position_max, margin, .. } = self.limits;
            *wanted = wanted.clamp(position_min[axis] + margin, position_max[axis] - margin);
        }
        let mut fate = if wanted == *target { Fate::Passed } else { Fate::Modified(self.limits.position_reason) };
        // NaN is no share, and holds.
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        if share < 1.0 {
            wanted = core::array::from_fn(|axis| self.sent[axis] + share * (wanted[axis] - self.sent[axis]));
            fate = if share > 0.0 { Fate::Modified(Reason::WorkArea) } else { Fate::Held(Reason::WorkArea) };
        }
        let setpoint = self.step(&wanted);
        if setpoint != wanted {
            fate = Fate::Modified(Reason::VelocityLimit);
        }
        self.sent = setpoint;
        let squares = setpoint.iter().zip(target).map(|(sent, target)| (sent - target) * (sent - target));
        Ok(Shaped { setpoint, fate, amount: libm::sqrt(squares.sum()) })
    }

    /// What was sent last; also what to send when holding.
    pub fn sent(&self) -> &[f64; N] {
        &self.sent
    }

    /// Targets in a row that were no numbers.
    pub fn malformed_in_row(&self) -> u32 {
        self.malformed_in_row
    }

    /// From the last sent towards `wanted`, by at most v·T.
    fn step(&self, wanted: &[f64; N]) -> [f64; N] {
        let period_s = self.limits.period_ns as f64 * 1e-9;
        let most: [f64; N] = core::array::from_fn(|axis| self.limits.velocity_max[axis] * period_s);
        match self.policy {
            Policy::Clamp => core::array::from_fn(|axis| {
                wanted[axis].clamp(self.sent[axis] - most[axis], self.sent[axis] + most[axis])
            }),
            Policy::Scale => {
                let factor = (0..N).map(|axis| most[axis] / (wanted[axis] - self.sent[axis]).abs()).fold(1.0, f64::min);
                if factor >= 1.0 {
                    return *wanted;
                }
                core::array::from_fn(|axis| self.sent[axis] + (wanted[axis] - self.sent[axis]) * factor)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits() -> Limits<2> {
        Limits {
            period_ns: 20_000_000,
            position_min: [-1.0; 2],
            position_max: [1.0; 2],
            margin: 0.01,
            velocity_max: [1.0, 2.0],
            position_reason: Reason::PositionLimit,
        }
    }

    #[test]
    fn scaling_keeps_the_direction_and_clamping_does_not() {
        let at = |policy| Limiter::new(limits(), policy, [0.0; 2]).unwrap().shape(&[0.04, 0.02]).unwrap();
        assert_eq!(at(Policy::Clamp).setpoint, [0.02, 0.02]);
        assert_eq!(at(Policy::Scale).setpoint, [0.02, 0.01]);
        assert_eq!(at(Policy::Scale).fate, Fate::Modified(Reason::VelocityLimit));
        assert!((at(Policy::Clamp).amount - 0.02).abs() < 1e-12);
    }

    #[test]
    fn a_limit_lets_motion_back_in_and_a_pass_is_a_pass() {
        let mut limiter = Limiter::new(limits(), Policy::Clamp, [0.985, 0.0]).unwrap();
        let out = limiter.shape(&[1.2, 0.0]).unwrap();
        assert_eq!((out.setpoint, out.fate), ([0.99, 0.0], Fate::Modified(Reason::PositionLimit)));
        let back = limiter.shape(&[0.98, 0.0]).unwrap();
        assert_eq!((back.setpoint, back.fate, back.amount), ([0.98, 0.0], Fate::Passed, 0.0));
    }

    #[test]
    fn numbers_that_are_none_move_nothing_and_are_counted() {
        let mut limiter = Limiter::new(limits(), Policy::Scale, [0.5; 2]).unwrap();
        for n in 1..=3 {
            assert!(limiter.shape(&[f64::NAN, 0.0]).is_err());
            assert_eq!((limiter.malformed_in_row(), *limiter.sent()), (n, [0.5; 2]));
        }
        limiter.shape(&[0.5; 2]).unwrap();
        assert_eq!(limiter.malformed_in_row(), 0);
        assert!(limiter.rehome([f64::INFINITY, 0.0]).is_err());
        limiter.rehome([-0.5; 2]).unwrap();
        assert_eq!(limiter.shape(&[-0.5, -0.49]).unwrap().fate, Fate::Passed);
    }

    proptest! {
        /// Whatever comes in: no step is longer than v·T, nothing leaves the limits, nothing is rejected.
        #[test]
        fn no_step_exceeds_the_limits(targets in proptest::collection::vec([-5.0f64..5.0, -5.0f64..5.0], 1..60), scale: bool) {
            let policy = if scale { Policy::Scale } else { Policy::Clamp };
            let mut limiter = Limiter::new(limits(), policy, [0.0; 2]).unwrap();
            let mut last = [0.0; 2];
            for target in targets {
                let shaped = limiter.shape(&target).unwrap();
                for ((new, last), most) in shaped.setpoint.iter().zip(last).zip(limits().velocity_max) {
                    prop_assert!((new - last).abs() <= most * 0.02 + 1e-12 && new.abs() <= 0.99 + 1e-12);
                }
                prop_assert!(shaped.fate.is_delivered());
                last = shaped.setpoint;
            }
        }
    }
}
