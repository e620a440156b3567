//! One recording from start to end: hold the command, arm the kernel source, open the file, let the
//! command run, drain until it ends, close the file.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    process::Child,
    time::{Duration, Instant},
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2},
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
    low_level::siginfo::Cause,
};
use taut_clock::{ClockPair, Counter, monotonic_ns};
use taut_recording::{Ending, Info, KernelBatch, KernelEvent, Lost, LostWhat, Record, Thread, Tier, Writer};

use crate::{
    Error, Target, info,
    kernel::{self, Depth, Source, Wanted},
    proc,
    rings::{Drained, Session},
    samples::Sampler,
    session::SessionDir,
    target::{Held, exit_code, session_of},
};

/// Between two drains: short enough for small rings, long enough to cost nothing.
const ROUND: Duration = Duration::from_millis(5);
/// Between two looks for new processes and threads.
const SCAN_NS: u64 = 250_000_000;
/// Between two looks for new ring files: a process may use up its thread slots before its file is known.
const DISCOVER_NS: u64 = 10_000_000;
/// Between calibrations and samples.
const SECOND_NS: u64 = 1_000_000_000;
/// Between two calls of `progress`.
const PROGRESS_NS: u64 = 200_000_000;
/// After SIGTERM at the end of `duration`, until SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file to write.
    pub output: PathBuf,
    /// What to record.
    pub target: Target,
    /// Stop after this long; a command then gets SIGTERM.
    pub duration: Option<Duration>,
    /// Insist on a tier; `None` takes the best there is.
    pub tier: Option<Tier>,
    /// Insist on "ftrace" or "perf".
    pub kernel_source: Option<String>,
    /// Which kernel events.
    pub depth: Depth,
    /// Records in each thread's ring.
    pub ring_records: Option<u32>,
    /// Sync the file about once a second.
    pub durable: bool,
    /// Session directory; `None` makes a fresh one.
    pub session: Option<PathBuf>,
    /// For the file.
    pub taut_version: String,
}

/// Told once, when the recording runs.
#[derive(Clone, Debug)]
pub struct Started {
    /// Root of the recorded tree.
    pub pid: i32,
    /// Tier that serves.
    pub tier: Tier,
    /// "ftrace", "perf", … or "none".
    pub kernel_source: String,
    /// Why not a better tier; also why an attached process has no stamps.
    pub tier_reason: String,
}

/// Told about five times a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Stamps so far.
    pub stamps: u64,
    /// Over the time since the last call.
    pub stamps_per_s: f64,
    /// Kernel events so far.
    pub kernel_events: u64,
    /// Stamps lost so far.
    pub lost_stamps: u64,
    /// Kernel events lost so far.
    pub lost_kernel_events: u64,
    /// Length of the file.
    pub file_bytes: u64,
    /// Processes that stamped.
    pub processes: usize,
    /// Threads of the recorded tree seen.
    pub threads: usize,
}

/// How it ended.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Of the command; `None` when attached.
    pub exit_code: Option<i32>,
    /// As in the file.
    pub ending: Ending,
    /// Length of the file.
    pub file_bytes: u64,
    /// Tier that served.
    pub tier: Tier,
    /// What could not be believed or followed, a sentence each.
    pub warnings: Vec<String>,
}

/// Records until the command ends, the duration is over, or a signal says stop.
pub fn record(
    options: &Options,
    started: &mut dyn FnMut(&Started),
    progress: &mut dyn FnMut(&Progress),
) -> Result<Recorded, Error> {
    let signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2]);
    let mut signals = signals.map_err(|source| Error::System { what: "signal handlers", source })?;
    // Orphaned grandchildren become ours, so that the tree stays a tree.
    // SAFETY: a plain prctl.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    match &options.target {
        Target::Command(words) => {
            let directory = SessionDir::new(options.session.as_deref())?;
            let held = Held::fork(words, directory.path(), options.ring_records)?;
            let pid = held.pid;
            let text = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
            let opened = || -> Result<Recording, Error> {
                let session = Session::open(directory.path());
                let session = session.map_err(|source| Error::Session { path: directory.path().into(), source })?;
                Recording::open(options, pid, text, Some(session))
            };
            let mut recording = match opened() {
                Ok(recording) => recording,
                Err(error) => {
                    held.cancel();
                    return Err(error);
                }
            };
            let child = held.release();
            let mut child = child.inspect_err(|_| recording.discard())?;
            started(&recording.started);
            let ended = recording.follow_child(&mut child, &mut signals, options.duration, progress);
            recording.finish(Some(ended.0), ended.1)
        }
        Target::Pid(pid) => {
            let path = session_of(*pid)?;
            let session = match &path {
                Some(path) => {
                    let session = Session::open_late(path);
                    Some(session.map_err(|source| Error::Session { path: path.clone(), source })?)
                }
                None => None,
            };
            let mut recording = Recording::open(options, *pid, Vec::new(), session)?;
            if path.is_none() {
                recording.started.tier_reason += &format!(
                    "{}process {pid} was started without TAUT_SESSION, so it does not stamp: kernel events only",
                    if recording.started.tier_reason.is_empty() { "" } else { "; " }
                );
            }
            started(&recording.started);
            let reason = recording.follow_pid(*pid, &mut signals, options.duration, progress);
            recording.finish(None, reason)
        }
    }
}

