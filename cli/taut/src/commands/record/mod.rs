//! `taut record`: run a command, or attach to one, and write a recording.

use std::{cell::RefCell, ffi::OsString, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGKILL, SIGTERM};
use taut_capture::{Answered, Depth, End, FirstStamp, Options, Profiling, Recorded, Scope, Target};
use taut_recording::{Compression, Ending, Shown, Tier};
use taut_report::words;

mod flight;
mod metrics;
mod on;
pub mod ros2;
mod talk;

use super::wakeup;
use crate::{
    exit::{Done, IO_FAILED},
    losses::Losses,
    output, time,
};
use talk::Live;

/// Above the number of the signal that ended a command.
const SIGNAL: i32 = crate::exit::SIGNAL as i32;

/// Run a command and record its processes: stamps and kernel events.
///
/// Exits with the command's code, or 0 if --duration ends it; 5 in place of 0 where data was lost. The recording stays
/// readable whatever ends it.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut record -o run.mcap -- python my_robot.py\n  taut record --pid 4242 --duration 10\n  taut record --on robot=ssh://alice@10.0.0.2 'python robot.py' -- python desk.py\n  taut record --flight-recorder=60s --save-above 20ms -- ./robot"
)]
pub struct Args {
    /// Recording to write.
    #[arg(short, long, default_value = "taut-run.mcap", value_name = "FILE", value_parser = crate::folder::recording())]
    output: PathBuf,
    /// Attach to a running process; it stamps if started with TAUT_SESSION=DIR set.
    #[arg(long, conflicts_with = "command")]
    pid: Option<i32>,
    /// Record all processes of the machine; needs the full tier.
    #[arg(long, conflicts_with_all = ["command", "pid", "tier", "profile", "session"])]
    system: bool,
    /// Name of this host in joined recordings [default: the kernel's].
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    host_name: Option<String>,
    /// Also record this command on another host, fetched as run.NAME.mcap; repeatable.
    #[arg(long, num_args = 2, value_names = ["NAME=ssh://HOST", "COMMAND"], action = clap::ArgAction::Append,
          conflicts_with_all = ["pid", "system", "session", "no_file", "flight_recorder", "save"])]
    on: Vec<String>,
    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = time::length)]
    duration: Option<Duration>,
    /// Count --duration from the first stamp or ROS 2 callback, after this time at the latest.
    #[arg(long, value_name = "TIME", requires = "duration", value_parser = time::length)]
    first_stamp_within: Option<Duration>,
    /// Insist on a tier of kernel events [default: the best permitted].
    #[arg(long, value_parser = ["full", "self", "stamps"])]
    tier: Option<String>,
    /// Insist on a kernel source [default: the cheaper that works].
    #[arg(long, value_parser = ["ftrace", "perf"])]
    kernel_source: Option<String>,
    /// Kernel events to record; each value includes those before it.
    #[arg(long, default_value = "irq", value_parser = ["sched", "syscalls", "irq", "all"])]
    depth: String,
    /// Records in each thread's ring, a power of two.
    #[arg(long, value_name = "N", value_parser = ring_records)]
    ring_records: Option<u32>,
    /// Keep exit code 0 where data was lost.
    #[arg(long)]
    ignore_loss: bool,
    /// Sync to disk about once a second.
    #[arg(long)]
    durable: bool,
    /// Compression of the file.
    #[arg(long, default_value = "zstd", value_parser = ["zstd", "none"])]
    compression: String,
    /// Session directory [default: a fresh one under /dev/shm; with --pid, the process's].
    #[arg(long, value_name = "DIR", value_parser = crate::folder::named())]
    session: Option<PathBuf>,
    /// Sample stacks this often per second of CPU time, for `taut flamegraph`.
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    profile: Option<u32>,
    /// With --profile: all tasks of the machine.
    #[arg(long, requires = "profile")]
    profile_system: bool,
    /// Do not preload libtaut_ros2.so in a ROS 2 environment.
    #[arg(long, conflicts_with = "pid")]
    no_ros2: bool,
    /// Measure wakeup latency beside the program.
    #[arg(long, conflicts_with = "pid")]
    wakeup: bool,
    #[command(flatten)]
    flight: flight::Wanted,
    #[command(flatten)]
    metrics: metrics::Wanted,
    /// No progress.
    #[arg(short, long)]
    quiet: bool,
    /// Command to record.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Records until the command ends, the duration is over, or the user interrupts.
