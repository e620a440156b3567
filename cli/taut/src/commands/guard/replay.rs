//! `taut guard replay`: a recorded state stream through the guard and through the estimators in use.

use std::{
    collections::HashSet,
    io::IsTerminal,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use taut_guard::Parameters;
use taut_recording::{Kind, Lost, LostWhat, Record, Shown};
use taut_replay::{Config, Mapping, Recorded, Stream, StreamBuilder, Truth, Tuned, choose, replay, tune, usual};
use taut_report::GuardShown;

use crate::{
    exit::Done,
    format::{self, Format},
    input,
    losses::Losses,
    output,
};

/// Replay a recorded stream through the speed guard: trips, times and reasons.
///
/// The stream is of taut.guard.record_frame, or a channel of any MCAP file that guard.toml maps
/// (docs/reference/guard.md). Exit code 1: the guard would have tripped.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut guard replay run.mcap --tcp-limit 1000 --tune > guard.toml\n  taut guard replay run.mcap --guard guard.toml --truth recorded --format html -o replay.html"
)]
pub struct Args {
    /// A recording, or any MCAP file.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The guard's parameters, estimators to compare, and frames.
    #[arg(long, value_name = "TOML", required_unless_present = "tcp_limit")]
    guard: Option<PathBuf>,
    /// Without --guard: the tool's limit in mm/s, the rest tuned to the stream.
    #[arg(long, value_name = "MM_S", conflicts_with = "guard", allow_negative_numbers = true)]
    tcp_limit: Option<f64>,
    /// The stream, where the recording has several.
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// True speed: recorded (truth_mm_s of the frames), reported (by the controller), legal (never above the limit), or
    /// a file of monotonic_ns,mm_s lines.
    #[arg(long, value_name = "TRUTH")]
    truth: Option<String>,
    /// Propose a guard.toml for this stream, with the evidence.
    #[arg(long)]
    tune: bool,
    /// Form of the result.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Json, Format::Html]))]
    format: Format,
    /// Output file [default: stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Reads, replays, prints.
pub fn run(args: &Args) -> Result<Done> {
    args.format.check_place(args.output.as_deref(), "-o replay.html")?;
    let name = args.run.shown();
    let given = args.guard.as_deref().map(config).transpose()?;
    let truth = args.truth.as_deref().map(truth).transpose()?;
    let (stream, damage, losses) = stream(args, given.as_ref()).with_context(|| name.clone())?;
    if !losses.is_none() {
        say!("taut: warning: {name}{losses}: frames may be among them");
    }
    let config = match given {
        Some(config) => config,
        None => {
            // The period is measured; this one only tells the tool's limit.
            let limit = Parameters::for_tcp(10_000_000, args.tcp_limit.unwrap_or_default());
            limit.check().context("--tcp-limit")?;
            let parameters = tune(&stream, &limit).with_context(|| name.clone())?.parameters;
            Config { parameters, against: usual(), stream: taut_replay::StreamConfig::default() }
        }
    };
    let tuned: Option<Tuned> =
        args.tune.then(|| tune(&stream, &config.parameters)).transpose().with_context(|| name.clone())?;
    let toml = tuned.as_ref().map(|tuned| tuned.toml(&stream, &config));
    let is_whole = damage.is_empty() && losses.is_none() && stream.incomplete == 0;
    if let (Some(toml), Format::Terminal) = (&toml, args.format) {
        return written(toml, args, if is_whole { Done::Fine } else { Done::DataLost });
    }
    let bar = progress();
    let replay = replay(&stream, &config, truth.as_ref(), &mut |done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    })
    .with_context(|| name.clone())?;
    bar.finish_and_clear();
    let typed: Vec<String> = std::iter::once("taut".to_owned()).chain(std::env::args().skip(1)).collect();
    let command = taut_report::words::shell(&typed);
    let tuned = tuned.as_ref().zip(toml.as_deref());
    let shown = GuardShown { run: &name, command: &command, replay: &replay, tuned, damage: &damage };
    let text = match args.format {
        Format::Json => format!("{:#}\n", taut_report::guard_json(&shown)),
        form => output::interactive(&taut_report::guard_document(&shown), form, args.output.as_deref()),
    };
    let ours = &replay.runs[0];
    let tripped = ours.overspeed_trips + ours.stale_trips + ours.fault_trips > 0;
    written(
        &text,
        args,
        match (tripped, is_whole) {
            (true, _) => Done::Against,
            (false, true) => Done::Fine,
            (false, false) => Done::DataLost,
        },
    )
}

