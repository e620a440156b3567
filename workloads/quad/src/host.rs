//! The robot's controller: stands up, trots in place, and lowers the robot when something is wrong. `taut_guard`'s
//! chain decides what is wrong and what follows.

use std::{
    f64::consts::TAU,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Result;
use moteus_protocol::{
    Mode, Resolution,
    command::{PositionCommand, PositionFormat, StopCommand, ZeroVelocityCommand, ZeroVelocityFormat},
    query::QueryFormat,
};
use taut_bus::{
    cycle::{Attitude, Clock, Command, Controller, Cycle, Engine, Patience, Schedule, States, Statistics, repeat},
    transport::{Frame, Transport},
};
use taut_guard::watchdog::{Action, ChainState, DegradeCause, DegradeChain, Ramp, Report, Timeouts};
use taut_stamp::Point;

use crate::{
    gait::{self, Foot},
    joints::{JOINTS, LEGS, SERVOS, bus, id},
    leg,
    page::WireTimes,
};

/// Cycles without a reply from a servo after which it counts as lost: k.
pub const REPLY_AGE_MAX: u64 = 5;
/// All joints together, revolutions a second: standing up takes a second and a half.
const RISE_REV_S: f64 = 0.4;
/// Stands so long before it trots.
const STAND_NS: u64 = 300_000_000;
/// A setpoint goes on at its speed for so many cycles without a next one, and then stands: a frame may be lost, but a host that
/// dies must not leave the legs on their way until the servos' time-out.
const AHEAD_CYCLES: f64 = 2.0;
/// Tilt beyond which a robot counts as falling: cos 45°.
const TILT_COSINE: f64 = std::f64::consts::FRAC_1_SQRT_2;
const TILT: u8 = 1;

static MISSING: Point = Point::new("reply_missing");
static APPLIED: Point = Point::new("applied");
/// Degrees of the first leg's joints: what was commanded, and what the servo told in the same cycle.
static COMMANDED: [Point; JOINTS] =
    [Point::new("leg1.shoulder.commanded"), Point::new("leg1.femur.commanded"), Point::new("leg1.tibia.commanded")];
static ACTUAL: [Point; JOINTS] =
    [Point::new("leg1.shoulder.actual"), Point::new("leg1.femur.actual"), Point::new("leg1.tibia.actual")];

/// What the robot shall do once it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Gait {
    /// Keep standing.
    Stand,
    /// Trot in place.
    Trot,
}

/// What the host is asked.
#[derive(Clone, Debug)]
pub struct Wishes {
    /// Cycles a second.
    pub rate_hz: f64,
    /// For so long.
    pub duration_s: f64,
    /// What to do once it stands.
    pub gait: Gait,
    /// Stop servos that are found in another mode than stopped, instead of refusing to start.
    pub clear: bool,
}

/// Replies may take a millisecond, and no longer than leaves the next cycle alone.
pub fn patience(wishes: &Wishes) -> Patience {
    let period_ns = (1e9 / wishes.rate_hz) as u64;
    Patience { min_wait_ns: 0, deadline_ns: period_ns.saturating_sub(200_000).clamp(100_000, 1_000_000) }
}

/// Where the host is on its way to the gait.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Asks all servos what they do.
    Asking,
    /// Stops them all.
    Clearing,
    /// From where the joints are to where they stand.
    Rising(Ramp<SERVOS>),
    Standing {
        until_ns: u64,
    },
    Trotting {
        since_ns: u64,
    },
    /// Will not run.
    Refused {
        servo: usize,
        mode: Mode,
    },
}

/// The host.
pub struct Host {
    period_ns: u64,
    wishes: Wishes,
    stop: Arc<AtomicBool>,
    stage: Stage,
    chain: DegradeChain<SERVOS>,
    position: PositionFormat,
    zero_velocity: ZeroVelocityFormat,
    query: QueryFormat,
    /// Of the cycle, revolutions; NaN before there are any.
    setpoints_rev: [f64; SERVOS],
    torques_nm: [f64; SERVOS],
    statistics: Statistics,
    /// Where the buses are another process': when they were busy, and what of each complete cycle they were not, ns.
    wires: Option<Arc<WireTimes>>,
    beyond_wire_ns: Vec<u64>,
    /// When it degraded, in cycles.
    degraded_in: Option<u64>,
    warmest_c: f32,
}

