//! `taut.toml`: chains that the user declares.
//!
//! ```toml
//! [[chain]]
//! name = "leader to follower"
//! points = ["publish.pre_read", "orch.cb_enter", "follower.command_applied"]
//! deadline_ms = 20
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use taut_analysis::{Config, DeclaredChain};

/// The file looked for in the working directory when none is named.
const DEFAULT: &str = "taut.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    chain: Vec<Chain>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chain {
    name: Option<String>,
    points: Vec<String>,
    deadline_ms: Option<f64>,
}

/// The configuration in `path`, or in `./taut.toml` if there is one, else none.
pub fn load(path: Option<&Path>) -> Result<Config> {
    let path = match path {
        Some(path) => path.to_owned(),
        None if Path::new(DEFAULT).exists() => PathBuf::from(DEFAULT),
        None => return Ok(Config::default()),
    };
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> Result<Config> {
    // The parser's own text draws the place over several lines; the first names it.
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        anyhow::anyhow!("line {line}: {}", error.message())
    })?;
    let chains = file.chain.into_iter().map(declared).collect::<Result<_>>()?;
    Ok(Config { chains, ..Config::default() })
}

fn declared(chain: Chain) -> Result<DeclaredChain> {
    let [first, .., last] = chain.points.as_slice() else {
        bail!("a chain needs at least two points, this has {}", chain.points.len());
    };
    let name = chain.name.unwrap_or_else(|| format!("{first} → {last}"));
    let deadline_ns = match chain.deadline_ms {
        Some(ms) if !(ms > 0.0 && ms < 1e9) => bail!("chain {name:?}: deadline_ms = {ms} is not a positive time"),
        ms => ms.map(|ms| (ms * 1e6).round() as u64),
    };
    Ok(DeclaredChain { name, points: chain.points, deadline_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_has_points_and_a_deadline() {
        let config = parse("[[chain]]\npoints = ['a', 'b', 'c']\ndeadline_ms = 2.5\n").unwrap();
        assert_eq!(config.chains[0].name, "a → c");
        assert_eq!(config.chains[0].deadline_ns, Some(2_500_000));
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (text, expected) in [
            ("[[chain]]\npoints = ['a', 'b']\ndedline_ms = 2", "line 3: unknown field `dedline_ms`"),
            ("[[chain]]\npoints = ['a']", "at least two points"),
            ("[[chain]]\npoints = ['a', 'b']\ndeadline_ms = -1", "not a positive time"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
