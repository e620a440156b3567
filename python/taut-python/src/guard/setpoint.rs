//! The policies: clamp, scale, slow, interpolate, retarget, decimate, retry, keep alive. Axes that are not used stand still at 0.

use pyo3::{prelude::*, types::PyTuple};
use taut_guard::{
    ledger::Reason,
    setpoint::{self, JerkLimits, Limits, Policy, Source},
};

use super::{AXES, exactly, fate_word, numbers, reason, refused, tuple, word};

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Limiter>()?;
    module.add_class::<Shaped>()?;
    module.add_class::<Approach>()?;
    module.add_class::<Decimate>()?;
    module.add_class::<Playout>()?;
    module.add_class::<Sampled>()?;
    module.add_class::<Retarget>()?;
    module.add_class::<Retargeted>()?;
    module.add_class::<Retry>()?;
    module.add_class::<KeepAlive>()
}

/// `given` for the axes in use, `unused` for the rest.
fn padded(given: [f64; AXES], axes: usize, unused: f64) -> [f64; AXES] {
    std::array::from_fn(|axis| if axis < axes { given[axis] } else { unused })
}

/// "modified: jerk" of a repr.
fn fate(fate: &str, reason: Option<&str>) -> String {
    reason.map_or_else(|| fate.to_owned(), |reason| format!("{fate}: {reason}"))
}

/// A setpoint that may be sent, and what was done to it.
#[pyclass(module = "taut.guard", frozen)]
pub struct Shaped {
    shaped: setpoint::Shaped<AXES>,
    axes: usize,
}

#[pymethods]
impl Shaped {
    #[getter]
    fn setpoint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.shaped.setpoint[..self.axes])
    }

    /// "passed", "modified" or "held".
    #[getter]
    fn fate(&self) -> &'static str {
        fate_word(self.shaped.fate)
    }

    /// Why it was modified or held.
    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.shaped.fate.reason().map(Reason::name)
    }

    /// How far it was moved (Euclidean).
    #[getter]
    fn amount(&self) -> f64 {
        self.shaped.amount
    }

    fn __repr__(&self) -> String {
        let setpoint = &self.shaped.setpoint[..self.axes];
        format!("Shaped(setpoint={setpoint:?}, fate={}, amount={})", fate(self.fate(), self.reason()), self.amount())
    }
}

/// Keeps a stream of setpoints within limits, by the last one that was sent. Never rejects.
#[pyclass(module = "taut.guard")]
pub struct Limiter {
    limiter: setpoint::Limiter<AXES>,
    axes: usize,
}

#[pymethods]
impl Limiter {
    #[new]
    #[pyo3(signature = (
        measured, *, period_ns, position_min, position_max, velocity_max, margin = 0.0, policy = "clamp",
        position_reason = "position_limit"
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords")]
    fn new(
        measured: &Bound<'_, PyAny>,
        period_ns: u64,
        position_min: &Bound<'_, PyAny>,
        position_max: &Bound<'_, PyAny>,
        velocity_max: &Bound<'_, PyAny>,
        margin: f64,
        policy: &str,
        position_reason: &str,
    ) -> PyResult<Limiter> {
        let (measured, axes) = numbers("measured", measured)?;
        let limits = Limits {
            period_ns,
            position_min: padded(exactly("position_min", position_min, axes)?, axes, -1e9),
            position_max: padded(exactly("position_max", position_max, axes)?, axes, 1e9),
            margin,
            velocity_max: padded(exactly("velocity_max", velocity_max, axes)?, axes, 1.0),
            position_reason: reason(position_reason)?,
        };
        let policy = word("policy", policy, &[("clamp", Policy::Clamp), ("scale", Policy::Scale)])?;
        let limiter = setpoint::Limiter::new(limits, policy, measured).map_err(refused)?;
        Ok(Limiter { limiter, axes })
    }

    /// The setpoint to send for this target; it counts as sent. GuardError for a target that is not finite. Near a
    /// boundary give the share of the way that may be gone (Approach.share).
    #[pyo3(signature = (target, share = 1.0))]
    fn shape(&mut self, target: &Bound<'_, PyAny>, share: f64) -> PyResult<Shaped> {
        let target = exactly("target", target, self.axes)?;
        let shaped = self.limiter.shape_near(&target, share).map_err(refused)?;
        Ok(Shaped { shaped, axes: self.axes })
    }

    /// Goes on from where the robot is, after it moved without us.
    fn rehome(&mut self, measured: &Bound<'_, PyAny>) -> PyResult<()> {
        self.limiter.rehome(exactly("measured", measured, self.axes)?).map_err(refused)
    }

    /// What was sent last; also what to send when holding.
    #[getter]
    fn sent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.limiter.sent()[..self.axes])
    }

    /// Targets in a row that were no numbers.
    #[getter]
    fn malformed_in_row(&self) -> u32 {
        self.limiter.malformed_in_row()
    }
}

