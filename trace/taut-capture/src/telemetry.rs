//! The consumer of telemetry rings (`docs/reference/protocol.md`, "Telemetry"): ring → message of a plain channel.
//!
//! As in `rings`: another process wrote these bytes, and all of them are checked before use.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::Path,
    sync::atomic::Ordering,
};

use taut_clock::Counter;
use taut_recording::{LostWhat, Writer, telemetry::StructLayout};

use crate::{
    files::{Files, Mapped, Then},
    listing::Uncounted,
    owner::Owner,
    pace::Pace,
    shared::{HEADER_BYTES, Shared, bad},
};

const MAGIC: &[u8; 8] = b"TAUTTELE";
const VERSION: u32 = 1;
const SLOT_HEAD: usize = 16;
const MOST_BYTES: usize = 1 << 20;
const MOST_SLOTS: u32 = 1 << 20;
const MOST_DESCRIPTION: usize = 1 << 20;
/// Channels at a time. Those beyond are taken up when others are gone.
const FILES_MAX: usize = 2048;
/// Of a channel's name: a topic is made of it, and every plotting tool lists it.
const NAME_BYTES: usize = 200;
/// Different channels in a recording, and the bytes of all their schemas.
const CHANNELS_MAX: usize = 4096;
const DESCRIBED_MAX: usize = 64 << 20;
/// Taken from one ring in one go, so that a busy one does not starve the others.
const TAKE_BYTES: u64 = 4 << 20;

const STATE: usize = 128;
const HEAD: usize = 192;
const LOST: usize = 200;
const TAIL: usize = 256;
const CLOSED: u32 = 2;

/// What a drain brought besides what it wrote.
#[derive(Debug, Default)]
pub struct Drained {
    /// Messages written.
    pub messages: u64,
    /// Messages lost since the last drain, by place ("pid/channel").
    pub lost: Vec<(String, u64)>,
    /// Files that are not as the protocol defines them, with the reason; each is reported once.
    pub refused: Vec<String>,
    /// What is lost by files that were refused, here or when they were found, in an unknown number.
    pub uncounted: Vec<Uncounted>,
    /// How soon to look again.
    pub pace: Pace,
    /// The recording could not be written.
    pub failed: Option<taut_recording::Error>,
}

/// The telemetry files of a session directory.
pub struct Channels {
    files: Files<ChannelFile>,
    described: Described,
    /// A value, copied out of shared memory before it is looked at.
    value: Vec<u8>,
}

/// Channels of the recording so far, by a hash of name and schema, and the bytes of their schemas.
#[derive(Default)]
struct Described {
    channels: HashSet<u64>,
    bytes: usize,
}

impl Channels {
    /// Watches a session directory; `late` skips what its rings hold now.
    pub fn open(directory: &Path, late: bool) -> Channels {
        let files = Files::new(directory, "telemetry", (LostWhat::Telemetry, "telemetry is"));
        let described = Described::default();
        let mut channels = Channels { files, described, value: Vec::new() };
        if late {
            channels.discover(&mut Vec::new());
            // What is refused here is refused and told again: nothing remembers it.
            channels.files.look_again();
            channels.files.iter_mut().for_each(ChannelFile::skip);
        }
        channels
    }

    /// Looks for new files.
    pub fn discover(&mut self, refused: &mut Vec<String>) {
        let described = &mut self.described;
        let open = |path: &Path| ChannelFile::open(path).and_then(|file| described.with(file));
        self.files.discover((FILES_MAX, "telemetry channels", "the others wait until some have ended"), open, refused);
    }

    /// What could not be taken up so far, but may be.
    pub fn unread(&self) -> Vec<Uncounted> {
        self.files.unread()
    }

    /// Files of which nothing is recorded now.
    pub fn missing(&self) -> Vec<Uncounted> {
        self.files.missing()
    }

    /// How many files were taken up so far, and how many are open.
    pub fn known(&self) -> [usize; 2] {
        self.files.known()
    }

    /// Writes what the rings hold, and removes the files that are done with.
    pub fn drain(&mut self, writer: &mut Writer) -> Drained {
        let mut drained = Drained::default();
        let value = &mut self.value;
        self.files.sort_out(|path, file| {
            let is_whole = file.shared.is_whole();
            let is_done = is_whole
                && file.drain(writer, value, &mut drained).unwrap_or_else(|error| {
                    drained.failed = Some(error);
                    false
                });
            if !is_whole || file.shared.is_cut() {
                let why = format!("{}: it was cut short; its telemetry is lost", path.display());
                drained.refused.push(why.clone());
                return Then::IsRefused(why);
            }
            if is_done { Then::IsDone } else { Then::Stays }
        });
        drained.uncounted.extend(self.files.take_lost());
        drained
    }

