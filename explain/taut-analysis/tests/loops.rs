//! Loops and wake chains of threads that stamp nothing, in small scenes.

use taut_analysis::{Analysis, Cause, ExplainOptions, LoopFound, Selected, SourceKind, main_chain};
use taut_recording::{KernelEvent, Lost, LostWhat};

mod scene;

use scene::*;

/// Threads of scenes.
const CTRL: i32 = 10;
const BRIDGE: i32 = 20;
const HOG: i32 = 30;
/// Flag of clock_nanosleep.
const ABSTIME: i64 = 1;
/// An address of a timer in the kernel, and what remains of it in a recording.
const TIMER: i64 = 0x00ff_8880_0123_4500;
/// µs.
const PERIOD: u64 = 1_000;

fn new() -> Scene {
    let mut scene = Scene::new();
    scene.threads.clear();
    scene.thread(CTRL, CTRL, "ctrl", true);
    scene.thread(BRIDGE, BRIDGE, "bridge", true);
    scene.thread(HOG, HOG, "hog", false);
    scene.switch(0, 0, 0, R, CTRL).switch(1, 0, HOG, R, 0);
    scene
}

/// The timer fires on CPU 0, in an interrupt of that thread.
fn fires(scene: &mut Scene, us: u64, current: i32) {
    let args = [TIMER, (us * US) as i64 - 500, 0];
    scene.events.push((0, us * US, KernelEvent::TimerExpire, IRQ, current, args));
}

/// CTRL sleeps on CPU 0 from `from` until `asked`, is woken by its timer at `woken` and runs at `runs`; its call returns 2 µs later.
fn sleep_until(scene: &mut Scene, from: u64, asked: u64, woken: u64, runs: u64) {
    wait_until(scene, (libc::SYS_clock_nanosleep, 1, ABSTIME), from, (asked, woken, runs));
}

/// The same by a call with those arguments.
fn wait_until(scene: &mut Scene, call: (i64, i64, i64), from: u64, moments: (u64, u64, u64)) {
    wait(scene, call, from, moments, TIMER << 8);
}

/// The same in a sleep for a time.
fn sleep_for(scene: &mut Scene, call: i64, from: u64, moments: (u64, u64, u64)) {
    wait(scene, (call, 1, 0), from, moments, TIMER << 8 | 1);
}

fn wait(scene: &mut Scene, call: (i64, i64, i64), from: u64, (asked, woken, runs): (u64, u64, u64), timer: i64) {
    let asked_ns = (asked * US) as i64;
    scene.enter(0, from, CTRL, call.0, call.1, call.2);
    scene.event(0, from + 1, KernelEvent::TimerStart, CTRL, [asked_ns, asked_ns + 50_000, timer]);
    scene.switch(0, from + 2, CTRL, S, 0);
    fires(scene, woken - 1, 0);
    scene.wake(0, woken, 0, IRQ, CTRL);
    if runs > woken + 20 {
        scene.switch(0, woken + 3, 0, R, HOG).switch(0, runs, HOG, R, CTRL);
    } else {
        scene.switch(0, runs, 0, R, CTRL);
    }
    scene.exit(0, runs + 2, CTRL, call.0);
}

/// After 30 periods the thread dies, and another program has its number: of so many periods of 3 ms, each with a start so many µs after
/// its release and about 50 µs of work.
fn next_life(scene: &mut Scene, periods: u64, delay: u64) {
    let free = 31_000;
    scene.wake(0, free - 20, 0, IRQ, CTRL).switch(0, free - 15, 0, R, CTRL);
    scene.exit(0, free - 10, CTRL, libc::SYS_clock_nanosleep).switch(0, free, CTRL, 0x10, 0);
    scene.event(0, free + 10, KernelEvent::SchedWakeupNew, 0, [CTRL.into(), 0, 0]);
    scene.switch(0, free + 12, 0, R, CTRL);
    let mut at = free + 20;
    for k in 1..=periods {
        let release = free + k * 3 * PERIOD;
        sleep_until(scene, at, release, release + 5, release + delay);
        at = release + delay + 60;
    }
    scene.enter(0, at, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).switch(0, at + 2, CTRL, S, 0);
}

/// Of so many periods, with a start 10 µs after each release but for those in `late`, and 100 µs of work.
fn periodic(scene: &mut Scene, periods: u64, late: &[(u64, u64)]) {
    let mut free = 100;
    for k in 1..=periods {
        let release = k * PERIOD;
        let delay = late.iter().find(|(at, _)| *at == k).map_or(8, |(_, delay)| *delay);
        sleep_until(scene, free, release, release + 5, release + delay);
        free = release + delay + 102;
    }
    scene.enter(0, free, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).switch(0, free + 2, CTRL, S, 0);
}

fn analyse(scene: &Scene) -> Analysis {
    scene.analyse(ExplainOptions { worst: 0, ..ExplainOptions::default() })
}

#[test]
fn a_loop_by_its_timer_has_exact_releases() {
    let mut scene = new();
    periodic(&mut scene, 100, &[(40, 308)]);
    let analysis = analyse(&scene);
    let [of] = analysis.loops.as_slice() else { panic!("{:?}", analysis.loops) };
    assert_eq!(
        (of.name.as_str(), of.thread.as_str(), &of.found),
        ("ctrl timer 1 ms", "ctrl/10", &LoopFound::AbsoluteTimer)
    );
    assert_eq!((of.period_ns, of.activations, of.overruns, of.skipped), (PERIOD * US, 100, Some(0), Some(0)));
    let late = &of.release_latency;
    assert_eq!((late.n, late.p50_ns, late.max_ns), (100, Some(10 * US), Some(310 * US)));
    assert_eq!((of.response_time.p50_ns, of.response_time.max_ns), (Some(110 * US), Some(410 * US)));
    assert_eq!(of.cpu_time.max_ns, Some(100 * US));
    let [chain] = analysis.chains.as_slice() else { panic!("a loop is a chain") };
    assert_eq!((chain.name.as_str(), chain.is_loop, chain.messages), ("ctrl timer 1 ms", true, 100));
    assert_eq!(of.chain.as_deref(), Some("ctrl timer 1 ms"));
}

#[test]
fn what_makes_the_late_starts_late_is_named() {
    let mut scene = new();
    let late: Vec<(u64, u64)> = (1..=20).map(|n| (n * 97, 308 + n)).collect();
    periodic(&mut scene, 2_000, &late);
    let of = &analyse(&scene).loops[0];
    let (quantile, limit_ns) = of.late_above.unwrap();
    assert!(quantile >= 0.99 && limit_ns >= 10 * US, "{quantile} {limit_ns}");
    let first = &of.late_by[0];
    assert_eq!((first.cause, first.detail.as_str()), (Cause::Wakeup, "by hog/30"));
    assert!(first.tail_share > 0.9, "{:?}", of.late_by);
}

/// Of so many periods, of which those in `long` start so late that they are not done by the next release, at which the thread sleeps no
/// more than its timer takes to fire.
fn overruns(periods: u64, is_long: impl Fn(u64) -> bool) -> Analysis {
    let mut scene = new();
    let mut free = 100;
    for k in 1..=periods {
        let release = k * PERIOD;
        let from = free;
        let woken = release.max(from + 3) + 5;
        let delay = if is_long(k) { 950 } else { 3 };
        sleep_until(&mut scene, from, release, woken, woken + delay);
        free = woken + delay + 102;
    }
    scene.enter(0, free, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).switch(0, free + 2, CTRL, S, 0);
    analyse(&scene)
}

#[test]
fn an_activation_that_is_busy_at_the_next_release_overruns() {
    let of = &overruns(60, |k| k == 30).loops[0];
    assert_eq!((of.activations, of.overruns, of.skipped), (60, Some(1), Some(0)));
}

