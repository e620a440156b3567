//! Any MCAP file from its first byte to its last, of any writer: the records by the `mcap` crate, their framing here,
//! where a wrong length asks for no memory and a damaged chunk affects no other. taut's own recordings are read by
//! `reader`, which finds chunks even where the framing is gone.

use std::{
    io::{BufReader, Read},
    ops::Range,
};

pub use mcap::records::Record;
use mcap::records::{ChunkHeader, op};

use crate::{
    Error,
    mcap_record::{MAGIC, split_record},
};

/// Larger chunks, or records that are no messages, are damage, or of an unknown writer.
const MOST_BYTES: u64 = 192 << 20;

/// What stands next in the file.
#[derive(Debug)]
pub enum Item<'a> {
    /// A record, of a chunk or of the file itself; where it, or its chunk, begins.
    Record(u64, Record<'a>),
    /// Something that was left out: a sentence.
    Damage(String),
}

/// A reader that gives one record after the other.
pub struct McapReader<R> {
    source: BufReader<R>,
    /// Read so far.
    at: u64,
    /// Where the record began that is being read.
    start: u64,
    is_over: bool,
    /// Bytes of a message that are wanted.
    message_bytes: u64,
    body: Vec<u8>,
    /// The records of the chunk that is being read, and how many bytes of them are done.
    chunk: Vec<u8>,
    done: usize,
}

/// A record that lies in the file itself.
enum Outer {
    /// Its opcode; its bytes are in the buffer, of a message only the first.
    Record(u8),
    /// It was too long to be one; how long it said it was.
    Skipped(u64),
    /// The file has no more, or ends in the middle of a record.
    End,
}

impl<R: Read> McapReader<R> {
    /// Reads on behind the eight bytes by which the caller told that it is an MCAP file. Of a message that lies in no chunk, no
    /// more than its first `message_bytes` are read.
    pub fn new(source: BufReader<R>, message_bytes: u64) -> McapReader<R> {
        let at = MAGIC.len() as u64;
        let (body, chunk) = (Vec::new(), Vec::new());
        McapReader { source, at, start: at, is_over: false, message_bytes, body, chunk, done: 0 }
    }

    /// Bytes of the file that were read.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next record or damage; `None` at the end of the data.
    ///
    /// # Errors
    /// The source cannot be read, or a chunk is compressed in a way that is not known.
    #[expect(clippy::should_implement_trait, reason = "an item borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        let damage = |what: String| Ok(Some(Item::Damage(what)));
        while !self.is_over {
            if self.done < self.chunk.len() {
                let Some((opcode, range)) = record_at(&self.chunk, self.done) else {
                    self.chunk.clear();
                    return damage(format!(
                        "the chunk at byte {} ends within a record, which was left out",
                        self.start
                    ));
                };
                self.done = range.end;
                if is_told(opcode) {
                    return Ok(Some(item(opcode, &self.chunk[range], self.start)));
                }
                continue;
            }
            let start = self.at;
            self.start = start;
            match self.outer().map_err(Error::Read)? {
                Outer::Record(op::DATA_END | op::FOOTER) => self.is_over = true,
                Outer::Record(op::CHUNK) => {
                    self.done = 0;
                    if let Err(why) = unpack(&self.body, &mut self.chunk, start)? {
                        self.chunk.clear();
                        return damage(format!("the chunk at byte {start} {why}"));
                    }
                }
                Outer::Record(opcode) if is_told(opcode) => return Ok(Some(item(opcode, &self.body, start))),
                Outer::Record(_) => {}
                Outer::Skipped(length) => {
                    return damage(format!(
                        "the record at byte {start} says that it has {length} bytes; it was left out"
                    ));
                }
                Outer::End => {
                    self.is_over = true;
                    return damage(if self.at == start {
                        format!("the file ends at byte {start} without its end mark; what came before was read")
                    } else {
                        format!("the file ends within the record at byte {start}, which was left out")
                    });
                }
            }
        }
        Ok(None)
    }

    fn outer(&mut self) -> std::io::Result<Outer> {
        let Some(head) = self.exactly::<9>()? else { return Ok(Outer::End) };
        let opcode = head[0];
        let length = u64::from_le_bytes([head[1], head[2], head[3], head[4], head[5], head[6], head[7], head[8]]);
        let wanted = match opcode {
            // Images and point clouds may be large; what matters to most stands at their head.
            op::MESSAGE => length.min(self.message_bytes),
            op::ATTACHMENT | op::MESSAGE_INDEX => 0,
            _ if length > MOST_BYTES => 0,
            _ => length,
        };
        self.body.clear();
        let taken = (&mut self.source).take(wanted).read_to_end(&mut self.body)? as u64;
        let passed = std::io::copy(&mut (&mut self.source).take(length - wanted), &mut std::io::sink())?;
        self.at += taken + passed;
        if taken + passed < length {
            return Ok(Outer::End);
        }
        let is_unknown_length = wanted == 0 && length > MOST_BYTES && opcode != op::ATTACHMENT;
        Ok(if is_unknown_length { Outer::Skipped(length) } else { Outer::Record(opcode) })
    }

    /// That many bytes; `None` where the file ends before.
    fn exactly<const N: usize>(&mut self) -> std::io::Result<Option<[u8; N]>> {
        let mut bytes = Vec::with_capacity(N);
        (&mut self.source).take(N as u64).read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        Ok(bytes.try_into().ok())
    }
}

