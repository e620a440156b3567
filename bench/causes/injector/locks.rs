//! Locks that somebody else holds when the message wants them.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use crate::{
    agent::{Agent, Mailbox, shared},
    clock::{monotonic_ns, sleep_ns},
    kinds::Kind,
    options::Options,
};

/// The message's own work until it wants the lock, at the most.
const LEAD_NS: u64 = 150_000;

/// A mutex of the standard library, held over a sleep by another thread.
pub struct ThreadLock {
    lock: Arc<Mutex<u64>>,
    holder: Agent,
    asked_ns: u64,
}

impl ThreadLock {
    pub fn new(options: &Options) -> ThreadLock {
        let lock = Arc::new(Mutex::new(0));
        taut_stamp::name_lock("thread_lock", &*lock);
        let theirs = lock.clone();
        let hold = move |ns: u64, mailbox: &Mailbox| {
            let guard = theirs.lock().unwrap_or_else(PoisonError::into_inner);
            mailbox.ready();
            sleep_ns(ns);
            mailbox.ended();
            drop(guard);
        };
        ThreadLock { lock, holder: Agent::thread("holder", options.other_cpu, hold), asked_ns: 0 }
    }
}

impl Kind for ThreadLock {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("lock_thread", "lock", "thread_lock")
    }
    fn prepare(&mut self, ns: u64) {
        self.holder.ring(ns + LEAD_NS);
        self.holder.wait_ready();
    }
    fn strike(&mut self, _ns: u64) {
        self.asked_ns = monotonic_ns();
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }
    fn usual(&mut self) {
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }
    fn settle(&mut self) -> u64 {
        self.holder.wait_ended().saturating_sub(self.asked_ns)
    }
}

/// A mutex that processes share, held over a sleep by another process.
pub struct ProcessLock {
    lock: *mut libc::pthread_mutex_t,
    holder: Agent,
    asked_ns: u64,
}

impl ProcessLock {
    pub fn new(options: &Options) -> ProcessLock {
        let lock = shared::<libc::pthread_mutex_t>();
        // SAFETY: the attributes are initialised before use, and the mutex lies in memory that stays.
        unsafe {
            let mut attributes = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut attributes);
            libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutex_init(lock, &attributes);
        }
        let name = move || {
            taut_stamp::name_lock_at("process_lock", lock.addr() as u64, size_of::<libc::pthread_mutex_t>() as u64);
        };
        let named = AtomicBool::new(false);
        let hold = move |ns: u64, mailbox: &Mailbox| {
            if !named.swap(true, SeqCst) {
                name();
            }
            // SAFETY: the mutex was initialised before the fork.
            unsafe { libc::pthread_mutex_lock(lock) };
            mailbox.ready();
            sleep_ns(ns);
            mailbox.ended();
            // SAFETY: held by this thread.
            unsafe { libc::pthread_mutex_unlock(lock) };
        };
        let holder = Agent::process("holder", options.other_cpu, hold);
        name();
        ProcessLock { lock, holder, asked_ns: 0 }
    }

    fn take_and_release(&self) {
        // SAFETY: initialised, and released by the thread that took it.
        unsafe {
            libc::pthread_mutex_lock(self.lock);
            libc::pthread_mutex_unlock(self.lock);
        }
    }
}

impl Kind for ProcessLock {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("lock_process", "lock", "process_lock")
    }
    fn prepare(&mut self, ns: u64) {
        self.holder.ring(ns + LEAD_NS);
        self.holder.wait_ready();
    }
    fn strike(&mut self, _ns: u64) {
        self.asked_ns = monotonic_ns();
        self.take_and_release();
    }
    fn usual(&mut self) {
        self.take_and_release();
    }
    fn settle(&mut self) -> u64 {
        self.holder.wait_ended().saturating_sub(self.asked_ns)
    }
}
