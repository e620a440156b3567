//! `taut wakeup`: how late this machine wakes a thread.

mod beside;
mod explained;
mod live;
mod logs;
mod plan;

pub use beside::words as beside;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use taut_hlog as hlog;
use taut_recording::Shown;
use taut_wakeup::{Findings, Policy, Wake, Work};

use crate::{
    exit::Done,
    format::{self, Format},
    output, stop, time,
};

/// Measure wakeup latency: how late threads run after their timer expires.
///
/// Several ways of waking, policies, intervals or loads take turns.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  taut wakeup\n  taut wakeup --policy fifo --interval 250us --duration 60s\n  taut wakeup --vary wake=nanosleep,timerfd\n  taut wakeup --policy fifo --explain --above 200us"
)]
pub struct Args {
    #[command(subcommand)]
    worker: Option<Worker>,
    /// Time of each variant, at least 25 cycles.
    #[arg(long, default_value = "10s", value_parser = time::length, value_name = "TIME")]
    duration: Duration,
    /// Time between cycles.
    #[arg(long, default_value = "1ms", value_parser = time::length, value_name = "TIME")]
    interval: Duration,
    /// CPUs to measure, a pinned thread on each, e.g. 1,3-5; "any": one unpinned thread.
    #[arg(long, default_value = "all", value_name = "LIST")]
    cpus: String,
    /// Policy of the threads: other, batch, fifo, rr, deadline.
    #[arg(long, default_value = "other", value_name = "POLICY")]
    policy: Policy,
    /// Priority for fifo and rr.
    #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(u32).range(1..=99), value_name = "N")]
    priority: u32,
    /// How to wait: nanosleep (absolute), relative, timerfd, epoll, select, condvar, spin.
    #[arg(long, default_value = "nanosleep", value_name = "WAY")]
    wake: Wake,
    /// Timer slack of the threads [default: the kernel's 50us].
    #[arg(long, value_parser = time::length, value_name = "TIME")]
    slack: Option<Duration>,
    /// Hold /dev/cpu_dma_latency at this value, to keep CPUs out of deeper idle states.
    #[arg(long, value_parser = time::moment, value_name = "TIME")]
    dma_latency: Option<Duration>,
    /// Do not lock memory.
    #[arg(long)]
    no_mlock: bool,
    /// Alternate between values of wake, policy, priority, interval, slack, dma-latency, governor or load; repeatable.
    #[arg(long, value_name = "KEY=V1,V2…")]
    vary: Vec<String>,
    /// Sleep each of these times with clock_nanosleep, select and timerfd.
    #[arg(long, value_delimiter = ',', value_parser = time::length, value_name = "T1,T2…", conflicts_with = "interval")]
    sleep: Vec<Duration>,
    /// Alternate between idle and a load: cpu=N, memory=N, io=N, timer=N, command='…', stress-ng='…'.
    #[arg(long, value_name = "LOAD")]
    load: Option<String>,
    /// Measure one setting against itself: the machine's noise.
    #[arg(long, conflicts_with_all = ["vary", "sleep", "load"])]
    aa: bool,
    /// Rounds [default: 10 with several variants].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Record kernel events and explain late wakeups; --load then stays on.
    #[arg(long, conflicts_with_all = ["vary", "sleep", "aa"])]
    explain: bool,
    /// With --explain: only wakeups above this latency.
    #[arg(long, default_value = "100us", value_parser = time::length, value_name = "TIME", requires = "explain")]
    above: Duration,
    /// With --explain: keep the recording.
    #[arg(long, value_name = "FILE", value_parser = crate::folder::recording(), requires = "explain")]
    record: Option<PathBuf>,
    /// Require pinned threads on all CPUs, to find common stalls.
    #[arg(long)]
    pair: bool,
    /// Test whether this kernel throttles busy SCHED_FIFO threads.
    #[arg(long)]
    throttle: bool,
    /// Write an HdrHistogram interval log, a line a second and CPU.
    #[arg(long, value_name = "FILE")]
    hlog: Option<PathBuf>,
    /// Show HdrHistogram interval logs instead of measuring.
    #[arg(long, value_name = "HLOG", num_args = 1.., conflicts_with_all = ["vary", "sleep", "load", "aa", "explain", "pair", "throttle", "hlog"])]
    read: Vec<PathBuf>,
    /// Form of the result.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Json, Format::Html]))]
    format: Format,
    /// Output file [default: stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// No progress.
    #[arg(short, long)]
    quiet: bool,
    /// Between processes: leave the findings here.
    #[arg(long, hide = true, value_name = "FILE")]
    findings: Option<PathBuf>,
}

