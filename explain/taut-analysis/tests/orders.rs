//! Queues that are no single line: messages that overtake others, pools of threads, and threads that do other things besides. The truth is
//! known: the same arrivals are simulated without the cause.

use taut_analysis::{Cause, ExplainOptions, Explained};
use taut_recording::{KernelEvent, Kind};

mod scene;

use scene::{pool::*, server::*, *};

const SEEDS: [u64; 3] = [3, 5, 7];

fn share(explained: &Explained, cause: Cause) -> f64 {
    explained.by_cause.iter().filter(|share| share.cause == cause).map(|share| share.tail_share).sum()
}

/// Of the chain that begins with "sent".
fn explained(scene: &Scene, without: &str) -> Explained {
    let wanted = ExplainOptions { without: vec![vec![without.into()]], ..ExplainOptions::default() };
    let analysis = scene.analyse(wanted);
    analysis.chains.iter().find(|chain| chain.points[0].name == "sent").unwrap().explained.clone()
}

/// All quantiles of the prediction are within so much of the truth, or 30 µs.
fn predicts(explained: &Explained, without: &str, truth: &[u64], within: f64, what: &str) {
    let found = explained.predictions.iter().find(|w| w.without == without).unwrap();
    assert!(found.is_replayed && !found.quantiles.is_empty());
    for predicted in &found.quantiles {
        let truth = quantile(truth, predicted.quantile);
        let error = predicted.after_ns as f64 / 1e3 - truth;
        assert!(error.abs() <= (within * truth).max(30.0), "{what}: {predicted:?}, in truth {truth} µs");
    }
}

fn at_least(least: f64, explained: &Explained, cause: Cause, what: &str) {
    assert!(share(explained, cause) >= least, "{what}: {:?}", explained.by_cause);
}

/// Every 46 ms the lock is held for 6 ms.
fn held(now: u64) -> u64 {
    if now % 46_000 < 6_000 { now - now % 46_000 + 6_000 } else { 0 }
}

fn work(job: &Job) -> u64 {
    180 + job.id * 7919 % 41
}

const OVERTAKING: [Discipline; 2] = [Discipline::Lifo, Discipline::UrgentFirst];

fn overtaking(mut check: impl FnMut(Discipline, f64, Vec<Job>, String)) {
    for (discipline, seed) in OVERTAKING.into_iter().flat_map(|order| SEEDS.map(|seed| (order, seed))) {
        for load in [0.3, 0.6] {
            let jobs = jobs(&poisson(5000, 200.0 / load, seed));
            check(discipline, load, jobs, format!("{discipline:?}, load {load}, seed {seed}"));
        }
    }
}

#[test]
fn what_messages_that_are_overtaken_wait_for_is_the_lock_that_made_the_backlog() {
    overtaking(|discipline, load, jobs, what| {
        let with = |job: &Job, now| Service { work: work(job), lock_until: held(now), ..Service::default() };
        let (scene, _) = pool(&jobs, 0..1, discipline, with);
        let (_, truth) = pool(&jobs, 0..1, discipline, |job, _| Service { work: work(job), ..Service::default() });
        let explained = explained(&scene, "lock:0x1010");
        predicts(&explained, "lock:0x1010", &truth, 0.15, &what);
        at_least(if load < 0.5 { 0.9 } else { 0.75 }, &explained, Cause::Lock, &what);
    });
}

#[test]
fn longer_work_for_some_messages_is_work_whichever_goes_first() {
    overtaking(|discipline, load, jobs, what| {
        let work = |job: &Job| if job.id.is_multiple_of(90) { 5000 } else { 200 };
        let (scene, _) = pool(&jobs, 0..1, discipline, |job, _| Service { work: work(job), ..Service::default() });
        let (_, truth) = pool(&jobs, 0..1, discipline, |_, _| Service { work: 200, ..Service::default() });
        let explained = explained(&scene, "cpu");
        predicts(&explained, "cpu", &truth, 0.15, &what);
        at_least(if load < 0.5 { 0.9 } else { 0.75 }, &explained, Cause::Cpu, &what);
    });
}