impl Host {
    /// A host that begins by asking.
    ///
    /// # Errors
    /// A rate at which the time-outs do not nest.
    pub fn new(wishes: Wishes, stop: Arc<AtomicBool>) -> Result<Host> {
        let period_ns = (1e9 / wishes.rate_hz).round() as u64;
        let (mut position, mut query) = (PositionFormat::default(), QueryFormat::default());
        (position.position, position.velocity, position.feedforward_torque, position.stop_position) =
            (Resolution::Int16, Resolution::Int16, Resolution::Int16, Resolution::Int16);
        (query.position, query.velocity, query.torque) = (Resolution::Int16, Resolution::Int16, Resolution::Int16);
        let timeouts = Timeouts { cycle_ns: period_ns, ..Timeouts::default() };
        let cycles = (wishes.rate_hz * wishes.duration_s).round() as usize;
        Ok(Host {
            period_ns,
            stop,
            stage: Stage::Asking,
            chain: DegradeChain::new(timeouts, REPLY_AGE_MAX)?,
            position,
            zero_velocity: ZeroVelocityFormat::default(),
            query,
            setpoints_rev: [f64::NAN; SERVOS],
            torques_nm: [0.0; SERVOS],
            statistics: Statistics::with_room(cycles),
            wires: None,
            beyond_wire_ns: Vec::new(),
            degraded_in: None,
            warmest_c: f32::NEG_INFINITY,
            wishes,
        })
    }

    /// Also measures what a cycle takes beyond the wires' times.
    pub fn with_wires(mut self, wires: Arc<WireTimes>) -> Host {
        let cycles = (self.wishes.rate_hz * self.wishes.duration_s).round() as usize;
        (self.wires, self.beyond_wire_ns) = (Some(wires), Vec::with_capacity(cycles));
        self
    }

    /// Goes round the buses until its time is over, it is stopped, or it refuses to run.
    pub fn run<T: Transport, C: Clock>(&mut self, engine: &mut Engine<T, C>) {
        let cycles = (self.wishes.rate_hz * self.wishes.duration_s).round() as u64;
        let mut states = States::of((0..SERVOS).map(|servo| (bus(servo), id(servo))));
        let mut commands = Vec::with_capacity(SERVOS);
        let schedule = Schedule { period_ns: self.period_ns, cycles: Some(cycles) };
        repeat(engine, schedule, &mut commands, &mut states, self);
    }

    /// The times of its cycles.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Of each complete cycle, what the buses were not busy of it, ns.
    pub fn beyond_wire_ns(&self) -> &[u64] {
        &self.beyond_wire_ns
    }

    /// Why it refused to run.
    pub fn refused(&self) -> Option<String> {
        match self.stage {
            Stage::Refused { servo, mode } => Some(format!(
                "servo {} is in mode {mode} from an earlier run; see that the robot is safe, then start with --clear",
                id(servo)
            )),
            _ => None,
        }
    }

    /// Why it lowered the robot, in which cycle, and how many causes came later.
    pub fn cause(&self) -> Option<(String, u64, u64)> {
        let ChainState::Degraded(cause) = self.chain.state() else { return None };
        Some((in_words(cause), self.degraded_in.unwrap_or(0), self.chain.counters.later_causes.get()))
    }

    /// Whether the gait was reached.
    pub fn stood(&self) -> bool {
        matches!(self.stage, Stage::Standing { .. } | Stage::Trotting { .. })
    }

    /// The hottest that a servo told, °C.
    pub fn warmest_c(&self) -> f32 {
        self.warmest_c
    }

    fn feet(&mut self, now_ns: u64) -> [Foot; LEGS] {
        if let Stage::Standing { until_ns } = self.stage
            && now_ns >= until_ns
            && self.wishes.gait == Gait::Trot
        {
            self.stage = Stage::Trotting { since_ns: now_ns };
        }
        match self.stage {
            Stage::Trotting { since_ns } => gait::trotting((now_ns - since_ns) as f64 / 1e9),
            _ => gait::standing(),
        }
    }

