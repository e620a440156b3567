//! Shared memory that processes of the lab leave behind: files in /dev/shm that one of them had mapped and nobody maps
//! any more. A middleware that finds its dead predecessor's would talk to it.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

const SHARED: &str = "/dev/shm/";
/// The list of what processes of the lab had mapped, in the lab's folder, for the next lab.
pub(crate) const MAPPED: &str = "mapped";

/// The files in shared memory that these processes have mapped and that were made since then: an older one is not theirs.
pub(crate) fn made(pids: impl Iterator<Item = u32>, since: SystemTime) -> BTreeSet<PathBuf> {
    let is_new = |file: &PathBuf| file.metadata().and_then(|meta| meta.created()).is_ok_and(|at| at >= since);
    mapped(pids).into_iter().filter(is_new).collect()
}

fn mapped(pids: impl Iterator<Item = u32>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for pid in pids {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let paths = maps.lines().filter_map(|line| line.find(SHARED).map(|at| &line[at..]));
        found.extend(paths.filter(|path| !path.ends_with(" (deleted)")).map(PathBuf::from));
    }
    found
}

/// Writes the list down for the case of a kill.
pub(crate) fn note(folder: &Path, files: &BTreeSet<PathBuf>) -> io::Result<()> {
    let lines: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
    fs::write(folder.join(MAPPED), lines)
}

/// What a list says.
pub(crate) fn noted(folder: &Path) -> BTreeSet<PathBuf> {
    let text = fs::read_to_string(folder.join(MAPPED)).unwrap_or_default();
    text.lines().filter(|line| line.starts_with(SHARED)).map(PathBuf::from).collect()
}

/// Removes those that are still there and that nobody has mapped, and says which.
pub(crate) fn remove_unused(files: &BTreeSet<PathBuf>, everybody: impl Iterator<Item = u32>) -> Vec<PathBuf> {
    let left: BTreeSet<PathBuf> = files.iter().filter(|file| file.is_file()).cloned().collect();
    if left.is_empty() {
        return Vec::new();
    }
    let used = mapped(everybody);
    left.difference(&used).filter(|file| fs::remove_file(file).is_ok()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_maps_any_more_is_removed() {
        let me = std::process::id();
        let name = |what: &str| PathBuf::from(format!("{SHARED}taut-lab-test-{me}-{what}"));
        let (used, left) = (name("used"), name("left"));
        [&used, &left].into_iter().for_each(|path| fs::write(path, [0; 4096]).unwrap());
        let file = fs::OpenOptions::new().read(true).write(true).open(&used).unwrap();
        // SAFETY: a map of a file of this test, unmapped below.
        let map = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                4096,
                rustix::mm::ProtFlags::READ,
                rustix::mm::MapFlags::SHARED,
                &file,
                0,
            )
        }
        .unwrap();
        let both = BTreeSet::from([used.clone(), left.clone(), name("never")]);
        assert!(made([me].into_iter(), SystemTime::UNIX_EPOCH).contains(&used));
        assert!(!made([me].into_iter(), SystemTime::now() + std::time::Duration::from_secs(60)).contains(&used));
        assert_eq!(remove_unused(&both, [me].into_iter()), [left.clone()]);
        assert!(used.exists() && !left.exists());
        let folder = tempfile::tempdir().unwrap();
        note(folder.path(), &both).unwrap();
        assert_eq!(noted(folder.path()), both);
        // SAFETY: the map from above.
        unsafe { rustix::mm::munmap(map, 4096) }.unwrap();
        assert_eq!(remove_unused(&both, [me].into_iter()), [used]);
    }
}
