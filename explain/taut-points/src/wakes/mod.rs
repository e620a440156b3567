//! The source of kernel events alone: threads that are loops, and chains of threads that wake each other.
//!
//! Of each recorded thread it takes apart the waits (`waits`), finds the main one and with it the thread's runs (`worker`,
//! `backlogs`), and says which threads are loops (`loops`, `schedule`, `timers`). A run that woke another one caused it; paths
//! of causes that recur are chains (`chains`). Loops and chains become messages where nothing else in the recording does: a
//! stamped program has its own. `docs/explanation/unmodified.md` says it in words.

mod backlogs;
mod chains;
mod found;
mod loops;
mod names;
mod pools;
mod run;
mod schedule;
mod timers;
mod waits;
mod worker;

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashMap, HashSet};
use taut_recording::{Record, host_numbers::host_and_cpu};
use taut_timelines::{Objects, Timeline};
use taut_wakeup::POINTS;

use self::{
    chains::{Causes, RunId, Station},
    found::Found,
    pools::{Places, Pool},
    run::Run,
    waits::Kernel,
    worker::Worker,
};
use crate::{
    flows::{Flows, SocketCall, Sockets},
    linked::Linked,
    point::{Pass, PointId},
    route::{Activation, Loop, LoopEvidence, Route, RouteKind, WakingThread},
    scene::Scene,
    source::Source,
    source_kind::SourceKind,
};

/// Names of points have at most so many bytes, as those in recordings.
const NAME_BYTES: usize = 119;
/// For a name wakes are followed no further back.
const FOLLOWED: usize = 16;
/// A chain of more threads is named by its first and last one.
const NAMED_STATIONS: usize = 4;

/// Has no events of its own: what it looks at are the timelines.
#[derive(Default)]
pub struct Wakes;

impl Source for Wakes {
    fn kind(&self) -> SourceKind {
        SourceKind::Wakes
    }

    fn record(&mut self, _: &Record) {}

    fn link(&mut self, scene: &Scene<'_>, out: &mut Linked) {
        let probe = Probe::of(out);
        // Messages of stamps and of ROS 2 lead from host to host by themselves.
        let flows = if probe.is_beside_messages { Flows::default() } else { between_hosts(scene) };
        out.notes.extend(flows.sentences(scene.objects.hosts()));
        let System { mut workers, waking, pools } = System::find(scene, &probe.threads, &flows);
        out.sent = workers.iter().flat_map(Worker::of_other_hosts).collect();
        out.waking = waking;
        let pools = pools.into_iter().map(|pool| (pool.loops(), pool));
        let (pools, without): (Vec<(Vec<Found>, Pool)>, Vec<_>) = pools.partition(|(its, _)| !its.is_empty());
        if !probe.is_beside_messages {
            out.notes.extend(without.iter().map(|(_, pool)| no_loop_of(pool, scene.objects)));
        }
        // A timer that any thread of several serves is none's, whatever shows of it.
        let is_of_pool = |worker: &Worker| pools.iter().any(|(_, pool)| pool.has(worker));
        let timed = loops_by_timer(&mut workers, is_of_pool);
        let causes = Causes::of(&workers);
        let mut found = all_loops(timed, &workers, is_of_pool, &causes);
        let threads = workers.len();
        let mut of_pools: Vec<Vec<i32>> = Vec::new();
        for (its, pool) in pools {
            found.extend(its.into_iter().map(|found| (workers.len(), found)));
            workers.push(pool.worker);
            of_pools.push(pool.threads);
        }
        let named = Names::of(&workers, &found, scene);
        for (at, (worker, found)) in found.iter().enumerate() {
            let one = [workers[*worker].tid];
            let its = worker.checked_sub(threads).map_or(&one[..], |pool| &of_pools[pool]);
            let timelines: Vec<&Timeline> = its.iter().filter_map(|tid| scene.timelines.threads.get(tid)).collect();
            out.loops.push(as_loop(&workers[*worker], found, named.loops[at].clone(), &timelines));
        }
        let loops: Vec<i32> = out.loops.iter().map(|found| found.thread).collect();
        out.waking.retain(|waking| !loops.contains(&waking.thread));
        if probe.is_beside_messages {
            return;
        }
        let station = |(worker, run): RunId| station_of(&found, worker, run);
        let chains = chains::recurring(&workers[..threads], &causes, station);
        let mut writer = Writer { message: out.free_message(), point: out.last_point(), out };
        writer.loops(&named);
        writer.chains(&workers, chains, &named);
    }
}

