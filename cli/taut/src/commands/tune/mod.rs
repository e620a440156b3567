//! `taut tune`: from the causes of late messages to a remedy that is measured on this machine.

mod first;
mod pace;
mod trials;
mod written;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use taut_recording::Shown;
use taut_report::{tune_document, tune_json};
use taut_tune::{Answer, Candidates, FEWEST_TRIALS, Facts, Journal, Settings, candidates, search, within};

use crate::{
    config,
    exit::{self, Done},
    format::{self, Format},
    output,
    ros_filter::RosFilter,
    time,
};

use super::gate::{
    interrupt::Interrupt,
    live::{Live, Runs},
    random_seed,
    stored::Reader,
};
use first::First;
use trials::Trials;

const UNKNOWN: &str = "the recording does not show why the tail is late, so remedies for common causes are tried";
const BLIND: &str = "the recording does not show why the tail is late (kernel events need root or CAP_PERFMON), so remedies for common causes are \
                     tried";
/// The first recording's length is a share of the time: where it holds no tail, the time is made so many times longer.
const LONGER: f64 = 4.0;

/// Find a remedy for late messages, and measure its gain on this machine.
///
/// Tries remedies for the slowest messages' causes in turns with the unchanged command, and confirms the best. Nothing
/// stays changed.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut tune -- ./robot --rate 1000\n  taut tune --chain setpoints --allow-changes --files tuned -- python -m workloads.teleop\n  taut tune --undo\n\nExit codes: 0 a remedy is recommended, or none helps; 2 bad usage or input; 3 every remedy needs a permission; 4 not enough evidence in the time."
)]
pub struct Args {
    /// Command to tune; each trial runs it.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Only this chain [default: the one with the most messages].
    #[arg(long, value_name = "NAME")]
    chain: Option<String>,
    /// End with a result within this time.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time::length)]
    max_time: Duration,
    /// Stop each trial this long after its first message [default: as short as the figures allow].
    #[arg(long, value_name = "TIME", value_parser = time::length)]
    duration: Option<Duration>,
    /// Reject remedies that slow this chain:NAME or loop:NAME; repeatable [default: all others].
    #[arg(long, value_name = "WHAT")]
    protect: Vec<String>,
    /// Try only this remedy (docs/reference/tune.md); repeatable.
    #[arg(long, value_name = "REMEDY", value_parser = remedy)]
    remedy: Vec<String>,
    /// Also try changes of other processes and machine settings, undone after each trial.
    #[arg(long)]
    allow_changes: bool,
    /// Seed of the order of trials [default: random].
    #[arg(long)]
    seed: Option<u64>,
    /// Chains and deadlines [default: ./taut.toml].
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
    /// Write the result in all forms, and files that apply it, to this folder.
    #[arg(long, value_name = "FOLDER", value_parser = crate::folder::named())]
    files: Option<PathBuf>,
    /// Form of the result.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Markdown, Format::Json, Format::Html]))]
    format: Format,
    /// Output file [default: stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Undo what `taut tune` left changed or applied.
    #[arg(long, conflicts_with_all = ["command", "apply"])]
    undo: bool,
    /// Apply the changes outside the program that this result (JSON) recommends, until --undo.
    #[arg(long, value_name = "RESULT", conflicts_with = "command")]
    apply: Option<PathBuf>,
    /// No progress.
    #[arg(short, long)]
    quiet: bool,
    /// Becomes the command of a trial.
    #[arg(long, hide = true, value_name = "FILE")]
    launch: Option<PathBuf>,
    /// Undoes a journal when the process that made it is gone.
    #[arg(long, hide = true, value_name = "JOURNAL")]
    restorer: Option<PathBuf>,
    /// The same, as its second process.
    #[arg(long, hide = true)]
    stay: bool,
}

impl Args {
    /// What a further tuning needs, too: all that decides what is tuned, against what, and with what.
    fn again(&self) -> Vec<String> {
        let length = |of: &Duration| format!("{}ms", of.as_millis());
        let path = |of: &PathBuf| of.shown();
        let one = |name: &str, value: Option<String>| value.map(|value| [name.to_owned(), value]);
        let options = [
            one("--chain", self.chain.clone()),
            one("--duration", self.duration.as_ref().map(length)),
            one("--config", self.config.as_ref().map(path)),
            one("--files", self.files.as_ref().map(path)),
        ];
        let protected = self.protect.iter().map(|what| ["--protect".to_owned(), what.clone()]);
        let changes = self.allow_changes.then(|| "--allow-changes".to_owned());
        options.into_iter().flatten().chain(protected).flatten().chain(changes).collect()
    }
}

