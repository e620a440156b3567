//! `taut.guard`: the crate `taut-guard` for Python. Words (states, reasons, policies) are plain strings, the same that
//! stamps and reports carry; positions are any iterable of floats, numpy's arrays included, and come back as tuples.

mod ledger;
mod mailbox;
mod setpoint;
mod speed;
mod watchdog;

use pyo3::{
    create_exception,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use taut_guard::ledger::{Fate, Reason};

create_exception!(taut.guard, GuardError, PyValueError, "A parameter or a request was refused; says which and why.");

/// Axes, joints and words of a setpoint: as many as any of the wrapped types has room for.
const AXES: usize = taut_guard::MAX_JOINTS;

/// Adds the classes and functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("GuardError", module.py().get_type::<GuardError>())?;
    speed::add(module)?;
    ledger::add(module)?;
    setpoint::add(module)?;
    mailbox::add(module)?;
    watchdog::add(module)
}

fn refused(error: taut_guard::Error) -> PyErr {
    GuardError::new_err(error.to_string())
}

/// Numbers, at most [`AXES`] of them; those that are not given stay 0.
fn numbers(name: &str, values: &Bound<'_, PyAny>) -> PyResult<([f64; AXES], usize)> {
    let mut numbers = [0.0; AXES];
    let mut count = 0;
    let values =
        values.try_iter().map_err(|_| PyTypeError::new_err(format!("{name} must be an iterable of floats")))?;
    for value in values {
        let Some(number) = numbers.get_mut(count) else {
            return Err(GuardError::new_err(format!("{name} has more than {AXES} numbers, which is the most")));
        };
        *number =
            value?.extract().map_err(|_| PyTypeError::new_err(format!("{name} holds something that is no float")))?;
        count += 1;
    }
    Ok((numbers, count))
}

/// Exactly `count` numbers.
fn exactly(name: &str, values: &Bound<'_, PyAny>, count: usize) -> PyResult<[f64; AXES]> {
    let (numbers, given) = numbers(name, values)?;
    if given != count {
        return Err(GuardError::new_err(format!("{name} has {given} numbers; it must have {count}")));
    }
    Ok(numbers)
}

fn tuple<'py>(py: Python<'py>, numbers: &[f64]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, numbers)
}

/// A word among `known`, or an error that lists them.
fn word<T: Copy>(name: &str, given: &str, known: &[(&str, T)]) -> PyResult<T> {
    known.iter().find(|(word, _)| *word == given).map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        GuardError::new_err(format!("{name} is {given:?}; it must be one of {}", words.join(", ")))
    })
}

fn reason(given: &str) -> PyResult<Reason> {
    word("reason", given, &Reason::ALL.map(|reason| (reason.name(), reason)))
}

/// What became of a setpoint: "passed", or one of the others with its reason.
fn fate(given: &str, why: Option<&str>) -> PyResult<Fate> {
    type With = Option<fn(Reason) -> Fate>;
    let known: [(&str, With); 6] = [
        ("passed", None),
        ("modified", Some(Fate::Modified)),
        ("held", Some(Fate::Held)),
        ("superseded", Some(Fate::Superseded)),
        ("rejected", Some(Fate::Rejected)),
        ("lost", Some(Fate::Lost)),
    ];
    let with = word("fate", given, &known)?;
    match (with, why) {
        (None, None) => Ok(Fate::Passed),
        (Some(with), Some(why)) => Ok(with(reason(why)?)),
        (None, Some(_)) => Err(GuardError::new_err("a setpoint that passed has no reason")),
        (Some(_), None) => Err(GuardError::new_err(format!("a setpoint that was {given} needs a reason"))),
    }
}

fn fate_word(fate: Fate) -> &'static str {
    match fate {
        Fate::Passed => "passed",
        Fate::Modified(_) => "modified",
        Fate::Held(_) => "held",
        Fate::Superseded(_) => "superseded",
        Fate::Rejected(_) => "rejected",
        Fate::Lost(_) => "lost",
    }
}