/// A wakeup probe of taut's that was recorded beside the program, or alone.
struct Probe {
    /// They keep a schedule, and are no loops of the program.
    threads: BTreeSet<i32>,
    /// Whether anything but the probe gave messages.
    is_beside_messages: bool,
}

impl Probe {
    fn of(out: &Linked) -> Probe {
        let points: Vec<PointId> =
            out.points.iter().filter(|(_, name)| POINTS.contains(name)).map(|(point, _)| point).collect();
        let passes = || out.passes.iter().filter(|pass| pass.point.reason().is_none());
        let is_probes = |pass: &&Pass| points.contains(&pass.point.without_due());
        Probe {
            threads: passes().filter(is_probes).map(|pass| pass.thread).collect(),
            is_beside_messages: !passes().all(|pass| is_probes(&pass)),
        }
    }
}

/// What the sockets of one host of a joined recording received from those of another.
fn between_hosts(scene: &Scene<'_>) -> Flows {
    if scene.objects.hosts().is_empty() {
        return Flows::default();
    }
    let recorded = scene.timelines.threads.iter().filter(|(tid, _)| scene.objects.is_recorded(**tid));
    let calls = recorded.flat_map(|(tid, timeline)| {
        timeline.calls.iter().filter(|call| call.end_ns != u64::MAX).map(|call| SocketCall {
            tid: *tid,
            id: call.id,
            descriptor: call.arg0,
            start_ns: call.start_ns,
            end_ns: call.end_ns,
            result: call.result.into(),
        })
    });
    let has_lost = |host: u16| {
        (0..).zip(&scene.timelines.cpus).any(|(cpu, all)| host_and_cpu(cpu).0 == host && !all.holes.is_empty())
    };
    Flows::of(&Sockets::of(calls, scene.objects).without_places(has_lost), |_, _| true)
}

/// The recorded threads, by what they do.
struct System {
    /// In order of their threads' numbers, which are given as threads begin.
    workers: Vec<Worker>,
    waking: Vec<WakingThread>,
    pools: Vec<Pool>,
}

impl System {
    fn find(scene: &Scene<'_>, without: &BTreeSet<i32>, flows: &Flows) -> System {
        let senders = flows.senders();
        let (timelines, objects, futexes) = (scene.timelines, scene.objects, scene.futexes);
        let kernel = Kernel { timelines, objects, futexes, senders: &senders };
        let mut system = System { workers: Vec::new(), waking: Vec::new(), pools: Vec::new() };
        let mut places = Places::default();
        for (tid, timeline) in &scene.timelines.threads {
            if *tid == 0 || !scene.objects.is_recorded(*tid) || without.contains(tid) {
                continue;
            }
            let pid = scene.objects.pid(*tid).unwrap_or(*tid);
            let (mut waits, mut longest) = (0, None);
            for bounds in waits::lives(timeline) {
                let mut life = worker::of(*tid, timeline, bounds, kernel);
                waits += life.waits;
                longest = life.longest.or(longest);
                places.add(pid, *tid, bounds, &mut life);
                system.workers.extend(life.worker);
            }
            if let Some(site) = longest {
                let waits_for = names::of_site(site, pid, scene.until_ns, scene.objects);
                system.waking.push(WakingThread { thread: *tid, wakes: waits, waits_for });
            }
        }
        system.pools = places.pools(kernel);
        // Which of two threads runs first differs between runs of a program, and the order gives those of one name their numbers.
        system.workers.sort_by_key(|worker| (worker.tid, worker.runs[0].start_ns));
        system.waking.sort_by_key(|waking| (std::cmp::Reverse(waking.wakes), waking.thread));
        system
    }
}

