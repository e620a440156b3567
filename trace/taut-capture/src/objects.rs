//! What addresses and descriptors of recorded processes are: CPython's runtime state, in which the GIL
//! lies, and the files, pipes and sockets behind descriptors. Read from /proc, told when new or changed.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};
use procfs::{
    ProcError,
    net::{TcpNetEntry, UdpNetEntry},
    process::{FDTarget, MMapPath, Process},
};
use taut_recording::{Object, ObjectKind};

/// Between two looks at one process.
const LOOK_NS: u64 = 1_000_000_000;
/// A process with more descriptors than this is passed over: reading them would disturb it.
const DESCRIPTORS_MAX: usize = 1024;

/// What was told of each process.
#[derive(Default)]
pub struct Objects {
    processes: HashMap<i32, Known>,
    /// Where `_PyRuntime` lies in a file, by device and inode.
    symbols: HashMap<(u64, u64), Option<Symbol>>,
}

#[derive(Default)]
struct Known {
    /// What the process executes: another file means that nothing of before holds.
    executable: PathBuf,
    next_look_ns: u64,
    has_runtime: bool,
    /// By number: what the link says. It holds a socket's inode, so that another one is noticed.
    descriptors: HashMap<i32, FDTarget>,
}

/// A symbol relative to the lowest address that its file is mapped at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Symbol {
    offset: u64,
    size: u64,
}

impl Objects {
    /// Forgets all processes but these.
    pub fn keep(&mut self, pids: &[i32]) {
        self.processes.retain(|pid, _| pids.binary_search(pid).is_ok());
    }

    /// What is new about that process; a sentence when something had to be left out.
    pub fn scan(&mut self, pid: i32, now_ns: u64) -> (Vec<Object>, Option<String>) {
        let known = self.processes.entry(pid).or_default();
        let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        if known.executable != executable {
            *known = Known { executable, ..Known::default() };
        }
        if now_ns < known.next_look_ns {
            return (Vec::new(), None);
        }
        known.next_look_ns = now_ns + LOOK_NS;
        let Ok(process) = Process::new(pid) else { return (Vec::new(), None) };
        let mut told = Vec::new();
        let object = |kind, start, size, name| Object { time_ns: now_ns, pid, kind, start, size, name };
        if !known.has_runtime
            && let Some((start, size, name)) = runtime(&process, &mut self.symbols)
        {
            known.has_runtime = true;
            told.push(object(ObjectKind::Gil, start, size, name));
        }
        let count = process.fd_count().unwrap_or(0);
        if count > DESCRIPTORS_MAX {
            // Without the count, which changes: a warning is told once.
            let warning = format!(
                "process {pid} has more than {DESCRIPTORS_MAX} open descriptors: what is behind them was not looked up"
            );
            return (told, Some(warning));
        }
        let mut sockets: Option<HashMap<u64, String>> = None;
        for info in process.fd().into_iter().flatten().flatten() {
            if known.descriptors.get(&info.fd).is_some_and(|before| same(before, &info.target)) {
                continue;
            }
            let name = match &info.target {
                FDTarget::Path(path) => path.display().to_string(),
                FDTarget::Pipe(inode) => format!("pipe:[{inode}]"),
                // The tables of all sockets take the kernel milliseconds to print: only for a new one.
                FDTarget::Socket(inode) => {
                    let known = sockets.get_or_insert_with(|| sockets_of(&process)).get(inode);
                    known.map_or_else(|| format!("socket:[{inode}]"), |what| format!("{what} [{inode}]"))
                }
                FDTarget::AnonInode(kind) => kind.trim_matches(['[', ']']).to_owned(),
                other => format!("{other:?}"),
            };
            told.push(object(ObjectKind::Descriptor, info.fd as u64, 0, name));
            known.descriptors.insert(info.fd, info.target);
        }
        (told, None)
    }
}

