//! Memory of the collector over 10⁸ wakes of a simulated clock, more than a day at 1 kHz. Prints what is resident after the
//! first hundredth and at the end; `bench/wakeup/memory.py` reads it.

use taut_wakeup::{Collector, Woken};

const WAKES: u64 = 100_000_000;
const INTERVAL_NS: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut collector = Collector::new(INTERVAL_NS);
    let (mut due_ns, mut chance, mut early_kib) = (0, 0x9e37_79b9_7f4a_7c15u64, 0);
    for wake in 0..WAKES {
        let late_ns = late_ns(&mut chance);
        collector.take(Woken { due_ns, late_ns }, due_ns);
        due_ns += INTERVAL_NS * (1 + late_ns / INTERVAL_NS);
        if wake == WAKES / 100 {
            early_kib = resident_kib()?;
        }
    }
    let taken = collector.series().wakeups.len();
    println!("{taken} wakes; resident: {early_kib} KiB early, {} KiB late", resident_kib()?);
    Ok(())
}

/// 16 µs to 0.2 s, each doubling half as likely as the one before: Marsaglia's xorshift64.
fn late_ns(chance: &mut u64) -> u64 {
    *chance ^= *chance << 13;
    *chance ^= *chance >> 7;
    *chance ^= *chance << 17;
    let doublings = (*chance >> 32).trailing_ones().min(13);
    (16_000 + (*chance & 0x3fff)) << doublings
}

fn resident_kib() -> Result<u64, Box<dyn std::error::Error>> {
    let pages = procfs::process::Process::myself()?.statm()?.resident;
    Ok(pages * procfs::page_size() / 1024)
}
