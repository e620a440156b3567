//! One channel, one stretch of time, without the bytes of the others: by the index at the end of the file, or, where
//! that is missing, the chunks' own heads.

use std::{
    collections::BTreeMap,
    io::{Read, Seek, SeekFrom},
    ops::{ControlFlow, Range},
};

use crate::{
    Damage, Error,
    mcap_record::{
        self, CHUNK, CHUNK_FIXED, MAGIC, MAX_CHUNK_BYTES, MESSAGE_INDEX, MESSAGE_INDEX_ENTRY, MESSAGE_INDEX_HEAD,
        METADATA, SIGNATURE, TO_RECORDS, TO_SIGNATURE,
    },
    plain::{self, Descriptions},
    reader,
    records::{Lost, PlainChannel, Record},
    schemas::{self, Channel, Content},
};

const FOOTER: u8 = 0x02;
const CHUNK_INDEX: u8 = 0x08;
const STATISTICS: u8 = 0x0b;
/// Of a Statistics record, what stands before the counts by channel.
const TO_COUNTS: usize = 42;
/// Footer record and the magic behind it.
const TAIL_BYTES: u64 = 9 + 20 + 8;
/// Of the head, to see whose it is: the header and both statements of the format.
const HEAD_BYTES: u64 = 1024;
const RECORD_HEAD: usize = 9;
/// Records between chunks that are read; larger ones are not ours.
const MOST_RECORD: u64 = 16 << 20;
/// Bytes at a time when looking for the next chunk in a damaged file.
const SEARCH_BYTES: usize = 1 << 20;

/// A recording's plain channels, to be read one by one.
pub struct Log<R> {
    source: R,
    length: u64,
    descriptions: Descriptions,
    chunks: Vec<Chunk>,
    /// Messages by channel.
    counts: BTreeMap<u16, u64>,
    is_indexed: bool,
    damage: Vec<Damage>,
    compressed: Vec<u8>,
}

/// Where a chunk lies, and what it holds.
#[derive(Clone, Debug)]
struct Chunk {
    start: u64,
    bytes: u64,
    start_ns: u64,
    end_ns: u64,
    channels: Vec<u16>,
}

/// One message, as it lies in its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The channel's number.
    pub channel: u16,
    /// CLOCK_REALTIME at the recording's start plus the time since.
    pub log_time_ns: u64,
    /// Counts what was written; a gap is where messages were lost.
    pub sequence: u32,
    /// CDR.
    pub data: &'a [u8],
}

impl<R: Read + Seek> Log<R> {
    /// Reads the index, or hops from chunk to chunk when there is none.
    ///
    /// # Errors
    /// It is not a recording, of a version that this taut does not know, or cannot be read.
    pub fn open(mut source: R) -> Result<Log<R>, Error> {
        let length = source.seek(SeekFrom::End(0)).map_err(Error::Read)?;
        let mut log = Log {
            source,
            length,
            descriptions: Descriptions::default(),
            chunks: Vec::new(),
            counts: BTreeMap::new(),
            is_indexed: false,
            damage: Vec::new(),
            compressed: Vec::new(),
        };
        let head = log.bytes(0, HEAD_BYTES.min(length))?;
        reader::check_head(&head)?;
        log.is_indexed = log.read_index()?;
        if !log.is_indexed {
            log.hop(head.starts_with(&MAGIC))?;
        }
        if log.chunks.is_empty() {
            return Err(reader::no_chunks(&head));
        }
        Ok(log)
    }

    /// The channels that hold plain messages: telemetry, values, what was imported.
    pub fn channels(&self) -> Vec<&PlainChannel> {
        self.descriptions.channels().collect()
    }

    /// Whether the index at the end served.
    pub fn is_indexed(&self) -> bool {
        self.is_indexed
    }

    /// What could not be read so far.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Log times of the first message and behind the last one, of all channels.
    pub fn span(&self) -> Range<u64> {
        // A chunk may hold schemas only; then it has no times.
        let held = || self.chunks.iter().filter(|chunk| !chunk.channels.is_empty());
        let start = held().map(|chunk| chunk.start_ns).min().unwrap_or(0);
        start..held().map(|chunk| chunk.end_ns).max().unwrap_or(0).saturating_add(1)
    }

    /// Messages of a channel, as the indexes count them.
    pub fn messages_of(&self, channel: u16) -> u64 {
        self.counts.get(&channel).copied().unwrap_or(0)
    }

    /// Bytes of the chunks that hold a channel, as they lie in the file.
    pub fn bytes_of(&self, channel: u16) -> u64 {
        self.chunks.iter().filter(|chunk| chunk.channels.contains(&channel)).map(|chunk| chunk.bytes).sum()
    }

