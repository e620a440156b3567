//! The speed guard: parameters, frames, verdicts, trips, and the heartbeat.

use std::collections::HashMap;

use pyo3::{
    prelude::*,
    types::{PyDict, PyFrozenSet, PyTuple},
};
use taut_guard::{self as guard, Channel, MAX_JOINTS, TimeBase, heartbeat};

use super::{exactly, numbers, refused, tuple, word};

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Parameters>()?;
    module.add_class::<Frame>()?;
    module.add_class::<Verdict>()?;
    module.add_class::<Sample>()?;
    module.add_class::<Trip>()?;
    module.add_class::<BlackBoxEntry>()?;
    module.add_class::<SpeedGuard>()?;
    module.add_function(wrap_pyfunction!(expected_answer, module)?)?;
    module.add_function(wrap_pyfunction!(record_frame, module)?)
}

/// Parameters of a speed guard; what is not given has the default of docs/reference/guard.md for this period.
#[pyclass(module = "taut.guard", frozen, eq)]
#[derive(Clone, Copy, PartialEq)]
pub struct Parameters(guard::Parameters);

const TIME_BASES: [(&str, TimeBase); 3] =
    [("source", TimeBase::Source), ("sequence", TimeBase::Sequence), ("arrival", TimeBase::Arrival)];

#[pymethods]
impl Parameters {
    #[new]
    #[pyo3(signature = (period_ns, *, tcp_limit_mm_s = None, joint_limits_rad_s = None, time_base = "source", **others))]
    fn new(
        period_ns: u64,
        tcp_limit_mm_s: Option<f64>,
        joint_limits_rad_s: Option<&Bound<'_, PyAny>>,
        time_base: &str,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Parameters> {
        let mut p = guard::Parameters::for_tcp(period_ns, 0.0);
        p.tcp_limit_mm_s = tcp_limit_mm_s;
        p.time_base = word("time_base", time_base, &TIME_BASES)?;
        if let Some(limits) = joint_limits_rad_s {
            (p.joint_limits_rad_s, p.joint_count) = numbers("joint_limits_rad_s", limits)?;
        }
        for (name, value) in others.into_iter().flatten() {
            set(&mut p, &name.extract::<String>()?, &value)?;
        }
        p.check().map_err(refused)?;
        Ok(Parameters(p))
    }

    /// Every parameter by its name.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let p = &self.0;
        let all = PyDict::new(py);
        all.set_item("period_ns", p.period_ns)?;
        all.set_item("tcp_limit_mm_s", p.tcp_limit_mm_s)?;
        all.set_item("joint_limits_rad_s", tuple(py, &p.joint_limits_rad_s[..p.joint_count])?)?;
        all.set_item("time_base", p.time_base.name())?;
        get(p, &all)?;
        Ok(all)
    }

    /// FNV-1a over the version and every parameter; stands in each trip.
    fn hash(&self) -> u64 {
        self.0.hash()
    }

