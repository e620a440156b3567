//! All streams of all traces below a folder, in order of time.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    path::{Path, PathBuf},
};

use super::{
    description::{Clock, Description, Wanted},
    stream::{Event, Stream, Teller},
};
use crate::Error;

/// Folders in folders: lttng-ust/ust/uid/1000/64-bit has five.
const MOST_DEPTH: usize = 16;
/// More streams than this are opened and closed for each packet.
const MOST_FILES: usize = 400;
/// Clocks of one boot, whose offsets to 1970 were taken one after the other, are less apart.
const SAME_CLOCK_NS: i128 = 1_000_000_000;

/// What is below a folder.
pub(crate) struct Traces {
    traces: Vec<Trace>,
    /// In all streams' files.
    pub bytes: u64,
}

struct Trace {
    description: Description,
    files: Vec<PathBuf>,
    /// From its clock to that of the first trace.
    shift_ns: i64,
    /// Number of the machine that it was recorded on.
    host: u16,
}

/// Something that the tracer lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub time_ns: u64,
    pub is_kernel: bool,
    pub cpu: u32,
    pub events: u64,
}

/// What one reading of all streams found besides events.
#[derive(Default)]
pub(crate) struct Reading {
    pub damage: Vec<String>,
    pub losses: Vec<Loss>,
    pub missing_packets: u64,
}

/// Where an event is from.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    /// On the first trace's clock, in nanoseconds.
    pub time_ns: u64,
    /// Machine.
    pub host: u16,
    /// Stream, from 0; each has events of one CPU.
    pub stream: u32,
}

impl Traces {
    /// Finds the traces at or below `path`.
    pub fn find(path: &Path, wanted: &dyn Wanted) -> Result<Traces, Error> {
        let root = if path.file_name().is_some_and(|name| name == "metadata") { path.parent() } else { Some(path) };
        let root = root.unwrap_or(path);
        let mut folders = Vec::new();
        folders_with_metadata(root, MOST_DEPTH, &mut folders)?;
        if folders.is_empty() {
            let why = "there is no file \"metadata\" in it".to_owned();
            return Err(Error::Foreign { kind: "CTF trace", why, writer: "LTTng or another tracer" });
        }
        folders.sort();
        let mut traces: Vec<Trace> = Vec::new();
        let mut hosts: Vec<String> = Vec::new();
        let mut bytes = 0;
        for folder in folders {
            let description = Description::read(&folder.join("metadata"), wanted)?;
            let files = files(&folder)?;
            for file in &files {
                bytes += std::fs::metadata(file)?.len();
            }
            let host = hosts.iter().position(|host| *host == description.host).unwrap_or(hosts.len());
            if host == hosts.len() {
                hosts.push(description.host.clone());
            }
            let shift_ns = traces.first().map_or(0, |first| shift(&first.description.clock, &description.clock));
            traces.push(Trace { description, files, shift_ns, host: host as u16 });
        }
        Ok(Traces { traces, bytes })
    }

    /// From 1970 to the zero of the clock that all times are of.
    pub fn offset_ns(&self) -> i128 {
        self.traces.first().map_or(0, |trace| trace.description.clock.offset_ns)
    }

    /// The first machine's name.
    pub fn host(&self) -> &str {
        self.traces.first().map_or("", |trace| trace.description.host.as_str())
    }

    /// How many machines they were recorded on.
    pub fn hosts(&self) -> usize {
        self.traces.iter().map(|trace| usize::from(trace.host) + 1).max().unwrap_or(0)
    }

