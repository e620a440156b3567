//! Takes in any MCAP file: which channels it has, and when their messages were stamped, published and logged.

use std::{
    collections::HashMap,
    io::{BufReader, Read},
};

use taut_recording::mcap_reader::{Item, McapReader, Record};

use super::{
    Container,
    schema::{self, Format, Place},
    topics::{Seen, Topics},
};
use crate::Error;

const MAGIC_BYTES: u64 = 8;
/// Of a message that is no chunk's: its head, and the first block of one that is compressed by itself (RFC 8878).
const MESSAGE_BYTES: u64 = 160 << 10;
/// How often progress is reported.
const TOLD_BYTES: u64 = 1 << 20;

/// Takes in an MCAP file.
///
/// # Errors
/// It is another version, has a compression that is not known, or the recording cannot be written.
pub fn read(source: impl Read, topics: &mut Topics, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
    let mut source = BufReader::with_capacity(1 << 18, source);
    if Container::of(&mut (&mut source).take(MAGIC_BYTES))? != Container::Mcap {
        return Err(Error::Foreign {
            kind: "MCAP file",
            why: "it does not begin like one".to_owned(),
            writer: "rosbag2, or any writer of MCAP,",
        });
    }
    let mut file = McapReader::new(source, MESSAGE_BYTES);
    let mut told = 0;
    let mut contents = Contents { schemas: HashMap::new(), channels: HashMap::new() };
    while let Some(item) = file.next().map_err(unreadable)? {
        match item {
            Item::Record(at, record) => contents.record(record, at, topics)?,
            Item::Damage(what) => topics.damage(what),
        }
        if file.position() >= told + TOLD_BYTES {
            told = file.position();
            progress(told);
        }
    }
    Ok(())
}

fn unreadable(error: taut_recording::Error) -> Error {
    match error {
        taut_recording::Error::UnknownCompression { at, name } => {
            Error::Unknown { at, what: format!("the chunk compression {name:?}") }
        }
        taut_recording::Error::Read(error) => Error::Read(error),
        other => Error::Write(other),
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
    fn record(&mut self, record: Record<'_>, at: u64, topics: &mut Topics) -> Result<(), Error> {
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
