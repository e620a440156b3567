//! Small scenes of threads on CPUs, with the critical path they must give, and what holds for every scene.

use std::collections::HashMap;

use proptest::prelude::*;
use taut_analysis::{Above, Cause, Contribution, ExplainOptions, MessageRow, Prediction, Row, RowSink};
use taut_recording::{KernelEvent, Kind, Lost, LostWhat, Object, ObjectKind, Sample};

mod scene;

use scene::*;

fn is(us: u64, cause: Cause, detail: &str) -> (u64, Cause, String) {
    (us, cause, detail.into())
}

/// One message in thread 10, from 100 to 1000 µs, alone on CPU 0 since 0.
fn alone() -> Scene {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 30, R, 0);
    scene.stamp(10, 100, 1, "a").stamp(10, 1000, 1, "b");
    scene
}

#[test]
fn a_thread_alone_works() {
    assert_eq!(alone().switch(0, 2000, 10, S, 0).path(), [is(900, Cause::Cpu, "")]);
}

/// Wants the messages of odd ids.
#[derive(Default)]
struct Odd {
    messages: Vec<u64>,
    hops: Vec<u64>,
}

impl RowSink for Odd {
    fn row(&mut self, row: Row<'_>) {
        if let Row::Hop(hop) = row {
            self.hops.push(hop.id);
        }
    }

    fn message(&mut self, message: MessageRow<'_>) -> bool {
        self.messages.push(message.id);
        message.id % 2 == 1
    }
}

#[test]
fn a_message_that_nobody_wants_is_told_and_not_explained() {
    let mut scene = alone();
    scene.stamp(10, 1100, 2, "a").stamp(10, 1300, 2, "b").stamp(10, 1400, 3, "a").stamp(10, 1500, 3, "b");
    scene.switch(0, 2000, 10, S, 0);
    let mut odd = Odd::default();
    let analysis = scene.analyse_by_row(ExplainOptions::default(), &mut odd);
    assert_eq!((odd.messages, odd.hops), (vec![1, 2, 3], vec![1, 3]));
    assert_eq!((analysis.chains[0].messages, analysis.chains[0].explained.messages), (3, 2));
}

#[test]
fn a_hog_that_runs_instead_is_named() {
    let mut scene = alone();
    scene.switch(0, 300, 10, R, 30).switch(0, 500, 30, R, 10).switch(0, 2000, 10, S, 0);
    let expected = [is(200, Cause::Cpu, ""), is(200, Cause::Preempted, "by hog/30"), is(500, Cause::Cpu, "")];
    assert_eq!(scene.path(), expected);
    let notes = &scene.explained().paths[0].path[1].note;
    assert_eq!(notes, "on its CPU ran hog/30 200 µs");
}

/// 2000 messages of 100 µs; in each tenth that thread has the CPU for 1 ms. What is predicted without these causes.
fn without_what_runs_instead(other: i32, without: &str) -> Prediction {
    let mut scene = Scene::new();
    scene.thread(40, 40, "taut", false);
    scene.info.facts = vec![("recorder_pid".into(), "40".into())];
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 30, R, 0);
    for id in 1..=2000 {
        let (start, late) = (id * 2_000, id % 10 == 0);
        if late {
            scene.switch(0, start + 50, 10, R, other).switch(0, start + 1050, other, R, 10);
        }
        scene.stamp(10, start, id, "a").stamp(10, start + if late { 1100 } else { 100 }, id, "b");
    }
    scene.switch(0, 5_000_000, 10, S, 0);
    let wanted = ExplainOptions { without: vec![vec![without.into()]], ..ExplainOptions::default() };
    let predictions = scene.analyse(wanted).chains.remove(0).explained.predictions;
    predictions.into_iter().find(|found| found.without == without).unwrap()
}

#[test]
fn what_the_recorder_took_is_not_promised() {
    let p99 = |of: &Prediction| of.quantiles.last().map(|of| (of.quantile, of.before_ns, of.after_ns)).unwrap();
    let of_hog = without_what_runs_instead(30, "preempted");
    assert_eq!(p99(&of_hog), (0.99, 1_100_000, 100_000));
    // The whole distribution, as far as messages carry it.
    assert!(of_hog.percentiles.iter().all(|(quantile, ns)| *quantile <= 0.99 && *ns == 100_000));
    assert!(of_hog.percentiles.last().is_some_and(|(quantile, _)| *quantile > 0.98));
    assert!(!of_hog.assumption.contains("recorder"), "{}", of_hog.assumption);
    for without in ["preempted", "process:robot"] {
        let of_recorder = without_what_runs_instead(40, without);
        assert_eq!(p99(&of_recorder), (0.99, 1_100_000, 1_100_000), "{without}");
        assert!(of_recorder.percentiles.last().is_some_and(|(_, ns)| *ns == 1_100_000));
        assert!(
            of_recorder.assumption.ends_with("; what this recorder took of it stays"),
            "{}",
            of_recorder.assumption
        );
    }
    // Unless that is the question.
    assert_eq!(p99(&without_what_runs_instead(40, "thread:taut")), (0.99, 1_100_000, 100_000));
}

#[test]
fn a_wakeup_says_which_idle_state_the_cpu_left() {
    let woken = |left: bool| {
        let mut scene = alone();
        scene.enter(0, 200, 10, libc::SYS_read, 3, 0).switch(0, 300, 10, S, 0);
        scene.event(0, 310, KernelEvent::CpuIdle, 0, [2, 0, 0]).wake(1, 400, 30, 0, 10);
        if left {
            scene.event(0, 460, KernelEvent::CpuIdle, 0, [-1, 0, 0]);
        }
        scene.switch(0, 470, 0, R, 10).exit(0, 480, 10, libc::SYS_read).switch(0, 2000, 10, S, 0);
        let path = scene.explained().paths.remove(0).path;
        path.into_iter().find(|piece| piece.cause == Cause::Wakeup).unwrap().note
    };
    assert!(woken(true).ends_with("; the CPU left idle state 2 after 60 µs"), "{}", woken(true));
    assert!(!woken(false).contains("idle state"), "an event is missing: {}", woken(false));
}

#[test]
fn runnable_while_the_cpu_idles_is_throttled() {
    let mut scene = alone();
    scene.switch(0, 300, 10, R, 0).switch(0, 800, 0, R, 10).switch(0, 2000, 10, S, 0);
    assert_eq!(scene.path()[1], is(500, Cause::Throttled, ""));
}

#[test]
fn woken_while_the_cpu_idles_is_the_hosts_doing_unless_a_quota_holds_others() {
    let woken = || {
        let mut scene = alone();
        scene.stamps[1].1 = 9000 * US;
        scene.enter(0, 200, 10, libc::SYS_read, 3, 0).switch(0, 300, 10, S, 0).wake(1, 400, 30, 0, 10);
        scene.switch(0, 8000, 0, R, 10).exit(0, 8010, 10, libc::SYS_read).switch(0, 9500, 10, S, 0);
        scene
    };
    assert!(woken().path().iter().any(|piece| piece.0 == 7600 && piece.1 == Cause::Hypervisor));
    let mut held = woken();
    held.switch(2, 100, 0, R, 11).switch(2, 350, 11, R, 0).switch(2, 7900, 0, R, 11).switch(2, 9000, 11, S, 0);
    assert!(held.path().iter().any(|piece| piece.0 == 7600 && piece.1 == Cause::Throttled));
}

#[test]
fn given_to_the_idle_task_is_throttled_however_short_it_idles() {
    let mut scene = alone();
    scene.switch(0, 300, 10, R, 0).switch(0, 302, 0, R, 30).switch(0, 800, 30, S, 10).switch(0, 2000, 10, S, 0);
    assert_eq!(scene.path()[1].1, Cause::Throttled);
}

#[test]
fn what_interrupted_a_long_computation_goes_with_it() {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 30, R, 0);
    for id in 1..=2000 {
        // 100 µs of work; each tenth has 1000 and some, and 50 µs of interrupts.
        let (start, late) = (id * 2_000, id % 10 == 0);
        if late {
            let at = start + 400;
            scene.event(0, at, KernelEvent::IrqEnter, 10, [0xec, 2, 0]);
            scene.event(0, at + 50, KernelEvent::IrqExit, 10, [0xec, 2, 0]);
        }
        scene.stamp(10, start, id, "a").stamp(10, start + if late { 1050 + id / 100 } else { 100 }, id, "b");
    }
    scene.switch(0, 5_000_000, 10, S, 0);
    let predictions = scene.explained().predictions.into_iter().find(|w| w.without == "cpu").unwrap();
    let p99_ns = predictions.p99_ns.unwrap();
    assert!((104_000..=105_100).contains(&p99_ns), "900 µs of the 1000, and with them 45 of the 50: {p99_ns}");
}

