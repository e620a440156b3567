//! The watchdog's functions for C: a servo's end, and a host's over up to 16 servos.

use super::{Handle, NO_HANDLE, fail, open, place};
use crate::watchdog::{
    Action, ChainState, Command, DegradeCause, DegradeChain, Drive, Ramp, Report, ServoWatchdog, StopMode, Timeout,
    Timeouts,
};

/// Servos that a chain from C has room for.
const SERVOS: usize = 16;
const AXES: usize = 8;

pub type ServoHandle = Handle<15>;
pub type ChainHandle = Handle<63>;
pub type RampHandle = Handle<15>;
type Servo = ServoWatchdog<u32>;

/// As many servos as are used; the rest always answer.
struct Chain {
    chain: DegradeChain<SERVOS, u32>,
    used: usize,
}

/// `taut_timeouts_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CTimeouts {
    cycle_ns: u64,
    host_stale_ns: u64,
    servo_ns: u64,
    operator_ns: u64,
    /// Both 0: no arm.
    arm_stop_ns: u64,
    arm_gap_ns: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_servo_init(
    handle: *mut ServoHandle,
    tick_ns: u64,
    timeout_ns: u64,
    message: *mut u8,
    capacity: usize,
) -> i32 {
    if handle.is_null() {
        return NO_HANDLE;
    }
    let servo = Timeout::from_ns(timeout_ns).and_then(|timeout| Servo::new(tick_ns, timeout));
    // SAFETY: valid, as the header asks.
    unsafe {
        (*handle).magic = 0;
        match servo {
            Ok(servo) => place(handle, servo),
            Err(error) => return fail(error, message, capacity),
        }
    }
    0
}

/// 1 if obeyed, 0 if ignored. Commands: 0 stop, 1 enable, 2 position, 3 zero velocity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_servo_command(handle: *mut ServoHandle, command: u32) -> i32 {
    // SAFETY: null or valid.
    let Some(servo) = (unsafe { open::<Servo, _>(handle) }) else { return NO_HANDLE };
    let command = match command {
        1 => Command::Enable,
        2 => Command::Position(None),
        3 => Command::ZeroVelocity,
        _ => Command::Stop,
    };
    servo.command(command).into()
}

/// A position command with a time-out of its own, in seconds; NaN (none at all) only with the flag.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_servo_position(
    handle: *mut ServoHandle,
    timeout_s: f64,
    unsafe_without_timeout: i32,
) -> i32 {
    // SAFETY: null or valid.
    let Some(servo) = (unsafe { open::<Servo, _>(handle) }) else { return NO_HANDLE };
    match Timeout::from_seconds(timeout_s, unsafe_without_timeout != 0) {
        Ok(timeout) => servo.command(Command::Position(Some(timeout))).into(),
        Err(error) => super::code(error),
    }
}

