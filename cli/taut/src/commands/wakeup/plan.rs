//! What to probe, from the command line: the settings, and their variants side by side.

use std::ffi::OsString;

use anyhow::{Result, bail};
use taut_wakeup::{Plan, Settings, allowed_cpus};

use super::Args;

/// Ways to sleep of a sweep: as Python ≥ 3.11 does, as Python ≤ 3.10 does, and without timer slack.
const SLEEPS: [&str; 3] = ["relative", "select", "timerfd"];
/// Turns that several variants take unasked: enough for intervals of a few dozen variants together.
const ROUNDS: u32 = 10;

/// The plan.
pub fn of(args: &Args) -> Result<Plan> {
    let settings = settings(args)?;
    let mut variants = vec![(String::new(), settings)];
    if args.aa {
        variants = ["A", "B"].map(|label| (label.to_owned(), variants[0].1.clone())).into();
    }
    for (key, values) in axes(args)? {
        variants = varied(&variants, &key, &values)?;
    }
    for (_, settings) in &variants {
        settings.check()?;
    }
    let several = variants.len() > 1;
    let own = std::process::id().to_string();
    let load_worker: Vec<OsString> =
        vec![std::env::current_exe()?.into(), "wakeup".into(), "load-worker".into(), own.into()];
    Ok(Plan {
        variants,
        duration: args.duration,
        rounds: args.rounds.unwrap_or(if several { ROUNDS } else { 1 }),
        load_worker,
        intervals: args.hlog.is_some(),
        live: super::live::is_wanted(args.quiet),
    })
}

/// The CPU that one question about the machine is asked on.
pub fn first_cpu(args: &Args) -> Result<u32> {
    let cpus = cpus(&args.cpus)?;
    Ok(cpus.first().copied().unwrap_or_else(|| allowed_cpus().first().copied().unwrap_or(0)))
}

fn settings(args: &Args) -> Result<Settings> {
    let cpus = cpus(&args.cpus)?;
    if args.pair && cpus.len() < 2 {
        bail!("--pair needs pinned probes on two CPUs at least; {} gives {}", args.cpus, cpus.len());
    }
    let mut settings = Settings {
        cpus,
        policy: args.policy,
        priority: args.priority,
        interval: args.interval,
        wake: args.wake,
        slack: args.slack,
        dma_latency_us: None,
        governor: None,
        lock_memory: !args.no_mlock,
        load: None,
    };
    if let Some(time) = args.dma_latency {
        settings = settings.with("dma-latency", &taut_wakeup::length(time))?;
    }
    if let (Some(load), true) = (&args.load, args.explain) {
        settings = settings.with("load", load)?;
    }
    Ok(settings)
}

/// What is varied, outermost first.
fn axes(args: &Args) -> Result<Vec<(String, Vec<String>)>> {
    let mut axes = Vec::new();
    if !args.sleep.is_empty() {
        axes.push(("wake".to_owned(), SLEEPS.map(str::to_owned).into()));
        axes.push(("interval".into(), args.sleep.iter().map(|length| taut_wakeup::length(*length)).collect()));
    }
    for vary in &args.vary {
        let Some((key, values)) = vary.split_once('=') else { bail!("--vary {vary}: write KEY=V1,V2") };
        axes.push((key.to_owned(), values.split(',').map(|value| value.trim().to_owned()).collect()));
    }
    if let (Some(load), false) = (&args.load, args.explain) {
        axes.push(("load".into(), vec!["none".into(), load.clone()]));
    }
    Ok(axes)
}

/// Each variant with each value.
fn varied(variants: &[(String, Settings)], key: &str, values: &[String]) -> Result<Vec<(String, Settings)>> {
    let mut all = Vec::new();
    for (label, settings) in variants {
        for value in values {
            let label = if label.is_empty() { format!("{key}={value}") } else { format!("{label} {key}={value}") };
            all.push((label, settings.clone().with(key, value)?));
        }
    }
    Ok(all)
}

/// "all", "any", or a list such as 1,3-5.
fn cpus(text: &str) -> Result<Vec<u32>> {
    match text {
        "all" => return Ok(allowed_cpus()),
        "any" => return Ok(Vec::new()),
        _ => {}
    }
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            bail!("--cpus {text}: write all, any, or a list such as 1,3-5");
        };
        if first > last || last > 65_535 {
            bail!("--cpus {text}: {part} is no range of CPUs");
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpus("3,0-1,1").unwrap(), [0, 1, 3]);
        assert!(cpus("any").unwrap().is_empty());
        for text in ["", "x", "3-1", "1,,2", "0-4294967295"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn variants_multiply() {
        let one = vec![(String::new(), Settings::default())];
        let ways = varied(&one, "wake", &["select".into(), "timerfd".into()]).unwrap();
        let all = varied(&ways, "interval", &["1ms".into(), "10ms".into()]).unwrap();
        let labels: Vec<&str> = all.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(labels[1], "wake=select interval=10ms");
        assert_eq!(all.len(), 4);
        assert!(varied(&one, "colour", &["red".into()]).is_err());
    }
}
