//! Chrome's trace event format (JSON), which Perfetto, VizTracer, PyTorch and many others write: slices of threads become
//! marks of work and a distribution of durations each, flow events become messages through the slices that they bind to,
//! asynchronous events messages from their begin to their end.
//!
//! The file is read twice, a record at a time: flows and the beginning of time first, then everything. Which slice a flow
//! binds to may be anywhere in the file, before it or after; so flows are what is kept (`flows`), not slices.

mod event;
mod flows;
mod slices;

use std::{
    collections::HashMap,
    fs::File,
    io::{BufReader, Read},
    path::Path,
};

use flate2::read::MultiGzDecoder;
use taut_recording::Kind;

use crate::{
    Error, Imported,
    writing::{Import, Row},
};
use event::{Args, End, Event, Scalar};
use flows::{Binding, Flow, Flows};
use slices::Slices;

/// Slices, flows and counters may have so many names; the rest share one.
const MOST_NAMES: usize = 50_000;
const REST: &str = "(more names)";
/// Threads whose numbers are none, or too large, get numbers from here on.
const MADE_UP_ID: i32 = 1 << 30;
const MOST_THREADS: usize = 20_000;
/// A message's number stands in the lower bits of its id, its category above.
const CATEGORY_SHIFT: u32 = 48;

/// Imports the trace at `path`, plain or compressed with gzip, into a recording at `to`.
///
/// # Errors
/// It is no such trace, or the recording cannot be written. Then there is no recording.
pub fn import(path: &Path, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<Imported, Error> {
    let length = std::fs::metadata(path)?.len();
    // Two passes, half of the way each.
    let mut open = || Ok(Box::new(File::open(path)?) as Box<dyn Read>);
    import_from(&mut open, to, &mut |pass, at| progress((pass * length + at) / 2))
}

/// Opens the trace from its beginning.
type Open<'a> = &'a mut dyn FnMut() -> std::io::Result<Box<dyn Read>>;

/// Imports a trace that can be opened twice. `progress` gets the pass, 0 or 1, and bytes of it.
///
/// # Errors
/// As [`import`].
pub fn import_from(open: Open<'_>, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Imported, Error> {
    let mut trace = Trace::default();
    let mut start_ns = None;
    let mut told = |at| progress(0, at);
    event::read(plain(open()?, &mut told)?, &mut |event| {
        if let Some(ns) = event.time_ns().filter(|_| event.phase() != 'M') {
            start_ns = Some(start_ns.map_or(ns, |start: u64| start.min(ns)));
        }
        trace.find_flow(&event);
        Ok(())
    })?;
    let Some(start_ns) = start_ns else {
        return Err(Error::Empty("no event with a time".to_owned()));
    };
    trace.flows.sort();
    let mut import = Import::begin(to, "chrome", start_ns)?;
    let mut told = |at| progress(1, at);
    let end = event::read(plain(open()?, &mut told)?, &mut |event| trace.take(event, &mut import))?;
    match end {
        End::Whole => {}
        End::Cut => import.note("the trace ends within its list of events, as the format allows".to_owned()),
        End::Broken(why) => import.damage(format!("the JSON is broken: {why}; what follows was left out")),
    }
    trace.finish(import)
}

/// Without its compression; and refused if it is another kind.
fn plain<'a>(mut source: Box<dyn Read>, progress: &'a mut dyn FnMut(u64)) -> Result<Box<dyn Read + 'a>, Error> {
    let mut head = Vec::new();
    (&mut source).take(4096).read_to_end(&mut head)?;
    let whole = Told { source: std::io::Cursor::new(head.clone()).chain(source), at: 0, told: 0, progress };
    if head.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = MultiGzDecoder::new(whole);
        let mut head = Vec::new();
        (&mut unpacked).take(4096).read_to_end(&mut head)?;
        refuse_others(&head)?;
        return Ok(Box::new(BufReader::with_capacity(1 << 18, std::io::Cursor::new(head).chain(unpacked))));
    }
    refuse_others(&head)?;
    Ok(Box::new(BufReader::with_capacity(1 << 18, whole)))
}

