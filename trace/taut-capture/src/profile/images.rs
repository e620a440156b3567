//! Files whose code was sampled. A path is one of the process: in a container, or under another root, the host's file of that
//! path is another one. So a file is opened through the process while that lives, and held against the build id that the
//! kernel read when it was mapped.

use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io,
    os::unix::fs::MetadataExt,
    sync::{Arc, Mutex},
};

use object::Object as _;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use crate::plain;

/// Files, and folders of maps, that are held open.
pub const MOST_OPEN: usize = 512;
/// Longer than any build id.
pub const BUILD_ID_BYTES: usize = 20;

/// A mapped file by the kernel's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// Its build id, shorter ones with zeros behind.
    BuildId([u8; BUILD_ID_BYTES], u8),
    /// Its inode.
    Inode(u64),
    /// The kernel said nothing, as of what was mapped before.
    Unknown,
}

/// A file with code.
#[derive(Debug)]
pub struct Image {
    /// As its process knows it.
    pub path: Arc<str>,
    /// What to read symbols from, by one thread at a time: it has one place to read from.
    pub file: Result<Mutex<File>, NoFile>,
    /// To tell images of one path apart.
    number: usize,
}

/// Why there is nothing to read symbols from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFile {
    /// Its processes ended first, and what has its path here need not be it.
    Gone,
    /// It is not there.
    Missing,
    /// What has its path is another build.
    Differs,
    /// More were sampled than are held open.
    TooMany,
    /// It may not be read, or is no file.
    Refused,
}

impl fmt::Display for NoFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoFile::Gone => "its process ended before the file was opened",
            NoFile::Missing => "the file is not there",
            NoFile::Differs => "the file has another build id by now",
            NoFile::TooMany => "more files were sampled than are held open",
            NoFile::Refused => "the file may not be read",
        })
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Image) -> bool {
        self.number == other.number
    }
}

impl Eq for Image {}

impl std::hash::Hash for Image {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// All files of a recording.
#[derive(Default)]
pub struct Images {
    known: HashMap<(Arc<str>, Identity), Arc<Image>>,
    opened: usize,
    numbers: usize,
}

impl Images {
    /// The file that a process has mapped by that path. To be called while the process lives.
    pub fn of(&mut self, pid: i32, path: &Arc<str>, identity: Identity) -> Arc<Image> {
        // Without an identity the file itself is one.
        let opened = match identity {
            Identity::Unknown => Some(open(pid, path, identity, self.opened < MOST_OPEN)),
            _ => None,
        };
        let identity = match &opened {
            Some(Ok(file)) => file.metadata().map_or(identity, |metadata| Identity::Inode(metadata.ino())),
            _ => identity,
        };
        if let Some(image) = self.known.get(&(path.clone(), identity)) {
            // One that ended before its file was opened says nothing of the next process.
            if !matches!(image.file, Err(NoFile::Gone)) {
                return Arc::clone(image);
            }
        }
        let file = opened.unwrap_or_else(|| open(pid, path, identity, self.opened < MOST_OPEN));
        self.opened += usize::from(file.is_ok());
        self.numbers += 1;
        let image = Arc::new(Image { path: path.clone(), file: file.map(Mutex::new), number: self.numbers });
        self.known.insert((path.clone(), identity), Arc::clone(&image));
        image
    }
}

/// Opens what the process calls so; where it has ended, the host's file, if that is the same one.
fn open(pid: i32, path: &str, identity: Identity, may_hold: bool) -> Result<File, NoFile> {
    if !may_hold {
        return Err(NoFile::TooMany);
    }
    if !path.starts_with('/') {
        return Err(NoFile::Missing);
    }
    let (file, is_its_own) = match inside(pid, path) {
        Ok(file) => (file, true),
        // It has ended, or may not be looked into.
        Err(_) => (plain::open(path).map_err(|_| NoFile::Missing)?, false),
    };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(NoFile::Refused);
    }
    match identity {
        Identity::BuildId(id, length) => match build_id(&file) {
            Some(found) if found == id[..usize::from(length).min(BUILD_ID_BYTES)] => Ok(file),
            _ => Err(NoFile::Differs),
        },
        // Its own file of that path is taken for it: overlays have inodes of their own.
        _ if is_its_own => Ok(file),
        Identity::Inode(inode) if file.metadata().is_ok_and(|metadata| metadata.ino() == inode) => Ok(file),
        _ => Err(NoFile::Gone),
    }
}

/// The file by the process's own root; links in it lead nowhere else.
fn inside(pid: i32, path: &str) -> io::Result<File> {
    let root =
        openat(CWD, format!("/proc/{pid}/root"), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    match openat2(&root, path, flags, Mode::empty(), resolve) {
        // Before Linux 5.6.
        Err(rustix::io::Errno::NOSYS) => plain::open(format!("/proc/{pid}/root{path}")),
        opened => Ok(opened?.into()),
    }
}

fn build_id(file: &File) -> Option<Vec<u8>> {
    let cache = object::ReadCache::new(file);
    let id = object::File::parse(&cache).ok()?.build_id().ok()??.to_vec();
    Some(id[..id.len().min(BUILD_ID_BYTES)].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> (Arc<str>, Vec<u8>) {
        let path = std::env::current_exe().unwrap();
        let id = build_id(&File::open(&path).unwrap()).unwrap_or_default();
        (path.to_str().unwrap().into(), id)
    }

    fn identity(id: &[u8]) -> Identity {
        let mut bytes = [0; BUILD_ID_BYTES];
        bytes[..id.len()].copy_from_slice(id);
        Identity::BuildId(bytes, id.len() as u8)
    }

    #[test]
    fn a_file_of_another_build_is_not_read() {
        let (path, id) = own();
        assert!(!id.is_empty(), "the linker gives test programs build ids");
        let pid = std::process::id() as i32;
        assert!(open(pid, &path, identity(&id), true).is_ok());
        assert_eq!(open(pid, &path, identity(&[7; 20]), true).unwrap_err(), NoFile::Differs);
    }

    #[test]
    fn of_a_process_that_ended_the_host_s_file_is_taken_only_if_it_is_the_same() {
        let (path, id) = own();
        let inode = std::fs::metadata(&*path).unwrap().ino();
        let gone = i32::MAX;
        assert!(open(gone, &path, identity(&id), true).is_ok());
        assert!(open(gone, &path, Identity::Inode(inode), true).is_ok());
        assert_eq!(open(gone, &path, Identity::Inode(inode + 1), true).unwrap_err(), NoFile::Gone);
        assert_eq!(open(gone, &path, Identity::Unknown, true).unwrap_err(), NoFile::Gone);
        assert_eq!(open(gone, "/no/such/file", Identity::Unknown, true).unwrap_err(), NoFile::Missing);
    }

    #[test]
    fn one_file_is_opened_once_and_a_pipe_is_not_waited_for() {
        let (path, id) = own();
        let (pid, mut images) = (std::process::id() as i32, Images::default());
        let first = images.of(pid, &path, identity(&id));
        assert!(Arc::ptr_eq(&first, &images.of(pid, &path, identity(&id))));
        assert_ne!(*first, *images.of(pid, &path, identity(&[7; 20])));
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let of_pipe = images.of(pid, &pipe.to_str().unwrap().into(), Identity::Unknown);
        assert_eq!(of_pipe.file.as_ref().unwrap_err(), &NoFile::Refused);
    }
}
