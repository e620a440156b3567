//! Writes a recording: dense batches, one chunk for each group at a time, never seeking back,
//! so that whatever kills the recorder costs at most what was not yet flushed.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::BufWriter,
    path::{Path, PathBuf},
};

use mcap::{WriteOptions, records::MessageHeader};
use taut_clock::{ClockPair, Counter, Mapping, Ticks};

use crate::{
    Ending, Error, FORMAT_VERSION, Info, Kind, plain,
    records::{KernelBatch, PlainChannel, Record, RosBatch, StampBatch},
    schemas::{self, Channel, Group, NUMBERED, VALUE_SCHEMA},
    telemetry::Unused,
};

/// A chunk is closed at this uncompressed size: that of zstd's window, beyond which its buffer wraps and every
/// match may lie in two pieces …
const CHUNK_BYTES: usize = 1 << 19;
/// … or at this age, which bounds what a kill -9 costs.
const CHUNK_AGE_NS: u64 = 200_000_000;
/// Of these larger ones go to the file as they are, without a copy in between.
const WRITE_BYTES: usize = 1 << 14;
/// Between two pauses.
const PART_BYTES: usize = 1 << 16;
/// What a late reader needs is written again this often …
const REPEAT_NS: u64 = 30_000_000_000;
/// … and what a channel is so soon after it came: elsewhere in the file, where the same damage does not reach.
const REPEAT_SOON_NS: u64 = 1_000_000_000;
const SYNC_NS: u64 = 1_000_000_000;
/// Plotting tools list every channel; a program with more signals than this has its raw stamps.
const MOST_VIEWS: usize = 1000;
/// Rows of a batch: large enough to compress, small enough to plot around.
const BATCH_ROWS: usize = 4096;
/// Bytes of one row as encoded, about: for the chunk size.
const STAMP_ROW_BYTES: usize = 13;
const KERNEL_ROW_BYTES: usize = 34;
const ROS_ROW_BYTES: usize = 37;
/// Of a message, what stands before its data.
const MESSAGE_HEAD_BYTES: usize = 31;

/// Whether the chunks are compressed. All are zstd frames, by which a reader finds them in a damaged file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Bytes as they are: for a processor that is short of time, on a disk that is not short of room.
    None,
    /// Kernel events cost 2 ns a byte and shrink to a quarter. Telemetry with the resolution of sensors costs 3 to 4 ns a byte and shrinks
    /// to between 0.1 and 0.7.
    #[default]
    Zstd,
}

impl Compression {
    /// Of zstd. Negative ones skip the coding of literals, and look for matches only at each (1 − level)th byte. Level 1
    /// would cost 0.1 to 0.8 ns more a byte, and six times as much for doubles that are noise. The lowest finds no match.
    fn level(self) -> i32 {
        match self {
            Compression::None => *zstd::compression_level_range().start(),
            Compression::Zstd => -1,
        }
    }
}

/// One recording being written.
pub struct Writer {
    path: PathBuf,
    file: File,
    mcap: mcap::Writer<BufWriter<File>>,
    info: Info,
    durable: bool,
    pause: fn(),
    stamps: BTreeMap<(i32, i32), StampBatch>,
    kernel: BTreeMap<u16, KernelBatch>,
    ros: BTreeMap<(i32, i32), RosBatch>,
    /// By group: first those of [`Group`], then one for each plain channel.
    pending: Vec<Pending>,
    plain: Vec<Plain>,
    topics: Unused,
    now_ns: u64,
    repeated_ns: u64,
    /// When the channels are written again.
    channels_due_ns: u64,
    synced_ns: u64,
    sequence: u32,
    names: HashMap<u32, String>,
    /// Whether some are not yet in the file.
    has_fresh_names: bool,
    views: HashMap<u32, View>,
    clocks: HashMap<u8, Vec<ClockPair>>,
}

