//! Messages that queue: a source that keeps its times and a thread that takes them one by one, simulated with and without
//! what makes it late. The explanation of the one must find the cause, and predict the other.

use taut_analysis::{Analyzer, Cause, Config, Contribution, ExplainOptions, Explained, Row, Selected};
use taut_recording::{KernelEvent, Kind, Object, ObjectKind, Record, read};

mod scene;

use scene::{server::*, *};

fn share(explained: &Explained, cause: Cause) -> f64 {
    explained.by_cause.iter().find(|share| share.cause == cause).map_or(0.0, |share| share.tail_share)
}

fn predicts(scene: &Scene, without: &str, truth: &[u64], what: &str) {
    let wanted = ExplainOptions { without: vec![vec![without.into()]], ..ExplainOptions::default() };
    let explained = scene.analyse(wanted).chains[0].explained.clone();
    let found = explained.predictions.iter().find(|w| w.without == without).unwrap();
    assert!(found.is_replayed);
    for predicted in &found.quantiles {
        let truth = quantile(truth, predicted.quantile);
        let error = predicted.after_ns as f64 / 1e3 - truth;
        // A run without the cause meets the lock at other times.
        assert!(error.abs() <= (0.1 * truth).max(30.0), "{what}: {predicted:?}, in truth {truth} µs");
    }
}

/// Every 46 ms the lock is held for 6 ms; messages come every ms, and those that come meanwhile queue.
fn held(now: u64) -> u64 {
    if now % 46_000 < 6_000 { now - now % 46_000 + 6_000 } else { 0 }
}

fn periodic(n: u64, period: u64) -> Vec<u64> {
    (0..n).map(|at| 10_000 + at * period).collect()
}

#[test]
fn what_queues_behind_a_lock_is_the_locks() {
    let arrivals = periodic(4000, 1000);
    let (scene, _) = run(&arrivals, |_, now| Service { work: 200, lock_until: held(now), ..Service::default() });
    let explained = scene.explained();
    assert!(share(&explained, Cause::Lock) > 0.97, "{:?}", explained.by_cause);
    let result = |word: &str| explained.hypotheses.iter().find(|v| v.hypothesis == word).map(|v| v.result);
    assert_eq!(result("lock:0x1010"), Some(Contribution::Contributes));
    // An address says nothing: its holder is named beside it, and the factor keeps its word.
    assert_eq!(explained.named("lock:0x1010"), "lock:0x1010 (held by robot/12)");
    assert!(explained.recommendations[0].evidence.starts_with("lock:0x1010 (held by robot/12) is"));
    assert_ne!(result("queued"), Some(Contribution::Contributes));
    assert_eq!(explained.recommendations[0].against, "lock:0x1010");
    let (_, without) = run(&arrivals, |_, _| Service { work: 200, ..Service::default() });
    predicts(&scene, "lock:0x1010", &without, "periodic");
}

/// Every tenth message is preempted, each time by another thread of that name.
fn compiled(threads: i32) -> Explained {
    let arrivals = periodic(2000, 1000);
    let (mut scene, _) = run(&arrivals, |at, _| Service {
        work: 200,
        preempted: if at % 10 == 0 { 400 } else { 0 },
        ..Service::default()
    });
    for tid in 0..threads {
        scene.thread(100 + tid, 100 + tid, "cc1", false);
    }
    // The hog of the simulation is one of them in turn.
    let mut turn = 0;
    for (_, _, event, _, tid, arguments) in &mut scene.events {
        if *event == KernelEvent::SchedSwitch && arguments[0] == 30 {
            arguments[0] = (100 + turn % threads).into();
        } else if *event == KernelEvent::SchedSwitch && *tid == 30 && arguments[0] != 0 {
            *tid = 100 + turn % threads;
            turn += 1;
        }
    }
    scene.explained()
}

#[test]
fn many_threads_of_one_name_are_one_party_with_a_count() {
    let details = |threads: i32| -> Vec<String> {
        let explained = compiled(threads);
        let preempted = explained.causes.into_iter().filter(|share| share.cause == Cause::Preempted);
        preempted.map(|share| share.detail).collect()
    };
    assert_eq!(details(8), ["by cc1 (8 threads)"]);
    assert_eq!(details(2), ["by cc1/100", "by cc1/101"]);
    let responsible = compiled(8).responsible;
    assert!(responsible.iter().any(|party| party.name == "cc1 (8 threads)"), "{responsible:?}");
    assert!(responsible.iter().any(|party| party.name == "cc1 (8 processes)"), "{responsible:?}");
}

