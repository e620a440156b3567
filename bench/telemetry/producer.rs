//! The call in the loop, by the size of the struct, beside what bounds it: a copy into memory that was just used, one into
//! memory that was used as long ago as the ring's slot was, and nothing but the clock's two reads. A loop for each size, a thousand cycles a
//! second, that sleeps until shortly before each cycle and then spins, as the bus engine's does.

use std::time::{Duration, Instant};

use serde_json::json;
use taut_stamp::telemetry::RawChannel;

use crate::signal::quantiles;

const SPIN: Duration = Duration::from_micros(150);

pub const ALL_SIZES: &[usize] = &[8, 50, 200, 500, 1000, 2000];
pub const RATE_HZ: f64 = 1000.0;

pub fn run(seconds: f64, sizes: &[usize], rate_hz: f64) -> Result<(), Box<dyn std::error::Error>> {
    // As a control loop runs, where the machine lets it.
    let priority = libc::sched_param { sched_priority: 50 };
    // SAFETY: sets the policy of this thread from a struct that lives meanwhile.
    let is_realtime = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) } == 0;
    let rows: Vec<_> = sizes.iter().map(|count| one(*count, seconds, rate_hz)).collect();
    println!("{}", json!({ "rows": rows, "is_realtime": is_realtime }));
    Ok(())
}

/// A loop that logs a struct of so many values.
fn one(count: usize, seconds: f64, rate_hz: f64) -> serde_json::Value {
    let bytes = count * 8;
    let text = format!("type\tV\t{bytes}\nfield\tvalue\tfloat64\t{count}\t0\t\n");
    let mut channel = RawChannel::new(&format!("v{count}"), &text, bytes, rate_hz);
    let mut values: Vec<f64> = (0..count).map(|i| i as f64 * 0.37).collect();
    // As many slots as the ring at this rate.
    let slots = ((2.0 * rate_hz) as usize).next_power_of_two();
    let (mut warm, mut cold) = (vec![1.0; count], vec![1.0; count * slots]);
    let mut calls: [Vec<u64>; 4] = Default::default();
    let start = Instant::now();
    for cycle in 0..(seconds * rate_hz) as usize {
        let due = start + Duration::from_secs_f64(cycle as f64 / rate_hz);
        std::thread::sleep(due.saturating_duration_since(Instant::now()).saturating_sub(SPIN));
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        values[cycle % count] += 1.0;
        // Which of the four comes first changes.
        for which in (0..4).map(|turn| (turn + cycle) % 4) {
            let slot = cycle % slots * count;
            let before = Instant::now();
            match which {
                // SAFETY: as many bytes as the channel was made for.
                0 => unsafe { channel.write(values.as_ptr().cast()) },
                1 => warm.copy_from_slice(&values),
                2 => cold[slot..slot + count].copy_from_slice(&values),
                _ => {}
            }
            let took = before.elapsed().as_nanos() as u64;
            std::hint::black_box((&warm, &cold));
            calls[which].push(took);
        }
    }
    let [write, warm, cold, nothing] = calls.map(|calls| (calls.len(), quantiles(calls)));
    json!({ "values": count, "n": write.0, "lost": channel.lost(),
            "write": write.1, "warm": warm.1, "cold": cold.1, "nothing": nothing.1 })
}
