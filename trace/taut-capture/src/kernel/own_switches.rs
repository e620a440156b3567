//! The self tier: context switches of the recorded threads, without any privilege.
//! A perf event that counts nothing carries the kernel's switch records (Linux 4.3, paranoid 2).

use std::io;

use perf_event_open_sys::bindings;
use taut_recording::{KernelBatch, KernelEvent};

use super::perf::Cpu;
use super::perf_ring::{self, Record};
use super::rows::{Row, Rows};
use super::{Source, Wanted, capabilities};

/// With the page of header exactly what kernel.perf_event_mlock_kb permits by default (516 KiB a CPU).
const RING_KIB: u64 = 512;

/// Fork and exit records: pid, parent's pid, tid, parent's tid (four bytes each), then the time.
const TID_AT: usize = 8;
const PARENT_TID_AT: usize = 12;
const TASK_TIME_AT: usize = 16;

/// The rings of all CPUs.
pub struct OwnSwitches {
    cpus: Vec<Cpu>,
    rows: Rows,
    bytes_read: u64,
    stopped: bool,
}

impl OwnSwitches {
    /// Starts recording.
    ///
    /// # Errors
    /// perf_event_open or the mapping of its ring was refused.
    pub fn start(wanted: &Wanted) -> io::Result<OwnSwitches> {
        let mut attribute = perf_ring::attribute();
        attribute.type_ = bindings::PERF_TYPE_SOFTWARE;
        attribute.config = u64::from(bindings::PERF_COUNT_SW_DUMMY);
        attribute.sample_type = u64::from(bindings::PERF_SAMPLE_TID | bindings::PERF_SAMPLE_TIME);
        attribute.set_sample_id_all(1);
        attribute.set_context_switch(1);
        attribute.set_task(1);
        attribute.set_inherit(1);
        attribute.set_exclude_kernel(1);
        attribute.set_exclude_hv(1);
        let tids = capabilities::of_tree(wanted.pid, wanted.follow_existing_threads);
        let mut cpus = Vec::new();
        for cpu in capabilities::online_cpus() {
            let mut cpu = Cpu::new(cpu);
            for &tid in &tids {
                match cpu.add(&attribute, tid, RING_KIB) {
                    Ok(_) => {}
                    // It ended: the first one, too, may end before the others.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => {
                        return Err(io::Error::new(error.kind(), format!("perf_event_open of thread {tid}: {error}")));
                    }
                }
            }
            if cpu.events.is_empty() {
                return Err(io::Error::other(format!("no thread of process {} runs", wanted.pid)));
            }
            cpus.push(cpu);
        }
        Ok(OwnSwitches { cpus, rows: Rows::default(), bytes_read: 0, stopped: false })
    }

    fn read_rings(&mut self) {
        for cpu in &mut self.cpus {
            let Some(ring) = &mut cpu.ring else { continue };
            let (queue, lost) = (self.rows.of_cpu(cpu.cpu), &mut cpu.lost);
            self.bytes_read += ring.read(|record| match record.kind {
                bindings::PERF_RECORD_LOST => *lost += record.u64_at(8).unwrap_or(1),
                _ => queue.extend(row(&record)),
            });
        }
    }
}

/// The row of a switch, fork or exit; other records say nothing here.
fn row(record: &Record<'_>) -> Option<Row> {
    let (event, tid, argument, time_ns) = match record.kind {
        bindings::PERF_RECORD_SWITCH if record.misc & bindings::PERF_RECORD_MISC_SWITCH_OUT == 0 => {
            (KernelEvent::SwitchIn, record.i32_at(4)?, 0, record.u64_at(8)?)
        }
        bindings::PERF_RECORD_SWITCH => {
            let preempted = record.misc & bindings::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0;
            (KernelEvent::SwitchOut, record.i32_at(4)?, i64::from(preempted), record.u64_at(8)?)
        }
        bindings::PERF_RECORD_FORK => {
            let child = i64::from(record.i32_at(TID_AT)?);
            (KernelEvent::SchedFork, record.i32_at(PARENT_TID_AT)?, child, record.u64_at(TASK_TIME_AT)?)
        }
        bindings::PERF_RECORD_EXIT => (KernelEvent::SchedExit, record.i32_at(TID_AT)?, 0, record.u64_at(TASK_TIME_AT)?),
        _ => return None,
    };
    Some(Row { time_ns, event, flags: 0, tid, args: [argument, 0, 0] })
}

impl Source for OwnSwitches {
    fn name(&self) -> &'static str {
        "perf"
    }

    fn drain(&mut self, sink: &mut dyn FnMut(KernelBatch)) -> io::Result<()> {
        if self.stopped {
            self.rows.release(u64::MAX, sink);
            return Ok(());
        }
        let now_ns = taut_clock::monotonic_ns();
        self.read_rings();
        self.rows.release(now_ns, sink);
        Ok(())
    }

    fn stop(&mut self) -> io::Result<()> {
        if self.stopped {
            return Ok(());
        }
        for event in self.cpus.iter().flat_map(|cpu| &cpu.events) {
            perf_ring::disable(event)?;
        }
        self.read_rings();
        for cpu in &mut self.cpus {
            cpu.count_losses();
            cpu.ring = None;
            cpu.events.clear();
        }
        self.stopped = true;
        Ok(())
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    fn lost(&mut self) -> Vec<(String, u64)> {
        self.cpus.iter_mut().filter_map(|cpu| cpu.take_lost("perf")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn the_preempted_bit_tells_a_switch_that_was_not_wanted() {
        let body = body(&[10, 11, 99, 0]);
        let out = bindings::PERF_RECORD_MISC_SWITCH_OUT;
        for (misc, event, preempted) in [
            (0, KernelEvent::SwitchIn, 0),
            (out, KernelEvent::SwitchOut, 0),
            (out | bindings::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, KernelEvent::SwitchOut, 1),
        ] {
            let row = row(&Record { kind: bindings::PERF_RECORD_SWITCH, misc, body: &body }).unwrap();
            assert_eq!((row.event, row.tid, row.time_ns, row.args[0]), (event, 11, 99, preempted));
        }
    }

    #[test]
    fn a_fork_names_parent_and_child() {
        let body = body(&[20, 10, 21, 11, 5, 0]);
        let row = row(&Record { kind: bindings::PERF_RECORD_FORK, misc: 0, body: &body }).unwrap();
        assert_eq!((row.event, row.tid, row.args[0], row.time_ns), (KernelEvent::SchedFork, 11, 21, 5));
    }

    #[test]
    fn a_record_that_is_too_short_gives_nothing() {
        assert!(row(&Record { kind: bindings::PERF_RECORD_SWITCH, misc: 0, body: &[0; 8] }).is_none());
    }
}
