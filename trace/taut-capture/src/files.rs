//! The files of one kind in a session directory: each is taken up once, told once where it cannot be, and removed once it is done with.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use taut_recording::LostWhat;

use crate::{
    listing::{Listing, Refused, Uncounted},
    shared::Shared,
};

/// A file of the session, mapped.
pub trait Mapped {
    fn shared(&self) -> &Shared;

    /// What is lost without it.
    fn holds(&self) -> LostWhat;
}

/// Those that are taken up, and those that are not.
pub struct Files<F> {
    extension: &'static str,
    /// What is not recorded of a file that is refused; in words: "its … not recorded".
    lost: (LostWhat, &'static str),
    listing: Listing,
    taken: HashMap<PathBuf, F>,
    refused: Refused,
    /// Files that lost their name to another one.
    renamed: usize,
    /// Files that were taken up so far.
    found: usize,
    /// That there are too many was told.
    is_full_told: bool,
}

/// Paths that may be taken up.
#[derive(Default)]
pub struct Found {
    pub paths: Vec<PathBuf>,
    /// Whether the directory holds more than is looked at.
    pub is_cut: bool,
}

/// What becomes of a file.
#[derive(PartialEq, Eq, Debug)]
pub enum Then {
    /// It is looked at again.
    Stays,
    /// Its process is gone and all of it is taken: it is removed.
    IsDone,
    /// Nothing of it is believed any more, and why.
    IsRefused(String),
}

impl<F: Mapped> Files<F> {
    pub fn new(directory: &Path, extension: &'static str, lost: (LostWhat, &'static str)) -> Files<F> {
        let (listing, refused) = (Listing::new(directory.to_owned()), Refused::default());
        Files { extension, lost, listing, taken: HashMap::new(), refused, renamed: 0, found: 0, is_full_told: false }
    }

    pub fn directory(&self) -> &Path {
        self.listing.directory()
    }

    /// Files at a time.
    pub fn len(&self) -> usize {
        self.taken.len()
    }

    /// How many were taken up so far, and how many are open: both are as before when none is left to find.
    pub fn known(&self) -> [usize; 2] {
        [self.found, self.taken.len()]
    }

