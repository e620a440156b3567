//! One leg: where its foot is and which torques carry a load. Lengths are those of the mjbots quad A1, as
//! mjbots/quad's `configs/quada1.cfg` gives them.
//!
//! All legs are computed as the front left one, x forward and y outward from the shoulder's axis; the others are its mirror
//! images, which the axes of their joints in `robot.xml` take care of.

/// From the body's middle to the shoulder's axis, forward and outward, m.
pub const SHOULDER_M: [f64; 2] = [0.113, 0.065];
/// From the shoulder's axis to the femur's, forward and outward, m.
const HIP_M: [f64; 2] = [0.065, 0.100];
const FEMUR_M: f64 = 0.149;
const TIBIA_M: f64 = 0.150;

/// Angles of shoulder (about x), femur and tibia (about y), rad. All 0: the leg hangs straight down.
pub type Angles = [f64; 3];

/// The angles that put the foot there, knee towards the robot's middle; `None` out of reach.
pub fn angles(foot_m: [f64; 3]) -> Option<Angles> {
    let [x, y, z] = foot_m;
    let squares = y * y + z * z - HIP_M[1] * HIP_M[1];
    if squares <= 0.0 {
        return None;
    }
    // Turned back by the shoulder, the leg hangs in a plane at the hip's distance.
    let (forward, down) = (x - HIP_M[0], squares.sqrt());
    let shoulder = z.atan2(y) - (-down).atan2(HIP_M[1]);
    let cosine = (forward * forward + down * down - FEMUR_M * FEMUR_M - TIBIA_M * TIBIA_M) / (2.0 * FEMUR_M * TIBIA_M);
    if !(-1.0..=1.0).contains(&cosine) {
        return None;
    }
    let tibia = -cosine.acos();
    let femur = (-forward).atan2(down) - (TIBIA_M * tibia.sin()).atan2(FEMUR_M + TIBIA_M * tibia.cos());
    Some([shoulder, femur, tibia])
}

/// The torques with which the leg stands when the ground pushes the foot up with `load_n`: those of virtual work, −∂z/∂q · F.
pub fn standing_nm(angles: Angles, load_n: f64) -> [f64; 3] {
    let [shoulder, femur, tibia] = angles;
    let (sin, cos) = shoulder.sin_cos();
    let down = FEMUR_M * femur.cos() + TIBIA_M * (femur + tibia).cos();
    let of_tibia = TIBIA_M * (femur + tibia).sin() * cos;
    [HIP_M[1] * cos + down * sin, FEMUR_M * femur.sin() * cos + of_tibia, of_tibia].map(|dz| -dz * load_n)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEET: [[f64; 3]; 4] = [[0.087, 0.095, -0.21], [0.05, 0.12, -0.15], [0.12, 0.05, -0.23], [0.087, 0.16, -0.10]];

    /// Where the foot is.
    fn foot_m(angles: Angles) -> [f64; 3] {
        let [shoulder, femur, tibia] = angles;
        let x = HIP_M[0] - FEMUR_M * femur.sin() - TIBIA_M * (femur + tibia).sin();
        let down = FEMUR_M * femur.cos() + TIBIA_M * (femur + tibia).cos();
        let (sin, cos) = shoulder.sin_cos();
        [x, HIP_M[1] * cos + down * sin, HIP_M[1] * sin - down * cos]
    }

    #[test]
    fn the_angles_put_the_foot_where_it_shall_be() {
        for foot in FEET {
            let found = foot_m(angles(foot).unwrap());
            assert!(foot.iter().zip(found).all(|(a, b)| (a - b).abs() < 1e-12), "{foot:?} {found:?}");
            assert!(angles(foot).unwrap()[2] < 0.0, "the knee points inward");
        }
    }

    #[test]
    fn out_of_reach_is_said() {
        assert_eq!(angles([0.087, 0.095, -0.40]), None);
        assert_eq!(angles([0.087, 0.0, -0.05]), None);
    }

    #[test]
    fn the_torques_do_the_work_of_the_load() {
        for foot in FEET {
            let q = angles(foot).unwrap();
            for joint in 0..3 {
                let mut moved = q;
                moved[joint] += 1e-6;
                let slope = (foot_m(moved)[2] - foot_m(q)[2]) / 1e-6;
                assert!((standing_nm(q, 25.0)[joint] + slope * 25.0).abs() < 1e-3, "{foot:?} {joint}");
            }
        }
    }
}
