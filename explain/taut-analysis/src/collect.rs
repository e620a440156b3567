//! Takes in the records of a file and hands them, on one clock, to what follows.

use std::collections::BTreeMap;

use foldhash::HashMap;
use taut_clock::{ClockPair, Counter, Mapping, Ticks};
use taut_recording::{Architecture, Ending, Info, KernelEvent, Kind, LostWhat, Record, StampBatch};
use taut_timelines::{Builder, Futexes, Loss, Objects, SAME_CLOCK_NS};

use crate::{
    Analysis, Config, Error, RowSink, Totals, Trips,
    environment::Environment,
    explain, figures,
    histograms::Histograms,
    line,
    marks::{Mark, Marks, StampHole, Stamped},
    messages::Messages,
    names::Names,
    rows,
    signals::{self, Signal},
    stacks::Stacks,
    starts, telemetry, wakeups,
    walk::Walker,
};

/// Collects a recording record by record, then analyses it.
#[derive(Default)]
pub struct Analyzer {
    config: Config,
    stamps: Vec<Stamp>,
    /// By index of `Stamp::thread`.
    threads: Vec<ThreadKey>,
    thread_index: HashMap<ThreadKey, u32>,
    objects: Objects,
    builder: Builder,
    environment: Environment,
    stamp_losses: Vec<StampHole>,
    marks: Vec<RawMark>,
    values: Vec<RawValue>,
    names: HashMap<u32, String>,
    clocks: BTreeMap<u8, Vec<ClockPair>>,
    lost_stamps: u64,
    lost_kernel_events: u64,
    /// Whether the two before are estimates.
    estimated: (bool, bool),
    /// By number in the recording.
    telemetry: BTreeMap<u16, telemetry::Channel>,
    /// Messages lost, by place.
    lost_telemetry: Vec<(String, u64)>,
    kernel_events: u64,
    kernel_end_ns: u64,
    all_stamps: u64,
    histograms: Histograms,
    stacks: Stacks,
}

/// One stamp of a message, compact: ten million of them must fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub id: u64,
    /// Ticks until [`Analyzer::finish`] maps them, then CLOCK_MONOTONIC ns.
    pub time: u64,
    /// Name id of the point, or of the reason with [`OUTCOME`] set.
    pub point: u32,
    /// Index of the thread.
    pub thread: u32,
}

/// A stamp that is no message's, until the clocks are mapped and the names known.
struct RawMark {
    ticks: u64,
    thread: u32,
    kind: Kind,
    name: u32,
    id: u64,
    value: u64,
}

/// A signal's value.
struct RawValue {
    ticks: u64,
    counter: u8,
    name: u32,
    value: f64,
}

/// Marks a stamp as an outcome; name ids stay far below.
pub(crate) const OUTCOME: u32 = 1 << 31;
/// Marks a moment at which a message was due at that point (`stamp_at`): nobody stamped then.
pub(crate) const DUE: u32 = 1 << 30;