/// Tunes, or does what one of its processes does.
pub fn run(args: &Args) -> Result<Done> {
    if let Some(file) = &args.launch {
        return Ok(launch(file, &args.command));
    }
    if let Some(journal) = &args.restorer {
        return restorer(journal, args.stay);
    }
    match (&args.apply, args.undo) {
        (_, true) => undo(),
        (Some(result), _) => apply(result),
        (None, false) if args.command.is_empty() => {
            bail!("no command to tune: give one behind --, e.g. taut tune -- ./robot")
        }
        (None, false) => tune(args),
    }
}

/// A remedy's name.
fn remedy(name: &str) -> Result<String, String> {
    let known: Vec<&str> = taut_tune::TABLE.iter().map(|row| row.id).collect();
    match known.contains(&name.split(':').next().unwrap_or_default()) {
        true => Ok(name.to_owned()),
        false => Err(format!("there are {}", known.join(", "))),
    }
}

/// Becomes the command; what comes back is why it could not.
fn launch(file: &Path, command: &[OsString]) -> Done {
    let error = taut_tune::launch(file, command);
    say!("taut: {error}");
    let is_missing = |source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound;
    Done::Forwarded(match &error {
        taut_tune::Error::Command { source, .. } if is_missing(source) => exit::COMMAND_NOT_FOUND,
        taut_tune::Error::Command { .. } => exit::COMMAND_FAILED,
        _ => exit::RECORD_FAILED,
    })
}

fn restorer(journal: &Path, stays: bool) -> Result<Done> {
    let again: Vec<OsString> = if stays { Vec::new() } else { words(&["tune", "--stay", "--restorer"])? };
    let undone = taut_tune::restore_when_gone(journal, &again)?;
    undone.restored.iter().for_each(|what| say!("taut tune: put back: {what}"));
    undone.failed.iter().for_each(|what| say!("taut tune: {what}"));
    Ok(if undone.failed.is_empty() { Done::Fine } else { Done::Against })
}

/// This program with some arguments.
fn words(arguments: &[&str]) -> Result<Vec<OsString>> {
    let taut = std::env::current_exe().context("this program")?;
    Ok(std::iter::once(taut.into_os_string()).chain(arguments.iter().map(OsString::from)).collect())
}

fn undo() -> Result<Done> {
    let undone = taut_tune::undo_all(&taut_tune::folder()?)?;
    for what in &undone.restored {
        output::write(&format!("put back: {what}\n"), None)?;
    }
    if undone.restored.is_empty() && undone.failed.is_empty() {
        output::write("nothing to undo\n", None)?;
    }
    match undone.failed.first() {
        Some(first) => bail!("{first}"),
        None => Ok(Done::Fine),
    }
}

fn apply(result: &Path) -> Result<Done> {
    let text = std::fs::read_to_string(result).with_context(|| result.shown())?;
    let value: serde_json::Value = serde_json::from_str(&text).with_context(|| result.shown())?;
    let changes = value.pointer("/recommended/changes").cloned().unwrap_or_default();
    let outside: Option<Vec<taut_tune::Outside>> = serde_json::from_value(changes["outside"].clone()).ok();
    let Some(outside) = outside else {
        bail!("{}: no result of taut tune with a recommendation", result.shown());
    };
    if outside.is_empty() {
        bail!("{}: its recommendation changes only the program: use the files of --files", result.shown());
    }
    let mut journal = Journal::create(&taut_tune::folder()?, &[])?;
    for change in &outside {
        if matches!(change, taut_tune::Outside::Awake) {
            bail!("{change}: it lasts as long as a process holds it; see the shell prefix of --files");
        }
        change.apply(&mut journal)?;
        if let Some(why) = change.amiss() {
            bail!("{change}: {why}");
        }
        output::write(&format!("applied: {change}\n"), None)?;
    }
    journal.keep()?;
    output::write("taut tune --undo puts it back\n", None)?;
    Ok(Done::Fine)
}

/// What `taut doctor` finds: where a remedy moves something away from the loop's CPU, that is the last one; else all CPUs are looked at.
fn findings() -> Vec<taut_doctor::Finding> {
    let cpus: Vec<u32> = taut_lab::Cpus::permitted().iter().collect();
    let own: Vec<u32> = cpus.last().filter(|_| cpus.len() > 1).into_iter().copied().collect();
    let examine = |cpus: Vec<u32>, of_loop_cpu: bool| {
        let asked = taut_doctor::Asked { cpus, ..taut_doctor::Asked::default() };
        let all = taut_doctor::examine(&taut_doctor::Root::live(), &asked).findings.into_iter();
        all.filter(move |finding| taut_tune::OF_LOOP_CPU.contains(&finding.id) == of_loop_cpu)
    };
    examine(Vec::new(), false).chain(examine(own, true)).collect()
}