#[test]
fn too_much_load_is_load_whichever_goes_first() {
    for (discipline, seed) in OVERTAKING.into_iter().flat_map(|order| SEEDS.map(|seed| (order, seed))) {
        let jobs = jobs(&poisson(5000, 215.0, seed));
        let what = format!("{discipline:?}, seed {seed}");
        let (scene, truth) = pool(&jobs, 0..1, discipline, |_, _| Service { work: 200, ..Service::default() });
        let explained = explained(&scene, "irq");
        at_least(0.95, &explained, Cause::Queued, &what);
        // Nothing is removed.
        predicts(&explained, "irq", &truth, 0.0, &what);
    }
}

/// In each hold of the lock one thread waits for it, for 10 ms.
fn one_waits() -> impl FnMut(&Job, u64) -> Service {
    let mut last = 0;
    move |job, now| {
        let waits = held(now) > 0 && last != now / 46_000;
        last = if waits { now / 46_000 } else { last };
        Service { work: 2 * work(job), lock_until: if waits { held(now) + 4_000 } else { 0 }, ..Service::default() }
    }
}

fn many(mut check: impl FnMut(usize, Vec<Job>, String)) {
    for (threads, load) in [(2, 0.3), (2, 0.7), (3, 0.3), (3, 0.7)] {
        for seed in SEEDS {
            let jobs = jobs(&poisson(5000, 400.0 / load / threads as f64, seed));
            check(threads, jobs, format!("{threads} threads, load {load}, seed {seed}"));
        }
    }
}

#[test]
fn a_pool_waits_for_what_one_of_its_threads_is_held_up_by() {
    many(|threads, jobs, what| {
        let (scene, _) = pool(&jobs, 0..threads, Discipline::Fifo, one_waits());
        let without = |job: &Job, _| Service { work: 2 * work(job), ..Service::default() };
        let (_, truth) = pool(&jobs, 0..threads, Discipline::Fifo, without);
        let explained = explained(&scene, "lock:0x1010");
        predicts(&explained, "lock:0x1010", &truth, 0.05, &what);
        at_least(0.88, &explained, Cause::Lock, &what);
    });
}

#[test]
fn threads_that_have_a_queue_each_are_no_pool() {
    many(|threads, jobs, what| {
        let (scene, _) = turns(&jobs, threads, one_waits());
        let (_, truth) = turns(&jobs, threads, |job, _| Service { work: 2 * work(job), ..Service::default() });
        let explained = explained(&scene, "lock:0x1010");
        predicts(&explained, "lock:0x1010", &truth, 0.15, &what);
        at_least(0.75, &explained, Cause::Lock, &what);
    });
}

#[test]
fn too_much_load_of_a_pool_is_load() {
    for seed in SEEDS {
        let jobs = jobs(&poisson(5000, 210.0, seed));
        let (scene, truth) = pool(&jobs, 0..2, Discipline::Fifo, |_, _| Service { work: 400, ..Service::default() });
        let explained = explained(&scene, "irq");
        at_least(0.98, &explained, Cause::Queued, &format!("seed {seed}"));
        predicts(&explained, "irq", &truth, 0.01, &format!("seed {seed}"));
    }
}

/// The thread does something else besides, for 1.5 ms each time.
fn besides(mut check: impl FnMut(Vec<Job>, f64, String)) {
    for (source, seed) in [Source::Other, Source::Interrupt].into_iter().flat_map(|of| SEEDS.map(|seed| (of, seed))) {
        for load in [0.2, 0.5] {
            let own = poisson(6000, 200.0 / load, seed);
            let others = poisson(own[5999] as usize / 8000, 8000.0, seed + 10);
            let jobs = with_others(jobs(&own), &others, source);
            // What has no id is part of the message that is taken behind it, and moves with it.
            let within = if source == Source::Interrupt { 0.2 } else { 0.1 };
            check(jobs, within, format!("{source:?}, load {load}, seed {seed}"));
        }
    }
}

fn work_besides(job: &Job) -> u64 {
    if job.source == Source::Own { work(job) } else { 1500 }
}

#[test]
fn what_the_thread_does_besides_stays_where_a_lock_goes() {
    besides(|jobs, within, what| {
        let with = |job: &Job, now| Service { work: work_besides(job), lock_until: held(now), ..Service::default() };
        let (scene, _) = pool(&jobs, 0..1, Discipline::Fifo, with);
        let without = |job: &Job, _| Service { work: work_besides(job), ..Service::default() };
        let (_, truth) = pool(&jobs, 0..1, Discipline::Fifo, without);
        predicts(&explained(&scene, "lock:0x1010"), "lock:0x1010", &truth, within, &what);
    });
}

