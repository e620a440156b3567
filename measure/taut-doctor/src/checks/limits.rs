//! What this user, container or group of processes may do; of the process named by `--pid`, else of this one.

use super::groups;
use crate::{
    Check, Effect, Missing, Subject, cpus,
    finding::{Look, Seen, bad, good, not_visible, warn},
    machine::{Machine, hidden, number, unreadable, value},
};

/// Bits of CapEff (linux/capability.h).
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;
const CAP_PERFMON: u32 = 38;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "rt-priority",
        subject: Subject::Limits,
        title: "May run SCHED_FIFO",
        reads: &["call:sched_setscheduler", "/proc/PID/limits", "/proc/PID/status"],
        good: "permitted",
        why: "an ordinary thread waits for other ordinary threads, for ms when the machine is busy",
        remedy: "`@realtime - rtprio 98` in /etc/security/limits.d, LimitRTPRIO=98 in the unit",
        undo: "delete the line",
        effect: Effect::Tail,
        reboot: false,
        look: rt_priority,
    },
    Check {
        id: "rt-time",
        subject: Subject::Limits,
        title: "Limit on real-time CPU time",
        reads: &["/proc/PID/limits"],
        good: "unlimited",
        why: "a real-time thread that computes longer without sleeping is killed by SIGXCPU (rtkit sets 200 ms)",
        remedy: "LimitRTTIME=infinity in the unit, or `ulimit -R unlimited`",
        undo: "delete the line",
        effect: Effect::Safety,
        reboot: false,
        look: rt_time,
    },
    Check {
        id: "locked-memory",
        subject: Subject::Limits,
        title: "May lock memory",
        reads: &["/proc/PID/limits", "/proc/PID/status"],
        good: "unlimited, or CAP_IPC_LOCK",
        why: "without mlockall the loop's pages may be taken away; with a low limit allocations fail",
        remedy: "`@realtime - memlock unlimited` in /etc/security/limits.d, LimitMEMLOCK=infinity in the unit",
        undo: "delete the line",
        effect: Effect::Tail,
        reboot: false,
        look: locked_memory,
    },
    Check {
        id: "perf-access",
        subject: Subject::Limits,
        title: "May see kernel events",
        reads: &["/proc/PID/status", "/proc/sys/kernel/perf_event_paranoid"],
        good: "CAP_PERFMON, or perf_event_paranoid -1",
        why: "without them taut cannot say which thread or interrupt took the loop's time",
        remedy: "setcap cap_perfmon+ep on the taut binary, or echo -1 > /proc/sys/kernel/perf_event_paranoid",
        undo: "setcap -r on the taut binary",
        effect: Effect::Safety,
        reboot: false,
        look: perf_access,
    },
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
        why: "when it is used up, all threads of the group stand still until the period ends, up to 100 ms",
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
        why: "a thread cannot be pinned to a CPU outside of its group's set",
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
        why: "near the limit every allocation waits for reclaim, at the limit the loop is killed",
        remedy: "docker --memory, systemd MemoryMax= and MemoryHigh=",
        undo: "set the limit again",
        effect: Effect::Safety,
        reboot: false,
        look: memory_limit,
    },
];

fn own(machine: &Machine<'_>, file: &str) -> String {
    machine.named(&format!("/proc/PID/{file}"))
}