/// A recording under way.
struct Recording {
    output: PathBuf,
    writer: Option<Writer>,
    /// Why writing stopped before the end.
    failed: Option<taut_recording::Error>,
    session: Option<Session>,
    source: Option<Box<dyn Source>>,
    sampler: Sampler,
    counters: Vec<Counter>,
    /// Whose tree is recorded: the attached process, or taut itself, whose only descendants are the
    /// command and, as their subreaper, its orphans.
    root: i32,
    started: Started,
    began: Instant,
    ending: Ending,
    warnings: Vec<String>,
    threads: HashMap<i32, (u64, String)>,
    recorded_threads: usize,
    strangers: HashSet<i32>,
    next_scan_ns: u64,
    next_discover_ns: u64,
    next_second_ns: u64,
    next_progress_ns: u64,
    last_progress: (u64, u64),
}

impl Recording {
    fn open(options: &Options, pid: i32, command: Vec<String>, session: Option<Session>) -> Result<Recording, Error> {
        let wanted = Wanted {
            tier: options.tier,
            source: options.kernel_source.clone(),
            pid,
            follow_existing_threads: matches!(options.target, Target::Pid(_)),
            depth: options.depth,
        };
        let chosen = kernel::start(&wanted)?;
        let info: Info = info::gather(command, &options.taut_version, &chosen);
        let mut writer = Writer::create(&options.output, &info)?;
        writer.set_durable(options.durable);
        let started =
            Started { pid, tier: chosen.tier, kernel_source: chosen.kernel_source, tier_reason: chosen.tier_reason };
        let own_pid = std::process::id() as i32;
        let mut recording = Recording {
            output: options.output.clone(),
            writer: Some(writer),
            failed: None,
            session,
            source: chosen.source,
            sampler: Sampler::new(pid),
            counters: native_counters(),
            root: if wanted.follow_existing_threads { pid } else { own_pid },
            started,
            began: Instant::now(),
            ending: Ending::default(),
            warnings: Vec::new(),
            threads: HashMap::new(),
            recorded_threads: 0,
            strangers: HashSet::new(),
            next_scan_ns: 0,
            next_discover_ns: 0,
            next_second_ns: 0,
            next_progress_ns: 0,
            last_progress: (info.start_monotonic_ns, 0),
        };
        recording.calibrate();
        Ok(recording)
    }

    /// The command never ran: leave nothing behind.
    fn discard(&mut self) {
        self.writer = None;
        if let Some(source) = &mut self.source {
            let _ = source.stop();
        }
        let _ = std::fs::remove_file(&self.output);
    }

    fn follow_child(
        &mut self,
        child: &mut Child,
        signals: &mut SignalsInfo<WithOrigin>,
        duration: Option<Duration>,
        progress: &mut dyn FnMut(&Progress),
    ) -> (i32, &'static str) {
        let mut stop_at: Option<Instant> = None;
        let mut reason = "command exited";
        loop {
            let busy = self.round(progress);
            match child.try_wait() {
                Ok(Some(status)) => return (exit_code(status), reason),
                Ok(None) => {}
                Err(_) => return (1, "the command could not be waited for"),
            }
            for origin in signals.pending() {
                reason = if origin.signal == SIGUSR1 || origin.signal == SIGUSR2 { reason } else { "signal" };
                // What the terminal sends reaches the whole foreground group by itself.
                if origin.cause != Cause::Kernel {
                    // SAFETY: the child is not yet waited for, so its pid is its own.
                    unsafe { libc::kill(child.id() as i32, origin.signal) };
                }
            }
            if duration.is_some_and(|d| self.began.elapsed() >= d) {
                let signal = match stop_at {
                    None => libc::SIGTERM,
                    Some(at) if Instant::now() >= at => libc::SIGKILL,
                    Some(_) => 0,
                };
                stop_at.get_or_insert(Instant::now() + GRACE);
                reason = "duration";
                // SAFETY: as above; signal 0 sends nothing.
                unsafe { libc::kill(child.id() as i32, signal) };
            }
            rest(busy);
        }
    }

