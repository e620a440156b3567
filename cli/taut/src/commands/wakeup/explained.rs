//! `taut wakeup --explain`: the probe runs as a recorded command, and its late wakeups are taken apart.

use std::{ffi::OsString, path::Path, time::Duration};

use anyhow::{Context, Result};
use taut_analysis::{Config, ExplainOptions};
use taut_capture::{Depth, Options, Target};
use taut_recording::{Compression, Shown};
use taut_wakeup::Findings;

use super::Args;
use crate::{analyse::analyse, exit::Done, scratch::Scratch};

/// How long each of the kernel's tracers watches, at most.
const TRACED_MAX: Duration = Duration::from_secs(5);

/// Records this very command without `--explain`, and explains the recording.
/// With how the probing process ended. The second result is that where it failed: it has said why.
pub fn measure(args: &Args) -> Result<Result<(Findings, Done), Done>> {
    // What is wrong with the settings is told by this process, in one line.
    super::plan::of(args)?;
    let folder = Scratch::new("taut-wakeup-")?;
    let (findings, kept) = (folder.path().join("findings.json"), folder.path().join("probe.mcap"));
    let recording = args.record.clone().unwrap_or(kept);
    let options = Options {
        output: recording.clone(),
        target: Target::Command(command(args, &findings)?),
        duration: None,
        from_first_stamp: None,
        tier: None,
        kernel_source: None,
        depth: Depth::Irq,
        profile: None,
        ring_records: None,
        durable: false,
        compression: Compression::default(),
        session: None,
        preload: None,
        taut_version: env!("CARGO_PKG_VERSION").to_owned(),
        host_name: None,
        flight: None,
    };
    let mut tier_reason = String::new();
    let recorded =
        taut_capture::record(&options, &mut |started| tier_reason = started.tier_reason.clone(), &mut |_| {})?;
    let done = match recorded.exit_code.unwrap_or(0) {
        0 => Done::Fine,
        code => Done::Forwarded(code.clamp(1, 255) as u8),
    };
    // One that was interrupted has left what it had found.
    if done != Done::Fine && !findings.exists() {
        return Ok(Err(done));
    }
    let text = std::fs::read_to_string(&findings).with_context(|| findings.shown())?;
    let mut found: Findings = serde_json::from_str(&text).context("findings")?;
    let over_ns = args.above.as_nanos() as u64;
    let explain = ExplainOptions { worst: 0, from_ns: Some(over_ns), ..ExplainOptions::default() };
    let analysis = analyse(&recording, &Config { explain, ..Config::default() })?;
    found.explained = taut_analysis::late_wakeups(&analysis, over_ns);
    let length = args.duration.min(TRACED_MAX);
    let cpus = super::plan::of(args)?.variants[0].1.cpus.clone();
    let stop = crate::stop::on(&[signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM])?;
    found.tracers =
        Some(taut_wakeup::tracers(Path::new(taut_wakeup::TRACEFS), &cpus, args.interval, length, &stop.flag));
    let done = if done == Done::Fine { stop.done() } else { done };
    found.machine.insert("command".into(), super::command());
    found.notes.extend((!tier_reason.is_empty()).then_some(tier_reason));
    found.notes.extend(recorded.warnings);
    if let Some(path) = &args.record {
        say!("taut: kept {}; next: taut explain {0}", path.shown());
    }
    Ok(Ok((found, done)))
}

/// The command line of the process that probes: this one's, with what belongs to the outer process taken out.
fn command(args: &Args, findings: &Path) -> Result<Vec<OsString>> {
    let mut words = vec![std::env::current_exe()?.into_os_string(), "wakeup".into()];
    let mut put = |key: &str, value: String| words.extend([format!("--{key}").into(), value.into()]);
    put("duration", taut_wakeup::length(args.duration));
    put("interval", taut_wakeup::length(args.interval));
    put("cpus", args.cpus.clone());
    put("policy", args.policy.to_string());
    put("priority", args.priority.to_string());
    put("wake", args.wake.to_string());
    put("findings", findings.shown());
    if let Some(slack) = args.slack {
        put("slack", taut_wakeup::length(slack));
    }
    if let Some(time) = args.dma_latency {
        put("dma-latency", taut_wakeup::length(time));
    }
    if let Some(load) = &args.load {
        // All the time: a variant by itself.
        put("vary", format!("load={load}"));
    }
    if let Some(path) = &args.hlog {
        put("hlog", path.shown());
    }
    let flags =
        [(args.no_mlock, "--no-mlock"), (args.throttle, "--throttle"), (args.quiet, "--quiet"), (args.pair, "--pair")];
    words.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag.into()));
    Ok(words)
}
