//! The records of chunks whose bytes are known to be right, one chunk after the other: for whoever reads a whole
//! file (`reader`) and whoever follows one that grows (`tail`).

use std::collections::BTreeMap;

use crate::{
    Contents,
    mcap_record::{MESSAGE, split_record},
    plain::{self, Descriptions},
    records::{PlainMessage, Record},
    schemas::{self, Channel, Content},
};

/// What was decoded so far.
#[derive(Default)]
pub struct Decoder {
    /// Its damage is the caller's to fill in.
    pub contents: Contents,
    /// Whether the contents' Info is what a chunk said.
    pub has_info: bool,
    /// Messages by topic that a verified chunk holds and that do not decode.
    pub undecodable: BTreeMap<&'static str, u64>,
    /// What the file says of plain channels.
    pub plain: Descriptions,
    /// Messages by channel that have no schema.
    pub nameless: BTreeMap<u16, u64>,
    /// Values by channel: views, of which mostly only the number is taken.
    pub values: BTreeMap<u16, u64>,
    /// Whether they are given as messages too.
    pub gives_views: bool,
}

/// Takes a record with its log time.
type Sink<'a> = dyn FnMut(u64, Record) + 'a;

impl Decoder {
    /// Gives every record of a chunk to `sink`. In `whole`, the file, copies of lost descriptions are looked for.
    pub fn records(&mut self, mut bytes: &[u8], whole: &[u8], sink: &mut Sink<'_>) {
        while let Some((opcode, body, rest)) = split_record(bytes) {
            bytes = rest;
            match opcode {
                MESSAGE if body.len() >= 22 => {
                    self.message(u16::from_le_bytes([body[0], body[1]]), body, whole, sink);
                }
                plain::SCHEMA => self.plain.schema(body),
                plain::CHANNEL => self.plain.take(body),
                _ => {}
            }
        }
    }

    fn message(&mut self, channel: u16, body: &[u8], whole: &[u8], sink: &mut Sink<'_>) {
        match Channel::from_id(channel) {
            Some(channel) => self.own_message(channel, body, sink),
            None => self.plain_message(channel, body, whole, sink),
        }
    }

    fn own_message(&mut self, channel: Channel, body: &[u8], sink: &mut Sink<'_>) {
        match schemas::decode(channel, &body[22..]) {
            Some(Content::Record(record)) => {
                match &record {
                    Record::Stamps(batch) => self.contents.stamps += batch.ticks.len() as u64,
                    Record::Kernel(batch) => self.contents.kernel_events += batch.time_ns.len() as u64,
                    Record::Ros(batch) => self.contents.ros_events += batch.ticks.len() as u64,
                    _ => {}
                }
                sink(log_time_ns(body), record);
            }
            Some(Content::Info(info)) => {
                self.contents.info = *info;
                self.has_info = true;
            }
            Some(Content::Ending(ending)) => self.contents.ending = Some(ending),
            None => *self.undecodable.entry(channel.described().1).or_default() += 1,
        }
    }

    fn plain_message(&mut self, channel: u16, body: &[u8], whole: &[u8], sink: &mut Sink<'_>) {
        if !self.plain.is_known(channel) {
            self.plain.find_copies(whole);
        }
        let Some(known) = self.plain.channel(channel) else {
            *self.nameless.entry(channel).or_default() += 1;
            return;
        };
        if let Some(own) = Channel::from_schema(&known.schema_name) {
            return self.own_message(own, body, sink);
        }
        // Values are views of what the raw stamps hold.
        if plain::is_view(known) {
            *self.values.entry(channel).or_default() += 1;
            if !self.gives_views {
                return;
            }
        }
        let log_time_ns = log_time_ns(body);
        if let Some(fresh) = self.plain.announce(channel) {
            sink(log_time_ns, Record::Channel(fresh));
        }
        let sequence = u32::from_le_bytes([body[2], body[3], body[4], body[5]]);
        self.contents.messages += 1;
        sink(log_time_ns, Record::Message(PlainMessage { channel, log_time_ns, sequence, data: body[22..].to_vec() }));
    }
}

fn log_time_ns(message: &[u8]) -> u64 {
    message[6..14].try_into().map_or(0, u64::from_le_bytes)
}
