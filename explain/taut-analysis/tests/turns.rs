//! Threads that take turns on one CPU, simulated with and without what takes it from them: two stages of a chain that run until
//! they have nothing to do, and a hog that comes before both.

use std::collections::VecDeque;

use taut_analysis::{Cause, ExplainOptions, Explained, Predicted};
use taut_recording::KernelEvent;

mod scene;

use scene::*;

const SOURCE: i32 = 10;
const STAGES: [i32; 2] = [11, 12];
const HOG: i32 = 30;

/// A stage's message in hand, and how long it still computes.
#[derive(Clone, Default)]
struct Stage {
    queue: VecDeque<u64>,
    at: Option<(u64, u64)>,
    is_blocked: bool,
}

/// CPU 1, µs by µs.
struct Cpu {
    scene: Scene,
    work: u64,
    stages: [Stage; 2],
    /// Those that could run, longest first.
    ready: VecDeque<usize>,
    running: Option<usize>,
    hogged_until: u64,
    /// For how long the second stage sleeps, in a message every 61 ms, and until when it does.
    sleep_us: u64,
    slept: u64,
    asleep_until: u64,
    sent: Vec<u64>,
    latencies: Vec<u64>,
}

impl Cpu {
    fn tid(&self, now: u64) -> i32 {
        if now < self.hogged_until { HOG } else { self.running.map_or(0, |stage| STAGES[stage]) }
    }

    fn wake(&mut self, now: u64, stage: usize, cpu: u16, waker: i32) {
        if self.stages[stage].is_blocked {
            self.stages[stage].is_blocked = false;
            self.scene.wake(cpu, now, waker, 0, STAGES[stage]);
            self.ready.push_back(stage);
        }
    }

    fn take(&mut self, now: u64, stage: usize) {
        let id = self.stages[stage].queue.pop_front().unwrap();
        self.scene.stamp(STAGES[stage], now, id, ["first.taken", "second.taken"][stage]);
        self.stages[stage].at = Some((id, self.work));
    }

    fn done(&mut self, now: u64, stage: usize, id: u64) {
        let tid = STAGES[stage];
        self.scene.stamp(tid, now - 1, id, ["first.done", "second.done"][stage]);
        if stage == 0 {
            self.stages[1].queue.push_back(id);
            self.scene.enter(1, now, tid, libc::SYS_write, 7, 0);
            self.wake(now, 1, 1, tid);
            self.scene.exit(1, now, tid, libc::SYS_write);
        } else {
            self.latencies.push(now - 1 - self.sent[id as usize - 1]);
        }
        self.stages[stage].at = None;
        if self.stages[stage].queue.is_empty() {
            self.stages[stage].is_blocked = true;
            self.running = self.ready.pop_front();
            let next = self.tid(now);
            self.scene.enter(1, now, tid, libc::SYS_read, 4, 0).switch(1, now, tid, S, next);
            self.come(now);
        } else {
            self.take(now, stage);
        }
    }

    /// Who is given the CPU goes on, or takes a message.
    fn come(&mut self, now: u64) {
        let Some(stage) = self.running else { return };
        if self.stages[stage].at.is_none() {
            self.scene.exit(1, now, STAGES[stage], libc::SYS_read);
            self.take(now, stage);
        } else if stage == 1 && self.asleep_until > 0 {
            self.scene.exit(1, now, STAGES[stage], libc::SYS_clock_nanosleep);
            self.asleep_until = 0;
        }
    }

    /// The second stage sleeps with its message in hand, and leaves the CPU.
    fn sleep(&mut self, now: u64) {
        (self.slept, self.asleep_until) = (now / 61_000, now + self.sleep_us);
        self.running = self.ready.pop_front();
        let next = self.tid(now);
        self.scene.enter(1, now, STAGES[1], libc::SYS_clock_nanosleep, 1, 0).switch(1, now, STAGES[1], S, next);
        self.come(now);
    }

