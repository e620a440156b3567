//! The cycle allocates nothing: counted by the allocator itself, on the thread that runs the loop.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use moteus_protocol::{
    command::{PositionCommand, PositionFormat},
    query::QueryFormat,
};
use taut_allocations::allocations;
use taut_bus::{
    cycle::{
        Clock, Command, Controller, Cycle, Engine, Monotonic, Patience, Schedule, SimulatedInertialUnit, States,
        Virtual, repeat,
    },
    servo::{Body, Limits, Servo},
    sim::{Bus, Wiring, serve},
    transport::{Fdcanusb, Frame, Pty, Transport, Udp, UdpDoor},
};

/// Commands every servo to where it is asked for, in the middle of its way.
struct Trot {
    before: Option<u64>,
    during: u64,
    missing: usize,
    cycles: u64,
    /// Ends after so many cycles. A schedule's number counts periods, of which a busy machine skips any number.
    most: u64,
    /// Allocates on purpose, to show that it would be seen.
    careless: bool,
}

impl Trot {
    fn new(most: u64, careless: bool) -> Trot {
        Trot { before: None, during: 0, missing: 0, cycles: 0, most, careless }
    }
}

impl Controller for Trot {
    fn control(&mut self, number: u64, states: &States, commands: &mut Vec<Command>) -> ControlFlow<()> {
        if self.cycles == self.most {
            return ControlFlow::Break(());
        }
        // The first cycles may still fill what was only reserved.
        if self.cycles >= 10 && self.before.is_none() {
            self.before = Some(allocations());
        }
        commands.clear();
        for state in states.all() {
            let mut frame = Frame::new();
            frame.arbitration_id = 0x8000 | u32::from(state.servo);
            let position = 0.1 * (number as f32 * 0.01).sin();
            PositionCommand::new().position(position).velocity(0.0).serialize(&mut frame, &PositionFormat::default());
            QueryFormat::default().serialize(&mut frame);
            commands.push(Command::new(state.bus, frame));
        }
        if self.careless {
            std::hint::black_box(vec![number]);
        }
        ControlFlow::Continue(())
    }

    fn wants_attitude(&self) -> bool {
        true
    }

    fn after(&mut self, cycle: &Cycle, _: &States) {
        self.missing += cycle.outcome.missing;
        self.cycles += 1;
        if let Some(before) = self.before {
            self.during = allocations() - before;
        }
    }
}

fn quadruped() -> Vec<Bus> {
    let servo = |bus: u8, n: u8| Servo::new(3 * bus + n, Body::default(), Limits::default(), 0);
    (0..4).map(|bus| Bus::new(Wiring::default(), (1..=3).map(|n| servo(bus, n)).collect())).collect()
}

fn run(buses: Vec<impl Transport>, clock: impl Clock, cycles: u64, careless: bool) -> Trot {
    let servos = 3 * buses.len() as u8;
    let mut engine = Engine::new(buses, clock, Patience { min_wait_ns: 0, deadline_ns: 800_000 })
        .with_inertial(SimulatedInertialUnit::default());
    let mut states = States::of((0..servos).map(|n| (usize::from(n / 3), n + 1)));
    let mut commands = Vec::with_capacity(12);
    let mut trot = Trot::new(cycles, careless);
    let schedule = Schedule { period_ns: 1_000_000, cycles: None };
    repeat(&mut engine, schedule, &mut commands, &mut states, &mut trot);
    trot
}

/// Behind a real door, in a thread of its own whose allocations are not counted here.
fn run_through(door: impl Transport + Send + 'static, client: impl Transport) -> Trot {
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, bus) = (stop.clone(), quadruped().swap_remove(0));
    let server = std::thread::spawn(move || serve(bus, door, &stopped));
    let trot = run(vec![client], Monotonic::new(Duration::ZERO), 200, false);
    stop.store(true, Ordering::Relaxed);
    server.join().unwrap().unwrap();
    trot
}

#[test]
fn ten_thousand_cycles_of_twelve_servos_allocate_nothing() {
    let trot = run(quadruped(), Virtual::default(), 10_000, false);
    assert_eq!((trot.cycles, trot.missing, trot.during), (10_000, 0, 0));
}

#[test]
fn nor_do_cycles_on_the_real_clock() {
    let trot = run(quadruped(), Monotonic::new(Duration::ZERO), 100, false);
    assert_eq!((trot.cycles, trot.before.is_some(), trot.during), (100, true, 0));
}

#[test]
fn nor_do_cycles_with_a_cut_bus() {
    let mut buses = quadruped();
    buses[3].cut(true);
    let trot = run(buses, Virtual::default(), 1_000, false);
    assert_eq!((trot.missing, trot.during), (3_000, 0));
}

#[test]
fn nor_do_cycles_over_a_pty_or_udp() {
    let pty = Pty::open().unwrap();
    let client = Fdcanusb::open(pty.path()).unwrap();
    let trot = run_through(pty, client);
    assert_eq!((trot.before.is_some(), trot.during), (true, 0));
    let door = UdpDoor::listen("127.0.0.1:0").unwrap();
    let client = Udp::connect(&door.address().unwrap().to_string()).unwrap();
    let trot = run_through(door, client);
    assert_eq!((trot.before.is_some(), trot.during), (true, 0));
}

#[test]
fn an_allocation_would_be_seen() {
    let trot = run(quadruped(), Virtual::default(), 1_000, true);
    assert_eq!(trot.during, 990);
}