#[test]
fn a_prediction_says_where_the_time_is_that_goes_and_what_remains() {
    // A few messages wait very long for the lock, and as many as are beyond p99 otherwise work for longer.
    let arrivals = periodic(4000, 10_000);
    let (scene, _) = run(&arrivals, |at, now| Service {
        work: if at % 40 == 7 { 2_000 } else { 200 },
        lock_until: if at % 400 == 5 { now + 9_000 } else { 0 },
        ..Service::default()
    });
    let explained = scene.explained();
    let without = explained.predictions.iter().find(|of| of.without == "lock:0x1010").unwrap();
    assert!(without.half_in > 0 && without.half_in <= 10, "{without:?}");
    assert_eq!(without.remaining.first().map(|of| of.cause), Some(Cause::Cpu), "{without:?}");
}

#[test]
fn the_chain_of_messages_is_shown() {
    let arrivals = periodic(500, 1000);
    let (mut scene, _) = run(&arrivals, |at, now| Service {
        work: 400,
        lock_until: if at == 300 { now + 2500 } else { 0 },
        ..Service::default()
    });
    scene.thread(20, 21, "unused", true);
    let messages = vec![301, 302, 304];
    let analysis = scene.analyse(ExplainOptions { worst: 0, messages, ..ExplainOptions::default() });
    let paths = &analysis.chains[0].explained.paths;
    let of = |id: u64| paths.iter().find(|p| p.time.id == id).unwrap();
    let lock = |id: u64| of(id).time.pieces.iter().filter(|p| p.cause == Cause::Lock).map(|p| p.ns / US).sum::<u64>();
    // 302 waits while 301 waits for the lock; 304 comes later and waits for what that left behind.
    // It comes to the lock after half of its work.
    assert!((2290..=2310).contains(&lock(301)), "{}", lock(301));
    assert!(of(302).path.iter().any(|p| p.cause == Cause::Lock && p.behind == Some(301)), "{:?}", of(302).path);
    assert!(of(304).path.iter().any(|p| p.cause == Cause::Lock && p.behind == Some(301)), "{:?}", of(304).path);
    let own = of(304).time.total_ns / US - lock(304);
    assert!((380..=480).contains(&own), "without the lock it takes what every message takes: {own}");
}

#[test]
fn predictions_hold_for_random_arrivals_at_any_load() {
    for (load, seed) in [(0.2, 7), (0.5, 8), (0.8, 9), (0.95, 10)] {
        let arrivals = poisson(6000, 200.0 / load, seed);
        let with = |at: usize, now: u64| Service {
            work: 170 + (at as u64 * 7919) % 41,
            lock_until: held(now) * u64::from(load < 0.9),
            preempted: if at % 97 == 50 { 1500 } else { 0 },
        };
        let (scene, _) = run(&arrivals, with);
        let (_, without) = run(&arrivals, |at, now| Service { preempted: 0, ..with(at, now) });
        predicts(&scene, "preempted", &without, &format!("load {load}"));
    }
}

#[test]
fn longer_work_of_some_messages_is_work_and_not_load() {
    let arrivals = poisson(5000, 1000.0, 3);
    let with = |at: usize, _| Service { work: if at % 50 == 49 { 8000 } else { 300 }, ..Service::default() };
    let (scene, _) = run(&arrivals, with);
    let explained = scene.explained();
    assert!(share(&explained, Cause::Cpu) > 0.9, "{:?}", explained.by_cause);
    let (_, without) = run(&arrivals, |_, _| Service { work: 300, ..Service::default() });
    predicts(&scene, "cpu", &without, "longer work");
}

#[test]
fn too_much_load_is_queued() {
    let arrivals = poisson(5000, 320.0, 5);
    let (scene, _) = run(&arrivals, |_, _| Service { work: 300, ..Service::default() });
    let explained = scene.explained();
    assert!(share(&explained, Cause::Queued) > 0.9, "{:?}", explained.by_cause);
    let queued = explained.recommendations.iter().find(|r| r.against == "queued").unwrap();
    assert!(queued.remedy.ends_with("too much load"), "{queued:?}");
}

