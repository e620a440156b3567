//! `taut merge`: one recording of several hosts' recordings.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use taut_recording::{Output, Shown, Writer};
use taut_report::{hosts_json, hosts_sentences};

use crate::{
    config,
    exit::Done,
    input,
    joined::{JoinArgs, JoinedRecordings},
    output,
};

/// Merge recordings of several hosts into one, on the first host's clock.
///
/// Aligns the clocks by messages that two hosts stamped, and writes the offsets to RUN.alignment.json.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  taut merge desk.mcap robot.mcap -o run.mcap\n  taut merge desk.mcap robot.mcap arm.mcap --hosts desk,robot,arm -o run.mcap"
)]
pub struct Args {
    /// One recording of each host.
    #[arg(required = true, num_args = 1.., value_name = "RUN")]
    recordings: Vec<PathBuf>,
    /// Recording to write; - is stdout, without RUN.alignment.json.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    join: JoinArgs,
    /// Chains, with points as HOST:POINT [default: ./taut.toml].
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
    let all = JoinedRecordings::read(&args.recordings, &args.join, &config)?;
    let alignment = format!("{}\n", hosts_json(&all.joined, &all.names()));
    let written = output::recording(to, |path| {
        let mut file = Output::open(path)?;
        write(&all, file.path(), to)?;
        sidecar(to).map_or(Ok(()), |sidecar| output::write(&alignment, Some(&sidecar)))?;
        file.put_in_place().with_context(|| to.shown())
    });
    written?;
    let damage = all.damage();
    damage.iter().for_each(|damage| say!("lost: {damage}"));
    hosts_sentences(&all.joined, &all.names()).iter().for_each(|sentence| say!("{sentence}"));
    let beside = sidecar(to).map_or(String::new(), |sidecar| format!(" and {}", sidecar.shown()));
    let losses = all.losses();
    say!("wrote {}{beside}{losses}", to.shown());
    Ok(if damage.is_empty() && losses.is_none() { Done::Fine } else { Done::DataLost })
}

/// Beside the recording; nowhere beside stdout, a pipe or a device.
fn sidecar(to: &Path) -> Option<PathBuf> {
    (to != Path::new("-") && !output::is_device(to)).then(|| to.with_extension("alignment.json"))
}

fn write(all: &JoinedRecordings, partial: &Path, to: &Path) -> Result<()> {
    let mut writer = Writer::create(partial, &all.info()).map_err(|error| error.at(to))?;
    writer.set_path(to);
    let mut failed = None;
    all.records(&mut |record| {
        if failed.is_none() {
            failed = writer.write(&record).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    writer.finish(&all.ending())?;
    Ok(())
}
