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
    family::family,
    identity::status,
    scheduler::{self, Scheduling},
    setting_file::{read_setting, write_setting},
};

/// Looks for threads that were started meanwhile, at most: a process that starts some without end is not waited for.
pub(crate) const PASSES: usize = 10;

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
        /// When this was noted, in clock ticks since boot: threads and child processes that started later may have inherited the change.
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
        let now = clock_gettime(ClockId::Boottime);
        let ticks = procfs::ticks_per_second();
        let at = now.tv_sec as u64 * ticks + now.tv_nsec as u64 * ticks / 1_000_000_000;
        Ok(Entry::Thread { who, scheduling, cpus: scheduler::cpus(tid).map_err(failed)?, at })
    }

    /// Undoes it; nothing where the thread has ended. `noted`: all threads that have entries.
    fn undo(&self, noted: &BTreeSet<i32>) -> Result<(), Error> {
        let not_restored = |what: String, by_hand: String| {
            move |error: io::Error| Error::NotRestored { what, why: error.to_string(), by_hand }
        };
        match self {
            Entry::Thread { who, scheduling, cpus, at } if who.is_alive() => {
                let tid = who.number;
                let changed = (scheduler::scheduling(tid).ok(), scheduler::cpus(tid).ok());
                let scheduled = scheduler::schedule(tid, scheduling);
                let restored = scheduled.and(scheduler::place(tid, cpus));
                let inherits = |heir: i32| {
                    let has_schedule = changed.0.is_some_and(|of| of != *scheduling);
                    let has_place = changed.1.as_ref().is_some_and(|of| of != cpus);
                    // As of those that are named: what ends meanwhile needs nothing.
                    let is_scheduled = has_schedule
                        && scheduler::scheduling(heir).ok() == changed.0
                        && scheduler::schedule(heir, scheduling).is_ok();
                    let is_placed =
                        has_place && scheduler::cpus(heir).ok() == changed.1 && scheduler::place(heir, cpus).is_ok();
                    is_scheduled || is_placed
                };
                // One that is not restored yet may start more meanwhile.
                for _ in 0..PASSES {
                    let heirs = heirs(tid, *at).into_iter().filter(|heir| !noted.contains(heir));
                    if heirs.filter(|heir| inherits(*heir)).count() == 0 {
                        break;
                    }
                }
                let by_hand = format!("taskset -cp {cpus} {tid}; renice -n {} -p {tid}", scheduling.nice);
                let what = format!("thread {}/{tid}", who.name);
                // It may have ended meanwhile.
                if who.is_alive() { restored.map_err(not_restored(what, by_hand)) } else { Ok(()) }
            }
            Entry::File { path, before } => {
                let by_hand = format!("echo {before} > {}", path.display());
                let refused = |now: String| io::Error::other(format!("it has {now} after the write"));
                // Where the change was refused, as of interrupts that the kernel manages, so is the way back.
                let restored = match read_setting(path) {
                    Ok(now) if now == *before => Ok(()),
                    _ => write_setting(path, before).and_then(|()| match read_setting(path) {
                        Ok(now) if now != *before => Err(refused(now)),
                        _ => Ok(()),
                    }),
                };
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

/// Undoes these, the last first: what is as it was again, and what is not.
fn undo_entries(entries: Vec<Entry>) -> (Vec<Entry>, Vec<(Entry, Error)>) {
    let thread = |entry: &Entry| match entry {
        Entry::Thread { who, .. } => Some(who.number),
        Entry::File { .. } => None,
    };
    let noted = entries.iter().filter_map(thread).collect();
    let (mut restored, mut failed) = (Vec::new(), Vec::new());
    for entry in entries.into_iter().rev() {
        match entry.undo(&noted) {
            Ok(()) => restored.push(entry),
            Err(error) => failed.push((entry, error)),
        }
    }
    (restored, failed)
}

/// Threads and child processes that a process has started since then; none of a thread that is not its process's first.
fn heirs(tid: i32, at: u64) -> Vec<i32> {
    if status(tid).is_none_or(|status| status.tgid != tid) {
        return Vec::new();
    }
    let processes = family(tid, &BTreeSet::new()).into_iter().filter_map(|pid| Process::new(pid).ok());
    processes
        .flat_map(|process| process.tasks().into_iter().flatten().flatten())
        .filter(|task| task.tid != tid && task.stat().is_ok_and(|stat| stat.starttime >= at))
        .map(|task| task.tid)
        .collect()
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

    /// Undoes everything, the last first. What could not be undone stays in the journal.
    ///
    /// # Errors
    /// The first thing that is not as it was; the others are restored all the same.
    pub fn undo(&mut self) -> Result<(), Error> {
        let (_, failed) = undo_entries(std::mem::take(&mut self.open));
        let (open, errors): (Vec<Entry>, Vec<Error>) = failed.into_iter().rev().unzip();
        self.open = open;
        // In one piece: a process that is killed in between must not leave a journal in which changes that are still in force are undone.
        let lines = std::iter::once(Line::Undone).chain(self.open.iter().cloned().map(Line::Entry));
        let text: String = lines.map(|line| line.text(&self.path)).collect::<Result<_, _>>()?;
        self.file.write_all(text.as_bytes()).map_err(Error::file(&self.path))?;
        errors.into_iter().next_back().map_or(Ok(()), Err)
    }

    fn line(&mut self, line: &Line) -> Result<(), Error> {
        let text = line.text(&self.path)?;
        // In one piece, so that it is whole or has no end.
        self.file.write_all(text.as_bytes()).map_err(Error::file(&self.path))
    }
}

impl Line {
    fn text(&self, path: &Path) -> Result<String, Error> {
        let text = serde_json::to_string(self).map_err(|source| Error::Format { path: path.to_owned(), source })?;
        Ok(text + "\n")
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

/// What a journal's lines say.
#[derive(Default)]
struct Written {
    owner: Option<Identity>,
    /// To be undone.
    open: Vec<Entry>,
    keeps: bool,
}

impl Written {
    fn read(text: &str, path: &Path) -> Result<Written, Error> {
        let mut written = Written::default();
        // Of a last line without its end the change was not made.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            match serde_json::from_str(line).map_err(|source| Error::Format { path: path.to_owned(), source })? {
                Line::Owner(owner) => written.owner = Some(owner),
                Line::Entry(entry) => written.open.push(entry),
                Line::Undone => written.open.clear(),
                Line::Keep => written.keeps = true,
            }
        }
        Ok(written)
    }
}

/// For the fuzzer: what a journal would undo, in words.
pub(crate) fn words(text: &str) -> Result<Vec<String>, Error> {
    Ok(Written::read(text, Path::new("journal.jsonl"))?.open.iter().map(Entry::word).collect())
}

/// `is_asked`: kept journals are undone, too.
fn undo_file(path: &Path, is_asked: bool) -> Result<Undone, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    let Written { owner, open, keeps } = Written::read(&text, path)?;
    let is_another = |owner: &Identity| owner.is_alive() && owner.number != std::process::id() as i32;
    if let Some(owner) = owner.filter(|owner| is_asked && is_another(owner)) {
        let why = format!("taut tune (process {}) still runs; end it, and it restores by itself", owner.number);
        return Ok(Undone { failed: vec![why], ..Undone::default() });
    }
    if keeps && !is_asked {
        return Ok(Undone::default());
    }
    let (restored, failed) = undo_entries(open);
    let undone = Undone {
        restored: restored.iter().map(Entry::word).collect(),
        failed: failed.iter().map(|(_, error)| error.to_string()).collect(),
    };
    if failed.is_empty() {
        std::fs::remove_file(path).map_err(Error::file(path))?;
        return Ok(undone);
    }
    // What is restored must not be written once more later.
    let left: Result<String, Error> =
        failed.into_iter().rev().map(|(entry, _)| Line::Entry(entry).text(path)).collect();
    let unready = path.with_extension("new");
    std::fs::write(&unready, left?).map_err(Error::file(&unready))?;
    std::fs::rename(&unready, path).map_err(Error::file(path))?;
    Ok(undone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{named_without_text, until_it_has_its_name};

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

    #[test]
    fn what_cannot_be_undone_stays_in_the_journal_and_the_rest_is_not_undone_twice() {
        let folder = tempfile::tempdir().unwrap();
        let (sound, refused) = (folder.path().join("sound"), folder.path().join("refused"));
        std::fs::write(&sound, "new\n").unwrap();
        std::fs::create_dir(&refused).unwrap();
        let mut journal = Journal::create(folder.path(), &[]).unwrap();
        for path in [&sound, &refused] {
            journal.note(Entry::File { path: path.clone(), before: "old".into() }).unwrap();
        }
        assert!(journal.undo().unwrap_err().to_string().starts_with(&refused.display().to_string()));
        let path = journal.path.clone();
        drop(journal);
        assert_eq!(std::fs::read_to_string(&sound).unwrap(), "old\n");
        std::fs::write(&sound, "of somebody else\n").unwrap();
        for _ in 0..2 {
            let undone = undo_file(&path, false).unwrap();
            assert_eq!((undone.restored.len(), undone.failed.len()), (0, 1), "{undone:?}");
        }
        assert_eq!(std::fs::read_to_string(&sound).unwrap(), "of somebody else\n");
        std::fs::remove_dir(&refused).unwrap();
        std::fs::write(&refused, "new\n").unwrap();
        assert_eq!(undo_file(&path, false).unwrap().restored.len(), 1);
        assert!(!path.exists());
    }

    /// A shell whose children are processes of their own: those from before keep what they had, those that inherited a change lose it.
    #[test]
    fn of_later_children_only_those_that_inherited_the_change_are_restored() {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        let script = "nice -n 3 sleep 1000 & echo $!; read go; nice -n 0 sleep 1000 & echo $!; nice -n 2 sleep 1000 & echo $!; read go";
        let mut shell = shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut to, mut from) = (shell.stdin.take().unwrap(), io::BufReader::new(shell.stdout.take().unwrap()));
        let mut number = || {
            let mut line = String::new();
            io::BufRead::read_line(&mut from, &mut line).unwrap();
            line.trim().parse::<i32>().unwrap()
        };
        let nice = |pid: i32| scheduler::scheduling(pid).unwrap().nice;
        let before = number();
        let pid = shell.id() as i32;
        let own = nice(pid);
        // Under load it takes a while to become what it is.
        while nice(before) != own + 3 {
            std::thread::yield_now();
        }
        let mut journal = Journal::create(folder.path(), &[]).unwrap();
        journal.note(Entry::thread(pid).unwrap()).unwrap();
        scheduler::schedule(pid, &scheduler::scheduling(pid).unwrap().with_nice(own + 5)).unwrap();
        to.write_all(b"go\n").unwrap();
        let (heir, other) = (number(), number());
        while nice(heir) != own + 5 || nice(other) != own + 7 {
            std::thread::yield_now();
        }
        let restored = journal.undo();
        let now = [pid, before, heir, other].map(nice);
        for one in [before, heir, other, pid] {
            // SAFETY: a signal to processes that this test started.
            unsafe { libc::kill(one, libc::SIGKILL) };
        }
        shell.wait().unwrap();
        // Who may not raise a nice value, as an ordinary user, cannot undo one.
        if restored.is_ok() {
            assert_eq!(now, [own, own + 3, own, own + 7]);
        }
    }

    #[test]
    fn a_process_whose_name_is_no_text_has_heirs() {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new(named_without_text(folder.path(), "/bin/sh"));
        shell.args(["-c", "sleep 1000 & echo $!; read go"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        until_it_has_its_name(shell.id());
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(shell.stdout.take().unwrap()), &mut line).unwrap();
        let child = line.trim().parse::<i32>().unwrap();
        let found = heirs(shell.id() as i32, 0);
        // SAFETY: a signal to a process that this test started.
        unsafe { libc::kill(child, libc::SIGKILL) };
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(found, [child]);
    }
}
