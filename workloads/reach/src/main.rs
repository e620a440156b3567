//! The arm of the reaching workload and its controller, each a process of its own. The simulator's node
//! (`python -m workloads.reach.simulator`, or that of ROS 2) starts them. Their links are sockets that they inherit: standard input is the
//! arm's link, standard output that of the node (`packets.rs` has what goes over them).

mod arm;
mod clock;
mod controller;
mod dynamics;
mod follow;
mod link;
mod packets;
mod serve;
mod trajectory;

use std::{
    num::NonZeroU64,
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};
use taut_wakeup::{Policy, Settings, end_with, set_policy};

use clock::Clock;

/// Of the controller, and so of the arm's interface.
pub const PERIOD_NS: u64 = 2_000_000;
/// SCHED_FIFO priorities. The arm stands for a machine of its own, so nothing but the controller may delay it.
const CONTROLLER: u32 = 80;
const ARM: u32 = 70;

#[derive(Parser)]
#[command(about = "Started by python -m workloads.reach")]
struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand)]
enum Part {
    /// The simulated arm behind its controller's interface
    Arm {
        #[command(flatten)]
        common: Common,
        /// Stops after so many periods in succession without a command
        #[arg(long)]
        most_missing: u32,
    },
    /// The joint-trajectory controller
    Controller {
        #[command(flatten)]
        common: Common,
        /// Gives up a trajectory when it is later than that, ns
        #[arg(long)]
        stall_limit: u64,
        /// Runs under SCHED_FIFO
        #[arg(long)]
        fifo: bool,
    },
}

#[derive(clap::Args)]
struct Common {
    /// MuJoCo's library
    #[arg(long)]
    mujoco: PathBuf,
    /// The page of the simulated clock
    #[arg(long)]
    clock: PathBuf,
    /// The process that started this one
    #[arg(long)]
    parent: i32,
}

fn main() -> ExitCode {
    match run(&Args::parse().part) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reach: {error:#}");
            2.into()
        }
    }
}

fn run(part: &Part) -> Result<()> {
    let (Part::Arm { common, .. } | Part::Controller { common, .. }) = part;
    // Nothing is left when the node is gone, however it ended, even before this.
    end_with(common.parent).context("the simulator's node is gone")?;
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGTERM, stop.clone())?;
    // Ctrl-C reaches the whole group; the main process decides what comes of it.
    signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
    let clock = Clock::open(&common.clock, stop)?;
    taut_stamp::prepare_thread();
    // A thread of ordinary priority has its timers joined within 50 µs otherwise.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    match part {
        Part::Arm { common, most_missing } => {
            rustix::thread::set_name(c"arm")?;
            // Where it is refused the machine may hold the arm up: its clock says for how long.
            let _ = fifo(ARM);
            serve::run(&clock, &common.mujoco, *most_missing)
        }
        Part::Controller { common, stall_limit, fifo: is_fifo } => {
            rustix::thread::set_name(c"controller")?;
            if *is_fifo {
                fifo(CONTROLLER).context("--priority fifo")?;
            }
            controller::run(&clock, &common.mujoco, *stall_limit)
        }
    }
}

fn fifo(priority: u32) -> Result<(), taut_wakeup::Error> {
    set_policy(&Settings { policy: Policy::Fifo, priority, ..Settings::default() })
}