#[test]
fn all_overruns_are_explained_where_they_are_more_than_the_tail() {
    let few = overruns(2_000, |k| k % 400 == 10);
    assert_eq!((few.loops[0].overruns, few.chains[0].explained.selected), (Some(5), Selected::Tail(0.99)));
    let many = overruns(2_000, |k| k % 20 == 10);
    let explained = &many.chains[0].explained;
    assert_eq!((explained.selected, Some(explained.tail_messages)), (Selected::Overran, many.loops[0].overruns));
    assert_eq!(explained.tail_messages, 100);
}

#[test]
fn moments_that_are_past_when_a_loop_comes_to_wait_are_releases_all_the_same() {
    let mut scene = new();
    let mut free = 100;
    for k in 1..=20u64 {
        sleep_until(&mut scene, free, k * PERIOD, k * PERIOD + 5, k * PERIOD + 8);
        free = k * PERIOD + 110;
    }
    // It works for four periods and a half, and makes up for them: calls that return at once, without a timer.
    free += 4_500;
    for _ in 0..4 {
        scene.enter(0, free, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).exit(
            0,
            free + 1,
            CTRL,
            libc::SYS_clock_nanosleep,
        );
        free += 50;
    }
    for k in 25..=60u64 {
        sleep_until(&mut scene, free, k * PERIOD, k * PERIOD + 5, k * PERIOD + 8);
        free = k * PERIOD + 110;
    }
    scene.enter(0, free, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).switch(0, free + 2, CTRL, S, 0);
    let of = &analyse(&scene).loops[0];
    assert_eq!((of.activations, of.skipped), (60, Some(0)));
    // The long one, and those that were due while it worked.
    assert_eq!(of.overruns, Some(4), "{of:?}");
    assert_eq!(of.release_latency.max_ns, Some(3_611 * US));
}

#[test]
fn releases_at_which_a_loop_does_not_start_are_counted() {
    let mut scene = new();
    let mut free = 100;
    for k in (1..=100u64).filter(|k| k % 25 != 0) {
        let release = k * PERIOD;
        sleep_until(&mut scene, free, release, release + 5, release + 8);
        free = release + 110;
    }
    scene.enter(0, free, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).switch(0, free + 2, CTRL, S, 0);
    let of = &analyse(&scene).loops[0];
    assert_eq!((of.activations, of.skipped), (96, Some(3)));
}

/// After each release CTRL works, writes to a pipe that BRIDGE reads on CPU 1, and BRIDGE works for 30 µs.
fn passed_on(scene: &mut Scene, periods: u64, stamped: bool) {
    let (mut free, mut ready) = (100, 100);
    for k in 1..=periods {
        let release = k * PERIOD;
        scene.enter(1, ready, BRIDGE, libc::SYS_read, 5, 0).switch(1, ready + 1, BRIDGE, S, 0);
        sleep_until(scene, free, release, release + 5, release + 8);
        scene.enter(0, release + 50, CTRL, libc::SYS_write, 4, 0);
        scene.wake(0, release + 52, CTRL, 0, BRIDGE);
        scene.exit(0, release + 54, CTRL, libc::SYS_write);
        scene.switch(1, release + 60, 0, R, BRIDGE);
        scene.exit(1, release + 61, BRIDGE, libc::SYS_read);
        if stamped {
            scene.stamp(CTRL, release + 12, k, "ctrl.start").stamp(CTRL, release + 49, k, "ctrl.sent");
        }
        (free, ready) = (release + 110, release + 91);
    }
    scene.enter(0, free, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).switch(0, free + 2, CTRL, S, 0);
    scene.enter(1, ready, BRIDGE, libc::SYS_read, 5, 0).switch(1, ready + 1, BRIDGE, S, 0);
}

#[test]
fn threads_that_wake_each_other_are_a_chain() {
    let mut scene = new();
    passed_on(&mut scene, 100, false);
    let analysis = analyse(&scene);
    let names: Vec<&str> = analysis.loops.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["ctrl timer 1 ms", "bridge read"]);
    let woken_by = LoopFound::WokenBy { thread: "ctrl/10".into(), activations: 100 };
    assert_eq!(analysis.loops[1].found, woken_by);
    assert_eq!(analysis.loops[1].release_latency.p50_ns, Some(9 * US));
    let chain = analysis.chains.iter().find(|chain| !chain.is_loop).unwrap();
    assert_eq!((chain.name.as_str(), chain.messages), ("ctrl timer 1 ms → bridge read", 100));
    let points: Vec<&str> = chain.points.iter().map(|point| point.name.as_str()).collect();
    assert_eq!(points, ["ctrl timer 1 ms", "ctrl start", "bridge read", "bridge done"]);
    let hops: Vec<_> = chain.hops.iter().map(|hop| hop.delay.distribution.p50_ns).collect();
    assert_eq!(hops, [Some(10 * US), Some(51 * US), Some(30 * US)]);
    assert_eq!((chain.outcomes.applied, chain.outcomes.unexplained), (100, 0));
}

#[test]
fn who_gives_a_kernel_thread_its_work_causes_the_wake_that_follows() {
    const OTHER: i32 = 11;
    const KWORKER: i32 = 40;
    let mut scene = new();
    scene.thread(OTHER, OTHER, "other", true);
    scene.thread(KWORKER, KWORKER, "kworker/u8:1", false);
    scene.switch(2, 0, OTHER, R, 0).switch(3, 0, KWORKER, S, 0);
    let gives = |scene: &mut Scene, cpu, at, tid, work| {
        scene.enter(cpu, at, tid, libc::SYS_write, 4, 0);
        scene.event(cpu, at + 1, KernelEvent::WorkQueue, tid, [work, 0, 0]);
    };
    let (mut free, mut ready) = (100, 100);
    for k in 1..=100u64 {
        let release = k * PERIOD;
        scene.enter(1, ready, BRIDGE, libc::SYS_read, 5, 0).switch(1, ready + 1, BRIDGE, S, 0);
        sleep_until(&mut scene, free, release, release + 5, release + 8);
        // The kernel's thread is woken by another writer, and is at that one's work when ctrl writes.
        scene.wake(2, release + 40, 0, IRQ, OTHER).switch(2, release + 41, 0, R, OTHER);
        gives(&mut scene, 2, release + 45, OTHER, 0x2000);
        scene.wake(2, release + 47, OTHER, 0, KWORKER).exit(2, release + 48, OTHER, libc::SYS_write);
        scene.switch(2, release + 49, OTHER, S, 0).switch(3, release + 49, 0, R, KWORKER);
        scene.event(3, release + 50, KernelEvent::WorkStart, KWORKER, [0x2000, 0, 0]);
        gives(&mut scene, 0, release + 52, CTRL, 0x1000);
        scene.exit(0, release + 54, CTRL, libc::SYS_write);
        scene.event(3, release + 60, KernelEvent::WorkStart, KWORKER, [0x1000, 0, 0]);
        scene.wake(3, release + 61, KWORKER, 0, BRIDGE).switch(3, release + 63, KWORKER, S, 0);
        scene.switch(1, release + 65, 0, R, BRIDGE).exit(1, release + 66, BRIDGE, libc::SYS_read);
        (free, ready) = (release + 110, release + 91);
    }
    scene.enter(0, free, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).switch(0, free + 2, CTRL, S, 0);
    scene.enter(1, ready, BRIDGE, libc::SYS_read, 5, 0).switch(1, ready + 1, BRIDGE, S, 0);
    let analysis = analyse(&scene);
    let bridge = analysis.loops.iter().find(|of| of.name == "bridge read").unwrap();
    assert_eq!(bridge.found, LoopFound::WokenBy { thread: "ctrl/10".into(), activations: 100 });
    assert!(analysis.chains.iter().any(|chain| chain.name == "ctrl timer 1 ms → bridge read"));
}

