//! The watchdog: a servo's end, a host's end over up to 32 servos, and the way back.

use std::collections::HashMap;

use pyo3::{prelude::*, types::PyTuple};
use taut_guard::watchdog::{
    self, Action, ChainState, Command, DegradeCause, Drive, Report, ServoMode, StopMode, Timeout,
};

use super::{AXES, GuardError, exactly, numbers, refused, tuple, word};

/// Servos that a chain has room for; those not used always answer.
const SERVOS: usize = 32;

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ServoWatchdog>()?;
    module.add_class::<Timeouts>()?;
    module.add_class::<DegradeChain>()?;
    module.add_class::<Ramp>()?;
    module.add_function(wrap_pyfunction!(damping_torque, module)?)?;
    module.add_function(wrap_pyfunction!(best_stop, module)?)
}

/// One servo's watchdog: a position command lives for τ, then the servo damps until it is stopped.
#[pyclass(module = "taut.guard")]
pub struct ServoWatchdog(watchdog::ServoWatchdog<u32>);

#[pymethods]
impl ServoWatchdog {
    #[new]
    #[pyo3(signature = (tick_ns, timeout_ns = 100_000_000))]
    fn new(tick_ns: u64, timeout_ns: u64) -> PyResult<ServoWatchdog> {
        let servo = Timeout::from_ns(timeout_ns).and_then(|timeout| watchdog::ServoWatchdog::new(tick_ns, timeout));
        servo.map(ServoWatchdog).map_err(refused)
    }

    /// "stop", "enable", "position" or "zero_velocity"; gives whether it was obeyed.
    fn command(&mut self, command: &str) -> PyResult<bool> {
        let known = [
            ("stop", Command::Stop),
            ("enable", Command::Enable),
            ("position", Command::Position(None)),
            ("zero_velocity", Command::ZeroVelocity),
        ];
        Ok(self.0.command(word("command", command, &known)?))
    }

    /// A position command with a time-out of its own; NaN asks for none, which is granted only with the flag.
    #[pyo3(signature = (timeout_s, unsafe_without_timeout = false))]
    fn position(&mut self, timeout_s: f64, unsafe_without_timeout: bool) -> PyResult<bool> {
        let timeout = Timeout::from_seconds(timeout_s, unsafe_without_timeout).map_err(refused)?;
        Ok(self.0.command(Command::Position(Some(timeout))))
    }

    /// One interrupt of the servo; gives what to drive: "off", "position" or "damp".
    fn tick(&mut self) -> &'static str {
        drive(self.0.tick())
    }

    /// The servo's own hard fault.
    fn fault(&mut self) {
        self.0.fault();
    }

    #[getter]
    fn mode(&self) -> &'static str {
        match self.0.mode() {
            ServoMode::Stopped => "stopped",
            ServoMode::Enabled => "enabled",
            ServoMode::Position => "position",
            ServoMode::ZeroVelocity => "zero_velocity",
            ServoMode::Timeout => "timeout",
            ServoMode::Fault => "fault",
        }
    }

    #[getter]
    fn drive(&self) -> &'static str {
        drive(self.0.drive())
    }

    /// What it saw, by name.
    #[getter]
    fn counters(&self) -> HashMap<&'static str, u64> {
        watchdog::ServoCounters::<u32>::NAMES.iter().copied().zip(self.0.counters.values()).collect()
    }
}

fn drive(drive: Drive) -> &'static str {
    match drive {
        Drive::Off => "off",
        Drive::Position => "position",
        Drive::Damp => "damp",
    }
}

/// The nested time-outs, from the cycle to the operator; GuardError if they do not nest.
#[pyclass(module = "taut.guard", frozen)]
pub struct Timeouts(watchdog::Timeouts);

#[pymethods]
impl Timeouts {
    #[new]
    #[pyo3(signature = (
        *, cycle_ns = 1_000_000, host_stale_ns = 20_000_000, servo_ns = 100_000_000, operator_ns = 1_000_000_000,
        arm_stop_and_gap_ns = None
    ))]
    fn new(
        cycle_ns: u64,
        host_stale_ns: u64,
        servo_ns: u64,
        operator_ns: u64,
        arm_stop_and_gap_ns: Option<(u64, u64)>,
    ) -> PyResult<Timeouts> {
        let timeouts = watchdog::Timeouts { cycle_ns, host_stale_ns, servo_ns, operator_ns, arm_stop_and_gap_ns };
        timeouts.check().map_err(refused)?;
        Ok(Timeouts(timeouts))
    }
}

/// The host's watchdog over several servos: the first fault sends all of them to zero velocity.
#[pyclass(module = "taut.guard")]
pub struct DegradeChain {
    chain: watchdog::DegradeChain<SERVOS, u32>,
    servos: usize,
}

#[pymethods]
impl DegradeChain {
    #[new]
    #[pyo3(signature = (servos, timeouts, reply_age_max = 5))]
    fn new(servos: usize, timeouts: &Timeouts, reply_age_max: u64) -> PyResult<DegradeChain> {
        if !(1..=SERVOS).contains(&servos) {
            return Err(GuardError::new_err(format!("servos is {servos}; it must lie within 1 and {SERVOS}")));
        }
        let chain = watchdog::DegradeChain::new(timeouts.0, reply_age_max).map_err(refused)?;
        Ok(DegradeChain { chain, servos })
    }

