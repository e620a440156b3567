//! `taut man`: man pages, for those who pack taut.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;
use taut_recording::Shown;

use crate::exit::Done;

/// Write a man page for taut and for each of its commands.
#[derive(clap::Args)]
#[command(hide = true, after_help = "Examples:\n  taut man man1\n  taut man /usr/local/share/man/man1")]
pub struct Args {
    /// The folder that gets them; it is made where it is missing.
    #[arg(value_parser = crate::folder::named())]
    folder: PathBuf,
}

/// Writes `taut.1`, `taut-record.1` and so on.
pub fn run(args: &Args) -> Result<Done> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(crate::Cli::command(), folder))
        .with_context(|| folder.shown())?;
    Ok(Done::Fine)
}