    /// Gives a channel's messages of a stretch of log time to `sink`, in the order of the file.
    ///
    /// # Errors
    /// The source cannot be read. A damaged chunk is none: see [`Log::damage`].
    pub fn read(
        &mut self,
        channel: u16,
        times: Range<u64>,
        sink: &mut dyn FnMut(Message<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        for chunk in self.holding(channel, &times) {
            let Some(records) = self.chunk(&chunk)? else { continue };
            let of_it = messages(&records).filter(|m| m.channel == channel && times.contains(&m.log_time_ns));
            if of_it.map(&mut *sink).any(|flow| flow.is_break()) {
                break;
            }
        }
        Ok(())
    }

    /// The same from the last to the first.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn read_back(
        &mut self,
        channel: u16,
        times: Range<u64>,
        sink: &mut dyn FnMut(Message<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        for chunk in self.holding(channel, &times).into_iter().rev() {
            let Some(records) = self.chunk(&chunk)? else { continue };
            let mut of_it: Vec<_> =
                messages(&records).filter(|m| m.channel == channel && times.contains(&m.log_time_ns)).collect();
            of_it.reverse();
            if of_it.into_iter().map(&mut *sink).any(|flow| flow.is_break()) {
                break;
            }
        }
        Ok(())
    }

    /// What the recorder counted as lost, of all kinds.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn lost(&mut self) -> Result<Vec<Lost>, Error> {
        let mut lost = Vec::new();
        self.read(Channel::Lost as u16, 0..u64::MAX, &mut |message| {
            if let Some(Content::Record(Record::Lost(told))) = schemas::decode(Channel::Lost, message.data) {
                lost.push(told);
            }
            ControlFlow::Continue(())
        })?;
        Ok(lost)
    }

    /// The state at a moment: of each channel the last message at or before it. One chunk is read for each.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn state_at(&mut self, log_time_ns: u64, sink: &mut dyn FnMut(Message<'_>)) -> Result<(), Error> {
        let numbers: Vec<u16> = self.descriptions.channels().map(|channel| channel.number).collect();
        for number in numbers {
            self.read_back(number, 0..log_time_ns.saturating_add(1), &mut |message| {
                sink(message);
                ControlFlow::Break(())
            })?;
        }
        Ok(())
    }

    fn holding(&self, channel: u16, times: &Range<u64>) -> Vec<Chunk> {
        let meets = |chunk: &&Chunk| chunk.start_ns < times.end && times.start <= chunk.end_ns;
        self.chunks.iter().filter(meets).filter(|chunk| chunk.channels.contains(&channel)).cloned().collect()
    }

    /// A chunk's records, if its checksum is right.
    fn chunk(&mut self, chunk: &Chunk) -> Result<Option<Vec<u8>>, Error> {
        let mut compressed = std::mem::take(&mut self.compressed);
        self.fill(&mut compressed, chunk.start, chunk.bytes)?;
        let records = mcap_record::records_of(&compressed);
        self.compressed = compressed;
        if records.is_none() {
            self.damage.push(Damage::Chunk {
                start: chunk.start as usize,
                end: (chunk.start + chunk.bytes) as usize,
                held: Vec::new(),
            });
        }
        Ok(records)
    }

    /// The summary, if there is a whole one.
    fn read_index(&mut self) -> Result<bool, Error> {
        let Some(tail) = self.length.checked_sub(TAIL_BYTES) else { return Ok(false) };
        let footer = self.bytes(tail, TAIL_BYTES)?;
        let u64_at = |at: usize| u64::from_le_bytes(footer[at..at + 8].try_into().unwrap_or_default());
        let summary = u64_at(9);
        if footer[0] != FOOTER || !footer.ends_with(&MAGIC) || summary == 0 || summary >= tail {
            return Ok(false);
        }
        if tail - summary > MOST_RECORD.max(self.length / 4) {
            return Ok(false);
        }
        let bytes = self.bytes(summary, tail - summary)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes);
        crc.update(&footer[..25]);
        if crc.finalize().to_le_bytes() != footer[25..29] {
            return Ok(false);
        }
        let mut rest = &bytes[..];
        while let Some((opcode, body, after)) = mcap_record::split_record(rest) {
            match opcode {
                plain::SCHEMA => self.descriptions.schema(body),
                plain::CHANNEL => self.descriptions.take(body),
                STATISTICS => self.counts = counts(body).unwrap_or_default(),
                CHUNK_INDEX => self.chunks.extend(chunk_of_index(body).filter(|c| c.start + c.bytes <= self.length)),
                _ => {}
            }
            rest = after;
        }
        self.chunks.sort_by_key(|chunk| chunk.start);
        Ok(!self.chunks.is_empty())
    }

    /// Without an index: the heads of the chunks, one after the other; the data between is not read.
    fn hop(&mut self, has_magic: bool) -> Result<(), Error> {
        let mut at = if has_magic { MAGIC.len() as u64 } else { 0 };
        while at + RECORD_HEAD as u64 <= self.length {
            let head = self.bytes(at, (TO_RECORDS as u64).min(self.length - at))?;
            let body = u64::from_le_bytes(head[1..9].try_into().unwrap_or_default());
            let end = at.saturating_add(RECORD_HEAD as u64).saturating_add(body);
            let is_whole = end <= self.length && mcap_record::is_known_or_chunk(head[0]);
            match head[0] {
                CHUNK if is_whole => self.chunks.extend(chunk_at(&head, at, end)),
                MESSAGE_INDEX if is_whole && body >= MESSAGE_INDEX_HEAD => {
                    let channel = u16::from_le_bytes([head[9], head[10]]);
                    self.chunks.last_mut().into_iter().for_each(|chunk| chunk.channels.push(channel));
                    *self.counts.entry(channel).or_default() += (body - MESSAGE_INDEX_HEAD) / MESSAGE_INDEX_ENTRY;
                }
                METADATA if is_whole && body <= MOST_RECORD => {
                    let metadata = self.bytes(at + RECORD_HEAD as u64, body)?;
                    self.descriptions.copy(&metadata);
                }
                FOOTER if is_whole => break,
                _ if is_whole => {}
                _ => {
                    let next = self.next_chunk(at + 1)?;
                    let lost = next.unwrap_or(self.length);
                    if head[..MAGIC.len().min(head.len())] != MAGIC {
                        self.damage.push(Damage::Bytes { start: at as usize, end: lost as usize });
                    }
                    at = lost;
                    continue;
                }
            }
            at = end;
        }
        Ok(())
    }

    /// Where the next bytes lie that look like a chunk, from `from` on.
    fn next_chunk(&mut self, mut from: u64) -> Result<Option<u64>, Error> {
        while from < self.length {
            let block = self.bytes(from, (SEARCH_BYTES as u64).min(self.length - from))?;
            for found in memchr::memmem::find_iter(&block, SIGNATURE) {
                let Some(start) = found.checked_sub(TO_SIGNATURE) else { continue };
                let Some(head) = block.get(start..start + TO_RECORDS) else { continue };
                let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
                if head[0] == CHUNK && number(1).checked_sub(CHUNK_FIXED) == Some(number(45)) {
                    return Ok(Some(from + start as u64));
                }
            }
            if block.len() < SEARCH_BYTES {
                return Ok(None);
            }
            // A head may lie across the blocks' border.
            from += (SEARCH_BYTES - TO_RECORDS) as u64;
        }
        Ok(None)
    }

    fn bytes(&mut self, start: u64, length: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.fill(&mut bytes, start, length)?;
        Ok(bytes)
    }

    fn fill(&mut self, into: &mut Vec<u8>, start: u64, length: u64) -> Result<(), Error> {
        self.source.seek(SeekFrom::Start(start)).map_err(Error::Read)?;
        into.clear();
        into.resize(length as usize, 0);
        self.source.read_exact(into).map_err(Error::Read)
    }
}

