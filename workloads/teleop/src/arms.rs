//! The two arms: Denavit-Hartenberg parameters, joint limits, forward and inverse kinematics. Angles are degrees at the
//! interfaces, as the vendor's are; lengths are metres.
//!
//! Source: the vendor's robot descriptions, FAIR-INNOVATION/frcobot_ros2 at 6ee4abc, `fairino_description/urdf/fairino3_v6.urdf`
//! and `fairino20_v6.urdf`: link offsets, joint limits and joint speeds. Their chain is the standard DH chain with twists 90, 0,
//! 0, 90, -90, 0 degrees. They end at joint 6. The FR3's flange offset d6 = 0.100 m is from the package
//! robotkinematicscatalogue; for the FR20 none was found in text, so its tool point is the origin of joint 6 (d6 = 0).

use std::f64::consts::TAU;

use anyhow::{Result, bail};

/// Degrees.
pub type Joints = [f64; 6];
pub type Vector = [f64; 3];
type Matrix = [[f64; 6]; 6];

/// Cosine and sine of the twists.
const TWISTS: [(f64, f64); 6] = [(0.0, 1.0), (1.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (1.0, 0.0)];

/// One arm; `a_m` and `d_m` are the DH lengths, one for each joint.
#[derive(Debug, PartialEq)]
pub struct Arm {
    pub name: &'static str,
    a_m: [f64; 6],
    d_m: [f64; 6],
    pub max_speed_deg_s: Joints,
    /// Not published; assumed.
    pub max_accel_deg_s2: f64,
}

/// 3.0543, 4.6251, 2.8274 and 1.4835 rad of the URDF files.
pub const LOWER_DEG: Joints =
    [-174.998_499_367, -264.998_709_826, -161.998_086_995, -264.998_709_826, -174.998_499_367, -174.998_499_367];
pub const UPPER_DEG: Joints =
    [174.998_499_367, 84.998_288_908, 161.998_086_995, 84.998_288_908, 174.998_499_367, 174.998_499_367];
/// 3.15 and 3.2 rad/s.
const SPEED_DEG_S: Joints =
    [180.481_705_466, 180.481_705_466, 180.481_705_466, 183.346_494_442, 183.346_494_442, 183.346_494_442];

pub const FR3: Arm = Arm {
    name: "FR3",
    a_m: [0.0, -0.28, -0.24001, 0.0, 0.0, 0.0],
    d_m: [0.14, 0.0, 0.0, 0.102, 0.102, 0.1],
    max_speed_deg_s: SPEED_DEG_S,
    max_accel_deg_s2: 3000.0,
};
pub const FR20: Arm = Arm {
    name: "FR20",
    a_m: [0.0, -1.0, -0.716, 0.0, 0.0, 0.0],
    d_m: [0.215, 0.0, 0.0, 0.16601, 0.138, 0.0],
    max_speed_deg_s: SPEED_DEG_S,
    max_accel_deg_s2: 1500.0,
};
pub const ARMS: [&Arm; 2] = [&FR3, &FR20];

/// Where both arms start: elbow up, tool down, far from every limit and singularity.
pub const HOME_DEG: Joints = [0.0, -110.0, 100.0, -80.0, -90.0, 0.0];

/// A DH frame in the base frame: its axes, and its origin in metres.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub axes: [Vector; 3],
    pub origin_m: Vector,
}

