//! Reads an MCAP file from its first byte to its last: its records by the `mcap` crate, its framing here, where a
//! length that lies asks for no memory and a damaged chunk costs no more than itself.

use std::{
    collections::HashMap,
    io::{BufReader, Read},
};

use mcap::records::{ChunkHeader, Record, op};

use super::{
    schema::{self, Format, Place},
    topics::{Seen, Topics},
};
use crate::Error;

const MAGIC_BYTES: u64 = 8;
/// Larger chunks, or records that are no messages, are damage, or made by nobody whom we know.
const MOST_BYTES: u64 = 192 << 20;
/// Of a message that is no chunk's: its head, and the first block of one that is compressed by itself (RFC 8878).
const MESSAGE_BYTES: u64 = 160 << 10;
/// How often progress is told.
const TOLD_BYTES: u64 = 1 << 20;

/// Takes in an MCAP file.
///
/// # Errors
/// It is another version, has a compression that is not known, or the recording cannot be written.
pub fn read(source: impl Read, topics: &mut Topics, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
    let mut file = Outer { source: BufReader::with_capacity(1 << 18, source), at: 0 };
    file.magic()?;
    let mut told = 0;
    let mut contents = Contents { schemas: HashMap::new(), channels: HashMap::new() };
    let mut body = Vec::new();
    loop {
        let start = file.at;
        match file.next(&mut body)? {
            Next::Record(op::DATA_END | op::FOOTER) => return Ok(()),
            Next::Record(op::CHUNK) => contents.chunk(&body, start, topics)?,
            Next::Record(opcode) => contents.record(opcode, &body, start, topics)?,
            Next::Skipped(length) => {
                topics.damage(format!("the record at byte {start} says that it has {length} bytes; it was left out"));
            }
            Next::End if file.at == start => {
                topics.damage(format!("the file ends at byte {start} without its end mark; what came before was read"));
                return Ok(());
            }
            Next::End => {
                topics.damage(format!("the file ends within the record at byte {start}, which was left out"));
                return Ok(());
            }
        }
        if file.at >= told + TOLD_BYTES {
            told = file.at;
            progress(told);
        }
    }
}

/// The records that lie in the file itself.
struct Outer<R> {
    source: BufReader<R>,
    at: u64,
}

enum Next {
    /// Its opcode; its bytes are in the buffer, of a message only the first.
    Record(u8),
    /// It was too long to be one; how long it said it was.
    Skipped(u64),
    /// The file has no more, or ends in the middle of a record.
    End,
}

impl<R: Read> Outer<R> {
    fn magic(&mut self) -> Result<(), Error> {
        let container = super::Container::of(&mut (&mut self.source).take(MAGIC_BYTES))?;
        if container != super::Container::Mcap {
            return Err(Error::Foreign {
                kind: "MCAP file",
                why: "it does not begin like one".to_owned(),
                writer: "rosbag2, or any writer of MCAP,",
            });
        }
        self.at = MAGIC_BYTES;
        Ok(())
    }

    fn next(&mut self, body: &mut Vec<u8>) -> Result<Next, Error> {
        let Some(head) = self.exactly::<9>()? else { return Ok(Next::End) };
        let opcode = head[0];
        let length = u64::from_le_bytes([head[1], head[2], head[3], head[4], head[5], head[6], head[7], head[8]]);
        let wanted = match opcode {
            // Images and point clouds may be large; what matters stands at their head.
            op::MESSAGE => length.min(MESSAGE_BYTES),
            op::ATTACHMENT | op::MESSAGE_INDEX => 0,
            _ if length > MOST_BYTES => 0,
            _ => length,
        };
        body.clear();
        let taken = (&mut self.source).take(wanted).read_to_end(body)? as u64;
        let passed = std::io::copy(&mut (&mut self.source).take(length - wanted), &mut std::io::sink())?;
        self.at += taken + passed;
        if taken + passed < length {
            return Ok(Next::End);
        }
        let is_unknown_length = wanted == 0 && length > MOST_BYTES && opcode != op::ATTACHMENT;
        Ok(if is_unknown_length { Next::Skipped(length) } else { Next::Record(opcode) })
    }

    /// That many bytes; `None` where the file ends before.
    fn exactly<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Error> {
        let mut bytes = Vec::with_capacity(N);
        (&mut self.source).take(N as u64).read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        Ok(bytes.try_into().ok())
    }
}

/// What the file said of its channels so far.
struct Contents {
    /// By id: name, encoding, text.
    schemas: HashMap<u16, (String, String, String)>,
    /// By id: the topic's number.
    channels: HashMap<u16, usize>,
}

