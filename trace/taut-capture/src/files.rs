//! The files of one kind in a session directory: each is taken up once, told once where it cannot be, and removed once it is done with.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    listing::{Listing, Refused},
    shared::Shared,
};

/// A file of the session, mapped.
pub trait Mapped {
    fn shared(&self) -> &Shared;
}

/// Those that are taken up, and those that are not.
pub struct Files<F> {
    extension: &'static str,
    /// What is not recorded of a file that is refused: "its … not recorded".
    lost: &'static str,
    listing: Listing,
    taken: HashMap<PathBuf, F>,
    refused: Refused,
    /// Files that lost their name to another one.
    renamed: usize,
}

/// Paths that may be taken up.
#[derive(Default)]
pub struct Found {
    pub paths: Vec<PathBuf>,
    /// Whether the directory holds more than is looked at.
    pub is_cut: bool,
}

/// What becomes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// It is looked at again.
    Stays,
    /// Its process is gone and all of it is taken: it is removed.
    IsDone,
    /// Nothing of it is believed any more.
    IsRefused,
}

impl<F: Mapped> Files<F> {
    pub fn new(directory: &Path, extension: &'static str, lost: &'static str) -> Files<F> {
        let (listing, refused) = (Listing::new(directory.to_owned()), Refused::default());
        Files { extension, lost, listing, taken: HashMap::new(), refused, renamed: 0 }
    }

    pub fn directory(&self) -> &Path {
        self.listing.directory()
    }

    /// Files at a time.
    pub fn len(&self) -> usize {
        self.taken.len()
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

    /// Takes a file up.
    ///
    /// # Errors
    /// It could not be opened: what to tell of that, unless it was told before.
    pub fn take_up(&mut self, path: PathBuf, opened: io::Result<F>) -> Result<(), Option<String>> {
        let file = opened.map_err(|error| self.refused.refuse(path.clone(), &error, self.lost, &mut self.listing))?;
        self.refused.forget(&path);
        self.taken.insert(path, file);
        Ok(())
    }

    /// Decides of each file what becomes of it.
    pub fn sort_out(&mut self, mut decide: impl FnMut(&Path, &mut F) -> Then) {
        self.taken.retain(|path, file| {
            let then = decide(path, file);
            // One that cannot be removed stays in the directory and must not be found anew.
            if then == Then::IsRefused || then == Then::IsDone && fs::remove_file(path).is_err() {
                self.refused.insert(path.clone());
            }
            then == Then::Stays
        });
    }

    /// Files that could not be taken up so far, but may be.
    pub fn unread(&self) -> impl Iterator<Item = &Path> {
        self.refused.momentary()
    }

    /// Forgets what was refused and lists the directory again, so that it is told again.
    pub fn look_again(&mut self) {
        self.refused.clear();
        self.listing = Listing::new(self.listing.directory().to_owned());
    }
}
