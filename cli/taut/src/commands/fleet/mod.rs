//! `taut fleet`: many robots' results in one folder, and questions about all of them. `add` runs on the robot and needs nothing but this
//! program; who asks needs Python.

mod add;
mod ask;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Done;

/// Compare many robots: latency by robot, revision, hop, cause and time.
///
/// `add` writes a run's histograms into a folder; the others ask the folders of all robots, brought together.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut fleet add run.mcap --into fleet --robot arm-7\n  taut fleet report fleet\n  taut fleet worst fleet --figure p999\n  taut fleet compare fleet v1.4 v1.5 --format html -o compare.html\n  taut fleet merge fleet --into weeks"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Add(add::Args),
    Report(ask::Report),
    Worst(ask::Worst),
    Compare(ask::Compare),
    Merge(ask::Merge),
}

/// Does one of them.
pub fn run(args: &Args) -> Result<Done> {
    match &args.verb {
        Verb::Add(args) => add::run(args),
        Verb::Report(args) => ask::report(args),
        Verb::Worst(args) => ask::worst(args),
        Verb::Compare(args) => ask::compare(args),
        Verb::Merge(args) => ask::merge(args),
    }
}