    /// How long a steady overspeed of `ratio` × L takes to trip; None if no window can prove it.
    #[pyo3(signature = (ratio, lost = 0, delay_ns = 0))]
    fn detection_bound_ns(&self, ratio: f64, lost: u32, delay_ns: u64) -> Option<u64> {
        self.0.detection_bound_ns(ratio, lost, delay_ns)
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.as_dict(py)?.get_item(name)?.ok_or_else(|| pyo3::exceptions::PyAttributeError::new_err(name.to_owned()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Parameters(**{})", self.as_dict(py)?.repr()?))
    }
}

/// The parameters that are plain numbers, each by its name.
macro_rules! plain {
    ($($field:ident),* $(,)?) => {
        fn set(p: &mut guard::Parameters, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
            match name {
                $(stringify!($field) => p.$field = value.extract()?,)*
                _ => {
                    let text = format!("Parameters() got an unexpected keyword argument '{name}'");
                    return Err(pyo3::exceptions::PyTypeError::new_err(text));
                }
            }
            Ok(())
        }

        fn get(p: &guard::Parameters, all: &Bound<'_, PyDict>) -> PyResult<()> {
            $(all.set_item(stringify!($field), p.$field)?;)*
            Ok(())
        }
    };
}
plain!(
    sequence_modulus,
    source_is_monotonic,
    source_error_ns,
    source_error_max_ns,
    drift_ppm,
    tcp_error_mm,
    joint_error_rad,
    path_length,
    window_ns,
    trip_count,
    trip_of,
    stale_ns,
    age_max_ns,
    tick_ns,
    lost_max,
    transport_max_ns,
    arrival_jitter_ns,
    acceleration_max_mm_s2,
    reported_tolerance_mm_s,
);

/// One state frame of the robot, with when it was sampled and when it came.
#[pyclass(module = "taut.guard", frozen, eq)]
#[derive(Clone, Copy, PartialEq)]
pub struct Frame(guard::Frame);

#[pymethods]
impl Frame {
    #[new]
    #[pyo3(signature = (
        arrival_ns, *, sequence = 0, source_ns = None, tcp_mm = None, joints_rad = None, reported_mm_s = None,
        frames_in_read = 1
    ))]
    fn new(
        arrival_ns: u64,
        sequence: u32,
        source_ns: Option<i64>,
        tcp_mm: Option<&Bound<'_, PyAny>>,
        joints_rad: Option<&Bound<'_, PyAny>>,
        reported_mm_s: Option<f64>,
        frames_in_read: u16,
    ) -> PyResult<Frame> {
        let tcp_mm = tcp_mm.map_or(Ok([0.0; 3]), |given| {
            let all = exactly("tcp_mm", given, 3)?;
            Ok::<_, PyErr>([all[0], all[1], all[2]])
        })?;
        let joints_rad =
            joints_rad.map_or(Ok([0.0; MAX_JOINTS]), |given| Ok::<_, PyErr>(numbers("joints_rad", given)?.0))?;
        Ok(Frame(guard::Frame { sequence, source_ns, arrival_ns, tcp_mm, joints_rad, reported_mm_s, frames_in_read }))
    }

    #[getter]
    fn arrival_ns(&self) -> u64 {
        self.0.arrival_ns
    }

    #[getter]
    fn sequence(&self) -> u32 {
        self.0.sequence
    }

    #[getter]
    fn source_ns(&self) -> Option<i64> {
        self.0.source_ns
    }

    #[getter]
    fn tcp_mm<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.0.tcp_mm)
    }

    #[getter]
    fn joints_rad<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.0.joints_rad)
    }

    #[getter]
    fn reported_mm_s(&self) -> Option<f64> {
        self.0.reported_mm_s
    }

    #[getter]
    fn frames_in_read(&self) -> u16 {
        self.0.frames_in_read
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// The answer to one frame or tick.
#[pyclass(module = "taut.guard", frozen)]
pub struct Verdict(guard::Verdict);

#[pymethods]
impl Verdict {
    #[getter]
    fn state(&self) -> &'static str {
        self.0.state.name()
    }

    /// False: controlled stop.
    #[getter]
    fn enables_motion(&self) -> bool {
        self.0.state.enables_motion()
    }

    #[getter]
    fn is_latched(&self) -> bool {
        self.0.state.is_latched()
    }

    /// The largest v_lb / L of the pairs that end at the newest frame.
    #[getter]
    fn ratio(&self) -> f64 {
        self.0.ratio
    }

    /// What was noticed, by the names of docs/reference/guard.md in lower case.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        event_names(py, self.0.events)
    }

    #[getter]
    fn is_degraded(&self) -> bool {
        self.0.is_degraded
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

fn event_names(py: Python<'_>, events: guard::Events) -> PyResult<Bound<'_, PyFrozenSet>> {
    PyFrozenSet::new(py, events.names().map(str::to_lowercase))
}

/// One of the two samples that prove a speed.
#[pyclass(module = "taut.guard", frozen)]
pub struct Sample(guard::Sample);

#[pymethods]
impl Sample {
    #[getter]
    fn sequence(&self) -> i64 {
        self.0.sequence
    }

    #[getter]
    fn t_ns(&self) -> i64 {
        self.0.t_ns
    }

    #[getter]
    fn tcp_mm<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.0.tcp_mm)
    }

    #[getter]
    fn joints_rad<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.0.joints_rad)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A trip, as it was when it happened.
#[pyclass(module = "taut.guard", frozen)]
pub struct Trip(guard::Trip);

