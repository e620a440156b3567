//! The thread that follows a growing recording, or one of each of several hosts.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use taut_analysis::DeclaredChain;
use taut_clock::{monotonic_ns, realtime_ns};
use taut_points::hosts::{ClocksFrom, host_names};
use taut_recording::{GrowingRecording, Info};

use crate::{Guard, State, hosts::Hosts, keep::Keeping, turn::Turner};

/// Between two looks at the file.
const LOOK: Duration = Duration::from_millis(100);
/// What happened so long ago is in the file: rings and kernel are drained every 40 ms, chunks closed after 200 ms.
const LAG_NS: u64 = 600_000_000;
/// A turn may take one part in so many of a core between two turns; following the file and drawing take about as much besides.
const SHARE: u32 = 100;
/// Of several recordings, one that has not grown for so long is not waited for.
const SILENT: Duration = Duration::from_secs(4);
/// Between turns at most.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// What a speed guard in the robot reports.
const GUARD: [&str; 3] = ["guard.armed", "guard.trip", "guard.false_trip"];

/// What is followed, and how.
#[derive(Clone, Debug)]
pub struct Following {
    /// The recording, or one of each of several hosts, of which the first one's clock is used.
    pub recordings: Vec<Growing>,
    /// Chains that the user declares.
    pub chains: Vec<DeclaredChain>,
    /// Between two turns at least.
    pub turn: Duration,
    /// Whether to begin with the last seconds; else with the recording's first.
    pub is_late: bool,
    /// Whether the tail's causes are wanted: a third of the work.
    pub has_tail: bool,
    /// Names of the hosts, as the user gives them; else they are as recorded.
    pub hosts: Vec<String>,
    /// Where the offsets of the hosts' clocks come from, if the user says so.
    pub clocks: Option<ClocksFrom>,
}

/// A file that grows.
#[derive(Clone, Debug)]
pub struct Growing {
    /// Its place, for people as well.
    pub path: PathBuf,
    /// Whether it is not wanted: what is read of it gives its room back.
    pub eat: bool,
    /// Of another host's recording, which comes here as it is written: CLOCK_REALTIME there.
    pub realtime_ns: Option<u64>,
}

impl Growing {
    /// A file of this host that is kept.
    pub fn of(path: PathBuf) -> Growing {
        Growing { path, eat: false, realtime_ns: None }
    }
}

enum Request {
    Keep(PathBuf, Duration),
    /// The file holds all that happened.
    Finish,
    Stop,
}

/// Follows recordings until it is dropped.
pub struct Follower {
    state: Arc<Mutex<State>>,
    requests: Sender<Request>,
    thread: Option<JoinHandle<()>>,
}

/// Follows recordings in a thread of its own, which takes the CPU from no thread when it wakes, and keeps `state` as it is now.
///
/// # Errors
/// A file cannot be opened, and which one, or there can be no thread.
pub fn follow(following: Following, state: Arc<Mutex<State>>) -> Result<Follower, (PathBuf, std::io::Error)> {
    let followed = following
        .recordings
        .iter()
        .map(|growing| Followed::open(growing, following.is_late).map_err(|error| (growing.path.clone(), error)));
    let followed = followed.collect::<Result<Vec<Followed>, _>>()?;
    let path = following.recordings.first().map(|growing| growing.path.clone()).unwrap_or_default();
    let (requests, asked) = mpsc::channel();
    let shared = Arc::clone(&state);
    let body = move || {
        let _sentinel = Sentinel(&shared);
        taut_capture::give_way();
        let mut thread = Thread::new(following, followed, &shared);
        if let Err(failure) = thread.run(&asked) {
            lock(&shared).failure = Some(failure);
        }
    };
    let thread = std::thread::Builder::new().name("taut-live".to_owned()).spawn(body).map_err(|error| (path, error))?;
    Ok(Follower { state, requests, thread: Some(thread) })
}

impl Follower {
    /// What is known now; held only while it is read.
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Keeps what comes as a recording of its own; see [`State::keeping`].
    pub fn keep(&self, path: &Path, span: Duration) {
        // Without the thread there is a failure to be seen in the state.
        let _ = self.requests.send(Request::Keep(path.to_owned(), span));
    }

