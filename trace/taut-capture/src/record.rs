//! One recording from start to end: hold the command, arm the kernel source, open the file, let the
//! command run, drain until it ends, close the file.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    hash::{BuildHasher, RandomState},
    io::ErrorKind,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    process::Child,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use taut_clock::{ClockPair, Counter, monotonic_ns};
use taut_recording::{
    Compression, Ending, Info, Kind, Lost, LostWhat, Name, Output, Record, RosEvent, Tier, Writer, failure, printable,
};

use crate::{
    Error, Flight, Preload, Target,
    end::End,
    flight::{Keeper, Lacks},
    give_way, info,
    kernel::{self, Arrivals, Depth, Source, Wanted},
    listing::Uncounted,
    objects::Objects,
    pace::{Pace, Pacer},
    proc,
    profile::{Profiler, Profiling},
    recorders::{Note, recorder_of},
    rings::{Drained, Session},
    ros_objects::RosObjects,
    ros_tracepoints,
    samples::Sampler,
    saved::NotSaved,
    saves,
    session::{SessionDir, check_private},
    signals::{Asked, Signals, send},
    target::{Held, exit_code, session_of, told_session},
    telemetry::Channels,
    threads::Threads,
    tree::{self, Subreaper, Sweep},
};

/// Between two looks for new processes and threads.
const SCAN_NS: u64 = 250_000_000;
/// Between two looks for new ring files: a process may use up its thread slots before its file is known.
const DISCOVER_NS: u64 = 20_000_000;
/// Between calibrations; at the start sooner, because until the second one no time of a counter is known well.
const FIRST_CLOCK_NS: u64 = 20_000_000;
/// Between samples.
const SECOND_NS: u64 = 1_000_000_000;
/// Between two calls of `progress`.
const PROGRESS_NS: u64 = 200_000_000;
/// What a process of few threads needs in the session, and some more.
const ROOM_FOR_A_PROCESS: u64 = 8 << 20;
/// What a process needs there to count what it loses: header, names and slots of a ring file, as producers lay them out.
const ROOM_FOR_A_FILE: u64 = 4096 + 2048 * 128 + 64 * 256;
/// After SIGTERM at the end of `duration`, until SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// The code of a command that SIGTERM ended.
const SHELL_TERMINATED: i32 = 128 + libc::SIGTERM;
/// At the end, of the telemetry rings: enough for the largest, in case a producer continues to write.
const MOST_DRAINS: usize = 1000;
/// Different sentences kept; a process that writes nonsense must not fill our memory with them.
const MOST_WARNINGS: usize = 100;
/// Different sentences that are counted beyond those.
const MOST_UNSAID: usize = 1 << 16;

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file to write.
    pub output: PathBuf,
    /// What to record.
    pub target: Target,
    /// Stop after this long; all processes of a command then get SIGTERM.
    pub duration: Option<Duration>,
    /// `duration` counts from the first stamp; `None`: from the start.
    pub from_first_stamp: Option<FirstStamp>,
    /// Insist on a tier; `None` takes the best there is.
    pub tier: Option<Tier>,
    /// Insist on "ftrace" or "perf".
    pub kernel_source: Option<String>,
    /// Which kernel events.
    pub depth: Depth,
    /// Also sample stacks.
    pub profile: Option<Profiling>,
    /// Records in each thread's ring.
    pub ring_records: Option<u32>,
    /// Sync the file about once a second.
    pub durable: bool,
    /// Of the file.
    pub compression: Compression,
    /// Session directory; `None` makes a fresh one.
    pub session: Option<PathBuf>,
    /// A library that the command's processes load; of an attached process that has none, or of whose ROS 2 it lacks something, a
    /// warning says so.
    pub preload: Option<Preload>,
    /// For the file.
    pub taut_version: String,
    /// For the file, in place of the kernel's host name.
    pub host_name: Option<String>,
    /// Keep the last seconds only: `output` is then in memory, and gives back what is older.
    pub flight: Option<Flight>,
}

/// The stamp that a duration counts from.
#[derive(Clone, Debug)]
pub struct FirstStamp {
    /// It is waited for at most so long; without one the duration counts from then.
    pub within: Duration,
    /// Stamps at these points do not count: a probe that runs beside the program stamps at once.
    pub except: &'static [&'static str],
}

/// Told once, when the recording runs.
#[derive(Clone, Debug)]
pub struct Started {
    /// Root of the recorded tree; 0: all processes of the machine.
    pub pid: i32,
    /// Tier that serves.
    pub tier: Tier,
    /// "ftrace", "perf", … or "none".
    pub kernel_source: String,
    /// Why not a better tier; also why an attached process has no stamps.
    pub tier_reason: String,
    /// Where the rings lie; `None` when the attached process has no session.
    pub session: Option<PathBuf>,
    /// Whether the command's processes load the library that was asked for.
    pub is_preloaded: bool,
}

/// Told about five times a second, and at the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Stamps so far.
    pub stamps: u64,
    /// Over the time since the last call.
    pub stamps_per_s: f64,
    /// Telemetry messages so far.
    pub telemetry: u64,
    /// Kernel events so far.
    pub kernel_events: u64,
    /// ROS 2 events so far.
    pub ros_events: u64,
    /// Telemetry messages lost so far.
    pub lost_telemetry: u64,
    /// Stamps lost so far.
    pub lost_stamps: u64,
    /// Kernel events lost so far.
    pub lost_kernel_events: u64,
    /// ROS 2 events lost so far.
    pub lost_ros_events: u64,
    /// Whether some of what was lost was not counted.
    pub lost_is_estimate: bool,
    /// Length of the file.
    pub file_bytes: u64,
    /// Processes that stamped so far.
    pub processes: usize,
    /// Threads of the recorded tree seen.
    pub threads: usize,
    /// All that happened is in the file: no more calls, and a save that is asked for now holds it.
    pub is_over: bool,
}

/// How it ended.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Of the command; `None` when attached.
    pub exit_code: Option<i32>,
    /// What ended it.
    pub end: End,
    /// Whether the recording is in its place, and no save of a flight recorder failed.
    pub is_saved: bool,
    /// As in the file.
    pub ending: Ending,
    /// Of what the ending counts as lost, that of which some was not counted.
    pub estimated: Vec<LostWhat>,
    /// Places of a flight recorder's memory that its saves could not read back.
    pub damaged: u64,
    /// Length of the file.
    pub file_bytes: u64,
    /// Tier that served.
    pub tier: Tier,
    /// What could not be believed or followed, a sentence each.
    pub warnings: Vec<String>,
}

