//! The files of a directory, listed only when there may be new ones.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

/// A directory's time stamp is of the kernel's coarse clock, and two changes within one of its ticks look like one.
const SETTLED: Duration = Duration::from_millis(100);

/// A directory that is looked at again and again.
pub struct Listing {
    directory: PathBuf,
    /// The directory's time of change when it was last listed, if that was long enough before.
    settled: Option<SystemTime>,
}

impl Listing {
    pub fn new(directory: PathBuf) -> Listing {
        Listing { directory, settled: None }
    }

    /// Its paths; none when nothing was added or removed since the last time.
    pub fn paths(&mut self) -> Vec<PathBuf> {
        let changed = fs::metadata(&self.directory).and_then(|metadata| metadata.modified()).ok();
        if changed.is_some() && changed == self.settled {
            return Vec::new();
        }
        let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        self.settled = changed.filter(|_| age.is_some_and(|age| age >= SETTLED));
        fs::read_dir(&self.directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }
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
        // However fresh, a change is seen: the directory is not yet settled.
        assert_eq!(listing.paths(), std::slice::from_ref(&file));
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let change = |to| fs::File::open(folder.path()).unwrap().set_modified(to).unwrap();
        change(at(1_000));
        assert_eq!(listing.paths(), std::slice::from_ref(&file));
        assert_eq!(listing.paths(), [] as [PathBuf; 0]);
        change(at(1_001));
        assert_eq!(listing.paths(), [file]);
    }

    #[test]
    fn a_directory_that_is_gone_has_no_files() {
        let mut listing = Listing::new("/no/such".into());
        assert_eq!(listing.paths(), [] as [PathBuf; 0]);
    }
}
