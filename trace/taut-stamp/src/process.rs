//! The process's side: making the ring file, names, fork. All of it is off the hot path
//! and behind one mutex, which only first stamps and first names take.

use core::{
    ffi::c_int,
    ptr::null_mut,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering},
};
use std::{
    ffi::CString,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
};

use taut_clock::Counter;

use crate::layout::*;

/// Nothing is known yet: the next stamp looks at `TAUT_SESSION`.
pub const UNKNOWN: u32 = 0;
/// No session: a stamp returns at once.
pub const OFF: u32 = 1;
/// A ring file is mapped.
pub const ON: u32 = 2;
/// A session was asked for and could not be had: stamps are counted and dropped.
pub const FAILED: u32 = 3;

/// One of the four states above; the hot path's one load.
pub static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
/// Stamps that could not be announced in any ring file.
static LOST_HERE: AtomicU64 = AtomicU64::new(0);
static HEADER: AtomicPtr<Header> = AtomicPtr::new(null_mut());
static FILE: Mutex<File> = Mutex::new(File { fd: -1, session: None, counter: Counter::Monotonic });

struct File {
    fd: c_int,
    /// The directory given to [`attach`]; else `TAUT_SESSION` counts.
    session: Option<PathBuf>,
    counter: Counter,
}

/// The mapped ring file of this process.
#[derive(Clone, Copy)]
pub struct Process {
    header: &'static Header,
}

/// The ring file, attaching first if nobody has tried yet. `None`: off or failed.
#[cold]
pub fn process() -> Option<Process> {
    if STATE.load(Ordering::Acquire) == UNKNOWN {
        let mut file = lock();
        if STATE.load(Ordering::Acquire) == UNKNOWN {
            let state = file.attach();
            STATE.store(state, Ordering::Release);
        }
    }
    (STATE.load(Ordering::Acquire) == ON).then(|| {
        // SAFETY: ON is stored (release) only after HEADER points to a mapping that is never unmapped
        // in this process; `forget_after_fork` stores UNKNOWN before it changes the pointer.
        Process { header: unsafe { &*HEADER.load(Ordering::Acquire) } }
    })
}

/// Uses `session` instead of `TAUT_SESSION`, unless a ring file is already in use.
pub fn attach(session: &Path) -> bool {
    let mut file = lock();
    if STATE.load(Ordering::Acquire) != ON {
        file.session = Some(session.to_owned());
        let state = file.attach();
        STATE.store(state, Ordering::Release);
        crate::thread::forget();
    }
    STATE.load(Ordering::Acquire) == ON
}

/// Counts a stamp that no ring took.
#[cold]
pub fn count_lost() {
    match process() {
        Some(process) => process.header.lost_without_slot.fetch_add(1, Ordering::Relaxed),
        None => LOST_HERE.fetch_add(1, Ordering::Relaxed),
    };
}

/// All stamps of this process that were lost.
pub fn lost() -> u64 {
    let slots = process().map_or(0, |p| {
        p.header.lost_without_slot.load(Ordering::Relaxed)
            + p.slots().iter().map(|s| s.lost.load(Ordering::Relaxed)).sum::<u64>()
    });
    LOST_HERE.load(Ordering::Relaxed) + slots
}

impl Process {
    pub fn counter(self) -> Counter {
        Counter::from_number(self.header.counter as u8).unwrap_or(Counter::Monotonic)
    }

    pub fn ring_records(self) -> u64 {
        u64::from(self.header.ring_records)
    }

