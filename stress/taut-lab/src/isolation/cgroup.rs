//! A cpuset control group for each part of the lab, version 1 or 2: what affinity asks for, the kernel then enforces.

use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use procfs::process::Process;

use crate::Cpus;

/// How long a group of killed processes may stay busy.
const HELD: Duration = Duration::from_secs(2);

/// The quota's period, the kernel's default.
const PERIOD_US: u64 = 100_000;
/// The group of all processes of the system under test, which a quota is of.
const SYSTEM: &str = "system";
/// Version 2: the controllers that a group hands on to those below it.
const CONTROL: &str = "cgroup.subtree_control";

/// The lab's own control groups, removed with it.
pub(crate) struct Cgroups {
    base: PathBuf,
    version: u8,
    /// Where the group of the system's CPU time is: in version 1 a hierarchy of its own, in version 2 the same.
    time: Option<PathBuf>,
    /// Whether the system of the scenario at hand is in that group.
    timed: Cell<bool>,
}

impl Cgroups {
    /// `of_time`: whether some scenario needs the group of CPU time; [`Cgroups::set_timed`] says which.
    ///
    /// # Errors
    /// Why there can be none, in words.
    pub fn new(name: &str, of_time: bool) -> Result<Cgroups, String> {
        let found = parents("cpuset");
        let mut why = "no cpuset controller is mounted".to_owned();
        for (parent, version) in found {
            match Cgroups::below(&parent, version, name, of_time) {
                Ok(groups) => return Ok(groups),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn below(parent: &Path, version: u8, name: &str, of_time: bool) -> Result<Cgroups, String> {
        let base = parent.join(name);
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: std::io::Error| format!("{path}: {error}")
        };
        if version == 2 {
            // A group that has processes of its own may not hand on controllers, the root excepted.
            let control = parent.join(CONTROL);
            fs::write(&control, "+cpuset").map_err(failed(&control))?;
            if of_time {
                fs::write(&control, "+cpu").map_err(failed(&control))?;
            }
        }
        fs::create_dir(&base).map_err(failed(&base))?;
        let mut groups = Cgroups { base: base.clone(), version, time: None, timed: Cell::new(false) };
        match version {
            2 => {
                let system = base.join(SYSTEM);
                fs::create_dir(&system).map_err(failed(&system))?;
                for folder in [&base, &system] {
                    let control = folder.join(CONTROL);
                    fs::write(&control, "+cpuset").map_err(failed(&control))?;
                }
                groups.time = of_time.then_some(system);
            }
            // Version 1 begins with empty sets, which hold nothing.
            _ => {
                for key in ["cpuset.mems", "cpuset.cpus"] {
                    inherit(parent, &base, key).map_err(failed(&base))?;
                }
                let made = |(cpu, _): (PathBuf, u8)| {
                    let folder = cpu.join(name);
                    fs::create_dir(&folder).ok().map(|()| folder)
                };
                groups.time = if of_time { parents("cpu").into_iter().find_map(made) } else { None };
            }
        }
        Ok(groups)
    }

    /// Puts the system of the next start into a group of CPU time of its own, or takes that group away. Such a group
    /// shares the CPUs with what is beside it as one, however many threads it has: a scenario has it only where its own
    /// keys ask for it.
    pub fn set_timed(&self, timed: bool) -> std::io::Result<()> {
        if timed && self.time.is_none() {
            return Err(std::io::Error::other("no cpu controller is mounted"));
        }
        if self.version == 2 && self.time.is_some() {
            fs::write(self.base.join(CONTROL), if timed { "+cpu" } else { "-cpu" })?;
        }
        self.timed.set(timed);
        Ok(())
    }

    pub fn word(&self) -> String {
        format!("cgroup v{} cpuset", self.version)
    }

    /// The files that a process of this part writes itself into.
    pub fn part(&self, name: &str, cpus: Option<&Cpus>, of_system: bool) -> std::io::Result<Vec<PathBuf>> {
        let parent = if self.version == 2 && of_system { self.base.join(SYSTEM) } else { self.base.clone() };
        let folder = parent.join(name);
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
        let in_time = of_system && self.version == 1 && self.timed.get();
        let time = self.time.iter().filter(|_| in_time).map(|folder| folder.join("cgroup.procs"));
        Ok([folder.join("cgroup.procs")].into_iter().chain(time).collect())
    }

    /// How many CPUs' time the whole system may use; `None` lifts it.
    pub fn set_quota(&self, cpus: Option<f64>) -> std::io::Result<()> {
        let quota_us = cpus.map(|cpus| (cpus * PERIOD_US as f64).round().max(1000.0) as u64);
        let time = self.time.as_ref().filter(|_| self.timed.get());
        let time = time.ok_or_else(|| std::io::Error::other("the system is in no group of CPU time"))?;
        if self.version == 2 {
            let quota = quota_us.map_or("max".into(), |us| us.to_string());
            return fs::write(time.join("cpu.max"), format!("{quota} {PERIOD_US}"));
        }
        fs::write(time.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
        fs::write(time.join("cpu.cfs_quota_us"), quota_us.map_or("-1".into(), |us| us.to_string()))
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        remove(&self.base);
        self.time.iter().filter(|_| self.version == 1).for_each(|folder| remove(folder));
    }
}

/// Control groups of labs, dead or alive.
pub(crate) fn named(prefix: &str) -> Vec<PathBuf> {
    let is_ours = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    let mut all: Vec<PathBuf> = ["cpuset", "cpu"]
        .into_iter()
        .flat_map(parents)
        .flat_map(|(parent, _)| folders(&parent))
        .filter(is_ours)
        .collect();
    all.sort();
    all.dedup();
    all
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

/// Where a lab's group may be, best first, and the version: in the group of this process in the hierarchy that has this
/// controller; in version 2 also in those above it, since a group with processes of its own has no groups.
fn parents(controller: &str) -> Vec<(PathBuf, u8)> {
    let Ok(me) = Process::myself() else { return Vec::new() };
    let (Ok(groups), Ok(mounts)) = (me.cgroups(), me.mountinfo()) else { return Vec::new() };
    let mut found = Vec::new();
    for mount in mounts.0 {
        let version = match mount.fs_type.as_str() {
            "cgroup" if mount.super_options.contains_key(controller) => 1,
            "cgroup2" => 2,
            _ => continue,
        };
        let own = groups.0.iter().find(|group| match version {
            1 => group.controllers.iter().any(|name| name == controller),
            _ => group.hierarchy == 0,
        });
        let Some(own) = own else { continue };
        let below = Path::new(own.pathname.trim_start_matches('/'));
        for below in below.ancestors().take(if version == 1 { 1 } else { usize::MAX }) {
            let folder = mount.mount_point.join(below);
            let has = version == 1
                || fs::read_to_string(folder.join("cgroup.controllers"))
                    .is_ok_and(|list| list.split_whitespace().any(|name| name == controller));
            if has && folder.exists() {
                found.push((folder, version));
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_confines_parts_and_holds_the_system_to_its_time() {
        // A folder stands for the hierarchy: what is written where is all that is ours.
        let root = tempfile::tempdir().unwrap();
        let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
        let groups = Cgroups::below(root.path(), 2, "lab", true).unwrap();
        fs::write(root.path().join("lab/cpuset.cpus"), "").unwrap();
        let cpus: Cpus = "0-1".parse().unwrap();
        let files = groups.part("server", Some(&cpus), true).unwrap();
        assert_eq!(files, [root.path().join("lab/system/server/cgroup.procs")]);
        assert_eq!(read("lab/system/server/cpuset.cpus"), "0-1");
        let files = groups.part("load-0", None, false).unwrap();
        assert_eq!(files, [root.path().join("lab/load-0/cgroup.procs")]);
        assert!(groups.set_quota(Some(0.25)).is_err(), "this scenario did not ask for a group of CPU time");
        groups.set_timed(true).unwrap();
        assert_eq!(read("lab/cgroup.subtree_control"), "+cpu");
        groups.set_quota(Some(0.25)).unwrap();
        assert_eq!(read("lab/system/cpu.max"), "25000 100000");
        groups.set_quota(None).unwrap();
        assert_eq!(read("lab/system/cpu.max"), "max 100000");
        // The next scenario has no quota: its processes share the CPUs one by one again.
        groups.set_timed(false).unwrap();
        assert_eq!(read("lab/cgroup.subtree_control"), "-cpu");
        std::mem::forget(groups);
    }
}