fn refuse_others(head: &[u8]) -> Result<(), Error> {
    // A TracePacket, field 1 of Perfetto's Trace message, begins with what is a line's end elsewhere; text has no
    // such bytes as follow it.
    if head.first() == Some(&0x0a) && head.iter().take(64).any(|byte| *byte < b'\t') {
        return Err(Error::Instead(
            "is a Perfetto protobuf trace; make JSON of it with `traceconv json IN OUT.json` (get.perfetto.dev/traceconv)"
                .to_owned(),
        ));
    }
    match head.trim_ascii_start().first() {
        Some(b'[' | b'{') => Ok(()),
        Some(b'<') => Err(Error::Instead("is an HTML page; save the trace that it shows as JSON".to_owned())),
        _ => Err(Error::Foreign {
            kind: "trace in Chrome's JSON",
            why: "it begins with neither [ nor {".to_owned(),
            writer: "chrome://tracing, traceconv json or VizTracer",
        }),
    }
}

/// Counts what is read.
struct Told<'a, R> {
    source: R,
    at: u64,
    told: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl<R: Read> Read for Told<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = self.source.read(into)?;
        self.at += length as u64;
        if self.at >= self.told + (1 << 20) {
            self.told = self.at;
            (self.progress)(self.at);
        }
        Ok(length)
    }
}

/// What is known of a trace.
#[derive(Default)]
struct Trace {
    flows: Flows,
    slices: Slices,
    /// By process and thread as the file has them.
    threads: HashMap<(Scalar, Scalar), Thread>,
    names: HashMap<String, u32>,
    /// By their numbers.
    texts: Vec<String>,
    /// Their numbers in the recording, by those here; 0 for those that it has not.
    recorded: Vec<u32>,
    categories: HashMap<String, u64>,
    /// Names of processes and threads.
    processes: HashMap<Scalar, String>,
    /// Events that say nothing of time, by phase.
    left_out: HashMap<char, u64>,
    astray: u64,
    messages: u64,
}

#[derive(Clone, Copy)]
struct Thread {
    index: u32,
    ids: (i32, i32),
}

impl Trace {
    /// First pass: keeps a flow event.
    fn find_flow(&mut self, event: &Event) {
        let binding = match event.phase() {
            's' | 't' => Binding::Enclosing,
            'f' if event.binds_to_enclosing => Binding::Enclosing,
            'f' => Binding::Next,
            _ => return,
        };
        // One without a time is counted by the second pass.
        let Some(time_ns) = event.time_ns() else { return };
        let Some(id) = self.message_id(event, "flow") else {
            self.astray += 1;
            return;
        };
        let name = self.name(event.name());
        if let Some(thread) = self.thread(event) {
            self.flows.add(thread.index, Flow::new(time_ns, id, name, binding));
        }
    }

    /// Second pass.
    fn take(&mut self, event: Event, import: &mut Import) -> Result<(), Error> {
        let phase = event.phase();
        if phase == 'M' {
            return self.metadata(&event, import);
        }
        let (Some(time_ns), Some(thread)) = (event.time_ns(), self.thread(&event)) else {
            self.astray += 1;
            return Ok(());
        };
        match phase {
            'X' | 'B' => {
                let name = self.name(event.name());
                let end_ns = match phase {
                    'X' => Some(time_ns.saturating_add(event.duration_ns())),
                    _ => None,
                };
                // Chrome's second form of flows: the slice itself is a step of one.
                if let Some(id) = event.bound_id().map(|bound| self.id_of("flow", "", bound)) {
                    let point = self.recorded(name, import)?;
                    self.messages += 1;
                    import.stamp(thread.ids, Kind::Stamp, Row { time_ns, id, point, value: 0 })?;
                }
                self.begin(thread, name, time_ns, end_ns, import)?;
            }
            'E' => self.end(thread, time_ns, import)?,
            's' | 't' | 'f' => {}
            'b' | 'n' | 'e' | 'S' | 'T' | 'p' | 'F' => {
                let Some(id) = self.message_id(&event, "async") else {
                    self.astray += 1;
                    return Ok(());
                };
                let step = match phase {
                    'b' | 'S' => " begin",
                    'e' | 'F' => " end",
                    _ => "",
                };
                let name = self.name(&format!("{}{step}", event.name()));
                let point = self.recorded(name, import)?;
                self.messages += 1;
                import.stamp(thread.ids, Kind::Stamp, Row { time_ns, id, point, value: 0 })?;
            }
            'C' => {
                for (key, value) in &event.args.numbers {
                    let name = self.name(&format!("{}.{key}", event.name()));
                    let point = self.recorded(name, import)?;
                    import.stamp(thread.ids, Kind::Value, Row { time_ns, id: 0, point, value: value.to_bits() })?;
                }
            }
            other => *self.left_out.entry(other).or_default() += 1,
        }
        Ok(())
    }