fn written(text: &str, args: &Args, done: Done) -> Result<Done> {
    output::write(text, args.output.as_deref())?;
    if let Some(path) = &args.output {
        say!("wrote {}", path.shown());
    }
    Ok(done)
}

fn config(path: &Path) -> Result<Config> {
    let name = || path.shown();
    let text = std::fs::read_to_string(path).with_context(name)?;
    Config::parse(&text).with_context(name)
}

fn truth(word: &str) -> Result<Truth> {
    match word {
        "recorded" => Ok(Truth::Recorded),
        "reported" => Ok(Truth::Reported),
        "legal" => Ok(Truth::Legal),
        file => {
            let text = std::fs::read_to_string(file).with_context(|| {
                format!("--truth {file} is neither recorded, reported nor legal, and no file that can be read")
            })?;
            Truth::series(&text).with_context(|| file.to_owned())
        }
    }
}

/// The frames, what could not be read of the file, and what was lost while it was recorded that may have been frames.
fn stream(args: &Args, config: Option<&Config>) -> Result<(Stream, Vec<String>, Losses)> {
    let bytes = input::map(&args.run)?;
    let wanted = config.map(|config| &config.stream);
    if let Some(topic) = wanted.and_then(|wanted| wanted.topic.as_deref()) {
        if args.stream.is_some() {
            bail!("--stream names values of a recording, but guard.toml maps the channel {topic:?}");
        }
        let fields: Vec<(&str, &Mapping)> =
            wanted.into_iter().flat_map(|w| &w.fields).map(|(field, mapping)| (field.as_str(), mapping)).collect();
        let (stream, damage) = channel(&bytes, topic, &fields)?;
        return Ok((stream, damage, Losses::default()));
    }
    let mut builder = StreamBuilder::default();
    let (mut threads, mut lost) = (HashSet::new(), Vec::new());
    let contents = taut_recording::read(&bytes, &mut |record| {
        match &record {
            Record::Stamps(batch) if batch.kind.contains(&(Kind::Value as u8)) => _ = threads.insert(batch.tid),
            Record::Lost(some) if some.what == LostWhat::Stamps => lost.push(some.clone()),
            _ => {}
        }
        builder.record(record);
    })?;
    let damage = contents.damage.iter().map(ToString::to_string).collect();
    let name = args.stream.as_deref().or(wanted.and_then(|wanted| wanted.name.as_deref()));
    // What a thread lost that records no values were no frames. Elsewhere it is not known whose it was.
    let may_be_frames = |lost: &&Lost| thread_of(&lost.place).is_none_or(|tid| threads.contains(&tid));
    let losses = lost.iter().filter(may_be_frames).collect();
    Ok((choose(builder.finish(), name)?, damage, losses))
}

/// The thread at whose ring something was lost: "PID/TID".
fn thread_of(place: &str) -> Option<i32> {
    place.split(' ').next()?.split_once('/')?.1.parse().ok()
}

/// A channel of any MCAP file. A message's log time is its arrival, unless a field is mapped to that.
fn channel(bytes: &[u8], topic: &str, fields: &[(&str, &Mapping)]) -> Result<(Stream, Vec<String>)> {
    let paths: Vec<&str> = fields.iter().map(|(_, mapping)| mapping.field()).collect();
    let mut stream = Stream { name: topic.to_owned(), ..Stream::default() };
    let told = taut_recording::channel_numbers(bytes, topic, &paths, &mut |log_time, values| {
        let mut recorded = Recorded::default();
        recorded.frame.arrival_ns = log_time;
        for ((field, mapping), value) in fields.iter().zip(values) {
            let Some(value) = value else {
                stream.incomplete += 1;
                return;
            };
            recorded.set_number(field, value.times(mapping.times()));
        }
        stream.frames.push(recorded);
    })?;
    stream.frames.sort_by_key(|recorded| recorded.frame.arrival_ns);
    Ok((stream, told.damage))
}

/// A bar on a terminal.
fn progress() -> indicatif::ProgressBar {
    if !std::io::stderr().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    indicatif::ProgressBar::new(1).with_message("replaying")
}
