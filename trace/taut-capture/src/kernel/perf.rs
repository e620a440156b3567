//! The full tier by perf_event_open: one ring per CPU that all tracepoints of that CPU share.
//! Serves where CAP_PERFMON and the tracepoints' numbers are to be had, but no trace instance.

use std::io;
use std::os::fd::OwnedFd;

use perf_event_open_sys::bindings::{self, perf_event_attr};
use taut_recording::{KernelBatch, KernelEvent};

use super::format::Format;
use super::perf_ring::{self, Ring};
use super::rows::{Row, Rows};
use super::tracefs::Tracefs;
use super::tracepoints::{self, Decoder, Tracepoint};
use super::{Source, Wanted, capabilities};

/// The raw data's length lies after the time in a sample of TIME and RAW.
const RAW_LENGTH_AT: usize = 8;
const RAW_AT: usize = 12;

/// What perf takes for all threads.
const EVERYBODY: i32 = -1;

/// perf's rings share one budget with ftrace's two.
const RINGS_OF_FTRACE: u64 = 2;

/// The rings of all CPUs, and the decoder of what is in them.
pub struct Perf {
    cpus: Vec<Cpu>,
    decoder: Decoder,
    rows: Rows,
    bytes_read: u64,
    stopped: bool,
    left_out: Vec<String>,
}

/// A tracepoint as perf is asked for it.
struct Asked {
    point: Tracepoint,
    attribute: perf_event_attr,
}

/// One CPU's ring, and the events that write to it: the first owns it.
pub(crate) struct Cpu {
    pub cpu: u16,
    pub events: Vec<OwnedFd>,
    pub ring: Option<Ring>,
    pub lost: u64,
    /// Switches that must have been there, since the thread that leaves is not the one that came.
    gaps: u64,
    running: Option<i64>,
    pub reported: u64,
}

impl Cpu {
    pub fn new(cpu: u16) -> Cpu {
        Cpu { cpu, events: Vec::new(), ring: None, lost: 0, gaps: 0, running: None, reported: 0 }
    }

    /// Opens an event here; the first one gets the ring, the others share it.
    pub fn add(&mut self, attribute: &perf_event_attr, pid: i32, ring_kib: u64) -> io::Result<&OwnedFd> {
        let event = perf_ring::open(attribute, pid, self.cpu)?;
        match self.events.first() {
            Some(first) => perf_ring::share_ring(&event, first)?,
            None => self.ring = Some(Ring::map(&event, ring_kib)?),
        }
        self.events.push(event);
        Ok(&self.events[self.events.len() - 1])
    }

    /// A LOST record only comes with the next record that fits, so the last losses never get one:
    /// the exact number is what the events counted.
    pub fn count_losses(&mut self) {
        let counted = self.events.iter().map(perf_ring::lost_of).sum::<Option<u64>>();
        self.lost = self.lost.max(counted.unwrap_or(0));
    }

    /// Counts a gap where the chain of switches breaks. perf can drop events without any count:
    /// Linux 6.18 was seen to leave a task's recursion counter set, and then nothing that happens
    /// in this task is recorded again until the task ends (docs/reference/kernel-events.md).
    fn check_chain(&mut self, row: &Row) {
        if row.event == KernelEvent::SchedSwitch {
            self.gaps += u64::from(self.running.is_some_and(|running| running != i64::from(row.tid)));
            self.running = Some(row.args[0]);
        }
    }

    /// What was lost since the last call, for [`Source::lost`].
    pub fn take_lost(&mut self, what: &str) -> Option<(String, u64)> {
        let total = self.lost + self.gaps;
        let increment = total - self.reported;
        self.reported = total;
        (increment > 0).then(|| (format!("cpu {} {what}", self.cpu), increment))
    }
}

impl Perf {
    /// Starts tracing.
    ///
    /// # Errors
    /// What was refused: reading the tracepoints' numbers, or opening an event.
    pub fn start(wanted: &Wanted) -> io::Result<Perf> {
        Perf::with_ring_kib(wanted, capabilities::ring_kib_by_memory() * RINGS_OF_FTRACE)
    }

