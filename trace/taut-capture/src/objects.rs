//! What addresses and descriptors of recorded processes are: CPython's runtime state, in which the GIL lies, variables with locks, and the
//! files, pipes and sockets behind descriptors. Read from /proc, recorded when new or changed.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use object::{Object as _, ObjectSymbol as _};
use procfs::{
    net::{TcpNetEntry, UdpNetEntry, UnixNetEntries},
    process::{FDTarget, MMapPath, MemoryMaps, Process, Status},
};
use taut_clock::monotonic_ns;
use taut_recording::{KernelBatch, Object, ObjectKind};

use crate::{
    plain, proc,
    sockets::{Owner, Place},
    variables::{Tried, Waits, lowest},
};

/// Between two looks at one process.
const LOOK_NS: u64 = 1_000_000_000;
/// A program opens its files and sockets as it begins: its first looks come sooner.
const FIRST_LOOKS: u32 = 4;
const FIRST_LOOKS_NS: u64 = LOOK_NS / 4;
/// The same where all processes of the machine are looked at.
const LOOK_AT_MANY_NS: u64 = 10 * LOOK_NS;
/// A new socket is looked at in so many looks from when on it has an address: it may be connected later, and of one that moves bytes all
/// the time a count may fail.
const LOOKS_AT_A_SOCKET: u32 = 4;
/// A process with more descriptors than this is passed over: reading them would disturb it.
const DESCRIPTORS_MAX: usize = 1024;

/// What was reported of each process.
#[derive(Default)]
pub struct Objects {
    processes: HashMap<i32, Known>,
    /// Where `_PyRuntime` lies in a file, by device and inode.
    symbols: HashMap<(u64, u64), Option<Symbol>>,
    /// Where threads waited as for a lock since the last looks.
    waits: Waits,
    /// How often the mappings of a process were read.
    maps_read: u64,
    /// Between two looks at one process; 0: [`LOOK_NS`].
    look_ns: u64,
}

#[derive(Default)]
struct Known {
    image: Image,
    looks: u32,
    next_look_ns: u64,
    has_runtime: bool,
    /// Locks that were looked up among its variables.
    locks: Tried,
    /// Code outside the executable that was mapped when the mappings were read last.
    libraries: Option<u64>,
    /// By number: what the link says. It holds a socket's inode, so that another one is noticed.
    descriptors: HashMap<i32, FDTarget>,
    /// New sockets of the internet.
    sockets: Vec<NewSocket>,
}

struct NewSocket {
    descriptor: i32,
    inode: u64,
    /// What was told of it.
    what: String,
    looks_left: u32,
}

/// What the process executes: another one means that nothing of before holds.
#[derive(Default, PartialEq, Eq)]
struct Image {
    executable: PathBuf,
    /// Where the kernel put the stack. Somewhere else at each exec, also of the same file.
    stack: u64,
}

/// A symbol relative to the lowest address that its file is mapped at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Symbol {
    offset: u64,
    size: u64,
}

impl Objects {
    /// Of a whole machine: each process is looked at more seldom.
    pub fn of_many() -> Objects {
        Objects { look_ns: LOOK_AT_MANY_NS, ..Objects::default() }
    }

    /// Forgets all processes but these.
    pub fn keep(&mut self, pids: &[i32]) {
        self.processes.retain(|pid, _| pids.binary_search(pid).is_ok());
        self.waits.settle(pids);
    }

    /// Sees which locks threads wait for.
    pub fn notice(&mut self, batch: &KernelBatch) {
        self.waits.notice(batch);
    }

    /// What is new about that process; a sentence when something had to be left out.
    pub fn scan(&mut self, pid: i32, now_ns: u64) -> (Vec<Object>, Option<String>) {
        let known = self.processes.entry(pid).or_default();
        let image = Image::of(pid);
        if known.image != image {
            if known.looks > 0 {
                self.waits.forget_addresses();
            }
            *known = Known { image, ..Known::default() };
        }
        if now_ns < known.next_look_ns {
            return (Vec::new(), None);
        }
        known.looks += 1;
        known.next_look_ns = now_ns
            + match self.look_ns {
                0 if known.looks <= FIRST_LOOKS => FIRST_LOOKS_NS,
                look_ns => look_ns.max(LOOK_NS),
            };
        let Ok(process) = Process::new(pid) else { return (Vec::new(), None) };
        let mut told = Vec::new();
        let object = |time_ns, kind, start, size, name| Object { time_ns, pid, kind, start, size, name };
        if !known.has_runtime && known.may_have_mapped_code(&process) {
            self.maps_read += 1;
            if let Some((start, size, name)) = runtime(&process, &mut self.symbols) {
                known.has_runtime = true;
                told.push(object(now_ns, ObjectKind::Gil, start, size, name));
            }
        }
        let locks = self.waits.look_up(pid, &mut known.locks, now_ns);
        told.extend(locks.into_iter().map(|(address, name)| object(now_ns, ObjectKind::Variable, address, 0, name)));
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
            // Not when the round began: on a busy machine that was long ago, and the number stood for another file.
            let seen_ns = monotonic_ns();
            if known.descriptors.get(&info.fd).is_some_and(|before| same(before, &info.target)) {
                continue;
            }
            let name = match &info.target {
                FDTarget::Path(path) => path.display().to_string(),
                FDTarget::Pipe(inode) => format!("pipe:[{inode}]"),
                // The tables of all sockets take the kernel milliseconds to print: only for a new one.
                FDTarget::Socket(inode) => {
                    let what = sockets.get_or_insert_with(|| sockets_of(&process)).get(inode);
                    known.sockets.retain(|before| before.descriptor != info.fd);
                    // One that has no address yet is in no table.
                    let what_or_nothing = what.cloned().unwrap_or_default();
                    known.sockets.extend(NewSocket::of(info.fd, *inode, what_or_nothing));
                    what.map_or_else(|| format!("socket:[{inode}]"), |what| format!("{what} [{inode}]"))
                }
                FDTarget::AnonInode(kind) => kind.trim_matches(['[', ']']).to_owned(),
                other => format!("{other:?}"),
            };
            told.push(object(seen_ns, ObjectKind::Descriptor, info.fd as u64, 0, name));
            known.descriptors.insert(info.fd, info.target);
        }
        told.extend(known.look_at_sockets(pid));
        (told, None)
    }
}

