//! `taut explain`: whose time it was, message by message.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;
use taut_analysis::Wanted;
use taut_report::Named;

use super::report::analyse;
use crate::{config, exit::Done, output};

/// Say whose time it was: causes of the tail, verdicts on suspects, what-ifs, and the worst messages' paths.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut explain run.mcap\n  taut explain run.mcap --message 1734\n  taut explain run.mcap --suspect lock:sdk_lock --suspect gil\n  taut explain run.mcap --all --format json -o run.json"
)]
pub struct Args {
    /// A recording made by `taut record`.
    #[arg(value_name = "RUN")]
    recording: PathBuf,
    /// How many of the worst messages to show.
    #[arg(long, value_name = "N", default_value_t = 10)]
    worst: usize,
    /// Show this message on its thread lanes; may be given again.
    #[arg(long, value_name = "ID")]
    message: Vec<u64>,
    /// Judge a suspect: a cause (gil, irq, …), lock:NAME, hop:NAME, process:NAME, thread:NAME; may be given again.
    #[arg(long, value_name = "SUSPECT")]
    suspect: Vec<String>,
    /// With --format json: every message's budget.
    #[arg(long)]
    all: bool,
    /// Form of the result.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// File to write instead of stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Declared chains and deadlines; ./taut.toml is used when it exists.
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables that fit 100 columns.
    Terminal,
    /// For scripts; the schema is versioned and documented.
    Json,
}

/// Reads, analyses, prints.
pub fn run(args: &Args) -> Result<Done> {
    let mut config = config::load(args.config.as_deref())?;
    config.explain = Wanted {
        // The messages asked for stand for themselves.
        worst: if args.message.is_empty() { args.worst } else { 0 },
        messages: args.message.clone(),
        suspects: args.suspect.clone(),
        budgets: args.all,
    };
    let name = args.recording.display().to_string();
    let analysis = analyse(&args.recording, &config).with_context(|| name.clone())?;
    let named = Named { name: &name, analysis: &analysis };
    let text = match args.format {
        Format::Json => format!("{:#}\n", taut_report::json(&[named])),
        Format::Terminal => taut_report::explanation(named, output::style(args.output.as_deref())),
    };
    output::write(&text, args.output.as_deref())?;
    if let Some(path) = &args.output {
        eprintln!("wrote {}", path.display());
    }
    Ok(if analysis.damage.is_empty() { Done::Fine } else { Done::DataLost })
}
