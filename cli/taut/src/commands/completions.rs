//! `taut completions`: what a shell needs to complete taut's commands and options.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::{exit::Done, output};

/// Print shell completions for taut's commands and options.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut completions bash > ~/.local/share/bash-completion/completions/taut\n  taut completions zsh > ~/.zfunc/_taut"
)]
pub struct Args {
    /// Which shell.
    shell: Shell,
}

/// Writes it to stdout.
pub fn run(args: &Args) -> Result<Done> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "taut", &mut script);
    output::write(&String::from_utf8(script)?, None)?;
    Ok(Done::Fine)
}
