//! Where CPU time goes: stacks sampled beside a recording (`sampler`), and what their frames are called (`symbols`).

mod sampler;
mod symbols;

use std::{collections::HashMap, fmt, io, rc::Rc};

use taut_recording::{Frame, ProfileBatch, Record};

use crate::proc;
use sampler::{Address, Event, Sampler, paranoid};
use symbols::{Place, Symbols};

/// Whose stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The recorded tree's.
    Tree,
    /// Every task's; needs root or CAP_PERFMON.
    System,
}

/// What to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profiling {
    /// Whose.
    pub scope: Scope,
    /// Times a second of CPU time.
    pub hz: u32,
}

impl fmt::Display for Profiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.scope {
            Scope::Tree => "the recorded tree",
            Scope::System => "all tasks",
        };
        write!(f, "stacks of {whose}, {} times a second of CPU time", self.hz)
    }
}

/// For the fuzzer: whatever a ring may hold.
pub(crate) fn fuzzing(record: &crate::kernel::perf_ring::Record<'_>) {
    sampler::event(record);
}

/// Events wait so long for those of other CPUs, which may have been earlier.
const HELD_NS: u64 = 20_000_000;
/// What the kernel calls the library that it maps into every process.
const VDSO: &str = "[vdso]";
/// Most samples in one record.
const BATCH_SAMPLES: usize = 512;

/// Samples under way: what is mapped where, and the numbers that frames have in the recording.
pub struct Profiler {
    scope: Scope,
    sampler: Sampler,
    processes: HashMap<i32, Vec<Mapping>>,
    frames: HashMap<Place, u32>,
    /// Frames in the order of their numbers.
    places: Vec<Place>,
}

#[derive(Clone)]
struct Mapping {
    start: u64,
    size: u64,
    offset: u64,
    path: Rc<str>,
}

impl Profiler {
    /// Starts sampling.
    ///
    /// # Errors
    /// perf_event_open or the mapping of its ring was refused.
    pub fn start(pid: i32, existing: bool, wanted: Profiling) -> io::Result<Profiler> {
        let Profiling { scope, hz } = wanted;
        let sampler = Sampler::start(pid, existing, scope, hz)?;
        let running = match scope {
            Scope::Tree if existing => proc::tree(pid),
            Scope::Tree => Vec::new(),
            Scope::System => proc::pids(),
        };
        let processes = running.into_iter().map(|pid| (pid, mapped_now(pid))).collect();
        Ok(Profiler { scope, sampler, processes, frames: HashMap::new(), places: Vec::new() })
    }

    /// Whether only the recorded tree is sampled.
    pub fn is_of_tree(&self) -> bool {
        self.scope == Scope::Tree
    }

    /// Why there are no frames of the kernel; `None` when there are.
    pub fn without_kernel(&self) -> Option<String> {
        let level = paranoid().filter(|_| !self.sampler.with_kernel())?;
        Some(format!(
            "the profile has no kernel frames: kernel.perf_event_paranoid is {level}; \
             sudo sysctl kernel.perf_event_paranoid=1 or root shows them"
        ))
    }

