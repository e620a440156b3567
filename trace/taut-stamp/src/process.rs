//! The process's side: making the ring file, names, fork. All of it is off the hot path
//! and behind one mutex, which only first stamps and first names take.

use core::{
    ffi::c_int,
    ptr::null_mut,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering},
};
use std::{
    ffi::{CStr, CString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
};

use taut_clock::Counter;

use crate::{
    layout::*,
    ring,
    telemetry::ring::{Known, Ring},
};

/// Nothing is known yet: the next stamp looks at `TAUT_SESSION`.
pub const UNKNOWN: u32 = 0;
/// No session: a stamp returns at once.
pub const OFF: u32 = 1;
/// A ring file is mapped.
pub const ON: u32 = 2;
/// A session was asked for and could not be had: stamps are counted and dropped, and it is tried again.
pub const FAILED: u32 = 3;

/// One of the four states above; the hot path's one load.
pub static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
/// Stamps that could not be announced in any ring file yet.
static LOST_HERE: AtomicU64 = AtomicU64::new(0);
/// The same of telemetry.
static LOST_TELEMETRY_HERE: AtomicU64 = AtomicU64::new(0);
static HEADER: AtomicPtr<Header> = AtomicPtr::new(null_mut());
static FILE: Mutex<File> = Mutex::new(File::none());

struct File {
    fd: c_int,
    /// Device and inode of the ring file: robots that become daemons close descriptors they do not know.
    identity: Option<(u64, u64)>,
    /// Where the rings are mapped, each since its slot's first claim; null before. Behind the mutex: no atomic access.
    rings: [AtomicPtr<Record>; SLOT_COUNT as usize],
    /// Length of each of those mappings.
    ring_bytes: usize,
    /// The directory given to [`attach`]; else `TAUT_SESSION` counts.
    session: Option<PathBuf>,
    counter: Counter,
    /// Telemetry channels of this process.
    channels: Vec<Known>,
}

/// The mapped ring file of this process.
#[derive(Clone, Copy)]
pub struct Process {
    header: &'static Header,
}

/// The ring file, attaching first if this was not tried yet. `None`: off or failed.
#[cold]
pub fn process() -> Option<Process> {
    if STATE.load(Ordering::Acquire) == UNKNOWN {
        let _aside = Aside::step();
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
    let _aside = Aside::step();
    if STATE.load(Ordering::Acquire) != ON {
        // Not with the mutex: a shared object's first access to its thread-locals may take the loader's lock, and who has that
        // (dlopen, while constructors run) may be about to stamp.
        crate::thread::forget();
    }
    let mut file = lock();
    if STATE.load(Ordering::Acquire) != ON {
        file.session = Some(session.to_owned());
        let state = file.attach();
        STATE.store(state, Ordering::Release);
    }
    STATE.load(Ordering::Acquire) == ON
}

/// The session directory in use, or to be used.
pub fn session() -> Option<PathBuf> {
    lock().session()
}

/// Remembers a telemetry channel, for a fork's child.
pub fn know(ring: Known) {
    lock().channels.push(ring);
}

/// The channel is about to go.
pub fn forget_ring(ring: &Ring) {
    lock().channels.retain(|known| !known.is(ring));
}

/// Counts telemetry that no ring took.
#[cold]
pub fn count_lost_telemetry() {
    if STATE.load(Ordering::Relaxed) != OFF {
        count(|header| &header.lost_telemetry, &LOST_TELEMETRY_HERE);
    }
}

/// Counts a stamp that no ring took.
#[cold]
pub fn count_lost() {
    count(|header| &header.lost_without_slot, &LOST_HERE);
}

/// Without a ring file the 2nd, 4th, 8th … of what is lost tries once more to make it: what was in the way (no descriptor
/// left, no room) may be gone.
fn count(in_file: impl FnOnce(&'static Header) -> &'static AtomicU64, here: &AtomicU64) {
    if let Some(process) = process() {
        in_file(process.header).fetch_add(1, Ordering::Relaxed);
        return;
    }
    let lost = here.fetch_add(1, Ordering::Relaxed) + 1;
    if lost < 2 || !lost.is_power_of_two() {
        return;
    }
    let _aside = Aside::step();
    let mut file = lock();
    if STATE.load(Ordering::Acquire) == FAILED {
        let state = file.attach();
        STATE.store(state, Ordering::Release);
    }
    drop(file);
    if STATE.load(Ordering::Acquire) == ON {
        // Not with the mutex, as in `attach`.
        crate::thread::look_again();
    }
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

    pub fn start_time(self) -> u64 {
        self.header.start_time
    }

    pub fn pid_namespace(self) -> u64 {
        self.header.pid_namespace
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
        let offset = self.header.rings_offset as usize + index * self.header.ring_stride as usize;
        lock().ring(index, offset)
    }

    /// Takes a slot of an ended thread, where no consumer is to free one; it is then being claimed.
    pub fn reclaim(self) -> Option<usize> {
        let file = lock();
        // The lock says so: a consumer holds it while it has the file, and waits while it is held here.
        // SAFETY: plain system calls on our own file.
        if !file.is_ours() || unsafe { libc::flock(file.fd, libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            return None;
        }
        let index = self.slots().iter().position(|slot| ring::take(&slot.state, CLOSED));
        if let Some(index) = index {
            let (slot, mask) = (&self.slots()[index], self.ring_records() - 1);
            let ring = file.rings[index].load(Ordering::Relaxed);
            let keep = |from: u64, to: u64| {
                // SAFETY: a slot that was closed has its ring mapped, of `mask` + 1 records, and is now this thread's.
                unsafe {
                    let record = ring.add((from & mask) as usize).read();
                    if record.kind == crate::LOCK_NAMED {
                        ring.add((to & mask) as usize).write(record);
                    }
                    record.kind == crate::LOCK_NAMED
                }
            };
            ring::discard(&slot.head, &slot.tail, &slot.lost, mask + 1, keep);
        }
        // By hand: a child of raw clone has the descriptor, too.
        // SAFETY: as above.
        unsafe { libc::flock(file.fd, libc::LOCK_UN) };
        index
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
        // A full table is not counted further: the number would come round, and entries be written again.
        let index = match published < NAME_CAPACITY as usize {
            true => self.header.name_count.fetch_add(1, Ordering::AcqRel),
            false => NAME_CAPACITY,
        };
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
    const fn none() -> File {
        let rings = [const { AtomicPtr::new(null_mut()) }; SLOT_COUNT as usize];
        File {
            fd: -1,
            identity: None,
            rings,
            ring_bytes: 0,
            session: None,
            counter: Counter::Monotonic,
            channels: Vec::new(),
        }
    }

    /// Whether the descriptor still is the ring file's.
    fn is_ours(&self) -> bool {
        self.identity.is_some() && identity_of(self.fd) == self.identity
    }

    /// The ring of a slot at this offset. Rings are mapped one by one when claimed: under `mlockall(MCL_FUTURE)` a
    /// mapping of the whole file would take memory for all of them.
    fn ring(&mut self, index: usize, offset: usize) -> Option<*mut Record> {
        let known = *self.rings[index].get_mut();
        if !known.is_null() {
            return Some(known); // An earlier thread's of this slot.
        }
        let bytes = self.ring_bytes;
        // SAFETY: plain system calls on our own file; the range lies inside it, as `build` made it that long.
        unsafe {
            // Reserved first: a full tmpfs is an error here, never a SIGBUS later.
            if !self.is_ours() || libc::fallocate(self.fd, 0, offset as i64, bytes as i64) != 0 {
                return None;
            }
            let ring = map(self.fd, offset, bytes)?;
            populate(ring, bytes);
            *self.rings[index].get_mut() = ring.cast();
            Some(ring.cast())
        }
    }

    /// The new file takes the place of the parent's, whose rings are not this process's to write.
    fn take_over(&mut self, fd: c_int, ring_bytes: usize) {
        // SAFETY: the mappings are this struct's own, and after a fork no thread of this process has a slot in them;
        // the descriptor is closed only if it still is the one that was opened here.
        unsafe {
            if self.is_ours() {
                libc::close(self.fd);
            }
            for ring in &mut self.rings {
                let ring = core::mem::replace(ring.get_mut(), null_mut());
                if !ring.is_null() {
                    libc::munmap(ring.cast(), self.ring_bytes);
                }
            }
        }
        self.fd = fd;
        self.identity = identity_of(fd);
        self.ring_bytes = ring_bytes;
    }

    fn session(&self) -> Option<PathBuf> {
        let session = self.session.clone().or_else(|| std::env::var_os("TAUT_SESSION").map(PathBuf::from));
        session.filter(|s| !s.as_os_str().is_empty())
    }

    /// Builds and maps this process's ring file; returns the state that follows.
    fn attach(&mut self) -> u32 {
        register_fork_handler();
        let Some(session) = self.session() else { return OFF };
        self.counter = best_counter();
        let Some(header) = self.build(&session) else { return FAILED };
        // SAFETY: `build` mapped it, and it is never unmapped.
        let file = unsafe { &*header };
        // The recorder is to know of what was lost before there was a ring file.
        file.lost_without_slot.fetch_add(LOST_HERE.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        file.lost_telemetry.fetch_add(LOST_TELEMETRY_HERE.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        self.channels.iter().for_each(Known::retry);
        HEADER.store(header, Ordering::Release);
        ON
    }

    fn build(&mut self, session: &Path) -> Option<*mut Header> {
        let ring_records = ring_records();
        let stride = (ring_records as usize * size_of::<Record>()).next_multiple_of(4096);
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
                let header = lay_out(fd, stride, ring_records, self.counter);
                let published = header.map(|_| publish(&temporary, &path));
                if published != Some(0) {
                    if let Some(header) = header {
                        libc::munmap(header.cast(), RINGS_OFFSET);
                    }
                    libc::close(fd);
                    libc::unlink(temporary.as_ptr());
                    if published == Some(libc::EEXIST) {
                        continue;
                    }
                    return None;
                }
                self.take_over(fd, ring_records as usize * size_of::<Record>());
                return header;
            }
        }
        None
    }
}

/// Gives a file its name and never another's: 0, or an error number, which is `EEXIST` where another file has it.
pub(crate) fn publish(temporary: &CStr, path: &CStr) -> c_int {
    let (temporary, path) = (temporary.as_ptr(), path.as_ptr());
    // SAFETY: system calls with valid C strings.
    unsafe {
        let here = libc::AT_FDCWD;
        if libc::syscall(libc::SYS_renameat2, here, temporary, here, path, libc::RENAME_NOREPLACE) == 0 {
            return 0;
        }
        match *libc::__errno_location() {
            // An old kernel, or a file system that does not know the flag.
            libc::ENOSYS | libc::EINVAL => {}
            error => return error,
        }
        if libc::link(temporary, path) != 0 {
            return *libc::__errno_location();
        }
        libc::unlink(temporary);
        0
    }
}

/// Reserves and maps the fixed part of a new file and fills in the header, with the names of the
/// file this process had before (its parent's, after a fork).
///
/// # Safety
/// `fd` is an open, empty regular file.
unsafe fn lay_out(fd: c_int, stride: usize, ring_records: u32, counter: Counter) -> Option<*mut Header> {
    let length = RINGS_OFFSET + SLOT_COUNT as usize * stride;
    if !may_have(length) {
        return None;
    }
    // SAFETY: of the caller; what is written lies in the mapped fixed part.
    unsafe {
        if libc::ftruncate(fd, length as i64) != 0 || libc::fallocate(fd, 0, 0, RINGS_OFFSET as i64) != 0 {
            return None;
        }
        let base = map(fd, 0, RINGS_OFFSET)?;
        let header: *mut Header = base.cast();
        let parent = HEADER.load(Ordering::Acquire);
        if !parent.is_null() {
            let names = parent.cast::<u8>().add(NAMES_OFFSET);
            core::ptr::copy_nonoverlapping(names, base.add(NAMES_OFFSET), SLOTS_OFFSET - NAMES_OFFSET);
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

/// Maps the pages of a reserved, shared range in now, so that no write of them faults.
///
/// # Safety
/// The range is mapped for writing and its bytes are all zero.
pub unsafe fn populate(start: *mut u8, bytes: usize) {
    // SAFETY: of the caller.
    unsafe {
        if libc::madvise(start.cast(), bytes, libc::MADV_POPULATE_WRITE) != 0 {
            // Before Linux 5.14: touch every page.
            for page in (0..bytes).step_by(4096) {
                start.add(page).write_volatile(0);
            }
        }
    }
}

/// Maps a part of a file, shared.
pub fn map(fd: c_int, offset: usize, bytes: usize) -> Option<*mut u8> {
    // SAFETY: a new mapping where the kernel has room touches nobody's memory.
    let place = unsafe {
        libc::mmap(null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, offset as i64)
    };
    (place != libc::MAP_FAILED).then_some(place.cast())
}

/// Longer than the limit, and `ftruncate` would end the process with SIGXFSZ.
pub fn may_have(length: usize) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live local.
    let unknown = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } != 0;
    unknown || limit.rlim_cur == libc::RLIM_INFINITY || limit.rlim_cur >= length as u64
}

/// Device and inode of an open file.
fn identity_of(fd: c_int) -> Option<(u64, u64)> {
    let mut stat = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat fills the struct in when it returns 0.
    unsafe {
        (libc::fstat(fd, stat.as_mut_ptr()) == 0).then(|| {
            let stat = stat.assume_init();
            (stat.st_dev, stat.st_ino)
        })
    }
}

/// The slow steps must not show in the robot's own code: puts `errno` back when dropped. Signals wait meanwhile: to reserve
/// a ring takes about a millisecond, and a signal would end that with `EINTR`.
pub struct Aside {
    errno: c_int,
    signals: libc::sigset_t,
}

impl Aside {
    pub fn step() -> Aside {
        // SAFETY: the C library gives a pointer to this thread's own errno; all zeros is a valid set to be written to.
        unsafe {
            let mut aside = Aside { errno: *libc::__errno_location(), signals: core::mem::zeroed() };
            let mut all = core::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut aside.signals);
            aside
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // SAFETY: as above, and the set is the one that was in force.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.signals, null_mut());
            *libc::__errno_location() = self.errno;
        }
    }
}

pub fn c_path(path: &Path) -> Option<CString> {
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
    // The name in it may be any bytes.
    let stat = fs::read("/proc/self/stat").unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
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
    LOST_TELEMETRY_HERE.store(0, Ordering::Relaxed);
    crate::thread::forget();
    lock().channels.iter().for_each(Known::after_fork);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_never_takes_the_name_of_another() {
        let folder = std::env::temp_dir().join(format!("taut-publish-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (temporary, path) = (folder.join(".1-0.tmp"), folder.join("1-0.taut"));
        let publish_it = || publish(&c_path(&temporary).unwrap(), &c_path(&path).unwrap());
        std::fs::write(&temporary, "first").unwrap();
        assert_eq!(publish_it(), 0);
        assert!(!temporary.exists());
        std::fs::write(&temporary, "second").unwrap();
        assert_eq!(publish_it(), libc::EEXIST);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        assert!(temporary.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
