//! Reads a recording, whole, truncated or damaged, by one mechanism: a zstd chunk is its own seek
//! marker. The file is searched for chunk signatures (fixed fields, `zstd`, the zstd frame magic, a
//! length equation); a chunk counts only when its checksum is right; everything between chunks is
//! walked record by record only to tell damage from index.

use memchr::memmem;

use crate::{
    Contents, Damage, Error, Info,
    decoder::Decoder,
    holes::{Held, Holes},
    mcap_record::{
        CHUNK, CHUNK_FIXED, HEADER, MAGIC, MAX_CHUNK_BYTES, MESSAGE_INDEX, MESSAGE_INDEX_ENTRY, METADATA, SIGNATURE,
        TO_RECORDS, TO_SIGNATURE, ZSTD_MAGIC, is_known, split_record, string,
    },
    records::{Lost, LostWhat, Record},
    schemas::Channel,
};

/// The frame of a truncated chunk may not ask for a larger window either.
const MAX_WINDOW_LOG: u32 = 24;

/// Gives every readable record of the file to `sink`, in the order of the file; at the end, for each hole that damage
/// made, [`Lost`] records as a full ring would have left them. Memory is bounded by one chunk. A record of a chunk whose
/// checksum is wrong is never given.
pub fn read(bytes: &[u8], sink: &mut dyn FnMut(Record)) -> Result<Contents, Error> {
    check_head(bytes)?;
    Reader::new(bytes, sink).read()
}

/// What was recorded where; reads no further than it must, usually one chunk.
pub fn info(bytes: &[u8]) -> Result<Info, Error> {
    check_head(bytes)?;
    let mut sink = |_| {};
    let reader = Reader { only_info: true, ..Reader::new(bytes, &mut sink) };
    reader.read().map(|contents| contents.info)
}

struct Reader<'a> {
    bytes: &'a [u8],
    decoder: Decoder,
    damage: Vec<Damage>,
    sink: &'a mut dyn FnMut(Record),
    chunks: u64,
    holes: Holes,
    /// Stop as soon as there is an Info.
    only_info: bool,
    /// From a Metadata record, which no checksum vouches for.
    unverified_info: Option<Info>,
    /// None only when zstd cannot get memory; then no chunk is readable.
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
    buffer: Vec<u8>,
}

