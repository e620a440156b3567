//! Where a Python lock's futex word is. Which locks these two may be asked about is known to
//! `taut/locks.py`, which is their only caller.

use pyo3::{exceptions::PyTypeError, prelude::*};

/// glibc's and musl's `sem_t` on 64-bit machines; its first word is the one that waiters sleep on.
const SEMAPHORE_BYTES: u64 = 32;

/// Names a `_thread.lock` or `_thread.RLock` of CPython 3.11 to 3.13 with the GIL, built with semaphores.
/// False when it has none.
#[pyfunction]
pub fn name_thread_lock(name: &str, lock: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module = lock.py().import("_thread")?;
    // Exactly these: another type's memory means another thing.
    let ours = lock.get_type();
    if !ours.is(&module.getattr("LockType")?) && !ours.is(&module.getattr("RLock")?) {
        return Err(PyTypeError::new_err(format!("{ours} is neither _thread.lock nor _thread.RLock")));
    }
    // Modules/_threadmodule.c: lockobject and rlockobject begin { PyObject_HEAD; PyThread_type_lock …; and
    // Python/thread_pthread.h: with semaphores a PyThread_type_lock points to a sem_t from malloc.
    // SAFETY: the type was checked, and the caller has checked version and build, so that a pointer follows the header.
    let semaphore = unsafe { lock.as_ptr().add(1).cast::<usize>().read() };
    Ok(semaphore != 0 && name_semaphore(name, semaphore as u64))
}

/// Names the `sem_t` at this address. True when stamps go to a session.
#[pyfunction]
pub fn name_semaphore(name: &str, address: u64) -> bool {
    if !taut_stamp::status().attached {
        return false;
    }
    taut_stamp::name_lock_at(name, address, SEMAPHORE_BYTES);
    true
}
