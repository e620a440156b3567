//! The session directory of a recording: made fresh, and removed also when its recorder was killed.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use crate::{Error, owner, proc};

/// Where rings live: a tmpfs, so that stamps never wait for a disk.
const SHARED_MEMORY: &str = "/dev/shm";
const PREFIX: &str = "taut-session-";

/// A directory that goes when this goes, unless it was the user's.
pub struct SessionDir {
    path: PathBuf,
    ours: bool,
    warning: Option<String>,
}

impl SessionDir {
    /// The user's directory (made if missing), or a fresh private one.
    pub fn new(wanted: Option<&Path>) -> Result<SessionDir, Error> {
        match wanted {
            Some(path) => SessionDir::of_user(path),
            None => SessionDir::fresh_in(&[PathBuf::from(SHARED_MEMORY), std::env::temp_dir()]),
        }
    }

    /// Absolute: the command may change its directory before it stamps.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why it does not lie where it should.
    pub fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    fn of_user(path: &Path) -> Result<SessionDir, Error> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        let absolute = made.and_then(|()| fs::canonicalize(path));
        check_private(path, None)?;
        let path = absolute.map_err(|source| Error::Session { path: path.to_owned(), source })?;
        Ok(SessionDir { path, ours: false, warning: None })
    }

    /// In the first of these folders that takes one.
    fn fresh_in(folders: &[PathBuf]) -> Result<SessionDir, Error> {
        let mut refused: Option<(PathBuf, io::Error)> = None;
        for folder in folders {
            remove_stale(folder);
            match fresh(folder) {
                Ok(path) => {
                    let warning = refused.map(|(wanted, error)| {
                        format!("{}: {error}; stamps pass through {} instead", wanted.display(), folder.display())
                    });
                    return Ok(SessionDir { path, ours: true, warning });
                }
                Err(error) => refused = refused.or(Some((folder.clone(), error))),
            }
        }
        let (path, source) = refused.unwrap_or_else(|| (SHARED_MEMORY.into(), ErrorKind::NotFound.into()));
        Err(Error::Session { path, source })
    }
}

