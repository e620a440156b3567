//! The files of a directory, listed only when there may be new ones.

use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::DirEntryExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// A directory's time stamp is of the kernel's coarse clock, and two changes within one of its ticks look like one.
const SETTLED: Duration = Duration::from_millis(100);

/// Entries that are looked at; a session has no more, but another program may make them.
const ENTRIES_MAX: usize = 1 << 15;

/// A directory that is looked at again and again.
pub struct Listing {
    directory: PathBuf,
    /// The directory's time of change when it was last listed, if that was long enough before.
    settled: Option<SystemTime>,
}

/// What a directory holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Listed {
    /// With the inode that the directory has of each.
    pub paths: HashMap<PathBuf, u64>,
    /// Whether there are more.
    pub is_cut: bool,
}

impl Listing {
    pub fn new(directory: PathBuf) -> Listing {
        Listing { directory, settled: None }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its paths; `None` when nothing was added or removed since the last time.
    ///
    /// # Errors
    /// The directory is gone, or cannot be listed now; the next look lists it.
    pub fn look(&mut self) -> io::Result<Option<Listed>> {
        let changed = fs::metadata(&self.directory)?.modified().ok();
        if changed.is_some() && changed == self.settled {
            return Ok(None);
        }
        self.settled = None;
        let mut entries = fs::read_dir(&self.directory)?;
        let some = entries.by_ref().take(ENTRIES_MAX);
        let paths = some.map(|entry| entry.map(|entry| (entry.path(), entry.ino()))).collect::<io::Result<_>>()?;
        let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        self.settled = changed.filter(|_| age.is_some_and(|age| age >= SETTLED));
        Ok(Some(Listed { paths, is_cut: entries.next().is_some() }))
    }
}

/// Files of a directory that could not be taken up; each is reported once.
#[derive(Default)]
pub struct Refused {
    /// Whether they are refused for good.
    files: HashMap<PathBuf, bool>,
}

impl Refused {
    /// Whether that file is not looked at again.
    pub fn contains(&self, path: &Path) -> bool {
        self.files.get(path).is_some_and(|is_final| *is_final)
    }

    /// Does not look at it again.
    pub fn insert(&mut self, path: PathBuf) {
        self.files.insert(path, true);
    }

    /// Forgets what is no longer listed.
    pub fn keep(&mut self, listed: &HashMap<PathBuf, u64>) {
        self.files.retain(|path, _| listed.contains_key(path));
    }

    /// It was taken up.
    pub fn forget(&mut self, path: &Path) {
        self.files.remove(path);
    }

    /// Those that may still be taken up.
    pub fn momentary(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().filter(|(_, is_final)| !**is_final).map(|(path, _)| path.as_path())
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.files.clear();
    }

    /// A file that could not be opened, with what is lost by it. It is tried again where nothing is wrong with the file
    /// itself: then the directory has to be listed again.
    pub fn refuse(&mut self, path: PathBuf, error: &io::Error, lost: &str, listing: &mut Listing) -> Option<String> {
        let is_momentary = is_momentary(error);
        if is_momentary {
            listing.settled = None;
        }
        let lasts = if is_momentary { " while that lasts" } else { "" };
        let text = format!("{}: {error}; its {lost} not recorded{lasts}", path.display());
        (self.files.insert(path, !is_momentary) != Some(!is_momentary)).then_some(text)
    }
}

/// Whether what could not be opened may be another time.
fn is_momentary(error: &io::Error) -> bool {
    use libc::{EACCES, EAGAIN, EINTR, EIO, EMFILE, ENFILE, ENOMEM, EPERM, ESTALE};
    let momentary = [EACCES, EAGAIN, EINTR, EIO, EMFILE, ENFILE, ENOMEM, EPERM, ESTALE];
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error().is_some_and(|errno| momentary.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_listed_and_what_is_settled_is_not_listed_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut listing = Listing::new(folder.path().to_owned());
        let file = folder.path().join("a");
        fs::write(&file, "").unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&file).unwrap());
        let all = || Some(Listed { paths: HashMap::from([(file.clone(), inode)]), is_cut: false });
        // However fresh, a change is seen: the directory is not yet settled.
        assert_eq!(listing.look().unwrap(), all());
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let change = |to| fs::File::open(folder.path()).unwrap().set_modified(to).unwrap();
        change(at(1_000));
        assert_eq!(listing.look().unwrap(), all());
        assert_eq!(listing.look().unwrap(), None);
        change(at(1_001));
        assert_eq!(listing.look().unwrap(), all());
    }

    #[test]
    fn a_directory_that_is_gone_is_an_error() {
        let mut listing = Listing::new("/no/such".into());
        assert_eq!(listing.look().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
