//! What a trace's metadata describes: clock, streams, events, each with the types to read them by.

use std::{collections::HashMap, path::Path};

use super::{
    json,
    syntax::{self, Block, Metadata},
    types::{Scopes, Type},
};
use crate::Error;

/// Larger metadata is none: a kernel with all its system calls has 1 MB.
const MOST_BYTES: u64 = 32 << 20;
const MOST_EVENTS: usize = 1 << 16;
const MOST_STREAMS: usize = 256;
const NO_EVENT: u32 = u32::MAX;
/// What metadata in packets begins with.
const PACKET_MAGIC: u32 = 0x75d1_1d57;
const PACKET_HEAD: usize = 37;

/// One trace.
pub(crate) struct Description {
    pub clock: Clock,
    /// "ust" or "kernel", where LTTng wrote it.
    pub domain: String,
    /// Of the machine that it was recorded on.
    pub host: String,
    pub(super) header: Type,
    pub(super) magic: Option<u32>,
    pub(super) stream_id: Option<u32>,
    pub(super) registers: u32,
    pub(super) streams: Vec<Stream>,
    stream_ids: HashMap<u64, usize>,
}

/// The clock of all events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    pub hertz: u64,
    /// From 1970 to the clock's zero, in nanoseconds.
    pub offset_ns: i128,
    /// With LTTng the machine's boot id: two traces that share it share the clock.
    pub uuid: String,
}

/// A class of streams: what their packets and events begin with.
pub(super) struct Stream {
    pub packet: Type,
    pub fields: PacketFields,
    pub header: Type,
    /// Where the event's id is, and where a larger one is instead when it is there.
    pub id: Option<u32>,
    pub wide_ids: Vec<u32>,
    pub context: Type,
    pub contexts: ContextFields,
    pub registers: u32,
    pub events: Vec<Event>,
    /// By id: place in `events`, or [`NO_EVENT`].
    event_ids: Vec<u32>,
}

/// Registers of a packet's own fields.
#[derive(Default)]
pub(super) struct PacketFields {
    pub begin: Option<u32>,
    pub end: Option<u32>,
    pub content_size: Option<u32>,
    pub packet_size: Option<u32>,
    pub sequence: Option<u32>,
    pub discarded: Option<u32>,
    pub cpu: Option<u32>,
}

/// Registers of what every event says of the thread it is from.
#[derive(Default)]
pub(super) struct ContextFields {
    pub pid: Option<u32>,
    pub tid: Option<u32>,
    pub name: Option<u32>,
}

/// A class of events.
pub(super) struct Event {
    /// As the tracer has it, e.g. "ros2:callback_start" or "sched_switch".
    pub context: Type,
    pub fields: Type,
    /// What of it was asked for; see [`Wanted`].
    pub kind: Option<u16>,
    pub wanted: Vec<Option<u32>>,
}

/// Which events are wanted, and which of their fields.
pub(crate) trait Wanted {
    /// The number of an event of this name with the names of its fields, each with the names it had in other versions.
    fn event(&self, name: &str) -> Option<(u16, &'static [&'static str])>;
}

impl Description {
    /// Reads the file `metadata`.
    pub fn read(path: &Path, wanted: &dyn Wanted) -> Result<Description, Error> {
        let length = std::fs::metadata(path)?.len();
        if length > MOST_BYTES {
            return Err(foreign(format!("its metadata has {length} bytes")));
        }
        Description::of(&std::fs::read(path)?, wanted)
    }

    /// The stream class of that id, by its place.
    pub(super) fn stream(&self, id: u64) -> Option<usize> {
        self.stream_ids.get(&id).copied()
    }

    /// From the bytes of a file `metadata`.
    pub fn of(bytes: &[u8], wanted: &dyn Wanted) -> Result<Description, Error> {
        describe(&parse(&text(bytes)?)?, wanted)
    }
}

impl Stream {
    /// The event of that id.
    #[inline]
    pub fn event(&self, id: u64) -> Option<usize> {
        let at = *self.event_ids.get(usize::try_from(id).ok()?)?;
        (at != NO_EVENT).then_some(at as usize)
    }
}

fn foreign(why: String) -> Error {
    Error::Foreign { kind: "CTF trace", why, writer: "LTTng or another tracer" }
}

