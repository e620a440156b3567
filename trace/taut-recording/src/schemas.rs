//! How records lie in the file: one channel and one `ros2msg` schema for each kind, and the two functions between
//! [`Record`] and CDR bytes. `docs/reference/recording.md` documents it.

use taut_clock::{ClockPair, Counter, Ticks};

use crate::{
    Ending, Frame, Histogram, Info, Lost, LostWhat, Name, Object, ObjectKind, ProfileBatch, Sample, Thread,
    cdr::{Decoder, Encoder},
    printable::printable,
    records::{KernelBatch, Record, RosBatch, RosObject, RosObjectKind, StampBatch},
};

/// A channel of taut's own records. The numbered ones have the same id in every file of version 1, so that a file
/// which lost its head still reads. From [`Channel::Profile`] on they are known by their schema's name: ids above the
/// numbered ones are given out as they come, to values and telemetry too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Channel {
    Stamps = 1,
    Kernel = 2,
    Clock = 3,
    Names = 4,
    Threads = 5,
    Lost = 6,
    Samples = 7,
    Info = 8,
    Ending = 9,
    Objects = 10,
    Profile,
    Frames,
    Histograms,
    Ros,
    RosObjects,
}

/// What shares a chunk: one group's chunks read without the others' bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Slow,
    Stamps,
    Kernel,
    Views,
}

impl Group {
    /// In the order they are flushed: names and clocks stand before the stamps that need them.
    pub const ALL: [Group; 4] = [Group::Slow, Group::Stamps, Group::Kernel, Group::Views];
}

