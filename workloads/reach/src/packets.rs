//! What goes over the links. A packet is words of 8 bytes, little-endian: its tag, then its fields in their order here. Integers are
//! unsigned, floats are IEEE 754, a joint's values are in the order of the joints. `robot.py` and `ros2/reach_controller/link.c` have the
//! same.
//!
//! | tag | from | to | fields |
//! |---|---|---|---|
//! | `state/1\0` | arm | controller | [`State`] |
//! | `torque/1` | controller | arm | [`Command`] |
//! | `reset/1\0` | node, controller | controller, arm | [`Reset`] |
//! | `follow/1` | node | controller | [`Order`] |
//! | `joints/1` | controller | node | [`JointState`] |
//! | `motion/1` | controller | node | [`Progress`] |
//! | `ended/1\0` | controller | node | [`Ended`] |

use taut_simulated_clock::Slips;

use crate::trajectory::{JOINTS, Joints, MOST_POINTS, Point, Trajectory};

/// No packet is longer: that of the longest trajectory.
pub const MOST_BYTES: usize = 8 * (4 + MOST_POINTS * (1 + 2 * JOINTS));

/// The longest reason.
const REASON_BYTES: usize = 32;

pub trait Packet {
    const TAG: &'static [u8; 8];

    /// Puts the fields behind the tag.
    fn put(&self, to: &mut Vec<u8>);

    /// In place of what is in `to`.
    fn pack(&self, to: &mut Vec<u8>) {
        to.clear();
        to.extend_from_slice(Self::TAG);
        self.put(to);
    }
}

/// The arm's, each period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// Of the simulated clock.
    pub time_ns: u64,
    /// The number of the last reset.
    pub resets: u64,
    /// Commands were missing: the brakes are on until a command that recovers.
    pub is_stopped: bool,
    /// It touches the cell or itself.
    pub touches: bool,
    /// What the last period's physics took.
    pub step_ns: u64,
    /// How the machine held the arm up since the last reset.
    pub slips: Slips,
    /// rad
    pub positions: Joints,
    /// rad/s
    pub speeds: Joints,
}

/// The torques from now on, N·m.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Command {
    /// A stopped arm obeys again.
    pub recovers: bool,
    pub torques: Joints,
}

/// Home, at rest, its brakes on until a command comes. One with the last number has been obeyed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reset {
    pub number: u64,
}

/// The node's. A trajectory's packet has the goal's id (two words), the number of points, and of each its time from the start, the
/// positions, the speeds.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    Reset(Reset),
    Follow([u8; 16], Trajectory),
}

/// For the node to publish.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointState {
    pub resets: u64,
    pub slips: Slips,
    pub positions: Joints,
    pub speeds: Joints,
    /// N·m, as commanded.
    pub efforts: Joints,
}

/// Of the trajectory on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    pub goal: [u8; 16],
    pub elapsed_s: f64,
    pub error_rad: f64,
}

/// The controller's own measurements, in ns. The first two are CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Execution {
    pub first_command_ns: u64,
    pub last_command_ns: u64,
    /// Intended ones.
    pub cycles: u64,
    /// Of them, those that no command was computed for.
    pub missed: u64,
    /// Of them, those that ended after the next was due, the missed ones included.
    pub late: u64,
    pub lateness_p50_ns: u64,
    pub lateness_p99_ns: u64,
    pub lateness_max_ns: u64,
    /// Of the arm's physics, each period.
    pub step_p50_ns: u64,
    pub step_p99_ns: u64,
    /// From the first to the last command, how long the machine held the arm up.
    pub slipped_ns: u64,
    pub simulated_s: f64,
    pub wall_s: f64,
    pub tracking_rms_rad: f64,
    pub tracking_max_rad: f64,
}

/// How a trajectory ended: at its goal without a reason, else why not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ended {
    pub goal: [u8; 16],
    pub reason: &'static str,
    pub execution: Execution,
}

impl Packet for State {
    const TAG: &'static [u8; 8] = b"state/1\0";

    fn put(&self, to: &mut Vec<u8>) {
        let State { time_ns, resets, is_stopped, touches, step_ns, slips, positions, speeds } = self;
        put(to, [*time_ns, *resets, u64::from(*is_stopped), u64::from(*touches), *step_ns]);
        put(to, [slips.count, slips.total_ns, slips.max_ns]);
        put_all(to, [positions, speeds]);
    }
}

