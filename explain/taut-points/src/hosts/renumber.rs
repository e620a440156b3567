//! The second host's records → the first host's clock, and numbers that the first host does not use.

use taut_clock::Counter;
use taut_recording::{Info, KernelBatch, KernelEvent, Kind, Record, RosBatch, StampBatch, host_numbers};

use super::{matching::Joined, survey::Survey};

/// What renames and maps one host's records.
pub struct Renumber<'a> {
    /// 0 is the reference: its times stay.
    pub host: u16,
    /// Begins the names of the host's points and threads.
    pub host_name: &'a str,
    /// What the recording has.
    pub survey: &'a Survey,
    /// Names of the first recording end here.
    pub after_name: u32,
    /// The clocks.
    pub joined: &'a Joined,
    /// The first recording's.
    pub reference: &'a Info,
    /// This recording's.
    pub info: &'a Info,
}

/// Numbers of plain channels of the second host: the writer gives others.
const CHANNELS: u16 = 1 << 14;
/// Numbers of stack frames of the second host.
const FRAMES: u32 = 1 << 28;

impl<'a> Renumber<'a> {
    /// Of the first, or the second host.
    pub fn new(
        host: u16,
        surveys: [&'a Survey; 2],
        joined: &'a Joined,
        infos: [&'a Info; 2],
        names: [&'a str; 2],
    ) -> Renumber<'a> {
        let of = usize::from(host);
        Renumber {
            host,
            host_name: names[of],
            survey: surveys[of],
            after_name: surveys[0].last_name(),
            joined,
            reference: infos[0],
            info: infos[of],
        }
    }

    /// The record on the first host's clock; `None`: it is of use on its own host only.
    pub fn record(&self, mut record: Record) -> Option<Record> {
        if let Record::Name(name) = &mut record {
            if self.survey.is_point(name.id) {
                name.name = format!("{}:{}", self.host_name, name.name);
            }
            name.id = self.name(name.id);
        }
        if let Record::Thread(thread) = &mut record {
            thread.comm = format!("{}:{}", self.host_name, thread.comm);
        }
        if self.host == 0 {
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
                sample.name = format!("{}:{}", self.host_name, sample.name);
            }
            Record::Channel(channel) => {
                channel.number ^= CHANNELS;
                channel.topic = format!("/{}{}", self.host_name, channel.topic);
            }
            Record::Message(message) => {
                message.channel ^= CHANNELS;
                let since = message.log_time_ns.wrapping_sub(self.info.start_realtime_ns);
                let time_ns = self.time(since.wrapping_add(self.info.start_monotonic_ns));
                message.log_time_ns = time_ns
                    .wrapping_sub(self.reference.start_monotonic_ns)
                    .wrapping_add(self.reference.start_realtime_ns);
            }
            Record::Profile(batch) => {
                batch.time_ns.iter_mut().for_each(|time| *time = self.time(*time));
                batch.cpu.iter_mut().for_each(|cpu| *cpu = host_numbers::cpu_of(self.host, *cpu));
                batch.pid.iter_mut().chain(&mut batch.tid).for_each(|tid| *tid = self.thread(*tid));
                batch.frame.iter_mut().for_each(|frame| *frame |= FRAMES);
            }
            Record::Frame(frame) => frame.id |= FRAMES,
            Record::Histogram(histogram) => histogram.name = format!("{}:{}", self.host_name, histogram.name),
            Record::Name(_) => {}
        }
        Some(record)
    }

    fn name(&self, id: u32) -> u32 {
        if self.host == 0 || id == 0 { id } else { id + self.after_name }
    }

    fn thread(&self, number: i32) -> i32 {
        host_numbers::thread_of(self.host, number)
    }

    fn time(&self, monotonic_ns: u64) -> u64 {
        self.joined.time_of_monotonic(monotonic_ns)
    }

    fn stamps(&self, batch: &mut StampBatch) -> Option<()> {
        let times = batch.ticks.iter().map(|ticks| self.joined.time_of_ticks(batch.counter, *ticks));
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
        let times = batch.ticks.iter().map(|ticks| self.joined.time_of_ticks(batch.counter, *ticks));
        batch.ticks = times.collect::<Option<Vec<u64>>>()?;
        batch.counter = Counter::Monotonic as u8;
        (batch.pid, batch.tid) = (self.thread(batch.pid), self.thread(batch.tid));
        Some(())
    }

    fn kernel(&self, batch: &mut KernelBatch) {
        batch.cpu = host_numbers::cpu_of(self.host, batch.cpu);
        batch.time_ns.iter_mut().for_each(|time| *time = self.time(*time));
        batch.tid.iter_mut().for_each(|tid| *tid = self.thread(*tid));
        let cpu = |number: i64| {
            u16::try_from(number).map_or(number, |number| i64::from(host_numbers::cpu_of(self.host, number)))
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
        if address == 0 { 0 } else { address ^ i64::from(self.host) << 48 }
    }

    fn place(&self, place: &str) -> String {
        let cpu = place.strip_prefix("cpu ").and_then(|rest| rest.split_once(' '));
        if let Some((number, rest)) = cpu
            && let Ok(number) = number.parse()
        {
            return format!("cpu {} {rest}", host_numbers::cpu_of(self.host, number));
        }
        let (ring, rest) = place.split_at(place.find(' ').unwrap_or(place.len()));
        let ring = ring.split_once('/').and_then(|(pid, tid)| Some((pid.parse().ok()?, tid.parse().ok()?)));
        match ring {
            Some((pid, tid)) => format!("{}/{}{rest}", self.thread(pid), self.thread(tid)),
            None => format!("{}: {place}", self.host_name),
        }
    }
}