#[test]
fn a_thread_that_stamps_later_was_not_busy_for_that() {
    // The server handles another source's message, and has nothing to do when this one is sent at last.
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, SOURCE).switch(1, 0, SERVER, S, 0).switch(2, 0, 0, R, HOLDER);
    scene.enter(1, 0, SERVER, libc::SYS_read, 4, 0);
    scene.stamp(SOURCE, 100, 1, "sent").stamp(HOLDER, 150, 2, "sent");
    scene.wake(2, 160, HOLDER, 0, SERVER).switch(1, 170, 0, R, SERVER);
    scene.stamp(SERVER, 200, 2, "taken").switch(1, 300, SERVER, S, 0);
    scene.wake(0, 900, SOURCE, 0, SERVER).switch(1, 910, 0, R, SERVER);
    scene.stamp(SERVER, 950, 1, "taken");
    scene.switch(1, 2000, SERVER, S, 0).switch(0, 2000, SOURCE, S, 0);
    let explained = scene.explained();
    let path = &explained.paths.iter().find(|p| p.time.id == 1).unwrap().path;
    assert!(path.iter().all(|piece| piece.cause != Cause::Queued && piece.behind.is_none()), "{path:?}");
}

#[test]
fn a_thread_that_has_nothing_to_do_in_between_did_not_have_the_message() {
    // The server handles two other messages, and waits for data between them: this one is sent only while it is at the second.
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, SOURCE).switch(1, 0, SERVER, S, 0).switch(2, 0, 0, R, HOLDER);
    scene.enter(1, 0, SERVER, libc::SYS_read, 4, 0);
    let mut from_holder = |id: u64, sent: u64, done: u64| {
        scene.stamp(HOLDER, sent, id, "sent").wake(2, sent + 5, HOLDER, 0, SERVER).switch(1, sent + 10, 0, R, SERVER);
        scene
            .exit(1, sent + 12, SERVER, libc::SYS_read)
            .stamp(SERVER, sent + 15, id, "taken")
            .stamp(SERVER, done, id, "done");
        scene.enter(1, done + 2, SERVER, libc::SYS_read, 4, 0);
    };
    from_holder(2, 50, 200);
    from_holder(3, 800, 1000);
    scene.switch(1, 205, SERVER, S, 0).stamp(SOURCE, 100, 1, "sent");
    scene.enter(0, 940, SOURCE, libc::SYS_write, 5, 0).exit(0, 950, SOURCE, libc::SYS_write);
    scene.exit(1, 1005, SERVER, libc::SYS_read).stamp(SERVER, 1010, 1, "taken").stamp(SERVER, 1100, 1, "done");
    scene.switch(1, 2000, SERVER, S, 0).switch(0, 2000, SOURCE, S, 0);
    let explained = scene.explained();
    let path = &explained.paths.iter().find(|p| p.time.id == 1).unwrap().path;
    let behind: u64 = path.iter().filter(|piece| piece.behind.is_some()).map(|piece| piece.to_ns - piece.from_ns).sum();
    // From its wake on.
    assert_eq!(behind, 195 * US, "{path:?}");
    assert!(path.iter().all(|piece| piece.behind.is_none_or(|id| id == 3)), "{path:?}");
}

/// Three messages that a thread takes in one go, the first of which takes it 1 ms: what the last one's time is behind. `pauses`: meanwhile
/// the thread waits for data.
fn last_taken(pauses: bool) -> Vec<(u64, Option<u64>)> {
    let mut scene = Scene::new();
    scene.switch(1, 0, 0, R, SERVER);
    (1..=3).for_each(|id| _ = scene.stamp(SERVER, 100 + id, id, "taken"));
    if pauses {
        scene.enter(1, 700, SERVER, libc::SYS_read, 4, 0).switch(1, 710, SERVER, S, 0);
        scene.wake(1, 900, 0, IRQ, SERVER).switch(1, 910, 0, R, SERVER).exit(1, 920, SERVER, libc::SYS_read);
    }
    (1..=3).for_each(|id| _ = scene.stamp(SERVER, 1000 + id * 100, id, "done"));
    scene.switch(1, 2000, SERVER, S, 0);
    let explained = scene.explained();
    let path = &explained.paths.iter().find(|p| p.time.id == 3).unwrap().path;
    let mut sums: Vec<(u64, Option<u64>)> = Vec::new();
    for piece in path {
        match sums.last_mut().filter(|(_, behind)| *behind == piece.behind) {
            Some((ns, _)) => *ns += piece.to_ns - piece.from_ns,
            None => sums.push((piece.to_ns - piece.from_ns, piece.behind)),
        }
    }
    sums
}

