//! `taut fleet`: many robots' results in one folder, and questions about all of them. `add` runs on the robot and needs this program
//! only; the others need Python.

mod add;
mod ask;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Done;

/// Compare many robots: latency by robot, revision, hop, cause and time.
///
/// `add` writes a run's histograms to a folder; the others read the folders of all robots.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut fleet add run.mcap --into fleet --robot arm-7\n  taut fleet report fleet\n  taut fleet compare fleet v1.4 v1.5"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    #[command(
        after_help = "Examples:\n  taut fleet add run.mcap --into fleet --robot arm-7\n  taut fleet add *.mcap --into fleet --robot arm-7 --revision v1.4"
    )]
    Add(add::Args),
    #[command(
        after_help = "Examples:\n  taut fleet report fleet\n  taut fleet report fleet --since 2026-10-01 --format html -o fleet.html"
    )]
    Report(ask::Report),
    #[command(after_help = "Examples:\n  taut fleet worst fleet\n  taut fleet worst fleet --figure p999")]
    Worst(ask::Worst),
    #[command(
        after_help = "Examples:\n  taut fleet compare fleet v1.4 v1.5\n  taut fleet compare fleet arm-7 arm-8 --by robot"
    )]
    Compare(ask::Compare),
    #[command(
        after_help = "Examples:\n  taut fleet merge fleet --into weeks\n  taut fleet merge fleet --into months --by month"
    )]
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