    /// Ends when everything that the file holds by now is counted: all that happened.
    pub fn finish(mut self) {
        let _ = self.requests.send(Request::Finish);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.requests.send(Request::Stop);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Of the whole process: the analysis has threads of its own. What others do meanwhile is little.
fn processor_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A panic of another thread leaves a state that is old, not one that is wrong.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A wait for the thread must not wait for one that is gone.
struct Sentinel<'a>(&'a Mutex<State>);

impl Drop for Sentinel<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.0).failure = Some("the analysis failed: a defect of taut".to_owned());
        }
    }
}

/// A file that is read as it grows.
struct Followed {
    path: PathBuf,
    tail: GrowingRecording,
    file: File,
    eat: bool,
    eaten: u64,
    /// When it grew last.
    grew: Instant,
}

impl Followed {
    fn open(growing: &Growing, is_late: bool) -> std::io::Result<Followed> {
        let file = File::options().read(true).write(growing.eat).open(&growing.path)?;
        let now_ns = growing.realtime_ns.unwrap_or_else(realtime_ns);
        let since_ns = if is_late { now_ns.saturating_sub(crate::turn::HORIZON_NS) } else { 0 };
        Ok(Followed {
            path: growing.path.clone(),
            tail: GrowingRecording::new(file.try_clone()?, since_ns),
            file,
            eat: growing.eat,
            eaten: 0,
            grew: Instant::now(),
        })
    }

    fn read(&mut self, host: usize, turner: &mut Turner) -> Result<(), String> {
        let failed = |error: taut_recording::Error| format!("{}: {error}", self.path.display());
        if self.tail.read(&mut |time_ns, record| turner.take_of(host, time_ns, record)).map_err(failed)? {
            self.grew = Instant::now();
        }
        self.eat();
        Ok(())
    }

    /// Gives back the room of what is read, whole pages of it. A file system that cannot do so keeps it all.
    fn eat(&mut self) {
        const PAGES: u64 = 1 << 20;
        let until = self.tail.position() / PAGES * PAGES;
        if self.eat && until > self.eaten {
            let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
            let _ = rustix::fs::fallocate(&self.file, flags, self.eaten, until - self.eaten);
            self.eaten = until;
        }
    }
}

struct Thread<'a> {
    following: Following,
    followed: Vec<Followed>,
    turner: Turner,
    /// Whether it is one recording, of this host.
    is_here: bool,
    state: &'a Mutex<State>,
    opened_ns: u64,
    /// Up to which messages are counted; 0 before the first turn.
    until_ns: u64,
}

