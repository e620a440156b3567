//! A probe beside a recorded program: stamps into the same session, so that a report can tell the machine's lateness
//! from the program's.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};
use taut_wakeup::{Plan, Policy, Settings, allowed_cpus};

use crate::{exit::Done, stop};

/// Longer than any recording; the program's end ends it.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The words that run a command with a probe beside it.
pub fn words(command: &[OsString]) -> Result<Vec<OsString>> {
    let mut words = vec![std::env::current_exe().context("this program")?.into_os_string()];
    words.extend(["wakeup", "beside", "--"].map(OsString::from));
    words.extend_from_slice(command);
    Ok(words)
}

/// Starts a probe as a child, then becomes the command: the recorded tree has both, and the command's end ends both.
/// Without a command it is the probe.
pub fn run(of: Option<i32>, command: &[OsString]) -> Result<Done> {
    let Some((program, arguments)) = command.split_first() else {
        return probe(of.context("--of names the process that the probe ends with")?);
    };
    let quiet = || Stdio::null();
    let this = std::env::current_exe().context("this program")?;
    // Not waited for: it dies with the process that this one becomes.
    let mut probe = Command::new(this);
    probe.args(["wakeup", "beside", "--of", &std::process::id().to_string()]);
    if let Err(error) = probe.stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn() {
        say!("taut: warning: no probe beside the program: {error}");
    }
    let source = Command::new(program).args(arguments).exec();
    let command = program.to_string_lossy().into_owned();
    Err(match source.kind() {
        std::io::ErrorKind::NotFound => taut_capture::Error::CommandNotFound { command }.into(),
        _ => taut_capture::Error::CommandFailed { command, source }.into(),
    })
}

/// Probes all CPUs: real-time where this user may, so that the program's own threads are not what makes it late.
fn probe(of: i32) -> Result<Done> {
    // A command that has ended by now, as `false` has, sends no signal any more.
    match taut_wakeup::end_with(of) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => return Ok(Done::Fine),
        other => other.context("prctl")?,
    }
    let stop = stop::on(&[SIGINT, SIGTERM])?;
    let plan = |policy| Plan {
        variants: vec![(String::new(), Settings { cpus: allowed_cpus(), policy, ..Settings::default() })],
        duration: FOREVER,
        rounds: 1,
        load_worker: Vec::new(),
        intervals: false,
        live: false,
    };
    match taut_wakeup::run(&plan(Policy::Fifo), &stop.flag, &mut |_| {}) {
        Err(error) if error.is_permission() => taut_wakeup::run(&plan(Policy::Other), &stop.flag, &mut |_| {})?,
        other => other?,
    };
    Ok(Done::Fine)
}
