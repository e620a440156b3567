//! `taut export`: a recording in the formats of other tools. Each form is one subcommand and one file of
//! `taut_report::export`; tables are of `taut_tables`.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use memmap2::Mmap;
use taut_analysis::{Analysis, Analyzer, Config, Row};
use taut_recording::{Contents, Record, Shown, Thread};
use taut_report::{
    export::{self, IntervalLog, Latencies, Perfetto},
    flame, words,
};
use taut_tables::{ROWS_A_GROUP, Tables};

use super::flamegraph::profile;
use crate::{analyse::lost, config, exit::Done, input, output};

/// Write a recording in the form of another tool.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut export perfetto run.mcap -o run.pftrace   # open it at ui.perfetto.dev\n  taut export parquet run.mcap -o tables\n  taut export folded run.mcap -o - | sort -k2 -n"
)]
pub struct Args {
    #[command(subcommand)]
    form: Form,
}

#[derive(Subcommand)]
enum Form {
    /// Perfetto trace: thread states, hops as slices, time by cause.
    #[command(
        after_help = "Examples:\n  taut export perfetto run.mcap\n  taut export perfetto run.mcap -o run.pftrace   # open it at ui.perfetto.dev"
    )]
    Perfetto(FileArgs),
    /// A folder of Parquet tables: messages, hops, causes, thread states.
    #[command(after_help = "Examples:\n  taut export parquet run.mcap\n  taut export parquet run.mcap -o tables")]
    Parquet(FileArgs),
    /// A row for each hop of each message, with time by cause.
    #[command(after_help = "Examples:\n  taut export csv run.mcap\n  taut export csv run.mcap -o - | head")]
    Csv(FileArgs),
    /// A copy with a latency channel for each chain and hop, for Foxglove or PlotJuggler.
    #[command(
        after_help = "Examples:\n  taut export foxglove run.mcap\n  taut export foxglove run.mcap -o latency.mcap"
    )]
    Foxglove(FileArgs),
    /// HdrHistogram interval log: a histogram a second by chain and hop.
    #[command(
        after_help = "Examples:\n  taut export hlog run.mcap\n  taut export hlog run.mcap --config taut.toml -o run.hlog"
    )]
    Hlog(FileArgs),
    /// Folded stacks (`a;b;c 12`) of a profile, for flame graph tools.
    #[command(
        after_help = "Examples:\n  taut export folded run.mcap -o - | sort -k2 -n\n  taut export folded run.mcap --process python"
    )]
    Folded(FoldedArgs),
}

/// One recording in, one file out; or one folder.
#[derive(clap::Args)]
struct FileArgs {
    /// A recording.
    #[arg(value_name = "RUN")]
    recording: PathBuf,
    /// File (parquet: folder) to write; - is stdout [default: RUN with the form's ending].
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Chains and deadlines [default: ./taut.toml].
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
}

#[derive(clap::Args)]
struct FoldedArgs {
    /// A recording made with `taut record --profile`.
    #[arg(value_name = "RUN")]
    recording: PathBuf,
    /// Only processes of this name.
    #[arg(long, value_name = "NAME")]
    process: Option<String>,
    /// File to write; - is stdout [default: RUN with .folded].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
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
        Form::Parquet(folder) => parquet(folder),
        Form::Foxglove(file) => foxglove(file),
        Form::Hlog(file) => hlog(file),
        Form::Folded(args) => folded(args),
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
    let subject = || args.recording.shown();
    let mut config = config::load(args.config.as_deref())?;
    // Every message with its path, in order of time.
    (config.explain.worst, config.explain.from_ns) = (0, Some(0));
    let from = read(&args.recording, config).with_context(subject)?;
    let to = to(args.output.as_deref(), &args.recording, ending);
    output::file(&to, |out| write(out, &from))?;
    let messages: u64 = from.analysis.chains.iter().map(|chain| chain.messages).sum();
    let shown: usize = from.analysis.chains.iter().map(|chain| chain.explained.paths.len()).sum();
    say!(
        "wrote {}: {} of {}{}; the others did not go all the way, or came while the chain started up",
        to.shown(),
        words::count(shown as u64),
        words::quantity(messages, "message"),
        lost(&from.analysis),
    );
    Ok(done(&from.analysis))
}

