//! Runs a plan: variants in turn, in rounds, so that a drift of the machine falls on all of them alike.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use rustix::mm::{MlockAllFlags, mlockall};
use taut_clock::monotonic_ns;
use taut_stats::{Distribution, Histogram, Sketch};

use crate::{
    Collector, CpuSeries, Error, Findings, IdleState, Policy, Series, Settings, SlackFit, StallWatch, Turn, Variant,
    Woken, facts,
    governor::{self, Governor},
    load::Running,
    slack,
    watcher::{Watcher, allowed_cpus, list},
};

/// What is probed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Label and settings of each variant.
    pub variants: Vec<(String, Settings)>,
    /// How long each variant is probed, all rounds together; at least 25 of its cycles.
    pub duration: Duration,
    /// How often the variants take turns.
    pub rounds: u32,
    /// The command that runs [`crate::Work::go`] with a word and a number.
    pub load_worker: Vec<OsString>,
    /// Whether [`Event::Interval`]s are wanted.
    pub intervals: bool,
    /// Whether [`Event::Live`]s are wanted.
    pub live: bool,
}

/// What happens while probing.
pub enum Event<'a> {
    /// About once in a tenth of a second, when asked for.
    Live(Live<'a>),
    /// Of each CPU about once a second, when asked for.
    Interval {
        /// The variant's label and the CPU: "wake=timerfd/cpu0".
        tag: String,
        /// Since the probe began.
        start: Duration,
        /// How long it took.
        length: Duration,
        /// Lateness of the wakeups in it.
        histogram: &'a Histogram<u64>,
    },
}

/// How far it got.
pub struct Live<'a> {
    /// Label of the variant that is being probed.
    pub label: &'a str,
    /// Measured so far, and in all.
    pub done: Duration,
    /// As above.
    pub all: Duration,
    /// Each CPU of this variant: number, lateness of its last wake, distribution so far, cycles missed.
    pub cpus: &'a [(Option<u32>, u64, Distribution, u64)],
}

/// Probes until the plan is done or `stop` is set.
///
/// # Errors
/// What the first variant that cannot be probed needs: a CPU, a permission, a load that runs.
pub fn run(plan: &Plan, stop: &Arc<AtomicBool>, on_event: &mut dyn FnMut(Event<'_>)) -> Result<Findings, Error> {
    let mut findings = Findings {
        machine: facts::facts(),
        started_s: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
        ..Findings::default()
    };
    let mut runs = Vec::new();
    for (label, settings) in &plan.variants {
        settings.check()?;
        runs.push(VariantRun::new(label, settings, plan, &mut findings.notes)?);
    }
    if runs.iter().any(|run| run.settings.lock_memory)
        && let Err(errno) = lock_memory()
    {
        let why = std::io::Error::from(errno);
        findings.notes.push(format!(
            "memory could not be locked ({why}): raise `ulimit -l`, or page faults may fall into the measurement"
        ));
    }
    let all: Duration = runs.iter().map(|run| run.length * plan.rounds).sum();
    let mut progress = Progress { all, done: Duration::ZERO, since: monotonic_ns(), intervals: plan.intervals };
    // Stalls are told by pinned threads only, and by the variant that all CPUs belong to.
    let mut stalls = (runs[0].cpus.len() >= 2).then(|| StallWatch::new(runs[0].cpus.len()));
    let steal_ns = facts::steal_ns();
    for round in 0..plan.rounds {
        for turn in 0..runs.len() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let at = (turn + round as usize) % runs.len();
            runs[at].turn(plan, stop, &mut stalls, &mut progress, on_event)?;
        }
    }
    findings.measured_s = progress.done.as_secs_f64();
    findings.stalls = stalls.map(|watch| {
        let mut stalls = watch.finish();
        stalls.steal_ns = facts::steal_ns().saturating_sub(steal_ns);
        stalls.real_time = plan.variants.iter().all(|(_, settings)| settings.policy.is_real_time());
        stalls
    });
    findings.variants = runs.into_iter().map(VariantRun::finish).collect();
    findings.slack = slack_fits(plan, &findings.variants);
    findings.notes.extend(load_gotcha(&findings.variants));
    Ok(findings)
}

/// What is mapped already is kept from when it is first touched, which each thread does before its first cycle; what is
/// mapped from now on (rings, stacks) is there at once. Faulting in all of the program would cost more than many a probe.
fn lock_memory() -> rustix::io::Result<()> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT)?;
    mlockall(MlockAllFlags::FUTURE)
}