#[test]
fn an_interrupt_and_a_call_are_told_from_work() {
    let mut scene = alone();
    scene.enter(0, 200, 10, libc::SYS_write, 3, 0).exit(0, 300, 10, libc::SYS_write);
    scene.event(0, 400, KernelEvent::IrqEnter, 10, [0xec, 2, 0]).event(0, 450, KernelEvent::IrqExit, 10, [0xec, 2, 0]);
    scene.switch(0, 2000, 10, S, 0);
    let expected = [
        is(100, Cause::Cpu, ""),
        is(100, Cause::Syscall, "write"),
        is(100, Cause::Cpu, ""),
        is(50, Cause::Irq, "local timer"),
        is(550, Cause::Cpu, ""),
    ];
    assert_eq!(scene.path(), expected);
}

#[test]
fn a_tick_that_comes_late_tells_that_the_cpu_stood_still() {
    let mut scene = alone();
    scene.events.push((0, 150 * US, KernelEvent::TimerStart, IRQ, 10, [400_000, 400_000, 0]));
    scene.event(0, 700, KernelEvent::IrqEnter, 10, [0xec, 2, 0]).event(0, 710, KernelEvent::IrqExit, 10, [0xec, 2, 0]);
    scene.switch(0, 2000, 10, S, 0);
    let expected = [
        is(300, Cause::Cpu, ""),
        is(300, Cause::Hypervisor, "the tick came late"),
        is(10, Cause::Irq, "local timer"),
        is(290, Cause::Cpu, ""),
    ];
    assert_eq!(scene.path(), expected);
}

#[test]
fn a_cpu_without_any_event_while_its_tick_is_due_stood_still_whatever_comes_first() {
    let mut scene = alone();
    scene.stamps[1].1 = 60_000 * US;
    scene.events.push((0, 150 * US, KernelEvent::TimerStart, IRQ, 10, [400_000, 400_000, 0]));
    scene.event(0, 58_400, KernelEvent::IrqEnter, 10, [0xfd, 2, 0]);
    scene.event(0, 58_410, KernelEvent::IrqExit, 10, [0xfd, 2, 0]);
    scene.event(0, 58_420, KernelEvent::IrqEnter, 10, [0xec, 2, 0]);
    scene.event(0, 58_430, KernelEvent::IrqExit, 10, [0xec, 2, 0]);
    scene.switch(0, 70_000, 10, S, 0);
    let path = scene.path();
    assert_eq!(path[..2], [is(300, Cause::Cpu, ""), is(58_000, Cause::Hypervisor, "the tick came late")]);
    assert!(path[2..].iter().all(|piece| piece.1 != Cause::Hypervisor), "{path:?}");
}

/// Ticks of 4 ms on CPU 0 from 1 ms on, of a thread that nobody recorded; `until` the end of the last one.
fn ticks(scene: &mut Scene, ticks: u64, timer: i64) {
    for k in 0..ticks {
        let (at, due) = (1_000 + k * 4_000, ((5_000 + k * 4_000) * US) as i64);
        scene.event(0, at, KernelEvent::IrqEnter, 10, [0xec, 2, 0]);
        scene.events.push((0, (at + 2) * US, KernelEvent::TimerStart, IRQ, 10, [due, due, timer << 8]));
        scene.event(0, at + 4, KernelEvent::IrqExit, 10, [0xec, 2, 0]);
    }
}

#[test]
fn a_cpu_stood_still_through_a_tick_that_was_armed_before_the_recorded_thread_ran() {
    const TICK: i64 = 0x00ff_8880_0aaa_0000;
    let path = |vector: i64, is_recorded: bool| {
        let mut scene = alone();
        scene.stamps[0].1 = 50_000 * US;
        scene.stamps[1].1 = 60_000 * US;
        ticks(&mut scene, 12, TICK);
        if !is_recorded {
            // The tick at 45 ms was another thread's: it armed the next one, and that is not recorded.
            scene.events.retain(|event| event.1 != 45_002 * US);
        }
        // Due at 49, 53 and 57 ms: the CPU leaves no event from 49 ms on.
        scene.enter(0, 48_500, 10, libc::SYS_getpid, 0, 0).exit(0, 48_510, 10, libc::SYS_getpid);
        scene.event(0, 58_000, KernelEvent::IrqEnter, 10, [0xfd, 2, 0]);
        scene.event(0, 58_001, KernelEvent::IrqExit, 10, [0xfd, 2, 0]);
        scene.event(0, 58_010, KernelEvent::IrqEnter, 10, [vector, 2, 0]);
        let due = (61_000 * US) as i64;
        scene.events.push((0, 58_012 * US, KernelEvent::TimerStart, IRQ, 10, [due, due, TICK << 8]));
        scene.event(0, 58_014, KernelEvent::IrqExit, 10, [vector, 2, 0]);
        scene.switch(0, 70_000, 10, S, 0);
        scene.path()
    };
    let stood_still = is(8_000, Cause::Hypervisor, "the tick came late");
    assert_eq!(path(0xec, true)[0], stood_still);
    assert_eq!(path(0xec, false)[0], stood_still);
    // A CPU whose tick is off (nohz_full) arms it in another interrupt when it has two threads again.
    assert!(path(0xf6, false).iter().all(|piece| piece.1 != Cause::Hypervisor));
}

#[test]
fn a_timer_that_comes_late_while_time_is_stolen_is_the_hosts_doing() {
    let sleep = |stolen_s: f64| {
        let mut scene = alone();
        scene.stamps[1].1 = 10_000 * US;
        scene.enter(0, 200, 10, libc::SYS_clock_nanosleep, 1, 0);
        scene.event(0, 201, KernelEvent::TimerStart, 10, [500_000, 550_000, 0]);
        scene.switch(0, 202, 10, S, 0).wake(0, 8_550, 0, IRQ, 10).switch(0, 8_560, 0, R, 10);
        scene.exit(0, 8_575, 10, libc::SYS_clock_nanosleep).switch(0, 20_000, 10, S, 0);
        for (time_ns, value) in [(0, 3.0), (1_000_000_000, 3.0 + stolen_s)] {
            scene.samples.push(Sample { time_ns, name: "cpu0.steal_s".into(), value });
        }
        scene.path()[4].clone()
    };
    assert_eq!(sleep(0.0), is(8_000, Cause::TimerSlack, "timer interrupt came late"));
    assert_eq!(sleep(0.01), is(8_000, Cause::Hypervisor, "the timer came late while time was stolen (steal)"));
}

#[test]
fn a_loop_that_sleeps_until_moments_is_late_from_these_on() {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 30, R, 0);
    for id in 1..=20 {
        let due = id * 10_000;
        // The tenth is preempted by a hog for 3 ms after its wake; the fifteenth never comes.
        let late = if id == 10 { 3_000 } else { 20 };
        if id == 15 {
            continue;
        }
        let asked = (due * US) as i64;
        scene.enter(0, due - 5_000, 10, libc::SYS_clock_nanosleep, 1, 1);
        scene.event(0, due - 4_999, KernelEvent::TimerStart, 10, [asked, asked, 0]);
        scene.switch(0, due - 4_998, 10, S, 30).wake(0, due, 30, IRQ, 10).switch(0, due + late, 30, R, 10);
        scene.exit(0, due + late + 1, 10, libc::SYS_clock_nanosleep);
        scene.stamp(10, due + late + 2, id, "a").stamp(10, due + late + 100, id, "b");
    }
    scene.switch(0, 300_000, 10, S, 0);
    let analysis = scene.analyse(ExplainOptions::default());
    let (starts, began_ns) = (analysis.chains[0].starts.clone().unwrap(), analysis.totals.start_monotonic_ns);
    assert_eq!((starts.period_ns, starts.missing, starts.lateness.n), (10_000 * US, 1, 19));
    let worst = &starts.worst[0];
    assert_eq!((worst.id, worst.intended_ns + began_ns, worst.late_ns), (10, 100_000 * US, 3_002 * US));
    assert_eq!((worst.pieces[0].cause, worst.pieces[0].detail.as_str()), (Cause::Wakeup, "by hog/30"));
    // A start without a recorded moment is no missing period.
    let mut lossy = scene.clone();
    lossy
        .events
        .retain(|event| !(event.2 == KernelEvent::TimerStart && [60_000, 70_000].contains(&(event.5[0] / US as i64))));
    let starts = lossy.analyse(ExplainOptions::default()).chains[0].starts.clone().unwrap();
    assert_eq!((starts.missing, starts.lateness.n), (1, 17));
    // Two messages of each start share its period.
    let mut two = scene.clone();
    for id in (1..=20).filter(|id| *id != 15) {
        let start = id * 10_000 + if id == 10 { 3_000 } else { 20 };
        two.stamp(10, start + 200, 100 + id, "a").stamp(10, start + 300, 100 + id, "b");
    }
    let starts = two.analyse(ExplainOptions::default()).chains[0].starts.clone().unwrap();
    assert_eq!((starts.period_ns, starts.missing, starts.lateness.n), (10_000 * US, 1, 19));
    // A loop that sleeps for a time has no intended start.
    scene.events.iter_mut().filter(|event| event.2 == KernelEvent::SyscallEnter).for_each(|event| event.5[2] = 0);
    assert!(scene.analyse(ExplainOptions::default()).chains[0].starts.is_none());
}

