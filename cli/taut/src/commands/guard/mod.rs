//! `taut guard`: the speed guard, away from the robot.

mod replay;

use anyhow::Result;

use crate::exit::Done;

/// Test the speed guard on a recorded stream.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut guard replay run.mcap --tcp-limit 1000 --tune > guard.toml\n  taut guard replay run.mcap --guard guard.toml"
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Replay(replay::Args),
}

/// Does what was asked.
pub fn run(args: &Args) -> Result<Done> {
    match &args.what {
        What::Replay(args) => replay::run(args),
    }
}
