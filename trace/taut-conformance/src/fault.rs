//! `fault SESSION`: everything that a producer asks the kernel for, between two calls of `getppid`. The same as `c/fault.c`.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use taut_stamp::{
    attach, stamp, status,
    telemetry::{Channel, Telemetry},
};

const STAMPS: u64 = 50;
const SHORT_LIVES: u64 = 64;
const VALUES: u64 = 20;

static STAMPED: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, Telemetry)]
#[repr(C)]
struct State {
    /// rad
    position: f64,
}

fn stamp_some() {
    (0..STAMPS).for_each(|_| stamp!("fault", STAMPED.fetch_add(1, Ordering::Relaxed) + 1));
}

fn mark() {
    // SAFETY: getppid has no preconditions.
    unsafe { libc::getppid() };
}

fn main() {
    let session = std::env::args().nth(1).expect("SESSION");
    mark();
    attach(Path::new(&session));
    stamp_some();
    let mut log = Channel::new("state", 10.0);
    (0..VALUES).for_each(|_| log.write(&State { position: 1.5 }));
    mark();
    for _ in 0..SHORT_LIVES {
        std::thread::spawn(stamp_some).join().expect("a stamp does not panic");
    }
    let status = status();
    let (stamped, lost) = (STAMPED.load(Ordering::Relaxed), log.lost());
    println!("{stamped} {} {} {VALUES} {lost}", status.lost, u8::from(status.attached));
}
