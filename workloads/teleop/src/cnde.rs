//! The controller's state stream on the wire: frames, their fields, and two ways to receive them.
//!
//! A frame (all little-endian): head u16 0x5A5A, rolling count u8, type u8, length u16, data, tail u16 0xA5A5. The client names
//! the fields it wants in an output configuration (type 1: period in ms as u16, then the names joined by commas), starts the
//! stream (type 2) and gets data frames (type 4) whose bytes are the fields in that order. Answers are messages (type 6) whose
//! first byte is 0 for yes.
//!
//! TCP keeps bytes, not frames: frames arrive joined or cut. The framed receiver reads what the stream holds; the SDK's takes one
//! read for one frame, as the vendor's does, and loses what does not fit that. The vendor's frames carry no checksum. What can be
//! checked is checked: head, tail, a known type, and, for state frames, exactly the length of the fields that were asked for.

use serde_json::{Value, json};

use crate::arms::Joints;

const HEAD: [u8; 2] = [0x5a; 2];
const TAIL: [u8; 2] = [0xa5; 2];
pub const OUTPUT_CONFIG: u8 = 1;
pub const OUTPUT_START: u8 = 2;
pub const OUTPUT_DATA: u8 = 4;
pub const MESSAGE: u8 = 6;
const KINDS: [u8; 5] = [OUTPUT_CONFIG, OUTPUT_START, 3, OUTPUT_DATA, MESSAGE];
const OVERHEAD_BYTES: usize = 8;
const MAX_DATA_BYTES: usize = 4096;
pub const READ_BYTES: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub count: u8,
    pub kind: u8,
    pub data: Vec<u8>,
}

impl Frame {
    pub fn encoded(&self) -> Vec<u8> {
        let length = u16::try_from(self.data.len()).unwrap_or(u16::MAX).to_le_bytes();
        [&HEAD[..], &[self.count, self.kind], &length, &self.data, &TAIL].concat()
    }
}

/// What a receiver saw. `gaps` are frames missing by their count, `lost_reads` reads thrown away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub reads: u64,
    pub frames: u64,
    pub gaps: u64,
    pub duplicates: u64,
    pub resyncs: u64,
    pub lost_reads: u64,
    pub joined_reads: u64,
}

impl Counts {
    pub fn json(&self) -> Value {
        json!({ "reads": self.reads, "frames": self.frames, "gaps": self.gaps, "duplicates": self.duplicates,
            "resyncs": self.resyncs, "lost_reads": self.lost_reads, "joined_reads": self.joined_reads })
    }
}

/// Takes reads, gives frames.
pub struct Receiver {
    is_framed: bool,
    /// The length of a state frame's data: no garbled length can then make it wait for bytes that never come.
    data_bytes: Option<usize>,
    buffer: Vec<u8>,
    in_garbage: bool,
    newest: Option<u8>,
    pub counts: Counts,
}

impl Receiver {
    /// Finds every whole frame, across joined and cut reads; skips garbage to the next frame that fits.
    pub fn framed(data_bytes: Option<usize>) -> Receiver {
        let counts = Counts::default();
        Receiver { is_framed: true, data_bytes, buffer: Vec::new(), in_garbage: false, newest: None, counts }
    }

    /// One read, one frame: anything else is thrown away without a word.
    pub fn sdk() -> Receiver {
        Receiver { is_framed: false, ..Receiver::framed(None) }
    }

    /// Frames completed by what one read brought, oldest first.
    pub fn feed(&mut self, read: &[u8]) -> Vec<Frame> {
        self.counts.reads += 1;
        if self.is_framed { self.feed_framed(read) } else { self.feed_whole(read) }
    }

    fn feed_framed(&mut self, read: &[u8]) -> Vec<Frame> {
        self.buffer.extend_from_slice(read);
        let (mut frames, mut at) = (Vec::new(), 0);
        while let Some(found) = self.next(&self.buffer[at..]) {
            match found {
                Found::Frame(frame) => {
                    at += OVERHEAD_BYTES + frame.data.len();
                    self.in_garbage = false;
                    frames.push(frame);
                }
                Found::Garbage(bytes) => {
                    at += bytes;
                    // A stretch of garbage is one resynchronisation.
                    self.counts.resyncs += u64::from(!self.in_garbage);
                    self.in_garbage = true;
                }
            }
        }
        self.buffer.drain(..at);
        self.counts.joined_reads += u64::from(frames.len() > 1);
        frames.retain(|frame| self.admit(frame));
        frames
    }

