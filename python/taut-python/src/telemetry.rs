//! The ring behind `taut.telemetry.Channel`. The row that is written stays the same memory, so its buffer is
//! taken once: what is left of a write is a call without arguments and a copy.

use std::sync::Mutex;

use pyo3::{buffer::PyBuffer, exceptions::PyRuntimeError, prelude::*};
use taut_stamp::telemetry::RawChannel;

/// One channel's ring, and the row that goes into it.
#[pyclass(frozen)]
pub struct TelemetryRing {
    channel: Mutex<RawChannel>,
    row: PyBuffer<u8>,
}

#[pymethods]
impl TelemetryRing {
    #[new]
    fn new(name: &str, description: &str, row: PyBuffer<u8>, rate_hz: f64) -> TelemetryRing {
        let channel = RawChannel::new(name, description, row.len_bytes(), rate_hz);
        TelemetryRing { channel: Mutex::new(channel), row }
    }

    /// Writes the row as it is now.
    fn write(&self) -> PyResult<()> {
        // Never waits: two threads that write one channel at a time are a mistake of the program.
        let Ok(mut channel) = self.channel.try_lock() else {
            return Err(PyRuntimeError::new_err("two threads write one telemetry channel; give each its own"));
        };
        // SAFETY: the buffer is held, contiguous and as long as the channel's value. Another thread that changes the
        // row meanwhile gets a value that is half old and half new, as with numpy itself.
        unsafe { channel.write(self.row.buf_ptr().cast()) };
        Ok(())
    }

    /// Values lost: the ring full, or none to be had.
    fn lost(&self) -> u64 {
        self.channel.try_lock().map_or(0, |channel| channel.lost())
    }
}