    /// Setpoints of this cycle; their speeds, which the servos follow between cycles, rev/s.
    fn move_on(&mut self, now_ns: u64) -> [f64; SERVOS] {
        let feet = self.feet(now_ns);
        let mut target_rev = [0.0; SERVOS];
        for (leg, foot) in feet.iter().enumerate() {
            // The gait stays in reach; a foot that did not would keep the leg where it is.
            let Some(angles) = leg::angles(foot.at_m) else { continue };
            for joint in 0..JOINTS {
                let servo = leg * JOINTS + joint;
                target_rev[servo] = angles[joint] / TAU;
                self.torques_nm[servo] = leg::standing_nm(angles, foot.load_n)[joint];
            }
        }
        let mut next_rev = target_rev;
        if let Stage::Rising(mut ramp) = self.stage {
            let arrived;
            (next_rev, arrived) = ramp.next(&target_rev);
            self.stage = if arrived { Stage::Standing { until_ns: now_ns + STAND_NS } } else { Stage::Rising(ramp) };
        }
        let period_s = self.period_ns as f64 / 1e9;
        let speeds = std::array::from_fn(|servo| {
            let step = next_rev[servo] - self.setpoints_rev[servo];
            if step.is_finite() { step / period_s } else { 0.0 }
        });
        self.setpoints_rev = next_rev;
        speeds
    }

    /// All servos have answered: begins to move, or says why not.
    fn begin(&mut self, now_ns: u64, states: &States) {
        let busy = states.all().iter().position(|state| state.told.mode != Mode::Stopped);
        self.stage = match busy {
            Some(servo) if !self.wishes.clear => Stage::Refused { servo, mode: states.all()[servo].told.mode },
            Some(_) => Stage::Clearing,
            None => {
                let measured: [f64; SERVOS] = std::array::from_fn(|servo| f64::from(states.all()[servo].told.position));
                let step = RISE_REV_S * self.period_ns as f64 / 1e9;
                match (Ramp::from_measured(measured, step), self.chain.start(now_ns)) {
                    (Ok(ramp), Ok(())) => Stage::Rising(ramp),
                    _ => Stage::Asking,
                }
            }
        };
    }

    fn watch(&mut self, now_ns: u64, states: &States, attitude: Option<Attitude>) {
        for (servo, state) in states.all().iter().enumerate().filter(|(_, state)| state.age_cycles == 0) {
            self.warmest_c = self.warmest_c.max(state.told.temperature);
            self.chain.reply(
                servo,
                match state.told.mode {
                    Mode::Fault => Report::Faulted,
                    Mode::Timeout => Report::TimedOut,
                    _ => Report::Healthy,
                },
            );
        }
        if attitude.is_some_and(|attitude| tilt_cosine(&attitude) < TILT_COSINE) {
            self.chain.degrade(DegradeCause::Other(TILT));
        }
        // Nobody but the clock speaks for the operator here.
        self.chain.operator(now_ns);
        self.chain.cycle(now_ns);
    }
}