#[test]
fn a_stamped_chain_keeps_its_figures_and_its_loop_names_it() {
    let mut scene = new();
    passed_on(&mut scene, 100, true);
    let analysis = analyse(&scene);
    let [chain] = analysis.chains.as_slice() else { panic!("{} chains", analysis.chains.len()) };
    assert_eq!(
        (chain.name.as_str(), chain.source, chain.messages),
        ("ctrl.start → ctrl.sent", SourceKind::Stamps, 100)
    );
    assert_eq!(chain.end_to_end.distribution.p50_ns, Some(37 * US));
    let chains: Vec<Option<&str>> = analysis.loops.iter().map(|of| of.chain.as_deref()).collect();
    assert_eq!(chains, [Some("ctrl.start → ctrl.sent"), None]);
    assert_eq!(analysis.loops[0].release_latency.p50_ns, Some(10 * US));
}

#[test]
fn a_thread_that_is_woken_at_random_is_no_loop() {
    let mut scene = new();
    let mut ready = 100;
    for at in server::poisson(300, 700.0, 7) {
        let at = at.max(ready + 10);
        scene.enter(1, ready, BRIDGE, libc::SYS_recvfrom, 5, 0).switch(1, ready + 1, BRIDGE, S, 0);
        scene.wake(0, at, 0, SOFTIRQ, BRIDGE);
        scene.switch(1, at + 5, 0, R, BRIDGE).exit(1, at + 6, BRIDGE, libc::SYS_recvfrom);
        ready = at + 40;
    }
    let analysis = analyse(&scene);
    assert!(analysis.loops.is_empty() && analysis.chains.is_empty(), "{:?}", analysis.loops);
    let [thread] = analysis.waking.as_slice() else { panic!("{:?}", analysis.waking) };
    assert_eq!((thread.thread.as_str(), thread.waits_for.as_str()), ("bridge/20", "recv"));
    assert!(thread.wakes > 250);
}

/// As in `seq 1 2000000 | sort -R | awk …`: `sort` reads for long, and then writes all it has, at an even pace.
#[test]
fn what_reads_a_stream_of_another_thread_is_no_loop_however_even_the_stream_is() {
    let read_from = |begin: u64| {
        let mut scene = new();
        scene.enter(1, 50, BRIDGE, libc::SYS_read, 5, 0).switch(1, 51, BRIDGE, S, 0);
        for k in 12..=72 {
            let at = begin - 7_000 + k * k;
            scene.enter(0, at, CTRL, libc::SYS_read, 3, 0).switch(0, at + 1, CTRL, S, 0);
            let woken = at + 10;
            scene.wake(0, woken, 0, IRQ, CTRL).switch(0, woken + 2, 0, R, CTRL).exit(
                0,
                woken + 3,
                CTRL,
                libc::SYS_read,
            );
        }
        for k in 1..=200u64 {
            let at = begin + k * 150;
            scene.enter(0, at - 1, CTRL, libc::SYS_write, 4, 0).wake(0, at, CTRL, 0, BRIDGE);
            scene.exit(0, at + 1, CTRL, libc::SYS_write);
            scene.switch(1, at + 5, 0, R, BRIDGE).exit(1, at + 6, BRIDGE, libc::SYS_read);
            scene.enter(1, at + 50, BRIDGE, libc::SYS_read, 5, 0).switch(1, at + 51, BRIDGE, S, 0);
        }
        let end = begin + 201 * 150;
        scene.enter(0, end, CTRL, libc::SYS_read, 3, 0).switch(0, end + 1, CTRL, S, 0);
        analyse(&scene).loops.iter().map(|of| (of.thread.clone(), of.activations)).collect::<Vec<_>>()
    };
    assert_eq!(read_from(400_000), []);
    // A robot's part that never waits, and gives off all the time, drives a loop.
    assert_eq!(read_from(8_000), [("bridge/20".to_owned(), 200)]);
}

#[test]
fn steady_wakes_of_which_nothing_is_known_are_a_guess() {
    let mut scene = new();
    for k in 1..=100u64 {
        let at = k * 5_000 + (k * 7_919) % 100;
        scene.enter(1, at - 4_000, BRIDGE, libc::SYS_recvfrom, 5, 0).switch(1, at - 3_999, BRIDGE, S, 0);
        scene.wake(1, at, 0, SOFTIRQ, BRIDGE);
        scene.switch(1, at + 5, 0, R, BRIDGE).exit(1, at + 6, BRIDGE, libc::SYS_recvfrom);
    }
    let of = &analyse(&scene).loops[0];
    assert!(matches!(of.found, LoopFound::Guessed { error_ns } if error_ns < 100 * US), "{:?}", of.found);
    assert!(of.period_ns.abs_diff(5_000 * US) < 100 * US);
    assert_eq!((of.release_latency.n, of.overruns, of.skipped), (0, None, None));
}

#[test]
fn a_sleep_for_a_time_has_no_schedule() {
    let mut scene = new();
    let mut at = 100;
    let noise = server::poisson(101, 5_000.0, 3);
    for k in 0..100u64 {
        let asked = at + 1 + 10_000;
        sleep_for(&mut scene, libc::SYS_clock_nanosleep, at, (asked, asked + 50, asked + 55));
        at = asked + 157 + noise[k as usize] % 300;
    }
    scene.enter(0, at, CTRL, libc::SYS_clock_nanosleep, 1, 0).switch(0, at + 2, CTRL, S, 0);
    let of = &analyse(&scene).loops[0];
    assert_eq!(
        (&of.found, of.name.as_str()),
        (&LoopFound::RelativeTimer { asked_ns: 10_000 * US }, "ctrl sleep 10 ms")
    );
    assert_eq!((of.overruns, of.skipped, of.release_latency.p50_ns), (None, None, Some(57 * US)));
    assert!(of.period_ns > 10_100 * US);
}

#[test]
fn sleeps_for_what_is_left_of_a_period_are_a_loop_though_none_is_like_the_other() {
    let mut scene = new();
    let (mut at, mut start, mut long) = (100, 90, 0);
    let (works, delays) = (server::poisson(400, 3_000.0, 3), server::poisson(400, 5_000.0, 5));
    // The period is 2 ms from start to start. What the thread does takes 0.2 to 1.2 ms, now and then 3 ms, when nothing is left to sleep
    // for; it starts up to 0.7 ms late, as on a busy machine.
    for (k, (work, delay)) in works.into_iter().zip(delays).enumerate() {
        let asked = start + 2_000 + work % 9;
        scene.enter(0, at, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME);
        let asked_ns = (asked * US) as i64;
        scene.event(0, at + 1, KernelEvent::TimerStart, CTRL, [asked_ns, asked_ns + 50_000, TIMER << 8]);
        scene.switch(0, at + 2, CTRL, S, 0);
        fires(&mut scene, asked + 49, 0);
        start = asked + 57 + delay % 700;
        scene.wake(0, asked + 50, 0, IRQ, CTRL).switch(0, start - 2, 0, R, CTRL);
        scene.exit(0, start, CTRL, libc::SYS_clock_nanosleep);
        at = start + 200 + work % 1_000;
        if k % 100 == 50 {
            // Two rounds in one go.
            (start, at, long) = (start + 3_000, start + 3_300, long + 1);
        }
    }
    scene.enter(0, at, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).switch(0, at + 2, CTRL, S, 0);
    let analysis = analyse(&scene);
    let [of] = analysis.loops.as_slice() else { panic!("{:?}", analysis.waking) };
    assert_eq!(
        (of.name.as_str(), of.activations, of.overruns, of.skipped),
        ("ctrl sleep to 2 ms", 400, Some(long), None)
    );
    let LoopFound::RestOfPeriod { asked_ns } = of.found else { panic!("{:?}", of.found) };
    assert!(asked_ns.abs_diff(2_004 * US) <= 4 * US && of.period_ns > 2_050 * US, "{of:?}");
    assert!(of.release_latency.p50_ns > Some(200 * US), "{:?}", of.release_latency);
}

