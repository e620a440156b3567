//! The memory that robot and host share, as a host shares registers with a memory-mapped adapter: the simulated clock, frames
//! with their times, and what the inertial unit feels. Everything in it is an atomic integer, so any bytes are valid and a
//! process that is killed in the middle of anything leaves the other one a consistent page.

use std::sync::{
    Arc,
    atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
};

use rustix::{thread::futex, time::Timespec};
use taut_bus::{
    cycle::{Attitude, InertialUnit, SimulatedInertialUnit},
    transport::{Arrival, Error, Frame, Transport},
};
use taut_simulated_clock::{Plain, Time};

use crate::joints::LEGS;

/// Frames under way, each way on each bus.
const FRAMES: u64 = 64;
const WORDS: usize = 8;
/// Readings of the inertial unit that are kept: a reader has until the last but one is overwritten.
const READINGS: u64 = 8;
const NUMBERS: usize = 10;

/// What is shared.
#[repr(C)]
pub struct Page {
    /// Rung by the robot: a frame came, or the clock goes on.
    pub to_host: Bell,
    /// Rung by the host: a frame was sent.
    pub to_robot: Bell,
    /// The simulated clock.
    pub time: Time<1>,
    inertial: Readings,
    commands: [Lane; LEGS],
    replies: [Lane; LEGS],
}

/// A wake across processes. A wait that has missed a ring returns at once.
#[repr(C, align(64))]
pub struct Bell {
    rung: AtomicU32,
    sleeps: AtomicU32,
}

impl Bell {
    /// How often it was rung: what `wait` compares with.
    pub fn rung(&self) -> u32 {
        self.rung.load(SeqCst)
    }

    /// Notes that there is something, without a system call.
    pub fn note(&self) {
        self.rung.fetch_add(1, SeqCst);
    }

    /// Wakes all sleeping threads.
    pub fn wake(&self) {
        if self.sleeps.load(SeqCst) != 0 {
            // It can fail on a bad address only.
            let _ = futex::wake(&self.rung, futex::Flags::empty(), 1);
        }
    }

    /// Sleeps until it is rung, unless it was since `rung`, and at most so long.
    pub fn wait(&self, rung: u32, most_ns: u64) {
        let timeout = Timespec { tv_sec: (most_ns / 1_000_000_000) as i64, tv_nsec: (most_ns % 1_000_000_000) as i64 };
        self.sleeps.store(1, SeqCst);
        // Rung already, timed out, or a signal: the caller looks again.
        let _ = futex::wait(&self.rung, futex::Flags::empty(), rung, Some(&timeout));
        self.sleeps.store(0, SeqCst);
    }
}

/// Frames from one process to the other, in their order.
#[repr(C)]
struct Lane {
    written: AtomicU64,
    read: AtomicU64,
    slots: [Slot; FRAMES as usize],
}

