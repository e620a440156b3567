//! What reads perf's rings, one a CPU, for the full tier, the self tier and the profile: opening, reading, stopping, losses.

use std::{io, os::fd::OwnedFd};

use perf_event_open_sys::bindings::{self, perf_event_attr};
use taut_recording::{KernelBatch, KernelEvent};

use super::{
    Source, capabilities,
    perf_ring::{self, Record, Ring},
    rows::{Row, Rows},
};
use crate::give_way::pause_if_due;

/// One CPU's ring, and the events that write to it: the first owns it.
pub(crate) struct Cpu {
    cpu: u16,
    events: Vec<OwnedFd>,
    ring: Option<Ring>,
    lost: u64,
    /// Switches that must have been there, since the thread that leaves is not the one that came.
    gaps: u64,
    running: Option<i64>,
    reported: u64,
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

    /// Hands over the records that are there; those that count losses are counted. Returns their bytes.
    fn read(&mut self, on_record: &mut impl FnMut(&mut Cpu, &Record<'_>)) -> u64 {
        let Some(mut ring) = self.ring.take() else { return 0 };
        let bytes = ring.read(|record| match record.kind {
            bindings::PERF_RECORD_LOST => {
                self.lost += record.u64_at(8).unwrap_or(1);
                self.running = None;
            }
            _ => on_record(self, &record),
        });
        self.ring = Some(ring);
        bytes
    }

    /// A LOST record only comes with the next record that fits, so the last losses never get one:
    /// the exact number is what the events counted.
    fn count_losses(&mut self) {
        let counted = self.events.iter().map(perf_ring::lost_of).sum::<Option<u64>>();
        self.lost = self.lost.max(counted.unwrap_or(0));
    }

    /// Counts a gap where the chain of switches breaks. perf can drop events without any count:
    /// Linux 6.18 was seen to leave a task's recursion counter set, and then nothing that happens
    /// in this task is recorded again until the task ends (docs/reference/kernel-events.md).
    pub fn check_chain(&mut self, row: &Row) {
        if row.event == KernelEvent::SchedSwitch {
            self.gaps += u64::from(self.running.is_some_and(|running| running != i64::from(row.tid)));
            self.running = Some(row.args[0]);
        }
    }

    /// What was lost since the last call.
    fn take_lost(&mut self, what: &str) -> Option<(String, u64)> {
        let total = self.lost + self.gaps;
        let increment = total - std::mem::replace(&mut self.reported, total);
        (increment > 0).then(|| (format!("cpu {} {what}", self.cpu), increment))
    }
}

/// All CPUs that are online.
pub(crate) struct Cpus(Vec<Cpu>);

impl Cpus {
    /// None has an event yet.
    pub fn online() -> Cpus {
        Cpus(capabilities::online_cpus().into_iter().map(Cpu::new).collect())
    }

