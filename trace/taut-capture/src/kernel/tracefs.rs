//! The way to tracefs: where it is mounted, or a private mount of this process only. The system is not changed: no
//! mount point, no mode, no option of other tracing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Longer than any file of tracefs that is read at the start.
const READ_BYTES: usize = 16 * 1024;

/// A tracefs that can be reached, for as long as this value lives.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// Keeps a private mount alive; closing it unmounts.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// The existing mount if it may be used, else a private one (needs CAP_SYS_ADMIN).
    pub fn open() -> io::Result<Tracefs> {
        let mounts = crate::proc::text("/proc/self/mounts").unwrap_or_default();
        if let Some(root) = mount_points(&mounts).find(|root| fs::read_dir(root.join("events")).is_ok()) {
            return Ok(Tracefs { root, _mount: None });
        }
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        Ok(Tracefs { root: format!("/proc/self/fd/{}", mount.as_raw_fd()).into(), _mount: Some(mount) })
    }

    /// A folder that looks like one.
    #[cfg(test)]
    pub fn at(root: PathBuf) -> Tracefs {
        Tracefs { root, _mount: None }
    }

    /// A path inside.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside)
    }

    /// A file's whole text. Read in large pieces: `events/header_page` gives its beginning to a
    /// small read and then claims to be at its end.
    pub fn read(&self, inside: &str) -> io::Result<String> {
        let read = || {
            let (mut file, mut text, mut piece) = (File::open(self.path(inside))?, Vec::new(), [0; READ_BYTES]);
            loop {
                match file.read(&mut piece)? {
                    0 => break String::from_utf8(text).map_err(io::Error::other),
                    length => text.extend_from_slice(&piece[..length]),
                }
            }
        };
        read().map_err(|error| named(inside, error))
    }

    /// Writes a setting.
    pub fn write(&self, inside: &str, text: &str) -> io::Result<()> {
        let write = || OpenOptions::new().append(true).open(self.path(inside))?.write_all(text.as_bytes());
        write().map_err(|error| named(inside, error))
    }

    /// Opens a file for reading without blocking.
    pub fn open_raw(&self, inside: &str) -> io::Result<File> {
        use std::os::unix::fs::OpenOptionsExt;
        let open = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(self.path(inside));
        open.map_err(|error| named(inside, error))
    }

    /// Names in a folder, sorted.
    pub fn list(&self, inside: &str) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.path(inside)).map_err(|error| named(inside, error))?;
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    }
}

/// Says which file an error is about.
fn named(inside: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("tracefs {inside}: {error}"))
}

fn mount_points(mounts: &str) -> impl Iterator<Item = PathBuf> {
    mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (_, place, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == "tracefs").then(|| PathBuf::from(place.replace("\\040", " ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tracefs_mounts_are_taken() {
        let mounts = "proc /proc proc rw 0 0\ntracefs /sys/kernel/tracing tracefs rw 0 0\ndebugfs /sys/kernel/debug debugfs rw 0 0\n";
        assert_eq!(mount_points(mounts).collect::<Vec<_>>(), [PathBuf::from("/sys/kernel/tracing")]);
        assert_eq!(mount_points("short line\n\n").count(), 0);
    }
}
