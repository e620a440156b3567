//! One line "MODE COUNT" in, one line of ns out, as `../batch.h`. Arguments: a file for the events.

use std::{fs::File, hint::black_box, io::BufWriter, sync::Mutex};

use tracing::dispatcher::{Dispatch, with_default};
use tracing_subscriber::fmt;

fn main() {
    let path = std::env::args().nth(1).expect("usage: tracing-peer FILE");
    let writer = || Mutex::new(BufWriter::with_capacity(1 << 20, File::create(&path).expect("a file for the events")));
    let json = Dispatch::new(fmt().json().with_writer(writer()).finish());
    let plain = Dispatch::new(fmt().with_ansi(false).with_writer(writer()).finish());
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let (mode, count) = line.split_once(' ').expect("MODE COUNT");
        let count: u64 = count.parse().expect("a count");
        let begin_ns = thread_ns();
        match mode {
            "stamp" => {
                for id in 0..count {
                    taut_stamp::stamp!("control.received", id);
                    each_time();
                }
            }
            "json" => with_default(&json, || events(count)),
            _ => with_default(&plain, || events(count)),
        }
        println!("{:.4}", (thread_ns() - begin_ns) as f64 / count as f64);
    }
}

/// EACH_TIME of `../batch.h`, the same: keeps the compiler from merging or hoisting what is measured.
#[inline(always)]
fn each_time() {
    // SAFETY: no instruction at all; the compiler must believe that it reads and writes memory.
    unsafe { core::arch::asm!("") };
}

fn events(count: u64) {
    for id in 0..count {
        tracing::info!(point = "control.received", message_id = black_box(id));
    }
}

fn thread_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live local.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