fn tune(args: &Args) -> Result<Done> {
    let began = Instant::now();
    written::is_possible(args.files.as_deref(), args.output.as_deref())?;
    let mut gating = config::load_gate(args.config.as_deref())?;
    gating.analysis.explain.worst = 0;
    gating.analysis.explain.sides = true;
    let interrupt = Interrupt::listen()?;
    let seed = args.seed.unwrap_or_else(random_seed);
    let runs = Runs {
        duration: args.duration,
        max_time: args.max_time,
        seed,
        wakeup: true,
        depth: "all".into(),
        keep: None,
        quiet: args.quiet,
    };
    let live = Live::new(&runs, Reader::new(&gating.analysis, args.chain.clone(), &RosFilter::default()), &interrupt)?;
    let taut = std::env::current_exe().context("this program")?;
    let mut trials = Trials::new(live, gating.analysis.clone(), args, seed, began)?;
    let said = |text: &str| {
        if !args.quiet {
            say!("taut: {text}");
        }
    };
    said("recording the command as it is");
    let first = First::record(&mut trials, args)?;
    let facts = Facts::gather(&taut, args.allow_changes, &findings())
        .of_command(&args.command[0].to_string_lossy())
        .of_program(first.run());
    let has_ros = first.analysis.totals.ros_events > 0;
    let Candidates { remedies, left } = candidates(first.chain(), has_ros, &facts, &args.remedy);
    let mut tuned = first.described(args);
    tuned.seed = seed;
    tuned.options = args.again();
    tuned.within = within(first.chain());
    tuned.left = left;
    if first.is_unknown() && args.remedy.is_empty() {
        let has_events = first.analysis.info.tier == taut_recording::Tier::Full;
        tuned.notes.push(if has_events { UNKNOWN } else { BLIND }.into());
        if tuned.left.is_empty() && remedies.is_empty() {
            bail!(exit::NotPermitted(format!("kernel events are needed to know the causes; {}", facts.grant)));
        }
    }
    tuned.remedies = remedies;
    if let Some(note) = first.too_few(args) {
        tuned.notes.push(note);
        tuned.needed_s = Some(args.max_time.as_secs_f64() * LONGER);
        tuned.is_out = true;
    }
    if !tuned.remedies.is_empty() {
        trials.choose(&first.pace(), &tuned, args)?;
        let most = trials.most();
        let settings = Settings { seed, trials: most, guards: trials.guards(), ..Settings::default() };
        let is_enough = most >= FEWEST_TRIALS;
        said(&trials.sentence(tuned.remedies.len(), most));
        let ranks: Vec<u8> = tuned.remedies.iter().map(|remedy| remedy.row.rank).collect();
        let fits = |one: usize, two: usize| tuned.remedies[one].plan.and(&tuned.remedies[two].plan).is_some();
        let needs_journal = is_enough && tuned.remedies.iter().any(|remedy| !remedy.plan.outside.is_empty());
        if needs_journal {
            trials.keep_journal(Journal::create(&taut_tune::folder()?, &words(&["tune", "--restorer"])?)?);
        }
        let found = search::<anyhow::Error>(&settings, &ranks, &fits, &mut |stage, set| {
            if is_enough { trials.run(stage, &tuned.plan(set), &tuned.name(set)) } else { Ok(None) }
        })?;
        if found.is_out && trials.is_restored() {
            tuned.needed_s = Some(trials.needed_s(tuned.remedies.len()));
        }
        for remedy in &mut tuned.remedies {
            remedy.plan.outside.retain(|one| !trials.has_refused(one));
        }
        tuned.take(&found);
    }
    let end = trials.end();
    tuned.figure = end.figure;
    tuned.trial_s = end.trial_s;
    tuned.notes.extend(end.notes);
    tuned.is_restored = end.is_restored;
    tuned.is_interrupted = end.signal.is_some();
    tuned.elapsed_s = began.elapsed().as_secs_f64();
    let info = &first.analysis.info;
    let machine = format!("Measured on {}, Linux {}: {}", info.host, info.kernel, tuned.shell_command());
    tuned.make_files(&[taut_report::tune_headline(&tuned), machine]);
    if let Some(folder) = &args.files {
        tuned.folder = Some(folder.shown());
        written::folder(folder, &tuned)?;
    }
    let text = match args.format {
        Format::Json => format!("{:#}\n", tune_json(&tuned)),
        form => output::rendered(&tune_document(&tuned), form, args.output.as_deref()),
    };
    output::write(&text, args.output.as_deref())?;
    if !tuned.is_restored {
        bail!("not everything could be put back; see the notes, and run taut tune --undo");
    }
    Ok(match (end.signal, tuned.answer()) {
        (Some(signal), _) => Done::Interrupted(signal),
        (None, Answer::NotEnough) => Done::NotEnough,
        (None, Answer::NotPermitted) => {
            let grant = tuned.left.iter().find_map(|left| left.grant.clone()).unwrap_or_default();
            bail!(exit::NotPermitted(format!("nothing may be tried; {grant}")));
        }
        _ => Done::Fine,
    })
}