#[test]
fn sleeps_for_other_times_are_part_of_an_activation() {
    let mut scene = new();
    let mut at = 100;
    let sleep = |scene: &mut Scene, at: u64, length: u64| {
        let asked_ns = ((at + 1 + length) * US) as i64;
        scene.enter(0, at, CTRL, libc::SYS_clock_nanosleep, 1, 0);
        scene.event(0, at + 1, KernelEvent::TimerStart, CTRL, [asked_ns, asked_ns + 50_000, TIMER << 8 | 1]);
        scene.switch(0, at + 2, CTRL, S, 0);
        fires(scene, at + 50 + length, 0);
        scene.wake(0, at + 51 + length, 0, IRQ, CTRL).switch(0, at + 56 + length, 0, R, CTRL);
        scene.exit(0, at + 58 + length, CTRL, libc::SYS_clock_nanosleep);
        at + 58 + length
    };
    for k in 0..60u64 {
        at = sleep(&mut scene, at, 4_000) + 100;
        if k % 3 == 0 {
            at = sleep(&mut scene, at, 700 + 10 * k) + 40;
        }
    }
    scene.enter(0, at, CTRL, libc::SYS_clock_nanosleep, 1, 0).switch(0, at + 2, CTRL, S, 0);
    let of = &analyse(&scene).loops[0];
    assert_eq!((of.name.as_str(), of.activations), ("ctrl sleep 4 ms", 60));
    assert_eq!((of.cpu_time.p50_ns, of.response_time.max_ns > Some(1_000 * US)), (Some(100 * US), true));
}

#[test]
fn a_schedule_is_found_though_its_thread_sleeps_in_between() {
    let mut scene = new();
    let mut free = 100;
    let late = server::poisson(200, 5_000.0, 9);
    for k in 1..=200u64 {
        // Each 20 ms, and after up to 2 ms of work half a millisecond more, as a driver waits for its device: by the same call.
        let (release, work) = (k * 20_000, late[k as usize - 1] % 2_000);
        sleep_until(&mut scene, free, release, release + 50, release + 55);
        let again = release + 100 + work;
        sleep_until(&mut scene, again, again + 500, again + 550, again + 555);
        free = again + 600;
    }
    scene.enter(0, free, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).switch(0, free + 2, CTRL, S, 0);
    let analysis = analyse(&scene);
    let [of] = analysis.loops.as_slice() else { panic!("{:?}", analysis.loops) };
    assert_eq!(
        (of.name.as_str(), of.activations, of.overruns, of.skipped),
        ("ctrl timer 20 ms", 200, Some(0), Some(0))
    );
    assert_eq!(of.release_latency.p50_ns, Some(57 * US));
    // With the sleep in between.
    assert!(of.response_time.p50_ns > Some(1_000 * US), "{:?}", of.response_time);
}

#[test]
fn a_timer_that_another_thread_armed_releases_the_one_that_it_wakes() {
    let mut scene = new();
    // BRIDGE waits for a timerfd in epoll; CTRL sets it anew each time, as a program's main thread may.
    for k in 1..=2_000u64 {
        let late = if k % 97 == 0 { 300 } else { 0 };
        let (asked, asked_ns) = (k * 2_000, (k * 2_000 * US) as i64);
        scene.event(0, asked - 1_500, KernelEvent::TimerStart, CTRL, [asked_ns, asked_ns, TIMER << 8]);
        scene.enter(1, asked - 1_000, BRIDGE, libc::SYS_epoll_pwait, 5, 0).switch(1, asked - 999, BRIDGE, S, 0);
        fires(&mut scene, asked + 3 + late, CTRL);
        scene.wake(0, asked + 4 + late, CTRL, IRQ, BRIDGE).switch(1, asked + 10 + late, 0, R, BRIDGE);
        scene.exit(1, asked + 12 + late, BRIDGE, libc::SYS_epoll_pwait);
    }
    scene.enter(1, 4_001_000, BRIDGE, libc::SYS_epoll_pwait, 5, 0).switch(1, 4_001_001, BRIDGE, S, 0);
    let analysis = analyse(&scene);
    let [of] = analysis.loops.as_slice() else { panic!("{:?}", analysis.loops) };
    assert_eq!((of.name.as_str(), of.period_ns, of.activations), ("bridge timer 2 ms", 2_000 * US, 2_000));
    assert_eq!((of.release_latency.p50_ns, of.release_latency.max_ns), (Some(12 * US), Some(312 * US)));
    let first = &of.late_by[0];
    assert!(first.cause == Cause::TimerSlack && first.tail_share > 0.9, "{:?}", of.late_by);
}

#[test]
fn timers_that_fire_together_release_one_activation_of_each_of_their_loops() {
    const OTHER: i64 = TIMER + 0x100;
    let mut scene = new();
    let fires_at = |scene: &mut Scene, us: u64, timer: i64| {
        let args = [timer, (us * US) as i64, 0];
        scene.events.push((0, us * US, KernelEvent::TimerExpire, IRQ, 0, args));
    };
    let arm = |scene: &mut Scene, at: u64, asked: u64, timer: i64| {
        let asked_ns = (asked * US) as i64;
        scene.event(1, at, KernelEvent::TimerStart, BRIDGE, [asked_ns, asked_ns, timer << 8]);
    };
    // One timer of 2 ms, one of 5 ms. Where both are due, the second fires while the thread comes to its CPU, and one epoll_wait returns both.
    arm(&mut scene, 10, 2_000, TIMER);
    arm(&mut scene, 20, 5_020, OTHER);
    scene.enter(1, 100, BRIDGE, libc::SYS_epoll_pwait, 5, 0).switch(1, 101, BRIDGE, S, 0);
    for k in (1..=1_000u64).filter(|k| k % 2 == 0 || k % 5 == 0) {
        let due = k * 1_000;
        if k % 2 == 0 {
            fires_at(&mut scene, due + 3, TIMER);
            scene.wake(0, due + 4, 0, IRQ, BRIDGE);
        }
        if k % 5 == 0 {
            fires_at(&mut scene, due + 23, OTHER);
        }
        if k % 2 != 0 {
            scene.wake(0, due + 24, 0, IRQ, BRIDGE);
        }
        scene.switch(1, due + 50, 0, R, BRIDGE).exit(1, due + 52, BRIDGE, libc::SYS_epoll_pwait);
        if k % 2 == 0 {
            arm(&mut scene, due + 60, due + 2_000, TIMER);
        }
        if k % 5 == 0 {
            arm(&mut scene, due + 62, due + 5_020, OTHER);
        }
        scene.enter(1, due + 90, BRIDGE, libc::SYS_epoll_pwait, 5, 0).switch(1, due + 91, BRIDGE, S, 0);
    }
    let loops = analyse(&scene).loops;
    let mut found: Vec<_> =
        loops.iter().map(|of| (of.name.as_str(), of.activations, of.skipped, of.release_latency.p50_ns)).collect();
    found.sort_unstable();
    let expected =
        [("bridge timer 2 ms", 500, Some(0), Some(52 * US)), ("bridge timer 5 ms", 200, Some(0), Some(32 * US))];
    assert_eq!(found, expected);
}

/// Of a thread that sleeps until each of these moments, us: its loops with their activations and skipped releases.
fn schedules_of(moments: impl Iterator<Item = u64>) -> Vec<(String, u64, Option<u64>)> {
    let mut scene = new();
    let mut moments: Vec<u64> = moments.collect();
    moments.sort_unstable();
    let mut free = 100;
    for due in moments {
        sleep_until(&mut scene, free, due, due + 5, due + 8);
        free = due + 60;
    }
    scene.enter(0, free, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).switch(0, free + 2, CTRL, S, 0);
    let loops = analyse(&scene).loops;
    let mut found: Vec<_> = loops.into_iter().map(|of| (of.name, of.activations, of.skipped)).collect();
    found.sort_unstable();
    found
}

#[test]
fn a_thread_that_sleeps_until_the_next_moment_of_two_schedules_is_two_loops() {
    let moments = (1..=100).map(|k| k * 4_000).chain((1..=40).map(|k| k * 10_000 + 300));
    assert_eq!(
        schedules_of(moments),
        [("ctrl timer 10 ms".into(), 40, Some(0)), ("ctrl timer 4 ms".into(), 100, Some(0))]
    );
}

