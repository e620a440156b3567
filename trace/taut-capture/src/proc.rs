//! What /proc says of processes, threads and the machine. Every read may fail: processes come and go. A process is gone only
//! where /proc says that there is none ([`is_gone`]); a read that fails for another reason (no descriptor left, no permission for
//! the moment) says nothing of it. Names may be any bytes: the kernel cuts them at 15, in the middle of a character too.

use std::{ffi::OsString, fs, io, io::Read, os::unix::ffi::OsStringExt, path::Path};

use taut_recording::Thread;

use crate::time_namespace;

/// Field 22 of a stat file: start time in clock ticks since boot.
pub fn start_time(stat: &str) -> Option<u64> {
    field(stat, 22)
}

/// Field 4: the parent.
pub fn parent(stat: &str) -> Option<i32> {
    field(stat, 4)
}

/// Field 2, which may hold anything, brackets too.
fn comm(stat: &str) -> Option<&str> {
    stat.split_once('(')?.1.rsplit_once(')').map(|(comm, _)| comm)
}

/// Field 3: what it is doing, in one letter.
fn state(stat: &str) -> Option<char> {
    field(stat, 3)
}

/// Field 9: whether it was forked and has not called exec, PF_FORKNOEXEC of include/linux/sched.h.
fn is_fork(stat: &str) -> bool {
    field(stat, 9).is_some_and(|flags: u32| flags & 0x40 != 0)
}

/// Field 20: how many threads.
fn threads(stat: &str) -> Option<usize> {
    field(stat, 20)
}

/// Whether the process runs that started then (any, if that is not known). A zombie runs no more, unless
/// it is only the first of several threads. One that cannot be asked for the moment runs.
pub fn runs(pid: i32, started: Option<u64>) -> bool {
    match text(format!("/proc/{pid}/stat")) {
        Ok(stat) => {
            let is_another = started
                .zip(start_time(&stat))
                .is_some_and(|(started, now)| started != now && !time_namespace::may_be_the_same(pid, started, now));
            let has_ended =
                matches!(state(&stat), Some('Z' | 'X')) && threads(&stat).is_none_or(|threads| threads <= 1);
            !is_another && !has_ended
        }
        // /proc may be another namespace's, or not there.
        // SAFETY: signal 0 is sent to nobody.
        Err(error) => !is_gone(&error) || !has_no_process(|| unsafe { libc::kill(pid, 0) }.into()),
    }
}

/// Whether a process has this thread. One that cannot be asked for the moment runs.
pub fn runs_thread(pid: i32, tid: i32) -> bool {
    // SAFETY: signal 0 is sent to nobody.
    let ask = || unsafe { libc::syscall(libc::SYS_tgkill, i64::from(pid), i64::from(tid), 0i64) };
    exists(format!("/proc/{pid}/task/{tid}")) || !has_no_process(ask)
}

/// Whether a system call that sends a signal finds nothing to send it to.
fn has_no_process(signal: impl FnOnce() -> i64) -> bool {
    signal() != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// Whether there is such a path of a process or thread. One that cannot be asked for the moment is there.
pub fn exists(path: impl AsRef<Path>) -> bool {
    !fs::metadata(path).is_err_and(|error| is_gone(&error))
}

/// Whether a failed read says that the process or thread is gone: no such file, or no such process.
pub fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

/// A field of a stat file by its number in proc(5), 3 or more; the name in field 2 may hold anything.
fn field<T: std::str::FromStr>(stat: &str, number: usize) -> Option<T> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(number - 3)?.parse().ok()
}

/// All processes that can be listed.
pub fn pids() -> Vec<i32> {
    all_pids().unwrap_or_default()
}

/// All processes.
///
/// # Errors
/// They cannot be listed now.
pub fn all_pids() -> io::Result<Vec<i32>> {
    numbers("/proc")
}

/// All threads of a process that can be listed.
pub fn tids(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task")).unwrap_or_default()
}

fn numbers(folder: &str) -> io::Result<Vec<i32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(numbers)
}

/// The last number of a status file's NSpid line: how the innermost PID namespace calls it.
///
/// # Errors
/// The file cannot be read.
pub fn innermost_pid(status: &str) -> io::Result<Option<i32>> {
    Ok(innermost(&text(status)?))
}

