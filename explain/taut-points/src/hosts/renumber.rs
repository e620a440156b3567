//! Another host's records → the first host's clock, and numbers that the first host does not use.

use taut_clock::Counter;
use taut_recording::{
    Info, KernelBatch, KernelEvent, Kind, Record, RosBatch, RosEvent, RosObjectKind, StampBatch, host_numbers,
};

use super::joined::{Host, Joined};

/// What renames and maps one host's records.
pub struct Renumber<'a> {
    /// 0 is the reference: its times stay.
    number: u16,
    host: Host<'a>,
    /// The first recording's.
    reference: &'a Info,
    /// Names of the recordings before end here.
    after_name: u32,
    joined: &'a Joined,
}

/// Hosts that have numbers of their own in everything below.
pub const MOST_HOSTS: usize = 8;
/// Numbers of plain channels of another host are this much apart; the writer gives others.
const CHANNELS: u16 = 1 << 13;
/// Numbers of stack frames of another host.
const FRAMES: u32 = 1 << 28;
/// A clock that shows a moment up to this is the one that the moment was read from.
const SAME_CLOCK_NS: u64 = 1_000_000_000;

impl<'a> Renumber<'a> {
    /// Of the host of this number.
    pub fn new(number: u16, hosts: &[Host<'a>], joined: &'a Joined) -> Renumber<'a> {
        let of = usize::from(number);
        let after_name = hosts[..of].iter().fold(0, |after: u32, host| after.wrapping_add(host.survey.last_name()));
        Renumber { number, host: hosts[of], reference: hosts[0].info, after_name, joined }
    }

    /// The record on the first host's clock; `None`: it is of use on its own host only.
    pub fn record(&self, mut record: Record) -> Option<Record> {
        if let Record::Name(name) = &mut record {
            if self.host.survey.is_point(name.id) {
                name.name = format!("{}:{}", self.host.name, name.name);
            }
            name.id = self.name(name.id);
        }
        if let Record::Thread(thread) = &mut record {
            thread.comm = format!("{}:{}", self.host.name, thread.comm);
        }
        if let Record::RosObject(object) = &mut record
            && object.kind == RosObjectKind::Node
        {
            // Its namespace, which begins the names of its points.
            object.text = format!("{}:{}", self.host.name, object.text);
        }
        if self.number == 0 {
            return Some(record);
        }
        match &mut record {
            Record::Clock(..) => return None,
            Record::Stamps(batch) => self.stamps(batch)?,
            Record::Kernel(batch) => self.kernel(batch),
            Record::Ros(batch) => self.ros(batch)?,
            Record::RosObject(object) => {
                object.time_ns = self.time(object.time_ns);
                object.pid = self.thread(object.pid);
            }
            Record::Thread(thread) => {
                thread.time_ns = self.time(thread.time_ns);
                (thread.pid, thread.tid) = (self.thread(thread.pid), self.thread(thread.tid));
            }
            Record::Object(object) => {
                object.time_ns = self.time(object.time_ns);
                object.pid = self.thread(object.pid);
            }
            Record::Lost(lost) => {
                if lost.since_ns != 0 {
                    lost.since_ns = self.time(lost.since_ns);
                }
                // A loss of which nothing is known has no end.
                if lost.time_ns != u64::MAX {
                    lost.time_ns = self.time(lost.time_ns);
                }
                lost.place = self.place(&lost.place);
            }
            Record::Sample(sample) => {
                sample.time_ns = self.time(sample.time_ns);
                sample.name = format!("{}:{}", self.host.name, sample.name);
            }
            Record::Channel(channel) => {
                channel.number ^= CHANNELS * self.number;
                channel.topic = format!("/{}{}", self.host.name, channel.topic);
            }
            Record::Message(message) => {
                message.channel ^= CHANNELS * self.number;
                message.log_time_ns = self.realtime(message.log_time_ns);
            }
            Record::Profile(batch) => {
                batch.time_ns.iter_mut().for_each(|time| *time = self.time(*time));
                batch.cpu.iter_mut().for_each(|cpu| *cpu = host_numbers::cpu_of(self.number, *cpu));
                batch.pid.iter_mut().chain(&mut batch.tid).for_each(|tid| *tid = self.thread(*tid));
                batch.frame.iter_mut().for_each(|frame| *frame |= FRAMES * u32::from(self.number));
            }
            Record::Frame(frame) => frame.id |= FRAMES * u32::from(self.number),
            Record::Histogram(histogram) => histogram.name = format!("{}:{}", self.host.name, histogram.name),
            Record::Name(_) => {}
        }
        Some(record)
    }

    fn name(&self, id: u32) -> u32 {
        if self.number == 0 || id == 0 { id } else { id.wrapping_add(self.after_name) }
    }

    fn thread(&self, number: i32) -> i32 {
        host_numbers::thread_of(self.number, number)
    }

    fn time(&self, monotonic_ns: u64) -> u64 {
        self.joined.time_of_monotonic(usize::from(self.number), monotonic_ns)
    }

    /// CLOCK_REALTIME of the first host when this one's shows this.
    fn realtime(&self, realtime_ns: u64) -> u64 {
        let since = realtime_ns.wrapping_sub(self.host.info.start_realtime_ns);
        self.to_realtime(self.time(since.wrapping_add(self.host.info.start_monotonic_ns)))
    }

