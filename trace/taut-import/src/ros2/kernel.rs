//! LTTng's kernel events → the recording's: other names of fields, priorities counted from elsewhere, and neither the
//! current thread nor whether an interrupt was under way, which follows from the events before on the CPU.

use std::collections::{HashMap, HashSet};

use taut_recording::{KernelBatch, KernelEvent, Record, Thread};

use super::{
    events::{self, CALLS, What},
    threads::numbered,
};
use crate::{
    Error,
    ctf::{Event, Source},
    writing::Import,
};

/// Rows that are written at once.
const ROWS: usize = 4096;
/// LTTng counts a thread's priority from that of nice −20 less 20; the kernel from the highest of all.
const PRIORITY: i64 = 100;
/// `common_flags` of hard interrupts and softirqs.
const HARD_IRQ: u8 = 0x08;
const SOFT_IRQ: u8 = 0x10;
const DEVICE: i64 = 0;
const SOFTIRQ: i64 = 1;
const VECTOR: i64 = 2;
/// Threads whose names are remembered.
const MOST_THREADS: usize = 1 << 18;
/// CPUs of all machines.
const MOST_CPUS: usize = 1 << 12;
/// CPUs of one machine, where there are several.
const CPUS_OF_HOST: usize = 1 << 9;

/// One CPU.
#[derive(Default)]
struct Cpu {
    current: i32,
    /// Interrupts and softirqs under way.
    hard: u8,
    soft: u8,
    batch: KernelBatch,
}

/// The state from which kernel events are read.
#[derive(Default)]
pub(super) struct Kernel {
    cpus: Vec<Cpu>,
    /// Whether a wakeup counts: only where no waking is recorded.
    has_waking: bool,
    /// Processes of the ROS system.
    processes: HashSet<i32>,
    /// Threads by tid: process and name, as written.
    known: HashMap<i32, (i32, String)>,
}

impl Kernel {
    /// `processes` and `threads` are those that the trace's own events are from.
    pub fn new(has_waking: bool, threads: &super::threads::Threads) -> Kernel {
        Kernel {
            has_waking,
            processes: threads.iter().map(|thread| thread.pid).collect(),
            known: threads.iter().map(|thread| (thread.tid, (thread.pid, String::new()))).collect(),
            ..Kernel::default()
        }
    }

