//! Two thousand signals as a robot has them: a third hardly ever change, a third are sensors of 12 bits, a third are
//! smooth. And the clocks by which all contenders are measured.

use std::time::{Duration, Instant};

use taut_stamp::telemetry::Telemetry;

pub const VALUES: usize = 2000;
pub const RATE_HZ: f64 = 400.0;

/// All values of one cycle, as a loop has them: in the struct that is logged.
#[derive(Clone, Copy, Telemetry)]
#[repr(C)]
pub struct All {
    pub value: [f64; VALUES],
}

/// What makes them.
pub struct Signals {
    pub all: All,
    state: u64,
    cycle: u64,
}

impl Signals {
    pub fn new() -> Signals {
        Signals { all: All { value: [0.0; VALUES] }, state: 1, cycle: 0 }
    }

    /// The next cycle. Cheap: it is not what is measured.
    pub fn step(&mut self) {
        self.cycle += 1;
        let time_s = self.cycle as f64 / RATE_HZ;
        let (sine, cosine) = (6.0 * time_s).sin_cos();
        for (at, value) in self.all.value.iter_mut().enumerate() {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = (self.state >> 40) as f64 / f64::from(1 << 24) - 0.5;
            *value = match at % 3 {
                0 => at as f64,
                1 => ((sine * 1500.0 + noise * 6.0).round() + at as f64) / 2048.0,
                _ => sine * at as f64 + cosine,
            };
        }
    }
}

/// What came of a loop.
pub struct Paced {
    /// How long each call took, in ns.
    pub calls: Vec<u64>,
    /// CPU time that the loop's thread spent between the calls.
    pub between_ns: u64,
}

/// Runs `act` at the rate of the loop.
pub fn paced(seconds: f64, mut act: impl FnMut(&Signals)) -> Paced {
    let period = Duration::from_secs_f64(1.0 / RATE_HZ);
    let cycles = (seconds * RATE_HZ) as u32;
    let mut signals = Box::new(Signals::new());
    let mut calls = Vec::with_capacity(cycles as usize);
    let start = Instant::now();
    let (mut between_ns, mut called_ns) = (0, cpu_ns(Of::Thread));
    for cycle in 0..cycles {
        std::thread::sleep((start + period * cycle).saturating_duration_since(Instant::now()));
        signals.step();
        between_ns += cpu_ns(Of::Thread) - called_ns;
        let before = Instant::now();
        act(&signals);
        calls.push(before.elapsed().as_nanos() as u64);
        called_ns = cpu_ns(Of::Thread);
    }
    Paced { calls, between_ns }
}

/// p50, p99, p99.9, the largest.
pub fn quantiles(mut calls: Vec<u64>) -> [u64; 4] {
    calls.sort_unstable();
    let at = |q: f64| calls[((calls.len() as f64 * q) as usize).min(calls.len() - 1)];
    [at(0.5), at(0.99), at(0.999), at(1.0)]
}

/// Whose CPU time.
#[derive(Clone, Copy)]
pub enum Of {
    Process = libc::CLOCK_PROCESS_CPUTIME_ID as isize,
    Thread = libc::CLOCK_THREAD_CPUTIME_ID as isize,
}

/// CPU time of this process or thread.
pub fn cpu_ns(of: Of) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(of as libc::clockid_t, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
