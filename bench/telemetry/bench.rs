//! What a telemetry log costs: ours, and the ways of others, in one run, in turns.
//!
//! `log_bench run [--quick]` starts this program again for each turn (`loop KIND …`, `produce …`), and writes
//! `docs/proof/telemetry.md` and `results.md` here. Each contender logs the same 2000 doubles 400 times a second; what the loop itself costs is measured by a
//! turn that logs nothing, and taken off.

#[path = "contenders.rs"]
mod contenders;
#[path = "page.rs"]
mod page;
#[path = "producer.rs"]
mod producer;
#[path = "signal.rs"]
mod signal;
#[path = "sizes.rs"]
mod sizes;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use serde_json::Value;

/// Contenders with a process each, in the words of the page.
pub const CONTENDERS: [(&str, &str); 8] = [
    ("none", "nothing (the loop alone)"),
    ("taut", "taut: one copy, recorded by another process"),
    ("mcap", "plain Rust `mcap` writer in the loop"),
    ("mutex", "snapshot under a mutex, writer thread (data_tamer's way)"),
    ("jsonl", "JSON lines (serde_json) in the loop"),
    ("python", "plain Python `mcap` writer in the loop"),
    ("stored", "taut with `--compression none`"),
    ("idle", "`taut record` beside the loop, which logs nothing"),
];

/// One turn of one contender.
#[derive(Clone, Debug)]
pub struct Turn {
    /// CPU time of all that logs, per second of the run: all but what the loop's thread spent between the calls.
    pub cpu_share: f64,
    /// Of the recorder's process alone.
    pub recorder_share: f64,
    /// Nanoseconds of the call in the loop: p50, p99, p99.9, largest.
    pub call_ns: [f64; 4],
    /// Calls.
    pub n: u64,
    /// Length of what was written.
    pub file_bytes: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["run"] => run(20.0, 5, 15.0),
        ["run", "--quick"] => run(2.0, 1, 1.0),
        ["loop", kind, seconds, file] => contenders::run(kind, seconds.parse()?, Path::new(file)),
        ["produce", seconds] => producer::run(seconds.parse()?, producer::ALL_SIZES, producer::RATE_HZ),
        ["produce", seconds, values, hz] => producer::run(seconds.parse()?, &[values.parse()?], hz.parse()?),
        _ => Err("usage: log_bench run [--quick] | produce SECONDS [VALUES HZ]".into()),
    }
}

fn run(seconds: f64, rounds: usize, produce_s: f64) -> Result<(), Box<dyn std::error::Error>> {
    let began = Instant::now();
    let folder = tempfile::tempdir()?;
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); CONTENDERS.len()];
    for round in 0..rounds {
        for step in 0..CONTENDERS.len() {
            // Each round begins with another one.
            let at = (step + round) % CONTENDERS.len();
            eprintln!("{:4.0} s  round {} of {rounds}: {}", began.elapsed().as_secs_f64(), round + 1, CONTENDERS[at].0);
            turns[at].push(turn(CONTENDERS[at].0, seconds, folder.path())?);
        }
    }
    eprintln!("{:4.0} s  the call by size", began.elapsed().as_secs_f64());
    let file = folder.path().join("produce.mcap");
    let output = recorded(&file, "zstd", &["produce", &produce_s.to_string()])?;
    let calls: Value = serde_json::from_str(&output)?;
    eprintln!("{:4.0} s  compression and reading", began.elapsed().as_secs_f64());
    let sizes = sizes::measure(&folder.path().join("taut.mcap"))?;
    let (page, results) = page::page(&turns, &calls, &sizes, seconds, rounds);
    for (path, text) in [("docs/proof/telemetry.md", page), ("bench/telemetry/results.md", results)] {
        std::fs::write(path, &text)?;
        eprintln!("{:4.0} s  wrote {path}", began.elapsed().as_secs_f64());
        print!("{text}");
    }
    Ok(())
}

fn turn(kind: &str, seconds: f64, folder: &Path) -> Result<Turn, Box<dyn std::error::Error>> {
    let file = folder.join(format!("{kind}.mcap"));
    let seconds = seconds.to_string();
    let path = file.display().to_string();
    let output = match kind {
        "taut" => recorded(&file, "zstd", &["loop", kind, &seconds, &path])?,
        "stored" => recorded(&file, "none", &["loop", "taut", &seconds, &path])?,
        "idle" => recorded(&file, "zstd", &["loop", "none", &seconds, &path])?,
        "python" => said(Command::new(".venv/bin/python").args(["bench/telemetry/plain_mcap.py", &seconds, &path]))?,
        _ => said(Command::new(std::env::current_exe()?).args(["loop", kind, &seconds, &path]))?,
    };
    let got: Value = serde_json::from_str(&output)?;
    let number = |key: &str| got[key].as_f64().unwrap_or(f64::NAN);
    let wall_ns = number("wall_ns");
    let recorder_ns = if matches!(kind, "taut" | "stored" | "idle") { recorder_cpu_ns(&file)? } else { 0.0 };
    Ok(Turn {
        cpu_share: (number("cpu_ns") + recorder_ns) / wall_ns,
        recorder_share: recorder_ns / wall_ns,
        call_ns: ["p50", "p99", "p999", "max"].map(number),
        n: number("n") as u64,
        file_bytes: std::fs::metadata(&file).map_or(0, |m| m.len()),
    })
}

/// This program under `taut record`, without kernel events: telemetry alone is what is asked about.
fn recorded(file: &Path, compression: &str, arguments: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
    // This one is in the folder `examples` beside it.
    let own = std::env::current_exe()?;
    let built = own.parent().and_then(Path::parent).ok_or("this program is in no folder")?;
    let mut command = Command::new(built.join("taut"));
    command.args(["record", "-q", "--tier", "stamps", "--compression", compression, "-o"]).arg(file);
    command.arg("--").arg(own);
    said(command.args(arguments))
}

fn said(command: &mut Command) -> Result<String, Box<dyn std::error::Error>> {
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn recorder_cpu_ns(file: &PathBuf) -> Result<f64, Box<dyn std::error::Error>> {
    let contents = taut_recording::read(&std::fs::read(file)?, &mut |_| {})?;
    let ending = contents.ending.ok_or("the recording has no end")?;
    if ending.lost_telemetry > 0 {
        return Err(format!("{} messages were lost", ending.lost_telemetry).into());
    }
    Ok(ending.recorder_cpu_ns as f64)
}
