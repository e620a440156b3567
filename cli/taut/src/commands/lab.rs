//! `taut lab`: repeats a system under test under loads, and finds the load that breaks it.

use std::{
    ffi::OsString,
    io::IsTerminal,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use taut_lab::{Event, Grid, Kind, Lab, Order, Status};
use taut_recording::Shown;
use taut_report::words;

use crate::{
    exit::{self, Done, Interrupted},
    format::{self, Format},
    output, stop,
};

/// Repeat a system under loads, and find the load that breaks it.
///
/// A lab is a TOML file (docs/reference/lab.md) with system, trial and scenarios.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut lab check lab.toml\n  taut lab run lab.toml -o results\n  taut lab break lab.toml -o flood"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Print what would run, and what cannot run here.
    #[command(after_help = "Examples:\n  taut lab check lab.toml\n  taut lab check workloads/reach/scenarios.toml")]
    Check(Check),
    /// Run all scenarios in random order, and compare with the baseline.
    #[command(
        after_help = "Examples:\n  taut lab run lab.toml -o results\n  taut lab run lab.toml -o results --resume --format json"
    )]
    Run(Run),
    /// Run a grid over any keys of a scenario, in random order.
    #[command(
        after_help = "Examples:\n  taut lab sweep lab.toml -o grid\n  taut lab sweep lab.toml -o grid --format csv > grid.csv"
    )]
    Sweep(Run),
    /// Find the load at which the chance of success falls below a limit.
    #[command(
        after_help = "Examples:\n  taut lab break lab.toml -o flood\n  taut lab break lab.toml -o flood --resume"
    )]
    Break(Run),
    /// Pack a run's folder into one file, with SHA-256 sums.
    #[command(after_help = "Examples:\n  taut lab archive results\n  taut lab archive results -o results.tar.zst")]
    Archive(Archive),
    /// Cleans up after a lab that was killed; waits for the end of stdin.
    #[command(name = "keeper", hide = true)]
    Keeper {
        /// The lab's mark.
        mark: String,
    },
    /// One load until killed.
    #[command(name = "load-worker", hide = true)]
    Worker {
        /// The process that it ends with.
        of: i32,
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
struct Archive {
    /// The folder of a run.
    #[arg(value_parser = crate::folder::named())]
    folder: PathBuf,
    /// File to write [default: the folder's name with .tar.zst].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(clap::Args)]
struct Run {
    /// The lab.
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Folder for manifest and logs [default: FILE with .run, .sweep or .break].
    #[arg(short, long, value_name = "FOLDER", value_parser = crate::folder::named())]
    output: Option<PathBuf>,
    /// Continue the run in that folder, or show a complete one.
    #[arg(long)]
    resume: bool,
    /// The only round to run, as a driver on another host asks for.
    #[arg(long, hide = true)]
    round: Option<u32>,
    /// Form of the result.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Json, Format::Html, Format::Csv]))]
    format: Format,
    /// No progress.
    #[arg(short, long)]
    quiet: bool,
}

/// Checks, runs or breaks; prints.
pub fn run(args: &Args) -> Result<Done> {
    match &args.verb {
        Verb::Check(args) => check(args),
        Verb::Run(args) => repeat(args, Kind::Run),
        Verb::Sweep(args) => repeat(args, Kind::Sweep),
        Verb::Archive(args) => archive(args),
        Verb::Break(args) => break_it(args),
        Verb::Keeper { mark } => {
            let left = taut_lab::keep(mark)?;
            if !left.is_empty() {
                say!("the lab was killed; removed what it had left: {}", left.join(", "));
            }
            Ok(Done::Fine)
        }
        Verb::Worker { of, load, count } => {
            let load = serde_json::from_str(load).context("load")?;
            taut_lab::worker::go(&load, count, *of).context("load")?;
            Ok(Done::Fine)
        }
    }
}

fn check(args: &Check) -> Result<Done> {
    let (lab, _) = read(&args.file)?;
    let feasible = taut_lab::feasible(&lab);
    let document = taut_report::lab_check(&args.file.shown(), &lab, &feasible);
    output::write(&output::rendered(&document, Format::Terminal, None), None)?;
    Ok(if feasible.obstacles.is_empty() { Done::Fine } else { Done::Forwarded(exit::BAD_INPUT) })
}

fn repeat(args: &Run, kind: Kind) -> Result<Done> {
    not_on_a_terminal(args)?;
    let (lab, text) = read(&args.file)?;
    let grid = (kind == Kind::Sweep).then(|| grid(&lab, &args.file)).transpose()?;
    let lab = grid.as_ref().map_or(&lab, |grid| &grid.lab);
    let folder = folder(args, if kind == Kind::Sweep { "sweep" } else { "run" });
    let ran = with_order(args, lab, &text, &folder, |order, tell| {
        // A driver's word comes before the file's: on a host its rounds are run there.
        match args.round.is_none() && lab.has_other_hosts() {
            true => taut_lab::run_on_hosts(order, kind, &std::env::current_exe().unwrap_or_default(), tell),
            false => taut_lab::run(order, kind, tell),
        }
    })?;
    let results = taut_lab::results(lab, &ran.trials, &ran.confinement);
    let verb = if grid.is_some() { "sweep" } else { "run" };
    let shown = taut_report::LabShown { verb, file: &args.file, folder: &folder, title: &lab.title, seed: lab.seed };
    let json = || match &grid {
        Some(grid) => taut_report::lab_sweep_json(&shown, &results, grid),
        None => taut_report::lab_json(&shown, &results),
    };
    written(args, &|format| match format {
        Format::Json => format!("{:#}\n", json()),
        Format::Csv => taut_report::lab_csv(&ran.trials),
        form => output::interactive(&taut_report::lab_document(&shown, &results, &ran.trials), form, None),
    })
}

fn grid(lab: &Lab, file: &Path) -> Result<Grid, taut_lab::Error> {
    taut_lab::grid(lab).map_err(|(place, problem)| taut_lab::Error::File { file: file.to_owned(), place, problem })
}

fn archive(args: &Archive) -> Result<Done> {
    let named = || {
        let name = args.folder.canonicalize().unwrap_or_else(|_| args.folder.clone());
        let name = name.file_name().unwrap_or("run".as_ref()).to_string_lossy().into_owned();
        PathBuf::from(format!("{name}.tar.zst"))
    };
    let output = args.output.clone().unwrap_or_else(named);
    let packed = taut_lab::archive(&args.folder, &output)?;
    let (files, bytes) = (words::count(packed.files as u64), words::bytes(packed.bytes));
    say!("{}: {files} files, {bytes}, as {}", output.shown(), words::bytes(packed.packed_bytes));
    Ok(Done::Fine)
}

fn break_it(args: &Run) -> Result<Done> {
    not_on_a_terminal(args)?;
    if args.format == Format::Csv {
        bail!("--format csv is of the trials of a run or sweep; a search has terminal, json and html");
    }
    let (lab, text) = read(&args.file)?;
    let folder = folder(args, "break");
    let broken = with_order(args, &lab, &text, &folder, taut_lab::break_it)?;
    let verb = "break";
    let shown = taut_report::LabShown { verb, file: &args.file, folder: &folder, title: &lab.title, seed: lab.seed };
    let json = || taut_report::lab_break_json(&shown, &broken);
    written(args, &|format| match format {
        Format::Json => format!("{:#}\n", json()),
        form => output::interactive(&taut_report::lab_break_document(&shown, &broken), form, None),
    })
}

/// Said before the trials, not after them.
fn not_on_a_terminal(args: &Run) -> Result<()> {
    args.format.check_place(None, "> lab.html")
}

fn written(args: &Run, render: &dyn Fn(Format) -> String) -> Result<Done> {
    output::write(&render(args.format), None)?;
    Ok(Done::Fine)
}

fn read(file: &Path) -> Result<(Lab, String)> {
    let text = std::fs::read_to_string(file).with_context(|| file.shown())?;
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
    let stop = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    let taut = std::env::current_exe()?;
    let own = std::process::id().to_string();
    let worker: Vec<OsString> = vec![taut.clone().into(), "lab".into(), "load-worker".into(), own.into()];
    let keeper: Vec<OsString> = vec![taut.clone().into(), "lab".into(), "keeper".into()];
    let recorder: Vec<OsString> = vec![taut.into(), "record".into(), "--ignore-loss".into()];
    let file = (args.file.as_path(), text);
    let order = Order {
        lab,
        file,
        folder,
        round: args.round,
        resume: args.resume,
        worker: &worker,
        keeper: &keeper,
        recorder: &recorder,
        stop: &stop.flag,
    };
    let bar = bar(args);
    let done = work(&order, &mut |event| match event {
        Event::Removed(what) => say!("removed what a lab that died had left: {what}"),
        Event::HostLost(host, round, why) => {
            bar.suspend(|| say!("host {host} is lost ({why}); its round {round} is run elsewhere"));
        }
        Event::HostLeft(host, what) => bar.suspend(|| say!("host {host}: {what}")),
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
                        say!("trial {n} ({}{varied}) {}: {reason}", trial.id.scenario, trial.status.word());
                    }
                });
            }
        }
    });
    bar.finish_and_clear();
    if !args.quiet && done.is_ok() {
        say!("every trial is in {}", folder.join(taut_lab::MANIFEST).shown());
    }
    match (done, stop.signal()) {
        (Err(stopped @ taut_lab::Error::Stopped { .. }), Some(signal)) => {
            bail!(Interrupted { signal, without: stopped.to_string() })
        }
        (done, _) => Ok(done?),
    }
}

fn bar(args: &Run) -> ProgressBar {
    if args.quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} trials, {eta} left  {msg}");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
