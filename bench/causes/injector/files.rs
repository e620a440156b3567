//! Memory and files: pages that are not there, disks, and system calls that take time on the CPU.

use std::{
    fs::{File, OpenOptions},
    io::Read,
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::Path,
    ptr::null_mut,
};

use crate::{
    clock::{monotonic_ns, run_delay_ns, thread_cpu_ns},
    kinds::Kind,
    options::Options,
    random::Random,
};

const PAGE: usize = 4096;

/// Fresh anonymous pages, touched for the first time. Given back after the message.
#[derive(Default)]
pub struct FreshPages {
    memory: Option<Mapping>,
    taken_ns: u64,
}

const FRESH_BYTES: usize = 256 << 20;

impl Kind for FreshPages {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("page_fault_minor", "page_fault", "")
    }
    fn prepare(&mut self, _ns: u64) {
        let memory = Mapping::new(FRESH_BYTES, None);
        memory.advise(libc::MADV_NOHUGEPAGE);
        self.memory = Some(memory);
    }
    fn strike(&mut self, ns: u64) {
        let Some(memory) = &self.memory else { return };
        // By CPU time: who else has the CPU meanwhile is no page fault. Looked at seldom, since that is none either.
        let before = thread_cpu_ns();
        for page in 0..FRESH_BYTES / PAGE {
            memory.touch(page);
            if page % 16 == 0 && thread_cpu_ns() - before >= ns {
                break;
            }
        }
        self.taken_ns = thread_cpu_ns() - before;
    }
    fn settle(&mut self) -> u64 {
        self.memory = None;
        self.taken_ns
    }
}

/// Pages of a file that the page cache has forgotten, read in any order so that nothing is read ahead.
pub struct DroppedPages {
    file: File,
    memory: Option<Mapping>,
    random: Random,
    taken_ns: u64,
}

const FILE_BYTES: usize = 128 << 20;

impl DroppedPages {
    pub fn new(options: &Options) -> Result<DroppedPages, String> {
        let path = options.work.join("pages.bin");
        let file = open(&path)?;
        let block = vec![0x5a; 1 << 20];
        for number in 0..FILE_BYTES >> 20 {
            file.write_all_at(&block, (number << 20) as u64).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        file.sync_all().map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(DroppedPages { file, memory: None, random: Random::new(7), taken_ns: 0 })
    }
}

impl Kind for DroppedPages {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("page_fault_major", "page_fault", "")
    }
    fn prepare(&mut self, _ns: u64) {
        // SAFETY: advice about a file of ours; touches no memory.
        unsafe { libc::posix_fadvise(self.file.as_raw_fd(), 0, FILE_BYTES as i64, libc::POSIX_FADV_DONTNEED) };
        let memory = Mapping::new(FILE_BYTES, Some(&self.file));
        memory.advise(libc::MADV_RANDOM);
        self.memory = Some(memory);
    }
    fn strike(&mut self, ns: u64) {
        let Some(memory) = &self.memory else { return };
        let (before, waited_ns) = (monotonic_ns(), run_delay_ns());
        while monotonic_ns() - before < ns {
            memory.touch(self.random.between(0, (FILE_BYTES / PAGE) as u64) as usize);
        }
        let until = monotonic_ns();
        // Waiting for the CPU once the page is there is another cause.
        self.taken_ns = (until - before).saturating_sub(run_delay_ns() - waited_ns);
    }
    fn settle(&mut self) -> u64 {
        self.memory = None;
        self.taken_ns
    }
}

/// Brings to the disk what was written before the message. How much takes how long is learnt on the way.
pub struct Sync {
    file: File,
    bytes_per_ms: f64,
    written: usize,
    taken_ns: u64,
}

/// A sync takes that long however little there is to write.
const LEAST_BYTES: usize = 4096;
const MOST_BYTES: usize = 64 << 20;

