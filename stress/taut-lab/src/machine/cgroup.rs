//! A cpuset control group for each part of the lab, version 1 or 2: what affinity asks for, the kernel then enforces.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use procfs::process::Process;

use crate::Cpus;

/// How long a group of killed processes may stay busy.
const HELD: Duration = Duration::from_secs(2);

/// The lab's own control group, removed with it.
pub(crate) struct Cgroups {
    base: PathBuf,
    version: u8,
}

impl Cgroups {
    /// # Errors
    /// Why there can be none, in words.
    pub fn new(name: &str) -> Result<Cgroups, String> {
        let (parent, version) = cpuset_parent().ok_or("no cpuset controller is mounted")?;
        let base = parent.join(name);
        let failed = |error: std::io::Error| format!("{}: {error}", base.display());
        if version == 2 {
            let control = parent.join("cgroup.subtree_control");
            fs::write(&control, "+cpuset").map_err(|error| format!("{}: {error}", control.display()))?;
        }
        fs::create_dir(&base).map_err(failed)?;
        let groups = Cgroups { base: base.clone(), version };
        match version {
            2 => fs::write(base.join("cgroup.subtree_control"), "+cpuset").map_err(failed)?,
            // Version 1 begins with empty sets, which hold nobody.
            _ => {
                for key in ["cpuset.mems", "cpuset.cpus"] {
                    inherit(&parent, &base, key).map_err(failed)?;
                }
            }
        }
        Ok(groups)
    }

    pub fn word(&self) -> String {
        format!("cgroup v{} cpuset", self.version)
    }

    /// The file that a process of this part writes itself into.
    pub fn part(&self, name: &str, cpus: Option<&Cpus>) -> std::io::Result<PathBuf> {
        let folder = self.base.join(name);
        if !folder.exists() {
            fs::create_dir(&folder)?;
            if self.version == 1 {
                inherit(&self.base, &folder, "cpuset.mems")?;
            }
        }
        match cpus {
            Some(cpus) => fs::write(folder.join("cpuset.cpus"), cpus.to_string())?,
            None => inherit(&self.base, &folder, "cpuset.cpus")?,
        }
        Ok(folder.join("cgroup.procs"))
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        remove(&self.base);
    }
}

/// Control groups of labs, dead or alive.
pub(crate) fn named(prefix: &str) -> Vec<PathBuf> {
    let Some((parent, _)) = cpuset_parent() else { return Vec::new() };
    let is_ours = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    folders(&parent).into_iter().filter(is_ours).collect()
}

/// The processes in it and below.
pub(crate) fn members(group: &Path) -> Vec<u32> {
    let own = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let own = own.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>();
    own.into_iter().chain(folders(group).iter().flat_map(|below| members(below))).collect()
}

/// Removes an empty group and those below it. What has just been killed may still hold it for a moment; what holds it
/// for longer is left to the next lab.
pub(crate) fn remove(group: &Path) {
    folders(group).iter().for_each(|below| remove(below));
    let began = Instant::now();
    while fs::remove_dir(group).is_err() && group.exists() && began.elapsed() < HELD {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The group of this process in the hierarchy that has cpusets, and the version.
fn cpuset_parent() -> Option<(PathBuf, u8)> {
    let me = Process::myself().ok()?;
    let groups = me.cgroups().ok()?;
    let mounts = me.mountinfo().ok()?;
    let at = |path: &Path, below: &str| path.join(below.trim_start_matches('/'));
    let mut found = None;
    for mount in mounts.0 {
        let version = match mount.fs_type.as_str() {
            "cgroup" if mount.super_options.contains_key("cpuset") => 1,
            "cgroup2" => 2,
            _ => continue,
        };
        let own = groups.0.iter().find(|group| match version {
            1 => group.controllers.iter().any(|name| name == "cpuset"),
            _ => group.hierarchy == 0,
        });
        let Some(own) = own else { continue };
        let folder = at(&mount.mount_point, &own.pathname);
        let has_cpusets = version == 1
            || fs::read_to_string(folder.join("cgroup.controllers"))
                .is_ok_and(|list| list.split_whitespace().any(|name| name == "cpuset"));
        if has_cpusets && folder.exists() {
            found = Some((folder, version));
        }
    }
    found
}

fn inherit(parent: &Path, child: &Path, key: &str) -> std::io::Result<()> {
    // In version 2 an empty set means the parent's.
    let value = fs::read_to_string(parent.join(key))?;
    fs::write(child.join(key), if value.trim().is_empty() { "\n" } else { value.trim() })
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|path| path.is_dir()).collect()
}
