//! The one consumer of the stamping protocol (`docs/reference/protocol.md`): ring files → batches.
//!
//! Another process wrote these bytes. Every offset and count is checked before use; a file that is not what the
//! protocol says is refused and reported once, and its stamps are not believed.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::Path,
    sync::atomic::Ordering,
    time::Duration,
};

use taut_clock::Counter;
use taut_recording::{Kind, LostWhat, Name, RosBatch, StampBatch};

use crate::{
    files::{Files, Mapped, Then},
    listing::Uncounted,
    owner::Owner,
    pace::Pace,
    proc,
    shared::{HEADER_BYTES, Shared, bad},
};

const MAGIC: &[u8; 8] = b"TAUTRING";
/// Of a ring file of stamps, and of one that names its content.
const VERSIONS: [u32; 2] = [1, 2];
/// The two kinds of record that a ring of ROS 2 events holds: an event, and the arguments that it has no room for.
const ROS_EVENT: u32 = 9;
const ROS_REST: u32 = 10;
const RECORD_BYTES: usize = 32;
const NAME_ENTRY_BYTES: usize = 128;
const NAME_BYTES: usize = 120;
const SLOT_BYTES: usize = 256;
const OUTCOME: u8 = 4;
/// More than any producer lays out; bounds what a damaged header can ask for.
const SLOTS_MAX: u32 = 256;
const RING_RECORDS_MAX: u32 = 1 << 24;
const NAMES_MAX: u32 = 1 << 13;
/// Stamps taken from one slot in one go, so that one busy thread does not starve the others.
const BATCH_MAX: u64 = 65_536;
/// Stamps taken in one drain from all files together, each having its share: they are held in memory, 29 bytes each.
const DRAIN_MAX: u64 = 1 << 21;
/// Batches in which a recorder that attaches late looks for the names of locks; a thread names its locks once.
const LATE_BATCHES_MAX: usize = 256;
/// Ring files at a time. Those beyond are taken up when others are gone.
const FILES_MAX: usize = 4096;
/// How often, 1 ms apart, a look waits for locks that producers hold: they hold one while they reclaim a slot, for less than
/// that, unless they do not get a CPU.
const LOCK_TRIES: u32 = 100;
/// Different names in a recording; a producer that makes up ever new ones must not fill our memory with them.
const RECORDING_NAMES_MAX: usize = 1 << 16;

const FREE: u32 = 0;
const OPEN: u32 = 1;
const CLOSED: u32 = 2;

/// Names of the whole recording: equal names of all processes share one number.
#[derive(Debug, Default)]
pub struct Names {
    numbers: HashMap<String, u32>,
    fresh: Vec<Name>,
    is_full: bool,
}

impl Names {
    /// The number of a name, from 1; 0 when there are too many.
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.numbers.len() >= RECORDING_NAMES_MAX {
            self.is_full = true;
            return 0;
        }
        let id = self.numbers.len() as u32 + 1;
        self.numbers.insert(name.to_owned(), id);
        self.fresh.push(Name { id, name: name.to_owned() });
        id
    }

    /// Names that got a number since the last call.
    pub fn take_fresh(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.fresh)
    }
}

/// What a drain brought.
#[derive(Debug, Default)]
pub struct Drained {
    /// Stamps by thread, in the order of that thread.
    pub batches: Vec<StampBatch>,
    /// ROS 2 events by thread, likewise.
    pub ros: Vec<RosBatch>,
    /// Stamps lost since the last drain, by place ("pid/tid" or "pid").
    pub lost: Vec<(String, u64)>,
    /// ROS 2 events lost, likewise.
    pub lost_ros: Vec<(String, u64)>,
    /// Telemetry lost for want of a ring, likewise.
    pub lost_telemetry: Vec<(String, u64)>,
    /// Ring files that are not as the protocol defines them, with the reason; each is reported once.
    pub refused: Vec<String>,
    /// What is lost by them, or for want of a session, in an unknown number.
    pub uncounted: Vec<Uncounted>,
    /// How soon to look again.
    pub pace: Pace,
}