#[test]
fn a_sleep_ends_when_it_was_asked_to_and_the_rest_is_slack() {
    let mut scene = alone();
    scene.enter(0, 200, 10, libc::SYS_clock_nanosleep, 1, 0);
    scene.event(0, 201, KernelEvent::TimerStart, 10, [500_000, 550_000, 0]);
    scene.switch(0, 202, 10, S, 0).wake(0, 560, 0, IRQ, 10).switch(0, 570, 0, R, 10);
    scene.exit(0, 575, 10, libc::SYS_clock_nanosleep).switch(0, 2000, 10, S, 0);
    let expected = [
        is(100, Cause::Cpu, ""),
        is(2, Cause::Syscall, "clock_nanosleep"),
        is(298, Cause::Sleep, ""),
        is(50, Cause::TimerSlack, ""),
        is(10, Cause::TimerSlack, "timer interrupt came late"),
        is(10, Cause::Wakeup, ""),
        is(5, Cause::Syscall, "clock_nanosleep"),
        is(425, Cause::Cpu, ""),
    ];
    assert_eq!(scene.path(), expected);
}

/// Thread 10 waits on the futex at 0x1010 from 200 to 600 µs; thread 11 on CPU 1 wakes it.
fn futex_wait(operation: i64) -> Scene {
    let mut scene = alone();
    scene.switch(1, 50, 0, R, 11);
    scene.enter(0, 200, 10, libc::SYS_futex, 0x1010, operation).switch(0, 201, 10, S, 0);
    scene.enter(1, 599, 11, libc::SYS_futex, 0x1010, WAKE).wake(1, 600, 11, 0, 10).exit(1, 601, 11, libc::SYS_futex);
    scene.switch(0, 650, 0, R, 10).exit(0, 651, 10, libc::SYS_futex);
    if operation == WAIT {
        // Who waited for a mutex releases it with a wake.
        scene.enter(0, 1100, 10, libc::SYS_futex, 0x1010, WAKE).exit(0, 1101, 10, libc::SYS_futex);
    }
    scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
    scene
}

#[test]
fn a_mutex_is_known_by_its_name_or_else_its_address() {
    let mut scene = futex_wait(WAIT);
    assert_eq!(scene.path()[2], is(399, Cause::Lock, "0x1010"));
    scene.mark(11, 10, 40, "sdk_lock", Kind::LockNamed, 0x1000);
    assert_eq!(scene.path()[2], is(399, Cause::Lock, "sdk_lock"));
    let hypotheses = scene.explained().hypotheses;
    assert_eq!(hypotheses[0].hypothesis, "lock:sdk_lock");
    assert_eq!(scene.path()[3], is(50, Cause::Wakeup, ""));
}

#[test]
fn a_call_has_its_number_on_the_recorded_machine() {
    let of = |architecture: &str, futex: i64| {
        let mut scene = futex_wait(WAIT);
        scene.info.system_calls = architecture.into();
        let calls = [KernelEvent::SyscallEnter, KernelEvent::SyscallExit];
        scene.events.iter_mut().filter(|event| calls.contains(&event.2)).for_each(|event| event.5[0] = futex);
        scene.path()[2].clone()
    };
    let lock = is(399, Cause::Lock, "0x1010");
    assert_eq!([of("x86_64", 202), of("", 202), of("aarch64", 98)], [lock.clone(), lock.clone(), lock]);
    assert_ne!(of("aarch64", 202).1, Cause::Lock);
    assert_ne!(of("vax", 202).1, Cause::Lock);
}

#[test]
fn a_forked_child_has_its_parents_locks() {
    let mut scene = futex_wait(WAIT);
    scene.thread(40, 40, "parent", true);
    scene.mark(40, 10, 40, "shared", Kind::LockNamed, 0x1000);
    assert_eq!(scene.path()[2].2, "0x1010");
    scene.event(1, 20, KernelEvent::SchedFork, 40, [10, 0, 0]);
    assert_eq!(scene.path()[2].2, "shared");
}

#[test]
fn a_wait_that_its_thread_never_gives_back_is_a_handover() {
    // `std::atomic::wait` and semaphores wait by the same operation as mutexes.
    let mut scene = futex_wait(WAIT);
    scene.events.retain(|event| event.1 < 1100 * US || event.1 > 1101 * US);
    assert_eq!(scene.path()[2], is(398, Cause::Cpu, "in robot/11"));
}

/// What the wait is of a scene with [`futex_wait`], if it expects that value and each wake wakes so many.
fn valued(mut scene: Scene, value: i64, woken: i32) -> (u64, Cause, String) {
    let calls = scene.events.iter_mut().filter(|event| event.2 == KernelEvent::SyscallEnter);
    calls.for_each(|event| event.5[2] |= if event.5[2] == WAIT { value << 32 } else { i64::from(woken) << 32 });
    scene.path()[2].clone()
}

#[test]
fn two_threads_that_wait_and_wake_at_one_word_hand_over_unless_it_is_a_mutexs() {
    let path = |value: i64| valued(futex_wait(WAIT), value, 1);
    assert_eq!(path(0), is(398, Cause::Cpu, "in robot/11"));
    assert_eq!(path(2), is(399, Cause::Lock, "0x1010"));
    // musl's, with and without an owner; libgomp's; a robust one in a container, whose owner has another number outside.
    for value in [0x8000_0010, 0x8000_000b, 0xffff_ffff, 0x8000_7777] {
        assert_eq!(path(value), path(2), "{value:#x}");
    }
    // The count of a condition variable whose waiters also notify, after two thousand million notifications.
    assert_eq!(path(0x8765_4321), path(0));
}

#[test]
fn an_owner_in_the_word_tells_a_lock_though_its_waiter_frees_it_without_a_call() {
    let path = |value: i64| {
        let mut scene = futex_wait(WAIT);
        scene.events.retain(|event| event.1 < 1100 * US || event.1 > 1101 * US);
        valued(scene, value, 1)
    };
    // musl's mutexes with their owner, with one that died before it, and without any; and its own locks, which count.
    for value in [0x8000_000b, 0xc000_000b, 0x8000_0010, 0x8000_0002] {
        assert_eq!(path(value), is(399, Cause::Lock, "0x1010"), "{value:#x}");
    }
    // A thread that is joined; a parked thread of Rust; a value of glibc's mutexes; what nobody's number is.
    for value in [11, 0xffff_ffff, 2, 0x8000_7777] {
        assert_eq!(path(value), is(398, Cause::Cpu, "in robot/11"), "{value:#x}");
    }
}

#[test]
fn who_wakes_all_at_once_frees_no_mutex() {
    // A state that happens to be 2.
    assert_eq!(valued(futex_wait(WAIT), 2, i32::MAX), is(398, Cause::Cpu, "in robot/11"));
}

#[test]
fn a_priority_inheriting_mutex_is_a_lock_whoever_waits() {
    let mut scene = futex_wait(0x86);
    scene.events.retain(|event| event.2 != KernelEvent::SyscallEnter || event.4 != 11);
    assert_eq!(scene.path()[2], is(399, Cause::Lock, "0x1010"));
}

#[test]
fn who_spins_in_the_kernel_for_a_priority_inheriting_mutex_waits_for_its_owner() {
    const LOCK_PI: i64 = 0x86;
    const UNLOCK_PI: i64 = 0x87;
    let mut scene = alone();
    scene.switch(1, 50, 0, R, 11);
    scene.enter(0, 200, 10, libc::SYS_futex, 0x1010, LOCK_PI);
    scene.enter(1, 599, 11, libc::SYS_futex, 0x1010, UNLOCK_PI).exit(1, 601, 11, libc::SYS_futex);
    scene.exit(0, 602, 10, libc::SYS_futex).switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
    let expected = [is(100, Cause::Cpu, ""), is(402, Cause::Lock, "0x1010")];
    assert_eq!(scene.path()[..2], expected);
    assert_eq!(scene.explained().paths[0].path[1].by, "robot/11");
}

