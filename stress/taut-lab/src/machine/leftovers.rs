//! What a lab leaves when it is killed, and how the next one knows it: every process carries the lab's mark in its
//! environment, and the lab's folder and control group carry it in their names. The mark is a pid with its start
//! time and the pid namespace in which both mean something, so that it can be asked whether that lab still lives.

use std::{
    fs,
    io::Write,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use taut_capture::{namespace_of, process_runs};

use super::{cgroup, frequency, shared};
use crate::Error;

/// The environment variable that carries the mark.
pub(crate) const MARK: &str = "TAUT_LAB";
/// The one that says which part of a lab a process is.
pub(crate) const PART: &str = "TAUT_LAB_PART";
/// How folders and control groups begin.
pub(crate) const PREFIX: &str = "taut-lab-";
/// The list of started processes: one that cleared its environment is still known by it.
const STARTED: &str = "started";
/// How long killed processes may take to go.
const GONE: Duration = Duration::from_secs(5);

/// Where shared memory lies.
const SHARED: &str = "/dev/shm";

/// This lab's mark, and its folders for what lives as long as it does.
pub(crate) struct Mine {
    mark: String,
    folder: PathBuf,
    /// The same in shared memory, for stamps.
    session: PathBuf,
}

impl Mine {
    pub fn new() -> Result<Mine, Error> {
        let pid = std::process::id();
        let start = start_time(pid).ok_or_else(|| std::io::Error::other("cannot be read"));
        let mark = format!("{}-{pid}-{}", namespace_of("self"), start.map_err(Error::system("/proc/self/stat"))?);
        let folder = std::env::temp_dir().join(format!("{PREFIX}{mark}"));
        fs::create_dir(&folder).map_err(Error::file(&folder))?;
        let session = Path::new(SHARED).join(format!("{PREFIX}{mark}"));
        Ok(Mine { mark, folder, session })
    }

    pub fn mark(&self) -> &str {
        &self.mark
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// An empty folder for the stamps of one start of the system.
    pub fn fresh_session(&self) -> Result<&Path, Error> {
        let _ = fs::remove_dir_all(&self.session);
        fs::DirBuilder::new().mode(0o700).create(&self.session).map_err(Error::file(&self.session))?;
        Ok(&self.session)
    }

    /// Writes down a process that was started.
    pub fn started(&self, pid: u32) -> std::io::Result<()> {
        let Some(start) = start_time(pid) else { return Ok(()) };
        let mut list = fs::OpenOptions::new().create(true).append(true).open(self.folder.join(STARTED))?;
        writeln!(list, "{pid} {start}")
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::remove_dir_all(&self.session);
    }
}

/// Ends and removes what dead labs left, and says what it was.
pub(crate) fn remove_stale() -> Result<Vec<String>, Error> {
    let mut removed = Vec::new();
    let places = [std::env::temp_dir(), PathBuf::from(SHARED)];
    let stale: Vec<PathBuf> =
        places.iter().flat_map(|place| entries(place)).filter(|path| is_stale_name(path)).collect();
    let listed: Vec<u32> = stale.iter().flat_map(|folder| listed(&folder.join(STARTED))).collect();
    let groups = cgroup::named(PREFIX).into_iter().filter(|path| is_stale_name(path)).collect::<Vec<_>>();
    let victims = || {
        let marked = pids().filter(|pid| mark_of(*pid).is_some_and(|mark| !is_alive(&mark)));
        let mut all: Vec<u32> = marked.chain(groups.iter().flat_map(|group| cgroup::members(group))).collect();
        all.extend(listed.iter().copied().filter(|pid| start_time(*pid).is_some()));
        all.sort_unstable();
        all.dedup();
        all
    };
    let began = Instant::now();
    let mut told = std::collections::BTreeSet::new();
    loop {
        let found = victims();
        if found.is_empty() {
            break;
        }
        for pid in &found {
            if told.insert(*pid) {
                removed.push(format!("process {pid} ({})", name_of(*pid)));
            }
            if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if began.elapsed() > GONE {
            let what = format!("processes {found:?} of a lab that is gone");
            return Err(Error::system(what)(std::io::Error::other("survive SIGKILL; end them first")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    for group in groups {
        cgroup::remove(&group);
        removed.push(format!("control group {}", group.display()));
    }
    for folder in stale {
        let files = shared::remove_of(&folder);
        removed.extend(files.iter().map(|file| format!("file {}", file.display())));
        removed.extend(frequency::restore(&folder.join(frequency::BEFORE)));
        fs::remove_dir_all(&folder).map_err(Error::file(&folder))?;
        removed.push(format!("folder {}", folder.display()));
    }
    Ok(removed)
}

/// When a process started, in clock ticks since boot; `None` when it is gone or only a zombie.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = procfs::process::Process::new(pid as i32).ok()?.stat().ok()?;
    (!matches!(stat.state, 'Z' | 'X')).then_some(stat.starttime)
}

/// Of the environment of a process, one variable.
pub(crate) fn variable(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")))?;
    String::from_utf8(value.to_vec()).ok()
}

/// Whether another lab than this one runs something.
pub(super) fn is_another_at_work(mark: &str) -> bool {
    pids().filter_map(mark_of).any(|other| other != mark && is_alive(&other))
}

fn mark_of(pid: u32) -> Option<String> {
    variable(pid, MARK)
}

/// Whether the lab with that mark still runs. What is no mark is nobody's business, and nor is a lab of another
/// container, which shares a folder with us: both count as alive.
fn is_alive(mark: &str) -> bool {
    let numbers: Result<Vec<u64>, _> = mark.split('-').map(str::parse).collect();
    match numbers.as_deref() {
        Ok([of, pid, start]) if *of == namespace_of("self") => {
            i32::try_from(*pid).is_ok_and(|pid| process_runs(pid, Some(*start)))
        }
        _ => true,
    }
}

fn is_stale_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(PREFIX));
    name.is_some_and(|mark| !is_alive(mark)) && owned(path)
}

/// Folders of others in a shared place are not ours to read or to remove.
fn owned(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw())
}

fn listed(path: &Path) -> Vec<u32> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| {
        let (pid, start) = line.split_once(' ')?;
        let pid = pid.parse().ok()?;
        (start_time(pid)? == start.parse::<u64>().ok()?).then_some(pid)
    };
    text.lines().filter_map(line).collect()
}

fn name_of(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm"));
    name.map_or_else(|_| "gone".into(), |name| String::from_utf8_lossy(&name).trim().to_owned())
}

pub(super) fn pids() -> impl Iterator<Item = u32> {
    entries(Path::new("/proc")).filter_map(|path| path.file_name()?.to_str()?.parse().ok())
}

pub(super) fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_alive_as_long_as_that_very_process_is() {
        let pid = std::process::id();
        let (start, here) = (start_time(pid).unwrap(), namespace_of("self"));
        assert!(is_alive(&format!("{here}-{pid}-{start}")));
        assert!(!is_alive(&format!("{here}-{pid}-{}", start + 1)), "the number was given to another process");
        assert!(is_alive(&format!("{}-{pid}-{}", here + 1, start + 1)), "the number means nothing here");
        assert!(is_alive("what is this"), "never touches what it does not know");
    }

    #[test]
    fn only_live_processes_with_their_start_time_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(STARTED);
        let pid = std::process::id();
        fs::write(&path, format!("{pid} {}\n{pid} 1\n4294967 7\ntorn", start_time(pid).unwrap())).unwrap();
        assert_eq!(listed(&path), [pid]);
    }
}