    pub(super) fn with_ring_kib(wanted: &Wanted, ring_kib: u64) -> io::Result<Perf> {
        let tracefs = Tracefs::open().map_err(|error| said("tracepoint numbers in tracefs", error))?;
        let mut decoder = Decoder::default();
        let cpus = capabilities::online_cpus();
        let mut left_out = Vec::new();
        let all_tasks = asked(&tracefs, tracepoints::of_all_tasks(&tracefs, wanted.depth), &mut decoder)?;
        let all_tasks = permitted(all_tasks, -1, cpus[0], &mut left_out)?;
        let tree = asked(&tracefs, tracepoints::of_tree_raw(wanted.depth), &mut decoder)?;
        let tree = permitted(tree, 0, cpus[0], &mut left_out)?;
        let tids = match wanted.whole_system {
            true => vec![EVERYBODY],
            false => capabilities::of_tree(wanted.pid, wanted.follow_existing_threads),
        };
        let rows = Rows::default();
        let mut source = Perf { cpus: Vec::new(), decoder, rows, bytes_read: 0, stopped: false, left_out };
        for cpu in cpus {
            let mut cpu = Cpu::new(cpu);
            for Asked { point, attribute } in &all_tasks {
                let event = cpu.add(attribute, -1, ring_kib);
                let event = event.map_err(|error| said("perf_event_open of all tasks", error))?;
                point.filters.iter().any(|filter| perf_ring::filter(event, filter).is_ok());
            }
            source.cpus.push(cpu);
        }
        for cpu in &mut source.cpus {
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
        Ok(source)
    }

    fn read_rings(&mut self) {
        let (decoder, rows) = (&self.decoder, &mut self.rows);
        for cpu in &mut self.cpus {
            let Some(mut ring) = cpu.ring.take() else { continue };
            let queue = rows.of_cpu(cpu.cpu);
            self.bytes_read += ring.read(|record| match record.kind {
                bindings::PERF_RECORD_SAMPLE => {
                    let raw = || {
                        let length = record.i32_at(RAW_LENGTH_AT)? as usize;
                        decoder.row(record.u64_at(0)?, record.body.get(RAW_AT..RAW_AT.checked_add(length)?)?)
                    };
                    if let Some(row) = raw() {
                        cpu.check_chain(&row);
                        queue.push(row);
                    }
                }
                bindings::PERF_RECORD_LOST => {
                    cpu.lost += record.u64_at(8).unwrap_or(1);
                    cpu.running = None;
                }
                _ => {}
            });
            cpu.ring = Some(ring);
        }
    }
}

/// perf's view of the tracepoints that this kernel has and taut can read; scheduling is not optional.
fn asked(tracefs: &Tracefs, points: Vec<Tracepoint>, decoder: &mut Decoder) -> io::Result<Vec<Asked>> {
    let mut all = Vec::new();
    for point in points {
        let place = format!("events/{}/{}/format", point.group, point.name);
        let format = match tracefs.read(&place) {
            Ok(text) => Format::parse(&text),
            Err(error) if point.group == "sched" => return Err(error),
            Err(_) => continue,
        };
        let Some(format) = format.filter(|format| decoder.add(&point, format)) else {
            match point.group.as_str() {
                "sched" => return Err(io::Error::other(format!("tracefs {place} has other fields than taut knows"))),
                _ => continue,
            }
        };
        let mut attribute = perf_ring::attribute();
        attribute.type_ = bindings::PERF_TYPE_TRACEPOINT;
        attribute.config = u64::from(format.id);
        attribute.sample_type = u64::from(bindings::PERF_SAMPLE_TIME | bindings::PERF_SAMPLE_RAW);
        attribute.__bindgen_anon_1.sample_period = 1;
        all.push(Asked { point, attribute });
    }
    Ok(all)
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

impl Source for Perf {
    fn name(&self) -> &'static str {
        "perf"
    }

    fn left_out(&self) -> &[String] {
        &self.left_out
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
