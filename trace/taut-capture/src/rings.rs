//! The one consumer of the stamping protocol (`docs/protocol.md`): ring files → batches.
//!
//! Another process wrote these bytes. Every offset and count is checked before use; a file that is
//! not what the protocol says is refused once and told, and its stamps are not believed.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use memmap2::{MmapOptions, MmapRaw};
use taut_recording::{Name, StampBatch};

const MAGIC: &[u8; 8] = b"TAUTRING";
const VERSION: u32 = 1;
const RECORD_BYTES: usize = 32;
const NAME_ENTRY_BYTES: usize = 128;
const NAME_BYTES: usize = 120;
const SLOT_BYTES: usize = 256;
const OUTCOME: u8 = 4;
/// More than any producer lays out; bounds what a damaged header can ask for.
const SLOTS_MAX: u32 = 4096;
const NAMES_MAX: u32 = 1 << 20;
/// Stamps taken from one slot in one go, so that one busy thread does not starve the others.
const BATCH_MAX: u64 = 65_536;

const FREE: u32 = 0;
const OPEN: u32 = 1;
const CLOSED: u32 = 2;

/// Names of the whole recording: equal names of all processes share one number.
#[derive(Debug, Default)]
pub struct Names {
    numbers: HashMap<String, u32>,
    fresh: Vec<Name>,
}

impl Names {
    /// The number of a name, from 1.
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
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
    /// Stamps lost since the last drain, by place ("pid/tid" or "pid").
    pub lost: Vec<(String, u64)>,
    /// Ring files that are not what the protocol says, with why; each is told once.
    pub refused: Vec<String>,
}

/// A session directory and the ring files found in it.
pub struct Session {
    directory: PathBuf,
    names: Names,
    rings: HashMap<PathBuf, RingFile>,
    refused: HashSet<PathBuf>,
    late: bool,
}

impl Session {
    /// Watches a session directory from now on.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn open(directory: &Path) -> io::Result<Session> {
        fs::read_dir(directory)?;
        Ok(Session {
            directory: directory.to_owned(),
            names: Names::default(),
            rings: HashMap::new(),
            refused: HashSet::new(),
            late: false,
        })
    }

    /// Like [`Session::open`] for one that has been stamped into before: what is in the rings now is
    /// skipped, and losses count from now.
    pub fn open_late(directory: &Path) -> io::Result<Session> {
        let mut session = Session { late: true, ..Session::open(directory)? };
        session.discover(&mut Drained::default());
        session.late = false;
        Ok(session)
    }

    /// Names and their numbers.
    pub fn names(&mut self) -> &mut Names {
        &mut self.names
    }

    /// Host pids of the processes whose rings are known.
    pub fn pids(&self) -> Vec<i32> {
        self.rings.values().map(|ring| ring.pid).collect()
    }

    /// Looks for new ring files: one listing of a small directory.
    pub fn discover(&mut self, drained: &mut Drained) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let is_ring = path.extension().is_some_and(|e| e == "taut");
            if !is_ring || self.rings.contains_key(&path) || self.refused.contains(&path) {
                continue;
            }
            match RingFile::open(&path, self.late) {
                Ok(ring) => {
                    self.rings.insert(path, ring);
                }
                Err(error) => {
                    drained.refused.push(format!("{}: {error}; its stamps are not recorded", path.display()));
                    self.refused.insert(path);
                }
            }
        }
    }

    /// Takes what all rings hold.
    pub fn drain(&mut self) -> Drained {
        let mut drained = Drained::default();
        for ring in self.rings.values_mut() {
            ring.drain(&mut self.names, &mut drained);
        }
        drained
    }

    /// Frees the slots of threads that are gone, and removes the files of processes that are gone and
    /// drained. To be called now and then, not in each round: it asks /proc.
    pub fn reap(&mut self) -> Drained {
        let mut drained = Drained::default();
        let names = &mut self.names;
        self.rings.retain(|path, ring| {
            // Liveness is read before the last drain: what a process wrote before it died is then in the ring.
            if ring.is_alive() {
                ring.close_dead_slots();
                return true;
            }
            while ring.drain(names, &mut drained) > 0 {}
            let _ = fs::remove_file(path);
            false
        });
        drained
    }
}

/// One process's ring file, mapped.
struct RingFile {
    map: MmapRaw,
    pid: i32,
    /// As the process sees itself; differs from `pid` in a PID namespace.
    own_pid: i32,
    start_time: u64,
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
    lost_by_slot: Vec<u64>,
    lost_without_slot: u64,
    lost_names: u64,
}

impl RingFile {
    fn open(path: &Path, late: bool) -> io::Result<RingFile> {
        let file = File::options().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
        let length = file.metadata()?.len();
        if !file.metadata()?.is_file() || length < 4096 {
            return Err(bad("shorter than a header"));
        }
        let map = MmapOptions::new().map_raw(&file)?;
        let length = map.len();
        let ring = RingFile::check(map, length)?;
        if late {
            return Ok(ring.skip());
        }
        Ok(ring)
    }

