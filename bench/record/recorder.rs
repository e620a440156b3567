//! The recorder by itself, for `overhead.py`: records a command in the full tier and says on
//! stderr what the recording cost. recorder OUTPUT COMMAND…

use taut_capture::{Depth, Options, Target};
use taut_recording::Tier;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let output = words.next().ok_or("which file?")?.into();
    let options = Options {
        output,
        target: Target::Command(words.collect()),
        duration: None,
        tier: Some(Tier::Full),
        kernel_source: None,
        depth: Depth::default(),
        ring_records: None,
        durable: false,
        session: None,
        taut_version: env!("CARGO_PKG_VERSION").into(),
    };
    let recorded = taut_capture::record(&options, &mut |_| {}, &mut |_| {})?;
    let ending = &recorded.ending;
    eprintln!(
        "cpu_ns={} kernel_events={} lost={} stamps={} bytes={}",
        ending.recorder_cpu_ns, ending.kernel_events, ending.lost_kernel_events, ending.stamps, recorded.file_bytes
    );
    Ok(())
}
