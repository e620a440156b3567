//! The contents of one state frame, with the robot's time of it and the host's time of its arrival.

/// Joints that a frame has room for.
pub const MAX_JOINTS: usize = 8;

/// One state frame of the robot. Fixed in size; unused fields stay 0 or `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// The frame's rolling count, below [`Parameters::sequence_modulus`](crate::Parameters::sequence_modulus).
    /// Ignored if that is 0.
    pub sequence: u32,
    /// When the robot sampled its state, by its own clock, in nanoseconds from any start.
    pub source_ns: Option<i64>,
    /// When the host got the frame: CLOCK_MONOTONIC, as early as possible (kernel stamp, else reader thread).
    pub arrival_ns: u64,
    /// Position of the tool centre point.
    pub tcp_mm: [f64; 3],
    /// Joint angles (or, for a linear joint, metres).
    pub joints_rad: [f64; MAX_JOINTS],
    /// Speed of the tool centre point as the controller reports it.
    pub reported_mm_s: Option<f64>,
    /// How many frames came out of the same read; above 1 the receiver stalled.
    pub frames_in_read: u16,
}

impl Default for Frame {
    fn default() -> Frame {
        Frame {
            sequence: 0,
            source_ns: None,
            arrival_ns: 0,
            tcp_mm: [0.0; 3],
            joints_rad: [0.0; MAX_JOINTS],
            reported_mm_s: None,
            frames_in_read: 1,
        }
    }
}

/// What each joint is called in a recording.
const JOINTS: [&str; MAX_JOINTS] =
    ["joint0_rad", "joint1_rad", "joint2_rad", "joint3_rad", "joint4_rad", "joint5_rad", "joint6_rad", "joint7_rad"];

impl Frame {
    /// The frame as named numbers, for a recording: `arrival_ns` comes last and so ends the frame. What is `None` is left
    /// out, and joints where all are 0.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, f64)> {
        // A calendar's nanoseconds (1.7e18) as a double have steps of 256.
        let rest_ns = self.source_ns.map_or(0, |source_ns| source_ns - source_ns as f64 as i64);
        let used = self.joints_rad.iter().rposition(|joint| *joint != 0.0).map_or(0, |last| last + 1);
        let head = [
            Some(("sequence", f64::from(self.sequence))),
            self.source_ns.map(|source_ns| ("source_ns", source_ns as f64)),
            (rest_ns != 0).then_some(("source_rest_ns", rest_ns as f64)),
            Some(("x_mm", self.tcp_mm[0])),
            Some(("y_mm", self.tcp_mm[1])),
            Some(("z_mm", self.tcp_mm[2])),
            self.reported_mm_s.map(|reported| ("reported_mm_s", reported)),
            Some(("frames_in_read", f64::from(self.frames_in_read))),
        ];
        let joints = JOINTS.into_iter().zip(self.joints_rad).take(used);
        head.into_iter().flatten().chain(joints).chain([("arrival_ns", self.arrival_ns as f64)])
    }

    /// Sets what [`Frame::fields`] calls by this name; `false` if nothing is called so.
    pub fn set(&mut self, field: &str, value: f64) -> bool {
        match field {
            "sequence" => self.sequence = value as u32,
            "source_ns" => self.source_ns = Some(value as i64),
            "source_rest_ns" => self.source_ns = self.source_ns.map(|ns| ns.saturating_add(value as i64)),
            "x_mm" => self.tcp_mm[0] = value,
            "y_mm" => self.tcp_mm[1] = value,
            "z_mm" => self.tcp_mm[2] = value,
            "reported_mm_s" => self.reported_mm_s = Some(value),
            "frames_in_read" => self.frames_in_read = value as u16,
            "arrival_ns" => self.arrival_ns = value as u64,
            _ => match JOINTS.iter().position(|joint| *joint == field) {
                Some(joint) => self.joints_rad[joint] = value,
                None => return false,
            },
        }
        true
    }
}

/// Positions further out than this (1 km, or 10⁶ rad) come from no robot.
const FARTHEST: f64 = 1e6;

impl Frame {
    /// Whether the numbers are ones that a working robot sends: finite, not denormal, no negative time or speed.
    pub(crate) fn is_sane(&self) -> bool {
        let position = |x: &f64| x.abs() <= FARTHEST && !x.is_subnormal();
        let speed = |v: f64| (0.0..=FARTHEST * 1e3).contains(&v) && !v.is_subnormal() && v.is_sign_positive();
        self.tcp_mm.iter().all(position)
            && self.joints_rad.iter().all(position)
            && self.reported_mm_s.is_none_or(speed)
            && self.source_ns.is_none_or(|t| (0..=i64::MAX / 4).contains(&t))
            && self.arrival_ns <= u64::MAX / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_survives_its_fields() {
        let mut joints_rad = [0.0; MAX_JOINTS];
        (joints_rad[0], joints_rad[5]) = (0.5, -1.25);
        let full = Frame {
            sequence: 255,
            source_ns: Some(1_000_000_007),
            arrival_ns: 1_010_000_000,
            tcp_mm: [1.0, -2.5, 0.0],
            joints_rad,
            reported_mm_s: Some(250.0),
            frames_in_read: 3,
        };
        let calendar = [1_700_000_000_000_000_123, 1_700_000_000_000_000_000, 1_799_999_999_999_999_999, i64::MAX];
        let mut frames = [full; 6];
        frames[1] = Frame::default();
        frames[2..].iter_mut().zip(calendar).for_each(|(frame, ns)| frame.source_ns = Some(ns));
        for frame in frames {
            let mut again = Frame::default();
            assert!(frame.fields().all(|(field, value)| again.set(field, value)));
            assert_eq!(again, frame);
            assert_eq!(frame.fields().last().map(|(field, _)| field), Some("arrival_ns"));
        }
        assert!(!Frame::default().set("colour", 1.0));
    }

    #[test]
    fn numbers_that_no_robot_sends_are_not_sane() {
        assert!(Frame::default().is_sane());
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE / 2.0, -f64::MIN_POSITIVE / 4.0, 1e7]
        {
            assert!(!Frame { tcp_mm: [0.0, bad, 0.0], ..Frame::default() }.is_sane(), "{bad}");
            assert!(!Frame { joints_rad: [bad; MAX_JOINTS], ..Frame::default() }.is_sane(), "{bad}");
        }
        for bad in [f64::NAN, f64::INFINITY, -1.0, -0.0, f64::MIN_POSITIVE / 2.0] {
            assert!(!Frame { reported_mm_s: Some(bad), ..Frame::default() }.is_sane(), "{bad}");
        }
        assert!(!Frame { source_ns: Some(-1), ..Frame::default() }.is_sane());
        assert!(!Frame { arrival_ns: u64::MAX, ..Frame::default() }.is_sane());
    }
}
