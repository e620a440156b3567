//! Are the statistics of comparison what they say? Draws data whose truth is known, and counts. Prints a page.

mod coverage;
mod data;
mod forecasts;
mod gates;
mod page;

use std::thread;

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

/// Every random number of the page comes from here.
const SEED: u64 = 6;
/// Pieces of a simulation with a seed each, so that results do not depend on the number of threads.
const CHUNKS: usize = 16;

fn main() {
    let less = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(1);
    page::head(less);
    let mut limits = coverage::section(less);
    limits.extend(gates::section(less));
    forecasts::section(less);
    page::limits(&limits);
}

/// Runs a simulation `times` times on all CPUs. A row of the page is told from others by its name.
fn repeat<T: Send>(row: &str, times: usize, simulate: impl Fn(&mut Xoshiro256PlusPlus) -> T + Sync) -> Vec<T> {
    let name = row.bytes().fold(SEED, |hash, byte| hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
    let chunk = |chunk: usize| -> Vec<T> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(name.wrapping_add(chunk as u64));
        (0..times.div_ceil(CHUNKS)).map(|_| simulate(&mut random)).collect()
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let share = |worker: usize| (worker..CHUNKS).step_by(workers).map(|c| (c, chunk(c))).collect::<Vec<_>>();
    let share = &share;
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|worker| scope.spawn(move || share(worker))).collect();
        let mut chunks: Vec<(usize, Vec<T>)> = running.into_iter().flat_map(|one| one.join().unwrap()).collect();
        chunks.sort_by_key(|(chunk, _)| *chunk);
        chunks.into_iter().flat_map(|(_, results)| results).take(times).collect()
    })
}
