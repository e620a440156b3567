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
use taut_analysis::{Analysis, Analyzer, Config, Row};
use taut_recording::{Contents, Record, Thread};
use taut_report::{
    export::{self, Perfetto},
    words,
};
use taut_tables::{ROWS_A_GROUP, Tables};

use crate::{config, exit::Done, input, output};

/// Write a recording in the form of another tool.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut export perfetto run.mcap -o run.pftrace   # open it at ui.perfetto.dev\n  taut export parquet run.mcap -o tables\n  taut export csv run.mcap -o run.csv"
)]
pub struct Args {
    #[command(subcommand)]
    form: Form,
}

#[derive(Subcommand)]
enum Form {
    /// Perfetto's native trace: threads' states, hops as slices joined by arrows, their time by cause.
    Perfetto(FileArgs),
    /// Tables of all messages, hops, causes and thread states: a folder of Parquet files.
    Parquet(FileArgs),
    /// A row for each hop of each message, with its time by cause.
    Csv(FileArgs),
}

/// One recording in, one file out; or one folder.
#[derive(clap::Args)]
struct FileArgs {
    /// A recording.
    #[arg(value_name = "RUN")]
    recording: PathBuf,
    /// The file to write, of Parquet the folder [default: RUN with the form's ending].
    #[arg(short, long, value_name = "PATH")]
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
        Form::Parquet(folder) => parquet(folder),
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
    let to = args.to(ending);
    output::file(&to, |out| write(out, &from))?;
    let messages: u64 = from.analysis.chains.iter().map(|chain| chain.messages).sum();
    let shown: usize = from.analysis.chains.iter().map(|chain| chain.explained.paths.len()).sum();
    eprintln!(
        "wrote {}: {} of {}{}; the others did not go all the way, or came while the chain started up",
        to.display(),
        words::count(shown as u64),
        words::quantity(messages, "message"),
        lost(&from.analysis),
    );
    Ok(done(&from.analysis))
}

/// The tables are written while the recording is analysed, a group of rows at a time.
fn parquet(args: &FileArgs) -> Result<Done> {
    let mut config = config::load(args.config.as_deref())?;
    config.explain.worst = 0;
    let subject = || args.recording.display().to_string();
    let from = collect(&args.recording, config).with_context(subject)?;
    let info = from.contents.info.clone();
    let about = [
        ("taut.recording", subject()),
        ("taut.version", info.taut_version.clone()),
        ("taut.start_monotonic_ns", info.start_monotonic_ns.to_string()),
        ("taut.start_realtime_ns", info.start_realtime_ns.to_string()),
    ];
    let to = args.to("parquet");
    let mut tables = Tables::default();
    let mut rows = [0usize; 4];
    let mut analysis = Analysis::default();
    let names: Vec<String> = tables.all().iter().map(|table| format!("{}.parquet", table.name)).collect();
    let cannot = || format!("{}: cannot write", to.display());
    output::files(&to, &names, |out| {
        let start = |(out, table)| taut_tables::File::start(out, table, &about);
        let mut files =
            out.into_iter().zip(tables.all()).map(start).collect::<Result<Vec<_>, _>>().with_context(cannot)?;
        let mut failed = Ok(());
        analysis = from
            .finish(&mut |row| {
                let (at, table) = tables.take(row);
                rows[at] += 1;
                if table.rows() == ROWS_A_GROUP && failed.is_ok() {
                    failed = files[at].group(table);
                }
            })
            .with_context(subject)?;
        failed.with_context(cannot)?;
        for (mut file, mut table) in files.into_iter().zip(tables.into_all()) {
            file.group(&mut table).and_then(|()| file.finish()).with_context(cannot)?;
        }
        Ok(())
    })?;
    let [messages, hops, causes, states] = rows.map(|rows| rows as u64);
    eprintln!(
        "wrote {}: {}, {}, {}, {}{}",
        to.display(),
        words::quantity(messages, "message"),
        words::quantity(hops, "hop"),
        words::quantity(causes, "cause"),
        words::quantity(states, "thread state"),
        lost(&analysis),
    );
    Ok(done(&analysis))
}

/// ", 5 stamps LOST"; empty when nothing was.
fn lost(analysis: &Analysis) -> String {
    let totals = &analysis.totals;
    let what = [(totals.lost_stamps, "stamps"), (totals.lost_kernel_events, "kernel events")];
    what.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {} {what} LOST", words::count(*n))).collect()
}

/// Says what is damaged.
fn done(analysis: &Analysis) -> Done {
    analysis.damage.iter().for_each(|damage| eprintln!("taut: warning: {damage}"));
    if analysis.damage.is_empty() { Done::Fine } else { Done::DataLost }
}

/// A recording whose records were all taken in.
struct Collected {
    bytes: Mmap,
    contents: Contents,
    analyzer: Analyzer,
    threads: BTreeMap<i32, Thread>,
}

impl Collected {
    fn finish(self, row: &mut dyn FnMut(Row<'_>)) -> Result<Analysis> {
        let Contents { info, ending, damage, .. } = self.contents;
        let damage = damage.iter().map(ToString::to_string).collect();
        Ok(self.analyzer.finish_by_row(info, ending, damage, self.bytes.len() as u64, row)?)
    }
}

fn collect(path: &Path, config: Config) -> Result<Collected> {
    let bytes = input::map(path)?;
    let (mut analyzer, mut threads) = (Analyzer::new(config), BTreeMap::new());
    let contents = taut_recording::read(&bytes, &mut |record| {
        if let Record::Thread(thread) = &record {
            threads.insert(thread.tid, thread.clone());
        }
        analyzer.record(&record);
    })?;
    Ok(Collected { bytes, contents, analyzer, threads })
}

fn read(path: &Path, config: Config) -> Result<Source> {
    let Collected { bytes, contents, analyzer, threads } = collect(path, config)?;
    let damage = contents.damage.iter().map(ToString::to_string).collect();
    let analysis = analyzer.finish(contents.info.clone(), contents.ending.clone(), damage, bytes.len() as u64)?;
    Ok(Source { bytes, contents, analysis, threads })
}

impl FileArgs {
    fn to(&self, ending: &str) -> PathBuf {
        self.output.clone().unwrap_or_else(|| self.recording.with_extension(ending))
    }
}
