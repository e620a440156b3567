//! The session directory of a recording: made fresh, and removed also when its recorder was killed.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use crate::{Error, proc};

/// Where rings live: a tmpfs, so that stamps never wait for a disk.
const SHARED_MEMORY: &str = "/dev/shm";

/// A directory that goes when this goes, unless it was the user's.
pub struct SessionDir {
    path: PathBuf,
    ours: bool,
}

impl SessionDir {
    /// The user's directory (made if missing), or a fresh private one.
    pub fn new(wanted: Option<&Path>) -> Result<SessionDir, Error> {
        let (path, ours) = match wanted {
            Some(path) => (path.to_owned(), false),
            None => {
                remove_stale();
                (fresh(), true)
            }
        };
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|source| Error::Session { path: path.clone(), source })?;
        Ok(SessionDir { path, ours })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SessionDir {
    fn drop(&mut self) {
        if self.ours {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The name carries the recorder's pid and start time, so that the next run can tell whether it still lives.
fn fresh() -> PathBuf {
    let pid = std::process::id();
    let start = proc::start_time(&proc::line("/proc/self/stat")).unwrap_or(0);
    let root = if Path::new(SHARED_MEMORY).is_dir() { PathBuf::from(SHARED_MEMORY) } else { std::env::temp_dir() };
    root.join(format!("taut-session-{pid}-{start}"))
}

fn remove_stale() {
    for entry in fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((pid, start)) = name.to_str().and_then(|n| n.strip_prefix("taut-session-")?.split_once('-')) else {
            continue;
        };
        let lives = proc::start_time(&proc::line(format!("/proc/{pid}/stat"))).is_some_and(|s| s.to_string() == start);
        if !lives {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
