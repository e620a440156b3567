//! mjlib's telemetry log (`TLOG0003`), as mjbots' robots write it: blocks of schemas and data, one record after the
//! other, from the format's public description and the order in which its writer writes.
//!
//! Header `TLOG0003`, flags. Blocks: type, size, body. A *schema* block gives a record's id its name and type; a
//! *data* block holds one instance, with its flags in front: distance to the last block of this id, µs since 1970, CRC-32 of the
//! whole block, snappy. *Seek markers*, about one a second, carry a code to find one's way back by. An *index* ends the file.

mod bytes;
mod schema;

use std::{
    collections::BTreeMap,
    io::{BufReader, Read, Seek},
    path::Path,
};

use crate::{Error, Imported, error::Trouble, writing::Import};
use bytes::Bytes;
use schema::Type;

const MAGIC: &[u8; 8] = b"TLOG0003";
const SCHEMA: u64 = 1;
const DATA: u64 = 2;
const INDEX: u64 = 3;
const DICTIONARY: u64 = 4;
const SEEK_MARKER: u64 = 5;
/// Flags of a data block.
const PREVIOUS_OFFSET: u64 = 1 << 0;
const TIMESTAMP: u64 = 1 << 1;
const CHECKSUM: u64 = 1 << 2;
const SNAPPY: u64 = 1 << 4;
/// `0xfdcab9a897867564`, little endian: the code that a seek marker begins with.
const MARK: [u8; 8] = 0xfdca_b9a8_9786_7564_u64.to_le_bytes();
/// Larger blocks are damage, or no telemetry.
const MOST_BLOCK: u64 = 64 << 20;
/// A message may be larger than its block: numbers of variable length become fixed ones.
const MOST_MESSAGE: usize = 4 << 20;
const MOST_RECORDS: usize = 20_000;
const SEARCH_BYTES: usize = 1 << 20;

