//! Standing and trotting in place: where each foot shall be at a time, and what it carries.

use crate::leg::SHOULDER_M;

/// What is held up, kg; `robot.xml` weighs as much.
const MASS_KG: f64 = 10.0;
const G_M_S2: f64 = 9.81;
/// Height of the shoulders' axes over the ground, and feet from the body's middle, m: stand_height and idle_x, idle_y of
/// the quad A1's configuration.
const STAND_M: f64 = 0.230;
const FOOT_M: [f64; 2] = [0.200, 0.160];
const FOOT_RADIUS_M: f64 = 0.02;
/// One foot's swing, s, and its height, m; the same source's max_swing_time_s and lift_height.
const SWING_S: f64 = 0.20;
const LIFT_M: f64 = 0.040;
/// All four feet on the ground between two swings, s. Ours.
const PAUSE_S: f64 = 0.05;
/// Two swings and two pauses.
pub const PERIOD_S: f64 = 2.0 * (SWING_S + PAUSE_S);
/// Load moves to the other feet during this share of a swing, at both its ends. Ours.
const SHIFT: f64 = 0.15;
/// Legs that swing together.
const DIAGONALS: [[usize; 2]; 2] = [[0, 3], [1, 2]];

/// One foot's part at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Foot {
    /// Relative to the shoulder's axis, as `leg` has it.
    pub at_m: [f64; 3],
    /// What it carries.
    pub load_n: f64,
}

/// All feet on the ground.
pub fn standing() -> [Foot; 4] {
    let at_m = [FOOT_M[0] - SHOULDER_M[0], FOOT_M[1] - SHOULDER_M[1], FOOT_RADIUS_M - STAND_M];
    [Foot { at_m, load_n: MASS_KG * G_M_S2 / 4.0 }; 4]
}

/// Trotting in place since `t_s`.
pub fn trotting(t_s: f64) -> [Foot; 4] {
    let mut feet = standing();
    let half = PERIOD_S / 2.0;
    let swinging = DIAGONALS[(t_s / half) as usize % 2];
    let share = (t_s % half) / SWING_S;
    if share >= 1.0 {
        return feet;
    }
    // Lifts with a speed of 0 at both ends.
    let lift_m = LIFT_M * (1.0 - (std::f64::consts::TAU * share).cos()) / 2.0;
    let off_ground = (share / SHIFT).min((1.0 - share) / SHIFT).min(1.0);
    for (leg, foot) in feet.iter_mut().enumerate() {
        let is_swinging = swinging.contains(&leg);
        foot.at_m[2] += if is_swinging { lift_m } else { 0.0 };
        foot.load_n *= if is_swinging { 1.0 - off_ground } else { 1.0 + off_ground };
    }
    feet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leg;

    #[test]
    fn the_feet_always_carry_the_robot_and_are_in_reach() {
        for ms in 0..2000 {
            let feet = trotting(f64::from(ms) / 1000.0);
            let carried: f64 = feet.iter().map(|foot| foot.load_n).sum();
            assert!((carried - 98.1).abs() < 1e-9, "{ms} ms: {carried}");
            assert!(feet.iter().all(|foot| leg::angles(foot.at_m).is_some()));
        }
    }

    #[test]
    fn diagonal_legs_swing_together_and_all_of_them_do() {
        let lifted = |t_s: f64| trotting(t_s).map(|foot| foot.at_m[2] > standing()[0].at_m[2] + 0.03);
        assert_eq!(lifted(0.10), [true, false, false, true]);
        assert_eq!(lifted(0.22), [false; 4]);
        assert_eq!(lifted(0.35), [false, true, true, false]);
    }

    #[test]
    fn no_foot_jumps() {
        for ms in 0..1000 {
            let (a, b) = (trotting(f64::from(ms) / 1000.0), trotting(f64::from(ms + 1) / 1000.0));
            assert!(a.iter().zip(b).all(|(a, b)| (a.at_m[2] - b.at_m[2]).abs() < 0.7e-3), "{ms} ms");
        }
    }
}