    /// Reads the header and believes it only as far as it fits the file.
    fn check(map: MmapRaw, length: usize) -> io::Result<RingFile> {
        // SAFETY: the mapping is at least 4096 bytes long, page-aligned, and lives in `map`. Fields written
        // once before the rename are read as plain bytes; a hostile writer can only make them nonsense,
        // which the checks below refuse.
        let header = unsafe { std::slice::from_raw_parts(map.as_ptr(), 4096) };
        let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let size_at = |at: usize| usize::try_from(u64_at(at)).unwrap_or(usize::MAX);
        if &header[..8] != MAGIC {
            return Err(bad("not a ring file"));
        }
        if u32_at(8) != VERSION {
            return Err(bad(&format!("protocol version {}, this taut knows {VERSION}", u32_at(8))));
        }
        let (slot_count, ring_records, name_capacity) = (u32_at(20), u32_at(24), u32_at(28));
        let (names, slots, rings, stride) = (size_at(48), size_at(56), size_at(64), size_at(72));
        let fits = |offset: usize, count: usize, each: usize| {
            offset >= 4096
                && offset.is_multiple_of(64)
                && count.checked_mul(each).and_then(|n| n.checked_add(offset)).is_some_and(|end| end <= length)
        };
        let sound = (1..=SLOTS_MAX).contains(&slot_count)
            && (1..=NAMES_MAX).contains(&name_capacity)
            && ring_records.is_power_of_two()
            && stride >= ring_records as usize * RECORD_BYTES
            && fits(names, name_capacity as usize, NAME_ENTRY_BYTES)
            && fits(slots, slot_count as usize, SLOT_BYTES)
            && fits(rings, slot_count as usize, stride);
        if !sound {
            return Err(bad("its header does not fit the file"));
        }
        let own_pid = u32_at(16) as i32;
        Ok(RingFile {
            pid: host_pid(own_pid, u64_at(40)),
            own_pid,
            start_time: u64_at(32),
            counter: u32_at(12) as u8,
            slot_count: slot_count as usize,
            ring_records: u64::from(ring_records),
            name_capacity,
            names_offset: names,
            slots_offset: slots,
            rings_offset: rings,
            ring_stride: stride,
            numbers: Vec::new(),
            lost_by_slot: vec![0; slot_count as usize],
            lost_without_slot: 0,
            lost_names: 0,
            map,
        })
    }

    /// For a consumer that comes late: nothing before now counts.
    fn skip(mut self) -> RingFile {
        for slot in 0..self.slot_count {
            let head = self.u64(self.slot(slot) + 64).load(Ordering::Acquire);
            self.u64(self.slot(slot) + 128).store(head, Ordering::Release);
            self.lost_by_slot[slot] = self.u64(self.slot(slot) + 72).load(Ordering::Relaxed);
        }
        self.lost_without_slot = self.u64(192).load(Ordering::Relaxed);
        self.lost_names = self.u64(200).load(Ordering::Relaxed);
        self
    }

    /// Takes what the slots hold; returns how many stamps that were.
    fn drain(&mut self, names: &mut Names, drained: &mut Drained) -> u64 {
        let mut taken = 0;
        for slot in 0..self.slot_count {
            taken += self.drain_slot(slot, names, drained);
        }
        for (offset, what) in [(192, "no free slot"), (200, "name table full")] {
            let now = self.u64(offset).load(Ordering::Relaxed);
            let before = if offset == 192 { &mut self.lost_without_slot } else { &mut self.lost_names };
            let more = now.saturating_sub(std::mem::replace(before, now));
            // A refused name loses the name, not the stamp; it is told all the same.
            if more > 0 {
                drained.lost.push((format!("process {}, {what}", self.pid), more));
            }
        }
        taken
    }

    fn drain_slot(&mut self, slot: usize, names: &mut Names, drained: &mut Drained) -> u64 {
        let at = self.slot(slot);
        // State before head: a slot seen closed has no more records than its head says.
        let state = self.u32(at).load(Ordering::Acquire);
        let tail = self.u64(at + 128).load(Ordering::Relaxed);
        // SYNC POINT head
        let head = self.u64(at + 64).load(Ordering::Acquire);
        let waiting = head.wrapping_sub(tail);
        if waiting > self.ring_records {
            // No producer does this. Believe nothing of it, and go on from its head.
            drained.refused.push(format!(
                "process {}: slot {slot} states {waiting} records in a ring of {}",
                self.pid, self.ring_records
            ));
            self.u64(at + 128).store(head, Ordering::Release);
            return 0;
        }
        let tid = self.host_tid(self.u32(at + 4).load(Ordering::Relaxed) as i32);
        let take = waiting.min(BATCH_MAX);
        if take > 0 {
            drained.batches.push(self.copy(slot, tail..tail + take, tid, names));
            // SYNC POINT tail
            self.u64(at + 128).store(tail + take, Ordering::Release);
        }
        let lost = self.u64(at + 72).load(Ordering::Relaxed);
        let more = lost.saturating_sub(std::mem::replace(&mut self.lost_by_slot[slot], lost));
        if more > 0 {
            drained.lost.push((format!("{}/{tid}", self.pid), more));
        }
        if state == CLOSED && take == waiting {
            self.u32(at).store(FREE, Ordering::Release);
        }
        take
    }

