//! A flight recorder: the recording goes to a file in memory that gives its oldest part back, and a save copies what is
//! left to a recording of its own. The stream is cut at seams, from which it can be read without what came before; what is
//! said only once (names, threads, objects, frames, locks) is kept beside it.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ffi::OsString,
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use rustix::fs::{FallocateFlags, fallocate};
use taut_recording::{
    Compression, Ending, Frame, Info, Kind, Lost, Name, ObjectKind, Output, Record, RosObjectKind, StampBatch, Writer,
};

use crate::{
    Error,
    give_way::{give_way, pause_if_due},
    listing::Uncounted,
    proc,
    profile::{Place, named},
    rings::lock_names,
    saved::{Kept, NotSaved, Saved},
    saves::{Request, Requests},
};

/// Stretches that the window, and the memory, are cut into: what is kept is that much longer than what was wanted.
const STRETCHES: u32 = 8;
/// Of the memory file, what is given back in one go.
const PAGES: u64 = 1 << 16;
/// Batches in which locks get their names; a thread names its locks once.
const LOCKS_MAX: usize = 1024;
/// Names tried for a save before it is given up.
const NUMBERS_MAX: u32 = 1_000_000;

/// What is kept, and where it is saved.
#[derive(Clone, Debug)]
pub struct Flight {
    /// So much is kept at least, if memory suffices.
    pub window: Duration,
    /// So much memory is used at most, and an eighth more.
    pub most_bytes: u64,
    /// Saves are NAME-1.mcap, NAME-2.mcap, …
    pub name: PathBuf,
    /// Of a save.
    pub compression: Compression,
    /// Lets others ask for a save.
    pub asked: Asked,
    /// Gets what was saved, or why not.
    pub saved: mpsc::Sender<Saved>,
}

/// What a save lacks.
pub struct Lacks {
    /// What must be known of it.
    pub notes: Vec<String>,
    /// Files of which nothing is recorded: what was lost in the window is not known, and what was told when they were found may be older.
    pub uncounted: Vec<Uncounted>,
}

/// Reasons for a save that others in this process have.
#[derive(Clone, Debug, Default)]
pub struct Asked(Arc<Mutex<Vec<String>>>);

impl Asked {
    /// Asks for a save; `why` is written into it.
    pub fn ask(&self, why: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(why.to_owned());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A place in the stream from which it can be read.
#[derive(Clone, Copy)]
struct Seam {
    at: u64,
    time_ns: u64,
    /// Of the recorder, until then.
    cpu_ns: u64,
}

/// The stream in memory, and the save that is under way.
pub struct Keeper {
    flight: Flight,
    file: File,
    /// What every reader needs first ends here.
    head: u64,
    seams: VecDeque<Seam>,
    /// Up to here the memory was given back.
    given_back: u64,
    known: Known,
    requests: Option<Requests>,
    /// Taken since the save that is under way was begun: the next one answers them.
    asking: Vec<Request>,
    saving: Option<Saving>,
    waiting: Vec<String>,
    is_short: bool,
    has_failed: bool,
    /// Places that the saves so far could not read back.
    damaged: u64,
}

struct Saving {
    answers: Vec<Request>,
    thread: JoinHandle<Saved>,
    /// From here on the stream is still needed.
    needs: Arc<AtomicU64>,
    /// The memory would have grown beyond its bounds.
    is_given_up: Arc<AtomicBool>,
}

impl Keeper {
    /// Of a file that has just been begun; `session` is where others ask for saves.
    ///
    /// # Errors
    /// Nothing could be saved, or kept.
    pub fn new(flight: Flight, path: &Path, session: Option<&Path>, now: (u64, u64)) -> Result<Keeper, Error> {
        // Said now, and not when it is too late.
        drop(numbered(&flight.name)?);
        let file = File::options().read(true).write(true).open(path).map_err(memory)?;
        let head = file.metadata().map_err(memory)?.len();
        let asked = |source| Error::System { what: "a place for requests, in the session directory", source };
        let requests = session.map(Requests::begin).transpose().map_err(asked)?;
        let seams = VecDeque::from([Seam { at: head, time_ns: now.0, cpu_ns: now.1 }]);
        Ok(Keeper {
            flight,
            file,
            head,
            seams,
            given_back: head.next_multiple_of(PAGES),
            known: Known::default(),
            requests,
            asking: Vec::new(),
            saving: None,
            waiting: Vec::new(),
            is_short: false,
            has_failed: false,
            damaged: 0,
        })
    }

    /// Of the stream so far, with what was given back.
    pub fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |file| file.len())
    }

