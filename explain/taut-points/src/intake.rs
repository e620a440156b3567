//! Records of a recording → all that the sources know, on one clock.

use foldhash::HashMap;
use taut_recording::{Architecture, Info, KernelBatch, KernelEvent, Kind, Lost, LostWhat, Record, StampBatch};
use taut_timelines::{Builder, Futexes, Loss, Objects, Timelines};

use crate::{
    clocks::Clocks,
    linked::Linked,
    point::{Pass, PointId, Points},
    scene::Scene,
    source::Source,
    sources,
    span::Hole,
};

/// Takes in records; keeps facts, clocks and kernel events, and hands every record to all sources.
pub struct Intake {
    /// Whether the records are a stretch of a longer stream: see [`Scene::is_stretch`].
    is_stretch: bool,
    sources: Vec<Box<dyn Source>>,
    builder: Builder,
    clocks: Clocks,
    objects: Objects,
    names: HashMap<u32, String>,
    locks: Vec<NamedLock>,
    /// As the recording has them; 0 where it does not say since when.
    holes: Vec<Hole>,
    counts: Counts,
}

/// How much a recording holds, and how much it says was lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Stamps.
    pub stamps: u64,
    /// Raw ROS 2 events.
    pub ros_events: u64,
    /// Kernel events.
    pub kernel_events: u64,
    /// Stamps that were lost.
    pub lost_stamps: LossCount,
    /// ROS 2 events that were lost.
    pub lost_ros_events: LossCount,
    /// Kernel events that were lost.
    pub lost_kernel_events: LossCount,
}

impl Counts {
    /// Whether there are no events of any kind.
    pub fn is_empty(&self) -> bool {
        self.stamps + self.ros_events + self.kernel_events == 0
    }
}

/// How many events were lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossCount {
    /// So many.
    pub count: u64,
    /// Whether that is an estimate.
    pub is_estimate: bool,
}

/// Everything that the stages behind need.
pub struct Found {
    /// What the sources know.
    pub linked: Linked,
    /// What threads and CPUs did.
    pub timelines: Timelines,
    /// Which waits are for locks.
    pub futexes: Futexes,
    /// Threads, locks, descriptors.
    pub objects: Objects,
    /// Stretches in which passes may be missing, ascending without overlaps.
    pub holes: Vec<(u64, u64)>,
    /// How much there was.
    pub counts: Counts,
    /// Bound of the error of the events' times; `None` where some have none.
    pub clock_error_ns: Option<f64>,
}

/// A lock got its name, which may come later in the file.
struct NamedLock {
    pid: i32,
    address: u64,
    size: u64,
    name: u32,
}

impl Default for Intake {
    fn default() -> Intake {
        Intake {
            is_stretch: false,
            sources: sources::all(),
            builder: Builder::default(),
            clocks: Clocks::default(),
            objects: Objects::default(),
            names: HashMap::default(),
            locks: Vec::new(),
            holes: Vec::new(),
            counts: Counts::default(),
        }
    }
}

impl Intake {
    /// An empty one; `is_stretch` as in [`Scene::is_stretch`].
    pub fn new(is_stretch: bool) -> Intake {
        Intake { is_stretch, ..Intake::default() }
    }

