//! The full tier by ftrace: two private instances whose rings are read page by page. One has the scheduling of all
//! tasks, the other system calls of the recorded tree.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use taut_recording::KernelBatch;

use super::format::Format;
use super::rows::Rows;
use super::sub_buffer::{PageLayout, read_page};
use super::tracefs::Tracefs;
use super::tracepoints::{self, Decoder, Tracepoint};
use super::{Source, Wanted, capabilities};
use crate::give_way::pause_if_due;

/// How often the loss counters are read; each costs the kernel some formatting.
const LOSS_INTERVAL: Duration = Duration::from_millis(200);

/// Numbers the instances that this process tried to make, so that two sources at once do not share one.
static TRIED: AtomicU32 = AtomicU32::new(0);

/// How old an instance without a lock must be to count as left behind: more than making and locking one takes.
const LEFT_BEHIND: Duration = Duration::from_secs(10);

/// The file of an instance that takes options by name. Each also has a file of its own under `options`; but an open one of
/// those does not keep the instance from being removed, and a write to it then uses memory that is gone.
const OPTIONS: &str = "trace_options";

/// Both instances and what reads them.
pub struct Ftrace {
    instances: Vec<Instance>,
    decoder: Decoder,
    layout: PageLayout,
    page: Vec<u8>,
    /// More than a ring can hold.
    ring_pages: usize,
    rows: Rows,
    bytes_read: u64,
    losses_read: Option<Instant>,
    stopped: bool,
    // Last, so that the instances are removed while it can still be reached.
    tracefs: Tracefs,
}

/// A trace instance: its own rings, its own choice of events.
struct Instance {
    /// "sched" or "tree", for people.
    what: &'static str,
    /// Path inside tracefs.
    folder: String,
    /// The folder, locked while this process lives; see [`remove_stale`].
    _lock: File,
    rings: Vec<Ring>,
}

/// The ring of one CPU.
struct Ring {
    cpu: u16,
    /// `None` once the instance is removed.
    raw: Option<File>,
    /// Losses that the pages told of; a lower bound for the counters.
    missed: u64,
    reported: u64,
}

impl Ftrace {
    /// Starts tracing.
    ///
    /// # Errors
    /// What was refused, with the tracefs file it is about.
    pub fn start(wanted: &Wanted) -> io::Result<Ftrace> {
        Ftrace::with_ring_kib(wanted, None)
    }

    pub(super) fn with_ring_kib(wanted: &Wanted, ring_kib: Option<u64>) -> io::Result<Ftrace> {
        let tracefs = Tracefs::open()?;
        remove_stale(&tracefs);
        let layout = PageLayout::parse(&tracefs.read("events/header_page")?);
        let known = PageLayout::knows_event_header(&tracefs.read("events/header_event")?);
        let Some(layout) = layout.filter(|_| known) else {
            return Err(io::Error::other("this kernel's ftrace pages have a layout that taut does not know"));
        };
        let page = vec![0; layout.page_size];
        let ring_kib = ring_kib.unwrap_or_else(capabilities::ring_kib_by_memory);
        // The kernel counts without the heads of pages, and rounds up.
        let ring_pages = 2 * (ring_kib as usize * 1024).div_ceil(layout.page_size) + 4;
        let mut source = Ftrace {
            instances: Vec::new(),
            decoder: Decoder::default(),
            layout,
            page,
            ring_pages,
            rows: Rows::default(),
            bytes_read: 0,
            losses_read: None,
            stopped: false,
            tracefs,
        };
        let tree = tracepoints::of_tree_by_name(wanted.depth);
        // The tree first: creating an instance takes long, and scheduling must not fill its ring meanwhile.
        if !tree.is_empty() {
            source.add("tree", ring_kib)?;
            source.follow(wanted)?;
            source.enable(&tree, false)?;
        }
        source.add("sched", ring_kib)?;
        source.enable(&tracepoints::of_all_tasks(&source.tracefs, wanted.depth), true)?;
        Ok(source)
    }

    /// Makes an instance that is on, with every event off.
    fn add(&mut self, what: &'static str, ring_kib: u64) -> io::Result<()> {
        let (folder, lock) = create(&self.tracefs, what)?;
        // From here on dropping the source removes it.
        self.instances.push(Instance { what, folder: folder.clone(), _lock: lock, rings: Vec::new() });
        let set = |file: &str, value: &str| self.tracefs.write(&format!("{folder}/{file}"), value);
        set("trace_clock", "mono")?;
        let clock = self.tracefs.read(&format!("{folder}/trace_clock"))?;
        if !clock.contains("[mono]") {
            return Err(io::Error::other(format!("trace_clock stayed {}", clock.trim())));
        }
        set(OPTIONS, "nooverwrite")?;
        set("buffer_size_kb", &ring_kib.to_string())?;
        let mut rings = Vec::new();
        for cpu in capabilities::online_cpus() {
            let raw = self.tracefs.open_raw(&format!("{folder}/per_cpu/cpu{cpu}/trace_pipe_raw"))?;
            rings.push(Ring { cpu, raw: Some(raw), missed: 0, reported: 0 });
        }
        if let Some(instance) = self.instances.last_mut() {
            instance.rings = rings;
        }
        Ok(())
    }

