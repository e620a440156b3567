//! The fourteen tests of the watchdog's specification, on virtual time with a simulated plant.

mod plant;

use plant::{Leg, Phase, STEP_S};
use taut_guard::{
    Error,
    watchdog::{
        Action, ChainState, Command, DegradeCause, DegradeChain, Drive, Ramp, Report, ServoMode, ServoWatchdog,
        StopMode, Timeout, Timeouts, damping_torque,
    },
};

const MS: u64 = 1_000_000;
const TICK_NS: u64 = MS / 10;
const TAU_NS: u64 = 100 * MS;
const K: u64 = 5;
/// Damping of each joint.
const KD_NM_S: f64 = 6.0;

fn servo() -> ServoWatchdog {
    let mut servo = ServoWatchdog::new(TICK_NS, Timeout::from_ns(TAU_NS).unwrap()).unwrap();
    assert!(servo.command(Command::Enable));
    servo
}

fn chain<const N: usize>() -> DegradeChain<N> {
    let mut chain = DegradeChain::new(Timeouts::default(), K).unwrap();
    chain.start(0).unwrap();
    chain
}

/// A robot of twelve servos, three on each bus, that a host may stop serving.
struct Robot {
    servos: [ServoWatchdog; 12],
    chain: DegradeChain<12>,
    now_ns: u64,
    /// Position frames to each servo.
    position_frames: [u64; 12],
}

impl Robot {
    fn new() -> Robot {
        Robot { servos: [servo(); 12], chain: chain(), now_ns: 0, position_frames: [0; 12] }
    }

    /// One host cycle: servos tick for 1 ms, get what the chain says, and answer unless cut off.
    fn cycle(&mut self, is_cut: impl Fn(usize) -> bool) -> ChainState {
        self.now_ns += MS;
        for n in 0..12 {
            for _ in 0..MS / TICK_NS {
                self.servos[n].tick();
            }
            if is_cut(n) {
                continue;
            }
            match self.chain.action(n) {
                Action::Follow => {
                    self.position_frames[n] += 1;
                    self.servos[n].command(Command::Position(None));
                }
                Action::ZeroVelocity { .. } => _ = self.servos[n].command(Command::ZeroVelocity),
                Action::Stop => {}
            }
            self.chain.reply(
                n,
                match self.servos[n].mode() {
                    ServoMode::Timeout => Report::TimedOut,
                    ServoMode::Fault => Report::Faulted,
                    _ => Report::Healthy,
                },
            );
        }
        self.chain.operator(self.now_ns);
        self.chain.cycle(self.now_ns)
    }
}

#[test]
fn t01_expiry_is_within_one_tick_and_never_early() {
    // Stop at any moment between two ticks: expiry in [τ, τ + 1 tick].
    for phase_ns in (0..TICK_NS).step_by(1000) {
        let mut servo = servo();
        servo.command(Command::Position(None));
        let mut since_ns = TICK_NS - phase_ns;
        while servo.tick() == Drive::Position {
            since_ns += TICK_NS;
        }
        assert!((TAU_NS..=TAU_NS + TICK_NS).contains(&since_ns), "{phase_ns}: {since_ns}");
        assert_eq!(servo.mode(), ServoMode::Timeout);
    }
    // Gaps up to τ − tick, for 10⁸ ticks.
    let mut random = fastrand::Rng::with_seed(1);
    let mut servo = servo();
    let mut ticks = 0u64;
    while ticks < 100_000_000 {
        servo.command(Command::Position(None));
        let gap = if random.u8(..8) == 0 { TAU_NS / TICK_NS - 1 } else { random.u64(1..TAU_NS / TICK_NS) };
        for _ in 0..gap {
            std::hint::black_box(servo.tick());
        }
        ticks += gap;
    }
    println!("seed 1: {ticks} ticks");
    assert_eq!((servo.mode(), servo.counters.timeouts.get()), (ServoMode::Position, 0));
}

#[test]
fn t02_jitter_below_tau_never_times_out() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut servo = servo();
    for n in 0..200_000u32 {
        servo.command(Command::Position(None));
        let gap_ns = if n % 50 == 0 { random.u64(20..=90) * MS } else { random.u64(MS..=20 * MS) };
        for _ in 0..gap_ns.div_ceil(TICK_NS) {
            servo.tick();
        }
    }
    assert_eq!(servo.counters.timeouts.get(), 0);
}

