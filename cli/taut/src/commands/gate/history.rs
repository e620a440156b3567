//! The history's folder: a Parquet file for each gate.

use std::path::Path;

use anyhow::{Context, Result, bail};
use taut_gate::{Trial, Vote};
use taut_history::{FigureHistory, Row, lines, read, rows, write};
use taut_recording::Shown;
use taut_report::HistoryShown;

/// Adds a revision's trials to the folder.
pub fn add(folder: &Path, revision: Option<&str>, trials: &[Trial]) -> Result<()> {
    let described = trials.first().map_or("", |trial| trial.revision.as_str());
    let revision = revision.unwrap_or(described);
    if revision.is_empty() {
        bail!("--history: the trials did not run in a git repository; give the revision's name with --revision");
    }
    let rows = rows(revision, trials);
    let Some(first) = rows.first() else { bail!("--history: no trial of {revision} carries a figure") };
    std::fs::create_dir_all(folder).with_context(|| folder.shown())?;
    let plain: String =
        revision.chars().map(|c| if c.is_alphanumeric() || "-._".contains(c) { c } else { '-' }).collect();
    let path = folder.join(format!("{:.0}-{plain}.parquet", first.time_unix_s * 1e3));
    // Whole or not there at all: another build may be reading.
    let mut file = tempfile::Builder::new().prefix(".taut-").tempfile_in(folder)?;
    std::io::Write::write_all(&mut file, &write(&rows)?)?;
    file.persist(&path).with_context(|| path.shown())?;
    Ok(())
}

/// The figures of a folder over revisions.
pub struct Lines {
    folder: String,
    lines: Vec<FigureHistory>,
    revisions: usize,
}

impl Lines {
    /// Those figures that decide gates.
    pub fn of(folder: &Path, votes: &[Vote]) -> Result<Lines> {
        let mut all: Vec<Row> = Vec::new();
        let entries = std::fs::read_dir(folder).with_context(|| folder.shown())?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.extension().is_some_and(|extension| extension == "parquet") {
                let bytes = std::fs::read(&path).with_context(|| path.shown())?;
                all.extend(read(bytes).with_context(|| path.shown())?);
            }
        }
        if all.is_empty() {
            bail!("{}: holds no history (.parquet); add to it with --history and --b or --candidate", folder.shown());
        }
        let figures: Vec<String> = votes.iter().map(figure).collect();
        let revisions = all.iter().map(|row| row.revision.as_str()).collect::<std::collections::HashSet<_>>().len();
        Ok(Lines { folder: folder.shown(), lines: lines(&all, &figures), revisions })
    }

    pub fn shown(&self) -> HistoryShown<'_> {
        HistoryShown { folder: &self.folder, lines: &self.lines, revisions: self.revisions }
    }
}

/// A vote without its scope: the history has every hop and the whole way.
fn figure(vote: &Vote) -> String {
    match vote {
        Vote::Time(_, side, statistic) => format!("{}.{}", side.word(), statistic.word()),
        other => other.to_string(),
    }
}
