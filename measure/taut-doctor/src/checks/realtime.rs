//! What the kernel takes from real-time threads, and its own periodic work.

use super::groups;
use crate::{
    Check, Effect, Remedy, Setting, Subject,
    machine::{Machine, number},
    seen::{Look, bad, good, not_applicable, not_visible, warn},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "rt-throttling",
        subject: Subject::Scheduler,
        title: "Time taken from real-time threads",
        reads: &[
            "/proc/sys/kernel/osrelease",
            "/proc/sys/kernel/sched_rt_runtime_us",
            "/sys/kernel/debug/sched/fair_server/*/runtime",
        ],
        good: "none: before 6.12 sched_rt_runtime_us -1, since then a fair server runtime of 0",
        why: "a FIFO loop that computes long is stopped for 50 ms; since 6.12 writing -1 does not prevent it",
        remedy: "keep the loop below 90 % of its CPU; taut wakeup --throttle shows what this kernel does",
        undo: "",
        effect: Effect::Tail,
        reboot: false,
        look: rt_throttling,
    },
    Check {
        id: "rt-group",
        subject: Subject::Scheduler,
        title: "Real-time groups (RT_GROUP_SCHED)",
        reads: &["/proc/config.gz", "/boot/config-RELEASE", "/proc/PID/cgroup", "CGROUP/cpu.rt_runtime_us"],
        good: "not built in, or the group has a share",
        why: "a group without a share may not run SCHED_FIFO, even as root",
        remedy: "echo 950000 > CGROUP/cpu.rt_runtime_us, its parents first",
        undo: "echo 0 > CGROUP/cpu.rt_runtime_us",
        effect: Effect::Safety,
        reboot: false,
        look: rt_group,
    },
    Check {
        id: "watchdogs",
        subject: Subject::Scheduler,
        title: "Lockup watchdogs",
        reads: &["/proc/sys/kernel/nmi_watchdog", "/proc/sys/kernel/watchdog"],
        good: "0",
        why: "both interrupt every CPU every few seconds, the hard one unmaskably",
        remedy: "echo 0 > /proc/sys/kernel/nmi_watchdog; echo 0 > /proc/sys/kernel/watchdog; use a hardware watchdog",
        undo: "write the former values",
        effect: Effect::Tail,
        reboot: false,
        look: watchdogs,
    },
    Check {
        id: "stat-interval",
        subject: Subject::Scheduler,
        title: "Memory statistics interval",
        reads: &["/proc/sys/vm/stat_interval"],
        good: "10 s or more",
        why: "each time a worker runs on every CPU",
        remedy: "echo 10 > /proc/sys/vm/stat_interval",
        undo: "echo 1 > /proc/sys/vm/stat_interval",
        effect: Effect::Tail,
        reboot: false,
        look: stat_interval,
    },
];

/// Since then ordinary threads get their share from a deadline server, not by throttling.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

fn rt_throttling(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    let version = machine.kernel_version().ok_or_else(|| not_visible("the kernel's version cannot be read"))?;
    if version >= FAIR_SERVER_SINCE {
        return fair_server(machine, version);
    }
    let runtime: i64 = machine.number(FILE)?;
    Ok(match runtime {
        -1 => good("none taken"),
        us => warn(format!("runs at most {} ms of each second", us / 1000)).write(FILE, "-1", us.to_string()),
    })
}

fn fair_server(machine: &Machine<'_>, (major, minor): (u32, u32)) -> Look {
    const FOLDER: &str = "/sys/kernel/debug/sched/fair_server";
    let mut taken = Vec::new();
    for cpu in machine.cpus_of_interest() {
        let path = format!("{FOLDER}/cpu{cpu}/runtime");
        let text = machine.maybe(&path).ok_or_else(|| {
            not_visible(format!(
                "Linux {major}.{minor} has a fair server (50 ms of each s unless set); its files are hidden: \
                 taut wakeup --throttle tells"
            ))
        })?;
        let ns: u64 = number(&path, &text)?;
        if ns > 0 {
            taken.push((ns, Setting { path, new: "0".into(), old: text }));
        }
    }
    if machine.cpus_of_interest().is_empty() {
        return Err(not_visible("/sys/devices/system/cpu names no CPU"));
    }
    Ok(match taken.iter().map(|(ns, _)| ns).max() {
        None => good("none taken"),
        Some(ns) => warn(format!("{} ms of each second for ordinary threads", ns / 1_000_000))
            .remedy(Remedy::Write(taken.into_iter().map(|(_, setting)| setting).collect())),
    })
}