    /// Looks which processes are gone: their files go with the next drain. To be called now and then: it asks /proc.
    pub fn note_dead(&mut self) {
        self.files.iter_mut().for_each(|file| file.is_dead = file.is_dead || !file.owner.is_alive());
    }
}

impl Described {
    /// A writer keeps what it knows of each channel, so there may not be any number of them. The same channel of another
    /// process counts once.
    fn with(&mut self, file: ChannelFile) -> io::Result<ChannelFile> {
        let mut hasher = DefaultHasher::new();
        (&file.layout.name, &file.layout.schema).hash(&mut hasher);
        if self.channels.contains(&hasher.finish()) {
            return Ok(file);
        }
        let bytes = self.bytes + file.layout.schema.len();
        if self.channels.len() >= CHANNELS_MAX || bytes > DESCRIBED_MAX {
            return Err(bad(&format!(
                "more than {CHANNELS_MAX} channels, or {} MiB of descriptions",
                DESCRIBED_MAX >> 20
            )));
        }
        self.channels.insert(hasher.finish());
        self.bytes = bytes;
        Ok(file)
    }
}

/// One channel's file, mapped.
struct ChannelFile {
    shared: Shared,
    owner: Owner,
    is_dead: bool,
    counter: u8,
    value_bytes: usize,
    slot_count: u64,
    slot_stride: usize,
    ring_offset: usize,
    layout: StructLayout,
    /// In the recording, once something was written.
    channel: Option<u16>,
    /// Consumed; the file's copy is for the producer.
    tail: u64,
    /// The lost counter as last seen.
    lost: u64,
    last_ticks: u64,
    is_told: bool,
}

impl Mapped for ChannelFile {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn holds(&self) -> LostWhat {
        LostWhat::Telemetry
    }
}

impl ChannelFile {
    /// Reads the header and believes it only as far as it fits the file.
    fn open(path: &Path) -> io::Result<ChannelFile> {
        let shared = Shared::open(path)?;
        let (header, length) = (shared.header(), shared.len());
        if header.magic() != MAGIC {
            return Err(bad("not a telemetry file"));
        }
        if header.u32(8) != VERSION {
            return Err(bad(&format!("telemetry protocol version {}, this taut knows {VERSION}", header.u32(8))));
        }
        let (value_bytes, slot_count) = (header.u32(24) as usize, header.u32(28));
        let (stride, described, ring) = (header.size(48), header.size(56), header.size(64));
        let sound = (1..=MOST_BYTES).contains(&value_bytes)
            && slot_count.is_power_of_two()
            && slot_count <= MOST_SLOTS
            && stride.is_multiple_of(64)
            && stride >= SLOT_HEAD + value_bytes
            && described <= MOST_DESCRIPTION
            && ring.is_multiple_of(4096)
            && ring >= HEADER_BYTES + described
            && stride.checked_mul(slot_count as usize).and_then(|n| n.checked_add(ring)).is_some_and(|n| n <= length);
        if !sound {
            return Err(bad("its header does not fit the file"));
        }
        let counter = u8::try_from(header.u32(12)).ok().and_then(Counter::from_number).filter(is_ours);
        let counter = counter.ok_or_else(|| bad(&format!("counter {}, which this machine has not", header.u32(12))))?;
        let mut text = vec![0; described];
        shared.copy(HEADER_BYTES, &mut text);
        let layout = StructLayout::parse(&String::from_utf8_lossy(&text), value_bytes).map_err(|why| bad(&why))?;
        let is_named = !layout.name.trim().is_empty() && layout.name.len() <= NAME_BYTES;
        if !is_named || layout.name.chars().any(char::is_control) {
            let why = format!("its name is empty, longer than {NAME_BYTES} bytes, or holds control characters");
            return Err(bad(&why));
        }
        let owner = Owner::new(header.u32(16) as i32, header.u64(40), header.u64(32));
        shared.check_owner(&owner)?;
        let mut channel = ChannelFile {
            owner,
            is_dead: false,
            counter: counter as u8,
            value_bytes,
            slot_count: u64::from(slot_count),
            slot_stride: stride,
            ring_offset: ring,
            layout,
            channel: None,
            tail: 0,
            lost: 0,
            last_ticks: 0,
            is_told: false,
            shared,
        };
        // An earlier consumer may have taken some.
        channel.tail = channel.shared.u64(TAIL).load(Ordering::Relaxed);
        Ok(channel)
    }