#[test]
fn of_messages_that_are_taken_together_each_waits_for_those_before() {
    assert_eq!(last_taken(false), [(997_000, Some(1)), (100_000, Some(2)), (100_000, None)]);
    // Who pauses may be at any of them.
    assert_eq!(last_taken(true), [(1_197_000, None)]);
}

#[test]
fn what_the_last_of_those_taken_together_waits_for_itself_is_removed() {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, SOURCE).switch(1, 0, SERVER, S, 0).switch(2, 0, 0, R, HOLDER);
    scene.enter(1, 0, SERVER, libc::SYS_read, 4, 0);
    for round in 1..=400 {
        let start = round * 10_000;
        let ids = || (1..=3).map(|nth| (nth, round * 3 + nth));
        ids().for_each(|(nth, id)| _ = scene.stamp(SOURCE, start + nth, id, "sent"));
        scene.wake(0, start + 5, SOURCE, 0, SERVER).switch(1, start + 10, 0, R, SERVER);
        scene.exit(1, start + 12, SERVER, libc::SYS_read);
        ids().for_each(|(nth, id)| _ = scene.stamp(SERVER, start + 12 + nth, id, "taken"));
        let mut now = start + 16;
        for (nth, id) in ids() {
            now += 300;
            if nth == 3 && round % 10 == 0 {
                now = wait_for_lock(&mut scene, now, now + 3000);
            }
            scene.stamp(SERVER, now, id, "done");
        }
        scene.enter(1, now + 5, SERVER, libc::SYS_read, 4, 0).switch(1, now + 6, SERVER, S, 0);
    }
    let explained = scene.explained();
    assert!(share(&explained, Cause::Lock) > 0.9, "{:?}", explained.by_cause);
    let found = explained.predictions.iter().find(|found| found.without == "lock:0x1010").unwrap();
    let (quantile, after_ns) = found.quantiles.last().map(|of| (of.quantile, of.after_ns)).unwrap();
    assert!(found.is_replayed && quantile >= 0.95);
    assert!((900_000..960_000).contains(&after_ns), "{found:?}");
}

#[test]
fn with_a_deadline_all_that_missed_it_are_explained() {
    let arrivals = periodic(4000, 1000);
    let (scene, latencies) =
        run(&arrivals, |_, now| Service { work: 200, lock_until: held(now), ..Service::default() });
    let analysis = scene.analyse(ExplainOptions { deadline_ns: Some(2_000_000), ..ExplainOptions::default() });
    let explained = &analysis.chains[0].explained;
    let missed = latencies.iter().filter(|latency| **latency > 2000).count() as u64;
    assert_eq!((explained.selected, explained.tail_messages), (Selected::Missed, missed));
    assert!(explained.predictions.iter().any(|w| w.without == "lock:0x1010" && w.missed == Some(0)));
    // A deadline that every message meets explains the tail.
    let analysis = scene.analyse(ExplainOptions { deadline_ns: Some(2_000_000_000), ..ExplainOptions::default() });
    assert!(matches!(analysis.chains[0].explained.selected, Selected::Tail(_)));
}

#[test]
fn a_mode_below_the_tail_is_found() {
    // Every 50th cycle holds the lock for 3 ms: two in a hundred, and p99 lies within them.
    let arrivals = periodic(4000, 5000);
    let with = |at: usize, now: u64| Service {
        work: 200 + (at as u64 * 7919) % 37,
        lock_until: if at % 50 == 49 { now + 3000 } else { 0 },
        ..Service::default()
    };
    let (scene, _) = run(&arrivals, with);
    let explained = scene.explained();
    let mode = explained.modes.first().unwrap_or_else(|| panic!("{:?}", explained.by_cause));
    assert_eq!((mode.messages, mode.causes[0].cause, mode.causes[0].detail.as_str()), (80, Cause::Lock, "0x1010"));
    assert!((3_000_000..3_400_000).contains(&mode.p50_ns), "{mode:?}");
}

