//! Reads a recording, whole, torn or damaged, by one mechanism: a zstd chunk is its own seek
//! marker. The file is searched for chunk signatures (fixed fields, `zstd`, the zstd frame magic, a
//! length equation); a chunk counts only when its checksum is right; everything between chunks is
//! walked record by record only to tell damage from index.

use memchr::memmem;

use crate::{
    Damage, Ending, Error, Info,
    records::Record,
    schemas::{self, Channel, Content},
};

const MAGIC: [u8; 8] = [0x89, b'M', b'C', b'A', b'P', 0x30, b'\r', b'\n'];
/// The compression field of a chunk header: length 4, "zstd".
const SIGNATURE: &[u8] = b"\x04\0\0\0zstd";
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// From a chunk's first byte to its signature, and to its compressed records.
const TO_SIGNATURE: usize = 37;
const TO_RECORDS: usize = 53;
/// Of a chunk's declared length, what is not compressed records.
const CHUNK_FIXED: u64 = 44;
/// No chunk of ours is larger; a hostile file must not ask for more memory.
const MAX_CHUNK_BYTES: usize = 64 << 20;

const MESSAGE: u8 = 0x05;
const HEADER: u8 = 0x01;
const METADATA: u8 = 0x0c;

/// What a file held besides its records.
#[derive(Debug, Default)]
pub struct Contents {
    /// What was recorded where; defaults when every copy of it is gone.
    pub info: Info,
    /// How it ended; `None` when the recorder was killed.
    pub ending: Option<Ending>,
    /// What could not be read.
    pub damage: Vec<Damage>,
    /// Stamps given to the sink.
    pub stamps: u64,
    /// Kernel events given to the sink.
    pub kernel_events: u64,
}

/// Gives every readable record of the file to `sink`, in the order of the file. Memory is bounded
/// by one chunk. A record of a chunk whose checksum is wrong is never given.
pub fn read(bytes: &[u8], sink: &mut dyn FnMut(Record)) -> Result<Contents, Error> {
    check_head(bytes)?;
    let mut reader =
        Reader { bytes, contents: Contents::default(), sink, chunks: 0, has_info: false, buffer: Vec::new() };
    reader.run();
    if reader.chunks == 0 {
        return Err(no_chunks(bytes));
    }
    Ok(reader.contents)
}

/// What was recorded where, without giving the records to anybody.
pub fn info(bytes: &[u8]) -> Result<Info, Error> {
    read(bytes, &mut |_| {}).map(|contents| contents.info)
}

struct Reader<'a> {
    bytes: &'a [u8],
    contents: Contents,
    sink: &'a mut dyn FnMut(Record),
    chunks: u64,
    has_info: bool,
    buffer: Vec<u8>,
}

/// A place that looks like a chunk.
struct Candidate {
    start: usize,
    end: usize,
    start_ns: u64,
    end_ns: u64,
    uncompressed: usize,
    crc: u32,
}

