//! A mapping lives as long as its file is that long: beyond the file's end a touch of it is a SIGBUS, and whoever writes
//! the file can cut it at any moment, also between a look at its length and a read. So the fault itself is taken: the
//! mapping becomes zeros, is marked as cut, and the read goes on.

use std::{
    io,
    sync::{
        Once,
        atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering},
    },
};

/// Mappings that are watched at a time: all rings and all telemetry of a session.
const MOST: usize = 8192;

/// A mapping that is watched. A static table, because a signal handler may neither lock nor allocate.
struct Place {
    /// 0 when the place is free.
    start: AtomicUsize,
    bytes: AtomicUsize,
    is_cut: AtomicBool,
}

static PLACES: [Place; MOST] =
    [const { Place { start: AtomicUsize::new(0), bytes: AtomicUsize::new(0), is_cut: AtomicBool::new(false) } }; MOST];

/// What SIGBUS did before: faults elsewhere are its business.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());

/// Watches a mapping until it is dropped, which must be before the mapping goes.
pub struct Watched(usize);

impl Watched {
    /// From now on a fault in these bytes, a shared mapping of a file, is survived.
    ///
    /// # Errors
    /// More than [`MOST`] mappings at a time.
    pub fn new(start: *const u8, bytes: usize) -> io::Result<Watched> {
        static LISTEN: Once = Once::new();
        LISTEN.call_once(listen);
        for (at, place) in PLACES.iter().enumerate() {
            // Claimed by a length that no address is in, then published by its start.
            if place.bytes.compare_exchange(0, bytes.max(1), Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                place.is_cut.store(false, Ordering::Relaxed);
                place.start.store(start as usize, Ordering::Release);
                return Ok(Watched(at));
            }
        }
        // It may be had when others are gone.
        Err(io::Error::new(io::ErrorKind::WouldBlock, format!("more than {MOST} files of sessions at a time")))
    }

    /// Whether the file was cut under a read: what was read of it since is worth nothing.
    pub fn is_cut(&self) -> bool {
        PLACES[self.0].is_cut.load(Ordering::Acquire)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        PLACES[self.0].start.store(0, Ordering::Release);
        PLACES[self.0].bytes.store(0, Ordering::Release);
    }
}

fn listen() {
    let before: *mut libc::sigaction = Box::leak(Box::new(
        // SAFETY: all zeros is a valid sigaction: the default, no flags.
        unsafe { std::mem::zeroed() },
    ));
    // SAFETY: both actions are valid, and the handler makes only calls that a signal handler may make. On its own
    // stack, where the thread has one, as that of Rust's runtime, to which it passes on what is not its own.
    unsafe {
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = on_fault as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, std::ptr::null(), before);
        BEFORE.store(before, Ordering::Release);
        libc::sigaction(libc::SIGBUS, &ours, std::ptr::null_mut());
    }
}

/// Puts zeros where the file has gone. Touches nothing but atomics and makes one or two system calls.
extern "C" fn on_fault(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a siginfo of SIGBUS, which has an address; errno is this thread's own.
    let (at, errno) = unsafe { ((*info).si_addr() as usize, libc::__errno_location()) };
    for place in &PLACES {
        let (start, bytes) = (place.start.load(Ordering::Acquire), place.bytes.load(Ordering::Acquire));
        if start == 0 || at < start || at - start >= bytes {
            continue;
        }
        place.is_cut.store(true, Ordering::Release);
        let (access, zeros) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
        );
        // SAFETY: replaces exactly a mapping that is watched, whose owner reads it by copies and atomics only.
        unsafe {
            let before = *errno;
            let mapped = libc::mmap(start as *mut libc::c_void, bytes, access, zeros, -1, 0);
            *errno = before;
            if mapped != libc::MAP_FAILED {
                return;
            }
        }
    }
    // Not ours, or no memory for it: as if nobody had listened. The fault comes again.
    // SAFETY: what `listen` kept.
    unsafe { libc::sigaction(libc::SIGBUS, BEFORE.load(Ordering::Acquire), std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::Command};

    use memmap2::MmapOptions;

    use super::*;

    #[test]
    fn a_file_that_is_cut_reads_as_zeros_and_only_it() {
        let [cut, whole] = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
        let maps = [&cut, &whole].map(|file| {
            file.set_len(3 * 4096).unwrap();
            std::os::unix::fs::FileExt::write_all_at(file, b"x", 8192).unwrap();
            MmapOptions::new().map_raw(file).unwrap()
        });
        let watched = [&maps[0], &maps[1]].map(|map| Watched::new(map.as_ptr(), map.len()).unwrap());
        // SAFETY: inside the mappings.
        let read = |at: usize| unsafe { maps[at].as_ptr().add(8192).read_volatile() };
        assert_eq!((read(0), watched[0].is_cut()), (b'x', false));
        cut.set_len(100).unwrap();
        assert_eq!((read(0), watched[0].is_cut()), (0, true));
        assert_eq!((read(1), watched[1].is_cut()), (b'x', false));
    }

    /// In a process of its own, which has to die of it.
    #[test]
    fn a_fault_elsewhere_still_ends_the_process() {
        const INNER: &str = "TAUT_TEST_FAULT_ELSEWHERE";
        if std::env::var_os(INNER).is_some() {
            let file = tempfile::tempfile().unwrap();
            file.set_len(4096).unwrap();
            let [ours, other] = [(); 2].map(|()| MmapOptions::new().map_raw(&file).unwrap());
            let _watched = Watched::new(ours.as_ptr(), ours.len()).unwrap();
            file.set_len(0).unwrap();
            // SAFETY: inside the mapping; the fault is what is asked for.
            unsafe { other.as_ptr().read_volatile() };
            return;
        }
        let name = "cut::tests::a_fault_elsewhere_still_ends_the_process";
        let mut inner = Command::new(std::env::current_exe().unwrap());
        let output = inner.args(["--exact", name, "--test-threads=1"]).env(INNER, "1").output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGBUS));
    }
}