    pub fn slots(self) -> &'static [Slot] {
        // SAFETY: the file was laid out by `build` with `slot_count` slots at this offset, zeroed, and stays mapped.
        unsafe {
            core::slice::from_raw_parts(
                self.base().add(self.header.slots_offset as usize).cast(),
                self.header.slot_count as usize,
            )
        }
    }

    /// The ring of slot `index`, its bytes reserved on the file system and mapped in.
    pub fn ring(self, index: usize) -> Option<*mut Record> {
        let bytes = self.ring_records() as usize * size_of::<Record>();
        let offset = self.header.rings_offset as usize + index * self.header.ring_stride as usize;
        let fd = lock().fd;
        // SAFETY: plain system calls on our own file and mapping; the range lies inside the mapping.
        unsafe {
            if libc::fallocate(fd, 0, offset as i64, bytes as i64) != 0 {
                return None;
            }
            let ring = self.base().add(offset);
            if libc::madvise(ring.cast(), bytes, libc::MADV_POPULATE_WRITE) != 0 {
                // Before Linux 5.14: touch every page. The space is reserved, so this cannot SIGBUS.
                for page in (0..bytes).step_by(4096) {
                    ring.add(page).write_volatile(ring.add(page).read_volatile());
                }
            }
            Some(ring.cast())
        }
    }

    /// The id of `name`, from 1; 0 when the table is full or the name empty.
    pub fn intern(self, name: &str) -> u32 {
        let mut length = name.len().min(NAME_BYTES - 1);
        while !name.is_char_boundary(length) {
            length -= 1;
        }
        let name = &name.as_bytes()[..length];
        if name.is_empty() {
            return 0;
        }
        let published = self.header.name_count.load(Ordering::Acquire).min(NAME_CAPACITY) as usize;
        let known = self.names()[..published].iter().position(|entry| entry.bytes() == Some(name));
        if let Some(index) = known {
            return index as u32 + 1;
        }
        let index = self.header.name_count.fetch_add(1, Ordering::AcqRel);
        let Some(entry) = self.names().get(index as usize) else {
            self.header.lost_names.fetch_add(1, Ordering::Relaxed);
            return 0;
        };
        // SAFETY: the fetch_add gave this entry to this thread alone until its length is published.
        unsafe { (&mut *entry.bytes.get())[..length].copy_from_slice(name) };
        entry.length.store(length as u32, Ordering::Release);
        index + 1
    }

    fn names(self) -> &'static [NameEntry] {
        // SAFETY: as for `slots`.
        unsafe {
            core::slice::from_raw_parts(
                self.base().add(self.header.names_offset as usize).cast(),
                self.header.name_capacity as usize,
            )
        }
    }

    fn base(self) -> *mut u8 {
        core::ptr::from_ref(self.header).cast_mut().cast()
    }
}

impl NameEntry {
    fn bytes(&self) -> Option<&[u8]> {
        let length = self.length.load(Ordering::Acquire) as usize;
        // SAFETY: a published entry is never written again.
        (1..=NAME_BYTES).contains(&length).then(|| unsafe { &(&(*self.bytes.get()))[..length] })
    }
}

fn lock() -> MutexGuard<'static, File> {
    FILE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl File {
    /// Builds and maps this process's ring file; returns the state that follows.
    fn attach(&mut self) -> u32 {
        register_fork_handler();
        let session = self.session.clone().or_else(|| std::env::var_os("TAUT_SESSION").map(PathBuf::from));
        let Some(session) = session.filter(|s| !s.as_os_str().is_empty()) else { return OFF };
        self.counter = best_counter();
        match self.build(&session) {
            Some(header) => {
                HEADER.store(header, Ordering::Release);
                ON
            }
            None => FAILED,
        }
    }

    fn build(&mut self, session: &Path) -> Option<*mut Header> {
        let ring_records = ring_records();
        let stride = (ring_records as usize * size_of::<Record>()).next_multiple_of(4096);
        let length = RINGS_OFFSET + SLOT_COUNT as usize * stride;
        let pid = std::process::id();
        for n in 0..10_000 {
            let temporary = c_path(&session.join(format!(".{pid}-{n}.tmp")))?;
            let path = session.join(format!("{pid}-{n}.taut"));
            if path.exists() {
                continue;
            }
            let path = c_path(&path)?;
            // SAFETY: system calls with valid C strings; every failure path closes and unlinks.
            unsafe {
                let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
                let fd = libc::open(temporary.as_ptr(), flags, 0o600);
                if fd < 0 && *libc::__errno_location() == libc::EEXIST {
                    continue;
                }
                if fd < 0 {
                    return None;
                }
                let header = lay_out(fd, length, stride, ring_records, self.counter);
                if header.is_none() || libc::rename(temporary.as_ptr(), path.as_ptr()) != 0 {
                    libc::close(fd);
                    libc::unlink(temporary.as_ptr());
                    return None;
                }
                if self.fd >= 0 {
                    libc::close(self.fd);
                }
                self.fd = fd;
                return header;
            }
        }
        None
    }
}

