//! The servo's end: a position command lives for τ; then the servo damps, and stays so until it is stopped. The semantics
//! are those of moteus since October 2019 (mode 12), with an explicit enable added after each stop.

use crate::{
    counters::{Width, counters},
    error::{Error, within},
};

/// What the servo does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum ServoMode {
    /// Unpowered, at rest.
    #[default]
    Stopped = 0,
    /// Stopped, and allowed to take a position command.
    Enabled = 1,
    /// Follows position commands; the only mode that the watchdog times.
    Position = 2,
    /// Damps because the host asked for it; stays so if the host dies.
    ZeroVelocity = 3,
    /// Damps because the commands stopped. Latched: only a stop leaves it.
    Timeout = 4,
    /// Unpowered because of a fault of its own: it cannot damp. Latched.
    Fault = 5,
}

/// What the power stage is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// No torque.
    Off,
    /// Position control.
    Position,
    /// [`damping_torque`], without position term or feed-forward.
    Damp,
}

/// How long a position command lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(Option<u64>);

impl Timeout {
    /// τ in nanoseconds, 1 ms to 10 s.
    ///
    /// # Errors
    /// Out of range.
    pub fn from_ns(ns: u64) -> Result<Timeout, Error> {
        within("timeout_ns", ns as f64, 1e6, 1e10)?;
        Ok(Timeout(Some(ns)))
    }

    /// As it stands in a frame: seconds, where NaN asks for no time-out at all. That is granted only with
    /// `unsafe_without_timeout`.
    ///
    /// # Errors
    /// Out of range, or NaN without the flag.
    pub fn from_seconds(seconds: f64, unsafe_without_timeout: bool) -> Result<Timeout, Error> {
        if seconds.is_nan() && unsafe_without_timeout {
            return Ok(Timeout(None));
        }
        within("timeout_s", seconds, 1e-3, 10.0)?;
        Timeout::from_ns((seconds * 1e9) as u64)
    }
}

/// A command to a servo.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Leaves every mode.
    Stop,
    /// Allows position commands after a stop.
    Enable,
    /// A setpoint, with its own time-out or the servo's.
    Position(Option<Timeout>),
    /// Damp until told otherwise.
    ZeroVelocity,
}

counters!(
    /// What the servo's watchdog saw.
    ServoCounters {
        /// Position commands that were followed.
        commands,
        /// Commands that came after the time-out or a fault, or without an enable, and were ignored.
        ignored,
        /// Time-outs.
        timeouts,
        /// Own faults.
        faults,
    }
);

/// One servo's watchdog. Time is counted in the ticks of the servo's own interrupt.
#[derive(Clone, Copy, Debug)]
pub struct ServoWatchdog<W: Width = u32> {
    tick_ns: u64,
    default_ticks: u64,
    /// `None`: without time-out.
    left: Option<u64>,
    mode: ServoMode,
    /// What it saw.
    pub counters: ServoCounters<W>,
}

impl<W: Width> ServoWatchdog<W> {
    /// A stopped servo whose interrupt comes every `tick_ns`, with the default τ.
    ///
    /// # Errors
    /// A tick outside 1 µs to 10 ms.
    pub fn new(tick_ns: u64, default_timeout: Timeout) -> Result<ServoWatchdog<W>, Error> {
        within("tick_ns", tick_ns as f64, 1e3, 1e7)?;
        let mut servo = ServoWatchdog {
            tick_ns,
            default_ticks: 0,
            left: None,
            mode: ServoMode::Stopped,
            counters: ServoCounters::default(),
        };
        servo.default_ticks =
            servo.ticks(default_timeout).ok_or(Error::Contradiction("the default time-out cannot be off"))?;
        Ok(servo)
    }

    /// Takes a command; gives whether it was obeyed.
    pub fn command(&mut self, command: Command) -> bool {
        use ServoMode::{Enabled, Fault, Position, Stopped, Timeout, ZeroVelocity};
        let obeyed = match (command, self.mode) {
            (Command::Stop, _) => Some(Stopped),
            (_, Timeout | Fault) => None,
            (Command::Enable, Stopped | Enabled) => Some(Enabled),
            (Command::Position(_), Enabled | Position | ZeroVelocity) => Some(Position),
            (Command::ZeroVelocity, _) => Some(ZeroVelocity),
            _ => None,
        };
        let Some(mode) = obeyed else {
            self.counters.ignored.bump();
            return false;
        };
        self.mode = mode;
        if let Command::Position(timeout) = command {
            self.left = timeout.map_or(Some(self.default_ticks), |timeout| self.ticks(timeout));
            self.counters.commands.bump();
        }
        true
    }

    /// One interrupt of the servo. Bounded: a decrement and a comparison.
    pub fn tick(&mut self) -> Drive {
        if self.mode == ServoMode::Position
            && let Some(left) = &mut self.left
        {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.mode = ServoMode::Timeout;
                self.counters.timeouts.bump();
            }
        }
        self.drive()
    }

    /// The servo's own hard fault: temperature, driver, encoder.
    pub fn fault(&mut self) {
        self.mode = ServoMode::Fault;
        self.counters.faults.bump();
    }

    /// What it does now.
    pub fn mode(&self) -> ServoMode {
        self.mode
    }

    /// What the power stage does now.
    pub fn drive(&self) -> Drive {
        match self.mode {
            ServoMode::Stopped | ServoMode::Enabled | ServoMode::Fault => Drive::Off,
            ServoMode::Position => Drive::Position,
            ServoMode::ZeroVelocity | ServoMode::Timeout => Drive::Damp,
        }
    }

    /// A command comes between two interrupts, so one more than τ/tick: never early, at most one tick late.
    fn ticks(&self, timeout: Timeout) -> Option<u64> {
        timeout.0.map(|ns| ns.div_ceil(self.tick_ns) + 1)
    }
}

/// The torque of a damping servo: −kd·ω, no more than `max_nm`. Numbers that are not finite give no torque.
pub fn damping_torque(kd_nm_s: f64, omega_rad_s: f64, max_nm: f64) -> f64 {
    let torque = -kd_nm_s * omega_rad_s;
    if torque.is_finite() && max_nm >= 0.0 { torque.clamp(-max_nm, max_nm) } else { 0.0 }
}

/// How to stop a joint, best first. The numbers are those of moteus's `timeout_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StopMode {
    /// Decelerate and hold.
    Hold = 10,
    /// Damp.
    Damp = 12,
    /// Short the phases; works without firmware.
    Brake = 15,
    /// Nothing is left.
    Off = 0,
}

impl StopMode {
    /// The best that is left: hold needs power and an encoder, damping power and a speed estimate, the brake a driver.
    pub fn best(has_power: bool, has_encoder: bool, has_speed: bool, has_driver: bool) -> StopMode {
        match (has_power && has_driver, has_encoder, has_speed, has_driver) {
            (true, true, true, _) => StopMode::Hold,
            (true, _, true, _) => StopMode::Damp,
            (_, _, _, true) => StopMode::Brake,
            _ => StopMode::Off,
        }
    }
}
