//! The recording that an importer fills, in a temporary file beside it that replaces it when whole.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use taut_recording::{Ending, Histogram, Info, Kind, Name, Output, Record, StampBatch, Thread, Writer};

use crate::Error;

/// Sentences that are kept of one kind: a file of noise must not fill the memory with them.
const MOST_SENTENCES: usize = 1000;
/// Stamps of a thread that are handed on at once.
const BATCH_ROWS: usize = 1024;
/// Buckets of a histogram that are one record.
const MOST_BUCKETS: usize = 100_000;
/// Names that a recording may have: points, reasons, signals.
const MOST_NAMES: usize = 100_000;
/// Bytes of a name, as the format has it.
const NAME_BYTES: usize = 119;
/// Ticks are ns of the source's one clock.
const COUNTER: u8 = taut_clock::Counter::Monotonic as u8;

/// What came over, and what did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Channels of the recording.
    pub channels: u64,
    /// Messages of all of them.
    pub messages: u64,
    /// Stamps of the recording.
    pub stamps: u64,
    /// ROS 2 events of the recording.
    pub ros_events: u64,
    /// Histograms of the recording.
    pub histograms: u64,
    /// From the first to the last, in nanoseconds.
    pub duration_ns: u64,
    /// Length of the recording.
    pub file_bytes: u64,
    /// What could not be read, a sentence each.
    pub damage: Vec<String>,
    /// What one must know to trust the figures, a sentence each. The recording has them, too.
    pub notes: Vec<String>,
}

/// A recording being filled.
pub(crate) struct Import {
    /// Until the end.
    writer: Option<Writer>,
    /// Nothing half-written is left where it is dropped before the end.
    output: Output,
    to: PathBuf,
    start_ns: u64,
    end_ns: u64,
    done: Imported,
    names: HashMap<String, u32>,
    /// By thread: its stamps to come.
    pending: BTreeMap<(i32, i32), StampBatch>,
    /// Counts of what came as records.
    ending: Ending,
    /// Sentences beyond [`MOST_SENTENCES`].
    unsaid: u64,
}

impl Import {
    /// Starts a recording of what happened from `start_ns` since 1970, or since whatever the source counts from.
    pub fn begin(to: &Path, kind: &str, start_ns: u64) -> Result<Import, Error> {
        Import::begin_with(
            to,
            &Info {
                taut_version: env!("CARGO_PKG_VERSION").to_owned(),
                // The source has one clock.
                start_monotonic_ns: start_ns,
                start_realtime_ns: start_ns,
                facts: vec![("imported_from".to_owned(), kind.to_owned())],
                ..Info::default()
            },
        )
    }

    /// Starts a recording of whose source more is known.
    pub fn begin_with(to: &Path, info: &Info) -> Result<Import, Error> {
        let start_ns = info.start_monotonic_ns;
        let output = Output::open(to)?;
        let mut writer = Writer::create(output.path(), info).map_err(|error| error.at(to))?;
        writer.set_path(to);
        let (to, done) = (to.to_owned(), Imported::default());
        Ok(Import {
            writer: Some(writer),
            output,
            to,
            start_ns,
            end_ns: start_ns,
            done,
            names: HashMap::new(),
            pending: BTreeMap::new(),
            ending: Ending::default(),
            unsaid: 0,
        })
    }

    pub fn channel(&mut self, topic: &str, schema_name: &str, schema: &str) -> Result<u16, Error> {
        self.done.channels += 1;
        let writer = self.writer.as_mut();
        Ok(writer.map_or(Ok(0), |writer| writer.channel(topic, schema_name, schema))?)
    }

    /// Takes a message of that moment (ns since 1970).
    pub fn message(&mut self, channel: u16, time_ns: u64, sequence: u32, data: &[u8]) -> Result<(), Error> {
        self.done.messages += 1;
        self.saw(time_ns);
        if let Some(writer) = &mut self.writer {
            writer.message(channel, time_ns, sequence, |out| out.extend_from_slice(data))?;
            writer.flush_due(time_ns)?;
        }
        Ok(())
    }

    /// The number of a name, given out when it is new.
    ///
    /// # Errors
    /// More names than a recording may have: the source has its figures in its names.
    pub fn name(&mut self, name: &str) -> Result<u32, Error> {
        if let Some(id) = self.names.get(name) {
            return Ok(*id);
        }
        if self.names.len() >= MOST_NAMES {
            return Err(Error::TooMany { what: format!("more than {MOST_NAMES} names, the last of them {name:?}") });
        }
        let id = self.names.len() as u32 + 1;
        self.names.insert(name.to_owned(), id);
        self.write(&Record::Name(Name { id, name: shortened(name) }))?;
        Ok(id)
    }

    /// Says what a thread is called.
    pub fn thread(&mut self, pid: i32, tid: i32, comm: &str, process: &str) -> Result<(), Error> {
        let (comm, cmdline) = (shortened(comm), shortened(process));
        let time_ns = self.start_ns;
        self.write(&Record::Thread(Thread { time_ns, pid, tid, comm, cmdline, recorded: true, start_time: 0 }))
    }

