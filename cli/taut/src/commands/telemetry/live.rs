//! `taut telemetry --live`: what is logged now, on a websocket for plotting tools.

use std::{
    fs::File,
    path::Path,
    sync::atomic::Ordering,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use taut_foxglove::{PING, Server};
use taut_recording::{GrowingRecording, Record, Shown, is_finished};
use taut_report::words;

use crate::{address, exit::Done, stop};

/// Where Foxglove looks first.
pub const ADDRESS: &str = "127.0.0.1:8765";
/// Between two looks: the recorder writes every 200 ms.
const LOOK: Duration = Duration::from_millis(50);
/// A recorder writes something each 30 s, whatever happens.
const SILENCE: Duration = Duration::from_secs(65);

/// Serves until the recording ends, no recorder writes it any more, or the user ends it.
pub fn serve(recording: &Path, file: File, address: &str, origins: &[String]) -> Result<Done> {
    // It runs beside what is recorded.
    taut_live::give_way();
    let subject = || recording.shown();
    if is_finished(&file).with_context(subject)? {
        let name = words::shell(&[subject()]);
        bail!("{}: has ended; Foxglove opens the file itself, and here there is: taut telemetry {name}", subject());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut tail = GrowingRecording::of_plain_channels(file, now.as_nanos() as u64);
    // A file that is no recording is said before anybody connects.
    let mut early = Vec::new();
    tail.read(&mut |_, record| early.push(record)).with_context(subject)?;
    let name = recording.file_name().unwrap_or(recording.as_os_str()).to_string_lossy();
    let (at, name) = (address::resolved(address, ADDRESS)?, format!("taut: {name}"));
    let mut server = Server::start(at, &name, origins, PING, || {
        say!("taut: warning: a viewer takes less than comes and misses messages; the recording has them");
    })?;
    say!("taut: live at ws://{}; Foxglove: Open connection, Foxglove WebSocket; Ctrl-C ends it", server.address());
    let stop = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    early.into_iter().for_each(|record| server.take(record));
    let (mut grew, mut why) = (Instant::now(), None);
    let done = loop {
        if tail.read(&mut |_, record: Record| server.take(record)).with_context(subject)? {
            grew = Instant::now();
        }
        if tail.ending().is_some() {
            why = Some("the recording has ended");
            break Done::Fine;
        }
        if stop.flag.load(Ordering::Relaxed) {
            break Done::Fine;
        }
        if grew.elapsed() > SILENCE {
            why = Some("the recorder is gone, and the recording has no end; next: taut recover");
            break Done::DataLost;
        }
        std::thread::sleep(LOOK);
    };
    let (messages, channels) = (server.messages(), server.channels());
    server.stop(why.unwrap_or("taut was stopped"));
    why.iter().for_each(|why| say!("taut: {why}"));
    say!("taut: {} messages of {} went by", words::count(messages), words::quantity(channels as u64, "channel"));
    if tail.damaged() == 0 {
        return Ok(done);
    }
    say!("taut: warning: {} of the recording failed their checksum", words::quantity(tail.damaged(), "chunk"));
    Ok(Done::DataLost)
}