fn rt_group(machine: &Machine<'_>) -> Look {
    match machine.built_with("CONFIG_RT_GROUP_SCHED") {
        None => return Err(not_visible("neither /proc/config.gz nor /boot/config-* can be read")),
        Some(false) if machine.config().is_some_and(|config| config.contains("CONFIG_")) => {
            return Ok(good("not built in"));
        }
        Some(false) => return Err(not_visible("the kernel's build options are empty here")),
        Some(true) => {}
    }
    let files = groups::readable(machine, "cpu", "cpu.rt_runtime_us");
    let Some((path, text)) = files.first() else {
        return Err(not_applicable("built in; this process is in no group that it counts for"));
    };
    Ok(match number::<i64>(path, text)? {
        0 => bad(format!("{path} is 0")).write(path, "950000", "0"),
        us => good(format!("{us} µs of each period")),
    })
}

fn watchdogs(machine: &Machine<'_>) -> Look {
    let mut on = Vec::new();
    for name in ["nmi_watchdog", "watchdog"] {
        let path = format!("/proc/sys/kernel/{name}");
        let text = match machine.feature(&path, "/proc/sys/kernel", "this kernel has none") {
            // The hard one is not on every architecture.
            Err(_) if name == "nmi_watchdog" => continue,
            other => other?,
        };
        match text.as_str() {
            "0" => {}
            _ => on.push(Setting { path, new: "0".into(), old: number::<u32>(name, &text)?.to_string() }),
        }
    }
    Ok(
        match on
            .iter()
            .map(|setting| setting.path.rsplit('/').next().unwrap_or_default())
            .collect::<Vec<_>>()
            .join(", ")
        {
            names if names.is_empty() => good("off"),
            names => warn(format!("{names} on")).remedy(Remedy::Write(on)),
        },
    )
}

fn stat_interval(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/proc/sys/vm/stat_interval";
    let s: u64 = machine.number(FILE)?;
    Ok(if s >= 10 { good(format!("{s} s")) } else { warn(format!("{s} s")).write(FILE, "10", s.to_string()) })
}

#[cfg(test)]
mod tests {
    use crate::{State::*, checks::sees};

    #[test]
    fn minus_one_helps_only_before_the_fair_server() {
        let machine = |release: &str| {
            format!(
                "== /proc/sys/kernel/osrelease ==\n{release}\n== /proc/sys/kernel/sched_rt_runtime_us ==\n-1\n\
                == /sys/devices/system/cpu/online ==\n0\n"
            )
        };
        assert_eq!(sees("rt-throttling", &machine("6.11.0-rt7")).state, Good);
        assert_eq!(sees("rt-throttling", &machine("6.12.1")).state, NotVisible);
        let served = machine("6.12.1") + "== /sys/kernel/debug/sched/fair_server/cpu0/runtime ==\n50000000\n";
        let finding = sees("rt-throttling", &served);
        assert_eq!(finding.value, "50 ms of each second for ordinary threads");
        assert_eq!(finding.undo.unwrap(), "echo 50000000 > /sys/kernel/debug/sched/fair_server/cpu0/runtime");
        assert_eq!(sees("rt-throttling", &served.replace("50000000", "0")).state, Good);
    }

    #[test]
    fn a_group_without_a_share_forbids_fifo() {
        let machine = "== /proc/config.gz ==\nCONFIG_RT_GROUP_SCHED=y\n== /proc/self/cgroup ==\n4:cpu,cpuacct:/docker/1\n\
            == /sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.rt_runtime_us ==\n0\n";
        assert_eq!(sees("rt-group", machine).state, Bad);
        assert_eq!(sees("rt-group", "== /proc/config.gz ==\nCONFIG_HZ=250\n").state, Good);
        assert_eq!(sees("rt-group", "== /proc/config.gz ==\n\n").state, NotVisible, "an empty build is no answer");
    }

    #[test]
    fn both_watchdogs_are_named() {
        let machine = "== /proc/sys/kernel/nmi_watchdog ==\n1\n== /proc/sys/kernel/watchdog ==\n1\n";
        assert_eq!(sees("watchdogs", machine).value, "nmi_watchdog, watchdog on");
        assert_eq!(sees("watchdogs", "== /proc/sys/kernel/watchdog ==\n0\n").state, Good);
        assert_eq!(sees("watchdogs", "== /proc/version ==\n\n").state, NotVisible);
    }
}
