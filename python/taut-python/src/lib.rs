//! The module `taut._taut`. The calls on a robot's hot path are METH_FASTCALL functions on the C API itself: PyO3's
//! argument handling would cost as much again as the stamp. Only this crate uses Python.

mod guard;
mod hot;
mod locks;
mod names;
mod recording;
mod telemetry;

use std::{ffi::OsString, path::PathBuf};

use pyo3::prelude::*;

/// Stamp messages from Python; see the package `taut`.
#[pymodule]
fn _taut(module: &Bound<'_, PyModule>) -> PyResult<()> {
    hot::add(module)?;
    guard::add(module)?;
    module.add_function(wrap_pyfunction!(locks::name_thread_lock, module)?)?;
    module.add_function(wrap_pyfunction!(locks::name_semaphore, module)?)?;
    module.add_function(wrap_pyfunction!(prepare_thread, module)?)?;
    module.add_function(wrap_pyfunction!(attach, module)?)?;
    module.add_function(wrap_pyfunction!(session, module)?)?;
    module.add_function(wrap_pyfunction!(status, module)?)?;
    module.add_class::<telemetry::TelemetryRing>()?;
    module.add_function(wrap_pyfunction!(recording::analyse, module)?)?;
    module.add_function(wrap_pyfunction!(recording::telemetry, module)?)?;
    module.add_class::<recording::Table>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

/// Take this thread's one slow step (claim and map its ring) now. True when the thread will stamp.
#[pyfunction]
fn prepare_thread() -> bool {
    taut_stamp::prepare_thread()
}

/// Use this session directory instead of TAUT_SESSION. True when attached.
#[pyfunction]
fn attach(session: PathBuf) -> bool {
    taut_stamp::attach(&session)
}

/// The session directory in use, or to be used; None without one.
#[pyfunction]
fn session() -> Option<OsString> {
    taut_stamp::session().map(PathBuf::into_os_string)
}

/// {"attached": bool, "lost": int}: whether stamps go anywhere, and how many were lost.
#[pyfunction]
fn status(py: Python<'_>) -> PyResult<Bound<'_, pyo3::types::PyDict>> {
    let status = taut_stamp::status();
    let dict = pyo3::types::PyDict::new(py);
    dict.set_item("attached", status.attached)?;
    dict.set_item("lost", status.lost)?;
    Ok(dict)
}
