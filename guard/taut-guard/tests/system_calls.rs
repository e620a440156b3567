//! After construction nothing calls the kernel: a child under strict seccomp, which the kernel kills at the first system
//! call other than exit, runs guard, watchdog and ledger to their end. (One test, one process: fork wants no threads.)
#![cfg(target_os = "linux")]

mod stream;

use stream::{ALL_COMBINED, MS, Motion, Stream, parameters};
use taut_guard::{
    SpeedGuard, TimeBase,
    ledger::{Fate, Ledger},
    watchdog::{DegradeChain, Report, Timeouts},
};

#[test]
fn nothing_calls_the_kernel() {
    assert_eq!(under_seccomp(|| work(20_000)), Ok(0));
    // And the trap works.
    assert_eq!(under_seccomp(|| _ = std::process::id()), Err(libc::SIGKILL));
}

fn work(frames: usize) {
    let mut stream = Stream::new(ALL_COMBINED, Motion::steady(0.95), 3);
    // The stream's heap is made before; only the frames go in.
    let mut guard: SpeedGuard = SpeedGuard::new(parameters(TimeBase::Source)).unwrap();
    let mut chain = DegradeChain::<12>::new(Timeouts::default(), 5).unwrap();
    let mut ledger = Ledger::<64>::new();
    let heard: Vec<_> = (0..frames).map(|_| stream.hear().frame).collect();
    enter_seccomp();
    chain.start(0).unwrap();
    for (n, frame) in heard.iter().enumerate() {
        let (n, now_ns) = (n as u64, (n as u64 + 1) * MS);
        guard.update(frame);
        guard.tick(frame.arrival_ns);
        (0..12).for_each(|servo| chain.reply(servo, if n > 9000 { Report::TimedOut } else { Report::Healthy }));
        chain.cycle(now_ns);
        ledger.produce(n, now_ns).unwrap();
        ledger.end(n, Fate::Passed, now_ns).unwrap();
        ledger.balance(now_ns).unwrap();
    }
    // Dropping would free, and freeing may call the kernel.
    std::mem::forget(heard);
    exit();
}

fn enter_seccomp() {
    // SAFETY: only this child is restricted.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) }, 0);
}

fn exit() -> ! {
    // SAFETY: exit, not exit_group, is what strict mode allows; the child has one thread.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!()
}

/// The exit code of a child that runs `run`, or the signal that killed it.
fn under_seccomp(run: impl FnOnce()) -> Result<i32, i32> {
    // SAFETY: the child runs on a copy of this thread alone, and ends by exit or signal.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        run();
        // Only the case that must die comes here.
        enter_seccomp();
        // SAFETY: getppid has no preconditions; the kernel answers with SIGKILL.
        unsafe { libc::getppid() };
        exit();
    }
    let mut status = 0;
    // SAFETY: `pid` is our child.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    if libc::WIFEXITED(status) { Ok(libc::WEXITSTATUS(status)) } else { Err(libc::WTERMSIG(status)) }
}