impl Contents {
    fn chunk(&mut self, body: &[u8], at: u64, topics: &mut Topics) -> Result<(), Error> {
        let Some(Record::Chunk { header, data }) = parse(op::CHUNK, body) else {
            topics.damage(format!("the chunk at byte {at} has no readable head; it was left out"));
            return Ok(());
        };
        let records = match unpacked(&header, &data, at)? {
            Ok(records) => records,
            Err(why) => {
                topics.damage(format!("the chunk at byte {at} {why}; its messages were left out"));
                return Ok(());
            }
        };
        let mut rest = records.as_slice();
        while !rest.is_empty() {
            let Some((opcode, body, after)) = split(rest) else {
                topics.damage(format!("the chunk at byte {at} ends within a record, which was left out"));
                return Ok(());
            };
            self.record(opcode, body, at, topics)?;
            rest = after;
        }
        Ok(())
    }

    fn record(&mut self, opcode: u8, body: &[u8], at: u64, topics: &mut Topics) -> Result<(), Error> {
        // Others are for those who jump about in the file.
        if !matches!(opcode, op::HEADER | op::SCHEMA | op::CHANNEL | op::MESSAGE | op::METADATA) {
            return Ok(());
        }
        let Some(record) = parse(opcode, body) else {
            topics.damage(format!("a record at byte {at} cannot be read; it was left out"));
            return Ok(());
        };
        match record {
            Record::Header(header) if header.profile == "taut" => {
                Err(Error::Instead("is a recording of taut's; `taut report` reads it as it is".to_owned()))
            }
            Record::Metadata(metadata) => {
                topics.is_rosbag2 |= metadata.name == "rosbag2";
                Ok(())
            }
            Record::Schema { header, data } => {
                let text = String::from_utf8_lossy(&data).into_owned();
                self.schemas.insert(header.id, (header.name, header.encoding, text));
                Ok(())
            }
            Record::Channel(channel) => {
                let (name, encoding, text) = self.schemas.get(&channel.schema_id).cloned().unwrap_or_default();
                let place = place(&channel.message_encoding, &name, &encoding, &text);
                let type_name = if name.is_empty() { channel.message_encoding } else { name };
                let topic = topics.topic(&channel.topic, &type_name, place)?;
                self.channels.insert(channel.id, topic);
                Ok(())
            }
            Record::Message { header, data } => {
                let Some(topic) = self.channels.get(&header.channel_id) else {
                    topics.damage(format!(
                        "a message at byte {at} is of channel {}, which the file does not describe",
                        header.channel_id
                    ));
                    return Ok(());
                };
                let (log_ns, publish_ns) = (header.log_time, Some(header.publish_time));
                topics.message(*topic, Seen { log_ns, publish_ns, sequence: header.sequence, data: &data })
            }
            _ => Ok(()),
        }
    }
}

fn place(message_encoding: &str, type_name: &str, encoding: &str, text: &str) -> Option<Place> {
    let format = match message_encoding {
        "cdr" => Format::Cdr,
        "ros1" => Format::Ros1,
        _ => return None,
    };
    schema::place(format, type_name, encoding, text)
}

/// The chunk's records, or why there are none.
fn unpacked(header: &ChunkHeader, data: &[u8], at: u64) -> Result<Result<Vec<u8>, String>, Error> {
    let size = header.uncompressed_size;
    if size > MOST_BYTES {
        return Ok(Err(format!("says that it has {size} bytes")));
    }
    let mut records = Vec::new();
    let unpacked = match header.compression.as_str() {
        "" => data.take(size + 1).read_to_end(&mut records),
        "zstd" => zstd::Decoder::new(data).and_then(|from| from.take(size + 1).read_to_end(&mut records)),
        "lz4" => lz4_flex::frame::FrameDecoder::new(data).take(size + 1).read_to_end(&mut records),
        other => return Err(Error::Unknown { at, what: format!("the chunk compression {other:?}") }),
    };
    Ok(match unpacked {
        Err(error) => Err(format!("does not decompress ({error})")),
        Ok(length) if length as u64 != size => Err("has not the size that it states".to_owned()),
        Ok(_) if header.uncompressed_crc != 0 && crc32fast::hash(&records) != header.uncompressed_crc => {
            Err("fails its checksum".to_owned())
        }
        Ok(_) => Ok(records),
    })
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
        map = sized(map)?.1;
    }
    mcap::parse_record(opcode, body).ok()
}

/// Bytes that follow their length, and what follows them.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// The first record: its opcode, its body, and what follows.
fn split(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (opcode, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (body, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((*opcode, body, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
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