/// The chunk to come of one group. Its room is kept from chunk to chunk.
#[derive(Default)]
struct Pending {
    messages: Vec<MessageHeader>,
    /// Where each message's bytes end.
    ends: Vec<usize>,
    data: Vec<u8>,
    /// About what the chunk will hold, batches that are not yet messages too; and since when.
    bytes: usize,
    opened_ns: Option<u64>,
}

/// A plain channel: its chunks hold nothing else.
struct Plain {
    channel: PlainChannel,
    /// As it was asked for; another schema may have had this topic before.
    topic: String,
    /// Its numbers in recordings that it came from.
    elsewhere: Vec<u16>,
    group: usize,
}

/// The plain channel of one signal.
#[derive(Clone)]
struct View {
    channel: u16,
    topic: String,
}

impl Writer {
    /// Starts the file with everything a reader needs first, and sees it to disk.
    pub fn create(path: &Path, info: &Info) -> Result<Writer, Error> {
        Writer::create_compressed(path, info, Compression::default())
    }

    /// As [`Writer::create`], with another compression.
    pub fn create_compressed(path: &Path, info: &Info, compression: Compression) -> Result<Writer, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let file = File::create(path).map_err(io)?;
        let written = file.try_clone().map_err(io)?;
        let options = WriteOptions::new()
            .profile("taut")
            .library(format!("taut {}", info.taut_version))
            .compression(Some(mcap::Compression::Zstd))
            // mcap takes it unsigned and hands it on as it is.
            .compression_level(compression.level() as u32)
            .compression_threads(0)
            .chunk_size(None)
            .disable_seeking(true);
        let mcap = options
            .create(BufWriter::with_capacity(WRITE_BYTES, written))
            .map_err(|source| Error::Mcap { path: path.to_owned(), source })?;
        let start_ns = info.start_monotonic_ns;
        let mut writer = Writer {
            path: path.to_owned(),
            file,
            mcap,
            info: info.clone(),
            durable: false,
            pause: || {},
            stamps: BTreeMap::new(),
            kernel: BTreeMap::new(),
            ros: BTreeMap::new(),
            pending: Group::ALL.map(|_| Pending::default()).into(),
            plain: Vec::new(),
            topics: Unused::default(),
            now_ns: start_ns,
            repeated_ns: start_ns,
            channels_due_ns: u64::MAX,
            synced_ns: start_ns,
            sequence: 0,
            names: HashMap::new(),
            has_fresh_names: false,
            views: HashMap::new(),
            clocks: HashMap::new(),
        };
        writer.write_head()?;
        Ok(writer)
    }

    /// What errors call the file, which may be renamed while it is written.
    pub fn set_path(&mut self, path: &Path) {
        path.clone_into(&mut self.path);
    }

    /// `pause` is called after each part of the work on a chunk. One of a batch of 4096 rows takes about 0.3 ms.
    pub fn set_pause(&mut self, pause: fn()) {
        self.pause = pause;
    }

    /// Sync the file to disk about once a second.
    pub fn set_durable(&mut self, on: bool) {
        self.durable = on;
    }

    /// Takes a record; it reaches the file with its group's next chunk.
    pub fn write(&mut self, record: &Record) -> Result<(), Error> {
        match record {
            Record::Stamps(batch) => self.take_stamps(batch)?,
            Record::Kernel(batch) => self.take_kernel(batch)?,
            Record::Ros(batch) => self.take_ros(batch)?,
            Record::Channel(channel) => self.take_channel(channel)?,
            Record::Message(message) => {
                let plain = self.plain.iter().find(|plain| plain.elsewhere.contains(&message.channel));
                let Some((channel_id, group)) = plain.map(|plain| (plain.channel.number, plain.group)) else {
                    return Ok(());
                };
                let (log_time, sequence) = (message.log_time_ns, message.sequence);
                let header = MessageHeader { channel_id, sequence, log_time, publish_time: log_time };
                self.push(group, header, |out| out.extend_from_slice(&message.data))?;
            }
            other => self.take_slow(other)?,
        }
        Ok(())
    }

    /// The number of a channel of plain messages, added if there is none of that topic and schema.
    ///
    /// # Errors
    /// The file cannot be written; or it has all the channels that MCAP can number.
    pub fn channel(&mut self, topic: &str, schema_name: &str, schema: &str) -> Result<u16, Error> {
        let is_it = |plain: &&Plain| plain.channel.schema == schema && plain.topic == topic;
        if let Some(plain) = self.plain.iter().find(is_it) {
            return Ok(plain.channel.number);
        }
        // Two schemas under one topic confuse every tool.
        let asked = topic.to_owned();
        let topic = self.topics.of(asked.clone(), "_");
        let schema_id = self.mcap.add_schema(schema_name, "ros2msg", schema.as_bytes());
        let schema_id = schema_id.map_err(|source| self.mcap_error(source))?;
        let number = self.mcap.add_channel(schema_id, &topic, "cdr", &BTreeMap::new());
        let number = number.map_err(|source| self.mcap_error(source))?;
        let (schema_name, schema) = (schema_name.to_owned(), schema.to_owned());
        let channel = PlainChannel { number, topic, schema_name, schema };
        self.plain.push(Plain { channel, topic: asked, elsewhere: Vec::new(), group: self.pending.len() });
        self.pending.push(Pending::default());
        // On disk at once, and a second time in Metadata: without it every later chunk is noise.
        self.describe_channels(self.plain.len() - 1)?;
        self.describe_soon();
        Ok(number)
    }

    /// Takes a message of a plain channel, which `encode` appends to the bytes it is given. `time_ns` is
    /// CLOCK_MONOTONIC.
    pub fn message(
        &mut self,
        channel: u16,
        time_ns: u64,
        sequence: u32,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Error> {
        let group = self.plain.iter().find(|plain| plain.channel.number == channel).map(|plain| plain.group);
        let log_time = self.log_time(time_ns);
        let header = MessageHeader { channel_id: channel, sequence, log_time, publish_time: log_time };
        self.push(group.unwrap_or(Group::Views as usize), header, encode)
    }

    /// CLOCK_MONOTONIC of a counter's ticks, from the calibrations written so far; `None` with fewer than two.
    pub fn time_of(&self, counter: u8, ticks: u64) -> Option<u64> {
        if counter == Counter::Monotonic as u8 {
            return Some(ticks);
        }
        let mapping = Mapping::new(self.clocks.get(&counter)?.iter().copied())?;
        Some(mapping.to_monotonic(Ticks(ticks)).0)
    }

    /// Closes the chunks that are large or old enough. `now_ns` is CLOCK_MONOTONIC.
    pub fn flush_due(&mut self, now_ns: u64) -> Result<(), Error> {
        self.flush_due_until(now_ns, now_ns)
    }

    /// As [`Writer::flush_due`], and those that will be old enough until `next_ns`: before that it is not called again.
    pub fn flush_due_until(&mut self, now_ns: u64, next_ns: u64) -> Result<(), Error> {
        self.now_ns = self.now_ns.max(now_ns);
        for group in 0..self.pending.len() {
            if self.pending[group].opened_ns.is_some_and(|opened| is_due(next_ns, opened, CHUNK_AGE_NS)) {
                self.flush_group(group)?;
            }
        }
        if is_due(now_ns, self.repeated_ns, REPEAT_NS) {
            self.repeated_ns = now_ns;
            self.push_record(Channel::Info, self.info_bytes())?;
            self.describe()?;
        }
        if now_ns >= self.channels_due_ns {
            self.channels_due_ns = now_ns.saturating_add(REPEAT_NS);
            self.describe_channels(0)?;
        }
        if self.durable && is_due(now_ns, self.synced_ns, SYNC_NS) {
            self.synced_ns = now_ns;
            self.file.sync_data().map_err(|source| self.io(source))?;
        }
        Ok(())
    }

    /// Closes all chunks.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> Result<(), Error> {
        for group in 0..self.pending.len() {
            self.flush_group(group)?;
        }
        self.mcap.flush().map_err(|source| self.mcap_error(source))
    }

    /// Closes all chunks and describes the plain channels again, so that the file can be read from here on by whoever has its
    /// head and knows what is written only once. Returns the file's length before that, in bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn seam(&mut self) -> Result<u64, Error> {
        self.flush()?;
        let at = self.file.metadata().map_err(|source| self.io(source))?.len();
        self.describe_channels(0)?;
        self.mcap.flush().map_err(|source| self.mcap_error(source))?;
        Ok(at)
    }

    /// From a log time of this file to CLOCK_MONOTONIC, to be added with wrapping.
    pub(crate) fn shift_ns(&self) -> u64 {
        self.info.start_monotonic_ns.wrapping_sub(self.info.start_realtime_ns)
    }

    /// Writes what is left, the ending and the summary; returns the file's length in bytes.
    pub fn finish(mut self, ending: &Ending) -> Result<u64, Error> {
        self.now_ns = self.now_ns.max(ending.end_monotonic_ns);
        for group in 0..self.pending.len() {
            self.flush_group(group)?;
        }
        // Last: where a write fails before it, the file does not say that it is whole.
        self.push_record(Channel::Info, self.info_bytes())?;
        self.push_record(Channel::Ending, schemas::encode_json(ending))?;
        self.flush_group(Group::Slow as usize)?;
        self.describe_channels(0)?;
        self.metadata("taut.ending", facts(ending))?;
        self.mcap.finish().map_err(|source| Error::Mcap { path: self.path.clone(), source })?;
        std::io::Write::flush(&mut self.mcap.into_inner())
            .map_err(|source| Error::Io { path: self.path.clone(), source })?;
        let io = |source| Error::Io { path: self.path.clone(), source };
        if self.durable {
            self.file.sync_all().map_err(io)?;
        }
        Ok(self.file.metadata().map_err(io)?.len())
    }

    fn write_head(&mut self) -> Result<(), Error> {
        self.describe()?;
        for (channel, topic, schema_name, schema) in NUMBERED {
            let schema_id = self.mcap.add_schema(schema_name, "ros2msg", schema.as_bytes());
            let schema_id = schema_id.map_err(|source| self.mcap_error(source))?;
            let id = self.mcap.add_channel(schema_id, topic, "cdr", &BTreeMap::new());
            let id = id.map_err(|source| self.mcap_error(source))?;
            debug_assert_eq!(id, channel as u16, "fixed channel ids are part of the format");
        }
        self.push_record(Channel::Info, self.info_bytes())?;
        self.flush_group(Group::Slow as usize)?;
        self.file.sync_data().map_err(|source| self.io(source))
    }

    /// Says in Metadata, which lies open between the chunks, what a reader must know. Metadata has no
    /// checksum, therefore the format is written twice: one flipped bit must not get a file refused.
    fn describe(&mut self) -> Result<(), Error> {
        for _ in 0..2 {
            let format = [("version", FORMAT_VERSION.to_string()), ("required_features", String::new())];
            self.metadata("taut.format", format.map(|(key, value)| (key.to_owned(), value)).into())?;
        }
        let raw = NUMBERED.iter().map(|(id, topic, schema, text)| described(*id as u16, topic, schema, text));
        self.channel_metadata(raw.collect())?;
        let mut info = facts(&self.info);
        info.insert("json".to_owned(), serde_json::to_string(&self.info).unwrap_or_default());
        self.metadata("taut.info", info)
    }

    /// Says what the plain channels are, from the one at `from` on, and all signals'.
    fn describe_channels(&mut self, from: usize) -> Result<(), Error> {
        let (schema, text) = VALUE_SCHEMA;
        let views = self.views.values().map(|view| described(view.channel, &view.topic, schema, text));
        let plain = self.plain[from..].iter().map(|plain| &plain.channel);
        let plain = plain.map(|c| described(c.number, &c.topic, &c.schema_name, &c.schema));
        let channels: BTreeMap<String, String> = views.chain(plain).collect();
        if channels.is_empty() { Ok(()) } else { self.channel_metadata(channels) }
    }

    fn describe_soon(&mut self) {
        self.channels_due_ns = self.channels_due_ns.min(self.now_ns.saturating_add(REPEAT_SOON_NS));
    }

    /// With a checksum, which Metadata has not by itself: what a channel is must not be misread.
    fn channel_metadata(&mut self, mut channels: BTreeMap<String, String>) -> Result<(), Error> {
        let pairs = channels.iter().map(|(id, said)| (id.as_str(), said.as_str()));
        let checksum = plain::checksum(pairs);
        channels.insert(plain::CHECKSUM.to_owned(), checksum);
        self.metadata("taut.channels", channels)
    }

    fn take_stamps(&mut self, batch: &StampBatch) -> Result<(), Error> {
        self.view_values(batch)?;
        for run in runs(&batch.ticks) {
            let first = batch.ticks[run.start];
            let pending = self.stamps.entry((batch.pid, batch.tid)).or_default();
            let fits = pending.counter == batch.counter && follows(pending.ticks.last(), first);
            if pending.ticks.len() + run.len() > BATCH_ROWS || !fits {
                let full = std::mem::take(pending);
                self.queue_stamps(full)?;
            }
            let pending = self.stamps.entry((batch.pid, batch.tid)).or_default();
            (pending.pid, pending.tid, pending.counter) = (batch.pid, batch.tid, batch.counter);
            pending.ticks.extend_from_slice(&batch.ticks[run.clone()]);
            pending.message_id.extend_from_slice(&batch.message_id[run.clone()]);
            pending.point.extend_from_slice(&batch.point[run.clone()]);
            pending.kind.extend_from_slice(&batch.kind[run.clone()]);
            pending.value.extend_from_slice(&batch.value[run.clone()]);
            self.arrived(Group::Stamps as usize, run.len() * STAMP_ROW_BYTES)?;
        }
        Ok(())
    }

    fn take_kernel(&mut self, batch: &KernelBatch) -> Result<(), Error> {
        for run in runs(&batch.time_ns) {
            let pending = self.kernel.entry(batch.cpu).or_default();
            let fits = follows(pending.time_ns.last(), batch.time_ns[run.start]);
            if pending.time_ns.len() + run.len() > BATCH_ROWS || !fits {
                let full = std::mem::take(pending);
                self.queue_kernel(full)?;
            }
            let pending = self.kernel.entry(batch.cpu).or_default();
            pending.cpu = batch.cpu;
            pending.time_ns.extend_from_slice(&batch.time_ns[run.clone()]);
            pending.event.extend_from_slice(&batch.event[run.clone()]);
            pending.flags.extend_from_slice(&batch.flags[run.clone()]);
            pending.tid.extend_from_slice(&batch.tid[run.clone()]);
            pending.arg0.extend_from_slice(&batch.arg0[run.clone()]);
            pending.arg1.extend_from_slice(&batch.arg1[run.clone()]);
            pending.arg2.extend_from_slice(&batch.arg2[run.clone()]);
            self.arrived(Group::Kernel as usize, run.len() * KERNEL_ROW_BYTES)?;
        }
        Ok(())
    }

    fn take_ros(&mut self, batch: &RosBatch) -> Result<(), Error> {
        let (_, group) = self.named(Channel::Ros)?;
        for run in runs(&batch.ticks) {
            let pending = self.ros.entry((batch.pid, batch.tid)).or_default();
            let fits = pending.counter == batch.counter && follows(pending.ticks.last(), batch.ticks[run.start]);
            if pending.ticks.len() + run.len() > BATCH_ROWS || !fits {
                let full = std::mem::take(pending);
                self.queue_ros(full)?;
            }
            let pending = self.ros.entry((batch.pid, batch.tid)).or_default();
            (pending.pid, pending.tid, pending.counter) = (batch.pid, batch.tid, batch.counter);
            pending.ticks.extend_from_slice(&batch.ticks[run.clone()]);
            pending.event.extend_from_slice(&batch.event[run.clone()]);
            pending.handle.extend_from_slice(&batch.handle[run.clone()]);
            pending.arg0.extend_from_slice(&batch.arg0[run.clone()]);
            pending.arg1.extend_from_slice(&batch.arg1[run.clone()]);
            pending.arg2.extend_from_slice(&batch.arg2[run.clone()]);
            self.arrived(group, run.len() * ROS_ROW_BYTES)?;
        }
        Ok(())
    }

    fn take_slow(&mut self, record: &Record) -> Result<(), Error> {
        match record {
            Record::Name(name) => {
                self.names.insert(name.id, name.name.clone());
                self.has_fresh_names = true;
            }
            Record::Clock(counter, pair) => {
                let pairs = self.clocks.entry(*counter as u8).or_default();
                pairs.push(*pair);
                // The first and the newest give the slope; log times need no more.
                if pairs.len() > 2 {
                    pairs.remove(1);
                }
            }
            _ => {}
        }
        match schemas::encode(record) {
            Some((channel, bytes)) if Channel::from_id(channel as u16).is_some() => self.push_record(channel, bytes),
            Some((channel, bytes)) => {
                let first_ns = match record {
                    Record::Profile(batch) => batch.time_ns.first().copied(),
                    _ => None,
                };
                self.push_named(channel, first_ns.unwrap_or(self.now_ns), &bytes)
            }
            None => Ok(()),
        }
    }

    /// Takes a record of a channel that is known by its schema, and therefore lies in the file as plain ones do.
    fn push_named(&mut self, channel: Channel, time_ns: u64, bytes: &[u8]) -> Result<(), Error> {
        let (number, group) = self.named(channel)?;
        let header = self.header(number, self.log_time(time_ns));
        self.push(group, header, |out| out.extend_from_slice(bytes))
    }

    /// Number and group of a channel that is known by its schema, which is added if the file has none yet.
    fn named(&mut self, channel: Channel) -> Result<(u16, usize), Error> {
        let (_, topic, schema_name, schema) = channel.described();
        let number = self.channel(topic, schema_name, schema)?;
        let plain = self.plain.iter().find(|plain| plain.channel.number == number);
        Ok((number, plain.map_or(Group::Views as usize, |plain| plain.group)))
    }

    /// The group that holds that channel, if the file has one.
    fn group_of(&self, channel: Channel) -> Option<usize> {
        let (_, _, schema_name, _) = channel.described();
        self.plain.iter().find(|plain| plain.channel.schema_name == schema_name).map(|plain| plain.group)
    }

    /// A channel of another recording: its number there, and the one here.
    fn take_channel(&mut self, channel: &PlainChannel) -> Result<(), Error> {
        let number = self.channel(&channel.topic, &channel.schema_name, &channel.schema)?;
        let known = self.plain.iter_mut().find(|plain| plain.channel.number == number);
        known.into_iter().for_each(|plain| plain.elsewhere.push(channel.number));
        Ok(())
    }

    /// Values besides go to plain channels that plotting tools show as they are.
    fn view_values(&mut self, batch: &StampBatch) -> Result<(), Error> {
        for at in (0..batch.kind.len()).filter(|at| batch.kind[*at] == Kind::Value as u8) {
            let channel = match self.views.get(&batch.point[at]) {
                Some(view) => view.channel,
                None if self.views.len() >= MOST_VIEWS => continue,
                None => self.add_view(batch.point[at])?,
            };
            let log_time = self.log_time(self.monotonic(batch.counter, batch.ticks[at]));
            let message = crate::cdr::Encoder::new().number(f64::from_bits(batch.value[at])).finish();
            self.push_bytes(Group::Views, channel, log_time, &message)?;
        }
        Ok(())
    }

    fn add_view(&mut self, point: u32) -> Result<u16, Error> {
        let name = self.names.get(&point).cloned().unwrap_or_else(|| format!("point_{point}"));
        let schema = self.mcap.add_schema(VALUE_SCHEMA.0, "ros2msg", VALUE_SCHEMA.1.as_bytes());
        let schema = schema.map_err(|source| self.mcap_error(source))?;
        let topic = format!("/value/{name}");
        let channel = self.mcap.add_channel(schema, &topic, "cdr", &BTreeMap::new());
        let channel = channel.map_err(|source| self.mcap_error(source))?;
        self.views.insert(point, View { channel, topic });
        self.describe_soon();
        Ok(channel)
    }

    fn queue_stamps(&mut self, batch: StampBatch) -> Result<(), Error> {
        let Some(first) = batch.ticks.first() else { return Ok(()) };
        let time = self.log_time(self.monotonic(batch.counter, *first));
        self.queue_batch(Group::Stamps, time, &Record::Stamps(batch))
    }

    fn queue_kernel(&mut self, batch: KernelBatch) -> Result<(), Error> {
        let Some(first) = batch.time_ns.first() else { return Ok(()) };
        let time = self.log_time(*first);
        self.queue_batch(Group::Kernel, time, &Record::Kernel(batch))
    }

    fn queue_ros(&mut self, batch: RosBatch) -> Result<(), Error> {
        let Some(first) = batch.ticks.first() else { return Ok(()) };
        let time = self.log_time(self.monotonic(batch.counter, *first));
        let Some((channel, bytes)) = schemas::encode(&Record::Ros(batch)) else { return Ok(()) };
        let (number, group) = self.named(channel)?;
        let header = self.header(number, time);
        self.pending[group].add(header, |out| out.extend_from_slice(&bytes));
        (self.pause)();
        Ok(())
    }

    /// Its bytes were counted row by row, as they arrived.
    fn queue_batch(&mut self, group: Group, log_time: u64, batch: &Record) -> Result<(), Error> {
        let Some((channel, bytes)) = schemas::encode(batch) else { return Ok(()) };
        let header = self.header(channel as u16, log_time);
        self.pending[group as usize].add(header, |out| out.extend_from_slice(&bytes));
        (self.pause)();
        Ok(())
    }

    fn push_record(&mut self, channel: Channel, bytes: Vec<u8>) -> Result<(), Error> {
        self.push_bytes(Group::Slow, channel as u16, self.log_time(self.now_ns), &bytes)
    }

    fn push_bytes(&mut self, group: Group, channel: u16, log_time: u64, bytes: &[u8]) -> Result<(), Error> {
        let header = self.header(channel, log_time);
        self.push(group as usize, header, |out| out.extend_from_slice(bytes))
    }

    fn push(&mut self, group: usize, header: MessageHeader, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        let length = self.pending[group].add(header, encode) + MESSAGE_HEAD_BYTES;
        self.arrived(group, length)
    }

    /// Of a message of our own channels, which are counted together.
    fn header(&mut self, channel_id: u16, log_time: u64) -> MessageHeader {
        self.sequence = self.sequence.wrapping_add(1);
        MessageHeader { channel_id, sequence: self.sequence, log_time, publish_time: log_time }
    }

    /// Notes that a group grew, and closes its chunk when that is large enough.
    fn arrived(&mut self, group: usize, bytes: usize) -> Result<(), Error> {
        let now_ns = self.now_ns;
        let pending = &mut self.pending[group];
        pending.opened_ns.get_or_insert(now_ns);
        pending.bytes += bytes;
        if pending.bytes >= CHUNK_BYTES { self.flush_group(group) } else { Ok(()) }
    }

    /// Writes what a group has pending as one chunk.
    fn flush_group(&mut self, group: usize) -> Result<(), Error> {
        if group == Group::Slow as usize {
            self.has_fresh_names = false;
        } else if self.has_fresh_names {
            // A stamp in the file whose name died with the recorder would be nobody's.
            self.flush_group(Group::Slow as usize)?;
        }
        if group == Group::Stamps as usize {
            std::mem::take(&mut self.stamps).into_values().try_for_each(|batch| self.queue_stamps(batch))?;
        } else if group == Group::Kernel as usize {
            std::mem::take(&mut self.kernel).into_values().try_for_each(|batch| self.queue_kernel(batch))?;
        } else if !self.ros.is_empty() && self.group_of(Channel::Ros) == Some(group) {
            // What the handles are comes first, as names do.
            self.group_of(Channel::RosObjects).map_or(Ok(()), |objects| self.flush_group(objects))?;
            std::mem::take(&mut self.ros).into_values().try_for_each(|batch| self.queue_ros(batch))?;
        }
        let pending = &mut self.pending[group];
        (pending.bytes, pending.opened_ns) = (0, None);
        let (mut start, mut paused) = (0, 0);
        for (header, end) in pending.messages.iter().zip(&pending.ends) {
            let written = self.mcap.write_to_known_channel(header, &pending.data[start..*end]);
            written.map_err(|source| mcap_error(&self.path, source))?;
            start = *end;
            if end - paused >= PART_BYTES {
                paused = *end;
                (self.pause)();
            }
        }
        pending.messages.clear();
        pending.ends.clear();
        pending.data.clear();
        self.mcap.flush().map_err(|source| self.mcap_error(source))
    }

    /// Adds facts under a name, as MCAP's Metadata.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn metadata(&mut self, name: &str, metadata: BTreeMap<String, String>) -> Result<(), Error> {
        let metadata = mcap::records::Metadata { name: name.to_owned(), metadata };
        self.mcap.write_metadata(&metadata).map_err(|source| self.mcap_error(source))
    }

    fn info_bytes(&self) -> Vec<u8> {
        schemas::encode_json(&self.info)
    }

    fn monotonic(&self, counter: u8, ticks: u64) -> u64 {
        self.time_of(counter, ticks).unwrap_or(self.now_ns)
    }

    fn log_time(&self, monotonic_ns: u64) -> u64 {
        let since_start = monotonic_ns.saturating_sub(self.info.start_monotonic_ns);
        self.info.start_realtime_ns.saturating_add(since_start)
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.path.clone(), source }
    }

    fn mcap_error(&self, source: mcap::McapError) -> Error {
        mcap_error(&self.path, source)
    }
}