/// Imports the log `source`, `length` bytes long, into a recording at `to`. `progress` gets the bytes done.
///
/// # Errors
/// It is no such log, has parts that are not known, or the recording cannot be written. Then there is no recording.
pub fn import<R: Read + Seek>(
    source: R,
    length: u64,
    to: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Imported, Error> {
    let mut log = Log { source: BufReader::with_capacity(1 << 18, source), length, at: 0 };
    log.header()?;
    let start = log.at;
    let start_ns = first_time(&mut log)?;
    log.go_to(start)?;
    let mut run =
        Run { import: Import::begin(to, "mjlib TLOG0003", start_ns)?, records: BTreeMap::new(), last_ns: start_ns };
    let mut told = 0;
    while let Some(block) = log.next(&mut |damage| run.import.damage(damage))? {
        match run.block(&block) {
            Ok(()) => {}
            Err(Trouble::Fatal(error)) => return Err(error),
            Err(Trouble::Damage(why)) => {
                run.import.damage(format!("the block at byte {} {why}; it was left out", block.start));
                // Its length may be what is wrong.
                log.resume(&block, &mut |damage| run.import.damage(damage))?;
            }
        }
        if log.at >= told + (1 << 20) {
            told = log.at;
            progress(told);
        }
    }
    if run.import_is_empty() {
        return Err(Error::Empty("no data block that can be read".to_owned()));
    }
    run.import.finish()
}

struct Log<R> {
    source: BufReader<R>,
    length: u64,
    at: u64,
}

/// A block with its head.
struct Block {
    start: u64,
    kind: u64,
    /// Of `bytes`, those before the body.
    head: usize,
    bytes: Vec<u8>,
}

impl<R: Read + Seek> Log<R> {
    fn header(&mut self) -> Result<(), Error> {
        let mut magic = [0; 8];
        let foreign =
            |why: &str| Error::Foreign { kind: "mjlib log", why: why.to_owned(), writer: "mjbots' telemetry" };
        if self.length < 9 || self.source.read_exact(&mut magic).is_err() {
            return Err(foreign("shorter than a header"));
        }
        if &magic != MAGIC {
            return Err(if magic.starts_with(b"TLOG") {
                Error::Unknown { at: 0, what: format!("the log version {:?}", String::from_utf8_lossy(&magic)) }
            } else {
                foreign("it does not begin with TLOG0003")
            });
        }
        self.at = 8;
        match self.varuint()? {
            Some((0, _)) => Ok(()),
            flags => Err(Error::Unknown { at: 8, what: format!("header flags {:#x}", flags.map_or(0, |f| f.0)) }),
        }
    }

    /// The next block that is whole, wherever it is; tells what lies between.
    fn next(&mut self, damage: &mut dyn FnMut(String)) -> Result<Option<Block>, Error> {
        while self.at < self.length {
            let start = self.at;
            let kind = self.varuint()?;
            let size = self.varuint()?;
            let (Some((kind, a)), Some((size, b))) = (kind, size) else {
                damage(format!("bytes {start} to {} are no block: the end of the log is missing", self.length));
                return Ok(None);
            };
            let head = [a, b].concat();
            let end = (start + head.len() as u64).saturating_add(size);
            if !(SCHEMA..=SEEK_MARKER).contains(&kind) || size > MOST_BLOCK || end > self.length {
                let next = self.find_mark(start + 1)?;
                let lost = next.unwrap_or(self.length);
                // A log that was cut has its last block torn; elsewhere a head is damaged.
                let what =
                    if next.is_none() { "are no whole block: the end of the log is missing" } else { "are no blocks" };
                damage(format!("bytes {start} to {lost} {what}; they were left out"));
                self.go_to(lost)?;
                continue;
            }
            let mut bytes = head;
            let head = bytes.len();
            bytes.resize(head + size as usize, 0);
            self.source.read_exact(&mut bytes[head..])?;
            self.at = end;
            return Ok(Some(Block { start, kind, head, bytes }));
        }
        Ok(None)
    }

    /// Behind a damaged block: where it ends, if a block begins there; else at the next seek marker.
    fn resume(&mut self, block: &Block, damage: &mut dyn FnMut(String)) -> Result<(), Error> {
        let end = self.at;
        if end == self.length {
            return Ok(());
        }
        let looks_right = match (self.varuint()?, self.varuint()?) {
            (Some((kind, a)), Some((size, b))) => {
                let body = end + (a.len() + b.len()) as u64;
                (SCHEMA..=SEEK_MARKER).contains(&kind) && body.saturating_add(size) <= self.length
            }
            _ => false,
        };
        if looks_right {
            return self.go_to(end);
        }
        let next = self.find_mark(block.start + 1)?.unwrap_or(self.length);
        damage(format!("bytes {} to {next} could not be separated; they were left out", block.start));
        self.go_to(next)
    }

    /// Where the next seek marker with a right checksum begins.
    fn find_mark(&mut self, mut from: u64) -> Result<Option<u64>, Error> {
        // A marker is short: a few bytes for each record.
        const MOST_MARKER: u64 = 1 << 20;
        while from < self.length {
            self.go_to(from)?;
            let mut block = vec![0; SEARCH_BYTES.min((self.length - from) as usize)];
            self.source.read_exact(&mut block)?;
            for found in block.windows(MARK.len()).enumerate().filter(|(_, w)| *w == MARK).map(|(at, _)| at as u64) {
                // The byte behind code and checksum says how long the head before them is.
                self.go_to(from + found + 12)?;
                let mut head = [0];
                if self.source.read_exact(&mut head).is_err() || !(2..=6).contains(&head[0]) {
                    continue;
                }
                let Some(start) = (from + found).checked_sub(u64::from(head[0])) else { continue };
                self.go_to(start)?;
                let (Some((SEEK_MARKER, a)), Some((size, b))) = (self.varuint()?, self.varuint()?) else { continue };
                if a.len() + b.len() != usize::from(head[0]) || size > MOST_MARKER || self.at + size > self.length {
                    continue;
                }
                let mut bytes = [a, b].concat();
                let crc_at = bytes.len() + MARK.len();
                bytes.resize(bytes.len() + size as usize, 0);
                self.source.read_exact(&mut bytes[usize::from(head[0])..])?;
                if has_checksum(&mut bytes, crc_at) {
                    return Ok(Some(start));
                }
            }
            if block.len() < SEARCH_BYTES {
                return Ok(None);
            }
            from += (SEARCH_BYTES - MARK.len() + 1) as u64;
        }
        Ok(None)
    }

    /// A number of variable length, with its bytes; `None` at the end of the file or when it is too long.
    fn varuint(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let mut bytes = Vec::new();
        while bytes.len() < 10 {
            let mut byte = [0];
            if self.source.read(&mut byte)? == 0 {
                return Ok(None);
            }
            self.at += 1;
            bytes.push(byte[0]);
            if byte[0] < 0x80 {
                return Ok(Bytes::new(&bytes).varuint().map(|value| (value, bytes)));
            }
        }
        Ok(None)
    }

    fn go_to(&mut self, at: u64) -> Result<(), Error> {
        // Relative, so that what is buffered stays.
        let here = self.source.stream_position()?;
        self.source.seek_relative(at as i64 - here as i64)?;
        self.at = at;
        Ok(())
    }
}

/// Time of the first data block that has one.
fn first_time<R: Read + Seek>(log: &mut Log<R>) -> Result<u64, Error> {
    while let Some(block) = log.next(&mut |_| {})? {
        if block.kind == DATA
            && let Ok(Data { time_ns: Some(time_ns), .. }) = data(&block)
        {
            return Ok(time_ns);
        }
    }
    Ok(0)
}

/// One record's channel.
struct Record {
    channel: u16,
    of: Type,
    sequence: u32,
}

struct Run {
    import: Import,
    /// By id; `None` for one whose schema could not be read.
    records: BTreeMap<u64, Record>,
    last_ns: u64,
}

impl Run {
    fn import_is_empty(&self) -> bool {
        self.records.values().all(|record| record.sequence == 0)
    }

    fn block(&mut self, block: &Block) -> Result<(), Trouble> {
        match block.kind {
            SCHEMA => self.schema(block),
            DATA => self.data(block),
            DICTIONARY => Err(Error::Unknown { at: block.start, what: "a compression dictionary".to_owned() }.into()),
            // Where records are, for those who jump; and for them, where the schemas are.
            INDEX | SEEK_MARKER => Ok(()),
            _ => Ok(()),
        }
    }

    fn schema(&mut self, block: &Block) -> Result<(), Trouble> {
        let damaged = |why: String| Trouble::Damage(format!("has no readable schema ({why})"));
        let mut from = Bytes::new(&block.bytes[block.head..]);
        let (id, flags) = (from.varuint(), from.varuint());
        let (Some(id), Some(flags)) = (id, flags) else { return Err(damaged("it is too short".to_owned())) };
        if flags != 0 {
            return Err(Error::Unknown { at: block.start, what: format!("the schema flags {flags:#x}") }.into());
        }
        let name = from.string().ok_or_else(|| damaged("it has no name".to_owned()))?;
        let of = Type::read(&mut from).map_err(|why| match why {
            schema::Why::Unknown(what) => Trouble::Fatal(Error::Unknown { at: block.start, what }),
            schema::Why::Damaged(why) => damaged(format!("record {name:?}: {why}")),
        })?;
        if self.records.len() >= MOST_RECORDS {
            return Err(damaged(format!("more than {MOST_RECORDS} records")));
        }
        let (schema_name, text) = of.ros2msg(&name);
        let channel = self.import.channel(&topic(&name), &schema_name, &text)?;
        self.records.insert(id, Record { channel, of, sequence: 0 });
        Ok(())
    }

    fn data(&mut self, block: &Block) -> Result<(), Trouble> {
        let data = data(block)?;
        let Some(record) = self.records.get_mut(&data.id) else {
            return Err(Trouble::Damage(format!("is of record {}, which has no schema", data.id)));
        };
        let unpacked;
        let value = if data.is_snappy {
            let is_bounded = snap::raw::decompress_len(data.value).is_ok_and(|n| n as u64 <= MOST_BLOCK);
            let packed = is_bounded.then(|| snap::raw::Decoder::new().decompress_vec(data.value).ok()).flatten();
            unpacked = packed.ok_or_else(|| Trouble::Damage("does not decompress".to_owned()))?;
            &unpacked[..]
        } else {
            data.value
        };
        let message = record
            .of
            .transcode(value, MOST_MESSAGE)
            .map_err(|why| Trouble::Damage(format!("does not fit its schema ({why})")))?;
        let time_ns = data.time_ns.unwrap_or(self.last_ns);
        self.last_ns = time_ns;
        record.sequence = record.sequence.wrapping_add(1);
        let (channel, sequence) = (record.channel, record.sequence);
        self.import.message(channel, time_ns, sequence, &message)?;
        Ok(())
    }
}

struct Data<'a> {
    id: u64,
    time_ns: Option<u64>,
    is_snappy: bool,
    value: &'a [u8],
}

