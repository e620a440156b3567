//! Which variable of a program a lock is. A lock that the program does not name has an address, which says nothing to a reader and is another
//! one in each run; of a global mutex the symbol table has the name.

use std::{
    collections::{HashMap, HashSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use object::{Object, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};
use procfs::process::{MMapPath, MemoryMap, MemoryMaps};
use taut_recording::{KernelBatch, KernelEvent, futex};

use crate::{plain, proc, profile::symbols::readable};

/// Waits between two rounds, and places whose names are kept.
const WAITS_MOST: usize = 4096;
/// Words that were noticed once, and are passed over.
const SEEN_MOST: usize = 1 << 16;
/// Printing the mappings takes the lock that the process needs for each page fault: so many times of one program, and then seldom.
const LOOKS_MOST: u32 = 16;
const LATER_NS: u64 = 10_000_000_000;
/// Of files that claim more nothing is read: any user can make one.
const FILE_MOST: u64 = 2 << 30;
const SYMBOLS_MOST: u64 = 64 << 20;

/// Words in which threads waited as for a lock.
#[derive(Default)]
pub(crate) struct Waits {
    /// By thread, since the last round.
    new: HashSet<(i32, u64)>,
    seen: HashSet<(i32, u64)>,
    of_processes: HashMap<i32, HashSet<u64>>,
    /// Names by device, inode and offset: processes share programs and libraries.
    names: HashMap<(u64, u64, u64), Option<String>>,
}

/// What was looked up in one program.
#[derive(Default)]
pub(crate) struct Tried {
    addresses: HashSet<u64>,
    looks: u32,
    next_ns: u64,
}

/// Where a word lies: in this file, so many bytes behind the lowest address that it is mapped at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    file: PathBuf,
    offset: u64,
}

impl Waits {
    /// Takes the waits of a batch.
    pub fn notice(&mut self, batch: &KernelBatch) {
        for (at, event) in batch.event.iter().enumerate() {
            if *event == KernelEvent::SyscallEnter as u8
                && batch.arg0[at] == libc::SYS_futex
                && is_for_a_lock(batch.arg2[at] as u64)
                && self.new.len() < WAITS_MOST
            {
                let wait = (batch.tid[at], batch.arg1[at] as u64);
                if self.seen.insert(wait) {
                    self.new.insert(wait);
                }
            }
        }
    }

    /// Whose they are; those of threads that are gone, and of processes that are not recorded, are forgotten. `pids` ascend.
    pub fn settle(&mut self, pids: &[i32]) {
        let mut processes: HashMap<i32, Option<i32>> = HashMap::new();
        for (tid, address) in self.new.drain() {
            if let Some(pid) = *processes.entry(tid).or_insert_with(|| proc::thread_group(tid).ok()) {
                self.of_processes.entry(pid).or_default().insert(address);
            }
        }
        self.of_processes.retain(|pid, _| pids.binary_search(pid).is_ok());
        if self.seen.len() >= SEEN_MOST {
            self.seen.clear();
        }
    }

    /// A process executes another program: its addresses mean something else.
    pub fn forget_addresses(&mut self) {
        self.seen.clear();
    }

    /// New words of a process that lie in variables, with their names.
    pub fn look_up(&mut self, pid: i32, tried: &mut Tried, now_ns: u64) -> Vec<(u64, String)> {
        if tried.looks >= LOOKS_MOST && now_ns < tried.next_ns {
            return Vec::new();
        }
        let mut addresses = self.of_processes.remove(&pid).unwrap_or_default();
        addresses.retain(|address| !tried.addresses.contains(address));
        if addresses.is_empty() {
            return Vec::new();
        }
        (tried.looks, tried.next_ns) = (tried.looks + 1, now_ns + LATER_NS);
        let Some(maps) = proc::parsed::<MemoryMaps>(format!("/proc/{pid}/maps")) else { return Vec::new() };
        let mut by_file: HashMap<PathBuf, Vec<(u64, u64)>> = HashMap::new();
        for address in addresses {
            tried.addresses.insert(address);
            if let Some(Place { file, offset }) = place(&maps.0, address) {
                by_file.entry(file).or_default().push((address, offset));
            }
        }
        let mut found = Vec::new();
        for (file, words) in by_file {
            let path = PathBuf::from(format!("/proc/{pid}/root{}", file.display()));
            let Ok(metadata) = fs::metadata(&path) else { continue };
            let key = |offset| (metadata.dev(), metadata.ino(), offset);
            let new: Vec<u64> =
                words.iter().map(|(_, at)| *at).filter(|at| !self.names.contains_key(&key(*at))).collect();
            if self.names.len() + new.len() > WAITS_MOST {
                self.names.clear();
            }
            let names =
                if new.is_empty() || metadata.size() > FILE_MOST { HashMap::new() } else { names(&path, new.clone()) };
            self.names.extend(new.iter().map(|at| (key(*at), names.get(at).cloned())));
            let name = |(address, at): &(u64, u64)| Some((*address, self.names.get(&key(*at))?.clone()?));
            found.extend(words.iter().filter_map(name));
        }
        found
    }
}

/// By the operation in the low half, and the value that the wait expects in the high one.
fn is_for_a_lock(operation_and_value: u64) -> bool {
    let (operation, value) = (operation_and_value as u32, (operation_and_value >> 32) as u32);
    futex::is_lock(operation) || futex::is_wait(operation) && futex::is_contended(value)
}

/// The file whose data hold the address: those that it was loaded with, or the zeros behind them, which are a mapping without a name.
fn place(maps: &[MemoryMap], address: u64) -> Option<Place> {
    let at = maps.iter().position(|map| (map.address.0..map.address.1).contains(&address))?;
    let path = |map: &MemoryMap| match &map.pathname {
        MMapPath::Path(path) => Some(path.clone()),
        _ => None,
    };
    let before =
        || at.checked_sub(1).map(|before| &maps[before]).filter(|before| before.address.1 == maps[at].address.0);
    let file = match &maps[at].pathname {
        MMapPath::Path(path) => path.clone(),
        MMapPath::Anonymous | MMapPath::Heap => before().and_then(path)?,
        _ => return None,
    };
    let lowest = maps.iter().find(|map| path(map).as_ref() == Some(&file))?;
    Some(Place { offset: address - lowest.address.0, file })
}

/// The lowest address of a program or library, from which its mappings are counted: segments are mapped from page boundaries on.
pub(crate) fn lowest<'data>(file: &impl Object<'data>) -> Option<u64> {
    file.segments().map(|segment| segment.address() & !0xfff).min()
}