/// A session directory and the ring files found in it.
pub struct Session {
    /// The directory, locked: two consumers would both move `tail` and free slots. The lock goes with its holder,
    /// also when that is killed.
    lock: fs::File,
    rings: Files<RingFile>,
    names: Names,
    /// What was reported already of the session as a whole.
    told: HashSet<&'static str>,
    /// Why the directory could not be listed the last time.
    unlisted: Option<String>,
    /// To hand out with the next drain.
    held: Drained,
    processes: usize,
}

impl Session {
    /// Watches a session directory from now on, as its only consumer.
    ///
    /// # Errors
    /// The directory cannot be listed; or, `WouldBlock`, another recorder records it.
    pub fn open(directory: &Path) -> io::Result<Session> {
        fs::read_dir(directory)?;
        let lock = fs::File::open(directory)?;
        lock.try_lock()?;
        Ok(Session {
            lock,
            rings: Files::new(directory, "taut", (LostWhat::Stamps, "stamps are")),
            names: Names::default(),
            told: HashSet::new(),
            unlisted: None,
            held: Drained::default(),
            processes: 0,
        })
    }

    /// Like [`Session::open`] for one that has been stamped into before: of what is in the rings now only
    /// the names of locks count, and losses count from now.
    pub fn open_late(directory: &Path) -> io::Result<Session> {
        let mut session = Session::open(directory)?;
        let mut held = Drained::default();
        session.discover(&mut held);
        for ring in session.rings.iter_mut() {
            // Bounded, in case its process writes on.
            for _ in 0..=ring.drains_to_empty() {
                let mut earlier = Drained::default();
                let taken = ring.drain(BATCH_MAX, &mut session.names, &mut earlier);
                held.batches.extend(earlier.batches.iter().filter_map(lock_names));
                held.batches.truncate(LATE_BATCHES_MAX);
                if taken == 0 {
                    break;
                }
            }
        }
        session.held = held;
        Ok(session)
    }

    /// Names and their numbers.
    pub fn names(&mut self) -> &mut Names {
        &mut self.names
    }

    /// Host pids of the processes whose rings are known. What a process of another PID namespace calls itself is not its own pid
    /// here, but perhaps another process's.
    pub fn pids(&self) -> Vec<i32> {
        self.rings.iter().filter(|ring| ring.owner.is_found).map(|ring| ring.owner.pid).collect()
    }

    /// How many processes made a ring file of stamps so far, the dead ones too.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// How many ring files, of whatever content, were taken up so far, and how many are open.
    pub fn known(&self) -> [usize; 2] {
        self.rings.known()
    }

    /// From now on no more is taken than what the rings hold now: what is written later is not part of this recording.
    /// Drains then come to an end, also if producers continue to write.
    pub fn seal(&mut self) {
        self.rings.iter_mut().for_each(RingFile::seal);
    }