pub fn run(args: &Args) -> Result<Done> {
    if args.flight.save {
        let Answered { path, damaged } = flight::save(args.pid, args.session.as_deref())?;
        output::write(&format!("{}\n", path.shown()), None)?;
        if damaged > 0 {
            say!("taut: warning: {}: {}", path.shown(), flight::damage(damaged));
            return Ok(Done::DataLost);
        }
        return Ok(Done::Fine);
    }
    if !args.on.is_empty() {
        return on::run(args);
    }
    let mut options = options(args)?;
    let (flight, watch) = flight::prepare(&args.flight, &args.output, options.compression)?.unzip();
    options.flight = flight;
    let is_watched = args.flight.save_above.is_some();
    let metrics = metrics::Metrics::prepare(&args.metrics, &mut options, is_watched)?;
    let live = Live::new(args.quiet);
    let (watch, metrics) = (RefCell::new(watch), RefCell::new(metrics));
    let recorded = taut_capture::record(
        &options,
        &mut |started| {
            live.started(started);
            if let Some(found) = ros2(args).filter(|_| started.is_preloaded) {
                live.say(&format!(
                    "{found}: {} is preloaded, nodes are recorded; --no-ros2 turns that off",
                    ros2::LIBRARY.file_name
                ));
            }
            metrics.borrow_mut().begin(&options.output, |line| live.say(line));
            watch.borrow().iter().for_each(|watch| live.say(&watch.started()));
        },
        &mut |progress| {
            if progress.is_over {
                metrics.borrow_mut().end();
            }
            if let Some(watch) = watch.borrow_mut().as_mut() {
                metrics.borrow().look(|state| watch.look(state));
                watch.said().iter().for_each(|line| live.say(line));
            }
            live.show(progress);
        },
    );
    let words = metrics.into_inner().finish();
    let mut watch = watch.into_inner();
    watch.iter_mut().for_each(|watch| watch.said().iter().for_each(|line| live.say(line)));
    live.end();
    words.iter().for_each(|warning| say!("taut: warning: {warning}"));
    let recorded = recorded.with_context(|| subject(args))?;
    recorded.warnings.iter().for_each(|warning| say!("taut: warning: {warning}"));
    // No option makes a loss silent.
    if !args.quiet || has_lost(&recorded) {
        say!("{}", summary(args, &recorded, watch.as_ref()));
    }
    Ok(done(args, &recorded))
}

impl Args {
    /// Whether the exit code is a command's.
    pub fn runs_a_command(&self) -> bool {
        !self.command.is_empty()
    }
}

/// Whatever it was.
fn has_lost(recorded: &Recorded) -> bool {
    recorded.damaged > 0 || !Losses::of_ending(&recorded.ending, &recorded.estimated).is_none()
}

/// The command's own failure comes first; then what was lost.
fn done(args: &Args, recorded: &Recorded) -> Done {
    match (recorded.exit_code, recorded.end) {
        (_, End::Lost) => Done::Forwarded(IO_FAILED),
        (Some(code @ 1..), end) if !(end == End::Duration && [SIGNAL + SIGTERM, SIGNAL + SIGKILL].contains(&code)) => {
            Done::Forwarded(code.clamp(1, 255) as u8)
        }
        // Without a duration a signal is how recording a process ends; with one it comes too soon.
        (None, End::Signal(signal)) if args.duration.is_some() => Done::Interrupted(signal),
        _ if !recorded.is_saved => Done::Forwarded(IO_FAILED),
        _ if has_lost(recorded) && !args.ignore_loss => Done::DataLost,
        _ => Done::Fine,
    }
}

/// Begins the names of points in a joined recording.
fn host_name(text: &str) -> Result<String, String> {
    let is_fine = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    let is_name = (1..=64).contains(&text.len()) && text.chars().all(is_fine);
    is_name.then(|| text.to_owned()).ok_or_else(|| "takes up to 64 letters, digits, -, _ and .".to_owned())
}

