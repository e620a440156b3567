//! The files of a directory, listed only when there may be new ones.

use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::DirEntryExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use taut_recording::LostWhat;

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

    /// The next look lists it, whether it changed or not.
    pub fn look_again(&mut self) {
        self.settled = None;
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

/// A place of whose losses the number is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncounted {
    /// What is lost there.
    pub what: LostWhat,
    /// Where.
    pub place: String,
    /// Why, in a sentence.
    pub why: String,
}

impl Uncounted {
    /// Of a file of the session.
    pub fn of(path: &Path, what: LostWhat, why: String) -> Uncounted {
        let place = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Uncounted { what, place, why }
    }
}

/// Files of a directory that are not taken up; each is reported once.
#[derive(Default)]
pub struct Refused {
    files: HashMap<PathBuf, State>,
    /// Those that are given up since they were asked for last.
    fresh: Vec<Uncounted>,
}

enum State {
    /// It is tried again: what was in the way may be gone.
    Waits(Uncounted),
    /// It is not looked at again: what its process writes is lost.
    IsLost(Uncounted),
    /// It is not looked at again: all of it was taken.
    IsDone,
}

impl Refused {
    /// Whether that file is not looked at again.
    pub fn contains(&self, path: &Path) -> bool {
        self.files.get(path).is_some_and(|state| !matches!(state, State::Waits(_)))
    }

    /// Does not look at it again, since all of it was taken.
    pub fn done(&mut self, path: PathBuf) {
        self.files.insert(path, State::IsDone);
    }

    /// Does not look at it again, and what its process writes is lost.
    pub fn lose(&mut self, path: PathBuf, what: LostWhat, why: String) {
        let lost = Uncounted::of(&path, what, why);
        self.fresh.push(lost.clone());
        self.files.insert(path, State::IsLost(lost));
    }

    /// Looks at it again another time; whether it did not wait before.
    pub fn wait(&mut self, path: PathBuf, what: LostWhat, why: String) -> bool {
        let waits = State::Waits(Uncounted::of(&path, what, why));
        !matches!(self.files.insert(path, waits), Some(State::Waits(_)))
    }

    /// Forgets what is no longer listed. What waited until then is lost.
    pub fn keep(&mut self, listed: &HashMap<PathBuf, u64>) {
        let fresh = &mut self.fresh;
        self.files.retain(|path, state| {
            let is_listed = listed.contains_key(path);
            if let (false, State::Waits(lost)) = (is_listed, state) {
                fresh.push(lost.clone());
            }
            is_listed
        });
    }

    /// It was taken up.
    pub fn forget(&mut self, path: &Path) {
        self.files.remove(path);
    }

    /// Whether some may still be taken up.
    pub fn has_waiting(&self) -> bool {
        self.files.values().any(|state| matches!(state, State::Waits(_)))
    }

    /// Those that may still be taken up.
    pub fn waiting(&self) -> impl Iterator<Item = &Uncounted> {
        self.files.values().filter_map(|state| match state {
            State::Waits(lost) => Some(lost),
            State::IsLost(_) | State::IsDone => None,
        })
    }

    /// Those that are given up.
    pub fn lost(&self) -> impl Iterator<Item = &Uncounted> {
        self.files.values().filter_map(|state| match state {
            State::IsLost(lost) => Some(lost),
            State::Waits(_) | State::IsDone => None,
        })
    }

    /// Those that were given up since the last call.
    pub fn take_fresh(&mut self) -> Vec<Uncounted> {
        std::mem::take(&mut self.fresh)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.files.clear();
        self.fresh.clear();
    }

    /// A file that could not be opened: what is lost by it, `what` and in words. It is tried again where nothing is wrong with the
    /// file itself: then the directory has to be listed again.
    pub fn refuse(
        &mut self,
        path: PathBuf,
        error: &io::Error,
        (what, lost): (LostWhat, &str),
        listing: &mut Listing,
    ) -> Option<String> {
        let why = format!("{}: {error}; its {lost} not recorded", path.display());
        if is_momentary(error) {
            listing.look_again();
            return self.wait(path, what, why.clone()).then(|| format!("{why} while that lasts"));
        }
        self.lose(path, what, why.clone());
        Some(why)
    }
}

/// Whether what could not be opened may be another time.
fn is_momentary(error: &io::Error) -> bool {
    use libc::{EACCES, EAGAIN, EINTR, EIO, EMFILE, ENFILE, ENOLCK, ENOMEM, EPERM, ESTALE};
    let momentary = [EACCES, EAGAIN, EINTR, EIO, EMFILE, ENFILE, ENOLCK, ENOMEM, EPERM, ESTALE];
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
    fn what_is_refused_waits_or_is_lost_and_each_loss_is_given_out_once() {
        let (mut refused, mut listing) = (Refused::default(), Listing::new("/no/such".into()));
        let mut refuse = |refused: &mut Refused, name: &str, error: io::Error| {
            refused.refuse(name.into(), &error, (LostWhat::Stamps, "stamps are"), &mut listing)
        };
        let places = |of: Vec<Uncounted>| of.into_iter().map(|lost| lost.place).collect::<Vec<_>>();
        for errno in [libc::EMFILE, libc::ENOLCK, libc::EACCES, libc::ESTALE] {
            let error = || io::Error::from_raw_os_error(errno);
            let told = refuse(&mut refused, "1-0.taut", error()).unwrap();
            assert!(told.ends_with("its stamps are not recorded while that lasts"), "{told}");
            assert_eq!(refuse(&mut refused, "1-0.taut", error()), None, "told once");
            assert!(!refused.contains(Path::new("1-0.taut")) && refused.take_fresh().is_empty(), "{errno}");
            let why = refused.waiting().next().unwrap().why.clone();
            assert!(why.ends_with("its stamps are not recorded"), "{why}");
            refused.forget(Path::new("1-0.taut"));
        }
        let told = refuse(&mut refused, "2-0.taut", io::ErrorKind::InvalidData.into()).unwrap();
        assert!(told.ends_with("its stamps are not recorded") && refused.contains(Path::new("2-0.taut")), "{told}");
        assert_eq!(places(refused.take_fresh()), ["2-0"]);
        assert!(refused.take_fresh().is_empty() && refused.lost().count() == 1);
        // One that waited and is no longer there never came; one that was taken whole lacks nothing.
        refuse(&mut refused, "3-0.taut", io::Error::from_raw_os_error(libc::EMFILE));
        refused.done("4-0.taut".into());
        assert!(refused.has_waiting());
        refused.keep(&HashMap::new());
        assert_eq!(places(refused.take_fresh()), ["3-0"]);
        assert!(!refused.has_waiting() && refused.lost().count() == 0);
    }

    #[test]
    fn a_directory_that_is_gone_is_an_error() {
        let mut listing = Listing::new("/no/such".into());
        assert_eq!(listing.look().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