    /// Whether the stream should get a seam now.
    pub fn wants_seam(&self, now_ns: u64, length: u64) -> bool {
        let Some(last) = self.seams.back() else { return true };
        let grown = length.saturating_sub(last.at);
        now_ns.saturating_sub(last.time_ns) >= self.window_ns() / u64::from(STRETCHES)
            || grown >= self.flight.most_bytes / u64::from(STRETCHES)
    }

    /// The stream has a seam at its end, `at`.
    pub fn seam(&mut self, at: u64, time_ns: u64, cpu_ns: u64) {
        self.seams.push_back(Seam { at, time_ns, cpu_ns });
        self.known.forget(self.seams.front().map_or(0, |seam| seam.time_ns), time_ns);
    }

    /// Keeps records that are written only once.
    pub fn notice(&mut self, record: &Record) {
        self.known.notice(record);
    }

    /// Gives back what is neither in the window nor being saved. Returns bytes held, and a warning.
    pub fn give_back(&mut self, now_ns: u64, length: u64) -> (u64, Option<String>) {
        let mut warning = None;
        while let Some(next) = self.seams.get(1).copied() {
            let is_old = now_ns.saturating_sub(next.time_ns) >= self.window_ns();
            let is_large = length.saturating_sub(self.seams[0].at) > self.flight.most_bytes;
            if is_large && !is_old && !std::mem::replace(&mut self.is_short, true) {
                warning = Some(format!(
                    "the flight recorder's memory is too small for {}: {} MiB hold the last {:.1} s; --flight-memory makes it larger",
                    seconds(self.flight.window),
                    self.flight.most_bytes >> 20,
                    now_ns.saturating_sub(next.time_ns) as f64 / 1e9
                ));
            }
            if !is_old && !is_large {
                break;
            }
            self.seams.pop_front();
        }
        let floor = self.seams.front().map_or(self.head, |seam| seam.at);
        let needed = match &self.saving {
            Some(saving) => {
                let needs = saving.needs.load(SeqCst);
                if length.saturating_sub(needs.min(floor)) > 2 * self.flight.most_bytes {
                    saving.is_given_up.store(true, SeqCst);
                    floor
                } else {
                    needs.min(floor)
                }
            }
            None => floor,
        };
        let until = needed / PAGES * PAGES;
        if until > self.given_back {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match fallocate(&self.file, flags, self.given_back, until - self.given_back) {
                Ok(()) => self.given_back = until,
                Err(error) => {
                    warning = Some(format!("the flight recorder's memory is not bounded: {error} when giving it back"));
                    self.given_back = until;
                }
            }
        }
        (length.saturating_sub(self.given_back.min(length)), warning)
    }

    /// Whether a save is to begin, and why: the reasons since the last one, of which those during a save wait for its end.
    pub fn is_asked(&mut self, more: Option<&str>) -> Option<String> {
        let fresh = self.requests.as_mut().map(|requests| requests.take(more.is_some())).unwrap_or_default();
        if !fresh.is_empty() {
            self.waiting.push("`taut record --save`".to_owned());
            self.asking.extend(fresh);
        }
        self.waiting.extend(self.flight.asked.take());
        self.waiting.extend(more.map(str::to_owned));
        let is_free = self.saving.as_ref().is_none_or(|saving| saving.thread.is_finished());
        if self.waiting.is_empty() || !is_free {
            return None;
        }
        self.waiting.dedup();
        Some(std::mem::take(&mut self.waiting).join("; "))
    }

