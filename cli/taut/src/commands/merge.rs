//! `taut merge`: one recording of two hosts' recordings.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use taut_recording::{Shown, Writer};
use taut_report::{hosts_json, hosts_sentences};

use crate::{
    config,
    exit::Done,
    input,
    joined::{JoinArgs, JoinedRecordings},
    output,
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
    /// The recording to write; - is stdout, and then nothing stands beside it.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    join: JoinArgs,
    /// Declared chains, with points HOST:POINT, give the order of points; ./taut.toml is used when it exists.
    #[arg(long, value_name = "TOML")]
    config: Option<PathBuf>,
}

/// Aligns, writes, and says what is known of the clocks.
pub fn run(args: &Args) -> Result<Done> {
    let to = &args.output;
    if let Some(path) = args.recordings.iter().find(|path| input::is_one_file(path, to)) {
        bail!("{}: cannot be merged onto itself; name another file with -o", path.shown());
    }
    let config = config::load(args.config.as_deref())?;
    let both = JoinedRecordings::read(&args.recordings, &args.join, &config)?;
    let alignment = format!("{}\n", hosts_json(&both.joined, both.names()));
    let written = output::recording(to, |path| {
        let partial = path.with_extension("mcap.partial");
        let written = write(&both, &partial, to).and_then(|()| {
            let sidecar = sidecar(to).map_or(Ok(()), |sidecar| output::write(&alignment, Some(&sidecar)));
            sidecar.and_then(|()| std::fs::rename(&partial, path).with_context(|| to.shown()))
        });
        if written.is_err() {
            let _ = std::fs::remove_file(&partial);
        }
        written
    });
    written?;
    let damage = both.damage();
    damage.iter().for_each(|damage| say!("lost: {damage}"));
    hosts_sentences(&both.joined, both.names()).iter().for_each(|sentence| say!("{sentence}"));
    let beside = sidecar(to).map_or(String::new(), |sidecar| format!(" and {}", sidecar.shown()));
    say!("wrote {}{beside}", to.shown());
    Ok(if damage.is_empty() { Done::Fine } else { Done::DataLost })
}

/// Beside the recording; nowhere beside stdout.
fn sidecar(to: &Path) -> Option<PathBuf> {
    (to != Path::new("-")).then(|| to.with_extension("alignment.json"))
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
