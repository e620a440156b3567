//! `taut report`: how late, hop by hop, and where the messages ended; several recordings side by side.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use taut_analysis::{Analysis, Analyzer, Config};
use taut_recording::Shown;
use taut_report::Named;

use crate::{config, exit::Done, input, output};

/// Say how late the loop runs, hop by hop, and where its messages ended.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut report run.mcap\n  taut report run.mcap --format html -o report.html\n  taut report before.mcap after.mcap --format json"
)]
pub struct Args {
    /// Recordings made by `taut record`; torn and damaged ones are read as far as they go. Several are
    /// compared: the same chain of each, side by side.
    #[arg(required = true, value_name = "RUN")]
    recordings: Vec<PathBuf>,
    /// Form of the result.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// File to write instead of stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Declared chains and deadlines; ./taut.toml is used when it exists.
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables that fit 100 columns.
    Terminal,
    /// One self-contained page.
    Html,
    /// For scripts; the schema is versioned and documented.
    Json,
    /// To paste in a pull request.
    Markdown,
}

/// Reads, analyses, prints.
pub fn run(args: &Args) -> Result<Done> {
    let mut config = config::load(args.config.as_deref())?;
    // Only the page has room for whole paths.
    config.explain.worst = if args.format == Format::Html { config.explain.worst } else { 0 };
    if args.format == Format::Html && args.output.is_none() && std::io::stdout().is_terminal() {
        bail!("an HTML page is not for a terminal: add -o report.html");
    }
    let mut analyses = Vec::new();
    for path in &args.recordings {
        let analysis = analyse(path, &config).with_context(|| path.shown())?;
        analyses.push((path.shown(), analysis));
    }
    let named: Vec<Named<'_>> = analyses.iter().map(|(name, analysis)| Named { name, analysis }).collect();
    output::write(&render(&named, args), args.output.as_deref())?;
    if let Some(path) = &args.output {
        say!("wrote {}", path.shown());
    }
    let damaged = analyses.iter().any(|(_, analysis)| analysis.has_loss());
    Ok(if damaged { Done::DataLost } else { Done::Fine })
}

/// The analysis of the recording at `path`.
pub fn analyse(path: &Path, config: &Config) -> Result<Analysis> {
    let bytes = input::map(path)?;
    let mut analyzer = Analyzer::new(config.clone());
    let contents = taut_recording::read(&bytes, &mut |record| analyzer.record(&record))?;
    let damage = contents.damage.iter().map(ToString::to_string).collect();
    Ok(analyzer.finish(contents.info, contents.ending, damage, bytes.len() as u64)?)
}

fn render(named: &[Named<'_>], args: &Args) -> String {
    match args.format {
        Format::Html => taut_report::html(named),
        Format::Json => format!("{:#}\n", taut_report::json(named)),
        Format::Markdown => match named {
            [one] => taut_report::markdown(*one),
            several => taut_report::comparison_markdown(several),
        },
        Format::Terminal => {
            let style = output::style(args.output.as_deref());
            match named {
                [one] => taut_report::terminal(*one, style),
                several => taut_report::comparison_terminal(several, style),
            }
        }
    }
}