    fn follow_pid(
        &mut self,
        pid: i32,
        signals: &mut SignalsInfo<WithOrigin>,
        duration: Option<Duration>,
        progress: &mut dyn FnMut(&Progress),
    ) -> &'static str {
        let stat = || proc::start_time(&proc::line(format!("/proc/{pid}/stat")));
        let born = stat();
        loop {
            let busy = self.round(progress);
            if stat() != born {
                return "process exited";
            }
            if signals.pending().any(|o| o.signal != SIGUSR1 && o.signal != SIGUSR2) {
                return "signal";
            }
            if duration.is_some_and(|d| self.began.elapsed() >= d) {
                return "duration";
            }
            rest(busy);
        }
    }

    /// One turn of everything that is due; returns whether there is more to drain at once.
    fn round(&mut self, progress: &mut dyn FnMut(&Progress)) -> bool {
        let now_ns = monotonic_ns();
        if now_ns >= self.next_scan_ns {
            self.next_scan_ns = now_ns + SCAN_NS;
            self.scan(now_ns);
        }
        if now_ns >= self.next_second_ns {
            self.next_second_ns = now_ns + SECOND_NS;
            self.calibrate();
            self.sampler.sample(now_ns).iter().for_each(|record| self.write(record));
        }
        if now_ns >= self.next_discover_ns {
            self.next_discover_ns = now_ns + DISCOVER_NS;
            self.discover();
        }
        let drained = self.session.as_mut().map(Session::drain).unwrap_or_default();
        let busy = drained.batches.iter().any(|batch| batch.ticks.len() > 32_768);
        self.take(drained);
        self.drain_kernel();
        self.with_writer(|writer| writer.flush_due(now_ns));
        if now_ns >= self.next_progress_ns {
            self.next_progress_ns = now_ns + PROGRESS_NS;
            let now = self.progress(now_ns);
            progress(&now);
        }
        busy
    }

    fn discover(&mut self) {
        let mut drained = Drained::default();
        if let Some(session) = &mut self.session {
            session.discover(&mut drained);
        }
        self.take(drained);
    }

    /// Clears up after threads and processes that are gone, and looks for threads of the tree that are new
    /// or were renamed.
    fn scan(&mut self, now_ns: u64) {
        let drained = self.session.as_mut().map(Session::reap).unwrap_or_default();
        self.take(drained);
        let mut pids = proc::tree(self.root);
        pids.extend(self.session.iter().flat_map(Session::pids));
        pids.sort_unstable();
        pids.dedup();
        pids.retain(|pid| *pid != std::process::id() as i32);
        for pid in pids {
            for tid in proc::tids(pid) {
                if let Some(thread) = proc::thread(pid, tid, true, now_ns) {
                    self.remember(thread);
                }
            }
        }
        for tid in std::mem::take(&mut self.strangers) {
            let pid = proc::thread_group(tid).unwrap_or(tid);
            if let Some(thread) = proc::thread(pid, tid, false, now_ns) {
                self.remember(thread);
            }
        }
    }

    fn remember(&mut self, thread: Thread) {
        let known = (thread.start_time, thread.comm.clone());
        let before = self.threads.insert(thread.tid, known.clone());
        if before.as_ref() != Some(&known) {
            self.recorded_threads += usize::from(thread.recorded && before.is_none_or(|b| b.0 != known.0));
            self.write(&Record::Thread(thread));
        }
    }

    fn take(&mut self, drained: Drained) {
        let fresh = self.session.as_mut().map(|s| s.names().take_fresh()).unwrap_or_default();
        fresh.into_iter().for_each(|name| self.write(&Record::Name(name)));
        for batch in drained.batches {
            self.ending.stamps += batch.ticks.len() as u64;
            self.write(&Record::Stamps(batch));
        }
        for (place, count) in drained.lost {
            self.lost(LostWhat::Stamps, place, count);
        }
        self.warnings.extend(drained.refused);
    }

    fn drain_kernel(&mut self) {
        let Some(mut source) = self.source.take() else { return };
        let mut batches = Vec::new();
        if let Err(error) = source.drain(&mut |batch| batches.push(batch)) {
            self.warnings.push(format!("kernel events: {error}"));
        }
        for batch in batches {
            self.notice_strangers(&batch);
            self.ending.kernel_events += batch.time_ns.len() as u64;
            self.write(&Record::Kernel(batch));
        }
        for (place, count) in source.lost() {
            self.lost(LostWhat::KernelEvents, place, count);
        }
        self.source = Some(source);
    }

    /// Threads that took a CPU and are not known yet get their name at the next scan.
    fn notice_strangers(&mut self, batch: &KernelBatch) {
        for (event, next) in batch.event.iter().zip(&batch.arg0) {
            let tid = *next as i32;
            if *event == KernelEvent::SchedSwitch as u8 && tid != 0 && !self.threads.contains_key(&tid) {
                self.strangers.insert(tid);
            }
        }
    }

    fn lost(&mut self, what: LostWhat, place: String, count: u64) {
        match what {
            LostWhat::Stamps => self.ending.lost_stamps += count,
            LostWhat::KernelEvents => self.ending.lost_kernel_events += count,
        }
        self.write(&Record::Lost(Lost { time_ns: monotonic_ns(), what, place, count }));
    }

    fn calibrate(&mut self) {
        for counter in self.counters.clone() {
            self.write(&Record::Clock(counter, ClockPair::take(counter)));
        }
    }

    fn write(&mut self, record: &Record) {
        self.with_writer(|writer| writer.write(record));
    }

    /// After a failed write (a full disk) nothing more is written, and the command runs on.
    fn with_writer(&mut self, act: impl FnOnce(&mut Writer) -> Result<(), taut_recording::Error>) {
        if let Some(Err(error)) = self.writer.as_mut().map(act) {
            self.failed = Some(error);
            self.writer = None;
        }
    }

    fn progress(&mut self, now_ns: u64) -> Progress {
        let (before_ns, before) = std::mem::replace(&mut self.last_progress, (now_ns, self.ending.stamps));
        let seconds = now_ns.saturating_sub(before_ns).max(1) as f64 / 1e9;
        Progress {
            elapsed: self.began.elapsed(),
            stamps: self.ending.stamps,
            stamps_per_s: (self.ending.stamps - before) as f64 / seconds,
            kernel_events: self.ending.kernel_events,
            lost_stamps: self.ending.lost_stamps,
            lost_kernel_events: self.ending.lost_kernel_events,
            file_bytes: std::fs::metadata(&self.output).map_or(0, |m| m.len()),
            processes: self.session.as_ref().map_or(0, |s| s.pids().len()),
            threads: self.recorded_threads,
        }
    }

    /// Takes what is left everywhere and closes the file.
    fn finish(mut self, exit_code: Option<i32>, reason: &str) -> Result<Recorded, Error> {
        if let Some(source) = &mut self.source
            && let Err(error) = source.stop()
        {
            self.warnings.push(format!("kernel events: {error}"));
        }
        self.drain_kernel();
        self.discover();
        self.scan(monotonic_ns());
        loop {
            let drained = self.session.as_mut().map(Session::drain).unwrap_or_default();
            let done = drained.batches.is_empty();
            self.take(drained);
            if done {
                break;
            }
        }
        self.calibrate();
        let left = proc::tree(self.root).len() - 1;
        if exit_code.is_some() && left > 0 {
            self.warnings.push(format!("{left} processes of the tree outlive the command and are no longer recorded"));
        }
        self.ending.end_monotonic_ns = monotonic_ns();
        self.ending.exit_code = exit_code;
        self.ending.reason = reason.to_owned();
        self.ending.recorder_cpu_ns = own_cpu_ns();
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        let file_bytes = match self.writer.take() {
            Some(writer) => writer.finish(&self.ending)?,
            None => 0,
        };
        Ok(Recorded { exit_code, ending: self.ending, file_bytes, tier: self.started.tier, warnings: self.warnings })
    }
}

fn rest(busy: bool) {
    if !busy {
        std::thread::sleep(ROUND);
    }
}

/// Counters that producers on this machine may stamp with and that need calibration.
fn native_counters() -> Vec<Counter> {
    if cfg!(target_arch = "x86_64") {
        vec![Counter::Tsc]
    } else if cfg!(target_arch = "aarch64") {
        vec![Counter::Cntvct]
    } else {
        Vec::new()
    }
}

fn own_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
