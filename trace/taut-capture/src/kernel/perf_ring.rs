//! perf_event_open and its memory-mapped ring: opening, reading records, counting losses.
//! Shared by the full tier's tracepoints and the self tier's context switches.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::{self, perf_event_attr, perf_event_mmap_page};
use perf_event_open_sys::ioctls;

/// An attribute with what every event of taut has: CLOCK_MONOTONIC times, a watermark that is
/// never reached by waking (the drainer looks by itself), losses counted where the kernel can.
pub fn attribute() -> perf_event_attr {
    let mut attribute = perf_event_attr { size: size_of::<perf_event_attr>() as u32, ..Default::default() };
    attribute.read_format = u64::from(bindings::PERF_FORMAT_LOST);
    attribute.clockid = libc::CLOCK_MONOTONIC;
    attribute.set_use_clockid(1);
    attribute.set_watermark(1);
    attribute.__bindgen_anon_2.wakeup_watermark = u32::MAX;
    attribute
}

/// Opens an event; `pid` -1 means every task. Kernels before 6.0 do not count losses per event:
/// there it is opened without.
pub fn open(attribute: &perf_event_attr, pid: i32, cpu: u16) -> io::Result<OwnedFd> {
    let mut attribute = *attribute;
    loop {
        // SAFETY: the attribute is initialised and lives through the call, which reads it and may write its size.
        let fd = unsafe {
            perf_event_open_sys::perf_event_open(
                &mut attribute,
                pid,
                i32::from(cpu),
                -1,
                u64::from(bindings::PERF_FLAG_FD_CLOEXEC),
            )
        };
        if fd >= 0 {
            // SAFETY: the kernel just gave this descriptor, nobody else owns it.
            return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) || attribute.read_format == 0 {
            return Err(error);
        }
        attribute.read_format = 0;
        attribute.size = size_of::<perf_event_attr>() as u32;
    }
}

/// Sends an event's records into the ring of another of the same CPU.
pub fn share_ring(event: &OwnedFd, with: &OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are open perf events; the call touches no memory of ours.
    check(unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), with.as_raw_fd()) })
}

/// Lets only records through that the kernel's filter accepts.
pub fn filter(event: &OwnedFd, filter: &str) -> io::Result<()> {
    let text = std::ffi::CString::new(filter)?;
    // SAFETY: the text is terminated and lives through the call, which only reads it.
    check(unsafe { ioctls::SET_FILTER(event.as_raw_fd(), text.as_ptr().cast_mut()) })
}

/// Stops an event and its inherited children.
pub fn disable(event: &OwnedFd) -> io::Result<()> {
    // SAFETY: an open perf event; the call touches no memory of ours.
    check(unsafe { ioctls::DISABLE(event.as_raw_fd(), 0) })
}

/// Records of this event that the ring had no room for; `None` on kernels that do not count them.
pub fn lost_of(event: &OwnedFd) -> Option<u64> {
    let mut words = [0; 16];
    let length = File::from(event.try_clone().ok()?).read(&mut words).ok()?;
    (length == 16).then(|| u64::from_ne_bytes([8, 9, 10, 11, 12, 13, 14, 15].map(|at| words[at])))
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// One record of a ring: its type, its `misc` bits, and what follows the header.
pub struct Record<'a> {
    /// PERF_RECORD_*.
    pub kind: u32,
    /// PERF_RECORD_MISC_*.
    pub misc: u32,
    /// Everything after the eight bytes of header.
    pub body: &'a [u8],
}

