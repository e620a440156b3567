//! Follows a recording while it is being written: what was appended since the last look, chunk by chunk. The writer
//! never seeks back, so that whoever follows needs nothing from it but the file.

use std::{fs::File, os::unix::fs::FileExt};

use crate::{
    Ending, Error, Info, Record,
    decoder::Decoder,
    mcap_record::{self, CHUNK, MAGIC, MAX_CHUNK_BYTES, MESSAGE_INDEX, METADATA},
    reader,
    schemas::Channel,
};

/// Opcode and length.
const RECORD_HEAD: usize = 9;
/// Opcode, length, log times of the first and the last message.
const CHUNK_HEAD: usize = 25;
/// A chunk's times are those of its batches' first rows; their last ones are no more than this later.
const BATCH_NS: u64 = 1_000_000_000;
/// For so long after the start stamps are read whoever wants them: locks get their names then.
const EARLY_NS: u64 = 60_000_000_000;
/// Of the file's head, to see whose it is.
const HEAD_BYTES: usize = 1024;
/// The data are over: index and footer follow.
const DATA_END: u8 = 0x0f;

/// Whether a recording was closed: nothing more will come.
///
/// # Errors
/// The file cannot be read.
pub fn is_finished(file: &File) -> std::io::Result<bool> {
    let mut end = [0; MAGIC.len()];
    let at = file.metadata()?.len().checked_sub(end.len() as u64);
    // A file that is just being made begins with what one that is closed ends with.
    match at.filter(|at| *at > 0) {
        Some(at) => file.read_exact_at(&mut end, at).map(|()| end == MAGIC),
        None => Ok(false),
    }
}

/// What of a recording is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// taut's own records, and messages of plain channels; not the views of values, which the stamps hold.
    Records,
    /// Plain channels and values, for those who know nothing else.
    PlainChannels,
}

/// A recording that grows.
pub struct GrowingRecording {
    file: File,
    /// Up to here it is read.
    at: u64,
    wanted: Wanted,
    /// Of chunks that end before this log time not all is wanted: see [`GrowingRecording::is_unwanted`].
    since_ns: u64,
    decoder: Decoder,
    is_checked: bool,
    is_over: bool,
    damaged: u64,
    buffer: Vec<u8>,
}

impl GrowingRecording {
    /// From the start of the file; but kernel events, and stamps behind the first minute, only from chunks that reach
    /// beyond the log time `since_ns` (CLOCK_REALTIME), so that an hour's recording is caught up with at once.
    pub fn new(file: File, since_ns: u64) -> GrowingRecording {
        GrowingRecording::of(Wanted::Records, file, since_ns)
    }

    /// Messages of plain channels alone, values among them, and those only from chunks that reach beyond the log time
    /// `since_ns` (CLOCK_REALTIME). A channel comes before its first message, whenever it was described.
    pub fn of_plain_channels(file: File, since_ns: u64) -> GrowingRecording {
        GrowingRecording::of(Wanted::PlainChannels, file, since_ns)
    }

    fn of(wanted: Wanted, file: File, since_ns: u64) -> GrowingRecording {
        GrowingRecording {
            file,
            at: 0,
            wanted,
            since_ns,
            decoder: Decoder { gives_views: wanted == Wanted::PlainChannels, ..Decoder::default() },
            is_checked: false,
            is_over: false,
            damaged: 0,
            buffer: Vec::new(),
        }
    }

    /// Gives what was appended to `sink`, each record with the CLOCK_MONOTONIC time of its first row. Returns
    /// whether there was anything.
    ///
    /// # Errors
    /// The file cannot be read, is no recording, or is not what it was: it was cut or overwritten.
    pub fn read(&mut self, sink: &mut dyn FnMut(u64, Record)) -> Result<bool, Error> {
        let length = self.file.metadata().map_err(Error::Read)?.len();
        let before = self.at;
        if length < self.at {
            return Err(Error::Channel(format!("was cut from {} to {length} bytes while it was read", self.at)));
        }
        if !self.is_checked {
            if length < HEAD_BYTES as u64 {
                return Ok(false);
            }
            self.check_head()?;
        }
        while !self.is_over && self.record(length, sink)? {}
        Ok(self.at > before)
    }

    /// What is recorded where, once it is known.
    pub fn info(&self) -> Option<&Info> {
        self.decoder.has_info.then_some(&self.decoder.contents.info)
    }

    /// How it ended, once it has.
    pub fn ending(&self) -> Option<&Ending> {
        self.decoder.contents.ending.as_ref()
    }

    /// How many values this signal has had since the start, whatever was left out.
    pub fn values_of(&self, signal: &str) -> u64 {
        let is_it = |number: &u16| {
            let topic = self.decoder.plain.channel(*number).map_or("", |channel| channel.topic.as_str());
            topic.strip_prefix("/value/") == Some(signal)
        };
        self.decoder.values.iter().filter(|(number, _)| is_it(number)).map(|(_, count)| count).sum()
    }

    /// Chunks left out because they failed their checksum.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Bytes that are read, and not needed again.
    pub fn position(&self) -> u64 {
        self.at
    }