/// The messages among a chunk's records.
fn messages(mut records: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        loop {
            let (opcode, body, rest) = mcap_record::split_record(records)?;
            records = rest;
            if opcode == mcap_record::MESSAGE && body.len() >= 22 {
                return Some(Message {
                    channel: u16::from_le_bytes([body[0], body[1]]),
                    sequence: u32::from_le_bytes([body[2], body[3], body[4], body[5]]),
                    log_time_ns: u64::from_le_bytes(body[6..14].try_into().ok()?),
                    data: &body[22..],
                });
            }
        }
    })
}

/// The messages by channel of a Statistics record.
fn counts(body: &[u8]) -> Option<BTreeMap<u16, u64>> {
    let pairs = body.get(TO_COUNTS + 4..)?.chunks_exact(10);
    let pair =
        |pair: &[u8]| Some((u16::from_le_bytes([pair[0], pair[1]]), u64::from_le_bytes(pair[2..].try_into().ok()?)));
    pairs.map(pair).collect()
}

/// A chunk as an index record has it.
fn chunk_of_index(body: &[u8]) -> Option<Chunk> {
    let number = |at: usize| Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?));
    let listed = u32::from_le_bytes(body.get(32..36)?.try_into().ok()?) as usize;
    let channels = body.get(36..36 + listed)?.chunks_exact(10).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let chunk = Chunk {
        start: number(16)?,
        bytes: number(24)?,
        start_ns: number(0)?,
        end_ns: number(8)?,
        channels: channels.collect(),
    };
    (chunk.bytes <= MAX_CHUNK_BYTES as u64 && chunk.start.checked_add(chunk.bytes).is_some()).then_some(chunk)
}

/// A chunk by its own head.
fn chunk_at(head: &[u8], start: u64, end: u64) -> Option<Chunk> {
    let number = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
    let (start_ns, end_ns) = (number(9)?, number(17)?);
    (end - start <= MAX_CHUNK_BYTES as u64).then_some(Chunk {
        start,
        bytes: end - start,
        start_ns,
        end_ns,
        channels: Vec::new(),
    })
}