impl Pending {
    /// Takes a message; returns its length.
    fn add(&mut self, header: MessageHeader, encode: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.data.len();
        encode(&mut self.data);
        self.messages.push(header);
        self.ends.push(self.data.len());
        self.data.len() - start
    }
}

/// A channel as `taut.channels` has it.
fn described(number: u16, topic: &str, schema_name: &str, schema: &str) -> (String, String) {
    (number.to_string(), format!("{topic} {schema_name}\n{schema}"))
}

fn mcap_error(path: &Path, source: mcap::McapError) -> Error {
    match source {
        mcap::McapError::Io(source) => Error::Io { path: path.to_owned(), source },
        source => Error::Mcap { path: path.to_owned(), source },
    }
}

/// The fields of a record as text, as Metadata holds them: strings as they are, the rest as JSON.
fn facts(value: &impl serde::Serialize) -> BTreeMap<String, String> {
    let fields = match serde_json::to_value(value) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => Default::default(),
    };
    let text = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    fields.into_iter().map(|(key, value)| (key, text(value))).collect()
}

/// Whether `age_ns` have passed; times from a damaged file may be anything.
fn is_due(now_ns: u64, since_ns: u64, age_ns: u64) -> bool {
    now_ns.saturating_sub(since_ns) >= age_ns
}

/// Cuts times into stretches that a batch can hold: at most [`BATCH_ROWS`] long, each step from 0 to 2^32 − 1.
fn runs(times: &[u64]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = times.get(start..).filter(|rest| !rest.is_empty())?;
        let step = rest.windows(2).position(|pair| !follows(Some(&pair[0]), pair[1]));
        let end = start + step.map_or(rest.len(), |at| at + 1).min(BATCH_ROWS);
        Some(std::mem::replace(&mut start, end)..end)
    })
}

/// Whether a batch that ends at `last` can go on at `next`.
fn follows(last: Option<&u64>, next: u64) -> bool {
    last.is_none_or(|last| next.checked_sub(*last).is_some_and(|step| step <= u64::from(u32::MAX)))
}
