//! The file of one telemetry channel, and the copy into its ring. The file is made off the hot path, when the
//! channel is made or a fork's child first writes.

use core::{
    cell::Cell,
    ffi::c_int,
    ptr::null_mut,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};
use std::path::Path;

use taut_clock::Counter;

use crate::{
    layout::{CLOSED, OPEN},
    process::{self, Aside, Process, c_path},
    ring::Producer,
};

const MAGIC: [u8; 8] = *b"TAUTTELE";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 4096;
/// In front of the values: the counter, and how often was written so far.
const SLOT_HEAD: usize = 16;
/// Larger structs than this are no telemetry; the recorder refuses them too.
const MOST_BYTES: usize = 1 << 20;
const MOST_DESCRIPTION: usize = 1 << 20;
/// Writes that are oftener are no control loop's.
const MOST_RATE_HZ: f64 = 1e6;
/// How long the recorder may stand still.
const STALL_S: f64 = 2.0;
const FEWEST_SLOTS: usize = 16;
const MOST_SLOTS: usize = 1 << 20;
/// Of all slots together, unless `TAUT_TELEMETRY_BYTES` says otherwise.
const DEFAULT_RING_BYTES: usize = 64 << 20;

#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: u32,
    counter: u32,
    pid: u32,
    _reserved: u32,
    value_bytes: u32,
    slot_count: u32,
    start_time: u64,
    pid_namespace: u64,
    slot_stride: u64,
    description_bytes: u64,
    ring_offset: u64,
    _pad0: [u8; 56],
    state: AtomicU32,
    _pad1: [u8; 60],
    head: AtomicU64,
    lost: AtomicU64,
    _pad2: [u8; 48],
    tail: AtomicU64,
}

const _: () = {
    assert!(core::mem::offset_of!(Header, state) == 128);
    assert!(core::mem::offset_of!(Header, head) == 192);
    assert!(core::mem::offset_of!(Header, tail) == 256);
};

/// One channel's ring, or none yet. It stays where it is, so that a fork's child can find it.
pub struct Ring {
    producer: Producer,
    /// Null until mapped.
    slots: Cell<*mut u8>,
    stride: Cell<usize>,
    /// Slots, a power of two, less one.
    mask: Cell<u64>,
    header: Cell<*mut Header>,
    mapped: Cell<usize>,
    counter: Cell<Counter>,
    /// How often was written, the dropped ones too: the recording then shows where those are missing.
    sequence: Cell<u64>,
    /// Dropped while there was no ring.
    lost_here: Cell<u64>,
    /// How often there was no ring to be had. Atomic: who attaches a session sets it back, whatever thread that is.
    refused: AtomicU32,
    /// `None`: without a name or a rate it is no channel, and never has a ring.
    description: Option<String>,
    bytes: usize,
    rate_hz: f64,
}

// SAFETY: the pointers are to shared mappings that only this value unmaps, and `&self` is only given to one thread at
// a time: by `&mut` of the channel, or in a fork's child, which has no other thread.
unsafe impl Send for Ring {}

/// What the process module keeps to find all rings after a fork.
pub struct Known(*const Ring);

// SAFETY: it is only followed under the process's mutex, and a Ring takes itself out before it goes.
unsafe impl Send for Known {}

impl Ring {
    pub fn new(name: &str, description: &str, bytes: usize, rate_hz: f64) -> Box<Ring> {
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        let is_sound = !name.trim().is_empty() && rate_hz > 0.0 && rate_hz <= MOST_RATE_HZ;
        let ring = Box::new(Ring {
            producer: Producer::nowhere(),
            slots: Cell::new(null_mut()),
            stride: Cell::new(0),
            mask: Cell::new(0),
            header: Cell::new(null_mut()),
            mapped: Cell::new(0),
            counter: Cell::new(Counter::Monotonic),
            sequence: Cell::new(0),
            lost_here: Cell::new(0),
            refused: AtomicU32::new(0),
            description: is_sound.then(|| format!("name\t{name}\n{description}")),
            bytes,
            rate_hz,
        });
        process::know(Known(&*ring));
        let _aside = Aside::step();
        ring.open();
        ring
    }

    /// # Safety
    /// `value` points to `bytes` readable bytes, the same number as in `new`.
    #[inline(always)]
    pub unsafe fn write(&self, value: *const u8, bytes: usize) {
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        match self.producer.reserve() {
            // SAFETY: of the caller; room is only found in a mapped ring, and for the usual counter.
            Some(position) => unsafe { self.put(position, value, bytes, crate::thread::USUAL.now().0, sequence) },
            // SAFETY: of the caller.
            None => unsafe { self.write_slowly(value, bytes, sequence) },
        }
    }