/// What to drive: 0 nothing, 1 position, 2 damping.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_servo_tick(handle: *mut ServoHandle) -> u32 {
    // SAFETY: null or valid.
    match unsafe { open::<Servo, _>(handle) }.map(|servo| servo.tick()) {
        Some(Drive::Position) => 1,
        Some(Drive::Damp) => 2,
        Some(Drive::Off) | None => 0,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_servo_fault(handle: *mut ServoHandle) {
    // SAFETY: null or valid.
    if let Some(servo) = unsafe { open::<Servo, _>(handle) } {
        servo.fault();
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_servo_mode(handle: *mut ServoHandle) -> i32 {
    // SAFETY: null or valid.
    unsafe { open::<Servo, _>(handle) }.map_or(NO_HANDLE, |servo| servo.mode() as i32)
}

#[unsafe(no_mangle)]
pub extern "C" fn taut_damping_torque_nm(kd_nm_s: f64, omega_rad_s: f64, max_nm: f64) -> f64 {
    crate::watchdog::damping_torque(kd_nm_s, omega_rad_s, max_nm)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_chain_init(
    handle: *mut ChainHandle,
    servos: usize,
    timeouts: *const CTimeouts,
    reply_age_max: u64,
    message: *mut u8,
    capacity: usize,
) -> i32 {
    // SAFETY: null or valid.
    unsafe {
        let (false, Some(c)) = (handle.is_null(), timeouts.as_ref()) else { return NO_HANDLE };
        (*handle).magic = 0;
        let timeouts = Timeouts {
            cycle_ns: c.cycle_ns,
            host_stale_ns: c.host_stale_ns,
            servo_ns: c.servo_ns,
            operator_ns: c.operator_ns,
            arm_stop_and_gap_ns: (c.arm_stop_ns != 0 || c.arm_gap_ns != 0).then_some((c.arm_stop_ns, c.arm_gap_ns)),
        };
        let counted = crate::error::within("servos", servos as f64, 1.0, SERVOS as f64);
        match counted.and_then(|()| DegradeChain::new(timeouts, reply_age_max)) {
            Ok(chain) => place(handle, Chain { chain, used: servos }),
            Err(error) => return fail(error, message, capacity),
        }
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_chain_start(handle: *mut ChainHandle, now_ns: u64) -> i32 {
    // SAFETY: null or valid.
    let Some(open) = (unsafe { open::<Chain, _>(handle) }) else { return NO_HANDLE };
    open.chain.start(now_ns).map_or_else(super::code, |()| 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_chain_stop(handle: *mut ChainHandle) {
    // SAFETY: null or valid.
    if let Some(open) = unsafe { open::<Chain, _>(handle) } {
        open.chain.stop();
    }
}

/// Reports: 0 healthy, 1 timed out, anything else faulted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_chain_reply(handle: *mut ChainHandle, servo: usize, report: u32) {
    // SAFETY: null or valid.
    let Some(open) = (unsafe { open::<Chain, _>(handle) }) else { return };
    if servo < open.used {
        open.chain.reply(
            servo,
            match report {
                0 => Report::Healthy,
                1 => Report::TimedOut,
                _ => Report::Faulted,
            },
        );
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_chain_operator(handle: *mut ChainHandle, now_ns: u64) {
    // SAFETY: null or valid.
    if let Some(open) = unsafe { open::<Chain, _>(handle) } {
        open.chain.operator(now_ns);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_chain_degrade(handle: *mut ChainHandle, cause: u8) {
    // SAFETY: null or valid.
    if let Some(open) = unsafe { open::<Chain, _>(handle) } {
        open.chain.degrade(DegradeCause::Other(cause));
    }
}

/// 0 stopped, 1 running, else 256 × the cause's kind + its number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_chain_cycle(handle: *mut ChainHandle, now_ns: u64) -> i32 {
    // SAFETY: null or valid.
    let Some(open) = (unsafe { open::<Chain, _>(handle) }) else { return NO_HANDLE };
    for unused in open.used..SERVOS {
        open.chain.reply(unused, Report::Healthy);
    }
    match open.chain.cycle(now_ns) {
        ChainState::Stopped => 0,
        ChainState::Running => 1,
        ChainState::Degraded(cause) => {
            let (kind, number) = match cause {
                DegradeCause::ServoFault(servo) => (1, servo),
                DegradeCause::ServoTimeout(servo) => (2, servo),
                DegradeCause::NoReply(servo) => (3, servo),
                DegradeCause::HostStale => (4, 0),
                DegradeCause::HostClock => (5, 0),
                DegradeCause::OperatorLost => (6, 0),
                DegradeCause::Other(number) => (7, number),
            };
            256 * kind + i32::from(number)
        }
    }
}

/// 0 stop, 1 follow, 2 zero velocity; the factor on kd through the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_chain_action(handle: *mut ChainHandle, servo: usize, kd_scale: *mut f64) -> u32 {
    // SAFETY: null or valid.
    let Some(open) = (unsafe { open::<Chain, _>(handle) }) else { return 0 };
    if servo >= open.used {
        return 0;
    }
    let (action, scale) = match open.chain.action(servo) {
        Action::Stop => (0, 0.0),
        Action::Follow => (1, 1.0),
        Action::ZeroVelocity { kd_scale } => (2, kd_scale),
    };
    // SAFETY: null or valid.
    if let Some(kd_scale) = unsafe { kd_scale.as_mut() } {
        *kd_scale = scale;
    }
    action
}

/// Counters: 0 commands, 1 ignored, 2 time-outs, 3 own faults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_servo_counter(handle: *mut ServoHandle, which: usize) -> u64 {
    // SAFETY: null or valid.
    unsafe { open::<Servo, _>(handle) }.and_then(|servo| servo.counters.values().nth(which)).unwrap_or(0)
}

/// Counters: 0 cycles, 1 missing replies, 2 causes after the first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_chain_counter(handle: *mut ChainHandle, which: usize) -> u64 {
    // SAFETY: null or valid.
    unsafe { open::<Chain, _>(handle) }.and_then(|open| open.chain.counters.values().nth(which)).unwrap_or(0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_chain_reply_age_cycles(handle: *mut ChainHandle, servo: usize) -> u64 {
    // SAFETY: null or valid.
    match unsafe { open::<Chain, _>(handle) } {
        Some(open) if servo < open.used => open.chain.reply_age_cycles(servo),
        _ => u64::MAX,
    }
}

/// 10 hold, 12 damp, 15 brake, 0 off.
#[unsafe(no_mangle)]
pub extern "C" fn taut_best_stop(has_power: i32, has_encoder: i32, has_speed: i32, has_driver: i32) -> u32 {
    StopMode::best(has_power != 0, has_encoder != 0, has_speed != 0, has_driver != 0) as u32
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_ramp_init(
    handle: *mut RampHandle,
    measured: *const [f64; AXES],
    step_max: f64,
    message: *mut u8,
    capacity: usize,
) -> i32 {
    // SAFETY: null or valid.
    unsafe {
        let (false, Some(measured)) = (handle.is_null(), measured.as_ref()) else { return NO_HANDLE };
        (*handle).magic = 0;
        match Ramp::<AXES>::from_measured(*measured, step_max) {
            Ok(ramp) => place(handle, ramp),
            Err(error) => return fail(error, message, capacity),
        }
    }
    0
}

/// The next setpoint; 1 if it is the target.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_ramp_next(
    handle: *mut RampHandle,
    target: *const [f64; AXES],
    setpoint: *mut [f64; AXES],
) -> i32 {
    // SAFETY: null or valid.
    unsafe {
        let (Some(ramp), Some(target), false) = (open::<Ramp<AXES>, _>(handle), target.as_ref(), setpoint.is_null())
        else {
            return NO_HANDLE;
        };
        let (next, is_there) = ramp.next(target);
        setpoint.write(next);
        is_there.into()
    }
}
