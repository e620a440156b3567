//! Folders for what a command keeps only while it runs. A command that was killed could not remove its own: the next one of its kind on this
//! host does.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, OFlags, flock};
use tempfile::TempDir;

/// A file system in memory.
pub const MEMORY: &str = "/dev/shm";

/// Bytes that are free in memory for files; none where there is no such file system.
pub fn room_in_memory() -> Option<u64> {
    let there = rustix::fs::statvfs(MEMORY).ok()?;
    Some(there.f_bavail.saturating_mul(there.f_frsize))
}

/// In each such folder, locked by the process that uses it. It says of which boot that is: a folder may be of another host, whose locks are
/// not seen here.
const MARK: &str = ".taut-scratch";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// A folder is there a moment before its mark is locked.
const YOUNG: Duration = Duration::from_secs(60);

/// A folder that is removed when this is dropped, or by the next command of its kind after this process was killed.
pub struct Scratch {
    /// Closed before the folder goes: of a file that is open NFS leaves another one behind. None where nothing can be locked.
    _lock: Option<File>,
    folder: TempDir,
}

impl Scratch {
    /// In the folder for temporary files; the kind is the first part of its name.
    pub fn new(kind: &str) -> Result<Scratch> {
        within(&std::env::temp_dir(), kind).context("scratch folder")
    }

    /// In memory if possible: what is read is given back at once.
    pub fn in_memory(kind: &str) -> Result<Scratch> {
        within(Path::new(MEMORY), kind)
            .or_else(|_| within(&std::env::temp_dir(), kind))
            .context("a place for what is not kept")
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn within(place: &Path, kind: &str) -> std::io::Result<Scratch> {
    remove_left(place, kind);
    let folder = tempfile::Builder::new().prefix(kind).tempdir_in(place)?;
    let _lock = marked(&folder.path().join(MARK)).ok();
    Ok(Scratch { _lock, folder })
}

/// Without a mark nobody else removes the folder.
fn marked(path: &Path) -> std::io::Result<File> {
    let boot = std::fs::read(BOOT)?;
    let mut mark = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let locked = flock(&mark, FlockOperation::NonBlockingLockExclusive).map_err(std::io::Error::from);
    locked.and_then(|()| mark.write_all(&boot)).inspect_err(|_| drop(std::fs::remove_file(path)))?;
    Ok(mark)
}

/// Removes what killed commands of this user left: folders whose mark nobody holds.
fn remove_left(place: &Path, kind: &str) {
    let us = rustix::process::geteuid().as_raw();
    let Ok(boot) = std::fs::read(BOOT) else { return };
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(kind) {
            continue;
        }
        let (path, mark) = (entry.path(), entry.path().join(MARK));
        let is_ours = |there: &std::fs::Metadata| there.uid() == us;
        let is_old = |made: SystemTime| made.elapsed().is_ok_and(|age| age > YOUNG);
        let is_folder = std::fs::symlink_metadata(&path).is_ok_and(|there| there.is_dir() && is_ours(&there));
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let Some(lock) =
            is_folder.then(|| OpenOptions::new().write(true).custom_flags(flags).open(&mark).ok()).flatten()
        else {
            continue;
        };
        let made = lock.metadata().ok().filter(is_ours).and_then(|there| there.modified().ok());
        if made.is_some_and(is_old)
            && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
            && std::fs::read(&mark).is_ok_and(|of| of == boot)
        {
            remove(&path);
        }
    }
}

/// The mark last: what could not be removed whole is tried again. Another command may be at it.
fn remove(folder: &Path) {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.file_name() != MARK);
    let removed = all.map(|entry| match entry.file_type()?.is_dir() {
        true => std::fs::remove_dir_all(entry.path()),
        false => std::fs::remove_file(entry.path()),
    });
    if removed.collect::<std::io::Result<Vec<()>>>().is_ok() {
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aged(folder: &Path) {
        let mark = OpenOptions::new().write(true).open(folder.join(MARK)).unwrap();
        mark.set_modified(SystemTime::now() - 2 * YOUNG).unwrap();
    }

    #[test]
    fn what_a_killed_command_left_is_removed_by_the_next_one() {
        let place = tempfile::tempdir().unwrap();
        let Scratch { _lock, folder } = within(place.path(), "taut-x-").unwrap();
        let left = folder.keep();
        std::fs::create_dir(left.join("launch")).unwrap();
        std::fs::write(left.join("trial.mcap"), "recording").unwrap();
        drop(_lock);
        let young = within(place.path(), "taut-x-").unwrap();
        assert!(left.exists(), "it may be about to be locked");
        aged(&left);
        let _next = within(place.path(), "taut-x-").unwrap();
        assert!(!left.exists() && young.path().exists());
    }

    #[test]
    fn what_is_in_use_or_somebody_elses_stays() {
        let place = tempfile::tempdir().unwrap();
        let used = within(place.path(), "taut-x-").unwrap();
        aged(used.path());
        // A user's results, another kind, and a link to a folder elsewhere.
        let kept = place.path().join("taut-x-results");
        std::fs::create_dir(&kept).unwrap();
        let other = within(place.path(), "taut-y-").unwrap();
        let (elsewhere, target) = (tempfile::tempdir().unwrap(), place.path().join("taut-x-link"));
        let theirs = within(elsewhere.path(), "taut-x-").unwrap().folder.keep();
        aged(&theirs);
        std::os::unix::fs::symlink(&theirs, &target).unwrap();
        let _next = within(place.path(), "taut-x-").unwrap();
        assert!(used.path().exists() && kept.exists() && other.path().exists() && theirs.exists());
    }

    #[test]
    fn a_folder_of_another_host_stays() {
        let place = tempfile::tempdir().unwrap();
        let left = within(place.path(), "taut-x-").unwrap().folder.keep();
        std::fs::write(left.join(MARK), "another boot").unwrap();
        aged(&left);
        let _next = within(place.path(), "taut-x-").unwrap();
        assert!(left.exists());
    }

    #[test]
    fn it_goes_with_the_command() {
        let place = tempfile::tempdir().unwrap();
        drop(within(place.path(), "taut-x-").unwrap());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