    /// Begins a save of what the stream holds up to its last seam.
    pub fn save(&mut self, why: String, info: &Info, places: Vec<Place>, exit_code: Option<i32>, lacks: Lacks) {
        self.end_save();
        let (Some(first), Some(last)) = (self.seams.front().copied(), self.seams.back().copied()) else { return };
        let seams: Vec<u64> = self.seams.iter().map(|seam| seam.at).collect();
        let (needs, is_given_up) = (Arc::new(AtomicU64::new(first.at)), Arc::new(AtomicBool::new(false)));
        let ending = Ending {
            end_monotonic_ns: last.time_ns,
            exit_code,
            recorder_cpu_ns: last.cpu_ns.saturating_sub(first.cpu_ns),
            reason: format!("saved by the flight recorder: {why}"),
            notes: lacks.notes,
            ..Ending::default()
        };
        let lost = |lost: Uncounted| Lost {
            since_ns: last.time_ns,
            time_ns: last.time_ns,
            what: lost.what,
            place: lost.place,
            count: 1,
            is_estimate: true,
        };
        let job = Job {
            file: self.file.try_clone(),
            lost: lacks.uncounted.into_iter().map(lost).collect(),
            head: self.head,
            seams,
            known: self.known.before(first.time_ns),
            info: since(info, first.time_ns, &why),
            ending,
            name: self.flight.name.clone(),
            compression: self.flight.compression,
            places,
            needs: Arc::clone(&needs),
            is_given_up: Arc::clone(&is_given_up),
        };
        let span = Duration::from_nanos(last.time_ns.saturating_sub(first.time_ns));
        let reason = why.clone();
        let body = move || {
            give_way();
            let result = job.write().map(|(path, bytes, damaged)| Kept { path, span, bytes, damaged });
            let result = result.map_err(|error| NotSaved::from_source(&error));
            job.needs.store(u64::MAX, SeqCst);
            Saved { why: reason, result }
        };
        match std::thread::Builder::new().name("taut-save".to_owned()).spawn(body) {
            Ok(thread) => {
                let answers = std::mem::take(&mut self.asking);
                self.saving = Some(Saving { answers, thread, needs, is_given_up });
            }
            Err(error) => self.refuse(why, NotSaved { text: error.to_string(), errno: error.raw_os_error() }),
        }
    }

    /// Answers what asks for a save that cannot be.
    pub fn refuse(&mut self, why: String, because: NotSaved) {
        let answers = std::mem::take(&mut self.asking);
        self.report(Saved { why, result: Err(because) }, &answers);
    }

    /// Reports a save that is over, if one is.
    pub fn poll(&mut self) {
        if self.saving.as_ref().is_some_and(|saving| saving.thread.is_finished()) {
            self.end_save();
        }
    }

    /// Waits for the save that is under way. Returns whether all saves succeeded.
    pub fn end_save(&mut self) -> bool {
        if let Some(saving) = self.saving.take() {
            let defect = || NotSaved { text: "the save failed: a defect of taut".to_owned(), errno: None };
            let saved = saving.thread.join();
            let saved = saved.unwrap_or_else(|_| Saved { why: String::new(), result: Err(defect()) });
            self.report(saved, &saving.answers);
        }
        !self.has_failed
    }

    /// Places of the memory that the saves so far could not read back.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    fn report(&mut self, saved: Saved, answers: &[Request]) {
        match &saved.result {
            Ok(kept) => self.damaged += kept.damaged,
            Err(_) => self.has_failed = true,
        }
        if let Some(requests) = &self.requests {
            answers.iter().for_each(|request| requests.answer(request, &saved));
        }
        // Without a listener there is nothing to report to.
        let _ = self.flight.saved.send(saved);
    }

    fn window_ns(&self) -> u64 {
        self.flight.window.as_nanos() as u64
    }
}

/// The facts of a stretch that begins later than its recording.
fn since(info: &Info, time_ns: u64, why: &str) -> Info {
    let mut info = info.since(time_ns);
    info.facts.push(("flight_recorder".to_owned(), why.to_owned()));
    info.facts.sort();
    info
}

/// What a save needs, taken when it was asked for.
struct Job {
    file: io::Result<File>,
    head: u64,
    /// The last one is the end.
    seams: Vec<u64>,
    known: Vec<Record>,
    lost: Vec<Lost>,
    info: Info,
    ending: Ending,
    name: PathBuf,
    compression: Compression,
    places: Vec<Place>,
    needs: Arc<AtomicU64>,
    is_given_up: Arc<AtomicBool>,
}