/// Loops that have a timer, each with its worker.
fn loops_by_timer(workers: &mut [Worker], is_of_pool: impl Fn(&Worker) -> bool) -> Vec<(usize, Found)> {
    let of = |(at, worker): (usize, &mut Worker)| loops::by_timer(worker).into_iter().map(move |found| (at, found));
    let may_be = |worker: &Worker| !worker.backs_off && !is_of_pool(worker);
    workers.iter_mut().enumerate().filter(|(_, worker)| may_be(worker)).flat_map(of).collect()
}

fn no_loop_of(pool: &Pool, objects: &Objects) -> String {
    let tid = pool.worker.tid;
    format!(
        "{} threads of {} serve its timers in turn (as {}), and no loop was found in their waits: loops of its threads may be of its \
         runtime, not of its work.",
        pool.threads.len(),
        objects.process(tid),
        objects.name(tid, u64::MAX)
    )
}

/// With those that follow from them, or are steady; in order of the workers.
fn all_loops(
    mut found: Vec<(usize, Found)>,
    workers: &[Worker],
    is_of_pool: impl Fn(&Worker) -> bool,
    causes: &Causes,
) -> Vec<(usize, Found)> {
    let timed: HashSet<(u32, u32)> =
        found.iter().flat_map(|(worker, found)| found.runs.iter().map(|run| (*worker as u32, *run as u32))).collect();
    // A server that also looks after something now and then is a loop of what wakes it, too.
    let by_timer =
        |at: usize| found.iter().filter(|(of, _)| *of == at).map(|(_, found)| found.runs.len()).sum::<usize>();
    let is_no_loop = |worker: &Worker| worker.backs_off || is_of_pool(worker);
    let is_others = |at: usize| {
        by_timer(at) < workers[at].runs.len() / loops::FEW
            && !is_no_loop(&workers[at])
            && !is_stream(workers, at, causes)
    };
    let others: Vec<usize> = (0..workers.len()).filter(|at| is_others(*at)).collect();
    for at in others {
        let worker = &workers[at];
        let is_driven = |run: usize| causes.follows((at as u32, run as u32), |run| timed.contains(&run));
        found.extend(loops::by_intervals(worker, is_driven).map(|found| (at, found)));
    }
    found.sort_by_key(|(worker, _)| *worker);
    found
}

/// Whether a thread takes what another one gives off in one go, as a reader in a shell's pipeline what `sort` writes: most of its activations
/// follow from one activation, in less than half of the time that it waited for work. Those may be as even as a loop's.
fn is_stream(workers: &[Worker], at: usize, causes: &Causes) -> bool {
    let runs = &workers[at].runs;
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return false };
    if 2 * (last.start_ns - first.start_ns) >= last.done_ns.saturating_sub(first.from_ns) {
        return false;
    }
    let mut of_one: HashMap<(u32, u32), usize> = HashMap::default();
    (0..runs.len())
        .filter_map(|run| causes.cause((at as u32, run as u32)))
        .for_each(|cause| *of_one.entry(cause).or_default() += 1);
    of_one.into_values().any(|activations| 2 * activations > runs.len())
}

/// Where a root's run stands.
fn station_of(found: &[(usize, Found)], worker: u32, run: u32) -> Station {
    let of_worker = found.iter().filter(|(of, _)| *of == worker as usize);
    let is_timed = |found: &Found| {
        let is_timed = match found.evidence {
            LoopEvidence::AbsoluteTimer | LoopEvidence::RelativeTimer { .. } | LoopEvidence::RestOfPeriod { .. } => {
                true
            }
            LoopEvidence::WokenBy { .. } | LoopEvidence::Guessed { .. } => false,
        };
        is_timed && found.runs.binary_search(&(run as usize)).is_ok()
    };
    let mode = of_worker.enumerate().find(|(_, (_, found))| is_timed(found));
    (worker, mode.map_or(0, |(mode, _)| mode as u32 + 1))
}

