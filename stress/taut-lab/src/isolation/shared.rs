//! Shared memory that processes of the lab leave behind: files in /dev/shm that one of them had mapped, or that a
//! middleware named, and that no process maps any more. A middleware that finds its dead predecessor's would use it.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::mine::{Mine, entries, is_another_at_work, pids};

const SHARED: &str = "/dev/shm/";
/// The list of what processes of the lab had mapped, in the lab's folder, for the next lab.
const MAPPED: &str = "mapped";
/// How names begin that middleware gives in shared memory: iceoryx2, iceoryx (that of CycloneDDS, too), Fast DDS. What
/// was made and not yet mapped when its maker was killed is known by them only.
const NAMED: [&str; 5] = ["iox2_", "iceoryx", "fastrtps_", "fastdds_", "sem.fastrtps_"];
/// Where iceoryx2 keeps files beside its shared memory: who is there, and which services.
const ICEORYX2: &str = "/tmp/iceoryx2";
/// What was made in shared memory may be mapped a little later: so many looks after a change look again.
const AFTER: u32 = 3;

/// What processes of the lab made in shared memory, written down as it is found: a lab may be killed at any moment.
pub(crate) struct Made {
    /// The lab's.
    mark: String,
    since: SystemTime,
    /// In the lab's folder.
    list: PathBuf,
    files: BTreeSet<PathBuf>,
    changed: Option<SystemTime>,
    looks_left: u32,
}

impl Made {
    /// Nothing yet; older files than `since` are others'.
    pub fn new(mine: &Mine, since: SystemTime) -> Made {
        let (mark, list) = (mine.mark().to_owned(), mine.folder().join(MAPPED));
        Made { mark, since, list, files: BTreeSet::new(), changed: None, looks_left: 0 }
    }

    /// Looks at what these processes have mapped, unless nothing was made for a while.
    pub fn look(&mut self, pids: impl Iterator<Item = u32>) -> io::Result<()> {
        let changed = fs::metadata(SHARED).and_then(|folder| folder.modified()).ok();
        if changed != self.changed {
            (self.changed, self.looks_left) = (changed, AFTER);
        }
        if self.looks_left > 0 {
            self.looks_left -= 1;
            let before = self.files.len();
            self.files.extend(mapped(pids).into_iter().filter(|file| is_new(file, self.since)));
            if self.files.len() > before {
                let lines: String = self.files.iter().map(|file| format!("{}\n", file.display())).collect();
                fs::write(&self.list, lines)?;
            }
        }
        Ok(())
    }

    /// Removes what is left once the processes have ended, and says what that was.
    pub fn remove(&self) -> Vec<PathBuf> {
        remove(self.files.clone(), self.since, &self.mark)
    }
}

/// Removes what a lab that died had left, by its folder.
pub(crate) fn remove_of(folder: &Path) -> Vec<PathBuf> {
    let since = fs::metadata(folder).and_then(|folder| folder.created());
    let text = fs::read_to_string(folder.join(MAPPED)).unwrap_or_default();
    let noted = text.lines().filter(|line| line.starts_with(SHARED)).map(PathBuf::from).collect();
    since.map_or_else(|_| Vec::new(), |since| remove(noted, since, ""))
}

/// What is known by its name only could be another lab's: it is left alone while there is one.
fn remove(mut files: BTreeSet<PathBuf>, since: SystemTime, mark: &str) -> Vec<PathBuf> {
    let named = named(Path::new(SHARED), since);
    let registry = below(Path::new(ICEORYX2)).iter().any(|path| is_new(path, since));
    let alone = (!named.is_empty() || registry) && !is_another_at_work(mark);
    files.extend(named.into_iter().filter(|_| alone));
    let mut removed = remove_unused(&files, pids());
    if alone {
        removed.extend(remove_registry(Path::new(ICEORYX2), &format!("{SHARED}{}", NAMED[0]), since));
    }
    removed
}

/// What a middleware has made since then, by its name.
fn named(folder: &Path, since: SystemTime) -> BTreeSet<PathBuf> {
    let is_named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        NAMED.iter().any(|prefix| name.starts_with(prefix))
    };
    entries(folder).filter(is_named).filter(|path| is_new(path, since)).collect()
}

/// Whether it is this user's and was made since then: an older one is not of this lab.
fn is_new(path: &Path, since: SystemTime) -> bool {
    let mine = rustix::process::geteuid().as_raw();
    path.symlink_metadata().is_ok_and(|meta| meta.uid() == mine && meta.created().is_ok_and(|at| at >= since))
}

fn mapped(pids: impl Iterator<Item = u32>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for pid in pids {
        // The paths of others may be any bytes.
        let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        let paths = maps.lines().filter_map(|line| line.find(SHARED).map(|at| &line[at..]));
        found.extend(paths.filter(|path| !path.ends_with(" (deleted)")).map(PathBuf::from));
    }
    found
}

