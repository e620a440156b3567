//! timerlat and osnoise, the kernel's own tracers of late wakes and of stolen time, where a kernel has them: run by
//! themselves on the same CPUs, after the probe, so that neither disturbs the other. Formats:
//! `Documentation/trace/timerlat-tracer.rst` and `osnoise-tracer.rst`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use taut_stats::Sketch;

/// Where tracefs is mounted.
pub const TRACEFS: &str = "/sys/kernel/tracing";
/// How often the end is looked for.
const STEP: Duration = Duration::from_millis(20);
/// Of the time in which osnoise looks for noise, and of which it looks for half.
const OSNOISE_PERIOD_US: u64 = 500_000;

/// What both say of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tracers {
    /// How long each watched, s.
    pub watched_s: f64,
    /// Late timers and threads.
    pub timerlat: Option<Timerlat>,
    /// Stolen time.
    pub osnoise: Option<Osnoise>,
    /// Why one says nothing.
    pub missing: Vec<String>,
}

/// What timerlat says: a timer on each CPU that wakes a thread of SCHED_FIFO 95.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timerlat {
    /// Timers.
    pub n: u64,
    /// Median lateness of the timer's interrupt.
    pub irq_p50_ns: u64,
    /// Largest.
    pub irq_max_ns: u64,
    /// Median lateness of its thread.
    pub thread_p50_ns: u64,
    /// Largest.
    pub thread_max_ns: u64,
}

/// What osnoise says, all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Osnoise {
    /// How long it looked, all CPUs together.
    pub runtime_us: u64,
    /// Time taken from it.
    pub noise_us: u64,
    /// The longest at once.
    pub max_us: u64,
    /// How often by hardware, which is also a hypervisor; NMIs, interrupts, softirqs, threads.
    pub hardware: u64,
    /// As above.
    pub nmi: u64,
    /// As above.
    pub irq: u64,
    /// As above.
    pub softirq: u64,
    /// As above.
    pub thread: u64,
}

/// Runs both for so long each. What cannot be had is named.
pub fn tracers(tracefs: &Path, cpus: &[u32], interval: Duration, length: Duration, stop: &AtomicBool) -> Tracers {
    let mut found = Tracers { watched_s: length.as_secs_f64(), ..Tracers::default() };
    let timerlat = [("timerlat_period_us", interval.as_micros().max(100) as u64)];
    let osnoise = [("runtime_us", OSNOISE_PERIOD_US / 2), ("period_us", OSNOISE_PERIOD_US)];
    match watch(tracefs, "timerlat", &timerlat, cpus, length, stop).and_then(|text| read_timerlat(&text)) {
        Ok(timerlat) => found.timerlat = Some(timerlat),
        Err(why) => found.missing.push(format!("timerlat: {why}")),
    }
    match watch(tracefs, "osnoise", &osnoise, cpus, length, stop).and_then(|text| read_osnoise(&text)) {
        Ok(osnoise) => found.osnoise = Some(osnoise),
        Err(why) => found.missing.push(format!("osnoise: {why}")),
    }
    found
}

/// A tracer in an instance of its own; gives what it wrote.
fn watch(
    tracefs: &Path,
    tracer: &str,
    settings: &[(&str, u64)],
    cpus: &[u32],
    length: Duration,
    stop: &AtomicBool,
) -> Result<String, String> {
    let there = fs::read_to_string(tracefs.join("available_tracers"));
    let there = there.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("no tracefs is mounted; mount -t tracefs tracefs {}", tracefs.display()),
        _ => format!("{}: {error}; run as root", tracefs.display()),
    })?;
    if !there.split_whitespace().any(|one| one == tracer) {
        return Err(format!("not in this kernel (CONFIG_{}_TRACER)", tracer.to_uppercase()));
    }
    let mut put_back = PutBack::default();
    let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
    let values = settings.iter().map(|(name, value)| (*name, value.to_string()));
    for (name, value) in values.chain((!list.is_empty()).then(|| ("cpus", list.join(",")))) {
        put_back.set(&tracefs.join("osnoise").join(name), &value).map_err(|error| format!("{name}: {error}"))?;
    }
    let instance = Instance::new(tracefs).map_err(|error| format!("no instance of the tracer: {error}"))?;
    let current = instance.0.join("current_tracer");
    fs::write(&current, tracer).map_err(|error| format!("it does not start: {error}"))?;
    let began = Instant::now();
    while began.elapsed() < length && !stop.load(Relaxed) {
        std::thread::sleep(STEP.min(length));
    }
    let text = fs::read_to_string(instance.0.join("trace")).map_err(|error| format!("its trace: {error}"));
    let _ = fs::write(&current, "nop");
    text
}

