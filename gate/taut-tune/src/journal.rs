//! What has to be undone. Each entry is in the file before its change is made, so that a process that is killed leaves enough to undo all of it.
//!
//! A restorer process waits for the end of the one that made the journal; `taut tune --undo` does the same by hand.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::{
        fs::{DirBuilderExt, MetadataExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
};

use procfs::process::Process;
use rustix::{
    process::getuid,
    time::{ClockId, clock_gettime},
};
use serde::{Deserialize, Serialize};
use taut_lab::Cpus;

use crate::{
    Error, Identity,
    scheduler::{self, Scheduling},
    setting_file::{read_setting, write_setting},
};

/// One thing to undo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// A thread, as it was.
    Thread {
        /// Which.
        who: Identity,
        /// Policy, priority, nice value.
        scheduling: Scheduling,
        /// Where it could run.
        cpus: Cpus,
        /// When this was noted, in clock ticks since boot: threads and child processes that started later inherited the change.
        at: u64,
    },
    /// A file's value, as it was.
    File {
        /// The file.
        path: PathBuf,
        /// The value.
        before: String,
    },
}

impl Entry {
    /// A thread as it is now.
    pub(crate) fn thread(tid: i32) -> Result<Entry, Error> {
        let failed = |source: io::Error| Error::Setting { what: format!("thread {tid}"), source };
        let who = Identity::of(tid).ok_or_else(|| failed(io::Error::other("has ended")))?;
        let scheduling = scheduler::scheduling(tid).map_err(failed)?;
        // Rounded down: a thread of the same second counts as one that came later.
        let at = (clock_gettime(ClockId::Boottime).tv_sec as u64) * procfs::ticks_per_second();
        Ok(Entry::Thread { who, scheduling, cpus: scheduler::cpus(tid).map_err(failed)?, at })
    }

    /// Undoes it; nothing where the thread has ended.
    fn undo(&self) -> Result<(), Error> {
        let not_restored = |what: String, by_hand: String| {
            move |error: io::Error| Error::NotRestored { what, why: error.to_string(), by_hand }
        };
        match self {
            Entry::Thread { who, scheduling, cpus, at } if who.is_alive() => {
                let tid = who.number;
                for heir in heirs(tid, *at) {
                    // As of those that are named: what ends meanwhile needs nothing.
                    let _ = scheduler::schedule(heir, scheduling).and_then(|()| scheduler::place(heir, cpus));
                }
                let by_hand = format!("taskset -cp {cpus} {tid}; renice -n {} -p {tid}", scheduling.nice);
                let what = format!("thread {}/{tid}", who.name);
                let restored = scheduler::schedule(tid, scheduling).and_then(|()| scheduler::place(tid, cpus));
                // It may have ended meanwhile.
                if who.is_alive() { restored.map_err(not_restored(what, by_hand)) } else { Ok(()) }
            }
            Entry::File { path, before } => {
                let by_hand = format!("echo {before} > {}", path.display());
                let refused = |now: String| io::Error::other(format!("it has {now} after the write"));
                let restored = write_setting(path, before).and_then(|()| match read_setting(path) {
                    Ok(now) if now != *before => Err(refused(now)),
                    _ => Ok(()),
                });
                // A control group may be removed meanwhile.
                match restored {
                    Err(_) if !path.exists() => Ok(()),
                    restored => restored.map_err(not_restored(path.display().to_string(), by_hand)),
                }
            }
            Entry::Thread { .. } => Ok(()),
        }
    }

    /// In words.
    fn word(&self) -> String {
        match self {
            Entry::Thread { who, scheduling, cpus, .. } => {
                format!("{}/{}: {}, CPU {cpus}", who.name, who.number, scheduling.word())
            }
            Entry::File { path, before } => format!("{}: {before}", path.display()),
        }
    }
}

/// Threads and child processes that a process has started since then; none of a thread that is not its process's first.
fn heirs(tid: i32, at: u64) -> Vec<i32> {
    let is_first = |process: &Process| process.status().is_ok_and(|status| status.tgid == tid);
    let Some(process) = Process::new(tid).ok().filter(is_first) else { return Vec::new() };
    let below = descendants(tid).into_iter().filter_map(|one| Process::new(one.number).ok());
    let tasks =
        std::iter::once(process).chain(below).flat_map(|process| process.tasks().into_iter().flatten().flatten());
    tasks
        .filter(|task| task.tid != tid && task.stat().is_ok_and(|stat| stat.starttime > at))
        .map(|task| task.tid)
        .collect()
}