impl Arm {
    /// The base's frame and every joint's, the tool's last.
    pub fn frames(&self, joints_deg: &Joints) -> [Frame; 7] {
        let base = Frame { axes: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], origin_m: [0.0; 3] };
        let mut frames = [base; 7];
        for joint in 0..6 {
            let Frame { axes: [x, y, z], origin_m } = frames[joint];
            let (sin, cos) = joints_deg[joint].to_radians().sin_cos();
            let (twist_cos, twist_sin) = TWISTS[joint];
            // Along the old z, round it, along the new x, round that.
            let new_x = blend(cos, &x, sin, &y);
            let turned_y = blend(cos, &y, -sin, &x);
            let moved = blend(1.0, &origin_m, self.d_m[joint], &z);
            frames[joint + 1] = Frame {
                axes: [new_x, blend(twist_cos, &turned_y, twist_sin, &z), blend(twist_cos, &z, -twist_sin, &turned_y)],
                origin_m: blend(1.0, &moved, self.a_m[joint], &new_x),
            };
        }
        frames
    }

    /// The tool point in the base frame.
    pub fn tool_m(&self, joints_deg: &Joints) -> Vector {
        self.frames(joints_deg)[6].origin_m
    }

    /// x, y, z in mm and rx, ry, rz in degrees (Z-Y-X order of the vendor's manual).
    pub fn tool_pose_mm_deg(&self, joints_deg: &Joints) -> [f64; 6] {
        let Frame { axes: [x, y, z], origin_m } = self.frames(joints_deg)[6];
        let turns = [y[2].atan2(z[2]), (-x[2]).atan2(y[2].hypot(z[2])), x[1].atan2(x[0])].map(f64::to_degrees);
        let [px, py, pz] = origin_m.map(|m| 1000.0 * m);
        [px, py, pz, turns[0], turns[1], turns[2]]
    }

    /// Geometric Jacobian, a column for each joint: metres and radians for each radian.
    pub fn jacobian(&self, joints_deg: &Joints) -> [[f64; 6]; 6] {
        let frames = self.frames(joints_deg);
        let tool_m = frames[6].origin_m;
        std::array::from_fn(|joint| {
            let z = frames[joint].axes[2];
            let [vx, vy, vz] = cross(&z, &blend(1.0, &tool_m, -1.0, &frames[joint].origin_m));
            [vx, vy, vz, z[0], z[1], z[2]]
        })
    }

    /// How fast the tool is: mm/s and deg/s.
    pub fn tool_speed(&self, joints_deg: &Joints, speeds_deg_s: &Joints) -> (f64, f64) {
        let columns = self.jacobian(joints_deg);
        let along = |row: usize| (0..6).map(|n| columns[n][row] * speeds_deg_s[n].to_radians()).sum::<f64>();
        let [x, y, z, rx, ry, rz]: [f64; 6] = std::array::from_fn(along);
        (1000.0 * norm(&[x, y, z]), norm(&[rx, ry, rz]).to_degrees())
    }

    /// Joint angles that put the tool at `target`, to 1 micrometre and 1 microradian: damped least squares, dq = Jt (J Jt + k² I)⁻¹ e
    /// (Wampler 1986).
    fn solve_deg(&self, target: &Frame, guess_deg: &Joints) -> Result<Joints> {
        const DAMPING: f64 = 0.005;
        let mut joints = *guess_deg;
        for _ in 0..100 {
            let pose = self.frames(&joints)[6];
            let off = blend(1.0, &target.origin_m, -1.0, &pose.origin_m);
            let turns: [Vector; 3] = std::array::from_fn(|n| cross(&pose.axes[n], &target.axes[n]));
            let turn = |axis: usize| 0.5 * turns.iter().map(|turn| turn[axis]).sum::<f64>();
            let error = [off[0], off[1], off[2], turn(0), turn(1), turn(2)];
            if error.iter().all(|part| part.abs() < 1e-6) {
                if (0..6).any(|n| joints[n] < LOWER_DEG[n] || joints[n] > UPPER_DEG[n]) {
                    bail!("{}: the pose needs a joint beyond its limit", self.name);
                }
                return Ok(joints);
            }
            let columns = self.jacobian(&joints);
            let square: Matrix = std::array::from_fn(|r| {
                std::array::from_fn(|c| {
                    let product: f64 = columns.iter().map(|column| column[r] * column[c]).sum();
                    product + if r == c { DAMPING * DAMPING } else { 0.0 }
                })
            });
            let solved = solve(square, error);
            for (joint, column) in joints.iter_mut().zip(&columns) {
                *joint += column.iter().zip(&solved).map(|(j, s)| j * s).sum::<f64>().to_degrees();
            }
        }
        bail!("{}: no joint angles reach the pose", self.name)
    }

    /// A horizontal circle of the tool point that starts at home, its orientation kept; closed, the last point is one step before
    /// the first. A few points are solved, the others follow by trigonometric interpolation, since the path is smooth and closed:
    /// at a radius of 20 mm they are off by 0.1 micrometre.
    ///
    /// # Errors
    /// The circle leaves the arm's reach or its joint limits.
    pub fn circle_deg(&self, radius_m: f64, points: usize) -> Result<Vec<Joints>> {
        const SOLVED: usize = 24;
        let start = self.frames(&HOME_DEG)[6];
        let mut joints = HOME_DEG;
        let mut solved = [HOME_DEG; SOLVED];
        for (at, place) in solved.iter_mut().enumerate() {
            let (sin, cos) = (TAU * at as f64 / SOLVED as f64).sin_cos();
            let mut target = start;
            target.origin_m[0] += radius_m * (cos - 1.0);
            target.origin_m[1] += radius_m * sin;
            joints = self.solve_deg(&target, &joints)?;
            *place = joints;
        }
        let point = |share: f64, joint: usize| {
            let wave = |k: usize| {
                let weight = if k == 0 || k == SOLVED / 2 { 1.0 } else { 2.0 };
                let each = |(n, place): (usize, &Joints)| {
                    place[joint] * (TAU * k as f64 * (share - n as f64 / SOLVED as f64)).cos()
                };
                weight * solved.iter().enumerate().map(each).sum::<f64>()
            };
            (0..=SOLVED / 2).map(wave).sum::<f64>() / SOLVED as f64
        };
        Ok((0..points).map(|at| std::array::from_fn(|joint| point(at as f64 / points as f64, joint))).collect())
    }
}

fn blend(a: f64, one: &Vector, b: f64, other: &Vector) -> Vector {
    std::array::from_fn(|n| a * one[n] + b * other[n])
}

