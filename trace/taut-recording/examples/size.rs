//! What a recording costs: bytes on disk and time, for a stamp and for a kernel event.
//!
//!     cargo run --release -p taut-recording --example size [-- RUN.mcap]
//!
//! Without a file the stream is made up: a 1 kHz loop of two threads with 12 stamps a cycle, and
//! the scheduling around it. With one, its own records are written again, group by group.

use std::time::Instant;

use taut_clock::{ClockPair, Counter, Ticks};
use taut_recording::{Ending, Info, KernelBatch, KernelEvent, Kind, Record, StampBatch, Writer, read};

const MILLISECOND_NS: u64 = 1_000_000;
const CYCLES: u64 = 120_000;
/// Capture hands over what came since it last looked.
const DRAIN_CYCLES: u64 = 5;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let records = match std::env::args().nth(1) {
        Some(path) => records_of(&path)?,
        None => made_up(),
    };
    let (stamps, kernel): (Vec<&Record>, Vec<&Record>) =
        records.iter().filter(|r| length(r) > 0).partition(|r| matches!(r, Record::Stamps(_)));
    measure("stamp", &stamps)?;
    measure("kernel event", &kernel)?;
    Ok(())
}

fn records_of(path: &str) -> Result<Vec<Record>, Failure> {
    let mut records = Vec::new();
    read(&std::fs::read(path)?, &mut |record| records.push(record))?;
    Ok(records)
}

/// Writes the records as capture does, and reads them back.
fn measure(what: &str, records: &[&Record]) -> Result<(), Failure> {
    let rows: usize = records.iter().map(|r| length(r)).sum();
    let Some(first) = records.first().map(|r| time(r)) else { return Ok(()) };
    let path = std::env::temp_dir().join(format!("taut-size-{}.mcap", std::process::id()));
    let info = Info { start_monotonic_ns: first, ..Info::default() };
    let empty = Writer::create(&path, &info)?.finish(&Ending::default())?;
    let started = Instant::now();
    let mut writer = Writer::create(&path, &info)?;
    for record in records {
        writer.write(record)?;
        writer.flush_due(time(record))?;
    }
    let bytes = writer.finish(&Ending::default())? - empty;
    let write = started.elapsed();
    let file = std::fs::read(&path)?;
    std::fs::remove_file(&path)?;
    let started = Instant::now();
    let contents = read(&file, &mut |record| {
        std::hint::black_box(record);
    })?;
    let read = started.elapsed();
    assert_eq!(contents.stamps + contents.kernel_events, rows as u64);
    let per = |duration: std::time::Duration| duration.as_nanos() as f64 / rows as f64;
    println!(
        "{what}: {:.2} bytes on disk ({rows} in {bytes} bytes beyond an empty recording's {empty}); \
         written in {:.0} ns, read in {:.1} ns = {:.1} million/s",
        bytes as f64 / rows as f64,
        per(write),
        per(read),
        1e3 / per(read),
    );
    Ok(())
}

fn length(record: &Record) -> usize {
    match record {
        Record::Stamps(batch) => batch.ticks.len(),
        Record::Kernel(batch) => batch.time_ns.len(),
        _ => 0,
    }
}

/// Of the last row: about when capture had it. TSC ticks are not ns; for flushing they are near enough.
fn time(record: &Record) -> u64 {
    match record {
        Record::Stamps(batch) => batch.ticks.last().map_or(0, |ticks| ticks / 3),
        Record::Kernel(batch) => batch.time_ns.last().copied().unwrap_or(0),
        _ => 0,
    }
}

/// Two threads, six points each, TSC of 2.45 GHz; the delays are log-normal-like, as delays are.
fn made_up() -> Vec<Record> {
    let mut noise = Noise(88172645463325252);
    let mut records = Vec::new();
    let ticks = |ns: u64| ns * 49 / 20;
    let start_ns = 3_600_000 * MILLISECOND_NS;
    let mut values = 0;
    for first in (0..CYCLES).step_by(DRAIN_CYCLES as usize) {
        let mut threads = [0, 1].map(|n| StampBatch { pid: 4100, tid: 4100 + n, counter: 1, ..StampBatch::default() });
        let mut cpus = [0u16, 1].map(|cpu| KernelBatch { cpu, ..KernelBatch::default() });
        for cycle in first..first + DRAIN_CYCLES {
            let mut now_ns = start_ns + cycle * MILLISECOND_NS + noise.delay_ns(20_000);
            for (half, batch) in threads.iter_mut().enumerate() {
                let tid = batch.tid;
                let cpu = &mut cpus[half];
                let waker = [0, 4100][half];
                event(cpu, now_ns, KernelEvent::SchedWaking, 0x08, waker, [tid as i64, half as i64, 80]);
                now_ns += noise.delay_ns(3_000);
                let prio = (19 << 16) | 120;
                event(cpu, now_ns, KernelEvent::SchedSwitch, 0x00, 0, [tid as i64, 0, prio]);
                for point in 0..6 {
                    now_ns += noise.delay_ns(25_000);
                    batch.ticks.push(ticks(now_ns));
                    batch.message_id.push((7 << 40) + cycle);
                    batch.point.push(1 + half as u32 * 6 + point);
                    let (kind, value) = match (half, point) {
                        (1, 5) => (Kind::Outcome, 13),
                        (1, 4) if cycle % 20 == 0 => (Kind::LockAcquired, 0),
                        _ => (Kind::Stamp, 0),
                    };
                    values += value;
                    batch.kind.push(kind as u8);
                    batch.value.push(value);
                    if point == 3 {
                        let call = [45, 202][half];
                        event(cpu, now_ns + 500, KernelEvent::SyscallEnter, 0, tid, [call, 0x7f3a_1c00_2a40, 128]);
                        let result = noise.below(64) as i64;
                        event(
                            cpu,
                            now_ns + 2_500 + noise.delay_ns(800),
                            KernelEvent::SyscallExit,
                            0,
                            tid,
                            [call, result, 0],
                        );
                    }
                }
                event(cpu, now_ns + 2_000, KernelEvent::SchedSwitch, 0x00, tid, [0, 1, (120 << 16) | 19]);
            }
        }
        records.extend(threads.map(Record::Stamps));
        records.extend(cpus.map(Record::Kernel));
    }
    assert!(values > 0);
    let pair = |ns: u64| ClockPair { ticks: Ticks(ticks(ns)), monotonic_ns: ns, realtime_ns: ns, window_ticks: 60 };
    records.push(Record::Clock(Counter::Tsc, pair(start_ns)));
    records
}

fn event(batch: &mut KernelBatch, time_ns: u64, event: KernelEvent, flags: u8, tid: i32, args: [i64; 3]) {
    let last_ns = batch.time_ns.last().copied().unwrap_or(0);
    batch.push(time_ns.max(last_ns), event as u8, flags, tid, args);
}

/// xorshift64: the same stream every time.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// Around `typical_ns`, with a tail: the product of two uniform draws does.
    fn delay_ns(&mut self, typical_ns: u64) -> u64 {
        typical_ns / 2 + self.below(typical_ns) * (1 + self.below(64) / 62 * 8) / 2
    }
}