/// The same in one interpreter: the source needs the GIL to send, and the server has it while it handles messages, also one after the
/// other. Who waits for a lock lets go of it.
fn interpreted(n: u64, lock_until: impl Fn(u64) -> u64) -> (Scene, Vec<u64>) {
    const GIL: i64 = 0x9010;
    let mut scene = Scene::new();
    let (kind, name) = (ObjectKind::Gil, "CPython 3.11".into());
    scene.objects.push(Object { time_ns: 0, pid: SOURCE, kind, start: 0x9000, size: 0x1000, name });
    scene.switch(0, 0, 0, R, SOURCE).switch(1, 0, 30, R, 0).switch(2, 0, 0, R, HOLDER);
    let (mut source, mut since, mut free, mut latencies) = (5, 0, 5, Vec::new());
    for id in 1..=n {
        let due = 10_000 + id * 1000;
        if source < due {
            scene.enter(0, source, SOURCE, libc::SYS_clock_nanosleep, 1, 1);
            scene.event(0, source, KernelEvent::TimerStart, SOURCE, [(due * US) as i64, (due * US) as i64 + 1000, 0]);
            scene.switch(0, source + 1, SOURCE, S, 0).wake(0, due, 0, IRQ, SOURCE).switch(0, due + 1, 0, R, SOURCE);
            source = due + 2;
            scene.exit(0, source, SOURCE, libc::SYS_clock_nanosleep);
        }
        if (since..free).contains(&source) {
            scene.enter(0, source + 1, SOURCE, libc::SYS_futex, GIL, WAIT).switch(0, source + 2, SOURCE, S, 0);
            scene.enter(1, free - 3, SERVER, libc::SYS_futex, GIL, WAKE).wake(1, free - 2, SERVER, 0, SOURCE);
            scene.exit(1, free - 1, SERVER, libc::SYS_futex).switch(0, free + 2, 0, R, SOURCE);
            source = free + 3;
            scene.exit(0, source, SOURCE, libc::SYS_futex);
        }
        scene.mark(SOURCE, source + 1, id, "sent", Kind::Stamp, due * US);
        let mut now = free;
        if free <= source + 1 {
            scene.enter(1, free, SERVER, libc::SYS_read, 4, 0).switch(1, free + 1, SERVER, S, 0);
            scene.enter(0, source + 2, SOURCE, libc::SYS_write, 5, 0).wake(0, source + 3, SOURCE, 0, SERVER);
            now = source + 10;
            scene.exit(0, source + 4, SOURCE, libc::SYS_write).switch(1, now - 1, 0, R, SERVER);
            scene.exit(1, now, SERVER, libc::SYS_read);
            since = now;
        }
        source += 5;
        scene.stamp(SERVER, now + 1, id, "taken");
        let until = lock_until(now);
        if until > now + 4 {
            since = wait_for_lock(&mut scene, now + 1, until);
            now = since;
        }
        now += 300;
        scene.stamp(SERVER, now, id, "done");
        latencies.push(now - due);
        free = now + 5;
    }
    scene.event(0, free + 1000, KernelEvent::SchedSwitch, SOURCE, [0, S, 0]);
    (scene, latencies)
}

#[test]
fn who_waits_for_the_gil_of_the_thread_that_works_off_a_backlog_waits_for_what_made_it() {
    let held = |now: u64| if now % 46_000 < 15_000 { now - now % 46_000 + 15_000 } else { 0 };
    let (scene, _) = interpreted(4000, held);
    let explained = scene.explained();
    assert!(share(&explained, Cause::Lock) > 0.97, "{:?}", explained.by_cause);
    let (_, without) = interpreted(4000, |_| 0);
    predicts(&scene, "lock:0x1010", &without, "one interpreter");
}

