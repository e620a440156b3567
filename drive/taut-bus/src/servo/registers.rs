//! The simulated servo's registers: what each reads and writes. Numbers and scalings are those of `moteus-protocol`.

use moteus_protocol::{
    CURRENT_REGISTER_MAP_VERSION, Mode, Register, Scaling, Value,
    scaling::{CURRENT, POSITION, POWER, PWM, TEMPERATURE, TIME, TORQUE, VELOCITY, VOLTAGE},
};

use super::motor::{Command, Motor};

/// Torque constant, Nm/A.
const NM_PER_A: f64 = 0.1;
const SUPPLY_V: f32 = 24.0;
/// Something that no firmware has: a simulation shows itself.
const MODEL: i32 = 0x7a07;

/// What a register tells.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    Scaled(f32, &'static Scaling),
    Whole(i32),
}

/// Why a register does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Unknown = 1,
    Value = 2,
}

/// Which word of the UUID this register compares with.
pub(super) fn uuid_mask(register: u16) -> Option<usize> {
    (Register::UuidMask1.address()..=Register::UuidMask4.address())
        .contains(&register)
        .then(|| usize::from(register - Register::UuidMask1.address()))
}

/// Whether it says where the servo is.
pub(super) fn place(register: u16) -> bool {
    matches!(Register::from_address(register), Some(Register::SetOutputNearest | Register::SetOutputExact))
}

/// A mode that the simulation has.
pub(super) fn mode(value: Value) -> Result<Mode, Refused> {
    match u8::try_from(value.to_i32()).ok().and_then(|mode| Mode::try_from(mode).ok()) {
        Some(mode @ (Mode::Stopped | Mode::Position | Mode::ZeroVelocity | Mode::Brake)) => Ok(mode),
        _ => Err(Refused::Value),
    }
}

/// Writes one register of a command.
pub(super) fn set(command: &mut Command, register: u16, value: Value) -> Result<(), Refused> {
    let of = |scaling: &Scaling| f64::from(value.to_f32(scaling));
    let finite = |x: f64| if x.is_finite() { Ok(x) } else { Err(Refused::Value) };
    let none_or = |x: f64, good: bool| if x.is_nan() || good { Ok(x) } else { Err(Refused::Value) };
    use Register as R;
    match Register::from_address(register).ok_or(Refused::Unknown)? {
        R::CommandPosition => command.position_rev = none_or(of(&POSITION), of(&POSITION).is_finite())?,
        R::CommandVelocity => command.velocity_rev_s = finite(of(&VELOCITY))?,
        R::CommandFeedforwardTorque => command.feedforward_nm = finite(of(&TORQUE))?,
        R::CommandKpScale => command.kp_scale = finite(of(&PWM))?,
        R::CommandKdScale => command.kd_scale = finite(of(&PWM))?,
        R::CommandPositionMaxTorque => command.max_torque_nm = none_or(of(&TORQUE), of(&TORQUE) >= 0.0)?,
        R::CommandStopPosition => command.stop_rev = none_or(of(&POSITION), of(&POSITION).is_finite())?,
        R::CommandTimeout => command.timeout_s = none_or(of(&TIME), (0.0..1e9).contains(&of(&TIME)))?,
        // No limits are simulated: only "none" is true.
        R::CommandVelocityLimit => drop(none_or(of(&VELOCITY), false)?),
        R::CommandAccelLimit => drop(none_or(of(&moteus_protocol::scaling::ACCELERATION), false)?),
        _ => return Err(Refused::Unknown),
    }
    Ok(())
}

/// What a register tells at `now_ns`.
pub(super) fn read(motor: &Motor, id: u8, uuid: &[i32; 4], register: u16, now_ns: u64) -> Result<Reading, Refused> {
    use Reading::{Scaled, Whole};
    use Register as R;
    let register = Register::from_address(register).ok_or(Refused::Unknown)?;
    let (torque, current) = (motor.torque_nm() as f32, (motor.torque_nm() / NM_PER_A) as f32);
    let watts = motor.torque_nm() * motor.velocity_rev_s() * std::f64::consts::TAU;
    Ok(match register {
        R::Mode => Whole(i32::from(u8::from(motor.mode()))),
        R::Position => Scaled(motor.position_rev() as f32, &POSITION),
        R::Velocity => Scaled(motor.velocity_rev_s() as f32, &VELOCITY),
        R::Torque => Scaled(torque, &TORQUE),
        R::QCurrent => Scaled(current, &CURRENT),
        R::DCurrent => Scaled(0.0, &CURRENT),
        R::AbsPosition => Scaled(motor.position_rev() as f32, &POSITION),
        R::Power => Scaled(watts as f32, &POWER),
        R::MotorTemperature | R::Temperature => Scaled(motor.temperature_c() as f32, &TEMPERATURE),
        R::TrajectoryComplete | R::UuidMaskCapable => Whole(1),
        R::HomeState | R::FirmwareVersion => Whole(0),
        R::Voltage => Scaled(SUPPLY_V, &VOLTAGE),
        R::Fault => Whole(i32::from(motor.fault())),
        R::ControlPosition => Scaled(motor.target_rev() as f32, &POSITION),
        R::ControlPositionError => Scaled((motor.target_rev() - motor.position_rev()) as f32, &POSITION),
        R::ControlTorque => Scaled(torque, &TORQUE),
        R::MillisecondCounter => Whole((now_ns / 1_000_000) as u32 as i32),
        R::ModelNumber => Whole(MODEL),
        R::RegisterMapVersion => Whole(i32::from(CURRENT_REGISTER_MAP_VERSION)),
        R::MultiplexId => Whole(i32::from(id)),
        R::SerialNumber1 | R::Uuid1 => Whole(uuid[0]),
        R::SerialNumber2 | R::Uuid2 => Whole(uuid[1]),
        R::SerialNumber3 | R::Uuid3 => Whole(uuid[2]),
        R::Uuid4 => Whole(uuid[3]),
        _ => return Err(Refused::Unknown),
    })
}
