//! Perfetto's native trace: every thread's states, each chain's hops as slices that arrows join, and in each hop what its
//! time was spent on. ui.perfetto.dev and trace_processor open it.
//!
//! Messages and field numbers are those of protos/perfetto/trace/perfetto_trace.proto (Perfetto 59.1); fields that taut
//! does not write are left out. Times are CLOCK_MONOTONIC, all of one clock, so that nothing is converted.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write},
};

use prost::Message;
use taut_analysis::{Analysis, Chain, MessagePath, PathPiece};
use taut_recording::{
    Info, KernelBatch, KernelEvent, LostWhat, Record, Thread,
    host_numbers::{host_and_cpu, host_of, own_number},
};

/// Tracks are numbered from here on; 0 is Perfetto's own.
const FIRST_TRACK: u64 = 1 << 20;
/// The only writer: packets of one sequence share nothing but this number.
const SEQUENCE: u32 = 1;
/// SEQ_INCREMENTAL_STATE_CLEARED.
const CLEARED: u32 = 1;
/// BUILTIN_CLOCK_REALTIME, and BUILTIN_CLOCK_BOOTTIME, which is what a trace is in unless it says otherwise.
const REALTIME: u32 = 1;
const TRACE_TIME: u32 = 6;

/// A trace being written. First every [`Perfetto::record`] that names threads or events, then [`Perfetto::chains`].
pub struct Perfetto<W> {
    out: W,
    comms: HashMap<i32, String>,
    /// CPUs whose next events come after a gap.
    gaps: Vec<u32>,
    tracks: u64,
    flows: u64,
}