/// The timelines are those of its threads.
fn as_loop(worker: &Worker, found: &Found, name: String, timelines: &[&Timeline]) -> Loop {
    let runs = || (0..).zip(&found.runs).map(|(at, run)| (at, &worker.runs[*run]));
    let is_guessed = matches!(found.evidence, LoopEvidence::Guessed { .. });
    let release_ns = |at: usize, run: &Run| match found.releases.get(at) {
        Some(release_ns) => Some((*release_ns).min(run.start_ns)),
        None => run.release_ns,
    };
    let activation = |(at, run): (usize, &Run)| Activation {
        release_ns: release_ns(at, run).filter(|_| !is_guessed),
        start_ns: run.start_ns,
        done_ns: run.done_ns,
        cpu_ns: run.cpu_ns,
        thread: run.tid,
    };
    let releases: Vec<u64> = runs().filter_map(|(at, run)| release_ns(at, run)).collect();
    let unseen = |pair: &[u64]| unseen(timelines, (pair[0], pair[1]), found.period_ns.max(1));
    let unseen = if found.skipped > 0 { releases.windows(2).map(unseen).sum() } else { 0 };
    let skipped = found.skipped.saturating_sub(unseen);
    Loop {
        thread: worker.tid,
        name,
        period_ns: found.period_ns,
        evidence: found.evidence,
        activations: runs().filter(|(_, run)| !run.is_lost).map(activation).collect(),
        left_out: runs().filter(|(_, run)| run.is_lost).count() as u64 + found.skipped - skipped,
        skipped,
    }
}

/// Releases of a schedule between two known ones, in periods in which events of one of its threads were lost: it is unknown if it started.
fn unseen(timelines: &[&Timeline], (from_ns, to_ns): (u64, u64), period_ns: u64) -> u64 {
    // The known ones are number 0 and the one behind the last. By arithmetic: a thread may sleep for millions of periods.
    let last = to_ns.saturating_sub(from_ns + period_ns / 2) / period_ns;
    let (mut next, mut count) = (1, 0);
    let mut lost: Vec<(u64, u64)> = timelines.iter().flat_map(|one| one.lost_between(from_ns, to_ns)).collect();
    lost.sort_unstable();
    for (since_ns, until_ns) in lost {
        let first = next.max((since_ns - from_ns) / period_ns);
        // The wait before the release behind the stretch may have begun in it.
        next = next.max(last.min((until_ns - 1 - from_ns) / period_ns + 1) + 1);
        count += next.saturating_sub(first);
    }
    count
}

/// Names of loops and stations, each once.
struct Names {
    /// In the order of the loops.
    loops: Vec<String>,
    /// By station.
    stations: HashMap<Station, String>,
    /// By worker: its thread's, without a number.
    comms: Vec<String>,
}

impl Names {
    fn of(workers: &[Worker], found: &[(usize, Found)], scene: &Scene<'_>) -> Names {
        let mut names = Names { loops: Vec::new(), stations: HashMap::default(), comms: Vec::new() };
        let mut used: BTreeMap<String, u32> = BTreeMap::new();
        let mut unique = |name: String| {
            let times = used.entry(name.clone()).or_default();
            *times += 1;
            let number = if *times > 1 { format!(" #{times}") } else { String::new() };
            cut(&name, NAME_BYTES - number.len()) + &number
        };
        let threads = NamedThreads::of(workers, found, scene);
        for (at, without_timer) in threads.without_timers().into_iter().enumerate() {
            let comm = threads.comms[at];
            let mut default = None;
            for (mode, (_, found)) in (1..).zip(found.iter().filter(|(of, _)| *of == at)) {
                let name = match names::of_timer(found) {
                    Some(timer) => unique(format!("{comm} {timer}")),
                    None => default.insert(unique(without_timer.clone())).clone(),
                };
                names.loops.push(name.clone());
                names.stations.insert((at as u32, mode), name);
            }
            let default = default.unwrap_or_else(|| unique(without_timer));
            names.stations.insert((at as u32, 0), default);
            names.comms.push(cut(comm, NAME_BYTES / 2));
        }
        names
    }