    /// One event for each of these threads on each CPU.
    ///
    /// # Errors
    /// perf_event_open or the mapping of a ring was refused, or all of the threads have ended.
    pub fn of_threads(attribute: &perf_event_attr, tids: &[i32], ring_kib: u64) -> io::Result<Cpus> {
        let mut cpus = Cpus::online();
        for cpu in cpus.iter_mut() {
            for &tid in tids {
                match cpu.add(attribute, tid, ring_kib) {
                    Ok(_) => {}
                    // It ended: the first one, too, may end before the others.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(error),
                }
            }
            if cpu.events.is_empty() {
                return Err(io::Error::other("none of the threads runs any more"));
            }
        }
        Ok(cpus)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Cpu> {
        self.0.iter_mut()
    }

    /// Hands over the records that are there, CPU by CPU. Returns their bytes.
    pub fn read(&mut self, mut on_record: impl FnMut(&mut Cpu, &Record<'_>)) -> u64 {
        let read = |cpu: &mut Cpu| {
            pause_if_due();
            cpu.read(&mut on_record)
        };
        self.0.iter_mut().map(read).sum()
    }

    /// Stops the events and hands over what they left. Returns the bytes, and whether every event could be stopped.
    pub fn stop(&mut self, on_record: impl FnMut(&mut Cpu, &Record<'_>)) -> (u64, io::Result<()>) {
        let events = self.0.iter().flat_map(|cpu| &cpu.events);
        // Each of them, also where another one fails.
        let mut stopped = Ok(());
        for event in events {
            stopped = stopped.and(perf_ring::disable(event));
        }
        // What the rings say of losses comes before the exact number, which holds it.
        let bytes = self.read(on_record);
        for cpu in &mut self.0 {
            cpu.count_losses();
            cpu.ring = None;
            cpu.events.clear();
        }
        (bytes, stopped)
    }

    /// Whether this one is among them.
    fn has(&self, number: u16) -> bool {
        self.0.iter().any(|cpu| cpu.cpu == number)
    }

    /// What was lost since the last call, by CPU.
    pub fn take_lost(&mut self, what: &str) -> Vec<(String, u64)> {
        self.0.iter_mut().filter_map(|cpu| cpu.take_lost(what)).collect()
    }
}

/// Makes rows of the records of one kind of event.
pub trait Decode {
    /// Whether its events go on when their CPU is online again.
    const OUTLIVES_ITS_CPU: bool;

    /// The row of a record; `None` for one that says nothing here.
    fn row(&self, cpu: &mut Cpu, record: &Record<'_>) -> Option<Row>;
}

/// A source of kernel events whose records come through perf's rings.
pub struct PerfSource<D> {
    cpus: Cpus,
    decode: D,
    rows: Rows,
    bytes_read: u64,
    stopped: bool,
    left_out: Vec<String>,
}

impl<D: Decode> PerfSource<D> {
    /// Of events that are open; `left_out` names those that the kernel refused.
    pub fn new(cpus: Cpus, decode: D, left_out: Vec<String>) -> PerfSource<D> {
        PerfSource { cpus, decode, rows: Rows::default(), bytes_read: 0, stopped: false, left_out }
    }
}

/// Appends the rows of records to their CPU's queue.
fn queue<'a, D: Decode>(decode: &'a D, rows: &'a mut Rows) -> impl FnMut(&mut Cpu, &Record<'_>) + 'a {
    move |cpu, record| {
        let row = decode.row(cpu, record);
        rows.of_cpu(cpu.cpu).extend(row);
    }
}

impl<D: Decode + Send> Source for PerfSource<D> {
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
        self.bytes_read += self.cpus.read(queue(&self.decode, &mut self.rows));
        self.rows.release(now_ns, sink);
        Ok(())
    }

    fn stop(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.stopped, true) {
            return Ok(());
        }
        let (bytes, stopped) = self.cpus.stop(queue(&self.decode, &mut self.rows));
        self.bytes_read += bytes;
        stopped
    }

    fn takes_cpu(&mut self, cpu: u16, was_there: bool) -> bool {
        self.cpus.has(cpu) && (!was_there || D::OUTLIVES_ITS_CPU)
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    fn lost(&mut self) -> Vec<(String, u64)> {
        self.cpus.take_lost("perf")
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    struct Nothing;

    impl Decode for Nothing {
        const OUTLIVES_ITS_CPU: bool = false;

        fn row(&self, _: &mut Cpu, _: &Record<'_>) -> Option<Row> {
            None
        }
    }

    /// Of events that are none, so that they cannot be stopped.
    #[test]
    fn where_an_event_cannot_be_stopped_the_source_ends_all_the_same() {
        let cpu = |number| Cpu { events: vec![File::open("/dev/null").unwrap().into()], lost: 3, ..Cpu::new(number) };
        let mut source = PerfSource::new(Cpus(vec![cpu(0), cpu(2)]), Nothing, Vec::new());
        assert!(source.stop().is_err() && source.stop().is_ok());
        assert!(source.cpus.0.iter().all(|cpu| cpu.events.is_empty()));
        assert_eq!(source.lost().iter().map(|(_, count)| count).sum::<u64>(), 6, "what is known of losses is told");
    }

    #[test]
    fn a_cpu_that_comes_has_no_ring() {
        let mut source = PerfSource::new(Cpus(vec![Cpu::new(0)]), Nothing, Vec::new());
        assert!(!source.takes_cpu(1, false), "it is new");
        assert!(!source.takes_cpu(0, true), "its events went with it");
        assert!(source.takes_cpu(0, false), "it came before its events were opened");
    }
}
