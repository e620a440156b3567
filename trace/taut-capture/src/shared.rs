//! A file of the session that another process writes and this one maps. Its bytes may be anything: they are copied out
//! before use, or are atomics; and no place outside the mapping is touched, whatever the file says.

use std::{
    fs::{File, TryLockError},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    },
    path::Path,
    sync::atomic::{AtomicU32, AtomicU64},
};

use memmap2::{MmapOptions, MmapRaw};

use crate::{cut::Watched, owner::Owner, proc};

/// What is laid out at least.
pub const HEADER_BYTES: usize = 4096;

/// Left for /proc, which lists running threads, and for saves: the kernel gives the lowest free number.
const SPARE_DESCRIPTORS: u64 = 8;

/// The file, mapped.
pub struct Shared {
    file: File,
    // Before the mapping: fields are dropped in their order.
    watched: Watched,
    map: MmapRaw,
    uid: u32,
    device: u64,
    inode: u64,
}

/// The lock goes by hand: a program that is being started may still have the descriptor.
impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// The part of a header that is written once, before the file gets its name.
pub struct Header([u8; 88]);

impl Shared {
    pub fn open(path: &Path) -> io::Result<Shared> {
        // Not waited for: what has this name may be a pipe.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = File::options().read(true).write(true).custom_flags(flags).open(path)?;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        if limit.is_some_and(|limit| file.as_raw_fd() as u64 + SPARE_DESCRIPTORS >= limit) {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() < HEADER_BYTES as u64 {
            return Err(bad("shorter than a header"));
        }
        let map = MmapOptions::new().map_raw(&file)?;
        let watched = Watched::new(map.as_ptr(), map.len())?;
        Ok(Shared { file, watched, map, uid: metadata.uid(), device: metadata.dev(), inode: metadata.ino() })
    }

    /// Whether a path that is listed with this inode is still this file's, and not that of another one that came in its place.
    pub fn has_name(&self, path: &Path, listed: u64) -> bool {
        // On a file system of layers a directory may have other numbers than the files: those are asked then.
        listed == self.inode
            || !std::fs::symlink_metadata(path)
                .is_ok_and(|there| (there.dev(), there.ino()) != (self.device, self.inode))
    }

    /// Refuses a process that the file's owner cannot speak for. A recorder that runs as root reads the sessions of others,
    /// and must not report a third user's process because another's file names it.
    pub fn check_owner(&self, owner: &Owner) -> io::Result<()> {
        if !owner.is_found || self.uid == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        match proc::uids(owner.pid) {
            Some(uids) if !uids.contains(&self.uid) => {
                Err(bad(&format!("it names process {}, which is another user's", owner.pid)))
            }
            _ => Ok(()),
        }
    }

    /// Locks the file for its one consumer, until this goes; whether that was possible now.
    ///
    /// # Errors
    /// It cannot be locked at all.
    pub fn lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Bytes that are mapped.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether the file still is as long as it was. Where it cannot be asked for now, a read says so: see [`Shared::is_cut`].
    pub fn is_whole(&self) -> bool {
        !self.is_cut() && self.file.metadata().map_or(true, |now| now.len() >= self.map.len() as u64)
    }

    /// Whether it was cut under a read, so that zeros were read.
    pub fn is_cut(&self) -> bool {
        self.watched.is_cut()
    }

    pub fn header(&self) -> Header {
        let mut bytes = [0; 88];
        self.copy(0, &mut bytes);
        Header(bytes)
    }

    /// Copies what lies there now. Bytes that are being written come out as nonsense, and stay one.
    pub fn copy(&self, at: usize, into: &mut [u8]) {
        let from = self.at(at, into.len(), 1);
        // SAFETY: that many bytes of the mapping, which lives in `self`; any bytes are valid ones.
        unsafe { from.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
    }

    /// Reads what lies in the file, also behind what is mapped: for files that grow.
    ///
    /// # Errors
    /// The file is shorter, or cannot be read.
    pub fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }

    /// Copies as numbers what lies there now.
    pub fn words<const N: usize>(&self, at: usize) -> [u64; N] {
        let from = self.at(at, 8 * N, 8);
        // SAFETY: as for `copy`, and aligned.
        unsafe { from.cast::<[u64; N]>().read() }
    }

    pub fn u32(&self, at: usize) -> &AtomicU32 {
        let at = self.at(at, 4, 4);
        // SAFETY: in the mapping and aligned; the memory is shared, hence atomic.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }

    pub fn u64(&self, at: usize) -> &AtomicU64 {
        let at = self.at(at, 8, 8);
        // SAFETY: as for `u32`.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    /// A place in the mapping, whose start is a page's; panics outside of it.
    fn at(&self, at: usize, bytes: usize, align: usize) -> *mut u8 {
        let is_inside = at.checked_add(bytes).is_some_and(|end| end <= self.map.len());
        assert!(is_inside && at.is_multiple_of(align), "{bytes} bytes at {at} of {}", self.map.len());
        self.map.as_mut_ptr().wrapping_add(at)
    }
}

impl Header {
    pub fn magic(&self) -> &[u8] {
        &self.0[..8]
    }

    pub fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    pub fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }

    /// One that is no size here is one that fits nothing.
    pub fn size(&self, at: usize) -> usize {
        usize::try_from(self.u64(at)).unwrap_or(usize::MAX)
    }
}

/// Why a file is refused.
pub fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}
