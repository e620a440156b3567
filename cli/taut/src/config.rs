//! Which `taut.toml` is read; what it says is `taut_gate::config`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use taut_analysis::Config;
use taut_gate::config::{Gating, parse};
use taut_recording::Shown;

/// The file looked for in the working directory when none is named.
const DEFAULT: &str = "taut.toml";

/// The chains in `path`, or in `./taut.toml` if there is one, else none.
pub fn load(path: Option<&Path>) -> Result<Config> {
    Ok(load_gate(path)?.analysis)
}

/// The same with what concerns gates.
pub fn load_gate(path: Option<&Path>) -> Result<Gating> {
    let path = match path {
        Some(path) => path.to_owned(),
        None if Path::new(DEFAULT).exists() => PathBuf::from(DEFAULT),
        None => return Ok(parse("")?),
    };
    let text = std::fs::read_to_string(&path).with_context(|| path.shown())?;
    parse(&text).with_context(|| path.shown())
}