    fn check_head(&mut self) -> Result<(), Error> {
        let mut head = [0; HEAD_BYTES];
        self.file.read_exact_at(&mut head, 0).map_err(Error::Read)?;
        if !head.starts_with(&MAGIC) {
            return Err(Error::NotMcap);
        }
        reader::check_head(&head)?;
        (self.is_checked, self.at) = (true, MAGIC.len() as u64);
        Ok(())
    }

    /// Takes the next record; `false` when it is not yet there as a whole.
    fn record(&mut self, length: u64, sink: &mut dyn FnMut(u64, Record)) -> Result<bool, Error> {
        let Some((opcode, bytes)) = self.head(self.at, length)? else { return Ok(false) };
        if !mcap_record::is_known_or_chunk(opcode) || opcode == CHUNK && bytes > MAX_CHUNK_BYTES as u64 {
            return Err(Error::Channel(format!("has no readable record at byte {}", self.at)));
        }
        // What it says of its length may be anything.
        let end = bytes.checked_add(RECORD_HEAD as u64).and_then(|bytes| self.at.checked_add(bytes));
        let Some(end) = end.filter(|end| *end <= length) else { return Ok(false) };
        self.is_over = opcode == DATA_END;
        if opcode == CHUNK && !self.is_unwanted(end, length)? {
            self.chunk((end - self.at) as usize, sink)?;
        }
        // A channel is described in its first chunk, which may be an old one, and beside it.
        if opcode == METADATA && self.wanted == Wanted::PlainChannels && bytes <= MAX_CHUNK_BYTES as u64 {
            self.buffer.resize(bytes as usize, 0);
            self.file.read_exact_at(&mut self.buffer, self.at + RECORD_HEAD as u64).map_err(Error::Read)?;
            self.decoder.plain.copy(&self.buffer);
        }
        self.at = end;
        Ok(true)
    }

    /// Opcode and length of the record at a byte.
    fn head(&self, at: u64, length: u64) -> Result<Option<(u8, u64)>, Error> {
        if at + RECORD_HEAD as u64 > length {
            return Ok(None);
        }
        let mut head = [0; RECORD_HEAD];
        self.file.read_exact_at(&mut head, at).map_err(Error::Read)?;
        Ok(Some((head[0], u64::from_le_bytes(head[1..].try_into().unwrap_or_default()))))
    }

    /// Whether the chunk here, which reaches to byte `end`, holds only what is not wanted. What it holds says the index
    /// behind it; the rare kinds share their chunks, and are always read.
    fn is_unwanted(&self, end: u64, length: u64) -> Result<bool, Error> {
        let index = end + RECORD_HEAD as u64;
        let is_told = end - self.at >= CHUNK_HEAD as u64 && index + 2 <= length;
        if !is_told || self.wanted == Wanted::Records && self.since_ns == 0 {
            return Ok(false);
        }
        let (mut head, mut id) = ([0; CHUNK_HEAD], [0; 2]);
        self.file.read_exact_at(&mut head, self.at).map_err(Error::Read)?;
        let end_ns = u64::from_le_bytes(head[17..].try_into().unwrap_or_default());
        let is_old = end_ns.saturating_add(BATCH_NS) < self.since_ns;
        // Of what is new all records are wanted, whatever the index says.
        if self.wanted == Wanted::Records && !is_old
            || self.head(end, length)?.is_none_or(|(opcode, _)| opcode != MESSAGE_INDEX)
        {
            return Ok(false);
        }
        self.file.read_exact_at(&mut id, index).map_err(Error::Read)?;
        let number = u16::from_le_bytes(id);
        let schema = self.decoder.plain.channel(number).map(|channel| channel.schema_name.as_str());
        let is_ros = schema.and_then(Channel::from_schema) == Some(Channel::Ros);
        let is_early = end_ns <= self.decoder.contents.info.start_realtime_ns.saturating_add(EARLY_NS);
        Ok(match (self.wanted, Channel::from_id(number)) {
            (Wanted::Records, None) if is_ros => is_old,
            (Wanted::Records, Some(Channel::Kernel)) | (Wanted::PlainChannels, None) => is_old,
            (Wanted::Records, Some(Channel::Stamps)) => is_old && !is_early,
            (Wanted::PlainChannels, Some(Channel::Kernel | Channel::Stamps)) => true,
            _ => false,
        })
    }

    fn chunk(&mut self, bytes: usize, sink: &mut dyn FnMut(u64, Record)) -> Result<(), Error> {
        self.buffer.resize(bytes, 0);
        self.file.read_exact_at(&mut self.buffer, self.at).map_err(Error::Read)?;
        let Some(records) = mcap_record::records_of(&self.buffer) else {
            self.damaged += 1;
            return Ok(());
        };
        let mut held = Vec::new();
        self.decoder.records(&records, &[], &mut |log_time_ns, record| held.push((log_time_ns, record)));
        let info = &self.decoder.contents.info;
        for (log_time_ns, record) in held {
            let since_start_ns = log_time_ns.saturating_sub(info.start_realtime_ns);
            sink(info.start_monotonic_ns.saturating_add(since_start_ns), record);
        }
        Ok(())
    }
}
