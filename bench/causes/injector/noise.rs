//! The background: a process that computes now and then, mostly on the other CPU, sometimes on the messages'.

use crate::{
    agent::fork,
    clock::{Progress, pin, sleep_ns},
    options::Options,
    random::Random,
};

const MEAN_PAUSE_NS: f64 = 30e6;
const BURST_NS: (u64, u64) = (50_000, 600_000);
/// Of the bursts, those on the messages' CPU.
const NEAR: f64 = 0.05;

/// Ends when dropped, or with this process.
pub struct Noise(libc::pid_t);

pub fn start(options: &Options, seed: u64) -> Option<Noise> {
    if options.quiet {
        return None;
    }
    Some(Noise(fork("noise", options.other_cpu, || {
        let mut random = Random::new(seed);
        loop {
            sleep_ns((-MEAN_PAUSE_NS * (1.0 - random.unit()).ln()) as u64);
            pin(if random.unit() < NEAR { options.cpu } else { options.other_cpu });
            Progress::default().work(random.between(BURST_NS.0, BURST_NS.1));
        }
    })))
}

impl Drop for Noise {
    fn drop(&mut self) {
        // SAFETY: our own child, not yet waited for.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}