/// A channel with its topic, schema name and schema text.
pub type Described = (Channel, &'static str, &'static str, &'static str);

/// The numbered channels: in every file, described at its head.
pub const NUMBERED: [Described; 10] = [
    (Channel::Stamps, "/taut/raw/stamps", "taut/msg/StampBatch", STAMP_BATCH),
    (Channel::Kernel, "/taut/raw/kernel", "taut/msg/KernelBatch", KERNEL_BATCH),
    (Channel::Clock, "/taut/raw/clock", "taut/msg/ClockPair", CLOCK_PAIR),
    (Channel::Names, "/taut/raw/names", "taut/msg/Name", NAME),
    (Channel::Threads, "/taut/raw/threads", "taut/msg/Thread", THREAD),
    (Channel::Lost, "/taut/raw/lost", "taut/msg/Lost", LOST),
    (Channel::Samples, "/taut/raw/samples", "taut/msg/Sample", SAMPLE),
    (Channel::Info, "/taut/raw/info", "taut/msg/Info", JSON),
    (Channel::Ending, "/taut/raw/ending", "taut/msg/Ending", JSON),
    (Channel::Objects, "/taut/raw/objects", "taut/msg/Object", OBJECT),
];

/// Those told by their schema's name: only in files that have something for them.
pub const NAMED: [Described; 5] = [
    (Channel::Profile, "/taut/raw/profile", "taut/msg/ProfileBatch", PROFILE_BATCH),
    (Channel::Frames, "/taut/raw/frames", "taut/msg/Frame", FRAME),
    (Channel::Histograms, "/taut/raw/histograms", "taut/msg/Histogram", HISTOGRAM),
    (Channel::Ros, "/taut/raw/ros", "taut/msg/RosBatch", ROS_BATCH),
    (Channel::RosObjects, "/taut/raw/ros_objects", "taut/msg/RosObject", ROS_OBJECT),
];

/// Schema of the view channels `/value/NAME`.
pub const VALUE_SCHEMA: (&str, &str) = ("taut/msg/Value", "float64 value\n");

const STAMP_BATCH: &str = "\
# Stamps of one thread, column by column. ticks = first_ticks + cumsum(delta_ticks);
# message_id = first_message_id + cumsum(delta_message_id or, where ids jump, wide_delta_message_id).
# Stamp value_at[i] has the value value_bits[i]; every other value is 0.
uint64 first_ticks
uint64 first_message_id
int64[] wide_delta_message_id
uint64[] value_bits
int32 pid
int32 tid
uint32[] delta_ticks
int32[] delta_message_id
uint32[] point
uint32[] value_at
uint8[] kind
uint8 counter
";
const KERNEL_BATCH: &str = "\
# Kernel events of one CPU. time_ns = first_ns + cumsum(delta_ns), CLOCK_MONOTONIC.
uint64 first_ns
int64[] arg0
int64[] arg1
int64[] arg2
uint32[] delta_ns
int32[] tid
uint16 cpu
uint8[] event
uint8[] flags
";
const PROFILE_BATCH: &str = "\
# Sampled stacks. time_ns is CLOCK_MONOTONIC; sample i has the next depth[i] of frame, innermost first.
uint64[] time_ns
int32[] pid
int32[] tid
uint32[] frame
uint16[] cpu
uint16[] depth
";
const FRAME: &str = "uint64 address\nuint32 id\nstring module\nstring name\n";
const HISTOGRAM: &str = "\
# A distribution without messages. Bucket i holds count[i] values from bucket_from[i] to bucket_to[i], both
# included; overflow more are known to be at least overflow_from. known: bit 0 min, bit 1 max.
uint64 overflow
uint64 overflow_from
uint64 min
uint64 max
uint64[] bucket_from
uint64[] bucket_to
uint64[] count
string name
string unit
uint8 known
";
const ROS_BATCH: &str = "\
# Raw ROS 2 events of one thread. ticks = first_ticks + cumsum(delta_ticks).
uint64 first_ticks
uint64[] handle
uint64[] arg0
uint64[] arg1
uint64[] arg2
uint32[] delta_ticks
int32 pid
int32 tid
uint8[] event
uint8 counter
";
const ROS_OBJECT: &str = "\
# What a ROS 2 handle of a process is; time_ns is CLOCK_MONOTONIC.
uint64 time_ns
uint64 handle
uint64 owner
uint64 other
uint64 number
int32 pid
string name
string text
uint8 kind
";
const CLOCK_PAIR: &str = "uint64 ticks\nuint64 monotonic_ns\nuint64 realtime_ns\nuint32 window_ticks\nuint8 counter\n";
const NAME: &str = "uint32 id\nstring name\n";
const THREAD: &str =
    "uint64 time_ns\nuint64 start_time\nint32 pid\nint32 tid\nstring comm\nstring cmdline\nuint8 recorded\n";
const OBJECT: &str = "uint64 time_ns\nuint64 start\nuint64 size\nint32 pid\nstring name\nuint8 kind\n";
// The last two fields came later; a file without them has 0 there.
const LOST: &str = "uint64 time_ns\nuint64 count\nstring place\nuint8 what\nuint64 since_ns\nuint8 is_estimate\n";
const SAMPLE: &str = "uint64 time_ns\nfloat64 value\nstring name\n";
const JSON: &str = "string json\n";

impl Channel {
    /// The numbered channel of that id.
    pub fn from_id(id: u16) -> Option<Channel> {
        NUMBERED.iter().map(|(channel, ..)| *channel).find(|channel| *channel as u16 == id)
    }

    /// The channel that is known by that schema.
    pub fn from_schema(name: &str) -> Option<Channel> {
        NAMED.iter().find(|(_, _, schema_name, _)| *schema_name == name).map(|(channel, ..)| *channel)
    }

    /// Its topic, schema name and schema text.
    pub fn described(self) -> Described {
        // Every channel is in one of the two tables.
        *NUMBERED.iter().chain(&NAMED).find(|(channel, ..)| *channel == self).unwrap_or(&NUMBERED[0])
    }
}

/// What a message of a raw channel holds.
pub enum Content {
    Record(Record),
    Info(Box<Info>),
    Ending(Ending),
}

/// The channel and bytes of a record; `None` for what has channels of its own.
pub fn encode(record: &Record) -> Option<(Channel, Vec<u8>)> {
    let out = Encoder::new();
    Some(match record {
        Record::Channel(_) | Record::Message(_) => return None,
        Record::Stamps(batch) => (Channel::Stamps, encode_stamps(batch)),
        Record::Kernel(batch) => (Channel::Kernel, encode_kernel(batch)),
        Record::Clock(counter, pair) => (
            Channel::Clock,
            out.number(pair.ticks.0)
                .number(pair.monotonic_ns)
                .number(pair.realtime_ns)
                .number(pair.window_ticks)
                .number(*counter as u8)
                .finish(),
        ),
        Record::Name(name) => (Channel::Names, out.number(name.id).string(&name.name).finish()),
        Record::Thread(thread) => (
            Channel::Threads,
            out.number(thread.time_ns)
                .number(thread.start_time)
                .number(thread.pid)
                .number(thread.tid)
                .string(&thread.comm)
                .string(&thread.cmdline)
                .number(u8::from(thread.recorded))
                .finish(),
        ),
        Record::Object(object) => (
            Channel::Objects,
            out.number(object.time_ns)
                .number(object.start)
                .number(object.size)
                .number(object.pid)
                .string(&object.name)
                .number(object.kind as u8)
                .finish(),
        ),
        Record::Lost(lost) => (
            Channel::Lost,
            out.number(lost.time_ns)
                .number(lost.count)
                .string(&lost.place)
                .number(lost.what as u8)
                .number(lost.since_ns)
                .number(u8::from(lost.is_estimate))
                .finish(),
        ),
        Record::Sample(sample) => {
            (Channel::Samples, out.number(sample.time_ns).number(sample.value).string(&sample.name).finish())
        }
        Record::Profile(batch) => (
            Channel::Profile,
            out.sequence(batch.time_ns.iter().copied())
                .sequence(batch.pid.iter().copied())
                .sequence(batch.tid.iter().copied())
                .sequence(batch.frame.iter().copied())
                .sequence(batch.cpu.iter().copied())
                .sequence(batch.depth.iter().copied())
                .finish(),
        ),
        Record::Frame(frame) => (
            Channel::Frames,
            out.number(frame.address).number(frame.id).string(&frame.module).string(&frame.name).finish(),
        ),
        Record::Histogram(histogram) => (Channel::Histograms, encode_histogram(histogram)),
        Record::Ros(batch) => (Channel::Ros, encode_ros(batch)),
        Record::RosObject(object) => (
            Channel::RosObjects,
            out.number(object.time_ns)
                .number(object.handle)
                .number(object.owner)
                .number(object.other)
                .number(object.number)
                .number(object.pid)
                .string(&object.name)
                .string(&object.text)
                .number(object.kind as u8)
                .finish(),
        ),
    })
}

/// The bytes of an Info or Ending, as JSON in a string.
pub fn encode_json(value: &impl serde::Serialize) -> Vec<u8> {
    Encoder::new().string(&serde_json::to_string(value).unwrap_or_default()).finish()
}

/// What the bytes of a message on that channel say; `None` when they do not.
pub fn decode(channel: Channel, message: &[u8]) -> Option<Content> {
    let mut from = Decoder::new(message)?;
    Some(Content::Record(match channel {
        Channel::Stamps => Record::Stamps(decode_stamps(&mut from)?),
        Channel::Kernel => Record::Kernel(decode_kernel(&mut from)?),
        Channel::Clock => {
            let pair = ClockPair {
                ticks: Ticks(from.number()?),
                monotonic_ns: from.number()?,
                realtime_ns: from.number()?,
                window_ticks: from.number()?,
            };
            Record::Clock(Counter::from_number(from.number()?)?, pair)
        }
        Channel::Names => Record::Name(Name { id: from.number()?, name: printable(from.string()?) }),
        Channel::Threads => Record::Thread(Thread {
            time_ns: from.number()?,
            start_time: from.number()?,
            pid: from.number()?,
            tid: from.number()?,
            comm: printable(from.string()?),
            cmdline: printable(from.string()?),
            recorded: from.number::<u8>()? != 0,
        }),
        Channel::Objects => Record::Object(Object {
            time_ns: from.number()?,
            start: from.number()?,
            size: from.number()?,
            pid: from.number()?,
            name: printable(from.string()?),
            kind: ObjectKind::from_number(from.number()?)?,
        }),
        Channel::Lost => {
            let (time_ns, count, place) = (from.number()?, from.number()?, printable(from.string()?));
            let what = LostWhat::from_number(from.number()?);
            let (since_ns, is_estimate) = (from.number().unwrap_or(0), from.number::<u8>().unwrap_or(0) != 0);
            Record::Lost(Lost { since_ns, time_ns, what, place, count, is_estimate })
        }
        Channel::Samples => {
            Record::Sample(Sample { time_ns: from.number()?, value: from.number()?, name: printable(from.string()?) })
        }
        Channel::Profile => Record::Profile(decode_profile(&mut from)?),
        Channel::Frames => Record::Frame(Frame {
            address: from.number()?,
            id: from.number()?,
            module: printable(from.string()?),
            name: printable(from.string()?),
        }),
        Channel::Histograms => Record::Histogram(decode_histogram(&mut from)?),
        Channel::Ros => Record::Ros(decode_ros(&mut from)?),
        Channel::RosObjects => Record::RosObject(RosObject {
            time_ns: from.number()?,
            handle: from.number()?,
            owner: from.number()?,
            other: from.number()?,
            number: from.number()?,
            pid: from.number()?,
            name: printable(from.string()?),
            text: printable(from.string()?),
            kind: RosObjectKind::from_number(from.number()?),
        }),
        Channel::Info => return serde_json::from_str(&from.string()?).ok().map(|i| Content::Info(Box::new(i))),
        Channel::Ending => return serde_json::from_str(&from.string()?).ok().map(Content::Ending),
    }))
}

fn encode_stamps(batch: &StampBatch) -> Vec<u8> {
    let id_deltas = || deltas(&batch.message_id).map(|d| d as i64);
    let narrow = id_deltas().all(|d| i32::try_from(d).is_ok());
    let length = if narrow { batch.ticks.len() } else { 0 };
    let wide_length = batch.ticks.len() - length;
    let valued = || batch.value.iter().enumerate().filter(|(_, value)| **value != 0);
    let values: Vec<u64> = valued().map(|(_, value)| *value).collect();
    let places: Vec<u32> = valued().map(|(at, _)| at as u32).collect();
    Encoder::new()
        .number(batch.ticks.first().copied().unwrap_or(0))
        .number(batch.message_id.first().copied().unwrap_or(0))
        .sequence(id_deltas().take(wide_length))
        .sequence(values.into_iter())
        .number(batch.pid)
        .number(batch.tid)
        .sequence(deltas(&batch.ticks).map(|d| d as u32))
        .sequence(id_deltas().map(|d| d as i32).take(length))
        .sequence(batch.point.iter().copied())
        .sequence(places.into_iter())
        .sequence(batch.kind.iter().copied())
        .number(batch.counter)
        .finish()
}

fn decode_stamps(from: &mut Decoder<'_>) -> Option<StampBatch> {
    let (first_ticks, first_id) = (from.number::<u64>()?, from.number::<u64>()?);
    let wide = from.sequence::<i64>()?;
    let values = from.sequence::<u64>()?;
    let (pid, tid) = (from.number()?, from.number()?);
    let ticks = sums(first_ticks, from.sequence::<u32>()?.map(u64::from));
    let narrow = from.sequence::<i32>()?;
    let message_id = match narrow.len() {
        0 => sums(first_id, wide.map(|d| d as u64)),
        _ => sums(first_id, narrow.map(|d| i64::from(d) as u64)),
    };
    let point: Vec<u32> = from.sequence()?.collect();
    let places = from.sequence::<u32>()?;
    let mut value = vec![0; ticks.len()];
    if places.len() != values.len() {
        return None;
    }
    for (at, bits) in places.zip(values) {
        *value.get_mut(at as usize)? = bits;
    }
    let kind: Vec<u8> = from.sequence()?.collect();
    let equal = [message_id.len(), point.len(), kind.len()].iter().all(|length| *length == ticks.len());
    let counter = from.number()?;
    equal.then_some(StampBatch { pid, tid, counter, ticks, message_id, point, kind, value })
}

fn encode_kernel(batch: &KernelBatch) -> Vec<u8> {
    Encoder::new()
        .number(batch.time_ns.first().copied().unwrap_or(0))
        .sequence(batch.arg0.iter().copied())
        .sequence(batch.arg1.iter().copied())
        .sequence(batch.arg2.iter().copied())
        .sequence(deltas(&batch.time_ns).map(|d| d as u32))
        .sequence(batch.tid.iter().copied())
        .number(batch.cpu)
        .sequence(batch.event.iter().copied())
        .sequence(batch.flags.iter().copied())
        .finish()
}

fn decode_kernel(from: &mut Decoder<'_>) -> Option<KernelBatch> {
    let first_ns = from.number()?;
    let (arg0, arg1, arg2) = (from.sequence()?.collect(), from.sequence()?.collect(), from.sequence()?.collect());
    let time_ns = sums(first_ns, from.sequence::<u32>()?.map(u64::from));
    let tid = from.sequence()?.collect();
    let cpu = from.number()?;
    let batch = KernelBatch {
        cpu,
        time_ns,
        event: from.sequence()?.collect(),
        flags: from.sequence()?.collect(),
        tid,
        arg0,
        arg1,
        arg2,
    };
    let n = batch.time_ns.len();
    let lengths =
        [batch.event.len(), batch.flags.len(), batch.tid.len(), batch.arg0.len(), batch.arg1.len(), batch.arg2.len()];
    lengths.iter().all(|length| *length == n).then_some(batch)
}

fn encode_ros(batch: &RosBatch) -> Vec<u8> {
    Encoder::new()
        .number(batch.ticks.first().copied().unwrap_or(0))
        .sequence(batch.handle.iter().copied())
        .sequence(batch.arg0.iter().copied())
        .sequence(batch.arg1.iter().copied())
        .sequence(batch.arg2.iter().copied())
        .sequence(deltas(&batch.ticks).map(|d| d as u32))
        .number(batch.pid)
        .number(batch.tid)
        .sequence(batch.event.iter().copied())
        .number(batch.counter)
        .finish()
}

fn decode_ros(from: &mut Decoder<'_>) -> Option<RosBatch> {
    let first_ticks = from.number()?;
    let handle: Vec<u64> = from.sequence()?.collect();
    let (arg0, arg1, arg2) = (from.sequence()?.collect(), from.sequence()?.collect(), from.sequence()?.collect());
    let ticks = sums(first_ticks, from.sequence::<u32>()?.map(u64::from));
    let (pid, tid) = (from.number()?, from.number()?);
    let event: Vec<u8> = from.sequence()?.collect();
    let batch = RosBatch { pid, tid, counter: from.number()?, ticks, event, handle, arg0, arg1, arg2 };
    let lengths = [batch.event.len(), batch.handle.len(), batch.arg0.len(), batch.arg1.len(), batch.arg2.len()];
    lengths.iter().all(|length| *length == batch.ticks.len()).then_some(batch)
}

fn decode_profile(from: &mut Decoder<'_>) -> Option<ProfileBatch> {
    let time_ns: Vec<u64> = from.sequence()?.collect();
    let (pid, tid) = (from.sequence()?.collect::<Vec<i32>>(), from.sequence()?.collect::<Vec<i32>>());
    let frame: Vec<u32> = from.sequence()?.collect();
    let (cpu, depth) = (from.sequence()?.collect::<Vec<u16>>(), from.sequence()?.collect::<Vec<u16>>());
    let equal = [pid.len(), tid.len(), cpu.len(), depth.len()].iter().all(|length| *length == time_ns.len());
    let all: usize = depth.iter().map(|depth| usize::from(*depth)).sum();
    (equal && all == frame.len()).then_some(ProfileBatch { time_ns, cpu, pid, tid, depth, frame })
}

fn encode_histogram(histogram: &Histogram) -> Vec<u8> {
    let known = u8::from(histogram.min.is_some()) | u8::from(histogram.max.is_some()) << 1;
    Encoder::new()
        .number(histogram.overflow)
        .number(histogram.overflow_from)
        .number(histogram.min.unwrap_or(0))
        .number(histogram.max.unwrap_or(0))
        .sequence(histogram.from.iter().copied())
        .sequence(histogram.to.iter().copied())
        .sequence(histogram.count.iter().copied())
        .string(&histogram.name)
        .string(&histogram.unit)
        .number(known)
        .finish()
}

fn decode_histogram(from: &mut Decoder<'_>) -> Option<Histogram> {
    let (overflow, overflow_from) = (from.number()?, from.number()?);
    let (min, max) = (from.number()?, from.number()?);
    let (start, end): (Vec<u64>, Vec<u64>) = (from.sequence()?.collect(), from.sequence()?.collect());
    let count: Vec<u64> = from.sequence()?.collect();
    let (name, unit, known) = (printable(from.string()?), printable(from.string()?), from.number::<u8>()?);
    let ascends = start.iter().zip(&end).is_sorted_by(|a, b| a.1 < b.0) && start.iter().zip(&end).all(|(a, b)| a <= b);
    (ascends && start.len() == end.len() && end.len() == count.len()).then_some(Histogram {
        name,
        unit,
        from: start,
        to: end,
        count,
        min: (known & 1 != 0).then_some(min),
        max: (known & 2 != 0).then_some(max),
        overflow,
        overflow_from,
    })
}

/// Differences between neighbours; the first is 0.
fn deltas(values: &[u64]) -> impl ExactSizeIterator<Item = u64> {
    let mut last = values.first().copied().unwrap_or(0);
    values.iter().map(move |value| value.wrapping_sub(std::mem::replace(&mut last, *value)))
}

fn sums(first: u64, deltas: impl Iterator<Item = u64>) -> Vec<u64> {
    deltas
        .scan(first, |sum, delta| {
            *sum = sum.wrapping_add(delta);
            Some(*sum)
        })
        .collect()
}