    /// Takes a record; every record of a recording, in the order of its file.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Stamps(batch) => self.stamps(batch),
            Record::Ros(batch) => self.counts.ros_events += batch.ticks.len() as u64,
            Record::Kernel(batch) => self.kernel(batch),
            Record::Clock(counter, pair) => self.clocks.take(*counter, *pair),
            Record::Name(name) => {
                self.names.insert(name.id, name.name.clone());
            }
            Record::Thread(thread) => self.objects.thread(thread),
            Record::Object(object) => self.objects.object(object),
            Record::Lost(lost) => self.lost(lost),
            _ => {}
        }
        self.sources.iter_mut().for_each(|source| source.record(record));
    }

    /// How much came so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Links everything. `ending_ns` is when the recorder ended, if it is recorded; `is_damaged`: what is not there may have been
    /// recorded.
    pub fn finish(mut self, info: &Info, ending_ns: Option<u64>, is_damaged: bool) -> Found {
        self.objects.origin(info);
        self.objects.is_damaged = is_damaged;
        self.clocks.settle();
        let points = Points::new(self.names);
        for lock in self.locks {
            self.objects.lock(lock.pid, lock.address, lock.size, points.name(PointId::of_name(lock.name)));
        }
        let timelines = self.builder.finish(&architectures(info));
        let futexes = Futexes::of(&timelines, &self.objects);
        let mut linked = Linked { points, ..Linked::default() };
        let scene = Scene {
            objects: &self.objects,
            timelines: &timelines,
            futexes: &futexes,
            clocks: &self.clocks,
            realtime_offset_ns: i128::from(info.start_realtime_ns) - i128::from(info.start_monotonic_ns),
            is_stretch: self.is_stretch,
            until_ns: ending_ns.unwrap_or(0).max(timelines.end_ns),
        };
        let mut of_sources = Vec::new();
        for source in &mut self.sources {
            let (last, first_pass) = (linked.last_point(), linked.passes.len());
            linked.points.behind(last, source.kind());
            source.link(&scene, &mut linked);
            of_sources.push((source.kind(), first_pass..linked.passes.len()));
        }
        drop(self.sources);
        let holes: Vec<Hole> = self.holes.iter().map(|hole| since_last_pass(*hole, &linked.passes)).collect();
        let stretches = taut_timelines::ascending(holes.iter().map(|hole| (hole.since_ns, hole.until_ns)).collect());
        match self.counts.kernel_events {
            // Where threads had messages is of use only with kernel events to read it with.
            0 => linked.spans.settle(&[], holes),
            _ => linked.settle_spans(of_sources, holes),
        }
        let clock_error_ns = self.clocks.error_ns(&linked.counters);
        Found {
            linked,
            timelines,
            futexes,
            objects: self.objects,
            holes: stretches,
            counts: self.counts,
            clock_error_ns,
        }
    }

    fn stamps(&mut self, batch: &StampBatch) {
        self.counts.stamps += batch.ticks.len() as u64;
        let named = (0..batch.kind.len()).filter(|at| batch.kind[*at] == Kind::LockNamed as u8);
        self.locks.extend(named.map(|at| NamedLock {
            pid: batch.pid,
            address: batch.value[at],
            size: batch.message_id[at],
            name: batch.point[at],
        }));
    }

    fn kernel(&mut self, batch: &KernelBatch) {
        self.counts.kernel_events += batch.time_ns.len() as u64;
        let forks = batch.event.iter().enumerate().filter(|(_, event)| **event == KernelEvent::SchedFork as u8);
        forks.for_each(|(at, _)| self.objects.fork(batch.tid[at], batch.arg0[at] as i32));
        self.builder.batch(batch);
    }

    fn lost(&mut self, lost: &Lost) {
        let of = match lost.what {
            LostWhat::Stamps => &mut self.counts.lost_stamps,
            LostWhat::RosEvents => &mut self.counts.lost_ros_events,
            LostWhat::KernelEvents => &mut self.counts.lost_kernel_events,
            LostWhat::Telemetry | LostWhat::Samples => return,
        };
        of.count = of.count.saturating_add(lost.count);
        of.is_estimate |= lost.is_estimate;
        let (since_ns, until_ns) = (lost.since_ns, lost.time_ns);
        match lost.what {
            LostWhat::KernelEvents => {
                if let Some(cpu) = cpu_of(&lost.place) {
                    self.builder.lost(Loss { cpu, since_ns, until_ns });
                }
            }
            _ => self.holes.push(Hole { tid: tid_of(&lost.place), since_ns, until_ns }),
        }
    }
}

/// The architectures with the numbers of the recording's system calls, of each host: x86_64 where the recording does not say.
pub fn architectures(info: &Info) -> Vec<Option<Architecture>> {
    let of = |word: &str| if word.is_empty() { Some(Architecture::X86_64) } else { Architecture::from_word(word) };
    let others = info.hosts().into_iter().skip(1).map(|host| of(info.fact_of_host(host, "system_calls")));
    std::iter::once(of(&info.system_calls)).chain(others).collect()
}

/// Where it is not said since when events are missing, the thread's last pass before says it: a full ring drops the newest.
fn since_last_pass(hole: Hole, passes: &[Pass]) -> Hole {
    let last_before = || {
        let of_thread = passes.iter().filter(|pass| Some(pass.thread) == hole.tid);
        of_thread.map(|pass| pass.time_ns).filter(|time_ns| *time_ns <= hole.until_ns).max().unwrap_or(hole.until_ns)
    };
    let since_ns = if hole.since_ns == 0 { last_before() } else { hole.since_ns };
    // A moment is a stretch, too: some event is missing there.
    Hole { since_ns, until_ns: hole.until_ns.max(since_ns.saturating_add(1)), ..hole }
}

/// The CPU in a place like "cpu 1 ftrace".
fn cpu_of(place: &str) -> Option<u16> {
    place.strip_prefix("cpu ")?.split(' ').next()?.parse().ok()
}

/// The thread in a place like "7/8", a ring's.
fn tid_of(place: &str) -> Option<i32> {
    place.split(' ').next()?.split_once('/')?.1.parse().ok()
}
