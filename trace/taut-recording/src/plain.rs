//! Descriptions of a file's plain channels: in its Channel and Schema records, which lie in a chunk and have its
//! checksum, and in copies of them as Metadata, which lie open.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memchr::memmem;

use crate::{
    mcap_record::{split_record, string},
    printable::printable,
    records::PlainChannel,
    schemas::{Channel, VALUE_SCHEMA},
};

pub const SCHEMA: u8 = 0x03;
pub const CHANNEL: u8 = 0x04;
/// Name of the Metadata that repeats them, with the length before it.
const COPIES: &[u8] = b"\x0d\0\0\0taut.channels";
/// Among the channels of such a Metadata, the key of their checksum; files of before have none.
pub const CHECKSUM: &str = "crc32";
/// From a Metadata record's first byte to its name.
const TO_NAME: usize = 9;

/// The channels that are known so far.
#[derive(Default)]
pub struct Descriptions {
    /// Name and text of the `ros2msg` schemas.
    schemas: HashMap<u16, (String, String)>,
    channels: BTreeMap<u16, PlainChannel>,
    announced: BTreeSet<u16>,
    has_searched: bool,
}

/// A view of raw values, which a reader need not read.
pub fn is_view(channel: &PlainChannel) -> bool {
    channel.schema_name == VALUE_SCHEMA.0
}

/// CRC-32 of keys and values in their order, in hexadecimal.
pub fn checksum<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut crc = crc32fast::Hasher::new();
    for text in pairs.flat_map(|(key, value)| [key, value]) {
        crc.update(text.as_bytes());
    }
    format!("{:08x}", crc.finalize())
}

impl Descriptions {
    pub fn channel(&self, number: u16) -> Option<&PlainChannel> {
        self.channels.get(&number)
    }

    /// Those of plain messages; taut's own records are in others.
    pub fn channels(&self) -> impl Iterator<Item = &PlainChannel> {
        self.channels.values().filter(|channel| Channel::from_schema(&channel.schema_name).is_none())
    }

    pub fn is_known(&self, number: u16) -> bool {
        self.channels.contains_key(&number)
    }

    /// The channel, the first time that it is asked for.
    pub fn announce(&mut self, number: u16) -> Option<PlainChannel> {
        let channel = self.channels.get(&number)?;
        self.announced.insert(number).then(|| channel.clone())
    }

    /// Takes a Schema record.
    pub fn schema(&mut self, body: &[u8]) {
        let read = || {
            let (id, rest) = number(body)?;
            let (name, rest) = string(rest)?;
            let (encoding, rest) = string(rest)?;
            let text = rest.get(4..)?;
            (encoding == "ros2msg").then(|| (id, (name, String::from_utf8_lossy(text).into_owned())))
        };
        if let Some((id, schema)) = read() {
            self.schemas.insert(id, schema);
        }
    }

    /// Takes a Channel record.
    pub fn take(&mut self, body: &[u8]) {
        let read = || {
            let (number_here, rest) = number(body)?;
            let (schema, rest) = number(rest)?;
            let (topic, rest) = string(rest)?;
            let (encoding, _) = string(rest)?;
            let (schema_name, schema) = self.schemas.get(&schema).filter(|_| encoding == "cdr")?.clone();
            Some(PlainChannel { number: number_here, topic, schema_name, schema })
        };
        if let Some(channel) = read() {
            self.insert(channel);
        }
    }

    /// Takes what a Metadata record says, if it is a copy and its checksum is right.
    pub fn copy(&mut self, body: &[u8]) {
        let Some((name, rest)) = string(body).filter(|(name, _)| name == "taut.channels") else { return };
        debug_assert_eq!(name.len() + 4, COPIES.len());
        let mut rest = rest.get(4..).unwrap_or_default();
        let mut pairs = Vec::new();
        while let Some((key, after)) = string(rest) {
            let Some((said, after)) = string(after) else { return };
            rest = after;
            pairs.push((key, said));
        }
        let stated = pairs.iter().position(|(key, _)| key == CHECKSUM).map(|at| pairs.remove(at).1);
        let is_right = |stated| checksum(pairs.iter().map(|(key, said)| (key.as_str(), said.as_str()))) == stated;
        if stated.is_some_and(|stated| !is_right(stated)) {
            return;
        }
        for (key, said) in &pairs {
            let (Ok(number), Some((head, schema))) = (key.parse(), said.split_once('\n')) else { continue };
            let Some((topic, schema_name)) = head.rsplit_once(' ') else { continue };
            let (topic, schema_name, schema) = (topic.to_owned(), schema_name.to_owned(), schema.to_owned());
            self.insert(PlainChannel { number, topic, schema_name, schema });
        }
    }

    /// Looks for copies in the whole file, once.
    pub fn find_copies(&mut self, bytes: &[u8]) {
        if std::mem::replace(&mut self.has_searched, true) {
            return;
        }
        for found in memmem::find_iter(bytes, COPIES).collect::<Vec<_>>() {
            let record = found.checked_sub(TO_NAME).and_then(|start| split_record(&bytes[start..]));
            if let Some((_, body, _)) = record {
                self.copy(body);
            }
        }
    }

    /// What was known first stays: an id does not change its meaning.
    fn insert(&mut self, mut channel: PlainChannel) {
        channel.topic = printable(channel.topic);
        channel.schema_name = printable(channel.schema_name);
        if Channel::from_id(channel.number).is_none() {
            self.channels.entry(channel.number).or_insert(channel);
        }
    }
}

fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = bytes.split_at_checked(2)?;
    Some((u16::from_le_bytes([number[0], number[1]]), rest))
}