#[test]
fn a_lock_that_only_other_work_waits_for_is_what_messages_wait_for() {
    besides(|jobs, within, what| {
        let lock_until = |job: &Job, now| if job.source == Source::Own { 0 } else { held(now) };
        let with = |job: &Job, now| Service {
            work: work_besides(job),
            lock_until: lock_until(job, now),
            ..Service::default()
        };
        let (scene, _) = pool(&jobs, 0..1, Discipline::Fifo, with);
        let without = |job: &Job, _| Service { work: work_besides(job), ..Service::default() };
        let (_, truth) = pool(&jobs, 0..1, Discipline::Fifo, without);
        predicts(&explained(&scene, "lock:0x1010"), "lock:0x1010", &truth, within, &what);
    });
}

/// A source that is due every 400 µs and puts messages into a queue of `room`: where it is full the source waits until the server has
/// taken one. Events and stamps, and the latencies since messages were due.
fn bounded(n: u64, room: usize, mut service: impl FnMut(u64, u64) -> Service) -> (Scene, Vec<u64>) {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, SOURCE).switch(1, 0, 0, R, SERVER).switch(2, 0, 0, R, HOLDER);
    let (mut now, mut free, mut taken, mut latencies) = (5, 5, Vec::new(), Vec::new());
    for id in 1..=n {
        let due = 10_000 + id * 400;
        if now < due {
            scene.enter(0, now, SOURCE, libc::SYS_clock_nanosleep, 1, 1);
            scene.event(0, now, KernelEvent::TimerStart, SOURCE, [(due * US) as i64, (due * US) as i64, 0]);
            scene.switch(0, now + 1, SOURCE, S, 0).wake(0, due, 0, IRQ, SOURCE).switch(0, due + 5, 0, R, SOURCE);
            now = due + 6;
            scene.exit(0, now, SOURCE, libc::SYS_clock_nanosleep);
        }
        scene.mark(SOURCE, now + 1, id, "made", Kind::Stamp, due * US);
        scene.enter(0, now + 2, SOURCE, libc::SYS_write, 5, 0);
        now += 4;
        let place: Option<u64> = taken.len().checked_sub(room).map(|at| taken[at]);
        if let Some(place) = place.filter(|place| now + 1 < *place) {
            scene.switch(0, now, SOURCE, S, 0).wake(1, place, SERVER, 0, SOURCE).switch(0, place + 8, 0, R, SOURCE);
            now = place + 9;
        }
        let mut at = free;
        if free + 2 < now {
            scene.enter(1, free, SERVER, libc::SYS_read, 4, 0).switch(1, free + 1, SERVER, S, 0);
            scene.wake(0, now, SOURCE, 0, SERVER).switch(1, now + 8, 0, R, SERVER);
            at = now + 9;
            scene.exit(1, at, SERVER, libc::SYS_read);
        }
        at = at.max(now);
        now += 2;
        scene.exit(0, now, SOURCE, libc::SYS_write).stamp(SOURCE, now + 1, id, "sent");
        now += 2;
        taken.push(at);
        at = handle(&mut scene, at, id, service(id, at + 2));
        latencies.push(at - due);
        free = at + 5;
    }
    scene.event(0, free + 1000, KernelEvent::SchedSwitch, SOURCE, [0, S, 0]);
    (scene, latencies)
}

#[test]
fn a_source_that_waits_for_room_waits_for_what_holds_the_server_up() {
    for (room, work) in [(2, 200), (4, 250), (8, 300), (64, 300)] {
        let with = |id: u64, now| Service { work: work + id * 7919 % 41, lock_until: held(now), ..Service::default() };
        let (scene, _) = bounded(4000, room, with);
        let (_, truth) = bounded(4000, room, |id, now| Service { lock_until: 0, ..with(id, now) });
        let wanted = ExplainOptions { without: vec![vec!["lock:0x1010".into()]], ..ExplainOptions::default() };
        let explained = scene.analyse(wanted).chains[0].explained.clone();
        let what = format!("room for {room}");
        at_least(0.98, &explained, Cause::Lock, &what);
        predicts(&explained, "lock:0x1010", &truth, 0.05, &what);
    }
}