/// Between two looks at the wakes: so that figures move, and else as seldom as rings and loads allow. The last look
/// comes shortly after the last cycle.
const LIVE_PAUSE_NS: u64 = 100_000_000;
const PAUSE_NS: u64 = 400_000_000;
const LAST_PAUSE_NS: u64 = 2_000_000;

struct Progress {
    all: Duration,
    done: Duration,
    since: u64,
    intervals: bool,
}

/// One variant, filled in turn by turn.
struct VariantRun {
    label: String,
    settings: Settings,
    /// Of the threads; `[None]` for one that is not pinned.
    cpus: Vec<Option<u32>>,
    collectors: Vec<Collector>,
    /// Of one turn.
    length: Duration,
    measured_ns: u64,
    cpu_ns: u64,
    page_faults: u64,
    frequencies: Vec<u64>,
    idle_states: BTreeMap<String, (u64, u64)>,
    /// The wakes of the turn at hand, and the figures of those before it.
    turn: Sketch,
    turns: Vec<Turn>,
}

impl VariantRun {
    fn new(label: &str, settings: &Settings, plan: &Plan, notes: &mut Vec<String>) -> Result<VariantRun, Error> {
        let allowed = allowed_cpus();
        if let Some(cpu) = settings.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            return Err(Error::Cpu { cpu: *cpu, allowed: list(&allowed) });
        }
        let mut cpus: Vec<Option<u32>> = settings.cpus.iter().copied().map(Some).collect();
        if settings.policy == Policy::Deadline && !cpus.is_empty() {
            notes.push("a SCHED_DEADLINE thread cannot be pinned: one thread, wherever the kernel puts it".into());
            cpus.clear();
        }
        if cpus.is_empty() {
            cpus.push(None);
        }
        let interval_ns = settings.interval.as_nanos() as u64;
        Ok(VariantRun {
            label: label.to_owned(),
            settings: settings.clone(),
            collectors: cpus.iter().map(|_| Collector::new(interval_ns)).collect(),
            cpus,
            length: plan.duration.max(settings.interval * 25) / plan.rounds.max(1),
            measured_ns: 0,
            cpu_ns: 0,
            page_faults: 0,
            frequencies: Vec::new(),
            idle_states: BTreeMap::new(),
            turn: Sketch::default(),
            turns: Vec::new(),
        })
    }

    /// Probes for one turn.
    fn turn(
        &mut self,
        plan: &Plan,
        stop: &Arc<AtomicBool>,
        stalls: &mut Option<StallWatch>,
        progress: &mut Progress,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let mut load = self.settings.load.as_ref().map(|load| Running::start(load, &plan.load_worker)).transpose()?;
        if load.is_some() {
            // Until the load has taken hold.
            std::thread::sleep(Duration::from_millis(300));
        }
        let _awake = self.settings.dma_latency_us.map(hold_dma_latency).transpose()?;
        let governor = self.settings.governor.as_deref();
        let _governor =
            governor.map(|name| Governor::set(Path::new(governor::CPUS), &self.settings.cpus, name)).transpose()?;
        let interval_ns = self.settings.interval.as_nanos() as u64;
        let start_ns = monotonic_ns() + 30_000_000;
        let end_ns = start_ns + self.length.as_nanos() as u64;
        let (cpu_ns, idle_states) = (process_cpu_ns(), facts::idle_states(&self.settings.cpus));
        let mut watchers = Vec::new();
        for (at, cpu) in self.cpus.iter().enumerate() {
            // Spread over the interval, so that threads do not wake each other's sibling.
            let first_ns = start_ns + interval_ns * at as u64 / self.cpus.len() as u64;
            watchers.push(Watcher::start(&self.settings, *cpu, first_ns, end_ns, stop)?);
        }
        let mut tick = Tick::new(self, start_ns);
        self.turn = Sketch::default();
        loop {
            let finished = watchers.iter().all(Watcher::is_finished);
            self.drain(&mut watchers, start_ns, stalls, &mut tick);
            let now = monotonic_ns();
            if now >= tick.second_ns || finished {
                self.second(&mut tick, now, progress, on_event);
            }
            if plan.live {
                let cpus: Vec<_> = tick.live(self);
                let done = progress.done + Duration::from_nanos(now.clamp(start_ns, end_ns) - start_ns);
                on_event(Event::Live(Live { label: &self.label, done, all: progress.all, cpus: &cpus }));
            }
            if finished {
                break;
            }
            if let Some(load) = &mut load {
                load.check().inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            }
            let pause = if plan.live { LIVE_PAUSE_NS } else { PAUSE_NS };
            std::thread::sleep(Duration::from_nanos(
                pause.min((end_ns + LAST_PAUSE_NS).saturating_sub(now).max(LAST_PAUSE_NS)),
            ));
        }
        for (collector, watcher) in self.collectors.iter_mut().zip(watchers) {
            collector.lose(watcher.lost());
            self.page_faults += watcher.join();
        }
        self.turns.push(Turn { p50_ns: self.turn.quantile(0.5), p99_ns: self.turn.quantile(0.99) });
        let measured_ns = monotonic_ns().clamp(start_ns, end_ns) - start_ns;
        self.measured_ns += measured_ns;
        self.cpu_ns += process_cpu_ns() - cpu_ns;
        for (name, (entered, ns)) in facts::idle_states(&self.settings.cpus) {
            let before = idle_states.get(&name).copied().unwrap_or_default();
            let sum = self.idle_states.entry(name).or_default();
            *sum = (sum.0 + entered.saturating_sub(before.0), sum.1 + ns.saturating_sub(before.1));
        }
        progress.done += Duration::from_nanos(measured_ns);
        Ok(())
    }

    fn drain(&mut self, watchers: &mut [Watcher], start_ns: u64, stalls: &mut Option<StallWatch>, tick: &mut Tick) {
        for (at, watcher) in watchers.iter_mut().enumerate() {
            let wakes = watcher.wakes.slots();
            let Ok(chunk) = watcher.wakes.read_chunk(wakes) else { continue };
            for woken in chunk {
                self.collectors[at].take(woken, self.measured_ns + woken.due_ns.saturating_sub(start_ns));
                tick.take(at, woken);
                self.turn.record(woken.late_ns);
                if let (Some(stalls), Some(_)) = (stalls.as_mut(), watcher.cpu) {
                    stalls.take(at, woken);
                }
            }
        }
        if let Some(stalls) = stalls {
            stalls.settle();
        }
    }

    fn second(&mut self, tick: &mut Tick, now: u64, progress: &Progress, on_event: &mut dyn FnMut(Event<'_>)) {
        self.frequencies.extend(self.settings.cpus.iter().filter_map(|cpu| facts::frequency_khz(*cpu)));
        if progress.intervals {
            for (at, cpu) in self.cpus.iter().enumerate() {
                let cpu = cpu.map_or("any".into(), |cpu| format!("cpu{cpu}"));
                let tag = if self.label.is_empty() { cpu } else { format!("{}/{cpu}", self.label) };
                on_event(Event::Interval {
                    // The log's format has no room for those.
                    tag: tag.replace([',', ' ', '\n', '\r'], "_"),
                    start: Duration::from_nanos(tick.began_ns.saturating_sub(progress.since)),
                    length: Duration::from_nanos(now - tick.began_ns.min(now)),
                    histogram: &tick.histograms[at],
                });
            }
            tick.histograms.iter_mut().for_each(Histogram::reset);
        }
        tick.began_ns = now;
        tick.second_ns += 1_000_000_000;
    }

    fn finish(self) -> Variant {
        let cpus: Vec<CpuSeries> = self
            .cpus
            .iter()
            .zip(&self.collectors)
            .map(|(cpu, c)| CpuSeries { cpu: *cpu, series: c.series() })
            .collect();
        let mut all = Series::default();
        cpus.iter().for_each(|cpu| all.add(&cpu.series));
        let mut frequencies = self.frequencies;
        frequencies.sort_unstable();
        Variant {
            label: self.label,
            interval_ns: self.settings.interval.as_nanos() as u64,
            settings: self.settings.facts(),
            cpus,
            all,
            own_cpu: self.cpu_ns as f64 / self.measured_ns.max(1) as f64,
            page_faults: self.page_faults,
            frequency_khz: frequencies.get(frequencies.len() / 2).copied(),
            idle_states: self
                .idle_states
                .into_iter()
                .map(|(name, (entered, ns))| IdleState { name, entered, ns })
                .collect(),
            turns: self.turns,
        }
    }
}

