//! Which variable of a program a lock is. A lock that the program does not name has an address, which says nothing to a reader and is another
//! one in each run; of a global mutex the symbol table has the name.

use std::{
    collections::{HashMap, HashSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};
use procfs::process::{MMapPath, MemoryMap, MemoryMaps};
use taut_recording::{KernelBatch, KernelEvent};

use crate::{plain, proc, profile::symbols::readable};

/// Waits that no process was found for yet.
const WAITS_MOST: usize = 4096;
/// Printing the mappings takes the lock that the process needs for each page fault: so many times of one program at most.
const LOOKS_MOST: u32 = 16;
/// Operations of futex(2), without the private and clock bits.
const OPERATION: u64 = 0x7f;
/// FUTEX_WAIT and FUTEX_WAIT_BITSET.
const WAIT: [u64; 2] = [0, 9];
/// FUTEX_LOCK_PI and FUTEX_LOCK_PI2.
const LOCK: [u64; 2] = [6, 13];
/// What the word of a contended mutex holds, in glibc and Rust; and this bit in musl.
const CONTENDED: u64 = 2;
const CONTENDED_BIT: u64 = 1 << 31;
/// Segments are mapped from page boundaries on.
const PAGE: u64 = 0xfff;

/// Words in which threads waited as for a lock.
#[derive(Default)]
pub(crate) struct Waits {
    /// By thread, as they came.
    new: HashSet<(i32, u64)>,
    of_processes: HashMap<i32, HashSet<u64>>,
}

/// What was looked up in one program.
#[derive(Default)]
pub(crate) struct Tried {
    addresses: HashSet<u64>,
    looks: u32,
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
                self.new.insert((batch.tid[at], batch.arg1[at] as u64));
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
    }

    /// New words of a process that lie in variables, with their names.
    pub fn look_up(&mut self, pid: i32, tried: &mut Tried) -> Vec<(u64, String)> {
        let mut addresses = self.of_processes.remove(&pid).unwrap_or_default();
        addresses.retain(|address| !tried.addresses.contains(address));
        if addresses.is_empty() || tried.looks >= LOOKS_MOST {
            return Vec::new();
        }
        tried.looks += 1;
        let Some(maps) = proc::parsed::<MemoryMaps>(format!("/proc/{pid}/maps")) else { return Vec::new() };
        let mut by_file: HashMap<PathBuf, Vec<(u64, u64)>> = HashMap::new();
        for address in addresses {
            tried.addresses.insert(address);
            if let Some(Place { file, offset }) = place(&maps.0, address) {
                by_file.entry(file).or_default().push((address, offset));
            }
        }
        let seen = |file: &Path| PathBuf::from(format!("/proc/{pid}/root{}", file.display()));
        by_file.iter().flat_map(|(file, words)| names(&seen(file), words)).collect()
    }
}

/// By the operation in the low half, and the value that the wait expects in the high one.
fn is_for_a_lock(operation_and_value: u64) -> bool {
    let (operation, value) = (operation_and_value & OPERATION, operation_and_value >> 32);
    LOCK.contains(&operation) || WAIT.contains(&operation) && (value == CONTENDED || value & CONTENDED_BIT != 0)
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

/// The variables of the file in which the words lie, (address, offset) each; of one that is no longer the process's none.
fn names(file: &Path, words: &[(u64, u64)]) -> Vec<(u64, String)> {
    if !fs::metadata(file).is_ok_and(|metadata| metadata.size() > 0) {
        return Vec::new();
    }
    // Only the tables are read, not the megabytes of code.
    let Ok(cache) = plain::open(file).map(object::ReadCache::new) else { return Vec::new() };
    let Ok(file) = object::File::parse(&cache) else { return Vec::new() };
    let Some(lowest) = file.segments().map(|segment| segment.address() & !PAGE).min() else { return Vec::new() };
    let mut found = HashMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if symbol.kind() != SymbolKind::Data || symbol.size() == 0 {
            continue;
        }
        let Some(start) = symbol.address().checked_sub(lowest) else { continue };
        for (address, offset) in words {
            if offset.wrapping_sub(start) < symbol.size()
                && let Ok(name) = symbol.name()
            {
                found.entry(*address).or_insert_with(|| match offset - start {
                    0 => readable(name),
                    within => format!("{}+{within:#x}", readable(name)),
                });
            }
        }
    }
    found.into_iter().collect()
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
            let mut found = waits.look_up(pid, &mut tried);
            found.sort_by_key(|(_, name)| name.clone());
            assert_eq!(found, [(addresses[0], "bus_lock".into()), (addresses[1], "state+0x8".into())], "{how:?}");
            addresses.iter().for_each(|address| waits.notice(&wait(pid, *address, 0x80, 2)));
            waits.settle(&[pid]);
            assert!(waits.look_up(pid, &mut tried).is_empty(), "looked up twice");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
