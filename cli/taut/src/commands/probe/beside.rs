//! A probe beside a recorded program: stamps into the same session, so that a report can tell the machine's lateness
//! from the program's.

use std::{
    process::{Child, Command, Stdio},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use anyhow::{Context, Result};
use taut_capture::Started;
use taut_probe::{Plan, Policy, Settings, allowed_cpus};

use crate::exit::Done;

/// Longer than any recording; the recorder's end ends it.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Starts it in the recording's session.
pub fn beside(started: &Started) -> Result<Child> {
    let session = started.session.as_ref().context("the recorded process has no session to stamp into")?;
    let program = std::env::current_exe().context("this program")?;
    let quiet = || Stdio::null();
    Command::new(program)
        .args(["probe", "beside"])
        .env("TAUT_SESSION", session)
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet())
        .spawn()
        .context("cannot start it")
}

/// Probes all CPUs: real-time where this user may, so that the program's own threads are not what makes it late.
pub fn run() -> Result<Done> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).context("prctl")?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context("signal handler")?;
    }
    let plan = |policy| Plan {
        variants: vec![(String::new(), Settings { cpus: allowed_cpus(), policy, ..Settings::default() })],
        duration: FOREVER,
        rounds: 1,
        load_worker: Vec::new(),
        intervals: false,
    };
    match taut_probe::run(&plan(Policy::Fifo), &stop, &mut |_| {}) {
        Err(error) if error.is_permission() => taut_probe::run(&plan(Policy::Other), &stop, &mut |_| {})?,
        other => other?,
    };
    Ok(Done::Fine)
}
