//! A trajectory: joints over time. `trajectory.py` samples it in the same way.

pub const JOINTS: usize = 7;
/// rad, rad/s or N·m
pub type Joints = [f64; JOINTS];
/// A plan has one each 25 ms.
pub const MOST_POINTS: usize = 1000;
/// There is room for the figures of so many cycles before the first.
pub const MOST_S: f64 = 3600.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub time_s: f64,
    pub position: Joints,
    pub speed: Joints,
}

/// Position, speed and acceleration at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    pub position: Joints,
    pub speed: Joints,
    pub acceleration: Joints,
}

impl Reference {
    pub fn rest(position: Joints) -> Reference {
        Reference { position, speed: [0.0; JOINTS], acceleration: [0.0; JOINTS] }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// At least one; times are within `MOST_S` and never go back.
    points: Vec<Point>,
}

impl Trajectory {
    /// None: it has no point, or too many, or times that go back or are outside of 0 to `MOST_S`.
    pub fn new(points: Vec<Point>) -> Option<Trajectory> {
        let is_timed = points.is_sorted_by(|one, next| one.time_s <= next.time_s)
            && points.iter().all(|point| (0.0..=MOST_S).contains(&point.time_s));
        (is_timed && (1..=MOST_POINTS).contains(&points.len())).then_some(Trajectory { points })
    }

    pub fn duration_s(&self) -> f64 {
        self.points[self.points.len() - 1].time_s
    }

    pub fn goal(&self) -> Joints {
        self.points[self.points.len() - 1].position
    }

    /// Cubic between points (Hermite), at rest before and after.
    pub fn at(&self, time_s: f64) -> Reference {
        if time_s <= 0.0 {
            return Reference::rest(self.points[0].position);
        }
        let next = self.points.partition_point(|point| point.time_s <= time_s);
        let (Some(from), Some(to)) = (self.points.get(next.wrapping_sub(1)), self.points.get(next)) else {
            return Reference::rest(self.points[next.min(self.points.len() - 1)].position);
        };
        let h = to.time_s - from.time_s;
        let u = (time_s - from.time_s) / h;
        let mut reference = Reference::rest(from.position);
        for joint in 0..JOINTS {
            let [p0, p1] = [from, to].map(|point| point.position[joint]);
            let [m0, m1] = [from, to].map(|point| h * point.speed[joint]);
            let (a, b) = (2.0 * p0 - 2.0 * p1 + m0 + m1, -3.0 * p0 + 3.0 * p1 - 2.0 * m0 - m1);
            reference.position[joint] = ((a * u + b) * u + m0) * u + p0;
            reference.speed[joint] = ((3.0 * a * u + 2.0 * b) * u + m0) / h;
            reference.acceleration[joint] = (6.0 * a * u + 2.0 * b) / (h * h);
        }
        reference
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joints(of: &serde_json::Value) -> Joints {
        std::array::from_fn(|joint| of[joint].as_f64().unwrap())
    }

    #[test]
    fn a_time_that_no_motion_has_is_refused() {
        let until = |time_s| {
            let point = |time_s| Point { time_s, position: [0.0; JOINTS], speed: [0.0; JOINTS] };
            Trajectory::new(vec![point(0.0), point(time_s)])
        };
        assert!(until(MOST_S).is_some());
        for time_s in [MOST_S.next_up(), 1e300, f64::INFINITY, f64::NAN, -1.0] {
            assert!(until(time_s).is_none(), "{time_s}");
        }
        let before = Point { time_s: -1.0, position: [0.0; JOINTS], speed: [0.0; JOINTS] };
        assert!(Trajectory::new(vec![before]).is_none());
    }

    /// `workloads/tests/test_reach_parts.py` holds `trajectory.py` to the same file.
    #[test]
    fn it_is_sampled_as_in_python() {
        let told: serde_json::Value = serde_json::from_str(include_str!("../../tests/trajectory.json")).unwrap();
        let point = |of: &serde_json::Value| Point {
            time_s: of["time_s"].as_f64().unwrap(),
            position: joints(&of["position"]),
            speed: joints(&of["speed"]),
        };
        let points = told["points"].as_array().unwrap().iter().map(point).collect();
        let trajectory = Trajectory::new(points).unwrap();
        let samples = told["samples"].as_array().unwrap();
        assert!(samples.len() > 20);
        for sample in samples {
            let found = trajectory.at(sample["time_s"].as_f64().unwrap());
            for (name, found) in
                [("position", found.position), ("speed", found.speed), ("acceleration", found.acceleration)]
            {
                let expected = joints(&sample[name]);
                let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
                assert!(found.iter().zip(&expected).all(is_close), "{sample}: {name} {found:?}");
            }
        }
    }
}
