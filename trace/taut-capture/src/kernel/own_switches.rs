//! The self tier: context switches of the recorded threads, without any privilege.
//! A perf event that counts nothing carries the kernel's switch records (Linux 4.3, paranoid 2).

use std::io;

use perf_event_open_sys::bindings;
use taut_recording::KernelEvent;

use super::perf_ring::{self, Record};
use super::perf_source::{Cpu, Cpus, Decode, PerfSource};
use super::rows::Row;
use super::{Wanted, capabilities};

/// With the page of header exactly what kernel.perf_event_mlock_kb permits by default (516 KiB a CPU).
const RING_KIB: u64 = 512;

/// Fork and exit records: pid, parent's pid, tid, parent's tid (four bytes each), then the time.
const TID_AT: usize = 8;
const PARENT_TID_AT: usize = 12;
const TASK_TIME_AT: usize = 16;

/// Starts recording.
///
/// # Errors
/// perf_event_open or the mapping of its ring was refused.
pub fn start(wanted: &Wanted) -> io::Result<PerfSource<Switches>> {
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
    let cpus = Cpus::of_threads(&attribute, &tids, RING_KIB)
        .map_err(|error| io::Error::new(error.kind(), format!("perf_event_open of process {}: {error}", wanted.pid)))?;
    Ok(PerfSource::new(cpus, Switches, Vec::new()))
}

/// The kernel's records of switches, forks and exits.
pub struct Switches;

impl Decode for Switches {
    // Events of threads are there again with the CPU.
    const OUTLIVES_ITS_CPU: bool = true;

    fn row(&self, _: &mut Cpu, record: &Record<'_>) -> Option<Row> {
        row(record)
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