impl Controller for Host {
    fn control(&mut self, number: u64, _: &States, commands: &mut Vec<Command>) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) || matches!(self.stage, Stage::Refused { .. }) {
            return ControlFlow::Break(());
        }
        let now_ns = number * self.period_ns;
        let speeds = match self.chain.state() {
            ChainState::Running => self.move_on(now_ns),
            _ => [0.0; SERVOS],
        };
        commands.clear();
        let ahead_s = AHEAD_CYCLES * self.period_ns as f64 / 1e9;
        for (servo, speed) in speeds.into_iter().enumerate() {
            let mut frame = Frame::new();
            frame.arbitration_id = 0x8000 | u32::from(id(servo));
            match self.chain.action(servo) {
                Action::Follow => PositionCommand::new()
                    .position(self.setpoints_rev[servo] as f32)
                    .velocity(speed as f32)
                    .stop_position((self.setpoints_rev[servo] + ahead_s * speed) as f32)
                    .feedforward_torque(self.torques_nm[servo] as f32)
                    .serialize(&mut frame, &self.position),
                Action::ZeroVelocity { kd_scale } => {
                    ZeroVelocityCommand::new().kd_scale(kd_scale as f32).serialize(&mut frame, &self.zero_velocity);
                }
                // A servo with a fault is off by itself; a stop would wipe out why.
                Action::Stop if self.stage == Stage::Clearing => StopCommand::serialize(&mut frame),
                Action::Stop => {}
            }
            self.query.serialize(&mut frame);
            commands.push(Command::new(bus(servo), frame));
        }
        ControlFlow::Continue(())
    }

    fn wants_attitude(&self) -> bool {
        true
    }

    fn after(&mut self, cycle: &Cycle, states: &States) {
        self.statistics.record(cycle);
        let busy_ns = self.wires.as_ref().and_then(|wires| wires.busy_ns(cycle.woke_ns));
        if let Some(busy_ns) = busy_ns.filter(|_| cycle.outcome.missing == 0)
            && self.beyond_wire_ns.len() < self.beyond_wire_ns.capacity()
        {
            self.beyond_wire_ns.push((cycle.done_ns - cycle.woke_ns).saturating_sub(busy_ns));
        }
        let now_ns = cycle.number * self.period_ns;
        if self.chain.state() == ChainState::Stopped {
            if states.oldest_cycles() == 0 {
                self.begin(now_ns, states);
            }
        } else {
            self.watch(now_ns, states, cycle.outcome.attitude);
        }
        if matches!(self.chain.state(), ChainState::Degraded(_)) {
            self.degraded_in.get_or_insert(cycle.number);
        }
        match cycle.outcome.missing {
            0 => APPLIED.outcome(cycle.number),
            _ => MISSING.outcome(cycle.number),
        }
        for joint in 0..JOINTS {
            if self.chain.state() == ChainState::Running && self.setpoints_rev[joint].is_finite() {
                COMMANDED[joint].value(360.0 * self.setpoints_rev[joint]);
            }
            if states.all()[joint].age_cycles == 0 {
                ACTUAL[joint].value(360.0 * f64::from(states.all()[joint].told.position));
            }
        }
    }
}

/// Cosine of the angle between the body's and the world's upward axes.
fn tilt_cosine(attitude: &Attitude) -> f64 {
    let [_, x, y, _] = attitude.quaternion;
    1.0 - 2.0 * (x * x + y * y)
}

/// A cause as people read it.
pub fn in_words(cause: DegradeCause) -> String {
    match cause {
        DegradeCause::ServoFault(n) => format!("servo {} reports a fault", id(n.into())),
        DegradeCause::ServoTimeout(n) => format!("servo {} has timed out", id(n.into())),
        DegradeCause::NoReply(n) => format!("servo {} does not answer", id(n.into())),
        DegradeCause::HostStale => "the host did not run".into(),
        DegradeCause::HostClock => "the host's clock went back".into(),
        DegradeCause::OperatorLost => "no word from the operator".into(),
        DegradeCause::Other(_) => "tilted by more than 45°".into(),
    }
}

#[cfg(test)]
mod tests {
    use taut_allocations::allocations;
    use taut_bus::{cycle::Virtual, servo::Motor, sim::Wiring};

    use super::*;
    use crate::{
        failure::Failure,
        joints,
        world::{Shared, World},
    };

    const FAILS_IN: u64 = 500;

    /// A host over servos that do not move, and what happens to them in cycle `FAILS_IN`.
    struct Rig<F> {
        host: Host,
        world: Shared,
        fail: F,
        /// Modes of all servos after each cycle.
        modes: Vec<[Mode; SERVOS]>,
        allocations: Vec<u64>,
        /// Setpoints that were sent before and after the host named a cause.
        setpoints: [usize; 2],
        /// Where the servos wanted to be after the first cycle in which they followed.
        first_targets: Option<[f64; SERVOS]>,
    }

    impl<F: FnMut(&mut World)> Controller for Rig<F> {
        fn control(&mut self, number: u64, states: &States, commands: &mut Vec<Command>) -> ControlFlow<()> {
            if number == FAILS_IN {
                (self.fail)(&mut self.world.lock());
            }
            let before = allocations();
            let flow = self.host.control(number, states, commands);
            self.allocations.push(allocations() - before);
            let setpoints = commands.iter().filter(|command| is_setpoint(&command.frame)).count();
            self.setpoints[usize::from(self.host.cause().is_some())] += setpoints;
            flow
        }

        fn wants_attitude(&self) -> bool {
            true
        }

