//! What one kernel event costs through ftrace and through perf, side by side, and in an ftrace buffer that is not read and that keeps
//! the newest: what the kernel takes by itself.
//! Two threads on one CPU pass a byte through pipes; the time a round takes longer while a source
//! runs, divided by the events of that CPU, is the cost. Run as root:
//! cargo run --release -p taut-capture --example kernel_sources [BATCHES] [ROUNDS]

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use taut_capture::kernel::{Depth, Wanted, start};

const MEASURED_CPU: usize = 1;
const DRAINER_CPU: usize = 0;
const DRAIN_EVERY: Duration = Duration::from_millis(10);

/// One batch of rounds under one source.
#[derive(Default)]
struct Batch {
    ns: f64,
    events: f64,
    bytes_per_event: f64,
    lost: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let batches = arguments.next().transpose()?.unwrap_or(15);
    let rounds = arguments.next().transpose()?.unwrap_or(20_000);
    let (mut off, mut bare, mut ftrace, mut perf) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..batches {
        off.push(batch(None, rounds)?);
        bare.push(unread(rounds)?);
        ftrace.push(batch(Some("ftrace"), rounds)?);
        perf.push(batch(Some("perf"), rounds)?);
    }
    let base = median(off.iter().map(|batch| batch.ns));
    println!("{batches} batches of {rounds} rounds each, interleaved; medians");
    println!("off     {:7.0} ns/switch", base / rounds as f64 / 2.0);
    for (name, runs) in [("unread", bare), ("ftrace", ftrace), ("perf", perf)] {
        // Each batch against the unrecorded one just before it, so that drift of the machine cancels.
        let per_event = |(run, off): (&Batch, &Batch)| (run.ns - off.ns) / run.events;
        println!(
            "{name:7} {:7.0} ns/switch  {:5.0} ns/event  {:5.1} events/switch  {:5.1} B/event in the ring  lost {}",
            median(runs.iter().map(|run| run.ns)) / rounds as f64 / 2.0,
            median(runs.iter().zip(&off).map(per_event)),
            median(runs.iter().map(|run| run.events)) / rounds as f64 / 2.0,
            median(runs.iter().map(|run| run.bytes_per_event)),
            runs.iter().map(|run| run.lost).sum::<u64>(),
        );
    }
    Ok(())
}

fn batch(source: Option<&str>, rounds: usize) -> Result<Batch, Box<dyn std::error::Error>> {
    let wanted = Wanted {
        source: source.map(str::to_owned),
        tier: source.is_none().then_some(taut_recording::Tier::Stamps),
        pid: std::process::id() as i32,
        depth: Depth::Sched,
        whole_system: false,
        follow_existing_threads: true,
    };
    let mut source = start(&wanted)?.source;
    let done = AtomicBool::new(false);
    let (mut events, mut result) = (0usize, Batch::default());
    std::thread::scope(|scope| -> io::Result<()> {
        let pinger = scope.spawn(|| ping_pong(rounds, &done));
        pin(DRAINER_CPU);
        let mut on_cpu = |batch: taut_recording::KernelBatch, all: &mut usize| {
            *all += batch.time_ns.len();
            if usize::from(batch.cpu) == MEASURED_CPU {
                result.events += batch.time_ns.len() as f64;
            }
        };
        while !done.load(Ordering::Acquire) {
            std::thread::sleep(DRAIN_EVERY);
            if let Some(source) = &mut source {
                source.drain(&mut |batch| on_cpu(batch, &mut events))?;
            }
        }
        result.ns = pinger.join().unwrap_or(f64::NAN);
        if let Some(source) = &mut source {
            source.stop()?;
            source.drain(&mut |batch| on_cpu(batch, &mut events))?;
            result.lost = source.lost().into_iter().map(|(_, count)| count).sum();
            result.bytes_per_event = source.bytes_read() as f64 / events as f64;
        }
        Ok(())
    })?;
    Ok(result)
}

/// An ftrace instance with the events of this depth, of all threads; it goes with this.
struct Unread {
    folder: PathBuf,
    /// A mount of tracefs for this process, which need not be mounted elsewhere.
    _mount: OwnedFd,
}

impl Unread {
    fn start() -> io::Result<Unread> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let name = format!("/proc/self/fd/{}/instances/taut-bench-{}", mount.as_raw_fd(), std::process::id());
        fs::create_dir(&name)?;
        let unread = Unread { folder: name.into(), _mount: mount };
        for event in ["sched_switch", "sched_waking"] {
            fs::write(unread.folder.join(format!("events/sched/{event}/enable")), "1")?;
        }
        Ok(unread)
    }

    /// Events of the measured CPU, those that were overwritten included.
    fn events(&self) -> io::Result<f64> {
        let stats = fs::read_to_string(self.folder.join(format!("per_cpu/cpu{MEASURED_CPU}/stats")))?;
        let of =
            |line: &str| ["entries: ", "overrun: "].iter().find_map(|key| line.strip_prefix(key)?.parse::<f64>().ok());
        Ok(stats.lines().filter_map(of).sum())
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A batch into a buffer that is not read.
fn unread(rounds: usize) -> io::Result<Batch> {
    let unread = Unread::start()?;
    let ns = std::thread::scope(|scope| {
        scope.spawn(|| ping_pong(rounds, &AtomicBool::new(false))).join().unwrap_or(f64::NAN)
    });
    Ok(Batch { ns, events: unread.events()?, ..Batch::default() })
}

/// Nanoseconds for all rounds.
fn ping_pong(rounds: usize, done: &AtomicBool) -> f64 {
    pin(MEASURED_CPU);
    let ((there_out, there_in), (back_out, back_in)) = (pipe().expect("pipe"), pipe().expect("pipe"));
    let ns = std::thread::scope(|scope| {
        scope.spawn(move || {
            pin(MEASURED_CPU);
            pass(there_out, back_in, rounds, false);
        });
        let before = Instant::now();
        pass(back_out, there_in, rounds, true);
        before.elapsed().as_nanos() as f64
    });
    done.store(true, Ordering::Release);
    ns
}

fn pass(mut from: PipeReader, mut to: PipeWriter, rounds: usize, first: bool) {
    let mut byte = [0];
    for _ in 0..rounds {
        if first {
            to.write_all(&byte).expect("pipe write");
        }
        from.read_exact(&mut byte).expect("pipe read");
        if !first {
            to.write_all(&byte).expect("pipe write");
        }
    }
}

fn pin(cpu: usize) {
    // SAFETY: the set is initialised by zeroing, as CPU_ZERO does, and lives through the calls.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
