//! `gate_trial RECORDING`: the trial that a recording is, as a gate keeps it, and every message's times, as JSON: end to end, and in
//! each hop that does not vanish, so that another figure can be tried without recording again.

use std::path::Path;

use taut_analysis::{Analysis, Analyzer, Config, Sides, Spent, probe_chain};
use taut_gate::{HopTimes, Trial, TrialOptions};

/// Hops with less work, by the median, are left out of `messages`: they neither vote for a tail nor slow a message.
const LEAST_WORK_NS: f64 = 5_000.0;
/// Wakes of the probe that are less late are left out of `late`.
const LATE_NS: u64 = 100_000;

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
    let trial = Trial::of("trial", &analysis, &TrialOptions::default())?;
    let chain = analysis.chains.iter().find(|chain| chain.name == trial.chain);
    let sides = chain.and_then(|chain| chain.explained.sides.as_ref());
    let us = |of: fn(&Spent) -> u64| sides.map(|sides| times_us(sides, of)).unwrap_or_default();
    Ok(serde_json::json!({
        "total_us": us(|spent| spent.total_ns),
        "own_us": us(|spent| spent.total_ns - spent.machine_ns),
        "work_us": us(|spent| spent.work_ns),
        "messages": sides.map(|sides| messages(sides, &trial)),
        "late": sides.map(|sides| late(sides, &analysis)),
        "recording_bytes": length,
        "trial": trial,
    }))
}

/// Of every message from the first to the last point, in order of their start.
fn times_us(sides: &Sides, of: fn(&Spent) -> u64) -> Vec<u64> {
    sides.messages().map(|row| row.iter().map(of).sum::<u64>() / 1000).collect()
}

/// When each message started, in µs after the first, and by hop what it spent there: all of it and the machine's part in µs, work in
/// tenths of a µs.
fn messages(sides: &Sides, trial: &Trial) -> serde_json::Value {
    let of_hop =
        |hop: usize, of: fn(&Spent) -> u64| -> Vec<u64> { sides.messages().map(|row| of(&row[hop])).collect() };
    let hop = |(at, hop): (usize, &HopTimes)| {
        hop.times.work.p50.filter(|work_ns| *work_ns >= LEAST_WORK_NS)?;
        Some(serde_json::json!({
            "hop": at,
            "total_us": of_hop(at, |spent| spent.total_ns / 1000),
            "machine_us": of_hop(at, |spent| spent.machine_ns / 1000),
            "work_100ns": of_hop(at, |spent| spent.work_ns / 100),
        }))
    };
    let start_us: Vec<u64> = sides.start_ns.iter().map(|at| (at - first_ns(sides)) / 1000).collect();
    let hops: Vec<serde_json::Value> = trial.hops.iter().enumerate().filter_map(hop).collect();
    serde_json::json!({ "start_us": start_us, "hops": hops })
}

/// Late wakes of the probe beside the program: when they were due, in µs after the first message, and how late they were, in µs.
fn late(sides: &Sides, analysis: &Analysis) -> Vec<(i64, u64)> {
    let probe = probe_chain(analysis).into_iter().flat_map(|chain| &chain.series);
    let due_us = |at: u64| (analysis.totals.start_monotonic_ns + at) as i64 / 1000 - first_ns(sides) as i64 / 1000;
    probe.filter(|(_, late)| *late >= LATE_NS).map(|(at, late)| (due_us(*at), late / 1000)).collect()
}

fn first_ns(sides: &Sides) -> u64 {
    sides.start_ns.first().copied().unwrap_or(0)
}
