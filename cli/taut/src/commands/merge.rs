//! `taut merge`: one recording of two hosts' recordings.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use taut_recording::{Shown, Writer};
use taut_report::{hosts_json, hosts_sentences};

use crate::{
    config,
    exit::Done,
    joined::{JoinArgs, JoinedRecordings},
};

/// Write one recording of two hosts' recordings, on the first host's clock.
///
/// The clocks are aligned by the messages that both hosts stamped: each bounds their offset from one side. What is known of it, at each
/// moment, is written beside the recording (RUN.alignment.json). The two recordings are not changed.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut merge desk.mcap robot.mcap -o run.mcap\n  taut merge desk.mcap robot.mcap --hosts desk,robot -o run.mcap"
)]
pub struct Args {
    /// One recording of each host; the first host's clock is the result's.
    #[arg(required = true, num_args = 1.., value_name = "RUN")]
    recordings: Vec<PathBuf>,
    /// The recording to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    join: JoinArgs,
    /// Declared chains, whose points are HOST:POINT: they tell the order of points; ./taut.toml is used when it exists.
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
}

/// Aligns, writes, and says what is known of the clocks.
pub fn run(args: &Args) -> Result<Done> {
    let to = &args.output;
    let is_input = |path: &&PathBuf| {
        std::fs::canonicalize(path).ok().is_some_and(|path| std::fs::canonicalize(to).ok() == Some(path))
    };
    if let Some(path) = args.recordings.iter().find(is_input) {
        bail!("{}: cannot be merged onto itself; name another file with -o", path.shown());
    }
    let config = config::load(args.config.as_deref())?;
    let both = JoinedRecordings::read(&args.recordings, &args.join, &config)?;
    let sidecar = to.with_extension("alignment.json");
    let partial = to.with_extension("mcap.partial");
    let written = write(&both, &partial, to).and_then(|()| {
        let text = format!("{}\n", hosts_json(&both.joined, both.names()));
        std::fs::write(&sidecar, text).with_context(|| sidecar.shown())?;
        std::fs::rename(&partial, to).with_context(|| to.shown())
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    written?;
    let damage = both.damage();
    damage.iter().for_each(|damage| say!("lost: {damage}"));
    hosts_sentences(&both.joined, both.names()).iter().for_each(|sentence| say!("{sentence}"));
    say!("wrote {} and {}", to.shown(), sidecar.shown());
    Ok(if damage.is_empty() { Done::Fine } else { Done::DataLost })
}

fn write(both: &JoinedRecordings, partial: &Path, to: &Path) -> Result<()> {
    let mut writer = Writer::create(partial, &both.info()).with_context(|| to.shown())?;
    let mut failed = None;
    both.records(&mut |record| {
        if failed.is_none() {
            failed = writer.write(&record).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error).with_context(|| to.shown());
    }
    writer.finish(&both.ending()).with_context(|| to.shown())?;
    Ok(())
}
