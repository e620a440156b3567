//! Recordings of two hosts of which everything is known: setpoints from a desk to a robot, states back, on clocks of their own.

use std::path::Path;

use taut_clock::Counter;
use taut_recording::{
    Architecture, Ending, Info, KernelBatch, KernelEvent, Kind, Name, Record, StampBatch, Thread, Tier, Writer,
};

pub const MESSAGES: u64 = 1_000;
pub const PERIOD_NS: u64 = 10_000_000;
/// Ids of states are apart from those of setpoints, and so are those between the robot and its arm.
const STATES: u64 = 1 << 32;
const COMMANDS: u64 = 2 << 32;
const FEEDBACK: u64 = 3 << 32;
/// The number of the program's thread, on both hosts.
const LOOP: i32 = 10;
const RECEIVER: i32 = 11;
const HOG: i32 = 30;
const SLEEPS: i64 = 1;
const RUNNABLE: i64 = 0x100;
const SOFT_IRQ: u8 = 0x10;
const NET_RX: i64 = 3;
/// What the receiver's kernel takes for a message; and of one that is held on the way.
const IN_KERNEL_NS: u64 = 10_000;
const HELD_IN_KERNEL_NS: u64 = 2_000_000;

/// A host's clock, as the true time has it.
#[derive(Clone, Copy, Default)]
pub struct Clock {
    pub ahead_ns: i64,
    pub ppm: i64,
    /// From that true time on it is ahead by so much more.
    pub step: Option<(u64, i64)>,
}

impl Clock {
    pub fn of(self, true_ns: u64) -> u64 {
        let drifted = i128::from(true_ns) * i128::from(self.ppm) / 1_000_000;
        let stepped = self.step.filter(|(at_ns, _)| true_ns >= *at_ns).map_or(0, |(_, by_ns)| by_ns);
        (i128::from(true_ns) + drifted + i128::from(self.ahead_ns) + i128::from(stepped)) as u64
    }
}

/// What is recorded.
#[derive(Clone, Copy)]
pub struct Made {
    /// Of the robot; the desk's shows the true time.
    pub robot: Clock,
    /// Whether the robot sends states back.
    pub has_states: bool,
    pub has_kernel: bool,
    /// The robot's stamps begin with this id: with a large one no message is on both hosts.
    pub first_id: u64,
    /// CLOCK_REALTIME of the robot is ahead by so much, and what chronyd of both hosts states, if it does.
    pub realtime: (u64, Option<u64>),
    /// What ptp4l of each host states: its grandmaster, and a bound if it has one.
    pub ptp: Option<[(&'static str, &'static str); 2]>,
    /// A third host, to which the robot alone sends commands, and which answers with feedback; its clock.
    pub arm: Option<Clock>,
}

impl Default for Made {
    fn default() -> Made {
        let robot = Clock { ahead_ns: 3 * 86_400_000_000_000, ppm: 200, step: None };
        Made {
            robot,
            has_states: true,
            has_kernel: true,
            first_id: 0,
            realtime: (2_000_000, None),
            ptp: None,
            arm: None,
        }
    }
}

/// A message's moments, in true time.
struct Moments {
    sent: u64,
    received: u64,
    applied: u64,
    state_sent: u64,
    state_received: u64,
    command_sent: u64,
    command_received: u64,
    feedback_sent: u64,
    feedback_received: u64,
}

/// One of 200 takes 5 ms more on the way, and one 4 ms more on the robot.
fn is_held_on_the_way(message: u64) -> bool {
    message % 200 == 49
}

fn is_hogged(message: u64) -> bool {
    message % 200 == 149
}