    /// # Safety
    /// As of `write`.
    #[cold]
    #[inline(never)]
    unsafe fn write_slowly(&self, value: *const u8, bytes: usize, sequence: u64) {
        if self.header.get().is_null() && self.looks_for_ring() {
            let _aside = Aside::step();
            self.open();
        }
        if self.header.get().is_null() {
            self.lost_here.set(self.lost_here.get() + 1);
            process::count_lost_telemetry();
            return;
        }
        // SAFETY: not null, and mapped until this is dropped.
        let header = unsafe { &*self.header.get() };
        if self.producer.reserve().is_none()
            && !self.producer.find_room(&header.tail, &header.lost, self.mask.get() + 1)
        {
            return;
        }
        if let Some(position) = self.producer.reserve() {
            let counter = self.counter.get();
            // SAFETY: of the caller, and there is room.
            unsafe { self.put(position, value, bytes, counter.now().0, sequence) };
            if counter != crate::thread::USUAL {
                self.producer.forget_room();
            }
        }
    }

    /// # Safety
    /// `position` was reserved, and as of `write`.
    #[inline(always)]
    unsafe fn put(&self, position: u64, value: *const u8, bytes: usize, ticks: u64, sequence: u64) {
        // SAFETY: of the caller; a slot is at least SLOT_HEAD + `bytes` long.
        unsafe {
            let slot = self.slots.get().add((position & self.mask.get()) as usize * self.stride.get());
            slot.cast::<[u64; 2]>().write([ticks, sequence]);
            core::ptr::copy_nonoverlapping(value, slot.add(SLOT_HEAD), bytes);
            self.producer.publish(&(*self.header.get()).head, position);
        }
    }

    pub fn lost(&self) -> u64 {
        let header = self.header.get();
        // SAFETY: not null, and mapped until this is dropped.
        let in_ring = if header.is_null() { 0 } else { unsafe { (*header).lost.load(Ordering::Relaxed) } };
        self.lost_here.get() + in_ring
    }

    /// Whether this try is one that looks for a ring: where there was none the 2nd, 4th, 8th … are, as of a thread.
    fn looks_for_ring(&self) -> bool {
        let tries = match self.refused.load(Ordering::Relaxed) {
            0 => return true,
            tries => tries.wrapping_add(1),
        };
        self.refused.store(tries, Ordering::Relaxed);
        tries.is_power_of_two()
    }

    /// Makes the file and maps it, if there is a session; at once when one was attached.
    #[cold]
    fn open(&self) {
        let is_open = process::process().is_some_and(|process| self.build(process).is_some());
        // Without a session nothing is refused: one may be attached yet.
        let is_refused = !is_open && !crate::is_off();
        let tries = if is_refused { self.refused.load(Ordering::Relaxed).max(1) } else { 0 };
        self.refused.store(tries, Ordering::Relaxed);
    }

    fn build(&self, process: Process) -> Option<()> {
        let description = self.description.as_deref()?;
        let stride = (SLOT_HEAD + self.bytes).next_multiple_of(64);
        let slots = slots(self.rate_hz, stride);
        let ring_offset = (HEADER_BYTES + description.len()).next_multiple_of(4096);
        let length = ring_offset + slots * stride;
        if self.bytes == 0 || self.bytes > MOST_BYTES || description.len() > MOST_DESCRIPTION {
            return None;
        }
        let session = process::session()?;
        let (fd, temporary, path) = new_file(&session)?;
        // SAFETY: system calls on our own new file; what is written lies in the mapping of `length` bytes.
        let base = unsafe {
            let base = lay_out(fd, length);
            libc::close(fd);
            base
        };
        let mut error = 0;
        let built = base.and_then(|base| {
            // SAFETY: the mapping is fresh, `length` bytes long and nobody else's until it has its name.
            unsafe {
                let header = base.cast::<Header>();
                (*header).magic = MAGIC;
                (*header).version = VERSION;
                (*header).counter = process.counter() as u32;
                (*header).pid = std::process::id();
                (*header).value_bytes = self.bytes as u32;
                (*header).slot_count = slots as u32;
                (*header).start_time = process.start_time();
                (*header).pid_namespace = process.pid_namespace();
                (*header).slot_stride = stride as u64;
                (*header).description_bytes = description.len() as u64;
                (*header).ring_offset = ring_offset as u64;
                (*header).state = AtomicU32::new(OPEN);
                let text = base.add(HEADER_BYTES);
                core::ptr::copy_nonoverlapping(description.as_ptr(), text, description.len());
                error = process::publish(&temporary, &path);
                if error != 0 {
                    libc::munmap(base.cast(), length);
                    return None;
                }
            }
            Some(base)
        });
        let Some(base) = built else {
            // SAFETY: a plain system call.
            unsafe { libc::unlink(temporary.as_ptr()) };
            // Another thread has this number since: the next.
            return if error == libc::EEXIST { self.build(process) } else { None };
        };
        self.header.set(base.cast());
        self.mapped.set(length);
        // SAFETY: inside the mapping.
        self.slots.set(unsafe { base.add(ring_offset) });
        self.stride.set(stride);
        self.mask.set(slots as u64 - 1);
        self.counter.set(process.counter());
        self.producer.start(0);
        Some(())
    }