    fn copy(&mut self, slot: usize, positions: std::ops::Range<u64>, tid: i32, names: &mut Names) -> StampBatch {
        let n = (positions.end - positions.start) as usize;
        let mut batch = StampBatch { pid: self.pid, tid, counter: self.counter, ..StampBatch::default() };
        batch.ticks.reserve(n);
        batch.message_id.reserve(n);
        batch.point.reserve(n);
        batch.kind.reserve(n);
        batch.value.reserve(n);
        let ring = self.rings_offset + slot * self.ring_stride;
        let mut last = 0;
        for position in positions {
            let at = ring + (position & (self.ring_records - 1)) as usize * RECORD_BYTES;
            // SAFETY: `check` saw that the ring lies in the mapping, and the mask keeps the position in the ring.
            // The producer finished the record before it published head; any bytes are a valid [u64; 4].
            let [ticks, id, point_kind, value] = unsafe { self.map.as_ptr().add(at).cast::<[u64; 4]>().read() };
            let kind = (point_kind >> 32) as u8;
            // A thread's counter does not run backwards; across cores it may seem to by a few ticks.
            last = ticks.max(last);
            batch.ticks.push(last);
            batch.message_id.push(id);
            batch.point.push(self.number(point_kind as u32, names));
            batch.kind.push(kind);
            batch.value.push(if kind == OUTCOME { u64::from(self.number(value as u32, names)) } else { value });
        }
        batch
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
        let length = self.u32(entry).load(Ordering::Acquire) as usize;
        if length == 0 || length > NAME_BYTES {
            return 0;
        }
        // SAFETY: `check` saw that the table lies in the mapping; a published name is not written again.
        let bytes = unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(entry + 8), length) };
        let number = names.number(&String::from_utf8_lossy(bytes));
        if self.numbers.len() <= index {
            self.numbers.resize(index + 1, 0);
        }
        self.numbers[index] = number;
        number
    }

    /// Whether the process that made the file still runs.
    fn is_alive(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.pid))
            .ok()
            .and_then(|stat| crate::proc::start_time(&stat))
            .is_some_and(|start| self.start_time == 0 || start == self.start_time)
    }

    /// A killed thread never closes its slot: do it in its name.
    fn close_dead_slots(&self) {
        for slot in 0..self.slot_count {
            let state = self.u32(self.slot(slot));
            let tid = self.host_tid(self.u32(self.slot(slot) + 4).load(Ordering::Relaxed) as i32);
            if state.load(Ordering::Acquire) == OPEN && !Path::new(&format!("/proc/{}/task/{tid}", self.pid)).exists() {
                let _ = state.compare_exchange(OPEN, CLOSED, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Host tid of a tid as the process sees it.
    fn host_tid(&self, tid: i32) -> i32 {
        // Within one process, pid and tids are shifted alike only by luck; ask only when namespaces differ.
        if self.pid == self.own_pid { tid } else { host_tid_in(self.pid, tid) }
    }

    fn slot(&self, slot: usize) -> usize {
        self.slots_offset + slot * SLOT_BYTES
    }

    fn u32(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at + 4 <= self.map.len());
        // SAFETY: `check` saw that the offset lies in the mapping and is aligned; the memory is shared, hence atomic.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    fn u64(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at + 8 <= self.map.len());
        // SAFETY: as for `u32`.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

/// The pid as we see it of a process that calls itself `own` in PID namespace `namespace`.
fn host_pid(own: i32, namespace: u64) -> i32 {
    use std::os::unix::fs::MetadataExt;
    let inode = |path: &str| fs::metadata(path).map_or(0, |m| m.ino());
    if namespace == 0 || namespace == inode("/proc/self/ns/pid") {
        return own;
    }
    let in_namespace = |pid: &i32| {
        inode(&format!("/proc/{pid}/ns/pid")) == namespace
            && crate::proc::innermost_pid(&format!("/proc/{pid}/status")) == Some(own)
    };
    crate::proc::pids().into_iter().find(in_namespace).unwrap_or(own)
}

fn host_tid_in(pid: i32, own: i32) -> i32 {
    let innermost = |tid: &i32| crate::proc::innermost_pid(&format!("/proc/{pid}/task/{tid}/status"));
    crate::proc::tids(pid).into_iter().find(|tid| innermost(tid) == Some(own)).unwrap_or(own)
}