impl<W: Write> Perfetto<W> {
    /// Starts a trace with what is known of the machine and its threads.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn start(out: W, info: &Info, threads: &BTreeMap<i32, Thread>) -> io::Result<Perfetto<W>> {
        let comms = threads.values().map(|thread| (thread.tid, thread.comm.clone())).collect();
        let mut trace = Perfetto { out, comms, gaps: Vec::new(), tracks: 0, flows: 0 };
        let clock = |id, timestamp| ClockReading { id: Some(id), timestamp: Some(timestamp) };
        let clocks = vec![clock(TRACE_TIME, info.start_monotonic_ns), clock(REALTIME, info.start_realtime_ns)];
        trace.write(&Packet {
            timestamp: Some(info.start_monotonic_ns),
            first_packet_on_sequence: Some(true),
            sequence_flags: Some(CLEARED),
            clock_snapshot: Some(ClockSnapshot { clocks, primary_trace_clock: Some(TRACE_TIME as i32) }),
            ..Packet::default()
        })?;
        let names = info.hosts();
        for host in 0..names.len().max(1) as u16 {
            let name = names.get(usize::from(host)).copied();
            let kernel =
                name.filter(|_| host > 0).map_or(info.kernel.as_str(), |name| info.fact_of_host(name, "kernel"));
            trace.host(host, name, kernel, info.start_monotonic_ns, threads)?;
        }
        Ok(trace)
    }

    /// What is known of a host and its threads; `name` where there are several.
    fn host(
        &mut self,
        host: u16,
        name: Option<&str>,
        kernel: &str,
        start_ns: u64,
        threads: &BTreeMap<i32, Thread>,
    ) -> io::Result<()> {
        // By it Perfetto tells what the bits of a switch's state mean.
        let release = kernel.split_whitespace().next().map(str::to_owned);
        let utsname = Utsname { sysname: Some("Linux".to_owned()), release };
        let machine_id = machine(host);
        self.write(&Packet {
            machine_id,
            system_info: Some(SystemInfo { utsname: Some(utsname) }),
            ..Packet::default()
        })?;
        let process = |thread: &Thread| {
            let host = name.filter(|_| !thread.cmdline.is_empty()).map_or(String::new(), |name| format!("{name}:"));
            let cmdline = vec![format!("{host}{}", thread.cmdline)];
            Process { pid: Some(own_number(thread.pid)), cmdline }
        };
        let thread = |thread: &Thread| TreeThread {
            tid: Some(own_number(thread.tid)),
            name: Some(thread.comm.clone()),
            tgid: Some(own_number(thread.pid)),
        };
        let of_host = || threads.values().filter(|thread| host_of(thread.tid) == host);
        let tree = ProcessTree {
            processes: of_host().filter(|thread| thread.pid == thread.tid).map(process).collect(),
            threads: of_host().map(thread).collect(),
        };
        self.write(&Packet { timestamp: Some(start_ns), machine_id, process_tree: Some(tree), ..Packet::default() })
    }

    /// Takes in one record: the scheduling among the kernel's events, from which Perfetto works out the threads' states.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        match record {
            Record::Kernel(batch) => self.kernel(batch),
            Record::Lost(lost) if lost.what == LostWhat::KernelEvents => {
                let cpu: Option<u32> = lost.place.split(' ').nth(1).and_then(|number| number.parse().ok());
                self.gaps.extend(cpu);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn kernel(&mut self, batch: &KernelBatch) -> io::Result<()> {
        let event: Vec<FtraceEvent> = (0..batch.time_ns.len()).filter_map(|at| self.event(batch, at)).collect();
        if event.is_empty() {
            return Ok(());
        }
        let cpu = u32::from(batch.cpu);
        let has_gap = self.gaps.contains(&cpu);
        self.gaps.retain(|gap| *gap != cpu);
        let (host, own_cpu) = host_and_cpu(batch.cpu);
        let bundle = FtraceBundle { cpu: Some(own_cpu.into()), event, lost_events: has_gap.then_some(true) };
        self.write(&Packet { machine_id: machine(host), ftrace_events: Some(bundle), ..Packet::default() })
    }

    fn event(&self, batch: &KernelBatch, at: usize) -> Option<FtraceEvent> {
        let [arg0, arg1, arg2] = [batch.arg0[at], batch.arg1[at], batch.arg2[at]];
        let mut event = FtraceEvent {
            timestamp: Some(batch.time_ns[at]),
            pid: u32::try_from(own_number(batch.tid[at])).ok(),
            ..FtraceEvent::default()
        };
        let waking = || Waking {
            comm: self.comm(arg0 as i32),
            pid: Some(own_number(arg0 as i32)),
            prio: Some(arg2 as i32),
            success: Some(1),
            target_cpu: Some(i32::from(host_and_cpu(arg1 as u16).1)),
        };
        match KernelEvent::from_number(batch.event[at])? {
            KernelEvent::SchedSwitch => {
                event.sched_switch = Some(Switch {
                    prev_comm: self.comm(batch.tid[at]),
                    prev_pid: Some(own_number(batch.tid[at])),
                    prev_prio: Some(arg2 as u16 as i32),
                    prev_state: Some(arg1),
                    next_comm: self.comm(arg0 as i32),
                    next_pid: Some(own_number(arg0 as i32)),
                    next_prio: Some((arg2 >> 16) as i32),
                });
            }
            KernelEvent::SchedWaking => event.sched_waking = Some(waking()),
            KernelEvent::SchedWakeupNew => event.sched_wakeup_new = Some(waking()),
            _ => return None,
        }
        Some(event)
    }

    fn comm(&self, tid: i32) -> Option<String> {
        if tid == 0 { Some("swapper".to_owned()) } else { self.comms.get(&tid).cloned() }
    }

    /// Writes every chain's messages: those that come with their path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn chains(&mut self, analysis: &Analysis) -> io::Result<()> {
        for chain in &analysis.chains {
            self.chain(chain, analysis.totals.start_monotonic_ns)?;
        }
        self.out.flush()
    }

    fn chain(&mut self, chain: &Chain, start_ns: u64) -> io::Result<()> {
        let of_chain = self.track(&chain.name, None, 0)?;
        let mut rows: Vec<Vec<Row>> = chain.hops.iter().map(|_| Vec::new()).collect();
        let mut messages: Vec<&MessagePath> = chain.explained.paths.iter().collect();
        messages.sort_by_key(|message| message.time.start_ns);
        for message in messages {
            self.flows += 1;
            for (nth, pair) in message.passes.windows(2).enumerate() {
                let [(before, from_ns), (point, to_ns)] = [pair[0], pair[1]];
                let [Some(from), Some(to)] = [before, point].map(|at| chain.points.get(at)) else { continue };
                // A message may have missed a point between: its time belongs to the hop that it arrived by.
                let hop = point - 1;
                let name = format!("{} → {}", from.name, to.name);
                let lane = match rows[hop].iter().position(|row| row.free_ns <= from_ns) {
                    Some(lane) => lane,
                    None => {
                        let track = self.track(&name, Some(of_chain), hop as i32)?;
                        rows[hop].push(Row { track, free_ns: 0 });
                        rows[hop].len() - 1
                    }
                };
                rows[hop][lane].free_ns = to_ns;
                let row = Slices { track: rows[hop][lane].track, start_ns };
                let flow = vec![self.flows];
                let (flow_ids, terminating_flow_ids) =
                    if nth + 2 == message.passes.len() { (Vec::new(), flow) } else { (flow, Vec::new()) };
                let debug_annotations = hop_arguments(message, hop);
                let begin = TrackEvent { flow_ids, terminating_flow_ids, ..named(&name, debug_annotations) };
                self.write(&row.begin(from_ns, begin))?;
                let within = |piece: &&PathPiece| piece.hop == hop && piece.from_ns >= from_ns && piece.to_ns <= to_ns;
                for piece in message.path.iter().filter(within) {
                    let thread = message.lanes.get(piece.lane).map_or("", |lane| &lane.thread);
                    let said =
                        [("thread", thread), ("detail", &piece.detail), ("by", &piece.by), ("note", &piece.note)];
                    let said = said.into_iter().filter(|(_, text)| !text.is_empty());
                    let said = said.map(|(name, text)| Annotation::text(name, text)).collect();
                    self.write(&row.begin(piece.from_ns, named(piece.cause.word(), said)))?;
                    self.write(&row.end(piece.to_ns))?;
                }
                self.write(&row.end(to_ns))?;
            }
        }
        Ok(())
    }

    /// A new track, below another or by itself.
    fn track(&mut self, name: &str, parent_uuid: Option<u64>, rank: i32) -> io::Result<u64> {
        /// EXPLICIT: children stand in the order of their rank.
        const EXPLICIT: i32 = 3;
        self.tracks += 1;
        let uuid = FIRST_TRACK + self.tracks;
        let descriptor = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            parent_uuid,
            child_ordering: parent_uuid.is_none().then_some(EXPLICIT),
            sibling_order_rank: parent_uuid.map(|_| rank),
        };
        self.write(&Packet { track_descriptor: Some(descriptor), ..Packet::default() })?;
        Ok(uuid)
    }

    fn write(&mut self, packet: &Packet) -> io::Result<()> {
        let packet = Packet { trusted_packet_sequence_id: Some(SEQUENCE), ..packet.clone() };
        let mut bytes = Vec::with_capacity(packet.encoded_len() + 12);
        // Field 1 of Trace.
        prost::encoding::encode_key(1, prost::encoding::WireType::LengthDelimited, &mut bytes);
        packet.encode_length_delimited(&mut bytes).map_err(io::Error::other)?;
        self.out.write_all(&bytes)
    }
}