    /// CLOCK_REALTIME of the first host at this moment of its CLOCK_MONOTONIC.
    fn to_realtime(&self, time_ns: u64) -> u64 {
        time_ns.wrapping_sub(self.reference.start_monotonic_ns).wrapping_add(self.reference.start_realtime_ns)
    }

    fn stamps(&self, batch: &mut StampBatch) -> Option<()> {
        let times =
            batch.ticks.iter().map(|ticks| self.joined.time_of_ticks(usize::from(self.number), batch.counter, *ticks));
        // A counter without calibrations has no times, on its own host as well.
        batch.ticks = times.collect::<Option<Vec<u64>>>()?;
        batch.counter = Counter::Monotonic as u8;
        (batch.pid, batch.tid) = (self.thread(batch.pid), self.thread(batch.tid));
        for at in 0..batch.ticks.len() {
            batch.point[at] = self.name(batch.point[at]);
            match Kind::from_number(batch.kind[at]) {
                Some(Kind::Stamp) if batch.value[at] != 0 => batch.value[at] = self.time(batch.value[at]),
                Some(Kind::Outcome) => batch.value[at] = u64::from(self.name(batch.value[at] as u32)),
                _ => {}
            }
        }
        Some(())
    }

    fn ros(&self, batch: &mut RosBatch) -> Option<()> {
        let times =
            batch.ticks.iter().map(|ticks| self.joined.time_of_ticks(usize::from(self.number), batch.counter, *ticks));
        batch.ticks = times.collect::<Option<Vec<u64>>>()?;
        batch.counter = Counter::Monotonic as u8;
        (batch.pid, batch.tid) = (self.thread(batch.pid), self.thread(batch.tid));
        for (at, time_ns) in batch.ticks.iter().copied().enumerate() {
            let (arg0, arg1) = (&mut batch.arg0[at], &mut batch.arg1[at]);
            if RosEvent::from_number(batch.event[at]) == Some(RosEvent::TimerCall) {
                // The timer's clock is the one that shows about the event's time; a simulated one stays as it is.
                let is_monotonic = self.time(*arg1).abs_diff(time_ns) < SAME_CLOCK_NS;
                let is_realtime = self.realtime(*arg1).abs_diff(self.to_realtime(time_ns)) < SAME_CLOCK_NS;
                let moved = |moment: u64| match (is_monotonic, is_realtime) {
                    _ if moment == 0 => 0,
                    (true, _) => self.time(moment),
                    (_, true) => self.realtime(moment),
                    _ => moment,
                };
                (*arg0, *arg1) = (moved(*arg0), moved(*arg1));
            }
        }
        Some(())
    }

    fn kernel(&self, batch: &mut KernelBatch) {
        batch.cpu = host_numbers::cpu_of(self.number, batch.cpu);
        batch.time_ns.iter_mut().for_each(|time| *time = self.time(*time));
        batch.tid.iter_mut().for_each(|tid| *tid = self.thread(*tid));
        let cpu = |number: i64| {
            u16::try_from(number).map_or(number, |number| i64::from(host_numbers::cpu_of(self.number, number)))
        };
        for at in 0..batch.event.len() {
            use KernelEvent::*;
            let (arg0, arg1, arg2) = (&mut batch.arg0[at], &mut batch.arg1[at], &mut batch.arg2[at]);
            match KernelEvent::from_number(batch.event[at]) {
                Some(SchedSwitch | SchedFork | SchedExec) => *arg0 = i64::from(self.thread(*arg0 as i32)),
                Some(SchedWaking | SchedWakeupNew) => {
                    (*arg0, *arg1) = (i64::from(self.thread(*arg0 as i32)), cpu(*arg1))
                }
                Some(SchedMigrate) => {
                    (*arg0, *arg1, *arg2) = (i64::from(self.thread(*arg0 as i32)), cpu(*arg1), cpu(*arg2))
                }
                Some(CpuFrequency) => *arg1 = cpu(*arg1),
                Some(TimerStart) => {
                    (*arg0, *arg1) = (self.timer(*arg0), self.timer(*arg1));
                    *arg2 = self.address(*arg2 >> 8) << 8 | (*arg2 & 0xff);
                }
                Some(TimerExpire) => (*arg0, *arg1) = (self.address(*arg0), self.timer(*arg1)),
                Some(WorkQueue | WorkStart) => *arg0 = self.address(*arg0),
                _ => {}
            }
        }
    }

    /// A moment of a timer; 0 and negative ones are none.
    fn timer(&self, time_ns: i64) -> i64 {
        if time_ns > 0 { self.time(time_ns as u64) as i64 } else { time_ns }
    }

    /// Two hosts may have timers at one address. All addresses in the kernel have the same upper bits.
    fn address(&self, address: i64) -> i64 {
        if address == 0 { 0 } else { address ^ i64::from(self.number) << 48 }
    }

    fn place(&self, place: &str) -> String {
        let cpu = place.strip_prefix("cpu ").and_then(|rest| rest.split_once(' '));
        if let Some((number, rest)) = cpu
            && let Ok(number) = number.parse()
        {
            return format!("cpu {} {rest}", host_numbers::cpu_of(self.number, number));
        }
        let (ring, rest) = place.split_at(place.find(' ').unwrap_or(place.len()));
        let ring = ring.split_once('/').and_then(|(pid, tid)| Some((pid.parse().ok()?, tid.parse().ok()?)));
        match ring {
            Some((pid, tid)) => format!("{}/{}{rest}", self.thread(pid), self.thread(tid)),
            None => format!("{}: {place}", self.host.name),
        }
    }
}
