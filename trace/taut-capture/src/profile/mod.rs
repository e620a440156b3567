//! Where CPU time goes: stacks sampled beside a recording (`sampler`), and what their frames are called (`symbols`).

mod images;
mod sampler;
pub(crate) mod symbols;

use std::{collections::HashMap, fmt, io, sync::Arc};

use taut_recording::{Frame, ProfileBatch, Record};

use crate::proc;
use images::{Identity, Image, Images};
use sampler::{Address, Event, Sampler, paranoid};
use symbols::{Memory, Symbols};
pub use symbols::{Place, fuzz as fuzz_symbols};

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
/// Places named in the warning of frames without a name.
const NAMELESS_SHOWN: usize = 8;
/// Most samples in one record.
const BATCH_SAMPLES: usize = 512;

/// Samples under way: what is mapped where, and the numbers that frames have in the recording.
pub struct Profiler {
    scope: Scope,
    sampler: Sampler,
    processes: HashMap<i32, Vec<Mapping>>,
    images: Images,
    memories: HashMap<i32, Arc<Memory>>,
    frames: HashMap<Place, u32>,
    /// Frames in the order of their numbers.
    places: Vec<Place>,
    /// How often each was in a stack.
    counts: Vec<u64>,
}

#[derive(Clone)]
struct Mapping {
    start: u64,
    size: u64,
    offset: u64,
    path: Arc<str>,
    identity: Identity,
    /// Opened when the first of its code is sampled.
    image: Option<Arc<Image>>,
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
            Scope::Tree if existing => proc::tree(pid)?,
            Scope::Tree => Vec::new(),
            Scope::System => proc::pids(),
        };
        let processes = running.into_iter().map(|pid| (pid, mapped_now(pid))).collect();
        Ok(Profiler {
            scope,
            sampler,
            processes,
            images: Images::default(),
            memories: HashMap::new(),
            frames: HashMap::new(),
            places: Vec::new(),
            counts: Vec::new(),
        })
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
                Event::Mapped { pid, start, size, offset, path, identity } => {
                    let mappings = self.processes.entry(pid).or_default();
                    mappings.retain(|old| old.start + old.size <= start || start + size <= old.start);
                    mappings.push(Mapping { start, size, offset, path: path.into(), identity, image: None });
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

    /// Ends the sampling. What was not yet taken, and the name of every frame; what is amiss with them, as that frames have no name, or
    /// that the kernel did not stop.
    pub fn finish(&mut self) -> (Vec<Record>, Vec<String>) {
        let not_stopped = self.sampler.stop().err().map(|error| format!("profile: {error}"));
        let mut records = self.drain(u64::MAX);
        let named = named(&self.places);
        let nameless = self.nameless(&named);
        records.extend(named.into_iter().map(Record::Frame));
        (records, nameless.into_iter().chain(not_stopped).collect())
    }

    /// Where frames are, in the order of their numbers.
    pub fn places(&self) -> Vec<Place> {
        self.places.clone()
    }

    /// Samples lost since the last call, by ring.
    pub fn lost(&mut self) -> Vec<(String, u64)> {
        self.sampler.lost()
    }

    fn frame(&mut self, pid: i32, address: Address) -> u32 {
        let place = match address {
            Address::Kernel(address) => Place::Kernel(address),
            Address::User(address) => self.user_place(pid, address),
        };
        let number = *self.frames.entry(place).or_insert_with_key(|place| {
            self.places.push(place.clone());
            self.counts.push(0);
            self.places.len() as u32
        });
        self.counts[number as usize - 1] += 1;
        number
    }

    fn user_place(&mut self, pid: i32, address: u64) -> Place {
        let mappings = self.processes.get_mut(&pid).map_or(&mut [][..], Vec::as_mut_slice);
        match mappings.iter_mut().find(|mapping| address.wrapping_sub(mapping.start) < mapping.size) {
            Some(found) if is_file(&found.path) => {
                let images = &mut self.images;
                let image = found.image.get_or_insert_with(|| images.of(pid, &found.path, found.identity));
                Place::File(Arc::clone(image), address - found.start + found.offset)
            }
            _ => {
                let may_hold = self.memories.len() < images::MOST_OPEN;
                let memory = self.memories.entry(pid).or_insert_with(|| Arc::new(Memory::of(pid, may_hold)));
                Place::Memory(Arc::clone(memory), address)
            }
        }
    }

    /// How many frames have no name, by where they are and why; `None` when all have one.
    fn nameless(&self, named: &[Frame]) -> Option<String> {
        let mut nameless: HashMap<(String, String), u64> = HashMap::new();
        let has_name: std::collections::HashSet<u32> = named.iter().map(|frame| frame.id).collect();
        for (at, (place, count)) in self.places.iter().zip(&self.counts).enumerate() {
            if !has_name.contains(&(at as u32 + 1)) {
                *nameless.entry(why_nameless(place)).or_default() += count;
            }
        }
        let (all, none) = (self.counts.iter().sum::<u64>(), nameless.values().sum::<u64>());
        let mut by_count: Vec<_> = nameless.into_iter().collect();
        by_count.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let shown = by_count.iter().take(NAMELESS_SHOWN).map(|((module, why), n)| format!("{n} in {module} ({why})"));
        let shown = shown.collect::<Vec<_>>().join(", ");
        let rest = by_count.len().saturating_sub(NAMELESS_SHOWN);
        let rest = if rest > 0 { format!(", and in {rest} more") } else { String::new() };
        (none > 0).then(|| format!("the profile has no symbols for {none} of {all} frames: {shown}{rest}"))
    }
}