impl Reader<'_> {
    fn run(&mut self) {
        let finder = memmem::Finder::new(SIGNATURE);
        // Up to here the file is accounted for.
        let mut done = 0;
        let mut from = 0;
        while let Some(found) = finder.find(&self.bytes[from..]) {
            let signature = from + found;
            from = signature + 1;
            let Some(candidate) = self.candidate(signature, done) else { continue };
            self.gap(done, candidate.start);
            if candidate.end > self.bytes.len() {
                self.torn(&candidate);
                return;
            }
            if self.chunk(&candidate) {
                done = candidate.end;
                from = done;
            } else {
                // Its length may be what is wrong: look on inside it.
                let next = self.next_start(&finder, from);
                let upto = next.unwrap_or(self.bytes.len()).min(candidate.end);
                self.contents.damage.push(Damage::Chunk {
                    start: candidate.start,
                    end: upto,
                    start_ns: candidate.start_ns,
                    end_ns: candidate.end_ns,
                });
                done = upto;
            }
        }
        self.gap(done, self.bytes.len());
    }

    /// The start of the next place that looks like a chunk, from byte `from`.
    fn next_start(&self, finder: &memmem::Finder<'_>, from: usize) -> Option<usize> {
        finder
            .find_iter(&self.bytes[from..])
            .filter_map(|found| self.candidate(from + found, from))
            .map(|candidate| candidate.start)
            .next()
    }

    fn candidate(&self, signature: usize, not_before: usize) -> Option<Candidate> {
        let start = signature.checked_sub(TO_SIGNATURE).filter(|start| *start >= not_before)?;
        let number = |at: usize| self.u64_at(start + at);
        let (length, records) = (number(1)?, number(45)?);
        // Either length may be the damaged one; the checksum decides.
        let records = match length.checked_sub(CHUNK_FIXED) {
            Some(rest) if rest == records => records,
            Some(rest) if self.plausible_end(start, records).is_none() => rest,
            _ => records,
        };
        if self.bytes.get(start + TO_RECORDS..start + TO_RECORDS + 4) != Some(&ZSTD_MAGIC) {
            return None;
        }
        let end = (start + TO_RECORDS).checked_add(usize::try_from(records).ok()?)?;
        Some(Candidate {
            start,
            end,
            start_ns: number(9)?,
            end_ns: number(17)?,
            uncompressed: usize::try_from(number(25)?).ok()?,
            crc: u32::from_le_bytes(self.bytes.get(start + 33..start + 37)?.try_into().ok()?),
        })
    }

    fn plausible_end(&self, start: usize, records: u64) -> Option<usize> {
        let end = (start + TO_RECORDS).checked_add(usize::try_from(records).ok()?)?;
        (end <= self.bytes.len()).then_some(end)
    }

    /// Gives the chunk's records to the sink if its bytes are what was written.
    fn chunk(&mut self, candidate: &Candidate) -> bool {
        if candidate.uncompressed > MAX_CHUNK_BYTES {
            return false;
        }
        let compressed = &self.bytes[candidate.start + TO_RECORDS..candidate.end];
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.reserve(candidate.uncompressed);
        let mut decoder = match zstd::bulk::Decompressor::new() {
            Ok(decoder) => decoder,
            Err(_) => return false,
        };
        let whole = decoder.decompress_to_buffer(compressed, &mut buffer).is_ok_and(|n| n == candidate.uncompressed)
            && crc32fast::hash(&buffer) == candidate.crc;
        if whole {
            self.chunks += 1;
            self.records(&buffer);
        }
        self.buffer = buffer;
        whole
    }

    /// The last chunk, of which the end is missing: what decompresses is complete records, but no
    /// checksum vouches for them.
    fn torn(&mut self, candidate: &Candidate) {
        use std::io::Read;
        let compressed = &self.bytes[candidate.start + TO_RECORDS..];
        let mut buffer = Vec::new();
        if let Ok(decoder) = zstd::stream::read::Decoder::with_buffer(compressed) {
            // The error is the tear itself; what came before it is in the buffer.
            let _ = decoder.take(MAX_CHUNK_BYTES as u64).read_to_end(&mut buffer);
        }
        let (stamps, kernel_events) = (self.contents.stamps, self.contents.kernel_events);
        self.chunks += u64::from(!buffer.is_empty());
        self.records(&buffer);
        self.contents.damage.push(Damage::Torn {
            start: candidate.start,
            missing: candidate.end - self.bytes.len(),
            stamps: self.contents.stamps - stamps,
            kernel_events: self.contents.kernel_events - kernel_events,
        });
    }

    fn records(&mut self, mut bytes: &[u8]) {
        while let Some((opcode, body, rest)) = split_record(bytes) {
            bytes = rest;
            if opcode == MESSAGE && body.len() >= 22 {
                self.message(u16::from_le_bytes([body[0], body[1]]), &body[22..]);
            }
        }
    }

    fn message(&mut self, channel: u16, data: &[u8]) {
        // Other channels are views of what the raw ones hold.
        let Some(channel) = Channel::from_id(channel) else { return };
        match schemas::decode(channel, data) {
            Some(Content::Record(record)) => {
                match &record {
                    Record::Stamps(batch) => self.contents.stamps += batch.ticks.len() as u64,
                    Record::Kernel(batch) => self.contents.kernel_events += batch.time_ns.len() as u64,
                    _ => {}
                }
                (self.sink)(record);
            }
            Some(Content::Info(info)) => {
                self.contents.info = *info;
                self.has_info = true;
            }
            Some(Content::Ending(ending)) => self.contents.ending = Some(ending),
            None => self.contents.damage.push(Damage::Message { topic: topic(channel) }),
        }
    }

    /// The bytes between two chunks must be whole records that are no chunks.
    fn gap(&mut self, start: usize, end: usize) {
        let mut at = start;
        if at == 0 && self.bytes.starts_with(&MAGIC) {
            at = MAGIC.len();
        }
        while at < end {
            if self.bytes[at..end] == MAGIC {
                return;
            }
            match split_record(&self.bytes[at..end]) {
                Some((opcode, _, rest)) if is_known(opcode) => at = end - rest.len(),
                _ => {
                    self.contents.damage.push(Damage::Bytes { start: at, end });
                    return;
                }
            }
        }
    }

    fn u64_at(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }
}