impl Record<'_> {
    /// A number of the body; `None` beyond its end.
    #[inline]
    pub fn u64_at(&self, at: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(self.body.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }

    /// A number of the body; `None` beyond its end.
    #[inline]
    pub fn i32_at(&self, at: usize) -> Option<i32> {
        Some(i32::from_ne_bytes(self.body.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }
}

/// The mapped ring of one event, which others may share.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    mapped_bytes: usize,
    page_bytes: usize,
    /// A record that wraps around the end, put together.
    whole: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone, and the kernel does not care which thread reads.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring of about `kib`, or of a half, a quarter … when the locked-memory limit is lower.
    pub fn map(event: &OwnedFd, kib: u64) -> io::Result<Ring> {
        let page_bytes = rustix::param::page_size();
        let mut pages = ((kib as usize * 1024) / page_bytes).max(1).next_power_of_two();
        loop {
            let mapped_bytes = (pages + 1) * page_bytes;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a fresh shared mapping of an open descriptor at a place the kernel chooses.
            let base = unsafe {
                libc::mmap(std::ptr::null_mut(), mapped_bytes, access, libc::MAP_SHARED, event.as_raw_fd(), 0)
            };
            if let Some(base) = NonNull::new(base).filter(|base| base.as_ptr() != libc::MAP_FAILED) {
                return Ok(Ring { base: base.cast(), mapped_bytes, page_bytes, whole: Vec::new() });
            }
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EPERM) || pages <= 2 {
                return Err(error);
            }
            pages /= 2;
        }
    }

    /// Calls `on_record` for every record that is there and gives their room back; says how many bytes.
    pub fn read(&mut self, mut on_record: impl FnMut(Record<'_>)) -> u64 {
        let header = self.base.as_ptr().cast::<perf_event_mmap_page>();
        // SAFETY: the first page of the mapping is this structure; both words are aligned, and the
        // kernel and we exchange them as atomics by the documented protocol.
        let (head, tail) = unsafe {
            (AtomicU64::from_ptr(&raw mut (*header).data_head), AtomicU64::from_ptr(&raw mut (*header).data_tail))
        };
        // SAFETY: the data pages follow the header page in the same mapping, and live as long as it.
        let data = unsafe {
            std::slice::from_raw_parts(self.base.as_ptr().add(self.page_bytes), self.mapped_bytes - self.page_bytes)
        };
        let (until, mut at) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        while let Some(record) = record_at(data, at, until, &mut self.whole) {
            let length = record.body.len() as u64 + 8;
            on_record(record);
            at += length;
        }
        // Also when a record made no sense: what cannot be read is passed over, not read for ever.
        let bytes = until.wrapping_sub(tail.load(Ordering::Relaxed));
        tail.store(until, Ordering::Release);
        bytes
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `map` made; no reference into it outlives `read`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// The record at `at`, put together in `whole` when it wraps; `None` at the end and for a length that cannot be.
pub(super) fn record_at<'a>(data: &'a [u8], at: u64, until: u64, whole: &'a mut Vec<u8>) -> Option<Record<'a>> {
    let left = until.checked_sub(at).filter(|&left| left >= 8)?;
    let start = (at % data.len() as u64) as usize;
    // Records are aligned to eight bytes, so that the header never wraps.
    let header: [u8; 8] = data.get(start..start + 8)?.try_into().ok()?;
    let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
    let misc = u32::from(u16::from_ne_bytes([header[4], header[5]]));
    let length = usize::from(u16::from_ne_bytes([header[6], header[7]]));
    if length < 8 || length as u64 > left || length > data.len() {
        return None;
    }
    let body = match data.get(start + 8..start + length) {
        Some(body) => body,
        None => {
            whole.clear();
            whole.extend_from_slice(&data[start + 8..]);
            whole.extend_from_slice(&data[..length - (data.len() - start)]);
            whole
        }
    };
    Some(Record { kind, misc, body })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lengths(data: &[u8], mut at: u64, until: u64) -> Vec<usize> {
        let (mut whole, mut seen) = (Vec::new(), Vec::new());
        while let Some(record) = record_at(data, at, until, &mut whole) {
            seen.push(record.body.len());
            at += record.body.len() as u64 + 8;
        }
        seen
    }

    fn header(length: u16) -> [u8; 8] {
        let [low, high] = length.to_ne_bytes();
        [9, 0, 0, 0, 0, 0, low, high]
    }

    #[test]
    fn a_record_that_wraps_is_put_together() {
        let mut data = vec![0; 32];
        data[24..32].copy_from_slice(&header(24));
        data[..8].copy_from_slice(&7u64.to_ne_bytes());
        data[8..16].copy_from_slice(&8u64.to_ne_bytes());
        let mut whole = Vec::new();
        let record = record_at(&data, 24, 48, &mut whole).unwrap();
        assert_eq!((record.kind, record.u64_at(0), record.u64_at(8), record.u64_at(9)), (9, Some(7), Some(8), None));
    }

    #[test]
    fn a_length_beyond_the_head_ends_the_reading() {
        let mut data = vec![0; 32];
        data[..8].copy_from_slice(&header(16));
        data[16..24].copy_from_slice(&header(40));
        assert_eq!(lengths(&data, 0, 32), [8]);
    }

    proptest! {
        #[test]
        fn arbitrary_rings_are_survived(words in proptest::collection::vec(any::<u64>(), 1..64), at in 0u64..1024, filled in 0u64..600) {
            let data: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            lengths(&data, at & !7, (at & !7) + filled);
        }
    }
}