    /// Reads all events in order of time. `progress` gets the bytes done.
    pub fn read(
        &self,
        each: &mut dyn FnMut(Source, &Event<'_>) -> Result<(), Error>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Reading, Error> {
        let mut reading = Reading::default();
        let mut streams = Vec::new();
        for trace in &self.traces {
            for file in &trace.files {
                streams.push((trace, Stream::open(file, &trace.description)?));
            }
        }
        let releases = streams.len() > MOST_FILES;
        let mut heap = BinaryHeap::new();
        for (at, (trace, stream)) in streams.iter_mut().enumerate() {
            let trace: &Trace = trace;
            let mut told = Told { reading: &mut reading, trace };
            if stream.next_packet(&trace.description, &mut told)? {
                heap.push(Reverse((trace.time_ns(stream.clock), at, false)));
            }
            if releases {
                stream.release();
            }
        }
        let (mut done, mut told_done) = (0, 0);
        // Of each stream that has something left: when that is, and whether it is an event that was read, or a packet.
        while let Some(mut top) = heap.peek_mut() {
            let Reverse((time_ns, at, is_event)) = *top;
            let (trace, stream) = &mut streams[at];
            let trace: &Trace = trace;
            if is_event && let Some(event) = stream.current(&trace.description) {
                each(Source { time_ns, host: trace.host, stream: at as u32 }, &event)?;
            }
            let mut told = Told { reading: &mut reading, trace };
            if stream.next_event(&trace.description, &mut told)? {
                *top = Reverse((trace.time_ns(stream.clock), at, true));
                continue;
            }
            let before = stream.done();
            let goes_on = stream.next_packet(&trace.description, &mut told)?;
            if goes_on {
                *top = Reverse((trace.time_ns(stream.clock), at, false));
            } else {
                std::collections::binary_heap::PeekMut::pop(top);
            }
            if releases {
                stream.release();
            }
            done += stream.done() - before;
            if done >= told_done + (1 << 20) {
                told_done = done;
                progress(done);
            }
        }
        Ok(reading)
    }
}

impl Trace {
    #[inline]
    fn time_ns(&self, clock: u64) -> u64 {
        let hertz = self.description.clock.hertz;
        let time_ns = match hertz {
            1_000_000_000 => clock,
            _ => (u128::from(clock) * 1_000_000_000 / u128::from(hertz)) as u64,
        };
        time_ns.saturating_add_signed(self.shift_ns)
    }
}

/// What to add to a trace's times for those of the first trace. Traces of one boot tell one clock, whatever the offsets
/// to 1970 that were taken with each; those of several machines are brought together by that offset.
fn shift(first: &Clock, this: &Clock) -> i64 {
    let apart = this.offset_ns - first.offset_ns;
    let is_same = (!this.uuid.is_empty() && this.uuid == first.uuid) || apart.abs() < SAME_CLOCK_NS;
    if is_same { 0 } else { i64::try_from(apart).unwrap_or(0) }
}

struct Told<'a> {
    reading: &'a mut Reading,
    trace: &'a Trace,
}

/// A file of noise must not fill the memory with sentences.
const MOST_TOLD: usize = 1000;

impl Teller for Told<'_> {
    fn damage(&mut self, sentence: String) {
        if self.reading.damage.len() < MOST_TOLD {
            self.reading.damage.push(sentence);
        }
    }

    fn discarded(&mut self, events: u64, cpu: u32, clock: u64) {
        let is_kernel = self.trace.description.domain == "kernel";
        let time_ns = self.trace.time_ns(clock);
        let losses = &mut self.reading.losses;
        let has_room = losses.len() < MOST_TOLD;
        match losses.last_mut() {
            Some(last) if !has_room => last.events += events,
            _ => losses.push(Loss { time_ns, is_kernel, cpu, events }),
        }
    }

    fn missing_packets(&mut self, count: u64) {
        self.reading.missing_packets += count;
    }
}

fn folders_with_metadata(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    if folder.join("metadata").is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // Not through links, which may lead in circles.
        if entry.file_type()?.is_dir() {
            folders_with_metadata(&entry.path(), depth - 1, found)?;
        }
    }
    Ok(())
}

/// The streams of one trace: every file beside the metadata but hidden ones. (LTTng's index is a folder.)
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_hidden = name.to_string_lossy().starts_with('.');
        if entry.file_type()?.is_file() && name != "metadata" && !is_hidden {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
