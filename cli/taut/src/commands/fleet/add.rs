//! `taut fleet add`: a recording becomes a Parquet file of histograms, in the folder of its day and robot.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use chrono::{DateTime, NaiveDate};
use sha2::{Digest, Sha256};
use taut_analysis::{Analyzer, Row};
use taut_recording::Shown;
use taut_report::words;
use taut_tables::{File, Histograms, Origin, Table};

use crate::{analyse::lost, config, exit::Done, input, output};

/// Add recordings to a fleet's folder, as histograms.
///
/// Adding a run again changes nothing.
#[derive(clap::Args)]
pub struct Args {
    /// Recordings of one robot.
    #[arg(value_name = "RUN", required = true)]
    recordings: Vec<PathBuf>,
    /// The fleet's folder, made if missing.
    #[arg(long, value_name = "DIR", value_parser = crate::folder::named())]
    into: PathBuf,
    /// The robot's name, of letters, digits, ., - and _.
    #[arg(long, value_name = "NAME", value_parser = robot)]
    robot: String,
    /// What ran [default: the recording's git revision].
    #[arg(long, value_name = "TEXT", value_parser = revision)]
    revision: Option<String>,
    /// Day of the runs, e.g. 2026-11-22 [default: the recording's, UTC].
    #[arg(long, value_name = "DATE", value_parser = day)]
    date: Option<NaiveDate>,
    /// Chains and deadlines [default: ./taut.toml].
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
}

/// A run that is ready to be written.
struct Ready {
    table: Table,
    folder: PathBuf,
    run: String,
    about: [(&'static str, String); 2],
    said: String,
    is_whole: bool,
}

/// First all are read, then all are written: of a list with one bad file nothing is added.
pub fn run(args: &Args) -> Result<Done> {
    refuse_merged(&args.into)?;
    let ready = |path| read(path, args).with_context(|| Path::display(path).to_string());
    let all = args.recordings.iter().map(|path| ready(path)).collect::<Result<Vec<Ready>>>()?;
    let mut done = Done::Fine;
    for Ready { mut table, folder, run, about, said, is_whole } in all {
        let path = folder.join(format!("{run}.parquet"));
        let is_known = path.exists();
        output::files(&folder, &[format!("{run}.parquet")], |out| {
            let mut out = out.into_iter();
            let cannot = || format!("{}: cannot write", path.shown());
            let mut file = File::start(out.next().context("one file")?, &table, &about).with_context(cannot)?;
            file.group(&mut table).and_then(|()| file.finish()).with_context(cannot)?;
            Ok(())
        })?;
        say!("wrote {}: {said}{}", path.shown(), if is_known { "; it was there already" } else { "" });
        if !is_whole {
            done = Done::DataLost;
        }
    }
    Ok(done)
}

/// A run beside the week that it is in would count twice. `taut fleet merge` writes a file into the folder of its first day.
fn refuse_merged(into: &Path) -> Result<()> {
    if let Some(file) = entries(into, "date=").iter().flat_map(|day| entries(day, "merged-by-")).next() {
        bail!(
            "{}: is of a merged fleet, where runs would count twice; add them to the folder that was merged",
            file.shown()
        );
    }
    Ok(())
}

/// What in a folder has a name that begins so.
fn entries(folder: &Path, begin: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter(|entry| entry.file_name().as_bytes().starts_with(begin.as_bytes())).map(|entry| entry.path()).collect()
}

fn read(path: &Path, args: &Args) -> Result<Ready> {
    let mut config = config::load(args.config.as_deref())?;
    config.explain.worst = 0;
    let bytes = input::map(path)?;
    let mut analyzer = Analyzer::new(config);
    let contents = taut_recording::read(&bytes, &mut |record| analyzer.record(&record))?;
    let info = contents.info.clone();
    let damage: Vec<String> = contents.damage.iter().map(ToString::to_string).collect();
    damage.iter().for_each(|damage| say!("taut: warning: {}: {damage}", path.shown()));
    let mut histograms = Histograms::default();
    let analysis =
        analyzer.finish_by_row(contents.info, contents.ending, damage, bytes.len() as u64, &mut |row: Row<'_>| {
            histograms.row(&row);
        })?;
    let date = match args.date {
        Some(date) => date,
        None => began(info.start_realtime_ns)?,
    };
    let revision = args.revision.as_deref().unwrap_or(&info.git_revision);
    if revision.is_empty() {
        bail!("was not recorded in a git repository; say what ran with --revision");
    }
    // 128 of its bits tell recordings apart.
    let run: String = Sha256::digest(&bytes)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let origin = Origin { day: date.to_epoch_days(), robot: &args.robot, run: &run, revision };
    let (table, left_out) = histograms.table(&analysis, &origin);
    if table.rows() == 0 {
        bail!("has no message that passed two points of a chain: there is no delay to add");
    }
    let messages: u64 = analysis.chains.iter().map(|chain| chain.end_to_end.distribution.n).sum();
    let mut said = format!(
        "{} of {} in {}",
        words::quantity(messages, "message"),
        words::quantity(analysis.chains.len() as u64, "chain"),
        words::quantity(table.rows() as u64, "row"),
    );
    if left_out > 0 {
        said += &format!("; {} over a missed point left out", words::quantity(left_out, "hop"));
    }
    said += &lost(&analysis);
    Ok(Ready {
        folder: args.into.join(format!("date={date}")).join(format!("robot={}", args.robot)),
        about: [("taut.recording", path.shown()), ("taut.version", info.taut_version)],
        table,
        run,
        said,
        is_whole: !analysis.has_loss(),
    })
}

/// The day of a recording whose clock was set.
fn began(realtime_ns: u64) -> Result<NaiveDate> {
    let began = DateTime::from_timestamp_nanos(i64::try_from(realtime_ns).unwrap_or(0));
    if realtime_ns == 0 || began.timestamp() == 0 {
        bail!("does not say when it was made; give its day with --date");
    }
    Ok(began.date_naive())
}

/// A name that is one folder's everywhere, and nothing else.
fn robot(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(is_plain) {
        return Err(
            "a robot's name is of letters, digits, \"-\", \"_\" and \".\", at most 100, and begins with no \".\""
                .into(),
        );
    }
    Ok(name.to_owned())
}

fn revision(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 200 || text.chars().any(char::is_control) {
        return Err("a revision is one line of 1 to 200 bytes".into());
    }
    Ok(text.to_owned())
}

fn day(text: &str) -> Result<NaiveDate, String> {
    // The type reads other forms, too ("2026-1-2"), of which one day would have two folders.
    let day: Option<NaiveDate> = text.parse().ok().filter(|day: &NaiveDate| day.to_string() == text);
    day.ok_or_else(|| "write the day like 2026-11-22".into())
}