    /// Looks for new ring files.
    pub fn discover(&mut self, drained: &mut Drained) {
        let found = self.rings.look();
        self.unlisted = None;
        let found = match found {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.tell("gone", drained, "is gone: what starts now is not recorded; what was there before is");
                return;
            }
            Err(error) => {
                self.unlisted = Some(error.to_string());
                return;
            }
        };
        if found.is_cut {
            self.tell("cut", drained, "holds more files than are looked at; processes may be missing");
        }
        let mut tries = LOCK_TRIES;
        for path in found.paths {
            if self.rings.len() >= FILES_MAX {
                self.rings.wait(path, &format!("the session has more than {FILES_MAX} processes at a time"));
                if self.told.insert("full") {
                    let directory = self.rings.directory().display();
                    let why =
                        "has more processes at a time than can be recorded; the others wait until some have ended";
                    drained.refused.push(format!("session directory {directory} {why}"));
                }
                continue;
            }
            let opened = RingFile::open(&path, &mut tries);
            let holds_stamps = opened.as_ref().is_ok_and(|ring| ring.content == Content::Stamps);
            match self.rings.take_up(path, opened) {
                Ok(()) => {
                    self.processes += usize::from(holds_stamps);
                    drained.pace = Pace::Lively;
                }
                Err(told) => drained.refused.extend(told),
            }
        }
        drained.uncounted.extend(self.rings.take_lost());
    }

    /// What could not be taken up so far, but may be.
    pub fn unread(&self) -> Vec<Uncounted> {
        let unlisted = self.unlisted.as_ref().map(|why| {
            let directory = self.rings.directory().display();
            self.of_session(format!(
                "session directory {directory} cannot be listed: {why}; what began since is not recorded"
            ))
        });
        self.rings.unread().into_iter().chain(unlisted).collect()
    }

    /// Files of which nothing is recorded now.
    pub fn missing(&self) -> Vec<Uncounted> {
        self.rings.missing()
    }

    /// Takes what all rings hold.
    pub fn drain(&mut self) -> Drained {
        let mut drained = std::mem::take(&mut self.held);
        let share = self.share();
        let names = &mut self.names;
        self.rings.sort_out(|path, ring| {
            let is_whole = ring.shared.is_whole() && {
                ring.drain_whole(share, names, &mut drained);
                !ring.shared.is_cut()
            };
            if is_whole {
                return Then::Stays;
            }
            let why = format!("{}: it was cut short; its stamps are lost", path.display());
            drained.refused.push(why.clone());
            Then::IsRefused(why)
        });
        drained.uncounted.extend(self.rings.take_lost());
        if self.names.is_full {
            let why = format!("has more than {RECORDING_NAMES_MAX} different names; the others are missing");
            self.tell("names", &mut drained, &why);
        }
        drained
    }

    /// Frees the slots of threads that are gone, and removes the files of processes that are gone and
    /// drained. To be called now and then, not in each round: it asks /proc.
    pub fn reap(&mut self) -> Drained {
        let mut drained = Drained::default();
        let share = self.share();
        let names = &mut self.names;
        self.rings.sort_out(|_, ring| {
            // A file that was cut short is told by `drain`.
            if !ring.shared.is_whole() {
                return Then::Stays;
            }
            // Liveness is read before the last drain: what a process wrote before it died is then in the ring.
            if ring.owner.is_alive() {
                ring.close_dead_slots();
                return Then::Stays;
            }
            let mut left = share;
            while left > 0 {
                let taken = ring.drain_whole(left, names, &mut drained);
                if taken == 0 {
                    break;
                }
                left = left.saturating_sub(taken);
            }
            // What is left is for the next time.
            if left == 0 || ring.shared.is_cut() { Then::Stays } else { Then::IsDone }
        });
        drained
    }

    /// Stamps that each file may give in one drain.
    fn share(&self) -> u64 {
        DRAIN_MAX / self.rings.len().max(1) as u64
    }

    /// Says once what is wrong with the session as a whole, so that stamps are lost.
    fn tell(&mut self, what: &'static str, drained: &mut Drained, why: &str) {
        if self.told.insert(what) {
            let why = format!("session directory {} {why}", self.rings.directory().display());
            drained.refused.push(why.clone());
            drained.uncounted.push(self.of_session(why));
        }
    }

    /// Stamps of no process in particular.
    fn of_session(&self, why: String) -> Uncounted {
        Uncounted { what: LostWhat::Stamps, place: "session".to_owned(), why }
    }
}

/// By hand: a program that is being started may still have the descriptor.
impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

/// Of a batch, the rows that give locks their names.
pub(crate) fn lock_names(batch: &StampBatch) -> Option<StampBatch> {
    let rows: Vec<usize> = (0..batch.kind.len()).filter(|at| batch.kind[*at] == Kind::LockNamed as u8).collect();
    (!rows.is_empty()).then(|| StampBatch {
        ticks: rows.iter().map(|at| batch.ticks[*at]).collect(),
        message_id: rows.iter().map(|at| batch.message_id[*at]).collect(),
        point: rows.iter().map(|at| batch.point[*at]).collect(),
        kind: rows.iter().map(|at| batch.kind[*at]).collect(),
        value: rows.iter().map(|at| batch.value[*at]).collect(),
        ..*batch
    })
}

/// What a ring file's records are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Stamps = 0,
    Ros = 1,
}

/// Whether an event of a ring has a second record.
fn has_rest(event_kind: u64) -> bool {
    (event_kind >> 8) & 0xff == 1
}