/// Address, size and name of CPython's runtime state in that process. Its symbol is in `.dynsym` also where
/// the interpreter is stripped, since extension modules need it.
fn runtime(process: &Process, symbols: &mut HashMap<(u64, u64), Option<Symbol>>) -> Option<(u64, u64, String)> {
    let maps = process.maps().ok()?;
    let mut tried: Vec<&Path> = Vec::new();
    for map in maps.iter() {
        let MMapPath::Path(path) = &map.pathname else { continue };
        let is_python = path.file_name().is_some_and(|name| name.to_string_lossy().contains("python"));
        if !is_python || tried.contains(&path.as_path()) {
            continue;
        }
        tried.push(path);
        // The lowest mapping of the file stands first.
        let seen = PathBuf::from(format!("/proc/{}/root{}", process.pid, path.display()));
        let Ok(metadata) = fs::metadata(&seen) else { continue };
        let symbol = symbols.entry((metadata.dev(), metadata.ino())).or_insert_with(|| symbol_in(&seen));
        if let Some(Symbol { offset, size }) = *symbol {
            let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            return Some((map.address.0 + offset, size, name));
        }
    }
    None
}

fn symbol_in(path: &Path) -> Option<Symbol> {
    // Only the tables are read, not the megabytes of code.
    let cache = object::ReadCache::new(fs::File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let symbol = file.dynamic_symbols().chain(file.symbols()).find(|s| s.name() == Ok("_PyRuntime") && s.size() > 0)?;
    // Segments are mapped from page boundaries on.
    let lowest = file.segments().map(|segment| segment.address() & !0xfff).min()?;
    Some(Symbol { offset: symbol.address().checked_sub(lowest)?, size: symbol.size() })
}

fn same(one: &FDTarget, other: &FDTarget) -> bool {
    match (one, other) {
        (FDTarget::Path(a), FDTarget::Path(b)) => a == b,
        (FDTarget::Socket(a), FDTarget::Socket(b)) | (FDTarget::Pipe(a), FDTarget::Pipe(b)) => a == b,
        (FDTarget::AnonInode(a), FDTarget::AnonInode(b)) => a == b,
        _ => false,
    }
}

/// Sockets of the process's network namespace, by inode.
fn sockets_of(process: &Process) -> HashMap<u64, String> {
    let tcp = |e: TcpNetEntry| (e.inode, format!("tcp {}→{}", e.local_address, e.remote_address));
    let udp = |e: UdpNetEntry| (e.inode, format!("udp {}→{}", e.local_address, e.remote_address));
    let mut sockets = HashMap::new();
    sockets.extend([process.tcp(), process.tcp6()].into_iter().flatten().flatten().map(tcp));
    sockets.extend([process.udp(), process.udp6()].into_iter().flatten().flatten().map(udp));
    let unix: Result<_, ProcError> = process.unix();
    let path = |p: Option<PathBuf>| p.map_or_else(|| "unix".to_owned(), |p| format!("unix {}", p.display()));
    sockets.extend(unix.into_iter().flatten().map(|e| (e.inode, path(e.path))));
    sockets
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        os::fd::AsRawFd,
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn own_descriptors_are_told_once() {
        let (pipe, _writer) = std::io::pipe().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut objects = Objects::default();
        let pid = std::process::id() as i32;
        let (told, warning) = objects.scan(pid, 1);
        assert_eq!(warning, None);
        let name = |fd: i32| told.iter().find(|o| o.start == fd as u64).map(|o| o.name.clone()).unwrap();
        assert!(name(pipe.as_raw_fd()).starts_with("pipe:["));
        let address = listener.local_addr().unwrap();
        assert!(name(listener.as_raw_fd()).starts_with(&format!("tcp {address}→")), "{}", name(listener.as_raw_fd()));
        let (again, _) = objects.scan(pid, 1 + LOOK_NS);
        assert!(again.iter().all(|o| o.start != pipe.as_raw_fd() as u64 || o.kind == ObjectKind::Gil));
        assert!(objects.scan(pid, 2 + LOOK_NS).0.is_empty(), "looked again too soon");
        objects.keep(&[pid - 1, pid]);
        assert_eq!(objects.processes.len(), 1);
        objects.keep(&[]);
        assert!(objects.processes.is_empty());
    }

    #[test]
    fn the_runtime_of_a_python_is_where_it_says() {
        let script = "import ctypes,sys; print(ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime'))); \
                      sys.stdout.flush(); sys.stdin.read()";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is needed by this test; `make setup` installs it");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (told, _) = Objects::default().scan(child.id() as i32, 1);
        child.kill().unwrap();
        child.wait().unwrap();
        let runtime = told.iter().find(|o| o.kind == ObjectKind::Gil).expect("no runtime found");
        assert_eq!(runtime.start.to_string(), line.trim());
        assert!(runtime.size > 1000 && runtime.name.contains("python"), "{runtime:?}");
    }
}