#[test]
fn the_few_moments_of_a_slow_schedule_are_no_activations_of_a_fast_one() {
    let moments = (1..=400).map(|k| k * 1_000).chain((1..=50).map(|k| k * 8_000 + 400));
    assert_eq!(
        schedules_of(moments),
        [("ctrl timer 1 ms".into(), 400, Some(0)), ("ctrl timer 8 ms".into(), 50, Some(0))]
    );
}

#[test]
fn timed_waits_at_a_lock_of_their_own_each_are_at_one_place() {
    const LOCK: i64 = 0x7f00_1000;
    /// FUTEX_WAIT_BITSET, private.
    const WAIT: i64 = 9 | 128;
    let mut scene = new();
    let mut free = 100;
    for k in 1..=100 {
        let due = k * PERIOD;
        // Where the allocator had space.
        let lock = LOCK + 0x40 * (k * k % 5) as i64;
        wait_until(&mut scene, (libc::SYS_futex, lock, WAIT), free, (due, due + 5, due + 8));
        free = due + 100;
    }
    scene.enter(0, free, CTRL, libc::SYS_futex, LOCK, WAIT).switch(0, free + 2, CTRL, S, 0);
    let loops = analyse(&scene).loops;
    let found: Vec<_> = loops.iter().map(|of| (of.name.as_str(), of.activations, of.skipped)).collect();
    assert_eq!(found, [("ctrl timer 1 ms", 100, Some(0))]);
}

const OTHER: i32 = 21;

/// epoll_pwait at one descriptor.
fn descriptor(_: i32) -> (i64, i64, i64) {
    (libc::SYS_epoll_pwait, 5, 0)
}

/// Of two threads of which one waits for the next moment of 10 ms, for whole ms, and the one that serves it hands that on.
fn in_turn(whole_ms: fn(u64) -> u64, server: fn(u64) -> i32, call: fn(i32) -> (i64, i64, i64)) -> Scene {
    const PARKED: (i64, i64, i64) = (libc::SYS_futex, 0x7f00_2000, 128);
    let mut scene = new();
    scene.thread(BRIDGE, OTHER, "bridge", true);
    let cpu = |tid: i32| (tid - BRIDGE) as u16;
    let park = |scene: &mut Scene, tid: i32, at: u64| {
        let (call, address, operation) = PARKED;
        scene.enter(cpu(tid), at, tid, call, address, operation).switch(cpu(tid), at + 1, tid, S, 0);
    };
    let wait = |scene: &mut Scene, tid: i32, at: u64, due: u64| {
        let asked = at + 1 + whole_ms(due - at) * 1_000;
        let asked_ns = (asked * US) as i64;
        let (number, object, operation) = call(tid);
        scene.enter(cpu(tid), at, tid, number, object, operation);
        scene.event(cpu(tid), at + 1, KernelEvent::TimerStart, tid, [asked_ns, asked_ns + 50_000, TIMER << 8]);
        scene.switch(cpu(tid), at + 2, tid, S, 0);
        asked
    };
    park(&mut scene, BRIDGE + OTHER - server(1), 50);
    let (mut due, mut k) = (10_000, 0);
    let mut asked = wait(&mut scene, server(1), 100, due);
    while due <= 3_000_000 {
        k += 1;
        // Who is too early does nothing.
        let (tid, next, at) = (server(k), server(k + 1), asked + if asked < due { 40 } else { 110 });
        fires(&mut scene, asked + 4, 0);
        scene.wake(0, asked + 5, 0, IRQ, tid).switch(cpu(tid), asked + 8, 0, R, tid);
        scene.exit(cpu(tid), asked + 10, tid, call(tid).0);
        if next != tid {
            scene.wake(cpu(tid), at, tid, 0, next).switch(cpu(next), at + 3, 0, R, next);
            scene.exit(cpu(next), at + 5, next, libc::SYS_futex);
            park(&mut scene, tid, at + 8);
        }
        // One that becomes due while it runs is served without a wait.
        due += if at + 20 < due { 0 } else { 10_000 };
        asked = wait(&mut scene, next, at + 20, due);
    }
    scene
}

#[test]
fn a_timer_that_either_of_two_threads_serves_is_a_loop_of_both_and_of_neither() {
    // Tokio rounds up. Go rounds down, and waits again for the rest: 1 ms.
    for whole_ms in [|us: u64| us.div_ceil(1_000), |us: u64| (us / 1_000).max(1)] {
        let loops = analyse(&in_turn(whole_ms, |k| if k * k % 7 < 3 { BRIDGE } else { OTHER }, descriptor)).loops;
        let [of] = loops.as_slice() else { panic!("{loops:?}") };
        assert_eq!((of.name.as_str(), of.threads, &of.found), ("bridge timer 10 ms", 2, &LoopFound::AbsoluteTimer));
        assert!((250..=300).contains(&of.activations) && matches!(of.skipped, Some(0..=5)), "{of:?}");
    }
}

/// The steps of the one that serves nearly all are steady, and no thread wakes it.
#[test]
fn a_thread_that_serves_nearly_all_of_a_timer_has_no_loop_beside_it() {
    let scene = in_turn(|us| us.div_ceil(1_000), |k| if k % 20 == 0 { OTHER } else { BRIDGE }, descriptor);
    let loops = analyse(&scene).loops;
    let found: Vec<(&str, u64)> = loops.iter().map(|of| (of.name.as_str(), of.threads)).collect();
    assert_eq!(found, [("bridge timer 10 ms", 2)]);
}

/// As Tokio without sockets, at one futex, and Java's executors of two threads, at one of each.
#[test]
fn threads_that_wait_one_at_a_time_at_futexes_serve_their_timers_together() {
    /// FUTEX_WAIT_BITSET, private.
    const WAIT: i64 = 9 | 128;
    for call in
        [|_| (libc::SYS_futex, 0x7f00_3000, WAIT), |tid| (libc::SYS_futex, 0x7f00_3000 + 256 * i64::from(tid), WAIT)]
    {
        let scene = in_turn(|us| us.div_ceil(1_000), |k| if k * k % 7 < 3 { BRIDGE } else { OTHER }, call);
        let loops = analyse(&scene).loops;
        let [of] = loops.as_slice() else { panic!("{loops:?}") };
        assert_eq!((of.name.as_str(), of.threads, &of.found), ("bridge timer 10 ms", 2, &LoopFound::AbsoluteTimer));
        assert!((250..=300).contains(&of.activations) && matches!(of.skipped, Some(0..=5)), "{of:?}");
    }
}

#[test]
fn releases_amid_lost_events_of_any_thread_that_serves_a_timer_are_not_skipped() {
    // The one that serves least is alone with its CPU, whose events are lost while it serves all.
    let server = |k| if k % 3 == 0 || (100..130).contains(&k) { OTHER } else { BRIDGE };
    let mut scene = in_turn(|us| us.div_ceil(1_000), server, descriptor);
    let (since_ns, time_ns) = (1_015_500 * US, 1_265_500 * US);
    let cpu = (OTHER - BRIDGE) as u16;
    scene.events.retain(|(of, at_ns, ..)| *of != cpu || !(since_ns..time_ns).contains(at_ns));
    let place = format!("cpu {cpu} ftrace sched");
    scene.lost.push(Lost { since_ns, time_ns, what: LostWhat::KernelEvents, place, count: 99, is_estimate: false });
    let loops = analyse(&scene).loops;
    let of = loops.iter().find(|of| of.name == "bridge timer 10 ms").unwrap();
    assert!(of.threads == 2 && of.activations > 250 && matches!(of.skipped, Some(0..=5)), "{of:?}");
}

