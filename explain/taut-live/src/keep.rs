//! Keeps a stretch of the stream as a recording of its own: "record the next minute".

use std::path::{Path, PathBuf};

use taut_recording::{Ending, Error, Info, Record, Writer};

/// A recording that ends by itself.
pub struct Keeping {
    path: PathBuf,
    writer: Option<Writer>,
    until_ns: u64,
    ending: Ending,
    failure: Option<String>,
}

impl Keeping {
    /// From `now_ns` to `until_ns` (CLOCK_MONOTONIC); begins with what is `known` already.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(path: &Path, info: &Info, known: &[Record], now_ns: u64, until_ns: u64) -> Result<Keeping, Error> {
        let mut keeping = Keeping {
            path: path.to_owned(),
            writer: Some(Writer::create(path, &info.since(now_ns))?),
            until_ns,
            ending: Ending { reason: "duration".to_owned(), ..Ending::default() },
            failure: None,
        };
        known.iter().for_each(|record| keeping.write(record));
        Ok(keeping)
    }

    /// Takes a record of the stream; `time_ns` is that of its first row.
    pub fn take(&mut self, time_ns: u64, record: &Record) {
        self.ending.count(record);
        self.write(record);
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.flush_due(time_ns)) {
            self.fail(&error);
        }
    }

    /// Whether it is over at this moment.
    pub fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.until_ns || self.writer.is_none()
    }

    /// Closes the file; says where it is, or what went wrong.
    pub fn finish(mut self, now_ns: u64) -> Result<PathBuf, String> {
        self.ending.end_monotonic_ns = now_ns.min(self.until_ns);
        match (self.writer.take(), self.failure) {
            (Some(writer), None) => writer.finish(&self.ending).map(|_| self.path).map_err(|error| error.to_string()),
            (_, failure) => Err(failure.unwrap_or_default()),
        }
    }

    /// Where, and until when.
    pub fn told(&self) -> (PathBuf, u64) {
        (self.path.clone(), self.until_ns)
    }

    fn write(&mut self, record: &Record) {
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.write(record)) {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &Error) {
        self.failure = Some(error.to_string());
        self.writer = None;
    }
}