impl Drop for SessionDir {
    fn drop(&mut self) {
        // Once more, since an error may pass; what stays the next recorder takes.
        if self.ours && fs::remove_dir_all(&self.path).is_err() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Those that recorders of this user made, wherever they did.
pub fn made() -> Vec<PathBuf> {
    let folders = [PathBuf::from(SHARED_MEMORY), std::env::temp_dir()];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let is_ours = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    let paths = entries.filter(|entry| is_ours(&entry.file_name())).map(|entry| entry.path());
    paths.filter(|path| check_private(path, None).is_ok()).collect()
}

/// A user who may write into a session decides what is recorded, and one who may read it learns which processes stamp. So it must
/// belong to the recording user or to the recorded one, and no other user may enter it. What cannot be read is reported later.
pub fn check_private(path: &Path, recorded: Option<u32>) -> Result<(), Error> {
    let us = rustix::process::geteuid().as_raw();
    let is_trusted = |uid: u32| uid == us || Some(uid) == recorded;
    let refuse = |why: String| Err(Error::NotPrivate { path: path.to_owned(), why });
    // In a folder that everybody may write, a link to one of our own directories may be anybody's.
    if let Ok(link) = fs::symlink_metadata(path)
        && !is_trusted(link.uid())
        && link.uid() != 0
    {
        return refuse(format!("belongs to user {}; name one of your own with --session", link.uid()));
    }
    let Ok(directory) = fs::metadata(path) else { return Ok(()) };
    if !is_trusted(directory.uid()) {
        return refuse(format!("belongs to user {}; name one of your own with --session", directory.uid()));
    }
    match directory.mode() & 0o777 {
        mode if mode & 0o077 != 0 => refuse(format!("lets others in (mode {mode:04o}); chmod 700 {}", path.display())),
        _ => Ok(()),
    }
}

/// Never a directory that is there already: in a folder that everybody may write it could be anybody's.
fn fresh(folder: &Path) -> io::Result<PathBuf> {
    // 0: unknown.
    let start = proc::start_time(&proc::line("/proc/self/stat")).unwrap_or(0);
    let recorder = format!("{PREFIX}{}-{}-{start}", owner::namespace_of("self"), std::process::id());
    for n in 0..1000 {
        let path = folder.join(format!("{recorder}-{n}"));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Removes what killed recorders left.
fn remove_stale(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_stale) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The name says whose it is: PID namespace, pid and start time of the recorder. Those of another
/// namespace (a container that shares /dev/shm) may live where we cannot see them.
fn is_stale(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).map(|rest| rest.split('-').map(str::parse).collect());
    let Some(Ok::<Vec<u64>, _>(numbers)) = numbers else { return false };
    let [namespace, pid, start, _] = numbers[..] else { return false };
    let Ok(pid) = pid.try_into() else { return false };
    namespace == owner::namespace_of("self") && !proc::runs(pid, Some(start).filter(|start| *start != 0))
}

#[cfg(test)]
mod tests {
    use taut_skip::{Need, skip};

    use super::*;

    #[test]
    fn a_session_is_private_and_goes_with_its_recorder() {
        use std::os::unix::fs::PermissionsExt;
        let session = SessionDir::new(None).unwrap();
        let path = session.path().to_owned();
        assert!(path.is_absolute());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        drop(session);
        assert!(!path.exists());
    }

    #[test]
    fn a_user_s_directory_is_private_or_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("session");
        drop(SessionDir::new(Some(&wanted)).unwrap());
        assert_eq!(fs::metadata(&wanted).unwrap().mode() & 0o777, 0o700);
        let refusal = |path: &Path| SessionDir::new(Some(path)).err().map(|error| error.to_string());
        for mode in [0o701, 0o710, 0o722, 0o755, 0o777, 0o1777] {
            fs::set_permissions(&wanted, fs::Permissions::from_mode(mode)).unwrap();
            let said = refusal(&wanted).unwrap();
            assert!(said.contains("lets others in") && said.contains("chmod 700"), "{mode:o}: {said}");
        }
        fs::set_permissions(&wanted, fs::Permissions::from_mode(0o700)).unwrap();
        let link = folder.path().join("link");
        symlink(&wanted, &link).unwrap();
        assert_eq!((refusal(&wanted), refusal(&link)), (None, None));
        if !rustix::process::geteuid().is_root() {
            return skip(Need::Root, "only root can give a directory to somebody else");
        }
        std::os::unix::fs::lchown(&link, Some(12_345), None).unwrap();
        assert!(refusal(&link).unwrap().contains("belongs to user 12345"), "a link that somebody laid");
        std::os::unix::fs::chown(&wanted, Some(12_345), None).unwrap();
        assert!(refusal(&wanted).unwrap().contains("belongs to user 12345"));
        assert!(check_private(&wanted, Some(12_345)).is_ok(), "that of the process that is recorded");
        assert!(check_private(&wanted, Some(1)).is_err());
    }

    #[test]
    fn two_sessions_of_one_process_are_apart() {
        let [one, other] = [SessionDir::new(None).unwrap(), SessionDir::new(None).unwrap()];
        assert_ne!(one.path(), other.path());
    }

    #[test]
    fn a_user_s_directory_is_made_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("a/b");
        drop(SessionDir::new(Some(&wanted)).unwrap());
        assert!(wanted.exists());
    }

    #[test]
    fn without_shared_memory_the_next_folder_serves_and_it_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = SessionDir::fresh_in(&["/no/such".into(), folder.path().into()]).unwrap();
        assert!(session.path().starts_with(folder.path()));
        assert!(session.take_warning().unwrap().starts_with("/no/such: "));
        let error = SessionDir::fresh_in(&["/no/such".into(), "/nor/this".into()]).err().unwrap();
        assert!(error.to_string().starts_with("session directory /no/such: "));
    }

    #[test]
    fn only_what_a_dead_recorder_of_ours_left_is_removed() {
        let namespace = owner::namespace_of("self");
        let start = proc::start_time(&proc::line("/proc/self/stat")).unwrap();
        let (pid, other) = (std::process::id(), start + 1);
        let folder = tempfile::tempdir().unwrap();
        let stale = [format!("{PREFIX}{namespace}-{pid}-{other}-0"), format!("{PREFIX}{namespace}-4194304-1-3")];
        let kept = [
            format!("{PREFIX}{namespace}-{pid}-{start}-0"),
            format!("{PREFIX}{}-4194304-1-0", namespace + 1),
            format!("{PREFIX}{namespace}-4194304-1"),
            format!("{PREFIX}{namespace}-4194304-1-x"),
            "taut-session".into(),
        ];
        for name in stale.iter().chain(&kept) {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("1-0.taut"), "").unwrap();
        }
        remove_stale(folder.path());
        let is_there = |name: &String| folder.path().join(name).exists();
        assert!(!stale.iter().any(is_there) && kept.iter().all(is_there));
    }
}