impl Sync {
    pub fn new(options: &Options) -> Result<Sync, String> {
        let mut sync =
            Sync { file: open(&options.work.join("synced.bin"))?, bytes_per_ms: 2e6, written: 0, taken_ns: 0 };
        for _ in 0..4 {
            sync.prepare(4_000_000);
            sync.strike(4_000_000);
            sync.settle();
        }
        Ok(sync)
    }
}

impl Kind for Sync {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("disk", "disk", "")
    }
    fn prepare(&mut self, ns: u64) {
        self.written = ((self.bytes_per_ms * ns as f64 / 1e6) as usize).clamp(LEAST_BYTES, MOST_BYTES);
        let _ = self.file.write_all_at(&vec![1; self.written], 0);
    }
    fn strike(&mut self, _ns: u64) {
        let (before, on_cpu_ns, waited_ns) = (monotonic_ns(), thread_cpu_ns(), run_delay_ns());
        let _ = self.file.sync_all();
        let (until, on_cpu_ns) = (monotonic_ns(), thread_cpu_ns() - on_cpu_ns);
        // What the kernel computes for it is `syscall`, and waiting for the CPU afterwards is `wakeup`.
        self.taken_ns = (until - before).saturating_sub(on_cpu_ns + run_delay_ns() - waited_ns);
    }
    fn settle(&mut self) -> u64 {
        let per_ms = self.written as f64 / (self.taken_ns as f64 / 1e6).max(0.1);
        self.bytes_per_ms = 0.8 * self.bytes_per_ms + 0.2 * per_ms;
        self.taken_ns
    }
}

/// Reads of /dev/zero: the kernel's own work for this thread.
pub struct Zeros {
    file: File,
    buffer: Vec<u8>,
    taken_ns: u64,
}

impl Zeros {
    pub fn new() -> Result<Zeros, String> {
        let file = File::open("/dev/zero").map_err(|e| format!("/dev/zero: {e}"))?;
        Ok(Zeros { file, buffer: vec![1; 1 << 20], taken_ns: 0 })
    }
}

impl Kind for Zeros {
    fn name(&self) -> (&'static str, &'static str, &'static str) {
        ("syscall", "syscall", "read")
    }
    fn strike(&mut self, ns: u64) {
        let before = monotonic_ns();
        loop {
            let _ = self.file.read(&mut self.buffer);
            self.taken_ns = monotonic_ns() - before;
            if self.taken_ns >= ns {
                break;
            }
        }
    }
    fn settle(&mut self) -> u64 {
        self.taken_ns
    }
}

fn open(path: &Path) -> Result<File, String> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(|e| format!("{}: {e}", path.display()))
}

struct Mapping {
    memory: *mut u8,
    bytes: usize,
    writable: bool,
}

impl Mapping {
    /// Of the file, else of nothing.
    fn new(bytes: usize, file: Option<&File>) -> Mapping {
        let (protection, flags, fd) = match file {
            Some(file) => (libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd()),
            None => (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: a new mapping that only this value knows.
        let memory = unsafe { libc::mmap(null_mut(), bytes, protection, flags, fd, 0) };
        assert_ne!(memory, libc::MAP_FAILED, "no memory to be had");
        Mapping { memory: memory.cast(), bytes, writable: file.is_none() }
    }

    fn advise(&self, advice: i32) {
        // SAFETY: the mapping is ours, and none of the advices given changes what it holds.
        unsafe { libc::madvise(self.memory.cast(), self.bytes, advice) };
    }

    fn touch(&self, page: usize) {
        assert!((page + 1) * PAGE <= self.bytes);
        // SAFETY: within the mapping, and written to only where that is permitted.
        unsafe {
            let byte = self.memory.add(page * PAGE);
            if self.writable {
                byte.write_volatile(1)
            } else {
                std::hint::black_box(byte.read_volatile());
            }
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nobody holds a reference into it.
        unsafe { libc::munmap(self.memory.cast(), self.bytes) };
    }
}
