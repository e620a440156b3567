//! The governor of CPUs while a variant is measured: set before its turn, put back after it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::Error;

/// Where CPUs are.
pub(crate) const CPUS: &str = "/sys/devices/system/cpu";

/// Governors that are set, and what was there before; putting them back is a drop away.
pub(crate) struct Governor(Vec<(PathBuf, String)>);

impl Governor {
    /// Sets the governor of these CPUs, or of all where there are none.
    ///
    /// # Errors
    /// A machine without frequency scaling, a governor that it does not have, a user who may not.
    pub fn set(root: &Path, cpus: &[u32], name: &str) -> Result<Governor, Error> {
        let bad = |hint: String| Error::Value { key: "governor".into(), value: name.to_owned(), hint };
        let policies = policies(root, cpus);
        if policies.is_empty() {
            return Err(bad("this machine shows no frequency scaling (cpufreq)".into()));
        }
        let mut set = Governor(Vec::new());
        for folder in policies {
            let path = folder.join("scaling_governor");
            let there = fs::read_to_string(folder.join("scaling_available_governors")).unwrap_or_default();
            if !there.split_whitespace().any(|one| one == name) {
                return Err(bad(format!("this machine has {}", there.trim())));
            }
            let failed = |source: io::Error| Error::System {
                what: format!("{} (setting a governor needs root)", path.display()),
                source,
            };
            let before = fs::read_to_string(&path).map_err(failed)?.trim().to_owned();
            fs::write(&path, name).map_err(failed)?;
            set.0.push((path.clone(), before));
        }
        Ok(set)
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        for (path, before) in &self.0 {
            let _ = fs::write(path, before);
        }
    }
}

/// The commands that put governors back, for what a kill leaves behind.
pub fn governors(cpus: &[u32]) -> Vec<String> {
    let path = |folder: PathBuf| folder.join("scaling_governor");
    let command = |path: PathBuf| Some(format!("echo {} > {}", fs::read_to_string(&path).ok()?.trim(), path.display()));
    policies(Path::new(CPUS), cpus).into_iter().map(path).filter_map(command).collect()
}

fn policies(root: &Path, cpus: &[u32]) -> Vec<PathBuf> {
    let all = || {
        let names = fs::read_dir(root).into_iter().flatten().flatten();
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok();
        let mut cpus: Vec<u32> = names.filter_map(number).collect();
        cpus.sort_unstable();
        cpus
    };
    let cpus = if cpus.is_empty() { all() } else { cpus.to_vec() };
    let folders = cpus.iter().map(|cpu| root.join(format!("cpu{cpu}/cpufreq")));
    folders.filter(|folder| folder.join("scaling_governor").exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two CPUs with two governors each.
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (cpu, governor) in [(0, "schedutil"), (1, "powersave")] {
            let folder = root.path().join(format!("cpu{cpu}/cpufreq"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("scaling_governor"), format!("{governor}\n")).unwrap();
            fs::write(folder.join("scaling_available_governors"), "performance powersave schedutil\n").unwrap();
        }
        root
    }

    #[test]
    fn a_governor_is_set_for_a_turn_and_put_back() {
        let root = machine();
        let now = || {
            [0, 1]
                .map(|cpu| fs::read_to_string(root.path().join(format!("cpu{cpu}/cpufreq/scaling_governor"))).unwrap())
        };
        let set = Governor::set(root.path(), &[], "performance").unwrap();
        assert_eq!(now(), ["performance", "performance"]);
        drop(set);
        assert_eq!(now(), ["schedutil", "powersave"], "each its own");
        drop(Governor::set(root.path(), &[1], "performance").unwrap());
        assert_eq!(now(), ["schedutil", "powersave"]);
    }

    #[test]
    fn what_cannot_be_set_is_named() {
        let root = machine();
        let said = |root: &Path, name: &str| Governor::set(root, &[0], name).err().unwrap().to_string();
        assert_eq!(said(root.path(), "warp"), "governor warp: this machine has performance powersave schedutil");
        let empty = tempfile::tempdir().unwrap();
        assert!(said(empty.path(), "performance").contains("no frequency scaling"));
    }
}