    fn step(&mut self, now: u64) {
        if now < self.hogged_until {
            return;
        }
        if now == self.asleep_until {
            self.scene.wake(1, now, self.tid(now), IRQ, STAGES[1]);
            self.ready.push_back(1);
        }
        let was = if now == self.hogged_until { HOG } else { 0 };
        if was == HOG || (self.running.is_none() && !self.ready.is_empty()) {
            self.running = self.running.or_else(|| self.ready.pop_front());
            let next = self.tid(now);
            self.scene.switch(1, now, was, if was == HOG { S } else { R }, next);
            self.come(now);
        }
        let Some(stage) = self.running else { return };
        if stage == 1 && self.sleep_us > 0 && now / 61_000 > self.slept {
            self.sleep(now);
            return;
        }
        let Some((id, left)) = &mut self.stages[stage].at else { return };
        *left -= 1;
        if *left == 0 {
            let id = *id;
            self.done(now, stage, id);
        }
    }
}

/// Messages sent at `arrivals` go through both stages; the hog takes the CPU for `hog_us` every 61 ms.
fn pipeline(arrivals: &[u64], work: u64, hog_us: u64) -> (Scene, Vec<u64>) {
    disturbed(arrivals, work, hog_us, 0)
}

fn disturbed(arrivals: &[u64], work: u64, hog_us: u64, sleep_us: u64) -> (Scene, Vec<u64>) {
    let mut scene = Scene::new();
    scene.switch(0, 0, 0, R, SOURCE).switch(1, 1, HOG, S, STAGES[0]);
    scene.enter(1, 2, STAGES[0], libc::SYS_read, 4, 0).switch(1, 3, STAGES[0], S, STAGES[1]);
    scene.enter(1, 4, STAGES[1], libc::SYS_read, 4, 0).switch(1, 5, STAGES[1], S, 0);
    let stage = Stage { is_blocked: true, ..Stage::default() };
    let mut cpu = Cpu {
        scene,
        work,
        stages: [stage.clone(), stage],
        ready: VecDeque::new(),
        running: None,
        hogged_until: 0,
        sleep_us,
        slept: 0,
        asleep_until: 0,
        sent: arrivals.to_vec(),
        latencies: Vec::new(),
    };
    let (mut next, mut now) = (0, 100);
    while cpu.latencies.len() < arrivals.len() {
        now += 1;
        while arrivals.get(next).is_some_and(|at| *at <= now) {
            next += 1;
            cpu.scene.stamp(SOURCE, now, next as u64, "sent").enter(0, now, SOURCE, libc::SYS_write, 5, 0);
            cpu.stages[0].queue.push_back(next as u64);
            cpu.wake(now, 0, 0, SOURCE);
            cpu.scene.exit(0, now, SOURCE, libc::SYS_write);
        }
        if hog_us > 0 && now % 61_000 == 0 {
            let before = cpu.tid(now);
            cpu.scene.switch(1, now, before, R, HOG);
            cpu.hogged_until = now + hog_us;
        }
        cpu.step(now);
    }
    cpu.scene.event(0, now + 1000, KernelEvent::SchedSwitch, SOURCE, [0, S, 0]);
    (cpu.scene, cpu.latencies)
}