#[test]
fn t03_a_timeout_is_latched_until_stop_and_enable() {
    let mut servo = servo();
    servo.command(Command::Position(None));
    for _ in 0..2000 {
        servo.tick();
    }
    for _ in 0..1000 {
        assert!(!servo.command(Command::Position(None)));
        assert!(!servo.command(Command::Enable));
        assert!(!servo.command(Command::ZeroVelocity));
        assert_eq!(servo.tick(), Drive::Damp);
    }
    assert_eq!(servo.mode(), ServoMode::Timeout);
    assert_eq!(servo.counters.ignored.get(), 3000);
    assert!(servo.command(Command::Stop));
    assert!(!servo.command(Command::Position(None)));
    assert_eq!(servo.tick(), Drive::Off);
    assert!(servo.command(Command::Enable) && servo.command(Command::Position(None)));
    assert_eq!(servo.tick(), Drive::Position);
}

/// What a leg does in the second after the host's death: peak joint speed, peak speed of body or foot, largest load; and
/// prints the largest force on the foot in stance, in weights.
fn sink(mut leg: Leg, kd: f64, max_nm: f64) -> (f64, f64, f64) {
    let (mut peak_omega, mut peak_m_s, mut load, mut peak_weights) = (0f64, 0f64, 0f64, 0f64);
    let mut before_m_s = leg.speed_m_s();
    let downward = if leg.phase == Phase::Stance { -1.0 } else { 1.0 };
    let (mut energy, start_m) = (leg.energy_j(), leg.height_m());
    // Until the body lies on the ground, or the leg hangs.
    for _ in 0..(1.0 / STEP_S) as usize {
        load = leg.load_nm().iter().fold(load, |most, torque| most.max(torque.abs()));
        leg.step(kd, max_nm);
        if leg.height_m() < 0.05 {
            break;
        }
        peak_omega = leg.omega.iter().fold(peak_omega, |most, omega| most.max(omega.abs()));
        peak_m_s = peak_m_s.max(leg.speed_m_s().abs());
        peak_weights = peak_weights.max(1.0 + (leg.speed_m_s() - before_m_s) / STEP_S / 9.81);
        before_m_s = leg.speed_m_s();
        if kd > 0.0 {
            assert!(leg.energy_j() <= energy + 1e-9, "energy rises");
            assert!(leg.speed_m_s() * downward >= -1e-9, "it moves up");
        }
        energy = leg.energy_j();
    }
    assert!(leg.height_m() != start_m);
    if leg.phase == Phase::Stance {
        println!("kd {kd}: the foot bears at most {peak_weights:.2} weights");
    }
    (peak_omega, peak_m_s, load)
}

#[test]
fn t04_legs_sink_gently_in_stance_and_swing() {
    for (phase, q) in
        [(Phase::Stance, [0.1, 0.6, 0.6]), (Phase::Stance, [0.0, 0.3, 0.7]), (Phase::Swing, [0.1, 1.0, 0.2])]
    {
        let leg = Leg::new(phase, q);
        let (omega, sinking, load) = sink(leg, KD_NM_S, 50.0);
        let (_, falling, _) = sink(leg, 0.0, 0.0);
        let share = sinking / falling;
        println!("{phase:?}: {sinking:.3} m/s, {:.0} % of {falling:.3} m/s unpowered; {omega:.2} rad/s", 100.0 * share);
        assert!(omega <= load / KD_NM_S * 1.05, "{omega} rad/s with {load} N·m");
        assert!(share <= 0.4, "{phase:?}: {sinking} m/s against {falling}");
    }
}

#[test]
fn t05_above_the_torque_cap_it_falls_faster_but_does_not_oscillate() {
    let leg = Leg::new(Phase::Stance, [0.1, 0.6, 0.6]);
    let load = leg.load_nm().iter().fold(0f64, |most, torque| most.max(torque.abs()));
    let cap = load / 2.0;
    let (mut capped, mut saturated) = (leg, 0);
    for _ in 0..10_000 {
        capped.step(KD_NM_S, cap);
        for omega in capped.omega {
            let torque = damping_torque(KD_NM_S, omega, cap);
            assert!(torque.abs() <= cap && torque * omega <= 0.0);
            saturated += u32::from(torque.abs() == cap);
        }
        assert!(capped.speed_m_s() <= 1e-9, "it swings back");
        if capped.height_m() < 0.05 {
            break;
        }
    }
    assert!(saturated > 100);
    let (_, damped, _) = sink(leg, KD_NM_S, 50.0);
    let (_, faster, _) = sink(leg, KD_NM_S, cap);
    let (_, falling, _) = sink(leg, 0.0, 0.0);
    println!("{damped:.3} m/s damped, {faster:.3} m/s at half the torque, {falling:.3} m/s unpowered");
    assert!(damped < faster && faster < falling);
}

