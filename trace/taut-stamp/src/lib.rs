//! Stamp messages from inside a robot process, at the cost of reading a counter.
//!
//! ```
//! use taut_stamp::{applied, outcome, stamp};
//!
//! fn on_setpoint(id: u64, safe: bool) {
//!     stamp!("control.received", id);
//!     if !safe {
//!         outcome(id, "joint_limit");
//!         return;
//!     }
//!     stamp!("control.written", id);
//!     applied(id);
//! }
//! on_setpoint(1, true);
//! ```
//!
//! Without a session (`TAUT_SESSION`) each call is one relaxed load and a branch. With one,
//! a stamp takes no lock, makes no system call and allocates nothing after a thread's first;
//! [`prepare_thread`] takes that first step ahead of time. Nothing here ever fails or blocks
//! the robot: what cannot be kept is counted ([`status`]). The bytes are those of
//! `docs/reference/protocol.md`; this crate knows nothing of recorders.

/// The atomics that the ring works with; its loom test puts loom's here.
mod atomic {
    pub use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}
mod layout;
mod process;
#[expect(dead_code, reason = "the consumer's half is here for the tests; capture reads files it does not trust")]
mod ring;
pub mod telemetry;
mod thread;

use atomic::{AtomicU32, Ordering};
use std::path::Path;

/// CLOCK_MONOTONIC now, in nanoseconds: the clock of intended times.
pub use taut_clock::monotonic_ns;

const STAMP: u32 = 1;
const BEGIN: u32 = 2;
const END: u32 = 3;
const OUTCOME: u32 = 4;
const VALUE: u32 = 5;
const LOCK_WAIT: u32 = 6;
const LOCK_ACQUIRED: u32 = 7;
const LOCK_NAMED: u32 = 8;

/// A named place: a hop point, a piece of work, a signal, a lock or a reason. Make it a
/// `static`; its name is looked up once.
#[derive(Debug)]
pub struct Point {
    name: &'static str,
    /// Id + 1, so that a name that the table refused is remembered too; 0 until looked up.
    kept: AtomicU32,
}

impl Point {
    /// The place called `name`, at most 119 bytes.
    pub const fn new(name: &'static str) -> Point {
        Point { name, kept: AtomicU32::new(0) }
    }

    /// The message passed here.
    #[inline(always)]
    pub fn stamp(&self, message_id: u64) {
        self.write(STAMP, message_id, 0);
    }

    /// The message passed here now and was due at `intended_ns`, CLOCK_MONOTONIC: the moment that a periodic loop was to be
    /// woken, or a source was to send. So a late start shows as lateness of this message. 0: no such time. Costs what
    /// [`Point::stamp`] costs.
    ///
    /// ```
    /// static RELEASED: taut_stamp::Point = taut_stamp::Point::new("loop.released");
    /// const PERIOD_NS: u64 = 1_000_000;
    /// let mut due_ns = taut_stamp::monotonic_ns();
    /// for cycle in 0..3 {
    ///     due_ns += PERIOD_NS;
    ///     // Here the loop sleeps until due_ns.
    ///     RELEASED.stamp_at(cycle, due_ns);
    /// }
    /// ```
    #[inline(always)]
    pub fn stamp_at(&self, message_id: u64, intended_ns: u64) {
        self.write(STAMP, message_id, intended_ns);
    }

    /// The message passed here at an earlier moment, in ticks of [`counter`]: for what is known only afterwards,
    /// such as when a timer was due. Costs some nanoseconds more than [`Point::stamp`].
    pub fn stamp_with_ticks(&self, message_id: u64, ticks: u64) {
        if !thread::is_off() {
            thread::write_at(self.id(), STAMP, message_id, 0, Some(ticks));
        }
    }

    /// Work that is not a message's begins here.
    #[inline(always)]
    pub fn begin(&self) {
        self.write(BEGIN, 0, 0);
    }

    /// That work ends.
    #[inline(always)]
    pub fn end(&self) {
        self.write(END, 0, 0);
    }

    /// The signal has this value now.
    #[inline(always)]
    pub fn value(&self, value: f64) {
        self.write(VALUE, 0, value.to_bits());
    }

    /// About to take the lock of this name.
    #[inline(always)]
    pub fn lock_wait(&self) {
        self.write(LOCK_WAIT, 0, 0);
    }

    /// The lock is taken.
    #[inline(always)]
    pub fn lock_acquired(&self) {
        self.write(LOCK_ACQUIRED, 0, 0);
    }

    /// The message ended with this reason; "applied" is the good one.
    #[inline(always)]
    pub fn outcome(&self, message_id: u64) {
        if !thread::is_off() {
            let kept = self.kept.load(Ordering::Relaxed);
            if kept == 0 || !thread::write(0, OUTCOME, message_id, u64::from(kept - 1)) {
                self.write_slowly(OUTCOME, message_id, 0);
            }
        }
    }

