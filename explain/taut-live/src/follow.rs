//! The thread that follows a growing recording.

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
use taut_recording::GrowingRecording;

use crate::{Guard, State, keep::Keeping, turn::Turner};

/// Between two looks at the file.
const LOOK: Duration = Duration::from_millis(100);
/// What happened so long ago is in the file: rings and kernel are drained every 40 ms, chunks closed after 200 ms.
const LAG_NS: u64 = 600_000_000;
/// A turn may take one part in so many of a core between two turns; following the file takes a third of a per cent besides.
const SHARE: u32 = 65;
/// Between turns at most.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// What a speed guard in the robot reports.
const GUARD: [&str; 3] = ["guard.armed", "guard.trip", "guard.false_trip"];

/// What is followed, and how.
#[derive(Clone, Debug)]
pub struct Following {
    /// The recording.
    pub path: PathBuf,
    /// Chains that the user declares.
    pub chains: Vec<DeclaredChain>,
    /// Between two turns at least.
    pub turn: Duration,
    /// Whether to begin with the last seconds; else with the recording's first.
    pub is_late: bool,
    /// Whether the tail's causes are wanted: a third of the work.
    pub has_tail: bool,
    /// Whether the file is not wanted: what is read of it gives its room back.
    pub eat: bool,
}

enum Request {
    Keep(PathBuf, Duration),
    /// The file holds all that happened.
    Finish,
    Stop,
}

/// Follows a recording until it is dropped.
pub struct Follower {
    state: Arc<Mutex<State>>,
    requests: Sender<Request>,
    thread: Option<JoinHandle<()>>,
}

/// Follows a recording in a thread of its own, which gives way to everybody, and keeps `state` as it is now.
///
/// # Errors
/// The file cannot be opened, or there can be no thread.
pub fn follow(following: Following, state: Arc<Mutex<State>>) -> std::io::Result<Follower> {
    let file = File::options().read(true).write(following.eat).open(&following.path)?;
    let tail = file.try_clone()?;
    let (requests, asked) = mpsc::channel();
    let shared = Arc::clone(&state);
    let body = move || {
        let _sentinel = Sentinel(&shared);
        taut_capture::give_way();
        let mut thread = Thread::new(following, file, tail, &shared);
        if let Err(failure) = thread.run(&asked) {
            lock(&shared).failure = Some(failure);
        }
    };
    let thread = std::thread::Builder::new().name("taut-live".to_owned()).spawn(body)?;
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

struct Thread<'a> {
    following: Following,
    tail: GrowingRecording,
    file: File,
    turner: Turner,
    state: &'a Mutex<State>,
    opened_ns: u64,
    /// Up to which messages are counted; 0 before the first turn.
    until_ns: u64,
    eaten: u64,
    /// When the file grew last.
    grew: Instant,
}

impl<'a> Thread<'a> {
    fn new(following: Following, file: File, tail: File, state: &'a Mutex<State>) -> Thread<'a> {
        let since_ns = if following.is_late { realtime_ns().saturating_sub(crate::turn::HORIZON_NS) } else { 0 };
        Thread {
            turner: Turner::new(following.chains.clone(), following.has_tail),
            following,
            tail: GrowingRecording::new(tail, since_ns),
            file,
            state,
            opened_ns: monotonic_ns(),
            until_ns: 0,
            eaten: 0,
            grew: Instant::now(),
        }
    }

    fn run(&mut self, asked: &mpsc::Receiver<Request>) -> Result<(), String> {
        let mut next = Instant::now() + self.following.turn;
        let mut is_last = false;
        loop {
            let failed = |error: taut_recording::Error| format!("{}: {error}", self.following.path.display());
            let turner = &mut self.turner;
            if self.tail.read(&mut |time_ns, record| turner.take(time_ns, record)).map_err(failed)? {
                self.grew = Instant::now();
            }
            self.eat();
            let is_over = is_last || self.tail.ending().is_some();
            if is_over || Instant::now() >= next {
                let turn = self.turn(is_last);
                next = Instant::now() + (turn * SHARE).clamp(self.following.turn, LONGEST_TURN);
            }
            if is_over {
                self.end_keeping(true);
                lock(self.state).ending = self.tail.ending().cloned();
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

    /// Returns the processor time that it took. `is_last`: the file lags behind no more.
    fn turn(&mut self, is_last: bool) -> Duration {
        let Some(info) = self.tail.info().cloned() else { return Duration::ZERO };
        let now_ns = match self.tail.ending() {
            Some(ending) => ending.end_monotonic_ns,
            None if is_last => monotonic_ns(),
            None => monotonic_ns().saturating_sub(LAG_NS),
        };
        if self.until_ns == 0 {
            self.until_ns = if self.following.is_late { self.opened_ns } else { info.start_monotonic_ns };
        }
        if now_ns <= self.until_ns {
            return Duration::ZERO;
        }
        let began_ns = processor_ns();
        let [armed, trips, false_trips] = GUARD.map(|signal| self.tail.values_of(signal));
        let state = || {
            let mut state = lock(self.state);
            state.damaged_chunks = self.tail.damaged();
            state.guard = Guard { is_armed: armed > 0, trips, false_trips };
            state.silent_ns = self.grew.elapsed().as_nanos() as u64;
            state
        };
        self.turner.turn(&info, now_ns, state, self.until_ns);
        self.until_ns = now_ns;
        Duration::from_nanos(processor_ns() - began_ns)
    }

    /// Gives back the room of what is read, whole pages of it. A file system that cannot do so keeps it all.
    fn eat(&mut self) {
        const PAGES: u64 = 1 << 20;
        let until = self.tail.position() / PAGES * PAGES;
        if self.following.eat && until > self.eaten {
            let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
            let _ = rustix::fs::fallocate(&self.file, flags, self.eaten, until - self.eaten);
            self.eaten = until;
        }
    }

    fn keep(&mut self, path: &Path, span: Duration) {
        let Some(info) = self.tail.info() else { return };
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