/// Slower and slower towards a boundary that only the caller can measure, held at it, always free to leave.
#[pyclass(module = "taut.guard")]
pub struct Approach(setpoint::Approach);

#[pymethods]
impl Approach {
    #[new]
    #[pyo3(signature = (*, stop_at, resume_at, slow_at))]
    fn new(stop_at: f64, resume_at: f64, slow_at: f64) -> PyResult<Approach> {
        setpoint::Approach::new(stop_at, resume_at, slow_at).map(Approach).map_err(refused)
    }

    /// The share of a step that may be gone, from `distance` now and `next`, where the whole step would lead.
    fn share(&mut self, distance: f64, next: f64) -> f64 {
        self.0.share(distance, next)
    }

    #[getter]
    fn is_held(&self) -> bool {
        self.0.is_held()
    }
}

/// Fewer setpoints on purpose: one in each period.
#[pyclass(module = "taut.guard")]
pub struct Decimate(setpoint::Decimate);

#[pymethods]
impl Decimate {
    #[new]
    fn new(period_ns: u64) -> PyResult<Decimate> {
        setpoint::Decimate::new(period_ns).map(Decimate).map_err(refused)
    }

    /// Whether to send this one; if not, it is superseded for "decimated".
    fn keeps(&mut self, produced_ns: i64) -> bool {
        self.0.keeps(produced_ns)
    }
}

/// A position to send now.
#[pyclass(module = "taut.guard", frozen)]
pub struct Sampled {
    sampled: setpoint::Sampled<AXES>,
    axes: usize,
}

#[pymethods]
impl Sampled {
    #[getter]
    fn setpoint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.sampled.setpoint[..self.axes])
    }

    /// "interpolated", "extrapolated", "slowing" or "resting".
    #[getter]
    fn source(&self) -> &'static str {
        match self.sampled.source {
            Source::Interpolated => "interpolated",
            Source::Extrapolated => "extrapolated",
            Source::Slowing => "slowing",
            Source::Resting => "resting",
        }
    }

    /// How far behind the stream's best transport the playout is.
    #[getter]
    fn added_delay_ns(&self) -> u64 {
        self.sampled.added_delay_ns
    }

    fn __repr__(&self) -> String {
        let setpoint = &self.sampled.setpoint[..self.axes];
        format!("Sampled(setpoint={setpoint:?}, source={}, added_delay_ns={})", self.source(), self.added_delay_ns())
    }
}

/// Plays a jittery stream out at the servo's own rate, a constant delay behind.
#[pyclass(module = "taut.guard")]
pub struct Playout {
    playout: setpoint::Playout<AXES>,
    axes: usize,
}

#[pymethods]
impl Playout {
    #[new]
    #[pyo3(signature = (axes, *, period_ns, jitter_ns, delay_most_ns))]
    fn new(axes: usize, period_ns: u64, jitter_ns: u64, delay_most_ns: u64) -> PyResult<Playout> {
        if !(1..=AXES).contains(&axes) {
            return Err(super::GuardError::new_err(format!("axes is {axes}; it must lie within 1 and {AXES}")));
        }
        let playout = setpoint::Playout::new(period_ns, jitter_ns, delay_most_ns).map_err(refused)?;
        Ok(Playout { playout, axes })
    }

    /// Takes a setpoint with its time of production (any clock) and of arrival. False: out of order or not finite.
    fn push(&mut self, produced_ns: i64, setpoint: &Bound<'_, PyAny>, arrival_ns: u64) -> PyResult<bool> {
        Ok(self.playout.push(produced_ns, exactly("setpoint", setpoint, self.axes)?, arrival_ns))
    }

    /// The position at `now_ns`; None before the first two setpoints are due.
    fn play(&mut self, now_ns: u64) -> Option<Sampled> {
        self.playout.play(now_ns).map(|sampled| Sampled { sampled, axes: self.axes })
    }
}

/// The state to send.
#[pyclass(module = "taut.guard", frozen)]
pub struct Retargeted {
    retargeted: setpoint::Retargeted<AXES>,
    axes: usize,
}

#[pymethods]
impl Retargeted {
    #[getter]
    fn position<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.retargeted.position[..self.axes])
    }

    #[getter]
    fn velocity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.retargeted.velocity[..self.axes])
    }

    #[getter]
    fn acceleration<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.retargeted.acceleration[..self.axes])
    }

    /// "passed" if the target itself was reached, else "modified".
    #[getter]
    fn fate(&self) -> &'static str {
        fate_word(self.retargeted.fate)
    }

    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.retargeted.fate.reason().map(Reason::name)
    }

    fn __repr__(&self) -> String {
        let setpoint::Retargeted { position, velocity, acceleration, .. } = &self.retargeted;
        let [position, velocity, acceleration] = [position, velocity, acceleration].map(|of| &of[..self.axes]);
        let fate = fate(self.fate(), self.reason());
        format!("Retargeted(position={position:?}, velocity={velocity:?}, acceleration={acceleration:?}, fate={fate})")
    }
}