/// What is kept between two ticks of the display and of the interval log.
struct Tick {
    began_ns: u64,
    second_ns: u64,
    last: Vec<u64>,
    histograms: Vec<Histogram<u64>>,
}

impl Tick {
    fn new(run: &VariantRun, start_ns: u64) -> Tick {
        let histogram = || Histogram::new(3).expect("three digits are allowed");
        Tick {
            began_ns: start_ns,
            second_ns: start_ns + 1_000_000_000,
            last: vec![0; run.cpus.len()],
            histograms: run.cpus.iter().map(|_| histogram()).collect(),
        }
    }

    fn take(&mut self, at: usize, woken: Woken) {
        self.last[at] = woken.late_ns;
        self.histograms[at].record(woken.late_ns).expect("a histogram that resizes takes every value");
    }

    fn live(&self, run: &VariantRun) -> Vec<(Option<u32>, u64, Distribution, u64)> {
        let cpus = run.cpus.iter().zip(&run.collectors).zip(&self.last);
        cpus.map(|((cpu, collector), last)| (*cpu, *last, collector.distribution(), collector.missed())).collect()
    }
}

/// Keeps CPUs out of idle states with a longer exit than that, while the file is open (Documentation/power/pm_qos_interface).
fn hold_dma_latency(us: i32) -> Result<File, Error> {
    let failed = |source| Error::System {
        what: "/dev/cpu_dma_latency (leave --dma-latency away, or give your user a udev rule for it)".into(),
        source,
    };
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency").map_err(failed)?;
    file.write_all(&us.to_ne_bytes()).map_err(failed)?;
    Ok(file)
}

