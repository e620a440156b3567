//! `taut doctor --measure`: wakeups without and with a remedy, in turn, and the machine as it was at the end.

use std::{
    io::IsTerminal,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use taut_doctor::{Applied, Diagnosis, Finding, Measured, Remedy, Round};
use taut_stats::Sketch;
use taut_wakeup::{Plan, Settings};

use super::{Args, check, print, say};
use crate::{
    exit::Done,
    format::Format,
    output,
    stop::{self, Stop},
};

/// Measures the remedy of one check, prints what it did.
pub fn measure(id: &str, diagnosis: &Diagnosis, args: &Args) -> Result<Done> {
    let id = check(id)?.id;
    let finding = diagnosis.findings.iter().find(|finding| finding.id == id).context("every check has a finding")?;
    let remedy = Applied::remedy_of(finding)?;
    if !args.allow_changes {
        bail!("{id}: this would change the machine ({}) and put it back: add --allow-changes", remedy.text());
    }
    let stop = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    let measured = rounds(finding, remedy, &diagnosis.asked.cpus, args, &stop)?;
    let text = match args.format {
        Format::Json => format!("{:#}\n", taut_report::doctor_json(diagnosis, Some(&measured))),
        form => output::rendered(&taut_report::doctor_measured_document(&measured), form, args.output.as_deref()),
    };
    print(args, &text)?;
    Ok(if measured.interrupted { stop.done() } else { Done::Fine })
}

fn rounds(finding: &Finding, remedy: &Remedy, asked: &[u32], args: &Args, stop: &Stop) -> Result<Measured> {
    let cpus = if asked.is_empty() { taut_wakeup::allowed_cpus() } else { asked.to_vec() };
    for command in remedy.undo_commands() {
        say(&format!("puts back at the end, as you would by: {command}"));
    }
    let settings = Settings { cpus: cpus.clone(), policy: args.policy, ..Settings::default() };
    let interval_ns = settings.interval.as_nanos() as u64;
    let turn = args.duration / args.rounds / 2;
    let plan = Plan {
        variants: vec![(String::new(), settings)],
        duration: turn,
        rounds: 1,
        load_worker: Vec::new(),
        intervals: false,
        live: false,
    };
    let bar = bar(args.rounds, turn);
    let (mut before, mut after) = (Sketch::default(), Sketch::default());
    let mut rounds = Vec::new();
    for _ in 0..args.rounds {
        let without = probe(&plan, &stop.flag)?;
        if stop.flag.load(Ordering::Relaxed) {
            break;
        }
        let applied = Applied::new(remedy, Path::new("/"))?;
        let with = probe(&plan, &stop.flag);
        applied.put_back()?;
        let with = with?;
        if stop.flag.load(Ordering::Relaxed) {
            break;
        }
        rounds.extend(round(&without, &with));
        before.add(&without);
        after.add(&with);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Measured {
        id: finding.id,
        remedy: remedy.text(),
        cpus,
        policy: args.policy.to_string(),
        interval_ns,
        interrupted: rounds.len() < args.rounds as usize,
        rounds,
        before: before.distribution(),
        after: after.distribution(),
    })
}

/// Wakeups of one turn.
fn probe(plan: &Plan, stop: &Arc<AtomicBool>) -> Result<Sketch> {
    let findings = taut_wakeup::run(plan, stop, &mut |_| {})?;
    let variant = findings.variants.into_iter().next().context("one variant was asked for")?;
    Ok(variant.all.wakeups)
}

fn round(without: &Sketch, with: &Sketch) -> Option<Round> {
    Some(Round {
        before_p50_ns: without.quantile(0.5)?,
        after_p50_ns: with.quantile(0.5)?,
        before_p99_ns: without.quantile(0.99)?,
        after_p99_ns: with.quantile(0.99)?,
    })
}

fn bar(rounds: u32, turn: Duration) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(u64::from(rounds));
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} rounds {msg}").expect("a fixed template"));
    bar.set_message(format!("of 2 × {:.1} s", turn.as_secs_f64()));
    bar.tick();
    bar
}