impl Moments {
    fn of(message: u64) -> Moments {
        // A long tail without a random number: the ways differ.
        let queued = |factor: u64| {
            let mixed = (message + 1).wrapping_mul(factor).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            (-(mixed as f64 / (1u64 << 24) as f64).max(1e-3).ln() * 40e3) as u64
        };
        let sent = 1_000_000_000 + message * PERIOD_NS;
        let received = sent + 300_000 + queued(3) + if is_held_on_the_way(message) { 5_000_000 } else { 0 };
        let applied = received + 200_000 + if is_hogged(message) { 4_000_000 } else { 0 };
        let state_sent = applied + 100_000;
        let (command_sent, feedback_sent) = (applied + 1_000_000, applied + 2_000_000);
        Moments {
            sent,
            received,
            applied,
            state_sent,
            state_received: state_sent + 250_000 + queued(7),
            command_sent,
            command_received: command_sent + 60_000 + queued(11),
            feedback_sent,
            feedback_received: feedback_sent + 40_000 + queued(13),
        }
    }
}

impl Made {
    /// `desk.mcap`, `robot.mcap`, and `arm.mcap` if it is wanted, in the folder.
    pub fn write(self, folder: &Path) {
        self.desk(&folder.join("desk.mcap"));
        self.robot(&folder.join("robot.mcap"));
        if let Some(clock) = self.arm {
            self.arm(clock, &folder.join("arm.mcap"));
        }
    }

    pub fn info(self, host: &str, clock: Clock, architecture: Architecture) -> Info {
        Info {
            host: host.into(),
            tier: if self.has_kernel { Tier::Full } else { Tier::Stamps },
            system_calls: architecture.word().into(),
            start_monotonic_ns: clock.of(900_000_000),
            start_realtime_ns: 1_700_000_000_900_000_000 + if host == "robot" { self.realtime.0 } else { 0 },
            facts: [("boot_id".to_owned(), format!("boot of {host}"))]
                .into_iter()
                .chain(self.realtime.1.map(|bound_ns| ("realtime_bound_ns".to_owned(), bound_ns.to_string())))
                .chain(self.ptp.into_iter().flat_map(|of| {
                    let (grandmaster, bound_ns) = of[usize::from(host == "robot")];
                    let time_stamps = if bound_ns.is_empty() { "hardware" } else { "software" };
                    let facts = [
                        ("ptp_grandmaster", grandmaster),
                        ("ptp_bound_ns", bound_ns),
                        ("ptp_steps", "1"),
                        ("ptp_time_stamps", time_stamps),
                    ];
                    facts.map(|(key, value)| (key.to_owned(), value.to_owned()))
                }))
                .collect(),
            ..Info::default()
        }
    }

    fn desk(self, path: &Path) {
        let clock = Clock::default();
        let mut host = Host::new(path, clock, &self.info("desk", clock, Architecture::X86_64), Architecture::X86_64);
        host.names(&["setpoint.sent", "state.received"]);
        for message in 0..MESSAGES {
            let at = Moments::of(message);
            host.stamp(LOOP, at.sent, message, 1);
            // Before it sends it wakes whoever waits for what it held.
            host.wake_of_futex(LOOP, at.sent + 2_000, at.sent + 3_000);
            host.call("sendto", LOOP, at.sent + 5_000, at.sent + 15_000);
            host.call_of_sleep(LOOP, at.sent + 20_000, at.sent + PERIOD_NS - 20_000);
            if self.has_states {
                host.receive(RECEIVER, 1, at.state_received, IN_KERNEL_NS, message + 1 == MESSAGES);
                host.stamp(RECEIVER, at.state_received, STATES + message, 2);
            }
        }
        host.finish(self.has_kernel);
    }