/// One process's ring file, mapped.
struct RingFile {
    shared: Shared,
    owner: Owner,
    content: Content,
    counter: u8,
    slot_count: usize,
    ring_records: u64,
    name_capacity: u32,
    names_offset: usize,
    slots_offset: usize,
    rings_offset: usize,
    ring_stride: usize,
    /// Recording-wide numbers by the file's name ids, from 1.
    numbers: Vec<u32>,
    slots: Vec<Slot>,
    /// The slot that is drained first: where the share was used up the last time.
    first_slot: usize,
    lost_without_slot: u64,
    lost_names: u64,
    lost_telemetry: u64,
}

/// What is remembered of a slot, so that nothing of it is believed twice.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// Records consumed; the file's copy is for the producer.
    tail: u64,
    /// The lost counter as last seen.
    lost: u64,
    /// Where to stop, once sealed.
    end: Option<u64>,
    /// It stated more records than its ring has; told once.
    is_told: bool,
    /// Of a foreign namespace: generation and tid, and the host tid they stand for if it was found.
    known_tid: Option<((u32, i32), Option<i32>)>,
}

impl Mapped for RingFile {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn holds(&self) -> LostWhat {
        match self.content {
            Content::Stamps => LostWhat::Stamps,
            Content::Ros => LostWhat::RosEvents,
        }
    }
}

