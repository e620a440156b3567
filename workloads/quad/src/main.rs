//! The quadruped workload: simulates the robot, and runs its host over it in real or in virtual time.
//! `python -m workloads.quad` becomes this program, and says where MuJoCo is.

mod body;
mod clock;
mod failure;
mod fall;
mod gait;
mod host;
mod joints;
mod leg;
mod live;
mod page;
mod realtime;
mod rehearse;
mod told;
mod world;

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use rustix::process::{Signal, set_parent_process_death_signal};
use taut_bus::{cycle::Engine, sim::Wiring};

use body::Body;
use clock::Simulated;
use failure::{Failure, Name};
use host::{Gait, Host, Wishes, patience};
use live::Live;
use page::{Inertial, Mailbox, Mapped};
use told::Run;
use world::World;

/// A quadruped over servo buses stands up and trots in place.
///
/// Exit codes: 0 the robot stood, and after a failure that was asked for all went as it must; 1 it did not; 2 it did not start;
/// 4 the machine held the simulator up for too long, so that the run is no evidence.
#[derive(Parser)]
#[command(bin_name = "python -m workloads.quad", args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    program: Option<Program>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Subcommand)]
enum Program {
    /// The robot's controller, as the simulator starts it
    #[command(hide = true)]
    Host(HostArgs),
}

#[derive(clap::Args)]
struct RunArgs {
    #[command(flatten)]
    wishes: WishArgs,
    /// What goes wrong
    #[arg(long, value_enum, default_value_t)]
    failure: Name,
    /// When [default: half of the duration]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    at: Option<f64>,
    /// Which servo or bus it hits
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// In virtual time: the same run each time
    #[arg(long = "virtual")]
    is_virtual: bool,
    #[command(flatten)]
    place: PlaceArgs,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    /// MuJoCo's library
    #[arg(long, value_name = "FILE", hide = true)]
    mujoco: Option<PathBuf>,
}

#[derive(clap::Args)]
struct WishArgs {
    /// How long to run
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = seconds)]
    duration: f64,
    /// Cycles a second of the host
    #[arg(long, value_name = "HZ", default_value_t = 400.0, value_parser = hertz)]
    rate: f64,
    /// What it does once it stands
    #[arg(long, value_enum, default_value_t = Gait::Trot)]
    gait: Gait,
    /// Stop servos that an earlier host left in another mode
    #[arg(long)]
    clear: bool,
}

#[derive(clap::Args)]
struct PlaceArgs {
    /// The host reads the clock for so long before waits
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = spin)]
    spin: Duration,
    /// The host's CPU
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
}

#[derive(clap::Args)]
struct HostArgs {
    /// The memory that the simulator shares
    #[arg(long)]
    page: PathBuf,
    /// The simulator's process
    #[arg(long)]
    robot: u32,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    wishes: WishArgs,
}

impl WishArgs {
    fn wishes(&self) -> Wishes {
        Wishes { rate_hz: self.rate, duration_s: self.duration, gait: self.gait, clear: self.clear }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let within = |time: &Duration| !time.is_zero() && *time <= Duration::from_secs(3600);
    let time = taut_wakeup::duration(text).filter(within);
    time.map(|time| time.as_secs_f64()).ok_or_else(|| "give a time up to 1h, such as 30, 30s, 250ms or 10m".to_owned())
}

fn spin(text: &str) -> Result<Duration, String> {
    let time = taut_wakeup::duration(text).filter(|time| *time <= Duration::from_secs(1));
    time.ok_or_else(|| "give a time up to 1s, such as 0 or 150us".to_owned())
}

fn hertz(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (10.0..=2000.0).contains(&value) => Ok(value),
        _ => Err("not within 10 to 2000 cycles a second".to_owned()),
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.program {
        Some(Program::Host(host)) => run_host(host),
        None => run(&args.run),
    };
    done.map_or_else(
        |error| {
            eprintln!("quad: {error:#}");
            2.into()
        },
        ExitCode::from,
    )
}

fn run(args: &RunArgs) -> Result<u8> {
    let wishes = args.wishes.wishes();
    let duration_s = wishes.duration_s;
    let at_s = args.at.unwrap_or_else(|| (duration_s / 2.0).max(duration_s.min(3.0)));
    ensure!(args.failure == Name::None || at_s < duration_s, "--at {at_s}: not before the end, {duration_s} s");
    let failure = Failure { name: args.failure, at_ns: (at_s * 1e9) as u64, seed: args.seed };
    let library = args.mujoco.as_ref().context("--mujoco: MuJoCo's library; python -m workloads.quad finds it")?;
    let body = Body::new(library)?;
    let wiring = Wiring { seed: args.seed, ..Wiring::default() };
    let mut world = World::new(joints::buses(&wiring), Some(body), failure);
    let (hosts, lived);
    if args.is_virtual {
        (hosts, world) = rehearse::run(world, &wishes, &failure)?;
        lived = None;
    } else {
        let done = live(args, &failure, &mut world)?;
        if done.interrupted {
            return Ok(130);
        }
        hosts = done.hosts.clone();
        lived = Some(done);
    }
    let gait = format!("{:?}", wishes.gait).to_lowercase();
    let run = Run {
        failure: &failure,
        rate_hz: wishes.rate_hz,
        duration_s,
        gait,
        clear: wishes.clear,
        hosts: &hosts,
        fall: world.fall(),
        height_m: world.height_m(),
        steps: world.steps(),
        live: lived.as_ref(),
    };
    match args.json {
        true => println!("{}", run.json()),
        false => print!("{}", run.text()),
    }
    Ok(match (run.is_valid(), run.reason()) {
        (false, _) => 4,
        (true, Some(_)) => 1,
        (true, None) => 0,
    })
}

fn live(args: &RunArgs, failure: &Failure, world: &mut World) -> Result<live::Lived> {
    rustix::thread::set_name(c"quad-robot")?;
    let mut host: Vec<String> = vec![
        format!("--duration={}", args.wishes.duration),
        format!("--rate={}", args.wishes.rate),
        format!("--gait={}", format!("{:?}", args.wishes.gait).to_lowercase()),
        format!("--spin={}", taut_wakeup::length(args.place.spin)),
    ];
    host.extend(args.wishes.clear.then(|| "--clear".to_owned()));
    host.extend(args.place.cpu.map(|cpu| format!("--cpu={cpu}")));
    let live = Live {
        host: &host,
        acts: failure.host_acts(),
        duration_ns: (args.wishes.duration * 1e9) as u64,
        stop: stopped_by_signals()?,
    };
    live.run(world)
}

fn run_host(args: &HostArgs) -> Result<u8> {
    // No host is left when the simulator is killed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Nor when it was killed before that.
    ensure!(std::os::unix::process::parent_id() == args.robot, "the simulator is gone");
    rustix::thread::set_name(c"quad-host")?;
    let page = Mapped::open(&args.page).with_context(|| args.page.display().to_string())?;
    let wishes = args.wishes.wishes();
    let (buses, times) = Mailbox::all(&page);
    let clock = Simulated::new(page.clone(), args.place.spin);
    let mut engine = Engine::new(buses, clock, patience(&wishes)).with_inertial(Inertial(page));
    let mut host = Host::new(wishes, stopped_by_signals()?)?.with_wires(times);
    let priority = realtime::ask(args.place.cpu, realtime::HOST)?;
    host.run(&mut engine);
    let mut told = told::host(&host);
    told["priority"] = priority.into();
    println!("{told}");
    Ok(host.refused().is_some().into())
}

fn stopped_by_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context("signal handler")?;
    }
    Ok(stop)
}
