//! What makes a load, in a process of its own: threads that work and count, and a file that says how far they are.
//! The command starts itself with a [`Load`] as JSON.

use std::{
    fs::File,
    io,
    net::UdpSocket,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use taut_wakeup::Work;

use super::Load;

/// How often the count is written.
const COUNTED: Duration = Duration::from_millis(20);
/// The stretch of which a computing worker works its part.
const PERIOD: Duration = Duration::from_millis(10);
/// The shortest sleep worth taking between messages or forks: faster ones go in bursts.
const BURST: Duration = Duration::from_millis(1);
/// What a worker that fell behind does not make up for: a stall must not turn into a burst without end.
const FORGIVEN: Duration = Duration::from_millis(100);

/// Bytes of a count: four little-endian numbers in the order of [`Count`], then of each topic of a flood two.
const BYTES: usize = 32;

/// How far the workers were, and when.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Count {
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Bytes, wakes, forks, messages received.
    pub done: u64,
    /// Messages sent.
    pub sent: u64,
    /// Readers that the writers of a flood match, each pair counted.
    pub matched: u64,
    /// Of each topic messages sent and received, where the workers count by topic.
    pub topics: Vec<(u64, u64)>,
}

#[derive(Default)]
struct Counters {
    done: AtomicU64,
    sent: AtomicU64,
}

type Worker = Box<dyn FnOnce(&Counters) -> io::Result<()> + Send>;

/// Works until the process is killed, and with its parent at the latest, which is `parent`.
///
/// # Errors
/// A thread, a socket or a file that could not be had; a parent that has ended.
pub fn go(load: &Load, count: &Path, parent: i32) -> io::Result<()> {
    // An executable with capabilities loses what was asked for before it was executed.
    taut_wakeup::end_with(parent)?;
    // Threads have the name of the one that makes them: in a recording the load is told from the lab and its recorder.
    let name = std::ffi::CString::new(format!("load-{}", load.kind())).unwrap_or_default();
    rustix::thread::set_name(&name)?;
    let counters = Arc::new(Counters::default());
    let mut threads = Vec::new();
    let mut start = |work: Worker| {
        let counters = Arc::clone(&counters);
        threads.push(std::thread::Builder::new().stack_size(256 << 10).spawn(move || work(&counters))?);
        io::Result::Ok(())
    };
    for _ in 0..load.workers().unwrap_or(0) {
        match *load {
            Load::Cpu { percent, .. } => start(Box::new(move |_| compute(percent / 100.0)))?,
            Load::Memory { .. } => start(Box::new(|counters| repeat(Work::Memory, counters)))?,
            Load::Io { .. } => start(Box::new(|counters| repeat(Work::Io, counters)))?,
            Load::Timers { .. } => start(Box::new(|counters| repeat(Work::Timer, counters)))?,
            Load::Forks { rate_hz, .. } => start(Box::new(move |counters| storm(rate_hz, counters)))?,
            Load::Udp { rate_hz, payload_bytes, .. } => {
                let reader = UdpSocket::bind("127.0.0.1:0")?;
                let writer = UdpSocket::bind("127.0.0.1:0")?;
                writer.connect(reader.local_addr()?)?;
                start(Box::new(move |counters| read(&reader, counters)))?;
                start(Box::new(move |counters| write(&writer, rate_hz, payload_bytes as usize, counters)))?;
            }
            // These are programs of their own.
            Load::Command { .. } | Load::Ros2(_) | Load::Dds(_) | Load::Zenoh(_) => {}
        }
    }
    let file = File::create(count)?;
    while !threads.iter().any(|thread| thread.is_finished()) {
        let (done, sent) = (counters.done.load(Relaxed), counters.sent.load(Relaxed));
        let mut bytes = [0; BYTES];
        // Every UDP writer has its reader.
        let matched = if load.is_flood() { u64::from(load.workers().unwrap_or(0)) } else { 0 };
        for (place, value) in bytes.chunks_exact_mut(8).zip([monotonic_ns(), done, sent, matched]) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        file.write_all_at(&bytes, 0)?;
        std::thread::sleep(COUNTED);
    }
    // A worker only ends when something failed.
    threads
        .into_iter()
        .filter(|thread| thread.is_finished())
        .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a worker panicked"))))
}

