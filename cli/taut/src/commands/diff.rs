//! `taut diff`: what changed between two recordings, or two sets of trials; hop by hop, cause by cause, whose doing.

use std::path::PathBuf;

use anyhow::Result;
use taut_gate::{Most, noise};
use taut_recording::Shown;
use taut_report::{GateShown, Terms};

use super::gate::{compare, stored::Reader, written::Outputs};
use crate::{config, exit::Done};

/// Say what changed from A to B, hop by hop and cause by cause, and whose doing it was.
///
/// Two recordings are described; a verdict needs trials, so give two sets.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut diff before.mcap after.mcap\n  taut diff trials/baseline.jsonl trials/candidate.jsonl\n  taut diff old-runs/ new-runs/ --format markdown"
)]
pub struct Args {
    /// The baseline: a recording, a folder of recordings, or trials saved by `taut gate --save`.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The candidate, likewise.
    #[arg(value_name = "B")]
    b: PathBuf,
    /// The chain to compare [default: the one with the most messages].
    #[arg(long, value_name = "NAME")]
    chain: Option<String>,
    /// Chains and metrics; ./taut.toml is used when it exists.
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
}

/// Compares and prints; a verdict changes no exit code, that is what `taut gate` is for.
pub fn run(args: &Args) -> Result<Done> {
    let gating = config::load_gate(args.config.as_deref())?;
    let reader = Reader::new(&gating.analysis, args.chain.clone());
    let (a, b) = (reader.set(std::slice::from_ref(&args.a))?, reader.set(std::slice::from_ref(&args.b))?);
    let (gated, settings, notes) = compare(&gating, &a, &b)?;
    let (pairs, most) = (gated.outcome.pairs, Most::of(gated.outcome.pairs));
    let floor = if pairs > 1 { noise(&settings, &gated, &[], most) } else { Vec::new() };
    let (a, b) = (args.a.shown(), args.b.shown());
    let shown = GateShown {
        a: &a,
        b: &b,
        outcome: &gated.outcome,
        noise: &floor,
        elapsed_s: None,
        seed: None,
        terms: Terms { notes: &notes, ..Terms::default() },
    };
    args.outputs.gate(&shown, "diff")?;
    Ok(Done::Fine)
}