    /// Takes a stamp. `point` and, for an outcome, `value` are numbers of names.
    pub fn stamp(&mut self, thread: (i32, i32), kind: Kind, row: Row) -> Result<(), Error> {
        self.saw(row.time_ns);
        let (pid, tid) = thread;
        let batch = self.pending.entry(thread).or_insert_with(|| StampBatch {
            pid,
            tid,
            counter: COUNTER,
            ..StampBatch::default()
        });
        batch.ticks.push(row.time_ns);
        batch.message_id.push(row.id);
        batch.point.push(row.point);
        batch.kind.push(kind as u8);
        batch.value.push(row.value);
        if batch.ticks.len() >= BATCH_ROWS {
            let full = self.pending.remove(&thread).unwrap_or_default();
            self.write(&Record::Stamps(full))?;
        }
        Ok(())
    }

    /// Takes a record as it is: a batch of stamps or kernel events, a name with its number, a loss.
    pub fn record(&mut self, record: &Record) -> Result<(), Error> {
        self.write(record)
    }

    /// The source goes on up to this moment: chunks that are old by then are closed.
    pub fn until(&mut self, time_ns: u64) -> Result<(), Error> {
        self.saw(time_ns);
        Ok(self.writer.as_mut().map_or(Ok(()), |writer| writer.flush_due(time_ns))?)
    }

    /// Takes a distribution; a large one in pieces, which add up, so that each fits a chunk.
    pub fn histogram(&mut self, mut histogram: Histogram) -> Result<(), Error> {
        self.done.histograms += 1;
        loop {
            let rest = histogram.count.len().min(MOST_BUCKETS);
            let (from, to, count) =
                (histogram.from.split_off(rest), histogram.to.split_off(rest), histogram.count.split_off(rest));
            let (name, unit) = (histogram.name.clone(), histogram.unit.clone());
            self.write(&Record::Histogram(histogram))?;
            if count.is_empty() {
                return Ok(());
            }
            // Minimum, maximum and overflow are told once.
            histogram = Histogram { name, unit, from, to, count, ..Histogram::default() };
        }
    }

    pub fn damage(&mut self, sentence: String) {
        if self.done.damage.len() < MOST_SENTENCES {
            self.done.damage.push(sentence);
        } else {
            self.unsaid += 1;
        }
    }

    /// What one must know to trust the figures.
    pub fn note(&mut self, sentence: String) {
        if self.done.notes.len() < MOST_SENTENCES {
            self.done.notes.push(sentence);
        } else {
            self.unsaid += 1;
        }
    }

    /// Puts the recording in its place.
    pub fn finish(mut self) -> Result<Imported, Error> {
        for batch in std::mem::take(&mut self.pending).into_values() {
            self.write(&Record::Stamps(batch))?;
        }
        if self.unsaid > 0 {
            self.done.notes.push(format!("{} more sentences like these were left out", self.unsaid));
        }
        let said = self.done.damage.iter().zip(1..).map(|(damage, n)| (format!("damage_{n:04}"), damage.clone()));
        let said = said.collect();
        let mut notes = self.done.notes.clone();
        if let Some(first) = self.done.damage.first() {
            let n = self.done.damage.len();
            let places = if n == 1 { "1 place".to_owned() } else { format!("{n} places") };
            notes.push(format!("{places} of the imported file could not be read; the first: {first}"));
        }
        let ending = Ending {
            end_monotonic_ns: self.end_ns,
            telemetry: self.done.messages,
            reason: "imported".to_owned(),
            notes,
            ..std::mem::take(&mut self.ending)
        };
        if let Some(mut writer) = self.writer.take() {
            if !self.done.damage.is_empty() {
                writer.metadata("taut.imported", said)?;
            }
            self.done.file_bytes = writer.finish(&ending)?;
        }
        (self.done.stamps, self.done.ros_events) = (ending.stamps, ending.ros_events);
        self.done.duration_ns = self.end_ns - self.start_ns;
        let placed = self.output.put_in_place();
        placed.map_err(|source| taut_recording::Error::Io { path: self.to.clone(), source })?;
        Ok(std::mem::take(&mut self.done))
    }

    fn saw(&mut self, time_ns: u64) {
        self.start_ns = self.start_ns.min(time_ns);
        self.end_ns = self.end_ns.max(time_ns);
    }

    fn write(&mut self, record: &Record) -> Result<(), Error> {
        self.ending.count(record);
        Ok(self.writer.as_mut().map_or(Ok(()), |writer| writer.write(record))?)
    }
}

/// One stamp, its thread and kind apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Row {
    pub time_ns: u64,
    pub id: u64,
    pub point: u32,
    pub value: u64,
}

/// A name as long as the format lets it be.
fn shortened(name: &str) -> String {
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}