#[test]
fn a_wait_of_a_millisecond_after_each_activation_is_not_the_rest_of_the_one_before() {
    const CALL: (i64, i64, i64) = (libc::SYS_epoll_pwait, 5, 0);
    let mut scene = new();
    let mut free = 100;
    for k in 1..=300u64 {
        // It works for 0.1 to 0.4 ms each 10 ms, and 1 ms later for half of that.
        let (due, work) = (k * 10_000, 100 + k * 37 % 300);
        let asked = free + 1 + (due - free).div_ceil(1_000) * 1_000;
        wait_until(&mut scene, CALL, free, (asked, asked + 5, asked + 8));
        let again = asked + 10 + work;
        wait_until(&mut scene, CALL, again, (again + 1_001, again + 1_006, again + 1_009));
        free = again + 1_011 + work / 2;
    }
    scene.enter(0, free, CTRL, CALL.0, CALL.1, CALL.2).switch(0, free + 2, CTRL, S, 0);
    let loops = analyse(&scene).loops;
    let found: Vec<(&str, u64)> = loops.iter().map(|of| (of.name.as_str(), of.activations)).collect();
    // Both are kept each 10 ms.
    assert_eq!(found, [("ctrl timer 10 ms", 300), ("ctrl timer 10 ms #2", 300)]);
}

/// CTRL signals BRIDGE each period at one of two words, where BRIDGE waits by that operation. For the one besides it waits after 20 µs of
/// work, for 30 µs.
fn at_two_words(scene: &mut Scene, operation: i64, word: fn(u64) -> i64, answer: Option<i64>) {
    const CALL: i64 = libc::SYS_futex;
    let (mut free, mut ready) = (100, 100);
    for k in 1..=200u64 {
        let release = k * PERIOD;
        scene.enter(1, ready, BRIDGE, CALL, word(k), operation).switch(1, ready + 1, BRIDGE, S, 0);
        sleep_until(scene, free, release, release + 5, release + 8);
        scene.enter(0, release + 50, CTRL, CALL, word(k), 1 << 32 | WAKE).wake(0, release + 52, CTRL, 0, BRIDGE);
        scene.exit(0, release + 54, CTRL, CALL);
        scene.switch(1, release + 60, 0, R, BRIDGE).exit(1, release + 61, BRIDGE, CALL);
        if let Some(answer) = answer {
            scene.enter(1, release + 81, BRIDGE, CALL, answer, operation).switch(1, release + 82, BRIDGE, S, 0);
            scene.wake(0, release + 105, CTRL, 0, BRIDGE);
            scene.switch(1, release + 110, 0, R, BRIDGE).exit(1, release + 111, BRIDGE, CALL);
        }
        (free, ready) = (release + 110, release + 131);
    }
    scene.enter(0, free, CTRL, libc::SYS_clock_nanosleep, 1, ABSTIME).switch(0, free + 2, CTRL, S, 0);
    scene.enter(1, ready, BRIDGE, CALL, word(201), operation).switch(1, ready + 1, BRIDGE, S, 0);
}

#[test]
fn the_words_of_both_groups_of_a_condition_variable_are_one_place() {
    // glibc's, of which each signal makes the other group the one that waits.
    let mut scene = new();
    at_two_words(&mut scene, WAIT_BITSET, |k| 0x7f00_1028 + 4 * (k % 2) as i64, None);
    let loops = analyse(&scene).loops;
    let of = loops.iter().find(|of| of.name == "bridge futex").unwrap();
    assert_eq!((of.period_ns, of.activations, of.response_time.p50_ns), (PERIOD * US, 200, Some(79 * US)));
}

#[test]
fn a_word_beside_the_one_that_a_thread_waits_at_may_be_for_something_else() {
    for (operation, answer) in [(WAIT, 0x7f00_102c), (WAIT_BITSET, 0x7f00_1024)] {
        let mut scene = new();
        at_two_words(&mut scene, operation, |_| 0x7f00_1028, Some(answer));
        let loops = analyse(&scene).loops;
        let of = loops.iter().find(|of| of.name == "bridge futex").unwrap();
        assert_eq!((of.activations, of.response_time.p50_ns), (200, Some(79 * US)), "{of:?}");
    }
}

/// Of a thread that keeps these schedules, ms, and waits for the next moment by this call, for whole milliseconds.
fn event_loop(call: (i64, i64, i64), periods: &[u64]) -> Vec<(String, u64)> {
    let mut scene = new();
    let mut due: Vec<u64> = periods.iter().map(|period| period * PERIOD).collect();
    let mut free = 100;
    while free < 3_000_000 {
        let next = *due.iter().min().unwrap();
        let asked = free + 1 + (next - free).div_ceil(1_000) * 1_000;
        wait_until(&mut scene, call, free, (asked, asked + 5, asked + 8));
        free = asked + 110 + asked % 83;
        for (due, period) in due.iter_mut().zip(periods).filter(|(due, _)| **due <= asked) {
            *due += period * PERIOD;
        }
    }
    scene.enter(0, free, CTRL, call.0, call.1, call.2).switch(0, free + 2, CTRL, S, 0);
    analyse(&scene).loops.into_iter().map(|of| (of.name, of.activations)).collect()
}

#[test]
fn polls_for_whole_milliseconds_are_rounded_by_whatever_call() {
    // On Arm each poll(2) is one of ppoll.
    for call in [libc::SYS_poll, libc::SYS_ppoll] {
        let mut found = event_loop((call, 0x7fff_1000, 2), &[10, 25]);
        found.sort_unstable();
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ctrl timer 10 ms", "ctrl timer 25 ms"], "{call} {found:?}");
        assert!(found[0].1 > 290 && found[1].1 > 100, "{found:?}");
    }
}

#[test]
fn what_a_read_found_is_what_was_sent_last_and_not_as_many_sends_ago_as_reads_took_several() {
    const MESSAGE: i64 = 16;
    let mut scene = new();
    let (mut free, mut ready, mut taken) = (100, 100, 0u64);
    let returns = |scene: &mut Scene, at: u64, count: u64| {
        scene.event(1, at, KernelEvent::SyscallExit, BRIDGE, [libc::SYS_read, count as i64 * MESSAGE, 0]);
    };
    for k in 1..=400u64 {
        let (release, sent) = (k * PERIOD, k * PERIOD + 50);
        sleep_until(&mut scene, free, release, release + 5, release + 8);
        // All that is there by then: BRIDGE works for 1.3 ms, from the 50th on, and does not sleep any more.
        while ready < sent {
            scene.enter(1, ready, BRIDGE, libc::SYS_read, 5, 0x7f00);
            if taken == k - 1 {
                scene.switch(1, ready + 1, BRIDGE, S, 0);
                break;
            }
            returns(&mut scene, ready + 2, k - 1 - taken);
            (ready, taken) = (ready + 1_302, k - 1);
        }
        scene.enter(0, sent, CTRL, libc::SYS_write, 4, 0x7f00);
        if ready < sent {
            scene.wake(0, sent + 2, CTRL, 0, BRIDGE).switch(1, sent + 10, 0, R, BRIDGE);
            returns(&mut scene, sent + 11, 1);
            (ready, taken) = (sent + 11 + if k < 50 { 100 } else { 1_300 }, k);
        }
        scene.event(0, sent + 4, KernelEvent::SyscallExit, CTRL, [libc::SYS_write, MESSAGE, 0]);
        free = release + 110;
    }
    let analysis = analyse(&scene);
    let of = analysis.loops.iter().find(|of| of.name == "bridge read").unwrap();
    assert!(of.release_latency.max_ns < Some(1_400 * US) && of.activations > 300, "{of:?}");
    assert!(of.release_latency.mean_ns > Some(500e3), "the first of what it took waited longest: {of:?}");
}