#[test]
fn a_wait_for_the_gil_is_each_holders_in_turn() {
    const GIL: i64 = 0x9010;
    let mut scene = alone();
    let (kind, name) = (ObjectKind::Gil, "CPython 3.13".into());
    scene.objects.push(Object { time_ns: 0, pid: 10, kind, start: 0x9000, size: 0x1000, name });
    // 10 asks at 200 and has it at 900. 11 has it until 700; then 12, which asked before.
    scene.switch(1, 50, 30, R, 11).switch(2, 50, 0, R, 12);
    scene.enter(2, 100, 12, libc::SYS_futex, GIL, WAIT).switch(2, 101, 12, S, 0);
    scene.enter(0, 200, 10, libc::SYS_futex, GIL, WAIT).switch(0, 201, 10, S, 0);
    scene.enter(1, 699, 11, libc::SYS_futex, GIL, WAKE).wake(1, 700, 11, 0, 12).exit(1, 701, 11, libc::SYS_futex);
    scene.switch(2, 710, 0, R, 12).exit(2, 711, 12, libc::SYS_futex);
    scene.enter(2, 899, 12, libc::SYS_futex, GIL, WAKE).wake(2, 900, 12, 0, 10).exit(2, 901, 12, libc::SYS_futex);
    scene.switch(0, 910, 0, R, 10).exit(0, 911, 10, libc::SYS_futex);
    scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0).switch(2, 2000, 12, S, 0);
    let gil: Vec<_> = scene.path().into_iter().filter(|piece| piece.1 == Cause::Gil).collect();
    assert_eq!(gil, [is(500, Cause::Gil, "held by robot/11"), is(200, Cause::Gil, "held by robot/12")]);
}

#[test]
fn a_files_lock_is_a_lock_whether_its_holder_is_recorded_or_not() {
    let held_by = |holder: i32| {
        let mut scene = alone();
        scene.switch(1, 50, 30, R, 11).enter(0, 200, 10, libc::SYS_flock, 4, 2).switch(0, 201, 10, S, 0);
        scene.wake(1, 600, holder, 0, 10).switch(0, 610, 0, R, 10).exit(0, 611, 10, libc::SYS_flock);
        scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
        let piece = &scene.explained().paths[0].path[2];
        ((piece.to_ns - piece.from_ns) / US, piece.cause, piece.detail.clone())
    };
    assert_eq!([held_by(11), held_by(30)], [is(399, Cause::Lock, "flock fd 4"), is(399, Cause::Lock, "flock fd 4")]);
}

#[test]
fn a_call_without_an_end_ends_with_what_its_thread_does_next() {
    let mut scene = alone();
    // The end of the read is missing: that the thread reads again tells that it came back, but not when.
    scene.enter(0, 200, 10, libc::SYS_read, 4, 0).switch(0, 201, 10, S, 0).wake(0, 300, 0, IRQ, 10);
    scene.switch(0, 310, 0, R, 10).enter(0, 700, 10, libc::SYS_read, 4, 0).exit(0, 720, 10, libc::SYS_read);
    scene.switch(0, 2000, 10, S, 0);
    let expected = [
        is(100, Cause::Cpu, ""),
        is(1, Cause::Syscall, "read"),
        is(99, Cause::Io, "read fd 4"),
        is(10, Cause::Wakeup, ""),
        is(390, Cause::Unknown, "kernel events were lost"),
        is(20, Cause::Syscall, "read"),
        is(280, Cause::Cpu, ""),
    ];
    assert_eq!(scene.path(), expected);
}

#[test]
fn a_sleep_whose_wake_is_missing_is_unknown() {
    let mut scene = alone();
    scene.enter(0, 200, 10, libc::SYS_read, 4, 0).switch(0, 201, 10, S, 0).switch(0, 310, 0, R, 10);
    scene.exit(0, 320, 10, libc::SYS_read).switch(0, 2000, 10, S, 0);
    assert_eq!(scene.path()[2], is(109, Cause::Unknown, ""));
}

/// Without privileges the kernel says when a thread runs, and neither who woke it nor in which call it waited. None of that was lost.
#[test]
fn a_wait_in_a_recording_without_wakes_is_unknown_and_nothing_of_it_was_lost() {
    let mut scene = alone();
    scene.switch(0, 200, 10, S, 0).switch(0, 500, 0, R, 10).switch(0, 2000, 10, S, 0);
    assert_eq!(scene.path(), [is(100, Cause::Cpu, ""), is(300, Cause::Unknown, ""), is(500, Cause::Cpu, "")]);
    let remedies = scene.explained().recommendations.iter().map(|r| format!("{r:?}")).collect::<String>();
    assert!(!remedies.contains("is missing from this recording"), "{remedies}");
}

#[test]
fn a_thread_that_never_leaves_an_event_is_not_visible() {
    let mut scene = alone();
    scene.enter(0, 200, 10, libc::SYS_read, 4, 0).switch(0, 201, 10, S, 0);
    // Thread 11 runs and gives the message on, but only what others did around it is recorded.
    scene.wake(0, 210, 0, IRQ, 11).switch(1, 215, 0, R, 11).switch(1, 300, 30, S, 0);
    scene.wake(0, 310, 0, IRQ, 11).switch(1, 315, 0, R, 11).switch(1, 400, 30, S, 0);
    scene.switch(0, 500, 0, R, 10).exit(0, 505, 10, libc::SYS_read).switch(0, 2000, 10, S, 0);
    let analysis = scene.analyse(ExplainOptions::default());
    assert!(analysis.notes.iter().any(|note| note.contains("robot/11")), "{:?}", analysis.notes);
    assert_eq!(scene.path()[2], is(299, Cause::Unknown, ""));
}

#[test]
fn messages_do_not_vanish_with_lost_stamps_or_before_the_recording() {
    let mut scene = Scene::new();
    // Thread 11's process is seen from 10 ms on; what was on its way to it before did not vanish.
    scene.stamp(10, 1_000, 1, "a");
    for id in 2..50 {
        let at = id * 10_000;
        scene.stamp(10, at, id, "a").stamp(11, at + 100, id, "b");
    }
    scene.stamps.retain(|(tid, _, id, ..)| *tid == 10 || *id != 20);
    let outcomes = |scene: &Scene| scene.analyse(ExplainOptions::default()).chains[0].outcomes.clone();
    let end = |scene: &mut Scene| {
        scene.stamp(10, 2_000_000, 99, "other");
    };
    end(&mut scene);
    let without = outcomes(&scene);
    assert_eq!((without.unexplained, without.in_flight, without.lost), (1, 1, 0), "{without:?}");
    let (what, place) = (LostWhat::Stamps, "10/11".to_owned());
    let (since_ns, time_ns) = (200_000 * US, 200_500 * US);
    scene.lost.push(Lost { since_ns, time_ns, what, place, count: 1, is_estimate: false });
    let with = outcomes(&scene);
    assert_eq!((with.unexplained, with.in_flight, with.lost), (0, 1, 1), "{with:?}");
}

#[test]
fn a_wait_for_a_signal_is_what_the_signaller_did() {
    let path = futex_wait(WAIT_BITSET).path();
    assert_eq!(path[2], is(398, Cause::Cpu, "in robot/11"));
    assert_eq!(path[3], is(1, Cause::Syscall, "futex in robot/11"));
}

#[test]
fn who_waits_for_an_address_and_wakes_it_holds_a_lock() {
    let mut scene = futex_wait(WAIT_BITSET);
    for n in 0..3 {
        let at = 2100 + 100 * n;
        scene.enter(1, at, 11, libc::SYS_futex, 0x1010, WAIT_BITSET).exit(1, at + 10, 11, libc::SYS_futex);
        scene.enter(1, at + 20, 11, libc::SYS_futex, 0x1010, WAKE).exit(1, at + 30, 11, libc::SYS_futex);
    }
    assert_eq!(scene.path()[2], is(399, Cause::Lock, "0x1010"));
}

/// Thread 10 reads from the peer (20, on CPU 1), which itself reads from thread 12 on CPU 1.
#[test]
fn a_slow_peer_is_followed_two_steps_back() {
    let mut scene = alone();
    scene.switch(1, 20, 0, R, 20).enter(1, 40, 20, libc::SYS_read, 5, 0).switch(1, 50, 20, S, 12);
    scene.enter(0, 200, 10, libc::SYS_read, 4, 0).switch(0, 201, 10, S, 0);
    scene.enter(1, 400, 12, libc::SYS_write, 6, 0).wake(1, 401, 12, 0, 20).exit(1, 402, 12, libc::SYS_write);
    scene.switch(1, 410, 12, S, 20).exit(1, 411, 20, libc::SYS_read);
    scene.enter(1, 500, 20, libc::SYS_write, 7, 0).wake(1, 501, 20, 0, 10).exit(1, 502, 20, libc::SYS_write);
    scene.switch(0, 520, 0, R, 10).exit(0, 521, 10, libc::SYS_read);
    scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 20, S, 0);
    let expected = [
        is(100, Cause::Cpu, ""),
        is(1, Cause::Syscall, "read"),
        is(199, Cause::Cpu, "in robot/12"),
        is(1, Cause::Syscall, "write in robot/12"),
        is(9, Cause::Wakeup, "by robot/12"),
        is(1, Cause::Syscall, "read in peer/20"),
        is(89, Cause::Cpu, "in peer/20"),
        is(1, Cause::Syscall, "write in peer/20"),
        is(19, Cause::Wakeup, ""),
        is(1, Cause::Syscall, "read"),
        is(479, Cause::Cpu, ""),
    ];
    assert_eq!(scene.path(), expected);
}