fn process_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Fewer sleeps than this have no median worth naming.
const SLEEPS_MIN: u64 = 20;

/// Programs whose `time.sleep` sleeps so.
fn as_python(wake: crate::Wake) -> &'static str {
    match wake {
        crate::Wake::Relative => " (Python ≥ 3.11)",
        crate::Wake::Select => " (Python ≤ 3.10)",
        _ => "",
    }
}

/// Measured lateness against the kernel's rule, when sleeps of several lengths or kinds were probed.
fn slack_fits(plan: &Plan, variants: &[Variant]) -> Vec<SlackFit> {
    let kinds = |f: fn(&Settings) -> (u128, crate::Wake)| {
        let mut seen: Vec<_> = plan.variants.iter().map(|(_, settings)| f(settings)).collect();
        seen.sort_by_key(|(ns, wake)| (*ns, wake.word()));
        seen.dedup();
        seen.len()
    };
    if kinds(|s| (s.interval.as_nanos(), s.wake)) < 2 {
        return Vec::new();
    }
    let fit = |((_, settings), variant): (&(String, Settings), &Variant)| {
        let slack_ns = slack::slack_ns(settings.wake, settings.policy, settings.interval, settings.slack, nice());
        // A median needs no bursts beyond it, only enough sleeps.
        let enough = variant.all.wakeups.len() >= SLEEPS_MIN;
        let p50_ns = variant.all.wakeups.quantile(0.5).filter(|_| enough);
        SlackFit {
            wake: format!("{}{}", settings.wake, as_python(settings.wake)),
            sleep_ns: settings.interval.as_nanos() as u64,
            p50_ns,
            slack_ns,
            rest_ns: p50_ns.map(|p50| p50 as i64 - slack_ns as i64),
        }
    };
    plan.variants.iter().zip(variants).map(fit).collect()
}

fn nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap_or(0)
}

/// Whether it was less late under load: an idle CPU sleeps deeper and clocks lower than a busy one.
fn load_gotcha(variants: &[Variant]) -> Option<String> {
    let load = |variant: &&Variant| variant.settings.get("load").is_none_or(|load| load == "none");
    let idle = variants.iter().find(load)?;
    let loaded = variants.iter().find(|variant| !load(variant))?;
    let (calm, busy) = (idle.all.wakeups.distribution().p50_ns?, loaded.all.wakeups.distribution().p50_ns?);
    if busy as f64 > calm as f64 * 0.9 {
        return None;
    }
    let why = match (idle.frequency_khz, loaded.frequency_khz) {
        (Some(low), Some(high)) if high as f64 > low as f64 * 1.05 => {
            format!("the clock went from {} to {} MHz: measure, and run, with the governor `performance`", low / 1000, high / 1000)
        }
        (Some(_), Some(_)) => "the clock did not change: an idle CPU sleeps, and waking it takes time; hold /dev/cpu_dma_latency (--dma-latency 0)".into(),
        _ => "this machine shows no clock frequency; an idle CPU sleeps deeper and clocks lower than a busy one: compare with --dma-latency 0".into(),
    };
    Some(format!(
        "wakeups were less late under load (p50 {:.0} µs) than without (p50 {:.0} µs); {why}",
        busy as f64 / 1e3,
        calm as f64 / 1e3,
    ))
}
