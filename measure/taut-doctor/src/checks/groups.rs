//! Where the control groups of a process have their files, in both versions of cgroups, in and out of containers.

use crate::machine::Machine;

/// The files of the process's group and of every ancestor that can be read, nearest first.
pub(super) fn readable(machine: &Machine<'_>, controller: &str, file: &str) -> Vec<(String, String)> {
    folders(machine, controller)
        .into_iter()
        .filter_map(|folder| {
            let path = format!("{folder}/{file}");
            let text = machine.maybe(&path)?;
            Some((path, text))
        })
        .collect()
}

/// The folders of the process's group and its ancestors, nearest first, whether they are there or not. In a container the
/// path may be the host's; then only the last one, the mount itself, is there, and is the container's group.
pub(super) fn folders(machine: &Machine<'_>, controller: &str) -> Vec<String> {
    let pid = machine.asked.pid.map_or("self".into(), |pid| pid.to_string());
    let groups = machine.maybe(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let mounts: Vec<String> = match controllers {
            "" => vec!["/sys/fs/cgroup".into(), "/sys/fs/cgroup/unified".into()],
            some if some.split(',').any(|name| name == controller) && !some.contains('/') => {
                let mut mounts = vec![format!("/sys/fs/cgroup/{controller}"), format!("/sys/fs/cgroup/{some}")];
                mounts.dedup();
                mounts
            }
            _ => continue,
        };
        // "/.." is a group outside of the namespace.
        if path.split('/').any(|part| part == "..") {
            folders.extend(mounts);
            continue;
        }
        for mount in mounts {
            let mut rest = path.trim_end_matches('/');
            while !rest.is_empty() {
                folders.push(format!("{mount}{rest}"));
                rest = rest.rsplit_once('/').map_or("", |(parent, _)| parent);
            }
            folders.push(mount);
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Asked, Root};

    #[test]
    fn both_versions_and_every_ancestor_are_looked_at() {
        let text = "== /proc/self/cgroup ==\n4:cpu,cpuacct:/a/b\n3:memory:/m\n0::/x/y\n\
            == /sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us ==\n1\n\
            == /sys/fs/cgroup/x/cpu.max ==\nmax 100000\n";
        let (root, asked) = (Root::recorded(text).unwrap(), Asked::default());
        let machine = Machine::new(&root, &asked);
        assert_eq!(readable(&machine, "cpu", "cpu.max")[0].0, "/sys/fs/cgroup/x/cpu.max");
        assert_eq!(readable(&machine, "cpu", "cpu.cfs_quota_us")[0].0, "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us");
        assert!(folders(&machine, "cpu").contains(&"/sys/fs/cgroup/unified".to_owned()));
        assert!(!folders(&machine, "cpu").iter().any(|folder| folder.contains("/m")));
    }
}
