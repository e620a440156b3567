//! Runs the stages: records to the intake, its passes to messages and chains, and those to the result.

use taut_points::{Counts, Found, Intake, Linked, LoopEvidence, PointId, RouteKind, Spans};
use taut_recording::{Ending, Info, KernelBatch, KernelEvent, LostWhat, Record, Tier};
use taut_timelines::{Objects, Timelines};

use crate::{
    context::Context,
    environment::Environment,
    error::Error,
    explain, figures,
    histograms::Histograms,
    line::{self, ChainLine},
    loops,
    messages::Messages,
    names::Names,
    notes,
    options::{Config, ExplainOptions},
    order,
    result::{Analysis, Chain, Totals, Trips},
    rows::{self, RowSink},
    signals::{self, Signal},
    stacks::Stacks,
    starts,
    telemetry::Channels,
    wakeups,
    walk::Walker,
};

/// Collects a recording record by record, then analyses it.
#[derive(Default)]
pub struct Analyzer {
    config: Config,
    intake: Intake,
    environment: Environment,
    telemetry: Channels,
    histograms: Histograms,
    stacks: Stacks,
}

impl Analyzer {
    /// An empty collection.
    pub fn new(config: Config) -> Analyzer {
        let intake = Intake::new(config.is_stretch);
        Analyzer { config, intake, ..Analyzer::default() }
    }

