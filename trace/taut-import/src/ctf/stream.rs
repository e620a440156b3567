//! One stream: a file of packets, of which one at a time is in memory; events one after the other.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{
    bits::Bits,
    description::{Description, Stream as Class},
    types::{State, text},
};
use crate::Error;

/// Tracers' sub-buffers have up to some MB.
const MOST_PACKET: u64 = 64 << 20;
/// A packet's header and context fit in here.
const HEAD: u64 = 4096;
/// CTF's mark of a packet.
const MAGIC: u64 = 0xc1fc_1fc1;

/// What a stream lost and what of it is damaged.
pub(super) trait Teller {
    /// A sentence on what could not be read.
    fn damage(&mut self, sentence: String);
    /// The tracer had no room for so many events of this stream, up to this moment (the stream's own clock).
    fn discarded(&mut self, count: u64, cpu: u32, clock: u64);
    /// Packets are missing between two that are there.
    fn missing_packets(&mut self, count: u64);
}

/// A stream's file, and where in it we are.
pub(super) struct Stream {
    path: PathBuf,
    file: Option<File>,
    length: u64,
    /// Where this packet begins, and the next.
    start: u64,
    next: u64,
    state: State,
    /// The packet's bytes, once it is loaded.
    packet: Vec<u8>,
    is_loaded: bool,
    /// Within it, in bits.
    at: u64,
    content: u64,
    class: usize,
    /// Of the event that was read, or of the packet that comes: never less than before.
    pub clock: u64,
    /// Which event, by its place in the class.
    event: usize,
    pub cpu: u32,
    sequence: Option<u64>,
    discarded: Option<u64>,
}

/// One event, until the next is read.
pub(crate) struct Event<'a> {
    /// The number that `Wanted` gave.
    pub kind: u16,
    pub cpu: u32,
    pub(super) packet: &'a [u8],
    pub(super) registers: &'a [u64],
    pub(super) wanted: &'a [Option<u32>],
    pub(super) pid: Option<u32>,
    pub(super) tid: Option<u32>,
    pub(super) name: Option<u32>,
}

impl<'a> Event<'a> {
    /// The wanted field of this place, as a number.
    #[inline]
    pub fn number(&self, field: usize) -> Option<u64> {
        self.at(self.wanted.get(field).copied().flatten())
    }

    /// The wanted field of this place, as text.
    pub fn text(&self, field: usize) -> Option<&'a str> {
        self.text_at(self.wanted.get(field).copied().flatten())
    }

    /// The process that the event is from, as the process itself knows it.
    #[inline]
    pub fn pid(&self) -> Option<i32> {
        self.at(self.pid).map(|pid| pid as i32)
    }

    /// Its thread.
    #[inline]
    pub fn tid(&self) -> Option<i32> {
        self.at(self.tid).map(|tid| tid as i32)
    }

    /// The thread's name.
    pub fn thread_name(&self) -> Option<&'a str> {
        self.text_at(self.name)
    }

    #[inline]
    fn at(&self, register: Option<u32>) -> Option<u64> {
        self.registers.get(register? as usize).copied()
    }

    fn text_at(&self, register: Option<u32>) -> Option<&'a str> {
        let bytes = text(self.packet, self.at(register)?);
        // Names are ASCII or UTF-8; what is neither is cut where it stops being so.
        Some(
            std::str::from_utf8(bytes)
                .unwrap_or_else(|bad| std::str::from_utf8(&bytes[..bad.valid_up_to()]).unwrap_or_default()),
        )
    }
}

/// Why a packet was left out.
enum Left {
    /// The rest of the file with it.
    Rest(String),
    Read(Error),
}

impl Stream {
    /// Stands before the first packet.
    pub fn open(path: &Path, description: &Description) -> Result<Stream, Error> {
        let length = std::fs::metadata(path)?.len();
        Ok(Stream {
            path: path.to_owned(),
            file: None,
            length,
            start: 0,
            next: 0,
            state: State { registers: vec![0; description.registers as usize], clock: 0, elements_left: 0 },
            packet: Vec::new(),
            is_loaded: false,
            at: 0,
            content: 0,
            class: 0,
            clock: 0,
            event: 0,
            cpu: 0,
            sequence: None,
            discarded: None,
        })
    }

    /// Bytes that were read.
    pub fn done(&self) -> u64 {
        self.next
    }

