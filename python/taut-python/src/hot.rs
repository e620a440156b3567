//! The functions on a robot's hot path.

use std::ffi::{CStr, c_int};

use pyo3::{
    ffi::{self, Py_ssize_t, PyObject},
    prelude::*,
};

use crate::names;

const STAMP: u32 = 1;
const BEGIN: u32 = 2;
const END: u32 = 3;
const OUTCOME: u32 = 4;
const VALUE: u32 = 5;
const LOCK_WAIT: u32 = 6;
const LOCK_ACQUIRED: u32 = 7;

type Fast = unsafe extern "C" fn(*mut PyObject, *mut *mut PyObject, Py_ssize_t) -> *mut PyObject;

/// name, function, signature and doc for help().
const FUNCTIONS: [(&CStr, Fast, &CStr); 9] = [
    (c"stamp", stamp, c"stamp(point, message_id, /)\n--\n\nThe message passed the point."),
    (
        c"stamp_at",
        stamp_at,
        c"stamp_at(point, message_id, intended_ns, /)\n--\n\nThe message passed the point and was due at `intended_ns`.",
    ),
    (c"drop", drop_message, c"drop(message_id, reason, /)\n--\n\nThe message ended for this reason, not applied."),
    (c"applied", applied, c"applied(message_id, /)\n--\n\nThe message reached its goal."),
    (c"begin", begin, c"begin(work, /)\n--\n\nWork that is not a message's begins."),
    (c"end", end, c"end(work, /)\n--\n\nThat work ends."),
    (c"value", value, c"value(name, value, /)\n--\n\nThe signal has this value now."),
    (c"lock_wait", lock_wait, c"lock_wait(lock, /)\n--\n\nAbout to take the lock of this name."),
    (c"lock_acquired", lock_acquired, c"lock_acquired(lock, /)\n--\n\nThe lock of this name is taken."),
];

/// Adds them to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for (name, function, doc) in FUNCTIONS {
        let definition = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: function },
            ml_flags: ffi::METH_FASTCALL as c_int,
            ml_doc: doc.as_ptr(),
        }));
        // SAFETY: the definition lives as long as the process; a null result carries a Python error.
        let object = unsafe {
            let object = ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), std::ptr::null_mut());
            Bound::from_owned_ptr_or_err(module.py(), object)?
        };
        module.add(name.to_str().unwrap_or_default(), object)?;
    }
    Ok(())
}

/// The arguments of a call, if there are exactly N.
///
/// # Safety
/// As CPython calls a METH_FASTCALL function: `arguments` holds `count` valid references.
#[inline(always)]
unsafe fn take<const N: usize>(
    arguments: *mut *mut PyObject,
    count: Py_ssize_t,
    usage: &CStr,
) -> Option<[*mut PyObject; N]> {
    if count != N as Py_ssize_t {
        // SAFETY: the caller holds the GIL (or is attached).
        unsafe { ffi::PyErr_SetString(ffi::PyExc_TypeError, usage.as_ptr()) };
        return None;
    }
    // SAFETY: of the caller.
    Some(unsafe { *arguments.cast::<[*mut PyObject; N]>() })
}

/// A message id or a time: an int from 0 to 2^64 − 1.
#[inline(always)]
unsafe fn message_id(object: *mut PyObject) -> Option<u64> {
    // SAFETY: of the caller of the function; the error value is told from a true one by PyErr_Occurred.
    unsafe {
        let id = ffi::PyLong_AsUnsignedLongLong(object);
        (id != u64::MAX || ffi::PyErr_Occurred().is_null()).then_some(id)
    }
}

/// None, as a new reference.
#[inline(always)]
unsafe fn none() -> *mut PyObject {
    // SAFETY: None always exists.
    unsafe {
        let none = ffi::Py_None();
        ffi::Py_INCREF(none);
        none
    }
}

/// Runs the body, which gives `None` when a Python error is set.
macro_rules! fast {
    ($name:ident, $usage:literal, |[$($argument:ident),+]| $body:block) => {
        unsafe extern "C" fn $name(_: *mut PyObject, arguments: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
            // SAFETY: CPython calls this with `count` valid arguments and the right to use its API.
            let done = unsafe {
                (|| -> Option<()> {
                    let [$($argument),+] = take(arguments, count, $usage)?;
                    $body
                    Some(())
                })()
            };
            match done {
                // SAFETY: as above.
                Some(()) => unsafe { none() },
                None => std::ptr::null_mut(),
            }
        }
    };
}

fast!(stamp, c"stamp(point: str, message_id: int)", |[point, id]| {
    if !taut_stamp::is_off() {
        taut_stamp::write(names::id(point)?, STAMP, message_id(id)?, 0);
    }
});
fast!(stamp_at, c"stamp_at(point: str, message_id: int, intended_ns: int)", |[point, id, intended_ns]| {
    if !taut_stamp::is_off() {
        taut_stamp::write(names::id(point)?, STAMP, message_id(id)?, message_id(intended_ns)?);
    }
});
fast!(drop_message, c"drop(message_id: int, reason: str)", |[id, reason]| {
    if !taut_stamp::is_off() {
        taut_stamp::write(0, OUTCOME, message_id(id)?, u64::from(names::id(reason)?));
    }
});
fast!(applied, c"applied(message_id: int)", |[id]| {
    if !taut_stamp::is_off() {
        let id = message_id(id)?;
        taut_stamp::applied(id);
    }
});
fast!(begin, c"begin(work: str)", |[work]| {
    if !taut_stamp::is_off() {
        taut_stamp::write(names::id(work)?, BEGIN, 0, 0);
    }
});
fast!(end, c"end(work: str)", |[work]| {
    if !taut_stamp::is_off() {
        taut_stamp::write(names::id(work)?, END, 0, 0);
    }
});
fast!(value, c"value(name: str, value: float)", |[name, number]| {
    if !taut_stamp::is_off() {
        let number_now = ffi::PyFloat_AsDouble(number);
        if number_now == -1.0 && !ffi::PyErr_Occurred().is_null() {
            return None;
        }
        taut_stamp::write(names::id(name)?, VALUE, 0, number_now.to_bits());
    }
});
fast!(lock_wait, c"lock_wait(lock: str)", |[lock]| {
    if !taut_stamp::is_off() {
        taut_stamp::write(names::id(lock)?, LOCK_WAIT, 0, 0);
    }
});
fast!(lock_acquired, c"lock_acquired(lock: str)", |[lock]| {
    if !taut_stamp::is_off() {
        taut_stamp::write(names::id(lock)?, LOCK_ACQUIRED, 0, 0);
    }
});
