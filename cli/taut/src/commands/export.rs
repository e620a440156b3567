//! `taut export`: a recording in the forms of other people's tools. Each form is one subcommand and one file of
//! `taut_report::export`.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::Subcommand;
use memmap2::Mmap;
use taut_analysis::{Analysis, Analyzer, Config};
use taut_recording::{Contents, Record, Thread};
use taut_report::{
    export::{self, Perfetto},
    words,
};

use crate::{config, exit::Done, input, output};

/// Write a recording in the form of another tool.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut export perfetto run.mcap -o run.pftrace   # open it at ui.perfetto.dev\n  taut export csv run.mcap -o run.csv"
)]
pub struct Args {
    #[command(subcommand)]
    form: Form,
}

#[derive(Subcommand)]
enum Form {
    /// Perfetto's native trace: threads' states, hops as slices joined by arrows, their time by cause.
    Perfetto(FileArgs),
    /// A row for each hop of each message, with its time by cause.
    Csv(FileArgs),
}

/// One recording in, one file out.
#[derive(clap::Args)]
struct FileArgs {
    /// A recording.
    #[arg(value_name = "RUN")]
    recording: PathBuf,
    /// The file to write [default: RUN with the form's ending].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Declared chains and deadlines; ./taut.toml is used when it exists.
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
}

/// Reads, analyses, writes.
pub fn run(args: &Args) -> Result<Done> {
    match &args.form {
        Form::Perfetto(file) => export(file, "pftrace", |out, from| {
            let mut trace = Perfetto::start(out, &from.contents.info, &from.threads)?;
            let mut failed = Ok(());
            taut_recording::read(&from.bytes, &mut |record| {
                if failed.is_ok() {
                    failed = trace.record(&record);
                }
            })?;
            failed?;
            Ok(trace.chains(&from.analysis)?)
        }),
        Form::Csv(file) => export(file, "csv", |out, from| Ok(export::csv(out, &from.analysis)?)),
    }
}

/// What there is to export.
struct Source {
    bytes: Mmap,
    contents: Contents,
    analysis: Analysis,
    /// As each was known last.
    threads: BTreeMap<i32, Thread>,
}

fn export(args: &FileArgs, ending: &str, write: impl FnOnce(&mut dyn Write, &Source) -> Result<()>) -> Result<Done> {
    let subject = || args.recording.display().to_string();
    let mut config = config::load(args.config.as_deref())?;
    // Every message with its path, in order of time.
    (config.explain.worst, config.explain.from_ns) = (0, Some(0));
    let from = read(&args.recording, config).with_context(subject)?;
    let to = args.output.clone().unwrap_or_else(|| args.recording.with_extension(ending));
    output::file(&to, |out| write(out, &from))?;
    let totals = &from.analysis.totals;
    let messages: u64 = from.analysis.chains.iter().map(|chain| chain.messages).sum();
    let shown: usize = from.analysis.chains.iter().map(|chain| chain.explained.paths.len()).sum();
    let mut lost = String::new();
    for (n, what) in [(totals.lost_stamps, "stamps"), (totals.lost_kernel_events, "kernel events")] {
        if n > 0 {
            lost += &format!(", {} {what} LOST", words::count(n));
        }
    }
    eprintln!(
        "wrote {}: {} of {}{lost}; the others did not go all the way, or came while the chain started up",
        to.display(),
        words::count(shown as u64),
        words::quantity(messages, "message"),
    );
    from.analysis.damage.iter().for_each(|damage| eprintln!("taut: warning: {damage}"));
    Ok(if from.analysis.damage.is_empty() { Done::Fine } else { Done::DataLost })
}

fn read(path: &Path, config: Config) -> Result<Source> {
    let bytes = input::map(path)?;
    let (mut analyzer, mut threads) = (Analyzer::new(config), BTreeMap::new());
    let contents = taut_recording::read(&bytes, &mut |record| {
        if let Record::Thread(thread) = &record {
            threads.insert(thread.tid, thread.clone());
        }
        analyzer.record(&record);
    })?;
    let damage = contents.damage.iter().map(ToString::to_string).collect();
    let analysis = analyzer.finish(contents.info.clone(), contents.ending.clone(), damage, bytes.len() as u64)?;
    Ok(Source { bytes, contents, analysis, threads })
}