        fn after(&mut self, cycle: &Cycle, states: &States) {
            let before = allocations();
            self.host.after(cycle, states);
            self.allocations.push(allocations() - before);
            let mut world = self.world.lock();
            let modes = std::array::from_fn(|servo| motor(&mut world, servo).mode());
            if modes == [Mode::Position; SERVOS] && self.first_targets.is_none() {
                self.first_targets = Some(std::array::from_fn(|servo| motor(&mut world, servo).target_rev()));
            }
            self.modes.push(modes);
        }
    }

    /// A frame begins with its mode: one byte, to register 0.
    fn is_setpoint(frame: &Frame) -> bool {
        frame.data.starts_with(&[0x01, 0x00, Mode::Position as u8])
    }

    fn motor(world: &mut World, servo: usize) -> &mut Motor {
        world.buses_mut()[bus(servo)].servo_mut(id(servo)).unwrap().motor_mut()
    }

    fn heat(world: &mut World, servo: usize) {
        motor(world, servo).set_temperature_c(90.0);
    }

    fn wishes(clear: bool) -> Wishes {
        Wishes { rate_hz: 1000.0, duration_s: 1.0, gait: Gait::Trot, clear }
    }

    fn still() -> Shared {
        Shared::new(World::new(joints::buses(&Wiring::default()), None, Failure::default()))
    }

    fn run_in<F: FnMut(&mut World)>(world: Shared, start_ns: u64, wishes: Wishes, fail: F) -> Rig<F> {
        let mut clock = Virtual::default();
        clock.wait_until(start_ns);
        let patience = Patience { min_wait_ns: 0, deadline_ns: 800_000 };
        let mut engine = Engine::new(world.wires(), clock, patience).with_inertial(world.clone());
        let host = Host::new(wishes, Arc::default()).unwrap();
        let room = || Vec::with_capacity(4000);
        let modes = Vec::with_capacity(2000);
        let mut rig = Rig { host, world, fail, modes, allocations: room(), setpoints: [0; 2], first_targets: None };
        let mut states = States::of((0..SERVOS).map(|servo| (bus(servo), id(servo))));
        let mut commands = Vec::with_capacity(SERVOS);
        let schedule = Schedule { period_ns: 1_000_000, cycles: Some(1000) };
        repeat(&mut engine, schedule, &mut commands, &mut states, &mut rig);
        rig
    }

    fn run(fail: impl FnMut(&mut World)) -> Rig<impl FnMut(&mut World)> {
        run_in(still(), 0, wishes(false), fail)
    }

    /// The cycle after whose end these servos have all let go of their setpoints.
    fn damped_in<F>(rig: &Rig<F>, servos: impl Iterator<Item = usize> + Clone) -> Option<u64> {
        let all = |modes: &[Mode; SERVOS]| {
            servos.clone().all(|servo| matches!(modes[servo], Mode::ZeroVelocity | Mode::Timeout))
        };
        rig.modes.iter().position(all).map(|cycle| cycle as u64)
    }

    #[test]
    fn without_a_failure_all_servos_follow_to_the_end() {
        let rig = run(|_| {});
        assert_eq!(rig.modes[999], [Mode::Position; SERVOS]);
        assert_eq!((rig.host.cause(), rig.host.refused()), (None, None));
    }

    #[test]
    fn a_fault_sends_the_others_to_zero_velocity_within_two_cycles_and_no_setpoint_after_it() {
        let rig = run(|world| heat(world, 4));
        let others = (0..SERVOS).filter(|servo| *servo != 4);
        assert!(damped_in(&rig, others).unwrap() <= FAILS_IN + 2);
        assert!(rig.modes[FAILS_IN as usize..].iter().all(|modes| modes[4] == Mode::Fault), "nobody clears it");
        assert_eq!(rig.host.cause().unwrap().0, "servo 5 reports a fault");
        let [before, after] = rig.setpoints;
        assert!(before > 0 && after == 0, "{before} {after}");
    }

    #[test]
    fn three_faults_at_once_are_one_with_the_first_named() {
        let rig = run(|world| [1, 6, 11].into_iter().for_each(|servo| heat(world, servo)));
        let (cause, cycle, later) = rig.host.cause().unwrap();
        assert_eq!((cause.as_str(), later > 0), ("servo 2 reports a fault", true));
        assert!(cycle <= FAILS_IN + 1);
    }