    /// Records of what was sampled until now: stacks, and frames that are new.
    pub fn drain(&mut self, now_ns: u64) -> Vec<Record> {
        let known = self.places.len();
        let mut batches = vec![ProfileBatch::default()];
        for (time_ns, event) in self.sampler.drain(now_ns.saturating_sub(HELD_NS)) {
            match event {
                Event::Mapped { pid, start, size, offset, path } => {
                    let mappings = self.processes.entry(pid).or_default();
                    mappings.retain(|old| old.start + old.size <= start || start + size <= old.start);
                    mappings.push(Mapping { start, size, offset, path: path.into() });
                }
                Event::Forked { pid, parent } => {
                    let mappings = self.processes.get(&parent).cloned().unwrap_or_default();
                    self.processes.insert(pid, mappings);
                }
                Event::Executed { pid } => drop(self.processes.insert(pid, Vec::new())),
                Event::Exited { pid } if proc::runs(pid, None) => {}
                Event::Exited { pid } => drop(self.processes.remove(&pid)),
                Event::Sample { pid, tid, cpu, frames } => {
                    if batches[batches.len() - 1].time_ns.len() == BATCH_SAMPLES {
                        batches.push(ProfileBatch::default());
                    }
                    let at = batches.len() - 1;
                    for address in &frames {
                        let frame = self.frame(pid, *address);
                        batches[at].frame.push(frame);
                    }
                    let batch = &mut batches[at];
                    batch.time_ns.push(time_ns);
                    batch.cpu.push(cpu);
                    batch.pid.push(pid);
                    batch.tid.push(tid);
                    batch.depth.push(frames.len() as u16);
                }
            }
        }
        let new = (known..self.places.len()).map(|at| Record::Frame(frame(at, &self.places[at], String::new())));
        let mut records: Vec<Record> = new.collect();
        records.extend(batches.into_iter().filter(|batch| !batch.time_ns.is_empty()).map(Record::Profile));
        records
    }

    /// Ends the sampling. What was not yet taken, and the name of every frame.
    ///
    /// # Errors
    /// The kernel did not stop it.
    pub fn finish(&mut self) -> io::Result<Vec<Record>> {
        self.sampler.stop()?;
        let mut records = self.drain(u64::MAX);
        let mut symbols = Symbols::default();
        for (at, place) in self.places.iter().enumerate() {
            let name = symbols.name(place);
            if !name.is_empty() {
                records.push(Record::Frame(frame(at, place, name)));
            }
        }
        Ok(records)
    }

    /// Samples lost since the last call, by ring.
    pub fn lost(&mut self) -> Vec<(String, u64)> {
        self.sampler.lost()
    }

    fn frame(&mut self, pid: i32, address: Address) -> u32 {
        let place = match address {
            Address::Kernel(address) => Place::Kernel(address),
            Address::User(address) => {
                let mappings = self.processes.get(&pid).map_or(&[][..], Vec::as_slice);
                match mappings.iter().find(|mapping| address.wrapping_sub(mapping.start) < mapping.size) {
                    Some(found) if is_file(&found.path) => {
                        Place::File(found.path.clone(), address - found.start + found.offset)
                    }
                    _ => Place::Memory(pid, address),
                }
            }
        };
        *self.frames.entry(place).or_insert_with_key(|place| {
            self.places.push(place.clone());
            self.places.len() as u32
        })
    }
}

fn frame(at: usize, place: &Place, name: String) -> Frame {
    let (module, address) = match place {
        Place::Kernel(address) => ("[kernel]".to_owned(), *address),
        Place::File(path, offset) => (path.to_string(), *offset),
        Place::Memory(pid, address) => (format!("[memory of {pid}]"), *address),
    };
    Frame { id: at as u32 + 1, address, module, name }
}

/// Whether the mapping has a name that its code can go by: a file's, or the kernel's own library.
fn is_file(path: &str) -> bool {
    path == VDSO || path.starts_with('/') && !path.starts_with("//anon")
}

/// Executable mappings as /proc tells them, for processes that were there before.
fn mapped_now(pid: i32) -> Vec<Mapping> {
    let Ok(maps) = procfs::process::Process::new(pid).and_then(|process| process.maps()) else { return Vec::new() };
    let executable = maps.iter().filter(|map| map.perms.contains(procfs::process::MMPermissions::EXECUTE));
    let mapping = |map: &procfs::process::MemoryMap| {
        let path = match &map.pathname {
            procfs::process::MMapPath::Path(path) => path.display().to_string(),
            procfs::process::MMapPath::Vdso => VDSO.to_owned(),
            _ => String::new(),
        };
        let (start, end) = map.address;
        Mapping { start, size: end - start, offset: map.offset, path: path.into() }
    };
    executable.map(mapping).collect()
}