    fn robot(self, path: &Path) {
        let architecture = Architecture::Aarch64;
        let mut host = Host::new(path, self.robot, &self.info("robot", self.robot, architecture), architecture);
        host.names(&["setpoint.received", "setpoint.applied", "state.sent", "command.sent", "feedback.received"]);
        for message in 0..MESSAGES {
            let (at, id) = (Moments::of(message), message + self.first_id);
            let in_kernel_ns = if is_held_on_the_way(message) { HELD_IN_KERNEL_NS } else { IN_KERNEL_NS };
            host.receive(LOOP, 0, at.received, in_kernel_ns, message + 1 == MESSAGES);
            host.stamp(LOOP, at.received, id, 1);
            if is_hogged(message) {
                host.event(0, at.received + 50_000, KernelEvent::SchedSwitch, 0, LOOP, [HOG.into(), RUNNABLE, 0]);
                host.event(0, at.applied - 100_000, KernelEvent::SchedSwitch, 0, HOG, [LOOP.into(), RUNNABLE, 0]);
            }
            host.stamp(LOOP, at.applied, id, 2);
            if self.has_states {
                host.stamp(LOOP, at.state_sent, STATES + id, 3);
                host.call("sendto", LOOP, at.state_sent + 5_000, at.state_sent + 15_000);
            }
            if self.arm.is_some() {
                host.stamp(RECEIVER, at.command_sent, COMMANDS + message, 4);
                host.stamp(RECEIVER, at.feedback_received, FEEDBACK + message, 5);
            }
        }
        host.finish(self.has_kernel);
    }

    fn arm(self, clock: Clock, path: &Path) {
        let architecture = Architecture::X86_64;
        let mut host = Host::new(path, clock, &self.info("arm", clock, architecture), architecture);
        host.names(&["command.received", "feedback.sent"]);
        for message in 0..MESSAGES {
            let at = Moments::of(message);
            host.stamp(LOOP, at.command_received, COMMANDS + message, 1);
            host.stamp(LOOP, at.feedback_sent, FEEDBACK + message, 2);
        }
        host.finish(self.has_kernel);
    }
}

/// One recording being written.
struct Host {
    writer: Writer,
    clock: Clock,
    architecture: Architecture,
    stamps: Vec<StampBatch>,
    cpus: Vec<KernelBatch>,
    last_ns: u64,
}

impl Host {
    fn new(path: &Path, clock: Clock, info: &Info, architecture: Architecture) -> Host {
        let mut writer = Writer::create(path, info).unwrap();
        for (tid, comm, recorded) in [(LOOP, "program", true), (RECEIVER, "program", true), (HOG, "hog", false)] {
            let pid = if recorded { LOOP } else { tid };
            let thread = Thread { pid, tid, comm: comm.into(), recorded, ..Thread::default() };
            writer.write(&Record::Thread(thread)).unwrap();
        }
        let batch = |tid| StampBatch { pid: LOOP, tid, counter: Counter::Monotonic as u8, ..StampBatch::default() };
        let cpus = (0..2).map(|cpu| KernelBatch { cpu, ..KernelBatch::default() }).collect();
        Host { writer, clock, architecture, stamps: vec![batch(LOOP), batch(RECEIVER)], cpus, last_ns: 0 }
    }

    fn names(&mut self, names: &[&str]) {
        for (id, name) in (1..).zip(names) {
            self.writer.write(&Record::Name(Name { id, name: (*name).into() })).unwrap();
        }
    }

    fn stamp(&mut self, tid: i32, true_ns: u64, id: u64, point: u32) {
        let ticks = self.clock.of(true_ns);
        let batch = self.stamps.iter_mut().find(|batch| batch.tid == tid).unwrap();
        batch.ticks.push(ticks);
        batch.message_id.push(id);
        batch.point.push(point);
        batch.kind.push(Kind::Stamp as u8);
        batch.value.push(0);
        self.last_ns = self.last_ns.max(ticks);
    }

