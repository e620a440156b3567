//! The source of what programs stamp: the passes are there, only their times are counters' ticks.

use foldhash::HashMap;
use taut_recording::{Kind, Record, StampBatch};
use taut_timelines::SAME_CLOCK_NS;

use crate::{
    linked::{Linked, Value},
    point::{Pass, PointId},
    scene::Scene,
    source::Source,
    source_kind::SourceKind,
    span::Mark,
};

/// Stamps, marks and values until their clocks are known.
#[derive(Default)]
pub struct Stamps {
    /// Until they are linked: times are ticks, threads are indices.
    passes: Vec<Pass>,
    threads: Vec<ThreadKey>,
    thread_index: HashMap<ThreadKey, i32>,
    marks: Vec<RawMark>,
    values: Vec<RawValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ThreadKey {
    pid: i32,
    tid: i32,
    counter: u8,
}

/// A stamp that is no message's, until the clocks are mapped and the names known.
struct RawMark {
    ticks: u64,
    /// Index of the thread.
    thread: i32,
    kind: Kind,
    name: u32,
}

/// A signal's value.
struct RawValue {
    ticks: u64,
    counter: u8,
    name: u32,
    value: f64,
}

impl Source for Stamps {
    fn kind(&self) -> SourceKind {
        SourceKind::Stamps
    }

    fn record(&mut self, record: &Record) {
        if let Record::Stamps(batch) = record {
            self.take(batch);
        }
    }

    fn link(&mut self, scene: &Scene<'_>, out: &mut Linked) {
        out.counters.extend(self.threads.iter().map(|thread| thread.counter));
        self.name_due_moments(out);
        self.map_clocks(scene, out);
        for mark in std::mem::take(&mut self.marks) {
            let ThreadKey { tid, counter, .. } = self.threads[mark.thread as usize];
            if let Some(time_ns) = scene.clocks.time_ns(counter, mark.ticks) {
                let name = out.points.name(PointId::of_name(mark.name));
                out.spans.mark(tid, Mark { time_ns, kind: mark.kind, name });
            }
        }
        out.values.extend(std::mem::take(&mut self.values).into_iter().filter_map(|raw| {
            let time_ns = scene.clocks.time_ns(raw.counter, raw.ticks)?;
            Some(Value { signal: PointId::of_name(raw.name), time_ns, value: raw.value })
        }));
        out.take_passes(std::mem::take(&mut self.passes));
    }
}

impl Stamps {
    fn take(&mut self, batch: &StampBatch) {
        let key = ThreadKey { pid: batch.pid, tid: batch.tid, counter: batch.counter };
        let next = self.thread_index.len() as i32;
        let thread = *self.thread_index.entry(key).or_insert_with(|| {
            self.threads.push(key);
            next
        });
        let (marks, values, passes) = (&mut self.marks, &mut self.values, &mut self.passes);
        let stamp = |at: usize| {
            let (ticks, name) = (batch.ticks[at], batch.point[at]);
            let point = match Kind::from_number(batch.kind[at])? {
                Kind::Stamp => PointId::of_name(name),
                Kind::Outcome => PointId::of_outcome(batch.value[at] as u32),
                Kind::Value => {
                    let value = f64::from_bits(batch.value[at]);
                    values.push(RawValue { ticks, counter: batch.counter, name, value });
                    return None;
                }
                // A fact of the process: the intake has it.
                Kind::LockNamed => return None,
                kind => {
                    marks.push(RawMark { ticks, thread, kind, name });
                    return None;
                }
            };
            Some(Pass { message: batch.message_id[at], time_ns: ticks, point, thread })
        };
        for (at, pass) in (0..batch.ticks.len()).map(stamp).enumerate() {
            passes.extend(pass);
            let due = pass.zip(batch.intended_ns(at));
            passes.extend(due.map(|(pass, time_ns)| Pass { time_ns, point: pass.point.as_due(), ..pass }));
        }
    }

    /// Ticks become CLOCK_MONOTONIC in place, and indices of threads their numbers. Stamps of a counter with fewer
    /// than two calibrations have no time: they go, and what is missing is reported.
    fn map_clocks(&mut self, scene: &Scene<'_>, out: &mut Linked) {
        let threads = &self.threads;
        let (mut missing, mut stamped) = (0, None);
        self.passes.retain_mut(|pass| {
            let thread = threads[pass.thread as usize];
            let time_ns = match pass.point.is_due() {
                // Behind its stamp. A program that is early is on time.
                true => stamped
                    .filter(|stamped| pass.time_ns.abs_diff(*stamped) < SAME_CLOCK_NS)
                    .map(|at| pass.time_ns.min(at)),
                false => {
                    stamped = scene.clocks.time_ns(thread.counter, pass.time_ns);
                    missing += u64::from(stamped.is_none());
                    stamped
                }
            };
            (pass.time_ns, pass.thread) = (time_ns.unwrap_or(0), thread.tid);
            time_ns.is_some()
        });
        if missing > 0 {
            out.damage.push(format!(
                "{missing} stamps have no time: the counter that they were read from was compared with the clock less than \
                 twice"
            ));
        }
    }

    /// The moments at which messages were due are points, too.
    fn name_due_moments(&self, out: &mut Linked) {
        let mut points: Vec<PointId> =
            self.passes.iter().map(|pass| pass.point).filter(|point| point.is_due()).collect();
        points.sort_unstable();
        points.dedup();
        for due in points {
            if let Some(name) = out.points.known(due.without_due()).map(|name| format!("{name} due")) {
                out.points.insert(due, name);
            }
        }
    }
}
