//! Python strings → name ids. A string literal is the same object at each call, so the object's
//! address finds the id; the reference held here keeps that address from becoming another string.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicPtr, AtomicU32, Ordering},
    },
};

use pyo3::ffi::{self, PyObject};

/// Places of the table; far more than a robot has points.
const PLACES: usize = 1024;
/// Places where an object may be, from the one that its address says: with fifty names some two share that one.
const PROBES: usize = 4;
/// Names remembered by content, twice the protocol's table: made at run time without end they must not fill the memory.
const MOST_NAMES: usize = 4096;
/// Ids by content for strings made at run time, so that they do not grow the table of objects.
static BY_CONTENT: Mutex<Option<HashMap<String, u32>>> = Mutex::new(None);

struct Place {
    object: AtomicPtr<PyObject>,
    id: AtomicU32,
}

static TABLE: [Place; PLACES] =
    [const { Place { object: AtomicPtr::new(std::ptr::null_mut()), id: AtomicU32::new(0) } }; PLACES];

/// The id of a str object; `None` when it is no str (a Python error is then set).
///
/// # Safety
/// `object` is a valid reference and the calling thread may use the C API.
#[inline]
pub unsafe fn id(object: *mut PyObject) -> Option<u32> {
    for place in places(object) {
        // Acquire pairs with the release in `look_up`: whoever sees the object sees its id.
        if place.object.load(Ordering::Acquire) == object {
            return Some(place.id.load(Ordering::Relaxed));
        }
    }
    // SAFETY: of the caller.
    unsafe { look_up(object) }
}

#[inline(always)]
fn places(object: *mut PyObject) -> impl Iterator<Item = &'static Place> {
    (0..PROBES).map(move |step| &TABLE[((object as usize >> 4) + step) % PLACES])
}

#[cold]
unsafe fn look_up(object: *mut PyObject) -> Option<u32> {
    let mut length = 0;
    // SAFETY: of the caller; the returned bytes live as long as the object.
    let text = unsafe {
        if ffi::PyUnicode_Check(object) == 0 {
            let message = c"the name must be a str";
            ffi::PyErr_SetString(ffi::PyExc_TypeError, message.as_ptr());
            return None;
        }
        let bytes = ffi::PyUnicode_AsUTF8AndSize(object, &mut length);
        if bytes.is_null() {
            return None;
        }
        std::str::from_utf8_unchecked(std::slice::from_raw_parts(bytes.cast(), length as usize))
    };
    let mut by_content = BY_CONTENT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = by_content.get_or_insert_default();
    let id = match known.get(text) {
        Some(id) => *id,
        None => {
            // Without a session, ask again next time.
            let Some(id) = taut_stamp::intern(text) else { return Some(0) };
            if known.len() < MOST_NAMES {
                known.insert(text.to_owned(), id);
            }
            id
        }
    };
    // The first object at a place keeps it: a place is written once, under the mutex, so readers need no lock.
    if let Some(place) = places(object).find(|place| place.object.load(Ordering::Relaxed).is_null()) {
        place.id.store(id, Ordering::Relaxed);
        // SAFETY: of the caller; the reference is held for the life of the process.
        unsafe { ffi::Py_INCREF(object) };
        place.object.store(object, Ordering::Release);
    }
    Some(id)
}