#[test]
fn t06_one_fault_sends_the_others_to_zero_velocity() {
    let (mut times, mut after_fault) = (Vec::new(), Vec::new());
    for at in 0..12 {
        let mut robot = Robot::new();
        for _ in 0..50 {
            robot.cycle(|_| false);
        }
        robot.servos[at].fault();
        let frames = robot.position_frames[at];
        let mut cycles = 0;
        while robot.servos.iter().enumerate().any(|(n, servo)| n != at && servo.drive() != Drive::Damp) {
            robot.cycle(|_| false);
            cycles += 1;
        }
        assert!(cycles <= 2, "{cycles} cycles");
        times.push(cycles);
        // The frame that finds the fault is the last: one, in the cycle of the report.
        for _ in 0..100 {
            robot.cycle(|_| false);
        }
        after_fault.push(robot.position_frames[at] - frames);
        assert!(after_fault[at] <= 1);
        assert_eq!(robot.servos[at].drive(), Drive::Off);
        assert_eq!(robot.chain.action(at), Action::Stop);
        assert_eq!(robot.chain.state(), ChainState::Degraded(DegradeCause::ServoFault(at as u8)));
    }
    println!("cycles until all others damp: {times:?}; position frames after the fault: {after_fault:?}");
}

#[test]
fn t07_a_storm_of_faults_is_one_fault_with_its_first_cause() {
    let mut robot = Robot::new();
    robot.cycle(|_| false);
    for n in 0..1000 {
        for at in [7, 2, 11] {
            // Flapping: the fault comes and goes.
            if n % 2 == 0 { robot.servos[at].fault() } else { _ = robot.servos[at].command(Command::Stop) }
        }
        if n == 0 {
            robot.chain.reply(7, Report::Faulted);
        }
        let state = robot.cycle(|_| false);
        assert_eq!(state, ChainState::Degraded(DegradeCause::ServoFault(7)));
    }
    assert!(robot.chain.counters.later_causes.get() > 1000);
    assert!((0..12).all(|n| robot.chain.action(n) != Action::Follow));
}

#[test]
fn t08_a_servo_that_does_not_answer_is_followed_k_cycles_at_most() {
    for lost in 1..=20 {
        let mut robot = Robot::new();
        for _ in 0..10 {
            robot.cycle(|_| false);
        }
        let mut followed = 0;
        for _ in 0..lost {
            followed += u64::from(robot.chain.action(4) == Action::Follow);
            robot.cycle(|n| n == 4);
        }
        if lost < K {
            assert_eq!((robot.chain.state(), followed), (ChainState::Running, lost));
            assert_eq!(robot.cycle(|_| false), ChainState::Running);
            assert_eq!(robot.chain.reply_age_cycles(4), 0);
        } else {
            assert_eq!(robot.chain.state(), ChainState::Degraded(DegradeCause::NoReply(4)));
            assert_eq!(followed, K);
        }
    }
}

#[test]
fn t09_a_dead_bus_times_out_by_itself_and_the_rest_damps() {
    let mut robot = Robot::new();
    for _ in 0..50 {
        robot.cycle(|_| false);
    }
    let mut damped_after = None;
    for cycle in 1..=200u64 {
        let state = robot.cycle(|n| n < 3);
        if (3..12).all(|n| robot.servos[n].drive() == Drive::Damp) {
            damped_after.get_or_insert(cycle);
        }
        assert!(cycle < K || matches!(state, ChainState::Degraded(DegradeCause::NoReply(0..3))), "{state:?}");
    }
    // k cycles to be sure, then at most 2.
    assert!(damped_after.unwrap() <= K + 2, "{damped_after:?}");
    for servo in &robot.servos[..3] {
        assert_eq!((servo.mode(), servo.counters.timeouts.get()), (ServoMode::Timeout, 1));
    }
    println!("nine damped after {} cycles, three timed out by themselves", damped_after.unwrap());
}

