//! `taut import`: recordings from other people's files. Each kind is one subcommand and one module of `taut-import`.

use std::{
    fs::File,
    io::IsTerminal,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use taut_import::{Imported, mjlib};
use taut_report::words;

use crate::exit::Done;

/// Make a recording from a file that another program wrote.
///
/// Every value comes over; what of the file is damaged is left out and named (exit code 5).
#[derive(clap::Args)]
#[command(after_help = "Example:\n  taut import mjlib robot.log -o run.mcap\n  taut log run.mcap")]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// mjlib's telemetry log (TLOG0003), as mjbots' robots write it: a channel for each record.
    Mjlib(FileArgs),
}

/// One file in, one recording out.
#[derive(clap::Args)]
struct FileArgs {
    /// The file to import.
    path: PathBuf,
    /// The recording to write [default: PATH with .mcap].
    #[arg(short, long, value_name = "RUN")]
    output: Option<PathBuf>,
}

/// Imports, and says what came over.
pub fn run(args: &Args) -> Result<Done> {
    match &args.kind {
        Kind::Mjlib(file) => {
            import_file(file, |source, length, to, progress| mjlib::import(source, length, to, progress))
        }
    }
}

type Importer = fn(File, u64, &Path, &mut dyn FnMut(u64)) -> Result<Imported, taut_import::Error>;

fn import_file(args: &FileArgs, import: Importer) -> Result<Done> {
    let from = &args.path;
    let to = args.output.clone().unwrap_or_else(|| from.with_extension("mcap"));
    let file = File::open(from).with_context(|| from.display().to_string())?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        bail!("{}: is a folder; name a file", from.display());
    }
    if to.exists() && std::fs::canonicalize(&to)? == std::fs::canonicalize(from)? {
        bail!("{}: cannot import a file onto itself; name another with -o", to.display());
    }
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(metadata.len()) } else { ProgressBar::hidden() };
    bar.set_style(
        ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes}, {eta} to go").expect("a fixed template"),
    );
    let imported = import(file, metadata.len(), &to, &mut |done| bar.set_position(done));
    bar.finish_and_clear();
    let imported = imported.with_context(|| from.display().to_string())?;
    imported.damage.iter().for_each(|damage| eprintln!("lost: {damage}"));
    eprintln!(
        "wrote {}: {} messages of {} channels, {:.1} s, {}",
        to.display(),
        words::count(imported.messages),
        words::count(imported.channels),
        imported.duration_ns as f64 / 1e9,
        words::bytes(imported.file_bytes),
    );
    Ok(if imported.damage.is_empty() { Done::Fine } else { Done::DataLost })
}
