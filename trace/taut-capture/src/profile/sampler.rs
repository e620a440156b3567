//! Samples stacks by perf's CPU clock: the recorded tree's, or every task's. Needs no hardware counter. The kernel walks
//! frame pointers; a stack ends where a library was built without them.

use std::{fs, io};

use perf_event_open_sys::bindings;

use super::{
    Scope,
    images::{BUILD_ID_BYTES, Identity},
};
use crate::{
    kernel::{Cpus, capabilities, perf_ring, perf_ring::Record},
    time_namespace::ahead_ns,
};

/// With the page of header what kernel.perf_event_mlock_kb permits by default, without any privilege.
const RING_KIB: u64 = 512;
/// Addresses from here on are not addresses but say whose the following ones are (PERF_CONTEXT_MAX, linux/perf_event.h).
const CONTEXT: u64 = -4095i64 as u64;
const CONTEXT_KERNEL: u64 = -128i64 as u64;

/// The kernel's events, in order of time.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// A thread ran; `frames` from the innermost on.
    Sample { pid: i32, tid: i32, cpu: u16, frames: Vec<Address> },
    /// A file was mapped to be executed.
    Mapped { pid: i32, start: u64, size: u64, offset: u64, path: String, identity: Identity },
    /// A new process: what is mapped is its parent's.
    Forked { pid: i32, parent: i32 },
    /// Another program: nothing of before is mapped.
    Executed { pid: i32 },
    /// A thread ended, maybe the last one.
    Exited { pid: i32 },
}

/// Where an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Of the kernel.
    Kernel(u64),
    /// Of the process.
    User(u64),
}

/// The rings of all CPUs.
pub struct Sampler {
    cpus: Cpus,
    waiting: Vec<(u64, Event)>,
    with_kernel: bool,
    /// By how much this process's clock is ahead of the samples'.
    ahead_ns: i64,
}

impl Sampler {
    /// Starts sampling `hz` times a second of CPU time; without the kernel's frames where they are not permitted.
    ///
    /// # Errors
    /// What was refused, and what grants it.
    pub fn start(pid: i32, existing: bool, scope: Scope, hz: u32) -> io::Result<Sampler> {
        let most_hz = setting("perf_event_max_sample_rate").unwrap_or(u32::MAX.into());
        if i64::from(hz) > most_hz {
            let said = format!("{hz} Hz is more than kernel.perf_event_max_sample_rate permits, {most_hz}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, said));
        }
        let with = |kernel| match Sampler::open(pid, existing, scope, hz, kernel, true) {
            // Before Linux 5.12.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                Sampler::open(pid, existing, scope, hz, kernel, false)
            }
            other => other,
        };
        let opened = match with(true) {
            Err(error) if is_refusal(&error) => with(false),
            other => other,
        };
        opened.map_err(|error| if is_refusal(&error) { refused(scope, &error) } else { error })
    }

    /// Whether the kernel's frames are seen.
    pub fn with_kernel(&self) -> bool {
        self.with_kernel
    }

    fn open(
        pid: i32,
        existing: bool,
        scope: Scope,
        hz: u32,
        with_kernel: bool,
        with_build_ids: bool,
    ) -> io::Result<Sampler> {
        let mut attribute = perf_ring::attribute();
        attribute.type_ = bindings::PERF_TYPE_SOFTWARE;
        attribute.config = u64::from(bindings::PERF_COUNT_SW_CPU_CLOCK);
        attribute.__bindgen_anon_1.sample_freq = u64::from(hz);
        attribute.set_freq(1);
        let sampled = bindings::PERF_SAMPLE_TID
            | bindings::PERF_SAMPLE_TIME
            | bindings::PERF_SAMPLE_CPU
            | bindings::PERF_SAMPLE_CALLCHAIN;
        attribute.sample_type = u64::from(sampled);
        attribute.set_sample_id_all(1);
        attribute.set_mmap(1);
        attribute.set_mmap2(1);
        attribute.set_build_id(u64::from(with_build_ids));
        attribute.set_comm(1);
        attribute.set_comm_exec(1);
        attribute.set_task(1);
        attribute.set_exclude_hv(1);
        attribute.set_exclude_kernel(u64::from(!with_kernel));
        attribute.set_exclude_callchain_kernel(u64::from(!with_kernel));
        attribute.set_inherit(u64::from(scope == Scope::Tree));
        let tids = if scope == Scope::Tree { capabilities::of_tree(pid, existing) } else { vec![-1] };
        let cpus = Cpus::of_threads(&attribute, &tids, RING_KIB)?;
        Ok(Sampler { cpus, waiting: Vec::new(), with_kernel, ahead_ns: ahead_ns() })
    }

