//! The quadruped workload's programs: its host, its servos, and both in virtual time. `python -m workloads.quad` starts them
//! around its physics.

mod gait;
mod host;
mod inertial;
mod joints;
mod leg;
mod servos;
mod told;
mod world;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use rustix::process::{Signal, set_parent_process_death_signal};
use taut_bus::{
    cycle::{Engine, Monotonic, Patience, RealTime, Virtual},
    sim::Wiring,
    transport::Udp,
};

use host::{Gait, Host, Wishes};
use inertial::Felt;
use joints::LEGS;
use world::{Link, Shared, World};

/// The quadruped's programs.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    program: Program,
}

#[derive(Subcommand)]
enum Program {
    /// The robot's controller over four buses, in real time.
    Host(HostArgs),
    /// Four buses with three servos each behind UDP, in real time.
    Servos {
        /// Where the physics listens.
        #[arg(long)]
        physics: PathBuf,
        /// SCHED_FIFO priority.
        #[arg(long)]
        priority: Option<u32>,
        /// Makes the lost replies repeat.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Host, buses and servos in virtual time: the same run each time.
    Rehearse {
        /// Where the physics listens.
        #[arg(long)]
        physics: PathBuf,
        /// The host is gone from then on, s.
        #[arg(long)]
        host_ends: Option<f64>,
        /// Makes the lost replies repeat.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        wishes: WishArgs,
    },
}

#[derive(clap::Args)]
struct WishArgs {
    /// Cycles a second.
    #[arg(long, default_value_t = 400.0)]
    rate: f64,
    /// Seconds.
    #[arg(long)]
    duration: f64,
    /// What to do once it stands.
    #[arg(long, value_enum, default_value_t = Gait::Trot)]
    gait: Gait,
    /// Stop servos that an earlier run left in another mode, instead of refusing to start.
    #[arg(long)]
    clear: bool,
}

#[derive(clap::Args)]
struct HostArgs {
    /// Where a bus is, HOST:PORT; once for each of the four.
    #[arg(long = "bus", value_name = "HOST:PORT")]
    buses: Vec<String>,
    /// Where to listen for the inertial unit.
    #[arg(long)]
    inertial: PathBuf,
    /// SCHED_FIFO priority; memory is then locked, too.
    #[arg(long)]
    priority: Option<u32>,
    /// The host's CPU.
    #[arg(long)]
    cpu: Option<u32>,
    /// Read the clock for so long before anything is due, µs.
    #[arg(long, default_value_t = 0)]
    spin_us: u64,
    #[command(flatten)]
    wishes: WishArgs,
}

impl WishArgs {
    fn checked(&self) -> Result<Wishes> {
        ensure!((10.0..=2000.0).contains(&self.rate), "--rate {}: from 10 to 2000 cycles a second", self.rate);
        ensure!((0.0..=3600.0).contains(&self.duration), "--duration {}: at most 3600 s", self.duration);
        Ok(Wishes { rate_hz: self.rate, duration_s: self.duration, gait: self.gait, clear: self.clear })
    }
}

fn main() -> std::process::ExitCode {
    match run(&Args::parse().program) {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("taut-quad: {error:#}");
            2.into()
        }
    }
}

fn run(program: &Program) -> Result<u8> {
    // Nobody is left behind when the workload is killed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match program {
        Program::Host(args) => host(args),
        Program::Servos { physics, priority, seed } => {
            let link = Link::connect(physics, false).context("--physics")?;
            RealTime { priority: *priority, ..RealTime::default() }.enter()?;
            let exchanges = servos::serve(link, &Wiring { seed: *seed, ..Wiring::default() })?;
            print!("{}", told::servos(exchanges));
            Ok(0)
        }
        Program::Rehearse { physics, host_ends, seed, wishes } => {
            let link = Link::connect(physics, true).context("--physics")?;
            rehearse(link, *host_ends, &Wiring { seed: *seed, ..Wiring::default() }, wishes.checked()?)
        }
    }
}

fn host(args: &HostArgs) -> Result<u8> {
    ensure!(args.buses.len() == LEGS, "--bus: {LEGS} are needed, {} are given", args.buses.len());
    let buses = args.buses.iter().map(|bus| Udp::connect(bus)).collect::<Result<Vec<_>, _>>()?;
    let inertial = Felt::at(&args.inertial).with_context(|| args.inertial.display().to_string())?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context("signal handler")?;
    }
    let wishes = args.wishes.checked()?;
    let clock = Monotonic::new(Duration::from_micros(args.spin_us));
    let mut engine = Engine::new(buses, clock, patience(&wishes)).with_inertial(inertial);
    let mut host = Host::new(wishes, stop)?;
    RealTime { cpu: args.cpu, priority: args.priority, lock_memory: args.priority.is_some() }.enter()?;
    host.run(&mut engine);
    Ok(ended(&host))
}

fn rehearse(link: Link, host_ends: Option<f64>, wiring: &Wiring, wishes: Wishes) -> Result<u8> {
    let end_ns = (wishes.duration_s * 1e9) as u64;
    let wishes = Wishes { duration_s: host_ends.unwrap_or(wishes.duration_s), ..wishes };
    let world = Shared::new(World::new(joints::buses(wiring), Some(link), 0));
    let mut engine = Engine::new(world.wires(), Virtual::default(), patience(&wishes)).with_inertial(world.clone());
    let mut host = Host::new(wishes, Arc::new(AtomicBool::new(false)))?;
    host.run(&mut engine);
    world.lock().advance(end_ns);
    world.lock().is_over().context("the physics")?;
    Ok(ended(&host))
}

/// Replies may take a millisecond, and no longer than leaves the next cycle alone.
fn patience(wishes: &Wishes) -> Patience {
    let period_ns = (1e9 / wishes.rate_hz) as u64;
    Patience { min_wait_ns: 0, deadline_ns: period_ns.saturating_sub(200_000).clamp(100_000, 1_000_000) }
}

fn ended(host: &Host) -> u8 {
    print!("{}", told::host(host));
    match host.refused() {
        Some(why) => {
            eprintln!("taut-quad: {why}");
            1
        }
        None => 0,
    }
}