#[test]
fn t10_a_host_that_hangs_dies_stops_or_jumps_in_time() {
    // Hang, crash and SIGSTOP are one thing to a servo: silence.
    let mut robot = Robot::new();
    for _ in 0..50 {
        robot.cycle(|_| false);
    }
    for _ in 0..1001 {
        robot.servos.iter_mut().for_each(|servo| _ = servo.tick());
    }
    assert!(robot.servos.iter().all(|servo| servo.mode() == ServoMode::Timeout));
    // SIGCONT: the same host goes on 100 ms later, and knows.
    robot.now_ns += 100 * MS;
    let state = robot.cycle(|_| false);
    assert!(matches!(state, ChainState::Degraded(DegradeCause::ServoTimeout(0))), "{state:?}");
    assert!(robot.servos.iter().all(|servo| servo.mode() == ServoMode::Timeout));
    // A new host after a crash finds the time-outs, reports them, and clears nothing.
    robot.chain = chain();
    robot.now_ns = 0;
    for _ in 0..100 {
        robot.cycle(|_| false);
    }
    assert_eq!(robot.chain.state(), ChainState::Degraded(DegradeCause::ServoTimeout(0)));
    assert!(robot.servos.iter().all(|servo| servo.mode() == ServoMode::Timeout));
    // A hang shorter than τ but longer than the host's own limit.
    let mut hung = chain::<1>();
    hung.reply(0, Report::Healthy);
    assert_eq!(hung.cycle(30 * MS), ChainState::Degraded(DegradeCause::HostStale));
    // A clock that goes back.
    let mut jumped = chain::<1>();
    jumped.reply(0, Report::Healthy);
    jumped.cycle(10 * MS);
    jumped.reply(0, Report::Healthy);
    assert_eq!(jumped.cycle(5 * MS), ChainState::Degraded(DegradeCause::HostClock));
    // An operator who is gone.
    let mut alone = chain::<1>();
    let mut now_ns = 0;
    while alone.state() == ChainState::Running {
        now_ns += MS;
        alone.reply(0, Report::Healthy);
        alone.cycle(now_ns);
    }
    assert_eq!((now_ns, alone.state()), (1001 * MS, ChainState::Degraded(DegradeCause::OperatorLost)));
    // ZeroVelocity that the host asked for outlives the host.
    let mut servo = servo();
    servo.command(Command::ZeroVelocity);
    for _ in 0..10_000 {
        assert_eq!(servo.tick(), Drive::Damp);
    }
    assert_eq!(servo.mode(), ServoMode::ZeroVelocity);
}

#[test]
fn t11_numbers_that_are_none_are_refused_or_harmless() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e9] {
        assert!(matches!(Timeout::from_seconds(bad, false), Err(Error::OutOfRange { .. })), "{bad}");
        assert_eq!(Timeout::from_seconds(bad, true).is_ok(), bad.is_nan());
    }
    for (kd, omega, max) in [(f64::NAN, 1.0, 1.0), (1.0, f64::INFINITY, 1.0), (1.0, 1.0, f64::NAN), (1.0, 1.0, -1.0)] {
        assert_eq!(damping_torque(kd, omega, max), 0.0);
    }
    // Without time-out, on explicit demand only.
    let mut servo = servo();
    servo.command(Command::Position(Some(Timeout::from_seconds(f64::NAN, true).unwrap())));
    for _ in 0..100_000 {
        assert_eq!(servo.tick(), Drive::Position);
    }
    let off = Timeout::from_seconds(f64::NAN, true).unwrap();
    assert!(ServoWatchdog::<u32>::new(TICK_NS, off).is_err());
    assert!(Ramp::from_measured([f64::NAN], 0.1).is_err() && Ramp::from_measured([0.0], f64::NAN).is_err());
}