#[pymethods]
impl Trip {
    #[getter]
    fn state(&self) -> &'static str {
        self.0.state.name()
    }

    #[getter]
    fn cause(&self) -> &'static str {
        self.0.cause.name()
    }

    #[getter]
    fn at_ns(&self) -> u64 {
        self.0.at_ns
    }

    /// v_lb / L, or the reported speed by L; 0 where speed is not the cause.
    #[getter]
    fn ratio(&self) -> f64 {
        self.0.ratio
    }

    /// "tcp", "joint 0" …, or "reported".
    #[getter]
    fn channel(&self) -> String {
        match self.0.channel {
            Channel::Tcp => "tcp".to_owned(),
            Channel::Joint(joint) => format!("joint {joint}"),
            Channel::Reported => "reported".to_owned(),
        }
    }

    /// The two samples that prove it, the earlier first.
    #[getter]
    fn proof(&self) -> Option<(Sample, Sample)> {
        self.0.proof.map(|[earlier, later]| (Sample(earlier), Sample(later)))
    }

    #[getter]
    fn span_ns(&self) -> i64 {
        self.0.span_ns()
    }

    /// What time was made of: "source", "sequence", or, degraded, "arrival".
    #[getter]
    fn time_base(&self) -> &'static str {
        self.0.time_base.name()
    }

    #[getter]
    fn parameters_hash(&self) -> u64 {
        self.0.parameters_hash
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A frame of the black box and what the guard thought of it.
#[pyclass(module = "taut.guard", frozen)]
pub struct BlackBoxEntry(guard::BlackBoxEntry);

#[pymethods]
impl BlackBoxEntry {
    #[getter]
    fn frame(&self) -> Frame {
        Frame(self.0.frame)
    }

    #[getter]
    fn state(&self) -> &'static str {
        self.0.state.name()
    }

    #[getter]
    fn ratio(&self) -> f64 {
        self.0.ratio
    }

    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        event_names(py, self.0.events)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A speed guard that jitter cannot trip. Not a safety-rated function.
#[pyclass(module = "taut.guard")]
pub struct SpeedGuard(guard::SpeedGuard);

#[pymethods]
impl SpeedGuard {
    /// Tests itself with injected faults first; GuardError if it misses one.
    #[new]
    fn new(parameters: &Parameters) -> PyResult<SpeedGuard> {
        guard::SpeedGuard::new(parameters.0).map(SpeedGuard).map_err(refused)
    }

    /// Takes one frame.
    fn update(&mut self, frame: &Frame) -> Verdict {
        Verdict(self.0.update(&frame.0))
    }

    /// Lets time pass; call it at least every tick_ns.
    fn tick(&mut self, now_ns: u64) -> Verdict {
        Verdict(self.0.tick(now_ns))
    }

    /// Leaves a latched state; GuardError unless frames were fresh and slow for 100 ms.
    fn reset(&mut self, now_ns: u64) -> PyResult<()> {
        self.0.reset(now_ns).map_err(refused)
    }

    /// Counts a frame that the parser refused.
    fn count_bad_frame(&mut self) {
        self.0.count_bad_frame();
    }

    /// Counts octets that the parser skipped to find the next frame.
    fn count_parser_resync(&mut self, octets: u64) {
        self.0.count_parser_resync(octets);
    }

    /// Answers a question from outside, or None: this guard is not called, or it does not enable motion.
    fn answer(&self, challenge: u32, now_ns: u64) -> Option<u32> {
        heartbeat::answer(&self.0, challenge, now_ns)
    }

    #[getter]
    fn state(&self) -> &'static str {
        self.0.state().name()
    }

    #[getter]
    fn enables_motion(&self) -> bool {
        self.0.state().enables_motion()
    }

    /// The first trip since the last reset.
    #[getter]
    fn trip(&self) -> Option<Trip> {
        self.0.trip().copied().map(Trip)
    }

    /// The last 50 frames up to the first trip, oldest first.
    fn black_box(&self) -> Vec<BlackBoxEntry> {
        self.0.black_box().copied().map(BlackBoxEntry).collect()
    }

    /// What became of the frames, by name.
    #[getter]
    fn counters(&self) -> HashMap<&'static str, u64> {
        guard::AdmissionCounters::<u32>::NAMES.iter().copied().zip(self.0.counters().values()).collect()
    }

    #[getter]
    fn parameters(&self) -> Parameters {
        Parameters(*self.0.parameters())
    }

    #[getter]
    fn parameters_hash(&self) -> u64 {
        self.0.parameters_hash()
    }

    /// What time is made of now; worse than configured after a clock step or a wrong period.
    #[getter]
    fn time_base(&self) -> &'static str {
        self.0.time_base().name()
    }

    /// e as it stands, escalated or not.
    #[getter]
    fn source_error_ns(&self) -> u64 {
        self.0.source_error_ns()
    }

    #[getter]
    fn is_degraded(&self) -> bool {
        self.0.is_degraded()
    }

    /// A speed to show to people; it trips nothing.
    #[getter]
    fn display_speed_mm_s(&self) -> Option<f64> {
        self.0.display_speed_mm_s()
    }
}

/// What the asker of a heartbeat compares the answer with.
#[pyfunction]
fn expected_answer(parameters_hash: u64, challenge: u32) -> u32 {
    heartbeat::expected(parameters_hash, challenge)
}

/// Writes the frame to the recording, as values that `taut guard replay` reads; nothing without a session.
#[pyfunction]
#[pyo3(signature = (stream, frame, truth_mm_s = None))]
fn record_frame(stream: &str, frame: &Frame, truth_mm_s: Option<f64>) {
    const VALUE: u32 = 5;
    if taut_stamp::is_off() {
        return;
    }
    let fields = || truth_mm_s.map(|speed| ("truth_mm_s", speed)).into_iter().chain(frame.0.fields());
    // How many follow, so that a frame with a lost value is known as one.
    for (field, value) in [("fields", fields().count() as f64)].into_iter().chain(fields()) {
        if let Some(name) = taut_stamp::intern(&format!("{stream}.{field}")) {
            taut_stamp::write(name, VALUE, 0, value.to_bits());
        }
    }
}