/// A track of one hop, on which slices may not overlap.
struct Row {
    track: u64,
    /// Behind the last slice; since the recording's start.
    free_ns: u64,
}

/// Makes the ends of slices on a track; moments are given since the recording's start.
struct Slices {
    track: u64,
    start_ns: u64,
}

impl Slices {
    fn begin(&self, at_ns: u64, event: TrackEvent) -> Packet {
        self.packet(at_ns, TrackEvent { r#type: Some(1), ..event })
    }

    fn end(&self, at_ns: u64) -> Packet {
        self.packet(at_ns, TrackEvent { r#type: Some(2), ..TrackEvent::default() })
    }

    fn packet(&self, at_ns: u64, event: TrackEvent) -> Packet {
        let track_event = Some(TrackEvent { track_uuid: Some(self.track), ..event });
        Packet { timestamp: Some(self.start_ns + at_ns), track_event, ..Packet::default() }
    }
}

/// The first host's packets name no machine, as those of a recording of one host.
fn machine(host: u16) -> Option<u32> {
    (host > 0).then_some(host.into())
}

fn named(name: &str, debug_annotations: Vec<Annotation>) -> TrackEvent {
    TrackEvent { name: Some(name.to_owned()), debug_annotations, ..TrackEvent::default() }
}

/// The message's id, and the hop's time by cause.
fn hop_arguments(message: &MessagePath, hop: usize) -> Vec<Annotation> {
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    for piece in message.path.iter().filter(|piece| piece.hop == hop) {
        *causes.entry(piece.cause.word()).or_default() += piece.to_ns - piece.from_ns;
    }
    let id = Annotation::number("message", message.time.id);
    let causes = causes.into_iter().map(|(cause, ns)| Annotation::number(&format!("{cause}_ns"), ns));
    std::iter::once(id).chain(causes).collect()
}

impl Annotation {
    fn number(name: &str, value: u64) -> Annotation {
        Annotation { name: Some(name.to_owned()), uint_value: Some(value), string_value: None }
    }

    fn text(name: &str, value: &str) -> Annotation {
        Annotation { name: Some(name.to_owned()), uint_value: None, string_value: Some(value.to_owned()) }
    }
}

/// TracePacket.
#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(message, optional, tag = "1")]
    ftrace_events: Option<FtraceBundle>,
    #[prost(message, optional, tag = "2")]
    process_tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "6")]
    clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "45")]
    system_info: Option<SystemInfo>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
    #[prost(bool, optional, tag = "87")]
    first_packet_on_sequence: Option<bool>,
    #[prost(uint32, optional, tag = "98")]
    machine_id: Option<u32>,
}