impl Job {
    /// The file, its length, and how many places of the memory are missing in it.
    fn write(&self) -> Result<(PathBuf, u64, u64), Error> {
        let file = self.file.as_ref().map_err(|error| memory(io::Error::from(error.kind())))?;
        let (path, mut output) = numbered(&self.name)?;
        let writer = Writer::create_compressed(output.path(), &self.info, self.compression);
        let mut writer = writer.map_err(|error| error.at(&path))?;
        writer.set_path(&path);
        writer.set_pause(pause_if_due);
        let mut ending = self.ending.clone();
        let at_ns = self.info.start_monotonic_ns;
        for record in &self.known {
            ending.count(record);
            writer.write(record)?;
        }
        writer.flush_due(at_ns)?;
        let (mut bytes, mut damaged) = (vec![0; self.head as usize], 0);
        file.read_exact_at(&mut bytes, 0).map_err(memory)?;
        for stretch in self.seams.windows(2) {
            bytes.truncate(self.head as usize);
            bytes.resize((self.head + stretch[1] - stretch[0]) as usize, 0);
            file.read_exact_at(&mut bytes[self.head as usize..], stretch[0]).map_err(memory)?;
            if self.is_given_up.load(SeqCst) {
                let why = "more came meanwhile than memory holds; a faster disk or a larger --flight-memory helps";
                return Err(memory(io::Error::other(why)));
            }
            self.needs.store(stretch[1], SeqCst);
            let held = taut_recording::pour(&bytes, &mut writer, &mut |record| ending.count(record))?;
            damaged += held.damage.len() as u64;
        }
        for frame in named(&self.places) {
            writer.write(&Record::Frame(frame))?;
        }
        for lost in &self.lost {
            let record = Record::Lost(lost.clone());
            ending.count(&record);
            writer.write(&record)?;
        }
        if damaged > 0 {
            let places = if damaged == 1 { "place" } else { "places" };
            ending.notes.push(format!("{damaged} {places} of the memory could not be read back"));
        }
        let bytes = writer.finish(&ending)?;
        let failed = |source| taut_recording::Error::Io { path: path.clone(), source };
        output.put_in_place().map_err(failed)?;
        Ok((path, bytes, damaged))
    }
}

fn memory(source: io::Error) -> Error {
    Error::System { what: "the flight recorder's memory", source }
}