    /// Where losses are counted.
    fn place(&self) -> String {
        format!("{}/{}", self.owner.pid, self.layout.name)
    }

    /// Starts with what is written from now on.
    fn skip(&mut self) {
        self.lost = self.shared.u64(LOST).load(Ordering::Relaxed);
        self.consumed(self.shared.u64(HEAD).load(Ordering::Acquire));
    }

    /// Writes what the ring holds; whether that was the last that it will ever hold.
    fn drain(
        &mut self,
        writer: &mut Writer,
        value: &mut Vec<u8>,
        drained: &mut Drained,
    ) -> Result<bool, taut_recording::Error> {
        // State before head: a ring seen closed holds no more than its head says. `is_dead` is older still.
        let is_closed = self.is_dead || self.shared.u32(STATE).load(Ordering::Acquire) == CLOSED;
        // SYNC POINT head
        let head = self.shared.u64(HEAD).load(Ordering::Acquire);
        let waiting = head.wrapping_sub(self.tail);
        let lost = self.shared.u64(LOST).load(Ordering::Relaxed);
        let more = lost.saturating_sub(std::mem::replace(&mut self.lost, lost));
        if more > 0 {
            drained.lost.push((self.place(), more));
        }
        if waiting > self.slot_count {
            // No producer does this. Believe nothing of it, and go on from its head.
            if !std::mem::replace(&mut self.is_told, true) {
                let why = format!(
                    "process {}: telemetry {:?} states {waiting} values in a ring of {}; they are not recorded",
                    self.owner.pid, self.layout.name, self.slot_count
                );
                drained.refused.push(why.clone());
                drained.uncounted.push(Uncounted { what: LostWhat::Telemetry, place: self.place(), why });
            }
            self.consumed(head);
            return Ok(is_closed);
        }
        if waiting == 0 {
            return Ok(is_closed);
        }
        let channel = match self.channel {
            Some(channel) => channel,
            None => {
                let topic = format!("/telemetry/{}", self.layout.name);
                let channel = writer.channel(&topic, &self.layout.schema_name, &self.layout.schema)?;
                *self.channel.insert(channel)
            }
        };
        let take = waiting.min((TAKE_BYTES / self.value_bytes as u64).max(1));
        value.resize(self.value_bytes, 0);
        let tail = self.tail;
        for position in (0..take).map(|i| tail.wrapping_add(i)) {
            let at = self.ring_offset + (position & (self.slot_count - 1)) as usize * self.slot_stride;
            // The producer finished the value before it published head.
            let [ticks, sequence] = self.shared.words(at);
            self.shared.copy(at + SLOT_HEAD, value);
            if self.shared.is_cut() {
                // Zeros are no values.
                return Ok(false);
            }
            // A thread's counter does not run backwards; across cores it may seem to by a few ticks.
            self.last_ticks = ticks.max(self.last_ticks);
            let Some(time_ns) = writer.time_of(self.counter, self.last_ticks) else { return Ok(false) };
            writer.message(channel, time_ns, sequence as u32, |out| self.layout.encode(value, out))?;
            drained.messages += 1;
            // One by one: writing may pause, and the producer needs the room.
            // SYNC POINT tail
            self.consumed(position.wrapping_add(1));
        }
        drained.pace = drained.pace.max(Pace::of(waiting, take, self.slot_count));
        Ok(is_closed && take == waiting)
    }

    /// Gives the producer the room of what was read.
    fn consumed(&mut self, tail: u64) {
        self.tail = tail;
        self.shared.u64(TAIL).store(tail, Ordering::Release);
    }
}

/// Whether this machine's recorder can tell the counter's time.
fn is_ours(counter: &Counter) -> bool {
    match counter {
        Counter::Monotonic => true,
        Counter::Tsc => cfg!(target_arch = "x86_64"),
        Counter::Cntvct => cfg!(target_arch = "aarch64"),
    }
}

#[cfg(test)]
mod tests;
