//! `taut report`: latency hop by hop, and where the messages ended; several recordings side by side.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use taut_recording::Shown;
use taut_report::{Named, TwoShown, comparison_document, report_document, two_document, two_html, two_json};

use crate::{
    analyse::analyse,
    config,
    exit::Done,
    format::{self, Format},
    joined::{JoinArgs, JoinedRecordings},
    output,
    ros_filter::RosFilter,
};

/// Report latency by hop, causes of late messages, loops and outcomes.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut report run.mcap\n  taut report run.mcap --format html -o report.html\n  taut report before.mcap after.mcap --format json\n  taut report desk.mcap robot.mcap --join"
)]
pub struct Args {
    /// Recordings, also damaged ones; several are shown side by side, of two also what changed.
    #[arg(required = true, value_name = "RUN")]
    recordings: Vec<PathBuf>,
    /// Form of the result.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Markdown, Format::Json, Format::Html]))]
    format: Format,
    /// Output file [default: stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Chains and deadlines [default: ./taut.toml].
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
    /// Analyse recordings of several hosts as one, with aligned clocks.
    #[arg(long)]
    join: bool,
    #[command(flatten)]
    hosts: JoinArgs,
    #[command(flatten)]
    ros: RosFilter,
}

/// Reads, analyses, prints.
pub fn run(args: &Args) -> Result<Done> {
    args.format.check_place(args.output.as_deref(), "-o report.html")?;
    if !args.join && (args.hosts.clocks.is_some() || !args.hosts.hosts.is_empty()) {
        bail!("--hosts and --clocks are for --join");
    }
    if let [a, b] = args.recordings.as_slice()
        && !args.join
    {
        let gating = config::load_gate(args.config.as_deref())?;
        let has_page = args.format == Format::Html;
        let write = &mut |two: &TwoShown<'_>| written(&of_two(two, args), args);
        return super::compare::recordings([a, b], &gating, None, &args.ros, has_page, write);
    }
    let mut config = config::load(args.config.as_deref())?;
    // Only the page has room for whole paths.
    config.explain.worst = if args.format == Format::Html { config.explain.worst } else { 0 };
    let mut analyses = Vec::new();
    if args.join {
        let mut analysis = JoinedRecordings::read(&args.recordings, &args.hosts, &config)?.analyse(&config)?;
        args.ros.apply(&mut analysis)?;
        let names: Vec<String> = args.recordings.iter().map(|path| path.shown()).collect();
        analyses.push((names.join(" + "), analysis));
    }
    for path in args.recordings.iter().filter(|_| !args.join) {
        let mut analysis = analyse(path, &config).with_context(|| path.shown())?;
        args.ros.apply(&mut analysis).with_context(|| path.shown())?;
        analyses.push((path.shown(), analysis));
    }
    let named: Vec<Named<'_>> = analyses.iter().map(|(name, analysis)| Named { name, analysis }).collect();
    written(&render(&named, args), args)?;
    let damaged = analyses.iter().any(|(_, analysis)| analysis.has_loss());
    Ok(if damaged { Done::DataLost } else { Done::Fine })
}

fn written(text: &str, args: &Args) -> Result<()> {
    output::write(text, args.output.as_deref())?;
    if let Some(path) = &args.output {
        say!("wrote {}", path.shown());
    }
    Ok(())
}

/// Two recordings, as `taut compare` shows them.
fn of_two(two: &TwoShown<'_>, args: &Args) -> String {
    match args.format {
        Format::Html => two_html(two),
        Format::Json => format!("{:#}\n", two_json(two)),
        form => output::rendered(&two_document(two), form, args.output.as_deref()),
    }
}

fn render(named: &[Named<'_>], args: &Args) -> String {
    match (args.format, named) {
        (Format::Json, named) => format!("{:#}\n", taut_report::json(named)),
        (form, [one]) => output::interactive(&report_document(*one), form, args.output.as_deref()),
        (Format::Html, several) => taut_report::comparison_html(several),
        (form, several) => output::rendered(&comparison_document(several), form, args.output.as_deref()),
    }
}
