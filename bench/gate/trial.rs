//! `gate_trial RECORDING`: the trial that a recording is, as a gate keeps it, and every message's time in µs, as JSON.

use std::path::Path;

use taut_analysis::{Analyzer, Config, Sides, Spent};
use taut_gate::{Trial, Wanted};

fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    match measure(Path::new(&path)) {
        Ok(line) => println!("{line}"),
        Err(error) => {
            eprintln!("gate_trial: {path}: {error}");
            std::process::exit(2);
        }
    }
}

fn measure(path: &Path) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(path)?;
    let length = bytes.len() as u64;
    let mut config = Config::default();
    config.explain.sides = true;
    config.explain.worst = 0;
    let mut analyzer = Analyzer::new(config);
    let contents = taut_recording::read(&bytes, &mut |record| analyzer.record(&record))?;
    let damage = contents.damage.iter().map(ToString::to_string).collect();
    let analysis = analyzer.finish(contents.info, contents.ending, damage, length)?;
    let trial = Trial::of("trial", &analysis, &Wanted::default())?;
    let chain = analysis.chains.iter().find(|chain| chain.name == trial.chain);
    let sides = chain.and_then(|chain| chain.explained.sides.as_ref());
    let us = |of: fn(&Spent) -> u64| sides.map(|sides| times_us(sides, of)).unwrap_or_default();
    Ok(serde_json::json!({
        "trial": trial,
        "total_us": us(|spent| spent.total_ns),
        "own_us": us(|spent| spent.total_ns - spent.machine_ns),
        "work_us": us(|spent| spent.work_ns),
        "recording_bytes": length,
    }))
}

/// Of every message from the first to the last point, in order of their start.
fn times_us(sides: &Sides, of: fn(&Spent) -> u64) -> Vec<u64> {
    sides.spent.chunks_exact(sides.hops.max(1)).map(|row| row.iter().map(of).sum::<u64>() / 1000).collect()
}