impl Image {
    fn of(pid: i32) -> Image {
        let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let stack = Process::new(pid).and_then(|process| process.stat()).map_or(0, |stat| stat.startstack);
        Image { executable, stack }
    }
}

impl Known {
    /// Printing the mappings takes the lock that the process needs for each page fault. So they are read once, and again
    /// where an interpreter may have been loaded since. `status` takes no lock.
    fn may_have_mapped_code(&mut self, process: &Process) -> bool {
        let status: Option<Status> = proc::parsed(format!("/proc/{}/status", process.pid));
        let libraries = status.and_then(|status| status.vmlib);
        let is_known = libraries.is_some() && libraries == self.libraries;
        self.libraries = libraries;
        !is_known
    }
}

impl NewSocket {
    /// `None` of one that is no socket of the internet.
    fn of(descriptor: i32, inode: u64, what: String) -> Option<NewSocket> {
        let may_be = what.is_empty() || what.starts_with("tcp ") || what.starts_with("udp ");
        may_be.then_some(NewSocket { descriptor, inode, what, looks_left: LOOKS_AT_A_SOCKET })
    }
}

impl Known {
    /// Whom new sockets are connected to by now, and where their streams are.
    fn look_at_sockets(&mut self, pid: i32) -> Vec<Object> {
        let Some(owner) = (!self.sockets.is_empty()).then(|| Owner::of(pid)).flatten() else { return Vec::new() };
        let mut told = Vec::new();
        self.sockets.retain_mut(|new| {
            let Some(socket) = owner.socket(new.descriptor, new.inode) else { return false };
            let object = |time_ns, kind, size, name| {
                let start = new.descriptor as u64;
                Object { time_ns, pid, kind, start, size, name }
            };
            if let Some(what) = socket.what().filter(|what| *what != new.what) {
                told.push(object(monotonic_ns(), ObjectKind::Descriptor, 0, format!("{what} [{}]", new.inode)));
                new.what = what;
            }
            if let Some(Place { time_ns, written, read }) = socket.place() {
                let both = [(ObjectKind::Written, written), (ObjectKind::Read, read)];
                told.extend(both.map(|(kind, bytes)| object(time_ns, kind, bytes, String::new())));
            }
            new.looks_left -= u32::from(!socket.has_no_address());
            new.looks_left > 0
        });
        told
    }
}