impl<'a> Thread<'a> {
    fn new(following: Following, followed: Vec<Followed>, state: &'a Mutex<State>) -> Thread<'a> {
        let is_here = matches!(following.recordings.as_slice(), [only] if only.realtime_ns.is_none());
        Thread {
            turner: Turner::of_hosts(followed.len(), is_here, following.chains.clone(), following.has_tail),
            is_here,
            following,
            followed,
            state,
            opened_ns: monotonic_ns(),
            until_ns: 0,
        }
    }

    fn run(&mut self, asked: &mpsc::Receiver<Request>) -> Result<(), String> {
        let mut next = Instant::now() + self.following.turn;
        let mut is_last = false;
        loop {
            for (host, followed) in self.followed.iter_mut().enumerate() {
                followed.read(host, &mut self.turner)?;
            }
            let is_over = is_last || self.followed.iter().all(|of| of.tail.ending().is_some());
            if is_over || Instant::now() >= next {
                let turn = self.turn(is_last)?;
                next = Instant::now() + (turn * SHARE).clamp(self.following.turn, LONGEST_TURN);
            }
            if is_over {
                self.end_keeping(true);
                lock(self.state).ending = self.followed.iter().find_map(|of| of.tail.ending()).cloned();
                return Ok(());
            }
            self.end_keeping(false);
            match asked.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Request::Keep(path, span)) => self.keep(&path, span),
                Ok(Request::Finish) => is_last = true,
                Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    self.end_keeping(true);
                    return Ok(());
                }
            }
        }
    }

    /// Returns the processor time that it took. `is_last`: the files lag behind no more.
    fn turn(&mut self, is_last: bool) -> Result<Duration, String> {
        let infos: Option<Vec<Info>> = self.followed.iter().map(|of| of.tail.info().cloned()).collect();
        let Some(infos) = infos else {
            self.turner.forget_old();
            return Ok(Duration::ZERO);
        };
        let infos: Vec<&Info> = infos.iter().collect();
        let began_ns = processor_ns();
        let now_ns = match self.followed[0].tail.ending() {
            _ if !self.is_here => self.until(&infos, is_last)?,
            Some(ending) => Some(ending.end_monotonic_ns),
            None if is_last => Some(monotonic_ns()),
            None => Some(monotonic_ns().saturating_sub(LAG_NS)),
        };
        let Some(now_ns) = now_ns else { return Ok(Duration::from_nanos(processor_ns() - began_ns)) };
        if self.until_ns == 0 {
            self.until_ns = match (self.following.is_late, self.is_here) {
                (false, _) => infos[0].start_monotonic_ns,
                (true, true) => self.opened_ns,
                (true, false) => now_ns.saturating_sub(self.following.turn.as_nanos() as u64),
            };
        }
        if now_ns <= self.until_ns {
            self.turner.forget_old();
            return Ok(Duration::ZERO);
        }
        let values_of = |signal: &str| self.followed.iter().map(|of| of.tail.values_of(signal)).sum::<u64>();
        let [armed, trips, false_trips] = GUARD.map(values_of);
        let silent = self.followed.iter().enumerate().filter(|(_, of)| of.tail.ending().is_none());
        let silent = silent.max_by_key(|(_, of)| of.grew.elapsed());
        let silent = silent.map_or((0, 0), |(host, of)| (host, of.grew.elapsed().as_nanos() as u64));
        let silent_host = self.turner.host_name(silent.0).to_owned();
        let state = || {
            let mut state = lock(self.state);
            state.damaged_chunks = self.followed.iter().map(|of| of.tail.damaged()).sum();
            state.guard = Guard { is_armed: armed > 0, trips, false_trips };
            (state.silent_ns, state.silent_host) = (silent.1, silent_host);
            state
        };
        self.turner.turn(&infos, now_ns, state, self.until_ns);
        self.until_ns = now_ns;
        Ok(Duration::from_nanos(processor_ns() - began_ns))
    }

    /// Up to which moment of the first host's clock the files of all hosts are complete; `None`: nothing is known of the clocks yet.
    ///
    /// # Errors
    /// The hosts' names are not different.
    fn until(&mut self, infos: &[&Info], is_last: bool) -> Result<Option<u64>, String> {
        if infos.len() > 1 {
            let names = host_names(infos, &self.following.hosts)?;
            if let Err(why) = self.turner.align(infos, || Hosts::new(names, self.following.clocks)) {
                let mut state = lock(self.state);
                (state.info, state.unaligned, state.turns) = (Some(infos[0].clone()), Some(why), state.turns + 1);
                return Ok(None);
            }
        }
        let time_of = |(host, of): (usize, &Followed)| {
            let end_ns = of.tail.ending().map(|ending| ending.end_monotonic_ns);
            let lag_ns = if is_last { 0 } else { LAG_NS };
            let until_ns = end_ns.unwrap_or_else(|| self.turner.latest_ns(host).saturating_sub(lag_ns));
            self.turner.time(host, until_ns)
        };
        // One that ended, or is not heard of, holds up none of the others.
        let goes_on = |of: &Followed| of.tail.ending().is_none() && of.grew.elapsed() < SILENT;
        let hosts = || self.followed.iter().enumerate();
        let going = hosts().filter(|(_, of)| goes_on(of)).filter_map(time_of).min();
        Ok(going.or_else(|| hosts().filter_map(time_of).max()))
    }

    fn keep(&mut self, path: &Path, span: Duration) {
        if !self.is_here {
            let why = "the hosts' own recordings have it; join them".to_owned();
            lock(self.state).kept = Some(Err(why));
            return;
        }
        let Some(info) = self.followed[0].tail.info() else { return };
        let now_ns = monotonic_ns();
        let until_ns = now_ns + span.as_nanos() as u64;
        match Keeping::begin(path, info, &self.turner.known(), now_ns, until_ns) {
            Ok(keeping) => {
                let mut state = lock(self.state);
                (state.keeping, state.kept) = (Some(keeping.told()), None);
                self.turner.keeping = Some(keeping);
            }
            Err(error) => lock(self.state).kept = Some(Err(error.to_string())),
        }
    }

    /// Closes the file of [`Follower::keep`] when its time is over, or everything is.
    fn end_keeping(&mut self, is_over: bool) {
        let now_ns = monotonic_ns().saturating_sub(LAG_NS);
        if let Some(keeping) = self.turner.keeping.take_if(|keeping| is_over || keeping.is_over(now_ns)) {
            let kept = keeping.finish(now_ns);
            let mut state = lock(self.state);
            (state.keeping, state.kept) = (None, Some(kept));
        }
    }
}