/// A loop in one thread that is due every ms, and stamps when: `lock_until` as above. Events, stamps, and the latencies.
fn due_loop(n: u64, work: u64, lock_until: impl Fn(u64) -> u64) -> (Scene, Vec<u64>) {
    let mut scene = Scene::new();
    scene.switch(1, 0, 30, R, 0).switch(2, 0, 0, R, HOLDER);
    let (mut now, mut latencies) = (5, Vec::new());
    for id in 1..=n {
        let due = 10_000 + id * 1000;
        if now < due {
            scene.enter(1, now, SERVER, libc::SYS_clock_nanosleep, 1, 1);
            scene.event(1, now, KernelEvent::TimerStart, SERVER, [(due * US) as i64, (due * US) as i64 + 1000, 0]);
            scene.switch(1, now + 1, SERVER, S, 0).wake(1, due + 3, 0, IRQ, SERVER).switch(1, due + 8, 0, R, SERVER);
            scene.exit(1, due + 9, SERVER, libc::SYS_clock_nanosleep);
            now = due + 10;
        }
        scene.mark(SERVER, now, id, "loop.started", Kind::Stamp, due * US);
        let until = lock_until(now);
        now += work / 2;
        if until > now + 4 {
            now = wait_for_lock(&mut scene, now, until);
        }
        now += work - work / 2;
        scene.stamp(SERVER, now, id, "loop.done");
        latencies.push(now - due);
        now += 5;
    }
    scene.event(1, now + 1000, KernelEvent::SchedSwitch, SERVER, [0, S, 0]);
    (scene, latencies)
}

#[test]
fn a_loop_is_measured_from_the_moment_at_which_it_was_due() {
    let (scene, latencies) = due_loop(3000, 400, held);
    let analysis =
        scene.analyse(ExplainOptions { without: vec![vec!["lock:0x1010".into()]], ..ExplainOptions::default() });
    let chain = &analysis.chains[0];
    assert_eq!(chain.name, "loop.started → loop.done");
    let points: Vec<&str> = chain.points.iter().map(|point| point.name.as_str()).collect();
    assert_eq!(points, ["loop.started due", "loop.started", "loop.done"]);
    let ns = |us: f64| Some(us as u64 * US);
    assert_eq!(chain.end_to_end.distribution.p99_ns, ns(quantile(&latencies, 0.99)));
    let starts = chain.starts.as_ref().unwrap();
    assert_eq!((starts.period_ns, starts.missing), (1_000_000, 0));
    assert!(starts.lateness.max_ns > Some(5_000_000), "{:?}", starts.lateness);
    // The cycles behind one that waits start late because of the same lock.
    assert!(share(&chain.explained, Cause::Lock) > 0.97, "{:?}", chain.explained.by_cause);
    let (_, without) = due_loop(3000, 400, |_| 0);
    predicts(&scene, "lock:0x1010", &without, "a loop with intended starts");
}

#[test]
fn a_program_that_is_early_is_on_time_and_another_clock_is_none() {
    let mut scene = Scene::new();
    for id in 1..=200u64 {
        let (now, due) = (id * 1000, if id == 100 { 1 << 50 } else { id * 1000 + 10 });
        scene.mark(SERVER, now, id, "loop.started", Kind::Stamp, due * US).stamp(SERVER, now + 100, id, "loop.done");
    }
    let chain = &scene.analyse(ExplainOptions::default()).chains[0];
    assert_eq!(chain.hops[0].delay.distribution.max_ns, Some(0));
    assert_eq!((chain.messages, chain.end_to_end.distribution.n), (200, 199));
    assert_eq!(chain.end_to_end.distribution.max_ns, Some(100 * US));
}

