//! The consumer of descriptions of ROS 2 handles (`docs/reference/protocol.md`, "ROS 2 objects"): file → [`RosObject`].
//!
//! As in `rings`: another process wrote these bytes, and all of them are checked before use. The files are read from
//! their beginning by each recorder, so that one that comes late knows all handles.

use std::{io, path::Path, sync::atomic::Ordering};

use taut_recording::{LostWhat, RosObject, RosObjectKind};

use crate::{
    files::{Files, Mapped, Then},
    listing::Uncounted,
    owner::Owner,
    shared::{HEADER_BYTES, Shared, bad},
};

const MAGIC: &[u8; 8] = b"TAUTROSO";
const VERSION: u32 = 1;
const LENGTH: usize = 128;
const LOST: usize = 136;
/// Of an entry, before its texts.
const ENTRY_BYTES: usize = 56;
/// More than any producer writes.
const MOST_BYTES: u64 = 16 << 20;
/// Of each of an entry's two texts, likewise.
const TEXT_BYTES: usize = 1000;
/// Files at a time. Those beyond are taken up when others are gone.
const FILES_MAX: usize = 4096;
/// Read from one file in one go.
const TAKE_BYTES: u64 = 1 << 20;

/// What a drain brought.
#[derive(Debug, Default)]
pub struct Drained {
    /// In the order of their process.
    pub objects: Vec<RosObject>,
    /// Objects that had no room since the last drain, by place.
    pub lost: Vec<(String, u64)>,
    /// Files that are not as the protocol defines them, with the reason; each is reported once.
    pub refused: Vec<String>,
    /// What is lost by files that were refused, here or when they were found, in an unknown number.
    pub uncounted: Vec<Uncounted>,
}

/// The files of objects of a session directory.
pub struct RosObjects {
    files: Files<ObjectsFile>,
}

impl RosObjects {
    /// Watches a session directory.
    pub fn open(directory: &Path) -> RosObjects {
        RosObjects { files: Files::new(directory, "ros", (LostWhat::RosEvents, "ROS 2 names are")) }
    }

    /// Looks for new files.
    pub fn discover(&mut self, refused: &mut Vec<String>) {
        let others = "the others have no names until some have ended";
        self.files.discover((FILES_MAX, "ROS 2 processes", others), ObjectsFile::open, refused);
    }

    /// What could not be taken up so far, but may be.
    pub fn unread(&self) -> Vec<Uncounted> {
        self.files.unread()
    }

    /// Files of which nothing is recorded now.
    pub fn missing(&self) -> Vec<Uncounted> {
        self.files.missing()
    }

    /// How many files were taken up so far, and how many are open.
    pub fn known(&self) -> [usize; 2] {
        self.files.known()
    }

    /// Takes what the files hold that was not taken before, and removes those of processes that are gone.
    pub fn drain(&mut self) -> Drained {
        let mut drained = Drained::default();
        self.files.sort_out(|path, file| match file.drain(&mut drained) {
            Ok(true) => Then::IsDone,
            Ok(false) => Then::Stays,
            Err(error) => {
                let why = format!("{}: {error}; the ROS 2 names behind are missing", path.display());
                drained.refused.push(why.clone());
                Then::IsRefused(why)
            }
        });
        drained.uncounted.extend(self.files.take_lost());
        drained
    }

    /// Whether a file holds more than was taken.
    pub fn has_more(&self) -> bool {
        self.files.iter().any(|file| file.length() > file.taken)
    }

    /// Looks which processes are gone: their files go with the next drain. To be called now and then: it asks /proc.
    pub fn note_dead(&mut self) {
        self.files.iter_mut().for_each(|file| file.is_dead = file.is_dead || !file.owner.is_alive());
    }
}

/// One process's file, of which the header is mapped.
struct ObjectsFile {
    shared: Shared,
    owner: Owner,
    is_dead: bool,
    /// Bytes of entries.
    taken: u64,
    /// The lost counter as last seen.
    lost: u64,
}

