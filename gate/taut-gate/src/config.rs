//! `taut.toml`: chains that the user declares, what they may cost, and how a gate judges them.
//!
//! ```toml
//! [[chain]]
//! name = "leader to follower"
//! points = ["publish.pre_read", "orch.cb_enter", "follower.command_applied"]
//! deadline_ms = 20
//! missed_max_percent = 0.1
//!
//! [[chain.limit]]
//! hop = "orch.cb_enter → follower.command_applied"
//! figure = "own.p99"
//! max_ms = 2
//!
//! [gate]
//! metrics = ["hops.work.p50", "hops.work.slow", "missed", "dropped"]
//! minimum_effect_percent = 5
//! ```

use serde::Deserialize;
use taut_analysis::{Config, DeclaredChain};

use crate::{Limit, LimitFigure, Settings, Vote};

/// What is wrong with the file, in one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

type Result<T> = std::result::Result<T, ConfigError>;

macro_rules! wrong {
    ($($words:tt)*) => { ConfigError(format!($($words)*)) };
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    chain: Vec<Chain>,
    #[serde(default)]
    gate: Gate,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chain {
    name: Option<String>,
    points: Vec<String>,
    deadline_ms: Option<f64>,
    missed_max_percent: Option<f64>,
    dropped_max_percent: Option<f64>,
    #[serde(default)]
    limit: Vec<HopLimit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HopLimit {
    hop: Option<String>,
    figure: String,
    max_ms: f64,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Gate {
    metrics: Option<Vec<Vote>>,
    minimum_effect_percent: Option<f64>,
    minimum_effect_us: Option<f64>,
    equivalence_percent: Option<f64>,
    equivalence_us: Option<f64>,
    share_minimum_effect_percent: Option<f64>,
    share_equivalence_percent: Option<f64>,
}

/// What the file says.
#[derive(Clone, Debug)]
pub struct Gating {
    /// For the analysis.
    pub analysis: Config,
    /// For the gate.
    pub settings: Settings,
    /// Whether the file says from which effect on a change counts.
    pub has_minimum_effect: bool,
    /// What the chains may cost.
    pub limits: Vec<Limit>,
}

/// The configuration in a file's text.
///
/// # Errors
/// What is wrong, with its line where the syntax is.
pub fn parse(text: &str) -> Result<Gating> {
    // The parser's own text draws the place over several lines; the first names it.
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        wrong!("line {line}: {}", error.message())
    })?;
    let limits = file.chain.iter().map(limits_of).collect::<Result<Vec<_>>>()?.concat();
    let chains: Vec<DeclaredChain> = file.chain.into_iter().map(declared).collect::<Result<_>>()?;
    let has_minimum_effect = file.gate.minimum_effect_percent.is_some() || file.gate.minimum_effect_us.is_some();
    let settings = settings(file.gate)?;
    let analysis = Config { chains, ..Config::default() };
    Ok(Gating { analysis, settings, has_minimum_effect, limits })
}

fn settings(gate: Gate) -> Result<Settings> {
    let mut settings = Settings::default();
    settings.votes = gate.metrics.unwrap_or(settings.votes);
    for (name, given, scale, setting) in [
        ("minimum_effect_percent", gate.minimum_effect_percent, 0.01, &mut settings.minimum_effect.relative),
        ("minimum_effect_us", gate.minimum_effect_us, 1e3, &mut settings.minimum_effect.absolute),
        ("equivalence_percent", gate.equivalence_percent, 0.01, &mut settings.equivalence.relative),
        ("equivalence_us", gate.equivalence_us, 1e3, &mut settings.equivalence.absolute),
        ("share_minimum_effect_percent", gate.share_minimum_effect_percent, 0.01, &mut settings.share_minimum_effect),
        ("share_equivalence_percent", gate.share_equivalence_percent, 0.01, &mut settings.share_equivalence),
    ] {
        match given {
            Some(value) if !(0.0..1e9).contains(&value) => {
                return Err(wrong!("gate: {name} = {value} is not from 0 up"));
            }
            Some(value) => *setting = value * scale,
            None => {}
        }
    }
    if settings.votes.is_empty() {
        return Err(wrong!("gate: metrics is empty; name at least one, or leave it out"));
    }
    Ok(settings)
}

fn limits_of(chain: &Chain) -> Result<Vec<Limit>> {
    let mut limits = Vec::new();
    let of = name_of(chain);
    for (name, percent, figure) in [
        ("missed_max_percent", chain.missed_max_percent, LimitFigure::Missed),
        ("dropped_max_percent", chain.dropped_max_percent, LimitFigure::Dropped),
    ] {
        match percent {
            Some(percent) if !(0.0..=100.0).contains(&percent) => {
                return Err(wrong!("{name} = {percent} is not from 0 to 100"));
            }
            Some(percent) => limits.push(Limit { chain: of.clone(), hop: None, figure, value: percent / 100.0 }),
            None => {}
        }
    }
    if chain.missed_max_percent.is_some() && chain.deadline_ms.is_none() {
        return Err(wrong!("missed_max_percent needs deadline_ms"));
    }
    for limit in &chain.limit {
        if !(limit.max_ms > 0.0 && limit.max_ms < 1e9) {
            return Err(wrong!("limit {:?}: max_ms = {} is not a positive time", limit.figure, limit.max_ms));
        }
        let figure = figure(&limit.figure)?;
        limits.push(Limit { chain: of.clone(), hop: limit.hop.clone(), figure, value: limit.max_ms * 1e6 });
    }
    Ok(limits)
}

/// "own.p99": as a metric without its scope.
fn figure(text: &str) -> Result<LimitFigure> {
    let unknown = || format!("limit: figure = {text:?}; write SIDE.FIGURE as in own.p99, total.p50, work.mean");
    match format!("chain.{text}").parse::<Vote>().map_err(|error| wrong!("{}: {error}", unknown()))? {
        Vote::Time(_, side, statistic) if !statistic.is_share() => Ok(LimitFigure::Time(side, statistic)),
        _ => Err(ConfigError(unknown())),
    }
}

/// As given, or by its ends.
fn name_of(chain: &Chain) -> String {
    let end = |point: Option<&String>| point.cloned().unwrap_or_default();
    let ends = || format!("{} → {}", end(chain.points.first()), end(chain.points.last()));
    chain.name.clone().unwrap_or_else(ends)
}

fn declared(chain: Chain) -> Result<DeclaredChain> {
    if chain.points.len() < 2 {
        return Err(wrong!("a chain needs at least two points, this has {}", chain.points.len()));
    }
    let name = name_of(&chain);
    let deadline_ns = match chain.deadline_ms {
        Some(ms) if !(ms > 0.0 && ms < 1e9) => {
            return Err(wrong!("chain {name:?}: deadline_ms = {ms} is not a positive time"));
        }
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
        assert_eq!(config.analysis.chains[0].name, "a → c");
        assert_eq!(config.analysis.chains[0].deadline_ns, Some(2_500_000));
    }

    #[test]
    fn a_chain_has_limits_and_a_gate_its_metrics() {
        let text = "[[chain]]\npoints = ['a', 'b']\ndeadline_ms = 2\nmissed_max_percent = 0.1\n[[chain.limit]]\nhop = 'a → b'\nfigure = 'own.p99'\nmax_ms = 1.5\n[gate]\nmetrics = ['chain.own.p99', 'dropped']\nminimum_effect_percent = 3\n";
        let config = parse(text).unwrap();
        let limits = config.limits;
        assert_eq!((limits[0].chain.as_str(), limits.len(), limits[1].value), ("a → b", 2, 1.5e6));
        assert_eq!(config.settings.votes[0].to_string(), "chain.own.p99");
        assert!((config.settings.minimum_effect.relative - 0.03).abs() < 1e-9 && config.has_minimum_effect);
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (text, expected) in [
            ("[[chain]]\npoints = ['a', 'b']\ndedline_ms = 2", "line 3: unknown field `dedline_ms`"),
            ("[[chain]]\npoints = ['a']", "at least two points"),
            ("[[chain]]\npoints = ['a', 'b']\ndeadline_ms = -1", "not a positive time"),
            ("[gate]\nmetrics = ['p50']", "is no metric; write missed, dropped, or SCOPE.SIDE.FIGURE"),
            ("[gate]\nminimum_effect_percent = -1", "minimum_effect_percent = -1 is not from 0 up"),
            ("[[chain]]\npoints = ['a', 'b']\nmissed_max_percent = 1", "needs deadline_ms"),
            ("[[chain]]\npoints = ['a', 'b']\n[[chain.limit]]\nfigure = 'p9'\nmax_ms = 1", "write SIDE.FIGURE"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
