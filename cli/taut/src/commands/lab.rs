//! `taut lab`: repeats a system under test under loads, and finds the load that breaks it.

use std::{
    ffi::OsString,
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::{Context, Result};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use taut_lab::{Event, Lab, Order, Status};

use crate::{
    exit::{self, Done},
    output,
};

/// Repeat a system under test under loads, and find the load that breaks it.
///
/// A lab is a TOML file (docs/lab.md): the system, the trial, the scenarios. Every trial is written down as it ends;
/// every load proves that it was there, every thread that it stayed on its CPUs.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut lab check lab.toml\n  taut lab run lab.toml -o results\n  taut lab run lab.toml -o results --resume\n  taut lab run lab.toml -o results --resume --format json\n  taut lab break lab.toml -o flood"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Say what would be done, and what cannot be done here; starts nothing.
    Check(Check),
    /// Run the trials of all scenarios in random order, and compare the scenarios with the baseline.
    Run(Run),
    /// Find the load at which success falls below a chance.
    Break(Run),
    /// One load until killed.
    #[command(name = "load-worker", hide = true)]
    Worker {
        /// The load as JSON.
        load: String,
        /// The file for its count.
        count: PathBuf,
    },
}

#[derive(clap::Args)]
struct Check {
    /// The lab.
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
}

#[derive(clap::Args)]
struct Run {
    /// The lab.
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// The folder for the manifest and the logs [default: the file's name with .run or .break].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Go on with the run in that folder at the trial that was cut; of a whole run, show the figures again.
    #[arg(long)]
    resume: bool,
    /// Form of the result.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// No progress.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables that fit 100 columns.
    Terminal,
    /// For scripts; the schema is versioned and documented.
    Json,
}

/// Checks, runs or breaks; prints.
pub fn run(args: &Args) -> Result<Done> {
    match &args.verb {
        Verb::Check(args) => check(args),
        Verb::Run(args) => repeat(args),
        Verb::Break(args) => break_it(args),
        Verb::Worker { load, count } => {
            let load = serde_json::from_str(load).context("load")?;
            taut_lab::worker::go(&load, count).context("load")?;
            Ok(Done::Fine)
        }
    }
}

fn check(args: &Check) -> Result<Done> {
    let (lab, _) = read(&args.file)?;
    let feasible = taut_lab::feasible(&lab);
    let shown = taut_report::lab_check(&args.file.display().to_string(), &lab, &feasible, output::style(None));
    output::write(&shown, None)?;
    Ok(if feasible.obstacles.is_empty() { Done::Fine } else { Done::Forwarded(exit::BAD_INPUT) })
}

fn repeat(args: &Run) -> Result<Done> {
    let (lab, text) = read(&args.file)?;
    let folder = folder(args, "run");
    let ran = with_order(args, &lab, &text, &folder, taut_lab::run)?;
    let results = taut_lab::results(&lab, &ran.trials, &ran.confinement);
    let shown = taut_report::LabShown { file: &args.file, folder: &folder, title: &lab.title, seed: lab.seed };
    written(
        args,
        || taut_report::lab_json(&shown, &results),
        || taut_report::lab_terminal(&shown, &results, output::style(None)),
    )
}

fn break_it(args: &Run) -> Result<Done> {
    let (lab, text) = read(&args.file)?;
    let folder = folder(args, "break");
    let broken = with_order(args, &lab, &text, &folder, taut_lab::break_it)?;
    let shown = taut_report::LabShown { file: &args.file, folder: &folder, title: &lab.title, seed: lab.seed };
    written(
        args,
        || taut_report::lab_break_json(&shown, &broken),
        || taut_report::lab_break_terminal(&shown, &broken, output::style(None)),
    )
}

fn written(args: &Run, json: impl Fn() -> serde_json::Value, terminal: impl Fn() -> String) -> Result<Done> {
    let text = match args.format {
        Format::Json => format!("{:#}\n", json()),
        Format::Terminal => terminal(),
    };
    output::write(&text, None)?;
    Ok(Done::Fine)
}

fn read(file: &Path) -> Result<(Lab, String)> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    Ok((Lab::parse(&text, file)?, text))
}

fn folder(args: &Run, kind: &str) -> PathBuf {
    let named = || PathBuf::from(args.file.file_stem().unwrap_or_default()).with_extension(kind);
    args.output.clone().unwrap_or_else(named)
}

/// Does it with progress on stderr, until it ends or a signal asks for the end.
fn with_order<T>(
    args: &Run,
    lab: &Lab,
    text: &str,
    folder: &Path,
    work: impl FnOnce(&Order<'_>, &mut dyn FnMut(Event<'_>)) -> Result<T, taut_lab::Error>,
) -> Result<T> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("signals")?;
    }
    let worker: Vec<OsString> = vec![std::env::current_exe()?.into(), "lab".into(), "load-worker".into()];
    let order = Order { lab, file: (&args.file, text), folder, resume: args.resume, worker: &worker, stop: &stop };
    let bar = bar(args);
    let done = work(&order, &mut |event| match event {
        Event::Removed(what) => eprintln!("removed what a lab that died had left: {what}"),
        Event::Trial(trial, n, total) => {
            if let Some(total) = total {
                bar.set_length(total as u64);
            }
            bar.set_position(n as u64);
            let varied =
                trial.id.varied.map_or(String::new(), |value| format!(" at {}", (value * 1000.0).round() / 1000.0));
            bar.set_message(format!("{}{varied}: {}", trial.id.scenario, trial.status.word()));
            if trial.status != Status::Success {
                let reason = trial.reason.as_deref().unwrap_or_default();
                bar.suspend(|| {
                    if !args.quiet {
                        eprintln!("trial {n} ({}{varied}) {}: {reason}", trial.id.scenario, trial.status.word());
                    }
                });
            }
        }
    });
    bar.finish_and_clear();
    if !args.quiet && done.is_ok() {
        eprintln!("every trial is in {}", folder.join(taut_lab::MANIFEST).display());
    }
    Ok(done?)
}

fn bar(args: &Run) -> ProgressBar {
    if args.quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} trials, {eta} left  {msg}");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