    fn feed_whole(&mut self, read: &[u8]) -> Vec<Frame> {
        let is_whole = read.len() >= OVERHEAD_BYTES
            && read.starts_with(&HEAD)
            && read.ends_with(&TAIL)
            && usize::from(u16::from_le_bytes([read[4], read[5]])) == read.len() - OVERHEAD_BYTES;
        if !is_whole {
            self.counts.lost_reads += 1;
            return Vec::new();
        }
        let frame = Frame { count: read[2], kind: read[3], data: read[6..read.len() - 2].to_vec() };
        // Only to count: the SDK does not look at the count.
        self.admit(&frame);
        vec![frame]
    }

    /// What these bytes begin with, if that is known yet.
    fn next(&self, bytes: &[u8]) -> Option<Found> {
        if bytes.len() < OVERHEAD_BYTES {
            return None;
        }
        let (kind, length) = (bytes[3], usize::from(u16::from_le_bytes([bytes[4], bytes[5]])));
        let may_be = match self.data_bytes {
            Some(exactly) if kind == OUTPUT_DATA => length == exactly,
            _ => KINDS.contains(&kind) && length <= MAX_DATA_BYTES,
        };
        let end = OVERHEAD_BYTES + length;
        if bytes.starts_with(&HEAD) && may_be {
            let whole = bytes.get(..end)?;
            if whole.ends_with(&TAIL) {
                return Some(Found::Frame(Frame { count: bytes[2], kind, data: bytes[6..end - 2].to_vec() }));
            }
        }
        // On to the next possible head.
        let next = bytes[1..].windows(2).position(|pair| pair == HEAD).map_or(bytes.len() - 1, |at| at + 1);
        Some(Found::Garbage(next))
    }

    /// Follows the rolling count of the data frames; false for a frame that was seen before.
    fn admit(&mut self, frame: &Frame) -> bool {
        if frame.kind != OUTPUT_DATA {
            return true;
        }
        if let Some(newest) = self.newest {
            match frame.count.wrapping_sub(newest) {
                0 => {
                    self.counts.duplicates += 1;
                    return false;
                }
                step => self.counts.gaps += u64::from(step) - 1,
            }
        }
        self.newest = Some(frame.count);
        self.counts.frames += 1;
        true
    }
}

enum Found {
    Frame(Frame),
    Garbage(usize),
}

/// A robot's state, with the SDK's names, units (deg, mm, deg/s) and types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub robot_state: u8,
    pub joints_deg: Joints,
    pub tool_mm_deg: [f64; 6],
    pub speeds_deg_s: Joints,
    pub tool_speed: [f64; 2],
    pub is_stopped: bool,
    pub is_enabled: bool,
    pub target_deg: Joints,
    /// Commands that the servo took.
    pub commands: i32,
    /// The robot's own calendar, nanoseconds since 1970; what is below a millisecond is cut off on the wire.
    pub calendar_ns: u64,
}

