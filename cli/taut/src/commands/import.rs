//! `taut import`: recordings from files of other tools. Each kind is one subcommand and one module of `taut-import`.

use std::{
    fs::File,
    io::IsTerminal,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use taut_import::{Error, Imported, Unit, bag, chrome, cyclictest, hlog, jsonl, mjlib, ros2};
use taut_recording::Shown;
use taut_report::words;

use crate::{exit::Done, input, output};

/// Make a recording from another tool's file.
///
/// Damaged parts of the file are left out and named (exit code 5).
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut import rosbag2 my_bag/ -o run.mcap\n  taut import ctf ~/.ros/tracing/mysession -o run.mcap\n  \
                        taut import mjlib robot.log"
)]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// A rosbag2 bag (folder, .mcap, .db3) or any MCAP file: topics' periods, and header against log time.
    #[command(visible_alias = "mcap")]
    #[command(
        after_help = "Examples:\n  taut import rosbag2 my_bag/ -o run.mcap\n  taut import mcap drive.mcap -o run.mcap"
    )]
    Rosbag2(FileArgs),
    /// An LTTng trace of ROS 2 (folder of ros2_tracing or CARET): chains from timer to callback.
    #[command(
        after_help = "Examples:\n  taut import ctf ~/.ros/tracing/mysession -o run.mcap\n  taut import ctf caret_trace/ -o run.mcap"
    )]
    Ctf(FileArgs),
    /// Stamps as JSON, an object a line: `{"id": 17, "point": "leader.read", "t": 12.345}`.
    #[command(
        after_help = "Examples:\n  taut import jsonl stamps.jsonl -o run.mcap\n  taut import jsonl stamps.jsonl --unit ms"
    )]
    Jsonl {
        #[command(flatten)]
        file: FileArgs,
        /// Unit of times whose key has none: s, ms, us or ns.
        #[arg(long, default_value = "s")]
        unit: Unit,
    },
    /// A Chrome JSON trace, also of Perfetto or VizTracer: flows become messages, slices distributions.
    #[command(
        after_help = "Examples:\n  taut import chrome trace.json -o run.mcap\n  taut import chrome viztracer.json.gz"
    )]
    Chrome(FileArgs),
    /// An HdrHistogram interval log: a distribution for each tag.
    #[command(
        after_help = "Examples:\n  taut import hlog latency.hlog -o run.mcap\n  taut import hlog latency.hlog --unit us"
    )]
    Hlog {
        #[command(flatten)]
        file: FileArgs,
        /// Unit of the values: s, ms, us or ns.
        #[arg(long, default_value = "ns")]
        unit: Unit,
    },
    /// Output of cyclictest -h, -H, --json or -v: a distribution for each thread.
    #[command(
        after_help = "Examples:\n  taut import cyclictest cyclictest.txt -o run.mcap\n  taut import cyclictest nanoseconds.txt --unit ns"
    )]
    Cyclictest {
        #[command(flatten)]
        file: FileArgs,
        /// Unit where the file has none: us, or ns after cyclictest -N.
        #[arg(long, default_value = "us")]
        unit: Unit,
    },
    /// An mjlib telemetry log (TLOG0003) of mjbots' robots: a channel for each record.
    #[command(after_help = "Examples:\n  taut import mjlib robot.log\n  taut import mjlib robot.log -o run.mcap")]
    Mjlib(FileArgs),
}

/// One file in, one recording out.
#[derive(clap::Args)]
struct FileArgs {
    /// File to import.
    path: PathBuf,
    /// Recording to write; - is stdout [default: PATH with .mcap, or .taut.mcap if PATH ends in .mcap].
    #[arg(short, long, value_name = "RUN")]
    output: Option<PathBuf>,
}

/// Imports, and says what came over.
pub fn run(args: &Args) -> Result<Done> {
    match &args.kind {
        Kind::Rosbag2(file) => import(file, Folders::Too, bag::import),
        Kind::Ctf(file) => import(file, Folders::Too, ros2::import),
        Kind::Jsonl { file, unit } => {
            import(file, Folders::Not, |path, to, progress| jsonl::import(File::open(path)?, *unit, to, progress))
        }
        Kind::Chrome(file) => import(file, Folders::Not, chrome::import),
        Kind::Hlog { file, unit } => {
            import(file, Folders::Not, |path, to, progress| hlog::import(File::open(path)?, *unit, to, progress))
        }
        Kind::Cyclictest { file, unit } => {
            import(file, Folders::Not, |path, to, progress| cyclictest::import(File::open(path)?, *unit, to, progress))
        }
        Kind::Mjlib(file) => import(file, Folders::Not, |path, to, progress| {
            let source = File::open(path)?;
            let length = source.metadata()?.len();
            mjlib::import(source, length, to, progress)
        }),
    }
}

/// Whether a folder is as good as a file.
#[derive(PartialEq)]
enum Folders {
    Not,
    Too,
}

fn import(
    args: &FileArgs,
    folders: Folders,
    import: impl FnOnce(&Path, &Path, &mut dyn FnMut(u64)) -> Result<Imported, Error>,
) -> Result<Done> {
    let from = &args.path;
    let to = args.output.clone().unwrap_or_else(|| default_output(from));
    let metadata = std::fs::metadata(from).with_context(|| from.shown())?;
    if metadata.is_dir() && folders == Folders::Not {
        bail!("{}: is a folder; name a file", from.shown());
    }
    if input::is_one_file(&to, from) {
        bail!("{}: cannot import a file onto itself; name another with -o", to.shown());
    }
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(bytes(from)) } else { ProgressBar::hidden() };
    bar.set_style(
        ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes}, {eta} to go").expect("a fixed template"),
    );
    let imported = output::recording(&to, |to| {
        let imported = import(from, to, &mut |done| bar.set_position(done));
        bar.finish_and_clear();
        imported.with_context(|| from.shown())
    })?;
    imported.notes.iter().for_each(|note| say!("note: {note}"));
    imported.damage.iter().for_each(|damage| say!("lost: {damage}"));
    say!("wrote {}: {}", to.shown(), summary(&imported));
    Ok(if imported.damage.is_empty() { Done::Fine } else { Done::DataLost })
}

/// Beside the source, under a name that is not the source's.
fn default_output(from: &Path) -> PathBuf {
    let is_mcap = from.extension().is_some_and(|extension| extension == "mcap");
    from.with_extension(if is_mcap { "taut.mcap" } else { "mcap" })
}

/// Of a file, or of all files below a folder.
fn bytes(path: &Path) -> u64 {
    let is_link = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|e| e.path()).filter(|path| !is_link(path)).map(|path| bytes(&path)).sum(),
        Err(_) => std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
    }
}

/// What came over, in one line.
fn summary(imported: &Imported) -> String {
    let mut parts = Vec::new();
    if imported.stamps > 0 {
        parts.push(format!("{} stamps", words::count(imported.stamps)));
    }
    if imported.ros_events > 0 {
        parts.push(format!("{} ROS 2 events", words::count(imported.ros_events)));
    }
    if imported.channels > 0 {
        let (messages, channels) = (words::count(imported.messages), words::count(imported.channels));
        parts.push(format!("{messages} messages of {channels} channels"));
    }
    if imported.histograms > 0 {
        parts.push(words::quantity(imported.histograms, "histogram"));
    }
    if imported.stamps + imported.ros_events + imported.messages > 0 {
        parts.push(format!("{:.1} s", imported.duration_ns as f64 / 1e9));
    }
    parts.push(words::bytes(imported.file_bytes));
    parts.join(", ")
}