/// The variables of the file in which words lie, by their offsets.
fn names(file: &Path, mut offsets: Vec<u64>) -> HashMap<u64, String> {
    offsets.sort_unstable();
    let mut found = HashMap::new();
    // Only the tables are read, not the megabytes of code.
    let Ok(cache) = plain::open(file).map(object::ReadCache::new) else { return found };
    let Ok(file) = object::File::parse(&cache) else { return found };
    let is_too_large = |table| file.section_by_name(table).is_some_and(|section| section.size() > SYMBOLS_MOST);
    if [".symtab", ".dynsym", ".strtab"].into_iter().any(is_too_large) {
        return found;
    }
    let Some(lowest) = lowest(&file) else { return found };
    for symbol in file.symbols().chain(file.dynamic_symbols()).filter(|symbol| symbol.kind() == SymbolKind::Data) {
        let Some(start) = symbol.address().checked_sub(lowest) else { continue };
        let first = offsets.partition_point(|offset| *offset < start);
        let within = offsets[first..].iter().take_while(|offset| **offset - start < symbol.size());
        for offset in within {
            let Ok(name) = symbol.name() else { break };
            found.entry(*offset).or_insert_with(|| match offset - start {
                0 => readable(name),
                within => format!("{}+{within:#x}", readable(name)),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        process::{Command, Stdio},
    };

    use super::*;

    fn wait(tid: i32, address: u64, operation: u64, value: u64) -> KernelBatch {
        KernelBatch {
            time_ns: vec![1],
            event: vec![KernelEvent::SyscallEnter as u8],
            flags: vec![0],
            tid: vec![tid],
            arg0: vec![libc::SYS_futex],
            arg1: vec![address as i64],
            arg2: vec![(value << 32 | operation) as i64],
            ..KernelBatch::default()
        }
    }

    #[test]
    fn a_wait_for_a_lock_is_known_by_its_operation_and_value() {
        let private = 0x80;
        for (operation, value, is_lock) in
            [(private, 2, true), (9 | private, 0x8000_0001, true), (6, 0, true), (private, 7, false), (1, 2, false)]
        {
            let mut waits = Waits::default();
            waits.notice(&wait(5, 0x1000, operation, value));
            assert_eq!(waits.new.len(), usize::from(is_lock), "{operation} {value}");
        }
    }

    /// A C program, not ours to move in memory, says where its locks lie.
    const PROGRAM: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
        static pthread_mutex_t bus_lock;\n\
        static pthread_mutex_t *other = &bus_lock;\n\
        struct { long rate; pthread_mutex_t lock; } state = {1000, PTHREAD_MUTEX_INITIALIZER};\n\
        int main(void) { printf(\"%p %p %p\\n\", (void *)other, (void *)&state.lock, malloc(40)); fflush(stdout); return getchar(); }\n";

    #[test]
    fn global_mutexes_have_their_names_and_one_on_the_heap_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("robot.c"), folder.path().join("robot"));
        fs::write(&source, PROGRAM).unwrap();
        for how in [["-O1", "-pie"], ["-O1", "-no-pie"]] {
            let built = Command::new("cc").args(how).arg("-o").arg(&program).arg(&source).status().unwrap();
            assert!(built.success());
            let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
            let addresses: Vec<u64> = line.split_whitespace().map(address).collect();
            let pid = child.id() as i32;
            let (mut waits, mut tried) = (Waits::default(), Tried::default());
            addresses.iter().for_each(|address| waits.notice(&wait(pid, *address, 0x80, 2)));
            waits.settle(&[pid]);
            let mut found = waits.look_up(pid, &mut tried, 1);
            found.sort_by_key(|(_, name)| name.clone());
            assert_eq!(found, [(addresses[0], "bus_lock".into()), (addresses[1], "state+0x8".into())], "{how:?}");
            waits.forget_addresses();
            addresses.iter().for_each(|address| waits.notice(&wait(pid, *address, 0x80, 2)));
            waits.settle(&[pid]);
            assert!(waits.look_up(pid, &mut tried, 2).is_empty(), "looked up twice");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