fn topic(channel: Channel) -> &'static str {
    schemas::CHANNELS.iter().find(|(c, ..)| *c == channel).map_or("", |(_, topic, ..)| topic)
}

/// Opcodes that may stand between our chunks: all of MCAP's but the chunk, and private ones.
fn is_known(opcode: u8) -> bool {
    matches!(opcode, 0x01..=0x05 | 0x07..=0x0f | 0x80..)
}

fn split_record(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(9)?;
    let length = usize::try_from(u64::from_le_bytes(head[1..].try_into().ok()?)).ok()?;
    let (body, rest) = rest.split_at_checked(length)?;
    Some((head[0], body, rest))
}

/// Refuses what is certainly not ours; a damaged head is left to the chunks to prove.
fn check_head(bytes: &[u8]) -> Result<(), Error> {
    let Some(mut rest) = bytes.strip_prefix(&MAGIC) else { return Ok(()) };
    while let Some((opcode, body, next)) = split_record(rest) {
        match opcode {
            HEADER if profile(body).is_some_and(|p| p != "taut") && !mentions_us(bytes) => {
                return Err(Error::Foreign { profile: profile(body).unwrap_or_default() });
            }
            METADATA => {
                if let Some(feature) = unknown_feature(body) {
                    return Err(Error::UnknownFeature { feature });
                }
            }
            0x06 => break,
            _ => {}
        }
        rest = next;
    }
    Ok(())
}

/// One damaged byte in the profile must not turn a recording into a stranger's file.
fn mentions_us(bytes: &[u8]) -> bool {
    memmem::find(&bytes[..bytes.len().min(1 << 16)], b"taut.format").is_some()
}

fn profile(header: &[u8]) -> Option<String> {
    string(header).map(|(text, _)| text)
}

/// The first required feature of a `taut.format` Metadata record that this reader lacks.
fn unknown_feature(metadata: &[u8]) -> Option<String> {
    let (name, rest) = string(metadata)?;
    if name != "taut.format" {
        return None;
    }
    let mut rest = rest.get(4..)?;
    while let Some((key, after)) = string(rest) {
        let (value, after) = string(after)?;
        rest = after;
        let features = value.split_whitespace().find(|_| key == "required_features");
        if let Some(feature) = features {
            return Some(feature.to_owned());
        }
        if key == "version" && value.parse::<u32>().is_ok_and(|v| v > crate::FORMAT_VERSION && v < 1000) {
            return Some(format!("format version {value}"));
        }
    }
    None
}

fn string(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = bytes.split_at_checked(4)?;
    let (text, rest) = rest.split_at_checked(u32::from_le_bytes(length.try_into().ok()?) as usize)?;
    Some((String::from_utf8_lossy(text).into_owned(), rest))
}

fn no_chunks(bytes: &[u8]) -> Error {
    match bytes.strip_prefix(&MAGIC) {
        None if MAGIC.starts_with(&bytes[..bytes.len().min(8)]) || mentions_us(bytes) => {
            Error::Truncated { bytes: bytes.len() }
        }
        None => Error::NotMcap,
        Some(rest) => match split_record(rest).and_then(|(opcode, body, _)| profile(body).filter(|_| opcode == HEADER))
        {
            Some(profile) if profile != "taut" => Error::Foreign { profile },
            _ => Error::Truncated { bytes: bytes.len() },
        },
    }
}