    fn unmap(&self) {
        let header = self.header.replace(null_mut());
        self.slots.set(null_mut());
        self.producer.start(0);
        if !header.is_null() {
            // SAFETY: our own mapping, to which no pointer is left.
            unsafe { libc::munmap(header.cast(), self.mapped.get()) };
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        process::forget_ring(self);
        let header = self.header.get();
        if !header.is_null() {
            // SAFETY: mapped until `unmap`.
            unsafe { (*header).state.store(CLOSED, Ordering::Release) };
        }
        self.unmap();
    }
}

impl Known {
    pub fn is(&self, ring: &Ring) -> bool {
        core::ptr::eq(self.0, ring)
    }

    /// In a fork's child: the ring is its parent's, and this child's next write makes one of its own.
    pub fn after_fork(&self) {
        // SAFETY: see `Send` of Known; the child has one thread, which is not in `write`.
        let ring = unsafe { &*self.0 };
        ring.unmap();
        ring.lost_here.set(0);
        ring.sequence.set(0);
        ring.refused.store(0, Ordering::Relaxed);
    }

    /// A session was attached: ask again.
    pub fn retry(&self) {
        // SAFETY: see `Send` of Known; nothing but an atomic is touched, which its own thread may be reading.
        unsafe { &*self.0 }.refused.store(0, Ordering::Relaxed);
    }
}

/// As many as are written in [`STALL_S`], a power of two, within the budget of memory.
fn slots(rate_hz: f64, stride: usize) -> usize {
    let budget = std::env::var("TAUT_TELEMETRY_BYTES").ok().and_then(|text| text.parse().ok());
    let budget: usize = budget.unwrap_or(DEFAULT_RING_BYTES);
    // A float becomes the nearest integer, NaN 0.
    let wanted = (rate_hz * STALL_S).ceil() as usize;
    let mut slots = wanted.clamp(FEWEST_SLOTS, MOST_SLOTS).next_power_of_two();
    while slots > FEWEST_SLOTS && slots.saturating_mul(stride) > budget {
        slots /= 2;
    }
    slots
}

fn new_file(session: &Path) -> Option<(c_int, std::ffi::CString, std::ffi::CString)> {
    let pid = std::process::id();
    for n in 0..10_000 {
        let path = session.join(format!("{pid}-{n}.telemetry"));
        if path.exists() {
            continue;
        }
        let temporary = c_path(&session.join(format!(".{pid}-{n}.telemetry.tmp")))?;
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: a system call with a valid C string, and this thread's own errno.
        let (fd, error) = unsafe { (libc::open(temporary.as_ptr(), flags, 0o600), *libc::__errno_location()) };
        match fd {
            0.. => return Some((fd, temporary, c_path(&path)?)),
            _ if error == libc::EEXIST => {}
            _ => return None,
        }
    }
    None
}

/// Reserves the whole file and maps it in, page by page now and not in a control loop.
///
/// # Safety
/// `fd` is an open, empty regular file.
unsafe fn lay_out(fd: c_int, length: usize) -> Option<*mut u8> {
    // SAFETY: of the caller; the file is as long as the mapping, and its bytes are reserved.
    unsafe {
        if !process::may_have(length)
            || libc::ftruncate(fd, length as i64) != 0
            || libc::fallocate(fd, 0, 0, length as i64) != 0
        {
            return None;
        }
        let base = process::map(fd, 0, length)?;
        process::populate(base, length);
        Some(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_bears_two_seconds_within_its_budget() {
        assert_eq!(slots(400.0, 16_064), 1024);
        assert_eq!(slots(1000.0, 16_064), 2048);
        assert_eq!(slots(1e6, 16_064), 4096, "64 MiB");
        assert_eq!(slots(1.0, 64), 16);
        assert_eq!(slots(f64::NAN, 64), 16);
        assert_eq!(slots(1000.0, 1 << 20), 64, "64 MiB");
    }
}