    /// Limits the newest instance to the recorded tree; the kernel adds and removes children by itself.
    fn follow(&self, wanted: &Wanted) -> io::Result<()> {
        let Some(instance) = self.instances.last() else { return Ok(()) };
        if wanted.whole_system {
            // Of the kernel's list of those left out, which is younger than the other one (Linux 5.7), its absence is a cost only.
            // SAFETY: gettid takes nothing and cannot fail.
            let own = unsafe { libc::gettid() }.to_string();
            let _ = self.tracefs.write(&format!("{}/set_event_notrace_pid", instance.folder), &own);
            return Ok(());
        }
        self.tracefs.write(&format!("{}/{OPTIONS}", instance.folder), "event-fork")?;
        // The list may miss a thread that is born while it is read; from the second look on its parent is followed.
        for _ in 0..2 {
            let tids: Vec<String> =
                capabilities::of_tree(wanted.pid, wanted.follow_existing_threads).iter().map(i32::to_string).collect();
            self.tracefs.write(&format!("{}/set_event_pid", instance.folder), &tids.join(" "))?;
        }
        Ok(())
    }

    /// Switches events of the newest instance on. Without scheduling there is no tier; the rest is
    /// taken where the kernel has it.
    fn enable(&mut self, wanted: &[Tracepoint], scheduling: bool) -> io::Result<()> {
        let Some(instance) = self.instances.last() else { return Ok(()) };
        for point in wanted {
            let place = format!("events/{}/{}", point.group, point.name);
            let needed = scheduling && point.group == "sched";
            let format = match self.tracefs.read(&format!("{place}/format")) {
                Ok(text) => Format::parse(&text),
                Err(error) if needed => return Err(error),
                Err(_) => continue,
            };
            let readable = format.is_some_and(|format| self.decoder.add(point, &format));
            if readable {
                let file = format!("{}/{place}/filter", instance.folder);
                point.filters.iter().any(|filter| self.tracefs.write(&file, filter).is_ok());
                self.tracefs.write(&format!("{}/{place}/enable", instance.folder), "1")?;
            } else if needed {
                return Err(io::Error::other(format!("tracefs {place}/format has other fields than taut knows")));
            }
        }
        Ok(())
    }

    /// Takes the pages that are there out of the kernel.
    fn read_rings(&mut self) -> io::Result<()> {
        for ring in self.instances.iter_mut().flat_map(|instance| &mut instance.rings) {
            let Some(raw) = &mut ring.raw else { continue };
            let (rows, decoder, layout) = (self.rows.of_cpu(ring.cpu), &self.decoder, &self.layout);
            read_pages(raw, &mut self.page, self.ring_pages, |page| {
                let end = read_page(layout, page, |time_ns, record| rows.extend(decoder.row(time_ns, record)));
                self.bytes_read += end.bytes as u64;
                ring.missed += end.missed + u64::from(end.torn);
                pause_if_due();
            })?;
        }
        Ok(())
    }
}