/// The last count, `None` before the first.
pub(crate) fn count(path: &Path) -> Option<Count> {
    let bytes = std::fs::read(path).ok().filter(|bytes| bytes.len() >= BYTES && bytes.len().is_multiple_of(16))?;
    let word = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    let topics = (BYTES..bytes.len()).step_by(16).map(|at| (word(at), word(at + 8))).collect();
    Some(Count { at_ns: word(0), done: word(8), sent: word(16), matched: word(24), topics })
}

fn compute(part: f64) -> io::Result<()> {
    let mut round = Work::Cpu.rounds()?;
    let busy_ns = (PERIOD.as_nanos() as f64 * part) as u64;
    let mut next = Instant::now();
    loop {
        let start_ns = ns(ClockId::ThreadCPUTime);
        // Its own CPU time, so that a worker that was preempted still does its part.
        while part >= 1.0 || ns(ClockId::ThreadCPUTime) - start_ns < busy_ns {
            round()?;
        }
        next = (next + PERIOD).max(Instant::now());
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

fn repeat(work: Work, counters: &Counters) -> io::Result<()> {
    let mut round = work.rounds()?;
    loop {
        counters.done.fetch_add(round()?, Relaxed);
    }
}

fn storm(rate_hz: Option<f64>, counters: &Counters) -> io::Result<()> {
    let fork = || {
        // SAFETY: the child calls nothing but _exit, which is allowed after a fork with threads.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => return Err(io::Error::last_os_error()),
            // SAFETY: as above.
            0 => unsafe { libc::_exit(0) },
            // SAFETY: a child of ours; no status is asked for.
            _ => unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) },
        };
        counters.done.fetch_add(1, Relaxed);
        Ok(())
    };
    match rate_hz {
        Some(rate_hz) => paced(rate_hz, fork),
        None => loop {
            fork()?;
        },
    }
}

fn write(socket: &UdpSocket, rate_hz: f64, payload_bytes: usize, counters: &Counters) -> io::Result<()> {
    let payload = vec![0x5a; payload_bytes];
    paced(rate_hz, || {
        match socket.send(&payload) {
            Ok(_) => counters.sent.fetch_add(1, Relaxed),
            // A full queue is what a flood is about; the count of those received says it.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN)) => 0,
            Err(error) => return Err(error),
        };
        Ok(())
    })
}

fn read(socket: &UdpSocket, counters: &Counters) -> io::Result<()> {
    let mut message = vec![0; 1 << 16];
    loop {
        socket.recv(&mut message)?;
        counters.done.fetch_add(1, Relaxed);
    }
}

/// Acts at this rate on a fixed schedule, in bursts where sleeps would be too short.
fn paced(rate_hz: f64, mut act: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let step = Duration::from_secs_f64(1.0 / rate_hz);
    let mut next = Instant::now();
    loop {
        let now = Instant::now();
        if next > now {
            std::thread::sleep((next - now).max(BURST));
            continue;
        }
        if now - next > FORGIVEN {
            next = now;
        }
        act()?;
        next += step;
    }
}

fn monotonic_ns() -> u64 {
    ns(ClockId::Monotonic)
}

fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_counts_its_topics_behind_its_totals() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let written = |words: &[u64]| {
            std::fs::write(file.path(), words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()).unwrap();
            count(file.path())
        };
        let totals = Count { at_ns: 7, done: 5, sent: 6, matched: 2, topics: Vec::new() };
        assert_eq!(written(&[7, 5, 6, 2]), Some(totals.clone()));
        assert_eq!(written(&[7, 5, 6, 2, 4, 3, 2, 2]), Some(Count { topics: vec![(4, 3), (2, 2)], ..totals }));
        assert_eq!(written(&[7, 5, 6]), None, "not whole yet");
        assert_eq!(written(&[7, 5, 6, 2, 4]), None, "half a topic");
    }
}