/// The tables are written while the recording is analysed, a group of rows at a time.
fn parquet(args: &FileArgs) -> Result<Done> {
    if args.output.as_deref() == Some(Path::new("-")) {
        bail!("export parquet writes a folder of four tables, which stdout is not: name a folder with -o");
    }
    let subject = || args.recording.shown();
    let from = collected(args)?;
    let info = from.contents.info.clone();
    let about = [
        ("taut.recording", subject()),
        ("taut.version", info.taut_version.clone()),
        ("taut.start_monotonic_ns", info.start_monotonic_ns.to_string()),
        ("taut.start_realtime_ns", info.start_realtime_ns.to_string()),
    ];
    let to = to(args.output.as_deref(), &args.recording, "parquet");
    let mut tables = Tables::default();
    let mut rows = [0usize; 4];
    let mut analysis = Analysis::default();
    let names: Vec<String> = tables.all().iter().map(|table| format!("{}.parquet", table.name)).collect();
    let cannot = || format!("{}: cannot write", to.shown());
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
    say!(
        "wrote {}: {}, {}, {}, {}{}",
        to.shown(),
        words::quantity(messages, "message"),
        words::quantity(hops, "hop"),
        words::quantity(causes, "cause"),
        words::quantity(states, "thread state"),
        lost(&analysis),
    );
    Ok(done(&analysis))
}

/// The recording's own channels stay as they are; the latencies come beside them.
fn foxglove(args: &FileArgs) -> Result<Done> {
    let subject = || args.recording.shown();
    let to = to(args.output.as_deref(), &args.recording, "foxglove.mcap");
    if input::is_one_file(&to, &args.recording) {
        bail!("{}: cannot copy a recording onto itself; name another file with -o", to.shown());
    }
    let from = collected(args)?;
    // Opened once more: the analysis keeps the first.
    let bytes = input::map(&args.recording).with_context(subject)?;
    let mut latencies = Latencies::default();
    let analysis = from.finish(&mut |row| latencies.row(&row)).with_context(subject)?;
    let channels = latencies.channels() as u64;
    output::recording(&to, |to| {
        taut_recording::copy(&bytes, to, |writer| latencies.write(writer)).with_context(|| to.shown())
    })?;
    let next = match to == Path::new("-") {
        true => String::new(),
        false => format!("\ntaut: next: taut telemetry {} --layouts", words::shell(&[to.shown()])),
    };
    say!(
        "wrote {}: the recording and {} of latencies{}{next}",
        to.shown(),
        words::quantity(channels, "channel"),
        lost(&analysis),
    );
    Ok(done(&analysis))
}

fn hlog(args: &FileArgs) -> Result<Done> {
    let from = collected(args)?;
    let info = from.contents.info.clone();
    let mut log = IntervalLog::new(info.start_monotonic_ns);
    let analysis = from.finish(&mut |row| log.row(&row)).with_context(|| args.recording.shown())?;
    let to = to(args.output.as_deref(), &args.recording, "hlog");
    let start = SystemTime::UNIX_EPOCH + Duration::from_nanos(info.start_realtime_ns);
    output::file(&to, |out| Ok(log.write(out, start)?))?;
    let messages: u64 = analysis.chains.iter().map(|chain| chain.end_to_end.distribution.n).sum();
    say!("wrote {}: {}{}", to.shown(), words::quantity(messages, "message"), lost(&analysis));
    Ok(done(&analysis))
}

fn folded(args: &FoldedArgs) -> Result<Done> {
    let subject = || args.recording.shown();
    let (profile, is_whole) = profile(&args.recording, args.process.as_deref()).with_context(subject)?;
    let to = to(args.output.as_deref(), &args.recording, "folded");
    output::file(&to, |out| Ok(out.write_all(flame::folded(&profile).as_bytes())?))?;
    say!("wrote {}: {}", to.shown(), words::profile(&profile));
    Ok(if is_whole { Done::Fine } else { Done::DataLost })
}

/// Where to write: as asked for, or beside the recording.
fn to(asked: Option<&Path>, recording: &Path, ending: &str) -> PathBuf {
    asked.map_or_else(|| recording.with_extension(ending), Path::to_owned)
}

/// Says what is damaged.
fn done(analysis: &Analysis) -> Done {
    analysis.damage.iter().for_each(|damage| say!("taut: warning: {damage}"));
    if analysis.has_loss() { Done::DataLost } else { Done::Fine }
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
        Ok(self.analyzer.finish_by_row(info, ending, damage, self.bytes.len() as u64, &mut |r: Row<'_>| row(r))?)
    }
}

/// For forms that are made row by row: no message needs to be kept with its path.
fn collected(args: &FileArgs) -> Result<Collected> {
    let mut config = config::load(args.config.as_deref())?;
    config.explain.worst = 0;
    collect(&args.recording, config).with_context(|| args.recording.shown())
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