impl State {
    pub fn of(packet: &[u8]) -> Option<State> {
        let mut words = Words::of::<State>(packet)?;
        let state = State {
            time_ns: words.number()?,
            resets: words.number()?,
            is_stopped: words.bit()?,
            touches: words.bit()?,
            step_ns: words.number()?,
            slips: Slips { count: words.number()?, total_ns: words.number()?, max_ns: words.number()? },
            positions: words.joints()?,
            speeds: words.joints()?,
        };
        words.end(state)
    }
}

impl Packet for Command {
    const TAG: &'static [u8; 8] = b"torque/1";

    fn put(&self, to: &mut Vec<u8>) {
        put(to, [u64::from(self.recovers)]);
        put_all(to, [&self.torques]);
    }
}

impl Command {
    pub fn of(packet: &[u8]) -> Option<Command> {
        let mut words = Words::of::<Command>(packet)?;
        let command = Command { recovers: words.bit()?, torques: words.joints()? };
        words.end(command)
    }
}

impl Packet for Reset {
    const TAG: &'static [u8; 8] = b"reset/1\0";

    fn put(&self, to: &mut Vec<u8>) {
        put(to, [self.number]);
    }
}

impl Reset {
    pub fn of(packet: &[u8]) -> Option<Reset> {
        let mut words = Words::of::<Reset>(packet)?;
        let reset = Reset { number: words.number()? };
        words.end(reset)
    }
}

impl Order {
    const FOLLOW: &'static [u8; 8] = b"follow/1";

    pub fn of(packet: &[u8]) -> Option<Order> {
        if let Some(reset) = Reset::of(packet) {
            return Some(Order::Reset(reset));
        }
        let mut words = Words(packet.strip_prefix(Order::FOLLOW)?);
        let goal = words.goal()?;
        let count = usize::try_from(words.number()?).ok().filter(|count| *count <= MOST_POINTS)?;
        let point = |_| Some(Point { time_s: words.float()?, position: words.joints()?, speed: words.joints()? });
        let points = (0..count).map(point).collect::<Option<Vec<Point>>>()?;
        let trajectory = Trajectory::new(points)?;
        words.end(Order::Follow(goal, trajectory))
    }
}

impl Packet for JointState {
    const TAG: &'static [u8; 8] = b"joints/1";

    fn put(&self, to: &mut Vec<u8>) {
        let JointState { resets, slips, positions, speeds, efforts } = self;
        put(to, [*resets, slips.count, slips.total_ns, slips.max_ns]);
        put_all(to, [positions, speeds, efforts]);
    }
}

impl Packet for Progress {
    const TAG: &'static [u8; 8] = b"motion/1";

    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.goal);
        put(to, [self.elapsed_s, self.error_rad].map(f64::to_bits));
    }
}

impl Packet for Ended {
    const TAG: &'static [u8; 8] = b"ended/1\0";

    /// The reason is text that zeros fill up, empty at the goal.
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.goal);
        let mut reason = [0; REASON_BYTES];
        reason.iter_mut().zip(self.reason.bytes()).for_each(|(to, byte)| *to = byte);
        to.extend_from_slice(&reason);
        let e = &self.execution;
        put(to, [e.first_command_ns, e.last_command_ns, e.cycles, e.missed, e.late]);
        put(to, [e.lateness_p50_ns, e.lateness_p99_ns, e.lateness_max_ns, e.step_p50_ns, e.step_p99_ns]);
        put(to, [e.slipped_ns]);
        put(to, [e.simulated_s, e.wall_s, e.tracking_rms_rad, e.tracking_max_rad].map(f64::to_bits));
    }
}

fn put<const N: usize>(to: &mut Vec<u8>, words: [u64; N]) {
    words.iter().for_each(|word| to.extend_from_slice(&word.to_le_bytes()));
}

fn put_all<const N: usize>(to: &mut Vec<u8>, joints: [&Joints; N]) {
    joints.iter().for_each(|joints| put(to, joints.map(f64::to_bits)));
}