/// A data block's parts. The fields that flags announce stand in front of the value, in the order of the flags.
fn data(block: &Block) -> Result<Data<'_>, Trouble> {
    let short = || Trouble::Damage("is too short".to_owned());
    let mut from = Bytes::new(&block.bytes[block.head..]);
    let id = from.varuint().ok_or_else(short)?;
    let flags = from.varuint().ok_or_else(short)?;
    let unknown = flags & !(PREVIOUS_OFFSET | TIMESTAMP | CHECKSUM | SNAPPY);
    if flags & PREVIOUS_OFFSET != 0 {
        from.varuint().ok_or_else(short)?;
    }
    let mut time_ns = None;
    if flags & TIMESTAMP != 0 {
        let micros = from.take(8).and_then(|b| b.try_into().ok()).map(i64::from_le_bytes).ok_or_else(short)?;
        let nanos = u64::try_from(micros).ok().and_then(|micros| micros.checked_mul(1000));
        time_ns = Some(
            nanos.ok_or_else(|| Trouble::Damage(format!("has the time {micros} µs, before 1970 or beyond 2554")))?,
        );
    }
    if flags & CHECKSUM != 0 {
        let crc_at = block.bytes.len() - from.left();
        from.take(4).ok_or_else(short)?;
        if !has_checksum(&mut block.bytes.clone(), crc_at) {
            return Err(Trouble::Damage("fails its checksum".to_owned()));
        }
    }
    // Only now: a damaged block may state any flags.
    if unknown != 0 {
        return Err(Error::Unknown { at: block.start, what: format!("the data flags {unknown:#x}") }.into());
    }
    Ok(Data { id, time_ns, is_snappy: flags & SNAPPY != 0, value: from.rest() })
}

/// Whether the CRC-32 at `crc_at` is that of the block with zeros in its place.
fn has_checksum(block: &mut [u8], crc_at: usize) -> bool {
    let Some(field) = block.get_mut(crc_at..crc_at + 4) else { return false };
    let stated = [field[0], field[1], field[2], field[3]];
    field.fill(0);
    crc32fast::hash(block).to_le_bytes() == stated
}

/// Records are named like `imu` or `leg.front`; a topic begins with a slash.
fn topic(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() || c.is_whitespace() { '_' } else { c }).collect();
    format!("/{}", name.trim_start_matches('/'))
}