fn cross(a: &Vector, b: &Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub fn norm(v: &Vector) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// How far apart two points are.
pub fn distance(a: &Vector, b: &Vector) -> f64 {
    norm(&blend(1.0, a, -1.0, b))
}

/// The largest turn of a joint between two places.
pub fn largest_turn_deg(a: &Joints, b: &Joints) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Gaussian elimination; the matrix is positive definite, so that no row is exchanged.
fn solve(mut matrix: Matrix, mut right: [f64; 6]) -> [f64; 6] {
    for column in 0..6 {
        for row in column + 1..6 {
            let share = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            matrix[row].iter_mut().zip(above).for_each(|(here, there)| *here -= share * there);
            right[row] -= share * right[column];
        }
    }
    for row in (0..6).rev() {
        let known: f64 = (row + 1..6).map(|at| matrix[row][at] * right[at]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(dice: &mut fastrand::Rng) -> Joints {
        std::array::from_fn(|n| LOWER_DEG[n] + dice.f64() * (UPPER_DEG[n] - LOWER_DEG[n]))
    }

    #[test]
    fn limits_are_those_of_the_vendors_files() {
        for (deg, rad) in
            [(UPPER_DEG[0], 3.0543_f64), (LOWER_DEG[1], -4.6251), (UPPER_DEG[2], 2.8274), (UPPER_DEG[1], 1.4835)]
        {
            assert!((deg.to_radians() - rad).abs() < 1e-8);
        }
        assert!((SPEED_DEG_S[0].to_radians() - 3.15).abs() < 1e-8 && (SPEED_DEG_S[3].to_radians() - 3.2).abs() < 1e-8);
    }

    /// Joint origins of the URDF files: offset in metres and turn about x in degrees.
    #[test]
    fn the_dh_chain_is_the_urdf_chain() {
        let urdf = |base: f64, upper: f64, fore: f64, wrist: [f64; 2]| {
            [
                ([0.0; 3], 0.0),
                ([0.0, 0.0, base], 90.0),
                ([upper, 0.0, 0.0], 0.0),
                ([fore, 0.0, 0.0], 0.0),
                ([0.0, 0.0, wrist[0]], 90.0),
                ([0.0, 0.0, wrist[1]], -90.0),
            ]
        };
        let mut dice = fastrand::Rng::with_seed(7);
        for (arm, chain, flange_m) in [
            (&FR3, urdf(0.14, -0.28, -0.24001, [0.102, 0.102]), 0.1),
            (&FR20, urdf(0.215, -1.0, -0.716, [0.16601, 0.138]), 0.0),
        ] {
            for _ in 0..50 {
                let joints = some(&mut dice);
                let mut axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
                let mut at = [0.0; 3];
                for ((offset, roll), joint) in chain.iter().zip(&joints) {
                    let moved: Vector = std::array::from_fn(|n| (0..3).map(|k| axes[k][n] * offset[k]).sum());
                    at = blend(1.0, &at, 1.0, &moved);
                    let (sin, cos) = f64::to_radians(*roll).sin_cos();
                    let [x, y, z] = axes;
                    let (y, z) = (blend(cos, &y, sin, &z), blend(cos, &z, -sin, &y));
                    let (sin, cos) = joint.to_radians().sin_cos();
                    axes = [blend(cos, &x, sin, &y), blend(cos, &y, -sin, &x), z];
                }
                let tool_m = blend(1.0, &at, flange_m, &axes[2]);
                assert!(distance(&tool_m, &arm.tool_m(&joints)) < 1e-9);
            }
        }
    }

    #[test]
    fn the_jacobian_is_the_derivative_of_the_tools_place() {
        for arm in ARMS {
            let (columns, small) = (arm.jacobian(&HOME_DEG), 1e-5_f64);
            for joint in 0..6 {
                let mut moved = HOME_DEG;
                moved[joint] += small.to_degrees();
                let way = blend(1.0, &arm.tool_m(&moved), -1.0, &arm.tool_m(&HOME_DEG));
                assert!((0..3).all(|n| (way[n] / small - columns[joint][n]).abs() < 1e-4));
            }
        }
    }

    #[test]
    fn a_circle_is_round_keeps_its_orientation_and_closes() {
        let path = FR3.circle_deg(0.015, 60).unwrap();
        let centre = blend(1.0, &FR3.tool_m(&HOME_DEG), -0.015, &[1.0, 0.0, 0.0]);
        let first = FR3.frames(&path[0])[6];
        for joints in &path {
            let pose = FR3.frames(joints)[6];
            assert!((distance(&pose.origin_m, &centre) - 0.015).abs() < 5e-6);
            assert!((0..3).all(|n| distance(&pose.axes[n], &first.axes[n]) < 2e-5));
        }
        assert!(largest_turn_deg(&path[0], &path[59]) < 2.0 * largest_turn_deg(&path[1], &path[0]) + 0.1);
        let refused = FR3.circle_deg(0.6, 60).unwrap_err().to_string();
        assert!(refused.contains("FR3"), "{refused}");
    }
}