    #[test]
    fn replies_that_do_not_come_are_borne_for_k_cycles() {
        let rig = run(|world| world.buses_mut()[2].set_loss(1.0));
        let (cause, cycle, _) = rig.host.cause().unwrap();
        // Those of the cycle itself are the first that are lost.
        assert_eq!((cause.as_str(), cycle), ("servo 7 does not answer", FAILS_IN + REPLY_AGE_MAX - 1));
        // Its servos hear all the same, and damp with the others.
        assert!(damped_in(&rig, 0..SERVOS).unwrap() <= cycle + 2);
    }

    #[test]
    fn a_lost_reply_now_and_then_is_no_failure() {
        let rig = run(|world| world.buses_mut().iter_mut().for_each(|bus| bus.set_loss(0.02)));
        assert_eq!(rig.host.cause(), None);
        assert!(rig.host.statistics().replies().1 > 0);
    }

    #[test]
    fn behind_a_cut_bus_servos_time_out_by_themselves() {
        let rig = run(|world| world.buses_mut()[1].cut(true));
        let degraded = rig.host.cause().unwrap().1;
        let far = (0..SERVOS).filter(|servo| bus(*servo) != 1);
        assert!(damped_in(&rig, far).unwrap() <= degraded + 2);
        let alone = damped_in(&rig, 3..6).unwrap();
        assert!((FAILS_IN + 99..=FAILS_IN + 101).contains(&alone), "{alone}");
        assert_eq!(rig.modes[999][3..6], [Mode::Timeout; 3]);
    }

    #[test]
    fn a_host_that_starts_again_reports_time_outs_and_clears_them_only_when_told() {
        let world = still();
        let first = run_in(world.clone(), 0, wishes(false), |_| {});
        assert_eq!(first.modes[999], [Mode::Position; SERVOS]);
        let second = run_in(world.clone(), 2_000_000_000, wishes(false), |_| {});
        assert!(second.host.refused().unwrap().contains("servo 1 is in mode"), "{:?}", second.host.refused());
        assert_eq!(second.modes.last(), Some(&[Mode::Timeout; SERVOS]));
        let third = run_in(world, 3_000_000_000, wishes(true), |_| {});
        assert_eq!(third.modes[999], [Mode::Position; SERVOS]);
    }

    #[test]
    fn the_first_setpoint_is_where_the_joints_are() {
        let world = still();
        for servo in 0..SERVOS {
            motor(&mut world.lock(), servo).place(0.01 * servo as f64, 0.0);
        }
        let rig = run_in(world, 0, wishes(false), |_| {});
        for (servo, target) in rig.first_targets.unwrap().iter().enumerate() {
            // To the resolution of the registers, there and back.
            assert!((target - 0.01 * servo as f64).abs() <= 2.1e-4, "servo {servo}: {target}");
        }
    }

    #[test]
    fn without_a_host_a_setpoint_stands_after_the_frames_that_may_be_lost() {
        let rig = run(|_| {});
        let mut world = rig.world.lock();
        let targets = |world: &mut World| -> [f64; SERVOS] { std::array::from_fn(|n| motor(world, n).target_rev()) };
        let last = targets(&mut world);
        // On its way up, and half of the servos' time-out later.
        world.advance(1_050_000_000);
        let moved: Vec<f64> = targets(&mut world).iter().zip(last).map(|(now, then)| (now - then).abs()).collect();
        assert!(moved.iter().any(|rev| *rev > 0.0), "{moved:?}");
        let most = RISE_REV_S * AHEAD_CYCLES * 0.001 + 2.0 * 1e-4;
        assert!(moved.iter().all(|rev| *rev <= most), "{moved:?}");
        assert_eq!(motor(&mut world, 0).mode(), Mode::Position);
    }

    #[test]
    fn cycles_allocate_nothing_degraded_or_not() {
        let rig = run(|world| heat(world, 4));
        assert!(rig.host.cause().is_some());
        // The first cycles may still fill what was only reserved.
        assert_eq!(rig.allocations[20..].iter().sum::<u64>(), 0);
    }
}
