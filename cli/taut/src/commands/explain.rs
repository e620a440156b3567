//! `taut explain`: the causes of latency, message by message.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};
use taut_analysis::{Above, Chain, ExplainOptions};
use taut_recording::Shown;
use taut_report::{Asked, Named, explain_document};

use crate::{
    analyse::analyse,
    config,
    exit::Done,
    format::{self, Format},
    output,
    ros_filter::RosFilter,
    time,
};

/// Explain the tail: causes, hypotheses, predictions, and the worst messages' paths.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut explain run.mcap\n  taut explain run.mcap --message 1734\n  taut explain run.mcap --hypothesis lock:sdk_lock --hypothesis gil\n  taut explain run.mcap --deadline 20ms"
)]
pub struct Args {
    /// A recording.
    #[arg(value_name = "RUN")]
    recording: PathBuf,
    /// Worst messages to show [default: 10, or 0 with --message].
    #[arg(long, value_name = "N")]
    worst: Option<usize>,
    /// Show this message on its thread lanes; repeatable.
    #[arg(long, value_name = "ID")]
    message: Vec<u64>,
    /// Test whether this contributes: a cause (gil, irq, …), lock:NAME, hop:NAME, process:NAME, thread:NAME;
    /// repeatable.
    #[arg(long, value_name = "CAUSE")]
    hypothesis: Vec<String>,
    /// Predict latency without these causes, e.g. lock:NAME,preempted; repeatable.
    #[arg(long, value_name = "CAUSES", value_parser = causes)]
    without: Vec<Causes>,
    /// Explain messages above this quantile (p95) or time [default: past the deadline, or the tail].
    #[arg(long, value_name = "QUANTILE|TIME", value_parser = above, conflicts_with = "deadline")]
    above: Option<Above>,
    /// Explain messages that miss this deadline, instead of taut.toml's.
    #[arg(long, value_name = "TIME", value_parser = time::length)]
    deadline: Option<Duration>,
    /// Only this chain, by name or its beginning.
    #[arg(long, value_name = "NAME")]
    chain: Option<String>,
    /// With --format json: every message's time by cause.
    #[arg(long)]
    all: bool,
    /// Form of the result.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Markdown, Format::Json, Format::Html]))]
    format: Format,
    /// Output file [default: stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Chains and deadlines [default: ./taut.toml].
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
    #[command(flatten)]
    ros: RosFilter,
}

/// Words of `--without`.
#[derive(Clone, Debug)]
struct Causes(Vec<String>);

fn causes(text: &str) -> Result<Causes, String> {
    let words: Vec<String> = text.split(',').map(|word| word.trim().to_owned()).collect();
    if words.iter().any(String::is_empty) {
        return Err("name causes with commas between them, such as lock:sdk_lock,preempted".into());
    }
    Ok(Causes(words))
}

/// "p95", "p99.9", or a time.
fn above(text: &str) -> Result<Above, String> {
    let Some(percent) = text.strip_prefix('p') else {
        return time::length(text).map(|time| Above::Ns(nanoseconds(time)));
    };
    match percent.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(Above::Quantile(percent / 100.0)),
        _ => Err("a quantile is written as p95 or p99.9".into()),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}

/// The worst messages that are shown by default.
const WORST: usize = 10;

/// Reads, analyses, prints.
pub fn run(args: &Args) -> Result<Done> {
    if args.all && args.format != Format::Json {
        bail!("--all lists every message for scripts: add --format json");
    }
    args.format.check_place(args.output.as_deref(), "-o explained.html")?;
    let mut config = config::load(args.config.as_deref())?;
    config.explain = ExplainOptions {
        // The messages asked for stand for themselves.
        worst: args.worst.unwrap_or(if args.message.is_empty() { WORST } else { 0 }),
        messages: args.message.clone(),
        hypotheses: args.hypothesis.clone(),
        without: args.without.iter().map(|causes| causes.0.clone()).collect(),
        above: args.above,
        deadline_ns: args.deadline.map(nanoseconds),
        all: args.all,
        ..ExplainOptions::default()
    };
    let name = args.recording.shown();
    let mut analysis = analyse(&args.recording, &config).with_context(|| name.clone())?;
    args.ros.apply(&mut analysis).with_context(|| name.clone())?;
    if let Some(chain) = &args.chain {
        analysis.chains = chosen(std::mem::take(&mut analysis.chains), chain).with_context(|| name.clone())?;
        let is_there = |id: &u64| analysis.chains[0].explained.paths.iter().any(|path| path.time.id == *id);
        if let Some(id) = args.message.iter().find(|id| !is_there(id)) {
            bail!("{name}: message {id} did not pass chain {:?}; leave --chain out", analysis.chains[0].name);
        }
    }
    let named = Named { name: &name, analysis: &analysis };
    let asked = Asked { messages: &args.message, hypotheses: !args.hypothesis.is_empty() && args.worst.is_none() };
    let text = match args.format {
        Format::Json => format!("{:#}\n", taut_report::json(&[named])),
        form => output::interactive(&explain_document(named, asked), form, args.output.as_deref()),
    };
    output::write(&text, args.output.as_deref())?;
    if let Some(path) = &args.output {
        say!("wrote {}", path.shown());
    }
    Ok(if analysis.has_loss() { Done::DataLost } else { Done::Fine })
}

/// The chain of that name, or the only one whose name begins so.
fn chosen(chains: Vec<Chain>, name: &str) -> Result<Vec<Chain>> {
    let names: Vec<String> = chains.iter().map(|chain| format!("{:?}", chain.name)).collect();
    let is = |chain: &Chain| chain.name == name;
    let begins = |chain: &Chain| chain.name.starts_with(name);
    let by: &dyn Fn(&Chain) -> bool = if chains.iter().any(is) { &is } else { &begins };
    let mut found: Vec<Chain> = chains.into_iter().filter(by).collect();
    match found.len() {
        0 => bail!("no chain is called {name:?}; there are {}", names.join(", ")),
        1 => Ok(found),
        // A name that was declared twice: the larger one comes first.
        _ if found[0].name == found[1].name => Ok(found.drain(..1).collect()),
        _ => bail!("several chains begin with {name:?}: {}", names.join(", ")),
    }
}