    fn station(&self, station: Station) -> &str {
        self.stations.get(&station).map_or("", String::as_str)
    }
}

/// What names are made of, by worker.
struct NamedThreads<'a> {
    objects: &'a Objects,
    workers: &'a [Worker],
    comms: Vec<&'a str>,
    /// "futex", "recv udp:5005".
    waits_for: Vec<String>,
    /// Of those with a timer: "timer 20 ms".
    timers: Vec<Option<String>>,
}

impl<'a> NamedThreads<'a> {
    fn of(workers: &'a [Worker], found: &[(usize, Found)], scene: &Scene<'a>) -> NamedThreads<'a> {
        let objects = scene.objects;
        let last_ns = |worker: &Worker| worker.runs[worker.runs.len() - 1].start_ns;
        let waits_for = |worker: &Worker| {
            let pid = objects.pid(worker.tid).unwrap_or(worker.tid);
            let timeline = scene.timelines.threads.get(&worker.tid);
            timeline.map_or_else(String::new, |timeline| names::of_worker(worker, pid, timeline, objects))
        };
        let mut timers = vec![None; workers.len()];
        for (of, found) in found.iter().rev() {
            timers[*of] = names::of_timer(found).or(timers[*of].take());
        }
        NamedThreads {
            objects,
            workers,
            comms: workers.iter().map(|of| names::of_thread(of.tid, last_ns(of), objects)).collect(),
            waits_for: workers.iter().map(waits_for).collect(),
            timers,
        }
    }

    /// Each by what the thread waits for. Where others of its name wait for the same, also by what its wakes come from.
    fn without_timers(&self) -> Vec<String> {
        let keys = || self.comms.iter().zip(&self.waits_for);
        let mut alike: HashMap<_, usize> = HashMap::default();
        keys().for_each(|key| *alike.entry(key).or_default() += 1);
        let name = |(at, key @ (comm, waits_for))| match if alike[&key] == 1 { None } else { self.origin(at) } {
            Some(origin) => format!("{comm} {waits_for} after {origin}"),
            None => format!("{comm} {waits_for}"),
        };
        keys().enumerate().map(name).collect()
    }

    /// The first before it that a name tells from it: a thread of another name, or one of the same that has a timer, or waits for an
    /// object with a name. Names of threads that are not recorded, as those of the kernel, may differ between runs.
    fn origin(&self, of: usize) -> Option<&str> {
        let mut at = of;
        for _ in 0..FOLLOWED {
            let waker = loops::main_waker(&self.workers[at])?.0;
            let Some(by) = self.workers.iter().position(|worker| worker.tid == waker) else {
                let comm = names::of_thread(waker, u64::MAX, self.objects);
                return Some(comm).filter(|comm| self.objects.is_recorded(waker) && *comm != self.comms[of]);
            };
            if self.comms[by] != self.comms[of] {
                return Some(self.comms[by]);
            }
            let object = Some(self.waits_for[by].as_str()).filter(|waits_for| waits_for.contains(' '));
            if let Some(origin) = self.timers[by].as_deref().or(object) {
                return Some(origin);
            }
            at = by;
        }
        None
    }
}

/// At most so many bytes of a text, whole characters.
fn cut(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Numbers points and messages, and appends what they come to.
struct Writer<'a> {
    out: &'a mut Linked,
    message: u64,
    point: u32,
}

