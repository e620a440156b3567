//! Limits of the control group of a process: of the one named by `--pid`, else of this one.

use super::groups;
use crate::{
    Check, Effect, Subject, cpus,
    machine::{Machine, hidden, number, unreadable, value},
    seen::{Look, bad, good, not_visible, warn},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "cpu-quota",
        subject: Subject::Limits,
        title: "CPU quota of the group",
        reads: &[
            "/proc/PID/cgroup",
            "CGROUP/cpu.max",
            "CGROUP/cpu.cfs_quota_us",
            "CGROUP/cpu.cfs_period_us",
            "CGROUP/cpu.stat",
        ],
        good: "none, in every ancestor too",
        why: "when it is used up, the group stands still until the period ends, up to 100 ms",
        remedy: "no --cpus for docker; systemd: CPUQuota= empty; Kubernetes: requests = limits and the static CPU manager",
        undo: "set the quota again",
        effect: Effect::Tail,
        reboot: false,
        look: cpu_quota,
    },
    Check {
        id: "cpu-set",
        subject: Subject::Limits,
        title: "CPUs of the group",
        reads: &[
            "/proc/PID/cgroup",
            "CGROUP/cpuset.cpus.effective",
            "CGROUP/cpuset.effective_cpus",
            "CGROUP/cpuset.cpus",
            "/proc/PID/status",
        ],
        good: "contains the loop's CPUs",
        why: "a thread cannot be pinned outside its group's CPUs",
        remedy: "docker --cpuset-cpus, systemd AllowedCPUs=, or write cpuset.cpus",
        undo: "write the former set",
        effect: Effect::Safety,
        reboot: false,
        look: cpu_set,
    },
    Check {
        id: "memory-limit",
        subject: Subject::Limits,
        title: "Memory limit of the group",
        reads: &[
            "/proc/PID/cgroup",
            "CGROUP/memory.high",
            "CGROUP/memory.max",
            "CGROUP/memory.current",
            "CGROUP/memory.limit_in_bytes",
            "CGROUP/memory.usage_in_bytes",
        ],
        good: "none, or less than 80 % used",
        why: "near it every allocation waits for reclaim, at it the loop is killed",
        remedy: "docker --memory, systemd MemoryMax= and MemoryHigh=",
        undo: "set the limit again",
        effect: Effect::Safety,
        reboot: false,
        look: memory_limit,
    },
];

fn cpu_quota(machine: &Machine<'_>) -> Look {
    let groups_file = machine.own("cgroup");
    machine.root.read(&groups_file).map_err(|why| hidden(&groups_file, &why))?;
    let mut least: Option<(f64, String)> = None;
    let mut quotas: Vec<(String, f64)> = Vec::new();
    let mut seen = 0;
    for (path, text) in groups::readable(machine, "cpu", "cpu.max") {
        seen += 1;
        let (quota, period) = text.split_once(' ').ok_or_else(|| unreadable(&path, &text))?;
        if quota != "max" {
            quotas.push((path.clone(), number::<f64>(&path, quota)? / number::<f64>(&path, period)?));
        }
    }
    for (path, text) in groups::readable(machine, "cpu", "cpu.cfs_quota_us") {
        seen += 1;
        let quota: f64 = number(&path, &text)?;
        if quota > 0.0 {
            let period: f64 = machine.number(&path.replace("cpu.cfs_quota_us", "cpu.cfs_period_us"))?;
            quotas.push((path, quota / period));
        }
    }
    for (path, cpus) in quotas {
        if cpus.is_finite() && least.as_ref().is_none_or(|(most, _)| cpus < *most) {
            least = Some((cpus, path));
        }
    }
    let throttled: u64 = groups::readable(machine, "cpu", "cpu.stat")
        .iter()
        .filter_map(|(_, text)| {
            text.lines().find_map(|line| line.strip_prefix("nr_throttled "))?.trim().parse::<u64>().ok()
        })
        .max()
        .unwrap_or(0);
    match least {
        Some((cpus, path)) => {
            let folder = path.rsplit_once('/').map_or(path.as_str(), |(folder, _)| folder);
            Ok(bad(format!("{cpus:.2} CPUs ({folder}), throttled {throttled} times")))
        }
        None if seen > 0 => Ok(good("none")),
        // The root group has no such file, and no quota.
        None if in_root_group(machine) => Ok(good("none: in the root group")),
        None => Err(not_visible("the files of this process's group are not there")),
    }
}

fn in_root_group(machine: &Machine<'_>) -> bool {
    let groups = machine.maybe(&machine.own("cgroup")).unwrap_or_default();
    let here = |line: &&str| {
        line.starts_with("0:") || line.split(':').nth(1).is_some_and(|names| names.split(',').any(|n| n == "cpu"))
    };
    let mut of_interest = groups.lines().filter(here).peekable();
    of_interest.peek().is_some()
        && of_interest.all(|line| line.ends_with(":/"))
        && groups::folders(machine, "cpu").iter().any(|folder| machine.root.list(folder).is_ok())
        && !machine.is_container()
}