/// Records until the command ends, the duration is over, or a signal says stop.
///
/// One at a time in a process: it listens to signals, and with a command it becomes the subreaper of
/// the command's tree and waits for all children that it finds.
///
/// # Errors
/// Nothing could be recorded, and then there is no file; or, [`Error::Stopped`], not to the end.
pub fn record(
    options: &Options,
    started: &mut dyn FnMut(&Started),
    progress: &mut dyn FnMut(&Progress),
) -> Result<Recorded, Error> {
    let mut signals = Signals::listen(options.flight.is_some())
        .map_err(|source| Error::System { what: "signal handlers", source })?;
    match &options.target {
        Target::Command(words) => record_command(options, words, &mut signals, started, progress),
        Target::Pid(pid) => record_process(options, *pid, &mut signals, started, progress),
        Target::System => record_system(options, &mut signals, started, progress),
    }
}

/// Scheduling of other users' programs is the full tier's alone.
fn record_system(
    options: &Options,
    signals: &mut Signals,
    started: &mut dyn FnMut(&Started),
    progress: &mut dyn FnMut(&Progress),
) -> Result<Recorded, Error> {
    let options = Options { tier: Some(Tier::Full), ..options.clone() };
    let mut recording = Recording::open(&options, own_pid(), Vec::new(), None, Path::new(""))?;
    recording.started.pid = 0;
    recording.begin();
    started(&recording.started);
    let end = recording.follow_system(signals, progress);
    recording.finish(None, end, progress)
}

fn record_command(
    options: &Options,
    words: &[OsString],
    signals: &mut Signals,
    started: &mut dyn FnMut(&Started),
    progress: &mut dyn FnMut(&Progress),
) -> Result<Recorded, Error> {
    let _subreaper = Subreaper::new();
    let mut directory = SessionDir::new(options.session.as_deref())?;
    let (variables, not_preloaded) = variables(options, directory.path());
    let held = Held::fork(words, &variables)?;
    let pid = held.pid;
    let text = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let opened = open_session(directory.path(), Session::open)
        .and_then(|session| Recording::open(options, pid, text, Some(session), directory.path()));
    let mut recording = match opened {
        Ok(recording) => recording,
        Err(error) => {
            held.cancel();
            return Err(error);
        }
    };
    directory.take_warning().into_iter().for_each(|warning| recording.warn(warning));
    recording.started.is_preloaded = options.preload.is_some() && not_preloaded.is_none();
    if let Some(why) = not_preloaded {
        recording.preload = None;
        recording.note(why);
    }
    let missed = signals.while_held();
    let mut child = held.release()?;
    recording.begin();
    missed.into_iter().for_each(|signal| send(pid, signal));
    started(&recording.started);
    let (exit_code, end) = recording.follow_child(&mut child, signals, progress);
    recording.finish(Some(exit_code), end, progress)
}

/// What is set in the command's environment, and why the library is not among it.
fn variables(options: &Options, session: &Path) -> (Vec<(&'static str, OsString)>, Option<String>) {
    let mut variables = vec![("TAUT_SESSION", session.as_os_str().to_owned())];
    variables.extend(options.ring_records.map(|records| ("TAUT_RING_RECORDS", records.to_string().into())));
    let Some(preload) = options.preload else { return (variables, None) };
    // It goes with the session; where no code runs from shared memory it lies where it can be used again.
    let mut folders = vec![session.to_owned()];
    folders.extend(preload_folder());
    match preload.place(&folders) {
        Ok(path) => {
            let existing = std::env::var_os("LD_PRELOAD");
            variables.push(("LD_PRELOAD", preload.variable(existing.as_deref(), &path)));
            (variables, None)
        }
        Err(error) => {
            let name = preload.file_name;
            (
                variables,
                Some(format!(
                    "{name} cannot be written ({error}): no ROS 2 events are recorded; make a folder of your own \
                                      that allows programs, and name it with XDG_CACHE_HOME"
                )),
            )
        }
    }
}

/// Where libraries for preloading are kept for good: `taut` in the user's cache.
pub fn preload_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("taut"))
}

fn record_process(
    options: &Options,
    pid: i32,
    signals: &mut Signals,
    started: &mut dyn FnMut(&Started),
    progress: &mut dyn FnMut(&Progress),
) -> Result<Recorded, Error> {
    let path = session_of(pid, options.session.as_deref())?;
    if let Some(path) = &path {
        check_private(path, proc::uids(pid).and_then(|uids| uids.get(1).copied()))?;
    }
    let (session, no_stamps) = match &path {
        None => (None, Some("was started without TAUT_SESSION".to_owned())),
        Some(path) => match open_session(path, Session::open_late) {
            Ok(session) => (Some(session), None),
            Err(error @ Error::Recorded { .. }) => return Err(error),
            Err(error) => (None, Some(format!("has a session that cannot be read ({error})"))),
        },
    };
    let directory = path.as_deref().unwrap_or(Path::new(""));
    let mut recording = Recording::open(options, pid, Vec::new(), session, directory)?;
    if let Some(why) = no_stamps.as_ref().filter(|_| recording.source.is_none() && recording.profiler.is_none()) {
        let reason = recording.started.tier_reason.clone();
        return Err(Error::Nothing { pid, why: why.clone(), reason });
    }
    recording.begin();
    if let Some(why) = no_stamps {
        let reason = &mut recording.started.tier_reason;
        *reason += if reason.is_empty() { "" } else { "; " };
        *reason += &match recording.source.is_some() {
            true => format!(
                "loops and wake chains are found from kernel events alone; process {pid} {why}, so stamps are not recorded: for \
                 them start it by `taut record -- COMMAND`"
            ),
            false => format!(
                "no stamps are recorded, only samples of stacks: process {pid} {why}; start it by `taut record -- COMMAND`, or \
                 with TAUT_SESSION=DIR in its environment (mode 700) and attach again"
            ),
        };
        // Also to who reads the file, and where nothing is said at the start.
        let what = format!("process {pid} {why}, so its stamps are not recorded");
        match path {
            Some(_) => recording.lose(Uncounted { what: LostWhat::Stamps, place: "session".to_owned(), why: what }),
            None => recording.keep_note(printable(what)),
        }
    }
    started(&recording.started);
    let end = recording.follow_pid(pid, signals, progress);
    recording.finish(None, end, progress)
}

