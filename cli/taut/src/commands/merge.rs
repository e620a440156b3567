//! `taut merge`: one recording of two hosts' recordings.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use taut_recording::{Ending, Shown, Writer};
use taut_report::hosts_json;

use crate::{
    exit::Done,
    joined::{JoinArgs, JoinedRecordings},
};

/// Write one recording of two hosts' recordings, on the first host's clock.
///
/// The clocks are aligned by the messages that both hosts stamped: each bounds their offset from one side. What is known of it, at each
/// moment, is written beside the recording (RUN.alignment.json). The two recordings are not changed.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  taut merge desk.mcap robot.mcap -o run.mcap\n  taut explain run.mcap")]
pub struct Args {
    /// One recording of each host; the first host's clock is the result's.
    #[arg(required = true, num_args = 1.., value_name = "RUN")]
    recordings: Vec<PathBuf>,
    /// The recording to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    join: JoinArgs,
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
    let both = JoinedRecordings::read(&args.recordings, &args.join)?;
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
    both.sentences().iter().for_each(|sentence| say!("{sentence}"));
    say!("wrote {} and {}", to.shown(), sidecar.shown());
    Ok(if damage.is_empty() { Done::Fine } else { Done::DataLost })
}

fn write(both: &JoinedRecordings, partial: &PathBuf, to: &PathBuf) -> Result<()> {
    let mut writer = Writer::create(partial, &both.info()).with_context(|| to.shown())?;
    let (mut failed, mut counted, mut until_ns) = (None, Ending::default(), 0);
    both.records(&mut |record| {
        if failed.is_none() {
            counted.count(&record);
            if let taut_recording::Record::Kernel(batch) = &record {
                until_ns = batch.time_ns.last().copied().unwrap_or(0).max(until_ns);
            }
            failed = writer.write(&record).and_then(|()| writer.flush_due(until_ns)).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error).with_context(|| to.shown());
    }
    let end_monotonic_ns = until_ns;
    let mut ending = both.ending().unwrap_or(Ending { end_monotonic_ns, reason: "merged".to_owned(), ..counted });
    ending.notes.splice(0..0, both.sentences());
    writer.finish(&ending).with_context(|| to.shown())?;
    Ok(())
}