/// The metadata's text: plain, or out of packets.
fn text(bytes: &[u8]) -> Result<String, Error> {
    let head = bytes.first_chunk::<4>().map(|head| u32::from_le_bytes(*head));
    let text = match head {
        Some(PACKET_MAGIC) => unpacked(bytes, u32::from_le_bytes)?,
        Some(magic) if magic == PACKET_MAGIC.swap_bytes() => unpacked(bytes, u32::from_be_bytes)?,
        _ => bytes.to_vec(),
    };
    String::from_utf8(text).map_err(|_| foreign("its metadata is no text".to_owned()))
}

/// What the text declares, in the language of its version.
fn parse(text: &str) -> Result<Metadata, Error> {
    if text.starts_with(json::SEPARATOR) {
        return json::parse(text).map_err(|why| Error::Unknown { at: 0, what: format!("metadata of CTF 2, {why}") });
    }
    let version = text.strip_prefix("/* CTF ").and_then(|rest| rest.split_once(' ')).map(|(version, _)| version);
    match version {
        Some("1.8") => syntax::parse(text).map_err(|why| foreign(format!("metadata, {why}"))),
        Some(version) => {
            let what = format!("version {} of CTF", version.chars().take(20).collect::<String>());
            Err(Error::Unknown { at: 0, what })
        }
        None => Err(foreign("its metadata begins neither as CTF 1.8's nor as CTF 2's".to_owned())),
    }
}