/// Rows are of messages, too, that did not go all the way, or came while the chain started up.
#[test]
fn an_explanation_does_not_depend_on_whether_rows_are_read() {
    let mut analyzers = [Analyzer::new(Config::default()), Analyzer::new(Config::default())];
    let take = &mut |record: Record| analyzers.iter_mut().for_each(|analyzer| analyzer.record(&record));
    let contents = read(include_bytes!("data/mixed.mcap"), take).unwrap();
    let [without, with] = analyzers;
    let (info, ending) = (contents.info, contents.ending);
    let mut rows = 0;
    let without = without.finish(info.clone(), ending.clone(), Vec::new(), 0).unwrap();
    let with = with.finish_by_row(info, ending, Vec::new(), 0, &mut |_: Row<'_>| rows += 1).unwrap();
    assert!(rows > 100, "{rows}");
    assert_eq!(format!("{:#?}", without.chains), format!("{:#?}", with.chains));
}

/// More comes than is handled: the queue grows to a thousand messages, each of which waits for thousands of pieces. Blocks of them are
/// summed, and nothing but the path's detail differs from going through them piece by piece, as is done where rows are read.
#[test]
fn a_long_queue_is_summed_in_blocks() {
    let arrivals = poisson(2500, 300.0, 9);
    let service = |at: usize, now: u64| Service {
        work: if at % 40 == 39 { 3000 } else { 300 },
        lock_until: held(now),
        preempted: if at % 97 == 50 { 700 } else { 0 },
    };
    let (scene, _) = run(&arrivals, service);
    let wanted = || ExplainOptions { all: true, worst: 1, ..ExplainOptions::default() };
    let summed = scene.analyse(wanted()).chains[0].explained.clone();
    let one_by_one = scene.analyse_by_row(wanted(), &mut |_: Row<'_>| ()).chains[0].explained.clone();
    assert!(share(&summed, Cause::Queued) > 0.05 && share(&summed, Cause::Lock) > 0.05, "{:?}", summed.by_cause);
    let sums = |explained: &Explained| {
        explained.paths[0].path.iter().filter(|piece| piece.note.starts_with("a sum over many messages")).count()
    };
    assert!(sums(&summed) > 0 && sums(&one_by_one) == 0);
    let all =
        |explained: &Explained| format!("{:#?}", (&explained.by_cause, &explained.causes, &explained.responsible));
    assert_eq!(all(&summed), all(&one_by_one));
    assert_eq!(summed.times.len(), one_by_one.times.len());
    for (summed, one_by_one) in summed.times.iter().zip(&one_by_one.times) {
        assert_eq!(format!("{summed:?}"), format!("{one_by_one:?}"));
    }
}

/// Threads that have their CPU alone: nothing is simpler in the run than it was.
#[test]
fn a_run_without_nothing_is_the_recording_where_no_cpu_is_shared() {
    for load in [0.3, 0.8] {
        let arrivals = poisson(3000, 1000.0, 13);
        let service = |at: usize, now: u64| Service {
            work: (1000.0 * load) as u64,
            lock_until: held(now),
            preempted: if at % 97 == 50 { 700 } else { 0 },
        };
        let (scene, _) = run(&arrivals, service);
        let wanted = ExplainOptions { without: vec![vec!["irq".into()]], ..ExplainOptions::default() };
        let explained = scene.analyse(wanted).chains[0].explained.clone();
        let found = explained.predictions.iter().find(|w| w.without == "irq").unwrap();
        assert!(found.is_replayed && !found.quantiles.is_empty());
        for predicted in &found.quantiles {
            assert_eq!(predicted.before_ns, predicted.after_ns, "load {load}, p{}", predicted.quantile);
        }
    }
}

/// The server is at a message that was sent before the recording began, and of which only the last stamp is in it.
#[test]
fn what_a_message_that_began_before_the_recording_took_is_not_known() {
    let mut scene = Scene::new();
    // Events begin at 1,000: what the server did before is in none.
    scene.stamp(SOURCE, 400, 1, "sent").stamp(SERVER, 2000, 9, "done");
    scene.switch(0, 1000, SOURCE, S, 0).switch(1, 1995, 0, R, SERVER);
    scene.stamp(SERVER, 2010, 1, "taken").stamp(SERVER, 2100, 1, "done");
    scene.enter(1, 2105, SERVER, libc::SYS_read, 4, 0).switch(1, 2106, SERVER, S, 0);
    for id in 10..30 {
        let now = id * 1000;
        scene.switch(0, now - 10, 0, R, SOURCE).stamp(SOURCE, now, id, "sent").wake(0, now + 5, SOURCE, 0, SERVER);
        scene.switch(0, now + 10, SOURCE, S, 0).switch(1, now + 10, 0, R, SERVER).exit(
            1,
            now + 12,
            SERVER,
            libc::SYS_read,
        );
        scene.stamp(SERVER, now + 15, id, "taken").stamp(SERVER, now + 100, id, "done");
        scene.enter(1, now + 105, SERVER, libc::SYS_read, 4, 0).switch(1, now + 106, SERVER, S, 0);
    }
    let explained = scene.explained();
    let path = &explained.paths.iter().find(|p| p.time.id == 1).unwrap().path;
    // The server's first event is 1.595 ms behind the stamp at which the report begins.
    let known = path.iter().filter(|piece| piece.from_ns < 1595 * US && piece.cause != Cause::Unknown);
    assert_eq!(known.count(), 0, "{path:?}");
}