/// The soft limit of a line of /proc/PID/limits; `None` is "unlimited".
fn limit(machine: &Machine<'_>, name: &str) -> Result<Option<u64>, Seen> {
    let path = own(machine, "limits");
    let text = machine.text(&path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    match line.and_then(|rest| rest.split_whitespace().next()) {
        None => Err(not_visible(format!("{path} has no line {name:?}"))),
        Some("unlimited") => Ok(None),
        Some(n) => Ok(Some(number(&path, n)?)),
    }
}

fn has(machine: &Machine<'_>, capability: u32) -> Result<bool, Seen> {
    let path = own(machine, "status");
    let text = machine.text(&path)?;
    let bits = value(&text, "CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok());
    Ok(bits.ok_or_else(|| not_visible(format!("{path} has no CapEff")))? >> capability & 1 == 1)
}

fn rt_priority(machine: &Machine<'_>) -> Look {
    let container = "docker run --cap-add sys_nice --ulimit rtprio=98";
    let refused = |text: &str| match machine.is_container() {
        true => bad(text).advise(container),
        false => bad(text),
    };
    if machine.asked.pid.is_none() {
        match machine.root.read("call:sched_setscheduler") {
            Ok(text) if text.trim() == "permitted" => return Ok(good("permitted, tried")),
            Ok(text) => return Err(unreadable("call:sched_setscheduler", &text)),
            Err(Missing::Denied) => return Ok(refused("refused when tried")),
            Err(Missing::Failed(why)) => return Err(not_visible(why)),
            Err(Missing::Absent) => {}
        }
    }
    if has(machine, CAP_SYS_NICE)? {
        return Ok(good("CAP_SYS_NICE"));
    }
    Ok(match limit(machine, "Max realtime priority")? {
        Some(0) => refused("priority limit 0, no CAP_SYS_NICE"),
        Some(n) => good(format!("up to priority {n}")),
        None => good("any priority"),
    })
}

fn rt_time(machine: &Machine<'_>) -> Look {
    Ok(match limit(machine, "Max realtime timeout")? {
        None => good("unlimited"),
        Some(us) => warn(format!("{us} µs")),
    })
}

fn locked_memory(machine: &Machine<'_>) -> Look {
    let bytes = match limit(machine, "Max locked memory")? {
        None => return Ok(good("unlimited")),
        Some(bytes) => bytes,
    };
    if has(machine, CAP_IPC_LOCK)? {
        return Ok(good("CAP_IPC_LOCK: the limit does not count"));
    }
    let finding = bad(format!("{} KiB", bytes / 1024));
    Ok(if machine.is_container() {
        finding.advise("docker run --ulimit memlock=-1, or --cap-add ipc_lock")
    } else {
        finding
    })
}

fn perf_access(machine: &Machine<'_>) -> Look {
    for (bit, name) in [(CAP_PERFMON, "CAP_PERFMON"), (CAP_SYS_ADMIN, "CAP_SYS_ADMIN")] {
        if has(machine, bit)? {
            return Ok(good(name));
        }
    }
    const FILE: &str = "/proc/sys/kernel/perf_event_paranoid";
    let level: i32 = machine.number(FILE)?;
    let text = format!("perf_event_paranoid {level}, no CAP_PERFMON");
    Ok(match level {
        ..0 => good(format!("perf_event_paranoid {level}")),
        _ if machine.is_container() => warn(text).advise("docker run --cap-add perfmon"),
        _ => warn(text).write(FILE, "-1", level.to_string()),
    })
}

fn cpu_quota(machine: &Machine<'_>) -> Look {
    let groups_file = own(machine, "cgroup");
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
    let groups = machine.maybe(&own(machine, "cgroup")).unwrap_or_default();
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
                let path = own(machine, "status");
                let text = machine.text(&path)?;
                let list = value(&text, "Cpus_allowed_list")
                    .ok_or_else(|| not_visible(format!("{path} has no Cpus_allowed_list")))?;
                (path, list.to_owned())
            }
        };
    let allowed = cpus::list(&text).filter(|cpus| !cpus.is_empty()).ok_or_else(|| unreadable(&path, &text))?;
    let outside: Vec<u32> = machine.asked.cpus.iter().copied().filter(|cpu| !allowed.contains(cpu)).collect();
    let all = format!("{} of {}", cpus::text(&allowed), cpus::text(machine.online()));
    Ok(match outside.is_empty() {
        true => good(all),
        false if path.ends_with("status") => warn(format!("{all}; not CPU {}", cpus::text(&outside))),
        false => bad(format!("{all}; not CPU {}", cpus::text(&outside))),
    })
}

fn memory_limit(machine: &Machine<'_>) -> Look {
    let groups_file = own(machine, "cgroup");
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

    const LIMITS: &str = "== /proc/self/limits ==\nLimit Soft Limit Hard Limit Units\n\
        Max locked memory         8388608              8388608              bytes\n\
        Max realtime priority     0                    0                    \n\
        Max realtime timeout      200000               200000               us\n";

    fn status(capabilities: &str) -> String {
        format!("{LIMITS}== /proc/self/status ==\nName:\tx\nCapEff:\t{capabilities}\nCpus_allowed_list:\t0-3\n")
    }

    #[test]
    fn a_capability_outdoes_a_limit() {
        assert_eq!(sees("rt-priority", &status("0000000000000000")).state, Bad);
        assert_eq!(sees("rt-priority", &status("0000000000800000")).value, "CAP_SYS_NICE");
        assert_eq!(sees("locked-memory", &status("0000000000000000")).value, "8192 KiB");
        assert_eq!(sees("locked-memory", &status("0000000000004000")).state, Good);
        assert_eq!(sees("rt-time", &status("0")).value, "200000 µs");
        assert_eq!(sees("perf-access", &status("0000004000000000")).value, "CAP_PERFMON");
    }

    #[test]
    fn what_was_tried_outdoes_what_is_written() {
        let tried = status("0000000000800000") + "== call:sched_setscheduler == EPERM\n";
        assert_eq!(sees("rt-priority", &tried).state, Bad, "a container may refuse in spite of the capability");
        let other = sees_asked(
            "rt-priority",
            &tried.replace("/proc/self/", "/proc/9/"),
            &Asked { pid: Some(9), ..Asked::default() },
        );
        assert_eq!(other.state, Good, "what this process may do says nothing of another");
    }

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