    /// Takes in one record.
    pub fn record(&mut self, record: &Record) {
        self.intake.record(record);
        self.stacks.record(record);
        match record {
            Record::Kernel(batch) => self.frequencies(batch),
            Record::Sample(sample) => self.environment.take(sample),
            Record::Channel(channel) => self.telemetry.add(channel),
            Record::Message(message) => self.telemetry.take(message),
            Record::Lost(lost) if lost.what == LostWhat::Telemetry => self.telemetry.lost(lost),
            Record::Histogram(histogram) => self.histograms.take(histogram),
            _ => {}
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
        if self.intake.counts().is_empty() && self.telemetry.is_empty() && self.histograms.is_empty() {
            return Err(Error::Empty { hint: hint(&info) });
        }
        let is_recovered = info.facts.iter().any(|(key, _)| key == "recovered_by");
        let ending_ns = ending.as_ref().map(|ending| ending.end_monotonic_ns);
        let found = self.intake.finish(&info, ending_ns, is_recovered || !damage.is_empty());
        let Found { mut linked, timelines, futexes, objects, holes, counts, clock_error_ns } = found;
        damage.append(&mut linked.damage);
        let (start_ns, end_ns) = span(&info, ending.as_ref(), &linked, &timelines, &self.telemetry);
        let points = std::mem::take(&mut linked.points);
        let kernel_holes = timelines.missing();
        let context = Context { points: &points, objects: &objects, start_ns, end_ns, holes, kernel_holes };
        let mut totals = totals(&counts, &context);
        (totals.clock_error_ns, totals.file_bytes) = (clock_error_ns, file_bytes);
        totals.lost_kernel_stretches = context.kernel_holes.len() as u64;
        totals.lost_kernel_ns = context.kernel_holes.iter().map(|(from, to)| to - from).sum();
        totals.lost_telemetry = self.telemetry.lost_messages();
        totals.trips = trips(&linked, &context);
        let signals = signals_of(&mut linked, &context);
        let tracking = signals::tracking(&signals);
        let telemetry = self.telemetry.finish();
        let mut passes = std::mem::take(&mut linked.passes);
        passes.append(&mut linked.of_wakes);
        let messages = Messages::cut(passes);
        let line::Lines { chains: mut lines, alone } = line::find(&messages, &linked.routes, &self.config, &context)?;
        if let Some(deadline_ns) = self.config.explain.deadline_ns {
            lines.iter_mut().for_each(|line| line.deadline_ns = Some(deadline_ns));
        }
        lines.iter_mut().for_each(|line| line.period_ns = schedule(line, &linked.loops));
        let mut points: Vec<_> = alone.iter().flat_map(|line| figures::points_of(&messages, line, &context)).collect();
        points.sort_by(|a, b| a.name.cmp(&b.name));
        let mut chains: Vec<_> = lines.iter().map(|line| figures::chain(&messages, line, &context)).collect();
        self.environment.settle(&info.hosts());
        let mut names = Names::default();
        let own_spans: Vec<Option<Spans>> = lines.iter().map(|line| spans_of(line, &messages)).collect();
        let of_source = |line: &ChainLine| Some(linked.spans_for(*line.points.first()?, context.points));
        let with_own = lines.iter().zip(&own_spans);
        let spans: Vec<&Spans> =
            with_own.map(|(line, own)| own.as_ref().or_else(|| of_source(line)).unwrap_or(&linked.spans)).collect();
        let mut walker = Walker {
            timelines: &timelines,
            objects: &objects,
            futexes: &futexes,
            environment: &self.environment,
            spans: &linked.spans,
            holds: &linked.holds,
            sent: &linked.sent,
            names: &mut names,
            receivers: Default::default(),
            shared: Default::default(),
            at_hop: 0,
            since_ns: 0,
            busy: Default::default(),
            verbose: false,
            sums_blocks: false,
        };
        explain_all(&mut chains, &lines, &spans, &messages, &context, &mut walker, &self.config.explain, sink)?;
        let mut loops =
            loops::of(&linked.loops, &chains, &lines, &spans, &messages, &context, &mut walker, &self.config.explain);
        let waking = loops::waking(&linked.waking, &context);
        order::sort(&mut chains, &mut loops);
        let mut notes = notes::of_recording(&info, ending.as_ref(), &totals, &messages, &lines);
        notes.extend(notes::between_hosts(&info, &chains));
        notes.extend(timelines.gaps(&objects));
        let ways = chains.iter().max_by_key(|chain| chain.messages).map_or(&[][..], |chain| chain.series.as_slice());
        notes.extend(self.environment.notes(start_ns, ways, &info.hosts()));
        totals.cpu_pressure = self.environment.cpu_pressure();
        notes.extend(chains.iter().flat_map(notes::of_chain));
        notes.extend(wakeups::beside(&chains));
        notes.append(&mut linked.notes);
        notes.extend(ending.iter().flat_map(|ending| ending.notes.iter().cloned()));
        let profile = Some(self.stacks.profile(None)).filter(|profile| profile.samples + profile.lost > 0);
        linked.histograms.iter().for_each(|histogram| self.histograms.take(histogram));
        let histograms = self.histograms.finish();
        Ok(Analysis {
            info,
            ending,
            totals,
            chains,
            loops,
            waking,
            signals,
            tracking,
            telemetry,
            points,
            histograms,
            ros: linked.ros.take(),
            profile,
            damage,
            notes,
        })
    }

    fn frequencies(&mut self, batch: &KernelBatch) {
        let changes = batch.event.iter().enumerate().filter(|(_, event)| **event == KernelEvent::CpuFrequency as u8);
        changes.for_each(|(at, _)| self.environment.frequency(batch.arg1[at], batch.time_ns[at], batch.arg0[at]));
    }
}

/// Why there may be nothing.
fn hint(info: &Info) -> String {
    match info.tier {
        Tier::Stamps if !info.tier_reason.is_empty() => {
            format!("of a program that stamps nothing only kernel events say something; {}", info.tier_reason)
        }
        _ => "did the command stamp, and was it started by `taut record` (or with TAUT_SESSION set)?".into(),
    }
}

/// When the recording begins and ends.
fn span(
    info: &Info,
    ending: Option<&Ending>,
    linked: &Linked,
    timelines: &Timelines,
    telemetry: &Channels,
) -> (u64, u64) {
    let passed = linked.passes.iter().filter(|pass| !pass.point.is_due());
    let first_ns = passed.map(|pass| pass.time_ns).min().unwrap_or(info.start_monotonic_ns);
    let to_monotonic =
        |log_ns: u64| log_ns.saturating_sub(info.start_realtime_ns).saturating_add(info.start_monotonic_ns);
    let told_ns = telemetry.ends_ns().map(to_monotonic).max().unwrap_or(0);
    let last_ns = linked.passes.iter().map(|pass| pass.time_ns).max().unwrap_or(0).max(timelines.end_ns).max(told_ns);
    let start_ns = if info.start_monotonic_ns == 0 { first_ns } else { first_ns.min(info.start_monotonic_ns) };
    (start_ns, ending.map_or(last_ns, |ending| ending.end_monotonic_ns.max(last_ns)))
}

fn totals(counts: &Counts, context: &Context<'_>) -> Totals {
    Totals {
        duration_s: context.end_ns.saturating_sub(context.start_ns) as f64 / 1e9,
        start_monotonic_ns: context.start_ns,
        stamps: counts.stamps,
        lost_stamps: counts.lost_stamps.count,
        lost_stamps_is_estimate: counts.lost_stamps.is_estimate,
        ros_events: counts.ros_events,
        lost_ros_events: counts.lost_ros_events.count,
        lost_ros_events_is_estimate: counts.lost_ros_events.is_estimate,
        kernel_events: counts.kernel_events,
        lost_kernel_events: counts.lost_kernel_events.count,
        lost_kernel_events_is_estimate: counts.lost_kernel_events.is_estimate,
        ..Totals::default()
    }
}

fn signals_of(linked: &mut Linked, context: &Context<'_>) -> Vec<Signal> {
    let values = std::mem::take(&mut linked.values);
    let since_start = |time_ns: u64| time_ns.saturating_sub(context.start_ns);
    signals::signals(values.into_iter().map(|of| (context.name(of.signal), since_start(of.time_ns), of.value)))
}

/// What a speed guard said in values of these names; `None` where none was armed.
fn trips(linked: &Linked, context: &Context<'_>) -> Option<Trips> {
    let times = |name: &str| -> u64 {
        // In a joined recording names begin with their host's.
        let of_name = context.points.iter().filter(|(_, known)| known.rsplit(':').next() == Some(name));
        let ids: Vec<PointId> = of_name.map(|(id, _)| id).collect();
        linked.values.iter().filter(|value| ids.contains(&value.signal)).count() as u64
    };
    (times("guard.armed") > 0).then(|| Trips { all: times("guard.trip"), false_ones: times("guard.false_trip") })
}

/// What the time was spent on, chain by chain, and every row to `sink`.
#[expect(clippy::too_many_arguments, reason = "what is looked at, what is looked with, and where it goes")]
fn explain_all<'a>(
    chains: &mut [Chain],
    lines: &[ChainLine],
    spans: &[&'a Spans],
    messages: &Messages,
    context: &Context<'_>,
    walker: &mut Walker<'a>,
    wanted: &ExplainOptions,
    mut sink: Option<&mut dyn RowSink>,
) -> Result<(), Error> {
    let probes: Vec<i32> = chains
        .iter()
        .zip(lines)
        .filter(|(chain, _)| wanted.sides && wakeups::is_probe(chain))
        .flat_map(|(_, line)| processes_of(line, messages, context.objects))
        .collect();
    let mut refused = Vec::new();
    let all_spans = walker.spans;
    for ((chain, line), own) in chains.iter_mut().zip(lines).zip(spans) {
        walker.spans = own;
        let sink: Option<&mut dyn RowSink> = match &mut sink {
            Some(sink) => Some(&mut **sink),
            None => None,
        };
        refused.extend(explain::explain(chain, messages, line, context, walker, wanted, &probes, sink));
    }
    walker.spans = all_spans;
    // A loop that is found by kernel events has its own.
    for (chain, line) in chains.iter_mut().zip(lines).filter(|(_, line)| line.kind.is_none() && !wanted.only_rows) {
        walker.verbose = false;
        chain.starts = starts::of(line, messages, context, walker);
    }
    if let Some(sink) = sink {
        rows::of_threads(walker.timelines, context.objects, sink);
    }
    // A factor may exist in one chain only; one that no chain has is a mistake.
    for word in wanted.hypotheses.iter().chain(wanted.without.iter().flatten()) {
        let is_it = |error: &Error| matches!(error, Error::UnknownFactor { factor, .. } if factor == word);
        if refused.iter().filter(|error| is_it(error)).count() == chains.len()
            && let Some(at) = refused.iter().position(is_it)
        {
            return Err(refused.swap_remove(at));
        }
    }
    let explained = |id: &u64| chains.iter().any(|c| c.explained.paths.iter().any(|p| p.time.id == *id));
    match wanted.messages.iter().find(|id| !explained(id)) {
        Some(id) => Err(Error::UnknownMessage { id: *id }),
        None => Ok(()),
    }
}

/// The period of a loop that keeps a schedule.
fn schedule(line: &ChainLine, loops: &[taut_points::Loop]) -> Option<u64> {
    let Some(RouteKind::Loop(at)) = line.kind else { return None };
    loops.get(at).filter(|found| found.evidence == LoopEvidence::AbsoluteTimer).map(|found| found.period_ns)
}

/// What threads are busy with, for a chain that kernel events alone show: with its own messages.
fn spans_of(line: &ChainLine, messages: &Messages) -> Option<Spans> {
    line.kind?;
    let of_line = messages.iter().filter(|(_, passes)| line.family.contains(&passes[0].point));
    Some(Spans::of_messages(of_line.flat_map(|(_, passes)| passes.iter().copied())))
}

/// Processes that stamped a line's messages.
fn processes_of(line: &ChainLine, messages: &Messages, objects: &Objects) -> Vec<i32> {
    let of_line = messages.iter().filter(|(_, passes)| line.family.contains(&passes[0].point));
    let mut tids: Vec<i32> = of_line.flat_map(|(_, passes)| passes).map(|pass| pass.thread).collect();
    tids.sort_unstable();
    tids.dedup();
    tids.into_iter().filter_map(|tid| objects.pid(tid)).collect()
}
