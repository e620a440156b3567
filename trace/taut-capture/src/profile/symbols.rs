//! What an address is called: by a file's symbol table, the kernel's, or the map that a just-in-time compiler leaves in /tmp.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::Read,
    os::fd::OwnedFd,
    sync::{Arc, PoisonError},
};

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::images::Image;
use crate::{plain, proc};

/// Of a map in /tmp, and of all names in a file; a compiler of a long run writes some megabytes.
const MOST_MAP_BYTES: u64 = 256 << 20;

/// Where code is, for its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the kernel, at this address.
    Kernel(u64),
    /// In this file, at this offset.
    File(Arc<Image>, u64),
    /// In no file: compiled while the process ran.
    Memory(Arc<Memory>, u64),
}

/// Symbols by address. Files are read once, when the first name of them is asked for.
#[derive(Default)]
pub struct Symbols {
    files: HashMap<Arc<Image>, Tables>,
    kernel: Option<Table>,
    /// By process: what its /tmp/perf-PID.map says (CPython 3.12+ under `-X perf`, node, the JVM with an agent).
    compiled: HashMap<i32, Table>,
}

#[derive(Default)]
struct Tables {
    /// Offset in the file, length, address.
    segments: Vec<(u64, u64, u64)>,
    symbols: Table,
}

/// Sorted by address: address, length (0: until the next), name.
#[derive(Default)]
struct Table(Vec<(u64, u64, String)>);

impl Table {
    fn new(mut symbols: Vec<(u64, u64, String)>) -> Table {
        // Of several names of one place, the sized and then the first by name stays.
        symbols.sort_by(|a, b| (a.0, b.1.min(1), &a.2).cmp(&(b.0, a.1.min(1), &b.2)));
        symbols.dedup_by_key(|(address, ..)| *address);
        Table(symbols)
    }

    fn name(&self, address: u64) -> Option<&str> {
        let after = self.0.partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = self.0.get(after.checked_sub(1)?)?;
        (*size == 0 || address - start < *size).then_some(name.as_str())
    }
}

impl Tables {
    fn name(&self, offset: u64) -> Option<&str> {
        let segment = self.segments.iter().find(|(from, size, _)| offset.wrapping_sub(*from) < *size);
        // The file may say anything of its segments.
        segment.and_then(|(from, _, address)| self.symbols.name(address.wrapping_add(offset.wrapping_sub(*from))))
    }
}

impl Symbols {
    /// The function's name, in people's spelling; empty when it is unknown.
    pub fn name(&mut self, place: &Place) -> String {
        let found = match place {
            Place::Kernel(address) => {
                let kernel = self.kernel.get_or_insert_with(|| {
                    Table::new(kallsyms(&fs::read_to_string("/proc/kallsyms").unwrap_or_default()))
                });
                kernel.name(*address)
            }
            Place::File(image, offset) => {
                let image = self.files.entry(Arc::clone(image)).or_insert_with(|| tables(image).unwrap_or_default());
                image.name(*offset)
            }
            Place::Memory(memory, address) => {
                let map = || memory.map().unwrap_or_default();
                self.compiled.entry(memory.pid).or_insert_with(|| Table::new(perf_map(&map()))).name(*address)
            }
        };
        found.map_or_else(String::new, readable)
    }
}

/// Rust's and C++'s mangled names as their languages write them.
pub(crate) fn readable(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let cpp = name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok()).flatten();
    cpp.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| name.to_owned())
}

/// A process that runs code of no file.
#[derive(Debug)]
pub struct Memory {
    /// Of the host.
    pub pid: i32,
    /// As the process itself knows it.
    inner_pid: i32,
    /// Its /tmp, which may be another one than ours and outlives it here.
    folder: Option<OwnedFd>,
}

impl Memory {
    /// To be called while the process lives.
    pub fn of(pid: i32, may_hold: bool) -> Memory {
        let open = |path: String| openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let folder = may_hold.then(|| open(format!("/proc/{pid}/root/tmp")).ok()).flatten();
        Memory {
            pid,
            inner_pid: proc::innermost_pid(&format!("/proc/{pid}/status")).ok().flatten().unwrap_or(pid),
            folder,
        }
    }

    /// The text of its map.
    fn map(&self) -> Option<String> {
        text(plain::open_in(self.folder.as_ref()?, format!("perf-{}.map", self.inner_pid)).ok()?)
    }
}

impl PartialEq for Memory {
    fn eq(&self, other: &Memory) -> bool {
        self.pid == other.pid
    }
}

impl Eq for Memory {}

impl std::hash::Hash for Memory {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.pid.hash(state);
    }
}

