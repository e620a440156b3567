//! `taut flamegraph`: where CPU time went, from the stacks that `taut record --profile` sampled.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use taut_analysis::{Profile, Stacks};
use taut_recording::Shown;
use taut_report::{flame, words};

use crate::{exit::Done, input, output};

/// Draw a flame graph (SVG) of a recording made with `taut record --profile`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut flamegraph run.mcap -o run.svg\n  taut flamegraph quiet.mcap loaded.mcap -o difference.svg"
)]
pub struct Args {
    /// A recording with a profile.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Draw this one, red where a function's share of samples is larger than in A, blue where smaller.
    #[arg(value_name = "B")]
    b: Option<PathBuf>,
    /// Only processes of this name.
    #[arg(long, value_name = "NAME")]
    process: Option<String>,
    /// Output file [default: stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A picture is passed on: it does not name the folder of its recording.
fn file_name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()
}

/// Reads, folds, draws.
pub fn run(args: &Args) -> Result<Done> {
    let read = |path: &Path| profile(path, args.process.as_deref()).with_context(|| path.shown());
    let (first, mut is_whole) = read(&args.a)?;
    let name = args.a.shown();
    let text = match &args.b {
        None => flame::flame(&first, &file_name(&args.a)),
        Some(path) => {
            let (later, is_later_whole) = read(path)?;
            is_whole &= is_later_whole;
            say!("taut: {}: {}", path.shown(), words::profile(&later));
            let title = format!("{} against {}", file_name(path), file_name(&args.a));
            flame::difference(&first, &later, &title)
        }
    };
    say!("taut: {name}: {}", words::profile(&first));
    output::write(&text, args.output.as_deref())?;
    if let Some(path) = &args.output {
        say!("wrote {}", path.shown());
    }
    Ok(if is_whole { Done::Fine } else { Done::DataLost })
}

/// The recording's stacks, of which the wanted process has some; and whether they are all that were sampled.
pub fn profile(path: &Path, process: Option<&str>) -> Result<(Profile, bool)> {
    let bytes = input::map(path)?;
    let mut stacks = Stacks::default();
    let contents = taut_recording::read(&bytes, &mut |record| stacks.record(&record))?;
    contents.damage.iter().for_each(|damage| say!("taut: warning: {}: {damage}", path.shown()));
    let processes = stacks.processes();
    match process {
        _ if processes.is_empty() => bail!("has no profile; record with --profile 99"),
        Some(wanted) if !processes.iter().any(|name| name == wanted) => {
            bail!("no process {wanted:?} has samples; there are {}", processes.join(", "))
        }
        wanted => {
            let profile = stacks.profile(wanted);
            let is_whole = contents.damage.is_empty() && profile.lost == 0;
            Ok((profile, is_whole))
        }
    }
}