/// What is started of itself.
#[derive(clap::Subcommand)]
enum Worker {
    /// Load of one kind until killed.
    #[command(name = "load-worker", hide = true)]
    Load {
        /// The process that it ends with.
        of: i32,
        /// cpu, memory, io or timer.
        work: String,
        /// Threads.
        workers: u32,
    },
    /// Runs a command with a probe beside it; without one it is the probe.
    #[command(name = "beside", hide = true)]
    Beside {
        /// The process that the probe ends with.
        #[arg(long)]
        of: Option<i32>,
        /// The command.
        #[arg(last = true)]
        command: Vec<OsString>,
    },
}

impl Args {
    /// Whether the exit code is that of a command.
    pub fn becomes_a_command(&self) -> bool {
        matches!(&self.worker, Some(Worker::Beside { command, .. }) if !command.is_empty())
    }
}

/// Measures, or reads logs; prints.
pub fn run(args: &Args) -> Result<Done> {
    match &args.worker {
        Some(Worker::Load { of, work, workers }) => {
            let work = Work::from_word(work).with_context(|| format!("{work}: no such load"))?;
            work.go(*workers, *of).context("load")?;
            return Ok(Done::Fine);
        }
        Some(Worker::Beside { of, command }) => return beside::run(*of, command),
        None => {}
    }
    args.format.check_place(args.output.as_deref(), "-o wakeup.html")?;
    let mut done = Done::Fine;
    let findings = match (args.read.is_empty(), args.explain) {
        (false, _) => logs::read(&args.read)?,
        (true, false) => {
            let (findings, ended) = measure(args)?;
            done = ended;
            findings
        }
        (true, true) => match explained::measure(args)? {
            Ok((findings, ended)) => {
                done = ended;
                findings
            }
            Err(done) => return Ok(done),
        },
    };
    if let Some(path) = &args.findings {
        let text = serde_json::to_string(&findings).context("findings")?;
        std::fs::write(path, text).with_context(|| path.shown())?;
        return Ok(done);
    }
    let text = match args.format {
        Format::Json => format!("{:#}\n", taut_report::wakeup_json(&findings)),
        form => output::interactive(&taut_report::wakeup_document(&findings), form, args.output.as_deref()),
    };
    output::write(&text, args.output.as_deref())?;
    if let Some(path) = &args.output {
        say!("wrote {}", path.shown());
    }
    let lost = findings.variants.iter().any(|variant| variant.all.lost > 0);
    Ok(if lost && done == Done::Fine { Done::DataLost } else { done })
}

/// Probes in this process.
fn measure(args: &Args) -> Result<(Findings, Done)> {
    let plan = plan::of(args)?;
    let stop = stop::on(&[SIGINT, SIGTERM])?;
    if let Some((_, settings)) = plan.variants.iter().find(|(_, settings)| settings.governor.is_some()) {
        for command in taut_wakeup::governors(&settings.cpus) {
            say!("taut: puts back after each turn, as you would after a kill: {command}");
        }
    }
    let mut file = args.hlog.as_deref().map(logs::create).transpose()?;
    let mut serializer = hlog::Serializer::new();
    let mut log = match &mut file {
        Some(file) => {
            Some(hlog::begin(file, &mut serializer, SystemTime::now(), "Lateness of wakeups by taut wakeup")?)
        }
        None => None,
    };
    let live = live::Live::new(args.quiet);
    let mut failed = None;
    let found = taut_wakeup::run(&plan, &stop.flag, &mut |event| {
        let logged = log.as_mut().map_or(Ok(()), |log| logs::take(log, &event));
        failed = failed.take().or(logged.err());
        live.show(&event);
    });
    live.clear();
    let mut found = found?;
    if let Some(error) = failed {
        return Err(error).with_context(|| shown(args.hlog.as_deref()));
    }
    if args.throttle && stop.signal().is_none() {
        found.throttling = Some(taut_wakeup::throttling(plan::first_cpu(args)?, THROTTLE_WATCHED)?);
    }
    found.machine.insert("command".into(), command());
    Ok((found, stop.done()))
}

/// Real-time throttling gives others 50 ms of each second.
const THROTTLE_WATCHED: Duration = Duration::from_secs(4);

/// As it was typed.
fn command() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    format!("taut {}", taut_report::words::shell(&words))
}

fn shown(path: Option<&Path>) -> String {
    path.map_or(String::new(), |path| path.shown())
}