    pub fn take(&mut self, what: What, source: Source, event: &Event<'_>, to: &mut Import) -> Result<(), Error> {
        use events::Kernel::*;
        let at = usize::from(source.host) * CPUS_OF_HOST + event.cpu as usize;
        if at >= MOST_CPUS {
            return Ok(());
        }
        if self.cpus.len() <= at {
            self.cpus.resize_with(at + 1, Cpu::default);
        }
        let signed = |field| event.number(field).map_or(0, |number| number as i64);
        let thread = |field: usize| match signed(field) as i32 {
            0 => 0,
            tid => numbered(source.host, tid),
        };
        let priority = |field| i64::from(signed(field) as i32) + PRIORITY;
        let cpu = &mut self.cpus[at];
        let known_tid = event.tid().map(|tid| if tid == 0 { 0 } else { numbered(source.host, tid) });
        let mut tid = known_tid.unwrap_or(cpu.current);
        let (kind, args) = match what {
            What::Kernel(Switch) => {
                tid = thread(0);
                let priorities = priority(4) << 16 | priority(3) & 0xffff;
                (KernelEvent::SchedSwitch, [i64::from(thread(1)), signed(2), priorities])
            }
            What::Kernel(Wakeup) if self.has_waking => return Ok(()),
            What::Kernel(Waking | Wakeup) => (KernelEvent::SchedWaking, [i64::from(thread(0)), signed(1), priority(2)]),
            What::Kernel(WakeupNew) => (KernelEvent::SchedWakeupNew, [i64::from(thread(0)), signed(1), priority(2)]),
            What::Kernel(Migrate) => (KernelEvent::SchedMigrate, [i64::from(thread(0)), signed(1), signed(2)]),
            What::Kernel(Fork) => (KernelEvent::SchedFork, [i64::from(thread(0)), 0, 0]),
            What::Kernel(Exec) => (KernelEvent::SchedExec, [i64::from(thread(0)), 0, 0]),
            What::Kernel(Exit) => (KernelEvent::SchedExit, [0; 3]),
            What::Kernel(IrqEnter) => (KernelEvent::IrqEnter, [signed(0), DEVICE, 0]),
            What::Kernel(IrqExit) => (KernelEvent::IrqExit, [signed(0), DEVICE, 0]),
            What::Kernel(SoftirqEnter) => (KernelEvent::IrqEnter, [signed(0), SOFTIRQ, 0]),
            What::Kernel(SoftirqExit) => (KernelEvent::IrqExit, [signed(0), SOFTIRQ, 0]),
            What::Kernel(TimerVectorEnter) => (KernelEvent::IrqEnter, [signed(0), VECTOR, 0]),
            What::Kernel(TimerVectorExit) => (KernelEvent::IrqExit, [signed(0), VECTOR, 0]),
            // The kernel's own mark of leaving is all ones in 32 bits.
            What::Kernel(Idle) => (KernelEvent::CpuIdle, [i64::from(signed(0) as i32), 0, 0]),
            What::Kernel(Frequency) => (KernelEvent::CpuFrequency, [signed(0), signed(1), 0]),
            What::Kernel(TimerStart) => (KernelEvent::TimerStart, [signed(0), signed(1), signed(2)]),
            What::Kernel(PageFault) => (KernelEvent::PageFault, [signed(0), signed(1), signed(2)]),
            What::Kernel(Process) => {
                let (tid, pid) = (thread(0), thread(1));
                return self.name(tid, Some(pid), event.text(2), source.time_ns, to);
            }
            What::Enter(call) => (KernelEvent::SyscallEnter, [i64::from(CALLS[call].1), signed(0), signed(1)]),
            What::Exit(call) => (KernelEvent::SyscallExit, [i64::from(CALLS[call].1), signed(0), 0]),
            What::Init(_) | What::Ros(_) => return Ok(()),
        };
        match what {
            What::Kernel(IrqEnter | TimerVectorEnter) => cpu.hard = cpu.hard.saturating_add(1),
            What::Kernel(SoftirqEnter) => cpu.soft = cpu.soft.saturating_add(1),
            _ => {}
        }
        let flags = if cpu.hard > 0 { HARD_IRQ } else { 0 } | if cpu.soft > 0 { SOFT_IRQ } else { 0 };
        match what {
            What::Kernel(IrqExit | TimerVectorExit) => cpu.hard = cpu.hard.saturating_sub(1),
            What::Kernel(SoftirqExit) => cpu.soft = cpu.soft.saturating_sub(1),
            // No interrupt lasts across a switch: an end that was lost is past.
            What::Kernel(Switch) => (cpu.hard, cpu.soft, cpu.current) = (0, 0, args[0] as i32),
            _ => {}
        }
        let batch = &mut cpu.batch;
        batch.cpu = at as u16;
        batch.push(source.time_ns, kind as u8, flags, tid, args);
        if batch.time_ns.len() >= ROWS {
            let full = std::mem::take(batch);
            to.record(&Record::Kernel(full))?;
        }
        match what {
            What::Kernel(Switch) => {
                self.name(tid, None, event.text(5), source.time_ns, to)?;
                self.name(args[0] as i32, None, event.text(6), source.time_ns, to)
            }
            What::Kernel(Fork) => self.name(args[0] as i32, Some(thread(1)), event.text(2), source.time_ns, to),
            _ => Ok(()),
        }
    }

    /// Writes what a thread is called when that is new.
    fn name(
        &mut self,
        tid: i32,
        pid: Option<i32>,
        name: Option<&str>,
        time_ns: u64,
        to: &mut Import,
    ) -> Result<(), Error> {
        let Some(name) = name.filter(|name| tid != 0 && !name.is_empty()) else { return Ok(()) };
        let known = self.known.get(&tid);
        if known.is_some_and(|(known_pid, known)| known == name && pid.is_none_or(|pid| pid == *known_pid)) {
            return Ok(());
        }
        if known.is_none() && self.known.len() >= MOST_THREADS {
            return Ok(());
        }
        // Without a word of its process a thread is its own.
        let pid = pid.or(known.map(|(pid, _)| *pid)).unwrap_or(tid);
        self.known.insert(tid, (pid, name.to_owned()));
        let recorded = self.processes.contains(&pid);
        to.record(&Record::Thread(Thread { time_ns, pid, tid, comm: name.to_owned(), recorded, ..Thread::default() }))
    }

    /// Writes what is left.
    pub fn finish(self, to: &mut Import) -> Result<(), Error> {
        for cpu in self.cpus.into_iter().filter(|cpu| !cpu.batch.time_ns.is_empty()) {
            to.record(&Record::Kernel(cpu.batch))?;
        }
        Ok(())
    }
}