fn descendants(of: i32) -> Vec<Identity> {
    let all = procfs::process::all_processes().into_iter().flatten().flatten();
    let parents: Vec<(i32, i32)> = all.filter_map(|process| Some((process.pid, process.stat().ok()?.ppid))).collect();
    let mut family = BTreeSet::from([of]);
    loop {
        let more: Vec<i32> = parents
            .iter()
            .filter(|(pid, up)| family.contains(up) && !family.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return family.into_iter().filter(|pid| *pid != of).filter_map(Identity::of).collect();
        }
        family.extend(more);
    }
}

/// What came of undoing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// What is as it was again.
    pub restored: Vec<String>,
    /// What is not, with what to do.
    pub failed: Vec<String>,
}

/// A file of what has to be undone.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    open: Vec<Entry>,
    /// Closed by the kernel when this process dies.
    restorer: Option<ChildStdin>,
    keeps: bool,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The process that makes it; first.
    Owner(Identity),
    /// To be undone.
    Entry(Entry),
    /// All before is undone.
    Undone,
    /// Stays until it is undone, whichever process ends.
    Keep,
}

/// Where journals are: readable by this user only.
///
/// # Errors
/// A place that another user made or may write to.
pub fn folder() -> Result<PathBuf, Error> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let state = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let root = || getuid().is_root().then(|| PathBuf::from("/run"));
    let above = runtime.or_else(root).or_else(state).unwrap_or_else(std::env::temp_dir);
    let folder = above.join("taut-tune");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(Error::file(&folder))?;
    let found = std::fs::symlink_metadata(&folder).map_err(Error::file(&folder))?;
    let problem = match () {
        () if !found.is_dir() => "is no folder",
        () if found.uid() != getuid().as_raw() => "belongs to another user",
        () if found.mode() & 0o022 != 0 => "other users may write to it",
        () => return Ok(folder),
    };
    Err(Error::Folder { path: folder, problem })
}

impl Journal {
    /// A new one in a folder. `restorer`: the command that runs [`restore_when_gone`] with the journal's path.
    ///
    /// # Errors
    /// A folder that cannot be written to; a restorer that does not start.
    pub fn create(folder: &Path, restorer: &[OsString]) -> Result<Journal, Error> {
        let owner = Identity::of(std::process::id() as i32)
            .ok_or_else(|| Error::File { path: "/proc/self".into(), source: io::ErrorKind::NotFound.into() })?;
        let path = folder.join(format!("{}-{}.jsonl", owner.number, owner.started));
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(Error::file(&path))?;
        let mut journal = Journal { path, file, open: Vec::new(), restorer: None, keeps: false };
        journal.line(&Line::Owner(owner))?;
        if let Some((program, arguments)) = restorer.split_first() {
            journal.restorer = Some(start(program, arguments, &journal.path)?);
        }
        Ok(journal)
    }

    /// Keeps something to undo. Returns after it is in the file: only then may the change be made.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note(&mut self, entry: Entry) -> Result<(), Error> {
        self.line(&Line::Entry(entry.clone()))?;
        self.open.push(entry);
        Ok(())
    }

    /// Leaves all as it is now until it is undone.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(mut self) -> Result<PathBuf, Error> {
        self.line(&Line::Keep)?;
        self.keeps = true;
        Ok(self.path.clone())
    }

    /// Undoes everything, the last first.
    ///
    /// # Errors
    /// The first thing that is not as it was; the others are restored all the same.
    pub fn undo(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        for entry in std::mem::take(&mut self.open).iter().rev() {
            result = result.and(entry.undo());
        }
        result.and(self.line(&Line::Undone))
    }

    /// Whether there is nothing to undo.
    pub fn is_clean(&self) -> bool {
        self.open.is_empty()
    }

    fn line(&mut self, line: &Line) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line).map_err(|source| Error::Format { path: self.path.clone(), source })?;
        text.push(b'\n');
        self.file.write_all(&text).map_err(Error::file(&self.path))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.keeps {
            // Whoever wants to know asks `undo`; here an error or a panic ends the scope.
            let restored = self.undo();
            if restored.is_ok() {
                let _ = std::fs::remove_file(&self.path);
            }
        }
        // The restorer finds nothing to do.
        self.restorer.take();
    }
}

/// Starts the restorer without a parent: what ends the descendants of this process must not end it.
fn start(program: &OsString, arguments: &[OsString], journal: &Path) -> Result<ChildStdin, Error> {
    let failed = |source| Error::Command { command: program.to_string_lossy().into_owned(), source };
    let mut command = Command::new(program);
    command.args(arguments).arg(journal).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut child = command.spawn().map_err(failed)?;
    let pipe = child.stdin.take();
    // It starts a copy of itself, which inherits the pipe, and ends.
    let status = child.wait().map_err(failed)?;
    match pipe {
        Some(pipe) if status.success() => Ok(pipe),
        _ => Err(failed(io::Error::other(format!("the restorer ended with {status}")))),
    }
}