/// Settings as they were, when dropped.
#[derive(Default)]
struct PutBack(Vec<(PathBuf, String)>);

impl PutBack {
    fn set(&mut self, path: &Path, value: &str) -> io::Result<()> {
        let before = fs::read_to_string(path)?;
        fs::write(path, value)?;
        self.0.push((path.to_owned(), before.trim().to_owned()));
        Ok(())
    }
}

impl Drop for PutBack {
    fn drop(&mut self) {
        for (path, before) in self.0.iter().rev() {
            let _ = fs::write(path, before);
        }
    }
}

/// An instance of this process's own, gone when dropped.
struct Instance(PathBuf);

impl Instance {
    fn new(tracefs: &Path) -> io::Result<Instance> {
        let path = tracefs.join("instances").join(format!("taut-wakeup-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Instance(path))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("current_tracer"), "nop");
        let _ = fs::remove_dir(&self.0);
    }
}

/// "… context    irq timer_latency       932 ns".
fn read_timerlat(text: &str) -> Result<Timerlat, String> {
    let (mut irq, mut thread) = (Sketch::default(), Sketch::default());
    for line in text.lines() {
        let Some((_, said)) = line.split_once(" context ") else { continue };
        let mut words = said.split_whitespace();
        let (context, name, ns) = (words.next(), words.next(), words.next().and_then(|ns| ns.parse::<u64>().ok()));
        match (context, name, ns) {
            (Some("irq"), Some("timer_latency"), Some(ns)) => irq.record(ns),
            (Some("thread"), Some("timer_latency"), Some(ns)) => thread.record(ns),
            _ => {}
        }
    }
    let figures = |sketch: &Sketch| Some((sketch.quantile(0.5)?, sketch.max()?));
    let ((irq_p50_ns, irq_max_ns), (thread_p50_ns, thread_max_ns)) =
        figures(&irq).zip(figures(&thread)).ok_or("it wrote nothing that is known here")?;
    Ok(Timerlat { n: irq.len(), irq_p50_ns, irq_max_ns, thread_p50_ns, thread_max_ns })
}

/// "… 81.637220: 1000000        190  99.98100       9     18      0   1007     18      1".
fn read_osnoise(text: &str) -> Result<Osnoise, String> {
    let mut all = Osnoise::default();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let Some((_, said)) = line.split_once(": ") else { continue };
        let words: Vec<&str> = said.split_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let counters: Option<Vec<u64>> = (4..9).map(number).collect();
        let (Some(runtime_us), Some(noise_us), Some(max_us), Some(counters)) =
            (number(0), number(1), number(3), counters)
        else {
            continue;
        };
        all.runtime_us += runtime_us;
        all.noise_us += noise_us;
        all.max_us = all.max_us.max(max_us);
        let sums = [&mut all.hardware, &mut all.nmi, &mut all.irq, &mut all.softirq, &mut all.thread];
        sums.into_iter().zip(counters).for_each(|(sum, n)| *sum += n);
    }
    if all.runtime_us == 0 { Err("it wrote nothing that is known here".into()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the kernel's documentation.
    const TIMERLAT: &str = "\
# tracer: timerlat
#         TASK-PID      CPU# ||||   TIMESTAMP    ID            CONTEXT                LATENCY
#            | |         |   ||||      |         |                  |                       |
          <idle>-0       [000] d.h1    54.029328: #1     context    irq timer_latency       932 ns
           <...>-867     [000] ....    54.029339: #1     context thread timer_latency     11700 ns
          <idle>-0       [001] dNh1    54.029346: #1     context    irq timer_latency      2833 ns
           <...>-868     [001] ....    54.029353: #1     context thread timer_latency      9820 ns
          <idle>-0       [000] d.h1    54.030328: #2     context    irq timer_latency       769 ns
           <...>-867     [000] ....    54.030330: #2     context thread timer_latency      3070 ns
             cc1-87882   [005] dNLh1..   548.771082: irq_noise: local_timer:236 start 548.771077442 duration 7597 ns
";
    const OSNOISE: &str = "\
# tracer: osnoise
#           TASK-PID      CPU# ||||   TIMESTAMP    IN US       IN US  AVAILABLE  IN US     HW    NMI    IRQ   SIRQ THREAD
                   <...>-859     [000] ....    81.637220: 1000000        190  99.98100       9     18      0   1007     18      1
                   <...>-860     [001] ....    81.638154: 1000000        656  99.93440      74     23      0   1006     16      3
       osnoise/8-961     [008] d.h.  5789.857532: irq_noise: local_timer:236 start 5789.857529929 duration 1845 ns
";

    #[test]
    fn what_the_kernels_documentation_shows_is_read() {
        let found = read_timerlat(TIMERLAT).unwrap();
        assert_eq!((found.n, found.irq_max_ns, found.thread_max_ns), (3, 2833, 11_700));
        assert!((930..=935).contains(&found.irq_p50_ns) && (9_810..=9_830).contains(&found.thread_p50_ns), "{found:?}");
        let found = read_osnoise(OSNOISE).unwrap();
        assert_eq!((found.runtime_us, found.noise_us, found.max_us), (2_000_000, 846, 74));
        assert_eq!((found.hardware, found.nmi, found.irq, found.softirq, found.thread), (41, 0, 2013, 34, 4));
        assert!(read_timerlat(OSNOISE).is_err() && read_osnoise(TIMERLAT).is_err() && read_osnoise("").is_err());
    }

    /// A folder with what tracefs shows; both tracers have written already.
    fn kernel(tracers: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let instance = root.path().join(format!("instances/taut-wakeup-{}", std::process::id()));
        fs::create_dir_all(&instance).unwrap();
        fs::create_dir(root.path().join("osnoise")).unwrap();
        fs::write(root.path().join("available_tracers"), tracers).unwrap();
        fs::write(instance.join("trace"), [TIMERLAT, OSNOISE].concat()).unwrap();
        let settings =
            [("cpus", "0-3"), ("timerlat_period_us", "1000"), ("runtime_us", "1000000"), ("period_us", "1000000")];
        for (name, value) in settings {
            fs::write(root.path().join("osnoise").join(name), format!("{value}\n")).unwrap();
        }
        root
    }

    fn look(root: &Path) -> Tracers {
        tracers(root, &[0, 2], Duration::from_micros(500), Duration::from_millis(1), &AtomicBool::new(false))
    }

    #[test]
    fn tracers_are_used_where_they_are_and_leave_all_as_it_was() {
        let root = kernel("timerlat osnoise hwlat function nop\n");
        let found = look(root.path());
        assert_eq!((found.timerlat.unwrap().n, found.osnoise.unwrap().irq), (3, 2013));
        assert!(found.missing.is_empty(), "{found:?}");
        let setting = |name: &str| fs::read_to_string(root.path().join("osnoise").join(name)).unwrap();
        assert_eq!([setting("cpus"), setting("timerlat_period_us"), setting("runtime_us")], ["0-3", "1000", "1000000"]);
        let instance = root.path().join(format!("instances/taut-wakeup-{}", std::process::id()));
        assert_eq!(fs::read_to_string(instance.join("current_tracer")).unwrap(), "nop");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let root = kernel("blk function_graph function nop\n");
        let found = look(root.path());
        assert_eq!((found.timerlat, found.osnoise), (None, None));
        assert_eq!(found.missing[0], "timerlat: not in this kernel (CONFIG_TIMERLAT_TRACER)");
        let nowhere = look(Path::new("/nonexistent"));
        assert!(nowhere.missing[1].contains("mount -t tracefs tracefs /nonexistent"), "{nowhere:?}");
    }
}