    /// A thread was in a call that waits for data, which came 20 µs before `stamp_ns`, and which its kernel had dealt with by then.
    fn receive(&mut self, tid: i32, cpu: u16, stamp_ns: u64, in_kernel_ns: u64, is_last: bool) {
        let (idle_flags, number) = (SOFT_IRQ, self.number("recvfrom"));
        for (event, at_ns) in
            [(KernelEvent::IrqEnter, stamp_ns - 20_000 - in_kernel_ns), (KernelEvent::IrqExit, stamp_ns - 15_000)]
        {
            self.event(cpu, at_ns, event, 0, 0, [NET_RX, 1, 0]);
        }
        self.event(cpu, stamp_ns - 20_000, KernelEvent::SchedWaking, idle_flags, 0, [tid.into(), cpu.into(), 0]);
        self.event(cpu, stamp_ns - 12_000, KernelEvent::SchedSwitch, 0, 0, [tid.into(), RUNNABLE, 0]);
        self.event(cpu, stamp_ns - 6_000, KernelEvent::SyscallExit, 0, tid, [number, 64, 0]);
        // The next wait begins when the work on this message is done.
        let next_ns = stamp_ns + if tid == LOOP { 4_400_000 } else { 50_000 };
        if !is_last {
            self.event(cpu, next_ns, KernelEvent::SyscallEnter, 0, tid, [number, 3, 0]);
            self.event(cpu, next_ns + 2_000, KernelEvent::SchedSwitch, 0, tid, [0, SLEEPS, 0]);
        }
    }

    fn call(&mut self, name: &str, tid: i32, from_ns: u64, to_ns: u64) {
        let number = self.number(name);
        self.event(0, from_ns, KernelEvent::SyscallEnter, 0, tid, [number, 3, 0]);
        self.event(0, to_ns, KernelEvent::SyscallExit, 0, tid, [number, 64, 0]);
    }

    fn wake_of_futex(&mut self, tid: i32, from_ns: u64, to_ns: u64) {
        const WAKE_PRIVATE: i64 = 129;
        let number = self.number("futex");
        self.event(0, from_ns, KernelEvent::SyscallEnter, 0, tid, [number, 0x7000, WAKE_PRIVATE]);
        self.event(0, to_ns, KernelEvent::SyscallExit, 0, tid, [number, 0, 0]);
    }

    fn call_of_sleep(&mut self, tid: i32, from_ns: u64, to_ns: u64) {
        let number = self.number("clock_nanosleep");
        self.event(0, from_ns, KernelEvent::SyscallEnter, 0, tid, [number, 0, 0]);
        self.event(0, from_ns + 1_000, KernelEvent::SchedSwitch, 0, tid, [0, SLEEPS, 0]);
        self.event(0, to_ns - 5_000, KernelEvent::SchedWaking, 0x08, 0, [tid.into(), 0, 0]);
        self.event(0, to_ns - 3_000, KernelEvent::SchedSwitch, 0, 0, [tid.into(), RUNNABLE, 0]);
        self.event(0, to_ns, KernelEvent::SyscallExit, 0, tid, [number, 0, 0]);
    }

    fn number(&self, name: &str) -> i64 {
        self.architecture.system_calls().find(|(known, _)| *known == name).unwrap().1.into()
    }

    fn event(&mut self, cpu: u16, true_ns: u64, event: KernelEvent, flags: u8, tid: i32, args: [i64; 3]) {
        let time_ns = self.clock.of(true_ns);
        self.cpus[usize::from(cpu)].push(time_ns, event as u8, flags, tid, args);
        self.last_ns = self.last_ns.max(time_ns);
    }

    fn finish(mut self, has_kernel: bool) {
        for batch in self.stamps.into_iter().filter(|batch| !batch.ticks.is_empty()) {
            self.writer.write(&Record::Stamps(batch)).unwrap();
        }
        for batch in self.cpus.into_iter().filter(|batch| has_kernel && !batch.time_ns.is_empty()) {
            self.writer.write(&Record::Kernel(in_order(&batch))).unwrap();
        }
        self.writer
            .finish(&Ending { end_monotonic_ns: self.last_ns, exit_code: Some(0), ..Ending::default() })
            .unwrap();
    }
}

fn in_order(batch: &KernelBatch) -> KernelBatch {
    let mut order: Vec<usize> = (0..batch.time_ns.len()).collect();
    order.sort_by_key(|at| batch.time_ns[*at]);
    let mut sorted = KernelBatch { cpu: batch.cpu, ..KernelBatch::default() };
    for at in order {
        let args = [batch.arg0[at], batch.arg1[at], batch.arg2[at]];
        sorted.push(batch.time_ns[at], batch.event[at], batch.flags[at], batch.tid[at], args);
    }
    sorted
}