/// FtraceEventBundle.
#[derive(Clone, PartialEq, Message)]
struct FtraceBundle {
    #[prost(uint32, optional, tag = "1")]
    cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    event: Vec<FtraceEvent>,
    #[prost(bool, optional, tag = "3")]
    lost_events: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pid: Option<u32>,
    #[prost(message, optional, tag = "4")]
    sched_switch: Option<Switch>,
    #[prost(message, optional, tag = "20")]
    sched_waking: Option<Waking>,
    #[prost(message, optional, tag = "114")]
    sched_wakeup_new: Option<Waking>,
}

/// SchedSwitchFtraceEvent.
#[derive(Clone, PartialEq, Message)]
struct Switch {
    #[prost(string, optional, tag = "1")]
    prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    next_prio: Option<i32>,
}

/// SchedWakingFtraceEvent, and SchedWakeupNewFtraceEvent, which has the same fields.
#[derive(Clone, PartialEq, Message)]
struct Waking {
    #[prost(string, optional, tag = "1")]
    comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    success: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    target_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    threads: Vec<TreeThread>,
}

#[derive(Clone, PartialEq, Message)]
struct Process {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    cmdline: Vec<String>,
}

/// ProcessTree.Thread.
#[derive(Clone, PartialEq, Message)]
struct TreeThread {
    #[prost(int32, optional, tag = "1")]
    tid: Option<i32>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    tgid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    clocks: Vec<ClockReading>,
    #[prost(int32, optional, tag = "2")]
    primary_trace_clock: Option<i32>,
}

/// ClockSnapshot.Clock.
#[derive(Clone, PartialEq, Message)]
struct ClockReading {
    #[prost(uint32, optional, tag = "1")]
    id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    utsname: Option<Utsname>,
}

#[derive(Clone, PartialEq, Message)]
struct Utsname {
    #[prost(string, optional, tag = "1")]
    sysname: Option<String>,
    #[prost(string, optional, tag = "3")]
    release: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<Annotation>,
    #[prost(int32, optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    // Perfetto's reader passes over packed ones without a word: its schema is of proto2.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    terminating_flow_ids: Vec<u64>,
}

/// DebugAnnotation.
#[derive(Clone, PartialEq, Message)]
struct Annotation {
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
    #[prost(uint64, optional, tag = "3")]
    uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
}

#[cfg(test)]
mod tests {
    use taut_analysis::{Cause, Hop, Point, Totals};

    use super::*;
    use crate::sample;

    #[derive(Clone, PartialEq, Message)]
    struct Trace {
        #[prost(message, repeated, tag = "1")]
        packet: Vec<Packet>,
    }

    fn thread(tid: i32, comm: &str) -> (i32, Thread) {
        (tid, Thread { tid, pid: 7, comm: comm.to_owned(), cmdline: "robot --arm".to_owned(), ..Thread::default() })
    }

    fn written(records: &[Record], analysis: &Analysis) -> Vec<Packet> {
        let mut bytes = Vec::new();
        let info = Info { start_monotonic_ns: 1000, kernel: "6.18.0 #1 SMP x86_64".to_owned(), ..Info::default() };
        let threads = [thread(7, "robot"), thread(8, "control")].into();
        let mut trace = Perfetto::start(&mut bytes, &info, &threads).unwrap();
        records.iter().for_each(|record| trace.record(record).unwrap());
        trace.chains(analysis).unwrap();
        Trace::decode(bytes.as_slice()).unwrap().packet
    }

    #[test]
    fn scheduling_keeps_who_when_and_why() {
        let batch = KernelBatch {
            cpu: 1,
            time_ns: vec![2000, 3000, 3500],
            event: [KernelEvent::SchedSwitch, KernelEvent::SchedWaking, KernelEvent::SyscallEnter]
                .map(|e| e as u8)
                .into(),
            flags: vec![0; 3],
            tid: vec![7, 8, 8],
            arg0: vec![8, 7, 0],
            arg1: vec![1, 0, 0],
            arg2: vec![100 << 16 | 120, 120, 0],
        };
        let lost = taut_recording::Lost {
            what: LostWhat::KernelEvents,
            place: "cpu 1 ftrace sched".to_owned(),
            count: 3,
            ..Default::default()
        };
        let packets = written(&[Record::Lost(lost), Record::Kernel(batch)], &Analysis::default());
        let bundle = packets.iter().find_map(|packet| packet.ftrace_events.as_ref()).unwrap();
        assert_eq!((bundle.cpu, bundle.lost_events, bundle.event.len()), (Some(1), Some(true), 2));
        let switch = bundle.event[0].sched_switch.as_ref().unwrap();
        assert_eq!((switch.prev_comm.as_deref(), switch.next_comm.as_deref()), (Some("robot"), Some("control")));
        assert_eq!((switch.prev_prio, switch.next_prio, switch.prev_state), (Some(120), Some(100), Some(1)));
        assert_eq!(bundle.event[1].sched_waking.as_ref().unwrap().pid, Some(7));
    }