#[test]
fn t12_full_counters_stay_full_and_change_nothing() {
    let mut narrow = DegradeChain::<2, u8>::new(Timeouts::default(), K).unwrap();
    let mut wide = DegradeChain::<2, u64>::new(Timeouts::default(), K).unwrap();
    narrow.start(0).unwrap();
    wide.start(0).unwrap();
    for n in 1..=1000u64 {
        if n < 300 || n % 2 == 0 {
            narrow.reply(0, Report::Healthy);
            wide.reply(0, Report::Healthy);
        }
        narrow.operator(n * MS);
        wide.operator(n * MS);
        assert_eq!(narrow.cycle(n * MS), wide.cycle(n * MS), "cycle {n}");
        assert_eq!(narrow.reply_age_cycles(1), wide.reply_age_cycles(1).min(255));
        for (narrow, wide) in narrow.counters.values().zip(wide.counters.values()) {
            assert_eq!(narrow, wide.min(255));
        }
    }
    let mut servo = ServoWatchdog::<u8>::new(TICK_NS, Timeout::from_ns(TAU_NS).unwrap()).unwrap();
    for n in 1..=1000u64 {
        servo.fault();
        assert!(!servo.command(Command::Position(None)));
        assert_eq!((servo.counters.faults.get(), servo.counters.ignored.get()), (n.min(255), n.min(255)));
        assert_eq!(servo.tick(), Drive::Off);
    }
    // A time-out each time, and as many commands that were followed.
    let mut servo = ServoWatchdog::<u8>::new(TICK_NS, Timeout::from_ns(MS).unwrap()).unwrap();
    for n in 1..=300u64 {
        assert!(servo.command(Command::Stop) && servo.command(Command::Enable));
        assert!(servo.command(Command::Position(None)));
        while servo.tick() == Drive::Position {}
        assert_eq!((servo.counters.commands.get(), servo.counters.timeouts.get()), (n.min(255), n.min(255)));
        assert_eq!(servo.mode(), ServoMode::Timeout);
    }
    // Causes after the first.
    narrow.degrade(DegradeCause::Other(0));
    let first = narrow.state();
    let before = narrow.counters.later_causes.get();
    for n in 1..=300u64 {
        narrow.degrade(DegradeCause::Other(n as u8));
        assert_eq!((narrow.counters.later_causes.get(), narrow.state()), ((before + n).min(255), first));
    }
    // The longest age that a narrow counter can still tell.
    let timeouts = Timeouts { cycle_ns: 10_000, ..Timeouts::default() };
    let mut slow = DegradeChain::<1, u8>::new(timeouts, 255).unwrap();
    assert!(DegradeChain::<1, u8>::new(timeouts, 256).is_err());
    slow.start(0).unwrap();
    for n in 1..=600u64 {
        slow.operator(n * 10_000);
        let state = slow.cycle(n * 10_000);
        assert_eq!(state == ChainState::Running, n < 255, "cycle {n}: {state:?}");
    }
}

#[test]
fn t13_after_a_stop_the_first_setpoint_is_where_the_joint_is() {
    let mut random = fastrand::Rng::with_seed(13);
    for _ in 0..1000 {
        let measured: [f64; 3] = std::array::from_fn(|_| 6.0 * random.f64() - 3.0);
        let target: [f64; 3] = std::array::from_fn(|_| 6.0 * random.f64() - 3.0);
        let mut ramp = Ramp::from_measured(measured, 0.05).unwrap();
        let (first, _) = ramp.next(&target);
        assert_eq!(first, measured);
        let mut last = first;
        let steps = (0..1000).find(|_| {
            let (next, is_there) = ramp.next(&target);
            let length = next.iter().zip(last).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
            assert!(length <= 0.05 + 1e-12);
            last = next;
            is_there
        });
        assert!(steps.is_some() && last == target);
        assert_eq!(ramp.next(&[f64::NAN; 3]).0, target);
    }
    // And the chain asks for the order: stop, then start.
    let mut chain = chain::<2>();
    chain.degrade(DegradeCause::Other(1));
    assert!(chain.start(0).is_err());
    chain.stop();
    assert!(chain.start(0).is_ok());
}

/// Time-to-damp over random moments of a fault, and the choice of what to stop with. That the degraded path costs no
/// more than the normal one is counted in instructions by `bench/guard`, and its allocations in `allocation.rs`.
#[test]
fn t14_the_degraded_path_is_as_short_as_the_normal_one() {
    let mut random = fastrand::Rng::with_seed(14);
    let mut to_damp = Vec::new();
    for _ in 0..1000 {
        let mut robot = Robot::new();
        for _ in 0..random.u8(1..50) {
            robot.cycle(|_| false);
        }
        let at = random.usize(..12);
        robot.servos[at].fault();
        let start_ns = robot.now_ns;
        while (0..12).any(|n| n != at && robot.servos[n].drive() != Drive::Damp) {
            robot.cycle(|_| false);
        }
        to_damp.push((robot.now_ns - start_ns) / MS);
        // One pass over the servos per cycle, before and after the fault.
        let cycles = robot.chain.counters.cycles.get();
        robot.cycle(|_| false);
        assert_eq!(robot.chain.counters.cycles.get(), cycles + 1);
    }
    to_damp.sort_unstable();
    println!("time to damp: p50 {} ms, p99 {} ms, max {} ms", to_damp[500], to_damp[990], to_damp[999]);
    assert!(to_damp[999] <= 2);
    assert_eq!(StopMode::best(true, true, true, true), StopMode::Hold);
    assert_eq!(StopMode::best(true, false, true, true), StopMode::Damp);
    assert_eq!(StopMode::best(false, true, true, true), StopMode::Brake);
    assert_eq!(StopMode::best(true, true, true, false), StopMode::Off);
}