#[test]
fn an_interrupted_bystander_is_not_the_waker() {
    let mut scene = alone();
    scene.switch(1, 50, 0, R, 11);
    scene.enter(0, 200, 10, libc::SYS_recvfrom, 4, 0).switch(0, 201, 10, S, 0);
    scene.wake(1, 500, 11, SOFTIRQ, 10).switch(0, 501, 0, R, 10).exit(0, 502, 10, libc::SYS_recvfrom);
    scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
    assert_eq!(scene.path()[2], is(299, Cause::Io, "recvfrom fd 4"));
    // The loopback delivers in the sender's context: then it is the waker.
    scene.enter(1, 490, 11, libc::SYS_sendto, 5, 0).exit(1, 510, 11, libc::SYS_sendto);
    assert_eq!(scene.path()[2], is(289, Cause::Cpu, "in robot/11"));
}

#[test]
fn a_peer_outside_the_recording_is_named_and_not_followed() {
    let mut scene = alone();
    scene.switch(1, 50, 0, R, 30);
    scene.enter(0, 200, 10, libc::SYS_read, 4, 0).switch(0, 201, 10, S, 0);
    scene.wake(1, 500, 30, 0, 10).switch(0, 500, 0, R, 10).switch(0, 2000, 10, S, 0);
    assert_eq!(scene.path()[2], is(299, Cause::Io, "read fd 4 from hog/30 (not recorded)"));
}

#[test]
fn stops_disks_and_major_faults_are_told_apart() {
    let blocked = |state| {
        let mut scene = alone();
        scene.switch(0, 300, 10, state, 0).wake(0, 700, 0, IRQ, 10).switch(0, 700, 0, R, 10);
        scene.switch(0, 2000, 10, S, 0);
        scene
    };
    assert_eq!(blocked(T).path()[1], is(400, Cause::Stopped, ""));
    assert_eq!(blocked(D).path()[1], is(400, Cause::Disk, ""));
    let mut fault = blocked(D);
    fault.event(0, 299, KernelEvent::PageFault, 10, [0, 0, 0]);
    assert_eq!(fault.path()[2], is(400, Cause::PageFault, "major"));
    let mut sync = blocked(D);
    sync.enter(0, 290, 10, libc::SYS_fsync, 3, 0).exit(0, 710, 10, libc::SYS_fsync);
    assert_eq!(sync.path()[2], is(400, Cause::Disk, "fsync"));
}

#[test]
fn a_message_that_waits_for_a_busy_thread_is_queued() {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 0, R, 11);
    scene.stamp(10, 90, 1, "a").stamp(11, 600, 1, "b").stamp(10, 100, 2, "a").stamp(11, 1000, 2, "b");
    scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
    let explained = scene.explained();
    let second = explained.paths.iter().find(|p| p.time.id == 2).unwrap();
    let path: Vec<_> = second.path.iter().map(|p| (p.to_ns - p.from_ns, p.cause, p.note.as_str())).collect();
    assert_eq!(path, [(500 * US, Cause::Queued, "behind message 1"), (400 * US, Cause::Cpu, "")]);
}

#[test]
fn a_message_waits_behind_work_that_was_under_way() {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 0, R, 11);
    scene.mark(11, 50, 0, "map update", Kind::Begin, 0).mark(11, 700, 0, "map update", Kind::End, 0);
    // Work that begins later may be this message's own.
    scene.mark(11, 800, 0, "parse", Kind::Begin, 0).mark(11, 900, 0, "parse", Kind::End, 0);
    scene.stamp(10, 100, 1, "a").stamp(11, 1000, 1, "b");
    scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
    let parse = [is(100, Cause::Cpu, ""), is(100, Cause::Cpu, "in parse"), is(100, Cause::Cpu, "")];
    let queued = is(600, Cause::Queued, "robot/11 was busy with map update");
    assert_eq!(scene.path(), [&[queued], &parse[..]].concat());
    assert_eq!(scene.explained().paths[0].path[0].note, "behind map update");
}

#[test]
fn messages_wait_behind_work_until_the_outermost_ends_also_where_that_sleeps_and_then_for_each_other() {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 0, R, 11);
    // A task of an event loop that calls `time.sleep`, and what it is at meanwhile.
    scene.mark(11, 50, 0, "task poll", Kind::Begin, 0).mark(11, 60, 0, "grab", Kind::Begin, 0);
    scene.enter(1, 70, 11, libc::SYS_clock_nanosleep, 1, 0);
    scene.event(1, 71, KernelEvent::TimerStart, 11, [550_000, 550_000, 0]).switch(1, 72, 11, S, 0);
    scene.wake(1, 551, 0, IRQ, 11).switch(1, 552, 0, R, 11).exit(1, 553, 11, libc::SYS_clock_nanosleep);
    scene.mark(11, 560, 0, "grab", Kind::End, 0).mark(11, 700, 0, "task poll", Kind::End, 0);
    // Its next step comes later.
    scene.mark(11, 970, 0, "task poll", Kind::Begin, 0).mark(11, 980, 0, "task poll", Kind::End, 0);
    scene.stamp(10, 90, 1, "a").stamp(11, 900, 1, "b").stamp(10, 100, 2, "a").stamp(11, 1000, 2, "b");
    scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
    let explained = scene.explained();
    for (id, behind_ns) in [(1, [610 * US, 0]), (2, [600 * US, 200 * US])] {
        let path = &explained.paths.iter().find(|p| p.time.id == id).unwrap().path;
        let behind = |note: &str| path.iter().filter(|p| p.note == note).map(|p| p.to_ns - p.from_ns).sum::<u64>();
        assert_eq!([behind("behind task poll"), behind("behind message 1")], behind_ns, "{id}: {path:?}");
        let of_task = path.iter().filter(|piece| piece.note == "behind task poll");
        let queued = (Cause::Queued, "robot/11 was busy with task poll");
        assert!(of_task.into_iter().all(|piece| (piece.cause, piece.detail.as_str()) == queued), "{id}: {path:?}");
    }
}

#[test]
fn work_in_which_another_message_is_stamped_is_that_messages() {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 0, R, 11);
    scene.mark(11, 100, 0, "task serve", Kind::Begin, 0).mark(11, 610, 0, "task serve", Kind::End, 0);
    scene.mark(11, 650, 0, "task serve", Kind::Begin, 0).mark(11, 1010, 0, "task serve", Kind::End, 0);
    scene.stamp(10, 90, 1, "a").stamp(11, 600, 1, "b").stamp(10, 110, 2, "a").stamp(11, 1000, 2, "b");
    scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
    let explained = scene.explained();
    let second = explained.paths.iter().find(|p| p.time.id == 2).unwrap();
    let path: Vec<_> = second.path.iter().map(|p| (p.cause, p.note.as_str())).collect();
    assert_eq!(path, [(Cause::Queued, "behind message 1"), (Cause::Cpu, "")]);
}

#[test]
fn what_a_thread_does_in_marked_work_before_it_takes_the_message_ahead_has_the_works_name() {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 0, R, 11);
    scene.mark(11, 200, 0, "task poll", Kind::Begin, 0).mark(11, 850, 0, "task poll", Kind::End, 0);
    scene.enter(1, 300, 11, libc::SYS_fsync, 3, 0).switch(1, 310, 11, D, 0);
    scene.wake(1, 800, 0, IRQ, 11).switch(1, 801, 0, R, 11).exit(1, 802, 11, libc::SYS_fsync);
    scene.stamp(10, 90, 1, "a").stamp(11, 900, 1, "b").stamp(10, 100, 2, "a").stamp(11, 1000, 2, "b");
    // Others, that wait for nothing.
    for id in 3..40 {
        scene.stamp(10, 1000 + 100 * id, id, "a").stamp(11, 1090 + 100 * id, id, "b");
    }
    scene.switch(0, 9000, 10, S, 0).switch(1, 9000, 11, S, 0);
    let explained = scene.explained();
    let path = &explained.paths.iter().find(|p| p.time.id == 2).unwrap().path;
    let disk = path.iter().find(|piece| piece.cause == Cause::Disk).unwrap();
    assert_eq!((disk.detail.as_str(), disk.behind), ("fsync in task poll", Some(1)), "{path:?}");
}