fn cpu_set(machine: &Machine<'_>) -> Look {
    let file = |name| groups::readable(machine, "cpuset", name).into_iter().find(|(_, text)| !text.is_empty());
    let (path, text) =
        match file("cpuset.cpus.effective").or_else(|| file("cpuset.effective_cpus")).or_else(|| file("cpuset.cpus")) {
            Some(found) => found,
            None => {
                // Without a group the process's own mask is all there is; isolcpus take CPUs off it that it may still use.
                let path = machine.own("status");
                let text = machine.text(&path)?;
                let list = value(&text, "Cpus_allowed_list")
                    .ok_or_else(|| not_visible(format!("{path} has no Cpus_allowed_list")))?;
                (path, list.to_owned())
            }
        };
    let allowed = cpus::list(&text).filter(|cpus| !cpus.is_empty()).ok_or_else(|| unreadable(&path, &text))?;
    let outside: Vec<u32> = machine.asked.cpus.iter().copied().filter(|cpu| !allowed.contains(cpu)).collect();
    let all = match machine.online() {
        [] => cpus::text(&allowed),
        online => format!("{} of {}", cpus::text(&allowed), cpus::text(online)),
    };
    Ok(match outside.is_empty() {
        true => good(all),
        false if path.ends_with("status") => warn(format!("{all}; not CPU {}", cpus::text(&outside))),
        false => bad(format!("{all}; not CPU {}", cpus::text(&outside))),
    })
}

fn memory_limit(machine: &Machine<'_>) -> Look {
    let groups_file = machine.own("cgroup");
    machine.root.read(&groups_file).map_err(|why| hidden(&groups_file, &why))?;
    let mut fullest: Option<(f64, String)> = None;
    let mut seen = 0;
    let kinds = [
        ("memory.high", "memory.current"),
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ];
    for (file, used_file) in kinds {
        for (path, text) in groups::readable(machine, "memory", file) {
            seen += 1;
            // Version 1 writes "no limit" as the largest number of pages.
            let Some(limit) = text.parse::<f64>().ok().filter(|limit| *limit > 0.0 && *limit < 1e18) else { continue };
            let used: f64 = machine.number(&path.replace(file, used_file))?;
            let share = used / limit;
            if fullest.as_ref().is_none_or(|(most, _)| share > *most) {
                fullest = Some((
                    share,
                    format!("{:.0} % of {:.2} GiB used ({file})", share * 100.0, limit / (1u64 << 30) as f64),
                ));
            }
        }
    }
    match fullest {
        Some((share, text)) if share >= 0.95 => Ok(bad(text)),
        Some((share, text)) if share >= 0.8 => Ok(warn(text)),
        Some((_, text)) => Ok(good(text)),
        None if seen > 0 => Ok(good("none")),
        None if in_root_group(machine) => Ok(good("none: in the root group")),
        None => Err(not_visible("the files of this process's group are not there")),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Asked,
        State::*,
        checks::{sees, sees_asked},
    };

    #[test]
    fn the_least_quota_of_all_ancestors_counts() {
        let machine = "== /proc/self/cgroup ==\n0::/a/b\n== /sys/fs/cgroup/a/b/cpu.max ==\nmax 100000\n\
            == /sys/fs/cgroup/a/cpu.max ==\n150000 100000\n== /sys/fs/cgroup/a/cpu.stat ==\nnr_periods 9\nnr_throttled 7\n";
        assert_eq!(sees("cpu-quota", machine).value, "1.50 CPUs (/sys/fs/cgroup/a), throttled 7 times");
        assert_eq!(sees("cpu-quota", &machine.replace("150000", "max")).state, Good);
        let v1 = "== /proc/self/cgroup ==\n1:cpu:/\n== /sys/fs/cgroup/cpu/cpu.cfs_quota_us ==\n50000\n\
            == /sys/fs/cgroup/cpu/cpu.cfs_period_us ==\n100000\n";
        assert_eq!(sees("cpu-quota", v1).state, Bad);
        assert_eq!(sees("cpu-quota", "== /proc/self/cgroup ==\n0::/a\n").state, NotVisible);
        assert_eq!(sees("cpu-quota", "== /proc/self/cgroup ==\n0::/\n== /sys/fs/cgroup/cpu.stat ==\n\n").state, Good);
    }

    #[test]
    fn a_loop_outside_of_its_set_is_bad() {
        let machine = "== /proc/self/cgroup ==\n0::/a\n== /sys/fs/cgroup/a/cpuset.cpus.effective ==\n0-1\n";
        let asked = Asked { cpus: vec![1, 2], ..Asked::default() };
        assert_eq!(sees_asked("cpu-set", machine, &asked).state, Bad);
        assert_eq!(sees("cpu-set", machine).state, Good);
    }

    #[test]
    fn a_group_near_its_limit_is_told() {
        let machine = "== /proc/self/cgroup ==\n0::/\n== /sys/fs/cgroup/memory.max ==\n1073741824\n== /sys/fs/cgroup/memory.current ==\n900000000\n";
        assert_eq!(sees("memory-limit", machine).value, "84 % of 1.00 GiB used (memory.max)");
        let none = "== /proc/self/cgroup ==\n4:memory:/\n== /sys/fs/cgroup/memory/memory.limit_in_bytes ==\n9223372036854771712\n";
        assert_eq!(sees("memory-limit", none).state, Good);
    }
}