/// A place that looks like a chunk.
struct Candidate {
    start: usize,
    end: usize,
    end_ns: u64,
    uncompressed: usize,
    crc: u32,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], sink: &'a mut dyn FnMut(Record)) -> Reader<'a> {
        Reader {
            bytes,
            decoder: Decoder::default(),
            damage: Vec::new(),
            sink,
            chunks: 0,
            holes: Holes::default(),
            only_info: false,
            unverified_info: None,
            decompressor: zstd::bulk::Decompressor::new().ok(),
            buffer: Vec::new(),
        }
    }

    fn read(mut self) -> Result<Contents, Error> {
        self.walk();
        if self.chunks == 0 {
            return Err(no_chunks(self.bytes));
        }
        if !self.only_info {
            std::mem::take(&mut self.holes).losses().into_iter().for_each(|lost| (self.sink)(Record::Lost(lost)));
        }
        let Decoder { mut contents, has_info, undecodable, nameless, .. } = self.decoder;
        contents.damage = self.damage;
        if !has_info {
            let copy = self.unverified_info.take();
            contents.damage.push(Damage::Info { has_copy: copy.is_some() });
            contents.info = copy.unwrap_or_default();
        }
        contents.damage.extend(undecodable.into_iter().map(|(topic, count)| Damage::Message { topic, count }));
        contents.damage.extend(nameless.into_iter().map(|(channel, count)| Damage::Schema { channel, count }));
        Ok(contents)
    }

    fn walk(&mut self) {
        let finder = memmem::Finder::new(SIGNATURE);
        // Up to here the file is accounted for.
        let mut done = 0;
        let mut from = 0;
        while let Some(found) = finder.find(&self.bytes[from..]) {
            let signature = from + found;
            from = signature + 1;
            let Some(candidate) = self.candidate(signature, done) else { continue };
            self.gap(done, candidate.start);
            let is_cut = candidate.end > self.bytes.len();
            if !is_cut && self.chunk(&candidate) {
                if self.only_info && self.decoder.has_info {
                    return;
                }
                done = candidate.end;
                from = done;
                continue;
            }
            // Its length may be what is wrong: look on inside it.
            let next = self.next_start(&finder, from);
            if is_cut && next.is_none() {
                self.torn(&candidate);
                return;
            }
            done = next.unwrap_or(self.bytes.len()).min(candidate.end);
            self.quarantine(&candidate, done);
        }
        self.gap(done, self.bytes.len());
    }

    /// Says which chunk is left out; what it held is known from the message indexes behind it.
    fn quarantine(&mut self, candidate: &Candidate, end: usize) {
        let mut held = Vec::new();
        let mut rest = self.bytes.get(candidate.end..).unwrap_or_default();
        while let Some((MESSAGE_INDEX, body, after)) = split_record(rest) {
            let Some((id, entries)) = body.split_at_checked(6) else { break };
            let id = u16::from_le_bytes([id[0], id[1]]);
            let topic = match (Channel::from_id(id), self.decoder.plain.channel(id)) {
                (Some(channel), _) => channel.described().1.to_owned(),
                (None, Some(channel)) => channel.topic.clone(),
                (None, None) => format!("channel {id}"),
            };
            held.push((topic, entries.len() as u64 / MESSAGE_INDEX_ENTRY));
            rest = after;
        }
        // An index that is not there, or is damaged, says nothing.
        let is_told = self.bytes.get(candidate.end) == Some(&MESSAGE_INDEX) && !held.is_empty();
        let has = |channel: Channel| held.iter().any(|(topic, _)| topic == channel.described().1);
        let [stamps, kernel, ros] = [Channel::Stamps, Channel::Kernel, Channel::Ros].map(|of| !is_told || has(of));
        let rows = Held::Rows { stamps, kernel, ros };
        self.holes.damage((end - candidate.start) as u64, rows);
        for (topic, count) in
            held.iter().filter(|(topic, _)| !topic.starts_with("/taut/") && !topic.starts_with("/value/"))
        {
            let (place, count, what) = (topic.clone(), *count, LostWhat::Telemetry);
            let time_ns = candidate.end_ns;
            (self.sink)(Record::Lost(Lost { time_ns, what, place, count, ..Lost::default() }));
        }
        self.damage.push(Damage::Chunk { start: candidate.start, end, held });
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
        if self.bytes.get(start + TO_RECORDS..start + TO_RECORDS + 4) != Some(&ZSTD_MAGIC) {
            return None;
        }
        // When the two lengths disagree one of them is damaged; the zstd frame knows its own end.
        let records = match length.checked_sub(CHUNK_FIXED) {
            Some(rest) if rest == records => usize::try_from(records).ok()?,
            _ => match zstd::zstd_safe::find_frame_compressed_size(&self.bytes[start + TO_RECORDS..]) {
                Ok(size) => size,
                Err(_) => usize::try_from(records).ok()?,
            },
        };
        Some(Candidate {
            start,
            end: (start + TO_RECORDS).checked_add(records)?,
            end_ns: number(17)?,
            uncompressed: usize::try_from(number(25)?).ok()?,
            crc: u32::from_le_bytes(self.bytes.get(start + 33..start + 37)?.try_into().ok()?),
        })
    }

    /// Gives the chunk's records to the sink if its bytes are what was written.
    fn chunk(&mut self, candidate: &Candidate) -> bool {
        let Some(decompressor) = self.decompressor.as_mut().filter(|_| candidate.uncompressed <= MAX_CHUNK_BYTES)
        else {
            return false;
        };
        let compressed = &self.bytes[candidate.start + TO_RECORDS..candidate.end];
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.reserve(candidate.uncompressed);
        let whole =
            decompressor.decompress_to_buffer(compressed, &mut buffer).is_ok_and(|n| n == candidate.uncompressed)
                && crc32fast::hash(&buffer) == candidate.crc;
        if whole {
            self.chunks += 1;
            let Contents { stamps, kernel_events, ros_events, .. } = self.decoder.contents;
            self.records(&buffer);
            let of = &self.decoder.contents;
            let bytes = (candidate.end - candidate.start) as u64;
            let rows = [of.stamps - stamps, of.kernel_events - kernel_events, of.ros_events - ros_events];
            self.holes.whole(bytes, rows);
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
        if let Ok(mut decoder) = zstd::stream::read::Decoder::with_buffer(compressed)
            && decoder.window_log_max(MAX_WINDOW_LOG).is_ok()
        {
            // The error is the tear itself; what came before it is in the buffer.
            let _ = decoder.take(MAX_CHUNK_BYTES as u64).read_to_end(&mut buffer);
        }
        let Contents { stamps, kernel_events, messages, ros_events, .. } = self.decoder.contents;
        self.chunks += u64::from(!buffer.is_empty());
        self.records(&buffer);
        let of = &self.decoder.contents;
        let has = [of.stamps > stamps, of.kernel_events > kernel_events, of.ros_events > ros_events];
        let [stamps_held, kernel_held, ros_held] = has.map(|has_some| has_some || has == [false; 3]);
        let rows = Held::Rows { stamps: stamps_held, kernel: kernel_held, ros: ros_held };
        self.holes.damage((candidate.end - self.bytes.len()) as u64, rows);
        self.damage.push(Damage::Torn {
            start: candidate.start,
            missing: candidate.end - self.bytes.len(),
            stamps: self.decoder.contents.stamps - stamps,
            kernel_events: self.decoder.contents.kernel_events - kernel_events,
            messages: self.decoder.contents.messages - messages,
        });
    }

    fn records(&mut self, bytes: &[u8]) {
        let (sink, holes) = (&mut self.sink, &mut self.holes);
        self.decoder.records(bytes, self.bytes, &mut |_, record| {
            holes.take(&record);
            sink(record);
        });
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
                Some((opcode, body, rest)) if is_known(opcode) => {
                    at = end - rest.len();
                    if opcode == METADATA && self.unverified_info.is_none() {
                        self.unverified_info =
                            metadata_value(body, "taut.info", "json").and_then(|json| serde_json::from_str(&json).ok());
                    }
                    if opcode == METADATA {
                        self.decoder.plain.copy(body);
                    }
                }
                _ => {
                    // A chunk may lie in them, unless they are fewer than the head of one has.
                    let held = match end - at > TO_RECORDS {
                        true => Held::Rows { stamps: true, kernel: true, ros: true },
                        false => Held::NoRows,
                    };
                    self.holes.damage((end - at) as u64, held);
                    self.damage.push(Damage::Bytes { start: at, end });
                    return;
                }
            }
        }
    }

    fn u64_at(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }
}