#[test]
fn what_one_thread_does_in_marked_work_between_two_stamps_has_the_works_name() {
    let mut scene = alone();
    // The step that stamps "a" goes on until 150, the one that stamps "b" begins at 900.
    let steps = [("task take", 50, 150), ("task poll", 300, 700), ("task use", 900, 1200)];
    for (name, from, to) in steps {
        scene.mark(10, from, 0, name, Kind::Begin, 0).mark(10, to, 0, name, Kind::End, 0);
    }
    scene.mark(10, 400, 0, "grab", Kind::Begin, 0).mark(10, 500, 0, "grab", Kind::End, 0);
    scene.switch(0, 2000, 10, S, 0);
    let expected = [is(200, Cause::Cpu, ""), is(400, Cause::Cpu, "in task poll"), is(300, Cause::Cpu, "")];
    assert_eq!(scene.path(), expected);
}

#[test]
fn a_handover_is_followed_to_the_thread_that_had_the_message() {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, 10).switch(1, 10, 11, S, 0);
    // Thread 11 is woken for something else first; the message is still in thread 10's hands then.
    scene.wake(1, 200, 30, 0, 11).switch(1, 210, 0, R, 11).switch(1, 250, 11, S, 0);
    scene.wake(0, 500, 10, 0, 11).switch(1, 520, 0, R, 11).switch(1, 2000, 11, S, 0).switch(0, 2000, 10, S, 0);
    scene.stamp(10, 100, 1, "a").stamp(11, 600, 1, "b");
    let expected = [is(400, Cause::Cpu, ""), is(20, Cause::Wakeup, ""), is(80, Cause::Cpu, "")];
    assert_eq!(scene.path(), expected);
}

#[test]
fn a_spinning_wait_between_lock_marks_is_the_locks() {
    let mut scene = alone();
    scene.switch(0, 2000, 10, S, 0);
    scene.mark(10, 300, 0, "spin", Kind::LockWait, 0).mark(10, 450, 0, "spin", Kind::LockAcquired, 0);
    let expected = [is(200, Cause::Cpu, ""), is(150, Cause::Lock, "spin"), is(550, Cause::Cpu, "")];
    assert_eq!(scene.path(), expected);
}

#[test]
fn lost_events_make_their_stretch_unknown_and_no_more() {
    let mut scene = alone();
    scene.switch(0, 300, 10, R, 30).switch(0, 400, 30, R, 10).switch(0, 2000, 10, S, 0);
    let place = "cpu 0 ftrace".to_owned();
    scene.lost.push(Lost { time_ns: 600 * US, what: LostWhat::KernelEvents, place, count: 7, ..Lost::default() });
    let expected = [
        is(200, Cause::Cpu, ""),
        is(100, Cause::Preempted, "by hog/30"),
        is(200, Cause::Unknown, "kernel events were lost"),
        is(400, Cause::Cpu, ""),
    ];
    assert_eq!(scene.path(), expected);
    let analysis = scene.analyse(ExplainOptions::default());
    assert_eq!((analysis.totals.lost_kernel_stretches, analysis.totals.lost_kernel_ns), (1, 200 * US));
    let late = scene.analyse(ExplainOptions { above: Some(Above::Ns(0)), ..ExplainOptions::default() });
    let explained = &late.chains[0].explained;
    assert_eq!((explained.tail_messages, explained.tail_in_holes), (1, 1));
    let note = analysis.notes.iter().find(|note| note.contains("were lost")).unwrap();
    assert!(note.starts_with("7 kernel events were lost in 1 stretch of 0.2 ms at most together (10.5 %"), "{note}");
}

#[test]
fn a_wake_after_the_end_explains_nothing() {
    // The thread stamps at 1000, though by the events it sleeps until 1500: the wake before was lost.
    let mut scene = alone();
    scene.enter(0, 300, 10, libc::SYS_futex, 0x1010, WAIT).switch(0, 301, 10, S, 0).switch(1, 400, 0, R, 11);
    scene.wake(1, 1500, 11, 0, 10).switch(0, 1510, 0, R, 10).switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
    assert_eq!(scene.path()[2], is(699, Cause::Unknown, ""));
}

#[test]
fn a_missing_switch_is_noticed() {
    let mut scene = alone();
    // The switch to the hog is missing: that it leaves tells that it came, but not when.
    scene.switch(0, 600, 30, R, 10).switch(0, 2000, 10, S, 0);
    assert_eq!(scene.path(), [is(500, Cause::Unknown, ""), is(400, Cause::Cpu, "")]);
}

#[test]
fn a_missing_switch_out_of_idle_is_told_from_what_follows() {
    let mut scene = alone();
    scene.enter(0, 200, 10, libc::SYS_read, 4, 0).switch(0, 201, 10, S, 0).wake(0, 500, 0, IRQ, 10);
    scene.exit(0, 530, 10, libc::SYS_read).switch(0, 2000, 10, S, 0);
    let expected = [
        is(100, Cause::Cpu, ""),
        is(1, Cause::Syscall, "read"),
        is(299, Cause::Io, "read fd 4"),
        is(30, Cause::Wakeup, ""),
        is(470, Cause::Cpu, ""),
    ];
    assert_eq!(scene.path(), expected);
}

#[test]
fn an_idle_task_about_to_leave_tells_when_the_next_one_came() {
    let mut scene = alone();
    scene.enter(0, 200, 10, libc::SYS_read, 4, 0).switch(0, 201, 10, S, 0);
    scene.event(0, 498, KernelEvent::IrqEnter, 0, [36, 0, 0]).wake(0, 500, 0, IRQ, 10);
    scene.events.push((0, 505 * US, KernelEvent::IrqExit, IRQ | 0x04, 0, [36, 0, 0]));
    scene.exit(0, 530, 10, libc::SYS_read).switch(0, 2000, 10, S, 0);
    let path = scene.path();
    let expected = [is(299, Cause::Io, "read fd 4"), is(5, Cause::Wakeup, ""), is(25, Cause::Syscall, "read")];
    assert_eq!(path[2..5], expected);
}

#[test]
fn an_interrupt_whose_end_was_not_seen_hides_no_later_one() {
    let mut scene = alone();
    scene.event(0, 10, KernelEvent::IrqEnter, 10, [251, 2, 0]).event(0, 20, KernelEvent::IrqEnter, 10, [251, 2, 0]);
    scene.event(0, 21, KernelEvent::IrqExit, 10, [251, 2, 0]);
    scene.event(0, 400, KernelEvent::IrqEnter, 10, [3, 1, 0]).event(0, 460, KernelEvent::IrqExit, 10, [3, 1, 0]);
    scene.switch(0, 2000, 10, S, 0);
    assert_eq!(scene.path()[1], is(60, Cause::Irq, "softirq NET_RX"));
}

/// Its CPU is a hog's from 300 to 800; a quota is renewed at 600.
#[test]
fn a_quota_that_ran_out_is_throttled_until_it_is_renewed_also_on_a_busy_cpu() {
    let scene = |throttled_us: f64| {
        let mut scene = alone();
        scene.switch(0, 300, 10, R, 30);
        scene.events.push((1, 600 * US, KernelEvent::TimerExpire, IRQ, 0, [0x1000, (600 * US) as i64, 1]));
        scene.switch(0, 800, 30, R, 10).switch(0, 2000, 10, S, 0);
        for (us, value) in [(50, 0.0), (900, throttled_us)] {
            scene.samples.push(Sample { time_ns: us * US, name: "cgroup.throttled_usec".into(), value });
        }
        scene.path()
    };
    let cpu = || is(200, Cause::Cpu, "");
    let expected = [cpu(), is(300, Cause::Throttled, ""), is(200, Cause::Preempted, "by hog/30"), cpu()];
    assert_eq!(scene(300.0), expected);
    // Somebody else's quota.
    assert_eq!(scene(0.0), [cpu(), is(500, Cause::Preempted, "by hog/30"), cpu()]);
}

/// The program's group has no quota, that of one of its processes has: or another process's.
#[test]
fn a_quota_of_one_process_is_its_own() {
    let scene = |process: &str| {
        let mut scene = alone();
        scene.switch(0, 300, 10, R, 30);
        scene.events.push((1, 600 * US, KernelEvent::TimerExpire, IRQ, 0, [0x1000, (600 * US) as i64, 1]));
        scene.switch(0, 800, 30, R, 10).switch(0, 2000, 10, S, 0);
        for (us, value) in [(50, 0.0), (900, 300.0)] {
            let mut sample = |whose: &str, value: f64| {
                let name = format!("{whose}cgroup.throttled_usec");
                scene.samples.push(Sample { time_ns: us * US, name, value });
            };
            sample("", 0.0);
            sample(process, value);
        }
        scene.path()[1].clone()
    };
    assert_eq!(scene("process10."), is(300, Cause::Throttled, ""));
    assert_eq!(scene("process20."), is(500, Cause::Preempted, "by hog/30"));
}