    /// What has come, in order. What is mapped on one CPU and sampled on another may come in two calls; what is newer than
    /// `until_ns` therefore waits for the next.
    pub fn drain(&mut self, until_ns: u64) -> Vec<(u64, Event)> {
        self.cpus.read(|_, record| self.waiting.extend(event(record)));
        self.waiting.sort_by_key(|(time_ns, _)| *time_ns);
        let on_own = |time_ns: u64| time_ns.saturating_add_signed(self.ahead_ns);
        let ready = self.waiting.partition_point(|(time_ns, _)| on_own(*time_ns) <= until_ns);
        self.waiting.drain(..ready).map(|(time_ns, event)| (on_own(time_ns), event)).collect()
    }

    /// Ends the sampling, also where it fails; one more `drain` takes what is left.
    pub fn stop(&mut self) -> io::Result<()> {
        self.cpus.stop(|_, record| self.waiting.extend(event(record))).1
    }

    /// Samples lost since the last call, by ring.
    pub fn lost(&mut self) -> Vec<(String, u64)> {
        self.cpus.take_lost("profile")
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// The refusal with the setting that caused it and with what grants the sampling.
fn refused(scope: Scope, error: &io::Error) -> io::Error {
    let (what, enough) = match scope {
        Scope::Tree => ("own processes", 2),
        Scope::System => ("all tasks", 0),
    };
    let is = paranoid().map_or("not to be read".to_owned(), |level| format!("{level}"));
    let said = format!(
        "stacks of {what} need kernel.perf_event_paranoid {enough} or less, which is {is}, or CAP_PERFMON ({error}); \
         sudo sysctl kernel.perf_event_paranoid={enough}, or run as root"
    );
    io::Error::new(io::ErrorKind::PermissionDenied, said)
}

/// `kernel.perf_event_paranoid`.
pub fn paranoid() -> Option<i64> {
    setting("perf_event_paranoid")
}

fn setting(name: &str) -> Option<i64> {
    fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

/// The event that a record tells, and its time; `None` for others, and for what does not make sense.
pub(super) fn event(record: &Record<'_>) -> Option<(u64, Event)> {
    match record.kind {
        bindings::PERF_RECORD_SAMPLE => sample(record),
        bindings::PERF_RECORD_MMAP2 => {
            // pid, tid, address, length, offset, device and inode or build id (24 bytes), protection, flags, the name, the
            // sample's id.
            let (start, size, offset) = (record.u64_at(8)?, record.u64_at(16)?, record.u64_at(24)?);
            let name = record.body.get(64..)?;
            let path = String::from_utf8_lossy(&name[..name.iter().position(|byte| *byte == 0)?]).into_owned();
            let (pid, identity) = (record.i32_at(0)?, identity(record)?);
            Some((id_time(record)?, Event::Mapped { pid, start, size, offset, path, identity }))
        }
        bindings::PERF_RECORD_FORK => {
            let (pid, parent) = (record.i32_at(0)?, record.i32_at(4)?);
            (pid != parent).then_some((record.u64_at(16)?, Event::Forked { pid, parent }))
        }
        bindings::PERF_RECORD_EXIT => Some((record.u64_at(16)?, Event::Exited { pid: record.i32_at(0)? })),
        bindings::PERF_RECORD_COMM if record.misc & bindings::PERF_RECORD_MISC_COMM_EXEC != 0 => {
            Some((id_time(record)?, Event::Executed { pid: record.i32_at(0)? }))
        }
        _ => None,
    }
}

/// Major, minor, inode, generation; or a build id's length, three bytes, and it.
fn identity(record: &Record<'_>) -> Option<Identity> {
    if record.misc & bindings::PERF_RECORD_MISC_MMAP_BUILD_ID == 0 {
        return Some(Identity::Inode(record.u64_at(40)?));
    }
    let id: [u8; BUILD_ID_BYTES] = record.body.get(36..36 + BUILD_ID_BYTES)?.try_into().ok()?;
    Some(Identity::BuildId(id, *record.body.get(32)?))
}

/// The time in the sample's id, which ends a record that is no sample: pid and tid, time, CPU.
fn id_time(record: &Record<'_>) -> Option<u64> {
    record.u64_at(record.body.len().checked_sub(16)?)
}

/// pid, tid, time, CPU, the chain's length, the chain.
fn sample(record: &Record<'_>) -> Option<(u64, Event)> {
    let (pid, tid, time_ns) = (record.i32_at(0)?, record.i32_at(4)?, record.u64_at(8)?);
    let cpu = u16::try_from(record.i32_at(16)?).ok()?;
    let mut in_kernel = false;
    let mut frames = Vec::new();
    for at in 0..usize::try_from(record.u64_at(24)?).ok()? {
        match record.u64_at(32 + 8 * at)? {
            context if context >= CONTEXT => in_kernel = context == CONTEXT_KERNEL,
            address if in_kernel => frames.push(Address::Kernel(address)),
            address => frames.push(Address::User(address)),
        }
    }
    // The idle task is nobody's time.
    (pid != 0 && !frames.is_empty()).then_some((time_ns, Event::Sample { pid, tid, cpu, frames }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u32, body: &[u8]) -> Option<(u64, Event)> {
        event(&Record { kind, misc, body })
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_chain_changes_from_kernel_to_user_at_its_marks() {
        let user = -512i64 as u64;
        let body = words(&[7 | 8 << 32, 99, 1, 4, CONTEXT_KERNEL, 0xffff_0001, user, 0x40]);
        let frames = vec![Address::Kernel(0xffff_0001), Address::User(0x40)];
        let expected = Event::Sample { pid: 7, tid: 8, cpu: 1, frames };
        assert_eq!(record(bindings::PERF_RECORD_SAMPLE, 0, &body), Some((99, expected)));
    }

    #[test]
    fn a_chain_longer_than_its_record_is_no_sample() {
        assert_eq!(record(bindings::PERF_RECORD_SAMPLE, 0, &words(&[7, 99, 1, 1 << 60, 0x40])), None);
    }

    #[test]
    fn a_mapping_names_its_file() {
        let mut body = words(&[7, 0x1000, 0x2000, 0x3000, 0, 0, 0, 0]);
        body.extend(b"/lib/x.so\0\0\0\0\0\0\0");
        body.extend(words(&[7, 99, 0]));
        let path = "/lib/x.so".to_owned();
        let mapped = |identity| {
            let path = path.clone();
            Some((99, Event::Mapped { pid: 7, start: 0x1000, size: 0x2000, offset: 0x3000, path, identity }))
        };
        assert_eq!(record(bindings::PERF_RECORD_MMAP2, 0, &body), mapped(Identity::Inode(0)));
        body[32] = 2;
        body[36..38].copy_from_slice(&[0xab, 0xcd]);
        let mut id = [0; BUILD_ID_BYTES];
        id[..2].copy_from_slice(&[0xab, 0xcd]);
        let misc = bindings::PERF_RECORD_MISC_MMAP_BUILD_ID;
        assert_eq!(record(bindings::PERF_RECORD_MMAP2, misc, &body), mapped(Identity::BuildId(id, 2)));
    }

    #[test]
    fn an_exit_names_its_process() {
        let body = words(&[7 | 1 << 32, 8 | 1 << 32, 99]);
        assert_eq!(record(bindings::PERF_RECORD_EXIT, 0, &body), Some((99, Event::Exited { pid: 7 })));
    }

    #[test]
    fn a_new_thread_is_no_new_process() {
        let fork = |pid: u64, parent: u64| words(&[pid | parent << 32, 0, 99]);
        assert_eq!(record(bindings::PERF_RECORD_FORK, 0, &fork(7, 7)), None);
        assert_eq!(record(bindings::PERF_RECORD_FORK, 0, &fork(8, 7)), Some((99, Event::Forked { pid: 8, parent: 7 })));
    }
}
