//! `taut fleet report|worst|compare|merge`: the questions are Ibis expressions in Python (`python/taut/fleet`); this starts them and shows
//! what they answer.

use std::{
    io::IsTerminal,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use indicatif::ProgressBar;
use taut_recording::Shown;
use taut_report::{
    fleet::{Answer, Merged},
    fleet_document, fleet_json, words,
};

use crate::{
    exit::Done,
    format::{self, Format},
    output,
};

/// Loads the package, or says in one line how to get it.
const START: &str = "
import sys
try:
    from taut.fleet.__main__ import main
except ModuleNotFoundError as error:
    python = sys.executable
    print(f\"taut: a fleet's figures need Python's taut with Ibis and DuckDB ({error}); get them: {python} -m pip install 'taut-….whl[fleet]'\", file=sys.stderr)
    sys.exit(2)
sys.exit(main())
";

/// Latency over all robots, by chain, hop, cause and week.
#[derive(clap::Args)]
pub struct Report {
    #[command(flatten)]
    asked: Asked,
    /// Only this revision.
    #[arg(long, value_name = "TEXT")]
    revision: Option<String>,
}

/// Robots ranked by latency, each with its distinctive hop and cause.
#[derive(clap::Args)]
pub struct Worst {
    #[command(flatten)]
    asked: Asked,
    /// Only this revision.
    #[arg(long, value_name = "TEXT")]
    revision: Option<String>,
    /// Rank by this hop, "from → to" [default: the whole chain].
    #[arg(long, value_name = "HOP")]
    hop: Option<String>,
    /// Rank by the time of this cause, e.g. gil [default: all].
    #[arg(long, value_name = "CAUSE")]
    cause: Option<String>,
    /// Rank by this figure.
    #[arg(long, value_enum, default_value_t = Figure::P99)]
    figure: Figure,
    /// Robots to show.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: u32,
}

/// Compare two revisions by hop and cause.
#[derive(clap::Args)]
pub struct Compare {
    #[command(flatten)]
    asked: Asked,
    /// A revision.
    #[arg(value_name = "A")]
    a: String,
    /// The other.
    #[arg(value_name = "B")]
    b: String,
    /// What A and B are.
    #[arg(long, value_enum, default_value_t = By::Revision)]
    by: By,
}

/// Merge each robot's runs by day, week or month.
#[derive(clap::Args)]
pub struct Merge {
    /// The fleet's folder.
    #[arg(value_name = "DIR", value_parser = crate::folder::named())]
    place: PathBuf,
    /// Folder for the merged fleet; existing periods are rewritten.
    #[arg(long, value_name = "DIR2", value_parser = crate::folder::named())]
    into: PathBuf,
    /// Length of a period.
    #[arg(long, value_enum, default_value_t = Period::Week)]
    by: Period,
    #[command(flatten)]
    days: Days,
}

#[derive(clap::Args)]
struct Days {
    /// First day, e.g. 2026-11-22.
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
    /// Last day.
    #[arg(long, value_name = "DATE")]
    until: Option<String>,
}

#[derive(clap::Args)]
struct Asked {
    /// The fleet's folder; with --engine clickhouse also clickhouse://USER:PASSWORD@HOST:8123/DATABASE/TABLE.
    #[arg(value_name = "DIR", value_parser = crate::folder::or_url)]
    place: String,
    /// Engine that aggregates.
    #[arg(long, value_enum, default_value_t = Engine::Duckdb)]
    engine: Engine,
    #[command(flatten)]
    days: Days,
    /// Only this chain.
    #[arg(long, value_name = "CHAIN")]
    chain: Option<String>,
    /// Form of the result.
    #[arg(long, default_value = "terminal", value_parser = format::one_of([Format::Terminal, Format::Markdown, Format::Json, Format::Html]))]
    format: Format,
    /// Output file [default: stdout].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Engine {
    Duckdb,
    Clickhouse,
    Spark,
}

#[derive(Clone, Copy, ValueEnum)]
enum Figure {
    P50,
    P90,
    P99,
    P999,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Revision,
    Robot,
}

#[derive(Clone, Copy, ValueEnum)]
enum Period {
    Day,
    Week,
    Month,
}

pub fn report(args: &Report) -> Result<Done> {
    shown(&args.asked, asked("report", &args.asked).option("revision", args.revision.as_deref()))
}

pub fn worst(args: &Worst) -> Result<Done> {
    let question = asked("worst", &args.asked)
        .option("revision", args.revision.as_deref())
        .option("hop", args.hop.as_deref())
        .option("cause", args.cause.as_deref())
        .option("figure", Some(&word(args.figure)))
        .option("limit", Some(&args.limit.to_string()));
    shown(&args.asked, question)
}

pub fn compare(args: &Compare) -> Result<Done> {
    let question = asked("compare", &args.asked).option("by", Some(&word(args.by)));
    shown(&args.asked, question.plain(&[&args.a, &args.b]))
}

pub fn merge(args: &Merge) -> Result<Done> {
    let [place, into] = [&args.place, &args.into].map(|path| path.shown());
    let question = Question::new("merge")
        .days(&args.days)
        .option("into", Some(&into))
        .option("by", Some(&word(args.by)))
        .plain(&[&place]);
    let answer = match question.answered("merging")? {
        Ok(answer) => answer,
        Err(done) => return Ok(done),
    };
    let Merged { files, rows, first, last, set_aside } =
        serde_json::from_slice(&answer).with_context(another_version)?;
    let (files, rows) = (words::quantity(files, "file"), words::quantity(rows, "row"));
    say!("wrote {into}: {files} of {first} to {last}, {rows}");
    Ok(if set_aside.is_empty() { Done::Fine } else { Done::DataLost })
}

fn asked(verb: &str, asked: &Asked) -> Question {
    Question::new(verb)
        .days(&asked.days)
        .option("engine", Some(&word(asked.engine)))
        .option("chain", asked.chain.as_deref())
        .plain(&[&asked.place])
}

fn shown(asked: &Asked, question: Question) -> Result<Done> {
    let answer = match question.answered(&format!("asking {}", asked.place))? {
        Ok(answer) => answer,
        Err(done) => return Ok(done),
    };
    let answer = Answer::read(&answer).with_context(another_version)?;
    let path = asked.output.as_deref();
    let text = match asked.format {
        Format::Json => format!("{:#}\n", fleet_json(&answer)),
        form => output::rendered(&fleet_document(&answer), form, path),
    };
    output::write(&text, path)?;
    if let Some(path) = path {
        say!("wrote {}", path.shown());
    }
    Ok(if answer.about().set_aside.is_empty() { Done::Fine } else { Done::DataLost })
}

fn another_version() -> &'static str {
    "Python's taut is of another version than this program; install both from one wheel"
}

fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The words of `python -m taut.fleet`.
struct Question {
    options: Vec<String>,
    plain: Vec<String>,
}

impl Question {
    fn new(verb: &str) -> Question {
        Question { options: vec![verb.to_owned()], plain: Vec::new() }
    }

    fn option(mut self, name: &str, value: Option<&str>) -> Question {
        // In one word, so that a value may begin with "-".
        self.options.extend(value.map(|value| format!("--{name}={value}")));
        self
    }

    fn days(self, days: &Days) -> Question {
        self.option("since", days.since.as_deref()).option("until", days.until.as_deref())
    }

    fn plain(mut self, values: &[&str]) -> Question {
        self.plain.extend(values.iter().map(|value| (*value).to_owned()));
        self
    }

    /// What Python prints; or how the command ends, when Python has said why there is nothing.
    fn answered(self, what: &str) -> Result<Result<Vec<u8>, Done>> {
        let beside = || Some(std::env::current_exe().ok()?.parent()?.join("python")).filter(|path| path.exists());
        let python = beside().unwrap_or_else(|| "python3".into());
        let bar = if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        let ran = Command::new(&python)
            .args(["-c", START])
            .args(&self.options)
            .arg("--")
            .args(&self.plain)
            .stdin(Stdio::null())
            .output();
        bar.finish_and_clear();
        let ran = ran.with_context(|| format!("{}: does not start; a fleet's figures need Python", python.shown()))?;
        let said = String::from_utf8_lossy(&ran.stderr);
        said.lines().for_each(|line| say!("{line}"));
        match ran.status.code() {
            Some(0) => Ok(Ok(ran.stdout)),
            Some(code) => Ok(Err(Done::Forwarded(code as u8))),
            None => bail!("{}: was killed ({})", python.shown(), ran.status),
        }
    }
}