/// Others are for those who jump about in the file.
fn is_told(opcode: u8) -> bool {
    matches!(opcode, op::HEADER | op::SCHEMA | op::CHANNEL | op::MESSAGE | op::METADATA)
}

fn item(opcode: u8, body: &[u8], at: u64) -> Item<'_> {
    match parse(opcode, body) {
        Some(record) => Item::Record(at, record),
        None => Item::Damage(format!("a record at byte {at} cannot be read; it was left out")),
    }
}

/// Puts a chunk's records into `records`, or says why there are none.
fn unpack(body: &[u8], records: &mut Vec<u8>, at: u64) -> Result<Result<(), String>, Error> {
    records.clear();
    let Some(Record::Chunk { header, data }) = parse(op::CHUNK, body) else {
        return Ok(Err("has no readable head; it was left out".to_owned()));
    };
    let left_out = |why: String| Ok(Err(format!("{why}; its messages were left out")));
    let ChunkHeader { uncompressed_size: size, uncompressed_crc: crc, compression, .. } = header;
    if size > MOST_BYTES {
        return left_out(format!("says that it has {size} bytes"));
    }
    let data: &[u8] = &data;
    let unpacked = match compression.as_str() {
        "" => data.take(size + 1).read_to_end(records),
        "zstd" => zstd::Decoder::new(data).and_then(|from| from.take(size + 1).read_to_end(records)),
        "lz4" => lz4_flex::frame::FrameDecoder::new(data).take(size + 1).read_to_end(records),
        _ => return Err(Error::UnknownCompression { at, name: compression }),
    };
    match unpacked {
        Err(error) => left_out(format!("does not decompress ({error})")),
        Ok(length) if length as u64 != size => left_out("has not the size that it states".to_owned()),
        Ok(_) if crc != 0 && crc32fast::hash(records) != crc => left_out("fails its checksum".to_owned()),
        Ok(_) => Ok(Ok(())),
    }
}

/// A record, if its body is one. `mcap::parse_record` (0.26) gives a text as much memory as its length says: here it must lie within
/// the record first.
fn parse(opcode: u8, body: &[u8]) -> Option<Record<'_>> {
    // What stands before the texts, how many there are, and whether a map of texts follows.
    let (head, texts, has_map) = match opcode {
        op::HEADER => (0, 2, false),
        op::SCHEMA => (2, 2, false),
        op::CHANNEL => (4, 2, true),
        op::METADATA => (0, 1, true),
        op::CHUNK => (28, 1, false),
        _ => (0, 0, false),
    };
    let mut rest = body.get(head..)?;
    for _ in 0..texts {
        rest = sized(rest)?.1;
    }
    let mut map = if has_map { sized(rest)?.0 } else { &[] };
    while !map.is_empty() {
        // A key without a value would have one read from behind the map.
        map = sized(sized(map)?.1)?.1;
    }
    mcap::parse_record(opcode, body).ok()
}

/// Bytes that follow their length, and what follows them.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// The record that begins at `start`: its opcode, and where its body lies.
fn record_at(bytes: &[u8], start: usize) -> Option<(u8, Range<usize>)> {
    let (opcode, body, rest) = split_record(&bytes[start..])?;
    let end = bytes.len() - rest.len();
    Some((opcode, end - body.len()..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
    }

    #[test]
    fn a_key_has_its_value() {
        let lie = [&u32::MAX.to_le_bytes()[..], b"behind the map"].concat();
        let body = |map: Vec<u8>| [sized(b"name"), sized(&map), lie.clone()].concat();
        assert!(parse(op::METADATA, &body([sized(b"key"), sized(b"value")].concat())).is_some());
        assert!(parse(op::METADATA, &body(sized(b"key"))).is_none());
    }

    #[test]
    fn no_length_within_a_record_may_lie() {
        let text = sized(b"abc");
        let map = sized(&[text.clone(), text.clone()].concat());
        let records = [
            (op::HEADER, vec![], vec![text.clone(), text.clone()], vec![]),
            (op::SCHEMA, vec![0; 2], vec![text.clone(), text.clone()], sized(b"text")),
            (op::CHANNEL, vec![0; 4], vec![text.clone(), text.clone(), map.clone()], vec![]),
            (op::METADATA, vec![], vec![text.clone(), map], vec![]),
            (op::CHUNK, vec![0; 28], vec![text], vec![0; 8]),
        ];
        for (opcode, head, lengths, end) in records {
            let body = [head.clone(), lengths.concat(), end].concat();
            assert!(parse(opcode, &body).is_some(), "{opcode}");
            let mut at = head.len();
            for field in lengths {
                let mut lie = body.clone();
                lie[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
                assert!(parse(opcode, &lie).is_none(), "{opcode}: the length at {at}");
                at += field.len();
            }
        }
    }
}
