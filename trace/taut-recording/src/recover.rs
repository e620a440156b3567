//! A clean recording from a torn or damaged one.

use std::{collections::BTreeMap, path::Path};

use crate::{Contents, Damage, Ending, Error, Record, Writer, read};

/// What a recovery kept and what it could not.
#[derive(Debug)]
pub struct Recovered {
    /// What was lost, a sentence each.
    pub damage: Vec<Damage>,
    /// Stamps kept.
    pub stamps: u64,
    /// Kernel events kept.
    pub kernel_events: u64,
    /// Plain messages kept.
    pub messages: u64,
    /// Length of the clean file.
    pub file_bytes: u64,
}

/// Writes everything readable of `bytes` to a clean recording at `to`, by way of a neighbour that
/// replaces it only when whole. The clean file says among its facts that it was recovered,
/// and in the Metadata `taut.recovered` what was lost.
pub fn recover(bytes: &[u8], to: &Path) -> Result<Recovered, Error> {
    // Two passes: the head of the clean file needs what the damaged one may say only at its end.
    let mut end_ns = 0;
    let mut last_log_time_ns = 0;
    let Contents { mut info, ending, .. } = read(bytes, &mut |record| match record {
        Record::Message(message) => last_log_time_ns = message.log_time_ns.max(last_log_time_ns),
        record => end_ns = end_ns.max(time_ns(&record, 0)),
    })?;
    // From a log time to CLOCK_MONOTONIC.
    let shift_ns = info.start_monotonic_ns.wrapping_sub(info.start_realtime_ns);
    if last_log_time_ns > 0 {
        end_ns = end_ns.max(last_log_time_ns.wrapping_add(shift_ns));
    }
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Path::new(&partial);
    let result = (|| {
        info.facts.push(("recovered_by".to_owned(), format!("taut {}", env!("CARGO_PKG_VERSION"))));
        let mut writer = Writer::create(partial, &info)?;
        let mut failed = None;
        let contents = read(bytes, &mut |record| {
            if failed.is_none() {
                let wrote = writer.write(&record).and_then(|()| writer.flush_due(time_ns(&record, shift_ns)));
                failed = wrote.err();
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        let ending = ending.unwrap_or_else(|| Ending {
            end_monotonic_ns: end_ns.max(info.start_monotonic_ns),
            stamps: contents.stamps,
            kernel_events: contents.kernel_events,
            telemetry: contents.messages,
            reason: "recovered".to_owned(),
            ..Ending::default()
        });
        let mut said = BTreeMap::from([("by".to_owned(), format!("taut {}", env!("CARGO_PKG_VERSION")))]);
        said.extend(
            contents
                .damage
                .iter()
                .take(1000)
                .zip(1..)
                .map(|(damage, n)| (format!("damage_{n:04}"), damage.to_string())),
        );
        writer.metadata("taut.recovered", said)?;
        let file_bytes = writer.finish(&ending)?;
        std::fs::rename(partial, to).map_err(|source| Error::Io { path: to.to_owned(), source })?;
        let Contents { damage, stamps, kernel_events, messages, .. } = contents;
        Ok(Recovered { damage, stamps, kernel_events, messages, file_bytes })
    })();
    if result.is_err() {
        let _ = std::fs::remove_file(partial);
    }
    result
}

/// CLOCK_MONOTONIC of a record that has a time; `shift_ns` takes a log time there.
fn time_ns(record: &Record, shift_ns: u64) -> u64 {
    match record {
        Record::Kernel(batch) => batch.time_ns.last().copied().unwrap_or(0),
        Record::Clock(_, pair) => pair.monotonic_ns,
        Record::Thread(thread) => thread.time_ns,
        Record::Object(object) => object.time_ns,
        Record::Lost(lost) => lost.time_ns,
        Record::Sample(sample) => sample.time_ns,
        Record::Profile(batch) => batch.time_ns.last().copied().unwrap_or(0),
        Record::Message(message) => message.log_time_ns.wrapping_add(shift_ns),
        Record::Stamps(_) | Record::Name(_) | Record::Frame(_) | Record::Channel(_) | Record::Histogram(_) => 0,
    }
}