fn options(args: &Args) -> Result<Options> {
    let target = match (args.pid, args.command.is_empty()) {
        _ if args.system => Target::System,
        (Some(pid), true) => Target::Pid(pid),
        (None, false) if args.wakeup => Target::Command(wakeup::beside(&args.command)?),
        (None, false) => Target::Command(args.command.clone()),
        _ => bail!("nothing to record: add `-- COMMAND …`, `--pid PID` or `--system`"),
    };
    let depth = match args.depth.as_str() {
        "sched" => Depth::Sched,
        "syscalls" => Depth::Syscalls,
        "all" => Depth::All,
        _ => Depth::Irq,
    };
    Ok(Options {
        output: args.output.clone(),
        target,
        duration: args.duration,
        from_first_stamp: args.first_stamp_within.map(|within| FirstStamp { within, except: &taut_wakeup::POINTS }),
        tier: args.tier.as_deref().and_then(Tier::from_word),
        kernel_source: args.kernel_source.clone(),
        depth,
        profile: args
            .profile
            .map(|hz| Profiling { hz, scope: if args.profile_system { Scope::System } else { Scope::Tree } }),
        ring_records: args.ring_records,
        durable: args.durable,
        compression: if args.compression == "none" { Compression::None } else { Compression::Zstd },
        session: args.session.clone(),
        preload: (args.pid.is_some() || ros2(args).is_some()).then_some(ros2::LIBRARY),
        taut_version: env!("CARGO_PKG_VERSION").to_owned(),
        host_name: args.host_name.clone(),
        flight: None,
    })
}

/// The ROS 2 environment that a command is recorded in.
fn ros2(args: &Args) -> Option<String> {
    let is_wanted = !args.no_ros2 && !args.command.is_empty();
    is_wanted.then(|| ros2::environment(&args.command, |name| std::env::var_os(name))).flatten()
}

fn subject(args: &Args) -> String {
    match args.command.first() {
        Some(command) => format!("cannot record {}", command.to_string_lossy()),
        None if args.system => "cannot record the machine".to_owned(),
        None => format!("cannot record process {}", args.pid.unwrap_or_default()),
    }
}

fn summary(args: &Args, recorded: &Recorded, watch: Option<&flight::Watch>) -> String {
    let ending = &recorded.ending;
    let telemetry = match ending.telemetry {
        0 => String::new(),
        n => format!(", {} telemetry messages", words::count(n)),
    };
    let ros = match ending.ros_events {
        0 => String::new(),
        n => format!(", {} ROS 2 events", words::count(n)),
    };
    let samples =
        args.profile.map_or(String::new(), |_| format!(", {} of stacks", words::quantity(ending.samples, "sample")));
    let output = words::shell(&[args.output.shown()]);
    let (file, next) = match (watch, args.metrics.no_file) {
        (Some(watch), _) => watch.summary(),
        (None, true) => ("no file kept".to_owned(), String::new()),
        (None, false) => (args.output.shown(), next(ending, &output)),
    };
    let profiled = args.profile.filter(|_| watch.is_none());
    let flame = profiled.map_or(String::new(), |_| format!(" · taut flamegraph {output} -o flame.svg"));
    let mut lost = Losses::of_ending(ending, &recorded.estimated).to_string();
    if recorded.damaged > 0 {
        lost += &format!(", {}", flight::damage(recorded.damaged));
    }
    // Of a flight recorder it is a length that memory never had.
    let size = watch.map_or_else(|| format!(", {}", words::bytes(recorded.file_bytes)), |_| String::new());
    format!(
        "taut: {file}: {} stamps{ros}{telemetry}, {} kernel events{samples}{lost}{size}{next}{flame}",
        words::count(ending.stamps),
        words::count(ending.kernel_events),
    )
}

/// What a recording is good for.
fn next(ending: &Ending, output: &str) -> String {
    match (ending.stamps + ending.ros_events, ending.kernel_events) {
        (0, 0) => "\ntaut: no stamps were recorded, so there is nothing to report".to_owned(),
        _ => format!("\ntaut: next: taut report {output}"),
    }
}

fn ring_records(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(n) if n.is_power_of_two() && (64..=1 << 24).contains(&n) => Ok(n),
        _ => Err("give a power of two from 64 to 16777216".into()),
    }
}