impl RingFile {
    /// Reads the header and believes it only as far as it fits the file. From now on it is locked: no thread reclaims a slot.
    fn open(path: &Path, tries: &mut u32) -> io::Result<RingFile> {
        let shared = Shared::open(path)?;
        let (header, length) = (shared.header(), shared.len());
        if header.magic() != MAGIC {
            return Err(bad("not a ring file"));
        }
        let version = header.u32(8);
        if !VERSIONS.contains(&version) {
            return Err(bad(&format!("protocol version {version}, this taut knows 1 and 2")));
        }
        let content = match header.u32(80) {
            _ if version == 1 => Content::Stamps,
            0 => Content::Stamps,
            1 => Content::Ros,
            other => return Err(bad(&format!("content {other}, which this taut does not know"))),
        };
        let (slot_count, ring_records, name_capacity) = (header.u32(20), header.u32(24), header.u32(28));
        let (names, slots, rings, stride) = (header.size(48), header.size(56), header.size(64), header.size(72));
        let fits = |offset: usize, count: usize, each: usize| {
            offset >= HEADER_BYTES
                && offset.is_multiple_of(64)
                && count.checked_mul(each).and_then(|n| n.checked_add(offset)).is_some_and(|end| end <= length)
        };
        let sound = (1..=SLOTS_MAX).contains(&slot_count)
            && (1..=NAMES_MAX).contains(&name_capacity)
            && ring_records.is_power_of_two()
            && ring_records <= RING_RECORDS_MAX
            && rings.is_multiple_of(4096)
            && stride.is_multiple_of(4096)
            && stride >= ring_records as usize * RECORD_BYTES
            && fits(names, name_capacity as usize, NAME_ENTRY_BYTES)
            && fits(slots, slot_count as usize, SLOT_BYTES)
            && fits(rings, slot_count as usize, stride);
        if !sound {
            return Err(bad("its header does not fit the file"));
        }
        let counter = u8::try_from(header.u32(12)).ok().and_then(Counter::from_number);
        let counter =
            counter.ok_or_else(|| bad(&format!("counter {}, which this taut does not know", header.u32(12))))?;
        let owner = Owner::new(header.u32(16) as i32, header.u64(40), header.u64(32));
        shared.check_owner(&owner)?;
        while !shared.lock()? {
            if *tries == 0 {
                return Err(io::Error::new(io::ErrorKind::WouldBlock, "another process holds its lock"));
            }
            *tries -= 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut ring = RingFile {
            owner,
            content,
            counter: counter as u8,
            slot_count: slot_count as usize,
            ring_records: u64::from(ring_records),
            name_capacity,
            names_offset: names,
            slots_offset: slots,
            rings_offset: rings,
            ring_stride: stride,
            numbers: Vec::new(),
            slots: vec![Slot::default(); slot_count as usize],
            first_slot: 0,
            lost_without_slot: 0,
            lost_names: 0,
            lost_telemetry: 0,
            shared,
        };
        for slot in 0..ring.slot_count {
            // An earlier consumer may have taken some.
            ring.slots[slot].tail = ring.shared.u64(ring.slot(slot) + 128).load(Ordering::Relaxed);
        }
        Ok(ring)
    }

    /// As `drain`, and nothing at all where the file was cut meanwhile: zeros are no stamps.
    fn drain_whole(&mut self, most: u64, names: &mut Names, drained: &mut Drained) -> u64 {
        let batches = (drained.batches.len(), drained.ros.len());
        let lost = (drained.lost.len(), drained.lost_ros.len(), drained.lost_telemetry.len());
        let taken = self.drain(most, names, drained);
        if !self.shared.is_cut() {
            return taken;
        }
        drained.batches.truncate(batches.0);
        drained.ros.truncate(batches.1);
        drained.lost.truncate(lost.0);
        drained.lost_ros.truncate(lost.1);
        drained.lost_telemetry.truncate(lost.2);
        0
    }

    /// Takes what the slots hold, `most` stamps at most; returns how many that were.
    fn drain(&mut self, most: u64, names: &mut Names, drained: &mut Drained) -> u64 {
        let mut taken = 0;
        let first = self.first_slot;
        for slot in (first..self.slot_count).chain(0..first) {
            taken += self.drain_slot(slot, most - taken, names, drained);
            if taken == most {
                self.first_slot = (slot + 1) % self.slot_count;
                break;
            }
        }
        let refused = if self.content == Content::Ros { "no file of objects" } else { "name table full" };
        for (offset, what) in [(192, "no ring"), (200, refused)] {
            let now = self.shared.u64(offset).load(Ordering::Relaxed);
            let before = if offset == 192 { &mut self.lost_without_slot } else { &mut self.lost_names };
            let more = now.saturating_sub(std::mem::replace(before, now));
            // A refused name loses the name, not the stamp; it is told all the same.
            if more > 0 {
                let place = format!("process {}, {what}", self.owner.pid);
                self.lost(drained).push((place, more));
            }
        }
        let now = self.shared.u64(208).load(Ordering::Relaxed);
        let more = now.saturating_sub(std::mem::replace(&mut self.lost_telemetry, now));
        if more > 0 {
            drained.lost_telemetry.push((format!("process {}, no ring", self.owner.pid), more));
        }
        taken
    }

    fn seal(&mut self) {
        for slot in 0..self.slot_count {
            let head = self.shared.u64(self.slot(slot) + 64).load(Ordering::Acquire);
            self.slots[slot].end = Some(head);
        }
    }

    /// How many drains of [`BATCH_MAX`] stamps empty it, if no producer writes meanwhile.
    fn drains_to_empty(&self) -> u64 {
        (self.slot_count as u64 * self.ring_records).div_ceil(BATCH_MAX)
    }

    fn drain_slot(&mut self, slot: usize, most: u64, names: &mut Names, drained: &mut Drained) -> u64 {
        let at = self.slot(slot);
        // State before head: a slot seen closed has no more records than its head says.
        let state = self.shared.u32(at).load(Ordering::Acquire);
        let tail = self.slots[slot].tail;
        // SYNC POINT head
        let head = self.slots[slot].end.unwrap_or_else(|| self.shared.u64(at + 64).load(Ordering::Acquire));
        let waiting = head.wrapping_sub(tail);
        if waiting > self.ring_records {
            // No producer does this. Believe nothing of it, and go on from its head.
            if !std::mem::replace(&mut self.slots[slot].is_told, true) {
                let why = format!(
                    "process {}: slot {slot} states {waiting} records in a ring of {}; they are not recorded",
                    self.owner.pid, self.ring_records
                );
                drained.refused.push(why.clone());
                let place = format!("process {}, slot {slot}", self.owner.pid);
                drained.uncounted.push(Uncounted { what: self.holds(), place, why });
            }
            self.consumed(slot, head);
            return 0;
        }
        let take = waiting.min(BATCH_MAX).min(most);
        drained.pace = drained.pace.max(Pace::of(waiting, take, self.ring_records));
        let take = if self.content == Content::Ros { self.whole_events(slot, tail, take, waiting) } else { take };
        if take > 0 {
            match self.content {
                Content::Stamps => drained.batches.push(self.copy(slot, tail, take, names)),
                Content::Ros => drained.ros.extend(self.copy_ros(slot, tail, take)),
            }
            // SYNC POINT tail
            self.consumed(slot, tail.wrapping_add(take));
        }
        let lost = self.shared.u64(at + 72).load(Ordering::Relaxed);
        let more = lost.saturating_sub(std::mem::replace(&mut self.slots[slot].lost, lost));
        if more > 0 {
            let tid = self.host_tid(slot);
            let place = format!("{}/{tid}", self.owner.pid);
            self.lost(drained).push((place, more));
        }
        if state == CLOSED && take == waiting && self.slots[slot].end.is_none() {
            self.shared.u32(at).store(FREE, Ordering::Release);
            drained.pace = drained.pace.max(Pace::Lively);
        }
        take
    }

    /// Where this file's losses are counted.
    fn lost<'a>(&self, drained: &'a mut Drained) -> &'a mut Vec<(String, u64)> {
        match self.content {
            Content::Stamps => &mut drained.lost,
            Content::Ros => &mut drained.lost_ros,
        }
    }

    /// Gives the producer the room of what was read.
    fn consumed(&mut self, slot: usize, tail: u64) {
        self.slots[slot].tail = tail;
        self.shared.u64(self.slot(slot) + 128).store(tail, Ordering::Release);
    }

    fn copy(&mut self, slot: usize, tail: u64, take: u64, names: &mut Names) -> StampBatch {
        let n = take as usize;
        let tid = self.host_tid(slot);
        let mut batch = StampBatch { pid: self.owner.pid, tid, counter: self.counter, ..StampBatch::default() };
        batch.ticks.reserve(n);
        batch.message_id.reserve(n);
        batch.point.reserve(n);
        batch.kind.reserve(n);
        batch.value.reserve(n);
        let mut last = 0;
        for position in (0..take).map(|i| tail.wrapping_add(i)) {
            // The producer finished the record before it published head.
            let [ticks, id, point_kind, value] = self.shared.words(self.record(slot, position));
            // A kind beyond the format's byte is unknown, whatever it is, and must not look like a known one.
            let kind = u8::try_from(point_kind >> 32).unwrap_or(u8::MAX);
            // A thread's counter does not run backwards; across cores it may seem to by a few ticks.
            last = ticks.max(last);
            batch.ticks.push(last);
            batch.message_id.push(id);
            batch.point.push(self.number(point_kind as u32, names));
            batch.kind.push(kind);
            let name_of = |value| u32::try_from(value).unwrap_or(0);
            batch.value.push(if kind == OUTCOME { u64::from(self.number(name_of(value), names)) } else { value });
        }
        batch
    }

    /// Where the record at this position of a slot's ring lies.
    fn record(&self, slot: usize, position: u64) -> usize {
        self.rings_offset + slot * self.ring_stride + (position & (self.ring_records - 1)) as usize * RECORD_BYTES
    }

    /// As many of `take` records as end with a whole event. The producer published both records of an event at once, so what
    /// lacks its second one with nothing behind it never gets one.
    fn whole_events(&self, slot: usize, tail: u64, take: u64, waiting: u64) -> u64 {
        if take == 0 || take == waiting {
            return take;
        }
        let [_, _, event_kind, _] = self.shared.words(self.record(slot, tail.wrapping_add(take - 1)));
        take - u64::from((event_kind >> 32) as u32 == ROS_EVENT && has_rest(event_kind))
    }

    /// The events of so many records; none where all of them are of other kinds.
    fn copy_ros(&mut self, slot: usize, tail: u64, take: u64) -> Option<RosBatch> {
        let tid = self.host_tid(slot);
        let mut batch = RosBatch { pid: self.owner.pid, tid, counter: self.counter, ..RosBatch::default() };
        let mut last = 0;
        let mut positions = (0..take).map(|i| tail.wrapping_add(i)).peekable();
        while let Some(position) = positions.next() {
            // The producer finished the records before it published head.
            let [ticks, handle, event_kind, arg0] = self.shared.words(self.record(slot, position));
            if (event_kind >> 32) as u32 != ROS_EVENT {
                continue;
            }
            let rest =
                positions.peek().filter(|_| has_rest(event_kind)).map(|at| self.shared.words(self.record(slot, *at)));
            let rest = rest.filter(|[_, _, kind, _]: &[u64; 4]| (kind >> 32) as u32 == ROS_REST);
            if rest.is_some() {
                positions.next();
            }
            // As of stamps.
            last = ticks.max(last);
            let [arg1, arg2] = rest.map_or([0; 2], |[_, arg1, _, arg2]| [arg1, arg2]);
            batch.push(last, event_kind as u8, handle, [arg0, arg1, arg2]);
        }
        (!batch.ticks.is_empty()).then_some(batch)
    }

    /// The recording-wide number of one of this file's names; 0 for none or an unknown one.
    fn number(&mut self, id: u32, names: &mut Names) -> u32 {
        let index = id.wrapping_sub(1) as usize;
        if let Some(number) = self.numbers.get(index).filter(|number| **number != 0) {
            return *number;
        }
        if id == 0 || id > self.name_capacity {
            return 0;
        }
        let entry = self.names_offset + index * NAME_ENTRY_BYTES;
        let length = self.shared.u32(entry).load(Ordering::Acquire) as usize;
        if length == 0 || length > NAME_BYTES {
            return 0;
        }
        let mut bytes = [0; NAME_BYTES];
        // A published name is not written again.
        self.shared.copy(entry + 8, &mut bytes[..length]);
        if self.shared.is_cut() {
            return 0;
        }
        let number = names.number(&String::from_utf8_lossy(&bytes[..length]));
        if self.numbers.len() <= index {
            self.numbers.resize(index + 1, 0);
        }
        self.numbers[index] = number;
        number
    }

    /// A killed thread never closes its slot: do it in its name.
    fn close_dead_slots(&mut self) {
        if !self.owner.look_for_pid() {
            return;
        }
        for slot in 0..self.slot_count {
            let state = self.slot(slot);
            // State before tid: an open slot keeps its tid, a free one may be claimed at any moment.
            if self.shared.u32(state).load(Ordering::Acquire) != OPEN {
                continue;
            }
            if self.is_dead(slot) {
                let _ = self.shared.u32(state).compare_exchange(OPEN, CLOSED, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Whether /proc shows that a slot's thread is gone. Where it cannot be read, or does not identify the thread, it counts as alive:
    /// were its slot closed, two threads would write into one ring.
    fn is_dead(&mut self, slot: usize) -> bool {
        let gone = |pid: i32, tid: i32| !proc::runs_thread(pid, tid);
        let pid = self.owner.pid;
        match self.own_tid(slot) {
            (_, own) if self.owner.foreign_namespace.is_none() => gone(pid, own),
            (key, own) => match self.slots[slot].known_tid {
                Some((known, Some(tid))) if known == (key, own) => gone(pid, tid),
                // Asked anew: what failed before may have had another reason than that the thread is gone.
                _ => match proc::host_tid(pid, own) {
                    Ok(found) => {
                        self.slots[slot].known_tid = Some(((key, own), found));
                        found.is_none()
                    }
                    Err(_) => false,
                },
            },
        }
    }

    /// Host tid of a slot's thread; the slot's tid where that is not known.
    fn host_tid(&mut self, slot: usize) -> i32 {
        let (generation, own) = self.own_tid(slot);
        if self.owner.foreign_namespace.is_none() || !self.owner.is_found {
            return own;
        }
        let key = (generation, own);
        let found = match self.slots[slot].known_tid {
            Some((known, found)) if known == key => found,
            _ => {
                let found = proc::host_tid(self.owner.pid, own).ok().flatten();
                self.slots[slot].known_tid = Some((key, found));
                found
            }
        };
        found.unwrap_or(own)
    }

    /// Generation of a slot, and its thread's tid as the thread itself sees it.
    fn own_tid(&self, slot: usize) -> (u32, i32) {
        let at = self.slot(slot);
        let own = self.shared.u32(at + 4).load(Ordering::Relaxed) as i32;
        (self.shared.u32(at + 8).load(Ordering::Relaxed), own)
    }

    fn slot(&self, slot: usize) -> usize {
        self.slots_offset + slot * SLOT_BYTES
    }
}

#[cfg(test)]
mod tests;
