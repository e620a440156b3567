//! Signals that end a loop in good order.

use std::sync::{Arc, atomic::AtomicBool};

use anyhow::{Context, Result};

/// A flag that any of these signals sets from now on, instead of ending the process.
///
/// # Errors
/// A signal that cannot be handled.
pub fn on(signals: &[i32]) -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals {
        signal_hook::flag::register(*signal, Arc::clone(&stop)).context("signal handler")?;
    }
    Ok(stop)
}
