//! Scenes of threads on CPUs under construction: events, stamps and names, and what the analysis makes of them.

#![allow(dead_code, reason = "each test file uses some of it")]

use taut_analysis::{Analysis, Analyzer, Cause, Config, Error, ExplainOptions, Explained, RowSink};
use taut_clock::Counter;
use taut_recording::{
    Architecture, Info, KernelBatch, KernelEvent, Kind, Lost, Name, Object, Record, Sample, StampBatch, Thread,
};

pub mod pool;
pub mod server;

pub const US: u64 = 1_000;
/// Interruptible and uninterruptible sleep, stopped, and "preempted", as `prev_state` has them.
pub const S: i64 = 1;
pub const D: i64 = 2;
pub const T: i64 = 4;
pub const R: i64 = 0x100;
/// Flags of events in hard interrupts.
pub const IRQ: u8 = 0x08;
pub const SOFTIRQ: u8 = 0x10;
pub const WAIT: i64 = 0x80;
pub const WAIT_BITSET: i64 = 0x189;
pub const WAKE: i64 = 0x81;

/// Events under construction; times in µs.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub events: Vec<(u16, u64, KernelEvent, u8, i32, [i64; 3])>,
    pub stamps: Vec<(i32, u64, u64, u32, Kind, u64)>,
    pub names: Vec<String>,
    pub threads: Vec<Thread>,
    pub objects: Vec<Object>,
    pub lost: Vec<Lost>,
    pub samples: Vec<Sample>,
    pub info: Info,
}

impl Scene {
    pub fn new() -> Scene {
        let info = Info { system_calls: Architecture::HERE.word().into(), ..Info::default() };
        let mut scene = Scene { info, ..Scene::default() };
        for tid in [10, 11, 12] {
            scene.thread(10, tid, "robot", true);
        }
        scene.thread(20, 20, "peer", true);
        scene.thread(30, 30, "hog", false);
        scene
    }

    pub fn thread(&mut self, pid: i32, tid: i32, comm: &str, recorded: bool) {
        self.threads.push(Thread { pid, tid, comm: comm.into(), recorded, ..Thread::default() });
    }

    pub fn event(&mut self, cpu: u16, us: u64, event: KernelEvent, tid: i32, args: [i64; 3]) -> &mut Scene {
        self.events.push((cpu, us * US, event, 0, tid, args));
        self
    }

    pub fn switch(&mut self, cpu: u16, us: u64, previous: i32, state: i64, next: i32) -> &mut Scene {
        self.event(cpu, us, KernelEvent::SchedSwitch, previous, [next.into(), state, 0])
    }

    pub fn wake(&mut self, cpu: u16, us: u64, waker: i32, flags: u8, woken: i32) -> &mut Scene {
        let args = [woken.into(), cpu.into(), 0];
        self.events.push((cpu, us * US, KernelEvent::SchedWaking, flags, waker, args));
        self
    }

    pub fn enter(&mut self, cpu: u16, us: u64, tid: i32, call: i64, arg0: i64, arg1: i64) -> &mut Scene {
        self.event(cpu, us, KernelEvent::SyscallEnter, tid, [call, arg0, arg1])
    }

    pub fn exit(&mut self, cpu: u16, us: u64, tid: i32, call: i64) -> &mut Scene {
        self.event(cpu, us, KernelEvent::SyscallExit, tid, [call, 0, 0])
    }

    pub fn name(&mut self, name: &str) -> u32 {
        let at = self.names.iter().position(|n| n == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        at as u32 + 1
    }

    pub fn mark(&mut self, tid: i32, us: u64, id: u64, name: &str, kind: Kind, value: u64) -> &mut Scene {
        let name = self.name(name);
        self.stamps.push((tid, us * US, id, name, kind, value));
        self
    }

    pub fn stamp(&mut self, tid: i32, us: u64, id: u64, point: &str) -> &mut Scene {
        self.mark(tid, us, id, point, Kind::Stamp, 0)
    }

    pub fn analyse(&self, wanted: ExplainOptions) -> Analysis {
        self.try_analyse(wanted, None).unwrap()
    }

    pub fn analyse_by_row(&self, wanted: ExplainOptions, sink: &mut dyn RowSink) -> Analysis {
        self.try_analyse(wanted, Some(sink)).unwrap()
    }

    pub fn try_analyse(&self, wanted: ExplainOptions, sink: Option<&mut dyn RowSink>) -> Result<Analysis, Error> {
        let mut analyzer = Analyzer::new(Config { explain: wanted, ..Config::default() });
        for (id, name) in (1..).zip(&self.names) {
            analyzer.record(&Record::Name(Name { id, name: name.clone() }));
        }
        self.threads.iter().for_each(|thread| analyzer.record(&Record::Thread(thread.clone())));
        self.objects.iter().for_each(|object| analyzer.record(&Record::Object(object.clone())));
        for (cpu, time_ns, event, flags, tid, args) in &self.events {
            analyzer.record(&Record::Kernel(KernelBatch {
                cpu: *cpu,
                time_ns: vec![*time_ns],
                event: vec![*event as u8],
                flags: vec![*flags],
                tid: vec![*tid],
                arg0: vec![args[0]],
                arg1: vec![args[1]],
                arg2: vec![args[2]],
            }));
        }
        for (tid, time, id, name, kind, value) in &self.stamps {
            analyzer.record(&Record::Stamps(StampBatch {
                pid: self.threads.iter().find(|t| t.tid == *tid).map_or(1, |t| t.pid),
                tid: *tid,
                counter: Counter::Monotonic as u8,
                ticks: vec![*time],
                message_id: vec![*id],
                point: vec![*name],
                kind: vec![*kind as u8],
                value: vec![*value],
            }));
        }
        self.samples.iter().for_each(|sample| analyzer.record(&Record::Sample(sample.clone())));
        self.lost.iter().for_each(|lost| analyzer.record(&Record::Lost(lost.clone())));
        match sink {
            None => analyzer.finish(self.info.clone(), None, Vec::new(), 0),
            Some(sink) => analyzer.finish_by_row(self.info.clone(), None, Vec::new(), 0, sink),
        }
    }

    pub fn explained(&self) -> Explained {
        let wanted = ExplainOptions { all: true, ..ExplainOptions::default() };
        self.analyse(wanted).chains[0].explained.clone()
    }

    /// The path of the only message as (µs, cause, detail).
    pub fn path(&self) -> Vec<(u64, Cause, String)> {
        let explained = self.explained();
        let path = &explained.paths[0].path;
        path.iter().map(|p| ((p.to_ns - p.from_ns) / US, p.cause, p.detail.clone())).collect()
    }
}