/// What is left to read.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn of<P: Packet>(packet: &[u8]) -> Option<Words<'_>> {
        packet.strip_prefix(P::TAG).map(Words)
    }

    fn number(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn float(&mut self) -> Option<f64> {
        self.number().map(f64::from_bits)
    }

    fn bit(&mut self) -> Option<bool> {
        [false, true].get(usize::try_from(self.number()?).ok()?).copied()
    }

    fn goal(&mut self) -> Option<[u8; 16]> {
        let (goal, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*goal)
    }

    fn joints(&mut self) -> Option<Joints> {
        let mut joints = [0.0; JOINTS];
        for joint in &mut joints {
            *joint = self.float().filter(|value| value.is_finite())?;
        }
        Some(joints)
    }

    fn end<T>(&self, whole: T) -> Option<T> {
        self.0.is_empty().then_some(whole)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(packet: &impl Packet) -> Vec<u8> {
        let mut bytes = Vec::new();
        packet.pack(&mut bytes);
        bytes
    }

    fn follow(goal: [u8; 16], points: &[Point]) -> Vec<u8> {
        let mut bytes = Order::FOLLOW.to_vec();
        bytes.extend(goal);
        put(&mut bytes, [points.len() as u64]);
        for point in points {
            put(&mut bytes, [point.time_s.to_bits()]);
            put_all(&mut bytes, [&point.position, &point.speed]);
        }
        bytes
    }

    fn state() -> State {
        State {
            time_ns: 1,
            resets: 2,
            is_stopped: true,
            touches: false,
            step_ns: 3,
            slips: Slips { count: 4, total_ns: 5, max_ns: 6 },
            positions: [0.5; JOINTS],
            speeds: std::array::from_fn(|joint| -(joint as f64)),
        }
    }

    fn points() -> Vec<Point> {
        let point = |at: usize| Point { time_s: at as f64 / 40.0, position: [at as f64; JOINTS], speed: [0.1; JOINTS] };
        (0..3).map(point).collect()
    }

    #[test]
    fn packets_are_read_as_they_were_written() {
        assert_eq!(State::of(&packed(&state())), Some(state()));
        let command = Command { recovers: true, torques: [87.0; JOINTS] };
        assert_eq!(Command::of(&packed(&command)), Some(command));
        let reset = Reset { number: 9 };
        assert_eq!(Order::of(&packed(&reset)), Some(Order::Reset(reset)));
        let trajectory = Trajectory::new(points()).unwrap();
        assert_eq!(Order::of(&follow([7; 16], &points())), Some(Order::Follow([7; 16], trajectory)));
        let longest = vec![Point { time_s: 0.0, position: [0.0; JOINTS], speed: [0.0; JOINTS] }; MOST_POINTS];
        assert_eq!(follow([0; 16], &longest).len(), MOST_BYTES);
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        let whole = [
            packed(&state()),
            packed(&Command { recovers: false, torques: [0.0; JOINTS] }),
            follow([7; 16], &points()),
        ];
        let is_read =
            |bytes: &[u8]| State::of(bytes).is_some() || Command::of(bytes).is_some() || Order::of(bytes).is_some();
        for bytes in whole {
            assert!(is_read(&bytes));
            assert!((0..bytes.len()).all(|length| !is_read(&bytes[..length])), "cut");
            assert!(!is_read(&[&bytes[..], &[0; 8]].concat()), "longer");
            // The tag's version.
            let other: Vec<u8> = bytes.iter().map(|byte| if *byte == b'1' { b'2' } else { *byte }).collect();
            assert!(!is_read(&other));
        }
        let mut of_nan = state();
        of_nan.speeds[3] = f64::NAN;
        assert_eq!(State::of(&packed(&of_nan)), None);
        let mut endless = points();
        endless[2].position[0] = f64::INFINITY;
        assert_eq!(Order::of(&follow([7; 16], &endless)), None);
        let mut back = points();
        back[2].time_s = 0.01;
        assert_eq!(Order::of(&follow([7; 16], &back)), None, "time goes back");
        assert_eq!(Order::of(&follow([7; 16], &[])), None);
        let too_many = vec![points()[0]; MOST_POINTS + 1];
        assert_eq!(Order::of(&follow([7; 16], &too_many)), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(tag in 0..4usize, bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let tag = [State::TAG, Command::TAG, Reset::TAG, Order::FOLLOW][tag];
            let packet = [&tag[..], &bytes].concat();
            let _ = (State::of(&packet), Command::of(&packet), Order::of(&packet));
        }
    }
}
