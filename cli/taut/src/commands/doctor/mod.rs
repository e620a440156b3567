//! `taut doctor`: the settings of this machine that affect a periodic loop, and what to change.

mod measure;
mod subject;

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use taut_doctor::{Diagnosis, Root, State, examine};
use taut_recording::Shown;

use crate::{
    exit::Done,
    format::{self, Format},
    output, time,
};

/// Check settings that affect a periodic loop, and suggest changes; reads only.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut doctor\n  taut doctor --cpus 2,3 --interface eth0 --tty /dev/ttyUSB0\n  taut doctor --fix > fix.sh\n  taut doctor --measure pm-qos --allow-changes\n\nExit codes: 0 fine; 1 a bad check with --strict; 2 bad usage or input; 3 --measure is not permitted."
)]
pub struct Args {
    /// CPUs of the loop, e.g. 2,3 [default: the isolated ones].
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// The loop's network interface.
    #[arg(long, value_name = "IF")]
    interface: Option<String>,
    /// The loop's serial port; not opened.
    #[arg(long, value_name = "TTY")]
    tty: Option<String>,
    /// The loop's process.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Only the checks named in this file, one a line.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["measure", "list"])]
    profile: Option<PathBuf>,
    /// Exit with 1 if any check is bad.
    #[arg(long, conflicts_with = "measure")]
    strict: bool,
    /// Print the remedies as a shell script with undo lines.
    #[arg(long, conflicts_with_all = ["format", "measure"])]
    fix: bool,
    /// Form of the result.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Markdown, Format::Json, Format::Html]))]
    format: Format,
    /// Output file [default: stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Measure wakeups with and without this check's remedy, then undo it.
    #[arg(long, value_name = "CHECK")]
    measure: Option<String>,
    /// With --measure: permit changing the machine meanwhile.
    #[arg(long, requires = "measure")]
    allow_changes: bool,
    /// With --measure: time of all rounds together.
    #[arg(long, default_value = "20s", value_parser = time::length, value_name = "TIME", requires = "measure")]
    duration: Duration,
    /// With --measure: rounds; six or more give an interval.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "N", requires = "measure")]
    rounds: u32,
    /// With --measure: policy of the threads: other, batch, fifo, rr.
    #[arg(long, default_value = "other", value_name = "POLICY", requires = "measure")]
    policy: taut_wakeup::Policy,
    /// List all checks and their good values.
    #[arg(long, conflicts_with_all = ["measure", "fix", "strict"])]
    list: bool,
    /// Write all that is read to a file, for --machine elsewhere.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["machine", "measure", "list"])]
    write_down: Option<PathBuf>,
    /// Examine a file of --write-down.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["measure", "list"])]
    machine: Option<PathBuf>,
}

/// Reads, examines, prints; measures if asked to.
pub fn run(args: &Args) -> Result<Done> {
    args.format.check_place(args.output.as_deref(), "-o doctor.html")?;
    if args.list {
        return print(args, &list(args)).map(|()| Done::Fine);
    }
    let root = match &args.machine {
        None => Root::live(),
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| path.shown())?;
            Root::recorded(&text).with_context(|| path.shown())?
        }
    };
    let asked = subject::of(args, &root)?;
    let mut diagnosis = examine(&root, &asked);
    if let Some(path) = &args.profile {
        let wanted = profile(path)?;
        diagnosis.findings.retain(|finding| wanted.contains(&finding.id));
    }
    if let Some(id) = &args.measure {
        return measure::measure(id, &diagnosis, args);
    }
    if let Some(path) = &args.write_down {
        output::write(&root.written_down(), Some(path))?;
        say!("wrote {}", path.shown());
    }
    print(args, &render(&diagnosis, args))?;
    Ok(if args.strict && diagnosis.count(State::Bad) > 0 { Done::Against } else { Done::Fine })
}

fn list(args: &Args) -> String {
    match args.format {
        Format::Json => format!("{:#}\n", taut_report::doctor_checks_json()),
        form => output::rendered(&taut_report::doctor_checks_document(), form, args.output.as_deref()),
    }
}

fn render(diagnosis: &Diagnosis, args: &Args) -> String {
    match args.format {
        _ if args.fix => taut_report::doctor_script(diagnosis),
        Format::Json => format!("{:#}\n", taut_report::doctor_json(diagnosis, None)),
        form => output::rendered(&taut_report::doctor_document(diagnosis), form, args.output.as_deref()),
    }
}

fn print(args: &Args, text: &str) -> Result<()> {
    output::write(text, args.output.as_deref())?;
    if let Some(path) = &args.output {
        say!("wrote {}", path.shown());
    }
    Ok(())
}

/// The checks of a profile: one a line, comments behind "#".
fn profile(path: &Path) -> Result<Vec<&'static str>> {
    let text = std::fs::read_to_string(path).with_context(|| path.shown())?;
    let words = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let found: Result<Vec<&str>> = words.filter(|word| !word.is_empty()).map(|word| Ok(check(word)?.id)).collect();
    let found = found.with_context(|| path.shown())?;
    if found.is_empty() {
        bail!("{}: it names no check; `taut doctor --list` has all", path.shown());
    }
    Ok(found)
}

/// One line of progress on stderr; a failed write is no error.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "taut: {line}");
}

/// The check of that name.
fn check(id: &str) -> Result<&'static taut_doctor::Check> {
    match taut_doctor::find(id) {
        Some(check) => Ok(check),
        None => {
            let like = taut_doctor::checks().find(|check| check.id.contains(id) || id.contains(check.id));
            let hint = like.map_or(String::new(), |check| format!("did you mean {}? ", check.id));
            bail!("{id}: no such check; {hint}`taut doctor --list` has all")
        }
    }
}