/// A field of the state frame: its name and its bytes.
type Field = (&'static str, fn(&State, &mut Vec<u8>));

/// The fields that this controller offers.
const FIELDS: [Field; 13] = [
    ("robot_state", |state, to| to.push(state.robot_state)),
    ("robot_mode", |_, to| to.push(0)),
    ("actual_joint_pos", |state, to| put(&state.joints_deg, to)),
    ("actual_TCP_pos", |state, to| put(&state.tool_mm_deg, to)),
    ("actual_joint_vel", |state, to| put(&state.speeds_deg_s, to)),
    ("actual_TCP_cmpvel", |state, to| put(&state.tool_speed, to)),
    ("motion_queue_len", |_, to| to.extend(0_i32.to_le_bytes())),
    ("safety_stop0_state", |state, to| to.push(state.is_stopped.into())),
    ("safety_stop1_state", |_, to| to.push(0)),
    ("rbt_enable_state", |state, to| to.extend(i32::from(state.is_enabled).to_le_bytes())),
    ("last_servoJ_target", |state, to| put(&state.target_deg, to)),
    ("servoJ_cmd_num", |state, to| to.extend(state.commands.to_le_bytes())),
    ("robot_time", |state, to| to.extend(calendar(state.calendar_ns))),
];

/// What the loop asks for, in the order of [`State::parse`].
const ASKED: &str = "robot_state,actual_joint_pos,actual_TCP_pos,actual_joint_vel,actual_TCP_cmpvel,safety_stop0_state,\
                     safety_stop1_state,rbt_enable_state,last_servoJ_target,servoJ_cmd_num,robot_time";
/// The bytes of a frame's data then.
pub const STATE_BYTES: usize = 1 + 6 * 8 + 6 * 8 + 6 * 8 + 2 * 8 + 1 + 1 + 4 + 6 * 8 + 4 + 9;

fn put(numbers: &[f64], to: &mut Vec<u8>) {
    numbers.iter().for_each(|number| to.extend(number.to_le_bytes()));
}

/// The request for what the loop wants.
pub fn output_config(period_ms: u16) -> Vec<u8> {
    [&period_ms.to_le_bytes()[..], ASKED.as_bytes()].concat()
}

/// A client's wish: the period, and which fields.
#[derive(Clone)]
pub struct Wish {
    pub period_ns: u64,
    fields: Vec<Field>,
}

impl Wish {
    /// # Errors
    /// What the controller refuses, and why.
    pub fn parse(data: &[u8]) -> Result<Wish, String> {
        let (period, names) = data.split_first_chunk().ok_or("configuration is too short")?;
        let find = |name: &[u8]| {
            let found = FIELDS.into_iter().find(|(known, _)| known.as_bytes() == name);
            found.ok_or_else(|| format!("NOT_FOUND {}", String::from_utf8_lossy(name)))
        };
        let fields = names.split(|byte| *byte == b',').map(find).collect::<Result<_, _>>()?;
        match u16::from_le_bytes(*period) {
            period_ms @ 8..=1000 => Ok(Wish { period_ns: u64::from(period_ms) * 1_000_000, fields }),
            period_ms => Err(format!("period {period_ms} ms is not within 8 to 1000 ms")),
        }
    }

    pub fn pack(&self, state: &State) -> Vec<u8> {
        let mut data = Vec::with_capacity(STATE_BYTES);
        self.fields.iter().for_each(|(_, pack)| pack(state, &mut data));
        data
    }
}

impl State {
    /// Of the fields that the loop asks for; `None`: these are others.
    pub fn parse(data: &[u8]) -> Option<State> {
        let data: &[u8; STATE_BYTES] = data.try_into().ok()?;
        let mut rest = &data[..];
        let mut state = State { robot_state: take::<1>(&mut rest)?[0], ..State::default() };
        state.joints_deg = numbers(&mut rest)?;
        state.tool_mm_deg = numbers(&mut rest)?;
        state.speeds_deg_s = numbers(&mut rest)?;
        state.tool_speed = numbers(&mut rest)?;
        state.is_stopped = take::<2>(&mut rest)? != [0, 0];
        state.is_enabled = i32::from_le_bytes(take(&mut rest)?) != 0;
        state.target_deg = numbers(&mut rest)?;
        state.commands = i32::from_le_bytes(take(&mut rest)?);
        state.calendar_ns = calendar_ns(&take(&mut rest)?)?;
        Some(state)
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*taken)
}

fn numbers<const N: usize>(rest: &mut &[u8]) -> Option<[f64; N]> {
    let mut numbers = [0.0; N];
    for number in &mut numbers {
        *number = f64::from_le_bytes(take(rest)?);
    }
    Some(numbers)
}

/// `robot_time`: year u16, month, day, hour, minute, second u8, millisecond u16.
fn calendar(ns: u64) -> [u8; 9] {
    let (day, ms) = (ns / 86_400_000_000_000, ns / 1_000_000 % 86_400_000);
    // Days to a date and back: Howard Hinnant, "chrono-compatible low-level date algorithms".
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let date = of_year - (153 * shifted + 2) / 5 + 1;
    let [y0, y1] = ((year + era * 400 + u64::from(month <= 2)) as u16).to_le_bytes();
    let [m0, m1] = ((ms % 1000) as u16).to_le_bytes();
    let second = ms / 1000;
    [y0, y1, month as u8, date as u8, (second / 3600) as u8, (second / 60 % 60) as u8, (second % 60) as u8, m0, m1]
}

/// `robot_time` as nanoseconds since 1970, in whole milliseconds; `None`: no robot has this time.
fn calendar_ns(bytes: &[u8; 9]) -> Option<u64> {
    let [y0, y1, month, date, hour, minute, second, m0, m1] = *bytes;
    let (year, month) = (u64::from(u16::from_le_bytes([y0, y1])), u64::from(month));
    if !(1970..2500).contains(&year) || !(1..=12).contains(&month) || date == 0 {
        return None;
    }
    let year = year - u64::from(month <= 2);
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + u64::from(date) - 1;
    let day = (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).saturating_sub(719_468);
    let second = 86_400 * day + 3600 * u64::from(hour) + 60 * u64::from(minute) + u64::from(second);
    Some((second * 1000 + u64::from(u16::from_le_bytes([m0, m1]))) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn data_frames(datas: &[Vec<u8>]) -> Vec<Frame> {
        let frame = |(n, data): (usize, &Vec<u8>)| Frame {
            count: 250_u8.wrapping_add(n as u8),
            kind: OUTPUT_DATA,
            data: data.clone(),
        };
        datas.iter().enumerate().map(frame).collect()
    }

    fn fed(receiver: &mut Receiver, stream: &[u8], sizes: &[usize]) -> Vec<Frame> {
        let (mut frames, mut at) = (Vec::new(), 0);
        for size in sizes.iter().cycle() {
            let end = (at + size).min(stream.len());
            frames.extend(receiver.feed(&stream[at..end]));
            at = end;
            if at == stream.len() {
                break;
            }
        }
        frames
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_cutting_and_joining_yields_exactly_the_frames(
            datas in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..20),
            sizes in prop::collection::vec(1_usize..50, 1..10),
            garbage in prop::collection::vec(any::<u8>().prop_filter("no head", |b| *b != 0x5a), 0..80),
        ) {
            let frames = data_frames(&datas);
            let stream: Vec<u8> = garbage.iter().copied().chain(frames.iter().flat_map(Frame::encoded)).collect();
            let mut receiver = Receiver::framed(None);
            prop_assert_eq!(fed(&mut receiver, &stream, &sizes), frames);
            let Counts { gaps, duplicates, resyncs, .. } = receiver.counts;
            prop_assert_eq!((gaps, duplicates, resyncs), (0, 0, u64::from(!garbage.is_empty())));
        }

        #[test]
        fn no_bytes_make_a_receiver_or_a_parser_fail(reads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20)) {
            for mut receiver in [Receiver::framed(None), Receiver::framed(Some(40)), Receiver::sdk()] {
                for read in &reads {
                    receiver.feed(read);
                    let _ = (Wish::parse(read), State::parse(read));
                }
            }
        }

        #[test]
        fn a_garbled_length_never_makes_the_receiver_wait(length in any::<u16>(), count in 4_usize..30, sizes in prop::collection::vec(1_usize..50, 1..10)) {
            let frames = data_frames(&vec![vec![7; 40]; count]);
            let mut stream: Vec<u8> = frames.iter().flat_map(Frame::encoded).collect();
            stream[4..6].copy_from_slice(&length.to_le_bytes());
            let seen = fed(&mut Receiver::framed(Some(40)), &stream, &sizes);
            prop_assert!(seen.ends_with(&frames[2..]));
        }

        #[test]
        fn the_robots_calendar_keeps_milliseconds(ms in 0_u64..4_000_000_000_000) {
            prop_assert_eq!(calendar_ns(&calendar(ms * 1_000_000 + 999_999)), Some(ms * 1_000_000));
        }
    }

    #[test]
    fn a_missing_count_is_a_gap_and_a_repeated_one_a_duplicate() {
        let mut receiver = Receiver::framed(None);
        let sent = [254, 255, 0, 0, 3].map(|count| Frame { count, kind: OUTPUT_DATA, data: vec![1] }.encoded());
        let seen: Vec<u8> = sent.iter().flat_map(|read| receiver.feed(read)).map(|frame| frame.count).collect();
        assert_eq!((seen, receiver.counts.gaps, receiver.counts.duplicates), (vec![254, 255, 0, 3], 2, 1));
    }

    #[test]
    fn the_sdk_loses_both_frames_of_a_joined_read_and_all_of_a_cut_one() {
        let frames = data_frames(&[vec![1], vec![2], vec![3], vec![4]]);
        let [one, two, three, four] = [0, 1, 2, 3].map(|n: usize| frames[n].encoded());
        let mut receiver = Receiver::sdk();
        assert_eq!(receiver.feed(&one).len(), 1);
        assert!(receiver.feed(&[two, three].concat()).is_empty());
        assert!(receiver.feed(&four[..5]).is_empty() && receiver.feed(&four[5..]).is_empty());
        assert_eq!(receiver.counts.lost_reads, 3);
    }

    #[test]
    fn a_state_survives_the_wire_and_an_unknown_field_is_refused_by_name() {
        let joints = [1.0, -2.5, 3.0, 4.0, 5.0, 6.25];
        let state = State {
            robot_state: 4,
            joints_deg: joints,
            tool_mm_deg: joints.map(|x| 100.0 * x),
            speeds_deg_s: joints.map(|x| -x),
            tool_speed: [900.0, 3.0],
            is_stopped: true,
            is_enabled: true,
            target_deg: joints.map(|x| x + 0.1),
            commands: 77,
            calendar_ns: 1_709_164_800_123_000_000,
        };
        let wish = Wish::parse(&output_config(10)).unwrap();
        assert_eq!((wish.period_ns, State::parse(&wish.pack(&state))), (10_000_000, Some(state)));
        // 29 February 2024, and midnight.
        assert_eq!(calendar(1_709_164_800_123_000_000), [0xe8, 0x07, 2, 29, 0, 0, 0, 123, 0]);
        assert_eq!(Wish::parse(b"\x0a\x00actual_joint_pos,no_such").err().unwrap(), "NOT_FOUND no_such");
        assert!(Wish::parse(b"\x01\x00robot_state").is_err() && Wish::parse(b"\x0a").is_err());
    }
}