/// Address, size and name of CPython's runtime state in that process. Its symbol is in `.dynsym` also where
/// the interpreter is stripped, since extension modules need it.
fn runtime(process: &Process, symbols: &mut HashMap<(u64, u64), Option<Symbol>>) -> Option<(u64, u64, String)> {
    let maps: MemoryMaps = proc::parsed(format!("/proc/{}/maps", process.pid))?;
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
    let cache = object::ReadCache::new(plain::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let symbol = file.dynamic_symbols().chain(file.symbols()).find(|s| s.name() == Ok("_PyRuntime") && s.size() > 0)?;
    Some(Symbol { offset: symbol.address().checked_sub(lowest(&file)?)?, size: symbol.size() })
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
    let unix: Option<UnixNetEntries> = proc::parsed(format!("/proc/{}/net/unix", process.pid));
    let path = |p: Option<PathBuf>| p.map_or_else(|| "unix".to_owned(), |p| format!("unix {}", p.display()));
    sockets.extend(unix.into_iter().flat_map(|entries| entries.0).map(|e| (e.inode, path(e.path))));
    sockets
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsStr,
        io::{BufRead, BufReader, Write},
        os::{
            fd::AsRawFd,
            unix::{ffi::OsStrExt, net::UnixListener},
        },
        process::{Child, ChildStdout, Command, Stdio},
    };

    use super::*;

    #[test]
    fn own_descriptors_are_told_once() {
        let (pipe, _writer) = std::io::pipe().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let local = UnixListener::bind(&path).unwrap();
        // In the table of all sockets, and no UTF-8.
        let _other = UnixListener::bind(folder.path().join(OsStr::from_bytes(b"\xff"))).unwrap();
        let mut objects = Objects::default();
        let pid = std::process::id() as i32;
        let (told, warning) = objects.scan(pid, 1);
        assert_eq!(warning, None);
        let name = |fd: i32| told.iter().find(|o| o.start == fd as u64).map(|o| o.name.clone()).unwrap();
        assert!(name(pipe.as_raw_fd()).starts_with("pipe:["));
        let address = listener.local_addr().unwrap();
        assert!(name(listener.as_raw_fd()).starts_with(&format!("tcp {address}→")), "{}", name(listener.as_raw_fd()));
        assert!(
            name(local.as_raw_fd()).starts_with(&format!("unix {}", path.display())),
            "{}",
            name(local.as_raw_fd())
        );
        let (again, _) = objects.scan(pid, 1 + FIRST_LOOKS_NS);
        assert!(again.iter().all(|o| o.start != pipe.as_raw_fd() as u64 || o.kind == ObjectKind::Gil));
        assert!(objects.scan(pid, 2 + FIRST_LOOKS_NS).0.is_empty(), "looked again too soon");
        objects.keep(&[pid - 1, pid]);
        assert_eq!(objects.processes.len(), 1);
        objects.keep(&[]);
        assert!(objects.processes.is_empty());
    }

    #[test]
    fn a_pipe_in_the_place_of_an_interpreter_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libpython3.so");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(symbol_in(&path)));
        // Only a look that hangs takes so long.
        assert_eq!(told.recv_timeout(std::time::Duration::from_secs(60)).expect("it hangs"), None);
    }

    fn line(lines: &mut impl BufRead) -> String {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn piped(program: &str, arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
        let mut command = Command::new(program);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        (child, lines)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_mappings_of_a_process_are_read_once() {
        // The second one's name is no UTF-8.
        for name in ["shell", "\\377"] {
            let script = format!("printf '{name}' > /proc/$$/comm; echo ready; read never");
            let (child, mut lines) = piped("sh", &["-c", &script]);
            // Its answer says that all its code is mapped.
            assert_eq!(line(&mut lines), "ready");
            let mut objects = Objects::default();
            (0..10).for_each(|look| drop(objects.scan(child.id() as i32, 1 + look * LOOK_NS)));
            end(child);
            assert_eq!(objects.maps_read, 1, "{name}");
        }
    }

    #[test]
    fn the_mappings_of_a_process_are_read_again_when_it_has_loaded_a_library() {
        let mut objects = Objects::default();
        let pid = std::process::id() as i32;
        objects.scan(pid, 1);
        let before = objects.maps_read;
        // SAFETY: the C library's own resolver, which does nothing when it is loaded.
        assert!(!unsafe { libc::dlopen(c"libresolv.so.2".as_ptr(), libc::RTLD_NOW) }.is_null());
        objects.scan(pid, 1 + LOOK_NS);
        assert!(objects.maps_read > before);
    }

    /// Prints the address of its runtime; executes itself once, when it is told to, and prints that of the new one. Among its mappings is
    /// a file whose name is no UTF-8.
    const PYTHON: &str = r"import ctypes,mmap,os,sys
path = b'/dev/shm/taut-test-\xff-%d' % os.getpid()
with open(path, 'w+b') as file:
    os.unlink(path)
    file.truncate(1)
    mapped = mmap.mmap(file.fileno(), 1)
print(ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime')), flush=True)
os.read(0, 1)
if not os.environ.get('AGAIN'):
    os.execve(sys.executable, sys.orig_argv, {**os.environ, 'AGAIN': '1'})";

    #[test]
    fn the_runtime_of_a_python_is_where_it_says_also_after_it_executed_itself_again() {
        let (mut child, mut lines) = piped("python3", &["-c", PYTHON]);
        let pid = child.id() as i32;
        let mut objects = Objects::default();
        let mut runtime = |objects: &mut Objects, look: u64| {
            let printed = line(&mut lines);
            let (told, _) = objects.scan(pid, 1 + look * LOOK_NS);
            let runtime = told.into_iter().find(|o| o.kind == ObjectKind::Gil).expect("no runtime found");
            assert_eq!(runtime.start.to_string(), printed);
            runtime
        };
        let first = runtime(&mut objects, 0);
        assert!(first.size > 1000 && first.name.contains("python"), "{first:?}");
        objects.scan(pid, 1 + LOOK_NS);
        assert_eq!(objects.maps_read, 1, "it was found");
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        runtime(&mut objects, 2);
        end(child);
    }
}