/// Whether it is the moment at which messages were due at a point, which comes before that point.
pub(crate) fn is_due(point: u32) -> bool {
    point & (OUTCOME | DUE) == DUE
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ThreadKey {
    pid: i32,
    tid: i32,
    counter: u8,
}

/// What the later stages may ask about the recording as a whole.
pub(crate) struct Context {
    pub names: HashMap<u32, String>,
    /// "comm/tid" by `Stamp::thread`.
    pub threads: Vec<String>,
    /// The same as host tids.
    pub tids: Vec<i32>,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Stretches in which stamps may be missing, ascending without overlaps.
    pub stamp_holes: Vec<(u64, u64)>,
    /// Whose numbers the system calls have; `None`: of a machine that this taut knows nothing of.
    pub architecture: Option<Architecture>,
}

impl Context {
    pub fn name(&self, id: u32) -> String {
        self.names.get(&id).cloned().unwrap_or_else(|| format!("point {id}"))
    }
}

impl Analyzer {
    /// An empty collection.
    pub fn new(config: Config) -> Analyzer {
        Analyzer { config, ..Analyzer::default() }
    }

    /// Takes in one record.
    pub fn record(&mut self, record: &Record) {
        self.stacks.record(record);
        match record {
            Record::Stamps(batch) => self.stamps(batch),
            Record::Kernel(batch) => {
                self.kernel_events += batch.time_ns.len() as u64;
                self.kernel_end_ns = self.kernel_end_ns.max(batch.time_ns.last().copied().unwrap_or(0));
                let forks = batch.event.iter().enumerate().filter(|(_, e)| **e == KernelEvent::SchedFork as u8);
                forks.for_each(|(at, _)| self.objects.fork(batch.tid[at], batch.arg0[at] as i32));
                let slowed = batch.event.iter().enumerate().filter(|(_, e)| **e == KernelEvent::CpuFrequency as u8);
                slowed
                    .for_each(|(at, _)| self.environment.frequency(batch.arg1[at], batch.time_ns[at], batch.arg0[at]));
                self.builder.batch(batch);
            }
            Record::Clock(counter, pair) => self.clocks.entry(*counter as u8).or_default().push(*pair),
            Record::Name(name) => {
                self.names.insert(name.id, name.name.clone());
            }
            Record::Thread(thread) => {
                self.objects.thread(thread);
            }
            Record::Lost(lost) => match lost.what {
                LostWhat::Stamps => {
                    self.lost_stamps = self.lost_stamps.saturating_add(lost.count);
                    self.estimated.0 |= lost.is_estimate;
                    let (tid, since_ns, until_ns) = (tid_of(&lost.place), lost.since_ns, lost.time_ns);
                    self.stamp_losses.push(StampHole { tid, since_ns, until_ns });
                }
                LostWhat::KernelEvents => {
                    self.lost_kernel_events = self.lost_kernel_events.saturating_add(lost.count);
                    self.estimated.1 |= lost.is_estimate;
                    if let Some(cpu) = cpu_of(&lost.place) {
                        self.builder.lost(Loss { cpu, since_ns: lost.since_ns, until_ns: lost.time_ns });
                    }
                }
                LostWhat::Telemetry => self.lost_telemetry.push((lost.place.clone(), lost.count)),
                LostWhat::Samples | LostWhat::RosEvents => {}
            },
            Record::Object(object) => self.objects.object(object),
            Record::Channel(channel) => {
                self.telemetry.insert(channel.number, telemetry::Channel::new(channel));
            }
            Record::Message(message) => {
                self.telemetry.get_mut(&message.channel).into_iter().for_each(|channel| channel.take(message));
            }
            Record::Histogram(histogram) => self.histograms.take(histogram),
            Record::Sample(sample) => self.environment.take(sample),
            Record::Profile(_) | Record::Frame(_) | Record::Ros(_) | Record::RosObject(_) => {}
        }
    }

    /// Works everything out. `damage` and `file_bytes` are passed through to the result.
    pub fn finish(
        self,
        info: Info,
        ending: Option<Ending>,
        damage: Vec<String>,
        file_bytes: u64,
    ) -> Result<Analysis, Error> {
        self.work_out(info, ending, damage, file_bytes, None)
    }

    /// The same, and tells every message, hop, cause and thread state to `sink` on the way: chain after chain, thread
    /// after thread, each in order of time.
    pub fn finish_by_row(
        self,
        info: Info,
        ending: Option<Ending>,
        damage: Vec<String>,
        file_bytes: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Analysis, Error> {
        self.work_out(info, ending, damage, file_bytes, Some(sink))
    }

    fn work_out(
        mut self,
        info: Info,
        ending: Option<Ending>,
        mut damage: Vec<String>,
        file_bytes: u64,
        sink: Option<&mut dyn RowSink>,
    ) -> Result<Analysis, Error> {
        if self.all_stamps == 0 && self.telemetry.is_empty() && self.histograms.is_empty() {
            return Err(Error::Empty);
        }
        self.objects.origin(&info);
        let is_recovered = info.facts.iter().any(|(key, _)| key == "recovered_by");
        self.objects.is_damaged = is_recovered || !damage.is_empty();
        let clock_error_ns = self.map_clocks(&mut damage);
        let stamped = self.stamps.iter().filter(|stamp| !is_due(stamp.point));
        let first_ns = stamped.map(|stamp| stamp.time).min().unwrap_or(info.start_monotonic_ns);
        let to_monotonic =
            |log_ns: u64| log_ns.saturating_sub(info.start_realtime_ns).saturating_add(info.start_monotonic_ns);
        let told_ns = self.telemetry.values().map(|channel| to_monotonic(channel.end_ns())).max().unwrap_or(0);
        let last_ns = self.stamps.iter().map(|s| s.time).max().unwrap_or(0).max(self.kernel_end_ns).max(told_ns);
        let start_ns = if info.start_monotonic_ns == 0 { first_ns } else { first_ns.min(info.start_monotonic_ns) };
        let end_ns = ending.as_ref().map_or(last_ns, |e| e.end_monotonic_ns.max(last_ns));
        let stamp_holes = self.stamp_holes();
        let context = Context {
            stamp_holes: taut_timelines::ascending(
                stamp_holes.iter().map(|hole| (hole.since_ns, hole.until_ns)).collect(),
            ),
            threads: self.thread_names(),
            tids: self.threads.iter().map(|key| key.tid).collect(),
            names: self.names_of_points(),
            start_ns,
            end_ns,
            architecture: architecture(&info),
        };
        let totals = Totals {
            duration_s: end_ns.saturating_sub(start_ns) as f64 / 1e9,
            start_monotonic_ns: start_ns,
            stamps: self.all_stamps,
            lost_stamps: self.lost_stamps,
            kernel_events: self.kernel_events,
            lost_kernel_events: self.lost_kernel_events,
            lost_stamps_is_estimate: self.estimated.0,
            lost_kernel_events_is_estimate: self.estimated.1,
            lost_telemetry: self.lost_telemetry.iter().map(|(_, count)| count).sum(),
            clock_error_ns,
            file_bytes,
            trips: self.trips(&context),
        };
        let signals = self.signals(&context);
        let tracking = signals::tracking(&signals);
        let lost = std::mem::take(&mut self.lost_telemetry);
        let mut telemetry: Vec<_> =
            std::mem::take(&mut self.telemetry).into_values().map(|channel| channel.finish(&lost)).collect();
        telemetry.sort_by(|a, b| a.topic.cmp(&b.topic));
        let marks = self.marks(&context, stamp_holes);
        let messages = Messages::cut(std::mem::take(&mut self.stamps));
        let line::Lines { chains: mut lines, alone } = line::find(&messages, &self.config, &context)?;
        if let Some(deadline_ns) = self.config.explain.deadline_ns {
            lines.iter_mut().for_each(|line| line.deadline_ns = Some(deadline_ns));
        }
        let mut points: Vec<_> = alone.iter().flat_map(|line| figures::points_of(&messages, line, &context)).collect();
        points.sort_by(|a, b| a.name.cmp(&b.name));
        let mut chains: Vec<_> = lines.iter().map(|line| figures::chain(&messages, line, &context)).collect();
        self.environment.sort();
        let gaps = self.explain(&mut chains, &lines, &messages, &marks, &context, sink)?;
        // A probe beside a program comes last, however often it woke.
        chains.sort_by(|a, b| {
            let is_probe = wakeups::is_probe(a).cmp(&wakeups::is_probe(b));
            is_probe.then_with(|| b.messages.cmp(&a.messages)).then_with(|| a.name.cmp(&b.name))
        });
        let mut notes = notes(&info, ending.as_ref(), &totals, &messages, &lines);
        notes.extend(gaps);
        let ways = chains.iter().max_by_key(|chain| chain.messages).map_or(&[][..], |chain| chain.series.as_slice());
        notes.extend(self.environment.notes(start_ns, ways));
        notes.extend(chains.iter().flat_map(inversions));
        notes.extend(wakeups::beside(&chains));
        notes.extend(ending.iter().flat_map(|ending| ending.notes.iter().cloned()));
        let profile = Some(self.stacks.profile(None)).filter(|profile| profile.samples + profile.lost > 0);
        let histograms = self.histograms.finish();
        Ok(Analysis {
            info,
            ending,
            totals,
            chains,
            signals,
            tracking,
            telemetry,
            points,
            histograms,
            profile,
            damage,
            notes,
        })
    }

    /// Whose time it was, chain by chain. Returns what a reader must know of the kernel events.
    fn explain(
        &mut self,
        chains: &mut [crate::Chain],
        lines: &[line::Line],
        messages: &Messages,
        marks: &Marks,
        context: &Context,
        mut sink: Option<&mut dyn RowSink>,
    ) -> Result<Vec<String>, Error> {
        let timelines = std::mem::take(&mut self.builder).finish(context.architecture);
        let futexes = Futexes::of(&timelines, &self.objects);
        let mut names = Names::default();
        let mut walker = Walker {
            timelines: &timelines,
            objects: &self.objects,
            futexes: &futexes,
            environment: &self.environment,
            marks,
            names: &mut names,
            receivers: Default::default(),
            shared: Default::default(),
            busy: Default::default(),
            verbose: false,
        };
        let wanted = &self.config.explain;
        let probes: Vec<i32> = chains
            .iter()
            .zip(lines)
            .filter(|(chain, _)| wanted.sides && wakeups::is_probe(chain))
            .flat_map(|(_, line)| processes_of(line, messages, context, &self.objects))
            .collect();
        let mut refused = Vec::new();
        for (chain, line) in chains.iter_mut().zip(lines) {
            let sink: Option<&mut dyn RowSink> = match &mut sink {
                Some(sink) => Some(&mut **sink),
                None => None,
            };
            refused.extend(explain::explain(chain, messages, line, context, &mut walker, wanted, &probes, sink));
        }
        for (chain, line) in chains.iter_mut().zip(lines).filter(|_| !wanted.only_rows) {
            walker.verbose = false;
            chain.starts = starts::of(line, messages, context, &mut walker);
        }
        if let Some(sink) = sink {
            rows::of_threads(&timelines, &self.objects, sink);
        }
        // A suspect may be at home in one chain only; one that no chain knows is a mistake.
        for word in wanted.suspects.iter().chain(wanted.without.iter().flatten()) {
            let is_it = |error: &Error| matches!(error, Error::UnknownSuspect { suspect, .. } if suspect == word);
            if refused.iter().filter(|error| is_it(error)).count() == chains.len()
                && let Some(at) = refused.iter().position(is_it)
            {
                return Err(refused.swap_remove(at));
            }
        }
        let explained = |id: &u64| chains.iter().any(|c| c.explained.paths.iter().any(|p| p.budget.id == *id));
        match wanted.messages.iter().find(|id| !explained(id)) {
            Some(id) => Err(Error::UnknownMessage { id: *id }),
            None => Ok(timelines.gaps(&self.objects)),
        }
    }

    /// Where stamps may be missing. Where it is not said since when, the thread's last stamp before says it: a full ring
    /// drops the newest.
    fn stamp_holes(&self) -> Vec<StampHole> {
        let last_before = |hole: &StampHole| {
            let index = |key: &ThreadKey| Some(key.tid) == hole.tid;
            let of_thread: Vec<u32> =
                (0..).zip(&self.threads).filter(|(_, key)| index(key)).map(|(at, _)| at).collect();
            let stamps = self.stamps.iter().filter(|stamp| of_thread.contains(&stamp.thread));
            stamps.map(|stamp| stamp.time).filter(|time| *time <= hole.until_ns).max().unwrap_or(hole.until_ns)
        };
        let since = |hole: &StampHole| if hole.since_ns == 0 { last_before(hole) } else { hole.since_ns };
        let holes = self.stamp_losses.iter().map(|hole| StampHole { since_ns: since(hole), ..*hole });
        // A moment is a stretch, too: some stamp is missing there.
        holes.map(|hole| StampHole { until_ns: hole.until_ns.max(hole.since_ns.saturating_add(1)), ..hole }).collect()
    }

    /// Each thread's stamps and marks; the stamps only if there are kernel events to read them with.
    fn marks(&mut self, context: &Context, holes: Vec<StampHole>) -> Marks {
        let mut stamps: HashMap<i32, Vec<Stamped>> = HashMap::default();
        if self.kernel_events > 0 {
            for stamp in self.stamps.iter().filter(|s| s.point & (OUTCOME | DUE) == 0) {
                let tid = context.tids[stamp.thread as usize];
                stamps.entry(tid).or_default().push(Stamped { time_ns: stamp.time, id: stamp.id });
            }
        }
        let mappings = self.mappings();
        let mut marks: HashMap<i32, Vec<Mark>> = HashMap::default();
        for mark in &self.marks {
            let ThreadKey { tid, pid, counter } = self.threads[mark.thread as usize];
            let name = context.name(mark.name);
            if mark.kind == Kind::LockNamed {
                self.objects.lock(pid, mark.value, mark.id, name);
                continue;
            }
            let Some(time_ns) = time_of(&mappings, counter, mark.ticks) else { continue };
            marks.entry(tid).or_default().push(Mark { time_ns, kind: mark.kind, name });
        }
        Marks::new(stamps, marks, holes)
    }

    fn signals(&mut self, context: &Context) -> Vec<Signal> {
        let mappings = self.mappings();
        let values = std::mem::take(&mut self.values);
        signals::signals(values.into_iter().filter_map(|raw| {
            let ns = time_of(&mappings, raw.counter, raw.ticks)?;
            Some((context.name(raw.name), ns.saturating_sub(context.start_ns), raw.value))
        }))
    }

    fn stamps(&mut self, batch: &StampBatch) {
        self.all_stamps += batch.ticks.len() as u64;
        let key = ThreadKey { pid: batch.pid, tid: batch.tid, counter: batch.counter };
        let next = self.thread_index.len() as u32;
        let thread = *self.thread_index.entry(key).or_insert_with(|| {
            self.threads.push(key);
            next
        });
        let (marks, values) = (&mut self.marks, &mut self.values);
        let stamps = &mut self.stamps;
        let stamp = |at: usize| {
            let point = match Kind::from_number(batch.kind[at])? {
                Kind::Stamp => batch.point[at],
                Kind::Outcome => OUTCOME | batch.value[at] as u32 & !OUTCOME,
                Kind::Value => {
                    let value = f64::from_bits(batch.value[at]);
                    let (ticks, name) = (batch.ticks[at], batch.point[at]);
                    values.push(RawValue { ticks, counter: batch.counter, name, value });
                    return None;
                }
                kind => {
                    marks.push(RawMark {
                        ticks: batch.ticks[at],
                        thread,
                        kind,
                        name: batch.point[at],
                        id: batch.message_id[at],
                        value: batch.value[at],
                    });
                    return None;
                }
            };
            Some(Stamp { id: batch.message_id[at], time: batch.ticks[at], point, thread })
        };
        for (at, stamp) in (0..batch.ticks.len()).map(stamp).enumerate() {
            stamps.extend(stamp);
            let due = stamp.zip(batch.intended_ns(at));
            stamps.extend(due.map(|(stamp, time)| Stamp { time, point: DUE | stamp.point, ..stamp }));
        }
    }

    /// By counter; none for CLOCK_MONOTONIC itself.
    fn mappings(&self) -> BTreeMap<u8, Mapping> {
        let counters = self.clocks.iter().filter(|(counter, _)| **counter != Counter::Monotonic as u8);
        counters.filter_map(|(counter, pairs)| Some((*counter, Mapping::new(pairs.iter().copied())?))).collect()
    }

    /// Ticks become CLOCK_MONOTONIC in place; returns the bound of the error. Stamps of a counter that nobody took two
    /// readings of have no time: they go, and what is missing is said.
    fn map_clocks(&mut self, damage: &mut Vec<String>) -> Option<f64> {
        let mappings = self.mappings();
        let monotonic = Counter::Monotonic as u8;
        let threads = &self.threads;
        let (mut missing, mut stamped) = (0, None);
        self.stamps.retain_mut(|stamp| {
            let time = match is_due(stamp.point) {
                // Behind its stamp. A program that is early is on time.
                true => {
                    stamped.filter(|stamped| stamp.time.abs_diff(*stamped) < SAME_CLOCK_NS).map(|at| stamp.time.min(at))
                }
                false => {
                    stamped = time_of(&mappings, threads[stamp.thread as usize].counter, stamp.time);
                    missing += u64::from(stamped.is_none());
                    stamped
                }
            };
            stamp.time = time.unwrap_or(0);
            time.is_some()
        });
        if missing > 0 {
            damage.push(format!("{missing} stamps have no time: the counter that they were read from was compared with the clock less than twice"));
        }
        // Without a stamp it is telemetry that the counters time.
        let used: Vec<u8> = match self.threads.is_empty() {
            true => mappings.keys().copied().collect(),
            false => self.threads.iter().map(|thread| thread.counter).collect(),
        };
        let errors: Vec<Option<f64>> = used
            .into_iter()
            .map(|counter| if counter == monotonic { Some(0.0) } else { Some(mappings.get(&counter)?.error_ns()) })
            .collect();
        errors.into_iter().collect::<Option<Vec<f64>>>().map(|errors| errors.into_iter().fold(0.0, f64::max))
    }

    /// What a speed guard said in values of these names; `None` where none was armed.
    fn trips(&self, context: &Context) -> Option<Trips> {
        let times = |name: &str| -> u64 {
            let ids: Vec<u32> = context.names.iter().filter(|(_, known)| *known == name).map(|(id, _)| *id).collect();
            self.values.iter().filter(|raw| ids.contains(&raw.name)).count() as u64
        };
        (times("guard.armed") > 0).then(|| Trips { all: times("guard.trip"), false_ones: times("guard.false_trip") })
    }

    /// The names, with those of the moments at which messages were due.
    fn names_of_points(&mut self) -> HashMap<u32, String> {
        let mut names = std::mem::take(&mut self.names);
        let mut points: Vec<u32> = self.stamps.iter().map(|stamp| stamp.point).filter(|point| is_due(*point)).collect();
        points.sort_unstable();
        points.dedup();
        for due in points {
            let name = names.get(&(due & !DUE)).map(|name| format!("{name} due"));
            names.extend(name.map(|name| (due, name)));
        }
        names
    }

    fn thread_names(&self) -> Vec<String> {
        self.threads.iter().map(|key| self.objects.name(key.tid, u64::MAX).into_owned()).collect()
    }
}

/// Processes that stamped a line's messages.
fn processes_of(line: &line::Line, messages: &Messages, context: &Context, objects: &Objects) -> Vec<i32> {
    let of_line = messages.iter().filter(|(_, passes)| line.family.contains(&passes[0].point));
    let mut tids: Vec<i32> = of_line.flat_map(|(_, passes)| passes).map(|s| context.tids[s.thread as usize]).collect();
    tids.sort_unstable();
    tids.dedup();
    tids.into_iter().filter_map(|tid| objects.pid(tid)).collect()
}

/// CLOCK_MONOTONIC of a counter's ticks; `None` where that is not known.
fn time_of(mappings: &BTreeMap<u8, Mapping>, counter: u8, ticks: u64) -> Option<u64> {
    if counter == Counter::Monotonic as u8 {
        return Some(ticks);
    }
    Some(mappings.get(&counter)?.to_monotonic(Ticks(ticks)).0)
}

/// The CPU in a place like "cpu 1 ftrace".
fn cpu_of(place: &str) -> Option<u16> {
    place.strip_prefix("cpu ")?.split(' ').next()?.parse().ok()
}

/// The thread in a place like "7/8", a ring's.
fn tid_of(place: &str) -> Option<i32> {
    place.split(' ').next()?.split_once('/')?.1.parse().ok()
}

/// Hops that messages seem to take backwards.
fn inversions(chain: &crate::Chain) -> impl Iterator<Item = String> + '_ {
    chain.hops.iter().filter(|hop| hop.inverted > 0).map(|hop| {
        format!(
            "{} messages reached {} before {}, by up to {:.3} ms, and count as 0 ns there: they took another way, two \
             chains use the same ids at once, or a clock is wrong",
            hop.inverted,
            hop.to,
            hop.from,
            hop.inverted_max_ns as f64 / 1e6
        )
    })
}

/// Whose numbers the system calls have: x86_64's where the recording does not say.
fn architecture(info: &Info) -> Option<Architecture> {
    if info.system_calls.is_empty() { Some(Architecture::X86_64) } else { Architecture::from_word(&info.system_calls) }
}

fn about(count: u64, is_estimate: bool) -> String {
    if is_estimate { format!("about {count}") } else { count.to_string() }
}

/// Sentences that a reader must know to trust the figures.
fn notes(
    info: &Info,
    ending: Option<&Ending>,
    totals: &Totals,
    messages: &Messages,
    lines: &[line::Line],
) -> Vec<String> {
    let mut notes = Vec::new();
    if totals.lost_stamps > 0 {
        let lost = about(totals.lost_stamps, totals.lost_stamps_is_estimate);
        // What damage took, a larger ring would not have kept.
        let remedy = if totals.lost_stamps_is_estimate { "" } else { "; record with a larger --ring-records" };
        notes.push(format!(
            "{lost} stamps were lost: messages of which the next stamp may be among them have no known end, and what \
             their threads did then is unknown{remedy}"
        ));
    }
    if totals.lost_kernel_events > 0 {
        let lost = about(totals.lost_kernel_events, totals.lost_kernel_events_is_estimate);
        notes.push(format!("{lost} kernel events were lost: what happened then is unknown"));
    }
    if totals.lost_telemetry > 0 {
        notes.push(format!(
            "{} telemetry messages were lost because the recorder could not keep up; gaps in their sequence numbers show where",
            totals.lost_telemetry
        ));
    }
    if !info.tier_reason.is_empty() {
        notes.push(info.tier_reason.clone());
    }
    if totals.kernel_events > 0 && architecture(info).is_none() {
        notes.push(format!(
            "the system calls have the numbers of {:?}, which this taut does not know: waits in them are unknown",
            info.system_calls
        ));
    }
    if totals.clock_error_ns.is_none() {
        notes.push(
            "the stamps' counter has fewer than two calibrations, so durations are in ticks of that counter taken as ns"
                .to_owned(),
        );
    }
    if ending.is_none() {
        notes.push("the recorder was killed: this is what it had written until then".to_owned());
    }
    if messages.repeats > 0 {
        notes.push(format!(
            "{} stamps repeated a point that their message had passed before; the first pass counts",
            messages.repeats
        ));
    }
    if messages.split > 0 {
        notes.push(format!(
            "{} times a message id began anew at its first point: each is a message of its own",
            messages.split
        ));
    }
    if messages.outcomes_only > 0 {
        notes.push(format!("{} outcomes were given to messages that were never stamped", messages.outcomes_only));
    }
    if lines.is_empty() && totals.stamps > 0 {
        notes.push("no message passed two points, so there is no chain".to_owned());
    }
    notes
}