/// A ring file takes a descriptor, and there is one for each process that stamps; the self tier takes one for each thread and CPU.
/// The command is forked before this.
fn open_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where that is not granted, those beyond are refused one by one, and that is told.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// A file that may grow no more (RLIMIT_FSIZE) is then an error of a write, as a full disk is, and not a SIGXFSZ. After
/// the command was forked: what it ignores is its own business.
fn outlive_limits() {
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

fn open_session(path: &Path, open: fn(&Path) -> std::io::Result<Session>) -> Result<Session, Error> {
    open(path).map_err(|source| match source.kind() {
        ErrorKind::WouldBlock => Error::Recorded { path: path.to_owned(), by: first_recorder(path) },
        _ => Error::Session { path: path.to_owned(), source },
    })
}

/// The recorder that has the session, if it left a note.
fn first_recorder(session: &Path) -> String {
    recorder_of(session).map_or_else(
        || "another process".to_owned(),
        |first| format!("process {}, which writes {}", first.pid, first.output.display()),
    )
}

/// A recording under way.
struct Recording {
    output: Output,
    /// A note for live readers; none where this process may not write.
    _note: Option<Note>,
    info: Info,
    flight: Option<Keeper>,
    writer: Option<Writer>,
    /// Why writing stopped before the end.
    failed: Option<taut_recording::Error>,
    session: Option<Session>,
    telemetry: Option<Channels>,
    ros: Option<RosObjects>,
    source: Option<Box<dyn Source>>,
    profiler: Option<Profiler>,
    sampler: Sampler,
    /// Those whose threads are recorded, as of the latest look.
    pids: Vec<i32>,
    counters: Vec<Counter>,
    /// Whose tree is recorded: the attached process, or taut itself, whose only descendants are the
    /// command and, as their subreaper, its orphans.
    root: i32,
    /// All processes are recorded.
    whole_system: bool,
    started: Started,
    began: Instant,
    duration: Option<Duration>,
    from_first_stamp: Option<FirstStamp>,
    /// Numbers of the names that do not count as its point.
    not_first: Vec<u32>,
    /// When the first stamp that counts was read.
    first_stamp: Option<Instant>,
    /// The signal of the last orphan of the command that crashed.
    crashed: Option<i32>,
    ending: Ending,
    /// Of its losses, those that are not all counted.
    estimated: Vec<LostWhat>,
    warnings: Vec<String>,
    /// Hashes of the warnings that are no longer kept.
    unsaid: HashSet<u64>,
    hashes: RandomState,
    /// What was told once.
    told: HashSet<&'static str>,
    /// Processes of users who may not enter the session, and in how many looks each was seen.
    strangers: HashMap<i32, u32>,
    cpus: Arrivals,
    /// What the command's processes are to load, and in how many looks each of them was seen.
    preload: Option<(Preload, HashMap<i32, u32>)>,
    installations: ros_tracepoints::Installations,
    threads: Threads,
    objects: Objects,
    pacer: Pacer,
    next_scan_ns: u64,
    next_discover_ns: u64,
    next_second_ns: u64,
    next_clock_ns: u64,
    next_progress_ns: u64,
    last_progress: (u64, u64),
    /// When the last whole round began.
    looked_ns: u64,
}

impl Recording {
    fn open(
        options: &Options,
        pid: i32,
        command: Vec<String>,
        session: Option<Session>,
        directory: &Path,
    ) -> Result<Recording, Error> {
        let wanted = Wanted {
            tier: options.tier,
            source: options.kernel_source.clone(),
            pid,
            follow_existing_threads: matches!(options.target, Target::Pid(_)),
            whole_system: matches!(options.target, Target::System),
            depth: options.depth,
        };
        open_many_files();
        // Git reads files while the kernel lets us wait for its rings: each takes a tenth of a second.
        let asked = std::thread::Builder::new().spawn(info::ask).ok();
        // What runs already has events from now on, and none may be of before the start. A command is held until all is ready.
        let runs_already = matches!(options.target, Target::Pid(_) | Target::System).then(info::now);
        let cpus = Arrivals::watch();
        let chosen = kernel::start(&wanted)?;
        let profiler = match options.profile {
            Some(profile) => {
                Some(Profiler::start(pid, wanted.follow_existing_threads, profile).map_err(Error::Profile)?)
            }
            None => None,
        };
        give_way::give_way();
        outlive_limits();
        let mut info: Info = info::gather(
            command,
            &options.taut_version,
            &chosen,
            asked.and_then(|asked| asked.join().ok()).unwrap_or_default(),
            runs_already.unwrap_or_else(info::now),
        );
        info.host = options.host_name.clone().unwrap_or(info.host);
        info.facts.extend(options.profile.map(|profile| ("profile".to_owned(), profile.to_string())));
        info.facts.sort();
        let output = Output::open(&options.output)?;
        let writer = Writer::create_compressed(output.path(), &info, options.compression);
        let mut writer = writer.map_err(|error| error.at(&options.output))?;
        writer.set_path(&options.output);
        writer.set_durable(options.durable);
        writer.set_pause(give_way::pause_if_due);
        let started = Started {
            pid,
            tier: chosen.tier,
            kernel_source: chosen.kernel_source,
            tier_reason: chosen.tier_reason,
            session: session.as_ref().map(|_| directory.to_owned()),
            is_preloaded: false,
        };
        let note = session.as_ref().and_then(|_| Note::leave(directory, pid, &options.output).ok());
        // A killed recorder may have left them; they are not this one's.
        note.iter().for_each(|_| saves::clear(directory));
        let flight = options.flight.clone().map(|flight| {
            let listed = note.as_ref().map(|_| directory);
            Keeper::new(flight, output.path(), listed, (info.start_monotonic_ns, own_cpu_ns()))
        });
        let flight = flight.transpose()?;
        let start_ns = info.start_monotonic_ns;
        let mut recording = Recording {
            output,
            _note: note,
            info,
            flight,
            writer: Some(writer),
            failed: None,
            telemetry: session.as_ref().map(|_| Channels::open(directory, wanted.follow_existing_threads)),
            ros: session.as_ref().map(|_| RosObjects::open(directory)),
            session,
            source: chosen.source,
            profiler,
            sampler: Sampler::new(pid),
            pids: Vec::new(),
            counters: native_counters(),
            root: if wanted.follow_existing_threads { pid } else { own_pid() },
            whole_system: wanted.whole_system,
            started,
            began: Instant::now(),
            duration: options.duration,
            from_first_stamp: options.from_first_stamp.clone(),
            not_first: Vec::new(),
            first_stamp: None,
            crashed: None,
            ending: Ending::default(),
            estimated: Vec::new(),
            warnings: Vec::new(),
            unsaid: HashSet::new(),
            hashes: RandomState::new(),
            told: HashSet::new(),
            strangers: HashMap::new(),
            cpus,
            preload: options.preload.map(|preload| (preload, HashMap::new())),
            installations: Default::default(),
            threads: Threads::default(),
            objects: if wanted.whole_system { Objects::of_many() } else { Objects::default() },
            pacer: Pacer::default(),
            next_scan_ns: 0,
            next_discover_ns: 0,
            next_second_ns: 0,
            next_clock_ns: 0,
            next_progress_ns: 0,
            last_progress: (start_ns, 0),
            looked_ns: start_ns,
        };
        recording.calibrate();
        Ok(recording)
    }

    /// What is recorded runs: whatever had the name of the output is replaced now. Where that fails the recording goes on beside its place.
    fn begin(&mut self) {
        if let Err(error) = self.output.put_in_place() {
            self.output.keep();
            self.warn(format!("the recording is not in its place yet: {error}"));
        }
    }

    fn follow_child(
        &mut self,
        child: &mut Child,
        signals: &mut Signals,
        progress: &mut dyn FnMut(&Progress),
    ) -> (i32, End) {
        let pid = child.id() as i32;
        let mut sweep: Option<Sweep> = None;
        let mut end = end_of(pid);
        let mut reason = End::Exit;
        loop {
            let pace = self.round(progress);
            let Ok(status) = child.try_wait() else { return (1, End::Lost) };
            let is_swept = sweep.as_mut().is_none_or(Sweep::step);
            if let Some(status) = status.filter(|_| is_swept) {
                // What a terminal sends reaches both at once.
                let ended = signals.take(None).to_end.map_or(reason, End::Signal);
                self.bury_orphans(pid);
                // A shell that SIGTERM ended says nothing of its program, which may have crashed on the same signal.
                let code = match (exit_code(status), self.crashed) {
                    (SHELL_TERMINATED, Some(signal)) if sweep.is_some() => 128 + signal,
                    (code, _) => code,
                };
                return (code, ended);
            }
            let asked = signals.take(status.is_none().then_some(pid));
            self.save_if_asked(&asked);
            let is_over = self.left().is_some_and(|left| left.is_zero());
            reason = match asked.to_end {
                Some(signal) => End::Signal(signal),
                None if is_over && sweep.is_none() => End::Duration,
                None => reason,
            };
            if sweep.is_none() && (is_over || asked.impatiently) {
                // The command may be a shell, and the program its child.
                sweep.insert(Sweep::new(GRACE)).step();
            }
            if status.is_some() {
                std::thread::sleep(tree::LOOK);
            } else {
                self.rest(pace, &mut end);
            }
        }
    }

    fn follow_pid(&mut self, pid: i32, signals: &mut Signals, progress: &mut dyn FnMut(&Progress)) -> End {
        let born = proc::start_time(&proc::line(format!("/proc/{pid}/stat")));
        let mut end = end_of(pid);
        loop {
            let pace = self.round(progress);
            if !proc::runs(pid, born) {
                return End::Exit;
            }
            let asked = signals.take(None);
            self.save_if_asked(&asked);
            if let Some(signal) = asked.to_end {
                return End::Signal(signal);
            }
            if self.left().is_some_and(|left| left.is_zero()) {
                return End::Duration;
            }
            self.rest(pace, &mut end);
        }
    }

    fn follow_system(&mut self, signals: &mut Signals, progress: &mut dyn FnMut(&Progress)) -> End {
        loop {
            let pace = self.round(progress);
            let asked = signals.take(None);
            self.save_if_asked(&asked);
            if let Some(signal) = asked.to_end {
                return End::Signal(signal);
            }
            if self.left().is_some_and(|left| left.is_zero()) {
                return End::Duration;
            }
            self.rest(pace, &mut None);
        }
    }

    /// Of the duration, as far as is known now: a first stamp may still come.
    fn left(&self) -> Option<Duration> {
        let from = match &self.from_first_stamp {
            Some(first) => self.first_stamp.unwrap_or(self.began + first.within),
            None => self.began,
        };
        self.duration.map(|duration| (from + duration).saturating_duration_since(Instant::now()))
    }

    /// Until the next round is due, the time is over, the process ends, or a signal comes.
    fn rest(&self, pace: Pace, end: &mut Option<OwnedFd>) {
        // Once it is over, what was asked to end is waited for.
        let left = self.left().filter(|left| !left.is_zero());
        let rest = pace.rest().min(left.unwrap_or(Duration::MAX));
        if rest.is_zero() {
            give_way::begin(true);
            return;
        }
        let mut ends: Vec<PollFd<'_>> = end.iter().map(|end| PollFd::new(end, PollFlags::IN)).collect();
        let is_end = poll(&mut ends, Timespec::try_from(rest).ok().as_ref()).is_ok_and(|ended| ended > 0);
        give_way::begin(false);
        drop(ends);
        if is_end {
            // Once is enough: until somebody else, who traces it, has waited for it, it would say so again and again.
            *end = None;
        }
    }

    /// One turn of everything that is due; returns how soon the next one is.
    fn round(&mut self, progress: &mut dyn FnMut(&Progress)) -> Pace {
        let (now_ns, mut pace) = (monotonic_ns(), Pace::Calm);
        if now_ns >= self.next_scan_ns {
            self.next_scan_ns = now_ns + SCAN_NS;
            self.scan(now_ns);
            self.sample_quotas(now_ns);
        }
        if now_ns >= self.next_second_ns {
            self.next_second_ns = now_ns + SECOND_NS;
            self.sampler.sample(now_ns).iter().for_each(|record| self.write(record));
            self.look_for_room();
            self.look_for_cpus();
        }
        if now_ns >= self.next_clock_ns {
            let elapsed = self.began.elapsed().as_nanos() as u64;
            self.next_clock_ns = now_ns + elapsed.clamp(FIRST_CLOCK_NS, SECOND_NS);
            self.calibrate();
        }
        if now_ns >= self.next_discover_ns {
            self.next_discover_ns = now_ns + DISCOVER_NS;
            pace = self.discover();
        }
        let drained = self.session.as_mut().map(Session::drain).unwrap_or_default();
        pace = pace.max(drained.pace);
        self.take(drained);
        self.drain_ros_objects();
        pace = pace.max(self.drain_telemetry());
        if self.source.is_some() || self.profiler.is_some() {
            // The kernel's rings may be small, and do not say how full they were.
            pace = pace.max(Pace::Lively);
        }
        let pace = self.pacer.after(pace);
        self.drain_kernel();
        self.drain_profile(now_ns);
        self.look_up_threads();
        let next_ns = now_ns + pace.rest().as_nanos() as u64;
        self.with_writer(|writer| writer.flush_due_until(now_ns, next_ns));
        self.keep_the_window(now_ns);
        if now_ns >= self.next_progress_ns {
            self.next_progress_ns = now_ns + PROGRESS_NS;
            let now = self.progress(now_ns);
            progress(&now);
        }
        self.looked_ns = now_ns;
        pace
    }

    /// A thread that finds no room for a ring counts its losses in its process's file. A process that finds none for that has no place
    /// to count them in.
    fn look_for_room(&mut self) {
        let Some(session) = &self.started.session else { return };
        let Ok(there) = rustix::fs::statvfs(session) else { return };
        let (room, session) = (there.f_bavail.saturating_mul(there.f_frsize), session.display().to_string());
        match room {
            0..ROOM_FOR_A_FILE if self.told.insert("full") => {
                let why =
                    format!("{session}: its file system is full: stamps of a process that began since are not counted");
                self.lose(Uncounted { what: LostWhat::Stamps, place: "session".to_owned(), why });
            }
            ROOM_FOR_A_FILE..ROOM_FOR_A_PROCESS if self.told.insert("almost full") => {
                self.note(format!(
                    "{session}: its file system is almost full: threads that began since may have no room"
                ));
            }
            _ => {}
        }
    }

    /// A CPU that comes online has no ring yet.
    fn look_for_cpus(&mut self) {
        if self.source.is_none() && self.profiler.is_none() {
            return;
        }
        for (cpu, was_there) in self.cpus.look() {
            let lacks = [
                (LostWhat::KernelEvents, self.source.as_mut().is_some_and(|source| !source.takes_cpu(cpu, was_there))),
                (LostWhat::Samples, self.profiler.is_some() && !was_there),
            ];
            for (what, _) in lacks.into_iter().filter(|(_, is_missing)| *is_missing) {
                let events = if what == LostWhat::Samples { "samples of stacks" } else { "kernel events" };
                let why = format!("CPU {cpu} came online during the recording: its {events} are missing from then on");
                self.lose(Uncounted { what, place: format!("cpu {cpu} online"), why });
            }
        }
    }

    fn discover(&mut self) -> Pace {
        let mut drained = Drained::default();
        if let Some(session) = &mut self.session {
            session.discover(&mut drained);
        }
        if let Some(channels) = &mut self.telemetry {
            channels.discover(&mut drained.refused);
        }
        if let Some(ros) = &mut self.ros {
            ros.discover(&mut drained.refused);
        }
        let pace = drained.pace;
        self.take(drained);
        pace
    }

    /// Takes what processes said of their ROS 2 handles.
    fn drain_ros_objects(&mut self) {
        let Some(ros) = &mut self.ros else { return };
        let drained = ros.drain();
        drained.objects.into_iter().for_each(|object| self.write(&Record::RosObject(object)));
        for (place, count) in drained.lost {
            self.lost(LostWhat::RosEvents, place, count);
        }
        drained.uncounted.into_iter().for_each(|lost| self.lose(lost));
        drained.refused.into_iter().for_each(|refusal| self.warn(refusal));
    }

    /// Takes what the telemetry rings hold; returns how soon to look again.
    fn drain_telemetry(&mut self) -> Pace {
        let (Some(channels), Some(writer)) = (&mut self.telemetry, &mut self.writer) else { return Pace::Calm };
        let drained = channels.drain(writer);
        self.ending.telemetry += drained.messages;
        for (place, count) in drained.lost {
            self.lost(LostWhat::Telemetry, place, count);
        }
        drained.uncounted.into_iter().for_each(|lost| self.lose(lost));
        drained.refused.into_iter().for_each(|refusal| self.warn(refusal));
        if let Some(error) = drained.failed {
            self.stop_writing(error);
        }
        drained.pace
    }

    fn sample_quotas(&mut self, now_ns: u64) {
        // Those of all processes of a machine would be too many to read.
        let tree = if self.whole_system { &[][..] } else { &self.pids };
        self.sampler.sample_quotas(tree, now_ns).iter().for_each(|record| self.write(record));
    }

    /// Clears up after threads and processes that are gone, and looks for threads of the tree that are new
    /// or were renamed.
    fn scan(&mut self, now_ns: u64) {
        if self.root == own_pid() && !self.whole_system {
            self.bury_orphans(self.started.pid);
        }
        let drained = self.session.as_mut().map(Session::reap).unwrap_or_default();
        self.take(drained);
        if let Some(channels) = &mut self.telemetry {
            channels.note_dead();
        }
        if let Some(ros) = &mut self.ros {
            ros.note_dead();
        }
        let mut pids = match self.whole_system {
            true => proc::all(),
            false => proc::tree(self.root).unwrap_or_default(),
        };
        pids.extend(self.session.iter().flat_map(Session::pids));
        pids.sort_unstable();
        pids.dedup();
        pids.retain(|pid| *pid != own_pid());
        self.objects.keep(&pids);
        self.look_who_may_enter(&pids);
        self.look_who_is_not_preloaded(&pids);
        self.threads.forget_gone();
        for pid in &pids {
            for thread in self.threads.scan(*pid, now_ns) {
                self.write(&Record::Thread(thread));
            }
            give_way::pause_if_due();
            let (objects, warning) = self.objects.scan(*pid, now_ns);
            objects.into_iter().for_each(|object| self.write(&Record::Object(object)));
            warning.into_iter().for_each(|warning| self.warn(warning));
        }
        self.pids = pids;
    }

    /// The session is its user's alone: a process that gave its rights up before its first stamp cannot enter it, and no counter has what
    /// it loses. Only root's processes may do so. One that is not told of the session stamps nothing.
    fn look_who_may_enter(&mut self, pids: &[i32]) {
        let (Some(session), Some(path)) = (&self.session, &self.started.session) else { return };
        if self.told.contains("another user") || !rustix::process::geteuid().is_root() {
            return;
        }
        let Ok(directory) = std::fs::metadata(path) else { return };
        self.strangers.retain(|pid, _| pids.contains(pid));
        let within = session.pids();
        let user_of = |pid: i32| proc::uids(pid)?.last().copied().filter(|user| *user != 0 && *user != directory.uid());
        let mut found = None;
        for pid in pids.iter().filter(|pid| !within.contains(pid)) {
            let Some(user) = user_of(*pid) else { continue };
            let looks = self.strangers.entry(*pid).or_default();
            match *looks {
                // Between a fork and an exec the environment is that of the process that forked. A second look knows more.
                0 if proc::is_starting(*pid) => *looks = 1,
                0 | 1 => {
                    *looks = 2;
                    let named = told_session(*pid).and_then(|named| std::fs::metadata(named).ok());
                    if named.is_some_and(|named| (named.dev(), named.ino()) == (directory.dev(), directory.ino())) {
                        found = Some((*pid, user));
                    }
                }
                _ => {}
            }
        }
        let Some((pid, user)) = found else { return };
        let why = format!(
            "process {pid} ({}) runs as user {user}, who may not enter {}: what processes of that user stamp is neither recorded nor \
             counted; start it by itself with TAUT_SESSION=DIR, a directory of that user (mode 700), and record it by --pid",
            proc::line(format!("/proc/{pid}/comm")),
            path.display()
        );
        self.told.insert("another user");
        self.lose(Uncounted { what: LostWhat::Stamps, place: format!("process {pid}"), why });
    }

    /// The loader ignores LD_PRELOAD for some programs, without a word. Looked at once, when a process has loaded what it needs.
    fn look_who_is_not_preloaded(&mut self, pids: &[i32]) {
        const LOOK: u32 = 6;
        let Some((preload, seen)) = &mut self.preload else { return };
        seen.retain(|pid, _| pids.contains(pid));
        let (name, mut found) = (preload.file_name, Vec::new());
        let is_attached = self.root != own_pid();
        for pid in pids {
            let looks = seen.entry(*pid).or_default();
            *looks = looks.saturating_add(1);
            let mapped = if *looks == LOOK { proc::mapped(*pid) } else { None };
            let Some(mapped) = mapped.filter(|mapped| mapped.path("librcl.so").is_some()) else { continue };
            let why = match mapped.path(name) {
                Some(_) => self.installations.not_recorded(*pid, &mapped, *preload),
                None if is_attached => Some(format!(
                    "is a ROS 2 node that was started without {name}, so its events are not recorded: start it where `taut ros2 env` \
                     has set the environment, or by `taut record -- COMMAND`"
                )),
                None => Some(format!(
                    "is a ROS 2 node without {name}, so its events are not recorded: its program has file capabilities or the \
                     set-user-ID bit (take them away with setcap -r, and give rights by AmbientCapabilities= or RLIMIT_RTPRIO), or \
                     its environment was cleared"
                )),
            };
            found.extend(why.map(|why| (*pid, why)));
        }
        for (pid, what) in found {
            self.note(format!("process {pid} ({}) {what}", proc::line(format!("/proc/{pid}/comm"))));
        }
    }

    fn take(&mut self, drained: Drained) {
        let fresh = self.session.as_mut().map(|s| s.names().take_fresh()).unwrap_or_default();
        self.look_for_first_stamp(&fresh, &drained);
        fresh.into_iter().for_each(|name| self.write(&Record::Name(name)));
        for batch in drained.batches {
            self.write(&Record::Stamps(batch));
        }
        for batch in drained.ros {
            self.write(&Record::Ros(batch));
        }
        for (place, count) in drained.lost_ros {
            self.lost(LostWhat::RosEvents, place, count);
        }
        for (place, count) in drained.lost {
            self.lost(LostWhat::Stamps, place, count);
        }
        for (place, count) in drained.lost_telemetry {
            self.lost(LostWhat::Telemetry, place, count);
        }
        drained.uncounted.into_iter().for_each(|lost| self.lose(lost));
        drained.refused.into_iter().for_each(|refusal| self.warn(refusal));
    }

    /// Or for the first callback of a ROS 2 node.
    fn look_for_first_stamp(&mut self, names: &[Name], drained: &Drained) {
        let Some(FirstStamp { except, .. }) = &self.from_first_stamp else { return };
        if self.first_stamp.is_some() {
            return;
        }
        self.not_first.extend(names.iter().filter(|name| except.contains(&name.name.as_str())).map(|name| name.id));
        let counts = |(kind, point): (&u8, &u32)| *kind == Kind::Stamp as u8 && !self.not_first.contains(point);
        let is_stamped = drained.batches.iter().any(|batch| batch.kind.iter().zip(&batch.point).any(counts));
        if is_stamped || drained.ros.iter().any(|batch| batch.event.contains(&(RosEvent::CallbackStart as u8))) {
            self.first_stamp = Some(Instant::now());
        }
    }

    fn drain_kernel(&mut self) {
        let Some(mut source) = self.source.take() else { return };
        let mut batches = Vec::new();
        if let Err(error) = source.drain(&mut |batch| batches.push(batch)) {
            self.note(format!("kernel events: {error}"));
        }
        for batch in batches {
            self.threads.notice(&batch);
            self.objects.notice(&batch);
            self.write(&Record::Kernel(batch));
        }
        for (place, count) in source.lost() {
            self.lost(LostWhat::KernelEvents, place, count);
        }
        self.source = Some(source);
    }

    /// Asks for the names of threads that kernel events or samples brought up.
    fn look_up_threads(&mut self) {
        for thread in self.threads.look_up(monotonic_ns()) {
            self.write(&Record::Thread(thread));
        }
    }

    fn drain_profile(&mut self, now_ns: u64) {
        let Some(profiler) = &mut self.profiler else { return };
        let (records, lost, is_of_tree) = (profiler.drain(now_ns), profiler.lost(), profiler.is_of_tree());
        self.take_profile(&records, lost, is_of_tree);
    }

    fn finish_profile(&mut self) {
        let Some(mut profiler) = self.profiler.take() else { return };
        profiler.without_kernel().into_iter().for_each(|warning| self.warn(warning));
        let (records, amiss) = profiler.finish();
        amiss.into_iter().for_each(|warning| self.warn(warning));
        self.take_profile(&records, profiler.lost(), profiler.is_of_tree());
    }

    fn take_profile(&mut self, records: &[Record], lost: Vec<(String, u64)>, is_of_tree: bool) {
        for record in records {
            if let Record::Profile(batch) = record {
                self.threads.notice_sampled(batch, is_of_tree);
            }
            self.write(record);
        }
        lost.into_iter().for_each(|(place, count)| self.lost(LostWhat::Samples, place, count));
    }

    /// Counters are read after each look at the rings: what is new was lost since the look before.
    fn lost(&mut self, what: LostWhat, place: String, count: u64) {
        self.lost_of(what, place, count, false);
    }

    fn lost_of(&mut self, what: LostWhat, place: String, count: u64, is_estimate: bool) {
        if is_estimate && !self.estimated.contains(&what) {
            self.estimated.push(what);
        }
        let (since_ns, time_ns) = (self.looked_ns, monotonic_ns());
        self.write(&Record::Lost(Lost { since_ns, time_ns, what, place, count, is_estimate }));
    }

    /// One at least is lost, and perhaps all of a file. Why, is a note.
    fn lose(&mut self, lost: Uncounted) {
        self.note(lost.why);
        self.lost_of(lost.what, lost.place, 1, true);
    }

    /// Warnings name files and processes of others: they must not write on a terminal what they like.
    fn warn(&mut self, warning: String) {
        let warning = printable(warning);
        if self.warnings.contains(&warning) {
            return;
        }
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(warning);
        } else if self.unsaid.len() < MOST_UNSAID {
            self.unsaid.insert(self.hashes.hash_one(&warning));
        }
    }

    /// A warning that who reads the file must know, too.
    fn note(&mut self, text: String) {
        let text = printable(text);
        self.keep_note(text.clone());
        self.warn(text);
    }

    fn keep_note(&mut self, text: String) {
        if self.ending.notes.len() < MOST_WARNINGS && !self.ending.notes.contains(&text) {
            self.ending.notes.push(text);
        }
    }

    /// How many warnings were too many, as the last one.
    fn say_the_unsaid(&mut self) {
        if !self.unsaid.is_empty() {
            let or_more = if self.unsaid.len() < MOST_UNSAID { "" } else { " or more" };
            let text = format!("{}{or_more} further warnings are not kept", self.unsaid.len());
            self.ending.notes.push(text.clone());
            self.warnings.push(text);
        }
    }

    fn calibrate(&mut self) {
        for counter in self.counters.clone() {
            self.write(&Record::Clock(counter, ClockPair::take(counter)));
        }
    }

    /// Of a flight recorder: cuts the stream where that is due, and gives back what is too old.
    fn keep_the_window(&mut self, now_ns: u64) {
        let Some(flight) = &mut self.flight else { return };
        flight.poll();
        if flight.wants_seam(now_ns, flight.length()) {
            self.seam(now_ns);
        }
        let warning = self.flight.as_mut().and_then(|flight| flight.give_back(now_ns, flight.length()).1);
        warning.into_iter().for_each(|warning| self.warn(warning));
    }

    fn seam(&mut self, now_ns: u64) {
        let mut at = None;
        self.with_writer(|writer| writer.seam().map(|place| at = Some(place)));
        if let (Some(at), Some(flight)) = (at, &mut self.flight) {
            flight.seam(at, now_ns, own_cpu_ns());
        }
        // The stretch to come has its own calibration.
        self.calibrate();
    }

    fn save_if_asked(&mut self, asked: &Asked) {
        let Some(flight) = &mut self.flight else { return };
        if let Some(why) = flight.is_asked(asked.to_save.then_some("a signal")) {
            self.take_all();
            self.save(why, None);
        }
    }

    /// Begins a save of the window up to now.
    fn save(&mut self, why: String, exit_code: Option<i32>) {
        if let (Some(flight), Some(error)) = (&mut self.flight, &self.failed) {
            let text = format!("nothing was recorded since its memory failed: {error}");
            return flight.refuse(why, NotSaved { errno: NotSaved::from_source(error).errno, text });
        }
        self.calibrate();
        self.seam(monotonic_ns());
        let places = self.profiler.as_ref().map(Profiler::places).unwrap_or_default();
        let lacks = self.lacks();
        if let Some(flight) = &mut self.flight {
            flight.save(why, &self.info, places, exit_code, lacks);
        }
    }

    /// What a save that begins now lacks, as is known.
    fn lacks(&self) -> Lacks {
        let of_session = self.session.as_ref().map(Session::missing).unwrap_or_default();
        let of_telemetry = self.telemetry.as_ref().map(Channels::missing).unwrap_or_default();
        let of_ros = self.ros.as_ref().map(RosObjects::missing).unwrap_or_default();
        let uncounted: Vec<Uncounted> = of_session.into_iter().chain(of_telemetry).chain(of_ros).collect();
        let mut notes = self.ending.notes.clone();
        let others = uncounted.iter().map(|lost| printable(lost.why.clone())).filter(|why| !notes.contains(why));
        let others: Vec<String> = others.take(MOST_WARNINGS).collect();
        notes.extend(others);
        Lacks { notes, uncounted }
    }

    /// What happened until now and lies in rings.
    fn take_all(&mut self) {
        let now_ns = monotonic_ns();
        self.discover();
        self.scan(now_ns);
        let drained = self.session.as_mut().map(Session::drain).unwrap_or_default();
        self.take(drained);
        self.drain_ros_objects();
        self.drain_telemetry();
        self.drain_kernel();
        self.drain_profile(now_ns);
        self.look_up_threads();
        self.sampler.sample(now_ns).iter().for_each(|record| self.write(record));
        self.sample_quotas(now_ns);
    }

    fn write(&mut self, record: &Record) {
        self.ending.count(record);
        if let Some(flight) = &mut self.flight {
            flight.notice(record);
        }
        self.with_writer(|writer| writer.write(record));
        give_way::pause_if_due();
    }

    /// After a failed write (a full disk) nothing more is written, and the command runs on.
    fn with_writer(&mut self, act: impl FnOnce(&mut Writer) -> Result<(), taut_recording::Error>) {
        if let Some(Err(error)) = self.writer.as_mut().map(act) {
            self.stop_writing(error);
        }
    }

    /// Nothing more is written. What a flight recorder holds is saved: it is all that there will be.
    fn stop_writing(&mut self, error: taut_recording::Error) {
        self.writer = None;
        let lacks = self.lacks();
        if let Some(flight) = &mut self.flight {
            let places = self.profiler.as_ref().map(Profiler::places).unwrap_or_default();
            // As far as it was written; what is cut off there is reported as damage.
            flight.seam(flight.length(), monotonic_ns(), own_cpu_ns());
            let why = format!("its memory failed, and the recording ends there ({error})");
            flight.save(why, &self.info, places, None, lacks);
        }
        self.failed = Some(error);
    }

    fn progress(&mut self, now_ns: u64) -> Progress {
        let (before_ns, before) = std::mem::replace(&mut self.last_progress, (now_ns, self.ending.stamps));
        let seconds = now_ns.saturating_sub(before_ns).max(1) as f64 / 1e9;
        Progress {
            elapsed: self.began.elapsed(),
            stamps: self.ending.stamps,
            stamps_per_s: (self.ending.stamps - before) as f64 / seconds,
            telemetry: self.ending.telemetry,
            lost_telemetry: self.ending.lost_telemetry,
            kernel_events: self.ending.kernel_events,
            lost_stamps: self.ending.lost_stamps,
            lost_kernel_events: self.ending.lost_kernel_events,
            ros_events: self.ending.ros_events,
            lost_ros_events: self.ending.lost_ros_events,
            lost_is_estimate: !self.estimated.is_empty(),
            file_bytes: length_of(self.output.path()),
            processes: self.session.as_ref().map_or(0, Session::processes),
            threads: self.threads.recorded(),
            is_over: false,
        }
    }

    /// Takes what is left everywhere and closes the file.
    fn finish(
        mut self,
        exit_code: Option<i32>,
        end: End,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Recorded, Error> {
        if let Some(source) = &mut self.source
            && let Err(error) = source.stop()
        {
            self.note(format!("kernel events: {error}"));
        }
        self.drain_kernel();
        self.finish_profile();
        self.look_up_threads();
        self.calibrate();
        // Processes that have ended give their descriptors back to files that found none.
        let mut drains = MOST_DRAINS;
        for _ in 0..MOST_DRAINS {
            let known = self.known_files();
            self.scan(monotonic_ns());
            self.drain_ros_objects();
            while drains > 0 && self.drain_telemetry() == Pace::Behind {
                drains -= 1;
            }
            self.discover();
            if known == self.known_files() {
                break;
            }
        }
        self.calibrate();
        // All that is in the rings now, however much that is; processes that outlive the command may go on for ever.
        self.session.iter_mut().for_each(Session::seal);
        loop {
            let drained = self.session.as_mut().map(Session::drain).unwrap_or_default();
            let done = drained.batches.is_empty() && drained.ros.is_empty();
            self.take(drained);
            if done {
                break;
            }
        }
        for _ in 0..MOST_DRAINS {
            if !self.ros.as_ref().is_some_and(RosObjects::has_more) {
                break;
            }
            self.drain_ros_objects();
        }
        // A ring is larger than what one drain takes; and what a process wrote before it died must not be cut off by a clock.
        for _ in 0..MOST_DRAINS {
            if self.drain_telemetry() < Pace::Behind {
                break;
            }
        }
        // What a file held that could not be opened is not known.
        let mut unread = self.session.as_ref().map(Session::unread).unwrap_or_default();
        unread.extend(self.telemetry.as_ref().map(Channels::unread).unwrap_or_default());
        unread.extend(self.ros.as_ref().map(RosObjects::unread).unwrap_or_default());
        unread.into_iter().for_each(|lost| self.lose(lost));
        self.calibrate();
        info::other_clock_source(&self.info.facts).into_iter().for_each(|changed| self.note(changed));
        self.warn_of_outliving(exit_code);
        self.with_writer(Writer::flush);
        let last = Progress { is_over: true, ..self.progress(monotonic_ns()) };
        progress(&last);
        let mut is_saved = true;
        if self.flight.is_some() {
            let why = self.flight.as_mut().and_then(|flight| {
                flight.end_save();
                flight.is_asked(crash(exit_code, end).as_deref())
            });
            why.into_iter().for_each(|why| self.save(why, exit_code));
            is_saved = self.flight.as_mut().is_none_or(Keeper::end_save);
        }
        self.ending.end_monotonic_ns = monotonic_ns();
        self.ending.exit_code = exit_code;
        self.ending.reason = end.reason(exit_code.is_some()).to_owned();
        self.ending.recorder_cpu_ns = own_cpu_ns();
        self.say_the_unsaid();
        if let Err(error) = self.output.put_in_place() {
            is_saved = false;
            // However many others there are.
            self.warnings.push(printable(format!("the recording is in {}: {error}", self.output.path().display())));
        }
        let written = match (self.failed, self.writer) {
            (Some(error), _) => Err(error),
            (None, Some(writer)) => writer.finish(&self.ending),
            (None, None) => Ok(0),
        };
        let damaged = self.flight.as_ref().map_or(0, Keeper::damaged);
        let (ending, estimated, warnings, tier) = (self.ending, self.estimated, self.warnings, self.started.tier);
        match written {
            Ok(file_bytes) => {
                Ok(Recorded { exit_code, end, is_saved, ending, estimated, damaged, file_bytes, tier, warnings })
            }
            Err(source) => {
                let file_bytes =
                    self.flight.as_ref().map_or_else(|| length_of(self.output.path()), |flight| flight.length());
                Err(Error::Stopped { source, file_bytes, exit_code, end })
            }
        }
    }

    fn bury_orphans(&mut self, child: i32) {
        self.crashed = proc::bury_orphans(child).or(self.crashed);
    }

    /// How many files of each kind were found so far, and how many are open: all are as before when none is left to find.
    fn known_files(&self) -> [Option<[usize; 2]>; 3] {
        let session = self.session.as_ref().map(Session::known);
        [session, self.telemetry.as_ref().map(Channels::known), self.ros.as_ref().map(RosObjects::known)]
    }

    fn warn_of_outliving(&mut self, exit_code: Option<i32>) {
        if exit_code.is_none() {
            return;
        }
        self.bury_orphans(0);
        let tree = proc::tree(own_pid()).unwrap_or_default();
        let left: Vec<i32> = tree.into_iter().filter(|p| *p != own_pid() && proc::runs(*p, None)).collect();
        let name = |pid: &i32| format!("{} ({pid})", proc::line(format!("/proc/{pid}/comm")));
        match left.as_slice() {
            [] => {}
            [one] => self.warn(format!("{} outlives the command and is no longer recorded", name(one))),
            [one, ..] => self.warn(format!(
                "{} processes of the tree outlive the command and are no longer recorded, among them {}",
                left.len(),
                name(one)
            )),
        }
    }
}

/// Why what was recorded ended, where it did so by itself and not well. How an attached process ended is not known.
fn crash(exit_code: Option<i32>, end: End) -> Option<String> {
    match (exit_code, end) {
        (None, End::Exit) => Some("the process ended".to_owned()),
        (Some(code), end) => failure(code, end == End::Exit).map(|how| format!("the program ended {how}")),
        _ => None,
    }
}

fn own_pid() -> i32 {
    std::process::id() as i32
}

fn length_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |m| m.len())
}

/// Becomes readable when the process ends; none on a kernel before 5.3, or where it has ended.
fn end_of(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
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