    /// Goes to the next packet that has events, without its body: only its time is known then. False at the end.
    pub fn next_packet(&mut self, description: &Description, teller: &mut dyn Teller) -> Result<bool, Error> {
        self.packet = Vec::new();
        self.is_loaded = false;
        while self.next < self.length {
            match self.head(description, teller) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(Left::Rest(why)) => {
                    let path = self.path.display();
                    teller.damage(format!("{path}: byte {} to the end {}: {why}; left out", self.next, self.length));
                    self.next = self.length;
                }
                Err(Left::Read(error)) => return Err(error),
            }
        }
        self.file = None;
        Ok(false)
    }

    /// Reads the next packet's header and context; whether it has events.
    fn head(&mut self, description: &Description, teller: &mut dyn Teller) -> Result<bool, Left> {
        let rest = |why: &str| Left::Rest(why.to_owned());
        let start = self.next;
        let left = self.length - start;
        let mut head = vec![0; HEAD.min(left) as usize];
        self.read(&mut head, start).map_err(Left::Read)?;
        let mut bits = Bits::new(&head, 0, u64::MAX);
        let state = &mut self.state;
        state.elements_left = HEAD * 8;
        description.header.read(&mut bits, state).map_err(|_| rest("no whole packet"))?;
        let number = |state: &State, register: Option<u32>| register.map(|register| state.registers[register as usize]);
        if number(state, description.magic).is_some_and(|magic| magic != MAGIC) {
            return Err(rest("no packet begins there"));
        }
        let id = number(state, description.stream_id).unwrap_or(0);
        let class = description.stream(id);
        self.class = class.ok_or_else(|| Left::Rest(format!("a packet of stream {id}, which is not described")))?;
        let class = &description.streams[self.class];
        state.registers.resize(state.registers.len().max(class.registers as usize), 0);
        class.packet.read(&mut bits, state).map_err(|_| rest("no whole packet"))?;
        let fields = &class.fields;
        let packet_bits = number(state, fields.packet_size).unwrap_or(left.saturating_mul(8));
        let content = number(state, fields.content_size).unwrap_or(packet_bits);
        if packet_bits == 0 || !packet_bits.is_multiple_of(8) || content > packet_bits || content < bits.at() {
            return Err(rest("a packet whose sizes cannot be"));
        }
        if content / 8 > MOST_PACKET {
            return Err(Left::Rest(format!("a packet of {} bytes", content / 8)));
        }
        let is_torn = packet_bits / 8 > left;
        if is_torn && content.div_ceil(8) > left {
            teller.damage(format!(
                "{}: the packet at byte {start} is truncated: {left} of its {} bytes are there",
                self.path.display(),
                packet_bits / 8
            ));
        }
        self.next = start.saturating_add(packet_bits / 8).min(self.length);
        (self.at, self.content) = (bits.at(), content.min(left.saturating_mul(8)));
        let begin = number(state, fields.begin);
        let end = number(state, fields.end);
        self.cpu = number(state, fields.cpu).unwrap_or(0) as u32;
        let sequence = number(state, fields.sequence);
        if let Some((last, this)) = self.sequence.zip(sequence)
            && this > last.saturating_add(1)
        {
            teller.missing_packets(this - last - 1);
        }
        self.sequence = sequence;
        if let Some(discarded) = number(state, fields.discarded) {
            // It counts on from packet to packet. What was lost before the first that is there, a tracer that began
            // with it counts from 0.
            let before = self.discarded.unwrap_or(if sequence.is_none_or(|n| n == 0) { 0 } else { discarded });
            if discarded > before {
                teller.discarded(discarded - before, self.cpu, end.unwrap_or(self.clock));
            }
            self.discarded = Some(discarded);
        }
        state.clock = begin.unwrap_or(state.clock);
        self.clock = self.clock.max(state.clock);
        self.start = start;
        Ok(self.at < self.content)
    }

    fn read(&mut self, bytes: &mut [u8], at: u64) -> Result<(), Error> {
        if self.file.is_none() {
            self.file = Some(File::open(&self.path)?);
        }
        if let Some(file) = &self.file {
            file.read_exact_at(bytes, at)?;
        }
        Ok(())
    }

    /// Closes the file until it is needed: a process may have only so many.
    pub fn release(&mut self) {
        self.file = None;
    }

    /// Reads the next event of the packet, the packet's body before if that is not there. False at the packet's end.
    pub fn next_event(&mut self, description: &Description, teller: &mut dyn Teller) -> Result<bool, Error> {
        if !self.is_loaded {
            let mut packet = vec![0; self.content.div_ceil(8) as usize];
            self.read(&mut packet, self.start)?;
            self.packet = packet;
            self.is_loaded = true;
            // Each bit may be an element, and some elements are empty.
            self.state.elements_left = self.content + (1 << 16);
        }
        if self.at >= self.content {
            return Ok(false);
        }
        match self.event(&description.streams[self.class]) {
            Ok(()) => Ok(true),
            Err(why) => {
                teller.damage(format!(
                    "{}: the packet that ends at byte {}, from its byte {} on: {why}; left out",
                    self.path.display(),
                    self.next,
                    self.at / 8
                ));
                Ok(false)
            }
        }
    }

    fn event(&mut self, class: &Class) -> Result<(), String> {
        let ends = || "it ends within an event".to_owned();
        let mut bits = Bits::new(&self.packet, self.at, self.content);
        let state = &mut self.state;
        for register in &class.wide_ids {
            state.registers[*register as usize] = u64::MAX;
        }
        class.header.read(&mut bits, state).map_err(|_| ends())?;
        let wide = class.wide_ids.iter().map(|register| state.registers[*register as usize]);
        let id = wide.min().filter(|id| *id != u64::MAX);
        let id = id.or(class.id.map(|register| state.registers[register as usize])).unwrap_or(0);
        let place = class.event(id).ok_or_else(|| format!("event {id} is not described"))?;
        let event = &class.events[place];
        class.context.read(&mut bits, state).map_err(|_| ends())?;
        event.context.read(&mut bits, state).map_err(|_| ends())?;
        event.fields.read(&mut bits, state).map_err(|_| ends())?;
        if bits.at() == self.at {
            return Err("its events have no length".to_owned());
        }
        self.at = bits.at();
        self.event = place;
        self.clock = self.clock.max(state.clock);
        Ok(())
    }

    /// The event that was read last; `None` if it is not wanted.
    #[inline]
    pub fn current<'a>(&'a self, description: &'a Description) -> Option<Event<'a>> {
        let class = &description.streams[self.class];
        let event = class.events.get(self.event)?;
        Some(Event {
            kind: event.kind?,
            cpu: self.cpu,
            packet: &self.packet,
            registers: &self.state.registers,
            wanted: &event.wanted,
            pid: class.contexts.pid,
            tid: class.contexts.tid,
            name: class.contexts.name,
        })
    }
}