fn innermost(status: &str) -> Option<i32> {
    status.lines().find(|line| line.starts_with("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

/// The host's number of the thread that its own PID namespace calls `own`; `None` when the process has no such thread.
///
/// # Errors
/// Not every thread of the process could be asked, so that nothing is known of this one.
pub fn host_tid(pid: i32, own: i32) -> io::Result<Option<i32>> {
    let mut asked = 0;
    for tid in numbers(&format!("/proc/{pid}/task"))? {
        match text(format!("/proc/{pid}/task/{tid}/status")) {
            Ok(status) if innermost(&status) == Some(own) => return Ok(Some(tid)),
            Ok(_) => asked += 1,
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    // The kernel ends the list early where the thread ends that it stands at.
    match threads(&text(format!("/proc/{pid}/stat"))?) {
        Some(threads) if asked >= threads => Ok(None),
        _ => Err(io::Error::other("threads came or went while they were listed")),
    }
}

/// All processes that run a program, this one apart.
pub fn all() -> Vec<i32> {
    let mut pids = numbers("/proc").unwrap_or_default();
    // A thread of the kernel has no executable.
    pids.retain(|pid| *pid != std::process::id() as i32 && fs::read_link(format!("/proc/{pid}/exe")).is_ok());
    pids
}

/// `root` and all its descendants that run now.
///
/// # Errors
/// Not all of them could be asked.
pub fn tree(root: i32) -> io::Result<Vec<i32>> {
    // Without CONFIG_PROC_CHILDREN every process of the machine must be asked for its parent.
    let has_children = Path::new(&format!("/proc/{root}/task/{root}/children")).exists();
    let parents: Vec<(i32, i32)> = match has_children {
        true => Vec::new(),
        false => {
            let pids = numbers("/proc")?.into_iter();
            pids.filter_map(|pid| Some((pid, parent(&line(format!("/proc/{pid}/stat")))?))).collect()
        }
    };
    let mut tree = vec![root];
    let mut at = 0;
    while at < tree.len() {
        let of = tree[at];
        match has_children {
            true => tree.extend(children(of)?),
            false => tree.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid)),
        }
        at += 1;
    }
    Ok(tree)
}

/// Children of all threads of a process.
fn children(pid: i32) -> io::Result<Vec<i32>> {
    // One that has ended has none.
    let or_gone = |error: io::Error| if is_gone(&error) { Ok(Vec::new()) } else { Err(error) };
    let of_thread = |tid: i32| {
        let text = text(format!("/proc/{pid}/task/{tid}/children"))?;
        Ok(text.split_whitespace().filter_map(|word| word.parse().ok()).collect())
    };
    let mut children = Vec::new();
    for tid in numbers(&format!("/proc/{pid}/task")).or_else(or_gone)? {
        children.extend(of_thread(tid).or_else(or_gone)?);
    }
    Ok(children)
}

/// Waits for children that ended, except `child`: orphans of the recorded tree, which its subreaper gets.
/// Unwaited they would stay, and count as outliving the command. Returns the signal of the last one that crashed.
pub fn bury_orphans(child: i32) -> Option<i32> {
    const CRASHES: [i32; 7] =
        [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSYS, libc::SIGTRAP];
    let mut crashed = None;
    loop {
        // SAFETY: all zeros is a valid siginfo_t to write to. NOWAIT leaves the status where it is: that of
        // `child` is for its owner. `si_pid` is 0 when there was none.
        let ended = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            if libc::waitid(libc::P_ALL, 0, &mut info, look) == 0 { info.si_pid() } else { 0 }
        };
        if ended == 0 || ended == child {
            return crashed;
        }
        let mut status = 0;
        // SAFETY: waits for a child of ours; `status` is written to.
        let waited = unsafe { libc::waitpid(ended, &mut status, libc::WNOHANG) };
        if waited == ended && libc::WIFSIGNALED(status) && CRASHES.contains(&libc::WTERMSIG(status)) {
            crashed = Some(libc::WTERMSIG(status));
        }
    }
}

/// The real, effective, saved and file system's user of a process; `None` when it is gone.
pub fn uids(pid: i32) -> Option<Vec<u32>> {
    let text = text(format!("/proc/{pid}/status")).ok()?;
    let uids = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    Some(uids.split_whitespace().filter_map(|uid| uid.parse().ok()).collect())
}

/// What is known of a thread, but its command line.
///
/// # Errors
/// It cannot be read, or is gone ([`is_gone`]).
pub fn thread(pid: i32, tid: i32, recorded: bool, time_ns: u64) -> io::Result<Thread> {
    let stat = text(format!("/proc/{pid}/task/{tid}/stat"))?;
    let known = comm(&stat).zip(start_time(&stat));
    let (comm, start_time) = known.ok_or(io::ErrorKind::InvalidData)?;
    Ok(Thread { time_ns, pid, tid, start_time, comm: comm.to_owned(), cmdline: String::new(), recorded })
}

/// The process that a thread belongs to.
///
/// # Errors
/// As [`thread`].
pub fn thread_group(tid: i32) -> io::Result<i32> {
    let text = text(format!("/proc/{tid}/status"))?;
    let group = text.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    group.ok_or(io::ErrorKind::InvalidData.into())
}

/// A file of a process's memory. Of a first thread that ended before the others /proc has none: then it is read of another.
fn of_memory(pid: i32, file: &str) -> io::Result<Vec<u8>> {
    let own = fs::read(format!("/proc/{pid}/{file}"));
    match &own {
        Ok(bytes) if bytes.is_empty() => {}
        Err(error) if is_gone(error) => {}
        _ => return own,
    }
    let of_threads = tids(pid).into_iter().filter_map(|tid| fs::read(format!("/proc/{pid}/task/{tid}/{file}")).ok());
    of_threads.filter(|bytes| !bytes.is_empty()).map(Ok).next().unwrap_or(own)
}

/// How a process was called.
pub fn cmdline(pid: i32) -> String {
    let bytes = of_memory(pid, "cmdline").unwrap_or_default();
    let words: Vec<_> = bytes.split(|b| *b == 0).filter(|w| !w.is_empty()).map(String::from_utf8_lossy).collect();
    words.join(" ")
}

/// The files that a process has mapped.
pub struct Mapped(String);

/// `None` where they cannot be read. Reading them holds the process up where it maps memory itself: once is enough.
pub fn mapped(pid: i32) -> Option<Mapped> {
    text(format!("/proc/{pid}/maps")).ok().map(Mapped)
}

impl Mapped {
    /// The path, as the process sees it, of a file of this name.
    pub fn path(&self, file_name: &str) -> Option<&str> {
        let mut paths = self.0.lines().filter_map(|line| Some(line[line.find('/')?..].trim_end_matches(" (deleted)")));
        paths.find(|path| path.rsplit('/').next() == Some(file_name))
    }
}

/// A variable of a process's environment as it was at exec.
pub fn environment(pid: i32, variable: &str) -> io::Result<Option<OsString>> {
    let bytes = of_memory(pid, "environ")?;
    let value = |entry: &[u8]| Some(entry.strip_prefix(variable.as_bytes())?.strip_prefix(b"=")?.to_vec());
    Ok(bytes.split(|b| *b == 0).find_map(value).map(OsString::from_vec))
}

/// Whether a process is yet to start its program: /proc has the environment of the one that forked it until it calls exec, and then
/// none, and no words, until the kernel has put them in place.
pub fn is_starting(pid: i32) -> bool {
    text(format!("/proc/{pid}/stat")).is_ok_and(|stat| is_fork(&stat)) || cmdline(pid).is_empty()
}

/// A file of /proc as the crate procfs reads it, which by itself fails where a name in it is no UTF-8.
pub fn parsed<T: procfs::FromRead>(path: impl AsRef<Path>) -> Option<T> {
    T::from_read(text(path).ok()?.as_bytes()).ok()
}

/// A file's text without its end of line; empty when there is none.
pub fn line(path: impl AsRef<Path>) -> String {
    text(path).unwrap_or_default().trim_end().to_owned()
}

/// A file's text; bytes that are none are replaced. The files of /proc and /sys state no length, so that std would feel its way
/// with ever larger reads; most fit into one of a page.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let mut bytes = Vec::with_capacity(4096);
    // Without a limit; it only hides the file, whose length would be asked for.
    fs::File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_confuse_the_fields() {
        let stat = "12 (a) b (c)) S 7 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 0 0";
        assert_eq!(comm(stat), Some("a) b (c)"));
        assert_eq!((state(stat), parent(stat), start_time(stat)), (Some('S'), Some(7), Some(98_765)));
        assert!(!is_fork(stat) && is_fork(&stat.replace("4194560", "4194624")));
    }

    #[test]
    fn a_zombie_runs_no_more() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id() as i32;
        let started = start_time(&line(format!("/proc/{pid}/stat")));
        assert!(runs(pid, started) && runs(pid, None) && !runs(pid, Some(1)));
        child.kill().unwrap();
        // Its parent has not waited for it, so /proc still has it.
        while !line(format!("/proc/{pid}/stat")).contains(") Z ") {
            std::thread::yield_now();
        }
        assert!(!runs(pid, started));
        child.wait().unwrap();
        assert!(!runs(pid, None));
    }

    #[test]
    fn a_name_that_is_no_text_is_a_name() {
        let folder = tempfile::tempdir().unwrap();
        // 1 + 5 × 3 bytes, of which the kernel keeps 15.
        let program = folder.path().join("x로봇팔제어");
        let sleep = ["/bin/sleep", "/usr/bin/sleep"].into_iter().find(|path| Path::new(path).exists()).unwrap();
        std::os::unix::fs::symlink(sleep, &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("100").spawn().unwrap();
        let pid = child.id() as i32;
        // Until it has executed the program, it has the name of this thread.
        let comm = loop {
            let comm = fs::read(format!("/proc/{pid}/comm")).unwrap();
            if comm.starts_with(b"x") {
                break comm;
            }
            std::thread::yield_now();
        };
        let (seen, named) = (runs(pid, None), thread(pid, pid, true, 0).map(|thread| thread.comm));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(String::from_utf8(comm).is_err(), "the kernel did not cut the name");
        assert!(seen);
        assert_eq!(named.unwrap(), "x로봇팔제\u{fffd}");
    }

    #[test]
    fn nobody_is_gone_where_proc_is_not_there() {
        // A thread may have mounts of its own.
        let seen = std::thread::spawn(|| {
            let (none, proc, kind) = (std::ptr::null(), c"/proc".as_ptr(), c"tmpfs".as_ptr());
            // SAFETY: plain system calls with valid C strings, on this thread's own mounts.
            let is_hidden = unsafe {
                libc::unshare(libc::CLONE_NEWNS) == 0
                    && libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) == 0
                    && libc::mount(kind, proc, kind, 0, none.cast()) == 0
            };
            let (pid, mut child) = (std::process::id() as i32, std::process::Command::new("true").spawn().unwrap());
            child.wait().unwrap();
            // SAFETY: gettid has no preconditions.
            let own = unsafe { libc::gettid() };
            let gone = child.id() as i32;
            is_hidden.then(|| {
                assert!(!exists("/proc/self"));
                [runs(pid, Some(1)), runs_thread(pid, own), runs(gone, None), runs_thread(pid, gone)]
            })
        });
        match seen.join().unwrap() {
            Some(seen) => assert_eq!(seen, [true, true, false, false]),
            None => taut_skip::skip(taut_skip::Need::Root, "only root can mount over /proc"),
        }
    }

    #[test]
    fn nobody_is_gone_for_want_of_a_descriptor() {
        const ALONE: &str = "TAUT_TEST_WITHOUT_DESCRIPTORS";
        let test = "proc::tests::nobody_is_gone_for_want_of_a_descriptor";
        if std::env::var_os(ALONE).is_none() {
            // The limit is the whole process's: in one of its own.
            let alone = std::process::Command::new(std::env::current_exe().unwrap())
                .args([test, "--exact", "--nocapture", "--test-threads=1"])
                .env(ALONE, "1")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&alone.stdout);
            return assert!(alone.status.success() && said.contains("1 passed"), "{said}");
        }
        let pid = std::process::id() as i32;
        let before = start_time(&line("/proc/self/stat"));
        let limit = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
        assert_eq!(text("/proc/self/stat").unwrap_err().raw_os_error(), Some(libc::EMFILE));
        assert!(runs(pid, before) && runs(pid, None) && exists("/proc/self"));
        assert!(thread(pid, pid, true, 0).is_err_and(|error| !is_gone(&error)));
        assert!(host_tid(pid, -1).is_err(), "nothing is known of a thread that could not be asked for");
        assert!(tree(pid).is_err(), "nor of its children");
    }

    #[test]
    fn only_a_whole_list_says_that_a_thread_is_gone() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id() as i32;
        let (there, other) = (host_tid(pid, pid), host_tid(pid, 1));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((there.unwrap(), other.unwrap()), (Some(pid), None));
        assert!(host_tid(pid, 1).is_err_and(|error| is_gone(&error)));
    }

    #[test]
    fn this_process_is_known() {
        let pid = std::process::id() as i32;
        assert!(tree(pid).unwrap().contains(&pid));
        assert_eq!(uids(pid), Some(vec![rustix::process::geteuid().as_raw(); 4]));
        assert!(thread(pid, pid, true, 0).is_ok_and(|t| t.start_time > 0) && !cmdline(pid).is_empty());
    }
}
