//! 10 million stamps through the analysis. `generate FILE [STAMPS]` writes a recording of synthetic
//! messages (12 points, 4 threads, a dropped share, 20 ms stalls); `analyse FILE` reads and analyses it.

use std::{error::Error, fs, path::Path, time::Instant};

use taut_analysis::{Analyzer, Config};
use taut_clock::{ClockPair, Counter, Ticks};
use taut_recording::{Ending, Info, Kind, Name, Record, StampBatch, Writer, read};

const POINTS: u32 = 12;
const THREADS: u32 = 4;
const BATCH: usize = 4096;
const APPLIED: u32 = POINTS + 1;
const DROPPED: u32 = POINTS + 2;
const PERIOD_NS: u64 = 50_000;
/// Of a synthetic 3 GHz counter.
const TICKS_PER_NS: u64 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["generate", file] => generate(Path::new(file), 10_000_000),
        ["generate", file, stamps] => generate(Path::new(file), stamps.parse()?),
        ["analyse", file] => analyse(Path::new(file)),
        _ => Err("usage: generate FILE [STAMPS] | analyse FILE".into()),
    }
}

fn generate(path: &Path, stamps: u64) -> Result<(), Box<dyn Error>> {
    let mut writer = Writer::create(path, &Info { start_monotonic_ns: 1, ..Info::default() })?;
    for id in 1..=DROPPED {
        let name = match id {
            APPLIED => "applied".to_owned(),
            DROPPED => "speed_limit".to_owned(),
            point => format!("loop.point{point:02}"),
        };
        writer.write(&Record::Name(Name { id, name }))?;
    }
    let empty = |thread: u32| StampBatch {
        pid: 1,
        tid: thread as i32 + 1,
        counter: Counter::Tsc as u8,
        ..StampBatch::default()
    };
    let mut batches: Vec<StampBatch> = (0..THREADS).map(empty).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let (mut written, mut message, mut end_ns) = (0, 0u64, 0);
    clock_pair(&mut writer, 0)?;
    // Each thread serves three neighbouring points; a batch never steps back in time because a message
    // ends before the next begins, except in a stall, which delays the following ones as well.
    let mut now_ns = PERIOD_NS;
    while written < stamps {
        message += 1;
        now_ns = now_ns.max(message * PERIOD_NS);
        let dropped_at = if message % 10 < 3 { 9 } else { POINTS };
        for point in 1..=dropped_at {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            now_ns += if random >> 45 == 0 { 20_000_000 } else { 500 + (random >> 33) % 4_000 };
            push(&mut batches[((point - 1) * THREADS / POINTS) as usize], now_ns, message, point, Kind::Stamp, 0);
        }
        let (thread, reason) = if dropped_at < POINTS { (2, DROPPED) } else { (3, APPLIED) };
        push(&mut batches[thread], now_ns + 10, message, 0, Kind::Outcome, u64::from(reason));
        written += u64::from(dropped_at) + 1;
        end_ns = now_ns + 10;
        for thread in 0..THREADS {
            if batches[thread as usize].ticks.len() >= BATCH {
                writer.write(&Record::Stamps(std::mem::replace(&mut batches[thread as usize], empty(thread))))?;
            }
        }
        if message % 20_000 == 0 {
            clock_pair(&mut writer, now_ns)?;
            writer.flush_due(now_ns)?;
        }
    }
    for batch in batches {
        writer.write(&Record::Stamps(batch))?;
    }
    clock_pair(&mut writer, end_ns)?;
    let bytes = writer.finish(&Ending { end_monotonic_ns: end_ns + 1, stamps: written, ..Ending::default() })?;
    println!("{written} stamps, {message} messages, {bytes} bytes");
    Ok(())
}

fn clock_pair(writer: &mut Writer, monotonic_ns: u64) -> Result<(), taut_recording::Error> {
    let ticks = Ticks((monotonic_ns + 1_000_000) * TICKS_PER_NS);
    writer.write(&Record::Clock(Counter::Tsc, ClockPair { ticks, monotonic_ns, realtime_ns: 0, window_ticks: 60 }))
}

fn push(batch: &mut StampBatch, time_ns: u64, message_id: u64, point: u32, kind: Kind, value: u64) {
    batch.ticks.push((time_ns + 1_000_000) * TICKS_PER_NS);
    batch.message_id.push(message_id);
    batch.point.push(point);
    batch.kind.push(kind as u8);
    batch.value.push(value);
}

fn analyse(path: &Path) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let bytes = fs::read(path)?;
    let mut analyzer = Analyzer::new(Config::default());
    let contents = read(&bytes, &mut |record| analyzer.record(&record))?;
    let file_bytes = bytes.len() as u64;
    drop(bytes);
    let read_s = start.elapsed().as_secs_f64();
    let analysis = analyzer.finish(contents.info, contents.ending, Vec::new(), file_bytes)?;
    let total_s = start.elapsed().as_secs_f64();
    println!("{} stamps: read {read_s:.2} s, read and analysed {total_s:.2} s", analysis.totals.stamps);
    for chain in &analysis.chains {
        println!(
            "{}: {} messages, {} hops, {:?}",
            chain.name,
            chain.messages,
            chain.hops.len(),
            chain.outcomes.dropped
        );
    }
    Ok(())
}