impl Writer<'_> {
    fn point(&mut self, name: String) -> PointId {
        self.point += 1;
        let point = PointId::of_name(self.point);
        self.out.points.insert(point, name);
        point
    }

    /// The moment at which messages are due at a point, with a name of its own.
    fn due(&mut self, point: PointId, name: String) -> PointId {
        self.out.points.insert(point.as_due(), name);
        point.as_due()
    }

    fn pass(&mut self, point: PointId, time_ns: u64, thread: i32) {
        self.out.of_wakes.push(Pass { message: self.message, time_ns, point, thread });
    }

    /// A loop is the chain release, start, done.
    fn loops(&mut self, names: &Names) {
        for (at, name) in names.loops.iter().enumerate() {
            let name = name.clone();
            let activations = std::mem::take(&mut self.out.loops[at].activations);
            if activations.is_empty() {
                continue;
            }
            let start = self.point(format!("{name} start"));
            let done = self.point(format!("{name} done"));
            let mut points = vec![start, done];
            if activations.iter().any(|activation| activation.release_ns.is_some()) {
                points.insert(0, self.due(start, format!("{name} release")));
            }
            for activation in &activations {
                let thread = activation.thread;
                if let Some(release_ns) = activation.release_ns {
                    self.pass(start.as_due(), release_ns, thread);
                }
                self.pass(start, activation.start_ns, thread);
                self.pass(done, activation.done_ns, thread);
                self.message += 1;
            }
            self.out.loops[at].activations = activations;
            self.out.routes.push(Route { name, points, kind: RouteKind::Loop(at) });
        }
    }

    /// The points of a chain are its root's release and start, the ends of the waits of the threads after it, and when the last one
    /// waits again.
    fn chains(&mut self, workers: &[Worker], chains: Vec<chains::Chain>, names: &Names) {
        let mut used: Vec<String> = Vec::new();
        let ends = ["applied", "no_wake"].map(|reason| self.point(reason.to_owned()).as_outcome());
        for chain in chains {
            let stations: Vec<&str> = chain.stations.iter().map(|station| names.station(*station)).collect();
            let [first, .., last] = stations.as_slice() else { continue };
            let comm = |station: &Station| names.comms[station.0 as usize].as_str();
            let path = stations.join(" → ");
            let mut name = match stations.len() <= NAMED_STATIONS && path.len() <= NAME_BYTES {
                true => path,
                false => format!("{first} → {last}"),
            };
            if used.contains(&name) {
                let by: Vec<&str> = chain.stations.iter().map(comm).collect();
                name = format!("{name} by {}", by.join(", "));
            }
            used.push(name.clone());
            let start = self.point(format!("{} start", comm(&chain.stations[0])));
            let mut points = vec![self.due(start, (*first).to_owned()), start];
            for station in &stations[1..] {
                let point = self.point((*station).to_owned());
                points.push(point);
            }
            let done = self.point(format!("{} done", comm(&chain.stations[chain.stations.len() - 1])));
            points.push(done);
            for passage in &chain.passages {
                self.passage(workers, passage, &points, ends);
            }
            self.out.routes.push(Route { name, points, kind: RouteKind::Wakes });
        }
    }

    /// The last run of one that did not come to the end woke nobody there: it sent nothing, or the next thread was awake.
    fn passage(&mut self, workers: &[Worker], passage: &[RunId], points: &[PointId], [applied, no_wake]: [PointId; 2]) {
        let run = |(worker, run): RunId| {
            let worker = &workers[worker as usize];
            (worker.tid, &worker.runs[run as usize])
        };
        let (thread, root) = run(passage[0]);
        self.pass(points[0], root.release_ns.unwrap_or(root.start_ns), thread);
        for (id, point) in passage.iter().zip(&points[1..]) {
            let (thread, run) = run(*id);
            self.pass(*point, run.start_ns, thread);
        }
        let (thread, last) = run(passage[passage.len() - 1]);
        // Every station but the due moment and the end has a run.
        let is_whole = passage.len() + 2 == points.len();
        if is_whole {
            self.pass(points[points.len() - 1], last.done_ns, thread);
        }
        self.pass(if is_whole { applied } else { no_wake }, last.done_ns, thread);
        self.message += 1;
    }
}