/// Reserves the fixed part, maps the file and fills in the header, with the names of the
/// file this process had before (its parent's, after a fork).
///
/// # Safety
/// `fd` is an open, empty regular file.
unsafe fn lay_out(fd: c_int, length: usize, stride: usize, ring_records: u32, counter: Counter) -> Option<*mut Header> {
    // SAFETY: of the caller; the mapping is as long as the file.
    unsafe {
        if libc::ftruncate(fd, length as i64) != 0 || libc::fallocate(fd, 0, 0, RINGS_OFFSET as i64) != 0 {
            return None;
        }
        let base = libc::mmap(null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0);
        if base == libc::MAP_FAILED {
            return None;
        }
        let header: *mut Header = base.cast();
        let parent = HEADER.load(Ordering::Acquire);
        if !parent.is_null() {
            let names = parent.cast::<u8>().add(NAMES_OFFSET);
            core::ptr::copy_nonoverlapping(names, base.cast::<u8>().add(NAMES_OFFSET), SLOTS_OFFSET - NAMES_OFFSET);
            (*header).name_count = AtomicU32::new((*parent).name_count.load(Ordering::Acquire).min(NAME_CAPACITY));
        }
        (*header).magic = MAGIC;
        (*header).version = VERSION;
        (*header).counter = counter as u32;
        (*header).pid = std::process::id();
        (*header).slot_count = SLOT_COUNT;
        (*header).ring_records = ring_records;
        (*header).name_capacity = NAME_CAPACITY;
        (*header).start_time = start_time();
        (*header).pid_namespace = pid_namespace();
        (*header).names_offset = NAMES_OFFSET as u64;
        (*header).slots_offset = SLOTS_OFFSET as u64;
        (*header).rings_offset = RINGS_OFFSET as u64;
        (*header).ring_stride = stride as u64;
        Some(header)
    }
}

fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

fn ring_records() -> u32 {
    let asked = std::env::var("TAUT_RING_RECORDS").ok().and_then(|text| text.parse::<u32>().ok());
    asked.filter(|n| n.is_power_of_two() && (64..=1 << 24).contains(n)).unwrap_or(DEFAULT_RING_RECORDS)
}

/// The best counter, or the one that `TAUT_CLOCK` forces.
fn best_counter() -> Counter {
    match std::env::var("TAUT_CLOCK").as_deref() {
        Ok("monotonic") => return Counter::Monotonic,
        #[cfg(target_arch = "x86_64")]
        Ok("tsc") => return Counter::Tsc,
        #[cfg(target_arch = "aarch64")]
        Ok("cntvct") => return Counter::Cntvct,
        _ => {}
    }
    if cfg!(target_arch = "aarch64") {
        return Counter::Cntvct;
    }
    if tsc_is_good() { Counter::Tsc } else { Counter::Monotonic }
}

#[cfg(target_arch = "x86_64")]
fn tsc_is_good() -> bool {
    use core::arch::x86_64::__cpuid;
    // Invariant TSC: Intel SDM vol. 2A, CPUID leaf 80000007H, EDX bit 8.
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
    let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let trusted = source.map_or(true, |s| ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"].contains(&s.trim()));
    invariant && trusted
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_is_good() -> bool {
    false
}

/// Field 22 of `/proc/self/stat`; 0 when unreadable.
fn start_time() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(19).and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self/ns/pid").map_or(0, |m| m.ino())
}

fn register_fork_handler() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the handlers only touch this crate's statics and this thread's slot.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(forget_after_fork));
    });
}

std::thread_local! {
    static HELD: core::cell::Cell<Option<MutexGuard<'static, File>>> = const { core::cell::Cell::new(None) };
}

/// Holds the mutex over the fork, so that the child does not inherit it locked by a thread it has not.
extern "C" fn before_fork() {
    let _ = HELD.try_with(|held| held.set(Some(lock())));
}

extern "C" fn after_fork_in_parent() {
    let _ = HELD.try_with(|held| drop(held.take()));
}

/// In the child: its parent's slots are not its own; the next stamp makes a file of its own.
extern "C" fn forget_after_fork() {
    let _ = HELD.try_with(|held| drop(held.take()));
    forget();
}

/// Forgets the ring file as a fork's child must.
pub fn forget() {
    if STATE.load(Ordering::Acquire) == ON {
        STATE.store(UNKNOWN, Ordering::Release);
    }
    LOST_HERE.store(0, Ordering::Relaxed);
    crate::thread::forget();
}