/// What the restorer does: first it starts itself again, as a process of its own session; that one waits until its standard input ends, and
/// undoes what the journal still has.
///
/// # Errors
/// It cannot start itself; the journal cannot be read.
pub fn restore_when_gone(journal: &Path, again: &[OsString]) -> Result<Undone, Error> {
    if let Some((program, arguments)) = again.split_first() {
        let failed = |source| Error::Command { command: program.to_string_lossy().into_owned(), source };
        Command::new(program).args(arguments).arg(journal).process_group(0).spawn().map_err(failed)?;
        return Ok(Undone::default());
    }
    // A terminal that closes, or a signal to all processes of a name, must not end what cleans up behind them.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let mut nothing = Vec::new();
    std::io::stdin().read_to_end(&mut nothing).map_err(Error::file("stdin"))?;
    if !journal.exists() {
        return Ok(Undone::default());
    }
    undo_file(journal, false)
}

/// Undoes all journals of a folder whose owner is gone, and those that were to be kept.
///
/// # Errors
/// The folder cannot be read.
pub fn undo_all(folder: &Path) -> Result<Undone, Error> {
    let mut all = Undone::default();
    let entries = std::fs::read_dir(folder).map_err(Error::file(folder))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")) {
        match undo_file(path, true) {
            Ok(undone) => {
                all.restored.extend(undone.restored);
                all.failed.extend(undone.failed);
            }
            Err(error) => all.failed.push(error.to_string()),
        }
    }
    Ok(all)
}

/// `is_asked`: kept journals are undone, too.
fn undo_file(path: &Path, is_asked: bool) -> Result<Undone, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    let mut open: Vec<Entry> = Vec::new();
    let mut keeps = false;
    // Of a last line without its end the change was not made.
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        match serde_json::from_str(line).map_err(|source| Error::Format { path: path.to_owned(), source })? {
            Line::Owner(owner) if is_asked && owner.is_alive() && owner.number != std::process::id() as i32 => {
                let why = format!("taut tune (process {}) still runs; end it, and it restores by itself", owner.number);
                return Ok(Undone { failed: vec![why], ..Undone::default() });
            }
            Line::Owner(_) => {}
            Line::Entry(entry) => open.push(entry),
            Line::Undone => open.clear(),
            Line::Keep => keeps = true,
        }
    }
    if keeps && !is_asked {
        return Ok(Undone::default());
    }
    let mut undone = Undone::default();
    for entry in open.iter().rev() {
        match entry.undo() {
            Ok(()) => undone.restored.push(entry.word()),
            Err(error) => undone.failed.push(error.to_string()),
        }
    }
    if undone.failed.is_empty() {
        std::fs::remove_file(path).map_err(Error::file(path))?;
    }
    Ok(undone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_of_a_process_that_was_killed_is_undone_by_hand() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("setting");
        std::fs::write(&file, "new\n").unwrap();
        let owner = Identity { number: i32::MAX - 1, started: 1, name: "taut".into() };
        let line = |line: &Line| serde_json::to_string(line).unwrap() + "\n";
        let entry = |before: &str| Line::Entry(Entry::File { path: file.clone(), before: before.into() });
        let text =
            [Line::Owner(owner), entry("older"), Line::Undone, entry("old")].iter().map(line).collect::<String>();
        std::fs::write(folder.path().join("1-1.jsonl"), text + "{\"entry\":{\"fi").unwrap();
        let undone = undo_all(folder.path()).unwrap();
        assert_eq!((undone.restored.len(), undone.failed.len()), (1, 0), "{undone:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old\n");
        assert_eq!(undo_all(folder.path()).unwrap(), Undone::default());
    }

    #[test]
    fn what_is_kept_survives_its_owner_until_somebody_undoes_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("setting");
        std::fs::write(&file, "old\n").unwrap();
        let mut journal = Journal::create(folder.path(), &[]).unwrap();
        journal.note(Entry::File { path: file.clone(), before: "old".into() }).unwrap();
        write_setting(&file, "new").unwrap();
        let kept = journal.keep().unwrap();
        assert_eq!(undo_file(&kept, false).unwrap(), Undone::default());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new\n");
        assert_eq!(undo_all(folder.path()).unwrap().restored.len(), 1);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old\n");
    }
}