    pub fn iter(&self) -> impl Iterator<Item = &F> {
        self.taken.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut F> {
        self.taken.values_mut()
    }

    /// Those of the directory that may be taken up: new ones, and refused ones that may have got better. A file whose name
    /// another one has now, as after an exec of its process, goes on under a name that no file has.
    ///
    /// # Errors
    /// The directory is gone, or cannot be listed now.
    pub fn look(&mut self) -> io::Result<Found> {
        let Some(listed) = self.listing.look()? else { return Ok(Found::default()) };
        // What is no longer there need not be remembered.
        self.refused.keep(&listed.paths);
        let mut paths = Vec::new();
        for (path, inode) in listed.paths {
            if path.extension().is_none_or(|extension| extension != self.extension) || self.refused.contains(&path) {
                continue;
            }
            match self.taken.remove(&path) {
                Some(file) if file.shared().has_name(&path, inode) => {
                    self.taken.insert(path, file);
                    continue;
                }
                Some(file) => {
                    self.taken.insert(path.with_extension(format!("removed-{}", self.renamed)), file);
                    self.renamed += 1;
                }
                None => {}
            }
            paths.push(path);
        }
        Ok(Found { paths, is_cut: listed.is_cut })
    }

    /// Looks for new files and takes them up, so many at a time: what they are called, and what becomes of the others, in words.
    pub fn discover(
        &mut self,
        (most, name, others): (usize, &str, &str),
        mut open: impl FnMut(&Path) -> io::Result<F>,
        refused: &mut Vec<String>,
    ) {
        // That the directory is gone is told by what looks for rings.
        for path in self.look().unwrap_or_default().paths {
            if self.len() >= most {
                let why = format!("the session has more than {most} {name} at a time");
                self.wait(path, &why);
                if !std::mem::replace(&mut self.is_full_told, true) {
                    refused.push(format!("{why}: {others}"));
                }
                continue;
            }
            let opened = open(&path);
            refused.extend(self.take_up(path, opened).err().flatten());
        }
    }

    /// Takes a file up.
    ///
    /// # Errors
    /// It could not be opened: what to tell of that, unless it was told before.
    pub fn take_up(&mut self, path: PathBuf, opened: io::Result<F>) -> Result<(), Option<String>> {
        let file = opened.map_err(|error| self.refused.refuse(path.clone(), &error, self.lost, &mut self.listing))?;
        self.refused.forget(&path);
        self.taken.insert(path, file);
        self.found += 1;
        Ok(())
    }

    /// There is no room for a file now; whether it did not wait before. It is looked at again when another one goes.
    pub fn wait(&mut self, path: PathBuf, why: &str) -> bool {
        let (what, lost) = self.lost;
        let why = format!("{}: {why}; its {lost} not recorded", path.display());
        self.refused.wait(path, what, why)
    }

    /// Decides of each file what becomes of it.
    pub fn sort_out(&mut self, mut decide: impl FnMut(&Path, &mut F) -> Then) {
        let before = self.taken.len();
        self.taken.retain(|path, file| match decide(path, file) {
            Then::Stays => true,
            Then::IsDone => {
                // One that cannot be removed stays in the directory and must not be found anew.
                if fs::remove_file(path).is_err() {
                    self.refused.done(path.clone());
                }
                false
            }
            Then::IsRefused(why) => {
                self.refused.lose(path.clone(), file.holds(), why);
                false
            }
        });
        if self.taken.len() < before && self.refused.has_waiting() {
            self.listing.look_again();
        }
    }

    /// Files that are given up since the last call.
    pub fn take_lost(&mut self) -> Vec<Uncounted> {
        self.refused.take_fresh()
    }

    /// Files that could not be taken up so far, but may be.
    pub fn unread(&self) -> Vec<Uncounted> {
        self.refused.waiting().cloned().collect()
    }

    /// Files of which nothing is recorded now.
    pub fn missing(&self) -> Vec<Uncounted> {
        self.refused.waiting().chain(self.refused.lost()).cloned().collect()
    }

    /// Forgets what was refused and lists the directory again, so that it is told again.
    pub fn look_again(&mut self) {
        self.refused.clear();
        self.is_full_told = false;
        self.listing = Listing::new(self.listing.directory().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    struct Plain(Shared);

    impl Mapped for Plain {
        fn shared(&self) -> &Shared {
            &self.0
        }

        fn holds(&self) -> LostWhat {
            LostWhat::RosEvents
        }
    }

    #[test]
    fn that_there_are_too_many_is_told_once_until_all_is_told_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new(folder.path(), "ros", (LostWhat::RosEvents, "names are"));
        let told = |files: &mut Files<Plain>| {
            let mut refused = Vec::new();
            files.discover((1, "processes", "the others wait"), |path| Shared::open(path).map(Plain), &mut refused);
            (files.len(), refused)
        };
        let full = || (1, vec!["the session has more than 1 processes at a time: the others wait".to_owned()]);
        for name in ["1-0.ros", "2-0.ros", "3-0.ros"] {
            fs::write(folder.path().join(name), [0; 4096]).unwrap();
        }
        assert_eq!(told(&mut files), full());
        // The directory is listed again while it has just changed.
        assert_eq!(told(&mut files), (1, vec![]));
        files.look_again();
        assert_eq!(told(&mut files), full());
    }

    #[test]
    fn what_finds_no_room_waits_until_another_file_goes() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["1-0.taut", "2-0.taut"].map(|name| folder.path().join(name));
        for path in [&one, &other] {
            fs::write(path, [0; 4096]).unwrap();
        }
        // Long ago, so that the directory need not be listed again.
        let long_ago = SystemTime::now() - Duration::from_secs(1000);
        fs::File::open(folder.path()).unwrap().set_modified(long_ago).unwrap();
        let mut files = Files::new(folder.path(), "taut", (LostWhat::Stamps, "stamps are"));
        assert_eq!(files.look().unwrap().paths.len(), 2);
        files.take_up(one.clone(), Shared::open(&one).map(Plain)).unwrap();
        assert!(files.wait(other.clone(), "no room") && !files.wait(other.clone(), "no room"));
        assert_eq!((files.unread().len(), files.known()), (1, [1, 1]));
        assert!(files.unread()[0].why.ends_with("2-0.taut: no room; its stamps are not recorded"));
        assert!(files.look().unwrap().paths.is_empty(), "nothing has changed");
        files.sort_out(|_, _| Then::IsRefused("it was cut".to_owned()));
        let lost = Uncounted { what: LostWhat::RosEvents, place: "1-0".to_owned(), why: "it was cut".to_owned() };
        assert_eq!(files.take_lost(), [lost]);
        assert_eq!(files.missing().len(), 2);
        assert_eq!(files.look().unwrap().paths, std::slice::from_ref(&other));
        files.take_up(other.clone(), Shared::open(&other).map(Plain)).unwrap();
        assert_eq!((files.unread(), files.known()), (vec![], [2, 1]));
    }
}
