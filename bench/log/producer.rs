//! The call in the loop, by the size of the struct, beside the two copies that bound it: one into memory that was
//! just used, and one into memory that was used as long ago as the ring's slot was. All sizes in turn, a thousand times a second.

use std::time::{Duration, Instant};

use serde_json::json;
use taut_stamp::telemetry::RawChannel;

use crate::signal::quantiles;

const SIZES: [usize; 6] = [8, 50, 200, 500, 1000, 2000];
const RATE_HZ: f64 = 1000.0;
/// As many slots as the ring at this rate.
const SLOTS: usize = 2048;

struct Case {
    channel: RawChannel,
    values: Vec<f64>,
    warm: Vec<f64>,
    cold: Vec<f64>,
    calls: [Vec<u64>; 3],
}

pub fn run(seconds: f64) -> Result<(), Box<dyn std::error::Error>> {
    let mut cases: Vec<Case> = SIZES
        .iter()
        .map(|count| {
            let bytes = count * 8;
            let text = format!("type\tV\t{bytes}\nfield\tvalue\tfloat64\t{count}\t0\t\n");
            Case {
                channel: RawChannel::new(&format!("v{count}"), &text, bytes, RATE_HZ),
                values: (0..*count).map(|i| i as f64 * 0.37).collect(),
                warm: vec![1.0; *count],
                cold: vec![1.0; count * SLOTS],
                calls: Default::default(),
            }
        })
        .collect();
    let start = Instant::now();
    for cycle in 0..(seconds * RATE_HZ) as usize {
        std::thread::sleep(
            (start + Duration::from_secs_f64(cycle as f64 / RATE_HZ)).saturating_duration_since(Instant::now()),
        );
        for step in 0..cases.len() {
            let at = (cycle + step) % cases.len();
            let case = &mut cases[at];
            let count = case.values.len();
            case.values[cycle % count] += 1.0;
            // Which of the three comes first changes, too.
            for turn in 0..3 {
                let which = (turn + cycle / 6) % 3;
                let slot = cycle % SLOTS * count;
                let before = Instant::now();
                match which {
                    // SAFETY: as many bytes as the channel was made for.
                    0 => unsafe { case.channel.write(case.values.as_ptr().cast()) },
                    1 => case.warm.copy_from_slice(&case.values),
                    _ => case.cold[slot..slot + count].copy_from_slice(&case.values),
                }
                let took = before.elapsed().as_nanos() as u64;
                std::hint::black_box((&case.warm, &case.cold));
                case.calls[which].push(took);
            }
        }
    }
    let mut clock: Vec<u64> = Vec::new();
    for _ in 0..100_000 {
        let before = Instant::now();
        clock.push(before.elapsed().as_nanos() as u64);
    }
    let rows: Vec<_> = cases
        .into_iter()
        .map(|case| {
            let [write, warm, cold] = case.calls.map(|calls| (calls.len(), quantiles(calls)));
            json!({ "values": case.values.len(), "n": write.0, "lost": case.channel.lost(),
                    "write": write.1, "warm": warm.1, "cold": cold.1 })
        })
        .collect();
    println!("{}", json!({ "rows": rows, "clock": quantiles(clock) }));
    Ok(())
}
