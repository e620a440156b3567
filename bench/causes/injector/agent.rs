//! Helpers of a kind, in a thread or a process of their own, that do one thing each time they are rung for.

use std::{
    ffi::CString,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

use crate::clock;

/// What agent and message loop tell each other; shared also across `fork`.
#[derive(Default)]
pub struct Mailbox {
    /// To the agent: how long.
    order_ns: AtomicU64,
    /// From the agent: it is in place since; 0: not yet.
    ready_ns: AtomicU64,
    /// From the agent: it did what it was told, at this moment, …
    ended_ns: AtomicU64,
    /// To the agent: that is enough.
    enough: AtomicU64,
    /// To the agent: how often it was felt.
    felt: AtomicU64,
}

impl Mailbox {
    pub fn ready(&self) {
        self.ready_ns.store(clock::monotonic_ns(), SeqCst);
    }
    pub fn ended(&self) {
        self.ended_ns.store(clock::monotonic_ns(), SeqCst);
    }
    pub fn feel(&self) {
        self.felt.fetch_add(1, SeqCst);
    }
    pub fn felt(&self) -> u64 {
        self.felt.load(SeqCst)
    }
    pub fn is_enough(&self) -> bool {
        self.enough.load(SeqCst) != 0
    }
}

pub struct Agent {
    pub mailbox: &'static Mailbox,
    bell: libc::c_int,
    pub pid: libc::pid_t,
}

impl Agent {
    /// Starts an agent called `name` as a process pinned to `cpu`.
    pub fn process(name: &str, cpu: usize, mut act: impl FnMut(u64, &Mailbox)) -> Agent {
        let (mailbox, bell) = (shared_mailbox(), pipe());
        let pid = fork(name, cpu, || {
            // SAFETY: the writing end is this process's copy; without it the reader sees the loop's end.
            unsafe { libc::close(bell.1) };
            answer(bell.0, mailbox, &mut act);
        });
        Agent { mailbox, bell: bell.1, pid }
    }

    /// Starts an agent as a thread of this process.
    pub fn thread(name: &str, cpu: usize, mut act: impl FnMut(u64, &Mailbox) + Send + 'static) -> Agent {
        let (mailbox, bell) = (shared_mailbox(), pipe());
        let body = move || {
            clock::pin(cpu);
            answer(bell.0, mailbox, &mut act);
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(body).expect("a thread can be started");
        Agent { mailbox, bell: bell.1, pid: 0 }
    }

    /// Has the agent act for so long.
    pub fn ring(&self, ns: u64) {
        self.mailbox.order_ns.store(ns, SeqCst);
        self.mailbox.ready_ns.store(0, SeqCst);
        self.mailbox.ended_ns.store(0, SeqCst);
        self.mailbox.enough.store(0, SeqCst);
        // SAFETY: writes one byte that exists.
        unsafe { libc::write(self.bell, [0u8].as_ptr().cast(), 1) };
    }

    /// When the agent got in place; waits for that.
    pub fn wait_ready(&self) -> u64 {
        wait(&self.mailbox.ready_ns)
    }

    /// When the agent had done; waits for that.
    pub fn wait_ended(&self) -> u64 {
        wait(&self.mailbox.ended_ns)
    }

    pub fn is_ready(&self) -> bool {
        self.mailbox.ready_ns.load(SeqCst) != 0
    }

    pub fn has_ended(&self) -> bool {
        self.mailbox.ended_ns.load(SeqCst) != 0
    }

    pub fn enough(&self) {
        self.mailbox.enough.store(1, SeqCst);
    }
}

/// Runs `body` in a forked process that ends with this one.
pub fn fork(name: &str, cpu: usize, body: impl FnOnce()) -> libc::pid_t {
    // SAFETY: this process has one thread still, so its child may do what it likes.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid > 0 {
        return pid;
    }
    clock::pin(cpu);
    let name = CString::new(name).expect("names have no zero byte");
    // SAFETY: the name outlives the call; no memory is touched by the others.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        body();
        libc::_exit(0)
    }
}

pub fn pipe() -> (libc::c_int, libc::c_int) {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0, "no pipe to be had");
    (ends[0], ends[1])
}

/// Memory that this process and its children share, zeroed, for good.
pub fn shared<T>() -> *mut T {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping that nobody else knows.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<T>().max(4096), protection, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED, "no shared memory to be had");
    memory.cast()
}

fn shared_mailbox() -> &'static Mailbox {
    // SAFETY: zeros are a mailbox, and the mapping is never given back.
    unsafe { &*shared::<Mailbox>() }
}

fn answer(bell: libc::c_int, mailbox: &Mailbox, act: &mut impl FnMut(u64, &Mailbox)) {
    let mut byte = [0u8];
    // SAFETY: reads one byte into one byte.
    while unsafe { libc::read(bell, byte.as_mut_ptr().cast(), 1) } == 1 {
        act(mailbox.order_ns.load(SeqCst), mailbox);
    }
}

fn wait(moment: &AtomicU64) -> u64 {
    loop {
        match moment.load(SeqCst) {
            0 => clock::sleep_ns(20_000),
            moment => return moment,
        }
    }
}
