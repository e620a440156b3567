//! The Rust producer's cost, in batches beside TSC reads. Prints as native.c does.

use std::{hint::black_box, time::Duration};

use taut_clock::Counter;
use taut_stamp::{prepare_thread, stamp};

const CALLS: u64 = 20_000;
const BATCHES: usize = 60;

fn cpu_ns() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

fn batch(mut call: impl FnMut(u64)) -> f64 {
    let start = cpu_ns();
    (0..CALLS).for_each(&mut call);
    (cpu_ns() - start) / CALLS as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    prepare_thread();
    let (mut tsc, mut on) = (Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        tsc.push(batch(|_| drop(black_box(Counter::Tsc.now()))));
        on.push(batch(|id| stamp!("bench.rust", id)));
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("tsc {:.2} {BATCHES}", median(tsc));
    println!("rust {:.2} {BATCHES}", median(on));
    println!("lost {}", taut_stamp::status().lost);
}
