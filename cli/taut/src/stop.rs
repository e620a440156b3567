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
    // One that came between the two handlers set the signal alone.
    stop.flag.fetch_or(stop.signal().is_some(), Ordering::SeqCst);
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use signal_hook::consts::SIGUSR1;

    use super::*;

    /// A loop that waits for the flag would run on for ever.
    #[test]
    fn a_signal_that_comes_while_it_begins_to_listen_sets_the_flag() {
        // So that none ends the process.
        let came = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&came)).unwrap();
        // SAFETY: kill and getpid have no preconditions.
        let raise = || unsafe { libc::kill(libc::getpid(), SIGUSR1) };
        let until = |flag: &AtomicBool| {
            let began = Instant::now();
            while !flag.load(Ordering::SeqCst) && began.elapsed() < Duration::from_secs(60) {
                std::hint::spin_loop();
            }
            flag.load(Ordering::SeqCst)
        };
        let mut heard = 0;
        for round in 0..2000 {
            came.store(false, Ordering::SeqCst);
            let stop = std::thread::scope(|scope| {
                scope.spawn(|| {
                    (0..round % 200 * 8).for_each(|_| std::hint::spin_loop());
                    raise();
                });
                on(&[SIGUSR1]).unwrap()
            });
            assert!(until(&came), "no signal came");
            heard += u32::from(stop.signal().is_some());
            assert!(
                stop.signal().is_none() || until(&stop.flag),
                "the signal is known and the flag not set, round {round}"
            );
        }
        assert!(heard > 0, "no signal came after the handlers");
    }
}
