//! 12 servos on 4 simulated buses, commanded and queried at 1 kHz: what the engine takes beyond the wire. Prints one JSON line.
//! `bus_bench CYCLES CPU|- PRIORITY|-`

use std::{ops::ControlFlow, time::Duration};

use moteus_protocol::{
    Resolution,
    command::{PositionCommand, PositionFormat},
    query::QueryFormat,
};
use taut_allocations::allocations;
use taut_bus::{
    cycle::{
        Clock, Command, Controller, Cycle, Engine, Monotonic, Patience, RealTime, Schedule, SimulatedInertialUnit,
        States, Statistics, Virtual, repeat,
    },
    servo::{Body, Limits, Servo},
    sim::{Bus, Wiring},
    transport::Frame,
};
use taut_stats::Distribution;

const PERIOD_NS: u64 = 1_000_000;
/// Before a cycle is due, the thread reads the clock for so long instead of sleeping.
const SPIN: Duration = Duration::from_micros(150);

struct Trot {
    format: PositionFormat,
    query: QueryFormat,
    statistics: Statistics,
    allocations: Option<u64>,
    during: u64,
}

impl Controller for Trot {
    fn control(&mut self, number: u64, states: &States, commands: &mut Vec<Command>) -> ControlFlow<()> {
        let now = allocations();
        self.during = now - *self.allocations.get_or_insert(now);
        commands.clear();
        let position = 0.1 * (number as f32 * 0.01).sin();
        for state in states.all() {
            let mut frame = Frame::new();
            frame.arbitration_id = 0x8000 | u32::from(state.servo);
            let command = PositionCommand::new().position(position).velocity(0.0).feedforward_torque(0.0);
            command.serialize(&mut frame, &self.format);
            self.query.serialize(&mut frame);
            commands.push(Command::new(state.bus, frame));
        }
        ControlFlow::Continue(())
    }

    fn wants_attitude(&self) -> bool {
        true
    }

    fn after(&mut self, cycle: &Cycle, _: &States) {
        self.statistics.record(cycle);
    }
}

fn run(clock: impl Clock, cycles: u64) -> Trot {
    let servo = |bus: u8, n: u8| Servo::new(3 * bus + n, Body::default(), Limits::default(), 0);
    // Stuff bits as a share, so that the wire's time is the same in each cycle and can be taken off exactly.
    let wiring = Wiring { exact: false, ..Wiring::default() };
    let buses = (0..4).map(|bus| Bus::new(wiring.clone(), (1..=3).map(|n| servo(bus, n)).collect())).collect();
    let mut engine = Engine::new(buses, clock, Patience::default()).with_inertial(SimulatedInertialUnit::default());
    let mut states = States::of((0..12).map(|n| (usize::from(n / 3), n + 1)));
    let (mut format, mut query) = (PositionFormat::default(), QueryFormat::default());
    (format.position, format.velocity, format.feedforward_torque) =
        (Resolution::Int16, Resolution::Int16, Resolution::Int16);
    (query.position, query.velocity, query.torque) = (Resolution::Int16, Resolution::Int16, Resolution::Int16);
    let statistics = Statistics::with_room(cycles as usize);
    let mut trot = Trot { format, query, statistics, allocations: None, during: 0 };
    let mut commands = Vec::with_capacity(12);
    repeat(&mut engine, Schedule { period_ns: PERIOD_NS, cycles: Some(cycles) }, &mut commands, &mut states, &mut trot);
    trot
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let cycles: u64 = arguments.next().and_then(|n| n.parse().ok()).expect("CYCLES");
    let [cpu, priority] = [arguments.next(), arguments.next()].map(|a| a.and_then(|n| n.parse().ok()));
    RealTime { cpu, priority, lock_memory: priority.is_some() }.enter().expect("the real-time thread");
    let wire = run(Virtual::default(), 100);
    let wire_ns = times(&wire.statistics)[0];
    assert!(times(&wire.statistics).iter().all(|ns| *ns == wire_ns), "the wire's time is one");
    let real = run(Monotonic::new(SPIN), cycles);
    let beyond: Vec<u64> = times(&real.statistics).iter().map(|ns| ns.saturating_sub(wire_ns)).collect();
    let mut parts: Vec<String> =
        real.statistics.distributions().iter().map(|(name, d)| format!("\"{name}\": {}", figures(d))).collect();
    parts.push(format!("\"beyond\": {}", figures(&distribution(&beyond))));
    let (expected, missing) = real.statistics.replies();
    println!(
        "{{\"wire_ns\": {wire_ns}, \"cycles\": {}, \"skipped\": {}, \"expected\": {expected}, \"missing\": {missing}, \"allocations\": {}, {}}}",
        real.statistics.cycles(),
        real.statistics.skipped(),
        real.during,
        parts.join(", ")
    );
}

/// From waking to done, ns.
fn times(statistics: &Statistics) -> &[u64] {
    let phases = statistics.phases();
    &phases[phases.len() - 1].1
}

fn distribution(ns: &[u64]) -> Distribution {
    let mut sorted = ns.to_vec();
    sorted.sort_unstable();
    Distribution::of(ns, &sorted)
}

fn figures(d: &Distribution) -> String {
    let all = [d.p50_ns, d.p90_ns, d.p99_ns, d.p999_ns, d.max_ns];
    format!("[{}]", all.map(|ns| ns.map_or_else(|| "null".to_owned(), |ns| ns.to_string())).join(", "))
}
