//! `taut recover`: a clean recording from a truncated or damaged one.

use std::{fs::File, path::PathBuf};

use anyhow::{Context, Result, bail};
use memmap2::Mmap;
use taut_recording::Shown;

use crate::{exit::Done, input, losses::Losses, output};

/// Write the readable part of a truncated or damaged recording.
///
/// Chunks with a wrong checksum are left out and named.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  taut recover crashed.mcap\n  taut recover crashed.mcap -o recovered.mcap")]
pub struct Args {
    /// Truncated or damaged recording.
    recording: PathBuf,
    /// Recording to write; - is stdout [default: RECORDING with .recovered.mcap].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Recovers and says what was lost.
pub fn run(args: &Args) -> Result<Done> {
    let from = &args.recording;
    let to = args.output.clone().unwrap_or_else(|| from.with_extension("recovered.mcap"));
    let file = File::open(from).with_context(|| from.shown())?;
    let metadata = file.metadata().with_context(|| from.shown())?;
    if metadata.is_dir() {
        bail!("{}: is a folder; name a recording (.mcap)", from.shown());
    }
    if input::is_one_file(&to, from) {
        bail!("{}: cannot recover a file onto itself; name another with -o", to.shown());
    }
    if metadata.len() == 0 {
        bail!("{}: is empty; there is nothing to recover", from.shown());
    }
    // SAFETY: read-only; see `report`: nothing read is trusted before its CRC is checked.
    let bytes = unsafe { Mmap::map(&file) }.with_context(|| from.shown())?;
    let recovered = output::recording(&to, |to| taut_recording::recover(&bytes, to).with_context(|| from.shown()))?;
    for damage in &recovered.damage {
        say!("lost: {damage}");
    }
    let losses: Losses = recovered.lost.iter().collect();
    say!(
        "wrote {}: {} stamps, {} kernel events, {} telemetry messages{losses}",
        to.shown(),
        taut_report::words::count(recovered.stamps),
        taut_report::words::count(recovered.kernel_events),
        taut_report::words::count(recovered.messages)
    );
    Ok(if recovered.damage.is_empty() && losses.is_none() { Done::Fine } else { Done::DataLost })
}