/// Jerk-limited motion towards targets that come and change (Ruckig).
#[pyclass(module = "taut.guard", unsendable)]
pub struct Retarget {
    retarget: setpoint::Retarget<AXES>,
    axes: usize,
}

#[pymethods]
impl Retarget {
    #[new]
    #[pyo3(signature = (
        measured, *, period_ns, velocity_max, acceleration_max, jerk_max, position_min = None, position_max = None,
        margin = 0.0
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords")]
    fn new(
        measured: &Bound<'_, PyAny>,
        period_ns: u64,
        velocity_max: &Bound<'_, PyAny>,
        acceleration_max: &Bound<'_, PyAny>,
        jerk_max: &Bound<'_, PyAny>,
        position_min: Option<&Bound<'_, PyAny>>,
        position_max: Option<&Bound<'_, PyAny>>,
        margin: f64,
    ) -> PyResult<Retarget> {
        const FARTHEST: f64 = 1e9;
        let (measured, axes) = numbers("measured", measured)?;
        let position = |name: &str, given: Option<&Bound<'_, PyAny>>, unused: f64| match given {
            Some(given) => Ok(padded(exactly(name, given, axes)?, axes, unused)),
            None => Ok::<_, PyErr>([unused; AXES]),
        };
        let limits = JerkLimits {
            period_ns,
            position_min: position("position_min", position_min, -FARTHEST)?,
            position_max: position("position_max", position_max, FARTHEST)?,
            margin,
            velocity_max: padded(exactly("velocity_max", velocity_max, axes)?, axes, 1.0),
            acceleration_max: padded(exactly("acceleration_max", acceleration_max, axes)?, axes, 1.0),
            jerk_max: padded(exactly("jerk_max", jerk_max, axes)?, axes, 1.0),
        };
        let retarget = setpoint::Retarget::new(limits, measured).map_err(refused)?;
        Ok(Retarget { retarget, axes })
    }

    /// One period towards a target. Give its velocity: a target at rest each time means stop and go.
    #[pyo3(signature = (target, velocity = None))]
    fn step(&mut self, target: &Bound<'_, PyAny>, velocity: Option<&Bound<'_, PyAny>>) -> PyResult<Retargeted> {
        let target = exactly("target", target, self.axes)?;
        let velocity = velocity.map_or(Ok([0.0; AXES]), |given| exactly("velocity", given, self.axes))?;
        let retargeted = self.retarget.step(&target, &velocity).map_err(refused)?;
        Ok(Retargeted { retargeted, axes: self.axes })
    }
}

/// The budget of one setpoint's transmission: bounded by attempts and one period.
#[pyclass(module = "taut.guard")]
pub struct Retry(setpoint::Retry);

#[pymethods]
impl Retry {
    #[new]
    fn new(period_ns: u64, attempts_max: u32) -> PyResult<Retry> {
        setpoint::Retry::new(period_ns, attempts_max).map(Retry).map_err(refused)
    }

    /// Begins with a new setpoint; its first attempt is allowed.
    fn begin(&mut self, now_ns: u64) {
        self.0.begin(now_ns);
    }

    /// After a failed attempt: whether another is allowed. If not, the setpoint is lost for "transport".
    fn again(&mut self, now_ns: u64) -> bool {
        self.0.again(now_ns)
    }

    /// The most that an attempt made now may take: the time-out for the socket.
    fn left_ns(&self, now_ns: u64) -> u64 {
        self.0.left_ns(now_ns)
    }
}

/// Suppresses what does not change, for at most a third of the watchdog's time.
#[pyclass(module = "taut.guard")]
pub struct KeepAlive {
    keep_alive: setpoint::KeepAlive<AXES>,
    period_ns: u64,
}

#[pymethods]
impl KeepAlive {
    #[new]
    fn new(deadband: f64, watchdog_ns: u64, period_ns: u64) -> PyResult<KeepAlive> {
        let keep_alive = setpoint::KeepAlive::new(deadband, watchdog_ns).map_err(refused)?;
        Ok(KeepAlive { keep_alive, period_ns })
    }

    /// Whether to send; if not, the setpoint is superseded for "deadband". Call it at the rate of the stream.
    fn is_due(&mut self, setpoint: &Bound<'_, PyAny>, now_ns: u64) -> PyResult<bool> {
        Ok(self.keep_alive.is_due(&numbers("setpoint", setpoint)?.0, self.period_ns, now_ns))
    }
}