/// Reads what a ring holds, page by page, and no more than it can hold: where each read brings on more events than it takes, as
/// under a debugger, there would be no end, and no stamps would be drained.
fn read_pages(
    raw: &mut impl Read,
    page: &mut [u8],
    ring_pages: usize,
    mut on_page: impl FnMut(&[u8]),
) -> io::Result<()> {
    for _ in 0..ring_pages {
        match raw.read(page) {
            Ok(0) => break,
            Ok(length) => on_page(&page[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Source for Ftrace {
    fn name(&self) -> &'static str {
        "ftrace"
    }

    fn drain(&mut self, sink: &mut dyn FnMut(KernelBatch)) -> io::Result<()> {
        if self.stopped {
            self.rows.release(u64::MAX, sink);
            return Ok(());
        }
        // What happens from now on may reach one ring's reader and not the other's: it waits for the next time.
        let now_ns = taut_clock::monotonic_ns();
        self.read_rings()?;
        self.rows.release(now_ns, sink);
        Ok(())
    }

    fn stop(&mut self) -> io::Result<()> {
        if self.stopped {
            return Ok(());
        }
        for instance in &self.instances {
            self.tracefs.write(&format!("{}/tracing_on", instance.folder), "0")?;
        }
        self.read_rings()?;
        self.losses_read = None;
        let losses = self.count_losses();
        self.stopped = true;
        let removed = self.remove();
        for (ring, total) in self.instances.iter_mut().flat_map(|instance| &mut instance.rings).zip(losses) {
            ring.missed = total;
        }
        removed
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    fn lost(&mut self) -> Vec<(String, u64)> {
        let too_early = self.losses_read.is_some_and(|read| read.elapsed() < LOSS_INTERVAL);
        if too_early && !self.stopped {
            return Vec::new();
        }
        self.losses_read = Some(Instant::now());
        let losses = self.count_losses();
        let mut increments = Vec::new();
        let rings =
            self.instances.iter_mut().flat_map(|instance| instance.rings.iter_mut().map(|ring| (instance.what, ring)));
        for ((what, ring), total) in rings.zip(losses) {
            if total > ring.reported {
                increments.push((format!("cpu {} ftrace {what}", ring.cpu), total - ring.reported));
                ring.reported = total;
            }
        }
        increments
    }
}

impl Ftrace {
    /// Losses of every ring since the start: the kernel's counters, and at least what the pages told.
    fn count_losses(&self) -> Vec<u64> {
        let rings =
            self.instances.iter().flat_map(|instance| instance.rings.iter().map(|ring| (&instance.folder, ring)));
        let count = |(folder, ring): (&String, &Ring)| {
            let stats = match self.stopped {
                true => String::new(),
                false => self.tracefs.read(&format!("{folder}/per_cpu/cpu{}/stats", ring.cpu)).unwrap_or_default(),
            };
            losses_of(&stats).max(ring.missed)
        };
        rings.map(count).collect()
    }

    fn remove(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for instance in &mut self.instances {
            // The kernel refuses to remove an instance with an open file.
            for ring in &mut instance.rings {
                ring.raw = None;
            }
            if let Err(error) = remove_when_free(&self.tracefs.path(&instance.folder))
                && error.kind() != io::ErrorKind::NotFound
            {
                result = Err(error);
            }
        }
        result
    }
}

/// Removes an instance. A child that another thread forked a moment ago holds copies of our files until
/// its exec closes them, and the kernel returns EBUSY until then: wait for that, bounded.
fn remove_when_free(path: &Path) -> io::Result<()> {
    for _ in 0..200 {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            done => return done,
        }
    }
    fs::remove_dir(path)
}

impl Drop for Ftrace {
    fn drop(&mut self) {
        if !self.stopped {
            let _ = self.remove();
        }
    }
}

/// Sum of the lines of `per_cpu/cpuN/stats` that count losses.
fn losses_of(stats: &str) -> u64 {
    let counts = |line: &str| -> Option<u64> {
        let (name, value) = line.split_once(':')?;
        matches!(name, "overrun" | "commit overrun" | "dropped events").then(|| value.trim().parse().ok())?
    };
    stats.lines().filter_map(counts).sum()
}

/// Makes an instance and locks it. The process id in its name is for people: in another pid namespace
/// another user has the same.
fn create(tracefs: &Tracefs, what: &str) -> io::Result<(String, File)> {
    loop {
        let (pid, number) = (std::process::id(), TRIED.fetch_add(1, Ordering::Relaxed));
        let folder = format!("instances/taut-{pid}-{what}-{number}");
        let path = tracefs.path(&folder);
        match fs::create_dir(&path).and_then(|()| locked(&path)) {
            Ok(lock) => return Ok((folder, lock)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("tracefs {folder}: {error}"))),
        }
    }
}

/// An instance's folder with a lock on it, which ends with the last process that has it open.
fn locked(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    Ok(folder)
}

/// Removes instances of recorders that no longer live. A lock tells, not the process id, which means nothing to whoever is
/// in another pid namespace: removing the instance of a living recorder between two of its steps can crash the kernel
/// (seen with Linux 6.18 and `options/overwrite`, see [`OPTIONS`]).
fn remove_stale(tracefs: &Tracefs) {
    for name in tracefs.list("instances").unwrap_or_default() {
        let path = tracefs.path(&format!("instances/{name}"));
        if name.starts_with("taut-") && is_old(&path) && locked(&path).is_ok() {
            let _ = fs::remove_dir(path);
        }
    }
}

fn is_old(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|metadata| metadata.modified()).map(|made| made.elapsed());
    age.is_ok_and(|age| age.is_ok_and(|age| age > LEFT_BEHIND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_loss_counts() {
        let stats = "entries: 4\noverrun: 2\ncommit overrun: 1\nbytes: 88\noldest event ts: 1.0\ndropped events: 40\nread events: 9\n";
        assert_eq!(losses_of(stats), 43);
    }

    #[test]
    fn a_ring_that_fills_as_fast_as_it_is_read_is_left_for_the_next_time() {
        let mut pages = 0;
        read_pages(&mut io::repeat(0), &mut [0; 64], 7, |page| pages += usize::from(page.len() == 64)).unwrap();
        assert_eq!(pages, 7);
        let mut pages = Vec::new();
        read_pages(&mut &[1, 2, 3][..], &mut [0; 2], 7, |page| pages.push(page.to_vec())).unwrap();
        assert_eq!(pages, [vec![1, 2], vec![3]]);
    }

    #[test]
    fn who_lives_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let lock = locked(folder.path()).unwrap();
        assert_eq!(locked(folder.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        // A child that another test is just starting has it open, too, until it is another program.
        while locked(folder.path()).is_err() {
            std::thread::yield_now();
        }
        assert!(!is_old(folder.path()));
    }
}