#[test]
fn an_answer_that_a_poll_awaits_ends_no_activation_of_a_loop_that_polls() {
    // By the number of descriptors: the second argument of poll(2), the first of select(2).
    let calls = [(libc::SYS_ppoll, [(0x7fff_1000, 3), (0x7fff_2000, 1)]), (libc::SYS_pselect6, [(7, 0), (5, 0)])];
    for (call, [timed, answer]) in calls {
        let mut scene = new();
        let mut free = 100;
        for k in 1..=200u64 {
            let release = k * PERIOD;
            wait_until(&mut scene, (call, timed.0, timed.1), free, (release, release + 5, release + 8));
            scene.enter(0, release + 40, CTRL, call, answer.0, answer.1).switch(0, release + 42, CTRL, S, 0);
            scene.wake(1, release + 140, BRIDGE, 0, CTRL).switch(0, release + 145, 0, R, CTRL);
            scene.exit(0, release + 147, CTRL, call);
            free = release + 170 + k % 7;
        }
        scene.enter(0, free, CTRL, call, timed.0, timed.1).switch(0, free + 2, CTRL, S, 0);
        let analysis = analyse(&scene);
        let [of] = analysis.loops.as_slice() else { panic!("{:?}", analysis.loops) };
        assert_eq!((of.name.as_str(), of.activations, of.skipped), ("ctrl timer 1 ms", 200, Some(0)));
        assert!(of.response_time.p50_ns > Some(165 * US), "{:?}", of.response_time);
    }
}

#[test]
fn waits_of_whole_milliseconds_are_alike_and_are_no_pause_for_that() {
    // As libevent's: each 20 ms by a clock that stands for 4 ms at a time, so that its waits are for 17 ms mostly, and its thread may start
    // late.
    const CALL: (i64, i64, i64) = (libc::SYS_epoll_wait, 5, 0);
    let mut scene = new();
    let (mut free, mut due) = (1_100u64, 20_500u64);
    let coarse = |us: u64| us / 4_000 * 4_000 + 500;
    for late in server::poisson(300, 1_500.0, 11).windows(2).map(|pair| (pair[1] - pair[0]).min(6_000)) {
        let asked = free + 1 + due.saturating_sub(coarse(free)).div_ceil(1_000) * 1_000;
        wait_until(&mut scene, CALL, free, (asked, asked + 5, asked + 8 + late));
        free = asked + late + 110;
        due += if coarse(free) >= due { 20_000 } else { 0 };
    }
    scene.enter(0, free, CTRL, CALL.0, CALL.1, CALL.2).switch(0, free + 2, CTRL, S, 0);
    let loops = analyse(&scene).loops;
    assert!(
        loops.iter().all(|of| !of.name.contains("sleep")),
        "{:?}",
        loops.iter().map(|of| &of.name).collect::<Vec<_>>()
    );
}

/// Of a thread that sleeps for 1 ms, asks BRIDGE that often, and waits for each answer for 0.7 ms: names and activations of its loops.
fn asks(scene: &mut Scene, answers: fn(u64) -> u64, sleep: u64) -> Vec<(String, u64)> {
    let mut at = 100;
    for k in 1..=200u64 {
        let asked = at + 1 + sleep;
        sleep_for(scene, libc::SYS_clock_nanosleep, at, (asked, asked + 50, asked + 55));
        at = asked + 90 + k % 7;
        for _ in 0..answers(k) {
            scene.enter(0, at, CTRL, libc::SYS_read, 5, 0).switch(0, at + 1, CTRL, S, 0);
            scene.wake(1, at + 700, BRIDGE, 0, CTRL).switch(0, at + 705, 0, R, CTRL);
            scene.exit(0, at + 707, CTRL, libc::SYS_read);
            at += 730;
        }
    }
    scene.enter(0, at, CTRL, libc::SYS_clock_nanosleep, 1, 0).switch(0, at + 2, CTRL, S, 0);
    analyse(scene).loops.into_iter().map(|of| (of.name, of.activations)).collect()
}

#[test]
fn answers_for_which_a_thread_waits_longer_than_it_sleeps_end_none_of_its_activations() {
    let mut scene = new();
    assert_eq!(asks(&mut scene, |_| 2, 1_000), [("ctrl sleep 1 ms".into(), 200)]);
    // Messages that come at random, and a short sleep after some of them.
    let mut scene = new();
    let found = asks(&mut scene, |k| k * k % 5, 100);
    assert!(found.iter().all(|(name, _)| name == "ctrl read"), "{found:?}");
}

#[test]
fn a_slow_schedule_beside_a_fast_one_is_a_loop_however_few_its_moments_are() {
    let moments = (1..=1_000).map(|k| k * 1_000).chain((1..=20).map(|k| k * 50_000 + 400));
    assert_eq!(
        schedules_of(moments),
        [("ctrl timer 1 ms".into(), 1_000, Some(0)), ("ctrl timer 50 ms".into(), 20, Some(0))]
    );
}

/// As the monitor of Go's runtime: 20 µs at first, up to 10 ms.
#[test]
fn a_thread_that_sleeps_ever_longer_while_there_is_nothing_to_do_is_no_loop() {
    const SLEEP: i64 = libc::SYS_nanosleep;
    const MONITOR: [u64; 11] = [20, 20, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_120];
    let asleep = |lengths: &[u64]| {
        let (mut scene, mut at) = (new(), 100);
        for length in lengths {
            let asked = at + 1 + length;
            sleep_for(&mut scene, SLEEP, at, (asked, asked + 5, asked + 8));
            at = asked + 15;
        }
        (scene, at)
    };
    let names = |scene: &Scene| analyse(scene).loops.into_iter().map(|of| of.name).collect::<Vec<String>>();
    let loops_of = |first: &[u64], last: u64| {
        let (mut scene, at) = asleep(&[first, &[last; 200]].concat());
        scene.enter(0, at, CTRL, SLEEP, 1, 0).switch(0, at + 2, CTRL, S, 0);
        names(&scene)
    };
    assert_eq!(loops_of(&MONITOR, 10_000), [""; 0]);
    // Two that happen to be twice as long as the one before are none.
    assert_eq!(loops_of(&[2_000, 4_000, 3_000, 6_000, 1_000], 10_000).len(), 1);
    // A driver that waits for its device, and then is a loop.
    assert_eq!(loops_of(&[1_000, 2_000, 4_000, 8_000, 16_000], 20_000).len(), 1);
    // One that is so afterwards, by another wait.
    let (mut scene, mut at) = asleep(&[&MONITOR[..], &[10_000; 3]].concat());
    let free = at.next_multiple_of(10_000);
    for due in (1..=300).map(|k| free + k * 10_000) {
        wait_until(&mut scene, (libc::SYS_read, 5, 0), at, (due, due + 5, due + 8));
        at = due + 100;
    }
    scene.enter(0, at, CTRL, libc::SYS_read, 5, 0).switch(0, at + 2, CTRL, S, 0);
    assert_eq!(names(&scene).len(), 1);
}

#[test]
fn a_deadline_thread_that_yields_waits_for_its_next_period() {
    /// The scheduler's priority of all such threads, beside that of a normal one, as they leave and as they come.
    const DEADLINE: i64 = 120 << 16 | 0xffff;
    const COMES: i64 = -1 << 16 | 120;
    let mut scene = new();
    let comes = |scene: &mut Scene, at: u64| {
        scene.event(0, at, KernelEvent::SchedSwitch, HOG, [CTRL.into(), R, COMES]);
    };
    let leaves = |scene: &mut Scene, at: u64, timer: Option<u64>| {
        if let Some(asked) = timer {
            scene.event(
                0,
                at - 3,
                KernelEvent::TimerStart,
                CTRL,
                [(asked * US) as i64, (asked * US) as i64, TIMER << 8],
            );
        }
        scene.event(0, at, KernelEvent::SchedSwitch, CTRL, [HOG.into(), 0, DEADLINE]);
    };
    for k in 1..=50u64 {
        let release = k * PERIOD;
        // In the middle of its activation it is preempted, by a thread of an earlier deadline: that is no wait.
        // Every other time the switch to it is missing, as some kernels leave out those of an idle CPU, and its page fault shows it.
        if k % 2 == 0 {
            comes(&mut scene, release + 9);
        } else {
            scene.event(0, release + 10, KernelEvent::PageFault, CTRL, [0x5000, 0, 0]);
        }
        leaves(&mut scene, release + 109, None);
        comes(&mut scene, release + 209);
        leaves(&mut scene, release + 309, Some(release + PERIOD));
        fires(&mut scene, release + PERIOD + 4, HOG);
    }
    // At its end it is a normal thread, as rt-app's are.
    scene.event(0, 51_009, KernelEvent::SchedSwitch, HOG, [CTRL.into(), R, 120 << 16 | 120]);
    let analysis = analyse(&scene);
    let [of] = analysis.loops.as_slice() else { panic!("{:?}", analysis.loops) };
    assert_eq!((of.name.as_str(), &of.found), ("ctrl timer 1 ms", &LoopFound::AbsoluteTimer));
    assert_eq!((of.priority, of.activations, of.release_latency.p50_ns), (Some(-1), 49, Some(9 * US)));
    assert_eq!((of.response_time.p50_ns, of.cpu_time.p50_ns), (Some(306 * US), Some(197 * US)));
    assert_eq!(of.overruns, Some(0));
}