/// The first of NAME-1.mcap, NAME-2.mcap, … that neither is there nor is being written.
fn numbered(name: &Path) -> Result<(PathBuf, Output), Error> {
    let stem = name.file_stem().unwrap_or(name.as_os_str());
    let extension = name.extension().unwrap_or("mcap".as_ref());
    for number in 1..NUMBERS_MAX {
        let mut file = OsString::from(stem);
        file.push(format!("-{number}."));
        file.push(extension);
        let path = name.with_file_name(file);
        if fs::symlink_metadata(&path).is_ok() {
            continue;
        }
        match Output::open(&path) {
            // Another save was faster.
            Err(taut_recording::Error::Busy { .. }) => {}
            Ok(_) if fs::symlink_metadata(&path).is_ok() => {}
            opened => return Ok((path, opened?)),
        }
    }
    Err(taut_recording::Error::Busy { path: name.to_owned() }.into())
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// What a recording says once, for those who begin to read later.
#[derive(Default)]
struct Known {
    names: Vec<Name>,
    frames: Vec<Frame>,
    /// With the moment from which each holds; later ones of one key supersede.
    timed: Vec<(u64, Key, Record)>,
    locks: VecDeque<StampBatch>,
    /// Since when threads and processes are seen to be gone: what they did before is still in the window.
    gone: HashMap<i32, u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Thread(i32),
    Object(i32, ObjectKind, u64),
    /// The last one is a link's owner: a publisher has several.
    Ros(i32, RosObjectKind, u64, u64),
}

impl Key {
    /// The thread or process that it goes with.
    fn owner(self) -> i32 {
        let (Key::Thread(id) | Key::Object(id, ..) | Key::Ros(id, ..)) = self;
        id
    }
}

impl Known {
    fn notice(&mut self, record: &Record) {
        match record {
            Record::Name(name) => self.names.push(name.clone()),
            Record::Frame(frame) => self.frames.push(frame.clone()),
            Record::Thread(thread) => self.timed.push((thread.time_ns, Key::Thread(thread.tid), record.clone())),
            Record::Object(object) => {
                let key = Key::Object(object.pid, object.kind, object.start);
                self.timed.push((object.time_ns, key, record.clone()));
            }
            Record::RosObject(object) => {
                let owner = if object.kind == RosObjectKind::Link { object.owner } else { 0 };
                let key = Key::Ros(object.pid, object.kind, object.handle, owner);
                self.timed.push((object.time_ns, key, record.clone()));
            }
            Record::Stamps(batch) if batch.kind.contains(&(Kind::LockNamed as u8)) => {
                self.locks.extend(lock_names(batch));
                if self.locks.len() > LOCKS_MAX {
                    self.locks.pop_front();
                }
            }
            _ => {}
        }
    }

    /// Forgets what does not hold any more at `start_ns` and later.
    fn forget(&mut self, start_ns: u64, now_ns: u64) {
        let owners = self.timed.iter().map(|(_, key, _)| key.owner()).chain(self.locks.iter().map(|batch| batch.pid));
        let owners: HashSet<i32> = owners.collect();
        self.gone.retain(|owner, _| owners.contains(owner));
        for owner in owners {
            // Its number leads somewhere in /proc while it lives.
            match proc::exists(format!("/proc/{owner}")) {
                true => drop(self.gone.remove(&owner)),
                false => drop(self.gone.entry(owner).or_insert(now_ns)),
            }
        }
        let is_over = |owner: i32| self.gone.get(&owner).is_some_and(|gone_ns| *gone_ns <= start_ns);
        let mut superseded = HashSet::new();
        let mut is_wanted =
            |time_ns: u64, key: Key| time_ns > start_ns || (superseded.insert(key) && !is_over(key.owner()));
        let keep: Vec<bool> = self.timed.iter().rev().map(|(time_ns, key, _)| is_wanted(*time_ns, *key)).collect();
        self.locks.retain(|batch| !is_over(batch.pid));
        let mut keep = keep.into_iter().rev();
        self.timed.retain(|_| keep.next().unwrap_or(true));
    }

    /// What was said before that moment.
    fn before(&self, start_ns: u64) -> Vec<Record> {
        let names = self.names.iter().cloned().map(Record::Name);
        let frames = self.frames.iter().cloned().map(Record::Frame);
        let timed = self.timed.iter().filter(|(time_ns, ..)| *time_ns <= start_ns).map(|(.., record)| record.clone());
        let locks = self.locks.iter().cloned().map(Record::Stamps);
        names.chain(frames).chain(timed).chain(locks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut_recording::Thread;

    fn thread(time_ns: u64, tid: i32, comm: &str) -> Record {
        Record::Thread(Thread { time_ns, tid, pid: tid, comm: comm.to_owned(), ..Thread::default() })
    }

    #[test]
    fn of_what_is_superseded_or_gone_the_window_alone_is_known() {
        let own = std::process::id() as i32;
        let mut known = Known::default();
        let dead = i32::MAX;
        for record in
            [thread(1, own, "first"), thread(2, own, "second"), thread(9, own, "third"), thread(3, dead, "gone")]
        {
            known.notice(&record);
        }
        known.forget(5, 10);
        let gone = thread(3, dead, "gone");
        assert_eq!(known.before(5), [thread(2, own, "second"), gone.clone()], "it lived when the window began");
        assert_eq!(known.timed.len(), 3, "what is in the window is not forgotten");
        known.forget(10, 20);
        assert_eq!(known.before(10), [thread(9, own, "third")], "it was gone when the window began");
    }

    #[test]
    fn saves_are_numbered_and_replace_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("run.mcap");
        fs::write(folder.path().join("run-1.mcap"), "precious").unwrap();
        let (second, _output) = numbered(&name).unwrap();
        assert_eq!(second, folder.path().join("run-2.mcap"));
        let (third, _) = numbered(&name).unwrap();
        assert_eq!(third, folder.path().join("run-3.mcap"), "the second is being written");
    }
}