    /// Begins to run, from rest.
    fn start(&mut self, now_ns: u64) -> PyResult<()> {
        self.chain.start(now_ns).map_err(refused)
    }

    /// The only way out of a degraded state.
    fn stop(&mut self) {
        self.chain.stop();
    }

    /// Takes a servo's reply: "healthy", "timed_out" or "faulted".
    #[pyo3(signature = (servo, report = "healthy"))]
    fn reply(&mut self, servo: usize, report: &str) -> PyResult<()> {
        let known = [("healthy", Report::Healthy), ("timed_out", Report::TimedOut), ("faulted", Report::Faulted)];
        self.chain.reply(self.known(servo)?, word("report", report, &known)?);
        Ok(())
    }

    /// A signal of the operator arrived.
    fn operator(&mut self, now_ns: u64) {
        self.chain.operator(now_ns);
    }

    /// Tells of a cause that only the caller sees (tilt, battery), by a number of its own.
    fn degrade(&mut self, cause: u8) {
        self.chain.degrade(DegradeCause::Other(cause));
    }

    /// Ends a cycle; gives the state.
    fn cycle(&mut self, now_ns: u64) -> &'static str {
        (self.servos..SERVOS).for_each(|servo| self.chain.reply(servo, Report::Healthy));
        self.chain.cycle(now_ns);
        self.state()
    }

    /// What to send to a servo now: ("stop" | "follow" | "zero_velocity", factor on kd).
    fn action(&self, servo: usize) -> PyResult<(&'static str, f64)> {
        Ok(match self.chain.action(self.known(servo)?) {
            Action::Stop => ("stop", 1.0),
            Action::Follow => ("follow", 1.0),
            Action::ZeroVelocity { kd_scale } => ("zero_velocity", kd_scale),
        })
    }

    /// "stopped", "running" or "degraded".
    #[getter]
    fn state(&self) -> &'static str {
        match self.chain.state() {
            ChainState::Stopped => "stopped",
            ChainState::Running => "running",
            ChainState::Degraded(_) => "degraded",
        }
    }

    /// The first cause of a degraded state, with its servo or number.
    #[getter]
    fn cause(&self) -> Option<(&'static str, Option<u8>)> {
        let ChainState::Degraded(cause) = self.chain.state() else { return None };
        Some(match cause {
            DegradeCause::ServoFault(servo) => ("servo_fault", Some(servo)),
            DegradeCause::ServoTimeout(servo) => ("servo_timeout", Some(servo)),
            DegradeCause::NoReply(servo) => ("no_reply", Some(servo)),
            DegradeCause::HostStale => ("host_stale", None),
            DegradeCause::HostClock => ("host_clock", None),
            DegradeCause::OperatorLost => ("operator_lost", None),
            DegradeCause::Other(number) => ("other", Some(number)),
        })
    }

    /// What it saw, by name.
    #[getter]
    fn counters(&self) -> HashMap<&'static str, u64> {
        watchdog::ChainCounters::<u32>::NAMES.iter().copied().zip(self.chain.counters.values()).collect()
    }

    /// Cycles since a servo answered.
    fn reply_age_cycles(&self, servo: usize) -> PyResult<u64> {
        Ok(self.chain.reply_age_cycles(self.known(servo)?))
    }
}

impl DegradeChain {
    fn known(&self, servo: usize) -> PyResult<usize> {
        if servo < self.servos {
            return Ok(servo);
        }
        Err(GuardError::new_err(format!("servo is {servo}; this chain has {}, from 0", self.servos)))
    }
}

/// A walk from where the joints are to a target, in steps of limited length.
#[pyclass(module = "taut.guard")]
pub struct Ramp {
    ramp: watchdog::Ramp<AXES>,
    axes: usize,
}

#[pymethods]
impl Ramp {
    /// `step_max` bounds the Euclidean length of a step.
    #[new]
    fn new(measured: &Bound<'_, PyAny>, step_max: f64) -> PyResult<Ramp> {
        let (measured, axes) = numbers("measured", measured)?;
        let ramp = watchdog::Ramp::from_measured(measured, step_max).map_err(refused)?;
        Ok(Ramp { ramp, axes })
    }

    /// The next setpoint, and whether it is the target.
    fn next<'py>(&mut self, py: Python<'py>, target: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyTuple>, bool)> {
        let (setpoint, is_there) = self.ramp.next(&exactly("target", target, self.axes)?);
        Ok((tuple(py, &setpoint[..self.axes])?, is_there))
    }
}

/// −kd·ω, no more than `max_nm`; numbers that are not finite give no torque.
#[pyfunction]
fn damping_torque(kd_nm_s: f64, omega_rad_s: f64, max_nm: f64) -> f64 {
    watchdog::damping_torque(kd_nm_s, omega_rad_s, max_nm)
}

/// The best way to stop a joint that is left: "hold", "damp", "brake" or "off".
#[pyfunction]
#[pyo3(signature = (*, has_power, has_encoder, has_speed, has_driver))]
fn best_stop(has_power: bool, has_encoder: bool, has_speed: bool, has_driver: bool) -> &'static str {
    match StopMode::best(has_power, has_encoder, has_speed, has_driver) {
        StopMode::Hold => "hold",
        StopMode::Damp => "damp",
        StopMode::Brake => "brake",
        StopMode::Off => "off",
    }
}
