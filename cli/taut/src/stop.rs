//! Signals that end a loop in good order.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use anyhow::{Context, Result};

use crate::exit::Done;

/// What a signal sets from now on, instead of ending the process.
pub struct Stop {
    /// Whether one came.
    pub flag: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

/// Listens to these signals.
///
/// # Errors
/// A signal that cannot be handled.
pub fn on(signals: &[i32]) -> Result<Stop> {
    let stop = Stop { flag: Arc::default(), signal: Arc::default() };
    for signal in signals {
        // In this order: whoever sees the flag finds the signal.
        signal_hook::flag::register_usize(*signal, Arc::clone(&stop.signal), *signal as usize)
            .context("signal handler")?;
        signal_hook::flag::register(*signal, Arc::clone(&stop.flag)).context("signal handler")?;
    }
    Ok(stop)
}

impl Stop {
    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<i32> {
        let signal = self.signal.load(Ordering::SeqCst) as i32;
        (signal != 0).then_some(signal)
    }

    /// How what was to be done by itself ended.
    pub fn done(&self) -> Done {
        self.signal().map_or(Done::Fine, Done::Interrupted)
    }
}
