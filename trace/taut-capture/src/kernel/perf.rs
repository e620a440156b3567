//! The full tier by perf_event_open: one ring per CPU that all tracepoints of that CPU share.
//! Serves where CAP_PERFMON and the tracepoints' numbers are to be had, but no trace instance.

use std::io;

use perf_event_open_sys::bindings::{self, perf_event_attr};

use super::perf_ring::{self, Record};
use super::perf_source::{Cpu, Cpus, Decode, PerfSource};
use super::readable::readable;
use super::rows::Row;
use super::tracefs::Tracefs;
use super::tracepoints::{self, Decoder, Tracepoint};
use super::{Wanted, capabilities};

/// The raw data's length lies after the time in a sample of TIME and RAW.
const RAW_LENGTH_AT: usize = 8;
const RAW_AT: usize = 12;

/// What perf takes for all threads.
const EVERYBODY: i32 = -1;

/// perf's rings share one budget with ftrace's two.
const RINGS_OF_FTRACE: u64 = 2;

/// A tracepoint as perf is asked for it.
struct Asked {
    point: Tracepoint,
    attribute: perf_event_attr,
}

/// Starts tracing.
///
/// # Errors
/// What was refused: reading the tracepoints' numbers, or opening an event.
pub fn start(wanted: &Wanted) -> io::Result<PerfSource<Decoder>> {
    with_ring_kib(wanted, capabilities::ring_kib_by_memory() * RINGS_OF_FTRACE)
}

pub(super) fn with_ring_kib(wanted: &Wanted, ring_kib: u64) -> io::Result<PerfSource<Decoder>> {
    let tracefs = Tracefs::open().map_err(|error| said("tracepoint numbers in tracefs", error))?;
    let mut decoder = Decoder::default();
    let first_cpu = capabilities::online_cpus()[0];
    let mut left_out = Vec::new();
    let all_tasks = tracepoints::of_all_tasks(&tracefs, wanted.depth, &mut left_out);
    let all_tasks = asked(&tracefs, all_tasks, &mut decoder, &mut left_out)?;
    let all_tasks = permitted(all_tasks, EVERYBODY, first_cpu, &mut left_out)?;
    let tree = asked(&tracefs, tracepoints::of_tree_raw(wanted.depth), &mut decoder, &mut left_out)?;
    let tree = permitted(tree, 0, first_cpu, &mut left_out)?;
    let tids = match wanted.whole_system {
        true => vec![EVERYBODY],
        false => capabilities::of_tree(wanted.pid, wanted.follow_existing_threads),
    };
    let mut cpus = Cpus::online();
    for cpu in cpus.iter_mut() {
        for Asked { point, attribute } in &all_tasks {
            let event = cpu.add(attribute, EVERYBODY, ring_kib);
            let event = event.map_err(|error| said("perf_event_open of all tasks", error))?;
            point.filters.iter().any(|filter| perf_ring::filter(event, filter).is_ok());
        }
    }
    for cpu in cpus.iter_mut() {
        for &tid in &tids {
            for Asked { point, attribute } in &tree {
                let mut attribute = *attribute;
                attribute.set_inherit(u64::from(tid != EVERYBODY));
                let event = match cpu.add(&attribute, tid, ring_kib) {
                    Ok(event) => event,
                    // The thread ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                    Err(error) => return Err(said("perf_event_open of the recorded tree", error)),
                };
                let calls = (point.group == "raw_syscalls").then(tracepoints::raw_filter);
                // SAFETY: gettid takes nothing and cannot fail.
                let own = unsafe { libc::gettid() };
                let not_own = (tid == EVERYBODY).then(|| format!("common_pid!={own}"));
                let filter = match (calls, not_own) {
                    (Some(calls), Some(not_own)) => format!("({calls})&&{not_own}"),
                    (Some(filter), None) | (None, Some(filter)) => filter,
                    (None, None) => continue,
                };
                perf_ring::filter(event, &filter)?;
            }
        }
    }
    Ok(PerfSource::new(cpus, decoder, left_out))
}

impl Decode for Decoder {
    // The events of all tasks belong to the CPU and go with it.
    const OUTLIVES_ITS_CPU: bool = false;

    fn row(&self, cpu: &mut Cpu, record: &Record<'_>) -> Option<Row> {
        if record.kind != bindings::PERF_RECORD_SAMPLE {
            return None;
        }
        let length = record.i32_at(RAW_LENGTH_AT)? as usize;
        let raw = record.body.get(RAW_AT..RAW_AT.checked_add(length)?)?;
        let row = Decoder::row(self, record.u64_at(0)?, raw)?;
        cpu.check_chain(&row);
        Some(row)
    }
}

/// perf's view of the tracepoints that this kernel has and taut can read; scheduling is not optional.
fn asked(
    tracefs: &Tracefs,
    points: Vec<Tracepoint>,
    decoder: &mut Decoder,
    left_out: &mut Vec<String>,
) -> io::Result<Vec<Asked>> {
    let asked = |(point, id): (Tracepoint, u16)| {
        let mut attribute = perf_ring::attribute();
        attribute.type_ = bindings::PERF_TYPE_TRACEPOINT;
        attribute.config = u64::from(id);
        attribute.sample_type = u64::from(bindings::PERF_SAMPLE_TIME | bindings::PERF_SAMPLE_RAW);
        attribute.__bindgen_anon_1.sample_period = 1;
        Asked { point, attribute }
    };
    Ok(readable(tracefs, points, decoder, left_out)?.into_iter().map(asked).collect())
}

/// Those that this kernel lets this user sample; scheduling is not optional. The kernel refuses some to everybody, on x86
/// `irq_vectors:irq_work_exit`, since its handler would sample itself. Without its exit an entry would never end, so that
/// both are left out.
fn permitted(asked: Vec<Asked>, pid: i32, cpu: u16, left_out: &mut Vec<String>) -> io::Result<Vec<Asked>> {
    let mut refused = Vec::new();
    for Asked { point, attribute } in &asked {
        match perf_ring::open(attribute, pid, cpu) {
            Err(error) if point.group == "sched" => return Err(said("perf_event_open of all tasks", error)),
            Err(_) => refused.push((point.group.clone(), point.subject().to_owned())),
            Ok(_) => {}
        }
    }
    let is_refused = |asked: &Asked| {
        refused.iter().any(|(group, subject)| *group == asked.point.group && subject == asked.point.subject())
    };
    let (out, kept) = asked.into_iter().partition(is_refused);
    left_out.extend::<Vec<String>>(Vec::from_iter(out).iter().map(Asked::name).collect());
    Ok(kept)
}

impl Asked {
    /// As perf has it.
    fn name(&self) -> String {
        format!("{}:{}", self.point.group, self.point.name)
    }
}

fn said(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
