//! A clean recording from a truncated or damaged one.

use std::{collections::BTreeMap, path::Path};

use crate::{Contents, Damage, Ending, Error, Info, Lost, Output, Record, Writer, read};

/// Damage that a recovered file's ending names; all of it stands in the Metadata `taut.recovered`.
const NOTES_MOST: usize = 20;

/// What a recovery kept and what it could not.
#[derive(Debug)]
pub struct Recovered {
    /// What was lost, a sentence each.
    pub damage: Vec<Damage>,
    /// What the recording says of its losses, those by damage too.
    pub lost: Vec<Lost>,
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
    let by = || format!("taut {}", env!("CARGO_PKG_VERSION"));
    let mut copy = Copying::of(bytes)?;
    copy.info.facts.push(("recovered_by".to_owned(), by()));
    copy.notes_damage = true;
    copy.write(to, |writer, contents| {
        let mut said = BTreeMap::from([("by".to_owned(), by())]);
        let damage = contents.damage.iter().take(1000).zip(1..);
        said.extend(damage.map(|(damage, n)| (format!("damage_{n:04}"), damage.to_string())));
        writer.metadata("taut.recovered", said)
    })
}

/// Writes everything readable of `bytes` to a recording at `to`, in the same way, with what `more` adds.
///
/// # Errors
/// `bytes` are no recording, `to` cannot be written, or what `more` says.
pub fn copy(bytes: &[u8], to: &Path, more: impl FnOnce(&mut Writer) -> Result<(), Error>) -> Result<Recovered, Error> {
    Copying::of(bytes)?.write(to, |writer, _| more(writer))
}

/// Writes everything readable of `bytes`, a recording that began with the writer's or was shifted with both clocks, into another;
/// `seen` gets each record.
///
/// # Errors
/// `bytes` are no recording, or the other cannot be written.
pub fn pour(bytes: &[u8], writer: &mut Writer, seen: &mut dyn FnMut(&Record)) -> Result<Contents, Error> {
    let shift_ns = writer.shift_ns();
    let mut failed = None;
    let contents = read(bytes, &mut |record| {
        if failed.is_none() {
            seen(&record);
            failed = writer.write(&record).and_then(|()| writer.flush_due(time_ns(&record, shift_ns))).err();
        }
    })?;
    failed.map_or(Ok(contents), Err)
}

/// A copy about to be made: its head needs what the other file may say only at its end.
struct Copying<'a> {
    bytes: &'a [u8],
    info: Info,
    ending: Option<Ending>,
    /// Of the last record.
    end_ns: u64,
    /// Whether the ending says what of the other file was damaged: a report of this one then says it.
    notes_damage: bool,
}

impl<'a> Copying<'a> {
    fn of(bytes: &'a [u8]) -> Result<Copying<'a>, Error> {
        let mut end_ns = 0;
        let mut last_log_time_ns = 0;
        let Contents { info, ending, .. } = read(bytes, &mut |record| match record {
            Record::Message(message) => last_log_time_ns = message.log_time_ns.max(last_log_time_ns),
            record => end_ns = end_ns.max(time_ns(&record, 0)),
        })?;
        let shift_ns = info.start_monotonic_ns.wrapping_sub(info.start_realtime_ns);
        if last_log_time_ns > 0 {
            end_ns = end_ns.max(last_log_time_ns.wrapping_add(shift_ns));
        }
        Ok(Copying { bytes, end_ns: end_ns.max(info.start_monotonic_ns), info, ending, notes_damage: false })
    }

    fn write(
        self,
        to: &Path,
        more: impl FnOnce(&mut Writer, &Contents) -> Result<(), Error>,
    ) -> Result<Recovered, Error> {
        let mut output = Output::open(to)?;
        let recovered = self.write_to(output.path(), more).map_err(|error| error.at(to))?;
        output.put_in_place().map_err(|source| Error::Io { path: to.to_owned(), source })?;
        Ok(recovered)
    }

    fn write_to(
        self,
        path: &Path,
        more: impl FnOnce(&mut Writer, &Contents) -> Result<(), Error>,
    ) -> Result<Recovered, Error> {
        let mut writer = Writer::create(path, &self.info)?;
        let mut lost = Vec::new();
        let contents = pour(self.bytes, &mut writer, &mut |record| {
            if let Record::Lost(told) = record {
                lost.push(told.clone());
            }
        })?;
        more(&mut writer, &contents)?;
        let mut ending = self.ending.unwrap_or_else(|| Ending {
            end_monotonic_ns: self.end_ns,
            stamps: contents.stamps,
            kernel_events: contents.kernel_events,
            telemetry: contents.messages,
            ros_events: contents.ros_events,
            reason: "recovered".to_owned(),
            ..Ending::default()
        });
        let damage = contents.damage.iter().take(NOTES_MOST).filter(|_| self.notes_damage);
        ending.notes.extend(damage.map(|damage| format!("of the file that this was recovered from, {damage}")));
        let file_bytes = writer.finish(&ending)?;
        let Contents { damage, stamps, kernel_events, messages, .. } = contents;
        Ok(Recovered { damage, lost, stamps, kernel_events, messages, file_bytes })
    }
}

/// CLOCK_MONOTONIC of a record that has a time; `shift_ns` takes a log time there.
fn time_ns(record: &Record, shift_ns: u64) -> u64 {
    match record {
        Record::Kernel(batch) => batch.time_ns.last().copied().unwrap_or(0),
        Record::Clock(_, pair) => pair.monotonic_ns,
        Record::Thread(thread) => thread.time_ns,
        Record::Object(object) => object.time_ns,
        Record::RosObject(object) => object.time_ns,
        // A loss of which nothing is known has no end.
        Record::Lost(lost) if lost.time_ns == u64::MAX => 0,
        Record::Lost(lost) => lost.time_ns,
        Record::Sample(sample) => sample.time_ns,
        Record::Profile(batch) => batch.time_ns.last().copied().unwrap_or(0),
        Record::Message(message) => message.log_time_ns.wrapping_add(shift_ns),
        Record::Stamps(_)
        | Record::Ros(_)
        | Record::Name(_)
        | Record::Frame(_)
        | Record::Channel(_)
        | Record::Histogram(_) => 0,
    }
}