#[test]
fn a_number_that_is_used_again_is_another_thread() {
    let mut scene = new();
    periodic(&mut scene, 30, &[]);
    // It dies, and another program of this number sleeps for other times.
    next_life(&mut scene, 30, 8);
    let periods: Vec<u64> = analyse(&scene).loops.iter().map(|of| of.period_ns).collect();
    assert_eq!(periods, [1_000 * US, 3_000 * US]);
}

#[test]
fn activations_of_which_events_were_lost_are_left_out() {
    let mut scene = new();
    periodic(&mut scene, 100, &[]);
    scene.lost.push(Lost {
        since_ns: 50_000 * US,
        time_ns: 52_500 * US,
        what: LostWhat::KernelEvents,
        place: "cpu 0 ftrace sched".into(),
        count: 9,
        is_estimate: false,
    });
    let of = &analyse(&scene).loops[0];
    assert!(
        (2..10).contains(&of.left_out) && of.activations + of.left_out == 100,
        "{} {}",
        of.activations,
        of.left_out
    );
    assert_eq!(of.release_latency.max_ns, Some(10 * US));
}

#[test]
fn releases_amid_lost_events_are_not_skipped() {
    // Also where the first event after the hole is of the thread itself, which nothing had switched to.
    for until in 60_500..61_500 {
        let mut scene = new();
        periodic(&mut scene, 100, &[]);
        let (since_ns, time_ns) = (40_500 * US, until * US);
        scene.events.retain(|(_, at_ns, ..)| !(since_ns..time_ns).contains(at_ns));
        let (what, place) = (LostWhat::KernelEvents, "cpu 0 ftrace sched".to_owned());
        scene.lost.push(Lost { since_ns, time_ns, what, place, count: 200, is_estimate: false });
        let of = &analyse(&scene).loops[0];
        assert_eq!((of.skipped, of.activations + of.left_out), (Some(0), 100), "until {until}: {of:?}");
        assert!((of.rate_hz.unwrap() - 1000.0).abs() < 20.0, "a hole is no slow loop: {of:?}");
    }
}

#[test]
fn wakes_of_activations_that_are_left_out_are_not_counted_among_the_others() {
    let mut scene = new();
    passed_on(&mut scene, 100, false);
    scene.lost.push(Lost {
        since_ns: 50_070 * US,
        time_ns: 50_080 * US,
        what: LostWhat::KernelEvents,
        place: "cpu 1 ftrace sched".into(),
        count: 9,
        is_estimate: false,
    });
    let analysis = analyse(&scene);
    let of = analysis.loops.iter().find(|of| of.name == "bridge read").unwrap();
    assert!(of.left_out > 0 && of.activations + of.left_out == 100, "{} {}", of.activations, of.left_out);
    assert_eq!(of.found, LoopFound::WokenBy { thread: "ctrl/10".into(), activations: of.activations });
}

#[test]
fn a_hole_is_no_period_of_a_point() {
    let mut scene = new();
    passed_on(&mut scene, 100, false);
    let (since_ns, time_ns) = (40_500 * US, 60_500 * US);
    scene.events.retain(|(_, at_ns, ..)| !(since_ns..time_ns).contains(at_ns));
    for cpu in [0, 1] {
        let (place, what) = (format!("cpu {cpu} ftrace sched"), LostWhat::KernelEvents);
        scene.lost.push(Lost { since_ns, time_ns, what, place, count: 200, is_estimate: false });
    }
    let analysis = analyse(&scene);
    let points: Vec<_> = analysis.chains.iter().flat_map(|chain| &chain.points).collect();
    assert!(!points.is_empty());
    for point in points {
        assert!(point.period.max_ns < Some(2_000 * US) && point.gaps == 0, "{point:?}");
        assert!((point.rate_hz.unwrap() - 1000.0).abs() < 20.0, "{point:?}");
    }
}

#[test]
fn what_a_hole_cuts_off_is_not_unexplained() {
    let mut scene = new();
    passed_on(&mut scene, 400, false);
    for cycle in (50..100).step_by(10) {
        let (since_ns, time_ns) = ((1_000 * cycle + 60) * US, (1_000 * cycle + 960) * US);
        scene.events.retain(|(_, at_ns, ..)| !(since_ns..time_ns).contains(at_ns));
        for cpu in [0, 1] {
            let (place, what) = (format!("cpu {cpu} ftrace sched"), LostWhat::KernelEvents);
            scene.lost.push(Lost { since_ns, time_ns, what, place, count: 200, is_estimate: false });
        }
    }
    let outcomes: Vec<_> = analyse(&scene).chains.iter().map(|chain| chain.outcomes.clone()).collect();
    assert!(!outcomes.is_empty());
    for of in outcomes {
        assert_eq!(of.unexplained, 0, "{of:?}");
    }
}

#[test]
fn the_last_activation_ends_where_its_thread_waits_and_is_killed() {
    /// What a sleep returns that a signal ended.
    const RESTART: i64 = -516;
    let mut scene = new();
    periodic(&mut scene, 30, &[]);
    let killed = 30_110 + 900;
    scene.wake(0, killed, HOG, 0, CTRL).switch(0, killed + 2, 0, R, CTRL);
    scene.event(0, killed + 3, KernelEvent::SyscallExit, CTRL, [libc::SYS_clock_nanosleep, RESTART, 0]);
    scene.switch(0, killed + 10, CTRL, 0x10, 0);
    let of = &analyse(&scene).loops[0];
    assert_eq!((of.activations, of.response_time.max_ns, of.overruns), (30, Some(110 * US), Some(0)));
}

#[test]
fn a_process_that_ends_at_once_is_nothing() {
    let mut scene = new();
    for tid in 100..1_100 {
        let at = 100 + u64::try_from(tid).unwrap() * 10;
        scene.thread(tid, tid, "cc1", true);
        scene.event(0, at, KernelEvent::SchedFork, CTRL, [tid.into(), 0, 0]);
        scene.event(0, at + 1, KernelEvent::SchedWakeupNew, CTRL, [tid.into(), 0, 0]);
        scene.switch(0, at + 2, CTRL, R, tid).switch(0, at + 5, tid, 0x10, CTRL);
    }
    let analysis = analyse(&scene);
    assert!(analysis.loops.is_empty() && analysis.chains.is_empty() && analysis.waking.is_empty());
}

#[test]
fn the_worst_loop_comes_first_and_the_fastest_stands_for_the_program() {
    let mut scene = new();
    periodic(&mut scene, 30, &[]);
    // The thread's next life has three times the period, and starts half of that late.
    next_life(&mut scene, 25, 1_500);
    let analysis = analyse(&scene);
    let loops: Vec<&str> = analysis.loops.iter().map(|of| of.name.as_str()).collect();
    let chains: Vec<&str> = analysis.chains.iter().map(|of| of.name.as_str()).collect();
    assert_eq!((&loops, &chains), (&vec!["ctrl timer 3 ms", "ctrl timer 1 ms"], &loops));
    assert_eq!(main_chain(&analysis).map(|chain| chain.name.as_str()), Some("ctrl timer 1 ms"));
}