    /// Two messages that overlap on the first hop; the second missed the point between.
    fn two_messages() -> Analysis {
        let names = ["read", "plan", "write"];
        let piece = |hop, from_ns, to_ns, cause| PathPiece { hop, from_ns, to_ns, cause, ..PathPiece::default() };
        let message = |id, passes: &[(usize, u64)], path: &[PathPiece]| MessagePath {
            time: taut_analysis::MessageTime { id, start_ns: passes[0].1, ..Default::default() },
            passes: passes.to_vec(),
            path: path.to_vec(),
            ..MessagePath::default()
        };
        let mut chain = Chain {
            name: "read → write".to_owned(),
            points: names.map(|name| Point { name: name.to_owned(), ..Point::default() }).into(),
            hops: vec![Hop::default(), Hop::default()],
            ..Chain::default()
        };
        let whole = [piece(0, 0, 40, Cause::Cpu), piece(0, 40, 50, Cause::Gil), piece(1, 50, 70, Cause::Io)];
        chain.explained.paths = vec![
            message(2, &[(0, 10), (2, 90)], &[piece(1, 10, 90, Cause::Unknown)]),
            message(1, &[(0, 0), (1, 50), (2, 70)], &whole),
        ];
        let totals = Totals { start_monotonic_ns: 1000, ..Totals::default() };
        Analysis { chains: vec![chain], totals, ..Analysis::default() }
    }

    /// Slices by track: name, from, to, flows that leave or end here; whoever begins later lies within.
    fn slices(packets: &[Packet]) -> Vec<(String, u64, u64, Vec<u64>)> {
        let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut slices: Vec<(String, u64, u64, Vec<u64>)> = Vec::new();
        for packet in packets {
            let (Some(event), Some(at)) = (&packet.track_event, packet.timestamp) else { continue };
            let stack = open.entry(event.track_uuid.unwrap()).or_default();
            if event.r#type == Some(1) {
                stack.push(slices.len());
                let flows = [&event.flow_ids[..], &event.terminating_flow_ids].concat();
                slices.push((event.name.clone().unwrap(), at, 0, flows));
            } else {
                slices[stack.pop().expect("an end without a begin")].2 = at;
            }
        }
        assert!(open.values().all(Vec::is_empty), "a slice without an end");
        slices
    }

    #[test]
    fn a_message_is_a_slice_a_hop_with_its_causes_in_it_and_one_flow() {
        let packets = written(&[], &two_messages());
        let slice = |name: &str, from, to, flows: &[u64]| (name.to_owned(), from, to, flows.to_vec());
        let expected = [
            slice("read → plan", 1000, 1050, &[1]),
            slice("cpu", 1000, 1040, &[]),
            slice("gil", 1040, 1050, &[]),
            slice("plan → write", 1050, 1070, &[1]),
            slice("io", 1050, 1070, &[]),
            slice("read → write", 1010, 1090, &[2]),
            slice("unknown", 1010, 1090, &[]),
        ];
        assert_eq!(slices(&packets), expected);
        let first = packets.iter().find_map(|packet| packet.track_event.as_ref()).unwrap();
        let said: Vec<_> = first.debug_annotations.iter().map(|a| (a.name.clone().unwrap(), a.uint_value)).collect();
        assert_eq!(said, [("message", 1), ("cpu_ns", 40), ("gil_ns", 10)].map(|(n, v)| (n.to_owned(), Some(v))));
    }

    #[test]
    fn slices_on_a_track_do_not_overlap() {
        let mut analysis = two_messages();
        let later = MessagePath { passes: vec![(0, 20), (1, 30), (2, 95)], ..MessagePath::default() };
        analysis.chains[0].explained.paths.push(later);
        let packets = written(&[], &analysis);
        slices(&packets);
        let tracks = packets.iter().filter(|packet| packet.track_descriptor.is_some()).count();
        assert_eq!(tracks, 6, "the chain's, two for the first hop, three for the second");
        assert!(written(&[], &sample::teleop()).len() > 10);
    }
}