impl Mapped for ObjectsFile {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn holds(&self) -> LostWhat {
        LostWhat::RosEvents
    }
}

impl ObjectsFile {
    fn open(path: &Path) -> io::Result<ObjectsFile> {
        let shared = Shared::open(path)?;
        let header = shared.header();
        if header.magic() != MAGIC {
            return Err(bad("not a file of ROS 2 objects"));
        }
        if header.u32(8) != VERSION {
            return Err(bad(&format!("version {} of ROS 2 objects, this taut knows {VERSION}", header.u32(8))));
        }
        let owner = Owner::new(header.u32(16) as i32, header.u64(40), header.u64(32));
        shared.check_owner(&owner)?;
        Ok(ObjectsFile { shared, owner, is_dead: false, taken: 0, lost: 0 })
    }

    /// Bytes of entries that are published.
    fn length(&self) -> u64 {
        self.shared.u64(LENGTH).load(Ordering::Acquire)
    }

    /// Takes what is new; whether that was the last that there will ever be.
    fn drain(&mut self, drained: &mut Drained) -> io::Result<bool> {
        // Liveness is older than the length: what a process wrote before it died is then published.
        let is_dead = self.is_dead;
        let length = self.length();
        if length > MOST_BYTES || length < self.taken {
            return Err(bad(&format!("it states {length} bytes of objects after {}", self.taken)));
        }
        let lost = self.shared.u64(LOST).load(Ordering::Relaxed);
        let more = lost.saturating_sub(std::mem::replace(&mut self.lost, lost));
        if more > 0 {
            drained.lost.push((format!("process {}, objects", self.owner.pid), more));
        }
        if length == self.taken {
            return Ok(is_dead);
        }
        let mut bytes = vec![0; (length - self.taken).min(TAKE_BYTES) as usize];
        self.shared.read_at(HEADER_BYTES as u64 + self.taken, &mut bytes)?;
        let mut rest = bytes.as_slice();
        while let Some((object, size)) = entry(rest, self.owner.pid).map_err(bad)? {
            drained.objects.push(object);
            self.taken += size as u64;
            rest = &rest[size..];
        }
        // What was published is whole; only what did not fit into `bytes` is left.
        if rest.len() == bytes.len() {
            return Err(bad("an entry is longer than what is published"));
        }
        Ok(is_dead && self.taken == length)
    }
}

/// The first entry and its size; `None` where it is not whole.
fn entry(bytes: &[u8], pid: i32) -> Result<Option<(RosObject, usize)>, &'static str> {
    let Some((head, _)) = bytes.split_at_checked(ENTRY_BYTES) else { return Ok(None) };
    let u16_at = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let u32_at = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    let (size, name, text) = (u32_at(0) as usize, u16_at(48), u16_at(50));
    if !size.is_multiple_of(8) || name > TEXT_BYTES || text > TEXT_BYTES || size < ENTRY_BYTES + name + text {
        return Err("an entry does not fit its size");
    }
    if size > ENTRY_BYTES + 2 * TEXT_BYTES + 8 {
        return Err("an entry is longer than any");
    }
    let Some(entry) = bytes.get(..size) else { return Ok(None) };
    let string = |from: usize, length: usize| String::from_utf8_lossy(&entry[from..from + length]).into_owned();
    let object = RosObject {
        kind: u8::try_from(u32_at(4)).map_or(RosObjectKind::Unknown, RosObjectKind::from_number),
        pid,
        time_ns: u64_at(8),
        handle: u64_at(16),
        owner: u64_at(24),
        other: u64_at(32),
        number: u64_at(40),
        name: string(ENTRY_BYTES, name),
        text: string(ENTRY_BYTES + name, text),
    };
    Ok(Some((object, size)))
}

#[cfg(test)]
mod tests;
