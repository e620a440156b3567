//! `taut flame`: where CPU time went, from the stacks that `taut record --profile` sampled.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use memmap2::Mmap;
use taut_analysis::Stacks;
use taut_report::{flame, words};

use crate::{exit::Done, output};

/// Draw where CPU time went: a flame graph (SVG) of a recording made with `taut record --profile`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut record --profile 99 -o run.mcap -- python my_robot.py\n  taut flame run.mcap -o run.svg\n  taut flame loaded.mcap --against quiet.mcap -o difference.svg\n  taut flame run.mcap --folded"
)]
pub struct Args {
    /// A recording with a profile.
    #[arg(value_name = "RUN")]
    recording: PathBuf,
    /// Colour the difference to this recording: red has a larger part of the samples than in it, blue a smaller.
    #[arg(long, value_name = "RUN", conflicts_with = "folded")]
    against: Option<PathBuf>,
    /// Only processes of this name.
    #[arg(long, value_name = "NAME")]
    process: Option<String>,
    /// Folded stacks (`a;b;c 12`) instead of a picture: what other flame graph tools read.
    #[arg(long)]
    folded: bool,
    /// File to write instead of stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Reads, folds, draws.
pub fn run(args: &Args) -> Result<Done> {
    let (stacks, is_whole) = profile(&args.recording, args)?;
    let after = stacks.folded(args.process.as_deref());
    let title = args.recording.display().to_string();
    let subtitle = about(&stacks);
    let text = match &args.against {
        _ if args.folded => flame::folded(&after),
        None => flame::flame(&after, &title, &subtitle),
        Some(path) => {
            let before = profile(path, args)?.0.folded(args.process.as_deref());
            flame::difference(&before, &after, &format!("{title} against {}", path.display()), &subtitle)
        }
    };
    output::write(&text, args.output.as_deref())?;
    if let Some(path) = &args.output {
        eprintln!("wrote {}: {subtitle}", path.display());
    }
    Ok(if is_whole { Done::Fine } else { Done::DataLost })
}

/// The recording's stacks, of which the wanted process has some; and whether the file was whole.
fn profile(path: &Path, args: &Args) -> Result<(Stacks, bool)> {
    let name = path.display();
    let file = File::open(path).with_context(|| name.to_string())?;
    if !file.metadata()?.is_file() || file.metadata()?.len() == 0 {
        bail!("{name}: is no recording; name an .mcap file");
    }
    // SAFETY: read-only; see `report`: nothing read is trusted before its CRC is checked.
    let bytes = unsafe { Mmap::map(&file)? };
    let mut stacks = Stacks::default();
    let contents =
        taut_recording::read(&bytes, &mut |record| stacks.record(&record)).with_context(|| name.to_string())?;
    let processes = stacks.processes();
    match &args.process {
        _ if processes.is_empty() => bail!("{name}: has no profile; record with --profile 99"),
        Some(wanted) if !processes.contains(wanted) => {
            bail!("{name}: no process {wanted:?} has samples; there are {}", processes.join(", "))
        }
        _ => Ok((stacks, contents.damage.is_empty())),
    }
}

fn about(stacks: &Stacks) -> String {
    let lost = if stacks.lost() == 0 { String::new() } else { format!(", {} LOST", words::count(stacks.lost())) };
    format!("{} samples{lost}", words::count(stacks.samples()))
}