#[test]
fn a_group_that_used_more_than_its_quota_is_throttled_for_several_renewals() {
    let scene = |back: u64| {
        let mut scene = alone();
        scene.stamps[1].1 = 40_000 * US;
        scene.switch(0, 300, 10, R, 30);
        for us in [10_000, 20_000, 30_000] {
            scene.events.push((1, us * US, KernelEvent::TimerExpire, IRQ, 0, [0x1000, (us * US) as i64, 1]));
        }
        scene.switch(0, back, 30, R, 10).switch(0, 50_000, 10, S, 0);
        for (us, value) in [(50, 0.0), (45_000, 29_700.0)] {
            scene.samples.push(Sample { time_ns: us * US, name: "cgroup.throttled_usec".into(), value });
        }
        scene.path()
    };
    // It runs as soon as the third renewal has paid what it owes.
    let path = scene(30_030);
    assert_eq!(path[1..3], [is(29_700, Cause::Throttled, ""), is(30, Cause::Preempted, "by hog/30")]);
    // Here nothing says so: a thread that may run waits for its turn.
    let path = scene(34_000);
    assert_eq!(path[1..3], [is(9_700, Cause::Throttled, ""), is(24_000, Cause::Preempted, "by hog/30")]);
}

#[test]
fn a_major_fault_is_one_before_during_and_after_its_sleep() {
    let mut scene = alone();
    scene.event(0, 300, KernelEvent::PageFault, 10, [0, 0, 0]).switch(0, 330, 10, D, 0);
    scene.wake(0, 700, 0, IRQ, 10).switch(0, 700, 0, R, 10).switch(0, 2000, 10, S, 0);
    let expected = [
        is(200, Cause::Cpu, ""),
        is(30, Cause::PageFault, ""),
        is(370, Cause::PageFault, "major"),
        is(1, Cause::PageFault, ""),
        is(299, Cause::Cpu, ""),
    ];
    assert_eq!(scene.path(), expected);
}

#[test]
fn without_kernel_events_everything_is_unknown() {
    let mut scene = Scene::new();
    scene.stamp(10, 100, 1, "a").stamp(10, 1000, 1, "b");
    assert_eq!(scene.path(), [is(900, Cause::Unknown, "")]);
}

#[test]
fn whom_the_recording_cannot_see_is_not_cleared() {
    let mut scene = Scene::new();
    scene.stamp(10, 100, 1, "a").stamp(10, 1000, 1, "b").mark(10, 5, 40, "sdk_lock", Kind::LockNamed, 0x1000);
    assert!(scene.explained().hypotheses.is_empty());
    let asked = vec!["lock:sdk_lock".into()];
    let hypotheses = scene.analyse(ExplainOptions { hypotheses: asked, ..ExplainOptions::default() }).chains[0]
        .explained
        .hypotheses
        .clone();
    assert!(hypotheses[0].sentence.starts_with("lock:sdk_lock cannot be judged"), "{}", hypotheses[0].sentence);
    let mut seen = futex_wait(WAIT);
    seen.mark(11, 10, 40, "innocent", Kind::LockNamed, 0x9000);
    let hypothesis = seen.explained().hypotheses.into_iter().find(|v| v.hypothesis == "lock:innocent").unwrap();
    assert!(hypothesis.result == Contribution::DoesNotContribute && hypothesis.touched == 0, "{}", hypothesis.sentence);
}

#[test]
fn factors_and_messages_that_are_not_there_are_reported() {
    let refused = |wanted| alone().try_analyse(wanted, None).unwrap_err().to_string();
    let factor = |word: &str| refused(ExplainOptions { hypotheses: vec![word.into()], ..ExplainOptions::default() });
    assert_eq!(factor("lock:sdk"), "\"lock:sdk\" is unknown; registered locks: none");
    assert!(factor("gremlins").contains("say cpu, syscall"));
    assert!(factor("hop:nowhere").ends_with("hops: a → b"));
    let message = refused(ExplainOptions { messages: vec![77], ..ExplainOptions::default() });
    assert!(message.starts_with("message 77 passed no chain"), "{message}");
}

