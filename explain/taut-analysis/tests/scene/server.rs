//! A source that keeps its times and a thread that takes its messages one by one, simulated.

use taut_recording::KernelEvent;

use super::*;

/// The source and the thread that handles its messages, each on a CPU of its own, and who holds the lock.
pub const SOURCE: i32 = 10;
pub const SERVER: i32 = 11;
pub const HOLDER: i32 = 12;
pub const LOCK: i64 = 0x1010;

/// What the server does for a message, in µs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Service {
    pub work: u64,
    /// Until when the lock is held if the server wants it then.
    pub lock_until: u64,
    /// The hog has the CPU for that long.
    pub preempted: u64,
}

/// A source that sends at `arrivals`; the server takes the messages in order. Events and stamps, and the latencies.
pub fn run(arrivals: &[u64], mut service: impl FnMut(usize, u64) -> Service) -> (Scene, Vec<u64>) {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, SOURCE).switch(1, 0, 30, R, 0).switch(2, 0, 0, R, HOLDER);
    let (mut free, mut latencies) = (0, Vec::new());
    for (at, sent) in arrivals.iter().copied().enumerate() {
        let id = at as u64 + 1;
        scene.stamp(SOURCE, sent, id, "sent");
        let mut now = free;
        if free <= sent {
            // The server waits for data, and is woken by the source.
            scene.enter(1, free, SERVER, libc::SYS_read, 4, 0).switch(1, free + 1, SERVER, S, 0);
            scene.enter(0, sent + 1, SOURCE, libc::SYS_write, 5, 0).wake(0, sent + 2, SOURCE, 0, SERVER);
            scene.exit(0, sent + 3, SOURCE, libc::SYS_write);
            scene.switch(1, sent + 22, 0, R, SERVER).exit(1, sent + 23, SERVER, libc::SYS_read);
            now = sent + 23;
        }
        now = handle(&mut scene, now, id, service(at, now + 2));
        latencies.push(now - sent);
        // What it does behind the last stamp.
        free = now + 5;
    }
    scene.event(0, free + 1000, KernelEvent::SchedSwitch, SOURCE, [0, S, 0]);
    (scene, latencies)
}

/// The server takes the message 2 µs after `now`, and is done with it when this returns.
pub fn handle(scene: &mut Scene, now: u64, id: u64, service: Service) -> u64 {
    let Service { work, lock_until, preempted } = service;
    scene.stamp(SERVER, now + 2, id, "taken");
    let mut now = now + 2 + work / 2;
    if preempted > 0 {
        scene.switch(1, now, SERVER, R, 30).switch(1, now + preempted, 30, R, SERVER);
        now += preempted;
    }
    if lock_until > now + 4 {
        now = wait_for_lock(scene, now, lock_until);
    }
    now += work - work / 2;
    scene.stamp(SERVER, now, id, "done");
    now
}

/// The server wants the lock at `now` and has had it when this returns; the holder lets go at `until`.
pub fn wait_for_lock(scene: &mut Scene, now: u64, until: u64) -> u64 {
    scene.enter(1, now, SERVER, libc::SYS_futex, LOCK, WAIT).switch(1, now + 1, SERVER, S, 0);
    scene.enter(2, until - 1, HOLDER, libc::SYS_futex, LOCK, WAKE);
    scene.wake(2, until, HOLDER, 0, SERVER).exit(2, until + 1, HOLDER, libc::SYS_futex);
    scene.switch(1, until + 10, 0, R, SERVER).exit(1, until + 11, SERVER, libc::SYS_futex);
    // A thread that waited for a mutex wakes the next one when it lets go.
    let now = until + 13;
    scene.enter(1, now - 1, SERVER, libc::SYS_futex, LOCK, WAKE).exit(1, now, SERVER, libc::SYS_futex);
    now
}

/// The nearest rank.
pub fn quantile(values: &[u64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[(q * sorted.len() as f64).ceil() as usize - 1] as f64
}

/// Exponential times from a multiplicative generator (Lewis, Goodman and Miller 1969).
pub fn poisson(n: usize, mean_us: f64, seed: u64) -> Vec<u64> {
    let (mut state, mut at) = (seed, 1000.0);
    (0..n)
        .map(|_| {
            state = state * 16_807 % 2_147_483_647;
            at -= mean_us * (state as f64 / 2_147_483_647.0).ln();
            at as u64
        })
        .collect()
}
