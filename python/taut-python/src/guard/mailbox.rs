//! The mailbox of depth 1 between two Python threads, with a bell for the one that waits.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use pyo3::{prelude::*, types::PyTuple};
use taut_guard::setpoint::{self, Put, Receiver, Sender};

use super::{AXES, GuardError, numbers, tuple};

/// Id, how many numbers, the numbers.
const WORDS: usize = AXES + 2;

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Mailbox>()
}

/// The latest setpoint wins; the overwritten one's id comes back to the sender.
#[pyclass(module = "taut.guard", frozen)]
pub struct Mailbox {
    // One lock for each end: two threads at the same end take turns.
    sender: Mutex<Sender<'static, WORDS>>,
    receiver: Mutex<Receiver<'static, WORDS>>,
    is_closed: Mutex<bool>,
    bell: Condvar,
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> Mailbox {
        // Both ends borrow it; 240 octets that live as long as the process.
        let (sender, receiver) = Box::leak(Box::new(setpoint::Mailbox::new())).split();
        let (sender, receiver) = (Mutex::new(sender), Mutex::new(receiver));
        Mailbox { sender, receiver, is_closed: Mutex::new(false), bell: Condvar::new() }
    }

    /// Puts the newest setpoint, of at most 8 numbers. Never waits. Returns the id of one that was overwritten unread
    /// ("superseded" to the ledger), or None.
    fn put(&self, id: u64, setpoint: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let (numbers, count) = numbers("setpoint", setpoint)?;
        let mut words = [0; WORDS];
        (words[0], words[1]) = (id, count as u64);
        for (word, number) in words[2..].iter_mut().zip(numbers) {
            *word = number.to_bits();
        }
        let before = self.sender.lock().unwrap_or_else(PoisonError::into_inner).put(&words);
        // Under the lock, or a receiver between its look and its sleep would miss the bell.
        drop(self.is_closed.lock().unwrap_or_else(PoisonError::into_inner));
        self.bell.notify_one();
        Ok(match before {
            Put::Fresh => None,
            Put::Superseded(words) => Some(words[0]),
        })
    }

    /// Takes the latest setpoint that was not taken, as (id, numbers). Waits for one up to `timeout_s`, without the
    /// GIL; None if none came, or the mailbox was closed.
    #[pyo3(signature = (timeout_s = 0.0))]
    fn take<'py>(&self, py: Python<'py>, timeout_s: f64) -> PyResult<Option<(u64, Bound<'py, PyTuple>)>> {
        let timeout = Duration::try_from_secs_f64(timeout_s)
            .map_err(|_| GuardError::new_err(format!("timeout_s is {timeout_s}; it must be a time, 0 or more")))?;
        let words = match self.try_take() {
            Some(words) => Some(words),
            None if timeout.is_zero() => None,
            None => py.detach(|| self.wait(timeout)),
        };
        let Some(words) = words else { return Ok(None) };
        let numbers: Vec<f64> = words[2..2 + words[1] as usize].iter().map(|word| f64::from_bits(*word)).collect();
        Ok(Some((words[0], tuple(py, &numbers)?)))
    }

    /// Wakes all waiting threads; from now on none waits.
    fn close(&self) {
        *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_all();
    }
}

impl Mailbox {
    fn try_take(&self) -> Option<[u64; WORDS]> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn wait(&self, timeout: Duration) -> Option<[u64; WORDS]> {
        let mut got = None;
        let is_closed = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.bell.wait_timeout_while(is_closed, timeout, |is_closed| {
            got = self.try_take();
            got.is_none() && !*is_closed
        });
        drop(waited);
        got
    }
}
