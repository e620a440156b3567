//! A lab's mark: a pid with its start time and the pid namespace in which both mean something, so that it can be asked
//! whether that lab still lives. Every process carries it in its environment, folders and control groups in their names.

use std::{
    fs,
    io::Write,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use taut_capture::{namespace_of, process_runs};

use crate::Error;

/// The environment variable that carries the mark.
pub(crate) const MARK: &str = "TAUT_LAB";

/// The one that says which part of a lab a process is.
pub(crate) const PART: &str = "TAUT_LAB_PART";

/// How folders and control groups begin.
pub(crate) const PREFIX: &str = "taut-lab-";

/// The list of started processes: one that cleared its environment is still known by it.
pub(super) const STARTED: &str = "started";

/// Where shared memory lies.
pub(super) const SHARED: &str = "/dev/shm";

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

    /// Forgets them: all have ended, and their numbers may be given to others.
    pub fn all_ended(&self) -> std::io::Result<()> {
        match fs::remove_file(self.folder.join(STARTED)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::remove_dir_all(&self.session);
    }
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

pub(super) fn mark_of(pid: u32) -> Option<String> {
    variable(pid, MARK)
}

/// Whether the lab with that mark still runs. What has no mark is left alone, and so is a lab of another
/// container, which shares a folder with us: both count as alive.
pub(super) fn is_alive(mark: &str) -> bool {
    let numbers: Result<Vec<u64>, _> = mark.split('-').map(str::parse).collect();
    match numbers.as_deref() {
        Ok([of, pid, start]) if *of == namespace_of("self") => {
            i32::try_from(*pid).is_ok_and(|pid| process_runs(pid, Some(*start)))
        }
        _ => true,
    }
}

pub(super) fn pids() -> impl Iterator<Item = u32> {
    entries(Path::new("/proc")).filter_map(|path| path.file_name()?.to_str()?.parse().ok())
}

pub(super) fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}