fn quantile(values: &[u64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[(q * sorted.len() as f64).ceil() as usize - 1] as f64
}

fn explained(scene: &Scene, without: &str) -> Explained {
    let wanted = ExplainOptions { without: vec![vec![without.into()]], ..ExplainOptions::default() };
    scene.analyse(wanted).chains[0].explained.clone()
}

fn share(explained: &Explained, cause: Cause) -> f64 {
    explained.by_cause.iter().filter(|share| share.cause == cause).map(|share| share.tail_share).sum()
}

#[test]
fn a_backlog_on_a_shared_cpu_is_what_made_it() {
    let arrivals: Vec<u64> = (0..4000).map(|at| 1000 + at * 500 + (at * 7919) % 200).collect();
    let (scene, _) = pipeline(&arrivals, 120, 6000);
    let (_, without) = pipeline(&arrivals, 120, 0);
    let explained = explained(&scene, "thread:hog");
    // Who waits while the other stage works off what came meanwhile waits for the hog, too.
    let by_hog = explained.causes.iter().filter(|share| share.detail.contains("hog"));
    let hog: f64 = by_hog.map(|share| share.tail_share).sum();
    assert!(hog > 0.95, "{:?}", explained.causes);
    assert!(share(&explained, Cause::Queued) < 0.05, "{:?}", explained.by_cause);
    let found = explained.predictions.iter().find(|w| w.without == "thread:hog").unwrap();
    for predicted in &found.quantiles {
        let truth = quantile(&without, predicted.quantile);
        let error = predicted.after_ns as f64 / 1e3 - truth;
        assert!(error.abs() <= (0.1 * truth).max(30.0), "{predicted:?}, in truth {truth} µs");
    }
}

#[test]
fn too_much_load_of_a_shared_cpu_is_load() {
    let (mut state, mut at) = (11u64, 1000.0);
    let mut arrival = || {
        state = state * 16_807 % 2_147_483_647;
        at -= 270.0 * (state as f64 / 2_147_483_647.0).ln();
        at as u64
    };
    let arrivals: Vec<u64> = (0..5000).map(|_| arrival()).collect();
    let (scene, _) = pipeline(&arrivals, 120, 0);
    let explained = explained(&scene, "queued");
    assert!(share(&explained, Cause::Queued) > 0.9, "{:?}", explained.causes);
}

#[test]
fn a_run_without_nothing_is_what_was_recorded() {
    let arrivals: Vec<u64> = (0..2000).map(|at| 1000 + at * 500 + (at * 7919) % 200).collect();
    let (scene, _) = pipeline(&arrivals, 120, 6000);
    let explained = explained(&scene, "irq");
    let found = explained.predictions.iter().find(|w| w.without == "irq").unwrap();
    assert!(found.is_replayed && !found.quantiles.is_empty());
    for Predicted { quantile, before_ns, after_ns, .. } in found.quantiles.iter().copied() {
        assert!(before_ns.abs_diff(after_ns) <= 10 * US, "p{quantile}: {before_ns} {after_ns}");
    }
}

/// The number of CPU 0 as a server was that of no thread, so that its threads took no turns in a run.
#[test]
fn turns_on_cpu_0_are_turns() {
    let arrivals: Vec<u64> = (0..2000).map(|at| 1000 + at * 500 + (at * 7919) % 200).collect();
    let (mut scene, _) = pipeline(&arrivals, 120, 6000);
    let predicted = |scene: &Scene| format!("{:?}", explained(scene, "thread:hog").predictions);
    let on_cpu_1 = predicted(&scene);
    scene.events.iter_mut().for_each(|event| event.0 = 1 - event.0);
    assert_eq!(predicted(&scene), on_cpu_1);
}

/// The other stage goes on meanwhile: in a run in which it did not, each sleep counted for both.
#[test]
fn who_sleeps_leaves_a_shared_cpu_to_the_others() {
    let arrivals: Vec<u64> = (0..4000).map(|at| 1000 + at * 300 + (at * 7919) % 200).collect();
    let (scene, _) = disturbed(&arrivals, 120, 0, 6000);
    let (_, without) = pipeline(&arrivals, 120, 0);
    let explained = explained(&scene, "sleep");
    let found = explained.predictions.iter().find(|w| w.without == "sleep").unwrap();
    assert!(!found.quantiles.is_empty());
    for predicted in &found.quantiles {
        let truth = quantile(&without, predicted.quantile);
        assert!((predicted.after_ns as f64 / 1e3 - truth).abs() <= 10.0, "{predicted:?}, in truth {truth} µs");
    }
}