fn unpacked(bytes: &[u8], number: fn([u8; 4]) -> u32) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + PACKET_HEAD) {
        let word = |at: usize| number([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (content, packet) = (word(24) as usize / 8, word(28) as usize / 8);
        let [compression, encryption, _, major, minor] = [head[32], head[33], head[34], head[35], head[36]];
        if word(0) != PACKET_MAGIC {
            return Err(foreign(format!("byte {at} of its metadata begins no packet")));
        }
        if !matches!((major, minor), (1, 8) | (2, 0)) {
            return Err(Error::Unknown { at: at as u64, what: format!("version {major}.{minor} of CTF") });
        }
        if compression != 0 || encryption != 0 {
            return Err(Error::Unknown { at: at as u64, what: "compressed or encrypted metadata".to_owned() });
        }
        let body = bytes.get(at + PACKET_HEAD..at + content).filter(|_| packet >= content);
        text.extend_from_slice(
            body.ok_or_else(|| foreign(format!("the metadata's packet at byte {at} is truncated")))?,
        );
        at += packet;
    }
    Ok(text)
}

fn describe(metadata: &Metadata, wanted: &dyn Wanted) -> Result<Description, Error> {
    let trace = metadata.trace.as_ref().ok_or_else(|| foreign("its metadata has no trace block".to_owned()))?;
    if let (Some(major), Some(minor)) = (trace.number("major"), trace.number("minor"))
        && (major, minor) != (1, 8)
    {
        return Err(Error::Unknown { at: 0, what: format!("version {major}.{minor} of CTF") });
    }
    if metadata.streams.len() > MOST_STREAMS {
        return Err(foreign(format!("its metadata has {} kinds of streams", metadata.streams.len())));
    }
    if metadata.events.len() > MOST_EVENTS {
        return Err(foreign(format!("its metadata has {} kinds of events", metadata.events.len())));
    }
    let is_big = matches!(trace.text("byte_order"), Some("be" | "network"));
    let settling = |why: String| foreign(format!("metadata, {why}"));
    let mut scopes = Scopes::default();
    let header = scopes.settle(trace.types.get("packet.header"), "trace.packet.header", is_big).map_err(settling)?;
    let in_header = |name: &str| scopes.register("trace.packet.header", name);
    let mut description = Description {
        clock: clock(&metadata.clocks)?,
        domain: metadata.env.text("domain").unwrap_or_default().to_owned(),
        host: metadata.env.text("hostname").unwrap_or_default().to_owned(),
        header,
        magic: in_header("magic"),
        stream_id: in_header("stream_id"),
        registers: scopes.registers,
        streams: Vec::new(),
        stream_ids: HashMap::new(),
    };
    // A trace of one stream need not declare it.
    let undeclared = [Block::default()];
    let streams = if metadata.streams.is_empty() { &undeclared[..] } else { &metadata.streams[..] };
    let mut events: HashMap<u64, Vec<&Block>> = HashMap::new();
    for event in &metadata.events {
        events.entry(id(event, "stream_id")).or_default().push(event);
    }
    for block in streams {
        let id = id(block, "id");
        let events = events.get(&id).map_or(&[][..], Vec::as_slice);
        description.stream_ids.insert(id, description.streams.len());
        description.streams.push(stream(block, events, &scopes, is_big, wanted).map_err(settling)?);
    }
    Ok(description)
}

fn id(block: &Block, key: &str) -> u64 {
    block.number(key).and_then(|id| u64::try_from(id).ok()).unwrap_or(0)
}

/// Of several clocks, which no tracer known here writes, the first counts.
fn clock(clocks: &[Block]) -> Result<Clock, Error> {
    let Some(block) = clocks.first() else { return Ok(Clock { hertz: 1_000_000_000, ..Clock::default() }) };
    let hertz = block.number("freq").unwrap_or(1_000_000_000);
    let hertz = u64::try_from(hertz).ok().filter(|hertz| *hertz > 0);
    let hertz = hertz.ok_or_else(|| foreign("its clock has no frequency".to_owned()))?;
    let seconds = block.number("offset_s").unwrap_or(0);
    let ticks = block.number("offset").unwrap_or(0);
    let offset_ns = seconds * 1_000_000_000 + ticks * 1_000_000_000 / i128::from(hertz);
    Ok(Clock { hertz, offset_ns, uuid: block.text("uuid").unwrap_or_default().to_owned() })
}

fn stream(
    block: &Block,
    events: &[&Block],
    around: &Scopes<'_>,
    is_big: bool,
    wanted: &dyn Wanted,
) -> Result<Stream, String> {
    let mut scopes = Scopes::within(around);
    let packet = scopes.settle(block.types.get("packet.context"), "stream.packet.context", is_big)?;
    let header = scopes.settle(block.types.get("event.header"), "stream.event.header", is_big)?;
    let context = scopes.settle(block.types.get("event.context"), "stream.event.context", is_big)?;
    let in_packet = |name: &str| scopes.register("stream.packet.context", name);
    let in_context = |names: [&str; 2]| names.iter().find_map(|name| scopes.register("stream.event.context", name));
    let mut stream = Stream {
        fields: PacketFields {
            begin: in_packet("timestamp_begin"),
            end: in_packet("timestamp_end"),
            content_size: in_packet("content_size"),
            packet_size: in_packet("packet_size"),
            sequence: in_packet("packet_seq_num"),
            discarded: in_packet("events_discarded"),
            cpu: in_packet("cpu_id"),
        },
        id: scopes.register("stream.event.header", "id"),
        wide_ids: scopes.below("stream.event.header", "id"),
        contexts: ContextFields {
            pid: in_context(["vpid", "pid"]),
            tid: in_context(["vtid", "tid"]),
            name: in_context(["procname", "comm"]),
        },
        packet,
        header,
        context,
        registers: scopes.registers,
        events: Vec::new(),
        event_ids: Vec::new(),
    };
    for block in events {
        let mut scopes = Scopes::within(&scopes);
        let context = scopes.settle(block.types.get("context"), "event.context", is_big)?;
        let fields = scopes.settle(block.types.get("fields"), "event.fields", is_big)?;
        let found = block.text("name").and_then(|name| wanted.event(name));
        let registers = found
            .map_or(&[][..], |(_, fields)| fields)
            .iter()
            .map(|names| names.split('|').find_map(|name| scopes.register("event.fields", name)));
        let event = Event { context, fields, kind: found.map(|(kind, _)| kind), wanted: registers.collect() };
        stream.registers = stream.registers.max(scopes.registers);
        let id = usize::try_from(id(block, "id")).ok().filter(|id| *id < MOST_EVENTS);
        let id = id.ok_or_else(|| format!("an event has an id above {MOST_EVENTS}"))?;
        if stream.event_ids.len() <= id {
            stream.event_ids.resize(id + 1, NO_EVENT);
        }
        stream.event_ids[id] = stream.events.len() as u32;
        stream.events.push(event);
    }
    Ok(stream)
}