/// Removes those that are still there and that no process has mapped, and returns their names.
fn remove_unused(files: &BTreeSet<PathBuf>, everybody: impl Iterator<Item = u32>) -> Vec<PathBuf> {
    let left: BTreeSet<PathBuf> = files.iter().filter(|file| file.is_file()).cloned().collect();
    if left.is_empty() {
        return Vec::new();
    }
    let used = mapped(everybody);
    left.difference(&used).filter(|file| fs::remove_file(file).is_ok()).cloned().collect()
}

/// iceoryx2's files since then, once no process has its memory (files that begin so) mapped or one of its files open.
fn remove_registry(root: &Path, memory: &str, since: SystemTime) -> Vec<PathBuf> {
    let new: Vec<PathBuf> = below(root).into_iter().filter(|path| is_new(path, since)).collect();
    let in_use = || {
        let opened = |pid: u32| {
            let folder = PathBuf::from(format!("/proc/{pid}/fd"));
            entries(&folder).filter_map(|link| fs::read_link(link).ok()).any(|file| file.starts_with(root))
        };
        pids().any(opened) || mapped(pids()).iter().any(|path| path.to_string_lossy().starts_with(memory))
    };
    if new.is_empty() || in_use() {
        return Vec::new();
    }
    // Files before the folders that hold them.
    let gone = |path: &&PathBuf| if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }.is_ok();
    new.iter().rev().filter(gone).cloned().collect()
}

/// Everything below a folder, each folder before what is in it.
fn below(folder: &Path) -> Vec<PathBuf> {
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    let mut found = Vec::new();
    for path in entries(folder) {
        let inside = if is_folder(&path) { below(&path) } else { Vec::new() };
        found.push(path);
        found.extend(inside);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A map of a file of a test; it goes with this.
    struct Mapped(*mut std::ffi::c_void);

    impl Mapped {
        fn of(path: &Path) -> Mapped {
            let file = fs::OpenOptions::new().read(true).open(path).unwrap();
            let (read, shared) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
            // SAFETY: a new map of a file of 4096 bytes, at an address of the kernel's choice.
            Mapped(unsafe { rustix::mm::mmap(std::ptr::null_mut(), 4096, read, shared, &file, 0) }.unwrap())
        }
    }

    impl Drop for Mapped {
        fn drop(&mut self) {
            // SAFETY: the map from above, of which nothing else is left.
            unsafe { rustix::mm::munmap(self.0, 4096) }.unwrap();
        }
    }

    #[test]
    fn only_what_nobody_maps_any_more_is_removed() {
        let me = std::process::id();
        let before = SystemTime::now() - Duration::from_secs(1);
        let name = |what: &str| PathBuf::from(format!("{SHARED}taut-lab-test-{me}-{what}"));
        let (used, left) = (name("used"), name("left"));
        [&used, &left].into_iter().for_each(|path| fs::write(path, [0; 4096]).unwrap());
        let map = Mapped::of(&used);
        let mine = Mine::new().unwrap();
        let mut made = Made::new(&mine, before);
        made.look([me].into_iter()).unwrap();
        assert!(made.files.contains(&used) && !made.files.contains(&left), "{:?}", made.files);
        assert!(fs::read_to_string(mine.folder().join(MAPPED)).unwrap().contains(used.to_str().unwrap()));
        let mut later = Made::new(&mine, SystemTime::now() + Duration::from_secs(60));
        later.look([me].into_iter()).unwrap();
        assert!(later.files.is_empty(), "what is older is not its own");

        let both = BTreeSet::from([used.clone(), left.clone(), name("never")]);
        assert_eq!(remove_unused(&both, [me].into_iter()), std::slice::from_ref(&left));
        assert!(used.exists() && !left.exists());
        drop(map);
        assert_eq!(remove_unused(&both, [me].into_iter()), [used]);
    }

    #[test]
    fn what_a_middleware_named_is_known_without_a_map() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("iox2_before"), "").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let since = SystemTime::now();
        std::thread::sleep(Duration::from_millis(20));
        for name in ["iox2_x.data", "fastrtps_7", "sem.fastrtps_7_mutex", "other"] {
            fs::write(path(name), "").unwrap();
        }
        let found = named(folder.path(), since);
        assert_eq!(found, ["fastrtps_7", "iox2_x.data", "sem.fastrtps_7_mutex"].map(path).into());
    }

    #[test]
    fn a_registry_goes_when_nobody_uses_it_and_what_was_there_before_stays() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir(path("services")).unwrap();
        fs::write(path("services/old"), "").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let since = SystemTime::now();
        std::thread::sleep(Duration::from_millis(20));
        fs::create_dir_all(path("nodes/7")).unwrap();
        let held = fs::File::create(path("nodes/7/lock")).unwrap();
        assert!(remove_registry(root.path(), "/no/memory", since).is_empty(), "somebody has a file of it open");
        drop(held);
        let removed = remove_registry(root.path(), "/no/memory", since);
        assert_eq!(removed, [path("nodes/7/lock"), path("nodes/7"), path("nodes")]);
        assert!(path("services/old").exists());
    }
}