    /// `process_name` and `thread_name`.
    fn metadata(&mut self, event: &Event, import: &mut Import) -> Result<(), Error> {
        let Args { name: Some(name), .. } = &event.args else { return Ok(()) };
        match event.name() {
            "process_name" if self.processes.len() < MOST_THREADS => {
                self.processes.insert(event.pid.clone(), name.clone());
            }
            "thread_name" => {
                let process = self.processes.get(&event.pid).cloned().unwrap_or_default();
                if let Some(thread) = self.thread(event) {
                    import.thread(thread.ids.0, thread.ids.1, name, &process)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A slice begins; one whose end is known is bound at once.
    fn begin(
        &mut self,
        thread: Thread,
        name: u32,
        time_ns: u64,
        end_ns: Option<u64>,
        import: &mut Import,
    ) -> Result<(), Error> {
        for ended in self.slices.ended_by(thread.index, time_ns) {
            let point = self.recorded(ended.name, import)?;
            import.stamp(thread.ids, Kind::End, Row { time_ns: ended.end_ns, id: 0, point, value: 0 })?;
        }
        let point = self.recorded(name, import)?;
        import.stamp(thread.ids, Kind::Begin, Row { time_ns, id: 0, point, value: 0 })?;
        self.flows.begins(thread.index, name, time_ns);
        if let Some(end_ns) = end_ns {
            self.flows.covers(thread.index, name, time_ns, end_ns);
            self.slices.lasted(name, end_ns - time_ns);
        }
        self.slices.open(thread.index, name, time_ns, end_ns);
        Ok(())
    }

    /// The innermost slice without an end ends.
    fn end(&mut self, thread: Thread, time_ns: u64, import: &mut Import) -> Result<(), Error> {
        for ended in self.slices.ended_by(thread.index, time_ns) {
            let point = self.recorded(ended.name, import)?;
            import.stamp(thread.ids, Kind::End, Row { time_ns: ended.end_ns, id: 0, point, value: 0 })?;
        }
        let Some((name, begin_ns)) = self.slices.close(thread.index) else {
            self.astray += 1;
            return Ok(());
        };
        let point = self.recorded(name, import)?;
        import.stamp(thread.ids, Kind::End, Row { time_ns, id: 0, point, value: 0 })?;
        self.flows.covers(thread.index, name, begin_ns, time_ns);
        self.slices.lasted(name, time_ns.saturating_sub(begin_ns));
        Ok(())
    }

    fn finish(mut self, mut import: Import) -> Result<Imported, Error> {
        let ids: HashMap<u32, (i32, i32)> = self.threads.values().map(|thread| (thread.index, thread.ids)).collect();
        let rest = self.slices.rest();
        let unended = rest.iter().filter(|(_, ended)| ended.is_none()).count();
        for (thread, ended) in rest.into_iter().filter_map(|(thread, ended)| Some((thread, ended?))) {
            let point = self.recorded(ended.name, &mut import)?;
            import.stamp(ids[&thread], Kind::End, Row { time_ns: ended.end_ns, id: 0, point, value: 0 })?;
        }
        let flows = std::mem::take(&mut self.flows);
        let mut unbound = 0_u64;
        for (thread, flow) in flows.iter() {
            self.messages += 1;
            unbound += u64::from(flow.slice().is_none());
            let point = self.recorded(flow.slice().unwrap_or(flow.name()), &mut import)?;
            import.stamp(ids[&thread], Kind::Stamp, Row { time_ns: flow.time_ns, id: flow.id, point, value: 0 })?;
        }
        for (name, durations) in self.slices.durations() {
            import.histogram(crate::histogram::durations(&self.texts[name as usize], durations))?;
        }
        if self.messages == 0 {
            import.note("the trace has no flow and no asynchronous events, so no message can be followed".to_owned());
        }
        if unbound > 0 {
            import.note(format!("{unbound} flow events lie in no slice; their points have the flow's own name"));
        }
        if flows.left_out > 0 {
            import.damage(format!("{} flow events beyond the first {} were left out", flows.left_out, flows::MOST));
        }
        if unended > 0 {
            import.note(format!("{unended} slices begin and do not end"));
        }
        if self.astray > 0 {
            import
                .note(format!("{} events have no time, no thread, no id or no begin, and were left out", self.astray));
        }
        let mut left_out: Vec<(char, u64)> = self.left_out.into_iter().collect();
        left_out.sort_unstable();
        for (phase, n) in left_out.into_iter().take(20) {
            let what = match phase {
                'i' | 'I' | 'R' => "instant events and marks",
                'P' => "samples",
                'N' | 'O' | 'D' => "events of objects",
                'V' | 'v' => "memory dumps",
                'c' => "clock synchronisations",
                _ => "events",
            };
            import.note(format!("{n} {what} (phase {phase:?}) have no place in a recording and were left out"));
        }
        import.finish()
    }

    fn thread(&mut self, event: &Event) -> Option<Thread> {
        let key = (event.pid.clone(), event.tid.clone());
        if let Some(thread) = self.threads.get(&key) {
            return Some(*thread);
        }
        if self.threads.len() >= MOST_THREADS {
            return None;
        }
        let index = self.threads.len() as u32;
        let number =
            |of: &Scalar| of.whole().and_then(|n| i32::try_from(n).ok()).filter(|n| (1..MADE_UP_ID).contains(n));
        let made_up = MADE_UP_ID + index as i32;
        // A thread's number alone tells it in a recording, so no two may share one.
        let tid =
            number(&key.1).filter(|tid| self.threads.values().all(|other| other.ids.1 != *tid)).unwrap_or(made_up);
        let thread = Thread { index, ids: (number(&key.0).unwrap_or(made_up), tid) };
        self.threads.insert(key, thread);
        Some(thread)
    }

    /// A name's number here.
    fn name(&mut self, name: &str) -> u32 {
        if let Some(at) = self.names.get(name) {
            return *at;
        }
        let name = if self.texts.len() < MOST_NAMES { name } else { REST };
        let next = self.texts.len() as u32;
        *self.names.entry(name.to_owned()).or_insert_with(|| {
            self.texts.push(name.to_owned());
            next
        })
    }

    /// A name's number in the recording.
    fn recorded(&mut self, name: u32, import: &mut Import) -> Result<u32, Error> {
        self.recorded.resize(self.texts.len(), 0);
        let (recorded, text) = (&mut self.recorded[name as usize], &self.texts[name as usize]);
        if *recorded == 0 {
            *recorded = import.name(text)?;
        }
        Ok(*recorded)
    }

    /// The id of what a flow or asynchronous event is of.
    fn message_id(&mut self, event: &Event, what: &str) -> Option<u64> {
        let id = event.id()?.clone();
        Some(self.id_of(what, event.category(), &id))
    }

    /// Equal ids are of one message if they are of one category.
    fn id_of(&mut self, what: &str, category: &str, id: &Scalar) -> u64 {
        let next = self.categories.len() as u64;
        let key = format!("{what}:{category}");
        let known = self.categories.get(&key).copied();
        let category = known.unwrap_or_else(|| {
            // Of categories beyond what the bits can tell, ids may fall together; nobody has so many.
            if self.categories.len() < MOST_NAMES {
                self.categories.insert(key, next);
            }
            next
        });
        category << CATEGORY_SHIFT ^ id.number()
    }
}