/// Refuses what is certainly not ours; a damaged head is left to the chunks to prove. Nothing
/// vouches for Metadata, so the format is refused only if every copy of it in the head requires it.
pub(crate) fn check_head(bytes: &[u8]) -> Result<(), Error> {
    let Some(mut rest) = bytes.strip_prefix(&MAGIC) else { return Ok(()) };
    let mut verdicts = Vec::new();
    while let Some((opcode, body, next)) = split_record(rest) {
        match opcode {
            HEADER if profile(body).is_some_and(|p| p != "taut") && !mentions_us(bytes) => {
                return Err(Error::Foreign { profile: profile(body).unwrap_or_default() });
            }
            METADATA if string(body).is_some_and(|(name, _)| name == "taut.format") => {
                verdicts.push(unknown_feature(body));
            }
            CHUNK => break,
            _ => {}
        }
        rest = next;
    }
    let refusals: Option<Vec<String>> = verdicts.into_iter().collect();
    match refusals.and_then(|features| features.into_iter().next()) {
        Some(feature) => Err(Error::UnknownFeature { feature }),
        None => Ok(()),
    }
}

/// One damaged byte in the profile must not turn a recording into a foreign file.
fn mentions_us(bytes: &[u8]) -> bool {
    memmem::find(&bytes[..bytes.len().min(1 << 16)], b"taut.format").is_some()
}

fn profile(header: &[u8]) -> Option<String> {
    string(header).map(|(text, _)| text)
}

/// The first required feature of a `taut.format` Metadata record that this reader lacks; it lacks all.
fn unknown_feature(metadata: &[u8]) -> Option<String> {
    let features = metadata_value(metadata, "taut.format", "required_features").unwrap_or_default();
    let version = metadata_value(metadata, "taut.format", "version").unwrap_or_default();
    let is_newer = version.parse::<u32>().is_ok_and(|version| version > crate::FORMAT_VERSION);
    let feature = features.split_whitespace().next().map(str::to_owned);
    feature.or_else(|| is_newer.then(|| format!("format version {version}")))
}

/// The value of a key in the Metadata record of that name.
fn metadata_value(metadata: &[u8], name: &str, key: &str) -> Option<String> {
    let (said, rest) = string(metadata)?;
    let mut rest = rest.get(4..).filter(|_| said == name)?;
    loop {
        let (at, after) = string(rest)?;
        let (value, after) = string(after)?;
        if at == key {
            return Some(value);
        }
        rest = after;
    }
}

pub(crate) fn no_chunks(bytes: &[u8]) -> Error {
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