#[repr(C)]
struct Slot {
    at_ns: AtomicU64,
    /// The id above, the length in the lowest byte.
    head: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Lane {
    /// False: full.
    fn push(&self, at_ns: u64, frame: &Frame) -> bool {
        let written = self.written.load(Relaxed);
        if written.wrapping_sub(self.read.load(Acquire)) >= FRAMES {
            return false;
        }
        let slot = &self.slots[(written % FRAMES) as usize];
        slot.at_ns.store(at_ns, Relaxed);
        slot.head.store(u64::from(frame.arbitration_id) << 8 | u64::from(frame.size), Relaxed);
        for (word, bytes) in slot.words.iter().zip(frame.data.chunks_exact(8)) {
            word.store(bytes.try_into().map(u64::from_le_bytes).unwrap_or(0), Relaxed);
        }
        self.written.store(written.wrapping_add(1), Release);
        true
    }

    /// The moment of the next frame.
    fn next_ns(&self) -> Option<u64> {
        let read = self.read.load(Relaxed);
        let is_there = self.written.load(Acquire) != read;
        is_there.then(|| self.slots[(read % FRAMES) as usize].at_ns.load(Relaxed))
    }

    fn pop(&self, frame: &mut Frame) {
        let read = self.read.load(Relaxed);
        let slot = &self.slots[(read % FRAMES) as usize];
        let head = slot.head.load(Relaxed);
        (frame.arbitration_id, frame.size) = ((head >> 8) as u32, (head as u8).min(64));
        for (word, bytes) in slot.words.iter().zip(frame.data.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        self.read.store(read.wrapping_add(1), Release);
    }
}

/// The inertial unit's readings, each in its turn.
#[repr(C)]
struct Readings {
    written: AtomicU64,
    slots: [[AtomicU64; NUMBERS]; READINGS as usize],
}

impl Page {
    /// Tells what the inertial unit feels.
    pub fn feel(&self, attitude: &Attitude) {
        let Readings { written, slots } = &self.inertial;
        let at = written.load(Relaxed);
        let Attitude { quaternion, rate_dps, acceleration_m_s2 } = attitude;
        let numbers = quaternion.iter().chain(rate_dps).chain(acceleration_m_s2);
        fence(Release);
        for (word, number) in slots[(at % READINGS) as usize].iter().zip(numbers) {
            word.store(number.to_bits(), Relaxed);
        }
        written.store(at + 1, Release);
    }

    fn felt(&self) -> Option<Attitude> {
        let Readings { written, slots } = &self.inertial;
        loop {
            let at = written.load(Acquire).checked_sub(1)?;
            let slot = &slots[(at % READINGS) as usize];
            let number = |n: usize| f64::from_bits(slot[n].load(Relaxed));
            let attitude = Attitude {
                quaternion: std::array::from_fn(number),
                rate_dps: std::array::from_fn(|n| number(4 + n)),
                acceleration_m_s2: std::array::from_fn(|n| number(7 + n)),
            };
            fence(Acquire);
            // A reader that was away for milliseconds reads again.
            if written.load(Relaxed) - at < READINGS {
                return Some(attitude);
            }
        }
    }

    /// The bus whose first frame from the host is the oldest, and when that was sent.
    pub fn next_command(&self) -> Option<(usize, u64)> {
        let next = |(bus, lane): (usize, &Lane)| lane.next_ns().map(|ns| (ns, bus));
        self.commands.iter().enumerate().filter_map(next).min().map(|(ns, bus)| (bus, ns))
    }

    /// Takes it.
    pub fn take_command(&self, bus: usize, frame: &mut Frame) {
        self.commands[bus].pop(frame);
    }

    /// Gives the host a reply that is there since `at_ns`. False: the host has left too many there.
    pub fn reply(&self, bus: usize, at_ns: u64, frame: &Frame) -> bool {
        self.replies[bus].push(at_ns, frame)
    }
}

// SAFETY: atomic integers throughout; zeros are empty lanes and a clock that has yet to begin.
unsafe impl Plain for Page {}

/// A mapping of the page.
pub type Mapped = taut_simulated_clock::Mapped<Page>;

/// The host's end of a bus.
pub struct Mailbox {
    page: Arc<Mapped>,
    bus: usize,
    times: Arc<WireTimes>,
}

/// By bus, when the first command of a cycle went out and the last reply came, ns: the rest of the cycle is the host's own.
#[derive(Default)]
pub struct WireTimes {
    buses: [[AtomicU64; 2]; LEGS],
}

impl WireTimes {
    /// How long the bus that was done last was busy since `woke_ns`.
    pub fn busy_ns(&self, woke_ns: u64) -> Option<u64> {
        let times = self.buses.iter().map(|bus| [bus[0].load(Relaxed), bus[1].load(Relaxed)]);
        let [first, last] = times.max_by_key(|[_, last]| *last)?;
        (first >= woke_ns && last >= first).then(|| last - first)
    }
}

impl Mailbox {
    /// All buses, and when they were busy.
    pub fn all(page: &Arc<Mapped>) -> (Vec<Mailbox>, Arc<WireTimes>) {
        let times = Arc::<WireTimes>::default();
        let mailbox = |bus| Mailbox { page: page.clone(), bus, times: times.clone() };
        ((0..LEGS).map(mailbox).collect(), times)
    }
}

impl Transport for Mailbox {
    fn send(&mut self, now_ns: u64, frame: &Frame) -> Result<(), Error> {
        if !self.page.commands[self.bus].push(now_ns, frame) {
            return Err(Error::Full { what: "the adapter's queue" });
        }
        self.page.to_robot.note();
        let [first, last] = &self.times.buses[self.bus];
        // The first since the last reply.
        if last.load(Relaxed) >= first.load(Relaxed) {
            first.store(now_ns, Relaxed);
            last.store(0, Relaxed);
        }
        Ok(())
    }

    fn receive(&mut self, now_ns: u64, frame: &mut Frame) -> Result<bool, Error> {
        let lane = &self.page.replies[self.bus];
        let Some(at_ns) = lane.next_ns().filter(|ns| *ns <= now_ns) else { return Ok(false) };
        lane.pop(frame);
        self.times.buses[self.bus][1].store(at_ns, Relaxed);
        Ok(true)
    }

    fn next_arrival(&self) -> Arrival {
        // What is not there yet rings the bell, which ends every wait of the simulated clock.
        self.page.replies[self.bus].next_ns().map_or(Arrival::Never, Arrival::At)
    }
}

/// The host's inertial unit: the robot's newest reading.
pub struct Inertial(pub Arc<Mapped>);

impl InertialUnit for Inertial {
    fn read(&mut self, now_ns: u64) -> Result<(Attitude, u64), Error> {
        // Commands are out: the robot may be woken while the reading takes its time.
        self.0.to_robot.wake();
        let done_ns = now_ns + SimulatedInertialUnit::default().takes_ns;
        self.0.felt().map(|attitude| (attitude, done_ns)).ok_or(Error::Closed)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn frame(id: u32, bytes: &[u8]) -> Frame {
        let mut frame = Frame::new();
        (frame.arbitration_id, frame.size) = (id, bytes.len() as u8);
        frame.data[..bytes.len()].copy_from_slice(bytes);
        frame
    }

    #[test]
    fn frames_cross_whole_and_the_oldest_command_of_all_buses_is_next() {
        let page = Mapped::create().unwrap();
        let robot = Mapped::open(Path::new(&page.path())).unwrap();
        let (mut buses, times) = Mailbox::all(&page);
        let long: Vec<u8> = (1..=64).collect();
        buses[2].send(20, &frame(0x8007, &long)).unwrap();
        buses[0].send(10, &frame(0x8001, &[1])).unwrap();
        buses[2].send(30, &frame(0x1fff_ffff, &[])).unwrap();
        let mut taken = Frame::new();
        for (expected, sent) in
            [((0, 10), frame(0x8001, &[1])), ((2, 20), frame(0x8007, &long)), ((2, 30), frame(0x1fff_ffff, &[]))]
        {
            assert_eq!(robot.next_command(), Some(expected));
            robot.take_command(expected.0, &mut taken);
            let n = usize::from(sent.size);
            assert_eq!((taken.arbitration_id, &taken.data[..n]), (sent.arbitration_id, &sent.data[..n]));
        }
        assert_eq!(robot.next_command(), None);
        // A reply is not seen before its moment.
        assert!(robot.reply(2, 500, &frame(0x700, &[7])));
        assert_eq!(buses[2].next_arrival(), Arrival::At(500));
        assert!(!buses[2].receive(499, &mut taken).unwrap() && buses[2].receive(500, &mut taken).unwrap());
        assert_eq!((taken.arbitration_id, taken.size, times.busy_ns(20)), (0x700, 1, Some(480)));
        assert_eq!(times.busy_ns(21), None, "of an earlier cycle");
    }

    #[test]
    fn a_full_lane_refuses_and_goes_on_where_room_is() {
        let page = Mapped::create().unwrap();
        let (mut buses, _) = Mailbox::all(&page);
        for at_ns in 0..FRAMES {
            buses[1].send(at_ns, &frame(1, &[])).unwrap();
        }
        assert!(matches!(buses[1].send(99, &frame(1, &[])), Err(Error::Full { .. })));
        page.take_command(1, &mut Frame::new());
        buses[1].send(99, &frame(1, &[])).unwrap();
    }

    #[test]
    fn the_newest_reading_is_read() {
        let page = Mapped::create().unwrap();
        let mut unit = Inertial(page.clone());
        assert!(unit.read(0).is_err(), "nothing was felt yet");
        for turn in 1..=3 * READINGS {
            let attitude = Attitude {
                quaternion: [turn as f64; 4],
                rate_dps: [-1.0, 0.5, turn as f64],
                acceleration_m_s2: [0.0, f64::MIN_POSITIVE, 9.81],
            };
            page.feel(&attitude);
            let (read, done_ns) = unit.read(7).unwrap();
            assert_eq!((read, done_ns), (attitude, 7 + SimulatedInertialUnit::default().takes_ns));
        }
    }
}
