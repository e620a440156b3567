//! The measured loop of `overhead.py`: 1 kHz by absolute deadlines, 12 stamps a cycle.
//! Prints one line of p50 and p99 in nanoseconds: wakeup latency, then cycle time.
//! overhead_loop [CYCLES [LOAD]]: LOAD times 50 µs of work in a cycle.

use std::hint::black_box;

use taut_stamp::stamp;

const PERIOD_NS: u64 = 1_000_000;
/// About 50 µs of arithmetic between the stamps, so that a cycle is one of a small controller.
const STEPS_PER_STAMP: u64 = 4_000;

fn main() {
    let number = |at: usize| std::env::args().nth(at).and_then(|word| word.parse().ok());
    let cycles = number(1).unwrap_or(2000usize);
    let steps = number(2).unwrap_or(1) as u64 * STEPS_PER_STAMP;
    taut_stamp::prepare_thread();
    let (mut wakeup, mut cycle) = (Vec::with_capacity(cycles), Vec::with_capacity(cycles));
    let mut deadline_ns = now_ns() + PERIOD_NS;
    for id in 1..=cycles as u64 {
        sleep_until(deadline_ns);
        let woken_ns = now_ns();
        work(id, steps);
        wakeup.push(woken_ns.saturating_sub(deadline_ns));
        cycle.push(now_ns() - woken_ns);
        deadline_ns += PERIOD_NS;
    }
    let [w50, w99] = quantiles(wakeup);
    let [c50, c99] = quantiles(cycle);
    println!("{w50} {w99} {c50} {c99}");
}

fn work(id: u64, steps: u64) {
    macro_rules! hops {
        ($($name:literal)*) => { $( stamp!($name, id); compute(steps); )* };
    }
    hops!("h1" "h2" "h3" "h4" "h5" "h6" "h7" "h8" "h9" "h10" "h11");
    stamp!("h12", id);
}

fn compute(steps: u64) {
    let mut value = 1u64;
    for step in 0..steps {
        value = black_box(value.wrapping_mul(6364136223846793005).wrapping_add(step));
    }
}

fn quantiles(mut values: Vec<u64>) -> [u64; 2] {
    values.sort_unstable();
    [50, 99].map(|percent| values[(values.len() - 1) * percent / 100])
}

fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes into a value that lives through it.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn sleep_until(deadline_ns: u64) {
    let time =
        libc::timespec { tv_sec: (deadline_ns / 1_000_000_000) as i64, tv_nsec: (deadline_ns % 1_000_000_000) as i64 };
    // SAFETY: reads a value that lives through the call; nothing is written without a remainder.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut()) };
}
