//! `taut compare`: what changed between two recordings, or two sets of trials, by hop and by cause.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use taut_analysis::{Analysis, Config, DeclaredChain};
use taut_gate::{Most, Trial, config::Gating, noise};
use taut_recording::Shown;
use taut_report::{GateShown, Named, Terms, TwoShown};

use super::gate::{
    compare,
    stored::{Reader, is_without},
    written::Outputs,
};
use crate::{analyse::analyse, config, exit::Done, ros_filter::RosFilter};

/// Compare two recordings: latency by hop and cause; separate the program's changes from the machine's.
///
/// Two recordings are described; a verdict needs two sets of trials.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut compare before.mcap after.mcap\n  taut compare trials/baseline.jsonl trials/candidate.jsonl"
)]
pub struct Args {
    /// Baseline: a recording, a folder of them, or trials of `taut gate --save`.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Candidate, likewise.
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Only this chain [default: the one with the most messages].
    #[arg(long, value_name = "NAME")]
    chain: Option<String>,
    /// Chains and metrics [default: ./taut.toml].
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
    #[command(flatten)]
    ros: RosFilter,
    #[command(flatten)]
    outputs: Outputs,
}

/// Compares and prints; a verdict changes no exit code, that is what `taut gate` is for.
pub fn run(args: &Args) -> Result<Done> {
    let gating = config::load_gate(args.config.as_deref())?;
    let is_recording = |path: &Path| !path.is_dir() && path.extension().is_none_or(|extension| extension != "jsonl");
    if is_recording(&args.a) && is_recording(&args.b) {
        let has_page = args.outputs.has_page();
        let write = &mut |two: &TwoShown<'_>| args.outputs.two(two);
        return recordings([&args.a, &args.b], &gating, args.chain.clone(), &args.ros, has_page, write);
    }
    let reader = Reader::new(&gating.analysis, args.chain.clone(), &args.ros);
    let (a, b) = (reader.set(std::slice::from_ref(&args.a))?, reader.set(std::slice::from_ref(&args.b))?);
    let (gated, settings, notes) = compare(&gating, &a, &b)?;
    let (pairs, most) = (gated.outcome.pairs, Most::of(gated.outcome.pairs));
    let floor = if pairs > 1 { noise(&settings, &gated, &[], most) } else { Vec::new() };
    let (a, b) = (args.a.shown(), args.b.shown());
    let terms = Terms { notes: &notes, ..Terms::default() };
    let outcome = &gated.outcome;
    let shown = GateShown { kind: "compare", a: &a, b: &b, outcome, noise: &floor, elapsed_s: None, seed: None, terms };
    args.outputs.gate(&shown)?;
    Ok(Done::Fine)
}

/// Two recordings: side by side, and what changed in the chain that both have. `taut report A B` shows the same.
pub fn recordings(
    paths: [&PathBuf; 2],
    gating: &Gating,
    chain: Option<String>,
    ros: &RosFilter,
    has_page: bool,
    write: &mut dyn FnMut(&TwoShown<'_>) -> Result<()>,
) -> Result<Done> {
    let is_named = chain.is_some();
    let mut reader = Reader::new(&gating.analysis, chain, ros);
    let mut config = reader.config().clone();
    // Only the page has room for whole paths.
    config.explain.worst = if has_page { gating.analysis.explain.worst } else { 0 };
    let read = |path: &PathBuf, config: &Config| -> Result<(String, Analysis)> {
        let mut analysis = analyse(path, config).with_context(|| path.shown())?;
        ros.apply(&mut analysis).with_context(|| path.shown())?;
        Ok((path.shown(), analysis))
    };
    let [mut a, mut b] = [read(paths[0], &config)?, read(paths[1], &config)?];
    let trials = |reader: &Reader, a: &(String, Analysis), b: &(String, Analysis)| {
        reader.trial_of(&a.0, &a.1).and_then(|first| Ok([first, reader.trial_of(&b.0, &b.1)?]))
    };
    let mut found = trials(&reader, &a, &b);
    let mut caveat = String::new();
    if let Ok([first, second]) = &found
        && !is_named
        && let Some(chain) = chain_of_both(first, second)
    {
        caveat = format!(
            "The messages of {} and {} pass different points: they are compared at the {} that both pass; a [[chain]] in taut.toml names others.",
            a.0,
            b.0,
            chain.points.len()
        );
        reader = Reader::new(&gating.analysis, Some(chain.name.clone()), ros);
        config.chains.push(chain);
        (a, b) = (read(paths[0], &config)?, read(paths[1], &config)?);
        found = trials(&reader, &a, &b);
    }
    let (changed, without) = match found {
        Ok([a, b]) => {
            let (gated, settings, notes) = compare(gating, &[a], &[b])?;
            (Some((gated, settings, notes)), String::new())
        }
        // A chain that was asked for by name must be there.
        Err(error) if !is_named && is_without(&error) => (None, format!("no hop is compared: {error}")),
        Err(error) => return Err(error),
    };
    let changes = changed.as_ref().map(|(gated, _, notes)| GateShown {
        kind: "compare",
        a: &a.0,
        b: &b.0,
        outcome: &gated.outcome,
        noise: &[],
        elapsed_s: None,
        seed: None,
        terms: Terms { notes, ..Terms::default() },
    });
    let named = [&a, &b].map(|(name, analysis)| Named { name, analysis });
    write(&TwoShown { recordings: named, changes, without: &without, caveat: &caveat })?;
    Ok(if a.1.has_loss() || b.1.has_loss() { Done::DataLost } else { Done::Fine })
}

/// The chain of the points that the messages of both pass, where they pass others besides: as of one program that is arranged in two ways.
fn chain_of_both(a: &Trial, b: &Trial) -> Option<DeclaredChain> {
    let points = a.points_of_both(b);
    let ([first, .., last], true) = (points.as_slice(), a.points != b.points) else { return None };
    let name = if a.chain == b.chain { a.chain.clone() } else { format!("{first} → {last}") };
    Some(DeclaredChain { name, points, deadline_ns: a.deadline_ns.or(b.deadline_ns) })
}
