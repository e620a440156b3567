//! 10 million stamps, or kernel events, through the analysis. `generate FILE [STAMPS]` writes a recording of
//! synthetic messages (12 points, 4 threads, a dropped share, 20 ms stalls); `generate-kernel FILE [EVENTS]`
//! one of a client that awaits a server's answer, with the scheduling, system calls and interrupts that
//! belong to it; `analyse FILE` reads and analyses either, `read FILE` only reads.

use std::{error::Error, fs, path::Path, time::Instant};

use taut_analysis::{Analyzer, Config};
use taut_clock::{ClockPair, Counter, Ticks};
use taut_recording::{Ending, Info, KernelBatch, KernelEvent, Kind, Name, Record, StampBatch, Thread, Writer, read};

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
        ["generate-kernel", file] => generate_kernel(Path::new(file), 10_000_000, ""),
        ["generate-kernel", file, events] => generate_kernel(Path::new(file), events.parse()?, ""),
        ["generate-kernel", file, events, host] => generate_kernel(Path::new(file), events.parse()?, host),
        ["analyse", file] => analyse(Path::new(file)),
        ["read", file] => {
            read(&fs::read(file)?, &mut |_| {})?;
            Ok(())
        }
        _ => {
            Err("usage: generate FILE [STAMPS] | generate-kernel FILE [EVENTS [HOST]] | analyse FILE | read FILE"
                .into())
        }
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

const CLIENT: i32 = 100;
const SERVER: i32 = 200;
const HOG: i32 = 300;
/// `read` and `write` of x86-64.
const READ: i64 = 0;
const WRITE: i64 = 1;

/// Kernel events of two CPUs under way to the file.
struct Kernel {
    batches: [KernelBatch; 2],
    written: u64,
}

impl Kernel {
    fn push(&mut self, cpu: usize, time_ns: u64, event: KernelEvent, tid: i32, arguments: [i64; 3]) {
        let batch = &mut self.batches[cpu];
        batch.cpu = cpu as u16;
        batch.push(time_ns, event as u8, 0, tid, arguments);
        self.written += 1;
    }

    /// The caller writes to the other, which is woken, reads on, and sleeps.
    fn hand_over(&mut self, now_ns: &mut u64, from: (usize, i32), to: (usize, i32)) {
        use KernelEvent::{SchedSwitch, SchedWaking, SyscallEnter, SyscallExit};
        let mut step = |ns: u64| {
            *now_ns += ns;
            *now_ns
        };
        self.push(from.0, step(300), SyscallEnter, from.1, [WRITE, 4, 0]);
        self.push(from.0, step(900), SchedWaking, from.1, [to.1.into(), to.0 as i64, 120]);
        self.push(from.0, step(500), SyscallExit, from.1, [WRITE, 1, 0]);
        self.push(from.0, step(400), SyscallEnter, from.1, [READ, 3, 0]);
        self.push(from.0, step(600), SchedSwitch, from.1, [0, 1, 0]);
        self.push(to.0, step(2000), SchedSwitch, 0, [to.1.into(), 0, 0]);
        self.push(to.0, step(700), SyscallExit, to.1, [READ, 1, 0]);
    }

    fn write(&mut self, writer: &mut Writer, at_least: usize) -> Result<(), taut_recording::Error> {
        for batch in self.batches.iter_mut().filter(|batch| batch.time_ns.len() >= at_least) {
            writer.write(&Record::Kernel(std::mem::take(batch)))?;
        }
        Ok(())
    }
}

/// Of several hosts each has the same messages a millisecond after the one before, in the order of their names: "0", "1", …
fn generate_kernel(path: &Path, events: u64, host: &str) -> Result<(), Box<dyn Error>> {
    use KernelEvent::{IrqEnter, IrqExit, SchedSwitch};
    let behind_ns = host.parse::<u64>().unwrap_or(0) * 1_000_000;
    let info = Info { start_monotonic_ns: 1, host: host.to_owned(), ..Info::default() };
    let mut writer = Writer::create(path, &info)?;
    for (id, name) in [(1, "client.ask"), (2, "client.answered")] {
        writer.write(&Record::Name(Name { id, name: name.to_owned() }))?;
    }
    for (tid, comm) in [(CLIENT, "client"), (SERVER, "server"), (HOG, "hog")] {
        let thread = Thread { pid: tid, tid, comm: comm.to_owned(), recorded: tid != HOG, ..Thread::default() };
        writer.write(&Record::Thread(thread))?;
    }
    let mut stamps = StampBatch { pid: CLIENT, tid: CLIENT, counter: Counter::Tsc as u8, ..StampBatch::default() };
    let mut kernel = Kernel { batches: Default::default(), written: 0 };
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let (mut now_ns, mut message) = (PERIOD_NS + behind_ns, 0);
    clock_pair(&mut writer, 0)?;
    kernel.push(0, now_ns, SchedSwitch, 0, [CLIENT.into(), 0, 0]);
    while kernel.written < events {
        message += 1;
        now_ns = now_ns.max(message * PERIOD_NS + behind_ns);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        push(&mut stamps, now_ns, message, 1, Kind::Stamp, 0);
        kernel.hand_over(&mut now_ns, (0, CLIENT), (1, SERVER));
        kernel.push(1, now_ns + 100, IrqEnter, SERVER, [0xec, 2, 0]);
        kernel.push(1, now_ns + 1500, IrqExit, SERVER, [0xec, 2, 0]);
        now_ns += 2000 + (random >> 33) % 5000;
        if random >> 60 == 0 {
            kernel.push(1, now_ns, SchedSwitch, SERVER, [HOG.into(), 0x100, 0]);
            now_ns += 20_000 + (random >> 33) % 200_000;
            kernel.push(1, now_ns, SchedSwitch, HOG, [SERVER.into(), 1, 0]);
        }
        kernel.hand_over(&mut now_ns, (1, SERVER), (0, CLIENT));
        now_ns += 500;
        push(&mut stamps, now_ns, message, 2, Kind::Stamp, 0);
        if stamps.ticks.len() >= BATCH {
            let empty = StampBatch { pid: CLIENT, tid: CLIENT, counter: Counter::Tsc as u8, ..StampBatch::default() };
            writer.write(&Record::Stamps(std::mem::replace(&mut stamps, empty)))?;
        }
        kernel.write(&mut writer, BATCH)?;
        if message % 20_000 == 0 {
            clock_pair(&mut writer, now_ns)?;
            writer.flush_due(now_ns)?;
        }
    }
    writer.write(&Record::Stamps(stamps))?;
    kernel.write(&mut writer, 1)?;
    clock_pair(&mut writer, now_ns)?;
    let ending = Ending { end_monotonic_ns: now_ns + 1, kernel_events: kernel.written, ..Ending::default() };
    let bytes = writer.finish(&ending)?;
    println!("{} kernel events, {message} messages, {bytes} bytes", kernel.written);
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
    let totals = &analysis.totals;
    println!(
        "{} stamps, {} kernel events: read {read_s:.2} s, read and analysed {total_s:.2} s",
        totals.stamps, totals.kernel_events
    );
    for chain in &analysis.chains {
        for cause in chain.explained.causes.iter().take(3) {
            println!("  {} {}: {:.1} % of the tail", cause.cause.word(), cause.detail, 100.0 * cause.tail_share);
        }
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