/// Any events at all: kinds, threads, CPUs and arguments by chance.
fn any_scene() -> impl Strategy<Value = Scene> {
    let event = (0..2u16, 0..1000u64, 1..=17u8, any::<u8>(), 0..4usize, 0..4usize, 0..8i64, 0..3usize);
    let stamp = (0..3i32, 0..1000u64, 1..6u64, 0..3usize);
    (prop::collection::vec(event, 0..200), prop::collection::vec(stamp, 2..40), any::<bool>()).prop_map(
        |(events, stamps, has_loss)| {
            let mut scene = Scene::new();
            let tids = [0, 10, 11, 20];
            let calls = [libc::SYS_futex, libc::SYS_read, libc::SYS_clock_nanosleep];
            for (cpu, us, number, flags, tid, other, state, call) in events {
                let event = KernelEvent::from_number(number).unwrap();
                let args = match event {
                    KernelEvent::SyscallEnter | KernelEvent::SyscallExit => [calls[call], 0x1010, WAIT],
                    KernelEvent::TimerStart => [(us * US + 5000) as i64, (us * US + 9000) as i64, 0],
                    _ => [tids[other].into(), state, 0],
                };
                scene.events.push((cpu, us * US, event, flags, tids[tid], args));
            }
            for (tid, us, id, point) in stamps {
                scene.stamp(10 + tid, us, id, ["a", "b", "c"][point]);
            }
            if has_loss {
                let place = "cpu 1 perf".to_owned();
                scene.lost.push(Lost {
                    time_ns: 500 * US,
                    what: LostWhat::KernelEvents,
                    place,
                    count: 1,
                    ..Lost::default()
                });
            }
            scene
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn pieces_partition_every_message(scene in any_scene()) {
        let without = vec![vec!["gil".to_owned()]];
        let analysis = scene.analyse(ExplainOptions { all: true, without, ..ExplainOptions::default() });
        for chain in &analysis.chains {
            // What is not there cannot be taken away: the replay gives what was recorded.
            for predicted in chain.explained.predictions.iter().filter(|w| w.without == "gil") {
                prop_assert!(predicted.quantiles.iter().all(|q| q.before_ns == q.after_ns), "{:?}", predicted);
            }
            for time in &chain.explained.times {
                let sum: u64 = time.pieces.iter().map(|p| p.ns).sum();
                prop_assert_eq!(sum, time.total_ns);
            }
            for path in &chain.explained.paths {
                let ends = path.path.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns);
                prop_assert!(ends && path.path.iter().all(|p| p.from_ns < p.to_ns));
            }
            let shares: f64 = chain.explained.causes.iter().map(|c| c.tail_share).sum();
            prop_assert!(chain.explained.causes.iter().all(|c| c.tail_share >= 0.0));
            prop_assert!(shares == 0.0 || (shares - 1.0).abs() < 1e-6, "{}", shares);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn rows_leave_no_message_out_and_no_gap(scene in any_scene()) {
        let (mut messages, mut wrong) = (HashMap::new(), Vec::new());
        // Of the hop at hand: up to where its causes were told, and its end.
        let mut told = (0, 0);
        let mut state_ends: HashMap<i32, u64> = HashMap::new();
        let analysis = scene.analyse_by_row(ExplainOptions::default(), &mut |row: Row<'_>| {
            let is_right = match row {
                Row::Message(message) => {
                    let nth = messages.entry(message.chain.to_owned()).or_insert(0);
                    *nth += 1;
                    told.0 == told.1 && message.nth == *nth - 1 && message.start_ns <= message.end_ns
                }
                Row::Hop(hop) => {
                    let is_right = told.0 == told.1;
                    told = (hop.start_ns, hop.start_ns + hop.duration_ns);
                    is_right
                }
                Row::Cause(cause) => {
                    let is_right = told.0 == cause.start_ns && cause.duration_ns > 0;
                    told.0 += cause.duration_ns;
                    is_right
                }
                Row::State(state) => {
                    let end = state_ends.insert(state.tid, state.start_ns + state.duration_ns);
                    state.duration_ns > 0 && end.is_none_or(|end| end <= state.start_ns)
                }
            };
            if !is_right {
                wrong.push(format!("{row:?}"));
            }
        });
        prop_assert!(wrong.is_empty() && told.0 == told.1, "{wrong:?}");
        for chain in &analysis.chains {
            prop_assert_eq!(messages.get(&chain.name).copied().unwrap_or(0), chain.messages);
        }
    }
}

/// (total, machine, work) of the only message, hop by hop, in µs.
fn sides(scene: &Scene) -> Vec<(u64, u64, u64)> {
    let analysis = scene.analyse(ExplainOptions { sides: true, ..ExplainOptions::default() });
    let sides = analysis.chains[0].explained.sides.clone().unwrap();
    assert_eq!((sides.spent.len(), sides.start_ns.len()), (sides.hops, 1));
    let shares: u64 = sides.shares.iter().map(|share| share.time_ns).sum();
    assert_eq!(shares, sides.spent.iter().map(|spent| spent.total_ns).sum::<u64>());
    sides.spent.iter().map(|s| (s.total_ns / US, s.machine_ns / US, s.work_ns / US)).collect()
}

#[test]
fn a_stranger_on_the_cpu_is_the_machines_doing_and_a_sibling_the_programs() {
    let mut strangers = alone();
    strangers.switch(0, 300, 10, R, 30).switch(0, 500, 30, R, 10).switch(0, 2000, 10, S, 0);
    assert_eq!(sides(&strangers), [(900, 200, 700)]);
    let mut siblings = alone();
    siblings.switch(0, 300, 10, R, 11).switch(0, 500, 11, R, 10).switch(0, 2000, 10, S, 0);
    assert_eq!(sides(&siblings), [(900, 0, 700)]);
}

#[test]
fn a_thread_whose_quota_is_used_up_is_the_programs_doing() {
    let mut scene = alone();
    scene.switch(0, 300, 10, R, 0).switch(0, 800, 0, R, 10).switch(0, 2000, 10, S, 0);
    assert_eq!(sides(&scene), [(900, 0, 400)]);
}

/// Thread 10 waits for a lock from 200 to 700; its holder, 11, loses the CPU to the hog from 300 to 500.
#[test]
fn of_a_wait_for_a_lock_the_machine_has_what_it_took_from_the_holder() {
    let mut scene = Scene::new();
    scene.stamp(10, 100, 1, "a").stamp(10, 1000, 1, "b");
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 0, R, 11);
    scene.enter(0, 200, 10, libc::SYS_futex, 0x1000, WAIT).switch(0, 200, 10, S, 0);
    scene.switch(1, 300, 11, R, 30).switch(1, 500, 30, R, 11);
    scene.enter(1, 690, 11, libc::SYS_futex, 0x1000, WAKE).wake(1, 700, 11, 0, 10).exit(1, 710, 11, libc::SYS_futex);
    scene.switch(0, 700, 0, R, 10).exit(0, 700, 10, libc::SYS_futex);
    scene.enter(0, 1100, 10, libc::SYS_futex, 0x1000, WAKE).exit(0, 1101, 10, libc::SYS_futex);
    scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
    assert!(scene.path().iter().any(|piece| piece.0 == 500 && piece.1 == Cause::Lock), "{:?}", scene.path());
    assert_eq!(sides(&scene), [(900, 200, 400)]);
}

/// Thread 10 waits for a lock from 200 to 700; its holder, 11, sleeps from 250 to 500, waits for the hog until 600 and works.
#[test]
fn of_a_wait_for_a_lock_it_is_said_what_its_holder_did() {
    let mut scene = Scene::new();
    scene.stamp(10, 100, 1, "a").stamp(10, 1000, 1, "b");
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 0, R, 11);
    scene.enter(0, 200, 10, libc::SYS_futex, 0x1000, WAIT).switch(0, 200, 10, S, 0);
    scene.enter(1, 250, 11, libc::SYS_clock_nanosleep, 1, 0).switch(1, 250, 11, S, 30);
    scene.wake(1, 500, 30, IRQ, 11).switch(1, 600, 30, R, 11).exit(1, 600, 11, libc::SYS_clock_nanosleep);
    scene.enter(1, 690, 11, libc::SYS_futex, 0x1000, WAKE).wake(1, 700, 11, 0, 10).exit(1, 710, 11, libc::SYS_futex);
    scene.switch(0, 700, 0, R, 10).exit(0, 700, 10, libc::SYS_futex);
    scene.enter(0, 1100, 10, libc::SYS_futex, 0x1000, WAKE).exit(0, 1101, 10, libc::SYS_futex);
    scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
    let path = &scene.explained().paths[0].path;
    let wait = path.iter().find(|piece| piece.cause == Cause::Lock).unwrap();
    assert_eq!(wait.note, "robot/11 ran 30 % of it, slept in clock_nanosleep 50 %, waited for a CPU 20 %");
}

/// Thread 11 serves two messages that 10 hands over; the hog takes 300 µs from it while it has the first.
#[test]
fn a_queue_behind_what_the_machine_took_is_the_machines_as_far_as_that_goes() {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 0, R, 11);
    scene.stamp(10, 100, 1, "sent").stamp(10, 200, 2, "sent");
    scene.stamp(11, 110, 1, "taken").stamp(11, 700, 1, "done");
    scene.switch(1, 300, 11, R, 30).switch(1, 600, 30, R, 11);
    scene.stamp(11, 710, 2, "taken").stamp(11, 900, 2, "done");
    scene.switch(0, 2000, 10, S, 0).switch(1, 2000, 11, S, 0);
    let analysis = scene.analyse(ExplainOptions { sides: true, ..ExplainOptions::default() });
    let sides = analysis.chains[0].explained.sides.clone().unwrap();
    let of = |message: usize, hop: usize| sides.spent[2 * message + hop];
    assert_eq!((of(0, 1).total_ns, of(0, 1).machine_ns), (590 * US, 300 * US));
    let behind = of(1, 0);
    assert_eq!((behind.total_ns, behind.machine_ns), (510 * US, 300 * US));
}

/// The first of 120 messages takes ten times as long as the others; half of that a hog takes from it.
#[test]
fn a_start_up_that_is_set_apart_has_its_sides_too() {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, 10).switch(1, 0, 30, R, 0);
    for id in 1..=120 {
        let (at, took) = (20_000 * id, if id == 1 { 10_000 } else { 1_000 });
        scene.stamp(10, at, id, "a");
        if id == 1 {
            scene.switch(0, at + 100, 10, R, 30).switch(0, at + 5_100, 30, R, 10);
        }
        scene.stamp(10, at + took, id, "b");
    }
    scene.switch(0, 3_000_000, 10, S, 0);
    let analysis = scene.analyse(ExplainOptions { sides: true, ..ExplainOptions::default() });
    let sides = analysis.chains[0].explained.sides.clone().unwrap();
    let of = |s: &taut_analysis::Spent| (s.total_ns / US, s.machine_ns / US, s.work_ns / US);
    assert_eq!(sides.startup.iter().map(of).collect::<Vec<_>>(), [(10_000, 5_000, 5_000)]);
    assert_eq!((sides.spent.len(), sides.start_ns.len(), of(&sides.spent[0])), (119, 119, (1_000, 0, 1_000)));
    assert_eq!(sides.shares.iter().map(|share| share.time_ns / US).sum::<u64>(), 119_000);
}

#[test]
fn without_kernel_events_all_time_is_the_programs() {
    let mut scene = Scene::new();
    scene.stamp(10, 100, 1, "a").stamp(10, 400, 1, "b").stamp(10, 1000, 1, "c");
    let analysis = scene.analyse(ExplainOptions { sides: true, ..ExplainOptions::default() });
    let sides = analysis.chains[0].explained.sides.clone().unwrap();
    assert!(sides.is_blind && sides.unknown_ns == 900 * US);
    assert_eq!(sides.spent.iter().map(|s| (s.total_ns / US, s.machine_ns)).collect::<Vec<_>>(), [(300, 0), (600, 0)]);
}

#[test]
fn a_wake_comes_before_its_switch_whichever_cpu_the_file_has_first() {
    let mut scene = Scene::new();
    scene.switch(1, 0, 30, R, 11).enter(1, 50, 11, libc::SYS_read, 4, 0).switch(1, 60, 11, S, 0);
    // At 500 µs, by a clock that ticks in µs; CPU 1 comes first in the file.
    scene.switch(1, 500, 0, R, 11).exit(1, 500, 11, libc::SYS_read).switch(1, 2000, 11, S, 0);
    scene.switch(0, 0, 30, R, 10).enter(0, 490, 10, libc::SYS_write, 5, 0);
    scene.wake(0, 500, 10, 0, 11).exit(0, 500, 10, libc::SYS_write).switch(0, 2000, 10, S, 0);
    scene.stamp(10, 100, 1, "a").stamp(11, 700, 1, "b");
    assert_eq!(scene.path(), [is(390, Cause::Cpu, ""), is(10, Cause::Syscall, "write"), is(200, Cause::Cpu, "")]);
}
