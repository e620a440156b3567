//! Threads that take messages from one queue, in any order, simulated.

use std::ops::Range;

use taut_recording::KernelEvent;

use super::{
    server::{HOLDER, LOCK, Service},
    *,
};

/// The threads of the pool, each on a CPU of its own, from [`FIRST_CPU`] on.
pub const POOL: [i32; 3] = [11, 13, 14];
const FIRST_CPU: u16 = 4;

/// What a thread of the pool is to do.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub id: u64,
    pub sent: u64,
    pub source: Source,
    pub is_urgent: bool,
}

/// Where a job comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The chain that is looked at.
    Own,
    /// Another one.
    Other,
    /// An interrupt: it has no id.
    Interrupt,
}

impl Source {
    /// Its thread and that thread's CPU.
    fn thread(self) -> (i32, u16) {
        match self {
            Source::Own => (10, 0),
            Source::Other => (20, 1),
            Source::Interrupt => (0, 3),
        }
    }
}

/// Which of those that wait is taken next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    Fifo,
    Lifo,
    UrgentFirst,
}

/// Jobs, in order of time, go to these threads. Events and stamps, and the latencies of the chain's own messages.
pub fn pool(
    jobs: &[Job],
    threads: Range<usize>,
    discipline: Discipline,
    mut service: impl FnMut(&Job, u64) -> Service,
) -> (Scene, Vec<u64>) {
    let mut scene = Scene::new();
    POOL[1..].iter().for_each(|tid| scene.thread(10, *tid, "robot", true));
    ["sent", "taken", "done"].iter().for_each(|name| _ = scene.name(name));
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 0, R, 20).switch(2, 0, 0, R, HOLDER);
    threads.clone().for_each(|nth| _ = scene.switch(FIRST_CPU + nth as u16, 0, 30, R, POOL[nth]));
    let mut free = [5u64; POOL.len()];
    let (mut waiting, mut next, mut latencies) = (Vec::new(), 0, Vec::new());
    for job in jobs {
        stamp(&mut scene, job, job.source.thread().0, job.sent, "sent");
    }
    while next < jobs.len() || !waiting.is_empty() {
        let nth = threads.clone().min_by_key(|nth| free[*nth]).unwrap();
        while next < jobs.len() && (jobs[next].sent <= free[nth] || waiting.is_empty()) {
            waiting.push(next);
            next += 1;
            if jobs[next - 1].sent > free[nth] {
                break;
            }
        }
        let taken = match discipline {
            Discipline::Fifo => 0,
            Discipline::Lifo => waiting.len() - 1,
            Discipline::UrgentFirst => waiting.iter().position(|at| jobs[*at].is_urgent).unwrap_or(0),
        };
        let job: &Job = &jobs[waiting.remove(taken)];
        let (tid, cpu) = (POOL[nth], FIRST_CPU + nth as u16);
        let mut now = free[nth].max(job.sent);
        if job.sent > free[nth] + 2 {
            scene.enter(cpu, free[nth], tid, libc::SYS_read, 4, 0).switch(cpu, free[nth] + 1, tid, S, 0);
            let (source, on) = job.source.thread();
            scene.enter(on, job.sent + 1, source, libc::SYS_write, 5, 0);
            scene.wake(on, job.sent + 2, source, if source == 0 { IRQ } else { 0 }, tid);
            scene.exit(on, job.sent + 3, source, libc::SYS_write);
            now += 23;
            scene.switch(cpu, now - 1, 0, R, tid).exit(cpu, now, tid, libc::SYS_read);
        }
        now += 2;
        stamp(&mut scene, job, tid, now, "taken");
        let Service { work, lock_until, .. } = service(job, now);
        now += work / 2;
        if lock_until > now + 4 {
            now = wait_for_lock_on(&mut scene, (cpu, tid), now, lock_until);
        }
        now += work - work / 2;
        stamp(&mut scene, job, tid, now, "done");
        latencies.extend((job.source == Source::Own).then_some(now - job.sent));
        free[nth] = now + 5;
    }
    let end = free.iter().max().unwrap() + 1000;
    scene.event(0, end, KernelEvent::SchedSwitch, 10, [0, S, 0]);
    (scene, latencies)
}

fn stamp(scene: &mut Scene, job: &Job, tid: i32, us: u64, point: &str) {
    match job.source {
        Source::Own => _ = scene.stamp(tid, us, job.id, point),
        Source::Other => _ = scene.stamp(tid, us, job.id, &format!("other.{point}")),
        Source::Interrupt => {}
    }
}

/// The same with a queue for each thread, which get the jobs in turn.
pub fn turns(jobs: &[Job], threads: usize, mut service: impl FnMut(&Job, u64) -> Service) -> (Scene, Vec<u64>) {
    let mut all: Option<(Scene, Vec<u64>)> = None;
    for nth in 0..threads {
        let own: Vec<Job> = jobs.iter().skip(nth).step_by(threads).copied().collect();
        let (scene, latencies) = pool(&own, nth..nth + 1, Discipline::Fifo, &mut service);
        match &mut all {
            None => all = Some((scene, latencies)),
            Some((whole, sum)) => {
                whole.events.extend(scene.events);
                whole.stamps.extend(scene.stamps);
                sum.extend(latencies);
            }
        }
    }
    all.unwrap()
}

/// As [`server::wait_for_lock`], of any thread.
fn wait_for_lock_on(scene: &mut Scene, (cpu, tid): (u16, i32), now: u64, until: u64) -> u64 {
    scene.enter(cpu, now, tid, libc::SYS_futex, LOCK, WAIT).switch(cpu, now + 1, tid, S, 0);
    scene.enter(2, until - 1, HOLDER, libc::SYS_futex, LOCK, WAKE);
    scene.wake(2, until, HOLDER, 0, tid).exit(2, until + 1, HOLDER, libc::SYS_futex);
    scene.switch(cpu, until + 10, 0, R, tid).exit(cpu, until + 11, tid, libc::SYS_futex);
    let now = until + 13;
    scene.enter(cpu, now - 1, tid, libc::SYS_futex, LOCK, WAKE).exit(cpu, now, tid, libc::SYS_futex);
    now
}

/// Messages of the chain, every third of which is urgent.
pub fn jobs(arrivals: &[u64]) -> Vec<Job> {
    let job = |(id, sent): (u64, &u64)| Job { id, sent: *sent, source: Source::Own, is_urgent: id % 3 == 0 };
    (1..).zip(arrivals).map(job).collect()
}

/// Jobs with others at their own times.
pub fn with_others(mut jobs: Vec<Job>, arrivals: &[u64], source: Source) -> Vec<Job> {
    let id = |nth: usize| 1_000_000 + nth as u64;
    let other = |(nth, sent): (usize, &u64)| Job { id: id(nth), sent: *sent, source, is_urgent: false };
    jobs.extend(arrivals.iter().enumerate().map(other));
    jobs.sort_by_key(|job| job.sent);
    jobs
}
