//! The recording that an importer fills, by way of a neighbour that replaces it only when whole.

use std::path::{Path, PathBuf};

use taut_recording::{Ending, Info, Writer};

use crate::Error;

/// What came over, and what did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Channels of the recording.
    pub channels: u64,
    /// Messages of all of them.
    pub messages: u64,
    /// From the first to the last, in seconds.
    pub duration_ns: u64,
    /// Length of the recording.
    pub file_bytes: u64,
    /// What could not be read, a sentence each.
    pub damage: Vec<String>,
}

/// A recording being filled.
pub(crate) struct Import {
    /// Until the end.
    writer: Option<Writer>,
    partial: PathBuf,
    to: PathBuf,
    start_ns: u64,
    end_ns: u64,
    done: Imported,
    is_whole: bool,
}

impl Import {
    /// Starts a recording of what happened from `start_ns` since 1970.
    pub fn begin(to: &Path, kind: &str, start_ns: u64) -> Result<Import, Error> {
        let mut partial = to.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let info = Info {
            taut_version: env!("CARGO_PKG_VERSION").to_owned(),
            // The source has one clock, the wall's.
            start_monotonic_ns: start_ns,
            start_realtime_ns: start_ns,
            facts: vec![("imported_from".to_owned(), kind.to_owned())],
            ..Info::default()
        };
        let writer = Writer::create(&partial, &info)?;
        let (to, done) = (to.to_owned(), Imported::default());
        Ok(Import { writer: Some(writer), partial, to, start_ns, end_ns: start_ns, done, is_whole: false })
    }

    pub fn channel(&mut self, topic: &str, schema_name: &str, schema: &str) -> Result<u16, Error> {
        self.done.channels += 1;
        let writer = self.writer.as_mut();
        Ok(writer.map_or(Ok(0), |writer| writer.channel(topic, schema_name, schema))?)
    }

    /// Takes a message of that moment (ns since 1970).
    pub fn message(&mut self, channel: u16, time_ns: u64, sequence: u32, data: &[u8]) -> Result<(), Error> {
        self.done.messages += 1;
        self.start_ns = self.start_ns.min(time_ns);
        self.end_ns = self.end_ns.max(time_ns);
        if let Some(writer) = &mut self.writer {
            writer.message(channel, time_ns, sequence, |out| out.extend_from_slice(data))?;
            writer.flush_due(time_ns)?;
        }
        Ok(())
    }

    pub fn damage(&mut self, sentence: String) {
        /// A file of noise must not fill the memory with sentences.
        const MOST: usize = 1000;
        if self.done.damage.len() < MOST {
            self.done.damage.push(sentence);
        }
    }

    /// Puts the recording in its place.
    pub fn finish(mut self) -> Result<Imported, Error> {
        let said = self.done.damage.iter().zip(1..).map(|(damage, n)| (format!("damage_{n:04}"), damage.clone()));
        let said = said.collect();
        let ending = Ending {
            end_monotonic_ns: self.end_ns,
            telemetry: self.done.messages,
            reason: "imported".to_owned(),
            ..Ending::default()
        };
        if let Some(mut writer) = self.writer.take() {
            if !self.done.damage.is_empty() {
                writer.metadata("taut.imported", said)?;
            }
            self.done.file_bytes = writer.finish(&ending)?;
        }
        self.done.duration_ns = self.end_ns - self.start_ns;
        std::fs::rename(&self.partial, &self.to)
            .map_err(|source| taut_recording::Error::Io { path: self.to.clone(), source })?;
        self.is_whole = true;
        Ok(std::mem::take(&mut self.done))
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        if !self.is_whole {
            // Nothing half-written is left; that there was nothing to remove is as well.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}