    #[inline(always)]
    fn write(&self, kind: u32, message_id: u64, value: u64) {
        if !thread::is_off() {
            let kept = self.kept.load(Ordering::Relaxed);
            if kept == 0 || !thread::write(kept - 1, kind, message_id, value) {
                self.write_slowly(kind, message_id, value);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn write_slowly(&self, kind: u32, message_id: u64, value: u64) {
        let id = self.id();
        let (point, value) = if kind == OUTCOME { (0, u64::from(id)) } else { (id, value) };
        thread::write_slowly(point, kind, message_id, value);
    }

    fn id(&self) -> u32 {
        match self.kept.load(Ordering::Relaxed) {
            0 => {
                let Some(id) = intern(self.name) else { return 0 };
                self.kept.store(id + 1, Ordering::Relaxed);
                id
            }
            kept => kept - 1,
        }
    }
}

/// Stamps a message at a point given by a string literal.
#[macro_export]
macro_rules! stamp {
    ($name:literal, $message_id:expr) => {{
        static POINT: $crate::Point = $crate::Point::new($name);
        POINT.stamp($message_id)
    }};
}

/// As [`stamp!`] of a message that was due at a moment of CLOCK_MONOTONIC: [`Point::stamp_at`].
#[macro_export]
macro_rules! stamp_at {
    ($name:literal, $message_id:expr, $intended_ns:expr) => {{
        static POINT: $crate::Point = $crate::Point::new($name);
        POINT.stamp_at($message_id, $intended_ns)
    }};
}

/// The message ended, not applied, for this reason. Looks the reason up by a scan of the name
/// table (tens of ns); keep a `static` [`Point`] and call [`Point::outcome`] where that matters.
pub fn outcome(message_id: u64, reason: &str) {
    if !thread::is_off() {
        write(0, OUTCOME, message_id, u64::from(intern(reason).unwrap_or(0)));
    }
}

/// The message reached its goal.
pub fn applied(message_id: u64) {
    static APPLIED: Point = Point::new("applied");
    APPLIED.outcome(message_id);
}

/// Waits on `lock` are reported by this name from now on: by its address, which kernel events have when a thread
/// waits. For what holds its futex word inside itself, as `std::sync::Mutex` and `RwLock` do; waiters of
/// `parking_lot`'s locks sleep on words of their own. Once, where the lock has come to its place; a lock that
/// moves is named again.
///
/// ```
/// let sdk = std::sync::Arc::new(std::sync::Mutex::new(()));
/// taut_stamp::name_lock("sdk_lock", &*sdk);
/// ```
///
/// The name comes first, as everywhere:
///
/// ```compile_fail
/// let sdk = std::sync::Mutex::new(());
/// taut_stamp::name_lock(&sdk, "sdk_lock");
/// ```
pub fn name_lock<T: ?Sized>(name: &str, lock: &T) {
    name_lock_at(name, core::ptr::from_ref(lock).cast::<u8>().addr() as u64, size_of_val(lock) as u64);
}

/// As [`name_lock`] for a lock of which only the place is known: for bindings.
pub fn name_lock_at(name: &str, address: u64, bytes: u64) {
    if !thread::is_off() {
        write(intern(name).unwrap_or(0), LOCK_NAMED, bytes, address);
    }
}

/// Takes this thread's one slow step now (claims its ring and maps it in). True when the
/// thread will stamp; false without a session or when it could not be had.
pub fn prepare_thread() -> bool {
    !thread::is_off() && thread::claim()
}

/// Uses `session` instead of `TAUT_SESSION`. Returns whether the process is attached now;
/// a process that already is stays where it is.
pub fn attach(session: &Path) -> bool {
    process::attach(session)
}

/// The session directory in use, or to be used: that given to [`attach`], else `TAUT_SESSION`.
pub fn session() -> Option<std::path::PathBuf> {
    process::session()
}

/// To be called by a child made by raw `clone`, before it stamps; `fork` does it by itself.
pub fn after_fork() {
    process::forget();
}

/// How stamping stands in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// A ring file is in use.
    pub attached: bool,
    /// Stamps lost by this process since it attached.
    pub lost: u64,
}

/// How stamping stands; attaches if nothing was tried yet.
pub fn status() -> Status {
    Status { attached: process::process().is_some(), lost: process::lost() }
}

/// The counter whose ticks this process's stamps carry; `None` without a session.
pub fn counter() -> Option<taut_clock::Counter> {
    process::process().map(|process| process.counter())
}

/// The id of a name in this process's table, for bindings that cache by themselves; 0 for good when the
/// table refused it. `None` without a session: ask again.
pub fn intern(name: &str) -> Option<u32> {
    process::process().map(|process| process.intern(name))
}

/// Writes one record with ids from [`intern`]: for bindings. `kind` as in the protocol.
#[inline(always)]
pub fn write(point: u32, kind: u32, message_id: u64, value: u64) {
    if !thread::is_off() && !thread::write(point, kind, message_id, value) {
        thread::write_slowly(point, kind, message_id, value);
    }
}

/// True without a session: bindings may skip their own work.
#[inline(always)]
pub fn is_off() -> bool {
    thread::is_off()
}
