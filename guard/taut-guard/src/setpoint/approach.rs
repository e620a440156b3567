//! Near a boundary that only the caller can measure (self-collision, a singularity, a work area of any shape): slower and
//! slower towards it, held at it, and always free to leave.

use crate::error::{Error, within};

/// Scales the speed by the distance to a boundary, with hysteresis. Distances are in any unit that grows inwards, away from
/// the boundary: millimetres, or a measure of manipulability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Approach {
    stop_at: f64,
    resume_at: f64,
    slow_at: f64,
    is_held: bool,
}

impl Approach {
    /// Full speed beyond `slow_at`, none at `stop_at`; once held there, motion towards the boundary begins again beyond
    /// `resume_at`, so that noise does not make it stutter.
    ///
    /// # Errors
    /// Unless stop_at < resume_at < slow_at.
    pub fn new(stop_at: f64, resume_at: f64, slow_at: f64) -> Result<Approach, Error> {
        within("stop_at", stop_at, 0.0, 1e6)?;
        within("resume_at", resume_at, stop_at, 1e6)?;
        within("slow_at", slow_at, resume_at, 1e6)?;
        if stop_at == resume_at || resume_at == slow_at {
            return Err(Error::Contradiction("stop_at must lie below resume_at, and resume_at below slow_at"));
        }
        Ok(Approach { stop_at, resume_at, slow_at, is_held: false })
    }

    /// The share of a step that may be gone, 0 to 1, from `distance` now and `next`, where the whole step would lead. For
    /// [`Limiter::shape_near`](super::Limiter::shape_near). A distance that is not finite holds.
    pub fn share(&mut self, distance: f64, next: f64) -> f64 {
        if !distance.is_finite() || !next.is_finite() {
            self.is_held = true;
            return 0.0;
        }
        self.is_held = if self.is_held { distance < self.resume_at } else { distance <= self.stop_at };
        if next >= distance {
            return 1.0;
        }
        if self.is_held {
            return 0.0;
        }
        let left = distance - self.stop_at;
        // No step leads beyond, however long it is.
        (left / (self.slow_at - self.stop_at)).min(left / (distance - next)).clamp(0.0, 1.0)
    }

    /// Whether motion towards the boundary is held.
    pub fn is_held(&self) -> bool {
        self.is_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ledger::{Fate, Reason},
        setpoint::{Limiter, Limits, Policy},
    };

    #[test]
    fn motion_slows_to_the_boundary_is_held_and_may_always_leave() {
        let mut approach = Approach::new(10.0, 15.0, 60.0).unwrap();
        assert_eq!(approach.share(100.0, 95.0), 1.0);
        assert_eq!(approach.share(35.0, 34.0), 0.5);
        assert_eq!(approach.share(35.0, 36.0), 1.0);
        // A leap ends at the boundary.
        assert_eq!(approach.share(60.0, -40.0), 0.5);
        assert_eq!((approach.share(10.0, 9.0), approach.is_held()), (0.0, true));
        // Held until it is well away, except outwards.
        assert_eq!((approach.share(14.9, 14.0), approach.share(14.9, 15.5)), (0.0, 1.0));
        assert_eq!(approach.share(15.0, 14.0), 0.1);
        assert_eq!((approach.share(f64::NAN, 1.0), approach.share(f64::INFINITY, 1.0)), (0.0, 0.0));
        for (stop_at, resume_at, slow_at) in
            [(10.0, 10.0, 60.0), (10.0, 60.0, 60.0), (20.0, 10.0, 60.0), (f64::NAN, 1.0, 2.0)]
        {
            assert!(Approach::new(stop_at, resume_at, slow_at).is_err());
        }
    }

    /// A wall at x = 1 that the limiter does not know: the leader pushes beyond it, the arm stops before, and follows back.
    #[test]
    fn a_wall_is_not_reached_and_the_way_back_is_free() {
        let limits = Limits {
            period_ns: 20_000_000,
            position_min: [-10.0],
            position_max: [10.0],
            margin: 0.0,
            velocity_max: [2.0],
            position_reason: Reason::PositionLimit,
        };
        let mut limiter = Limiter::new(limits, Policy::Clamp, [0.0]).unwrap();
        let mut approach = Approach::new(0.01, 0.02, 0.2).unwrap();
        let mut fates = [Fate::Passed; 400];
        for (n, fate) in fates.iter_mut().enumerate() {
            let hand = if n < 300 { 0.01 * n as f64 } else { 0.5 };
            let share = approach.share(1.0 - limiter.sent()[0], 1.0 - hand);
            let shaped = limiter.shape_near(&[hand], share).unwrap();
            assert!(shaped.setpoint[0] <= 0.99 + 1e-12, "{n}: {shaped:?}");
            *fate = shaped.fate;
        }
        assert_eq!((fates[10], fates[90]), (Fate::Passed, Fate::Modified(Reason::WorkArea)));
        assert!(limiter.sent()[0] == 0.5 && fates[399] == Fate::Passed);
        for share in [0.0, -1.0, f64::NAN] {
            let held = Limiter::new(limits, Policy::Clamp, [0.3]).unwrap().shape_near(&[0.4], share).unwrap();
            assert_eq!((held.setpoint, held.fate), ([0.3], Fate::Held(Reason::WorkArea)));
        }
    }
}