fn why_nameless(place: &Place) -> (String, String) {
    let why = match place {
        Place::Kernel(_) => "kernel.kptr_restrict hides them".to_owned(),
        Place::File(image, _) if &*image.path == VDSO => "the kernel's own library".to_owned(),
        Place::File(image, _) => {
            image.file.as_ref().map_or_else(ToString::to_string, |_| "its symbol tables do not cover them".to_owned())
        }
        Place::Memory(..) => "code of no file; a map in /tmp would name it".to_owned(),
    };
    (frame(0, place, String::new()).module, why)
}

/// The frames that have names. This reads symbol tables.
pub fn named(places: &[Place]) -> Vec<Frame> {
    let mut symbols = Symbols::default();
    let frames = places.iter().enumerate().map(|(at, place)| frame(at, place, symbols.name(place)));
    frames.filter(|frame| !frame.name.is_empty()).collect()
}

fn frame(at: usize, place: &Place, name: String) -> Frame {
    let (module, address) = match place {
        Place::Kernel(address) => ("[kernel]".to_owned(), *address),
        Place::File(image, offset) => (image.path.to_string(), *offset),
        Place::Memory(memory, address) => (format!("[memory of {}]", memory.pid), *address),
    };
    Frame { id: at as u32 + 1, address, module, name }
}

/// Whether the mapping has a name that its code can go by: a file's, or the kernel's own library.
fn is_file(path: &str) -> bool {
    path == VDSO || path.starts_with('/') && !path.starts_with("//anon")
}

/// Executable mappings from /proc, for processes that were there before.
fn mapped_now(pid: i32) -> Vec<Mapping> {
    let Some(maps) = proc::parsed::<procfs::process::MemoryMaps>(format!("/proc/{pid}/maps")) else {
        return Vec::new();
    };
    let executable = maps.iter().filter(|map| map.perms.contains(procfs::process::MMPermissions::EXECUTE));
    let mapping = |map: &procfs::process::MemoryMap| {
        let path = match &map.pathname {
            procfs::process::MMapPath::Path(path) => path.display().to_string(),
            procfs::process::MMapPath::Vdso => VDSO.to_owned(),
            _ => String::new(),
        };
        let (start, end) = map.address;
        Mapping {
            start,
            size: end - start,
            offset: map.offset,
            path: path.into(),
            identity: Identity::Unknown,
            image: None,
        }
    };
    executable.map(mapping).collect()
}
