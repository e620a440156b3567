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
use taut_recording::Tail;

use crate::{State, keep::Keeping, turn::Turner};

/// Between two looks at the file.
const LOOK: Duration = Duration::from_millis(100);
/// What happened so long ago is in the file: rings and kernel are drained every 20 ms, chunks closed after 200 ms.
const LAG_NS: u64 = 600_000_000;
/// A turn may take one part in so many of the time between two turns.
const SHARE: u32 = 100;
/// Between turns at most.
const LONGEST_TURN: Duration = Duration::from_secs(10);

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
    /// Whether nobody wants the file: what is read of it gives its room back.
    pub eat: bool,
}

enum Request {
    Keep(PathBuf, Duration),
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
    let (requests, asked) = mpsc::channel();
    let shared = Arc::clone(&state);
    let body = move || {
        taut_capture::give_way();
        let mut thread = Thread::new(following, file, &shared);
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
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.requests.send(Request::Stop);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A panic of another thread leaves a state that is old, not one that is wrong.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

struct Thread<'a> {
    following: Following,
    tail: Tail,
    file: File,
    turner: Turner,
    state: &'a Mutex<State>,
    /// Up to which messages are counted; 0 before the first turn.
    until_ns: u64,
    eaten: u64,
}

impl<'a> Thread<'a> {
    fn new(following: Following, file: File, state: &'a Mutex<State>) -> Thread<'a> {
        let since_ns = if following.is_late { realtime_ns().saturating_sub(crate::turn::HORIZON_NS) } else { 0 };
        let tail = file.try_clone().expect("a descriptor");
        Thread {
            turner: Turner::new(following.chains.clone()),
            following,
            tail: Tail::new(tail, since_ns),
            file,
            state,
            until_ns: 0,
            eaten: 0,
        }
    }

    fn run(&mut self, asked: &mpsc::Receiver<Request>) -> Result<(), String> {
        let mut next = Instant::now() + self.following.turn;
        loop {
            let failed = |error: taut_recording::Error| format!("{}: {error}", self.following.path.display());
            let turner = &mut self.turner;
            self.tail.read(&mut |time_ns, record| turner.take(time_ns, record)).map_err(failed)?;
            self.eat();
            let is_over = self.tail.ending().is_some();
            if is_over || Instant::now() >= next {
                let turn = self.turn();
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
                Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    self.end_keeping(true);
                    return Ok(());
                }
            }
        }
    }

    /// Returns how long it took.
    fn turn(&mut self) -> Duration {
        let Some(info) = self.tail.info().cloned() else { return Duration::ZERO };
        let now_ns = self.tail.ending().map_or_else(|| monotonic_ns().saturating_sub(LAG_NS), |e| e.end_monotonic_ns);
        if self.until_ns == 0 {
            let late_ns = self.following.turn.as_nanos() as u64;
            self.until_ns =
                if self.following.is_late { now_ns.saturating_sub(late_ns) } else { info.start_monotonic_ns };
        }
        if now_ns <= self.until_ns {
            return Duration::ZERO;
        }
        let began = Instant::now();
        self.turner.turn(&info, now_ns, || lock(self.state), self.until_ns);
        lock(self.state).damaged_chunks = self.tail.damaged();
        self.until_ns = now_ns;
        began.elapsed()
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