/// A file's text, as much of it as we are willing to hold.
fn text(file: File) -> Option<String> {
    let mut bytes = Vec::new();
    file.take(MOST_MAP_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn tables(image: &Image) -> Option<Tables> {
    // Only the tables are read, not the megabytes of code.
    let file = image.file.as_ref().ok()?.lock().unwrap_or_else(PoisonError::into_inner);
    tables_in(&object::ReadCache::new(&*file))
}

fn tables_in<'data>(data: impl object::ReadRef<'data>) -> Option<Tables> {
    let file = object::File::parse(data).ok()?;
    let segments = file.segments().map(|segment| {
        let (offset, size) = segment.file_range();
        (offset, size, segment.address())
    });
    let symbols =
        file.symbols().chain(file.dynamic_symbols()).filter(|s| s.kind() == SymbolKind::Text && s.address() > 0);
    let named = symbols.filter_map(|s| Some((s.address(), s.size(), s.name().ok()?.to_owned())));
    // Symbols may share one name of any length: a small file must not ask for much memory.
    let mut left = MOST_MAP_BYTES as usize;
    let named = named.map_while(|symbol| {
        left = left.checked_sub(symbol.2.len())?;
        Some(symbol)
    });
    Some(Tables { segments: segments.collect(), symbols: Table::new(named.collect()) })
}

/// For `cli/taut-readers`: a file's tables, the kernel's and a compiler's maps, and names as their languages write them.
pub fn fuzz(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let of_file = tables_in(bytes).unwrap_or_default();
    for (from, size, _) in &of_file.segments {
        for at in [0, size / 2, size.wrapping_sub(1)] {
            of_file.name(from.wrapping_add(at));
        }
    }
    for table in [of_file.symbols, Table::new(kallsyms(&text)), Table::new(perf_map(&text))] {
        for (address, _, name) in &table.0 {
            table.name(*address);
            readable(name);
        }
    }
}

/// "ffffffff81000000 T _text", and a module's name behind it. All zeros where kernel.kptr_restrict hides them.
fn kallsyms(text: &str) -> Vec<(u64, u64, String)> {
    let symbol = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address > 0)?;
        let kind = words.next()?;
        "tTwW".contains(kind).then_some((address, 0, words.next()?.to_owned()))
    };
    text.lines().filter_map(symbol).collect()
}

/// "7f12 40 py::main:/home/me/robot.py": address and length in hexadecimal, and the rest of the line.
fn perf_map(text: &str) -> Vec<(u64, u64, String)> {
    let symbol = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
        Some((number()?, number()?, words.next()?.to_owned()))
    };
    text.lines().filter_map(symbol).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::images::Identity, *};

    #[test]
    fn a_map_of_compiled_code_names_places_within_their_length() {
        let table = Table::new(perf_map("7f00 40 py::main:/home/me/a b.py\n0x8000 10 other\nnonsense\n"));
        assert_eq!(table.name(0x7f3f), Some("py::main:/home/me/a b.py"));
        assert_eq!(table.name(0x7f40), None);
        assert_eq!(table.name(0x8001), Some("other"));
        assert_eq!(table.name(1), None);
    }

    #[test]
    fn the_kernel_names_functions_and_hides_addresses_as_zero() {
        let table = Table::new(kallsyms("00 T hidden\n10 T first\n20 d data\n30 t second [module]\n"));
        assert_eq!((table.name(0x25), table.name(0x31), table.name(5)), (Some("first"), Some("second"), None));
    }

    #[test]
    fn mangled_names_are_read() {
        assert_eq!(readable("_ZN4ompl9geometric10RRTConnect5solveEv"), "ompl::geometric::RRTConnect::solve()");
        assert_eq!(readable("_ZN3std2io5stdin17h0123456789abcdefE"), "std::io::stdin");
        assert_eq!(readable("mj_step"), "mj_step");
    }

    #[test]
    fn a_map_that_is_a_pipe_or_a_link_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let directory: OwnedFd = File::open(folder.path()).unwrap().into();
        let mut memory = Memory { pid: 1, inner_pid: 7, folder: Some(directory) };
        fs::write(path("perf-7.map"), "10 8 known").unwrap();
        std::os::unix::fs::symlink(path("perf-7.map"), path("perf-8.map")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path("perf-9.map")).status().unwrap().success());
        let mut map = |pid| {
            memory.inner_pid = pid;
            memory.map()
        };
        assert_eq!([7, 8, 9, 10].map(&mut map), [Some("10 8 known".to_owned()), None, None, None]);
    }

    #[test]
    fn own_code_has_its_name() {
        let address = own_code_has_its_name as fn() as usize as u64;
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let of = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (start, end) = words[0].split_once('-')?;
            let hex = |text| u64::from_str_radix(text, 16).unwrap();
            (hex(start)..hex(end)).contains(&address).then(|| (words[5].into(), hex(words[2]) + (address - hex(start))))
        };
        let (path, offset) = maps.lines().find_map(of).unwrap();
        let image = super::super::images::Images::default().of(std::process::id() as i32, &path, Identity::Unknown);
        let place = Place::File(image, offset);
        assert!(Symbols::default().name(&place).ends_with("own_code_has_its_name"));
    }
}
