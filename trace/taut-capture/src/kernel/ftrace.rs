//! The full tier by ftrace: two private instances whose rings are read page by page. One has the scheduling of all
//! tasks, the other system calls of the recorded tree.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use taut_recording::KernelBatch;

use super::readable::readable;
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
    left_out: Vec<String>,
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
    /// It could not be read to its end the last time.
    has_failed: bool,
}

impl Ring {
    fn open(tracefs: &Tracefs, folder: &str, cpu: u16) -> io::Result<Ring> {
        let raw = tracefs.open_raw(&format!("{folder}/per_cpu/cpu{cpu}/trace_pipe_raw"))?;
        Ok(Ring { cpu, raw: Some(raw), missed: 0, reported: 0, has_failed: false })
    }
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
            left_out: Vec::new(),
            tracefs,
        };
        let tree = tracepoints::of_tree_by_name(wanted.depth);
        // The tree first: creating an instance takes long, and scheduling must not fill its ring meanwhile.
        if !tree.is_empty() {
            source.add("tree", ring_kib)?;
            source.follow(wanted)?;
            source.enable(tree)?;
        }
        source.add("sched", ring_kib)?;
        let all_tasks = tracepoints::of_all_tasks(&source.tracefs, wanted.depth, &mut source.left_out);
        source.enable(all_tasks)?;
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
            rings.push(Ring::open(&self.tracefs, &folder, cpu)?);
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

    /// Switches events of the newest instance on: those that the kernel has and taut can read.
    fn enable(&mut self, wanted: Vec<Tracepoint>) -> io::Result<()> {
        let Some(instance) = self.instances.last() else { return Ok(()) };
        for (point, _) in readable(&self.tracefs, wanted, &mut self.decoder, &mut self.left_out)? {
            let place = format!("{}/events/{}/{}", instance.folder, point.group, point.name);
            point.filters.iter().any(|filter| self.tracefs.write(&format!("{place}/filter"), filter).is_ok());
            self.tracefs.write(&format!("{place}/enable"), "1")?;
        }
        Ok(())
    }

    /// Takes the pages that are there out of the kernel: of every ring, also where another one fails.
    fn read_rings(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for ring in self.instances.iter_mut().flat_map(|instance| &mut instance.rings) {
            let Some(raw) = &mut ring.raw else { continue };
            let (rows, decoder, layout) = (self.rows.of_cpu(ring.cpu), &self.decoder, &self.layout);
            let read = read_pages(raw, &mut self.page, self.ring_pages, |page| {
                let end = read_page(layout, page, |time_ns, record| rows.extend(decoder.row(time_ns, record)));
                self.bytes_read += end.bytes as u64;
                ring.missed += end.missed + u64::from(end.torn);
                pause_if_due();
            });
            ring.has_failed = read.is_err();
            result = result.and(read);
        }
        result
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

    fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The kernel has a buffer for each CPU that comes, in each instance.
    fn takes_cpu(&mut self, cpu: u16, _: bool) -> bool {
        let tracefs = &self.tracefs;
        let take = |instance: &mut Instance| {
            if instance.rings.iter().any(|ring| ring.cpu == cpu) {
                return true;
            }
            let ring = Ring::open(tracefs, &instance.folder, cpu);
            ring.map(|ring| instance.rings.push(ring)).is_ok()
        };
        // Each of them, also where another one has failed.
        let mut is_taken = true;
        for instance in &mut self.instances {
            is_taken &= take(instance);
        }
        is_taken
    }

    fn drain(&mut self, sink: &mut dyn FnMut(KernelBatch)) -> io::Result<()> {
        if self.stopped {
            self.rows.release(u64::MAX, sink);
            return Ok(());
        }
        // What happens from now on may reach one ring's reader and not the other's: it waits for the next time.
        let now_ns = taut_clock::monotonic_ns();
        let read = self.read_rings();
        self.rows.release(now_ns, sink);
        read
    }

    fn stop(&mut self) -> io::Result<()> {
        if self.stopped {
            return Ok(());
        }
        let mut result = Ok(());
        for instance in &self.instances {
            result = result.and(self.tracefs.write(&format!("{}/tracing_on", instance.folder), "0"));
        }
        result = result.and(self.read_rings());
        self.losses_read = None;
        let (losses, counted) = self.count_losses();
        let unread = self.unread();
        self.stopped = true;
        result = result.and(counted).and(self.remove());
        let rings = self.instances.iter_mut().flat_map(|instance| &mut instance.rings);
        for (ring, (lost, unread)) in rings.zip(losses.into_iter().zip(unread)) {
            ring.missed = lost + unread;
        }
        result
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
        // What cannot be read now is read the next time, and said at the end.
        let (losses, _) = self.count_losses();
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
    /// Losses of every ring since the start: the kernel's counters, and at least what the pages told; and whether all counters could
    /// be read.
    fn count_losses(&self) -> (Vec<u64>, io::Result<()>) {
        let mut result = Ok(());
        let count = |(instance, ring): (&Instance, &Ring)| {
            let stats = if self.stopped { Ok(String::new()) } else { self.stats(instance, ring) };
            let counted = stats.as_ref().map_or(0, |stats| losses_of(stats));
            (counted.max(ring.missed), stats.map(drop))
        };
        let mut losses = Vec::new();
        for (lost, read) in self.rings().map(count) {
            losses.push(lost);
            result = result.and(read);
        }
        (losses, result)
    }

    /// What is left in rings that could not be read to their end: one at least.
    fn unread(&self) -> Vec<u64> {
        let left = |(instance, ring): (&Instance, &Ring)| match ring.has_failed {
            true => self.stats(instance, ring).map_or(1, |stats| sum_of(&stats, &["entries"]).max(1)),
            false => 0,
        };
        self.rings().map(left).collect()
    }

    fn rings(&self) -> impl Iterator<Item = (&Instance, &Ring)> {
        self.instances.iter().flat_map(|instance| instance.rings.iter().map(move |ring| (instance, ring)))
    }

    fn stats(&self, instance: &Instance, ring: &Ring) -> io::Result<String> {
        self.tracefs.read(&format!("{}/per_cpu/cpu{}/stats", instance.folder, ring.cpu))
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
    sum_of(stats, &["overrun", "commit overrun", "dropped events"])
}

/// Sum of its lines of these names.
fn sum_of(stats: &str, names: &[&str]) -> u64 {
    let counts = |line: &str| -> Option<u64> {
        let (name, value) = line.split_once(':')?;
        names.contains(&name).then(|| value.trim().parse().ok())?
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

    /// Of a source whose first ring cannot be read and whose second counts losses, in a folder that looks like tracefs.
    #[test]
    fn where_a_ring_cannot_be_read_the_others_are_and_what_is_left_in_it_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join("instance").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("tracing_on", "1");
        write("per_cpu/cpu0/stats", "entries: 5\noverrun: 2\n");
        write("per_cpu/cpu1/stats", "entries: 0\ndropped events: 3\n");
        write("per_cpu/cpu1/trace_pipe_raw", "");
        write("per_cpu/cpu2/trace_pipe_raw", "");
        write("per_cpu/cpu2/stats", "overrun: 4\n");
        let tracefs = Tracefs::at(folder.path().to_owned());
        let unreadable = File::open(folder.path()).unwrap();
        let ring = |cpu| Ring::open(&tracefs, "instance", cpu).unwrap();
        let rings = vec![Ring { cpu: 0, raw: Some(unreadable), missed: 0, reported: 0, has_failed: false }, ring(1)];
        let lock = File::open(folder.path()).unwrap();
        let page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        let mut source = Ftrace {
            instances: vec![Instance { what: "sched", folder: "instance".to_owned(), _lock: lock, rings }],
            decoder: Decoder::default(),
            layout: PageLayout::parse(page).unwrap(),
            page: vec![0; 4096],
            ring_pages: 4,
            rows: Rows::default(),
            bytes_read: 0,
            losses_read: None,
            stopped: false,
            left_out: Vec::new(),
            tracefs,
        };
        // A CPU that comes gets a ring, once; one without a buffer does not.
        assert!(source.takes_cpu(2, false) && source.takes_cpu(2, true) && !source.takes_cpu(3, false));
        assert!(source.drain(&mut |_| {}).is_err());
        let of = |cpu: u16, count: u64| (format!("cpu {cpu} ftrace sched"), count);
        assert_eq!(source.lost(), [of(0, 2), of(1, 3), of(2, 4)], "what is in a ring may be read yet");
        assert!(source.stop().is_err() && source.stop().is_ok());
        assert_eq!(source.lost(), [of(0, 5)]);
        assert!(fs::read_to_string(folder.path().join("instance/tracing_on")).unwrap().ends_with('0'));
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
